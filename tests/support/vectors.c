// What every test program is linked to: a main() for tests that list themselves (support/suite.h), and which
// vector code the tests run.
//
// PTOWSP_VECTORS=avx512 (without products of bytes and bf16), =avx2 or
// =plain in the environment hides processor features that are there, so that one machine runs every
// variant of the library's loops. The library asks the compiler's own table of features
// (src/base/cpu.h), which is changed here, before main: the library itself reads no variable of the
// environment.
//
// PTOWSP_MEMORY=tight leaves arrays and arenas no room to spare, in builds with -DPTOWSP_TIGHT
// (src/base/base.c).

#include "tests/support/suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

suite suite_here;

// Constructors of a file may run in any order.
static int suite_order(const void *a, const void *b) {
    const suite_test *first = *(suite_test *const *)a, *second = *(suite_test *const *)b;
    int files = strcmp(first->file, second->file);
    return files ? files : (first->number > second->number) - (first->number < second->number);
}

__attribute__((weak)) int main(void) {
    size_t count = 0, i = 0;
    for (suite_test *test = suite_here.tests; test; test = test->next) {
        count++;
    }
    suite_test **tests = (suite_test **)calloc(count + 1, sizeof *tests);
    struct CMUnitTest *units = (struct CMUnitTest *)calloc(count + 1, sizeof *units);
    if (!tests || !units) {
        return 1;
    }
    for (suite_test *test = suite_here.tests; test; test = test->next) {
        tests[i++] = test;
    }
    qsort(tests, count, sizeof *tests, suite_order);
    for (i = 0; i < count; i++) {
        units[i].name = tests[i]->name;
        units[i].test_func = tests[i]->run;
        units[i].setup_func = tests[i]->setup;
        units[i].teardown_func = tests[i]->teardown;
    }
    int failed =
        _cmocka_run_group_tests("tests", units, count, suite_here.setup, suite_here.teardown);
    free(units);
    free(tests);
    return failed;
}

#if defined(PTOWSP_TIGHT)
extern bool pwsp_is_tight;
bool pwsp_is_tight;

__attribute__((constructor)) static void choose_memory(void) {
    const char *wanted = getenv("PTOWSP_MEMORY");
    pwsp_is_tight = wanted && strcmp(wanted, "tight") == 0;
}
#endif

#if defined(__x86_64__)

// As libgcc and compiler-rt have it; bits are those of gcc's enumeration of features. (Asking the
// compiler for features here as well would declare it a second time, which clang 14 dies of.)
struct test_cpu_model {
    uint32_t vendor, type, subtype, features[1];
};
extern struct test_cpu_model __cpu_model __attribute__((visibility("hidden")));
extern uint32_t __cpu_features2[] __attribute__((visibility("hidden")));  // from feature 32 on

enum { FEATURE_AVX2 = 10, FEATURE_FMA = 14, FEATURE_AVX512F = 15 };
enum { FEATURE_AVX512VNNI = 34, FEATURE_AVX512BF16 = 36 };

__attribute__((constructor)) static void choose_vectors(void) {
    const char *wanted = getenv("PTOWSP_VECTORS");
    if (!wanted || !*wanted) {
        return;
    }
    uint32_t hidden = UINT32_C(1) << FEATURE_AVX512F;
    if (strcmp(wanted, "avx512") == 0) {
        hidden = 0;
        __cpu_features2[0] &=
            ~(UINT32_C(1) << (FEATURE_AVX512VNNI - 32) | UINT32_C(1) << (FEATURE_AVX512BF16 - 32));
    } else if (strcmp(wanted, "plain") == 0) {
        hidden |= UINT32_C(1) << FEATURE_AVX2 | UINT32_C(1) << FEATURE_FMA;
    } else if (strcmp(wanted, "avx2") != 0) {
        fprintf(stderr, "PTOWSP_VECTORS is none of avx512, avx2 and plain: %s\n", wanted);
        exit(1);
    }
    __cpu_model.features[0] &= ~hidden;
}

#else

// Elsewhere there is one variant only.
typedef int test_vectors_are_fixed;

#endif
