// Tasks that are added while their graph runs.
//
// A task adds parts while its function runs: tasks, and edges among them. They start when the function
// has returned, and the task is over, for the tasks after it, when all that it has added is over. So
// added tasks may add tasks in turn, the whole stays a graph without cycles, and no task that may have
// started already gets another edge:
//
//      a -> b -> c        while b runs, it adds a part, x -> z and y -> z:
//
//      a -> b ( x, y -> z ) -> c
//
// All memory is reserved when the graph is sealed. A part takes its numbers, of tasks and of edges,
// in one step from `grown`. Numbers follow the graph's own tasks, in the order of the calls; tasks
// of a part are numbered consecutively. The order of calls depends on the lanes, so results must
// not depend on these numbers: a task whose added tasks fail fails as the first of them by the
// order of adding, whose numbers rise. So the status of the graph's own tasks, and the error, are
// the same for any number of lanes.
//
// If there is no room for a part, the run ends, as when it is cancelled. This depends on the sum of
// all parts alone, and so not on the order of calls; failing the task that came too late would depend on it.
//
//      lane of the parent                              any lane
//      fills nodes, counts, rows of the part           ends a task of the part
//      pending = number of tasks (1)                   pending - 1 (acquire, release) (3), pairs with (1)
//      gives the tasks to lanes (2)                    0: the parent is over
//
// (1) is published by (2), as every task is. (3) acquires the writes of tasks that have ended
// before.

#include "graph_state.h"

#include "../base/atomic.h"

// -- memory ---------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_graph_reserve_added(ptowsp_graph *graph) {
    uint64_t added = graph->growth.task_max;
    return added == 0 || (PWSP_GRAPH_GROW(graph, joins, graph->task_count + added) &&
                          PWSP_GRAPH_GROW(graph, added, added) &&
                          PWSP_GRAPH_GROW(graph, classes, graph->task_count + added));
}

static void pwsp_graph_clear_join(pwsp_graph_join *join) {
    memset(join, 0, sizeof *join);
    join->fault_index = PWSP_GRAPH_NONE;
    join->first = PWSP_GRAPH_NONE;
    join->last = PWSP_GRAPH_NONE;
    join->failed = PWSP_GRAPH_NONE;
}

PWSP_INTERNAL void pwsp_graph_begin_added(ptowsp_graph *graph) {
    graph->shared.grown = 0;
    graph->growth.unit_lacks = 0;
    graph->growth.has_stray = false;
    if (!graph->arrays.joins) {
        return;
    }
    for (uint64_t i = 0; i < graph->task_count; i++) {
        pwsp_graph_clear_join(&graph->arrays.joins[i]);
    }
    while (graph->class_count < graph->task_count) {
        graph->arrays.classes[graph->class_count++] = 0;
    }
    graph->class_count += graph->growth.task_max;  // of added tasks, until the run ends
}

PWSP_INTERNAL void pwsp_graph_end_added(ptowsp_graph *graph) {
    if (graph->arrays.joins) {
        graph->class_count -= graph->growth.task_max;
    }
}

// -- parts that are refused -----------------------------------------------------------------------

static ptowsp_status pwsp_graph_refuse_part(pwsp_graph_join *join, const char *fault,
                                            uint64_t index, uint64_t value) {
    join->fault = fault;
    join->fault_index = (uint32_t)index;
    join->fault_value = value;
    return PTOWSP_INVALID_PARAMS;
}

static ptowsp_status pwsp_graph_check_added(const ptowsp_graph *graph, pwsp_graph_join *join,
                                            const ptowsp_graph_task_desc *task, uint64_t index) {
    uint64_t value = UINT64_MAX;
    const char *fault = pwsp_graph_task_fault(task, &value);
    if (!fault && (task->range || task->kernel)) {
        fault = task->range ? "is a range" : "is a kernel";
    } else if (!fault && task->priority > 0 && !graph->is_classed) {
        fault = "has a priority, but none of the graph's own tasks has one";
    } else if (!fault && graph->growth.unit_lacks >> (uint32_t)task->unit & 1 && task->fn) {
        fault = "is of a unit of which the device has no core";
        value = (uint32_t)task->unit;
    }
    return fault ? pwsp_graph_refuse_part(join, fault, index, value) : PTOWSP_OK;
}

static ptowsp_status pwsp_graph_check_part(const ptowsp_graph *graph, pwsp_graph_join *join,
                                           const ptowsp_graph_part *part) {
    const char *fault = !part                              ? "part is NULL"
                        : part->task_count && !part->tasks ? "tasks is NULL, with a count"
                        : part->edge_count && !part->edges ? "edges is NULL, with a count"
                                                           : NULL;
    if (fault) {
        return pwsp_graph_refuse_part(join, fault, PWSP_GRAPH_NONE, UINT64_MAX);
    }
    ptowsp_status status = PTOWSP_OK;
    for (uint64_t i = 0; i < part->task_count && status == PTOWSP_OK; i++) {
        status = pwsp_graph_check_added(graph, join, &part->tasks[i], i);
    }
    for (uint64_t i = 0; i < part->edge_count && status == PTOWSP_OK; i++) {
        const uint32_t *edge = part->edges[i];
        if (edge[0] >= edge[1] || edge[1] >= part->task_count) {
            status = pwsp_graph_refuse_part(join, "leads to no later task of its part, but to", i,
                                            edge[1]);
            join->is_edge = true;
        }
    }
    return status;
}

// -- adding ---------------------------------------------------------------------------------------

// The record of a task whose function is running, or NULL.
static pwsp_graph_join *pwsp_graph_running_join(ptowsp_graph *graph, uint64_t task) {
    if (task < graph->task_count + pwsp_graph_added_count(graph) &&
        pwsp_load_acquire(&graph->arrays.joins[task].is_open)) {
        return &graph->arrays.joins[task];
    }
    pwsp_mutex_lock(&graph->engine.sleepers.mutex);
    graph->growth.stray_task =
        graph->growth.has_stray ? pwsp_min_u64(task, graph->growth.stray_task) : task;
    graph->growth.has_stray = true;
    pwsp_mutex_unlock(&graph->engine.sleepers.mutex);
    return NULL;
}

// Takes numbers for a part: of its first task, counted among the added ones, and edge.
static bool pwsp_graph_take_numbers(ptowsp_graph *graph, const ptowsp_graph_part *part,
                                    uint32_t *out_task, uint32_t *out_edge) {
    uint64_t grown = pwsp_load_relaxed(&graph->shared.grown), wanted;
    do {
        uint64_t tasks = grown >> 32, edges = grown & UINT32_MAX;
        if (part->task_count > graph->growth.task_max - tasks ||
            part->edge_count > graph->growth.edge_max - edges) {
            return false;
        }
        *out_task = (uint32_t)tasks;
        *out_edge = (uint32_t)edges;
        wanted = (tasks + part->task_count) << 32 | (edges + part->edge_count);
    } while (!pwsp_cas_relaxed(&graph->shared.grown, &grown, wanted));
    return true;
}

// The rows of a part's edges, as pwsp_seal_rows.
static void pwsp_graph_fill_rows(ptowsp_graph *graph, const ptowsp_graph_part *part,
                                 uint32_t number, uint32_t edge) {
    pwsp_graph_added *added = &graph->arrays.added[number];
    uint32_t first = (uint32_t)graph->task_count + number;
    uint32_t end = (uint32_t)graph->edge_count + edge;
    for (uint64_t i = 0; i < part->edge_count; i++) {
        added[part->edges[i][0]].begin++;
        graph->arrays.counts[first + part->edges[i][1]].fan_in++;
    }
    for (uint64_t i = 0; i < part->task_count; i++) {
        end += added[i].begin;
        added[i].begin = end;
        added[i].end = end;
        graph->arrays.counts[first + i].pending = graph->arrays.counts[first + i].fan_in;
    }
    for (uint64_t i = part->edge_count; i-- > 0;) {
        graph->arrays.targets[--added[part->edges[i][0]].begin] = first + part->edges[i][1];
    }
}

static void pwsp_graph_fill_part(ptowsp_graph *graph, uint32_t parent,
                                 const ptowsp_graph_part *part, uint32_t number, uint32_t edge) {
    for (uint64_t i = 0; i < part->task_count; i++) {
        const ptowsp_graph_task_desc *desc = &part->tasks[i];
        pwsp_graph_added *added = &graph->arrays.added[number + i];
        uint64_t task = graph->task_count + number + i;
        memset(added, 0, sizeof *added);
        added->name = desc->name;
        added->parent = parent;
        added->part_count = (uint32_t)part->task_count;
        added->next = PWSP_GRAPH_NONE;
        graph->arrays.nodes[task].fn = desc->fn ? desc->fn : pwsp_graph_do_nothing;
        graph->arrays.nodes[task].user = desc->user;
        graph->arrays.counts[task].fan_in = 0;
        graph->arrays.kinds[task] = PWSP_GRAPH_DONE;
        graph->arrays.outcomes[task] = PWSP_GRAPH_NONE;
        graph->arrays.classes[task] =
            (uint8_t)((uint32_t)desc->unit * PWSP_GRAPH_LEVELS + desc->priority);
        pwsp_graph_clear_join(&graph->arrays.joins[task]);
        ptowsp_span *span = pwsp_graph_span(graph, task);
        if (span) {
            memset(span, 0, sizeof *span);
            span->kind = (uint32_t)desc->unit;
        }
    }
    pwsp_graph_fill_rows(graph, part, number, edge);
}

static ptowsp_status pwsp_graph_refuse_more(ptowsp_graph *graph) {
    pwsp_fetch_or_seq_cst(&graph->halt.word, PWSP_HALT_CANCELLED | PWSP_GRAPH_IS_FULL);
    return PTOWSP_LIMIT_EXCEEDED;
}

ptowsp_status ptowsp_graph_add(ptowsp_graph *graph, uint64_t task, const ptowsp_graph_part *part,
                               uint64_t *out_first) {
    uint32_t number, edge;
    PTOWSP_ASSERT(graph);
    if (out_first) {
        *out_first = PTOWSP_NO_INDEX;
    }
    if (!pwsp_load_seq_cst(&graph->is_running)) {
        return pwsp_fail(graph->context, PTOWSP_INVALID_PARAMS, task,
                         "graph: tasks are added to a graph that is not running");
    }
    if (!graph->arrays.joins) {
        bool is_empty = part && part->task_count == 0 && part->edge_count == 0;
        return is_empty ? PTOWSP_OK : pwsp_graph_refuse_more(graph);
    }
    pwsp_graph_join *join = pwsp_graph_running_join(graph, task);
    if (!join || join->fault) {
        return PTOWSP_INVALID_PARAMS;
    }
    ptowsp_status status = pwsp_graph_check_part(graph, join, part);
    if (status != PTOWSP_OK || part->task_count == 0) {
        return status;
    }
    if (!pwsp_graph_take_numbers(graph, part, &number, &edge)) {
        return pwsp_graph_refuse_more(graph);
    }
    pwsp_graph_fill_part(graph, (uint32_t)task, part, number, edge);
    uint32_t first = (uint32_t)graph->task_count + number;
    if (join->last == PWSP_GRAPH_NONE) {
        join->first = first;
    } else {
        graph->arrays.added[join->last - graph->task_count].next = first;
    }
    join->last = first;
    join->count += (uint32_t)part->task_count;
    if (out_first) {
        *out_first = first;
    }
    return PTOWSP_OK;
}

// -- a task that adds some ------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_graph_open(ptowsp_graph *graph, uint32_t task) {
    pwsp_store_release(&graph->arrays.joins[task].is_open, 1u);
}

PWSP_INTERNAL uint32_t pwsp_graph_next_source(const ptowsp_graph *graph, uint32_t *part,
                                              uint32_t at) {
    at = at == PWSP_GRAPH_NONE ? *part : at + 1;
    while (*part != PWSP_GRAPH_NONE) {
        const pwsp_graph_added *added = &graph->arrays.added[*part - graph->task_count];
        for (; at < *part + added->part_count; at++) {
            if (graph->arrays.counts[at].fan_in == 0) {
                return at;
            }
        }
        *part = added->next;
        at = *part;
    }
    return PWSP_GRAPH_NONE;
}

// Tasks added by a failed task are skipped, like its successors.
static void pwsp_graph_drop(ptowsp_graph *graph, pwsp_graph_tally *tally, uint32_t task) {
    const pwsp_graph_join *join = &graph->arrays.joins[task];
    for (uint32_t part = join->first; part != PWSP_GRAPH_NONE;) {
        const pwsp_graph_added *added = &graph->arrays.added[part - graph->task_count];
        for (uint32_t i = 0; i < added->part_count; i++) {
            graph->arrays.kinds[part + i] = PWSP_GRAPH_SKIPPED;
            graph->arrays.outcomes[part + i] = task;
        }
        part = added->next;
    }
    tally->skipped_count += join->count;
}

PWSP_INTERNAL uint32_t pwsp_graph_close(ptowsp_graph *graph, pwsp_graph_tally *tally, uint32_t task,
                                        ptowsp_status *status, uint64_t *out_dropped) {
    pwsp_graph_join *join = &graph->arrays.joins[task];
    pwsp_store_release(&join->is_open, 0u);
    *out_dropped = 0;
    *status = join->fault && *status >= 0 ? PTOWSP_INVALID_PARAMS : *status;
    if (join->count == 0) {
        return PWSP_GRAPH_NONE;
    }
    pwsp_fetch_add_seq_cst(&graph->shared.remaining, (uint64_t)join->count);
    if (*status < 0) {
        pwsp_graph_drop(graph, tally, task);
        *out_dropped = join->count;
        return PWSP_GRAPH_NONE;
    }
    pwsp_store_relaxed(&join->pending, join->count);  // (1)
    return join->first;
}

PWSP_INTERNAL bool pwsp_graph_leave(ptowsp_graph *graph, uint32_t *task, ptowsp_status *status,
                                    bool *is_skipped) {
    uint32_t child = *task, parent = graph->arrays.added[child - graph->task_count].parent;
    pwsp_graph_join *join = &graph->arrays.joins[parent];
    if (*is_skipped) {
        if (pwsp_load_relaxed(&graph->arrays.outcomes[child]) == PWSP_GRAPH_NONE) {
            pwsp_store_relaxed(&join->is_cut, 1u);
        }
    } else if (*status < 0) {
        uint32_t known = pwsp_load_relaxed(&join->failed);
        while (child < known && !pwsp_cas_relaxed(&join->failed, &known, child)) {
        }
    }
    if (pwsp_fetch_sub_acq_rel(&join->pending, 1u) != 1) {  // (3)
        return false;
    }
    uint32_t failed = pwsp_load_relaxed(&join->failed);
    bool has_failed = failed != PWSP_GRAPH_NONE;
    *task = parent;
    *status = has_failed
                  ? (ptowsp_status)(int32_t)pwsp_load_relaxed(&graph->arrays.outcomes[failed])
                  : PTOWSP_OK;
    *is_skipped = !has_failed && pwsp_load_relaxed(&join->is_cut);
    return true;
}
