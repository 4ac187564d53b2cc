// Runs: making them, binding, and recording. The execution is in run_execute.c, the
// walks over the program in run_walk.c.

#include "run.h"

#include "../base/atomic.h"

#include <inttypes.h>

// -- life -----------------------------------------------------------------------------------------

// The parts of a run write to its result.
static void pwsp_run_init_result(ptowsp_run *run) {
    pwsp_result *result = &run->result;
    result->context = run->owner;
    result->program = run->program;
    result->timed = &run->timed;
    result->stats = &run->time.sim.stats;
    result->lanes = run->time.sim.lane_stats;
    result->has_rings = run->time.sim.rings.is_used;
    result->pipelines = &run->pipes.pipelines;
    result->values = run->bindings.initial;
    result->is_placed = &run->bindings.transients.is_found;
    result->placed = run->bindings.transients.placed;
    result->placement = &run->bindings.transients.placement;
    pwsp_recorder_init(&result->recorder, &run->memory, run->program, run->bindings.effective);
    run->time.sim.recorder = pwsp_recorder_calls(&result->recorder);
}

PWSP_INTERNAL const pwsp_result *pwsp_run_result(const ptowsp_run *run) {
    PTOWSP_ASSERT(run);
    return &run->result;
}

static bool pwsp_run_init(ptowsp_run *run) {
    const pwsp_memory *memory = &run->memory;
    run->memory = pwsp_blocks_begin(&run->blocks, &run->context->memory);
    run->timed = pwsp_program_timed(run->program);
    if (!pwsp_bindings_init(&run->bindings, memory, run->context, run->program) ||
        !pwsp_walk_init(&run->walk, memory, &run->bindings) ||
        !pwsp_timeline_init(&run->time, memory, &run->timed)) {
        return false;
    }
    pwsp_run_init_result(run);
    return pwsp_pipes_init(&run->pipes, &run->walk, &run->time);
}

ptowsp_status ptowsp_run_create(ptowsp_context *context, const ptowsp_program *program,
                                ptowsp_run **out_run) {
    PTOWSP_ASSERT(context);
    if (!program || !out_run) {
        return PWSP_REFUSE(context, "run: program or out_run is NULL");
    }
    *out_run = NULL;
    ptowsp_run *run = (ptowsp_run *)pwsp_memory_alloc(&context->memory, sizeof(ptowsp_run));
    if (run) {
        run->context = run->owner = context;
        run->program = program;
        pwsp_context_own(context);
        pwsp_fetch_add_acq_rel(&program->self->runs, 1u);
    }
    if (!run || !pwsp_run_init(run)) {
        ptowsp_run_destroy(run);
        return PWSP_NO_MEMORY(context, "run: out of memory");
    }
    *out_run = run;
    return PTOWSP_OK;
}

void ptowsp_run_destroy(ptowsp_run *run) {
    if (!run) {
        return;
    }
    const bool is_lost = pwsp_start_is_lost(run->start);
    if (is_lost) {
        pwsp_run_end_start(run);
    } else if (pwsp_start_is_pending(run->start)) {
        ptowsp_run_cancel(run);
        ptowsp_run_wait(run);
    }
    const pwsp_memory *memory = &run->context->memory;
    PTOWSP_ASSERT(is_lost || !pwsp_load_relaxed(&run->is_running));
    pwsp_start_destroy(run->start);
    pwsp_context_disown(run->context);
    pwsp_fetch_add_acq_rel(&run->program->self->runs, UINT32_MAX);
    if (!is_lost) {  // else it may have been moving any of this at the fork
        pwsp_workers_destroy(run->workers);
        pwsp_comm_free(&run->walk.comm);
        pwsp_blocks_free(&run->blocks);
    }
    PWSP_FREE(memory, run, 1);
}

// -- binding --------------------------------------------------------------------------------------

ptowsp_status ptowsp_run_bind(ptowsp_run *run, const ptowsp_binding *bindings, size_t count) {
    PTOWSP_ASSERT(run);
    if (pwsp_run_is_running(run)) {
        return pwsp_fail_busy(run->owner);
    }
    if (count > 0 && !bindings) {
        return PWSP_REFUSE(run->context, "bind: bindings is NULL with count %zu", count);
    }
    ptowsp_status status = PTOWSP_OK;
    for (size_t i = 0; status == PTOWSP_OK && i < count; i++) {
        status = bindings[i].kind == PTOWSP_BIND_RANKS
                     ? pwsp_comm_bind(&run->walk.comm, (const ptowsp_run_ranks *)bindings[i].data)
                     : pwsp_bind(&run->bindings, &bindings[i]);
    }
    return status;
}

ptowsp_status ptowsp_run_record(ptowsp_run *run, const ptowsp_record_options *options) {
    PTOWSP_ASSERT(run);
    PWSP_ZERO(ptowsp_record_options, none);
    options = options ? options : &none;
    if (pwsp_run_is_running(run)) {
        return pwsp_fail_busy(run->owner);
    }
    if ((uint32_t)options->level > PTOWSP_RECORD_EDGES) {
        return PWSP_REFUSE(run->context, "run: there is no level of records %d",
                           (int)options->level);
    }
    if (options->end && options->end <= options->begin) {
        return PWSP_REFUSE(run->context,
                           "run: records from cycle %" PRIu64 " to cycle %" PRIu64 " would be none",
                           options->begin, options->end);
    }
    if (options->level == PTOWSP_RECORD_EDGES &&
        (options->begin || options->end || options->every > 1)) {
        return PWSP_REFUSE(run->context,
                           "run: edges are recorded of all tasks, not of a window or every n-th");
    }
    if (options->has_clock && options->level < PTOWSP_RECORD_TASKS) {
        return PWSP_REFUSE(run->context,
                           "run: the wall clock is recorded of tasks (PTOWSP_RECORD_TASKS)");
    }
    run->record = *options;
    return PTOWSP_OK;
}

uint64_t ptowsp_run_slot(const ptowsp_run *run, uint32_t slot) {
    PTOWSP_ASSERT(run);
    PTOWSP_ASSERT(slot < run->program->slot_count);
    return run->walk.cells[run->program->first_slot + slot];
}
