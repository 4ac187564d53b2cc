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
static bool spoil_tile(ptoisa_tile *t, spoil how, uint32_t need, bool is_destination) {
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
    test_call call = call_make(bench, id, family);
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
    test_call call = call_make(bench, (call_id)(round / 2), (ptoisa_family)(round % 2));
    for (uint32_t k = 0; k < bench->tile_count; k++) {
        bench->tiles[k].role = TEST_CHECKED;
    }
    test_run(bench);
    call_run(bench, &call);
}

// Windows: of other sizes than the tile, of another element size, without memory.
ROUNDS_TEST(window__must_fit_the_tile, 24) {
    static const call_id ids[4] = {CALL_TLOAD, CALL_TSTORE, CALL_TSTORE_ACC, CALL_TSTORE_ADD};
    test_call call = call_make(bench, ids[round / 6], PTOISA_A2A3);
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

// -- flags and addresses --------------------------------------------------------------------------

static void assign_is_refused(test_bench *bench, uint64_t end, uint64_t of) {
    char text[80];
    snprintf(text, sizeof text, "TASSIGN: a tile ends at %llu of %llu bytes",
             (unsigned long long)end, (unsigned long long)of);
    assert_int_equal(bench->fault_count, 1);
    assert_string_equal(bench->fault, text);
    bench->fault_count = 0;
}

// As the simulator has it, UB has 512 KiB.
ROUNDS_TEST(assign__keeps_tiles_inside_their_memory, 2 * PTOISA_MEMORY_COUNT) {
    static const uint64_t ends[2][PTOISA_MEMORY_COUNT] = {
        {184 << 10, 512 << 10, 64 << 10, 64 << 10, 128 << 10, 1 << 10, 2 << 10},
        {256 << 10, 512 << 10, 64 << 10, 64 << 10, 256 << 10, 4 << 10, 4 << 10}};
    static uint8_t memory[1 << 10];
    ptoisa_memory where = (ptoisa_memory)(round / 2);
    test_begin(bench, round % 2 ? PTOISA_A5 : PTOISA_A2A3, "TASSIGN");
    ptoisa_core *core = &bench->core;
    ptoisa_tile tile = ptoisa_tile_make(memory, PTOISA_F32, where, PTOISA_ROW_MAJOR, 1, 64);
    const uint64_t end = ends[round % 2][where], last = end - 256;
    ptoisa_tassign(core, &tile, last);
    assert_int_equal(bench->fault_count, 0);
    assert_null(tile.data);  // the core has no memory
    core->memory[where] = memory;
    ptoisa_tassign(core, &tile, 64);
    assert_ptr_equal(tile.data, memory + 64);
    ptoisa_tassign(core, &tile, 32);
    ptoisa_tassign(core, &tile, last + 32);
    assign_is_refused(bench, end + 32, end);
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
    core->is_as_simulator = true;
    const uint64_t most = where == PTOISA_VEC ? 512 << 10 : end;
    ptoisa_tassign(core, &tile, most);
    assign_is_refused(bench, most + 256, most);
    tile.rows = 1 << 16;
    ptoisa_tassign(core, &tile, 0);
    assign_is_refused(bench, 16 << 20, most);
}

#else

// Without checks there is nothing to test.
int main(void) {
    return 0;
}

#endif
