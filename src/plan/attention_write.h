// Writes an attention plan, lane by lane: whole heads, ranges of tiles, ends of lanes, in order.

#ifndef PWSP_ATTENTION_WRITE_H
#define PWSP_ATTENTION_WRITE_H

#include "attention.h"

typedef struct pwsp_attention_writer {
    const pwsp_attention *a;
    ptowsp_attention_plan *plan;
    PTOWSP_GM ptowsp_work *next;  // unit
    PTOWSP_GM ptowsp_work *next_merge;
    const PTOWSP_GM ptowsp_work *eight_last;  // up to here eight units have room; NULL: nowhere
    uint32_t merges, slots;
    uint32_t lane;
    uint64_t lane_cost;  // so far; without the merge that is open
    // The merge of the tile that the last range did not end, if any. It belongs to open_lane.
    bool is_open;
    uint32_t open_lane, open_slot;
    uint64_t open_cost;   // of that lane so far, if the lane has ended
    bool is_shared;       // the tile's merge is, and written apart
    uint32_t share_slot;  // its first slot
    uint64_t total;
    double cost_max;
} pwsp_attention_writer;

PWSP_INTERNAL pwsp_attention_writer pwsp_write_begin(const pwsp_attention *a,
                                                     ptowsp_attention_plan *plan);

// Writes the tiles of heads [head, head + count) of a sequence, which are not cut between lanes.
// `first` is the first tile of a head.
PWSP_INTERNAL void pwsp_write_heads(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                                    uint64_t count, const pwsp_query_tile *first);

// A lane is number `index` of the `count` that share a tile's merge; 0 of 0: it is not shared.
typedef struct pwsp_tile_share {
    uint32_t index, count;
} pwsp_tile_share;

// The rows that a lane merges: from `first` on, maybe none.
typedef struct pwsp_share_rows {
    uint32_t first, count;
} pwsp_share_rows;

PWSP_INLINE pwsp_share_rows pwsp_share_rows_of(const pwsp_query_tile *tile, pwsp_tile_share share) {
    const uint64_t rows = tile->rows;
    pwsp_share_rows mine;
    mine.first = (uint32_t)(rows * share.index / share.count);
    mine.count = (uint32_t)(rows * (share.index + 1) / share.count) - mine.first;
    return mine;
}

// The slots of a tile in `share.count` lanes.
PWSP_INLINE uint64_t pwsp_share_slots(const pwsp_attention *a, const pwsp_query_tile *tile,
                                      pwsp_tile_share share) {
    return pwsp_attention_cuts_chunks(a) ? pwsp_chunk_pieces(a, tile, tile->begin, tile->end)
                                         : share.count;
}

// The cost of a lane's share of the merge.
PWSP_INLINE uint64_t pwsp_share_cost(const pwsp_attention *a, const pwsp_query_tile *tile,
                                     pwsp_tile_share share) {
    return pwsp_mul_u64(pwsp_share_slots(a, tile, share),
                        pwsp_slot_cost(a, pwsp_share_rows_of(tile, share).count));
}

// Writes KV tokens [begin, end) of a tile. A tile comes in one or several ranges, in order.
PWSP_INTERNAL void pwsp_write_range(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                                    uint32_t index, const pwsp_query_tile *tile, uint32_t begin,
                                    uint32_t end);

// The same for a lane that has a share of the merge.
PWSP_INTERNAL void pwsp_write_share(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                                    uint32_t index, const pwsp_query_tile *tile, uint32_t begin,
                                    uint32_t end, pwsp_tile_share share);

// Completes the plan, after all lanes.
PWSP_INTERNAL void pwsp_write_end(pwsp_attention_writer *w);

// -- inlined by loops over lanes -------------------------------------------------------------------

// Notes the cost of a lane that is known.
PWSP_FORCE_INLINE void pwsp_write_cost(pwsp_attention_writer *w, uint32_t lane, uint64_t cost) {
    const uint32_t *speeds = w->a->config.lane_speeds;
    PTOWSP_ASSERT(!speeds || speeds[lane] > 0 || cost == 0);
    double value = (double)(int64_t)cost * w->a->grid;  // below 2^63, which converts faster
    if (speeds && cost > 0) {
        value /= (double)speeds[lane];
    }
    if (w->plan->lane_costs) {
        w->plan->lane_costs[lane] = value;
    }
    w->cost_max = value > w->cost_max ? value : w->cost_max;
    w->total += cost;
}

// The words of a unit, as they lie in memory. Descriptors are not built field by field, since a load
// of words stored just now in smaller pieces waits for the stores.
PWSP_FORCE_INLINE uint64_t pwsp_word_pair(uint32_t first, uint32_t second) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return (uint64_t)first << 32 | second;
#else
    return (uint64_t)second << 32 | first;
#endif
}

PWSP_FORCE_INLINE uint32_t pwsp_word_tag(uint32_t tier, uint32_t flags, uint32_t index) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return tier << 24 | flags << 16 | index;
#else
    return index << 16 | flags << 8 | tier;
#endif
}

PWSP_FORCE_INLINE void pwsp_write_words(PTOWSP_GM ptowsp_work *to, uint64_t a, uint64_t b,
                                        uint64_t c) {
    PTOWSP_GM char *bytes = (PTOWSP_GM char *)to;
    memcpy(bytes, &a, 8);
    memcpy(bytes + 8, &b, 8);
    memcpy(bytes + 16, &c, 8);
}

// The first words of the unit of a whole tile without a slot.
PWSP_FORCE_INLINE uint64_t pwsp_word_whole(uint32_t tier, uint32_t flags) {
    const uint32_t tag = pwsp_word_tag(tier, PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST | flags, 0);
    return pwsp_word_pair(PTOWSP_NO_SLOT, tag);
}

// Opens the merge of a tile: the slots that follow are its parts.
PWSP_FORCE_INLINE void pwsp_write_open(pwsp_attention_writer *w, uint32_t tag,
                                       uint64_t request_head) {
    pwsp_write_words(w->next_merge++, pwsp_word_pair(w->merges, tag), request_head,
                     pwsp_word_pair(w->slots, 0));
    w->merges++;
    w->is_open = true;
    w->open_lane = w->lane;
    w->open_slot = w->slots;
}

// Closes it: the number of its slots is known, and so its cost.
PWSP_FORCE_INLINE void pwsp_write_close(pwsp_attention_writer *w, uint64_t slot_cost) {
    const uint32_t slots = w->slots - w->open_slot;
    const uint64_t cost = slots * slot_cost;
    w->next_merge[-1].params[3] = slots;
    if (w->open_lane == w->lane) {
        w->lane_cost += cost;
    } else {
        pwsp_write_cost(w, w->open_lane, w->open_cost + cost);
    }
    w->is_open = false;
}

// Ends the lane, and begins the next.
PWSP_FORCE_INLINE void pwsp_write_lane(pwsp_attention_writer *w) {
    if (w->is_open && w->open_lane == w->lane) {
        w->open_cost = w->lane_cost;
    } else {
        pwsp_write_cost(w, w->lane, w->lane_cost);
    }
    w->lane++;
    w->lane_cost = 0;
    w->plan->unit_begin[w->lane] = (uint32_t)(w->next - w->plan->units);
    w->plan->merge_begin[w->lane] = w->merges;
}

// Writes one piece of a tile, with a slot unless it is all of a tile that needs none.
PWSP_FORCE_INLINE void pwsp_write_piece(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                                        uint32_t index, uint32_t tier, uint32_t flags,
                                        bool is_slotted, uint32_t begin, uint32_t length) {
    const uint64_t request_head = pwsp_word_pair(sequence, head);
    uint32_t slot = PTOWSP_NO_SLOT;
    if (is_slotted) {
        if ((flags & PTOWSP_WORK_FIRST) && !w->is_shared) {
            pwsp_write_open(w, pwsp_word_tag(tier, 0, index), request_head);
        }
        slot = w->slots++;
    }
    pwsp_write_words(w->next++, pwsp_word_pair(slot, pwsp_word_tag(tier, flags, index)),
                     request_head, pwsp_word_pair(begin, length));
}

// Writes the one tile of each of `count` heads, as a whole and without slots. With several heads it
// writes eight at a time, also where fewer are asked for, as long as the plan has room for them: how
// often a shorter loop goes round cannot be foreseen, and surplus units are overwritten later.
PWSP_FORCE_INLINE void pwsp_write_wholes(pwsp_attention_writer *w, uint64_t slot_tag,
                                         uint64_t request_head, uint64_t begin_length,
                                         uint64_t count) {
    typedef uint64_t pair __attribute__((vector_size(16)));
    PTOWSP_GM ptowsp_work *unit = w->next, *last = unit + count;
    const uint64_t one = pwsp_word_pair(0, 1);
    w->next = last;
    if (last <= w->eight_last) {
        pair first = {slot_tag, request_head}, third = {request_head + one, begin_length};
        const pair second = {begin_length, slot_tag}, step = {0, 2 * one},
                   step_third = {2 * one, 0};
        do {
#pragma GCC unroll 4
            for (uint32_t i = 0; i < 4; i++, unit += 2) {
                PTOWSP_GM char *to = (PTOWSP_GM char *)unit;
                memcpy(to, &first, 16);
                memcpy(to + 16, &second, 16);
                memcpy(to + 32, &third, 16);
                first += step;
                third += step_third;
            }
        } while (unit < last);
        return;
    }
    for (; unit < last; unit++, request_head += one) {
        pwsp_write_words(unit, slot_tag, request_head, begin_length);
    }
}

#endif
