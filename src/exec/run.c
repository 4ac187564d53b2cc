// Running a program: check the bindings, walk it once without kernels, walk it with them.
//
//      bindings -> complete? well-formed?     (nothing has been called yet)
//      walk 1   -> every view in bounds?      skips what depends on data that tasks write
//      walk 2   -> kernel, then time          for each task, in program order
//
// When nothing is executed, the first walk is left out: there is no data to protect. Both walks use
// the same machine (the expander). On lanes, and on a device, a front end issues the tasks of the
// second walk, and time accounts for them as they retire.

#include "run.h"

#include "../base/atomic.h"

#include <inttypes.h>

// -- life -----------------------------------------------------------------------------------------

static bool pwsp_run_init(ptowsp_run *run) {
    const pwsp_memory *memory = &run->context->memory;
    run->timed = pwsp_program_timed(run->program);
    if (!pwsp_bindings_init(&run->bindings, run->context, run->program) ||
        !pwsp_walk_init(&run->walk, memory, &run->bindings) ||
        !pwsp_timeline_init(&run->time, memory, &run->timed)) {
        return false;
    }
    pwsp_recorder_init(&run->recorder, memory, run->program, run->bindings.effective);
    run->time.sim.recorder = pwsp_recorder_calls(&run->recorder);
    return pwsp_pipes_init(&run->pipes, &run->walk, &run->time);
}

ptowsp_status ptowsp_run_create(ptowsp_context *context, const ptowsp_program *program,
                                ptowsp_run **out_run) {
    if (!program || !out_run) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "run: program or out_run is NULL");
    }
    *out_run = NULL;
    ptowsp_run *run = (ptowsp_run *)pwsp_memory_alloc(&context->memory, sizeof(ptowsp_run));
    if (run) {
        run->context = context;
        run->program = program;
        pwsp_context_own(context);
        pwsp_fetch_add_acq_rel(program->run_count, 1u);
    }
    if (!run || !pwsp_run_init(run)) {
        ptowsp_run_destroy(run);
        return pwsp_fail(context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
    }
    *out_run = run;
    return PTOWSP_OK;
}

void ptowsp_run_destroy(ptowsp_run *run) {
    if (!run) {
        return;
    }
    if (pwsp_start_is_pending(run->start)) {
        ptowsp_run_cancel(run);
        ptowsp_run_wait(run);
    }
    const pwsp_memory *memory = &run->context->memory;
    PTOWSP_ASSERT(!pwsp_load_relaxed(&run->is_running));
    pwsp_start_destroy(run->start);
    pwsp_context_disown(run->context);
    pwsp_fetch_add_acq_rel(run->program->run_count, UINT32_MAX);
    pwsp_workers_destroy(run->workers);
    pwsp_frontend_destroy(run->front);
    pwsp_pipes_free(&run->pipes);
    pwsp_recorder_free(&run->recorder);
    pwsp_timeline_free(&run->time);
    pwsp_walk_free(&run->walk);
    pwsp_bindings_free(&run->bindings);
    pwsp_memory_free(memory, run->critical, (size_t)run->critical_capacity * sizeof(uint64_t));
    pwsp_memory_free(memory, run, sizeof(ptowsp_run));
}

static size_t pwsp_run_bytes(const ptowsp_run *run) {
    return sizeof(ptowsp_run) + pwsp_bindings_bytes(&run->bindings) +
           pwsp_timeline_bytes(&run->time) + pwsp_walk_bytes(&run->walk) +
           pwsp_pipes_bytes(&run->pipes) + pwsp_recorder_bytes(&run->recorder) +
           (size_t)run->critical_capacity * sizeof(uint64_t) + pwsp_frontend_bytes(run->front) +
           pwsp_workers_bytes(run->workers) + pwsp_start_bytes(run->start);
}

// -- binding --------------------------------------------------------------------------------------

static bool pwsp_run_is_running(const ptowsp_run *run) {
    return pwsp_load_relaxed(&run->is_running) != 0;
}

ptowsp_status ptowsp_run_bind_size(ptowsp_run *run, const char *axis, int64_t size) {
    return pwsp_run_is_running(run) ? PTOWSP_BUSY : pwsp_bind_size(&run->bindings, axis, size);
}

ptowsp_status ptowsp_run_bind_symbol(ptowsp_run *run, const char *symbol, uint64_t value) {
    return pwsp_run_is_running(run) ? PTOWSP_BUSY : pwsp_bind_symbol(&run->bindings, symbol, value);
}

ptowsp_status ptowsp_run_bind_slot(ptowsp_run *run, uint32_t slot, uint64_t value) {
    return pwsp_run_is_running(run) ? PTOWSP_BUSY : pwsp_bind_slot(&run->bindings, slot, value);
}

ptowsp_status ptowsp_run_bind_array(ptowsp_run *run, const char *array, ptowsp_dtype dtype,
                                    const void *data, uint64_t count) {
    return pwsp_run_is_running(run)
               ? PTOWSP_BUSY
               : pwsp_bind_array(&run->bindings, array, false, dtype, data, count);
}

ptowsp_status ptowsp_run_bind_lengths(ptowsp_run *run, const char *axis, ptowsp_dtype dtype,
                                      const void *data, uint64_t count) {
    return pwsp_run_is_running(run)
               ? PTOWSP_BUSY
               : pwsp_bind_array(&run->bindings, axis, true, dtype, data, count);
}

ptowsp_status ptowsp_run_bind_csr(ptowsp_run *run, const char *axis, const ptowsp_csr *csr) {
    return pwsp_run_is_running(run) ? PTOWSP_BUSY : pwsp_bind_csr(&run->bindings, axis, csr);
}

ptowsp_status ptowsp_run_bind_tensor(ptowsp_run *run, const char *tensor,
                                     const ptowsp_buffer *buffer) {
    return pwsp_run_is_running(run) ? PTOWSP_BUSY
                                    : pwsp_bind_tensor(&run->bindings, tensor, buffer);
}

ptowsp_status ptowsp_run_bind_transients(ptowsp_run *run, void *block, uint64_t size) {
    return pwsp_run_is_running(run) ? PTOWSP_BUSY
                                    : pwsp_bind_transients(&run->bindings, block, size);
}

ptowsp_status ptowsp_run_bind_plan(ptowsp_run *run, const char *plan,
                                   const ptowsp_attention_plan *bound) {
    return pwsp_run_is_running(run) ? PTOWSP_BUSY : pwsp_bind_plan(&run->bindings, plan, bound);
}

ptowsp_status ptowsp_run_bind_work(ptowsp_run *run, const char *plan, const ptowsp_work *work,
                                   uint64_t count) {
    return pwsp_run_is_running(run) ? PTOWSP_BUSY
                                    : pwsp_bind_work(&run->bindings, plan, work, count);
}

ptowsp_status ptowsp_run_bind_batch(ptowsp_run *run, const char *plan,
                                    const ptowsp_attention_batch *batch,
                                    const ptowsp_attention_config *config,
                                    const ptowsp_attention_sizes *capacity) {
    return pwsp_run_is_running(run)
               ? PTOWSP_BUSY
               : pwsp_bind_batch(&run->bindings, plan, batch, config, capacity);
}

uint64_t ptowsp_run_slot(const ptowsp_run *run, uint32_t slot) {
    PTOWSP_ASSERT(slot < run->program->slot_count);
    return run->walk.cells[run->program->first_slot + slot];
}

// -- walking --------------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_run_fail_walk(ptowsp_run *run) {
    return pwsp_walk_fail(&run->walk);
}

PWSP_INTERNAL ptowsp_status pwsp_run_fail_time(ptowsp_run *run) {
    const pwsp_sim *sim = &run->time.sim;
    PTOWSP_ASSERT(sim->status != PTOWSP_OK);
    return pwsp_fail(run->context, sim->status, sim->index, "%s", sim->text);
}

// Walks the program without kernels. *out_count is its number of tasks, or a number that is enough
// for start_threshold; UINT64_MAX when that depends on data that tasks write.
static ptowsp_status pwsp_run_walk_dry(ptowsp_run *run, uint64_t *out_count) {
    pwsp_expander *x = &run->walk.expander;
    pwsp_walk_begin(&run->walk, true);
    for (;;) {
        pwsp_arrival arrival;
        switch (pwsp_walk_event(&run->walk, pwsp_expander_next(x))) {
        case PWSP_EVENT_END:
            // Skipped parts may hold more tasks, which matters only below the threshold.
            *out_count = x->has_skipped && x->task_count < run->program->schedule.start_threshold
                             ? UINT64_MAX
                             : x->task_count;
            return PTOWSP_OK;
        case PWSP_EVENT_ERROR: return pwsp_run_fail_walk(run);
        case PWSP_EVENT_TASK:
            if (!pwsp_walk_keys(x, &arrival) ||
                (x->kernel->code && !pwsp_walk_check_tiles(&run->walk, x->kernel->code))) {
                return pwsp_run_fail_walk(run);
            }
            break;
        case PWSP_EVENT_SLOT_LOAD: pwsp_expander_load(x); break;
        case PWSP_EVENT_PIPELINE:
            if (!pwsp_pipes_dry(&run->pipes)) {
                return pwsp_run_fail_walk(run);
            }
            break;
        case PWSP_EVENT_PARALLEL:
        case PWSP_EVENT_SEQUENTIAL:
        case PWSP_EVENT_SCOPE_END:
        case PWSP_EVENT_RESET:
        case PWSP_EVENT_PROCESS_END:
        case PWSP_EVENT_SEND:
        case PWSP_EVENT_RECEIVE:
        case PWSP_EVENT_CLOSE:
        case PWSP_EVENT_NONE: break;
        }
    }
}

// One event of the walk that is not a task. False with an error in sim or in the expander.
static bool pwsp_run_event(ptowsp_run *run, pwsp_event event) {
    pwsp_expander *x = &run->walk.expander;
    pwsp_timeline *time = &run->time;
    pwsp_pipeline_arrival pipeline;
    switch (event) {
    case PWSP_EVENT_PARALLEL: return pwsp_timeline_scope_begin(time, true);
    case PWSP_EVENT_SEQUENTIAL: return pwsp_timeline_scope_begin(time, false);
    case PWSP_EVENT_SCOPE_END: return pwsp_timeline_scope_end(time);
    case PWSP_EVENT_RESET:
        return pwsp_timeline_reset(
            time, (const uint32_t *)run->program->edges.items + x->reset.first, x->reset.count);
    case PWSP_EVENT_SLOT_LOAD:
        pwsp_expander_load(x);
        return pwsp_timeline_slot_load(time, &x->load_at);
    case PWSP_EVENT_PIPELINE: return pwsp_pipes_run(&run->pipes, &pipeline);
    case PWSP_EVENT_END: return pwsp_timeline_end(time);
    case PWSP_EVENT_TASK:
    case PWSP_EVENT_PROCESS_END:
    case PWSP_EVENT_SEND:
    case PWSP_EVENT_RECEIVE:
    case PWSP_EVENT_CLOSE:
    case PWSP_EVENT_ERROR:
    case PWSP_EVENT_NONE: break;
    }
    return true;
}

// Issues the tasks that have been collected. False with an error in sim.
static bool pwsp_run_flush(ptowsp_run *run) {
    pwsp_batch *batch = &run->batch;
    uint32_t count = batch->count;
    PTOWSP_ASSERT(count <= PWSP_BATCH_MAX);
    batch->count = 0;
    return count == 0 || pwsp_timeline_batch(&run->time, batch, count);
}

// Collects a plain task of one unit, up to a full batch. False with an error in sim.
PWSP_FORCE_INLINE bool pwsp_run_collect(ptowsp_run *run, const pwsp_arrival *arrival) {
    pwsp_batch *batch = &run->batch;
    if ((batch->count == PWSP_BATCH_MAX || batch->unit != arrival->unit) && !pwsp_run_flush(run)) {
        return false;
    }
    PTOWSP_ASSERT(batch->count < PWSP_BATCH_MAX);
    batch->unit = arrival->unit;
    batch->cycles[batch->count] = arrival->cycles;
    batch->keys[batch->count++] = arrival->dispatch_key;
    return true;
}

// Does a task only copy cells and columns, and is it alone in its loop?
static bool pwsp_run_is_simple(const pwsp_expander *x) {
    const pwsp_op *end = &x->ops[x->next_op];
    const pwsp_task_op *task = x->task_op;
    bool is_simple =
        end->kind == PWSP_OP_LOOP_END && end->target + 1 == x->next_op && task->view_count == 0;
    is_simple = is_simple && !pwsp_axis_is_work(
                                 PWSP_PROGRAM_AT(x->program, loops, pwsp_loop, end->at)->axis_kind);
    const pwsp_code *codes = PWSP_PROGRAM_AT(x->program, codes, pwsp_code, task->first_code);
    for (uint32_t i = 0; is_simple && i < task->axis_count + task->scalar_count; i++) {
        is_simple = codes[i].begin == codes[i].end || (codes[i].column && x->columns);
    }
    return is_simple;
}

// Where the values of a code are, from the next iteration on: in a cell or along a column.
typedef struct pwsp_run_source {
    const uint64_t *at;  // NULL: it has to be evaluated
    uint32_t step;
} pwsp_run_source;

static pwsp_run_source pwsp_run_source_of(const pwsp_expander *x, const pwsp_code *code) {
    pwsp_run_source source = {NULL, 0};
    if (code->column && x->columns) {
        source.at = pwsp_column_at(x->columns, code->column) + x->block_at + 1;
        source.step = 1;
    } else if (code->begin == code->end) {
        source.at = &x->cells[code->cell];
    }
    return source;
}

// The next iterations of a simple task's loop, up to the end of its block or a full batch. False
// with the expander's error.
static bool pwsp_run_simple(ptowsp_run *run, bool is_time_only) {
    pwsp_expander *x = &run->walk.expander;
    pwsp_batch *batch = &run->batch;
    pwsp_frame *frame = &x->frames[x->frame_count - 1];
    const pwsp_loop *loop = PWSP_PROGRAM_AT(x->program, loops, pwsp_loop, frame->loop);
    const pwsp_task_op *task = x->task_op;
    const pwsp_code *codes = PWSP_PROGRAM_AT(x->program, codes, pwsp_code, task->first_code);
    const pwsp_array *indices =
        loop->axis_kind == PWSP_AXIS_SPARSE ? &x->csrs[loop->csr].indices : NULL;
    bool is_called = !is_time_only || x->kernel->cost;
    uint64_t *variable = &x->cells[loop->cell], *args = x->cells + x->program->first_arg;
    int64_t end = x->block ? x->block_end : frame->count;
    uint64_t left = pwsp_min_u64((uint64_t)(end - 1 - frame->i), PWSP_BATCH_MAX - batch->count);
    uint32_t arg_count = task->axis_count + task->scalar_count, at = batch->count;
    uint64_t first = (uint64_t)frame->i + 1, cycles = x->kernel->cycles;
    pwsp_run_source sources[PTOWSP_TASK_AXIS_MAX + PTOWSP_TASK_SCALAR_MAX];
    PTOWSP_ASSERT(arg_count <= PTOWSP_TASK_AXIS_MAX + PTOWSP_TASK_SCALAR_MAX);
    for (uint32_t j = 0; j < arg_count; j++) {
        sources[j] = pwsp_run_source_of(x, &codes[j]);
    }
    pwsp_run_source key = pwsp_run_source_of(x, &task->dispatch);
    for (uint32_t i = 0; i < left; i++) {
        *variable = first + i;
        if (indices) {
            x->cells[loop->entry] = frame->first + first + i;
            *variable = pwsp_array_at(indices, frame->first + first + i);
        }
        for (uint32_t j = 0; j < arg_count; j++) {
            args[j] = sources[j].at[i * sources[j].step];
        }
        batch->count = at + i;
        batch->keys[at + i] =
            key.at ? key.at[i * key.step] : pwsp_expander_value(x, task->dispatch);
        if (!key.at && x->fault.is_set) {
            pwsp_arrival arrival;
            return pwsp_walk_keys(x, &arrival);
        }
        if (is_called) {
            x->task.index = x->task_count + i;
            if (pwsp_walk_is_cut(&run->walk) ||
                !pwsp_walk_kernel(&run->walk, is_time_only, &cycles)) {
                return false;
            }
        }
        batch->cycles[at + i] = cycles;
    }
    batch->count = at + (uint32_t)left;
    frame->i += (int64_t)left;
    x->task_count += left;
    return true;
}

// Issues one task behind those that have been collected. False with an error in sim.
static bool pwsp_run_issue_next(ptowsp_run *run, const pwsp_arrival *arrival) {
    return pwsp_run_flush(run) && pwsp_timeline_task(&run->time, arrival);
}

// Walks the program with kernels and time.
static ptowsp_status pwsp_run_walk(ptowsp_run *run, bool is_time_only) {
    pwsp_expander *x = &run->walk.expander;
    pwsp_walk_begin(&run->walk, false);
    bool has_plain = pwsp_timeline_is_plain(&run->time) && !run->walk.scaled_kernel;
    bool has_data = has_plain && pwsp_timeline_has_data(&run->time);
    bool is_clocked = run->pipes.clocked != NULL;
    PTOWSP_ASSERT(!is_clocked || !has_plain);
    run->batch.count = 0;
    for (;;) {
        pwsp_event event = pwsp_walk_event(&run->walk, pwsp_expander_next(x));
        while (PWSP_LIKELY(event == PWSP_EVENT_TASK)) {
            pwsp_arrival arrival;
            pwsp_wall_mark mark = {0, 0, 0, 0};
            arrival.cycles = 0;
            mark.ready = mark.start = is_clocked ? pwsp_ticks() : 0;
            if (!pwsp_walk_keys(x, &arrival) ||
                !pwsp_walk_kernel(&run->walk, is_time_only, &arrival.cycles)) {
                return pwsp_run_flush(run) ? pwsp_run_fail_walk(run) : pwsp_run_fail_time(run);
            }
            mark.end = is_clocked ? pwsp_ticks() : 0;
            bool is_plain = has_plain && !(has_data && x->task_op->view_count) &&
                            !pwsp_sim_has_block(&run->time.sim, x->kernel->unit);
            if (is_plain) {
                arrival.unit = x->kernel->unit;
            } else {
                pwsp_walk_arrival(x, &arrival);
                arrival.cycles = pwsp_walk_scaled(&run->walk, arrival.cycles);
            }
            if (!(is_plain ? pwsp_run_collect(run, &arrival)
                           : pwsp_run_issue_next(run, &arrival))) {
                return pwsp_run_fail_time(run);
            }
            if (is_clocked) {
                pwsp_recorder_clock(&run->recorder, x->task.index, &mark);
            }
            if (is_plain && pwsp_run_is_simple(x)) {
                if (!pwsp_run_simple(run, is_time_only)) {
                    return pwsp_run_flush(run) ? pwsp_run_fail_walk(run) : pwsp_run_fail_time(run);
                }
            }
            event = pwsp_walk_event(&run->walk, pwsp_expander_again(x));
        }
        if (event == PWSP_EVENT_NONE) {
            continue;
        }
        if (!pwsp_run_flush(run)) {
            return pwsp_run_fail_time(run);
        }
        if (event == PWSP_EVENT_ERROR) {
            return pwsp_run_fail_walk(run);
        }
        if (!pwsp_run_event(run, event)) {
            return x->status != PTOWSP_OK ? pwsp_run_fail_walk(run) : pwsp_run_fail_time(run);
        }
        if (event == PWSP_EVENT_END) {
            return PTOWSP_OK;
        }
    }
}

// -- finishing ------------------------------------------------------------------------------------

// Goes back from the first of the tasks that end last, along each task's cause.
static bool pwsp_run_find_critical(ptowsp_run *run) {
    const pwsp_sim *sim = &run->time.sim;
    const ptowsp_task_record *records = run->recorder.records;
    uint64_t task = 0, count = 0;
    PTOWSP_ASSERT(run->recorder.is_dense && sim->task_count == run->recorder.count);
    for (uint64_t i = 1; i < sim->task_count; i++) {
        task = records[i].end > records[task].end ? i : task;
    }
    void *critical = run->critical;
    for (uint64_t at = task; at < sim->task_count && count < sim->task_count;
         at = records[at].cause) {
        if (!pwsp_memory_grow(&run->context->memory, &critical, &run->critical_capacity, count + 1,
                              sizeof(uint64_t))) {
            return false;
        }
        run->critical = (uint64_t *)critical;
        run->critical[count++] = at;
    }
    for (uint64_t i = 0; i < count / 2; i++) {
        uint64_t swapped = run->critical[i];
        run->critical[i] = run->critical[count - 1 - i];
        run->critical[count - 1 - i] = swapped;
    }
    run->critical_count = count;
    return true;
}

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

static ptowsp_status pwsp_run_finish(ptowsp_run *run, ptowsp_status status) {
    pwsp_sim *sim = &run->time.sim;
    ptowsp_run_stats *stats = &sim->stats;
    pwsp_pipelines *pipelines = &run->pipes.pipelines;
    pwsp_sim_end(sim);
    if (sim->has_records) {
        pwsp_recorder_end(&run->recorder);
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
    if (run->has_records && status == PTOWSP_OK &&
        !((!run->recorder.is_dense || pwsp_run_find_critical(run)) &&
          pwsp_pipelines_end(pipelines))) {
        status =
            pwsp_fail(run->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
    }
    stats->memory_bytes = pwsp_run_bytes(run);
    return pwsp_run_cut(run, status);
}

// Checks everything before anything is called. *out_task_count is the number that time needs.
static ptowsp_status pwsp_run_prepare(ptowsp_run *run, const ptowsp_run_options *options,
                                      const pwsp_process_tasks *tasks, uint64_t *out_task_count) {
    *out_task_count = UINT64_MAX;
    ptowsp_status status = pwsp_bindings_plan(&run->bindings);
    if (status == PTOWSP_OK) {
        status = pwsp_bindings_verify(&run->bindings, run->walk.is_time_only);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    pwsp_timeline_bind(&run->time, run->bindings.effective);
    status = pwsp_walk_find_unknown(&run->walk, &run->time.sim.deps);
    if (status != PTOWSP_OK) {
        return status;
    }
    if (!pwsp_pipes_begin(&run->pipes, options, tasks)) {
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

// Executes on the calling thread, or issues through a front end, to lanes or to a device.
static ptowsp_status pwsp_run_execute(ptowsp_run *run, const ptowsp_run_options *asked,
                                      bool is_on_lanes, pwsp_run_issue_fn issue, void *user) {
    pwsp_process_tasks tasks;
    uint64_t task_count;
    ptowsp_run_options chosen = *asked;
    const ptowsp_run_options *options = &chosen;
    const ptowsp_record_options record = pwsp_run_recording(run, asked);
    chosen.record_tasks = record.level >= PTOWSP_RECORD_TASKS;
    bool is_clocked = record.has_clock && asked->mode == PTOWSP_RUN_EXECUTE;
    pwsp_recorder *clocked = is_clocked ? &run->recorder : NULL;
    PTOWSP_ASSERT(pwsp_run_is_running(run) && (!issue || run->front));
    memset(&tasks, 0, sizeof tasks);
    if (issue) {
        tasks = pwsp_frontend_process_tasks(run->front);
    }
    pwsp_sim_begin(&run->time.sim, false);
    run->has_records = run->has_clock = false;
    bool has_memory = pwsp_recorder_begin(&run->recorder, &run->time.sim, &record) &&
                      (!issue || pwsp_frontend_set_clock(run->front, clocked, is_on_lanes));
    run->walk.is_time_only = options->mode == PTOWSP_RUN_TIME_ONLY;
    run->pipes.clocked = clocked;
    run->critical_count = 0;
    pwsp_pipelines_forget(&run->pipes.pipelines);
    ptowsp_status status =
        has_memory
            ? pwsp_run_prepare(run, options, issue ? &tasks : NULL, &task_count)
            : pwsp_fail(run->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
    if (status != PTOWSP_OK) {
        return pwsp_run_finish(run, status);
    }
    run->has_records = options->record_tasks;
    run->has_clock = is_clocked;
    if (!pwsp_timeline_begin(&run->time, record.level != PTOWSP_RECORD_NONE, task_count)) {
        return pwsp_run_finish(run, pwsp_run_fail_time(run));
    }
    status = issue ? issue(user, run) : pwsp_run_walk(run, run->walk.is_time_only);
    return pwsp_run_finish(run, status);
}

// -- on lanes -------------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_run_issue_to(ptowsp_run *run, const pwsp_executor *executor,
                                              uint32_t vector_count, uint32_t cube_count) {
    if (pwsp_frontend_walk(run->front, executor, vector_count, cube_count)) {
        return PTOWSP_OK;
    }
    return run->front->failure == PWSP_FRONTEND_FAILED_WALK ? pwsp_run_fail_walk(run)
                                                            : pwsp_run_fail_time(run);
}

typedef struct pwsp_run_on_lanes {
    ptowsp_run *run;
    uint32_t lane_count;
    ptowsp_status status;
} pwsp_run_on_lanes;

static bool pwsp_run_issue_lane(void *user, const pwsp_executor *executor) {
    pwsp_run_on_lanes *on = (pwsp_run_on_lanes *)user;
    on->status = pwsp_run_issue_to(on->run, executor, on->lane_count, 0);
    return on->status == PTOWSP_OK;
}

static ptowsp_status pwsp_run_issue_lanes(void *user, ptowsp_run *run) {
    pwsp_run_on_lanes *on = (pwsp_run_on_lanes *)user;
    bool is_kept, is_good = pwsp_workers_run(run->workers, run->context, on->lane_count,
                                             &run->front->issue.reorder, run->front->is_homed,
                                             pwsp_run_issue_lane, on, &is_kept);
    if (is_good && !is_kept) {
        return pwsp_fail(run->context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                         "run: run_lanes did not call each lane once (the work is done)");
    }
    return on->status;
}

// Makes the front end for a number of lanes or cores. False with an error.
static ptowsp_status pwsp_run_reserve(ptowsp_run *run, uint32_t lane_count, bool has_workers) {
    const pwsp_memory *memory = &run->context->memory;
    run->front =
        run->front ? run->front : pwsp_frontend_create(&run->walk, &run->time, &run->pipes);
    bool is_good = run->front && pwsp_frontend_reserve(run->front, lane_count);
    if (is_good && has_workers) {
        run->workers = run->workers ? run->workers : pwsp_workers_create(memory);
        is_good = run->workers && pwsp_workers_reserve(run->workers, lane_count);
    }
    return is_good ? PTOWSP_OK
                   : pwsp_fail(run->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                               "run: out of memory");
}

// On lanes of the context, which stays busy meanwhile.
static ptowsp_status pwsp_run_execute_on_lanes(ptowsp_run *run, const ptowsp_run_options *options) {
    ptowsp_context *context = run->context;
    pwsp_run_on_lanes on = {run, options->lane_count, PTOWSP_OK};
    if (!pwsp_context_enter(context)) {
        return PTOWSP_BUSY;
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
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "run: there is no mode %d", (int)options->mode);
    }
    if (!pwsp_cost_is_valid(&options->cost)) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "run: there is no cost model %d, or it lacks its function",
                         (int)options->cost.model);
    }
    uint32_t lane_count = pwsp_pool_lane_count(run->context->pool);
    if (options->mode == PTOWSP_RUN_EXECUTE && options->lane_count > lane_count) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "run: lane_count is %u, but the context has %u lane%s",
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
    ptowsp_run_options chosen;
    memset(&chosen, 0, sizeof chosen);
    if (options) {
        chosen = *options;
    }
    if (pwsp_run_is_running(run) || pwsp_load_relaxed(&run->context->busy) ||
        !pwsp_run_claim(run, &chosen)) {
        return PTOWSP_BUSY;
    }
    ptowsp_status status = pwsp_run_check_options(run, &chosen);
    if (status == PTOWSP_OK) {
        status = pwsp_run_execute_here(run, &chosen);
    }
    pwsp_run_leave(run);
    return status;
}

void ptowsp_run_cancel(ptowsp_run *run) {
    pwsp_halt_cancel(&run->walk.halt);
}

ptowsp_status ptowsp_run_what_if(ptowsp_run *run, const ptowsp_run_options *options,
                                 ptowsp_what_if *what_if) {
    ptowsp_run_options chosen;
    memset(&chosen, 0, sizeof chosen);
    if (options) {
        chosen = *options;
    }
    if (what_if->kernel == 0 || what_if->kernel >= run->program->kernels.count ||
        what_if->percent > 1000) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "run: what if kernel %u took %u percent: no such kernel, or over 1000",
                         what_if->kernel, what_if->percent);
    }
    if (pwsp_run_is_running(run)) {
        return PTOWSP_BUSY;
    }
    const ptowsp_record_options record = run->record;
    memset(&run->record, 0, sizeof run->record);
    chosen.mode = PTOWSP_RUN_TIME_ONLY;
    chosen.record_tasks = false;
    run->walk.scaled_kernel = what_if->kernel;
    run->walk.scaled_percent = what_if->percent;
    ptowsp_status status = ptowsp_run_execute(run, &chosen);
    run->walk.scaled_kernel = 0;
    run->record = record;
    what_if->makespan_cycles = run->time.sim.stats.makespan_cycles;
    return status;
}

// -- results --------------------------------------------------------------------------------------

const ptowsp_run_stats *ptowsp_run_result(const ptowsp_run *run) {
    return &run->time.sim.stats;
}

const ptowsp_lane_stats *ptowsp_run_lanes(const ptowsp_run *run) {
    return run->time.sim.lane_stats;
}

const ptowsp_task_record *ptowsp_run_records(const ptowsp_run *run) {
    return run->has_records && run->recorder.is_dense ? run->recorder.records : NULL;
}

const uint64_t *ptowsp_run_critical_path(const ptowsp_run *run, uint64_t *out_count) {
    *out_count = run->critical_count;
    return run->critical_count ? run->critical : NULL;
}

static void pwsp_run_tell(uint32_t count, uint32_t *out_count) {
    if (out_count) {
        *out_count = count;
    }
}

const ptowsp_pipeline_stats *ptowsp_run_pipelines(const ptowsp_run *run, uint32_t *out_count) {
    uint32_t count = (uint32_t)run->program->pipelines.count;
    pwsp_run_tell(count, out_count);
    return count ? run->pipes.pipelines.stats : NULL;
}

const ptowsp_process_stats *ptowsp_run_processes(const ptowsp_run *run, uint32_t *out_count) {
    uint32_t count = run->pipes.pipelines.process_count;
    pwsp_run_tell(count, out_count);
    return count ? run->pipes.pipelines.process_stats : NULL;
}

const ptowsp_channel_stats *ptowsp_run_channels(const ptowsp_run *run, uint32_t *out_count) {
    uint32_t count = (uint32_t)run->program->channels.count;
    pwsp_run_tell(count, out_count);
    return count ? run->pipes.pipelines.channel_stats : NULL;
}

const ptowsp_step_record *ptowsp_run_steps(const ptowsp_run *run, uint64_t *out_count) {
    uint64_t count = run->pipes.pipelines.exchange.step_count;
    if (out_count) {
        *out_count = count;
    }
    return count ? run->pipes.pipelines.steps : NULL;
}

const uint64_t *ptowsp_run_critical_steps(const ptowsp_run *run, uint32_t pipeline,
                                          uint64_t *out_count) {
    bool is_known = pipeline < run->program->pipelines.count && run->has_records;
    const pwsp_chain *chain = is_known ? &run->pipes.pipelines.chains[pipeline] : NULL;
    uint64_t count = chain ? chain->count : 0;
    if (out_count) {
        *out_count = count;
    }
    return count ? run->pipes.pipelines.chain_steps + chain->first : NULL;
}

void ptowsp_run_print_stuck(const ptowsp_run *run, ptowsp_text text) {
    pwsp_pipelines_print_stuck(&run->pipes.pipelines, text);
}
