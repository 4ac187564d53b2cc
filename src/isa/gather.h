// Elements and rows read from, or written to, the places that an index names: TGATHER by mask and
// by index, TSCATTER, MGATHER, MSCATTER; blocks of 32 bytes: TGATHERB.
//
// An element index counts the elements of the other tile as it is allocated, rows x cols, row after
// row. One that is outside is a fault in checked builds, and then nothing is done; otherwise it
// reads 0 and writes nothing.

#ifndef PTOISA_GATHER_H
#define PTOISA_GATHER_H

#include "move.h"
#include "rows.h"

// Index i of an array of i16, u16, i32 or u32; a negative one is larger than any size.
PTOISA_INLINE uint64_t ptoisa_index_at(const uint8_t *indices, ptoisa_dtype dtype, uint64_t i) {
    switch (dtype) {
    case PTOISA_I16: return (uint64_t)(int64_t)((const int16_t *)(const void *)indices)[i];
    case PTOISA_U16: return ((const uint16_t *)(const void *)indices)[i];
    case PTOISA_I32: return (uint64_t)(int64_t)((const int32_t *)(const void *)indices)[i];
    default: return ((const uint32_t *)(const void *)indices)[i];
    }
}

// Are all indices in the first rows x cols of a tile below limit?
PTOISA_FN bool ptoisa_check_indices(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *idx,
                                    uint32_t rows, uint32_t cols, uint64_t limit) {
    for (uint32_t r = 0; r < rows && !core->is_dry; r++) {
        for (uint32_t c = 0; c < cols; c++) {
            uint64_t index = ptoisa_index_at((const uint8_t *)idx->data, (ptoisa_dtype)idx->dtype,
                                             ptoisa_offset(idx, r, c));
            if (index >= limit) {
                return ptoisa_fault(core, op, "idx at (%u, %u) is %lld, of %llu", r, c,
                                    (long long)index, (unsigned long long)limit);
            }
        }
    }
    return true;
}

// Moves one element of 1, 2 or 4 bytes.
PTOISA_ALWAYS void ptoisa_move_element(uint8_t *to, const uint8_t *from, uint32_t size) {
    if (size == 4) {
        memcpy(to, from, 4);
    } else if (size == 2) {
        memcpy(to, from, 2);
    } else {
        *to = *from;
    }
}

// -- TGATHER --------------------------------------------------------------------------------------

// A pattern takes column first of every step.
PTOISA_INLINE void ptoisa_pattern_of(ptoisa_pattern pattern, uint32_t *first, uint32_t *step) {
    *step = pattern == PTOISA_P1111 ? 1 : pattern >= PTOISA_P0001 ? 4 : 2;
    *first = pattern == PTOISA_P1111   ? 0
             : pattern >= PTOISA_P0001 ? (uint32_t)pattern - PTOISA_P0001
                                       : (uint32_t)pattern - PTOISA_P0101;
}

// Elements of d, row after row = those columns of each row of s that the pattern takes: all of them
// lie together, so rows stay rows only where one of s fills one of d. All columns of d are valid.
PTOISA_FN void ptoisa_tgather_mask(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                                   ptoisa_pattern pattern) {
    const ptoisa_op op = PTOISA_TGATHERMASK;
    uint32_t first, step;
    ptoisa_pattern_of(pattern, &first, &step);
    const uint32_t taken = (s->valid_cols + step - 1 - first) / step;
    if (PTOISA_CHECKED) {
        if ((uint32_t)pattern > PTOISA_P1111) {
            ptoisa_fault(core, op, "there is no pattern %d", (int)pattern);
            return;
        }
        if (!ptoisa_check_row_major(core, op, "d", d, PTOISA_SET_2_BYTES | PTOISA_SET_4_BYTES, 0,
                                    0)) {
            return;
        }
        const uint32_t types =
            PTOISA_SET_2_BYTES >> d->dtype & 1 ? PTOISA_SET_2_BYTES : PTOISA_SET_4_BYTES;
        if (!ptoisa_check_row_major(core, op, "s", s, types, 0, 0)) {
            return;
        }
        if (d->valid_cols != d->cols) {
            ptoisa_fault(core, op, "d has %u valid columns of %u", d->valid_cols, d->cols);
            return;
        }
        if ((uint64_t)taken * s->valid_rows > (uint64_t)d->valid_rows * d->cols) {
            ptoisa_fault(core, op, "%u are taken of each of %u rows of s, and d has %u x %u", taken,
                         s->valid_rows, d->valid_rows, d->cols);
            return;
        }
    }
    ptoisa_issue(core, op, d, s, NULL);
    if (core->is_dry) {
        return;
    }
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype);
    uint8_t *to = (uint8_t *)d->data;
    for (uint32_t r = 0; r < s->valid_rows; r++) {
        const uint8_t *from = ptoisa_row_at(s, r) + (uint64_t)first * size;
        for (uint32_t c = 0; c < taken; c++, to += size) {
            ptoisa_move_element(to, from + (uint64_t)c * step * size, size);
        }
    }
}

// d[r][c] = element idx[r][c] of s. t is scratch that the device needs, and may be NULL here.
PTOISA_FN void ptoisa_tgather(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                              const ptoisa_tile *idx, const ptoisa_tile *t) {
    const ptoisa_op op = PTOISA_TGATHER;
    const uint64_t limit = (uint64_t)s->rows * s->cols;
    if (PTOISA_CHECKED) {
        const uint32_t rows = d->valid_rows, cols = d->valid_cols;
        if (!ptoisa_check_row_major(core, op, "d", d, PTOISA_SET_2_BYTES | PTOISA_SET_4_BYTES, 0,
                                    0) ||
            !ptoisa_check_row_major(core, op, "s", s, PTOISA_SET(d->dtype), 0, 0) ||
            !ptoisa_check_row_major(core, op, "idx", idx, PTOISA_SET_INDEX, rows, cols) ||
            (t && !ptoisa_check_tile(core, op, "t", t)) ||
            !ptoisa_check_indices(core, op, idx, rows, cols, limit)) {
            return;
        }
    }
    ptoisa_issue(core, op, d, s, idx);
    if (core->is_dry) {
        return;
    }
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype);
    const uint8_t *from = (const uint8_t *)s->data;
    const uint8_t zero[4] = {0, 0, 0, 0};
    for (uint32_t r = 0; r < d->valid_rows; r++) {
        uint8_t *to = ptoisa_row_at(d, r);
        const uint8_t *indices = ptoisa_row_at(idx, r);
        for (uint32_t c = 0; c < d->valid_cols; c++) {
            uint64_t index = ptoisa_index_at(indices, (ptoisa_dtype)idx->dtype, c);
            ptoisa_move_element(to + c * size, index < limit ? from + index * size : zero, size);
        }
    }
}

// Block b of row r of d is the 32 bytes of s, in the order of memory, that begin at byte
// offsets[r][b]. A last block that d does not hold whole is cut off.
PTOISA_FN void ptoisa_tgatherb(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                               const ptoisa_tile *offsets) {
    const ptoisa_op op = PTOISA_TGATHERB;
    const uint32_t bytes = d->valid_cols * ptoisa_dtype_size((ptoisa_dtype)d->dtype);
    const uint32_t blocks = (bytes + 31) / 32;
    const uint64_t limit = ptoisa_tile_bytes(s);
    if (PTOISA_CHECKED) {
        const uint32_t types = PTOISA_SET_1_BYTE | PTOISA_SET_2_BYTES | PTOISA_SET_4_BYTES;
        if (!ptoisa_check_row_major(core, op, "d", d, types, 0, 0) ||
            !ptoisa_check_row_major(core, op, "s", s, PTOISA_SET(d->dtype), 0, 0) ||
            !ptoisa_check_row_major(core, op, "offsets", offsets, PTOISA_SET(PTOISA_U32),
                                    d->valid_rows, blocks) ||
            !ptoisa_check_indices(core, op, offsets, d->valid_rows, blocks, limit - 31)) {
            return;
        }
    }
    ptoisa_issue(core, op, d, s, offsets);
    for (uint32_t r = 0; r < d->valid_rows && !core->is_dry; r++) {
        uint8_t *to = ptoisa_row_at(d, r);
        for (uint32_t b = 0; b < blocks; b++) {
            uint64_t at = ptoisa_index_at(ptoisa_row_at(offsets, r), PTOISA_U32, b);
            uint32_t n = bytes - 32 * b < 32 ? bytes - 32 * b : 32;
            if (at + 32 <= limit) {
                memcpy(to + 32 * b, (const uint8_t *)s->data + at, n);
            } else {
                memset(to + 32 * b, 0, n);
            }
        }
    }
}

// -- TSCATTER -------------------------------------------------------------------------------------

// Element idx[r][c] of d = s[r][c], row after row: of two with one index the later stays. Indices
// have the width of the elements, 2 bytes at least.
PTOISA_FN void ptoisa_tscatter(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                               const ptoisa_tile *idx) {
    const ptoisa_op op = PTOISA_TSCATTER;
    const uint64_t limit = (uint64_t)d->rows * d->cols;
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)s->dtype);
    if (PTOISA_CHECKED) {
        const uint32_t rows = s->valid_rows, cols = s->valid_cols;
        const uint32_t indices =
            size == 4 ? PTOISA_SET_INDEX : PTOISA_SET(PTOISA_I16) | PTOISA_SET(PTOISA_U16);
        if (!ptoisa_check_row_major(core, op, "s", s,
                                    PTOISA_SET_1_BYTE | PTOISA_SET_2_BYTES | PTOISA_SET_4_BYTES, 0,
                                    0) ||
            !ptoisa_check_row_major(core, op, "d", d, PTOISA_SET(s->dtype), 0, 0) ||
            !ptoisa_check_row_major(core, op, "idx", idx, indices, rows, cols) ||
            !ptoisa_check_indices(core, op, idx, rows, cols, limit)) {
            return;
        }
    }
    ptoisa_issue(core, op, d, s, idx);
    if (core->is_dry) {
        return;
    }
    uint8_t *to = (uint8_t *)d->data;
    for (uint32_t r = 0; r < s->valid_rows; r++) {
        const uint8_t *from = ptoisa_row_at(s, r), *indices = ptoisa_row_at(idx, r);
        for (uint32_t c = 0; c < s->valid_cols; c++) {
            uint64_t index = ptoisa_index_at(indices, (ptoisa_dtype)idx->dtype, c);
            if (index < limit) {
                ptoisa_move_element(to + index * size, from + c * size, size);
            }
        }
    }
}

// -- MGATHER, MSCATTER ----------------------------------------------------------------------------
//
// The places of a table in global memory are its rows, or its elements, row after row. Of several
// elements that are scattered to one place, the last in the order of the tile stays, or all are
// added, or the extreme is kept: atomically, as other cores may scatter to the same table.

typedef struct ptoisa_table {
    bool is_elements;        // idx names an element of the table for each of the tile
    ptoisa_outside outside;  // of MGATHER
    ptoisa_scatter scatter;  // of MSCATTER
} ptoisa_table;

PTOISA_INLINE uint64_t ptoisa_table_size(const ptoisa_global *table, const ptoisa_table *how) {
    const uint64_t rows = (uint64_t)ptoisa_global_rows(table);
    return how->is_elements ? rows * (uint64_t)table->shape[4] : rows;
}

// The tile and the table agree, and idx names a place of the table for every element of the tile;
// or, as a row or a column of indices, for every row.
PTOISA_FN bool ptoisa_check_table(ptoisa_core *core, ptoisa_op op, const char *which,
                                  const ptoisa_tile *tile, const ptoisa_global *table,
                                  const ptoisa_tile *idx, const ptoisa_table *how) {
    const uint32_t rows = tile->valid_rows, cols = tile->valid_cols;
    const bool is_l1 = op == PTOISA_MGATHER && tile->memory == PTOISA_MAT && !how->is_elements;
    const uint32_t types = PTOISA_SET_1_BYTE | PTOISA_SET_2_BYTES | PTOISA_SET_4_BYTES;
    if (is_l1 ? !ptoisa_check_operand(core, op, which, tile, types, PTOISA_MAT, 0, 0)
              : !ptoisa_check_row_major(core, op, which, tile, types, 0, 0)) {
        return false;
    }
    if (!ptoisa_check_operand(core, op, "idx", idx, PTOISA_SET_INDEX, PTOISA_VEC, 0, 0)) {
        return false;
    }
    if (table->dtype != tile->dtype) {
        return ptoisa_fault(core, op, "%s is %s, the table %s", which,
                            ptoisa_dtype_name((ptoisa_dtype)tile->dtype),
                            ptoisa_dtype_name((ptoisa_dtype)table->dtype));
    }
    if (how->scatter != PTOISA_SCATTER_REPLACE &&
        (tile->dtype == PTOISA_BOOL || how->scatter > PTOISA_SCATTER_MIN)) {
        return ptoisa_fault(core, op, "%s cannot be scattered so",
                            ptoisa_dtype_name((ptoisa_dtype)tile->dtype));
    }
    if (!how->is_elements && cols > table->shape[4]) {
        return ptoisa_fault(core, op, "%s has %u valid columns, the table %lld", which, cols,
                            (long long)table->shape[4]);
    }
    const bool is_row = idx->valid_rows == 1 && !how->is_elements;
    if (how->is_elements ? idx->valid_rows < rows || idx->valid_cols < cols
                         : (!is_row && idx->valid_cols != 1) ||
                               (is_row ? idx->valid_cols : idx->valid_rows) < rows) {
        return ptoisa_fault(core, op, "idx has %u x %u valid elements for %u %s%u", idx->valid_rows,
                            idx->valid_cols, rows, how->is_elements ? "x " : "rows of ", cols);
    }
    const uint64_t size = ptoisa_table_size(table, how);
    if (rows > 0 && ((!core->is_dry && table->data == NULL) || size == 0)) {
        return ptoisa_fault(core, op, "the table has no memory");
    }
    return how->outside != PTOISA_OUTSIDE_FAULT ||
           ptoisa_check_indices(core, op, idx, is_row ? 1 : rows,
                                is_row             ? rows
                                : how->is_elements ? cols
                                                   : 1,
                                size);
}

// Where the place is that idx names at (r, c), of `size` places, or NULL: outside.
PTOISA_INLINE uint8_t *ptoisa_table_at(const ptoisa_global *table, const ptoisa_tile *idx,
                                       uint32_t r, uint32_t c, const ptoisa_table *how,
                                       uint64_t size) {
    const bool is_row = idx->valid_rows == 1 && !how->is_elements;
    const uint64_t at = is_row ? ptoisa_offset(idx, 0, r) : ptoisa_offset(idx, r, c);
    uint64_t index = ptoisa_index_at((const uint8_t *)idx->data, (ptoisa_dtype)idx->dtype, at);
    if (index >= size) {
        const bool is_negative = index > INT64_MAX;
        if (size == 0 || how->outside == PTOISA_OUTSIDE_FAULT ||
            how->outside == PTOISA_OUTSIDE_ZERO) {
            return NULL;
        }
        index = how->outside == PTOISA_OUTSIDE_CLAMP ? is_negative ? 0 : size - 1
                : is_negative                        ? size - 1 - ~index % size
                                                     : index % size;
    }
    int64_t offset = 0;
    if (how->is_elements) {
        const uint64_t cols = (uint64_t)table->shape[4];
        offset = (int64_t)(index % cols) * table->stride[4];
        index /= cols;
    }
    offset += ptoisa_global_row(table, (int64_t)index);
    return (uint8_t *)table->data + offset * (int64_t)ptoisa_dtype_size((ptoisa_dtype)table->dtype);
}

// Gathers rows, or elements, of a table in global memory into UB; rows also into L1, in any layout.
PTOISA_FN void ptoisa_mgather_how(ptoisa_core *core, const ptoisa_tile *d,
                                  const ptoisa_global *table, const ptoisa_tile *idx,
                                  const ptoisa_table *how) {
    if (PTOISA_CHECKED && !ptoisa_check_table(core, PTOISA_MGATHER, "d", d, table, idx, how)) {
        return;
    }
    ptoisa_issue(core, PTOISA_MGATHER, d, NULL, idx);
    if (core->is_dry) {
        return;
    }
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype);
    const uint8_t zero[4] = {0, 0, 0, 0};
    const uint64_t places = ptoisa_table_size(table, how);
    const bool is_plain = d->layout == PTOISA_ROW_MAJOR && table->stride[4] == 1;
    for (uint32_t r = 0; r < d->valid_rows; r++) {
        const uint8_t *from =
            how->is_elements ? NULL : ptoisa_table_at(table, idx, r, 0, how, places);
        if (from && is_plain) {
            memcpy(ptoisa_row_at(d, r), from, (size_t)d->valid_cols * size);
            continue;
        }
        for (uint32_t c = 0; c < d->valid_cols; c++) {
            const uint8_t *element = how->is_elements
                                         ? ptoisa_table_at(table, idx, r, c, how, places)
                                     : from ? from + c * table->stride[4] * (int64_t)size
                                            : NULL;
            ptoisa_move_element((uint8_t *)d->data + ptoisa_offset(d, r, c) * size,
                                element ? element : zero, size);
        }
    }
}

// The bits of now and x, added, or the greater or less of both: integers wrap, any NaN is a NaN.
PTOISA_FN uint32_t ptoisa_combined(ptoisa_dtype dtype, ptoisa_scatter how, uint32_t now,
                                   uint32_t x) {
    const uint32_t size = ptoisa_dtype_size(dtype);
    uint64_t words[2];  // as long as the longest element type
    ptoisa_put_bits(&words[0], now, size);
    ptoisa_put_bits(&words[1], x, size);
    const double a = ptoisa_get_at(&words[0], dtype, 0), b = ptoisa_get_at(&words[1], dtype, 0);
    if (how != PTOISA_SCATTER_ADD) {
        bool is_now = a != a || (b == b && (how == PTOISA_SCATTER_MAX ? a >= b : a <= b));
        return is_now ? now : x;
    }
    const float sum = (float)a + (float)b;
    switch (dtype) {
    case PTOISA_F16: return ptoisa_f16_from_f32(sum);
    case PTOISA_BF16: return ptoisa_bf16_from_f32(sum);
    case PTOISA_F32: return ptoisa_bits_from_f32(sum);
    default: return now + x;
    }
}

#define PTOISA_COMBINE_LOOP(word)                                                                  \
    {                                                                                              \
        word now = __atomic_load_n((word *)(void *)at, __ATOMIC_RELAXED), next;                    \
        do {                                                                                       \
            next = (word)ptoisa_combined(dtype, how, now, x);                                      \
        } while (!__atomic_compare_exchange_n((word *)(void *)at, &now, next, true,                \
                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED));                \
        break;                                                                                     \
    }

// Puts one element into global memory.
PTOISA_FN void ptoisa_combine_at(ptoisa_dtype dtype, ptoisa_scatter how, uint8_t *at,
                                 const uint8_t *value) {
    const uint32_t size = ptoisa_dtype_size(dtype);
    if (how == PTOISA_SCATTER_REPLACE) {
        ptoisa_move_element(at, value, size);
        return;
    }
    const uint32_t x = (uint32_t)ptoisa_get_bits(value, size);
    switch (size) {
    case 1: PTOISA_COMBINE_LOOP(uint8_t)
    case 2: PTOISA_COMBINE_LOOP(ptoisa_any_u16)
    default: PTOISA_COMBINE_LOOP(ptoisa_any_u32)
    }
}

PTOISA_FN void ptoisa_mscatter_how(ptoisa_core *core, const ptoisa_global *table,
                                   const ptoisa_tile *s, const ptoisa_tile *idx,
                                   const ptoisa_table *how) {
    if (PTOISA_CHECKED && !ptoisa_check_table(core, PTOISA_MSCATTER, "s", s, table, idx, how)) {
        return;
    }
    ptoisa_issue(core, PTOISA_MSCATTER, NULL, s, idx);
    if (core->is_dry) {
        return;
    }
    const ptoisa_dtype dtype = (ptoisa_dtype)s->dtype;
    const uint32_t size = ptoisa_dtype_size(dtype);
    const uint64_t places = ptoisa_table_size(table, how);
    for (uint32_t r = 0; r < s->valid_rows; r++) {
        const uint8_t *from = ptoisa_row_at(s, r);
        uint8_t *row = how->is_elements ? NULL : ptoisa_table_at(table, idx, r, 0, how, places);
        if (row && table->stride[4] == 1 && how->scatter == PTOISA_SCATTER_REPLACE) {
            memcpy(row, from, (size_t)s->valid_cols * size);
            continue;
        }
        for (uint32_t c = 0; c < s->valid_cols; c++) {
            uint8_t *to = how->is_elements ? ptoisa_table_at(table, idx, r, c, how, places)
                          : row            ? row + c * table->stride[4] * (int64_t)size
                                           : NULL;
            if (to) {
                ptoisa_combine_at(dtype, how->scatter, to, from + c * size);
            }
        }
    }
}

// d[r] = row idx[r] of a table in global memory. idx: one row or one column.
PTOISA_FN void ptoisa_mgather(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_global *table,
                              const ptoisa_tile *idx) {
    const ptoisa_table how = {false, PTOISA_OUTSIDE_FAULT, PTOISA_SCATTER_REPLACE};
    ptoisa_mgather_how(core, d, table, idx, &how);
}

// The same with indices that may be outside; is_elements: d[r][c] = element idx[r][c].
PTOISA_FN void ptoisa_mgather_by(ptoisa_core *core, const ptoisa_tile *d,
                                 const ptoisa_global *table, const ptoisa_tile *idx,
                                 bool is_elements, ptoisa_outside outside) {
    const ptoisa_table how = {is_elements, outside, PTOISA_SCATTER_REPLACE};
    ptoisa_mgather_how(core, d, table, idx, &how);
}

// Row idx[r] of a table in global memory = s[r], in the order of r.
PTOISA_FN void ptoisa_mscatter(ptoisa_core *core, const ptoisa_global *table, const ptoisa_tile *s,
                               const ptoisa_tile *idx) {
    const ptoisa_table how = {false, PTOISA_OUTSIDE_FAULT, PTOISA_SCATTER_REPLACE};
    ptoisa_mscatter_how(core, table, s, idx, &how);
}

// The same with sums or extremes; is_elements: element idx[r][c] of the table and s[r][c].
PTOISA_FN void ptoisa_mscatter_by(ptoisa_core *core, const ptoisa_global *table,
                                  const ptoisa_tile *s, const ptoisa_tile *idx, bool is_elements,
                                  ptoisa_scatter scatter) {
    const ptoisa_table how = {is_elements, PTOISA_OUTSIDE_FAULT, scatter};
    ptoisa_mscatter_how(core, table, s, idx, &how);
}

#endif
