// Tests of building trees: a compiler that only pretends (fake/compiler.c), and a cache of the test's own.

#ifndef PTOWSP_NPU_BUILD_FIXTURE_H
#define PTOWSP_NPU_BUILD_FIXTURE_H

#include "npu_fixture.h"
#include "npu_texts.h"

#include "files.h"

// What a tree's library offers, without a tree.
static const char stub[] =
    "void wsp_runner_create(void) {}\nvoid wsp_runner_destroy(void) {}\n"
    "void wsp_runner_bind(void) {}\n"
    "void wsp_runner_run(void) {}\nvoid wsp_runner_slot(void) {}\nvoid wsp_runner_error(void) {}\n"
    "void wsp_runner_measure(void) {}\n";

typedef struct build {
    npu_fixture f;
    char fake[128], cache[128], compiler[160];
    ptowsp_npu_build_desc desc;
    ptowsp_npu *npu;
} build;

// The path of a file in a directory, until the next one.
static inline const char *path_in(const char *directory, const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static inline bool is_there(const char *directory, const char *name) {
    return access(path_in(directory, name), F_OK) == 0;
}

static inline void write_file(const char *directory, const char *name, const char *text) {
    file_write(path_in(directory, name), text, strlen(text));
}

// A file as text, "" if it is not there.
static inline const char *read_file(const char *directory, const char *name) {
    static char text[65536];
    return is_there(directory, name) ? file_text(path_in(directory, name), text, sizeof text) : "";
}

static inline void mode(const build *b, const char *text) {
    write_file(b->fake, "mode", text);
}

static inline void run_cc(const char *format, ...) {
    char command[1024];
    const char *cc = getenv("CC");
    size_t at = (size_t)snprintf(command, sizeof command, "%s -w ", cc ? cc : "cc");
    va_list args;
    va_start(args, format);
    vsnprintf(command + at, sizeof command - at, format, args);
    va_end(args);
    assert_int_equal(system(command), 0);
}

// The compiler, and the library that it makes: both are compiled once for all tests of a program.
typedef struct binary {
    char *data;
    size_t size;
} binary;

static binary fake_compiler, fake_library;

static inline void write_binary(const binary *made, const char *directory, const char *name) {
    file_write(path_in(directory, name), made->data, made->size);
    assert_int_equal(chmod(path_in(directory, name), 0755), 0);
}

static inline void fake_make(const char *directory) {
    if (!fake_compiler.data) {
        write_file(directory, "stub.c", stub);
        run_cc("tests/npu/fake/compiler.c -o %s/c++", directory);
        run_cc("-shared -fPIC %s/stub.c -o %s/stub.so", directory, directory);
        fake_compiler.data = file_read(path_in(directory, "c++"), &fake_compiler.size);
        fake_library.data = file_read(path_in(directory, "stub.so"), &fake_library.size);
    }
    write_binary(&fake_compiler, directory, "c++");
    write_binary(&fake_library, directory, "stub.so");
}

static inline void build_make(build *b) {
    npu_fixture_make(&b->f);
    snprintf(b->fake, sizeof b->fake, "%s/fake", b->f.directory);
    snprintf(b->cache, sizeof b->cache, "%s/cache", b->f.directory);
    snprintf(b->compiler, sizeof b->compiler, "%s/c++", b->fake);
    assert_int_equal(mkdir(b->fake, 0755), 0);
    fake_make(b->fake);
    write_file(b->fake, "version", "pretended 1.0\n");
    mode(b, "work");
    const ptowsp_npu_build_desc desc = {b->cache, b->compiler, "-O7 -g"};
    b->desc = desc;
    b->npu = NULL;
}

// Keeps the environment of compilers and caches in `kept`, or gives it back.
static inline void environment(char *kept[4], bool is_back) {
    static const char names[4][16] = {"CXX", "PATH", "HOME", "XDG_CACHE_HOME"};
    for (int i = 0; i < 4; i++) {
        if (!is_back) {
            kept[i] = getenv(names[i]) ? strdup(getenv(names[i])) : NULL;
        } else if (kept[i]) {
            setenv(names[i], kept[i], 1);
        } else {
            unsetenv(names[i]);
        }
        if (is_back) {
            free(kept[i]);
        }
    }
}

static inline void build_free(build *b) {
    ptowsp_npu_destroy(b->npu);
    npu_fixture_free(&b->f);
}

#endif
