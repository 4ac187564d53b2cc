// Matrix products beside OpenBLAS, on one thread. The shim's operands are in the boxes that its
// matrix unit takes, which OpenBLAS packs anew for each product.

#include "bench.h"

#include <stdio.h>

#if !defined(BENCH_HAS_BLAS)
void bench_blas(void) {
    printf("matmul beside OpenBLAS: skipped, as there is no libopenblas-dev\n");
}
#else

#include "ptoisa_shim.h"

#include <cblas-openblas.h>
#include <math.h>
#include <stdlib.h>

enum { BLOCK = 128, BLOCK_AREA = BLOCK * BLOCK };

// C = A B, of count x count blocks, each in boxes; and row by row for OpenBLAS.
typedef struct blas_bench {
    ptoisa_core core;
    int count, size;
    float *left, *right, *out;  // blocks, row by row of these
    float *plain_left, *plain_right, *plain_out;
} blas_bench;

static float *block_at(const blas_bench *b, float *blocks, int row, int col) {
    return blocks + (size_t)(row * b->count + col) * BLOCK_AREA;
}

static ptoisa_tile left_tile(float *at) {
    return ptoisa_tile_make(at, PTOISA_F32, PTOISA_LEFT, PTOISA_ZZ, BLOCK, BLOCK);
}

static ptoisa_tile right_tile(float *at) {
    return ptoisa_tile_make(at, PTOISA_F32, PTOISA_RIGHT, PTOISA_ZN, BLOCK, BLOCK);
}

static ptoisa_tile out_tile(float *at) {
    return ptoisa_tile_make(at, PTOISA_F32, PTOISA_ACC, PTOISA_NZ, BLOCK, BLOCK);
}

static void run_blocks(void *user) {
    blas_bench *b = (blas_bench *)user;
    for (int r = 0; r < b->count; r++) {
        for (int c = 0; c < b->count; c++) {
            ptoisa_tile out = out_tile(block_at(b, b->out, r, c));
            for (int k = 0; k < b->count; k++) {
                ptoisa_tile left = left_tile(block_at(b, b->left, r, k));
                ptoisa_tile right = right_tile(block_at(b, b->right, k, c));
                if (k == 0) {
                    ptoisa_tmatmul(&b->core, &out, &left, &right);
                } else {
                    ptoisa_tmatmul_acc(&b->core, &out, &out, &left, &right);
                }
            }
        }
    }
    bench_keep(b->out);
}

static void run_sgemm(void *user) {
    blas_bench *b = (blas_bench *)user;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, b->size, b->size, b->size, 1.0f,
                b->plain_left, b->size, b->plain_right, b->size, 0.0f, b->plain_out, b->size);
    bench_keep(b->plain_out);
}

static void fill(blas_bench *b) {
    for (int r = 0; r < b->size; r++) {
        for (int c = 0; c < b->size; c++) {
            uint32_t i = (uint32_t)(r * b->size + c);
            float left = (float)((int)(i * 37 % 64) - 32) / 16.0f;
            float right = (float)((int)(i * 29 % 128) - 64) / 32.0f;
            float *left_at = block_at(b, b->left, r / BLOCK, c / BLOCK);
            float *right_at = block_at(b, b->right, r / BLOCK, c / BLOCK);
            ptoisa_tile left_in = left_tile(left_at), right_in = right_tile(right_at);
            b->plain_left[i] = left;
            b->plain_right[i] = right;
            left_at[ptoisa_offset(&left_in, (uint32_t)r % BLOCK, (uint32_t)c % BLOCK)] = left;
            right_at[ptoisa_offset(&right_in, (uint32_t)r % BLOCK, (uint32_t)c % BLOCK)] = right;
        }
    }
}

// Both have the same product. Its sums are exact in f32 up to some rounding of long ones.
static void compare(blas_bench *b) {
    run_blocks(b);
    run_sgemm(b);
    for (int r = 0; r < b->size; r++) {
        for (int c = 0; c < b->size; c++) {
            ptoisa_tile out = out_tile(block_at(b, b->out, r / BLOCK, c / BLOCK));
            double got = ptoisa_get(&out, (uint32_t)r % BLOCK, (uint32_t)c % BLOCK);
            double wanted = (double)b->plain_out[r * b->size + c];
            require(fabs(got - wanted) <= 1e-3 * fmax(fabs(wanted), 1.0),
                    "the products of matrices differ");
        }
    }
}

static void bench_product(int count, uint32_t repeat, const char *name) {
    blas_bench b;
    b.count = count;
    b.size = count * BLOCK;
    size_t bytes = (size_t)b.size * (size_t)b.size * sizeof(float);
    ptoisa_core_init(&b.core, PTOISA_MODEL_UNIT, NULL);
    b.left = (float *)bench_allocate(bytes);
    b.right = (float *)bench_allocate(bytes);
    b.out = (float *)bench_allocate(bytes);
    b.plain_left = (float *)bench_allocate(bytes);
    b.plain_right = (float *)bench_allocate(bytes);
    b.plain_out = (float *)bench_allocate(bytes);
    fill(&b);
    compare(&b);
    bench_times t = measure(run_blocks, run_sgemm, &b, repeat, 21);
    double operations = 2.0 * b.size * b.size * b.size;
    bench_row row = {name,
                     "GFLOP/s",
                     operations / t.own_ns,
                     "OpenBLAS, one thread",
                     operations / t.other_ns,
                     1.0 / t.ratio,
                     "",
                     false,
                     false};
    report(row);
    free(b.left);
    free(b.right);
    free(b.out);
    free(b.plain_left);
    free(b.plain_right);
    free(b.plain_out);
}

void bench_blas(void) {
    openblas_set_num_threads(1);
    bench_product(1, 50, "matmul 128^3 f32, operands in boxes");
    bench_product(8, 1, "matmul 1,024^3 f32, operands in boxes");
}

#endif
