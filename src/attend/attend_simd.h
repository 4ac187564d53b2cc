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

// The numbers of a block's tokens.
static const float pwsp_attend_counts[PWSP_ATTEND_BLOCK] PWSP_UNUSED = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

#endif
