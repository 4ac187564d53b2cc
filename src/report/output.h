// Bytes on their way to an output, through a small buffer. After the output has failed, nothing is
// written any more.

#ifndef PWSP_OUTPUT_H
#define PWSP_OUTPUT_H

#include "../base/context.h"
#include "../base/text.h"

#define PWSP_OUT_BUFFER 8192u

typedef struct pwsp_out {
    ptowsp_output sink;
    bool has_failed;
    size_t count;   // in the buffer
    uint64_t sent;  // bytes that the sink has taken
    char buffer[PWSP_OUT_BUFFER];
} pwsp_out;

PWSP_INTERNAL void pwsp_out_begin(pwsp_out *out, ptowsp_output sink);
PWSP_INTERNAL void pwsp_out_flush(pwsp_out *out);

// Flushes; says whether the output has taken all bytes. `what` begins the error.
PWSP_INTERNAL ptowsp_status pwsp_out_end(pwsp_out *out, ptowsp_context *context, const char *what);

PWSP_INTERNAL void pwsp_out_spill(pwsp_out *out, const void *data, size_t size);

PWSP_INLINE void pwsp_out_bytes(pwsp_out *out, const void *data, size_t size) {
    if (size > PWSP_OUT_BUFFER - out->count) {
        pwsp_out_spill(out, data, size);
        return;
    }
    memcpy(out->buffer + out->count, data, size);
    out->count += size;
}

// Room for that many bytes, at most PWSP_OUT_BUFFER, at `count`, to be counted when they are there.
PWSP_INLINE char *pwsp_out_room(pwsp_out *out, size_t size) {
    PTOWSP_ASSERT(size <= PWSP_OUT_BUFFER);
    if (size > PWSP_OUT_BUFFER - out->count) {
        pwsp_out_flush(out);
    }
    return out->buffer + out->count;
}

PWSP_INLINE void pwsp_out_text(pwsp_out *out, const char *text) {
    pwsp_out_bytes(out, text, strlen(text));
}

PWSP_INTERNAL void pwsp_out_u64(pwsp_out *out, uint64_t value);
PWSP_INTERNAL void pwsp_out_format(pwsp_out *out, const char *format, ...) PWSP_PRINTF(2, 3);

// Text as it is, but for bytes that are not UTF-8: they become U+FFFD. So does all formatted text.
PWSP_INTERNAL void pwsp_out_utf8(pwsp_out *out, const char *text, size_t length);

// A text sink that writes here.
PWSP_INTERNAL ptowsp_output pwsp_out_sink(pwsp_out *out);

// Copies text with U+FFFD for bytes that are not UTF-8, and cuts it where the room of `size` bytes
// ends, between characters. Terminates it; returns its length.
PWSP_INTERNAL size_t pwsp_utf8_copy(char *room, size_t size, const char *text, size_t length);

PWSP_INTERNAL bool pwsp_utf8_is_ascii(const char *text, size_t length);

// Text inside a string of JSON.
PWSP_INTERNAL void pwsp_out_json(pwsp_out *out, const char *text);

// JSON, XML (elements and attributes) and fields of CSV by templates: see base/json.h. In their texts,
// bytes that are not UTF-8, and characters that XML does not have, become U+FFFD.
PWSP_INTERNAL void pwsp_json_print(pwsp_out *out, const char *format, ...) PWSP_PRINTF(2, 3);
PWSP_INTERNAL void pwsp_xml_print(pwsp_out *out, const char *format, ...) PWSP_PRINTF(2, 3);
PWSP_INTERNAL void pwsp_csv_print(pwsp_out *out, const char *format, ...) PWSP_PRINTF(2, 3);

// Options as they are given, or all zero.
PWSP_INLINE ptowsp_export_options pwsp_export_options(const ptowsp_export_options *options) {
    PWSP_ZERO(ptowsp_export_options, chosen);
    return options ? *options : chosen;
}

// A number with a comma between thousands.
typedef struct pwsp_grouped_text {
    char text[28];
} pwsp_grouped_text;

PWSP_INTERNAL pwsp_grouped_text pwsp_grouped(uint64_t number);

#endif
