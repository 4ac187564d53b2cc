// Whole files: what a test writes, and texts of the repository that it reads.

#ifndef FILES_H
#define FILES_H

#include "test.h"

static inline void file_write(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

// The file's bytes and a terminator; freed by free().
static inline char *file_read(const char *path, size_t *out_size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *out_size = (size_t)ftell(file);
    rewind(file);
    char *data = (char *)calloc(1, *out_size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *out_size, file), *out_size);
    fclose(file);
    return data;
}

// A text that the tests of a program read again and again.
static inline const char *file_text(const char *path, char *text, size_t size) {
    size_t length;
    char *data = file_read(path, &length);
    assert_true(length < size);
    memcpy(text, data, length + 1);
    free(data);
    return text;
}

#endif
