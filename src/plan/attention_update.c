// Takes an attention plan on to the next step.
//
// The cut is kept: the first piece of each tile begins, and the last one ends, where the tile does
// now; what lies between stays. A walk over the units, side by side with the tiles of the batch,
// does that, and finds whether the cut can serve and what it costs. Where the plan may be too small
// for another cut, one walk finds and another writes, so that a failure leaves the plan untouched.
//
//      before      [0 ... 64) [64 ... 117)     [0 ... 40)     [0 ... 12)
//      now         [0 ... 64) [64 ... 118)     INVALID        [0 ... 13)
//
// Planning anew saves 1 - new / kept of the largest cost. `new` is at least the mean without splits,
// which is known. Only where that promises enough, the cut is found, and decides.

#include "attention_cut.h"

#define PWSP_GAIN_DEFAULT 0.1

typedef struct pwsp_plan_step {
    const pwsp_attention *a;
    ptowsp_attention_plan *plan;
    bool writes;
    uint32_t unit;  // the next one
    uint32_t lane, lane_end;
    uint64_t lane_cost, total;
    double cost_max;
} pwsp_plan_step;

// What the merges of the lane cost. Those of sequences that ended become INVALID.
static uint64_t pwsp_step_merges(const pwsp_plan_step *step) {
    const ptowsp_attention_plan *plan = step->plan;
    const pwsp_attention *a = step->a;
    uint64_t cost = 0;
    for (uint32_t i = plan->merge_begin[step->lane]; i < plan->merge_begin[step->lane + 1]; i++) {
        PTOWSP_GM ptowsp_work *merge = &plan->merges[i];
        const uint32_t sequence = merge->params[0], index = merge->reserved;
        if (ptowsp_work_is_valid(merge) && sequence < a->sequence_count &&
            index < pwsp_query_tiles(a, sequence)) {
            const bool is_one = !a->query_lengths;  // query token, so all tiles have as many rows
            const uint32_t rows =
                is_one ? a->config.group : pwsp_query_tile_at(a, sequence, index).rows;
            cost += merge->params[3] * pwsp_slot_cost(a, rows);
        } else if (step->writes) {
            merge->flags = PTOWSP_WORK_INVALID;
            merge->params[3] = 0;
        }
    }
    return cost;
}

static void pwsp_step_lane_begin(pwsp_plan_step *step, uint32_t lane) {
    const ptowsp_attention_plan *plan = step->plan;
    step->lane = lane;
    step->lane_end = lane < plan->lane_count ? plan->unit_begin[lane + 1] : UINT32_MAX;
    step->lane_cost = 0;
}

// Ends the lane, whose cost is known but for merges.
static void pwsp_step_lane_end(pwsp_plan_step *step) {
    const pwsp_attention *a = step->a;
    const uint64_t cost = step->lane_cost + pwsp_step_merges(step);
    double value = (double)cost * a->grid;
    if (a->config.lane_speeds && cost > 0) {
        value /= (double)a->config.lane_speeds[step->lane];
    }
    if (step->writes && step->plan->lane_costs) {
        step->plan->lane_costs[step->lane] = value;
    }
    step->cost_max = value > step->cost_max ? value : step->cost_max;
    step->total += cost;
    pwsp_step_lane_begin(step, step->lane + 1);
}

// Ends lanes up to that of the next unit.
PWSP_FORCE_INLINE void pwsp_step_lanes(pwsp_plan_step *step) {
    while (step->unit >= step->lane_end) {
        pwsp_step_lane_end(step);
    }
}

static void pwsp_unit_end(PTOWSP_GM ptowsp_work *unit) {
    unit->flags = PTOWSP_WORK_INVALID;
    unit->work_id = PTOWSP_NO_SLOT;
    unit->params[3] = 0;
}

// Passes units that are INVALID, or of sequences before `sequence`, which ended.
PWSP_FORCE_INLINE void pwsp_step_ended(pwsp_plan_step *step, uint64_t sequence) {
    const ptowsp_attention_plan *plan = step->plan;
    for (; step->unit < plan->unit_count; step->unit++) {
        PTOWSP_GM ptowsp_work *unit = &plan->units[step->unit];
        if (ptowsp_work_is_valid(unit)) {
            if (unit->params[0] >= sequence) {
                return;
            }
            if (step->writes) {
                pwsp_unit_end(unit);
            }
        }
    }
}

// Moves the pieces of a tile to what it sees now. False if they cannot serve.
static bool pwsp_step_tile(pwsp_plan_step *step, uint32_t sequence, uint32_t head, uint32_t index,
                           const pwsp_query_tile *tile, uint8_t tier) {
    const pwsp_attention *a = step->a;
    const ptowsp_attention_plan *plan = step->plan;
    for (uint32_t at = tile->begin; at < tile->end; step->unit++) {
        if (step->unit == plan->unit_count) {
            return false;
        }
        PTOWSP_GM ptowsp_work *unit = &plan->units[step->unit];
        const bool is_first = ptowsp_work_is_first(unit), is_last = ptowsp_work_is_last(unit);
        if (unit->params[0] != sequence || unit->params[1] != head || unit->reserved != index ||
            is_first != (at == tile->begin) || !ptowsp_work_is_valid(unit)) {
            return false;
        }
        uint32_t end = ptowsp_work_kv_end(unit);
        if (is_last ? tile->end < end : at >= end || end >= tile->end) {
            return false;
        }
        end = is_last ? tile->end : end;
        const bool is_cut = !(is_first && is_last);
        if (pwsp_attention_cuts_chunks(a) ? pwsp_chunk_pieces(a, at, end) > 1
                                          : is_cut && end - at < a->piece_min) {
            return false;
        }
        pwsp_step_lanes(step);
        step->lane_cost += a->unit + (end - at) * tile->rate;
        if (step->writes) {
            unit->tier = tier;
            unit->params[2] = at;
            unit->params[3] = end - at;
        }
        at = end;
    }
    return true;
}

// Moves `count` whole units of one sequence to its length.
PWSP_FORCE_INLINE void pwsp_wholes_move(PTOWSP_GM ptowsp_work *first, uint32_t count,
                                        uint32_t length, uint8_t tier) {
    const bool is_other = first->tier != tier;  // all heads have one
    for (uint32_t i = 0; i < count; i++) {
        first[i].params[3] = length;
    }
    for (uint32_t i = 0; is_other && i < count; i++) {
        first[i].tier = tier;
    }
}

// Moves the whole units of a decode step that follow each other in a lane, from one head of a
// sequence on, and returns their number. In a lane that has as many units as heads, from the first
// to the last of them, each is of one head: so only two are looked at, and all only to be written.
static uint32_t pwsp_step_heads(pwsp_plan_step *step, uint32_t sequence, uint32_t head,
                                const pwsp_query_tile *tile, uint8_t tier) {
    const ptowsp_attention_plan *plan = step->plan;
    if (step->unit >= plan->unit_count) {
        return 0;
    }
    pwsp_step_lanes(step);
    const uint32_t heads = step->a->config.head_count - head;
    const uint32_t left = plan->unit_begin[step->lane + 1] - step->unit;
    PTOWSP_GM ptowsp_work *first = &plan->units[step->unit];
    uint32_t count = heads < left ? heads : left;
    const PTOWSP_GM ptowsp_work *last = first + count - 1;
    if (!ptowsp_work_is_last(last)) {  // the first part of a tile ends the lane
        count--;
        last--;
    }
    if (count == 0 || !ptowsp_work_is_whole(first) || !ptowsp_work_is_whole(last) ||
        first->params[0] != sequence || last->params[0] != sequence || first->params[1] != head ||
        last->params[1] != head + count - 1 || first->params[3] > tile->end) {
        return 0;
    }
    step->lane_cost += count * (step->a->unit + tile->end * tile->rate);
    if (step->writes) {
        pwsp_wholes_move(first, count, tile->end, tier);
    }
    step->unit += count;
    return count;
}

// The first sequence from `sequence` on that has KV, or their number.
PWSP_FORCE_INLINE uint32_t pwsp_step_sequence(const pwsp_attention *a, uint32_t sequence) {
    while (sequence < a->sequence_count && a->kv_lengths[sequence] == 0) {
        sequence++;
    }
    return sequence;
}

// How many whole units of one sequence, from a head on, are next in a lane that has `left` units; 0 if
// they are not what planning wrote. Of those that go on in a lane two are looked at, as in the walk over
// all plans.
PWSP_FORCE_INLINE uint32_t pwsp_step_wholes(const PTOWSP_GM ptowsp_work *unit, uint64_t left,
                                            uint32_t sequence, uint32_t head, uint32_t heads,
                                            uint32_t length) {
    const uint32_t whole = PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST;
    uint32_t count = (uint32_t)pwsp_min_u64(heads - head, left);
    count -= unit[count - 1].flags == PTOWSP_WORK_FIRST;  // the part that ends the lane
    const uint32_t more = head > 0 && count > 1;
    const PTOWSP_GM ptowsp_work *second = unit + more, *last = unit + count - 1;
    const bool is_good = last->flags == whole && last->params[0] == sequence &&
                         last->params[1] == head + count - 1 && unit->params[3] <= length &&
                         second->flags == whole && second->params[0] == sequence &&
                         second->params[1] == head + more && second->params[3] <= length;
    return is_good ? count : 0;
}

// Where a piece of a tile that is cut ends now, if it begins at `kv`; 0 if it cannot serve.
PWSP_FORCE_INLINE uint32_t pwsp_step_piece_end(const pwsp_attention *a,
                                               const PTOWSP_GM ptowsp_work *unit, uint32_t kv,
                                               uint32_t length) {
    const bool is_last = unit->flags == PTOWSP_WORK_LAST;
    const uint32_t flags = is_last ? PTOWSP_WORK_LAST : kv == 0 ? PTOWSP_WORK_FIRST : 0;
    const uint32_t before = ptowsp_work_kv_end(unit), end = is_last ? length : before;
    const bool serves = unit->flags == flags && is_last == (end == length) && before <= length &&
                        end >= kv + a->piece_min && !(is_last && kv == 0);
    return serves ? end : 0;
}

// Walks over the plan of a decode step, lane by lane, as long as its units are what planning or an
// update wrote. Where they are not, or cannot serve, it gives up, and the walk over all plans decides:
// what has been moved until then, that one finds moved.
static bool pwsp_step_decode(pwsp_plan_step *step) {
    const pwsp_attention *a = step->a;
    const ptowsp_attention_plan *plan = step->plan;
    const uint32_t heads = a->config.head_count, whole = PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST;
    const uint64_t rate = pwsp_tile_rate(a, a->config.group);
    PTOWSP_GM ptowsp_work *unit = plan->units;
    uint32_t sequence = UINT32_MAX, head = heads, kv = 0, length = 0;
    uint8_t tier = 0;
    for (uint32_t lane = 0; lane < plan->lane_count; lane++) {
        const PTOWSP_GM ptowsp_work *end = plan->units + plan->unit_begin[lane + 1];
        while (unit < end) {
            if (head == heads) {
                const uint32_t next = pwsp_step_sequence(a, sequence + 1);
                if (next == a->sequence_count) {  // all units that are left ended
                    step->unit = (uint32_t)(unit - plan->units);
                    pwsp_step_ended(step, UINT64_MAX);
                    unit = plan->units + plan->unit_count;
                    break;
                }
                length = (uint32_t)a->kv_lengths[next];
                tier = pwsp_attention_tier(a, next);
                sequence = next;
                head = 0;
            }
            if (unit->params[0] != sequence || unit->params[1] != head || unit->params[2] != kv ||
                unit->reserved != 0) {
                if (kv > 0 || (ptowsp_work_is_valid(unit) && unit->params[0] >= sequence)) {
                    return false;
                }
                if (step->writes && ptowsp_work_is_valid(unit)) {
                    pwsp_unit_end(unit);
                }
                unit++;
                continue;
            }
            if (unit->flags == whole) {
                const uint32_t count =
                    pwsp_step_wholes(unit, (uint64_t)(end - unit), sequence, head, heads, length);
                if (count == 0 || kv > 0) {
                    return false;
                }
                step->lane_cost += count * (a->unit + length * rate);
                if (step->writes) {
                    pwsp_wholes_move(unit, count, length, tier);
                }
                head += count;
                unit += count;
                continue;
            }
            const uint32_t stop = pwsp_step_piece_end(a, unit, kv, length);
            if (stop == 0) {
                return false;
            }
            step->lane_cost += a->unit + (stop - kv) * rate;
            if (step->writes) {
                unit->tier = tier;
                unit->params[3] = stop - kv;
            }
            kv = stop == length ? 0 : stop;
            head += stop == length;
            unit++;
        }
        pwsp_step_lane_end(step);
    }
    step->unit = plan->unit_count;
    return head == heads && pwsp_step_sequence(a, sequence + 1) == a->sequence_count;
}

// Walks over the plan. False if its cut cannot serve the batch.
static bool pwsp_step_walk(pwsp_plan_step *step) {
    const pwsp_attention *a = step->a;
    const pwsp_plan_step begun = *step;
    pwsp_step_lane_begin(step, 0);
    const bool is_decode = pwsp_attention_is_decode(a);
    if (is_decode && pwsp_step_decode(step)) {
        return true;
    }
    *step = begun;
    pwsp_step_lane_begin(step, 0);
    for (uint32_t sequence = 0; sequence < a->sequence_count; sequence++) {
        const uint32_t tiles = pwsp_query_tiles(a, sequence);
        if (tiles == 0) {
            continue;
        }
        const uint8_t tier = pwsp_attention_tier(a, sequence);
        pwsp_query_tile tile = pwsp_query_tile_at(a, sequence, 0);
        for (uint32_t head = 0; head < a->config.head_count; head++) {
            if (is_decode) {
                pwsp_step_ended(step, sequence);
                head += pwsp_step_heads(step, sequence, head, &tile, tier);
                if (head == a->config.head_count) {
                    break;
                }
            }
            for (uint32_t i = 0; i < tiles; i++) {
                if (tiles > 1) {
                    tile = pwsp_query_tile_at(a, sequence, i);
                }
                pwsp_step_ended(step, sequence);
                if (!pwsp_step_tile(step, sequence, head, i, &tile, tier)) {
                    return false;
                }
            }
        }
    }
    pwsp_step_ended(step, UINT64_MAX);
    while (step->lane < step->plan->lane_count) {
        pwsp_step_lane_end(step);
    }
    return true;
}

static ptowsp_status pwsp_changed_check(const pwsp_attention *a, const uint32_t *changed,
                                        uint32_t changed_count, double gain_max,
                                        ptowsp_plan_info *info) {
    if (!(gain_max >= 0.0)) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_GAIN_INVALID, PTOWSP_NO_INDEX, 0, 0);
    }
    if (!changed && changed_count > 0) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_CHANGED_NULL, PTOWSP_NO_INDEX, changed_count, 0);
    }
    for (uint32_t i = 0; i < changed_count; i++) {
        if (changed[i] >= a->sequence_count || (i > 0 && changed[i] <= changed[i - 1])) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_CHANGED_ORDER, i, changed[i],
                                  a->sequence_count);
        }
    }
    return PTOWSP_OK;
}

// Whether a plan of the batch would have sequences that the batch does not have.
static ptowsp_status pwsp_plan_batch_check(const pwsp_attention *a,
                                           const ptowsp_attention_plan *plan,
                                           ptowsp_plan_info *info) {
    ptowsp_status status = pwsp_plan_other_check(a, plan, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    if (plan->unit_count > plan->unit_capacity || plan->merge_count > plan->merge_capacity) {
        const bool is_unit = plan->unit_count > plan->unit_capacity;
        return pwsp_plan_fail(info, PTOWSP_FAULT_COUNT_WRONG, PTOWSP_NO_INDEX,
                              is_unit ? plan->unit_count : plan->merge_count,
                              is_unit ? plan->unit_capacity : plan->merge_capacity);
    }
    status = pwsp_plan_ranges_check(a, plan, info);  // the walk trusts them
    if (status != PTOWSP_OK) {
        return status;
    }
    if (plan->unit_count > 0) {
        const uint32_t last = plan->units[plan->unit_count - 1].params[0];
        if (last >= a->sequence_count) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_PLAN_OTHER, plan->unit_count - 1, last,
                                  a->sequence_count);
        }
    }
    return PTOWSP_OK;
}

// Walks, and decides whether the cut is kept. Sets *cut if not.
static bool pwsp_step_keeps(pwsp_plan_step *step, double gain_max, double *out_gain,
                            pwsp_attention_cut *cut) {
    const pwsp_attention *a = step->a;
    if (a->slot_rows > step->plan->slot_rows || !pwsp_step_walk(step)) {
        pwsp_attention_cut_find(a, NULL, cut);
        return false;
    }
    if (step->cost_max > 0.0) {
        const double unit = a->grid / (double)a->speed_max;
        double gain = 1.0 - (double)pwsp_attention_cut_least(a) * unit / step->cost_max;
        if (gain > gain_max) {
            pwsp_attention_cut_find(a, NULL, cut);
            gain = 1.0 - (double)cut->time * unit / step->cost_max;
        }
        *out_gain = gain > 0.0 ? gain : 0.0;
    }
    return !(*out_gain > gain_max);
}

ptowsp_status ptowsp_attention_update(const ptowsp_attention_batch *batch,
                                      const ptowsp_attention_config *config,
                                      const uint32_t *changed, uint32_t changed_count,
                                      double gain_max, ptowsp_attention_plan *plan,
                                      ptowsp_attention_change *out_change,
                                      ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    ptowsp_attention_change change = {false, 0.0};
    pwsp_attention a;
    ptowsp_status status = pwsp_attention_prepare(batch, config, &a, info);
    if (status == PTOWSP_OK) {
        status = pwsp_plan_arrays_check(plan, info);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_plan_batch_check(&a, plan, info);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_changed_check(&a, changed, changed_count, gain_max, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    gain_max = gain_max > 0.0 ? gain_max : PWSP_GAIN_DEFAULT;
    // A plan that has room for any cut is written at once, as planning anew cannot fail.
    pwsp_plan_step step = {&a, plan, pwsp_plan_has_room(&a, plan), 0, 0, 0, 0, 0, 0.0};
    pwsp_attention_cut cut;
    if (changed_count > 0) {
        pwsp_attention_cut_find(&a, NULL, &cut);
        change.is_new = true;
    } else {
        change.is_new = !pwsp_step_keeps(&step, gain_max, &change.gain, &cut);
    }
    if (change.is_new) {
        change.gain = 0.0;
        status = pwsp_cut_check(&cut, plan, info);
        if (status == PTOWSP_OK) {
            pwsp_attention_cut_write(&a, &cut, plan);
        }
    } else {
        if (!step.writes) {
            const pwsp_plan_step again = {&a, plan, true, 0, 0, 0, 0, 0, 0.0};
            step = again;
            const bool serves = pwsp_step_walk(&step);
            PTOWSP_ASSERT(serves);
            (void)serves;
        }
        plan->tile_count = (uint32_t)a.tile_count;
        plan->cost_max = step.cost_max;
        plan->cost_mean = (double)step.total * a.grid / (double)a.speed_sum;
        info->work_count = plan->unit_count;
    }
    if (status == PTOWSP_OK && out_change) {
        *out_change = change;
    }
    return status;
}
