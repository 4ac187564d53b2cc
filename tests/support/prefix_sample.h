// Random trees of requests for tests of prefix plans, and what must hold of them, counted slowly.

#ifndef PREFIX_SAMPLE_H
#define PREFIX_SAMPLE_H

#include "test.h"

#include <math.h>

enum { REQUESTS = 14, BLOCKS = 8, QUERIES = 7, BLOCK_MAX = 6, DIM = 4, NODES_TRIED = 12 };

typedef struct sample {
    uint64_t seed, random;
    uint32_t count, block_tokens;
    int32_t kv[REQUESTS], queries[REQUESTS];
    uint64_t ids[REQUESTS * BLOCKS], begin[REQUESTS + 1];
    uint32_t speeds[8];
    ptowsp_prefix_batch batch;
    ptowsp_attention_config config;
    ptowsp_prefix_limits limits;
    void *block;
    ptowsp_prefix_tree tree;
} sample;

#define require(s, condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fail_msg("seed %llu, line %d: %s", (unsigned long long)(s)->seed, __LINE__,            \
                     #condition);                                                                  \
        }                                                                                          \
    } while (0)

static inline uint32_t sample_in(sample *s, uint32_t low, uint32_t high) {
    return test_random_u32(&s->random, low, high);
}

// Requests continue others from any block on, with ids of which there are few: so they are shared at
// the start, in the middle alone, or both.
static inline void sample_ids(sample *s) {
    const uint32_t other_max = sample_in(s, 1, 3);
    for (uint32_t r = 0; r < s->count; r++) {
        uint64_t *ids = s->ids + s->begin[r];
        uint32_t length = 0;
        if (r > 0 && sample_in(s, 0, 4) > 0) {
            const uint32_t from = sample_in(s, 0, r - 1);
            const uint32_t all = (uint32_t)(s->begin[from + 1] - s->begin[from]);
            length = sample_in(s, 0, all);
            memcpy(ids, s->ids + s->begin[from], length * sizeof *ids);
        }
        for (uint32_t more = sample_in(s, 0, other_max); more > 0 && length < BLOCKS; more--) {
            uint64_t id = sample_in(s, 0, 40);
            bool is_new = true;
            for (uint32_t i = 0; i < length; i++) {
                is_new = is_new && ids[i] != id;
            }
            ids[length] = id;
            length += is_new;
        }
        s->begin[r + 1] = s->begin[r] + length;
        const uint32_t least = length > 0 ? (length - 1) * s->block_tokens + 1 : 0;
        s->kv[r] = (int32_t)(least + sample_in(s, 0, sample_in(s, 0, 3) * s->block_tokens));
        const int32_t most = s->kv[r] < QUERIES - 1 ? s->kv[r] : QUERIES - 1;
        s->queries[r] = (int32_t)sample_in(s, 0, (uint32_t)most);
    }
}

static inline void sample_make(sample *s, uint64_t seed, uint32_t count_max) {
    memset(s, 0, sizeof *s);
    s->seed = s->random = seed;
    s->count = sample_in(s, 0, count_max);
    s->block_tokens = sample_in(s, 1, BLOCK_MAX);
    sample_ids(s);
    s->batch.attention.kv_lengths = s->kv;
    s->batch.attention.query_lengths = sample_in(s, 0, 2) == 0 ? s->queries : NULL;
    s->batch.attention.sequence_count = s->count;
    s->batch.block_ids = s->ids;
    s->batch.block_begin = s->begin;
    s->batch.block_tokens = s->block_tokens;
    ptowsp_attention_config *c = &s->config;
    c->kv_head_count = sample_in(s, 1, 2);
    c->group = sample_in(s, 1, 3);
    c->lane_count = sample_in(s, 1, 8);
    c->is_causal = s->batch.attention.query_lengths && sample_in(s, 0, 1);
    c->tile_rows = sample_in(s, 1, 12);
    c->page_size = sample_in(s, 1, 3);
    c->mode = sample_in(s, 0, 2) == 0 ? PTOWSP_ATTENTION_INVARIANT : PTOWSP_ATTENTION_BALANCED;
    c->chunk = c->page_size * sample_in(s, 1, 5);
    // Powers of two, so that costs are exact.
    const double units[4] = {0.25, 1, 4, 16};
    if (sample_in(s, 0, 5) > 0) {
        c->cost.per_unit = sample_in(s, 0, 3) ? units[sample_in(s, 0, 3)] : 0;
        c->cost.per_token = units[sample_in(s, 0, 3)];
        c->cost.per_row_token = sample_in(s, 0, 3) ? 1.0 / 32 * units[sample_in(s, 0, 2)] : 0;
        c->cost.per_merged_row = sample_in(s, 0, 3) ? units[sample_in(s, 0, 2)] / 2 : 0;
    }
    if (sample_in(s, 0, 3) == 0) {
        for (uint32_t i = 0; i < c->lane_count; i++) {
            s->speeds[i] = sample_in(s, i == 0, 3);
        }
        c->lane_speeds = s->speeds;
    }
    s->limits.request_count_max = s->count;
    s->limits.block_count_max = BLOCKS;
    const uint64_t needed = ptowsp_prefix_tree_bytes(&s->limits);
    s->block = malloc((size_t)needed);
    require(s, ptowsp_prefix_tree_place(&s->limits, s->block, needed, &s->tree) == PTOWSP_OK);
}

static inline uint32_t sample_queries(const sample *s, uint32_t r) {
    return s->batch.attention.query_lengths ? (uint32_t)s->queries[r] : 1;
}

// KV tokens that two requests share: the ids from the first on that are equal.
static inline uint32_t sample_shared(const sample *s, uint32_t a, uint32_t b) {
    uint32_t shared = 0;
    const uint64_t all_a = s->begin[a + 1] - s->begin[a], all_b = s->begin[b + 1] - s->begin[b];
    while (shared < all_a && shared < all_b &&
           s->ids[s->begin[a] + shared] == s->ids[s->begin[b] + shared]) {
        shared++;
    }
    shared *= s->block_tokens;
    const uint32_t both[2] = {a, b};
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t q = sample_queries(s, both[i]), kv = (uint32_t)s->kv[both[i]];
        const uint32_t most = q > 1 ? kv - q : kv;
        shared = shared < most ? shared : most;
    }
    return shared;
}

// -- costs of a choice ----------------------------------------------------------------------------

typedef struct slow_cost {
    double unit, token, row_token, merged_row;
} slow_cost;

static inline slow_cost slow_cost_of(const sample *s) {
    const ptowsp_attention_cost *c = &s->config.cost;
    slow_cost cost = {c->per_unit, c->per_token, c->per_row_token, c->per_merged_row};
    if (cost.unit + cost.token + cost.row_token + cost.merged_row <= 0) {
        cost.unit = 64, cost.token = 1, cost.row_token = 1.0 / 64, cost.merged_row = 1;
    }
    return cost;
}

static inline uint32_t slow_tile_tokens(const sample *s) {
    const uint32_t tokens = s->config.tile_rows / s->config.group;
    return tokens > 0 ? tokens : 1;
}

static inline uint32_t slow_end(const sample *s, uint32_t kv) {
    return s->config.mode == PTOWSP_ATTENTION_INVARIANT ? kv / s->config.chunk * s->config.chunk
                                                        : kv;
}

// A tile of so many tokens over [begin, end).
static inline double slow_tile(const sample *s, uint32_t tokens, uint32_t begin, uint32_t end,
                               bool has_slots) {
    const slow_cost cost = slow_cost_of(s);
    const double rows = tokens * s->config.group;
    uint32_t pieces = 1;
    if (s->config.mode == PTOWSP_ATTENTION_INVARIANT) {
        pieces = (end - 1) / s->config.chunk - begin / s->config.chunk + 1;
    }
    const double slots = has_slots || pieces > 1 ? pieces : 0;
    return pieces * cost.unit + (end - begin) * (cost.token + rows * cost.row_token) +
           slots * rows * cost.merged_row;
}

// Where the segment above a node or request begins, if the nodes of `shared` are; *out_has if any.
static inline uint32_t slow_above(const sample *s, uint32_t node, uint32_t shared, bool *out_has) {
    *out_has = false;
    for (; node != PTOWSP_NO_NODE; node = s->tree.nodes[node].parent) {
        if (shared >> node & 1) {
            *out_has = true;
            return slow_end(s, s->tree.nodes[node].kv_end);
        }
    }
    return 0;
}

// Whether something is read below a node.
static inline bool slow_has_below(const sample *s, uint32_t node) {
    const ptowsp_prefix_tree *t = &s->tree;
    for (uint32_t p = t->nodes[node].first; p < t->nodes[node].first + t->nodes[node].count; p++) {
        const uint32_t r = t->order[p];
        if (sample_queries(s, r) > 0 && (uint32_t)s->kv[r] > slow_end(s, t->nodes[node].kv_end)) {
            return true;
        }
    }
    return false;
}

// The cost of a choice; *out_reads: KV tokens of a head. Below 0: it has a node without KV.
static inline double slow_choice(const sample *s, uint32_t shared, uint64_t *out_reads) {
    const ptowsp_prefix_tree *t = &s->tree;
    const uint32_t most = slow_tile_tokens(s);
    double sum = 0;
    uint64_t reads = 0;
    for (uint32_t i = 0; i < t->node_count; i++) {
        const ptowsp_prefix_node *node = &t->nodes[i];
        if (!(shared >> i & 1)) {
            continue;
        }
        bool has_above;
        const uint32_t begin = slow_above(s, node->parent, shared, &has_above);
        const uint32_t end = slow_end(s, node->kv_end);
        uint32_t tokens = 0;
        for (uint32_t p = node->first; p < node->first + node->count; p++) {
            tokens += sample_queries(s, t->order[p]);
        }
        if (slow_end(s, node->kv_begin) == end || tokens == 0) {
            return -1;
        }
        const bool slots = has_above || slow_has_below(s, i);
        for (uint32_t at = 0; at < tokens; at += most) {
            sum += slow_tile(s, tokens - at < most ? tokens - at : most, begin, end, slots);
            reads += end - begin;
        }
    }
    for (uint32_t p = 0; p < t->request_count; p++) {
        const uint32_t r = t->order[p], q = sample_queries(s, r), kv = (uint32_t)s->kv[r];
        bool has_above;
        const uint32_t begin = slow_above(s, t->owners[p], shared, &has_above);
        for (uint32_t at = 0; at < q && begin < kv; at += most) {
            const uint32_t tokens = q - at < most ? q - at : most;
            const uint32_t end = s->config.is_causal ? kv - q + at + tokens : kv;
            sum += slow_tile(s, tokens, begin, end, has_above);
            reads += end - begin;
        }
    }
    *out_reads = reads;
    return sum * s->config.kv_head_count;
}

#endif
