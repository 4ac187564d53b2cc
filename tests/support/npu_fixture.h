// Tests of emitting: a decode step as a program, with a kernel of each kind and a source for those
// that are C functions; and directories to write trees to.

#ifndef PTOWSP_NPU_FIXTURE_H
#define PTOWSP_NPU_FIXTURE_H

#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "test.h"

#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct npu_names_of {
    const char *module, *workload, *axis, *loop, *array, *symbol, *tensor, *kernel;
} npu_names_of;

typedef struct npu_fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    char directory[64];  // of the test's own, removed at its end
} npu_fixture;

static inline ptowsp_cycles npu_scale(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 7;
}

#define NPU_SCALE_TEXT                                                                             \
    "#include \"ptowsp.h\"\n"                                                                      \
    "static ptowsp_cycles scale(const ptowsp_task *task, void *user) {\n"                          \
    "    (void)task;\n    (void)user;\n    return 7;\n}\n"

static inline void npu_module_make(npu_fixture *f, const char *name) {
    const ptowsp_module_desc desc = {name, 8};
    assert_ok(ptowsp_module_create(f->context, &desc, &f->m));
}

static inline void npu_fixture_compile(npu_fixture *f, const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {NULL, schedule};
    test_ok(f->context, ptowsp_program_create(f->context, f->m, &desc, &f->program));
}

#define NPU_SCALE_KERNEL(of)                                                                       \
    {                                                                                              \
        .name = of, .fn = npu_scale, .source = {.text = NPU_SCALE_TEXT, .fn = "scale" }            \
    }

static inline void npu_parse(npu_fixture *f, const char *text, const ptowsp_parse_kernel *kernels,
                             uint32_t count) {
    const ptowsp_parse_desc desc = {kernels, count, 0};
    test_ok(f->context, ptowsp_module_parse(f->context, text, strlen(text), &desc, &f->m, NULL));
}

// For each of a dynamic axis, if its length is not too large, a task of a C function; then some for
// each of a ragged one, whose row is no axis of its own: the table of axes has a gap.
static inline void npu_program_make(npu_fixture *f, const npu_names_of *n, const char *text) {
    const ptowsp_parse_kernel kernel = {
        .name = n->kernel, .fn = npu_scale, .source = {.text = text, .fn = text ? "scale" : NULL}};
    char module[2000];
    snprintf(module, sizeof module,
             "module \"%s\" slots 8\n"
             "tensor \"%s\" f32 [?, 8] global\n"
             "axis \"%s\" dynamic\n"
             "axis \"kv lengths of all\" ragged\n"
             "array \"%s\" i32\n"
             "symbol \"%s\"\n"
             "kernel \"%s\"(axes 1, inout data f32 8 x 8, by u64) vector\n"
             "workload \"%s\"\n"
             "  parallel \"%s\" in \"%s\"\n"
             "    when \"%s\"[\"%s\"] <= 2048\n"
             "      task \"%s\"(\"%s\" * 8) data = \"%s\" at (\"%s\" * 8, 0) by = \"%s\"\n"
             "    parallel position in \"kv lengths of all\"[\"%s\"]\n"
             "      task \"%s\"(\"%s\") data = \"%s\" at (\"%s\", 0) by = 1u\n",
             n->module, n->tensor, n->axis, n->array, n->symbol, n->kernel, n->workload, n->loop,
             n->axis, n->array, n->loop, n->kernel, n->loop, n->tensor, n->loop, n->symbol, n->loop,
             n->kernel, n->loop, n->tensor, n->loop);
    npu_parse(f, module, &kernel, 1);
    npu_fixture_compile(f, NULL);
}

static const npu_names_of npu_plain_names = {"decode", "decode", "batch", "b",
                                             "kv_len", "factor", "x",     "scale"};

static inline void npu_fixture_begin(npu_fixture *f) {
    memset(f, 0, sizeof *f);
    assert_ok(ptowsp_context_create(NULL, &f->context));
    snprintf(f->directory, sizeof f->directory, "%s/ptowsp-test-XXXXXX", scratch_root());
    assert_non_null(mkdtemp(f->directory));
}

static inline void npu_fixture_make(npu_fixture *f) {
    npu_fixture_begin(f);
    npu_program_make(f, &npu_plain_names, NPU_SCALE_TEXT);
}

static inline void npu_remove_all(const char *path) {
    char command[1024];
    snprintf(command, sizeof command, "/bin/rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

static inline void npu_program_free(npu_fixture *f) {
    ptowsp_program_destroy(f->program);
    ptowsp_module_destroy(f->m);
    f->program = NULL;
    f->m = NULL;
}

static inline void npu_fixture_free(npu_fixture *f) {
    npu_program_free(f);
    ptowsp_context_destroy(f->context);
    npu_remove_all(f->directory);
}

// Files and directories in a directory whose names begin so; or all of them.
static inline uint32_t entries_like(const char *path, const char *start) {
    uint32_t count = 0;
    DIR *directory = opendir(path);
    for (struct dirent *entry = directory ? readdir(directory) : NULL; entry;
         entry = readdir(directory)) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                 strncmp(entry->d_name, start, strlen(start)) == 0;
    }
    if (directory) {
        closedir(directory);
    }
    return count;
}

static inline uint32_t npu_entries(const char *path) {
    return entries_like(path, "");
}

#endif
