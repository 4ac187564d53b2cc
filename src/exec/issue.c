// Issuing and retiring: see issue.h.
//
// The walking thread retires whatever is done at the head of the reorder buffer before it issues
// the next task, and helps to run tasks while the buffer is full, a slot has to be loaded, or all
// has been issued. After a failure it issues nothing more, and waits for what is in flight.
//
// Errors keep program order: what the walk finds wrong counts only when all before it has been
// retired; and the failure that is retired first is the one that would have come without lanes.
//
// A pipeline is walked by the rules of time, with its processes' tasks issued as they come. All
// that is before it has been retired by then, so it waits for nothing; what follows waits for its
// tasks.

#include "issue.h"

#include "call.h"

// -- entries --------------------------------------------------------------------------------------

PWSP_INLINE uint32_t pwsp_issue_op_index(const pwsp_issue *issue, const pwsp_task_op *op) {
    return (uint32_t)(op - (const pwsp_task_op *)issue->run->program->tasks.items);
}

// The words of a task: axis arguments, scalars, keys (dispatch, priority, stream), variables.
static void pwsp_issue_fill(pwsp_issue *issue, const pwsp_expander *x, pwsp_entry *entry,
                            const pwsp_arrival *arrival) {
    const pwsp_task_op *op = x->task_op;
    const uint64_t *args = x->task.args;
    uint64_t *word = pwsp_entry_words(entry);
    entry->op = op;
    entry->node = x->node;
    entry->index = x->task.index;
    for (uint32_t i = 0; i < op->axis_count; i++) {
        *word++ = args[i];
    }
    for (uint32_t i = 0; i < op->scalar_count; i++) {
        *word++ = args[x->task.axis_arg_count + i];
    }
    if (issue->has_keys) {
        *word++ = arrival->dispatch_key;
        *word++ = arrival->priority_key;
        *word++ = arrival->stream_key;
    }
    pwsp_issue_variables variables = issue->variables[pwsp_issue_op_index(issue, op)];
    for (uint32_t i = 0; i < variables.count; i++) {
        *word++ = x->cells[issue->cells[variables.first + i]];
    }
    pwsp_entry_tile *tiles = pwsp_entry_tiles(&issue->reorder, entry);
    for (uint32_t i = 0; i < op->view_count; i++) {
        const pwsp_tile_at *at = &x->tiles_at[i];
        pwsp_entry_tile tile = {at->lead, at->row, at->col};
        tiles[i] = tile;
    }
}

// The tiles of an entry, as the walk has found them.
static void pwsp_issue_tiles(const pwsp_issue *issue, const pwsp_entry *entry, pwsp_tile_at *at) {
    const pwsp_task_op *op = entry->op;
    const pwsp_entry_tile *tiles = pwsp_entry_tiles(&issue->reorder, entry);
    const pwsp_tile_view *views =
        PWSP_PROGRAM_AT(issue->run->program, views, pwsp_tile_view, op->first_view);
    for (uint32_t i = 0; i < op->view_count; i++) {
        const pwsp_bound_tensor *tensor = &issue->run->effective[views[i].tensor];
        int64_t rows = tensor->rows - tiles[i].row, cols = tensor->cols - tiles[i].col;
        at[i].tensor = views[i].tensor;
        at[i].rows = (uint32_t)(views[i].rows && views[i].rows < rows ? views[i].rows : rows);
        at[i].cols = (uint32_t)(views[i].cols && views[i].cols < cols ? views[i].cols : cols);
        at[i].lead = tiles[i].lead;
        at[i].row = tiles[i].row;
        at[i].col = tiles[i].col;
    }
}

// The lane or core that dispatch chooses.
static uint32_t pwsp_issue_home(const pwsp_issue *issue, const pwsp_expander *x, uint64_t key) {
    uint32_t group = issue->home_counts[1] > 0 && x->kernel->unit == PTOWSP_UNIT_CUBE;
    key = x->program->schedule.dispatch == PTOWSP_DISPATCH_HASH ? pwsp_mix64(key) : key;
    return issue->home_first[group] + pwsp_modulo(key, issue->home_counts[group]);
}

// The task of an entry as its kernel sees it; args and tiles have room for any.
static ptowsp_task pwsp_issue_task_of(const pwsp_issue *issue, const pwsp_entry *entry,
                                      uint64_t *args, ptowsp_tile *tiles) {
    const pwsp_task_op *op = entry->op;
    pwsp_tile_at at[PTOWSP_TASK_TILE_MAX];
    pwsp_issue_tiles(issue, entry, at);
    const uint64_t *words = pwsp_entry_words(entry);
    uint64_t *arg = args;
    for (uint32_t i = 0; i < op->axis_count; i++) {
        *arg++ = words[i];
    }
    for (uint32_t i = 0; i < op->view_count; i++) {
        const pwsp_bound_tensor *tensor = &issue->run->effective[at[i].tensor];
        *arg++ = at[i].rows;
        *arg++ = at[i].cols;
        tiles[i].data =
            tensor->data + pwsp_tile_offset(tensor, &at[i]) * (int64_t)tensor->element_size;
        tiles[i].row_stride = tensor->row_stride;
        tiles[i].col_stride = tensor->col_stride;
    }
    for (uint32_t i = 0; i < op->scalar_count; i++) {
        *arg++ = words[op->axis_count + i];
    }
    ptowsp_task task;
    task.args = args;
    task.arg_count = (uint32_t)(arg - args);
    task.axis_arg_count = task.arg_count - op->scalar_count;
    task.user_axis_count = op->axis_count;
    task.tile_count = op->view_count;
    task.tiles = tiles;
    task.index = entry->index;
    task.kernel_name =
        PWSP_PROGRAM_AT(issue->run->program, kernels, pwsp_kernel_info, op->kernel)->name;
    task.lane = 0;
    return task;
}

PWSP_INTERNAL ptowsp_cycles pwsp_issue_call(void *user, const pwsp_entry *entry, uint32_t lane) {
    const pwsp_issue *issue = (const pwsp_issue *)user;
    const pwsp_kernel_info *kernel =
        PWSP_PROGRAM_AT(issue->run->program, kernels, pwsp_kernel_info, entry->op->kernel);
    uint64_t args[PTOWSP_TASK_AXIS_MAX + 2 * PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX];
    ptowsp_tile tiles[PTOWSP_TASK_TILE_MAX];
    ptowsp_task task = pwsp_issue_task_of(issue, entry, args, tiles);
    task.lane = lane;
    if (kernel->code) {
        ptowsp_cycles cycles;
        bool is_good = pwsp_tile_core_run(&issue->cores[lane], kernel->code, &task, false, &cycles);
        return is_good ? cycles : ptowsp_task_fail(PTOWSP_INVALID_PARAMS);
    }
    if (entry->kind == PWSP_ENTRY_PROCESS_TASK) {
        return kernel->fn(&task, kernel->user);
    }
    return pwsp_kernel_call(kernel, &task, false);
}

// -- retiring -------------------------------------------------------------------------------------

static bool pwsp_issue_fail(pwsp_issue *issue, pwsp_issue_failure failure) {
    issue->failure = failure;
    return false;
}

static bool pwsp_issue_no_memory(pwsp_issue *issue) {
    pwsp_sim_no_memory(&issue->run->sim);
    return pwsp_issue_fail(issue, PWSP_ISSUE_FAILED_TIME);
}

// A task has failed: tells it as the walk would have, had it stopped there.
static bool pwsp_issue_fail_task(pwsp_issue *issue, const pwsp_entry *entry) {
    ptowsp_run *run = issue->run;
    pwsp_expander *x = &run->expander;
    const pwsp_kernel_info *kernel =
        PWSP_PROGRAM_AT(x->program, kernels, pwsp_kernel_info, entry->op->kernel);
    if ((int64_t)entry->cycles == PTOWSP_SKIPPED && issue->reorder.is_out_of_memory) {
        return pwsp_issue_no_memory(issue);
    }
    const uint64_t *word = pwsp_entry_words(entry) + entry->op->axis_count +
                           entry->op->scalar_count + (issue->has_keys ? 3 : 0);
    pwsp_issue_variables variables = issue->variables[pwsp_issue_op_index(issue, entry->op)];
    for (uint32_t i = 0; i < variables.count; i++) {
        x->cells[issue->cells[variables.first + i]] = word[i];
    }
    x->node = entry->node;
    x->task.index = entry->index;
    if (kernel->code) {
        uint64_t args[PTOWSP_TASK_AXIS_MAX + 2 * PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX];
        ptowsp_tile tiles[PTOWSP_TASK_TILE_MAX];
        ptowsp_task task = pwsp_issue_task_of(issue, entry, args, tiles);
        ptowsp_cycles cycles;
        pwsp_tile_core_run(&run->tile_core, kernel->code, &task, true, &cycles);
        pwsp_run_fail_tiles(run);
    } else {
        pwsp_run_fail_kernel(x, entry->cycles);
    }
    return pwsp_issue_fail(issue, PWSP_ISSUE_FAILED_WALK);
}

static bool pwsp_issue_retire_task(pwsp_issue *issue, const pwsp_entry *entry) {
    ptowsp_run *run = issue->run;
    const pwsp_task_op *op = entry->op;
    const uint64_t *keys = pwsp_entry_words(entry) + op->axis_count + op->scalar_count;
    pwsp_tile_at tiles[PTOWSP_TASK_TILE_MAX];
    pwsp_arrival arrival;
    pwsp_issue_tiles(issue, entry, tiles);
    arrival.cycles = entry->cycles;
    arrival.dispatch_key = issue->has_keys ? keys[0] : 0;
    arrival.priority_key = issue->has_keys ? keys[1] : 0;
    arrival.stream_key = issue->has_keys ? keys[2] : 0;
    arrival.op = op;
    arrival.tiles = tiles;
    arrival.views = PWSP_PROGRAM_AT(run->program, views, pwsp_tile_view, op->first_view);
    arrival.unit = PWSP_PROGRAM_AT(run->program, kernels, pwsp_kernel_info, op->kernel)->unit;
    arrival.node = entry->node;
    bool is_good = run->is_flow ? pwsp_flow_task(&run->flow, &arrival)
                                : pwsp_lanes_task(&run->lanes, &arrival);
    return is_good || pwsp_issue_fail(issue, PWSP_ISSUE_FAILED_TIME);
}

static bool pwsp_issue_time(pwsp_issue *issue, pwsp_event event, pwsp_range reset,
                            const pwsp_tile_at *load_at) {
    return pwsp_run_time(issue->run, event, reset, load_at) ||
           pwsp_issue_fail(issue, PWSP_ISSUE_FAILED_TIME);
}

// A slot load has one element.
static bool pwsp_issue_retire_load(pwsp_issue *issue, const pwsp_entry *entry) {
    const pwsp_entry_tile *tile = pwsp_entry_tiles(&issue->reorder, entry);
    pwsp_tile_at at = {
        (uint32_t)pwsp_entry_words(entry)[0], 1, 1, tile->lead, tile->row, tile->col};
    pwsp_range none = {0, 0};
    return pwsp_issue_time(issue, PWSP_EVENT_SLOT_LOAD, none, &at);
}

static bool pwsp_issue_retire_one(pwsp_issue *issue, const pwsp_entry *entry) {
    pwsp_range none = {0, 0};
    if (entry->kind <= PWSP_ENTRY_PROCESS_TASK && entry->cycles > PTOWSP_CYCLES_MAX) {
        return pwsp_issue_fail_task(issue, entry);
    }
    switch (entry->kind) {
    case PWSP_ENTRY_TASK: return pwsp_issue_retire_task(issue, entry);
    case PWSP_ENTRY_PROCESS_TASK: return true;
    case PWSP_ENTRY_LOAD:
        return entry->index == PWSP_ISSUE_LOAD_IN_PROCESS || pwsp_issue_retire_load(issue, entry);
    case PWSP_ENTRY_PARALLEL: return pwsp_issue_time(issue, PWSP_EVENT_PARALLEL, none, NULL);
    case PWSP_ENTRY_SEQUENTIAL: return pwsp_issue_time(issue, PWSP_EVENT_SEQUENTIAL, none, NULL);
    case PWSP_ENTRY_SCOPE_END: return pwsp_issue_time(issue, PWSP_EVENT_SCOPE_END, none, NULL);
    case PWSP_ENTRY_RESET: {
        const uint64_t *words = pwsp_entry_words(entry);
        pwsp_range reset = {(uint32_t)words[0], (uint32_t)words[1]};
        return pwsp_issue_time(issue, PWSP_EVENT_RESET, reset, NULL);
    }
    }
    return true;
}

// Retires what is done at the head. False after a failure.
static bool pwsp_issue_retire(pwsp_issue *issue) {
    pwsp_reorder *reorder = &issue->reorder;
    while (reorder->head < reorder->tail) {
        const pwsp_entry *entry = pwsp_reorder_entry(reorder, reorder->head);
        if (!pwsp_entry_is_done(entry)) {
            return true;
        }
        if (!pwsp_issue_retire_one(issue, entry)) {
            return false;
        }
        reorder->head++;
    }
    return true;
}

static void pwsp_issue_help(pwsp_issue *issue, uint32_t ticket) {
    issue->reorder.executor.help(issue->reorder.executor.user, ticket);
}

// Retires until there is room for another entry. False after a failure.
static bool pwsp_issue_room(pwsp_issue *issue) {
    for (;;) {
        uint32_t ticket = pwsp_reorder_ticket(&issue->reorder);
        if (!pwsp_issue_retire(issue)) {
            return false;
        }
        if (!pwsp_reorder_is_full(&issue->reorder)) {
            return true;
        }
        pwsp_issue_help(issue, ticket);
    }
}

// Retires until nothing is in flight. False after a failure.
static bool pwsp_issue_settle(pwsp_issue *issue) {
    for (;;) {
        uint32_t ticket = pwsp_reorder_ticket(&issue->reorder);
        if (!pwsp_issue_retire(issue)) {
            return false;
        }
        if (issue->reorder.head == issue->reorder.tail) {
            return true;
        }
        pwsp_issue_help(issue, ticket);
    }
}

// Retires until an entry is done. False after a failure, also of what it waits for.
static bool pwsp_issue_await(pwsp_issue *issue, const pwsp_entry *entry) {
    for (;;) {
        uint32_t ticket = pwsp_reorder_ticket(&issue->reorder);
        if (!pwsp_issue_retire(issue)) {
            return false;
        }
        if (pwsp_entry_is_done(entry)) {
            return !pwsp_load_relaxed(&entry->fan.is_poisoned) || pwsp_issue_settle(issue);
        }
        pwsp_issue_help(issue, ticket);
    }
}

// Waits for what is in flight, and forgets it.
static void pwsp_issue_drain(pwsp_issue *issue) {
    pwsp_reorder *reorder = &issue->reorder;
    while (reorder->head < reorder->tail) {
        uint32_t ticket = pwsp_reorder_ticket(reorder);
        if (pwsp_entry_is_done(pwsp_reorder_entry(reorder, reorder->head))) {
            reorder->head++;
        } else {
            pwsp_issue_help(issue, ticket);
        }
    }
}

// -- issuing --------------------------------------------------------------------------------------

// Issues what has been opened; `is_good` is false when memory is out: then it does not run, but
// what is before it does, and may have failed. False after a failure.
static bool pwsp_issue_end(pwsp_issue *issue, bool is_good) {
    issue->reorder.is_out_of_memory = issue->reorder.is_out_of_memory || !is_good;
    pwsp_reorder_issue(&issue->reorder);
    return !issue->reorder.is_out_of_memory ||
           (pwsp_issue_settle(issue) && pwsp_issue_no_memory(issue));
}

static bool pwsp_issue_task(pwsp_issue *issue) {
    pwsp_expander *x = &issue->run->expander;
    pwsp_arrival keys;
    if (!pwsp_run_keys(x, &keys)) {
        return pwsp_issue_settle(issue) && pwsp_issue_fail(issue, PWSP_ISSUE_FAILED_WALK);
    }
    if (!pwsp_issue_room(issue)) {
        return false;
    }
    pwsp_entry *entry = pwsp_reorder_open(&issue->reorder, PWSP_ENTRY_TASK);
    pwsp_issue_fill(issue, x, entry, &keys);
    if (issue->is_homed) {
        entry->home = pwsp_issue_home(issue, x, keys.dispatch_key);
    }
    return pwsp_issue_end(issue, pwsp_issue_connect(issue, x, keys.stream_key));
}

// Waits for what writes the element, and loads it.
static bool pwsp_issue_load(pwsp_issue *issue, uint64_t in_process) {
    pwsp_expander *x = &issue->run->expander;
    if (!pwsp_issue_room(issue)) {
        return false;
    }
    pwsp_entry *entry = pwsp_reorder_open(&issue->reorder, PWSP_ENTRY_LOAD);
    entry->index = in_process;
    pwsp_entry_tile tile = {x->load_at.lead, x->load_at.row, x->load_at.col};
    pwsp_entry_words(entry)[0] = x->load_at.tensor;
    *pwsp_entry_tiles(&issue->reorder, entry) = tile;
    pwsp_deps_query_load(&issue->deps, &x->load_at);
    if (!pwsp_issue_end(issue, true) || !pwsp_issue_await(issue, entry)) {
        return false;
    }
    pwsp_expander_load(x);
    return true;
}

// A scope, or forgotten edges: time is told when that is retired, or at once if nothing is in
// flight.
static bool pwsp_issue_mark(pwsp_issue *issue, pwsp_event event, pwsp_entry_kind kind) {
    const pwsp_expander *x = &issue->run->expander;
    if (event == PWSP_EVENT_RESET) {
        pwsp_issue_reset(issue, x->reset);
    } else if (issue->has_structure && event == PWSP_EVENT_SCOPE_END) {
        pwsp_issue_scope_end(issue);
    } else if (issue->has_structure) {
        pwsp_issue_scope_begin(issue, event == PWSP_EVENT_PARALLEL);
    }
    if (!pwsp_issue_room(issue)) {
        return false;
    }
    if (issue->reorder.head == issue->reorder.tail) {
        return pwsp_issue_time(issue, event, x->reset, NULL);
    }
    pwsp_entry *entry = pwsp_reorder_open(&issue->reorder, kind);
    if (event == PWSP_EVENT_RESET) {
        pwsp_entry_words(entry)[0] = x->reset.first;
        pwsp_entry_words(entry)[1] = x->reset.count;
    }
    return pwsp_issue_end(issue, true);
}

// -- pipelines ------------------------------------------------------------------------------------

static bool pwsp_issue_pipeline(pwsp_issue *issue) {
    ptowsp_run *run = issue->run;
    const pwsp_pipeline_op *op = run->expander.pipeline;
    if (!pwsp_issue_settle(issue)) {
        return false;
    }
    for (uint64_t i = 0; i < issue->process_capacity; i++) {
        issue->process_last[i] = PWSP_NO_TOKEN_TASK;
    }
    issue->pipeline_done = pwsp_reorder_no_token();
    bool is_good = pwsp_run_pipeline(run);
    if (!is_good && issue->failure == PWSP_ISSUE_GOOD) {
        bool is_walk = run->expander.status != PTOWSP_OK;
        return pwsp_issue_settle(issue) &&
               pwsp_issue_fail(issue, is_walk ? PWSP_ISSUE_FAILED_WALK : PWSP_ISSUE_FAILED_TIME);
    }
    if (is_good && issue->pipeline_done.task != PWSP_NO_TOKEN_TASK) {
        if (issue->has_structure) {
            pwsp_issue_child(issue, &issue->pipeline_done);
        }
        pwsp_issue_out(issue, &op->task, &issue->pipeline_done);
    }
    pwsp_reorder_drop(&issue->reorder, &issue->pipeline_done);
    return is_good;
}

// Are a kernel's cycles known before it runs? False with *out_failed false if they are not.
static bool pwsp_issue_cycles(ptowsp_run *run, ptowsp_cycles *out_cycles, bool *out_failed) {
    pwsp_expander *x = &run->expander;
    const pwsp_kernel_info *kernel = x->kernel;
    *out_failed = false;
    if (!kernel->code && !kernel->cost && !kernel->cycles) {
        return false;
    }
    *out_failed = !pwsp_run_kernel(run, true, out_cycles);
    return !*out_failed;
}

PWSP_INTERNAL bool pwsp_issue_process_task(pwsp_issue *issue, uint32_t process,
                                           ptowsp_cycles *out_cycles) {
    ptowsp_run *run = issue->run;
    pwsp_expander *x = &run->expander;
    pwsp_reorder *reorder = &issue->reorder;
    bool has_failed, is_known = pwsp_issue_cycles(run, out_cycles, &has_failed);
    if (has_failed || !pwsp_issue_room(issue)) {
        return false;
    }
    void *last = issue->process_last;
    uint64_t before = issue->process_capacity;
    if (!pwsp_memory_grow(&issue->memory, &last, &issue->process_capacity, (uint64_t)process + 1,
                          sizeof(uint64_t))) {
        return pwsp_issue_settle(issue) && pwsp_issue_no_memory(issue);
    }
    issue->process_last = (uint64_t *)last;
    for (uint64_t i = before; i < issue->process_capacity; i++) {
        issue->process_last[i] = PWSP_NO_TOKEN_TASK;
    }
    pwsp_arrival keys = {0, 0, 0, 0, NULL, NULL, NULL, PTOWSP_UNIT_VECTOR, 0};
    pwsp_entry *entry = pwsp_reorder_open(reorder, PWSP_ENTRY_PROCESS_TASK);
    pwsp_issue_fill(issue, x, entry, &keys);
    pwsp_token token = pwsp_reorder_token(reorder);
    pwsp_token previous = {0, issue->process_last[process]};
    pwsp_reorder_wait(reorder, &previous);
    issue->process_last[process] = token.task;
    const pwsp_task_op *op = x->task_op;
    const pwsp_tile_view *views =
        PWSP_PROGRAM_AT(x->program, views, pwsp_tile_view, op->first_view);
    bool is_good = pwsp_deps_query(&issue->deps, views, x->tiles_at, op->view_count) &&
                   pwsp_deps_add(&issue->deps, views, x->tiles_at, op->view_count, &token);
    pwsp_reorder_merge(reorder, &issue->pipeline_done, &token);
    if (!pwsp_issue_end(issue, is_good)) {
        return false;
    }
    if (is_known) {
        return true;
    }
    if (!pwsp_issue_await(issue, entry)) {
        return false;
    }
    *out_cycles = entry->cycles;
    return true;
}

PWSP_INTERNAL bool pwsp_issue_process_load(pwsp_issue *issue) {
    return pwsp_issue_load(issue, PWSP_ISSUE_LOAD_IN_PROCESS);
}

PWSP_INTERNAL bool pwsp_issue_process_settle(pwsp_issue *issue) {
    return pwsp_issue_settle(issue);
}

// -- walking --------------------------------------------------------------------------------------

// One event of the walk. False after a failure.
static bool pwsp_issue_event(pwsp_issue *issue, pwsp_event event) {
    pwsp_range none = {0, 0};
    switch (event) {
    case PWSP_EVENT_TASK: return pwsp_issue_task(issue);
    case PWSP_EVENT_PARALLEL: return pwsp_issue_mark(issue, event, PWSP_ENTRY_PARALLEL);
    case PWSP_EVENT_SEQUENTIAL: return pwsp_issue_mark(issue, event, PWSP_ENTRY_SEQUENTIAL);
    case PWSP_EVENT_SCOPE_END: return pwsp_issue_mark(issue, event, PWSP_ENTRY_SCOPE_END);
    case PWSP_EVENT_RESET: return pwsp_issue_mark(issue, event, PWSP_ENTRY_RESET);
    case PWSP_EVENT_SLOT_LOAD: return pwsp_issue_load(issue, 0);
    case PWSP_EVENT_PIPELINE: return pwsp_issue_pipeline(issue);
    case PWSP_EVENT_END:
        return pwsp_issue_settle(issue) && pwsp_issue_time(issue, event, none, NULL);
    case PWSP_EVENT_ERROR:
        return pwsp_issue_settle(issue) && pwsp_issue_fail(issue, PWSP_ISSUE_FAILED_WALK);
    case PWSP_EVENT_PROCESS_END:
    case PWSP_EVENT_SEND:
    case PWSP_EVENT_RECEIVE:
    case PWSP_EVENT_CLOSE:
    case PWSP_EVENT_NONE: break;
    }
    return true;
}

static void pwsp_issue_begin(pwsp_issue *issue, const pwsp_executor *executor,
                             uint32_t vector_count, uint32_t cube_count) {
    const ptowsp_program *program = issue->run->program;
    pwsp_token none = pwsp_reorder_no_token();
    pwsp_issue_scope root = {false, none, none};
    pwsp_reorder_begin(&issue->reorder, executor);
    pwsp_deps_begin_data(&issue->deps, &issue->run->timed, issue->run->effective);
    issue->scopes[0] = root;
    issue->depth = 1;
    issue->failure = PWSP_ISSUE_GOOD;
    for (uint32_t i = 0; issue->streams && i < program->schedule.stream_count; i++) {
        issue->streams[i] = none;
    }
    for (uint32_t i = 0; i < program->edge_count; i++) {
        issue->edges[i] = none;
    }
    issue->home_first[0] = 0;
    issue->home_first[1] = vector_count;
    issue->home_counts[0] = vector_count;
    issue->home_counts[1] = cube_count;
    for (uint32_t i = 0; i < issue->core_count; i++) {
        issue->cores[i].cost = &issue->run->cost;
    }
}

PWSP_INTERNAL ptowsp_status pwsp_issue_walk(pwsp_issue *issue, const pwsp_executor *executor,
                                            uint32_t vector_count, uint32_t cube_count) {
    ptowsp_run *run = issue->run;
    pwsp_expander *x = &run->expander;
    pwsp_issue_begin(issue, executor, vector_count, cube_count);
    pwsp_run_begin_walk(run, false);
    pwsp_event event;
    do {
        event = pwsp_expander_next(x);
    } while (pwsp_issue_event(issue, event) && event != PWSP_EVENT_END);
    pwsp_issue_drain(issue);
    switch (issue->failure) {
    case PWSP_ISSUE_FAILED_WALK: return pwsp_run_fail_walk(run);
    case PWSP_ISSUE_FAILED_TIME: return pwsp_run_fail_sim(run);
    case PWSP_ISSUE_GOOD: break;
    }
    return PTOWSP_OK;
}
