// Issues a program's tasks and retires them: see frontend.h.
//
// An entry stores a task's words (frontend_words.c), or is a block of tasks (frontend_block.c). A
// pipeline is walked by the rules of time, and its processes' tasks are issued as they come.
// Every earlier entry has been retired by then, so the pipeline waits for nothing; later entries
// wait for its tasks.

#include "frontend.h"

// The lane or core that dispatch chooses.
static uint32_t pwsp_frontend_home(const pwsp_frontend *front, const pwsp_arrival *arrival) {
    uint32_t group = front->home_counts[1] > 0 && pwsp_unit_lane(arrival->unit) == PTOWSP_UNIT_CUBE;
    return front->home_first[group] +
           pwsp_lane_choose(front->lane_rule, arrival->dispatch_key, 0, front->home_counts[group]);
}

// -- calling --------------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_cycles pwsp_frontend_call_task(const pwsp_frontend *front,
                                                    const pwsp_entry *entry,
                                                    const pwsp_issued *issued, uint32_t lane) {
    if (pwsp_halt_is(&front->walk->halt)) {
        return ptowsp_task_fail(PTOWSP_SKIPPED);
    }
    const pwsp_kernel_info *kernel = &front->walk->program->kernels.items[entry->kernel];
    uint64_t args[PTOWSP_TASK_AXIS_MAX + 2 * PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX];
    ptowsp_tile tiles[PTOWSP_TASK_TILE_MAX];
    ptowsp_task task = pwsp_frontend_task_of(front, issued, args, tiles);
    PTOWSP_ASSERT(lane < front->core_count);
    task.lane = lane;
    if (kernel->code) {
        ptowsp_cycles cycles;
        bool is_good = pwsp_tile_core_run(&front->cores[lane], kernel->code, &task, false, &cycles);
        return is_good ? cycles : ptowsp_task_fail(PTOWSP_INVALID_PARAMS);
    }
    if (entry->kind == PWSP_ENTRY_PROCESS_TASK) {
        return kernel->fn(&task, kernel->user);
    }
    return pwsp_kernel_call(kernel, &task, false);
}

// Calls the kernel of an entry: the callback of the reorder buffer.
static ptowsp_cycles pwsp_frontend_call(void *user, const pwsp_entry *entry, uint32_t lane) {
    pwsp_frontend *front = (pwsp_frontend *)user;
    const uint32_t count = pwsp_entry_is_block(entry) ? pwsp_frontend_block_count(entry) : 1;
    const uint64_t start = front->pace.is_on ? pwsp_ticks() : 0;
    ptowsp_cycles result;
    if (pwsp_entry_is_block(entry)) {
        result = pwsp_frontend_call_block(front, entry, lane);
    } else {
        const pwsp_issued issued = pwsp_frontend_issued(entry);
        result = pwsp_frontend_call_task(front, entry, &issued, lane);
    }
    if (front->pace.is_on && result <= PTOWSP_CYCLES_MAX) {
        pwsp_pace_tell(&front->pace, lane, entry->kernel, pwsp_ticks() - start, count);
    }
    return result;
}

PWSP_INTERNAL bool pwsp_frontend_move_link(void *user, uint32_t place, ptowsp_cycles *out_result) {
    const pwsp_frontend *front = (const pwsp_frontend *)user;
    const pwsp_entry *entry = pwsp_reorder_at(&front->issue.reorder, place);
    pwsp_comm *comm = &front->walk->comm;
    const pwsp_kernel_info *kernel = &front->walk->program->kernels.items[entry->kernel];
    uint64_t args[PTOWSP_TASK_AXIS_MAX + 2 * PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX];
    ptowsp_tile tiles[PTOWSP_TASK_TILE_MAX];
    pwsp_wall_mark *mark = front->clocked ? pwsp_frontend_mark_of(front, entry) : NULL;
    bool is_done = false;
    if (pwsp_halt_is(&front->walk->halt)) {
        pwsp_comm_give_up(comm);
        *out_result = ptowsp_task_fail(PTOWSP_SKIPPED);
        return true;
    }
    if (mark && !comm->is_under_way) {
        mark->lane = front->home_counts[0] + front->home_counts[1];  // after the lanes of cores
        mark->start = pwsp_ticks();
    }
    const pwsp_issued issued = pwsp_frontend_issued(entry);
    const ptowsp_task task = pwsp_frontend_task_of(front, &issued, args, tiles);
    if (!pwsp_comm_move(comm, kernel, &task, &is_done)) {
        *out_result = ptowsp_task_fail(comm->error.status);
        return true;
    }
    if (is_done && mark) {
        mark->end = pwsp_ticks();
    }
    *out_result = 0;
    return is_done;
}

// -- wall clock -----------------------------------------------------------------------------------

// As pwsp_frontend_call, on lanes.
static ptowsp_cycles pwsp_frontend_call_clocked(void *user, const pwsp_entry *entry,
                                                uint32_t lane) {
    pwsp_wall_mark *mark = pwsp_frontend_mark_of((const pwsp_frontend *)user, entry);
    mark->lane = lane;
    mark->start = pwsp_ticks();
    ptowsp_cycles cycles = pwsp_frontend_call(user, entry, lane);
    mark->end = pwsp_ticks();
    return cycles;
}

// Between the reorder buffer and the executor.
static void pwsp_frontend_ready(void *user, uint32_t by, uint32_t place) {
    pwsp_frontend *front = (pwsp_frontend *)user;
    front->marks[place].ready = pwsp_ticks();
    front->executor.ready(front->executor.user, by, place);
}

static void pwsp_frontend_help(void *user, uint32_t ticket) {
    const pwsp_executor *executor = &((const pwsp_frontend *)user)->executor;
    executor->help(executor->user, ticket);
}

static void pwsp_frontend_tell_clock(const pwsp_frontend *front, const pwsp_entry *entry) {
    if (front->clocked) {
        pwsp_recorder_clock(front->clocked, entry->index, pwsp_frontend_mark_of(front, entry));
    }
}

// -- retiring -------------------------------------------------------------------------------------

// The first failure stays: later ones follow from it.
static bool pwsp_frontend_fail(pwsp_frontend *front, pwsp_frontend_failure failure) {
    PTOWSP_ASSERT(failure != PWSP_FRONTEND_GOOD);
    if (front->failure == PWSP_FRONTEND_GOOD) {
        front->failure = failure;
    }
    return pwsp_issue_fail(&front->issue);
}

static void pwsp_frontend_no_memory(void *user) {
    pwsp_frontend *front = (pwsp_frontend *)user;
    pwsp_sim_no_memory(&front->time->sim);
    pwsp_frontend_fail(front, PWSP_FRONTEND_FAILED_TIME);
}

PWSP_INTERNAL bool pwsp_frontend_tell(pwsp_frontend *front, bool is_good) {
    return is_good || pwsp_frontend_fail(front, PWSP_FRONTEND_FAILED_TIME);
}

// A task has failed: reports it as if the walk had stopped at the task.
static bool pwsp_frontend_fail_task(pwsp_frontend *front, const pwsp_issued *issued) {
    pwsp_walk *walk = front->walk;
    pwsp_expander *x = &walk->expander;
    const pwsp_task_op *op = pwsp_frontend_op(front, issued->words);
    const pwsp_kernel_info *kernel = &x->program->kernels.items[op->kernel];
    if ((int64_t)issued->cycles == PTOWSP_SKIPPED && front->issue.reorder.is_out_of_memory) {
        pwsp_frontend_no_memory(front);
        return false;
    }
    if ((int64_t)issued->cycles == PTOWSP_SKIPPED && pwsp_walk_is_cut(walk)) {
        return pwsp_frontend_fail(front, PWSP_FRONTEND_FAILED_WALK);
    }
    pwsp_frontend_go_back(front, issued);
    if (kernel->code) {
        uint64_t args[PTOWSP_TASK_AXIS_MAX + 2 * PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX];
        ptowsp_tile tiles[PTOWSP_TASK_TILE_MAX];
        ptowsp_task task = pwsp_frontend_task_of(front, issued, args, tiles);
        ptowsp_cycles cycles;
        pwsp_tile_core_run(&walk->tile_core, kernel->code, &task, true, &cycles);
        pwsp_walk_fail_tiles(walk);
    } else if (kernel->unit == PTOWSP_UNIT_LINK) {
        pwsp_walk_fail_comm(x, &walk->comm.error);
    } else {
        pwsp_walk_fail_kernel(x, issued->cycles);
    }
    return pwsp_frontend_fail(front, PWSP_FRONTEND_FAILED_WALK);
}

// The cycles of a task that communicates, by its tiles. False after a failure.
static bool pwsp_frontend_link_cycles(pwsp_frontend *front, const pwsp_issued *issued,
                                      pwsp_arrival *arrival) {
    pwsp_walk *walk = front->walk;
    const pwsp_kernel_info *kernel = &walk->program->kernels.items[arrival->kernel];
    uint64_t args[2 * PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX];
    for (uint32_t i = 0; i < arrival->tile_count; i++) {
        args[2 * i] = arrival->tiles[i].rows;
        args[2 * i + 1] = arrival->tiles[i].cols;
    }
    for (uint32_t i = 0; i < kernel->scalar_count; i++) {
        args[2 * arrival->tile_count + i] = arrival->scalars[i];
    }
    pwsp_error error;
    if (pwsp_comm_cycles(&walk->comm, kernel, args, &arrival->cycles, &error)) {
        return true;
    }
    pwsp_frontend_go_back(front, issued);
    pwsp_walk_fail_comm(&walk->expander, &error);
    return pwsp_frontend_fail(front, PWSP_FRONTEND_FAILED_WALK);
}

// The traffic of a task, if lanes share memory. False after a failure.
static bool pwsp_frontend_demand(pwsp_frontend *front, const pwsp_issued *issued,
                                 pwsp_arrival *arrival) {
    pwsp_walk *walk = front->walk;
    arrival->demand = NULL;
    if (!walk->has_demand) {
        return true;
    }
    uint64_t args[PTOWSP_TASK_AXIS_MAX + 2 * PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX];
    ptowsp_tile tiles[PTOWSP_TASK_TILE_MAX];
    const ptowsp_task task = pwsp_frontend_task_of(front, issued, args, tiles);
    if (pwsp_walk_set_demand(walk, &task, arrival)) {
        return true;
    }
    pwsp_frontend_go_back(front, issued);
    pwsp_walk_fail_tiles(walk);
    return pwsp_frontend_fail(front, PWSP_FRONTEND_FAILED_WALK);
}

PWSP_INTERNAL bool pwsp_frontend_retire_task(pwsp_frontend *front, const pwsp_entry *entry,
                                             const pwsp_issued *issued) {
    if (issued->cycles > PTOWSP_CYCLES_MAX) {
        return pwsp_frontend_fail_task(front, issued);
    }
    const pwsp_task_op *op = pwsp_frontend_op(front, issued->words);
    const uint64_t *keys = issued->words + 1 + op->axis_count + op->scalar_count;
    pwsp_tile_at tiles[PTOWSP_TASK_TILE_MAX];
    pwsp_arrival arrival;
    pwsp_frontend_kept_tiles(front, issued, tiles);
    arrival.cycles = issued->cycles;
    arrival.dispatch_key = front->has_keys ? keys[0] : 0;
    arrival.priority_key = front->has_keys ? keys[1] : 0;
    arrival.stream_key = front->has_keys ? keys[2] : 0;
    arrival.tiles = tiles;
    arrival.tile_count = op->view_count;
    arrival.args = issued->words + 1;
    arrival.scalars = arrival.args + op->axis_count;
    pwsp_arrival_set_edges(&arrival, front->walk->program, op);
    arrival.kernel = entry->kernel;
    arrival.node = pwsp_frontend_node(issued->words);
    arrival.unit = entry->unit;
    arrival.pool = front->walk->program->kernels.items[entry->kernel].pool;
    if (entry->unit == PTOWSP_UNIT_LINK && !pwsp_frontend_link_cycles(front, issued, &arrival)) {
        return false;
    }
    if (!pwsp_frontend_demand(front, issued, &arrival)) {
        return false;
    }
    bool is_good = pwsp_timeline_task(front->time, &arrival);
    pwsp_frontend_tell_clock(front, entry);
    return pwsp_frontend_tell(front, is_good);
}

// A slot load has one element.
static bool pwsp_frontend_retire_load(pwsp_frontend *front, const pwsp_entry *entry) {
    if (entry->index == PWSP_FRONTEND_LOAD_IN_PROCESS) {
        return true;
    }
    const uint64_t *words = pwsp_entry_words(entry);
    const pwsp_tile_at at =
        pwsp_entry_tile_at(pwsp_frontend_tiles(front, words), (uint32_t)words[0], PWSP_TILE_READ);
    return pwsp_frontend_tell(front, pwsp_timeline_slot_load(front->time, &at));
}

static bool pwsp_frontend_retire(void *user, const pwsp_entry *entry) {
    pwsp_frontend *front = (pwsp_frontend *)user;
    pwsp_issued issued = pwsp_frontend_issued(entry);
    issued.cycles = entry->cycles;
    switch (entry->kind) {
    case PWSP_ENTRY_TASK:
        return pwsp_entry_is_block(entry) ? pwsp_frontend_retire_block(front, entry)
                                          : pwsp_frontend_retire_task(front, entry, &issued);
    case PWSP_ENTRY_PROCESS_TASK:
        pwsp_frontend_tell_clock(front, entry);
        return entry->cycles <= PTOWSP_CYCLES_MAX || pwsp_frontend_fail_task(front, &issued);
    case PWSP_ENTRY_LOAD: return pwsp_frontend_retire_load(front, entry);
    default: {
        PTOWSP_ASSERT(entry->kind == PWSP_ENTRY_MARK);
        const pwsp_mark mark = pwsp_entry_mark(entry);
        return pwsp_frontend_tell(front, pwsp_timeline_mark(front->time, &mark));
    }
    }
}

// -- issuing --------------------------------------------------------------------------------------

// An error of the walk counts once all earlier entries have been retired.
static bool pwsp_frontend_fail_walk(pwsp_frontend *front) {
    return pwsp_issue_settle(&front->issue) && pwsp_frontend_fail(front, PWSP_FRONTEND_FAILED_WALK);
}

// The words of the opened entry, which is the expander's task.
static void pwsp_frontend_fill_entry(const pwsp_frontend *front, pwsp_entry *entry,
                                     const pwsp_arrival *arrival) {
    if (front->clocked) {
        pwsp_frontend_mark_of(front, entry)->end = 0;
    }
    entry->unit = arrival->unit;
    entry->kernel = arrival->kernel;
    entry->index = front->walk->expander.task.index;
    pwsp_frontend_fill(front, pwsp_entry_words(entry), arrival);
}

// They are if no long one is in flight, and enough tasks have come before.
PWSP_INTERNAL void pwsp_frontend_see(pwsp_frontend *front, uint32_t kernel, uint32_t task_count) {
    pwsp_pace *pace = &front->pace;
    const pwsp_reorder *reorder = &front->issue.reorder;
    if (!pace->is_on) {
        return;
    }
    if (!pace->ticks[kernel] || reorder->tail % PWSP_PACE_LOOK == 0) {
        pwsp_pace_learn(pace, kernel);
    }
    const bool is_short = pwsp_pace_is_short(pace, kernel);
    pace->seen_count += pace->seen_count < pace->hold ? task_count : 0;
    front->long_tail = is_short ? front->long_tail : reorder->tail;
    front->wants_to_keep = pace->may_keep && is_short && pace->seen_count >= pace->hold &&
                           front->long_tail <= reorder->head;
}

// Stops the walk, too, when the next tasks are to be kept.
static bool pwsp_frontend_task(void *user) {
    pwsp_frontend *front = (pwsp_frontend *)user;
    pwsp_expander *x = &front->walk->expander;
    pwsp_arrival arrival;
    if (!pwsp_walk_keys(x, &arrival)) {
        return pwsp_frontend_fail_walk(front);
    }
    pwsp_entry *entry =
        pwsp_frontend_has_room(front, 1) ? pwsp_issue_open(&front->issue, PWSP_ENTRY_TASK) : NULL;
    if (!entry) {
        return false;
    }
    arrival.cycles = 0;
    pwsp_walk_arrival(x, &arrival);
    pwsp_frontend_fill_entry(front, entry, &arrival);
    if (front->is_homed && arrival.unit != PTOWSP_UNIT_LINK) {
        entry->home = pwsp_frontend_home(front, &arrival);
    }
    if (!pwsp_issue_submit(&front->issue, &arrival)) {
        return false;
    }
    pwsp_frontend_see(front, arrival.kernel, 1);
    return !front->pace.is_on ||
           (!front->wants_to_keep && pwsp_frontend_blocks(front) && !front->wants_to_keep);
}

// Waits for the writer of the element, and loads it.
static bool pwsp_frontend_load(pwsp_frontend *front, uint64_t in_process) {
    pwsp_expander *x = &front->walk->expander;
    pwsp_entry *entry = pwsp_issue_open(&front->issue, PWSP_ENTRY_LOAD);
    if (!entry) {
        return false;
    }
    PWSP_ZERO(pwsp_arrival, arrival);
    arrival.tiles = &x->load_at;
    arrival.tile_count = 1;
    entry->index = in_process;
    pwsp_entry_words(entry)[0] = x->load_at.tensor;
    *pwsp_frontend_tiles(front, pwsp_entry_words(entry)) = pwsp_entry_tile_of(&x->load_at);
    if (!pwsp_issue_submit(&front->issue, &arrival)) {
        return false;
    }
    pwsp_expander_load(x);
    return true;
}

static bool pwsp_frontend_slot_load(void *user) {
    return pwsp_frontend_load((pwsp_frontend *)user, 0);
}

// Time accounts for it at retirement.
static bool pwsp_frontend_mark(void *user, const pwsp_mark *mark) {
    return pwsp_issue_mark(&((pwsp_frontend *)user)->issue, mark);
}

// -- pipelines ------------------------------------------------------------------------------------

static bool pwsp_frontend_pipeline(void *user) {
    pwsp_frontend *front = (pwsp_frontend *)user;
    if (!pwsp_issue_pipeline_begin(&front->issue)) {
        return false;
    }
    if (pwsp_pipes_run(front->pipes)) {
        pwsp_issue_pipeline_end(&front->issue, &front->pipes->arrival.whole);
        return true;
    }
    if (front->failure != PWSP_FRONTEND_GOOD) {
        return false;
    }
    bool is_walk = front->walk->expander.status != PTOWSP_OK;
    return pwsp_issue_settle(&front->issue) &&
           pwsp_frontend_fail(front,
                              is_walk ? PWSP_FRONTEND_FAILED_WALK : PWSP_FRONTEND_FAILED_TIME);
}

// Are a kernel's cycles known before it runs? If not, returns false with *out_failed false.
static bool pwsp_frontend_cycles(pwsp_walk *walk, ptowsp_cycles *out_cycles, bool *out_failed) {
    const pwsp_kernel_info *kernel = walk->expander.kernel;
    *out_failed = false;
    if (!kernel->code && !kernel->cost && !kernel->cycles) {
        return false;
    }
    *out_failed = !pwsp_walk_kernel(walk, true, out_cycles);
    return !*out_failed;
}

// A task in a process: runs it, or accounts for it and lets it run later.
static bool pwsp_frontend_process_task(void *user, uint32_t process, ptowsp_cycles *out_cycles) {
    pwsp_frontend *front = (pwsp_frontend *)user;
    pwsp_issue *issue = &front->issue;
    bool has_failed, is_known = pwsp_frontend_cycles(front->walk, out_cycles, &has_failed);
    if (has_failed || !pwsp_issue_has_process(issue, process)) {
        return false;
    }
    pwsp_entry *entry = pwsp_issue_open(issue, PWSP_ENTRY_PROCESS_TASK);
    if (!entry) {
        return false;
    }
    PWSP_ZERO(pwsp_arrival, arrival);
    pwsp_walk_arrival(&front->walk->expander, &arrival);
    pwsp_frontend_fill_entry(front, entry, &arrival);
    if (!pwsp_issue_submit_process(issue, process, &arrival)) {
        return false;
    }
    if (is_known) {
        return true;
    }
    if (!pwsp_issue_await(issue, entry)) {
        return false;
    }
    if (front->clocked) {
        front->pipes->mark = *pwsp_frontend_mark_of(front, entry);
    }
    *out_cycles = entry->cycles;
    return true;
}

static bool pwsp_frontend_process_load(void *user) {
    return pwsp_frontend_load((pwsp_frontend *)user, PWSP_FRONTEND_LOAD_IN_PROCESS);
}

static bool pwsp_frontend_process_settle(void *user) {
    return pwsp_issue_settle(&((pwsp_frontend *)user)->issue);
}

PWSP_INTERNAL pwsp_process_tasks pwsp_frontend_process_tasks(pwsp_frontend *front) {
    pwsp_process_tasks tasks = {pwsp_frontend_process_task, pwsp_frontend_process_load,
                                pwsp_frontend_process_settle, front};
    return tasks;
}

// -- walking --------------------------------------------------------------------------------------

static bool pwsp_frontend_end(void *user) {
    pwsp_frontend *front = (pwsp_frontend *)user;
    return pwsp_issue_settle(&front->issue) &&
           pwsp_frontend_tell(front, pwsp_timeline_end(front->time));
}

PWSP_INTERNAL void pwsp_frontend_begin(pwsp_frontend *front, uint32_t vector_count,
                                       uint32_t cube_count) {
    const pwsp_issue_host host = {pwsp_frontend_retire, pwsp_frontend_no_memory, front};
    bool is_lane_clocked = front->clocked != NULL && front->is_lane;
    PTOWSP_ASSERT(vector_count + cube_count <= front->core_count);
    front->issue.reorder.call = is_lane_clocked ? pwsp_frontend_call_clocked : pwsp_frontend_call;
    front->issue.reorder.call_user = front;
    pwsp_issue_begin(&front->issue, front->walk->bindings->effective, &front->executor, &host);
    pwsp_frontend_begin_blocks(front);
    front->failure = PWSP_FRONTEND_GOOD;
    front->home_first[0] = 0;
    front->home_first[1] = vector_count;
    front->home_counts[0] = vector_count;
    front->home_counts[1] = cube_count;
    for (uint32_t i = 0; i < front->core_count; i++) {
        front->cores[i].cost = &front->walk->cost;
    }
    // Where tasks have lanes of their own, or their wall clock is asked for, each goes alone.
    pwsp_pace_begin(&front->pace, vector_count,
                    front->is_lane && !front->is_homed && !front->clocked,
                    !front->walk->program->has_link);
    front->long_tail = 0;
    front->wants_to_keep = false;
}

PWSP_INTERNAL pwsp_event pwsp_frontend_walk(pwsp_frontend *front, const pwsp_executor *executor,
                                            pwsp_event event) {
    const pwsp_executor clocked = {pwsp_frontend_ready, pwsp_frontend_help, front};
    front->issue.reorder.executor = front->clocked ? clocked : *executor;
    front->executor = *executor;
    static const pwsp_sink engine = {pwsp_frontend_task, pwsp_frontend_mark,
                                     pwsp_frontend_slot_load, pwsp_frontend_pipeline,
                                     pwsp_frontend_end};
    front->wants_to_keep = false;
    bool is_good = pwsp_stream_run(front->walk, &engine, front, &event) || front->wants_to_keep;
    if (event == PWSP_EVENT_ERROR) {
        is_good = pwsp_frontend_fail_walk(front);
    }
    is_good = is_good && pwsp_issue_settle(&front->issue);
    pwsp_issue_drain(&front->issue);
    return !is_good || front->failure != PWSP_FRONTEND_GOOD ? PWSP_EVENT_ERROR
           : event == PWSP_EVENT_END                        ? PWSP_EVENT_END
                                                            : PWSP_EVENT_NONE;
}
