// Lanes, pools, streams and results: shared by in-order, fifo and event-driven simulation.

#include "sim.h"

#include "../base/text.h"

#include <inttypes.h>

// -- errors ---------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_sim_fail(pwsp_sim *sim, ptowsp_status status, uint64_t index,
                                 const char *format, ...) {
    PWSP_TEXT_FORMAT_INTO(sim->text, format);
    sim->status = status;
    sim->index = index;
    return false;
}

PWSP_INTERNAL bool pwsp_sim_no_memory(pwsp_sim *sim) {
    return pwsp_sim_fail(sim, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
}

PWSP_INTERNAL bool pwsp_sim_fail_gate(pwsp_sim *sim, const char *what, const char *larger) {
    const ptowsp_schedule *schedule = sim->schedule;
    char window[32] = "";
    if (schedule->window_policy == PTOWSP_WINDOW_STALL) {
        pwsp_text_into(window, sizeof window, " (window %u)", schedule->window);
    }
    char threshold[64] = "all tasks";
    if (schedule->start != PTOWSP_START_ALL_ISSUED) {
        pwsp_text_into(threshold, sizeof threshold, "%" PRIu64 " tasks", schedule->start_threshold);
    }
    return pwsp_sim_fail(sim, PTOWSP_STUCK, sim->task_count,
                         "run: stuck at task %" PRIu64 ": %s, but no task ends before %s have been "
                         "issued, and %" PRIu64 " are%s; %san earlier start or no start condition "
                         "would help",
                         sim->task_count, what, threshold, sim->issue_count, window, larger);
}

PWSP_INTERNAL bool pwsp_sim_fail_abort(pwsp_sim *sim) {
    return pwsp_sim_fail(sim, PTOWSP_LIMIT_EXCEEDED, sim->task_count,
                         "run: task %" PRIu64 " finds the window of %u tasks full at cycle %" PRIu64
                         "; a larger window, or the stall policy, would help",
                         sim->task_count, sim->schedule->window, sim->clock.now);
}

PWSP_INTERNAL bool pwsp_sim_fail_ring(pwsp_sim *sim, ptowsp_ring ring, uint32_t node,
                                      bool is_open) {
    const pwsp_rings *rings = &sim->rings;
    uint64_t size = sim->schedule->ring_sizes[ring], needed = rings->needed[ring];
    char text[256 + 2 * (PWSP_PLACE_TEXT_MAX + 2 * PTOWSP_NAME_MAX)];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_output out = ptowsp_output_to_buffer(&buffer);
    pwsp_text_format(out, "ring %s of %" PRIu64 " has no room for %" PRIu64, ptowsp_ring_name(ring),
                     size, needed);
    pwsp_text_format(out, " of ");
    sim->timed->print_place(sim->timed->user, node, out);
    if (!is_open && needed <= size) {
        return pwsp_sim_fail_gate(sim, text, "a larger ring, ");
    }
    uint64_t enough = pwsp_sum_u64(needed <= size ? rings->used[ring] : 0, needed);
    if (needed <= size) {
        PTOWSP_ASSERT(ring == PTOWSP_RING_BYTES);
        pwsp_text_format(out, ", as %" PRIu64 " are held until ", rings->used[ring]);
        sim->timed->print_place(sim->timed->user, pwsp_rings_holder(rings), out);
        pwsp_text_format(out, " ends");
    }
    return pwsp_sim_fail(sim, PTOWSP_STUCK, sim->task_count,
                         "run: stuck at task %" PRIu64 " in cycle %" PRIu64
                         ": %s; a ring of %" PRIu64 "%s would help",
                         sim->task_count, sim->clock.now, text, enough,
                         needed <= size ? ", or a smaller scope," : "");
}

PWSP_INTERNAL bool pwsp_sim_fail_depth(pwsp_sim *sim, ptowsp_depth depth) {
    char text[PTOWSP_NAME_MAX + 64];
    const uint32_t group = sim->rings.groups[depth];
    const char *name = depth == PTOWSP_DEPTH_POOL ? sim->timed->pools[group].name : "";
    pwsp_text_into(text, sizeof text, "depth %s%s%s of %u has no room for it",
                   ptowsp_depth_name(depth), *name ? " " : "", name,
                   pwsp_rings_depth(sim->timed, depth, group));
    return pwsp_sim_fail_gate(sim, text, "a larger depth, ");
}

PWSP_INTERNAL bool pwsp_sim_fail_pipeline(pwsp_sim *sim, uint32_t node) {
    char place[PWSP_PLACE_TEXT_MAX + 2 * PTOWSP_NAME_MAX];
    ptowsp_output_buffer buffer = {place, sizeof place, 0};
    sim->timed->print_place(sim->timed->user, node, ptowsp_output_to_buffer(&buffer));
    return pwsp_sim_fail(sim, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "%s: the pipeline ends after 2^63 - 1 cycles", place);
}

PWSP_INTERNAL PWSP_COLD bool pwsp_sim_fail_time(pwsp_sim *sim, uint64_t number) {
    return pwsp_sim_fail(sim, PTOWSP_LIMIT_EXCEEDED, number,
                         "run: task %" PRIu64 " ends after 2^63 - 1 cycles", number);
}

// -- life -----------------------------------------------------------------------------------------

static bool pwsp_sim_has_turns(const pwsp_sim *sim) {
    return sim->timed->has_streams && sim->schedule->timing == PTOWSP_TIMING_INTERLEAVED;
}

// False when memory is out.
static bool pwsp_sim_init_earliest(pwsp_sim *sim) {
    const pwsp_pool_info *pools = sim->timed->pools;
    uint32_t pool_count = sim->timed->pool_count - sim->timed->has_link;
    bool is_good = true;
    if (!sim->policy.is_shared || !sim->policy.is_in_order) {
        return true;
    }
    for (uint32_t i = 0; i < pool_count && is_good; i++) {
        is_good = pools[i].count == 0 ||
                  pwsp_earliest_init(&sim->earliest[i], &sim->memory, pools[i].count);
    }
    const uint32_t block_count = sim->schedule->pools == PTOWSP_POOLS_BY_UNIT
                                     ? pwsp_block_count(pools[0].count, pools[1].count)
                                     : 0;
    return is_good &&
           (block_count == 0 || pwsp_earliest_init(&sim->blocks, &sim->memory, block_count));
}

PWSP_INTERNAL bool pwsp_sim_init(pwsp_sim *sim, const pwsp_memory *memory,
                                 const pwsp_timed *timed) {
    memset(sim, 0, sizeof *sim);
    const ptowsp_schedule *schedule = &timed->schedule;
    uint32_t lane_count = timed->lane_count;
    sim->timed = timed;
    sim->schedule = schedule;
    sim->policy = pwsp_policy_of(schedule);
    uint32_t cost;
    const bool fits = pwsp_control_costs_make(&schedule->control, &sim->control, &cost);
    PTOWSP_ASSERT(fits);  // it has been checked
    (void)fits;
    sim->has_starts = schedule->control.by != PTOWSP_CONTROL_NONE;
    sim->memory = *memory;
    bool is_good =
        PWSP_ALLOC(memory, sim->lanes, lane_count) &&
        PWSP_ALLOC(memory, sim->lane_stats, lane_count) && pwsp_sim_init_earliest(sim) &&
        (!pwsp_sim_has_turns(sim) || PWSP_ALLOC(memory, sim->turns, schedule->stream_count)) &&
        PWSP_ALLOC(memory, sim->starts, timed->pipeline_count) &&
        pwsp_precedence_init(&sim->order, memory, timed) &&
        pwsp_deps_init(&sim->deps, &sim->memory, timed->tensor_count) &&
        pwsp_rings_init(&sim->rings, &sim->memory, timed);
    sim->deps.is_counted = schedule->ring_sizes[PTOWSP_RING_DEPENDENCIES] > 0;
    return is_good;
}

PWSP_INTERNAL bool pwsp_sim_gate_needs_count(const pwsp_sim *sim) {
    return sim->schedule->start_threshold > 0 &&
           (sim->schedule->timing == PTOWSP_TIMING_BATCHED ||
            sim->schedule->timing == PTOWSP_TIMING_RATE_LIMITED);
}

// Tasks begin to start when the clock reaches that of the last task required by start. Nothing ends
// before, so only timing has moved the clock by then.
PWSP_INTERNAL bool pwsp_sim_set_gate(pwsp_sim *sim, uint64_t total_count) {
    const ptowsp_schedule *schedule = sim->schedule;
    uint64_t count = pwsp_min_u64(schedule->start_threshold, total_count);
    sim->gate_time = 0;
    PTOWSP_ASSERT(pwsp_sim_gate_needs_count(sim));
    if (count == 0) {
        return true;
    }
    if (total_count == UINT64_MAX) {
        return pwsp_sim_fail(sim, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                             "run: start %s with timing needs the number of tasks beforehand, and "
                             "it depends on data that tasks write",
                             schedule->start == PTOWSP_START_ALL_ISSUED ? "all issued"
                                                                        : "threshold");
    }
    uint64_t steps = count - 1;
    if (schedule->timing == PTOWSP_TIMING_BATCHED) {
        steps /= schedule->timing_count;
    }
    const uint64_t launch = sim->clock.now;
    if (!pwsp_mul_fits(steps, schedule->timing_cycles, &sim->gate_time) ||
        sim->gate_time > PTOWSP_CYCLES_MAX - launch) {
        return pwsp_sim_fail(sim, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                             "run: issuing %" PRIu64 " tasks takes more than 2^63 - 1 cycles",
                             count);
    }
    sim->gate_time += launch;
    return true;
}

// A lane has taken a task: when it is free, and of a block, when all of that are.
static void pwsp_sim_set_earliest(pwsp_sim *sim, uint32_t lane) {
    const uint32_t pool = pwsp_pool_of(sim->timed->pools, sim->timed->pool_count, lane);
    const uint32_t block = pwsp_block_of(sim->pools[0].count, lane);
    pwsp_earliest_set(&sim->earliest[pool], lane - sim->pools[pool].first, sim->lanes[lane].free);
    if (block < sim->blocks.tournament.lane_count) {
        uint32_t cube = sim->pools[1].first + block;
        pwsp_earliest_set(&sim->blocks, block,
                          pwsp_sim_last_lane(sim, PTOWSP_UNIT_MIX, cube)->free);
    }
}

// No lane has a task. Lanes of cores are free when these start.
static void pwsp_sim_begin_lanes(pwsp_sim *sim) {
    const pwsp_timed *timed = sim->timed;
    const uint64_t launch = sim->control.cycles[PTOWSP_CONTROL_LAUNCH];
    for (uint32_t p = 0; p < timed->pool_count; p++) {
        const pwsp_pool_info *pool = &timed->pools[p];
        const bool is_link = timed->has_link && p + 1 == timed->pool_count;
        for (uint32_t i = 0; i < pool->count && pool->first + i < timed->lane_count; i++) {
            pwsp_lane *lane = &sim->lanes[pool->first + i];
            lane->free = launch;
            if (sim->has_starts && !is_link) {
                lane->free += pwsp_control_start(&sim->control, i, pool->count);
            }
            lane->last_task = PTOWSP_NO_INDEX;
        }
    }
}

PWSP_INTERNAL void pwsp_sim_begin(pwsp_sim *sim) {
    const pwsp_timed *timed = sim->timed;
    const ptowsp_schedule *schedule = sim->schedule;
    const uint64_t launch = sim->control.cycles[PTOWSP_CONTROL_LAUNCH];
    pwsp_sim_begin_lanes(sim);
    memset(sim->lane_stats, 0, timed->lane_count * sizeof(ptowsp_lane_stats));
    pwsp_precedence_begin(&sim->order);
    for (uint32_t i = 0; sim->turns && i < schedule->stream_count; i++) {
        sim->turns[i] = i * schedule->timing_cycles;
    }
    if (sim->starts) {
        memset(sim->starts, 0, (size_t)timed->pipeline_count * sizeof(pwsp_pipeline_start));
    }
    for (uint32_t i = 0; i < timed->pool_count; i++) {
        pwsp_pool_lanes pool = {timed->pools[i].first, timed->pools[i].count, 0};
        sim->pools[i] = pool;
    }
    for (uint32_t i = 0; i < PTOWSP_SCHEDULE_POOL_MAX; i++) {
        if (sim->earliest[i].times) {
            pwsp_earliest_clear(&sim->earliest[i], 0);
        }
    }
    if (sim->blocks.times) {
        pwsp_earliest_clear(&sim->blocks, 0);
    }
    sim->last_count = 0;
    for (uint32_t i = 0; sim->policy.is_in_order && sim->policy.is_shared &&
                         i < timed->lane_count - timed->has_link;
         i++) {
        pwsp_sim_set_earliest(sim, i);
    }
    pwsp_clock clock = {launch, launch ? PTOWSP_STALL_CONTROL : PTOWSP_STALL_NONE, PTOWSP_NO_INDEX};
    sim->clock = clock;
    sim->task_count = 0;
    sim->issue_count = 0;
    sim->deps.access_max = 0;
    sim->batch_clock = 0;
    if (sim->rings.is_used) {
        pwsp_rings_begin(&sim->rings);
    }
    memset(&sim->stats, 0, sizeof sim->stats);
    sim->stats.lane_count = timed->lane_count;
    sim->stats.stall_cycles[PTOWSP_STALL_CONTROL] = launch;
    sim->has_records = false;
    sim->is_held = false;
    sim->status = PTOWSP_OK;
    sim->index = PTOWSP_NO_INDEX;
    sim->gate_time = 0;
}

PWSP_INTERNAL void pwsp_sim_end(pwsp_sim *sim) {
    ptowsp_run_stats *stats = &sim->stats;
    stats->task_count = sim->task_count;
    stats->region_max = sim->deps.access_max;
    for (uint32_t i = 0; i < PTOWSP_RING_COUNT; i++) {
        stats->ring_max[i] = sim->schedule->ring_sizes[i] ? sim->rings.used_max[i] : 0;
    }
    for (uint32_t i = 0; i < sim->timed->lane_count; i++) {
        ptowsp_lane_stats *lane = &sim->lane_stats[i];
        PTOWSP_ASSERT(lane->busy_cycles <= stats->makespan_cycles);
        lane->idle_cycles = stats->makespan_cycles - lane->busy_cycles;
        lane->end_cycles = pwsp_lane_end(sim, &sim->lanes[i]);
        stats->busy_cycles = pwsp_sum_u64(stats->busy_cycles, lane->busy_cycles);
        stats->slowed_cycles = pwsp_sum_u64(stats->slowed_cycles, lane->slowed_cycles);
    }
}

// -- rules ----------------------------------------------------------------------------------------

PWSP_INTERNAL uint64_t pwsp_sim_timing(const pwsp_sim *sim) {
    const ptowsp_schedule *schedule = sim->schedule;
    uint64_t now = sim->clock.now;
    if (sim->issue_count == 0) {
        return now;
    }
    if (schedule->timing == PTOWSP_TIMING_BATCHED) {
        return sim->issue_count % schedule->timing_count
                   ? now
                   : pwsp_max_u64(now, sim->batch_clock + schedule->timing_cycles);
    }
    // batch_clock is the last task's, as each is a batch of one
    return schedule->timing == PTOWSP_TIMING_RATE_LIMITED
               ? pwsp_max_u64(now, sim->batch_clock + schedule->timing_cycles)
               : now;
}

PWSP_INTERNAL uint64_t pwsp_sim_turn(pwsp_sim *sim, const pwsp_arrival *arrival) {
    const ptowsp_schedule *schedule = sim->schedule;
    const uint32_t stream = pwsp_precedence_stream(&sim->order, arrival);
    PTOWSP_ASSERT(sim->turns && stream < schedule->stream_count);
    uint64_t round = schedule->stream_count * schedule->timing_cycles;
    uint64_t turn = sim->turns[stream];
    if (turn < sim->clock.now) {
        turn += pwsp_ceil_div_u64(sim->clock.now - turn, round) * round;
    }
    sim->turns[stream] = turn + round;
    return turn;
}

PWSP_INTERNAL void pwsp_sim_ask_rings(pwsp_sim *sim, const pwsp_arrival *arrival,
                                      bool (*is_open)(const void *user, const pwsp_token *token),
                                      const void *user) {
    uint64_t edges = 0;
    if (sim->deps.is_counted) {
        edges = pwsp_precedence_count(&sim->order, arrival, true, is_open, user);
        for (uint64_t i = 0; i < sim->deps.visited_count; i++) {
            edges += is_open(user, &sim->deps.visited[i]);
        }
    }
    pwsp_rings_ask(&sim->rings, arrival, sim->deps.bound, edges);
}

PWSP_INTERNAL uint64_t pwsp_sim_idle(const pwsp_sim *sim, ptowsp_unit unit, uint32_t lane,
                                     uint64_t start) {
    uint32_t lanes[PWSP_BLOCK_LANES];
    const uint32_t count = pwsp_sim_lanes(sim, unit, lane, lanes);
    uint64_t idle = 0;
    for (uint32_t i = 0; i < count; i++) {
        idle = pwsp_sum_u64(idle, start - pwsp_lane_end(sim, &sim->lanes[lanes[i]]));
    }
    return idle;
}

PWSP_INTERNAL const pwsp_lane *pwsp_sim_last_ended(const pwsp_sim *sim, ptowsp_unit unit,
                                                   uint32_t lane) {
    return pwsp_sim_last_of(sim, unit, lane, true);
}

PWSP_INTERNAL void pwsp_sim_record_start(const pwsp_sim *sim, uint64_t index,
                                         ptowsp_task_record *record, ptowsp_unit unit,
                                         uint64_t could) {
    PTOWSP_ASSERT(could <= record->start);
    pwsp_idle_part part = {0, record->stall};
    if (could < record->start) {
        part.cycles = pwsp_sim_idle(sim, unit, record->lane, could);
        record->stall = PTOWSP_STALL_CONTROL;
    }
    sim->recorder.done(sim->recorder.user, index,
                       pwsp_sim_idle(sim, unit, record->lane, record->start), part);
}

static uint32_t pwsp_sim_dispatch_any(pwsp_sim *sim, uint32_t pool, bool has_block) {
    const uint32_t first = sim->pools[pool].first;
    if (pool >= sim->timed->pool_count - sim->timed->has_link) {
        return first;
    }
    for (uint32_t i = 0; i < sim->last_count; i++) {
        pwsp_sim_set_earliest(sim, sim->last_lanes[i]);
    }
    const uint32_t lane = pwsp_earliest_lane(has_block ? &sim->blocks : &sim->earliest[pool]);
    sim->last_count = pwsp_sim_lanes(sim, has_block ? PTOWSP_UNIT_MIX : PTOWSP_UNIT_VECTOR,
                                     first + lane, sim->last_lanes);
    return first + lane;
}

PWSP_INTERNAL uint32_t pwsp_sim_dispatch_other(pwsp_sim *sim, uint32_t pool_index, bool has_block,
                                               uint64_t key) {
    const pwsp_pool_lanes *pool = &sim->pools[pool_index];
    PTOWSP_ASSERT(pool->first + pool->count <= sim->timed->lane_count);
    return sim->policy.lane_rule == PWSP_LANE_ANY
               ? pwsp_sim_dispatch_any(sim, pool_index, has_block)
               : pool->first + pwsp_lane_choose(sim->policy.lane_rule, key, 0, pool->count);
}

PWSP_INTERNAL void pwsp_sim_dispatch_batch(pwsp_sim *sim, uint32_t pool_index, const uint64_t *keys,
                                           uint32_t count, uint32_t *out_lanes) {
    PTOWSP_ASSERT(sim->policy.lane_rule != PWSP_LANE_ANY);
    pwsp_pool_lanes *pool = &sim->pools[pool_index];
    const uint32_t first = pool->first, lane_count = pool->count;
    if (sim->policy.lane_rule == PWSP_LANE_IN_TURN) {
        uint32_t next = pool->next;
        for (uint32_t i = 0; i < count;) {
            const uint32_t left = count - i, round = lane_count - next;
            const uint32_t end = i + (left < round ? left : round);
            for (next += first; i < end; i++) {
                out_lanes[i] = next++;
            }
            next = next - first == lane_count ? 0 : next - first;
        }
        pool->next = next;
        return;
    }
    const bool is_mixed = sim->policy.lane_rule == PWSP_LANE_BY_MIXED_KEY;
    uint64_t low = 0, span = 0;  // keys [low, low + span) have the lanes from the first on
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t key = is_mixed ? pwsp_mix64(keys[i]) : keys[i];
        if (key - low >= span) {  // keys are often near the one before
            low = key - pwsp_modulo(key, lane_count);
            span = low > UINT64_MAX - lane_count ? UINT64_MAX - low + 1 : lane_count;
        }
        out_lanes[i] = first + (uint32_t)(key - low);
    }
}

PWSP_INTERNAL ptowsp_stall pwsp_sim_cause(const pwsp_sim *sim, const pwsp_token *ready,
                                          const pwsp_lane *lane, uint64_t issue, uint64_t start,
                                          uint64_t *out_cause) {
    *out_cause = PTOWSP_NO_INDEX;
    if (start == 0) {
        return PTOWSP_STALL_NONE;
    }
    if (ready->time == start) {
        *out_cause = ready->task;
        return PTOWSP_STALL_DEPENDENCY;
    }
    if (pwsp_lane_end(sim, lane) == start) {
        *out_cause = lane->last_task;
        return PTOWSP_STALL_LANE;
    }
    if (issue != start) {
        return PTOWSP_STALL_START;
    }
    if (issue != sim->clock.now) {
        return PTOWSP_STALL_TIMING;  // a turn
    }
    *out_cause = sim->clock.cause;
    return sim->clock.stall;
}

PWSP_INTERNAL uint64_t pwsp_sim_place_records(pwsp_sim *sim, uint64_t first, uint64_t count,
                                              const pwsp_token *ready, uint64_t issue,
                                              uint64_t start) {
    PTOWSP_ASSERT(start >= ready->time && first + count <= sim->task_count);
    bool is_waited_for = ready->time == start;
    ptowsp_stall stall = is_waited_for ? PTOWSP_STALL_DEPENDENCY : sim->clock.stall;
    uint64_t cause = is_waited_for ? ready->task : sim->clock.cause;
    if (start == 0) {
        stall = PTOWSP_STALL_NONE;
        cause = PTOWSP_NO_INDEX;
    }
    for (uint64_t i = first; sim->has_records && i < first + count; i++) {
        ptowsp_task_record *record = sim->recorder.at(sim->recorder.user, i);
        record->stall = record->stall == PTOWSP_STALL_NONE ? stall : record->stall;
        record->cause = record->cause == PTOWSP_NO_INDEX ? cause : record->cause;
        record->issue = issue;
        record->ready += start;
        record->start += start;
        record->end += start;
        if (record->start == 0) {  // also after a task of no cycles
            record->stall = PTOWSP_STALL_NONE;
            record->cause = PTOWSP_NO_INDEX;
        }
        const pwsp_idle_part none = {0, PTOWSP_STALL_NONE};
        sim->recorder.done(sim->recorder.user, i, 0, none);
    }
    return cause;
}

const char *ptowsp_unit_name(ptowsp_unit unit) {
    static const char names[][32] = {PTOWSP_UNITS(PWSP_TABLE_TEXT)};
    return unit == PTOWSP_UNIT_LINK             ? "link"
           : (uint32_t)unit < PTOWSP_UNIT_COUNT ? names[unit]
                                                : "unknown";
}

PWSP_TEXTS(ptowsp_ring_name, ptowsp_ring, PTOWSP_RINGS, "unknown")

PWSP_TEXTS(ptowsp_depth_name, ptowsp_depth, PTOWSP_DEPTHS, "unknown")

PWSP_TEXTS(ptowsp_stall_name, ptowsp_stall, PTOWSP_STALLS, "unknown")
