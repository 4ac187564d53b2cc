// A block of a Llama-like transformer by tile kernels, as a workload with its data and a check:
// what llama_block measures, and emit_llama takes to an NPU. On tiles of 32 tokens:
//
//      n = rmsnorm(x)                  q, k, v = n wq, n wk, n wv          for each tile
//      a = softmax(q k' / 4 + mask) v                                      for each tile and head
//      h = x + a wo                    n2 = rmsnorm(h)                     for each tile
//      y = h + (silu(n2 wg) * (n2 wu)) wd                                  for each tile
//
// The workload says nothing of order: all tasks stand in a parallel scope. What waits for what
// follows from the tiles that tasks share: the attention of a tile waits for its queries, and for
// the keys and values of all tiles, which come from other iterations of the loop.

#ifndef LLAMA_H
#define LLAMA_H

#include "setup.h"

enum {
    LLAMA_TOKENS_MAX = 96,
    LLAMA_TILE = 32,
    LLAMA_DIM = 64,
    LLAMA_HEADS = 4,
    LLAMA_HIDDEN = 128
};

#define LLAMA_ALLOWED 2e-6
#define LLAMA_EPSILON 1e-5

// The kernels on tiles of LLAMA_TILE tokens that other examples use, too.
typedef struct llama_kernels {
    ptowsp_kernel norm, project, output, gate, down;
} llama_kernels;

llama_kernels llama_kernels_make(ptowsp_module *m);

// y = x w, for tiles of so many rows.
ptowsp_kernel llama_project_make(ptowsp_module *m, const char *name, int64_t rows);

// Matrices by name: weights, and those with a row for each token; beside them a mask, and the
// transpose of k.
// clang-format off
#define LLAMA_MATRICES(WEIGHT, TOKENS) /* WEIGHT(name, rows, cols), TOKENS(name, cols) */          \
    TOKENS(x, LLAMA_DIM) WEIGHT(gamma1, 1, LLAMA_DIM) WEIGHT(gamma2, 1, LLAMA_DIM)                 \
    WEIGHT(wq, LLAMA_DIM, LLAMA_DIM) WEIGHT(wk, LLAMA_DIM, LLAMA_DIM)                              \
    WEIGHT(wv, LLAMA_DIM, LLAMA_DIM) WEIGHT(wo, LLAMA_DIM, LLAMA_DIM)                              \
    WEIGHT(wg, LLAMA_DIM, LLAMA_HIDDEN) WEIGHT(wu, LLAMA_DIM, LLAMA_HIDDEN)                        \
    WEIGHT(wd, LLAMA_HIDDEN, LLAMA_DIM) TOKENS(n, LLAMA_DIM) TOKENS(q, LLAMA_DIM)                  \
    TOKENS(k, LLAMA_DIM) TOKENS(v, LLAMA_DIM) TOKENS(a, LLAMA_DIM) TOKENS(h, LLAMA_DIM)            \
    TOKENS(n2, LLAMA_DIM) TOKENS(g, LLAMA_HIDDEN) TOKENS(y, LLAMA_DIM)
// clang-format on

typedef struct llama {
    int64_t token_count;
#define LLAMA_WEIGHT_FIELD(name, rows, cols) setup_matrix *name;
#define LLAMA_TOKENS_FIELD(name, cols)       setup_matrix *name;
    LLAMA_MATRICES(LLAMA_WEIGHT_FIELD, LLAMA_TOKENS_FIELD)
#undef LLAMA_WEIGHT_FIELD
#undef LLAMA_TOKENS_FIELD
    setup_matrix *mask, *k_t;
    llama_kernels kernels;
    ptowsp_kernel attend;
    double *wanted;
    double error;  // the largest of all runs
} llama;

// Declares the workload "block", for any number of tokens, in the module of a setup, and sets what
// it binds, prepares and checks.
void llama_make(llama *b, setup *s);
void llama_destroy(llama *b);

// Makes data for 1 .. LLAMA_TOKENS_MAX tokens, and what has to come out.
void llama_fill(llama *b, setup *s, int64_t token_count);

#endif
