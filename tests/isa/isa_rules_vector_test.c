// The rules that instructions have of their own (isa_rules_test.c), of those on vectors in UB: shapes,
// gathers, arithmetic with columns, rows and parts, scratch, conversions.

#include "isa_rules.h"

#if PTOISA_CHECKED_DEFAULT

// -- shapes ---------------------------------------------------------------------------------------

RULE_TEST(shape__transposes) {
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

RULE_TEST(shape__fills) {
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

RULE_TEST(shape__joins_and_ramps) {
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

RULE_TEST(gather__wrong_patterns_and_sizes_are_refused) {
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
    ptoisa_tgatherb(b->core, &d, &s, &idx);
    taken(b);
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

RULE_TEST(vector__columns_rows_and_parts_that_break_a_rule_are_refused) {
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

RULE_TEST(vector__scratch_that_breaks_a_rule_is_refused) {
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

RULE_TEST(vector__conversions_that_break_a_rule_are_refused) {
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

#else

// Without checks there is nothing to test.
int main(void) {
    return 0;
}

#endif
