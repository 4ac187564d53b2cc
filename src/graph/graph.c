// Builds graphs, and reads their results after a run.
//
// Adding a task or an edge appends to arrays; nothing is looked up. All other work waits until the
// graph is sealed. Arrays double without being cleared, so large ones grow by moving pages.

#include "graph_state.h"

#include "../base/atomic.h"
#include "../data/names.h"

#include <inttypes.h>

// -- errors ---------------------------------------------------------------------------------------

// Keeps the first building error; its text is in the context.
static ptowsp_status pwsp_graph_keep_error(ptowsp_graph *graph, ptowsp_status status) {
    graph->status = status;
    return status;
}

static ptowsp_status pwsp_graph_no_memory(ptowsp_graph *graph, const char *what) {
    return pwsp_graph_keep_error(
        graph, PWSP_NO_MEMORY(graph->context, "graph: no memory for another %s", what));
}

// -- building -------------------------------------------------------------------------------------

ptowsp_status ptowsp_graph_create(ptowsp_context *context, const ptowsp_graph_desc *desc,
                                  ptowsp_graph **out_graph) {
    PTOWSP_ASSERT(context);
    if (!out_graph) {
        return PWSP_REFUSE(context, "graph: out_graph is NULL");
    }
    *out_graph = NULL;
    if (desc && pwsp_max_u64(desc->added_task_max, desc->added_edge_max) >= PWSP_GRAPH_NONE) {
        bool is_tasks = desc->added_task_max >= PWSP_GRAPH_NONE;
        return pwsp_fail(context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "graph: %s, %" PRIu64 ", is above %u",
                         is_tasks ? "added_task_max" : "added_edge_max",
                         is_tasks ? desc->added_task_max : desc->added_edge_max,
                         (unsigned)(PWSP_GRAPH_NONE - 1));
    }
    uint32_t lane_count = pwsp_pool_lane_count(context->pool);
    ptowsp_graph *graph = (ptowsp_graph *)pwsp_memory_alloc(&context->memory, sizeof(ptowsp_graph));
    if (!graph) {
        return PWSP_NO_MEMORY(context, "graph: no memory");
    }
    graph->context = context;
    pwsp_context_own(context);
    graph->memory = context->memory;
    graph->lane_count = lane_count;
    graph->cube_lane_count = desc ? desc->cube_lane_count : 0;
    if (graph->cube_lane_count >= lane_count) {
        graph->cube_lane_count = lane_count - 1;
    }
    graph->growth.task_max = desc ? desc->added_task_max : 0;
    graph->growth.edge_max = desc ? desc->added_edge_max : 0;
    pwsp_arena_init(&graph->arena, &graph->memory);
    pwsp_engine_init(&graph->engine, &graph->memory);
    graph->engine.spin_count = pwsp_pool_spin_count(context->pool, lane_count);
    if (!PWSP_GRAPH_GROW(graph, stats, lane_count) ||
        !pwsp_engine_reserve(&graph->engine, lane_count, sizeof(pwsp_graph_lane))) {
        ptowsp_graph_destroy(graph);
        return PWSP_NO_MEMORY(context, "graph: no memory");
    }
    ptowsp_graph_clear(graph);
    *out_graph = graph;
    return PTOWSP_OK;
}

void ptowsp_graph_destroy(ptowsp_graph *graph) {
    if (!graph) {
        return;
    }
    const bool is_lost = pwsp_start_is_lost(graph->start);
    if (is_lost) {
        pwsp_context_leave(graph->context);
    } else if (pwsp_start_is_pending(graph->start)) {
        ptowsp_graph_cancel(graph);
        ptowsp_graph_wait(graph);
    }
    pwsp_start_destroy(graph->start);
    PTOWSP_ASSERT(is_lost || !pwsp_load_relaxed(&graph->is_running));
#define PWSP_GRAPH_FREE(with, type, name)                                                          \
    PWSP_FREE(&graph->memory, graph->arrays.name, graph->capacities.name);
    PWSP_GRAPH_ARRAYS(PWSP_GRAPH_FREE, )
#undef PWSP_GRAPH_FREE
    pwsp_arena_free(&graph->arena);
    pwsp_memory memory = graph->memory;
    pwsp_context_disown(graph->context);
    pwsp_engine_free(&graph->engine);
    pwsp_memory_free(&memory, graph, sizeof(ptowsp_graph));
}

void ptowsp_graph_clear(ptowsp_graph *graph) {
    PTOWSP_ASSERT(graph);
    if (pwsp_load_relaxed(&graph->is_running)) {
        return;
    }
    graph->status = PTOWSP_OK;
    graph->is_sealed = false;
    graph->is_ordered = true;
    graph->is_sorted = true;
    graph->is_classed = graph->cube_lane_count > 0;
    graph->task_count = 0;
    graph->ready_count = 0;
    graph->edge_count = 0;
    graph->last_after = 0;
    graph->range_count = 0;
    graph->name_count = 0;
    graph->class_count = 0;
    graph->last.ran_count = 0;
    graph->shared.grown = 0;
    graph->last.done_count = 0;
    memset(&graph->last.tally, 0, sizeof graph->last.tally);
    graph->core_count = 0;
    memset(graph->arrays.stats, 0, graph->lane_count * sizeof(ptowsp_graph_lane_stats));
    pwsp_arena_reset(&graph->arena);
}

PWSP_INTERNAL const char *pwsp_graph_task_fault(const ptowsp_graph_task_desc *task,
                                                uint64_t *out_value) {
    *out_value = UINT64_MAX;
    if (task->fn && task->range) {
        return "has both fn and range";
    }
    if (task->kernel && (task->fn || task->range)) {
        return "has a kernel and fn or range";
    }
    if (!task->range && (task->item_count || task->grain)) {
        return task->item_count ? "has items but no range" : "has a grain but no range";
    }
    if (task->name && !pwsp_name_is_valid(task->name)) {
        return "has a bad name";
    }
    if (task->priority > PTOWSP_GRAPH_PRIORITY_MAX) {
        *out_value = task->priority;
        return "has a priority above PTOWSP_GRAPH_PRIORITY_MAX, 3";
    }
    if ((uint32_t)task->unit >= PTOWSP_UNIT_COUNT) {
        *out_value = (uint32_t)task->unit;
        return "has an unknown unit";
    }
    return task->kernel ? pwsp_graph_check_kernel(task->kernel, out_value) : NULL;
}

static ptowsp_status pwsp_graph_check_task(ptowsp_graph *graph,
                                           const ptowsp_graph_task_desc *task) {
    uint64_t value;
    if (!task) {
        return pwsp_fail(graph->context, PTOWSP_INVALID_PARAMS, graph->task_count,
                         "graph: task %" PRIu64 ": desc is NULL", graph->task_count);
    }
    const char *wrong = pwsp_graph_task_fault(task, &value);
    if (wrong && value != UINT64_MAX) {
        return pwsp_fail(graph->context, PTOWSP_INVALID_PARAMS, graph->task_count,
                         "graph: task %" PRIu64 " %s: %" PRIu64, graph->task_count, wrong, value);
    }
    if (wrong) {
        return pwsp_fail(graph->context, PTOWSP_INVALID_PARAMS, graph->task_count,
                         "graph: task %" PRIu64 " %s", graph->task_count, wrong);
    }
    if (graph->task_count == PWSP_GRAPH_NONE) {
        return pwsp_fail(graph->context, PTOWSP_LIMIT_EXCEEDED, graph->task_count,
                         "graph: more than %u tasks", (unsigned)PWSP_GRAPH_NONE);
    }
    return PTOWSP_OK;
}

// Appends the name of a task; earlier tasks may have none.
static bool pwsp_graph_add_name(ptowsp_graph *graph, const char *text) {
    if (!PWSP_GRAPH_GROW(graph, names, graph->task_count + 1)) {
        return false;
    }
    const char *copy = pwsp_arena_copy(&graph->arena, text);
    if (!copy) {
        return false;
    }
    while (graph->name_count < graph->task_count) {
        graph->arrays.names[graph->name_count++] = NULL;
    }
    graph->arrays.names[graph->name_count++] = copy;
    return true;
}

static bool pwsp_graph_add_class(ptowsp_graph *graph, const ptowsp_graph_task_desc *task) {
    uint32_t index = (uint32_t)task->unit * PWSP_GRAPH_LEVELS + task->priority;
    if (!PWSP_GRAPH_GROW(graph, classes, graph->task_count + 1)) {
        return false;
    }
    while (graph->class_count < graph->task_count) {
        graph->arrays.classes[graph->class_count++] = 0;
    }
    graph->arrays.classes[graph->class_count++] = (uint8_t)index;
    graph->is_classed = graph->is_classed || task->priority > 0;
    return true;
}

static bool pwsp_graph_add_range(ptowsp_graph *graph, const ptowsp_graph_task_desc *task) {
    if (!PWSP_GRAPH_GROW(graph, ranges, graph->range_count + 1)) {
        return false;
    }
    pwsp_graph_range *range = &graph->arrays.ranges[graph->range_count++];
    memset(range, 0, sizeof *range);
    range->fn = task->range;
    range->user = task->user;
    range->item_count = task->item_count;
    range->grain = task->grain;
    range->task = (uint32_t)graph->task_count;
    return true;
}

// Properties that few tasks have. Nothing may be half done when memory is out: data that was added
// for a task whose making failed is overwritten by the next one, because counts decide.
static bool pwsp_graph_add_extras(ptowsp_graph *graph, const ptowsp_graph_task_desc *task) {
    return (!task->name || pwsp_graph_add_name(graph, task->name)) &&
           ((task->priority == 0 && task->unit == PTOWSP_UNIT_VECTOR) ||
            pwsp_graph_add_class(graph, task)) &&
           (!task->range || pwsp_graph_add_range(graph, task));
}

ptowsp_status ptowsp_graph_task_make(ptowsp_graph *graph, const ptowsp_graph_task_desc *task,
                                     uint64_t *out_task) {
    PTOWSP_ASSERT(graph);
    if (out_task) {
        *out_task = PTOWSP_NO_INDEX;
    }
    if (PWSP_UNLIKELY(pwsp_load_relaxed(&graph->is_running))) {
        return pwsp_fail_busy(graph->context);
    }
    if (PWSP_UNLIKELY(graph->status != PTOWSP_OK)) {
        return graph->status;
    }
    ptowsp_status status = pwsp_graph_check_task(graph, task);
    if (status != PTOWSP_OK) {
        return pwsp_graph_keep_error(graph, status);
    }
    uint64_t index = graph->task_count;
    pwsp_graph_kernel *kernel = NULL;
    if (!PWSP_GRAPH_GROW(graph, nodes, index + 1) || !PWSP_GRAPH_GROW(graph, counts, index + 1) ||
        !pwsp_graph_add_extras(graph, task) ||
        (task->kernel && !(kernel = pwsp_graph_add_kernel(graph, task)))) {
        return pwsp_graph_no_memory(graph, "task");
    }
    pwsp_graph_node *node = &graph->arrays.nodes[index];
    node->fn = task->fn ? task->fn : pwsp_graph_do_nothing;
    node->user = task->user;
    if (task->range) {
        node->fn = NULL;
        node->user = (void *)(uintptr_t)(graph->range_count - 1);
    } else if (kernel) {
        node->fn = pwsp_graph_run_kernel;
        node->user = kernel;
    }
    graph->arrays.counts[index].pending = 0;
    graph->arrays.counts[index].fan_in = 0;
    graph->task_count = index + 1;
    graph->ready_count++;
    graph->is_sealed = false;
    if (out_task) {
        *out_task = index;
    }
    return PTOWSP_OK;
}

// Reports the fault of an edge.
static ptowsp_status pwsp_graph_refuse_edge(ptowsp_graph *graph, uint64_t before, uint64_t after) {
    uint64_t index = graph->edge_count;
    ptowsp_status status;
    if (before >= graph->task_count || after >= graph->task_count) {
        status = pwsp_fail(graph->context, PTOWSP_INVALID_PARAMS, index,
                           "graph: edge %" PRIu64 " from task %" PRIu64 " to %" PRIu64
                           ", of %" PRIu64 " tasks",
                           index, before, after, graph->task_count);
    } else if (before == after) {
        status = pwsp_fail(graph->context, PTOWSP_INVALID_PARAMS, index,
                           "graph: edge %" PRIu64 " leads from task %" PRIu64 " to itself", index,
                           before);
    } else {
        status = pwsp_fail(graph->context, PTOWSP_LIMIT_EXCEEDED, index,
                           "graph: more than %u edges", (unsigned)PWSP_GRAPH_NONE);
    }
    return pwsp_graph_keep_error(graph, status);
}

// Makes room for an edge to task `after`. When one is out of order, from then on these are kept.
static bool pwsp_graph_reserve_edge(ptowsp_graph *graph, uint64_t after) {
    uint64_t needed = graph->edge_count + 1, edge = 0;
    bool is_sorted = graph->is_sorted && after >= graph->last_after;
    if (!PWSP_GRAPH_GROW(graph, befores, needed) ||
        (!is_sorted && !PWSP_GRAPH_GROW(graph, afters, needed))) {
        return false;
    }
    for (uint32_t task = 0; !is_sorted && graph->is_sorted && edge < graph->edge_count; task++) {
        for (uint32_t k = 0; k < graph->arrays.counts[task].fan_in; k++) {
            graph->arrays.afters[edge++] = task;
        }
    }
    graph->is_sorted = is_sorted;
    return true;
}

ptowsp_status ptowsp_graph_edge_make(ptowsp_graph *graph, uint64_t before, uint64_t after) {
    PTOWSP_ASSERT(graph);
    if (PWSP_UNLIKELY(pwsp_load_relaxed(&graph->is_running))) {
        return pwsp_fail_busy(graph->context);
    }
    if (PWSP_UNLIKELY(graph->status != PTOWSP_OK)) {
        return graph->status;
    }
    uint64_t index = graph->edge_count;
    if (PWSP_UNLIKELY(before >= graph->task_count || after >= graph->task_count ||
                      before == after || index == PWSP_GRAPH_NONE)) {
        return pwsp_graph_refuse_edge(graph, before, after);
    }
    if (PWSP_UNLIKELY(index == graph->capacities.befores || !graph->is_sorted ||
                      after < graph->last_after)) {
        if (!pwsp_graph_reserve_edge(graph, after)) {
            return pwsp_graph_no_memory(graph, "edge");
        }
        if (!graph->is_sorted) {
            graph->arrays.afters[index] = (uint32_t)after;
        }
    }
    graph->arrays.befores[index] = (uint32_t)before;
    graph->last_after = (uint32_t)after;
    graph->edge_count = index + 1;
    graph->ready_count -= graph->arrays.counts[after].fan_in++ == 0;
    graph->is_ordered = graph->is_ordered && before < after;
    graph->is_sealed = false;
    return PTOWSP_OK;
}

// -- running --------------------------------------------------------------------------------------

ptowsp_status ptowsp_graph_seal(ptowsp_graph *graph) {
    PTOWSP_ASSERT(graph);
    if (pwsp_load_relaxed(&graph->is_running)) {
        return pwsp_fail_busy(graph->context);
    }
    if (graph->status != PTOWSP_OK) {
        return graph->status;
    }
    return graph->is_sealed ? PTOWSP_OK : pwsp_graph_seal(graph);
}

ptowsp_status ptowsp_graph_run(ptowsp_graph *graph) {
    PTOWSP_ASSERT(graph);
    if (!pwsp_context_enter(graph->context)) {
        return pwsp_fail_busy(graph->context);
    }
    ptowsp_status status = ptowsp_graph_seal(graph);
    if (status == PTOWSP_OK) {
        pwsp_graph_begin_run(graph);
        bool is_whole = pwsp_graph_run_lanes(graph);
        status = pwsp_graph_end_run(graph, is_whole);
    }
    pwsp_context_leave(graph->context);
    return status;
}

static ptowsp_status pwsp_graph_lead(void *user) {
    return ptowsp_graph_run((ptowsp_graph *)user);
}

ptowsp_status ptowsp_graph_run_worker(ptowsp_graph *graph, uint32_t worker, uint32_t worker_count) {
    PTOWSP_ASSERT(graph);
    return ptowsp_context_run_worker(graph->context, worker, worker_count, pwsp_graph_lead, graph);
}

ptowsp_status ptowsp_graph_record(ptowsp_graph *graph, ptowsp_span *spans, uint64_t capacity) {
    PTOWSP_ASSERT(graph);
    if (pwsp_load_relaxed(&graph->is_running)) {
        return pwsp_fail_busy(graph->context);
    }
    if (!spans && capacity) {
        return PWSP_REFUSE(graph->context, "graph: spans is NULL, with a capacity");
    }
    graph->record.spans = spans;
    graph->record.capacity = capacity;
    return PTOWSP_OK;
}

void ptowsp_graph_cancel(ptowsp_graph *graph) {
    PTOWSP_ASSERT(graph);
    if (pwsp_load_seq_cst(&graph->is_running)) {
        pwsp_halt_cancel(&graph->halt);
    }
}

ptowsp_status ptowsp_graph_limit(ptowsp_graph *graph, uint64_t time_limit_ns) {
    PTOWSP_ASSERT(graph);
    if (pwsp_load_relaxed(&graph->is_running)) {
        return pwsp_fail_busy(graph->context);
    }
    graph->time_limit_ns = time_limit_ns;
    return PTOWSP_OK;
}

// -- started runs ---------------------------------------------------------------------------------

static ptowsp_status pwsp_graph_started(void *user) {
    ptowsp_graph *graph = (ptowsp_graph *)user;
    graph->is_whole = pwsp_graph_run_lanes(graph);
    return PTOWSP_OK;
}

ptowsp_status ptowsp_graph_start(ptowsp_graph *graph) {
    PTOWSP_ASSERT(graph);
    if (!pwsp_context_enter(graph->context)) {
        return pwsp_fail_busy(graph->context);
    }
    ptowsp_status status = ptowsp_graph_seal(graph);
    if (status == PTOWSP_OK) {
        status = pwsp_start_reserve(&graph->start, graph->context, "graph");
    }
    if (status != PTOWSP_OK) {
        pwsp_context_leave(graph->context);
        return status;
    }
    pwsp_graph_begin_run(graph);
    pwsp_start_go(graph->start, true, pwsp_graph_started, graph);
    return PTOWSP_OK;
}

ptowsp_status ptowsp_graph_wait(ptowsp_graph *graph) {
    PTOWSP_ASSERT(graph);
    if (!pwsp_start_is_pending(graph->start)) {
        return pwsp_start_refuse(graph->context, pwsp_load_relaxed(&graph->is_running), "graph");
    }
    ptowsp_status status = pwsp_start_wait(graph->start, "graph");
    if (pwsp_start_is_pending(graph->start)) {
        return status;
    }
    status = pwsp_graph_end_run(graph, graph->is_whole);
    pwsp_context_leave(graph->context);
    return status;
}

ptowsp_status ptowsp_graph_poll(ptowsp_graph *graph) {
    PTOWSP_ASSERT(graph);
    return pwsp_start_is_busy(graph->start) ? pwsp_fail_busy(graph->context)
                                            : ptowsp_graph_wait(graph);
}

// -- results --------------------------------------------------------------------------------------

ptowsp_status ptowsp_graph_task_status(const ptowsp_graph *graph, uint64_t task,
                                       uint64_t *out_cause) {
    PTOWSP_ASSERT(graph);
    uint64_t added_count =
        graph->last.ran_count == graph->task_count ? pwsp_graph_added_count(graph) : 0;
    PTOWSP_ASSERT(task < graph->task_count + added_count && !pwsp_load_relaxed(&graph->is_running));
    ptowsp_status status = PTOWSP_OK;
    uint64_t cause = PTOWSP_NO_INDEX;
    if (task >= graph->last.ran_count + added_count) {
        status = PTOWSP_SKIPPED;
    } else if (graph->arrays.kinds[task] == PWSP_GRAPH_FAILED) {
        status = (ptowsp_status)(int32_t)graph->arrays.outcomes[task];
        cause = task;
    } else if (graph->arrays.kinds[task] == PWSP_GRAPH_SKIPPED) {
        status = PTOWSP_SKIPPED;
        cause =
            graph->arrays.outcomes[task] == PWSP_GRAPH_NONE ? cause : graph->arrays.outcomes[task];
    }
    if (out_cause) {
        *out_cause = cause;
    }
    return status;
}

ptowsp_cycles ptowsp_graph_task_cycles(const ptowsp_graph *graph, uint64_t task) {
    PTOWSP_ASSERT(graph);
    PTOWSP_ASSERT(task < graph->task_count && !pwsp_load_relaxed(&graph->is_running));
    const pwsp_graph_node *node = &graph->arrays.nodes[task];
    if (node->fn != pwsp_graph_run_kernel) {
        return 0;
    }
    const pwsp_graph_kernel *kernel = (const pwsp_graph_kernel *)node->user;
    bool has_failed =
        task < graph->last.ran_count && graph->arrays.kinds[task] == PWSP_GRAPH_FAILED;
    return kernel->run_number == graph->last.run_number && !has_failed ? kernel->cycles : 0;
}

ptowsp_graph_stats ptowsp_graph_result(const ptowsp_graph *graph) {
    PTOWSP_ASSERT(graph);
    PWSP_ZERO(ptowsp_graph_stats, stats);
    stats.task_count = graph->task_count;
    stats.edge_count = graph->edge_count;
    stats.added_count = pwsp_graph_added_count(graph);
    stats.done_count = graph->last.done_count;
    stats.failed_count = graph->last.tally.failed_count;
    stats.skipped_count = graph->last.tally.skipped_count;
    stats.lane_count = graph->core_count ? graph->core_count : graph->lane_count;
    uint64_t bytes = sizeof *graph + pwsp_engine_bytes(&graph->engine) + graph->arena.allocated;
#define PWSP_GRAPH_BYTES(with, type, name) bytes += graph->capacities.name * sizeof(type);
    PWSP_GRAPH_ARRAYS(PWSP_GRAPH_BYTES, )
#undef PWSP_GRAPH_BYTES
    stats.memory_bytes = (size_t)bytes + pwsp_start_bytes(graph->start);
    return stats;
}

const ptowsp_graph_lane_stats *ptowsp_graph_lanes(const ptowsp_graph *graph) {
    PTOWSP_ASSERT(graph);
    return graph->arrays.stats;
}
