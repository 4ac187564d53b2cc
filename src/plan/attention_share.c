// Merges that lanes share.
//
// The merge of a tile in s slots costs s * rows. Where one lane has all of it, a long sequence of many
// rows pays more for its merge than for its KV. So each of the n lanes that have parts of the tile
// merges some of its rows:
//
//      lane         l             l + 1         ...   l + n - 1
//      part         0             1                   n - 1
//      rows         [0, r / n)    [r / n, 2r / n)     ... r)          none for some lanes if n > r
//      costs        its KV + s * its rows
//
// The shares are known when n is. It is the least number of lanes that have room for all parts: a bound
// from below, then one attempt after another, each as the lanes will be filled.

#include "attention_fill.h"

PWSP_INTERNAL uint32_t pwsp_shared_end(const pwsp_attention *a, const pwsp_query_tile *tile,
                                       uint32_t kv, uint64_t room, pwsp_tile_share share) {
    const uint64_t price = pwsp_share_cost(a, tile, share);
    const uint64_t after = share.count - 1 - share.index;  // parts
    if (price > room) {
        return kv;
    }
    room -= price;
    if (after == 0) {
        return pwsp_range_cost(a, tile, kv, tile->end) <= room ? tile->end : kv;
    }
    if (pwsp_attention_cuts_chunks(a)) {
        return pwsp_chunks_end(a, tile, kv, room, pwsp_chunk_last(a, tile, after));
    }
    return room < a->unit ? kv : pwsp_piece_end(a, tile, kv, room - a->unit, after * a->piece_min);
}

// An attempt: with `count` lanes from f on, the cost for which the last of them has no room, and the KV
// from which that one is to take the rest. UINT64_MAX: the tile does not begin here, or lanes are too few.
typedef struct pwsp_share_attempt {
    uint64_t missing;
    uint32_t kv;
} pwsp_share_attempt;

static pwsp_share_attempt pwsp_share_try(const pwsp_attention *a, const pwsp_lane_fill *f,
                                         const pwsp_query_tile *tile, uint32_t count) {
    pwsp_tile_share share = {0, count};
    pwsp_share_attempt tried = {UINT64_MAX, tile->begin};
    for (uint32_t lane = f->lane; lane <= a->worker_last; lane++) {
        const uint64_t room = lane == f->lane ? f->room : pwsp_lane_room(a, f->time, lane);
        const uint32_t end = pwsp_shared_end(a, tile, tried.kv, room, share);
        if (end == tile->end) {
            tried.missing = 0;
            break;
        }
        if (end == tried.kv && share.index == 0) {
            break;
        }
        if (share.index == count - 1) {
            const uint64_t cost = pwsp_range_cost(a, tile, tried.kv, tile->end) +
                                  pwsp_share_cost(a, tile, share) - room;
            tried.missing = pwsp_min_u64(tried.missing, cost);
            if (!a->config.lane_speeds) {
                break;  // otherwise there may be a faster lane
            }
        }
        share.index += end > tried.kv;
        tried.kv = end;
    }
    return tried;
}

// With n lanes all rooms together, room + (n - 1) * time, hold the tile, its units and its merge.
PWSP_INTERNAL uint32_t pwsp_shared_lanes(const pwsp_attention *a, const pwsp_lane_fill *f,
                                         const pwsp_query_tile *tile) {
    const uint64_t lanes = a->worker_last - f->lane + 1;
    if (tile->rate == 0 || lanes < 2) {
        return 0;
    }
    const uint64_t slot_cost = pwsp_slot_cost(a, tile->rows);
    uint64_t cost = pwsp_range_cost(a, tile, tile->begin, tile->end), each = f->time;
    uint64_t most = (tile->end - tile->begin) / a->piece_min;
    if (pwsp_attention_cuts_chunks(a)) {
        most = pwsp_chunk_pieces(a, tile, tile->begin, tile->end);
        cost = pwsp_sum_u64(cost, pwsp_mul_u64(most, slot_cost));
    } else {
        if (each <= pwsp_sum_u64(a->unit, slot_cost)) {
            return 0;  // a lane more takes nothing off the others
        }
        each -= a->unit + slot_cost;
        cost = pwsp_sum_u64(cost, slot_cost);
    }
    most = pwsp_min_u64(most, lanes);
    uint64_t count = 1 + (cost > f->room ? pwsp_ceil_div_u64(cost - f->room, each) : 1);
    while (count <= most) {
        const pwsp_share_attempt tried = pwsp_share_try(a, f, tile, (uint32_t)count);
        if (tried.missing == 0) {
            return (uint32_t)count;
        }
        if (tried.missing == UINT64_MAX) {
            return 0;
        }
        // Half the number of lanes that take the rest, if each takes as much as the others did: shares of rows change with the
        // count, and the least count is wanted.
        const uint64_t taken = (tried.kv - tile->begin) * tile->rate / (count - 1);
        count += pwsp_max_u64(tried.missing / pwsp_max_u64(2 * taken, 1), 1);
    }
    return 0;
}
