// Operations of tile kernels that look at single elements: comparing, selecting, sorting,
// gathering, taking every second column; against plain loops, on random shapes, full and cut off.

#include "kernel_indexing_reference.h"

// -- masks ----------------------------------------------------------------------------------------

static void scene_compare(kt *t, int which) {
    static const ptowsp_dtype types[] = {PTOWSP_F32, PTOWSP_F16, PTOWSP_I32};
    ptowsp_dtype dtype = types[which % 3];
    ptowsp_compare op = (ptowsp_compare)(which / 3);
    if (dtype == PTOWSP_I32 && op != PTOWSP_EQ) {
        kt_keep(t, kt_of_shape(t, PTOWSP_F32));
        return;
    }
    kt_value x = kt_in(t, dtype, kt_pick_size(t), 1 + kt_pick_size(t) / 2);
    kt_value y = kt_in(t, dtype, x.rows, x.cols);
    if (dtype != PTOWSP_I32) {
        kt_fill(t, x, 0, 0, NAN);
        kt_fill(t, y, y.valid_rows - 1, y.valid_cols - 1, NAN);
    }
    kt_value mask = kt_comparison(t, x, op, y);
    kt_keep(t, kt_select(t, mask, x, y));
    kt_keep(t, kt_select(t, mask, y, kt_const(t, -1.5)));
    kt_value other = kt_comparison(t, x, op, kt_const(t, 1.9));
    kt_keep(t, kt_select(t, other, y, kt_scalar(t, PTOWSP_F32, 0.1)));
    kt_keep(t, kt_select(t, kt_comparison(t, y, op, kt_scalar(t, PTOWSP_I64, 2)), x, y));
    // A mask selects from anything of its shape.
    static const ptowsp_dtype others[] = {PTOWSP_BF16, PTOWSP_I16, PTOWSP_U16, PTOWSP_U32};
    ptowsp_dtype third = others[test_random(&t->state) % 4];
    kt_value u = kt_in(t, third, x.rows, x.cols);
    kt_keep(t, kt_select(t, mask, u, kt_in(t, third, x.rows, x.cols)));
    kt_keep(t, kt_select(t, other, u, kt_const(t, 7)));
}

// -- sorting --------------------------------------------------------------------------------------

static kt_value scores(kt *t, ptowsp_dtype dtype, int64_t rows, int64_t cols, bool has_nan) {
    kt_value x = kt_in(t, dtype, rows, cols);
    if (has_nan) {
        kt_fill(t, x, x.valid_rows - 1, x.valid_cols / 2, NAN);
        kt_fill(t, x, 0, 0, -INFINITY);
        kt_fill(t, x, 0, x.valid_cols - 1, INFINITY);
        kt_fill(t, x, 0, x.valid_cols / 3, NAN);
    }
    return x;
}

// Indices of a row for all, and for each row; what is behind the pairs is looked at. Rows of whole
// runs, and of any length. Scores of f32, then of f16.
static void scene_sort32(kt *t, int which) {
    int64_t rows = 1 + kt_pick_size(t) / 2, cols = 32 * test_random_in(&t->state, 1, 4);
    cols = rows > 1 && test_random(&t->state) % 2 ? 1 + kt_pick_size(t) : cols;
    kt_value x = scores(t, which < 6 ? PTOWSP_F32 : PTOWSP_F16, rows, cols, which % 2 != 0);
    kt_value index = which % 6 < 2   ? kt_iota(t, PTOWSP_U32, cols, 0)
                     : which % 6 < 4 ? kt_in(t, PTOWSP_U32, 1, cols)
                                     : kt_in(t, PTOWSP_U32, rows, cols);
    kt_value pairs = kt_sort32(t, x, index);
    int64_t k = test_random_in(&t->state, 1, x.cols);  // also more than a task has
    kt_keep(t, kt_topk(t, pairs, k, false));
    kt_keep(t, kt_topk(t, pairs, k, true));
    kt_keep_as(t, kt_topk(t, pairs, 1 + k / 3, true), PTOWSP_I32);
}

// By runs of 32 and then of 128 ...: 2, 3, 4, 8, 12 and 16 runs, the last ones cut off or empty.
// Scores of f32, then of f16.
static void scene_merge(kt *t, int which) {
    static const int64_t counts[] = {2, 3, 4, 8, 12, 16, 32, 64};
    int64_t count = counts[which % 8], run = 32;
    kt_value x = kt_in(t, which < 16 ? PTOWSP_F32 : PTOWSP_F16, 1, 32 * count);
    for (int64_t i = 0; i < 20 && which / 8 % 2; i++) {
        kt_fill(t, x, 0, test_random_in(&t->state, 0, x.valid_cols - 1),
                i % 3 == 0   ? NAN
                : i % 3 == 1 ? -0.0
                             : -INFINITY);
    }
    kt_value pairs = kt_sort32(t, x, kt_iota(t, PTOWSP_U32, 32 * count, 100));
    while (run < 32 * count) {
        pairs = kt_merge_sort(t, pairs, run);
        run *= count * 32 / run % 4 == 0 ? 4 : count * 32 / run;
    }
    kt_keep(t, kt_topk(t, pairs, 32 * count, false));
    kt_keep(t, kt_topk(t, pairs, test_random_in(&t->state, 1, 32 * count), true));
}

TEST(ops__merge_sort_and_topk_of_many_runs) {
    kt_config config = kt_any(test_seed());
    config.is_integer = true;
    config.low = -40;
    config.high = 40;
    TEST_GRID(int, which, 32, i, 8) {
        config.seed++;
        config.strides = (kt_strides)(i % 4);
        config.is_partial = i / 4 != 0;
        kt t = kt_begin(config);
        scene_merge(&t, which);
        kt_end(&t);
    }
}

// -- gathering ------------------------------------------------------------------------------------

static void scene_gather(kt *t, int which) {
    static const ptowsp_dtype types[] = {PTOWSP_F32, PTOWSP_F16, PTOWSP_I32,
                                         PTOWSP_I16, PTOWSP_U32, PTOWSP_U16};
    ptowsp_dtype dtype = types[which % 6];
    int64_t block = 32 / ptowsp_dtype_size(dtype);
    // Of one row of any length, or of rows of whole blocks.
    int64_t rows = which / 12 ? kt_pick_size(t) : 1;
    int64_t cols = rows == 1 ? kt_pick_size(t) : block * test_random_in(&t->state, 1, 5);
    kt_value x = kt_in(t, dtype, rows, cols);
    kt_value index = kt_of_shape(t, which / 6 % 2 ? PTOWSP_U32 : PTOWSP_I32);
    KT_EACH(index, r, c) {  // an element that this task has
        int64_t at = test_random_in(&t->state, 0, x.valid_rows - 1) * cols +
                     test_random_in(&t->state, 0, x.valid_cols - 1);
        kt_fill(t, index, r, c, (double)at);
    }
    kt_keep(t, kt_gather(t, x, index));
}

// -- every second column --------------------------------------------------------------------------

static void scene_deinterleave(kt *t, int which) {
    static const ptowsp_dtype types[] = {PTOWSP_F32, PTOWSP_F16, PTOWSP_BF16, PTOWSP_I32,
                                         PTOWSP_I16, PTOWSP_U32, PTOWSP_U16};
    int64_t rows = kt_pick_size(t), cols = kt_pick_size(t);
    // Half a row is whole blocks, as it is allocated, or not: then it is copied to a wider one.
    int64_t block = 32 / ptowsp_dtype_size(types[which]);
    if (test_random(&t->state) % 2) {
        cols = (cols + block - 1) / block * block - test_random_in(&t->state, 0, block / 2 - 1);
    }
    kt_value x = kt_in(t, types[which], rows, 2 * cols);
    kt_value even = kt_deinterleave(t, x, 0), odd = kt_deinterleave(t, x, 1);
    kt_keep(t, even);
    kt_keep(t, odd);
    if (which < 5 && x.valid_cols % 2 == 0) {
        kt_keep(t, kt_add(t, even, even));
    }
}

static void scene_interleave(kt *t, int which) {
    static const ptowsp_dtype types[] = {PTOWSP_F32, PTOWSP_F16, PTOWSP_BF16, PTOWSP_I32,
                                         PTOWSP_I16, PTOWSP_U32, PTOWSP_U16};
    int64_t rows = kt_pick_size(t);
    int64_t cols = 32 / ptowsp_dtype_size(types[which]) * test_random_in(&t->state, 1, 4);
    kt_value x = kt_in(t, types[which], rows, cols), y = kt_in(t, types[which], rows, cols);
    kt_value both = kt_interleave(t, x, y);
    kt_keep(t, both);
    kt_keep(t, kt_deinterleave(t, both, 1));
    kt_keep(t, kt_interleave(t, y, y));
}

TEST(ops__interleave_on_a5_computes_as_the_reference) {
    kt_config config = kt_any(test_seed());
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    config.machine = &a5;
    for (int which = 0; which < 7; which++) {
        config.seed++;
        kt_play(scene_interleave, which, 4, config);
    }
}

// Rotary embedding: pairs of columns, turned by an angle per row.
static void scene_rope(kt *t, int which) {
    int64_t rows = kt_pick_size(t), cols = 16 * test_random_in(&t->state, 1, 4);
    kt_value x = kt_in(t, PTOWSP_F32, rows, cols), angle = kt_in(t, PTOWSP_F32, rows, cols / 2);
    kt_value even = kt_deinterleave(t, x, 0), odd = kt_deinterleave(t, x, 1);
    kt_value cosine = kt_cos(t, angle), sine = kt_sin(t, angle);
    (void)which;
    if (even.valid_cols != angle.valid_cols || odd.valid_cols != angle.valid_cols) {
        kt_keep(t, cosine);
        return;
    }
    kt_value a = kt_sub(t, kt_mul(t, cosine, kt_add(t, even, kt_const(t, 0))),
                        kt_mul(t, sine, kt_add(t, odd, kt_const(t, 0))));
    kt_keep(t, a);
}

// -- all of them ----------------------------------------------------------------------------------

TEST(ops__of_single_elements_computes_as_the_reference) {
    static const kt_row rows[] = {
        {"compare and select, with equals", scene_compare, 18, true, -3, 3, .runs = 4},
        {"sort32 orders every 32 columns; ties keep their order", scene_sort32, 12, true, -10, 10,
         .runs = 4},
        {"gather takes elements by index", scene_gather, 24, .runs = 4},
        {"deinterleave takes every second column", scene_deinterleave, 7, .runs = 4},
        {"rotary embedding", scene_rope, 1, .runs = 4},
    };
    kt_play_rows(rows, COUNT_OF(rows));
}
