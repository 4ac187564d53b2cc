// A checked configuration and batch of an attention plan: all that cutting and writing read.
//
// Costs are integers on a grid, a power of two of the user's unit, so that decisions are the same on
// every machine. Totals stay below 2^62, so sums of two never overflow.

#ifndef PWSP_ATTENTION_H
#define PWSP_ATTENTION_H

#include "plan.h"

#define PWSP_COST_BITS 62
#define PWSP_COST_MAX  (UINT64_C(1) << PWSP_COST_BITS)

typedef struct pwsp_attention {
    // The configuration, with its defaults.
    ptowsp_attention_config config;
    uint32_t tile_tokens;
    uint32_t slot_rows_max;  // rows of a tile that is full
    uint32_t worker_count;   // lanes with a speed
    uint32_t worker_last;    // the last of them
    uint32_t speed_max;
    uint64_t speed_sum;
    uint64_t piece_min, chunk;  // in tokens; multiples of the page
    uint32_t grain;             // a divisor of the chunk where tiles begin; BALANCED: 1
    uint64_t unit, token, row_token, merged_row;
    double grid;  // of the user's unit

    const PTOWSP_GM int32_t *kv_lengths;
    const PTOWSP_GM int32_t *query_lengths;
    uint32_t sequence_count;
    // Prefix plans: sequences are these segments, and lengths are by position in the tree.
    const ptowsp_prefix_segment *segments;
    bool has_own_tiles;  // of segments, or by config.positions

    // Of the batch before it is cut: in BALANCED mode units are tiles.
    uint64_t tile_count, unit_count, merge_count, slot_count;
    uint64_t total, tile_cost_max, slot_cost_max;
    uint32_t slot_rows;
    uint64_t slotted_count;  // tiles of segments that are not whole
} pwsp_attention;

// A query tile: the KV that it sees, and the cost. Its first `sinks` tokens are the first of the
// sequence: see attention_positions.c.
typedef struct pwsp_query_tile {
    uint32_t begin, end;  // KV tokens
    uint32_t rows;
    uint32_t sinks;
    uint64_t rate;    // of a KV token
    bool is_slotted;  // its units have slots, even if it is not split
    bool is_empty;    // it sees nothing
} pwsp_query_tile;

// Checks a configuration, and fills in its defaults.
PWSP_INTERNAL ptowsp_status pwsp_attention_configure(const ptowsp_attention_config *config,
                                                     pwsp_attention *a, ptowsp_plan_info *info);

// The positions of a configuration; NULL without them, or if none of their arrays is there.
PWSP_INTERNAL const ptowsp_attention_positions *pwsp_positions_of(
    const ptowsp_attention_config *config);

// Checks which arrays of positions there are, and drops them if none is.
PWSP_INTERNAL ptowsp_status pwsp_positions_configure(ptowsp_attention_config *config,
                                                     ptowsp_plan_info *info);

// Check that positions are of all sequences of a batch, and the positions of one sequence.
PWSP_INTERNAL ptowsp_status pwsp_positions_count_check(const ptowsp_attention_config *config,
                                                       const ptowsp_attention_batch *batch,
                                                       ptowsp_plan_info *info);
PWSP_INTERNAL ptowsp_status pwsp_positions_check(const pwsp_attention *a, uint32_t sequence,
                                                 ptowsp_plan_info *info);

// The same as pwsp_attention_configure, then checks a batch under it, and counts.
PWSP_INTERNAL ptowsp_status pwsp_attention_prepare(const ptowsp_attention_batch *batch,
                                                   const ptowsp_attention_config *config,
                                                   pwsp_attention *a, ptowsp_plan_info *info);

// Checks that a plan has its arrays; and that it is of this configuration, as far as it can be seen.
PWSP_INTERNAL ptowsp_status pwsp_plan_arrays_check(const ptowsp_attention_plan *plan,
                                                   ptowsp_plan_info *info);
PWSP_INTERNAL ptowsp_status pwsp_plan_other_check(const pwsp_attention *a,
                                                  const ptowsp_attention_plan *plan,
                                                  ptowsp_plan_info *info);

// Proves the units, merges and lanes of a plan that has its arrays.
PWSP_INTERNAL ptowsp_status pwsp_plan_prove(const pwsp_attention *a,
                                            const ptowsp_attention_plan *plan,
                                            ptowsp_plan_info *info);

PWSP_INLINE uint64_t pwsp_mul_u64(uint64_t a, uint64_t b) {  // or UINT64_MAX
    uint64_t product;
    return pwsp_mul_fits(a, b, &product) ? product : UINT64_MAX;
}

PWSP_INLINE bool pwsp_attention_cuts_chunks(const pwsp_attention *a) {
    return a->config.mode == PTOWSP_ATTENTION_INVARIANT;
}

// Whether there is one tile per head, of all KV of the sequence, and it is cut at pages.
PWSP_INLINE bool pwsp_attention_is_decode(const pwsp_attention *a) {
    return !a->query_lengths && a->config.window == 0 && !pwsp_attention_cuts_chunks(a) &&
           !a->has_own_tiles && !a->config.shares_merges;
}

PWSP_INLINE uint32_t pwsp_query_length(const pwsp_attention *a, uint32_t sequence) {
    return a->query_lengths ? (uint32_t)a->query_lengths[sequence] : 1;
}

// Tokens of a sequence, or of a segment, in tiles. Mostly they are one tile, without a division.
PWSP_INLINE uint64_t pwsp_tiles_of(const pwsp_attention *a, uint32_t tokens) {
    return tokens <= a->tile_tokens ? tokens > 0 : pwsp_ceil_div_u64(tokens, a->tile_tokens);
}

// The query tiles of a sequence; 0 if it has no units.
PWSP_INLINE uint32_t pwsp_query_tiles(const pwsp_attention *a, uint32_t sequence) {
    if (a->segments) {
        const ptowsp_prefix_segment *segment = &a->segments[sequence];
        const bool has_kv = segment->kv_begin < segment->kv_end;
        return has_kv ? (uint32_t)pwsp_tiles_of(a, segment->token_count) : 0;
    }
    if (a->kv_lengths[sequence] == 0 && !a->has_own_tiles) {
        return 0;
    }
    if (!a->query_lengths) {
        return 1;
    }
    return (uint32_t)pwsp_tiles_of(a, (uint32_t)a->query_lengths[sequence]);
}

PWSP_INLINE uint64_t pwsp_tile_rate(const pwsp_attention *a, uint32_t rows) {
    return pwsp_sum_u64(a->token, pwsp_mul_u64(rows, a->row_token));
}

// A tile of a segment, or by positions.
PWSP_INTERNAL pwsp_query_tile pwsp_own_tile_at(const pwsp_attention *a, uint32_t sequence,
                                               uint32_t index);
PWSP_INTERNAL pwsp_query_tile pwsp_position_tile_at(const pwsp_attention *a, uint32_t sequence,
                                                    uint32_t index);

PWSP_INLINE pwsp_query_tile pwsp_query_tile_at(const pwsp_attention *a, uint32_t sequence,
                                               uint32_t index) {
    if (a->has_own_tiles) {
        return pwsp_own_tile_at(a, sequence, index);
    }
    const int64_t kv = a->kv_lengths[sequence], queries = pwsp_query_length(a, sequence);
    const int64_t before = (int64_t)index * a->tile_tokens;
    int64_t tokens = queries - before;
    tokens = tokens < a->tile_tokens ? tokens : a->tile_tokens;
    const int64_t first = kv - queries + before;  // below 0 for queries beyond the KV
    const int64_t unseen = a->config.window ? first - a->config.window + 1 : 0;
    pwsp_query_tile tile;
    tile.begin = unseen > 0 ? (uint32_t)unseen / a->grain * a->grain : 0;
    tile.end = (uint32_t)(a->config.is_causal ? first + tokens : kv);
    tile.rows = (uint32_t)tokens * a->config.group;
    tile.is_slotted = tile.is_empty = false;
    tile.sinks = 0;
    tile.rate = pwsp_tile_rate(a, tile.rows);
    PTOWSP_ASSERT(tokens > 0 && tile.begin < tile.end && tile.end <= (uint32_t)kv);
    return tile;
}

// The query heads per KV head of a configuration: given, by query_head_count, or 1.
PWSP_INLINE uint32_t pwsp_group_of(const ptowsp_attention_config *config) {
    const bool is_derived = config->group == 0 && config->kv_head_count > 0 &&
                            config->query_head_count > config->kv_head_count;
    const uint32_t derived = is_derived ? config->query_head_count / config->kv_head_count : 1;
    return config->group > 0 ? config->group : derived;
}

// Where a query token stands, in KV tokens from the first one on, and positions from one to the next.
typedef struct pwsp_position_place {
    double token;
    float stride;
} pwsp_position_place;

// The place of a query token of a batch that fits its configuration.
PWSP_INTERNAL pwsp_position_place pwsp_position_place_of(const ptowsp_attention_batch *batch,
                                                         const ptowsp_attention_config *config,
                                                         uint32_t sequence, uint32_t query);

// What batches within limits have at most, of one head: tiles, and pieces by a->chunk.
typedef struct pwsp_attention_most {
    uint64_t query_max;  // tokens of a sequence
    uint64_t tiles, pieces;
    bool cuts;  // whether a tile can have several pieces
} pwsp_attention_most;

// Checks limits and counts them under a configuration.
PWSP_INTERNAL ptowsp_status pwsp_attention_limits(const pwsp_attention *a,
                                                  const ptowsp_attention_limits *limits,
                                                  pwsp_attention_most *out_most,
                                                  ptowsp_plan_info *info);

// Sets lanes and bytes of sizes; refuses more units than a plan has.
PWSP_INTERNAL ptowsp_status pwsp_sizes_complete(const pwsp_attention *a,
                                                ptowsp_attention_sizes *sizes,
                                                ptowsp_plan_info *info);

// Writes the costs of a plan, which may have no lists of merges, and a table of its lanes.
PWSP_INTERNAL void pwsp_print_costs(const ptowsp_attention_plan *plan, ptowsp_output text);

// The bytes of all arrays of a plan; counts are below 2^32.
PWSP_INLINE uint64_t pwsp_sizes_bytes(const ptowsp_attention_sizes *sizes) {
    const uint64_t lanes = sizes->lane_count;
    return (sizes->unit_count + sizes->merge_count) * sizeof(ptowsp_work) + lanes * sizeof(double) +
           2 * (lanes + 1) * sizeof(uint32_t);
}

// Adds a tile, of one head, to the counts. Sums stay at UINT64_MAX once they are there.
PWSP_INTERNAL void pwsp_tile_count(pwsp_attention *a, const pwsp_query_tile *tile);

// Multiplies the counts, which are of one head, and checks them.
PWSP_INTERNAL ptowsp_status pwsp_counts_check(pwsp_attention *a, ptowsp_plan_info *info);

// The cost of a slot of a tile: at most PWSP_COST_MAX, which no lane has room for.
PWSP_INLINE uint64_t pwsp_slot_cost(const pwsp_attention *a, uint32_t rows) {
    return pwsp_min_u64(pwsp_mul_u64(rows, a->merged_row), PWSP_COST_MAX);
}

// In INVARIANT mode: the pieces of KV tokens [begin, end) of a tile, cut at the multiples of the chunk
// and after sinks.
PWSP_INLINE uint64_t pwsp_chunk_pieces(const pwsp_attention *a, const pwsp_query_tile *tile,
                                       uint32_t begin, uint32_t end) {
    PTOWSP_ASSERT(begin < end);
    uint64_t pieces = 0;
    if (tile->sinks > 0 && begin < tile->begin + tile->sinks) {
        begin = tile->begin + tile->sinks;
        pieces = 1;
        if (begin >= end) {
            return 1;
        }
    }
    return pieces + (end - 1) / a->chunk - begin / a->chunk + 1;
}

// In INVARIANT mode: where the piece ends that begins at kv, if the tile does not end before.
PWSP_INLINE uint64_t pwsp_chunk_end(const pwsp_attention *a, const pwsp_query_tile *tile,
                                    uint32_t kv) {
    const uint32_t window = tile->begin + tile->sinks;
    return kv < window ? window : (kv / a->chunk + 1) * a->chunk;
}

// In INVARIANT mode: where the last piece begins, or the last `count` of them; 0 if there are not more.
PWSP_INLINE uint64_t pwsp_chunk_last(const pwsp_attention *a, const pwsp_query_tile *tile,
                                     uint64_t count) {
    const uint32_t window = tile->begin + tile->sinks;
    const uint64_t pieces = pwsp_chunk_pieces(a, tile, tile->begin, tile->end);
    PTOWSP_ASSERT(count > 0);
    if (count >= pieces) {
        return 0;
    }
    return tile->sinks > 0 && count == pieces - 1
               ? window
               : ((tile->end - 1) / a->chunk - count + 1) * a->chunk;
}

// The KV tokens of a sequence that [begin, end) of a tile are written as, and the unit's flags for it.
typedef struct pwsp_kv_piece {
    uint32_t start, length, flags;
} pwsp_kv_piece;

// In BALANCED mode sinks are not among them: the first unit has them besides.
PWSP_INLINE pwsp_kv_piece pwsp_kv_piece_of(const pwsp_attention *a, const pwsp_query_tile *tile,
                                           uint32_t begin, uint32_t end) {
    pwsp_kv_piece piece = {begin, end - begin, 0};
    if (tile->sinks > 0 && begin == tile->begin) {
        const bool is_apart = tile->is_empty || !pwsp_attention_cuts_chunks(a);
        const uint32_t beside = is_apart ? tile->sinks : 0;
        piece.start = is_apart && !tile->is_empty ? begin + beside : 0;
        piece.length -= beside;
        piece.flags = is_apart ? PTOWSP_WORK_POSITIONS : 0;
    }
    return piece;
}

// What KV tokens [begin, end) of a tile cost, without a merge.
PWSP_INLINE uint64_t pwsp_range_cost(const pwsp_attention *a, const pwsp_query_tile *tile,
                                     uint32_t begin, uint32_t end) {
    const uint64_t pieces =
        pwsp_attention_cuts_chunks(a) ? pwsp_chunk_pieces(a, tile, begin, end) : UINT64_C(1);
    return pieces * a->unit + (end - begin) * tile->rate;
}

// The cost of the tile from kv on, in a lane that takes all of it. In INVARIANT mode the lane of the
// first piece has the merge.
PWSP_INLINE uint64_t pwsp_tile_cost(const pwsp_attention *a, const pwsp_query_tile *tile,
                                    uint32_t kv) {
    uint64_t cost = (tile->end - kv) * tile->rate, pieces = 1;
    if (pwsp_attention_cuts_chunks(a)) {
        pieces = pwsp_chunk_pieces(a, tile, kv, tile->end);
    }
    cost += pieces * a->unit;
    if (kv == tile->begin && (pieces > 1 || tile->is_slotted)) {
        cost += pieces * pwsp_slot_cost(a, tile->rows);
    }
    return cost;
}

PWSP_INLINE uint8_t pwsp_attention_tier(const pwsp_attention *a, uint32_t sequence) {
    if (!a->config.tiers) {
        return 0;
    }
    const uint32_t at = a->segments ? a->segments[sequence].first : sequence;
    if (a->kv_lengths[at] == 0) {
        return a->config.tiers[0].id;
    }
    return (uint8_t)ptowsp_tier_find(a->config.tiers, a->config.tier_count, a->kv_lengths[at]);
}

#endif
