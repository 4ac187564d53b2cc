// What is emitted for a program: all its files as texts, until those of the next program.

#ifndef NPU_FILES_H
#define NPU_FILES_H

#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "test.h"

#include "npu_texts.h"

#include <dirent.h>
#include <sys/stat.h>

static struct { char *path, *text; } npu_files[512];
static uint32_t npu_file_count;

static inline ptowsp_status npu_files_take(void *user, const char *path, const char *text,
                                           size_t size) {
    (void)user;
    assert_true(npu_file_count < COUNT_OF(npu_files) && text[size] == '\0');
    npu_files[npu_file_count].path = strdup(path);
    npu_files[npu_file_count].text = (char *)malloc(size + 1);
    assert_non_null(npu_files[npu_file_count].text);
    memcpy(npu_files[npu_file_count++].text, text, size + 1);
    return PTOWSP_OK;
}

static inline ptowsp_status npu_files_try(ptowsp_context *context, const ptowsp_program *program) {
    while (npu_file_count > 0) {
        free(npu_files[--npu_file_count].path);
        free(npu_files[npu_file_count].text);
    }
    return ptowsp_npu_emit_files(context, program, npu_files_take, NULL);
}

// The file at a path; NULL: there is none.
static inline const char *npu_files_at(const char *path) {
    for (uint32_t i = 0; i < npu_file_count; i++) {
        if (strcmp(npu_files[i].path, path) == 0) {
            return npu_files[i].text;
        }
    }
    return NULL;
}

// How many are below a directory: "aicore/kernels/".
static inline uint32_t npu_files_below(const char *directory) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < npu_file_count; i++) {
        count += strncmp(npu_files[i].path, directory, strlen(directory)) == 0;
    }
    return count;
}

// How many are on the disk, below a directory.
static inline uint32_t files_below(const char *path) {
    uint32_t count = 0;
    DIR *directory = opendir(path);
    for (struct dirent *entry = directory ? readdir(directory) : NULL; entry;
         entry = readdir(directory)) {
        struct stat about;
        const char *inside = textf("%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.' && lstat(inside, &about) == 0) {
            count += S_ISDIR(about.st_mode) ? files_below(inside) : 1;
        }
    }
    if (directory) {
        closedir(directory);
    }
    return count;
}

// The file at a path, which must be there.
static inline const char *npu_files_text(const char *path) {
    const char *text = npu_files_at(path);
    if (!text) {
        fail_msg("there is no %s", path);
    }
    return text;
}

// Emits a program, and returns one of its files.
static inline const char *npu_files_of(ptowsp_context *context, const ptowsp_program *program,
                                       const char *path) {
    test_ok(context, npu_files_try(context, program));
    return npu_files_text(path);
}

// A text has all these parts, up to NULL.
static inline void npu_has_all(const char *text, const char *const *parts) {
    for (; *parts; parts++) {
        if (!strstr(text, *parts)) {
            fputs(text, stderr);
            fail_msg("there is no %s", *parts);
        }
    }
}

#endif
