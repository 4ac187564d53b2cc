// The walks of a run over its program: the first without kernels, which sees that every view lies within
// its tensor; the second with kernels and time, on the calling thread. There, tasks that need nothing
// but their cycles are collected and issued in batches. Stretches have a loop of their own, and the
// first walk passes over them.
//
// On lanes the same walk runs the tasks that the walking lane keeps (frontend.h), until one comes that
// is not to be kept.

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
    pwsp_stretch stretch;
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
            if (!x->kernel->code && x->kernel->unit != PTOWSP_UNIT_LINK &&
                pwsp_stretch_begin(x, &stretch)) {
                pwsp_stretch_end(x, &stretch, stretch.count);
            }
            break;
        case PWSP_EVENT_SLOT_LOAD: pwsp_expander_load(x); break;
        case PWSP_EVENT_PIPELINE:
            if (!pwsp_pipes_dry(&run->pipes)) {
                return pwsp_run_fail_walk(run);
            }
            break;
        default: break;  // scopes and edges say nothing of tasks
        }
    }
}

// While tasks are kept, the scheduler hears of marks.
static void pwsp_run_mark(ptowsp_run *run, pwsp_entry_kind kind) {
    if (run->keeps) {
        pwsp_frontend_keep_mark(run->front, kind);
    }
}

// One event of the walk that is not a task. False with an error in sim or in the expander.
static bool pwsp_run_event(ptowsp_run *run, pwsp_event event) {
    pwsp_expander *x = &run->walk.expander;
    pwsp_timeline *time = &run->time;
    pwsp_pipeline_arrival pipeline;
    switch (event) {
    case PWSP_EVENT_PARALLEL:
        pwsp_run_mark(run, PWSP_ENTRY_PARALLEL);
        return pwsp_timeline_scope_begin(time, true);
    case PWSP_EVENT_SEQUENTIAL:
        pwsp_run_mark(run, PWSP_ENTRY_SEQUENTIAL);
        return pwsp_timeline_scope_begin(time, false);
    case PWSP_EVENT_SCOPE_END:
        pwsp_run_mark(run, PWSP_ENTRY_SCOPE_END);
        return pwsp_timeline_scope_end(time);
    case PWSP_EVENT_RESET:
        pwsp_run_mark(run, PWSP_ENTRY_RESET);
        return pwsp_timeline_reset(
            time, (const uint32_t *)run->program->edges.items + x->reset.first, x->reset.count);
    case PWSP_EVENT_RELEASE: pwsp_timeline_release(time, x->released); return true;
    case PWSP_EVENT_SLOT_LOAD:
        pwsp_expander_load(x);
        return pwsp_timeline_slot_load(time, &x->load_at);
    case PWSP_EVENT_PIPELINE: return pwsp_pipes_run(&run->pipes, &pipeline);
    case PWSP_EVENT_END: return pwsp_timeline_end(time);
    default: return true;  // none: the walk has looked whether it is cut
    }
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
    const bool is_other = batch->pool != arrival->pool || batch->tile_count != arrival->tile_count;
    if ((batch->count == pwsp_batch_room(batch->tile_count) || is_other) && !pwsp_run_flush(run)) {
        return false;
    }
    PTOWSP_ASSERT(batch->count < pwsp_batch_room(arrival->tile_count));
    batch->pool = arrival->pool;
    batch->tile_count = arrival->tile_count;
    memcpy(batch->tiles + (size_t)batch->count * batch->tile_count, run->walk.expander.tiles_at,
           batch->tile_count * sizeof *batch->tiles);
    batch->cycles[batch->count] = arrival->cycles;
    batch->keys[batch->count++] = arrival->dispatch_key;
    return true;
}

// Issues one task behind those that have been collected. False with an error in sim.
static bool pwsp_run_issue_next(ptowsp_run *run, const pwsp_arrival *arrival) {
    return pwsp_run_flush(run) && pwsp_timeline_task(&run->time, arrival);
}

// The error of the walk or of time, behind the tasks that have been collected.
static ptowsp_status pwsp_run_fail(ptowsp_run *run) {
    bool is_walk = run->walk.expander.status != PTOWSP_OK && pwsp_run_flush(run);
    return is_walk ? pwsp_run_fail_walk(run) : pwsp_run_fail_time(run);
}

// What all tasks of a loop have in common.
typedef struct pwsp_run_mode {
    bool is_time_only, has_plain, has_data, is_clocked;
    bool has_meeting;  // a task that communicates may be held, so each is issued alone
} pwsp_run_mode;

// Does time need only what a batch has of the expander's task?
static bool pwsp_run_is_plain(const ptowsp_run *run, const pwsp_run_mode *mode) {
    const pwsp_expander *x = &run->walk.expander;
    return mode->has_plain && !pwsp_sim_has_block(&run->time.sim, x->kernel->unit) &&
           x->kernel->unit != PTOWSP_UNIT_LINK;
}

// Tasks [begin, end) of a stretch, each to time. False with an error in the expander or in sim.
static bool pwsp_run_stretch_timed(ptowsp_run *run, const pwsp_stretch *stretch, uint64_t begin,
                                   uint64_t end, bool is_time_only) {
    pwsp_expander *x = &run->walk.expander;
    const uint64_t index = x->task_count;
    pwsp_arrival arrival;
    pwsp_walk_arrival(x, &arrival);
    for (uint64_t i = begin; i < end; i++) {
        uint64_t cycles;
        pwsp_stretch_step(x, stretch, i);
        x->task.index = index + i;
        if (pwsp_walk_is_cut(&run->walk) || !pwsp_walk_kernel(&run->walk, is_time_only, &cycles)) {
            return false;
        }
        arrival.dispatch_key = pwsp_source_value(stretch->dispatch, i);
        arrival.priority_key = pwsp_source_value(stretch->priority, i);
        arrival.stream_key = pwsp_source_value(stretch->stream, i);
        arrival.cycles = pwsp_walk_scaled(&run->walk, cycles);
        if (!pwsp_timeline_task(&run->time, &arrival)) {
            return false;
        }
    }
    return true;
}

// The next tasks of a stretch, into the batch, which has room for them. False with the expander's error.
static bool pwsp_run_stretch_plain(ptowsp_run *run, const pwsp_stretch *stretch, uint64_t begin,
                                   uint64_t end, bool is_time_only) {
    pwsp_expander *x = &run->walk.expander;
    pwsp_batch *batch = &run->batch;
    const pwsp_kernel_info *kernel = x->kernel;
    const bool is_called = !is_time_only || kernel->cost || kernel->code;
    const bool is_cost = is_time_only && pwsp_kernel_has_cost_alone(kernel);
    const bool is_seen = is_called && !(is_cost && stretch->is_fixed);
    const uint64_t index = x->task_count;
    const uint32_t count = batch->count, tile_count = batch->tile_count;
    uint64_t cycles = kernel->cycles, i = begin;
    pwsp_tile_at *const tiles = batch->tiles + (size_t)count * tile_count;
    pwsp_stretch_tiles(x, stretch, begin, tile_count ? end - begin : 0, tiles);
    for (; i < end; i++) {
        pwsp_stretch_args(stretch, i);
        if (is_seen) {
            pwsp_tile_at *at = tile_count ? tiles + (i - begin) * tile_count : x->tiles_at;
            if (at == x->tiles_at) {
                pwsp_stretch_tiles(x, stretch, i, 1, at);
            }
            pwsp_stretch_see(x, stretch, at);
        }
        if (is_called) {
            x->task.index = index + i;
            if (pwsp_walk_is_cut(&run->walk) ||
                !(is_cost ? pwsp_walk_cost(x, &cycles)
                          : pwsp_walk_kernel(&run->walk, is_time_only, &cycles))) {
                break;
            }
        }
        batch->cycles[count + (i - begin)] = cycles;
        batch->keys[count + (i - begin)] = pwsp_source_value(stretch->dispatch, i);
    }
    batch->count = count + (uint32_t)(i - begin);
    return i == end;
}

// Tasks [begin, end) of a stretch, into batches. False with an error in the expander or in sim.
static bool pwsp_run_stretch_batched(ptowsp_run *run, const pwsp_stretch *stretch, uint64_t begin,
                                     uint64_t end, bool is_time_only) {
    pwsp_expander *x = &run->walk.expander;
    const ptowsp_tile *tiles = x->task.tiles;
    const pwsp_batch *batch = &run->batch;
    const uint32_t room = pwsp_batch_room(batch->tile_count);
    PTOWSP_ASSERT(batch->count > 0 && batch->pool == x->kernel->pool);
    if (is_time_only && pwsp_kernel_has_cost_alone(x->kernel)) {
        x->task.tiles = pwsp_no_tiles;  // no part of what a cost function sees
    }
    bool is_good = true;
    for (uint64_t i = begin; is_good && i < end;) {
        if (pwsp_walk_is_cut(&run->walk) || (batch->count == room && !pwsp_run_flush(run))) {
            is_good = false;
            break;
        }
        const uint64_t full = pwsp_min_u64(end, i + room - batch->count);
        is_good = pwsp_run_stretch_plain(run, stretch, i, full, is_time_only);
        i = full;
    }
    x->task.tiles = tiles;
    return is_good;
}

// So many tasks have been kept: may others be?
static bool pwsp_run_goes_on(ptowsp_run *run, uint32_t task_count) {
    run->keeps = pwsp_pace_may_go_on(&run->front->pace, task_count);
    return run->keeps;
}

// The stretch behind the present task, if there is one. False with an error in the expander or in
// sim.
static bool pwsp_run_stretch(ptowsp_run *run, const pwsp_run_mode *mode, bool is_plain) {
    pwsp_expander *x = &run->walk.expander;
    pwsp_stretch stretch;
    if (mode->is_clocked || mode->has_meeting || !pwsp_stretch_begin(x, &stretch)) {
        return true;
    }
    const uint64_t step = run->keeps ? PWSP_PACE_LOOK : stretch.count;
    uint64_t i = 0, end;
    for (bool goes_on = true; i < stretch.count && goes_on; i = end) {
        end = pwsp_min_u64(stretch.count, i + step);
        if (!(is_plain ? pwsp_run_stretch_batched(run, &stretch, i, end, mode->is_time_only)
                       : pwsp_run_stretch_timed(run, &stretch, i, end, mode->is_time_only))) {
            return false;
        }
        goes_on = !run->keeps || pwsp_run_goes_on(run, (uint32_t)(end - i));
    }
    pwsp_stretch_end(x, &stretch, i);
    return true;
}

// Executes and issues the expander's task. False with an error in the expander or in sim.
static bool pwsp_run_task(ptowsp_run *run, const pwsp_run_mode *mode) {
    pwsp_expander *x = &run->walk.expander;
    pwsp_arrival arrival;
    pwsp_wall_mark mark = {0, 0, 0, 0};
    arrival.cycles = 0;
    mark.ready = mark.start = mode->is_clocked ? pwsp_ticks() : 0;
    if (!pwsp_walk_keys(x, &arrival) ||
        !pwsp_walk_kernel(&run->walk, mode->is_time_only, &arrival.cycles)) {
        return false;
    }
    mark.end = mode->is_clocked ? pwsp_ticks() : 0;
    const bool is_plain = pwsp_run_is_plain(run, mode);
    if (is_plain) {
        arrival.pool = x->kernel->pool;
        arrival.tile_count = mode->has_data ? x->task_op->view_count : 0;
    } else {
        pwsp_walk_arrival(x, &arrival);
        arrival.cycles = pwsp_walk_scaled(&run->walk, arrival.cycles);
    }
    if (!(is_plain ? pwsp_run_collect(run, &arrival) : pwsp_run_issue_next(run, &arrival))) {
        run->held_arrival = arrival;  // if time holds it
        return false;
    }
    if (mode->is_clocked) {
        pwsp_recorder_clock(&run->result.recorder, x->task.index, &mark);
    }
    return pwsp_run_stretch(run, mode, is_plain);
}

// The walk cannot go on with an event: it is held, or has failed.
static ptowsp_status pwsp_run_stop(ptowsp_run *run, pwsp_event event) {
    if (!run->time.sim.is_held) {
        return pwsp_run_fail(run);
    }
    run->held = event;
    return PTOWSP_BUSY;
}

PWSP_INTERNAL ptowsp_status pwsp_run_walk(ptowsp_run *run, bool is_time_only) {
    pwsp_walk_begin(&run->walk, false);
    run->batch.count = run->batch.tile_count = 0;
    run->held = PWSP_EVENT_NONE;
    run->keeps = false;
    return pwsp_run_walk_on(run, is_time_only);
}

// The event at which the walk was held, once more. False if it cannot go on.
static bool pwsp_run_again(ptowsp_run *run) {
    return run->held == PWSP_EVENT_TASK ? pwsp_timeline_task(&run->time, &run->held_arrival)
                                        : pwsp_run_event(run, run->held);
}

static pwsp_run_mode pwsp_run_mode_of(const ptowsp_run *run, bool is_time_only) {
    const bool has_plain = pwsp_timeline_is_plain(&run->time) && !run->walk.scaled_kernel;
    const pwsp_run_mode mode = {
        is_time_only, has_plain, has_plain && pwsp_timeline_has_data(&run->time),
        run->pipes.clocked != NULL, run->time.sim.meeting.find_cycles != NULL};
    PTOWSP_ASSERT(!mode.is_clocked || !has_plain);
    return mode;
}

PWSP_INTERNAL ptowsp_status pwsp_run_walk_on(ptowsp_run *run, bool is_time_only) {
    pwsp_expander *x = &run->walk.expander;
    const pwsp_event held = run->held;
    if (held != PWSP_EVENT_NONE && !pwsp_run_again(run)) {
        return pwsp_run_stop(run, held);
    }
    run->held = PWSP_EVENT_NONE;
    if (held == PWSP_EVENT_END) {
        return PTOWSP_OK;
    }
    const pwsp_run_mode mode = pwsp_run_mode_of(run, is_time_only);
    for (;;) {
        pwsp_event event = pwsp_walk_event(&run->walk, pwsp_expander_next(x));
        while (PWSP_LIKELY(event == PWSP_EVENT_TASK)) {
            if (!pwsp_run_task(run, &mode)) {
                return pwsp_run_stop(run, event);
            }
            event = pwsp_walk_event(&run->walk, pwsp_expander_again(x));
        }
        if (event == PWSP_EVENT_NONE) {
            continue;
        }
        if (event == PWSP_EVENT_ERROR) {
            return pwsp_run_fail(run);
        }
        if (!pwsp_run_flush(run)) {
            return pwsp_run_fail_time(run);
        }
        if (!pwsp_run_event(run, event)) {
            return pwsp_run_stop(run, event);
        }
        if (event == PWSP_EVENT_END) {
            return PTOWSP_OK;
        }
    }
}

// Is the present event one that the walking lane keeps? A pipeline has a way of its own.
static bool pwsp_run_may_keep(const ptowsp_run *run, pwsp_event event) {
    return event == PWSP_EVENT_TASK
               ? pwsp_pace_is_short(&run->front->pace, run->walk.expander.task_op->kernel)
               : event != PWSP_EVENT_PIPELINE;
}

PWSP_INTERNAL ptowsp_status pwsp_run_walk_kept(ptowsp_run *run, pwsp_event *out_event) {
    pwsp_expander *x = &run->walk.expander;
    const pwsp_run_mode mode = pwsp_run_mode_of(run, false);
    pwsp_event event = PWSP_EVENT_NONE;
    *out_event = PWSP_EVENT_NONE;
    run->batch.count = 0;
    run->held = PWSP_EVENT_NONE;
    run->keeps = true;
    pwsp_pace_keep(&run->front->pace);
    while (run->keeps) {
        event = pwsp_walk_event(&run->walk, pwsp_expander_next(x));
        if (event == PWSP_EVENT_ERROR) {
            return pwsp_run_fail(run);
        }
        if (!pwsp_run_may_keep(run, event)) {
            *out_event = event;
            break;
        }
        if (event == PWSP_EVENT_TASK) {
            if (!pwsp_run_task(run, &mode)) {
                return pwsp_run_fail(run);
            }
            run->keeps = run->keeps && pwsp_run_goes_on(run, 1);
            continue;
        }
        if (event == PWSP_EVENT_NONE) {
            continue;
        }
        if (!pwsp_run_flush(run)) {
            return pwsp_run_fail_time(run);
        }
        if (!pwsp_run_event(run, event)) {
            return pwsp_run_fail(run);
        }
        if (event == PWSP_EVENT_END) {
            *out_event = event;
            return PTOWSP_OK;
        }
    }
    run->keeps = false;
    return pwsp_run_flush(run) ? PTOWSP_OK : pwsp_run_fail_time(run);
}
