// Graphs with priorities, or with lanes for each unit.
//
// All ready tasks stand in queues that the lanes share, one for each unit and priority. A queue is
// first in, first out, linked through `spare`, under the graph's lock. A lane that has finished a
// task queues the tasks that became ready and takes the best task it may do, in one hold of the
// lock of some 50 ns. So priorities hold among all ready tasks, whichever lane made them ready;
// deques of lanes could not guarantee that. The cost suits tasks of microseconds.
//
// A lane takes tasks of its own unit and helps with their ranges. While no lane of the other unit
// is in the run, it runs that unit's tasks as well: lanes come late, or one after another, and no
// task may wait for them.

#include "graph_state.h"

#include "../base/atomic.h"

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

// Queues the tasks that became ready and takes the next one; PWSP_GRAPH_NONE if there is none now.
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
        pwsp_sleepers_call(&graph->sleepers, true);  // not every lane may do these tasks
    }
    pwsp_mutex_unlock(&graph->sleepers.mutex);
    return task;
}

// Waits until there may be work. Tasks and sleepers change only under the lock. A lane that opens a
// range or reports the last task makes that change first and then looks for sleepers.
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
