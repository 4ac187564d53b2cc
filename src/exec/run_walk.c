// The walks of a run over its program: the first without kernels, which sees that every view lies within
// its tensor; the second with kernels and time, on the calling thread. There, tasks that need nothing
// but their cycles are collected and issued in batches, and loops whose only task copies cells and
// columns have a loop of their own.

#include "run.h"

PWSP_INTERNAL ptowsp_status pwsp_run_fail_walk(ptowsp_run *run) {
    return pwsp_walk_fail(&run->walk);
}

PWSP_INTERNAL ptowsp_status pwsp_run_fail_time(ptowsp_run *run) {
    const pwsp_sim *sim = &run->time.sim;
    PTOWSP_ASSERT(sim->status != PTOWSP_OK);
    return pwsp_fail(run->context, sim->status, sim->index, "%s", sim->text);
}

// Does a task that communicates fit the ranks? False with the expander's error.
static bool pwsp_run_check_link(ptowsp_run *run) {
    pwsp_expander *x = &run->walk.expander;
    pwsp_error error;
    return pwsp_comm_check(&run->walk.comm, x->kernel, x->task.args, &error) ||
           pwsp_walk_fail_comm(x, &error);
}

PWSP_INTERNAL ptowsp_status pwsp_run_walk_dry(ptowsp_run *run, uint64_t *out_count) {
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
                (x->kernel->code && !pwsp_walk_check_tiles(&run->walk, x->kernel->code)) ||
                (x->kernel->unit == PTOWSP_UNIT_LINK && !pwsp_run_check_link(run))) {
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
        case PWSP_EVENT_RELEASE:
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
    case PWSP_EVENT_RELEASE: pwsp_timeline_release(time, x->released); return true;
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

// Collects a plain task of one pool, up to a full batch. False with an error in sim.
PWSP_FORCE_INLINE bool pwsp_run_collect(ptowsp_run *run, const pwsp_arrival *arrival) {
    pwsp_batch *batch = &run->batch;
    if ((batch->count == PWSP_BATCH_MAX || batch->pool != arrival->pool) && !pwsp_run_flush(run)) {
        return false;
    }
    PTOWSP_ASSERT(batch->count < PWSP_BATCH_MAX);
    batch->pool = arrival->pool;
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

// The walk cannot go on with an event: it is held, or has failed.
static ptowsp_status pwsp_run_stop(ptowsp_run *run, pwsp_event event, const pwsp_arrival *arrival) {
    if (!run->time.sim.is_held) {
        return run->walk.expander.status != PTOWSP_OK ? pwsp_run_fail_walk(run)
                                                      : pwsp_run_fail_time(run);
    }
    run->held = event;
    if (arrival) {
        run->held_arrival = *arrival;
    }
    return PTOWSP_BUSY;
}

PWSP_INTERNAL ptowsp_status pwsp_run_walk(ptowsp_run *run, bool is_time_only) {
    pwsp_walk_begin(&run->walk, false);
    run->batch.count = 0;
    run->held = PWSP_EVENT_NONE;
    return pwsp_run_walk_on(run, is_time_only);
}

// The event at which the walk was held, once more. False if it cannot go on.
static bool pwsp_run_again(ptowsp_run *run) {
    return run->held == PWSP_EVENT_TASK ? pwsp_timeline_task(&run->time, &run->held_arrival)
                                        : pwsp_run_event(run, run->held);
}

PWSP_INTERNAL ptowsp_status pwsp_run_walk_on(ptowsp_run *run, bool is_time_only) {
    pwsp_expander *x = &run->walk.expander;
    const pwsp_event held = run->held;
    if (held != PWSP_EVENT_NONE && !pwsp_run_again(run)) {
        return pwsp_run_stop(run, held, NULL);
    }
    run->held = PWSP_EVENT_NONE;
    if (held == PWSP_EVENT_END) {
        return PTOWSP_OK;
    }
    bool has_plain = pwsp_timeline_is_plain(&run->time) && !run->walk.scaled_kernel;
    bool has_data = has_plain && pwsp_timeline_has_data(&run->time);
    bool is_clocked = run->pipes.clocked != NULL;
    PTOWSP_ASSERT(!is_clocked || !has_plain);
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
                            !pwsp_sim_has_block(&run->time.sim, x->kernel->unit) &&
                            x->kernel->unit != PTOWSP_UNIT_LINK;
            if (is_plain) {
                arrival.pool = x->kernel->pool;
            } else {
                pwsp_walk_arrival(x, &arrival);
                arrival.cycles = pwsp_walk_scaled(&run->walk, arrival.cycles);
            }
            if (!(is_plain ? pwsp_run_collect(run, &arrival)
                           : pwsp_run_issue_next(run, &arrival))) {
                return pwsp_run_stop(run, event, &arrival);
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
            return pwsp_run_stop(run, event, NULL);
        }
        if (event == PWSP_EVENT_END) {
            return PTOWSP_OK;
        }
    }
}
