// Graphs on a device: entries are tasks; parts belong to a range task, one for each core of its
// unit.
//
// The sealed form of the graph is used as lanes use it: the AICPU thread that has the result of a
// task counts down its edges. Tasks that need no core are done by that thread at once: empty tasks,
// ranges without items, and skipped tasks. They form a list through `links`.

#include "device.h"

// The device's run belongs to this graph.
static ptowsp_graph *pwsp_graph_on(void *device) {
    return ((ptowsp_device *)device)->graph.graph;
}

static pwsp_graph_range *pwsp_graph_range_of(const ptowsp_graph *graph, uint32_t task) {
    const pwsp_graph_node *node = &graph->arrays.nodes[task];
    return node->fn ? NULL : &graph->arrays.ranges[(uintptr_t)node->user];
}

// Parts of a range: one for each core of its unit, without empty parts.
static uint32_t pwsp_device_part_count(const ptowsp_device *device, const pwsp_graph_range *range) {
    uint32_t unit = (uint32_t)pwsp_graph_unit_of(device->graph.graph, range->task);
    return (uint32_t)pwsp_min_u64(range->item_count, pwsp_device_unit_count(device, unit));
}

static uint64_t pwsp_device_part_begin(const pwsp_graph_range *range, uint32_t count,
                                       uint32_t part) {
    return range->item_count / count * part + range->item_count % count * part / count;
}

// Does the task have a function to call?
static bool pwsp_graph_has_call(const ptowsp_graph *graph, uint32_t task) {
    const pwsp_graph_range *range = pwsp_graph_range_of(graph, task);
    return range ? range->item_count > 0 : graph->arrays.nodes[task].fn != pwsp_graph_do_nothing;
}

// Puts a task that has become ready into the device's queues or onto *list.
static void pwsp_device_sort_ready(ptowsp_device *device, uint32_t by, uint32_t task,
                                   uint32_t *list) {
    ptowsp_graph *graph = device->graph.graph;
    if (pwsp_graph_is_unwanted(graph, task) || !pwsp_graph_has_call(graph, task)) {
        graph->arrays.links[task] = *list;
        *list = task;
        return;
    }
    pwsp_graph_range *range = pwsp_graph_range_of(graph, task);
    if (range) {
        pwsp_graph_range_begin(range);
    }
    pwsp_cores_ready(&device->cores, by, task);
}

// A task is done: releases its successors, and handles all those that need no core.
static void pwsp_device_task_over(ptowsp_device *device, uint32_t by, uint32_t task,
                                  ptowsp_status status, bool is_skipped) {
    ptowsp_graph *graph = device->graph.graph;
    pwsp_graph_tally *tally =
        by == PWSP_CORES_NONE ? &device->graph.tally : &device->aicpus[by].tally;
    uint32_t list = PWSP_GRAPH_NONE;
    uint64_t over_count = 0;
    for (;;) {
        if (is_skipped || status < 0) {
            pwsp_graph_mark(graph, tally, task, status, is_skipped);
        }
        over_count++;
        uint32_t i, end = pwsp_graph_row(graph, task, &i);
        for (; i < end; i++) {
            uint32_t target = graph->arrays.targets[i];
            if (pwsp_graph_release(&graph->arrays.counts[target], false)) {
                pwsp_device_sort_ready(device, by, target, &list);
            }
        }
        if (task >= graph->task_count && pwsp_graph_leave(graph, &task, &status, &is_skipped)) {
            continue;  // the task that has added it is over, too
        }
        if (list == PWSP_GRAPH_NONE) {
            break;
        }
        task = list;
        list = graph->arrays.links[task];
        status = PTOWSP_OK;
        is_skipped = pwsp_graph_is_unwanted(graph, task);
    }
    if (pwsp_fetch_sub_acq_rel(&graph->shared.remaining, over_count) == over_count) {
        pwsp_cores_finish(&device->cores);
    }
}

// Ends a list of ready tasks that need no core.
static void pwsp_device_end_idle(ptowsp_device *device, uint32_t by, uint32_t list) {
    ptowsp_graph *graph = device->graph.graph;
    while (list != PWSP_GRAPH_NONE) {
        const uint32_t task = list;
        list = graph->arrays.links[task];
        pwsp_device_task_over(device, by, task, PTOWSP_OK, pwsp_graph_is_unwanted(graph, task));
    }
}

// The function of a task has returned. Its added tasks go to the queues; without any, the task is
// over.
static void pwsp_device_task_returned(ptowsp_device *device, uint32_t by, uint32_t task,
                                      ptowsp_status status) {
    ptowsp_graph *graph = device->graph.graph;
    uint64_t dropped = 0;
    uint32_t part = graph->arrays.joins ? pwsp_graph_close(graph, &device->aicpus[by].tally, task,
                                                           &status, &dropped)
                                        : PWSP_GRAPH_NONE;
    if (dropped > 0) {  // the task itself remains
        pwsp_fetch_sub_acq_rel(&graph->shared.remaining, dropped);
    }
    if (part == PWSP_GRAPH_NONE) {
        pwsp_device_task_over(device, by, task, status, false);
        return;
    }
    uint32_t list = PWSP_GRAPH_NONE, source = PWSP_GRAPH_NONE;
    while ((source = pwsp_graph_next_source(graph, &part, source)) != PWSP_GRAPH_NONE) {
        pwsp_device_sort_ready(device, by, source, &list);
    }
    pwsp_device_end_idle(device, by, list);
}

// A part of a range is done; counting the last part ends the task.
static void pwsp_device_part_over(ptowsp_device *device, uint32_t by, pwsp_graph_range *range) {
    uint32_t count = pwsp_device_part_count(device, range);
    if (pwsp_fetch_add_seq_cst(&range->done, UINT64_C(1)) + 1 == count) {
        bool is_cut;
        const ptowsp_status status = pwsp_graph_range_end(range, &is_cut);
        pwsp_device_task_over(device, by, range->task, status, is_cut);
    }
}

// -- the job --------------------------------------------------------------------------------------

static pwsp_need pwsp_device_graph_need(void *user, uint32_t task) {
    const ptowsp_graph *graph = pwsp_graph_on(user);
    const pwsp_need need = {pwsp_graph_unit_of(graph, task), PWSP_CORES_NONE,
                            pwsp_graph_priority_of(graph, task), task};
    return need;
}

static bool pwsp_device_graph_take(void *user, uint32_t task, uint32_t *out_part) {
    pwsp_graph_range *range = pwsp_graph_range_of(pwsp_graph_on(user), task);
    if (!range) {
        return false;
    }
    *out_part = (uint32_t)range->queue.cursor++;
    return range->queue.cursor < pwsp_device_part_count((ptowsp_device *)user, range);
}

static bool pwsp_device_graph_is_wanted(void *user, uint32_t task) {
    return !pwsp_graph_is_unwanted(pwsp_graph_on(user), task);
}

static void pwsp_device_graph_pass(void *user, const pwsp_turn *turn, uint32_t by, bool is_lost) {
    ptowsp_device *device = (ptowsp_device *)user;
    pwsp_graph_range *range = pwsp_graph_range_of(device->graph.graph, turn->entry);
    (void)is_lost;
    if (range) {
        pwsp_store_relaxed(&range->is_cut, 1u);
        pwsp_device_part_over(device, by, range);
    } else {
        pwsp_device_task_over(device, by, turn->entry, PTOWSP_OK, true);
    }
}

// On a core. After the task's own function has returned, only the result is touched: if the core
// was stuck, the run ended long ago.
static void pwsp_device_graph_run(void *user, pwsp_core_result *result) {
    ptowsp_graph *graph = pwsp_graph_on(user);
    const pwsp_graph_node *node = &graph->arrays.nodes[result->entry];
    const pwsp_graph_range *range = pwsp_graph_range_of(graph, result->entry);
    if (!range && graph->arrays.joins) {
        pwsp_graph_open(graph, result->entry);
    }
    if (range) {
        uint32_t count = pwsp_device_part_count((ptowsp_device *)user, range);
        uint64_t begin = pwsp_device_part_begin(range, count, result->part);
        uint64_t end = pwsp_device_part_begin(range, count, result->part + 1);
        result->status = range->fn(range->user, begin, end, result->core);
    } else if (node->fn == pwsp_graph_run_kernel) {
        const pwsp_graph_kernel *kernel = (const pwsp_graph_kernel *)node->user;
        result->status =
            pwsp_graph_call_kernel(kernel, result->entry, result->core, &result->cycles);
    } else {
        result->status = node->fn(node->user, result->entry, result->core);
    }
}

static void pwsp_device_graph_done(void *user, const pwsp_core_result *result, uint32_t by) {
    ptowsp_device *device = (ptowsp_device *)user;
    ptowsp_graph *graph = device->graph.graph;
    ptowsp_graph_lane_stats *stats = &graph->arrays.stats[result->core];
    const pwsp_graph_node *node = &graph->arrays.nodes[result->entry];
    pwsp_graph_range *range = pwsp_graph_range_of(graph, result->entry);
    ptowsp_span *span = result->end ? pwsp_graph_span(graph, result->entry) : NULL;
    if (range) {
        uint64_t begin =
            pwsp_device_part_begin(range, pwsp_device_part_count(device, range), result->part);
        stats->range_count++;
        stats->task_count += result->part == 0;
        if (span) {  // from the first part to the last
            pwsp_mutex_lock(&graph->engine.sleepers.mutex);
            span->begin = span->end ? pwsp_min_u64(span->begin, result->start) : result->start;
            span->end = pwsp_max_u64(span->end, result->end);
            span->lane = result->core;
            pwsp_mutex_unlock(&graph->engine.sleepers.mutex);
        }
        if (result->status < 0) {
            pwsp_graph_range_failed(graph, range, begin, result->status);
        }
        pwsp_device_part_over(device, by, range);
        return;
    }
    if (node->fn == pwsp_graph_run_kernel) {
        pwsp_graph_kernel *kernel = (pwsp_graph_kernel *)node->user;
        kernel->cycles = result->cycles;
        kernel->run_number = graph->last.run_number;
    }
    if (span) {
        span->begin = result->start;
        span->end = result->end;
        span->lane = result->core;
    }
    stats->task_count++;
    pwsp_device_task_returned(device, by, result->entry, result->status);
}

static void pwsp_device_graph_stop(void *user) {
    pwsp_halt_cancel(&pwsp_graph_on(user)->halt);
}

static uint64_t pwsp_device_graph_describe(void *user, uint32_t task, uint32_t part,
                                           ptowsp_output text) {
    const char *name = pwsp_graph_name(pwsp_graph_on(user), task);
    (void)part;
    pwsp_text_format(text, "task %u%s%s%s", (unsigned)task, name ? " '" : "", name ? name : "",
                     name ? "'" : "");
    return task;
}

// -- running --------------------------------------------------------------------------------------

// Does every task have a core? The error names the first task without one.
static ptowsp_status pwsp_device_check_units(ptowsp_device *device, const ptowsp_graph *graph) {
    if (device->cores.desc.vector_count > 0 &&
        (device->cores.block_count > 0 || graph->class_count == 0)) {
        return PTOWSP_OK;
    }
    for (uint32_t task = 0; task < graph->task_count; task++) {
        ptowsp_unit unit = pwsp_graph_unit_of(graph, task);
        if (pwsp_device_unit_count(device, (uint32_t)unit) == 0 &&
            pwsp_graph_has_call(graph, task)) {
            const char *name = pwsp_graph_name(graph, task);
            return pwsp_fail(device->context, PTOWSP_INVALID_PARAMS, task,
                             "device: task %u%s%s%s needs %s", (unsigned)task, name ? " '" : "",
                             name ? name : "", name ? "'" : "", pwsp_device_lack(unit));
        }
    }
    return PTOWSP_OK;
}

// Runs a sealed graph that has tasks.
static bool pwsp_device_run_tasks(ptowsp_device *device, ptowsp_graph *graph) {
    PWSP_ZERO(pwsp_device_job, job);
    job.cores.need_of = pwsp_device_graph_need;
    job.cores.take = graph->range_count > 0 ? pwsp_device_graph_take : NULL;
    job.cores.is_wanted = pwsp_device_graph_is_wanted;
    job.cores.pass = pwsp_device_graph_pass;
    job.run = pwsp_device_graph_run;
    job.done = pwsp_device_graph_done;
    job.stop = pwsp_device_graph_stop;
    job.describe = pwsp_device_graph_describe;
    job.is_clocked = graph->record.spans != NULL;
    pwsp_device_prepare(device, &job);
    // Sources that need no core end after all the others are queued, because they may release more.
    uint32_t list = PWSP_GRAPH_NONE;
    for (uint32_t i = 0; i < graph->source_count; i++) {
        pwsp_device_sort_ready(device, PWSP_CORES_NONE, graph->arrays.sources[i], &list);
    }
    pwsp_device_end_idle(device, PWSP_CORES_NONE, list);
    pwsp_device_begin(device);
    bool is_whole = pwsp_device_end(device);
    for (uint32_t i = 0; i < device->cores.desc.aicpu_count; i++) {
        pwsp_graph_add_tally(graph, &device->aicpus[i].tally);
    }
    pwsp_graph_add_tally(graph, &device->graph.tally);
    return is_whole;
}

// The context must have been entered.
static ptowsp_status pwsp_device_run_graph(ptowsp_device *device, ptowsp_graph *graph) {
    if (!graph || graph->context != device->context) {
        return PWSP_REFUSE(device->context, "device: %s",
                           graph ? "the graph is of another context" : "graph is NULL");
    }
    ptowsp_status status = ptowsp_graph_seal(graph);
    if (status == PTOWSP_OK) {
        status = pwsp_device_check_units(device, graph);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    const uint32_t core_count = device->cores.core_count;
    if (!PWSP_GRAPH_GROW(graph, stats, core_count) ||
        !pwsp_device_reserve(device, graph->task_count + graph->growth.task_max)) {
        return PWSP_NO_MEMORY(device->context, "device: no memory for running the graph");
    }
    device->graph.graph = graph;
    memset(&device->graph.tally, 0, sizeof device->graph.tally);
    device->graph.tally.first_failed = PWSP_GRAPH_NONE;
    pwsp_graph_begin_run(graph);
    for (uint32_t unit = 0; unit < PTOWSP_UNIT_COUNT; unit++) {
        graph->growth.unit_lacks |= (uint32_t)(pwsp_device_unit_count(device, unit) == 0) << unit;
    }
    memset(graph->arrays.stats, 0, core_count * sizeof *graph->arrays.stats);
    graph->core_count = core_count;
    bool is_whole = graph->task_count == 0 || pwsp_device_run_tasks(device, graph);
    status = pwsp_graph_end_run(graph, true);
    return is_whole ? status : pwsp_device_fail_stuck(device);
}

ptowsp_status ptowsp_device_run_graph(ptowsp_device *device, ptowsp_graph *graph) {
    PTOWSP_ASSERT(device);
    ptowsp_status status = pwsp_device_enter(device);
    if (status == PTOWSP_OK) {
        status = pwsp_device_run_graph(device, graph);
        pwsp_context_leave(device->context);
    }
    return status;
}
