// TCVT, TQUANT, TDEQUANT: elements of one type to another, row by row over arrays (cast.h).
//
// Most pairs go through f32, which holds every element of the smaller types exactly:
//
//      f16, bf16, i8, u8, i16, u16 --> f32 --round--> f16, bf16, f32, i8 .. u32, i64
//      i32, u32, i64 --> f32, f16, i32, i16, i64                              each by itself
//
// Rounding: as the mode says; to f16 always to nearest, ties to even. Integers saturate and NaN
// becomes 0, but for the pairs f16 to i8, u8, i16, f32 to i16, i64 to i32 and i32 to i16 without
// saturation: they keep the low bits of the rounded integer, and infinity becomes 0. f16 and bf16
// overflow to infinity.

#ifndef PTOISA_CONVERT_H
#define PTOISA_CONVERT_H

#include "shape.h"

// -- which pairs there are ------------------------------------------------------------------------

typedef enum ptoisa_cvt_kind {
    PTOISA_CVT_NONE = 0,
    PTOISA_CVT_ANY,   // every machine has it, and it always saturates
    PTOISA_CVT_WRAP,  // every machine has it, and it may wrap
    PTOISA_CVT_A5     // not on A2/A3
} ptoisa_cvt_kind;

PTOISA_FN ptoisa_cvt_kind ptoisa_cvt_kind_of(ptoisa_dtype to, ptoisa_dtype from) {
    uint32_t any = 0, wrap = 0, a5 = 0;
    switch (from) {
    case PTOISA_F32:
        any = PTOISA_SET(PTOISA_F16) | PTOISA_SET(PTOISA_BF16) | PTOISA_SET(PTOISA_I32) |
              PTOISA_SET(PTOISA_I64) | PTOISA_SET(PTOISA_F32);
        wrap = PTOISA_SET(PTOISA_I16);
        a5 = PTOISA_SET(PTOISA_I8) | PTOISA_SET(PTOISA_U8) | PTOISA_SET(PTOISA_U16) |
             PTOISA_SET(PTOISA_U32);
        break;
    case PTOISA_F16:
        any = PTOISA_SET(PTOISA_F32) | PTOISA_SET(PTOISA_I32);
        wrap = PTOISA_SET(PTOISA_I16) | PTOISA_SET(PTOISA_I8) | PTOISA_SET(PTOISA_U8);
        a5 = PTOISA_SET(PTOISA_BF16);
        break;
    case PTOISA_BF16:
        any = PTOISA_SET(PTOISA_F32) | PTOISA_SET(PTOISA_I32);
        a5 = PTOISA_SET(PTOISA_F16);
        break;
    case PTOISA_I16: any = PTOISA_SET(PTOISA_F32) | PTOISA_SET(PTOISA_F16); break;
    case PTOISA_I32:
        any = PTOISA_SET(PTOISA_F32) | PTOISA_SET(PTOISA_F16) | PTOISA_SET(PTOISA_I64);
        wrap = PTOISA_SET(PTOISA_I16);
        break;
    case PTOISA_I64:
        any = PTOISA_SET(PTOISA_F32);
        wrap = PTOISA_SET(PTOISA_I32);
        break;
    case PTOISA_U8:
    case PTOISA_I8:
        any = PTOISA_SET(PTOISA_F16);
        a5 = PTOISA_SET(PTOISA_F32);
        break;
    case PTOISA_U16:
    case PTOISA_U32: a5 = PTOISA_SET(PTOISA_F32); break;
    default: break;
    }
    return any >> to & 1    ? PTOISA_CVT_ANY
           : wrap >> to & 1 ? PTOISA_CVT_WRAP
           : a5 >> to & 1   ? PTOISA_CVT_A5
                            : PTOISA_CVT_NONE;
}

PTOISA_FN bool ptoisa_check_cvt(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s) {
    const ptoisa_op op = PTOISA_TCVT;
    if (!ptoisa_check_shape_rows(core, op, "d", d, PTOISA_SET_ALL, 0, 0) ||
        !ptoisa_check_shape_rows(core, op, "s", s, PTOISA_SET_ALL, d->valid_rows, d->valid_cols)) {
        return false;
    }
    ptoisa_cvt_kind kind = ptoisa_cvt_kind_of((ptoisa_dtype)d->dtype, (ptoisa_dtype)s->dtype);
    if (kind == PTOISA_CVT_NONE) {
        return ptoisa_fault(core, op, "s is %s, which does not become %s (d)",
                            ptoisa_dtype_name((ptoisa_dtype)s->dtype),
                            ptoisa_dtype_name((ptoisa_dtype)d->dtype));
    }
    if (kind == PTOISA_CVT_A5 && core->machine->family != PTOISA_A5) {
        return ptoisa_fault(core, op, "s is %s, which becomes %s (d) only on A5",
                            ptoisa_dtype_name((ptoisa_dtype)s->dtype),
                            ptoisa_dtype_name((ptoisa_dtype)d->dtype));
    }
    if (!core->is_dry && d->data == s->data &&
        ptoisa_dtype_size((ptoisa_dtype)d->dtype) > ptoisa_dtype_size((ptoisa_dtype)s->dtype)) {
        return ptoisa_fault(core, op, "d is at the address of s, and its elements are larger");
    }
    return true;
}

// -- arrays ---------------------------------------------------------------------------------------

#define PTOISA_CVT_STEP 512  // elements at a time

// From f32.
PTOISA_FN void ptoisa_cvt_from_f32(ptoisa_dtype to, void *d, const ptoisa_any_f32 *s, size_t n,
                                   ptoisa_round round, bool is_wrapping) {
    int32_t rounded[PTOISA_CVT_STEP];
    switch (to) {
    case PTOISA_F16: ptoisa_f16s_from_f32(d, s, n); return;
    case PTOISA_F32: ptoisa_f32s_rounded(d, s, n, round); return;
    case PTOISA_BF16:
        if (round <= PTOISA_CAST_RINT) {
            ptoisa_bf16s_from_f32(d, s, n);
            return;
        }
        for (size_t i = 0; i < n; i++) {
            ((ptoisa_any_u16 *)d)[i] = ptoisa_bf16_rounded(s[i], round);
        }
        return;
    case PTOISA_I64:
        for (size_t i = 0; i < n; i++) {
            ((ptoisa_any_i64 *)d)[i] = ptoisa_i64_from_f32(s[i], round);
        }
        return;
    case PTOISA_U32:
        for (size_t i = 0; i < n; i++) {
            int64_t x = ptoisa_i64_from_f32(s[i], round);
            ((ptoisa_any_u32 *)d)[i] = (uint32_t)(x < 0 ? 0 : x > UINT32_MAX ? UINT32_MAX : x);
        }
        return;
    case PTOISA_I32: ptoisa_i32s_from_f32(d, s, n, round, INT32_MIN, INT32_MAX); return;
    default: break;
    }
    if (is_wrapping) {
        ptoisa_f32s_low16(rounded, s, n);
        ptoisa_i32s_from_f32(rounded, rounded, n, round, INT32_MIN, INT32_MAX);
    } else {
        ptoisa_i32s_from_f32(rounded, s, n, round, ptoisa_dtype_low(to), ptoisa_dtype_high(to));
    }
    ptoisa_low_from_i32(to, d, rounded, n);
}

// From i32, u32 and i64.
PTOISA_FN void ptoisa_cvt_from_wide(ptoisa_dtype to, void *d, ptoisa_dtype from, const void *s,
                                    size_t n, ptoisa_round round, bool is_wrapping) {
    const ptoisa_any_i32 *words = (const ptoisa_any_i32 *)s;
    if (from == PTOISA_I32 && to == PTOISA_F32 && round <= PTOISA_CAST_RINT) {
        ptoisa_f32s_from_i32(d, s, n);
        return;
    }
    if (to == PTOISA_F32 && round <= PTOISA_CAST_RINT) {
        for (size_t i = 0; i < n; i++) {
            ((ptoisa_any_f32 *)d)[i] = from == PTOISA_U32 ? (float)((const ptoisa_any_u32 *)s)[i]
                                                          : (float)((const ptoisa_any_i64 *)s)[i];
        }
        return;
    }
    if (from == PTOISA_I32 && to == PTOISA_I16 && is_wrapping) {
        ptoisa_low16_from_i32(d, s, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t x = from == PTOISA_I32   ? words[i]
                    : from == PTOISA_U32 ? (int64_t)((const ptoisa_any_u32 *)s)[i]
                                         : ((const ptoisa_any_i64 *)s)[i];
        switch (to) {
        case PTOISA_F32: ((ptoisa_any_f32 *)d)[i] = ptoisa_f32_from_i64(x, round); break;
        case PTOISA_F16: ((ptoisa_any_u16 *)d)[i] = ptoisa_f16_from_i64(x); break;
        case PTOISA_I64: ((ptoisa_any_i64 *)d)[i] = x; break;
        case PTOISA_I32:
            x = is_wrapping || x == (int32_t)(uint32_t)x ? x : x < 0 ? INT32_MIN : INT32_MAX;
            ((ptoisa_any_u32 *)d)[i] = (uint32_t)x;
            break;
        default:  // i16, saturating
            x = x < INT16_MIN ? INT16_MIN : x > INT16_MAX ? INT16_MAX : x;
            ((ptoisa_any_u16 *)d)[i] = (uint16_t)x;
            break;
        }
    }
}

// Converts an array. d may be s where its elements are not larger.
PTOISA_FN void ptoisa_cvt_array(ptoisa_dtype to, void *d, ptoisa_dtype from, const void *s,
                                size_t n, ptoisa_round round, bool is_wrapping) {
    float wide[PTOISA_CVT_STEP];
    size_t to_size = ptoisa_dtype_size(to), from_size = ptoisa_dtype_size(from), count;
    for (size_t i = 0; i < n; i += count) {
        count = n - i < PTOISA_CVT_STEP ? n - i : PTOISA_CVT_STEP;
        uint8_t *out = (uint8_t *)d + i * to_size;
        const uint8_t *in = (const uint8_t *)s + i * from_size;
        if (from == PTOISA_F32) {
            ptoisa_cvt_from_f32(to, out, (const ptoisa_any_f32 *)(const void *)in, count, round,
                                is_wrapping);
        } else if (from_size >= 4) {
            ptoisa_cvt_from_wide(to, out, from, in, count, round, is_wrapping);
        } else if (to == PTOISA_F32) {
            ptoisa_f32s_from(from, out, in, count);
        } else {
            ptoisa_f32s_from(from, wide, in, count);
            ptoisa_cvt_from_f32(to, out, wide, count, round, is_wrapping);
        }
    }
}

// d = s in d's type.
PTOISA_FN void ptoisa_tcvt(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                           ptoisa_round round, bool saturate) {
    if (PTOISA_CHECKED && !ptoisa_check_cvt(core, d, s)) {
        return;
    }
    ptoisa_issue(core, PTOISA_TCVT, d, s, NULL);
    if (core->is_dry) {
        return;
    }
    ptoisa_dtype to = (ptoisa_dtype)d->dtype, from = (ptoisa_dtype)s->dtype;
    bool is_wrapping = !saturate && ptoisa_cvt_kind_of(to, from) == PTOISA_CVT_WRAP;
    uint32_t rows = d->valid_rows, cols = d->valid_cols;
    if (cols == d->cols && cols == s->cols) {
        cols *= rows;
        rows = rows ? 1 : 0;
    }
    size_t d_step = (size_t)d->cols * ptoisa_dtype_size(to);
    size_t s_step = (size_t)s->cols * ptoisa_dtype_size(from);
    for (uint32_t r = 0; r < rows; r++) {
        ptoisa_cvt_array(to, (uint8_t *)d->data + r * d_step, from,
                         (const uint8_t *)s->data + r * s_step, cols, round, is_wrapping);
    }
}

// -- quantising -----------------------------------------------------------------------------------

// A number for each row: a column of them, column-major or row-major with one valid column.
PTOISA_FN bool ptoisa_check_scale(ptoisa_core *core, ptoisa_op op, const char *which,
                                  const ptoisa_tile *tile, uint32_t rows) {
    if (!ptoisa_check_operand(core, op, which, tile, PTOISA_SET(PTOISA_F32), PTOISA_VEC, rows,
                              rows ? 1 : 0)) {
        return false;
    }
    if (tile->layout > PTOISA_COL_MAJOR || tile->valid_cols > 1 ||
        (tile->layout == PTOISA_COL_MAJOR && tile->cols != 1)) {
        return ptoisa_fault(core, op, "%s is no column: it has %u valid columns of %u", which,
                            tile->valid_cols, tile->cols);
    }
    return true;
}

PTOISA_FN void ptoisa_quant(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                            const ptoisa_tile *scale, const ptoisa_tile *offset,
                            ptoisa_dtype dtype) {
    const ptoisa_op op = PTOISA_TQUANT;
    if (PTOISA_CHECKED &&
        (!ptoisa_check_shape_rows(core, op, "d", d, PTOISA_SET(dtype), 0, 0) ||
         !ptoisa_check_shape_rows(core, op, "s", s, PTOISA_SET(PTOISA_F32), d->valid_rows,
                                  d->valid_cols) ||
         !ptoisa_check_scale(core, op, "scale", scale, d->valid_rows) ||
         (offset && !ptoisa_check_scale(core, op, "offset", offset, d->valid_rows)))) {
        return;
    }
    ptoisa_issue(core, op, d, s, scale);
    if (core->is_dry) {
        return;
    }
    float scaled[PTOISA_CVT_STEP];
    uint32_t n;
    for (uint32_t r = 0; r < d->valid_rows; r++) {
        uint8_t *to = (uint8_t *)d->data + (uint64_t)r * d->cols;
        const ptoisa_any_f32 *from = (const ptoisa_any_f32 *)s->data + (uint64_t)r * s->cols;
        const ptoisa_cast_args times = ptoisa_by((float)ptoisa_get(scale, r, 0), 0);
        const ptoisa_cast_args plus = ptoisa_by(offset ? (float)ptoisa_get(offset, r, 0) : 0, 0);
        for (uint32_t c = 0; c < d->valid_cols; c += n) {
            n = ptoisa_min_u32(d->valid_cols - c, PTOISA_CVT_STEP);
            // Two calls: seen together, the compiler would fuse them where the processor can.
            ptoisa_f32s_times_by(scaled, from + c, n, &times);
            if (offset) {
                ptoisa_f32s_plus_by(scaled, scaled, n, &plus);
            }
            ptoisa_cvt_from_f32(dtype, to + c, scaled, n, PTOISA_CAST_RINT, false);
        }
    }
}

// i8: clamp(rint(s * scale[r]), -128, 127); scale is one over the step.
PTOISA_FN void ptoisa_tquant_sym(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                                 const ptoisa_tile *scale) {
    ptoisa_quant(core, d, s, scale, NULL, PTOISA_I8);
}

// The form of A2/A3: with t, scratch of as many bytes as s has, whole 8 rows of it. s becomes
// s * scale[r].
PTOISA_FN void ptoisa_tquant_sym_scratch(ptoisa_core *core, const ptoisa_tile *d,
                                         const ptoisa_tile *s, const ptoisa_tile *scale,
                                         const ptoisa_tile *t) {
    const ptoisa_op op = PTOISA_TQUANT;
    if (PTOISA_CHECKED) {
        const uint64_t bytes = (uint64_t)((s->rows + 7) / 8 * 8) * s->cols * 4;
        if (!ptoisa_check_tile(core, op, "t", t)) {
            return;
        }
        if (ptoisa_tile_bytes(t) < bytes) {
            ptoisa_fault(core, op, "t has %llu bytes, and %llu are needed",
                         (unsigned long long)ptoisa_tile_bytes(t), (unsigned long long)bytes);
            return;
        }
    }
    ptoisa_quant(core, d, s, scale, NULL, PTOISA_I8);
    for (uint32_t r = 0; r < d->valid_rows && !core->is_dry; r++) {
        ptoisa_any_f32 *row = (ptoisa_any_f32 *)s->data + (uint64_t)r * s->cols;
        const ptoisa_cast_args times = ptoisa_by((float)ptoisa_get(scale, r, 0), 0);
        ptoisa_f32s_times_by(row, row, d->valid_cols, &times);
    }
}

// u8: clamp(rint(s * scale[r] + offset[r]), 0, 255).
PTOISA_FN void ptoisa_tquant_asym(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                                  const ptoisa_tile *scale, const ptoisa_tile *offset) {
    ptoisa_quant(core, d, s, scale, offset, PTOISA_U8);
}

// f32: (s - offset[r]) * scale[r], from i8 or i16.
PTOISA_FN void ptoisa_tdequant(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                               const ptoisa_tile *scale, const ptoisa_tile *offset) {
    const ptoisa_op op = PTOISA_TDEQUANT;
    if (PTOISA_CHECKED &&
        (!ptoisa_check_shape_rows(core, op, "d", d, PTOISA_SET(PTOISA_F32), 0, 0) ||
         !ptoisa_check_shape_rows(core, op, "s", s, PTOISA_SET(PTOISA_I8) | PTOISA_SET(PTOISA_I16),
                                  d->valid_rows, d->valid_cols) ||
         !ptoisa_check_scale(core, op, "scale", scale, d->valid_rows) ||
         !ptoisa_check_scale(core, op, "offset", offset, d->valid_rows))) {
        return;
    }
    ptoisa_issue(core, op, d, s, scale);
    if (core->is_dry) {
        return;
    }
    size_t s_step = (size_t)s->cols * ptoisa_dtype_size((ptoisa_dtype)s->dtype);
    for (uint32_t r = 0; r < d->valid_rows; r++) {
        ptoisa_any_f32 *to = (ptoisa_any_f32 *)d->data + (uint64_t)r * d->cols;
        const ptoisa_cast_args by =
            ptoisa_by((float)ptoisa_get(offset, r, 0), (float)ptoisa_get(scale, r, 0));
        ptoisa_f32s_from((ptoisa_dtype)s->dtype, to, (const uint8_t *)s->data + r * s_step,
                         d->valid_cols);
        ptoisa_f32s_minus_times_by(to, to, d->valid_cols, &by);
    }
}

#endif
