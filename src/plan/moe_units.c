// Units of MoE plans: where lanes' shares of the experts' tokens end.
//
// Experts stand in a row, each with the tokens of its batches. Lanes are filled in order, each as far
// as a time allows; an expert that a lane takes a part of costs the lane its weights:
//
//      experts   [0          ][1  ][2                    ][3 ]
//      lane       0        |   1          |  2         |  3       time: the most that a lane may cost
//      cost       e u tttttt   e u t e u tt  e u tttttt   ...     e: per_expert, u: per_unit
//
// With column_parts P each of them stands for P experts in a row: the parts of its columns, with all
// of its tokens, at a P-th of the cost of tokens and weights. More parts are finer, but have more
// units. Some numbers of parts are tried, from 1 upwards, until the mean alone is above the best.
//
// To fill a lane as far as it goes is never worse than to stop earlier: the rest is a part
// of the rest otherwise, and pays the same for its beginning. So the time in which the
// tokens fit is monotone, and bisection finds the least one. It lies between the mean and the mean
// plus the most that a lane can leave unused, so it takes few attempts; each costs a division per unit cut.

#include "attention.h"
#include "moe.h"

#define PWSP_MOE_COST_BITS 62

// How far lanes have come, and the lane that is filled.
typedef struct pwsp_moe_filler {
    const pwsp_moe_units *u;
    ptowsp_moe_plan *plan;  // NULL: only counts
    uint64_t time, room;
    bool has_expert;  // the lane has the weights of the present expert
    uint64_t unit_count;
    double cost_max;
    uint64_t cost_sum;
    uint32_t lane;
} pwsp_moe_filler;

// -- configuration --------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_moe_configure(const ptowsp_moe_config *config, uint32_t parts,
                                               pwsp_moe_units *u, ptowsp_plan_info *info) {
    PTOWSP_ASSERT(parts > 0);
    memset(u, 0, sizeof *u);
    if (!config) {
        return PWSP_PLAN_FAIL(info, CONFIG_NULL, 0, 0);
    }
    if (!pwsp_moe_expert_count_is_valid(config->expert_count)) {
        return PWSP_PLAN_FAIL(info, EXPERTS_COUNT, config->expert_count, PTOWSP_MOE_EXPERT_MAX);
    }
    if (config->lane_count == 0 || config->lane_count > PTOWSP_ATTENTION_LANE_MAX) {
        return PWSP_PLAN_FAIL(info, LANES_COUNT, config->lane_count, PTOWSP_ATTENTION_LANE_MAX);
    }
    if (config->column_parts > PTOWSP_MOE_COLUMN_PARTS_MAX) {
        return PWSP_PLAN_FAIL(info, COLUMN_PARTS, config->column_parts,
                              PTOWSP_MOE_COLUMN_PARTS_MAX);
    }
    u->parts = parts;
    u->batch_count = config->batch_count > 0 ? config->batch_count : 1;
    u->expert_count = config->expert_count;
    u->lane_count = config->lane_count;
    u->block_rows = config->block_rows > 0 ? config->block_rows : 1;
    u->unit_tokens = config->unit_tokens > 0
                         ? pwsp_ceil_div_u64(config->unit_tokens, u->block_rows) * u->block_rows
                         : UINT64_MAX;
    const ptowsp_moe_cost *cost = &config->cost;
    // By the names of PTOWSP_FAULT_COST_INVALID: two are of attention alone.
    const double costs[5] = {cost->per_unit, cost->per_token / parts, 0.0, 0.0,
                             cost->per_expert / parts};
    const double defaults[5] = {4.0, 1.0 / parts, 0.0, 0.0, 64.0 / parts};
    uint64_t fixed[5];
    ptowsp_status status = pwsp_costs_to_grid(costs, defaults, 5, fixed, &u->grid, info);
    if (status == PTOWSP_OK) {
        u->unit = fixed[0], u->token = fixed[1], u->expert = fixed[4];
    }
    return status;
}

// Units of `tokens` that one lane takes.
static uint64_t pwsp_moe_unit_count(const pwsp_moe_units *u, uint64_t tokens) {
    return u->unit_tokens == UINT64_MAX ? 1 : pwsp_ceil_div_u64(tokens, u->unit_tokens);
}

static uint64_t pwsp_moe_cost_of(const pwsp_moe_units *u, uint64_t tokens) {
    return pwsp_moe_unit_count(u, tokens) * u->unit + tokens * u->token;
}

// Checks offsets: rows of experts do not overlap, and are below 2^32.
static ptowsp_status pwsp_moe_offsets_check(const pwsp_moe_units *u, ptowsp_plan_info *info) {
    for (uint32_t b = 0; b < u->batch_count && u->offsets; b++) {
        const size_t first = (size_t)b * (u->expert_count + (size_t)1);
        for (uint32_t e = 0; e < u->expert_count; e++) {
            const uint64_t end = (uint64_t)u->offsets[first + e] + pwsp_moe_count_at(u, b, e);
            if (end > u->offsets[first + e + 1]) {
                return pwsp_plan_fail(info, PTOWSP_FAULT_OFFSET_WRONG, first + e + 1,
                                      u->offsets[first + e + 1], pwsp_info_value(end));
            }
        }
    }
    return PTOWSP_OK;
}

static ptowsp_status pwsp_moe_counts_sum(pwsp_moe_units *u, ptowsp_plan_info *info) {
    if (!u->counts) {
        return pwsp_moe_null(info, PWSP_MOE_IN_BATCH_COUNTS);
    }
    uint64_t tokens = 0, units = 0, experts = 0;
    for (uint32_t e = 0; e < u->expert_count; e++) {
        bool is_used = false;
        for (uint32_t b = 0; b < u->batch_count; b++) {
            const uint32_t count = pwsp_moe_count_at(u, b, e);
            tokens += count;  // below 2^32 * 2^32
            units += count > 0 ? pwsp_moe_unit_count(u, count) : 0;
            is_used = is_used || count > 0;
        }
        experts += is_used;
    }
    units = units > UINT32_MAX ? units : units * u->parts;
    experts *= u->parts;
    if (units + u->lane_count > UINT32_MAX) {
        return PWSP_PLAN_FAIL(info, UNITS_EXCEEDED, pwsp_info_value(units), UINT32_MAX);
    }
    // Each lane may read an expert that is read already, and have a unit more for it; and bisection
    // begins a little above the mean.
    const uint64_t splits = u->lane_count + UINT64_C(2);
    uint64_t token_cost, unit_cost, expert_cost;
    const bool fits = tokens < UINT64_MAX / PTOWSP_MOE_COLUMN_PARTS_MAX &&
                      pwsp_mul_fits(tokens * u->parts + u->block_rows, u->token, &token_cost) &&
                      pwsp_mul_fits(units + splits, u->unit, &unit_cost) &&
                      pwsp_mul_fits(experts + splits, u->expert, &expert_cost);
    const uint64_t total =
        fits ? pwsp_sum_u64(token_cost, pwsp_sum_u64(unit_cost, expert_cost)) : UINT64_MAX;
    if (total >> PWSP_MOE_COST_BITS != 0) {
        return PWSP_PLAN_FAIL(info, COST_OVERFLOW, 0, PWSP_MOE_COST_BITS);
    }
    u->total = tokens * u->parts * u->token + units * u->unit + experts * u->expert;
    return pwsp_moe_offsets_check(u, info);
}

// -- filling --------------------------------------------------------------------------------------

// The tokens of `count` from `start` on that the lane can take: all, or a multiple of block_rows
// from the expert's first token on; 0 if none.
static uint64_t pwsp_moe_fit(const pwsp_moe_filler *f, uint64_t start, uint64_t count) {
    const pwsp_moe_units *u = f->u;
    const uint64_t weights = f->has_expert ? 0 : u->expert;
    if (f->room < weights) {
        return 0;
    }
    const uint64_t room = f->room - weights;
    if (pwsp_moe_cost_of(u, count) <= room) {
        return count;
    }
    uint64_t taken = 0, rest = room;
    if (u->unit_tokens != UINT64_MAX) {
        const uint64_t full = pwsp_moe_cost_of(u, u->unit_tokens);
        PTOWSP_ASSERT(full > 0);  // or `count` would cost nothing, too
        const uint64_t units = room / full;
        taken = units * u->unit_tokens;  // below count, which did not fit
        rest = room - units * full;
    }
    if (rest > u->unit) {
        PTOWSP_ASSERT(u->token > 0);  // or this room would be one unit's more
        taken += (rest - u->unit) / u->token;
    }
    PTOWSP_ASSERT(taken < count);  // it costs no more than the room
    const uint64_t end = (start + taken) / u->block_rows * u->block_rows;
    return end > start ? end - start : 0;
}

static void pwsp_moe_write(pwsp_moe_filler *f, uint32_t batch, uint32_t expert, uint32_t part,
                           uint64_t start, uint64_t count) {
    const pwsp_moe_units *u = f->u;
    const uint64_t all = pwsp_moe_count_at(u, batch, expert);
    const uint64_t base = pwsp_moe_base_at(u, batch, expert);
    const uint64_t end = start + count;
    while (start < end) {
        const uint64_t next = start + pwsp_min_u64(end - start, u->unit_tokens);
        const uint32_t flags =
            (start == 0 ? PTOWSP_WORK_FIRST : 0) | (next == all ? PTOWSP_WORK_LAST : 0);
        PTOWSP_ASSERT(f->unit_count < f->plan->unit_capacity);
        f->plan->units[f->unit_count] =
            ptowsp_work_of((uint32_t)f->unit_count, 0, (uint8_t)flags, batch, expert,
                           (uint32_t)(base + start), (uint32_t)(next - start));
        f->plan->units[f->unit_count].reserved = (uint16_t)part;
        f->unit_count++;
        start = next;
    }
}

static void pwsp_moe_lane_end(pwsp_moe_filler *f) {
    const uint64_t cost = f->time - f->room;
    const double in_units = (double)cost * f->u->grid;
    f->cost_sum += cost;
    f->cost_max = in_units > f->cost_max ? in_units : f->cost_max;
    if (f->plan) {
        if (f->plan->lane_costs) {
            f->plan->lane_costs[f->lane] = in_units;
        }
        f->plan->unit_begin[f->lane + 1] = (uint32_t)f->unit_count;
    }
    f->lane++;
    f->room = f->time;
    f->has_expert = false;
}

// Goes on filling with the tokens of a part of an expert; false if they do not fit.
static bool pwsp_moe_fill_part(pwsp_moe_filler *f, uint32_t batch, uint32_t expert, uint32_t part) {
    const pwsp_moe_units *u = f->u;
    const uint64_t count = pwsp_moe_count_at(u, batch, expert);
    uint64_t start = 0;
    while (start < count) {
        const uint64_t taken = pwsp_moe_fit(f, start, count - start);
        if (taken > 0) {
            f->room -= pwsp_moe_cost_of(u, taken) + (f->has_expert ? 0 : u->expert);
            f->has_expert = true;
            if (f->plan) {
                pwsp_moe_write(f, batch, expert, part, start, taken);
            } else {
                f->unit_count += pwsp_moe_unit_count(u, taken);
            }
            start += taken;
        }
        if (start < count) {
            if (f->lane + 1 == u->lane_count) {
                return false;
            }
            pwsp_moe_lane_end(f);
        }
    }
    return true;
}

static bool pwsp_moe_is_used(const pwsp_moe_units *u, uint32_t expert) {
    uint32_t batch = 0;
    while (batch < u->batch_count && pwsp_moe_count_at(u, batch, expert) == 0) {
        batch++;
    }
    return batch < u->batch_count;
}

// Fills lanes with all tokens; false if they do not fit in the time.
static bool pwsp_moe_fill(const pwsp_moe_units *u, uint64_t time, ptowsp_moe_plan *plan,
                          pwsp_moe_filler *f) {
    memset(f, 0, sizeof *f);
    f->u = u, f->plan = plan, f->time = f->room = time;
    if (plan) {
        plan->unit_begin[0] = 0;
    }
    for (uint32_t expert = 0; expert < u->expert_count; expert++) {
        const uint32_t parts = pwsp_moe_is_used(u, expert) ? u->parts : 0;
        for (uint32_t part = 0; part < parts; part++) {
            f->has_expert = false;
            for (uint32_t batch = 0; batch < u->batch_count; batch++) {
                if (!pwsp_moe_fill_part(f, batch, expert, part)) {
                    return false;
                }
            }
        }
    }
    while (f->lane < u->lane_count) {
        pwsp_moe_lane_end(f);
    }
    return true;
}

// The least time in which the tokens fit, and how lanes are filled then. A lane that is full leaves
// less than a block and its fixed costs unused, and the next one begins with an expert and a unit
// that may be paid already. All costs are multiples of a power of two, and so is the least time.
static uint64_t pwsp_moe_time(const pwsp_moe_units *u, pwsp_moe_filler *out_filler) {
    const uint64_t block = u->block_rows * u->token;
    const uint64_t bits = u->unit | u->token | u->expert, step = bits & (~bits + 1);
    uint64_t low = pwsp_ceil_div_u64(pwsp_ceil_div_u64(u->total, u->lane_count), step);
    uint64_t high = low + pwsp_ceil_div_u64(2 * (u->unit + u->expert) + block, step);
    pwsp_moe_filler f;
    if (u->total == 0) {
        low = high = 0;
    }
    bool is_filled = false;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (pwsp_moe_fill(u, middle * step, NULL, &f)) {
            high = middle;
            *out_filler = f;
            is_filled = true;
        } else {
            low = middle + 1;
        }
    }
    if (!is_filled) {
        is_filled = pwsp_moe_fill(u, high * step, NULL, out_filler);
    }
    PTOWSP_ASSERT(is_filled);
    return high * step;
}

// -- parts of columns -----------------------------------------------------------------------------

// A number of parts, the units that it makes, and the time that they need.
typedef struct pwsp_moe_choice {
    pwsp_moe_units u;
    uint64_t time;
    pwsp_moe_filler f;
} pwsp_moe_choice;

// The number of parts that is tried after `parts`: 2, 3, 4, 6, 8, 12, ... and the most.
static uint32_t pwsp_moe_parts_next(uint32_t parts, uint32_t most) {
    const bool is_power = (parts & (parts - 1)) == 0;
    const uint32_t next = parts == 1 ? 2 : is_power ? parts / 2 * 3 : parts / 3 * 4;
    return next < most ? next : most;
}

// Improves a choice, which has one part, by more of them. Equal ones go to fewer parts.
static void pwsp_moe_parts_choose(const ptowsp_moe_batch *batch, const ptowsp_moe_config *config,
                                  pwsp_moe_choice *best) {
    const uint32_t most = pwsp_moe_parts_max(config);
    ptowsp_plan_info spare;
    pwsp_moe_choice other;
    for (uint32_t parts = 1; parts < most;) {
        parts = pwsp_moe_parts_next(parts, most);
        if (pwsp_moe_units_start(batch, config, parts, &other.u, &spare) != PTOWSP_OK) {
            return;  // beyond a limit
        }
        if ((double)other.u.total * other.u.grid / other.u.lane_count >= best->f.cost_max) {
            return;  // and so it is with more
        }
        other.time = pwsp_moe_time(&other.u, &other.f);
        if (other.f.cost_max < best->f.cost_max) {
            *best = other;
        }
    }
}

PWSP_INTERNAL ptowsp_status pwsp_moe_units_start(const ptowsp_moe_batch *batch,
                                                 const ptowsp_moe_config *config, uint32_t parts,
                                                 pwsp_moe_units *u, ptowsp_plan_info *info) {
    ptowsp_status status = pwsp_moe_configure(config, parts, u, info);
    if (status == PTOWSP_OK && !batch) {
        status = PWSP_PLAN_FAIL(info, BATCH_NULL, 0, 0);
    } else if (status == PTOWSP_OK) {
        u->counts = batch->counts;
        u->offsets = batch->offsets;
        status = pwsp_moe_counts_sum(u, info);
    }
    return status;
}

// Decides on the parts and the lanes' shares of a step.
static ptowsp_status pwsp_moe_choose(const ptowsp_moe_batch *batch, const ptowsp_moe_config *config,
                                     pwsp_moe_choice *choice, ptowsp_plan_info *info) {
    const ptowsp_status status = pwsp_moe_units_start(batch, config, 1, &choice->u, info);
    if (status == PTOWSP_OK) {
        choice->time = pwsp_moe_time(&choice->u, &choice->f);
        pwsp_moe_parts_choose(batch, config, choice);
        info->work_count = choice->f.unit_count;
    }
    return status;
}

PWSP_INTERNAL ptowsp_status pwsp_moe_arrays_check(const ptowsp_moe_plan *plan,
                                                  ptowsp_plan_info *info) {
    if (!plan) {
        return PWSP_PLAN_FAIL(info, PLAN_NULL, 0, 0);
    }
    if (!plan->units && plan->unit_capacity > 0) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_PLAN_ARRAY, 0, 0, 0);
    }
    return plan->unit_begin ? PTOWSP_OK : pwsp_plan_fail(info, PTOWSP_FAULT_PLAN_ARRAY, 2, 0, 0);
}

// -- public: sizes --------------------------------------------------------------------------------

// A plan has the arrays of an attention plan without merges.
static ptowsp_attention_sizes pwsp_moe_arrays(const ptowsp_moe_sizes *sizes) {
    const ptowsp_attention_sizes arrays = {sizes->unit_count, 0, 0, 0, sizes->lane_count, 0};
    return arrays;
}

static void pwsp_moe_sizes_set(ptowsp_moe_sizes *sizes, uint64_t unit_count, uint32_t lane_count) {
    sizes->unit_count = unit_count;
    sizes->lane_count = lane_count;
    const ptowsp_attention_sizes arrays = pwsp_moe_arrays(sizes);
    sizes->block_bytes = pwsp_sizes_bytes(&arrays);
}

ptowsp_status ptowsp_moe_bound(const ptowsp_moe_config *config, const ptowsp_moe_limits *limits,
                               ptowsp_moe_sizes *out_sizes, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    if (!out_sizes) {
        return PWSP_PLAN_FAIL(info, OUT_NULL, PWSP_OUT_SIZES, 0);
    }
    memset(out_sizes, 0, sizeof *out_sizes);
    pwsp_moe_units u;
    ptowsp_status status = pwsp_moe_configure(config, 1, &u, info);
    if (status == PTOWSP_OK && !limits) {
        status = PWSP_PLAN_FAIL(info, LIMITS_NULL, 0, 0);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    const uint64_t parts = pwsp_moe_parts_max(config), pairs = limits->pair_count_max;
    const uint64_t counts = pwsp_min_u64(pairs, (uint64_t)u.batch_count * u.expert_count);
    // A range of tokens of one lane has all but its last unit full.
    uint64_t count = counts;
    if (u.unit_tokens != UINT64_MAX) {
        count = pwsp_sum_u64(count, pairs / u.unit_tokens);
    }
    count = count > UINT32_MAX ? count : count * parts;
    count = pwsp_sum_u64(count, counts > 0 ? u.lane_count - UINT64_C(1) : 0);
    count = pwsp_min_u64(count, pairs > UINT32_MAX ? pairs : pairs * parts);
    if (count > UINT32_MAX) {
        return PWSP_PLAN_FAIL(info, UNITS_EXCEEDED, pwsp_info_value(count), UINT32_MAX);
    }
    pwsp_moe_sizes_set(out_sizes, count, u.lane_count);
    return PTOWSP_OK;
}

ptowsp_status ptowsp_moe_size(const ptowsp_moe_batch *batch, const ptowsp_moe_config *config,
                              ptowsp_moe_sizes *out_sizes, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    if (!out_sizes) {
        return PWSP_PLAN_FAIL(info, OUT_NULL, PWSP_OUT_SIZES, 0);
    }
    memset(out_sizes, 0, sizeof *out_sizes);
    pwsp_moe_choice choice;
    const ptowsp_status status = pwsp_moe_choose(batch, config, &choice, info);
    if (status == PTOWSP_OK) {
        pwsp_moe_sizes_set(out_sizes, choice.f.unit_count, choice.u.lane_count);
    }
    return status;
}

ptowsp_status ptowsp_moe_place(const ptowsp_moe_sizes *sizes, void *block, uint64_t block_bytes,
                               ptowsp_moe_plan *out_plan) {
    if (!sizes || !out_plan) {
        return PTOWSP_INVALID_PARAMS;
    }
    const ptowsp_attention_sizes arrays = pwsp_moe_arrays(sizes);
    ptowsp_attention_plan plan;
    const ptowsp_status status = ptowsp_attention_place(&arrays, block, block_bytes, &plan);
    if (status == PTOWSP_OK) {
        memset(out_plan, 0, sizeof *out_plan);
        out_plan->units = plan.units;
        out_plan->unit_begin = plan.unit_begin;
        out_plan->lane_costs = plan.lane_costs;
        out_plan->unit_capacity = plan.unit_capacity;
        out_plan->lane_capacity = out_plan->lane_count = plan.lane_count;
    }
    return status;
}

// -- public: plans --------------------------------------------------------------------------------

ptowsp_status ptowsp_moe_generate(const ptowsp_moe_batch *batch, const ptowsp_moe_config *config,
                                  ptowsp_moe_plan *plan, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    pwsp_moe_choice choice;
    ptowsp_status status = pwsp_moe_choose(batch, config, &choice, info);
    if (status == PTOWSP_OK) {
        status = pwsp_moe_arrays_check(plan, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    const pwsp_moe_units u = choice.u;
    pwsp_moe_filler f = choice.f;
    const uint32_t lanes = pwsp_lane_capacity(plan->lane_capacity);
    if (u.lane_count > lanes) {
        status = PWSP_PLAN_FAIL(info, LANES_SMALL, u.lane_count, lanes);
    } else if (f.unit_count > plan->unit_capacity) {
        status = PWSP_PLAN_FAIL(info, UNITS_SMALL, (int64_t)f.unit_count, plan->unit_capacity);
    }
    if (status != PTOWSP_OK) {
        info->work_count = f.unit_count;
        return status;
    }
    const bool fits = pwsp_moe_fill(&u, choice.time, plan, &f);
    PTOWSP_ASSERT(fits);
    (void)fits;
    const ptowsp_work none = ptowsp_work_of(UINT32_MAX, 0, PTOWSP_WORK_INVALID, 0, 0, 0, 0);
    for (uint64_t i = f.unit_count; i < plan->unit_capacity; i++) {
        plan->units[i] = none;
    }
    plan->unit_count = (uint32_t)f.unit_count;
    plan->lane_count = u.lane_count;
    plan->column_parts = u.parts;
    plan->cost_max = f.cost_max;
    plan->cost_mean = (double)f.cost_sum * u.grid / u.lane_count;
    return PTOWSP_OK;
}

ptowsp_attention_plan ptowsp_moe_plan_units(const ptowsp_moe_plan *plan) {
    ptowsp_attention_plan units;
    memset(&units, 0, sizeof units);
    if (!plan) {
        return units;
    }
    units.units = plan->units;
    units.unit_begin = plan->unit_begin;
    units.lane_costs = plan->lane_costs;
    units.unit_capacity = plan->unit_capacity;
    units.lane_capacity = plan->lane_capacity;
    units.unit_count = plan->unit_count;
    units.lane_count = plan->lane_count;
    units.cost_max = plan->cost_max;
    units.cost_mean = plan->cost_mean;
    return units;
}
