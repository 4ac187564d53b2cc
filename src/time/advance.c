// One step of event-driven time: idle lanes take ready tasks, then time moves to the next event, and
// what ends at that time is done. See events.c.

#include "nodes.h"

#include <inttypes.h>

static uint64_t pwsp_events_first_key(const pwsp_events *events, const pwsp_events_queue *queue) {
    return pwsp_events_entry_key(pwsp_events_queue_first(events, queue));
}

static uint32_t pwsp_events_first_bit(uint64_t word) {
    return (uint32_t)__builtin_ctzll(word);
}

static void pwsp_events_set_busy(pwsp_events *events, uint32_t lane) {
    events->idle[lane / 64] &= ~(UINT64_C(1) << lane % 64);
    events->able[lane / 64] &= ~(UINT64_C(1) << lane % 64);
}

// A lane's task has ended: the lane is idle, unless a block task has taken it meanwhile.
PWSP_FORCE_INLINE void pwsp_events_set_idle(pwsp_events *events, uint32_t lane, bool is_plain) {
    uint64_t bit = UINT64_C(1) << lane % 64;
    if (!is_plain && events->sim->lanes[lane].free > events->now) {
        return;
    }
    events->idle[lane / 64] |= bit;
    if (!events->is_shared && events->queues[lane].count) {
        events->able[lane / 64] |= bit;
    }
}

// Completes the record of a task that starts, before its lanes are occupied.
static void pwsp_events_record(pwsp_events *events, uint32_t id, ptowsp_unit unit, uint32_t lane,
                               uint64_t start) {
    pwsp_sim *sim = events->sim;
    const pwsp_events_node *node = &events->nodes[id];
    const pwsp_lane *last = pwsp_sim_last_lane(sim, unit, lane);
    ptowsp_task_record *record = sim->recorder.at(sim->recorder.user, node->index);
    pwsp_token ready = {node->time, pwsp_events_cause(events, id)};
    uint64_t clock_cause = record->cause;  // the cause of the clock, noted at issue
    ptowsp_stall clock_stall = record->stall;
    uint64_t turn = pwsp_events_turn(events, id);
    record->ready = node->time;
    record->start = start;
    record->end = start + node->cycles;
    record->lane = lane;
    record->stall = pwsp_sim_cause(sim, &ready, last, turn, start, &record->cause);
    if (start > 0 && start == turn && node->time != start && last->free != start) {
        record->stall = clock_stall;
        record->cause = clock_cause;
    }
    sim->recorder.done(sim->recorder.user, node->index, pwsp_sim_idle(sim, unit, lane, start));
}

// Finds the cycles of the best task of the links' queue. False with an error, or if it is held: it
// then stays in its queue, and nothing has changed.
static bool pwsp_events_meet(pwsp_events *events, const pwsp_events_queue *queue) {
    pwsp_events_node *node = &events->nodes[pwsp_events_queue_first(events, queue)->node];
    return pwsp_sim_meet(events->sim, node->index, events->now, &node->cycles);
}

// Runs the best task of a queue on a lane, from now on. A block task takes its vector lanes now, and
// starts when both are free, which is known. False with an error, or if it is held.
PWSP_FORCE_INLINE bool pwsp_events_run(pwsp_events *events, uint32_t lane, pwsp_events_queue *queue,
                                       bool is_plain) {
    pwsp_sim *sim = events->sim;
    const bool is_link = !is_plain && sim->timed->has_link && lane + 1 == sim->timed->lane_count;
    if (PWSP_UNLIKELY(is_link) && sim->meeting.find_cycles && !pwsp_events_meet(events, queue)) {
        return false;
    }
    uint32_t id = pwsp_events_queue_pop(events, queue).node;
    pwsp_events_note_change(events, (uint32_t)(queue - events->queues));
    pwsp_events_node *node = &events->nodes[id];
    bool is_block = !is_plain && node->kind == PWSP_EVENTS_BLOCK_TASK;
    ptowsp_unit unit = is_block ? PTOWSP_UNIT_MIX : PTOWSP_UNIT_VECTOR;
    uint64_t start = events->now;
    if (is_block) {
        start = pwsp_max_u64(start, pwsp_sim_last_lane(sim, unit, lane)->free);
    }
    uint64_t end = start + node->cycles;
    if (end > PTOWSP_CYCLES_MAX) {
        return pwsp_sim_fail(sim, PTOWSP_LIMIT_EXCEEDED, node->index,
                             "run: task %" PRIu64 " ends after 2^63 - 1 cycles", node->index);
    }
    uint64_t known = pwsp_max_u64(node->clock, node->time);
    uint64_t due = is_plain ? known : pwsp_max_u64(pwsp_events_turn(events, id), known);
    uint64_t able = is_plain ? known : pwsp_max_u64(due, sim->gate_time);
    ptowsp_run_stats *stats = &sim->stats;
    stats->stall_cycles[PTOWSP_STALL_DEPENDENCY] += known - node->clock;
    stats->stall_cycles[PTOWSP_STALL_TIMING] += due - known;
    stats->stall_cycles[PTOWSP_STALL_START] += able - due;
    stats->stall_cycles[PTOWSP_STALL_LANE] += start - able;
    stats->makespan_cycles = pwsp_max_u64(stats->makespan_cycles, end);
    if (!is_plain && sim->has_records) {
        pwsp_events_record(events, id, unit, lane, start);
    }
    PTOWSP_ASSERT((is_block || node->kind == PWSP_EVENTS_TASK) && !node->pending && !node->is_done);
    const uint32_t pool = is_plain ? 0 : pwsp_sim_pool_of(sim, lane);
    PTOWSP_ASSERT(events->ready_count[pool] > 0);
    pwsp_sim_start(sim, unit, lane, node->index, node->cycles, start);
    events->ready_count[pool]--;
    pwsp_events_set_busy(events, lane);
    if (is_block) {
        pwsp_events_set_busy(events, pwsp_sim_block(sim, lane));
        pwsp_events_set_busy(events, pwsp_sim_block(sim, lane) + 1);
    }
    pwsp_earliest_set(&events->running, lane, end);
    events->tasks[lane] = id;
    return true;
}

// Idle lanes take the best task of their own queue, by index. False with an error.
static bool pwsp_events_take_own(pwsp_events *events) {
    uint32_t words = (events->sim->timed->lane_count + 63) / 64;
    for (uint32_t i = 0; i < words; i++) {
        while (events->able[i]) {
            uint32_t lane = i * 64 + pwsp_events_first_bit(events->able[i]);
            if (!pwsp_events_run(events, lane, &events->queues[lane], false)) {
                return false;
            }
        }
    }
    return true;
}

// The lane of a pool from which an idle one steals: that with the oldest ready task.
static uint32_t pwsp_events_victim(pwsp_events *events, uint32_t pool) {
    const pwsp_pool_lanes *pools = events->sim->pools;
    while (events->stale_count > 0) {
        uint32_t lane = events->stale[--events->stale_count];
        uint32_t its_pool = pwsp_sim_pool_of(events->sim, lane);
        pwsp_events_queue *queue = &events->queues[lane];
        uint64_t index = PWSP_EARLIEST_NONE;
        if (queue->count) {
            index = events->nodes[pwsp_events_queue_first(events, queue)->node].index;
        }
        queue->is_stale = false;
        pwsp_earliest_set(&events->oldest[its_pool], lane - pools[its_pool].first, index);
    }
    return pools[pool].first + pwsp_earliest_lane(&events->oldest[pool]);
}

PWSP_FORCE_INLINE bool pwsp_events_are_ready(const pwsp_events *events, bool is_plain) {
    const uint32_t pool_count = is_plain ? 1 : events->sim->timed->pool_count;
    bool are_ready = false;
    for (uint32_t i = 0; i < pool_count; i++) {
        are_ready = are_ready || events->ready_count[i];
    }
    return are_ready;
}

// Idle lanes take tasks of their pool's queue, or steal from other lanes, by index.
PWSP_FORCE_INLINE bool pwsp_events_take_others(pwsp_events *events, bool is_plain) {
    uint32_t words = (events->sim->timed->lane_count + 63) / 64;
    for (uint32_t i = 0; i < words && pwsp_events_are_ready(events, is_plain); i++) {
        for (uint64_t left = events->idle[i]; left; left &= left - 1) {
            uint32_t lane = i * 64 + pwsp_events_first_bit(left);
            uint32_t pool = is_plain ? 0 : pwsp_sim_pool_of(events->sim, lane);
            if (events->ready_count[pool] == 0) {
                continue;
            }
            pwsp_events_queue *queue =
                &events->queues[is_plain || events->is_shared ? pool
                                                              : pwsp_events_victim(events, pool)];
            PTOWSP_ASSERT(queue->count > 0);
            if (!pwsp_events_run(events, lane, queue, is_plain)) {
                return false;
            }
        }
    }
    return true;
}

PWSP_FORCE_INLINE bool pwsp_events_take(pwsp_events *events, bool is_plain) {
    if (is_plain) {
        return pwsp_events_take_others(events, true);
    }
    if (!pwsp_events_is_open(events)) {
        return true;
    }
    if (!events->is_shared && !pwsp_events_take_own(events)) {
        return false;
    }
    bool steals = events->is_shared || events->sim->schedule->ready == PTOWSP_READY_WORK_STEALING;
    return !steals || pwsp_events_take_others(events, false);
}

// Completes nodes that end now, and readies tasks whose turn has come.
PWSP_FORCE_INLINE void pwsp_events_complete(pwsp_events *events, bool is_plain) {
    while (pwsp_earliest_time(&events->running) == events->now) {
        const uint32_t lane = pwsp_earliest_lane(&events->running), id = events->tasks[lane];
        pwsp_earliest_set(&events->running, lane, PWSP_EARLIEST_NONE);
        pwsp_events_node *node = &events->nodes[id];
        node->time = events->now;
        pwsp_events_set_cause(events, id, node->index);
        events->last_ended = node->index;
        PTOWSP_ASSERT(events->in_flight > 0 && !node->is_done);
        events->in_flight--;
        if (!is_plain && events->sim->rings.is_used) {
            pwsp_rings_end(&events->sim->rings, node->index, events->now);
            pwsp_rings_retire(&events->sim->rings, events->now);
        }
        pwsp_events_set_idle(events, lane, is_plain);
        if (!is_plain && node->kind == PWSP_EVENTS_BLOCK_TASK) {
            pwsp_events_set_idle(events, pwsp_sim_block(events->sim, lane), false);
            pwsp_events_set_idle(events, pwsp_sim_block(events->sim, lane) + 1, false);
        }
        pwsp_events_done(events, id);
    }
    while (events->ends->count && pwsp_events_first_key(events, events->ends) <= events->now) {
        uint32_t id = pwsp_events_queue_pop(events, events->ends).node;
        uint64_t at = events->nodes[id].cycles;
        events->nodes[id].time = events->now;
        pwsp_events_set_cause(events, id, events->pipelines[at].end_task);
        events->pipelines[at].next_free = events->free_pipeline;
        events->free_pipeline = (uint32_t)at + 1;
        PTOWSP_ASSERT(events->pipeline_count > 0 && events->nodes[id].kind == PWSP_EVENTS_PIPELINE);
        events->pipeline_count--;
        pwsp_events_done(events, id);
    }
    while (events->turns->count && pwsp_events_first_key(events, events->turns) <= events->now) {
        pwsp_events_make_ready(events, pwsp_events_queue_pop(events, events->turns).node);
    }
}

PWSP_FORCE_INLINE bool pwsp_events_step_as(pwsp_events *events, uint64_t until, bool *out_moved,
                                           bool is_plain) {
    if (!pwsp_events_take(events, is_plain)) {
        return false;
    }
    uint64_t next = pwsp_min_u64(pwsp_earliest_time(&events->running), until);
    if (events->turns->count) {
        next = pwsp_min_u64(next, pwsp_events_first_key(events, events->turns));
    }
    if (events->ends->count) {
        next = pwsp_min_u64(next, pwsp_events_first_key(events, events->ends));
    }
    *out_moved = next != UINT64_MAX;
    if (*out_moved) {
        PTOWSP_ASSERT(next >= events->now);  // time does not go back
        events->now = next;
        pwsp_events_complete(events, is_plain);
    }
    return pwsp_events_check(events);
}

PWSP_INTERNAL bool pwsp_events_step(pwsp_events *events, uint64_t until, bool *out_moved) {
    return events->is_plain ? pwsp_events_step_as(events, until, out_moved, true)
                            : pwsp_events_step_as(events, until, out_moved, false);
}
