// Graphs with priorities, or with lanes for each unit.
//
// All ready tasks stand in queues that the lanes share, one for each unit and priority, first in,
// first out, linked through `spare`, under the graph's lock. A lane that has done a task puts what
// became ready into the queues and takes the best task that it may do, all in one hold of the lock,
// some 50 ns. So priorities hold among all ready tasks, whichever lane made them ready, which
// deques of lanes could not give; the price is fit for tasks of microseconds.
//
// A lane takes tasks of its own unit and helps with ranges of them. While no lane of the other unit
// is in the run, it does those as well: lanes come late, or one after another, and nothing may wait
// for them.

#include "graph.h"

#include "../base/atomic.h"

static uint32_t pwsp_graph_class_of(const ptowsp_graph *graph, uint32_t task) {
    return task < graph->class_count ? graph->classes[task] : 0;
}

// Under the lock, or before the run.
static void pwsp_graph_enqueue(ptowsp_graph *graph, uint32_t task) {
    uint32_t c = pwsp_graph_class_of(graph, task);
    graph->spare[task] = PWSP_GRAPH_NONE;
    if (graph->class_head[c] == PWSP_GRAPH_NONE) {
        graph->class_head[c] = task;
    } else {
        graph->spare[graph->class_tail[c]] = task;
    }
    graph->class_tail[c] = task;
}

PWSP_INTERNAL void pwsp_graph_classes_begin(ptowsp_graph *graph) {
    for (uint32_t c = 0; c < PWSP_GRAPH_CLASSES; c++) {
        graph->class_head[c] = PWSP_GRAPH_NONE;
    }
    for (uint32_t i = 0; i < graph->source_count; i++) {
        pwsp_graph_enqueue(graph, graph->sources[i]);
    }
    graph->unit_lane_count[0] = 0;
    graph->unit_lane_count[1] = 0;
}

static uint32_t pwsp_graph_unit_of_lane(const ptowsp_graph *graph, const pwsp_graph_lane *lane) {
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
static uint32_t pwsp_graph_best_class(const ptowsp_graph *graph, uint32_t own_unit) {
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
static void pwsp_graph_enqueue_all(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    pwsp_deque *deque = &lane->deque;
    for (uint32_t count = pwsp_deque_held(deque), i = 0; i < count; i++) {  // the oldest first
        pwsp_graph_enqueue(graph, deque->slots[(deque->split + i) % PWSP_DEQUE_SIZE]);
    }
    pwsp_deque_reset(deque);
}

PWSP_INTERNAL void pwsp_graph_classes_spill(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    pwsp_mutex_lock(&graph->sleepers.mutex);
    pwsp_graph_enqueue_all(graph, lane);
    pwsp_mutex_unlock(&graph->sleepers.mutex);
}

static bool pwsp_graph_has_queued(const ptowsp_graph *graph) {
    for (uint32_t c = 0; c < PWSP_GRAPH_CLASSES; c++) {
        if (graph->class_head[c] != PWSP_GRAPH_NONE) {
            return true;
        }
    }
    return false;
}

// Hands over what became ready and takes the next task; PWSP_GRAPH_NONE if there is none now.
static uint32_t pwsp_graph_exchange(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    pwsp_mutex_lock(&graph->sleepers.mutex);
    pwsp_graph_enqueue_all(graph, lane);
    uint32_t task = PWSP_GRAPH_NONE;
    uint32_t c = pwsp_graph_best_class(graph, pwsp_graph_unit_of_lane(graph, lane));
    if (c != PWSP_GRAPH_NONE) {
        task = graph->class_head[c];
        graph->class_head[c] = graph->spare[task];
    }
    if (pwsp_sleepers_are(&graph->sleepers) && pwsp_graph_has_queued(graph)) {
        pwsp_sleepers_call(&graph->sleepers, true);  // not each of them may do what is there
    }
    pwsp_mutex_unlock(&graph->sleepers.mutex);
    return task;
}

// Waits until there may be something to do. Tasks and sleepers change under the lock only, and who
// opens a range or reports the last task changes it and then looks for sleepers.
static void pwsp_graph_classes_sleep(ptowsp_graph *graph, const pwsp_graph_lane *lane) {
    pwsp_sleepers_begin(&graph->sleepers);
    uint32_t unit = pwsp_graph_unit_of_lane(graph, lane);
    bool has_something = pwsp_graph_best_class(graph, unit) != PWSP_GRAPH_NONE ||
                         pwsp_load_seq_cst(&graph->remaining) == 0 ||
                         pwsp_graph_has_open_range(graph, lane);
    pwsp_sleepers_end(&graph->sleepers, has_something);
}

PWSP_INTERNAL void pwsp_graph_classes_lane(void *arg, uint32_t index) {
    ptowsp_graph *graph = (ptowsp_graph *)arg;
    pwsp_graph_lane *lane = &graph->lanes[index];
    pwsp_fetch_add_seq_cst(&graph->unit_lane_count[pwsp_graph_unit_of_lane(graph, lane)], 1u);
    for (uint32_t round = 0;;) {
        uint32_t task = pwsp_graph_exchange(graph, lane), next = PWSP_GRAPH_NONE;
        if (task != PWSP_GRAPH_NONE) {
            next = pwsp_graph_step(graph, lane, task);
            round = 0;
        } else if (pwsp_graph_help(graph, lane, &next)) {
            round = 0;
        } else {
            pwsp_graph_report(graph, lane);
            if (pwsp_load_acquire(&graph->remaining) == 0) {
                return;
            }
            if (round++ < graph->spin_count / 8) {  // a round takes the lock
                pwsp_pause();
            } else {
                pwsp_graph_classes_sleep(graph, lane);
            }
        }
        if (next != PWSP_GRAPH_NONE) {
            pwsp_graph_push(graph, lane, next);
        }
    }
}
