// A decode step of a Llama-like model with transient tensors and chosen kernels, as a workload with its data
// and a check: what llama_decode measures, and emit_llama_decode takes to an NPU. Layers follow one another,
// with a token for each of a batch of sequences whose KV caches have their own lengths. In a layer, on tiles
// of 32 sequences:
//
//      n = rmsnorm(x)     q, k, v = n wq, n wk, n wv                       for each tile
//      cache[length] = k, v     a = softmax(q cache_k' / 4) cache_v        for each sequence and head
//      h = x + a wo       x = h + (silu(n2 wg) * (n2 wu)) wd               for each tile

#ifndef LLAMA_STEP_H
#define LLAMA_STEP_H

#include "llama.h"

enum {
    LLAMA_STEP_LAYERS = 4,
    LLAMA_STEP_BATCH_MAX = 24,
    LLAMA_STEP_SMALL = 16  // rows for which the projections have a kernel of their own
};

#define LLAMA_STEP_ALLOWED 1e-5

// What a layer hands on: name, columns.
#define LLAMA_STEP_TENSORS(TENSOR)                                                                 \
    TENSOR(n, LLAMA_DIM)                                                                           \
    TENSOR(q, LLAMA_DIM)                                                                           \
    TENSOR(k, LLAMA_DIM)                                                                           \
    TENSOR(v, LLAMA_DIM)                                                                           \
    TENSOR(a, LLAMA_DIM)                                                                           \
    TENSOR(h, LLAMA_DIM)                                                                           \
    TENSOR(n2, LLAMA_DIM)                                                                          \
    TENSOR(g, LLAMA_HIDDEN)

typedef struct llama_step {
    setup *s;
    bool is_transient;
    setup_matrix *x, *gamma1, *gamma2, *wq, *wk, *wv, *wo, *wg, *wu, *wd, *cache_k, *cache_v;
    setup_matrix *cache_k_t;
#define LLAMA_STEP_FIELD(name, cols) ptowsp_tensor name;
    LLAMA_STEP_TENSORS(LLAMA_STEP_FIELD)
#undef LLAMA_STEP_FIELD
    llama_kernels kernels;
    ptowsp_kernel small, project, append, attend;  // project: a choice
    ptowsp_axis batch_axis;
    int64_t batch;
    int32_t lengths[LLAMA_STEP_BATCH_MAX];
    float tokens[LLAMA_STEP_BATCH_MAX * LLAMA_DIM];  // x before a step
    double wanted[LLAMA_STEP_BATCH_MAX * LLAMA_DIM];
    double error;  // the largest of all steps
} llama_step;

// Declares the workload "decode" in the module of a setup, and sets what it binds, prepares and checks.
// What a layer hands on is transient, or bound by the caller.
void llama_step_make(llama_step *d, setup *s, bool is_transient);

// Makes tokens for a batch of 1 to LLAMA_STEP_BATCH_MAX, and what has to come out, over the caches as they
// are. A step writes the keys and values of its tokens to them, which may be repeated.
void llama_step_fill(llama_step *d, int64_t batch);

#endif
