// Blocks of a matrix multiplication for x86-64.
//
// 8 rows x 32 columns of sums fill 16 of AVX-512's registers, 6 x 16 fill 12 of AVX2's: enough
// independent sums to hide the latency of fused multiply-add (4 cycles, two a cycle), while loads,
// one for each row and one for each vector of columns, stay below one and a half for two products.
// Sums of bytes are done after a quarter of the steps. There 16 rows are 6, 6 and 4 in code without
// loops over rows: its branches are predicted.

#ifndef PTOISA_MATMUL_X86_H
#define PTOISA_MATMUL_X86_H

#include "matmul_pack_x86.h"

#if PTOISA_X86

// -- AVX-512 --------------------------------------------------------------------------------------

// Adds the products of four bytes of x, signed, and of y, unsigned, without saturation. Not by the
// intrinsic, for which all kinds of sums would have to be compiled for processors that have it. With
// -masm=intel the order of operands is the second one.
#define PTOISA_MM_QUADS_AVX512(sum, x, y)                                                          \
    __asm__("vpdpbusd {%1, %2, %0|%0, %2, %1}" : "+v"(sum) : "v"(x), "v"(y))

// Adds the products of two bf16 of x and y, upper halves first, rounding after each.
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

// Begins rows x (16 * vectors) sums.
PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_mm_begin_avx512(__m512 (*sum)[2], const ptoisa_mm_block *t,
                                                        uint32_t row, const uint32_t rows,
                                                        const uint32_t vectors,
                                                        const ptoisa_mm_kind kind) {
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
                sum[i][v] = ptoisa_mm_is_int(kind) ? ptoisa_mm_add_avx512(sum[i][v], x, true) : x;
            }
        }
    }
}

// Adds the products of count units of a box of A and as many rows of B's panel.
PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_mm_box_avx512(__m512 (*sum)[2], const float *a,
                                                      const float *b, uint32_t count,
                                                      const uint32_t rows, const uint32_t vectors,
                                                      const ptoisa_mm_kind kind) {
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

// rows x (16 * vectors) sums. rows, vectors and kind are constants where this is inlined.
PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_mm_sum_avx512(const ptoisa_mm_block *t, uint32_t row,
                                                      const uint32_t rows, const uint32_t vectors,
                                                      const ptoisa_mm_kind kind) {
    const bool is_int = ptoisa_mm_is_int(kind);
    __m512 sum[8][2];
    const uint32_t last = t->cols - 16 * (vectors - 1);
    const __mmask16 mask[2] = {(__mmask16)(vectors == 2 ? 0xffffu : (1u << last) - 1),
                               (__mmask16)((1u << last) - 1)};
    ptoisa_mm_begin_avx512(sum, t, row, rows, vectors, kind);
    for (uint32_t k = 0; k < t->k; k += 8) {
        ptoisa_mm_box_avx512(sum, t->a + k / 8 * t->a_step + row * 8, t->b + k * PTOISA_MM_COLS,
                             ptoisa_least(t->k - k, 8), rows, vectors, kind);
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

// Adds the addend to a row of a whole block, and stores it.
PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_mm_end_avx512(const ptoisa_mm_block *t, uint32_t row,
                                                      __m512 *sum, const bool is_int) {
    PTOISA_MM_UNROLL
    for (uint32_t v = 0; v < 2; v++) {
        if (t->add) {
            const __m512 x = _mm512_loadu_ps(t->add + row * t->add_row + v * t->add_cols);
            sum[v] = ptoisa_mm_add_avx512(sum[v], x, is_int);
        }
        _mm512_storeu_ps(t->out + row * t->out_row + v * t->out_cols, sum[v]);
    }
}

// rows x 32 sums of whole boxes. Before each box but the last, a piece of the strip is packed if that
// is of f16 or bf16. The last units are gone through row by row, and each row is stored after its own:
// 16 stores one after another hold up multiply-adds for 20 cycles, on Zen 4.
PTOISA_AVX512 PTOISA_ALWAYS void ptoisa_mm_whole_avx512(const ptoisa_mm_block *t, uint32_t row,
                                                        const uint32_t rows,
                                                        const ptoisa_mm_kind kind,
                                                        const ptoisa_mm_kind packed) {
    // Units that B's rows are in registers for: as many as a product takes cycles.
    const uint32_t last = kind == PTOISA_MM_DOTS ? 6 : 4;
    __m512 sum[8][2], y[6][2];
    const float *a = t->a + row * 8, *b = t->b;
    ptoisa_mm_begin_avx512(sum, t, row, rows, 2, kind);
    for (uint32_t k = 8; k < t->k; k += 8, a += t->a_step, b += 8 * PTOISA_MM_COLS) {
        if (ptoisa_mm_has_strips(packed) && t->ahead->done < t->ahead->count) {
            ptoisa_mm_pack_piece(t->ahead, packed);
        }
        ptoisa_mm_box_avx512(sum, a, b, 8, rows, 2, kind);
    }
    ptoisa_mm_box_avx512(sum, a, b, 8 - last, rows, 2, kind);
    a += 8 - last, b += (8 - last) * PTOISA_MM_COLS;
    PTOISA_MM_UNROLL
    for (uint32_t j = 0; j < last; j++) {
        y[j][0] = _mm512_loadu_ps(b + j * PTOISA_MM_COLS);
        y[j][1] = _mm512_loadu_ps(b + j * PTOISA_MM_COLS + 16);
    }
    PTOISA_MM_UNROLL
    for (uint32_t i = 0; i < rows; i++) {
        PTOISA_MM_UNROLL
        for (uint32_t j = 0; j < last; j++) {
            const __m512 x = _mm512_set1_ps(a[i * 8 + j]);
            ptoisa_mm_step_avx512(&sum[i][0], x, y[j][0], kind);
            ptoisa_mm_step_avx512(&sum[i][1], x, y[j][1], kind);
        }
        ptoisa_mm_end_avx512(t, row + i, sum[i], ptoisa_mm_is_int(kind));
    }
}

#define PTOISA_MM_WHOLE_AVX512(name, kind, packed)                                                 \
    PTOISA_AVX512 PTOISA_FN void name(const ptoisa_mm_block *t) {                                  \
        for (uint32_t row = 0; row < PTOISA_MM_ROWS; row += 8) {                                   \
            ptoisa_mm_whole_avx512(t, row, 8, kind, packed);                                       \
        }                                                                                          \
    }
PTOISA_MM_WHOLE_AVX512(ptoisa_mm_f32_whole_avx512, PTOISA_MM_F32, PTOISA_MM_F32)
PTOISA_MM_WHOLE_AVX512(ptoisa_mm_f16_whole_avx512, PTOISA_MM_F32, PTOISA_MM_F16)
PTOISA_MM_WHOLE_AVX512(ptoisa_mm_bf16_whole_avx512, PTOISA_MM_F32, PTOISA_MM_BF16)
PTOISA_MM_WHOLE_AVX512(ptoisa_mm_dots_whole_avx512, PTOISA_MM_DOTS, PTOISA_MM_DOTS)
PTOISA_MM_WHOLE_AVX512(ptoisa_mm_twice_whole_avx512, PTOISA_MM_TWICE, PTOISA_MM_DOTS)
#undef PTOISA_MM_WHOLE_AVX512

PTOISA_AVX512 PTOISA_FN void ptoisa_mm_quads_whole_avx512(const ptoisa_mm_block *t) {
    const ptoisa_mm_kind quads = PTOISA_MM_QUADS;
    ptoisa_mm_whole_avx512(t, 0, 6, quads, quads);
    ptoisa_mm_whole_avx512(t, 6, 6, quads, quads);
    ptoisa_mm_whole_avx512(t, 12, 4, quads, quads);
}

PTOISA_FN void ptoisa_mm_block_avx512(const ptoisa_mm_block *t, ptoisa_mm_kind kind) {
    const bool is_wide = t->cols > 16;
    if (t->rows == PTOISA_MM_ROWS && t->cols == PTOISA_MM_COLS && t->k % 8 == 0) {
        switch (kind) {
        case PTOISA_MM_F32: ptoisa_mm_f32_whole_avx512(t); return;
        case PTOISA_MM_F16: ptoisa_mm_f16_whole_avx512(t); return;
        case PTOISA_MM_BF16: ptoisa_mm_bf16_whole_avx512(t); return;
        case PTOISA_MM_QUADS: ptoisa_mm_quads_whole_avx512(t); return;
        case PTOISA_MM_DOTS: ptoisa_mm_dots_whole_avx512(t); return;
        case PTOISA_MM_TWICE: ptoisa_mm_twice_whole_avx512(t); return;
        case PTOISA_MM_PAIRS: break;
        }
    }
    if (kind == PTOISA_MM_QUADS) {
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
    ptoisa_mm_code code = {ptoisa_mm_pack_a_x86, ptoisa_mm_pack_b_x86,  ptoisa_mm_block_avx512,
                           ptoisa_mm_base_vnni,  ptoisa_mm_span_avx512, ptoisa_mm_finish_x86};
    return code;
}

PTOISA_INLINE ptoisa_mm_code ptoisa_mm_vnni(void) {
    ptoisa_mm_code code = {ptoisa_mm_pack_a_x86,
                           ptoisa_mm_pack_b_x86,
                           ptoisa_mm_block_avx512,
                           ptoisa_mm_base_vnni,
                           NULL,
                           ptoisa_mm_finish_x86};
    return code;
}

PTOISA_INLINE ptoisa_mm_code ptoisa_mm_avx512(void) {
    ptoisa_mm_code code = {
        ptoisa_mm_pack_a_x86, ptoisa_mm_pack_b_x86, ptoisa_mm_block_avx512, NULL, NULL,
        ptoisa_mm_finish_x86};
    return code;
}

PTOISA_INLINE ptoisa_mm_code ptoisa_mm_avx2(void) {
    ptoisa_mm_code code = {
        ptoisa_mm_pack_a_x86, ptoisa_mm_pack_b_x86, ptoisa_mm_block_avx2, NULL, NULL, NULL};
    return code;
}

#endif  // PTOISA_X86

#endif
