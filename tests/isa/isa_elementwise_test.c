// Element-wise instructions, with a scalar, a row or a column as operand too: every one, on every type, on
// random shapes with garbage around what is valid, in place or not, against the reference. Special values
// are in isa_values.txt.

#include "isa_test.h"

enum { ROUNDS = 500, SIDE = 70 };

#define SET(name) PTOISA_SET(PTOISA_##name)
#define ALL       PTOISA_SET_MAP
#define FLOATS    PTOISA_SET_MAP_FLOAT
#define INTEGERS  PTOISA_SET_MAP_INT
#define SIGNED    (PTOISA_SET_MAP_FLOAT | PTOISA_SET_MAP_SIGNED)

typedef void (*binary_fn)(ptoisa_core *, const ptoisa_tile *, const ptoisa_tile *,
                          const ptoisa_tile *);
typedef void (*unary_fn)(ptoisa_core *, const ptoisa_tile *, const ptoisa_tile *);
typedef void (*scalar_fn)(ptoisa_core *, const ptoisa_tile *, const ptoisa_tile *, double);
typedef void (*ternary_fn)(ptoisa_core *, const ptoisa_tile *, const ptoisa_tile *,
                           const ptoisa_tile *, const ptoisa_tile *);

// A destination: one of the sources, or a tile of its own.
static test_tile *destination(test_bench *bench, ptoisa_dtype dtype, uint32_t rows, uint32_t cols,
                              test_tile *a, test_tile *b) {
    uint32_t which = test_in(bench, 0, 4);
    test_tile *d = which == 0 ? a : which == 1 ? b : test_vec(bench, dtype, rows, cols);
    d->role = TEST_WRITTEN;
    return d;
}

static test_tile *source(test_bench *bench, ptoisa_dtype dtype, uint32_t rows, uint32_t cols,
                         test_numbers numbers) {
    test_tile *t = test_vec(bench, dtype, rows, cols);
    test_fill(bench, t, numbers);
    return t;
}

static test_numbers some_numbers(test_bench *bench) {
    return test_chance(bench, 3) ? TEST_PLAIN : TEST_ANY;
}

static void shape(test_bench *bench, uint32_t *rows, uint32_t *cols) {
    *rows = test_size(bench, 12);
    *cols = test_size(bench, test_chance(bench, 20) ? 600 : SIDE);
    if (test_chance(bench, 40)) {
        *(test_chance(bench, 2) ? rows : cols) = 0;
    }
}

// -- the table ------------------------------------------------------------------------------------

typedef struct instruction {
    const char *name;
    ptoisa_op op;  // of the reference
    uint32_t dtypes;
    unary_fn unary;
    binary_fn binary, row, col;
    ternary_fn with_scratch;  // as binary
    scalar_fn scalar;
} instruction;

static void txors(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s, double x) {
    // TXORS takes a scratch tile; its own storage suffices here, as the test gives it none.
    static uint8_t scratch[1 << 16];
    ptoisa_tile t = *s;
    t.data = scratch + (32 - (uintptr_t)scratch % 32) % 32;
    assert_true(ptoisa_tile_bytes(&t) + 32 <= sizeof scratch);
    ptoisa_txors(core, d, s, x, &t);
}

static void tsdiv(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s, double x) {
    ptoisa_tsdiv(core, d, x, s);
}

#define EXPANDS(name)    .row = ptoisa_trowexpand##name, .col = ptoisa_tcolexpand##name
#define ARITHMETIC(name) .binary = ptoisa_t##name, .scalar = ptoisa_t##name##s, EXPANDS(name)
#define BOTH(name)       .binary = ptoisa_t##name, .scalar = ptoisa_t##name##s
#define SCRATCH(name)    .with_scratch = ptoisa_t##name, .scalar = ptoisa_t##name##s

static const instruction instructions[] = {
    {"TADD", PTOISA_TADD, ALL, ARITHMETIC(add)},
    {"TSUB", PTOISA_TSUB, ALL, ARITHMETIC(sub)},
    {"TMUL", PTOISA_TMUL, ALL, ARITHMETIC(mul)},
    {"TDIV", PTOISA_TDIV, ALL, ARITHMETIC(div)},
    {"TMAX", PTOISA_TMAX, ALL, ARITHMETIC(max)},
    {"TMIN", PTOISA_TMIN, ALL, ARITHMETIC(min)},
    {"TEXPANDEXPDIF", PTOISA_TROWEXPANDEXPDIF, FLOATS, EXPANDS(expdif)},
    {"TSDIV", PTOISA_TSDIV, ALL, .scalar = tsdiv},
    {"TAND", PTOISA_TAND, INTEGERS, BOTH(and)},
    {"TOR", PTOISA_TOR, INTEGERS, BOTH(or)},
    {"TXOR", PTOISA_TXOR, INTEGERS, .with_scratch = ptoisa_txor, .scalar = txors},
    {"TSHL", PTOISA_TSHL, INTEGERS, BOTH(shl)},
    {"TSHR", PTOISA_TSHR, INTEGERS, BOTH(shr)},
    {"TREM", PTOISA_TREM, ALL, SCRATCH(rem)},
    {"TFMOD", PTOISA_TFMOD, ALL, SCRATCH(fmod)},
    {"TPOW", PTOISA_TPOW, ALL, SCRATCH(pow)},
    {"TPRELU", PTOISA_TLRELU, FLOATS, .with_scratch = ptoisa_tprelu, .scalar = ptoisa_tlrelu},
    {"TSUBRELU", PTOISA_TSUBRELU, FLOATS, .binary = ptoisa_tsubrelu},
    {"TMULADDDST", PTOISA_TMULADDDST, FLOATS, .binary = ptoisa_tmuladddst},
    {"TAXPY", PTOISA_TAXPY, FLOATS, .scalar = ptoisa_taxpy},
    {"TFUSEDMULADD", PTOISA_TFUSEDMULADD, FLOATS, .binary = ptoisa_tfusedmuladd},
    {"TFUSEDMULADDRELU", PTOISA_TFUSEDMULADDRELU, FLOATS, .binary = ptoisa_tfusedmuladdrelu},
    {"TEXP", PTOISA_TEXP, FLOATS, .unary = ptoisa_texp},
    {"TLOG", PTOISA_TLOG, FLOATS, .unary = ptoisa_tlog},
    {"TSQRT", PTOISA_TSQRT, FLOATS, .unary = ptoisa_tsqrt},
    {"TRSQRT", PTOISA_TRSQRT, FLOATS, .unary = ptoisa_trsqrt},
    {"TRECIP", PTOISA_TRECIP, ALL, .unary = ptoisa_trecip},
    {"TABS", PTOISA_TABS, SIGNED, .unary = ptoisa_tabs},
    {"TNEG", PTOISA_TNEG, ALL, .unary = ptoisa_tneg},
    {"TRELU", PTOISA_TRELU, SIGNED, .unary = ptoisa_trelu},
    {"TNOT", PTOISA_TNOT, INTEGERS, .unary = ptoisa_tnot},
};

// -- one instruction in one form ------------------------------------------------------------------

typedef enum form { UNARY, BINARY, SCALAR, ROW, COL, FORMS } form;

static bool has_form(const instruction *it, form f) {
    switch (f) {
    case UNARY: return it->unary;
    case BINARY: return it->binary || it->with_scratch;
    case SCALAR: return it->scalar;
    case ROW: return it->row;
    default: return it->col;
    }
}

// Small exponents, for powers of integers.
static void fill_exponents(test_bench *bench, test_tile *t) {
    double low = ref_least((ptoisa_dtype)t->tile.dtype) < 0 ? -3 : 0;
    TEST_GRID(uint32_t, r, t->tile.valid_rows, c, t->tile.valid_cols) {
        test_put(t, r, c, low + test_in(bench, 0, 12));
    }
}

// One value for each row: a column, or rows of 32 bytes, of which the first element counts.
static test_tile *row_values(test_bench *bench, ptoisa_dtype dtype, uint32_t rows) {
    if (test_chance(bench, 2)) {
        return test_column(bench, dtype, rows);
    }
    uint32_t block = 32 / ref_size(dtype), valid = test_chance(bench, 2) ? 1 : block;
    return test_tile_make(bench, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR, rows ? rows : 1, block, rows,
                          valid);
}

// The second operand.
static test_tile *operand(test_bench *bench, const instruction *it, form f, ptoisa_dtype dtype,
                          uint32_t rows, uint32_t cols) {
    uint32_t block = 32 / ref_size(dtype);
    test_tile *t = f == SCALAR
                       ? test_tile_make(bench, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR, 1, block, 1, 1)
                   : f == ROW ? row_values(bench, dtype, rows)
                              : test_vec(bench, dtype, f == COL ? 1 : rows, cols);
    test_fill(bench, t, some_numbers(bench));
    if (it->op == PTOISA_TPOW && !ref_is_float(dtype) && test_chance(bench, 2)) {
        fill_exponents(bench, t);
    }
    return t;
}

static bool is_distinct(const instruction *it, form f) {
    return it->op == PTOISA_TRSQRT || it->op == PTOISA_TRECIP ||
           (f == SCALAR && (it->op == PTOISA_TAND || it->op == PTOISA_TOR));
}

static void run_form(test_bench *bench, const instruction *it, form f, const ptoisa_tile *d,
                     const ptoisa_tile *a, const test_tile *b, const ptoisa_tile *scratch) {
    bool is_optional = it->op == PTOISA_TFMOD || it->op == PTOISA_TPOW;
    switch (f) {
    case UNARY: it->unary(&bench->core, d, a); break;
    case SCALAR: it->scalar(&bench->core, d, a, ref_was(b, 0, 0)); break;
    case ROW: it->row(&bench->core, d, a, &b->tile); break;
    case COL: it->col(&bench->core, d, a, &b->tile); break;
    default:
        if (it->binary) {
            it->binary(&bench->core, d, a, &b->tile);
        } else {
            it->with_scratch(&bench->core, d, a, &b->tile,
                             is_optional && test_chance(bench, 2) ? NULL : scratch);
        }
    }
}

// Compares one element with the reference.
static void expect_of(const test_bench *bench, const test_tile *d, ptoisa_op op, uint32_t r,
                      uint32_t c, double a, double b, double z) {
    ptoisa_dtype dtype = (ptoisa_dtype)d->tile.dtype;
    switch (op) {
    case PTOISA_TEXP:
    case PTOISA_TLOG:
        test_expect(bench, d, r, c, ref_unary(op, dtype, a), dtype == PTOISA_F32 ? 2 : 1);
        break;
    case PTOISA_TROWEXPANDEXPDIF:
    case PTOISA_TPOW:
        test_expect(bench, d, r, c, ref_binary(op, dtype, a, b),
                    !ref_is_float(dtype)  ? 0
                    : dtype == PTOISA_F32 ? 2
                                          : 1);
        break;
    case PTOISA_TABS:
    case PTOISA_TNEG:
    case PTOISA_TNOT:
    case PTOISA_TSQRT:
    case PTOISA_TRSQRT:
    case PTOISA_TRECIP: test_expect(bench, d, r, c, ref_unary(op, dtype, a), 0); break;
    case PTOISA_TRELU: test_expect_value(bench, d, r, c, ref_unary(op, dtype, a)); break;
    case PTOISA_TMAX:
    case PTOISA_TMIN:
    case PTOISA_TREM:
    case PTOISA_TLRELU:
    case PTOISA_TSUBRELU:
    case PTOISA_TFUSEDMULADDRELU:
        test_expect_value(bench, d, r, c, ref_ternary(op, dtype, a, b, z));
        break;
    default: test_expect(bench, d, r, c, ref_ternary(op, dtype, a, b, z), 0); break;
    }
}

static void check_form(test_bench *bench, const instruction *it, form f, ptoisa_dtype dtype) {
    uint32_t rows, cols;
    test_begin(bench, test_chance(bench, 3) ? PTOISA_A5 : PTOISA_A2A3, it->name);
    shape(bench, &rows, &cols);
    // TAXPY takes halves into f32, too.
    bool is_wider = it->op == PTOISA_TAXPY && dtype == PTOISA_F32 && test_chance(bench, 2);
    ptoisa_dtype from = is_wider ? PTOISA_F16 : dtype;
    test_tile *a = source(bench, from, rows, cols, some_numbers(bench));
    test_tile *b = operand(bench, it, f, from, rows, cols);
    test_tile *d = is_distinct(it, f) || is_wider
                       ? test_vec(bench, dtype, rows, cols)
                       : destination(bench, dtype, rows, cols, a, f == BINARY ? b : a);
    test_tile *scratch = test_scratch(test_vec(bench, dtype, rows, cols));
    if (d != a && d != b) {
        test_fill(bench, d, TEST_ANY);
    }
    d->role = TEST_WRITTEN;
    test_run(bench);
    run_form(bench, it, f, &d->tile, &a->tile, b, &scratch->tile);
    TEST_GRID(uint32_t, r, rows, c, cols) {
        double y = ref_was(b, f == SCALAR || f == COL ? 0 : r, f == SCALAR || f == ROW ? 0 : c);
        expect_of(bench, d, it->op, r, c, ref_was(a, r, c), y, ref_was(d, r, c));
    }
    assert_int_equal(ptoisa_cycles(&bench->core), rows * cols);
    test_end(bench);
}

BENCH_TEST(elementwise__every_form_of_every_type_matches_the_reference) {
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
        const instruction *it = &instructions[i];
        for (form f = UNARY; f < FORMS; f = (form)(f + 1)) {
            for (uint32_t round = 0; has_form(it, f) && round < ROUNDS; round++) {
                check_form(bench, it, f, test_dtype(bench, it->dtypes));
            }
        }
    }
}

// -- parts ----------------------------------------------------------------------------------------

// One source is as big as the destination; the other covers a part, and elsewhere the first is
// copied.
ROUNDS_TEST(part__copies_where_one_source_ends, 4 * ROUNDS) {
    static const char *const names[4] = {"TPARTADD", "TPARTMUL", "TPARTMAX", "TPARTMIN"};
    static const ptoisa_op ops[4] = {PTOISA_TADD, PTOISA_TMUL, PTOISA_TMAX, PTOISA_TMIN};
    static const binary_fn runs[4] = {ptoisa_tpartadd, ptoisa_tpartmul, ptoisa_tpartmax,
                                      ptoisa_tpartmin};
    uint32_t which = round % 4;
    ptoisa_dtype dtype = test_dtype(bench, ALL);
    uint32_t rows = test_size(bench, 12), cols = test_size(bench, SIDE);
    uint32_t part_rows = test_in(bench, 0, rows), part_cols = test_in(bench, 0, cols);
    test_begin(bench, PTOISA_A2A3, names[which]);
    test_tile *full = source(bench, dtype, rows, cols, TEST_ANY);
    test_tile *part = source(bench, dtype, part_rows, part_cols, TEST_ANY);
    test_tile *d = test_chance(bench, 3) ? full : test_vec(bench, dtype, rows, cols);
    d->role = TEST_WRITTEN;
    bool is_first = test_chance(bench, 2);
    test_run(bench);
    runs[which](&bench->core, &d->tile, is_first ? &full->tile : &part->tile,
                is_first ? &part->tile : &full->tile);
    TEST_GRID(uint32_t, r, rows, c, cols) {
        if (r < part_rows && c < part_cols) {
            expect_of(bench, d, ops[which], r, c, ref_was(full, r, c), ref_was(part, r, c), 0);
        } else {
            test_expect(bench, d, r, c, ref_was(full, r, c), 0);
        }
    }
}

// -- functions that are approximated --------------------------------------------------------------

// Functions that are approximated, over their whole range: where exponents carry, results go
// subnormal or overflow, and logarithms cancel.
BENCH_TEST(unary__is_accurate_over_the_whole_range) {
    static const double low[4] = {-104, -149, -149, -149}, high[4] = {89, 128, 128, 128};
    static const char *const names[4] = {"TEXP", "TLOG", "TRSQRT", "TRECIP"};
    static const ptoisa_op ops[4] = {PTOISA_TEXP, PTOISA_TLOG, PTOISA_TRSQRT, PTOISA_TRECIP};
    static const unary_fn runs[4] = {ptoisa_texp, ptoisa_tlog, ptoisa_trsqrt, ptoisa_trecip};
    TEST_GRID(uint32_t, which, 4, round, 8) {
        test_begin(bench, PTOISA_A2A3, names[which]);
        test_tile *a = test_vec(bench, PTOISA_F32, 4, 1000);
        test_tile *d = test_written(test_vec(bench, PTOISA_F32, 4, 1000));
        for (uint32_t i = 0; i < 4000; i++) {
            double unit = (double)(test_random(bench) >> 11) * 0x1p-53;
            double x = low[which] + (high[which] - low[which]) * unit;
            x = which == 0 ? x : i % 4 == 0 ? 1 + (unit - 0.5) * 0.01 : exp2(x);
            test_put(a, i / 1000, i % 1000, ref_round(PTOISA_F32, x));
        }
        test_run(bench);
        runs[which](&bench->core, &d->tile, &a->tile);
        for (uint32_t i = 0; i < 4000; i++) {
            double x = ref_was(a, i / 1000, i % 1000);
            test_expect(bench, d, i / 1000, i % 1000, ref_unary(ops[which], PTOISA_F32, x), 3);
        }
        test_end(bench);
    }
}

// -- three operands -------------------------------------------------------------------------------

ROUNDS_TEST(ternary__adds_and_subtracts, 4 * ROUNDS) {
    static const char *const names[4] = {"TADDC", "TSUBC", "TADDSC", "TSUBSC"};
    uint32_t which = round % 4, rows, cols;
    ptoisa_dtype dtype = test_dtype(bench, ALL);
    test_begin(bench, PTOISA_A2A3, names[which]);
    shape(bench, &rows, &cols);
    test_tile *a = source(bench, dtype, rows, cols, some_numbers(bench));
    test_tile *b = source(bench, dtype, rows, cols, some_numbers(bench));
    test_tile *e = source(bench, dtype, rows, cols, some_numbers(bench));
    test_tile *d = destination(bench, dtype, rows, cols, a, e);
    double x = test_number(bench, dtype, some_numbers(bench));
    test_run(bench);
    const ptoisa_tile *dt = &d->tile, *at = &a->tile, *bt = &b->tile, *et = &e->tile;
    switch (which) {
    case 0: ptoisa_taddc(&bench->core, dt, at, bt, et); break;
    case 1: ptoisa_tsubc(&bench->core, dt, at, bt, et); break;
    case 2: ptoisa_taddsc(&bench->core, dt, at, x, et); break;
    default: ptoisa_tsubsc(&bench->core, dt, at, x, et); break;
    }
    TEST_GRID(uint32_t, r, rows, c, cols) {
        expect_of(bench, d, which % 2 ? PTOISA_TSUBC : PTOISA_TADDC, r, c, ref_was(a, r, c),
                  which < 2 ? ref_was(b, r, c) : x, ref_was(e, r, c));
    }
}
