// The hot instructions of the shim, each in turns with plain loops that do the same, compiled with
// the same flags, and with the bare limits of limit.c. Before one is timed its result is compared
// with that of the loops.

#include "bench.h"

#include "limit.h"

#include "ptoisa_shim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 128 * 128 };

// Operands of one instruction: tiles over arrays, and the same arrays for the loops, which are
// row-major. The tiles' own layouts do not matter to the loops: each side has its result.
typedef struct insn_bench {
    limit_arrays limit;
    ptoisa_core core;
    ptoisa_tile d, a, b, tmp;
    ptoisa_global window;
    uint32_t rows, cols;
    PWSP_ALIGNAS(64) float result[ELEMENTS];
    PWSP_ALIGNAS(64) float left[ELEMENTS];
    PWSP_ALIGNAS(64) float right[ELEMENTS];
    PWSP_ALIGNAS(64) float scratch[ELEMENTS];
    PWSP_ALIGNAS(64) uint16_t left_half[ELEMENTS];
    PWSP_ALIGNAS(64) uint16_t right_half[ELEMENTS];
    PWSP_ALIGNAS(64) int8_t left_byte[ELEMENTS];
    PWSP_ALIGNAS(64) int8_t right_byte[ELEMENTS];
    PWSP_ALIGNAS(64) float limit_out[ELEMENTS];
    float plain_left[ELEMENTS], plain_right[ELEMENTS], plain_result[ELEMENTS];
} insn_bench;

static insn_bench *begin(uint32_t rows, uint32_t cols) {
    insn_bench *b = (insn_bench *)aligned_alloc(64, (sizeof(insn_bench) + 63) / 64 * 64);
    require(b != NULL, "no memory");
    memset(b, 0, sizeof *b);
    ptoisa_core_init(&b->core, PTOISA_MODEL_UNIT, NULL);
    b->rows = rows;
    b->cols = cols;
    const limit_arrays limit = {b->left, b->right, b->limit_out, rows * cols};
    b->limit = limit;
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        b->plain_left[i] = (float)((int)(i * 37 % 64) - 32) / 16.0f;
        b->plain_right[i] = (float)((int)(i * 29 % 128) - 64) / 32.0f;
    }
    memcpy(b->left, b->plain_left, sizeof b->left);
    memcpy(b->right, b->plain_right, sizeof b->right);
    b->d = ptoisa_tile_vec(b->result, PTOISA_F32, rows, cols);
    b->a = ptoisa_tile_vec(b->left, PTOISA_F32, rows, cols);
    b->b = ptoisa_tile_vec(b->right, PTOISA_F32, rows, cols);
    b->tmp = ptoisa_tile_vec(b->scratch, PTOISA_F32, rows, cols);
    return b;
}

static void run_matmul(void *user) {
    insn_bench *b = (insn_bench *)user;
    ptoisa_tmatmul(&b->core, &b->d, &b->a, &b->b);
    bench_keep(b->result);
}

static void run_matmul_plain(void *user) {
    insn_bench *b = (insn_bench *)user;
    for (uint32_t r = 0; r < 128; r++) {
        for (uint32_t c = 0; c < 128; c++) {
            float sum = 0.0f;
            for (uint32_t i = 0; i < 128; i++) {
                sum += b->plain_left[r * 128 + i] * b->plain_right[i * 128 + c];
            }
            b->plain_result[r * 128 + c] = sum;
        }
    }
    bench_keep(b->plain_result);
}

// The loops have their operands as f32, whose sums of small integers are exact.
static insn_bench *begin_matmul(ptoisa_dtype dtype) {
    insn_bench *b = begin(128, 128);
    const bool is_int = dtype == PTOISA_I8;
    void *left = dtype == PTOISA_F32 ? (void *)b->left
                 : is_int            ? (void *)b->left_byte
                                     : b->left_half;
    void *right = dtype == PTOISA_F32 ? (void *)b->right
                  : is_int            ? (void *)b->right_byte
                                      : b->right_half;
    b->a = ptoisa_tile_make(left, dtype, PTOISA_LEFT, PTOISA_ZZ, 128, 128);
    b->b = ptoisa_tile_make(right, dtype, PTOISA_RIGHT, PTOISA_ZN, 128, 128);
    b->d = ptoisa_tile_make(b->result, is_int ? PTOISA_I32 : PTOISA_F32, PTOISA_ACC, PTOISA_NZ, 128,
                            128);
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        uint64_t at_left = ptoisa_offset(&b->a, i / 128, i % 128);
        uint64_t at_right = ptoisa_offset(&b->b, i / 128, i % 128);
        if (is_int) {
            b->plain_left[i] *= 16.0f;
            b->plain_right[i] *= 32.0f;
        }
        b->left[at_left] = b->plain_left[i];
        b->right[at_right] = b->plain_right[i];
        b->left_half[at_left] =
            (dtype == PTOISA_F16 ? ptowsp_f16_from_f32 : ptowsp_bf16_from_f32)(b->plain_left[i]);
        b->right_half[at_right] =
            (dtype == PTOISA_F16 ? ptowsp_f16_from_f32 : ptowsp_bf16_from_f32)(b->plain_right[i]);
        b->left_byte[at_left] = (int8_t)b->plain_left[i];
        b->right_byte[at_right] = (int8_t)b->plain_right[i];
    }
    return b;
}

static insn_bench *begin_matmul_f32(void) {
    return begin_matmul(PTOISA_F32);
}

static insn_bench *begin_matmul_f16(void) {
    return begin_matmul(PTOISA_F16);
}

static insn_bench *begin_matmul_bf16(void) {
    return begin_matmul(PTOISA_BF16);
}

static insn_bench *begin_matmul_i8(void) {
    return begin_matmul(PTOISA_I8);
}

static insn_bench *begin_square(void) {
    return begin(64, 64);
}

static void run_exp(void *user) {
    insn_bench *b = (insn_bench *)user;
    ptoisa_texp(&b->core, &b->d, &b->a);
    bench_keep(b->result);
}

static void run_exp_plain(void *user) {
    insn_bench *b = (insn_bench *)user;
    for (uint32_t i = 0; i < b->rows * b->cols; i++) {
        b->plain_result[i] = expf(b->plain_left[i]);
    }
    bench_keep(b->plain_result);
}

static void run_add(void *user) {
    insn_bench *b = (insn_bench *)user;
    ptoisa_tadd(&b->core, &b->d, &b->a, &b->b);
    bench_keep(b->result);
}

static void run_add_plain(void *user) {
    insn_bench *b = (insn_bench *)user;
    for (uint32_t i = 0; i < b->rows * b->cols; i++) {
        b->plain_result[i] = b->plain_left[i] + b->plain_right[i];
    }
    bench_keep(b->plain_result);
}

static void run_rowsum(void *user) {
    insn_bench *b = (insn_bench *)user;
    ptoisa_trowsum(&b->core, &b->d, &b->a, &b->tmp);
    bench_keep(b->result);
}

static void run_rowsum_plain(void *user) {
    insn_bench *b = (insn_bench *)user;
    for (uint32_t r = 0; r < b->rows; r++) {
        float sum = 0.0f;
        for (uint32_t c = 0; c < b->cols; c++) {
            sum += b->plain_left[r * b->cols + c];
        }
        b->plain_result[r] = sum;
    }
    bench_keep(b->plain_result);
}

static void run_rowmax(void *user) {
    insn_bench *b = (insn_bench *)user;
    ptoisa_trowmax(&b->core, &b->d, &b->a, &b->tmp);
    bench_keep(b->result);
}

static void run_rowmax_plain(void *user) {
    insn_bench *b = (insn_bench *)user;
    for (uint32_t r = 0; r < b->rows; r++) {
        float most = b->plain_left[r * b->cols];
        for (uint32_t c = 1; c < b->cols; c++) {
            float x = b->plain_left[r * b->cols + c];
            most = x > most ? x : most;
        }
        b->plain_result[r] = most;
    }
    bench_keep(b->plain_result);
}

// rows x 1, as instructions want it: column-major.
static insn_bench *begin_reduction(void) {
    insn_bench *b = begin(64, 128);
    b->d = ptoisa_tile_make(b->result, PTOISA_F32, PTOISA_VEC, PTOISA_COL_MAJOR, 64, 1);
    return b;
}

// To boxes of 16 rows x 8 columns.
static insn_bench *begin_load(void) {
    insn_bench *b = begin(128, 128);
    b->d = ptoisa_tile_make(b->result, PTOISA_F32, PTOISA_MAT, PTOISA_NZ, 128, 128);
    b->window = ptoisa_global_make(b->plain_left, PTOISA_F32, 128, 128, 128, 1);
    return b;
}

static void run_load(void *user) {
    insn_bench *b = (insn_bench *)user;
    ptoisa_tload(&b->core, &b->d, &b->window);
    bench_keep(b->result);
}

static void run_load_plain(void *user) {
    insn_bench *b = (insn_bench *)user;
    for (uint32_t r = 0; r < 128; r++) {
        for (uint32_t c = 0; c < 128; c++) {
            b->scratch[c / 8 * 128 * 8 + r * 8 + c % 8] = b->plain_left[r * 128 + c];
        }
    }
    bench_keep(b->scratch);
}

// The least that moving them is.
static void run_load_bare(void *user) {
    insn_bench *b = (insn_bench *)user;
    memcpy(b->limit_out, b->plain_left, sizeof b->limit_out);
    bench_keep(b->limit_out);
}

// -- rows -----------------------------------------------------------------------------------------

enum { LIMIT_COPY = -1 };

typedef struct insn_case {
    const char *name, *unit;
    double work;
    insn_bench *(*begin)(void);
    bench_fn own, plain;
    const char *limit_name;
    int limit;    // a limit_kind, or LIMIT_COPY
    double most;  // times the limit
    int moved;  // what is timed instead of plain loops, where there is such a loop: a limit_kind, or 0
} insn_case;

#define MATMUL(name, begin, limit_name, limit, moved)                                              \
    {                                                                                              \
        "matmul 128x128x128 " name, "GOP/s", 2.0 * 128 * 128 * 128, begin, run_matmul,             \
            run_matmul_plain, limit_name, limit, 1.0 / 0.95, moved                                 \
    }
#define TIMED(name, begin, own, plain, limit_name, limit)                                          \
    { name, "us", 1.0, begin, own, plain, limit_name, limit, 1.3, 0 }
#define MOVED(name, vectors, rows, begin, own, plain, limit_name, limit)                           \
    { name, "GB/s", (vectors)*4.0 * (rows) * (rows), begin, own, plain, limit_name, limit, 1.3, 0 }

// clang-format off
static const insn_case insn_cases[] = {
    MATMUL("f32", begin_matmul_f32, "bare multiply-adds, f32", LIMIT_PRODUCTS_F32, 0),
    MATMUL("f16", begin_matmul_f16, "bare multiply-adds, f32", LIMIT_PRODUCTS_F32, LIMIT_MOVED_F16),
    MATMUL("bf16", begin_matmul_bf16, "bare multiply-adds, bf16", LIMIT_PRODUCTS_BF16, LIMIT_MOVED_BF16),
    MATMUL("i8", begin_matmul_i8, "bare multiply-adds, i8", LIMIT_PRODUCTS_I8, LIMIT_MOVED_I8),
    TIMED("exp 64x64 f32", begin_square, run_exp, run_exp_plain, "a bare loop", LIMIT_EXP),
    TIMED("row sum 64x128 f32", begin_reduction, run_rowsum, run_rowsum_plain, "bare sums", LIMIT_ROWS),
    TIMED("row max 64x128 f32", begin_reduction, run_rowmax, run_rowmax_plain, "bare sums", LIMIT_ROWS),
    MOVED("add 64x64 f32", 3, 64, begin_square, run_add, run_add_plain, "a bare loop", LIMIT_ADD),
    MOVED("TLOAD 128x128 f32 to boxes in L1", 1, 128, begin_load, run_load, run_load_plain, "memcpy", LIMIT_COPY),
};
// clang-format on

// Runs both once, and requires the same results.
static void compare(insn_bench *b, bench_fn own, bench_fn other, const char *name) {
    own(b);
    other(b);
    const float *wanted = own == run_load ? b->plain_left : b->plain_result;  // both row-major
    for (uint32_t r = 0; r < b->d.valid_rows; r++) {
        for (uint32_t c = 0; c < b->d.valid_cols; c++) {
            double expected = (double)wanted[r * b->d.valid_cols + c];
            double got = ptoisa_get(&b->d, r, c);
            require(fabs(got - expected) <= 1e-4 * fmax(fabs(expected), 1.0), name);
        }
    }
}

void bench_insns(void) {
    for (size_t i = 0; i < sizeof insn_cases / sizeof *insn_cases; i++) {
        const insn_case *insn = &insn_cases[i];
        const bool is_copy = insn->limit == LIMIT_COPY;
        bench_case of = {insn->name,       insn->unit,    insn->work,    20,
                         ROUNDS,           insn->own,     "plain loops", insn->plain,
                         insn->limit_name, run_load_bare, BUDGET_LIMIT,  insn->most};
        of.limit = is_copy ? run_load_bare : limit_of((limit_kind)insn->limit);
        of.budget = of.limit ? BUDGET_LIMIT : BUDGET_NONE;
        const bench_fn moved = insn->moved ? limit_of((limit_kind)insn->moved) : NULL;
        if (moved) {
            of.other_name = "bare multiply-adds and moves";
            of.other = moved;
        }
        insn_bench *b = insn->begin();
        compare(b, insn->own, insn->plain, insn->name);
        bench_measure(&of, b);
        free(b);
    }
}
