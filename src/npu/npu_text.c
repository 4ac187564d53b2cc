// Growing text, and its escapes.
//
// User text reaches a tree in three ways only: as a string literal, in a comment, or as an
// identifier (npu_names.c). Names are printable ASCII without quotes or backslash; places and
// schedules consist of them. Nothing here relies on that.

#include "npu.h"

#include "../base/json.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef PTOWSP_NPU_RESIZE
#define PTOWSP_NPU_RESIZE(ptr, size) npu_realloc(ptr, size)

static void *npu_realloc(void *ptr, size_t size) {
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, size);
}
#endif

NPU_INTERNAL void *npu_resize(void *ptr, size_t size) {
    return PTOWSP_NPU_RESIZE(ptr, size);
}

// The array is a pointer of any type.
NPU_INTERNAL bool npu_room(void *array, uint32_t *capacity, uint64_t needed, size_t item_size) {
    if (needed <= *capacity) {
        return true;
    }
    uint64_t count = *capacity < 16 ? 16 : 2 * (uint64_t)*capacity;
    count = count < needed ? needed : count;
    char *items;
    memcpy(&items, array, sizeof items);
    items = count > UINT32_MAX ? NULL : (char *)npu_resize(items, (size_t)count * item_size);
    if (!items) {
        return false;
    }
    memset(items + *capacity * item_size, 0, (size_t)(count - *capacity) * item_size);
    memcpy(array, &items, sizeof items);
    *capacity = (uint32_t)count;
    return true;
}

NPU_INTERNAL void npu_text_free(npu_text *text) {
    npu_resize(text->data, 0);
    memset(text, 0, sizeof *text);
}

// Makes room for size more characters and the terminator. After a failure there is never room, so
// that a text has no holes.
static bool npu_text_reserve(npu_text *text, size_t size) {
    if (text->is_out_of_memory || size > SIZE_MAX / 4 - text->size) {
        text->is_out_of_memory = true;
        return false;
    }
    size_t needed = text->size + size + 1;
    if (needed > text->capacity) {
        size_t capacity = needed > 2 * text->capacity ? needed : 2 * text->capacity;
        capacity = capacity < 1024 ? 1024 : capacity;
        char *data = (char *)npu_resize(text->data, capacity);
        if (!data) {
            text->is_out_of_memory = true;
            return false;
        }
        text->data = data;
        text->capacity = capacity;
    }
    return true;
}

NPU_INTERNAL void npu_write(npu_text *text, const char *data, size_t size) {
    if (npu_text_reserve(text, size)) {
        if (size) {
            memcpy(text->data + text->size, data, size);
        }
        text->size += size;
        text->data[text->size] = '\0';
    }
}

NPU_INTERNAL void npu_text_end(npu_text *text, npu_text *part) {
    text->is_out_of_memory = text->is_out_of_memory || part->is_out_of_memory;
    npu_text_free(part);
}

NPU_INTERNAL void npu_append(npu_text *text, npu_text *part) {
    npu_write(text, part->data, part->size);
    npu_text_end(text, part);
}

NPU_INTERNAL void npu_vprint(npu_text *text, const char *format, va_list args) {
    // Most pieces are short: they are formatted once, in place.
    if (!npu_text_reserve(text, 120)) {
        return;
    }
    va_list again;
    va_copy(again, args);
    size_t room = text->capacity - text->size;
    int length = vsnprintf(text->data + text->size, room, format, args);
    PTOWSP_ASSERT(length >= 0);
    if (length >= 0 && (size_t)length >= room) {
        text->data[text->size] = '\0';
        if (npu_text_reserve(text, (size_t)length)) {
            vsnprintf(text->data + text->size, (size_t)length + 1, format, again);
        }
    }
    va_end(again);
    if (!text->is_out_of_memory && length > 0) {
        text->size += (size_t)length;
    }
}

NPU_INTERNAL void npu_print(npu_text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    npu_vprint(text, format, args);
    va_end(args);
}

static bool npu_text_sink_write(void *user, const void *data, size_t size) {
    npu_write((npu_text *)user, (const char *)data, size);
    return true;
}

NPU_INTERNAL ptowsp_output npu_text_sink(npu_text *text) {
    ptowsp_output sink = {npu_text_sink_write, text};
    return sink;
}

// -- escapes --------------------------------------------------------------------------------------

static void npu_sink_write(void *user, const char *data, size_t size) {
    npu_write((npu_text *)user, data, size);
}

// Octal, always of three digits, so any character may follow. The second of two question marks is
// escaped, because compilers of older standards read trigraphs.
static void npu_escape_cpp(void *user, const char *string) {
    npu_text *text = (npu_text *)user;
    char last = '\0';
    for (const char *at = string; *at; last = *at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '\n') {
            npu_write(text, "\\n", 2);
        } else if (c < 0x20 || c > 0x7e) {
            npu_print(text, "\\%03o", (unsigned)c);
        } else {
            if (c == '"' || c == '\\' || (c == '?' && last == '?')) {
                npu_write(text, "\\", 1);
            }
            npu_write(text, at, 1);
        }
    }
}

// A backslash at the end of a line, or the trigraph for one, would continue a comment: neither
// leaves a trace here.
NPU_INTERNAL void npu_print_comment(npu_text *text, const char *string) {
    char last = '\0';
    for (const char *at = string; *at; at++) {
        char c = *at;
        if (c < 0x20 || c > 0x7e || c == '\\' || (last == '*' && c == '/')) {
            c = '?';
        }
        if (c == '?' && last == '?') {
            continue;
        }
        if (last == '/' && c == '*') {
            c = '?';
        }
        npu_write(text, &c, 1);
        last = c;
    }
}

static void npu_escape_json(void *user, const char *string) {
    npu_text *text = (npu_text *)user;
    for (const char *at = string; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c < 0x20 || c > 0x7e) {
            npu_print(text, "\\u%04x", (unsigned)c);
        } else {
            if (c == '"' || c == '\\') {
                npu_write(text, "\\", 1);
            }
            npu_write(text, at, 1);
        }
    }
}

NPU_INTERNAL void npu_print_json(npu_text *text, const char *format, ...) {
    const pwsp_json_sink sink = {npu_sink_write, npu_escape_json, text};
    va_list args;
    va_start(args, format);
    pwsp_json_vprint(&sink, format, args);
    va_end(args);
}

NPU_INTERNAL void npu_print_cpp(npu_text *text, const char *format, ...) {
    const pwsp_json_sink sink = {npu_sink_write, npu_escape_cpp, text};
    va_list args;
    va_start(args, format);
    pwsp_json_vprint(&sink, format, args);
    va_end(args);
}

// -- numbers --------------------------------------------------------------------------------------

// The smallest i64 cannot be written as a literal: a minus sign is an operator.
NPU_INTERNAL void npu_print_i64(npu_text *text, int64_t value) {
    if (value == INT64_MIN) {
        npu_print(text, "INT64_MIN");
    } else {
        npu_print(text, "%lld", (long long)value);
    }
}

NPU_INTERNAL void npu_print_u64(npu_text *text, uint64_t value) {
    npu_print(text, "%llu%s", (unsigned long long)value, value > INT64_MAX ? "u" : "");
}
