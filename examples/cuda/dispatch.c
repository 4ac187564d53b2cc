// Runs chains of matrix operations through the dispatcher of chain.h, several times each, compares them with
// double precision, and prints where they ran and why. The environment says how:
//
//      PTOWSP_CUDA_DISABLE=1            do not look for a device
//      PTOWSP_CUDA_FORCE_FALLBACK=1     look for one, and do not use it
//      PTOWSP_CUDA_FORCE_ERROR=1        fail before, at "capture" or at "launch"
//      PTOWSP_CUDA_SIMULATE=1           a device in host memory
//      PTOWSP_CUDA_REPLAY=0             no captured graphs
//      PTOWSP_CUDA_STATIC_RIGHT=1       right operands never change: upload each once
//
// Exits with 1 if a result is wrong.

#include "chain.h"

#include "ptowsp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 96, DEPTH = 200, COLS = 130, TURNS = 3 };

#define ALLOWED 1e-6  // relative to the largest number of the output

typedef struct matrices {
    float left[ROWS * DEPTH], right[DEPTH * COLS], matrix[ROWS * COLS], row[COLS], number[1];
    float out[ROWS * COLS], square[COLS * COLS];
} matrices;

static void fill(float *x, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
}

// The largest error against the chain in double precision, operation by operation.
static double error_of(const chain_op *ops, uint32_t op_count) {
    const uint32_t rows = ops[0].rows;
    uint32_t cols = ops[0].cols;
    double *now = (double *)calloc((size_t)ROWS * DEPTH, sizeof *now);
    double worst = 0.0, most = 0.0;
    double *next = (double *)calloc((size_t)ROWS * DEPTH, sizeof *next);
    for (size_t i = 0; i < (size_t)rows * cols; i++) {
        now[i] = (double)ops[0].data[i];
    }
    for (uint32_t at = 1; at < op_count; at++) {
        const chain_op *op = &ops[at];
        const uint32_t before = cols;
        cols = op->kind == CHAIN_MATMUL ? op->cols : cols;
        for (size_t i = 0; i < (size_t)rows * cols; i++) {
            const size_t r = i / cols, c = i % cols;
            double x = op->kind == CHAIN_MATMUL ? 0.0 : now[i];
            for (uint32_t d = 0; op->kind == CHAIN_MATMUL && d < before; d++) {
                x += now[r * before + d] * (double)op->data[d * cols + c];
            }
            if (op->kind == CHAIN_ADD) {
                x += (double)op->data[(op->rows == 1 ? 0 : r * cols) + (op->cols == 1 ? 0 : c)];
            }
            next[i] = op->kind == CHAIN_RELU && x < 0.0 ? 0.0 : x;
            if (op->kind == CHAIN_OUTPUT) {
                const double error = fabs(x - (double)op->data[i]);
                worst = error <= worst ? worst : error;  // NaN counts
                most = fmax(most, fabs(x));
            }
        }
        double *swap = now;
        now = next;
        next = swap;
    }
    free(now);
    free(next);
    return worst / most;
}

static bool demonstrate(chain_dispatcher *dispatcher, const char *title, const chain_op *ops,
                        uint32_t op_count) {
    bool is_good = true;
    for (int turn = 0; turn < TURNS; turn++) {
        chain_reason reason;
        const char *error;
        const uint64_t begin = ptowsp_clock_ns();
        if (!chain_run(dispatcher, ops, op_count, &reason, &error)) {
            printf("%-28s failed: %s\n", title, error);
            return false;
        }
        const double us = (double)(ptowsp_clock_ns() - begin) / 1000.0,
                     off = error_of(ops, op_count);
        is_good &= off <= ALLOWED;
        printf("%-28s %9.1f us  error %.0e%s  %s\n", title, us, off,
               off <= ALLOWED ? "" : ": WRONG", chain_reason_texts[reason]);
    }
    return is_good;
}

int main(void) {
    matrices *m = (matrices *)calloc(1, sizeof *m);
    const chain_settings settings = chain_settings_read();
    chain_dispatcher *dispatcher = m ? chain_create(&settings) : NULL;
    if (!dispatcher) {
        fprintf(stderr, "dispatch: no memory\n");
        return 2;
    }
    fill(m->left, ROWS * DEPTH, 1);
    fill(m->right, DEPTH * COLS, 2);
    fill(m->matrix, ROWS * COLS, 3);
    fill(m->row, COLS, 4);
    fill(m->number, 1, 5);
    fill(m->square, COLS * COLS, 6);
    const chain_op input = {CHAIN_INPUT, m->left, ROWS, DEPTH},
                   matmul = {CHAIN_MATMUL, m->right, DEPTH, COLS};
    const chain_op matrix = {CHAIN_ADD, m->matrix, ROWS, COLS}, row = {CHAIN_ADD, m->row, 1, COLS};
    const chain_op number = {CHAIN_ADD, m->number, 1, 1}, relu = {CHAIN_RELU, NULL, 0, 0};
    const chain_op output = {CHAIN_OUTPUT, m->out, ROWS, COLS},
                   square = {CHAIN_MATMUL, m->square, COLS, COLS};
    printf("device: %s\n", chain_device_name(dispatcher));
    bool is_good = true;
    is_good &= demonstrate(dispatcher, "matmul", (const chain_op[]){input, matmul, output}, 3);
    is_good &= demonstrate(dispatcher, "matmul, matrix",
                           (const chain_op[]){input, matmul, matrix, output}, 4);
    is_good &= demonstrate(dispatcher, "matmul, row, relu",
                           (const chain_op[]){input, matmul, row, relu, output}, 5);
    is_good &= demonstrate(dispatcher, "matmul, number, relu",
                           (const chain_op[]){input, matmul, number, relu, output}, 5);
    is_good &= demonstrate(dispatcher, "two products",
                           (const chain_op[]){input, matmul, relu, square, row, output}, 6);
    const chain_counters *count = chain_count(dispatcher);
    printf("%llu runs, %llu on the device: %llu captures, %llu replays, %llu uploads of right "
           "operands\n",
           (unsigned long long)count->runs, (unsigned long long)count->on_device,
           (unsigned long long)count->captures, (unsigned long long)count->replays,
           (unsigned long long)count->uploads);
    chain_destroy(dispatcher);
    free(m);
    return is_good ? 0 : 1;
}
