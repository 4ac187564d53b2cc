// What the tests of ptoisa_shim.h share: cmocka, seeded random numbers, and a bench: a core whose
// faults are kept as text, and tiles between guard bytes that are compared after every instruction.
//
//      test_begin(bench, PTOISA_A2A3, "TADD");
//      test_tile *a = test_vec(bench, PTOISA_F32, 3, 5), *d = test_vec(bench, PTOISA_F32, 3, 5);
//      test_fill(bench, a, TEST_ANY);
//      d->role = TEST_WRITTEN;
//      test_run(bench);                             // from here on, ref_was() is what tiles held
//      ptoisa_tadd(&bench->core, &d->tile, &a->tile, &a->tile);
//      test_expect(bench, d, r, c, want, 0);
//      test_end(bench);                             // nothing else was written
//
// A tile is full of random bytes before it is filled, so what is not valid is garbage.

#ifndef PTOISA_TEST_H
#define PTOISA_TEST_H

#include "ptoisa_shim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/suite.h"

#include "isa_reference.h"

#if defined(__SANITIZE_ADDRESS__)
#define TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_ASAN 1
#endif
#endif
#ifdef TEST_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

enum { TEST_GUARD = 64, TEST_PATTERN = 0x5a, TEST_TILES_MAX = 16 };

typedef enum test_role {
    TEST_READ = 0,  // must not change
    TEST_WRITTEN,   // changes in its valid region only
    TEST_SCRATCH,   // may change wherever it is allocated
    TEST_CHECKED    // the test looks at all of it itself
} test_role;

typedef enum test_numbers {
    TEST_ANY,   // special values, random bits, moderate numbers
    TEST_PLAIN  // moderate numbers; integers small
} test_numbers;

typedef struct test_tile {
    ptoisa_tile tile;
    test_role role;
    uint8_t *block, *before;
    size_t bytes;
} test_tile;

typedef struct test_bench {
    ptoisa_core core;
    const char *what;  // for messages
    uint64_t random, round;
    char fault[PTOISA_FAULT_TEXT_MAX];
    uint32_t fault_count;
    test_tile tiles[TEST_TILES_MAX];
    uint32_t tile_count;
} test_bench;

// -- random numbers -------------------------------------------------------------------------------

// The seed: PTOWSP_SEED from the environment, else a fixed one. Printed, so that a failure can be
// repeated.
static inline uint64_t test_seed(void) {
    const char *text = getenv("PTOWSP_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 20261121;
    print_message("seed %llu (set PTOWSP_SEED to change it)\n", (unsigned long long)seed);
    return seed;
}

// The bench that the tests of a program share, with random numbers that continue from one to the next.
static inline test_bench *test_bench_here(void) {
    static test_bench bench;
    static bool is_seeded;
    if (!is_seeded) {
        is_seeded = true;
        bench.random = test_seed();
    }
    return &bench;
}

#define BENCH_TEST(name) TEST_OF(name, test_bench *bench, test_bench_here())

// The same, round after round: each ends with test_end.
#define ROUNDS_TEST(name, rounds)                                                                  \
    static void name##_round(test_bench *bench, uint32_t round);                                   \
    BENCH_TEST(name) {                                                                             \
        for (uint32_t round = 0; round < (rounds); round++) {                                      \
            name##_round(bench, round);                                                            \
            test_end(bench);                                                                       \
        }                                                                                          \
    }                                                                                              \
    static void name##_round(test_bench *bench, __attribute__((unused)) uint32_t round)

// SplitMix64 (Steele, Lea and Flood 2014).
static inline uint64_t test_random(test_bench *bench) {
    uint64_t z = (bench->random += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

// Uniform in [low, high].
static inline uint32_t test_in(test_bench *bench, uint32_t low, uint32_t high) {
    return low + (uint32_t)(test_random(bench) % ((uint64_t)(high - low) + 1));
}

static inline bool test_chance(test_bench *bench, uint32_t one_in) {
    return test_random(bench) % one_in == 0;
}

// A size: often 1 or small, sometimes up to high.
static inline uint32_t test_size(test_bench *bench, uint32_t high) {
    uint32_t small = high < 9 ? high : 9;
    return test_chance(bench, 5)   ? 1
           : test_chance(bench, 2) ? test_in(bench, 1, small)
                                   : test_in(bench, 1, high);
}

// One of a set of types.
static inline ptoisa_dtype test_dtype(test_bench *bench, uint32_t set) {
    for (;;) {
        ptoisa_dtype dtype = (ptoisa_dtype)test_in(bench, 1, PTOISA_DTYPE_COUNT - 1);
        if (set >> dtype & 1) {
            return dtype;
        }
    }
}

static inline double test_special(test_bench *bench, ptoisa_dtype dtype) {
    if (!ref_is_float(dtype)) {
        double low = ref_least(dtype), high = ref_greatest(dtype);
        double values[8] = {0, 1, low, high, low + 1, high - 1, low < 0 ? -1 : 2, low < 0 ? -2 : 3};
        return values[test_in(bench, 0, 7)];
    }
    ref_format f = ref_format_of(dtype);
    double tiny = ldexp(1, f.exponent_min - f.precision + 1), normal = ldexp(1, f.exponent_min);
    double values[8] = {(double)NAN, (double)INFINITY,    0, tiny, normal - tiny,
                        normal,      ref_greatest(dtype), 1};
    double value = values[test_in(bench, 0, 7)];
    return test_chance(bench, 2) ? -value : value;
}

static inline double test_number(test_bench *bench, ptoisa_dtype dtype, test_numbers numbers) {
    if (numbers == TEST_ANY && test_chance(bench, 6)) {
        return test_special(bench, dtype);
    }
    if (numbers == TEST_ANY && test_chance(bench, 3)) {
        return ref_decode(dtype, test_random(bench));
    }
    double unit = (double)(int64_t)(test_random(bench) >> 11) * 0x1p-53;
    if (ref_is_float(dtype)) {
        return ref_round(dtype, unit * 16 - 8);
    }
    return ref_least(dtype) < 0 ? floor(unit * 41) - 20 : floor(unit * 41);
}

// -- the bench ------------------------------------------------------------------------------------

static inline void test_on_fault(ptoisa_core *core, const char *text) {
    test_bench *bench = (test_bench *)core->fault_user;
    bench->fault_count++;
    snprintf(bench->fault, sizeof bench->fault, "%s", text);
}

static inline void test_begin(test_bench *bench, ptoisa_family family, const char *what) {
    ptoisa_core_init(&bench->core, PTOISA_MODEL_UNIT,
                     family == PTOISA_A5 ? ptoisa_machine_950pr() : ptoisa_machine_910b());
    bench->core.on_fault = test_on_fault;
    bench->core.fault_user = bench;
    bench->what = what;
    bench->round++;
    bench->fault[0] = 0;
    bench->fault_count = 0;
    bench->tile_count = 0;
}

static inline test_tile *test_tile_make(test_bench *bench, ptoisa_dtype dtype, ptoisa_memory memory,
                                        ptoisa_layout layout, uint32_t rows, uint32_t cols,
                                        uint32_t valid_rows, uint32_t valid_cols) {
    assert_true(bench->tile_count < TEST_TILES_MAX);
    test_tile *t = &bench->tiles[bench->tile_count++];
    t->role = TEST_READ;
    t->bytes = (size_t)rows * cols * ref_size(dtype);
    // On 32 bytes, and as often as not on no more.
    size_t room = TEST_GUARD + (t->bytes + 31) / 32 * 32 + TEST_GUARD;
    t->block = (uint8_t *)aligned_alloc(64, (room + 63) / 64 * 64);
    t->before = (uint8_t *)malloc(t->bytes + 1);
    assert_non_null(t->block);
    assert_non_null(t->before);
    memset(t->block, TEST_PATTERN, room);
    uint8_t *data = t->block + (test_chance(bench, 2) ? TEST_GUARD : TEST_GUARD / 2);
    for (size_t i = 0; i < t->bytes; i++) {
        data[i] = (uint8_t)(i % 8 == 0 ? test_random(bench) : data[i - 1] * 73u + 41);
    }
    t->tile = ptoisa_tile_make(data, dtype, memory, layout, rows, cols);
    t->tile.valid_rows = valid_rows;
    t->tile.valid_cols = valid_cols;
    return t;
}

// A row-major tile in UB, all of it valid.
static inline test_tile *test_whole(test_bench *bench, ptoisa_dtype dtype, uint32_t rows,
                                    uint32_t cols) {
    return test_tile_make(bench, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR, rows, cols, rows, cols);
}

// A row-major tile in UB with these valid sizes, and allocated sizes that hold them.
static inline test_tile *test_vec(test_bench *bench, ptoisa_dtype dtype, uint32_t valid_rows,
                                  uint32_t valid_cols) {
    uint32_t block = 32 / ref_size(dtype);
    uint32_t cols = (valid_cols + block - 1) / block * block;
    uint32_t rows = valid_rows ? valid_rows : 1;
    if (cols == 0 || test_chance(bench, 2)) {
        cols += block * test_in(bench, 1, 3);
    }
    if (test_chance(bench, 2)) {
        rows += test_in(bench, 1, 3);
    }
    return test_tile_make(bench, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR, rows, cols, valid_rows,
                          valid_cols);
}

// A column of values, one for each row.
static inline test_tile *test_column(test_bench *bench, ptoisa_dtype dtype, uint32_t valid_rows) {
    uint32_t block = 32 / ref_size(dtype);
    uint32_t rows = (valid_rows + block - 1) / block * block;
    if (rows == 0 || test_chance(bench, 2)) {
        rows += block * test_in(bench, 1, 2);
    }
    return test_tile_make(bench, dtype, PTOISA_VEC, PTOISA_COL_MAJOR, rows, 1, valid_rows, 1);
}

static inline test_tile *test_written(test_tile *t) {
    t->role = TEST_WRITTEN;
    return t;
}

static inline test_tile *test_scratch(test_tile *t) {
    t->role = TEST_SCRATCH;
    return t;
}

static inline void test_put(test_tile *t, uint32_t r, uint32_t c, double value) {
    ref_put_bits(t->tile.data, (ptoisa_dtype)t->tile.dtype, ref_offset(&t->tile, r, c),
                 ref_encode((ptoisa_dtype)t->tile.dtype, value));
}

static inline void test_fill(test_bench *bench, test_tile *t, test_numbers numbers) {
    TEST_GRID(uint32_t, r, t->tile.valid_rows, c, t->tile.valid_cols) {
        test_put(t, r, c, test_number(bench, (ptoisa_dtype)t->tile.dtype, numbers));
    }
}

static inline void test_guards_poison(test_tile *t, bool is_poisoned) {
    uint8_t *data = (uint8_t *)t->tile.data, *after = data + t->bytes;
    if (is_poisoned) {
        ASAN_POISON_MEMORY_REGION(t->block, (size_t)(data - t->block));
        ASAN_POISON_MEMORY_REGION(after, TEST_GUARD / 2);
    } else {
        ASAN_UNPOISON_MEMORY_REGION(t->block, (size_t)(data - t->block));
        ASAN_UNPOISON_MEMORY_REGION(after, TEST_GUARD / 2);
    }
}

// Notes what all tiles hold. Call it right before the instruction.
static inline void test_run(test_bench *bench) {
    for (uint32_t i = 0; i < bench->tile_count; i++) {
        memcpy(bench->tiles[i].before, bench->tiles[i].tile.data, bench->tiles[i].bytes);
        test_guards_poison(&bench->tiles[i], true);
    }
}

static inline uint64_t ref_was_bits(const test_tile *t, uint32_t r, uint32_t c) {
    return ref_get_bits(t->before, (ptoisa_dtype)t->tile.dtype, ref_offset(&t->tile, r, c));
}

static inline double ref_was(const test_tile *t, uint32_t r, uint32_t c) {
    return ref_decode((ptoisa_dtype)t->tile.dtype, ref_was_bits(t, r, c));
}

static inline uint64_t ref_now_bits(const test_tile *t, uint32_t r, uint32_t c) {
    return ref_get_bits(t->tile.data, (ptoisa_dtype)t->tile.dtype, ref_offset(&t->tile, r, c));
}

static inline double ref_now(const test_tile *t, uint32_t r, uint32_t c) {
    return ref_decode((ptoisa_dtype)t->tile.dtype, ref_now_bits(t, r, c));
}

static inline void test_fail_at(const test_bench *bench, const test_tile *t, uint32_t r, uint32_t c,
                                double got, double want) {
    fail_msg("%s %s, round %llu, %u x %u valid of %u x %u: element %u, %u is %.17g, expected "
             "%.17g; fault \"%s\"",
             bench->what, ptoisa_dtype_name((ptoisa_dtype)t->tile.dtype),
             (unsigned long long)bench->round, t->tile.valid_rows, t->tile.valid_cols, t->tile.rows,
             t->tile.cols, r, c, got, want, bench->fault);
}

// Is an element this, rounded once to its type, within some units in the last place and some
// absolute error? With neither the sign of a zero counts too.
static inline void test_expect_near(const test_bench *bench, const test_tile *t, uint32_t r,
                                    uint32_t c, double want, double ulps, double error) {
    ptoisa_dtype dtype = (ptoisa_dtype)t->tile.dtype;
    double got = ref_now(t, r, c), rounded = ref_round(dtype, want);
    if (isnan(rounded) && isnan(got)) {
        return;
    }
    bool is_zero_free = ulps > 0 || error > 0 || !ref_is_float(dtype);
    if (got == rounded && (is_zero_free || !signbit(got) == !signbit(rounded))) {
        return;
    }
    if ((ulps > 0 || error > 0) && !isnan(got) && !isinf(want)) {
        double clamped = isinf(got) ? copysign(ref_greatest(dtype), got) : got;
        if (fabs(clamped - want) <= ulps * ref_ulp(dtype, want) + error) {
            return;
        }
    }
    test_fail_at(bench, t, r, c, got, want);
}

static inline void test_expect(const test_bench *bench, const test_tile *t, uint32_t r, uint32_t c,
                               double want, double ulps) {
    test_expect_near(bench, t, r, c, want, ulps, 0);
}

// As test_expect with 0 ulps, but either zero is good: for max, min and their kind.
static inline void test_expect_value(const test_bench *bench, const test_tile *t, uint32_t r,
                                     uint32_t c, double want) {
    double got = ref_now(t, r, c);
    test_expect(bench, t, r, c, want == 0 && got == 0 ? got : want, 0);
}

static inline void test_expect_bits(const test_bench *bench, const test_tile *t, uint32_t r,
                                    uint32_t c, uint64_t want) {
    if (ref_now_bits(t, r, c) != want) {
        fail_msg("%s %s, round %llu, %u x %u valid of %u x %u: element %u, %u is %llx, expected "
                 "%llx; fault \"%s\"",
                 bench->what, ptoisa_dtype_name((ptoisa_dtype)t->tile.dtype),
                 (unsigned long long)bench->round, t->tile.valid_rows, t->tile.valid_cols,
                 t->tile.rows, t->tile.cols, r, c, (unsigned long long)ref_now_bits(t, r, c),
                 (unsigned long long)want, bench->fault);
    }
}

static inline void test_tile_check(const test_bench *bench, test_tile *t) {
    uint8_t *data = (uint8_t *)t->tile.data;
    test_guards_poison(t, false);
    for (const uint8_t *at = t->block; at < data; at++) {
        if (*at != TEST_PATTERN) {
            fail_msg("%s: wrote %d bytes before tile %d", bench->what, (int)(data - at),
                     (int)(t - bench->tiles));
        }
    }
    for (size_t i = 0; i < TEST_GUARD / 2; i++) {
        if (data[t->bytes + i] != TEST_PATTERN) {
            fail_msg("%s: wrote %d bytes behind tile %d", bench->what, (int)i,
                     (int)(t - bench->tiles));
        }
    }
    if (t->role == TEST_READ && memcmp(data, t->before, t->bytes) != 0) {
        fail_msg("%s: changed tile %d, which it only reads", bench->what, (int)(t - bench->tiles));
    }
    for (uint32_t r = 0; t->role == TEST_WRITTEN && r < t->tile.rows; r++) {
        for (uint32_t c = r < t->tile.valid_rows ? t->tile.valid_cols : 0; c < t->tile.cols; c++) {
            test_expect_bits(bench, t, r, c, ref_was_bits(t, r, c));
        }
    }
}

// Nothing but what tiles' roles allow has changed, and there was no fault. Frees the tiles.
static inline void test_end(test_bench *bench) {
    if (bench->fault_count != 0) {
        fail_msg("%s, round %llu: fault \"%s\"", bench->what, (unsigned long long)bench->round,
                 bench->fault);
    }
    for (uint32_t i = 0; i < bench->tile_count; i++) {
        test_tile_check(bench, &bench->tiles[i]);
        free(bench->tiles[i].block);
        free(bench->tiles[i].before);
    }
    bench->tile_count = 0;
}

#endif
