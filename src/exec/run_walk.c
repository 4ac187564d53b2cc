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

// -- the first walk -------------------------------------------------------------------------------

static bool pwsp_run_dry_task(void *user) {
    ptowsp_run *run = (ptowsp_run *)user;
    pwsp_expander *x = &run->walk.expander;
    const bool is_link = x->kernel->unit == PTOWSP_UNIT_LINK;
    pwsp_arrival arrival;
    pwsp_stretch stretch;
    if (!pwsp_walk_keys(x, &arrival) ||
        (x->kernel->code && !pwsp_walk_check_tiles(&run->walk, x->kernel->code)) ||
        (is_link && !pwsp_run_check_link(run))) {
        return false;
    }
    if (!x->kernel->code && !is_link && pwsp_stretch_begin(x, &stretch)) {
        pwsp_stretch_end(x, &stretch, stretch.count);
    }
    return true;
}

static bool pwsp_run_dry_pipeline(void *user) {
    return pwsp_pipes_dry(&((ptowsp_run *)user)->pipes);
}

PWSP_INTERNAL ptowsp_status pwsp_run_walk_dry(ptowsp_run *run, uint64_t *out_count) {
    static const pwsp_sink dry = {pwsp_run_dry_task, NULL, NULL, pwsp_run_dry_pipeline, NULL};
    const pwsp_expander *x = &run->walk.expander;
    pwsp_event event = PWSP_EVENT_NONE;
    pwsp_walk_begin(&run->walk, true);
    if (!pwsp_stream_run(&run->walk, &dry, run, &event)) {
        return pwsp_run_fail_walk(run);
    }
    // Skipped parts may hold more tasks, which matters only below the threshold.
    *out_count = x->has_skipped && x->task_count < run->program->schedule.start_threshold
                     ? UINT64_MAX
                     : x->task_count;
    return PTOWSP_OK;
}

// -- tasks of the second --------------------------------------------------------------------------

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

// Issues one task after the collected ones. False with an error in sim.
static bool pwsp_run_issue_next(ptowsp_run *run, const pwsp_arrival *arrival) {
    return pwsp_run_flush(run) && pwsp_timeline_task(&run->time, arrival);
}

// The error of the walk or of time, after the collected tasks.
static ptowsp_status pwsp_run_fail(ptowsp_run *run) {
    bool is_walk = run->walk.expander.status != PTOWSP_OK && pwsp_run_flush(run);
    return is_walk ? pwsp_run_fail_walk(run) : pwsp_run_fail_time(run);
}

// Does a batch have all that time needs of the expander's task?
static bool pwsp_run_is_plain(const ptowsp_run *run) {
    const pwsp_expander *x = &run->walk.expander;
    return run->mode.has_plain && !pwsp_sim_has_block(&run->time.sim, x->kernel->unit) &&
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
        pwsp_stretch_keys(stretch, i, &arrival);
        arrival.cycles = pwsp_walk_scaled(&run->walk, cycles);
        if (!pwsp_walk_set_demand(&run->walk, &x->task, &arrival) ||
            !pwsp_timeline_task(&run->time, &arrival)) {
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
        x->task.tiles = pwsp_no_tiles;  // cost functions do not see tiles
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

// The stretch after the present task, if there is one. False with an error in the expander or in
// sim.
static bool pwsp_run_stretch(ptowsp_run *run, bool is_plain) {
    pwsp_expander *x = &run->walk.expander;
    const pwsp_run_mode *mode = &run->mode;
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
static bool pwsp_run_task(void *user) {
    ptowsp_run *run = (ptowsp_run *)user;
    const pwsp_run_mode *mode = &run->mode;
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
    arrival.cycles = x->task_op->has_cycles ? *x->list.cycles : arrival.cycles;
    const bool is_plain = pwsp_run_is_plain(run);
    if (is_plain) {
        arrival.pool = x->kernel->pool;
        arrival.tile_count = mode->has_data ? x->task_op->view_count : 0;
    } else {
        pwsp_walk_arrival(x, &arrival);
        arrival.cycles = pwsp_walk_scaled(&run->walk, arrival.cycles);
        if (!pwsp_walk_set_demand(&run->walk, &x->task, &arrival)) {
            return false;
        }
    }
    if (!(is_plain ? pwsp_run_collect(run, &arrival) : pwsp_run_issue_next(run, &arrival))) {
        run->held_arrival = arrival;  // if time holds it
        return false;
    }
    if (mode->is_clocked) {
        pwsp_recorder_clock(&run->result.recorder, x->task.index, &mark);
    }
    return pwsp_run_stretch(run, is_plain);
}

// -- the second walk ------------------------------------------------------------------------------

// While tasks are kept, the scheduler hears of marks.
static bool pwsp_run_mark(void *user, const pwsp_mark *mark) {
    ptowsp_run *run = (ptowsp_run *)user;
    if (run->keeps) {
        pwsp_precedence_mark(&run->front->issue.order, mark);
    }
    return pwsp_run_flush(run) && pwsp_timeline_mark(&run->time, mark);
}

static bool pwsp_run_load(void *user) {
    ptowsp_run *run = (ptowsp_run *)user;
    pwsp_expander *x = &run->walk.expander;
    if (!pwsp_run_flush(run)) {
        return false;
    }
    pwsp_expander_load(x);
    return pwsp_timeline_slot_load(&run->time, &x->load_at);
}

static bool pwsp_run_pipeline(void *user) {
    ptowsp_run *run = (ptowsp_run *)user;
    return pwsp_run_flush(run) && pwsp_pipes_run(&run->pipes);
}

static bool pwsp_run_end(void *user) {
    ptowsp_run *run = (ptowsp_run *)user;
    return pwsp_run_flush(run) && pwsp_timeline_end(&run->time);
}

static void pwsp_run_set_mode(ptowsp_run *run, bool is_time_only, bool keeps) {
    const bool has_plain = pwsp_timeline_is_plain(&run->time) && !run->walk.scaled_kernel;
    const pwsp_run_mode mode = {
        is_time_only, has_plain, has_plain && pwsp_timeline_has_data(&run->time),
        run->pipes.clocked != NULL, run->time.sim.meeting.find_cycles != NULL};
    PTOWSP_ASSERT(!mode.is_clocked || !has_plain);
    run->mode = mode;
    run->batch.count = run->batch.tile_count = 0;
    run->held = PWSP_EVENT_NONE;
    run->keeps = keeps;
}

PWSP_INTERNAL ptowsp_status pwsp_run_walk(ptowsp_run *run, bool is_time_only) {
    pwsp_walk_begin(&run->walk, false);
    pwsp_run_set_mode(run, is_time_only, false);
    return pwsp_run_walk_on(run);
}

PWSP_INTERNAL ptowsp_status pwsp_run_walk_on(ptowsp_run *run) {
    static const pwsp_sink clock = {pwsp_run_task, pwsp_run_mark, pwsp_run_load, pwsp_run_pipeline,
                                    pwsp_run_end};
    pwsp_event event = run->held;
    bool is_good = true;
    if (event == PWSP_EVENT_TASK) {  // it has run
        is_good = pwsp_timeline_task(&run->time, &run->held_arrival);
        event = is_good ? PWSP_EVENT_NONE : event;
    }
    is_good = is_good && pwsp_stream_run(&run->walk, &clock, run, &event);
    run->held = event;
    return is_good ? PTOWSP_OK : run->time.sim.is_held ? PTOWSP_BUSY : pwsp_run_fail(run);
}

// A task that the walking lane keeps. False, too, with the first that it does not keep, which has not
// run; and after the last one, when run->keeps is false.
static bool pwsp_run_keep(void *user) {
    ptowsp_run *run = (ptowsp_run *)user;
    if (!pwsp_pace_is_short(&run->front->pace, run->walk.expander.task_op->kernel) ||
        !pwsp_run_task(run)) {
        return false;
    }
    run->keeps = run->keeps && pwsp_run_goes_on(run, 1);
    return run->keeps;
}

// A pipeline has a way of its own.
static bool pwsp_run_keep_no_pipeline(void *user) {
    (void)user;
    return false;
}

PWSP_INTERNAL ptowsp_status pwsp_run_walk_kept(ptowsp_run *run, pwsp_event *out_event) {
    static const pwsp_sink keeper = {pwsp_run_keep, pwsp_run_mark, pwsp_run_load,
                                     pwsp_run_keep_no_pipeline, pwsp_run_end};
    *out_event = PWSP_EVENT_NONE;
    pwsp_run_set_mode(run, false, true);
    pwsp_pace_keep(&run->front->pace);
    const bool is_over = pwsp_stream_run(&run->walk, &keeper, run, out_event);
    const bool has_failed = *out_event == PWSP_EVENT_ERROR || run->time.sim.status != PTOWSP_OK ||
                            run->walk.expander.status != PTOWSP_OK;
    *out_event = is_over || run->keeps ? *out_event : PWSP_EVENT_NONE;
    run->keeps = false;
    return has_failed || !pwsp_run_flush(run) ? pwsp_run_fail(run) : PTOWSP_OK;
}
