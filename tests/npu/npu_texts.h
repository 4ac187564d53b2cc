// Texts of tests: printed ones, and modules of tests/npu/programs.txt, each from the line `module NAME` to the
// next of these, without comments.

#ifndef NPU_TEXTS_H
#define NPU_TEXTS_H

#include "files.h"

// A text as printf has it, until test_release.
static inline const char *textf(const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, args);
    assert_true(length >= 0);
    char *text = (char *)test_alloc((size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(args);
    va_end(again);
    return text;
}

// The text of a file, as long.
static inline const char *text_of(const char *path) {
    size_t size;
    char *data = file_read(path, &size);
    const char *text = textf("%s", data);
    free(data);
    return text;
}

// The text of a module, until the next is asked for.
static inline const char *npu_module(const char *name) {
    static char all[1 << 16], text[1 << 13];
    const size_t length = strlen(name);
    size_t size = 0, line;
    bool is_here = false;
    file_text("tests/npu/programs.txt", all, sizeof all);
    for (const char *at = all; *at; at += line + (at[line] == '\n')) {
        line = strcspn(at, "\n");
        if (strncmp(at, "module ", 7) == 0) {
            is_here = strncmp(at + 7, name, length) == 0 && strchr(" \n", at[7 + length]);
            assert_true(!is_here || size == 0);
        }
        if (is_here && *at != '#' && line > 0) {
            assert_true(size + line + 2 < sizeof text);
            size += (size_t)sprintf(text + size, "%.*s\n", (int)line, at);
        }
    }
    if (size == 0) {
        fail_msg("there is no module %s", name);
    }
    return text;
}

#endif
