// Pipelines of a run. When the walk reaches a pipeline, it runs from start to end on its own time,
// which begins at 0. The resulting makespan is then issued like a task, and that gives the start on
// the run's clock. Only then do the records of its tasks get their places on that clock. If its issue is
// held until other ranks continue, it has run: its arrival is kept, and issued again.
//
// Before kernels are called, its processes are walked one after another, as far as they do not
// depend on tokens.

#include "run_pipelines.h"

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_pipes_init(pwsp_pipes *pipes, pwsp_walk *walk, pwsp_timeline *time) {
    const ptowsp_program *program = walk->program;
    memset(pipes, 0, sizeof *pipes);
    pipes->walk = walk;
    pipes->time = time;
    return PWSP_ALLOC(&walk->memory, pipes->wholes, program->tensors.count + 1) &&
           pwsp_pipelines_init(&pipes->pipelines, &walk->memory, program);
}

// -- tasks ----------------------------------------------------------------------------------------

// The record is complete when the pipeline has started. False when memory is out.
static bool pwsp_pipes_record_task(pwsp_pipes *pipes, const pwsp_process *process,
                                   ptowsp_cycles cycles) {
    const pwsp_expander *x = &pipes->walk->expander;
    pwsp_sim *sim = &pipes->time->sim;
    PWSP_ZERO(pwsp_arrival, arrival);
    pwsp_walk_arrival(x, &arrival);
    ptowsp_task_record *record = sim->recorder.add(sim->recorder.user, &arrival);
    if (!record) {
        return false;
    }
    record->ready = record->issue = record->start = process->time;
    record->end = process->time + cycles;
    record->cause = process->task;
    record->stall = process->mover == PWSP_MOVER_CHANNEL ? PTOWSP_STALL_CHANNEL
                    : process->mover == PWSP_MOVER_TASK  ? PTOWSP_STALL_LANE
                                                         : PTOWSP_STALL_NONE;
    record->lane = PTOWSP_NO_LANE;
    record->kernel = x->task_op->kernel;
    record->node = x->node;
    return true;
}

static bool pwsp_pipes_task(void *user, const pwsp_process *process, ptowsp_cycles *out_cycles) {
    pwsp_pipes *pipes = (pwsp_pipes *)user;
    const pwsp_process_tasks *tasks = &pipes->tasks;
    pwsp_sim *sim = &pipes->time->sim;
    pwsp_wall_mark mark = {0, 0, 0, 0};
    bool is_clocked = pipes->clocked && !tasks->task;
    mark.ready = mark.start = is_clocked ? pwsp_ticks() : 0;
    pipes->mark.end = 0;
    if (!(tasks->task ? tasks->task(tasks->user, process->index, out_cycles)
                      : pwsp_walk_kernel(pipes->walk, pipes->walk->is_time_only, out_cycles))) {
        return false;
    }
    mark.end = is_clocked ? pwsp_ticks() : 0;
    *out_cycles = pwsp_walk_scaled(pipes->walk, *out_cycles);
    if (sim->has_records && !pwsp_pipes_record_task(pipes, process, *out_cycles)) {
        pwsp_expander_fail(&pipes->walk->expander, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                           "out of memory for records of tasks");
        return false;
    }
    if (pipes->clocked) {
        pwsp_recorder_clock(pipes->clocked, sim->task_count, is_clocked ? &mark : &pipes->mark);
    }
    sim->task_count++;
    return true;
}

// Is a task of an op its kernel's cycles alone? Only time is measured, nothing is recorded, and
// there are neither tiles to be checked nor arrays to be read outside their ends.
static bool pwsp_pipes_is_constant(void *user, const pwsp_task_op *task,
                                   ptowsp_cycles *out_cycles) {
    const pwsp_pipes *pipes = (const pwsp_pipes *)user;
    const pwsp_walk *walk = pipes->walk;
    const ptowsp_program *program = walk->program;
    const pwsp_kernel_info *kernel = &program->kernels.items[task->kernel];
    bool is_constant = walk->is_time_only && !pipes->time->sim.has_records && !pipes->tasks.task &&
                       walk->scaled_kernel == 0 && task->view_count == 0 && !kernel->cost &&
                       !kernel->code && kernel->unit != PTOWSP_UNIT_LINK;
    for (uint32_t i = 0; i < task->axis_count + task->scalar_count; i++) {
        const pwsp_code *code = &program->codes.items[task->first_code + i];
        for (uint32_t j = code->begin; is_constant && j < code->end; j++) {
            is_constant = program->instructions.items[j].opcode != PWSP_OPCODE_READ;
        }
    }
    *out_cycles = kernel->cycles;
    return is_constant && kernel->cycles <= PTOWSP_CYCLES_MAX;
}

// -- pipelines ------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_pipes_begin(pwsp_pipes *pipes, const ptowsp_run_options *options,
                                    const pwsp_process_tasks *tasks) {
    const pwsp_process_tasks none = {NULL, NULL, NULL, NULL};
    pwsp_walk *walk = pipes->walk;
    const ptowsp_program *program = walk->program;
    const pwsp_bindings *bindings = walk->bindings;
    uint32_t latency = program->first_symbol + program->latency_symbol;
    PWSP_ZERO(pwsp_pipeline_host, host);
    host.task = pwsp_pipes_task;
    host.is_constant = pwsp_pipes_is_constant;
    host.user = pipes;
    if (tasks) {
        host.load = tasks->load;
        host.settle = tasks->settle;
        host.waiting = tasks->user;
    }
    host.is_ordered = !walk->is_time_only;
    host.has_records = options->record_tasks;
    host.halt = &walk->halt;
    host.token_limit = options->token_limit ? options->token_limit : UINT64_MAX;
    host.has_latency = program->latency_symbol && bindings->is_bound[latency];
    host.latency = host.has_latency ? bindings->initial[latency] : 0;
    pipes->tasks = tasks ? *tasks : none;
    pipes->is_held = false;
    return pwsp_pipelines_begin(&pipes->pipelines, &walk->expander, &host, bindings->initial);
}

PWSP_INTERNAL void pwsp_pipes_arrival(pwsp_pipes *pipes, const pwsp_pipeline_op *op,
                                      uint64_t first_task, uint64_t cycles,
                                      pwsp_pipeline_arrival *arrival) {
    const ptowsp_program *program = pipes->walk->program;
    const pwsp_pipelines *pipelines = &pipes->pipelines;
    const pwsp_tile_view *views = &program->views.items[op->task.first_view];
    memset(arrival, 0, sizeof *arrival);
    arrival->whole.cycles = cycles;
    arrival->whole.tiles = pipes->wholes;
    arrival->whole.tile_count = op->task.view_count;
    arrival->whole.node = pipes->walk->expander.node;
    pwsp_arrival_set_edges(&arrival->whole, program, &op->task);
    arrival->first_task = first_task;
    arrival->task_count = pipes->time->sim.task_count - first_task;
    arrival->end_task = pipelines->end_task;
    arrival->pipeline = pipelines->index;
    arrival->run = (uint32_t)pipelines->stats[pipelines->index].run_count;
    for (uint32_t i = 0; i < op->task.view_count; i++) {
        memset(&pipes->wholes[i], 0, sizeof pipes->wholes[i]);
        pipes->wholes[i].tensor = views[i].tensor;
        pipes->wholes[i].access = views[i].access;
    }
}

// Runs the expander's current pipeline from start to end. False with an error, after which it has an
// arrival, too.
static bool pwsp_pipes_simulate(pwsp_pipes *pipes) {
    const pwsp_pipeline_op *op = pipes->walk->expander.pipeline;
    uint64_t first_task = pipes->time->sim.task_count;
    ptowsp_cycles cycles;
    uint64_t constant_count = pipes->pipelines.constant_count;
    const pwsp_mark begin = pwsp_mark_of(PWSP_MARK_PIPELINE), end = pwsp_mark_of(PWSP_MARK_END);
    pwsp_sim_tell(&pipes->time->sim, &begin);
    bool is_good = pwsp_pipelines_run(&pipes->pipelines, &cycles);
    pipes->time->sim.task_count += pipes->pipelines.constant_count - constant_count;
    pwsp_sim_tell(&pipes->time->sim, &end);
    pwsp_pipes_arrival(pipes, op, first_task, cycles, &pipes->arrival);
    return is_good;
}

PWSP_INTERNAL bool pwsp_pipes_run(pwsp_pipes *pipes) {
    const bool is_good = pipes->is_held || pwsp_pipes_simulate(pipes);
    const bool is_issued = pwsp_timeline_pipeline(pipes->time, &pipes->arrival);
    if (!is_good) {
        if (is_issued) {
            pwsp_timeline_end(pipes->time);  // the last one; the work so far gets its times
        }
        pipes->time->sim.is_held = false;  // as far as they do not depend on other ranks
    }
    pipes->is_held = !is_issued && pipes->time->sim.is_held;
    return is_good && is_issued;
}

static bool pwsp_pipes_dry_task(void *user) {
    pwsp_walk *walk = ((pwsp_pipes *)user)->walk;
    const pwsp_tile_code *code = walk->expander.kernel->code;
    return !code || pwsp_walk_check_tiles(walk, code);
}

PWSP_INTERNAL bool pwsp_pipes_dry(pwsp_pipes *pipes) {
    static const pwsp_sink dry = {pwsp_pipes_dry_task, NULL, NULL, NULL, NULL};
    pwsp_expander *x = &pipes->walk->expander;
    pwsp_pipelines *pipelines = &pipes->pipelines;
    uint64_t task_count = x->task_count;
    bool has_skipped = x->has_skipped;
    pwsp_pipelines_place(pipelines);
    for (uint32_t i = 0; i < pipelines->exchange.running_count; i++) {
        pwsp_process_enter(pipelines, &pipelines->exchange.processes[i]);
        pwsp_event event = PWSP_EVENT_NONE;
        if (!pwsp_stream_run(pipes->walk, &dry, pipes, &event)) {
            return false;
        }
        pwsp_process_leave(pipelines, &pipelines->exchange.processes[i]);
    }
    pwsp_pipelines_restore(pipelines);
    x->task_count = task_count;  // tasks of processes are not issued
    x->has_skipped = has_skipped;
    return true;
}
