// Definitions that the instruction sets of attend_body.h share.

#ifndef PWSP_ATTEND_SIMD_H
#define PWSP_ATTEND_SIMD_H

#include "attend.h"

#if defined(__clang__)
#define PWSP_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PWSP_UNROLL _Pragma("GCC unroll 16")
#endif

// Prefetches as many lines as `elements` of so many bytes fill. They go into the second-level cache,
// since only few lines can be on their way to the first. Single bytes go to the first: computing on
// them is slower than reading, and their rows may begin inside a line.
#define PWSP_ATTEND_ASK(ahead, bytes, elements)                                                    \
    PWSP_UNROLL for (size_t line = 0; line < ((elements) * (bytes) + 63) / 64; line++) {           \
        __builtin_prefetch(pwsp_attend_ask(ahead), 0, (bytes) == 1 ? 3 : 2);                       \
    }

// The next line, or one asked for before.
PWSP_FORCE_INLINE const char *pwsp_attend_ask(pwsp_attend_ahead *a) {
    const char *at = a->at;
    a->at = a->at < a->end ? a->at + 64 : a->at;
    if (a->at >= a->end && a->row_count > 0) {
        const char *row = *a->rows++;
        a->row_count--;
        a->at = row == a->end ? a->at : row - (uintptr_t)row % 64;
        a->end = row + a->size;
    }
    return at;
}

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

// -- tiles -----------------------------------------------------------------------------------------
//
// Macros of attend_body.h that are the same for all sets.

// Tiles of scores and values take `row_count` rows, a constant.
//
//      score     scores[r][t] = queries[r] . keys[t] for PWSP_ATTEND_PART packed tokens
//      value     accs[r][d] = accs[r][d] * factors[r] + sum over tokens of weights[r][t] *
//                rows[t][d], for `vectors` vectors from d on
//
// Both ask for as many lines ahead as they read, where those have as many bytes.
//
// KEY(p, scale) is a vector of packed keys. VALUE(p, in, at) is one of values, `at` elements from where p
// and `in` are: p is at byte base(d) of a row, and of blocks, `in` is the place in the block, which
// is 0 for whole blocks.
#define PWSP_V_TILES(suffix, bytes, base, PWSP_V_KEY, PWSP_V_VALUE)                                \
    PWSP_V_TARGET PWSP_FORCE_INLINE void PWSP_V_NAME(score_##suffix)(                              \
        const float *const *queries, const char *keys, const float *scales,                        \
        pwsp_attend_ahead *ahead, size_t dim, size_t row_count, float *scores) {                   \
        const float *rows[PWSP_V_SCORE_ROWS];                                                      \
        pwsp_attend_ahead ask = *ahead;                                                            \
        for (size_t r = 0; r < row_count; r++) {                                                   \
            rows[r] = queries[r];                                                                  \
        }                                                                                          \
        for (size_t t = 0; t < PWSP_ATTEND_PART; t += PWSP_V_LANES) {                              \
            PWSP_V sums[PWSP_V_SCORE_ROWS][4];                                                     \
            PWSP_UNROLL for (size_t r = 0; r < row_count; r++) {                                   \
                PWSP_UNROLL for (size_t n = 0; n < 4; n++) {                                       \
                    sums[r][n] = PWSP_V_SET(0.0f);                                                 \
                }                                                                                  \
            }                                                                                      \
            for (size_t d = 0; d < dim; d += 4, keys += 4 * PWSP_V_LANES * (bytes)) {              \
                const float *scale = scales + d / 32 * 4 * PWSP_V_LANES;                           \
                PWSP_V k[4];                                                                       \
                (void)scale;                                                                       \
                PWSP_UNROLL for (size_t n = 0; n < 4; n++) {                                       \
                    k[n] =                                                                         \
                        PWSP_V_KEY(keys + n * PWSP_V_LANES * (bytes), scale + n * PWSP_V_LANES);   \
                }                                                                                  \
                PWSP_ATTEND_ASK(&ask, bytes, 4 * PWSP_V_LANES)                                     \
                PWSP_UNROLL for (size_t r = 0; r < row_count; r++) {                               \
                    PWSP_V q = PWSP_V_SET_QUAD(rows[r] + d);                                       \
                    PWSP_UNROLL for (size_t n = 0; n < 4; n++) {                                   \
                        sums[r][n] = PWSP_V_FMA(q, k[n], sums[r][n]);                              \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
            scales += dim / 32 * 4 * PWSP_V_LANES;                                                 \
            PWSP_UNROLL for (size_t r = 0; r < row_count; r++) {                                   \
                PWSP_V_STORE(scores + r * PWSP_ATTEND_BLOCK + t,                                   \
                             PWSP_V_REDUCE4(sums[r][0], sums[r][1], sums[r][2], sums[r][3]));      \
            }                                                                                      \
        }                                                                                          \
        *ahead = ask;                                                                              \
    }                                                                                              \
    PWSP_V_TARGET PWSP_FORCE_INLINE void PWSP_V_NAME(value_##suffix)(                              \
        const char *const *rows, size_t count, pwsp_attend_ahead *ahead, const float *weights,     \
        const float *factors, size_t row_count, size_t d, size_t vectors, float *const *accs) {    \
        PWSP_V sums[PWSP_ATTEND_TILE][8];                                                          \
        const size_t in = vectors * PWSP_V_LANES >= 32 ? 0 : d % 32;                               \
        pwsp_attend_ahead ask = *ahead;                                                            \
        (void)in;                                                                                  \
        PWSP_UNROLL for (size_t r = 0; r < row_count; r++) {                                       \
            PWSP_UNROLL for (size_t i = 0; i < vectors; i++) {                                     \
                sums[r][i] = PWSP_V_MUL(PWSP_V_LOAD(accs[r] + d + i * PWSP_V_LANES),               \
                                        PWSP_V_SET(factors[r]));                                   \
            }                                                                                      \
        }                                                                                          \
        for (size_t t = 0; t < count; t++) {                                                       \
            const char *row = rows[t] + base(d);                                                   \
            PWSP_ATTEND_ASK(&ask, bytes, vectors *PWSP_V_LANES)                                    \
            PWSP_V v[8];                                                                           \
            PWSP_UNROLL for (size_t i = 0; i < vectors; i++) {                                     \
                v[i] = PWSP_V_VALUE(row, in, i * PWSP_V_LANES);                                    \
            }                                                                                      \
            PWSP_UNROLL for (size_t r = 0; r < row_count; r++) {                                   \
                PWSP_V weight = PWSP_V_SET(weights[r * PWSP_ATTEND_BLOCK + t]);                    \
                PWSP_UNROLL for (size_t i = 0; i < vectors; i++) {                                 \
                    sums[r][i] = PWSP_V_FMA(weight, v[i], sums[r][i]);                             \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        PWSP_UNROLL for (size_t r = 0; r < row_count; r++) {                                       \
            PWSP_UNROLL for (size_t i = 0; i < vectors; i++) {                                     \
                PWSP_V_STORE(accs[r] + d + i * PWSP_V_LANES, sums[r][i]);                          \
            }                                                                                      \
        }                                                                                          \
        *ahead = ask;                                                                              \
    }

#define PWSP_V_LOAD_F32(p)           PWSP_V_LOAD((const float *)(const void *)(p))
#define PWSP_V_KEY_F32(p, s)         PWSP_V_LOAD_F32(p)
#define PWSP_V_KEY_F16(p, s)         PWSP_V_LOAD_F16(p)
#define PWSP_V_KEY_BF16(p, s)        PWSP_V_LOAD_BF16(p)
#define PWSP_V_KEY_I8(p, s)          PWSP_V_LOAD_I8(p)
#define PWSP_V_KEY_Q8_0(p, s)        PWSP_V_MUL(PWSP_V_LOAD_I8(p), PWSP_V_LOAD(s))
#define PWSP_V_VALUE_F32(p, in, at)  PWSP_V_LOAD_F32((p) + (at)*4)
#define PWSP_V_VALUE_F16(p, in, at)  PWSP_V_LOAD_F16((p) + (at)*2)
#define PWSP_V_VALUE_BF16(p, in, at) PWSP_V_LOAD_BF16((p) + (at)*2)
#define PWSP_V_VALUE_I8(p, in, at)   PWSP_V_LOAD_I8((p) + (at))
#define PWSP_V_VALUE_Q8_0(p, in, at)                                                               \
    PWSP_V_MUL(PWSP_V_LOAD_I8((p) + ((in) + (at)) / 32 * 34 + 2 + ((in) + (at)) % 32),             \
               PWSP_V_SET_F16((p) + ((in) + (at)) / 32 * 34))
#define PWSP_V_BASE_F32(d)  ((d)*4)
#define PWSP_V_BASE_HALF(d) ((d)*2)
#define PWSP_V_BASE_I8(d)   (d)
#define PWSP_V_BASE_Q8_0(d) ((d) / 32 * 34)

#endif
