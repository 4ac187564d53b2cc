// A DeepSeek block (V3) in decode, by tile kernels, as a workload with its data and a check: what
// deepseek_block measures, and emit_deepseek takes to an NPU. One token of each of 32 requests:
//
//      n = rmsnorm(x)            q = rope(n wq)               16 heads of 512 + 64
//                                cache[token] = rmsnorm, rope(n wc)       one for all heads
//      a = softmax(q cache' * scale) cache                    by an attention plan, in pages of 64
//      h = x + a wo              n2 = rmsnorm(h)              scores = sigmoid(n2 wr)
//      -- phase 1 --             experts of a token           on the host, and a MoE plan
//      y = h + shared(n2) + sum over 8 experts of gate * expert(n2)     expert: (silu(x wg) * x wu) wd
//
// Attention is latent (MLA), with the projections of keys and values absorbed in wq and wo, so that
// each token has one row of 576 in the cache, of which 512 are its value. Of 256 experts a token has
// 8, out of 4 of 8 groups: groups by the sum of their two best scores, experts by score, both with
// a bias that balances loads; gates are the scores without it, of sum 2.5.
//
// Both phases are one program, chosen by the symbol "phase": what the plan of the experts is made
// of is known after the first. Kernels are on one side each: products on the cube, the rest on the
// vector cores.

#ifndef DEEPSEEK_H
#define DEEPSEEK_H

#include "setup.h"

enum {
    DEEPSEEK_TOKENS = 32,
    DEEPSEEK_DIM = 64,
    DEEPSEEK_HEADS = 16,
    DEEPSEEK_LATENT = 512,
    DEEPSEEK_ROPE = 64,
    DEEPSEEK_PAGE = 64,
    DEEPSEEK_PAGES_MAX = 5,  // of a request
    DEEPSEEK_EXPERTS = 256,
    DEEPSEEK_TOP_K = 8,
    DEEPSEEK_HIDDEN = 32  // of an expert
};

#define DEEPSEEK_ALLOWED 2e-6

// Matrices by name, and stacks of them.
// clang-format off
#define DEEPSEEK_MATRICES(MATRIX, STACK)                                                           \
    MATRIX(x, DS_T, DS_D) MATRIX(gamma1, 1, DS_D) MATRIX(gamma2, 1, DS_D)                          \
    MATRIX(gamma_c, 1, DS_L) MATRIX(wq, DS_D, DS_H * DS_K) MATRIX(wc, DS_D, DS_K)                  \
    MATRIX(wo, DS_H * DS_L, DS_D) MATRIX(wr, DS_D, DS_E) MATRIX(cosines, DS_T, DS_R)               \
    MATRIX(sines, DS_T, DS_R) MATRIX(n, DS_T, DS_D) STACK(q, DS_T, DS_H, DS_K)                     \
    MATRIX(c, DS_T, DS_K) MATRIX(cache, DS_U * DS_P, DS_K) STACK(s, DS_U, DS_H, DS_P)              \
    STACK(p, DS_U, DS_H, DS_P) STACK(m, DS_T + DS_U, DS_H, 1) STACK(l, DS_T + DS_U, DS_H, 1)       \
    STACK(acc, DS_T + DS_U, DS_H, DS_L) STACK(a, DS_T, DS_H, DS_L) MATRIX(o, DS_T, DS_H * DS_D)           \
    MATRIX(h, DS_T, DS_D) MATRIX(n2, DS_T, DS_D) MATRIX(logits, DS_T, DS_E)                        \
    MATRIX(scores, DS_T, DS_E) MATRIX(sorted, DS_T * DS_X, DS_D)                                   \
    STACK(wg, DS_E + 1, DS_D, DS_F) STACK(wu, DS_E + 1, DS_D, DS_F)                                \
    STACK(wd, DS_E + 1, DS_F, DS_D) MATRIX(g, DS_T * (DS_X + 1), DS_F)                             \
    MATRIX(u, DS_T * (DS_X + 1), DS_F) MATRIX(f, DS_T * (DS_X + 1), DS_F)                          \
    MATRIX(made, DS_T * (DS_X + 1), DS_D) MATRIX(y, DS_T, DS_D)
// clang-format on

typedef struct deepseek {
#define DEEPSEEK_MATRIX(name, rows, cols)       setup_matrix *name;
#define DEEPSEEK_STACK(name, count, rows, cols) setup_matrix *name;
    DEEPSEEK_MATRICES(DEEPSEEK_MATRIX, DEEPSEEK_STACK)
#undef DEEPSEEK_MATRIX
#undef DEEPSEEK_STACK
    setup_matrix *q_flat, *a_flat, *cache_t;  // the same memory as q, a, cache
    uint32_t lane_count;
    uint32_t phase;

    int32_t lengths[DEEPSEEK_TOKENS];                     // with the token itself
    int32_t pages[DEEPSEEK_TOKENS * DEEPSEEK_PAGES_MAX];  // of each request
    void *plan_block;
    ptowsp_attention_plan plan;

    double bias[DEEPSEEK_EXPERTS];
    int32_t ids[DEEPSEEK_TOKENS * DEEPSEEK_TOP_K];
    uint32_t gates[DEEPSEEK_TOKENS * DEEPSEEK_TOP_K];  // the bits of floats
    uint32_t counts[DEEPSEEK_EXPERTS], offsets[DEEPSEEK_EXPERTS + 1];
    uint32_t pairs[DEEPSEEK_TOKENS * DEEPSEEK_TOP_K], rows[DEEPSEEK_TOKENS * DEEPSEEK_TOP_K];
    ptowsp_work units[DEEPSEEK_TOKENS * DEEPSEEK_TOP_K];
    uint32_t *unit_begin;  // [lane_count + 1]
    ptowsp_moe_plan experts;

    double *wanted;       // [token][DIM]
    int32_t *wanted_ids;  // [token][TOP_K]
    double error;
    bool has_same_experts;
} deepseek;

// Declares the workload "block" in the module of a setup, and sets what it binds.
void deepseek_make(deepseek *b, setup *s, uint32_t lane_count);
void deepseek_destroy(deepseek *b);

// Makes data and lengths, the attention plan, and what has to come out; begins with phase 0.
void deepseek_fill(deepseek *b, setup *s);

// After phase 0: chooses experts by the scores, and plans them. Phase 1 can be bound then.
void deepseek_route(deepseek *b, setup *s);

// After phase 1: whether outputs and experts are those of the reference in double precision.
bool deepseek_check(deepseek *b);

#endif
