// A batch of matrix products c = a b in f16, each with sizes of its own, as a workload with its data
// and a check: what batched_gemm measures, and emit_gemm takes to an NPU.
//
//      a  [sum of m][GEMM_DEPTH]           the rows of all entries, one entry behind the other
//      b  [entry][GEMM_DEPTH][GEMM_COLS]
//      c  [sum of m][GEMM_COLS]            f32
//
// Entry e uses m[e] rows, n[e] columns and k[e] of the inner size. A task makes a tile of c: it
// walks over k[e] in a loop and adds up in the accumulators. The tiles of an entry are rows of two
// ragged axes, with the lengths m[e] / tile and n[e] / tile, rounded up: an entry without rows or
// columns has no task. The views say how much of an edge is valid, so no task reads or writes
// beyond its entry.

#ifndef GEMM_H
#define GEMM_H

#include "setup.h"

enum {
    GEMM_ENTRIES = 8,
    GEMM_TILE = 64,
    GEMM_ROWS = 512,  // of all entries, at most
    GEMM_COLS = 200,
    GEMM_DEPTH = 300
};

#define GEMM_ALLOWED 1e-6  // f16 products are exact in f32; their sum is not

typedef struct gemm_size {
    int32_t m, n, k;  // k is at least 1
} gemm_size;

typedef struct gemm {
    setup_matrix *a, *b, *c;
    ptowsp_kernel kernel;
    int32_t start[GEMM_ENTRIES], m[GEMM_ENTRIES], n[GEMM_ENTRIES], k[GEMM_ENTRIES];
    int32_t row_tiles[GEMM_ENTRIES], col_tiles[GEMM_ENTRIES];
    double *wanted;  // of c
    double error;    // the largest of all runs
} gemm;

// Two batches: entries that differ in m alone, as experts do, and in all sizes.
extern const gemm_size gemm_fixed[GEMM_ENTRIES], gemm_ragged[GEMM_ENTRIES];

// Declares the workload "gemm" in the module of a setup, and sets what it binds, prepares and
// checks.
void gemm_make(gemm *g, setup *s);
void gemm_destroy(gemm *g);

// Makes data for a batch, and what has to come out.
void gemm_fill(gemm *g, setup *s, const gemm_size *sizes);

#endif
