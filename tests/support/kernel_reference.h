// The operations of tile kernels, built and computed at once: see kernel_fixture.h.

#ifndef PTOWSP_KERNEL_REFERENCE_H
#define PTOWSP_KERNEL_REFERENCE_H

#include "kernel_fixture.h"

// -- element by element ---------------------------------------------------------------------------

typedef enum kt_binary_kind {
    KT_ADD,
    KT_SUB,
    KT_MUL,
    KT_DIV,
    KT_MAX,
    KT_MIN,
    KT_BINARY_COUNT
} kt_binary_kind;

static inline bool kt_is_vector(const kt_value *y, int64_t count) {
    return (y->cols == 1 && y->rows == count) || (y->rows == 1 && y->cols == count);
}

// Can y be the right operand of x?
static inline bool kt_fits(const kt_value *x, const kt_value *y) {
    return y->rows == 0 || (x->rows == y->rows && x->cols == y->cols) || kt_is_vector(y, x->rows) ||
           kt_is_vector(y, x->cols);
}

// Where y's number for element (r, c) of x is.
static inline int64_t kt_operand_at(const kt_value *x, const kt_value *y, int64_t r, int64_t c) {
    return y->rows == 0                               ? 0
           : x->rows == y->rows && x->cols == y->cols ? KT_AT(*y, r, c)
           : kt_is_vector(y, x->rows)                 ? r
                                                      : c;
}

// Where a result is always full, another operand of its shape says how much of it is valid.
static inline void kt_narrow(kt_value *d, const kt_value *other) {
    if (other->rows != d->rows || other->cols != d->cols) {
        return;
    }
    if (!d->is_row_tail) {
        d->valid_rows = other->valid_rows;
        d->is_row_tail = other->is_row_tail;
    }
    if (!d->is_col_tail) {
        d->valid_cols = other->valid_cols;
        d->is_col_tail = other->is_col_tail;
    }
}

static inline double kt_div_int(double x, double y) {
    return y == 0 ? 0 : (double)((int64_t)x / (int64_t)y);
}

// x op y of two numbers with errors, into an element.
static inline void kt_binary_set(kt_value *d, int64_t i, kt_binary_kind kind, double x, double ex,
                                 double y, double ey) {
    double error = ex + ey;
    bool is_nan = x != x || y != y;
    switch (kind) {
    case KT_ADD: x = x + y; break;
    case KT_SUB: x = x - y; break;
    case KT_MUL:
        error = error == 0 ? 0 : fabs(x) * ey + fabs(y) * ex + ex * ey;
        if (!kt_is_float(d->dtype)) {
            d->x[i] = kt_round(
                d->dtype, (double)(int32_t)(uint32_t)((uint64_t)(int64_t)x * (uint64_t)(int64_t)y));
            d->error[i] = 0;
            return;
        }
        x = x * y;
        break;
    case KT_DIV:
        if (!kt_is_float(d->dtype)) {
            x = kt_div_int(x, y);
        } else if (error == 0) {
            x = x / y;
        } else {
            error = fabs(y) > 2 * ey ? (ex + fabs(x / y) * ey) / (fabs(y) - ey) : INFINITY;
            x = x / y;
        }
        break;
    default:
        x = is_nan ? NAN : (kind == KT_MAX ? x > y : x < y) ? x : y;
        error = ex > ey ? ex : ey;
        break;
    }
    kt_set(d, i, x, error);
    if (error > 0 && !isfinite(x)) {
        d->error[i] = INFINITY;
    }
}

static inline kt_value kt_binary(kt *t, kt_binary_kind kind, kt_value x, kt_value y) {
    ptowsp_value v = kind == KT_ADD   ? ptowsp_tile_add(x.v, y.v)
                     : kind == KT_SUB ? ptowsp_tile_sub(x.v, y.v)
                     : kind == KT_MUL ? ptowsp_tile_mul(x.v, y.v)
                     : kind == KT_DIV ? ptowsp_tile_div(x.v, y.v)
                     : kind == KT_MAX ? ptowsp_tile_max(x.v, y.v)
                                      : ptowsp_tile_min(x.v, y.v);
    bool is_left = x.rows != 0 && kt_fits(&x, &y);
    // A2/A3 divides tiles of i16 through f32, where a divisor of 0 gives no number; of i32 not.
    bool is_a5 = t->config.machine && t->config.machine->family == PTOWSP_FAMILY_A5;
    bool is_quotient = kind == KT_DIV && !is_a5 && x.rows != 0 && y.rows != 0;
    if (is_quotient && x.dtype == PTOWSP_I32) {
        t->refusal =
            ": i32 is not for 910B (A2/A3), which has f16, bf16, f32, i16 (rule: element types)";
    }
    kt_value like = is_left ? x : y, other = is_left ? y : x;
    kt_value d = kt_value_like(t, v, like.dtype, &like);
    kt_narrow(&d, &other);
    KT_EACH(d, r, c) {
        int64_t at = KT_AT(d, r, c), from = kt_operand_at(&like, &other, r, c);
        double a = like.x[at], b = other.x[from];
        if (other.rows == 0) {
            b = kt_cast(d.dtype, b);
        }
        kt_binary_set(&d, at, kind, is_left ? a : b, is_left ? like.error[at] : other.error[from],
                      is_left ? b : a, is_left ? other.error[from] : like.error[at]);
        if (is_quotient && x.dtype == PTOWSP_I16 && b == 0) {
            d.error[at] = INFINITY;
        }
    }
    return d;
}

#define KT_BINARY(name, kind)                                                                      \
    static inline kt_value kt_##name(kt *t, kt_value x, kt_value y) {                              \
        return kt_binary(t, kind, x, y);                                                           \
    }
KT_BINARY(add, KT_ADD)
KT_BINARY(sub, KT_SUB)
KT_BINARY(mul, KT_MUL)
KT_BINARY(div, KT_DIV)
KT_BINARY(max, KT_MAX)
KT_BINARY(min, KT_MIN)

// clang-format off
#define KT_UNARIES(UNARY) /* name, f(x), error of the f32 function at x and f(x) */                \
    UNARY(exp, exp(x), 0x1p-23 * y)                                                                \
    UNARY(log, log(x), 0x1p-23 * fabs(y))                                                          \
    UNARY(sqrt, sqrt(x), 0)                                                                        \
    UNARY(rsqrt, 1 / sqrt(x), 0x1p-23 * y)                                                         \
    UNARY(recip, 1 / x, 0x1p-23 * fabs(y))                                                         \
    UNARY(tanh, tanh(x), 4e-7)                                                                     \
    UNARY(sigmoid, 1 / (1 + exp(-x)), 4e-7)                                                        \
    UNARY(sin, sin(x), 4e-7)                                                                       \
    UNARY(cos, cos(x), 4e-7)                                                                       \
    UNARY(relu, x > 0 ? x : x != x ? x : 0, 0)                                                     \
    UNARY(gelu, x / (1 + exp(-1.5957691216057308 * (x + 0.044715 * x * x * x))),             \
          4e-7 * fmax(1, fabs(y)))                                                                 \
    UNARY(silu, x / (1 + exp(-x)), 4e-7 * fmax(1, fabs(y)))                                        \
    UNARY(neg, -x, 0)                                                                              \
    UNARY(abs, fabs(x), 0)
// clang-format on

typedef enum kt_unary_kind {
#define KT_UNARY_ENUM(name, f, own) KT_UNARY_##name,
    KT_UNARIES(KT_UNARY_ENUM)
#undef KT_UNARY_ENUM
        KT_UNARY_COUNT
} kt_unary_kind;

static inline double kt_unary_at(kt_unary_kind kind, double x) {
    switch (kind) {
#define KT_UNARY_AT(name, f, own)                                                                  \
    case KT_UNARY_##name: return f;
        KT_UNARIES(KT_UNARY_AT)
#undef KT_UNARY_AT
    default: return 0;
    }
}

// How far the f32 function may be off where it is y.
static inline double kt_unary_own(kt_unary_kind kind, double y) {
    switch (kind) {
#define KT_UNARY_OWN(name, f, own)                                                                 \
    case KT_UNARY_##name: return own;
        KT_UNARIES(KT_UNARY_OWN)
#undef KT_UNARY_OWN
    default: return 0;
    }
}

static inline void kt_unary_set(kt_value *d, int64_t i, kt_unary_kind kind, double x, double ex) {
    double y = kt_unary_at(kind, x), slope = 0;
    if (ex > 0) {  // sin and cos have slopes up to 1, gelu and silu up to 1.2
        double up = fabs(kt_unary_at(kind, x + ex) - y), down = fabs(kt_unary_at(kind, x - ex) - y);
        slope = kind == KT_UNARY_sin || kind == KT_UNARY_cos     ? ex
                : kind == KT_UNARY_gelu || kind == KT_UNARY_silu ? 1.2 * ex
                                                                 : fmax(up, down);
    }
    double own = kt_is_float(d->dtype) && isfinite(y) ? kt_unary_own(kind, y) : 0;
    // exp of large numbers is infinite, and of very small ones 0 or the smallest number.
    if (own > 0 && own < 0x1p-149) {
        own = 0x1p-149;
    }
    kt_set(d, i, y, slope + own);
    bool is_finite = isfinite(y) && isfinite(slope);
    if (ex > 0 && (!is_finite || y != y)) {
        d->error[i] = INFINITY;
    }
}

static inline kt_value kt_unary(kt *t, kt_unary_kind kind, kt_value x) {
    ptowsp_value v = {NULL, 0};
    switch (kind) {
#define KT_UNARY_BUILD(name, f, own)                                                               \
    case KT_UNARY_##name: v = ptowsp_tile_##name(x.v); break;
        KT_UNARIES(KT_UNARY_BUILD)
#undef KT_UNARY_BUILD
    default: break;
    }
    kt_value d = kt_value_like(t, v, x.dtype, &x);
    KT_EACH(d, r, c) {
        int64_t i = KT_AT(d, r, c);
        kt_unary_set(&d, i, kind, x.x[i], x.error[i]);
    }
    return d;
}

#define KT_UNARY_CALL(name, f, own)                                                                \
    static inline kt_value kt_##name(kt *t, kt_value x) {                                          \
        return kt_unary(t, KT_UNARY_##name, x);                                                    \
    }
KT_UNARIES(KT_UNARY_CALL)
#undef KT_UNARY_CALL

// -- sums -----------------------------------------------------------------------------------------

// A sum in f32 (or i32) of terms that come one by one.
typedef struct kt_sum {
    double sum, size, error;
    bool is_integer;
    int64_t count;
} kt_sum;

static inline kt_sum kt_sum_none(void) {
    kt_sum s = {0, 0, 0, true, 0};
    return s;
}

static inline void kt_sum_add(kt_sum *s, double x, double error) {
    s->sum += x;
    s->size += fabs(x);
    s->error += error;
    s->is_integer = s->is_integer && x == rint(x);
    s->count++;
}

// The bound of the sum: nothing for integers below 2^24.
static inline double kt_sum_error(const kt_sum *s) {
    bool is_exact = (s->is_integer && s->size <= 0x1p24) || !isfinite(s->sum) || s->count <= 1;
    return s->error + (is_exact ? 0 : (double)s->count * 0x1.01p-24 * (s->size + s->error));
}

typedef enum kt_reduce_kind { KT_SUM, KT_LARGEST, KT_SMALLEST, KT_MEAN } kt_reduce_kind;

// The elements of x from (r, c) on, `count` of them along a row or a column.
static inline void kt_reduce_set(kt_value *d, int64_t i, const kt_value *x, kt_reduce_kind kind,
                                 int64_t r, int64_t c, bool is_row) {
    int64_t count = is_row ? x->valid_cols : x->valid_rows, step = is_row ? 1 : x->cols;
    kt_sum sum = kt_sum_none();
    double best = kind == KT_LARGEST ? -INFINITY : INFINITY, error = 0;
    bool is_nan = false;
    for (int64_t j = 0; j < count; j++) {
        int64_t at = KT_AT(*x, r, c) + j * step;
        double e = x->x[at];
        kt_sum_add(&sum, e, x->error[at]);
        is_nan = is_nan || e != e;
        best = kind == KT_LARGEST ? fmax(best, e) : fmin(best, e);
        error = fmax(error, x->error[at]);
    }
    if (kind == KT_LARGEST || kind == KT_SMALLEST) {
        kt_set(d, i, is_nan ? NAN : best, error);
    } else if (kind == KT_SUM) {
        kt_set(d, i, sum.sum, kt_is_float(x->dtype) ? kt_sum_error(&sum) : 0);
    } else {
        double bound = kt_sum_error(&sum);
        kt_set(d, i, sum.sum / (double)count,
               bound == 0 ? 0 : (bound + 0x1p-24 * fabs(sum.sum)) / (double)count);
    }
}

static inline kt_value kt_reduce_to(kt *t, ptowsp_value v, kt_reduce_kind kind, kt_value x,
                                    bool is_row, ptowsp_dtype dtype) {
    kt_value d = is_row
                     ? kt_value_part(t, v, dtype, x.rows, 1, x.valid_rows, 1, x.is_row_tail, false)
                     : kt_value_part(t, v, dtype, 1, x.cols, 1, x.valid_cols, false, x.is_col_tail);
    KT_EACH(d, r, c) {
        kt_reduce_set(&d, KT_AT(d, r, c), &x, kind, r, c, is_row);
    }
    return d;
}

// Along rows bf16 gives f32, and so do means.
static inline kt_value kt_reduce(kt *t, ptowsp_value v, kt_reduce_kind kind, kt_value x,
                                 bool is_row) {
    bool is_f32 = x.dtype == PTOWSP_BF16 || kind == KT_MEAN;
    return kt_reduce_to(t, v, kind, x, is_row, is_row && is_f32 ? PTOWSP_F32 : x.dtype);
}

#define KT_REDUCE(name, kind, is_row)                                                              \
    static inline kt_value kt_##name(kt *t, kt_value x) {                                          \
        return kt_reduce(t, ptowsp_tile_##name(x.v), kind, x, is_row);                             \
    }
KT_REDUCE(rowsum, KT_SUM, true)
static inline kt_value kt_rowsum_f32(kt *t, kt_value x) {
    bool is_float = kt_is_float(x.dtype);
    return kt_reduce_to(t, ptowsp_tile_rowsum_f32(x.v), KT_SUM, x, true,
                        is_float ? PTOWSP_F32 : x.dtype);
}

KT_REDUCE(rowmax, KT_LARGEST, true)
KT_REDUCE(rowmin, KT_SMALLEST, true)
KT_REDUCE(rowmean, KT_MEAN, true)
KT_REDUCE(colsum, KT_SUM, false)
KT_REDUCE(colmax, KT_LARGEST, false)
KT_REDUCE(colmin, KT_SMALLEST, false)

static inline kt_value kt_broadcast(kt *t, kt_value x, kt_value vector, bool is_row) {
    kt_value d = kt_value_like(t,
                               is_row ? ptowsp_tile_row_broadcast(x.v, vector.v)
                                      : ptowsp_tile_col_broadcast(x.v, vector.v),
                               vector.dtype, &x);
    KT_EACH(d, r, c) {
        kt_copy(&d, KT_AT(d, r, c), &vector, is_row ? r : c);
    }
    return d;
}

// -- matrix products ------------------------------------------------------------------------------

// a times b, plus `third` where it is given: of the result's shape, or a row of biases.
static inline kt_value kt_product(kt *t, ptowsp_value v, kt_value a, kt_value b,
                                  const kt_value *third) {
    kt_value d = kt_value_part(t, v, a.dtype == PTOWSP_I8 ? PTOWSP_I32 : PTOWSP_F32, a.rows, b.cols,
                               a.valid_rows, b.valid_cols, a.is_row_tail, b.is_col_tail);
    KT_EACH(d, r, c) {
        kt_sum sum = kt_sum_none();
        for (int64_t k = 0; k < a.valid_cols; k++) {
            int64_t i = KT_AT(a, r, k), j = KT_AT(b, k, c);
            double ea = a.error[i], eb = b.error[j];
            kt_sum_add(&sum, a.x[i] * b.x[j], fabs(a.x[i]) * eb + fabs(b.x[j]) * ea + ea * eb);
        }
        if (third) {
            int64_t i = third->rows == d.rows ? KT_AT(*third, r, c) : c;
            kt_sum_add(&sum, third->x[i], third->error[i]);
        }
        // A rounding of each product as well.
        double bound = kt_sum_error(&sum);
        kt_set(&d, KT_AT(d, r, c), sum.sum,
               bound == sum.error ? bound : bound + 0x1p-24 * (sum.size + sum.error));
    }
    return d;
}

static inline kt_value kt_matmul(kt *t, kt_value a, kt_value b) {
    return kt_product(t, ptowsp_tile_matmul(a.v, b.v), a, b, NULL);
}

static inline kt_value kt_matmul_acc(kt *t, kt_value acc, kt_value a, kt_value b) {
    return kt_product(t, ptowsp_tile_matmul_acc(acc.v, a.v, b.v), a, b, &acc);
}

static inline kt_value kt_matmul_bias(kt *t, kt_value a, kt_value b, kt_value bias) {
    return kt_product(t, ptowsp_tile_matmul_bias(a.v, b.v, bias.v), a, b, &bias);
}

// -- layout ---------------------------------------------------------------------------------------

static inline kt_value kt_transpose(kt *t, kt_value x) {
    kt_value d = kt_value_part(t, ptowsp_tile_transpose(x.v), x.dtype, x.cols, x.rows, x.valid_cols,
                               x.valid_rows, x.is_col_tail, x.is_row_tail);
    KT_EACH(d, r, c) {
        kt_copy(&d, KT_AT(d, r, c), &x, KT_AT(x, c, r));
    }
    return d;
}

static inline int64_t kt_clamp(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}

static inline kt_value kt_slice(kt *t, kt_value x, int64_t row, int64_t col, int64_t rows,
                                int64_t cols) {
    kt_value d = kt_value_part(t, ptowsp_tile_slice(x.v, row, col, rows, cols), x.dtype, rows, cols,
                               kt_clamp(x.valid_rows - row, 0, rows),
                               kt_clamp(x.valid_cols - col, 0, cols), x.is_row_tail, x.is_col_tail);
    KT_EACH(d, r, c) {
        kt_copy(&d, KT_AT(d, r, c), &x, KT_AT(x, r + row, c + col));
    }
    return d;
}

// A full or iota, all valid; a load, the same again.
static inline kt_value kt_full(kt *t, ptowsp_dtype dtype, int64_t rows, int64_t cols, double x) {
    kt_value d = kt_value_make(t, ptowsp_tile_full(t->k, dtype, rows, cols, x), dtype, rows, cols);
    KT_EACH(d, r, c) {
        d.x[KT_AT(d, r, c)] = kt_cast(dtype, x);
    }
    return d;
}

static inline kt_value kt_iota(kt *t, ptowsp_dtype dtype, int64_t cols, double start) {
    kt_value d = kt_value_make(t, ptowsp_tile_iota(t->k, dtype, cols, start), dtype, 1, cols);
    for (int64_t c = 0; c < cols; c++) {
        d.x[c] = kt_cast(dtype, start + (double)c);
    }
    return d;
}

static inline kt_value kt_load(kt_value param) {
    param.v = ptowsp_tile_load(param.v);
    return param;
}

static inline kt_value kt_interleave(kt *t, kt_value x, kt_value y) {
    kt_value d = kt_value_part(t, ptowsp_tile_interleave(x.v, y.v), x.dtype, x.rows, 2 * x.cols,
                               x.valid_rows, 2 * x.valid_cols, x.is_row_tail, x.is_col_tail);
    KT_EACH(d, r, c) {
        const kt_value *of = c % 2 ? &y : &x;
        kt_copy(&d, KT_AT(d, r, c), of, KT_AT(*of, r, c / 2));
    }
    return d;
}

static inline kt_value kt_deinterleave(kt *t, kt_value x, uint32_t part) {
    kt_value d =
        kt_value_part(t, ptowsp_tile_deinterleave(x.v, part), x.dtype, x.rows, x.cols / 2,
                      x.valid_rows, (x.valid_cols + 1 - part) / 2, x.is_row_tail, x.is_col_tail);
    KT_EACH(d, r, c) {
        kt_copy(&d, KT_AT(d, r, c), &x, KT_AT(x, r, 2 * c + part));
    }
    return d;
}

// -- types ----------------------------------------------------------------------------------------

static inline double kt_rounded(double x, ptowsp_round round) {
    switch (round) {
    case PTOWSP_ROUND_AWAY: return x < 0 ? -floor(-x + 0.5) : floor(x + 0.5);
    case PTOWSP_ROUND_FLOOR: return floor(x);
    case PTOWSP_ROUND_CEIL: return ceil(x);
    case PTOWSP_ROUND_TRUNC: return trunc(x);
    default: return rint(x);
    }
}

// To an integer type: rounded, saturated; NaN is 0.
static inline double kt_to_integer(ptowsp_dtype dtype, double x, ptowsp_round round) {
    double bits = 8.0 * ptowsp_dtype_size(dtype);
    bool is_unsigned = dtype == PTOWSP_U8;
    double low = is_unsigned ? 0 : -exp2(bits - 1), high = exp2(is_unsigned ? bits : bits - 1) - 1;
    x = x != x ? 0 : kt_rounded(x, round);
    return x < low ? low : x > high ? high : x;
}

static inline kt_value kt_cvt(kt *t, kt_value x, ptowsp_dtype dtype, ptowsp_round round) {
    kt_value d = kt_value_like(t, ptowsp_tile_cvt(x.v, dtype, round), dtype, &x);
    KT_EACH(d, r, c) {
        int64_t i = KT_AT(d, r, c);
        if (kt_is_float(dtype)) {
            kt_set(&d, i, x.x[i], x.error[i]);
        } else {
            d.x[i] = kt_to_integer(dtype, x.x[i], round);
            d.error[i] = x.error[i] == 0 ? 0 : x.error[i] + 1;
        }
    }
    return d;
}

static inline kt_value kt_quantize(kt *t, kt_value x, kt_value scale) {
    kt_value d = kt_value_like(t, ptowsp_tile_quantize(x.v, scale.v), PTOWSP_I8, &x);
    KT_EACH(d, r, c) {
        int64_t i = KT_AT(d, r, c);
        double product = kt_round(PTOWSP_F32, x.x[i] * scale.x[r]);
        d.x[i] = kt_to_integer(PTOWSP_I8, product, PTOWSP_ROUND_NEAREST);
        d.error[i] = x.error[i] + scale.error[r] == 0 ? 0 : 1;
    }
    return d;
}

static inline kt_value kt_dequantize(kt *t, kt_value x, kt_value scale, kt_value offset) {
    kt_value d = kt_value_like(t, ptowsp_tile_dequantize(x.v, scale.v, offset.v), PTOWSP_F32, &x);
    KT_EACH(d, r, c) {
        int64_t i = KT_AT(d, r, c);
        kt_set(&d, i, kt_round(PTOWSP_F32, x.x[i] - offset.x[r]) * scale.x[r], 0);
    }
    return d;
}

#endif
