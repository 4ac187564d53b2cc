// Random batches with positions, and what they say, pair by pair: a query token sees a KV token if the
// rule of section 9 says so, read literally from the arrays. Nothing here knows of ranges or tiles.

#ifndef POSITIONS_SAMPLE_H
#define POSITIONS_SAMPLE_H

#include "test.h"

enum { POSITIONS_SEQUENCES = 6 };

typedef struct positions_sample {
    int32_t kv[POSITIONS_SEQUENCES], queries[POSITIONS_SEQUENCES];
    int32_t query_first[POSITIONS_SEQUENCES], query_stride[POSITIONS_SEQUENCES];
    int32_t kv_first[POSITIONS_SEQUENCES], kv_stride[POSITIONS_SEQUENCES];
    uint32_t before[POSITIONS_SEQUENCES], after[POSITIONS_SEQUENCES];
    int32_t sinks[POSITIONS_SEQUENCES];
    uint32_t speeds[16];
    ptowsp_attention_positions positions;
    ptowsp_attention_batch batch;
    ptowsp_attention_config config;
} positions_sample;

// Where KV token t lies for query token j of a sequence: in its window (0), before or after it (-1, 1).
static inline int positions_side(const positions_sample *s, uint32_t i, int64_t j, int64_t t) {
    const ptowsp_attention_positions *p = &s->positions;
    const int64_t last = s->kv[i] - (s->batch.query_lengths ? s->queries[i] : 1);
    const int64_t query = (p->query_first ? p->query_first[i] : last) +
                          j * (p->query_stride ? p->query_stride[i] : 1);
    const int64_t token =
        (p->kv_first ? p->kv_first[i] : 0) + t * (p->kv_stride ? p->kv_stride[i] : 1);
    if (p->after && p->after[i] <= INT32_MAX && token > query + (int64_t)p->after[i]) {
        return 1;
    }
    if (!p->after && s->config.is_causal && token > query) {
        return 1;
    }
    if (p->before) {
        return p->before[i] <= INT32_MAX && token < query - (int64_t)p->before[i] ? -1 : 0;
    }
    return s->config.window > 0 && token <= query - (int64_t)s->config.window ? -1 : 0;
}

// Whether query token j of a sequence sees KV token t.
static inline bool positions_sees(const positions_sample *s, uint32_t i, int64_t j, int64_t t) {
    const int side = positions_side(s, i, j, t);
    return side == 0 || (side < 0 && s->positions.sinks && t < s->positions.sinks[i]);
}

// Whether there is any array: then sequences without KV have tiles, too.
static inline bool positions_are_there(const positions_sample *s) {
    const ptowsp_attention_positions *p = s->config.positions;
    return p && (p->query_first || p->before || p->after || p->sinks);
}

// A number up to `most`, small ones and the largest more often.
static inline int64_t positions_some(uint64_t *state, int64_t least, int64_t most) {
    switch (test_random_in(state, 0, 3)) {
    case 0: return least;
    case 1: return test_random_in(state, least, least + (most - least) / 8);
    default: return test_random_in(state, least, most);
    }
}

static inline void positions_sequence(positions_sample *s, uint32_t i, int64_t kv_max,
                                      int64_t query_max, uint64_t *state) {
    s->kv[i] = (int32_t)positions_some(state, 0, kv_max);
    s->queries[i] = (int32_t)positions_some(state, 0, query_max);
    s->query_first[i] = (int32_t)positions_some(state, 0, 2 * kv_max);
    s->query_stride[i] = (int32_t)positions_some(state, 1, test_random_in(state, 0, 3) ? 9 : 90);
    s->kv_first[i] = (int32_t)positions_some(state, 0, kv_max);
    s->kv_stride[i] = (int32_t)positions_some(state, 1, 5);
    s->before[i] = test_random_in(state, 0, 4) ? (uint32_t)positions_some(state, 0, kv_max)
                                               : (uint32_t)INT32_MAX + 1;
    s->after[i] =
        test_random_in(state, 0, 3) ? (uint32_t)positions_some(state, 0, kv_max / 2) : UINT32_MAX;
    s->sinks[i] = (int32_t)positions_some(state, 0, s->kv[i]);
}

static inline void positions_arrays(positions_sample *s, uint64_t *state) {
    ptowsp_attention_positions *p = &s->positions;
    const uint64_t which = test_random(state);
    p->sequence_count = s->batch.sequence_count;
    p->query_first = which & 1 ? s->query_first : NULL;
    p->query_stride = (which & 3) == 3 ? s->query_stride : NULL;
    p->kv_first = (which & 5) == 5 ? s->kv_first : NULL;
    p->kv_stride = (which & 9) == 9 ? s->kv_stride : NULL;
    p->before = which & 16 ? s->before : NULL;
    p->after = which & 32 && !s->config.is_causal ? s->after : NULL;
    p->sinks = which & 64 ? s->sinks : NULL;
    s->config.positions = p;
}

// A batch with a configuration that plans refuse nothing of.
static inline void positions_make(positions_sample *s, int64_t kv_max, int64_t query_max,
                                  uint64_t *state) {
    memset(s, 0, sizeof *s);
    s->batch.kv_lengths = s->kv;
    s->batch.query_lengths = test_random_in(state, 0, 3) ? s->queries : NULL;
    s->batch.sequence_count = test_random_u32(state, 1, POSITIONS_SEQUENCES);
    ptowsp_attention_config *c = &s->config;
    c->kv_head_count = test_random_u32(state, 1, 3);
    c->group = test_random_u32(state, 1, 3);
    c->lane_count = test_random_u32(state, 1, 16);
    c->mode = test_random_in(state, 0, 1) ? PTOWSP_ATTENTION_INVARIANT : PTOWSP_ATTENTION_BALANCED;
    c->is_causal = test_random_in(state, 0, 1);
    c->window = test_random_in(state, 0, 2) ? 0 : test_random_u32(state, 1, kv_max);
    c->page_size = test_random_u32(state, 1, 4);
    c->tile_rows = test_random_u32(state, 1, 20);
    c->grain = c->page_size * test_random_u32(state, 1, 4);
    c->chunk = c->grain * test_random_u32(state, 1, 4);
    c->piece_min = (uint32_t)positions_some(state, 0, 20);
    c->shares_merges = test_random_in(state, 0, 1);
    c->cost.per_unit = (double)test_random_in(state, 0, 3);
    c->cost.per_token = 1.0;
    c->cost.per_merged_row = (double)test_random_in(state, 0, 2) / 4.0;
    if (test_random_in(state, 0, 3) == 0) {
        for (uint32_t lane = 0; lane < c->lane_count; lane++) {
            s->speeds[lane] = test_random_u32(state, lane == 0, 3);
        }
        c->lane_speeds = s->speeds;
    }
    for (uint32_t i = 0; i < s->batch.sequence_count; i++) {
        positions_sequence(s, i, kv_max, query_max, state);
    }
    positions_arrays(s, state);
    for (uint32_t i = 0; c->is_causal && !s->positions.query_first && i < s->batch.sequence_count;
         i++) {  // not more queries than KV
        s->queries[i] = s->queries[i] < s->kv[i] ? s->queries[i] : s->kv[i];
    }
}

// -- a tree of drafts -----------------------------------------------------------------------------

// Each draft has two behind it; all are after a context, and under a window of positions.
typedef struct draft_tree {
    uint32_t context, drafts, window;
} draft_tree;

static inline uint32_t draft_depth(uint32_t draft) {
    return draft == 0 ? 0 : 1 + draft_depth((draft - 1) / 2);
}

static inline bool draft_sees(const draft_tree *tree, uint32_t draft, uint32_t token) {
    if (token < tree->context) {
        return token + tree->window > tree->context + draft_depth(draft);
    }
    return draft == token - tree->context ||
           (draft > 0 && draft_sees(tree, (draft - 1) / 2, token));
}

#endif
