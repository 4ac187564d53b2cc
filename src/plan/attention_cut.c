// Where the lanes' shares end.
//
// All decisions follow from one number, the time: the largest cost that a lane may have. Lanes are filled in
// order, each as far as its time allows (attention_fill.c). The least time in which the batch fits is
// nearly the optimum, since a lane that stops earlier never leaves less to the others.
//
// The time is found by trying. The first attempt is the cost of the batch with a split at every lane,
// plus half a page of rounding, over all lanes; with large batches it fits nearly always, and is a
// tenth of a percent from the optimum. Where it does not fit it grows; where the batch is small,
// bisection is cheap and decides.

#include "attention_cut.h"

#include "attention_fill.h"

// Fills all lanes. False if the batch does not fit.
static bool pwsp_fill(const pwsp_attention *a, uint64_t time, pwsp_attention_writer *writer,
                      pwsp_attention_cut *cut) {
    pwsp_attention_splits s;
    const bool is_decode = pwsp_attention_is_decode(a) && a->tile_count > 0;
    const bool fits = is_decode ? pwsp_decode_fill(a, time, writer, &s)
                                : pwsp_attention_fill(a, time, writer, &s);
    cut->time = time;
    cut->unit_count = a->unit_count;
    cut->merge_count = a->merge_count;
    cut->slot_count = a->slot_count;
    if (!pwsp_attention_cuts_chunks(a)) {
        cut->unit_count += s.splits;
        cut->merge_count = a->slotted_count + s.merges;
        cut->slot_count = a->slotted_count + s.splits + s.merges;
    }
    cut->merge_count += s.shared;
    return fits;
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

// The time to try first.
static uint64_t pwsp_time_guess(const pwsp_attention *a) {
    const uint64_t low = pwsp_time_of(a, a->total);
    const uint64_t rate = a->token + a->row_token * a->slot_rows;
    uint64_t cost = a->total, rounding = a->chunk;
    if (!pwsp_attention_cuts_chunks(a)) {
        const uint64_t price = pwsp_sum_u64(a->unit, 2 * a->slot_cost_max);
        cost = pwsp_sum_u64(cost, pwsp_mul_u64(a->worker_count - 1, price));
        rounding = a->config.page_size;
    }
    rounding = pwsp_min_u64(pwsp_mul_u64(rounding, rate), a->tile_cost_max) / 2;
    uint64_t time = pwsp_time_of(a, pwsp_min_u64(cost, PWSP_COST_MAX)) + rounding;
    if (low < a->tile_cost_max && !a->config.shares_merges) {
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
    uint64_t low = pwsp_time_of(a, a->total);
    uint64_t time = pwsp_time_guess(a), step = time / 1024 + 1;
    bool has_cut = false;
    const uint64_t pass = (uint64_t)a->sequence_count + a->config.lane_count +
                          a->tile_count / a->config.kv_head_count;
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
    const uint64_t splits = a->worker_count - 1, shared = a->config.shares_merges ? splits : 0;
    if (a->config.lane_count > pwsp_lane_capacity(plan->lane_capacity)) {
        return false;
    }
    if (pwsp_attention_cuts_chunks(a)) {
        return a->unit_count <= plan->unit_capacity &&
               a->merge_count + shared <= plan->merge_capacity &&
               a->slot_count <= plan->slot_capacity;
    }
    return a->tile_count + splits <= plan->unit_capacity &&
           a->slotted_count + pwsp_min_u64(a->tile_count - a->slotted_count, splits) + shared <=
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

PWSP_INTERNAL ptowsp_status pwsp_cut_check(const pwsp_attention *a, const pwsp_attention_cut *cut,
                                           const ptowsp_attention_plan *plan,
                                           ptowsp_plan_info *info) {
    if (cut->unit_count > UINT32_MAX) {
        return PWSP_PLAN_FAIL(info, UNITS_EXCEEDED, (int64_t)cut->unit_count, UINT32_MAX);
    }
    const uint64_t needed[4] = {a->config.lane_count, cut->unit_count, cut->merge_count,
                                cut->slot_count};
    const uint32_t capacities[4] = {pwsp_lane_capacity(plan->lane_capacity), plan->unit_capacity,
                                    plan->merge_capacity, plan->slot_capacity};
    static const ptowsp_plan_fault faults[4] = {PTOWSP_FAULT_LANES_SMALL, PTOWSP_FAULT_UNITS_SMALL,
                                                PTOWSP_FAULT_MERGES_SMALL,
                                                PTOWSP_FAULT_SLOTS_SMALL};
    ptowsp_status status = PTOWSP_OK;
    for (uint32_t i = 0; i < 4 && status == PTOWSP_OK; i++) {
        if (needed[i] > capacities[i]) {
            status =
                pwsp_plan_fail(info, faults[i], PTOWSP_NO_INDEX, (int64_t)needed[i], capacities[i]);
        }
    }
    info->work_count = cut->unit_count;
    return status;
}
