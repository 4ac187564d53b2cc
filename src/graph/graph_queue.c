// Ready tasks of a graph that are in no lane's deque, and how lanes hear of them.
//
// Without classes these are blocks: a deque that is full spills half of it into a block of `spare`.
// With classes all ready tasks are here, in a queue for each unit and priority, first in, first
// out, linked through `spare`. Both are under the lock of the graph's sleepers.

#include "graph_state.h"

#include "../base/atomic.h"

// -- waking ---------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_graph_wake(ptowsp_graph *graph, bool all) {
    if (pwsp_sleepers_are(&graph->sleepers)) {
        pwsp_mutex_lock(&graph->sleepers.mutex);
        // one might be a lane that is not let in
        pwsp_sleepers_call(&graph->sleepers, all || pwsp_load_seq_cst(&graph->keeper) != 0);
        pwsp_mutex_unlock(&graph->sleepers.mutex);
    }
}

PWSP_INTERNAL void pwsp_graph_report(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    if (lane->done_count > 0) {
        uint64_t done = lane->done_count;
        lane->stats.task_count += done;
        lane->done_count = 0;
        if (pwsp_fetch_sub_seq_cst(&graph->remaining, done) == done) {
            pwsp_graph_wake(graph, true);
        }
    }
}

// -- queues of classes ----------------------------------------------------------------------------

// Under the lock, or before the run.
PWSP_INTERNAL void pwsp_graph_enqueue(ptowsp_graph *graph, uint32_t task) {
    uint32_t c = pwsp_graph_class_of(graph, task);
    graph->spare[task] = PWSP_GRAPH_NONE;
    if (graph->class_head[c] == PWSP_GRAPH_NONE) {
        graph->class_head[c] = task;
    } else {
        graph->spare[graph->class_tail[c]] = task;
    }
    graph->class_tail[c] = task;
}

PWSP_INTERNAL uint32_t pwsp_graph_unit_of_lane(const ptowsp_graph *graph,
                                               const pwsp_graph_lane *lane) {
    return lane->index >= graph->lane_count - graph->cube_lane_count ? PTOWSP_UNIT_CUBE
                                                                     : PTOWSP_UNIT_VECTOR;
}

static bool pwsp_graph_may_take(const ptowsp_graph *graph, uint32_t own_unit, uint32_t unit) {
    return graph->cube_lane_count == 0 || unit == own_unit ||
           pwsp_load_relaxed(&graph->unit_lane_count[unit]) == 0;
}

PWSP_INTERNAL bool pwsp_graph_classes_may_do(const ptowsp_graph *graph, const pwsp_graph_lane *lane,
                                             uint32_t task) {
    return pwsp_graph_may_take(graph, pwsp_graph_unit_of_lane(graph, lane),
                               pwsp_graph_class_of(graph, task) / PWSP_GRAPH_LEVELS);
}

// The class of the best task that a lane of this unit may do, or PWSP_GRAPH_NONE. Under the lock.
PWSP_INTERNAL uint32_t pwsp_graph_best_class(const ptowsp_graph *graph, uint32_t own_unit) {
    for (uint32_t level = PWSP_GRAPH_LEVELS; level-- > 0;) {
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t unit = i ? 1 - own_unit : own_unit, c = unit * PWSP_GRAPH_LEVELS + level;
            if (graph->class_head[c] != PWSP_GRAPH_NONE &&
                pwsp_graph_may_take(graph, own_unit, unit)) {
                return c;
            }
        }
    }
    return PWSP_GRAPH_NONE;
}

// Puts all tasks of the lane's deque into queues. Under the lock.
PWSP_INTERNAL void pwsp_graph_enqueue_all(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    pwsp_deque *deque = &lane->deque;
    for (uint32_t count = pwsp_deque_held(deque), i = 0; i < count; i++) {  // the oldest first
        pwsp_graph_enqueue(graph, deque->slots[(deque->split + i) % PWSP_DEQUE_SIZE]);
    }
    pwsp_deque_reset(deque);
}

static void pwsp_graph_classes_spill(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    pwsp_mutex_lock(&graph->sleepers.mutex);
    pwsp_graph_enqueue_all(graph, lane);
    pwsp_mutex_unlock(&graph->sleepers.mutex);
}

PWSP_INTERNAL bool pwsp_graph_has_queued(const ptowsp_graph *graph) {
    for (uint32_t c = 0; c < PWSP_GRAPH_CLASSES; c++) {
        if (graph->class_head[c] != PWSP_GRAPH_NONE) {
            return true;
        }
    }
    return false;
}

// -- blocks ---------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_graph_spill(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    if (graph->is_classed) {
        pwsp_graph_classes_spill(graph, lane);
        return;
    }
    pwsp_deque *deque = &lane->deque;
    uint32_t held = pwsp_deque_held(deque);
    if (held < PWSP_GRAPH_BLOCK) {
        pwsp_deque_reclaim(deque, PWSP_GRAPH_BLOCK - held);
        if (pwsp_deque_held(deque) < PWSP_GRAPH_BLOCK) {
            bool has_room = pwsp_deque_has_room(deque);  // thieves have taken too much for a block
            PTOWSP_ASSERT(has_room);
            (void)has_room;
            return;
        }
    }
    pwsp_mutex_lock(&graph->sleepers.mutex);
    uint32_t block = graph->block_count;
    for (uint32_t i = 0; i < PWSP_GRAPH_BLOCK; i++) {
        graph->spare[(uint64_t)block * PWSP_GRAPH_BLOCK + i] = pwsp_deque_pop(deque);
    }
    pwsp_store_seq_cst(&graph->block_count, block + 1);
    pwsp_mutex_unlock(&graph->sleepers.mutex);
    if (!lane->is_alone) {
        pwsp_graph_wake(graph, false);
    }
}
