// How far lanes get in a given time.
//
// Lanes are filled in order, each as far as its time allows; the cut of the last tile is rounded down
// to a page. So the largest cost is at most the time, if all of the batch fits.
//
//      room of the lane   |.......................................|
//      fill               [rest of a tile][tile][tile][ heads ][part] merge of the part
//
//      heads    the heads of a sequence are equal: room / cost of a head says how many fit
//      part     the first part of a tile also pays for the merge: slots * rows * per_merged_row. How
//               many slots depends on how many parts the lanes that follow need for the rest; so
//               the part is made shorter until the two agree
//
// Decode steps have a loop of their own, attention_decode.c.

#include "attention_fill.h"

typedef struct pwsp_filler {
    const pwsp_attention *a;
    pwsp_attention_writer *writer;  // NULL: only counts
    pwsp_lane_fill at;
    // The position: a tile of a head of a sequence, and in it the KV from which it is left.
    uint32_t sequence, head, index;
    bool is_inside;
    uint32_t kv;
    uint32_t tiles;         // of the sequence
    uint64_t head_cost;     // of all its tiles
    pwsp_query_tile tile;   // the first of them
    pwsp_tile_share share;  // the next of the tile that is open
    pwsp_attention_splits counts;
} pwsp_filler;

// -- tiles ----------------------------------------------------------------------------------------

// Tokens cost something, and the tile has two pieces at least.
PWSP_INTERNAL uint32_t pwsp_piece_end(const pwsp_attention *a, const pwsp_query_tile *tile,
                                      uint32_t kv, uint64_t room, uint64_t left) {
    const uint64_t page = a->config.page_size;
    PTOWSP_ASSERT(tile->rate > 0);
    if (tile->end - kv < left + a->piece_min) {
        return kv;
    }
    const uint64_t taken = pwsp_min_u64(room / tile->rate, tile->end - left - kv);
    const uint64_t end = (kv + taken) / page * page;
    const bool has_window = kv > tile->begin || end > kv + (uint64_t)tile->sinks;
    return end >= kv + a->piece_min && has_window ? (uint32_t)end : kv;
}

// The lanes after this one that `tokens` of a tile need, if they begin with it.
static uint64_t pwsp_lanes_needed(const pwsp_attention *a, const pwsp_lane_fill *f,
                                  const pwsp_query_tile *tile, uint64_t tokens) {
    const uint64_t page = a->config.page_size;
    uint64_t needed = 0;
    for (uint32_t lane = f->lane + 1; lane < a->config.lane_count; lane++) {
        const uint64_t room = pwsp_lane_room(a, f->time, lane);
        if (room < a->unit) {
            continue;
        }
        const uint64_t all = (room - a->unit) / tile->rate;
        const uint64_t most = all / page * page;
        needed++;
        if (all >= tokens) {
            return needed;
        }
        if (!a->config.lane_speeds) {
            return most == 0 ? PWSP_COST_MAX : needed + pwsp_ceil_div_u64(tokens - most, most);
        }
        tokens -= most;
    }
    return PWSP_COST_MAX;  // too few
}

PWSP_INTERNAL uint32_t pwsp_split_find(const pwsp_attention *a, const pwsp_lane_fill *f,
                                       const pwsp_query_tile *tile, uint32_t kv) {
    if (f->room < a->unit || tile->end - kv < 2 * a->piece_min || tile->rate == 0 ||
        f->lane == a->worker_last) {
        return kv;  // with nothing after it the last lane does not split, though it may not fit
    }
    const uint64_t room = f->room - a->unit;
    if (kv > tile->begin) {
        return pwsp_piece_end(a, tile, kv, room, a->piece_min);
    }
    const uint64_t slot_cost = pwsp_slot_cost(a, tile->rows);
    for (uint64_t slots = 2;;) {
        const uint64_t price = pwsp_mul_u64(slots, slot_cost);
        const uint32_t end =
            price < room ? pwsp_piece_end(a, tile, kv, room - price, a->piece_min) : kv;
        if (end == kv) {
            return kv;
        }
        const uint64_t needed = 1 + pwsp_lanes_needed(a, f, tile, tile->end - end);
        if (needed <= slots) {
            return end;
        }
        slots = needed;
    }
}

PWSP_INTERNAL uint32_t pwsp_chunks_end(const pwsp_attention *a, const pwsp_query_tile *tile,
                                       uint32_t kv, uint64_t room, uint64_t last) {
    const uint64_t next = pwsp_chunk_end(a, tile, kv);
    const uint64_t price = a->unit + (next - kv) * tile->rate;
    if (next > last || price > room) {
        return kv;
    }
    if (kv < tile->begin + tile->sinks) {
        return pwsp_chunks_end(a, tile, (uint32_t)next, room - price, last);
    }
    // Of a whole chunk, though the tile may have none: it may see less than one.
    const uint64_t chunk_cost = pwsp_sum_u64(a->unit, pwsp_mul_u64(a->chunk, tile->rate));
    PTOWSP_ASSERT(chunk_cost > 0);  // otherwise all fits
    const uint64_t more = (room - price) / chunk_cost;
    return (uint32_t)pwsp_min_u64(last, next + pwsp_min_u64(more, last / a->chunk) * a->chunk);
}

// In INVARIANT mode: the end of the last chunk that fits.
static uint32_t pwsp_chunks_find(const pwsp_filler *f, const pwsp_query_tile *tile, uint32_t kv) {
    const pwsp_attention *a = f->a;
    uint64_t price = 0;
    if (kv == tile->begin) {
        price =
            pwsp_mul_u64(pwsp_chunk_pieces(a, tile, kv, tile->end), pwsp_slot_cost(a, tile->rows));
    }
    const uint64_t last = pwsp_chunk_last(a, tile, 1);
    return price > f->at.room ? kv : pwsp_chunks_end(a, tile, kv, f->at.room - price, last);
}

// -- lanes ----------------------------------------------------------------------------------------

// Where the lane's part of the tile ends, which does not fit as a whole or is shared.
static uint32_t pwsp_fill_end(pwsp_filler *f, const pwsp_query_tile *tile, uint32_t kv) {
    const pwsp_attention *a = f->a;
    const bool is_shared = a->config.shares_merges && tile->rows <= UINT16_MAX;
    if (is_shared && !f->is_inside) {
        f->share.index = 0;
        // On the last line all must fit, shares of merges included: there tiles are not shared.
        f->share.count = f->at.time < a->total ? pwsp_shared_lanes(a, &f->at, tile) : 0;
        f->counts.shared += f->share.count > 0 ? pwsp_min_u64(f->share.count, tile->rows) - 1 : 0;
    }
    if (is_shared) {
        return f->share.count > 0 ? pwsp_shared_end(a, tile, kv, f->at.room, f->share) : kv;
    }
    return pwsp_attention_cuts_chunks(a) ? pwsp_chunks_find(f, tile, kv)
                                         : pwsp_split_find(a, &f->at, tile, kv);
}

// Writes the lane's part.
static void pwsp_fill_write(const pwsp_filler *f, const pwsp_query_tile *tile, uint32_t kv,
                            uint32_t end) {
    if (f->share.count > 0) {
        pwsp_write_share(f->writer, f->sequence, f->head, f->index, tile, kv, end, f->share);
    } else {
        pwsp_write_range(f->writer, f->sequence, f->head, f->index, tile, kv, end);
    }
}

// Takes the tile at the position, or as much as the lane has room for. True if it was all.
static bool pwsp_fill_tile(pwsp_filler *f) {
    const pwsp_attention *a = f->a;
    const pwsp_query_tile tile =
        f->index == 0 ? f->tile : pwsp_query_tile_at(a, f->sequence, f->index);
    const uint32_t kv = f->is_inside ? f->kv : tile.begin;
    uint64_t cost = pwsp_tile_cost(a, &tile, kv);
    uint32_t end = tile.end;
    if (f->share.count > 0 || cost > f->at.room) {
        end = pwsp_fill_end(f, &tile, kv);
        cost = f->share.count > 0
                   ? pwsp_range_cost(a, &tile, kv, tile.end) + pwsp_share_cost(a, &tile, f->share)
                   : cost;
    }
    if (f->writer && end > kv) {
        pwsp_fill_write(f, &tile, kv, end);
    }
    if (end == tile.end) {
        f->at.room -= cost;
        f->is_inside = false;
        f->share.count = 0;
        f->index++;
        if (f->index == f->tiles) {
            f->index = 0;
            f->head++;
        }
        return true;
    }
    if (end > kv) {
        f->at.room = 0;
        f->counts.splits++;
        f->counts.merges += !f->is_inside && !tile.is_slotted;
        f->is_inside = true;
        f->share.index++;
        f->kv = end;
    }
    return false;
}

// Moves to the next sequence that has units. False at the end.
static bool pwsp_fill_next(pwsp_filler *f) {
    const pwsp_attention *a = f->a;
    f->tiles = 0;
    while (f->tiles == 0) {
        f->sequence++;
        if (f->sequence >= a->sequence_count) {
            f->sequence = a->sequence_count;
            return false;
        }
        f->tiles = pwsp_query_tiles(a, f->sequence);
    }
    f->head = f->index = 0;
    // Field by field: a copy by wider loads would wait for the stores just made.
    const pwsp_query_tile first = pwsp_query_tile_at(a, f->sequence, 0);
    f->tile.begin = first.begin;
    f->tile.end = first.end;
    f->tile.rows = first.rows;
    f->tile.is_slotted = first.is_slotted;
    f->tile.is_empty = first.is_empty;
    f->tile.sinks = first.sinks;
    f->tile.rate = first.rate;
    f->head_cost = pwsp_tile_cost(a, &first, first.begin);
    for (uint32_t i = 1; i < f->tiles; i++) {
        const pwsp_query_tile tile = pwsp_query_tile_at(a, f->sequence, i);
        f->head_cost += pwsp_tile_cost(a, &tile, tile.begin);
    }
    return true;
}

// Fills a lane. False when the batch has ended.
static bool pwsp_fill_lane(pwsp_filler *f) {
    const uint32_t heads = f->a->config.kv_head_count;
    for (;;) {
        if (f->head == heads && !pwsp_fill_next(f)) {
            return false;
        }
        if (f->index == 0 && !f->is_inside) {
            const uint64_t left = heads - f->head;
            const uint64_t count =
                f->at.room >= left * f->head_cost ? left : f->at.room / f->head_cost;
            if (count > 0) {
                if (f->writer) {
                    pwsp_write_heads(f->writer, f->sequence, f->head, count, &f->tile);
                }
                f->at.room -= count * f->head_cost;
                f->head += (uint32_t)count;
                continue;
            }
        }
        if (!pwsp_fill_tile(f)) {
            return true;
        }
    }
}

PWSP_INTERNAL bool pwsp_attention_fill(const pwsp_attention *a, uint64_t time,
                                       pwsp_attention_writer *writer,
                                       pwsp_attention_splits *out_splits) {
    pwsp_filler f;
    memset(&f, 0, sizeof f);
    f.a = a;
    f.writer = writer;
    f.at.time = time;
    f.head = a->config.kv_head_count;  // before the first sequence
    f.sequence = UINT32_MAX;
    bool has_more = true;
    for (; f.at.lane < a->config.lane_count; f.at.lane++) {
        f.at.room = pwsp_lane_room(a, time, f.at.lane);
        if (has_more && (!a->config.lane_speeds || a->config.lane_speeds[f.at.lane] > 0)) {
            const uint64_t room = f.at.room;
            has_more = pwsp_fill_lane(&f);
            if (has_more && room == time && f.at.room == room) {
                break;  // a tile that does not fit the fastest lane fits no lane
            }
        }
        if (writer) {
            pwsp_write_lane(writer);
        } else if (!has_more) {
            break;
        }
    }
    *out_splits = f.counts;
    return !has_more;
}
