// Tiles, elements and rows of a walk: which are there, where they are, and what is said of those that
// are not. Positions and texts are worked out by hand.

#include "test.h"

#include "src/runtime/walk_check.h"

// 2 x 3 matrices of 4 x 10, row-major: a matrix has 40 elements, three of them 120.
static pwsp_bound_tensor tensor_make(int32_t *data) {
    pwsp_bound_tensor tensor = {.data = (char *)data,
                                .lead_shape[0] = 2,
                                .lead_shape[1] = 3,
                                .lead_strides[0] = 120,
                                .lead_strides[1] = 40,
                                .rows = 4,
                                .cols = 10,
                                .row_stride = 10,
                                .col_stride = 1,
                                .element_size = 4,
                                .dtype = PTOWSP_I32,
                                .is_bound = true};
    return tensor;
}

static void error_is(const pwsp_error *error, ptowsp_status status, uint64_t index,
                     const char *text) {
    assert_int_equal(error->status, status);
    assert_int_equal(error->index, index);
    assert_string_equal(error->text, text);
}

static const pwsp_view_size unlimited = {0, 0, INT64_MAX, INT64_MAX};

// A tile of rows x cols from (row, col).
static bool view_tile(const pwsp_bound_tensor *tensor, int64_t row, int64_t rows, int64_t col,
                      int64_t cols, pwsp_tile_at *at) {
    const pwsp_view_size size = {rows, cols, INT64_MAX, INT64_MAX};
    return pwsp_view_tile(tensor, row, col, &size, at);
}

TEST(walk_check__limits_tiles) {
    const pwsp_bound_tensor tensor = tensor_make(NULL);
    pwsp_error error;
    pwsp_tile_at at = {0};
    pwsp_view_size size = {3, 0, 2, 20};  // 3 rows, at most 2; all columns, at most 20
    assert_true(pwsp_view_tile(&tensor, 0, 4, &size, &at));
    assert_true(at.rows == 2 && at.cols == 6);
    size.col_max = 1;
    assert_true(pwsp_view_tile(&tensor, 3, 4, &size, &at));
    assert_true(at.rows == 1 && at.cols == 1);
    size.col_max = 0;
    assert_false(pwsp_view_tile(&tensor, 0, 4, &size, &at));
    pwsp_view_fail(&error, "x", "T", &tensor, 0, 4, &size);
    error_is(&error, PTOWSP_INVALID_PARAMS, 0, "x: the tile of tensor T has 0 columns");
    size.row_max = -7;
    assert_false(pwsp_view_tile(&tensor, 0, 4, &size, &at));
    pwsp_view_fail(&error, "x", "T", &tensor, 0, 4, &size);
    error_is(&error, PTOWSP_INVALID_PARAMS, pwsp_error_index(-7),
             "x: the tile of tensor T has -7 rows");
}

TEST(walk_check__finds_tiles) {
    const pwsp_bound_tensor tensor = tensor_make(NULL);
    int64_t lead = 0;
    pwsp_tile_at at = {0};
    assert_true(pwsp_view_lead(&tensor, 0, 1, &lead));
    assert_true(pwsp_view_lead(&tensor, 1, 2, &lead));
    assert_int_equal(lead, 120 + 2 * 40);
    // In the middle, at the edge, and up to it.
    assert_true(view_tile(&tensor, 1, 2, 4, 5, &at));
    assert_true(at.row == 1 && at.rows == 2 && at.col == 4 && at.cols == 5);
    assert_true(view_tile(&tensor, 3, 2, 9, 5, &at));
    assert_true(at.row == 3 && at.rows == 1 && at.col == 9 && at.cols == 1);
    assert_true(view_tile(&tensor, 1, 0, 2, 0, &at));
    assert_true(at.rows == 3 && at.cols == 8);
}

TEST(walk_check__says_why_a_tile_is_not_there) {
    pwsp_bound_tensor tensor = tensor_make(NULL);
    pwsp_error error;
    pwsp_tile_at at;
    int64_t lead = 0;
    assert_true(pwsp_view_lead(&tensor, 0, 0, &lead));
    assert_false(pwsp_view_fail_lead(&error, "x", "T", &tensor, 0, 1));
    assert_false(pwsp_view_lead(&tensor, 1, 3, &lead));
    assert_true(pwsp_view_fail_lead(&error, "x", "T", &tensor, 1, 3));
    error_is(&error, PTOWSP_INVALID_PARAMS, 3,
             "x: index 1 of tensor T is 3, outside of its size 3");
    assert_false(pwsp_view_lead(&tensor, 0, -1, &lead));
    assert_true(pwsp_view_fail_lead(&error, "x", "T", &tensor, 0, -1));
    error_is(&error, PTOWSP_INVALID_PARAMS, PTOWSP_NEGATIVE_INDEX,
             "x: index 0 of tensor T is -1, outside of its size 2");
    // Rows come before columns.
    assert_false(view_tile(&tensor, 4, 1, 10, 1, &at));
    assert_invalid(pwsp_view_fail(&error, "x", "T", &tensor, 4, 10, &unlimited));
    error_is(&error, PTOWSP_INVALID_PARAMS, 4, "x: row 4 of tensor T is outside of its 4 rows");
    assert_false(view_tile(&tensor, 0, 1, -2, 1, &at));
    pwsp_view_fail(&error, "the view", "T", &tensor, 0, -2, &unlimited);
    error_is(&error, PTOWSP_INVALID_PARAMS, PTOWSP_NEGATIVE_INDEX,
             "the view: column -2 of tensor T is outside of its 10 columns");
    // A tile has at most 2^32 - 1 rows, also one that ends at the edge.
    tensor.rows = INT64_C(1) << 32;
    assert_true(view_tile(&tensor, 1, 0, 0, 1, &at));
    assert_int_equal(at.rows, UINT32_MAX);
    assert_false(view_tile(&tensor, 0, 0, 0, 1, &at));
    assert_true(view_tile(&tensor, 0, 7, 0, 1, &at));
    pwsp_view_fail(&error, "x", "T", &tensor, 0, 0, &unlimited);
    error_is(&error, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
             "x: the tile of tensor T has 2^32 rows or columns");
}

TEST(walk_check__loads_elements) {
    int32_t data[240];
    for (int32_t i = 0; i < 240; i++) {
        data[i] = 1000 + i;
    }
    const pwsp_bound_tensor tensor = tensor_make(data);
    pwsp_error error;
    pwsp_tile_at at = {0};
    assert_true(pwsp_view_lead(&tensor, 0, 1, &at.lead));
    assert_true(view_tile(&tensor, 2, 0, 3, 4, &at));
    assert_invalid(pwsp_view_element(&error, 2, 0, &at));
    error_is(&error, PTOWSP_INVALID_PARAMS, 2, "element (2, 0) of a tile of 2 x 4");
    assert_invalid(pwsp_view_element(&error, 1, 4, &at));
    error_is(&error, PTOWSP_INVALID_PARAMS, 1, "element (1, 4) of a tile of 2 x 4");
    assert_ok(pwsp_view_element(&error, 1, 3, &at));
    assert_true(at.rows == 1 && at.cols == 1);
    assert_int_equal(pwsp_view_load(&tensor, &at), 1000 + 120 + 3 * 10 + 6);
}

TEST(walk_check__knows_the_rows_of_arrays) {
    int64_t lengths[] = {5, 0, -1}, indptr[] = {0, 2, 1, 9}, indices[] = {7, 8, 9};
    const pwsp_array array = {lengths, 3, PTOWSP_I64, true, 0, 0};
    const pwsp_bound_csr csr = {
        {indptr, 4, PTOWSP_I64, true, 0, 0}, {indices, 3, PTOWSP_I64, true, 0, 0}, 3, 3, true};
    pwsp_error error;
    int64_t length = 77;
    uint64_t first = 77, end = 77;
    assert_ok(pwsp_row_length(&error, "kv", &array, 0, &length));
    assert_int_equal(length, 5);
    assert_invalid(pwsp_row_length(&error, "kv", &array, 3, &length));
    error_is(&error, PTOWSP_INVALID_PARAMS, 3, "row 3 of axis kv, which has 3");
    assert_invalid(pwsp_row_length(&error, "kv", &array, 2, &length));
    error_is(&error, PTOWSP_INVALID_PARAMS, 2,
             "row 2 of axis kv was changed during the run, and is malformed now");
    assert_int_equal(length, 5);
    assert_ok(pwsp_row_entries(&error, "adj", &csr, 0, &first, &end));
    assert_true(first == 0 && end == 2);
    assert_invalid(pwsp_row_entries(&error, "adj", &csr, -1, &first, &end));
    error_is(&error, PTOWSP_INVALID_PARAMS, PTOWSP_NEGATIVE_INDEX,
             "row -1 of axis adj, which has 3");
    // It ends before it begins; it ends behind the last index.
    for (int64_t row = 1; row <= 2; row++) {
        assert_invalid(pwsp_row_entries(&error, "adj", &csr, row, &first, &end));
        assert_non_null(strstr(error.text, " of axis adj was changed during the run"));
        assert_int_equal(error.index, row);
        assert_true(first == 0 && end == 2);
    }
    pwsp_read_fail(&error, false, "a", &array, 3);
    error_is(&error, PTOWSP_INVALID_PARAMS, 3, "array a is read at 3; it has 3 elements");
    pwsp_read_fail(&error, true, "a", &array, -4);
    error_is(&error, PTOWSP_INVALID_PARAMS, PTOWSP_NEGATIVE_INDEX,
             "a key of the schedule reads array a at -4; it has 3 elements");
}
