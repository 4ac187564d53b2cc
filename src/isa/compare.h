// Comparisons and selections: TCMP, TCMPS, TSEL, TSELS.
//
// A mask is a row-major tile of u8 (A5: u32) whose row r holds the bits of row r, column c in bit
// c % 8 of byte c / 8; so ceil(columns / 8) bytes of it are valid. A comparison writes whole
// elements of the mask: bits past the last column are 0.
//
// A comparison makes up to eight bits at once from three masks: less, equal and greater. The mode
// selects among them, and NE is the complement of EQ. So one loop serves all modes. NaN is neither
// less nor equal nor greater: it compares false, except with NE.

#ifndef PTOISA_COMPARE_H
#define PTOISA_COMPARE_H

#include "rows.h"
#include "simd.h"

typedef struct ptoisa_cmp_mode {
    uint32_t less, equal, greater, flip;  // 0 or 0xff
} ptoisa_cmp_mode;

PTOISA_INLINE ptoisa_cmp_mode ptoisa_cmp_mode_of(ptoisa_compare compare) {
    ptoisa_cmp_mode mode = {0, 0, 0, 0};
    mode.less = compare == PTOISA_LT || compare == PTOISA_LE ? 0xff : 0;
    mode.greater = compare == PTOISA_GT || compare == PTOISA_GE ? 0xff : 0;
    mode.equal = compare == PTOISA_LT || compare == PTOISA_GT ? 0 : 0xff;
    mode.flip = compare == PTOISA_NE ? 0xff : 0;
    return mode;
}

PTOISA_ALWAYS uint8_t ptoisa_cmp_join(ptoisa_cmp_mode mode, uint32_t less, uint32_t equal,
                                      uint32_t greater) {
    return (uint8_t)(((less & mode.less) | (equal & mode.equal) | (greater & mode.greater)) ^
                     mode.flip);
}

// -- one row, portable: any type ------------------------------------------------------------------

// A scalar as the element type has it. Integers are cut off, and end at the type's limits.
typedef struct ptoisa_compared {
    float f32;
    int64_t i64;
    uint32_t bits;  // of the element, in its low bytes
} ptoisa_compared;

PTOISA_FN ptoisa_compared ptoisa_compared_of(ptoisa_dtype dtype, double x) {
    ptoisa_compared scalar = {(float)x, 0, 0};
    if (dtype == PTOISA_F16) {
        scalar.bits = ptoisa_f16_from_f32((float)x);
        scalar.f32 = ptoisa_f32_from_f16((uint16_t)scalar.bits);
    } else if (dtype == PTOISA_BF16) {
        scalar.bits = ptoisa_bf16_from_f32((float)x);
        scalar.f32 = ptoisa_f32_from_bf16((uint16_t)scalar.bits);
    } else if (dtype == PTOISA_F32) {
        scalar.bits = ptoisa_bits_from_f32((float)x);
    } else {
        bool is_signed = dtype == PTOISA_I8 || dtype == PTOISA_I16 || dtype == PTOISA_I32;
        uint32_t width = 8 * ptoisa_dtype_size(dtype);
        int64_t low = is_signed ? -((int64_t)1 << (width - 1)) : 0;
        int64_t high = is_signed ? ((int64_t)1 << (width - 1)) - 1 : ((int64_t)1 << width) - 1;
        // A NaN is 0.
        scalar.i64 = x >= (double)high ? high : x <= (double)low ? low : x == x ? (int64_t)x : 0;
        scalar.bits = (uint32_t)scalar.i64;
    }
    return scalar;
}

// Eight bits, or count, of comparisons of elements at s0 with those at s1, or a scalar (s1 NULL).
// clang-format off
#define PTOISA_CMP_TYPES(X) /* dtype, how it is stored, how it is compared, conversion, scalar */  \
    X(F16, uint16_t, float, ptoisa_f32_from_f16, scalar->f32)                                      \
    X(BF16, uint16_t, float, ptoisa_f32_from_bf16, scalar->f32)                                    \
    X(F32, float, float, , scalar->f32)                                                            \
    X(I8, int8_t, int32_t, , (int32_t)scalar->i64)                                                 \
    X(I16, int16_t, int32_t, , (int32_t)scalar->i64)                                               \
    X(I32, int32_t, int32_t, , (int32_t)scalar->i64)                                               \
    X(U8, uint8_t, int32_t, , (int32_t)scalar->i64)                                                \
    X(U16, uint16_t, int32_t, , (int32_t)scalar->i64)                                              \
    X(U32, uint32_t, uint32_t, , (uint32_t)scalar->i64)
// clang-format on

#define PTOISA_CMP_EIGHT(name, stored, compared, convert, from_scalar)                             \
    PTOISA_INLINE uint8_t ptoisa_cmp_##name(const uint8_t *s0, const uint8_t *s1,                  \
                                            const ptoisa_compared *scalar, uint32_t count,         \
                                            ptoisa_cmp_mode mode) {                                \
        uint32_t less = 0, equal = 0, greater = 0, all = (1u << count) - 1;                        \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            compared x = convert(((const stored *)(const void *)s0)[i]);                           \
            compared y =                                                                           \
                s1 ? convert(((const stored *)(const void *)s1)[i]) : (compared)(from_scalar);     \
            less |= (uint32_t)(x < y) << i;                                                        \
            equal |= (uint32_t)(x == y) << i;                                                      \
            greater |= (uint32_t)(x > y) << i;                                                     \
        }                                                                                          \
        return (uint8_t)(ptoisa_cmp_join(mode, less, equal, greater) & all);                       \
    }
PTOISA_CMP_TYPES(PTOISA_CMP_EIGHT)
#undef PTOISA_CMP_EIGHT

// Byte k of a mask's row is at k ^ this. A mask of words has them in the machine's byte order; bit
// c of a word belongs to column c.
PTOISA_INLINE uint32_t ptoisa_mask_order(const ptoisa_tile *mask) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return ptoisa_dtype_size((ptoisa_dtype)mask->dtype) - 1;
#else
    (void)mask;
    return 0;
#endif
}

// Compares columns [from, cols) of a row; from is a multiple of 8.
PTOISA_FN void ptoisa_cmp_row(uint8_t *mask, uint32_t order, const uint8_t *s0, const uint8_t *s1,
                              const ptoisa_compared *scalar, ptoisa_dtype dtype, uint32_t from,
                              uint32_t cols, ptoisa_cmp_mode mode) {
    const uint32_t size = ptoisa_dtype_size(dtype);
    for (uint32_t c = from; c < cols; c += 8) {
        const uint32_t count = cols - c < 8 ? cols - c : 8;
        const uint8_t *x = s0 + c * size, *y = s1 ? s1 + c * size : NULL;
        switch (dtype) {
#define PTOISA_CMP_CASE(name, stored, compared, convert, from_scalar)                              \
    case PTOISA_##name: mask[(c / 8) ^ order] = ptoisa_cmp_##name(x, y, scalar, count, mode); break;
            PTOISA_CMP_TYPES(PTOISA_CMP_CASE)
#undef PTOISA_CMP_CASE
        default: break;
        }
    }
}

// Selects columns [from, cols) of a row; bytes past s0, or a scalar if s1 is NULL.
PTOISA_FN void ptoisa_sel_row(uint8_t *d, const uint8_t *mask, uint32_t order, const uint8_t *s0,
                              const uint8_t *s1, const ptoisa_compared *scalar, uint32_t size,
                              uint32_t from, uint32_t cols) {
    if (size == 4) {
        for (uint32_t c = from; c < cols; c++) {
            uint32_t x, y = scalar->bits;
            memcpy(&x, s0 + c * 4, 4);
            if (s1) {
                memcpy(&y, s1 + c * 4, 4);
            }
            x = mask[(c / 8) ^ order] >> c % 8 & 1 ? x : y;
            memcpy(d + c * 4, &x, 4);
        }
        return;
    }
    for (uint32_t c = from; size == 1 && c < cols; c++) {
        const uint8_t y = s1 ? s1[c] : (uint8_t)scalar->bits;
        d[c] = mask[(c / 8) ^ order] >> c % 8 & 1 ? s0[c] : y;
    }
    for (uint32_t c = from; size == 2 && c < cols; c++) {
        uint16_t x, y = (uint16_t)scalar->bits;
        memcpy(&x, s0 + c * 2, 2);
        if (s1) {
            memcpy(&y, s1 + c * 2, 2);
        }
        x = mask[(c / 8) ^ order] >> c % 8 & 1 ? x : y;
        memcpy(d + c * 2, &x, 2);
    }
}

// -- one row, as far as vectors go ----------------------------------------------------------------

// Only where bytes of words have the lowest first (simd.h).

#if PTOISA_X86
// Both return the columns done.
PTOISA_AVX2 PTOISA_FN uint32_t ptoisa_cmp_row_avx2(uint8_t *mask, const uint8_t *s0,
                                                   const uint8_t *s1, float scalar, bool is_f16,
                                                   uint32_t cols, ptoisa_cmp_mode mode) {
    uint32_t c = 0;
    __m256 x, y = _mm256_set1_ps(scalar);
    for (; c + 8 <= cols; c += 8) {
        if (is_f16) {
            x = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(s0 + c * 2)));
            if (s1) {
                y = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(s1 + c * 2)));
            }
        } else {
            x = _mm256_loadu_ps((const float *)(const void *)(s0 + c * 4));
            y = s1 ? _mm256_loadu_ps((const float *)(const void *)(s1 + c * 4)) : y;
        }
        uint32_t less = (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_LT_OQ));
        uint32_t equal = (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_EQ_OQ));
        uint32_t greater = (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_GT_OQ));
        mask[c / 8] = ptoisa_cmp_join(mode, less, equal, greater);
    }
    return c;
}

PTOISA_AVX2 PTOISA_FN uint32_t ptoisa_sel_row_avx2(uint8_t *d, const uint8_t *mask,
                                                   const uint8_t *s0, const uint8_t *s1,
                                                   uint32_t scalar, uint32_t size, uint32_t cols) {
    const __m256i bit4 = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i bit2 = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096,
                                           8192, 16384, -32768);
    const uint32_t step = 32 / size;
    uint32_t c = 0;
    __m256i y = size == 4 ? _mm256_set1_epi32((int)scalar) : _mm256_set1_epi16((short)scalar);
    for (; c + step <= cols; c += step) {
        __m256i bits;
        if (size == 4) {
            bits = _mm256_and_si256(_mm256_set1_epi32(mask[c / 8]), bit4);
            bits = _mm256_cmpeq_epi32(bits, bit4);
        } else {
            int two = mask[c / 8] | mask[c / 8 + 1] << 8;
            bits = _mm256_and_si256(_mm256_set1_epi16((short)two), bit2);
            bits = _mm256_cmpeq_epi16(bits, bit2);
        }
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(s0 + c * size));
        y = s1 ? _mm256_loadu_si256((const __m256i *)(const void *)(s1 + c * size)) : y;
        _mm256_storeu_si256((__m256i *)(void *)(d + c * size), _mm256_blendv_epi8(y, x, bits));
    }
    return c;
}
#endif

#if PTOISA_NEON
PTOISA_FN uint32_t ptoisa_cmp_row_neon(uint8_t *mask, const uint8_t *s0, const uint8_t *s1,
                                       float scalar, uint32_t cols, ptoisa_cmp_mode mode) {
    const uint32_t weights[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint32x4_t low = vld1q_u32(weights), high = vld1q_u32(weights + 4);
    float32x4_t y0 = vdupq_n_f32(scalar), y1 = y0;
    uint32_t c = 0;
    for (; c + 8 <= cols; c += 8) {
        float32x4_t x0 = vreinterpretq_f32_u8(vld1q_u8(s0 + c * 4));
        float32x4_t x1 = vreinterpretq_f32_u8(vld1q_u8(s0 + c * 4 + 16));
        if (s1) {
            y0 = vreinterpretq_f32_u8(vld1q_u8(s1 + c * 4));
            y1 = vreinterpretq_f32_u8(vld1q_u8(s1 + c * 4 + 16));
        }
#define PTOISA_CMP_BITS(op)                                                                        \
    vaddvq_u32(vorrq_u32(vandq_u32(op(x0, y0), low), vandq_u32(op(x1, y1), high)))
        mask[c / 8] = ptoisa_cmp_join(mode, PTOISA_CMP_BITS(vcltq_f32), PTOISA_CMP_BITS(vceqq_f32),
                                      PTOISA_CMP_BITS(vcgtq_f32));
#undef PTOISA_CMP_BITS
    }
    return c;
}

PTOISA_FN uint32_t ptoisa_sel_row_neon(uint8_t *d, const uint8_t *mask, const uint8_t *s0,
                                       const uint8_t *s1, uint32_t scalar, uint32_t cols) {
    const uint32_t weights[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    uint32x4_t y = vdupq_n_u32(scalar);
    uint32_t c = 0;
    for (; c + 4 <= cols; c += 4) {
        uint32x4_t bits = vtstq_u32(vdupq_n_u32(mask[c / 8]), vld1q_u32(weights + c % 8));
        uint32x4_t x = vreinterpretq_u32_u8(vld1q_u8(s0 + c * 4));
        y = s1 ? vreinterpretq_u32_u8(vld1q_u8(s1 + c * 4)) : y;
        vst1q_u8(d + c * 4, vreinterpretq_u8_u32(vbslq_u32(bits, x, y)));
    }
    return c;
}
#endif

// -- instructions ---------------------------------------------------------------------------------

// Bytes and elements of a mask's row for so many columns.
PTOISA_INLINE uint32_t ptoisa_mask_cols(const ptoisa_tile *mask, uint32_t cols) {
    uint32_t bits = mask->dtype == PTOISA_U32 ? 32 : 8;
    return (cols + bits - 1) / bits;
}

PTOISA_FN bool ptoisa_check_mask(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *mask,
                                 uint32_t rows, uint32_t cols) {
    return ptoisa_check_row_major(core, op, "mask", mask,
                                  PTOISA_SET(PTOISA_U8) | PTOISA_SET(PTOISA_U32), rows,
                                  ptoisa_mask_cols(mask, cols));
}

PTOISA_FN bool ptoisa_cmp_check(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *mask,
                                const ptoisa_tile *s0, const ptoisa_tile *s1,
                                ptoisa_compare compare) {
    const bool is_a2a3 = core->machine->family == PTOISA_A2A3 && !core->is_as_simulator;
    uint32_t types = PTOISA_SET_FLOAT | PTOISA_SET(PTOISA_I32);
    if (op == PTOISA_TCMPS) {
        types |= PTOISA_SET(PTOISA_I16) | PTOISA_SET(PTOISA_U16);
    }
    if (!is_a2a3) {
        types |=
            PTOISA_SET_2_BYTES | PTOISA_SET_4_BYTES | PTOISA_SET(PTOISA_I8) | PTOISA_SET(PTOISA_U8);
    }
    if (!ptoisa_check_row_major(core, op, "s0", s0, types, 0, 0) ||
        (s1 && !ptoisa_check_row_major(core, op, "s1", s1, PTOISA_SET(s0->dtype), s0->valid_rows,
                                       s0->valid_cols)) ||
        !ptoisa_check_mask(core, op, mask, s0->valid_rows, s0->valid_cols)) {
        return false;
    }
    if ((uint32_t)compare > PTOISA_GE) {
        return ptoisa_fault(core, op, "there is no comparison %d", (int)compare);
    }
    if (is_a2a3 && s0->dtype == PTOISA_I32 && compare != PTOISA_EQ) {
        return ptoisa_fault(core, op, "i32 has no comparison but EQ on A2/A3");
    }
    return true;
}

// Both comparisons; s1 NULL: with x.
PTOISA_FN void ptoisa_cmp(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *mask,
                          const ptoisa_tile *s0, const ptoisa_tile *s1, double x,
                          ptoisa_compare compare) {
    if (PTOISA_CHECKED && !ptoisa_cmp_check(core, op, mask, s0, s1, compare)) {
        return;
    }
    ptoisa_issue(core, op, mask, s0, s1);
    if (core->is_dry) {
        return;
    }
    const ptoisa_dtype dtype = (ptoisa_dtype)s0->dtype;
    const ptoisa_cmp_mode mode = ptoisa_cmp_mode_of(compare);
    const ptoisa_compared scalar = ptoisa_compared_of(dtype, x);
    const uint32_t cols = s0->valid_cols, bytes = (cols + 7) / 8;
    const uint32_t whole =
        ptoisa_mask_cols(mask, cols) * ptoisa_dtype_size((ptoisa_dtype)mask->dtype);
    const uint32_t order = ptoisa_mask_order(mask);
#if PTOISA_X86
    const bool has_vectors = (dtype == PTOISA_F32 || dtype == PTOISA_F16) && ptoisa_has_avx2();
#endif
    for (uint32_t r = 0; r < s0->valid_rows; r++) {
        uint8_t *row = ptoisa_row_at(mask, r);
        const uint8_t *row0 = ptoisa_row_at(s0, r), *row1 = s1 ? ptoisa_row_at(s1, r) : NULL;
        uint32_t done = 0;
#if PTOISA_X86
        if (has_vectors) {
            done =
                ptoisa_cmp_row_avx2(row, row0, row1, scalar.f32, dtype == PTOISA_F16, cols, mode);
        }
#elif PTOISA_NEON
        if (dtype == PTOISA_F32) {
            done = ptoisa_cmp_row_neon(row, row0, row1, scalar.f32, cols, mode);
        }
#endif
        ptoisa_cmp_row(row, order, row0, row1, &scalar, dtype, done, cols, mode);
        for (uint32_t k = bytes; k < whole; k++) {
            row[k ^ order] = 0;
        }
    }
}

// Mask of s0 compared with s1.
PTOISA_FN void ptoisa_tcmp(ptoisa_core *core, const ptoisa_tile *mask, const ptoisa_tile *s0,
                           const ptoisa_tile *s1, ptoisa_compare compare) {
    ptoisa_cmp(core, PTOISA_TCMP, mask, s0, s1, 0, compare);
}

// Mask of s compared with x, as s's element type has it.
PTOISA_FN void ptoisa_tcmps(ptoisa_core *core, const ptoisa_tile *mask, const ptoisa_tile *s,
                            double x, ptoisa_compare compare) {
    ptoisa_cmp(core, PTOISA_TCMPS, mask, s, NULL, x, compare);
}

// Both selections; s1 NULL: x.
PTOISA_FN void ptoisa_sel(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *d,
                          const ptoisa_tile *mask, const ptoisa_tile *s0, const ptoisa_tile *s1,
                          double x) {
    if (PTOISA_CHECKED) {
        const uint32_t rows = d->valid_rows, cols = d->valid_cols;
        const uint32_t bytes =
            core->is_as_simulator ? PTOISA_SET(PTOISA_I8) | PTOISA_SET(PTOISA_U8) : 0;
        if (!ptoisa_check_row_major(core, op, "d", d,
                                    PTOISA_SET_2_BYTES | PTOISA_SET_4_BYTES | bytes, 0, 0) ||
            !ptoisa_check_mask(core, op, mask, rows, cols) ||
            !ptoisa_check_row_major(core, op, "s0", s0, PTOISA_SET(d->dtype), rows, cols) ||
            (s1 && !ptoisa_check_row_major(core, op, "s1", s1, PTOISA_SET(d->dtype), rows, cols))) {
            return;
        }
    }
    ptoisa_issue(core, op, d, s0, s1);
    if (core->is_dry) {
        return;
    }
    const ptoisa_compared scalar = ptoisa_compared_of((ptoisa_dtype)d->dtype, x);
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype), cols = d->valid_cols;
    const uint32_t order = ptoisa_mask_order(mask);
#if PTOISA_X86
    const bool has_vectors = size > 1 && ptoisa_has_avx2();
#endif
    for (uint32_t r = 0; r < d->valid_rows; r++) {
        uint8_t *row = ptoisa_row_at(d, r);
        const uint8_t *bits = ptoisa_row_at(mask, r), *row0 = ptoisa_row_at(s0, r);
        const uint8_t *row1 = s1 ? ptoisa_row_at(s1, r) : NULL;
        uint32_t done = 0;
#if PTOISA_X86
        if (has_vectors) {
            done = ptoisa_sel_row_avx2(row, bits, row0, row1, scalar.bits, size, cols);
        }
#elif PTOISA_NEON
        if (size == 4) {
            done = ptoisa_sel_row_neon(row, bits, row0, row1, scalar.bits, cols);
        }
#endif
        ptoisa_sel_row(row, bits, order, row0, row1, &scalar, size, done, cols);
    }
}

// d = bit ? s0 : s1. t is scratch that the device needs, and may be NULL here.
PTOISA_FN void ptoisa_tsel(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *mask,
                           const ptoisa_tile *s0, const ptoisa_tile *s1, const ptoisa_tile *t) {
    if (PTOISA_CHECKED && t && !ptoisa_check_tile(core, PTOISA_TSEL, "t", t)) {
        return;
    }
    ptoisa_sel(core, PTOISA_TSEL, d, mask, s0, s1, 0);
}

// d = bit ? s : x.
PTOISA_FN void ptoisa_tsels(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *mask,
                            const ptoisa_tile *s, const ptoisa_tile *t, double x) {
    if (PTOISA_CHECKED && t && !ptoisa_check_tile(core, PTOISA_TSELS, "t", t)) {
        return;
    }
    ptoisa_sel(core, PTOISA_TSELS, d, mask, s, NULL, x);
}

#endif
