// TCVT over every pair of types, in every rounding mode, saturating or not; TQUANT and TDEQUANT.
//
// Every f16 and bf16 is converted to everything; of f32, numbers around each representable number of the
// narrow type: it, the middle to the next, and what is beside these. The reference is long double with
// libm's rounding.

#include "isa_test.h"

#include <float.h>

enum { ROUNDS = 200 };

static const ptoisa_round rounds[7] = {PTOISA_CAST_NONE,  PTOISA_CAST_RINT, PTOISA_CAST_ROUND,
                                       PTOISA_CAST_FLOOR, PTOISA_CAST_CEIL, PTOISA_CAST_TRUNC,
                                       PTOISA_CAST_ODD};

// ANY always saturates, WRAP if asked to, and A5 is of that machine alone.
typedef struct pair {
    ptoisa_dtype from, to;
    ptoisa_cvt_kind kind;
} pair;

#define PAIR(from, to, kind)                                                                       \
    { PTOISA_##from, PTOISA_##to, PTOISA_CVT_##kind }

static const pair pairs[] = {
    PAIR(F32, F16, ANY),  PAIR(F32, BF16, ANY), PAIR(F32, I32, ANY),  PAIR(F32, I64, ANY),
    PAIR(F32, F32, ANY),  PAIR(F32, I16, WRAP), PAIR(F32, I8, A5),    PAIR(F32, U8, A5),
    PAIR(F32, U16, A5),   PAIR(F32, U32, A5),   PAIR(F16, F32, ANY),  PAIR(F16, I32, ANY),
    PAIR(F16, I16, WRAP), PAIR(F16, I8, WRAP),  PAIR(F16, U8, WRAP),  PAIR(F16, BF16, A5),
    PAIR(BF16, F32, ANY), PAIR(BF16, I32, ANY), PAIR(BF16, F16, A5),  PAIR(I16, F32, ANY),
    PAIR(I16, F16, ANY),  PAIR(I32, F32, ANY),  PAIR(I32, F16, ANY),  PAIR(I32, I64, ANY),
    PAIR(I32, I16, WRAP), PAIR(I64, F32, ANY),  PAIR(I64, I32, WRAP), PAIR(U8, F16, ANY),
    PAIR(I8, F16, ANY),   PAIR(U8, F32, A5),    PAIR(I8, F32, A5),    PAIR(U16, F32, A5),
    PAIR(U32, F32, A5)};

enum { PAIR_COUNT = sizeof pairs / sizeof pairs[0] };

TEST(cvt__has_these_pairs_of_types_and_no_others) {
    TEST_GRID(uint32_t, from, PTOISA_DTYPE_COUNT, to, PTOISA_DTYPE_COUNT) {
        ptoisa_cvt_kind kind = PTOISA_CVT_NONE;
        for (uint32_t i = 0; i < PAIR_COUNT; i++) {
            kind = pairs[i].from == from && pairs[i].to == to ? pairs[i].kind : kind;
        }
        assert_int_equal(ptoisa_cvt_kind_of((ptoisa_dtype)to, (ptoisa_dtype)from), kind);
    }
}

// -- the reference --------------------------------------------------------------------------------

static long double number(ptoisa_dtype dtype, uint64_t bits) {
    if (dtype == PTOISA_I64) {
        return bits >> 63 ? -(long double)~bits - 1 : (long double)bits;
    }
    return ref_decode(dtype, bits);
}

static long double rounded(long double x, ptoisa_round mode) {
    long double low = floorl(x);
    switch (mode) {
    case PTOISA_CAST_ROUND: return roundl(x);
    case PTOISA_CAST_FLOOR: return low;
    case PTOISA_CAST_CEIL: return ceill(x);
    case PTOISA_CAST_TRUNC: return truncl(x);
    case PTOISA_CAST_ODD: return low == x || fmodl(low, 2) != 0 ? low : low + 1;
    default: return rintl(x);
    }
}

// A narrow float. What f16 has is to nearest whatever the mode says.
static long double rounded_float(long double x, ptoisa_dtype to, ptoisa_round mode) {
    const ref_format f = ref_format_of(to);
    if (x == 0 || !isfinite(x)) {
        return x;
    }
    const int exponent = ilogbl(x) < f.exponent_min ? f.exponent_min : ilogbl(x);
    const int last = exponent - f.precision + 1;
    x = ldexpl(rounded(ldexpl(x, -last), to == PTOISA_F16 ? PTOISA_CAST_RINT : mode), last);
    return fabsl(x) > ref_greatest(to) ? copysignl(INFINITY, x) : x;
}

static long double converted(long double x, const pair *p, ptoisa_round mode, bool saturate) {
    const bool wraps = p->kind == PTOISA_CVT_WRAP && !saturate;
    if (ref_is_float(p->to)) {
        const bool is_whole = p->to == p->from && isfinite(x);
        return is_whole ? rounded(x, mode) : rounded_float(x, p->to, mode);
    }
    if (isnan(x) || (wraps && isinf(x))) {
        return 0;
    }
    const long double low = ref_least(p->to), span = ldexpl(1, (int)ref_size(p->to) * 8);
    const long double high = low + span - 1;
    x = isinf(x) ? x : rounded(x, mode);
    if (wraps) {
        x = fmodl(x, span);
        return x < low ? x + span : x > high ? x - span : x;
    }
    return x < low ? low : x > high ? high : x;
}

static void expect_converted(const test_bench *bench, const test_tile *d, const test_tile *s,
                             const pair *p, ptoisa_round mode, bool saturate) {
    TEST_GRID(uint32_t, r, d->tile.valid_rows, c, d->tile.valid_cols) {
        const long double x = number(p->from, ref_was_bits(s, r, c));
        const long double got = number(p->to, ref_now_bits(d, r, c));
        const long double want = converted(x, p, mode, saturate);
        if (got != want && !(isnan(got) && isnan(want))) {
            fail_msg("%s, %s to %s, mode %d, saturate %d: %.20Lg becomes %.20Lg, not %.20Lg",
                     bench->what, ptoisa_dtype_name(p->from), ptoisa_dtype_name(p->to), mode,
                     saturate, x, got, want);
        }
    }
}

// -- conversions ----------------------------------------------------------------------------------

// Numbers at which integers and narrow floats end, and beyond 32 and 38 bits.
static const double ends[] = {
    0,    0.5,    127,         128,           255,          32767, 65504,    3,          65520,
    2048, 0x1p31, 0x1.8002p38, 0x1.fffffep46, 4294967295.0, 1e9,   INFINITY, (double)NAN};

// A number to convert: random bits, one near an end, or one beside the representable numbers of the
// other type.
static uint64_t source_bits(test_bench *bench, const pair *p) {
    if (p->from == PTOISA_I64) {  // which long double holds, if need be as a double (armhf)
        return test_random(bench) >> test_in(bench, LDBL_MANT_DIG < 64 ? 11 : 0, 63) ^
               (test_chance(bench, 2) ? 0 : UINT64_MAX);
    }
    if (!ref_is_float(p->from) || test_chance(bench, 3)) {
        return ref_encode(p->from, test_number(bench, p->from, TEST_ANY));
    }
    const double sign = test_chance(bench, 2) ? 1 : -1;
    if (test_chance(bench, 3)) {
        const double end = ends[test_in(bench, 0, sizeof ends / sizeof ends[0] - 1)];
        return ref_encode(p->from, sign * (end + (double)test_in(bench, 0, 64) / 16 - 2));
    }
    double x = ref_is_float(p->to) && p->to != PTOISA_F32
                   ? ref_decode(p->to, test_random(bench))
                   : (double)test_in(bench, 0, 1u << test_in(bench, 0, 17));
    double step = ref_ulp(p->to, x), part = (double)test_in(bench, 0, 4) / 4;
    double beside = ref_ulp(p->from, x) * ((double)test_in(bench, 0, 2) - 1);
    return ref_encode(p->from, sign * (x + step * part + beside));
}

ROUNDS_TEST(cvt__every_pair_and_mode_equals_the_reference, (PAIR_COUNT * ROUNDS)) {
    const pair *p = &pairs[round % PAIR_COUNT];
    const ptoisa_round mode = rounds[test_in(bench, 0, 6)];
    const bool saturate = test_chance(bench, 2), is_a5 = test_chance(bench, 2);
    uint32_t rows = test_size(bench, 5), cols = test_size(bench, 120);
    test_begin(bench, is_a5 || p->kind == PTOISA_CVT_A5 ? PTOISA_A5 : PTOISA_A2A3, "TCVT");
    test_tile *s = test_vec(bench, p->from, rows, cols),
              *d = test_written(test_vec(bench, p->to, rows, cols));
    TEST_GRID(uint32_t, r, rows, c, cols) {
        ref_put_bits(s->tile.data, p->from, ref_offset(&s->tile, r, c), source_bits(bench, p));
    }
    test_run(bench);
    ptoisa_tcvt(&bench->core, &d->tile, &s->tile, mode, saturate);
    expect_converted(bench, d, s, p, mode, saturate);
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
            test_begin(bench, PTOISA_A5, "TCVT of every half");
            test_tile *s = test_vec(bench, p->from, 1, 4096),
                      *d = test_written(test_vec(bench, p->to, 1, 4096));
            for (uint32_t c = 0; c < 4096; c++) {
                // Each part has numbers of all sizes.
                ref_put_bits(s->tile.data, p->from, c, c * 16 + part);
            }
            test_run(bench);
            ptoisa_tcvt(&bench->core, &d->tile, &s->tile, mode, saturate);
            expect_converted(bench, d, s, p, mode, saturate);
            test_end(bench);
        }
    }
}

// To f32 and back all bits are the same, but that a NaN becomes quiet.
ROUNDS_TEST(cvt__every_half_comes_back_from_f32_as_it_was, 2) {
    static const struct {
        ptoisa_dtype dtype;
        uint32_t infinity, quiet;
    } types[2] = {{PTOISA_F16, 0x7c00, 0x200}, {PTOISA_BF16, 0x7f80, 0x40}};
    test_begin(bench, PTOISA_A2A3, "TCVT there and back");
    test_tile *s = test_vec(bench, types[round].dtype, 64, 1024);
    test_tile *wide = test_written(test_vec(bench, PTOISA_F32, 64, 1024));
    test_tile *back = test_written(test_vec(bench, types[round].dtype, 64, 1024));
    TEST_GRID(uint32_t, r, 64, c, 1024) {
        ref_put_bits(s->tile.data, types[round].dtype, ref_offset(&s->tile, r, c), r * 1024 + c);
    }
    test_run(bench);
    ptoisa_tcvt(&bench->core, &wide->tile, &s->tile, PTOISA_CAST_NONE, false);
    ptoisa_tcvt(&bench->core, &back->tile, &wide->tile, PTOISA_CAST_RINT, false);
    TEST_GRID(uint32_t, r, 64, c, 1024) {
        const uint32_t bits = r * 1024 + c;
        const bool is_nan = (bits & 0x7fff) > types[round].infinity;
        test_expect_bits(bench, back, r, c, is_nan ? bits | types[round].quiet : bits);
    }
}

ROUNDS_TEST(cvt__in_place_equals_out_of_place, 3) {
    static const ptoisa_dtype to[3] = {PTOISA_F16, PTOISA_I32, PTOISA_I16};
    test_tile *s[2], *d;
    test_begin(bench, PTOISA_A2A3, "TCVT in place");
    for (int k = 0; k < 2; k++) {
        s[k] = test_tile_make(bench, PTOISA_F32, PTOISA_VEC, PTOISA_ROW_MAJOR, 4, 640, 4, 613);
        TEST_GRID(uint32_t, r, 4, c, 613) {
            test_put(s[k], r, c, (double)(r * 613 + c) * 4.125);
        }
    }
    d = test_written(test_vec(bench, to[round], 4, 613));
    s[1]->role = TEST_CHECKED;
    ptoisa_tile in_place = s[1]->tile;
    in_place.dtype = (uint8_t)to[round];
    test_run(bench);
    ptoisa_tcvt(&bench->core, &d->tile, &s[0]->tile, PTOISA_CAST_FLOOR, true);
    ptoisa_tcvt(&bench->core, &in_place, &s[1]->tile, PTOISA_CAST_FLOOR, true);
    TEST_GRID(uint32_t, r, 4, c, 613) {
        test_expect_bits(bench, d, r, c,
                         ref_get_bits(in_place.data, to[round], ref_offset(&in_place, r, c)));
    }
}

// Every f16, the middle between it and the next, and the f32 on both sides of the middle.
ROUNDS_TEST(cvt__f32_to_f16_rounds_once_around_every_half, 31) {
    test_begin(bench, PTOISA_A2A3, "TCVT around every half");
    test_tile *s = test_vec(bench, PTOISA_F32, 1, 8192);
    test_tile *d = test_written(test_vec(bench, PTOISA_F16, 1, 8192));
    for (uint32_t c = 0; c < 8192; c++) {
        double x = ref_decode(PTOISA_F16, round << 10 | c / 8);
        double y = ref_decode(PTOISA_F16, (round << 10 | c / 8) + 1);
        double middle = isinf(y) ? 65520 : (x + y) / 2, step = ref_ulp(PTOISA_F32, middle);
        double at = c % 4 == 0 ? x : middle + step * (c % 4 - 2.0);
        test_put(s, 0, c, c & 4 ? -at : at);
    }
    test_run(bench);
    ptoisa_tcvt(&bench->core, &d->tile, &s->tile, rounds[round % 6], false);
    expect_converted(bench, d, s, &pairs[0], rounds[round % 6], false);
}

// -- quantisation ---------------------------------------------------------------------------------

// A column, or the first column of rows of 8.
static test_tile *per_row(test_bench *bench, uint32_t rows, bool is_scale) {
    test_tile *t = test_chance(bench, 2) ? test_column(bench, PTOISA_F32, rows)
                                         : test_tile_make(bench, PTOISA_F32, PTOISA_VEC,
                                                          PTOISA_ROW_MAJOR, rows, 8, rows, 1);
    for (uint32_t r = 0; r < rows; r++) {
        test_put(t, r, 0,
                 is_scale ? test_in(bench, 1, 300) / 100.0
                          : ((double)test_in(bench, 0, 1000) - 300) / 7);
    }
    return t;
}

// Each step is rounded to f32.
ROUNDS_TEST(quant__by_row_equals_the_reference, 4 * ROUNDS) {
    bool is_sym = round % 2;
    uint32_t rows = test_size(bench, 20), cols = test_size(bench, 100);
    test_begin(bench, PTOISA_A2A3, is_sym ? "TQUANT INT8_SYM" : "TQUANT INT8_ASYM");
    test_tile *s = test_written(test_vec(bench, PTOISA_F32, rows, cols));
    test_tile *scale = per_row(bench, rows, true), *offset = per_row(bench, rows, false);
    test_tile *d = test_written(test_vec(bench, is_sym ? PTOISA_I8 : PTOISA_U8, rows, cols));
    TEST_GRID(uint32_t, r, rows, c, cols) {
        double x = ((double)test_in(bench, 0, 4000) - 2000) / 16;
        bool is_end = test_chance(bench, 20);
        test_put(s, r, c, is_end ? copysign((double)INFINITY, x) : x);
    }
    // With scratch, as on A2/A3: the source is scaled in place.
    test_tile *scratch =
        round % 4 == 1
            ? test_scratch(test_vec(bench, PTOISA_F32, (s->tile.rows + 7) / 8 * 8, s->tile.cols))
            : NULL;
    test_run(bench);
    if (scratch) {
        ptoisa_tquant_sym_scratch(&bench->core, &d->tile, &s->tile, &scale->tile, &scratch->tile);
    } else if (is_sym) {
        ptoisa_tquant_sym(&bench->core, &d->tile, &s->tile, &scale->tile);
    } else {
        ptoisa_tquant_asym(&bench->core, &d->tile, &s->tile, &scale->tile, &offset->tile);
    }
    TEST_GRID(uint32_t, r, rows, c, cols) {
        double x = ref_round(PTOISA_F32, ref_was(s, r, c) * ref_was(scale, r, 0));
        if (scratch) {
            test_expect_value(bench, s, r, c, x);
        }
        x = is_sym ? x : ref_round(PTOISA_F32, x + ref_was(offset, r, 0));
        test_expect_value(bench, d, r, c, ref_clamp((ptoisa_dtype)d->tile.dtype, nearbyint(x)));
    }
}

ROUNDS_TEST(dequant__by_row_equals_the_reference, 2 * ROUNDS) {
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
        double x = ref_round(PTOISA_F32, ref_was(s, r, c) - ref_was(offset, r, 0));
        test_expect_value(bench, d, r, c, x * ref_was(scale, r, 0));
    }
}
