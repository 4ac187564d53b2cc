// An output for reports and pictures as texts.

#ifndef PTOWSP_REPORT_TEXT_H
#define PTOWSP_REPORT_TEXT_H

#include "test.h"

// An output into a text buffer, which must have room for all of it.
static inline bool text_take(void *user, const void *data, size_t size) {
    ptowsp_output_buffer *buffer = (ptowsp_output_buffer *)user;
    if (buffer->length + size >= buffer->size) {
        return false;
    }
    memcpy(buffer->data + buffer->length, data, size);
    buffer->length += size;
    buffer->data[buffer->length] = '\0';
    return true;
}

#endif
