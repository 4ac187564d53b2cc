// Event-driven time.
//
// When lanes choose, a task's start depends on tasks that are issued after it, so times are found
// by going from event to event. A *node* is anything that can be waited for: a task, done when it
// ends, or a join, done when all that it waits for is done. A node counts its open dependences
// and lists its waiters. A scope of the tree is a join, and so are readers that count as one. Nodes
// are reference-counted: they live while a task is in flight, or while they may still gain waiters.
//
//      issue -> [waiting: pending > 0] -> [turn is later: a timer] -> [ready: in a queue] -> running -> done
//
// At each time there are three phases: nodes that end complete; tasks are issued while there is
// room (by the caller, which walks the program: pwsp_events_task returns when its task has been
// issued); lanes take tasks. A queue for each lane holds its ready tasks, the best first, by key and
// then by index; with work stealing as dispatch the lanes of a pool share one queue. Each lane runs
// at most one task, so the ends are few, and a tournament of lanes (base/earliest.h) finds the next one. A
// task that takes a block of lanes stands in the queue of its cube lane. That lane takes it although
// vector lanes of the block still run: these take nothing else any more, so its start is known.
//
// Where lanes share memory (contention.h), ends depend on tasks that begin later. So a task that has been
// taken begins when its last lane is free and it has been delivered, which is an event; it has an end only
// once its last part has one; and lane statistics and records follow then.
//
// With control or shared memory all schedules are timed here: in order, issue first waits for the
// dependences; where a lane runs its tasks in the order of issue, ready or not, each also waits until the
// one before it on that lane has been taken: it is a follower of that one.
//
// Nodes and queues are in nodes.c, a step of time in advance.c; this is their life and the issue.

#include "events.h"

#include "nodes.h"

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_events_init(pwsp_events *events, pwsp_sim *sim) {
    memset(events, 0, sizeof *events);
    const pwsp_memory *memory = &sim->memory;
    const pwsp_timed *timed = sim->timed;
    const uint32_t lane_count = timed->lane_count;
    const size_t words = ((size_t)lane_count + 63) / 64;
    events->sim = sim;
    events->policy = sim->policy;
    const bool is_fifo = !sim->policy.is_shared && !pwsp_policy_is_choice(&sim->policy);
    bool is_good = pwsp_ready_pool_init(&events->pool, memory, timed->pools, timed->pool_count,
                                        events->policy.steals) &&
                   PWSP_ALLOC(memory, events->idle, words) &&
                   PWSP_ALLOC(memory, events->tasks, lane_count) &&
                   (!is_fifo || PWSP_ALLOC(memory, events->last_issued, lane_count)) &&
                   pwsp_control_init(&events->control, sim) &&
                   pwsp_earliest_init(&events->running, memory, lane_count) &&
                   pwsp_contention_init(&events->contention, memory, timed, &events->running);
    is_good = is_good &&
              (!events->contention.is_used || PWSP_ALLOC(memory, events->progress, lane_count));
    events->has_extras = events->control.is_on || events->contention.is_used;
    PTOWSP_ASSERT(!is_good || events->pool.worker_count == lane_count);
    return is_good;
}

// Back to time 0 where lanes share memory.
static void pwsp_events_begin_shared(pwsp_events *events) {
    const uint32_t percent = events->sim->memory_percent;
    pwsp_contention_begin(&events->contention, percent ? percent : 100, events->now);
    memset(events->progress, 0, events->sim->timed->lane_count * sizeof *events->progress);
}

PWSP_INTERNAL void pwsp_events_begin(pwsp_events *events) {
    const uint32_t lane_count = events->sim->timed->lane_count;
    const size_t words = ((size_t)lane_count + 63) / 64;
    events->now = events->sim->clock.now;
    events->has_details = events->sim->has_records || events->sim->turns || events->last_issued;
    pwsp_free_list_begin(&events->node_list, &events->sim->memory);
    pwsp_free_list_begin(&events->link_list, &events->sim->memory);
    pwsp_free_list_begin(&events->pipeline_list, &events->sim->memory);
    pwsp_ready_init(&events->timers);
    pwsp_ready_pool_begin(&events->pool, events->policy.steals);
    memset(events->idle, 0, words * sizeof(uint64_t));
    pwsp_earliest_clear(&events->running, PWSP_EARLIEST_NONE);
    for (uint32_t i = 0; i < lane_count; i++) {
        const uint64_t start = events->sim->lanes[i].free;
        if (start <= events->now) {
            events->idle[i / 64] |= UINT64_C(1) << i % 64;
        } else {
            pwsp_earliest_set(&events->running, i, start);
            pwsp_events_note_idle(events, i, PWSP_EARLIEST_NONE);
        }
        events->tasks[i] = 0;
    }
    pwsp_control_begin(&events->control);
    for (uint32_t i = 0; events->last_issued && i < lane_count; i++) {
        events->last_issued[i] = 0;
    }
    events->in_flight = 0;
    events->pipeline_count = 0;
    events->late = 0;
    events->last_ended = PWSP_EVENTS_NONE;
    events->is_out_of_memory = false;
    events->has_ended = false;
    events->ordered = events->entering = 0;
    events->has_asked = false;
    if (events->contention.is_used) {
        pwsp_events_begin_shared(events);
    }
    events->sim->deps.ops = events->sim->order.ops = pwsp_events_token_ops(events);
}

// Reports an error from a place that could not.
PWSP_INTERNAL PWSP_COLD bool pwsp_events_fail(pwsp_events *events) {
    return events->late
               ? pwsp_sim_fail_pipeline(events->sim,
                                        events->pipelines[events->nodes[events->late].cycles].node)
               : pwsp_sim_no_memory(events->sim);
}

// -- issuing --------------------------------------------------------------------------------------

// Tasks in the window, and the one that has left it last.
static uint64_t pwsp_events_in_window(const pwsp_events *events) {
    const pwsp_rings *rings = &events->sim->rings;
    return rings->is_in_order ? pwsp_rings_in_flight(rings) : events->in_flight;
}

static uint64_t pwsp_events_left_window(const pwsp_events *events) {
    const pwsp_rings *rings = &events->sim->rings;
    return rings->is_in_order ? rings->retire_task : events->last_ended;
}

// The clock of issue follows to now.
static void pwsp_events_move_clock(pwsp_events *events, ptowsp_stall stall, uint64_t cause) {
    if (events->now > events->sim->clock.now) {
        pwsp_sim_move_clock(events->sim, events->now, stall, cause);
    }
}

// The same once there is room in the window: first for timing, then for the window.
static void pwsp_events_move_clock_in(pwsp_events *events, uint64_t timed) {
    PTOWSP_ASSERT(events->now >= timed);
    if (timed > events->sim->clock.now) {
        pwsp_sim_move_clock(events->sim, timed, PTOWSP_STALL_TIMING, PTOWSP_NO_INDEX);
    }
    pwsp_events_move_clock(events, PTOWSP_STALL_WINDOW, pwsp_events_left_window(events));
}

// Simulates until there is room for the next task, at `timed` at the earliest. False with an error.
static bool pwsp_events_make_room(pwsp_events *events, uint64_t timed) {
    pwsp_sim *sim = events->sim;
    const ptowsp_schedule *schedule = sim->schedule;
    const uint64_t needed = pwsp_sim_room_needed(sim);
    for (;;) {
        const bool has_room =
            schedule->window == 0 || pwsp_events_in_window(events) + needed <= schedule->window;
        if (events->now >= timed &&
            (has_room || schedule->window_policy == PTOWSP_WINDOW_BENCHMARK)) {
            sim->stats.window_overflow_count += !has_room;
            pwsp_events_move_clock_in(events, timed);
            return true;
        }
        if (events->now >= timed && schedule->window_policy == PTOWSP_WINDOW_ABORT) {
            pwsp_events_move_clock_in(events, timed);
            return pwsp_sim_fail_abort(sim);
        }
        bool has_moved;
        if (!pwsp_events_step(events, events->now < timed ? timed : UINT64_MAX, &has_moved)) {
            return false;
        }
        if (!has_moved) {
            PTOWSP_ASSERT(!pwsp_events_is_open(events));  // else the oldest in flight can start
            return pwsp_sim_fail_gate(sim, "the window has no room for it", "a larger window, ");
        }
    }
}

// Simulates until depths have room for the task, and moves the clock. False with an error.
static bool pwsp_events_wait_depths(pwsp_events *events, const pwsp_arrival *arrival) {
    pwsp_sim *sim = events->sim;
    ptowsp_depth depth;
    pwsp_rings_enter(&sim->rings, pwsp_precedence_stream(&sim->order, arrival), arrival->pool);
    while ((depth = pwsp_rings_full(&sim->rings)) != PTOWSP_DEPTH_COUNT) {
        bool has_moved = false;
        if (pwsp_events_is_open(events) && !pwsp_events_step(events, UINT64_MAX, &has_moved)) {
            return false;
        }
        if (!has_moved) {
            return pwsp_sim_fail_depth(sim, depth);
        }
        pwsp_events_move_clock(events, PTOWSP_STALL_DEPTH, sim->rings.left[depth]);
    }
    return true;
}

// Simulates until all rings have room for the task, and moves the clock. False with an error.
static bool pwsp_events_wait_rings(pwsp_events *events, const pwsp_arrival *arrival) {
    pwsp_sim *sim = events->sim;
    ptowsp_ring ring;
    while ((ring = pwsp_rings_lacking(&sim->rings)) != PTOWSP_RING_COUNT) {
        const bool is_open = pwsp_events_is_open(events);
        bool has_moved = false;
        if (is_open && !pwsp_sim_ring_is_small(sim, ring) && events->in_flight > 0 &&
            !pwsp_events_step(events, UINT64_MAX, &has_moved)) {
            return false;
        }
        if (!has_moved) {
            return pwsp_sim_fail_ring(sim, ring, arrival->node, is_open);
        }
        pwsp_events_move_clock(events, pwsp_ring_stall(ring), sim->rings.retire_task);
    }
    return true;
}

// Adds the dependences of the current task or pipeline, except its lane.
static bool pwsp_events_depend(pwsp_events *events, const pwsp_arrival *arrival, bool has_stream) {
    pwsp_sim *sim = events->sim;
    if (pwsp_precedence_is_structure(&sim->order)) {  // the usual case, without calls by pointers
        pwsp_events_wait(events, events->current, pwsp_precedence_ready(&sim->order).task);
    } else {
        pwsp_precedence_wait(&sim->order, arrival, has_stream);
    }
    return arrival->tile_count == 0 ||
           pwsp_deps_query(&sim->deps, arrival->tiles, arrival->tile_count) ||
           pwsp_sim_no_memory(sim);
}

// A task or pipeline has all its dependences: adds its waiters to come.
static bool pwsp_events_submit(pwsp_events *events, const pwsp_arrival *arrival, uint32_t id,
                               bool has_stream) {
    pwsp_sim *sim = events->sim;
    const pwsp_token token = {0, id};
    if (arrival->tile_count &&
        !pwsp_deps_add(&sim->deps, arrival->tiles, arrival->tile_count, &token)) {
        return pwsp_sim_no_memory(sim);
    }
    const pwsp_open_scope *scope = &sim->order.scopes[sim->order.depth - 1];
    if (pwsp_precedence_is_structure(&sim->order) && scope->is_parallel &&
        scope->done.task != PWSP_EVENTS_NONE &&
        events->nodes[scope->done.task].kind == PWSP_EVENTS_OPEN_JOIN) {
        pwsp_events_wait(events, (uint32_t)scope->done.task, id);
    } else {
        pwsp_precedence_tell(&sim->order, arrival, has_stream, &token);
    }
    pwsp_events_arrive(events, id);
    return true;
}

// A node with the dependences of the task that is being issued. 0 with an error.
PWSP_FORCE_INLINE uint32_t pwsp_events_depending(pwsp_events *events, const pwsp_arrival *arrival) {
    pwsp_sim *sim = events->sim;
    const uint32_t id = pwsp_events_node_new(events, PWSP_EVENTS_TASK);
    if (id == 0) {
        pwsp_sim_no_memory(sim);
        return 0;
    }
    events->current = id;
    sim->deps.visited_count = 0;
    return pwsp_events_depend(events, arrival, true) ? id : 0;
}

// Simulates until the window has room for the next task and it has been submitted. False with an error.
PWSP_FORCE_INLINE bool pwsp_events_wait_issue(pwsp_events *events) {
    return (events->control.submitted ||
            pwsp_events_make_room(events, pwsp_sim_timing(events->sim))) &&
           pwsp_control_submit(events);
}

// In order: simulates until a task or pipeline waits for nothing but its lane, and moves the clock. False
// with an error, or if it is held: it continues when called again.
static bool pwsp_events_wait_order(pwsp_events *events, uint32_t id) {
    pwsp_sim *sim = events->sim;
    if (events->nodes[id].pending <= 1) {
        return true;  // the clock has moved, if it was called again
    }
    while (events->nodes[id].pending > 1) {
        bool has_moved;
        if (!pwsp_events_step(events, UINT64_MAX, &has_moved)) {
            return false;
        }
        PTOWSP_ASSERT(has_moved);  // in order tasks start at once
    }
    sim->stats.stall_cycles[PTOWSP_STALL_DEPENDENCY] += events->now - sim->clock.now;
    const pwsp_clock clock = {events->now, PTOWSP_STALL_ORDER, pwsp_events_cause(events, id)};
    sim->clock = clock;
    return true;
}

// The same in order, for a task whose dependences have ended before.
static PWSP_NOINLINE uint32_t pwsp_events_make_ordered(pwsp_events *events,
                                                       const pwsp_arrival *arrival) {
    events->ordered = events->ordered ? events->ordered : pwsp_events_depending(events, arrival);
    const uint32_t id = events->ordered;
    if (id == 0 || !pwsp_events_wait_order(events, id) || !pwsp_events_wait_issue(events)) {
        return 0;
    }
    events->ordered = 0;
    events->current = id;
    return id;
}

// The node of the task that is being issued, with its dependences, once there is room for it in the
// window. 0 with an error.
static uint32_t pwsp_events_make_task(pwsp_events *events, const pwsp_arrival *arrival) {
    if (PWSP_UNLIKELY(events->policy.is_in_order)) {
        return pwsp_events_make_ordered(events, arrival);
    }
    return pwsp_events_wait_issue(events) ? pwsp_events_depending(events, arrival) : 0;
}

// The place of the task that is being issued in the rings.
static bool pwsp_events_enter(pwsp_events *events, const pwsp_arrival *arrival) {
    pwsp_sim *sim = events->sim;
    if (!sim->rings.is_used) {
        return true;
    }
    // Once, though a task that is held comes again: dependences that end while it waits for rings count.
    if (!events->has_asked) {
        if (!pwsp_events_wait_depths(events, arrival)) {
            return false;
        }
        pwsp_sim_ask_rings(sim, arrival, pwsp_events_token_is_open, events);
        events->has_asked = true;
    }
    events->has_asked = !pwsp_events_wait_rings(events, arrival);
    return !events->has_asked;
}

// Begins the record of a task. False when memory is out.
static bool pwsp_events_add_record(pwsp_events *events, const pwsp_arrival *arrival,
                                   uint64_t turn) {
    const pwsp_sim *sim = events->sim;
    ptowsp_task_record *record = sim->recorder.add(sim->recorder.user, arrival);
    if (record) {
        const bool is_turn = turn > events->now;
        record->start = record->end = record->ready = 0;
        record->issue = events->now;
        record->kernel = arrival->kernel;
        record->node = arrival->node;
        record->stall = is_turn ? PTOWSP_STALL_TIMING : sim->clock.stall;
        record->cause = is_turn ? PTOWSP_NO_INDEX : sim->clock.cause;
    }
    return record != NULL;
}

// A task that has been issued follows others on its lanes, and will share memory. False when memory is
// out.
static bool pwsp_events_issue_extras(pwsp_events *events, const pwsp_arrival *arrival,
                                     uint32_t id) {
    if (events->last_issued) {
        pwsp_events_follow(events, id);
    }
    return !events->contention.is_used ||
           pwsp_contention_issue(&events->contention, id, arrival, events->sim->deps.bound);
}

PWSP_INTERNAL bool pwsp_events_task(pwsp_events *events, const pwsp_arrival *arrival) {
    pwsp_sim *sim = events->sim;
    const ptowsp_schedule *schedule = sim->schedule;
    const uint32_t id =
        events->entering ? events->entering : pwsp_events_make_task(events, arrival);
    events->entering = id;
    if (id == 0 || !pwsp_events_enter(events, arrival)) {
        return false;
    }
    events->entering = 0;
    if (schedule->timing != PTOWSP_TIMING_BATCHED ||
        sim->issue_count % schedule->timing_count == 0) {
        sim->batch_clock = sim->clock.now;  // a batch begins
    }
    const bool is_interleaved = schedule->timing == PTOWSP_TIMING_INTERLEAVED;
    pwsp_events_node *node = &events->nodes[id];
    node->link.number = sim->task_count;
    node->link.key =
        events->policy.has_priority
            ? ~pwsp_priority_rank(arrival->priority_key, sim->timed->is_priority_signed)
            : sim->task_count;
    node->cycles = arrival->cycles;
    node->clock = events->now;
    const uint64_t turn = is_interleaved ? pwsp_sim_turn(sim, arrival) : events->now;
    if (events->has_details) {
        events->details[id].turn = turn;
    }
    node->unit = (uint8_t)arrival->unit;
    node->lane = (uint16_t)(events->policy.is_shared
                                ? arrival->pool
                                : pwsp_sim_dispatch(sim, arrival->pool,
                                                    pwsp_sim_has_block(sim, arrival->unit),
                                                    arrival->dispatch_key));
    if (sim->has_records && !pwsp_events_add_record(events, arrival, turn)) {
        return pwsp_sim_no_memory(sim);
    }
    if (!pwsp_sim_take_rings(sim, arrival, UINT64_MAX)) {
        return false;
    }
    if (PWSP_UNLIKELY(events->has_extras) && !pwsp_events_issue_extras(events, arrival, id)) {
        return pwsp_sim_no_memory(sim);
    }
    events->in_flight++;
    if (schedule->window) {
        sim->stats.in_flight_max =
            pwsp_max_u64(sim->stats.in_flight_max, pwsp_events_in_window(events));
    }
    if (!pwsp_events_submit(events, arrival, id, true)) {
        return false;
    }
    sim->task_count++;
    sim->issue_count++;
    if (sim->issue_count == schedule->start_threshold) {
        sim->gate_time = events->now;
    }
    return pwsp_events_check(events);
}

// The part of a pipeline that its node has no room for. False when memory is out.
static bool pwsp_events_pipeline_node_new(pwsp_events *events, const pwsp_pipeline_arrival *arrival,
                                          uint64_t *out_at) {
    const uint32_t at = pwsp_events_pipelines_take(&events->pipelines, &events->pipeline_list);
    if (at == 0) {
        return false;
    }
    const pwsp_events_pipeline_node more = {arrival->task_count,
                                            arrival->end_task,
                                            arrival->whole.cycles,
                                            arrival->whole.node,
                                            arrival->pipeline,
                                            arrival->run,
                                            0};
    events->pipelines[at] = more;
    *out_at = at;
    return true;
}

// The node of a pipeline, with its dependences. 0 with an error.
static uint32_t pwsp_events_make_pipeline(pwsp_events *events,
                                          const pwsp_pipeline_arrival *arrival) {
    pwsp_sim *sim = events->sim;
    const uint32_t id = pwsp_events_node_new(events, PWSP_EVENTS_PIPELINE);
    if (id == 0 || !pwsp_events_pipeline_node_new(events, arrival, &events->nodes[id].cycles)) {
        pwsp_sim_no_memory(sim);
        return 0;
    }
    events->nodes[id].link.number = arrival->first_task;
    events->pipeline_count++;
    events->current = id;
    if (!events->policy.is_in_order) {
        pwsp_deps_query_loads(&sim->deps, arrival->whole.tiles, arrival->whole.tile_count);
    }
    return pwsp_events_depend(events, &arrival->whole, false) ? id : 0;
}

PWSP_INTERNAL bool pwsp_events_pipeline(pwsp_events *events, const pwsp_pipeline_arrival *arrival) {
    const uint32_t id =
        events->ordered ? events->ordered : pwsp_events_make_pipeline(events, arrival);
    if (id && events->policy.is_in_order) {
        events->ordered = id;
        if (!pwsp_events_wait_order(events, id)) {
            return false;
        }
        events->ordered = 0;
    }
    if (id == 0) {
        return false;
    }
    events->nodes[id].clock = events->sim->clock.now;
    return pwsp_events_submit(events, &arrival->whole, id, false) && pwsp_events_check(events);
}

PWSP_INTERNAL bool pwsp_events_slot_load(pwsp_events *events, const pwsp_tile_at *tile) {
    pwsp_sim *sim = events->sim;
    if (events->policy.is_in_order) {
        return true;  // it takes no time, and waits for nothing
    }
    const uint32_t id = pwsp_events_node_new(events, PWSP_EVENTS_OPEN_JOIN);
    if (id == 0) {
        return pwsp_sim_no_memory(sim);
    }
    events->current = id;
    pwsp_deps_query_load(&sim->deps, tile);
    pwsp_events_close(events, id);
    while (events->nodes[id].kind != PWSP_EVENTS_DONE) {
        bool has_moved = false;
        // nothing completes before tasks begin to start, not even pipelines
        if (pwsp_events_is_open(events) && !pwsp_events_step(events, UINT64_MAX, &has_moved)) {
            return false;
        }
        if (!has_moved) {
            PTOWSP_ASSERT(!pwsp_events_is_open(events));
            return pwsp_sim_fail_gate(sim, "a slot load needs the result of a task", "");
        }
    }
    pwsp_events_move_clock(events, PTOWSP_STALL_SLOT, pwsp_events_cause(events, id));
    pwsp_events_unref(events, id);
    return pwsp_events_check(events);
}

PWSP_INTERNAL bool pwsp_events_end(pwsp_events *events) {
    if (!events->has_ended && !pwsp_sim_is_open(events->sim)) {
        events->sim->gate_time = events->now;
    }
    events->has_ended = true;
    while (events->in_flight > 0 || events->pipeline_count > 0) {
        bool has_moved;
        if (!pwsp_events_step(events, UINT64_MAX, &has_moved)) {
            return false;
        }
        PTOWSP_ASSERT(has_moved);  // the oldest in flight can start
    }
    PTOWSP_ASSERT(pwsp_ready_is_empty(&events->timers));
    if (events->contention.is_used) {
        pwsp_contention_end(&events->contention, &events->sim->stats);
    }
    return true;
}
