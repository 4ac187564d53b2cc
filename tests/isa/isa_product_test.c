// Matrix instructions: every code for this processor, against fused multiply-adds in the order of
// k, bit by bit; and against f64. What is not valid in an operand is NaN (or garbage), and nothing
// but the valid region of the result may change.

#include "isa_test.h"

// Of cases that are tried one by one, a scale below 100 tries that share.
static bool is_tried(test_bench *bench) {
    const char *scale = getenv("PTOWSP_SCALE");
    return test_in(bench, 0, 99) < (scale ? strtoul(scale, NULL, 10) : 100);
}

// A tile full of bytes of 0xff, which are NaN in every float type.
static test_tile *tile_new(test_bench *bench, ptoisa_dtype dtype, ptoisa_memory memory,
                           ptoisa_layout layout, uint32_t rows, uint32_t cols) {
    const ptoisa_tile tile = ptoisa_tile_make(NULL, dtype, memory, layout, rows, cols);
    const uint32_t block = 32 / ptoisa_dtype_size(dtype);
    const uint32_t rows_step = layout == PTOISA_COL_MAJOR ? block : ptoisa_box_rows(&tile);
    const uint32_t cols_step = layout == PTOISA_ROW_MAJOR ? block : ptoisa_box_cols(&tile);
    uint32_t more_rows = 0, more_cols = 0;
    if (layout > PTOISA_COL_MAJOR || test_chance(bench, 2)) {
        more_rows = rows_step * test_in(bench, 0, 1);
        more_cols = cols_step * test_in(bench, 0, 1);
    }
    test_tile *t = test_tile_make(
        bench, dtype, memory, layout, (rows + rows_step - 1) / rows_step * rows_step + more_rows,
        (cols + cols_step - 1) / cols_step * cols_step + more_cols, rows, cols);
    memset(t->tile.data, 0xff, t->bytes);
    return t;
}

// kind 0: uniform in [-1, 1); 1: small integers (exact sums); 2: of very different sizes.
static void tile_fill(test_bench *bench, test_tile *t, int kind) {
    TEST_GRID(uint32_t, r, t->tile.valid_rows, c, t->tile.valid_cols) {
        double x = (double)(test_random(bench) >> 11) * 0x1p-52 - 1;
        if (t->tile.dtype == PTOISA_I8 || kind == 1) {
            x = floor(x * 128);
        } else if (t->tile.dtype == PTOISA_I32) {
            x = floor(x * 2147483648.0);
        } else if (kind == 2) {
            x = ldexp(x, (int)test_in(bench, 0, 20) - (t->tile.dtype == PTOISA_F32 ? 70 : 10));
        }
        test_put(t, r, c, x);
    }
}

#if !PTOISA_X86 && !PTOISA_NEON
#define CODES 1
#else
#define CODES 5
#endif

static bool code_at(int i, ptoisa_mm_code *code) {
    if (i == 0) {
        *code = ptoisa_mm_portable();
        return true;
    }
#if PTOISA_X86
    *code = i == 1   ? ptoisa_mm_avx2()
            : i == 2 ? ptoisa_mm_avx512()
            : i == 3 ? ptoisa_mm_vnni()
                     : ptoisa_mm_bf16();
    return i == 1 ? ptoisa_has_avx2()
                  : ptoisa_has_avx512() && (i == 2 || ptoisa_has_vnni()) &&
                        (i < 4 || ptoisa_has_bf16());
#elif PTOISA_NEON
    *code = ptoisa_mm_neon();
    return i == 1;
#else
    return false;
#endif
}

// The numbers of a tile, row by row.
static double *numbers_of(const ptoisa_tile *tile) {
    double *numbers = (double *)malloc((size_t)tile->valid_rows * tile->valid_cols * 8);
    assert_non_null(numbers);
    TEST_GRID(uint32_t, r, tile->valid_rows, c, tile->valid_cols) {
        numbers[r * tile->valid_cols + c] = ptoisa_get(tile, r, c);
    }
    return numbers;
}

static void check_product(const ptoisa_mm_task *task, const test_tile *c_in) {
    const ptoisa_tile *c = task->c;
    const uint32_t depth = task->a->valid_cols, width = task->b->valid_cols;
    double *left = numbers_of(task->a), *right = numbers_of(task->b);
    TEST_GRID(uint32_t, i, c->valid_rows, j, c->valid_cols) {
        const uint64_t at = ptoisa_offset(c, i, j);
        const double added = c_in ? ref_was(c_in, task->is_bias ? 0 : i, j) : 0;
        if (c->dtype == PTOISA_I32) {
            uint32_t sum = (uint32_t)(int32_t)added;
            for (uint32_t k = 0; k < depth; k++) {
                sum += (uint32_t)((int32_t)left[i * depth + k] * (int32_t)right[k * width + j]);
            }
            assert_int_equal(((const uint32_t *)c->data)[at], sum);
            continue;
        }
        float sum = 0;
        double exact = added, size = fabs(added);
        for (uint32_t k = 0; k < depth; k++) {
            double x = left[i * depth + k], y = right[k * width + j];
            sum = fmaf((float)x, (float)y, sum);
            exact += x * y;
            size += fabs(x * y);
        }
        sum = c_in ? sum + (float)added : sum;
        float got = ((const float *)c->data)[at];
        if (memcmp(&got, &sum, 4) != 0) {
            fail_msg("(%u, %u) is %a, not %a: m %u k %u n %u", i, j, (double)got, (double)sum,
                     c->valid_rows, depth, c->valid_cols);
        }
        double error = size * depth * 0x1p-24 + 0x1p-149 * depth;
        assert_true(fabs(got - exact) <= error + size * 0x1p-24);
    }
    free(left);
    free(right);
}

// The product by every code that there is, from the same c. c_in: what is added, or NULL; may be c.
static void check_codes(test_bench *bench, test_tile *c, const test_tile *c_in, const test_tile *a,
                        const test_tile *b, bool is_bias) {
    const ptoisa_mm_task task = {&c->tile, c_in ? &c_in->tile : NULL, &a->tile, &b->tile, is_bias};
    c->role = TEST_WRITTEN;
    for (int i = 0; i < CODES; i++) {
        ptoisa_mm_code code;
        if (code_at(i, &code)) {
            test_run(bench);
            ptoisa_mm_run(&code, &task);
            check_product(&task, c_in);
            for (uint32_t t = 0; t < bench->tile_count; t++) {
                test_tile_check(bench, &bench->tiles[t]);
            }
            memcpy(c->tile.data, c->before, c->bytes);
        }
    }
    test_end(bench);
}

typedef struct layouts {
    ptoisa_layout a, b, c, in;
} layouts;

// form 0: product; 1: added to another accumulator; 2: to itself; 3: bias.
static void try_one(test_bench *bench, uint32_t m, uint32_t k, uint32_t n, ptoisa_dtype dtype,
                    layouts l, int form, int kind) {
    test_begin(bench, PTOISA_A2A3, "TMATMUL");
    const ptoisa_dtype sum = dtype == PTOISA_I8 ? PTOISA_I32 : PTOISA_F32;
    test_tile *a = tile_new(bench, dtype, PTOISA_LEFT, l.a, m, k);
    test_tile *b = tile_new(bench, dtype, PTOISA_RIGHT, l.b, k, n);
    test_tile *c = tile_new(bench, sum, PTOISA_ACC, l.c, m, n);
    test_tile *in = form == 3 ? tile_new(bench, sum, PTOISA_BIAS, PTOISA_ROW_MAJOR, 1, n)
                              : tile_new(bench, sum, PTOISA_ACC, l.in, m, n);
    tile_fill(bench, a, kind);
    tile_fill(bench, b, kind);
    tile_fill(bench, c, kind);
    tile_fill(bench, in, kind);
    check_codes(bench, c, form == 0 ? NULL : form == 2 ? c : in, a, b, form == 3);
}

static const ptoisa_dtype types[4] = {PTOISA_F32, PTOISA_F16, PTOISA_BF16, PTOISA_I8};

BENCH_TEST(matmul__equals_the_reference_in_all_small_sizes) {
    for (uint32_t m = 1; m <= 35; m += m < 18 ? 1 : 5) {
        for (uint32_t n = 1; n <= 70; n += n < 34 ? 3 : 7) {
            for (int type = 0; type < 4; type++) {
                if (!is_tried(bench)) {
                    continue;
                }
                layouts l = {test_in(bench, 0, 1) ? PTOISA_ZZ : PTOISA_NZ, PTOISA_ZN, PTOISA_NZ,
                             PTOISA_NZ};
                try_one(bench, m, test_in(bench, 1, 40), n, types[type], l,
                        (int)test_in(bench, 0, 3), (int)test_in(bench, 0, 2));
            }
        }
    }
}

BENCH_TEST(matmul__equals_the_reference_in_all_layouts) {
    TEST_GRID(uint32_t, a, PTOISA_LAYOUT_COUNT, b, PTOISA_LAYOUT_COUNT) {
        for (uint32_t c = 0; c < PTOISA_LAYOUT_COUNT; c++) {
            for (int type = 0; type < 4; type++) {
                if (!is_tried(bench)) {
                    continue;
                }
                layouts l = {(ptoisa_layout)a, (ptoisa_layout)b, (ptoisa_layout)c,
                             (ptoisa_layout)test_in(bench, 0, PTOISA_LAYOUT_COUNT - 1)};
                try_one(bench, test_in(bench, 1, 40), test_in(bench, 1, 70), test_in(bench, 1, 70),
                        types[type], l, (int)test_in(bench, 0, 3), (int)test_in(bench, 0, 2));
            }
        }
    }
}

BENCH_TEST(matmul__k_in_parts_gives_the_same_bits) {
    const uint32_t sizes[] = {255, 256, 257, 511, 512, 513, 1024, 1500, 4095};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int type = 0; type < 4; type++) {
            if (!is_tried(bench)) {
                continue;
            }
            layouts l = {test_in(bench, 0, 1) ? PTOISA_ZZ : PTOISA_NZ, PTOISA_ZN, PTOISA_NZ,
                         PTOISA_NZ};
            l.a = test_in(bench, 0, 3) ? l.a : PTOISA_ROW_MAJOR;
            l.c = test_in(bench, 0, 3) ? l.c : PTOISA_ZZ;
            try_one(bench, test_in(bench, 1, 90), sizes[i], test_in(bench, 1, 40), types[type], l,
                    (int)test_in(bench, 0, 3), (int)test_in(bench, 0, 2));
        }
    }
    layouts l = {PTOISA_NZ, PTOISA_ZN, PTOISA_NZ, PTOISA_NZ};
    try_one(bench, 700, 40, 20, PTOISA_F16, l, 0, 0);
    try_one(bench, 2, 3, 4095, PTOISA_F16, l, 3, 0);
    try_one(bench, 4095, 17, 3, PTOISA_F32, l, 2, 0);
    try_one(bench, 2100, 37, 20, PTOISA_I8, l, 2, 0);
    try_one(bench, 1030, 1500, 5, PTOISA_I8, l, 2, 0);
}

// Every pair of the extremes of i8 in turn and at random, over every rest of k by 4 and k in parts,
// from an accumulator that is nearly full, where sums wrap.
BENCH_TEST(matmul__bytes_at_their_extremes_are_exact_and_wrap) {
    static const int8_t extremes[5] = {-128, 127, -127, -1, 0};
    const uint32_t depths[] = {1, 2, 3, 4, 5, 31, 33, 64, 127, 1023, 1024, 1025, 1026, 2051, 4095};
    for (uint32_t i = 0; i < sizeof depths / sizeof *depths * 8; i++) {
        const uint32_t k = depths[i / 8], m = test_in(bench, 1, 37), n = test_in(bench, 1, 70);
        const int kind = (int)(i % 8);  // from 6 on each element at random
        if (!is_tried(bench)) {
            continue;
        }
        test_begin(bench, PTOISA_A2A3, "TMATMUL");
        test_tile *a = tile_new(bench, PTOISA_I8, PTOISA_LEFT, i % 2 ? PTOISA_NZ : PTOISA_ZZ, m, k);
        test_tile *b = tile_new(bench, PTOISA_I8, PTOISA_RIGHT, PTOISA_ZN, k, n);
        test_tile *c = tile_new(bench, PTOISA_I32, PTOISA_ACC, PTOISA_NZ, m, n);
        for (uint32_t r = 0; r < k; r++) {
            for (uint32_t j = 0; j < m; j++) {
                test_put(a, j, r, extremes[kind < 6 ? (uint32_t)kind % 2 : test_in(bench, 0, 4)]);
            }
            for (uint32_t j = 0; j < n; j++) {
                test_put(b, r, j, extremes[kind < 6 ? (uint32_t)kind / 2 : test_in(bench, 0, 4)]);
            }
        }
        for (uint32_t j = 0; j < m * n; j++) {
            test_put(c, j / n, j % n, j % 2 ? INT32_MAX - (double)j : INT32_MIN + (double)j);
        }
        check_codes(bench, c, c, a, b, false);
    }
}

// musl's fmaf rounds subnormal sums twice: 0x14d053 and less than half of the last place.
static void require_fmaf(void) {
    volatile float x = 0x1.000002p-74f, y = 0x1.fffffcp-77f, z = 0x1.4d053p-129f;
    if (fmaf(x, y, z) != z) {
        print_message("skipped: the C library's fmaf, the reference, rounds twice\n");
        skip();
    }
}

// c + a * b with c an odd multiple of its last place u and a * b = u / 2 * (1 +- 2^-46): an f64 sum
// of them would be halfway between two f32, and rounding it again would go the wrong way. In half
// of the rounds c is subnormal.
BENCH_TEST(matmul__a_sum_is_rounded_once) {
    require_fmaf();
    for (int i = 0; i < 200; i++) {
        test_begin(bench, PTOISA_A2A3, "TMATMUL");
        test_tile *a = tile_new(bench, PTOISA_F32, PTOISA_LEFT, PTOISA_ZZ, 7, 2);
        test_tile *b = tile_new(bench, PTOISA_F32, PTOISA_RIGHT, PTOISA_ZN, 2, 5);
        test_tile *c = tile_new(bench, PTOISA_F32, PTOISA_ACC, PTOISA_NZ, 7, 5);
        int exponent = i % 2 ? -149 : (int)test_in(bench, 0, 80) - 60;
        for (uint32_t r = 0; r < 7; r++) {
            double odd = i % 2 ? test_in(bench, 1, 0x3fffff) * 2 + 1
                               : test_in(bench, 0x400000, 0x7fffff) * 2 + 1;
            test_put(a, r, 0, ldexp(odd, exponent / 2));
            test_put(a, r, 1, ldexp(1 + 0x1p-23 * test_in(bench, 0, 1), exponent / 2));
        }
        for (uint32_t j = 0; j < 5; j++) {
            double sign = test_in(bench, 0, 1) ? 0.5 : -0.5;
            test_put(b, 0, j, ldexp(1, exponent - exponent / 2));
            test_put(b, 1, j, ldexp(sign * (1 - 0x1p-23), exponent - exponent / 2));
        }
        check_codes(bench, c, NULL, a, b, false);
    }
}

// Exponents of the numbers of both operands. Until k is `until` all are in these ranges; beyond it A
// is 0, so that sums of one part of k go through the others as they are.
typedef struct ranges {
    int a_low, a_high, b_low, b_high;
    uint32_t until;
} ranges;

// +-1.xxxxxxx * 2^exponent, or 0: all that bf16 has, subnormal numbers included.
static double number_of(test_bench *bench, int low, int high) {
    const double significand = 1 + test_in(bench, 0, 127) / 128.0;
    const int exponent = low + (int)test_in(bench, 0, (uint32_t)(high - low));
    return test_chance(bench, 10)
               ? 0
               : ldexp(test_chance(bench, 2) ? significand : -significand, exponent);
}

static void check_ranges(test_bench *bench, const ranges *of, uint32_t m, uint32_t k, uint32_t n) {
    test_begin(bench, PTOISA_A2A3, "TMATMUL");
    const ptoisa_tile *a = &tile_new(bench, PTOISA_BF16, PTOISA_LEFT,
                                     test_chance(bench, 2) ? PTOISA_NZ : PTOISA_ZZ, m, k)
                                ->tile;
    const ptoisa_tile *b = &tile_new(bench, PTOISA_BF16, PTOISA_RIGHT, PTOISA_ZN, k, n)->tile;
    test_tile *c = test_written(tile_new(bench, PTOISA_F32, PTOISA_ACC, PTOISA_NZ, m, n));
    for (uint32_t i = 0; i < k; i++) {
        for (uint32_t j = 0; j < m; j++) {
            test_put(&bench->tiles[0], j, i,
                     i < of->until ? number_of(bench, of->a_low, of->a_high) : 0);
        }
        for (uint32_t j = 0; j < n; j++) {
            test_put(&bench->tiles[1], i, j, number_of(bench, of->b_low, of->b_high));
        }
    }
    float *sums = (float *)calloc((size_t)m * n, sizeof *sums);
    assert_non_null(sums);
    TEST_GRID(uint32_t, i, m * n, j, k) {
        sums[i] = fmaf((float)ptoisa_get(a, i / n, j), (float)ptoisa_get(b, j, i % n), sums[i]);
    }
    test_run(bench);
    for (int x = 0; x < CODES; x++) {
        ptoisa_mm_code code;
        if (!code_at(x, &code)) {
            continue;
        }
        ptoisa_mm_task task = {&c->tile, NULL, a, b, false};
        memset(c->tile.data, 0xff, c->bytes);
        ptoisa_mm_run(&code, &task);
        assert_true(!code.span || ptoisa_mm_kind_of(&code, a, b) == PTOISA_MM_DOTS);
        for (uint32_t i = 0; i < m * n; i++) {
            float got = (float)ptoisa_get(&c->tile, i / n, i % n);
            if (memcmp(&got, &sums[i], 4) != 0 && !(got != got && sums[i] != sums[i])) {
                fail_msg("code %d: (%u, %u) is %a, not %a: 2^%d to 2^%d, 2^%d to 2^%d", x, i / n,
                         i % n, (double)got, (double)sums[i], of->a_low, of->a_high, of->b_low,
                         of->b_high);
            }
        }
    }
    free(sums);
    test_end(bench);
}

// The instruction for bf16 takes and gives subnormal numbers as 0: it must not meet any.
BENCH_TEST(matmul__whole_blocks_of_bf16_to_the_ends_of_their_range) {
    require_fmaf();
    static const ranges cases[] = {
        {-4, 4, -4, 4, 4095},        {-56, -56, -56, -56, 4095}, {-57, -57, -56, -56, 4095},
        {-56, -50, -57, -50, 4095},  {-112, -100, 0, 9, 4095},   {-113, -100, 0, 9, 4095},
        {-100, -20, -60, -20, 4095}, {-133, -126, 9, 20, 4095},  {-20, 127, 9, 20, 4095},
        {9, 20, -133, -120, 4095},   {60, 63, 60, 63, 4095},     {62, 64, 62, 64, 4095},
        {126, 127, 126, 127, 4095},  {3, 128, -3, 3, 4095},      {-70, -66, -75, -70, 500},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases * 6; i++) {
        const ranges *of = &cases[i / 6];
        const uint32_t depths[] = {16, 48, 512, 528, 1040, 1536};
        if (is_tried(bench)) {
            check_ranges(bench, of, 16 * test_in(bench, 1, 3), depths[i % 6],
                         32 * test_in(bench, 1, 3));
        }
    }
}

// What panels say of their numbers, and which exponents go together.
TEST(matmul__spans_tell_where_sums_may_be_subnormal) {
    static const struct {
        uint32_t a_least, a_greatest, b_least, b_greatest;
        bool is_normal;
    } cases[] = {
        {0x3f80, 0x3f80, 0x3f80, 0x3f80, true},   // 1 and 1
        {0x2380, 0x3f80, 0x2380, 0x3f80, true},   // 2^-56 and 2^-56: 2^-126 is their last place
        {0x2300, 0x3f80, 0x23ff, 0x3f80, false},  // 2^-57
        {0x0080, 0x3f80, 0x4680, 0x46ff, true},   // 2^-126 and 2^14
        {0x0080, 0x3f80, 0x467f, 0x46ff, false},  // 2^-126 and less than that
        {0x007f, 0x3f80, 0x7f00, 0x7f00, false},  // subnormal
        {0x3f80, 0x5fff, 0x3f80, 0x5eff, true},   // just below 2^65 and 2^63
        {0x3f80, 0x5fff, 0x3f80, 0x5fff, false},  // products of 2^129
        {0x3f80, 0x7f80, 0x3f80, 0x3f80, false},  // infinity
        {0x10000, 0, 0x0080, 0x7f7f, true},       // nothing but 0
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ptoisa_mm_span a = {cases[i].a_least, cases[i].a_greatest};
        const ptoisa_mm_span b = {cases[i].b_least, cases[i].b_greatest};
        assert_int_equal(ptoisa_mm_is_normal(a, b), cases[i].is_normal);
        assert_int_equal(ptoisa_mm_is_normal(b, a), cases[i].is_normal);
    }
#if PTOISA_X86
    if (!ptoisa_has_avx512()) {
        return;
    }
    for (uint32_t at = 0; at < 256; at++) {
        uint16_t words[256] = {0};
        words[at] = 0xc000;               // -2
        words[(at + 96) % 256] = 0x0001;  // the least of all, at the same place of 32 bytes
        const ptoisa_mm_span span = ptoisa_mm_span_avx512((const float *)(const void *)words, 128);
        assert_int_equal(span.least, 1);
        assert_int_equal(span.greatest, 0x4000);
        // What a strip notes of the same numbers, as 16 rows of A.
        float packed[PTOISA_MM_BOX];
        ptoisa_mm_strip strip;
        const ptoisa_tile a = ptoisa_tile_make(words, PTOISA_BF16, PTOISA_LEFT, PTOISA_ZZ, 16, 16);
        ptoisa_mm_begin_strip(&strip, packed, &a, PTOISA_MM_DOTS, 0, 0, 16);
        ptoisa_mm_finish_x86(&strip, PTOISA_MM_DOTS);
        const ptoisa_mm_span noted =
            ptoisa_mm_span_avx512((const float *)(const void *)strip.extremes, 16);
        assert_int_equal(noted.least, 1);
        assert_int_equal(noted.greatest, 0x4000);
    }
#endif
}

// Sums that may be subnormal go on by multiply-adds, those of other rows and columns do not.
TEST(matmul__only_rows_with_subnormal_sums_keep_to_multiply_adds) {
    static const struct {
        uint32_t row;
        bool is_first;
        uint32_t b_least;
        ptoisa_mm_kind kind;
    } blocks[] = {
        {0, true, 0x3f80, PTOISA_MM_DOTS},    {16, true, 0x0001, PTOISA_MM_TWICE},
        {0, false, 0x3f80, PTOISA_MM_DOTS},   {16, false, 0x3f80, PTOISA_MM_TWICE},
        {0, false, 0x0001, PTOISA_MM_TWICE},  {16, false, 0x3f80, PTOISA_MM_TWICE},
        {0, false, 0x3f80, PTOISA_MM_TWICE},  {0, true, 0x3f80, PTOISA_MM_DOTS},
        {1008, true, 0x3f80, PTOISA_MM_DOTS}, {1008, false, 0x3f80, PTOISA_MM_DOTS},
    };
    ptoisa_mm_buffers *buffers = (ptoisa_mm_buffers *)malloc(sizeof *buffers);
    assert_non_null(buffers);
    memset(buffers, 0xff, sizeof *buffers);
    const ptoisa_mm_span one = {0x3f80, 0x3f80};
    assert_int_equal(ptoisa_mm_block_kind(buffers, PTOISA_MM_BF16, 0, one, true), PTOISA_MM_BF16);
    buffers->span[0] = buffers->span[1] = buffers->span[63] = one;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const ptoisa_mm_span b = {blocks[i].b_least, 0x3f80};
        assert_int_equal(
            ptoisa_mm_block_kind(buffers, PTOISA_MM_DOTS, blocks[i].row, b, blocks[i].is_first),
            blocks[i].kind);
    }
    free(buffers);
}
