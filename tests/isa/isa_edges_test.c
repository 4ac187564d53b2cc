// Edges that no other test of instructions comes to: cores that only count time, tiles that are none,
// values and types at the ends of what an instruction takes.

#include "isa_calls.h"

// -- dry cores ------------------------------------------------------------------------------------

// A dry core charges what the call costs on paper, and changes no element.
ROUNDS_TEST(dry__instructions_cost_time_and_write_nothing, 2 * CALL_COUNT) {
    test_call call = call_make(bench, (call_id)(round / 2), (ptoisa_family)(round % 2));
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
