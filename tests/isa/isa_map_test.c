// Element-wise instructions, expands and reductions against plain loops in double and int64_t, on
// every set of vector instructions of this machine, with odd sizes and guarded tiles.

#include "ptoisa_shim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/suite.h"

static uint64_t test_seed(void) {
    const char *text = getenv("PTOWSP_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 20261121;
    print_message("seed %llu (set PTOWSP_SEED to change it)\n", (unsigned long long)seed);
    return seed;
}

// SplitMix64 (Steele, Lea and Flood 2014).
static uint64_t test_random(uint64_t *random) {
    uint64_t z = (*random += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t test_below(uint64_t *random, uint32_t n) {
    return (uint32_t)(test_random(random) % n);
}

// -- tiles of random values ----------------------------------------------------------------------

#define BYTES_MAX (1u << 15)
#define GUARD     0xa5

typedef struct buffer {
    _Alignas(64) uint8_t bytes[BYTES_MAX];
} buffer;

static float special(uint64_t *random) {
    static const float values[] = {0.0f,    -0.0f,    1.0f,  -1.0f,     INFINITY,  -INFINITY,
                                   NAN,     2.0f,     -3.0f, 0x1p-149f, 0x1p-126f, -0x1p-130f,
                                   3.4e38f, -3.4e38f, 0.5f,  88.7f,     -103.9f,   1e-30f};
    return values[test_below(random, sizeof values / sizeof *values)];
}

static float random_f32(uint64_t *random) {
    uint32_t kind = test_below(random, 16);
    if (kind == 0) {
        return special(random);
    }
    if (kind == 1) {
        return ptoisa_f32_from_bits((uint32_t)test_random(random));
    }
    return (float)((double)test_below(random, 2000001) / 1e5 - 10.0);
}

// Puts a random value where element i is.
static void random_at(void *data, ptoisa_dtype dtype, uint64_t i, uint64_t *random) {
    uint64_t bits = test_below(random, 4) ? test_random(random) % 41 - 20 : test_random(random);
    switch (dtype) {
    case PTOISA_F32: ((float *)data)[i] = random_f32(random); return;
    case PTOISA_F16: ((uint16_t *)data)[i] = ptoisa_f16_from_f32(random_f32(random)); return;
    case PTOISA_BF16: ((uint16_t *)data)[i] = ptoisa_bf16_from_f32(random_f32(random)); return;
    case PTOISA_I8:
    case PTOISA_U8: ((uint8_t *)data)[i] = (uint8_t)bits; return;
    case PTOISA_I16:
    case PTOISA_U16: ((uint16_t *)data)[i] = (uint16_t)bits; return;
    default: ((uint32_t *)data)[i] = (uint32_t)bits; return;
    }
}

static ptoisa_tile random_tile(buffer *memory, ptoisa_dtype dtype, uint32_t rows, uint32_t cols,
                               uint64_t *random) {
    uint32_t block = 32 / ptoisa_dtype_size(dtype);
    uint32_t pitch = (cols + block - 1) / block * block + block * test_below(random, 2);
    memset(memory, GUARD, sizeof *memory);
    ptoisa_tile tile = ptoisa_tile_vec(memory->bytes, dtype, rows, pitch);
    assert_true(ptoisa_tile_bytes(&tile) <= BYTES_MAX);
    for (uint32_t i = 0; i < rows * pitch; i++) {
        random_at(memory->bytes, dtype, i, random);
    }
    return ptoisa_tile_valid(tile, rows, cols);
}

static const ptoisa_dtype all_types[] = {PTOISA_F16, PTOISA_BF16, PTOISA_F32, PTOISA_I8, PTOISA_I16,
                                         PTOISA_I32, PTOISA_U8,   PTOISA_U16, PTOISA_U32};
static const uint32_t some_cols[] = {1, 7, 8, 15, 16, 17, 31, 33, 63, 64, 130, 600};

// x in a type, rounded to nearest even once from f32, or wrapped.
static double in_type(ptoisa_dtype dtype, double x, int64_t integer) {
    switch (dtype) {
    case PTOISA_F16: return ptoisa_f32_from_f16(ptoisa_f16_from_f32((float)x));
    case PTOISA_BF16: return ptoisa_f32_from_bf16(ptoisa_bf16_from_f32((float)x));
    case PTOISA_F32: return (float)x;
    case PTOISA_I8: return (int8_t)integer;
    case PTOISA_I16: return (int16_t)integer;
    case PTOISA_I32: return (int32_t)integer;
    case PTOISA_U8: return (uint8_t)integer;
    case PTOISA_U16: return (uint16_t)integer;
    default: return (uint32_t)integer;
    }
}

// -- the reference -------------------------------------------------------------------------------

static double max_of(double x, double y) {
    return x != x ? x : y != y ? y : x > y ? x : y;
}

static double min_of(double x, double y) {
    return x != x ? x : y != y ? y : x < y ? x : y;
}

static int64_t int_rem(int64_t x, int64_t y) {
    int64_t rest = y == 0 ? 0 : x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

static int64_t int_pow(int64_t x, int64_t y) {
    if (y < 0) {
        return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
    }
    uint64_t power = 1, base = (uint64_t)x;
    for (; y > 0; y >>= 1, base *= base) {
        power *= y & 1 ? base : 1;
    }
    return (int64_t)power;
}

static int64_t int_shift(int64_t x, int64_t y, ptoisa_map_op op, ptoisa_dtype dtype) {
    int64_t bits = 8 * (int64_t)ptoisa_dtype_size(dtype);
    if (y < 0 || y >= bits) {
        return op == PTOISA_MAP_SHR && x < 0 ? -1 : 0;
    }
    return op == PTOISA_MAP_SHL ? (int64_t)((uint64_t)x << y) : x >> y;
}

// f(x, y, z) in the type; sums and products of floats are rounded to f32 first, as they are there.
static double reference(ptoisa_map_op op, ptoisa_dtype dtype, double x, double y, double z) {
    bool is_float = ptoisa_dtype_is_float(dtype);
    int64_t i = is_float ? 0 : (int64_t)x, j = is_float ? 0 : (int64_t)y;
    int64_t k = is_float ? 0 : (int64_t)z;
    switch (op) {
    case PTOISA_MAP_ADD: return in_type(dtype, x + y, i + j);
    case PTOISA_MAP_SUB: return in_type(dtype, x - y, i - j);
    case PTOISA_MAP_MUL: return in_type(dtype, x * y, (int64_t)((uint64_t)i * (uint64_t)j));
    case PTOISA_MAP_DIV: return in_type(dtype, (float)x / (float)y, j == 0 ? 0 : i / j);
    case PTOISA_MAP_DIV_BY: return in_type(dtype, (float)y / (float)x, i == 0 ? 0 : j / i);
    case PTOISA_MAP_MAX: return max_of(x, y);
    case PTOISA_MAP_MIN: return min_of(x, y);
    case PTOISA_MAP_EXPDIF: return in_type(dtype, exp((float)(x - y)), 0);
    case PTOISA_MAP_LEAKY: return x > 0 ? x : in_type(dtype, x * y, 0);
    case PTOISA_MAP_MUL_ADD: return in_type(dtype, fmaf((float)x, (float)y, (float)z), 0);
    case PTOISA_MAP_MUL_ADD_RELU:
        x = fmaf((float)x, (float)y, (float)z);
        return in_type(dtype, x < 0 ? 0 : x, 0);
    case PTOISA_MAP_SUB_RELU: return in_type(dtype, x - y < 0 ? 0 : x - y, 0);
    case PTOISA_MAP_ADD_ADD: return in_type(dtype, (float)(x + y) + (float)z, i + j + k);
    case PTOISA_MAP_SUB_ADD: return in_type(dtype, (float)(x - y) + (float)z, i - j + k);
    case PTOISA_MAP_EXP: return in_type(dtype, exp(x), 0);
    case PTOISA_MAP_LOG: return in_type(dtype, log(x), 0);
    case PTOISA_MAP_SQRT: return in_type(dtype, sqrt(x), 0);
    case PTOISA_MAP_RSQRT: return in_type(dtype, 1.0f / (float)sqrt(x), 0);
    case PTOISA_MAP_RECIP: return in_type(dtype, 1.0f / (float)x, i == 0 ? 0 : 1 / i);
    case PTOISA_MAP_ABS: return in_type(dtype, fabs(x), i < 0 ? -i : i);
    case PTOISA_MAP_NEG: return in_type(dtype, -x, -i);
    case PTOISA_MAP_RELU: return x < 0 ? 0 : x;
    case PTOISA_MAP_REM: {
        float rest = fmodf((float)x, (float)y);
        rest = rest != 0 && (rest < 0) != (y < 0) ? rest + (float)y : rest;
        return in_type(dtype, rest == 0 ? copysign(0, y) : rest, int_rem(i, j));
    }
    case PTOISA_MAP_FMOD: return in_type(dtype, fmod(x, y), j == 0 ? 0 : i % j);
    case PTOISA_MAP_POW: return in_type(dtype, pow(x, y), int_pow(i, j));
    case PTOISA_MAP_AND: return in_type(dtype, 0, i & j);
    case PTOISA_MAP_OR: return in_type(dtype, 0, i | j);
    case PTOISA_MAP_XOR: return in_type(dtype, 0, i ^ j);
    case PTOISA_MAP_NOT: return in_type(dtype, 0, ~i);
    case PTOISA_MAP_SHL:
    case PTOISA_MAP_SHR: return in_type(dtype, 0, int_shift(i, j, op, dtype));
    default: return y;
    }
}

// Equal, or both NaN, or (for exp, log and pow, within 2 ulp of f32) near.
static bool is_right(ptoisa_map_op op, ptoisa_dtype dtype, double got, double want) {
    if (got != got || want != want) {
        return got != got && want != want;
    }
    bool is_near = op == PTOISA_MAP_EXP || op == PTOISA_MAP_LOG || op == PTOISA_MAP_EXPDIF ||
                   op == PTOISA_MAP_POW;
    if (got == want || !is_near || !ptoisa_dtype_is_float(dtype)) {
        return got == want;
    }
    double unit = dtype == PTOISA_F32 ? 0x1p-23 : dtype == PTOISA_F16 ? 0x1p-10 : 0x1p-7;
    double least = dtype == PTOISA_F16 ? 0x1p-24 : dtype == PTOISA_F32 ? 0x1p-149 : 0x1p-133;
    return fabs(got - want) <= 2 * (fabs(want) * unit > least ? fabs(want) * unit : least);
}

// -- instructions --------------------------------------------------------------------------------

typedef void (*unary_fn)(ptoisa_core *, const ptoisa_tile *, const ptoisa_tile *);
typedef void (*binary_fn)(ptoisa_core *, const ptoisa_tile *, const ptoisa_tile *,
                          const ptoisa_tile *);
typedef void (*scalar_fn)(ptoisa_core *, const ptoisa_tile *, const ptoisa_tile *, double);

typedef struct instruction {
    const char *name;
    ptoisa_map_op op;
    uint32_t dtypes;
    unary_fn unary;
    binary_fn binary, row, col;
    scalar_fn scalar;
} instruction;

static void rem_with_scratch(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s0,
                             const ptoisa_tile *s1) {
    ptoisa_trem(core, d, s0, s1, s0);
}

static void fmod_without_scratch(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s0,
                                 const ptoisa_tile *s1) {
    ptoisa_tfmod(core, d, s0, s1, NULL);
}

static void pow_without_scratch(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s0,
                                const ptoisa_tile *s1) {
    ptoisa_tpow(core, d, s0, s1, NULL);
}

static void xor_with_scratch(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s0,
                             const ptoisa_tile *s1) {
    ptoisa_txor(core, d, s0, s1, s0);
}

static void prelu_with_scratch(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s0,
                               const ptoisa_tile *s1) {
    ptoisa_tprelu(core, d, s0, s1, s0);
}

static void scalar_by_tile(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                           double x) {
    ptoisa_tsdiv(core, d, x, s);
}

#define ALL      PTOISA_SET_MAP
#define FLOATS   PTOISA_SET_MAP_FLOAT
#define INTEGERS PTOISA_SET_MAP_INT
#define SIGNED   (PTOISA_SET_MAP_FLOAT | PTOISA_SET_MAP_SIGNED)
static const instruction instructions[] = {
    {"add", PTOISA_MAP_ADD, ALL, NULL, ptoisa_tadd, ptoisa_trowexpandadd, ptoisa_tcolexpandadd,
     ptoisa_tadds},
    {"sub", PTOISA_MAP_SUB, ALL, NULL, ptoisa_tsub, ptoisa_trowexpandsub, ptoisa_tcolexpandsub,
     ptoisa_tsubs},
    {"mul", PTOISA_MAP_MUL, ALL, NULL, ptoisa_tmul, ptoisa_trowexpandmul, ptoisa_tcolexpandmul,
     ptoisa_tmuls},
    {"div", PTOISA_MAP_DIV, ALL, NULL, ptoisa_tdiv, ptoisa_trowexpanddiv, ptoisa_tcolexpanddiv,
     ptoisa_tdivs},
    {"max", PTOISA_MAP_MAX, ALL, NULL, ptoisa_tmax, ptoisa_trowexpandmax, ptoisa_tcolexpandmax,
     ptoisa_tmaxs},
    {"min", PTOISA_MAP_MIN, ALL, NULL, ptoisa_tmin, ptoisa_trowexpandmin, ptoisa_tcolexpandmin,
     ptoisa_tmins},
    {"expdif", PTOISA_MAP_EXPDIF, FLOATS, NULL, NULL, ptoisa_trowexpandexpdif,
     ptoisa_tcolexpandexpdif, NULL},
    {"sdiv", PTOISA_MAP_DIV_BY, ALL, NULL, NULL, NULL, NULL, scalar_by_tile},
    {"and", PTOISA_MAP_AND, INTEGERS, NULL, ptoisa_tand, NULL, NULL, ptoisa_tands},
    {"or", PTOISA_MAP_OR, INTEGERS, NULL, ptoisa_tor, NULL, NULL, ptoisa_tors},
    {"xor", PTOISA_MAP_XOR, INTEGERS, NULL, xor_with_scratch, NULL, NULL, NULL},
    {"shl", PTOISA_MAP_SHL, INTEGERS, NULL, ptoisa_tshl, NULL, NULL, ptoisa_tshls},
    {"shr", PTOISA_MAP_SHR, INTEGERS, NULL, ptoisa_tshr, NULL, NULL, ptoisa_tshrs},
    {"rem", PTOISA_MAP_REM, ALL, NULL, rem_with_scratch, NULL, NULL, ptoisa_trems},
    {"fmod", PTOISA_MAP_FMOD, ALL, NULL, fmod_without_scratch, NULL, NULL, ptoisa_tfmods},
    {"pow", PTOISA_MAP_POW, ALL, NULL, pow_without_scratch, NULL, NULL, ptoisa_tpows},
    {"leaky", PTOISA_MAP_LEAKY, FLOATS, NULL, prelu_with_scratch, NULL, NULL, ptoisa_tlrelu},
    {"subrelu", PTOISA_MAP_SUB_RELU, FLOATS, NULL, ptoisa_tsubrelu, NULL, NULL, NULL},
    {"muladddst", PTOISA_MAP_MUL_ADD, FLOATS, NULL, ptoisa_tmuladddst, NULL, NULL, ptoisa_taxpy},
    {"exp", PTOISA_MAP_EXP, FLOATS, ptoisa_texp, NULL, NULL, NULL, NULL},
    {"log", PTOISA_MAP_LOG, FLOATS, ptoisa_tlog, NULL, NULL, NULL, NULL},
    {"sqrt", PTOISA_MAP_SQRT, FLOATS, ptoisa_tsqrt, NULL, NULL, NULL, NULL},
    {"rsqrt", PTOISA_MAP_RSQRT, FLOATS, ptoisa_trsqrt, NULL, NULL, NULL, NULL},
    {"recip", PTOISA_MAP_RECIP, ALL, ptoisa_trecip, NULL, NULL, NULL, NULL},
    {"abs", PTOISA_MAP_ABS, SIGNED, ptoisa_tabs, NULL, NULL, NULL, NULL},
    {"neg", PTOISA_MAP_NEG, ALL, ptoisa_tneg, NULL, NULL, NULL, NULL},
    {"relu", PTOISA_MAP_RELU, SIGNED, ptoisa_trelu, NULL, NULL, NULL, NULL},
    {"not", PTOISA_MAP_NOT, INTEGERS, ptoisa_tnot, NULL, NULL, NULL, NULL},
};

enum { UNARY, BINARY, SCALAR, ROW, COL, FORMS };

// One instruction in one form, with random operands; all of d outside its valid region stays.
static void check_form(const instruction *it, int form, ptoisa_dtype dtype, uint64_t *random) {
    static buffer d_bytes, before, s0_bytes, s1_bytes;
    ptoisa_core core;
    ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
    uint32_t cols = some_cols[test_below(random, sizeof some_cols / sizeof *some_cols)];
    uint32_t rows = 1 + test_below(random, 9);
    ptoisa_tile d = random_tile(&d_bytes, dtype, rows, cols, random);
    ptoisa_tile s0 = random_tile(&s0_bytes, dtype, rows, cols, random);
    ptoisa_tile s1 = random_tile(&s1_bytes, dtype, form == COL ? 1 : rows, cols, random);
    if (form == ROW) {
        uint32_t block = 32 / ptoisa_dtype_size(dtype);
        s1.valid_cols = test_below(random, 2) || cols < block ? 1 : block;
        if (test_below(random, 2)) {
            s1 = ptoisa_tile_valid(
                ptoisa_tile_make(s1_bytes.bytes, dtype, PTOISA_VEC, PTOISA_COL_MAJOR, 32, 1), rows,
                1);
        }
    }
    double x = ptoisa_get(&s1, 0, 0);
    bool is_in_place = it->op != PTOISA_MAP_RSQRT && it->op != PTOISA_MAP_RECIP &&
                       it->op != PTOISA_MAP_AND && it->op != PTOISA_MAP_OR &&
                       test_below(random, 3) == 0;
    memcpy(&before, &d_bytes, sizeof before);
    const ptoisa_tile *a = is_in_place ? &d : &s0;
    switch (form) {
    case UNARY: it->unary(&core, &d, a); break;
    case BINARY: it->binary(&core, &d, a, &s1); break;
    case SCALAR: it->scalar(&core, &d, a, x); break;
    case ROW: it->row(&core, &d, a, &s1); break;
    default: it->col(&core, &d, a, &s1); break;
    }
    ptoisa_tile old = d;
    old.data = before.bytes;
    a = is_in_place ? &old : &s0;
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t c = 0; c < cols; c++) {
            double y = form == BINARY ? ptoisa_get(&s1, r, c)
                       : form == ROW  ? ptoisa_get(&s1, r, 0)
                       : form == COL  ? ptoisa_get(&s1, 0, c)
                                      : x;
            double want = reference(it->op, dtype, ptoisa_get(a, r, c), y, ptoisa_get(&old, r, c));
            double got = ptoisa_get(&d, r, c);
            if (!is_right(it->op, dtype, got, want)) {
                fail_msg("%s form %d %s of %a, %a: %a, not %a", it->name, form,
                         ptoisa_dtype_name(dtype), ptoisa_get(a, r, c), y, got, want);
            }
        }
        size_t size = ptoisa_dtype_size(dtype), row = (size_t)r * d.cols * size;
        assert_memory_equal(d_bytes.bytes + row + cols * size, before.bytes + row + cols * size,
                            (d.cols - cols) * size);
    }
    size_t end = ptoisa_tile_bytes(&d);
    assert_memory_equal(d_bytes.bytes + end, before.bytes + end, BYTES_MAX - end);
    assert_int_equal(ptoisa_cycles(&core), rows * cols);
}

TEST(elementwise__every_form_of_every_type_is_as_defined) {
    uint64_t random = test_seed();
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
        const instruction *it = &instructions[i];
        for (size_t t = 0; t < sizeof all_types / sizeof *all_types; t++) {
            if (!(it->dtypes >> all_types[t] & 1)) {
                continue;
            }
            for (int repeat = 0; repeat < 30; repeat++) {
                bool has[FORMS] = {it->unary != NULL, it->binary != NULL, it->scalar != NULL,
                                   it->row != NULL, it->col != NULL};
                for (int form = 0; form < FORMS; form++) {
                    if (has[form]) {
                        check_form(it, form, all_types[t], &random);
                    }
                }
            }
        }
    }
}

TEST(elementwise__three_operands_equal_the_reference) {
    uint64_t random = test_seed();
    static buffer bytes[4], before;
    for (int repeat = 0; repeat < 200; repeat++) {
        ptoisa_dtype dtype = all_types[test_below(&random, 9)];
        ptoisa_core core;
        ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
        uint32_t cols = 1 + test_below(&random, 70), rows = 1 + test_below(&random, 5);
        ptoisa_tile d = random_tile(&bytes[0], dtype, rows, cols, &random), old = d, s[3];
        for (int i = 0; i < 3; i++) {
            s[i] = random_tile(&bytes[i + 1], dtype, rows, cols, &random);
        }
        memcpy(&before, &bytes[0], sizeof before);
        old.data = before.bytes;
        double x = ptoisa_get(&s[1], 0, 0);
        int form = (int)test_below(&random, ptoisa_dtype_is_float(dtype) ? 6 : 4);
        ptoisa_map_op op = form == 4   ? PTOISA_MAP_MUL_ADD
                           : form == 5 ? PTOISA_MAP_MUL_ADD_RELU
                           : form % 2  ? PTOISA_MAP_SUB_ADD
                                       : PTOISA_MAP_ADD_ADD;
        switch (form) {
        case 0: ptoisa_taddc(&core, &d, &s[0], &s[1], &s[2]); break;
        case 1: ptoisa_tsubc(&core, &d, &s[0], &s[1], &s[2]); break;
        case 2: ptoisa_taddsc(&core, &d, &s[0], x, &s[2]); break;
        case 3: ptoisa_tsubsc(&core, &d, &s[0], x, &s[2]); break;
        case 4: ptoisa_tfusedmuladd(&core, &d, &s[0], &s[2]); break;
        default: ptoisa_tfusedmuladdrelu(&core, &d, &s[0], &s[2]); break;
        }
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < cols; c++) {
                double y = form < 2   ? ptoisa_get(&s[1], r, c)
                           : form < 4 ? x
                                      : ptoisa_get(&old, r, c);
                double want =
                    reference(op, dtype, ptoisa_get(&s[0], r, c), y, ptoisa_get(&s[2], r, c));
                assert_true(is_right(op, dtype, ptoisa_get(&d, r, c), want));
            }
        }
    }
}

TEST(elementwise__axpy_takes_halves_into_f32) {
    _Alignas(32) uint16_t halves[16];
    _Alignas(32) float sums[16];
    for (int i = 0; i < 16; i++) {
        halves[i] = ptoisa_f16_from_f32((float)i);
        sums[i] = 0.25f;
    }
    ptoisa_core core;
    ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
    ptoisa_tile d = ptoisa_tile_vec(sums, PTOISA_F32, 1, 16);
    ptoisa_tile s = ptoisa_tile_vec(halves, PTOISA_F16, 1, 16);
    ptoisa_taxpy(&core, &d, &s, 0.1);  // 0.1 as f16 is 0x1.998p-4
    for (int i = 0; i < 16; i++) {
        assert_true(sums[i] == fmaf((float)i, 0x1.998p-4f, 0.25f));
    }
}

TEST(elementwise__parts_copy_where_one_source_is_valid) {
    uint64_t random = test_seed();
    static buffer bytes[3];
    for (int repeat = 0; repeat < 200; repeat++) {
        ptoisa_dtype dtype = all_types[test_below(&random, 9)];
        ptoisa_core core;
        ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
        uint32_t cols = 1 + test_below(&random, 40), rows = 1 + test_below(&random, 6);
        ptoisa_tile d = random_tile(&bytes[0], dtype, rows, cols, &random);
        ptoisa_tile whole = random_tile(&bytes[1], dtype, rows, cols, &random);
        ptoisa_tile part = random_tile(&bytes[2], dtype, rows, cols, &random);
        part.valid_rows = test_below(&random, rows + 1);
        part.valid_cols = test_below(&random, cols + 1);
        bool is_swapped = test_below(&random, 2);
        ptoisa_tpartadd(&core, &d, is_swapped ? &part : &whole, is_swapped ? &whole : &part);
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < cols; c++) {
                double x = ptoisa_get(&whole, r, c), y = ptoisa_get(&part, r, c);
                bool is_both = r < part.valid_rows && c < part.valid_cols;
                double want = is_both ? reference(PTOISA_MAP_ADD, dtype, x, y, 0) : x;
                assert_true(is_right(PTOISA_MAP_ADD, dtype, ptoisa_get(&d, r, c), want));
            }
        }
    }
}

// -- instruction sets ----------------------------------------------------------------------------

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

TEST(vectors__give_the_same_bits_on_every_machine) {
    uint64_t random = test_seed();
    static float a[700], b[700], c[700], want[700], got[700];
    for (int repeat = 0; repeat < 20000; repeat++) {
        size_t n = 1 + test_below(&random, repeat % 100 ? 70 : 600);
        for (size_t i = 0; i < n; i++) {
            a[i] = random_f32(&random);
            b[i] = random_f32(&random);
            c[i] = random_f32(&random);
        }
        ptoisa_map map = {want, a, b, c, n, n, n, n, 1, n, test_below(&random, 2)};
        unsigned op = (unsigned)test_below(&random, sizeof f32_loops / sizeof f32_loops[0]);
        const f32_loop *loop = &f32_loops[op];
        loop->by_set[0](&map);
        map.d = got;
        for (int set = 0; set < 3; set++) {
            memset(got, GUARD, sizeof got);
            bool is_there = set == 1 ? ptoisa_has_avx2() : set == 2 && ptoisa_has_avx512();
            (is_there ? loop->by_set[set] : loop->best)(&map);
            for (size_t i = 0; i < n; i++) {
                if (memcmp(&want[i], &got[i], 4) != 0 && (want[i] == want[i] || got[i] == got[i])) {
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

TEST(vectors__portable_fma_is_exact) {
    uint64_t random = test_seed();
    for (int i = 0; i < 2000000; i++) {
        float a = ptoisa_f32_from_bits((uint32_t)test_random(&random));
        float b = ptoisa_f32_from_bits((uint32_t)test_random(&random));
        float c = ptoisa_f32_from_bits((uint32_t)test_random(&random));
        if (i % 2) {  // near cancellation and ties
            a = (float)(int32_t)test_below(&random, 1 << 24) * 0x1p-12f;
            b = (float)(int32_t)test_below(&random, 1 << 24) * 0x1p-140f;
            c = i % 4 == 1 ? -a * b : (float)(int32_t)test_below(&random, 64) * 0x1p-149f;
        }
        float want = fmaf(a, b, c), got = ptoisa_fma_c(a, b, c);
        if (memcmp(&want, &got, 4) != 0 && (want == want || got == got)) {
            fail_msg("fma(%a, %a, %a): %a, not %a", a, b, c, got, want);
        }
    }
}

// -- reductions ----------------------------------------------------------------------------------

static double combine(ptoisa_map_op op, ptoisa_dtype dtype, double x, double y) {
    return reference(op, ptoisa_dtype_is_float(dtype) ? PTOISA_F32 : dtype, x, y, 0);
}

// In 16 lanes, then by halves, as reduce.h says.
static double row_reference(ptoisa_map_op op, const ptoisa_tile *s, uint32_t r) {
    ptoisa_dtype dtype = (ptoisa_dtype)s->dtype;
    double lanes[16], start = op == PTOISA_MAP_MUL;
    for (int i = 0; i < 16; i++) {
        lanes[i] = start;
        if (op == PTOISA_MAP_MAX || op == PTOISA_MAP_MIN) {
            lanes[i] = ptoisa_get(s, r, 0);
        }
    }
    for (uint32_t c = 0; c < s->valid_cols; c++) {
        lanes[c % 16] = combine(op, dtype, lanes[c % 16], ptoisa_get(s, r, c));
    }
    for (int h = 8; h > 0; h /= 2) {
        for (int i = 0; i < h; i++) {
            lanes[i] = combine(op, dtype, lanes[i], lanes[i + h]);
        }
    }
    return in_type(dtype, lanes[0], ptoisa_dtype_is_float(dtype) ? 0 : (int64_t)lanes[0]);
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

TEST(reduce__rows_are_summed_in_the_order_that_is_promised) {
    uint64_t random = test_seed();
    static const ptoisa_map_op ops[] = {PTOISA_MAP_ADD, PTOISA_MAP_MUL, PTOISA_MAP_MAX,
                                        PTOISA_MAP_MIN};
    static buffer bytes[3];
    for (int repeat = 0; repeat < 1500; repeat++) {
        ptoisa_dtype dtype = all_types[test_below(&random, 9)];
        ptoisa_core core;
        ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
        uint32_t cols = some_cols[test_below(&random, 12)];
        uint32_t rows = repeat % 20 ? 1 + test_below(&random, 9) : 1 + test_below(&random, 70);
        rows = cols > 130 ? 1 + rows % 5 : rows % 50 + 1;
        ptoisa_tile s = random_tile(&bytes[1], dtype, rows, cols, &random), t = s;
        if (test_below(&random, 2)) {  // no NaN, no infinities
            for (uint32_t i = 0; i < s.rows * s.cols; i++) {
                double x = ptoisa_get_at(s.data, dtype, i);
                while (!(fabs(x) < 100) && ptoisa_dtype_is_float(dtype)) {
                    random_at(s.data, dtype, i, &random);
                    x = ptoisa_get_at(s.data, dtype, i);
                }
            }
        }
        ptoisa_tile d = ptoisa_tile_make(bytes[0].bytes, dtype, PTOISA_VEC, PTOISA_COL_MAJOR,
                                         (rows + 31) / 32 * 32, 1);
        if (test_below(&random, 2)) {
            d = ptoisa_tile_vec(bytes[0].bytes, dtype, rows, 32);
        }
        d = ptoisa_tile_valid(d, rows, 1);
        uint32_t which = test_below(&random, 4);
        switch (which) {
        case 0: ptoisa_trowsum(&core, &d, &s, &t); break;
        case 1: ptoisa_trowprod(&core, &d, &s, &t); break;
        case 2: ptoisa_trowmax(&core, &d, &s, &t); break;
        default: ptoisa_trowmin(&core, &d, &s, &t); break;
        }
        for (uint32_t r = 0; r < rows; r++) {
            double got = ptoisa_get(&d, r, 0), want = row_reference(ops[which], &s, r);
            if (!is_right(ops[which], dtype, got, want)) {
                fail_msg("row reduction %u of %u %s: %a, not %a", which, cols,
                         ptoisa_dtype_name(dtype), got, want);
            }
        }
#if PTOISA_X86
        for (int set = 0; set < 2 && dtype == PTOISA_F32 && ptoisa_has_avx512(); set++) {
            float want[256], got[256];
            const float *data = (const float *)s.data;
            ptoisa_rows_f32(ops[which], want, data, s.cols, rows, cols);
            if (set == 0) {
                (which == 0   ? ptoisa_rows_add_c
                 : which == 1 ? ptoisa_rows_mul_c
                 : which == 2 ? ptoisa_rows_max_c
                              : ptoisa_rows_min_c)(got, data, s.cols, rows, cols);
            } else {
                (which == 0   ? ptoisa_rows_add_avx2
                 : which == 1 ? ptoisa_rows_mul_avx2
                 : which == 2 ? ptoisa_rows_max_avx2
                              : ptoisa_rows_min_avx2)(got, data, s.cols, rows, cols);
            }
            for (uint32_t r = 0; r < rows; r++) {
                assert_true((want[r] != want[r] && got[r] != got[r]) ||
                            memcmp(&want[r], &got[r], 4) == 0);
            }
        }
#endif
        ptoisa_tile index = d;
        index.dtype = PTOISA_I32;
        index.rows = (rows + 31) / 32 * 32, index.cols = 1, index.layout = PTOISA_COL_MAJOR;
        (which % 2 ? ptoisa_trowargmax : ptoisa_trowargmin)(&core, &index, &s, &t);
        for (uint32_t r = 0; r < rows; r++) {
            uint32_t best = 0;
            double extreme = ptoisa_get(&s, r, 0);
            for (uint32_t c = 1; c < cols && extreme == extreme; c++) {
                double x = ptoisa_get(&s, r, c);
                if (x != x || (which % 2 ? x > extreme : x < extreme)) {
                    best = c, extreme = x;
                }
            }
            assert_int_equal(ptoisa_get(&index, r, 0), best);
        }
    }
}

TEST(reduce__columns_from_top_to_bottom) {
    uint64_t random = test_seed();
    static const ptoisa_map_op ops[] = {PTOISA_MAP_ADD, PTOISA_MAP_MUL, PTOISA_MAP_MAX,
                                        PTOISA_MAP_MIN};
    static buffer bytes[2], before;
    for (int repeat = 0; repeat < 1000; repeat++) {
        ptoisa_dtype dtype = all_types[test_below(&random, 9)];
        ptoisa_core core;
        ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
        uint32_t cols = some_cols[test_below(&random, 12)], rows = 1 + test_below(&random, 9);
        ptoisa_tile s = random_tile(&bytes[1], dtype, rows, cols, &random);
        ptoisa_tile d = random_tile(&bytes[0], dtype, 1, cols, &random);
        memcpy(&before, &bytes[0], sizeof before);
        uint32_t which = test_below(&random, 4);
        switch (which) {
        case 0: ptoisa_tcolsum(&core, &d, &s, &s, test_below(&random, 2)); break;
        case 1: ptoisa_tcolprod(&core, &d, &s); break;
        case 2: ptoisa_tcolmax(&core, &d, &s); break;
        default: ptoisa_tcolmin(&core, &d, &s); break;
        }
        for (uint32_t c = 0; c < cols; c++) {
            double want = ptoisa_get(&s, 0, c);
            for (uint32_t r = 1; r < rows; r++) {
                want = combine(ops[which], dtype, want, ptoisa_get(&s, r, c));
            }
            want = in_type(dtype, want, ptoisa_dtype_is_float(dtype) ? 0 : (int64_t)want);
            assert_true(is_right(ops[which], dtype, ptoisa_get(&d, 0, c), want));
        }
        size_t end = cols * ptoisa_dtype_size(dtype);
        assert_memory_equal(bytes[0].bytes + end, before.bytes + end, BYTES_MAX - end);
    }
}

TEST(reduce__nothing_gives_the_identity) {
    static buffer bytes[2];
    ptoisa_core core;
    ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
    for (size_t i = 0; i < 9; i++) {
        ptoisa_dtype dtype = all_types[i];
        bool is_float = ptoisa_dtype_is_float(dtype);
        double bits = 8.0 * ptoisa_dtype_size(dtype);
        double max = is_float ? INFINITY : dtype < PTOISA_U8 ? exp2(bits - 1) - 1 : exp2(bits) - 1;
        double min = is_float ? -INFINITY : dtype < PTOISA_U8 ? -exp2(bits - 1) : 0;
        ptoisa_tile s = ptoisa_tile_valid(ptoisa_tile_vec(bytes[1].bytes, dtype, 3, 32), 3, 0);
        ptoisa_tile d = ptoisa_tile_valid(
            ptoisa_tile_make(bytes[0].bytes, dtype, PTOISA_VEC, PTOISA_COL_MAJOR, 32, 1), 3, 1);
        ptoisa_trowsum(&core, &d, &s, &s);
        assert_true(ptoisa_get(&d, 2, 0) == 0);
        ptoisa_trowprod(&core, &d, &s, &s);
        assert_true(ptoisa_get(&d, 2, 0) == 1);
        ptoisa_trowmax(&core, &d, &s, &s);
        assert_true(ptoisa_get(&d, 2, 0) == min);
        ptoisa_trowmin(&core, &d, &s, &s);
        assert_true(ptoisa_get(&d, 2, 0) == max);
        ptoisa_tile none = ptoisa_tile_valid(s, 0, 5);
        ptoisa_tile row = ptoisa_tile_valid(ptoisa_tile_vec(bytes[0].bytes, dtype, 1, 32), 1, 5);
        ptoisa_tcolmax(&core, &row, &none);
        assert_true(ptoisa_get(&row, 0, 4) == min);
    }
}

TEST(expand__copies_rows_and_columns) {
    uint64_t random = test_seed();
    static buffer bytes[2], before;
    for (int repeat = 0; repeat < 500; repeat++) {
        ptoisa_dtype dtype = all_types[test_below(&random, 9)];
        ptoisa_core core;
        ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
        uint32_t cols = 1 + test_below(&random, 70), rows = 1 + test_below(&random, 80);
        ptoisa_tile d = random_tile(&bytes[0], dtype, rows, cols, &random);
        ptoisa_tile s = random_tile(&bytes[1], dtype, rows, cols, &random);
        bool is_row = test_below(&random, 2);
        memcpy(&before, &bytes[0], sizeof before);
        (is_row ? ptoisa_trowexpand : ptoisa_tcolexpand)(&core, &d, &s);
        size_t size = ptoisa_dtype_size(dtype);
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < cols; c++) {
                assert_memory_equal((uint8_t *)d.data + ptoisa_offset(&d, r, c) * size,
                                    (uint8_t *)s.data +
                                        ptoisa_offset(&s, is_row ? r : 0, is_row ? 0 : c) * size,
                                    size);
            }
            size_t end = ptoisa_offset(&d, r, 0) * size + cols * size;
            assert_memory_equal(bytes[0].bytes + end, before.bytes + end, (d.cols - cols) * size);
        }
    }
}

// -- faults --------------------------------------------------------------------------------------

static void count_fault(ptoisa_core *core, const char *text) {
    assert_non_null(text);
    ++*(int *)core->fault_user;
}

TEST(elementwise__faults_of_the_device_are_faults_here) {
    if (!PTOISA_CHECKED_DEFAULT) {
        skip();
    }
    static buffer bytes[3];
    int faults = 0;
    ptoisa_core core;
    ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
    core.on_fault = count_fault;
    core.fault_user = &faults;
    ptoisa_tile d = ptoisa_tile_vec(bytes[0].bytes, PTOISA_F32, 8, 16);
    ptoisa_tile s = ptoisa_tile_vec(bytes[1].bytes, PTOISA_F32, 8, 16);
    ptoisa_tile column =
        ptoisa_tile_make(bytes[2].bytes, PTOISA_F32, PTOISA_VEC, PTOISA_COL_MAJOR, 8, 1);
    ptoisa_tile i32 = s, few = ptoisa_tile_valid(s, 8, 15);
    i32.dtype = PTOISA_I32;
    ptoisa_trsqrt(&core, &d, &d);
    assert_int_equal(faults, 1);
    ptoisa_tands(&core, &i32, &i32, 1);
    assert_int_equal(faults, 2);
    ptoisa_tadd(&core, &d, &s, &i32);  // types differ
    assert_int_equal(faults, 3);
    ptoisa_tadd(&core, &d, &s, &few);  // not valid there
    assert_int_equal(faults, 4);
    ptoisa_tand(&core, &d, &s, &s);  // no integers
    assert_int_equal(faults, 5);
    ptoisa_trowsum(&core, &column, &s, &few);
    assert_int_equal(faults, 5);
    ptoisa_trowsum(&core, &d, &s, &s);  // 16 valid columns
    assert_int_equal(faults, 6);
    ptoisa_trowsum(&core, &column, &s, NULL);
    assert_int_equal(faults, 7);
    ptoisa_trowexpandadd(&core, &d, &s, &column);
    assert_int_equal(faults, 7);
    column.valid_rows = 7;
    ptoisa_trowexpandadd(&core, &d, &s, &column);
    assert_int_equal(faults, 8);
    ptoisa_trowexpandadd(&core, &d, &s, &s);  // 16 columns are no block of 8
    assert_int_equal(faults, 9);
    ptoisa_tpartadd(&core, &d, &few, &few);
    assert_int_equal(faults, 10);
    assert_int_equal(ptoisa_cycles(&core), 8 + 128);
    core.machine = ptoisa_machine_950pr();
    ptoisa_trsqrt(&core, &d, &d);
    assert_int_equal(faults, 10);
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
