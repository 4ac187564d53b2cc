// Prefix trees and the decision which of their nodes are shared: definitions that the rooms of prefix plans
// share.

#ifndef PWSP_PREFIX_H
#define PWSP_PREFIX_H

#include "attention_cut.h"

// A request's blocks as a string of ids, as far as they can be shared.
typedef struct pwsp_prefix_key {
    const PTOWSP_GM uint64_t *ids;
    uint32_t count;
    uint32_t limit;  // KV tokens that may be shared
} pwsp_prefix_key;

// A request that is sorted: how many ids it shares with the one before it, and the id that follows.
typedef struct pwsp_prefix_item {
    uint64_t id;
    uint32_t request, common;
} pwsp_prefix_item;

// The cost of a subtree in KV reads that begin at token y, for its segments below a shared one: a
// function of y, below the node's kv_begin. See prefix_choose.c.
typedef struct pwsp_prefix_cost {
    uint64_t at_end;  // at y = the end of the node: of everything below it
    uint64_t below;   // the limit there from smaller y; differs where requests end with the node
    uint64_t slope;   // below that, per granule
    uint64_t alone;   // nothing above is shared: all KV from 0 on is read
    uint32_t head, tail;  // changes of the slope, by falling y, as a list of nodes
    // The change that is this node's: from `share_at` down it is shared.
    uint32_t next;
    uint32_t share_at;  // granules; UINT32_MAX: never
    uint64_t gain, drop;
    uint32_t above;    // going down: where the shared segment above ends
    uint32_t segment;  // the node's, or the segment of the shared node above
    uint8_t has_above;
    uint8_t shares_alone;
} pwsp_prefix_cost;

// The parts of a tree's scratch.
typedef struct pwsp_prefix_scratch {
    pwsp_prefix_cost *costs;          // [requests]
    pwsp_prefix_item *items;          // [2 * requests] in the place of costs
    pwsp_prefix_key *keys;            // [requests]
    ptowsp_prefix_segment *segments;  // [2 * requests]
    uint32_t *table;                  // [table_size] of ids; or the working memory of a given tree
    int32_t *kv_lengths, *query_lengths;  // [requests] by position
    uint32_t *token_begin;                // [requests + 1]
    uint32_t *order;                      // [requests] for one step or another
    uint32_t *node_first, *node_next;     // [requests] nodes by their first position, from above
    uint64_t table_size;
    uint64_t bytes;  // of all
} pwsp_prefix_scratch;

PWSP_INTERNAL pwsp_prefix_scratch pwsp_prefix_scratch_of(uint32_t requests, uint64_t blocks,
                                                         void *scratch);

// Checks that a tree has its arrays.
PWSP_INTERNAL ptowsp_status pwsp_tree_check(const ptowsp_prefix_tree *tree, ptowsp_plan_info *info);

// Makes the nodes from the order and what neighbours share.
PWSP_INTERNAL void pwsp_tree_complete(ptowsp_prefix_tree *tree);

// KV tokens of a request that others may share.
PWSP_INLINE uint32_t pwsp_prefix_limit(int32_t kv, int32_t queries) {
    return (uint32_t)(queries > 1 ? (kv > queries ? kv - queries : 0) : kv);
}

// A node's end, or begin, as it is for a configuration: in INVARIANT mode whole chunks.
PWSP_INLINE uint32_t pwsp_prefix_round(const pwsp_attention *a, uint32_t kv) {
    return pwsp_attention_cuts_chunks(a) ? (uint32_t)(kv / a->chunk * a->chunk) : kv;
}

// Decides which nodes are shared, from a batch by position that was prepared.
PWSP_INTERNAL void pwsp_prefix_choose(const pwsp_attention *a, ptowsp_prefix_tree *tree,
                                      const pwsp_prefix_scratch *scratch);

// Writes the segments of a tree by its decision, or the flat plan's; returns their number.
PWSP_INTERNAL uint32_t pwsp_prefix_segments(const pwsp_attention *a, const ptowsp_prefix_tree *tree,
                                            const pwsp_prefix_scratch *scratch, bool is_flat);

// Puts a batch into the order of a tree, checks both, and counts the flat plan.
PWSP_INTERNAL ptowsp_status pwsp_prefix_prepare(const ptowsp_attention_batch *batch,
                                                const ptowsp_attention_config *config,
                                                const ptowsp_prefix_tree *tree, pwsp_attention *a,
                                                pwsp_prefix_scratch *s, ptowsp_plan_info *info);

// Counts the tiles of segments instead of sequences. *out_reads: KV tokens.
PWSP_INTERNAL ptowsp_status pwsp_prefix_count(pwsp_attention *a,
                                              const ptowsp_prefix_segment *segments, uint32_t count,
                                              uint64_t *out_reads, ptowsp_plan_info *info);

// Checks that a plan has its arrays.
PWSP_INTERNAL ptowsp_status pwsp_prefix_arrays_check(const ptowsp_prefix_plan *plan,
                                                     ptowsp_plan_info *info);

// The tiles of a segment.
PWSP_INLINE uint32_t pwsp_segment_tiles(const ptowsp_prefix_plan *plan,
                                        const ptowsp_prefix_segment *segment) {
    const uint32_t tokens = plan->attention.tile_tokens, count = segment->token_count;
    if (segment->kv_begin == segment->kv_end) {
        return 0;
    }
    return count <= tokens ? count > 0 : (uint32_t)pwsp_ceil_div_u64(count, tokens);
}

// The entry of merges with the slots of a tile of a segment that is not whole.
PWSP_INLINE const PTOWSP_GM ptowsp_work *pwsp_segment_slots(const ptowsp_prefix_plan *plan,
                                                            const ptowsp_prefix_segment *segment,
                                                            uint32_t head, uint32_t tile) {
    const uint32_t tiles = pwsp_segment_tiles(plan, segment);
    PTOWSP_ASSERT(!segment->is_whole && tile < tiles);
    return &plan->attention.merges[segment->merge_begin + head * tiles + tile];
}

#endif
