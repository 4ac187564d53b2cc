// Opens and closes a device, owns its threads and memory, and runs the host's part of a run.
//
// All threads start at open and are joined at close. A core polls its line and runs the tasks it is
// given; it knows nothing else. Between runs AICPU threads sleep.

#include "device.h"

#include <inttypes.h>

// Rounds of waiting before a sleep: first pauses, fewer if there are more threads than processors,
// then some rounds that yield. Even with enough processors, other programs may use them: on a busy
// machine, pausing for 20 us cost 60 us a task, and these rounds some 4.
#define PWSP_DEVICE_SPIN_LONG 50
#if !defined(PWSP_DEVICE_SPIN_SHORT)  // tests/engine/explore.h has less
#define PWSP_DEVICE_SPIN_SHORT 20
#endif
#define PWSP_DEVICE_YIELD 50

// -- open -----------------------------------------------------------------------------------------

// Checks a description and fills in its defaults.
static ptowsp_status pwsp_device_desc_check(ptowsp_context *context, ptowsp_device_desc *desc) {
    if (desc->scheduler_count > PTOWSP_DEVICE_SCHEDULER_MAX) {
        return PWSP_REFUSE(context, "device: %u AICPU threads, more than %u",
                           (unsigned)desc->scheduler_count, (unsigned)PTOWSP_DEVICE_SCHEDULER_MAX);
    }
    uint64_t core_count = (uint64_t)desc->cube_count + desc->vector_count;
    if (core_count > PTOWSP_DEVICE_CORE_MAX) {
        return PWSP_REFUSE(context, "device: %" PRIu64 " cores, more than %u", core_count,
                           (unsigned)PTOWSP_DEVICE_CORE_MAX);
    }
    desc->scheduler_count = desc->scheduler_count ? desc->scheduler_count : 1;
    desc->vector_count = core_count ? desc->vector_count : 1;
    desc->memory_bytes = desc->memory_bytes ? desc->memory_bytes : UINT64_C(1) << 30;
    return PTOWSP_OK;
}

// Allocates what threads have. False when memory is out.
static bool pwsp_device_allocate(ptowsp_device *device, const pwsp_cores_desc *desc) {
    const pwsp_memory *memory = &device->context->memory;
    pwsp_cores *cores = &device->cores;
    if (!pwsp_cores_init(cores, memory, desc)) {
        return false;
    }
    size_t core_bytes = cores->core_count * sizeof(pwsp_device_core);
    device->block_size = core_bytes + desc->aicpu_count * sizeof(pwsp_device_aicpu) + 63;
    device->block = pwsp_memory_alloc(memory, device->block_size);
    if (!device->block || !pwsp_device_reserve(device, PWSP_FRONTEND_WINDOW_MAX)) {
        return false;
    }
    uint8_t *at = (uint8_t *)device->block;
    at += (64 - (uintptr_t)at % 64) % 64;
    device->threads = (pwsp_device_core *)(void *)at;
    device->aicpus = (pwsp_device_aicpu *)(void *)(at + core_bytes);
    for (uint32_t i = 0; i < cores->core_count; i++) {
        device->threads[i].device = device;
        device->threads[i].core = &cores->cores[i];
        cores->cores[i].line = &device->threads[i].line;
    }
    for (uint32_t i = 0; i < desc->aicpu_count; i++) {
        device->aicpus[i].device = device;
        device->aicpus[i].aicpu = &cores->aicpus[i];
    }
    return true;
}

PWSP_INTERNAL bool pwsp_device_reserve(ptowsp_device *device, uint64_t entry_count) {
    return entry_count <= device->link_capacity ||
           PWSP_ROOM(&device->context->memory, device->links, device->link_capacity, entry_count);
}

// -- threads --------------------------------------------------------------------------------------

static void *pwsp_device_core_main(void *arg) {
    pwsp_device_core *thread = (pwsp_device_core *)arg;
    pwsp_core *core = thread->core;
    if (!pwsp_core_open(core)) {
        return NULL;
    }
    while (pwsp_core_next(core)) {
        pwsp_core_result *result = &thread->result;
        result->start = thread->is_clocked ? pwsp_ticks() : 0;
        thread->run(thread->device, result);
        result->end = thread->is_clocked ? pwsp_ticks() : 0;
        pwsp_core_report(core);
    }
    return NULL;
}

static bool pwsp_device_has_news(const ptowsp_device *device, uint32_t served) {
    return pwsp_load_seq_cst(&device->generation) != served ||
           pwsp_load_seq_cst(&device->is_closing);
}

// Enters the run that has begun, if it is not over yet.
static bool pwsp_device_join(ptowsp_device *device, uint32_t *out_served) {
    pwsp_mutex_lock(&device->cores.mutex);
    *out_served = pwsp_load_seq_cst(&device->generation);
    bool is_in = device->cores.is_open;
    if (is_in) {
        pwsp_fetch_add_seq_cst(&device->inside_count, 1u);
    }
    pwsp_mutex_unlock(&device->cores.mutex);
    return is_in;
}

static void *pwsp_device_aicpu_main(void *arg) {
    const pwsp_device_aicpu *thread = (const pwsp_device_aicpu *)arg;
    ptowsp_device *device = thread->device;
    pwsp_sleeper *sleeper = thread->aicpu->sleeper;
    uint32_t served = 0;
    pwsp_aicpu_open(thread->aicpu, 0);
    pwsp_fetch_add_seq_cst(&device->opened_count, 1u);
    pwsp_sleeper_wake(&device->cores.host, PWSP_SLEEPER_ALL);
    for (;;) {
        while (!pwsp_device_has_news(device, served)) {
            pwsp_sleeper_begin(sleeper, PWSP_AWAIT_ANY);
            pwsp_sleeper_end(sleeper, pwsp_device_has_news(device, served), 0);
        }
        if (pwsp_load_seq_cst(&device->is_closing)) {
            pwsp_aicpu_close(thread->aicpu);
            return NULL;
        }
        if (pwsp_device_join(device, &served)) {
            pwsp_aicpu_serve(thread->aicpu);
            if (pwsp_fetch_sub_seq_cst(&device->inside_count, 1u) == 1) {
                pwsp_sleeper_wake(&device->cores.host, PWSP_SLEEPER_ALL);
            }
        }
    }
}

// Starts all threads, cores first; false if the system cannot start more.
static bool pwsp_device_start(ptowsp_device *device) {
    bool is_good = true;
    for (uint32_t i = 0; i < device->cores.core_count && is_good; i++) {
        pwsp_device_core *core = &device->threads[i];
        is_good = core->is_started = pwsp_thread_start(&core->thread, pwsp_device_core_main, core);
    }
    for (uint32_t i = 0; i < device->cores.desc.aicpu_count && is_good; i++) {
        pwsp_device_aicpu *aicpu = &device->aicpus[i];
        is_good = aicpu->is_started =
            pwsp_thread_start(&aicpu->thread, pwsp_device_aicpu_main, aicpu);
    }
    return is_good;
}

// Ends all started threads. AICPU threads close the lines of their cores; the host does so for
// AICPU threads that never started.
static void pwsp_device_stop(ptowsp_device *device) {
    pwsp_store_seq_cst(&device->is_closing, 1u);
    for (uint32_t i = 0; i < device->cores.desc.aicpu_count; i++) {
        const pwsp_device_aicpu *aicpu = &device->aicpus[i];
        if (aicpu->is_started) {
            pwsp_sleeper_wake(aicpu->aicpu->sleeper, PWSP_SLEEPER_ALL);
            pwsp_thread_join(aicpu->thread);
        } else {
            pwsp_aicpu_close(aicpu->aicpu);
        }
    }
    for (uint32_t i = 0; i < device->cores.core_count; i++) {
        if (device->threads[i].is_started) {
            pwsp_thread_join(device->threads[i].thread);
        }
    }
}

static void pwsp_device_free(ptowsp_device *device) {
    pwsp_memory memory = device->context->memory;
    pwsp_cores_free(&device->cores);
    PWSP_FREE(&memory, device->links, device->link_capacity);
    pwsp_memory_free(&memory, device->block, device->block_size);
    pwsp_memory_free(&memory, device, sizeof(ptowsp_device));
}

static ptowsp_status pwsp_device_open(ptowsp_context *context, const ptowsp_device_desc *desc,
                                      ptowsp_device **out_device) {
    ptowsp_device *device =
        (ptowsp_device *)pwsp_memory_alloc(&context->memory, sizeof(ptowsp_device));
    if (!device) {
        return PWSP_NO_MEMORY(context, "device: no memory");
    }
    device->context = context;
    device->memory.context = &device->context;
    device->memory.limit = desc->memory_bytes;
    PWSP_ZERO(pwsp_cores_desc, cores);
    cores.vector_count = desc->vector_count;
    cores.cube_count = desc->cube_count;
    cores.aicpu_count = desc->scheduler_count;
    cores.time_limit_ns = desc->time_limit_ns;
    uint32_t core_count = desc->vector_count + desc->cube_count;
    bool is_crowded = pwsp_pool_is_crowded(context->pool, core_count + desc->scheduler_count);
    cores.spin_count = is_crowded ? PWSP_DEVICE_SPIN_SHORT : PWSP_DEVICE_SPIN_LONG;
    cores.yield_count = PWSP_DEVICE_YIELD;
    if (!pwsp_device_allocate(device, &cores)) {
        pwsp_device_free(device);
        return PWSP_NO_MEMORY(context, "device: no memory for %u cores", (unsigned)core_count);
    }
    if (!pwsp_device_start(device)) {
        pwsp_device_stop(device);
        pwsp_device_free(device);
        return pwsp_fail(context, PWSP_HAS_THREADS ? PTOWSP_SYSTEM_FAILED : PTOWSP_UNSUPPORTED,
                         PTOWSP_NO_INDEX,
                         PWSP_HAS_THREADS ? "device: the system starts no more threads"
                                          : "device: this build has no threads");
    }
    while (pwsp_load_seq_cst(&device->opened_count) < desc->scheduler_count) {
        pwsp_sleeper_begin(&device->cores.host, PWSP_AWAIT_ANY);
        bool is_open = pwsp_load_seq_cst(&device->opened_count) == desc->scheduler_count;
        pwsp_sleeper_end(&device->cores.host, is_open, 0);
    }
    pwsp_context_own(context);
    *out_device = device;
    return PTOWSP_OK;
}

ptowsp_status ptowsp_device_open(ptowsp_context *context, const ptowsp_device_desc *desc,
                                 ptowsp_device **out_device) {
    PTOWSP_ASSERT(context);
    if (out_device) {
        *out_device = NULL;
    }
    if (!pwsp_context_enter(context)) {
        return pwsp_fail_busy(context);
    }
    PWSP_ZERO(ptowsp_device_desc, checked);
    if (desc) {
        checked = *desc;
    }
    ptowsp_status status = out_device ? pwsp_device_desc_check(context, &checked)
                                      : PWSP_REFUSE(context, "device: out_device is NULL");
    if (status == PTOWSP_OK) {
        status = pwsp_device_open(context, &checked, out_device);
    }
    pwsp_context_leave(context);
    return status;
}

// -- close ----------------------------------------------------------------------------------------

// The lowest core that is still in the task it was stuck in, or NULL.
static const pwsp_core *pwsp_device_find_stuck(const ptowsp_device *device) {
    for (uint32_t i = 0; i < device->cores.core_count; i++) {
        const pwsp_core *core = &device->cores.cores[i];
        if (pwsp_core_is_lost(core) && pwsp_aicpu_status(core->line) != PWSP_TASK_DONE) {
            return core;
        }
    }
    return NULL;
}

// Gives stuck cores the time limit once more. STUCK if one does not return.
static ptowsp_status pwsp_device_await_stuck(ptowsp_device *device) {
    uint64_t begin = ptowsp_clock_ns();
    const pwsp_core *core;
    while ((core = pwsp_device_find_stuck(device)) != NULL) {
        uint64_t taken = ptowsp_clock_ns() - begin;
        if (taken > device->cores.desc.time_limit_ns) {
            return pwsp_fail(device->context, PTOWSP_STUCK, PTOWSP_NO_INDEX,
                             "device: not closed, as core %u still has not come back",
                             (unsigned)core->index);
        }
        uint64_t left = device->cores.desc.time_limit_ns - taken + 1;
        pwsp_sleeper_begin(&device->cores.host, PWSP_AWAIT_ANY);
        pwsp_sleeper_end(&device->cores.host, false, pwsp_min_u64(left, 1000000));
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_device_close(ptowsp_device *device) {
    if (!device) {
        return PTOWSP_OK;
    }
    ptowsp_context *context = device->context;
    if (!pwsp_context_enter(context)) {
        return pwsp_fail_busy(context);
    }
    const bool is_here = pwsp_sleeper_is_here(&device->cores.host);
    ptowsp_status status = is_here ? pwsp_device_await_stuck(device) : PTOWSP_OK;
    if (status == PTOWSP_OK) {
        if (is_here) {
            pwsp_device_stop(device);
        }
        status = pwsp_device_memory_end(&device->memory);
        pwsp_device_free(device);
        pwsp_context_disown(context);
    }
    pwsp_context_leave(context);
    return status;
}

// -- memory ---------------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_device_enter(ptowsp_device *device) {
    if (!pwsp_context_enter(device->context)) {
        return pwsp_fail_busy(device->context);
    }
    ptowsp_status status = PTOWSP_OK;
    if (!pwsp_sleeper_is_here(&device->cores.host)) {
        status = pwsp_fail(device->context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                           "device: its threads are in the parent of this process: close it and "
                           "open another");
    } else if (pwsp_load_relaxed(&device->cores.lost_count) > 0) {
        status = pwsp_fail(device->context, PTOWSP_STUCK, PTOWSP_NO_INDEX,
                           "device: lost, since core %u was stuck", (unsigned)device->stuck_core);
    }
    if (status == PTOWSP_OK) {
        return PTOWSP_OK;
    }
    pwsp_context_leave(device->context);
    return status;
}

ptowsp_status ptowsp_device_alloc(ptowsp_device *device, const char *name, uint64_t size,
                                  void **out_memory) {
    PTOWSP_ASSERT(device);
    if (out_memory) {
        *out_memory = NULL;
    }
    ptowsp_status status = pwsp_device_enter(device);
    if (status == PTOWSP_OK) {
        status = pwsp_device_memory_alloc(&device->memory, name, size, out_memory);
        pwsp_context_leave(device->context);
    }
    return status;
}

ptowsp_status ptowsp_device_free(ptowsp_device *device, void *memory) {
    PTOWSP_ASSERT(device);
    ptowsp_status status = pwsp_device_enter(device);
    if (status == PTOWSP_OK) {
        status = pwsp_device_memory_free(&device->memory, memory);
        pwsp_context_leave(device->context);
    }
    return status;
}

// Copies, once the context has been entered. `inside` is the device's side.
static ptowsp_status pwsp_device_copy(ptowsp_device *device, void *to, const void *from,
                                      const void *inside, uint64_t size, const char *what) {
    if (size == 0) {
        return PTOWSP_OK;
    }
    if (!to || !from) {
        return PWSP_REFUSE(device->context, "device: %s of %" PRIu64 " bytes %s NULL", what, size,
                           to ? "from" : "to");
    }
    ptowsp_status status = pwsp_device_memory_check(&device->memory, inside, size, what);
    if (status == PTOWSP_OK) {
        memmove(to, from, (size_t)size);
    }
    return status;
}

ptowsp_status ptowsp_device_copy_in(ptowsp_device *device, void *to, const void *from,
                                    uint64_t size) {
    PTOWSP_ASSERT(device);
    ptowsp_status status = pwsp_device_enter(device);
    if (status == PTOWSP_OK) {
        status = pwsp_device_copy(device, to, from, to, size, "copy in");
        pwsp_context_leave(device->context);
    }
    return status;
}

ptowsp_status ptowsp_device_copy_out(ptowsp_device *device, void *to, const void *from,
                                     uint64_t size) {
    PTOWSP_ASSERT(device);
    if (!pwsp_context_enter(device->context)) {
        return pwsp_fail_busy(device->context);
    }
    ptowsp_status status = pwsp_device_copy(device, to, from, from, size, "copy out");
    pwsp_context_leave(device->context);
    return status;
}

// -- a run ----------------------------------------------------------------------------------------

static uint64_t pwsp_device_give(void *user, const pwsp_turn *turn, uint32_t core) {
    ptowsp_device *device = (ptowsp_device *)user;
    pwsp_device_core *thread = &device->threads[core];
    thread->run = device->job.run;
    thread->is_clocked = device->job.is_clocked;
    memset(&thread->result, 0, sizeof thread->result);
    thread->result.entry = turn->entry;
    thread->result.part = turn->part;
    thread->result.core = core;
    return (uint64_t)(uintptr_t)&thread->result;
}

// A stuck core may still write to its result.
static void pwsp_device_done(void *user, const pwsp_turn *turn, uint32_t by, bool is_lost) {
    const ptowsp_device *device = (const ptowsp_device *)user;
    PWSP_ZERO(pwsp_core_result, result);
    if (is_lost) {
        result.entry = turn->entry;
        result.part = turn->part;
        result.core = turn->core;
        result.status = PTOWSP_STUCK;
    } else {
        result = device->threads[turn->core].result;
        PTOWSP_ASSERT(result.core == turn->core && result.entry == turn->entry);
    }
    device->job.done(user, &result, by);
}

// Records the task in which a core is stuck. Of several stuck entries the first by its description
// counts, because entries of programs are reused.
static void pwsp_device_lose(void *user, const pwsp_turn *turn, uint32_t core) {
    ptowsp_device *device = (ptowsp_device *)user;
    char text[sizeof device->stuck_text];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    device->job.stop(user);
    pwsp_mutex_lock(&device->cores.mutex);
    uint64_t index =
        device->job.describe(user, turn->entry, turn->part, ptowsp_output_to_buffer(&buffer));
    if (!device->has_stuck || index < device->stuck_index ||
        (index == device->stuck_index && turn->part < device->stuck_part)) {
        device->has_stuck = true;
        device->stuck_index = index;
        device->stuck_part = turn->part;
        device->stuck_core = core;
        memcpy(device->stuck_text, text, sizeof text);
    }
    pwsp_mutex_unlock(&device->cores.mutex);
}

PWSP_INTERNAL void pwsp_device_prepare(ptowsp_device *device, const pwsp_device_job *job) {
    PTOWSP_ASSERT(pwsp_load_seq_cst(&device->inside_count) == 0);
    device->job = *job;
    pwsp_core_job *cores = &device->job.cores;
    cores->user = device;
    cores->links = device->links;
    cores->give = pwsp_device_give;
    cores->done = pwsp_device_done;
    cores->lose = pwsp_device_lose;
    pwsp_cores_prepare(&device->cores, cores);
    for (uint32_t i = 0; i < device->cores.desc.aicpu_count; i++) {
        pwsp_graph_tally *tally = &device->aicpus[i].tally;
        memset(tally, 0, sizeof *tally);
        tally->first_failed = PWSP_GRAPH_NONE;
    }
}

PWSP_INTERNAL void pwsp_device_begin(ptowsp_device *device) {
    pwsp_mutex_lock(&device->cores.mutex);
    device->cores.is_open = true;
    pwsp_mutex_unlock(&device->cores.mutex);
    pwsp_fetch_add_seq_cst(&device->generation, 1u);
    for (uint32_t i = 0; i < device->cores.desc.aicpu_count; i++) {
        pwsp_sleeper_wake(device->cores.aicpus[i].sleeper, PWSP_AWAIT_ANY);
    }
}

PWSP_INTERNAL bool pwsp_device_end(ptowsp_device *device) {
    pwsp_cores *cores = &device->cores;
    pwsp_cores_await(cores, &cores->is_over, 0);
    pwsp_mutex_lock(&cores->mutex);
    cores->is_open = false;
    pwsp_mutex_unlock(&cores->mutex);
    for (uint32_t inside; (inside = pwsp_load_seq_cst(&device->inside_count)) > 0;) {
        pwsp_cores_await(cores, &device->inside_count, inside);
    }
    return !device->has_stuck;
}

PWSP_INTERNAL ptowsp_status pwsp_device_fail_stuck(ptowsp_device *device) {
    return pwsp_fail(device->context, PTOWSP_STUCK, device->stuck_index,
                     "device: core %u has not come back from %s in %" PRIu64 " ns",
                     (unsigned)device->stuck_core, device->stuck_text,
                     device->cores.desc.time_limit_ns);
}

// -- results --------------------------------------------------------------------------------------

ptowsp_device_stats ptowsp_device_result(const ptowsp_device *device) {
    PTOWSP_ASSERT(device);
    PWSP_ZERO(ptowsp_device_stats, stats);
    stats.scheduler_count = device->cores.desc.aicpu_count;
    stats.cube_count = device->cores.desc.cube_count;
    stats.vector_count = device->cores.desc.vector_count;
    for (uint32_t i = 0; i < device->cores.core_count; i++) {
        stats.task_count += device->cores.cores[i].task_count;
    }
    stats.memory_bytes = device->memory.limit;
    stats.used_bytes = device->memory.used;
    stats.used_bytes_max = device->memory.used_max;
    stats.piece_count = device->memory.piece_count;
    return stats;
}

uint64_t ptowsp_device_core_tasks(const ptowsp_device *device, uint32_t core) {
    PTOWSP_ASSERT(device);
    PTOWSP_ASSERT(core < device->cores.core_count);
    return device->cores.cores[core].task_count;
}
