// Comparisons to bit masks, and selections by them.
//
// A mask is a row of bytes for each row (on A5 of 32-bit words), the lowest bit the first column.
// Columns are multiples of 8 as the device wants them; where they are not, only the bits of valid
// columns count.

#include "isa_test.h"

enum { ROUNDS = 2000, SIDE = 150 };

#define SET(name) PTOISA_SET(PTOISA_##name)

static const ptoisa_compare modes[6] = {PTOISA_EQ, PTOISA_NE, PTOISA_LT,
                                        PTOISA_LE, PTOISA_GT, PTOISA_GE};

static const uint32_t set_all =
    SET(F16) | SET(BF16) | SET(F32) | SET(I8) | SET(I16) | SET(I32) | SET(U8) | SET(U16) | SET(U32);

static test_tile *mask_make(test_bench *bench, ptoisa_family family, uint32_t rows, uint32_t cols) {
    return family == PTOISA_A5 ? test_vec(bench, PTOISA_U32, rows, (cols + 31) / 32)
                               : test_vec(bench, PTOISA_U8, rows, (cols + 7) / 8);
}

// A core that takes all types and modes: an A5, or one as the simulator.
static void begin_all(test_bench *bench, const char *what) {
    const bool is_as_simulator = test_chance(bench, 2);
    test_begin(bench, is_as_simulator ? PTOISA_A2A3 : PTOISA_A5, what);
    bench->core.is_as_simulator = is_as_simulator;
}

// On such a core masks are bytes or words.
static test_tile *mask_any(test_bench *bench, uint32_t rows, uint32_t cols) {
    return mask_make(bench, test_chance(bench, 2) ? PTOISA_A5 : PTOISA_A2A3, rows, cols);
}

// The bit of column c. A word is four bytes, the lowest first.
static bool bit_now(const test_tile *mask, uint32_t r, uint32_t c) {
    uint32_t bits = ref_size((ptoisa_dtype)mask->tile.dtype) * 8;
    return ref_now_bits(mask, r, c / bits) >> c % bits & 1;
}

static bool bit_was(const test_tile *mask, uint32_t r, uint32_t c) {
    uint32_t bits = ref_size((ptoisa_dtype)mask->tile.dtype) * 8;
    return ref_was_bits(mask, r, c / bits) >> c % bits & 1;
}

// Few distinct numbers, so that equal ones are frequent; and special ones.
static void fill(test_bench *bench, test_tile *t) {
    TEST_GRID(uint32_t, r, t->tile.valid_rows, c, t->tile.valid_cols) {
        double x = test_in(bench, 0, 3);
        bool is_special = test_chance(bench, 8);
        test_put(t, r, c, is_special ? test_special(bench, (ptoisa_dtype)t->tile.dtype) : x);
    }
}

static void expect_mask(const test_bench *bench, const test_tile *mask, const test_tile *a,
                        const test_tile *b, double x, ptoisa_compare mode) {
    for (uint32_t r = 0; r < a->tile.valid_rows; r++) {
        for (uint32_t c = 0; c < a->tile.valid_cols; c++) {
            bool want = ref_compare(mode, ref_was(a, r, c), b ? ref_was(b, r, c) : x);
            if (bit_now(mask, r, c) != want) {
                test_fail_at(bench, a, r, c, !want, want);
            }
        }
        const uint32_t bits = ref_size((ptoisa_dtype)mask->tile.dtype) * 8;
        for (uint32_t c = a->tile.valid_cols; c < mask->tile.valid_cols * bits; c++) {
            assert_false(bit_now(mask, r, c));
        }
    }
}

static void compare_round(test_bench *bench, uint32_t round, bool is_scalar, bool is_all) {
    ptoisa_family family = round % 2 || is_all ? PTOISA_A5 : PTOISA_A2A3;
    ptoisa_dtype dtype = test_dtype(bench, is_all ? set_all
                                                  : SET(F16) | SET(F32) | SET(I32) |
                                                        (is_scalar ? SET(I16) | SET(U16) : 0));
    // Integers can only be compared for equality on A2/A3.
    bool is_eq_only = family == PTOISA_A2A3 && !ref_is_float(dtype);
    ptoisa_compare mode = is_eq_only ? PTOISA_EQ : modes[test_in(bench, 0, 5)];
    uint32_t rows = test_size(bench, 12);
    uint32_t cols = is_all ? test_size(bench, SIDE) : 8 * test_size(bench, SIDE / 8);
    const char *what = is_scalar ? "TCMPS" : "TCMP";
    if (is_all) {
        begin_all(bench, what);
    } else {
        test_begin(bench, family, what);
    }
    test_tile *a = test_vec(bench, dtype, rows, cols), *b = test_vec(bench, dtype, rows, cols);
    test_tile *mask = is_all ? mask_any(bench, rows, cols) : mask_make(bench, family, rows, cols);
    fill(bench, a);
    fill(bench, b);
    mask->role = TEST_WRITTEN;
    test_run(bench);
    double x = ref_was(b, 0, 0);
    if (is_scalar) {
        ptoisa_tcmps(&bench->core, &mask->tile, &a->tile, x, mode);
    } else {
        ptoisa_tcmp(&bench->core, &mask->tile, &a->tile, &b->tile, mode);
    }
    expect_mask(bench, mask, a, is_scalar ? NULL : b, x, mode);
    test_end(bench);
}

BENCH_TEST(compare__sets_the_bits) {
    for (uint32_t round = 0; round < 2 * ROUNDS; round++) {
        compare_round(bench, round, round % 4 < 2, false);
    }
}

BENCH_TEST(compare__takes_all_types_and_modes_on_a5_and_as_the_simulator) {
    for (uint32_t round = 0; round < 2 * ROUNDS; round++) {
        compare_round(bench, round, round % 2, true);
    }
}

ROUNDS_TEST(select__takes_one_or_the_other, 2 * ROUNDS) {
    bool is_scalar = round % 2, is_all = round % 8 > 5;  // with bytes, as the simulator
    ptoisa_dtype dtype = test_dtype(bench, set_all & ~(is_all ? 0 : SET(I8) | SET(U8)));
    uint32_t rows = test_size(bench, 12), cols = 8 * test_size(bench, SIDE / 8);
    ptoisa_family family = !is_all && test_chance(bench, 2) ? PTOISA_A5 : PTOISA_A2A3;
    test_begin(bench, family, is_scalar ? "TSELS" : "TSEL");
    bench->core.is_as_simulator = is_all;
    // Valid elements are random bits: NaN of any kind must come through.
    test_tile *a = test_vec(bench, dtype, rows, cols), *b = test_vec(bench, dtype, rows, cols);
    test_tile *mask = mask_make(bench, family, rows, cols);
    test_tile *t = test_scratch(test_whole(bench, PTOISA_U8, 1, 32));
    uint32_t where = test_in(bench, 0, 3);
    test_tile *d = where == 0                 ? a
                   : where == 1 && !is_scalar ? b
                                              : test_vec(bench, dtype, rows, cols);
    d->role = TEST_WRITTEN;
    double x = test_number(bench, dtype, TEST_ANY);
    test_run(bench);
    if (is_scalar) {
        ptoisa_tsels(&bench->core, &d->tile, &mask->tile, &a->tile, &t->tile, x);
    } else {
        ptoisa_tsel(&bench->core, &d->tile, &mask->tile, &a->tile, &b->tile, &t->tile);
    }
    TEST_GRID(uint32_t, r, rows, c, cols) {
        if (bit_was(mask, r, c)) {
            test_expect_bits(bench, d, r, c, ref_was_bits(a, r, c));
        } else if (is_scalar) {
            test_expect(bench, d, r, c, x, 0);
        } else {
            test_expect_bits(bench, d, r, c, ref_was_bits(b, r, c));
        }
    }
}

// A comparison and the selection by its mask, with columns that fill no whole byte.
ROUNDS_TEST(select__undoes_a_comparison_with_a_tail, ROUNDS) {
    uint32_t rows = test_size(bench, 12), cols = test_size(bench, SIDE);
    ptoisa_dtype dtype = round % 2 ? PTOISA_F16 : PTOISA_F32;
    ptoisa_family family = test_chance(bench, 2) ? PTOISA_A5 : PTOISA_A2A3;
    test_begin(bench, family, "TCMP, TSEL");
    test_tile *a = test_vec(bench, dtype, rows, cols), *b = test_vec(bench, dtype, rows, cols);
    test_tile *mask = test_written(mask_make(bench, family, rows, cols)),
              *d = test_written(test_vec(bench, dtype, rows, cols));
    test_tile *t = test_scratch(test_whole(bench, PTOISA_U8, 1, 32));
    fill(bench, a);
    fill(bench, b);
    test_run(bench);
    ptoisa_tcmp(&bench->core, &mask->tile, &a->tile, &b->tile, PTOISA_GT);
    ptoisa_tsel(&bench->core, &d->tile, &mask->tile, &a->tile, &b->tile, &t->tile);
    TEST_GRID(uint32_t, r, rows, c, cols) {
        bool is_greater = ref_was(a, r, c) > ref_was(b, r, c);
        test_expect_bits(bench, d, r, c, ref_was_bits(is_greater ? a : b, r, c));
    }
}
