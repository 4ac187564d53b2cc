// Event-driven time.
//
// When lanes choose, a task's start depends on tasks that are issued after it, so times are found
// by going from event to event. A *node* is anything that can be waited for: a task, done when it
// ends, or a join, done when all that it waits for is done. A node counts what it still waits for
// and lists its waiters. A scope of the tree is a join, and so are readers that count as one. Nodes
// are reference-counted: they live while a task is in flight, or while they may still gain waiters.
//
//      issue -> [waiting: pending > 0] -> [turn is later] -> [ready: in a queue] -> running -> done
//
// At each time there are three phases: nodes that end complete; tasks are issued while there is
// room (by the caller, which walks the program: pwsp_events_task returns when its task has been
// issued); lanes take tasks. A queue for each lane holds its ready tasks, the best first, by key and
// then by index; with work stealing as dispatch the lanes of a pool share one queue. Each lane runs
// at most one task, so the ends are few, and a tournament of lanes (base/earliest.h) finds the next one. A
// task that takes a block of lanes stands in the queue of its cube lane. That lane takes it although
// vector lanes of the block still run: these take nothing else any more, so its start is known.
//
// Nodes and queues are in nodes.c, a step of time in advance.c; this is their life and the issue.

#include "events.h"

#include "nodes.h"

#include <inttypes.h>

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_events_init(pwsp_events *events, pwsp_sim *sim) {
    memset(events, 0, sizeof *events);
    const pwsp_memory *memory = &sim->memory;
    uint32_t lane_count = sim->timed->lane_count;
    size_t words = ((size_t)lane_count + 63) / 64;
    events->sim = sim;
    events->is_shared = sim->lane_rule == PWSP_LANE_ANY;
    events->queue_count = events->is_shared ? sim->timed->pool_count : lane_count;
    const pwsp_pool_info *pools = sim->timed->pools;
    bool steals = !events->is_shared && sim->schedule->ready == PTOWSP_READY_WORK_STEALING;
    bool is_good = PWSP_ALLOC(memory, events->queues, events->queue_count + 2) &&
                   PWSP_ALLOC(memory, events->idle, 2 * words) &&
                   PWSP_ALLOC(memory, events->tasks, lane_count) &&
                   pwsp_earliest_init(&events->running, memory, lane_count) &&
                   (!steals || PWSP_ALLOC(memory, events->stale, lane_count));
    for (uint32_t i = 0; i < sim->timed->pool_count && steals && is_good; i++) {
        is_good =
            pools[i].count == 0 || pwsp_earliest_init(&events->oldest[i], memory, pools[i].count);
    }
    if (!is_good) {
        return false;
    }
    events->able = events->idle + words;
    events->turns = &events->queues[events->queue_count];
    events->ends = events->turns + 1;
    return true;
}

// Is there nothing but tasks of one lane each, in one queue, which start as soon as they can? Then
// much of what a step does is left out: functions with `is_plain` are made for both cases. Units with
// pools of their own, and links, are pools more.
static bool pwsp_events_find_plain(const pwsp_events *events) {
    const pwsp_sim *sim = events->sim;
    const ptowsp_schedule *schedule = sim->schedule;
    return events->is_shared && sim->timed->pool_count == 1 && !sim->has_records &&
           !sim->rings.is_used && schedule->start_threshold == 0 &&
           schedule->timing == PTOWSP_TIMING_IMMEDIATE;
}

PWSP_INTERNAL void pwsp_events_begin(pwsp_events *events) {
    uint32_t lane_count = events->sim->timed->lane_count;
    size_t words = ((size_t)lane_count + 63) / 64;
    events->now = 0;
    events->node_count = 0;
    events->free_node = 0;
    events->pipeline_node_count = 0;
    events->free_pipeline = 0;
    events->link_count = 0;
    events->free_link = 0;
    events->fired_count = 0;
    for (uint32_t i = 0; i < events->queue_count + 2; i++) {
        events->queues[i].count = events->queues[i].heap_count = 0;
        events->queues[i].is_stale = false;
    }
    events->stale_count = 0;
    for (uint32_t i = 0; i < PWSP_POOL_MAX; i++) {
        events->ready_count[i] = 0;
        if (events->oldest[i].times) {
            pwsp_earliest_clear(&events->oldest[i], PWSP_EARLIEST_NONE);
        }
    }
    memset(events->idle, 0, 2 * words * sizeof(uint64_t));
    for (uint32_t i = 0; i < lane_count; i++) {
        events->idle[i / 64] |= UINT64_C(1) << i % 64;
    }
    pwsp_earliest_clear(&events->running, PWSP_EARLIEST_NONE);
    events->in_flight = 0;
    events->pipeline_count = 0;
    events->late = 0;
    events->last_ended = PWSP_EVENTS_NONE;
    events->is_out_of_memory = false;
    events->has_ended = false;
    events->entering = 0;
    events->is_plain = pwsp_events_find_plain(events);
    events->is_structure = pwsp_precedence_is_structure(&events->sim->order);
    pwsp_token_ops ops = {pwsp_events_token_is_dead,
                          pwsp_events_token_visit,
                          pwsp_events_token_keep,
                          pwsp_events_token_drop,
                          pwsp_events_token_merge,
                          events,
                          true};
    events->sim->deps.ops = ops;
    events->sim->order.ops = ops;
}

// Reports an error from a place that could not.
PWSP_INTERNAL PWSP_COLD bool pwsp_events_fail(pwsp_events *events) {
    return events->late
               ? pwsp_sim_fail_pipeline(events->sim,
                                        events->pipelines[events->nodes[events->late].cycles].node)
               : pwsp_sim_no_memory(events->sim);
}

// -- issuing --------------------------------------------------------------------------------------

// Tasks in the window.
static uint64_t pwsp_events_in_window(const pwsp_events *events) {
    const pwsp_rings *rings = &events->sim->rings;
    return rings->is_in_order ? pwsp_rings_in_flight(rings) : events->in_flight;
}

// The clock follows to now: first for timing, then for the window.
PWSP_FORCE_INLINE void pwsp_events_move_clock(pwsp_events *events, uint64_t timed) {
    pwsp_sim *sim = events->sim;
    if (timed > sim->clock.now) {
        pwsp_sim_move_clock(sim, timed, PTOWSP_STALL_TIMING, PTOWSP_NO_INDEX);
    }
    PTOWSP_ASSERT(events->now >= timed);
    if (events->now > sim->clock.now) {
        pwsp_sim_move_clock(sim, events->now, PTOWSP_STALL_WINDOW,
                            sim->rings.is_in_order ? sim->rings.retire_task : events->last_ended);
    }
}

// Simulates until there is room for the next task, at `timed` at the earliest. False with an error.
PWSP_FORCE_INLINE bool pwsp_events_make_room(pwsp_events *events, uint64_t timed, bool is_plain) {
    pwsp_sim *sim = events->sim;
    const ptowsp_schedule *schedule = sim->schedule;
    uint64_t needed = is_plain ? 1 : pwsp_sim_room_needed(sim);
    for (;;) {
        const uint64_t count = is_plain ? events->in_flight : pwsp_events_in_window(events);
        bool has_room = schedule->window == 0 || count + needed <= schedule->window;
        if (events->now >= timed &&
            (has_room || schedule->window_policy == PTOWSP_WINDOW_BENCHMARK)) {
            sim->stats.window_overflow_count += !has_room;
            return true;
        }
        if (events->now >= timed && schedule->window_policy == PTOWSP_WINDOW_ABORT) {
            pwsp_events_move_clock(events, timed);
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

static bool pwsp_events_token_is_open(const void *user, const pwsp_token *token) {
    const pwsp_events *events = (const pwsp_events *)user;
    if (token->task == PWSP_EVENTS_NONE) {
        return false;
    }
    const pwsp_events_node *node = &events->nodes[token->task];
    return !node->is_done && !(node->kind == PWSP_EVENTS_OPEN_JOIN && node->pending == 1);
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
        if (events->now > sim->clock.now) {
            pwsp_sim_move_clock(sim, events->now, PTOWSP_STALL_DEPTH, sim->rings.left[depth]);
        }
    }
    return true;
}

// Simulates until all rings have room for the task, and moves the clock. False with an error.
static bool pwsp_events_wait_rings(pwsp_events *events, const pwsp_arrival *arrival) {
    pwsp_sim *sim = events->sim;
    ptowsp_ring ring;
    while ((ring = pwsp_rings_lacking(&sim->rings)) != PTOWSP_RING_COUNT) {
        bool is_open = pwsp_events_is_open(events);
        bool has_moved = false;
        if (is_open && !pwsp_sim_ring_is_small(sim, ring) && events->in_flight > 0 &&
            !pwsp_events_step(events, UINT64_MAX, &has_moved)) {
            return false;
        }
        if (!has_moved) {
            return pwsp_sim_fail_ring(sim, ring, arrival->node, is_open);
        }
        if (events->now > sim->clock.now) {
            pwsp_sim_move_clock(sim, events->now, pwsp_ring_stall(ring), sim->rings.retire_task);
        }
    }
    return true;
}

// Adds the dependences of a task or pipeline, except its lane.
PWSP_FORCE_INLINE bool pwsp_events_depend(pwsp_events *events, const pwsp_arrival *arrival,
                                          uint32_t id, bool has_stream) {
    pwsp_sim *sim = events->sim;
    events->current = id;
    if (events->is_structure) {
        pwsp_events_wait(events, id, pwsp_precedence_ready(&sim->order).task);
    } else {
        pwsp_precedence_wait(&sim->order, arrival, has_stream);
    }
    return arrival->tile_count == 0 ||
           pwsp_deps_query(&sim->deps, arrival->tiles, arrival->tile_count) ||
           pwsp_sim_no_memory(sim);
}

// Adds the waiters of what has last got its dependences.
PWSP_FORCE_INLINE bool pwsp_events_tell(pwsp_events *events, const pwsp_arrival *arrival,
                                        uint32_t id, bool has_stream) {
    pwsp_sim *sim = events->sim;
    const pwsp_token token = {0, id};
    if (arrival->tile_count &&
        !pwsp_deps_add(&sim->deps, arrival->tiles, arrival->tile_count, &token)) {
        return pwsp_sim_no_memory(sim);
    }
    const pwsp_open_scope *scope = &sim->order.scopes[sim->order.depth - 1];
    const bool has_join = scope->is_parallel && scope->done.task != PWSP_EVENTS_NONE &&
                          events->nodes[scope->done.task].kind == PWSP_EVENTS_OPEN_JOIN;
    if (has_join && events->is_structure) {
        pwsp_events_add_waiter(events, (uint32_t)scope->done.task, id);
    } else {
        pwsp_precedence_tell(&sim->order, arrival, has_stream, &token);
    }
    return true;
}

// The node of the task that is being issued, with its dependences, once there is room for it. 0 with
// an error, or if the task is held.
PWSP_FORCE_INLINE uint32_t pwsp_events_make_task(pwsp_events *events, const pwsp_arrival *arrival,
                                                 bool is_plain) {
    pwsp_sim *sim = events->sim;
    const uint64_t timed = is_plain ? sim->clock.now : pwsp_sim_timing(sim);
    if (!pwsp_events_make_room(events, timed, is_plain)) {
        return 0;
    }
    pwsp_events_move_clock(events, timed);
    const uint32_t id = pwsp_events_node_new(events);
    if (id == 0) {
        pwsp_sim_no_memory(sim);
        return 0;
    }
    events->nodes[id].kind = !is_plain && pwsp_sim_has_block(sim, arrival->unit)
                                 ? PWSP_EVENTS_BLOCK_TASK
                                 : PWSP_EVENTS_TASK;
    events->nodes[id].pending = 1;  // until all its dependences are known
    sim->deps.visited_count = 0;
    return pwsp_events_depend(events, arrival, id, true) ? id : 0;
}

// The place of the task that is being issued in the rings.
static bool pwsp_events_enter(pwsp_events *events, const pwsp_arrival *arrival) {
    pwsp_sim *sim = events->sim;
    if (!sim->rings.is_used) {
        return true;
    }
    if (!pwsp_events_wait_depths(events, arrival)) {
        return false;
    }
    pwsp_sim_ask_rings(sim, arrival, pwsp_events_token_is_open, events);
    return pwsp_events_wait_rings(events, arrival);
}

// Does the next task begin a batch?
static bool pwsp_events_is_batch(const pwsp_sim *sim) {
    const ptowsp_schedule *schedule = sim->schedule;
    return schedule->timing == PTOWSP_TIMING_RATE_LIMITED || pwsp_sim_room_needed(sim) > 1 ||
           (schedule->timing == PTOWSP_TIMING_BATCHED && schedule->timing_count == 1);
}

// Issues a task. False with an error.
PWSP_FORCE_INLINE bool pwsp_events_issue(pwsp_events *events, const pwsp_arrival *arrival,
                                         bool is_plain) {
    pwsp_sim *sim = events->sim;
    const ptowsp_schedule *schedule = sim->schedule;
    const uint32_t id =
        events->entering ? events->entering : pwsp_events_make_task(events, arrival, is_plain);
    events->entering = id;
    if (id == 0 || (!is_plain && !pwsp_events_enter(events, arrival))) {
        return false;
    }
    events->entering = 0;
    if (!is_plain && pwsp_events_is_batch(sim)) {
        sim->batch_clock = sim->clock.now;
    }
    const bool has_record = !is_plain && sim->has_records;
    ptowsp_task_record *record = has_record ? sim->recorder.add(sim->recorder.user, arrival) : NULL;
    if (has_record && !record) {
        return pwsp_sim_no_memory(sim);
    }
    pwsp_events_node *node = &events->nodes[id];
    node->index = sim->task_count;
    node->cycles = arrival->cycles;
    node->clock = events->now;
    uint64_t turn = events->now;
    if (!is_plain && schedule->timing == PTOWSP_TIMING_INTERLEAVED) {
        turn = events->turns_at[id] = pwsp_sim_turn(sim, arrival);
    }
    if (schedule->ready == PTOWSP_READY_PRIORITY) {
        uint64_t sign = sim->timed->is_priority_signed ? UINT64_C(1) << 63 : 0;
        events->ranks[id] = ~(arrival->priority_key ^ sign);
    }
    bool is_block = !is_plain && node->kind == PWSP_EVENTS_BLOCK_TASK;
    node->lane =
        (uint16_t)(is_plain || events->is_shared
                       ? arrival->pool
                       : pwsp_sim_dispatch(sim, arrival->pool, is_block, arrival->dispatch_key));
    if (has_record) {
        bool is_turn = turn > events->now;
        record->start = record->end = record->ready = 0;
        record->issue = events->now;
        record->kernel = arrival->kernel;
        record->node = arrival->node;
        record->stall = is_turn ? PTOWSP_STALL_TIMING : sim->clock.stall;
        record->cause = is_turn ? PTOWSP_NO_INDEX : sim->clock.cause;
    }
    if (!is_plain && !pwsp_sim_take_rings(sim, arrival, UINT64_MAX)) {
        return false;
    }
    events->in_flight++;
    if (schedule->window) {
        sim->stats.in_flight_max = pwsp_max_u64(
            sim->stats.in_flight_max, is_plain ? events->in_flight : pwsp_events_in_window(events));
    }
    if (!pwsp_events_tell(events, arrival, id, true)) {
        return false;
    }
    pwsp_events_arrive(events, id);
    sim->task_count++;
    sim->issue_count++;
    if (sim->issue_count == schedule->start_threshold) {
        sim->gate_time = events->now;
    }
    return pwsp_events_check(events);
}

PWSP_INTERNAL bool pwsp_events_task(pwsp_events *events, const pwsp_arrival *arrival) {
    return events->is_plain ? pwsp_events_issue(events, arrival, true)
                            : pwsp_events_issue(events, arrival, false);
}

// The part of a pipeline that its node has no room for. False when memory is out.
static bool pwsp_events_pipeline_node_new(pwsp_events *events, const pwsp_pipeline_arrival *arrival,
                                          uint64_t *out_at) {
    uint64_t at = events->pipeline_node_count;
    if (events->free_pipeline) {
        at = events->free_pipeline - 1;
        events->free_pipeline = events->pipelines[at].next_free;
    } else {
        if (at >= UINT32_MAX || !PWSP_GROW(&events->sim->memory, events->pipelines,
                                           events->pipeline_capacity, at + 1)) {
            return false;
        }
        events->pipeline_node_count = at + 1;
    }
    pwsp_events_pipeline_node more = {arrival->task_count,
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

PWSP_INTERNAL bool pwsp_events_pipeline(pwsp_events *events, const pwsp_pipeline_arrival *arrival) {
    pwsp_sim *sim = events->sim;
    uint32_t id = pwsp_events_node_new(events);
    if (id == 0) {
        return pwsp_sim_no_memory(sim);
    }
    pwsp_events_node *node = &events->nodes[id];
    node->kind = PWSP_EVENTS_PIPELINE;
    node->pending = 1;  // until all its dependences are known
    node->index = arrival->first_task;
    node->clock = sim->clock.now;
    if (!pwsp_events_pipeline_node_new(events, arrival, &node->cycles)) {
        return pwsp_sim_no_memory(sim);
    }
    events->pipeline_count++;
    events->current = id;
    pwsp_deps_query_loads(&sim->deps, arrival->whole.tiles, arrival->whole.tile_count);
    if (!pwsp_events_depend(events, &arrival->whole, id, false) ||
        !pwsp_events_tell(events, &arrival->whole, id, false)) {
        return false;
    }
    pwsp_events_arrive(events, id);
    return pwsp_events_check(events);
}

PWSP_INTERNAL bool pwsp_events_slot_load(pwsp_events *events, const pwsp_tile_at *tile) {
    pwsp_sim *sim = events->sim;
    uint32_t id = pwsp_events_node_new(events);
    if (id == 0) {
        return pwsp_sim_no_memory(sim);
    }
    events->nodes[id].kind = PWSP_EVENTS_OPEN_JOIN;
    events->nodes[id].refs = 2;  // ours, and until it is done
    events->nodes[id].pending = 1;
    events->current = id;
    pwsp_deps_query_load(&sim->deps, tile);
    pwsp_events_close(events, id);
    while (!events->nodes[id].is_done) {
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
    uint64_t cause = pwsp_events_cause(events, id);
    pwsp_events_unref(events, id);
    if (events->now > sim->clock.now) {
        pwsp_sim_move_clock(sim, events->now, PTOWSP_STALL_SLOT, cause);
    }
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
    PTOWSP_ASSERT(events->turns->count == 0);
    return true;
}
