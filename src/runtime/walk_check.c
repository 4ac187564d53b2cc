// Errors of a walk: see walk_check.h. Their index is the value that is wrong.

#include "walk_check.h"

#include <inttypes.h>

// -- tiles ----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_view_fail_lead(pwsp_error *error, const char *param, const char *name,
                                       const pwsp_bound_tensor *tensor, uint32_t i, int64_t index) {
    PTOWSP_ASSERT(i < PWSP_TENSOR_LEAD_MAX);
    if ((uint64_t)index < (uint64_t)tensor->lead_shape[i]) {
        return false;
    }
    pwsp_error_set(error, PTOWSP_INVALID_PARAMS, pwsp_error_index(index),
                   "%s: index %u of tensor %s is %" PRId64 ", outside of its size %" PRId64, param,
                   i, name, index, tensor->lead_shape[i]);
    return true;
}

PWSP_INTERNAL ptowsp_status pwsp_view_fail(pwsp_error *error, const char *param, const char *name,
                                           const pwsp_bound_tensor *tensor, int64_t row,
                                           int64_t col, const pwsp_view_size *size) {
    if ((uint64_t)row >= (uint64_t)tensor->rows) {
        return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, pwsp_error_index(row),
                              "%s: row %" PRId64 " of tensor %s is outside of its %" PRId64 " rows",
                              param, row, name, tensor->rows);
    }
    if ((uint64_t)col >= (uint64_t)tensor->cols) {
        return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, pwsp_error_index(col),
                              "%s: column %" PRId64 " of tensor %s is outside of its %" PRId64
                              " columns",
                              param, col, name, tensor->cols);
    }
    if (size->row_max < 1 || size->col_max < 1) {
        int64_t least = size->row_max < 1 ? size->row_max : size->col_max;
        return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, pwsp_error_index(least),
                              "%s: the tile of tensor %s has %" PRId64 " %s", param, name, least,
                              size->row_max < 1 ? "rows" : "columns");
    }
    return pwsp_error_set(error, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                          "%s: the tile of tensor %s has 2^32 rows or columns", param, name);
}

PWSP_INTERNAL ptowsp_status pwsp_view_element(pwsp_error *error, int64_t row, int64_t col,
                                              pwsp_tile_at *at) {
    if ((uint64_t)row >= at->rows || (uint64_t)col >= at->cols) {
        return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, pwsp_error_index(row),
                              "element (%" PRId64 ", %" PRId64 ") of a tile of %u x %u", row, col,
                              at->rows, at->cols);
    }
    at->row += row;
    at->col += col;
    at->rows = 1;
    at->cols = 1;
    return PTOWSP_OK;
}

PWSP_INTERNAL uint64_t pwsp_view_load(const pwsp_bound_tensor *tensor, const pwsp_tile_at *at) {
    PTOWSP_ASSERT(at->rows == 1 && at->cols == 1 && tensor->data);
    int64_t offset = pwsp_tile_offset(tensor, at);
    pwsp_array element = {
        tensor->data + offset * (int64_t)tensor->element_size, 1, tensor->dtype, true, 0, 0};
    return pwsp_array_at(&element, 0);
}

// -- arrays ---------------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_read_fail(pwsp_error *error, bool is_key, const char *name,
                                           const pwsp_array *array, int64_t index) {
    return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, pwsp_error_index(index),
                          is_key ? "a key of the schedule reads array %s at %" PRId64
                                   "; it has %" PRIu64 " elements"
                                 : "array %s is read at %" PRId64 "; it has %" PRIu64 " elements",
                          name, index, array->count);
}

static ptowsp_status pwsp_row_fail(pwsp_error *error, const char *axis, int64_t row,
                                   uint64_t row_count) {
    return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, pwsp_error_index(row),
                          "row %" PRId64 " of axis %s, which has %" PRIu64, row, axis, row_count);
}

static ptowsp_status pwsp_row_fail_changed(pwsp_error *error, const char *axis, int64_t row) {
    return pwsp_error_set(
        error, PTOWSP_INVALID_PARAMS, pwsp_error_index(row),
        "row %" PRId64 " of axis %s was changed during the run, and is malformed now", row, axis);
}

PWSP_INTERNAL ptowsp_status pwsp_row_length(pwsp_error *error, const char *axis,
                                            const pwsp_array *lengths, int64_t row,
                                            int64_t *out_length) {
    if ((uint64_t)row >= lengths->count) {
        return pwsp_row_fail(error, axis, row, lengths->count);
    }
    int64_t length = (int64_t)pwsp_array_at(lengths, (uint64_t)row);
    if (length < 0) {
        return pwsp_row_fail_changed(error, axis, row);
    }
    *out_length = length;
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_row_entries(pwsp_error *error, const char *axis,
                                             const pwsp_bound_csr *csr, int64_t row,
                                             uint64_t *out_first, uint64_t *out_end) {
    if ((uint64_t)row >= csr->row_count) {
        return pwsp_row_fail(error, axis, row, csr->row_count);
    }
    uint64_t first = pwsp_array_at(&csr->indptr, (uint64_t)row);
    uint64_t end = pwsp_array_at(&csr->indptr, (uint64_t)row + 1);
    if (first > end || end > csr->indices.count) {
        return pwsp_row_fail_changed(error, axis, row);
    }
    *out_first = first;
    *out_end = end;
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_row_work(pwsp_error *error, const char *plan,
                                          const pwsp_array *lanes, int64_t lane, uint64_t count,
                                          uint64_t *out_first, uint64_t *out_end) {
    const uint32_t *begin = (const uint32_t *)lanes->data;
    if (!begin && count == 0) {  // merges of a plan that is bound without any
        *out_first = *out_end = 0;
        return PTOWSP_OK;
    }
    if ((uint64_t)lane >= lanes->range_count) {
        return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, pwsp_error_index(lane),
                              "lane %" PRId64 " of plan %s, which has %u", lane, plan,
                              lanes->range_count);
    }
    if (begin[lane] > begin[lane + 1] || begin[lane + 1] > count) {
        return pwsp_error_set(error, PTOWSP_INVALID_PARAMS, pwsp_error_index(lane),
                              "lane %" PRId64
                              " of plan %s was changed during the run, and is malformed now",
                              lane, plan);
    }
    *out_first = begin[lane];
    *out_end = begin[lane + 1];
    return PTOWSP_OK;
}
