// Executing a run: check the bindings, walk the program once without kernels, walk it with them.
//
//      bindings -> complete? well-formed?     (nothing has been called yet)
//      walk 1   -> every view in bounds?      skips what depends on data that tasks write
//      walk 2   -> kernel, then time          for each task, in program order
//
// When nothing is executed, the first walk is left out, as there is no data to protect, unless the number
// of tasks must be known before the second. Both walks use
// the same machine (the expander). On lanes, and on a device, a front end issues the tasks of the
// second walk, and time accounts for them as they retire.

#include "fingerprint.h"

#include <inttypes.h>

// -- finishing ------------------------------------------------------------------------------------

// The status of an execution that was cut, unless all was done by then. Something that is stuck
// stays so.
static ptowsp_status pwsp_run_cut(ptowsp_run *run, ptowsp_status status) {
    ptowsp_status cut = pwsp_halt_status(&run->walk.halt);
    if (cut == PTOWSP_OK || status == PTOWSP_OK || status == PTOWSP_STUCK) {
        return status;
    }
    return pwsp_fail(run->context, cut, PTOWSP_NO_INDEX, "run: %s; %" PRIu64 " tasks accounted for",
                     cut == PTOWSP_CANCELLED ? "cancelled" : "its time limit is over",
                     run->time.sim.stats.task_count);
}

PWSP_INTERNAL ptowsp_status pwsp_run_finish(ptowsp_run *run, ptowsp_status status) {
    pwsp_sim *sim = &run->time.sim;
    ptowsp_run_stats *stats = &sim->stats;
    pwsp_result *result = &run->result;
    pwsp_pipelines *pipelines = &run->pipes.pipelines;
    pwsp_sim_end(sim);
    if (sim->has_records) {
        pwsp_recorder_end(&result->recorder);
    }
    for (uint32_t i = 0; i < run->program->pipelines.count; i++) {
        pipelines->stats[i].start_cycles = sim->starts[i].time;
    }
    for (uint32_t i = 0; i < pipelines->process_count; i++) {
        const ptowsp_process_stats *process = &pipelines->process_stats[i];
        ptowsp_cycles *waited = &stats->stall_cycles[PTOWSP_STALL_CHANNEL];
        stats->busy_cycles = pwsp_sum_u64(stats->busy_cycles, process->busy_cycles);
        *waited = pwsp_sum_u64(*waited, process->full_cycles);
        *waited = pwsp_sum_u64(*waited, process->empty_cycles);
    }
    stats->slot_load_count += pipelines->slot_load_count;
    if (result->has_records && status == PTOWSP_OK &&
        !((!result->recorder.is_dense || pwsp_result_find_critical(result)) &&
          pwsp_pipelines_end(pipelines))) {
        status = PWSP_NO_MEMORY(run->context, "run: out of memory");
    }
    stats->memory_bytes = sizeof(ptowsp_run) + run->blocks.bytes +
                          pwsp_comm_bytes(&run->walk.comm) + pwsp_workers_bytes(run->workers) +
                          pwsp_start_bytes(run->start);
    status = pwsp_run_cut(run, status);
    result->is_time_only = run->walk.is_time_only;
    result->has_dry_walk = !result->is_time_only || pwsp_timeline_needs_count(&run->time);
    result->is_plain = pwsp_timeline_is_plain(&run->time);
    result->is_done = status == PTOWSP_OK;
    return result->is_done && run->is_strict ? pwsp_run_compare(run, false) : status;
}

// Checks everything before anything is called. *out_task_count is the number that time needs.
static ptowsp_status pwsp_run_prepare(ptowsp_run *run, const ptowsp_run_options *options,
                                      const pwsp_process_tasks *tasks, uint64_t *out_task_count) {
    *out_task_count = UINT64_MAX;
    ptowsp_status status = pwsp_bindings_verify(&run->bindings, run->walk.is_time_only);
    if (status == PTOWSP_OK && run->is_strict) {
        status = pwsp_run_compare(run, true);
    }
    if (status == PTOWSP_OK && run->program->has_link) {
        status = pwsp_comm_begin(&run->walk.comm, run->program, run->bindings.arrays,
                                 &run->time.sim, run->walk.is_time_only);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    pwsp_timeline_bind(&run->time, run->bindings.effective);
    status = pwsp_walk_find_unknown(&run->walk, &run->time.sim.deps);
    if (status != PTOWSP_OK) {
        return status;
    }
    if (run->program->pipelines.count && !pwsp_pipes_begin(&run->pipes, options, tasks)) {
        return pwsp_run_fail_walk(run);
    }
    if (!run->walk.is_time_only || pwsp_timeline_needs_count(&run->time)) {
        return pwsp_run_walk_dry(run, out_task_count);
    }
    return PTOWSP_OK;
}

// The records that an execution keeps.
static ptowsp_record_options pwsp_run_recording(const ptowsp_run *run,
                                                const ptowsp_run_options *options) {
    ptowsp_record_options record = run->record;
    if (options->record_tasks && record.level < PTOWSP_RECORD_TASKS) {
        record.level = PTOWSP_RECORD_TASKS;
    }
    return record;
}

// All of an execution before the walk; by a front end if has_front.
static ptowsp_status pwsp_run_open_by(ptowsp_run *run, const ptowsp_run_options *asked,
                                      bool is_on_lanes, bool has_front) {
    pwsp_process_tasks tasks;
    uint64_t task_count;
    ptowsp_run_options chosen = *asked;
    const ptowsp_run_options *options = &chosen;
    const ptowsp_record_options record = pwsp_run_recording(run, asked);
    chosen.record_tasks = record.level >= PTOWSP_RECORD_TASKS;
    bool is_clocked = record.has_clock && asked->mode == PTOWSP_RUN_EXECUTE;
    pwsp_recorder *clocked = is_clocked ? &run->result.recorder : NULL;
    PTOWSP_ASSERT(pwsp_run_is_running(run) && (!has_front || run->front));
    memset(&tasks, 0, sizeof tasks);
    if (has_front) {
        tasks = pwsp_frontend_process_tasks(run->front);
    }
    pwsp_result_forget(&run->result, !has_front    ? 1
                                     : is_on_lanes ? asked->lane_count
                                                   : PWSP_RESULT_ON_DEVICE);
    run->result.model = asked->cost.model;
    bool has_memory = pwsp_recorder_begin(&run->result.recorder, &run->time.sim, &record);
    pwsp_sim_begin(&run->time.sim);
    run->keeps = false;
    has_memory =
        has_memory && (!has_front || pwsp_frontend_set_clock(run->front, clocked, is_on_lanes));
    run->walk.is_time_only = options->mode == PTOWSP_RUN_TIME_ONLY;
    run->pipes.clocked = clocked;
    if (run->program->pipelines.count) {
        pwsp_pipelines_forget(&run->pipes.pipelines);
    }
    ptowsp_status status =
        has_memory ? pwsp_run_prepare(run, options, has_front ? &tasks : NULL, &task_count)
                   : PWSP_NO_MEMORY(run->context, "run: out of memory");
    if (status != PTOWSP_OK) {
        return status;
    }
    run->result.has_records = options->record_tasks;
    run->result.has_clock = is_clocked;
    return pwsp_timeline_begin(&run->time, record.level != PTOWSP_RECORD_NONE, task_count)
               ? PTOWSP_OK
               : pwsp_run_fail_time(run);
}

PWSP_INTERNAL ptowsp_status pwsp_run_open(ptowsp_run *run, const ptowsp_run_options *options) {
    pwsp_walk_set_cost(&run->walk, &options->cost);
    return pwsp_run_open_by(run, options, false, false);
}

// Executes on the calling thread, or issues through a front end, to lanes or to a device.
static ptowsp_status pwsp_run_execute(ptowsp_run *run, const ptowsp_run_options *asked,
                                      bool is_on_lanes, pwsp_run_issue_fn issue, void *user) {
    ptowsp_status status = pwsp_run_open_by(run, asked, is_on_lanes, issue != NULL);
    if (status == PTOWSP_OK) {
        status = issue ? issue(user, run) : pwsp_run_walk(run, run->walk.is_time_only);
    }
    return pwsp_run_finish(run, status);
}

// -- on lanes -------------------------------------------------------------------------------------

// Issues tasks, from an event on that has been walked, or NONE; up to END, or NONE: then some are to be
// kept.
static ptowsp_status pwsp_run_issue(ptowsp_run *run, const pwsp_executor *executor,
                                    pwsp_event *event) {
    *event = pwsp_frontend_walk(run->front, executor, *event);
    if (*event != PWSP_EVENT_ERROR) {
        return PTOWSP_OK;
    }
    return run->front->failure == PWSP_FRONTEND_FAILED_WALK ? pwsp_run_fail_walk(run)
                                                            : pwsp_run_fail_time(run);
}

PWSP_INTERNAL ptowsp_status pwsp_run_issue_to(ptowsp_run *run, const pwsp_executor *executor,
                                              uint32_t vector_count, uint32_t cube_count) {
    pwsp_event event = PWSP_EVENT_NONE;
    pwsp_frontend_begin(run->front, vector_count, cube_count);
    pwsp_walk_begin(&run->walk, false);
    return pwsp_run_issue(run, executor, &event);
}

typedef struct pwsp_run_on_lanes {
    ptowsp_run *run;
    uint32_t lane_count;
    pwsp_event event;  // walked, and to be issued, or NONE; at last END
    ptowsp_status status;
} pwsp_run_on_lanes;

// The walking lane: issues tasks, and in between keeps some.
static bool pwsp_run_issue_lane(void *user, const pwsp_executor *executor) {
    pwsp_run_on_lanes *on = (pwsp_run_on_lanes *)user;
    do {
        on->status = pwsp_run_issue(on->run, executor, &on->event);
        on->run->has_kept = on->status == PTOWSP_OK && on->event == PWSP_EVENT_NONE;
        if (on->run->has_kept) {
            on->status = pwsp_run_walk_kept(on->run, &on->event);
        }
    } while (on->status == PTOWSP_OK && on->event != PWSP_EVENT_END);
    return on->status == PTOWSP_OK;
}

// Other lanes are not called before there is something for them: where all tasks were kept last time, the
// calling thread begins alone.
static ptowsp_status pwsp_run_issue_lanes(void *user, ptowsp_run *run) {
    pwsp_run_on_lanes *on = (pwsp_run_on_lanes *)user;
    const pwsp_workers_job job = {&run->front->issue.reorder, run->front->is_homed,
                                  pwsp_run_issue_lane,        on,
                                  pwsp_frontend_move_link,    run->front};
    pwsp_frontend_begin(run->front, on->lane_count, 0);
    pwsp_walk_begin(&run->walk, false);
    if (run->has_kept && run->front->pace.may_keep) {
        on->status = pwsp_run_walk_kept(run, &on->event);
        if (on->status != PTOWSP_OK || on->event == PWSP_EVENT_END) {
            return on->status;
        }
    }
    bool is_kept,
        is_good = pwsp_workers_run(run->workers, run->context, on->lane_count, &job, &is_kept);
    if (is_good && !is_kept) {
        return pwsp_fail(run->context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                         "run: run_lanes did not call each lane once (the work is done)");
    }
    return on->status;
}

// Makes the front end for a number of lanes or cores. False with an error.
static ptowsp_status pwsp_run_reserve(ptowsp_run *run, uint32_t lane_count, bool has_workers) {
    const pwsp_memory *memory = &run->context->memory;
    run->front = run->front
                     ? run->front
                     : pwsp_frontend_create(&run->walk, &run->time, &run->pipes, &run->batch);
    bool is_good = run->front && pwsp_frontend_reserve(run->front, lane_count);
    if (is_good && has_workers) {
        run->workers = run->workers ? run->workers : pwsp_workers_create(memory);
        is_good = run->workers && pwsp_workers_reserve(run->workers, lane_count);
    }
    return is_good ? PTOWSP_OK : PWSP_NO_MEMORY(run->context, "run: out of memory");
}

// On lanes of the context, which stays busy meanwhile.
static ptowsp_status pwsp_run_execute_on_lanes(ptowsp_run *run, const ptowsp_run_options *options) {
    ptowsp_context *context = run->context;
    pwsp_run_on_lanes on = {run, options->lane_count, PWSP_EVENT_NONE, PTOWSP_OK};
    if (!pwsp_context_enter(context)) {
        return pwsp_fail_busy(run->owner);
    }
    ptowsp_status status = pwsp_run_reserve(run, options->lane_count, true);
    if (status == PTOWSP_OK) {
        status = pwsp_run_execute(run, options, true, pwsp_run_issue_lanes, &on);
    }
    pwsp_context_leave(context);
    return status;
}

// -- executing ------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_run_claim(ptowsp_run *run, const ptowsp_run_options *options) {
    if (pwsp_exchange_acquire(&run->is_running, 1u)) {
        return false;
    }
    pwsp_halt_begin(&run->walk.halt, options->time_limit_ns);
    return true;
}

PWSP_INTERNAL void pwsp_run_give_up(ptowsp_run *run, ptowsp_status status) {
    if (status != PTOWSP_OK && status != PTOWSP_BUSY && run->program->has_link) {
        pwsp_comm_give_up(&run->walk.comm);
    }
}

PWSP_INTERNAL void pwsp_run_leave(ptowsp_run *run) {
    PTOWSP_ASSERT(pwsp_run_is_running(run));
    pwsp_store_release(&run->is_running, 0u);
}

PWSP_INTERNAL bool pwsp_run_is_on_lanes(const ptowsp_run_options *options) {
    return options->lane_count > 1 && options->mode == PTOWSP_RUN_EXECUTE;
}

PWSP_INTERNAL ptowsp_status pwsp_run_check_options(ptowsp_run *run,
                                                   const ptowsp_run_options *options) {
    if ((uint32_t)options->mode > PTOWSP_RUN_TIME_ONLY) {
        return PWSP_REFUSE(run->context, "run: there is no mode %d", (int)options->mode);
    }
    char text[PWSP_COST_TEXT_MAX];
    if (!pwsp_cost_check(&options->cost, text)) {
        return PWSP_REFUSE(run->context, "run: %s", text);
    }
    const bool is_on_lanes = pwsp_run_is_on_lanes(options);
    if (run->program->lists.count && is_on_lanes) {
        return pwsp_fail(run->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                         "run: lists of tasks run on the calling thread, and lane_count is %u",
                         options->lane_count);
    }
    uint32_t lane_count = is_on_lanes ? pwsp_pool_lane_count(run->context->pool) : UINT32_MAX;
    if (options->lane_count > lane_count) {
        return PWSP_REFUSE(run->context, "run: lane_count is %u, but the context has %u lane%s",
                           options->lane_count, lane_count, lane_count == 1 ? "" : "s");
    }
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_run_execute_by(ptowsp_run *run, const ptowsp_run_options *options,
                                                uint32_t core_count, pwsp_run_issue_fn issue,
                                                void *user) {
    pwsp_walk_set_cost(&run->walk, &options->cost);
    ptowsp_status status = pwsp_run_reserve(run, core_count, false);
    return status == PTOWSP_OK ? pwsp_run_execute(run, options, false, issue, user) : status;
}

PWSP_INTERNAL ptowsp_status pwsp_run_execute_here(ptowsp_run *run,
                                                  const ptowsp_run_options *options) {
    pwsp_walk_set_cost(&run->walk, &options->cost);
    return pwsp_run_is_on_lanes(options) ? pwsp_run_execute_on_lanes(run, options)
                                         : pwsp_run_execute(run, options, false, NULL, NULL);
}

ptowsp_status ptowsp_run_execute(ptowsp_run *run, const ptowsp_run_options *options) {
    PTOWSP_ASSERT(run);
    ptowsp_run_options chosen = pwsp_run_options(options);
    if (pwsp_run_is_running(run) || pwsp_load_relaxed(&run->context->busy) ||
        !pwsp_run_claim(run, &chosen)) {
        return pwsp_fail_busy(run->owner);
    }
    ptowsp_status status = pwsp_run_check_options(run, &chosen);
    if (status == PTOWSP_OK) {
        status = pwsp_run_execute_here(run, &chosen);
    }
    pwsp_run_give_up(run, status);
    pwsp_run_leave(run);
    return status;
}

typedef struct pwsp_run_lead {
    ptowsp_run *run;
    const ptowsp_run_options *options;
} pwsp_run_lead;

static ptowsp_status pwsp_run_lead_execute(void *user) {
    const pwsp_run_lead *lead = (const pwsp_run_lead *)user;
    return ptowsp_run_execute(lead->run, lead->options);
}

ptowsp_status ptowsp_run_execute_worker(ptowsp_run *run, const ptowsp_run_options *options,
                                        uint32_t worker, uint32_t worker_count) {
    PTOWSP_ASSERT(run);
    pwsp_run_lead lead = {run, options};
    return ptowsp_context_run_worker(run->owner, worker, worker_count, pwsp_run_lead_execute,
                                     &lead);
}

void ptowsp_run_cancel(ptowsp_run *run) {
    PTOWSP_ASSERT(run);
    pwsp_halt_cancel(&run->walk.halt);
}

ptowsp_status ptowsp_run_what_if(ptowsp_run *run, const ptowsp_run_options *options,
                                 ptowsp_what_if *what_if) {
    PTOWSP_ASSERT(run);
    if (!what_if) {
        return pwsp_fail_null(run->owner, "run: what_if");
    }
    ptowsp_run_options chosen = pwsp_run_options(options);
    const bool is_memory = what_if->memory_percent > 0;
    if ((what_if->kernel == 0 && !is_memory) || what_if->kernel >= run->program->kernels.count ||
        what_if->percent > 1000) {
        return PWSP_REFUSE(run->context,
                           "run: what if kernel %u took %u percent: no such kernel, or over 1000",
                           what_if->kernel, what_if->percent);
    }
    if (is_memory &&
        (!pwsp_schedule_shares(&run->program->schedule) || what_if->memory_percent > 1000)) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "run: what if memory had %u percent of its rates: lanes share none, or "
                         "over 1000",
                         what_if->memory_percent);
    }
    if (pwsp_run_is_running(run)) {
        return pwsp_fail_busy(run->owner);
    }
    const ptowsp_record_options record = run->record;
    memset(&run->record, 0, sizeof run->record);
    chosen.mode = PTOWSP_RUN_TIME_ONLY;
    chosen.record_tasks = false;
    run->walk.scaled_kernel = what_if->kernel;
    run->walk.scaled_percent = what_if->percent;
    run->time.sim.memory_percent = what_if->memory_percent;
    ptowsp_ranks *const ranks = run->walk.comm.bound.ranks;
    run->walk.comm.bound.ranks = NULL;  // other ranks do not ask: of this rank alone
    ptowsp_status status = ptowsp_run_execute(run, &chosen);
    run->walk.comm.bound.ranks = ranks;
    run->walk.scaled_kernel = 0;
    run->time.sim.memory_percent = 0;
    run->record = record;
    what_if->makespan_cycles = run->time.sim.stats.makespan_cycles;
    return status;
}
