// Element-wise instructions: every one, on every type, on random shapes with garbage around what is
// valid, in place or not, against the reference; and special values worked out by hand.

#include "isa_test.h"

enum { ROUNDS = 500, SIDE = 70 };

#define SET(name) PTOISA_SET(PTOISA_##name)

static const uint32_t set_int = SET(I8) | SET(I16) | SET(I32) | SET(U8) | SET(U16) | SET(U32);
static const uint32_t set_shift = SET(I16) | SET(I32) | SET(U16) | SET(U32);
static const uint32_t set_float = SET(F16) | SET(F32);
static const uint32_t set_bin = SET(F16) | SET(F32) | SET(I16) | SET(I32);
// What A5 takes besides: all that is no 64-bit integer.
static const uint32_t set_wide =
    SET(F16) | SET(F32) | SET(I16) | SET(I32) | SET(BF16) | SET(I8) | SET(U8) | SET(U16) | SET(U32);

typedef void (*binary_fn)(ptoisa_core *, const ptoisa_tile *, const ptoisa_tile *,
                          const ptoisa_tile *);
typedef void (*unary_fn)(ptoisa_core *, const ptoisa_tile *, const ptoisa_tile *);
typedef void (*scalar_fn)(ptoisa_core *, const ptoisa_tile *, const ptoisa_tile *, double);
typedef void (*binary_tmp_fn)(ptoisa_core *, const ptoisa_tile *, const ptoisa_tile *,
                              const ptoisa_tile *, const ptoisa_tile *);

// A destination: one of the sources, or a tile of its own.
static test_tile *destination(test_bench *bench, ptoisa_dtype dtype, uint32_t rows, uint32_t cols,
                              test_tile *a, test_tile *b) {
    uint32_t which = test_in(bench, 0, 4);
    test_tile *d = which == 0 ? a : which == 1 ? b : test_vec(bench, dtype, rows, cols);
    d->tile.valid_rows = rows;
    d->tile.valid_cols = cols;
    d->role = TEST_WRITTEN;
    return d;
}

// A source at least as big as rows x cols: mostly exactly so.
static test_tile *source(test_bench *bench, ptoisa_dtype dtype, uint32_t rows, uint32_t cols,
                         test_numbers numbers) {
    test_tile *t = test_vec(bench, dtype, rows, cols);
    test_fill(bench, t, numbers);
    return t;
}

static void shape(test_bench *bench, uint32_t *rows, uint32_t *cols) {
    *rows = test_size(bench, 12);
    *cols = test_size(bench, SIDE);
    if (test_chance(bench, 40)) {
        *(test_chance(bench, 2) ? rows : cols) = 0;
    }
}

// Numbers for shifts: in [0, bits).
static void fill_shifts(test_bench *bench, test_tile *t) {
    uint32_t bits = ref_size((ptoisa_dtype)t->tile.dtype) * 8;
    for (uint32_t r = 0; r < t->tile.valid_rows; r++) {
        for (uint32_t c = 0; c < t->tile.valid_cols; c++) {
            test_put(t, r, c, test_in(bench, 0, bits - 1));
        }
    }
}

// Small exponents, for powers of integers.
static void fill_exponents(test_bench *bench, test_tile *t) {
    double low = ref_least((ptoisa_dtype)t->tile.dtype) < 0 ? -3 : 0;
    for (uint32_t r = 0; r < t->tile.valid_rows; r++) {
        for (uint32_t c = 0; c < t->tile.valid_cols; c++) {
            test_put(t, r, c, low + test_in(bench, 0, 12));
        }
    }
}

static bool is_shift(ptoisa_op op) {
    return op == PTOISA_TSHL || op == PTOISA_TSHR;
}

// Compares one result of a binary instruction with the reference.
static void expect_binary(const test_bench *bench, const test_tile *d, ptoisa_op op, uint32_t r,
                          uint32_t c, double a, double b) {
    ptoisa_dtype dtype = (ptoisa_dtype)d->tile.dtype;
    double want = ref_binary(op, dtype, a, b);
    if (op == PTOISA_TMAX || op == PTOISA_TMIN) {
        test_expect_value(bench, d, r, c, want);
    } else if (ref_is_float(dtype) && op == PTOISA_TREM) {
        // -tiny + divisor, rounded; either zero.
        test_expect(bench, d, r, c, want, 1);
    } else if (ref_is_float(dtype) && op == PTOISA_TPOW) {
        test_expect(bench, d, r, c, want, dtype == PTOISA_F32 ? 16 : 1);
    } else {
        test_expect(bench, d, r, c, want, 0);
    }
}

// -- binary ---------------------------------------------------------------------------------------

typedef struct binary_case {
    const char *name;
    ptoisa_op op;
    uint32_t sets[2];  // on A2/A3, on A5
    binary_fn run;
    binary_tmp_fn run_tmp;
    scalar_fn run_scalar;
} binary_case;

static void txors(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s, double x) {
    // TXORS takes a scratch tile; its own storage suffices here, as the test gives it none.
    static uint8_t scratch[1 << 16];
    ptoisa_tile t = *s;
    t.data = scratch + (32 - (uintptr_t)scratch % 32) % 32;
    assert_true(ptoisa_tile_bytes(&t) + 32 <= sizeof scratch);
    ptoisa_txors(core, d, s, x, &t);
}

static uint32_t binary_cases(const binary_case **out_cases) {
    static binary_case cases[17];
    uint32_t n = 0;
#define CASE(NAME, name, set, wide, binary, tmp, scalar)                                           \
    {                                                                                              \
        binary_case one = {#NAME, PTOISA_##NAME, {set, wide}, binary, tmp, scalar};                \
        cases[n++] = one;                                                                          \
    }
    CASE(TADD, tadd, set_bin, set_wide, ptoisa_tadd, NULL, ptoisa_tadds)
    CASE(TSUB, tsub, set_bin, set_wide, ptoisa_tsub, NULL, ptoisa_tsubs)
    CASE(TMUL, tmul, set_bin, set_wide, ptoisa_tmul, NULL, ptoisa_tmuls)
    CASE(TMAX, tmax, set_bin, set_wide, ptoisa_tmax, NULL, ptoisa_tmaxs)
    CASE(TMIN, tmin, set_bin, set_wide, ptoisa_tmin, NULL, ptoisa_tmins)
    CASE(TDIV, tdiv, set_float, set_wide, ptoisa_tdiv, NULL, ptoisa_tdivs)
    CASE(TDIV, tdivs, set_bin, set_wide, NULL, NULL, ptoisa_tdivs)
    CASE(TAND, tand, set_int, set_int, ptoisa_tand, NULL, ptoisa_tands)
    CASE(TOR, tor, set_int, set_int, ptoisa_tor, NULL, ptoisa_tors)
    CASE(TXOR, txor, set_int, set_int, NULL, ptoisa_txor, txors)
    CASE(TSHL, tshl, set_shift, set_shift, ptoisa_tshl, NULL, ptoisa_tshls)
    CASE(TSHR, tshr, set_shift, set_shift, ptoisa_tshr, NULL, ptoisa_tshrs)
    CASE(TREM, trem, SET(F32) | SET(I32), SET(F32) | SET(I32), NULL, ptoisa_trem, ptoisa_trems)
    CASE(TFMOD, tfmod, SET(F32) | SET(I32), SET(F32) | SET(I32), NULL, ptoisa_tfmod, ptoisa_tfmods)
    CASE(TPOW, tpow, SET(F32) | SET(I32) | SET(I16), set_int | SET(F32), NULL, ptoisa_tpow,
         ptoisa_tpows)
#undef CASE
    *out_cases = cases;
    return n;
}

// Fills the sources of a binary instruction with what it takes.
static void fill_operands(test_bench *bench, ptoisa_op op, test_tile *a, test_tile *b) {
    bool is_float = ref_is_float((ptoisa_dtype)a->tile.dtype);
    test_fill(bench, a, op == PTOISA_TPOW && is_float ? TEST_PLAIN : TEST_ANY);
    if (is_shift(op)) {
        fill_shifts(bench, b);
    } else if (op == PTOISA_TPOW && !is_float) {
        fill_exponents(bench, b);
    } else if (op == PTOISA_TPOW) {
        test_fill(bench, b, TEST_PLAIN);
    } else {
        test_fill(bench, b, TEST_ANY);
    }
}

static void binary_round(test_bench *bench, const binary_case *one, ptoisa_family family) {
    ptoisa_dtype dtype = test_dtype(bench, one->sets[family]);
    uint32_t rows, cols;
    test_begin(bench, family, one->name);
    shape(bench, &rows, &cols);
    test_tile *a = test_vec(bench, dtype, rows, cols), *b = test_vec(bench, dtype, rows, cols);
    fill_operands(bench, one->op, a, b);
    test_tile *d = destination(bench, dtype, rows, cols, a, b);
    test_tile *t = test_vec(bench, dtype, rows, cols);
    t->role = TEST_SCRATCH;
    test_run(bench);
    if (one->run) {
        one->run(&bench->core, &d->tile, &a->tile, &b->tile);
    } else {
        bool is_tmp_optional = one->op == PTOISA_TFMOD || one->op == PTOISA_TPOW;
        one->run_tmp(&bench->core, &d->tile, &a->tile, &b->tile,
                     is_tmp_optional && test_chance(bench, 2) ? NULL : &t->tile);
    }
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t c = 0; c < cols; c++) {
            expect_binary(bench, d, one->op, r, c, ref_was(a, r, c), ref_was(b, r, c));
        }
    }
    test_end(bench);
}

BENCH_TEST(binary__all_match_the_reference) {
    const binary_case *cases;
    uint32_t count = binary_cases(&cases);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t round = 0; cases[i].run || cases[i].run_tmp ? round < ROUNDS : 0; round++) {
            binary_round(bench, &cases[i], round % 3 ? PTOISA_A2A3 : PTOISA_A5);
        }
    }
}

static void scalar_round(test_bench *bench, const binary_case *one, ptoisa_family family) {
    ptoisa_dtype dtype = test_dtype(bench, one->sets[family]);
    uint32_t rows, cols;
    test_begin(bench, family, one->name);
    shape(bench, &rows, &cols);
    test_tile *a = test_vec(bench, dtype, rows, cols);
    // The scalar is the element of a tile that is valid.
    uint32_t block = 32 / ref_size(dtype);
    test_tile *x = test_tile_make(bench, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR, 1, block, 1, 1);
    fill_operands(bench, one->op, a, x);
    bool is_distinct = one->op == PTOISA_TAND || one->op == PTOISA_TOR;
    test_tile *d = is_distinct ? test_vec(bench, dtype, rows, cols)
                               : destination(bench, dtype, rows, cols, a, a);
    d->role = TEST_WRITTEN;
    test_run(bench);
    double b = ref_was(x, 0, 0);
    one->run_scalar(&bench->core, &d->tile, &a->tile, b);
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t c = 0; c < cols; c++) {
            expect_binary(bench, d, one->op, r, c, ref_was(a, r, c), b);
        }
    }
    test_end(bench);
}

BENCH_TEST(scalar__all_match_the_reference) {
    const binary_case *cases;
    uint32_t count = binary_cases(&cases);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t round = 0; round < ROUNDS; round++) {
            scalar_round(bench, &cases[i], round % 3 ? PTOISA_A2A3 : PTOISA_A5);
        }
    }
}

BENCH_TEST(scalar__divided_by_a_tile) {
    for (uint32_t round = 0; round < ROUNDS; round++) {
        ptoisa_dtype dtype = test_dtype(bench, set_bin);
        uint32_t rows, cols;
        test_begin(bench, PTOISA_A2A3, "TSDIV");
        shape(bench, &rows, &cols);
        test_tile *a = source(bench, dtype, rows, cols, TEST_ANY);
        test_tile *d = destination(bench, dtype, rows, cols, a, a);
        double x = test_number(bench, dtype, TEST_ANY);
        test_run(bench);
        ptoisa_tsdiv(&bench->core, &d->tile, x, &a->tile);
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < cols; c++) {
                expect_binary(bench, d, PTOISA_TDIV, r, c, x, ref_was(a, r, c));
            }
        }
        test_end(bench);
    }
}

// A scalar is of the tile's element type: 0.1 is the f32 (or f16) next to 0.1.
BENCH_TEST(scalar__is_rounded_to_the_tiles_type) {
    for (uint32_t round = 0; round < 40; round++) {
        ptoisa_dtype dtype = round % 2 ? PTOISA_F32 : PTOISA_F16;
        test_begin(bench, PTOISA_A2A3, "scalar");
        test_tile *a = source(bench, dtype, 2, 19, TEST_PLAIN), *d = test_vec(bench, dtype, 2, 19);
        d->role = TEST_WRITTEN;
        double x = (double)(test_random(bench) >> 11) * 0x1p-53 * 8 - 4;
        test_run(bench);
        bool is_product = round % 4 < 2;
        (is_product ? ptoisa_tmuls : ptoisa_tadds)(&bench->core, &d->tile, &a->tile, x);
        for (uint32_t i = 0; i < 38; i++) {
            expect_binary(bench, d, is_product ? PTOISA_TMUL : PTOISA_TADD, i / 19, i % 19,
                          ref_was(a, i / 19, i % 19), ref_round(dtype, x));
        }
        test_end(bench);
    }
}

// -- parts ----------------------------------------------------------------------------------------

// One source is as big as the destination; the other covers a part, and elsewhere the first is
// copied.
BENCH_TEST(part__copies_where_one_source_ends) {
    static const char *const names[4] = {"TPARTADD", "TPARTMUL", "TPARTMAX", "TPARTMIN"};
    static const ptoisa_op ops[4] = {PTOISA_TADD, PTOISA_TMUL, PTOISA_TMAX, PTOISA_TMIN};
    static const binary_fn runs[4] = {ptoisa_tpartadd, ptoisa_tpartmul, ptoisa_tpartmax,
                                      ptoisa_tpartmin};
    for (uint32_t round = 0; round < 4 * ROUNDS; round++) {
        uint32_t which = round % 4;
        ptoisa_dtype dtype = test_dtype(bench, set_bin);
        uint32_t rows = test_size(bench, 12), cols = test_size(bench, SIDE);
        uint32_t part_rows = test_in(bench, 0, rows), part_cols = test_in(bench, 0, cols);
        test_begin(bench, PTOISA_A2A3, names[which]);
        test_tile *full = source(bench, dtype, rows, cols, TEST_ANY);
        test_tile *part = source(bench, dtype, part_rows, part_cols, TEST_ANY);
        test_tile *d = test_chance(bench, 3) ? full : test_vec(bench, dtype, rows, cols);
        d->role = TEST_WRITTEN;
        bool is_first = test_chance(bench, 2);
        test_run(bench);
        runs[which](&bench->core, &d->tile, is_first ? &full->tile : &part->tile,
                    is_first ? &part->tile : &full->tile);
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < cols; c++) {
                if (r < part_rows && c < part_cols) {
                    expect_binary(bench, d, ops[which], r, c, ref_was(full, r, c),
                                  ref_was(part, r, c));
                } else {
                    test_expect(bench, d, r, c, ref_was(full, r, c), 0);
                }
            }
        }
        test_end(bench);
    }
}

// -- unary ----------------------------------------------------------------------------------------

static void unary_round(test_bench *bench, const char *name, ptoisa_op op, uint32_t set,
                        unary_fn run, double ulps) {
    ptoisa_dtype dtype = test_dtype(bench, set);
    uint32_t rows, cols;
    test_begin(bench, PTOISA_A2A3, name);
    shape(bench, &rows, &cols);
    test_tile *a = source(bench, dtype, rows, cols, test_chance(bench, 3) ? TEST_PLAIN : TEST_ANY);
    bool is_distinct = op == PTOISA_TRSQRT || op == PTOISA_TRECIP;
    test_tile *d = is_distinct ? test_vec(bench, dtype, rows, cols)
                               : destination(bench, dtype, rows, cols, a, a);
    d->role = TEST_WRITTEN;
    test_run(bench);
    run(&bench->core, &d->tile, &a->tile);
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t c = 0; c < cols; c++) {
            double x = ref_was(a, r, c), want = ref_unary(op, dtype, x);
            if (op == PTOISA_TRELU) {
                test_expect_value(bench, d, r, c, want);
            } else if (op == PTOISA_TRSQRT && x == 0) {
                test_expect(bench, d, r, c, copysign(want, ref_now(d, r, c)), 0);  // either
            } else {
                test_expect(bench, d, r, c, want, dtype == PTOISA_F32 || ulps == 0 ? ulps : 1);
            }
        }
    }
    test_end(bench);
}

BENCH_TEST(unary__all_match_the_reference) {
    for (uint32_t round = 0; round < 2 * ROUNDS; round++) {
        unary_round(bench, "TEXP", PTOISA_TEXP, set_float, ptoisa_texp, 3);
        unary_round(bench, "TLOG", PTOISA_TLOG, set_float, ptoisa_tlog, 3);
        unary_round(bench, "TSQRT", PTOISA_TSQRT, set_float, ptoisa_tsqrt, 0);
        unary_round(bench, "TRSQRT", PTOISA_TRSQRT, set_float, ptoisa_trsqrt, 3);
        unary_round(bench, "TRECIP", PTOISA_TRECIP, set_bin, ptoisa_trecip, 3);
        unary_round(bench, "TABS", PTOISA_TABS, set_float, ptoisa_tabs, 0);
        unary_round(bench, "TNEG", PTOISA_TNEG, set_bin, ptoisa_tneg, 0);
        unary_round(bench, "TRELU", PTOISA_TRELU, set_float | SET(I32), ptoisa_trelu, 0);
        unary_round(bench, "TNOT", PTOISA_TNOT, set_int, ptoisa_tnot, 0);
    }
}

// Functions that are approximated, over their whole range: where exponents carry, results go
// subnormal or overflow, and logarithms cancel.
BENCH_TEST(unary__is_accurate_over_the_whole_range) {
    static const double low[4] = {-104, -149, -149, -149}, high[4] = {89, 128, 128, 128};
    static const char *const names[4] = {"TEXP", "TLOG", "TRSQRT", "TRECIP"};
    static const ptoisa_op ops[4] = {PTOISA_TEXP, PTOISA_TLOG, PTOISA_TRSQRT, PTOISA_TRECIP};
    static const unary_fn runs[4] = {ptoisa_texp, ptoisa_tlog, ptoisa_trsqrt, ptoisa_trecip};
    for (uint32_t which = 0; which < 4; which++) {
        for (uint32_t round = 0; round < 8; round++) {
            test_begin(bench, PTOISA_A2A3, names[which]);
            test_tile *a = test_vec(bench, PTOISA_F32, 4, 1000);
            test_tile *d = test_vec(bench, PTOISA_F32, 4, 1000);
            d->role = TEST_WRITTEN;
            for (uint32_t i = 0; i < 4000; i++) {
                double unit = (double)(test_random(bench) >> 11) * 0x1p-53;
                double x = low[which] + (high[which] - low[which]) * unit;
                x = which == 0 ? x : i % 4 == 0 ? 1 + (unit - 0.5) * 0.01 : exp2(x);
                test_put(a, i / 1000, i % 1000, ref_round(PTOISA_F32, x));
            }
            test_run(bench);
            runs[which](&bench->core, &d->tile, &a->tile);
            for (uint32_t i = 0; i < 4000; i++) {
                double x = ref_was(a, i / 1000, i % 1000);
                test_expect(bench, d, i / 1000, i % 1000, ref_unary(ops[which], PTOISA_F32, x), 3);
            }
            test_end(bench);
        }
    }
}

// -- three operands -------------------------------------------------------------------------------

// s0 * a + s1 may be fused or rounded between, so the error is that of two roundings.
static void expect_fused(const test_bench *bench, const test_tile *d, uint32_t r, uint32_t c,
                         double product, double sum) {
    ptoisa_dtype dtype = (ptoisa_dtype)d->tile.dtype;
    if (isnan(product) || isinf(product) || fabs(product) > ref_greatest(dtype) || isnan(sum) ||
        isinf(sum)) {
        return;  // as the order of rounding decides
    }
    test_expect_near(bench, d, r, c, sum, 1, ref_ulp(dtype, product));
}

BENCH_TEST(fused__multiply_and_add_equals_the_reference) {
    for (uint32_t round = 0; round < 4 * ROUNDS; round++) {
        static const char *const names[4] = {"TFUSEDMULADD", "TMULADDDST", "TFUSEDMULADDRELU",
                                             "TSUBRELU"};
        static const binary_fn runs[4] = {ptoisa_tfusedmuladd, ptoisa_tmuladddst,
                                          ptoisa_tfusedmuladdrelu, ptoisa_tsubrelu};
        uint32_t which = round % 4, rows, cols;
        ptoisa_dtype dtype = test_dtype(bench, set_float);
        test_numbers numbers = test_chance(bench, 2) ? TEST_PLAIN : TEST_ANY;
        test_begin(bench, PTOISA_A2A3, names[which]);
        shape(bench, &rows, &cols);
        test_tile *a = source(bench, dtype, rows, cols, numbers);
        test_tile *b = source(bench, dtype, rows, cols, numbers);
        test_tile *d = source(bench, dtype, rows, cols, numbers);
        d->role = TEST_WRITTEN;
        test_run(bench);
        runs[which](&bench->core, &d->tile, &a->tile, &b->tile);
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < cols; c++) {
                double x = ref_was(a, r, c), y = ref_was(b, r, c), z = ref_was(d, r, c);
                double product = which == 1 ? x * y : x * z, sum = product + (which == 1 ? z : y);
                if (which == 3) {
                    test_expect_value(bench, d, r, c, ref_max(x - y, 0));
                } else {
                    expect_fused(bench, d, r, c, product, which == 2 ? ref_max(sum, 0) : sum);
                }
            }
        }
        test_end(bench);
    }
}

BENCH_TEST(fused__axpy_adds_a_multiple) {
    for (uint32_t round = 0; round < ROUNDS; round++) {
        ptoisa_dtype from = test_dtype(bench, set_float);
        ptoisa_dtype to = test_chance(bench, 2) ? PTOISA_F32 : from;
        uint32_t rows, cols;
        test_begin(bench, PTOISA_A2A3, "TAXPY");
        shape(bench, &rows, &cols);
        test_tile *a = source(bench, from, rows, cols, TEST_PLAIN);
        test_tile *d = source(bench, to, rows, cols, TEST_PLAIN);
        d->role = TEST_WRITTEN;
        double x = test_number(bench, from, TEST_PLAIN);
        test_run(bench);
        ptoisa_taxpy(&bench->core, &d->tile, &a->tile, x);
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < cols; c++) {
                double product = x * ref_was(a, r, c);
                expect_fused(bench, d, r, c, product, product + ref_was(d, r, c));
            }
        }
        test_end(bench);
    }
}

BENCH_TEST(fused__leaky_and_parametric_relu_equal_the_reference) {
    for (uint32_t round = 0; round < 2 * ROUNDS; round++) {
        bool is_leaky = round % 2;
        ptoisa_dtype dtype = test_dtype(bench, set_float);
        uint32_t rows, cols;
        test_begin(bench, PTOISA_A2A3, is_leaky ? "TLRELU" : "TPRELU");
        shape(bench, &rows, &cols);
        test_tile *a = source(bench, dtype, rows, cols, TEST_ANY);
        test_tile *slope = source(bench, dtype, rows, cols, TEST_PLAIN);
        test_tile *t = test_vec(bench, dtype, rows, cols);
        test_tile *d = test_chance(bench, 2) ? a : test_vec(bench, dtype, rows, cols);
        d->role = TEST_WRITTEN;
        t->role = TEST_SCRATCH;
        double x = test_number(bench, dtype, TEST_PLAIN);
        test_run(bench);
        if (is_leaky) {
            ptoisa_tlrelu(&bench->core, &d->tile, &a->tile, x);
        } else {
            ptoisa_tprelu(&bench->core, &d->tile, &a->tile, &slope->tile, &t->tile);
        }
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < cols; c++) {
                double s = ref_was(a, r, c), m = is_leaky ? x : ref_was(slope, r, c);
                test_expect_value(bench, d, r, c, s > 0 ? s : ref_round(dtype, s * m));
            }
        }
        test_end(bench);
    }
}

BENCH_TEST(ternary__adds_and_subtracts) {
    for (uint32_t round = 0; round < 4 * ROUNDS; round++) {
        static const char *const names[4] = {"TADDC", "TSUBC", "TADDSC", "TSUBSC"};
        uint32_t which = round % 4, rows, cols;
        ptoisa_dtype dtype = test_dtype(bench, set_bin);
        test_numbers numbers = ref_is_float(dtype) ? TEST_PLAIN : TEST_ANY;
        test_begin(bench, PTOISA_A2A3, names[which]);
        shape(bench, &rows, &cols);
        test_tile *a = source(bench, dtype, rows, cols, numbers);
        test_tile *b = source(bench, dtype, rows, cols, numbers);
        test_tile *e = source(bench, dtype, rows, cols, numbers);
        test_tile *d = destination(bench, dtype, rows, cols, a, e);
        double x = test_number(bench, dtype, numbers);
        test_run(bench);
        const ptoisa_tile *dt = &d->tile, *at = &a->tile, *bt = &b->tile, *et = &e->tile;
        switch (which) {
        case 0: ptoisa_taddc(&bench->core, dt, at, bt, et); break;
        case 1: ptoisa_tsubc(&bench->core, dt, at, bt, et); break;
        case 2: ptoisa_taddsc(&bench->core, dt, at, x, et); break;
        default: ptoisa_tsubsc(&bench->core, dt, at, x, et); break;
        }
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < cols; c++) {
                double p = ref_was(a, r, c), q = which < 2 ? ref_was(b, r, c) : x;
                double s = ref_was(e, r, c);
                double first = which % 2 ? p - q : p + q;
                if (ref_is_float(dtype)) {
                    test_expect_near(bench, d, r, c, first + s, 1, ref_ulp(dtype, first));
                } else {
                    test_expect(bench, d, r, c, ref_wrap(dtype, (uint64_t)(int64_t)(first + s)), 0);
                }
            }
        }
        test_end(bench);
    }
}

// -- by hand --------------------------------------------------------------------------------------

// A row of numbers through a binary instruction.
static void expect_row(test_bench *bench, ptoisa_dtype dtype, const char *name, binary_fn run,
                       uint32_t count, const double *a, const double *b, const double *want) {
    test_begin(bench, PTOISA_A5, name);
    test_tile *ta = test_vec(bench, dtype, 1, count), *tb = test_vec(bench, dtype, 1, count);
    test_tile *d = test_vec(bench, dtype, 1, count);
    d->role = TEST_WRITTEN;
    for (uint32_t i = 0; i < count; i++) {
        test_put(ta, 0, i, a[i]);
        test_put(tb, 0, i, b[i]);
    }
    test_run(bench);
    run(&bench->core, &d->tile, &ta->tile, &tb->tile);
    for (uint32_t i = 0; i < count; i++) {
        test_expect_value(bench, d, 0, i, want[i]);
    }
    test_end(bench);
}

BENCH_TEST(special__max_and_min_keep_nan) {
    const double nan = (double)NAN, inf = (double)INFINITY;
    const double a[6] = {nan, 1, nan, -inf, inf, -inf}, b[6] = {1, nan, nan, nan, 5, inf};
    const double greater[6] = {nan, nan, nan, nan, inf, inf};
    const double less[6] = {nan, nan, nan, nan, 5, -inf};
    static const ptoisa_dtype dtypes[2] = {PTOISA_F16, PTOISA_F32};
    for (uint32_t i = 0; i < 2; i++) {
        expect_row(bench, dtypes[i], "TMAX", ptoisa_tmax, 6, a, b, greater);
        expect_row(bench, dtypes[i], "TMIN", ptoisa_tmin, 6, a, b, less);
        expect_row(bench, dtypes[i], "TPARTMAX", ptoisa_tpartmax, 6, a, b, greater);
        expect_row(bench, dtypes[i], "TPARTMIN", ptoisa_tpartmin, 6, a, b, less);
    }
}

BENCH_TEST(special__integers_wrap) {
    const double a[5] = {32767, -32768, 256, -32768, 181}, b[5] = {1, -1, 256, -1, 182};
    const double sum[5] = {-32768, 32767, 512, 32767, 363};
    const double difference[5] = {32766, -32767, 0, -32767, -1};
    const double product[5] = {32767, -32768, 0, -32768, -32594};
    expect_row(bench, PTOISA_I16, "TADD", ptoisa_tadd, 5, a, b, sum);
    expect_row(bench, PTOISA_I16, "TSUB", ptoisa_tsub, 5, a, b, difference);
    expect_row(bench, PTOISA_I16, "TMUL", ptoisa_tmul, 5, a, b, product);
}

static void trem(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *a,
                 const ptoisa_tile *b) {
    static uint8_t scratch[1 << 12];
    ptoisa_tile t = *a;
    t.data = scratch + (32 - (uintptr_t)scratch % 32) % 32;
    ptoisa_trem(core, d, a, b, &t);
}

static void tfmod(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *a,
                  const ptoisa_tile *b) {
    ptoisa_tfmod(core, d, a, b, NULL);
}

BENCH_TEST(special__integers_divided_by_nothing_are_nothing) {
    const double least = -2147483648.0;
    const double a[7] = {7, least, least, 0, -7, 7, -7}, b[7] = {0, 0, -1, 0, 2, -2, -2};
    const double rem[7] = {0, 0, 0, 0, 1, -1, -1}, mod[7] = {0, 0, 0, 0, -1, 1, -1};
    expect_row(bench, PTOISA_I32, "TREM", trem, 7, a, b, rem);
    expect_row(bench, PTOISA_I32, "TFMOD", tfmod, 7, a, b, mod);
    // A tile divided by a scalar, and a scalar by a tile.
    const double by[3] = {0, -1, 2}, quotient[3][2] = {{0, 0}, {-7, least}, {3, -1073741824.0}};
    for (uint32_t i = 0; i < 3; i++) {
        test_begin(bench, PTOISA_A2A3, "TDIVS");
        test_tile *s = test_vec(bench, PTOISA_I32, 1, 2), *d = test_vec(bench, PTOISA_I32, 1, 2);
        test_tile *e = test_vec(bench, PTOISA_I32, 1, 2);
        d->role = e->role = TEST_WRITTEN;
        test_put(s, 0, 0, by[i] == 0 ? 0 : 7);
        test_put(s, 0, 1, least);
        test_run(bench);
        ptoisa_tdivs(&bench->core, &d->tile, &s->tile, by[i]);
        ptoisa_tsdiv(&bench->core, &e->tile, least, &s->tile);
        test_expect(bench, d, 0, 0, quotient[i][0], 0);
        test_expect(bench, d, 0, 1, quotient[i][1], 0);
        test_expect(bench, e, 0, 0, by[i] == 0 ? 0 : -306783378, 0);
        test_expect(bench, e, 0, 1, 1, 0);
        test_end(bench);
    }
}

// Shifts by as much as the element has bits, or more, have no defined result, but must be safe.
BENCH_TEST(special__shifts_by_any_amount_are_safe) {
    for (uint32_t round = 0; round < 40; round++) {
        ptoisa_dtype dtype = test_dtype(bench, set_shift);
        test_begin(bench, PTOISA_A2A3, "shift");
        test_tile *a = source(bench, dtype, 2, 30, TEST_ANY);
        test_tile *b = source(bench, dtype, 2, 30, TEST_ANY), *d = test_vec(bench, dtype, 2, 30);
        d->role = TEST_WRITTEN;
        test_run(bench);
        (round % 2 ? ptoisa_tshl : ptoisa_tshr)(&bench->core, &d->tile, &a->tile, &b->tile);
        (round % 2 ? ptoisa_tshls : ptoisa_tshrs)(&bench->core, &d->tile, &a->tile,
                                                  test_in(bench, 0, 80));
        test_end(bench);
    }
}

BENCH_TEST(special__values_are_those_of_paper) {
    const double inf = (double)INFINITY, nan = (double)NAN;
    const double x[9] = {0, -0.0, inf, -inf, nan, -1, 1, 4, 100};
    const double want[8][9] = {
        {1, 1, inf, 0, nan, 0.36787944117144233, 2.718281828459045, 54.598150033144236, inf},
        {-inf, -inf, inf, nan, nan, nan, 0, 1.3862943611198906, 4.605170185988092},
        {0, -0.0, inf, nan, nan, nan, 1, 2, 10},
        {inf, inf, 0, nan, nan, nan, 1, 0.5, 0.1},
        {inf, -inf, 0, -0.0, nan, -1, 1, 0.25, 0.01},
        {0, 0, inf, inf, nan, 1, 1, 4, 100},
        {-0.0, 0, -inf, inf, nan, 1, -1, -4, -100},
        {0, 0, inf, 0, nan, 0, 1, 4, 100}};
    static const unary_fn runs[8] = {ptoisa_texp,   ptoisa_tlog, ptoisa_tsqrt, ptoisa_trsqrt,
                                     ptoisa_trecip, ptoisa_tabs, ptoisa_tneg,  ptoisa_trelu};
    static const char *const names[8] = {"TEXP",   "TLOG", "TSQRT", "TRSQRT",
                                         "TRECIP", "TABS", "TNEG",  "TRELU"};
    for (uint32_t which = 0; which < 8; which++) {
        for (uint32_t half = 0; half < 2; half++) {
            ptoisa_dtype dtype = half ? PTOISA_F16 : PTOISA_F32;
            test_begin(bench, PTOISA_A2A3, names[which]);
            test_tile *a = test_vec(bench, dtype, 1, 9), *d = test_vec(bench, dtype, 1, 9);
            d->role = TEST_WRITTEN;
            for (uint32_t i = 0; i < 9; i++) {
                test_put(a, 0, i, x[i]);
            }
            test_run(bench);
            runs[which](&bench->core, &d->tile, &a->tile);
            for (uint32_t i = 0; i < 9; i++) {
                // 1 / sqrt(-0) and max(-0, 0) may have either sign.
                bool is_free = (which == 3 || which == 7) && i == 1;
                test_expect(bench, d, 0, i,
                            is_free ? copysign(want[which][i], ref_now(d, 0, 1)) : want[which][i],
                            which < 5 && which != 2 && want[which][i] != 0 ? 3 : 0);
            }
            test_end(bench);
        }
    }
}

// What the simulator takes: i16 and i32 with slopes that are integers, and their logarithms, which
// are computed in f32.
BENCH_TEST(simulator__integers_have_slopes_and_logarithms) {
    static const char *const names[3] = {"TLRELU", "TPRELU", "TLOG"};
    for (uint32_t round = 0; round < 900; round++) {
        uint32_t which = round % 3, rows = test_size(bench, 9), cols = test_size(bench, 70);
        ptoisa_dtype dtype = test_chance(bench, 2) ? PTOISA_I16 : PTOISA_I32;
        test_begin(bench, PTOISA_A2A3, names[which]);
        bench->core.is_as_simulator = true;
        test_tile *s = test_vec(bench, dtype, rows, cols),
                  *slope = test_vec(bench, dtype, rows, cols);
        test_tile *d = test_vec(bench, dtype, rows, cols), *t = test_vec(bench, dtype, 1, 1);
        test_fill(bench, s, TEST_ANY);
        test_fill(bench, slope, TEST_ANY);
        double x = test_number(bench, dtype, TEST_ANY);
        d->role = TEST_WRITTEN;
        t->role = TEST_SCRATCH;
        test_run(bench);
        switch (which) {
        case 0: ptoisa_tlrelu(&bench->core, &d->tile, &s->tile, x); break;
        case 1: ptoisa_tprelu(&bench->core, &d->tile, &s->tile, &slope->tile, &t->tile); break;
        default: ptoisa_tlog(&bench->core, &d->tile, &s->tile); break;
        }
        for (uint32_t i = 0; i < rows * cols; i++) {
            uint32_t r = i / cols, c = i % cols;
            double a = ref_was(s, r, c), by = which == 0 ? x : ref_was(slope, r, c);
            if (which == 2 && a > 0) {
                double got = ref_now(d, r, c), slack = 4e-6;
                bool is_near = got == trunc(log(a) - slack) || got == trunc(log(a) + slack);
                test_expect(bench, d, r, c, is_near ? got : trunc(log(a)), 0);
                continue;
            }
            double want = which == 2 ? ref_least(dtype)
                          : a > 0    ? a
                                     : ref_binary(PTOISA_TMUL, dtype, a, by);
            test_expect(bench, d, r, c, want, 0);
        }
        test_end(bench);
    }
}

// Such an instruction has tiles of one size, too.
BENCH_TEST(simulator__integers_of_other_sizes_are_refused) {
    test_begin(bench, PTOISA_A2A3, "TLRELU");
    bench->core.is_as_simulator = true;
    test_tile *s = test_vec(bench, PTOISA_I32, 4, 8), *d = test_vec(bench, PTOISA_I32, 4, 8);
    test_fill(bench, s, TEST_ANY);
    s->tile.valid_cols = 7;
    test_run(bench);
    ptoisa_tlrelu(&bench->core, &d->tile, &s->tile, 3);
#if PTOISA_CHECKED_DEFAULT
    assert_int_equal(bench->fault_count, 1);
    assert_string_equal(bench->fault, "TLRELU: src0 has 4 x 7 valid elements, and 4 x 8 are read");
    bench->fault_count = 0;
    d->role = TEST_READ;  // not written
#endif
    test_end(bench);
}
