// Conversions between all types, in every mode and of all bits; what quantising, adding and inserting compute; and
// what moves, shapes and conversions refuse. Moves and shapes are computed in isa_move_test.c and
// isa_fill_test.c.
//
// References: long double with libm's rounding for conversions, the formulas of the documentation, and
// counts of faults for what must be refused.

#include "ptoisa_shim.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/suite.h"

#define BYTES_MAX (1 << 19)

static uint64_t seed_of_run(void) {
    const char *text = getenv("PTOWSP_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 20261121;
    print_message("seed %llu (set PTOWSP_SEED to change it)\n", (unsigned long long)seed);
    return seed;
}

// SplitMix64 (Steele, Lea and Flood 2014).
static uint64_t next(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t next_in(uint64_t *state, uint32_t low, uint32_t high) {
    return low + (uint32_t)(next(state) % (high - low + 1));
}

static char last_fault[PTOISA_FAULT_TEXT_MAX];
static int fault_count;

static void on_fault(ptoisa_core *core, const char *text) {
    (void)core;
    snprintf(last_fault, sizeof last_fault, "%s", text);
    fault_count++;
}

typedef struct fixture {
    ptoisa_core core, a5;
    uint8_t *a, *b, *c, *expected;
    uint64_t random;
} fixture;

static int setup(void **state) {
    fixture *f = (fixture *)malloc(sizeof *f);
    ptoisa_core_init(&f->core, PTOISA_MODEL_UNIT, NULL);
    ptoisa_core_init(&f->a5, PTOISA_MODEL_UNIT, ptoisa_machine_950pr());
    f->core.on_fault = f->a5.on_fault = on_fault;
    f->a = (uint8_t *)aligned_alloc(64, BYTES_MAX);
    f->b = (uint8_t *)aligned_alloc(64, BYTES_MAX);
    f->c = (uint8_t *)aligned_alloc(64, BYTES_MAX);
    f->expected = (uint8_t *)aligned_alloc(64, BYTES_MAX);
    f->random = seed_of_run();
    fault_count = 0;
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = (fixture *)*state;
    free(f->a);
    free(f->b);
    free(f->c);
    free(f->expected);
    free(f);
    return 0;
}

static void randomise(fixture *f, uint8_t *bytes) {
    for (size_t i = 0; i < BYTES_MAX; i += 8) {
        uint64_t x = next(&f->random);
        memcpy(bytes + i, &x, 8);
    }
}

static void expect_no_fault(void) {
    if (fault_count) {
        fail_msg("fault: %s", last_fault);
    }
}

static void expect_fault(const char *part) {
    if (!PTOISA_CHECKED_DEFAULT) {
        return;
    }
    if (fault_count != 1 || !strstr(last_fault, part)) {
        fail_msg("%d faults, the last \"%s\", not one with \"%s\"", fault_count, last_fault, part);
    }
    fault_count = 0;
}

// -- a reference ----------------------------------------------------------------------------------

// Where element (r, c) is, by the documented formulas.
static uint64_t place(const ptoisa_tile *t, uint32_t r, uint32_t c) {
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)t->dtype), rows = t->rows, cols = t->cols;
    bool is_col = t->layout == PTOISA_ZN || t->layout == PTOISA_NN;
    uint32_t ir = is_col ? 32 / size : 16, ic = is_col ? 16 : 32 / size;
    if (t->memory == PTOISA_ACC) {
        ir = ic = 16;
    }
    uint32_t br = r / ir, bc = c / ic, r1 = r % ir, c1 = c % ic, numel = ir * ic;
    switch (t->layout) {
    case PTOISA_ROW_MAJOR: return r * cols + c;
    case PTOISA_COL_MAJOR: return c * rows + r;
    case PTOISA_NZ: return bc * rows * ic + br * numel + r1 * ic + c1;
    case PTOISA_ZN: return br * cols * ir + bc * numel + c1 * ir + r1;
    case PTOISA_ZZ: return br * cols * ir + bc * numel + r1 * ic + c1;
    default: return bc * rows * ic + br * numel + c1 * ir + r1;
    }
}

static uint8_t *element(const ptoisa_tile *t, uint32_t r, uint32_t c) {
    return (uint8_t *)t->data + place(t, r, c) * ptoisa_dtype_size((ptoisa_dtype)t->dtype);
}

// A tile of random size, of a layout and memory.
static ptoisa_tile random_tile(fixture *f, void *data, ptoisa_dtype dtype, ptoisa_memory memory,
                               ptoisa_layout layout) {
    uint32_t size = ptoisa_dtype_size(dtype), unit = 32 / size;
    ptoisa_tile t = ptoisa_tile_make(data, dtype, memory, layout, 1, 1);
    uint32_t row_unit = layout == PTOISA_COL_MAJOR ? unit : ptoisa_box_rows(&t);
    uint32_t col_unit = layout == PTOISA_ROW_MAJOR ? unit : ptoisa_box_cols(&t);
    t.rows = row_unit * next_in(&f->random, 1, 80 / row_unit + 1);
    t.cols = col_unit * next_in(&f->random, 1, 160 / col_unit + 1);
    bool is_full = next_in(&f->random, 0, 2) == 0;
    t.valid_rows = is_full ? t.rows : next_in(&f->random, 1, t.rows);
    t.valid_cols = is_full ? t.cols : next_in(&f->random, 1, t.cols);
    return t;
}

// -- moves ----------------------------------------------------------------------------------------

TEST_F(tstore_add__adds_and_tinsert_places) {
    const ptoisa_dtype types[6] = {PTOISA_F32, PTOISA_F16, PTOISA_BF16,
                                   PTOISA_I32, PTOISA_I16, PTOISA_I8};
    for (int i = 0; i < 6; i++) {
        ptoisa_tile d = ptoisa_tile_valid(ptoisa_tile_vec(f->a, types[i], 5, 32), 5, 30);
        ptoisa_texpands(&f->core, &d, 3);
        ptoisa_tile zero = ptoisa_tile_vec(f->b, types[i], 5, 96);
        ptoisa_texpands(&f->core, &zero, 7);
        ptoisa_global g = ptoisa_global_make(f->b, types[i], 5, 30, 96, 3);
        ptoisa_tstore_add(&f->core, &g, &d);
        ptoisa_tstore_add(&f->core, &g, &d);
        for (uint32_t at = 0; at < 5 * 96; at++) {
            bool is_hit = at % 96 % 3 == 0 && at % 96 / 3 < 30;
            assert_true(ptoisa_get_at(f->b, types[i], at) == (is_hit ? 13 : 7));
        }
    }
    randomise(f, f->a);
    ptoisa_tile acc = ptoisa_tile_make(f->a, PTOISA_F32, PTOISA_ACC, PTOISA_NZ, 32, 48);
    for (uint32_t i = 0; i < 32 * 48; i++) {
        float x = (float)i;
        memcpy(f->a + 4 * i, &x, 4);
    }
    acc.valid_rows = 20;
    acc.valid_cols = 33;
    ptoisa_tile mat = ptoisa_tile_make(f->b, PTOISA_F16, PTOISA_MAT, PTOISA_NZ, 64, 96);
    memset(f->b, 0, BYTES_MAX);
    ptoisa_tinsert(&f->core, &mat, &acc, 16, 32);
    expect_no_fault();
    TEST_GRID(uint32_t, r, 64, c, 96) {
        bool is_in = r >= 16 && r < 36 && c >= 32 && c < 65;
        float x = is_in ? (float)ptoisa_get(&acc, r - 16, c - 32) : 0;
        assert_true(ptoisa_get(&mat, r, c) == x);
    }
    // A bias row of halves widens on its way into the bias table.
    ptoisa_tile row = ptoisa_tile_make(f->b, PTOISA_F16, PTOISA_MAT, PTOISA_ROW_MAJOR, 1, 48);
    ptoisa_tile bias = ptoisa_tile_make(f->c, PTOISA_F32, PTOISA_BIAS, PTOISA_ROW_MAJOR, 1, 48);
    ptoisa_tmov(&f->core, &bias, &row);
    expect_no_fault();
    for (uint32_t c = 0; c < 48; c++) {
        assert_true(ptoisa_get(&bias, 0, c) == ptoisa_get(&row, 0, c));
    }
}

// -- conversions ----------------------------------------------------------------------------------

static long double rounded(long double x, ptoisa_round mode) {
    long double low = floorl(x), rest = x - low;
    switch (mode) {
    case PTOISA_CAST_ROUND: return roundl(x);
    case PTOISA_CAST_FLOOR: return low;
    case PTOISA_CAST_CEIL: return ceill(x);
    case PTOISA_CAST_TRUNC: return truncl(x);
    case PTOISA_CAST_ODD: return rest == 0 ? x : fmodl(low, 2) != 0 ? low : low + 1;
    default: return rintl(x);
    }
}

// x rounded to so many bits of fraction with a least exponent, as the mode says.
static long double rounded_float(long double x, int bits, int exponent_min, ptoisa_round mode) {
    if (x == 0 || !isfinite(x)) {
        return x;
    }
    int exponent = ilogbl(x);
    exponent = exponent < exponent_min ? exponent_min : exponent;
    return ldexpl(rounded(ldexpl(x, bits - exponent), mode), exponent - bits);
}

static long double number(const void *data, ptoisa_dtype dtype, uint32_t i) {
    if (dtype == PTOISA_I64) {
        int64_t x;
        memcpy(&x, (const uint8_t *)data + 8 * i, 8);
        return x;
    }
    return ptoisa_get_at(data, dtype, i);
}

static long double converted(long double x, ptoisa_dtype to, ptoisa_dtype from, ptoisa_round mode,
                             bool wraps) {
    static const int bits[14] = {0, 10, 7, 23, 0, 8, 16, 32, 64, 8, 16, 32, 64, 0};
    if (to <= PTOISA_F32) {
        if (to == from) {
            return isfinite(x) ? rounded(x, mode) : x;
        }
        mode = to == PTOISA_F16 ? PTOISA_CAST_RINT : mode;
        long double y = rounded_float(x, bits[to], to == PTOISA_F16 ? -14 : -126, mode);
        long double top = to == PTOISA_F16 ? 65504 : ldexpl(2 - ldexpl(1, -bits[to]), 127);
        return fabsl(y) > top ? copysignl(INFINITY, y) : y;
    }
    if (isnan(x) || (wraps && isinf(x))) {
        return 0;
    }
    bool is_signed = to <= PTOISA_I64;
    long double span = ldexpl(1, bits[to]), low = is_signed ? -span / 2 : 0;
    long double high = low + span - 1;
    x = isinf(x) ? x : rounded(x, mode);
    if (wraps) {
        x = fmodl(x, span);
        x = x < low ? x + span : x > high ? x - span : x;
        return x;
    }
    return x < low ? low : x > high ? high : x;
}

TEST_F(tcvt__rounds_saturates_and_wraps) {
    const ptoisa_dtype all[11] = {PTOISA_F16, PTOISA_BF16, PTOISA_F32, PTOISA_I8,
                                  PTOISA_I16, PTOISA_I32,  PTOISA_I64, PTOISA_U8,
                                  PTOISA_U16, PTOISA_U32,  PTOISA_U64};
    int pairs = 0, pairs_a5 = 0;
    for (int i = 0; i < 121; i++) {
        ptoisa_dtype to = all[i / 11], from = all[i % 11];
        ptoisa_cvt_kind kind = ptoisa_cvt_kind_of(to, from);
        pairs += kind == PTOISA_CVT_ANY || kind == PTOISA_CVT_WRAP;
        pairs_a5 += kind == PTOISA_CVT_A5;
        // The reference holds no integer of 64 bits where long double is a double (armhf).
        const bool is_in_reference =
            LDBL_MANT_DIG >= 64 || (ptoisa_dtype_size(to) < 8 && ptoisa_dtype_size(from) < 8);
        if (kind == PTOISA_CVT_NONE || !is_in_reference) {
            continue;
        }
        uint32_t rows = 3, cols = 320, valid = 300, size = ptoisa_dtype_size(from);
        ptoisa_tile s = ptoisa_tile_vec(f->a, from, rows, cols);
        ptoisa_tile d = ptoisa_tile_vec(f->b, to, rows, cols);
        for (int mode = 0; mode < 14; mode++) {
            ptoisa_round round = (ptoisa_round)(mode % 7);
            bool saturate = mode >= 7;
            randomise(f, f->a);
            for (uint32_t at = 0; at < rows * cols; at++) {
                // Every bit pattern, and in between numbers near those that round and overflow.
                static const double near[10] = {0,     0.5,   127,   128,  255,
                                                32767, 65504, 65520, 2048, 3};
                double x = near[next_in(&f->random, 0, 9)];
                x += ((double)next_in(&f->random, 0, 64) - 32) / 16;
                x = next_in(&f->random, 0, 1) ? x : -x;
                if (from <= PTOISA_F32 && at % 2) {
                    uint64_t bits = ptoisa_bits_of(x, from);
                    ptoisa_put_bits(f->a + at * size, bits, size);
                }
            }
            float big[6] = {0x1p31f, -0x1p31f, 0x1.8002p38f, INFINITY, NAN, -0x1.fffffep46f};
            if (from == PTOISA_F32) {
                memcpy(f->a, big, sizeof big);
            }
            d.valid_cols = s.valid_cols = mode % 3 ? valid : cols;
            memset(f->b, 0xaa, BYTES_MAX);
            ptoisa_tcvt(&f->a5, &d, &s, round, saturate);
            expect_no_fault();
            for (uint32_t r = 0; r < rows; r++) {
                for (uint32_t c = 0; c < d.valid_cols; c++) {
                    long double x = number(f->a, from, r * cols + c);
                    long double got = number(f->b, to, r * cols + c);
                    bool wraps = kind == PTOISA_CVT_WRAP && !saturate;
                    long double want = converted(x, to, from, round, wraps);
                    if (got != want && !(isnan(got) && isnan(want))) {
                        fail_msg(
                            "%s to %s, mode %d, saturate %d: %.20Lg becomes %.20Lg, not %.20Lg",
                            ptoisa_dtype_name(from), ptoisa_dtype_name(to), round, saturate, x, got,
                            want);
                    }
                }
                for (uint32_t c = d.valid_cols; c < cols; c++) {
                    assert_int_equal(element(&d, r, c)[0], 0xaa);
                }
            }
        }
    }
    assert_int_equal(pairs, 6 + 5 + 2 + 2 + 4 + 2 + 2);
    assert_int_equal(pairs_a5, 4 + 4 + 2);
}

TEST_F(tcvt__half_and_bfloat_are_exact_for_all_bits) {
    const ptoisa_dtype types[2] = {PTOISA_F16, PTOISA_BF16};
    for (int i = 0; i < 2; i++) {
        for (uint32_t bits = 0; bits < 65536; bits++) {
            uint16_t half = (uint16_t)bits;
            memcpy(f->a + 2 * bits, &half, 2);
        }
        ptoisa_tile s = ptoisa_tile_vec(f->a, types[i], 64, 1024);
        ptoisa_tile d = ptoisa_tile_vec(f->b, PTOISA_F32, 64, 1024);
        ptoisa_tile back = ptoisa_tile_vec(f->c, types[i], 64, 1024);
        ptoisa_tcvt(&f->core, &d, &s, PTOISA_CAST_NONE, false);
        ptoisa_tcvt(&f->core, &back, &d, PTOISA_CAST_RINT, false);
        for (uint32_t bits = 0; bits < 65536; bits++) {
            uint32_t got = ((uint16_t *)f->c)[bits], infinity = i ? 0x7f80 : 0x7c00;
            bool is_nan = (bits & 0x7fff) > infinity;
            assert_int_equal(got, is_nan ? bits | (i ? 0x40 : 0x200) : bits);
        }
    }
}

TEST_F(tcvt__in_place_narrows_and_keeps_width) {
    const ptoisa_dtype types[3] = {PTOISA_F16, PTOISA_I32, PTOISA_I16};
    for (int i = 0; i < 3; i++) {
        for (uint32_t at = 0; at < 4 * 640; at++) {
            ((float *)f->a)[at] = ((float *)f->b)[at] = (float)next_in(&f->random, 0, 9999) / 8;
        }
        ptoisa_tile s = ptoisa_tile_valid(ptoisa_tile_vec(f->a, PTOISA_F32, 4, 640), 4, 613);
        ptoisa_tile far = ptoisa_tile_valid(ptoisa_tile_vec(f->c, types[i], 4, 640), 4, 613);
        ptoisa_tile near = far;
        near.data = f->b;
        ptoisa_tile from = s;
        from.data = f->b;
        ptoisa_tcvt(&f->core, &far, &s, PTOISA_CAST_FLOOR, true);
        ptoisa_tcvt(&f->core, &near, &from, PTOISA_CAST_FLOOR, true);
        expect_no_fault();
        for (uint32_t r = 0; r < 4; r++) {
            assert_memory_equal(element(&far, r, 0), element(&near, r, 0),
                                613 * ptoisa_dtype_size(types[i]));
        }
    }
    ptoisa_tile half = ptoisa_tile_vec(f->a, PTOISA_F16, 4, 64);
    ptoisa_tile word = ptoisa_tile_vec(f->a, PTOISA_F32, 4, 64);
    ptoisa_tcvt(&f->core, &word, &half, PTOISA_CAST_NONE, false);
    expect_fault("d is at the address of s, and its elements are larger");
}

TEST_F(quantising__follows_its_formulas) {
    for (int round = 0; round < 40; round++) {
        ptoisa_tile s = random_tile(f, f->a, PTOISA_F32, PTOISA_VEC, PTOISA_ROW_MAJOR);
        ptoisa_tile d = s;
        d.data = f->b;
        d.cols = (s.cols + 31) / 32 * 32;
        d.dtype = PTOISA_I8;
        bool is_col = next_in(&f->random, 0, 1);
        uint32_t rows = (s.rows + 7) / 8 * 8;
        ptoisa_layout layout = is_col ? PTOISA_COL_MAJOR : PTOISA_ROW_MAJOR;
        ptoisa_tile scale =
            ptoisa_tile_make(f->c, PTOISA_F32, PTOISA_VEC, layout, rows, is_col ? 1 : 8);
        scale.valid_cols = 1;
        ptoisa_tile offset = scale;
        offset.data = f->expected;
        for (uint32_t i = 0; i < s.rows * s.cols; i++) {
            ((float *)f->a)[i] = ((float)next_in(&f->random, 0, 4000) - 2000) / 16;
        }
        for (uint32_t i = 0; i < rows * 8; i++) {
            ((float *)f->c)[i] = (float)next_in(&f->random, 1, 300) / 100;
            ((float *)f->expected)[i] = (float)next_in(&f->random, 0, 1000) / 7;
        }
        for (int form = 0; form < 2; form++) {
            if (form == 0) {
                ptoisa_tquant_sym(&f->core, &d, &s, &scale);
            } else {
                d.dtype = PTOISA_U8;
                ptoisa_tquant_asym(&f->core, &d, &s, &scale, &offset);
            }
            expect_no_fault();
            TEST_GRID(uint32_t, r, s.valid_rows, c, s.valid_cols) {
                volatile float x = (float)ptoisa_get(&s, r, c) * (float)ptoisa_get(&scale, r, 0);
                x += form ? (float)ptoisa_get(&offset, r, 0) : 0;
                double want = fmin(fmax(rint(x), form ? 0 : -128), form ? 255 : 127);
                assert_true(ptoisa_get(&d, r, c) == want);
            }
        }
        d.dtype = PTOISA_I8;
        ptoisa_tdequant(&f->core, &s, &d, &scale, &offset);
        expect_no_fault();
        TEST_GRID(uint32_t, r, s.valid_rows, c, s.valid_cols) {
            volatile float x = (float)ptoisa_get(&d, r, c) - (float)ptoisa_get(&offset, r, 0);
            x *= (float)ptoisa_get(&scale, r, 0);
            assert_true(ptoisa_get(&s, r, c) == x);
        }
    }
}

// -- what is refused ------------------------------------------------------------------------------

TEST_F(checks__name_the_operand_and_its_numbers) {
    ptoisa_core *core = &f->core, *a5 = &f->a5;
    ptoisa_tile vec = ptoisa_tile_vec(f->a, PTOISA_F32, 16, 16);
    ptoisa_tile other = ptoisa_tile_vec(f->b, PTOISA_F32, 16, 16);
    ptoisa_global g = ptoisa_global_make(f->c, PTOISA_F32, 16, 15, 16, 1);
    ptoisa_tload(core, &vec, &g);
    expect_fault("TLOAD: g has 16 x 15 elements, d 16 x 16 valid ones");
    g.shape[4] = 16;
    g.shape[2] = 0;
    ptoisa_tstore(core, &g, &vec);
    expect_fault("TSTORE: g has shape 0 in dimension 2");
    g.shape[2] = 1;
    g.dtype = PTOISA_F16;
    ptoisa_tload(core, &vec, &g);
    expect_fault("TLOAD: g is f16, d is f32");
    ptoisa_tile tall = ptoisa_tile_valid(ptoisa_tile_vec(f->a, PTOISA_F32, 4096, 8), 16, 8);
    g = ptoisa_global_make(f->c, PTOISA_F32, 16, 8, 8, 1);
    ptoisa_tload(core, &tall, &g);
    expect_fault("d has 4096 rows, more than 4095");
    ptoisa_tile mat = ptoisa_tile_make(f->a, PTOISA_F32, PTOISA_MAT, PTOISA_NZ, 16, 16);
    ptoisa_tile left = ptoisa_tile_make(f->b, PTOISA_F32, PTOISA_LEFT, PTOISA_NZ, 16, 16);
    ptoisa_tmov(core, &left, &mat);
    expect_fault("TMOV: d is in L0A of 910B and not ZZ");
    ptoisa_tmov(core, &vec, &mat);
    expect_fault("there is no way from L1 (s) to UB (d)");
    ptoisa_tile acc = ptoisa_tile_make(f->a, PTOISA_F32, PTOISA_ACC, PTOISA_NZ, 16, 16);
    ptoisa_tmov(core, &other, &acc);
    expect_fault("the way from L0C to UB is not on 910B, only on A5");
    ptoisa_tmov(a5, &other, &acc);
    expect_no_fault();
    left.layout = PTOISA_ZZ;
    ptoisa_textract(core, &left, &mat, 0, 8);
    expect_fault("TEXTRACT: 16 x 16 elements from (0, 8) do not lie in s of 16 x 16");
    ptoisa_tile bias = ptoisa_tile_make(f->b, PTOISA_F32, PTOISA_BIAS, PTOISA_ROW_MAJOR, 1, 24);
    ptoisa_tile row = ptoisa_tile_make(f->a, PTOISA_F32, PTOISA_MAT, PTOISA_ROW_MAJOR, 1, 24);
    ptoisa_tmov(core, &bias, &row);
    expect_fault("d has 24 x 4 bytes, which 64 does not divide");
    g = ptoisa_global_make(f->c, PTOISA_I8, 16, 16, 16, 1);
    ptoisa_tstore(core, &g, &acc);
    expect_fault("f32 out of L0C does not become i8");
    ptoisa_tile t = ptoisa_tile_vec(f->c, PTOISA_F32, 1, 8);
    ptoisa_ttrans(core, &other, &vec, &t);
    expect_fault("TTRANS: t has 32 bytes, less than 1024");
    ptoisa_tfillpad(core, &other, &vec);
    expect_fault("TFILLPAD: d's pad value is Null");
    other.pad = PTOISA_PAD_ZERO;
    ptoisa_tfillpad_inplace(core, &other, &vec);
    expect_fault("in place");
    ptoisa_tile bytes = ptoisa_tile_vec(f->b, PTOISA_U8, 16, 32);
    ptoisa_texpands(core, &bytes, 256);
    expect_fault("256 is no u8");
    bytes.valid_cols = 16;
    ptoisa_tcvt(core, &bytes, &vec, PTOISA_CAST_RINT, false);
    expect_fault("s is f32, which becomes u8 (d) only on A5");
    ptoisa_tinterleave(core, &vec, &vec, &vec, &vec);
    expect_fault("only on A5");
    ptoisa_tile scale = ptoisa_tile_vec(f->c, PTOISA_F32, 16, 8);
    bytes.dtype = PTOISA_I8;
    ptoisa_tquant_sym(core, &bytes, &vec, &scale);
    expect_fault("scale is no column: it has 8 valid columns of 8");
}

TEST_F(empty_regions_and_dry_cores_compute_nothing) {
    memset(f->b, 0xaa, BYTES_MAX);
    ptoisa_tile s = ptoisa_tile_valid(ptoisa_tile_vec(f->a, PTOISA_F32, 8, 8), 0, 0);
    ptoisa_tile d = s;
    d.data = f->b;
    ptoisa_tile half = ptoisa_tile_valid(ptoisa_tile_vec(f->b, PTOISA_F16, 8, 16), 0, 0);
    ptoisa_tile scale = ptoisa_tile_make(f->c, PTOISA_F32, PTOISA_VEC, PTOISA_COL_MAJOR, 8, 1);
    ptoisa_tile bytes = ptoisa_tile_valid(ptoisa_tile_vec(f->b, PTOISA_I8, 8, 32), 0, 0);
    ptoisa_tmov(&f->core, &d, &s);
    ptoisa_tcvt(&f->core, &half, &s, PTOISA_CAST_NONE, false);
    ptoisa_ttrans(&f->core, &d, &s, &s);
    ptoisa_texpands(&f->core, &d, 1);
    ptoisa_tconcat(&f->core, &d, &s, &s);
    ptoisa_tci(&f->core, &d, 0, false);
    ptoisa_ttri(&f->core, &d, false, 0);
    ptoisa_tquant_sym(&f->core, &bytes, &s, &scale);
    expect_no_fault();
    for (uint32_t i = 0; i < 4096; i++) {
        assert_int_equal(f->b[i], 0xaa);
    }
    assert_int_equal(ptoisa_cycles(&f->core), 0);
    f->core.is_dry = true;
    ptoisa_tile none = ptoisa_tile_vec(NULL, PTOISA_F32, 8, 16);
    ptoisa_global g = ptoisa_global_make(NULL, PTOISA_F32, 8, 16, 16, 1);
    ptoisa_tload(&f->core, &none, &g);
    ptoisa_tstore(&f->core, &g, &none);
    expect_no_fault();
    assert_int_equal(ptoisa_cycles(&f->core), 256);
}
