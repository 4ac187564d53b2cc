// Reports and pictures as texts, for tests of what is in them.

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

// What the report of a run has as text, as JSON and as a page; and its picture.
static inline void report_has(const ptowsp_run *run, const char *const *parts,
                              const char *of_picture) {
    static char text[200000];
    static const ptowsp_report_format formats[] = {PTOWSP_REPORT_TEXT, PTOWSP_REPORT_JSON,
                                                   PTOWSP_REPORT_HTML};
    for (int i = 0; i < 3; i++) {
        ptowsp_output_buffer out = {text, sizeof text, 0};
        const ptowsp_output sink = {text_take, &out};
        assert_ok(ptowsp_run_report(run, formats[i], NULL, NULL, 0, sink));
        assert_non_null(strstr(text, parts[i]));
    }
    ptowsp_output_buffer out = {text, sizeof text, 0};
    const ptowsp_output sink = {text_take, &out};
    ptowsp_export_options options = {0};
    assert_ok(ptowsp_run_export(run, PTOWSP_EXPORT_SVG, &options, sink));
    assert_non_null(strstr(text, of_picture));
}

#endif
