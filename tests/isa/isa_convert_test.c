// TCVT over every pair of types, in every rounding mode, saturating or not; TQUANT and TDEQUANT.
//
// Every f16 is converted to everything; of f32, numbers around each representable number of the
// narrow type: it, the middle to the next, and what is beside these.

#include "isa_test.h"

enum { ROUNDS = 200 };

static const ptoisa_round rounds[7] = {PTOISA_CAST_NONE,  PTOISA_CAST_RINT, PTOISA_CAST_ROUND,
                                       PTOISA_CAST_FLOOR, PTOISA_CAST_CEIL, PTOISA_CAST_TRUNC,
                                       PTOISA_CAST_ODD};

typedef struct pair {
    ptoisa_dtype from, to;
    bool may_wrap;  // saturation is honoured; else always on
} pair;

// The pairs of A2/A3.
static const pair pairs[] = {{PTOISA_F32, PTOISA_F16, false},  {PTOISA_F32, PTOISA_BF16, false},
                             {PTOISA_F32, PTOISA_I32, false},  {PTOISA_F32, PTOISA_I16, true},
                             {PTOISA_F32, PTOISA_I64, false},  {PTOISA_F32, PTOISA_F32, false},
                             {PTOISA_F16, PTOISA_F32, false},  {PTOISA_F16, PTOISA_I32, false},
                             {PTOISA_F16, PTOISA_I16, true},   {PTOISA_F16, PTOISA_I8, true},
                             {PTOISA_F16, PTOISA_U8, true},    {PTOISA_BF16, PTOISA_F32, false},
                             {PTOISA_BF16, PTOISA_I32, false}, {PTOISA_I16, PTOISA_F32, false},
                             {PTOISA_I16, PTOISA_F16, false},  {PTOISA_I32, PTOISA_F32, false},
                             {PTOISA_I32, PTOISA_F16, false},  {PTOISA_I32, PTOISA_I16, true},
                             {PTOISA_I32, PTOISA_I64, false},  {PTOISA_I64, PTOISA_F32, false},
                             {PTOISA_I64, PTOISA_I32, true},   {PTOISA_U8, PTOISA_F16, false},
                             {PTOISA_I8, PTOISA_F16, false}};

enum { PAIR_COUNT = sizeof pairs / sizeof pairs[0] };

static int64_t signed_of(uint64_t bits) {
    return bits >> 63 ? -(int64_t)~bits - 1 : (int64_t)bits;
}

// A number to convert: random bits, or one beside the representable numbers of the other type.
static uint64_t source_bits(test_bench *bench, const pair *p) {
    if (p->from == PTOISA_I64) {
        return test_random(bench) >> test_in(bench, 0, 63) ^
               (test_chance(bench, 2) ? 0 : UINT64_MAX);
    }
    if (!ref_is_float(p->from)) {
        return ref_encode(p->from, test_number(bench, p->from, TEST_ANY));
    }
    if (test_chance(bench, 3)) {
        return ref_encode(p->from, test_number(bench, p->from, TEST_ANY));
    }
    double x = ref_is_float(p->to) && p->to != PTOISA_F32
                   ? ref_decode(p->to, test_random(bench))
                   : (double)test_in(bench, 0, 1u << test_in(bench, 0, 17));
    double step = ref_ulp(p->to, x), part = (double)test_in(bench, 0, 4) / 4;
    double beside = ref_ulp(p->from, x) * ((double)test_in(bench, 0, 2) - 1);
    x = (x + step * part + beside) * (test_chance(bench, 2) ? 1 : -1);
    return ref_encode(p->from, x);
}

// The bits of an i64 that a float becomes: saturating, NaN 0.
static uint64_t float_to_i64(double whole) {
    if (isnan(whole)) {
        return 0;
    }
    return whole >= 0x1p63   ? (uint64_t)INT64_MAX
           : whole < -0x1p63 ? (uint64_t)INT64_MIN
                             : (uint64_t)(int64_t)whole;
}

static void expect_float(const test_bench *bench, const test_tile *d, uint32_t c, const pair *p,
                         double x, ptoisa_round mode) {
    double want = p->from == PTOISA_F32 && p->to == PTOISA_F32 ? ref_to_whole(mode, x) : x;
    if (p->to == PTOISA_F16 && isinf(ref_round(p->to, want)) && !isinf(want) &&
        fabs(ref_now(d, 0, c)) == 65504) {
        return;  // beyond f16: infinity or the greatest
    }
    test_expect_value(bench, d, 0, c, want);
}

static void expect_converted(const test_bench *bench, const test_tile *d, const test_tile *s,
                             uint32_t c, const pair *p, ptoisa_round mode, bool saturate) {
    bool is_wrapping = p->may_wrap && !saturate;
    if (p->from == PTOISA_I64) {
        int64_t x = signed_of(ref_was_bits(s, 0, c));
        if (p->to == PTOISA_F32) {
            test_expect_bits(bench, d, 0, c, ref_encode(PTOISA_F32, (double)(float)x));
            return;
        }
        double clamped = x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (double)x;
        test_expect(bench, d, 0, c, is_wrapping ? ref_wrap(PTOISA_I32, (uint64_t)x) : clamped, 0);
        return;
    }
    double x = ref_was(s, 0, c);
    if (ref_is_float(p->to)) {
        expect_float(bench, d, c, p, x, mode);
        return;
    }
    double whole = ref_is_float(p->from) ? ref_to_whole(mode, x) : x;
    if (p->to == PTOISA_I64) {
        test_expect_bits(bench, d, 0, c, float_to_i64(whole));
    } else if (!is_wrapping) {
        test_expect(bench, d, 0, c, ref_clamp(p->to, whole), 0);
    } else if (fabs(whole) < 0x1p31) {
        // What wraps from beyond 32 bits is not defined; NaN is 0.
        test_expect(bench, d, 0, c, ref_wrap_whole(p->to, whole) + 0.0, 0);
    } else if (isnan(whole)) {
        test_expect(bench, d, 0, c, 0, 0);
    }
}

// Modes in which a pair is defined: narrow floats are to nearest whatever the mode says (f16), or
// only tested so (bf16).
static ptoisa_round mode_of(test_bench *bench, const pair *p) {
    if (ref_is_float(p->to) && p->to != p->from) {
        return rounds[test_in(bench, 0, 1)];
    }
    return rounds[test_in(bench, 0, 6)];
}

BENCH_TEST(cvt__every_pair_and_mode_equals_the_reference) {
    for (uint32_t round = 0; round < PAIR_COUNT * ROUNDS; round++) {
        const pair *p = &pairs[round % PAIR_COUNT];
        ptoisa_round mode = mode_of(bench, p);
        bool saturate = test_chance(bench, 2);
        uint32_t rows = test_size(bench, 5), cols = test_size(bench, 120);
        test_begin(bench, PTOISA_A2A3, "TCVT");
        test_tile *s = test_vec(bench, p->from, rows, cols),
                  *d = test_written(test_vec(bench, p->to, rows, cols));
        for (uint32_t i = 0; i < rows * cols; i++) {
            ref_put_bits(s->tile.data, p->from, ref_offset(&s->tile, i / cols, i % cols),
                         source_bits(bench, p));
        }
        test_run(bench);
        ptoisa_tcvt(&bench->core, &d->tile, &s->tile, mode, saturate);
        // Row by row, as one-row tiles over the same bytes.
        for (uint32_t r = 0; r < rows; r++) {
            test_tile from = *s, to = *d;
            size_t s_bytes = (size_t)r * s->tile.cols * ref_size(p->from);
            size_t d_bytes = (size_t)r * d->tile.cols * ref_size(p->to);
            from.before += s_bytes;
            to.before += d_bytes;
            to.tile.data = (uint8_t *)d->tile.data + d_bytes;
            for (uint32_t c = 0; c < cols; c++) {
                expect_converted(bench, &to, &from, c, p, mode, saturate);
            }
        }
        test_end(bench);
    }
}

// All 65536 numbers of f16 (or bf16), in rows of 4096.
BENCH_TEST(cvt__every_half_equals_the_reference) {
    for (uint32_t i = 0; i < PAIR_COUNT; i++) {
        const pair *p = &pairs[i];
        if (p->from != PTOISA_F16 && p->from != PTOISA_BF16) {
            continue;
        }
        for (uint32_t part = 0; part < 16; part++) {
            ptoisa_round mode = rounds[(part + i) % 7];
            bool saturate = part / 7 % 2;
            test_begin(bench, PTOISA_A2A3, "TCVT of every half");
            test_tile *s = test_vec(bench, p->from, 1, 4096),
                      *d = test_written(test_vec(bench, p->to, 1, 4096));
            for (uint32_t c = 0; c < 4096; c++) {
                // Each part has numbers of all sizes.
                ref_put_bits(s->tile.data, p->from, c, c * 16 + part);
            }
            test_run(bench);
            ptoisa_tcvt(&bench->core, &d->tile, &s->tile, mode, saturate);
            for (uint32_t c = 0; c < 4096; c++) {
                expect_converted(bench, d, s, c, p, mode, saturate);
            }
            test_end(bench);
        }
    }
}

// Every f16, the middle between it and the next, and the f32 on both sides of the middle.
BENCH_TEST(cvt__f32_to_f16_rounds_once_around_every_half) {
    static const pair p = {PTOISA_F32, PTOISA_F16, false};
    for (uint32_t part = 0; part < 31; part++) {
        test_begin(bench, PTOISA_A2A3, "TCVT around every half");
        test_tile *s = test_vec(bench, PTOISA_F32, 1, 8192);
        test_tile *d = test_written(test_vec(bench, PTOISA_F16, 1, 8192));
        for (uint32_t c = 0; c < 8192; c++) {
            double x = ref_decode(PTOISA_F16, part << 10 | c / 8);
            double y = ref_decode(PTOISA_F16, (part << 10 | c / 8) + 1);
            double middle = isinf(y) ? 65520 : (x + y) / 2, step = ref_ulp(PTOISA_F32, middle);
            double at = c % 4 == 0 ? x : middle + step * (c % 4 - 2.0);
            test_put(s, 0, c, c & 4 ? -at : at);
        }
        test_run(bench);
        // f32 to f16 is to nearest in every mode.
        ptoisa_tcvt(&bench->core, &d->tile, &s->tile, rounds[part % 6], false);
        for (uint32_t c = 0; c < 8192; c++) {
            expect_converted(bench, d, s, c, &p, PTOISA_CAST_RINT, false);
        }
        test_end(bench);
    }
}

BENCH_TEST(cvt__rounds_as_on_paper) {
    static const double x[8] = {2.5, -2.5, 3.5, -0.5, 0.5, 1.25, -1.75, 7};
    static const double want[7][8] = {{2, -2, 4, 0, 0, 1, -2, 7},  {2, -2, 4, 0, 0, 1, -2, 7},
                                      {3, -3, 4, -1, 1, 1, -2, 7}, {2, -3, 3, -1, 0, 1, -2, 7},
                                      {3, -2, 4, 0, 1, 2, -1, 7},  {2, -2, 3, 0, 0, 1, -1, 7},
                                      {3, -3, 3, -1, 1, 1, -1, 7}};
    static const ptoisa_dtype to[3] = {PTOISA_I32, PTOISA_I16, PTOISA_F32};
    for (uint32_t i = 0; i < 21; i++) {
        test_begin(bench, PTOISA_A2A3, "TCVT by hand");
        test_tile *s = test_vec(bench, PTOISA_F32, 1, 8),
                  *d = test_written(test_vec(bench, to[i / 7], 1, 8));
        for (uint32_t c = 0; c < 8; c++) {
            test_put(s, 0, c, x[c]);
        }
        test_run(bench);
        ptoisa_tcvt(&bench->core, &d->tile, &s->tile, rounds[i % 7], false);
        for (uint32_t c = 0; c < 8; c++) {
            test_expect_value(bench, d, 0, c, want[i % 7][c]);
        }
        test_end(bench);
    }
}

// 300 is 44 in i8 when it wraps, and 127 when it saturates.
BENCH_TEST(cvt__wraps_by_default_and_saturates_on_demand) {
    static const struct {
        ptoisa_dtype from, to;
        double x, wrapped, saturated;
    } cases[] = {{PTOISA_F16, PTOISA_I8, 300, 44, 127},
                 {PTOISA_F16, PTOISA_I8, -129, 127, -128},
                 {PTOISA_F16, PTOISA_U8, 300, 44, 255},
                 {PTOISA_F16, PTOISA_U8, -1, 255, 0},
                 {PTOISA_F16, PTOISA_I16, 40000, -25536, 32767},
                 {PTOISA_F32, PTOISA_I16, 65537, 1, 32767},
                 {PTOISA_F32, PTOISA_I16, -32769, 32767, -32768},
                 {PTOISA_I32, PTOISA_I16, 65537, 1, 32767},
                 {PTOISA_I32, PTOISA_I16, -32769, 32767, -32768},
                 {PTOISA_I64, PTOISA_I32, 4294967299.0, 3, 2147483647},
                 {PTOISA_I64, PTOISA_I32, -2147483649.0, 2147483647, -2147483648.0},
                 {PTOISA_F32, PTOISA_I32, 3e9, 2147483647, 2147483647},
                 {PTOISA_F32, PTOISA_I32, -3e9, -2147483648.0, -2147483648.0},
                 {PTOISA_F32, PTOISA_I32, (double)NAN, 0, 0},
                 {PTOISA_F32, PTOISA_I16, (double)NAN, 0, 0},
                 {PTOISA_F16, PTOISA_I8, (double)NAN, 0, 0},
                 {PTOISA_F16, PTOISA_I32, (double)INFINITY, 2147483647, 2147483647},
                 {PTOISA_BF16, PTOISA_I32, -(double)INFINITY, -2147483648.0, -2147483648.0}};
    for (uint32_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        bool saturate = i % 2;
        test_begin(bench, PTOISA_A2A3, "TCVT wraps");
        test_tile *s = test_vec(bench, cases[i / 2].from, 1, 37);
        test_tile *d = test_written(test_vec(bench, cases[i / 2].to, 1, 37));
        for (uint32_t c = 0; c < 37; c++) {
            test_put(s, 0, c, cases[i / 2].x);
        }
        test_run(bench);
        ptoisa_tcvt(&bench->core, &d->tile, &s->tile, PTOISA_CAST_RINT, saturate);
        for (uint32_t c = 0; c < 37; c++) {
            test_expect(bench, d, 0, c, saturate ? cases[i / 2].saturated : cases[i / 2].wrapped,
                        0);
        }
        test_end(bench);
    }
}

// -- quantisation ---------------------------------------------------------------------------------

static test_tile *per_row(test_bench *bench, uint32_t rows, bool is_scale) {
    test_tile *t = test_column(bench, PTOISA_F32, rows);
    for (uint32_t r = 0; r < rows; r++) {
        // Products with multiples of 1/16 are exact.
        test_put(t, r, 0,
                 is_scale ? ldexp(test_in(bench, 1, 15), (int)test_in(bench, 0, 6) - 3)
                          : (double)test_in(bench, 0, 80) - 40);
    }
    return t;
}

BENCH_TEST(quant__by_row_equals_the_reference) {
    for (uint32_t round = 0; round < 4 * ROUNDS; round++) {
        bool is_sym = round % 2;
        uint32_t rows = test_size(bench, 20), cols = test_size(bench, 100);
        test_begin(bench, PTOISA_A2A3, is_sym ? "TQUANT INT8_SYM" : "TQUANT INT8_ASYM");
        test_tile *s = test_written(test_vec(bench, PTOISA_F32, rows, cols));
        test_tile *scale = per_row(bench, rows, true), *offset = per_row(bench, rows, false);
        test_tile *d = test_written(test_vec(bench, is_sym ? PTOISA_I8 : PTOISA_U8, rows, cols));
        for (uint32_t i = 0; i < rows * cols; i++) {
            double x = ((double)test_in(bench, 0, 512) - 256) / 16;
            bool is_end = test_chance(bench, 20);
            test_put(s, i / cols, i % cols, is_end ? copysign((double)INFINITY, x) : x);
        }
        // With scratch, as on A2/A3: the source is scaled in place.
        bool has_scratch = round % 4 == 1;
        test_tile *scratch =
            has_scratch ? test_vec(bench, PTOISA_F32, (s->tile.rows + 7) / 8 * 8, s->tile.cols)
                        : NULL;
        if (has_scratch) {
            scratch->role = TEST_SCRATCH;
        }
        test_run(bench);
        if (has_scratch) {
            ptoisa_tquant_sym_scratch(&bench->core, &d->tile, &s->tile, &scale->tile,
                                      &scratch->tile);
        } else if (is_sym) {
            ptoisa_tquant_sym(&bench->core, &d->tile, &s->tile, &scale->tile);
        } else {
            ptoisa_tquant_asym(&bench->core, &d->tile, &s->tile, &scale->tile, &offset->tile);
        }
        TEST_GRID(uint32_t, r, rows, c, cols) {
            double x = ref_was(s, r, c) * ref_was(scale, r, 0);
            if (has_scratch) {
                test_expect_value(bench, s, r, c, x);
            }
            x += is_sym ? 0 : ref_was(offset, r, 0);
            test_expect_value(bench, d, r, c, ref_clamp((ptoisa_dtype)d->tile.dtype, nearbyint(x)));
        }
        test_end(bench);
    }
}

BENCH_TEST(dequant__by_row_equals_the_reference) {
    for (uint32_t round = 0; round < 2 * ROUNDS; round++) {
        ptoisa_dtype dtype = round % 2 ? PTOISA_I8 : PTOISA_I16;
        uint32_t rows = test_size(bench, 20), cols = test_size(bench, 100);
        test_begin(bench, PTOISA_A2A3, "TDEQUANT");
        test_tile *s = test_vec(bench, dtype, rows, cols);
        test_fill(bench, s, TEST_ANY);
        test_tile *scale = per_row(bench, rows, true), *offset = per_row(bench, rows, false);
        test_tile *d = test_written(test_vec(bench, PTOISA_F32, rows, cols));
        test_run(bench);
        ptoisa_tdequant(&bench->core, &d->tile, &s->tile, &scale->tile, &offset->tile);
        TEST_GRID(uint32_t, r, rows, c, cols) {
            double x = (ref_was(s, r, c) - ref_was(offset, r, 0)) * ref_was(scale, r, 0);
            test_expect_value(bench, d, r, c, x);
        }
        test_end(bench);
    }
}
