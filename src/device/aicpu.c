// An AICPU thread: gives tasks to its cores and takes their results.
//
// Each round has two steps. First the thread collects what its cores have done, which makes other
// tasks ready. Then, under the lock, it puts these into the queues and picks a task for each free
// core: from the core's own queue first, then by priority. Cores that became free last get tasks
// first: they are still awake.
//
// A task that takes a block is picked for the cube core, which then waits for its two vector cores:
// these get no other task any more. All three belong to one AICPU thread, so no other one takes part.
//
// Tasks that stay queued are left to other AICPU threads. A thread that queues tasks wakes as many
// threads as there are tasks, among those with a free core of the unit. A woken thread that leaves
// tasks behind does the same. Before it sleeps, an AICPU thread publishes the units of its free
// cores and looks again. Queue heads and counts, lines and flags are all written seq_cst (see
// src/base/sleeper.h).

#include "device.h"

// -- queues, under the lock -----------------------------------------------------------------------

static void pwsp_device_enqueue(ptowsp_device *device, uint32_t entry) {
    const pwsp_job *job = &device->job;
    uint32_t queue = job->queue_of(job->user, entry);
    PTOWSP_ASSERT(queue < PWSP_DEVICE_QUEUES);
    job->links[entry] = PWSP_DEVICE_NONE;
    if (pwsp_load_relaxed(&device->head[queue]) == PWSP_DEVICE_NONE) {
        pwsp_store_seq_cst(&device->head[queue], entry);
    } else {
        job->links[device->tail[queue]] = entry;
    }
    device->tail[queue] = entry;
    if (queue < PWSP_GRAPH_CLASSES) {
        uint32_t *count = &device->queued_count[queue / PWSP_GRAPH_LEVELS];
        pwsp_store_seq_cst(count, pwsp_load_relaxed(count) + 1);
    }
}

// Takes the first entry of a queue, or a part of it; false if the queue is empty.
static bool pwsp_device_dequeue(ptowsp_device *device, uint32_t queue, pwsp_pick *out_pick) {
    const pwsp_job *job = &device->job;
    PTOWSP_ASSERT(queue < PWSP_DEVICE_QUEUES);
    uint32_t entry = pwsp_load_relaxed(&device->head[queue]);
    if (entry == PWSP_DEVICE_NONE) {
        return false;
    }
    out_pick->entry = entry;
    out_pick->part = 0;
    if (!job->take || !job->take(job->user, entry, &out_pick->part)) {
        pwsp_store_seq_cst(&device->head[queue], job->links[entry]);
        if (queue < PWSP_GRAPH_CLASSES) {
            uint32_t *count = &device->queued_count[queue / PWSP_GRAPH_LEVELS];
            PTOWSP_ASSERT(pwsp_load_relaxed(count) > 0);
            pwsp_store_seq_cst(count, pwsp_load_relaxed(count) - 1);
        }
    }
    return true;
}

static bool pwsp_device_dequeue_unit(ptowsp_device *device, uint32_t unit, pwsp_pick *out_pick) {
    if (pwsp_load_relaxed(&device->queued_count[unit]) == 0) {
        return false;
    }
    uint32_t queue = (unit + 1) * PWSP_GRAPH_LEVELS - 1;  // of the highest level first
    while (!pwsp_device_dequeue(device, queue, out_pick)) {
        PTOWSP_ASSERT(queue > unit * PWSP_GRAPH_LEVELS);  // one has an entry
        queue--;
    }
    return true;
}

// -- waking ---------------------------------------------------------------------------------------

static void pwsp_device_wake_all(ptowsp_device *device) {
    for (uint32_t i = 0; i < device->scheduler_count; i++) {
        pwsp_sleeper_wake(&device->aicpus[i].sleeper, PWSP_SLEEPER_ALL);
    }
}

// Wakes AICPU threads with free cores for the queued tasks; all of them if a core is stuck and the
// queues must be drained.
static void pwsp_device_wake_for_units(ptowsp_device *device, uint32_t from) {
    if (PWSP_UNLIKELY(pwsp_load_seq_cst(&device->has_stuck))) {
        pwsp_device_wake_all(device);
        return;
    }
    for (uint32_t unit = 0; unit < 2; unit++) {
        uint32_t count = pwsp_load_seq_cst(&device->queued_count[unit]);
        for (uint32_t i = 0; count > 0 && i < device->scheduler_count; i++) {
            pwsp_aicpu *aicpu = &device->aicpus[(from + i) % device->scheduler_count];
            count -= pwsp_sleeper_wake(&aicpu->sleeper, PWSP_AWAIT_VECTOR << unit);
        }
    }
}

PWSP_INTERNAL void pwsp_device_finish(ptowsp_device *device) {
    pwsp_store_seq_cst(&device->is_over, 1u);
    pwsp_device_wake_all(device);
    pwsp_sleeper_wake(&device->host, PWSP_SLEEPER_ALL);
}

PWSP_INTERNAL void pwsp_device_ready(ptowsp_device *device, uint32_t by, uint32_t entry) {
    if (by != PWSP_DEVICE_NONE) {
        pwsp_aicpu *aicpu = &device->aicpus[by];
        uint32_t *links = device->job.links;
        links[entry] = PWSP_DEVICE_NONE;
        if (aicpu->ready_head == PWSP_DEVICE_NONE) {
            aicpu->ready_head = entry;
        } else {
            links[aicpu->ready_tail] = entry;
        }
        aicpu->ready_tail = entry;
        return;
    }
    pwsp_mutex_lock(&device->mutex);
    uint32_t queue = device->job.queue_of(device->job.user, entry);
    pwsp_device_enqueue(device, entry);
    bool is_open = device->is_open;
    pwsp_mutex_unlock(&device->mutex);
    if (is_open && queue >= PWSP_GRAPH_CLASSES) {
        pwsp_aicpu *aicpu = device->cores[queue - PWSP_GRAPH_CLASSES].aicpu;
        pwsp_sleeper_wake(&aicpu->sleeper, PWSP_AWAIT_ANY);
    } else if (is_open) {
        pwsp_device_wake_for_units(device, 0);
    }
}

// -- a round --------------------------------------------------------------------------------------

static void pwsp_aicpu_free(pwsp_aicpu *aicpu, const pwsp_core *core) {
    PTOWSP_ASSERT(core->aicpu == aicpu && !core->is_busy && !core->is_stuck && !core->is_held);
    aicpu->free_cores[core->unit][aicpu->free_count[core->unit]++] = core->index;
}

// The core is free, and is not any more.
static void pwsp_aicpu_unfree(pwsp_aicpu *aicpu, const pwsp_core *core) {
    uint32_t *cores = aicpu->free_cores[core->unit], *count = &aicpu->free_count[core->unit];
    uint32_t at = *count;
    PTOWSP_ASSERT(at > 0);
    while (cores[--at] != core->index) {  // it is near the end of the list
        PTOWSP_ASSERT(at > 0);
    }
    memmove(cores + at, cores + at + 1, (--*count - at) * sizeof *cores);
}

// A cube core's task has left its block: frees its vector cores.
static void pwsp_aicpu_free_block(pwsp_aicpu *aicpu, pwsp_core *cube) {
    cube->has_block = false;
    for (uint32_t i = 0; i < 2; i++) {
        pwsp_core *core = pwsp_device_block_core(aicpu->device, cube, i);
        PTOWSP_ASSERT(core->is_held);
        core->is_held = false;
        if (!core->is_busy && !core->is_stuck) {
            pwsp_aicpu_free(aicpu, core);
        }
    }
}

// Frees the core at place i of the busy ones.
static void pwsp_aicpu_unbusy(pwsp_aicpu *aicpu, uint32_t i, bool is_free) {
    PTOWSP_ASSERT(i < aicpu->busy_count);
    pwsp_core *core = &aicpu->device->cores[aicpu->busy_cores[i]];
    aicpu->busy_cores[i] = aicpu->busy_cores[--aicpu->busy_count];
    core->is_busy = false;
    if (is_free && !core->is_held) {
        pwsp_aicpu_free(aicpu, core);
    }
    if (is_free && core->has_block) {
        pwsp_aicpu_free_block(aicpu, core);
    }
}

// Wakes a host that waits for progress of the run.
static void pwsp_aicpu_tell_host(ptowsp_device *device) {
    if (device->job.is_awaited) {
        pwsp_sleeper_wake(&device->host, PWSP_AWAIT_DONE);
    }
}

// Collects results from the cores; returns whether there were any.
static bool pwsp_aicpu_collect(pwsp_aicpu *aicpu) {
    ptowsp_device *device = aicpu->device;
    bool has_some = false;
    for (uint32_t i = 0; i < aicpu->busy_count;) {
        pwsp_core *core = &device->cores[aicpu->busy_cores[i]];
        if (pwsp_aicpu_status(&core->line) != PWSP_TASK_DONE) {
            i++;
            continue;
        }
        pwsp_core_result result = core->task.result;
        PTOWSP_ASSERT(result.core == core->index && result.entry == core->entry);
        pwsp_aicpu_take_back(&core->line);
        pwsp_aicpu_unbusy(aicpu, i, true);
        device->job.done(device->job.user, &result, aicpu->index);
        pwsp_aicpu_tell_host(device);
        has_some = true;
    }
    return has_some;
}

// Puts newly ready entries into the queues. Under the lock. `owners` collects the threads of the
// cores to wake, a bit for each AICPU thread.
static void pwsp_aicpu_flush(pwsp_aicpu *aicpu, uint32_t *owners) {
    ptowsp_device *device = aicpu->device;
    const pwsp_job *job = &device->job;
    while (aicpu->ready_head != PWSP_DEVICE_NONE) {
        uint32_t entry = aicpu->ready_head;
        aicpu->ready_head = job->links[entry];
        uint32_t queue = job->queue_of(job->user, entry);
        if (queue >= PWSP_GRAPH_CLASSES) {
            *owners |= UINT32_C(1) << device->cores[queue - PWSP_GRAPH_CLASSES].aicpu->index;
        }
        pwsp_device_enqueue(device, entry);
    }
}

// Is an entry queued for one of its free cores? If a core is stuck, for any core: all ready entries
// must be drained.
static bool pwsp_aicpu_has_queued(const pwsp_aicpu *aicpu) {
    const ptowsp_device *device = aicpu->device;
    bool is_any = pwsp_load_seq_cst(&device->has_stuck) != 0;
    for (uint32_t unit = 0; unit < 2; unit++) {
        if ((is_any || aicpu->free_count[unit] > 0) &&
            pwsp_load_seq_cst(&device->queued_count[unit]) > 0) {
            return true;
        }
        for (uint32_t i = 0; i < aicpu->free_count[unit]; i++) {
            uint32_t queue = PWSP_GRAPH_CLASSES + aicpu->free_cores[unit][i];
            if (pwsp_load_seq_cst(&device->head[queue]) != PWSP_DEVICE_NONE) {
                return true;
            }
        }
    }
    for (uint32_t i = 0; is_any && i < aicpu->core_count; i++) {
        uint32_t queue = PWSP_GRAPH_CLASSES + aicpu->cores[i];
        if (pwsp_load_seq_cst(&device->head[queue]) != PWSP_DEVICE_NONE) {
            return true;
        }
    }
    return false;
}

// Picks an entry for each free core, the last of the lists first. Under the lock. Returns how many.
static uint32_t pwsp_aicpu_pick(pwsp_aicpu *aicpu) {
    ptowsp_device *device = aicpu->device;
    uint32_t count = 0;
    for (uint32_t unit = 0; unit < 2; unit++) {
        uint32_t *cores = aicpu->free_cores[unit];
        for (uint32_t i = aicpu->free_count[unit]; i-- > 0;) {
            pwsp_pick *pick = &aicpu->picks[count];
            pick->core = cores[i];
            if (pwsp_device_dequeue(device, PWSP_GRAPH_CLASSES + cores[i], pick) ||
                pwsp_device_dequeue_unit(device, unit, pick)) {
                count++;
            }
        }
    }
    return count;
}

// The same after a core was stuck, when nothing is dispatched any more: one entry from anywhere.
static uint32_t pwsp_aicpu_pick_any(pwsp_aicpu *aicpu) {
    ptowsp_device *device = aicpu->device;
    pwsp_pick *pick = &aicpu->picks[0];
    bool is_found =
        pwsp_device_dequeue_unit(device, 0, pick) || pwsp_device_dequeue_unit(device, 1, pick);
    for (uint32_t i = 0; i < aicpu->core_count && !is_found; i++) {
        is_found = pwsp_device_dequeue(device, PWSP_GRAPH_CLASSES + aicpu->cores[i], pick);
    }
    return is_found;
}

// Lets a core that is in no list run an entry.
static void pwsp_aicpu_start(pwsp_aicpu *aicpu, pwsp_core *core, uint32_t entry, uint32_t part) {
    ptowsp_device *device = aicpu->device;
    PTOWSP_ASSERT(aicpu->busy_count < aicpu->core_count && !core->is_busy);
    aicpu->busy_cores[aicpu->busy_count++] = core->index;
    core->is_busy = true;
    core->entry = entry;
    core->part = part;
    core->task_count++;
    core->given_ns = device->time_limit_ns > 0 ? ptowsp_clock_ns() : 0;
    core->task.run = device->job.run;
    core->task.user = device->job.user;
    core->task.is_clocked = device->job.is_clocked;
    memset(&core->task.result, 0, sizeof core->task.result);
    core->task.result.entry = entry;
    core->task.result.part = part;
    core->task.result.core = core->index;
    pwsp_aicpu_give(&core->line, (uint64_t)(uintptr_t)&core->task);
    pwsp_sleeper_wake(&core->sleeper, PWSP_AWAIT_ANY);
}

static void pwsp_aicpu_pass(pwsp_aicpu *aicpu, uint32_t entry, uint32_t part) {
    const pwsp_job *job = &aicpu->device->job;
    job->pass(job->user, entry, part, aicpu->index);
    pwsp_aicpu_tell_host(aicpu->device);
}

// A cube core takes an entry, and the vector cores of its block: busy ones when they are done.
static void pwsp_aicpu_take_block(pwsp_aicpu *aicpu, pwsp_core *cube, const pwsp_pick *pick) {
    pwsp_aicpu_unfree(aicpu, cube);
    cube->has_block = true;
    cube->entry = pick->entry;
    cube->part = pick->part;
    aicpu->waiting_cores[aicpu->waiting_count++] = cube->index;
    for (uint32_t i = 0; i < 2; i++) {
        pwsp_core *core = pwsp_device_block_core(aicpu->device, cube, i);
        PTOWSP_ASSERT(core->aicpu == aicpu && !core->is_held);
        if (!core->is_busy && !core->is_stuck) {
            pwsp_aicpu_unfree(aicpu, core);
        }
        core->is_held = true;
    }
}

// Starts the entries whose blocks are whole now; if a core is stuck, they pass. Returns whether there
// were any.
static bool pwsp_aicpu_start_blocks(pwsp_aicpu *aicpu) {
    ptowsp_device *device = aicpu->device;
    const pwsp_job *job = &device->job;
    bool has_some = false;
    for (uint32_t i = 0; i < aicpu->waiting_count;) {
        pwsp_core *cube = &device->cores[aicpu->waiting_cores[i]];
        const pwsp_core *first = pwsp_device_block_core(device, cube, 0);
        const pwsp_core *second = pwsp_device_block_core(device, cube, 1);
        bool has_stuck = pwsp_load_seq_cst(&device->has_stuck) != 0;
        if (!has_stuck && (first->is_busy || second->is_busy)) {
            i++;
            continue;
        }
        aicpu->waiting_cores[i] = aicpu->waiting_cores[--aicpu->waiting_count];
        has_some = true;
        if (has_stuck || !job->is_wanted(job->user, cube->entry)) {
            pwsp_aicpu_free(aicpu, cube);
            pwsp_aicpu_free_block(aicpu, cube);
            pwsp_aicpu_pass(aicpu, cube->entry, cube->part);
        } else {
            pwsp_aicpu_start(aicpu, cube, cube->entry, cube->part);
        }
    }
    return has_some;
}

// Queues ready entries and dispatches to free cores; returns whether there was anything to do.
static bool pwsp_aicpu_give_out(pwsp_aicpu *aicpu) {
    ptowsp_device *device = aicpu->device;
    const pwsp_job *job = &device->job;
    bool has_ready = aicpu->ready_head != PWSP_DEVICE_NONE;
    if (!has_ready && !pwsp_aicpu_has_queued(aicpu)) {
        return false;
    }
    uint32_t owners = 0;
    pwsp_mutex_lock(&device->mutex);
    pwsp_aicpu_flush(aicpu, &owners);
    bool has_stuck = pwsp_load_relaxed(&device->has_stuck);
    uint32_t count = has_stuck ? pwsp_aicpu_pick_any(aicpu) : pwsp_aicpu_pick(aicpu);
    pwsp_mutex_unlock(&device->mutex);
    for (uint32_t i = 0; i < device->scheduler_count && owners; i++) {
        if (owners & UINT32_C(1) << i) {
            pwsp_sleeper_wake(&device->aicpus[i].sleeper, PWSP_AWAIT_ANY);
        }
    }
    pwsp_device_wake_for_units(device, aicpu->index + 1);
    for (uint32_t i = 0; i < count; i++) {
        const pwsp_pick *pick = &aicpu->picks[i];
        pwsp_core *core = &device->cores[pick->core];
        if (has_stuck || !job->is_wanted(job->user, pick->entry)) {
            pwsp_aicpu_pass(aicpu, pick->entry, pick->part);
        } else if (job->has_block(job->user, pick->entry)) {
            pwsp_aicpu_take_block(aicpu, core, pick);
        } else {
            pwsp_aicpu_unfree(aicpu, core);
            pwsp_aicpu_start(aicpu, core, pick->entry, pick->part);
        }
    }
    return has_ready || count > 0;
}

// -- cores that do not come back ------------------------------------------------------------------

// Records what a core is stuck in, under the lock. Of several stuck entries the first by its
// description counts, because entries of programs are reused.
static void pwsp_device_note_stuck(ptowsp_device *device, const pwsp_core *core) {
    const pwsp_job *job = &device->job;
    char text[sizeof device->stuck_text];
    ptowsp_text_buffer buffer = {text, sizeof text, 0};
    uint64_t index =
        job->describe(job->user, core->entry, core->part, ptowsp_text_to_buffer(&buffer));
    if (!pwsp_load_relaxed(&device->has_stuck) || index < device->stuck_index ||
        (index == device->stuck_index && core->part < device->stuck_part)) {
        device->stuck_index = index;
        device->stuck_part = core->part;
        device->stuck_core = core->index;
        memcpy(device->stuck_text, text, sizeof text);
    }
}

// A core exceeded its time limit: the run goes on without it, but only to its end.
static void pwsp_aicpu_lose(pwsp_aicpu *aicpu, uint32_t i) {
    ptowsp_device *device = aicpu->device;
    const pwsp_job *job = &device->job;
    pwsp_core *core = &device->cores[aicpu->busy_cores[i]];
    core->is_stuck = true;
    pwsp_aicpu_unbusy(aicpu, i, false);
    job->stop(job->user);
    pwsp_mutex_lock(&device->mutex);
    pwsp_device_note_stuck(device, core);
    pwsp_store_seq_cst(&device->has_stuck, 1u);
    pwsp_mutex_unlock(&device->mutex);
    pwsp_core_result result;
    memset(&result, 0, sizeof result);
    result.entry = core->entry;
    result.part = core->part;
    result.core = core->index;
    result.status = PTOWSP_STUCK;
    job->done(job->user, &result, aicpu->index);
    pwsp_aicpu_tell_host(device);
    pwsp_device_wake_all(device);
}

// Looks for cores that exceeded their time limit. Returns the nanoseconds until the next one does;
// 0 is never.
static uint64_t pwsp_aicpu_check_time(pwsp_aicpu *aicpu) {
    ptowsp_device *device = aicpu->device;
    uint64_t limit = device->time_limit_ns, least = 0;
    if (limit == 0 || aicpu->busy_count == 0) {
        return 0;
    }
    uint64_t now = ptowsp_clock_ns();
    for (uint32_t i = aicpu->busy_count; i-- > 0;) {
        const pwsp_core *core = &device->cores[aicpu->busy_cores[i]];
        uint64_t taken = now - core->given_ns;
        if (taken <= limit) {
            uint64_t left = limit - taken + 1;
            least = least == 0 || left < least ? left : least;
        } else if (pwsp_aicpu_status(&core->line) != PWSP_TASK_DONE) {
            pwsp_aicpu_lose(aicpu, i);
            least = 1;
        }
    }
    return least;
}

// -- the thread -----------------------------------------------------------------------------------

static bool pwsp_aicpu_has_news(const pwsp_aicpu *aicpu) {
    const ptowsp_device *device = aicpu->device;
    bool must_pass = aicpu->waiting_count > 0 && pwsp_load_seq_cst(&device->has_stuck);
    if (must_pass || pwsp_load_seq_cst(&device->is_over) || pwsp_aicpu_has_queued(aicpu)) {
        return true;
    }
    for (uint32_t i = 0; i < aicpu->busy_count; i++) {
        if (pwsp_load_seq_cst(&device->cores[aicpu->busy_cores[i]].line.task_status) ==
            PWSP_TASK_DONE) {
            return true;
        }
    }
    return false;
}

// Waits a little; the longer the thread has been idle, the longer. left_ns: until a core exceeds
// its time limit.
static void pwsp_aicpu_idle(pwsp_aicpu *aicpu, uint64_t left_ns) {
    if (!pwsp_device_spin(aicpu->device, &aicpu->patience)) {
        uint32_t what = PWSP_AWAIT_ANY;
        what |= aicpu->free_count[0] ? PWSP_AWAIT_VECTOR : 0;
        what |= aicpu->free_count[1] ? PWSP_AWAIT_CUBE : 0;
        pwsp_sleeper_begin(&aicpu->sleeper, what);
        pwsp_sleeper_end(&aicpu->sleeper, pwsp_aicpu_has_news(aicpu), left_ns);
    }
}

static void pwsp_aicpu_work(pwsp_aicpu *aicpu) {
    aicpu->patience.round = 0;
    for (uint32_t round = 1; !pwsp_load_seq_cst(&aicpu->device->is_over); round++) {
        bool has_some = pwsp_aicpu_collect(aicpu);
        has_some = pwsp_aicpu_give_out(aicpu) || has_some;
        has_some = pwsp_aicpu_start_blocks(aicpu) || has_some;
        uint64_t left_ns = has_some && round % 64 != 0 ? 0 : pwsp_aicpu_check_time(aicpu);
        if (has_some) {
            aicpu->patience.round = 0;
        } else {
            pwsp_aicpu_idle(aicpu, left_ns);
        }
    }
}

// Opens the lines of its cores and waits until they poll.
static void pwsp_aicpu_open(pwsp_aicpu *aicpu) {
    ptowsp_device *device = aicpu->device;
    for (uint32_t i = 0; i < aicpu->core_count; i++) {
        pwsp_core *core = &device->cores[aicpu->cores[i]];
        pwsp_aicpu_open_line(&core->line);
        pwsp_sleeper_wake(&core->sleeper, PWSP_AWAIT_ANY);
    }
    for (uint32_t i = 0; i < aicpu->core_count;) {
        const pwsp_core *core = &device->cores[aicpu->cores[i]];
        if (pwsp_aicpu_sees_core(&core->line, core->index)) {
            i++;
        } else {
            pwsp_sleeper_begin(&aicpu->sleeper, PWSP_AWAIT_ANY);
            pwsp_sleeper_end(&aicpu->sleeper, pwsp_aicpu_sees_core(&core->line, core->index), 0);
        }
    }
    pwsp_fetch_add_seq_cst(&device->opened_count, 1u);
    pwsp_sleeper_wake(&device->host, PWSP_SLEEPER_ALL);
}

PWSP_INTERNAL void pwsp_aicpu_close(pwsp_aicpu *aicpu) {
    ptowsp_device *device = aicpu->device;
    for (uint32_t i = 0; i < aicpu->core_count; i++) {
        pwsp_core *core = &device->cores[aicpu->cores[i]];
        if (pwsp_aicpu_status(&core->line) == PWSP_TASK_DONE) {  // it was stuck
            pwsp_aicpu_take_back(&core->line);
        }
        pwsp_aicpu_quit_line(&core->line);
        pwsp_sleeper_wake(&core->sleeper, PWSP_AWAIT_ANY);
    }
}

PWSP_INTERNAL void *pwsp_aicpu_main(void *arg) {
    pwsp_aicpu *aicpu = (pwsp_aicpu *)arg;
    ptowsp_device *device = aicpu->device;
    uint32_t served = 0;
    pwsp_aicpu_open(aicpu);
    for (;;) {
        while (pwsp_load_seq_cst(&device->generation) == served &&
               !pwsp_load_seq_cst(&device->is_closing)) {
            pwsp_sleeper_begin(&aicpu->sleeper, PWSP_AWAIT_ANY);
            bool has_news = pwsp_load_seq_cst(&device->generation) != served ||
                            pwsp_load_seq_cst(&device->is_closing);
            pwsp_sleeper_end(&aicpu->sleeper, has_news, 0);
        }
        if (pwsp_load_seq_cst(&device->is_closing)) {
            pwsp_aicpu_close(aicpu);
            return NULL;
        }
        pwsp_mutex_lock(&device->mutex);
        served = pwsp_load_seq_cst(&device->generation);
        bool is_in = device->is_open;
        if (is_in) {
            pwsp_fetch_add_seq_cst(&device->inside_count, 1u);
        }
        pwsp_mutex_unlock(&device->mutex);
        if (is_in) {
            pwsp_aicpu_work(aicpu);
            if (pwsp_fetch_sub_seq_cst(&device->inside_count, 1u) == 1) {
                pwsp_sleeper_wake(&device->host, PWSP_SLEEPER_ALL);
            }
        }
    }
}
