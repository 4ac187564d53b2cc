// Tests that list themselves.
//
//      TEST(ring__is_full_after_depth_sends) {
//          ...
//      }
//
// is a test of the program it is compiled into. The main() of vectors.c runs them all, as they stand.
// TEST_F(name) has the `fixture *f` that the file's `setup` left in *state, and `teardown` after it;
// TEST_OF(name, type *variable, value) has that variable; TEST_MADE(name, type, variable, begin, end) has a
// pointer to an object of its own, between two calls that take it. SUITE_AROUND names functions that run once,
// before the first test and after the last; tests find in *suite_state what the first one left in *state.
// SUITE_SECONDS ends a program that hangs. A program with a main() of its own runs that one instead.

#ifndef SUITE_H
#define SUITE_H

#include <stddef.h>
#include <unistd.h>

typedef int (*suite_fixture)(void **state);

typedef struct suite_test {
    const char *name, *file;
    int number;  // in its file, with what that includes
    void (*run)(void **state);
    suite_fixture setup, teardown;
    struct suite_test *next;
} suite_test;

typedef struct suite {
    suite_test *tests;  // the last one first
    suite_fixture setup, teardown;
} suite;

#ifdef __cplusplus
extern "C"
#else
extern
#endif
    suite suite_here;

#define SUITE_ADD(name, setup, teardown)                                                           \
    static void name(void **suite_state);                                                          \
    __attribute__((constructor)) static void suite_add_##name(void) {                              \
        static suite_test test = {#name, __BASE_FILE__, __COUNTER__, name, setup, teardown, NULL}; \
        test.next = suite_here.tests;                                                              \
        suite_here.tests = &test;                                                                  \
    }                                                                                              \
    static void name(__attribute__((unused)) void **suite_state)

#define TEST(name) SUITE_ADD(name, NULL, NULL)

#define TEST_F(name)                                                                               \
    static void name##_of(fixture *f);                                                             \
    SUITE_ADD(name, setup, teardown) {                                                             \
        name##_of((fixture *)*suite_state);                                                        \
    }                                                                                              \
    static void name##_of(__attribute__((unused)) fixture *f)

#define TEST_OF(name, parameter, argument)                                                         \
    static void name##_of(parameter);                                                              \
    TEST(name) {                                                                                   \
        name##_of(argument);                                                                       \
    }                                                                                              \
    static void name##_of(__attribute__((unused)) parameter)

#define TEST_MADE(name, type, variable, begin, end)                                                \
    static void name##_of(type *variable);                                                         \
    TEST(name) {                                                                                   \
        static type here;                                                                          \
        type *const variable = &here;                                                              \
        begin;                                                                                     \
        name##_of(variable);                                                                       \
        end;                                                                                       \
    }                                                                                              \
    static void name##_of(__attribute__((unused)) type *variable)

#define SUITE_AROUND(begin, end)                                                                   \
    __attribute__((constructor)) static void suite_around(void) {                                  \
        suite_here.setup = begin;                                                                  \
        suite_here.teardown = end;                                                                 \
    }

#define SUITE_SECONDS(limit)                                                                       \
    __attribute__((constructor)) static void suite_seconds(void) {                                 \
        alarm(limit);                                                                              \
    }

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

// Each element of a grid, row by row. A `break` ends a row.
#define TEST_GRID(type, row, rows, col, cols)                                                      \
    for (type row = 0; row < (rows); row++)                                                        \
        for (type col = 0; col < (cols); col++)

#endif
