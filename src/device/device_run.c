// Programs on a device: the calling thread walks and issues, as for lanes (see issue.h), and the
// device's cores run the ready tasks. Entries are places of the reorder buffer.
//
// A core leaves the kernel's result in its own line, and the AICPU thread copies it into the entry.
// So a stuck core that returns after the run is over writes nothing of the run.

#include "device.h"

#include <inttypes.h>

static pwsp_reorder *pwsp_program_on(void *device) {
    return &((ptowsp_device *)device)->run->front->issue.reorder;
}

// -- the job --------------------------------------------------------------------------------------

static pwsp_need pwsp_program_need(void *user, uint32_t place) {
    PTOWSP_ASSERT(PWSP_NO_HOME == PWSP_CORES_NONE);
    const pwsp_entry *entry = pwsp_reorder_at(pwsp_program_on(user), place);
    const pwsp_need need = {entry->unit, entry->home, 0, entry->index};
    return need;
}

static bool pwsp_program_is_wanted(void *user, uint32_t place) {
    const ptowsp_device *device = (const ptowsp_device *)user;
    const pwsp_entry *entry = pwsp_reorder_at(pwsp_program_on(user), place);
    return !pwsp_load_relaxed(&entry->fan.is_poisoned) &&
           !pwsp_load_relaxed(&device->is_run_stopped) && !pwsp_halt_is(&device->run->walk.halt);
}

static void pwsp_program_pass(void *user, const pwsp_turn *turn, uint32_t by, bool is_lost) {
    pwsp_reorder *reorder = pwsp_program_on(user);
    (void)is_lost;
    pwsp_reorder_set_result(reorder, turn->entry, ptowsp_task_fail(PTOWSP_SKIPPED));
    pwsp_reorder_done(reorder, turn->entry, by);
}

static void pwsp_program_run(void *user, pwsp_core_result *result) {
    const pwsp_reorder *reorder = pwsp_program_on(user);
    const pwsp_entry *entry = pwsp_reorder_at(reorder, result->entry);
    result->cycles = reorder->call(reorder->call_user, entry, result->core);
}

static void pwsp_program_done(void *user, const pwsp_core_result *result, uint32_t by) {
    pwsp_reorder *reorder = pwsp_program_on(user);
    const pwsp_frontend *front = ((ptowsp_device *)user)->run->front;
    bool is_stuck = result->status < 0;
    if (front->clocked && !is_stuck) {
        pwsp_wall_mark *mark = &front->marks[result->entry];
        mark->start = result->start;
        mark->end = result->end;
        mark->lane = result->core;
    }
    pwsp_reorder_set_result(reorder, result->entry,
                            is_stuck ? ptowsp_task_fail(result->status) : result->cycles);
    pwsp_reorder_done(reorder, result->entry, by);
}

static void pwsp_program_stop(void *user) {
    pwsp_store_seq_cst(&((ptowsp_device *)user)->is_run_stopped, 1u);
}

static uint64_t pwsp_program_describe(void *user, uint32_t place, uint32_t part,
                                      ptowsp_output text) {
    const ptowsp_device *device = (const ptowsp_device *)user;
    const pwsp_entry *entry = pwsp_reorder_at(pwsp_program_on(user), place);
    (void)part;
    pwsp_text_format(text, "task %" PRIu64 " of kernel %s", entry->index,
                     device->run->program->kernels.items[entry->kernel].name);
    return entry->index;
}

// -- the executor ---------------------------------------------------------------------------------

static void pwsp_program_ready(void *user, uint32_t by, uint32_t place) {
    PTOWSP_ASSERT(PWSP_BY_WALK == PWSP_CORES_NONE);
    pwsp_cores_ready(&((ptowsp_device *)user)->cores, by, place);
}

static void pwsp_program_help(void *user, uint32_t ticket) {
    pwsp_cores_await(&((ptowsp_device *)user)->cores, &pwsp_program_on(user)->done_count, ticket);
}

// Calls the walk with kernels.
static ptowsp_status pwsp_device_walk(void *user, ptowsp_run *run) {
    ptowsp_device *device = (ptowsp_device *)user;
    pwsp_executor executor = {pwsp_program_ready, pwsp_program_help, device};
    PWSP_ZERO(pwsp_device_job, job);
    job.cores.need_of = pwsp_program_need;
    job.cores.is_wanted = pwsp_program_is_wanted;
    job.cores.pass = pwsp_program_pass;
    job.cores.is_awaited = true;
    job.run = pwsp_program_run;
    job.done = pwsp_program_done;
    job.stop = pwsp_program_stop;
    job.describe = pwsp_program_describe;
    job.is_clocked = run->front->clocked != NULL;
    device->is_run_stopped = 0;
    pwsp_device_prepare(device, &job);
    pwsp_device_begin(device);
    ptowsp_status status = pwsp_run_issue_to(run, &executor, device->cores.desc.vector_count,
                                             device->cores.desc.cube_count);
    pwsp_cores_finish(&device->cores);
    return pwsp_device_end(device) ? status : pwsp_device_fail_stuck(device);
}

// -- running --------------------------------------------------------------------------------------

// Are all used tensors in the device's memory? Executing detects tensors without binding or data.
static ptowsp_status pwsp_device_check_tensors(ptowsp_device *device, const ptowsp_run *run) {
    const ptowsp_program *program = run->program;
    const pwsp_transients *transients = &run->bindings.transients;
    const bool has_transients = program->lifetimes.count > 0;  // that a statement uses
    if (has_transients && !transients->block) {
        return PWSP_REFUSE(device->context,
                           "device: the program has transient tensors: give them a block of the "
                           "device's memory (ptowsp_run_bind_transients)");
    }
    if (has_transients && transients->size > 0) {  // else it is refused as too small
        ptowsp_status status = pwsp_device_memory_check(&device->memory, transients->block,
                                                        transients->size, "transient tensors");
        if (status != PTOWSP_OK) {
            return status;
        }
    }
    for (uint32_t i = 1; i < program->tensors.count; i++) {
        const pwsp_bound_tensor *bound = &run->bindings.tensors[i];
        bool has_data = bound->is_bound && bound->data && bound->high >= bound->low;
        if (!has_data || !program->tensor_is_used[i]) {
            continue;
        }
        int64_t size = bound->element_size;
        const void *begin = (const void *)(bound->data + bound->low * size);
        uint64_t bytes = (uint64_t)(bound->high - bound->low + 1) * (uint64_t)size;
        char what[PTOWSP_NAME_MAX + 16];
        ptowsp_output_buffer buffer = {what, sizeof what, 0};
        pwsp_text_format(ptowsp_output_to_buffer(&buffer), "tensor %s",
                         program->tensors.items[i].name);
        ptowsp_status status = pwsp_device_memory_check(&device->memory, begin, bytes, what);
        if (status != PTOWSP_OK) {
            return status;
        }
    }
    return PTOWSP_OK;
}

// Does every kernel have a core?
static ptowsp_status pwsp_device_check_kernels(ptowsp_device *device,
                                               const ptowsp_program *program) {
    for (uint32_t i = 0; i < program->tasks.count; i++) {
        const pwsp_kernel_info *kernel = &program->kernels.items[program->tasks.items[i].kernel];
        if (kernel->unit == PTOWSP_UNIT_LINK) {
            return pwsp_fail(device->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                             "device: kernel %s communicates with other ranks, which cores do not",
                             kernel->name);
        }
        if (pwsp_device_unit_count(device, kernel->unit) == 0) {
            return PWSP_REFUSE(device->context, "device: kernel %s needs %s", kernel->name,
                               pwsp_device_lack(kernel->unit));
        }
    }
    return PTOWSP_OK;
}

// May the run, which has been claimed, run on this device? The context has been entered.
static ptowsp_status pwsp_device_check_run(ptowsp_device *device, ptowsp_run *run,
                                           const ptowsp_run_options *options) {
    ptowsp_status status = pwsp_run_check_options(run, options);
    if (status == PTOWSP_OK && options->mode == PTOWSP_RUN_TIME_ONLY) {
        status = PWSP_REFUSE(device->context,
                             "device: a run that only measures time does not run on it");
    }
    if (status == PTOWSP_OK && run->program->lists.count) {
        status = pwsp_fail(device->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                           "device: lists of tasks run on the calling thread");
    }
    if (status == PTOWSP_OK) {
        status = pwsp_device_check_kernels(device, run->program);
    }
    return status == PTOWSP_OK ? pwsp_device_check_tensors(device, run) : status;
}

// Enters the context and claims the run. False with a status; then neither.
static ptowsp_status pwsp_device_claim(ptowsp_device *device, ptowsp_run *run,
                                       const ptowsp_run_options *options) {
    ptowsp_status status = pwsp_device_enter(device);
    if (status != PTOWSP_OK) {
        return status;
    }
    if (!run) {
        status = PWSP_REFUSE(device->context, "device: run is NULL");
    } else if (!pwsp_run_claim(run, options)) {
        status = pwsp_fail_busy(device->context);
    } else {
        status = run->context != device->context
                     ? PWSP_REFUSE(device->context, "device: the run is of another context")
                     : pwsp_device_check_run(device, run, options);
        if (status == PTOWSP_OK) {
            device->run = run;
            return PTOWSP_OK;
        }
        pwsp_run_leave(run);
    }
    pwsp_context_leave(device->context);
    return status;
}

// Of a device, lane_count is not used.
static ptowsp_run_options pwsp_device_options(const ptowsp_run_options *options) {
    ptowsp_run_options chosen = pwsp_run_options(options);
    chosen.lane_count = 0;
    return chosen;
}

ptowsp_status ptowsp_device_run(ptowsp_device *device, ptowsp_run *run,
                                const ptowsp_run_options *options) {
    PTOWSP_ASSERT(device);
    ptowsp_run_options chosen = pwsp_device_options(options);
    ptowsp_status status = pwsp_device_claim(device, run, &chosen);
    if (status == PTOWSP_OK) {
        status =
            pwsp_run_execute_by(run, &chosen, device->cores.core_count, pwsp_device_walk, device);
        pwsp_run_leave(run);
        pwsp_context_leave(device->context);
    }
    return status;
}

static ptowsp_status pwsp_device_started(void *user) {
    ptowsp_device *device = (ptowsp_device *)user;
    ptowsp_run *run = device->run;
    return pwsp_run_execute_by(run, &run->started, device->cores.core_count, pwsp_device_walk,
                               device);
}

ptowsp_status ptowsp_device_start(ptowsp_device *device, ptowsp_run *run,
                                  const ptowsp_run_options *options) {
    PTOWSP_ASSERT(device);
    ptowsp_run_options chosen = pwsp_device_options(options);
    ptowsp_status status = pwsp_device_claim(device, run, &chosen);
    if (status != PTOWSP_OK) {
        return status;
    }
    run->has_lanes = false;
    run->device_context = &device->context;
    status = pwsp_run_start_by(run, &chosen, pwsp_device_started, device);
    if (status != PTOWSP_OK) {
        run->device_context = NULL;
        pwsp_run_leave(run);
        pwsp_context_leave(device->context);
    }
    return status;
}
