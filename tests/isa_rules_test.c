// The rules that instructions have of their own, one by one: what is refused, in which words. Each
// case is a call that would be good but for one thing; the texts say which.

#include "isa_test.h"

#if PTOISA_CHECKED_DEFAULT

// Tiles with memory of their own, but for the sizes that none has: those are of a dry core.
enum { ROOM = 1 << 16, ROOMS = 8 };

typedef struct rule_bench {
    test_bench bench;
    ptoisa_core *core;
    uint32_t used;
} rule_bench;

static _Alignas(64) uint8_t rooms[ROOMS][ROOM];

static ptoisa_tile tile_in(rule_bench *b, ptoisa_memory memory, ptoisa_layout layout,
                           ptoisa_dtype dtype, uint32_t rows, uint32_t cols) {
    assert_true(b->core->is_dry || (size_t)rows * cols * 8 <= ROOM);
    return ptoisa_tile_make(rooms[b->used++ % ROOMS], dtype, memory, layout, rows, cols);
}

static ptoisa_tile vec(rule_bench *b, ptoisa_dtype dtype, uint32_t rows, uint32_t cols) {
    return tile_in(b, PTOISA_VEC, PTOISA_ROW_MAJOR, dtype, rows, cols);
}

static ptoisa_tile boxed(rule_bench *b, ptoisa_memory memory, ptoisa_dtype dtype, uint32_t rows,
                         uint32_t cols) {
    ptoisa_layout layout = memory == PTOISA_RIGHT                  ? PTOISA_ZN
                           : memory != PTOISA_LEFT                 ? PTOISA_NZ
                           : b->core->machine->family == PTOISA_A5 ? PTOISA_NZ
                                                                   : PTOISA_ZZ;
    return tile_in(b, memory, layout, dtype, rows, cols);
}

static ptoisa_global window(ptoisa_dtype dtype, int64_t rows, int64_t cols) {
    return ptoisa_global_make(rooms[ROOMS - 1], dtype, rows, cols, cols, 1);
}

static void begin(rule_bench *b, ptoisa_family family) {
    test_begin(&b->bench, family, "rules");
    b->core = &b->bench.core;
    b->used = 0;
}

// The last call was refused in these words, and took no time.
static void refused(rule_bench *b, const char *text) {
    if (b->bench.fault_count != 1 || strcmp(b->bench.fault, text) != 0) {
        fail_msg("%u faults, \"%s\", expected \"%s\"", b->bench.fault_count, b->bench.fault, text);
    }
    assert_true(b->core->sum == 0);
    b->bench.fault_count = 0;
}

static void taken(rule_bench *b) {
    if (b->bench.fault_count != 0) {
        fail_msg("refused: \"%s\"", b->bench.fault);
    }
    b->core->sum = 0;
}

// -- windows --------------------------------------------------------------------------------------

static void load__rules_of_windows_and_tiles(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A2A3);
    b->core->is_dry = true;
    ptoisa_tile d = vec(b, PTOISA_F32, 4, 8);
    ptoisa_global g = window(PTOISA_F32, 4, 8);
    ptoisa_tload(b->core, &d, &g);
    taken(b);
    g.dtype = 0;
    ptoisa_tload(b->core, &d, &g);
    refused(b, "TLOAD: g is no window");
    g = window(PTOISA_F16, 4, 8);
    ptoisa_tload(b->core, &d, &g);
    refused(b, "TLOAD: g is f16, d is f32");

    d = vec(b, PTOISA_F32, 4096, 8);
    g = window(PTOISA_F32, 4096, 8);
    ptoisa_tload(b->core, &d, &g);
    refused(b, "TLOAD: d has 4096 rows, more than 4095");
    d = tile_in(b, PTOISA_MAT, PTOISA_ROW_MAJOR, PTOISA_F32, 4096, 8);
    ptoisa_tload(b->core, &d, &g);
    refused(b, "TLOAD: g has 4096 rows, more than 4095");
    d.valid_rows = 4095;
    g = window(PTOISA_F32, 4095, 8);
    ptoisa_tload(b->core, &d, &g);
    taken(b);

    d = boxed(b, PTOISA_MAT, PTOISA_I64, 16, 16);
    g = window(PTOISA_I64, 16, 16);
    ptoisa_tload(b->core, &d, &g);
    refused(b, "TLOAD: d is i64 and boxed");
    d = boxed(b, PTOISA_MAT, PTOISA_F16, 32, 16);
    g = window(PTOISA_F16, 16, 16);
    g.shape[2] = 2;
    ptoisa_tload(b->core, &d, &g);
    refused(b, "TLOAD: g has shape 1 x 1 x 2 outside its matrix, not 1");
    d = boxed(b, PTOISA_LEFT, PTOISA_F16, 32, 16);
    g = window(PTOISA_F16, 32, 16);
    ptoisa_tload(b->core, &d, &g);
    refused(b, "TLOAD: d is in L0A, not in UB or L1");
}

static void store__rules_of_memories_and_types(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A2A3);
    b->core->is_dry = true;
    ptoisa_tile s = vec(b, PTOISA_F32, 4, 8);
    ptoisa_global g = window(PTOISA_U32, 4, 8);
    ptoisa_tstore_add(b->core, &g, &s);
    refused(b, "TSTORE: g is u32, which cannot be added to");
    g.dtype = PTOISA_I32;
    ptoisa_tstore(b->core, &g, &s);
    taken(b);
    ptoisa_tstore_add(b->core, &g, &s);
    refused(b, "TSTORE: s is f32, g is i32");

    s = vec(b, PTOISA_F32, 4096, 8);
    g = window(PTOISA_F32, 4096, 8);
    ptoisa_tstore(b->core, &g, &s);
    refused(b, "TSTORE: s has 4096 rows, more than 4095");
    static const uint32_t large[2][2] = {{8208, 16}, {16, 4096}};
    static const char *const texts[2] = {"TSTORE: s has 8208 x 16 elements, more than 8192 x 4095",
                                         "TSTORE: s has 16 x 4096 elements, more than 8192 x 4095"};
    for (uint32_t i = 0; i < 2; i++) {
        s = boxed(b, PTOISA_ACC, PTOISA_F32, large[i][0], large[i][1]);
        g = window(PTOISA_F32, large[i][0], large[i][1]);
        ptoisa_tstore(b->core, &g, &s);
        refused(b, texts[i]);
    }
    s = boxed(b, PTOISA_MAT, PTOISA_I64, 16, 16);
    g = window(PTOISA_I64, 16, 16);
    ptoisa_tstore(b->core, &g, &s);
    refused(b, "TSTORE: s is i64 and boxed");
    s = boxed(b, PTOISA_LEFT, PTOISA_F16, 16, 16);
    g = window(PTOISA_F16, 16, 16);
    ptoisa_tstore(b->core, &g, &s);
    refused(b, "TSTORE: s is in L0A, not in L0C, UB or L1");
    ptoisa_tstore_relu(b->core, &g, &s);
    refused(b, "TSTORE: s is in L0A, not in L0C");

    // L1 is stored by A2/A3 only.
    for (uint32_t i = 0; i < 2; i++) {
        begin(b, i ? PTOISA_A5 : PTOISA_A2A3);
        b->core->is_dry = true;
        s = boxed(b, PTOISA_MAT, PTOISA_F16, 16, 16);
        ptoisa_tstore(b->core, &g, &s);
        if (i) {
            refused(b, "TSTORE: s is in L1, which A5 does not store");
        }
    }
    taken(b);
}

// -- moves ----------------------------------------------------------------------------------------

static void move__into_l0_and_the_tables(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = boxed(b, PTOISA_LEFT, PTOISA_U32, 16, 16);
    ptoisa_tile s = boxed(b, PTOISA_MAT, PTOISA_U32, 16, 16);
    ptoisa_tmov(b->core, &d, &s);
    refused(b, "TMOV: d is u32, which is not multiplied");
    d = boxed(b, PTOISA_RIGHT, PTOISA_F16, 16, 16);
    s = tile_in(b, PTOISA_MAT, PTOISA_ROW_MAJOR, PTOISA_F16, 16, 16);
    ptoisa_tmov(b->core, &d, &s);
    refused(b, "TMOV: s is in L1 without boxes");
    d.layout = PTOISA_ZZ;
    ptoisa_tmov(b->core, &d, &s);
    refused(b, "TMOV: d is in L0B of 910B and not ZN");
    d = boxed(b, PTOISA_RIGHT, PTOISA_F16, 32, 16);
    s = boxed(b, PTOISA_MAT, PTOISA_F16, 16, 16);
    ptoisa_tmov(b->core, &d, &s);
    refused(b, "TMOV: d has 32 x 16 of 32 x 16 elements, s 16 x 16 of 16 x 16");

    static const ptoisa_memory tables[2] = {PTOISA_BIAS, PTOISA_SCALING};
    static const char *const texts[2][3] = {
        {"TMOV: d is in the bias table and i16",
         "TMOV: d has 2 rows: the bias table takes one row, row-major",
         "TMOV: d has 8 x 4 bytes, which 64 does not divide"},
        {"TMOV: d is in the fixpipe buffer and i16",
         "TMOV: d has 2 rows: the fixpipe buffer takes one row, row-major",
         "TMOV: d has 8 x 8 bytes, which 128 does not divide"}};
    for (uint32_t i = 0; i < 2; i++) {
        ptoisa_dtype dtype = i ? PTOISA_U64 : PTOISA_F32;
        d = tile_in(b, tables[i], PTOISA_ROW_MAJOR, PTOISA_I16, 1, 64);
        s = tile_in(b, PTOISA_MAT, PTOISA_ROW_MAJOR, PTOISA_I16, 1, 64);
        ptoisa_tmov(b->core, &d, &s);
        refused(b, texts[i][0]);
        d = tile_in(b, tables[i], PTOISA_ROW_MAJOR, dtype, 2, 64);
        s = tile_in(b, PTOISA_MAT, PTOISA_ROW_MAJOR, dtype, 2, 64);
        ptoisa_tmov(b->core, &d, &s);
        refused(b, texts[i][1]);
        d = tile_in(b, tables[i], PTOISA_ROW_MAJOR, dtype, 1, 8);
        s = tile_in(b, PTOISA_MAT, PTOISA_ROW_MAJOR, dtype, 1, 8);
        ptoisa_tmov(b->core, &d, &s);
        refused(b, texts[i][2]);
        d = tile_in(b, tables[i], PTOISA_ROW_MAJOR, dtype, 1, 64);
        s = tile_in(b, PTOISA_MAT, PTOISA_ROW_MAJOR, dtype, 1, 64);
        ptoisa_tmov(b->core, &d, &s);
        taken(b);
    }
}

static void move__out_of_l0c(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A2A3);
    ptoisa_tile s = boxed(b, PTOISA_ACC, PTOISA_F32, 16, 16);
    ptoisa_tile d = boxed(b, PTOISA_MAT, PTOISA_F32, 16, 16);
    ptoisa_tmov(b->core, &d, &s);
    refused(b, "TMOV: f32 goes from L0C to L1 as f16 or bf16 on 910B");
    d = boxed(b, PTOISA_MAT, PTOISA_I16, 16, 16);
    ptoisa_tmov(b->core, &d, &s);
    refused(b, "TMOV: f32 out of L0C does not become i16");
    d = boxed(b, PTOISA_MAT, PTOISA_I8, 32, 32);
    ptoisa_tmov_quant(b->core, &d, &s, 1, false);
    refused(b, "TMOV: 32 x 32 elements from (0, 0) do not lie in the valid part of s of 16 x 16");
    d.valid_rows = d.valid_cols = 16;
    ptoisa_tmov_quant(b->core, &d, &s, 1, false);
    refused(b, "TMOV: d has 32 x 32 elements, s 16 x 16");
    d = boxed(b, PTOISA_VEC, PTOISA_I8, 32, 32);
    ptoisa_tmov_quant(b->core, &d, &s, 1, false);
    refused(b, "TMOV: the way from L0C to UB is not on 910B, only on A5");
    d = boxed(b, PTOISA_LEFT, PTOISA_I8, 32, 32);
    ptoisa_tmov_quant(b->core, &d, &s, 1, false);
    refused(b, "TMOV: there is no way from L0C (s) to L0A (d)");
    s.layout = PTOISA_ZZ;
    d = boxed(b, PTOISA_MAT, PTOISA_F16, 16, 16);
    ptoisa_tmov(b->core, &d, &s);
    refused(b, "TMOV: s is in L0C and not NZ");
}

// -- shapes ---------------------------------------------------------------------------------------

static void shape__transposes(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_F32, 16, 8), s = vec(b, PTOISA_F32, 8, 16);
    ptoisa_tile t = vec(b, PTOISA_F32, 16, 16), other = vec(b, PTOISA_I32, 16, 16), bad;
    ptoisa_ttrans(b->core, &d, &s, &t);
    taken(b);
    ptoisa_ttrans(b->core, &d, &other, &t);
    refused(b, "TTRANS: s is i32, d is f32");
    ptoisa_ttrans(b->core, &d, &s, &other);
    refused(b, "TTRANS: t is i32, d is f32");
    ptoisa_ttrans(b->core, &d, &s, NULL);
    refused(b, "TTRANS: t is missing");
    bad = d;
    bad.rows = bad.valid_rows = 15;
    ptoisa_ttrans(b->core, &bad, &s, &t);
    refused(b, "TTRANS: d of 15 x 8 elements does not hold 16 x 8 of s transposed");
    bad = s;
    bad.data = d.data;
    ptoisa_ttrans(b->core, &d, &bad, &t);
    refused(b, "TTRANS: d and s are at one address");
    bad = t;
    bad.rows = bad.valid_rows = 15;  // 16 rows of whole 16 are needed, of 4 bytes
    ptoisa_ttrans(b->core, &d, &s, &bad);
    refused(b, "TTRANS: t has 960 bytes, less than 1024");
    bad = t;
    bad.memory = PTOISA_MAT;
    ptoisa_ttrans(b->core, &d, &s, &bad);
    refused(b, "TTRANS: t is in L1, not in UB");
    bad = tile_in(b, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_F32, 8, 16);
    ptoisa_ttrans(b->core, &d, &bad, &t);
    refused(b, "TTRANS: s is not row-major");
}

static void shape__fills(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_F32, 8, 16), s = vec(b, PTOISA_F32, 8, 16), bad;
    d.pad = PTOISA_PAD_ZERO;
    ptoisa_tfillpad(b->core, &d, &s);
    taken(b);
    bad = vec(b, PTOISA_I32, 8, 16);
    ptoisa_tfillpad(b->core, &d, &bad);
    refused(b, "TFILLPAD: s is i32, d is f32");
    bad = s;
    bad.layout = PTOISA_COL_MAJOR;
    ptoisa_tfillpad(b->core, &d, &bad);
    refused(b, "TFILLPAD: s is not row-major");
    bad = d;
    bad.layout = PTOISA_COL_MAJOR;
    ptoisa_tfillpad(b->core, &bad, &s);
    refused(b, "TFILLPAD: d is not row-major");
    bad = vec(b, PTOISA_F32, 9, 16);
    bad.pad = PTOISA_PAD_ZERO;
    ptoisa_tfillpad(b->core, &bad, &s);
    refused(b, "TFILLPAD: d has 9 x 16 elements, s 8 x 16");
    ptoisa_tfillpad_expand(b->core, &bad, &s);
    taken(b);
    ptoisa_tile larger = vec(b, PTOISA_F32, 8, 24);
    larger.pad = PTOISA_PAD_ZERO;
    ptoisa_tfillpad_expand(b->core, &bad, &larger);
    refused(b, "TFILLPAD: d has 9 x 16 elements, s 8 x 24");
    larger.data = s.data;
    ptoisa_tfillpad_expand(b->core, &larger, &s);
    refused(b, "TFILLPAD: d is larger than s and at its address");
    bad.data = s.data;
    ptoisa_tfillpad_expand(b->core, &bad, &s);
    refused(b, "TFILLPAD: d is larger than s and at its address");

    ptoisa_tile m = boxed(b, PTOISA_MAT, PTOISA_F16, 16, 16);
    ptoisa_tile n = boxed(b, PTOISA_MAT, PTOISA_F16, 16, 16);
    m.pad = PTOISA_PAD_MAX;
    ptoisa_tfillpad(b->core, &m, &n);
    refused(b, "TFILLPAD: d's pad value is not Zero, which L1 needs");
    m.pad = PTOISA_PAD_ZERO;
    ptoisa_tfillpad(b->core, &m, &n);
    taken(b);
    n.layout = PTOISA_ZZ;
    ptoisa_tfillpad(b->core, &m, &n);
    refused(b, "TFILLPAD: s is not NZ");
    m.layout = PTOISA_ROW_MAJOR;
    ptoisa_tfillpad(b->core, &m, &n);
    refused(b, "TFILLPAD: d is not NZ");
}

static void shape__joins_and_ramps(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A5);
    ptoisa_tile d = vec(b, PTOISA_F32, 4, 16), s0 = vec(b, PTOISA_F32, 4, 8);
    ptoisa_tile s1 = vec(b, PTOISA_F32, 4, 8), i32 = vec(b, PTOISA_I32, 4, 8), bad;
    ptoisa_tconcat(b->core, &d, &i32, &s1);
    refused(b, "TCONCAT: s0 is i32, d is f32");
    ptoisa_tconcat(b->core, &d, &s0, &i32);
    refused(b, "TCONCAT: s1 is i32, d is f32");
    bad = s1;
    bad.valid_cols = 7;
    ptoisa_tconcat(b->core, &d, &s0, &bad);
    refused(b, "TCONCAT: d has 16 valid columns, s0 8 and s1 7");

    ptoisa_tile d0 = vec(b, PTOISA_F32, 4, 8), d1 = vec(b, PTOISA_F32, 4, 8);
    ptoisa_tinterleave(b->core, &d0, &d1, &s0, &s1);
    taken(b);
    ptoisa_tinterleave(b->core, &d0, &i32, &s0, &s1);
    refused(b, "TINTERLEAVE: d1 is i32, d is f32");
    ptoisa_tinterleave(b->core, &d0, &d1, &i32, &s1);
    refused(b, "TINTERLEAVE: s0 is i32, d is f32");
    ptoisa_tdeinterleave(b->core, &d0, &d1, &s0, &i32);
    refused(b, "TDEINTERLEAVE: s1 is i32, d is f32");
    bad = d1;
    bad.valid_rows = 3;
    ptoisa_tdeinterleave(b->core, &d0, &bad, &s0, &s1);
    refused(b, "TDEINTERLEAVE: d0 has 4 x 8 valid elements, d1 3 x 8, and s0 has 8 valid columns, "
               "s1 8");
    ptoisa_tile *const all[4] = {&d0, &d1, &s0, &s1};
    for (uint32_t i = 0; i < 4; i++) {  // each of the five pairs that may not meet
        for (uint32_t k = i + 1; k < 4; k++) {
            void *was = all[k]->data;
            all[k]->data = all[i]->data;
            ptoisa_tinterleave(b->core, &d0, &d1, &s0, &s1);
            if (i == 2) {
                taken(b);  // sources may be one
            } else {
                refused(b, "TINTERLEAVE: two of d0, d1, s0 and s1 are at one address");
            }
            all[k]->data = was;
        }
    }
    ptoisa_tile ramp = vec(b, PTOISA_I16, 1, 16);
    ptoisa_tci(b->core, &ramp, 0.5, false);
    refused(b, "TCI: 0.5 is no i16");
    ptoisa_tci(b->core, &ramp, 32768, false);
    refused(b, "TCI: 32768 is no i16");
    ramp = vec(b, PTOISA_I32, 2, 16);
    ptoisa_tci(b->core, &ramp, 1, false);
    refused(b, "TCI: d has 2 valid rows, not one");
}

// -- gathers --------------------------------------------------------------------------------------

static void gather__patterns_and_sizes(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_F32, 4, 8), s = vec(b, PTOISA_F32, 4, 16), bad;
    ptoisa_tgather_mask(b->core, &d, &s, PTOISA_P0101);
    taken(b);
    ptoisa_tgather_mask(b->core, &d, &s, (ptoisa_pattern)(PTOISA_P1111 + 1));
    refused(b, "TGATHERMASK: there is no pattern 7");
    bad = d;
    bad.valid_cols = 7;
    ptoisa_tgather_mask(b->core, &bad, &s, PTOISA_P0101);
    refused(b, "TGATHERMASK: d has 7 valid columns of 8");
    ptoisa_tgather_mask(b->core, &d, &s, PTOISA_P1111);
    refused(b, "TGATHERMASK: 16 are taken of each of 4 rows of s, and d has 4 x 8");
    ptoisa_tile idx = vec(b, PTOISA_U32, 4, 8), scratch = vec(b, PTOISA_U8, 0, 32);
    memset(idx.data, 0, 4 * 8 * 4);
    ptoisa_tgather(b->core, &d, &s, &idx, &scratch);
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, "TGATHER: t "));
    b->bench.fault_count = 0;
    ((uint32_t *)idx.data)[3 * 8] = 256 - 31;  // s has 256 bytes, and 32 are read
    ptoisa_tgatherb(b->core, &d, &s, &idx);
    refused(b, "TGATHERB: idx at (3, 0) is 225, of 225");
    ((uint32_t *)idx.data)[3 * 8] = 256 - 32;
    ptoisa_tgatherb(b->core, &d, &s, &idx);
    taken(b);
}

static void gather__tables(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A5);
    ptoisa_tile d = vec(b, PTOISA_F32, 4, 8), idx = vec(b, PTOISA_I32, 1, 8), bad;
    memset(idx.data, 0, 32);
    idx.valid_cols = 4;
    ptoisa_global g = window(PTOISA_F32, 3, 8), table = g;
    ptoisa_mgather(b->core, &d, &g, &idx);
    taken(b);
    table.dtype = PTOISA_I32;
    ptoisa_mgather(b->core, &d, &table, &idx);
    refused(b, "MGATHER: d is f32, the table i32");
    table = window(PTOISA_F32, 3, 7);
    ptoisa_mgather(b->core, &d, &table, &idx);
    refused(b, "MGATHER: d has 8 valid columns, the table 7");
    table = g;
    table.data = NULL;
    ptoisa_mgather(b->core, &d, &table, &idx);
    refused(b, "MGATHER: the table has no memory");
    table = g;
    table.shape[3] = 0;
    ptoisa_mgather(b->core, &d, &table, &idx);
    refused(b, "MGATHER: the table has no memory");
    bad = idx;
    bad.valid_cols = 3;
    ptoisa_mgather(b->core, &d, &g, &bad);
    refused(b, "MGATHER: idx has 1 x 3 valid elements for 4 rows of 8");
    ptoisa_tile flags = vec(b, PTOISA_BOOL, 4, 32);
    table = window(PTOISA_BOOL, 3, 32);
    ptoisa_mscatter_by(b->core, &table, &flags, &idx, false, PTOISA_SCATTER_ADD);
    refused(b, "MSCATTER: bool cannot be scattered so");
    ptoisa_mscatter_by(b->core, &g, &d, &idx, false, (ptoisa_scatter)(PTOISA_SCATTER_MIN + 1));
    refused(b, "MSCATTER: f32 cannot be scattered so");
}

// -- vectors --------------------------------------------------------------------------------------

static void vector__columns_rows_and_parts(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_F32, 4, 8), s = vec(b, PTOISA_F32, 4, 8), bad;
    bad = tile_in(b, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_F32, 8, 4);
    ptoisa_trowexpand(b->core, &d, &bad);
    refused(b, "TROWEXPAND: src0 is neither row-major nor one column");
    bad = boxed(b, PTOISA_VEC, PTOISA_F32, 16, 8);
    ptoisa_trowexpand(b->core, &d, &bad);
    refused(b, "TROWEXPAND: src0 is neither row-major nor one column");
    bad = tile_in(b, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_F32, 8, 1);
    bad.valid_rows = 5;
    ptoisa_trowexpandadd(b->core, &d, &s, &bad);
    refused(b, "TROWEXPANDADD: src1 has 5 valid rows, dst 4");
    bad = s;
    bad.valid_cols = 2;
    ptoisa_trowexpandadd(b->core, &d, &s, &bad);
    refused(b, "TROWEXPANDADD: src1 has 2 valid columns: it must be a column, or row-major of 1 or "
               "8");
    bad = s;
    bad.valid_rows = 3;
    ptoisa_tpartadd(b->core, &d, &bad, &bad);
    refused(b, "TPARTADD: 3 x 8 and 3 x 8 valid elements, and dst has 4 x 8: one must be valid in "
               "all of dst, the other in a part");
    ptoisa_tile more = vec(b, PTOISA_F32, 4, 16);
    ptoisa_tpartadd(b->core, &d, &s, &more);
    refused(b, "TPARTADD: 4 x 8 and 4 x 16 valid elements, and dst has 4 x 8: one must be valid in "
               "all of dst, the other in a part");
}

static void vector__scratch(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_F32, 4, 8), s = vec(b, PTOISA_F32, 4, 8);
    ptoisa_tile column = tile_in(b, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_F32, 8, 1);
    column.valid_rows = 4;
    ptoisa_tile t = vec(b, PTOISA_F32, 4, 8), mat = t, none = t;
    mat.memory = PTOISA_MAT;
    none.memory = PTOISA_MEMORY_COUNT;
    ptoisa_tprelu(b->core, &d, &s, &s, NULL);
    refused(b, "TPRELU: there is no scratch tile");
    ptoisa_tprelu(b->core, &d, &s, &s, &mat);
    refused(b, "TPRELU: tmp is not in UB");
    ptoisa_trowsum(b->core, &column, &s, &none);
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, "TROWSUM: tmp is no tile"));
    b->bench.fault_count = 0;
    ptoisa_tile i32s = vec(b, PTOISA_I32, 4, 8);
    ptoisa_txors(b->core, &i32s, &i32s, 1, NULL);
    refused(b, "TXORS: there is no scratch tile");
    ptoisa_tile row = vec(b, PTOISA_F32, 1, 8);
    ptoisa_tcolsum(b->core, &row, &s, NULL, true);
    refused(b, "TCOLSUM: there is no scratch tile");
    ptoisa_tcolsum(b->core, &row, &s, &mat, false);
    refused(b, "TCOLSUM: tmp is not in UB");

    // Sums of rows need scratch like what they sum.
    for (uint32_t i = 0; i < 3; i++) {
        ptoisa_tile other = i == 0   ? vec(b, PTOISA_I32, 4, 8)
                            : i == 1 ? vec(b, PTOISA_F32, 5, 8)
                                     : vec(b, PTOISA_F32, 4, 16);
        ptoisa_trowsum(b->core, &column, &s, &other);
        refused(b, "TROWSUM: tmp is not of the type and shape of src0");
    }
    ptoisa_tile two = vec(b, PTOISA_U32, 2, 8);
    ptoisa_tcolargmax(b->core, &two, &s, &t);
    refused(b, "TCOLARGMAX: dst has 2 valid rows, not 1");
    ptoisa_tile at = tile_in(b, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_U32, 8, 1);
    at.valid_rows = 4;
    column.valid_rows = 3;
    ptoisa_trowargmax_values(b->core, &column, &at, &s, &t);
    refused(b, "TROWARGMAX: dst has 4 x 1 valid elements, the values 3 x 1");
    ptoisa_tile selected = vec(b, PTOISA_F32, 4, 8), mask = vec(b, PTOISA_U8, 4, 32);
    ptoisa_tsel(b->core, &selected, &mask, &s, &s, &none);
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, "TSEL: t is no tile"));
    b->bench.fault_count = 0;
    ptoisa_tsels(b->core, &selected, &mask, &s, &none, 1);
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, "TSELS: t is no tile"));
    b->bench.fault_count = 0;
    ptoisa_tcmp(b->core, &mask, &s, &s, (ptoisa_compare)(PTOISA_GE + 1));
    refused(b, "TCMP: there is no comparison 6");
}

static void vector__conversions(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_BF16, 4, 16), s = vec(b, PTOISA_I8, 4, 32);
    s.valid_cols = 16;
    ptoisa_tcvt(b->core, &d, &s, PTOISA_CAST_RINT, false);
    refused(b, "TCVT: s is i8, which does not become bf16 (d)");
    ptoisa_tile f32 = vec(b, PTOISA_F32, 4, 32), i8 = vec(b, PTOISA_I8, 4, 32);
    ptoisa_tile scale = vec(b, PTOISA_F32, 4, 8), t = vec(b, PTOISA_F32, 7, 32);
    ptoisa_tquant_sym(b->core, &i8, &f32, &scale);
    refused(b, "TQUANT: scale is no column: it has 8 valid columns of 8");
    scale.valid_cols = 1;
    ptoisa_tquant_sym_scratch(b->core, &i8, &f32, &scale, &t);  // 8 rows of 32 floats
    refused(b, "TQUANT: t has 896 bytes, and 1024 are needed");
    t.memory = PTOISA_MEMORY_COUNT;
    ptoisa_tquant_sym_scratch(b->core, &i8, &f32, &scale, &t);
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, "TQUANT: t is no tile"));
    b->bench.fault_count = 0;
    ptoisa_tile columns = tile_in(b, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_F32, 8, 2);
    columns.valid_rows = 4;
    columns.valid_cols = 1;
    ptoisa_tquant_asym(b->core, &i8, &f32, &scale, &columns);
    refused(b, "TQUANT: d is i8, which it does not take");
    i8.dtype = PTOISA_U8;
    ptoisa_tquant_asym(b->core, &i8, &f32, &scale, &columns);
    refused(b, "TQUANT: offset is no column: it has 1 valid columns of 2");
}

// -- products, lists ------------------------------------------------------------------------------

static void matmul__what_is_added_has_its_size(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A2A3);
    ptoisa_tile c = boxed(b, PTOISA_ACC, PTOISA_F32, 16, 16);
    ptoisa_tile add = boxed(b, PTOISA_ACC, PTOISA_F32, 32, 16);
    ptoisa_tile left = boxed(b, PTOISA_LEFT, PTOISA_F16, 16, 16);
    ptoisa_tile right = boxed(b, PTOISA_RIGHT, PTOISA_F16, 16, 16);
    ptoisa_tmatmul_acc(b->core, &c, &add, &left, &right);
    refused(b, "TMATMUL_ACC: c_in has 32 x 16 valid elements, not 16 x 16");
    add = boxed(b, PTOISA_ACC, PTOISA_F32, 16, 32);
    ptoisa_tmatmul_acc(b->core, &c, &add, &left, &right);
    refused(b, "TMATMUL_ACC: c_in has 16 x 32 valid elements, not 16 x 16");
    ptoisa_tile bias = tile_in(b, PTOISA_BIAS, PTOISA_ROW_MAJOR, PTOISA_F32, 1, 32);
    ptoisa_tmatmul_bias(b->core, &c, &left, &right, &bias);
    refused(b, "TMATMUL_BIAS: bias has 1 x 32 valid elements, not 1 x 16");
}

static void sort__lists_are_rows_of_pairs(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_F32, 1, 32), s0 = vec(b, PTOISA_F32, 1, 8);
    ptoisa_tile s1 = vec(b, PTOISA_F32, 1, 8), two = vec(b, PTOISA_F32, 2, 8), t = d;
    t.memory = PTOISA_MAT;
    uint16_t executed[4];
    const ptoisa_tile *lists[2] = {&s0, &two};
    ptoisa_tmrgsort_lists(b->core, &d, NULL, lists, 2, executed, false);
    refused(b, "TMRGSORT: s1 has 2 valid rows, not 1");
    lists[1] = &s1;
    ptoisa_tmrgsort_lists(b->core, &d, &t, lists, 2, executed, false);
    refused(b, "TMRGSORT: t is in L1, not in UB");
    s0.valid_cols = 7;
    ptoisa_tmrgsort_lists(b->core, &d, NULL, lists, 2, executed, false);
    refused(b, "TMRGSORT: s0: 7 valid columns are not 0 to 65535 pairs of 2");
    // More than 255 groups of runs.
    b->core->is_dry = true;
    ptoisa_tile from = vec(b, PTOISA_F32, 1, 256 * 256), to = vec(b, PTOISA_F32, 1, 256 * 256);
    ptoisa_tmrgsort(b->core, &to, &from, 64);
    refused(b, "TMRGSORT: 65536 valid columns are not 1 to 255 groups of 256");
    from.valid_cols = to.valid_cols = 255 * 256;
    ptoisa_tmrgsort(b->core, &to, &from, 64);
    taken(b);
}

// -- FIFOs ----------------------------------------------------------------------------------------

static void fifo__rules_of_slots_and_parts(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A2A3);
    ptoisa_fifo fifo;
    assert_false(ptoisa_fifo_init(b->core, &fifo, PTOISA_C2V, 2, 0, 2, rooms[6], 0));
    refused(b, "TPIPE: slots of 0 bytes, no multiple of 32");
    assert_false(ptoisa_fifo_init(b->core, &fifo, PTOISA_C2V, 2, 48, 2, rooms[6], 0));
    refused(b, "TPIPE: slots of 48 bytes, no multiple of 32");
    assert_true(ptoisa_fifo_init(b->core, &fifo, PTOISA_C2V, 2, 4096, 2, rooms[6], 0));
    ptoisa_tile half = vec(b, PTOISA_F32, 16, 16);
    ptoisa_fifo_pop(b->core, &fifo, 2, &half, PTOISA_UP_DOWN);
    refused(b, "TPOP: FIFO 2 (cube to vector) is not read by core 2");
    ptoisa_tile acc = boxed(b, PTOISA_ACC, PTOISA_F32, 32, 16);
    ptoisa_fifo_push(b->core, &fifo, 0, &acc, PTOISA_LEFT_RIGHT_ODD);
    refused(b, "TPUSH: FIFO 2: 16 columns are not odd (LEFT_RIGHT_ODD)");
    ptoisa_fifo_push(b->core, &fifo, 0, &acc, PTOISA_UP_DOWN_ODD);
    refused(b, "TPUSH: FIFO 2: 32 rows are not odd (UP_DOWN_ODD)");
    ptoisa_fifo_push(b->core, &fifo, 0, &acc, PTOISA_NO_SPLIT);
    taken(b);
    ptoisa_fifo_pop(b->core, &fifo, 0, &half, PTOISA_UP_DOWN);
    refused(b, "TPOP: FIFO 2: pushed NO_SPLIT, popped UP_DOWN");
    ptoisa_fifo_commit(b->core, &fifo, 2);
    refused(b, "TPUSH: FIFO 2: no slot was allocated (TALLOC)");
    ptoisa_fifo_release(b->core, &fifo, 2);
    refused(b, "TFREE: FIFO 2: no slot was popped");
    assert_false(ptoisa_fifo_finish(b->core, &fifo));
    refused(b, "FIFO 2 (cube to vector): 1 and 1 tiles were pushed, 1 and 0 popped");

    assert_true(ptoisa_fifo_init(b->core, &fifo, PTOISA_V2C, 4, 4096, 2, rooms[6], 0));
    ptoisa_tile mat = tile_in(b, PTOISA_MAT, PTOISA_ROW_MAJOR, PTOISA_F32, 16, 16);
    ptoisa_fifo_pop(b->core, &fifo, 0, &mat, PTOISA_UP_DOWN);
    refused(b, "TPOP: FIFO 4: a tile in L1 that is not NZ");
    mat = boxed(b, PTOISA_MAT, PTOISA_F32, 16, 16);
    ptoisa_fifo_pop(b->core, &fifo, 1, &mat, PTOISA_UP_DOWN);
    refused(b, "TPOP: FIFO 4 (vector to cube) is not read by core 1");
}

// -- printing -------------------------------------------------------------------------------------

static void print__refuses_what_is_no_tile_and_says_nothing_when_dry(void **state) {
    rule_bench *b = (rule_bench *)*state;
    begin(b, PTOISA_A2A3);
    ptoisa_tile s = vec(b, PTOISA_F32, 2, 8), none = s;
    s.valid_cols = 2;
    none.memory = PTOISA_MEMORY_COUNT;
    const float values[2] = {1, -2.5f};
    memcpy(s.data, values, sizeof values);
    memcpy((float *)s.data + 8, values, sizeof values);
    FILE *to = tmpfile();
    assert_non_null(to);
    ptoisa_tprint(b->core, to, &none);
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, "TPRINT: s is no tile"));
    b->core->is_dry = true;
    ptoisa_tprint(b->core, to, &s);
    assert_int_equal(ftell(to), 0);
    b->core->is_dry = false;
    ptoisa_tprint(b->core, to, &s);
    rewind(to);
    char text[128];
    size_t length = fread(text, 1, sizeof text - 1, to);
    fclose(to);
    text[length] = 0;
    assert_string_equal(text, "f32 2 x 2 of 2 x 8 in UB\n1 -2.5\n1 -2.5\n");
}

int main(void) {
    static rule_bench bench;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(load__rules_of_windows_and_tiles, &bench),
        cmocka_unit_test_prestate(store__rules_of_memories_and_types, &bench),
        cmocka_unit_test_prestate(move__into_l0_and_the_tables, &bench),
        cmocka_unit_test_prestate(move__out_of_l0c, &bench),
        cmocka_unit_test_prestate(shape__transposes, &bench),
        cmocka_unit_test_prestate(shape__fills, &bench),
        cmocka_unit_test_prestate(shape__joins_and_ramps, &bench),
        cmocka_unit_test_prestate(gather__patterns_and_sizes, &bench),
        cmocka_unit_test_prestate(gather__tables, &bench),
        cmocka_unit_test_prestate(vector__columns_rows_and_parts, &bench),
        cmocka_unit_test_prestate(vector__scratch, &bench),
        cmocka_unit_test_prestate(vector__conversions, &bench),
        cmocka_unit_test_prestate(matmul__what_is_added_has_its_size, &bench),
        cmocka_unit_test_prestate(sort__lists_are_rows_of_pairs, &bench),
        cmocka_unit_test_prestate(fifo__rules_of_slots_and_parts, &bench),
        cmocka_unit_test_prestate(print__refuses_what_is_no_tile_and_says_nothing_when_dry, &bench),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

// Without checks there is nothing to test.
int main(void) {
    return 0;
}

#endif
