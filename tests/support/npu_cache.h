// Caches of the tests that compile emitted trees: a directory of their own for what is built, with the
// objects of the files that are the same in all trees, if these have been compiled before. The
// environment says
//
//      NPU_EQUAL_OPTIONS    of the compiler; default: -O0. For kernels of A5: NPU_EQUAL_OPTIONS_A5
//      PTOWSP_TEST_CACHE    where what is built stays; default: a directory that is removed
//      PTOWSP_TEST_OBJECTS  a cache whose objects are taken
//
// make gives them to all programs that build trees (tests.mk).

#ifndef PTOWSP_NPU_CACHE_H
#define PTOWSP_NPU_CACHE_H

#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "test.h"

#include "scratch.h"

// One for all tests of a program, as they use the same trees.
static char npu_cache[128];

static inline const char *npu_cache_options_for(bool is_a5) {
    const char *options = getenv(is_a5 ? "NPU_EQUAL_OPTIONS_A5" : "NPU_EQUAL_OPTIONS");
    return options && *options ? options : "-O0";
}

static inline const char *npu_cache_options(void) {
    return npu_cache_options_for(false);
}

static inline bool npu_cache_is_kept(void) {
    const char *cache = getenv("PTOWSP_TEST_CACHE");
    return cache && *cache;
}

// An object in a cache has all that decides about it in its name, so that others do no harm.
static inline int npu_cache_begin(void **state) {
    (void)state;
    const char *objects = getenv("PTOWSP_TEST_OBJECTS");
    char command[1024];
    snprintf(npu_cache, sizeof npu_cache, "%s%s",
             npu_cache_is_kept() ? getenv("PTOWSP_TEST_CACHE") : scratch_root(),
             npu_cache_is_kept() ? "" : "/ptowsp-npu-XXXXXX");
    if (!npu_cache_is_kept() && !mkdtemp(npu_cache)) {
        print_error("no directory for what is built\n");
        return 1;
    }
    if (objects && *objects) {
        snprintf(command, sizeof command, "cp -pr '%s/objects' '%s/' 2> /dev/null", objects,
                 npu_cache);
        if (system(command) != 0) {
            print_message("no objects in %s\n", objects);
        }
    }
    return 0;
}

static inline int npu_cache_end(void **state) {
    (void)state;
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", npu_cache);
    if (!npu_cache_is_kept() && system(command) != 0) {
        print_message("%s stays\n", npu_cache);
    }
    return 0;
}

// Builds a tree there.
static inline ptowsp_npu *npu_cache_build(ptowsp_context *context, const ptowsp_program *program) {
    const ptowsp_npu_build_desc desc = {npu_cache, getenv("NPU_EQUAL_COMPILER"),
                                        npu_cache_options()};
    ptowsp_npu *npu = NULL;
    test_ok(context, ptowsp_npu_build(context, program, &desc, &npu));
    return npu;
}

#endif
