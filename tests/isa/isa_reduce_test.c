// Reductions of rows and columns, and the expansion that undoes them, against plain loops.
//
// The order of sums and products is promised: columns from top to bottom; rows in 16 lanes, which are then
// folded by halves. Floats are accumulated in f32 and rounded to the type at the end.

#include "isa_test.h"

enum { ROUNDS = 1200, SIDE = 150 };

typedef void (*binary_fn)(ptoisa_core *, const ptoisa_tile *, const ptoisa_tile *,
                          const ptoisa_tile *);

typedef enum kind { SUM, MAX, MIN, PROD } kind;

static const ptoisa_op combine_ops[] = {PTOISA_TADD, PTOISA_TMAX, PTOISA_TMIN, PTOISA_TMUL};

static double identity(kind k, ptoisa_dtype dtype) {
    bool is_float = ref_is_float(dtype);
    switch (k) {
    case SUM: return 0;
    case PROD: return 1;
    case MAX: return is_float ? -(double)INFINITY : ref_least(dtype);
    default: return is_float ? (double)INFINITY : ref_greatest(dtype);
    }
}

static double combine(kind k, ptoisa_dtype dtype, double x, double y) {
    return ref_is_float(dtype) ? (float)ref_binary_float(combine_ops[k], x, y)
                               : ref_binary(combine_ops[k], dtype, x, y);
}

static double row_reference(kind k, const test_tile *s, uint32_t r) {
    ptoisa_dtype dtype = (ptoisa_dtype)s->tile.dtype;
    double lanes[16];
    for (int i = 0; i < 16; i++) {
        lanes[i] = identity(k, dtype);
    }
    for (uint32_t c = 0; c < s->tile.valid_cols; c++) {
        lanes[c % 16] = combine(k, dtype, lanes[c % 16], ref_was(s, r, c));
    }
    for (int h = 8; h > 0; h /= 2) {
        for (int i = 0; i < h; i++) {
            lanes[i] = combine(k, dtype, lanes[i], lanes[i + h]);
        }
    }
    return lanes[0];
}

static double col_reference(kind k, const test_tile *s, uint32_t c) {
    ptoisa_dtype dtype = (ptoisa_dtype)s->tile.dtype;
    double result = s->tile.valid_rows ? ref_was(s, 0, c) : identity(k, dtype);
    for (uint32_t r = 1; r < s->tile.valid_rows; r++) {
        result = combine(k, dtype, result, ref_was(s, r, c));
    }
    return result;
}

static void fill(test_bench *bench, test_tile *t, kind k) {
    bool is_float = ref_is_float((ptoisa_dtype)t->tile.dtype);
    if (!is_float || test_chance(bench, 3)) {
        test_fill(bench, t, test_chance(bench, 3) ? TEST_PLAIN : TEST_ANY);
        return;
    }
    TEST_GRID(uint32_t, r, t->tile.valid_rows, c, t->tile.valid_cols) {
        double x = test_number(bench, (ptoisa_dtype)t->tile.dtype, TEST_PLAIN);
        // Factors around 1, so that products stay in range.
        x = k == PROD ? (1 + x / 64) * (x < 0 ? -1 : 1) : x;
        test_put(t, r, c, x);
    }
}

// The result of a row reduction: a column, or rows of which the first element is valid.
static test_tile *row_result(test_bench *bench, ptoisa_dtype dtype, uint32_t rows) {
    test_tile *d =
        test_chance(bench, 2) ? test_column(bench, dtype, rows) : test_vec(bench, dtype, rows, 1);
    d->role = TEST_WRITTEN;
    return d;
}

static test_tile *scratch_like(test_bench *bench, const test_tile *s) {
    test_tile *t =
        test_tile_make(bench, (ptoisa_dtype)s->tile.dtype, PTOISA_VEC, PTOISA_ROW_MAJOR,
                       s->tile.rows, s->tile.cols, s->tile.valid_rows, s->tile.valid_cols);
    t->role = TEST_SCRATCH;
    return t;
}

// -- rows -----------------------------------------------------------------------------------------

static binary_fn row_of(kind k) {
    return k == SUM   ? ptoisa_trowsum
           : k == MAX ? ptoisa_trowmax
           : k == MIN ? ptoisa_trowmin
                      : ptoisa_trowprod;
}

static void row_round(test_bench *bench, kind k, uint32_t rows, uint32_t cols) {
    static const char *const names[4] = {"TROWSUM", "TROWMAX", "TROWMIN", "TROWPROD"};
    ptoisa_dtype dtype = test_dtype(bench, PTOISA_SET_MAP);
    test_begin(bench, PTOISA_A2A3, names[k]);
    test_tile *s = test_vec(bench, dtype, rows, cols);
    fill(bench, s, k);
    test_tile *t = scratch_like(bench, s), *d = row_result(bench, dtype, rows);
    test_run(bench);
    row_of(k)(&bench->core, &d->tile, &s->tile, &t->tile);
    for (uint32_t r = 0; r < rows; r++) {
        test_expect_value(bench, d, r, 0, row_reference(k, s, r));
    }
    test_end(bench);
}

BENCH_TEST(row__reductions_match_the_reference) {
    for (uint32_t round = 0; round < 4 * ROUNDS; round++) {
        uint32_t rows = test_size(bench, round % 20 ? 20 : 70);
        row_round(bench, (kind)(round % 4), rows, test_size(bench, round % 20 == 1 ? 600 : SIDE));
    }
}

BENCH_TEST(row__reduction_of_nothing_is_the_identity) {
    for (uint32_t round = 0; round < 48; round++) {
        row_round(bench, (kind)(round % 4), 1 + round % 5, 0);
        row_round(bench, (kind)(round % 4), 0, round % 3 * 4);
    }
}

// NaN is greater and less than everything, wherever it stands in a row.
BENCH_TEST(row__nan_is_kept_wherever_it_stands) {
    TEST_GRID(uint32_t, at, 70, which, 4) {
        ptoisa_dtype dtype = which % 2 ? PTOISA_F16 : PTOISA_F32;
        test_begin(bench, PTOISA_A2A3, which < 2 ? "TROWMAX" : "TROWMIN");
        test_tile *s = test_vec(bench, dtype, 2, 70);
        test_fill(bench, s, TEST_PLAIN);
        test_put(s, 0, at, (double)NAN);
        test_put(s, 1, at, which < 2 ? (double)INFINITY : -(double)INFINITY);
        test_tile *t = scratch_like(bench, s), *d = row_result(bench, dtype, 2);
        test_run(bench);
        (which < 2 ? ptoisa_trowmax : ptoisa_trowmin)(&bench->core, &d->tile, &s->tile, &t->tile);
        test_expect(bench, d, 0, 0, (double)NAN, 0);
        test_expect(bench, d, 1, 0, which < 2 ? (double)INFINITY : -(double)INFINITY, 0);
        test_end(bench);
    }
}

// Rows with infinities of both signs, whose sum is NaN though none of their elements is, between rows
// with a NaN and rows with neither: in groups of up to 16, and in what is left of them.
BENCH_TEST(row__infinities_of_both_signs_are_no_nan) {
    for (uint32_t rows = 1; rows < 40; rows++) {
        const bool is_max = rows % 2;
        const uint32_t cols = 1 + rows * 7 % 50;
        test_begin(bench, PTOISA_A2A3, is_max ? "TROWMAX" : "TROWMIN");
        test_tile *s = test_vec(bench, PTOISA_F32, rows, cols);
        test_fill(bench, s, TEST_PLAIN);
        for (uint32_t r = 0; r < rows; r++) {
            test_put(s, r, 0, r % 3 ? (double)INFINITY : 7);
            test_put(s, r, cols - 1, r % 3 ? -(double)INFINITY : -7);
            if (r % 3 == 2) {
                test_put(s, r, cols / 2, (double)NAN);
            }
        }
        test_tile *t = scratch_like(bench, s), *d = row_result(bench, PTOISA_F32, rows);
        test_run(bench);
        (is_max ? ptoisa_trowmax : ptoisa_trowmin)(&bench->core, &d->tile, &s->tile, &t->tile);
        for (uint32_t r = 0; r < rows; r++) {
            double want = ref_was(s, r, 0);
            for (uint32_t c = 0; c < cols; c++) {
                double x = ref_was(s, r, c);
                want = want != want || x != x ? (double)NAN
                       : is_max               ? fmax(want, x)
                                              : fmin(want, x);
            }
            test_expect(bench, d, r, 0, want, 0);
        }
        test_end(bench);
    }
}

// The first of the greatest (or least), or the first NaN. Rows have ties.
ROUNDS_TEST(row__arguments_are_the_first_extremes, 2 * ROUNDS) {
    bool is_max = round % 2;
    ptoisa_dtype dtype = test_dtype(bench, PTOISA_SET_MAP);
    ptoisa_dtype index = test_chance(bench, 2) ? PTOISA_U32 : PTOISA_I32;
    uint32_t rows = test_size(bench, 20), cols = test_size(bench, SIDE);
    test_begin(bench, PTOISA_A2A3, is_max ? "TROWARGMAX" : "TROWARGMIN");
    test_tile *s = test_vec(bench, dtype, rows, cols);
    uint32_t kinds = test_size(bench, 40);
    test_fill(bench, s, TEST_ANY);
    for (uint32_t i = 0; i < rows * cols && !test_chance(bench, 8); i++) {
        double x = (double)test_in(bench, 0, kinds) - 20;
        bool is_end = ref_is_float(dtype) && test_chance(bench, 60);
        x = is_end ? (x == 0 ? -0.0 : x * (double)INFINITY) : x;
        test_put(s, i / cols, i % cols, x < ref_least(dtype) && !ref_is_float(dtype) ? 0 : x);
    }
    test_tile *t = scratch_like(bench, s), *d = row_result(bench, index, rows);
    test_tile *v = test_chance(bench, 2) ? row_result(bench, dtype, rows) : NULL;
    test_run(bench);
    if (v) {
        (is_max ? ptoisa_trowargmax_values
                : ptoisa_trowargmin_values)(&bench->core, &v->tile, &d->tile, &s->tile, &t->tile);
    } else {
        (is_max ? ptoisa_trowargmax : ptoisa_trowargmin)(&bench->core, &d->tile, &s->tile,
                                                         &t->tile);
    }
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t first = 0;
        for (uint32_t c = 1; c < cols; c++) {
            double x = ref_was(s, r, c), best = ref_was(s, r, first);
            first = !isnan(best) && (isnan(x) || (is_max ? x > best : x < best)) ? c : first;
        }
        test_expect(bench, d, r, 0, first, 0);
        if (v && !isnan(ref_was(s, r, first))) {
            test_expect_value(bench, v, r, 0, ref_was(s, r, first));
        }
    }
}

// Sums of two neighbours, rounded once; pieces of 256 sums and more.
ROUNDS_TEST(row__neighbours_are_added, ROUNDS) {
    ptoisa_dtype dtype = test_dtype(bench, PTOISA_SET(PTOISA_F16) | PTOISA_SET(PTOISA_F32));
    uint32_t rows = test_size(bench, 20), cols = test_size(bench, round % 8 ? 70 : 700);
    test_begin(bench, PTOISA_A2A3, "TPAIRREDUCESUM");
    test_tile *s = test_vec(bench, dtype, rows, cols),
              *d = test_written(test_vec(bench, dtype, rows, cols));
    test_fill(bench, s, TEST_ANY);
    test_run(bench);
    ptoisa_tpairreducesum(&bench->core, &d->tile, &s->tile);
    TEST_GRID(uint32_t, r, rows, c, cols) {
        if (c >= (cols + 1) / 2) {
            test_expect(bench, d, r, c, ref_was(d, r, c), 0);
        } else if (2 * c + 1 < cols) {
            test_expect(bench, d, r, c, ref_was(s, r, 2 * c) + ref_was(s, r, 2 * c + 1), 0);
        } else {
            test_expect(bench, d, r, c, ref_was(s, r, 2 * c), 0);
        }
    }
}

// -- columns --------------------------------------------------------------------------------------

static void col_round(test_bench *bench, kind k, uint32_t rows, uint32_t cols) {
    static const char *const names[4] = {"TCOLSUM", "TCOLMAX", "TCOLMIN", "TCOLPROD"};
    ptoisa_dtype dtype = test_dtype(bench, PTOISA_SET_MAP);
    test_begin(bench, PTOISA_A2A3, names[k]);
    test_tile *s = test_vec(bench, dtype, rows, cols);
    fill(bench, s, k);
    test_tile *t = scratch_like(bench, s), *d = test_written(test_vec(bench, dtype, 1, cols));
    test_run(bench);
    const ptoisa_tile *dt = &d->tile, *st = &s->tile;
    switch (k) {
    case SUM: {
        bool is_binary = test_chance(bench, 2);
        ptoisa_tcolsum(&bench->core, dt, st, is_binary || test_chance(bench, 2) ? &t->tile : NULL,
                       is_binary);
        break;
    }
    case MAX: ptoisa_tcolmax(&bench->core, dt, st); break;
    case MIN: ptoisa_tcolmin(&bench->core, dt, st); break;
    default: ptoisa_tcolprod(&bench->core, dt, st); break;
    }
    for (uint32_t c = 0; c < cols; c++) {
        test_expect_value(bench, d, 0, c, col_reference(k, s, c));
    }
    test_end(bench);
}

BENCH_TEST(col__reductions_match_the_reference) {
    for (uint32_t round = 0; round < 4 * ROUNDS; round++) {
        uint32_t rows = test_size(bench, 40);
        col_round(bench, (kind)(round % 4), rows, test_size(bench, round % 20 == 1 ? 600 : SIDE));
    }
}

BENCH_TEST(col__reduction_of_nothing_is_the_identity) {
    for (uint32_t round = 0; round < 48; round++) {
        col_round(bench, (kind)(round % 4), 0, 1 + round % 20);
        col_round(bench, (kind)(round % 4), round % 3, 0);
    }
}

// The first of the greatest (or least) of a column, or its first NaN; of nothing it is row 0.
ROUNDS_TEST(col__arguments_are_the_first_extremes, 2 * ROUNDS) {
    bool is_max = round % 2;
    ptoisa_dtype dtype = test_dtype(bench, PTOISA_SET_MAP);
    ptoisa_dtype index = test_chance(bench, 2) ? PTOISA_U32 : PTOISA_I32;
    uint32_t rows = test_size(bench, 30), cols = test_size(bench, round % 10 ? SIDE : 700);
    test_begin(bench, PTOISA_A2A3, is_max ? "TCOLARGMAX" : "TCOLARGMIN");
    test_tile *s = test_vec(bench, dtype, rows, cols),
              *d = test_written(test_vec(bench, index, 1, cols));
    test_fill(bench, s, test_chance(bench, 2) ? TEST_ANY : TEST_PLAIN);
    s->tile.valid_rows = round % 50 == 0 ? 0 : rows;
    test_tile *t = scratch_like(bench, s);
    test_run(bench);
    (is_max ? ptoisa_tcolargmax : ptoisa_tcolargmin)(&bench->core, &d->tile, &s->tile, &t->tile);
    for (uint32_t c = 0; c < cols; c++) {
        uint32_t first = 0;
        for (uint32_t r = 1; r < s->tile.valid_rows; r++) {
            double x = ref_was(s, r, c), best = ref_was(s, first, c);
            first = !isnan(best) && (isnan(x) || (is_max ? x > best : x < best)) ? r : first;
        }
        test_expect(bench, d, 0, c, first, 0);
    }
}

// -- expansions -----------------------------------------------------------------------------------

ROUNDS_TEST(expand__copies_bits, ROUNDS) {
    bool is_col = round % 2;
    uint32_t rows = test_size(bench, 20), cols = test_size(bench, SIDE);
    ptoisa_dtype dtype = test_dtype(bench, PTOISA_SET_MAP);
    test_begin(bench, PTOISA_A2A3, is_col ? "TCOLEXPAND" : "TROWEXPAND");
    test_tile *s = is_col                  ? test_vec(bench, dtype, 1, cols)
                   : test_chance(bench, 2) ? test_column(bench, dtype, rows)
                                           : test_vec(bench, dtype, rows, 1);
    test_tile *d = test_written(test_vec(bench, dtype, rows, cols));
    test_run(bench);
    (is_col ? ptoisa_tcolexpand : ptoisa_trowexpand)(&bench->core, &d->tile, &s->tile);
    TEST_GRID(uint32_t, r, rows, c, cols) {
        test_expect_bits(bench, d, r, c, is_col ? ref_was_bits(s, 0, c) : ref_was_bits(s, r, 0));
    }
}
