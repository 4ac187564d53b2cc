// Tables of tuning records, each with a directory of its own for its file.

#ifndef TUNE_FIXTURE_H
#define TUNE_FIXTURE_H

#include "support/files.h"

#include <sys/stat.h>
#include <unistd.h>

typedef struct tune {
    ptowsp_context *context;
    ptowsp_tuning *tuning;
    test_memory memory;
    char directory[64], path[128];
} tune;

static inline tune tune_make(void) {
    tune t = {0};
    strcpy(t.directory, "/tmp/ptowsp_tune_XXXXXX");
    assert_non_null(mkdtemp(t.directory));
    snprintf(t.path, sizeof t.path, "%s/records", t.directory);
    return t;
}

// A context of its own for each process and table.
static inline ptowsp_context *tune_context(test_memory *memory) {
    ptowsp_context *context = NULL;
    ptowsp_context_desc desc = {.resize = memory ? test_resize : NULL, .resize_user = memory};
    return ptowsp_context_create(&desc, &context) == PTOWSP_OK ? context : NULL;
}

static inline void tune_open(tune *t) {
    t->context = tune_context(&t->memory);
    assert_non_null(t->context);
    assert_ok(ptowsp_tuning_create(t->context, t->path, &t->tuning));
}

static inline void tune_close(tune *t) {
    ptowsp_tuning_destroy(t->tuning);
    ptowsp_context_destroy(t->context);
    assert_int_equal(t->memory.live_bytes, 0);
    t->tuning = NULL;
}

static inline void tune_remove(tune *t) {
    char made[160];
    snprintf(made, sizeof made, "%s.compact", t->path);
    assert_int_not_equal(access(made, F_OK), 0);
    unlink(t->path);
    assert_int_equal(rmdir(t->directory), 0);
}

// A line with the hash of what is given: FNV-1a as its authors write it.
static inline size_t seal(char *line, const char *text) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (const char *at = text; *at; at++) {
        hash ^= (unsigned char)*at;
        hash *= UINT64_C(1099511628211);
    }
    return (size_t)sprintf(line, "%s%016llx\n", text, (unsigned long long)hash);
}

#endif
