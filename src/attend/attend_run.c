// Jobs: a step of attention as work of workers.
//
// A job runs its plan as a ptowsp_attention_job, with the kernels of this file. Its memory begins with
// words that say who is in a run:
//
//      workers[0]       workers of the run under way; 0: none
//      workers[1]       of these, have returned
//      workers[2]       1 + the first unit found that is not of the step; 0: none
//      workers[4 + i]   worker i has come
//
// The first worker sets the count, and each marks itself: a mark that is there already, or another
// count, is a mistake of the caller, and nothing is computed. The last to return clears marks, then
// the count. So a worker of the next run that comes too early is refused, or finds all cleared.

#include "attend.h"

#include "../base/atomic.h"
#include "../base/context.h"
#include "../plan/plan.h"

enum { PWSP_ATTEND_COUNT, PWSP_ATTEND_RETURNED, PWSP_ATTEND_FOREIGN, PWSP_ATTEND_MARKS = 4 };

#define PWSP_ATTEND_REFUSE(info, fault, value, limit)                                              \
    pwsp_plan_fail(info, PTOWSP_FAULT_ATTEND_##fault, PTOWSP_NO_INDEX, pwsp_info_value(value),     \
                   pwsp_info_value(limit))

// -- memory ---------------------------------------------------------------------------------------

// Bytes of each part of a block.
typedef struct pwsp_attend_parts {
    uint64_t workers, progress, states, accs, all;
} pwsp_attend_parts;

static uint64_t pwsp_attend_progress(const ptowsp_attend_limits *limits) {
    ptowsp_attention_plan plan;
    memset(&plan, 0, sizeof plan);
    plan.lane_count = limits->plan.lane_count;
    plan.merge_capacity = (uint32_t)limits->plan.merge_count;
    return ptowsp_attention_progress_size(&plan) + limits->join_count;
}

static ptowsp_status pwsp_attend_measure(const ptowsp_attend_limits *limits, pwsp_attend_parts *out,
                                         ptowsp_plan_info *info) {
    uint64_t rows, floats;
    if (limits->value_dim == 0 || limits->value_dim > PTOWSP_ATTEND_DIM_MAX ||
        limits->value_dim % PWSP_ATTEND_STEP != 0) {
        return PWSP_ATTEND_REFUSE(info, VALUE_DIM, limits->value_dim, PWSP_ATTEND_STEP);
    }
    if (limits->worker_count == 0 || limits->worker_count > PTOWSP_ATTEND_WORKER_MAX) {
        return PWSP_ATTEND_REFUSE(info, WORKER_COUNT, limits->worker_count,
                                  PTOWSP_ATTEND_WORKER_MAX);
    }
    if (limits->plan.merge_count > UINT32_MAX || limits->join_count > UINT32_MAX ||
        limits->plan.slot_count > UINT32_MAX ||
        !pwsp_mul_fits(limits->plan.slot_count, limits->plan.slot_rows, &rows) ||
        !pwsp_mul_fits(rows, limits->value_dim + 2, &floats) || floats > INT64_MAX / 8) {
        return PWSP_ATTEND_REFUSE(info, BLOCK_LARGE, 0, 0);
    }
    out->workers = (PWSP_ATTEND_MARKS + (limits->worker_count + UINT64_C(1)) / 2 * 2) * 4;
    out->progress = (pwsp_attend_progress(limits) + 1) / 2 * 8;
    out->states = rows * sizeof(ptowsp_partial);
    out->accs = rows * limits->value_dim * sizeof(float);
    out->all = out->workers + out->progress + out->states + out->accs;
    return PTOWSP_OK;
}

ptowsp_status ptowsp_attend_size(const ptowsp_attend_limits *limits, uint64_t *out_bytes,
                                 ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    pwsp_attend_parts parts;
    if (out_bytes) {
        *out_bytes = 0;
    }
    if (!limits || !out_bytes) {
        return PWSP_ATTEND_REFUSE(info, LIMITS_NULL, 0, 0);
    }
    ptowsp_status status = pwsp_attend_measure(limits, &parts, info);
    *out_bytes = status == PTOWSP_OK ? parts.all : 0;
    return status;
}

ptowsp_status ptowsp_attend_place(const ptowsp_attend_limits *limits, void *block,
                                  uint64_t block_bytes, ptowsp_attend_memory *out_memory,
                                  ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    pwsp_attend_parts parts;
    if (!limits || !block || !out_memory) {
        return PWSP_ATTEND_REFUSE(info, LIMITS_NULL, 0, 0);
    }
    ptowsp_status status = pwsp_attend_measure(limits, &parts, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    if ((uintptr_t)block % 8 != 0) {
        return PWSP_ATTEND_REFUSE(info, BLOCK_ALIGN, 0, 8);
    }
    if (block_bytes < parts.all) {
        return PWSP_ATTEND_REFUSE(info, BLOCK_SMALL, block_bytes, parts.all);
    }
    char *at = (char *)block;
    ptowsp_attend_memory memory;
    memset(&memory, 0, sizeof memory);
    memory.workers = (uint32_t *)(void *)at;
    memory.progress = (uint32_t *)(void *)(at + parts.workers);
    memory.scratch.states = (ptowsp_partial *)(void *)(at + parts.workers + parts.progress);
    memory.scratch.accs = (float *)(void *)(at + parts.workers + parts.progress + parts.states);
    memory.scratch.rows = limits->plan.slot_rows;
    memory.scratch.dim = limits->value_dim;
    memory.slot_capacity = limits->plan.slot_count;
    memory.progress_capacity = pwsp_attend_progress(limits);
    memory.worker_capacity = limits->worker_count;
    memset(block, 0, (size_t)(parts.workers + parts.progress));
    *out_memory = memory;
    return PTOWSP_OK;
}

// -- checks ---------------------------------------------------------------------------------------

// Whether the memory suits the plan.
static ptowsp_status pwsp_attend_memory_check(const ptowsp_attend_job *job,
                                              ptowsp_plan_info *info) {
    const ptowsp_attend_memory *memory = &job->memory;
    const ptowsp_attend_step *step = job->step;
    const ptowsp_attention_plan *plan = step->plan;
    const uint64_t progress = step->prefix ? ptowsp_prefix_progress_size(step->prefix)
                                           : ptowsp_attention_progress_size(plan);
    if (!memory->workers || !memory->progress || !memory->scratch.states || !memory->scratch.accs) {
        return PWSP_ATTEND_REFUSE(info, MEMORY_NULL, 0, 0);
    }
    if (memory->scratch.dim != job->cache->value_dim) {
        return PWSP_ATTEND_REFUSE(info, MEMORY_DIM, job->cache->value_dim, memory->scratch.dim);
    }
    if (plan->slot_count > memory->slot_capacity) {
        return PWSP_ATTEND_REFUSE(info, MEMORY_SLOTS, plan->slot_count, memory->slot_capacity);
    }
    if (plan->slot_count > 0 && plan->slot_rows > memory->scratch.rows) {
        return PWSP_ATTEND_REFUSE(info, MEMORY_ROWS, plan->slot_rows, memory->scratch.rows);
    }
    if (progress > memory->progress_capacity) {
        return PWSP_ATTEND_REFUSE(info, MEMORY_PROGRESS, progress, memory->progress_capacity);
    }
    return PTOWSP_OK;
}

// All that takes constant time.
static ptowsp_status pwsp_attend_job_check(const ptowsp_attend_job *job, ptowsp_plan_info *info) {
    if (!job || !job->cache || !job->step) {
        return PWSP_ATTEND_REFUSE(info, JOB_NULL, 0, 0);
    }
    ptowsp_status status = pwsp_attend_cache_check(job->cache, info);
    status = status == PTOWSP_OK ? pwsp_attend_step_check(job->cache, job->step, info) : status;
    return status == PTOWSP_OK ? pwsp_attend_memory_check(job, info) : status;
}

// -- kernels --------------------------------------------------------------------------------------

// The unit of a descriptor, if it is of the job's step and its slots are there.
static bool pwsp_attend_take(const ptowsp_attend_job *job, const ptowsp_work *work,
                             uint64_t slot_first, uint64_t slot_count, ptowsp_attend_unit *out) {
    ptowsp_plan_info spare;
    if (!work || pwsp_attend_job_check(job, &spare) != PTOWSP_OK) {
        return false;
    }
    const ptowsp_attend_step *step = job->step;
    *out = ptowsp_attend_unit_of(step, work);
    const uint32_t rows = ptowsp_attend_unit_rows(step, out);
    return rows > 0 && out->request < step->batch->sequence_count &&
           out->kv_head < step->config->kv_head_count &&
           slot_first + slot_count <= job->memory.slot_capacity &&
           (slot_count == 0 || rows <= job->memory.scratch.rows);
}

ptowsp_status ptowsp_attend_work(const ptowsp_attend_job *job, const ptowsp_work *work) {
    const uint32_t slot = work ? ptowsp_work_slot(work) : PTOWSP_NO_SLOT;
    const bool is_part = slot != PTOWSP_NO_SLOT;
    ptowsp_attend_unit unit;
    if (!pwsp_attend_take(job, work, is_part ? slot : 0, is_part, &unit)) {
        return PTOWSP_INVALID_PARAMS;
    }
    const ptowsp_attention_scratch *scratch = &job->memory.scratch;
    return ptowsp_attend_compute(job->cache, job->step, &unit,
                                 is_part ? ptowsp_attention_states(scratch, slot) : NULL,
                                 is_part ? ptowsp_attention_accs(scratch, slot) : NULL);
}

ptowsp_status ptowsp_attend_merge(const ptowsp_attend_job *job, const ptowsp_work *merge) {
    const uint64_t first = merge ? ptowsp_work_slot_first(merge) : 0;
    const uint64_t count = merge ? ptowsp_work_slot_count(merge) : 0;
    ptowsp_attend_unit unit;
    if (!pwsp_attend_take(job, merge, first, count, &unit)) {
        return PTOWSP_INVALID_PARAMS;
    }
    const uint32_t rows = ptowsp_attend_unit_rows(job->step, &unit);
    uint32_t row;
    const uint64_t some = ptowsp_work_merge_rows(merge, rows, &row), row_end = row + some;
    if (row_end > rows) {
        return PTOWSP_INVALID_PARAMS;
    }
    for (; row < row_end; row++) {
        const pwsp_attend_place place = pwsp_attend_place_of(job->step, &unit, row);
        pwsp_attend_end_row(
            job->step, place, job->cache->value_dim,
            ptowsp_attention_merge_row(&job->memory.scratch, merge, row, place.output));
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_attend_join(const ptowsp_attend_job *job, const ptowsp_work *join) {
#if defined(PTOWSP_ONLY_ATTENTION)
    (void)job, (void)join;
    return PTOWSP_INVALID_PARAMS;
#else
    ptowsp_plan_info spare;
    if (!join || pwsp_attend_job_check(job, &spare) != PTOWSP_OK) {
        return PTOWSP_INVALID_PARAMS;
    }
    const ptowsp_prefix_plan *prefix = job->step->prefix;
    const uint32_t head = ptowsp_work_head(join), position = join->params[2];
    if (!prefix || position >= prefix->request_count || head >= job->step->config->kv_head_count) {
        return PTOWSP_INVALID_PARAMS;
    }
    const uint32_t begin = prefix->requests[position].token_begin;
    ptowsp_attend_unit unit;
    memset(&unit, 0, sizeof unit);
    unit.request = prefix->requests[position].request;
    unit.kv_head = head;
    unit.query_start = begin;
    unit.query_count = prefix->requests[position + 1].token_begin - begin;
    unit.tokens = prefix->tokens + begin;
    const uint32_t rows = ptowsp_attend_unit_rows(job->step, &unit);
    for (uint32_t row = 0; row < rows; row++) {
        const pwsp_attend_place place = pwsp_attend_place_of(job->step, &unit, row);
        pwsp_attend_end_row(
            job->step, place, job->cache->value_dim,
            ptowsp_prefix_join_row(prefix, &job->memory.scratch, join, row, place.output));
    }
    return PTOWSP_OK;
#endif
}

// -- runs -----------------------------------------------------------------------------------------

// A run as one worker has it.
typedef struct pwsp_attend_run {
    const ptowsp_attend_job *job;
    ptowsp_attention_job kernels;
    ptowsp_work_fn table[256];  // by tier, all the same
} pwsp_attend_run;

// Notes a unit or merge that is not of the step: workers continue, so that the run ends.
static void pwsp_attend_note(const pwsp_attend_run *run, const ptowsp_work *work,
                             ptowsp_status status) {
    if (status != PTOWSP_OK) {
        const ptowsp_attention_plan *plan = run->job->step->plan;
        const bool is_unit = work >= plan->units && work < plan->units + plan->unit_count;
        pwsp_store_relaxed(run->job->memory.workers + PWSP_ATTEND_FOREIGN,
                           1 + (is_unit ? (uint32_t)(work - plan->units) : 0));
    }
}

static void pwsp_attend_run_work(const ptowsp_work *work, uint32_t lane, void *user) {
    const pwsp_attend_run *run = (const pwsp_attend_run *)user;
    (void)lane;
    pwsp_attend_note(run, work, ptowsp_attend_work(run->job, work));
}

static void pwsp_attend_run_merge(const ptowsp_work *merge, uint32_t lane, void *user) {
    const pwsp_attend_run *run = (const pwsp_attend_run *)user;
    (void)lane;
    pwsp_attend_note(run, merge, ptowsp_attend_merge(run->job, merge));
}

static void pwsp_attend_run_join(const ptowsp_work *join, uint32_t lane, void *user) {
    const pwsp_attend_run *run = (const pwsp_attend_run *)user;
    (void)lane;
    pwsp_attend_note(run, join, ptowsp_attend_join(run->job, join));
}

static void pwsp_attend_run_make(const ptowsp_attend_job *job, pwsp_attend_run *out) {
    const uint32_t tiers = job->step->config->tier_count > 0 ? 256 : 1;
    memset(&out->kernels, 0, sizeof out->kernels);
    out->job = job;
    for (uint32_t i = 0; i < tiers; i++) {
        out->table[i] = pwsp_attend_run_work;
    }
    out->kernels.plan = job->step->plan;
    out->kernels.table = out->table;
    out->kernels.table_count = tiers;
    out->kernels.merge = pwsp_attend_run_merge;
    out->kernels.user = out;
    out->kernels.progress = job->memory.progress;
    out->kernels.is_stealing = job->is_stealing;
    out->kernels.prefix = job->step->prefix;
    out->kernels.join = pwsp_attend_run_join;
    out->kernels.spans = job->spans;
}

// Of a prefix plan, whose tree is not known, only the lists.
static ptowsp_status pwsp_attend_plan_check(const ptowsp_attend_job *job, ptowsp_plan_info *info) {
    const ptowsp_attend_step *step = job->step;
    if (!step->prefix) {
        return ptowsp_attention_check(step->batch, step->config, step->plan, info);
    }
    pwsp_attend_run run;
    uint64_t index;
    pwsp_attend_run_make(job, &run);
    return ptowsp_attention_job_check(&run.kernels, &index) == PTOWSP_OK
               ? PTOWSP_OK
               : pwsp_plan_fail(info, PTOWSP_FAULT_ATTEND_UNIT_FOREIGN, index, 0, 0);
}

// Whether the bits of a mask begin in each request, and reach its end.
static ptowsp_status pwsp_attend_mask_check(const ptowsp_attend_step *step,
                                            ptowsp_plan_info *info) {
    for (uint32_t i = 0; step->mask && i < step->batch->sequence_count; i++) {
        const uint64_t start = step->mask_starts ? step->mask_starts[i] : 0;
        const uint64_t length = (uint64_t)step->batch->kv_lengths[i];
        const uint64_t words = pwsp_min_u64(step->mask_stride, UINT32_MAX);
        if (start > length || start + 32 * words < length) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_ATTEND_MASK, i,
                                  pwsp_info_value(start > length ? start : start + 32 * words),
                                  pwsp_info_value(length));
        }
    }
    return PTOWSP_OK;
}

// Without pages the strides of pages lead to the first row of a request. Requests may share keys or values,
// whose stride is 0 then; but not both, or the scales of I8.
static ptowsp_status pwsp_attend_first_check(const ptowsp_attend_job *job, ptowsp_plan_info *info) {
    const ptowsp_attend_step *step = job->step;
    const ptowsp_attend_cache *cache = job->cache;
    const bool is_i8 = cache->type == PTOWSP_ATTEND_I8;
    const bool has_strides = is_i8 ? cache->scale_strides.page > 0
                                   : cache->key_strides.page > 0 || cache->value_strides.page > 0;
    for (uint32_t i = 0; !has_strides && i < step->batch->sequence_count; i++) {
        const size_t at = step->page_starts ? step->page_starts[i] : i * step->page_stride;
        if (cache->page_size == 0 && step->batch->kv_lengths[i] > 0 && step->pages[at] > 0) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_ATTEND_STRIDE_PAGE, i, step->pages[at], 0);
        }
    }
    return PTOWSP_OK;
}

// Without query_starts requests have a token each; segments of a prefix plan have tokens in order.
static ptowsp_status pwsp_attend_starts_check(const ptowsp_attend_step *step,
                                              ptowsp_plan_info *info) {
    uint64_t first = 0;
    for (uint32_t i = 0; i < step->batch->sequence_count; i++) {
        const uint32_t count = pwsp_attend_query_count(step, i);
        if (!step->query_starts && count != 1) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_ATTEND_STEP_QUERIES, i, count, 0);
        }
        if (step->query_starts && step->prefix && count > 0 && step->query_starts[i] != first) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_ATTEND_STARTS, i, step->query_starts[i],
                                  pwsp_info_value(first));
        }
        first += count;
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_attend_check(const ptowsp_attend_job *job, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    ptowsp_status status = pwsp_attend_job_check(job, info);
    status = status == PTOWSP_OK ? pwsp_attend_plan_check(job, info) : status;
    status = status == PTOWSP_OK ? pwsp_attend_mask_check(job->step, info) : status;
    status = status == PTOWSP_OK ? pwsp_attend_first_check(job, info) : status;
    return status == PTOWSP_OK ? pwsp_attend_starts_check(job->step, info) : status;
}

// Begins a run of so many workers, or joins it; false if another is under way.
static bool pwsp_attend_begin(const ptowsp_attend_job *job, uint32_t worker_count,
                              uint32_t *out_other) {
    uint32_t found = 0;
    while (!pwsp_cas_acquire(job->memory.workers + PWSP_ATTEND_COUNT, &found, worker_count)) {
        if (found != 0) {
            *out_other = found;
            return found == worker_count;
        }
    }
    return true;
}

// The fault that a run has noted.
static ptowsp_status pwsp_attend_noted(const ptowsp_attend_job *job, ptowsp_plan_info *info) {
    const uint32_t foreign = pwsp_load_relaxed(job->memory.workers + PWSP_ATTEND_FOREIGN);
    return foreign == 0 ? PTOWSP_OK
                        : pwsp_plan_fail(info, PTOWSP_FAULT_ATTEND_UNIT_FOREIGN, foreign - 1, 0, 0);
}

// Clears all words, the count at last.
static void pwsp_attend_end(const ptowsp_attend_job *job, uint32_t worker_count) {
    uint32_t *words = job->memory.workers;
    for (uint32_t i = 0; i < worker_count; i++) {
        pwsp_store_relaxed(words + PWSP_ATTEND_MARKS + i, 0u);
    }
    pwsp_store_relaxed(words + PWSP_ATTEND_RETURNED, 0u);
    pwsp_store_relaxed(words + PWSP_ATTEND_FOREIGN, 0u);
    pwsp_store_release(words + PWSP_ATTEND_COUNT, 0u);
}

ptowsp_status ptowsp_attend_run_worker(const ptowsp_attend_job *job, uint32_t worker,
                                       uint32_t worker_count, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    ptowsp_status status = pwsp_attend_job_check(job, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    const uint32_t worker_max = job->memory.worker_capacity;
    if (worker_count == 0 || worker_count > worker_max) {
        return PWSP_ATTEND_REFUSE(info, WORKER_COUNT, worker_count, worker_max);
    }
    if (worker >= worker_count) {
        return PWSP_ATTEND_REFUSE(info, WORKER_RANGE, worker, worker_count);
    }
    uint32_t other = 0;
    if (!pwsp_attend_begin(job, worker_count, &other)) {
        return PWSP_ATTEND_REFUSE(info, RUN_OTHER, worker_count, other);
    }
    uint32_t *words = job->memory.workers;
    if (pwsp_exchange_acq_rel(words + PWSP_ATTEND_MARKS + worker, 1u) != 0) {
        return PWSP_ATTEND_REFUSE(info, WORKER_TWICE, worker, 0);
    }
    pwsp_attend_run run;
    pwsp_attend_run_make(job, &run);
    ptowsp_attention_run_worker(&run.kernels, worker, worker_count);
    status = pwsp_attend_noted(job, info);
    if (pwsp_fetch_add_acq_rel(words + PWSP_ATTEND_RETURNED, 1u) + 1 == worker_count) {
        status = pwsp_attend_noted(job, info);  // of all
        pwsp_attend_end(job, worker_count);
    }
    return status;
}

ptowsp_status ptowsp_attend_run(ptowsp_context *context, const ptowsp_attend_job *job) {
    PTOWSP_ASSERT(context);
    if (!pwsp_context_enter(context)) {
        return pwsp_fail_busy(context);
    }
    ptowsp_plan_info info;
    uint32_t other = 0;
    pwsp_info_start(&info, &info);
    ptowsp_status status = pwsp_attend_job_check(job, &info);
    if (status == PTOWSP_OK && (!pwsp_attend_begin(job, UINT32_MAX, &other) || other != 0)) {
        status = PWSP_ATTEND_REFUSE(&info, RUN_OTHER, ptowsp_context_lane_count(context), other);
    }
    if (status != PTOWSP_OK) {
        pwsp_plan_report(context, status, &info);
        pwsp_context_leave(context);
        return status;
    }
    pwsp_context_leave(context);
    pwsp_attend_run run;
    pwsp_attend_run_make(job, &run);
    status = ptowsp_attention_run(context, &run.kernels);
    if (status == PTOWSP_OK && pwsp_attend_noted(job, &info) != PTOWSP_OK) {
        status = pwsp_plan_report(context, PTOWSP_INVALID_PARAMS, &info);
    }
    pwsp_attend_end(job, 0);
    return status;
}
