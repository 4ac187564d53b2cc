// Pipelines of a run. One is run from its start to its end when the walk comes to it, on a time of
// its own that begins at 0; that gives its makespan, with which it is then issued like a task. When
// it starts on the clock of the run is found by that; only then do its tasks' records get their
// places on it.
//
// Before kernels are called, its processes are walked one after another, as far as they do not
// depend on tokens.

#include "call.h"
#include "issue.h"

// -- tasks ----------------------------------------------------------------------------------------

static void pwsp_run_record_process_task(ptowsp_run *run, const pwsp_process *process,
                                         ptowsp_cycles cycles) {
    const pwsp_expander *x = &run->expander;
    ptowsp_task_record *record = &run->sim.records[run->sim.task_count];
    record->ready = record->issue = record->start = process->time;
    record->end = process->time + cycles;
    record->cause = process->task;
    record->stall = process->mover == PWSP_MOVER_CHANNEL ? PTOWSP_STALL_CHANNEL
                    : process->mover == PWSP_MOVER_TASK  ? PTOWSP_STALL_LANE
                                                         : PTOWSP_STALL_NONE;
    record->lane = PTOWSP_NO_LANE;
    record->kernel = x->task_op->kernel;
    record->node = x->node;
}

static bool pwsp_run_process_task(void *user, const pwsp_process *process,
                                  ptowsp_cycles *out_cycles) {
    ptowsp_run *run = (ptowsp_run *)user;
    if (!(run->is_issued ? pwsp_issue_process_task(run->issue, process->index, out_cycles)
                         : pwsp_run_kernel(run, run->is_time_only, out_cycles))) {
        return false;
    }
    if (run->has_records) {
        if (!pwsp_sim_record_room(&run->sim)) {
            pwsp_expander_fail(&run->expander, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                               "out of memory for records of tasks");
            return false;
        }
        pwsp_run_record_process_task(run, process, *out_cycles);
    }
    run->sim.task_count++;
    return true;
}

static bool pwsp_run_process_load(void *user) {
    return pwsp_issue_process_load(((ptowsp_run *)user)->issue);
}

static bool pwsp_run_process_settle(void *user) {
    return pwsp_issue_process_settle(((ptowsp_run *)user)->issue);
}

// -- pipelines ------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_run_begin_pipelines(ptowsp_run *run, const ptowsp_run_options *options) {
    const ptowsp_program *program = run->program;
    uint32_t latency = program->first_symbol + program->latency_symbol;
    pwsp_pipeline_host host;
    memset(&host, 0, sizeof host);
    host.task = pwsp_run_process_task;
    host.load = run->is_issued ? pwsp_run_process_load : NULL;
    host.settle = run->is_issued ? pwsp_run_process_settle : NULL;
    host.user = run;
    host.is_ordered = !run->is_time_only;
    host.has_records = options->record_tasks;
    host.token_limit = options->token_limit ? options->token_limit : UINT64_MAX;
    host.has_latency = program->latency_symbol && run->is_bound[latency];
    host.latency = host.has_latency ? run->initial[latency] : 0;
    run->expander.program = program;
    return pwsp_pipelines_begin(&run->pipelines, &run->expander, &host, run->initial);
}

// What it is to what surrounds it.
static pwsp_pipeline_arrival pwsp_run_pipeline_arrival(ptowsp_run *run, const pwsp_pipeline_op *op,
                                                       uint64_t first_task, uint64_t cycles) {
    const ptowsp_program *program = run->program;
    const pwsp_pipelines *pipelines = &run->pipelines;
    pwsp_pipeline_arrival arrival;
    memset(&arrival, 0, sizeof arrival);
    arrival.cycles = cycles;
    arrival.op = &op->task;
    arrival.views = PWSP_PROGRAM_AT(program, views, pwsp_tile_view, op->task.first_view);
    arrival.tiles = run->wholes;
    arrival.first_task = first_task;
    arrival.task_count = run->sim.task_count - first_task;
    arrival.end_task = pipelines->end_task;
    arrival.node = run->expander.node;
    arrival.pipeline = pipelines->index;
    arrival.run = (uint32_t)pipelines->stats[pipelines->index].run_count;
    for (uint32_t i = 0; i < op->task.view_count; i++) {
        memset(&run->wholes[i], 0, sizeof run->wholes[i]);
        run->wholes[i].tensor = arrival.views[i].tensor;
    }
    return arrival;
}

PWSP_INTERNAL bool pwsp_run_pipeline(ptowsp_run *run) {
    const pwsp_pipeline_op *op = run->expander.pipeline;
    uint64_t first_task = run->sim.task_count;
    ptowsp_cycles cycles;
    bool is_good = pwsp_pipelines_run(&run->pipelines, &cycles);
    pwsp_pipeline_arrival arrival = pwsp_run_pipeline_arrival(run, op, first_task, cycles);
    bool is_issued = run->is_flow ? pwsp_flow_pipeline(&run->flow, &arrival)
                                  : pwsp_lanes_pipeline(&run->lanes, &arrival);
    if (!is_good && is_issued && run->is_flow) {
        pwsp_flow_end(&run->flow);  // it is the last, and what has been done gets its times
    }
    return is_good && is_issued;
}

// Walks the process that the expander is in without kernels, to its end. False with the expander's
// error.
static bool pwsp_run_process_dry(ptowsp_run *run) {
    pwsp_expander *x = &run->expander;
    for (;;) {
        switch (pwsp_expander_next(x)) {
        case PWSP_EVENT_TASK:
            if (x->kernel->code && !pwsp_run_check_tiles(run, x->kernel->code)) {
                return false;
            }
            break;
        case PWSP_EVENT_SLOT_LOAD: pwsp_expander_load(x); break;
        case PWSP_EVENT_ERROR:
        case PWSP_EVENT_END:
        case PWSP_EVENT_PIPELINE: return false;
        case PWSP_EVENT_PROCESS_END: return true;
        case PWSP_EVENT_SEND:
        case PWSP_EVENT_RECEIVE:
        case PWSP_EVENT_CLOSE:
        case PWSP_EVENT_PARALLEL:
        case PWSP_EVENT_SEQUENTIAL:
        case PWSP_EVENT_SCOPE_END:
        case PWSP_EVENT_RESET:
        case PWSP_EVENT_NONE: break;
        }
    }
}

PWSP_INTERNAL bool pwsp_run_pipeline_dry(ptowsp_run *run) {
    pwsp_expander *x = &run->expander;
    pwsp_pipelines *pipelines = &run->pipelines;
    pwsp_frame *frames = x->frames;
    uint32_t frame_count = x->frame_count, next_op = x->next_op;
    uint64_t task_count = x->task_count;
    bool has_skipped = x->has_skipped;
    pwsp_pipelines_place(pipelines);
    for (uint32_t i = 0; i < pipelines->running_count; i++) {
        pwsp_process_enter(pipelines, &pipelines->processes[i]);
        if (!pwsp_run_process_dry(run)) {
            return false;
        }
        pwsp_process_leave(pipelines, &pipelines->processes[i]);
    }
    pwsp_pipelines_restore(pipelines);
    x->frames = frames;
    x->frame_count = frame_count;
    x->next_op = next_op;
    x->task_count = task_count;  // those of processes are not issued
    x->has_skipped = has_skipped;
    return true;
}

// -- results --------------------------------------------------------------------------------------

static void pwsp_run_tell(uint32_t count, uint32_t *out_count) {
    if (out_count) {
        *out_count = count;
    }
}

const ptowsp_pipeline_stats *ptowsp_run_pipelines(const ptowsp_run *run, uint32_t *out_count) {
    uint32_t count = (uint32_t)run->program->pipelines.count;
    pwsp_run_tell(count, out_count);
    return count ? run->pipelines.stats : NULL;
}

const ptowsp_process_stats *ptowsp_run_processes(const ptowsp_run *run, uint32_t *out_count) {
    uint32_t count = run->pipelines.process_count;
    pwsp_run_tell(count, out_count);
    return count ? run->pipelines.process_stats : NULL;
}

const ptowsp_channel_stats *ptowsp_run_channels(const ptowsp_run *run, uint32_t *out_count) {
    uint32_t count = (uint32_t)run->program->channels.count;
    pwsp_run_tell(count, out_count);
    return count ? run->pipelines.channel_stats : NULL;
}

const ptowsp_step_record *ptowsp_run_steps(const ptowsp_run *run, uint64_t *out_count) {
    uint64_t count = run->pipelines.step_count;
    if (out_count) {
        *out_count = count;
    }
    return count ? run->pipelines.steps : NULL;
}

const uint64_t *ptowsp_run_critical_steps(const ptowsp_run *run, uint32_t pipeline,
                                          uint64_t *out_count) {
    bool is_known = pipeline < run->program->pipelines.count && run->has_records;
    const pwsp_chain *chain = is_known ? &run->pipelines.chains[pipeline] : NULL;
    uint64_t count = chain ? chain->count : 0;
    if (out_count) {
        *out_count = count;
    }
    return count ? run->pipelines.chain_steps + chain->first : NULL;
}

void ptowsp_run_print_stuck(const ptowsp_run *run, ptowsp_text text) {
    pwsp_stuck_print(&run->pipelines, text);
}
