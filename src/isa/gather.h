// Elements and rows read from, or written to, the places that an index names: TGATHER by mask and
// by index, TSCATTER, MGATHER, MSCATTER.
//
// An element index counts the elements of the other tile as it is allocated, rows x cols, row after
// row. One that is outside is a fault in checked builds, and then nothing is done; otherwise it
// reads 0 and writes nothing.

#ifndef PTOISA_GATHER_H
#define PTOISA_GATHER_H

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

// The tile and the table agree, and idx, a row or a column of indices, names a row of the table for
// every row of the tile.
PTOISA_FN bool ptoisa_check_table(ptoisa_core *core, ptoisa_op op, const char *which,
                                  const ptoisa_tile *tile, const ptoisa_global *table,
                                  const ptoisa_tile *idx) {
    const uint32_t rows = tile->valid_rows;
    if (!ptoisa_check_row_major(core, op, which, tile,
                                PTOISA_SET_1_BYTE | PTOISA_SET_2_BYTES | PTOISA_SET_4_BYTES, 0,
                                0) ||
        !ptoisa_check_operand(core, op, "idx", idx, PTOISA_SET_INDEX, PTOISA_VEC, 0, 0)) {
        return false;
    }
    if (table->dtype != tile->dtype) {
        return ptoisa_fault(core, op, "%s is %s, the table %s", which,
                            ptoisa_dtype_name((ptoisa_dtype)tile->dtype),
                            ptoisa_dtype_name((ptoisa_dtype)table->dtype));
    }
    if (tile->valid_cols > table->shape[4]) {
        return ptoisa_fault(core, op, "%s has %u valid columns, the table %lld", which,
                            tile->valid_cols, (long long)table->shape[4]);
    }
    const bool is_row = idx->valid_rows == 1;
    if ((!is_row && idx->valid_cols != 1) || (is_row ? idx->valid_cols : idx->valid_rows) < rows) {
        return ptoisa_fault(core, op, "idx has %u x %u valid elements for %u rows", idx->valid_rows,
                            idx->valid_cols, rows);
    }
    if (!core->is_dry && table->data == NULL && rows > 0) {
        return ptoisa_fault(core, op, "the table has no memory");
    }
    return ptoisa_check_indices(core, op, idx, is_row ? 1 : rows, is_row ? rows : 1,
                                (uint64_t)ptoisa_global_rows(table));
}

// Row r of a tile's row of the table, or NULL if its index is outside.
PTOISA_INLINE uint8_t *ptoisa_table_row(const ptoisa_global *table, const ptoisa_tile *idx,
                                        uint32_t r) {
    const uint64_t at = idx->valid_rows == 1 ? ptoisa_offset(idx, 0, r) : ptoisa_offset(idx, r, 0);
    const uint64_t index =
        ptoisa_index_at((const uint8_t *)idx->data, (ptoisa_dtype)idx->dtype, at);
    if (index >= (uint64_t)ptoisa_global_rows(table)) {
        return NULL;
    }
    return (uint8_t *)table->data + ptoisa_global_row(table, (int64_t)index) *
                                        (int64_t)ptoisa_dtype_size((ptoisa_dtype)table->dtype);
}

// d[r] = row idx[r] of a table in global memory. idx: one row or one column.
PTOISA_FN void ptoisa_mgather(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_global *table,
                              const ptoisa_tile *idx) {
    if (PTOISA_CHECKED && !ptoisa_check_table(core, PTOISA_MGATHER, "d", d, table, idx)) {
        return;
    }
    ptoisa_issue(core, PTOISA_MGATHER, d, NULL, idx);
    if (core->is_dry) {
        return;
    }
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype);
    for (uint32_t r = 0; r < d->valid_rows; r++) {
        uint8_t *to = ptoisa_row_at(d, r);
        const uint8_t *from = ptoisa_table_row(table, idx, r);
        if (from == NULL) {
            memset(to, 0, (size_t)d->valid_cols * size);
        } else if (table->stride[4] == 1) {
            memcpy(to, from, (size_t)d->valid_cols * size);
        } else {
            for (uint32_t c = 0; c < d->valid_cols; c++) {
                ptoisa_move_element(to + c * size, from + c * table->stride[4] * (int64_t)size,
                                    size);
            }
        }
    }
}

// Row idx[r] of a table in global memory = s[r], in the order of r.
PTOISA_FN void ptoisa_mscatter(ptoisa_core *core, const ptoisa_global *table, const ptoisa_tile *s,
                               const ptoisa_tile *idx) {
    if (PTOISA_CHECKED && !ptoisa_check_table(core, PTOISA_MSCATTER, "s", s, table, idx)) {
        return;
    }
    ptoisa_issue(core, PTOISA_MSCATTER, NULL, s, idx);
    if (core->is_dry) {
        return;
    }
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)s->dtype);
    for (uint32_t r = 0; r < s->valid_rows; r++) {
        const uint8_t *from = ptoisa_row_at(s, r);
        uint8_t *to = ptoisa_table_row(table, idx, r);
        for (uint32_t c = 0; to != NULL && c < s->valid_cols; c++) {
            ptoisa_move_element(to + c * table->stride[4] * (int64_t)size, from + c * size, size);
        }
    }
}

#endif
