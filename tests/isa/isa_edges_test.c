// Edges that no other test of instructions comes to: cores that only count time, tiles that are none,
// values and types at the ends of what an instruction takes.

#include "isa_calls.h"

// -- dry cores ------------------------------------------------------------------------------------

// A dry core charges what the call costs on paper, and changes no element.
ROUNDS_TEST(dry__instructions_cost_time_and_write_nothing, 2 * CALL_COUNT) {
    test_call call = call_make(bench, (call_id)(round / 2), (ptoisa_family)(round % 2), 6, 64);
    for (uint32_t k = 0; k < bench->tile_count; k++) {
        bench->tiles[k].role = TEST_READ;
    }
    bench->core.is_dry = true;
    test_run(bench);
    call_run(bench, &call);
    if (bench->core.sum != call.cycles) {
        fail_msg("%s: %llu cycles, expected %llu", call.name, (unsigned long long)bench->core.sum,
                 (unsigned long long)call.cycles);
    }
}

// Tiles and windows without memory, of 128 elements.
BENCH_TEST(dry__loads_and_stores_need_no_memory) {
    test_begin(bench, PTOISA_A2A3, "dry");
    bench->core.is_dry = true;
    const ptoisa_tile none = ptoisa_tile_vec(NULL, PTOISA_F32, 8, 16);
    const ptoisa_global g = ptoisa_global_make(NULL, PTOISA_F32, 8, 16, 16, 1);
    ptoisa_tload(&bench->core, &none, &g);
    ptoisa_tstore(&bench->core, &g, &none);
    assert_int_equal(ptoisa_cycles(&bench->core), 256);
    test_end(bench);
}

#if PTOISA_CHECKED_DEFAULT

static void refused(test_bench *bench, const char *text) {
    assert_int_equal(bench->fault_count, 1);
    if (strstr(bench->fault, text) == NULL) {
        fail_msg("\"%s\", expected \"%s\"", bench->fault, text);
    }
    assert_true(bench->core.sum == 0);
    bench->fault_count = 0;
}

// A tile of 64 x 1,024 f32 has 256 KiB: more than UB of A2/A3, which as the simulator has it ends at 256.
ROUNDS_TEST(assign__a_tile_larger_than_its_memory_is_refused, 3) {
    test_begin(bench, round == 2 ? PTOISA_A5 : PTOISA_A2A3, "TASSIGN");
    bench->core.is_as_simulator = round == 1;
    ptoisa_tile tile = ptoisa_tile_vec(NULL, PTOISA_F32, 64, round == 2 ? 2048 : 1024);
    ptoisa_tassign(&bench->core, &tile, 0);
    if (round == 0) {
        refused(bench, "TASSIGN: a tile ends at 262144 of 188416 bytes");
    } else if (round == 2) {
        refused(bench, "TASSIGN: a tile ends at 524288 of 262144 bytes");
    }
    // As the simulator has it on A5, L1 and UB are the machine's.
    bench->core.is_as_simulator = true;
    tile = ptoisa_tile_make(NULL, PTOISA_F32, PTOISA_MAT, PTOISA_ROW_MAJOR, 64, 4096);
    ptoisa_tassign(&bench->core, &tile, 0);
    refused(bench, "TASSIGN: a tile ends at 1048576 of 524288 bytes");
}

#endif
