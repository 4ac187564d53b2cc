// The result of an execution: its life, and what callers see of it.

#include "result.h"

PWSP_INTERNAL void pwsp_result_forget(pwsp_result *result, uint32_t lanes_used) {
    result->has_records = result->has_clock = result->is_done = false;
    result->critical_count = 0;
    result->lanes_used = lanes_used;
}

// Goes back from the first of the tasks that end last, along each task's cause.
PWSP_INTERNAL bool pwsp_result_find_critical(pwsp_result *result) {
    const ptowsp_task_record *records = result->recorder.records;
    uint64_t task = 0, count = 0, all = result->recorder.count;
    PTOWSP_ASSERT(result->recorder.is_dense);
    for (uint64_t i = 1; i < all; i++) {
        task = records[i].end > records[task].end ? i : task;
    }
    for (uint64_t at = task; at < all && count < all; at = records[at].cause) {
        count++;
    }
    // By doubling, so that a run like an earlier one needs no more.
    bool is_good = true;
    while (is_good && result->critical_capacity < count) {
        is_good = PWSP_GROW(&result->recorder.memory, result->critical, result->critical_capacity,
                            result->critical_capacity + 1);
    }
    result->critical_count = is_good ? count : 0;
    for (uint64_t i = result->critical_count; i > 0; task = records[task].cause) {
        result->critical[--i] = task;
    }
    return is_good;
}

PWSP_INTERNAL uint64_t pwsp_result_busy(const pwsp_result *result) {
    uint64_t busy = 0;
    for (uint32_t i = 0; i < result->stats->lane_count; i++) {
        busy = pwsp_sum_u64(busy, result->lanes[i].busy_cycles);
    }
    return busy;
}

// -- transient tensors ----------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_transient_sizes pwsp_result_transient_sizes(const pwsp_result *result) {
    const pwsp_placement *placement = result->placement;
    ptowsp_transient_sizes sizes = {placement->peak,  placement->sum,
                                    placement->bound, (uint32_t)result->program->points.count,
                                    placement->point, (uint32_t)result->program->lifetimes.count};
    return sizes;
}

PWSP_INTERNAL ptowsp_lifetime pwsp_result_lifetime_at(const pwsp_result *result, uint32_t i) {
    const ptowsp_program *p = result->program;
    PTOWSP_ASSERT(i < p->lifetimes.count);
    uint32_t low = 0, high = (uint32_t)p->transients.count;  // whose lifetime it is: by bisection
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        bool is_behind = p->transients.items[middle].first_lifetime > i;
        low = is_behind ? low : middle;
        high = is_behind ? middle : high;
    }
    const pwsp_lifetime *lifetime = &p->lifetimes.items[i];
    const pwsp_placed *placed = &result->placed[low];
    ptowsp_lifetime at = {p->transients.items[low].tensor, lifetime->first, lifetime->last,
                          placed->offset, placed->bytes};
    return at;
}

// -- for callers ----------------------------------------------------------------------------------

ptowsp_lifetime ptowsp_run_lifetime_at(const ptowsp_run *run, uint32_t i) {
    return pwsp_result_lifetime_at(pwsp_run_result(run), i);
}

const ptowsp_run_stats *ptowsp_run_result(const ptowsp_run *run) {
    return pwsp_run_result(run)->stats;
}

const ptowsp_lane_stats *ptowsp_run_lanes(const ptowsp_run *run) {
    return pwsp_run_result(run)->lanes;
}

const ptowsp_task_record *ptowsp_run_records(const ptowsp_run *run) {
    const pwsp_result *result = pwsp_run_result(run);
    return result->has_records && result->recorder.is_dense ? result->recorder.records : NULL;
}

// Tells how many items there are; NULL: none.
static const void *pwsp_result_tell(const void *items, uint64_t count, uint64_t *out_count) {
    if (out_count) {
        *out_count = count;
    }
    return count ? items : NULL;
}

static const void *pwsp_result_tell_few(const void *items, uint64_t count, uint32_t *out_count) {
    if (out_count) {
        *out_count = (uint32_t)count;
    }
    return count ? items : NULL;
}

const uint64_t *ptowsp_run_critical_path(const ptowsp_run *run, uint64_t *out_count) {
    const pwsp_result *result = pwsp_run_result(run);
    return (const uint64_t *)pwsp_result_tell(result->critical, result->critical_count, out_count);
}

const ptowsp_pipeline_stats *ptowsp_run_pipelines(const ptowsp_run *run, uint32_t *out_count) {
    const pwsp_result *result = pwsp_run_result(run);
    return (const ptowsp_pipeline_stats *)pwsp_result_tell_few(
        result->pipelines->stats, result->program->pipelines.count, out_count);
}

const ptowsp_process_stats *ptowsp_run_processes(const ptowsp_run *run, uint32_t *out_count) {
    const pwsp_pipelines *pipelines = pwsp_run_result(run)->pipelines;
    return (const ptowsp_process_stats *)pwsp_result_tell_few(pipelines->process_stats,
                                                              pipelines->process_count, out_count);
}

const ptowsp_channel_stats *ptowsp_run_channels(const ptowsp_run *run, uint32_t *out_count) {
    const pwsp_result *result = pwsp_run_result(run);
    return (const ptowsp_channel_stats *)pwsp_result_tell_few(
        result->pipelines->channel_stats, result->program->channels.count, out_count);
}

const ptowsp_step_record *ptowsp_run_steps(const ptowsp_run *run, uint64_t *out_count) {
    const pwsp_pipelines *pipelines = pwsp_run_result(run)->pipelines;
    return (const ptowsp_step_record *)pwsp_result_tell(pipelines->steps,
                                                        pipelines->exchange.step_count, out_count);
}

PWSP_INTERNAL const uint64_t *pwsp_result_critical_steps(const pwsp_result *result,
                                                         uint32_t pipeline, uint64_t *out_count) {
    const pwsp_pipelines *pipelines = result->pipelines;
    const bool is_known = pipeline < result->program->pipelines.count && result->has_records;
    const uint64_t count = is_known ? pipelines->chains[pipeline].count : 0;
    return (const uint64_t *)pwsp_result_tell(
        count ? pipelines->chain_steps + pipelines->chains[pipeline].first : NULL, count,
        out_count);
}

const uint64_t *ptowsp_run_critical_steps(const ptowsp_run *run, uint32_t pipeline,
                                          uint64_t *out_count) {
    return pwsp_result_critical_steps(pwsp_run_result(run), pipeline, out_count);
}

void ptowsp_run_print_stuck(const ptowsp_run *run, ptowsp_output output) {
    pwsp_pipelines_print_stuck(pwsp_run_result(run)->pipelines, output);
}
