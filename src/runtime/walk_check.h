// Views and reads of a program as it is walked: finding tiles, elements and rows, and the errors
// for those that are not there. The library and emitted trees walk programs in their own ways, and
// both come here.
//
//      int64_t lead = 0;
//      bool is_inside = pwsp_view_lead(tensor, 0, b, &lead);         for each leading index
//      is_inside = is_inside && pwsp_view_tile(tensor, row, col, &size, &at);
//
// Finding is inline and has no error; a function that says why not is called afterwards, with the
// same values. Errors tell no place: the caller knows where it is.

#ifndef PWSP_WALK_CHECK_H
#define PWSP_WALK_CHECK_H

#include "../base/error.h"
#include "../data/array.h"
#include "arrival.h"

// -- tiles ----------------------------------------------------------------------------------------

// Adds leading index i to the offset of a matrix. False if it is outside.
PWSP_INLINE bool pwsp_view_lead(const pwsp_bound_tensor *tensor, uint32_t i, int64_t index,
                                int64_t *lead) {
    *lead = (int64_t)((uint64_t)*lead + (uint64_t)index * (uint64_t)tensor->lead_strides[i]);
    return (uint64_t)index < (uint64_t)tensor->lead_shape[i];
}

// The size that a program gives a tile: rows x cols, which are 0 up to the edge, and at most so many.
typedef struct pwsp_view_size {
    int64_t rows, cols;
    int64_t row_max, col_max;  // INT64_MAX: no limit
} pwsp_view_size;

// A tile from (row, col) on; it is smaller at the edge. Sets position and size. False, with nothing
// set, if (row, col) is outside, nothing is left, or the tile is larger than one can be.
PWSP_INLINE bool pwsp_view_tile(const pwsp_bound_tensor *tensor, int64_t row, int64_t col,
                                const pwsp_view_size *size, pwsp_tile_at *at) {
    if ((uint64_t)row >= (uint64_t)tensor->rows || (uint64_t)col >= (uint64_t)tensor->cols) {
        return false;
    }
    int64_t rows_left = tensor->rows - row, cols_left = tensor->cols - col;
    int64_t rows = size->rows && size->rows < rows_left ? size->rows : rows_left;
    int64_t cols = size->cols && size->cols < cols_left ? size->cols : cols_left;
    rows = size->row_max < rows ? size->row_max : rows;
    cols = size->col_max < cols ? size->col_max : cols;
    if (rows < 1 || cols < 1 || ((uint64_t)rows | (uint64_t)cols) > UINT32_MAX) {
        return false;
    }
    at->rows = (uint32_t)rows;
    at->cols = (uint32_t)cols;
    at->row = row;
    at->col = col;
    return true;
}

// Why not: is it this leading index? `param` is the name of the tile, or "the view".
PWSP_INTERNAL bool pwsp_view_fail_lead(pwsp_error *error, const char *param, const char *name,
                                       const pwsp_bound_tensor *tensor, uint32_t i, int64_t index);

// The error of an index that is not a leading one.
PWSP_INTERNAL ptowsp_status pwsp_view_fail(pwsp_error *error, const char *param, const char *name,
                                           const pwsp_bound_tensor *tensor, int64_t row,
                                           int64_t col, const pwsp_view_size *size);

// Makes a tile its element (row, col).
PWSP_INTERNAL ptowsp_status pwsp_view_element(pwsp_error *error, int64_t row, int64_t col,
                                              pwsp_tile_at *at);

// The element that a tile consists of, as a cell.
PWSP_INTERNAL uint64_t pwsp_view_load(const pwsp_bound_tensor *tensor, const pwsp_tile_at *at);

// -- arrays ---------------------------------------------------------------------------------------

// For an index that an array does not have. is_key: a key of the schedule reads it.
PWSP_INTERNAL ptowsp_status pwsp_read_fail(pwsp_error *error, bool is_key, const char *name,
                                           const pwsp_array *array, int64_t index);

// The length of a row of a ragged axis, and the entries of a row of a sparse one. Both were
// well-formed when the run began; a kernel may have overwritten them since then.
PWSP_INTERNAL ptowsp_status pwsp_row_length(pwsp_error *error, const char *axis,
                                            const pwsp_array *lengths, int64_t row,
                                            int64_t *out_length);
PWSP_INTERNAL ptowsp_status pwsp_row_entries(pwsp_error *error, const char *axis,
                                             const pwsp_bound_csr *csr, int64_t row,
                                             uint64_t *out_first, uint64_t *out_end);

// The descriptors of a lane of a plan, which has `count` of them. The same holds for its bounds.
PWSP_INTERNAL ptowsp_status pwsp_row_work(pwsp_error *error, const char *plan,
                                          const pwsp_array *lanes, int64_t lane, uint64_t count,
                                          uint64_t *out_first, uint64_t *out_end);

#endif
