// Launches: independent instances of kernels.
//
// With one instance for each core of the unit, instances are entries, each in the queue of its
// core. Otherwise there is one entry, and instances are its parts: cores take them as they become
// free.

#include "device.h"

#include "../base/halt.h"

static pwsp_device_launch *pwsp_launch_on(void *device) {
    return &((ptowsp_device *)device)->launch;
}

static uint32_t pwsp_launch_instance(const pwsp_device_launch *launch, uint32_t entry,
                                     uint32_t part) {
    return launch->is_pinned ? entry : part;
}

// An instance is done; the last one ends the run.
static void pwsp_launch_over(ptowsp_device *device) {
    if (pwsp_fetch_sub_acq_rel(&device->launch.remaining, 1u) == 1) {
        pwsp_cores_finish(&device->cores);
    }
}

// -- the job --------------------------------------------------------------------------------------

static pwsp_need pwsp_launch_need(void *user, uint32_t entry) {
    const pwsp_device_launch *launch = pwsp_launch_on(user);
    ptowsp_unit unit = launch->desc.unit;
    uint32_t first =
        unit == PTOWSP_UNIT_VECTOR ? 0 : ((ptowsp_device *)user)->cores.desc.vector_count;
    const pwsp_need need = {unit, launch->is_pinned ? first + entry : PWSP_CORES_NONE, 0, entry};
    return need;
}

static bool pwsp_launch_take(void *user, uint32_t entry, uint32_t *out_part) {
    pwsp_device_launch *launch = pwsp_launch_on(user);
    (void)entry;
    if (launch->is_pinned) {
        return false;
    }
    *out_part = launch->next++;
    return launch->next < launch->desc.instance_count;
}

static bool pwsp_launch_is_wanted(void *user, uint32_t entry) {
    (void)entry;
    return !pwsp_load_relaxed(&pwsp_launch_on(user)->is_stopped) &&
           !pwsp_halt_is(&((ptowsp_device *)user)->launch_halt);
}

static void pwsp_launch_pass(void *user, const pwsp_turn *turn, uint32_t by, bool is_lost) {
    (void)turn, (void)by, (void)is_lost;
    pwsp_store_relaxed(&pwsp_launch_on(user)->is_cut, 1u);  // released with the end of the run
    pwsp_launch_over((ptowsp_device *)user);
}

// On a core. After the kernel returns, only the result is touched.
static void pwsp_launch_run(void *user, pwsp_core_result *result) {
    const pwsp_device_launch *launch = pwsp_launch_on(user);
    const ptowsp_launch *desc = &launch->desc;
    uint32_t instance = pwsp_launch_instance(launch, result->entry, result->part);
    uint64_t args[2 + PTOWSP_TASK_SCALAR_MAX] = {instance, desc->instance_count};
    memcpy(args + 2, launch->scalars, sizeof launch->scalars);
    PWSP_ZERO(ptowsp_task, task);
    task.args = args;
    task.arg_count = 2 + desc->scalar_count;
    task.axis_arg_count = 2;
    task.user_axis_count = 2;
    task.index = instance;
    task.kernel_name = "kernel";
    task.lane = result->core;
    ptowsp_kernel_fn kernel = desc->kernels[desc->ids ? desc->ids[instance] : 0];
    ptowsp_cycles cycles = kernel(&task, desc->user);
    if (cycles > PTOWSP_CYCLES_MAX) {
        result->status = pwsp_kernel_status(cycles);
    } else {
        result->cycles = cycles;
    }
}

static void pwsp_launch_done(void *user, const pwsp_core_result *result, uint32_t by) {
    ptowsp_device *device = (ptowsp_device *)user;
    const pwsp_device_launch *launch = &device->launch;
    uint32_t instance = pwsp_launch_instance(launch, result->entry, result->part);
    if (result->status < 0) {
        pwsp_device_aicpu *aicpu = &device->aicpus[by];
        aicpu->tally.failed_count++;
        if (instance < aicpu->tally.first_failed) {
            aicpu->tally.first_failed = instance;
            aicpu->failed_status = result->status;
        }
    } else if (launch->desc.out_cycles) {
        launch->desc.out_cycles[instance] = result->cycles;
    }
    pwsp_launch_over(device);
}

static void pwsp_launch_stop(void *user) {
    pwsp_store_seq_cst(&pwsp_launch_on(user)->is_stopped, 1u);
}

static uint64_t pwsp_launch_describe(void *user, uint32_t entry, uint32_t part,
                                     ptowsp_output text) {
    uint32_t instance = pwsp_launch_instance(pwsp_launch_on(user), entry, part);
    pwsp_text_format(text, "instance %u", (unsigned)instance);
    return instance;
}

// -- launching ------------------------------------------------------------------------------------

static ptowsp_status pwsp_launch_check_ids(ptowsp_device *device, const ptowsp_launch *launch) {
    for (uint32_t i = 0; i < launch->instance_count; i++) {
        uint32_t id = launch->ids ? launch->ids[i] : 0;
        if (id >= launch->kernel_count || !launch->kernels[id]) {
            return pwsp_fail(device->context, PTOWSP_INVALID_PARAMS, i,
                             "device: instance %u is of kernel %u, which is %s", (unsigned)i,
                             (unsigned)id,
                             id < launch->kernel_count ? "NULL" : "outside of the table");
        }
        if (!launch->ids) {
            break;
        }
    }
    return PTOWSP_OK;
}

// Checks a launch and determines its number of instances.
static ptowsp_status pwsp_launch_check(ptowsp_device *device, ptowsp_launch *launch) {
    const char *wrong = NULL;
    if (!launch->kernels || launch->kernel_count == 0) {
        wrong = "has no kernels";
    } else if ((uint32_t)launch->unit >= PTOWSP_UNIT_COUNT) {
        wrong = "has an unknown unit";
    } else if (launch->scalar_count > PTOWSP_TASK_SCALAR_MAX) {
        wrong = "has too many scalars";
    } else if (launch->scalar_count > 0 && !launch->scalars) {
        wrong = "has scalars that are NULL";
    }
    if (wrong) {
        return PWSP_REFUSE(device->context, "device: a launch %s", wrong);
    }
    if (pwsp_device_unit_count(device, launch->unit) == 0) {
        return PWSP_REFUSE(device->context, "device: a launch needs %s",
                           pwsp_device_lack(launch->unit));
    }
    if (launch->instance_count == 0) {
        launch->instance_count = pwsp_device_unit_count(device, launch->unit);
    }
    return pwsp_launch_check_ids(device, launch);
}

// The error reports the failed instance with the lowest index.
static ptowsp_status pwsp_launch_conclude(ptowsp_device *device) {
    const pwsp_device_aicpu *first = &device->aicpus[0];
    ptowsp_status cut = pwsp_halt_status(&device->launch_halt);
    if (cut != PTOWSP_OK && pwsp_load_relaxed(&device->launch.is_cut)) {
        return pwsp_fail(device->context, cut, PTOWSP_NO_INDEX, "device: a launch ended early: %s",
                         ptowsp_status_text(cut));
    }
    for (uint32_t i = 1; i < device->cores.desc.aicpu_count; i++) {
        const pwsp_device_aicpu *aicpu = &device->aicpus[i];
        first = aicpu->tally.first_failed < first->tally.first_failed ? aicpu : first;
    }
    uint32_t instance = first->tally.first_failed;
    return instance == PWSP_GRAPH_NONE
               ? PTOWSP_OK
               : pwsp_fail(device->context, first->failed_status, instance,
                           "device: instance %u failed: %s", (unsigned)instance,
                           ptowsp_status_name(first->failed_status));
}

// The context must have been entered.
static ptowsp_status pwsp_device_launch_all(ptowsp_device *device, const ptowsp_launch *desc) {
    pwsp_device_launch *launch = &device->launch;
    memset(launch, 0, sizeof *launch);
    launch->desc = *desc;
    pwsp_halt_begin(&device->launch_halt, desc->time_limit_ns);
    ptowsp_status status = pwsp_launch_check(device, &launch->desc);
    if (status != PTOWSP_OK) {
        return status;
    }
    uint32_t count = launch->desc.instance_count;
    if (desc->scalar_count > 0) {
        memcpy(launch->scalars, desc->scalars, desc->scalar_count * sizeof(uint64_t));
    }
    if (desc->out_cycles) {
        memset(desc->out_cycles, 0, count * sizeof(ptowsp_cycles));
    }
    launch->is_pinned = count == pwsp_device_unit_count(device, desc->unit);
    launch->remaining = count;
    PWSP_ZERO(pwsp_device_job, job);
    job.cores.need_of = pwsp_launch_need;
    job.cores.take = pwsp_launch_take;
    job.cores.is_wanted = pwsp_launch_is_wanted;
    job.cores.pass = pwsp_launch_pass;
    job.run = pwsp_launch_run;
    job.done = pwsp_launch_done;
    job.stop = pwsp_launch_stop;
    job.describe = pwsp_launch_describe;
    pwsp_device_prepare(device, &job);
    for (uint32_t i = 0; i < (launch->is_pinned ? count : 1); i++) {
        pwsp_cores_ready(&device->cores, PWSP_CORES_NONE, i);
    }
    pwsp_device_begin(device);
    return pwsp_device_end(device) ? pwsp_launch_conclude(device) : pwsp_device_fail_stuck(device);
}

ptowsp_status ptowsp_device_launch(ptowsp_device *device, const ptowsp_launch *launch) {
    PTOWSP_ASSERT(device);
    ptowsp_status status = pwsp_device_enter(device);
    if (status == PTOWSP_OK) {
        status = launch ? pwsp_device_launch_all(device, launch)
                        : PWSP_REFUSE(device->context, "device: launch is NULL");
        pwsp_context_leave(device->context);
    }
    return status;
}

void ptowsp_device_cancel(ptowsp_device *device) {
    PTOWSP_ASSERT(device);
    pwsp_halt_cancel(&device->launch_halt);
}
