// Reductions of rows and of columns.
//
// A row is summed in 16 lanes: lane i takes elements i, i + 16, i + 32 .. from the left, beginning
// with 0; then lane i adds lane i + 8, then i + 4, i + 2, i + 1, and lane 0 is the sum. So it is on
// every machine, whatever the width of its vectors, and all give the same bits. Products, maxima
// and minima likewise. f16 and bf16 are summed in f32 and rounded once.
//
// A column is reduced from top to bottom, in f32 for f16 and bf16; a binary TCOLSUM the same.
//
// Any NaN makes a maximum or minimum a NaN, and TROWARGMAX and TROWARGMIN find the first NaN; else
// the first of equal elements. Over no elements: 0, 1, the least or the greatest value of the type
// (for floats an infinity), index 0.
//
// TCOLARGMAX and TCOLARGMIN find rows as TROWARGMAX and TROWARGMIN find columns. TPAIRREDUCESUM adds
// two neighbours of a row, in f32, and rounds once.
//
// Row reductions leave R values: in a column-major tile of one column, or in the first column of a
// row-major one that has one valid column. f32 rows are reduced by vectors straight away; f16 and
// bf16 are widened a few rows at a time before that; integers, and rows longer than a piece, go
// through 16 lanes in memory, by the loops of map.h. 64 x 128 f32 with AVX-512: TROWSUM 0.22 us,
// TROWMAX 0.26, TCOLSUM 0.50.

#ifndef PTOISA_REDUCE_H
#define PTOISA_REDUCE_H

#include "elementwise.h"

// Rows reduced before their results are stored.
#define PTOISA_ROWS_AT_ONCE 64

// -- f32 rows, by vectors -------------------------------------------------------------------------

// Rows are folded as many at once as a vector has lanes: the lower halves of two rows' lanes are put
// together in one vector and the upper ones in another, and so on with quarters. Four rows side by
// side become one vector (JOIN), and the vectors of a group its results (FOLD).
#define PTOISA_GROUP_c                              1
#define PTOISA_JOIN_c(operation, part)              (part)[0][0]
#define PTOISA_FOLD_c(operation, results, lanes, n) ((void)(n), *(results) = (lanes)[0][0])
#if PTOISA_X86
// max and min where nothing is NaN.
PTOISA_AVX2_OP(peak, (__m256 a, __m256 b), _mm256_max_ps(a, b))
PTOISA_AVX2_OP(dip, (__m256 a, __m256 b), _mm256_min_ps(a, b))
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
PTOISA_AVX512 PTOISA_ALWAYS __m512 ptoisa_lanes_turned(__m512 x) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_maskz_permutexvar_ps(PTOISA_ALL_16, order, x);
}

#define PTOISA_GROUP_avx2   8
#define PTOISA_GROUP_avx512 16
#define PTOISA_DEFINE_FOLD(operation)                                                              \
    PTOISA_AVX2 PTOISA_ALWAYS __m256 ptoisa_halves_##operation(__m256 a, __m256 b) {               \
        return ptoisa_##operation##_avx2(_mm256_permute2f128_ps(a, b, 0x20),                       \
                                         _mm256_permute2f128_ps(a, b, 0x31));                      \
    }                                                                                              \
    PTOISA_AVX2 PTOISA_ALWAYS __m256 ptoisa_join_##operation##_avx2(__m256 a, __m256 b, __m256 c,  \
                                                                    __m256 d) {                    \
        __m256d x = _mm256_castps_pd(ptoisa_halves_##operation(a, b));                             \
        __m256d y = _mm256_castps_pd(ptoisa_halves_##operation(c, d));                             \
        return ptoisa_##operation##_avx2(_mm256_castpd_ps(_mm256_unpacklo_pd(x, y)),               \
                                         _mm256_castpd_ps(_mm256_unpackhi_pd(x, y)));              \
    }                                                                                              \
    PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_fold_##operation##_avx2(float *results,                  \
                                                                  float(*lanes)[8], uint32_t n) {  \
        __m256 x = _mm256_loadu_ps(lanes[0]), y = _mm256_loadu_ps(lanes[1]);                       \
        x = ptoisa_##operation##_avx2(_mm256_shuffle_ps(x, y, 0x88),                               \
                                      _mm256_shuffle_ps(x, y, 0xdd));                              \
        x = _mm256_permutevar8x32_ps(x, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));                \
        n == 8 ? _mm256_storeu_ps(results, x) : ptoisa_store_n_avx2(results, x, n);                \
    }                                                                                              \
    PTOISA_AVX512 PTOISA_ALWAYS __m512 ptoisa_join_##operation##_avx512(__m512 a, __m512 b,        \
                                                                        __m512 c, __m512 d) {      \
        a = ptoisa_##operation##_avx512(ptoisa_halves_low(a, b), ptoisa_halves_high(a, b));        \
        c = ptoisa_##operation##_avx512(ptoisa_halves_low(c, d), ptoisa_halves_high(c, d));        \
        return ptoisa_##operation##_avx512(ptoisa_quarters_low(a, c), ptoisa_quarters_high(a, c)); \
    }                                                                                              \
    PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_fold_##operation##_avx512(                             \
        float *results, float(*lanes)[16], uint32_t n) {                                           \
        __m512 a = _mm512_loadu_ps(lanes[0]), b = _mm512_loadu_ps(lanes[1]);                       \
        __m512 c = _mm512_loadu_ps(lanes[2]), d = _mm512_loadu_ps(lanes[3]);                       \
        a = ptoisa_##operation##_avx512(ptoisa_pairs_low(a, b), ptoisa_pairs_high(a, b));          \
        c = ptoisa_##operation##_avx512(ptoisa_pairs_low(c, d), ptoisa_pairs_high(c, d));          \
        a = ptoisa_##operation##_avx512(ptoisa_lanes_low(a, c), ptoisa_lanes_high(a, c));          \
        ptoisa_store_n_avx512(results, ptoisa_lanes_turned(a), n);                                 \
    }
PTOISA_DEFINE_FOLD(add)
PTOISA_DEFINE_FOLD(mul)
PTOISA_DEFINE_FOLD(max)
PTOISA_DEFINE_FOLD(min)
PTOISA_DEFINE_FOLD(peak)
PTOISA_DEFINE_FOLD(dip)
#define PTOISA_JOIN_avx2(operation, part)                                                          \
    ptoisa_join_##operation##_avx2(part[0][0], part[1][0], part[2][0], part[3][0])
#define PTOISA_JOIN_avx512(operation, part)                                                        \
    ptoisa_join_##operation##_avx512(part[0][0], part[1][0], part[2][0], part[3][0])
#define PTOISA_FOLD_avx2(operation, results, lanes, n)                                             \
    ptoisa_fold_##operation##_avx2(results, lanes, n)
#define PTOISA_FOLD_avx512(operation, results, lanes, n)                                           \
    ptoisa_fold_##operation##_avx512(results, lanes, n)
#endif
#if PTOISA_NEON
#define PTOISA_GROUP_neon                 1
#define PTOISA_JOIN_neon(operation, part) (part)[0][0]
#define PTOISA_DEFINE_FOLD(operation)                                                              \
    PTOISA_ALWAYS float ptoisa_fold_##operation##_neon(float32x4_t v) {                            \
        v = ptoisa_##operation##_neon(v, vextq_f32(v, v, 2));                                      \
        v = ptoisa_##operation##_neon(v, vrev64q_f32(v));                                          \
        return vgetq_lane_f32(v, 0);                                                               \
    }
PTOISA_DEFINE_FOLD(add)
PTOISA_DEFINE_FOLD(mul)
PTOISA_DEFINE_FOLD(max)
PTOISA_DEFINE_FOLD(min)
#define PTOISA_FOLD_neon(operation, results, lanes, n)                                             \
    ((void)(n), *(results) = ptoisa_fold_##operation##_neon(vld1q_f32((lanes)[0])))
#endif

// Parts are registers where they are vectors: there the loops over them are unrolled at every level.
#define PTOISA_UNROLL_c      _Pragma("GCC unroll 1")
#define PTOISA_UNROLL_avx2   _Pragma("GCC unroll 16")
#define PTOISA_UNROLL_avx512 _Pragma("GCC unroll 16")
#define PTOISA_UNROLL_neon   _Pragma("GCC unroll 16")

// Rows in groups that are folded together, of which a few are reduced side by side, as each step of
// a row waits for the one before. Of the last ones missing rows are as the last that is there.
// LANES_OF leaves the lanes of rows x[i] in part[i][0]; AFTER is done after a group.
#define PTOISA_BESIDE_c      1
#define PTOISA_BESIDE_avx2   4
#define PTOISA_BESIDE_avx512 4
#define PTOISA_BESIDE_neon   1

#define PTOISA_FOLD_ROWS(set, operation, LANES_OF, AFTER)                                          \
    enum {                                                                                         \
        LANES = PTOISA_LANES_##set,                                                                \
        PARTS = 16 / LANES,                                                                        \
        GROUP = PTOISA_GROUP_##set,                                                                \
        BESIDE = PTOISA_BESIDE_##set                                                               \
    };                                                                                             \
    __attribute__((aligned(64))) float lanes[GROUP / BESIDE][LANES];                               \
    for (uint32_t first = 0, n; first < rows; first += n, s += n * pitch) {                        \
        n = ptoisa_least(rows - first, GROUP);                                                     \
        for (uint32_t r = 0; r < GROUP; r += BESIDE) {                                             \
            ptoisa_vec_##set part[BESIDE][PARTS];                                                  \
            const float *x[BESIDE];                                                                \
            if (r >= n) {                                                                          \
                ptoisa_store_##set(lanes[r / BESIDE], ptoisa_all_##set(0.0f));                     \
                continue;                                                                          \
            }                                                                                      \
            PTOISA_UNROLL_##set for (uint32_t i = 0; i < BESIDE; i++) {                            \
                x[i] = i == 0 ? s + r * pitch : x[i - 1] + (r + i < n ? pitch : 0);                \
            }                                                                                      \
            LANES_OF                                                                               \
            ptoisa_store_##set(lanes[r / BESIDE], PTOISA_JOIN_##set(operation, part));             \
        }                                                                                          \
        PTOISA_FOLD_##set(operation, results + first, lanes, n);                                   \
        AFTER                                                                                      \
    }

// Does something with each part p of the rows i that are side by side.
#define PTOISA_EACH_PART(set)                                                                      \
    PTOISA_UNROLL_##set for (uint32_t i = 0; i < BESIDE; i++)                                      \
        PTOISA_UNROLL_##set for (uint32_t p = 0; p < PARTS; p++)

// The new element comes first in max and min: there the test for NaN is off the chain of results.
// ALSO(i, a) is done with each element or its identity.
#define PTOISA_LANES_OF_ROWS(set, operation, identity, ALSO)                                       \
    PTOISA_EACH_PART(set) {                                                                        \
        part[i][p] = ptoisa_all_##set(identity);                                                   \
    }                                                                                              \
    uint32_t c = 0;                                                                                \
    for (; c + 16 <= cols; c += 16) {                                                              \
        PTOISA_EACH_PART(set) {                                                                    \
            ptoisa_vec_##set a = ptoisa_load_##set(x[i] + c + p * LANES);                          \
            part[i][p] = ptoisa_##operation##_##set(a, part[i][p]);                                \
            ALSO(set, a, i)                                                                        \
        }                                                                                          \
    }                                                                                              \
    for (uint32_t last = c; last < cols; last += LANES) {                                          \
        const uint32_t left = ptoisa_least(cols - last, LANES);                                    \
        PTOISA_EACH_PART(set) {                                                                    \
            if (last == c + p * LANES) {                                                           \
                ptoisa_vec_##set a = ptoisa_load_n_##set(x[i] + last, left, identity);             \
                part[i][p] = ptoisa_##operation##_##set(a, part[i][p]);                            \
                ALSO(set, a, i)                                                                    \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    PTOISA_UNROLL_##set for (uint32_t h = PARTS / 2; h > 0; h /= 2) {                              \
        PTOISA_EACH_PART(set) {                                                                    \
            if (p < h) {                                                                           \
                part[i][p] = ptoisa_##operation##_##set(part[i][p], part[i][p + h]);               \
            }                                                                                      \
        }                                                                                          \
    }

#define PTOISA_ALSO_NOTHING(set, a, i)
#define PTOISA_DEFINE_ROWS(set, SET, operation, identity)                                          \
    SET PTOISA_FN void ptoisa_rows_##operation##_##set(                                            \
        float *results, const float *s, size_t pitch, uint32_t rows, uint32_t cols) {              \
        PTOISA_FOLD_ROWS(set, operation,                                                           \
                         PTOISA_LANES_OF_ROWS(set, operation, identity, PTOISA_ALSO_NOTHING), )    \
    }

#define PTOISA_DEFINE_ALL_ROWS(set, SET)                                                           \
    PTOISA_DEFINE_ROWS(set, SET, add, 0.0f)                                                        \
    PTOISA_DEFINE_ROWS(set, SET, mul, 1.0f)                                                        \
    PTOISA_DEFINE_ROWS(set, SET, max, -__builtin_inff())                                           \
    PTOISA_DEFINE_ROWS(set, SET, min, __builtin_inff())

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
// Maxima and minima of rows that hope for no NaN: the sum of a row's elements is NaN if one of them
// is. A group where a row's is NaN, also as infinities of both signs meet, is done again as above.
// Sums are made by multiply-adds: Zen 4 adds on the pipes that maxima take.
#define PTOISA_ANY_NAN_avx2(v, w)   (uint32_t) _mm256_movemask_ps(_mm256_cmp_ps(v, w, _CMP_UNORD_Q))
#define PTOISA_ANY_NAN_avx512(v, w) (uint32_t) _mm512_cmp_ps_mask(v, w, _CMP_UNORD_Q)
#define PTOISA_ALSO_SUM(set, a, i)  sum[i] = ptoisa_fma_##set(a, one, sum[i]);

#define PTOISA_LANES_OF_QUICK(set, quick, identity)                                                \
    ptoisa_vec_##set sum[BESIDE];                                                                  \
    PTOISA_UNROLL_##set for (uint32_t i = 0; i < BESIDE; i++) {                                    \
        sum[i] = ptoisa_all_##set(0.0f);                                                           \
    }                                                                                              \
    PTOISA_LANES_OF_ROWS(set, quick, identity, PTOISA_ALSO_SUM)                                    \
    has_nan |= PTOISA_ANY_NAN_##set(sum[0], sum[1]) | PTOISA_ANY_NAN_##set(sum[2], sum[3]);

#define PTOISA_DEFINE_QUICK(set, SET, operation, quick, identity)                                  \
    SET PTOISA_FN void ptoisa_rows_##quick##_##set(float *results, const float *s, size_t pitch,   \
                                                   uint32_t rows, uint32_t cols) {                 \
        const ptoisa_vec_##set one = ptoisa_all_##set(1.0f);                                       \
        uint32_t has_nan = 0;                                                                      \
        PTOISA_FOLD_ROWS(                                                                          \
            set, quick, PTOISA_LANES_OF_QUICK(set, quick, identity),                               \
            if (PTOISA_UNLIKELY(has_nan != 0)) {                                                   \
                ptoisa_rows_##operation##_##set(results + first, s, pitch, n, cols);               \
                has_nan = 0;                                                                       \
            })                                                                                     \
    }

PTOISA_DEFINE_QUICK(avx2, PTOISA_AVX2, max, peak, -__builtin_inff())
PTOISA_DEFINE_QUICK(avx2, PTOISA_AVX2, min, dip, __builtin_inff())
PTOISA_DEFINE_QUICK(avx512, PTOISA_AVX512, max, peak, -__builtin_inff())
PTOISA_DEFINE_QUICK(avx512, PTOISA_AVX512, min, dip, __builtin_inff())
#endif

#define PTOISA_ROWS_BY(set, max, min)                                                              \
    switch (op) {                                                                                  \
    case PTOISA_MAP_ADD: ptoisa_rows_add_##set(results, s, pitch, rows, cols); return;             \
    case PTOISA_MAP_MUL: ptoisa_rows_mul_##set(results, s, pitch, rows, cols); return;             \
    case PTOISA_MAP_MAX: ptoisa_rows_##max##_##set(results, s, pitch, rows, cols); return;         \
    default: ptoisa_rows_##min##_##set(results, s, pitch, rows, cols); return;                     \
    }

PTOISA_FN void ptoisa_rows_f32(ptoisa_map_op op, float *results, const float *s, size_t pitch,
                               uint32_t rows, uint32_t cols) {
#if PTOISA_X86
    if (ptoisa_has_avx512()) {
        PTOISA_ROWS_BY(avx512, peak, dip)
    }
    if (ptoisa_has_avx2()) {
        PTOISA_ROWS_BY(avx2, peak, dip)
    }
#endif
#if PTOISA_NEON
    PTOISA_ROWS_BY(neon, max, min)
#else
    PTOISA_ROWS_BY(c, max, min)
#endif
}

// -- rows of all types ----------------------------------------------------------------------------

// What a reduction over nothing is, as a word: f32, or a value of the integer type.
PTOISA_FN uint32_t ptoisa_identity(ptoisa_map_op op, ptoisa_dtype dtype) {
    bool is_float = ptoisa_dtype_is_float(dtype);
    if (op == PTOISA_MAP_ADD) {
        return 0;
    }
    if (op == PTOISA_MAP_MUL) {
        return is_float ? ptoisa_bits_from_f32(1.0f) : 1;
    }
    if (is_float) {
        return op == PTOISA_MAP_MAX ? 0xff800000 : 0x7f800000;
    }
    uint32_t bits = 8 * ptoisa_dtype_size(dtype);
    uint32_t greatest = UINT32_MAX >> (32 - bits) >> (dtype < PTOISA_U8 ? 1 : 0);
    return op == PTOISA_MAP_MIN ? greatest : dtype < PTOISA_U8 ? ~greatest : 0;
}

// One row of any type in 16 lanes in memory; returns lane 0, a word.
PTOISA_FN uint32_t ptoisa_row_in_lanes(ptoisa_loops *loops, ptoisa_dtype dtype, const void *s,
                                       uint32_t cols) {
    ptoisa_piece piece;
    union {
        uint32_t u32[16];
        float f32[16];
    } lanes;
    for (int i = 0; i < 16; i++) {
        lanes.u32[i] = ptoisa_identity(loops(PTOISA_WORD_F32, NULL), dtype);
    }
    ptoisa_map map;
    memset(&map, 0, sizeof map);
    map.d = &lanes, map.a = &lanes, map.c = &lanes;
    for (uint32_t at = 0; at < cols; at += PTOISA_PIECE) {
        uint32_t n = ptoisa_least(cols - at, PTOISA_PIECE);
        ptoisa_widen(dtype, &piece, (const uint8_t *)s + at * (size_t)ptoisa_dtype_size(dtype), n);
        map.b = &piece, map.b_pitch = 16, map.rows = n / 16, map.cols = 16;
        ptoisa_map_words(loops, dtype, &map);
        map.b = piece.u32 + n / 16 * 16, map.rows = 1, map.cols = n % 16;
        ptoisa_map_words(loops, dtype, &map);
    }
    for (uint32_t h = 8; h > 0; h /= 2) {
        map.b = lanes.u32 + h, map.rows = 1, map.cols = h;
        ptoisa_map_words(loops, dtype, &map);
    }
    return lanes.u32[0];
}

// Reduces up to PTOISA_ROWS_AT_ONCE rows of any type to words.
PTOISA_FN void ptoisa_rows_any(ptoisa_loops *loops, ptoisa_dtype dtype, ptoisa_piece *results,
                               const void *s, size_t pitch, uint32_t rows, uint32_t cols) {
    if (dtype == PTOISA_F32) {
        ptoisa_rows_f32(loops(PTOISA_WORD_F32, NULL), results->f32, (const float *)s, pitch, rows,
                        cols);
        return;
    }
    size_t row_size = pitch * ptoisa_dtype_size(dtype);
    if (!ptoisa_dtype_is_float(dtype) || cols > PTOISA_PIECE || cols == 0) {
        for (uint32_t r = 0; r < rows; r++) {
            results->u32[r] =
                ptoisa_row_in_lanes(loops, dtype, (const uint8_t *)s + r * row_size, cols);
        }
        return;
    }
    ptoisa_piece piece;
    uint32_t rows_max = PTOISA_PIECE / cols;
    for (uint32_t row = 0; row < rows; row += rows_max) {
        uint32_t n = ptoisa_least(rows - row, rows_max);
        const uint8_t *from = (const uint8_t *)s + row * row_size;
        if (pitch == cols) {
            ptoisa_widen(dtype, &piece, from, (size_t)n * cols);
        } else {
            for (uint32_t r = 0; r < n; r++) {
                ptoisa_piece one;
                ptoisa_widen(dtype, &one, from + r * row_size, cols);
                memcpy(piece.u32 + r * cols, one.u32, cols * sizeof one.u32[0]);
            }
        }
        ptoisa_rows_f32(loops(PTOISA_WORD_F32, NULL), results->f32 + row, piece.f32, cols, n, cols);
    }
}

// Is word i the extreme, or NaN where the extreme is?
PTOISA_INLINE bool ptoisa_is_found(const ptoisa_piece *piece, uint32_t i, uint32_t extreme,
                                   bool is_float, bool is_nan) {
    float x = piece->f32[i];
    return is_nan     ? x != x
           : is_float ? x == ptoisa_f32_from_bits(extreme)
                      : piece->u32[i] == extreme;
}

#if PTOISA_X86
// How many elements come before the block of 8, or the rest, where the value is.
PTOISA_AVX2 PTOISA_FN uint32_t ptoisa_row_skip_avx2(const float *s, uint32_t n, float value) {
    uint32_t i = 0;
    while (i + 8 <= n && _mm256_movemask_ps(_mm256_cmp_ps(
                             _mm256_loadu_ps(s + i), _mm256_set1_ps(value), _CMP_EQ_OQ)) == 0) {
        i += 8;
    }
    return i;
}
#endif

// The first element of a row of any type that is the extreme, or NaN if the extreme is. Floats are
// passed over eight at a time: TROWARGMAX of 64 x 128 takes 1.3 us instead of 5.1.
PTOISA_FN uint32_t ptoisa_row_find(ptoisa_dtype dtype, uint32_t extreme, const void *s,
                                   uint32_t cols) {
    ptoisa_piece piece;
    bool is_float = ptoisa_dtype_is_float(dtype);
    float value = ptoisa_f32_from_bits(extreme);
    bool is_nan = is_float && value != value;
    for (uint32_t at = 0; at < cols; at += PTOISA_PIECE) {
        uint32_t n = ptoisa_least(cols - at, PTOISA_PIECE), i = 0;
        ptoisa_widen(dtype, &piece, (const uint8_t *)s + at * (size_t)ptoisa_dtype_size(dtype), n);
#if PTOISA_X86
        if (is_float && !is_nan && ptoisa_has_avx2()) {
            i = ptoisa_row_skip_avx2(piece.f32, n, value);
        }
#endif
        for (; i < n; i++) {
            if (ptoisa_is_found(&piece, i, extreme, is_float, is_nan)) {
                return at + i;
            }
        }
    }
    return 0;
}

// -- row instructions -----------------------------------------------------------------------------

PTOISA_FN bool ptoisa_check_row_reduce(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *d,
                                       uint32_t d_types, const ptoisa_tile *s,
                                       const ptoisa_tile *t) {
    if (!ptoisa_check_operand(core, op, "dst", d, d_types, PTOISA_VEC, 0, 0) ||
        !ptoisa_check_rows(core, op, "src0", s, PTOISA_SET_MAP, d->valid_rows, 0) ||
        !ptoisa_check_scratch(core, op, t)) {
        return false;
    }
    if ((d->layout != PTOISA_ROW_MAJOR && (d->layout != PTOISA_COL_MAJOR || d->cols != 1)) ||
        (d->valid_cols > 1 && !core->is_as_simulator)) {
        return ptoisa_fault(core, op, "dst is no column, nor row-major with one valid column");
    }
    if (t->dtype != s->dtype || t->rows != s->rows || t->cols != s->cols) {
        return ptoisa_fault(core, op, "tmp is not of the type and shape of src0");
    }
    return true;
}

// The results of rows [row, row + rows) go to d; they are of its type, one after another.
PTOISA_FN void ptoisa_store_column(const ptoisa_tile *d, uint32_t row, uint32_t rows,
                                   const void *results) {
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype);
    if (d->layout == PTOISA_COL_MAJOR) {
        memcpy((uint8_t *)d->data + (size_t)row * size, results, (size_t)rows * size);
        return;
    }
    for (uint32_t r = 0; r < rows; r++) {
        memcpy((uint8_t *)d->data + ptoisa_offset(d, row + r, 0) * size,
               (const uint8_t *)results + (size_t)r * size, size);
    }
}

// The values that go with the indices d: a column of the type of s.
PTOISA_FN bool ptoisa_check_values(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *d,
                                   const ptoisa_tile *values, const ptoisa_tile *s,
                                   const ptoisa_tile *t) {
    if (!ptoisa_check_row_reduce(core, op, values, PTOISA_SET(s->dtype), s, t)) {
        return false;
    }
    return (values->valid_rows == d->valid_rows && values->valid_cols == d->valid_cols) ||
           ptoisa_fault(core, op, "dst has %u x %u valid elements, the values %u x %u",
                        d->valid_rows, d->valid_cols, values->valid_rows, values->valid_cols);
}

// values: where the extremes go whose indices d takes; may be NULL.
PTOISA_FN void ptoisa_row_reduce(ptoisa_core *core, ptoisa_op op, ptoisa_loops *loops,
                                 bool is_index, const ptoisa_tile *d, const ptoisa_tile *values,
                                 const ptoisa_tile *s, const ptoisa_tile *t) {
    ptoisa_dtype dtype = (ptoisa_dtype)s->dtype;
    uint32_t d_types =
        is_index ? PTOISA_SET(PTOISA_I32) | PTOISA_SET(PTOISA_U32) : PTOISA_SET(dtype);
    if (PTOISA_CHECKED && (!ptoisa_check_row_reduce(core, op, d, d_types, s, t) ||
                           (values && !ptoisa_check_values(core, op, d, values, s, t)))) {
        return;
    }
    ptoisa_issue(core, op, d, s, NULL);
    if (core->is_dry || d->valid_cols == 0) {
        return;
    }
    size_t row_size = (size_t)s->cols * ptoisa_dtype_size(dtype);
    ptoisa_piece results, narrow;
    for (uint32_t row = 0; row < d->valid_rows; row += PTOISA_ROWS_AT_ONCE) {
        uint32_t rows = ptoisa_least(d->valid_rows - row, PTOISA_ROWS_AT_ONCE);
        const uint8_t *from = (const uint8_t *)s->data + row * row_size;
        ptoisa_rows_any(loops, dtype, &results, from, s->cols, rows, s->valid_cols);
        if (values) {
            ptoisa_narrow(dtype, &narrow, &results, rows);
            ptoisa_store_column(values, row, rows, &narrow);
        }
        if (is_index) {
            for (uint32_t r = 0; r < rows; r++) {
                results.u32[r] =
                    ptoisa_row_find(dtype, results.u32[r], from + r * row_size, s->valid_cols);
            }
        }
        if (d->dtype == PTOISA_F32 || is_index) {
            ptoisa_store_column(d, row, rows, &results);
        } else {
            ptoisa_narrow(dtype, &narrow, &results, rows);
            ptoisa_store_column(d, row, rows, &narrow);
        }
    }
}

#define PTOISA_DEFINE_ROW_REDUCE(function, op, map_op, is_index)                                   \
    PTOISA_FN void ptoisa_##function(ptoisa_core *core, const ptoisa_tile *d,                      \
                                     const ptoisa_tile *s, const ptoisa_tile *t) {                 \
        ptoisa_row_reduce(core, PTOISA_##op, &ptoisa_loops_##map_op, is_index, d, NULL, s, t);     \
    }

PTOISA_DEFINE_ROW_REDUCE(trowsum, TROWSUM, ADD, false)
PTOISA_DEFINE_ROW_REDUCE(trowprod, TROWPROD, MUL, false)
PTOISA_DEFINE_ROW_REDUCE(trowmax, TROWMAX, MAX, false)
PTOISA_DEFINE_ROW_REDUCE(trowmin, TROWMIN, MIN, false)
PTOISA_DEFINE_ROW_REDUCE(trowargmax, TROWARGMAX, MAX, true)
PTOISA_DEFINE_ROW_REDUCE(trowargmin, TROWARGMIN, MIN, true)

// The extremes and their indices.
PTOISA_FN void ptoisa_trowargmax_values(ptoisa_core *core, const ptoisa_tile *values,
                                        const ptoisa_tile *d, const ptoisa_tile *s,
                                        const ptoisa_tile *t) {
    ptoisa_row_reduce(core, PTOISA_TROWARGMAX, &ptoisa_loops_MAX, true, d, values, s, t);
}

PTOISA_FN void ptoisa_trowargmin_values(ptoisa_core *core, const ptoisa_tile *values,
                                        const ptoisa_tile *d, const ptoisa_tile *s,
                                        const ptoisa_tile *t) {
    ptoisa_row_reduce(core, PTOISA_TROWARGMIN, &ptoisa_loops_MIN, true, d, values, s, t);
}

// d[r][c] = s[r][2 c] + s[r][2 c + 1].
PTOISA_FN void ptoisa_tpairreducesum(ptoisa_core *core, const ptoisa_tile *d,
                                     const ptoisa_tile *s) {
    const ptoisa_op op = PTOISA_TPAIRREDUCESUM;
    if (PTOISA_CHECKED) {
        if (!ptoisa_check_rows(core, op, "dst", d, PTOISA_SET_FLOAT, 0, 0) ||
            !ptoisa_check_rows(core, op, "src0", s, PTOISA_SET(d->dtype), d->valid_rows, 0)) {
            return;
        }
        if (s->valid_cols != 2 * (uint64_t)d->valid_cols) {
            ptoisa_fault(core, op, "src0 has %u valid columns, and dst %u, not half of them",
                         s->valid_cols, d->valid_cols);
            return;
        }
    }
    ptoisa_issue(core, op, d, s, NULL);
    const ptoisa_dtype dtype = (ptoisa_dtype)d->dtype;
    const size_t size = ptoisa_dtype_size(dtype);
    for (uint32_t r = 0; r < d->valid_rows && !core->is_dry; r++) {
        const uint8_t *from = (const uint8_t *)s->data + (size_t)r * s->cols * size;
        uint8_t *to = (uint8_t *)d->data + (size_t)r * d->cols * size;
        for (uint32_t at = 0; at < d->valid_cols; at += PTOISA_PIECE / 2) {
            uint32_t n = ptoisa_least(d->valid_cols - at, PTOISA_PIECE / 2);
            ptoisa_piece piece;
            ptoisa_widen(dtype, &piece, from + 2 * at * size, 2 * n);
            for (uint32_t i = 0; i < n; i++) {
                piece.f32[i] = piece.f32[2 * i] + piece.f32[2 * i + 1];
            }
            ptoisa_narrow(dtype, to + at * size, &piece, n);
        }
    }
}

// -- column instructions --------------------------------------------------------------------------

// Columns of words: d takes the first row, then d = d op row for all others.
PTOISA_FN void ptoisa_cols_words(ptoisa_loops *loops, ptoisa_dtype dtype, void *d, const void *s,
                                 size_t pitch, uint32_t rows, uint32_t cols) {
    memmove(d, s, (size_t)cols * 4);
    ptoisa_map map;
    memset(&map, 0, sizeof map);
    map.d = d, map.a = d, map.c = d;
    map.b = (const uint32_t *)s + (rows > 1 ? pitch : 0), map.b_pitch = pitch;
    map.rows = rows - 1;
    map.cols = cols;
    ptoisa_map_words(loops, dtype, &map);
}

PTOISA_FN void ptoisa_cols_any(ptoisa_loops *loops, ptoisa_dtype dtype, void *d, const void *s,
                               size_t pitch, uint32_t rows, uint32_t cols) {
    uint32_t size = ptoisa_dtype_size(dtype);
    if (size == 4 && rows > 0) {
        ptoisa_cols_words(loops, dtype, d, s, pitch, rows, cols);
        return;
    }
    ptoisa_piece sum, next;
    ptoisa_map map;
    memset(&map, 0, sizeof map);
    map.d = &sum, map.a = &sum, map.b = &next, map.c = &sum;
    map.rows = 1;
    for (uint32_t at = 0; at < cols; at += PTOISA_PIECE) {
        uint32_t n = ptoisa_least(cols - at, PTOISA_PIECE);
        const uint8_t *from = (const uint8_t *)s + (size_t)at * size;
        map.cols = n;
        for (uint32_t i = 0; i < n && rows == 0; i++) {
            sum.u32[i] = ptoisa_identity(loops(PTOISA_WORD_F32, NULL), dtype);
        }
        for (uint32_t r = 0; r < rows; r++) {
            ptoisa_widen(dtype, r == 0 ? &sum : &next, from + r * pitch * size, n);
            if (r > 0) {
                ptoisa_map_words(loops, dtype, &map);
            }
        }
        ptoisa_narrow(dtype, (uint8_t *)d + (size_t)at * size, &sum, n);
    }
}

PTOISA_FN void ptoisa_col_reduce(ptoisa_core *core, ptoisa_op op, ptoisa_loops *loops,
                                 const ptoisa_tile *d, const ptoisa_tile *s) {
    if (PTOISA_CHECKED) {
        uint32_t same = PTOISA_SET(d->dtype);
        if (!ptoisa_check_rows(core, op, "dst", d, PTOISA_SET_MAP, 0, 0) ||
            !ptoisa_check_rows(core, op, "src0", s, same, 0, d->valid_cols)) {
            return;
        }
        if (d->valid_rows > 1) {
            ptoisa_fault(core, op, "dst has %u valid rows, not 1", d->valid_rows);
            return;
        }
    }
    ptoisa_issue(core, op, d, s, NULL);
    if (!core->is_dry && d->valid_rows > 0 && d->valid_cols > 0) {
        ptoisa_cols_any(loops, (ptoisa_dtype)d->dtype, d->data, s->data, s->cols, s->valid_rows,
                        d->valid_cols);
    }
}

// is_binary: the device adds in the order of a tree, with t as scratch; here the order is the same.
PTOISA_FN void ptoisa_tcolsum(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                              const ptoisa_tile *t, bool is_binary) {
    if (PTOISA_CHECKED && (is_binary || t) && !ptoisa_check_scratch(core, PTOISA_TCOLSUM, t)) {
        return;
    }
    ptoisa_col_reduce(core, PTOISA_TCOLSUM, &ptoisa_loops_ADD, d, s);
}

#define PTOISA_DEFINE_COL_REDUCE(function, op, map_op)                                             \
    PTOISA_FN void ptoisa_##function(ptoisa_core *core, const ptoisa_tile *d,                      \
                                     const ptoisa_tile *s) {                                       \
        ptoisa_col_reduce(core, PTOISA_##op, &ptoisa_loops_##map_op, d, s);                        \
    }

PTOISA_DEFINE_COL_REDUCE(tcolmax, TCOLMAX, MAX)
PTOISA_DEFINE_COL_REDUCE(tcolmin, TCOLMIN, MIN)
PTOISA_DEFINE_COL_REDUCE(tcolprod, TCOLPROD, MUL)

// Is element i of next a greater extreme than that of best? NaN is the greatest of all.
PTOISA_INLINE bool ptoisa_is_beyond(const ptoisa_piece *next, const ptoisa_piece *best, uint32_t i,
                                    ptoisa_dtype dtype, bool is_max) {
    if (ptoisa_dtype_is_float(dtype)) {
        float x = next->f32[i], y = best->f32[i];
        return y == y && (x != x || (is_max ? x > y : x < y));
    }
    // Words of one order: those of signed types with their sign turned.
    uint32_t sign = dtype < PTOISA_U8 ? UINT32_C(0x80000000) : 0;
    uint32_t x = next->u32[i] ^ sign, y = best->u32[i] ^ sign;
    return is_max ? x > y : x < y;
}

// d[0][c] = the row of the first extreme of column c, or of its first NaN.
PTOISA_FN void ptoisa_col_find(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *d,
                               const ptoisa_tile *s, const ptoisa_tile *t) {
    if (PTOISA_CHECKED) {
        if (!ptoisa_check_rows(core, op, "dst", d, PTOISA_SET(PTOISA_I32) | PTOISA_SET(PTOISA_U32),
                               0, 0) ||
            !ptoisa_check_rows(core, op, "src0", s, PTOISA_SET_MAP, 0, d->valid_cols) ||
            !ptoisa_check_scratch(core, op, t)) {
            return;
        }
        if (d->valid_rows > 1) {
            ptoisa_fault(core, op, "dst has %u valid rows, not 1", d->valid_rows);
            return;
        }
    }
    ptoisa_issue(core, op, d, s, NULL);
    if (core->is_dry || d->valid_rows == 0) {
        return;
    }
    const ptoisa_dtype dtype = (ptoisa_dtype)s->dtype;
    const size_t size = ptoisa_dtype_size(dtype);
    for (uint32_t at = 0; at < d->valid_cols; at += PTOISA_PIECE) {
        uint32_t n = ptoisa_least(d->valid_cols - at, PTOISA_PIECE);
        uint32_t *found = (uint32_t *)d->data + at;
        memset(found, 0, n * sizeof *found);
        ptoisa_piece best, next;
        for (uint32_t r = 0; r < s->valid_rows; r++) {
            const uint8_t *from = (const uint8_t *)s->data + ((size_t)r * s->cols + at) * size;
            ptoisa_widen(dtype, r == 0 ? &best : &next, from, n);
            for (uint32_t i = 0; r > 0 && i < n; i++) {
                if (ptoisa_is_beyond(&next, &best, i, dtype, op == PTOISA_TCOLARGMAX)) {
                    best.u32[i] = next.u32[i];
                    found[i] = r;
                }
            }
        }
    }
}

PTOISA_FN void ptoisa_tcolargmax(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                                 const ptoisa_tile *t) {
    ptoisa_col_find(core, PTOISA_TCOLARGMAX, d, s, t);
}

PTOISA_FN void ptoisa_tcolargmin(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                                 const ptoisa_tile *t) {
    ptoisa_col_find(core, PTOISA_TCOLARGMIN, d, s, t);
}

#endif
