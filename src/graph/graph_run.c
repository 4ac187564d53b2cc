// A run of a graph, on lanes or on a device: its setup and its report.

#include "graph_state.h"

#include "../base/atomic.h"
#include "../base/text.h"

#include <inttypes.h>

// -- spans ----------------------------------------------------------------------------------------

static uint64_t pwsp_graph_span_count(const ptowsp_graph *graph) {
    return pwsp_min_u64(graph->record.capacity, graph->task_count + graph->growth.task_max);
}

static void pwsp_graph_begin_spans(ptowsp_graph *graph) {
    if (!graph->record.spans) {
        return;
    }
    for (uint64_t i = 0; i < pwsp_graph_span_count(graph); i++) {
        memset(&graph->record.spans[i], 0, sizeof graph->record.spans[i]);
        if (i < graph->task_count) {
            graph->record.spans[i].kind = (uint32_t)pwsp_graph_unit_of(graph, (uint32_t)i);
        }
    }
    pwsp_wall_read(&graph->record.wall, 0);
}

// Ticks become the clock's time.
static void pwsp_graph_end_spans(ptowsp_graph *graph) {
    if (!graph->record.spans) {
        return;
    }
    pwsp_wall_read(&graph->record.wall, 1);
    for (uint64_t i = 0; i < pwsp_graph_span_count(graph); i++) {
        ptowsp_span *span = &graph->record.spans[i];
        if (span->end) {
            span->begin =
                graph->record.wall.ns[0] + pwsp_wall_since(&graph->record.wall, span->begin);
            span->end = graph->record.wall.ns[0] + pwsp_wall_since(&graph->record.wall, span->end);
        }
    }
}

// -- runs -----------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_graph_begin_run(ptowsp_graph *graph) {
    pwsp_halt_begin(&graph->halt, graph->time_limit_ns);
    pwsp_fetch_or_seq_cst(&graph->halt.word, (graph->record.spans ? PWSP_GRAPH_IS_CLOCKED : 0u) |
                                                 (graph->arrays.joins ? PWSP_GRAPH_MAY_GROW : 0u) |
                                                 (graph->is_classed ? PWSP_GRAPH_IS_RANKED : 0u));
    pwsp_graph_begin_added(graph);
    pwsp_graph_begin_spans(graph);
    pwsp_store_seq_cst(&graph->is_running, 1u);
    graph->last.run_number++;
    graph->last.ran_count = graph->task_count;
    memset(&graph->last.tally, 0, sizeof graph->last.tally);
    graph->last.tally.first_failed = PWSP_GRAPH_NONE;
    graph->core_count = 0;
    graph->shared.remaining = graph->task_count;
    // Resets kinds and outcomes for a run.
    if (graph->task_count > 0 &&
        (graph->last.is_marked || graph->last.marked_count < graph->task_count)) {
        memset(graph->arrays.kinds, 0, (size_t)graph->task_count);
        memset(graph->arrays.outcomes, 0xff,
               (size_t)graph->task_count * sizeof *graph->arrays.outcomes);
        graph->last.marked_count = graph->task_count;
    }
}

// A run that did not end by itself.
static ptowsp_status pwsp_graph_fail_cut(ptowsp_graph *graph, uint32_t flags) {
    if (flags & PWSP_GRAPH_IS_FULL) {
        return pwsp_fail(graph->context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "graph: its tasks add more than added_task_max, %" PRIu64
                         ", tasks or added_edge_max, %" PRIu64 ", edges",
                         graph->growth.task_max, graph->growth.edge_max);
    }
    bool is_late = (flags & PWSP_HALT_TIMED_OUT) != 0;
    return pwsp_fail(graph->context, is_late ? PTOWSP_TIMED_OUT : PTOWSP_CANCELLED, PTOWSP_NO_INDEX,
                     "graph: %s; %" PRIu64 " of %" PRIu64 " tasks done",
                     is_late ? "its time limit is over" : "cancelled", graph->last.done_count,
                     graph->last.ran_count + pwsp_graph_added_count(graph));
}

// Why the lowest failed task has failed: by itself, by a wrong addition, or by a task that it has
// added.
static ptowsp_status pwsp_graph_fail_task(ptowsp_graph *graph, uint32_t task) {
    char why[160];
    ptowsp_output_buffer buffer = {why, sizeof why, 0};
    ptowsp_output text = ptowsp_output_to_buffer(&buffer);
    ptowsp_status status = (ptowsp_status)(int32_t)graph->arrays.outcomes[task];
    const char *name = pwsp_graph_name(graph, task), *inner = NULL;
    uint32_t culprit = task;
    while (graph->arrays.joins && graph->arrays.joins[culprit].failed != PWSP_GRAPH_NONE) {
        culprit = graph->arrays.joins[culprit].failed;
        inner = pwsp_graph_name(graph, culprit);
    }
    const pwsp_graph_join *join = graph->arrays.joins ? &graph->arrays.joins[culprit] : NULL;
    if (!join || !join->fault) {
        pwsp_text_format(text, "%s", ptowsp_status_name(status));
    } else if (join->fault_index == PWSP_GRAPH_NONE) {
        pwsp_text_format(text, "it adds tasks, but %s", join->fault);
    } else {
        pwsp_text_format(text, "%s %u that it adds %s", join->is_edge ? "edge" : "task",
                         (unsigned)join->fault_index, join->fault);
        if (join->fault_value != UINT64_MAX) {
            pwsp_text_format(text, ": %" PRIu64, join->fault_value);
        }
    }
    return pwsp_fail(graph->context, status, task, "graph: task %u%s%s%s failed%s%s%s%s: %s",
                     (unsigned)task, name ? " '" : "", name ? name : "", name ? "'" : "",
                     culprit != task ? " in an added task" : "", inner ? " '" : "",
                     inner ? inner : "", inner ? "'" : "", why);
}

PWSP_INTERNAL ptowsp_status pwsp_graph_end_run(ptowsp_graph *graph, bool is_whole) {
    ptowsp_context *context = graph->context;
    pwsp_store_seq_cst(&graph->is_running, 0u);
    pwsp_graph_end_spans(graph);
    pwsp_graph_end_added(graph);
    uint64_t bad_count = graph->last.tally.failed_count + graph->last.tally.skipped_count;
    graph->last.is_marked = bad_count > 0;
    graph->last.done_count = graph->last.ran_count + pwsp_graph_added_count(graph) - bad_count;
    if (!is_whole) {
        return pwsp_fail(context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                         "threads: run_lanes did not call each of its %u lanes once",
                         (unsigned)graph->lane_count);
    }
    if (pwsp_halt_status(&graph->halt) != PTOWSP_OK) {
        return pwsp_graph_fail_cut(graph, pwsp_load_relaxed(&graph->halt.word));
    }
    if (graph->growth.has_stray) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, graph->growth.stray_task,
                         "graph: tasks were added to task %" PRIu64
                         ", whose function was not running",
                         graph->growth.stray_task);
    }
    return graph->last.tally.first_failed == PWSP_GRAPH_NONE
               ? PTOWSP_OK
               : pwsp_graph_fail_task(graph, graph->last.tally.first_failed);
}
