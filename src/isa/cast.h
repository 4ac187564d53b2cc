// Arrays of one element type to another, and single elements in every rounding mode.
//
// The hot pairs are loops over the compiler's own vector types, which gcc and clang turn into
// instructions of the processor. This needs no intrinsics and does not rely on a compiler to
// vectorise loops at -O2. Each loop is written once and compiled twice: for 4 elements, and for 8
// with AVX2. f16 has instructions of its own (F16C, AVX-512, NEON). The rare cases (i64; rounding
// modes other than to nearest where the result is a float) are scalar, in integers, and exact.
//
// NaN becomes 0 as an integer, and a quiet NaN with the upper bits of its fraction as a float.
// Rounding to an integer looks at the fraction that truncation leaves, x - (float)(int)x, which is
// exact. So neither a mode of the processor nor a libm function takes part.

#ifndef PTOISA_CAST_H
#define PTOISA_CAST_H

#include "simd.h"
#include "tile.h"

// Tiles are looked at as different types in turn (TRESHAPE), so these may alias anything.
#define PTOISA_ANY __attribute__((may_alias))
typedef float PTOISA_ANY ptoisa_any_f32;
typedef int32_t PTOISA_ANY ptoisa_any_i32;
typedef int64_t PTOISA_ANY ptoisa_any_i64;
typedef uint16_t PTOISA_ANY ptoisa_any_u16;
typedef uint32_t PTOISA_ANY ptoisa_any_u32;
typedef uint64_t PTOISA_ANY ptoisa_any_u64;

// Vectors of 4 elements (16 bytes of the widest type) are what every processor has, 8 need AVX2:
// gcc 12 takes comparisons of vectors that are too wide apart into scalars. They live in local
// variables and come and go by address: as arguments or results, the wide ones would change the
// ABI.
#define PTOISA_LANE_TYPE(type, name, L)                                                            \
    typedef type ptoisa_##name##x##L __attribute__((vector_size(L * sizeof(type))));
#define PTOISA_LANE_TYPES(L)                                                                       \
    PTOISA_LANE_TYPE(float, f32, L)                                                                \
    PTOISA_LANE_TYPE(int32_t, i32, L)                                                              \
    PTOISA_LANE_TYPE(uint32_t, u32, L)                                                             \
    PTOISA_LANE_TYPE(int16_t, i16, L)                                                              \
    PTOISA_LANE_TYPE(uint16_t, u16, L)                                                             \
    PTOISA_LANE_TYPE(int8_t, i8, L)                                                                \
    PTOISA_LANE_TYPE(uint8_t, u8, L)

// clang-format off
PTOISA_LANE_TYPES(4)
PTOISA_LANE_TYPES(8)
// clang-format on

#if PTOISA_X86
#define PTOISA_IF_X86(text) text
// Processors with AVX2 and FMA have F16C too: the compilers' x86-64-v3 has all three.
#define PTOISA_F16C             __attribute__((target("avx2,fma,f16c")))
#define PTOISA_CAST_EIGHT(name) name##_avx2
#else
#define PTOISA_IF_X86(text)
#define PTOISA_CAST_EIGHT(name) NULL
#endif

// Numbers that some loops need; each is explained where it is used.
typedef struct ptoisa_cast_args {
    int32_t low, high;
    float x, y;
    ptoisa_round round;
} ptoisa_cast_args;

// Makes n elements of others; n is a multiple of the vector's length.
typedef void (*ptoisa_cast_line)(uint8_t *to, const uint8_t *from, size_t n,
                                 const ptoisa_cast_args *args);

// Runs a loop for vectors of 8 where there is AVX2, for vectors of 4 elsewhere. What fills no vector
// goes through buffers, so that each loop is compiled once.
PTOISA_FN void ptoisa_cast_run(ptoisa_cast_line eight, ptoisa_cast_line four, void *d,
                               uint32_t d_size, const void *s, uint32_t s_size, size_t n,
                               const ptoisa_cast_args *args) {
    uint8_t in[32], out[32];
    size_t length = ptoisa_has_avx2() ? 8 : 4, left = n % length, whole = n - left;
    ptoisa_cast_line line = ptoisa_has_avx2() ? eight : four;
    uint8_t *to = (uint8_t *)d;
    const uint8_t *from = (const uint8_t *)s;
    if (whole > 0) {
        line(to, from, whole, args);
    }
    if (left > 0) {
        memset(in, 0, sizeof in);
        memcpy(in, from + whole * s_size, left * s_size);
        line(out, in, length, args);
        memcpy(to + whole * d_size, out, left * d_size);
    }
}

// Defines a loop: code(L, arg) makes the vector y of x.
#define PTOISA_CAST_LINE(attribute, L, name, D, S, code, arg)                                      \
    PTOISA_FN attribute void name(uint8_t *to, const uint8_t *from, size_t n,                      \
                                  const ptoisa_cast_args *args) {                                  \
        ptoisa_##S##x##L x;                                                                        \
        ptoisa_##D##x##L y;                                                                        \
        const ptoisa_cast_args by = *args;                                                         \
        (void)by;                                                                                  \
        for (; n > 0; n -= L, to += sizeof y, from += sizeof x) {                                  \
            memcpy(&x, from, sizeof x);                                                            \
            { code(L, arg); }                                                                      \
            memcpy(to, &y, sizeof y);                                                              \
        }                                                                                          \
    }

// Defines name_by(d, s, n, args).
#define PTOISA_MAP_BY(name, D, S, code, arg)                                                       \
    PTOISA_IF_X86(PTOISA_CAST_LINE(PTOISA_AVX2, 8, name##_avx2, D, S, code, arg))                  \
    PTOISA_CAST_LINE(, 4, name##_plain, D, S, code, arg)                                           \
    PTOISA_INLINE void name##_by(void *d, const void *s, size_t n, const ptoisa_cast_args *args) { \
        ptoisa_cast_run(PTOISA_CAST_EIGHT(name), name##_plain, d, sizeof(ptoisa_##D##x4) / 4, s,   \
                        sizeof(ptoisa_##S##x4) / 4, n, args);                                      \
    }

// The same, and name(d, s, n).
#define PTOISA_MAP(name, D, S, code, arg)                                                          \
    PTOISA_MAP_BY(name, D, S, code, arg)                                                           \
    PTOISA_INLINE void name(void *d, const void *s, size_t n) {                                    \
        const ptoisa_cast_args none = {0, 0, 0, 0, PTOISA_CAST_NONE};                              \
        name##_by(d, s, n, &none);                                                                 \
    }

#define PTOISA_CAST_LOOP(x, V) __builtin_convertvector(x, V)

// -- steps of one vector --------------------------------------------------------------------------

// f32 to bf16: to nearest; NaN stays NaN.
#define PTOISA_STEP_BF16(L, arg)                                                                   \
    ptoisa_u32x##L nearest = (x + 0x7fff + (x >> 16 & 1)) >> 16, quiet = x >> 16 | 0x40;           \
    ptoisa_u32x##L is_nan = (ptoisa_u32x##L)((x & 0x7fffffff) > 0x7f800000);                       \
    y = PTOISA_CAST_LOOP((quiet & is_nan) | (nearest & ~is_nan), ptoisa_u16x##L)

// x modulo 2^16 where |x| >= 2^31, an integer; x itself below. 0 from 2^47 on, and for infinity and
// NaN. Each step is exact.
#define PTOISA_STEP_LOW16(L, arg)                                                                  \
    ptoisa_i32x##L bits = (ptoisa_i32x##L)x, size = bits & 0x7fffffff;                             \
    ptoisa_i32x##L is_near = size < 0x4f000000, is_far = size >= 0x57000000;                       \
    ptoisa_f32x##L z = (ptoisa_f32x##L)(bits & ~is_far & ~is_near);                                \
    ptoisa_i32x##L high_half = PTOISA_CAST_LOOP(z * 0x1p-16f, ptoisa_i32x##L);                     \
    ptoisa_f32x##L rest = z - PTOISA_CAST_LOOP(high_half, ptoisa_f32x##L) * 65536.0f;              \
    y = (ptoisa_f32x##L)((bits & is_near) | ((ptoisa_i32x##L)rest & ~is_near))

// f32 as bits: max(x, 0); NaN stays NaN.
#define PTOISA_STEP_RELU(L, arg) y = x & ((x > 0) | ((x & 0x7fffffff) > 0x7f800000))

// Small integers to words: i32, or f32 if by.low. gcc 12 makes poor code of a step from 1 byte to 4
// and back, so there are two.
#define PTOISA_STEP_WORD(L, expr)                                                                  \
    y = PTOISA_CAST_LOOP(expr, ptoisa_i32x##L);                                                    \
    if (by.low) {                                                                                  \
        y = (ptoisa_i32x##L)PTOISA_CAST_LOOP(y, ptoisa_f32x##L);                                   \
    }
#define PTOISA_STEP_I8(L, arg)        PTOISA_STEP_WORD(L, PTOISA_CAST_LOOP(x, ptoisa_i16x##L))
#define PTOISA_STEP_I16(L, arg)       PTOISA_STEP_WORD(L, x)
#define PTOISA_STEP_I32(L, arg)       y = PTOISA_CAST_LOOP(x, ptoisa_f32x##L)
#define PTOISA_STEP_FROM_BF16(L, arg) y = PTOISA_CAST_LOOP(x, ptoisa_u32x##L) << 16
#define PTOISA_STEP_LOW_8(L, arg)                                                                  \
    y = PTOISA_CAST_LOOP(PTOISA_CAST_LOOP(x, ptoisa_u16x##L), ptoisa_u8x##L)
#define PTOISA_STEP_LOW_16(L, arg) y = PTOISA_CAST_LOOP(x, ptoisa_u16x##L)
#define PTOISA_STEP_EXPR(L, arg)   y = arg

// Of x and the vectors p and q, by.x and by.y in all places. (A float beside a vector would be
// converted to it, but is a double before that where FLT_EVAL_METHOD is not 0.)
#define PTOISA_SAME_4(a)                                                                           \
    { a, a, a, a }
#define PTOISA_SAME_8(a)                                                                           \
    { a, a, a, a, a, a, a, a }
#define PTOISA_STEP_LINE(L, arg)                                                                   \
    const ptoisa_f32x##L p = PTOISA_SAME_##L(by.x), q = PTOISA_SAME_##L(by.y);                     \
    (void)q;                                                                                       \
    y = arg

// clang-format off
PTOISA_MAP_BY(ptoisa_words_of_i8, i32, i8, PTOISA_STEP_I8, 0)
PTOISA_MAP_BY(ptoisa_words_of_u8, i32, u8, PTOISA_STEP_I8, 0)
PTOISA_MAP_BY(ptoisa_words_of_i16, i32, i16, PTOISA_STEP_I16, 0)
PTOISA_MAP_BY(ptoisa_words_of_u16, i32, u16, PTOISA_STEP_I16, 0)
PTOISA_MAP(ptoisa_f32s_from_i32, f32, i32, PTOISA_STEP_I32, 0)
PTOISA_MAP(ptoisa_f32s_from_bf16, u32, u16, PTOISA_STEP_FROM_BF16, 0)
PTOISA_MAP(ptoisa_bf16s_from_f32, u16, u32, PTOISA_STEP_BF16, 0)
PTOISA_MAP(ptoisa_low8_from_i32, u8, u32, PTOISA_STEP_LOW_8, 0)
PTOISA_MAP(ptoisa_low16_from_i32, u16, u32, PTOISA_STEP_LOW_16, 0)
PTOISA_MAP(ptoisa_f32s_low16, f32, f32, PTOISA_STEP_LOW16, 0)
PTOISA_MAP(ptoisa_f32s_relu, i32, i32, PTOISA_STEP_RELU, 0)
PTOISA_MAP(ptoisa_i32s_relu, i32, i32, PTOISA_STEP_EXPR, x & (x > 0))
PTOISA_MAP_BY(ptoisa_f32s_times, f32, f32, PTOISA_STEP_LINE, x * p)
PTOISA_MAP_BY(ptoisa_f32s_plus, f32, f32, PTOISA_STEP_LINE, x + p)
PTOISA_MAP_BY(ptoisa_f32s_minus_times, f32, f32, PTOISA_STEP_LINE, (x - p) * q)
// clang-format on

PTOISA_INLINE ptoisa_cast_args ptoisa_by(float x, float y) {
    ptoisa_cast_args args = {0, 0, x, y, PTOISA_CAST_NONE};
    return args;
}

// -- f16 ------------------------------------------------------------------------------------------

#if PTOISA_X86

PTOISA_FN PTOISA_AVX512 void ptoisa_f32s_from_f16_avx512(float *d, const uint16_t *s, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = (__mmask16)(n - i >= 16 ? 0xffffu : (1u << (n - i)) - 1);
        __m256i x = _mm256_maskz_loadu_epi16(mask, s + i);
        _mm512_mask_storeu_ps(d + i, mask, _mm512_maskz_cvtph_ps(PTOISA_ALL_16, x));
    }
}

PTOISA_FN PTOISA_AVX512 void ptoisa_f16s_from_f32_avx512(uint16_t *d, const float *s, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = (__mmask16)(n - i >= 16 ? 0xffffu : (1u << (n - i)) - 1);
        __m256i x = _mm512_maskz_cvtps_ph(PTOISA_ALL_16, _mm512_maskz_loadu_ps(mask, s + i),
                                          _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm256_mask_storeu_epi16(d + i, mask, x);
    }
}

// n is a multiple of 8 in these two.
PTOISA_FN PTOISA_F16C void ptoisa_f32s_from_f16_f16c(float *d, const uint16_t *s, size_t n) {
    for (size_t i = 0; i < n; i += 8) {
        _mm256_storeu_ps(d + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(s + i))));
    }
}

PTOISA_FN PTOISA_F16C void ptoisa_f16s_from_f32_f16c(uint16_t *d, const float *s, size_t n) {
    for (size_t i = 0; i < n; i += 8) {
        _mm_storeu_si128((__m128i *)(d + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT));
    }
}
#endif

PTOISA_FN void ptoisa_f32s_from_f16(void *d, const void *s, size_t n) {
    ptoisa_any_f32 *to = (ptoisa_any_f32 *)d;
    const ptoisa_any_u16 *from = (const ptoisa_any_u16 *)s;
    size_t i = 0;
#if PTOISA_X86
    if (ptoisa_has_avx512()) {
        ptoisa_f32s_from_f16_avx512((float *)d, (const uint16_t *)s, n);
        return;
    }
    if (ptoisa_has_avx2()) {
        i = n / 8 * 8;
        ptoisa_f32s_from_f16_f16c((float *)d, (const uint16_t *)s, i);
    }
#elif PTOISA_NEON
    for (; i < n / 4 * 4; i += 4) {
        vst1q_f32((float *)d + i,
                  vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)s + i))));
    }
#endif
    for (; i < n; i++) {
        bool is_nan = (from[i] & 0x7fff) > 0x7c00;  // made quiet, as the instructions do
        to[i] = ptoisa_f32_from_f16((uint16_t)(is_nan ? from[i] | 0x200 : from[i]));
    }
}

// To nearest, ties to even; beyond 65504 + 16 to infinity.
PTOISA_FN void ptoisa_f16s_from_f32(void *d, const void *s, size_t n) {
    ptoisa_any_u16 *to = (ptoisa_any_u16 *)d;
    const ptoisa_any_f32 *from = (const ptoisa_any_f32 *)s;
    size_t i = 0;
#if PTOISA_X86
    if (ptoisa_has_avx512()) {
        ptoisa_f16s_from_f32_avx512((uint16_t *)d, (const float *)s, n);
        return;
    }
    if (ptoisa_has_avx2()) {
        i = n / 8 * 8;
        ptoisa_f16s_from_f32_f16c((uint16_t *)d, (const float *)s, i);
    }
#elif PTOISA_NEON
    for (; i < n / 4 * 4; i += 4) {
        vst1_u16((uint16_t *)d + i,
                 vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32((const float *)s + i))));
    }
#endif
    for (; i < n; i++) {
        to[i] = ptoisa_f16_from_f32(from[i]);
    }
}

// -- f32 to integers ------------------------------------------------------------------------------

PTOISA_ALWAYS float ptoisa_abs_f32(float x) {
    return ptoisa_f32_from_bits(ptoisa_bits_from_f32(x) & 0x7fffffff);
}

// ptoisa_i32_xL: x rounded, between low and high; NaN is 0. Where |x| >= 2^23 truncation leaves no
// fraction, so the steps by one never overflow. Sizes of floats are compared as integers.
// ptoisa_round_xL: x rounded to an integer, as a float; keeps its sign when it becomes 0.
#define PTOISA_ROUND_LANES(L)                                                                      \
    PTOISA_ALWAYS void ptoisa_i32_x##L(ptoisa_i32x##L *y, const ptoisa_f32x##L *x,                 \
                                       ptoisa_round round, int32_t low, int32_t high) {            \
        const int32_t half = 0x3f000000;                                                           \
        ptoisa_i32x##L bits = (ptoisa_i32x##L) * x, size = bits & 0x7fffffff;                      \
        ptoisa_i32x##L sign = bits >> 31, is_inside = size < 0x4f000000;                           \
        ptoisa_f32x##L z = (ptoisa_f32x##L)(bits & is_inside);                                     \
        ptoisa_i32x##L i = PTOISA_CAST_LOOP(z, ptoisa_i32x##L);                                    \
        ptoisa_f32x##L left = z - PTOISA_CAST_LOOP(i, ptoisa_f32x##L);                             \
        ptoisa_i32x##L rest = (ptoisa_i32x##L)left & 0x7fffffff, away = sign | 1;                  \
        switch (round) {                                                                           \
        case PTOISA_CAST_ROUND: i += away & (rest >= half); break;                                 \
        case PTOISA_CAST_FLOOR: i += left < 0.0f; break;                                           \
        case PTOISA_CAST_CEIL: i -= left > 0.0f; break;                                            \
        case PTOISA_CAST_TRUNC: break;                                                             \
        case PTOISA_CAST_ODD: i += away & (rest > 0) & ((i & 1) == 0); break;                      \
        default: i += away & ((rest > half) | ((rest == half) & ((i & 1) != 0))); break;           \
        }                                                                                          \
        ptoisa_i32x##L limit = (sign ^ INT32_MAX) & (size <= 0x7f800000);                          \
        i = (i & is_inside) | (limit & ~is_inside);                                                \
        ptoisa_i32x##L is_low = i<low, is_high = i> high;                                          \
        *y = (i & ~(is_low | is_high)) | (low & is_low) | (high & is_high);                        \
    }                                                                                              \
    PTOISA_ALWAYS void ptoisa_round_x##L(ptoisa_f32x##L *y, const ptoisa_f32x##L *x,               \
                                         ptoisa_round round) {                                     \
        ptoisa_i32x##L bits = (ptoisa_i32x##L) * x, i;                                             \
        ptoisa_i32x##L has_rest = (bits & 0x7fffffff) < 0x4b000000;                                \
        ptoisa_f32x##L z = (ptoisa_f32x##L)(bits & has_rest);                                      \
        ptoisa_i32_x##L(&i, &z, round, INT32_MIN, INT32_MAX);                                      \
        z = PTOISA_CAST_LOOP(i, ptoisa_f32x##L);                                                   \
        i = (ptoisa_i32x##L)z | (bits & INT32_MIN);                                                \
        *y = (ptoisa_f32x##L)((i & has_rest) | (bits & ~has_rest));                                \
    }

#define PTOISA_STEP_TO_I32(L, round) ptoisa_i32_x##L(&y, &x, round, by.low, by.high)
#define PTOISA_STEP_ROUND(L, round)  ptoisa_round_x##L(&y, &x, round)

// clang-format off
PTOISA_ROUND_LANES(4)
PTOISA_IF_X86(PTOISA_ROUND_LANES(8))
PTOISA_MAP_BY(ptoisa_i32s_nearest, i32, f32, PTOISA_STEP_TO_I32, PTOISA_CAST_RINT)
PTOISA_MAP_BY(ptoisa_i32s_cut, i32, f32, PTOISA_STEP_TO_I32, PTOISA_CAST_TRUNC)
PTOISA_MAP_BY(ptoisa_i32s_in_mode, i32, f32, PTOISA_STEP_TO_I32, by.round)
PTOISA_MAP_BY(ptoisa_f32s_in_mode, f32, f32, PTOISA_STEP_ROUND, by.round)
// clang-format on

// Rounds to integers between low and high; NaN is 0. The common modes have loops of their own.
PTOISA_FN void ptoisa_i32s_from_f32(void *d, const void *s, size_t n, ptoisa_round round,
                                    int32_t low, int32_t high) {
    const ptoisa_cast_args args = {low, high, 0, 0, round};
    switch (round) {
    case PTOISA_CAST_NONE:
    case PTOISA_CAST_RINT: ptoisa_i32s_nearest_by(d, s, n, &args); return;
    case PTOISA_CAST_TRUNC: ptoisa_i32s_cut_by(d, s, n, &args); return;
    default: ptoisa_i32s_in_mode_by(d, s, n, &args); return;
    }
}

// Rounds to integers that stay floats.
PTOISA_FN void ptoisa_f32s_rounded(void *d, const void *s, size_t n, ptoisa_round round) {
    const ptoisa_cast_args args = {0, 0, 0, 0, round};
    ptoisa_f32s_in_mode_by(d, s, n, &args);
}

// x rounded and saturated, NaN 0.
PTOISA_FN int64_t ptoisa_i64_from_f32(float x, ptoisa_round round) {
    float size = ptoisa_abs_f32(x);
    if (!(size < 0x1p63f)) {
        return x > 0 ? INT64_MAX : x < 0 ? INT64_MIN : 0;
    }
    int64_t i = (int64_t)x;
    float rest = x - (float)i;  // exact: from 2^24 on it is 0
    int64_t away = x < 0 ? -1 : 1;
    size = ptoisa_abs_f32(rest);
    switch (round) {
    case PTOISA_CAST_ROUND: return size >= 0.5f ? i + away : i;
    case PTOISA_CAST_FLOOR: return rest < 0 ? i - 1 : i;
    case PTOISA_CAST_CEIL: return rest > 0 ? i + 1 : i;
    case PTOISA_CAST_TRUNC: return i;
    case PTOISA_CAST_ODD: return size > 0 && !(i & 1) ? i + away : i;
    default: return size > 0.5f || (size == 0.5f && (i & 1)) ? i + away : i;
    }
}

// -- any rounding to a float, in integers ---------------------------------------------------------

// magnitude / 2^drop, rounded; the number is negative or not.
PTOISA_FN uint64_t ptoisa_round_shift(uint64_t magnitude, uint32_t drop, bool is_negative,
                                      ptoisa_round round) {
    if (drop == 0) {
        return magnitude;
    }
    uint64_t kept = magnitude >> drop, rest = magnitude & ((UINT64_C(1) << drop) - 1);
    uint64_t half = UINT64_C(1) << (drop - 1);
    bool up;
    switch (round) {
    case PTOISA_CAST_ROUND: up = rest >= half; break;
    case PTOISA_CAST_FLOOR: up = is_negative && rest != 0; break;
    case PTOISA_CAST_CEIL: up = !is_negative && rest != 0; break;
    case PTOISA_CAST_TRUNC: up = false; break;
    case PTOISA_CAST_ODD: up = rest != 0 && !(kept & 1); break;
    default: up = rest > half || (rest == half && (kept & 1)); break;
    }
    return kept + up;
}

PTOISA_FN float ptoisa_f32_from_i64(int64_t x, ptoisa_round round) {
    uint64_t magnitude = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    uint32_t drop = magnitude >> 24 ? 40 - (uint32_t)__builtin_clzll(magnitude) : 0;
    float value = (float)ptoisa_round_shift(magnitude, drop, x < 0, round) *
                  ptoisa_f32_from_bits((127 + drop) << 23);
    return x < 0 ? -value : value;
}

PTOISA_FN uint16_t ptoisa_bf16_rounded(float x, ptoisa_round round) {
    uint32_t bits = ptoisa_bits_from_f32(x), magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) {
        return (uint16_t)(bits >> 16 | 0x40);
    }
    uint64_t kept = ptoisa_round_shift(magnitude, 16, bits >> 31, round);
    return (uint16_t)((bits >> 16 & 0x8000) | kept);
}

// To nearest, once: rounding to odd at 24 bits keeps what decides at 11.
PTOISA_FN uint16_t ptoisa_f16_from_i64(int64_t x) {
    return ptoisa_f16_from_f32(ptoisa_f32_from_i64(x, PTOISA_CAST_ODD));
}

// -- by type --------------------------------------------------------------------------------------

// Widens elements of fewer than 32 bits to words: floats to f32, integers to i32, or to f32 as
// well. Copies 32 bits as they are. False for a type that does not fit.
PTOISA_FN bool ptoisa_words_of(ptoisa_dtype dtype, void *d, const void *s, size_t n,
                               bool is_float_wanted) {
    const ptoisa_cast_args args = {is_float_wanted, 0, 0, 0, PTOISA_CAST_NONE};
    switch (dtype) {
    case PTOISA_F16: ptoisa_f32s_from_f16(d, s, n); return true;
    case PTOISA_BF16: ptoisa_f32s_from_bf16(d, s, n); return true;
    case PTOISA_I8: ptoisa_words_of_i8_by(d, s, n, &args); return true;
    case PTOISA_U8: ptoisa_words_of_u8_by(d, s, n, &args); return true;
    case PTOISA_I16: ptoisa_words_of_i16_by(d, s, n, &args); return true;
    case PTOISA_U16: ptoisa_words_of_u16_by(d, s, n, &args); return true;
    case PTOISA_F32: memmove(d, s, n * sizeof(float)); return true;
    default: return false;
    }
}

// Widens to f32, exactly. False for a type that f32 does not hold.
PTOISA_FN bool ptoisa_f32s_from(ptoisa_dtype dtype, void *d, const void *s, size_t n) {
    return ptoisa_words_of(dtype, d, s, n, true);
}

// The least and the greatest i8, u8, i16, u16 or i32.
PTOISA_INLINE int32_t ptoisa_dtype_low(ptoisa_dtype dtype) {
    return dtype == PTOISA_I8    ? INT8_MIN
           : dtype == PTOISA_I16 ? INT16_MIN
           : dtype == PTOISA_I32 ? INT32_MIN
                                 : 0;
}

PTOISA_INLINE int32_t ptoisa_dtype_high(ptoisa_dtype dtype) {
    return dtype == PTOISA_I8    ? INT8_MAX
           : dtype == PTOISA_U8  ? UINT8_MAX
           : dtype == PTOISA_I16 ? INT16_MAX
           : dtype == PTOISA_U16 ? UINT16_MAX
                                 : INT32_MAX;
}

// Narrows i32 to an integer of 1, 2 or 4 bytes, by its low bits.
PTOISA_FN void ptoisa_low_from_i32(ptoisa_dtype dtype, void *d, const int32_t *s, size_t n) {
    switch (ptoisa_dtype_size(dtype)) {
    case 1: ptoisa_low8_from_i32(d, s, n); break;
    case 2: ptoisa_low16_from_i32(d, s, n); break;
    default: memmove(d, s, n * sizeof *s); break;
    }
}

// The bits of a number as an element: rounded to a float, cut to an integer and saturated.
PTOISA_FN uint64_t ptoisa_bits_of(double x, ptoisa_dtype dtype) {
    if (dtype == PTOISA_F32) {
        return ptoisa_bits_from_f32((float)x);
    }
    if (dtype == PTOISA_BF16 || dtype == PTOISA_F16) {
        // Once, through f32 rounded to odd.
        float y = (float)x;
        uint32_t bits = ptoisa_bits_from_f32(y);
        if (x == x && (double)y != x && !(bits & 1)) {
            bool is_above = ((double)y > x) == (x > 0);  // further from 0 than x
            bits = is_above ? bits - 1 : bits + 1;
        }
        y = ptoisa_f32_from_bits(bits);
        return dtype == PTOISA_F16 ? ptoisa_f16_from_f32(y) : ptoisa_bf16_from_f32(y);
    }
    if (dtype == PTOISA_BOOL) {
        return x != 0;
    }
    if (dtype == PTOISA_F64) {
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        return bits;
    }
    if (dtype == PTOISA_U64) {
        return x >= 0x1p64 ? UINT64_MAX : x > 0 ? (uint64_t)x : 0;
    }
    int64_t i = x >= 0x1p63 ? INT64_MAX : x >= -0x1p63 ? (int64_t)x : x < 0 ? INT64_MIN : 0;
    if (dtype == PTOISA_I64) {
        return (uint64_t)i;
    }
    int64_t low = ptoisa_dtype_low(dtype), high = ptoisa_dtype_high(dtype);
    high = dtype == PTOISA_U32 ? (int64_t)UINT32_MAX : high;
    return (uint64_t)(i < low ? low : i > high ? high : i);
}

#endif
