// Opens and closes a device, owns its memory, and runs the host's part of a run.
//
// Cores are assigned to AICPU threads round robin: core c belongs to thread c modulo their number.
// All threads start at open and are joined at close; between runs they sleep.

#include "device.h"

#include <inttypes.h>

// Rounds of waiting before a sleep: first pauses, fewer if there are more threads than processors,
// then some rounds that yield. Even with enough processors, other programs may use them: on a busy
// machine, pausing for 20 us cost 60 us a task, and these rounds some 4.
#define PWSP_DEVICE_SPIN_LONG 50
#if !defined(PWSP_DEVICE_SPIN_SHORT)  // tests/explore.h has less
#define PWSP_DEVICE_SPIN_SHORT 20
#endif
#define PWSP_DEVICE_YIELD 50

// -- open -----------------------------------------------------------------------------------------

// Checks a description and fills in its defaults.
static ptowsp_status pwsp_device_desc_check(ptowsp_context *context, ptowsp_device_desc *desc) {
    if (desc->scheduler_count > PTOWSP_DEVICE_SCHEDULER_MAX) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "device: %u AICPU threads, more than %u", (unsigned)desc->scheduler_count,
                         (unsigned)PTOWSP_DEVICE_SCHEDULER_MAX);
    }
    uint64_t core_count = (uint64_t)desc->cube_count + desc->vector_count;
    if (core_count > PTOWSP_DEVICE_CORE_MAX) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "device: %" PRIu64 " cores, more than %u", core_count,
                         (unsigned)PTOWSP_DEVICE_CORE_MAX);
    }
    desc->scheduler_count = desc->scheduler_count ? desc->scheduler_count : 1;
    desc->vector_count = core_count ? desc->vector_count : 1;
    desc->memory_bytes = desc->memory_bytes ? desc->memory_bytes : UINT64_C(1) << 30;
    return PTOWSP_OK;
}

// The AICPU thread of a core. The cores of a block have the same one.
static uint32_t pwsp_device_owner(const ptowsp_device *device, uint32_t core) {
    return (device->block_count ? pwsp_device_block_of(device, core) : core) %
           device->scheduler_count;
}

// Allocates one block of cores, AICPU threads and their lists. False when memory is out.
static bool pwsp_device_allocate(ptowsp_device *device) {
    uint32_t core_count = device->core_count, scheduler_count = device->scheduler_count;
    size_t cores = core_count * sizeof(pwsp_core), aicpus = scheduler_count * sizeof(pwsp_aicpu);
    size_t picks = (core_count + scheduler_count) * sizeof(pwsp_pick);
    size_t lists = 6 * core_count * sizeof(uint32_t);
    device->block_size = cores + aicpus + picks + lists + 63;
    device->block = pwsp_memory_alloc(&device->context->memory, device->block_size);
    if (!device->block) {
        return false;
    }
    uint8_t *at = (uint8_t *)device->block;
    at += (64 - (uintptr_t)at % 64) % 64;
    device->cores = (pwsp_core *)(void *)at;
    device->aicpus = (pwsp_aicpu *)(void *)(at + cores);
    pwsp_pick *pick = (pwsp_pick *)(void *)(at + cores + aicpus);
    uint32_t *list = (uint32_t *)(void *)(at + cores + aicpus + picks);
    device->links = list;
    list += core_count;
    for (uint32_t i = 0; i < scheduler_count; i++) {
        pwsp_aicpu *aicpu = &device->aicpus[i];
        uint32_t count = 0;
        for (uint32_t core = 0; core < core_count; core++) {
            count += pwsp_device_owner(device, core) == i;
        }
        aicpu->device = device;
        aicpu->index = i;
        aicpu->picks = pick;
        aicpu->cores = list;
        aicpu->free_cores[0] = list + count;
        aicpu->free_cores[1] = list + 2 * count;
        aicpu->busy_cores = list + 3 * count;
        aicpu->waiting_cores = list + 4 * count;
        pick += count + 1;
        list += 5 * count;
        pwsp_sleeper_init(&aicpu->sleeper);
    }
    for (uint32_t i = 0; i < core_count; i++) {
        pwsp_core *core = &device->cores[i];
        pwsp_aicpu *aicpu = &device->aicpus[pwsp_device_owner(device, i)];
        core->index = i;
        core->unit = i < device->vector_count ? PTOWSP_UNIT_VECTOR : PTOWSP_UNIT_CUBE;
        core->aicpu = aicpu;
        aicpu->cores[aicpu->core_count++] = i;
        aicpu->free_cores[core->unit][aicpu->free_count[core->unit]++] = i;
        pwsp_sleeper_init(&core->sleeper);
    }
    return true;
}

// Starts all threads, cores first; false if the system cannot start more.
static bool pwsp_device_start(ptowsp_device *device) {
    bool is_good = true;
    for (uint32_t i = 0; i < device->core_count && is_good; i++) {
        pwsp_core *core = &device->cores[i];
        is_good = core->is_started = pwsp_thread_start(&core->thread, pwsp_core_main, core);
    }
    for (uint32_t i = 0; i < device->scheduler_count && is_good; i++) {
        pwsp_aicpu *aicpu = &device->aicpus[i];
        is_good = aicpu->is_started = pwsp_thread_start(&aicpu->thread, pwsp_aicpu_main, aicpu);
    }
    return is_good;
}

// Ends all started threads. AICPU threads close the lines of their cores; the host does so for
// AICPU threads that never started.
static void pwsp_device_stop(ptowsp_device *device) {
    pwsp_store_seq_cst(&device->is_closing, 1u);
    for (uint32_t i = 0; i < device->scheduler_count; i++) {
        pwsp_aicpu *aicpu = &device->aicpus[i];
        if (aicpu->is_started) {
            pwsp_sleeper_wake(&aicpu->sleeper, PWSP_SLEEPER_ALL);
            pwsp_thread_join(aicpu->thread);
        } else {
            pwsp_aicpu_close(aicpu);
        }
    }
    for (uint32_t i = 0; i < device->core_count; i++) {
        if (device->cores[i].is_started) {
            pwsp_thread_join(device->cores[i].thread);
        }
    }
}

static void pwsp_device_free(ptowsp_device *device) {
    pwsp_memory memory = device->context->memory;
    for (uint32_t i = 0; device->block && i < device->scheduler_count; i++) {
        pwsp_sleeper_destroy(&device->aicpus[i].sleeper);
    }
    for (uint32_t i = 0; device->block && i < device->core_count; i++) {
        pwsp_sleeper_destroy(&device->cores[i].sleeper);
    }
    if (pwsp_sleeper_is_here(&device->host)) {  // else it may be locked
        pwsp_mutex_destroy(&device->mutex);
    }
    pwsp_sleeper_destroy(&device->host);
    pwsp_memory_free(&memory, device->block, device->block_size);
    pwsp_memory_free(&memory, device, sizeof(ptowsp_device));
}

static ptowsp_status pwsp_device_open(ptowsp_context *context, const ptowsp_device_desc *desc,
                                      ptowsp_device **out_device) {
    ptowsp_device *device =
        (ptowsp_device *)pwsp_memory_alloc(&context->memory, sizeof(ptowsp_device));
    if (!device) {
        return pwsp_fail(context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "device: no memory");
    }
    device->context = context;
    device->scheduler_count = desc->scheduler_count;
    device->vector_count = desc->vector_count;
    device->cube_count = desc->cube_count;
    device->core_count = desc->vector_count + desc->cube_count;
    device->block_count = desc->vector_count / 2 >= desc->cube_count ? desc->cube_count : 0;
    device->time_limit_ns = desc->time_limit_ns;
    device->memory.context = &device->context;
    device->memory.limit = desc->memory_bytes;
    bool is_crowded =
        pwsp_pool_is_crowded(context->pool, device->core_count + device->scheduler_count);
    device->spin_count = is_crowded ? PWSP_DEVICE_SPIN_SHORT : PWSP_DEVICE_SPIN_LONG;
    device->yield_count = PWSP_DEVICE_YIELD;
    pwsp_sleeper_init(&device->host);
    pwsp_mutex_init(&device->mutex);
    if (!pwsp_device_allocate(device)) {
        pwsp_device_free(device);
        return pwsp_fail(context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                         "device: no memory for %u cores",
                         (unsigned)(desc->vector_count + desc->cube_count));
    }
    if (!pwsp_device_start(device)) {
        pwsp_device_stop(device);
        pwsp_device_free(device);
        return pwsp_fail(context, PWSP_HAS_THREADS ? PTOWSP_SYSTEM_FAILED : PTOWSP_UNSUPPORTED,
                         PTOWSP_NO_INDEX,
                         PWSP_HAS_THREADS ? "device: the system starts no more threads"
                                          : "device: this build has no threads");
    }
    while (pwsp_load_seq_cst(&device->opened_count) < device->scheduler_count) {
        pwsp_sleeper_begin(&device->host, PWSP_AWAIT_ANY);
        bool is_open = pwsp_load_seq_cst(&device->opened_count) == device->scheduler_count;
        pwsp_sleeper_end(&device->host, is_open, 0);
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
    ptowsp_device_desc checked;
    memset(&checked, 0, sizeof checked);
    if (desc) {
        checked = *desc;
    }
    ptowsp_status status = out_device ? pwsp_device_desc_check(context, &checked)
                                      : pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                                                  "device: out_device is NULL");
    if (status == PTOWSP_OK) {
        status = pwsp_device_open(context, &checked, out_device);
    }
    pwsp_context_leave(context);
    return status;
}

// -- close ----------------------------------------------------------------------------------------

// The lowest core that is still in the task it was stuck in, or NULL.
static const pwsp_core *pwsp_device_find_stuck(const ptowsp_device *device) {
    for (uint32_t i = 0; i < device->core_count; i++) {
        const pwsp_core *core = &device->cores[i];
        if (core->is_stuck && pwsp_aicpu_status(&core->line) != PWSP_TASK_DONE) {
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
        if (taken > device->time_limit_ns) {
            return pwsp_fail(device->context, PTOWSP_STUCK, PTOWSP_NO_INDEX,
                             "device: not closed, as core %u still has not come back",
                             (unsigned)core->index);
        }
        uint64_t left = device->time_limit_ns - taken + 1;
        pwsp_sleeper_begin(&device->host, PWSP_AWAIT_ANY);
        pwsp_sleeper_end(&device->host, false, pwsp_min_u64(left, 1000000));
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
    const bool is_here = pwsp_sleeper_is_here(&device->host);
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
    if (!pwsp_sleeper_is_here(&device->host)) {
        status = pwsp_fail(device->context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                           "device: its threads are in the parent of this process: close it and "
                           "open another");
    } else if (pwsp_load_relaxed(&device->has_stuck)) {
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
        return pwsp_fail(device->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "device: %s of %" PRIu64 " bytes %s NULL", what, size, to ? "from" : "to");
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

// -- a run, on the host ---------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_device_prepare(ptowsp_device *device, const pwsp_job *job) {
    PTOWSP_ASSERT(!device->is_open && pwsp_load_seq_cst(&device->inside_count) == 0);
    device->job = *job;
    for (uint32_t i = 0; i < PWSP_DEVICE_QUEUES; i++) {
        device->head[i] = PWSP_DEVICE_NONE;
    }
    device->queued_count[0] = 0;
    device->queued_count[1] = 0;
    for (uint32_t i = 0; i < device->scheduler_count; i++) {
        pwsp_aicpu *aicpu = &device->aicpus[i];
        aicpu->ready_head = PWSP_DEVICE_NONE;
        memset(&aicpu->tally, 0, sizeof aicpu->tally);
        aicpu->tally.first_failed = PWSP_GRAPH_NONE;
    }
    pwsp_store_relaxed(&device->is_over, 0u);
}

PWSP_INTERNAL void pwsp_device_begin(ptowsp_device *device) {
    pwsp_mutex_lock(&device->mutex);
    device->is_open = true;
    pwsp_mutex_unlock(&device->mutex);
    pwsp_fetch_add_seq_cst(&device->generation, 1u);
    for (uint32_t i = 0; i < device->scheduler_count; i++) {
        pwsp_sleeper_wake(&device->aicpus[i].sleeper, PWSP_AWAIT_ANY);
    }
}

PWSP_INTERNAL void pwsp_device_await(ptowsp_device *device, const uint32_t *count, uint32_t seen) {
    for (uint32_t round = 0; pwsp_load_seq_cst(count) == seen;) {
        if (pwsp_spin(&round, device->spin_count, 0)) {
            continue;
        }
        pwsp_sleeper_begin(&device->host, PWSP_AWAIT_ANY | PWSP_AWAIT_DONE);
        pwsp_sleeper_end(&device->host, pwsp_load_seq_cst(count) != seen, 0);
    }
}

PWSP_INTERNAL bool pwsp_device_end(ptowsp_device *device) {
    for (uint32_t round = 0; !pwsp_load_seq_cst(&device->is_over);) {
        if (pwsp_spin(&round, device->spin_count, 0)) {
            continue;
        }
        pwsp_sleeper_begin(&device->host, PWSP_AWAIT_ANY);
        pwsp_sleeper_end(&device->host, pwsp_load_seq_cst(&device->is_over), 0);
    }
    pwsp_mutex_lock(&device->mutex);
    device->is_open = false;
    pwsp_mutex_unlock(&device->mutex);
    for (uint32_t round = 0; pwsp_load_seq_cst(&device->inside_count) > 0;) {
        if (pwsp_spin(&round, device->spin_count, 0)) {
            continue;
        }
        pwsp_sleeper_begin(&device->host, PWSP_AWAIT_ANY);
        pwsp_sleeper_end(&device->host, pwsp_load_seq_cst(&device->inside_count) == 0, 0);
    }
    return !pwsp_load_relaxed(&device->has_stuck);
}

PWSP_INTERNAL ptowsp_status pwsp_device_fail_stuck(ptowsp_device *device) {
    return pwsp_fail(device->context, PTOWSP_STUCK, device->stuck_index,
                     "device: core %u has not come back from %s in %" PRIu64 " ns",
                     (unsigned)device->stuck_core, device->stuck_text, device->time_limit_ns);
}

// -- waiting --------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_device_spin(const ptowsp_device *device, pwsp_patience *patience) {
    bool is_hasty = patience->hurry > 0,
         yields = !is_hasty && patience->round >= device->spin_count;
    uint64_t begin = yields ? pwsp_ticks() : 0;
    bool goes_on =
        pwsp_spin(&patience->round, device->spin_count, is_hasty ? 0 : device->yield_count);
    if (goes_on && yields) {
        pwsp_device_yielded(patience, pwsp_ticks() - begin);
    }
    patience->hurry -= is_hasty && !goes_on;
    return goes_on;
}

// -- results --------------------------------------------------------------------------------------

ptowsp_device_stats ptowsp_device_result(const ptowsp_device *device) {
    PTOWSP_ASSERT(device);
    ptowsp_device_stats stats;
    memset(&stats, 0, sizeof stats);
    stats.scheduler_count = device->scheduler_count;
    stats.cube_count = device->cube_count;
    stats.vector_count = device->vector_count;
    for (uint32_t i = 0; i < device->core_count; i++) {
        stats.task_count += device->cores[i].task_count;
    }
    stats.memory_bytes = device->memory.limit;
    stats.used_bytes = device->memory.used;
    stats.used_bytes_max = device->memory.used_max;
    stats.piece_count = device->memory.piece_count;
    return stats;
}

uint64_t ptowsp_device_core_tasks(const ptowsp_device *device, uint32_t core) {
    PTOWSP_ASSERT(device);
    PTOWSP_ASSERT(core < device->core_count);
    return device->cores[core].task_count;
}
