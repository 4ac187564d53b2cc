// Tests of building trees: a compiler that only pretends (fake/compiler.c), and a cache of the test's own.

#ifndef PTOWSP_NPU_BUILD_FIXTURE_H
#define PTOWSP_NPU_BUILD_FIXTURE_H

#include "npu_fixture.h"
#include "npu_texts.h"

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

static inline void write_file(const char *directory, const char *name, const char *text) {
    file_write(textf("%s/%s", directory, name), text, strlen(text));
}

static inline bool is_there(const char *directory, const char *name) {
    return access(textf("%s/%s", directory, name), F_OK) == 0;
}

// A file as text, "" if it is not there.
static inline const char *read_file(const char *directory, const char *name) {
    static char text[65536];
    return is_there(directory, name) ? file_text(textf("%s/%s", directory, name), text, sizeof text)
                                     : "";
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

static inline void write_program(const char *directory, const char *name, const char *data,
                                 size_t size) {
    const char *path = textf("%s/%s", directory, name);
    file_write(path, data, size);
    assert_int_equal(chmod(path, 0755), 0);
}

// The compiler, and the library that it makes: both are compiled once for all tests of a program.
static struct {
    char *compiler, *library;
    size_t compiler_size, library_size;
} fake;

static inline void fake_make(const char *directory) {
    if (!fake.compiler) {
        write_file(directory, "stub.c", stub);
        run_cc("tests/npu/fake/compiler.c -o %s/c++", directory);
        run_cc("-shared -fPIC %s/stub.c -o %s/stub.so", directory, directory);
        fake.compiler = file_read(textf("%s/c++", directory), &fake.compiler_size);
        fake.library = file_read(textf("%s/stub.so", directory), &fake.library_size);
    }
    write_program(directory, "c++", fake.compiler, fake.compiler_size);
    write_program(directory, "stub.so", fake.library, fake.library_size);
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

// Builds anew, as its description or another one says.
static inline ptowsp_status build_as(build *b, const ptowsp_npu_build_desc *desc) {
    ptowsp_npu_destroy(b->npu);
    return ptowsp_npu_build(b->f.context, b->f.program, desc, &b->npu);
}

static inline ptowsp_status try_build(build *b) {
    return build_as(b, &b->desc);
}

#define BUILD_TEST(name) TEST_MADE(name, build, b, build_make(b), build_free(b))

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
