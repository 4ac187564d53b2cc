// What a run recorded, for callers.

#include "run.h"

#include "../base/atomic.h"

#include <inttypes.h>

ptowsp_status ptowsp_run_record(ptowsp_run *run, const ptowsp_record_options *options) {
    PTOWSP_ASSERT(run);
    ptowsp_record_options none;
    memset(&none, 0, sizeof none);
    options = options ? options : &none;
    if (pwsp_load_relaxed(&run->is_running)) {
        return pwsp_fail_busy(run->owner);
    }
    if ((uint32_t)options->level > PTOWSP_RECORD_EDGES) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "run: there is no level of records %d", (int)options->level);
    }
    if (options->end && options->end <= options->begin) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "run: records from cycle %" PRIu64 " to cycle %" PRIu64 " would be none",
                         options->begin, options->end);
    }
    if (options->level == PTOWSP_RECORD_EDGES &&
        (options->begin || options->end || options->every > 1)) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "run: edges are recorded of all tasks, not of a window or every n-th");
    }
    if (options->has_clock && options->level < PTOWSP_RECORD_TASKS) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "run: the wall clock is recorded of tasks (PTOWSP_RECORD_TASKS)");
    }
    run->record = *options;
    return PTOWSP_OK;
}

uint64_t ptowsp_run_trace_count(const ptowsp_run *run) {
    PTOWSP_ASSERT(run);
    return run->has_records ? run->recorder.count : 0;
}

ptowsp_task_trace ptowsp_run_trace_at(const ptowsp_run *run, uint64_t i) {
    PTOWSP_ASSERT(run);
    const pwsp_recorder *recorder = &run->recorder;
    PTOWSP_ASSERT(run->has_records && i < recorder->count);
    const ptowsp_task_record *record = &recorder->records[i];
    const pwsp_record_more *more = &recorder->more[i];
    const pwsp_kernel_info *kernel =
        PWSP_PROGRAM_AT(run->program, kernels, pwsp_kernel_info, record->kernel);
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

const ptowsp_task_record *ptowsp_run_clock_at(const ptowsp_run *run, uint64_t i) {
    PTOWSP_ASSERT(run);
    PTOWSP_ASSERT(i < ptowsp_run_trace_count(run));
    return run->has_clock ? &run->recorder.clocks[i] : NULL;
}

bool ptowsp_run_trace_find(const ptowsp_run *run, uint64_t index, ptowsp_task_trace *out_task) {
    PTOWSP_ASSERT(run);
    uint64_t slot;
    if (!out_task || !run->has_records || !pwsp_recorder_find(&run->recorder, index, &slot)) {
        return false;
    }
    *out_task = ptowsp_run_trace_at(run, slot);
    return true;
}

// Has the last execution recorded sums?
static bool pwsp_run_has_sums(const ptowsp_run *run) {
    return run->recorder.options.level != PTOWSP_RECORD_NONE && run->recorder.kernels;
}

const ptowsp_task_sums *ptowsp_run_kernels(const ptowsp_run *run, uint32_t *out_count) {
    PTOWSP_ASSERT(run);
    bool is_good = pwsp_run_has_sums(run);
    if (out_count) {
        *out_count = is_good ? (uint32_t)run->program->kernels.count : 0;
    }
    return is_good ? run->recorder.kernels : NULL;
}

const ptowsp_cycles *ptowsp_run_idle(const ptowsp_run *run) {
    PTOWSP_ASSERT(run);
    return pwsp_run_has_sums(run) ? run->recorder.idle : NULL;
}

ptowsp_usage ptowsp_run_usage(const ptowsp_run *run) {
    PTOWSP_ASSERT(run);
    ptowsp_usage usage;
    memset(&usage, 0, sizeof usage);
    if (pwsp_run_has_sums(run)) {
        uint64_t makespan = run->time.sim.stats.makespan_cycles;
        usage.bin_cycles = run->recorder.bin_cycles;
        usage.bin_count = (uint32_t)pwsp_ceil_div_u64(makespan, usage.bin_cycles);
        usage.kernel_count = (uint32_t)run->program->kernels.count;
        usage.busy = run->recorder.usage;
    }
    return usage;
}

// -- edges ----------------------------------------------------------------------------------------

const char *ptowsp_edge_reason_name(ptowsp_edge_reason reason) {
    switch (reason) {
#define PWSP_EDGE_CASE(name, text)                                                                 \
    case PTOWSP_EDGE_##name: return text;
        PTOWSP_EDGES(PWSP_EDGE_CASE)
#undef PWSP_EDGE_CASE
    case PTOWSP_EDGE_COUNT:
    case PTOWSP_EDGE_FORCE_INT: break;
    }
    return "unknown";
}

typedef struct pwsp_edge_caller {
    const ptowsp_run *run;
    uint64_t task;
    ptowsp_edge_fn visit;
    void *user;
} pwsp_edge_caller;

static ptowsp_edge_tile pwsp_edge_tile_of(const pwsp_tile_at *at) {
    ptowsp_edge_tile tile = {at->tensor, at->rows, at->cols, at->lead, at->row, at->col};
    return tile;
}

static bool pwsp_run_visit_edge(void *user, const pwsp_edge_kept *kept) {
    const pwsp_edge_caller *caller = (const pwsp_edge_caller *)user;
    const pwsp_edges *edges = &caller->run->recorder.edges;
    ptowsp_edge edge;
    memset(&edge, 0, sizeof edge);
    edge.from = kept->from;
    edge.to = caller->task;
    edge.reason = (ptowsp_edge_reason)kept->reason;
    edge.hazards = kept->hazards;
    if (kept->reason == PTOWSP_EDGE_TENSOR) {
        edge.earlier = pwsp_edge_tile_of(pwsp_edges_tile(edges, kept->from, kept->from_tile));
        edge.later = pwsp_edge_tile_of(pwsp_edges_tile(edges, caller->task, kept->to_tile));
    }
    return caller->visit(caller->user, &edge);
}

// The edge to the task that held the task up, where it is not a dependence.
static bool pwsp_run_visit_cause(const pwsp_edge_caller *caller) {
    const ptowsp_task_record *record = &caller->run->recorder.records[caller->task];
    ptowsp_edge edge;
    bool is_ring =
        record->stall >= PTOWSP_STALL_TASK_RING && record->stall <= PTOWSP_STALL_MAP_RING;
    memset(&edge, 0, sizeof edge);
    edge.from = record->cause;
    edge.to = caller->task;
    edge.reason = record->stall == PTOWSP_STALL_LANE      ? PTOWSP_EDGE_LANE
                  : record->stall == PTOWSP_STALL_WINDOW  ? PTOWSP_EDGE_WINDOW
                  : record->stall == PTOWSP_STALL_ORDER   ? PTOWSP_EDGE_ORDER
                  : record->stall == PTOWSP_STALL_SLOT    ? PTOWSP_EDGE_SLOT
                  : record->stall == PTOWSP_STALL_CHANNEL ? PTOWSP_EDGE_CHANNEL
                  : record->stall == PTOWSP_STALL_DEPTH   ? PTOWSP_EDGE_DEPTH
                  : is_ring                               ? PTOWSP_EDGE_RING
                                                          : PTOWSP_EDGE_COUNT;
    return edge.from == PTOWSP_NO_INDEX || edge.reason == PTOWSP_EDGE_COUNT ||
           caller->visit(caller->user, &edge);
}

bool ptowsp_run_edges(const ptowsp_run *run, uint64_t task, ptowsp_edge_fn visit, void *user) {
    PTOWSP_ASSERT(run);
    bool is_all = task == PTOWSP_NO_INDEX;
    uint64_t count = run->has_records && run->recorder.options.level >= PTOWSP_RECORD_EDGES
                         ? run->recorder.count
                         : 0;
    bool goes_on = visit != NULL;
    for (uint64_t i = is_all ? 0 : task; i < count && goes_on; i++) {
        pwsp_edge_caller caller = {run, i, visit, user};
        goes_on = pwsp_edges_of(&run->recorder.edges, i, pwsp_run_visit_edge, &caller) &&
                  pwsp_run_visit_cause(&caller);
        if (!is_all) {
            break;
        }
    }
    return goes_on;
}

// -- lower bounds ---------------------------------------------------------------------------------

ptowsp_status ptowsp_run_find_bounds(const ptowsp_run *run, ptowsp_run_bounds *out_bounds) {
    PTOWSP_ASSERT(run);
    if (!out_bounds) {
        return pwsp_fail_null(run->context, "run: out_bounds");
    }
    const pwsp_sim *sim = &run->time.sim;
    memset(out_bounds, 0, sizeof *out_bounds);
    if (!pwsp_run_has_sums(run)) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "run: lower bounds of a run that has recorded nothing");
    }
    out_bounds->makespan_cycles = sim->stats.makespan_cycles;
    out_bounds->pool_count = sim->timed->pool_count - sim->timed->has_link;
    for (uint32_t p = 0; p < out_bounds->pool_count; p++) {
        const pwsp_pool_info *pool = &sim->timed->pools[p];
        uint64_t busy = 0, rest = 0;  // busy * lanes + rest
        for (uint32_t i = pool->first; i < pool->first + pool->count; i++) {
            busy += sim->lane_stats[i].busy_cycles / pool->count;
            rest += sim->lane_stats[i].busy_cycles % pool->count;
        }
        out_bounds->pool_names[p] = pool->name;
        out_bounds->pool_lanes[p] = pool->count;
        out_bounds->work_cycles[p] = pool->count ? busy + pwsp_ceil_div_u64(rest, pool->count) : 0;
        out_bounds->largest_cycles =
            pwsp_max_u64(out_bounds->largest_cycles, out_bounds->work_cycles[p]);
    }
    out_bounds->has_path = run->has_records && run->recorder.options.level >= PTOWSP_RECORD_EDGES;
    if (out_bounds->has_path && !pwsp_edges_longest(&run->recorder.edges, run->recorder.records,
                                                    &out_bounds->path_cycles)) {
        return pwsp_fail(run->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
    }
    const pwsp_pipelines *pipelines = &run->pipes.pipelines;
    out_bounds->process_cycles = pipelines->process_least;
    out_bounds->process = pipelines->least_process;
    out_bounds->channel_cycles = pipelines->channel_least;
    out_bounds->channel = pipelines->least_channel;
    if (sim->timed->has_link) {
        out_bounds->link_cycles = sim->lane_stats[sim->timed->lane_count - 1].busy_cycles;
    }
    uint64_t largest = pwsp_max_u64(out_bounds->process_cycles, out_bounds->channel_cycles);
    largest = pwsp_max_u64(largest, out_bounds->link_cycles);
    largest = pwsp_max_u64(largest, out_bounds->path_cycles);
    out_bounds->largest_cycles = pwsp_max_u64(largest, out_bounds->largest_cycles);
    return PTOWSP_OK;
}
