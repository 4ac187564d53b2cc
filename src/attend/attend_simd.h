// What the instruction sets of attend_body.h share.

#ifndef PWSP_ATTEND_SIMD_H
#define PWSP_ATTEND_SIMD_H

#include "attend.h"

#define PWSP_ATTEND_ASK(p) __builtin_prefetch(p, 0, 2)  // to the second level

#if defined(__clang__)
#define PWSP_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PWSP_UNROLL _Pragma("GCC unroll 16")
#endif

// e^x for x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2, the Taylor series of e^r to r^7 (remainder
// below 6e-9), times 2^n. Adding PWSP_EXP_ROUND rounds to a whole number, which is then in the low
// bits of the sum. n ln 2 is off by n * 2e-9, and n matters only where the result is large.
#define PWSP_EXP_LOWEST -87.0f
#define PWSP_EXP_LOG2E  1.44269504f
#define PWSP_EXP_LN2    0.693147181f
#define PWSP_EXP_ROUND  12582912.0f  // 1.5 * 2^23
#define PWSP_EXP_C7     (1.0f / 5040.0f)
#define PWSP_EXP_C6     (1.0f / 720.0f)
#define PWSP_EXP_C5     (1.0f / 120.0f)
#define PWSP_EXP_C4     (1.0f / 24.0f)
#define PWSP_EXP_C3     (1.0f / 6.0f)
#define PWSP_EXP_C2     0.5f

// -- number formats, one by one --------------------------------------------------------------------

PWSP_INLINE float pwsp_attend_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

PWSP_INLINE float pwsp_attend_from_bf16(uint16_t bits) {
    return pwsp_attend_from_bits((uint32_t)bits << 16);
}

PWSP_INLINE float pwsp_attend_from_f16(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
    if (magnitude < 0x0400) {  // zero or subnormal, a multiple of 2^-24
        float value = (float)magnitude * (1.0f / 16777216.0f);
        return sign ? -value : value;
    }
    uint32_t rebias = magnitude >= 0x7c00 ? (255u - 31) << 23 : (127u - 15) << 23;
    return pwsp_attend_from_bits(sign | ((magnitude << 13) + rebias));
}

// Sixteen bytes at once where the compiler has such vectors.
#if defined(__GNUC__) || defined(__clang__)
typedef uint8_t pwsp_attend_bytes __attribute__((vector_size(16)));
#define PWSP_ATTEND_BYTES 16
#else
typedef uint8_t pwsp_attend_bytes;
#define PWSP_ATTEND_BYTES 1
#endif

// Elements of a block of Q4_0 as bytes.
PWSP_FORCE_INLINE void pwsp_attend_nibbles(const char *from, char *to) {
    for (size_t i = 0; i < 16; i += PWSP_ATTEND_BYTES) {
        pwsp_attend_bytes both, low, high;
        memcpy(&both, from + i, sizeof both);
        low = (pwsp_attend_bytes)((both & 15) - 8);
        high = (pwsp_attend_bytes)((both >> 4) - 8);
        memcpy(to + i, &low, sizeof low);
        memcpy(to + 16 + i, &high, sizeof high);
    }
}

// A row of Q4_0 as Q8_0: the same numbers.
PWSP_INLINE void pwsp_attend_eights(const char *from, size_t dim, char *to) {
    for (size_t d = 0; d < dim; d += 32, from += 18, to += 34) {
        memcpy(to, from, 2);
        pwsp_attend_nibbles(from + 2, to + 2);
    }
}

// -- tokens ----------------------------------------------------------------------------------------

// The numbers of a block's tokens.
static const float pwsp_attend_counts[PWSP_ATTEND_BLOCK] PWSP_UNUSED = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

#endif
