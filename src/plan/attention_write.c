// Units, merges and lanes of an attention plan, in the order of the plan.
//
// A merge is written with the first part of its tile, and so belongs to the lane of that part. Its
// slots are counted as parts come. Where the tile goes on in later lanes, the cost of the merge is
// known only there; at most one lane waits for that, as a lane after it ends with a tile of its own
// only when this one is complete:
//
//      lane        l            l + 1       l + 2
//      units       ... [part]   [part]      [part] [whole] ...
//                      merge opens          closes: the cost of lane l is known

#include "attention_write.h"

PWSP_INTERNAL pwsp_attention_writer pwsp_write_begin(const pwsp_attention *a,
                                                     ptowsp_attention_plan *plan) {
    pwsp_attention_writer w;
    memset(&w, 0, sizeof w);
    w.a = a;
    w.plan = plan;
    plan->unit_begin[0] = plan->merge_begin[0] = 0;
    return w;
}

// Notes the cost of a lane that is known.
static void pwsp_write_cost(pwsp_attention_writer *w, uint32_t lane, uint64_t cost) {
    const uint32_t *speeds = w->a->config.lane_speeds;
    PTOWSP_ASSERT(!speeds || speeds[lane] > 0 || cost == 0);
    double value = (double)cost * w->a->grid;
    if (speeds && cost > 0) {
        value /= (double)speeds[lane];
    }
    if (w->plan->lane_costs) {
        w->plan->lane_costs[lane] = value;
    }
    w->cost_max = value > w->cost_max ? value : w->cost_max;
    w->total += cost;
}

// Writes one unit.
PWSP_FORCE_INLINE void pwsp_write_unit(pwsp_attention_writer *w, uint32_t slot, uint8_t tier,
                                       uint32_t flags, uint32_t sequence, uint32_t head,
                                       uint32_t index, uint32_t begin, uint32_t end) {
    PTOWSP_ASSERT(begin < end && w->units < w->plan->unit_capacity);
    ptowsp_work work =
        ptowsp_work_of(slot, tier, (uint8_t)flags, sequence, head, begin, end - begin);
    work.reserved = (uint16_t)index;
    w->plan->units[w->units++] = work;
}

PWSP_INTERNAL void pwsp_write_range(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                                    uint32_t index, const pwsp_query_tile *tile, uint32_t begin,
                                    uint32_t end) {
    const pwsp_attention *a = w->a;
    PTOWSP_ASSERT(tile->begin <= begin && begin < end && end <= tile->end);
    const uint8_t tier = pwsp_attention_tier(a, sequence);
    const bool cuts = pwsp_attention_cuts_chunks(a);
    uint32_t pieces = 0;
    for (uint32_t at = begin; at < end; pieces++) {
        uint64_t next = cuts ? (at / a->chunk + 1) * a->chunk : end;
        next = pwsp_min_u64(next, end);
        const uint32_t flags = (at == tile->begin ? PTOWSP_WORK_FIRST : 0) |
                               (next == tile->end ? PTOWSP_WORK_LAST : 0);
        uint32_t slot = PTOWSP_NO_SLOT;
        if (flags != (PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST)) {
            slot = w->slots++;
            if (flags & PTOWSP_WORK_FIRST) {
                PTOWSP_ASSERT(!w->is_open && w->merges < w->plan->merge_capacity);
                ptowsp_work merge = ptowsp_work_of(w->merges, tier, 0, sequence, head, slot, 0);
                merge.reserved = (uint16_t)index;
                w->plan->merges[w->merges++] = merge;
                w->is_open = true;
                w->open_lane = w->lane;
            }
        }
        pwsp_write_unit(w, slot, tier, flags, sequence, head, index, at, (uint32_t)next);
        at = (uint32_t)next;
    }
    w->lane_cost += pieces * a->unit + (end - begin) * tile->rate;
    if (end == tile->end && w->is_open) {
        PTOWSP_GM ptowsp_work *merge = &w->plan->merges[w->merges - 1];
        merge->params[3] = w->slots - merge->params[2];
        const uint64_t cost = merge->params[3] * pwsp_slot_cost(a, tile->rows);
        PTOWSP_ASSERT(merge->params[3] > 1);
        if (w->open_lane == w->lane) {
            w->lane_cost += cost;
        } else {
            pwsp_write_cost(w, w->open_lane, w->open_cost + cost);
        }
        w->is_open = false;
    }
}

PWSP_INTERNAL void pwsp_write_heads(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                                    uint64_t count) {
    const pwsp_attention *a = w->a;
    const uint32_t tiles = pwsp_query_tiles(a, sequence);
    PTOWSP_ASSERT(tiles > 0 && head + count <= a->config.head_count);
    const uint32_t end = head + (uint32_t)count;
    if (tiles == 1 && !pwsp_attention_cuts_chunks(a)) {
        const pwsp_query_tile tile = pwsp_query_tile_at(a, sequence, 0);
        const uint8_t tier = pwsp_attention_tier(a, sequence);
        for (uint32_t h = head; h < end; h++) {
            pwsp_write_unit(w, PTOWSP_NO_SLOT, tier, PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST, sequence,
                            h, 0, tile.begin, tile.end);
        }
        w->lane_cost += count * (a->unit + (tile.end - tile.begin) * tile.rate);
        return;
    }
    for (uint32_t h = head; h < end; h++) {
        for (uint32_t i = 0; i < tiles; i++) {
            const pwsp_query_tile tile = pwsp_query_tile_at(a, sequence, i);
            pwsp_write_range(w, sequence, h, i, &tile, tile.begin, tile.end);
        }
    }
}

PWSP_INTERNAL void pwsp_write_lane(pwsp_attention_writer *w) {
    if (w->is_open && w->open_lane == w->lane) {
        w->open_cost = w->lane_cost;
    } else {
        pwsp_write_cost(w, w->lane, w->lane_cost);
    }
    w->lane++;
    w->lane_cost = 0;
    w->plan->unit_begin[w->lane] = w->units;
    w->plan->merge_begin[w->lane] = w->merges;
}

PWSP_INTERNAL void pwsp_write_end(pwsp_attention_writer *w) {
    ptowsp_attention_plan *plan = w->plan;
    const pwsp_attention *a = w->a;
    PTOWSP_ASSERT(!w->is_open && w->lane == a->config.lane_count);
    PTOWSP_ASSERT(w->slots <= plan->slot_capacity);
    const ptowsp_work none = ptowsp_work_of(PTOWSP_NO_SLOT, 0, PTOWSP_WORK_INVALID, 0, 0, 0, 0);
    for (uint32_t i = w->units; i < plan->unit_capacity; i++) {
        plan->units[i] = none;
    }
    for (uint32_t i = w->merges; i < plan->merge_capacity; i++) {
        plan->merges[i] = none;
    }
    plan->unit_count = w->units;
    plan->merge_count = w->merges;
    plan->slot_count = w->slots;
    plan->tile_count = (uint32_t)a->tile_count;
    plan->lane_count = a->config.lane_count;
    plan->tile_tokens = a->tile_tokens;
    plan->group = a->config.group;
    plan->slot_rows = a->slot_rows;
    plan->cost_max = w->cost_max;
    plan->cost_mean = (double)w->total * a->grid / (double)a->speed_sum;
}
