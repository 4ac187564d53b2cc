// Running attention plans: units to kernels, by lists of lanes or with stealing, and merges as soon
// as their parts are done.
//
// Workers share the job's progress and nothing else, and no worker ever waits:
//
//      element             what
//      0                   workers that have returned; by ptowsp_attention_run_worker, stealing
//      (l + 1) * STRIDE    cursor of lane l: units of its list that are taken
//      merges_at + m       parts of merge m that are done
//      joins_at + j        of a prefix plan: parts of join j that are done, as for merges
//
//      a part                                the last part of a tile
//      writes its state                      finds the count full (1), and sets it to 0
//      count + 1 (1)                         merges: all states are there
//
// (1) is acquire and release: it releases the state of its part to the worker that finds the count
// full. A list is taken unit by unit (stealing), as a whole (ptowsp_attention_run, where a lane may
// be left out), or is the worker's without asking (ptowsp_attention_run_worker, to which all come).
//
// Invariant: between two runs all progress is zero. A count is cleared by its last part. Cursors are
// cleared when no worker can look at them any more, since a worker that finds 0 there takes units: by
// the caller of ptowsp_attention_run when all lanes have returned, or by the last worker to return
// (2), which acquires the others' releases there. So a worker that comes late finds full cursors, or is the
// one that clears them. tests/models/attention_run.pml is a model of this.

#include "../base/atomic.h"
#include "../base/context.h"
#include "../base/error.h"

// Elements between cursors: each is on lines of its own.
#define PWSP_CURSOR_STRIDE (PWSP_FALSE_SHARING / sizeof(uint32_t))

static uint32_t *pwsp_attention_cursor(const ptowsp_attention_job *job, uint32_t lane) {
    return job->progress + (lane + (size_t)1) * PWSP_CURSOR_STRIDE;
}

uint64_t ptowsp_attention_progress_size(const ptowsp_attention_plan *plan) {
    if (!plan) {
        return 0;
    }
    uint64_t merge_count = pwsp_max_u64(plan->merge_capacity, plan->merge_count);
    return (plan->lane_count + UINT64_C(1)) * PWSP_CURSOR_STRIDE + merge_count;
}

uint64_t ptowsp_prefix_progress_size(const ptowsp_prefix_plan *plan) {
    if (!plan) {
        return 0;
    }
    return ptowsp_attention_progress_size(&plan->attention) +
           pwsp_max_u64(plan->join_capacity, plan->join_count);
}

// Parts of each join that are done, after all other progress.
static uint32_t *pwsp_attention_joins(const ptowsp_attention_job *job) {
    return job->progress + (size_t)ptowsp_attention_progress_size(job->plan);
}

// -- units and merges -----------------------------------------------------------------------------

// A worker inside a job.
typedef struct pwsp_attention_worker {
    const ptowsp_attention_job *job;
    uint32_t lane;   // what kernels see
    uint32_t merge;  // the one found last
} pwsp_attention_worker;

// Whether a merge has this slot. One that is INVALID has none.
static bool pwsp_merge_has(const ptowsp_attention_plan *plan, uint32_t merge, uint32_t slot) {
    const PTOWSP_GM ptowsp_work *work = &plan->merges[merge];
    uint32_t first = ptowsp_work_slot_first(work);
    return slot >= first && slot - first < ptowsp_work_slot_count(work) &&
           ptowsp_work_is_valid(work);
}

// Finds the first merge of a slot: there are several if lanes share it. From `hint` on, where
// the last one was found: parts come in the order of merges, so it is mostly that one or the next, and
// otherwise found by bisection. merge_count for a slot without a merge.
static uint32_t pwsp_merge_find(const ptowsp_attention_plan *plan, uint32_t hint, uint32_t slot) {
    for (uint32_t i = hint; i < plan->merge_count && i - hint < 2; i++) {
        const bool is_first = i == hint || !pwsp_merge_has(plan, i - 1, slot);
        if (is_first && pwsp_merge_has(plan, i, slot)) {
            return i;
        }
    }
    uint32_t low = 0, high = plan->merge_count;  // before low all end at the slot or before it
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const PTOWSP_GM ptowsp_work *merge = &plan->merges[middle];
        if ((uint64_t)ptowsp_work_slot_first(merge) + ptowsp_work_slot_count(merge) <= slot) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < plan->merge_count && pwsp_merge_has(plan, low, slot) ? low : plan->merge_count;
}

// Calls a kernel, and tells when if the job has spans.
PWSP_INLINE void pwsp_attention_call(const pwsp_attention_worker *worker, ptowsp_work_fn fn,
                                     const PTOWSP_GM ptowsp_work *work, uint64_t at,
                                     uint32_t kind) {
    const ptowsp_attention_job *job = worker->job;
    if (PWSP_LIKELY(!job->spans)) {
        fn(work, worker->lane, job->user);
        return;
    }
    ptowsp_span *span = &job->spans[at];
    span->begin = ptowsp_clock_ns();
    fn(work, worker->lane, job->user);
    span->end = ptowsp_clock_ns();
    span->lane = worker->lane;
    span->kind = kind;
}

// Whether a unit has a slot. In plans without slots, as MoE plans are, work_id is the index.
PWSP_INLINE bool pwsp_attention_is_part(const ptowsp_attention_plan *plan,
                                        const PTOWSP_GM ptowsp_work *unit) {
    return (plan->slot_count > 0 || plan->merge_count > 0) &&
           ptowsp_work_slot(unit) != PTOWSP_NO_SLOT;
}

// Counts a part whose state is written, and merges its tile if it is the last one.
static void pwsp_attention_count_part(pwsp_attention_worker *worker, uint32_t slot) {
    const ptowsp_attention_job *job = worker->job;
    const ptowsp_attention_plan *plan = job->plan;
    uint32_t merge = pwsp_merge_find(plan, worker->merge, slot);
    PTOWSP_ASSERT(merge < plan->merge_count && "a part without a merge");
    worker->merge = merge;
    uint32_t slot_count = ptowsp_work_slot_count(&plan->merges[merge]);
    uint32_t *count = pwsp_attention_cursor(job, plan->lane_count) + merge;
    uint32_t done = pwsp_fetch_add_acq_rel(count, 1u) + 1;  // (1)
    PTOWSP_ASSERT(done <= slot_count && "progress was not zero");
    if (done == slot_count) {
        pwsp_store_relaxed(count, 0u);
        for (uint32_t i = merge; i < plan->merge_count && pwsp_merge_has(plan, i, slot); i++) {
            pwsp_attention_call(worker, job->merge, &plan->merges[i], plan->unit_count + i,
                                job->table_count);
        }
    }
}

// The same for a part of a prefix plan's segment that is not whole: it is one of each request that
// has rows in it, and the last part of a request has its rows joined.
static void pwsp_prefix_count_part(const pwsp_attention_worker *worker,
                                   const PTOWSP_GM ptowsp_work *unit) {
    const ptowsp_attention_job *job = worker->job;
    const ptowsp_prefix_plan *prefix = job->prefix;
    const ptowsp_prefix_segment *segment = &prefix->segments[unit->params[0]];
    const uint32_t tokens = prefix->attention.tile_tokens;
    const uint32_t begin = segment->token_begin + unit->reserved * tokens;
    const uint32_t left = segment->token_begin + segment->token_count - begin;
    const uint32_t end = begin + (left < tokens ? left : tokens);
    // The last position whose tokens begin there or before.
    uint32_t low = segment->first, high = segment->first + segment->count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (prefix->requests[middle].token_begin <= begin) {
            low = middle;
        } else {
            high = middle;
        }
    }
    uint32_t *counts = pwsp_attention_joins(job);
    for (; prefix->requests[low].token_begin < end; low++) {
        if (prefix->requests[low].join == PTOWSP_NO_NODE) {
            continue;  // it has no query tokens
        }
        const uint32_t index = prefix->requests[low].join + unit->params[1];
        const PTOWSP_GM ptowsp_work *join = &prefix->joins[index];
        uint32_t done = pwsp_fetch_add_acq_rel(&counts[index], 1u) + 1;  // (1)
        PTOWSP_ASSERT(done <= join->params[3] && "progress was not zero");
        if (done == join->params[3]) {
            pwsp_store_relaxed(&counts[index], 0u);
            pwsp_attention_call(worker, job->join, join,
                                job->plan->unit_count + job->plan->merge_count + index,
                                job->table_count + 1);
        }
    }
}

// Runs the units [begin, end) of the plan in order.
static void pwsp_attention_units(pwsp_attention_worker *worker, uint64_t begin, uint64_t end) {
    const PTOWSP_GM ptowsp_work *units = worker->job->plan->units;
    const ptowsp_work_fn *table = worker->job->table;
    const ptowsp_prefix_plan *prefix = worker->job->prefix;
    for (uint64_t i = begin; i < end; i++) {
        if (ptowsp_work_is_valid(&units[i])) {
            pwsp_attention_call(worker, table[units[i].tier], &units[i], i, units[i].tier);
            if (!pwsp_attention_is_part(worker->job->plan, &units[i])) {
                continue;
            }
            if (prefix && !prefix->segments[units[i].params[0]].is_whole) {
                pwsp_prefix_count_part(worker, &units[i]);
            } else {
                pwsp_attention_count_part(worker, ptowsp_work_slot(&units[i]));
            }
        }
    }
}

// -- lists ----------------------------------------------------------------------------------------

// The first lane of a worker; for worker_count it is lane_count. It is one of the plan's for each
// worker, even for those that have none.
static uint32_t pwsp_attention_lane_first(const ptowsp_attention_plan *plan, uint32_t worker,
                                          uint32_t worker_count) {
    return (uint32_t)((uint64_t)worker * plan->lane_count / worker_count);
}

// Takes units of a list and runs them until the list is empty: one at a time, or all at once.
// The cursor never passes the end, and orders no data that a unit has written: relaxed.
static void pwsp_attention_drain(pwsp_attention_worker *worker, uint32_t lane, bool is_whole) {
    const ptowsp_attention_plan *plan = worker->job->plan;
    uint32_t *cursor = pwsp_attention_cursor(worker->job, lane);
    uint32_t first = plan->unit_begin[lane], count = plan->unit_begin[lane + 1] - first;
    uint32_t taken = pwsp_load_relaxed(cursor);
    while (taken < count) {
        uint32_t end = is_whole ? count : taken + 1;
        if (pwsp_cas_relaxed(cursor, &taken, end)) {
            pwsp_attention_units(worker, (uint64_t)first + taken, (uint64_t)first + end);
            taken = pwsp_load_relaxed(cursor);
        }
    }
    PTOWSP_ASSERT(taken == count);
}

// Drains the lists of one's own lanes, from the first one on, and then all others, backwards: so a
// worker begins to help its neighbour with the list to which that one comes last.
static void pwsp_attention_drain_all(const ptowsp_attention_job *job, uint32_t lane,
                                     uint32_t worker_count, bool is_whole) {
    pwsp_attention_worker worker = {job, lane, 0};
    uint32_t lane_count = job->plan->lane_count;
    uint32_t begin = pwsp_attention_lane_first(job->plan, lane, worker_count);
    uint32_t end = pwsp_attention_lane_first(job->plan, lane + 1, worker_count);
    for (uint32_t i = begin; i < end; i++) {
        pwsp_attention_drain(&worker, i, is_whole);
    }
    for (uint32_t i = begin; i > 0; i--) {
        pwsp_attention_drain(&worker, i - 1, is_whole);
    }
    for (uint32_t i = lane_count; i > end; i--) {
        pwsp_attention_drain(&worker, i - 1, is_whole);
    }
}

// Clears the cursors after a run.
static void pwsp_attention_clear(const ptowsp_attention_job *job) {
    for (uint32_t lane = 0; lane < job->plan->lane_count; lane++) {
        pwsp_store_relaxed(pwsp_attention_cursor(job, lane), 0u);
    }
}

void ptowsp_attention_run_worker(const ptowsp_attention_job *job, uint32_t worker,
                                 uint32_t worker_count) {
    PTOWSP_ASSERT(worker < worker_count && "there is no such worker");
    if (!job || !job->plan || !job->table || !job->progress ||
        (job->plan->merge_count > 0 && !job->merge)) {
        return;
    }
    const ptowsp_attention_plan *plan = job->plan;
    if (!job->is_stealing || worker_count == 1) {
        pwsp_attention_worker self = {job, worker, 0};
        uint32_t begin = pwsp_attention_lane_first(plan, worker, worker_count);
        uint32_t end = pwsp_attention_lane_first(plan, worker + 1, worker_count);
        pwsp_attention_units(&self, plan->unit_begin[begin], plan->unit_begin[end]);
        return;
    }
    pwsp_attention_drain_all(job, worker, worker_count, false);
    uint32_t returned = pwsp_fetch_add_acq_rel(job->progress, 1u) + 1;  // (2)
    PTOWSP_ASSERT(returned <= worker_count && "progress was not zero");
    if (returned == worker_count) {
        pwsp_attention_clear(job);
        pwsp_store_relaxed(job->progress, 0u);
    }
}

// -- checked runs ---------------------------------------------------------------------------------

#define PWSP_ATTENTION_FAIL(error, index, ...)                                                     \
    pwsp_error_set(error, PTOWSP_INVALID_PARAMS, index, "attention: " __VA_ARGS__)

// Checks a job's pointers and its plan's lists.
static ptowsp_status pwsp_attention_check_lists(const ptowsp_attention_job *job,
                                                pwsp_error *error) {
    const ptowsp_attention_plan *plan = job ? job->plan : NULL;
    const char *missing = !job                               ? "the job"
                          : !plan                            ? "the job's plan"
                          : !job->progress                   ? "the job's progress"
                          : !job->table && job->table_count  ? "the job's table"
                          : !plan->unit_begin                ? "the plan's unit_begin"
                          : !plan->units && plan->unit_count ? "the plan's units"
                          : job->prefix && job->prefix->join_count > 0 && !job->join
                              ? "the job's join"
                          : plan->merge_count == 0 ? NULL
                          : !job->merge            ? "the job's merge"
                          : !plan->merges          ? "the plan's merges"
                                                   : NULL;
    if (missing) {
        return PWSP_ATTENTION_FAIL(error, PTOWSP_NO_INDEX, "%s is NULL", missing);
    }
    if (plan->lane_count == 0 || plan->lane_count > PTOWSP_ATTENTION_LANE_MAX) {
        return PWSP_ATTENTION_FAIL(error, PTOWSP_NO_INDEX, "the plan has %u lanes, not 1 to %u",
                                   (unsigned)plan->lane_count, (unsigned)PTOWSP_ATTENTION_LANE_MAX);
    }
    if (job->prefix && plan != &job->prefix->attention) {
        return PWSP_ATTENTION_FAIL(error, PTOWSP_NO_INDEX,
                                   "the job's plan is not its prefix plan's");
    }
    uint32_t end = 0;
    for (uint32_t lane = 0; lane < plan->lane_count; lane++) {
        uint32_t begin = plan->unit_begin[lane];
        bool is_next = begin == end;
        end = plan->unit_begin[lane + 1];
        if (!is_next || end < begin || end > plan->unit_count) {
            return PWSP_ATTENTION_FAIL(
                error, PTOWSP_NO_INDEX,
                "lane %u has units %u to %u of %u, after those of lanes below", (unsigned)lane,
                (unsigned)begin, (unsigned)end, (unsigned)plan->unit_count);
        }
    }
    if (end != plan->unit_count) {
        return PWSP_ATTENTION_FAIL(error, PTOWSP_NO_INDEX, "lanes have %u of %u units",
                                   (unsigned)end, (unsigned)plan->unit_count);
    }
    return PTOWSP_OK;
}

static ptowsp_status pwsp_attention_job_check(const ptowsp_attention_job *job, pwsp_error *error) {
    ptowsp_status status = pwsp_attention_check_lists(job, error);
    if (status != PTOWSP_OK) {
        return status;
    }
    const ptowsp_attention_plan *plan = job->plan;
    uint32_t merge = 0;
    for (uint32_t i = 0; i < plan->unit_count; i++) {
        const PTOWSP_GM ptowsp_work *unit = &plan->units[i];
        if (!ptowsp_work_is_valid(unit)) {
            continue;
        }
        if (unit->tier >= job->table_count || !job->table[unit->tier]) {
            return PWSP_ATTENTION_FAIL(error, i,
                                       "unit %u has tier %u, for which the table has no kernel",
                                       (unsigned)i, (unsigned)unit->tier);
        }
        if (job->prefix && unit->params[0] >= job->prefix->segment_count) {
            return PWSP_ATTENTION_FAIL(error, i, "unit %u has segment %u of %u", (unsigned)i,
                                       (unsigned)unit->params[0],
                                       (unsigned)job->prefix->segment_count);
        }
        if (!pwsp_attention_is_part(plan, unit)) {
            continue;
        }
        uint32_t slot = ptowsp_work_slot(unit);
        merge = pwsp_merge_find(plan, merge, slot);
        if (merge == plan->merge_count) {
            return PWSP_ATTENTION_FAIL(error, i, "unit %u has slot %u, which is of no merge",
                                       (unsigned)i, (unsigned)slot);
        }
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_attention_job_check(const ptowsp_attention_job *job, uint64_t *out_index) {
    pwsp_error error;
    error.index = PTOWSP_NO_INDEX;
    ptowsp_status status = pwsp_attention_job_check(job, &error);
    if (out_index) {
        *out_index = error.index;
    }
    return status;
}

ptowsp_status ptowsp_attention_run_serial(const ptowsp_attention_job *job, uint64_t *out_index) {
    ptowsp_status status = ptowsp_attention_job_check(job, out_index);
    if (status == PTOWSP_OK) {
        ptowsp_attention_run_worker(job, 0, 1);
    }
    return status;
}

// A job on the lanes of a context. Some of them may be left out, so they take lists from each other
// in any case.
typedef struct pwsp_attention_lanes {
    const ptowsp_attention_job *job;
    uint32_t lane_count;
    bool is_whole;  // lists are taken as a whole
} pwsp_attention_lanes;

static void pwsp_attention_lane(void *arg, uint32_t lane) {
    const pwsp_attention_lanes *lanes = (const pwsp_attention_lanes *)arg;
    pwsp_attention_drain_all(lanes->job, lane, lanes->lane_count, lanes->is_whole);
}

ptowsp_status ptowsp_attention_run(ptowsp_context *context, const ptowsp_attention_job *job) {
    PTOWSP_ASSERT(context);
    if (!pwsp_context_enter(context)) {
        return pwsp_fail_busy(context);
    }
    pwsp_error error;
    ptowsp_status status = pwsp_attention_job_check(job, &error);
    if (status != PTOWSP_OK) {
        pwsp_fail(context, status, error.index, "%s", error.text);
    } else if (job->plan->unit_count > 0) {
        uint32_t lane_count = pwsp_pool_lane_count(context->pool);
        pwsp_attention_lanes lanes = {job, lane_count, !job->is_stealing || lane_count == 1};
        status = pwsp_context_run_lanes(context, pwsp_attention_lane, &lanes);
        pwsp_attention_clear(job);
    }
    pwsp_context_leave(context);
    return status;
}
