// Operations of tile kernels that work element by element, along rows and along columns: each on
// random shapes, full and cut off, with tensors laid out in four ways, against a plain loop.

#include "kernel_reference.h"

static const ptowsp_dtype bin[] = {PTOWSP_F32, PTOWSP_F16, PTOWSP_BF16, PTOWSP_I32, PTOWSP_I16};
static const ptowsp_dtype floats[] = {PTOWSP_F32, PTOWSP_F16, PTOWSP_BF16};
enum { BIN_COUNT = 5, FLOAT_COUNT = 3 };

// which: operation * types + type.
static void scene_binary(kt *t, int which) {
    ptowsp_dtype dtype = bin[which % BIN_COUNT];
    kt_binary_kind kind = (kt_binary_kind)(which / BIN_COUNT);
    kt_value x = kt_of_shape(t, dtype), y = kt_in(t, dtype, x.rows, x.cols);
    kt_keep(t, kt_binary(t, kind, x, y));
    kt_keep(t, kt_binary(t, kind, x, x));
}

static void scene_scalar(kt *t, int which) {
    ptowsp_dtype dtype = bin[which % BIN_COUNT];
    kt_binary_kind kind = (kt_binary_kind)(which / BIN_COUNT);
    kt_value x = kt_of_shape(t, dtype);
    kt_keep(t, kt_binary(t, kind, x, kt_const(t, 2.75)));
    kt_keep(t, kt_binary(t, kind, kt_const(t, -3.3), x));
    kt_keep(t, kt_binary(t, kind, x, kt_scalar(t, PTOWSP_F32, 1.7)));
    kt_keep(t, kt_binary(t, kind, x, kt_scalar(t, PTOWSP_F64, -0.3)));
    kt_keep(t, kt_binary(t, kind, x, kt_scalar(t, PTOWSP_I64, -5)));
    kt_keep(t, kt_binary(t, kind, x, kt_scalar(t, PTOWSP_U64, 7)));
    kt_keep(t, kt_binary(t, kind, x, kt_scalar(t, PTOWSP_BOOL, 1)));
    if (kind != KT_SUB && kind != KT_DIV) {
        kt_keep(t, kt_binary(t, kind, kt_scalar(t, PTOWSP_I64, 3), x));
    }
}

// A vector per row and one per column, each as a row and as a column; on either side.
static void scene_vector(kt *t, int which) {
    ptowsp_dtype dtype = bin[which % BIN_COUNT];
    kt_binary_kind kind = (kt_binary_kind)(which / BIN_COUNT);
    kt_value x = kt_of_shape(t, dtype);
    bool is_commutative = kind != KT_SUB && kind != KT_DIV;
    for (int i = 0; i < 4; i++) {
        int64_t count = i % 2 ? x.cols : x.rows;
        kt_value y = i / 2 ? kt_in(t, dtype, 1, count) : kt_in(t, dtype, count, 1);
        kt_keep(t, kt_binary(t, kind, x, y));
        if (is_commutative && i < 2) {
            kt_keep(t, kt_binary(t, kind, y, x));
        }
    }
}

static void scene_square(kt *t, int which) {
    kt_binary_kind kind = (kt_binary_kind)which;
    int64_t size = kt_pick_size(t);
    kt_value x = kt_in(t, PTOWSP_F32, size, size);
    kt_keep(t, kt_binary(t, kind, x, kt_in(t, PTOWSP_F32, 1, size)));
    kt_keep(t, kt_binary(t, kind, x, kt_in(t, PTOWSP_F32, size, 1)));
}

// -- functions ------------------------------------------------------------------------------------

static void scene_unary(kt *t, int which) {
    kt_unary_kind kind = (kt_unary_kind)(which / FLOAT_COUNT);
    // sin of f16 takes nine tiles of f32 at once: 100 x 100 do not fit.
    kt_value x = kt_in(t, floats[which % FLOAT_COUNT], kt_pick_size(t), 1 + kt_pick_size(t) / 2);
    if (kind == KT_UNARY_log || kind == KT_UNARY_sqrt || kind == KT_UNARY_rsqrt) {
        x = kt_abs(t, x);
    }
    kt_keep(t, kt_unary(t, kind, x));
}

static void scene_unary_i32(kt *t, int which) {
    kt_value x = kt_of_shape(t, PTOWSP_I32);
    kt_keep(t, which ? kt_relu(t, x) : kt_neg(t, x));
}

// What the header promises: 4e-7 of max(1, |result|) over wide ranges.
static void scene_range(kt *t, int which) {
    static const kt_unary_kind kinds[] = {KT_UNARY_tanh, KT_UNARY_sigmoid, KT_UNARY_gelu,
                                          KT_UNARY_silu, KT_UNARY_sin,     KT_UNARY_cos};
    kt_keep(t, kt_unary(t, kinds[which % 6], kt_in(t, PTOWSP_F32, 64, 128)));
}

TEST(ops__functions_of_exp_are_within_4e_7) {
    static const double ranges[] = {1e-3, 1, 6, 20, 100, 1000};
    kt_config config = kt_any(test_seed());
    for (int i = 0; i < 6; i++) {
        config.low = -ranges[i];
        config.high = ranges[i];
        for (int which = 0; which < 4; which++) {
            kt t = kt_begin(config);
            scene_range(&t, which);
            kt_end(&t);
            config.seed++;
        }
    }
}

TEST(ops__sin_and_cos_are_within_4e_7_up_to_10000) {
    static const double ranges[] = {0.01, 4, 100, 10000};
    kt_config config = kt_any(test_seed());
    for (int i = 0; i < 4; i++) {
        for (int which = 4; which < 6; which++) {
            for (int sign = -1; sign < 2; sign++) {
                config.low = sign > 0 ? ranges[i] * 0.99 : -ranges[i];
                config.high = sign < 0 ? -ranges[i] * 0.99 : ranges[i];
                kt t = kt_begin(config);
                scene_range(&t, which);
                kt_end(&t);
                config.seed++;
            }
        }
    }
}

// -- special numbers ------------------------------------------------------------------------------

static const double specials[] = {
    NAN,   INFINITY, -INFINITY, 0.0,    -0.0, 1e-45, -1e-45, 1e-40, 3.4e38, -3.4e38, 88.7,  88.8,
    -87.4, -103.9,   -104.1,    -200.0, 1.0,  -1.0,  65504,  65520, 1e-7,   0.5,     10000, -10000};
enum { SPECIAL_COUNT = sizeof specials / sizeof specials[0] };

// Everything against everything.
TEST(ops__max_and_min_of_nan_are_nan) {
    TEST_GRID(int, which, FLOAT_COUNT, kind, KT_BINARY_COUNT) {
        kt t = kt_begin(kt_any(1));
        kt_value x = kt_in(&t, floats[which], SPECIAL_COUNT, SPECIAL_COUNT);
        kt_value y = kt_in(&t, floats[which], SPECIAL_COUNT, SPECIAL_COUNT);
        KT_EACH(x, r, c) {
            kt_fill(&t, x, r, c, specials[r]);
            kt_fill(&t, y, r, c, specials[c]);
        }
        kt_keep(&t, kt_binary(&t, (kt_binary_kind)kind, x, y));
        kt_end(&t);
    }
}

TEST(ops__functions_of_special_numbers_are_those_of_c) {
    static const kt_unary_kind kinds[] = {
        KT_UNARY_exp,  KT_UNARY_log, KT_UNARY_sqrt, KT_UNARY_rsqrt, KT_UNARY_recip,
        KT_UNARY_relu, KT_UNARY_neg, KT_UNARY_abs,  KT_UNARY_tanh,  KT_UNARY_sigmoid};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (int which = 0; which < FLOAT_COUNT; which++) {
            kt t = kt_begin(kt_any(1));
            kt_value x = kt_in(&t, floats[which], 1, SPECIAL_COUNT);
            for (int i = 0; i < SPECIAL_COUNT; i++) {
                kt_fill(&t, x, 0, i, specials[i]);
            }
            kt_keep(&t, kt_unary(&t, kinds[k], x));
            kt_end(&t);
        }
    }
}

// -- rows and columns -----------------------------------------------------------------------------

static kt_value reduce(kt *t, int kind, kt_value x) {
    switch (kind) {
    case 0: return kt_rowsum(t, x);
    case 1: return kt_rowmax(t, x);
    case 2: return kt_rowmin(t, x);
    case 3: return kt_colsum(t, x);
    case 4: return kt_colmax(t, x);
    case 5: return kt_colmin(t, x);
    case 6: return kt_rowmean(t, x);
    default: return kt_rowsum_f32(t, x);
    }
}

static void scene_reduce(kt *t, int which) {
    kt_keep(t, reduce(t, which / BIN_COUNT, kt_of_shape(t, bin[which % BIN_COUNT])));
}

TEST(ops__reductions_meet_nan_and_infinity) {
    TEST_GRID(int, kind, 8, which, FLOAT_COUNT) {
        for (int i = 0; i < 6; i++) {
            kt t = kt_begin(kt_any((uint64_t)i));
            kt_value x = kt_in(&t, floats[which], 19, 45);
            KT_EACH(x, r, c) {
                kt_fill(&t, x, r, c, (double)((r * 7 + c * 3) % 11) - 5);
            }
            double odd = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
            kt_fill(&t, x, 3, 40, odd);
            kt_fill(&t, x, 18, 0, odd);
            kt_fill(&t, x, 3, 2, i > 2 ? -odd : 1);
            kt_keep(&t, reduce(&t, kind, x));
            kt_end(&t);
        }
    }
}

static void scene_broadcast(kt *t, int which) {
    ptowsp_dtype dtype = which / 2 == 5 ? PTOWSP_I8 : which / 2 == 6 ? PTOWSP_U32 : bin[which / 2];
    kt_value x = kt_of_shape(t, PTOWSP_F32);
    bool is_row = which % 2 != 0;
    int64_t count = is_row ? x.rows : x.cols;
    kt_keep(t, kt_broadcast(t, x, kt_in(t, dtype, 1, count), is_row));
    kt_keep(t, kt_broadcast(t, x, kt_in(t, dtype, count, 1), is_row));
}

// -- kernels of several operations ----------------------------------------------------------------

static kt_value softmax(kt *t, kt_value x) {
    kt_value e = kt_exp(t, kt_sub(t, x, kt_rowmax(t, x)));
    return kt_div(t, e, kt_rowsum(t, e));
}

static void scene_softmax(kt *t, int which) {
    kt_keep(t, softmax(t, kt_of_shape(t, floats[0])));
    (void)which;
}

static void scene_rmsnorm(kt *t, int which) {
    kt_value x = kt_of_shape(t, PTOWSP_F32), weight = kt_in(t, PTOWSP_F32, 1, x.cols);
    if (x.rows == x.cols) {  // a vector on a square tile is one per row
        weight = kt_broadcast(t, x, weight, false);
    }
    kt_value mean = kt_rowmean(t, kt_mul(t, x, x));
    kt_value scale = kt_rsqrt(t, kt_add(t, mean, kt_const(t, 1e-5)));
    kt_keep(t, kt_mul(t, kt_mul(t, x, scale), weight));
    (void)which;
}

static void scene_layernorm(kt *t, int which) {
    kt_value x = kt_of_shape(t, PTOWSP_F32);
    kt_value centered = kt_sub(t, x, kt_rowmean(t, x));
    kt_value variance = kt_rowmean(t, kt_mul(t, centered, centered));
    kt_value deviation = kt_sqrt(t, kt_add(t, variance, kt_const(t, 1e-3)));
    kt_keep(t, kt_div(t, centered, deviation));
    (void)which;
}

static void scene_attention(kt *t, int which) {
    int64_t rows = kt_pick_size(t), kv = kt_pick_size(t), depth = kt_pick_size(t);
    ptowsp_dtype dtype = floats[which];
    kt_value q = kt_in(t, dtype, rows, depth), k = kt_in(t, dtype, kv, depth);
    kt_value v = kt_in(t, dtype, kv, depth);
    kt_value scores = kt_matmul(t, q, kt_transpose(t, k));
    kt_value p = softmax(t, kt_mul(t, scores, kt_const(t, 0.125)));
    if (dtype != PTOWSP_F32) {
        p = kt_cvt(t, p, dtype, PTOWSP_ROUND_NEAREST);
    }
    kt_keep_as(t, kt_matmul(t, p, v), dtype);
}

static void scene_mlp(kt *t, int which) {
    int64_t rows = kt_pick_size(t), width = kt_pick_size(t), hidden = kt_pick_size(t);
    ptowsp_dtype dtype = floats[which];
    kt_value x = kt_in(t, dtype, rows, width);
    kt_value up = kt_in(t, dtype, width, hidden), down = kt_in(t, dtype, hidden, width);
    kt_value h = kt_gelu(t, kt_matmul_bias(t, x, up, kt_in(t, PTOWSP_F32, 1, hidden)));
    if (dtype != PTOWSP_F32) {
        h = kt_cvt(t, h, dtype, PTOWSP_ROUND_NEAREST);
    }
    kt_keep_as(t, kt_matmul(t, h, down), dtype);
}

// A product that is a factor, as it is or narrowed.
static void scene_chain(kt *t, int which) {
    int64_t rows = kt_pick_size(t), k = kt_pick_size(t), n = kt_pick_size(t);
    ptowsp_dtype dtype = floats[which];
    kt_value h = kt_matmul(t, kt_in(t, dtype, rows, k), kt_in(t, dtype, k, n));
    if (dtype != PTOWSP_F32) {
        h = kt_cvt(t, h, dtype, PTOWSP_ROUND_NEAREST);
    }
    kt_keep_as(t, kt_matmul(t, h, kt_in(t, dtype, n, k)), dtype);
}

// -- all of them ----------------------------------------------------------------------------------

// A scene of integers that wrap has all kinds in one type: their numbers are BIN_COUNT apart.
static void scene_binary_i16(kt *t, int which) {
    scene_binary(t, which * BIN_COUNT + 4);
}

static void scene_binary_i32(kt *t, int which) {
    scene_binary(t, which * BIN_COUNT + 3);
}

TEST(ops__computes_as_the_reference) {
    static const kt_row rows[] = {
        {"binary is exact in every type", scene_binary, KT_BINARY_COUNT * BIN_COUNT, .runs = 4},
        {"i16 wraps", scene_binary_i16, KT_BINARY_COUNT, true, -32768, 32767, .runs = 4},
        {"i32 wraps", scene_binary_i32, KT_BINARY_COUNT, true, -2147483648.0, 2147483647.0,
         .runs = 4},
        {"scalars take the type of the tile", scene_scalar, KT_BINARY_COUNT * BIN_COUNT, .runs = 4},
        {"vectors go along rows and columns", scene_vector, KT_BINARY_COUNT * BIN_COUNT, .runs = 4},
        {"a vector on a square is a value per row", scene_square, KT_BINARY_COUNT, .runs = 4},
        {"functions are within their bounds", scene_unary, KT_UNARY_COUNT * FLOAT_COUNT, .runs = 4},
        {"relu and neg take i32", scene_unary_i32, 2, .runs = 4},
        {"reductions take the valid part", scene_reduce, 6 * BIN_COUNT, .runs = 4},
        // Sums below 2^24 are exact.
        {"reductions of integers", scene_reduce, 6 * BIN_COUNT, true, -1000, 1000, .runs = 4},
        {"means", scene_reduce, FLOAT_COUNT, true, -1000, 1000, .first = 6 * BIN_COUNT, .runs = 4},
        {"sums in f32", scene_reduce, FLOAT_COUNT, true, -1000, 1000, .first = 7 * BIN_COUNT,
         .runs = 4},
        {"broadcasts repeat a vector", scene_broadcast, 14, .runs = 4},
        {"softmax", scene_softmax, 1, false, -4, 4, .runs = 4},
        {"rmsnorm", scene_rmsnorm, 1, false, -4, 4, .runs = 4},
        {"layernorm", scene_layernorm, 1, false, -4, 4, .runs = 4},
        {"attention", scene_attention, FLOAT_COUNT, false, -1, 1, .runs = 4},
        {"an mlp", scene_mlp, FLOAT_COUNT, false, -1, 1, .runs = 4},
        {"products of products", scene_chain, FLOAT_COUNT, false, -1, 1, .runs = 4},
    };
    kt_play_rows(rows, COUNT_OF(rows));
}
