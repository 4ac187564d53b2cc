// Views: all moves of elements between tiles, and between tiles and global memory, go through them.
//
// In every layout the place of element (r, c) is the sum of a part that depends on r and a part
// that depends on c. Each part is at most two strides, in bytes:
//
//      at(i) = i / block * outer + i % block * inner
//
//                  rows: block, outer, inner           columns: block, outer, inner
//      row-major   -                    cols           -                    1
//      col-major   -                    1              -                    rows
//      NZ          -                    bc             bc   rows * bc       1
//      ZZ          br   cols * br       bc             bc   br * bc         1
//      ZN          br   cols * br       1              -                    br
//      NN          br   br * bc         1              bc   rows * bc       br
//      window      -                    stride[3]      -                    stride[4]
//
// in elements, with boxes of br x bc. So a view is two axes and an address; a transposed view has
// them swapped, and part of a view begins at another index. A copy goes by rectangles in which both
// views are affine: whole rows, 32 bytes of a box, a box. Where both are contiguous along the same
// axis it moves runs; where along different ones it transposes, 16 bytes of a row in registers.

#ifndef PTOISA_VIEW_H
#define PTOISA_VIEW_H

#include "simd.h"
#include "tile.h"

#define PTOISA_FLAT UINT32_MAX  // the block of an axis that has none

typedef struct ptoisa_axis {
    uint32_t start;  // the index that is called 0
    uint32_t block;
    int64_t outer, inner;
} ptoisa_axis;

typedef struct ptoisa_view {
    uint8_t *data;
    ptoisa_axis row, col;
} ptoisa_view;

PTOISA_INLINE uint32_t ptoisa_min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

PTOISA_INLINE ptoisa_axis ptoisa_axis_flat(int64_t stride) {
    ptoisa_axis axis = {0, PTOISA_FLAT, 0, stride};
    return axis;
}

PTOISA_INLINE ptoisa_axis ptoisa_axis_boxed(uint32_t block, int64_t outer, int64_t inner) {
    ptoisa_axis axis = {0, block, outer, inner};
    return axis;
}

PTOISA_INLINE int64_t ptoisa_axis_at(const ptoisa_axis *axis, uint32_t i) {
    i += axis->start;
    return i / axis->block * axis->outer + i % axis->block * axis->inner;
}

// How many indices from i on are one stride apart.
PTOISA_INLINE uint32_t ptoisa_axis_left(const ptoisa_axis *axis, uint32_t i) {
    return axis->block - (i + axis->start) % axis->block;
}

PTOISA_FN ptoisa_view ptoisa_view_of(const ptoisa_tile *tile) {
    int64_t size = ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
    int64_t row_bytes = tile->cols * size, col_bytes = tile->rows * size;
    uint32_t box_rows = ptoisa_box_rows(tile), box_cols = ptoisa_box_cols(tile);
    int64_t box = box_rows * box_cols * size;
    ptoisa_view view;
    view.data = (uint8_t *)tile->data;
    switch (tile->layout) {
    case PTOISA_COL_MAJOR:
        view.row = ptoisa_axis_flat(size);
        view.col = ptoisa_axis_flat(col_bytes);
        break;
    case PTOISA_NZ:
        view.row = ptoisa_axis_flat(box_cols * size);
        view.col = ptoisa_axis_boxed(box_cols, col_bytes * box_cols, size);
        break;
    case PTOISA_ZZ:
        view.row = ptoisa_axis_boxed(box_rows, row_bytes * box_rows, box_cols * size);
        view.col = ptoisa_axis_boxed(box_cols, box, size);
        break;
    case PTOISA_ZN:
        view.row = ptoisa_axis_boxed(box_rows, row_bytes * box_rows, size);
        view.col = ptoisa_axis_flat(box_rows * size);
        break;
    case PTOISA_NN:
        view.row = ptoisa_axis_boxed(box_rows, box, size);
        view.col = ptoisa_axis_boxed(box_cols, col_bytes * box_cols, box_rows * size);
        break;
    default:
        view.row = ptoisa_axis_flat(row_bytes);
        view.col = ptoisa_axis_flat(size);
        break;
    }
    return view;
}

// A view of an array of rows x cols without gaps.
PTOISA_INLINE ptoisa_view ptoisa_view_array(void *data, uint32_t cols, uint32_t size) {
    ptoisa_view view;
    view.data = (uint8_t *)data;
    view.row = ptoisa_axis_flat((int64_t)cols * size);
    view.col = ptoisa_axis_flat(size);
    return view;
}

// The rows of a window come in pieces of shape[3] that are one stride apart.
PTOISA_INLINE int64_t ptoisa_global_pieces(const ptoisa_global *global) {
    return global->shape[3] ? global->shape[0] * global->shape[1] * global->shape[2] : 0;
}

PTOISA_FN ptoisa_view ptoisa_view_piece(const ptoisa_global *global, int64_t piece) {
    int64_t size = ptoisa_dtype_size((ptoisa_dtype)global->dtype);
    ptoisa_view view;
    view.data =
        (uint8_t *)global->data + ptoisa_global_row(global, piece * global->shape[3]) * size;
    view.row = ptoisa_axis_flat(global->stride[3] * size);
    view.col = ptoisa_axis_flat(global->stride[4] * size);
    return view;
}

// The part of a view that begins at (row, col).
PTOISA_INLINE ptoisa_view ptoisa_view_from(ptoisa_view view, uint32_t row, uint32_t col) {
    view.row.start += row;
    view.col.start += col;
    return view;
}

PTOISA_INLINE ptoisa_view ptoisa_view_swap(ptoisa_view view) {
    ptoisa_axis row = view.row;
    view.row = view.col;
    view.col = row;
    return view;
}

// -- rectangles -----------------------------------------------------------------------------------

#define PTOISA_COPY_CASE(bytes)                                                                    \
    case bytes:                                                                                    \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            memcpy(d + i * d_step, s + i * s_step, bytes);                                         \
        }                                                                                          \
        return;

// Copies count runs of so many bytes. A size that the compiler knows becomes moves; else it is a
// call, which pays from some 100 bytes on.
PTOISA_FN void ptoisa_copy_runs(uint8_t *d, int64_t d_step, const uint8_t *s, int64_t s_step,
                                size_t run, uint32_t count) {
    if (d_step == (int64_t)run && s_step == (int64_t)run) {
        memcpy(d, s, run * count);
        return;
    }
    switch (run) {
        PTOISA_COPY_CASE(1)
        PTOISA_COPY_CASE(2)
        PTOISA_COPY_CASE(4)
        PTOISA_COPY_CASE(8)
        PTOISA_COPY_CASE(16)
        PTOISA_COPY_CASE(32)
        PTOISA_COPY_CASE(64)
    }
    for (uint32_t i = 0; i < count; i++) {
        memcpy(d + i * d_step, s + i * s_step, run);
    }
}

// Copies four neighbouring runs of 32 bytes of each row: a row of boxes is written (or read) in as
// many streams, and the other side, which often has whole rows, moves two cache lines at a time.
// One run of all rows after the other would touch each line of the other side twice, far apart.
PTOISA_FN void ptoisa_copy_4x32(uint8_t *const d[4], int64_t d_step, const uint8_t *const s[4],
                                int64_t s_step, uint32_t count) {
    uint8_t *d0 = d[0], *d1 = d[1], *d2 = d[2], *d3 = d[3];
    const uint8_t *s0 = s[0], *s1 = s[1], *s2 = s[2], *s3 = s[3];
    for (uint32_t i = 0; i < count; i++) {
        int64_t to = i * d_step, from = i * s_step;
        memcpy(d0 + to, s0 + from, 32);
        memcpy(d1 + to, s1 + from, 32);
        memcpy(d2 + to, s2 + from, 32);
        memcpy(d3 + to, s3 + from, 32);
    }
}

#define PTOISA_STRIDED_CASE(bytes)                                                                 \
    case bytes:                                                                                    \
        for (uint32_t r = 0; r < rows; r++) {                                                      \
            for (uint32_t c = 0; c < cols; c++) {                                                  \
                memcpy(d + r * d_row + c * d_col, s + r * s_row + c * s_col, bytes);               \
            }                                                                                      \
        }                                                                                          \
        return;

// Copies elements one by one.
PTOISA_FN void ptoisa_copy_strided(uint8_t *d, int64_t d_row, int64_t d_col, const uint8_t *s,
                                   int64_t s_row, int64_t s_col, uint32_t rows, uint32_t cols,
                                   uint32_t size) {
    switch (size) {
        PTOISA_STRIDED_CASE(1)
        PTOISA_STRIDED_CASE(2)
        PTOISA_STRIDED_CASE(4)
        PTOISA_STRIDED_CASE(8)
    }
}

#if PTOISA_X86
// Transposes 4 x 4 elements of 4 bytes: row r of d is column r of s.
PTOISA_ALWAYS void ptoisa_transpose_x4(uint8_t *d, int64_t d_row, const uint8_t *s, int64_t s_col) {
    __m128i x0 = _mm_loadu_si128((const __m128i *)s);
    __m128i x1 = _mm_loadu_si128((const __m128i *)(s + s_col));
    __m128i x2 = _mm_loadu_si128((const __m128i *)(s + 2 * s_col));
    __m128i x3 = _mm_loadu_si128((const __m128i *)(s + 3 * s_col));
    __m128i a = _mm_unpacklo_epi32(x0, x1), b = _mm_unpacklo_epi32(x2, x3);
    __m128i e = _mm_unpackhi_epi32(x0, x1), f = _mm_unpackhi_epi32(x2, x3);
    _mm_storeu_si128((__m128i *)d, _mm_unpacklo_epi64(a, b));
    _mm_storeu_si128((__m128i *)(d + d_row), _mm_unpackhi_epi64(a, b));
    _mm_storeu_si128((__m128i *)(d + 2 * d_row), _mm_unpacklo_epi64(e, f));
    _mm_storeu_si128((__m128i *)(d + 3 * d_row), _mm_unpackhi_epi64(e, f));
}

// Stores four vectors as rows r to r + 3 of 4 x 4 pairs that a, b, e, f hold interleaved by twos.
#define PTOISA_STORE_FOUR(x0, x1, x2, x3, r)                                                       \
    {                                                                                              \
        __m128i a = _mm_unpacklo_epi32(x0, x1), b = _mm_unpacklo_epi32(x2, x3);                    \
        __m128i e = _mm_unpackhi_epi32(x0, x1), f = _mm_unpackhi_epi32(x2, x3);                    \
        _mm_storeu_si128((__m128i *)(d + (r)*d_row), _mm_unpacklo_epi64(a, b));                    \
        _mm_storeu_si128((__m128i *)(d + ((r) + 1) * d_row), _mm_unpackhi_epi64(a, b));            \
        _mm_storeu_si128((__m128i *)(d + ((r) + 2) * d_row), _mm_unpacklo_epi64(e, f));            \
        _mm_storeu_si128((__m128i *)(d + ((r) + 3) * d_row), _mm_unpackhi_epi64(e, f));            \
    }

// The same with 8 x 8 elements of 2 bytes. Written out: gcc keeps arrays in memory at -O2.
PTOISA_ALWAYS void ptoisa_transpose_x2(uint8_t *d, int64_t d_row, const uint8_t *s, int64_t s_col) {
    __m128i x0 = _mm_loadu_si128((const __m128i *)s);
    __m128i x1 = _mm_loadu_si128((const __m128i *)(s + s_col));
    __m128i x2 = _mm_loadu_si128((const __m128i *)(s + 2 * s_col));
    __m128i x3 = _mm_loadu_si128((const __m128i *)(s + 3 * s_col));
    __m128i x4 = _mm_loadu_si128((const __m128i *)(s + 4 * s_col));
    __m128i x5 = _mm_loadu_si128((const __m128i *)(s + 5 * s_col));
    __m128i x6 = _mm_loadu_si128((const __m128i *)(s + 6 * s_col));
    __m128i x7 = _mm_loadu_si128((const __m128i *)(s + 7 * s_col));
    __m128i y0 = _mm_unpacklo_epi16(x0, x1), y1 = _mm_unpacklo_epi16(x2, x3);
    __m128i y2 = _mm_unpacklo_epi16(x4, x5), y3 = _mm_unpacklo_epi16(x6, x7);
    PTOISA_STORE_FOUR(y0, y1, y2, y3, 0)
    y0 = _mm_unpackhi_epi16(x0, x1), y1 = _mm_unpackhi_epi16(x2, x3);
    y2 = _mm_unpackhi_epi16(x4, x5), y3 = _mm_unpackhi_epi16(x6, x7);
    PTOISA_STORE_FOUR(y0, y1, y2, y3, 4)
}

PTOISA_ALWAYS __m128i ptoisa_load_two_x1(const uint8_t *s, int64_t s_col) {
    return _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)s),
                             _mm_loadl_epi64((const __m128i *)(s + s_col)));
}

// The same with 8 columns and 16 rows of s of 1 byte: 16 elements in each row of d.
PTOISA_ALWAYS void ptoisa_transpose_x1(uint8_t *d, int64_t d_row, const uint8_t *s, int64_t s_col) {
    // Pairs of bytes are elements of 2 bytes, of 8 x 8.
    __m128i x0 = ptoisa_load_two_x1(s, s_col);
    __m128i x1 = ptoisa_load_two_x1(s + 2 * s_col, s_col);
    __m128i x2 = ptoisa_load_two_x1(s + 4 * s_col, s_col);
    __m128i x3 = ptoisa_load_two_x1(s + 6 * s_col, s_col);
    __m128i x4 = ptoisa_load_two_x1(s + 8 * s_col, s_col);
    __m128i x5 = ptoisa_load_two_x1(s + 10 * s_col, s_col);
    __m128i x6 = ptoisa_load_two_x1(s + 12 * s_col, s_col);
    __m128i x7 = ptoisa_load_two_x1(s + 14 * s_col, s_col);
    __m128i y0 = _mm_unpacklo_epi16(x0, x1), y1 = _mm_unpacklo_epi16(x2, x3);
    __m128i y2 = _mm_unpacklo_epi16(x4, x5), y3 = _mm_unpacklo_epi16(x6, x7);
    PTOISA_STORE_FOUR(y0, y1, y2, y3, 0)
    y0 = _mm_unpackhi_epi16(x0, x1), y1 = _mm_unpackhi_epi16(x2, x3);
    y2 = _mm_unpackhi_epi16(x4, x5), y3 = _mm_unpackhi_epi16(x6, x7);
    PTOISA_STORE_FOUR(y0, y1, y2, y3, 4)
}

// Goes by strips of 64 columns of d, so that lines of d are written once and lines of s, which lie
// along its rows, are read once.
#define PTOISA_TRANSPOSE_CASE(bytes, row_side, col_side)                                           \
    case bytes:                                                                                    \
        whole_rows = rows / row_side * row_side;                                                   \
        whole_cols = cols / col_side * col_side;                                                   \
        for (uint32_t strip = 0; strip < whole_cols; strip += 64 / bytes) {                        \
            uint32_t end = ptoisa_min_u32(whole_cols, strip + 64 / bytes);                         \
            for (uint32_t r = 0; r < whole_rows; r += row_side) {                                  \
                for (uint32_t c = strip; c < end; c += col_side) {                                 \
                    ptoisa_transpose_x##bytes(d + r * d_row + (int64_t)c * bytes, d_row,           \
                                              s + (int64_t)r * bytes + c * s_col, s_col);          \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        break;
#endif

// Copies where d is contiguous along columns and s along rows.
PTOISA_FN void ptoisa_copy_transposed(uint8_t *d, int64_t d_row, const uint8_t *s, int64_t s_col,
                                      uint32_t rows, uint32_t cols, uint32_t size) {
    uint32_t whole_rows = 0, whole_cols = 0;
#if PTOISA_X86
    switch (size) {
        PTOISA_TRANSPOSE_CASE(1, 8, 16)
        PTOISA_TRANSPOSE_CASE(2, 8, 8)
        PTOISA_TRANSPOSE_CASE(4, 4, 4)
    }
#endif
    if (whole_cols < cols) {
        ptoisa_copy_strided(d + (int64_t)whole_cols * size, d_row, size, s + whole_cols * s_col,
                            size, s_col, whole_rows, cols - whole_cols, size);
    }
    if (whole_rows < rows) {
        ptoisa_copy_strided(d + whole_rows * d_row, d_row, size, s + (int64_t)whole_rows * size,
                            size, s_col, rows - whole_rows, cols, size);
    }
}

// -- views ----------------------------------------------------------------------------------------

// How many indices from i to end are one stride apart in both.
PTOISA_INLINE uint32_t ptoisa_axes_left(const ptoisa_axis *d, const ptoisa_axis *s, uint32_t i,
                                        uint32_t end) {
    uint32_t left = ptoisa_min_u32(ptoisa_axis_left(d, i), ptoisa_axis_left(s, i));
    return ptoisa_min_u32(left, end - i);
}

// Copies rows that both views hold in runs along columns: `count` rows from r on, all one stride
// apart.
PTOISA_FN void ptoisa_copy_rows(const ptoisa_view *d, const ptoisa_view *s, uint32_t r,
                                uint32_t count, uint32_t cols, uint32_t size) {
    uint8_t *to = d->data + ptoisa_axis_at(&d->row, r), *group_to[4];
    const uint8_t *from = s->data + ptoisa_axis_at(&s->row, r), *group_from[4];
    int64_t d_step = d->row.inner, s_step = s->row.inner;
    bool is_box_to_box = d_step == 32 && s_step == 32;
    uint32_t waiting = 0, n;
    for (uint32_t c = 0; c < cols; c += n) {
        n = ptoisa_axes_left(&d->col, &s->col, c, cols);
        group_to[waiting] = to + ptoisa_axis_at(&d->col, c);
        group_from[waiting] = from + ptoisa_axis_at(&s->col, c);
        if (n * size != 32 || is_box_to_box) {
            ptoisa_copy_runs(group_to[waiting], d_step, group_from[waiting], s_step,
                             (size_t)n * size, count);
        } else if (++waiting == 4) {
            ptoisa_copy_4x32(group_to, d_step, group_from, s_step, count);
            waiting = 0;
        }
    }
    for (uint32_t i = 0; i < waiting; i++) {
        ptoisa_copy_runs(group_to[i], d_step, group_from[i], s_step, 32, count);
    }
}

// Copies rows x cols elements of so many bytes from s to d, which do not overlap.
PTOISA_FN void ptoisa_copy(ptoisa_view d, ptoisa_view s, uint32_t rows, uint32_t cols,
                           uint32_t size) {
    if (rows == 0 || cols == 0) {
        return;
    }
    bool is_along_cols = cols == 1 || (d.col.inner == size && s.col.inner == size);
    bool is_along_rows = rows == 1 || (d.row.inner == size && s.row.inner == size);
    bool is_swapped = is_along_rows ? !is_along_cols || cols == 1
                                    : !is_along_cols && d.col.inner != size && d.row.inner == size;
    if (is_swapped) {
        d = ptoisa_view_swap(d);
        s = ptoisa_view_swap(s);
        uint32_t swap = rows;
        rows = cols;
        cols = swap;
    }
    uint32_t row_count, n;
    for (uint32_t r = 0; r < rows; r += row_count) {
        row_count = ptoisa_axes_left(&d.row, &s.row, r, rows);
        if (is_along_rows || is_along_cols) {
            ptoisa_copy_rows(&d, &s, r, row_count, cols, size);
            continue;
        }
        for (uint32_t c = 0; c < cols; c += n) {
            n = ptoisa_axes_left(&d.col, &s.col, c, cols);
            uint8_t *to = d.data + ptoisa_axis_at(&d.row, r) + ptoisa_axis_at(&d.col, c);
            const uint8_t *from = s.data + ptoisa_axis_at(&s.row, r) + ptoisa_axis_at(&s.col, c);
            if (d.col.inner == size && s.row.inner == size) {
                ptoisa_copy_transposed(to, d.row.inner, from, s.col.inner, row_count, n, size);
            } else {
                ptoisa_copy_strided(to, d.row.inner, d.col.inner, from, s.row.inner, s.col.inner,
                                    row_count, n, size);
            }
        }
    }
}

// Fills so many bytes with a line again and again.
PTOISA_FN void ptoisa_fill_run(uint8_t *to, size_t bytes, const uint8_t line[64],
                               bool is_one_byte) {
    if (is_one_byte) {
        memset(to, line[0], bytes);
        return;
    }
    for (; bytes >= 64; bytes -= 64, to += 64) {
        memcpy(to, line, 64);
    }
    memcpy(to, line, bytes);
}

// Sets rows x cols elements to the same bits.
PTOISA_FN void ptoisa_fill(ptoisa_view d, uint32_t rows, uint32_t cols, uint32_t size,
                           uint64_t bits) {
    uint8_t line[64];  // the element, again and again
    for (uint32_t i = 0; i < 64; i += size) {
        ptoisa_put_bits(line + i, bits, size);
    }
    bool is_one_byte = memcmp(line, line + 1, sizeof line - 1) == 0;
    if (d.col.inner != size) {  // one of the axes of a tile is contiguous
        d = ptoisa_view_swap(d);
        uint32_t swap = rows;
        rows = cols;
        cols = swap;
    }
    uint32_t row_count, n;
    for (uint32_t r = 0; r < rows; r += row_count) {
        row_count = ptoisa_min_u32(ptoisa_axis_left(&d.row, r), rows - r);
        uint8_t *to = d.data + ptoisa_axis_at(&d.row, r);
        for (uint32_t c = 0; c < cols; c += n) {
            n = ptoisa_min_u32(ptoisa_axis_left(&d.col, c), cols - c);
            uint8_t *at = to + ptoisa_axis_at(&d.col, c);
            size_t run = (size_t)n * size;
            if (d.row.inner == (int64_t)run) {
                ptoisa_fill_run(at, run * row_count, line, is_one_byte);
                continue;
            }
            for (uint32_t i = 0; i < row_count; i++) {
                ptoisa_fill_run(at + i * d.row.inner, run, line, is_one_byte);
            }
        }
    }
}

#endif
