// The operations of random tile kernels (kernel_random.h): a pool of values, and steps that take some
// of it, build an operation on them if they go with each other, and add what comes of it.
//
// In a loop the steps of its first iteration build. In the others the same steps are taken again and
// only computed, with no kernel to build; what the pool took the first time it takes again.

#ifndef PTOWSP_KERNEL_RANDOM_OPS_H
#define PTOWSP_KERNEL_RANDOM_OPS_H

#include "kernel_indexing_reference.h"

enum { POOL_MAX = 64 };

typedef struct pool {
    kt_value values[POOL_MAX];
    uint32_t count;
    bool is_exact;
    int64_t dims[3];  // of this kernel's tiles
    // Of a loop's body: which of its values were taken in the first iteration, and so in all.
    bool is_body, is_first;
    bool is_taken[POOL_MAX];
    uint32_t asked;
} pool;

// Where a value may get no larger: then integers stay exact in f16, too.
#define EXACT_MAX 1000.0

// Are a value's numbers such that bounds say something?
static inline bool pool_takes(const pool *p, const kt_value *of) {
    kt_value value = *of;
    double limit = p->is_exact ? (value.dtype == PTOWSP_BF16 ? 200 : EXACT_MAX) : 1e3;
    KT_EACH(value, r, c) {
        double x = value.x[KT_AT(value, r, c)], error = value.error[KT_AT(value, r, c)];
        if (!(fabs(x) <= limit) || !(error <= 1) || (p->is_exact && error != 0)) {
            return false;
        }
    }
    return true;
}

// Keeps a value for others to use; what it does not take stays in the kernel as dead code.
static inline void pool_add(pool *p, kt_value value) {
    if (p->count == POOL_MAX || p->asked == POOL_MAX) {
        return;
    }
    bool is_taken = p->is_body && !p->is_first ? p->is_taken[p->asked] : pool_takes(p, &value);
    if (p->is_body) {
        p->is_taken[p->asked++] = is_taken;
    }
    if (is_taken) {
        p->values[p->count++] = value;
    }
}

static inline kt_value *pool_any(kt *t, pool *p) {
    return &p->values[test_random(&t->state) % p->count];
}

static inline bool is_same_tail(const kt_value *x, const kt_value *y) {
    return x->is_row_tail == y->is_row_tail && x->is_col_tail == y->is_col_tail &&
           x->valid_rows == y->valid_rows && x->valid_cols == y->valid_cols;
}

// Does y go with x as an operand, in this task?
static inline bool goes_with(const kt_value *x, const kt_value *y) {
    if (y->is_mask || x->is_mask || x->dtype != y->dtype || !kt_fits(x, y)) {
        return false;
    }
    if (x->rows == y->rows && x->cols == y->cols) {
        return is_same_tail(x, y);
    }
    bool is_row = kt_is_vector(y, x->rows);
    int64_t valid =
        y->cols == 1 && y->rows == (is_row ? x->rows : x->cols) ? y->valid_rows : y->valid_cols;
    return valid == (is_row ? x->valid_rows : x->valid_cols) &&
           (y->is_row_tail || y->is_col_tail) == (is_row ? x->is_row_tail : x->is_col_tail);
}

static inline bool is_bin(ptowsp_dtype dtype) {
    return kt_is_float(dtype) || dtype == PTOWSP_I32 || dtype == PTOWSP_I16;
}

static inline void add_binary(kt *t, pool *p) {
    kt_value x = *pool_any(t, p), y = *pool_any(t, p);
    kt_binary_kind kind = (kt_binary_kind)(test_random(&t->state) % KT_BINARY_COUNT);
    if (!is_bin(x.dtype)) {
        return;
    }
    if (p->is_exact && kind == KT_DIV && kt_is_float(x.dtype)) {
        kind = KT_SUB;
    }
    if (test_random(&t->state) % 3 == 0) {
        kt_value constant = kt_const(t, (double)test_random_in(&t->state, -3, 3));
        pool_add(p, test_random(&t->state) % 3 ? kt_binary(t, kind, x, constant)
                                               : kt_binary(t, kind, constant, x));
    } else if (goes_with(&x, &y)) {
        // Quotients of integer tiles are not for every machine, or not for a divisor of 0.
        bool is_quotient = kind == KT_DIV && !kt_is_float(x.dtype);
        pool_add(p, kt_binary(t, is_quotient ? KT_MUL : kind, x, y));
    } else if (goes_with(&y, &x) && (kind == KT_ADD || kind == KT_MUL || kind == KT_MAX)) {
        pool_add(p, kt_binary(t, kind, x, y));
    }
}

static inline void add_unary(kt *t, pool *p) {
    static const kt_unary_kind exact[] = {KT_UNARY_relu, KT_UNARY_neg, KT_UNARY_abs};
    kt_value x = *pool_any(t, p);
    kt_unary_kind kind = p->is_exact ? exact[test_random(&t->state) % 3]
                                     : (kt_unary_kind)(test_random(&t->state) % KT_UNARY_COUNT);
    bool is_int = x.dtype == PTOWSP_I32 && (kind == KT_UNARY_relu || kind == KT_UNARY_neg);
    if (kt_is_float(x.dtype) || is_int) {
        pool_add(p, kt_unary(t, kind, x));
    }
}

static inline void add_reduce(kt *t, pool *p) {
    kt_value x = *pool_any(t, p);
    if (!is_bin(x.dtype) || x.valid_rows == 0 || x.valid_cols == 0) {
        return;
    }
    switch (test_random(&t->state) % 7) {
    case 0: pool_add(p, test_random(&t->state) % 2 ? kt_rowsum(t, x) : kt_rowsum_f32(t, x)); break;
    case 1: pool_add(p, kt_rowmax(t, x)); break;
    case 2: pool_add(p, kt_rowmin(t, x)); break;
    case 3: pool_add(p, kt_colsum(t, x)); break;
    case 4: pool_add(p, kt_colmax(t, x)); break;
    case 5: pool_add(p, kt_colmin(t, x)); break;
    default:
        if (!p->is_exact && kt_is_float(x.dtype)) {
            pool_add(p, kt_rowmean(t, x));
        }
        break;
    }
}

static inline bool is_product(const kt_value *a, const kt_value *b) {
    bool is_type = kt_is_float(a->dtype) || a->dtype == PTOWSP_I8;
    return is_type && !a->is_mask && !b->is_mask && a->dtype == b->dtype && a->cols == b->rows &&
           a->valid_cols == b->valid_rows && a->is_col_tail == b->is_row_tail &&
           a->valid_rows > 0 && b->valid_cols > 0;
}

// A right factor for a, of those that there are, from a random one on; or a new parameter.
static inline bool find_factor(kt *t, pool *p, const kt_value *a, kt_value *out_b) {
    uint64_t first = test_random(&t->state);
    for (uint32_t i = 0; i < p->count; i++) {
        *out_b = p->values[(first + i) % p->count];
        if (is_product(a, out_b)) {
            return true;
        }
    }
    if (p->is_body || t->param_count + 5 > PTOWSP_TASK_TILE_MAX) {
        return false;
    }
    *out_b = kt_in(t, a->dtype, a->cols, p->dims[first % 3]);
    return is_product(a, out_b);
}

static inline void add_product(kt *t, pool *p) {
    kt_value a = *pool_any(t, p), b, c = *pool_any(t, p);
    bool is_type = kt_is_float(a.dtype) || a.dtype == PTOWSP_I8;
    if (!is_type || !find_factor(t, p, &a, &b)) {
        return;
    }
    ptowsp_dtype sum = a.dtype == PTOWSP_I8 ? PTOWSP_I32 : PTOWSP_F32;
    bool is_acc = c.dtype == sum && c.rows == a.rows && c.cols == b.cols &&
                  c.is_row_tail == a.is_row_tail && c.is_col_tail == b.is_col_tail &&
                  c.valid_rows == a.valid_rows && c.valid_cols == b.valid_cols;
    bool is_bias = c.dtype == sum && c.rows == 1 && c.cols == b.cols &&
                   c.is_col_tail == b.is_col_tail && c.valid_cols == b.valid_cols;
    if (is_acc) {
        pool_add(p, kt_matmul_acc(t, c, a, b));
    } else if (is_bias) {
        pool_add(p, kt_matmul_bias(t, a, b, c));
    } else {
        pool_add(p, kt_matmul(t, a, b));
    }
}

static inline void add_convert(kt *t, pool *p) {
    static const ptowsp_dtype types[] = {PTOWSP_F32, PTOWSP_F16, PTOWSP_BF16,
                                         PTOWSP_I32, PTOWSP_I16, PTOWSP_I8};
    kt_value x = *pool_any(t, p);
    ptowsp_dtype to = types[test_random(&t->state) % 6];
    bool is_byte =
        (x.dtype == PTOWSP_F16 && to == PTOWSP_I8) || (x.dtype == PTOWSP_I8 && to == PTOWSP_F16);
    bool is_there = is_byte || (x.dtype == PTOWSP_F32 && to != PTOWSP_I8) ||
                    (to == PTOWSP_F32 && is_bin(x.dtype)) ||
                    (to == PTOWSP_I32 && kt_is_float(x.dtype)) || to == x.dtype;
    bool is_known = p->is_body ? p->is_exact : x.error[0] == 0;
    if (is_there && (kt_is_float(to) || is_known)) {
        kt_value y = kt_cvt(t, x, to, (ptowsp_round)(test_random(&t->state) % 2 * 4));
        pool_add(p, y);
    }
}

static inline void add_layout(kt *t, pool *p) {
    kt_value x = *pool_any(t, p), y = *pool_any(t, p);
    int64_t block = 32 / ptowsp_dtype_size(x.dtype);
    switch (test_random(&t->state) % 4) {
    case 0: pool_add(p, kt_transpose(t, x)); break;
    case 1:
        if (goes_with(&x, &y) && kt_is_vector(&y, x.rows)) {
            pool_add(p, kt_broadcast(t, x, y, true));
        } else if (goes_with(&x, &y) && kt_is_vector(&y, x.cols)) {
            pool_add(p, kt_broadcast(t, x, y, false));
        }
        break;
    case 2: {
        int64_t row = test_random_in(&t->state, 0, x.rows - 1);
        int64_t col = test_random_in(&t->state, 0, x.cols - 1) / block * block;
        row = x.cols == 1 ? row / block * block : row;
        int64_t rows = test_random_in(&t->state, 1, x.rows - row);
        int64_t cols = test_random_in(&t->state, 1, x.cols - col);
        if (cols == 1 && x.cols > 1 && !is_bin(x.dtype)) {
            break;
        }
        kt_value part = kt_slice(t, x, row, col, rows, cols);
        if (part.valid_rows > 0 && part.valid_cols > 0) {
            pool_add(p, part);
        }
        break;
    }
    default:
        if (x.cols % 2 == 0 && x.valid_cols > 1 && is_bin(x.dtype)) {
            pool_add(p, kt_deinterleave(t, x, (uint32_t)(test_random(&t->state) % 2)));
        }
        break;
    }
}

static inline void add_pick(kt *t, pool *p) {
    kt_value x = *pool_any(t, p), y = *pool_any(t, p), z = *pool_any(t, p);
    bool is_compared = x.dtype == PTOWSP_F32 || x.dtype == PTOWSP_F16;
    bool is_pair = x.rows == y.rows && x.cols == y.cols && goes_with(&x, &y);
    if (!is_compared || !is_pair) {
        return;
    }
    ptowsp_compare op = (ptowsp_compare)(test_random(&t->state) % 6);
    kt_value mask =
        test_random(&t->state) % 2
            ? kt_comparison(t, x, op, y)
            : kt_comparison(t, x, op, kt_const(t, (double)(test_random(&t->state) % 3)));
    bool is_third = z.rows == x.rows && z.cols == x.cols && is_same_tail(&x, &z) && is_bin(z.dtype);
    pool_add(p, kt_select(t, mask, x, y));
    if (is_third) {
        pool_add(p, kt_select(t, mask, z, kt_const(t, 1)));
    }
}

// The best of each row; which of equals is best depends on the very bits.
static inline void add_sort(kt *t, pool *p) {
    kt_value x = *pool_any(t, p);
    if (!p->is_exact || x.is_mask || (x.dtype != PTOWSP_F32 && x.dtype != PTOWSP_F16) ||
        x.cols == 1) {
        return;
    }
    kt_value pairs = kt_sort32(t, x, kt_iota(t, PTOWSP_U32, x.cols, 0));
    pool_add(p, kt_topk(t, pairs, test_random_in(&t->state, 1, x.cols), false));
    pool_add(p, kt_topk(t, pairs, test_random_in(&t->state, 1, x.cols), true));
}

static inline void add_made(kt *t, pool *p) {
    double x = (double)test_random_in(&t->state, -4, 4);
    int64_t rows = p->dims[test_random(&t->state) % 3], cols = p->dims[test_random(&t->state) % 3];
    if (test_random(&t->state) % 2) {
        pool_add(p,
                 kt_full(t, test_random(&t->state) % 2 ? PTOWSP_F32 : PTOWSP_I32, rows, cols, x));
    } else {
        pool_add(p, kt_iota(t, PTOWSP_I32, cols, x));
    }
}

static inline void add_pick_or_sort(kt *t, pool *p) {
    (test_random(&t->state) % 3 ? add_pick : add_sort)(t, p);
}

static inline void add_loop(kt *t, pool *p);  // kernel_random.h

static inline void add_any(kt *t, pool *p) {
    static void (*const steps[])(kt *, pool *) = {
        add_binary,  add_binary, add_binary,       add_binary, add_binary,  add_unary,
        add_unary,   add_unary,  add_reduce,       add_reduce, add_product, add_product,
        add_convert, add_layout, add_pick_or_sort, add_made,   add_loop};
    steps[test_random(&t->state) % (p->is_body ? 16 : 17)](t, p);
}

#endif
