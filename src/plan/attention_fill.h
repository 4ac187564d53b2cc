// How far lanes get in a given time.

#ifndef PWSP_ATTENTION_FILL_H
#define PWSP_ATTENTION_FILL_H

#include "attention_write.h"

// What filling lanes adds to a batch that has been counted.
typedef struct pwsp_attention_splits {
    uint64_t splits, merges;
    uint64_t shared;  // merges more than one of each tile
} pwsp_attention_splits;

// Fills all lanes, and writes the plan if there is a writer. False if the batch does not fit.
PWSP_INTERNAL bool pwsp_attention_fill(const pwsp_attention *a, uint64_t time,
                                       pwsp_attention_writer *writer,
                                       pwsp_attention_splits *out_splits);

// The same for decode steps that have tiles.
PWSP_INTERNAL bool pwsp_decode_fill(const pwsp_attention *a, uint64_t time,
                                    pwsp_attention_writer *writer,
                                    pwsp_attention_splits *out_splits);

#define PWSP_SHARE_BITS 31

// The largest cost of a lane: its speed's share of the time.
PWSP_INLINE uint64_t pwsp_lane_room(const pwsp_attention *a, uint64_t time, uint32_t lane) {
    if (!a->config.lane_speeds) {
        return time;
    }
    const uint64_t share =
        ((uint64_t)a->config.lane_speeds[lane] << PWSP_SHARE_BITS) / a->speed_max;
    const uint64_t low = time & ((UINT64_C(1) << PWSP_SHARE_BITS) - 1);
    return (time >> PWSP_SHARE_BITS) * share + (low * share >> PWSP_SHARE_BITS);
}

// A lane that is being filled.
typedef struct pwsp_lane_fill {
    uint64_t time;
    uint32_t lane;
    uint64_t room;  // its rest
} pwsp_lane_fill;

// Where the lane's part of a tile ends that does not fit as a whole, from kv on; kv for no part.
PWSP_INTERNAL uint32_t pwsp_split_find(const pwsp_attention *a, const pwsp_lane_fill *f,
                                       const pwsp_query_tile *tile, uint32_t kv);

// The end of the part that a lane can take of a tile from kv on, with `room` for it alone, if it leaves at least
// `left` tokens; kv for nothing.
PWSP_INTERNAL uint32_t pwsp_piece_end(const pwsp_attention *a, const pwsp_query_tile *tile,
                                      uint32_t kv, uint64_t room, uint64_t left);

// The same in INVARIANT mode, in whole chunks: the lane stops at `last` at the latest.
PWSP_INTERNAL uint32_t pwsp_chunks_end(const pwsp_attention *a, const pwsp_query_tile *tile,
                                       uint32_t kv, uint64_t room, uint64_t last);

// How many lanes, from this one on, take the tile and share its merge; 0: it does not begin here.
PWSP_INTERNAL uint32_t pwsp_shared_lanes(const pwsp_attention *a, const pwsp_lane_fill *f,
                                         const pwsp_query_tile *tile);

// The part of a lane with `room` that is the next of them: where it ends, tile->end for the last; kv if
// the lane has no room for one.
PWSP_INTERNAL uint32_t pwsp_shared_end(const pwsp_attention *a, const pwsp_query_tile *tile,
                                       uint32_t kv, uint64_t room, pwsp_tile_share share);

#endif
