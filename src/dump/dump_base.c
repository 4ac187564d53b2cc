// Memory, and text to a sink.

#include "dump.h"

#include <stdlib.h>

#ifndef PTOWSP_DUMP_RESIZE
#define PTOWSP_DUMP_RESIZE(ptr, size) dump_realloc(ptr, size)

static void *dump_realloc(void *ptr, size_t size) {
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, size);
}
#endif

DUMP_INTERNAL void *dump_resize(void *ptr, size_t size) {
    return PTOWSP_DUMP_RESIZE(ptr, size);
}

DUMP_INTERNAL bool dump_grow(void **array, uint32_t count, uint32_t *capacity, size_t size) {
    if (count < *capacity) {
        return true;
    }
    const uint32_t larger = *capacity ? 2 * *capacity : 64;
    void *grown = dump_resize(*array, larger * size);
    if (!grown) {
        return false;
    }
    *array = grown;
    *capacity = larger;
    return true;
}

DUMP_INTERNAL void *dump_zeroed(uint64_t count, size_t size) {
    const uint64_t bytes = (count ? count : 1) * size;
    void *memory = bytes > SIZE_MAX ? NULL : dump_resize(NULL, (size_t)bytes);
    return memory ? memset(memory, 0, (size_t)bytes) : NULL;
}

DUMP_INTERNAL bool dump_fail(ptowsp_dump *dump, ptowsp_status status, uint64_t index,
                             const char *format, ...) {
    if (dump->status == PTOWSP_OK) {
        char text[512];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        dump->status = ptowsp_context_fail(dump->context, status, index, text);
    }
    return false;
}

DUMP_INTERNAL bool dump_out_of_memory(ptowsp_dump *dump) {
    return dump_fail(dump, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "dump: out of memory");
}

DUMP_INTERNAL void dump_write(ptowsp_output text, const char *data, size_t size) {
    if (text.write && size) {
        text.write(text.user, data, size);
    }
}

// Pieces are short: names are at most DUMP_JSON_TEXT.
DUMP_INTERNAL void dump_print(ptowsp_output text, const char *format, ...) {
    char piece[1024];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    PTOWSP_ASSERT(length >= 0 && (size_t)length < sizeof piece);
    dump_write(text, piece, (size_t)length < sizeof piece ? (size_t)length : sizeof piece - 1);
}

DUMP_INTERNAL void dump_escaped(ptowsp_output text, ptowsp_dump_format format, const char *string) {
    static const char marks[][8] = {"", "\"\\", "<>&\"'"};
    static const char escapes[][8] = {"?", "\\u%04x", "&#%u;"};
    for (const char *at = string; *at; at++) {
        const unsigned char c = (unsigned char)*at;
        if (c < 0x20 || c > 0x7e || strchr(marks[format], c)) {
            dump_print(text, escapes[format], (unsigned)c);
        } else {
            dump_write(text, at, 1);
        }
    }
}
