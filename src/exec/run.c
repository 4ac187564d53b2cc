// Running a program: check what is bound, walk it once without kernels, walk it with them.
//
//      bindings -> complete? well-formed?     (nothing has been called yet)
//      walk 1   -> every view in bounds?      skips what depends on data that tasks write
//      walk 2   -> kernel, then time          for each task, in program order
//
// The first walk is left out when nothing is executed: then there is no data to be spared. Both are
// the same machine (the expander); time is one of two others, which see a task as what it waits
// for, where it may run and how long it takes.

#include "call.h"
#include "crew.h"

#include "../base/atomic.h"

#include <inttypes.h>

// -- life -----------------------------------------------------------------------------------------

// Every array of a run: field, type of its items, how many.
#define PWSP_RUN_ARRAYS(ARRAY)                                                                     \
    ARRAY(initial, uint64_t, program->cell_count)                                                  \
    ARRAY(cells, uint64_t, program->cell_count)                                                    \
    ARRAY(is_bound, bool, program->cell_count)                                                     \
    ARRAY(arrays, pwsp_array, program->arrays.count + 1)                                           \
    ARRAY(length_sums, int64_t, program->arrays.count + 1)                                         \
    ARRAY(csrs, pwsp_bound_csr, program->axes.count + 1)                                           \
    ARRAY(tensors, pwsp_bound_tensor, program->tensors.count + 1)                                  \
    ARRAY(effective, pwsp_bound_tensor, program->tensors.count + 1)                                \
    ARRAY(is_written, bool, program->tensors.count + 1)                                            \
    ARRAY(frames, pwsp_frame, program->frame_depth)                                                \
    ARRAY(unknown, uint8_t, program->ops.count)                                                    \
    ARRAY(memos, pwsp_tile_memo, program->kernels.count + 1)                                       \
    ARRAY(wholes, pwsp_tile_at, program->tensors.count + 1)

static bool pwsp_run_init(ptowsp_run *run) {
    const ptowsp_program *program = run->program;
    const pwsp_memory *memory = &run->memory;
#define PWSP_RUN_ALLOC(field, type, count)                                                         \
    run->field = (type *)pwsp_memory_alloc(memory, (size_t)(count) * sizeof(type));                \
    if (!run->field) {                                                                             \
        return false;                                                                              \
    }
    PWSP_RUN_ARRAYS(PWSP_RUN_ALLOC)
#undef PWSP_RUN_ALLOC
    if (program->consts.count) {
        memcpy(run->initial + program->first_const, program->consts.items,
               (size_t)program->consts.count * sizeof(uint64_t));
    }
    run->timed = pwsp_program_timed(program);
    run->is_flow = pwsp_schedule_is_flow(&program->schedule);
    run->expander.program = program;
    run->tile_core.memory = run->memory;
    for (uint32_t i = 1; i < program->kernels.count; i++) {
        const pwsp_kernel_info *kernel = PWSP_PROGRAM_AT(program, kernels, pwsp_kernel_info, i);
        if (kernel->code && !pwsp_tile_core_reserve(&run->tile_core, kernel->code)) {
            return false;
        }
    }
    return pwsp_sim_init(&run->sim, memory, &run->timed) &&
           pwsp_pipelines_init(&run->pipelines, memory, program) &&
           (run->is_flow ? pwsp_flow_init(&run->flow, &run->sim)
                         : pwsp_lanes_init(&run->lanes, &run->sim));
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
        run->memory = context->memory;
        run->program = program;
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
    const ptowsp_program *program = run->program;
    pwsp_memory memory = run->memory;
    pwsp_lanes_free(&run->lanes);
    pwsp_flow_free(&run->flow);
    pwsp_sim_free(&run->sim);
    pwsp_pipelines_free(&run->pipelines);
    pwsp_crew_destroy(run->crew);
    pwsp_issue_destroy(run->issue);
    pwsp_tile_core_free(&run->tile_core);
    pwsp_memory_free(&memory, run->critical, (size_t)run->critical_capacity * sizeof(uint64_t));
#define PWSP_RUN_FREE(field, type, count)                                                          \
    pwsp_memory_free(&memory, run->field, (size_t)(count) * sizeof(type));
    PWSP_RUN_ARRAYS(PWSP_RUN_FREE)
#undef PWSP_RUN_FREE
    pwsp_memory_free(&memory, run, sizeof(ptowsp_run));
}

static size_t pwsp_run_bytes(const ptowsp_run *run) {
    const ptowsp_program *program = run->program;
    size_t bytes = sizeof(ptowsp_run) + pwsp_sim_bytes(&run->sim) +
                   (run->is_flow ? pwsp_flow_bytes(&run->flow) : pwsp_lanes_bytes(&run->lanes)) +
                   (size_t)run->critical_capacity * sizeof(uint64_t) +
                   pwsp_tile_core_bytes(&run->tile_core) + pwsp_pipelines_bytes(&run->pipelines) +
                   pwsp_issue_bytes(run->issue) + pwsp_crew_bytes(run->crew);
#define PWSP_RUN_SIZE(field, type, count) bytes += (size_t)(count) * sizeof(type);
    PWSP_RUN_ARRAYS(PWSP_RUN_SIZE)
#undef PWSP_RUN_SIZE
    return bytes;
}

// -- walking --------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_run_begin_walk(ptowsp_run *run, bool is_dry) {
    pwsp_expander *x = &run->expander;
    x->program = run->program;
    x->cells = run->cells;
    x->arrays = run->arrays;
    x->length_sums = run->length_sums;
    x->csrs = run->csrs;
    x->tensors = run->effective;
    x->frames = run->frames;
    x->unknown = is_dry ? run->unknown : NULL;
    memcpy(run->cells, run->initial, run->program->cell_count * sizeof(uint64_t));
    pwsp_expander_begin(x);
}

PWSP_INTERNAL ptowsp_status pwsp_run_fail_walk(ptowsp_run *run) {
    const pwsp_expander *x = &run->expander;
    return pwsp_fail(run->context, x->status, x->index, "%s", x->text);
}

// Walks the program without kernels. *out_count is the number of its tasks, or one that is enough
// for start_threshold; UINT64_MAX when that depends on data that tasks write.
static ptowsp_status pwsp_run_walk_dry(ptowsp_run *run, uint64_t *out_count) {
    pwsp_expander *x = &run->expander;
    pwsp_run_begin_walk(run, true);
    for (;;) {
        pwsp_arrival arrival;
        switch (pwsp_expander_next(x)) {
        case PWSP_EVENT_END:
            // What has been skipped may be more tasks, which matters only below the threshold.
            *out_count = x->has_skipped && x->task_count < run->program->schedule.start_threshold
                             ? UINT64_MAX
                             : x->task_count;
            return PTOWSP_OK;
        case PWSP_EVENT_ERROR: return pwsp_run_fail_walk(run);
        case PWSP_EVENT_TASK:
            if (!pwsp_run_keys(x, &arrival) ||
                (x->kernel->code && !pwsp_run_check_tiles(run, x->kernel->code))) {
                return pwsp_run_fail_walk(run);
            }
            break;
        case PWSP_EVENT_SLOT_LOAD: pwsp_expander_load(x); break;
        case PWSP_EVENT_PIPELINE:
            if (!pwsp_run_pipeline_dry(run)) {
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

PWSP_INTERNAL bool pwsp_run_time(ptowsp_run *run, pwsp_event event, pwsp_range reset,
                                 const pwsp_tile_at *load_at) {
    switch (event) {
    case PWSP_EVENT_PARALLEL:
    case PWSP_EVENT_SEQUENTIAL:
        if (run->is_flow) {
            return pwsp_flow_scope_begin(&run->flow, event == PWSP_EVENT_PARALLEL);
        }
        pwsp_lanes_scope_begin(&run->lanes, event == PWSP_EVENT_PARALLEL);
        return true;
    case PWSP_EVENT_SCOPE_END:
        if (run->is_flow) {
            return pwsp_flow_scope_end(&run->flow);
        }
        pwsp_lanes_scope_end(&run->lanes);
        return true;
    case PWSP_EVENT_RESET:
        if (run->is_flow) {
            pwsp_flow_reset(&run->flow, reset);
        } else {
            pwsp_lanes_reset(&run->lanes, reset);
        }
        return true;
    case PWSP_EVENT_SLOT_LOAD:
        run->sim.stats.slot_load_count++;
        return run->is_flow ? pwsp_flow_slot_load(&run->flow, load_at)
                            : pwsp_lanes_slot_load(&run->lanes, load_at);
    case PWSP_EVENT_END: return !run->is_flow || pwsp_flow_end(&run->flow);
    case PWSP_EVENT_PIPELINE:
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

// One event of the walk that is not a task. False with an error in sim or in the expander.
static bool pwsp_run_event(ptowsp_run *run, pwsp_event event) {
    pwsp_expander *x = &run->expander;
    if (event == PWSP_EVENT_PIPELINE) {
        return pwsp_run_pipeline(run);
    }
    if (event == PWSP_EVENT_SLOT_LOAD) {
        pwsp_expander_load(x);
    }
    return pwsp_run_time(run, event, x->reset, &x->load_at);
}

PWSP_INTERNAL ptowsp_status pwsp_run_fail_sim(ptowsp_run *run) {
    const pwsp_sim *sim = &run->sim;
    return pwsp_fail(run->context, sim->status, sim->index, "%s", sim->text);
}

// Issues the tasks that have been collected. False with an error in sim.
static bool pwsp_run_flush(ptowsp_run *run) {
    pwsp_batch *batch = &run->batch;
    uint32_t count = batch->count;
    batch->count = 0;
    return count == 0 || pwsp_lanes_batch(&run->lanes, batch, count);
}

// Collects a plain task: of one unit, up to a batch full. False with an error in sim.
PWSP_FORCE_INLINE bool pwsp_run_collect(ptowsp_run *run, const pwsp_arrival *arrival) {
    pwsp_batch *batch = &run->batch;
    if ((batch->count == PWSP_BATCH_MAX || batch->unit != arrival->unit) && !pwsp_run_flush(run)) {
        return false;
    }
    batch->unit = arrival->unit;
    batch->cycles[batch->count] = arrival->cycles;
    batch->keys[batch->count++] = arrival->dispatch_key;
    return true;
}

// Is a task nothing but cells to copy, and all that its loop has in it?
static bool pwsp_run_is_simple(const pwsp_expander *x) {
    const pwsp_op *end = &x->ops[x->next_op];
    const pwsp_task_op *task = x->task_op;
    bool is_simple =
        end->kind == PWSP_OP_LOOP_END && end->target + 1 == x->next_op && task->view_count == 0;
    const pwsp_code *codes = PWSP_PROGRAM_AT(x->program, codes, pwsp_code, task->first_code);
    for (uint32_t i = 0; is_simple && i < task->axis_count + task->scalar_count; i++) {
        is_simple = codes[i].begin == codes[i].end;
    }
    return is_simple;
}

// The next iterations of a simple task's loop, up to a batch full. False with the expander's error.
static bool pwsp_run_simple(ptowsp_run *run, bool is_time_only) {
    pwsp_expander *x = &run->expander;
    pwsp_batch *batch = &run->batch;
    pwsp_frame *frame = &x->frames[x->frame_count - 1];
    const pwsp_loop *loop = PWSP_PROGRAM_AT(x->program, loops, pwsp_loop, frame->loop);
    const pwsp_task_op *task = x->task_op;
    const pwsp_code *codes = PWSP_PROGRAM_AT(x->program, codes, pwsp_code, task->first_code);
    const pwsp_array *indices =
        loop->axis_kind == PWSP_AXIS_SPARSE ? &x->csrs[loop->csr].indices : NULL;
    bool is_called = !is_time_only || x->kernel->cost;
    uint64_t *cells = x->cells, *args = x->cells + x->program->first_arg;
    uint64_t left =
        pwsp_min_u64((uint64_t)(frame->count - 1 - frame->i), PWSP_BATCH_MAX - batch->count);
    uint32_t arg_count = task->axis_count + task->scalar_count, at = batch->count;
    uint64_t first = (uint64_t)frame->i + 1, cycles = x->kernel->cycles;
    for (uint64_t i = 0; i < left; i++) {
        cells[loop->cell] = first + i;
        if (indices) {
            cells[loop->entry] = frame->first + first + i;
            cells[loop->cell] = pwsp_array_at(indices, frame->first + first + i);
        }
        for (uint32_t j = 0; j < arg_count; j++) {
            args[j] = cells[codes[j].cell];
        }
        batch->keys[at + i] = pwsp_expander_value(x, task->dispatch);
        if (x->fault.is_set) {
            pwsp_arrival arrival;
            return pwsp_run_keys(x, &arrival);
        }
        if (is_called) {
            x->task.index = x->task_count + i;
            if (!pwsp_run_kernel(run, is_time_only, &cycles)) {
                return false;
            }
        }
        batch->cycles[at + i] = cycles;
        batch->count++;
    }
    frame->i += (int64_t)left;
    x->task_count += left;
    return true;
}

// Issues one task. False with an error in sim.
static bool pwsp_run_issue(ptowsp_run *run, pwsp_arrival *arrival) {
    const pwsp_expander *x = &run->expander;
    arrival->op = x->task_op;
    arrival->tiles = x->tiles_at;
    arrival->views = PWSP_PROGRAM_AT(run->program, views, pwsp_tile_view, x->task_op->first_view);
    arrival->node = x->node;
    return run->is_flow ? pwsp_flow_task(&run->flow, arrival)
                        : pwsp_lanes_task(&run->lanes, arrival);
}

// Issues one task behind those that have been collected. False with an error in sim.
static bool pwsp_run_issue_next(ptowsp_run *run, pwsp_arrival *arrival) {
    return pwsp_run_flush(run) && pwsp_run_issue(run, arrival);
}

// Walks the program with kernels and time.
static ptowsp_status pwsp_run_walk(ptowsp_run *run, bool is_time_only) {
    pwsp_expander *x = &run->expander;
    pwsp_run_begin_walk(run, false);
    bool has_plain = !run->is_flow && pwsp_lanes_is_plain(&run->lanes);
    bool has_data = has_plain && pwsp_lanes_has_data(&run->lanes);
    run->batch.count = 0;
    for (;;) {
        pwsp_event event = pwsp_expander_next(x);
        while (PWSP_LIKELY(event == PWSP_EVENT_TASK)) {
            pwsp_arrival arrival;
            arrival.cycles = 0;
            if (!pwsp_run_keys(x, &arrival) ||
                !pwsp_run_kernel(run, is_time_only, &arrival.cycles)) {
                return pwsp_run_flush(run) ? pwsp_run_fail_walk(run) : pwsp_run_fail_sim(run);
            }
            arrival.unit = x->kernel->unit;
            bool is_plain = has_plain && !(has_data && x->task_op->view_count);
            if (!(is_plain ? pwsp_run_collect(run, &arrival)
                           : pwsp_run_issue_next(run, &arrival))) {
                return pwsp_run_fail_sim(run);
            }
            if (is_plain && pwsp_run_is_simple(x)) {
                if (!pwsp_run_simple(run, is_time_only)) {
                    return pwsp_run_flush(run) ? pwsp_run_fail_walk(run) : pwsp_run_fail_sim(run);
                }
            }
            event = pwsp_expander_again(x);
        }
        if (event == PWSP_EVENT_NONE) {
            continue;
        }
        if (!pwsp_run_flush(run)) {
            return pwsp_run_fail_sim(run);
        }
        if (event == PWSP_EVENT_ERROR) {
            return pwsp_run_fail_walk(run);
        }
        if (!pwsp_run_event(run, event)) {
            return x->status != PTOWSP_OK ? pwsp_run_fail_walk(run) : pwsp_run_fail_sim(run);
        }
        if (event == PWSP_EVENT_END) {
            return PTOWSP_OK;
        }
    }
}

// -- results --------------------------------------------------------------------------------------

// Goes back from the first of the tasks that end last, along what each task waited for.
static bool pwsp_run_find_critical(ptowsp_run *run) {
    const pwsp_sim *sim = &run->sim;
    uint64_t task = 0, count = 0;
    for (uint64_t i = 1; i < sim->task_count; i++) {
        task = sim->records[i].end > sim->records[task].end ? i : task;
    }
    void *critical = run->critical;
    for (uint64_t at = task; at < sim->task_count && count < sim->task_count;
         at = sim->records[at].cause) {
        if (!pwsp_memory_grow(&run->memory, &critical, &run->critical_capacity, count + 1,
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

static ptowsp_status pwsp_run_finish(ptowsp_run *run, ptowsp_status status) {
    pwsp_sim *sim = &run->sim;
    ptowsp_run_stats *stats = &sim->stats;
    pwsp_pipelines *pipelines = &run->pipelines;
    pwsp_sim_end(sim);
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
        !(pwsp_run_find_critical(run) && pwsp_pipelines_end(pipelines))) {
        status =
            pwsp_fail(run->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
    }
    stats->memory_bytes = pwsp_run_bytes(run);
    return status;
}

static ptowsp_status pwsp_run_execute(ptowsp_run *run, const ptowsp_run_options *options) {
    bool is_time_only = options->mode == PTOWSP_RUN_TIME_ONLY;
    uint64_t task_count = UINT64_MAX;
    pwsp_sim_begin(&run->sim, false);
    run->has_records = false;
    run->is_time_only = is_time_only;
    run->critical_count = 0;
    pwsp_pipelines_forget(&run->pipelines);
    ptowsp_status status = pwsp_run_verify(run, is_time_only);
    if (status == PTOWSP_OK && !pwsp_run_begin_pipelines(run, options)) {
        status = pwsp_run_fail_walk(run);
    }
    bool needs_count = !run->is_flow && pwsp_sim_gate_needs_count(&run->sim);
    if (status == PTOWSP_OK && (!is_time_only || needs_count)) {
        status = pwsp_run_walk_dry(run, &task_count);
    }
    if (status != PTOWSP_OK) {
        return pwsp_run_finish(run, status);
    }
    run->has_records = options->record_tasks;
    pwsp_sim_begin(&run->sim, options->record_tasks);
    if (!run->is_flow && !pwsp_sim_set_gate(&run->sim, task_count)) {
        return pwsp_run_finish(run, pwsp_run_fail_sim(run));
    }
    if (run->is_flow) {
        pwsp_flow_begin(&run->flow);
    } else {
        pwsp_lanes_begin(&run->lanes);
    }
    status = !run->is_issued ? pwsp_run_walk(run, is_time_only)
             : run->walk     ? run->walk(run->walk_user, run)
                             : pwsp_crew_walk(run->crew, options->lane_count);
    return pwsp_run_finish(run, status);
}

// The same on lanes of the context, which is busy with it.
static ptowsp_status pwsp_run_execute_on_lanes(ptowsp_run *run, const ptowsp_run_options *options) {
    ptowsp_context *context = run->context;
    uint32_t lane_count = options->lane_count;
    if (!pwsp_context_enter(context)) {
        return PTOWSP_BUSY;
    }
    run->issue = run->issue ? run->issue : pwsp_issue_create(run);
    run->crew = run->crew ? run->crew : pwsp_crew_create(run);
    bool has_room = run->issue && run->crew && pwsp_issue_reserve(run->issue, lane_count) &&
                    pwsp_crew_reserve(run->crew, lane_count);
    ptowsp_status status =
        has_room ? pwsp_run_execute(run, options)
                 : pwsp_fail(context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
    pwsp_context_leave(context);
    return status;
}

static ptowsp_status pwsp_run_check_options(ptowsp_run *run, const ptowsp_run_options *options) {
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

static void pwsp_run_set_cost(ptowsp_run *run, const ptowsp_cost *cost) {
    run->cost = *cost;
    run->tile_core.cost = &run->cost;
    memset(run->memos, 0, (run->program->kernels.count + 1) * sizeof run->memos[0]);
}

PWSP_INTERNAL ptowsp_status pwsp_run_execute_by(ptowsp_run *run, const ptowsp_run_options *options,
                                                uint32_t core_count, pwsp_run_walk_fn walk,
                                                void *user) {
    ptowsp_run_options chosen = *options;
    chosen.lane_count = 0;
    if (pwsp_exchange_acquire(&run->is_running, 1u)) {
        return PTOWSP_BUSY;
    }
    ptowsp_status status = pwsp_run_check_options(run, &chosen);
    if (status == PTOWSP_OK) {
        pwsp_run_set_cost(run, &chosen.cost);
        run->issue = run->issue ? run->issue : pwsp_issue_create(run);
        if (run->issue && pwsp_issue_reserve(run->issue, core_count)) {
            run->is_issued = true;
            run->walk = walk;
            run->walk_user = user;
            status = pwsp_run_execute(run, &chosen);
            run->walk = NULL;
        } else {
            status = pwsp_fail(run->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                               "run: out of memory");
        }
    }
    pwsp_store_release(&run->is_running, 0u);
    return status;
}

ptowsp_status ptowsp_run_execute(ptowsp_run *run, const ptowsp_run_options *options) {
    ptowsp_run_options chosen;
    memset(&chosen, 0, sizeof chosen);
    if (options) {
        chosen = *options;
    }
    if (pwsp_load_relaxed(&run->context->busy) || pwsp_exchange_acquire(&run->is_running, 1u)) {
        return PTOWSP_BUSY;
    }
    ptowsp_status status = pwsp_run_check_options(run, &chosen);
    if (status == PTOWSP_OK) {
        pwsp_run_set_cost(run, &chosen.cost);
        run->is_issued = chosen.lane_count > 1 && chosen.mode == PTOWSP_RUN_EXECUTE;
        status = run->is_issued ? pwsp_run_execute_on_lanes(run, &chosen)
                                : pwsp_run_execute(run, &chosen);
    }
    pwsp_store_release(&run->is_running, 0u);
    return status;
}

const ptowsp_run_stats *ptowsp_run_result(const ptowsp_run *run) {
    return &run->sim.stats;
}

const ptowsp_lane_stats *ptowsp_run_lanes(const ptowsp_run *run) {
    return run->sim.lane_stats;
}

const ptowsp_task_record *ptowsp_run_records(const ptowsp_run *run) {
    return run->has_records ? run->sim.records : NULL;
}

const uint64_t *ptowsp_run_critical_path(const ptowsp_run *run, uint64_t *out_count) {
    *out_count = run->critical_count;
    return run->critical_count ? run->critical : NULL;
}
