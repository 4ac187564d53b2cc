// Blocks of a matrix multiplication, and the packing of panels, for x86-64.
//
// 8 rows x 32 columns of sums fill 16 of AVX-512's registers, 6 x 16 fill 12 of AVX2's: enough
// independent sums to hide the latency of fused multiply-add (4 cycles, two a cycle), while loads,
// one for each row and one for each vector of columns, stay below one and a half for two products.
//
// A box of B (Zn: 16 columns, in each 32 bytes along k) is turned by transposing 8 x 8 units of 4
// bytes, whatever its type: a unit is then 1, 2 or 4 neighbours in k of one column, and is widened.

#ifndef PTOISA_MATMUL_X86_H
#define PTOISA_MATMUL_X86_H

#include "matmul_block.h"

#if PTOISA_X86

// Where sums begin that begin at 0.
PTOISA_INLINE const float *ptoisa_mm_zeros(void) {
    static const float zeros[PTOISA_MM_COLS] = {0};
    return zeros;
}

// -- packing --------------------------------------------------------------------------------------

// Widens 32 bytes of a row to 8 units (f32) at low, or to 16, the upper 8 at high.
PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_widen(float *low, float *high, const uint8_t *from,
                                               ptoisa_dtype dtype) {
    __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)from), l = x, h = x;
    __m128i x0 = _mm256_castsi256_si128(x), x1 = _mm256_extracti128_si256(x, 1);
    if (dtype == PTOISA_F16) {
        l = _mm256_castps_si256(_mm256_cvtph_ps(x0));
        h = _mm256_castps_si256(_mm256_cvtph_ps(x1));
    } else if (dtype == PTOISA_BF16) {
        l = _mm256_slli_epi32(_mm256_cvtepu16_epi32(x0), 16);
        h = _mm256_slli_epi32(_mm256_cvtepu16_epi32(x1), 16);
    } else if (dtype == PTOISA_I8) {
        l = _mm256_cvtepi8_epi16(x0);
        h = _mm256_cvtepi8_epi16(x1);
    }
    _mm256_storeu_si256((__m256i *)(void *)low, l);
    if (dtype != PTOISA_F32) {
        _mm256_storeu_si256((__m256i *)(void *)high, h);
    }
}

PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_pack_a_of_x86(float *to, const ptoisa_tile *a,
                                                       uint32_t row, uint32_t rows, uint32_t k,
                                                       uint32_t k_count, ptoisa_dtype dtype) {
    const uint32_t size = ptoisa_dtype_size(dtype), chunk = 32 / size;
    uint64_t stride = a->layout == PTOISA_ROW_MAJOR ? (uint64_t)a->cols * size : 32;
    for (uint32_t r0 = 0; r0 < rows; r0 += 16) {
        uint32_t r_count = rows - r0 < 16 ? rows - r0 : 16;
        for (uint32_t i = 0; i < k_count; i += chunk) {
            const uint8_t *from =
                (const uint8_t *)a->data + size * ptoisa_offset(a, row + r0, k + i);
            for (uint32_t r = 0; r < r_count; r++) {
                ptoisa_mm_widen(to + r * 8, to + r * 8 + PTOISA_MM_BOX, from + r * stride, dtype);
            }
            to += dtype == PTOISA_F32 ? PTOISA_MM_BOX : 2 * PTOISA_MM_BOX;
        }
    }
}

PTOISA_AVX2 PTOISA_FN void ptoisa_mm_pack_a_x86(float *to, const ptoisa_tile *a, uint32_t row,
                                                uint32_t rows, uint32_t k, uint32_t k_count) {
    if (!ptoisa_mm_has_row_chunks(a)) {
        ptoisa_mm_pack_a_any(to, a, row, rows, k, k_count);
        return;
    }
    switch ((ptoisa_dtype)a->dtype) {
    case PTOISA_F32: ptoisa_mm_pack_a_of_x86(to, a, row, rows, k, k_count, PTOISA_F32); break;
    case PTOISA_F16: ptoisa_mm_pack_a_of_x86(to, a, row, rows, k, k_count, PTOISA_F16); break;
    case PTOISA_BF16: ptoisa_mm_pack_a_of_x86(to, a, row, rows, k, k_count, PTOISA_BF16); break;
    default: ptoisa_mm_pack_a_of_x86(to, a, row, rows, k, k_count, PTOISA_I8); break;
    }
    ptoisa_mm_clear_odd(to, a, rows, k_count);
}

// Turns 8 columns of 32 bytes into 8 vectors of one unit of each.
PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_transpose(__m256 *to, const uint8_t *from) {
    __m256 x[8], y[8];
    PTOISA_MM_UNROLL
    for (int i = 0; i < 8; i++) {
        // Units 0-3 of columns 0-3 (4-7 of them, if i > 3) below, of columns 4-7 above.
        const float *column = (const float *)(const void *)(from + i % 4 * 32 + i / 4 * 16);
        x[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(column)),
                                    _mm_loadu_ps(column + 32), 1);
    }
    PTOISA_MM_UNROLL
    for (int i = 0; i < 8; i += 4) {
        y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
        y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
        y[i + 2] = _mm256_unpacklo_ps(x[i + 2], x[i + 3]);
        y[i + 3] = _mm256_unpackhi_ps(x[i + 2], x[i + 3]);
        to[i] = _mm256_shuffle_ps(y[i], y[i + 2], 0x44);
        to[i + 1] = _mm256_shuffle_ps(y[i], y[i + 2], 0xee);
        to[i + 2] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0x44);
        to[i + 3] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0xee);
    }
}

// The low halves of 8 lanes, as f16.
PTOISA_AVX2 PTOISA_ALWAYS __m256 ptoisa_mm_halves(__m256i x) {
    __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    return _mm256_cvtph_ps(halves);
}

// Stores 8 columns of what one unit of B's box becomes: one row of a panel, or two.
PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_split(float *to, __m256 unit, ptoisa_dtype dtype) {
    __m256i x = _mm256_castps_si256(unit);
    __m256 low = unit, high = unit;
    if (dtype == PTOISA_F16) {
        low = ptoisa_mm_halves(_mm256_and_si256(x, _mm256_set1_epi32(0xffff)));
        high = ptoisa_mm_halves(_mm256_srli_epi32(x, 16));
    } else if (dtype == PTOISA_BF16) {
        low = _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
        high = _mm256_castsi256_ps(_mm256_andnot_si256(_mm256_set1_epi32(0xffff), x));
    } else if (dtype == PTOISA_I8) {
        // Bytes 0 and 1, 2 and 3 into the upper halves of 16 bits; shifted down, they keep signs.
        const __m256i at01 =
            _mm256_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1, 0, -1, 1,
                             -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13);
        const __m256i at23 =
            _mm256_setr_epi8(-1, 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1, 2, -1,
                             3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15);
        low = _mm256_castsi256_ps(_mm256_srai_epi16(_mm256_shuffle_epi8(x, at01), 8));
        high = _mm256_castsi256_ps(_mm256_srai_epi16(_mm256_shuffle_epi8(x, at23), 8));
    }
    _mm256_storeu_ps(to, low);
    if (dtype != PTOISA_F32) {
        _mm256_storeu_ps(to + PTOISA_MM_COLS, high);
    }
}

#define PTOISA_MM_SPLIT_CASE(type)                                                                 \
    PTOISA_MM_UNROLL                                                                               \
    for (uint32_t u = 0; u < 8; u++) {                                                             \
        ptoisa_mm_split(to + u * step + c, units[u], type);                                        \
    }                                                                                              \
    break;

// The type is asked for in each box, so that turning is compiled once.
PTOISA_AVX2 PTOISA_FN void ptoisa_mm_pack_zn_x86(float *to, const ptoisa_tile *b, uint32_t col,
                                                 uint32_t cols, uint32_t k, uint32_t k_count) {
    const ptoisa_dtype dtype = (ptoisa_dtype)b->dtype;
    const uint32_t size = ptoisa_dtype_size(dtype), chunk = 32 / size;
    const uint32_t step = (dtype == PTOISA_F32 ? 1 : 2) * PTOISA_MM_COLS;
    cols = (cols + 15) / 16 * 16;
    for (uint32_t i = 0; i < k_count; i += chunk) {
        const uint8_t *from = (const uint8_t *)b->data + size * ptoisa_offset(b, k + i, col);
        for (uint32_t c = 0; c < cols; c += 8) {
            __m256 units[8];
            ptoisa_mm_transpose(units, from + c * 32);
            switch (dtype) {
            case PTOISA_F32: PTOISA_MM_SPLIT_CASE(PTOISA_F32)
            case PTOISA_F16: PTOISA_MM_SPLIT_CASE(PTOISA_F16)
            case PTOISA_BF16: PTOISA_MM_SPLIT_CASE(PTOISA_BF16)
            default: PTOISA_MM_SPLIT_CASE(PTOISA_I8)
            }
        }
        to += 8 * step;
    }
}

PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_pack_rows_of_x86(float *to, const ptoisa_tile *b,
                                                          uint32_t col, uint32_t cols, uint32_t k,
                                                          uint32_t k_count, ptoisa_dtype dtype) {
    const uint32_t size = ptoisa_dtype_size(dtype), chunk = 32 / size;
    for (uint32_t i = 0; i < k_count; i++) {
        const uint8_t *from = (const uint8_t *)b->data + size * ptoisa_offset(b, k + i, col);
        uint32_t c = 0;
        for (; c < cols; c += chunk) {
            ptoisa_mm_widen(to + c, to + c + 8, from + c * size, dtype);
        }
        if (c % 16 != 0) {
            _mm256_storeu_ps(to + c, _mm256_setzero_ps());
        }
        to += PTOISA_MM_COLS;
    }
}

PTOISA_AVX2 PTOISA_FN void ptoisa_mm_pack_b_x86(float *to, const ptoisa_tile *b, uint32_t col,
                                                uint32_t cols, uint32_t k, uint32_t k_count) {
    if (ptoisa_mm_is_zn(b)) {
        ptoisa_mm_pack_zn_x86(to, b, col, cols, k, k_count);
        return;
    }
    if (b->layout == PTOISA_ROW_MAJOR && ptoisa_mm_has_row_chunks(b)) {
        switch ((ptoisa_dtype)b->dtype) {
        case PTOISA_F32:
            ptoisa_mm_pack_rows_of_x86(to, b, col, cols, k, k_count, PTOISA_F32);
            return;
        case PTOISA_F16:
            ptoisa_mm_pack_rows_of_x86(to, b, col, cols, k, k_count, PTOISA_F16);
            return;
        case PTOISA_BF16:
            ptoisa_mm_pack_rows_of_x86(to, b, col, cols, k, k_count, PTOISA_BF16);
            return;
        default: break;
        }
    }
    ptoisa_mm_pack_b_any(to, b, col, cols, k, k_count);
}

// -- AVX-512 --------------------------------------------------------------------------------------

// rows x (16 * vectors) sums. rows, vectors and is_int are constants where this is inlined.
PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_mm_sum_avx512(const ptoisa_mm_block *t, uint32_t row,
                                                      const uint32_t rows, const uint32_t vectors,
                                                      const bool is_int) {
    __m512 sum[8][2];
    const uint32_t last = t->cols - 16 * (vectors - 1);
    const __mmask16 mask[2] = {(__mmask16)(vectors == 2 ? 0xffffu : (1u << last) - 1),
                               (__mmask16)((1u << last) - 1)};
    const uint32_t start_row = t->start ? PTOISA_MM_COLS : 0;
    const float *start = t->start ? t->start + row * PTOISA_MM_COLS : ptoisa_mm_zeros();
    PTOISA_MM_UNROLL
    for (uint32_t i = 0; i < rows; i++) {
        PTOISA_MM_UNROLL
        for (uint32_t v = 0; v < vectors; v++) {
            sum[i][v] = _mm512_loadu_ps(start + i * start_row + 16 * v);
        }
    }
    const float *b = t->b;
    for (uint32_t k = 0; k < t->k; k += 8) {
        const float *a = t->a + k / 8 * t->a_step + row * 8;
        const uint32_t count = t->k - k < 8 ? t->k - k : 8;
        for (uint32_t j = 0; j < count; j++, b += PTOISA_MM_COLS) {
            __m512 y[2];
            PTOISA_MM_UNROLL
            for (uint32_t v = 0; v < vectors; v++) {
                y[v] = _mm512_loadu_ps(b + 16 * v);
            }
            PTOISA_MM_UNROLL
            for (uint32_t i = 0; i < rows; i++) {
                __m512 x = _mm512_set1_ps(a[i * 8 + j]);
                PTOISA_MM_UNROLL
                for (uint32_t v = 0; v < vectors; v++) {
                    if (is_int) {
                        __m512i product =
                            _mm512_madd_epi16(_mm512_castps_si512(x), _mm512_castps_si512(y[v]));
                        sum[i][v] = _mm512_castsi512_ps(
                            _mm512_add_epi32(_mm512_castps_si512(sum[i][v]), product));
                    } else {
                        sum[i][v] = _mm512_fmadd_ps(x, y[v], sum[i][v]);
                    }
                }
            }
        }
    }
    if (t->add) {
        const uint64_t add_row = t->add_row, add_cols = t->add_cols;
        const float *add = t->add + row * add_row;
        PTOISA_MM_UNROLL
        for (uint32_t i = 0; i < rows; i++) {
            PTOISA_MM_UNROLL
            for (uint32_t v = 0; v < vectors; v++) {
                __m512 x = _mm512_maskz_loadu_ps(mask[v], add + i * add_row + v * add_cols);
                sum[i][v] = is_int ? _mm512_castsi512_ps(_mm512_add_epi32(
                                         _mm512_castps_si512(sum[i][v]), _mm512_castps_si512(x)))
                                   : _mm512_add_ps(sum[i][v], x);
            }
        }
    }
    const uint64_t out_row = t->out_row, out_cols = t->out_cols;
    float *out = t->out + row * out_row;
    PTOISA_MM_UNROLL
    for (uint32_t i = 0; i < rows; i++) {
        PTOISA_MM_UNROLL
        for (uint32_t v = 0; v < vectors; v++) {
            _mm512_mask_storeu_ps(out + i * out_row + v * out_cols, mask[v], sum[i][v]);
        }
    }
}

#define PTOISA_MM_ROWS_AVX512(count, vectors, is_int)                                              \
    for (; row + count <= t->rows; row += count) {                                                 \
        ptoisa_mm_sum_avx512(t, row, count, vectors, is_int);                                      \
    }
#define PTOISA_MM_BLOCK_AVX512(name, vectors, is_int)                                              \
    PTOISA_AVX512 PTOISA_FN void name(const ptoisa_mm_block *t) {                                  \
        uint32_t row = 0;                                                                          \
        PTOISA_MM_ROWS_AVX512(8, vectors, is_int)                                                  \
        PTOISA_MM_ROWS_AVX512(4, vectors, is_int)                                                  \
        PTOISA_MM_ROWS_AVX512(2, vectors, is_int)                                                  \
        PTOISA_MM_ROWS_AVX512(1, vectors, is_int)                                                  \
    }
PTOISA_MM_BLOCK_AVX512(ptoisa_mm_f32_16_avx512, 1, false)
PTOISA_MM_BLOCK_AVX512(ptoisa_mm_f32_32_avx512, 2, false)
PTOISA_MM_BLOCK_AVX512(ptoisa_mm_int_16_avx512, 1, true)
PTOISA_MM_BLOCK_AVX512(ptoisa_mm_int_32_avx512, 2, true)
#undef PTOISA_MM_BLOCK_AVX512
#undef PTOISA_MM_ROWS_AVX512

PTOISA_FN void ptoisa_mm_block_avx512(const ptoisa_mm_block *t, bool is_int) {
    if (is_int) {
        t->cols > 16 ? ptoisa_mm_int_32_avx512(t) : ptoisa_mm_int_16_avx512(t);
    } else {
        t->cols > 16 ? ptoisa_mm_f32_32_avx512(t) : ptoisa_mm_f32_16_avx512(t);
    }
}

// -- AVX2 -----------------------------------------------------------------------------------------

PTOISA_AVX2 PTOISA_ALWAYS __m256 ptoisa_mm_add_avx2(__m256 x, __m256 y, const bool is_int) {
    return is_int ? _mm256_castsi256_ps(
                        _mm256_add_epi32(_mm256_castps_si256(x), _mm256_castps_si256(y)))
                  : _mm256_add_ps(x, y);
}

// Adds and stores rows x 16 sums where columns are missing. Masked stores are slow on some
// processors: only there.
PTOISA_AVX2 PTOISA_FN void ptoisa_mm_end_avx2(const ptoisa_mm_block *t, uint32_t row, uint32_t half,
                                              uint32_t rows, bool is_int, float sums[][16]) {
    const __m256i left = _mm256_set1_epi32((int)(t->cols - 16 * half));
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (uint32_t i = 0; i < rows; i++) {
        for (uint32_t v = 0; v < 2; v++) {
            const __m256i at = _mm256_add_epi32(lane, _mm256_set1_epi32((int)(8 * v)));
            const __m256i mask = _mm256_cmpgt_epi32(left, at);
            __m256 sum = _mm256_loadu_ps(sums[i] + 8 * v);
            if (t->add) {
                const float *add = t->add + (row + i) * t->add_row + half * t->add_cols + 8 * v;
                sum = ptoisa_mm_add_avx2(sum, _mm256_maskload_ps(add, mask), is_int);
            }
            _mm256_maskstore_ps(t->out + (row + i) * t->out_row + half * t->out_cols + 8 * v, mask,
                                sum);
        }
    }
}

// rows x 16 sums, of columns from col on. rows and is_int are constants where this is inlined.
PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_sum_avx2(const ptoisa_mm_block *t, uint32_t row,
                                                  uint32_t half, const uint32_t rows,
                                                  const bool is_int) {
    __m256 sum[6][2];
    const uint32_t start_row = t->start ? PTOISA_MM_COLS : 0;
    const float *start = t->start ? t->start + row * PTOISA_MM_COLS + 16 * half : ptoisa_mm_zeros();
    PTOISA_MM_UNROLL
    for (uint32_t i = 0; i < rows; i++) {
        PTOISA_MM_UNROLL
        for (uint32_t v = 0; v < 2; v++) {
            sum[i][v] = _mm256_loadu_ps(start + i * start_row + 8 * v);
        }
    }
    const float *b = t->b + 16 * half;
    for (uint32_t k = 0; k < t->k; k += 8) {
        const float *a = t->a + k / 8 * t->a_step + row * 8;
        const uint32_t count = t->k - k < 8 ? t->k - k : 8;
        for (uint32_t j = 0; j < count; j++, b += PTOISA_MM_COLS) {
            __m256 y[2] = {_mm256_loadu_ps(b), _mm256_loadu_ps(b + 8)};
            PTOISA_MM_UNROLL
            for (uint32_t i = 0; i < rows; i++) {
                __m256 x = _mm256_broadcast_ss(a + i * 8 + j);
                PTOISA_MM_UNROLL
                for (uint32_t v = 0; v < 2; v++) {
                    if (is_int) {
                        __m256i product =
                            _mm256_madd_epi16(_mm256_castps_si256(x), _mm256_castps_si256(y[v]));
                        sum[i][v] = _mm256_castsi256_ps(
                            _mm256_add_epi32(_mm256_castps_si256(sum[i][v]), product));
                    } else {
                        sum[i][v] = _mm256_fmadd_ps(x, y[v], sum[i][v]);
                    }
                }
            }
        }
    }
    if (t->cols - 16 * half < 16) {
        float sums[6][16];
        PTOISA_MM_UNROLL
        for (uint32_t i = 0; i < rows; i++) {
            _mm256_storeu_ps(sums[i], sum[i][0]);
            _mm256_storeu_ps(sums[i] + 8, sum[i][1]);
        }
        ptoisa_mm_end_avx2(t, row, half, rows, is_int, sums);
        return;
    }
    const uint64_t add_row = t->add_row, out_row = t->out_row;
    if (t->add) {
        const float *add = t->add + row * add_row + half * t->add_cols;
        PTOISA_MM_UNROLL
        for (uint32_t i = 0; i < rows; i++) {
            PTOISA_MM_UNROLL
            for (uint32_t v = 0; v < 2; v++) {
                sum[i][v] = ptoisa_mm_add_avx2(sum[i][v],
                                               _mm256_loadu_ps(add + i * add_row + 8 * v), is_int);
            }
        }
    }
    float *out = t->out + row * out_row + half * t->out_cols;
    PTOISA_MM_UNROLL
    for (uint32_t i = 0; i < rows; i++) {
        PTOISA_MM_UNROLL
        for (uint32_t v = 0; v < 2; v++) {
            _mm256_storeu_ps(out + i * out_row + 8 * v, sum[i][v]);
        }
    }
}

#define PTOISA_MM_ROWS_AVX2(count, is_int)                                                         \
    for (; row + count <= t->rows; row += count) {                                                 \
        ptoisa_mm_sum_avx2(t, row, half, count, is_int);                                           \
    }
#define PTOISA_MM_BLOCK_AVX2(name, is_int)                                                         \
    PTOISA_AVX2 PTOISA_FN void name(const ptoisa_mm_block *t) {                                    \
        for (uint32_t half = 0; half * 16 < t->cols; half++) {                                     \
            uint32_t row = 0;                                                                      \
            PTOISA_MM_ROWS_AVX2(6, is_int)                                                         \
            PTOISA_MM_ROWS_AVX2(4, is_int)                                                         \
            PTOISA_MM_ROWS_AVX2(2, is_int)                                                         \
            PTOISA_MM_ROWS_AVX2(1, is_int)                                                         \
        }                                                                                          \
    }
PTOISA_MM_BLOCK_AVX2(ptoisa_mm_f32_avx2, false)
PTOISA_MM_BLOCK_AVX2(ptoisa_mm_int_avx2, true)
#undef PTOISA_MM_BLOCK_AVX2
#undef PTOISA_MM_ROWS_AVX2

PTOISA_FN void ptoisa_mm_block_avx2(const ptoisa_mm_block *t, bool is_int) {
    is_int ? ptoisa_mm_int_avx2(t) : ptoisa_mm_f32_avx2(t);
}

PTOISA_INLINE ptoisa_mm_code ptoisa_mm_avx512(void) {
    ptoisa_mm_code code = {ptoisa_mm_pack_a_x86, ptoisa_mm_pack_b_x86, ptoisa_mm_block_avx512};
    return code;
}

PTOISA_INLINE ptoisa_mm_code ptoisa_mm_avx2(void) {
    ptoisa_mm_code code = {ptoisa_mm_pack_a_x86, ptoisa_mm_pack_b_x86, ptoisa_mm_block_avx2};
    return code;
}

#endif  // PTOISA_X86

#endif
