// The instructions of matrix products: every triple of types, random sizes with garbage around what is
// valid, against three loops in double. Products of f16 and bf16 are exact in f32, so an error comes from
// sums only. isa_product_test.c has the code under them, bit by bit, in all sizes and to the ends of types.

#include "isa_test.h"

enum { ROUNDS = 150 };

// Types of c, and of a and b.
static const ptoisa_dtype triples[4][2] = {{PTOISA_F32, PTOISA_F16},
                                           {PTOISA_F32, PTOISA_BF16},
                                           {PTOISA_F32, PTOISA_F32},
                                           {PTOISA_I32, PTOISA_I8}};

static uint32_t whole(uint32_t size, uint32_t unit) {
    return (size + unit - 1) / unit * unit;
}

typedef struct operands {
    test_tile *a, *b, *c, *old, *bias;
    uint32_t m, k, n;
} operands;

// Tiles as the machine wants them: Left is Zz on A2/A3 and Nz on A5, Right Zn, Acc Nz.
static operands operands_make(test_bench *bench, ptoisa_family family, const ptoisa_dtype *triple,
                              uint32_t m, uint32_t k, uint32_t n) {
    operands o;
    ptoisa_dtype dtype = triple[1];
    uint32_t block = 32 / ref_size(dtype);
    uint32_t extra = test_chance(bench, 3) ? 1 : 0;
    o.m = m, o.k = k, o.n = n;
    o.a = test_tile_make(bench, dtype, PTOISA_LEFT, family == PTOISA_A5 ? PTOISA_NZ : PTOISA_ZZ,
                         whole(m, 16), whole(k, block) + extra * block, m, k);
    o.b = test_tile_make(bench, dtype, PTOISA_RIGHT, PTOISA_ZN, whole(k, block),
                         whole(n, 16) + extra * 16, k, n);
    o.c = test_tile_make(bench, triple[0], PTOISA_ACC, PTOISA_NZ, whole(m, 16), whole(n, 16), m, n);
    o.old = test_tile_make(bench, triple[0], PTOISA_ACC, PTOISA_NZ, whole(m, 16) + extra * 16,
                           whole(n, 16), m, n);
    o.bias = test_tile_make(bench, triple[0], PTOISA_BIAS, PTOISA_ROW_MAJOR, 1, whole(n, 16), 1, n);
    o.c->role = TEST_WRITTEN;
    test_fill(bench, o.a, triple[0] == PTOISA_I32 ? TEST_ANY : TEST_PLAIN);
    test_fill(bench, o.b, triple[0] == PTOISA_I32 ? TEST_ANY : TEST_PLAIN);
    test_fill(bench, o.c, triple[0] == PTOISA_I32 ? TEST_ANY : TEST_PLAIN);
    test_fill(bench, o.old, triple[0] == PTOISA_I32 ? TEST_ANY : TEST_PLAIN);
    test_fill(bench, o.bias, triple[0] == PTOISA_I32 ? TEST_ANY : TEST_PLAIN);
    return o;
}

// c = a b + what `start` holds: nothing, an accumulator, or one row for all.
static void expect_product(const test_bench *bench, const operands *o, const test_tile *start) {
    ptoisa_dtype dtype = (ptoisa_dtype)o->c->tile.dtype;
    TEST_GRID(uint32_t, r, o->m, c, o->n) {
        double sum = 0, magnitude = 0;
        for (uint32_t i = 0; i < o->k; i++) {
            double product = ref_was(o->a, r, i) * ref_was(o->b, i, c);
            sum += product;
            magnitude += fabs(product);
        }
        double first = start ? ref_was(start, start == o->bias ? 0 : r, c) : 0;
        if (dtype == PTOISA_I32) {
            test_expect(bench, o->c, r, c,
                        ref_wrap(dtype, (uint64_t)((int64_t)sum + (int64_t)first)), 0);
        } else {
            double error = (o->k * magnitude + fabs(sum + first)) * 0x1p-24;
            test_expect_near(bench, o->c, r, c, sum + first, 1e-9, error);
        }
    }
}

// 0: product, 1: added to c itself, 2: to another accumulator, 3: to a bias.
static void run(test_bench *bench, const operands *o, uint32_t form, bool is_vector) {
    const ptoisa_tile *a = &o->a->tile, *b = &o->b->tile, *c = &o->c->tile;
    ptoisa_core *core = &bench->core;
    switch (form) {
    case 0: (is_vector ? ptoisa_tgemv : ptoisa_tmatmul)(core, c, a, b); break;
    case 1: (is_vector ? ptoisa_tgemv_acc : ptoisa_tmatmul_acc)(core, c, c, a, b); break;
    case 2:
        (is_vector ? ptoisa_tgemv_acc : ptoisa_tmatmul_acc)(core, c, &o->old->tile, a, b);
        break;
    default:
        (is_vector ? ptoisa_tgemv_bias : ptoisa_tmatmul_bias)(core, c, a, b, &o->bias->tile);
        break;
    }
}

static void product_round(test_bench *bench, uint32_t round, uint32_t m, uint32_t k, uint32_t n) {
    static const char *const names[2][4] = {
        {"TMATMUL", "TMATMUL_ACC in place", "TMATMUL_ACC", "TMATMUL_BIAS"},
        {"TGEMV", "TGEMV_ACC in place", "TGEMV_ACC", "TGEMV_BIAS"}};
    uint32_t form = round / 4 % 4;
    bool is_vector = m == 1 && test_chance(bench, 2);
    ptoisa_family family = round % 3 ? PTOISA_A2A3 : PTOISA_A5;
    test_begin(bench, family, names[is_vector][form]);
    operands o = operands_make(bench, family, triples[round % 4], m, k, n);
    test_run(bench);
    run(bench, &o, form, is_vector);
    expect_product(bench, &o, form == 0 ? NULL : form == 1 ? o.c : form == 2 ? o.old : o.bias);
    assert_true(ptoisa_cycles(&bench->core) == (uint64_t)m * k * n);
    test_end(bench);
}

BENCH_TEST(matmul__matches_three_loops) {
    for (uint32_t round = 0; round < 4 * ROUNDS; round++) {
        product_round(bench, round, test_size(bench, 40), test_size(bench, 90),
                      test_size(bench, 70));
    }
    for (uint32_t round = 0; round < 2 * ROUNDS; round++) {
        product_round(bench, round, 1, test_size(bench, 90), test_size(bench, 70));
    }
}

// NaN and infinities spoil their own row or column, and garbage outside the valid region nothing.
ROUNDS_TEST(matmul__keeps_nan_in_its_row, 12) {
    uint32_t m = 7, k = 33, n = 20, at = test_in(bench, 0, 6);
    test_begin(bench, PTOISA_A2A3, "TMATMUL of NaN");
    operands o = operands_make(bench, PTOISA_A2A3, triples[round % 3], m, k, n);
    bool is_nan = round % 2;
    for (uint32_t i = 0; i < k * n; i++) {
        test_put(o.b, i / n, i % n, 1 + i % 3);
    }
    test_put(o.a, at, test_in(bench, 0, k - 1), is_nan ? (double)NAN : (double)INFINITY);
    test_run(bench);
    run(bench, &o, 0, false);
    for (uint32_t i = 0; i < m * n; i++) {
        double got = ref_now(o.c, i / n, i % n);
        assert_true(i / n == at ? (is_nan ? isnan(got) : isinf(got) && got > 0)
                                : isfinite(got) != 0);
    }
}
