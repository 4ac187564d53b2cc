// The packing of panels of a matrix multiplication for x86-64.
//
// A box of B (Zn: 16 columns, in each 32 bytes along k) is turned by transposing 8 x 8 words of 4
// bytes, whatever its type: a word is then 1, 2 or 4 neighbours in k of one column, and is widened.
//
// Shuffles bound it, and stores, one of 32 bytes a cycle on Zen 4. Vectors of AVX-512 save neither: f32
// take 1.4 times as long by them.

#ifndef PTOISA_MATMUL_PACK_X86_H
#define PTOISA_MATMUL_PACK_X86_H

#include "matmul_block.h"

#if PTOISA_X86

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

// Notes the magnitudes of 32 bytes of each of 16 rows of a strip.
PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_note_piece(ptoisa_mm_strip *strip, const uint8_t *from) {
    const __m256i magnitude = _mm256_set1_epi16(0x7fff), one = _mm256_set1_epi16(1);
    __m256i *extremes = (__m256i *)(void *)strip->extremes;
    __m256i least = _mm256_sub_epi16(_mm256_loadu_si256(extremes), one);  // 0 becomes the greatest
    __m256i greatest = _mm256_loadu_si256(extremes + 1);
    PTOISA_MM_UNROLL
    for (uint32_t r = 0; r < 16; r++) {
        const void *row = from + r * strip->stride;
        const __m256i x = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)row), magnitude);
        least = _mm256_min_epu16(least, _mm256_sub_epi16(x, one));
        greatest = _mm256_max_epu16(greatest, x);
    }
    _mm256_storeu_si256(extremes, _mm256_add_epi16(least, one));
    _mm256_storeu_si256(extremes + 1, greatest);
}

// A piece of a strip.
PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_pack_piece(ptoisa_mm_strip *strip, ptoisa_mm_kind kind) {
    const bool is_dots = kind == PTOISA_MM_DOTS;
    const uint32_t rows = is_dots ? 16 : 4, pieces = 16 / rows;
    const uint32_t chunk = strip->done / pieces, row = strip->done % pieces * rows;
    const uint8_t *from = strip->from + chunk * strip->step + row * strip->stride;
    float *to = strip->to + chunk * (is_dots ? 1 : 2) * PTOISA_MM_BOX + row * 8;
    PTOISA_MM_UNROLL
    for (uint32_t r = 0; r < rows; r++) {
        ptoisa_mm_widen(to + r * 8, to + r * 8 + PTOISA_MM_BOX, from + r * strip->stride, kind);
    }
    if (is_dots) {
        ptoisa_mm_note_piece(strip, from);
    }
    strip->done++;
}

PTOISA_AVX2 PTOISA_ALWAYS void ptoisa_mm_finish_of_x86(ptoisa_mm_strip *strip,
                                                       ptoisa_mm_kind kind) {
    while (strip->done < strip->count) {
        ptoisa_mm_pack_piece(strip, kind);
    }
}

PTOISA_AVX2 PTOISA_FN void ptoisa_mm_finish_x86(ptoisa_mm_strip *strip, ptoisa_mm_kind kind) {
    kind == PTOISA_MM_F16    ? ptoisa_mm_finish_of_x86(strip, PTOISA_MM_F16)
    : kind == PTOISA_MM_BF16 ? ptoisa_mm_finish_of_x86(strip, PTOISA_MM_BF16)
                             : ptoisa_mm_finish_of_x86(strip, PTOISA_MM_DOTS);
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

// The same for f16 and 16 columns, every other one in each vector: their lower halves, and their
// upper ones, are joined before they are widened.
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

#endif  // PTOISA_X86

#endif
