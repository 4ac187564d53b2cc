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
    w.next = plan->units;
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

// The words of a unit, as they lie in memory. Descriptors are not built field by field, since a load
// of what was stored just now in smaller pieces waits for it.
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

// Opens the merge of a tile: the slots that follow are its parts.
static void pwsp_write_open(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                            uint32_t tag) {
    PTOWSP_ASSERT(!w->is_open && w->merges < w->plan->merge_capacity);
    pwsp_write_words(&w->plan->merges[w->merges], pwsp_word_pair(w->merges, tag),
                     pwsp_word_pair(sequence, head), pwsp_word_pair(w->slots, 0));
    w->merges++;
    w->is_open = true;
    w->open_lane = w->lane;
    w->open_slot = w->slots;
}

// Closes it: the number of its slots is known, and so its cost.
static void pwsp_write_close(pwsp_attention_writer *w, uint32_t rows) {
    const uint32_t slots = w->slots - w->open_slot;
    PTOWSP_ASSERT(slots > 0);
    const uint64_t cost = slots * pwsp_slot_cost(w->a, rows);
    w->plan->merges[w->merges - 1].params[3] = slots;
    if (w->open_lane == w->lane) {
        w->lane_cost += cost;
    } else {
        pwsp_write_cost(w, w->open_lane, w->open_cost + cost);
    }
    w->is_open = false;
}

PWSP_INTERNAL void pwsp_write_range(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                                    uint32_t index, const pwsp_query_tile *tile, uint32_t begin,
                                    uint32_t end) {
    const pwsp_attention *a = w->a;
    PTOWSP_ASSERT(tile->begin <= begin && begin < end && end <= tile->end);
    const uint32_t tier = pwsp_attention_tier(a, sequence);
    const bool cuts = pwsp_attention_cuts_chunks(a);
    uint32_t pieces = 0;
    for (uint32_t at = begin; at < end; pieces++) {
        uint32_t next = end;
        if (cuts) {
            next = (uint32_t)pwsp_min_u64((at / a->chunk + 1) * a->chunk, end);
        }
        const uint32_t flags = (at == tile->begin ? PTOWSP_WORK_FIRST : 0) |
                               (next == tile->end ? PTOWSP_WORK_LAST : 0);
        uint32_t slot = PTOWSP_NO_SLOT;
        if (flags != (PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST) || tile->is_slotted) {
            if (flags & PTOWSP_WORK_FIRST) {
                pwsp_write_open(w, sequence, head, pwsp_word_tag(tier, 0, index));
            }
            slot = w->slots++;
        }
        PTOWSP_ASSERT(w->next < w->plan->units + w->plan->unit_capacity);
        pwsp_write_words(w->next++, pwsp_word_pair(slot, pwsp_word_tag(tier, flags, index)),
                         pwsp_word_pair(sequence, head), pwsp_word_pair(at, next - at));
        at = next;
    }
    w->lane_cost += pieces * a->unit + (end - begin) * tile->rate;
    if (end == tile->end && w->is_open) {
        pwsp_write_close(w, tile->rows);
    }
}

// Writes one tile of each of `count` heads, each with a slot and an entry of merges of its own.
static void pwsp_write_slotted(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                               uint64_t count, const pwsp_query_tile *tile) {
    const pwsp_attention *a = w->a;
    PTOWSP_ASSERT(!w->is_open && w->merges + count <= w->plan->merge_capacity);
    PTOWSP_ASSERT(w->next + count <= w->plan->units + w->plan->unit_capacity);
    const uint32_t length = tile->end - tile->begin, tier = pwsp_attention_tier(a, sequence);
    const uint32_t tag = pwsp_word_tag(tier, PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST, 0);
    const uint32_t merge_tag = pwsp_word_tag(tier, 0, 0);
    const uint64_t begin_length = pwsp_word_pair(tile->begin, length);
    PTOWSP_GM ptowsp_work *merge = w->plan->merges + w->merges;
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        const uint64_t request_head = pwsp_word_pair(sequence, head + i);
        pwsp_write_words(w->next++, pwsp_word_pair(w->slots, tag), request_head, begin_length);
        pwsp_write_words(merge++, pwsp_word_pair(w->merges++, merge_tag), request_head,
                         pwsp_word_pair(w->slots++, 1));
    }
    w->lane_cost += count * (a->unit + length * tile->rate + pwsp_slot_cost(a, tile->rows));
}

PWSP_INTERNAL void pwsp_write_heads(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                                    uint64_t count, const pwsp_query_tile *first) {
    const pwsp_attention *a = w->a;
    const uint32_t tiles = pwsp_query_tiles(a, sequence);
    PTOWSP_ASSERT(tiles > 0 && head + count <= a->config.head_count);
    const uint32_t end = head + (uint32_t)count;
    if (tiles == 1 && !pwsp_attention_cuts_chunks(a) && first->is_slotted) {
        pwsp_write_slotted(w, sequence, head, count, first);
        return;
    }
    if (tiles == 1 && !pwsp_attention_cuts_chunks(a)) {
        PTOWSP_GM ptowsp_work *unit = w->next, *last = unit + count;
        PTOWSP_ASSERT(last <= w->plan->units + w->plan->unit_capacity);
        const uint32_t length = first->end - first->begin;
        const uint32_t tag = pwsp_word_tag(pwsp_attention_tier(a, sequence),
                                           PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST, 0);
        const uint64_t slot_tag = pwsp_word_pair(PTOWSP_NO_SLOT, tag);
        const uint64_t begin_length = pwsp_word_pair(first->begin, length);
        uint64_t request_head = pwsp_word_pair(sequence, head);
        for (; unit < last; unit++) {
            pwsp_write_words(unit, slot_tag, request_head, begin_length);
            request_head += pwsp_word_pair(0, 1);
        }
        w->next = unit;
        w->lane_cost += count * (a->unit + length * first->rate);
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
    w->plan->unit_begin[w->lane] = (uint32_t)(w->next - w->plan->units);
    w->plan->merge_begin[w->lane] = w->merges;
}

PWSP_INTERNAL void pwsp_write_end(pwsp_attention_writer *w) {
    ptowsp_attention_plan *plan = w->plan;
    const pwsp_attention *a = w->a;
    PTOWSP_ASSERT(!w->is_open && w->lane == a->config.lane_count);
    PTOWSP_ASSERT(w->slots <= plan->slot_capacity);
    const ptowsp_work none = ptowsp_work_of(PTOWSP_NO_SLOT, 0, PTOWSP_WORK_INVALID, 0, 0, 0, 0);
    const uint32_t units = (uint32_t)(w->next - plan->units);
    for (uint32_t i = units; i < plan->unit_capacity; i++) {
        plan->units[i] = none;
    }
    for (uint32_t i = w->merges; i < plan->merge_capacity; i++) {
        plan->merges[i] = none;
    }
    plan->unit_count = units;
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
