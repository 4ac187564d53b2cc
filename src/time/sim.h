// Shared by both simulations of time: lanes, pools, streams, the clock of issue, results.

#ifndef PWSP_SIM_H
#define PWSP_SIM_H

#include "../base/earliest.h"
#include "../base/text.h"
#include "../runtime/control_costs.h"
#include "../runtime/deps.h"
#include "../engine/policy.h"
#include "../runtime/precedence.h"
#include "rings.h"

typedef struct pwsp_lane {
    uint64_t free;       // the end of its last task; without one, when its core starts
    uint64_t last_task;  // that task, or PTOWSP_NO_INDEX
} pwsp_lane;

typedef struct pwsp_pool_lanes {
    uint32_t first, count;
    uint32_t next;  // round robin
} pwsp_pool_lanes;

// LATER: other ranks have to go on first. All of the timeline's calls return false then, with
// sim->is_held, and the one that did is made again.
typedef enum pwsp_meeting {
    PWSP_MEETING_FAILED,
    PWSP_MEETING_FOUND,
    PWSP_MEETING_LATER
} pwsp_meeting;

// Tasks that communicate, where their times depend on other ranks: the cycles of a task that could
// start at a time here, its wait for them included. FAILED is with an error in the sim. Tasks come
// in program order. Without a function they take the cycles that they come with.
typedef struct pwsp_sim_meeting {
    pwsp_meeting (*find_cycles)(void *user, uint64_t task, uint64_t start, uint64_t *out_cycles);
    void *user;
} pwsp_sim_meeting;

// The start of a pipeline's last run.
typedef struct pwsp_pipeline_start {
    uint64_t time;
    uint32_t run;
} pwsp_pipeline_start;

// The clock of issue: its time, and the cause of it.
typedef struct pwsp_clock {
    uint64_t now;
    ptowsp_stall stall;
    uint64_t cause;
} pwsp_clock;

// The part of a lane's idle time that is not control, and its reason.
typedef struct pwsp_idle_part {
    uint64_t cycles;
    ptowsp_stall stall;
} pwsp_idle_part;

// The keeper of the tasks' records; without functions records are not kept.
typedef struct pwsp_sim_recorder {
    // A record for the next task, sim->task_count. NULL: memory is out.
    ptowsp_task_record *(*add)(void *user, const pwsp_arrival *arrival);
    // The record of a task that is not done.
    ptowsp_task_record *(*at)(void *user, uint64_t index);
    // The record is complete; its lanes, if it has any, were idle for so many cycles before it. A
    // part of these may have another reason than the record's.
    void (*done)(void *user, uint64_t index, uint64_t idle_cycles, pwsp_idle_part part);
    // NULL: it need not know.
    void (*mark)(void *user, const pwsp_mark *mark);
    void *user;
} pwsp_sim_recorder;

typedef struct pwsp_sim {
    const pwsp_timed *timed;
    const ptowsp_schedule *schedule;
    pwsp_policy policy;  // of the schedule
    pwsp_control_costs control;
    bool has_starts;  // cores start later than at 0. Else lanes need not know their last tasks
    pwsp_memory memory;
    pwsp_lane *lanes;
    ptowsp_lane_stats *lane_stats;
    pwsp_pool_lanes pools[PWSP_POOL_MAX];
    // When lanes are free, if the first one takes a task in order: of each pool but that of the
    // links, which has no times, and of blocks. Those of the task dispatched last are brought up to date by the next one.
    pwsp_earliest earliest[PWSP_POOL_MAX], blocks;
    uint32_t last_lanes[PWSP_BLOCK_LANES], last_count;
    uint64_t *turns;              // interleaved, by stream: the first turn that is not taken
    pwsp_pipeline_start *starts;  // by pipeline
    pwsp_precedence order;
    pwsp_deps deps;
    pwsp_rings rings;
    pwsp_clock clock;
    uint64_t task_count;   // all so far: the next index
    uint64_t issue_count;  // of these, tasks of lanes: those that start, window and timing count
    uint64_t batch_clock;  // when the last batch began
    uint64_t gate_time;    // the clock at that moment
    ptowsp_run_stats stats;
    pwsp_sim_recorder recorder;
    pwsp_sim_meeting meeting;
    uint32_t memory_percent;  // what if: of the rates of shared memory; 0: 100
    bool is_held;             // until a meeting's time is known
    bool has_records;
    ptowsp_status status;  // of the last failure
    uint64_t index;
    char text[PWSP_ERROR_TEXT_MAX];
} pwsp_sim;

// Do lanes choose among ready tasks, or do ends depend on later tasks, as where lanes share
// memory? Then time is event-driven, else in order.
PWSP_INLINE bool pwsp_policy_is_choice(const pwsp_policy *policy) {
    return !policy->is_in_order && (policy->is_shared || policy->has_priority || policy->steals);
}

PWSP_INLINE bool pwsp_schedule_is_events(const ptowsp_schedule *schedule) {
    const pwsp_policy policy = pwsp_policy_of(schedule);
    return pwsp_policy_is_choice(&policy) || pwsp_schedule_shares(schedule);
}

// Does control decide when tasks start or are complete? Time is event-driven then. Kernels that walk
// their own blocks only start later.
PWSP_INLINE bool pwsp_schedule_has_events(const ptowsp_schedule *schedule) {
    return schedule->control.by == PTOWSP_CONTROL_HOST ||
           schedule->control.by == PTOWSP_CONTROL_AICPU;
}

PWSP_INTERNAL bool pwsp_sim_init(pwsp_sim *sim, const pwsp_memory *memory, const pwsp_timed *timed);

// Back to time 0, without records.
PWSP_INTERNAL void pwsp_sim_begin(pwsp_sim *sim);

// Where each lane runs tasks in order, the time at which tasks begin to start must be known
// beforehand. The first function tells whether that takes the number of tasks. The second sets the
// time from that number (UINT64_MAX: not known). False with an error.
PWSP_INTERNAL bool pwsp_sim_gate_needs_count(const pwsp_sim *sim);
PWSP_INTERNAL bool pwsp_sim_set_gate(pwsp_sim *sim, uint64_t total_count);

// Records an error; returns false.
PWSP_INTERNAL bool pwsp_sim_fail(pwsp_sim *sim, ptowsp_status status, uint64_t index,
                                 const char *format, ...) PWSP_PRINTF(4, 5);
PWSP_INTERNAL bool pwsp_sim_no_memory(pwsp_sim *sim);

// Nothing can proceed because tasks have not begun to start; `what` is the waiting part, and
// `larger` the beginning of the advice: "a larger window, ", or nothing.
PWSP_INTERNAL bool pwsp_sim_fail_gate(pwsp_sim *sim, const char *what, const char *larger);
PWSP_INTERNAL bool pwsp_sim_fail_abort(pwsp_sim *sim);

// No ring has room for the next task, and none will: tasks have not begun to start, or one is too
// small, or its bytes are held until a scope ends.
PWSP_INTERNAL bool pwsp_sim_fail_ring(pwsp_sim *sim, ptowsp_ring ring, uint32_t node, bool is_open);

// Can the ring that lacks room never have it, whatever ends?
PWSP_INLINE bool pwsp_sim_ring_is_small(const pwsp_sim *sim, ptowsp_ring ring) {
    return sim->rings.needed[ring] > sim->schedule->ring_sizes[ring];
}

// The stream or pool of the next task is as deep as it may be, before tasks have begun to start.
PWSP_INTERNAL bool pwsp_sim_fail_depth(pwsp_sim *sim, ptowsp_depth depth);

PWSP_INLINE ptowsp_stall pwsp_ring_stall(ptowsp_ring ring) {
    return (ptowsp_stall)((uint32_t)PTOWSP_STALL_TASK_RING + (uint32_t)ring);
}

// A pipeline ends after PTOWSP_CYCLES_MAX.
PWSP_INTERNAL bool pwsp_sim_fail_pipeline(pwsp_sim *sim, uint32_t node);
// Task `number` ends too late.
PWSP_INTERNAL bool pwsp_sim_fail_time(pwsp_sim *sim, uint64_t number);

// Completes the statistics of a run, once.
PWSP_INTERNAL void pwsp_sim_end(pwsp_sim *sim);

// A run of a pipeline starts.
PWSP_INLINE void pwsp_sim_start_pipeline(pwsp_sim *sim, uint32_t pipeline, uint32_t run,
                                         uint64_t time) {
    pwsp_pipeline_start start = {time, run};
    if (run >= sim->starts[pipeline].run) {
        sim->starts[pipeline] = start;
    }
}

// A simulated pipeline starts: adds the start to the times of its tasks' records, beginning with
// `first`, which completes them. Returns the task that the start comes from, or PTOWSP_NO_INDEX. That
// task also becomes the cause of tasks that have not waited for another task of the pipeline.
PWSP_INTERNAL uint64_t pwsp_sim_place_records(pwsp_sim *sim, uint64_t first, uint64_t count,
                                              const pwsp_token *ready, uint64_t issue,
                                              uint64_t start);

// The cycles of a task that communicates and could start. False with an error, or if it is held.
PWSP_INLINE bool pwsp_sim_meet(pwsp_sim *sim, uint64_t task, uint64_t start, uint64_t *out_cycles) {
    const pwsp_meeting meeting =
        sim->meeting.find_cycles(sim->meeting.user, task, start, out_cycles);
    sim->is_held = meeting == PWSP_MEETING_LATER;
    return meeting == PWSP_MEETING_FOUND;
}

PWSP_INLINE void pwsp_sim_tell(pwsp_sim *sim, const pwsp_mark *mark) {
    if (sim->has_records && sim->recorder.mark) {
        sim->recorder.mark(sim->recorder.user, mark);
    }
}

// Moves the clock and accounts for it. Requires time >= now.
PWSP_INLINE void pwsp_sim_move_clock(pwsp_sim *sim, uint64_t time, ptowsp_stall stall,
                                     uint64_t cause) {
    PTOWSP_ASSERT(time >= sim->clock.now);
    sim->stats.stall_cycles[stall] += time - sim->clock.now;
    sim->clock.now = time;
    sim->clock.stall = stall;
    sim->clock.cause = cause;
}

// Have tasks begun to start, given the tasks issued so far? If the threshold is never reached, they
// begin when issuing ends.
PWSP_INLINE bool pwsp_sim_is_open(const pwsp_sim *sim) {
    return sim->issue_count >= sim->schedule->start_threshold;
}

// The shares of the rings that the next task needs, once it has been queried; is_open: have not all tasks of a
// token ended?
PWSP_INTERNAL void pwsp_sim_ask_rings(pwsp_sim *sim, const pwsp_arrival *arrival,
                                      bool (*is_open)(const void *user, const pwsp_token *token),
                                      const void *user);

// The next task has been placed: it takes its shares of the rings. False when memory is out.
PWSP_INLINE bool pwsp_sim_take_rings(pwsp_sim *sim, const pwsp_arrival *arrival, uint64_t end) {
    return !sim->rings.is_used ||
           pwsp_rings_take(&sim->rings, arrival, sim->deps.bound, sim->task_count, end) ||
           pwsp_sim_no_memory(sim);
}

// The earliest clock that timing allows for the next task; at least now.
PWSP_INTERNAL uint64_t pwsp_sim_timing(const pwsp_sim *sim);

// The number of tasks that the window must have room for before the next one is issued.
PWSP_INLINE uint64_t pwsp_sim_room_needed(const pwsp_sim *sim) {
    const ptowsp_schedule *schedule = sim->schedule;
    return schedule->timing == PTOWSP_TIMING_BATCHED &&
                   sim->issue_count % schedule->timing_count == 0
               ? schedule->timing_count
               : 1;
}

// Interleaved: takes a turn of its stream for a task that could be issued now, and returns it.
PWSP_INTERNAL uint64_t pwsp_sim_turn(pwsp_sim *sim, const pwsp_arrival *arrival);

// Does a task take a block: beside its cube lane two vector lanes? Programs with such tasks have enough of
// these.
PWSP_INLINE bool pwsp_sim_has_block(const pwsp_sim *sim, ptowsp_unit unit) {
    return unit == PTOWSP_UNIT_MIX && sim->schedule->pools == PTOWSP_POOLS_BY_UNIT;
}

// The lanes that a task takes, its own first; returns how many.
PWSP_INLINE uint32_t pwsp_sim_lanes(const pwsp_sim *sim, ptowsp_unit unit, uint32_t lane,
                                    uint32_t lanes[PWSP_BLOCK_LANES]) {
    lanes[0] = lane;
    if (PWSP_LIKELY(!pwsp_sim_has_block(sim, unit))) {
        return 1;
    }
    for (uint32_t i = 1; i < PWSP_BLOCK_LANES; i++) {
        lanes[i] = pwsp_block_vector(sim->pools[0].count, lane, i - 1);
        PTOWSP_ASSERT(lanes[i] < sim->pools[0].count);
    }
    return PWSP_BLOCK_LANES;
}

// The end of a lane's last task, or 0: until its core starts, control is in its way.
PWSP_INLINE uint64_t pwsp_lane_end(const pwsp_sim *sim, const pwsp_lane *lane) {
    return sim->has_starts && lane->last_task == PTOWSP_NO_INDEX ? 0 : lane->free;
}

// The lane of a task that is free last, or whose last task ends last: the task's own among equals.
PWSP_INLINE const pwsp_lane *pwsp_sim_last_of(const pwsp_sim *sim, ptowsp_unit unit, uint32_t lane,
                                              bool by_end) {
    uint32_t lanes[PWSP_BLOCK_LANES];
    const uint32_t count = pwsp_sim_lanes(sim, unit, lane, lanes);
    const pwsp_lane *last = &sim->lanes[lane];
    for (uint32_t i = 1; i < count; i++) {
        const pwsp_lane *other = &sim->lanes[lanes[i]];
        const bool is_later = by_end ? pwsp_lane_end(sim, other) > pwsp_lane_end(sim, last)
                                     : other->free > last->free;
        last = is_later ? other : last;
    }
    return last;
}

PWSP_INLINE const pwsp_lane *pwsp_sim_last_lane(const pwsp_sim *sim, ptowsp_unit unit,
                                                uint32_t lane) {
    return pwsp_sim_last_of(sim, unit, lane, false);
}

PWSP_INTERNAL const pwsp_lane *pwsp_sim_last_ended(const pwsp_sim *sim, ptowsp_unit unit,
                                                   uint32_t lane);

// The cycles for which its lanes are idle before it starts.
PWSP_INTERNAL uint64_t pwsp_sim_idle(const pwsp_sim *sim, ptowsp_unit unit, uint32_t lane,
                                     uint64_t start);

// A task's lanes run it; it counts as one of its own lane.
PWSP_INLINE void pwsp_sim_start(pwsp_sim *sim, ptowsp_unit unit, uint32_t lane, uint64_t task,
                                uint64_t cycles, uint64_t start) {
    uint32_t lanes[PWSP_BLOCK_LANES];
    const uint32_t count = pwsp_sim_lanes(sim, unit, lane, lanes);
    for (uint32_t i = 0; i < count; i++) {
        pwsp_lane *taken = &sim->lanes[lanes[i]];
        PTOWSP_ASSERT(start >= taken->free);
        taken->free = start + cycles;
        taken->last_task = task;
        sim->lane_stats[lanes[i]].busy_cycles += cycles;
    }
    sim->lane_stats[lane].task_count++;
}

// The lane of a task by its dispatch, which it takes before the next one is asked for. Work stealing
// in order takes the lane that is free first.
PWSP_INTERNAL uint32_t pwsp_sim_dispatch_other(pwsp_sim *sim, uint32_t pool, bool has_block,
                                               uint64_t key);

PWSP_INLINE uint32_t pwsp_sim_dispatch(pwsp_sim *sim, uint32_t pool_index, bool has_block,
                                       uint64_t key) {
    if (sim->policy.lane_rule != PWSP_LANE_IN_TURN) {
        return pwsp_sim_dispatch_other(sim, pool_index, has_block, key);
    }
    pwsp_pool_lanes *pool = &sim->pools[pool_index];
    uint32_t lane = pool->first + pool->next;
    pool->next = pool->next + 1 == pool->count ? 0 : pool->next + 1;
    return lane;
}

// The lanes of the next tasks of a pool, by their keys. Not for ANY.
PWSP_INTERNAL void pwsp_sim_dispatch_batch(pwsp_sim *sim, uint32_t pool, const uint64_t *keys,
                                           uint32_t count, uint32_t *out_lanes);

// The reason for a task's start at a time; *out_cause is the task that it waited for. Control apart:
// `start` is the time at which it could have started without.
PWSP_INTERNAL ptowsp_stall pwsp_sim_cause(const pwsp_sim *sim, const pwsp_token *ready,
                                          const pwsp_lane *lane, uint64_t issue, uint64_t start,
                                          uint64_t *out_cause);

// Completes the record of a task that starts when it does, and would have at `could` without
// control: why, and who knows how long its lanes were idle. Its stall and cause are those at `could`.
PWSP_INTERNAL void pwsp_sim_record_start(const pwsp_sim *sim, uint64_t index,
                                         ptowsp_task_record *record, ptowsp_unit unit,
                                         uint64_t could);

#endif
