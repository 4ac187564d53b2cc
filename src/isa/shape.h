// Instructions that rearrange or make elements: transposes, fills, pads, joins, ramps, triangles;
// and the two that only look at a tile in another way, TSUBVIEW and TRESHAPE, which take no time.

#ifndef PTOISA_SHAPE_H
#define PTOISA_SHAPE_H

#include "move.h"

// -- checks ---------------------------------------------------------------------------------------

// Is the tile a row-major one in UB, of a set of types, valid at least for rows x cols?
PTOISA_FN bool ptoisa_check_shape_rows(ptoisa_core *core, ptoisa_op op, const char *which,
                                       const ptoisa_tile *tile, uint32_t dtypes, uint32_t rows,
                                       uint32_t cols) {
    if (!ptoisa_check_operand(core, op, which, tile, dtypes, PTOISA_VEC, rows, cols)) {
        return false;
    }
    return tile->layout == PTOISA_ROW_MAJOR || ptoisa_fault(core, op, "%s is not row-major", which);
}

PTOISA_FN bool ptoisa_check_same_dtype(ptoisa_core *core, ptoisa_op op, const char *which,
                                       const ptoisa_tile *tile, const ptoisa_tile *d) {
    return tile->dtype == d->dtype || ptoisa_fault(core, op, "%s is %s, d is %s", which,
                                                   ptoisa_dtype_name((ptoisa_dtype)tile->dtype),
                                                   ptoisa_dtype_name((ptoisa_dtype)d->dtype));
}

// Can the number be an element of the type?
PTOISA_FN bool ptoisa_check_scalar(ptoisa_core *core, ptoisa_op op, double x, ptoisa_dtype dtype) {
    if (ptoisa_dtype_is_float(dtype)) {
        return true;
    }
    uint64_t element;
    ptoisa_put_bits(&element, ptoisa_bits_of(x, dtype), ptoisa_dtype_size(dtype));
    return ptoisa_get_at(&element, dtype, 0) == x ||
           ptoisa_fault(core, op, "%s is no %s", pwsp_general(x, 6).text, ptoisa_dtype_name(dtype));
}

PTOISA_FN bool ptoisa_check_trans(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                                  const ptoisa_tile *t) {
    const ptoisa_op op = PTOISA_TTRANS;
    if (!ptoisa_check_shape_rows(core, op, "d", d, PTOISA_SET_124, 0, 0) ||
        !ptoisa_check_shape_rows(core, op, "s", s, PTOISA_SET_124, 0, 0) ||
        !ptoisa_check_same_dtype(core, op, "s", s, d)) {
        return false;
    }
    if (d->rows < s->valid_cols || d->cols < s->valid_rows) {
        return ptoisa_fault(core, op, "d of %u x %u elements does not hold %u x %u of s transposed",
                            d->rows, d->cols, s->valid_cols, s->valid_rows);
    }
    if (!core->is_dry && d->data == s->data) {
        return ptoisa_fault(core, op, "d and s are at one address");
    }
    if (t == NULL) {
        return ptoisa_fault(core, op, "t is missing");
    }
    if (!ptoisa_check_operand(core, op, "t", t, PTOISA_SET_124, PTOISA_VEC, 0, 0) ||
        !ptoisa_check_same_dtype(core, op, "t", t, d)) {
        return false;
    }
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)s->dtype), step = size == 1 ? 32 : 16;
    uint64_t need = (uint64_t)s->valid_cols * ((s->valid_rows + step - 1) / step * step) * size;
    return ptoisa_tile_bytes(t) >= need ||
           ptoisa_fault(core, op, "t has %llu bytes, less than %llu",
                        (unsigned long long)ptoisa_tile_bytes(t), (unsigned long long)need);
}

typedef enum ptoisa_fillpad_form {
    PTOISA_FILLPAD_COPY,
    PTOISA_FILLPAD_INPLACE,
    PTOISA_FILLPAD_EXPAND
} ptoisa_fillpad_form;

PTOISA_FN bool ptoisa_check_fillpad(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                                    ptoisa_fillpad_form form) {
    const ptoisa_op op = PTOISA_TFILLPAD;
    bool is_mat = d->memory == PTOISA_MAT;
    if (!ptoisa_check_operand(core, op, "d", d, PTOISA_SET_124, is_mat ? PTOISA_MAT : PTOISA_VEC, 0,
                              0) ||
        !ptoisa_check_operand(core, op, "s", s, PTOISA_SET_124, (ptoisa_memory)d->memory, 0, 0) ||
        !ptoisa_check_same_dtype(core, op, "s", s, d)) {
        return false;
    }
    if (d->pad == PTOISA_PAD_NULL || (is_mat && d->pad != PTOISA_PAD_ZERO)) {
        return ptoisa_fault(core, op, "d's pad value is %s",
                            is_mat ? "not Zero, which L1 needs" : "Null");
    }
    uint32_t layout = is_mat ? PTOISA_NZ : PTOISA_ROW_MAJOR;
    if (d->layout != layout || s->layout != layout) {
        return ptoisa_fault(core, op, "%s is not %s", d->layout != layout ? "d" : "s",
                            is_mat ? "NZ" : "row-major");
    }
    bool is_smaller = d->rows < s->rows || d->cols < s->cols;
    if (is_smaller ||
        (form != PTOISA_FILLPAD_EXPAND && (d->rows != s->rows || d->cols != s->cols))) {
        return ptoisa_fault(core, op, "d has %u x %u elements, s %u x %u", d->rows, d->cols,
                            s->rows, s->cols);
    }
    if (form == PTOISA_FILLPAD_INPLACE && d->data != s->data) {
        return ptoisa_fault(core, op, "in place, and d is at %p and s at %p", d->data, s->data);
    }
    if (!core->is_dry && d->data == s->data && (d->cols != s->cols || d->rows != s->rows)) {
        return ptoisa_fault(core, op, "d is larger than s and at its address");
    }
    return true;
}

// -- transposes, fills, pads ----------------------------------------------------------------------

// d[c][r] = s[r][c] over the valid region of s.
PTOISA_FN void ptoisa_ttrans(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                             const ptoisa_tile *t) {
    if (PTOISA_CHECKED && !ptoisa_check_trans(core, d, s, t)) {
        return;
    }
    ptoisa_issue(core, PTOISA_TTRANS, d, s, NULL);
    if (!core->is_dry) {
        ptoisa_copy(ptoisa_view_of(d), ptoisa_view_swap(ptoisa_view_of(s)), s->valid_cols,
                    s->valid_rows, ptoisa_dtype_size((ptoisa_dtype)d->dtype));
    }
}

// d = x over the valid region of d.
PTOISA_FN void ptoisa_texpands(ptoisa_core *core, const ptoisa_tile *d, double x) {
    const ptoisa_op op = PTOISA_TEXPANDS;
    ptoisa_memory memory = d->memory == PTOISA_MAT ? PTOISA_MAT : PTOISA_VEC;
    if (PTOISA_CHECKED && (!ptoisa_check_operand(core, op, "d", d, PTOISA_SET_124, memory, 0, 0) ||
                           !ptoisa_check_scalar(core, op, x, (ptoisa_dtype)d->dtype))) {
        return;
    }
    ptoisa_issue(core, op, d, NULL, NULL);
    if (core->is_dry) {
        return;
    }
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype);
    uint64_t bits = ptoisa_bits_of(x, (ptoisa_dtype)d->dtype);
    if (d->valid_rows == d->rows && d->valid_cols == d->cols) {
        uint32_t count = d->rows * d->cols;
        ptoisa_fill(ptoisa_view_array(d->data, count, size), 1, count, size, bits);
        return;
    }
    ptoisa_fill(ptoisa_view_of(d), d->valid_rows, d->valid_cols, size, bits);
}

PTOISA_FN void ptoisa_fillpad(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                              ptoisa_fillpad_form form) {
    if (PTOISA_CHECKED && !ptoisa_check_fillpad(core, d, s, form)) {
        return;
    }
    ptoisa_issue(core, PTOISA_TFILLPAD, d, s, NULL);
    if (core->is_dry) {
        return;
    }
    if (d->data != s->data) {
        ptoisa_copy(ptoisa_view_of(d), ptoisa_view_of(s), s->valid_rows, s->valid_cols,
                    ptoisa_dtype_size((ptoisa_dtype)d->dtype));
    }
    ptoisa_pad_around(d, s->valid_rows, s->valid_cols);
}

// The valid region of s, and d's pad value in all the rest of d.
PTOISA_FN void ptoisa_tfillpad(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s) {
    ptoisa_fillpad(core, d, s, PTOISA_FILLPAD_COPY);
}

// The same where d and s are one address.
PTOISA_FN void ptoisa_tfillpad_inplace(ptoisa_core *core, const ptoisa_tile *d,
                                       const ptoisa_tile *s) {
    ptoisa_fillpad(core, d, s, PTOISA_FILLPAD_INPLACE);
}

// The same where d may be larger than s.
PTOISA_FN void ptoisa_tfillpad_expand(ptoisa_core *core, const ptoisa_tile *d,
                                      const ptoisa_tile *s) {
    ptoisa_fillpad(core, d, s, PTOISA_FILLPAD_EXPAND);
}

// -- joins ----------------------------------------------------------------------------------------

// d = [s0 | s1].
PTOISA_FN void ptoisa_tconcat(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s0,
                              const ptoisa_tile *s1) {
    const ptoisa_op op = PTOISA_TCONCAT;
    if (PTOISA_CHECKED) {
        if (!ptoisa_check_shape_rows(core, op, "d", d, PTOISA_SET_124, 0, 0) ||
            !ptoisa_check_shape_rows(core, op, "s0", s0, PTOISA_SET_124, d->valid_rows, 0) ||
            !ptoisa_check_shape_rows(core, op, "s1", s1, PTOISA_SET_124, d->valid_rows, 0) ||
            !ptoisa_check_same_dtype(core, op, "s0", s0, d) ||
            !ptoisa_check_same_dtype(core, op, "s1", s1, d)) {
            return;
        }
        if ((uint64_t)s0->valid_cols + s1->valid_cols != d->valid_cols) {
            ptoisa_fault(core, op, "d has %u valid columns, s0 %u and s1 %u", d->valid_cols,
                         s0->valid_cols, s1->valid_cols);
            return;
        }
    }
    ptoisa_issue(core, op, d, s0, s1);
    if (core->is_dry) {
        return;
    }
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype);
    ptoisa_view view = ptoisa_view_of(d);
    ptoisa_copy(view, ptoisa_view_of(s0), d->valid_rows, s0->valid_cols, size);
    ptoisa_copy(ptoisa_view_from(view, 0, s0->valid_cols), ptoisa_view_of(s1), d->valid_rows,
                s1->valid_cols, size);
}

PTOISA_FN bool ptoisa_check_interleave(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *d0,
                                       const ptoisa_tile *d1, const ptoisa_tile *s0,
                                       const ptoisa_tile *s1) {
    if (!ptoisa_check_a5(core, op, "the instruction") ||
        !ptoisa_check_shape_rows(core, op, "d0", d0, PTOISA_SET_124, 0, 0) ||
        !ptoisa_check_shape_rows(core, op, "d1", d1, PTOISA_SET_124, 0, 0) ||
        !ptoisa_check_shape_rows(core, op, "s0", s0, PTOISA_SET_124, d0->valid_rows, 0) ||
        !ptoisa_check_shape_rows(core, op, "s1", s1, PTOISA_SET_124, d0->valid_rows, 0) ||
        !ptoisa_check_same_dtype(core, op, "d1", d1, d0) ||
        !ptoisa_check_same_dtype(core, op, "s0", s0, d0) ||
        !ptoisa_check_same_dtype(core, op, "s1", s1, d0)) {
        return false;
    }
    uint32_t n = d0->valid_cols;
    if (d1->valid_rows != d0->valid_rows || d1->valid_cols != n || s0->valid_cols != n ||
        s1->valid_cols != n) {
        return ptoisa_fault(core, op,
                            "d0 has %u x %u valid elements, d1 %u x %u, and s0 has %u valid "
                            "columns, s1 %u",
                            d0->valid_rows, n, d1->valid_rows, d1->valid_cols, s0->valid_cols,
                            s1->valid_cols);
    }
    if (!core->is_dry && (d0->data == s0->data || d0->data == s1->data || d1->data == s0->data ||
                          d1->data == s1->data || d0->data == d1->data)) {
        return ptoisa_fault(core, op, "two of d0, d1, s0 and s1 are at one address");
    }
    return true;
}

// Copies columns `from`, from + step, .. of s to columns `to`, to + step, .. of d.
PTOISA_FN void ptoisa_copy_comb(const ptoisa_tile *d, uint32_t to, uint32_t to_step,
                                const ptoisa_tile *s, uint32_t from, uint32_t from_step,
                                uint32_t rows, uint32_t count) {
    ptoisa_view d_view = ptoisa_view_of(d), s_view = ptoisa_view_of(s);
    d_view.data += to * d_view.col.inner;
    s_view.data += from * s_view.col.inner;
    d_view.col.inner *= to_step;
    s_view.col.inner *= from_step;
    ptoisa_copy(d_view, s_view, rows, count, ptoisa_dtype_size((ptoisa_dtype)d->dtype));
}

// [d0 | d1] = s0[0] s1[0] s0[1] s1[1] .. in each row.
PTOISA_FN void ptoisa_tinterleave(ptoisa_core *core, const ptoisa_tile *d0, const ptoisa_tile *d1,
                                  const ptoisa_tile *s0, const ptoisa_tile *s1) {
    const ptoisa_op op = PTOISA_TINTERLEAVE;
    if (PTOISA_CHECKED && !ptoisa_check_interleave(core, op, d0, d1, s0, s1)) {
        return;
    }
    ptoisa_issue(core, op, d0, s0, s1);
    if (core->is_dry) {
        return;
    }
    // Of n columns d0 begins with s0 and takes the larger half of it; d1 continues with the rest.
    uint32_t n = d0->valid_cols, rows = d0->valid_rows, low = n / 2, high = n - low, odd = n & 1;
    ptoisa_copy_comb(d0, 0, 2, s0, 0, 1, rows, high);
    ptoisa_copy_comb(d0, 1, 2, s1, 0, 1, rows, low);
    ptoisa_copy_comb(d1, odd, 2, s0, high, 1, rows, low);
    ptoisa_copy_comb(d1, 1 - odd, 2, s1, low, 1, rows, high);
}

// d0 = even elements of [s0 | s1], d1 = odd ones.
PTOISA_FN void ptoisa_tdeinterleave(ptoisa_core *core, const ptoisa_tile *d0, const ptoisa_tile *d1,
                                    const ptoisa_tile *s0, const ptoisa_tile *s1) {
    const ptoisa_op op = PTOISA_TDEINTERLEAVE;
    if (PTOISA_CHECKED && !ptoisa_check_interleave(core, op, d0, d1, s0, s1)) {
        return;
    }
    ptoisa_issue(core, op, d0, s0, s1);
    if (core->is_dry) {
        return;
    }
    uint32_t n = d0->valid_cols, rows = d0->valid_rows, low = n / 2, high = n - low, odd = n & 1;
    ptoisa_copy_comb(d0, 0, 1, s0, 0, 2, rows, high);
    ptoisa_copy_comb(d1, 0, 1, s0, 1, 2, rows, low);
    ptoisa_copy_comb(d0, high, 1, s1, odd, 2, rows, low);
    ptoisa_copy_comb(d1, low, 1, s1, 1 - odd, 2, rows, high);
}

// -- ramps, triangles -----------------------------------------------------------------------------

// d[0][i] = start + i, or start - i; integers wrap.
PTOISA_FN void ptoisa_tci(ptoisa_core *core, const ptoisa_tile *d, double start, bool descending) {
    const ptoisa_op op = PTOISA_TCI;
    const uint32_t set = PTOISA_SET_BIN | PTOISA_SET(PTOISA_U16) | PTOISA_SET(PTOISA_U32);
    if (PTOISA_CHECKED) {
        if (!ptoisa_check_shape_rows(core, op, "d", d, set, 0, 0) ||
            !ptoisa_check_scalar(core, op, start, (ptoisa_dtype)d->dtype)) {
            return;
        }
        if (d->valid_rows > 1) {
            ptoisa_fault(core, op, "d has %u valid rows, not one", d->valid_rows);
            return;
        }
    }
    ptoisa_issue(core, op, d, NULL, NULL);
    if (core->is_dry || d->valid_rows == 0) {
        return;
    }
    ptoisa_dtype dtype = (ptoisa_dtype)d->dtype;
    uint32_t size = ptoisa_dtype_size(dtype), first = (uint32_t)ptoisa_bits_of(start, dtype);
    uint8_t *to = (uint8_t *)d->data;
    for (uint32_t i = 0; i < d->valid_cols; i++, to += size) {
        uint32_t bits = descending ? first - i : first + i;
        if (ptoisa_dtype_is_float(dtype)) {
            bits = (uint32_t)ptoisa_bits_of(descending ? start - i : start + i, dtype);
        }
        ptoisa_put_bits(to, bits, size);
    }
}

// 1 on the diagonal and below it, or above it, else 0. The diagonal has the columns c = r +
// diagonal.
PTOISA_FN void ptoisa_ttri(ptoisa_core *core, const ptoisa_tile *d, bool upper, int32_t diagonal) {
    const ptoisa_op op = PTOISA_TTRI;
    const uint32_t set =
        PTOISA_SET_BIN | PTOISA_SET(PTOISA_BF16) | PTOISA_SET(PTOISA_U16) | PTOISA_SET(PTOISA_U32);
    if (PTOISA_CHECKED && !ptoisa_check_shape_rows(core, op, "d", d, set, 0, 0)) {
        return;
    }
    ptoisa_issue(core, op, d, NULL, NULL);
    if (core->is_dry) {
        return;
    }
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype), cols = d->valid_cols;
    uint64_t one = ptoisa_bits_of(1, (ptoisa_dtype)d->dtype);
    ptoisa_view view = ptoisa_view_of(d);
    for (uint32_t r = 0; r < d->valid_rows; r++) {
        int64_t edge = (int64_t)r + diagonal + !upper;  // the first column of the other kind
        uint32_t at = edge < 0 ? 0 : edge > cols ? cols : (uint32_t)edge;
        ptoisa_fill(ptoisa_view_from(view, r, 0), 1, at, size, upper ? 0 : one);
        ptoisa_fill(ptoisa_view_from(view, r, at), 1, cols - at, size, upper ? one : 0);
    }
}

// -- other views of a tile ------------------------------------------------------------------------

// The rows x cols valid elements of a row-major tile that begin at (row, col). Its rows are as long
// as the rows of s, and so reach into the next row of s where col > 0: instructions that write a whole
// allocation (TLOAD, TFILLPAD) must not be given such a part.
PTOISA_INLINE ptoisa_tile ptoisa_tsubview(const ptoisa_tile *s, uint32_t row, uint32_t col,
                                          uint32_t rows, uint32_t cols) {
    ptoisa_tile part = *s;
    uint64_t offset = ptoisa_offset(s, row, col) * ptoisa_dtype_size((ptoisa_dtype)s->dtype);
    part.data = s->data ? (uint8_t *)s->data + offset : NULL;
    part.rows = part.valid_rows = rows;
    part.valid_cols = cols;
    return part;
}

// The bytes of s as a tile of another shape, type or layout.
PTOISA_INLINE ptoisa_tile ptoisa_treshape(const ptoisa_tile *d_shape, const ptoisa_tile *s) {
    ptoisa_tile tile = *d_shape;
    tile.data = s->data;
    return tile;
}

#endif
