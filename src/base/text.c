// Sinks are a function and a pointer; the one over a buffer behaves as snprintf does: it keeps what
// fits, terminated, and counts everything.

#include "text.h"

#include <stdio.h>

static bool pwsp_text_buffer_write(void *user, const void *text, size_t length) {
    ptowsp_output_buffer *buffer = (ptowsp_output_buffer *)user;
    if (buffer->data && buffer->length + 1 < buffer->size) {
        size_t room = buffer->size - buffer->length - 1;
        size_t kept = length < room ? length : room;
        memcpy(buffer->data + buffer->length, text, kept);
        buffer->data[buffer->length + kept] = '\0';
    }
    buffer->length += length;
    return true;
}

ptowsp_output ptowsp_output_to_buffer(ptowsp_output_buffer *buffer) {
    ptowsp_output text = {buffer ? pwsp_text_buffer_write : NULL, buffer};
    if (buffer) {
        buffer->length = 0;
        if (buffer->size > 0 && buffer->data) {
            buffer->data[0] = '\0';
        }
    }
    return text;
}

static bool pwsp_text_file_write(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, (FILE *)user) == size;
}

ptowsp_output ptowsp_output_to_file(void *file) {
    ptowsp_output output = {file ? pwsp_text_file_write : NULL, file};
    return output;
}

static bool pwsp_text_hash_write(void *user, const void *text, size_t length) {
    uint64_t *hash = (uint64_t *)user;
    *hash = ptowsp_hash(*hash, text, length);
    return true;
}

PWSP_INTERNAL ptowsp_output pwsp_text_to_hash(uint64_t *hash) {
    ptowsp_output text = {pwsp_text_hash_write, hash};
    return text;
}

PWSP_INTERNAL void pwsp_text_write(ptowsp_output text, const char *piece, size_t length) {
    if (text.write) {
        text.write(text.user, piece, length);
    }
}

PWSP_INTERNAL void pwsp_text_put(ptowsp_output text, const char *string) {
    const size_t length = strlen(string);
    if (length > 0) {
        pwsp_text_write(text, string, length);
    }
}

PWSP_INTERNAL void pwsp_text_vformat(ptowsp_output text, const char *format, va_list args) {
    char piece[PWSP_TEXT_PIECE_MAX];
    int length = vsnprintf(piece, sizeof piece, format, args);
    if (length > 0) {
        size_t kept = (size_t)length < sizeof piece ? (size_t)length : sizeof piece - 1;
        pwsp_text_write(text, piece, kept);
    }
}

PWSP_INTERNAL void pwsp_text_format(ptowsp_output text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    pwsp_text_vformat(text, format, args);
    va_end(args);
}

PWSP_INTERNAL void pwsp_text_into(char *room, size_t size, const char *format, ...) {
    ptowsp_output_buffer buffer = {room, size, 0};
    va_list args;
    va_start(args, format);
    pwsp_text_vformat(ptowsp_output_to_buffer(&buffer), format, args);
    va_end(args);
}
