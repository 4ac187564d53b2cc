// The time of a step of a serving engine: attention from a plan of it, the rest from a roofline.
//
//      step = step_ns + layers * (attention + layer_ns) + dense + experts + head
//
// Attention is the largest lane of the plan of this batch in the machine's cost (section 9 of
// ptowsp.h). The other three are the larger of the time that their weights take to be read, and of
// the arithmetic of all tokens. The experts that T tokens reach are those of uniform routing:
// experts * (1 - (1 - top_k / experts)^T).
//
// KV heads are alike. So g = gcd(KV heads, lanes) groups of heads / g on lanes / g have the same plan,
// and one of them is planned, which is much faster. With is_every_head all are planned as one.
//
// Tiles of prompts read the KV before them from memory, each by itself: nothing is gained from a cache
// that cores share.
//
// All is of one of several devices that share each layer (tensor parallelism): a share of the query
// heads, of the KV heads as far as there are enough, and of all weights. What they say to each other
// is layer_ns, which you give.

#ifndef SERVE_COST_H
#define SERVE_COST_H

#include "serve_machine.h"

// How attention is planned.
typedef enum serve_plan {
    SERVE_BALANCED,  // an attention plan
    // Sequences that decode are cut by the chunk plan's rule; tiles of prompts are whole. Units go to
    // the lane that is free first, and merges come after all of them, shared evenly.
    SERVE_CHUNKS
} serve_plan;

typedef struct serve_setup {
    serve_model model;
    serve_machine machine;
    uint32_t devices;
    uint32_t page;  // tokens
    uint32_t
        tile_rows;      // of attention: query tokens of a prompt times the query heads of a KV head
    double efficiency;  // the share of the machine's rates that is reached outside of attention
    double layer_ns;
    uint32_t plan_every;  // steps from a plan to the next, while the batch is the same: see below
    uint32_t units_max;   // of a chunk plan, if its chunks can be so long
    bool is_every_head;
} serve_setup;

// The heads of a device; exits with 2 if they cannot be shared.
uint32_t serve_setup_heads(const serve_setup *s);
uint32_t serve_setup_kv_heads(const serve_setup *s);

// Bytes of KV of a token on a device, and the tokens that fit beside its share of the weights into
// `share` of its memory; 0 if not even the weights do.
double serve_setup_kv_bytes(const serve_setup *s);
uint64_t serve_setup_kv_tokens(const serve_setup *s, double share);

// A batch of a step. Sequences in order: kv_lengths with the tokens of the queries.
typedef struct serve_step {
    const int32_t *kv_lengths, *query_lengths;
    uint32_t count;
    uint64_t query_count;  // tokens of all
    uint32_t sampled;      // sequences that get a token
    bool is_next;          // the sequences are those of the step before, each a token longer
} serve_step;

typedef struct serve_time {
    double attention_ns, rest_ns;
} serve_time;

typedef struct serve_cost serve_cost;

// The most that steps will have. Where is_next, the attention of the last plan is taken in proportion
// to the KV tokens, for up to plan_every - 1 steps: 1 plans each step.
serve_cost *serve_cost_create(const serve_setup *s, serve_plan plan, uint32_t sequence_count_max,
                              int32_t kv_length_max, uint32_t query_count_max);
serve_time serve_cost_step(serve_cost *c, const serve_step *step);
uint64_t serve_cost_plan_count(const serve_cost *c);
void serve_cost_destroy(serve_cost *c);

#endif
