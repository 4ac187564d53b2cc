// Blocks of a matrix multiplication, and the packing of panels, for x86-64.
//
// 8 rows x 32 columns of sums fill 16 of AVX-512's registers, 6 x 16 fill 12 of AVX2's: enough
// independent sums to hide the latency of fused multiply-add (4 cycles, two a cycle), while loads,
// one for each row and one for each vector of columns, stay below one and a half for two products.
// Sums of bytes are done after a quarter of the steps. There 16 rows are 6, 6 and 4 in code without
// loops over rows: branches that are predicted and stores of 12 vectors instead of 16 at once take
// 3 % of the time instead of 6.
//
// A box of B (Zn: 16 columns, in each 32 bytes along k) is turned by transposing 8 x 8 words of 4
// bytes, whatever its type: a word is then 1, 2 or 4 neighbours in k of one column, and is widened.

#ifndef PTOISA_MATMUL_X86_H
#define PTOISA_MATMUL_X86_H

#include "matmul_block.h"

#if PTOISA_X86

// -- packing --------------------------------------------------------------------------------------

// Puts the first bf16 of each word into its upper half.
PTOISA_AVX2 PTOISA_ALWAYS __m256i ptoisa_mm_turn_words(__m256i x) {
    return _mm256_shuffle_epi8(x, _mm256_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12,
                                                   13, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15,
                                                   12, 13));
}

// Widens 32 bytes of a row to 8 units (words) at low, or to 16, the upper 8 at high.
PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_widen(float *low, float *high, const uint8_t *from,
                                               ptoisa_mm_kind kind) {
    const __m128i x0 = _mm_loadu_si128((const __m128i *)(const void *)from);
    const __m128i x1 = _mm_loadu_si128((const __m128i *)(const void *)(from + 16));
    __m256i l = _mm256_loadu_si256((const __m256i *)(const void *)from), h = l;
    if (kind == PTOISA_MM_F16) {
        l = _mm256_castps_si256(_mm256_cvtph_ps(x0));
        h = _mm256_castps_si256(_mm256_cvtph_ps(x1));
    } else if (kind == PTOISA_MM_BF16) {
        l = _mm256_slli_epi32(_mm256_cvtepu16_epi32(x0), 16);
        h = _mm256_slli_epi32(_mm256_cvtepu16_epi32(x1), 16);
    } else if (kind == PTOISA_MM_PAIRS) {
        l = _mm256_cvtepi8_epi16(x0);
        h = _mm256_cvtepi8_epi16(x1);
    } else if (kind == PTOISA_MM_DOTS) {
        l = ptoisa_mm_turn_words(l);
    }
    _mm256_storeu_si256((__m256i *)(void *)low, l);
    if (!ptoisa_mm_is_whole(kind)) {
        _mm256_storeu_si256((__m256i *)(void *)high, h);
    }
}

PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_pack_a_of_x86(float *to, const ptoisa_tile *a,
                                                       uint32_t row, uint32_t rows, uint32_t k,
                                                       uint32_t k_count, ptoisa_mm_kind kind) {
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)a->dtype), chunk = 32 / size;
    const bool is_major = a->layout == PTOISA_ROW_MAJOR;
    // Bytes to the next row, and to the next 32 along k.
    const size_t stride = is_major ? (size_t)a->cols * size : 32;
    const size_t step = is_major ? 32 : a->layout == PTOISA_ZZ ? 16 * 32 : (size_t)a->rows * 32;
    const uint8_t *from = (const uint8_t *)a->data + size * ptoisa_offset(a, row, k);
    for (uint32_t i = 0; i < k_count; i += chunk, from += step) {
        for (uint32_t r = 0; r < rows; r++) {
            ptoisa_mm_widen(to + r * 8, to + r * 8 + PTOISA_MM_BOX, from + r * stride, kind);
        }
        to += ptoisa_mm_is_whole(kind) ? PTOISA_MM_BOX : 2 * PTOISA_MM_BOX;
    }
}

PTOISA_AVX2 PTOISA_FN void ptoisa_mm_pack_a_x86(float *to, const ptoisa_tile *a,
                                                ptoisa_mm_kind kind, uint32_t row, uint32_t rows,
                                                uint32_t k, uint32_t k_count) {
    if (!ptoisa_mm_has_row_chunks(a)) {
        ptoisa_mm_pack_a_any(to, a, kind, row, rows, k, k_count);
        return;
    }
    PTOISA_MM_OF_KIND(ptoisa_mm_pack_a_of_x86, to, a, row, rows, k, k_count)
}

// Turns 16 bytes of 8 columns, which are stride bytes apart, into 4 vectors of one word of each.
PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_transpose(__m256 *to, const uint8_t *from,
                                                   const uint32_t stride) {
    __m256 x[4];
    PTOISA_MM_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const float *column = (const float *)(const void *)(from + i * stride);
        x[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(column)),
                                    _mm_loadu_ps(column + stride), 1);  // of column i + 4
    }
    const __m256 low01 = _mm256_unpacklo_ps(x[0], x[1]), high01 = _mm256_unpackhi_ps(x[0], x[1]);
    const __m256 low23 = _mm256_unpacklo_ps(x[2], x[3]), high23 = _mm256_unpackhi_ps(x[2], x[3]);
    to[0] = _mm256_shuffle_ps(low01, low23, 0x44);
    to[1] = _mm256_shuffle_ps(low01, low23, 0xee);
    to[2] = _mm256_shuffle_ps(high01, high23, 0x44);
    to[3] = _mm256_shuffle_ps(high01, high23, 0xee);
}

// Stores 8 columns of what one word of B's box becomes: one row of a panel, or two.
PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_split(float *to, __m256 word, ptoisa_mm_kind kind) {
    __m256i x = _mm256_castps_si256(word), low = x, high = x;
    if (kind == PTOISA_MM_BF16) {
        low = _mm256_slli_epi32(x, 16);
        high = _mm256_andnot_si256(_mm256_set1_epi32(0xffff), x);
    } else if (kind == PTOISA_MM_PAIRS) {
        // Bytes 0 and 1, 2 and 3 into the upper halves of 16 bits; shifted down, they keep signs.
        const __m256i at01 =
            _mm256_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1, 0, -1, 1,
                             -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13);
        const __m256i at23 =
            _mm256_setr_epi8(-1, 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1, 2, -1,
                             3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15);
        low = _mm256_srai_epi16(_mm256_shuffle_epi8(x, at01), 8);
        high = _mm256_srai_epi16(_mm256_shuffle_epi8(x, at23), 8);
    } else if (kind == PTOISA_MM_QUADS) {
        low = _mm256_xor_si256(x, _mm256_set1_epi8(-128));
    } else if (kind == PTOISA_MM_DOTS) {
        low = ptoisa_mm_turn_words(x);
    }
    _mm256_storeu_si256((__m256i *)(void *)to, low);
    if (!ptoisa_mm_is_whole(kind)) {
        _mm256_storeu_si256((__m256i *)(void *)(to + PTOISA_MM_COLS), high);
    }
}

// The same of f16 and 16 columns, of which each vector has every other: their lower halves, and
// their upper ones, are put together before they are widened.
PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_split_f16(float *to, __m256 even, __m256 odd) {
    const __m256i x = _mm256_castps_si256(even), y = _mm256_castps_si256(odd);
    const __m256i rows[2] = {_mm256_blend_epi16(x, _mm256_slli_epi32(y, 16), 0xaa),
                             _mm256_blend_epi16(_mm256_srli_epi32(x, 16), y, 0xaa)};
    PTOISA_MM_UNROLL
    for (int i = 0; i < 2; i++) {
        float *row = to + i * PTOISA_MM_COLS;
        _mm256_storeu_ps(row, _mm256_cvtph_ps(_mm256_castsi256_si128(rows[i])));
        _mm256_storeu_ps(row + 8, _mm256_cvtph_ps(_mm256_extracti128_si256(rows[i], 1)));
    }
}

// A box of B: 16 columns of 32 bytes become 8 rows of a panel, or 16. Of f16, vectors take every
// other column.
PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_turn(float *to, const uint8_t *from, ptoisa_mm_kind kind) {
    const bool is_f16 = kind == PTOISA_MM_F16;
    const uint32_t step = (ptoisa_mm_is_whole(kind) ? 1 : 2) * PTOISA_MM_COLS;
    for (uint32_t first = 0; first < 8; first += 4, from += 16, to += 4 * step) {
        __m256 left[4], right[4];
        ptoisa_mm_transpose(left, from, is_f16 ? 64 : 32);
        ptoisa_mm_transpose(right, from + (is_f16 ? 32 : 8 * 32), is_f16 ? 64 : 32);
        PTOISA_MM_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            if (is_f16) {
                ptoisa_mm_split_f16(to + i * step, left[i], right[i]);
            } else {
                ptoisa_mm_split(to + i * step, left[i], kind);
                ptoisa_mm_split(to + i * step + 8, right[i], kind);
            }
        }
    }
}

PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_pack_zn_of_x86(float *to, const ptoisa_tile *b,
                                                        uint32_t col, uint32_t cols, uint32_t k,
                                                        uint32_t k_count, ptoisa_mm_kind kind) {
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)b->dtype), chunk = 32 / size;
    const uint8_t *from = (const uint8_t *)b->data + size * ptoisa_offset(b, k, col);
    for (uint32_t i = 0; i < k_count; i += chunk, from += (size_t)b->cols * 32) {
        ptoisa_mm_turn(to, from, kind);
        if (cols > 16) {
            ptoisa_mm_turn(to + 16, from + 16 * 32, kind);
        }
        to += (ptoisa_mm_is_whole(kind) ? 8 : 16) * PTOISA_MM_COLS;
    }
}

PTOISA_AVX2 PTOISA_FN void ptoisa_mm_pack_zn_x86(float *to, const ptoisa_tile *b,
                                                 ptoisa_mm_kind kind, uint32_t col, uint32_t cols,
                                                 uint32_t k, uint32_t k_count){
    PTOISA_MM_OF_KIND(ptoisa_mm_pack_zn_of_x86, to, b, col, cols, k, k_count)}

PTOISA_AVX2 PTOISA_ALWAYS
    void ptoisa_mm_pack_rows_of_x86(float *to, const ptoisa_tile *b, uint32_t col, uint32_t cols,
                                    uint32_t k, uint32_t k_count, ptoisa_mm_kind kind) {
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)b->dtype), chunk = 32 / size;
    for (uint32_t i = 0; i < k_count; i++) {
        const uint8_t *from = (const uint8_t *)b->data + size * ptoisa_offset(b, k + i, col);
        uint32_t c = 0;
        for (; c < cols; c += chunk) {
            ptoisa_mm_widen(to + c, to + c + 8, from + c * size, kind);
        }
        if (c % 16 != 0) {
            _mm256_storeu_ps(to + c, _mm256_setzero_ps());
        }
        to += PTOISA_MM_COLS;
    }
}

PTOISA_AVX2 PTOISA_FN void ptoisa_mm_pack_b_x86(float *to, const ptoisa_tile *b,
                                                ptoisa_mm_kind kind, uint32_t col, uint32_t cols,
                                                uint32_t k, uint32_t k_count) {
    if (ptoisa_mm_is_zn(b)) {
        ptoisa_mm_pack_zn_x86(to, b, kind, col, cols, k, k_count);
    } else if (ptoisa_mm_is_int(kind) || b->layout != PTOISA_ROW_MAJOR ||
               !ptoisa_mm_has_row_chunks(b)) {
        ptoisa_mm_pack_b_any(to, b, kind, col, cols, k, k_count);
    } else {
        PTOISA_MM_OF_KIND(ptoisa_mm_pack_rows_of_x86, to, b, col, cols, k, k_count)
    }
}

// -- AVX-512 --------------------------------------------------------------------------------------

// Adds the products of four bytes of x, signed, and of y, unsigned, without saturation. Not by the
// intrinsic, for which all kinds of sums would have to be compiled for processors that have it. With
// -masm=intel the order of operands is the second one.
#define PTOISA_MM_QUADS_AVX512(sum, x, y)                                                          \
    __asm__("vpdpbusd {%1, %2, %0|%0, %2, %1}" : "+v"(sum) : "v"(x), "v"(y))

// Adds the products of two bf16 of x and y, those of upper halves first, rounding after each.
PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_mm_twice_avx512(__m512 *sum, __m512 x, __m512 y) {
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    const __m512i a = _mm512_castps_si512(x), b = _mm512_castps_si512(y);
    *sum = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(a, upper)),
                           _mm512_castsi512_ps(_mm512_and_si512(b, upper)), *sum);
    *sum =
        _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_maskz_slli_epi32(PTOISA_ALL_16, a, 16)),
                        _mm512_castsi512_ps(_mm512_maskz_slli_epi32(PTOISA_ALL_16, b, 16)), *sum);
}

// The same by one instruction.
#if PTOISA_KNOWS_BF16
#define PTOISA_MM_DOTS_AVX512(sum, x, y)                                                           \
    __asm__("vdpbf16ps {%1, %2, %0|%0, %2, %1}" : "+v"(sum) : "v"(x), "v"(y))
#else
#define PTOISA_MM_DOTS_AVX512(sum, x, y) ptoisa_mm_twice_avx512(&(sum), x, y)
#endif

// sum += x * y, in 16 lanes.
PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_mm_step_avx512(__m512 *sum, __m512 x, __m512 y,
                                                       const ptoisa_mm_kind kind) {
    if (kind == PTOISA_MM_QUADS) {
        PTOISA_MM_QUADS_AVX512(*sum, x, y);
    } else if (kind == PTOISA_MM_DOTS) {
        PTOISA_MM_DOTS_AVX512(*sum, x, y);
    } else if (kind == PTOISA_MM_TWICE) {
        ptoisa_mm_twice_avx512(sum, x, y);
    } else if (kind == PTOISA_MM_PAIRS) {
        const __m512i products = _mm512_madd_epi16(_mm512_castps_si512(x), _mm512_castps_si512(y));
        *sum = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(*sum), products));
    } else {
        *sum = _mm512_fmadd_ps(x, y, *sum);
    }
}

PTOISA_AVX512 PTOISA_ALWAYS __m512 ptoisa_mm_add_avx512(__m512 x, __m512 y, const bool is_int) {
    return is_int ? _mm512_castsi512_ps(
                        _mm512_add_epi32(_mm512_castps_si512(x), _mm512_castps_si512(y)))
                  : _mm512_add_ps(x, y);
}

// rows x (16 * vectors) sums. rows, vectors and kind are constants where this is inlined.
PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_mm_sum_avx512(const ptoisa_mm_block *t, uint32_t row,
                                                      const uint32_t rows, const uint32_t vectors,
                                                      const ptoisa_mm_kind kind) {
    const bool is_int = ptoisa_mm_is_int(kind);
    __m512 sum[8][2];
    const uint32_t last = t->cols - 16 * (vectors - 1);
    const __mmask16 mask[2] = {(__mmask16)(vectors == 2 ? 0xffffu : (1u << last) - 1),
                               (__mmask16)((1u << last) - 1)};
    PTOISA_MM_UNROLL
    for (uint32_t i = 0; i < rows; i++) {
        const bool has_base = kind == PTOISA_MM_QUADS;
        const __m512i base = _mm512_set1_epi32(has_base ? (int)t->base[row + i] : 0);
        sum[i][0] = sum[i][1] = _mm512_castsi512_ps(base);
    }
    if (t->start) {
        const float *start = t->start + row * PTOISA_MM_COLS;
        PTOISA_MM_UNROLL
        for (uint32_t i = 0; i < rows; i++) {
            PTOISA_MM_UNROLL
            for (uint32_t v = 0; v < vectors; v++) {
                const __m512 x = _mm512_loadu_ps(start + i * PTOISA_MM_COLS + 16 * v);
                sum[i][v] = is_int ? ptoisa_mm_add_avx512(sum[i][v], x, true) : x;
            }
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
                    ptoisa_mm_step_avx512(&sum[i][v], x, y[v], kind);
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
                sum[i][v] = ptoisa_mm_add_avx512(sum[i][v], x, is_int);
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

#define PTOISA_MM_ROWS_AVX512(count, vectors, kind)                                                \
    for (; row + count <= t->rows; row += count) {                                                 \
        ptoisa_mm_sum_avx512(t, row, count, vectors, kind);                                        \
    }
#define PTOISA_MM_BLOCK_AVX512(name, vectors, kind)                                                \
    PTOISA_AVX512 PTOISA_FN void name(const ptoisa_mm_block *t) {                                  \
        uint32_t row = 0;                                                                          \
        PTOISA_MM_ROWS_AVX512(8, vectors, kind)                                                    \
        PTOISA_MM_ROWS_AVX512(4, vectors, kind)                                                    \
        PTOISA_MM_ROWS_AVX512(2, vectors, kind)                                                    \
        PTOISA_MM_ROWS_AVX512(1, vectors, kind)                                                    \
    }
PTOISA_MM_BLOCK_AVX512(ptoisa_mm_f32_16_avx512, 1, PTOISA_MM_F32)
PTOISA_MM_BLOCK_AVX512(ptoisa_mm_f32_32_avx512, 2, PTOISA_MM_F32)
PTOISA_MM_BLOCK_AVX512(ptoisa_mm_pairs_16_avx512, 1, PTOISA_MM_PAIRS)
PTOISA_MM_BLOCK_AVX512(ptoisa_mm_pairs_32_avx512, 2, PTOISA_MM_PAIRS)
PTOISA_MM_BLOCK_AVX512(ptoisa_mm_quads_16_avx512, 1, PTOISA_MM_QUADS)
PTOISA_MM_BLOCK_AVX512(ptoisa_mm_quads_32_avx512, 2, PTOISA_MM_QUADS)
#undef PTOISA_MM_BLOCK_AVX512
#undef PTOISA_MM_ROWS_AVX512

// Whole blocks of bytes.
PTOISA_AVX512 PTOISA_FN void ptoisa_mm_quads_whole_avx512(const ptoisa_mm_block *t) {
    ptoisa_mm_sum_avx512(t, 0, 6, 2, PTOISA_MM_QUADS);
    ptoisa_mm_sum_avx512(t, 6, 6, 2, PTOISA_MM_QUADS);
    ptoisa_mm_sum_avx512(t, 12, 4, 2, PTOISA_MM_QUADS);
}

// Blocks of bf16, which are whole.
PTOISA_AVX512 PTOISA_FN void ptoisa_mm_dots_avx512(const ptoisa_mm_block *t) {
    for (uint32_t row = 0; row < PTOISA_MM_ROWS; row += 8) {
        ptoisa_mm_sum_avx512(t, row, 8, 2, PTOISA_MM_DOTS);
    }
}

PTOISA_AVX512 PTOISA_FN void ptoisa_mm_dots_twice_avx512(const ptoisa_mm_block *t) {
    for (uint32_t row = 0; row < PTOISA_MM_ROWS; row += 8) {
        ptoisa_mm_sum_avx512(t, row, 8, 2, PTOISA_MM_TWICE);
    }
}

PTOISA_FN void ptoisa_mm_block_avx512(const ptoisa_mm_block *t, ptoisa_mm_kind kind) {
    const bool is_wide = t->cols > 16;
    if (kind == PTOISA_MM_DOTS || kind == PTOISA_MM_TWICE) {
        kind == PTOISA_MM_DOTS ? ptoisa_mm_dots_avx512(t) : ptoisa_mm_dots_twice_avx512(t);
        return;
    }
    if (kind == PTOISA_MM_QUADS && is_wide && t->rows == PTOISA_MM_ROWS) {
        ptoisa_mm_quads_whole_avx512(t);
    } else if (kind == PTOISA_MM_QUADS) {
        is_wide ? ptoisa_mm_quads_32_avx512(t) : ptoisa_mm_quads_16_avx512(t);
    } else if (kind == PTOISA_MM_PAIRS) {
        is_wide ? ptoisa_mm_pairs_32_avx512(t) : ptoisa_mm_pairs_16_avx512(t);
    } else {
        is_wide ? ptoisa_mm_f32_32_avx512(t) : ptoisa_mm_f32_16_avx512(t);
    }
}

// -128 times the sums of 16 rows of bytes. Of each row 8 lanes are summed, as products with 128
// where there are elements and with 0 beyond them; the lanes are then added by turning them.
PTOISA_AVX512 PTOISA_FN void ptoisa_mm_base_vnni(uint32_t *base, const float *a, uint64_t a_step,
                                                 uint32_t k_count) {
    __m512i sum[8];
    PTOISA_MM_UNROLL
    for (int i = 0; i < 8; i++) {
        sum[i] = _mm512_setzero_si512();  // of rows 2 i and 2 i + 1
    }
    for (uint32_t k = 0; k < k_count; k += 32, a += a_step) {
        const uint32_t left = k_count - k < 32 ? k_count - k : 32;
        const __mmask32 mask = (__mmask32)(UINT32_MAX >> (32 - left));
        const __m512i weight = _mm512_maskz_broadcast_i64x4(
            PTOISA_ALL_8, _mm256_maskz_mov_epi8(mask, _mm256_set1_epi8(-128)));
        PTOISA_MM_UNROLL
        for (int i = 0; i < 8; i++) {
            const __m512i bytes = _mm512_loadu_si512(a + 16 * i);
            PTOISA_MM_QUADS_AVX512(sum[i], bytes, weight);
        }
    }
    PTOISA_MM_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m512i x = sum[2 * i], y = sum[2 * i + 1];
        sum[i] = _mm512_add_epi32(_mm512_maskz_unpacklo_epi32(PTOISA_ALL_16, x, y),
                                  _mm512_maskz_unpackhi_epi32(PTOISA_ALL_16, x, y));
    }
    PTOISA_MM_UNROLL
    for (int i = 0; i < 2; i++) {
        const __m512i x = sum[2 * i], y = sum[2 * i + 1];
        sum[i] = _mm512_add_epi32(_mm512_maskz_unpacklo_epi64(PTOISA_ALL_8, x, y),
                                  _mm512_maskz_unpackhi_epi64(PTOISA_ALL_8, x, y));
    }
    const __m512i all =
        _mm512_add_epi32(_mm512_maskz_shuffle_i32x4(PTOISA_ALL_16, sum[0], sum[1], 0x88),
                         _mm512_maskz_shuffle_i32x4(PTOISA_ALL_16, sum[0], sum[1], 0xdd));
    const __m512i order = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    _mm512_storeu_si512(
        base, _mm512_maskz_permutexvar_epi32(PTOISA_ALL_16, order,
                                             _mm512_sub_epi32(_mm512_setzero_si512(), all)));
}

// The span of a panel of bf16, of whole boxes.
PTOISA_AVX512 PTOISA_FN ptoisa_mm_span ptoisa_mm_span_avx512(const float *panel, uint32_t units) {
    const __m512i magnitude = _mm512_set1_epi16(0x7fff), one = _mm512_set1_epi16(1);
    __m512i least = _mm512_set1_epi16(-1), greatest = _mm512_setzero_si512();
    for (uint32_t i = 0; i < units; i += 16) {
        const __m512i x = _mm512_and_si512(_mm512_loadu_si512(panel + i), magnitude);
        least = _mm512_min_epu16(least, _mm512_sub_epi16(x, one));  // 0 becomes the greatest
        greatest = _mm512_max_epu16(greatest, x);
    }
    const __m512i inverse = _mm512_xor_si512(greatest, _mm512_set1_epi16(-1));
    const __m256i low = _mm256_min_epu16(_mm512_maskz_extracti64x4_epi64(PTOISA_ALL_8, least, 0),
                                         _mm512_maskz_extracti64x4_epi64(PTOISA_ALL_8, least, 1));
    const __m256i high =
        _mm256_min_epu16(_mm512_maskz_extracti64x4_epi64(PTOISA_ALL_8, inverse, 0),
                         _mm512_maskz_extracti64x4_epi64(PTOISA_ALL_8, inverse, 1));
    const __m128i lows =
        _mm_min_epu16(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    const __m128i highs =
        _mm_min_epu16(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
    const ptoisa_mm_span span = {((uint32_t)_mm_cvtsi128_si32(_mm_minpos_epu16(lows)) & 0xffff) + 1,
                                 ((uint32_t)_mm_cvtsi128_si32(_mm_minpos_epu16(highs)) & 0xffff) ^
                                     0xffff};
    return span;
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
    PTOISA_MM_UNROLL
    for (uint32_t i = 0; i < rows; i++) {
        sum[i][0] = sum[i][1] = _mm256_setzero_ps();
    }
    if (t->start) {
        const float *start = t->start + row * PTOISA_MM_COLS + 16 * half;
        PTOISA_MM_UNROLL
        for (uint32_t i = 0; i < rows; i++) {
            sum[i][0] = _mm256_loadu_ps(start + i * PTOISA_MM_COLS);
            sum[i][1] = _mm256_loadu_ps(start + i * PTOISA_MM_COLS + 8);
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

PTOISA_FN void ptoisa_mm_block_avx2(const ptoisa_mm_block *t, ptoisa_mm_kind kind) {
    ptoisa_mm_is_int(kind) ? ptoisa_mm_int_avx2(t) : ptoisa_mm_f32_avx2(t);
}

PTOISA_INLINE ptoisa_mm_code ptoisa_mm_bf16(void) {
    ptoisa_mm_code code = {ptoisa_mm_pack_a_x86, ptoisa_mm_pack_b_x86, ptoisa_mm_block_avx512,
                           ptoisa_mm_base_vnni, ptoisa_mm_span_avx512};
    return code;
}

PTOISA_INLINE ptoisa_mm_code ptoisa_mm_vnni(void) {
    ptoisa_mm_code code = {ptoisa_mm_pack_a_x86, ptoisa_mm_pack_b_x86, ptoisa_mm_block_avx512,
                           ptoisa_mm_base_vnni, NULL};
    return code;
}

PTOISA_INLINE ptoisa_mm_code ptoisa_mm_avx512(void) {
    ptoisa_mm_code code = {ptoisa_mm_pack_a_x86, ptoisa_mm_pack_b_x86, ptoisa_mm_block_avx512, NULL,
                           NULL};
    return code;
}

PTOISA_INLINE ptoisa_mm_code ptoisa_mm_avx2(void) {
    ptoisa_mm_code code = {ptoisa_mm_pack_a_x86, ptoisa_mm_pack_b_x86, ptoisa_mm_block_avx2, NULL,
                           NULL};
    return code;
}

#endif  // PTOISA_X86

#endif
