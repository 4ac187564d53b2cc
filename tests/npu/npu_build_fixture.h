// Tests of building trees: a compiler that only pretends, and a cache of the test's own.

#ifndef PTOWSP_NPU_BUILD_FIXTURE_H
#define PTOWSP_NPU_BUILD_FIXTURE_H

#include "npu_fixture.h"

// The compiler. Beside it lie: calls, a line for each of its calls; mode, what it does; stub.so,
// what it links. In mode slow it says that it is at work (started) and waits for a file (go).
// Objects are checked when they are linked.
static const char script[] =
    "#!/bin/sh\n"
    "here=$(dirname \"$0\")\n"
    "mode=$(cat \"$here/mode\")\n"
    "echo \"$*\" >> \"$here/calls\"\n"
    "case \"$*\" in *--version*) cat \"$here/version\"; [ $mode != mute ]; exit;; esac\n"
    "out=\n"
    "for arg in \"$@\"; do [ \"$out\" != next ] || out=$arg; [ \"$arg\" != -o ] || out=next; done\n"
    "case $mode in\n"
    "slow) : > \"$here/started\"; while [ ! -e \"$here/go\" ]; do sleep 0.02; done;;\n"
    "fail) echo 'a.cpp:1: note: at work'; echo 'a.cpp:2:3: error: no semicolon'; exit 1;;\n"
    "silent) exit 0;;\n"
    "die) kill -9 $$;;\n"
    "esac\n"
    "case \"$*\" in\n"
    "*-shared*)\n"
    "    for arg in \"$@\"; do\n"
    "        case $arg in *.o) [ \"$(cat \"$arg\")\" = object ] || { echo 'error: bad object'; "
    "exit 1; };; "
    "esac\n"
    "    done\n"
    "    cp \"$here/stub.so\" \"$out\";;\n"
    "*) echo object > \"$out\";;\n"
    "esac\n";

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
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

// A file as text, "" if it is not there.
static inline const char *read_file(const char *directory, const char *name) {
    static char text[65536];
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "r");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[size] = '\0';
    if (file) {
        fclose(file);
    }
    return text;
}

static inline bool is_there(const char *directory, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

static inline void mode(const build *b, const char *text) {
    write_file(b->fake, "mode", text);
}

static inline void build_make(build *b) {
    char command[1024];
    const char *cc = getenv("CC");
    npu_fixture_make(&b->f);
    snprintf(b->fake, sizeof b->fake, "%s/fake", b->f.directory);
    snprintf(b->cache, sizeof b->cache, "%s/cache", b->f.directory);
    snprintf(b->compiler, sizeof b->compiler, "%s/c++", b->fake);
    assert_int_equal(mkdir(b->fake, 0755), 0);
    write_file(b->fake, "c++", script);
    write_file(b->fake, "version", "pretended 1.0\n");
    write_file(b->fake, "stub.c", stub);
    mode(b, "work");
    assert_int_equal(chmod(b->compiler, 0755), 0);
    snprintf(command, sizeof command, "%s -w -shared -fPIC %s/stub.c -o %s/stub.so", cc ? cc : "cc",
             b->fake, b->fake);
    assert_int_equal(system(command), 0);
    const ptowsp_npu_build_desc desc = {b->cache, b->compiler, "-O7 -g"};
    b->desc = desc;
    b->npu = NULL;
}

// Files and directories whose names begin so.
static inline uint32_t entries_like(const char *path, const char *start) {
    uint32_t count = 0;
    DIR *directory = opendir(path);
    for (struct dirent *entry = directory ? readdir(directory) : NULL; entry;
         entry = readdir(directory)) {
        count += strncmp(entry->d_name, start, strlen(start)) == 0;
    }
    if (directory) {
        closedir(directory);
    }
    return count;
}

static inline void build_free(build *b) {
    ptowsp_npu_destroy(b->npu);
    npu_fixture_free(&b->f);
}

#endif
