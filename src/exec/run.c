// Runs: making them, binding, and what an execution left behind. The execution is in run_execute.c, the
// walks over the program in run_walk.c.

#include "run.h"

#include "../base/atomic.h"

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
    PTOWSP_ASSERT(context);
    if (!program || !out_run) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "run: program or out_run is NULL");
    }
    *out_run = NULL;
    ptowsp_run *run = (ptowsp_run *)pwsp_memory_alloc(&context->memory, sizeof(ptowsp_run));
    if (run) {
        run->context = run->owner = context;
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
    pwsp_fetch_add_acq_rel(run->program->run_count, UINT32_MAX);
    if (!is_lost) {  // else it may have been moving any of this at the fork
        pwsp_workers_destroy(run->workers);
        pwsp_frontend_destroy(run->front);
        pwsp_pipes_free(&run->pipes);
        pwsp_recorder_free(&run->recorder);
        pwsp_timeline_free(&run->time);
        pwsp_walk_free(&run->walk);
        pwsp_bindings_free(&run->bindings);
        pwsp_memory_free(memory, run->critical, (size_t)run->critical_capacity * sizeof(uint64_t));
    }
    pwsp_memory_free(memory, run, sizeof(ptowsp_run));
}

PWSP_INTERNAL size_t pwsp_run_bytes(const ptowsp_run *run) {
    return sizeof(ptowsp_run) + pwsp_bindings_bytes(&run->bindings) +
           pwsp_timeline_bytes(&run->time) + pwsp_walk_bytes(&run->walk) +
           pwsp_pipes_bytes(&run->pipes) + pwsp_recorder_bytes(&run->recorder) +
           (size_t)run->critical_capacity * sizeof(uint64_t) + pwsp_frontend_bytes(run->front) +
           pwsp_workers_bytes(run->workers) + pwsp_start_bytes(run->start);
}

// -- binding --------------------------------------------------------------------------------------

ptowsp_status ptowsp_run_bind_size(ptowsp_run *run, const char *axis, int64_t size) {
    PTOWSP_ASSERT(run);
    return pwsp_run_is_running(run) ? pwsp_fail_busy(run->owner)
                                    : pwsp_bind_size(&run->bindings, axis, size);
}

ptowsp_status ptowsp_run_bind_symbol(ptowsp_run *run, const char *symbol, uint64_t value) {
    PTOWSP_ASSERT(run);
    return pwsp_run_is_running(run) ? pwsp_fail_busy(run->owner)
                                    : pwsp_bind_symbol(&run->bindings, symbol, value);
}

ptowsp_status ptowsp_run_bind_slot(ptowsp_run *run, uint32_t slot, uint64_t value) {
    PTOWSP_ASSERT(run);
    return pwsp_run_is_running(run) ? pwsp_fail_busy(run->owner)
                                    : pwsp_bind_slot(&run->bindings, slot, value);
}

ptowsp_status ptowsp_run_bind_array(ptowsp_run *run, const char *array, ptowsp_dtype dtype,
                                    const void *data, uint64_t count) {
    PTOWSP_ASSERT(run);
    return pwsp_run_is_running(run)
               ? pwsp_fail_busy(run->owner)
               : pwsp_bind_array(&run->bindings, array, false, dtype, data, count);
}

ptowsp_status ptowsp_run_bind_lengths(ptowsp_run *run, const char *axis, ptowsp_dtype dtype,
                                      const void *data, uint64_t count) {
    PTOWSP_ASSERT(run);
    return pwsp_run_is_running(run)
               ? pwsp_fail_busy(run->owner)
               : pwsp_bind_array(&run->bindings, axis, true, dtype, data, count);
}

ptowsp_status ptowsp_run_bind_csr(ptowsp_run *run, const char *axis, const ptowsp_csr *csr) {
    PTOWSP_ASSERT(run);
    return pwsp_run_is_running(run) ? pwsp_fail_busy(run->owner)
                                    : pwsp_bind_csr(&run->bindings, axis, csr);
}

ptowsp_status ptowsp_run_bind_tensor(ptowsp_run *run, const char *tensor,
                                     const ptowsp_buffer *buffer) {
    PTOWSP_ASSERT(run);
    return pwsp_run_is_running(run) ? pwsp_fail_busy(run->owner)
                                    : pwsp_bind_tensor(&run->bindings, tensor, buffer);
}

ptowsp_status ptowsp_run_bind_transients(ptowsp_run *run, void *block, uint64_t size) {
    PTOWSP_ASSERT(run);
    return pwsp_run_is_running(run) ? pwsp_fail_busy(run->owner)
                                    : pwsp_bind_transients(&run->bindings, block, size);
}

ptowsp_status ptowsp_run_bind_plan(ptowsp_run *run, const char *plan,
                                   const ptowsp_attention_plan *bound) {
    PTOWSP_ASSERT(run);
    return pwsp_run_is_running(run) ? pwsp_fail_busy(run->owner)
                                    : pwsp_bind_plan(&run->bindings, plan, bound);
}

ptowsp_status ptowsp_run_bind_work(ptowsp_run *run, const char *plan, const ptowsp_work *work,
                                   uint64_t count) {
    PTOWSP_ASSERT(run);
    return pwsp_run_is_running(run) ? pwsp_fail_busy(run->owner)
                                    : pwsp_bind_work(&run->bindings, plan, work, count);
}

ptowsp_status ptowsp_run_bind_batch(ptowsp_run *run, const char *plan,
                                    const ptowsp_attention_batch *batch,
                                    const ptowsp_attention_config *config,
                                    const ptowsp_attention_sizes *capacity) {
    PTOWSP_ASSERT(run);
    return pwsp_run_is_running(run)
               ? pwsp_fail_busy(run->owner)
               : pwsp_bind_batch(&run->bindings, plan, batch, config, capacity);
}

ptowsp_status ptowsp_run_bind_ranks(ptowsp_run *run, const ptowsp_run_ranks *ranks) {
    PTOWSP_ASSERT(run);
    return pwsp_run_is_running(run) ? pwsp_fail_busy(run->owner)
                                    : pwsp_comm_bind(&run->walk.comm, ranks);
}

uint64_t ptowsp_run_slot(const ptowsp_run *run, uint32_t slot) {
    PTOWSP_ASSERT(run);
    PTOWSP_ASSERT(slot < run->program->slot_count);
    return run->walk.cells[run->program->first_slot + slot];
}

// -- results --------------------------------------------------------------------------------------

const ptowsp_run_stats *ptowsp_run_result(const ptowsp_run *run) {
    return &run->time.sim.stats;
}

const ptowsp_lane_stats *ptowsp_run_lanes(const ptowsp_run *run) {
    PTOWSP_ASSERT(run);
    return run->time.sim.lane_stats;
}

const ptowsp_task_record *ptowsp_run_records(const ptowsp_run *run) {
    PTOWSP_ASSERT(run);
    return run->has_records && run->recorder.is_dense ? run->recorder.records : NULL;
}

const uint64_t *ptowsp_run_critical_path(const ptowsp_run *run, uint64_t *out_count) {
    PTOWSP_ASSERT(run);
    if (out_count) {
        *out_count = run->critical_count;
    }
    return run->critical_count ? run->critical : NULL;
}

static void pwsp_run_tell(uint32_t count, uint32_t *out_count) {
    if (out_count) {
        *out_count = count;
    }
}

const ptowsp_pipeline_stats *ptowsp_run_pipelines(const ptowsp_run *run, uint32_t *out_count) {
    PTOWSP_ASSERT(run);
    uint32_t count = (uint32_t)run->program->pipelines.count;
    pwsp_run_tell(count, out_count);
    return count ? run->pipes.pipelines.stats : NULL;
}

const ptowsp_process_stats *ptowsp_run_processes(const ptowsp_run *run, uint32_t *out_count) {
    PTOWSP_ASSERT(run);
    uint32_t count = run->pipes.pipelines.process_count;
    pwsp_run_tell(count, out_count);
    return count ? run->pipes.pipelines.process_stats : NULL;
}

const ptowsp_channel_stats *ptowsp_run_channels(const ptowsp_run *run, uint32_t *out_count) {
    PTOWSP_ASSERT(run);
    uint32_t count = (uint32_t)run->program->channels.count;
    pwsp_run_tell(count, out_count);
    return count ? run->pipes.pipelines.channel_stats : NULL;
}

const ptowsp_step_record *ptowsp_run_steps(const ptowsp_run *run, uint64_t *out_count) {
    PTOWSP_ASSERT(run);
    uint64_t count = run->pipes.pipelines.exchange.step_count;
    if (out_count) {
        *out_count = count;
    }
    return count ? run->pipes.pipelines.steps : NULL;
}

const uint64_t *ptowsp_run_critical_steps(const ptowsp_run *run, uint32_t pipeline,
                                          uint64_t *out_count) {
    PTOWSP_ASSERT(run);
    bool is_known = pipeline < run->program->pipelines.count && run->has_records;
    const pwsp_chain *chain = is_known ? &run->pipes.pipelines.chains[pipeline] : NULL;
    uint64_t count = chain ? chain->count : 0;
    if (out_count) {
        *out_count = count;
    }
    return count ? run->pipes.pipelines.chain_steps + chain->first : NULL;
}

void ptowsp_run_print_stuck(const ptowsp_run *run, ptowsp_text text) {
    PTOWSP_ASSERT(run);
    pwsp_pipelines_print_stuck(&run->pipes.pipelines, text);
}
