// Operations of tile kernels that multiply matrices, convert, move and pick: each on random shapes,
// full and cut off, with tensors laid out in four ways, against a plain loop.

#include "kernel_reference.h"

static const ptowsp_dtype floats[] = {PTOWSP_F32, PTOWSP_F16, PTOWSP_BF16};
static const ptowsp_dtype all[] = {PTOWSP_F32, PTOWSP_F16, PTOWSP_BF16, PTOWSP_I32, PTOWSP_I16,
                                   PTOWSP_U32, PTOWSP_U16, PTOWSP_I8,   PTOWSP_U8};
enum { FLOAT_COUNT = 3, ALL_COUNT = 9 };

// -- matrix products ------------------------------------------------------------------------------

static ptowsp_dtype product_type(int which) {
    return which == 3 ? PTOWSP_I8 : floats[which];
}

static void scene_matmul(kt *t, int which) {
    ptowsp_dtype dtype = product_type(which);
    int64_t m = kt_pick_size(t), k = kt_pick_size(t), n = kt_pick_size(t);
    kt_value a = kt_in(t, dtype, m, k), b = kt_in(t, dtype, k, n);
    kt_keep(t, kt_matmul(t, a, b));
}

// acc is a product, a parameter, or a product that something else reads, too.
static void scene_matmul_acc(kt *t, int which) {
    ptowsp_dtype dtype = product_type(which % 4), sum = which % 4 == 3 ? PTOWSP_I32 : PTOWSP_F32;
    int64_t m = kt_pick_size(t), k = kt_pick_size(t), n = kt_pick_size(t), k2 = kt_pick_size(t);
    kt_value a = kt_in(t, dtype, m, k), b = kt_in(t, dtype, k, n);
    kt_value c = kt_in(t, dtype, m, k2), d = kt_in(t, dtype, k2, n);
    kt_value acc = which / 4 == 1 ? kt_in(t, sum, m, n) : kt_matmul(t, a, b);
    kt_value result = kt_matmul_acc(t, acc, c, d);
    if (which / 4 == 2) {
        kt_keep(t, kt_add(t, acc, acc));
    }
    if (which / 4 == 3) {
        result = kt_matmul_acc(t, result, a, b);
        kt_keep(t, kt_neg(t, result));
    }
    kt_keep(t, result);
}

// A bias from a parameter, from a value, and as an addition that may be fused; with relu behind it,
// stored as it is or narrowed.
// To a part of a parameter that nothing else needs.
static void scene_matmul_acc_slice(kt *t, int which) {
    kt_value a = kt_in(t, PTOWSP_F16, 16, 24), b = kt_in(t, PTOWSP_F16, 24, 40);
    kt_value c = kt_in(t, PTOWSP_F32, 48, 40);
    kt_value part = kt_slice(t, c, which == 0 ? 0 : 8, 0, 16, 40);
    if (part.valid_rows != a.valid_rows) {
        kt_keep(t, c);
        return;
    }
    kt_keep(t, kt_matmul_acc(t, part, a, b));
}

static void scene_matmul_bias(kt *t, int which) {
    ptowsp_dtype dtype = product_type(which % 4), sum = which % 4 == 3 ? PTOWSP_I32 : PTOWSP_F32;
    int64_t m = kt_pick_size(t), k = kt_pick_size(t), n = kt_pick_size(t);
    kt_value a = kt_in(t, dtype, m, k), b = kt_in(t, dtype, k, n);
    kt_value bias = kt_in(t, sum, 1, n);
    if (which / 4 == 1) {
        bias = kt_add(t, bias, kt_const(t, 2));
    }
    // On a square product the vector is a value per row, and no bias.
    kt_value result =
        which / 8 == 0 ? kt_matmul_bias(t, a, b, bias) : kt_add(t, kt_matmul(t, a, b), bias);
    if (which / 16 == 1) {
        result = kt_relu(t, result);
    }
    kt_keep(t, result);
    if (sum == PTOWSP_F32) {
        kt_value again = kt_relu(t, kt_add(t, kt_matmul(t, a, b), kt_const(t, -1)));
        kt_keep_as(t, kt_relu(t, kt_matmul(t, a, b)), PTOWSP_F16);
        kt_keep_as(t, kt_matmul(t, a, b), PTOWSP_BF16);
        kt_keep_as(t, again, PTOWSP_F16);
    }
}

// k beyond what L0 holds at once is cut up; the pieces may end anywhere.
static void scene_matmul_long(kt *t, int which) {
    static const int64_t depths[] = {513, 1000, 1025, 2048, 3000, 4095};
    ptowsp_dtype dtype = product_type(which % 4);
    int64_t m = 1 + (int64_t)(test_random(&t->state) % 20);
    int64_t n = 1 + (int64_t)(test_random(&t->state) % 20), k = depths[which / 4];
    // Both factors have to fit L1, in boxes of 16 rows or columns.
    m = k > 2048 && m > 16 ? 16 : m;
    n = k > 2048 && n > 16 ? 16 : n;
    kt_value a = kt_in(t, dtype, m, k), b = kt_in(t, dtype, k, n);
    kt_value acc = kt_matmul(t, a, b);
    kt_keep(t, acc);
    if (k < 2000) {
        kt_keep(t, kt_matmul_bias(t, a, b,
                                  kt_in(t, dtype == PTOWSP_I8 ? PTOWSP_I32 : PTOWSP_F32, 1, n)));
    }
}

TEST(ops__matmul_deeper_than_l0_computes_as_the_reference) {
    kt_config config = kt_any(test_seed());
    TEST_GRID(int, which, 24, i, 4) {
        config.seed++;
        config.is_partial = i % 2 != 0;
        config.is_fused = i / 2 != 0;
        config.is_integer = which % 2 != 0;
        kt t = kt_begin(config);
        scene_matmul_long(&t, which);
        kt_end(&t);
    }
}

// Factors that are always full: 32 x 1030 f16 are two panels, the second of them short.
TEST(ops__matmul_of_full_factors_deeper_than_l0_computes_as_the_reference) {
    kt t = kt_begin(kt_any(1));
    kt_value a = kt_full(&t, PTOWSP_F16, 32, 1030, 0.5);
    kt_keep(&t, kt_matmul(&t, a, kt_full(&t, PTOWSP_F16, 1030, 16, 2)));
    kt_end(&t);
}

// Factors that are results, slices, transposes; products of products.
static void scene_factors(kt *t, int which) {
    ptowsp_dtype dtype = floats[which];
    int64_t m = kt_pick_size(t), k = kt_pick_size(t), n = kt_pick_size(t);
    kt_value a = kt_in(t, dtype, m + 3, k + 5), b = kt_in(t, dtype, n, k);
    kt_value part = kt_slice(t, a, 1, 2, m, k);
    // A tail that ends elsewhere than b's does not go with it.
    if (part.valid_cols == b.valid_cols && part.valid_rows > 0) {
        kt_keep(t, kt_matmul(t, part, kt_transpose(t, b)));
    }
    kt_value x = kt_in(t, dtype, m, k), y = kt_in(t, dtype, k, n);
    kt_value two = kt_mul(t, x, kt_const(t, 2));
    kt_keep(t, kt_matmul(t, two, y));
    if (dtype == PTOWSP_F32) {
        kt_value z = kt_in(t, dtype, n, k);
        kt_value product = kt_matmul(t, x, y);
        kt_keep(t, kt_matmul(t, product, z));
        kt_keep(t, kt_exp(t, kt_mul(t, product, kt_const(t, 1e-3))));
    }
    kt_keep(t, x.valid_rows == 1 ? x : kt_neg(t, x));
}

// -- conversions ----------------------------------------------------------------------------------

typedef struct pair {
    ptowsp_dtype from, to;
} pair;

static const pair pairs[] = {
    {PTOWSP_F32, PTOWSP_F16},  {PTOWSP_F32, PTOWSP_BF16}, {PTOWSP_F32, PTOWSP_I32},
    {PTOWSP_F32, PTOWSP_I16},  {PTOWSP_F16, PTOWSP_F32},  {PTOWSP_F16, PTOWSP_I32},
    {PTOWSP_F16, PTOWSP_I16},  {PTOWSP_F16, PTOWSP_I8},   {PTOWSP_F16, PTOWSP_U8},
    {PTOWSP_BF16, PTOWSP_F32}, {PTOWSP_BF16, PTOWSP_I32}, {PTOWSP_I16, PTOWSP_F32},
    {PTOWSP_I16, PTOWSP_F16},  {PTOWSP_I32, PTOWSP_F32},  {PTOWSP_I32, PTOWSP_F16},
    {PTOWSP_I32, PTOWSP_I16},  {PTOWSP_U8, PTOWSP_F16},   {PTOWSP_I8, PTOWSP_F16},
};
enum { PAIR_COUNT = sizeof pairs / sizeof pairs[0] };

static const double halves[] = {
    0.5, -0.5, 1.5,  -1.5, 2.5,      -2.5,      0.49999997, 127.5, -128.5, 255.5, 32767.5, -32768.5,
    1e9, -1e9, 3e38, NAN,  INFINITY, -INFINITY, 0.0,        -0.0,  65519,  65520, 16777217};
enum { HALF_COUNT = sizeof halves / sizeof halves[0] };

static void scene_cvt(kt *t, int which) {
    pair p = pairs[which % PAIR_COUNT];
    ptowsp_round round = (ptowsp_round)(which / PAIR_COUNT);
    kt_value x = kt_of_shape(t, p.from);
    if (kt_is_float(p.from)) {
        for (int64_t i = 0; i < x.valid_cols && i < HALF_COUNT; i++) {
            kt_fill(t, x, 0, i, halves[i]);
        }
    }
    if (p.from == PTOWSP_I32 && p.to == PTOWSP_I16) {
        kt_fill(t, x, 0, 0, 40000);
        kt_fill(t, x, x.valid_rows - 1, x.valid_cols - 1, -2147483648.0);
    }
    kt_keep(t, kt_cvt(t, x, p.to, round));
}

static void scene_quantize(kt *t, int which) {
    // A column is no row-major tile, and TQUANT takes those only.
    kt_value x = kt_in(t, PTOWSP_F32, kt_pick_size(t), 1 + kt_pick_size(t));
    kt_value scale = which % 2 ? kt_in(t, PTOWSP_F32, 1, x.rows) : kt_in(t, PTOWSP_F32, x.rows, 1);
    kt_value q = kt_quantize(t, x, scale);
    kt_keep(t, q);
    kt_value offset = which % 2 ? kt_in(t, PTOWSP_F32, x.rows, 1) : kt_in(t, PTOWSP_F32, 1, x.rows);
    kt_keep(t, kt_dequantize(t, kt_in(t, PTOWSP_I8, x.rows, x.cols), scale, offset));
    kt_keep(t, kt_dequantize(t, kt_in(t, PTOWSP_I16, x.rows, x.cols), scale, offset));
    kt_keep(t, kt_dequantize(t, q, scale, offset));
}

// -- moving ---------------------------------------------------------------------------------------

static void scene_transpose(kt *t, int which) {
    kt_value x = kt_of_shape(t, all[which]);
    kt_value y = kt_transpose(t, x);
    kt_keep(t, y);
    kt_keep(t, kt_transpose(t, y));
    if (all[which] == PTOWSP_F32) {
        kt_keep(t, kt_add(t, kt_transpose(t, kt_neg(t, x)), y));
    }
}

// Slices of parameters anywhere; of values where TEXTRACT reaches: from whole blocks on.
static void scene_slice(kt *t, int which) {
    kt_value x = kt_of_shape(t, all[which]);
    int64_t row = test_random_in(&t->state, 0, x.rows - 1);
    int64_t col = test_random_in(&t->state, 0, x.cols - 1);
    int64_t rows = test_random_in(&t->state, 1, x.rows - row);
    int64_t cols = test_random_in(&t->state, 1, x.cols - col);
    kt_keep(t, kt_slice(t, x, row, col, rows, cols));
    kt_keep(t, kt_slice(t, x, 0, 0, x.rows, x.cols));
    int64_t block = 32 / ptowsp_dtype_size(x.dtype);
    if (x.cols > 1) {
        col = col / block * block;
    } else {
        row = row / block * block;
    }
    rows = test_random_in(&t->state, 1, x.rows - row);
    cols = test_random_in(&t->state, 1, x.cols - col);
    bool is_sum = all[which] != PTOWSP_I8 && all[which] != PTOWSP_U8 && all[which] != PTOWSP_U16 &&
                  all[which] != PTOWSP_U32;
    if (is_sum && (cols > 1 || x.cols == 1)) {
        kt_value y = kt_add(t, x, x);
        kt_keep(t, kt_slice(t, y, row, col, rows, cols));
        kt_keep(t, y);
    }
}

// A column, taken out of a value.
static void scene_column(kt *t, int which) {
    static const ptowsp_dtype types[] = {PTOWSP_F32, PTOWSP_F16, PTOWSP_I32, PTOWSP_I16,
                                         PTOWSP_BF16};
    kt_value x = kt_of_shape(t, types[which]);
    kt_value y = kt_add(t, x, x);
    int64_t block = 32 / ptowsp_dtype_size(x.dtype);
    int64_t col = test_random_in(&t->state, 0, x.cols - 1) / block * block;
    kt_keep(t, kt_slice(t, y, 0, col, x.rows, 1));
    kt_keep(t, y);
}

static void scene_load(kt *t, int which) {
    kt_value x = kt_inout(t, PTOWSP_F32, kt_pick_size(t), kt_pick_size(t));
    kt_value once = kt_load(x), twice = kt_load(x);
    kt_value sum = kt_add(t, kt_mul(t, once, twice), x);
    kt_store_to(t, kt_param_of(t, x), sum, false);
    (void)which;
}

// Reading an inout parameter gives what was there when the task began, wherever its reader stands.
static void scene_inout(kt *t, int which) {
    int64_t m = 1 + kt_pick_size(t) / 2, k = 1 + kt_pick_size(t) / 2;
    kt_value y = kt_inout(t, PTOWSP_F32, m, k), w = kt_in(t, PTOWSP_F32, k, m), seen = y;
    switch (which) {
    case 0: seen = kt_slice(t, y, 0, 0, m, k); break;
    case 1: seen = kt_cvt(t, y, PTOWSP_F32, PTOWSP_ROUND_NEAREST); break;
    case 2: seen = kt_transpose(t, kt_transpose(t, y)); break;
    case 3: seen = kt_neg(t, kt_neg(t, y)); break;
    default: break;
    }
    kt_store_to(t, kt_param_of(t, y), kt_add(t, kt_in(t, PTOWSP_F32, m, k), kt_const(t, 1)),
                which % 2 != 0);
    if (which < 4) {
        kt_keep(t, kt_matmul(t, seen, w));
    }
    if (which > 0) {  // a slice that only a product reads is loaded where that stands
        kt_keep(t, kt_slice(t, which < 4 ? seen : kt_abs(t, y), 0, 0, (m + 1) / 2, k));
        kt_keep(t, kt_neg(t, seen));
    }
    kt_keep(t, kt_transpose(t, y));
}

// Both cores use one parameter: the product goes there, or comes from there, while a vector
// instruction reads or writes it; no tile goes between the two.
static void scene_shared(kt *t, int which) {
    int64_t m = kt_pick_size(t), k = kt_pick_size(t), n = kt_pick_size(t);
    ptowsp_dtype dtype = which == 2 ? PTOWSP_F16 : PTOWSP_F32;
    if (which < 4) {
        kt_value x = kt_inout(t, dtype, m, n);
        kt_value product = kt_matmul(t, kt_in(t, PTOWSP_F16, m, k), kt_in(t, PTOWSP_F16, k, n));
        kt_keep(t, kt_abs(t, x));
        if (which == 3) {
            product = kt_relu(t, product);
        }
        kt_store_to(t, kt_param_of(t, x), product, which == 1);
        return;
    }
    kt_value x = kt_inout(t, PTOWSP_F32, m, k);
    kt_keep(t, kt_matmul(t, x, kt_in(t, PTOWSP_F32, k, n)));
    kt_store_to(t, kt_param_of(t, x), kt_in(t, PTOWSP_F32, m, k), which == 5);
}

TEST(ops__both_cores_may_use_a_parameter) {
    kt_config config = kt_any(test_seed());
    config.is_integer = true;
    config.is_fused = true;
    for (int which = 0; which < 6; which++) {
        config.seed++;
        kt_play(scene_shared, which, 4, config);
    }
}

static void scene_full(kt *t, int which) {
    int64_t rows = kt_pick_size(t), cols = kt_pick_size(t);
    double x = all[which] == PTOWSP_U8 || all[which] == PTOWSP_U16 || all[which] == PTOWSP_U32
                   ? 77.9
                   : -2.7;
    kt_keep(t, kt_full(t, all[which], rows, cols, x));
    // Into a tensor that ends inside: what does not depend on the task is cut off.
    kt_param *cut = kt_param_make(t, PTOWSP_OUT, all[which], rows, cols, kt_valid_of(t, rows),
                                  kt_valid_of(t, cols));
    kt_store_to(t, cut, kt_full(t, all[which], rows, cols, x), false);
    if (all[which] == PTOWSP_I32 || all[which] == PTOWSP_U32 || all[which] == PTOWSP_I16 ||
        all[which] == PTOWSP_U16) {
        kt_value iota = kt_iota(t, all[which], cols, 5);
        kt_keep(t, iota);
        if (all[which] == PTOWSP_I32) {
            kt_keep(t, kt_add(t, iota, kt_full(t, PTOWSP_I32, 1, cols, -9)));
            kt_keep(t, kt_mul(t, kt_in(t, PTOWSP_I32, 1, cols), iota));
            kt_keep(t, kt_mul(t, iota, kt_in(t, PTOWSP_I32, 1, cols)));
        }
    }
}

static void scene_store_add(kt *t, int which) {
    static const ptowsp_dtype types[] = {PTOWSP_F32, PTOWSP_F16, PTOWSP_I32, PTOWSP_I16};
    kt_value x = kt_of_shape(t, types[which]), y = kt_inout(t, types[which], x.rows, x.cols);
    kt_store_to(t, kt_param_of(t, y), kt_add(t, x, x), true);
    if (which == 0) {  // a product goes there from L0C; and a narrowed value
        kt_value a = kt_in(t, PTOWSP_F16, x.rows, 17), b = kt_in(t, PTOWSP_F16, 17, x.cols);
        kt_value z = kt_inout(t, PTOWSP_F32, x.rows, x.cols);
        kt_store_to(t, kt_param_of(t, z), kt_matmul(t, a, b), true);
        // To f16, and then added: two roundings.
        kt_value w = kt_inout(t, PTOWSP_F16, x.rows, x.cols);
        kt_value narrow = kt_cvt(t, kt_neg(t, x), PTOWSP_F16, PTOWSP_ROUND_NEAREST);
        kt_store_to(t, kt_param_of(t, w), narrow, true);
    }
}

static void scene_bits(kt *t, int which) {
    kt_value x = kt_of_shape(t, which ? PTOWSP_I32 : PTOWSP_U32);
    kt_keep_as(t, x, which ? PTOWSP_U32 : PTOWSP_I32);
}

// -- all of them ----------------------------------------------------------------------------------

TEST(ops__of_shapes_and_types_computes_as_the_reference) {
    static const kt_row rows[] = {
        {"matmul in every type", scene_matmul, 4, .runs = 4},
        {"matmul of integers, exact in whatever order", scene_matmul, 4, true, .runs = 4},
        {"matmul_acc adds to any value", scene_matmul_acc, 16, .runs = 4},
        {"matmul_acc of integers", scene_matmul_acc, 16, true, .runs = 4},
        {"matmul_acc to a slice", scene_matmul_acc_slice, 2, .runs = 4},
        {"matmul_bias, relu and narrowing stores", scene_matmul_bias, 32, .runs = 4},
        {"factors may be results, slices and products", scene_factors, FLOAT_COUNT, true,
         .runs = 4},
        {"cvt in every pair and mode", scene_cvt, PAIR_COUNT * 5, false, -100, 100, .runs = 1},
        {"quantize and dequantize", scene_quantize, 2, false, -15, 15, .runs = 4},
        {"transpose in every type", scene_transpose, ALL_COUNT, .runs = 4},
        {"slices of parameters and values", scene_slice, ALL_COUNT, .runs = 12},
        {"a slice may be a column", scene_column, 5, .runs = 4},
        {"load reads again, and inout writes back", scene_load, 1, .runs = 4},
        {"inout reads what was there at first", scene_inout, 5, true, .runs = 4},
        {"full and iota", scene_full, ALL_COUNT, .runs = 4},
        {"store_add adds to what is there", scene_store_add, 4, .runs = 4},
        {"u32 and i32 are stored as each other", scene_bits, 2, false, 0, 1000, .runs = 4},
    };
    kt_play_rows(rows, COUNT_OF(rows));
}
