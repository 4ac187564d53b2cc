// The inner loops of element-wise instructions and of reductions: on every set of vector instructions of this
// machine they give the bits that the portable ones give.

#include "isa_test.h"

enum { MOST = 700, GUARD = 0xa5 };

static void random_floats(test_bench *bench, float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)test_number(bench, PTOISA_F32, TEST_ANY);
    }
}

static bool is_same(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

// The f32 loops of each operation: portable, AVX2, AVX-512; and the one that is taken.
typedef struct f32_loop {
    void (*by_set[3])(const ptoisa_map *map);
    void (*best)(const ptoisa_map *map);
} f32_loop;

#if PTOISA_X86
#define F32_LOOP(set, SET, name, result)                                                           \
    {{ptoisa_map_##name##_c, ptoisa_map_##name##_avx2, ptoisa_map_##name##_avx512},                \
     ptoisa_map_f32_##name},
#else
#define F32_LOOP(set, SET, name, result)                                                           \
    {{ptoisa_map_##name##_c, NULL, NULL}, ptoisa_map_f32_##name},
#endif
static const f32_loop f32_loops[] = {PTOISA_F32_MAPS(F32_LOOP, c, )};

BENCH_TEST(vectors__give_the_same_bits_on_every_machine) {
    static float a[MOST], b[MOST], c[MOST], want[MOST], got[MOST];
    for (int repeat = 0; repeat < 20000; repeat++) {
        size_t n = test_in(bench, 1, repeat % 100 ? 70 : 600);
        random_floats(bench, a, n);
        random_floats(bench, b, n);
        random_floats(bench, c, n);
        ptoisa_map map = {want, a, b, c, n, n, n, n, 1, n, test_chance(bench, 2)};
        unsigned op = (unsigned)test_in(bench, 0, sizeof f32_loops / sizeof f32_loops[0] - 1);
        const f32_loop *loop = &f32_loops[op];
        loop->by_set[0](&map);
        map.d = got;
        for (int set = 0; set < 3; set++) {
            memset(got, GUARD, sizeof got);
            bool is_there = set == 1 ? ptoisa_has_avx2() : set == 2 && ptoisa_has_avx512();
            (is_there ? loop->by_set[set] : loop->best)(&map);
            for (size_t i = 0; i < n; i++) {
                if (!is_same(want[i], got[i])) {
                    fail_msg("map %d set %d of %a, %a, %a: %a, not %a", (int)op, set, a[i], b[i],
                             c[i], got[i], want[i]);
                }
            }
            for (size_t i = n * sizeof *got; i < sizeof got; i++) {
                assert_int_equal(((uint8_t *)got)[i], GUARD);
            }
        }
    }
}

#if PTOISA_X86
typedef void (*rows_fn)(float *results, const float *s, size_t pitch, uint32_t rows, uint32_t cols);

BENCH_TEST(vectors__reduce_rows_to_the_same_bits) {
    static const ptoisa_map_op ops[4] = {PTOISA_MAP_ADD, PTOISA_MAP_MUL, PTOISA_MAP_MAX,
                                         PTOISA_MAP_MIN};
    static const rows_fn by_set[2][4] = {
        {ptoisa_rows_add_c, ptoisa_rows_mul_c, ptoisa_rows_max_c, ptoisa_rows_min_c},
        {ptoisa_rows_add_avx2, ptoisa_rows_mul_avx2, ptoisa_rows_max_avx2, ptoisa_rows_min_avx2}};
    static float data[70 * 640], want[70], got[70];
    for (int repeat = 0; repeat < 600 && ptoisa_has_avx2(); repeat++) {
        uint32_t cols = test_size(bench, repeat % 10 ? 130 : 600), which = test_in(bench, 0, 3);
        uint32_t rows = test_in(bench, 1, repeat % 20 ? 9 : 70),
                 pitch = cols + test_in(bench, 0, 40);
        random_floats(bench, data, rows * pitch);
        for (uint32_t i = 0; i < rows * pitch && repeat % 2; i++) {  // no NaN, no infinities
            data[i] = fabsf(data[i]) < 100 ? data[i] : 3;
        }
        ptoisa_rows_f32(ops[which], want, data, pitch, rows, cols);
        for (int set = 0; set < 2; set++) {
            by_set[set][which](got, data, pitch, rows, cols);
            for (uint32_t r = 0; r < rows; r++) {
                assert_true(is_same(want[r], got[r]));
            }
        }
    }
}
#endif

BENCH_TEST(vectors__portable_fma_is_exact) {
    for (int i = 0; i < 2000000; i++) {
        float a = ptoisa_f32_from_bits((uint32_t)test_random(bench));
        float b = ptoisa_f32_from_bits((uint32_t)test_random(bench));
        float c = ptoisa_f32_from_bits((uint32_t)test_random(bench));
        if (i % 2) {  // near cancellation and ties
            a = (float)(int32_t)test_in(bench, 0, (1 << 24) - 1) * 0x1p-12f;
            b = (float)(int32_t)test_in(bench, 0, (1 << 24) - 1) * 0x1p-140f;
            c = i % 4 == 1 ? -a * b : (float)(int32_t)test_in(bench, 0, 63) * 0x1p-149f;
        }
        float want = fmaf(a, b, c), got = ptoisa_fma_c(a, b, c);
        if (memcmp(&want, &got, 4) != 0 && (want == want || got == got)) {
            fail_msg("fma(%a, %a, %a): %a, not %a", a, b, c, got, want);
        }
    }
}

// Bits are not of floats, and roots not of integers: such words are left as they are. One lane has no
// rest of a vector.
TEST(vectors__what_there_is_not_writes_nothing) {
    float from[4] = {4, 9, 16, 25}, to[4] = {1, 2, 3, 4};
    const float was[4] = {1, 2, 3, 4};
    ptoisa_map map = {.d = to};
    map.a = map.b = map.c = from;
    map.rows = 1;
    map.cols = 4;
    assert_int_equal(ptoisa_loops_AND(PTOISA_WORD_F32, &map), PTOISA_MAP_AND);
    assert_int_equal(ptoisa_loops_SHR(PTOISA_WORD_F32, &map), PTOISA_MAP_SHR);
    assert_int_equal(ptoisa_loops_SQRT(PTOISA_WORD_I32, &map), PTOISA_MAP_SQRT);
    assert_int_equal(ptoisa_loops_SQRT(PTOISA_WORD_U32, &map), PTOISA_MAP_SQRT);
    assert_memory_equal(to, was, sizeof to);
    assert_int_equal(ptoisa_loops_SQRT(PTOISA_WORD_F32, &map), PTOISA_MAP_SQRT);
    assert_true(to[0] == 2 && to[1] == 3 && to[2] == 4 && to[3] == 5);
    ptoisa_store_n_c(to, 7, 0);
    assert_true(to[0] == 2);
    ptoisa_store_n_c(to, 7, 1);
    assert_true(to[0] == 7 && to[1] == 3);
}

TEST(elementwise__a_dry_core_takes_tiles_without_memory) {
    ptoisa_core core;
    ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
    core.is_dry = true;
    ptoisa_tile s = ptoisa_tile_vec(NULL, PTOISA_F32, 8, 16);
    ptoisa_tile column = ptoisa_tile_make(NULL, PTOISA_F32, PTOISA_VEC, PTOISA_COL_MAJOR, 8, 1);
    ptoisa_trsqrt(&core, &s, &s);
    ptoisa_trowmax(&core, &column, &s, &s);
    ptoisa_trowexpandsub(&core, &s, &s, &column);
    assert_int_equal(ptoisa_cycles(&core), 128 + 8 + 128);
}
