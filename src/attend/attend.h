// Attention on CPUs: what its rooms share.
//
// A unit of a plan is computed in chunks of up to PWSP_ATTEND_ROWS rows, and a chunk in blocks of
// PWSP_ATTEND_BLOCK tokens (attend_block.c). The inner loops are attend_body.h, instantiated for each
// instruction set (attend_portable.c, attend_x86.c, attend_neon.c) and called through a
// pwsp_attend_variant.

#ifndef PWSP_ATTEND_H
#define PWSP_ATTEND_H

#include "../base/cpu.h"
#include "../base/math.h"
#include "../plan/attention.h"

#define PWSP_ATTEND_BLOCK  64                            // tokens of a step of the online softmax
#define PWSP_ATTEND_ROWS   128                           // of a chunk, at most
#define PWSP_ATTEND_TILE   6                             // rows of a register tile, at most
#define PWSP_ATTEND_TYPED  4                             // of one that loads other types than f32
#define PWSP_ATTEND_FEW    8                             // rows that convert as they load
#define PWSP_ATTEND_PART   16                            // parts are multiples of it
#define PWSP_ATTEND_FLOATS (16 * PTOWSP_ATTEND_DIM_MAX)  // 36 KiB
#define PWSP_ATTEND_STEP   8                             // dimensions are multiples of it

// How products become scores and weights. Scales have PWSP_ATTEND_BLOCK elements or are NULL.
typedef struct pwsp_attend_scoring {
    float scale, cap;
    const float *key_scales, *value_scales;
} pwsp_attend_scoring;

// How a row adjusts its scores of a block of tokens t: -slope * |t - distance| is added, then those
// whose bit of `seen` is 0 are dropped.
typedef struct pwsp_attend_bias {
    float slope;     // of ALiBi, or 0
    float distance;  // from the first token of the block to the position of the row
    uint64_t seen;   // by the mask of the step
} pwsp_attend_bias;

// The mask of a row, from token `start` on.
typedef struct pwsp_attend_bits {
    const uint32_t *words;
    int64_t start;
} pwsp_attend_bits;

// Rows that are needed soon. Their cache lines are prefetched in order, each once. Computing on keys
// prefetches the values of the same tokens, and on values the keys of the next block: memory is busy
// all the time only if it is asked while computing, too.
typedef struct pwsp_attend_ahead {
    const char *const *rows;  // not begun yet
    size_t row_count, size;   // how many, and bytes of each
    const char *at, *end;     // the rest of the row that is begun
} pwsp_attend_ahead;

// The loops of attend_body.h.
typedef struct pwsp_attend_variant {
    const char *name;
    uint32_t score_rows, value_rows;  // of tiles of f32, at most
    uint32_t type_rows;  // of tiles of other types, at most these, too; 0: no such tiles
    void (*pack)(ptowsp_attend_type type, const char *const *rows, size_t dim, char *out,
                 float *scales);
    void (*unpack)(ptowsp_attend_type type, const char *packed, const float *scales, size_t dim,
                   float *out);
    void (*convert)(ptowsp_attend_type type, const char *const *rows, size_t row_count, size_t dim,
                    float *to);
    void (*scores)(ptowsp_attend_type type, size_t row_count, const float *const *queries,
                   const char *keys, const float *scales, pwsp_attend_ahead *ahead, size_t dim,
                   float *scores);
    void (*values)(ptowsp_attend_type type, size_t row_count, const char *const *rows, size_t count,
                   pwsp_attend_ahead *ahead, const float *weights, const float *factors, size_t dim,
                   float *const *accs);
    void (*softmax)(const pwsp_attend_scoring *how, const pwsp_attend_bias *biases, float *products,
                    size_t low, size_t high, size_t row_count, ptowsp_partial *states,
                    float *factors);
    void (*divide)(float *row, size_t dim, float l);
} pwsp_attend_variant;

// Each fills in its functions; arm64 always has NEON.
#if PWSP_X86
PWSP_INTERNAL void pwsp_attend_avx2(pwsp_attend_variant *out);
PWSP_INTERNAL void pwsp_attend_avx512(pwsp_attend_variant *out);
#endif
#if PWSP_NEON
PWSP_INTERNAL void pwsp_attend_neon(pwsp_attend_variant *out);
#else
PWSP_INTERNAL void pwsp_attend_portable(pwsp_attend_variant *out);
#endif

// The fastest that this machine runs.
PWSP_INTERNAL pwsp_attend_variant pwsp_attend_choose(void);

// Elements of a block that has a scale of its own; 1: a type without blocks.
PWSP_INLINE uint32_t pwsp_attend_block_of(ptowsp_attend_type type) {
    return type >= PTOWSP_ATTEND_Q8_0 ? 32 : 1;
}

// Bytes of elements, of whole blocks.
PWSP_INLINE size_t pwsp_attend_span(ptowsp_attend_type type, size_t count) {
    static const uint8_t sizes[] = {4, 2, 2, 1, 34, 18};
    return count / pwsp_attend_block_of(type) * sizes[type];
}

// Tokens [first, end) of a sequence, or of a block.
typedef struct pwsp_attend_range {
    uint32_t first, end;
} pwsp_attend_range;

// Rows of the tokens of a block. Those outside of `seen` repeat a row inside.
typedef struct pwsp_attend_rows {
    pwsp_attend_range seen;
    const char *keys[PWSP_ATTEND_BLOCK], *values[PWSP_ATTEND_BLOCK];
} pwsp_attend_rows;

// Rows of a unit, sorted by query token: both ends of their windows grow from row to row; some may see
// nothing. Where sinks lie apart a chunk runs twice, over sinks and over windows.
typedef struct pwsp_attend_chunk {
    pwsp_attend_variant variant;
    const ptowsp_attend_cache *cache;
    const uint32_t *pages;
    uint32_t kv_head, row_count;
    pwsp_attend_scoring scoring;
    const float *queries[PWSP_ATTEND_ROWS];
    float *accs[PWSP_ATTEND_ROWS];
    ptowsp_partial states[PWSP_ATTEND_ROWS];
    pwsp_attend_range seen[PWSP_ATTEND_ROWS];  // of the unit's tokens
    bool is_biased;                            // rows have slopes
    float slopes[PWSP_ATTEND_ROWS];
    size_t mask_words;  // of a row; 0: without a mask
    pwsp_attend_bits masks[PWSP_ATTEND_ROWS];
    double positions[PWSP_ATTEND_ROWS];  // in KV tokens
    bool is_converted;                   // parts, to f32
    ptowsp_attend_type tile_type;        // of elements in tiles
    uint32_t score_rows, value_rows;     // of tiles, at most
    uint32_t part_tokens;                // of values
    const char
        *part_rows[PWSP_ATTEND_BLOCK];  // of values that tiles do not have as the cache has them

    // The current block:
    const pwsp_attend_rows *rows, *next;           // of this block and the next, NULL in the last
    pwsp_attend_ahead ahead;                       // asked for while computing
    bool is_full;                                  // all rows see all of it; otherwise:
    pwsp_attend_range in_block[PWSP_ATTEND_ROWS];  // the tokens that each sees
    uint32_t row_first, row_end;                   // rows that see some of it
    bool is_masked;                                // the mask hides some of it
    pwsp_attend_bias biases[PWSP_ATTEND_ROWS];
    float factors[PWSP_ATTEND_ROWS];
    float key_scales[PWSP_ATTEND_BLOCK], value_scales[PWSP_ATTEND_BLOCK];
    PWSP_ALIGNAS(64) float scores[PWSP_ATTEND_ROWS * PWSP_ATTEND_BLOCK];
    // Converted keys or values; q4_0 is written by 64, which may end beyond a row.
    PWSP_ALIGNAS(64) float part[PWSP_ATTEND_FLOATS / 16 * 17];
    PWSP_ALIGNAS(64) float packed[PWSP_ATTEND_FLOATS];             // packed keys
    PWSP_ALIGNAS(64) float packed_scales[PWSP_ATTEND_FLOATS / 8];  // of Q8_0
} pwsp_attend_chunk;

// Prepares a chunk whose variant, cache and row_count are set.
PWSP_INTERNAL void pwsp_attend_choose_parts(pwsp_attend_chunk *c);

// Adds the tokens that rows of a chunk see to their states and accs.
PWSP_INTERNAL void pwsp_attend_run_chunk(pwsp_attend_chunk *c);

// ptowsp_attend_compute of a checked step, with a variant. For tests, too.
PWSP_INTERNAL void pwsp_attend_compute(const pwsp_attend_variant *variant,
                                       const ptowsp_attend_cache *cache,
                                       const ptowsp_attend_step *step,
                                       const ptowsp_attend_unit *unit, ptowsp_partial *states,
                                       float *accs);

// Where the outputs of a row of a unit are, and the number of its query head and token.
typedef struct pwsp_attend_place {
    size_t token, head;   // of the batch
    float *output, *lse;  // lse may be NULL
} pwsp_attend_place;

PWSP_INTERNAL pwsp_attend_place pwsp_attend_place_of(const ptowsp_attend_step *step,
                                                     const ptowsp_attend_unit *unit, uint32_t row);

// Ends a row that is finished but for the sink of its head: outputs have it, `lse` is its log-sum-exp.
PWSP_INTERNAL void pwsp_attend_end_row(const ptowsp_attend_step *step, pwsp_attend_place place,
                                       uint32_t dim, float lse);

// The checks of a cache and a step that take constant time.
PWSP_INTERNAL ptowsp_status pwsp_attend_cache_check(const ptowsp_attend_cache *cache,
                                                    ptowsp_plan_info *info);
PWSP_INTERNAL ptowsp_status pwsp_attend_step_check(const ptowsp_attend_cache *cache,
                                                   const ptowsp_attend_step *step,
                                                   ptowsp_plan_info *info);

PWSP_INLINE uint32_t pwsp_attend_group(const ptowsp_attend_step *step) {
    return pwsp_group_of(step->config);
}

PWSP_INLINE uint32_t pwsp_attend_query_count(const ptowsp_attend_step *step, uint32_t request) {
    const ptowsp_attention_batch *batch = step->batch;
    return batch->query_lengths ? (uint32_t)batch->query_lengths[request] : 1;
}

PWSP_INLINE uint32_t pwsp_attend_query_first(const ptowsp_attend_step *step, uint32_t request) {
    return step->query_starts ? step->query_starts[request] : request;
}

#endif
