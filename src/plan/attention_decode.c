// Filling and writing the lanes of decode steps, in one loop.
//
// There all KV of a head is one tile, and all tiles have the same rate. Positions are costs from the
// beginning of a sequence, so a lane is found by adding its room to where the lane before it ended:
//
//      spot                              reach = spot + room
//      |                                 |
//      [  head  ][  head  ][  head  ][  head  ]      reach / cost of a head: heads that the lane ends
//                                    [price][pages]  rest / cost of a page: the part that follows
//
// Each lane depends on the one before it, so this chain of operations sets the time of a plan. Both the
// remainder and the inverse of a page's cost keep it short, and the costs of lanes are computed beside
// it. The position and the writer are in registers, as all functions are inlined into two loops: one
// counts, one writes as well.

#include "attention_fill.h"
#include "count.h"

typedef struct pwsp_decode {
    const pwsp_attention *a;
    pwsp_attention_writer *writer;  // NULL: only counts
    uint64_t rate;
    pwsp_wide_divisor by_page_cost;
    pwsp_divisor by_page;
    uint64_t slot_cost;
    uint64_t price;  // of the first of two parts, beside its tokens
    bool is_plain;   // lanes are alike, and tokens cost something
    uint64_t time;
    uint64_t along;  // tokens that a lane has time for which goes on with a head
    uint32_t lane;
    // The position: in a head of a sequence the KV from which it remains. All have 64 bits, since words
    // are made of them: a load that is wider than the store before waits for it.
    uint64_t sequence, head, kv, length;
    uint64_t spot;                   // the same as a cost
    uint64_t head_cost, heads_cost;  // of the sequence
    uint64_t tier;                   // of the sequence, and
    uint64_t whole, all_kv;  // the first and the last words of its whole heads, as they are written
    uint64_t splits, merges;
} pwsp_decode;

// Moves to the next sequence that has KV. False at the end.
PWSP_FORCE_INLINE bool pwsp_decode_next(pwsp_decode *d) {
    const pwsp_attention *a = d->a;
    do {
        d->sequence++;
        if (d->sequence >= a->sequence_count) {
            return false;
        }
        d->length = (uint32_t)a->kv_lengths[d->sequence];
    } while (d->length == 0);
    d->head = 0;
    d->spot = 0;
    d->head_cost = a->unit + d->length * d->rate;
    d->heads_cost = a->config.kv_head_count * d->head_cost;
    d->all_kv = pwsp_word_pair(0, (uint32_t)d->length);
    if (d->writer && a->config.tiers) {
        d->tier = pwsp_attention_tier(a, (uint32_t)d->sequence);
        d->whole = pwsp_word_whole((uint32_t)d->tier, 0);
    }
    return true;
}

PWSP_FORCE_INLINE void pwsp_decode_write_part(const pwsp_decode *d, uint32_t flags, uint64_t kv,
                                              uint64_t end) {
    pwsp_write_piece(d->writer, (uint32_t)d->sequence, (uint32_t)d->head, 0, (uint32_t)d->tier,
                     flags, true, (uint32_t)kv, (uint32_t)(end - kv));
}

// Takes what is left of a head, and whole heads after it: all before `head_end`.
PWSP_FORCE_INLINE void pwsp_decode_take(pwsp_decode *d, uint64_t head_end) {
    pwsp_attention_writer *w = d->writer;
    if (w) {
        const bool is_part = d->kv > 0;
        if (is_part) {
            pwsp_decode_write_part(d, PTOWSP_WORK_LAST, d->kv, d->length);
            pwsp_write_close(w, d->slot_cost);
        }
        const uint64_t head = d->head + is_part;
        pwsp_write_wholes(w, d->whole, pwsp_word_pair((uint32_t)d->sequence, (uint32_t)head),
                          d->all_kv, head_end - head);
    }
    d->head = head_end;
    d->kv = 0;
}

// Moves into the head that does not fit what the lane has left, which ends at `reach`, if the lane takes
// a part of it. Lanes that go on with a head have all their time for it. Nearly always the lane after
// one that begins a head can take the rest, so that there are two parts.
PWSP_FORCE_INLINE void pwsp_decode_cut(pwsp_decode *d, uint64_t room, uint64_t reach) {
    const pwsp_attention *a = d->a;
    const uint64_t least = a->piece_min, page = a->config.page_size, kv = d->kv;
    const bool has_pieces = d->length - kv >= 2 * least && d->lane < a->worker_last;
    uint64_t end = kv;
    if (kv > 0 && d->is_plain) {
        const uint64_t last = pwsp_min_u64(kv + d->along, d->length - least);
        end = pwsp_divide((uint32_t)last, d->by_page) * page;
        end = has_pieces && end >= kv + least ? end : kv;
    } else if (d->is_plain) {
        const uint64_t left = reach - d->spot;
        if (left <= d->price || !has_pieces) {
            return;
        }
        const uint64_t pages = pwsp_divide((uint32_t)(d->length - least), d->by_page);
        uint64_t over, taken = pwsp_wide_divide(left - d->price, &d->by_page_cost, &over);
        if (PWSP_UNLIKELY(taken > pages)) {
            over += (taken - pages) * d->by_page_cost.by;
            taken = pages;
        }
        end = taken * page;
        if (end < least) {
            return;
        }
        if (a->unit + (d->length - end) * d->rate <= d->time) {
            d->kv = end;
            d->spot = reach - d->price - over;  // spot + end * rate, but known earlier
            return;
        }
    }
    if (!d->is_plain || kv == 0) {
        const uint32_t length = (uint32_t)d->length;
        const pwsp_query_tile tile = {0, length, a->slot_rows, 0, d->rate, false, false};
        const pwsp_lane_fill lane = {d->time, d->lane, kv > 0 ? room : reach - d->spot};
        end = pwsp_split_find(a, &lane, &tile, (uint32_t)kv);
    }
    d->spot += (end - kv) * d->rate;
    d->kv = end;
}

// Fills a lane that has `room`. False when the batch has ended, *out_cost is the cost.
PWSP_FORCE_INLINE bool pwsp_decode_lane(pwsp_decode *d, uint64_t room, uint64_t *out_cost) {
    uint64_t reach = d->spot + room;
    while (reach >= d->heads_cost) {
        pwsp_decode_take(d, d->a->config.kv_head_count);
        reach -= d->heads_cost;
        if (!pwsp_decode_next(d)) {
            *out_cost = room - reach;
            return false;
        }
    }
    if (reach >= (d->head + 1) * d->head_cost) {
        d->spot = reach - reach % d->head_cost;
        pwsp_decode_take(d, reach / d->head_cost);
    }
    const uint64_t kv = d->kv, spot = d->spot;
    *out_cost = kv > 0 ? 0 : room - (reach - spot);
    pwsp_decode_cut(d, room, reach);
    if (d->kv > kv) {
        if (d->writer) {
            pwsp_decode_write_part(d, kv == 0 ? PTOWSP_WORK_FIRST : 0, kv, d->kv);
        }
        *out_cost += d->a->unit + d->spot - spot;
        d->splits++;
        d->merges += kv == 0;
    }
    return true;
}

PWSP_FORCE_INLINE bool pwsp_decode_lanes(const pwsp_attention *a, uint64_t time,
                                         pwsp_attention_writer *writer,
                                         pwsp_attention_splits *out_splits) {
    const uint64_t rate = a->token + a->slot_rows * a->row_token;
    const uint64_t slot_cost = pwsp_slot_cost(a, a->slot_rows);
    const uint32_t page = a->config.page_size;
    pwsp_decode d = {a,
                     writer,
                     rate,
                     pwsp_wide_divisor_make(pwsp_max_u64(pwsp_mul_u64(rate, page), 1)),
                     pwsp_divisor_make(page),
                     slot_cost,
                     a->unit + 2 * slot_cost,
                     !a->config.lane_speeds && rate > 0,
                     time,
                     time > a->unit && rate > 0 ? (time - a->unit) / rate : 0,
                     0,
                     UINT64_MAX,
                     0,
                     0,
                     0,
                     0,
                     0,
                     0,
                     0,
                     pwsp_word_whole(0, 0),
                     0,
                     0,
                     0};
    bool has_more = pwsp_decode_next(&d);
    for (; d.lane < a->config.lane_count; d.lane++) {
        uint64_t cost = 0;
        if (has_more && (!a->config.lane_speeds || a->config.lane_speeds[d.lane] > 0)) {
            const uint64_t room = pwsp_lane_room(a, time, d.lane);
            has_more = pwsp_decode_lane(&d, room, &cost);
            if (has_more && room == time && cost == 0) {
                break;  // a tile that does not fit the fastest lane fits no lane
            }
        }
        if (writer) {
            writer->lane_cost = cost;
            pwsp_write_lane(writer);
        } else if (!has_more) {
            break;
        }
    }
    out_splits->splits = d.splits;
    out_splits->merges = d.merges;
    out_splits->shared = 0;
    return !has_more;
}

PWSP_INTERNAL bool pwsp_decode_fill(const pwsp_attention *a, uint64_t time,
                                    pwsp_attention_writer *writer,
                                    pwsp_attention_splits *out_splits) {
    PTOWSP_ASSERT(pwsp_attention_is_decode(a) && a->tile_count > 0);
    if (!writer) {
        return pwsp_decode_lanes(a, time, NULL, out_splits);
    }
    pwsp_attention_writer local = *writer;
    const bool fits = pwsp_decode_lanes(a, time, &local, out_splits);
    *writer = local;
    return fits;
}
