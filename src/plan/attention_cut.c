// Where the lanes' shares end.
//
// All decisions follow from one number, the time: what the cost of a lane may be. Lanes are filled in
// order, each as far as its time allows; the cut of the last tile is rounded down to a page. So the
// largest cost is at most the time, if all of the batch fits; and the least time in which it fits is
// nearly the optimum, since a lane that stops earlier never leaves less to the others.
//
//      room of the lane   |.......................................|
//      fill               [rest of a tile][tile][tile][ heads ][part] merge of the part
//
//      heads    the heads of a sequence are equal: room / cost of a head says how many fit
//      part     the first part of a tile also pays for the merge: slots * rows * per_merged_row. How
//               many slots depends on how many parts the lanes that follow need for the rest; so
//               the part is made shorter until the two agree
//
// The time is found by trying. The first attempt is what the batch costs with a split at every lane,
// plus half a page of rounding, over all lanes; with large batches it fits nearly always, and is a
// tenth of a percent from the optimum. Where it does not fit it grows; where the batch is small,
// bisection is cheap and decides.

#include "attention_cut.h"

#define PWSP_SHARE_BITS 31

typedef struct pwsp_filler {
    const pwsp_attention *a;
    pwsp_attention_writer *writer;  // NULL: only counts
    uint64_t time;
    uint32_t lane;
    uint64_t room;
    // The position: a tile of a head of a sequence, and in it the KV from which it is left.
    uint32_t sequence, head, index;
    bool is_inside;
    uint32_t kv;
    uint32_t tiles;        // of the sequence
    uint64_t head_cost;    // of all its tiles
    pwsp_query_tile tile;  // the first of them
    uint64_t splits, merges;
} pwsp_filler;

// What a lane may cost: its speed's share of the time.
static uint64_t pwsp_lane_room(const pwsp_attention *a, uint64_t time, uint32_t lane) {
    if (!a->config.lane_speeds) {
        return time;
    }
    const uint64_t share =
        ((uint64_t)a->config.lane_speeds[lane] << PWSP_SHARE_BITS) / a->speed_max;
    const uint64_t low = time & ((UINT64_C(1) << PWSP_SHARE_BITS) - 1);
    return (time >> PWSP_SHARE_BITS) * share + (low * share >> PWSP_SHARE_BITS);
}

// -- tiles ----------------------------------------------------------------------------------------

// The end of what the lane can take of a tile from kv on, rounded down to a page, if `room` is for
// its KV alone; kv for nothing.
static uint32_t pwsp_piece_end(const pwsp_attention *a, const pwsp_query_tile *tile, uint32_t kv,
                               uint64_t room) {
    const uint64_t page = a->config.page_size;
    if (tile->rate == 0 || tile->end - kv < 2 * a->piece_min) {
        return kv;
    }
    const uint64_t taken = pwsp_min_u64(room / tile->rate, tile->end - a->piece_min - kv);
    const uint64_t end = (kv + taken) / page * page;
    return end >= kv + a->piece_min ? (uint32_t)end : kv;
}

// The lanes after this one that `tokens` of a tile need, if they begin with it.
static uint64_t pwsp_lanes_needed(const pwsp_filler *f, const pwsp_query_tile *tile,
                                  uint64_t tokens) {
    const pwsp_attention *a = f->a;
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

// Where the lane's part of a tile ends that does not fit as a whole; kv for no part.
static uint32_t pwsp_split_find(const pwsp_filler *f, const pwsp_query_tile *tile, uint32_t kv) {
    const pwsp_attention *a = f->a;
    if (f->room < a->unit || tile->end - kv < 2 * a->piece_min || tile->rate == 0 ||
        f->lane == a->worker_last) {
        return kv;  // with nothing after it the last lane does not split, though it may not fit
    }
    const uint64_t room = f->room - a->unit;
    if (kv > tile->begin) {
        return pwsp_piece_end(a, tile, kv, room);
    }
    const uint64_t slot_cost = pwsp_slot_cost(a, tile->rows);
    for (uint64_t slots = 2;;) {
        const uint64_t price = pwsp_mul_u64(slots, slot_cost);
        const uint32_t end = price < room ? pwsp_piece_end(a, tile, kv, room - price) : kv;
        if (end == kv) {
            return kv;
        }
        const uint64_t needed = 1 + pwsp_lanes_needed(f, tile, tile->end - end);
        if (needed <= slots) {
            return end;
        }
        slots = needed;
    }
}

// The same in INVARIANT mode: the end of the last chunk that fits.
static uint32_t pwsp_chunks_find(const pwsp_filler *f, const pwsp_query_tile *tile, uint32_t kv) {
    const pwsp_attention *a = f->a;
    uint64_t price = 0;
    if (kv == tile->begin) {
        price = pwsp_mul_u64(pwsp_chunk_pieces(a, kv, tile->end), pwsp_slot_cost(a, tile->rows));
    }
    const uint64_t next = (kv / a->chunk + 1) * a->chunk;
    if (next >= tile->end) {
        return kv;  // one piece is left
    }
    price = pwsp_sum_u64(price, a->unit + (next - kv) * tile->rate);
    if (price > f->room) {
        return kv;
    }
    // Of a whole chunk, though the tile may have none: it may see less than one.
    const uint64_t chunk_cost = pwsp_sum_u64(a->unit, pwsp_mul_u64(a->chunk, tile->rate));
    const uint64_t last = (tile->end - 1) / a->chunk * a->chunk;
    PTOWSP_ASSERT(chunk_cost > 0);  // otherwise all fits
    const uint64_t more = (f->room - price) / chunk_cost;
    return (uint32_t)pwsp_min_u64(last, next + pwsp_min_u64(more, last / a->chunk) * a->chunk);
}

// -- lanes ----------------------------------------------------------------------------------------

// Takes the tile at the position, or what the lane has room for. True if it was all.
static bool pwsp_fill_tile(pwsp_filler *f) {
    const pwsp_attention *a = f->a;
    const pwsp_query_tile tile =
        f->index == 0 ? f->tile : pwsp_query_tile_at(a, f->sequence, f->index);
    const uint32_t kv = f->is_inside ? f->kv : tile.begin;
    const uint64_t cost = pwsp_tile_cost(a, &tile, kv);
    uint32_t end = tile.end;
    if (cost > f->room) {
        end = pwsp_attention_cuts_chunks(a) ? pwsp_chunks_find(f, &tile, kv)
                                            : pwsp_split_find(f, &tile, kv);
    }
    if (f->writer && end > kv) {
        pwsp_write_range(f->writer, f->sequence, f->head, f->index, &tile, kv, end);
    }
    if (end == tile.end) {
        f->room -= cost;
        f->is_inside = false;
        f->index++;
        if (f->index == f->tiles) {
            f->index = 0;
            f->head++;
        }
        return true;
    }
    if (end > kv) {
        f->room = 0;
        f->splits++;
        f->merges += !f->is_inside && !tile.is_slotted;
        f->is_inside = true;
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
    // Field by field: a copy by wider loads would wait for what was stored just now.
    const pwsp_query_tile first = pwsp_query_tile_at(a, f->sequence, 0);
    f->tile.begin = first.begin;
    f->tile.end = first.end;
    f->tile.rows = first.rows;
    f->tile.is_slotted = first.is_slotted;
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
    const uint32_t heads = f->a->config.head_count;
    for (;;) {
        if (f->head == heads && !pwsp_fill_next(f)) {
            return false;
        }
        if (f->index == 0 && !f->is_inside) {
            const uint64_t left = heads - f->head;
            const uint64_t count = f->room >= left * f->head_cost ? left : f->room / f->head_cost;
            if (count > 0) {
                if (f->writer) {
                    pwsp_write_heads(f->writer, f->sequence, f->head, count, &f->tile);
                }
                f->room -= count * f->head_cost;
                f->head += (uint32_t)count;
                continue;
            }
        }
        if (!pwsp_fill_tile(f)) {
            return true;
        }
    }
}

// As pwsp_fill_lane for decode steps, with all that changes in registers. Per lane: one
// division for heads, one for tokens, one for pages.
static bool pwsp_fill_decode(pwsp_filler *f) {
    const pwsp_attention *a = f->a;
    const PTOWSP_GM int32_t *lengths = a->kv_lengths;
    const uint32_t count = a->sequence_count, heads = a->config.head_count;
    const uint64_t rate = f->tile.rate, unit = a->unit, piece_min = a->piece_min;
    const uint64_t price = unit + 2 * pwsp_slot_cost(a, f->tile.rows);
    uint64_t room = f->room, head_cost = f->head_cost;
    uint32_t sequence = f->sequence, head = f->head, kv = f->is_inside ? f->kv : 0;
    uint32_t length = f->tile.end;
    bool has_more = true;
    for (;;) {
        if (head == heads) {
            do {
                sequence++;
            } while (sequence < count && lengths[sequence] == 0);
            if (sequence >= count) {
                has_more = false;
                break;
            }
            length = (uint32_t)lengths[sequence];
            head = 0;
            head_cost = unit + length * rate;
        }
        const uint64_t all = (heads - head) * head_cost - kv * rate;
        uint64_t taken = heads - head;
        if (all <= room) {
            room -= all;
        } else {
            const uint64_t more = kv * rate;  // what an open tile does not cost any more
            if (room + more < head_cost) {
                taken = 0;
            } else {
                taken = (room + more) / head_cost;
                room = room + more - taken * head_cost;
            }
        }
        if (taken > 0) {
            if (f->writer) {
                f->tile.end = length;
                if (kv > 0) {
                    pwsp_write_range(f->writer, sequence, head, 0, &f->tile, kv, length);
                }
                if (taken > (kv > 0)) {
                    pwsp_write_heads(f->writer, sequence, head + (kv > 0), taken - (kv > 0),
                                     &f->tile);
                }
            }
            head += (uint32_t)taken;
            kv = 0;
            if (head == heads) {
                continue;
            }
        }
        // The tile does not fit. Nearly always the next lane can take the rest of it.
        f->tile.end = length;
        uint32_t end = kv;
        if (kv == 0 && room >= price && f->lane < a->worker_last) {
            end = pwsp_piece_end(a, &f->tile, 0, room - price);
            if (end > 0 && (a->config.lane_speeds || unit + (length - end) * rate > f->time)) {
                f->room = room;
                end = pwsp_split_find(f, &f->tile, 0);
            }
        } else if (kv > 0) {
            f->room = room;
            end = pwsp_split_find(f, &f->tile, kv);
        }
        if (end > kv) {
            if (f->writer) {
                pwsp_write_range(f->writer, sequence, head, 0, &f->tile, kv, end);
            }
            f->splits++;
            f->merges += kv == 0;
            kv = end;
            room = 0;
        }
        break;
    }
    PTOWSP_ASSERT(kv == 0 || (kv >= piece_min && kv < length));
    (void)piece_min;
    f->room = room;
    f->sequence = sequence;
    f->head = head;
    f->head_cost = head_cost;
    f->is_inside = kv > 0;
    f->kv = kv;
    f->tile.end = length;
    return has_more;
}

// Fills all lanes. False if the batch does not fit.
static bool pwsp_fill(const pwsp_attention *a, uint64_t time, pwsp_attention_writer *writer,
                      pwsp_attention_cut *cut) {
    pwsp_filler f;
    memset(&f, 0, sizeof f);
    f.a = a;
    f.writer = writer;
    f.time = time;
    f.head = a->config.head_count;  // before the first sequence
    f.sequence = UINT32_MAX;
    const bool is_decode = pwsp_attention_is_decode(a) && a->tile_count > 0;
    if (is_decode) {
        f.tile.rows = a->slot_rows;
        f.tile.rate = a->token + a->slot_rows * a->row_token;
    }
    bool has_more = true;
    for (f.lane = 0; f.lane < a->config.lane_count; f.lane++) {
        f.room = pwsp_lane_room(a, time, f.lane);
        if (has_more && (!a->config.lane_speeds || a->config.lane_speeds[f.lane] > 0)) {
            const uint64_t room = f.room;
            has_more = is_decode ? pwsp_fill_decode(&f) : pwsp_fill_lane(&f);
            if (has_more && room == time && f.room == room) {
                break;  // what does not fit the fastest lane, fits none
            }
        }
        if (writer) {
            pwsp_write_lane(writer);
        } else if (!has_more) {
            break;
        }
    }
    cut->time = time;
    cut->unit_count = a->unit_count;
    cut->merge_count = a->merge_count;
    cut->slot_count = a->slot_count;
    if (!pwsp_attention_cuts_chunks(a)) {
        cut->unit_count += f.splits;
        cut->merge_count = a->slotted_count + f.merges;
        cut->slot_count = a->slotted_count + f.splits + f.merges;
    }
    return !has_more;
}

// -- the time -------------------------------------------------------------------------------------

// The time that `cost` takes if all lanes are full, rounded up.
static uint64_t pwsp_time_of(const pwsp_attention *a, uint64_t cost) {
    uint64_t sum = a->speed_sum, most = a->speed_max;
    for (; sum > INT32_MAX; sum >>= 1) {
        most >>= 1;  // keeps 15 bits, as there are at most 2^16 lanes
    }
    return cost / sum * most + pwsp_ceil_div_u64(cost % sum * most, sum);
}

static uint64_t pwsp_square_root(uint64_t x) {
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit > 0; bit >>= 1) {
        root += (root + bit) * (root + bit) <= x ? bit : 0;
    }
    return root;
}

PWSP_INTERNAL uint64_t pwsp_attention_cut_least(const pwsp_attention *a) {
    return pwsp_time_of(a, a->total);
}

// The time to try first.
static uint64_t pwsp_time_guess(const pwsp_attention *a) {
    const uint64_t low = pwsp_attention_cut_least(a);
    const uint64_t rate = a->token + a->row_token * a->slot_rows;
    uint64_t cost = a->total, rounding = a->chunk;
    if (!pwsp_attention_cuts_chunks(a)) {
        const uint64_t price = pwsp_sum_u64(a->unit, 2 * a->slot_cost_max);
        cost = pwsp_sum_u64(cost, pwsp_mul_u64(a->worker_count - 1, price));
        rounding = a->config.page_size;
    }
    rounding = pwsp_min_u64(pwsp_mul_u64(rounding, rate), a->tile_cost_max) / 2;
    uint64_t time = pwsp_time_of(a, pwsp_min_u64(cost, PWSP_COST_MAX)) + rounding;
    if (low < a->tile_cost_max) {
        // A tile of n parts takes cost / n and n slots: least at the root of cost / slot.
        const uint64_t least =
            pwsp_square_root(a->tile_cost_max) * pwsp_square_root(a->slot_cost_max);
        const uint64_t alone = pwsp_sum_u64(least, 2 * a->slot_cost_max) + a->unit;
        time = pwsp_max_u64(time, pwsp_min_u64(alone, a->tile_cost_max));
    }
    return pwsp_max_u64(low, pwsp_min_u64(a->total, time));
}

// Sequences, tiles and lanes that all attempts together may pass for the last percent.
#define PWSP_CUT_STEPS 600

PWSP_INTERNAL bool pwsp_attention_cut_find(const pwsp_attention *a, ptowsp_attention_plan *plan,
                                           pwsp_attention_cut *cut) {
    uint64_t low = pwsp_attention_cut_least(a);
    uint64_t time = pwsp_time_guess(a), step = time / 1024 + 1;
    bool has_cut = false;
    const uint64_t pass =
        (uint64_t)a->sequence_count + a->config.lane_count + a->tile_count / a->config.head_count;
    for (uint64_t passed = pass;; passed += pass) {
        const bool is_cheap = passed < PWSP_CUT_STEPS;
        const bool writes = plan && !is_cheap && !has_cut;
        pwsp_attention_cut found;
        pwsp_attention_writer writer;
        if (writes) {
            writer = pwsp_write_begin(a, plan);
        }
        if (pwsp_fill(a, time, writes ? &writer : NULL, &found)) {
            *cut = found;
            has_cut = true;
        } else {
            PTOWSP_ASSERT(time < a->total);
            low = time + 1;
        }
        if (!has_cut) {
            time = pwsp_min_u64(a->total, time + step);
            step *= 2;
        } else if (cut->time - low <= cut->time >> (is_cheap ? 10 : 6)) {
            if (writes) {
                pwsp_write_end(&writer);
            }
            return writes;
        } else {
            time = low + (cut->time - low) / 2;
        }
    }
}

PWSP_INTERNAL bool pwsp_plan_has_room(const pwsp_attention *a, const ptowsp_attention_plan *plan) {
    const uint64_t splits = a->worker_count - 1;
    if (pwsp_attention_cuts_chunks(a)) {
        return a->unit_count <= plan->unit_capacity && a->merge_count <= plan->merge_capacity &&
               a->slot_count <= plan->slot_capacity;
    }
    return a->tile_count + splits <= plan->unit_capacity &&
           a->slotted_count + pwsp_min_u64(a->tile_count - a->slotted_count, splits) <=
               plan->merge_capacity &&
           a->slotted_count + 2 * splits <= plan->slot_capacity;
}

PWSP_INTERNAL void pwsp_attention_cut_write(const pwsp_attention *a, const pwsp_attention_cut *cut,
                                            ptowsp_attention_plan *plan) {
    pwsp_attention_writer writer = pwsp_write_begin(a, plan);
    pwsp_attention_cut again;
    bool fits = pwsp_fill(a, cut->time, &writer, &again);
    PTOWSP_ASSERT(fits && again.unit_count == cut->unit_count);
    (void)fits;
    pwsp_write_end(&writer);
}

PWSP_INTERNAL ptowsp_status pwsp_cut_check(const pwsp_attention_cut *cut,
                                           const ptowsp_attention_plan *plan,
                                           ptowsp_plan_info *info) {
    if (cut->unit_count > UINT32_MAX) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_UNITS_EXCEEDED, PTOWSP_NO_INDEX,
                              (int64_t)cut->unit_count, UINT32_MAX);
    }
    const uint64_t needed[3] = {cut->unit_count, cut->merge_count, cut->slot_count};
    const uint32_t capacities[3] = {plan->unit_capacity, plan->merge_capacity, plan->slot_capacity};
    static const ptowsp_plan_fault faults[3] = {PTOWSP_FAULT_UNITS_SMALL, PTOWSP_FAULT_MERGES_SMALL,
                                                PTOWSP_FAULT_SLOTS_SMALL};
    ptowsp_status status = PTOWSP_OK;
    for (uint32_t i = 0; i < 3 && status == PTOWSP_OK; i++) {
        if (needed[i] > capacities[i]) {
            status =
                pwsp_plan_fail(info, faults[i], PTOWSP_NO_INDEX, (int64_t)needed[i], capacities[i]);
        }
    }
    info->work_count = cut->unit_count;
    return status;
}
