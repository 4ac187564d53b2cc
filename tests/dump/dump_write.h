// Dumps of PTO Runtime, written by tests: growing text, and small programs whose bytes are known.

#ifndef DUMP_WRITE_H
#define DUMP_WRITE_H

#include "test.h"

typedef struct dw_text {
    char *data;
    size_t size, capacity;
} dw_text;

__attribute__((format(printf, 2, 3))) static inline void dw_print(dw_text *t, const char *format,
                                                                  ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const size_t length = (size_t)vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (t->size + length + 1 > t->capacity) {
        t->capacity = 2 * (t->size + length + 1);
        t->data = (char *)realloc(t->data, t->capacity);
        assert_non_null(t->data);
    }
    vsnprintf(t->data + t->size, length + 1, format, args);
    t->size += length;
    va_end(args);
}

// Without bytes behind it, so that sanitizers see a read beyond the end.
static inline ptowsp_dump_file dw_exact(const char *text, size_t size) {
    char *copy = (char *)malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, text, size);
    ptowsp_dump_file file = {copy, size};
    return file;
}

// Opens the text of deps.json alone.
static inline ptowsp_status dw_open(ptowsp_context *context, const char *deps, size_t size,
                                    ptowsp_dump **out_dump) {
    ptowsp_dump_desc desc = {.deps = dw_exact(deps, size)};
    const ptowsp_status status = ptowsp_dump_open(context, &desc, out_dump);
    free((void *)(uintptr_t)desc.deps.text);
    return status;
}

#endif
