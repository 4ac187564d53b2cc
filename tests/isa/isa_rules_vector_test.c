// The rules that instructions have of their own (isa_rules_test.c), of those on vectors in UB: shapes,
// gathers, arithmetic with columns, rows and parts, scratch, conversions.

#include "isa_rules.h"

#if PTOISA_CHECKED_DEFAULT

// -- shapes ---------------------------------------------------------------------------------------

RULE_TEST(shape__transposes) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_F32, 16, 8), s = vec(b, PTOISA_F32, 8, 16);
    ptoisa_tile t = vec(b, PTOISA_F32, 16, 16), other = vec(b, PTOISA_I32, 16, 16), bad;
    TAKEN(ptoisa_ttrans(b->core, &d, &s, &t));
    REFUSED("TTRANS: s is i32, d is f32", ptoisa_ttrans(b->core, &d, &other, &t));
    REFUSED("TTRANS: t is i32, d is f32", ptoisa_ttrans(b->core, &d, &s, &other));
    REFUSED("TTRANS: t is missing", ptoisa_ttrans(b->core, &d, &s, NULL));
    REFUSED("TTRANS: d of 15 x 8 elements does not hold 16 x 8 of s transposed",
            ptoisa_ttrans(b->core, (bad = d, bad.rows = bad.valid_rows = 15, &bad), &s, &t));
    REFUSED("TTRANS: d and s are at one address",
            ptoisa_ttrans(b->core, &d, (bad = s, bad.data = d.data, &bad), &t));
    // 16 rows of whole 16 are needed, of 4 bytes
    REFUSED("TTRANS: t has 960 bytes, less than 1024",
            ptoisa_ttrans(b->core, &d, &s, (bad = t, bad.rows = bad.valid_rows = 15, &bad)));
    REFUSED("TTRANS: t is in L1, not in UB",
            ptoisa_ttrans(b->core, &d, &s, (bad = t, bad.memory = PTOISA_MAT, &bad)));
    bad = tile_in(b, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_F32, 8, 16);
    REFUSED("TTRANS: s is not row-major", ptoisa_ttrans(b->core, &d, &bad, &t));
}

RULE_TEST(shape__fills) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_F32, 8, 16), s = vec(b, PTOISA_F32, 8, 16), bad;
    REFUSED("TFILLPAD: d's pad value is Null", ptoisa_tfillpad(b->core, &d, &s));
    d.pad = PTOISA_PAD_ZERO;
    TAKEN(ptoisa_tfillpad(b->core, &d, &s));
    ptoisa_tfillpad_inplace(b->core, &d, &s);
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, "in place"));
    b->bench.fault_count = 0;
    bad = vec(b, PTOISA_U8, 8, 32);
    REFUSED("TEXPANDS: 256 is no u8", ptoisa_texpands(b->core, &bad, 256));
    REFUSED("TFILLPAD: s is i32, d is f32",
            ptoisa_tfillpad(b->core, &d, (bad = vec(b, PTOISA_I32, 8, 16), &bad)));
    REFUSED("TFILLPAD: s is not row-major",
            ptoisa_tfillpad(b->core, &d, (bad = s, bad.layout = PTOISA_COL_MAJOR, &bad)));
    REFUSED("TFILLPAD: d is not row-major",
            ptoisa_tfillpad(b->core, (bad = d, bad.layout = PTOISA_COL_MAJOR, &bad), &s));
    bad = vec(b, PTOISA_F32, 9, 16);
    bad.pad = PTOISA_PAD_ZERO;
    REFUSED("TFILLPAD: d has 9 x 16 elements, s 8 x 16", ptoisa_tfillpad(b->core, &bad, &s));
    TAKEN(ptoisa_tfillpad_expand(b->core, &bad, &s));
    ptoisa_tile larger = vec(b, PTOISA_F32, 8, 24);
    larger.pad = PTOISA_PAD_ZERO;
    REFUSED("TFILLPAD: d has 9 x 16 elements, s 8 x 24",
            ptoisa_tfillpad_expand(b->core, &bad, &larger));
    larger.data = s.data;
    REFUSED("TFILLPAD: d is larger than s and at its address",
            ptoisa_tfillpad_expand(b->core, &larger, &s));
    bad.data = s.data;
    REFUSED("TFILLPAD: d is larger than s and at its address",
            ptoisa_tfillpad_expand(b->core, &bad, &s));

    ptoisa_tile m = boxed(b, PTOISA_MAT, PTOISA_F16, 16, 16);
    ptoisa_tile n = boxed(b, PTOISA_MAT, PTOISA_F16, 16, 16);
    m.pad = PTOISA_PAD_MAX;
    REFUSED("TFILLPAD: d's pad value is not Zero, which L1 needs",
            ptoisa_tfillpad(b->core, &m, &n));
    m.pad = PTOISA_PAD_ZERO;
    TAKEN(ptoisa_tfillpad(b->core, &m, &n));
    n.layout = PTOISA_ZZ;
    REFUSED("TFILLPAD: s is not NZ", ptoisa_tfillpad(b->core, &m, &n));
    m.layout = PTOISA_ROW_MAJOR;
    REFUSED("TFILLPAD: d is not NZ", ptoisa_tfillpad(b->core, &m, &n));
}

RULE_TEST(shape__joins_and_ramps) {
    begin(b, PTOISA_A5);
    ptoisa_tile d = vec(b, PTOISA_F32, 4, 16), s0 = vec(b, PTOISA_F32, 4, 8);
    ptoisa_tile s1 = vec(b, PTOISA_F32, 4, 8), i32 = vec(b, PTOISA_I32, 4, 8), bad;
    REFUSED("TCONCAT: s0 is i32, d is f32", ptoisa_tconcat(b->core, &d, &i32, &s1));
    REFUSED("TCONCAT: s1 is i32, d is f32", ptoisa_tconcat(b->core, &d, &s0, &i32));
    REFUSED("TCONCAT: d has 16 valid columns, s0 8 and s1 7",
            ptoisa_tconcat(b->core, &d, &s0, (bad = s1, bad.valid_cols = 7, &bad)));

    ptoisa_tile d0 = vec(b, PTOISA_F32, 4, 8), d1 = vec(b, PTOISA_F32, 4, 8);
    TAKEN(ptoisa_tinterleave(b->core, &d0, &d1, &s0, &s1));
    REFUSED("TINTERLEAVE: d1 is i32, d is f32", ptoisa_tinterleave(b->core, &d0, &i32, &s0, &s1));
    REFUSED("TINTERLEAVE: s0 is i32, d is f32", ptoisa_tinterleave(b->core, &d0, &d1, &i32, &s1));
    REFUSED("TDEINTERLEAVE: s1 is i32, d is f32",
            ptoisa_tdeinterleave(b->core, &d0, &d1, &s0, &i32));
    REFUSED("TDEINTERLEAVE: d0 has 4 x 8 valid elements, d1 3 x 8, and s0 has 8 valid columns, "
            "s1 8",
            ptoisa_tdeinterleave(b->core, &d0, (bad = d1, bad.valid_rows = 3, &bad), &s0, &s1));
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
    REFUSED("TCI: 0.5 is no i16", ptoisa_tci(b->core, &ramp, 0.5, false));
    REFUSED("TCI: 32768 is no i16", ptoisa_tci(b->core, &ramp, 32768, false));
    ramp = vec(b, PTOISA_I32, 2, 16);
    REFUSED("TCI: d has 2 valid rows, not one", ptoisa_tci(b->core, &ramp, 1, false));
}

// -- gathers --------------------------------------------------------------------------------------

RULE_TEST(gather__wrong_patterns_and_sizes_are_refused) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_F32, 4, 8), s = vec(b, PTOISA_F32, 4, 16), bad;
    TAKEN(ptoisa_tgather_mask(b->core, &d, &s, PTOISA_P0101));
    REFUSED("TGATHERMASK: there is no pattern 7",
            ptoisa_tgather_mask(b->core, &d, &s, (ptoisa_pattern)(PTOISA_P1111 + 1)));
    REFUSED("TGATHERMASK: d has 7 valid columns of 8",
            ptoisa_tgather_mask(b->core, (bad = d, bad.valid_cols = 7, &bad), &s, PTOISA_P0101));
    REFUSED("TGATHERMASK: 16 are taken of each of 4 rows of s, and d has 4 x 8",
            ptoisa_tgather_mask(b->core, &d, &s, PTOISA_P1111));
    ptoisa_tile idx = vec(b, PTOISA_U32, 4, 8), scratch = vec(b, PTOISA_U8, 0, 32);
    memset(idx.data, 0, 4 * 8 * 4);
    ptoisa_tgather(b->core, &d, &s, &idx, &scratch);
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, "TGATHER: t "));
    b->bench.fault_count = 0;
    ((uint32_t *)idx.data)[3 * 8] = 256 - 31;  // s has 256 bytes, and 32 are read
    REFUSED("TGATHERB: idx at (3, 0) is 225, of 225", ptoisa_tgatherb(b->core, &d, &s, &idx));
    ((uint32_t *)idx.data)[3 * 8] = 256 - 32;
    TAKEN(ptoisa_tgatherb(b->core, &d, &s, &idx));
}

// A core that does not check: blocks behind the end are zeros, as the simulator has them.
RULE_TEST(gather__unchecked_blocks_behind_the_end_are_zeros) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_U8, 2, 32), s = vec(b, PTOISA_U8, 2, 32);
    ptoisa_tile idx = vec(b, PTOISA_U32, 2, 8);
    memset(s.data, 7, 64);
    memset(d.data, 9, 64);
    ((uint32_t *)idx.data)[0] = 32;
    ((uint32_t *)idx.data)[8] = 33;  // 64 bytes are there
    b->core->is_checked = false;
    TAKEN(ptoisa_tgatherb(b->core, &d, &s, &idx));
    for (uint32_t i = 0; i < 64; i++) {
        assert_int_equal(((uint8_t *)d.data)[i], i < 32 ? 7 : 0);
    }
}

RULE_TEST(gather__tables_that_break_a_rule_are_refused) {
    begin(b, PTOISA_A5);
    ptoisa_tile d = vec(b, PTOISA_F32, 4, 8), idx = vec(b, PTOISA_I32, 1, 8), bad;
    memset(idx.data, 0, 32);
    idx.valid_cols = 4;
    ptoisa_global g = window(PTOISA_F32, 3, 8), table = g;
    TAKEN(ptoisa_mgather(b->core, &d, &g, &idx));
    table.dtype = PTOISA_I32;
    REFUSED("MGATHER: d is f32, the table i32", ptoisa_mgather(b->core, &d, &table, &idx));
    table = window(PTOISA_F32, 3, 7);
    REFUSED("MGATHER: d has 8 valid columns, the table 7",
            ptoisa_mgather(b->core, &d, &table, &idx));
    table = g;
    table.data = NULL;
    REFUSED("MGATHER: the table has no memory", ptoisa_mgather(b->core, &d, &table, &idx));
    table = g;
    table.shape[3] = 0;
    REFUSED("MGATHER: the table has no memory", ptoisa_mgather(b->core, &d, &table, &idx));
    REFUSED("MGATHER: idx has 1 x 3 valid elements for 4 rows of 8",
            ptoisa_mgather(b->core, &d, &g, (bad = idx, bad.valid_cols = 3, &bad)));
    ptoisa_tile flags = vec(b, PTOISA_BOOL, 4, 32);
    table = window(PTOISA_BOOL, 3, 32);
    REFUSED("MSCATTER: bool cannot be scattered so",
            ptoisa_mscatter_by(b->core, &table, &flags, &idx, false, PTOISA_SCATTER_ADD));
    REFUSED(
        "MSCATTER: f32 cannot be scattered so",
        ptoisa_mscatter_by(b->core, &g, &d, &idx, false, (ptoisa_scatter)(PTOISA_SCATTER_MIN + 1)));
}

// -- vectors --------------------------------------------------------------------------------------

RULE_TEST(vector__columns_rows_and_parts_that_break_a_rule_are_refused) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_F32, 4, 8), s = vec(b, PTOISA_F32, 4, 8), bad;
    REFUSED(
        "TROWEXPAND: src0 is neither row-major nor one column",
        ptoisa_trowexpand(
            b->core, &d, (bad = tile_in(b, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_F32, 8, 4), &bad)));
    REFUSED("TROWEXPAND: src0 is neither row-major nor one column",
            ptoisa_trowexpand(b->core, &d, (bad = boxed(b, PTOISA_VEC, PTOISA_F32, 16, 8), &bad)));
    REFUSED("TROWEXPANDADD: src1 has 5 valid rows, dst 4",
            ptoisa_trowexpandadd(b->core, &d, &s,
                                 (bad = tile_in(b, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_F32, 8, 1),
                                  bad.valid_rows = 5, &bad)));
    REFUSED("TROWEXPANDADD: src1 has 2 valid columns: it must be a column, or row-major of 1 or "
            "8",
            ptoisa_trowexpandadd(b->core, &d, &s, (bad = s, bad.valid_cols = 2, &bad)));
    bad = s;
    bad.valid_rows = 3;
    REFUSED("TPARTADD: 3 x 8 and 3 x 8 valid elements, and dst has 4 x 8: one must be valid in "
            "all of dst, the other in a part",
            ptoisa_tpartadd(b->core, &d, &bad, &bad));
    ptoisa_tile more = vec(b, PTOISA_F32, 4, 16);
    REFUSED("TPARTADD: 4 x 8 and 4 x 16 valid elements, and dst has 4 x 8: one must be valid in "
            "all of dst, the other in a part",
            ptoisa_tpartadd(b->core, &d, &s, &more));
}

RULE_TEST(vector__scratch_that_breaks_a_rule_is_refused) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_F32, 4, 8), s = vec(b, PTOISA_F32, 4, 8);
    ptoisa_tile column = tile_in(b, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_F32, 8, 1);
    column.valid_rows = 4;
    ptoisa_tile t = vec(b, PTOISA_F32, 4, 8), mat = t, none = t;
    mat.memory = PTOISA_MAT;
    none.memory = PTOISA_MEMORY_COUNT;
    REFUSED("TPRELU: there is no scratch tile", ptoisa_tprelu(b->core, &d, &s, &s, NULL));
    REFUSED("TPRELU: tmp is not in UB", ptoisa_tprelu(b->core, &d, &s, &s, &mat));
    ptoisa_trowsum(b->core, &column, &s, &none);
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, "TROWSUM: tmp is no tile"));
    b->bench.fault_count = 0;
    ptoisa_tile i32s = vec(b, PTOISA_I32, 4, 8);
    REFUSED("TXORS: there is no scratch tile", ptoisa_txors(b->core, &i32s, &i32s, 1, NULL));
    ptoisa_tile row = vec(b, PTOISA_F32, 1, 8);
    REFUSED("TCOLSUM: there is no scratch tile", ptoisa_tcolsum(b->core, &row, &s, NULL, true));
    REFUSED("TCOLSUM: tmp is not in UB", ptoisa_tcolsum(b->core, &row, &s, &mat, false));

    // Sums of rows need scratch like what they sum.
    for (uint32_t i = 0; i < 3; i++) {
        ptoisa_tile other = i == 0   ? vec(b, PTOISA_I32, 4, 8)
                            : i == 1 ? vec(b, PTOISA_F32, 5, 8)
                                     : vec(b, PTOISA_F32, 4, 16);
        REFUSED("TROWSUM: tmp is not of the type and shape of src0",
                ptoisa_trowsum(b->core, &column, &s, &other));
    }
    ptoisa_tile two = vec(b, PTOISA_U32, 2, 8);
    REFUSED("TCOLARGMAX: dst has 2 valid rows, not 1", ptoisa_tcolargmax(b->core, &two, &s, &t));
    ptoisa_tile at = tile_in(b, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_U32, 8, 1);
    at.valid_rows = 4;
    column.valid_rows = 3;
    REFUSED("TROWARGMAX: dst has 4 x 1 valid elements, the values 3 x 1",
            ptoisa_trowargmax_values(b->core, &column, &at, &s, &t));
    ptoisa_tile selected = vec(b, PTOISA_F32, 4, 8), mask = vec(b, PTOISA_U8, 4, 32);
    ptoisa_tsel(b->core, &selected, &mask, &s, &s, &none);
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, "TSEL: t is no tile"));
    b->bench.fault_count = 0;
    ptoisa_tsels(b->core, &selected, &mask, &s, &none, 1);
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, "TSELS: t is no tile"));
    b->bench.fault_count = 0;
    REFUSED("TCMP: there is no comparison 6",
            ptoisa_tcmp(b->core, &mask, &s, &s, (ptoisa_compare)(PTOISA_GE + 1)));
}

RULE_TEST(vector__comparisons_and_selections_that_break_a_rule_are_refused) {
    begin(b, PTOISA_A2A3);
    b->core->is_dry = true;
    ptoisa_tile s = vec(b, PTOISA_I32, 4, 64), i16 = vec(b, PTOISA_I16, 4, 64);
    ptoisa_tile f32 = vec(b, PTOISA_F32, 4, 64), mask = vec(b, PTOISA_U8, 4, 32);
    ptoisa_tcmp(b->core, &mask, &s, &s, PTOISA_EQ);
    assert_int_equal(ptoisa_cycles(b->core), 256);
    taken(b);
    REFUSED("TCMP: i32 has no comparison but EQ on A2/A3",
            ptoisa_tcmp(b->core, &mask, &s, &s, PTOISA_LT));
    REFUSED("TCMP: s0 is i16, which it does not take",
            ptoisa_tcmp(b->core, &mask, &i16, &i16, PTOISA_EQ));
    TAKEN(ptoisa_tcmps(b->core, &mask, &i16, 1, PTOISA_LT));
    REFUSED("TSEL: s1 is f32, which it does not take",
            ptoisa_tsel(b->core, &s, &mask, &s, &f32, NULL));
    mask.valid_cols = 7;
    REFUSED("TCMPS: mask has 4 x 7 valid elements, and 4 x 8 are read",
            ptoisa_tcmps(b->core, &mask, &s, 1, PTOISA_EQ));
    mask = tile_in(b, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_U8, 32, 32);
    REFUSED("TSELS: mask is not row-major", ptoisa_tsels(b->core, &s, &mask, &s, NULL, 0));
}

RULE_TEST(vector__conversions_that_break_a_rule_are_refused) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile half = vec(b, PTOISA_F16, 4, 64), word = half, bytes = vec(b, PTOISA_U8, 4, 64);
    word.dtype = PTOISA_F32;
    REFUSED("TCVT: d is at the address of s, and its elements are larger",
            ptoisa_tcvt(b->core, &word, &half, PTOISA_CAST_NONE, false));
    REFUSED("TCVT: s is f32, which becomes u8 (d) only on A5",
            ptoisa_tcvt(b->core, &bytes, &word, PTOISA_CAST_RINT, false));
    ptoisa_tinterleave(b->core, &half, &half, &half, &half);
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, "only on A5"));
    b->bench.fault_count = 0;
    ptoisa_tile d = vec(b, PTOISA_BF16, 4, 16), s = vec(b, PTOISA_I8, 4, 32);
    s.valid_cols = 16;
    REFUSED("TCVT: s is i8, which does not become bf16 (d)",
            ptoisa_tcvt(b->core, &d, &s, PTOISA_CAST_RINT, false));
    ptoisa_tile f32 = vec(b, PTOISA_F32, 4, 32), i8 = vec(b, PTOISA_I8, 4, 32);
    ptoisa_tile scale = vec(b, PTOISA_F32, 4, 8), t = vec(b, PTOISA_F32, 7, 32);
    REFUSED("TQUANT: scale is no column: it has 8 valid columns of 8",
            ptoisa_tquant_sym(b->core, &i8, &f32, &scale));
    scale.valid_cols = 1;
    // 8 rows of 32 floats
    REFUSED("TQUANT: t has 896 bytes, and 1024 are needed",
            ptoisa_tquant_sym_scratch(b->core, &i8, &f32, &scale, &t));
    t.memory = PTOISA_MEMORY_COUNT;
    ptoisa_tquant_sym_scratch(b->core, &i8, &f32, &scale, &t);
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, "TQUANT: t is no tile"));
    b->bench.fault_count = 0;
    ptoisa_tile columns = tile_in(b, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_F32, 8, 2);
    columns.valid_rows = 4;
    columns.valid_cols = 1;
    REFUSED("TQUANT: d is i8, which it does not take",
            ptoisa_tquant_asym(b->core, &i8, &f32, &scale, &columns));
    i8.dtype = PTOISA_U8;
    REFUSED("TQUANT: offset is no column: it has 1 valid columns of 2",
            ptoisa_tquant_asym(b->core, &i8, &f32, &scale, &columns));
}

#else

// Without checks there is nothing to test.
int main(void) {
    return 0;
}

#endif
