// Tests of ptoisa_shim.h: windows of global memory, of random shape and strides, in a buffer that
// is larger, so that what lies between and around their elements can be compared too.

#ifndef PTOISA_WINDOW_H
#define PTOISA_WINDOW_H

#include "isa_test.h"

typedef struct test_window {
    test_tile *buffer;  // one row
    ptoisa_global global;
    uint32_t base;  // of the window's first element in the buffer
} test_window;

// Where element (r, c) is in the buffer: r counts dimensions 0 to 3, the last fastest.
static inline uint32_t test_window_at(const test_window *w, uint32_t r, uint32_t c) {
    const int64_t *shape = w->global.shape, *stride = w->global.stride;
    int64_t at = c * stride[4], rest = r;
    for (int i = 3; i >= 0; i--) {
        at += rest % shape[i] * stride[i];
        rest /= shape[i];
    }
    return w->base + (uint32_t)at;
}

static inline uint64_t test_window_was(const test_window *w, uint32_t r, uint32_t c) {
    return ref_was_bits(w->buffer, 0, test_window_at(w, r, c));
}

// A window whose rows are dimensions 0 to 3, split at random, with room between (or dimension 3
// alone: a matrix); or, transposed, of columns that are each in one piece.
static inline test_window test_window_make(test_bench *bench, ptoisa_dtype dtype, uint32_t rows,
                                           uint32_t cols, bool is_matrix, bool is_transposed) {
    test_window w = {0};
    int64_t shape[5] = {1, 1, 1, rows, cols}, stride[5] = {0, 0, 0, 0, 1};
    bool is_split = !is_transposed && !is_matrix && test_chance(bench, 2);
    for (int i = 3; is_split && i > 0; i--) {
        uint32_t part = test_in(bench, 1, (uint32_t)shape[i]);
        if (shape[i] % part == 0) {
            shape[i - 1] = shape[i] / part;
            shape[i] = part;
        }
    }
    int64_t extent = cols;
    if (is_transposed) {
        stride[3] = 1;
        stride[4] = rows + test_in(bench, 0, 5);
        stride[0] = stride[1] = stride[2] = extent = stride[4] * cols;
    }
    for (int i = 3; !is_transposed && i >= 0; i--) {
        stride[i] = extent + (test_chance(bench, 3) ? 0 : test_in(bench, 0, 7));
        extent = stride[i] * shape[i];
    }
    w.base = test_in(bench, 0, 9);
    uint32_t size = w.base + (uint32_t)extent + test_in(bench, 0, 9);
    w.buffer = test_tile_make(bench, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR, 1, size, 1, size);
    test_fill(bench, w.buffer, TEST_PLAIN);
    w.global.data = (uint8_t *)w.buffer->tile.data + (size_t)w.base * ref_size(dtype);
    w.global.dtype = (uint8_t)dtype;
    memcpy(w.global.shape, shape, sizeof shape);
    memcpy(w.global.stride, stride, sizeof stride);
    return w;
}

// What is not in the window holds what it held.
static inline void test_window_rest_is_untouched(const test_bench *bench, const test_window *w) {
    uint32_t size = w->buffer->tile.cols;
    uint32_t rows = (uint32_t)(w->global.shape[0] * w->global.shape[1] * w->global.shape[2] *
                               w->global.shape[3]);
    bool *is_in = (bool *)calloc(size, sizeof(bool));
    assert_non_null(is_in);
    TEST_GRID(uint32_t, r, rows, c, w->global.shape[4]) {
        is_in[test_window_at(w, r, c)] = true;
    }
    for (uint32_t i = 0; i < size; i++) {
        if (!is_in[i]) {
            test_expect_bits(bench, w->buffer, 0, i, ref_was_bits(w->buffer, 0, i));
        }
    }
    free(is_in);
}

#endif
