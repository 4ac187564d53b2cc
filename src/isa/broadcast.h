// Expands: instructions with one operand that is a column (one value for each row) or a row (one
// value for each column).
//
// A column is column-major R x 1; or row-major, with 32 bytes of copies of the value in each row or
// with one valid column: the first is read. Its valid rows are the destination's. Arithmetic, types
// and special values as in elementwise.h; the full operand may be the destination.

#ifndef PTOISA_BROADCAST_H
#define PTOISA_BROADCAST_H

#include "elementwise.h"

// -- copies ---------------------------------------------------------------------------------------

// Copies pattern rows over rows of d, from row on: as words, and the bytes that are left one by
// one. Each row has a word (or, if not is_scalar, a whole row) pitch words after the one before.
PTOISA_FN void ptoisa_expand_copy(const ptoisa_tile *d, uint32_t row, uint32_t rows,
                                  const uint32_t *pattern, size_t pitch, bool is_scalar) {
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype);
    size_t d_pitch = (size_t)d->cols * size, bytes = (size_t)d->valid_cols * size;
    uint8_t *data = (uint8_t *)d->data + row * d_pitch;
    ptoisa_map map;
    memset(&map, 0, sizeof map);
    map.d = data, map.d_pitch = d_pitch / 4;
    map.a = data, map.a_pitch = d_pitch / 4;
    map.b = pattern, map.b_pitch = pitch, map.is_scalar = is_scalar;
    map.rows = rows;
    map.cols = bytes / 4;
    ptoisa_map_run(&ptoisa_loops_COPY, PTOISA_U32, PTOISA_U32, map);
    size_t left = bytes % 4, at = bytes - left;
    for (uint32_t r = 0; r < rows && left > 0; r++) {
        const uint8_t *from = (const uint8_t *)(pattern + r * pitch) + (is_scalar ? 0 : at);
        memmove(data + r * d_pitch + at, from, left);
    }
}

// d[r][:] = s[r][0]. s may be d.
PTOISA_FN void ptoisa_trowexpand(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s) {
    if (PTOISA_CHECKED) {
        const ptoisa_op op = PTOISA_TROWEXPAND;
        if (!ptoisa_check_rows(core, op, "dst", d, PTOISA_SET_MAP, d->valid_rows, d->valid_cols) ||
            !ptoisa_check_operand(core, op, "src0", s, PTOISA_SET(d->dtype), PTOISA_VEC,
                                  d->valid_rows, d->valid_cols > 0)) {
            return;
        }
        if (s->layout != PTOISA_ROW_MAJOR && (s->layout != PTOISA_COL_MAJOR || s->cols != 1)) {
            ptoisa_fault(core, op, "src0 is neither row-major nor one column");
            return;
        }
    }
    ptoisa_issue(core, PTOISA_TROWEXPAND, d, s, NULL);
    if (core->is_dry) {
        return;
    }
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype), words[64];
    for (uint32_t row = 0; row < d->valid_rows && d->valid_cols > 0; row += 64) {
        uint32_t rows = ptoisa_least(d->valid_rows - row, 64);
        for (uint32_t r = 0; r < rows; r++) {
            uint64_t i = ptoisa_offset(s, row + r, 0);
            words[r] = size == 4   ? ((const uint32_t *)s->data)[i]
                       : size == 2 ? ((const uint16_t *)s->data)[i] * 0x00010001u
                                   : ((const uint8_t *)s->data)[i] * 0x01010101u;
        }
        ptoisa_expand_copy(d, row, rows, words, 1, true);
    }
}

// Is the tile one row of d's type, valid for all of its columns?
PTOISA_INLINE bool ptoisa_check_row(ptoisa_core *core, ptoisa_op op, const char *which,
                                    const ptoisa_tile *row, const ptoisa_tile *d) {
    return ptoisa_check_rows(core, op, which, row, PTOISA_SET(d->dtype), d->valid_rows > 0,
                             d->valid_cols);
}

// d[:][c] = s[0][c]. s may be d, or its first row.
PTOISA_FN void ptoisa_tcolexpand(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s) {
    if (PTOISA_CHECKED) {
        const ptoisa_op op = PTOISA_TCOLEXPAND;
        if (!ptoisa_check_rows(core, op, "dst", d, PTOISA_SET_MAP, d->valid_rows, d->valid_cols) ||
            !ptoisa_check_row(core, op, "src0", s, d)) {
            return;
        }
    }
    ptoisa_issue(core, PTOISA_TCOLEXPAND, d, s, NULL);
    if (!core->is_dry) {
        ptoisa_expand_copy(d, 0, d->valid_rows, (const uint32_t *)s->data, 0, false);
    }
}

// -- arithmetic -----------------------------------------------------------------------------------

// Is the tile a column for the rows of d?
PTOISA_FN bool ptoisa_check_column(ptoisa_core *core, ptoisa_op op, const char *which,
                                   const ptoisa_tile *column, const ptoisa_tile *d) {
    if (!ptoisa_check_operand(core, op, which, column, PTOISA_SET(d->dtype), PTOISA_VEC,
                              d->valid_rows, 1)) {
        return false;
    }
    uint32_t block = 32 / ptoisa_dtype_size((ptoisa_dtype)column->dtype);
    bool is_column = column->layout == PTOISA_COL_MAJOR && column->valid_cols == 1;
    bool is_block = column->layout == PTOISA_ROW_MAJOR &&
                    (column->valid_cols == 1 || column->valid_cols == block);
    if (!is_column && !is_block) {
        return ptoisa_fault(core, op,
                            "%s has %u valid columns: it must be a column, or row-major of 1 or %u",
                            which, column->valid_cols, block);
    }
    if (column->valid_rows != d->valid_rows) {
        return ptoisa_fault(core, op, "%s has %u valid rows, dst %u", which, column->valid_rows,
                            d->valid_rows);
    }
    return true;
}

// d = full op the column, or the row.
PTOISA_FN void ptoisa_expand(ptoisa_core *core, ptoisa_op op, ptoisa_loops *loops, uint32_t dtypes,
                             const ptoisa_tile *d, const ptoisa_tile *full, const ptoisa_tile *line,
                             bool is_column) {
    if (PTOISA_CHECKED && (!ptoisa_check_maps(core, op, dtypes, d, full, NULL, NULL) ||
                           !(is_column ? ptoisa_check_column(core, op, "src1", line, d)
                                       : ptoisa_check_row(core, op, "src1", line, d)))) {
        return;
    }
    ptoisa_issue(core, op, d, full, line);
    if (core->is_dry) {
        return;
    }
    ptoisa_map map;
    memset(&map, 0, sizeof map);
    map.d = d->data, map.d_pitch = d->cols;
    map.a = full->data, map.a_pitch = full->cols;
    map.b = line->data, map.is_scalar = is_column;
    map.b_pitch = !is_column ? 0 : line->layout == PTOISA_COL_MAJOR ? 1 : line->cols;
    map.rows = d->valid_rows;
    map.cols = d->valid_cols;
    ptoisa_map_run(loops, (ptoisa_dtype)d->dtype, (ptoisa_dtype)d->dtype, map);
}

#define PTOISA_DEFINE_EXPAND(lower, upper, dtypes)                                                 \
    PTOISA_FN void ptoisa_trowexpand##lower(ptoisa_core *core, const ptoisa_tile *d,               \
                                            const ptoisa_tile *full, const ptoisa_tile *column) {  \
        ptoisa_expand(core, PTOISA_TROWEXPAND##upper, &ptoisa_loops_##upper, dtypes, d, full,      \
                      column, true);                                                               \
    }                                                                                              \
    PTOISA_FN void ptoisa_tcolexpand##lower(ptoisa_core *core, const ptoisa_tile *d,               \
                                            const ptoisa_tile *full, const ptoisa_tile *row) {     \
        ptoisa_expand(core, PTOISA_TCOLEXPAND##upper, &ptoisa_loops_##upper, dtypes, d, full, row, \
                      false);                                                                      \
    }

PTOISA_DEFINE_EXPAND(add, ADD, PTOISA_SET_MAP)
PTOISA_DEFINE_EXPAND(sub, SUB, PTOISA_SET_MAP)
PTOISA_DEFINE_EXPAND(mul, MUL, PTOISA_SET_MAP)
PTOISA_DEFINE_EXPAND(div, DIV, PTOISA_SET_MAP)
PTOISA_DEFINE_EXPAND(max, MAX, PTOISA_SET_MAP)
PTOISA_DEFINE_EXPAND(min, MIN, PTOISA_SET_MAP)
PTOISA_DEFINE_EXPAND(expdif, EXPDIF, PTOISA_SET_MAP_FLOAT)  // exp(full - line)

#endif
