// One step of event-driven time: idle lanes take ready tasks, then time moves to the next event, and
// what ends at that time is done. See events.c.

#include "nodes.h"

// -- lanes and their queues -----------------------------------------------------------------------

PWSP_INTERNAL void pwsp_events_note_idle(pwsp_events *events, uint32_t lane, uint64_t since) {
    const uint32_t pool = pwsp_pool_of(events->pool.pools, events->pool.pool_count, lane);
    pwsp_earliest *earliest = &events->sim->earliest[pool];
    if (earliest->times) {
        pwsp_earliest_set(earliest, lane - events->sim->pools[pool].first, since);
    }
}

static void pwsp_events_set_busy(pwsp_events *events, uint32_t lane) {
    events->idle[lane / 64] &= ~(UINT64_C(1) << lane % 64);
    if (PWSP_UNLIKELY(events->policy.is_in_order)) {
        pwsp_events_note_idle(events, lane, PWSP_EARLIEST_NONE);
    }
}

// A lane's task has ended, or its core has started: the lane is idle, unless a block task has taken it
// meanwhile.
PWSP_FORCE_INLINE void pwsp_events_set_idle(pwsp_events *events, uint32_t lane, uint64_t task) {
    if (PWSP_UNLIKELY(events->contention.is_used)) {
        if (events->progress[lane].holder) {
            events->progress[lane].holder = 0;
            return;
        }
    } else if (events->sim->lanes[lane].last_task != task) {
        return;
    }
    events->idle[lane / 64] |= UINT64_C(1) << lane % 64;
    if (PWSP_UNLIKELY(events->policy.is_in_order)) {
        pwsp_events_note_idle(events, lane, events->now);
    }
}

PWSP_INTERNAL void pwsp_events_make_ready(pwsp_events *events, uint32_t id) {
    const uint32_t of = events->nodes[id].lane;
    const uint32_t queue =
        events->policy.is_shared ? pwsp_ready_pool_common(&events->pool, of) : of;
    pwsp_ready_pool_put(&events->pool, pwsp_events_links(events), queue, id);
}

// An idle lane of a pool, or its end: the lowest from `from` on; in order the one that has been idle
// longest.
PWSP_FORCE_INLINE uint32_t pwsp_events_idle_lane(const pwsp_events *events, uint32_t pool,
                                                 uint32_t from) {
    const pwsp_pool_lanes *of = &events->sim->pools[pool];
    const pwsp_earliest *earliest = &events->sim->earliest[pool];
    if (PWSP_LIKELY(!events->policy.is_in_order) || !earliest->times) {
        return pwsp_worker_next(events->idle, events->idle, from, of->first + of->count);
    }
    return pwsp_earliest_time(earliest) == PWSP_EARLIEST_NONE
               ? of->first + of->count
               : of->first + pwsp_earliest_lane(earliest);
}

// -- taking ---------------------------------------------------------------------------------------

// Completes the record of a task that starts, before its lanes are occupied; without control it could
// have started at `could`.
static void pwsp_events_record(pwsp_events *events, uint32_t id, uint32_t lane, uint64_t start,
                               uint64_t could) {
    pwsp_sim *sim = events->sim;
    const pwsp_events_node *node = &events->nodes[id];
    const uint64_t turn = pwsp_events_turn(events, id);
    const ptowsp_unit unit = (ptowsp_unit)node->unit;
    const pwsp_lane *last = pwsp_sim_last_ended(sim, unit, lane);
    ptowsp_task_record *record = sim->recorder.at(sim->recorder.user, node->link.number);
    const pwsp_token ready = {node->time, pwsp_events_cause(events, id)};
    const uint64_t clock_cause = record->cause;  // the cause of the clock, noted at issue
    const ptowsp_stall clock_stall = record->stall;
    record->ready = node->time;
    record->start = start;
    record->end = start + node->cycles;
    record->lane = lane;
    record->stall = pwsp_sim_cause(sim, &ready, last, turn, could, &record->cause);
    if (could > 0 && could == turn && node->time != could && pwsp_lane_end(sim, last) != could) {
        record->stall = clock_stall;
        record->cause = clock_cause;
    }
    pwsp_sim_record_start(sim, node->link.number, record, unit, could);
}

// A task's start and cycles are known: counts its waits, and its lanes are taken for that long.
PWSP_FORCE_INLINE void pwsp_events_place(pwsp_events *events, uint32_t id, uint32_t lane,
                                         uint64_t start) {
    pwsp_sim *sim = events->sim;
    const pwsp_events_node *node = &events->nodes[id];
    const ptowsp_unit unit = (ptowsp_unit)node->unit;
    const uint64_t known = pwsp_max_u64(node->clock, node->time);
    const uint64_t due = pwsp_max_u64(pwsp_events_turn(events, id), known);
    const uint64_t able = pwsp_max_u64(due, sim->gate_time);
    // Without control, start is the time at which it could.
    const uint64_t could =
        PWSP_UNLIKELY(events->control.is_on)
            ? pwsp_max_u64(able, pwsp_lane_end(sim, pwsp_sim_last_ended(sim, unit, lane)))
            : start;
    ptowsp_run_stats *stats = &sim->stats;
    stats->stall_cycles[PTOWSP_STALL_DEPENDENCY] += known - node->clock;
    stats->stall_cycles[PTOWSP_STALL_TIMING] += due - known;
    stats->stall_cycles[PTOWSP_STALL_START] += able - due;
    stats->stall_cycles[PTOWSP_STALL_LANE] += could - able;
    stats->stall_cycles[PTOWSP_STALL_CONTROL] += start - could;
    stats->makespan_cycles = pwsp_max_u64(stats->makespan_cycles, start + node->cycles);
    if (sim->has_records) {
        pwsp_events_record(events, id, lane, start, could);
    }
    pwsp_sim_start(sim, unit, lane, node->link.number, node->cycles, start);
}

// -- where lanes share memory ---------------------------------------------------------------------

// A lane's task misses one lane less, or has been delivered. With the last of these it begins, now; its end
// is not known.
static void pwsp_events_come(pwsp_events *events, uint32_t lane) {
    PTOWSP_ASSERT(events->progress[lane].missing > 0);
    if (--events->progress[lane].missing == 0) {
        const uint32_t id = events->tasks[lane];
        pwsp_contention_start(&events->contention, lane, id, events->nodes[id].cycles);
    }
}

// A lane's task has ended, or its core starts: a block task may have waited for that.
static PWSP_NOINLINE void pwsp_events_hand_over(pwsp_events *events, uint32_t lane) {
    if (events->progress[lane].holder) {
        pwsp_events_come(events, events->progress[lane].holder - 1);
    }
}

// A lane takes a task, which is delivered at a time. One of a block claims vector lanes that still run.
static PWSP_NOINLINE void pwsp_events_claim(pwsp_events *events, uint32_t lane, uint32_t id,
                                            uint64_t delivered) {
    pwsp_events_progress *progress = events->progress;
    uint32_t lanes[PWSP_BLOCK_LANES];
    const uint32_t count = pwsp_events_lanes(events, id, lane, lanes);
    events->tasks[lane] = id;
    progress[lane].has_ended = false;
    progress[lane].missing = 1;  // this
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t of = lanes[i];
        if (!(events->idle[of / 64] >> of % 64 & 1)) {
            progress[of].holder = lane + 1;
            progress[lane].missing += !progress[of].has_ended;
        }
    }
    if (delivered > events->now) {
        progress[lane].missing++;
        pwsp_earliest_set(&events->running, lane, delivered);
    }
    pwsp_events_come(events, lane);
}

// A lane's task has been delivered, or a part of it has ended. True if that was its end.
static bool pwsp_events_advance(pwsp_events *events, uint32_t lane) {
    const uint32_t id = events->tasks[lane];
    if (events->progress[lane].missing) {
        pwsp_earliest_set(&events->running, lane, PWSP_EARLIEST_NONE);
        pwsp_events_come(events, lane);
        return false;
    }
    if (pwsp_contention_step(&events->contention, lane)) {
        return false;
    }
    const uint64_t start = events->contention.lanes[lane].start;
    const uint64_t alone = events->contention.lanes[lane].cycles;
    uint32_t lanes[PWSP_BLOCK_LANES];
    const uint32_t count = pwsp_events_lanes(events, id, lane, lanes);
    events->nodes[id].cycles = events->now - start;
    for (uint32_t i = 0; i < count; i++) {
        events->sim->lane_stats[lanes[i]].slowed_cycles += events->nodes[id].cycles - alone;
    }
    pwsp_events_place(events, id, lane, start);
    events->nodes[id].time = events->now;
    events->progress[lane].has_ended = true;
    return true;
}

// The same. True if that was its end and it can be noticed now, or if its end, which was before, can.
static PWSP_NOINLINE bool pwsp_events_is_noticed(pwsp_events *events, uint32_t lane) {
    const uint64_t notice = events->sim->control.cycles[PTOWSP_CONTROL_NOTICE];
    if (events->progress[lane].has_ended) {
        return true;
    }
    if (!pwsp_events_advance(events, lane)) {
        return false;
    }
    pwsp_events_hand_over(events, lane);
    if (notice) {
        pwsp_earliest_set(&events->running, lane, events->now + notice);
    }
    return notice == 0;
}

// -- running --------------------------------------------------------------------------------------

// Runs the first task of a queue on a lane, from now on. A block task takes its vector lanes now, and
// starts when both are free, which is known unless lanes share memory. False with an error, or if it is
// held: it then stays in its queue, and nothing has changed.
static bool pwsp_events_run(pwsp_events *events, uint32_t lane, uint32_t queue) {
    pwsp_sim *sim = events->sim;
    const uint32_t id = pwsp_ready_first(&events->pool.queues[queue], pwsp_events_links(events));
    pwsp_events_node *node = &events->nodes[id];
    const ptowsp_unit unit = (ptowsp_unit)node->unit;
    PTOWSP_ASSERT(node->kind == PWSP_EVENTS_TASK && !node->pending);
    const uint64_t dispatched = events->now + events->control.ahead;
    const uint64_t start = pwsp_max_u64(dispatched, pwsp_sim_last_lane(sim, unit, lane)->free);
    if (PWSP_UNLIKELY(sim->meeting.find_cycles && sim->timed->has_link &&
                      lane + 1 == sim->timed->lane_count) &&
        !pwsp_sim_meet(sim, node->link.number, start, &node->cycles)) {
        return false;
    }
    const uint64_t end = start + node->cycles;
    pwsp_ready_pool_take(&events->pool, pwsp_events_links(events), queue);
    if (start > PTOWSP_CYCLES_MAX || end > PTOWSP_CYCLES_MAX) {
        return pwsp_sim_fail_time(events->sim, node->link.number);
    }
    if (PWSP_UNLIKELY(events->contention.is_used)) {
        pwsp_events_claim(events, lane, id, dispatched);
    } else {
        pwsp_events_place(events, id, lane, start);
        node->time = end;
        pwsp_earliest_set(&events->running, lane, end + sim->control.cycles[PTOWSP_CONTROL_NOTICE]);
        events->tasks[lane] = id;
    }
    uint32_t lanes[PWSP_BLOCK_LANES];
    const uint32_t count = pwsp_sim_lanes(sim, unit, lane, lanes);
    for (uint32_t i = 0; i < count; i++) {
        pwsp_events_set_busy(events, lanes[i]);
    }
    if (PWSP_UNLIKELY(events->has_extras)) {
        pwsp_events_call_followers(events, id);
        if (events->control.is_on) {
            pwsp_control_dispatch(events);
        }
    }
    return true;
}

// Idle lanes take the first task of their own queue, by index; then others take tasks of their pool, or
// steal. False with an error.
static bool pwsp_events_take(pwsp_events *events) {
    const uint32_t lane_count = events->pool.worker_count;
    const pwsp_policy *policy = &events->policy;
    for (uint32_t lane = 0; !policy->is_shared;) {
        lane = pwsp_worker_next(events->idle, events->pool.filled, lane, lane_count);
        if (lane == lane_count || !pwsp_control_is_idle(&events->control)) {
            break;
        }
        if (!pwsp_events_run(events, lane, lane)) {
            return false;
        }
    }
    const uint32_t pool_count = policy->is_shared || policy->steals ? events->pool.pool_count : 0;
    for (uint32_t i = 0; i < pool_count; i++) {
        uint32_t lane = events->sim->pools[i].first, queue;
        const uint32_t end = lane + events->sim->pools[i].count;
        while (pwsp_control_is_idle(&events->control) &&
               (queue = pwsp_ready_pool_source(&events->pool, i)) != PWSP_READY_NONE &&
               (lane = pwsp_events_idle_lane(events, i, lane)) < end) {
            if (!pwsp_events_run(events, lane, queue)) {
                return false;
            }
        }
    }
    return true;
}

// -- completing -----------------------------------------------------------------------------------

// A task is complete. Inline: without control it is the only way for one to end.
PWSP_FORCE_INLINE void pwsp_events_finish(pwsp_events *events, uint32_t lane) {
    const uint32_t id = events->tasks[lane];
    pwsp_events_node *node = &events->nodes[id];
    pwsp_events_set_cause(events, id, node->link.number);
    events->last_ended = node->link.number;
    PTOWSP_ASSERT(events->in_flight > 0);
    events->in_flight--;
    if (events->sim->rings.is_used) {
        pwsp_rings_end(&events->sim->rings, node->link.number, events->now);
        pwsp_rings_retire(&events->sim->rings, events->now);
    }
    uint32_t lanes[PWSP_BLOCK_LANES];
    const uint32_t count = pwsp_events_lanes(events, id, lane, lanes);
    for (uint32_t i = 0; i < count; i++) {
        pwsp_events_set_idle(events, lanes[i], node->link.number);
    }
    pwsp_events_done(events, id);
}

PWSP_INTERNAL void pwsp_events_end_task(pwsp_events *events, uint32_t lane) {
    pwsp_events_finish(events, lane);
}

// A lane's time has come: its task ends now, which a thread may have to notice, or its core starts.
static void pwsp_events_end_lane(pwsp_events *events, uint32_t lane) {
    const bool is_shared = PWSP_UNLIKELY(events->contention.is_used);
    if (is_shared && events->tasks[lane] && !pwsp_events_is_noticed(events, lane)) {
        return;
    }
    pwsp_earliest_set(&events->running, lane, PWSP_EARLIEST_NONE);
    if (PWSP_UNLIKELY(events->tasks[lane] == 0)) {
        if (is_shared) {
            pwsp_events_hand_over(events, lane);
        }
        pwsp_events_set_idle(events, lane, PTOWSP_NO_INDEX);
    } else if (PWSP_UNLIKELY(events->control.is_on)) {
        pwsp_control_note_end(&events->control, lane);
    } else {
        pwsp_events_finish(events, lane);
    }
}

// A pipeline ends now, or a task's turn has come.
static void pwsp_events_end_timer(pwsp_events *events, uint32_t id) {
    pwsp_events_node *node = &events->nodes[id];
    if (node->kind == PWSP_EVENTS_TASK) {
        pwsp_events_swap_turn(events, id);
        pwsp_events_make_ready(events, id);
        return;
    }
    const uint32_t at = (uint32_t)node->cycles;
    node->time = events->now;
    pwsp_events_set_cause(events, id, events->pipelines[at].end_task);
    pwsp_events_pipelines_give(events->pipelines, &events->pipeline_list, at);
    PTOWSP_ASSERT(events->pipeline_count > 0 && node->kind == PWSP_EVENTS_PIPELINE);
    events->pipeline_count--;
    pwsp_events_done(events, id);
}

// The time of the first timer.
static uint64_t pwsp_events_first_timer(const pwsp_events *events) {
    const uint32_t first = pwsp_ready_first(&events->timers, pwsp_events_links(events));
    return first == PWSP_READY_NONE ? UINT64_MAX : events->nodes[first].link.key;
}

// Under control time is over: names the task whose end is being completed, or would be next; else the one
// that is being issued.
static PWSP_COLD bool pwsp_events_fail_late(pwsp_events *events) {
    const pwsp_control_threads *control = &events->control;
    if (pwsp_control_next(control) > events->now && pwsp_ready_is_empty(&control->ended)) {
        return pwsp_sim_fail_time(events->sim, events->sim->task_count);
    }
    // A thread that dispatches is over in time, as the task would not start else.
    const uint32_t lane = pwsp_control_next(control) <= events->now
                              ? control->jobs[pwsp_earliest_lane(&control->ends)]
                              : control->ended.head;
    PTOWSP_ASSERT(lane < events->pool.worker_count);
    return pwsp_sim_fail_time(events->sim, events->nodes[events->tasks[lane]].link.number);
}

PWSP_INTERNAL bool pwsp_events_step(pwsp_events *events, uint64_t until, bool *out_moved) {
    if (pwsp_events_is_open(events) && !pwsp_events_take(events)) {
        return false;
    }
    const bool is_shared = PWSP_UNLIKELY(events->contention.is_used);
    const uint64_t bound = is_shared ? pwsp_contention_next(&events->contention) : UINT64_MAX;
    const uint64_t first = pwsp_min_u64(pwsp_earliest_time(&events->running), bound);
    const uint64_t later = pwsp_min_u64(until, pwsp_control_next(&events->control));
    const uint64_t next = pwsp_min_u64(pwsp_min_u64(first, later), pwsp_events_first_timer(events));
    *out_moved = next != UINT64_MAX;
    if (*out_moved) {
        PTOWSP_ASSERT(next >= events->now);  // time does not go back
        if (is_shared && next > PTOWSP_CYCLES_MAX && next == first) {
            const uint32_t lane = first == bound ? pwsp_contention_first(&events->contention)
                                                 : pwsp_earliest_lane(&events->running);
            return pwsp_sim_fail_time(events->sim, events->nodes[events->tasks[lane]].link.number);
        }
        events->now = next;
        if (is_shared) {
            pwsp_contention_move(&events->contention, next);
        }
        while (pwsp_earliest_time(&events->running) == next) {
            pwsp_events_end_lane(events, pwsp_earliest_lane(&events->running));
        }
        while (pwsp_events_first_timer(events) <= next) {
            pwsp_events_end_timer(events,
                                  pwsp_ready_pop(&events->timers, pwsp_events_links(events)));
        }
        if (PWSP_UNLIKELY(events->control.is_on)) {
            if (next > PTOWSP_CYCLES_MAX) {
                return pwsp_events_fail_late(events);
            }
            pwsp_control_serve(events);
        }
    }
    return pwsp_events_check(events);
}
