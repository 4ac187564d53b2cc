// Attention over a KV cache for inference engines: decode, prefill, and batches of both.
//
// One call computes one unit of a plan: a tile of query tokens of one sequence, with all query heads
// of one KV head (grouped-query attention, Ainslie et al. 2023), against a range of KV tokens. It
// leaves partial states, which ptowsp_merge_partials joins, or writes finished rows itself:
//
//      attention_kv     the cache: base pointers, strides, type, dimensions, page size
//      attention_step   the step: batch, configuration and plan; queries, outputs, page tables
//      attention_unit   which rows against which tokens; attention_unit_of takes it from a plan
//
//      attention_fault fault;                                      // once per step
//      if (!attention_step_check(&kv, &step, &scratch, &fault)) ...
//      attention_compute_work(&kv, &step, &scratch, work);         // in the kernel of a unit
//
// Lengths, group, window, mask and tile are read from the batch, the configuration and the plan, so a
// step cannot contradict its plan. attention_step_check compares the rest: the fields that the cache and
// the scratch must have.
//
// To use it in an engine, copy attention.h, attention.c, attention_simd.h and attention_body.h. They
// are C11 and need ptowsp.h, ptowsp_merge_finish and libm.
//
// Mask     As section 10 of ptowsp.h says: the queries are the last tokens of their sequence. Query
//          token j of q has position p = kv_length - q + j. It sees tokens up to p if is_causal,
//          otherwise all of them, and with a window none before p - window + 1.
// Empty    A row that sees nothing of the range has the empty state (m = -INFINITY, l = 0, acc = 0)
//          or, finished, zeros and a log-sum-exp of -INFINITY.
// Bits     A row's state is a function of its query and of the tokens of the unit that it sees, with
//          their positions. It does not depend on where the unit starts before them or ends after
//          them, on other rows of the tile, on the layout of the cache, on threads, or on the rest
//          of the batch. A finished row and its log-sum-exp have the bits of ptowsp_merge_finish. So
//          rows of INVARIANT plans have the same bits in prefill, in chunks of a prefill, in
//          verification and in decode. Variants for AVX-512, AVX2 and NEON give the same states; the
//          portable one rounds otherwise.
// Values   Arithmetic is in f32, with online softmax in blocks of ATTENTION_BLOCK tokens that begin
//          at the multiples of ATTENTION_BLOCK. Weights below e^-87 of the largest so far are 0. NaN
//          in a query or in a token that a row sees gives NaN in the row. Tokens that no row sees are
//          not read.
// Threads  Every function is pure: no state, no locks, any number of calls at a time.
// Memory   Nothing is allocated. A call takes up to 120 KiB of stack.
// Limits   Dimensions are multiples of 16 up to ATTENTION_DIM_MAX. Any group, any number of rows.
// Errors   attention_step_check; otherwise none: a broken precondition is an assertion.

#ifndef ATTENTION_H
#define ATTENTION_H

#include "ptowsp.h"

#define ATTENTION_BLOCK   64   // tokens per step of the online softmax
#define ATTENTION_DIM_MAX 576  // of keys and of values

typedef enum attention_type {
    ATTENTION_F32,
    ATTENTION_F16,   // IEEE 754 binary16
    ATTENTION_BF16,  // the upper half of an f32
    ATTENTION_I8     // an integer times the scale of its token and head
} attention_type;

// Elements from one page, one token of a page, and one KV head to the next.
typedef struct attention_strides {
    size_t page, token, head;
} attention_strides;

// A KV cache. Token t of a sequence is slot t % page_size of page pages[t / page_size], and its row
// for a head begins at
//
//      keys + page * strides.page + slot * strides.token + head * strides.head
//
// and has key_dim or value_dim adjacent elements. Some layouts, with H heads, P slots, dimension D:
//
//                                             page             token    head         values
//      [page][head][K or V][slot][dim]        H * 2 * P * D    D        2 * P * D    keys + P * D
//      [page][slot][head][dim], K and V       P * H * D        H * D    D            another array
//      [token][head][dim], no pages           H * D            H * D    D            another array
//      latent (MLA), 576 keys, 512 values     P * 576          576      0            keys
typedef struct attention_kv {
    const void *keys, *values;  // values may be keys
    attention_strides key_strides, value_strides;
    const float *key_scales, *value_scales;  // I8; otherwise not read
    attention_strides scale_strides;         // of both
    attention_type type;
    uint32_t key_dim, value_dim;
    uint32_t page_size;  // 0: a sequence is one page, so pages[0] says where it begins
} attention_kv;

// The parts of a step that its units share. Query heads are kv_head * group ... + group - 1, and
// tokens of queries, outputs and lse are numbered across the batch. Strides are in floats.
typedef struct attention_step {
    const ptowsp_attention_batch *batch;  // lengths
    const ptowsp_attention_config
        *config;                        // group, window, is_causal; lanes and costs are not read
    const ptowsp_attention_plan *plan;  // of the work descriptors; not read by attention_compute

    const float *queries;  // not scaled
    size_t query_token_stride, query_head_stride;
    float *outputs;  // of finished rows
    size_t output_token_stride, output_head_stride;
    float *lse;  // log-sum-exp of finished rows; NULL: not wanted
    size_t lse_token_stride, lse_head_stride;

    const uint32_t *query_starts;  // [request] its first query token; NULL: one for each request
    const uint32_t *pages;         // page tables of all requests
    const uint32_t *page_starts;   // [request] in pages; NULL: request * page_stride
    size_t page_stride;

    float scale;  // of scores; 0: 1 / sqrt(key_dim)
    float cap;    // > 0: scores are cap * tanh(score / cap)
} attention_step;

// A disagreement: `what` is `value`, and `expected` belongs there.
typedef struct attention_fault {
    const char *what;
    uint64_t value, expected;
} attention_fault;

// Whether the plan of a step, its scratch (NULL: not checked) and its cache agree with the batch and
// the configuration. To prove the plan's units, use ptowsp_attention_check. Constant time, and
// O(requests) without query_starts.
bool attention_step_check(const attention_kv *kv, const attention_step *step,
                          const ptowsp_attention_scratch *scratch, attention_fault *out_fault);

typedef struct attention_unit {
    uint32_t request, kv_head;
    uint32_t query_start, query_count;  // query tokens of the request
    uint32_t kv_start, kv_len;          // tokens from the request's length on are ignored
    // Prefix plans: the query tokens of the batch, [query_count], of all requests that share the KV
    // of `request`. All of them see all of it, and query_start is not read. NULL: the request's own.
    const uint32_t *tokens;
} attention_unit;

// The unit, or the tile of the merge, of a work descriptor of step->plan.
attention_unit attention_unit_of(const attention_step *step, const ptowsp_work *work);

// The unit of a descriptor of a prefix plan.
attention_unit attention_unit_of_prefix(const ptowsp_prefix_plan *plan, const ptowsp_work *work);

// Rows of a unit, query_count * group. Row r is query token r / group with head r % group.
uint32_t attention_unit_rows(const attention_step *step, const attention_unit *unit);

// Computes a unit. Writes states[rows] and accs[rows][value_dim]; or, if states is NULL, finished
// rows to step->outputs and step->lse, which is right for a unit that has all tokens its rows see.
void attention_compute(const attention_kv *kv, const attention_step *step,
                       const attention_unit *unit, ptowsp_partial *states, float *accs);

// Computes the unit of a work descriptor of step->plan: into its slot of the scratch, or, if it has
// none, finished rows.
void attention_compute_work(const attention_kv *kv, const attention_step *step,
                            const ptowsp_attention_scratch *scratch, const ptowsp_work *work);

// Converts elements to f32, exactly: queries that a model leaves in f16 or bf16. I8 has no scale.
void attention_convert(const void *from, attention_type type, size_t count, float *to);

// Bytes of an element.
size_t attention_type_size(attention_type type);

// The vector code of this machine: "avx512", "avx2", "neon" or "portable".
const char *attention_variant_name(void);

#endif
