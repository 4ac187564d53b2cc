// Blocks of a matrix multiplication, and the packing of panels, for arm64: as matmul_x86.h, with 8
// rows x 8 columns of sums in 16 of NEON's 32 registers.

#ifndef PTOISA_MATMUL_NEON_H
#define PTOISA_MATMUL_NEON_H

#include "matmul_block.h"

#if PTOISA_NEON

// -- packing --------------------------------------------------------------------------------------

// Widens 16 bytes of a row to 4 units (f32) or 8.
PTOISA_ALWAYS void ptoisa_mm_widen_neon(float *to, uint8x16_t x, ptoisa_mm_kind kind) {
    if (kind == PTOISA_MM_F32) {
        vst1q_f32(to, vreinterpretq_f32_u8(x));
    } else if (kind == PTOISA_MM_F16) {
        float16x8_t halves = vreinterpretq_f16_u8(x);
        vst1q_f32(to, vcvt_f32_f16(vget_low_f16(halves)));
        vst1q_f32(to + 4, vcvt_f32_f16(vget_high_f16(halves)));
    } else if (kind == PTOISA_MM_BF16) {
        uint16x8_t halves = vreinterpretq_u16_u8(x);
        vst1q_f32(to, vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(halves), 16)));
        vst1q_f32(to + 4, vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(halves), 16)));
    } else {
        int8x16_t bytes = vreinterpretq_s8_u8(x);
        vst1q_f32(to, vreinterpretq_f32_s16(vmovl_s8(vget_low_s8(bytes))));
        vst1q_f32(to + 4, vreinterpretq_f32_s16(vmovl_s8(vget_high_s8(bytes))));
    }
}

PTOISA_ALWAYS void ptoisa_mm_pack_a_of_neon(float *to, const ptoisa_tile *a, uint32_t row,
                                            uint32_t rows, uint32_t k, uint32_t k_count,
                                            ptoisa_mm_kind kind) {
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)a->dtype), chunk = 32 / size;
    uint64_t stride = a->layout == PTOISA_ROW_MAJOR ? (uint64_t)a->cols * size : 32;
    for (uint32_t i = 0; i < k_count; i += chunk) {
        const uint8_t *from = (const uint8_t *)a->data + size * ptoisa_offset(a, row, k + i);
        for (uint32_t r = 0; r < rows; r++) {
            const uint8_t *line = from + r * stride;
            float *high = to + r * 8 + (kind == PTOISA_MM_F32 ? 4 : PTOISA_MM_BOX);
            ptoisa_mm_widen_neon(to + r * 8, vld1q_u8(line), kind);
            ptoisa_mm_widen_neon(high, vld1q_u8(line + 16), kind);
        }
        to += kind == PTOISA_MM_F32 ? PTOISA_MM_BOX : 2 * PTOISA_MM_BOX;
    }
}

PTOISA_FN void ptoisa_mm_pack_a_neon(float *to, const ptoisa_tile *a, ptoisa_mm_kind kind,
                                     uint32_t row, uint32_t rows, uint32_t k, uint32_t k_count) {
    if (!ptoisa_mm_has_row_chunks(a)) {
        ptoisa_mm_pack_a_any(to, a, kind, row, rows, k, k_count);
        return;
    }
    PTOISA_MM_OF_KIND(ptoisa_mm_pack_a_of_neon, to, a, row, rows, k, k_count)
}

// Stores 4 columns of what one unit of B's box becomes: one row of a panel, or two.
PTOISA_ALWAYS void ptoisa_mm_split_neon(float *to, uint32x4_t unit, ptoisa_mm_kind kind) {
    float *next = to + PTOISA_MM_COLS;
    if (kind == PTOISA_MM_F32) {
        vst1q_f32(to, vreinterpretq_f32_u32(unit));
    } else if (kind == PTOISA_MM_F16) {
        vst1q_f32(to, vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(unit))));
        vst1q_f32(next, vcvt_f32_f16(vreinterpret_f16_u16(vshrn_n_u32(unit, 16))));
    } else if (kind == PTOISA_MM_BF16) {
        vst1q_f32(to, vreinterpretq_f32_u32(vshlq_n_u32(unit, 16)));
        vst1q_f32(next, vreinterpretq_f32_u32(vbicq_u32(unit, vdupq_n_u32(0xffff))));
    } else {
        int8x8_t low = vreinterpret_s8_u16(vmovn_u32(unit));
        int8x8_t high = vreinterpret_s8_u16(vshrn_n_u32(unit, 16));
        vst1q_f32(to, vreinterpretq_f32_s16(vmovl_s8(low)));
        vst1q_f32(next, vreinterpretq_f32_s16(vmovl_s8(high)));
    }
}

// 4 columns of 16 bytes of a box become 4 rows of one unit of each column.
PTOISA_ALWAYS void ptoisa_mm_turn_neon(float *to, const uint8_t *from, ptoisa_mm_kind kind) {
    const uint32_t step = (kind == PTOISA_MM_F32 ? 1 : 2) * PTOISA_MM_COLS;
    uint32x4_t x0 = vreinterpretq_u32_u8(vld1q_u8(from));
    uint32x4_t x1 = vreinterpretq_u32_u8(vld1q_u8(from + 32));
    uint32x4_t x2 = vreinterpretq_u32_u8(vld1q_u8(from + 64));
    uint32x4_t x3 = vreinterpretq_u32_u8(vld1q_u8(from + 96));
    uint64x2_t y0 = vreinterpretq_u64_u32(vtrn1q_u32(x0, x1));
    uint64x2_t y1 = vreinterpretq_u64_u32(vtrn2q_u32(x0, x1));
    uint64x2_t y2 = vreinterpretq_u64_u32(vtrn1q_u32(x2, x3));
    uint64x2_t y3 = vreinterpretq_u64_u32(vtrn2q_u32(x2, x3));
    ptoisa_mm_split_neon(to, vreinterpretq_u32_u64(vtrn1q_u64(y0, y2)), kind);
    ptoisa_mm_split_neon(to + step, vreinterpretq_u32_u64(vtrn1q_u64(y1, y3)), kind);
    ptoisa_mm_split_neon(to + 2 * step, vreinterpretq_u32_u64(vtrn2q_u64(y0, y2)), kind);
    ptoisa_mm_split_neon(to + 3 * step, vreinterpretq_u32_u64(vtrn2q_u64(y1, y3)), kind);
}

PTOISA_ALWAYS void ptoisa_mm_pack_zn_of_neon(float *to, const ptoisa_tile *b, uint32_t col,
                                             uint32_t cols, uint32_t k, uint32_t k_count,
                                             ptoisa_mm_kind kind) {
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)b->dtype), chunk = 32 / size;
    const uint32_t step = (kind == PTOISA_MM_F32 ? 1 : 2) * PTOISA_MM_COLS;
    cols = (cols + 15) / 16 * 16;
    for (uint32_t i = 0; i < k_count; i += chunk, to += 8 * step) {
        const uint8_t *from = (const uint8_t *)b->data + size * ptoisa_offset(b, k + i, col);
        for (uint32_t c = 0; c < cols; c += 4) {
            ptoisa_mm_turn_neon(to + c, from + c * 32, kind);
            ptoisa_mm_turn_neon(to + 4 * step + c, from + c * 32 + 16, kind);
        }
    }
}

PTOISA_FN void ptoisa_mm_pack_b_neon(float *to, const ptoisa_tile *b, ptoisa_mm_kind kind,
                                     uint32_t col, uint32_t cols, uint32_t k, uint32_t k_count) {
    if (!ptoisa_mm_is_zn(b)) {
        ptoisa_mm_pack_b_any(to, b, kind, col, cols, k, k_count);
        return;
    }
    PTOISA_MM_OF_KIND(ptoisa_mm_pack_zn_of_neon, to, b, col, cols, k, k_count)
}

// -- sums -----------------------------------------------------------------------------------------

// sum + a * b for 4 columns; of integers, for pairs in k.
PTOISA_ALWAYS float32x4_t ptoisa_mm_step_neon(float32x4_t sum, const float *a, float32x4_t b,
                                              bool is_int) {
    if (!is_int) {
        return vfmaq_n_f32(sum, b, *a);
    }
    int16x8_t x = vreinterpretq_s16_f32(vld1q_dup_f32(a)), y = vreinterpretq_s16_f32(b);
    int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y));
    int32x4_t high = vmull_s16(vget_high_s16(x), vget_high_s16(y));
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(sum), vpaddq_s32(low, high)));
}

PTOISA_ALWAYS float32x4_t ptoisa_mm_add_neon(float32x4_t x, float32x4_t y, bool is_int) {
    if (!is_int) {
        return vaddq_f32(x, y);
    }
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(x), vreinterpretq_s32_f32(y)));
}

// rows x 8 sums, of columns from col on. rows and is_int are constants where this is inlined.
PTOISA_ALWAYS void ptoisa_mm_sum_neon(const ptoisa_mm_block *t, uint32_t row, uint32_t col,
                                      const uint32_t rows, const bool is_int) {
    float32x4_t sum[8][2];
    PTOISA_MM_UNROLL
    for (uint32_t i = 0; i < rows; i++) {
        PTOISA_MM_UNROLL
        for (uint32_t v = 0; v < 2; v++) {
            sum[i][v] = t->start ? vld1q_f32(t->start + (row + i) * PTOISA_MM_COLS + col + 4 * v)
                                 : vdupq_n_f32(0);
        }
    }
    const float *b = t->b + col;
    for (uint32_t k = 0; k < t->k; k += 8) {
        const float *a = t->a + k / 8 * t->a_step + row * 8;
        const uint32_t count = t->k - k < 8 ? t->k - k : 8;
        for (uint32_t j = 0; j < count; j++, b += PTOISA_MM_COLS) {
            float32x4_t y[2] = {vld1q_f32(b), vld1q_f32(b + 4)};
            PTOISA_MM_UNROLL
            for (uint32_t i = 0; i < rows; i++) {
                sum[i][0] = ptoisa_mm_step_neon(sum[i][0], a + i * 8 + j, y[0], is_int);
                sum[i][1] = ptoisa_mm_step_neon(sum[i][1], a + i * 8 + j, y[1], is_int);
            }
        }
    }
    const uint32_t left = t->cols - col < 8 ? t->cols - col : 8;
    const uint64_t add_at = col / 16 * t->add_cols + col % 16;
    const uint64_t out_at = col / 16 * t->out_cols + col % 16;
    PTOISA_MM_UNROLL
    for (uint32_t i = 0; i < rows; i++) {
        float add[8], *out = t->out + (row + i) * t->out_row + out_at;
        if (t->add) {
            memcpy(add, t->add + (row + i) * t->add_row + add_at,
                   left == 8 ? sizeof add : left * sizeof *add);
            sum[i][0] = ptoisa_mm_add_neon(sum[i][0], vld1q_f32(add), is_int);
            sum[i][1] = ptoisa_mm_add_neon(sum[i][1], vld1q_f32(add + 4), is_int);
        }
        if (left == 8) {
            vst1q_f32(out, sum[i][0]);
            vst1q_f32(out + 4, sum[i][1]);
        } else {
            vst1q_f32(add, sum[i][0]);
            vst1q_f32(add + 4, sum[i][1]);
            memcpy(out, add, left * sizeof *add);
        }
    }
}

#define PTOISA_MM_ROWS_NEON(count, is_int)                                                         \
    for (; row + count <= t->rows; row += count) {                                                 \
        ptoisa_mm_sum_neon(t, row, col, count, is_int);                                            \
    }
#define PTOISA_MM_BLOCK_NEON(name, is_int)                                                         \
    PTOISA_FN void name(const ptoisa_mm_block *t) {                                                \
        for (uint32_t col = 0; col < t->cols; col += 8) {                                          \
            uint32_t row = 0;                                                                      \
            PTOISA_MM_ROWS_NEON(8, is_int)                                                         \
            PTOISA_MM_ROWS_NEON(4, is_int)                                                         \
            PTOISA_MM_ROWS_NEON(2, is_int)                                                         \
            PTOISA_MM_ROWS_NEON(1, is_int)                                                         \
        }                                                                                          \
    }
PTOISA_MM_BLOCK_NEON(ptoisa_mm_f32_neon, false)
PTOISA_MM_BLOCK_NEON(ptoisa_mm_int_neon, true)
#undef PTOISA_MM_BLOCK_NEON
#undef PTOISA_MM_ROWS_NEON

PTOISA_FN void ptoisa_mm_block_neon(const ptoisa_mm_block *t, ptoisa_mm_kind kind) {
    ptoisa_mm_is_int(kind) ? ptoisa_mm_int_neon(t) : ptoisa_mm_f32_neon(t);
}

PTOISA_INLINE ptoisa_mm_code ptoisa_mm_neon(void) {
    ptoisa_mm_code code = {
        ptoisa_mm_pack_a_neon, ptoisa_mm_pack_b_neon, ptoisa_mm_block_neon, NULL, NULL, NULL};
    return code;
}

#endif  // PTOISA_NEON

#endif
