// A kernel through text: its module is printed and read, and the kernel that is read is the same one,
// instruction by instruction. With KT_LOWERED as kt_through_text the tests of kernels run what was read.

#ifndef PTOWSP_KERNEL_TEXT_H
#define PTOWSP_KERNEL_TEXT_H

#include "test.h"

enum { KERNEL_TEXT_MAX = 1 << 20 };

static char kernel_text[KERNEL_TEXT_MAX], kernel_text_again[KERNEL_TEXT_MAX];

static inline void kernel_text_same(ptowsp_output_buffer *a, ptowsp_output_buffer *b) {
    assert_true(a->length < KERNEL_TEXT_MAX);
    if (strcmp(a->data, b->data) != 0) {
        fail_msg("%s\nis read as\n%s", a->data, b->data);
    }
}

// A module as text in kernel_text; returns what is read of it.
static inline ptowsp_module *kernel_text_read(ptowsp_context *context, const ptowsp_module *m) {
    ptowsp_output_buffer a = {kernel_text, KERNEL_TEXT_MAX, 0};
    ptowsp_module *read;
    ptowsp_module_print(m, ptowsp_output_to_buffer(&a));
    if (ptowsp_module_parse(context, kernel_text, a.length, NULL, &read, NULL) != PTOWSP_OK) {
        fail_msg("%s\n%s", ptowsp_context_error(context).text, kernel_text);
    }
    return read;
}

// Both modules have the same kernels.
static inline void kernel_text_compare(const ptowsp_module *m, const ptowsp_module *read,
                                       ptowsp_kernel kernel) {
    ptowsp_output_buffer a = {kernel_text, KERNEL_TEXT_MAX, 0};
    ptowsp_output_buffer b = {kernel_text_again, KERNEL_TEXT_MAX, 0};
    ptowsp_module_print(m, ptowsp_output_to_buffer(&a));
    ptowsp_module_print(read, ptowsp_output_to_buffer(&b));
    kernel_text_same(&a, &b);
    ptowsp_kernel_print(m, kernel, NULL, ptowsp_output_to_buffer(&a));
    ptowsp_kernel_print(read, kernel, NULL, ptowsp_output_to_buffer(&b));
    kernel_text_same(&a, &b);
    assert_true(ptowsp_kernel_hash(m, kernel) == ptowsp_kernel_hash(read, kernel));
    assert_true(ptowsp_kernel_hash(m, kernel) != 0);
    for (int model = PTOWSP_MODEL_UNIT; model <= PTOWSP_MODEL_A5; model++) {
        const ptowsp_cost cost = {.model = (ptowsp_model)model};
        ptowsp_kernel_stats stats[2] = {0};
        assert_int_equal(ptowsp_kernel_measure(m, kernel, &cost, &stats[0]),
                         ptowsp_kernel_measure(read, kernel, &cost, &stats[1]));
        assert_memory_equal(&stats[0], &stats[1], sizeof stats[0]);
    }
}

#define kt_through_text(t)                                                                         \
    do {                                                                                           \
        ptowsp_module *read_ = kernel_text_read((t)->context, (t)->m);                             \
        kernel_text_compare((t)->m, read_, (t)->kernel);                                           \
        ptowsp_module_destroy((t)->m);                                                             \
        (t)->m = read_;                                                                            \
        (t)->k = NULL;                                                                             \
    } while (0)

#endif
