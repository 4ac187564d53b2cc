// AICPU threads as servers, in event-driven time.
//
//      lanes        events->running: when the end of a task can be noticed
//                          |
//      ended        a queue of lanes, in the order of these times, of equal ones by lane
//                          |
//      threads      idle: bits;   ends: a tournament;   jobs: their work
//                          ^
//      ready tasks  events->pool, taken for idle lanes as without control
//
// Work that takes no time occupies no thread. So with costs of 0 all is as without control: at each time
// tasks that have ended complete first, then tasks are issued, then lanes take tasks (advance.c).
//
// The start of a task is known when a thread takes it: nothing but the thread's own work and latencies
// come in between. Its node's time is its end (where lanes share memory once it has ended), which the
// tasks that wait for it have as the time at which they were ready; they are released when the thread has
// completed it. So the wait of a task divides
// into dependences, lane and control.

#include "nodes.h"

#define PWSP_LANE_NONE UINT32_MAX

PWSP_INTERNAL bool pwsp_control_init(pwsp_control_threads *control, const pwsp_sim *sim) {
    const pwsp_memory *memory = &sim->memory;
    const ptowsp_control *how = &sim->schedule->control;
    const uint64_t *costs = sim->control.cycles;
    control->is_on = how->by != PTOWSP_CONTROL_NONE;
    control->count = how->threads;
    control->ahead = costs[PTOWSP_CONTROL_DISPATCH] + costs[PTOWSP_CONTROL_DELIVER] +
                     costs[PTOWSP_CONTROL_SWITCH];
    PTOWSP_ASSERT(control->count <= PTOWSP_CONTROL_THREAD_MAX);
    uint32_t *words = NULL;
    const bool is_good =
        (!control->is_on || PWSP_ALLOC(memory, words, sim->timed->lane_count)) &&
        (control->count == 0 || (PWSP_ALLOC(memory, control->jobs, control->count) &&
                                 pwsp_earliest_init(&control->ends, memory, control->count)));
    const pwsp_ready_links lanes = {words, sizeof *words};
    control->lanes = lanes;
    return is_good;
}

PWSP_INTERNAL void pwsp_control_begin(pwsp_control_threads *control) {
    control->idle =
        control->count && control->count < 64 ? (UINT64_C(1) << control->count) - 1 : UINT64_MAX;
    pwsp_ready_init(&control->ended);
    control->submitted = 0;
    if (control->count) {
        pwsp_earliest_clear(&control->ends, PWSP_EARLIEST_NONE);
    }
}

// The first idle thread works from now on.
static void pwsp_control_work(pwsp_events *events, uint64_t cycles, uint32_t lane) {
    pwsp_control_threads *control = &events->control;
    const uint32_t thread = (uint32_t)__builtin_ctzll(control->idle);
    PTOWSP_ASSERT(control->idle && thread < control->count && cycles > 0);
    control->idle &= control->idle - 1;
    control->jobs[thread] = lane;
    pwsp_earliest_set(&control->ends, thread, events->now + cycles);
    events->sim->stats.control_cycles = pwsp_sum_u64(events->sim->stats.control_cycles, cycles);
}

PWSP_INTERNAL void pwsp_control_dispatch(pwsp_events *events) {
    const uint64_t cycles = events->sim->control.cycles[PTOWSP_CONTROL_DISPATCH];
    if (events->control.count && cycles) {
        pwsp_control_work(events, cycles, PWSP_LANE_NONE);
    }
}

// A task that has ended is complete, which may be the end of the run.
static void pwsp_control_complete(pwsp_events *events, uint32_t lane) {
    ptowsp_run_stats *stats = &events->sim->stats;
    stats->makespan_cycles = pwsp_max_u64(stats->makespan_cycles, events->now);
    pwsp_events_end_task(events, lane);
}

PWSP_INTERNAL void pwsp_control_serve(pwsp_events *events) {
    pwsp_control_threads *control = &events->control;
    const uint64_t *costs = events->sim->control.cycles;
    const uint64_t cycles = costs[PTOWSP_CONTROL_POLL] + costs[PTOWSP_CONTROL_COMPLETE];
    while (pwsp_control_next(control) <= events->now) {
        const uint32_t thread = pwsp_earliest_lane(&control->ends);
        const uint32_t lane = control->jobs[thread];
        pwsp_earliest_set(&control->ends, thread, PWSP_EARLIEST_NONE);
        control->idle |= UINT64_C(1) << thread;
        if (lane != PWSP_LANE_NONE) {
            pwsp_control_complete(events, lane);
        }
    }
    while (!pwsp_ready_is_empty(&control->ended) && control->idle) {
        const uint32_t lane = pwsp_ready_pop(&control->ended, control->lanes);
        if (cycles) {
            pwsp_control_work(events, cycles, lane);
        } else {
            pwsp_control_complete(events, lane);
        }
    }
}

// -- issuing --------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_control_submit(pwsp_events *events) {
    pwsp_sim *sim = events->sim;
    const uint64_t cycles = sim->control.cycles[PTOWSP_CONTROL_SUBMIT];
    uint64_t *submitted = &events->control.submitted;
    if (cycles == 0) {
        return true;
    }
    *submitted = *submitted ? *submitted : events->now + cycles;
    while (events->now < *submitted) {
        bool has_moved;
        if (!pwsp_events_step(events, *submitted, &has_moved)) {
            return false;
        }
    }
    *submitted = 0;
    PTOWSP_ASSERT(events->now <= PTOWSP_CYCLES_MAX);  // else a step has failed
    sim->stats.submit_cycles += cycles;
    pwsp_sim_move_clock(sim, events->now, PTOWSP_STALL_CONTROL, sim->clock.cause);
    return true;
}
