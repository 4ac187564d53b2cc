// What the device refuses: every operand of every instruction, spoiled in every way, and rules over many
// sizes. A fault has a text that names the instruction; nothing is written, and no time passes. Single calls
// with their texts are in isa_rules.txt.

#include "isa_calls.h"

#if PTOISA_CHECKED_DEFAULT

// The call was refused, once, with a text that begins with the instruction's name and has a part.
static void refused(test_bench *bench, const test_call *call, const char *how, uint32_t operand,
                    const char *part) {
    size_t length = strlen(call->prefix);
    if (bench->fault_count != 1 || strncmp(bench->fault, call->prefix, length) != 0 ||
        strstr(bench->fault, part) == NULL) {
        fail_msg("%s, %s of operand %u: %u faults, \"%s\", expected \"%s.. %s\"", call->name, how,
                 operand, bench->fault_count, bench->fault, call->prefix, part);
    }
    if (bench->core.sum != 0) {
        fail_msg("%s: refused, and charged", call->name);
    }
    bench->fault_count = 0;
}

// -- one operand spoiled --------------------------------------------------------------------------

typedef enum spoil {
    SPOIL_DTYPE,
    SPOIL_NO_DTYPE,
    SPOIL_MEMORY,
    SPOIL_NO_MEMORY,
    SPOIL_NO_LAYOUT,
    SPOIL_WIDTH,
    SPOIL_ADDRESS,
    SPOIL_NULL,
    SPOIL_VALID_ROWS,
    SPOIL_VALID_COLS,
    SPOIL_NO_ROWS,
    SPOIL_FEWER_ROWS,
    SPOIL_FEWER_COLS,
    SPOIL_COUNT
} spoil;

// How it is called, and a part of the text; "" where instructions may say it in their own words.
static const char *const spoils[SPOIL_COUNT][2] = {{"f64", ""},
                                                   {"no type", ""},
                                                   {"another memory", ""},
                                                   {"no memory", "no tile"},
                                                   {"no layout", "no tile"},
                                                   {"a torn row", ""},
                                                   {"address", "not 32-byte aligned"},
                                                   {"no data", "not 32-byte aligned"},
                                                   {"too many valid", "valid elements of"},
                                                   {"too many valid", "valid elements of"},
                                                   {"no rows", "valid elements of"},
                                                   {"fewer rows", ""},
                                                   {"fewer columns", ""}};

// A memory in which nothing takes this operand.
static ptoisa_memory wrong_memory(ptoisa_memory memory, bool is_destination) {
    switch (memory) {
    case PTOISA_VEC: return is_destination ? PTOISA_ACC : PTOISA_SCALING;
    case PTOISA_MAT: return PTOISA_SCALING;
    case PTOISA_LEFT: return PTOISA_ACC;
    case PTOISA_RIGHT: return PTOISA_LEFT;
    case PTOISA_ACC: return PTOISA_LEFT;
    case PTOISA_BIAS: return PTOISA_VEC;
    default: return PTOISA_ACC;
    }
}

// Spoils an operand. False: there is no such way for it.
static bool spoil_tile(ptoisa_tile *t, spoil how, call_need need, bool is_destination) {
    switch (how) {
    case SPOIL_DTYPE: t->dtype = PTOISA_F64; return true;
    case SPOIL_NO_DTYPE: t->dtype = 0; return true;
    case SPOIL_MEMORY:
        t->memory = (uint8_t)wrong_memory((ptoisa_memory)t->memory, is_destination);
        return true;
    case SPOIL_NO_MEMORY: t->memory = PTOISA_MEMORY_COUNT; return true;
    case SPOIL_NO_LAYOUT: t->layout = PTOISA_LAYOUT_COUNT; return true;
    case SPOIL_WIDTH:
        if (t->layout == PTOISA_COL_MAJOR) {
            t->rows--;
            t->valid_rows = t->valid_rows < t->rows ? t->valid_rows : t->rows;
        } else {
            t->cols--;
            t->valid_cols = t->valid_cols < t->cols ? t->valid_cols : t->cols;
        }
        return true;
    case SPOIL_ADDRESS: t->data = (uint8_t *)t->data + 8; return true;
    case SPOIL_NULL: t->data = NULL; return true;
    case SPOIL_VALID_ROWS: t->valid_rows = t->rows + 1; return true;
    case SPOIL_VALID_COLS: t->valid_cols = t->cols + 1; return true;
    case SPOIL_NO_ROWS: t->rows = t->valid_rows = 0; return true;
    case SPOIL_FEWER_ROWS: t->valid_rows--; return need & NEED_ROWS;
    case SPOIL_FEWER_COLS: t->valid_cols--; return need & NEED_COLS;
    case SPOIL_COUNT: break;
    }
    return false;
}

// Calls an instruction with one operand spoiled. False: no such way.
static bool spoiled_call(test_bench *bench, call_id id, ptoisa_family family, uint32_t operand,
                         spoil how) {
    test_call call = call_make(bench, id, family, 6, 64);
    for (uint32_t i = 0; i < bench->tile_count; i++) {
        bench->tiles[i].role = TEST_READ;
    }
    bool is_there = operand < call.tile_count;
    if (is_there && !call.is_scratch[operand]) {
        ptoisa_tile *t = &call.tiles[operand]->tile, good = *t;
        test_run(bench);
        // Tiles that are also read as another type have their own words for it.
        if (spoil_tile(t, how, call.needs[operand], operand == 0)) {
            call_run(bench, &call);
            refused(bench, &call, spoils[how][0], operand, spoils[how][1]);
        }
        *t = good;
    } else {
        test_run(bench);
    }
    test_end(bench);
    return is_there;
}

BENCH_TEST(operand__spoiled_in_every_way_is_refused) {
    TEST_GRID(uint32_t, id, CALL_COUNT, how, SPOIL_COUNT) {
        for (uint32_t family = 0; family < 2; family++) {
            for (uint32_t operand = 0;
                 spoiled_call(bench, (call_id)id, (ptoisa_family)family, operand, (spoil)how);) {
                operand++;
            }
        }
    }
}

// Good calls are no faults on either machine (else the test above tests nothing).
ROUNDS_TEST(operand__good_ones_are_taken, 2 * CALL_COUNT) {
    test_call call = call_make(bench, (call_id)(round / 2), (ptoisa_family)(round % 2), 6, 64);
    for (uint32_t k = 0; k < bench->tile_count; k++) {
        bench->tiles[k].role = TEST_CHECKED;
    }
    test_run(bench);
    call_run(bench, &call);
}

// Windows: of other sizes than the tile, of another element size, without memory.
ROUNDS_TEST(window__must_fit_the_tile, 24) {
    static const call_id ids[4] = {CALL_TLOAD, CALL_TSTORE, CALL_TSTORE_ACC, CALL_TSTORE_ADD};
    test_call call = call_make(bench, ids[round / 6], PTOISA_A2A3, 6, 64);
    ptoisa_global *g = &call.window.global;
    test_run(bench);
    switch (round % 6) {
    case 0: g->shape[3]++; break;
    case 1: g->shape[4]--; break;
    case 2: g->shape[0] = 2; break;
    case 3: g->dtype = PTOISA_I8; break;
    case 4: g->shape[3] = 0; break;
    default: g->data = NULL; break;
    }
    call_run(bench, &call);
    refused(bench, &call, "window", round % 6, "");
}

// -- rules of their own ---------------------------------------------------------------------------

// Expects the call to be refused, or taken. `which` is for the message.
static void on_family(test_bench *bench, test_call *call, bool is_refused, uint32_t which) {
    for (uint32_t i = 0; i < bench->tile_count; i++) {
        bench->tiles[i].role = is_refused ? TEST_READ : TEST_CHECKED;
    }
    test_run(bench);
    call_run(bench, call);
    if (is_refused) {
        refused(bench, call, "its own rule", which, "");
    }
    test_end(bench);
}

ROUNDS_TEST(matmul__has_sizes_from_1_to_4095, 36) {
    static const uint32_t bad[6][3] = {{0, 5, 7},    {6, 0, 7},    {6, 5, 0},
                                       {4096, 1, 1}, {1, 4096, 1}, {1, 1, 4096}};
    static const call_id ids[3] = {CALL_TMATMUL, CALL_TMATMUL_ACC, CALL_TMATMUL_BIAS};
    bool is_good = round >= 18;
    const uint32_t *size = bad[round % 6];
    test_call call = call_make(bench, ids[round / 6 % 3], PTOISA_A2A3, 6, 64);
    uint32_t first = call.tile_count == 4 && ids[round / 6 % 3] == CALL_TMATMUL_ACC ? 2 : 1;
    // The core is dry: tiles of any size need no memory.
    bench->core.is_dry = true;
    uint32_t m = size[0], k = size[1], n = size[2];
    if (is_good) {
        m = m == 0 ? 1 : m == 4096 ? 4095 : m;
        k = k == 0 ? 1 : k == 4096 ? 4095 : k;
        n = n == 0 ? 1 : n == 4096 ? 4095 : n;
    }
    ptoisa_tile good[CALL_TILES_MAX];
    for (uint32_t t = 0; t < call.tile_count; t++) {
        good[t] = call.tiles[t]->tile;
    }
    test_run(bench);
    for (uint32_t t = 0; t < call.tile_count; t++) {
        ptoisa_tile *tile = &call.tiles[t]->tile;
        tile->rows = tile->memory == PTOISA_BIAS ? 1 : 4096;
        tile->cols = 4096;
        tile->valid_rows = t < first ? m : t == first ? m : t == first + 1 ? k : 1;
        tile->valid_cols = t == first ? k : n;
    }
    call_run(bench, &call);
    if (!is_good) {
        refused(bench, &call, "size", round % 6, "");
    } else {
        assert_true(ptoisa_cycles(&bench->core) == (uint64_t)m * k * n);
    }
    for (uint32_t t = 0; t < call.tile_count; t++) {
        call.tiles[t]->tile = good[t];
    }
    for (uint32_t t = 0; t < bench->tile_count; t++) {
        bench->tiles[t].role = TEST_READ;
    }
}

ROUNDS_TEST(move__parts_stay_inside, 8) {
    static const uint32_t at[4][2] = {{32, 0}, {0, 32}, {UINT32_MAX - 15, 0}, {0, UINT32_MAX - 31}};
    bool is_insert = round >= 4;
    test_call call =
        call_make(bench, is_insert ? CALL_TINSERT : CALL_TEXTRACT_L0, PTOISA_A2A3, 64, 64);
    test_tile *d = call.tiles[0], *s = call.tiles[1];
    for (uint32_t k = 0; k < 2; k++) {
        call.tiles[k]->role = TEST_READ;
    }
    test_run(bench);
    (is_insert ? ptoisa_tinsert : ptoisa_textract)(&bench->core, &d->tile, &s->tile,
                                                   at[round % 4][0], at[round % 4][1]);
    refused(bench, &call, "outside", round % 4, "");
}

ROUNDS_TEST(rule__integers_compare_for_equality_only_on_a2a3, 12) {
    ptoisa_family family = round % 2 ? PTOISA_A5 : PTOISA_A2A3;
    ptoisa_compare mode = (ptoisa_compare)(round / 2);
    test_call call = call_make(bench, CALL_TCMP, family, 6, 64);
    for (uint32_t k = 1; k < 3; k++) {
        call.tiles[k]->tile.dtype = PTOISA_I32;
    }
    bool is_refused = family == PTOISA_A2A3 && mode != PTOISA_EQ;
    call.tiles[0]->role = is_refused ? TEST_READ : TEST_CHECKED;
    test_run(bench);
    ptoisa_tcmp(&bench->core, &call.tiles[0]->tile, &call.tiles[1]->tile, &call.tiles[2]->tile,
                mode);
    if (is_refused) {
        refused(bench, &call, "mode", round, "");
    }
}

BENCH_TEST(rule__runs_to_merge) {
    static const uint32_t lengths[5] = {0, 32, 96, 128, UINT32_MAX};
    for (uint32_t i = 0; i < 5; i++) {
        // 256 elements: four runs of 64.
        test_call call = call_make(bench, CALL_TMRGSORT, PTOISA_A2A3, 1, 256);
        test_run(bench);
        ptoisa_tmrgsort(&bench->core, &call.tiles[0]->tile, &call.tiles[1]->tile, lengths[i]);
        refused(bench, &call, "length", i, "");
        test_end(bench);
    }
    for (uint32_t count = 0; count < 7; count++) {
        test_call call = call_make(bench, CALL_TMRGSORT_LISTS, PTOISA_A2A3, 1, 64);
        const ptoisa_tile *lists[6];
        for (uint32_t k = 0; k < 6; k++) {
            lists[k] = &call.tiles[2 + k % 2]->tile;
        }
        uint16_t executed[4];
        bool is_good = count == 2;  // of 3 or 4 the destination is too small
        call.tiles[0]->role = is_good ? TEST_WRITTEN : TEST_READ;
        test_run(bench);
        ptoisa_tmrgsort_lists(&bench->core, &call.tiles[0]->tile, &call.tiles[1]->tile, lists,
                              count, executed, false);
        if (!is_good) {
            refused(bench, &call, "count", count, "");
        }
        test_end(bench);
    }
}

// Counts of what lists gave are 16 bits: a list has up to 65535 pairs. The core is dry.
ROUNDS_TEST(rule__a_list_has_up_to_65535_pairs, 2) {
    test_call call = call_make(bench, CALL_TMRGSORT_LISTS, PTOISA_A2A3, 1, 64);
    bench->core.is_dry = true;
    test_run(bench);
    ptoisa_tile tiles[3];
    for (uint32_t t = 0; t < 3; t++) {
        tiles[t] = ptoisa_tile_vec(NULL, PTOISA_F32, 1, 4 * 65536);
        tiles[t].valid_cols = t == 0 ? 4 * 65536 : 2 * (65535 + round);
    }
    const ptoisa_tile *lists[2] = {&tiles[1], &tiles[2]};
    uint16_t executed[4];
    ptoisa_tmrgsort_lists(&bench->core, &tiles[0], &tiles[0], lists, 2, executed, false);
    if (round == 1) {
        refused(bench, &call, "length", round, "");
    }
}

// Indices beyond what they point into.
BENCH_TEST(rule__indices_stay_inside) {
    static const call_id ids[4] = {CALL_TGATHER, CALL_TSCATTER, CALL_MGATHER, CALL_MSCATTER};
    for (uint32_t i = 0; i < 8; i++) {
        test_call call = call_make(bench, ids[i / 2], PTOISA_A2A3, 6, 64);
        test_tile *index = call.tiles[call.has_window ? 1 : 2];
        bool is_line = call.has_window;
        test_put(index, 0, is_line ? 5 : 63, i % 2 ? 4294967295.0 : 100000);
        on_family(bench, &call, true, i);
    }
}

// -- flags and addresses --------------------------------------------------------------------------

static void fault_is(test_bench *bench, const char *text) {
    assert_int_equal(bench->fault_count, 1);
    assert_string_equal(bench->fault, text);
    bench->fault_count = 0;
}

BENCH_TEST(flag__is_one_bit) {
    test_begin(bench, PTOISA_A2A3, "flags");
    ptoisa_core *core = &bench->core;
    ptoisa_set_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, 3);
    ptoisa_set_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, 4);
    ptoisa_set_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE2, 3);
    assert_int_equal(bench->fault_count, 0);
    ptoisa_set_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, 3);
    fault_is(bench, "SET_FLAG: MTE2 to V, event 3 is set already");
    ptoisa_wait_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, 3);
    ptoisa_wait_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, 4);
    assert_int_equal(bench->fault_count, 0);
    ptoisa_wait_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, 3);
    fault_is(bench, "WAIT_FLAG: MTE2 to V, event 3 is not set");
    assert_false(ptoisa_core_finish(core));
    fault_is(bench, "SET_FLAG: V to MTE2: a flag was never waited for");
    ptoisa_wait_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE2, 3);
    assert_true(ptoisa_core_finish(core));
    ptoisa_set_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_V, 0);
    fault_is(bench, "SET_FLAG: pipes 1 and 1, event 0");
    ptoisa_set_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_M, 8);
    fault_is(bench, "SET_FLAG: pipes 1 and 2, event 8");
    ptoisa_set_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_ALL, 0);
    fault_is(bench, "SET_FLAG: pipes 1 and 7, event 0");
    ptoisa_wait_flag(core, PTOISA_PIPE_ALL, PTOISA_PIPE_V, 0);
    fault_is(bench, "WAIT_FLAG: pipes 7 and 1, event 0");
    ptoisa_set_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_M, 7);
    ptoisa_core_reset(core);
    assert_true(ptoisa_core_finish(core));
    test_end(bench);
}

ROUNDS_TEST(assign__keeps_tiles_inside_their_memory, 2 * PTOISA_MEMORY_COUNT) {
    static const uint64_t ends[2][PTOISA_MEMORY_COUNT] = {
        {184 << 10, 512 << 10, 64 << 10, 64 << 10, 128 << 10, 1 << 10, 2 << 10},
        {256 << 10, 512 << 10, 64 << 10, 64 << 10, 256 << 10, 4 << 10, 4 << 10}};
    static uint8_t memory[1 << 10];
    ptoisa_memory where = (ptoisa_memory)(round / 2);
    test_begin(bench, round % 2 ? PTOISA_A5 : PTOISA_A2A3, "TASSIGN");
    ptoisa_core *core = &bench->core;
    ptoisa_tile tile = ptoisa_tile_make(memory, PTOISA_F32, where, PTOISA_ROW_MAJOR, 1, 64);
    uint64_t last = ends[round % 2][where] - 256;
    ptoisa_tassign(core, &tile, last);
    assert_int_equal(bench->fault_count, 0);
    assert_null(tile.data);  // the core has no memory
    core->memory[where] = memory;
    ptoisa_tassign(core, &tile, 64);
    assert_ptr_equal(tile.data, memory + 64);
    ptoisa_tassign(core, &tile, 32);
    ptoisa_tassign(core, &tile, last + 32);
    assert_int_equal(bench->fault_count, 1);
    assert_non_null(strstr(bench->fault, "TASSIGN: a tile ends at"));
    bench->fault_count = 0;
    ptoisa_tassign(core, &tile, 16);
    assert_int_equal(bench->fault_count, 1);
    assert_non_null(strstr(bench->fault, "TASSIGN: offset 16 is not a multiple of 32"));
    assert_ptr_equal(tile.data, memory + 32);
    bench->fault_count = 0;
    // An offset so large that the tile's end wraps around.
    ptoisa_tassign(core, &tile, UINT64_MAX - 31);
    assert_int_equal(bench->fault_count, 1);
    assert_ptr_equal(tile.data, memory + 32);
    bench->fault_count = 0;
}

#else

// Without checks there is nothing to test.
int main(void) {
    return 0;
}

#endif
