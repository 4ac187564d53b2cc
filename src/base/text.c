// Sinks are a function and a pointer; the one over a buffer behaves as snprintf does: it keeps what
// fits, terminated, and counts everything.

#include "text.h"

#include <stdio.h>

static void pwsp_text_buffer_write(void *user, const char *text, size_t length) {
    ptowsp_text_buffer *buffer = (ptowsp_text_buffer *)user;
    if (buffer->data && buffer->length + 1 < buffer->size) {
        size_t room = buffer->size - buffer->length - 1;
        size_t kept = length < room ? length : room;
        memcpy(buffer->data + buffer->length, text, kept);
        buffer->data[buffer->length + kept] = '\0';
    }
    buffer->length += length;
}

ptowsp_text ptowsp_text_to_buffer(ptowsp_text_buffer *buffer) {
    ptowsp_text text = {buffer ? pwsp_text_buffer_write : NULL, buffer};
    if (buffer) {
        buffer->length = 0;
        if (buffer->size > 0 && buffer->data) {
            buffer->data[0] = '\0';
        }
    }
    return text;
}

static void pwsp_text_hash_write(void *user, const char *text, size_t length) {
    uint64_t *hash = (uint64_t *)user;
    *hash = ptowsp_hash(*hash, text, length);
}

PWSP_INTERNAL ptowsp_text pwsp_text_to_hash(uint64_t *hash) {
    ptowsp_text text = {pwsp_text_hash_write, hash};
    return text;
}

PWSP_INTERNAL void pwsp_text_write(ptowsp_text text, const char *piece, size_t length) {
    if (text.write) {
        text.write(text.user, piece, length);
    }
}

PWSP_INTERNAL void pwsp_text_put(ptowsp_text text, const char *string) {
    const size_t length = strlen(string);
    if (length > 0) {
        pwsp_text_write(text, string, length);
    }
}

PWSP_INTERNAL void pwsp_text_vformat(ptowsp_text text, const char *format, va_list args) {
    char piece[PWSP_TEXT_PIECE_MAX];
    int length = vsnprintf(piece, sizeof piece, format, args);
    if (length > 0) {
        size_t kept = (size_t)length < sizeof piece ? (size_t)length : sizeof piece - 1;
        pwsp_text_write(text, piece, kept);
    }
}

PWSP_INTERNAL void pwsp_text_format(ptowsp_text text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    pwsp_text_vformat(text, format, args);
    va_end(args);
}
