// Filling and writing the lanes of decode steps, in one loop.
//
// There all KV of a head is one tile, and all tiles have the same rate. So of a sequence a lane takes
//
//      room / cost of a head               whole heads, the first may go on from the lane before
//      (room - merge) / cost of a page     pages of the head that follows
//
// The divisors of the second line are those of all lanes, so their quotients come from
// multiplications; the first quotient is small, which is when processors divide fast. The position is
// in registers, as all functions are inlined into two loops: one counts, one writes as well.

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
    uint32_t lane;
    uint64_t room;  // what is left of it
    // The position: in a head of a sequence the KV from which it is left.
    uint32_t sequence, head, kv, length;
    uint64_t head_cost;
    uint32_t tier;           // of the sequence, and
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
    d->head_cost = a->unit + d->length * d->rate;
    d->all_kv = pwsp_word_pair(0, d->length);
    if (d->writer && a->config.tiers) {
        d->tier = pwsp_attention_tier(a, d->sequence);
        d->whole = pwsp_word_whole(d->tier, 0);
    }
    return true;
}

// Takes what is left of a head, and whole heads after it: `count` together.
PWSP_FORCE_INLINE void pwsp_decode_take(pwsp_decode *d, uint32_t count) {
    pwsp_attention_writer *w = d->writer;
    if (w) {
        const bool is_part = d->kv > 0;
        w->lane_cost += count * d->head_cost - d->kv * d->rate;
        if (is_part) {
            pwsp_write_piece(w, d->sequence, d->head, 0, d->tier, PTOWSP_WORK_LAST, true, d->kv,
                             d->length - d->kv);
            pwsp_write_close(w, d->slot_cost);
        }
        pwsp_write_wholes(w, d->whole, pwsp_word_pair(d->sequence, d->head + is_part), d->all_kv,
                          count - is_part);
    }
    d->head += count;
    d->kv = 0;
}

// Where the lane's part of the head ends that does not fit; d->kv for no part. Nearly always the next
// lane can take the rest, so that there are two parts.
PWSP_FORCE_INLINE uint32_t pwsp_decode_end(const pwsp_decode *d) {
    const pwsp_attention *a = d->a;
    if (d->kv == 0 && d->is_plain) {
        if (d->room <= d->price || d->length < 2 * a->piece_min || d->lane == a->worker_last) {
            return 0;
        }
        const uint32_t pages = pwsp_divide(d->length - (uint32_t)a->piece_min, d->by_page);
        const uint64_t taken = pwsp_wide_divide(d->room - d->price, &d->by_page_cost);
        const uint32_t end = (uint32_t)pwsp_min_u64(taken, pages) * a->config.page_size;
        if (end < a->piece_min) {
            return 0;
        }
        if (a->unit + (d->length - end) * d->rate <= d->time) {
            return end;
        }
    }
    const pwsp_query_tile tile = {0, d->length, a->slot_rows, 0, d->rate, false, false};
    const pwsp_lane_fill lane = {d->time, d->lane, d->room};
    return pwsp_split_find(a, &lane, &tile, d->kv);
}

// Fills a lane, and leaves what it has room for. False when the batch has ended.
PWSP_FORCE_INLINE bool pwsp_decode_lane(pwsp_decode *d) {
    const uint32_t heads = d->a->config.kv_head_count;
    uint64_t open;  // what an open head does not cost any more
    for (;;) {
        if (d->head == heads && !pwsp_decode_next(d)) {
            return false;
        }
        open = d->kv * d->rate;
        const uint64_t all = (heads - d->head) * d->head_cost - open;
        if (all > d->room) {
            break;
        }
        d->room -= all;
        pwsp_decode_take(d, heads - d->head);
    }
    if (d->room + open >= d->head_cost) {
        const uint64_t count = (d->room + open) / d->head_cost;
        d->room += open - count * d->head_cost;
        pwsp_decode_take(d, (uint32_t)count);
    }
    const uint32_t end = pwsp_decode_end(d);
    if (end > d->kv) {
        pwsp_attention_writer *w = d->writer;
        if (w) {
            w->lane_cost += d->a->unit + (end - d->kv) * d->rate;
            pwsp_write_piece(w, d->sequence, d->head, 0, d->tier,
                             d->kv == 0 ? PTOWSP_WORK_FIRST : 0, true, d->kv, end - d->kv);
        }
        d->splits++;
        d->merges += d->kv == 0;
        d->kv = end;
        d->room = 0;
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
                     0,
                     0,
                     UINT32_MAX,
                     a->config.kv_head_count,
                     0,
                     0,
                     0,
                     0,
                     pwsp_word_whole(0, 0),
                     0,
                     0,
                     0};
    bool has_more = true;
    for (; d.lane < a->config.lane_count; d.lane++) {
        if (has_more && (!a->config.lane_speeds || a->config.lane_speeds[d.lane] > 0)) {
            const uint64_t room = d.room = pwsp_lane_room(a, time, d.lane);
            has_more = pwsp_decode_lane(&d);
            if (has_more && room == time && d.room == room) {
                break;  // what does not fit the fastest lane, fits none
            }
        }
        if (writer) {
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
    return writer ? pwsp_decode_lanes(a, time, writer, out_splits)
                  : pwsp_decode_lanes(a, time, NULL, out_splits);
}
