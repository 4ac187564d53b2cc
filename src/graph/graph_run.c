// Running a graph: the setup before lanes begin, and the decision whether to call the other lanes.
//
// Waking threads and waiting for them takes tens of microseconds. The graph remembers the duration
// of a run on all lanes, and whether it ended with one lane alone. If other lanes would not help by
// these numbers, the calling lane begins alone.

#include "graph_state.h"

#include "../base/atomic.h"
#include "../base/text.h"

#include <inttypes.h>

#define PWSP_GRAPH_WAKE_TICKS (30 * PWSP_TICKS_US)  // runs during which others may stay asleep

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

// Why the lowest failed task has failed: by itself, by what it asked for, or by one that it has added.
static ptowsp_status pwsp_graph_fail_task(ptowsp_graph *graph, uint32_t task) {
    char why[160];
    ptowsp_text_buffer buffer = {why, sizeof why, 0};
    ptowsp_text text = ptowsp_text_to_buffer(&buffer);
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

static void pwsp_graph_lane_reset(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    lane->is_alone = graph->lane_count == 1;
    lane->source = 0;
    lane->source_end = 0;
    lane->done_count = 0;
    memset(&lane->tally, 0, sizeof lane->tally);
    lane->tally.first_failed = PWSP_GRAPH_NONE;
    memset(&lane->stats, 0, sizeof lane->stats);
    lane->open_range = 0;
    // Tasks count as long until their duration is known.
    pwsp_graph_set_pace(graph, lane, lane->is_alone ? 1 : PWSP_GRAPH_LONG_TICKS);
}

static uint32_t pwsp_graph_list_of(void *graph, uint32_t task) {
    return pwsp_graph_class_of((const ptowsp_graph *)graph, task);
}

static void pwsp_graph_begin_lanes(ptowsp_graph *graph) {
    const pwsp_engine_job job = {
        graph,
        pwsp_graph_find,
        pwsp_graph_run_from,
        pwsp_graph_is_over,
        pwsp_graph_more,
        pwsp_graph_list_of,
        (char *)graph->arrays.links,
        sizeof *graph->arrays.links,
    };
    pwsp_engine *engine = &graph->engine;
    engine->job = job;
    pwsp_engine_begin(engine, graph->is_classed ? PWSP_ENGINE_RANKED : PWSP_ENGINE_NEWEST,
                      graph->lane_count, graph->cube_lane_count);
    for (uint32_t i = 0; i < graph->lane_count; i++) {
        pwsp_graph_lane_reset(graph, pwsp_graph_lane_at(graph, i));
    }
    for (uint32_t i = 0; graph->is_classed && i < graph->source_count; i++) {
        pwsp_engine_push(engine, pwsp_engine_at(engine, 0), graph->arrays.sources[i]);
    }
    graph->shared.source_next = graph->is_classed ? graph->source_count : 0;
    pwsp_engine_offer(engine, pwsp_engine_at(engine, 0), 0);
}

static void pwsp_graph_lane_main(void *arg, uint32_t index) {
    pwsp_engine *engine = &((ptowsp_graph *)arg)->engine;
    pwsp_engine_work(engine, pwsp_engine_at(engine, index));
}

// Runs the lanes of the context. If waking them seems to cost more than it brings, runs the calling
// lane first. That lane returns when all is done, or when it has let the others in because tasks
// have become long, have failed, or are ranges. All lanes then go on with the rest, in any order of
// arrival. The calling lane must not be the keeper by then: it may come last or, left out, never.
// Now and then all lanes are called regardless.
static bool pwsp_graph_call_lanes(ptowsp_graph *graph, bool was_alone) {
    uint64_t start = pwsp_ticks();
    bool is_good = true;
    bool is_direct = !graph->is_classed && graph->direct.hold == 0 && !graph->arrays.joins &&
                     !graph->record.spans && graph->time_limit_ns == 0 &&
                     (graph->direct.pool_ticks < PWSP_GRAPH_WAKE_TICKS ||
                      (was_alone && pwsp_graph_is_short(graph))) &&
                     graph->direct.pool_ticks > 0 && ++graph->direct.count % 64 != 0;
    if (is_direct) {
        graph->direct.is_on = true;
        graph->shared.starts_alone = 1;
        pwsp_graph_lane_main(graph, 0);
        graph->direct.is_on = false;
        if (pwsp_load_acquire(&graph->shared.remaining) == 0) {
            uint64_t ticks = pwsp_ticks() - start;
            graph->direct.hold =
                ticks > graph->direct.pool_ticks + graph->direct.pool_ticks / 4 ? 64 : 0;
            return true;
        }
    }
    is_good = pwsp_pool_run(graph->context->pool, pwsp_graph_lane_main, graph);
    graph->direct.pool_ticks = pwsp_ticks() - start;
    graph->direct.hold -= graph->direct.hold > 0;
    return is_good;
}

PWSP_INTERNAL bool pwsp_graph_run_lanes(ptowsp_graph *graph) {
    bool was_alone = graph->engine.keeper != 0;  // when the last run ended
    graph->shared.busy_count = 0;
    graph->shared.starts_alone = was_alone;
    graph->shared.share_ticks = pwsp_max_u64(graph->shared.share_ticks, PWSP_GRAPH_SHARE_MIN);
    if (graph->task_count == 0) {
        graph->engine.keeper = 0;
        memset(graph->lane_stats, 0, graph->lane_count * sizeof(ptowsp_graph_lane_stats));
        return true;
    }
    pwsp_graph_begin_lanes(graph);
    bool is_whole = pwsp_graph_call_lanes(graph, was_alone);
    for (uint32_t i = 0; i < graph->lane_count; i++) {
        const pwsp_graph_lane *lane = pwsp_graph_lane_at(graph, i);
        graph->lane_stats[i] = lane->stats;
        graph->lane_stats[i].steal_count = lane->base.steal_count;
        pwsp_graph_add_tally(graph, &lane->tally);
    }
    return is_whole;
}
