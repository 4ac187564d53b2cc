// In order and fifo: a task's times follow from earlier tasks alone.
//
// Every dependence of a task comes before it in program order, and its lane runs in that order,
// too. So its start is a maximum of times that are known when it is issued, and there are no
// events:
//      ready = max over its dependences         (structure, data, edges, stream)
//      clock = max(clock, ready) in order; then timing; then room in the window
//      start = max(free[lane], clock, ready, gate); of MIX, free of each lane of the block
//      end   = start + cycles; of a task that communicates, what other ranks' starts make of it
//
// Structure needs one maximum for each open scope: a parallel scope keeps the latest end of its
// children, a sequential scope the time when its next child is ready.

#include "lanes.h"

// -- memory of the window -------------------------------------------------------------------------

// A ring for each lane, which doubles when it is full. So memory follows the work and not the worst
// case.
#define PWSP_FLIGHT_MIN 16

// The first place used in a lane's ring: each a cache line further than the one before. Lanes often
// advance together, and rings are a power of two apart. Without the offset all their heads would
// compete for the same few sets of the cache.
static uint32_t pwsp_window_start(uint32_t lane, uint32_t capacity) {
    return capacity ? lane * 8 & (capacity - 1) : 0;
}

PWSP_INTERNAL void pwsp_window_clear(pwsp_window *window, const pwsp_memory *memory,
                                     bool has_tasks) {
    for (uint32_t i = 0; i < window->tournament.lane_count; i++) {
        pwsp_flight_queue *queue = &window->queues[i];
        if (has_tasks && !queue->tasks) {  // it has no room for tasks
            PWSP_FREE(memory, queue->ring, queue->capacity);
            memset(queue, 0, sizeof *queue);
        }
    }
    window->has_tasks = has_tasks;
    for (uint32_t i = 0; i < window->tournament.lane_count; i++) {
        window->queues[i].head = pwsp_window_start(i, window->queues[i].capacity);
        window->queues[i].count = 0;
        window->queues[i].second = PWSP_PLAYER_NONE;
    }
    pwsp_tournament_clear(&window->tournament);
    window->count = 0;
}

PWSP_INTERNAL bool pwsp_window_init(pwsp_window *window, const pwsp_memory *memory,
                                    uint32_t lane_count) {
    memset(window, 0, sizeof *window);
    if (!PWSP_ALLOC(memory, window->queues, lane_count) ||
        !pwsp_tournament_init(&window->tournament, memory, lane_count)) {
        return false;
    }
    pwsp_window_clear(window, memory, true);
    return true;
}

PWSP_INTERNAL bool pwsp_window_grow(pwsp_window *window, const pwsp_memory *memory, uint32_t lane) {
    PTOWSP_ASSERT(lane < window->tournament.lane_count);
    pwsp_flight_queue *queue = &window->queues[lane];
    PTOWSP_ASSERT(queue->count == queue->capacity);
    if (queue->capacity > UINT32_MAX / 4) {
        return false;
    }
    uint32_t capacity = queue->capacity ? queue->capacity * 2 : PWSP_FLIGHT_MIN;
    uint64_t *ring, *tasks = NULL;
    if (!PWSP_ALLOC(memory, ring, capacity) ||
        (window->has_tasks && !PWSP_ALLOC(memory, tasks, capacity))) {
        PWSP_FREE(memory, ring, capacity);
        return false;
    }
    memset(ring, 0xff,
           capacity * sizeof *ring);  // the end behind the last may be read, but is not used
    uint32_t start = pwsp_window_start(lane, capacity);
    for (uint32_t i = 0; i < queue->count; i++) {
        uint32_t from = (queue->head + i) & (queue->capacity - 1);
        uint32_t to = (start + i) & (capacity - 1);
        ring[to] = queue->ring[from];
        if (tasks) {
            tasks[to] = queue->tasks[from];
        }
    }
    PWSP_FREE(memory, queue->ring, queue->capacity);
    PWSP_FREE(memory, queue->tasks, queue->capacity);
    queue->ring = ring;
    queue->tasks = tasks;
    queue->capacity = capacity;
    queue->head = start;
    return true;
}

PWSP_INTERNAL uint64_t pwsp_window_rebase(pwsp_window *window) {
    pwsp_tournament *tournament = &window->tournament;
    uint64_t *players = tournament->games + tournament->leaf_count, base = UINT64_MAX;
    for (uint32_t i = 0; i < tournament->lane_count; i++) {
        const pwsp_flight_queue *queue = &window->queues[i];
        base = queue->count ? pwsp_min_u64(base, queue->ring[queue->head]) : base;
    }
    PTOWSP_ASSERT(base != UINT64_MAX);
    tournament->base = base;
    for (uint32_t i = 0; i < tournament->lane_count; i++) {
        pwsp_flight_queue *queue = &window->queues[i];
        const uint64_t *ring = queue->ring;
        const uint32_t head = queue->head, second = (head + 1) & (queue->capacity - 1);
        players[i] =
            queue->count ? pwsp_tournament_player(tournament, i, ring[head]) : PWSP_PLAYER_NONE;
        queue->second = queue->count > 1 ? pwsp_tournament_player(tournament, i, ring[second])
                                         : PWSP_PLAYER_NONE;
    }
    return pwsp_tournament_play(tournament);
}

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_lanes_init(pwsp_lanes *lanes, pwsp_sim *sim) {
    memset(lanes, 0, sizeof *lanes);
    lanes->sim = sim;
    return pwsp_window_init(&lanes->window, &sim->memory, sim->timed->lane_count);
}

PWSP_INTERNAL void pwsp_lanes_begin(pwsp_lanes *lanes) {
    pwsp_window_clear(&lanes->window, &lanes->sim->memory,
                      lanes->sim->has_records || lanes->sim->rings.is_used);
    lanes->is_held = false;
}

PWSP_INTERNAL bool pwsp_lanes_is_plain(const pwsp_lanes *lanes) {
    const pwsp_sim *sim = lanes->sim;
    const ptowsp_schedule *schedule = sim->schedule;
    bool has_window = schedule->window_policy == PTOWSP_WINDOW_ABORT ||
                      schedule->window_policy == PTOWSP_WINDOW_BENCHMARK;
    return !sim->has_records && !sim->order.edges && !sim->order.streams &&
           schedule->timing == PTOWSP_TIMING_IMMEDIATE && schedule->start_threshold == 0 &&
           schedule->control.by == PTOWSP_CONTROL_NONE && !has_window && !sim->rings.is_used;
}

PWSP_INTERNAL bool pwsp_lanes_has_data(const pwsp_lanes *lanes) {
    const pwsp_deps *deps = &lanes->sim->deps;
    bool is_tracked = deps->is_exact || deps->is_overlap;
    for (uint32_t i = 1; i < deps->tensor_count; i++) {
        is_tracked = is_tracked || deps->tensors[i].is_tracked;
    }
    return is_tracked;
}

// -- waiting --------------------------------------------------------------------------------------

// Dependences of a task besides structure: data, edges, its stream. False with an error.
static bool pwsp_lanes_wait(pwsp_lanes *lanes, const pwsp_arrival *arrival, pwsp_token *ready) {
    pwsp_sim *sim = lanes->sim;
    if (arrival->tile_count && (sim->deps.is_exact || sim->deps.is_overlap)) {
        sim->deps.clock = sim->clock.now;
        sim->deps.latest = *ready;
        if (!pwsp_deps_query(&sim->deps, arrival->tiles, arrival->tile_count)) {
            return pwsp_sim_no_memory(sim);
        }
        *ready = sim->deps.latest;
    }
    pwsp_precedence_each(&sim->order, arrival, true, true, pwsp_precedence_visit_time, ready);
    return true;
}

// Tells possible waiters of a task its end.
static bool pwsp_lanes_tell(pwsp_lanes *lanes, const pwsp_arrival *arrival, const pwsp_token *end) {
    pwsp_sim *sim = lanes->sim;
    pwsp_precedence_tell_task(&sim->order, arrival, true, end, true);
    sim->deps.clock = sim->clock.now;
    return arrival->tile_count == 0 || end->time < sim->clock.now ||
           pwsp_deps_add(&sim->deps, arrival->tiles, arrival->tile_count, end) ||
           pwsp_sim_no_memory(sim);
}

// -- the window -----------------------------------------------------------------------------------

// Tasks in the window, the time at which the next one leaves it, and that one, which then has left.
static uint64_t pwsp_lanes_in_window(const pwsp_lanes *lanes) {
    const pwsp_sim *sim = lanes->sim;
    return !pwsp_sim_is_open(sim)   ? sim->issue_count
           : sim->rings.is_in_order ? pwsp_rings_in_flight(&sim->rings)
                                    : lanes->window.count;
}

static uint64_t pwsp_lanes_next_end(const pwsp_lanes *lanes) {
    const pwsp_sim *sim = lanes->sim;
    if (sim->rings.is_in_order) {
        return pwsp_sim_is_open(sim) ? pwsp_rings_first_end(&sim->rings) : UINT64_MAX;
    }
    return pwsp_window_first_end(&lanes->window);
}

static pwsp_flight pwsp_lanes_leave(pwsp_lanes *lanes) {
    pwsp_rings *rings = &lanes->sim->rings;
    if (rings->is_in_order) {
        uint64_t end = pwsp_max_u64(pwsp_rings_first_end(rings), lanes->sim->clock.now);
        pwsp_rings_retire(rings, end);
        pwsp_flight flight = {end, rings->retire_task};
        return flight;
    }
    uint32_t lane;
    return pwsp_window_pop(&lanes->window, &lane);
}

// Waits until the window has room. False with an error.
static bool pwsp_lanes_make_room(pwsp_lanes *lanes) {
    pwsp_sim *sim = lanes->sim;
    const ptowsp_schedule *schedule = sim->schedule;
    uint64_t needed = pwsp_sim_room_needed(sim);
    if (!pwsp_sim_is_open(sim)) {
        if (sim->issue_count + needed <= schedule->window) {
            return true;
        }
        if (schedule->window_policy == PTOWSP_WINDOW_STALL) {
            return pwsp_sim_fail_gate(sim, "the window has no room for it", "a larger window, ");
        }
    }
    for (;;) {
        const uint64_t next = pwsp_lanes_next_end(lanes);
        const bool has_room = pwsp_lanes_in_window(lanes) + needed <= schedule->window;
        if (next > sim->clock.now && has_room) {
            return true;
        }
        if (next > sim->clock.now && schedule->window_policy == PTOWSP_WINDOW_ABORT) {
            return pwsp_sim_fail_abort(sim);
        }
        if (next > sim->clock.now && schedule->window_policy == PTOWSP_WINDOW_BENCHMARK) {
            sim->stats.window_overflow_count++;
            return true;
        }
        const pwsp_flight first = pwsp_lanes_leave(lanes);
        if (first.end > sim->clock.now) {
            pwsp_sim_move_clock(sim, first.end, PTOWSP_STALL_WINDOW, first.task);
        }
    }
}

// -- rings ----------------------------------------------------------------------------------------

// Nothing ends before tasks begin to start, not even what takes no time.
static bool pwsp_lanes_is_open(const void *user, const pwsp_token *token) {
    const pwsp_sim *sim = (const pwsp_sim *)user;
    return token->time > sim->clock.now ||
           (token->task != PTOWSP_NO_INDEX && !pwsp_sim_is_open(sim));
}

// Waits until depths and rings have room for the task. False with an error.
static bool pwsp_lanes_wait_rings(pwsp_lanes *lanes, const pwsp_arrival *arrival) {
    pwsp_sim *sim = lanes->sim;
    pwsp_rings *rings = &sim->rings;
    bool is_open = pwsp_sim_is_open(sim);
    pwsp_rings_enter(rings, pwsp_precedence_stream(&sim->order, arrival), arrival->pool);
    ptowsp_depth depth;
    while ((depth = pwsp_rings_full(rings)) != PTOWSP_DEPTH_COUNT) {
        uint64_t task = PTOWSP_NO_INDEX;
        if (!is_open) {
            return pwsp_sim_fail_depth(sim, depth);
        }
        uint64_t end = pwsp_rings_group_end(rings, depth, sim->clock.now, &task);
        if (end > sim->clock.now) {
            pwsp_sim_move_clock(sim, end, PTOWSP_STALL_DEPTH, task);
        }
    }
    pwsp_sim_ask_rings(sim, arrival, pwsp_lanes_is_open, sim);
    if (is_open) {
        pwsp_rings_retire(rings, sim->clock.now);
    }
    ptowsp_ring ring;
    while ((ring = pwsp_rings_lacking(rings)) != PTOWSP_RING_COUNT) {
        uint64_t end = pwsp_rings_first_end(rings);
        if (!is_open || pwsp_sim_ring_is_small(sim, ring) || end == UINT64_MAX) {
            return pwsp_sim_fail_ring(sim, ring, arrival->node, is_open);
        }
        PTOWSP_ASSERT(end > sim->clock.now);
        pwsp_rings_retire(rings, end);
        pwsp_sim_move_clock(sim, end, pwsp_ring_stall(ring), rings->retire_task);
    }
    while (is_open && pwsp_lanes_next_end(lanes) <= sim->clock.now) {
        pwsp_lanes_leave(lanes);  // they have left the window meanwhile
    }
    return true;
}

// -- tasks ----------------------------------------------------------------------------------------

// Moves the clock to where the task may be issued. False with an error.
PWSP_FORCE_INLINE bool pwsp_lanes_issue(pwsp_lanes *lanes, const pwsp_arrival *arrival,
                                        const pwsp_token *ready) {
    pwsp_sim *sim = lanes->sim;
    const ptowsp_schedule *schedule = sim->schedule;
    if (schedule->issue == PTOWSP_ISSUE_IN_ORDER && ready->time > sim->clock.now) {
        sim->stats.stall_cycles[PTOWSP_STALL_DEPENDENCY] += ready->time - sim->clock.now;
        pwsp_clock clock = {ready->time, PTOWSP_STALL_ORDER, ready->task};
        sim->clock = clock;
    }
    if (schedule->timing != PTOWSP_TIMING_IMMEDIATE) {
        uint64_t time = pwsp_sim_timing(sim);
        if (time > sim->clock.now) {
            pwsp_sim_move_clock(sim, time, PTOWSP_STALL_TIMING, PTOWSP_NO_INDEX);
        }
    }
    if (schedule->window && !pwsp_lanes_make_room(lanes)) {
        return false;
    }
    if (sim->rings.is_used && !pwsp_lanes_wait_rings(lanes, arrival)) {
        return false;
    }
    if (schedule->timing == PTOWSP_TIMING_RATE_LIMITED ||
        (schedule->timing == PTOWSP_TIMING_BATCHED &&
         sim->issue_count % schedule->timing_count == 0)) {
        sim->batch_clock = sim->clock.now;
    }
    return true;
}

static bool pwsp_lanes_record(pwsp_sim *sim, const pwsp_arrival *arrival,
                              const pwsp_lanes_place *place, uint64_t end) {
    ptowsp_task_record *record = sim->recorder.add(sim->recorder.user, arrival);
    if (!record) {
        return pwsp_sim_no_memory(sim);
    }
    record->ready = place->ready.time;
    record->issue = sim->clock.now;
    record->start = place->start;
    record->end = end;
    record->lane = place->lane;
    record->kernel = arrival->kernel;
    record->node = arrival->node;
    const pwsp_lane *last = pwsp_sim_last_ended(sim, arrival->unit, place->lane);
    const uint64_t could =
        pwsp_max_u64(pwsp_max_u64(place->due, sim->gate_time), pwsp_lane_end(sim, last));
    record->stall = pwsp_sim_cause(sim, &place->ready, last, place->issue, could, &record->cause);
    pwsp_sim_record_start(sim, sim->task_count, record, arrival->unit, could);
    return true;
}

// Does a task wait for more than structure?
static bool pwsp_lanes_has_more(const pwsp_sim *sim, const pwsp_arrival *arrival) {
    return arrival->tile_count || sim->order.streams || sim->order.edges;
}

// Issues a task. False with an error.
PWSP_FORCE_INLINE bool pwsp_lanes_find_place(pwsp_lanes *lanes, const pwsp_arrival *arrival,
                                             pwsp_lanes_place *place) {
    pwsp_sim *sim = lanes->sim;
    pwsp_token ready = pwsp_precedence_ready(&sim->order);
    sim->deps.visited_count = 0;
    if (pwsp_lanes_has_more(sim, arrival) && !pwsp_lanes_wait(lanes, arrival, &ready)) {
        return false;
    }
    if (!pwsp_lanes_issue(lanes, arrival, &ready)) {
        return false;
    }
    place->ready = ready;
    place->issue = sim->clock.now;
    if (sim->schedule->timing == PTOWSP_TIMING_INTERLEAVED) {
        place->issue = pwsp_sim_turn(sim, arrival);
    }
    place->lane = pwsp_sim_dispatch(sim, arrival->pool, pwsp_sim_has_block(sim, arrival->unit),
                                    arrival->dispatch_key);
    PTOWSP_ASSERT(place->lane < sim->timed->lane_count);
    const uint64_t free = pwsp_sim_last_lane(sim, arrival->unit, place->lane)->free;
    place->known = pwsp_max_u64(sim->clock.now, ready.time);
    place->due = pwsp_max_u64(place->issue, place->known);
    place->able = pwsp_max_u64(place->due, free);
    place->start = pwsp_max_u64(place->able, sim->gate_time);
    return true;
}

// The same for a task that communicates, which may be held, and its cycles.
static bool pwsp_lanes_meet(pwsp_lanes *lanes, const pwsp_arrival *arrival, pwsp_lanes_place *place,
                            uint64_t *out_cycles) {
    if (lanes->is_held) {
        *place = lanes->held;
    } else if (!pwsp_lanes_find_place(lanes, arrival, place)) {
        return false;
    }
    const bool is_found =
        pwsp_sim_meet(lanes->sim, lanes->sim->task_count, place->start, out_cycles);
    lanes->held = *place;
    lanes->is_held = lanes->sim->is_held;
    return is_found;
}

PWSP_INTERNAL bool pwsp_lanes_task(pwsp_lanes *lanes, const pwsp_arrival *arrival) {
    pwsp_sim *sim = lanes->sim;
    const ptowsp_schedule *schedule = sim->schedule;
    pwsp_lanes_place place;
    uint64_t cycles = arrival->cycles;
    if (PWSP_UNLIKELY(arrival->unit == PTOWSP_UNIT_LINK) && sim->meeting.find_cycles) {
        if (!pwsp_lanes_meet(lanes, arrival, &place, &cycles)) {
            return false;
        }
    } else if (!pwsp_lanes_find_place(lanes, arrival, &place)) {
        return false;
    }
    const uint32_t lane = place.lane;
    const uint64_t start = place.start, end = start + cycles;
    if (end > PTOWSP_CYCLES_MAX) {
        return pwsp_sim_fail_time(sim, sim->task_count);
    }
    PTOWSP_ASSERT(start >= place.ready.time && end >= start);
    if (sim->has_records && !pwsp_lanes_record(sim, arrival, &place, end)) {
        return false;
    }
    ptowsp_run_stats *stats = &sim->stats;
    stats->stall_cycles[PTOWSP_STALL_DEPENDENCY] += place.known - sim->clock.now;
    stats->stall_cycles[PTOWSP_STALL_TIMING] += place.due - place.known;
    const uint64_t could =
        PWSP_UNLIKELY(sim->has_starts)
            ? pwsp_max_u64(place.due,
                           pwsp_lane_end(sim, pwsp_sim_last_ended(sim, arrival->unit, lane)))
            : place.able;
    stats->stall_cycles[PTOWSP_STALL_LANE] += could - place.due;
    stats->stall_cycles[PTOWSP_STALL_CONTROL] += place.able - could;
    stats->stall_cycles[PTOWSP_STALL_START] += start - place.able;
    stats->makespan_cycles = pwsp_max_u64(stats->makespan_cycles, end);
    pwsp_sim_start(sim, arrival->unit, lane, sim->task_count, cycles, start);
    if (!pwsp_sim_take_rings(sim, arrival, end)) {
        return false;
    }
    if (sim->rings.is_in_order) {
        stats->in_flight_max =
            pwsp_max_u64(stats->in_flight_max, pwsp_rings_in_flight(&sim->rings));
    } else if (schedule->window && (end > sim->clock.now || !pwsp_sim_is_open(sim))) {
        if (!pwsp_window_push(&lanes->window, &sim->memory, lane, end, sim->task_count)) {
            return pwsp_sim_no_memory(sim);
        }
        stats->in_flight_max = pwsp_max_u64(stats->in_flight_max, lanes->window.count);
    }
    const pwsp_token token = {end, sim->task_count};
    pwsp_precedence_tell_child(&sim->order, &token, true);
    if (pwsp_lanes_has_more(sim, arrival) && !pwsp_lanes_tell(lanes, arrival, &token)) {
        return false;
    }
    sim->task_count++;
    sim->issue_count++;
    return true;
}

// Dependences of a pipeline. False with an error.
static bool pwsp_lanes_wait_pipeline(pwsp_lanes *lanes, const pwsp_pipeline_arrival *arrival,
                                     pwsp_token *ready) {
    pwsp_sim *sim = lanes->sim;
    const pwsp_arrival *whole = &arrival->whole;
    sim->deps.clock = sim->clock.now;
    sim->deps.latest = *ready;
    if (sim->schedule->issue == PTOWSP_ISSUE_DATAFLOW) {
        pwsp_deps_query_loads(&sim->deps, whole->tiles, whole->tile_count);
    }
    if (!pwsp_deps_query(&sim->deps, whole->tiles, whole->tile_count)) {
        return pwsp_sim_no_memory(sim);
    }
    *ready = sim->deps.latest;
    pwsp_precedence_each(&sim->order, whole, false, true, pwsp_precedence_visit_time, ready);
    return true;
}

PWSP_INTERNAL bool pwsp_lanes_pipeline(pwsp_lanes *lanes, const pwsp_pipeline_arrival *arrival) {
    pwsp_sim *sim = lanes->sim;
    const pwsp_arrival *whole = &arrival->whole;
    pwsp_token ready = pwsp_precedence_ready(&sim->order);
    if (!pwsp_lanes_wait_pipeline(lanes, arrival, &ready)) {
        return false;
    }
    if (sim->schedule->issue == PTOWSP_ISSUE_IN_ORDER && ready.time > sim->clock.now) {
        sim->stats.stall_cycles[PTOWSP_STALL_DEPENDENCY] += ready.time - sim->clock.now;
        pwsp_clock clock = {ready.time, PTOWSP_STALL_ORDER, ready.task};
        sim->clock = clock;
    }
    uint64_t start = pwsp_max_u64(sim->clock.now, ready.time), end = start + whole->cycles;
    if (end > PTOWSP_CYCLES_MAX) {
        return pwsp_sim_fail_pipeline(sim, whole->node);
    }
    sim->stats.stall_cycles[PTOWSP_STALL_DEPENDENCY] += start - sim->clock.now;
    sim->stats.makespan_cycles = pwsp_max_u64(sim->stats.makespan_cycles, end);
    uint64_t cause = pwsp_sim_place_records(sim, arrival->first_task, arrival->task_count, &ready,
                                            sim->clock.now, start);
    PTOWSP_ASSERT(arrival->pipeline < sim->timed->pipeline_count);
    pwsp_sim_start_pipeline(sim, arrival->pipeline, arrival->run, start);
    pwsp_token token = {end, arrival->end_task != PTOWSP_NO_INDEX ? arrival->end_task : cause};
    pwsp_precedence_tell_task(&sim->order, whole, false, &token, true);
    pwsp_precedence_tell_child(&sim->order, &token, true);
    sim->deps.clock = sim->clock.now;
    return whole->tile_count == 0 ||
           pwsp_deps_add(&sim->deps, whole->tiles, whole->tile_count, &token) ||
           pwsp_sim_no_memory(sim);
}

PWSP_INTERNAL bool pwsp_lanes_slot_load(pwsp_lanes *lanes, const pwsp_tile_at *tile) {
    pwsp_sim *sim = lanes->sim;
    if (sim->schedule->issue == PTOWSP_ISSUE_IN_ORDER) {
        return true;
    }
    pwsp_token none = {sim->clock.now, PTOWSP_NO_INDEX};
    sim->deps.clock = sim->clock.now;
    sim->deps.latest = none;
    sim->deps.visit_count = 0;
    pwsp_deps_query_load(&sim->deps, tile);
    if (sim->deps.visit_count && !pwsp_sim_is_open(sim)) {
        return pwsp_sim_fail_gate(sim, "a slot load needs the result of a task", "");
    }
    if (sim->deps.latest.time <= sim->clock.now) {
        return true;
    }
    pwsp_sim_move_clock(sim, sim->deps.latest.time, PTOWSP_STALL_SLOT, sim->deps.latest.task);
    return true;
}
