// Sums, products, maxima and minima of f32 rows, by vectors.
//
// 16 lanes go over a row, and then its halves, quarters, pairs and lanes are put together (reduce.h
// says in which order). Four rows side by side hide the latency of a step, and rows are folded as
// many at once as a vector has lanes, so that no step works on a part of a vector:
//
//      rows      16 or 8 of them, four at a time: each in 16 lanes, of one vector or two
//      JOIN      four rows become one vector: halves of two rows are put together in one, their
//                lower ones and their upper ones in another, and so on with quarters
//      FOLD      the vectors of the group become its results, by pairs and then by lanes
//
// A maximum that is NaN where an element is takes three operations where one does not ask. With
// AVX-512, rows are hoped to have no NaN, and a group that has one is done again: one comparison asks
// two vectors, beside the maxima of four.
//
// 64 x 128 f32 with AVX-512: sums take 1.07 times as long as loads and additions alone, maxima 1.09.

#ifndef PTOISA_FOLD_H
#define PTOISA_FOLD_H

#include "elementwise.h"

// -- folding a group ------------------------------------------------------------------------------

#define PTOISA_GROUP_c                              1
#define PTOISA_JOIN_c(operation, part)              (part)[0][0]
#define PTOISA_FOLD_c(operation, results, lanes, n) ((void)(n), *(results) = (lanes)[0])

#if PTOISA_X86
#define PTOISA_GROUP_avx2   8
#define PTOISA_GROUP_avx512 16

#define PTOISA_DEFINE_FOLD_AVX2(operation)                                                         \
    PTOISA_AVX2 PTOISA_ALWAYS __m256 ptoisa_halves_##operation##_avx2(__m256 a, __m256 b) {        \
        return ptoisa_##operation##_avx2(_mm256_permute2f128_ps(a, b, 0x20),                       \
                                         _mm256_permute2f128_ps(a, b, 0x31));                      \
    }                                                                                              \
    PTOISA_AVX2 PTOISA_ALWAYS __m256 ptoisa_join_##operation##_avx2(__m256(*part)[2]) {            \
        __m256d x = _mm256_castps_pd(ptoisa_halves_##operation##_avx2(part[0][0], part[1][0]));    \
        __m256d y = _mm256_castps_pd(ptoisa_halves_##operation##_avx2(part[2][0], part[3][0]));    \
        return ptoisa_##operation##_avx2(_mm256_castpd_ps(_mm256_unpacklo_pd(x, y)),               \
                                         _mm256_castpd_ps(_mm256_unpackhi_pd(x, y)));              \
    }                                                                                              \
    PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_fold_##operation##_avx2(                                 \
        float *results, const __m256 *lanes, uint32_t n) {                                         \
        __m256 x = lanes[0], y = lanes[1];                                                         \
        x = ptoisa_##operation##_avx2(_mm256_shuffle_ps(x, y, 0x88),                               \
                                      _mm256_shuffle_ps(x, y, 0xdd));                              \
        x = _mm256_permutevar8x32_ps(x, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));                \
        n == 8 ? _mm256_storeu_ps(results, x) : ptoisa_store_n_avx2(results, x, n);                \
    }
PTOISA_DEFINE_FOLD_AVX2(add)
PTOISA_DEFINE_FOLD_AVX2(mul)
PTOISA_DEFINE_FOLD_AVX2(max)
PTOISA_DEFINE_FOLD_AVX2(min)
#define PTOISA_JOIN_avx2(operation, part) ptoisa_join_##operation##_avx2(part)
#define PTOISA_FOLD_avx2(operation, results, lanes, n)                                             \
    ptoisa_fold_##operation##_avx2(results, lanes, n)

// max and min where nothing is NaN.
PTOISA_AVX512_OP(peak, (__m512 a, __m512 b), _mm512_maskz_max_ps(PTOISA_ALL_16, a, b))
PTOISA_AVX512_OP(dip, (__m512 a, __m512 b), _mm512_maskz_min_ps(PTOISA_ALL_16, a, b))

// Of two vectors: their lower halves, and their upper ones; of each half the lower quarters; of each
// quarter the lower pairs; of each pair the lower lanes. At last each result is back in its place.
#define PTOISA_HALF_OF(name, a, b, low, high)                                                      \
    PTOISA_AVX512 PTOISA_ALWAYS __m512 ptoisa_##name##_low(__m512 a, __m512 b) {                   \
        return low;                                                                                \
    }                                                                                              \
    PTOISA_AVX512 PTOISA_ALWAYS __m512 ptoisa_##name##_high(__m512 a, __m512 b) {                  \
        return high;                                                                               \
    }
PTOISA_HALF_OF(halves, a, b, _mm512_maskz_shuffle_f32x4(PTOISA_ALL_16, a, b, 0x44),
               _mm512_maskz_shuffle_f32x4(PTOISA_ALL_16, a, b, 0xee))
PTOISA_HALF_OF(quarters, a, b, _mm512_maskz_shuffle_f32x4(PTOISA_ALL_16, a, b, 0x88),
               _mm512_maskz_shuffle_f32x4(PTOISA_ALL_16, a, b, 0xdd))
PTOISA_HALF_OF(pairs, a, b,
               _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(PTOISA_ALL_8, _mm512_castps_pd(a),
                                                         _mm512_castps_pd(b))),
               _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(PTOISA_ALL_8, _mm512_castps_pd(a),
                                                         _mm512_castps_pd(b))))
PTOISA_HALF_OF(lanes, a, b, _mm512_maskz_shuffle_ps(PTOISA_ALL_16, a, b, 0x88),
               _mm512_maskz_shuffle_ps(PTOISA_ALL_16, a, b, 0xdd))
#undef PTOISA_HALF_OF
PTOISA_AVX512 PTOISA_ALWAYS __m512 ptoisa_lanes_turned(__m512 x) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_maskz_permutexvar_ps(PTOISA_ALL_16, order, x);
}

#define PTOISA_PUT_TOGETHER(what, operation, a, b)                                                 \
    ptoisa_##operation##_avx512(ptoisa_##what##_low(a, b), ptoisa_##what##_high(a, b))
#define PTOISA_DEFINE_FOLD_AVX512(operation)                                                       \
    PTOISA_AVX512 PTOISA_ALWAYS __m512 ptoisa_join_##operation##_avx512(__m512(*part)[1]) {        \
        __m512 a = PTOISA_PUT_TOGETHER(halves, operation, part[0][0], part[1][0]);                 \
        __m512 b = PTOISA_PUT_TOGETHER(halves, operation, part[2][0], part[3][0]);                 \
        return PTOISA_PUT_TOGETHER(quarters, operation, a, b);                                     \
    }                                                                                              \
    PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_fold_##operation##_avx512(                             \
        float *results, const __m512 *lanes, uint32_t n) {                                         \
        __m512 a = PTOISA_PUT_TOGETHER(pairs, operation, lanes[0], lanes[1]);                      \
        __m512 b = PTOISA_PUT_TOGETHER(pairs, operation, lanes[2], lanes[3]);                      \
        a = ptoisa_lanes_turned(PTOISA_PUT_TOGETHER(lanes, operation, a, b));                      \
        n == 16 ? _mm512_storeu_ps(results, a) : ptoisa_store_n_avx512(results, a, n);             \
    }
PTOISA_DEFINE_FOLD_AVX512(add)
PTOISA_DEFINE_FOLD_AVX512(mul)
PTOISA_DEFINE_FOLD_AVX512(max)
PTOISA_DEFINE_FOLD_AVX512(min)
PTOISA_DEFINE_FOLD_AVX512(peak)
PTOISA_DEFINE_FOLD_AVX512(dip)
#define PTOISA_JOIN_avx512(operation, part) ptoisa_join_##operation##_avx512(part)
#define PTOISA_FOLD_avx512(operation, results, lanes, n)                                           \
    ptoisa_fold_##operation##_avx512(results, lanes, n)
#endif

#if PTOISA_NEON
#define PTOISA_GROUP_neon                 1
#define PTOISA_JOIN_neon(operation, part) (part)[0][0]
#define PTOISA_DEFINE_FOLD_NEON(operation)                                                         \
    PTOISA_ALWAYS float ptoisa_fold_##operation##_neon(float32x4_t v) {                            \
        v = ptoisa_##operation##_neon(v, vextq_f32(v, v, 2));                                      \
        v = ptoisa_##operation##_neon(v, vrev64q_f32(v));                                          \
        return vgetq_lane_f32(v, 0);                                                               \
    }
PTOISA_DEFINE_FOLD_NEON(add)
PTOISA_DEFINE_FOLD_NEON(mul)
PTOISA_DEFINE_FOLD_NEON(max)
PTOISA_DEFINE_FOLD_NEON(min)
#define PTOISA_FOLD_neon(operation, results, lanes, n)                                             \
    ((void)(n), *(results) = ptoisa_fold_##operation##_neon((lanes)[0]))
#endif

// -- lanes of rows side by side -------------------------------------------------------------------

// As add, rounded once. Zen 4 adds where it shuffles and finds maxima, and multiplies elsewhere: by
// multiply-adds sums of rows take 0.92 of the time.
#if PTOISA_X86
PTOISA_AVX2_OP(plus, (__m256 a, __m256 b), ptoisa_fma_avx2(a, ptoisa_all_avx2(1.0f), b))
PTOISA_AVX512_OP(plus, (__m512 a, __m512 b), ptoisa_fma_avx512(a, ptoisa_all_avx512(1.0f), b))
#endif
#if PTOISA_NEON
PTOISA_NEON_OP(plus, (float32x4_t a, float32x4_t b), ptoisa_add_neon(a, b))
#endif
PTOISA_C_OP(plus, (float a, float b), ptoisa_add_c(a, b))

// Rows that are reduced side by side, as each step of a row waits for the one before; vectors that
// 16 lanes are.
#define PTOISA_BESIDE_c      1
#define PTOISA_BESIDE_avx2   4
#define PTOISA_BESIDE_avx512 4
#define PTOISA_BESIDE_neon   1
#define PTOISA_PARTS(set)    (16 / PTOISA_LANES_##set)

// Parts are registers where they are vectors: there the loops over them are unrolled at every level.
#define PTOISA_UNROLL_c      _Pragma("GCC unroll 1")
#define PTOISA_UNROLL_avx2   _Pragma("GCC unroll 16")
#define PTOISA_UNROLL_avx512 _Pragma("GCC unroll 16")
#define PTOISA_UNROLL_neon   _Pragma("GCC unroll 16")

// For each part p of the rows i that are side by side.
#define PTOISA_EACH_PART(set)                                                                      \
    PTOISA_UNROLL_##set for (uint32_t i = 0; i < PTOISA_BESIDE_##set; i++)                         \
        PTOISA_UNROLL_##set for (uint32_t p = 0; p < PTOISA_PARTS(set); p++)

// step: the operation as each element of a row has it.
//
//      rest      the ends of rows from column c on, fewer than 16 elements
//      meet      both halves of 16 lanes, where these are several parts
//      lanes     all of it, for rows of cols elements: part[i][0] has the lanes of row x[i]. The new
//                element comes first in max and min: there the test for NaN is off the chain of
//                results. nan is for sets that have no such test
#define PTOISA_DEFINE_LANES(set, SET, operation, step, identity)                                   \
    SET PTOISA_ALWAYS void ptoisa_rest_##operation##_##set(                                        \
        ptoisa_vec_##set(*part)[PTOISA_PARTS(set)], const float **x, uint32_t c, uint32_t cols) {  \
        for (uint32_t last = c; last < cols; last += PTOISA_LANES_##set) {                         \
            const uint32_t left = ptoisa_least(cols - last, PTOISA_LANES_##set);                   \
            PTOISA_EACH_PART(set) {                                                                \
                if (last == c + p * PTOISA_LANES_##set) {                                          \
                    part[i][p] = ptoisa_##step##_##set(                                            \
                        ptoisa_load_n_##set(x[i] + last, left, identity), part[i][p]);             \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    SET PTOISA_ALWAYS void ptoisa_meet_##operation##_##set(                                        \
        ptoisa_vec_##set(*part)[PTOISA_PARTS(set)]) {                                              \
        PTOISA_UNROLL_##set for (uint32_t h = PTOISA_PARTS(set) / 2; h > 0; h /= 2) {              \
            PTOISA_EACH_PART(set) {                                                                \
                if (p < h) {                                                                       \
                    part[i][p] = ptoisa_##operation##_##set(part[i][p], part[i][p + h]);           \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    SET PTOISA_ALWAYS void ptoisa_lanes_##operation##_##set(                                       \
        ptoisa_vec_##set(*part)[PTOISA_PARTS(set)], uint32_t *nan, const float **x,                \
        uint32_t cols) {                                                                           \
        uint32_t c = 0;                                                                            \
        (void)nan;                                                                                 \
        PTOISA_EACH_PART(set) {                                                                    \
            part[i][p] = ptoisa_all_##set(identity);                                               \
        }                                                                                          \
        for (; c + 16 <= cols; c += 16) {                                                          \
            PTOISA_EACH_PART(set) {                                                                \
                part[i][p] = ptoisa_##step##_##set(                                                \
                    ptoisa_load_##set(x[i] + c + p * PTOISA_LANES_##set), part[i][p]);             \
            }                                                                                      \
        }                                                                                          \
        ptoisa_rest_##operation##_##set(part, x, c, cols);                                         \
        ptoisa_meet_##operation##_##set(part);                                                     \
    }

// -- rows -----------------------------------------------------------------------------------------

// A group of n rows; missing ones are as the last that is there.
#define PTOISA_DEFINE_GROUP(set, SET, operation)                                                   \
    SET PTOISA_ALWAYS void ptoisa_group_##operation##_##set(                                       \
        float *results, uint32_t *nan, const float *s, size_t pitch, uint32_t n, uint32_t cols) {  \
        enum { GROUP = PTOISA_GROUP_##set, BESIDE = PTOISA_BESIDE_##set };                         \
        ptoisa_vec_##set lanes[GROUP / BESIDE];                                                    \
        PTOISA_UNROLL_##set for (uint32_t r = 0; r < GROUP; r += BESIDE) {                         \
            ptoisa_vec_##set part[BESIDE][PTOISA_PARTS(set)];                                      \
            const float *x[BESIDE];                                                                \
            lanes[r / BESIDE] = ptoisa_all_##set(0.0f);                                            \
            if (PTOISA_UNLIKELY(r >= n)) {                                                         \
                continue;                                                                          \
            }                                                                                      \
            PTOISA_UNROLL_##set for (uint32_t i = 0; i < BESIDE; i++) {                            \
                x[i] = s + ptoisa_least(r + i, n - 1) * pitch;                                     \
            }                                                                                      \
            ptoisa_lanes_##operation##_##set(part, nan, x, cols);                                  \
            lanes[r / BESIDE] = PTOISA_JOIN_##set(operation, part);                                \
        }                                                                                          \
        PTOISA_FOLD_##set(operation, results, lanes, n);                                           \
    }

#define PTOISA_DEFINE_ROWS(set, SET, operation, step, identity)                                    \
    PTOISA_DEFINE_LANES(set, SET, operation, step, identity)                                       \
    PTOISA_DEFINE_GROUP(set, SET, operation)                                                       \
    SET PTOISA_FN void ptoisa_rows_##operation##_##set(                                            \
        float *results, const float *s, size_t pitch, uint32_t rows, uint32_t cols) {              \
        for (uint32_t first = 0, n; first < rows; first += n, s += n * pitch) {                    \
            n = ptoisa_least(rows - first, PTOISA_GROUP_##set);                                    \
            ptoisa_group_##operation##_##set(results + first, NULL, s, pitch, n, cols);            \
        }                                                                                          \
    }

#define PTOISA_DEFINE_ALL_ROWS(set, SET)                                                           \
    PTOISA_DEFINE_ROWS(set, SET, add, plus, 0.0f)                                                  \
    PTOISA_DEFINE_ROWS(set, SET, mul, mul, 1.0f)                                                   \
    PTOISA_DEFINE_ROWS(set, SET, max, max, -__builtin_inff())                                      \
    PTOISA_DEFINE_ROWS(set, SET, min, min, __builtin_inff())

// clang-format off
#if PTOISA_NEON
PTOISA_DEFINE_ALL_ROWS(neon, )
#else
PTOISA_DEFINE_ALL_ROWS(c, )
#endif
#if PTOISA_X86
PTOISA_DEFINE_ALL_ROWS(avx2, PTOISA_AVX2)
PTOISA_DEFINE_ALL_ROWS(avx512, PTOISA_AVX512)
#endif
// clang-format on

#if PTOISA_X86
// The lanes in which one of four vectors is NaN. Masks are put together in general registers: by korw
// maxima of rows take 1.2 times as long.
PTOISA_AVX512 PTOISA_ALWAYS uint32_t ptoisa_nan_lanes_avx512(const __m512 *x) {
    return (uint32_t)(_mm512_cmp_ps_mask(x[0], x[1], _CMP_UNORD_Q) |
                      _mm512_cmp_ps_mask(x[2], x[3], _CMP_UNORD_Q));
}

// take     a vector of each of four rows
// lanes    all of four rows, begun by their first 16 elements if there are as many
#define PTOISA_DEFINE_QUICK_LANES(quick, identity)                                                 \
    PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_take_##quick##_avx512(__m512(*part)[1], uint32_t *nan, \
                                                                  const __m512 *a) {               \
        PTOISA_UNROLL_avx512 for (int i = 0; i < 4; i++) {                                         \
            part[i][0] = ptoisa_##quick##_avx512(a[i], part[i][0]);                                \
        }                                                                                          \
        *nan |= ptoisa_nan_lanes_avx512(a);                                                        \
    }                                                                                              \
    PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_lanes_##quick##_avx512(                                \
        __m512(*part)[1], uint32_t *nan, const float **x, uint32_t cols) {                         \
        const bool is_long = cols >= 16;                                                           \
        __m512 a[4];                                                                               \
        PTOISA_UNROLL_avx512 for (int i = 0; i < 4; i++) {                                         \
            a[i] = is_long ? ptoisa_load_avx512(x[i]) : ptoisa_all_avx512(identity);               \
            part[i][0] = a[i];                                                                     \
        }                                                                                          \
        *nan |= ptoisa_nan_lanes_avx512(a);                                                        \
        uint32_t c = is_long ? 16 : 0;                                                             \
        for (; c + 16 <= cols; c += 16) {                                                          \
            PTOISA_UNROLL_avx512 for (int i = 0; i < 4; i++) {                                     \
                a[i] = ptoisa_load_avx512(x[i] + c);                                               \
            }                                                                                      \
            ptoisa_take_##quick##_avx512(part, nan, a);                                            \
        }                                                                                          \
        if (c < cols) {                                                                            \
            PTOISA_UNROLL_avx512 for (int i = 0; i < 4; i++) {                                     \
                a[i] = ptoisa_load_n_avx512(x[i] + c, cols - c, identity);                         \
            }                                                                                      \
            ptoisa_take_##quick##_avx512(part, nan, a);                                            \
        }                                                                                          \
    }

// Maxima and minima of rows that hope for no NaN. A group that has one is done again as above. With
// AVX2 this is slower than asking each element: 16 registers are too few.
#define PTOISA_DEFINE_QUICK(operation, quick, identity)                                            \
    PTOISA_DEFINE_QUICK_LANES(quick, identity)                                                     \
    PTOISA_DEFINE_GROUP(avx512, PTOISA_AVX512, quick)                                              \
    PTOISA_AVX512 PTOISA_FN void ptoisa_rows_##quick##_avx512(                                     \
        float *results, const float *s, size_t pitch, uint32_t rows, uint32_t cols) {              \
        for (uint32_t first = 0, n; first < rows; first += n, s += n * pitch) {                    \
            uint32_t nan = 0;                                                                      \
            n = ptoisa_least(rows - first, 16);                                                    \
            if (PTOISA_LIKELY(n == 16)) { /* code for whole groups takes 0.94 of the time */       \
                ptoisa_group_##quick##_avx512(results + first, &nan, s, pitch, 16, cols);          \
            } else {                                                                               \
                ptoisa_group_##quick##_avx512(results + first, &nan, s, pitch, n, cols);           \
            }                                                                                      \
            if (PTOISA_UNLIKELY(nan != 0)) {                                                       \
                ptoisa_rows_##operation##_avx512(results + first, s, pitch, n, cols);              \
            }                                                                                      \
        }                                                                                          \
    }

// clang-format off
PTOISA_DEFINE_QUICK(max, peak, -__builtin_inff())
PTOISA_DEFINE_QUICK(min, dip, __builtin_inff())
// clang-format on
#endif

#define PTOISA_ROWS_BY(set, max, min)                                                              \
    switch (op) {                                                                                  \
    case PTOISA_MAP_ADD: ptoisa_rows_add_##set(results, s, pitch, rows, cols); return;             \
    case PTOISA_MAP_MUL: ptoisa_rows_mul_##set(results, s, pitch, rows, cols); return;             \
    case PTOISA_MAP_MAX: ptoisa_rows_##max##_##set(results, s, pitch, rows, cols); return;         \
    default: ptoisa_rows_##min##_##set(results, s, pitch, rows, cols); return;                     \
    }

// Reduces rows of cols elements, pitch elements apart, to one result each.
PTOISA_FN void ptoisa_rows_f32(ptoisa_map_op op, float *results, const float *s, size_t pitch,
                               uint32_t rows, uint32_t cols) {
#if PTOISA_X86
    if (ptoisa_has_avx512()) {
        PTOISA_ROWS_BY(avx512, peak, dip)
    }
    if (ptoisa_has_avx2()) {
        PTOISA_ROWS_BY(avx2, max, min)
    }
#endif
#if PTOISA_NEON
    PTOISA_ROWS_BY(neon, max, min)
#else
    PTOISA_ROWS_BY(c, max, min)
#endif
}

#endif
