// The records of a run, for callers.

#include "result.h"

uint64_t ptowsp_run_trace_count(const ptowsp_run *run) {
    return pwsp_result_count(pwsp_run_result(run));
}

PWSP_INTERNAL ptowsp_task_trace pwsp_result_trace_at(const pwsp_result *result, uint64_t i) {
    const pwsp_recorder *recorder = &result->recorder;
    PTOWSP_ASSERT(i < pwsp_result_count(result));
    const ptowsp_task_record *record = &recorder->records[i];
    const pwsp_record_more *more = &recorder->more[i];
    const pwsp_kernel_info *kernel = &result->program->kernels.items[record->kernel];
    ptowsp_task_trace task;
    task.index = more->index;
    task.record = record;
    task.args = recorder->words ? recorder->words + more->first_word : NULL;
    task.axis_count = kernel->axis_count;
    task.scalar_count = kernel->scalar_count;
    task.bytes_read = more->bytes_read;
    task.bytes_written = more->bytes_written;
    return task;
}

ptowsp_task_trace ptowsp_run_trace_at(const ptowsp_run *run, uint64_t i) {
    return pwsp_result_trace_at(pwsp_run_result(run), i);
}

const ptowsp_task_record *ptowsp_run_clock_at(const ptowsp_run *run, uint64_t i) {
    const pwsp_result *result = pwsp_run_result(run);
    PTOWSP_ASSERT(i < pwsp_result_count(result));
    return result->has_clock ? &result->recorder.clocks[i] : NULL;
}

bool ptowsp_run_trace_find(const ptowsp_run *run, uint64_t index, ptowsp_task_trace *out_task) {
    const pwsp_result *result = pwsp_run_result(run);
    uint64_t slot;
    if (!out_task || !result->has_records || !pwsp_recorder_find(&result->recorder, index, &slot)) {
        return false;
    }
    *out_task = pwsp_result_trace_at(result, slot);
    return true;
}

const ptowsp_task_sums *ptowsp_run_kernels(const ptowsp_run *run, uint32_t *out_count) {
    const pwsp_result *result = pwsp_run_result(run);
    bool is_good = pwsp_result_has_sums(result);
    if (out_count) {
        *out_count = is_good ? (uint32_t)result->program->kernels.count : 0;
    }
    return is_good ? result->recorder.kernels : NULL;
}

const ptowsp_cycles *ptowsp_run_idle(const ptowsp_run *run) {
    const pwsp_result *result = pwsp_run_result(run);
    return pwsp_result_has_sums(result) ? result->recorder.idle : NULL;
}

PWSP_INTERNAL ptowsp_usage pwsp_result_usage(const pwsp_result *result) {
    PWSP_ZERO(ptowsp_usage, usage);
    if (pwsp_result_has_sums(result)) {
        usage.bin_cycles = result->recorder.bin_cycles;
        usage.bin_count =
            (uint32_t)pwsp_ceil_div_u64(result->stats->makespan_cycles, usage.bin_cycles);
        usage.kernel_count = (uint32_t)result->program->kernels.count;
        usage.busy = result->recorder.usage;
    }
    return usage;
}

ptowsp_usage ptowsp_run_usage(const ptowsp_run *run) {
    return pwsp_result_usage(pwsp_run_result(run));
}

// -- edges ----------------------------------------------------------------------------------------

PWSP_TEXTS(ptowsp_edge_reason_name, ptowsp_edge_reason, PTOWSP_EDGES, "unknown")

// The edge to the task that held the task up, where it is not a dependence.
static bool pwsp_result_visit_cause(const pwsp_result *result, uint64_t task, ptowsp_edge_fn visit,
                                    void *user) {
    const ptowsp_task_record *record = &result->recorder.records[task];
    ptowsp_edge edge;
    bool is_ring =
        record->stall >= PTOWSP_STALL_TASK_RING && record->stall <= PTOWSP_STALL_MAP_RING;
    memset(&edge, 0, sizeof edge);
    edge.from = record->cause;
    edge.to = task;
    edge.reason = record->stall == PTOWSP_STALL_LANE      ? PTOWSP_EDGE_LANE
                  : record->stall == PTOWSP_STALL_WINDOW  ? PTOWSP_EDGE_WINDOW
                  : record->stall == PTOWSP_STALL_ORDER   ? PTOWSP_EDGE_ORDER
                  : record->stall == PTOWSP_STALL_SLOT    ? PTOWSP_EDGE_SLOT
                  : record->stall == PTOWSP_STALL_CHANNEL ? PTOWSP_EDGE_CHANNEL
                  : record->stall == PTOWSP_STALL_DEPTH   ? PTOWSP_EDGE_DEPTH
                  : is_ring                               ? PTOWSP_EDGE_RING
                                                          : PTOWSP_EDGE_COUNT;
    return edge.from == PTOWSP_NO_INDEX || edge.reason == PTOWSP_EDGE_COUNT || visit(user, &edge);
}

PWSP_INTERNAL bool pwsp_result_edges(const pwsp_result *result, uint64_t task, ptowsp_edge_fn visit,
                                     void *user) {
    bool is_all = task == PTOWSP_NO_INDEX;
    uint64_t count = pwsp_result_has_edges(result) ? result->recorder.count : 0;
    bool goes_on = visit != NULL;
    for (uint64_t i = is_all ? 0 : task; i < count && goes_on; i++) {
        goes_on = pwsp_edges_of(&result->recorder.edges, i, visit, user) &&
                  pwsp_result_visit_cause(result, i, visit, user);
        if (!is_all) {
            break;
        }
    }
    return goes_on;
}

bool ptowsp_run_edges(const ptowsp_run *run, uint64_t task, ptowsp_edge_fn visit, void *user) {
    return pwsp_result_edges(pwsp_run_result(run), task, visit, user);
}

// -- lower bounds ---------------------------------------------------------------------------------

// Threads and submission, which begin after the launch.
static void pwsp_result_bound_control(const pwsp_result *result, ptowsp_run_bounds *bounds) {
    const ptowsp_run_stats *stats = result->stats;
    const ptowsp_control *control = &result->timed->schedule.control;
    PWSP_ZERO(pwsp_control_costs, costs);
    uint32_t cost;
    const bool fits = pwsp_control_costs_make(control, &costs, &cost);
    PTOWSP_ASSERT(fits);  // it has been checked
    (void)fits;
    const uint64_t launch = costs.cycles[PTOWSP_CONTROL_LAUNCH];
    if (stats->control_cycles) {
        bounds->control_cycles =
            pwsp_sum_u64(launch, pwsp_ceil_div_u64(stats->control_cycles, control->threads));
    }
    if (stats->submit_cycles) {
        bounds->submit_cycles = pwsp_sum_u64(launch, stats->submit_cycles);
    }
}

// Cycles that so many bytes take at a rate in bytes in 100 cycles.
static ptowsp_cycles pwsp_bound_of_bytes(uint64_t bytes, uint32_t rate) {
    return rate ? bytes / rate * 100 + pwsp_ceil_div_u64(bytes % rate * 100, rate) : 0;
}

PWSP_INTERNAL ptowsp_status pwsp_result_find_bounds(const pwsp_result *result,
                                                    ptowsp_run_bounds *out_bounds) {
    const pwsp_timed *timed = result->timed;
    if (!out_bounds) {
        return pwsp_fail_null(result->context, "run: out_bounds");
    }
    memset(out_bounds, 0, sizeof *out_bounds);
    if (!pwsp_result_has_sums(result)) {
        return PWSP_REFUSE(result->context, "run: lower bounds of a run that has recorded nothing");
    }
    out_bounds->makespan_cycles = result->stats->makespan_cycles;
    out_bounds->pool_count = timed->pool_count - timed->has_link;
    for (uint32_t p = 0; p < out_bounds->pool_count; p++) {
        const pwsp_pool_info *pool = &timed->pools[p];
        uint64_t busy = 0, rest = 0;  // busy * lanes + rest
        for (uint32_t i = pool->first; i < pool->first + pool->count; i++) {
            const uint64_t alone = result->lanes[i].busy_cycles - result->lanes[i].slowed_cycles;
            busy += alone / pool->count;
            rest += alone % pool->count;
        }
        out_bounds->pool_names[p] = pool->name;
        out_bounds->pool_lanes[p] = pool->count;
        out_bounds->work_cycles[p] = pool->count ? busy + pwsp_ceil_div_u64(rest, pool->count) : 0;
        out_bounds->largest_cycles =
            pwsp_max_u64(out_bounds->largest_cycles, out_bounds->work_cycles[p]);
    }
    out_bounds->has_path = pwsp_result_has_edges(result);
    if (out_bounds->has_path &&
        !pwsp_edges_longest(&result->recorder.edges, result->recorder.records,
                            &out_bounds->path_cycles)) {
        return PWSP_NO_MEMORY(result->context, "run: out of memory");
    }
    const pwsp_pipelines *pipelines = result->pipelines;
    out_bounds->process_cycles = pipelines->process_least;
    out_bounds->process = pipelines->least_process;
    out_bounds->channel_cycles = pipelines->channel_least;
    out_bounds->channel = pipelines->least_channel;
    if (timed->has_link) {
        out_bounds->link_cycles = result->lanes[timed->lane_count - 1].busy_cycles;
    }
    pwsp_result_bound_control(result, out_bounds);
    const ptowsp_shared_memory *shared = &timed->schedule.shared;
    out_bounds->hbm_cycles = pwsp_bound_of_bytes(result->stats->hbm_bytes, shared->hbm_rate);
    out_bounds->l2_cycles = pwsp_bound_of_bytes(result->stats->l2_bytes, shared->l2_rate);
    const uint64_t all[] = {out_bounds->process_cycles, out_bounds->channel_cycles,
                            out_bounds->control_cycles, out_bounds->submit_cycles,
                            out_bounds->link_cycles,    out_bounds->path_cycles,
                            out_bounds->hbm_cycles,     out_bounds->l2_cycles};
    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        out_bounds->largest_cycles = pwsp_max_u64(out_bounds->largest_cycles, all[i]);
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_run_find_bounds(const ptowsp_run *run, ptowsp_run_bounds *out_bounds) {
    return pwsp_result_find_bounds(pwsp_run_result(run), out_bounds);
}
