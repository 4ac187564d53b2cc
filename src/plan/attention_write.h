// Writes an attention plan, lane by lane: whole heads, ranges of tiles, ends of lanes, in order.

#ifndef PWSP_ATTENTION_WRITE_H
#define PWSP_ATTENTION_WRITE_H

#include "attention.h"

typedef struct pwsp_attention_writer {
    const pwsp_attention *a;
    ptowsp_attention_plan *plan;
    PTOWSP_GM ptowsp_work *next;  // unit
    uint32_t merges, slots;
    uint32_t lane;
    uint64_t lane_cost;  // so far; without the merge that is open
    // The merge of the tile that the last range did not end, if any. It belongs to open_lane.
    bool is_open;
    uint32_t open_lane, open_slot;
    uint64_t open_cost;  // of that lane so far, if the lane has ended
    uint64_t total;
    double cost_max;
} pwsp_attention_writer;

PWSP_INTERNAL pwsp_attention_writer pwsp_write_begin(const pwsp_attention *a,
                                                     ptowsp_attention_plan *plan);

// Writes the tiles of heads [head, head + count) of a sequence, none of which is cut between lanes.
// `first` is the first tile of a head.
PWSP_INTERNAL void pwsp_write_heads(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                                    uint64_t count, const pwsp_query_tile *first);

// Writes KV tokens [begin, end) of a tile. A tile comes in one or several ranges, in order.
PWSP_INTERNAL void pwsp_write_range(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                                    uint32_t index, const pwsp_query_tile *tile, uint32_t begin,
                                    uint32_t end);

// Ends the lane, and begins the next.
PWSP_INTERNAL void pwsp_write_lane(pwsp_attention_writer *w);

// Completes the plan, after all lanes.
PWSP_INTERNAL void pwsp_write_end(pwsp_attention_writer *w);

#endif
