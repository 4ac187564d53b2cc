// Reductions of rows and of columns.
//
// A row is summed in 16 lanes: lane i takes elements i, i + 16, i + 32 .. from the left, beginning
// with 0; then lane i adds lane i + 8, then i + 4, i + 2, i + 1, and lane 0 is the sum. So it is on
// every machine, whatever the width of its vectors, and all give the same bits. Products, maxima
// and minima likewise. f16 and bf16 are summed in f32 and rounded once.
//
// A column is reduced from top to bottom, in f32 for f16 and bf16; a binary TCOLSUM the same.
//
// Any NaN makes a maximum or minimum a NaN, and TROWARGMAX and TROWARGMIN find the first NaN; else
// the first of equal elements. Over no elements: 0, 1, the least or the greatest value of the type
// (for floats an infinity), index 0.
//
// TCOLARGMAX and TCOLARGMIN find rows as TROWARGMAX and TROWARGMIN find columns. TPAIRREDUCESUM adds
// two neighbours of a row, in f32, and rounds once; the last of an odd number stays as it is. Source
// and destination have the same valid columns, as PTO-ISA wants it, and the sums are in the first
// half of them, rounded up. The other columns are not written.
//
// Row reductions leave R values: in a column-major tile of one column, or in the first column of a
// row-major one that has one valid column. f32 rows are reduced by vectors straight away (fold.h);
// f16 and bf16 are widened a few rows at a time before that; integers, and rows longer than a piece,
// go through 16 lanes in memory, by the loops of map.h. 64 x 128 f32 with AVX-512: TROWSUM 0.20 us,
// TROWMAX 0.20, TCOLSUM 0.50.

#ifndef PTOISA_REDUCE_H
#define PTOISA_REDUCE_H

#include "fold.h"

// Rows reduced before their results are stored.
#define PTOISA_ROWS_AT_ONCE 64

// -- rows of all types ----------------------------------------------------------------------------

// The result of an empty reduction, as a word: f32, or a value of the integer type.
PTOISA_FN uint32_t ptoisa_identity(ptoisa_map_op op, ptoisa_dtype dtype) {
    bool is_float = ptoisa_dtype_is_float(dtype);
    if (op == PTOISA_MAP_ADD) {
        return 0;
    }
    if (op == PTOISA_MAP_MUL) {
        return is_float ? ptoisa_bits_from_f32(1.0f) : 1;
    }
    if (is_float) {
        return op == PTOISA_MAP_MAX ? 0xff800000 : 0x7f800000;
    }
    uint32_t bits = 8 * ptoisa_dtype_size(dtype);
    uint32_t greatest = UINT32_MAX >> (32 - bits) >> (dtype < PTOISA_U8 ? 1 : 0);
    return op == PTOISA_MAP_MIN ? greatest : dtype < PTOISA_U8 ? ~greatest : 0;
}

// One row of any type in 16 lanes in memory; returns lane 0, a word.
PTOISA_FN uint32_t ptoisa_row_in_lanes(ptoisa_loops *loops, ptoisa_dtype dtype, const void *s,
                                       uint32_t cols) {
    ptoisa_piece piece;
    union {
        uint32_t u32[16];
        float f32[16];
    } lanes;
    for (int i = 0; i < 16; i++) {
        lanes.u32[i] = ptoisa_identity(loops(PTOISA_WORD_F32, NULL), dtype);
    }
    ptoisa_map map;
    memset(&map, 0, sizeof map);
    map.d = &lanes, map.a = &lanes, map.c = &lanes;
    for (uint32_t at = 0; at < cols; at += PTOISA_PIECE) {
        uint32_t n = ptoisa_least(cols - at, PTOISA_PIECE);
        ptoisa_widen(dtype, &piece, (const uint8_t *)s + at * (size_t)ptoisa_dtype_size(dtype), n);
        map.b = &piece, map.b_pitch = 16, map.rows = n / 16, map.cols = 16;
        ptoisa_map_words(loops, dtype, &map);
        map.b = piece.u32 + n / 16 * 16, map.rows = 1, map.cols = n % 16;
        ptoisa_map_words(loops, dtype, &map);
    }
    for (uint32_t h = 8; h > 0; h /= 2) {
        map.b = lanes.u32 + h, map.rows = 1, map.cols = h;
        ptoisa_map_words(loops, dtype, &map);
    }
    return lanes.u32[0];
}

// Reduces up to PTOISA_ROWS_AT_ONCE rows of any type to words.
PTOISA_FN void ptoisa_rows_any(ptoisa_loops *loops, ptoisa_dtype dtype, ptoisa_piece *results,
                               const void *s, size_t pitch, uint32_t rows, uint32_t cols) {
    if (dtype == PTOISA_F32) {
        ptoisa_rows_f32(loops(PTOISA_WORD_F32, NULL), results->f32, (const float *)s, pitch, rows,
                        cols);
        return;
    }
    size_t row_size = pitch * ptoisa_dtype_size(dtype);
    if (!ptoisa_dtype_is_float(dtype) || cols > PTOISA_PIECE || cols == 0) {
        for (uint32_t r = 0; r < rows; r++) {
            results->u32[r] =
                ptoisa_row_in_lanes(loops, dtype, (const uint8_t *)s + r * row_size, cols);
        }
        return;
    }
    ptoisa_piece piece;
    uint32_t rows_max = PTOISA_PIECE / cols;
    for (uint32_t row = 0; row < rows; row += rows_max) {
        uint32_t n = ptoisa_least(rows - row, rows_max);
        const uint8_t *from = (const uint8_t *)s + row * row_size;
        if (pitch == cols) {
            ptoisa_widen(dtype, &piece, from, (size_t)n * cols);
        } else {
            for (uint32_t r = 0; r < n; r++) {
                ptoisa_piece one;
                ptoisa_widen(dtype, &one, from + r * row_size, cols);
                memcpy(piece.u32 + r * cols, one.u32, cols * sizeof one.u32[0]);
            }
        }
        ptoisa_rows_f32(loops(PTOISA_WORD_F32, NULL), results->f32 + row, piece.f32, cols, n, cols);
    }
}

// Is word i the extreme, or NaN where the extreme is?
PTOISA_INLINE bool ptoisa_is_found(const ptoisa_piece *piece, uint32_t i, uint32_t extreme,
                                   bool is_float, bool is_nan) {
    float x = piece->f32[i];
    return is_nan     ? x != x
           : is_float ? x == ptoisa_f32_from_bits(extreme)
                      : piece->u32[i] == extreme;
}

#if PTOISA_X86
// How many elements come before the block of 8, or the rest, where the value is.
PTOISA_AVX2 PTOISA_FN uint32_t ptoisa_row_skip_avx2(const float *s, uint32_t n, float value) {
    uint32_t i = 0;
    while (i + 8 <= n && _mm256_movemask_ps(_mm256_cmp_ps(
                             _mm256_loadu_ps(s + i), _mm256_set1_ps(value), _CMP_EQ_OQ)) == 0) {
        i += 8;
    }
    return i;
}
#endif

// The first element of a row of any type that is the extreme, or NaN if the extreme is. Floats are
// passed over eight at a time: TROWARGMAX of 64 x 128 takes 1.3 us instead of 5.1.
PTOISA_FN uint32_t ptoisa_row_find(ptoisa_dtype dtype, uint32_t extreme, const void *s,
                                   uint32_t cols) {
    ptoisa_piece piece;
    bool is_float = ptoisa_dtype_is_float(dtype);
    float value = ptoisa_f32_from_bits(extreme);
    bool is_nan = is_float && value != value;
    uint32_t first = 0;
    bool is_there = false;
    for (uint32_t at = 0; at < cols && !is_there; at += PTOISA_PIECE) {
        uint32_t n = ptoisa_least(cols - at, PTOISA_PIECE), i = 0;
        ptoisa_widen(dtype, &piece, (const uint8_t *)s + at * (size_t)ptoisa_dtype_size(dtype), n);
#if PTOISA_X86
        if (is_float && !is_nan && ptoisa_has_avx2()) {
            i = ptoisa_row_skip_avx2(piece.f32, n, value);
        }
#endif
        while (i < n && !ptoisa_is_found(&piece, i, extreme, is_float, is_nan)) {
            i++;
        }
        is_there = i < n;
        first = at + i;
    }
    return first;
}

// -- row instructions -----------------------------------------------------------------------------

PTOISA_FN bool ptoisa_check_row_reduce(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *d,
                                       uint32_t d_types, const ptoisa_tile *s,
                                       const ptoisa_tile *t) {
    if (!ptoisa_check_operand(core, op, "dst", d, d_types, PTOISA_VEC, 0, 0) ||
        !ptoisa_check_rows(core, op, "src0", s, PTOISA_SET_MAP, d->valid_rows, 0) ||
        !ptoisa_check_scratch(core, op, t)) {
        return false;
    }
    if ((d->layout != PTOISA_ROW_MAJOR && (d->layout != PTOISA_COL_MAJOR || d->cols != 1)) ||
        (d->valid_cols > 1 && !core->is_as_simulator)) {
        return ptoisa_fault(core, op, "dst is no column, nor row-major with one valid column");
    }
    if (t->dtype != s->dtype || t->rows != s->rows || t->cols != s->cols) {
        return ptoisa_fault(core, op, "tmp is not of the type and shape of src0");
    }
    return true;
}

// The results of rows [row, row + rows) go to d; they are of its type, one after another.
PTOISA_FN void ptoisa_store_column(const ptoisa_tile *d, uint32_t row, uint32_t rows,
                                   const void *results) {
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype);
    if (d->layout == PTOISA_COL_MAJOR) {
        memcpy((uint8_t *)d->data + (size_t)row * size, results, (size_t)rows * size);
        return;
    }
    for (uint32_t r = 0; r < rows; r++) {
        memcpy((uint8_t *)d->data + ptoisa_offset(d, row + r, 0) * size,
               (const uint8_t *)results + (size_t)r * size, size);
    }
}

// The values that go with the indices d: a column of the type of s.
PTOISA_FN bool ptoisa_check_values(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *d,
                                   const ptoisa_tile *values, const ptoisa_tile *s,
                                   const ptoisa_tile *t) {
    if (!ptoisa_check_row_reduce(core, op, values, PTOISA_SET(s->dtype), s, t)) {
        return false;
    }
    return (values->valid_rows == d->valid_rows && values->valid_cols == d->valid_cols) ||
           ptoisa_fault(core, op, "dst has %u x %u valid elements, the values %u x %u",
                        d->valid_rows, d->valid_cols, values->valid_rows, values->valid_cols);
}

// values: where the extremes go whose indices d takes; may be NULL.
PTOISA_FN void ptoisa_row_reduce(ptoisa_core *core, ptoisa_op op, ptoisa_loops *loops,
                                 bool is_index, const ptoisa_tile *d, const ptoisa_tile *values,
                                 const ptoisa_tile *s, const ptoisa_tile *t) {
    ptoisa_dtype dtype = (ptoisa_dtype)s->dtype;
    uint32_t d_types =
        is_index ? PTOISA_SET(PTOISA_I32) | PTOISA_SET(PTOISA_U32) : PTOISA_SET(dtype);
    if (PTOISA_CHECKED && (!ptoisa_check_row_reduce(core, op, d, d_types, s, t) ||
                           (values && !ptoisa_check_values(core, op, d, values, s, t)))) {
        return;
    }
    ptoisa_issue(core, op, d, s, NULL);
    if (core->is_dry || d->valid_cols == 0) {
        return;
    }
    size_t row_size = (size_t)s->cols * ptoisa_dtype_size(dtype);
    ptoisa_piece results, narrow;
    for (uint32_t row = 0; row < d->valid_rows; row += PTOISA_ROWS_AT_ONCE) {
        uint32_t rows = ptoisa_least(d->valid_rows - row, PTOISA_ROWS_AT_ONCE);
        const uint8_t *from = (const uint8_t *)s->data + row * row_size;
        ptoisa_rows_any(loops, dtype, &results, from, s->cols, rows, s->valid_cols);
        if (values) {
            ptoisa_narrow(dtype, &narrow, &results, rows);
            ptoisa_store_column(values, row, rows, &narrow);
        }
        if (is_index) {
            for (uint32_t r = 0; r < rows; r++) {
                results.u32[r] =
                    ptoisa_row_find(dtype, results.u32[r], from + r * row_size, s->valid_cols);
            }
        }
        if (d->dtype == PTOISA_F32 || is_index) {
            ptoisa_store_column(d, row, rows, &results);
        } else {
            ptoisa_narrow(dtype, &narrow, &results, rows);
            ptoisa_store_column(d, row, rows, &narrow);
        }
    }
}

#define PTOISA_DEFINE_ROW_REDUCE(function, op, map_op, is_index)                                   \
    PTOISA_FN void ptoisa_##function(ptoisa_core *core, const ptoisa_tile *d,                      \
                                     const ptoisa_tile *s, const ptoisa_tile *t) {                 \
        ptoisa_row_reduce(core, PTOISA_##op, &ptoisa_loops_##map_op, is_index, d, NULL, s, t);     \
    }

PTOISA_DEFINE_ROW_REDUCE(trowsum, TROWSUM, ADD, false)
PTOISA_DEFINE_ROW_REDUCE(trowprod, TROWPROD, MUL, false)
PTOISA_DEFINE_ROW_REDUCE(trowmax, TROWMAX, MAX, false)
PTOISA_DEFINE_ROW_REDUCE(trowmin, TROWMIN, MIN, false)
PTOISA_DEFINE_ROW_REDUCE(trowargmax, TROWARGMAX, MAX, true)
PTOISA_DEFINE_ROW_REDUCE(trowargmin, TROWARGMIN, MIN, true)

// The extremes and their indices.
PTOISA_FN void ptoisa_trowargmax_values(ptoisa_core *core, const ptoisa_tile *values,
                                        const ptoisa_tile *d, const ptoisa_tile *s,
                                        const ptoisa_tile *t) {
    ptoisa_row_reduce(core, PTOISA_TROWARGMAX, &ptoisa_loops_MAX, true, d, values, s, t);
}

PTOISA_FN void ptoisa_trowargmin_values(ptoisa_core *core, const ptoisa_tile *values,
                                        const ptoisa_tile *d, const ptoisa_tile *s,
                                        const ptoisa_tile *t) {
    ptoisa_row_reduce(core, PTOISA_TROWARGMIN, &ptoisa_loops_MIN, true, d, values, s, t);
}

// d[r][c] = s[r][2 c] + s[r][2 c + 1], of the columns that s has.
PTOISA_FN void ptoisa_tpairreducesum(ptoisa_core *core, const ptoisa_tile *d,
                                     const ptoisa_tile *s) {
    const ptoisa_op op = PTOISA_TPAIRREDUCESUM;
    if (PTOISA_CHECKED) {
        if (!ptoisa_check_rows(core, op, "dst", d, PTOISA_SET_FLOAT, 0, 0) ||
            !ptoisa_check_rows(core, op, "src0", s, PTOISA_SET(d->dtype), d->valid_rows,
                               d->valid_cols)) {
            return;
        }
    }
    ptoisa_issue(core, op, d, s, NULL);
    const ptoisa_dtype dtype = (ptoisa_dtype)d->dtype;
    const size_t size = ptoisa_dtype_size(dtype);
    for (uint32_t r = 0; r < d->valid_rows && !core->is_dry; r++) {
        const uint8_t *from = (const uint8_t *)s->data + (size_t)r * s->cols * size;
        uint8_t *to = (uint8_t *)d->data + (size_t)r * d->cols * size;
        for (uint32_t at = 0; at < s->valid_cols; at += PTOISA_PIECE) {
            uint32_t n = ptoisa_least(s->valid_cols - at, PTOISA_PIECE);
            ptoisa_piece piece;
            ptoisa_widen(dtype, &piece, from + at * size, n);
            for (uint32_t i = 0; i < n; i += 2) {
                piece.f32[i / 2] = i + 1 < n ? piece.f32[i] + piece.f32[i + 1] : piece.f32[i];
            }
            ptoisa_narrow(dtype, to + at / 2 * size, &piece, (n + 1) / 2);
        }
    }
}

// -- column instructions --------------------------------------------------------------------------

// Columns of words: d takes the first row, then d = d op row for all others.
PTOISA_FN void ptoisa_cols_words(ptoisa_loops *loops, ptoisa_dtype dtype, void *d, const void *s,
                                 size_t pitch, uint32_t rows, uint32_t cols) {
    memmove(d, s, (size_t)cols * 4);
    ptoisa_map map;
    memset(&map, 0, sizeof map);
    map.d = d, map.a = d, map.c = d;
    map.b = (const uint32_t *)s + (rows > 1 ? pitch : 0), map.b_pitch = pitch;
    map.rows = rows - 1;
    map.cols = cols;
    ptoisa_map_words(loops, dtype, &map);
}

PTOISA_FN void ptoisa_cols_any(ptoisa_loops *loops, ptoisa_dtype dtype, void *d, const void *s,
                               size_t pitch, uint32_t rows, uint32_t cols) {
    uint32_t size = ptoisa_dtype_size(dtype);
    if (size == 4 && rows > 0) {
        ptoisa_cols_words(loops, dtype, d, s, pitch, rows, cols);
        return;
    }
    ptoisa_piece sum, next;
    ptoisa_map map;
    memset(&map, 0, sizeof map);
    map.d = &sum, map.a = &sum, map.b = &next, map.c = &sum;
    map.rows = 1;
    for (uint32_t at = 0; at < cols; at += PTOISA_PIECE) {
        uint32_t n = ptoisa_least(cols - at, PTOISA_PIECE);
        const uint8_t *from = (const uint8_t *)s + (size_t)at * size;
        map.cols = n;
        for (uint32_t i = 0; i < n && rows == 0; i++) {
            sum.u32[i] = ptoisa_identity(loops(PTOISA_WORD_F32, NULL), dtype);
        }
        for (uint32_t r = 0; r < rows; r++) {
            ptoisa_widen(dtype, r == 0 ? &sum : &next, from + r * pitch * size, n);
            if (r > 0) {
                ptoisa_map_words(loops, dtype, &map);
            }
        }
        ptoisa_narrow(dtype, (uint8_t *)d + (size_t)at * size, &sum, n);
    }
}

PTOISA_FN void ptoisa_col_reduce(ptoisa_core *core, ptoisa_op op, ptoisa_loops *loops,
                                 const ptoisa_tile *d, const ptoisa_tile *s, bool is_binary) {
    if (PTOISA_CHECKED) {
        uint32_t same = PTOISA_SET(d->dtype);
        if (!ptoisa_check_rows(core, op, "dst", d, PTOISA_SET_MAP, 0, 0) ||
            !ptoisa_check_rows(core, op, "src0", s, same, 0, d->valid_cols)) {
            return;
        }
        if (d->valid_rows > 1) {
            ptoisa_fault(core, op, "dst has %u valid rows, not 1", d->valid_rows);
            return;
        }
    }
    ptoisa_issue_as(core, op, d, s, NULL, is_binary);
    if (!core->is_dry && d->valid_rows > 0 && d->valid_cols > 0) {
        ptoisa_cols_any(loops, (ptoisa_dtype)d->dtype, d->data, s->data, s->cols, s->valid_rows,
                        d->valid_cols);
    }
}

// is_binary: the device adds in the order of a tree, with t as scratch; here the order is the same.
PTOISA_FN void ptoisa_tcolsum(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                              const ptoisa_tile *t, bool is_binary) {
    if (PTOISA_CHECKED && (is_binary || t) && !ptoisa_check_scratch(core, PTOISA_TCOLSUM, t)) {
        return;
    }
    ptoisa_col_reduce(core, PTOISA_TCOLSUM, &ptoisa_loops_ADD, d, s, is_binary);
}

#define PTOISA_DEFINE_COL_REDUCE(function, op, map_op)                                             \
    PTOISA_FN void ptoisa_##function(ptoisa_core *core, const ptoisa_tile *d,                      \
                                     const ptoisa_tile *s) {                                       \
        ptoisa_col_reduce(core, PTOISA_##op, &ptoisa_loops_##map_op, d, s, false);                 \
    }

PTOISA_DEFINE_COL_REDUCE(tcolmax, TCOLMAX, MAX)
PTOISA_DEFINE_COL_REDUCE(tcolmin, TCOLMIN, MIN)
PTOISA_DEFINE_COL_REDUCE(tcolprod, TCOLPROD, MUL)

// Is element i of next a greater extreme than best's? NaN is the greatest of all.
PTOISA_INLINE bool ptoisa_is_beyond(const ptoisa_piece *next, const ptoisa_piece *best, uint32_t i,
                                    ptoisa_dtype dtype, bool is_max) {
    if (ptoisa_dtype_is_float(dtype)) {
        float x = next->f32[i], y = best->f32[i];
        return y == y && (x != x || (is_max ? x > y : x < y));
    }
    // Words in unsigned order: signed types with their sign flipped.
    uint32_t sign = dtype < PTOISA_U8 ? UINT32_C(0x80000000) : 0;
    uint32_t x = next->u32[i] ^ sign, y = best->u32[i] ^ sign;
    return is_max ? x > y : x < y;
}

// d[0][c] = the row of the first extreme of column c, or of its first NaN.
PTOISA_FN void ptoisa_col_find(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *d,
                               const ptoisa_tile *s, const ptoisa_tile *t) {
    if (PTOISA_CHECKED) {
        if (!ptoisa_check_rows(core, op, "dst", d, PTOISA_SET(PTOISA_I32) | PTOISA_SET(PTOISA_U32),
                               0, 0) ||
            !ptoisa_check_rows(core, op, "src0", s, PTOISA_SET_MAP, 0, d->valid_cols) ||
            !ptoisa_check_scratch(core, op, t)) {
            return;
        }
        if (d->valid_rows > 1) {
            ptoisa_fault(core, op, "dst has %u valid rows, not 1", d->valid_rows);
            return;
        }
    }
    ptoisa_issue(core, op, d, s, NULL);
    if (core->is_dry || d->valid_rows == 0) {
        return;
    }
    const ptoisa_dtype dtype = (ptoisa_dtype)s->dtype;
    const size_t size = ptoisa_dtype_size(dtype);
    for (uint32_t at = 0; at < d->valid_cols; at += PTOISA_PIECE) {
        uint32_t n = ptoisa_least(d->valid_cols - at, PTOISA_PIECE);
        uint32_t *found = (uint32_t *)d->data + at;
        memset(found, 0, n * sizeof *found);
        ptoisa_piece best, next;
        for (uint32_t r = 0; r < s->valid_rows; r++) {
            const uint8_t *from = (const uint8_t *)s->data + ((size_t)r * s->cols + at) * size;
            ptoisa_widen(dtype, r == 0 ? &best : &next, from, n);
            for (uint32_t i = 0; r > 0 && i < n; i++) {
                if (ptoisa_is_beyond(&next, &best, i, dtype, op == PTOISA_TCOLARGMAX)) {
                    best.u32[i] = next.u32[i];
                    found[i] = r;
                }
            }
        }
    }
}

PTOISA_FN void ptoisa_tcolargmax(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                                 const ptoisa_tile *t) {
    ptoisa_col_find(core, PTOISA_TCOLARGMAX, d, s, t);
}

PTOISA_FN void ptoisa_tcolargmin(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                                 const ptoisa_tile *t) {
    ptoisa_col_find(core, PTOISA_TCOLARGMIN, d, s, t);
}

#endif
