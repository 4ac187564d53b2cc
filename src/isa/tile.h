// Tiles and windows: making them, where their elements are, and single elements as numbers.

#ifndef PTOISA_TILE_H
#define PTOISA_TILE_H

#include "isa.h"

PTOISA_INLINE uint32_t ptoisa_least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

// Bytes of an element; 0 for none.
PTOISA_INLINE uint32_t ptoisa_dtype_size(ptoisa_dtype dtype) {
    static const uint8_t size[PTOISA_DTYPE_COUNT] = {0, 2, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1};
    return (uint32_t)dtype < PTOISA_DTYPE_COUNT ? size[dtype] : 0;
}

PTOISA_INLINE bool ptoisa_dtype_is_float(ptoisa_dtype dtype) {
    return dtype >= PTOISA_F16 && dtype <= PTOISA_F64;
}

// A tile over data, all of it valid, padded with nothing.
PTOISA_INLINE ptoisa_tile ptoisa_tile_make(void *data, ptoisa_dtype dtype, ptoisa_memory memory,
                                           ptoisa_layout layout, uint32_t rows, uint32_t cols) {
    ptoisa_tile tile;
    tile.data = data;
    tile.dtype = (uint8_t)dtype;
    tile.memory = (uint8_t)memory;
    tile.layout = (uint8_t)layout;
    tile.pad = PTOISA_PAD_NULL;
    tile.is_dynamic = false;
    tile.rows = tile.valid_rows = rows;
    tile.cols = tile.valid_cols = cols;
    tile.pad_value = 0;
    return tile;
}

// The usual tile of a vector kernel: row-major in UB.
PTOISA_INLINE ptoisa_tile ptoisa_tile_vec(void *data, ptoisa_dtype dtype, uint32_t rows,
                                          uint32_t cols) {
    return ptoisa_tile_make(data, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR, rows, cols);
}

// The same with fewer valid elements, as found out at run time.
PTOISA_INLINE ptoisa_tile ptoisa_tile_valid(ptoisa_tile tile, uint32_t valid_rows,
                                            uint32_t valid_cols) {
    tile.is_dynamic = true;
    tile.valid_rows = valid_rows;
    tile.valid_cols = valid_cols;
    return tile;
}

PTOISA_INLINE uint64_t ptoisa_tile_bytes(const ptoisa_tile *tile) {
    return (uint64_t)tile->rows * tile->cols * ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
}

// Rows and columns of a tile's boxes; 1 and 1 without boxes.
PTOISA_INLINE uint32_t ptoisa_box_rows(const ptoisa_tile *tile) {
    if (tile->layout < PTOISA_NZ) {
        return 1;
    }
    bool is_by_row = tile->layout == PTOISA_NZ || tile->layout == PTOISA_ZZ;
    return tile->memory == PTOISA_ACC || is_by_row
               ? 16
               : 32 / ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
}

PTOISA_INLINE uint32_t ptoisa_box_cols(const ptoisa_tile *tile) {
    if (tile->layout < PTOISA_NZ) {
        return 1;
    }
    bool is_by_row = tile->layout == PTOISA_NZ || tile->layout == PTOISA_ZZ;
    return tile->memory == PTOISA_ACC || !is_by_row
               ? 16
               : 32 / ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
}

// Where element (r, c) is, in elements from data.
PTOISA_INLINE uint64_t ptoisa_offset(const ptoisa_tile *tile, uint32_t r, uint32_t c) {
    if (tile->layout == PTOISA_ROW_MAJOR) {
        return (uint64_t)r * tile->cols + c;
    }
    if (tile->layout == PTOISA_COL_MAJOR) {
        return (uint64_t)c * tile->rows + r;
    }
    uint32_t box_rows = ptoisa_box_rows(tile), box_cols = ptoisa_box_cols(tile);
    uint32_t box_r = r / box_rows, in_r = r % box_rows, box_c = c / box_cols, in_c = c % box_cols;
    uint64_t box = (uint64_t)box_rows * box_cols;
    bool is_outer_col = tile->layout == PTOISA_NZ || tile->layout == PTOISA_NN;
    bool is_inner_row = tile->layout == PTOISA_NZ || tile->layout == PTOISA_ZZ;
    return (is_outer_col ? (uint64_t)box_c * tile->rows * box_cols + box_r * box
                         : (uint64_t)box_r * tile->cols * box_rows + box_c * box) +
           (is_inner_row ? in_r * box_cols + in_c : in_c * box_rows + in_r);
}

// -- windows --------------------------------------------------------------------------------------

// A rows x cols window; strides in elements.
PTOISA_INLINE ptoisa_global ptoisa_global_make(void *data, ptoisa_dtype dtype, int64_t rows,
                                               int64_t cols, int64_t row_stride,
                                               int64_t col_stride) {
    ptoisa_global global;
    memset(&global, 0, sizeof global);
    global.data = data;
    global.dtype = (uint8_t)dtype;
    global.shape[0] = global.shape[1] = global.shape[2] = 1;
    global.shape[3] = rows;
    global.shape[4] = cols;
    global.stride[3] = row_stride;
    global.stride[4] = col_stride;
    return global;
}

PTOISA_INLINE int64_t ptoisa_global_rows(const ptoisa_global *global) {
    return global->shape[0] * global->shape[1] * global->shape[2] * global->shape[3];
}

// Where row r begins, in elements from data.
PTOISA_INLINE int64_t ptoisa_global_row(const ptoisa_global *global, int64_t r) {
    int64_t offset = r % global->shape[3] * global->stride[3];
    r /= global->shape[3];
    offset += r % global->shape[2] * global->stride[2];
    r /= global->shape[2];
    return offset + r % global->shape[1] * global->stride[1] +
           r / global->shape[1] * global->stride[0];
}

// -- elements -------------------------------------------------------------------------------------

PTOISA_INLINE float ptoisa_f32_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

PTOISA_INLINE uint32_t ptoisa_bits_from_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

PTOISA_INLINE float ptoisa_f32_from_bf16(uint16_t bits) {
    return ptoisa_f32_from_bits((uint32_t)bits << 16);
}

PTOISA_INLINE uint16_t ptoisa_bf16_from_f32(float value) {
    uint32_t bits = ptoisa_bits_from_f32(value);
    if ((bits & 0x7fffffff) > 0x7f800000) {
        return (uint16_t)(bits >> 16 | 0x40);
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

PTOISA_INLINE float ptoisa_f32_from_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, x = (uint32_t)(half & 0x7fff) << 13;
    if (x >= 0x0f800000) {
        return ptoisa_f32_from_bits(sign | (x + 0x70000000));  // infinity or NaN
    }
    if (x >= 0x00800000) {
        return ptoisa_f32_from_bits(sign | (x + 0x38000000));
    }
    float subnormal = (float)(half & 0x7fff) * 0x1p-24f;
    return sign ? -subnormal : subnormal;
}

// To nearest, ties to even.
PTOISA_INLINE uint16_t ptoisa_f16_from_f32(float value) {
    uint32_t bits = ptoisa_bits_from_f32(value), sign = bits >> 16 & 0x8000, x = bits & 0x7fffffff;
    if (x > 0x7f800000) {
        return (uint16_t)(sign | 0x7e00 | (x >> 13 & 0x3ff));
    }
    if (x >= 0x47800000) {
        return (uint16_t)(sign | 0x7c00);
    }
    if (x >= 0x38800000) {
        return (uint16_t)(sign | (x + 0xfff + (x >> 13 & 1) - 0x38000000) >> 13);
    }
    // Subnormal: adding one half moves the last kept bit to the end of the significand, and rounds.
    float magic = ptoisa_f32_from_bits(x) + 0.5f;
    return (uint16_t)(sign | (ptoisa_bits_from_f32(magic) - 0x3f000000));
}

// Writes the bits of an element of 1, 2, 4 or 8 bytes as the machine has elements, in its byte order.
PTOISA_INLINE void ptoisa_put_bits(void *to, uint64_t bits, uint32_t size) {
    const uint32_t word = (uint32_t)bits;
    const uint16_t half = (uint16_t)bits;
    const uint8_t byte = (uint8_t)bits;
    switch (size) {
    case 1: memcpy(to, &byte, 1); break;
    case 2: memcpy(to, &half, 2); break;
    case 4: memcpy(to, &word, 4); break;
    default: memcpy(to, &bits, 8); break;
    }
}

// The bits that ptoisa_put_bits wrote.
PTOISA_INLINE uint64_t ptoisa_get_bits(const void *from, uint32_t size) {
    uint64_t bits;
    uint32_t word;
    uint16_t half;
    switch (size) {
    case 1: return *(const uint8_t *)from;
    case 2: memcpy(&half, from, 2); return half;
    case 4: memcpy(&word, from, 4); return word;
    default: memcpy(&bits, from, 8); return bits;
    }
}

// Element i of an array as a number, exactly but for 64-bit integers beyond 2^53.
PTOISA_INLINE double ptoisa_get_at(const void *data, ptoisa_dtype dtype, uint64_t i) {
    switch (dtype) {
    case PTOISA_F16: return ptoisa_f32_from_f16(((const uint16_t *)data)[i]);
    case PTOISA_BF16: return ptoisa_f32_from_bf16(((const uint16_t *)data)[i]);
    case PTOISA_F32: return ((const float *)data)[i];
    case PTOISA_F64: return ((const double *)data)[i];
    case PTOISA_I8: return ((const int8_t *)data)[i];
    case PTOISA_I16: return ((const int16_t *)data)[i];
    case PTOISA_I32: return ((const int32_t *)data)[i];
    case PTOISA_I64: return (double)((const int64_t *)data)[i];
    case PTOISA_U8: return ((const uint8_t *)data)[i];
    case PTOISA_U16: return ((const uint16_t *)data)[i];
    case PTOISA_U32: return ((const uint32_t *)data)[i];
    case PTOISA_U64: return (double)((const uint64_t *)data)[i];
    case PTOISA_BOOL: return ((const uint8_t *)data)[i] != 0;
    case PTOISA_DTYPE_NONE:
    case PTOISA_DTYPE_COUNT: break;
    }
    return 0;
}

PTOISA_INLINE double ptoisa_get(const ptoisa_tile *tile, uint32_t r, uint32_t c) {
    return ptoisa_get_at(tile->data, (ptoisa_dtype)tile->dtype, ptoisa_offset(tile, r, c));
}

#endif
