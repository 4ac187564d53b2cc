// The operations of tile kernels that look at single elements, built and computed at once: see
// kernel_fixture.h.

#ifndef PTOWSP_KERNEL_PICK_REFERENCE_H
#define PTOWSP_KERNEL_PICK_REFERENCE_H

#include "kernel_reference.h"

static inline bool kt_holds(double x, ptowsp_compare op, double y) {
    switch (op) {
    case PTOWSP_EQ: return x == y;
    case PTOWSP_NE: return x != y;
    case PTOWSP_LT: return x < y;
    case PTOWSP_LE: return x <= y;
    case PTOWSP_GT: return x > y;
    default: return x >= y;
    }
}

// The error of a mask's element is 1 where it may be either.
static inline kt_value kt_comparison(kt *t, kt_value x, ptowsp_compare op, kt_value y) {
    kt_value d = kt_value_like(t, ptowsp_tile_compare(x.v, op, y.v), PTOWSP_U8, &x);
    d.is_mask = true;
    KT_EACH(d, r, c) {
        int64_t i = KT_AT(d, r, c), j = y.rows ? i : 0;
        double b = y.rows ? y.x[j] : kt_cast(x.dtype, y.x[j]);
        d.x[i] = kt_holds(x.x[i], op, b);
        d.error[i] = fabs(x.x[i] - b) <= x.error[i] + y.error[j] && x.error[i] + y.error[j] > 0;
    }
    return d;
}

static inline kt_value kt_select(kt *t, kt_value mask, kt_value x, kt_value y) {
    kt_value d = kt_value_like(t, ptowsp_tile_select(mask.v, x.v, y.v), x.dtype, &x);
    kt_narrow(&d, &y);
    KT_EACH(d, r, c) {
        int64_t i = KT_AT(d, r, c), j = y.rows ? i : 0;
        double b = y.rows ? y.x[j] : kt_cast(x.dtype, y.x[j]);
        d.x[i] = mask.x[i] != 0 ? x.x[i] : b;
        d.error[i] = mask.x[i] != 0 ? x.error[i] : y.error[j];
        if (mask.error[i] != 0) {
            d.error[i] = fabs(x.x[i] - b) + x.error[i] + y.error[j];
        }
    }
    return d;
}

// Element `index` of x, row by row, as large as the tile is.
static inline kt_value kt_gather(kt *t, kt_value x, kt_value index) {
    kt_value d = kt_value_like(t, ptowsp_tile_gather(x.v, index.v), x.dtype, &index);
    KT_EACH(d, r, c) {
        int64_t i = KT_AT(d, r, c);
        kt_copy(&d, i, &x, (int64_t)index.x[i]);
    }
    return d;
}

// Does score a come after score b? NaN is the largest.
static inline bool kt_is_after(double a, double b) {
    return a != a ? false : b != b ? true : a < b;
}

// Sorts `count` pairs at p descending, stable: by insertion.
static inline void kt_sort_pairs(double *p, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        double score = p[2 * i], index = p[2 * i + 1];
        int64_t at = i;
        for (; at > 0 && kt_is_after(p[2 * at - 2], score); at--) {
            p[2 * at] = p[2 * at - 2];
            p[2 * at + 1] = p[2 * at - 1];
        }
        p[2 * at] = score;
        p[2 * at + 1] = index;
    }
}

// Pairs are kept as a score, an index, ..., whatever the type of scores. Behind the valid ones are
// those of nothing.
static inline kt_value kt_sort32(kt *t, kt_value x, kt_value index) {
    kt_value d = kt_value_part(t, ptowsp_tile_sort32(x.v, index.v), x.dtype, x.rows, 2 * x.cols,
                               x.valid_rows, 2 * x.valid_cols, x.is_row_tail, x.is_col_tail);
    KT_EACH(x, r, c) {
        d.x[KT_AT(d, r, 2 * c)] = x.x[KT_AT(x, r, c)];
        d.x[KT_AT(d, r, 2 * c + 1)] = index.x[index.rows == 1 ? c : KT_AT(index, r, c)];
    }
    for (int64_t r = 0; r < x.valid_rows; r++) {
        for (int64_t c = x.valid_cols; c < x.cols; c++) {  // what is chosen last
            d.x[KT_AT(d, r, 2 * c)] = -INFINITY;
            d.x[KT_AT(d, r, 2 * c + 1)] = PTOWSP_TOPK_NONE;
        }
        for (int64_t c = 0; c < x.valid_cols; c += 32) {
            kt_sort_pairs(d.x + KT_AT(d, r, 2 * c), x.valid_cols - c < 32 ? x.valid_cols - c : 32);
        }
    }
    return d;
}

// By fours where there are as many runs, else all.
static inline kt_value kt_merge_sort(kt *t, kt_value pairs, int64_t run) {
    kt_value d = kt_value_like(t, ptowsp_tile_merge_sort(pairs.v, run), pairs.dtype, &pairs);
    int64_t count = pairs.cols / 2, group = count / run % 4 == 0 ? 4 * run : count;
    memcpy(d.x, pairs.x, (size_t)pairs.cols * sizeof(double));
    for (int64_t at = 0; at < count; at += group) {
        kt_sort_pairs(d.x + 2 * at, group);
    }
    return d;
}

static inline kt_value kt_topk(kt *t, kt_value pairs, int64_t k, bool is_index) {
    kt_value d = kt_value_make(
        t, is_index ? ptowsp_tile_topk_indices(pairs.v, k) : ptowsp_tile_topk_values(pairs.v, k),
        is_index ? PTOWSP_U32 : pairs.dtype, pairs.rows, k);
    d.valid_rows = pairs.valid_rows;
    d.is_row_tail = pairs.is_row_tail;
    KT_EACH(d, r, c) {
        d.x[KT_AT(d, r, c)] = pairs.x[KT_AT(pairs, r, 2 * c + is_index)];
    }
    return d;
}

#endif
