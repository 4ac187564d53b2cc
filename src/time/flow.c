// Event-driven time.
//
// When lanes choose, a task's start depends on tasks that are issued after it, so times are found
// by going from event to event. What can be waited for is a *node*: a task, done when it ends, or a
// join, done when all that it waits for is. A node knows how much it still waits for and who waits
// for it; a scope of the tree is a join, and so are readers that count as one. Nodes are counted
// references: they live while a task is in flight, or something may yet wait for them.
//
//      issue -> [waiting: pending > 0] -> [turn is later] -> [ready: in a queue] -> running -> done
//
// At each time: what ends completes; tasks are issued while there is room (by the caller, who walks
// the program: pwsp_flow_task returns when its task has been issued); lanes take tasks. A heap for
// each lane holds its ready tasks, the best first, by key and then by index; with work stealing as
// dispatch the lanes of a pool share one. Of each lane at most one task runs, so the ends are few,
// and a tournament of lanes finds the next one.

#include "flow.h"

#include "nodes.h"

#include <inttypes.h>

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_flow_init(pwsp_flow *flow, pwsp_sim *sim) {
    memset(flow, 0, sizeof *flow);
    const pwsp_memory *memory = &sim->memory;
    uint32_t lane_count = sim->timed->lane_count;
    size_t words = ((size_t)lane_count + 63) / 64;
    flow->sim = sim;
    flow->is_shared = sim->schedule->dispatch == PTOWSP_DISPATCH_WORK_STEALING;
    flow->queue_count = flow->is_shared ? 2 : lane_count;
    flow->scopes = (pwsp_flow_scope *)pwsp_memory_alloc(memory, sim->timed->scope_depth *
                                                                    sizeof(pwsp_flow_scope));
    flow->queues = (pwsp_flow_queue *)pwsp_memory_alloc(memory, (flow->queue_count + 2) *
                                                                    sizeof(pwsp_flow_queue));
    flow->idle = (uint64_t *)pwsp_memory_alloc(memory, 2 * words * sizeof(uint64_t));
    if (!flow->scopes || !flow->queues || !flow->idle ||
        !pwsp_window_init(&flow->running, memory, lane_count)) {
        pwsp_flow_free(flow);
        return false;
    }
    flow->able = flow->idle + words;
    flow->turns = &flow->queues[flow->queue_count];
    flow->ends = flow->turns + 1;
    return true;
}

PWSP_INTERNAL void pwsp_flow_free(pwsp_flow *flow) {
    if (!flow->sim) {
        return;
    }
    const pwsp_memory *memory = &flow->sim->memory;
    size_t words = ((size_t)flow->sim->timed->lane_count + 63) / 64;
    pwsp_memory_free(memory, flow->nodes, (size_t)flow->node_capacity * sizeof(pwsp_flow_node));
    pwsp_memory_free(memory, flow->causes, (size_t)flow->cause_capacity * sizeof(uint64_t));
    pwsp_memory_free(memory, flow->ranks, (size_t)flow->rank_capacity * sizeof(uint64_t));
    pwsp_memory_free(memory, flow->turns_at, (size_t)flow->turn_capacity * sizeof(uint64_t));
    pwsp_memory_free(memory, flow->pipelines,
                     (size_t)flow->pipeline_capacity * sizeof(pwsp_flow_pipeline_node));
    pwsp_memory_free(memory, flow->links, (size_t)flow->link_capacity * sizeof(pwsp_flow_link));
    pwsp_memory_free(memory, flow->fired, (size_t)flow->fired_capacity * sizeof(uint32_t));
    for (uint32_t i = 0; flow->queues && i < flow->queue_count + 2; i++) {
        pwsp_memory_free(memory, flow->queues[i].entries,
                         (size_t)flow->queues[i].capacity * sizeof(pwsp_flow_entry));
    }
    pwsp_memory_free(memory, flow->queues, (flow->queue_count + 2) * sizeof(pwsp_flow_queue));
    pwsp_memory_free(memory, flow->idle, 2 * words * sizeof(uint64_t));
    pwsp_memory_free(memory, flow->scopes, flow->sim->timed->scope_depth * sizeof(pwsp_flow_scope));
    pwsp_window_free(&flow->running, memory);
    memset(flow, 0, sizeof *flow);
}

PWSP_INTERNAL size_t pwsp_flow_bytes(const pwsp_flow *flow) {
    size_t words = ((size_t)flow->sim->timed->lane_count + 63) / 64;
    uint64_t by_node = flow->cause_capacity + flow->rank_capacity + flow->turn_capacity;
    size_t bytes =
        (size_t)flow->node_capacity * sizeof(pwsp_flow_node) + (size_t)by_node * sizeof(uint64_t) +
        (size_t)flow->pipeline_capacity * sizeof(pwsp_flow_pipeline_node) +
        (size_t)flow->link_capacity * sizeof(pwsp_flow_link) +
        (size_t)flow->fired_capacity * sizeof(uint32_t) +
        (flow->queue_count + 2) * sizeof(pwsp_flow_queue) + 2 * words * sizeof(uint64_t) +
        pwsp_window_bytes(&flow->running) + flow->sim->timed->scope_depth * sizeof(pwsp_flow_scope);
    for (uint32_t i = 0; i < flow->queue_count + 2; i++) {
        bytes += (size_t)flow->queues[i].capacity * sizeof(pwsp_flow_entry);
    }
    return bytes;
}

PWSP_INTERNAL void pwsp_flow_begin(pwsp_flow *flow) {
    uint32_t lane_count = flow->sim->timed->lane_count;
    size_t words = ((size_t)lane_count + 63) / 64;
    flow->now = 0;
    flow->node_count = 0;
    flow->free_node = 0;
    flow->pipeline_node_count = 0;
    flow->free_pipeline = 0;
    flow->link_count = 0;
    flow->free_link = 0;
    flow->fired_count = 0;
    for (uint32_t i = 0; i < flow->queue_count + 2; i++) {
        flow->queues[i].count = 0;
    }
    flow->ready_count[0] = flow->ready_count[1] = 0;
    memset(flow->idle, 0, 2 * words * sizeof(uint64_t));
    for (uint32_t i = 0; i < lane_count; i++) {
        flow->idle[i / 64] |= UINT64_C(1) << i % 64;
    }
    pwsp_window_clear(&flow->running);
    pwsp_flow_scope root = {false, PWSP_FLOW_NONE, PWSP_FLOW_NONE};
    flow->scopes[0] = root;
    flow->depth = 1;
    flow->in_flight = 0;
    flow->pipeline_count = 0;
    flow->late = 0;
    flow->last_ended = PWSP_FLOW_NONE;
    flow->is_out_of_memory = false;
    flow->has_ended = false;
    pwsp_token_ops ops = {pwsp_flow_token_is_dead,
                          pwsp_flow_token_visit,
                          pwsp_flow_token_keep,
                          pwsp_flow_token_drop,
                          pwsp_flow_token_merge,
                          flow,
                          true};
    flow->sim->deps.ops = ops;
}

// -- structure ------------------------------------------------------------------------------------

// What could not be told where it happened.
static bool pwsp_flow_check(pwsp_flow *flow) {
    if (flow->late) {
        return pwsp_sim_fail_pipeline(flow->sim,
                                      flow->pipelines[flow->nodes[flow->late].cycles].node);
    }
    return !flow->is_out_of_memory || pwsp_sim_no_memory(flow->sim);
}

PWSP_INTERNAL bool pwsp_flow_scope_begin(pwsp_flow *flow, bool is_parallel) {
    PTOWSP_ASSERT(flow->depth < flow->sim->timed->scope_depth);
    pwsp_flow_scope scope = {is_parallel, flow->scopes[flow->depth - 1].ready, PWSP_FLOW_NONE};
    pwsp_flow_ref(flow, scope.ready);
    if (is_parallel) {
        uint32_t join = pwsp_flow_node_new(flow);
        if (join == 0) {
            return pwsp_sim_no_memory(flow->sim);
        }
        flow->nodes[join].refs = 2;     // the scope's, and until it is done
        flow->nodes[join].pending = 1;  // the scope is open
        pwsp_flow_wait(flow, join, scope.ready);
        scope.join = join;
    }
    flow->scopes[flow->depth++] = scope;
    return pwsp_flow_check(flow);
}

// A child of the open scope is done when this node is.
static void pwsp_flow_child(pwsp_flow *flow, uint64_t node) {
    pwsp_flow_scope *scope = &flow->scopes[flow->depth - 1];
    if (scope->is_parallel) {
        pwsp_flow_wait(flow, (uint32_t)scope->join, node);
    } else {
        pwsp_flow_ref(flow, node);
        pwsp_flow_unref(flow, scope->ready);
        scope->ready = node;
    }
}

PWSP_INTERNAL bool pwsp_flow_scope_end(pwsp_flow *flow) {
    PTOWSP_ASSERT(flow->depth > 1);
    pwsp_flow_scope scope = flow->scopes[--flow->depth];
    uint64_t done = scope.ready;
    if (scope.is_parallel) {
        pwsp_flow_arrive(flow, (uint32_t)scope.join);
        pwsp_flow_settle(flow);
        done = scope.join;
        pwsp_flow_unref(flow, scope.ready);
    }
    pwsp_flow_child(flow, done);
    pwsp_flow_unref(flow, done);
    return pwsp_flow_check(flow);
}

PWSP_INTERNAL void pwsp_flow_reset(pwsp_flow *flow, pwsp_range edges) {
    pwsp_sim *sim = flow->sim;
    for (uint32_t i = 0; i < edges.count; i++) {
        uint32_t edge = sim->timed->edges[edges.first + i];
        pwsp_flow_token_set(flow, &sim->edges[edge], PWSP_FLOW_NONE);
    }
}

// -- events ---------------------------------------------------------------------------------------

static bool pwsp_flow_is_open(const pwsp_flow *flow) {
    return flow->has_ended || pwsp_sim_is_open(flow->sim);
}

static uint32_t pwsp_flow_first_bit(uint64_t word) {
    return (uint32_t)__builtin_ctzll(word);
}

// Runs the best task of a queue on a lane, from now on. False with an error.
static bool pwsp_flow_run(pwsp_flow *flow, uint32_t lane, pwsp_flow_queue *queue) {
    pwsp_sim *sim = flow->sim;
    uint32_t id = pwsp_flow_queue_pop(flow, queue).node;
    pwsp_flow_node *node = &flow->nodes[id];
    uint64_t end = flow->now + node->cycles;
    if (end > PTOWSP_CYCLES_MAX) {
        return pwsp_sim_fail(sim, PTOWSP_LIMIT_EXCEEDED, node->index,
                             "run: task %" PRIu64 " ends after 2^63 - 1 cycles", node->index);
    }
    uint64_t known = pwsp_max_u64(node->clock, node->time);
    uint64_t turn = pwsp_flow_turn(flow, id), due = pwsp_max_u64(turn, known);
    uint64_t able = pwsp_max_u64(due, sim->gate_time);
    ptowsp_run_stats *stats = &sim->stats;
    stats->stall_cycles[PTOWSP_STALL_DEPENDENCY] += known - node->clock;
    stats->stall_cycles[PTOWSP_STALL_TIMING] += due - known;
    stats->stall_cycles[PTOWSP_STALL_START] += able - due;
    stats->stall_cycles[PTOWSP_STALL_LANE] += flow->now - able;
    stats->makespan_cycles = pwsp_max_u64(stats->makespan_cycles, end);
    if (sim->has_records) {
        ptowsp_task_record *record = &sim->records[node->index];
        pwsp_token ready = {node->time, pwsp_flow_cause(flow, id)};
        uint64_t clock_cause = record->cause;  // what moved the clock, noted at issue
        ptowsp_stall clock_stall = record->stall;
        record->ready = node->time;
        record->start = flow->now;
        record->end = end;
        record->lane = lane;
        record->stall =
            pwsp_sim_cause(sim, &ready, &sim->lanes[lane], turn, flow->now, &record->cause);
        if (record->start > 0 && record->start == turn && node->time != flow->now &&
            sim->lanes[lane].free != flow->now) {
            record->stall = clock_stall;
            record->cause = clock_cause;
        }
    }
    sim->lanes[lane].free = end;
    sim->lanes[lane].last_task = node->index;
    sim->lane_stats[lane].busy_cycles += node->cycles;
    sim->lane_stats[lane].task_count++;
    flow->ready_count[lane >= sim->pools[0].count]--;
    flow->idle[lane / 64] &= ~(UINT64_C(1) << lane % 64);
    flow->able[lane / 64] &= ~(UINT64_C(1) << lane % 64);
    if (!pwsp_window_push(&flow->running, &sim->memory, lane, end, id)) {
        return pwsp_sim_no_memory(sim);
    }
    return true;
}

// Idle lanes take the best task of their own queue, by index. False with an error.
static bool pwsp_flow_take_own(pwsp_flow *flow) {
    uint32_t words = (flow->sim->timed->lane_count + 63) / 64;
    for (uint32_t i = 0; i < words; i++) {
        while (flow->able[i]) {
            uint32_t lane = i * 64 + pwsp_flow_first_bit(flow->able[i]);
            if (!pwsp_flow_run(flow, lane, &flow->queues[lane])) {
                return false;
            }
        }
    }
    return true;
}

// The queue of a pool from which an idle lane steals: that of the oldest ready task.
static pwsp_flow_queue *pwsp_flow_victim(pwsp_flow *flow, const pwsp_pool_lanes *pool) {
    pwsp_flow_queue *best = NULL;
    uint64_t best_index = UINT64_MAX;
    for (uint32_t i = pool->first; i < pool->first + pool->count; i++) {
        pwsp_flow_queue *queue = &flow->queues[i];
        uint64_t index = queue->count ? flow->nodes[queue->entries[0].node].index : UINT64_MAX;
        if (index < best_index) {
            best = queue;
            best_index = index;
        }
    }
    return best;
}

// Idle lanes take tasks of their pool's queue, or steal from other lanes, by index.
static bool pwsp_flow_take_others(pwsp_flow *flow) {
    uint32_t words = (flow->sim->timed->lane_count + 63) / 64;
    for (uint32_t i = 0; i < words && (flow->ready_count[0] || flow->ready_count[1]); i++) {
        for (uint64_t left = flow->idle[i]; left; left &= left - 1) {
            uint32_t lane = i * 64 + pwsp_flow_first_bit(left);
            uint32_t pool = lane >= flow->sim->pools[0].count;
            if (flow->ready_count[pool] == 0) {
                continue;
            }
            pwsp_flow_queue *queue = flow->is_shared
                                         ? &flow->queues[pool]
                                         : pwsp_flow_victim(flow, &flow->sim->pools[pool]);
            PTOWSP_ASSERT(queue && queue->count > 0);
            if (!pwsp_flow_run(flow, lane, queue)) {
                return false;
            }
        }
    }
    return true;
}

static bool pwsp_flow_take(pwsp_flow *flow) {
    if (!pwsp_flow_is_open(flow)) {
        return true;
    }
    if (!flow->is_shared && !pwsp_flow_take_own(flow)) {
        return false;
    }
    bool steals = flow->is_shared || flow->sim->schedule->ready == PTOWSP_READY_WORK_STEALING;
    return !steals || pwsp_flow_take_others(flow);
}

// Completes what ends now, and lets those whose turn it is be ready.
static void pwsp_flow_complete(pwsp_flow *flow) {
    while (pwsp_window_first_end(&flow->running) == flow->now) {
        uint32_t lane;
        uint32_t id = (uint32_t)pwsp_window_pop(&flow->running, &lane).task;
        pwsp_flow_node *node = &flow->nodes[id];
        node->time = flow->now;
        pwsp_flow_set_cause(flow, id, node->index);
        flow->last_ended = node->index;
        flow->in_flight--;
        uint64_t bit = UINT64_C(1) << lane % 64;
        flow->idle[lane / 64] |= bit;
        if (!flow->is_shared && flow->queues[lane].count) {
            flow->able[lane / 64] |= bit;
        }
        pwsp_flow_fire(flow, id);
        pwsp_flow_settle(flow);
    }
    while (flow->ends->count && pwsp_flow_entry_key(&flow->ends->entries[0]) <= flow->now) {
        uint32_t id = pwsp_flow_queue_pop(flow, flow->ends).node;
        uint64_t at = flow->nodes[id].cycles;
        flow->nodes[id].time = flow->now;
        pwsp_flow_set_cause(flow, id, flow->pipelines[at].end_task);
        flow->pipelines[at].next_free = flow->free_pipeline;
        flow->free_pipeline = (uint32_t)at + 1;
        flow->pipeline_count--;
        pwsp_flow_fire(flow, id);
        pwsp_flow_settle(flow);
    }
    while (flow->turns->count && pwsp_flow_entry_key(&flow->turns->entries[0]) <= flow->now) {
        pwsp_flow_make_ready(flow, pwsp_flow_queue_pop(flow, flow->turns).node);
    }
}

// One step: lanes take tasks, then time moves to the next event, at most to `until`. *out_moved
// says whether anything happened. False with an error.
static bool pwsp_flow_step(pwsp_flow *flow, uint64_t until, bool *out_moved) {
    if (!pwsp_flow_take(flow)) {
        return false;
    }
    uint64_t next = pwsp_min_u64(pwsp_window_first_end(&flow->running), until);
    if (flow->turns->count) {
        next = pwsp_min_u64(next, pwsp_flow_entry_key(&flow->turns->entries[0]));
    }
    if (flow->ends->count) {
        next = pwsp_min_u64(next, pwsp_flow_entry_key(&flow->ends->entries[0]));
    }
    *out_moved = next != UINT64_MAX;
    if (*out_moved) {
        flow->now = next;
        pwsp_flow_complete(flow);
    }
    return pwsp_flow_check(flow);
}

static bool pwsp_flow_fail_stuck(pwsp_flow *flow, const char *what) {
    if (!pwsp_flow_is_open(flow)) {
        return pwsp_sim_fail_gate(flow->sim, what);
    }
    return pwsp_sim_fail(flow->sim, PTOWSP_STUCK, flow->sim->task_count,
                         "run: stuck at task %" PRIu64 " in cycle %" PRIu64 ": %s, and none of "
                         "%" PRIu64 " tasks in flight can start",
                         flow->sim->task_count, flow->now, what, flow->in_flight);
}

// -- issuing --------------------------------------------------------------------------------------

// Simulates until there is room for the next task, at `timed` at the earliest. False with an error.
static bool pwsp_flow_make_room(pwsp_flow *flow, uint64_t timed) {
    pwsp_sim *sim = flow->sim;
    const ptowsp_schedule *schedule = sim->schedule;
    uint64_t needed = pwsp_sim_room_needed(sim);
    for (;;) {
        bool has_room = schedule->window == 0 || flow->in_flight + needed <= schedule->window;
        if (flow->now >= timed &&
            (has_room || schedule->window_policy == PTOWSP_WINDOW_BENCHMARK)) {
            sim->stats.window_overflow_count += !has_room;
            return true;
        }
        if (flow->now >= timed && schedule->window_policy == PTOWSP_WINDOW_ABORT) {
            return pwsp_sim_fail_abort(sim);
        }
        bool has_moved;
        if (!pwsp_flow_step(flow, flow->now < timed ? timed : UINT64_MAX, &has_moved)) {
            return false;
        }
        if (!has_moved) {
            return pwsp_flow_fail_stuck(flow, "the window has no room for it");
        }
    }
}

// The clock follows to now: first for timing, then for the window.
static void pwsp_flow_move_clock(pwsp_flow *flow, uint64_t timed) {
    pwsp_sim *sim = flow->sim;
    if (timed > sim->clock.now) {
        pwsp_sim_move_clock(sim, timed, PTOWSP_STALL_TIMING, PTOWSP_NO_INDEX);
    }
    if (flow->now > sim->clock.now) {
        pwsp_sim_move_clock(sim, flow->now, PTOWSP_STALL_WINDOW, flow->last_ended);
    }
}

// Adds what a task, or a pipeline, waits for beside its lane; and whoever waits for it.
static bool pwsp_flow_connect(pwsp_flow *flow, const pwsp_task_op *op, const pwsp_tile_view *views,
                              const pwsp_tile_at *tiles, uint32_t id, pwsp_stream *stream) {
    pwsp_sim *sim = flow->sim;
    if (sim->has_structure) {
        pwsp_flow_wait(flow, id, flow->scopes[flow->depth - 1].ready);
    }
    flow->current = id;
    if (!pwsp_deps_query(&sim->deps, views, tiles, op->view_count)) {
        return pwsp_sim_no_memory(sim);
    }
    for (uint32_t i = 0; i < op->in_count; i++) {
        uint32_t edge = sim->timed->edges[op->first_in + i];
        pwsp_flow_wait(flow, id, sim->edges[edge].task);
    }
    pwsp_token token = {0, id};
    if (stream) {
        pwsp_flow_wait(flow, id, stream->last.task);
        pwsp_flow_token_set(flow, &stream->last, id);
    }
    for (uint32_t i = 0; i < op->out_count; i++) {
        pwsp_token *edge = &sim->edges[sim->timed->edges[op->first_out + i]];
        if (edge->task == PWSP_FLOW_NONE) {
            pwsp_flow_token_set(flow, edge, id);
        } else {
            pwsp_flow_token_merge(flow, edge, &token);
        }
    }
    pwsp_flow_child(flow, id);
    return true;
}

PWSP_INTERNAL bool pwsp_flow_task(pwsp_flow *flow, const pwsp_arrival *arrival) {
    pwsp_sim *sim = flow->sim;
    const ptowsp_schedule *schedule = sim->schedule;
    uint64_t timed = pwsp_sim_timing(sim);
    if (!pwsp_flow_make_room(flow, timed)) {
        return false;
    }
    pwsp_flow_move_clock(flow, timed);
    if (schedule->timing == PTOWSP_TIMING_RATE_LIMITED || pwsp_sim_room_needed(sim) > 1 ||
        (schedule->timing == PTOWSP_TIMING_BATCHED && schedule->timing_count == 1)) {
        sim->batch_clock = sim->clock.now;
    }
    uint32_t stream = sim->streams ? pwsp_modulo(arrival->stream_key, schedule->stream_count) : 0;
    uint32_t id = pwsp_flow_node_new(flow);
    if (id == 0 || (sim->has_records && !pwsp_sim_record_room(sim))) {
        return pwsp_sim_no_memory(sim);
    }
    pwsp_flow_node *node = &flow->nodes[id];
    node->kind = PWSP_FLOW_TASK;
    node->pending = 1;  // until all it waits for is known
    node->index = sim->task_count;
    node->cycles = arrival->cycles;
    node->clock = flow->now;
    uint64_t turn = flow->now;
    if (schedule->timing == PTOWSP_TIMING_INTERLEAVED) {
        turn = flow->turns_at[id] = pwsp_sim_turn(sim, stream);
    }
    if (schedule->ready == PTOWSP_READY_PRIORITY) {
        uint64_t sign = sim->timed->is_priority_signed ? UINT64_C(1) << 63 : 0;
        flow->ranks[id] = ~(arrival->priority_key ^ sign);
    }
    node->lane =
        (uint16_t)(flow->is_shared ? (uint32_t)(pwsp_sim_pool(sim, arrival->unit) - sim->pools)
                                   : pwsp_sim_dispatch(sim, arrival->unit, arrival->dispatch_key));
    if (sim->has_records) {
        ptowsp_task_record *record = &sim->records[sim->task_count];
        bool is_turn = turn > flow->now;
        record->start = record->end = record->ready = 0;
        record->issue = flow->now;
        record->kernel = arrival->op->kernel;
        record->node = arrival->node;
        record->stall = is_turn ? PTOWSP_STALL_TIMING : sim->clock.stall;
        record->cause = is_turn ? PTOWSP_NO_INDEX : sim->clock.cause;
    }
    flow->in_flight++;
    if (schedule->window) {
        sim->stats.in_flight_max = pwsp_max_u64(sim->stats.in_flight_max, flow->in_flight);
    }
    pwsp_token token = {0, id};
    if (!pwsp_flow_connect(flow, arrival->op, arrival->views, arrival->tiles, id,
                           sim->streams ? &sim->streams[stream] : NULL)) {
        return false;
    }
    if (!pwsp_deps_add(&sim->deps, arrival->views, arrival->tiles, arrival->op->view_count,
                       &token)) {
        return pwsp_sim_no_memory(sim);
    }
    pwsp_flow_arrive(flow, id);
    sim->task_count++;
    sim->issue_count++;
    if (sim->issue_count == schedule->start_threshold) {
        sim->gate_time = flow->now;
    }
    return pwsp_flow_check(flow);
}

// What a pipeline's node has no room for. False when memory is out.
static bool pwsp_flow_pipeline_node_new(pwsp_flow *flow, const pwsp_pipeline_arrival *arrival,
                                        uint64_t *out_at) {
    uint64_t at = flow->pipeline_node_count;
    if (flow->free_pipeline) {
        at = flow->free_pipeline - 1;
        flow->free_pipeline = flow->pipelines[at].next_free;
    } else {
        void *pipelines = flow->pipelines;
        if (at >= UINT32_MAX ||
            !pwsp_memory_grow(&flow->sim->memory, &pipelines, &flow->pipeline_capacity, at + 1,
                              sizeof(pwsp_flow_pipeline_node))) {
            return false;
        }
        flow->pipelines = (pwsp_flow_pipeline_node *)pipelines;
        flow->pipeline_node_count = at + 1;
    }
    pwsp_flow_pipeline_node more = {arrival->task_count,
                                    arrival->end_task,
                                    arrival->cycles,
                                    arrival->node,
                                    arrival->pipeline,
                                    arrival->run,
                                    0};
    flow->pipelines[at] = more;
    *out_at = at;
    return true;
}

PWSP_INTERNAL bool pwsp_flow_pipeline(pwsp_flow *flow, const pwsp_pipeline_arrival *arrival) {
    pwsp_sim *sim = flow->sim;
    uint32_t id = pwsp_flow_node_new(flow);
    if (id == 0) {
        return pwsp_sim_no_memory(sim);
    }
    pwsp_flow_node *node = &flow->nodes[id];
    node->kind = PWSP_FLOW_PIPELINE;
    node->pending = 1;  // until all it waits for is known
    node->index = arrival->first_task;
    node->clock = sim->clock.now;
    if (!pwsp_flow_pipeline_node_new(flow, arrival, &node->cycles)) {
        return pwsp_sim_no_memory(sim);
    }
    flow->pipeline_count++;
    pwsp_token token = {0, id};
    flow->current = id;
    pwsp_deps_query_loads(&sim->deps, arrival->views, arrival->tiles, arrival->op->view_count);
    if (!pwsp_flow_connect(flow, arrival->op, arrival->views, arrival->tiles, id, NULL)) {
        return false;
    }
    if (!pwsp_deps_add(&sim->deps, arrival->views, arrival->tiles, arrival->op->view_count,
                       &token)) {
        return pwsp_sim_no_memory(sim);
    }
    pwsp_flow_arrive(flow, id);
    return pwsp_flow_check(flow);
}

PWSP_INTERNAL bool pwsp_flow_slot_load(pwsp_flow *flow, const pwsp_tile_at *tile) {
    pwsp_sim *sim = flow->sim;
    uint32_t id = pwsp_flow_node_new(flow);
    if (id == 0) {
        return pwsp_sim_no_memory(sim);
    }
    flow->nodes[id].refs = 2;  // ours, and until it is done
    flow->nodes[id].pending = 1;
    flow->current = id;
    pwsp_deps_query_load(&sim->deps, tile);
    pwsp_flow_arrive(flow, id);
    pwsp_flow_settle(flow);
    while (!flow->nodes[id].is_done) {
        bool has_moved = false;
        // nothing completes before tasks begin to start, pipelines neither
        if (pwsp_flow_is_open(flow) && !pwsp_flow_step(flow, UINT64_MAX, &has_moved)) {
            return false;
        }
        if (!has_moved) {
            return pwsp_flow_fail_stuck(flow, "a slot load needs the result of a task");
        }
    }
    uint64_t cause = pwsp_flow_cause(flow, id);
    pwsp_flow_unref(flow, id);
    if (flow->now > sim->clock.now) {
        pwsp_sim_move_clock(sim, flow->now, PTOWSP_STALL_SLOT, cause);
    }
    return pwsp_flow_check(flow);
}

PWSP_INTERNAL bool pwsp_flow_end(pwsp_flow *flow) {
    if (!pwsp_sim_is_open(flow->sim)) {
        flow->sim->gate_time = flow->now;
    }
    flow->has_ended = true;
    while (flow->in_flight > 0 || flow->pipeline_count > 0) {
        bool has_moved;
        if (!pwsp_flow_step(flow, UINT64_MAX, &has_moved)) {
            return false;
        }
        if (!has_moved) {
            return pwsp_flow_fail_stuck(flow, "all tasks are issued");
        }
    }
    return true;
}
