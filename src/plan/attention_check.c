// Proves an attention plan against a batch, in one walk over units and merges, side by side with the
// tiles of the batch. Both are in the same order, so nothing has to be remembered but the position:
//
//      tiles     [ sequence 0, head 0, tile 0        ] [ ... tile 1 ] ...
//      units     [0, 64) [64, 128) [128, 200)          [0, 200)       ...
//      merges    slots 0 to 2                          none           ...

#include "attention.h"

typedef struct pwsp_plan_proof {
    const pwsp_attention *a;
    const ptowsp_attention_plan *plan;
    ptowsp_plan_info *info;
    uint32_t unit, merge;  // the next ones
    uint32_t slot;         // the least that is free
} pwsp_plan_proof;

static ptowsp_status pwsp_proof_fail(pwsp_plan_proof *proof, ptowsp_plan_fault fault,
                                     uint64_t index, uint64_t value, uint64_t limit) {
    return pwsp_plan_fail(proof->info, fault, index, pwsp_info_value(value),
                          pwsp_info_value(limit));
}

// Compares the fields of a descriptor with the expected ones, in pairs.
static ptowsp_status pwsp_proof_compare(pwsp_plan_proof *proof, ptowsp_plan_fault fault,
                                        uint64_t index, const uint64_t (*pairs)[2],
                                        uint32_t pair_count) {
    for (uint32_t i = 0; i < pair_count; i++) {
        if (pairs[i][0] != pairs[i][1]) {
            return pwsp_proof_fail(proof, fault, index, pairs[i][0], pairs[i][1]);
        }
    }
    return PTOWSP_OK;
}

// Checks the merge of a tile whose slots are from slot_first to the next free one, or the merges of its
// rows, which follow one another.
static ptowsp_status pwsp_proof_merge(pwsp_plan_proof *proof, uint32_t sequence, uint32_t head,
                                      uint32_t index, uint32_t rows, uint32_t slot_first) {
    ptowsp_status status = PTOWSP_OK;
    for (uint32_t row = 0; row < rows && status == PTOWSP_OK;) {
        if (proof->merge == proof->plan->merge_count) {
            return pwsp_proof_fail(proof, PTOWSP_FAULT_MERGE_WRONG, proof->merge, 0, 1);
        }
        const PTOWSP_GM ptowsp_work *merge = &proof->plan->merges[proof->merge];
        const bool is_shared = proof->a->config.shares_merges && (merge->flags & PTOWSP_WORK_ROWS);
        uint32_t first;
        const uint32_t count = ptowsp_work_merge_rows(merge, rows, &first);
        const uint64_t pairs[8][2] = {
            {merge->params[0], sequence},
            {merge->params[1], head},
            {merge->reserved, index},
            {merge->params[2], slot_first},
            {merge->params[3], proof->slot - slot_first},
            {merge->flags, is_shared ? PTOWSP_WORK_ROWS : 0},
            {is_shared ? first : merge->work_id, is_shared ? row : proof->merge},
            {count, is_shared ? pwsp_min_u64(pwsp_max_u64(count, 1), rows - row) : rows - row}};
        status = pwsp_proof_compare(proof, PTOWSP_FAULT_MERGE_WRONG, proof->merge++, pairs, 8);
        row += count;
    }
    return status;
}

// Checks the units of a tile, and its merge.
static ptowsp_status pwsp_proof_tile(pwsp_plan_proof *proof, uint32_t sequence, uint32_t head,
                                     uint32_t index, uint8_t tier) {
    const pwsp_attention *a = proof->a;
    const pwsp_query_tile tile = pwsp_query_tile_at(a, sequence, index);
    const uint32_t slot_first = proof->slot;
    uint32_t at = tile.begin;
    while (at < tile.end) {
        const uint32_t i = proof->unit;
        if (i == proof->plan->unit_count) {
            return pwsp_proof_fail(proof, PTOWSP_FAULT_UNIT_MISSING, i, 0, sequence);
        }
        const PTOWSP_GM ptowsp_work *unit = &proof->plan->units[i];
        const pwsp_kv_piece rest = pwsp_kv_piece_of(a, &tile, at, tile.end);
        const uint32_t left = tile.end - at, beside = left - rest.length;
        const uint32_t length = unit->params[3];
        const bool is_first = at == tile.begin, is_last = length == rest.length;
        const bool has_slot = !(is_first && is_last) || tile.is_slotted;
        const uint32_t slot = has_slot ? proof->slot : PTOWSP_NO_SLOT;
        const uint32_t flags =
            (is_first ? PTOWSP_WORK_FIRST : 0) | (is_last ? PTOWSP_WORK_LAST : 0) | rest.flags;
        const uint64_t pairs[7][2] = {{unit->params[0], sequence}, {unit->params[1], head},
                                      {unit->reserved, index},     {unit->params[2], rest.start},
                                      {unit->flags, flags},        {unit->tier, tier},
                                      {unit->work_id, slot}};
        const ptowsp_status status =
            pwsp_proof_compare(proof, PTOWSP_FAULT_UNIT_WRONG, i, pairs, 7);
        if (status != PTOWSP_OK) {
            return status;
        }
        uint64_t end = (uint64_t)at + beside + length;
        if (pwsp_attention_cuts_chunks(a)) {
            end = pwsp_min_u64(pwsp_chunk_end(a, &tile, at), tile.end);
        } else if (!is_last) {
            end = pwsp_min_u64(end / a->config.page_size * a->config.page_size, tile.end);
        }
        if ((length == 0 && !tile.is_empty) || at + (uint64_t)beside + length != end) {
            return pwsp_proof_fail(proof, PTOWSP_FAULT_UNIT_WRONG, i, length,
                                   end > at + (uint64_t)beside ? end - at - beside : rest.length);
        }
        if (has_slot) {
            if (slot >= proof->plan->slot_count) {
                return pwsp_proof_fail(proof, PTOWSP_FAULT_UNIT_WRONG, i, slot,
                                       proof->plan->slot_count);
            }
            proof->slot++;
        }
        at = (uint32_t)end;
        proof->unit++;
    }
    return proof->slot > slot_first
               ? pwsp_proof_merge(proof, sequence, head, index, tile.rows, slot_first)
               : PTOWSP_OK;
}

// Checks the ranges of the lanes in units or in merges: they go from 0 to the count, in order, and lanes
// without speed have none.
static ptowsp_status pwsp_ranges_check(const pwsp_attention *a, const PTOWSP_GM uint32_t *begin,
                                       uint32_t count, ptowsp_plan_info *info) {
    bool is_bad = begin[0] != 0 || begin[a->config.lane_count] != count || a->config.lane_speeds;
    for (uint32_t lane = 0; lane < a->config.lane_count; lane++) {
        is_bad |= begin[lane + 1] < begin[lane];
    }
    if (!is_bad) {
        return PTOWSP_OK;  // mostly; otherwise again, to find the fault
    }
    for (uint32_t lane = 0; lane < a->config.lane_count; lane++) {
        const uint32_t from = lane == 0 ? 0 : begin[lane], end = begin[lane + 1];
        const bool works = !a->config.lane_speeds || a->config.lane_speeds[lane] > 0;
        if (begin[0] != 0 || end < from || end > count || (!works && end > from)) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_LANE_RANGE, lane, end, works ? count : from);
        }
    }
    const uint32_t last = a->config.lane_count;
    if (begin[last] != count) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_LANE_RANGE, last - 1, begin[last], count);
    }
    return PTOWSP_OK;
}

// Checks the plan's own numbers: its configuration, counts and capacities.
static ptowsp_status pwsp_plan_numbers_check(const pwsp_attention *a,
                                             const ptowsp_attention_plan *plan,
                                             ptowsp_plan_info *info) {
    ptowsp_status status = pwsp_plan_other_check(a, plan, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    const uint32_t at_most[5][2] = {{plan->lane_count, pwsp_lane_capacity(plan->lane_capacity)},
                                    {plan->unit_count, plan->unit_capacity},
                                    {plan->merge_count, plan->merge_capacity},
                                    {plan->slot_count, plan->slot_capacity},
                                    {a->slot_rows, plan->slot_rows}};
    for (uint32_t i = 0; i < 5; i++) {
        if (at_most[i][0] > at_most[i][1]) {
            return PWSP_PLAN_FAIL(info, COUNT_WRONG, at_most[i][0], at_most[i][1]);
        }
    }
    if (plan->tile_count != a->tile_count) {
        return PWSP_PLAN_FAIL(info, COUNT_WRONG, plan->tile_count, pwsp_info_value(a->tile_count));
    }
    status = pwsp_ranges_check(a, plan->unit_begin, plan->unit_count, info);
    return status == PTOWSP_OK ? pwsp_ranges_check(a, plan->merge_begin, plan->merge_count, info)
                               : status;
}

// Checks that the descriptors up to the capacity are INVALID, without KV or slots.
static ptowsp_status pwsp_proof_rest(pwsp_plan_proof *proof, const PTOWSP_GM ptowsp_work *works,
                                     uint32_t first, uint32_t capacity, ptowsp_plan_fault extra,
                                     ptowsp_plan_fault wrong) {
    for (uint32_t i = first; i < capacity; i++) {
        if (ptowsp_work_is_valid(&works[i])) {
            return pwsp_proof_fail(proof, extra, i, works[i].flags, PTOWSP_WORK_INVALID);
        }
        if (works[i].params[3] != 0) {
            return pwsp_proof_fail(proof, wrong, i, works[i].params[3], 0);
        }
    }
    return PTOWSP_OK;
}

// Checks that the plan ends where the batch does.
static ptowsp_status pwsp_proof_end(pwsp_plan_proof *proof) {
    const ptowsp_attention_plan *plan = proof->plan;
    ptowsp_status status = pwsp_proof_rest(proof, plan->units, proof->unit, plan->unit_capacity,
                                           PTOWSP_FAULT_UNIT_EXTRA, PTOWSP_FAULT_UNIT_WRONG);
    if (status == PTOWSP_OK) {
        status = pwsp_proof_rest(proof, plan->merges, proof->merge, plan->merge_capacity,
                                 PTOWSP_FAULT_MERGE_WRONG, PTOWSP_FAULT_MERGE_WRONG);
    }
    const uint64_t pairs[3][2] = {{plan->unit_count, proof->unit},
                                  {plan->merge_count, proof->merge},
                                  {plan->slot_count, proof->slot}};
    return status == PTOWSP_OK
               ? pwsp_proof_compare(proof, PTOWSP_FAULT_COUNT_WRONG, PTOWSP_NO_INDEX, pairs, 3)
               : status;
}

PWSP_INTERNAL ptowsp_status pwsp_plan_prove(const pwsp_attention *a,
                                            const ptowsp_attention_plan *plan,
                                            ptowsp_plan_info *info) {
    ptowsp_status status = pwsp_plan_numbers_check(a, plan, info);
    pwsp_plan_proof proof = {a, plan, info, 0, 0, 0};
    for (uint32_t s = 0; s < a->sequence_count && status == PTOWSP_OK; s++) {
        const uint32_t tiles = pwsp_query_tiles(a, s);
        const uint8_t tier = tiles > 0 ? pwsp_attention_tier(a, s) : 0;
        for (uint32_t head = 0; head < a->config.kv_head_count && tiles > 0; head++) {
            for (uint32_t i = 0; i < tiles && status == PTOWSP_OK; i++) {
                status = pwsp_proof_tile(&proof, s, head, i, tier);
            }
            if (status != PTOWSP_OK) {
                break;
            }
        }
    }
    return status == PTOWSP_OK ? pwsp_proof_end(&proof) : status;
}

ptowsp_status ptowsp_attention_check(const ptowsp_attention_batch *batch,
                                     const ptowsp_attention_config *config,
                                     const ptowsp_attention_plan *plan,
                                     ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    pwsp_attention a;
    ptowsp_status status = pwsp_attention_prepare(batch, config, &a, info);
    if (status == PTOWSP_OK) {
        status = pwsp_plan_arrays_check(plan, info);
    }
    return status == PTOWSP_OK ? pwsp_plan_prove(&a, plan, info) : status;
}
