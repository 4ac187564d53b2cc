// How a matrix multiplication is cut into panels and blocks, and the blocks in portable C. Those of
// x86-64 and arm64 are in matmul_pack_x86.h and matmul_x86.h, and in matmul_neon.h.
//
// Everything is counted in units of 4 bytes: a unit is one f32, a pair of i16 neighbours in k, or
// four of i8. f16 and bf16 become f32 as panels are packed; i8 becomes i16, or stays as it is where a
// processor multiplies bytes:
//
//      A panel     16 rows, boxes of 16 rows x 8 units, one after the other along k: the layout that a tile in
//                  Zz or Nz is already if its words are units, so that is used in place
//      B panel     32 columns: a row of 32 units for each unit of k; in its last unit, the part
//                  beyond k is 0, and so products with whatever A has there
//
// Bytes are multiplied where one side is unsigned, so bytes of B have 128 added (their top bit is
// turned), and the sums of a row begin at -128 times the sum of A's row: sums wrap, so that is exact.
//
// Where a processor multiplies bf16, a unit is two of them, the first in the upper half: that half is
// multiplied and added first, rounded, and then the lower one. So the instruction gives the bits of
// two multiply-adds but for subnormal numbers, which it takes and gives as 0. Panels say how small and
// how great their numbers are. Of numbers 2^e at least, products and sums are multiples of 2^-126 or
// more while the exponents of both sides add up to -112; then nothing is subnormal. Panels that may
// have such sums are multiplied by two multiply-adds. Only whole blocks are multiplied like that.
//
// A block is at most 16 rows x 32 columns of C over one range of k. It keeps its sums in registers,
// and adds products in the order of k, each by a fused multiply-add; so an element's value depends
// neither on the processor nor on where the element is in its tile.

#ifndef PTOISA_MATMUL_BLOCK_H
#define PTOISA_MATMUL_BLOCK_H

#include "vector.h"

#define PTOISA_MM_ROWS 16  // of a block
#define PTOISA_MM_COLS 32
#define PTOISA_MM_BOX  128  // units of a box of A

// Before a loop over an array of vectors: unrolled at every level, the array is registers.
#if defined(__clang__)
#define PTOISA_MM_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PTOISA_MM_UNROLL _Pragma("GCC unroll 16")
#endif

// 16 rows of A that become f32, or pairs turned, piece by piece, between the products of the block
// before them. A piece has 32 bytes of each of 4 rows; of pairs, whose magnitudes it notes, of all 16.
typedef struct ptoisa_mm_strip {
    float *to;
    const uint8_t *from;
    size_t stride, step;   // bytes to the next row, to the next 32 along k
    uint32_t done, count;  // pieces
    // At each of 16 places in 32 bytes: the least that is not 0, if any, and the greatest. The span
    // of these 32 is the span of all.
    uint16_t extremes[32];
} ptoisa_mm_strip;

typedef struct ptoisa_mm_block {
    const float *a;   // row 0 of its first box
    uint64_t a_step;  // units from a box to the next
    const float *b;
    uint32_t rows, cols, k;
    const float *start;          // where sums begin, in rows of 32; NULL: at 0
    const uint32_t *base;        // added to the sums of each row; of bytes only
    const float *add;            // added at the end; NULL: nothing
    uint64_t add_row, add_cols;  // units to the next row, to the next 16 columns
    float *out;
    uint64_t out_row, out_cols;
    ptoisa_mm_strip *ahead;  // a strip that may be packed meanwhile
} ptoisa_mm_block;

// The layout of a unit.
typedef enum ptoisa_mm_kind {
    PTOISA_MM_F32,
    PTOISA_MM_F16,
    PTOISA_MM_BF16,
    PTOISA_MM_PAIRS,  // of i8, as i16
    PTOISA_MM_QUADS,  // of i8
    PTOISA_MM_DOTS,   // of bf16, two
    PTOISA_MM_TWICE   // the same panels, by multiply-adds; of blocks only
} ptoisa_mm_kind;

// Of the magnitudes of a panel's bf16: the least that is not 0, and the greatest, as bits.
typedef struct ptoisa_mm_span {
    uint32_t least, greatest;
} ptoisa_mm_span;

// Does no product of two panels overflow, and no product or sum become subnormal, as far as exponents
// tell?
PTOISA_INLINE bool ptoisa_mm_is_normal(ptoisa_mm_span a, ptoisa_mm_span b) {
    const uint32_t low = (a.least >> 7) + (b.least >> 7);
    const uint32_t high = (a.greatest >> 7) + (b.greatest >> 7);
    return a.least >> 7 > 0 && b.least >> 7 > 0 && a.greatest >> 7 < 255 && b.greatest >> 7 < 255 &&
           low >= 2 * 127 - 112 && high <= 2 * 127 + 126;
}

// The code for one processor. Packing takes elements [k, k + k_count) of rows [row, row + rows) of
// A, at most 16, or of columns [col, col + cols) of B, at most 32; k and row begin at a box. Rows of
// A are packed right before their first block, which then finds them in the first-level cache.
typedef struct ptoisa_mm_code {
    void (*pack_a)(float *to, const ptoisa_tile *a, ptoisa_mm_kind kind, uint32_t row,
                   uint32_t rows, uint32_t k, uint32_t k_count);
    void (*pack_b)(float *to, const ptoisa_tile *b, ptoisa_mm_kind kind, uint32_t col,
                   uint32_t cols, uint32_t k, uint32_t k_count);
    void (*block)(const ptoisa_mm_block *block, ptoisa_mm_kind kind);
    // Bases of 16 rows of a panel of A, of k_count bytes; NULL: bytes are multiplied in pairs.
    void (*base)(uint32_t *base, const float *a, uint64_t a_step, uint32_t k_count);
    // Of a panel of bf16, of whole boxes or a strip's extremes; NULL: bf16 is widened.
    ptoisa_mm_span (*span)(const float *panel, uint32_t units);
    // Packs the rest of a strip of f16, bf16 or pairs of it. NULL: no strips.
    void (*finish)(ptoisa_mm_strip *strip, ptoisa_mm_kind kind);
} ptoisa_mm_code;

PTOISA_INLINE bool ptoisa_mm_is_int(ptoisa_mm_kind kind) {
    return kind == PTOISA_MM_PAIRS || kind == PTOISA_MM_QUADS;
}

// Are units words of the tile, if perhaps turned? Of other types 32 bytes of a tile become 16 units.
PTOISA_INLINE bool ptoisa_mm_is_whole(ptoisa_mm_kind kind) {
    return kind == PTOISA_MM_F32 || kind == PTOISA_MM_QUADS || kind == PTOISA_MM_DOTS;
}

// Is A of this kind packed in strips, from a tile that has neighbours in a row?
PTOISA_INLINE bool ptoisa_mm_has_strips(ptoisa_mm_kind kind) {
    return kind == PTOISA_MM_F16 || kind == PTOISA_MM_BF16 || kind == PTOISA_MM_DOTS;
}

// Elements of a unit.
PTOISA_INLINE uint32_t ptoisa_mm_width(ptoisa_mm_kind kind) {
    return kind == PTOISA_MM_QUADS ? 4 : kind == PTOISA_MM_PAIRS || kind == PTOISA_MM_DOTS ? 2 : 1;
}

// Units of a row of a panel of A of k elements: whole boxes, in pairs where 32 bytes become two.
PTOISA_INLINE uint32_t ptoisa_mm_padded(ptoisa_mm_kind kind, uint32_t k) {
    uint32_t units = (k + ptoisa_mm_width(kind) - 1) / ptoisa_mm_width(kind);
    uint32_t step = ptoisa_mm_is_whole(kind) ? 8 : 16;
    return (units + step - 1) / step * step;
}

// Calls a packing with each kind as a constant.
#define PTOISA_MM_OF_KIND(function, ...)                                                           \
    switch (kind) {                                                                                \
    case PTOISA_MM_F32: function(__VA_ARGS__, PTOISA_MM_F32); return;                              \
    case PTOISA_MM_F16: function(__VA_ARGS__, PTOISA_MM_F16); return;                              \
    case PTOISA_MM_BF16: function(__VA_ARGS__, PTOISA_MM_BF16); return;                            \
    case PTOISA_MM_PAIRS: function(__VA_ARGS__, PTOISA_MM_PAIRS); return;                          \
    case PTOISA_MM_QUADS: function(__VA_ARGS__, PTOISA_MM_QUADS); return;                          \
    case PTOISA_MM_TWICE:                                                                          \
    case PTOISA_MM_DOTS: function(__VA_ARGS__, PTOISA_MM_DOTS); return;                            \
    }

// Do 32 bytes of the tile's data hold neighbours in a row (A, or a row-major B), in whole?
PTOISA_INLINE bool ptoisa_mm_has_row_chunks(const ptoisa_tile *tile) {
    uint32_t chunk = 32 / ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
    if (tile->layout == PTOISA_ROW_MAJOR) {
        return tile->cols % chunk == 0;
    }
    return (tile->layout == PTOISA_ZZ || tile->layout == PTOISA_NZ) &&
           ptoisa_box_cols(tile) == chunk;
}

// Is it B as the device has it: boxes of 16 columns of 32 bytes?
PTOISA_INLINE bool ptoisa_mm_is_zn(const ptoisa_tile *tile) {
    return tile->layout == PTOISA_ZN &&
           ptoisa_box_rows(tile) == 32 / ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
}

PTOISA_INLINE ptoisa_mm_kind ptoisa_mm_kind_of(const ptoisa_mm_code *code, const ptoisa_tile *a,
                                               const ptoisa_tile *b) {
    const bool is_whole = a->valid_rows % PTOISA_MM_ROWS == 0 && a->valid_cols % 16 == 0 &&
                          b->valid_cols % PTOISA_MM_COLS == 0 && ptoisa_mm_has_row_chunks(a) &&
                          ptoisa_mm_is_zn(b);
    switch ((ptoisa_dtype)a->dtype) {
    case PTOISA_F32: return PTOISA_MM_F32;
    case PTOISA_F16: return PTOISA_MM_F16;
    case PTOISA_BF16: return code->span && is_whole ? PTOISA_MM_DOTS : PTOISA_MM_BF16;
    default: return code->base ? PTOISA_MM_QUADS : PTOISA_MM_PAIRS;
    }
}

// Zeroes the elements beyond k_count in the last unit of a panel of B.
PTOISA_FN void ptoisa_mm_clear_rest(float *panel, ptoisa_mm_kind kind, uint32_t k_count) {
    const uint32_t width = ptoisa_mm_width(kind), used = k_count % width * (4 / width);
    uint8_t *row = (uint8_t *)(panel + k_count / width * PTOISA_MM_COLS);
    for (uint32_t c = 0; c < PTOISA_MM_COLS && used > 0; c++) {
        memset(row + 4 * c + used, 0, 4 - used);
    }
}

// -- portable: any layout -------------------------------------------------------------------------

PTOISA_INLINE float ptoisa_mm_f32_at(const ptoisa_tile *tile, uint64_t i) {
    if (tile->dtype == PTOISA_F32) {
        return ((const float *)tile->data)[i];
    }
    uint16_t bits = ((const uint16_t *)tile->data)[i];
    return tile->dtype == PTOISA_F16 ? ptoisa_f32_from_f16(bits) : ptoisa_f32_from_bf16(bits);
}

// One unit of a tile: its elements at data[at[0]], data[at[1]] ..; beyond count, 0.
PTOISA_ALWAYS void ptoisa_mm_take_unit(float *to, const ptoisa_tile *tile, ptoisa_mm_kind kind,
                                       const uint64_t *at, uint32_t count) {
    if (!ptoisa_mm_is_int(kind)) {
        *to = ptoisa_mm_f32_at(tile, at[0]);
        return;
    }
    int8_t bytes[4] = {0, 0, 0, 0};
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = ((const int8_t *)tile->data)[at[i]];
    }
    const int16_t pair[2] = {bytes[0], bytes[1]};
    memcpy(to, kind == PTOISA_MM_PAIRS ? (const void *)pair : bytes, sizeof *to);
}

PTOISA_FN PTOISA_ONCE uint64_t ptoisa_mm_offset(const ptoisa_tile *tile, uint32_t r, uint32_t c) {
    return ptoisa_offset(tile, r, c);
}

// Both packings find the offset of an element once for 32 bytes, where these are neighbours in k.

PTOISA_FN void ptoisa_mm_pack_a_any(float *to, const ptoisa_tile *a, ptoisa_mm_kind kind,
                                    uint32_t row, uint32_t rows, uint32_t k, uint32_t k_count) {
    const uint32_t width = ptoisa_mm_width(kind);
    const uint32_t run =
        ptoisa_mm_has_row_chunks(a) ? 32 / ptoisa_dtype_size((ptoisa_dtype)a->dtype) : 1;
    for (uint32_t r = 0; r < rows; r++) {
        uint64_t at[4], last = 0;
        for (uint32_t i = 0; i < k_count; i += width) {
            const uint32_t count = ptoisa_least(width, k_count - i), u = i / width;
            for (uint32_t j = 0; j < count; j++) {
                bool is_next = ((i + j) & (run - 1)) != 0;
                at[j] = last = is_next ? last + 1 : ptoisa_mm_offset(a, row + r, k + i + j);
            }
            ptoisa_mm_take_unit(to + r * 8 + u / 8 * PTOISA_MM_BOX + u % 8, a, kind, at, count);
        }
    }
}

PTOISA_FN void ptoisa_mm_pack_b_any(float *to, const ptoisa_tile *b, ptoisa_mm_kind kind,
                                    uint32_t col, uint32_t cols, uint32_t k, uint32_t k_count) {
    const uint32_t width = ptoisa_mm_width(kind), units = (k_count + width - 1) / width;
    const uint32_t run = ptoisa_mm_is_zn(b) ? 32 / ptoisa_dtype_size((ptoisa_dtype)b->dtype) : 1;
    memset(to, 0, (size_t)units * PTOISA_MM_COLS * sizeof *to);
    for (uint32_t c = 0; c < cols; c++) {
        uint64_t at[4], last = 0;
        for (uint32_t i = 0; i < k_count; i += width) {
            const uint32_t count = ptoisa_least(width, k_count - i);
            for (uint32_t j = 0; j < count; j++) {
                bool is_next = ((i + j) & (run - 1)) != 0;
                at[j] = last = is_next ? last + 1 : ptoisa_mm_offset(b, k + i + j, col + c);
            }
            ptoisa_mm_take_unit(to + i / width * PTOISA_MM_COLS + c, b, kind, at, count);
        }
    }
    uint8_t *bytes = (uint8_t *)to;
    for (uint32_t i = 0; i < 4 * units * PTOISA_MM_COLS && kind == PTOISA_MM_QUADS; i++) {
        bytes[i] ^= 0x80;
    }
}

// sums[0..15] += a * b[0..15], rounded once each. Without fused multiply-add in hardware the sum is
// made in f64, where the product of two f32 is exact, and rounded twice. That differs from rounding
// once only if the f64 sum lies halfway between two f32 (29 bits of 1 0...0) while having been
// rounded itself, or if the result is subnormal in f32: both are rare, and then the f64 sum is made
// odd (Boldo and Melquiond 2008: rounding to odd first makes the second rounding right).
#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__aarch64__)
PTOISA_ALWAYS void ptoisa_mm_fma16(float *sums, float a, const float *b) {
    for (int j = 0; j < 16; j++) {
        sums[j] = __builtin_fmaf(a, b[j], sums[j]);
    }
}
#else
PTOISA_ALWAYS void ptoisa_mm_fma16(float *sums, float a, const float *b) {
    double sum[16];
    float rounded[16];
    uint64_t bits[16];
    uint32_t result[16], doubtful = 0;
    for (int j = 0; j < 16; j++) {
        sum[j] = (double)a * (double)b[j] + (double)sums[j];
        rounded[j] = (float)sum[j];
    }
    memcpy(bits, sum, sizeof bits);
    memcpy(result, rounded, sizeof result);
    for (int j = 0; j < 16; j++) {
        // The top bit: halfway; or not 0, and not above the least normal f32.
        uint32_t low = ((uint32_t)bits[j] & 0x1fffffff) ^ 0x10000000, magnitude = result[j] << 1;
        doubtful |= (low - 1) | (~(magnitude - 1) & (magnitude - 0x1000001));
    }
    if (PTOISA_LIKELY(doubtful >> 31 == 0)) {
        memcpy(sums, rounded, sizeof rounded);
        return;
    }
    for (int j = 0; j < 16; j++) {
        sums[j] = (float)ptoisa_fma_odd(a, b[j], sums[j]);
    }
}
#endif

// Up to 4 rows at once: their sums are independent, which hides the latency of one.
PTOISA_FN void ptoisa_mm_rows_portable(const ptoisa_mm_block *t, uint32_t row, uint32_t half) {
    const uint32_t rows = t->rows - row < 4 ? t->rows - row : 4;
    const uint32_t cols = t->cols - half * 16 < 16 ? t->cols - half * 16 : 16;
    float sums[4][16] = {{0}}, line[16];
    for (uint32_t r = 0; t->start && r < rows; r++) {
        memcpy(sums[r], t->start + (row + r) * PTOISA_MM_COLS + half * 16, cols * sizeof(float));
    }
    for (uint32_t k = 0; k < t->k; k++) {
        const float *a = t->a + k / 8 * t->a_step + row * 8 + k % 8;
        memcpy(line, t->b + (uint64_t)k * PTOISA_MM_COLS + half * 16, sizeof line);
        for (uint32_t r = 0; r < rows; r++) {
            ptoisa_mm_fma16(sums[r], a[r * 8], line);
        }
    }
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t j = 0; t->add && j < cols; j++) {
            sums[r][j] += t->add[(row + r) * t->add_row + half * t->add_cols + j];
        }
        memcpy(t->out + (row + r) * t->out_row + half * t->out_cols, sums[r], cols * sizeof(float));
    }
}

PTOISA_FN void ptoisa_mm_row_portable_int(const ptoisa_mm_block *t, uint32_t row, uint32_t half) {
    const float *b = t->b + half * 16;
    uint32_t sums[16] = {0}, add[16];
    uint32_t cols = t->cols - half * 16 < 16 ? t->cols - half * 16 : 16;
    if (t->start) {
        memcpy(sums, t->start + row * PTOISA_MM_COLS + half * 16, cols * sizeof *sums);
    }
    for (uint32_t k = 0; k < t->k; k++) {
        int16_t x[2], y[32];
        memcpy(x, t->a + k / 8 * t->a_step + row * 8 + k % 8, sizeof x);
        memcpy(y, b + (uint64_t)k * PTOISA_MM_COLS, sizeof y);
        for (int j = 0; j < 16; j++) {
            sums[j] += (uint32_t)(x[0] * y[2 * j] + x[1] * y[2 * j + 1]);
        }
    }
    if (t->add) {
        memcpy(add, t->add + row * t->add_row + half * t->add_cols, cols * sizeof *add);
        for (uint32_t j = 0; j < cols; j++) {
            sums[j] += add[j];
        }
    }
    memcpy(t->out + row * t->out_row + half * t->out_cols, sums, cols * sizeof *sums);
}

PTOISA_FN void ptoisa_mm_block_portable(const ptoisa_mm_block *t, ptoisa_mm_kind kind) {
    const bool is_int = ptoisa_mm_is_int(kind);
    for (uint32_t half = 0; half * 16 < t->cols; half++) {
        for (uint32_t row = 0; row < t->rows; row += is_int ? 1 : 4) {
            if (is_int) {
                ptoisa_mm_row_portable_int(t, row, half);
            } else {
                ptoisa_mm_rows_portable(t, row, half);
            }
        }
    }
}

PTOISA_INLINE ptoisa_mm_code ptoisa_mm_portable(void) {
    ptoisa_mm_code code = {
        ptoisa_mm_pack_a_any, ptoisa_mm_pack_b_any, ptoisa_mm_block_portable, NULL, NULL, NULL};
    return code;
}

#endif
