// Memory that lanes share.
//
// HBM and L2 are fluids. A lane that moves bytes is a *flow* with a rate of its own, which it has as
// long as capacity lasts; otherwise flows get max-min shares: all that ask for more than the share
// get the share, the others their own rate.
//
//      free flows    move at their own rate; their ends are known
//      bound flows   all move at the share, (capacity - own rates of free flows) / bound flows
//
// Bound flows move equally much in equal time, so one meter stands for all of them: a flow that has
// `units` to move ends when the meter has moved by that. An event changes the share and no flow, and
// takes a few games of tournaments whatever the number of lanes. When the share has risen above the
// own rate of the slowest bound flow, that one is free; when it has fallen below the rate of the fastest
// free flow, that one is bound. Both raise the share, so the loop over them ends.
//
// All is in integers. A unit is 1/25600 byte: 1/256 of the step of a rate, bytes in 100 cycles. The
// remainder of the share of bound flows is carried. Ends are rounded up to a whole cycle, and a flow that
// becomes bound or free on its way to a unit or a cycle, up as well. So results depend neither on the
// host's threads nor on the order in which flows are looked at, and no capacity is used twice.
//
// A task is a chain of parts (runtime/arrival.h). Of each, the bytes that miss L2 come first, from
// HBM; the others from L2 (hits.h). In truth they alternate. So the cycles of a part are divided as its
// bytes would divide them at the rates of HBM and L2: at equal shares the part then takes max(cycles,
// missed / HBM + others / L2), as if each byte were shared alike.

#include "contention.h"

#define PWSP_UNITS_RATE 256u                      // of a byte in 100 cycles
#define PWSP_UNITS_BYTE (100u * PWSP_UNITS_RATE)  // of a byte
#define PWSP_CAP_MAX    (UINT64_C(1) << 42)       // above all own rates
#define PWSP_METER_MAX  (UINT64_C(1) << 62)

// -- life -----------------------------------------------------------------------------------------

static bool pwsp_bandwidth_init(pwsp_bandwidth *level, const pwsp_memory *memory,
                                uint32_t lane_count) {
    return pwsp_earliest_init(&level->bound_ends, memory, lane_count) &&
           pwsp_earliest_init(&level->bound_by_cap, memory, lane_count) &&
           pwsp_earliest_init(&level->free_by_cap, memory, lane_count);
}

PWSP_INTERNAL bool pwsp_contention_init(pwsp_contention *contention, const pwsp_memory *memory,
                                        const pwsp_timed *timed, pwsp_earliest *ends) {
    memset(contention, 0, sizeof *contention);
    contention->shared = timed->schedule.shared;
    contention->is_used = pwsp_schedule_shares(&timed->schedule);
    contention->memory = *memory;
    contention->lane_count = timed->lane_count;
    contention->ends = ends;
    return !contention->is_used ||
           (PWSP_ALLOC(memory, contention->lanes, timed->lane_count) &&
            PWSP_ALLOC(memory, contention->begun, timed->lane_count) &&
            pwsp_hits_init(&contention->hits, memory, timed) &&
            pwsp_bandwidth_init(&contention->levels[PWSP_LEVEL_HBM], memory, timed->lane_count) &&
            pwsp_bandwidth_init(&contention->levels[PWSP_LEVEL_L2], memory, timed->lane_count));
}

// At least a unit for each lane, so that no share is 0.
static uint64_t pwsp_units_of_rate(const pwsp_contention *contention, uint32_t rate,
                                   uint32_t percent) {
    const uint64_t units = (uint64_t)rate * PWSP_UNITS_RATE * percent / 100;
    return pwsp_max_u64(pwsp_min_u64(units, PWSP_CAP_MAX - 1), contention->lane_count);
}

static void pwsp_bandwidth_begin(pwsp_bandwidth *level, uint64_t capacity) {
    level->capacity = capacity;
    level->share = 0;
    level->next = UINT64_MAX;
    level->meter = level->left = level->carry = level->free_caps = 0;
    level->bound_count = 0;
    level->is_stale = false;
    level->bytes = level->limited_cycles = 0;
    pwsp_earliest_clear(&level->bound_ends, PWSP_EARLIEST_NONE);
    pwsp_earliest_clear(&level->bound_by_cap, PWSP_EARLIEST_NONE);
    pwsp_earliest_clear(&level->free_by_cap, PWSP_EARLIEST_NONE);
}

PWSP_INTERNAL void pwsp_contention_begin(pwsp_contention *contention, uint32_t percent,
                                         uint64_t now) {
    const ptowsp_shared_memory *shared = &contention->shared;
    pwsp_bandwidth_begin(&contention->levels[PWSP_LEVEL_HBM],
                         pwsp_units_of_rate(contention, shared->hbm_rate, percent));
    pwsp_bandwidth_begin(&contention->levels[PWSP_LEVEL_L2],
                         pwsp_units_of_rate(contention, shared->l2_rate, percent));
    contention->lane_cap =
        shared->lane_rate ? pwsp_units_of_rate(contention, shared->lane_rate, 100) : UINT64_MAX;
    pwsp_hits_begin(&contention->hits);
    contention->begun_count = 0;
    contention->now = now;
}

PWSP_INTERNAL bool pwsp_contention_issue(pwsp_contention *contention, uint32_t task,
                                         const pwsp_arrival *arrival,
                                         const pwsp_bound_tensor *bound) {
    if (!PWSP_GROW_LITTLE(&contention->memory, contention->tasks, contention->task_capacity,
                          task + UINT64_C(1))) {
        return false;
    }
    pwsp_contention_task *of = &contention->tasks[task];
    if (!arrival->demand) {
        of->demand.bytes = 0;
        of->demand.part_count = 1;
        of->demand.parts[0].cycles = arrival->cycles;
        of->demand.parts[0].bytes = 0;
    } else {
        of->demand = *arrival->demand;
    }
    of->missed_bytes = 0;
    return pwsp_hits_issue(&contention->hits, task, arrival, bound);
}

// -- flows ----------------------------------------------------------------------------------------

// No flow ends earlier than alone, not even by a share between its own rate and that rounded up.
static uint64_t pwsp_lane_flow_end(const pwsp_contention_lane *flow, uint64_t end) {
    return pwsp_max_u64(end, flow->begin + flow->span);
}

// Flows join a set, with the cycles (alone) or units that they have left.
static void pwsp_lane_flow_free(pwsp_contention *contention, uint32_t lane, uint64_t cycles) {
    const pwsp_contention_lane *flow = &contention->lanes[lane];
    pwsp_bandwidth *level = &contention->levels[flow->level];
    level->free_caps += flow->cap;
    pwsp_earliest_set(&level->free_by_cap, lane, PWSP_CAP_MAX - flow->cap);
    pwsp_earliest_set(contention->ends, lane, pwsp_lane_flow_end(flow, contention->now + cycles));
}

static void pwsp_lane_flow_bind(pwsp_contention *contention, uint32_t lane, uint64_t units) {
    const pwsp_contention_lane *flow = &contention->lanes[lane];
    pwsp_bandwidth *level = &contention->levels[flow->level];
    level->bound_count++;
    pwsp_earliest_set(&level->bound_ends, lane, level->meter + units);
    pwsp_earliest_set(&level->bound_by_cap, lane, flow->cap);
}

// Takes a flow out of its set. The lane's end is the caller's.
static void pwsp_lane_flow_leave(pwsp_contention *contention, uint32_t lane) {
    const pwsp_contention_lane *flow = &contention->lanes[lane];
    pwsp_bandwidth *level = &contention->levels[flow->level];
    if (flow->is_bound) {
        level->bound_count--;
        pwsp_earliest_set(&level->bound_ends, lane, PWSP_EARLIEST_NONE);
        pwsp_earliest_set(&level->bound_by_cap, lane, PWSP_EARLIEST_NONE);
    } else {
        level->free_caps -= flow->cap;
        pwsp_earliest_set(&level->free_by_cap, lane, PWSP_EARLIEST_NONE);
    }
}

// A free flow becomes bound. The units left are in proportion to the time left.
static void pwsp_lane_flow_become_bound(pwsp_contention *contention, uint32_t lane) {
    pwsp_contention_lane *flow = &contention->lanes[lane];
    const uint64_t left = contention->ends->times[lane] - contention->now;
    PTOWSP_ASSERT(!flow->is_bound && left <= flow->span && left > 0);
    pwsp_lane_flow_leave(contention, lane);
    pwsp_earliest_set(contention->ends, lane, PWSP_EARLIEST_NONE);
    flow->is_bound = true;
    pwsp_lane_flow_bind(contention, lane, pwsp_mul_div_up_u64(flow->units, left, flow->span));
}

// A bound flow becomes free.
static void pwsp_lane_flow_become_free(pwsp_contention *contention, uint32_t lane) {
    pwsp_contention_lane *flow = &contention->lanes[lane];
    pwsp_bandwidth *level = &contention->levels[flow->level];
    const uint64_t key = level->bound_ends.times[lane];
    const uint64_t left = key == PWSP_EARLIEST_NONE ? 0 : key - level->meter;
    PTOWSP_ASSERT(flow->is_bound && left <= flow->units);
    pwsp_lane_flow_leave(contention, lane);
    flow->is_bound = false;
    pwsp_lane_flow_free(contention, lane,
                        left ? pwsp_mul_div_up_u64(flow->span, left, flow->units) : 0);
}

// Finds the capacity left for bound flows, and the share of each; without any, all.
static void pwsp_bandwidth_divide(pwsp_bandwidth *level) {
    level->left = level->free_caps < level->capacity ? level->capacity - level->free_caps : 0;
    level->share = level->bound_count                   ? level->left / level->bound_count
                   : level->free_caps > level->capacity ? 0
                                                        : UINT64_MAX;
}

// Finds the share, and which flows it binds.
static void pwsp_bandwidth_settle(pwsp_contention *contention, pwsp_bandwidth *level) {
    level->is_stale = false;
    if (level->bound_count == 0 && level->free_caps <= level->capacity) {
        level->meter = level->carry = 0;
        return;
    }
    for (;;) {
        pwsp_bandwidth_divide(level);
        const uint64_t slowest = pwsp_earliest_time(&level->bound_by_cap);
        const uint64_t fastest = pwsp_earliest_time(&level->free_by_cap);
        if (slowest <= level->share && slowest != PWSP_EARLIEST_NONE) {
            pwsp_lane_flow_become_free(contention, pwsp_earliest_lane(&level->bound_by_cap));
        } else if (fastest != PWSP_EARLIEST_NONE && PWSP_CAP_MAX - fastest > level->share) {
            pwsp_lane_flow_become_bound(contention, pwsp_earliest_lane(&level->free_by_cap));
        } else {
            break;
        }
    }
    PTOWSP_ASSERT(level->bound_count == 0 || level->share > 0);
}

// -- tasks ----------------------------------------------------------------------------------------

// A lane moves bytes, which take it so many cycles alone; with neither it does nothing. False then.
static bool pwsp_contention_begin_flow(pwsp_contention *contention, uint32_t lane,
                                       pwsp_memory_level which, uint64_t cycles, uint64_t bytes) {
    pwsp_contention_lane *flow = &contention->lanes[lane];
    pwsp_bandwidth *level = &contention->levels[which];
    const uint64_t most = pwsp_min_u64(level->capacity, contention->lane_cap);
    const uint64_t units = bytes * PWSP_UNITS_BYTE;
    flow->level = PWSP_LEVEL_NONE;
    if (cycles == 0 && bytes == 0) {
        return false;
    }
    level->bytes = pwsp_sum_u64(level->bytes, bytes);
    flow->units = units;
    flow->begin = contention->now;
    flow->cap = cycles ? pwsp_ceil_div_u64(units, cycles) : most;
    flow->span = cycles;
    if (flow->cap >= most) {
        flow->cap = most;
        flow->span = pwsp_max_u64(cycles, pwsp_ceil_div_u64(units, most));
    }
    if (units == 0) {
        pwsp_earliest_set(contention->ends, lane, contention->now + flow->span);
        return true;
    }
    flow->level = (uint8_t)which;
    level->is_stale = true;
    flow->is_bound = level->bound_count > 0 && flow->cap > level->share;
    if (flow->is_bound) {
        pwsp_earliest_set(contention->ends, lane, PWSP_EARLIEST_NONE);
        pwsp_lane_flow_bind(contention, lane, units);
    } else {
        pwsp_lane_flow_free(contention, lane, flow->span);
    }
    return true;
}

// The cycles of a part for its bytes from HBM.
static uint64_t pwsp_contention_weigh(const pwsp_contention *contention,
                                      const pwsp_demand_part *part, uint64_t bytes) {
    const uint64_t hbm = contention->shared.hbm_rate, l2 = contention->shared.l2_rate;
    const uint64_t from_hbm = pwsp_mul_div_u64(bytes, l2, hbm + l2);
    const uint64_t from_l2 = pwsp_mul_div_u64(part->bytes - bytes, hbm, hbm + l2);
    return from_hbm + from_l2 ? pwsp_mul_div_u64(part->cycles, from_hbm, from_hbm + from_l2)
                              : pwsp_mul_div_u64(part->cycles, bytes, part->bytes);
}

// Begins the next step of a lane's task that takes time. False: the task has ended.
static bool pwsp_contention_begin_step(pwsp_contention *contention, uint32_t lane) {
    pwsp_contention_lane *at = &contention->lanes[lane];
    const pwsp_contention_task *task = &contention->tasks[at->task];
    while (at->step < PWSP_LEVEL_COUNT * task->demand.part_count) {
        const pwsp_demand_part *part = &task->demand.parts[at->step / PWSP_LEVEL_COUNT];
        const pwsp_memory_level level = (pwsp_memory_level)(at->step++ % PWSP_LEVEL_COUNT);
        uint64_t bytes = 0, cycles = 0;  // from HBM
        if (part->bytes && task->missed_bytes) {
            bytes = pwsp_mul_div_u64(part->bytes, task->missed_bytes, task->demand.bytes);
            cycles = pwsp_contention_weigh(contention, part, bytes);
        }
        const bool is_hbm = level == PWSP_LEVEL_HBM;
        if (pwsp_contention_begin_flow(contention, lane, level,
                                       is_hbm ? cycles : part->cycles - cycles,
                                       is_hbm ? bytes : part->bytes - bytes)) {
            return true;
        }
    }
    return false;
}

PWSP_INTERNAL void pwsp_contention_start(pwsp_contention *contention, uint32_t lane, uint32_t task,
                                         uint64_t cycles) {
    pwsp_contention_lane *at = &contention->lanes[lane];
    at->task = task;
    at->start = contention->now;
    at->cycles = cycles;
    at->step = 0;
    at->level = PWSP_LEVEL_NONE;
    if (contention->tasks[task].demand.bytes == 0) {
        contention->tasks[task].demand.parts[0].cycles = cycles;  // of a collective: known only now
    }
    contention->begun[contention->begun_count++] = lane;
    pwsp_earliest_set(contention->ends, lane, PWSP_EARLIEST_NONE);
}

// Begins the tasks that begin now. They share their misses.
static void pwsp_contention_begin_tasks(pwsp_contention *contention) {
    pwsp_hits *hits = &contention->hits;
    pwsp_hits_next_round(hits);
    for (uint32_t i = 0; i < contention->begun_count; i++) {
        pwsp_hits_ask(hits, contention->lanes[contention->begun[i]].task);
    }
    for (uint32_t i = 0; i < contention->begun_count; i++) {
        const uint32_t lane = contention->begun[i], id = contention->lanes[lane].task;
        pwsp_contention_task *task = &contention->tasks[id];
        task->missed_bytes = pwsp_hits_take(hits, id, &task->demand);
        if (!pwsp_contention_begin_step(contention, lane)) {
            pwsp_earliest_set(contention->ends, lane, contention->now);
        }
    }
    contention->begun_count = 0;
}

PWSP_INTERNAL bool pwsp_contention_step(pwsp_contention *contention, uint32_t lane) {
    pwsp_contention_lane *at = &contention->lanes[lane];
    if (at->level != PWSP_LEVEL_NONE) {
        pwsp_bandwidth *level = &contention->levels[at->level];
        pwsp_lane_flow_leave(contention, lane);
        level->is_stale = true;
    }
    const bool has_begun = pwsp_contention_begin_step(contention, lane);
    if (!has_begun) {
        pwsp_hits_end(&contention->hits, at->task);
    }
    PTOWSP_ASSERT(has_begun || contention->now - at->start >= at->cycles);
    return has_begun;
}

// -- time -----------------------------------------------------------------------------------------

// By how much the meter of a level moves in so many cycles; *out_carry is the remainder.
static uint64_t pwsp_bandwidth_moved(const pwsp_bandwidth *level, uint64_t cycles,
                                     uint64_t *out_carry) {
    const uint64_t count = level->bound_count, rest = level->left % count;
    const uint64_t more = cycles % count * rest + level->carry;
    *out_carry = more % count;
    return cycles * level->share + cycles / count * rest + more / count;
}

// When the first bound flow of a level ends, with the present share; UINT64_MAX without any. The
// first cycle at whose end it has moved enough: the carry is worth less than one.
static uint64_t pwsp_bandwidth_next(const pwsp_bandwidth *level, uint64_t now) {
    const uint64_t key = pwsp_earliest_time(&level->bound_ends);
    if (level->bound_count == 0 || key == PWSP_EARLIEST_NONE) {
        return UINT64_MAX;
    }
    const uint64_t units = key - level->meter;
    uint64_t carry, cycles = pwsp_mul_div_up_u64(units, level->bound_count, level->left);
    if (cycles > 0 && pwsp_bandwidth_moved(level, cycles - 1, &carry) >= units) {
        cycles--;
    }
    return now + cycles;
}

PWSP_INTERNAL uint64_t pwsp_contention_next(pwsp_contention *contention) {
    uint64_t next = UINT64_MAX;
    if (contention->begun_count) {
        pwsp_contention_begin_tasks(contention);
    }
    for (uint32_t i = 0; i < PWSP_LEVEL_COUNT; i++) {
        pwsp_bandwidth *level = &contention->levels[i];
        if (level->is_stale) {
            pwsp_bandwidth_settle(contention, level);
            level->next = pwsp_bandwidth_next(level, contention->now);
        }
        next = pwsp_min_u64(next, level->next);
    }
    return next;
}

PWSP_INTERNAL uint32_t pwsp_contention_first(const pwsp_contention *contention) {
    const pwsp_bandwidth *levels = contention->levels;
    return pwsp_earliest_lane(
        &levels[levels[PWSP_LEVEL_HBM].next <= levels[PWSP_LEVEL_L2].next ? PWSP_LEVEL_HBM
                                                                          : PWSP_LEVEL_L2]
             .bound_ends);
}

// The meter goes back to 0, and the keys with it.
static PWSP_COLD void pwsp_bandwidth_rebase(pwsp_contention *contention, pwsp_bandwidth *level) {
    for (uint32_t lane = 0; lane < contention->lane_count; lane++) {
        const uint64_t key = level->bound_ends.times[lane];
        if (key != PWSP_EARLIEST_NONE) {
            pwsp_earliest_set(&level->bound_ends, lane, key - level->meter);
        }
    }
    level->meter = 0;
}

PWSP_INTERNAL void pwsp_contention_move(pwsp_contention *contention, uint64_t now) {
    const uint64_t cycles = now - contention->now;
    contention->now = now;
    for (uint32_t i = 0; i < PWSP_LEVEL_COUNT; i++) {
        pwsp_bandwidth *level = &contention->levels[i];
        if (level->bound_count == 0) {
            continue;
        }
        level->meter += pwsp_bandwidth_moved(level, cycles, &level->carry);
        level->limited_cycles += cycles;
        while (pwsp_earliest_time(&level->bound_ends) <= level->meter) {
            const uint32_t lane = pwsp_earliest_lane(&level->bound_ends);
            pwsp_earliest_set(&level->bound_ends, lane, PWSP_EARLIEST_NONE);
            pwsp_earliest_set(contention->ends, lane,
                              pwsp_lane_flow_end(&contention->lanes[lane], now));
            level->is_stale = true;
        }
        if (level->meter > PWSP_METER_MAX) {
            pwsp_bandwidth_rebase(contention, level);
        }
    }
}

PWSP_INTERNAL void pwsp_contention_end(const pwsp_contention *contention, ptowsp_run_stats *stats) {
    const pwsp_bandwidth *levels = contention->levels;
    stats->hbm_bytes = levels[PWSP_LEVEL_HBM].bytes;
    stats->l2_bytes = levels[PWSP_LEVEL_L2].bytes;
    stats->hbm_limited_cycles = levels[PWSP_LEVEL_HBM].limited_cycles;
    stats->l2_limited_cycles = levels[PWSP_LEVEL_L2].limited_cycles;
}
