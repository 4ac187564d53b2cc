// Units, merges and lanes of an attention plan, in the order of the plan.
//
// A merge is written with the first part of its tile, and so belongs to the lane of that part. Its
// slots are counted as parts come. Where the tile continues in later lanes, the cost of the merge is
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
    w.next_merge = plan->merges;
    if (a->config.kv_head_count > 2 && plan->unit_capacity >= 8) {
        w.eight_last = plan->units + plan->unit_capacity - 8;
    }
    plan->unit_begin[0] = plan->merge_begin[0] = 0;
    return w;
}

// Writes the first piece of a tile with sinks. Returns where it ends.
static uint32_t pwsp_write_sinks(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                                 uint32_t index, uint32_t tier, const pwsp_query_tile *tile,
                                 uint32_t end) {
    const pwsp_attention *a = w->a;
    const bool cuts = pwsp_attention_cuts_chunks(a);
    const uint32_t next = cuts && tile->begin + tile->sinks < end ? tile->begin + tile->sinks : end;
    const pwsp_kv_piece piece = pwsp_kv_piece_of(a, tile, tile->begin, next);
    const bool is_whole = next == tile->end;
    const uint32_t flags = PTOWSP_WORK_FIRST | (is_whole ? PTOWSP_WORK_LAST : 0) | piece.flags;
    pwsp_write_piece(w, sequence, head, index, tier, flags, !is_whole, piece.start, piece.length);
    return next;
}

PWSP_INTERNAL void pwsp_write_range(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                                    uint32_t index, const pwsp_query_tile *tile, uint32_t begin,
                                    uint32_t end) {
    const pwsp_attention *a = w->a;
    PTOWSP_ASSERT(tile->begin <= begin && begin < end && end <= tile->end);
    const uint32_t tier = pwsp_attention_tier(a, sequence);
    const bool cuts = pwsp_attention_cuts_chunks(a);
    uint32_t pieces = 0, at = begin;
    if (tile->sinks > 0 && begin == tile->begin) {
        at = pwsp_write_sinks(w, sequence, head, index, tier, tile, end);
        pieces = 1;
    }
    for (; at < end; pieces++) {
        uint32_t next = end;
        if (cuts) {
            next = (uint32_t)pwsp_min_u64((at / a->chunk + 1) * a->chunk, end);
        }
        const uint32_t flags = (at == tile->begin ? PTOWSP_WORK_FIRST : 0) |
                               (next == tile->end ? PTOWSP_WORK_LAST : 0);
        const bool is_whole = flags == (PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST);
        pwsp_write_piece(w, sequence, head, index, tier, flags, !is_whole || tile->is_slotted, at,
                         next - at);
        at = next;
    }
    w->lane_cost += pieces * a->unit + (end - begin) * tile->rate;
    if (end == tile->end && w->is_open) {
        pwsp_write_close(w, pwsp_slot_cost(a, tile->rows));
    }
}

PWSP_INTERNAL void pwsp_write_share(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                                    uint32_t index, const pwsp_query_tile *tile, uint32_t begin,
                                    uint32_t end, pwsp_tile_share share) {
    const pwsp_attention *a = w->a;
    const pwsp_share_rows rows = pwsp_share_rows_of(tile, share);
    w->share_slot = share.index == 0 ? w->slots : w->share_slot;
    if (rows.count > 0) {
        const uint32_t tag = pwsp_word_tag(0, PTOWSP_WORK_ROWS, index);
        PTOWSP_ASSERT(rows.first + rows.count <= UINT16_MAX);
        pwsp_write_words(w->next_merge++, pwsp_word_pair(rows.first | rows.count << 16, tag),
                         pwsp_word_pair(sequence, head),
                         pwsp_word_pair(w->share_slot, (uint32_t)pwsp_share_slots(a, tile, share)));
        w->merges++;
    }
    w->lane_cost += pwsp_share_cost(a, tile, share);
    w->is_shared = true;
    pwsp_write_range(w, sequence, head, index, tile, begin, end);
    w->is_shared = false;
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
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        const uint64_t request_head = pwsp_word_pair(sequence, head + i);
        pwsp_write_words(w->next++, pwsp_word_pair(w->slots, tag), request_head, begin_length);
        pwsp_write_words(w->next_merge++, pwsp_word_pair(w->merges++, merge_tag), request_head,
                         pwsp_word_pair(w->slots++, 1));
    }
    w->lane_cost += count * (a->unit + length * tile->rate + pwsp_slot_cost(a, tile->rows));
}

PWSP_INTERNAL void pwsp_write_heads(pwsp_attention_writer *w, uint32_t sequence, uint32_t head,
                                    uint64_t count, const pwsp_query_tile *first) {
    const pwsp_attention *a = w->a;
    const uint32_t tiles = pwsp_query_tiles(a, sequence);
    PTOWSP_ASSERT(tiles > 0 && head + count <= a->config.kv_head_count);
    const uint32_t end = head + (uint32_t)count;
    if (tiles == 1 && !pwsp_attention_cuts_chunks(a) && first->is_slotted) {
        pwsp_write_slotted(w, sequence, head, count, first);
        return;
    }
    if (tiles == 1 && !pwsp_attention_cuts_chunks(a)) {
        const uint32_t length = first->end - first->begin;
        const pwsp_kv_piece piece = pwsp_kv_piece_of(a, first, first->begin, first->end);
        pwsp_write_wholes(w, pwsp_word_whole(pwsp_attention_tier(a, sequence), piece.flags),
                          pwsp_word_pair(sequence, head), pwsp_word_pair(piece.start, piece.length),
                          count);
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

PWSP_INTERNAL void pwsp_write_end(pwsp_attention_writer *w) {
    ptowsp_attention_plan *plan = w->plan;
    const pwsp_attention *a = w->a;
    PTOWSP_ASSERT(!w->is_open && w->lane == a->config.lane_count);
    PTOWSP_ASSERT(w->next <= plan->units + plan->unit_capacity);
    PTOWSP_ASSERT(w->merges <= plan->merge_capacity && w->slots <= plan->slot_capacity);
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
