// Tiles, elements and rows of a walk, as facts (support/facts.h): which are there, where they are, and what is said of
// those that are not.

#include "facts.h"

#include "src/runtime/walk_check.h"

enum { MATRICES = 6, ELEMENTS = 40 };

static int32_t data[MATRICES * ELEMENTS];
static pwsp_bound_tensor tensor;
static pwsp_tile_at at;
static int64_t kv_length, lengths[3], indptr[4], indices[3];
static uint64_t first, end, loaded;
static pwsp_error last;

// 2 x 3 matrices of 4 x 10, row-major: a matrix has 40 elements, three of them 120. Element i is 1,000 + i.
static void begin(void) {
    tensor = (pwsp_bound_tensor){.data = (char *)data,
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
    for (int32_t i = 0; i < MATRICES * ELEMENTS; i++) {
        data[i] = 1000 + i;
    }
    memcpy(lengths, (const int64_t[]){5, 0, -1}, sizeof lengths);
    memcpy(indptr, (const int64_t[]){0, 2, 1, 9}, sizeof indptr);
    memcpy(indices, (const int64_t[]){7, 8, 9}, sizeof indices);
    memset(&at, 0, sizeof at);
    kv_length = 77, first = end = 77;
}

static int64_t next_number(void) {
    char *stop;
    const int64_t number = strtoll(facts_words, &stop, 10);
    assert_true(stop != facts_words);
    facts_words = stop;
    return number;
}

// DIMENSION INDEX: adds up
static ptowsp_status call_lead(void) {
    const uint32_t dimension = (uint32_t)next_number();
    const int64_t index = next_number();
    const bool is_there = pwsp_view_lead(&tensor, dimension, index, &at.lead);
    assert_int_equal(pwsp_view_fail_lead(&last, "x", "T", &tensor, dimension, index), !is_there);
    return is_there ? PTOWSP_OK : last.status;
}

// ROW ROWS COL COLS [ROWS_MAX COLS_MAX]; of 0 rows: all of them
static ptowsp_status call_tile(void) {
    const int64_t row = next_number(), rows = next_number(), col = next_number();
    pwsp_view_size size = {rows, next_number(), INT64_MAX, INT64_MAX};
    if (*facts_words) {
        size.row_max = next_number();
        size.col_max = next_number();
    }
    return pwsp_view_tile(&tensor, row, col, &size, &at)
               ? PTOWSP_OK
               : pwsp_view_fail(&last, "x", "T", &tensor, row, col, &size);
}

// ROW COL of the tile
static ptowsp_status call_element(void) {
    const int64_t row = next_number();
    const ptowsp_status status = pwsp_view_element(&last, row, next_number(), &at);
    loaded = status == PTOWSP_OK ? pwsp_view_load(&tensor, &at) : loaded;
    return status;
}

// ROW of an array of lengths, or of a list of rows
static ptowsp_status call_length(void) {
    const pwsp_array array = {lengths, 3, PTOWSP_I64, true, 0, 0};
    return pwsp_row_length(&last, "kv", &array, next_number(), &kv_length);
}

static ptowsp_status call_entries(void) {
    const pwsp_bound_csr csr = {
        {indptr, 4, PTOWSP_I64, true, 0, 0}, {indices, 3, PTOWSP_I64, true, 0, 0}, 3, 3, true};
    return pwsp_row_entries(&last, "adj", &csr, next_number(), &first, &end);
}

// INDEX of an array, by a kernel or by a key: it is not there
static ptowsp_status call_read(void) {
    const pwsp_array array = {lengths, 3, PTOWSP_I64, true, 0, 0};
    const bool is_key = strncmp(facts_words, "key ", 4) == 0;
    facts_words += is_key ? 4 : 0;
    pwsp_read_fail(&last, is_key, "a", &array, next_number());
    return last.status;
}

static const char *error(uint64_t *out_index) {
    *out_index = last.index;
    return last.text;
}

static void nothing_is_written(void) {
    assert_true(kv_length == 77 && first == 77 && end == 77);
}

static const facts_field *fields(void) {
    FACTS_RETURN(FIELD(tensor.rows), FIELD(at.lead), FIELD(at.row), FIELD(at.rows), FIELD(at.col),
                 FIELD(at.cols), FIELD(loaded), FIELD(kv_length), FIELD(first), FIELD(end));
}

TEST(walk_check__facts_hold) {
    static const facts_call calls[] = {{"lead ", call_lead},
                                       {"tile ", call_tile},
                                       {"element ", call_element},
                                       {"length ", call_length},
                                       {"entries ", call_entries},
                                       {"read ", call_read},
                                       {NULL, NULL}};
    facts all = {
        "tests/runtime/walk_check.facts", begin, fields, calls, error, nothing_is_written, 0};
    facts_run(&all);
}
