// What a run recorded, for callers.

#include "run.h"

#include "../base/atomic.h"

#include <inttypes.h>

ptowsp_status ptowsp_run_record(ptowsp_run *run, const ptowsp_record_options *options) {
    ptowsp_record_options none;
    memset(&none, 0, sizeof none);
    options = options ? options : &none;
    if (pwsp_load_relaxed(&run->is_running)) {
        return PTOWSP_BUSY;
    }
    if ((uint32_t)options->level > PTOWSP_RECORD_TASKS) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "run: there is no level of records %d", (int)options->level);
    }
    if (options->end && options->end <= options->begin) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "run: records from cycle %" PRIu64 " to cycle %" PRIu64 " would be none",
                         options->begin, options->end);
    }
    run->record = *options;
    return PTOWSP_OK;
}

uint64_t ptowsp_run_trace_count(const ptowsp_run *run) {
    return run->has_records ? run->recorder.count : 0;
}

ptowsp_task_trace ptowsp_run_trace_at(const ptowsp_run *run, uint64_t i) {
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

bool ptowsp_run_trace_find(const ptowsp_run *run, uint64_t index, ptowsp_task_trace *out_task) {
    uint64_t slot;
    if (!run->has_records || !pwsp_recorder_find(&run->recorder, index, &slot)) {
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
    bool is_good = pwsp_run_has_sums(run);
    if (out_count) {
        *out_count = is_good ? (uint32_t)run->program->kernels.count : 0;
    }
    return is_good ? run->recorder.kernels : NULL;
}

const ptowsp_cycles *ptowsp_run_idle(const ptowsp_run *run) {
    return pwsp_run_has_sums(run) ? run->recorder.idle : NULL;
}

ptowsp_usage ptowsp_run_usage(const ptowsp_run *run) {
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
