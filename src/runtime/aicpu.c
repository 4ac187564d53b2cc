// Rounds of an AICPU thread: it gives tasks to its cores and takes their results. See cores.h.
//
// Each round has three steps. First the thread collects what its cores have done, which makes other
// entries ready. Then, under the lock, it puts these into the queues and picks an entry for each free
// core. Cores that became free last get tasks first: they are still awake. Last it begins the tasks
// whose blocks are whole.
//
// Entries that stay queued are left to other AICPU threads. A thread that queues entries wakes as
// many threads as there are entries, among those with a free core of the unit. A woken thread that leaves
// entries unserved does the same. Before it sleeps, an AICPU thread publishes the units of its
// free cores and looks again.

#include "cores.h"

// -- free and busy cores --------------------------------------------------------------------------

static void pwsp_aicpu_free(pwsp_aicpu *aicpu, const pwsp_core *core) {
    PTOWSP_ASSERT(core->aicpu == aicpu && !core->is_busy && !core->is_held);
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
    for (uint32_t i = 0; i < PWSP_BLOCK_VECTORS; i++) {
        pwsp_core *core = pwsp_cores_vector(aicpu->all, cube, i);
        PTOWSP_ASSERT(core->is_held);
        core->is_held = false;
        if (!core->is_busy) {
            pwsp_aicpu_free(aicpu, core);
        }
    }
}

// Frees the core at place i of the busy ones, and its block.
static void pwsp_aicpu_unbusy(pwsp_aicpu *aicpu, uint32_t i) {
    PTOWSP_ASSERT(i < aicpu->busy_count);
    pwsp_core *core = &aicpu->all->cores[aicpu->busy_cores[i]];
    aicpu->busy_cores[i] = aicpu->busy_cores[--aicpu->busy_count];
    core->is_busy = false;
    if (!core->is_held) {
        pwsp_aicpu_free(aicpu, core);
    }
    if (core->has_block) {
        pwsp_aicpu_free_block(aicpu, core);
    }
}

// The number of cores that run parts of a core's task; and core i of these, itself first.
static uint32_t pwsp_aicpu_part_count(const pwsp_aicpu *aicpu, const pwsp_core *core) {
    return core->has_block && aicpu->all->job.has_parts ? PWSP_BLOCK_LANES : 1;
}

static pwsp_core *pwsp_aicpu_part(pwsp_aicpu *aicpu, pwsp_core *core, uint32_t i) {
    return i ? pwsp_cores_vector(aicpu->all, core, i - 1) : core;
}

// -- results --------------------------------------------------------------------------------------

// Wakes a host that waits for progress of the run.
static void pwsp_aicpu_wake_host(pwsp_cores *cores) {
    if (cores->job.is_awaited) {
        pwsp_sleeper_wake(&cores->host, PWSP_AWAIT_DONE);
    }
}

// Has a core ended its task, and the cores of its block their parts?
static bool pwsp_aicpu_is_done(pwsp_aicpu *aicpu, pwsp_core *core) {
    bool is_done = pwsp_aicpu_status(core->line) == PWSP_TASK_DONE;
    uint32_t count = is_done ? pwsp_aicpu_part_count(aicpu, core) : 0;
    for (uint32_t i = 1; i < count && is_done; i++) {
        is_done = pwsp_aicpu_status(pwsp_aicpu_part(aicpu, core, i)->line) == PWSP_TASK_DONE;
    }
    return is_done;
}

// Collects results from the cores; returns whether there were any.
static bool pwsp_aicpu_collect(pwsp_aicpu *aicpu) {
    pwsp_cores *cores = aicpu->all;
    bool has_some = false;
    for (uint32_t i = 0; i < aicpu->busy_count;) {
        pwsp_core *core = &cores->cores[aicpu->busy_cores[i]];
        if (!pwsp_aicpu_is_done(aicpu, core)) {
            i++;
            continue;
        }
        cores->job.done(cores->job.user, &core->turn, aicpu->index, false);
        for (uint32_t k = 0; k < pwsp_aicpu_part_count(aicpu, core); k++) {
            pwsp_aicpu_take_back(pwsp_aicpu_part(aicpu, core, k)->line);
        }
        pwsp_aicpu_unbusy(aicpu, i);
        pwsp_aicpu_wake_host(cores);
        has_some = true;
    }
    return has_some;
}

static void pwsp_aicpu_pass(pwsp_aicpu *aicpu, const pwsp_turn *turn, bool is_lost) {
    const pwsp_core_job *job = &aicpu->all->job;
    job->pass(job->user, turn, aicpu->index, is_lost);
    pwsp_aicpu_wake_host(aicpu->all);
}

// -- tasks ----------------------------------------------------------------------------------------

// Is an entry queued for one of its free cores?
static bool pwsp_aicpu_has_queued(const pwsp_aicpu *aicpu) {
    bool has_some = false;
    for (uint32_t unit = 0; unit < 2; unit++) {
        for (uint32_t i = 0; i < aicpu->free_count[unit] && !has_some; i++) {
            const uint32_t core = aicpu->free_cores[unit][i];
            has_some = pwsp_cores_has_entry(aicpu->all, &aicpu->all->cores[core]);
        }
    }
    return has_some;
}

// Puts newly ready entries into the queues, and picks an entry for each free core, the last of the
// lists first. Returns how many.
static uint32_t pwsp_aicpu_pick(pwsp_aicpu *aicpu) {
    pwsp_cores *cores = aicpu->all;
    uint32_t owners = 0, count = 0;
    pwsp_mutex_lock(&cores->mutex);
    while (!pwsp_ready_is_empty(&aicpu->ready)) {
        pwsp_cores_enqueue(cores, pwsp_ready_pop(&aicpu->ready, cores->links), &owners);
    }
    for (uint32_t unit = 0; unit < 2; unit++) {  // vector cores, before others take their blocks
        for (uint32_t i = aicpu->free_count[unit]; i-- > 0;) {
            const pwsp_core *core = &cores->cores[aicpu->free_cores[unit][i]];
            count += pwsp_cores_take(cores, core, &aicpu->picks[count]);
        }
    }
    if (cores->job.may_begin && count > 0) {  // now another one may, in any queue
        owners = UINT32_MAX;
    }
    pwsp_mutex_unlock(&cores->mutex);
    pwsp_cores_wake(cores, owners, aicpu->index + 1);
    return count;
}

// A core that is in no list is given its task.
static void pwsp_aicpu_start(pwsp_aicpu *aicpu, pwsp_core *core) {
    pwsp_cores *cores = aicpu->all;
    PTOWSP_ASSERT(aicpu->busy_count < aicpu->core_count && !core->is_busy);
    aicpu->busy_cores[aicpu->busy_count++] = core->index;
    core->is_busy = true;
    core->task_count++;
    core->given_ns = cores->desc.time_limit_ns > 0 ? ptowsp_clock_ns() : 0;
    for (uint32_t i = pwsp_aicpu_part_count(aicpu, core); i-- > 0;) {
        pwsp_core *part = pwsp_aicpu_part(aicpu, core, i);
        pwsp_aicpu_give(part->line, cores->job.give(cores->job.user, &core->turn, part->index));
        pwsp_sleeper_wake(part->sleeper, PWSP_AWAIT_ANY);
    }
}

// A cube core takes an entry, and the vector cores of its block: busy ones when they are done.
static void pwsp_aicpu_take_block(pwsp_aicpu *aicpu, pwsp_core *cube) {
    cube->has_block = true;
    aicpu->waiting_cores[aicpu->waiting_count++] = cube->index;
    for (uint32_t i = 0; i < PWSP_BLOCK_VECTORS; i++) {
        pwsp_core *core = pwsp_cores_vector(aicpu->all, cube, i);
        PTOWSP_ASSERT(core->aicpu == aicpu && !core->is_held);
        if (!core->is_busy) {
            pwsp_aicpu_unfree(aicpu, core);
        }
        core->is_held = true;
    }
}

// Queues ready entries and gives tasks to free cores; returns whether there was anything to do.
static bool pwsp_aicpu_give_out(pwsp_aicpu *aicpu) {
    pwsp_cores *cores = aicpu->all;
    const pwsp_core_job *job = &cores->job;
    bool has_ready = !pwsp_ready_is_empty(&aicpu->ready);
    if (!has_ready && !pwsp_aicpu_has_queued(aicpu)) {
        return false;
    }
    uint32_t count = pwsp_aicpu_pick(aicpu);
    for (uint32_t i = 0; i < count; i++) {
        const pwsp_turn *pick = &aicpu->picks[i];
        pwsp_core *core = &cores->cores[pick->core];
        bool is_wanted = job->is_wanted(job->user, pick->entry);
        if (!is_wanted || pwsp_core_is_lost(core)) {
            pwsp_aicpu_pass(aicpu, pick, is_wanted);
            continue;
        }
        pwsp_aicpu_unfree(aicpu, core);
        core->turn = *pick;
        if (job->need_of(job->user, pick->entry).unit == PTOWSP_UNIT_MIX) {
            pwsp_aicpu_take_block(aicpu, core);
        } else {
            pwsp_aicpu_start(aicpu, core);
        }
    }
    return has_ready || count > 0;
}

// Starts the entries whose blocks are whole now; those with a lost core pass. Returns whether there
// were any.
static bool pwsp_aicpu_start_blocks(pwsp_aicpu *aicpu) {
    pwsp_cores *cores = aicpu->all;
    bool has_some = false;
    for (uint32_t i = 0; i < aicpu->waiting_count;) {
        pwsp_core *cube = &cores->cores[aicpu->waiting_cores[i]];
        const pwsp_core *first = pwsp_cores_vector(cores, cube, 0);
        const pwsp_core *second = pwsp_cores_vector(cores, cube, 1);
        if (first->is_busy || second->is_busy) {
            i++;
            continue;
        }
        aicpu->waiting_cores[i] = aicpu->waiting_cores[--aicpu->waiting_count];
        has_some = true;
        bool is_lost = pwsp_core_is_lost(first) || pwsp_core_is_lost(second);
        bool is_wanted = cores->job.is_wanted(cores->job.user, cube->turn.entry);
        if (is_lost || !is_wanted) {
            pwsp_aicpu_free(aicpu, cube);
            pwsp_aicpu_free_block(aicpu, cube);
            pwsp_aicpu_pass(aicpu, &cube->turn, is_wanted);
        } else {
            pwsp_aicpu_start(aicpu, cube);
        }
    }
    return has_some;
}

// -- cores that do not come back ------------------------------------------------------------------

static void pwsp_aicpu_lose_core(pwsp_aicpu *aicpu, pwsp_core *core, const pwsp_turn *turn) {
    pwsp_cores *cores = aicpu->all;
    cores->job.lose(cores->job.user, turn, core->index);
    pwsp_store_seq_cst(&core->is_lost, 1u);
    pwsp_fetch_add_seq_cst(&cores->lost_count, 1u);
}

// The busy core at place i has exceeded its time limit: it is lost, or the cores of its block that have not
// ended their parts.
static void pwsp_aicpu_lose(pwsp_aicpu *aicpu, uint32_t i) {
    pwsp_cores *cores = aicpu->all;
    pwsp_core *core = &cores->cores[aicpu->busy_cores[i]];
    for (uint32_t k = 0; k < pwsp_aicpu_part_count(aicpu, core); k++) {
        pwsp_core *part = pwsp_aicpu_part(aicpu, core, k);
        if (pwsp_aicpu_status(part->line) == PWSP_TASK_DONE) {
            pwsp_aicpu_take_back(part->line);
        } else {
            pwsp_aicpu_lose_core(aicpu, part, &core->turn);
        }
    }
    pwsp_aicpu_unbusy(aicpu, i);
    cores->job.done(cores->job.user, &core->turn, aicpu->index, true);
    pwsp_aicpu_wake_host(cores);
    pwsp_cores_wake_all(cores);
}

// Looks for cores that exceeded their time limit. Returns the nanoseconds until the next one does;
// 0 is never.
static uint64_t pwsp_aicpu_check_time(pwsp_aicpu *aicpu) {
    uint64_t limit = aicpu->all->desc.time_limit_ns, least = 0;
    if (limit == 0 || aicpu->busy_count == 0) {
        return 0;
    }
    uint64_t now = ptowsp_clock_ns();
    for (uint32_t i = aicpu->busy_count; i-- > 0;) {
        pwsp_core *core = &aicpu->all->cores[aicpu->busy_cores[i]];
        uint64_t taken = now - core->given_ns;
        if (taken <= limit) {
            uint64_t left = limit - taken + 1;
            least = least == 0 || left < least ? left : least;
        } else if (!pwsp_aicpu_is_done(aicpu, core)) {
            pwsp_aicpu_lose(aicpu, i);
            least = 1;
        }
    }
    return least;
}

// -- the thread -----------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_aicpu_round(pwsp_aicpu *aicpu) {
    bool has_some = pwsp_aicpu_collect(aicpu);
    has_some = pwsp_aicpu_give_out(aicpu) || has_some;
    has_some = pwsp_aicpu_start_blocks(aicpu) || has_some;
    if (!has_some || ++aicpu->round_count % 64 == 0) {
        aicpu->left_ns = pwsp_aicpu_check_time(aicpu);
    }
    return has_some;
}

static bool pwsp_aicpu_has_news(pwsp_aicpu *aicpu) {
    bool has_news = pwsp_aicpu_has_queued(aicpu);
    for (uint32_t i = 0; i < aicpu->busy_count && !has_news; i++) {
        has_news = pwsp_aicpu_is_done(aicpu, &aicpu->all->cores[aicpu->busy_cores[i]]);
    }
    return has_news;
}

PWSP_INTERNAL void pwsp_aicpu_sleep(pwsp_aicpu *aicpu, uint32_t what, const uint32_t *word,
                                    uint32_t seen) {
    what |= PWSP_AWAIT_ANY;
    what |= aicpu->free_count[0] ? PWSP_AWAIT_VECTOR : 0;
    what |= aicpu->free_count[1] ? PWSP_AWAIT_CUBE : 0;
    pwsp_sleeper_begin(aicpu->sleeper, what);
    bool has_news = pwsp_load_seq_cst(word) != seen || pwsp_aicpu_has_news(aicpu);
    pwsp_sleeper_end(aicpu->sleeper, has_news, aicpu->left_ns);
}

PWSP_INTERNAL void pwsp_aicpu_serve(pwsp_aicpu *aicpu) {
    pwsp_cores *cores = aicpu->all;
    aicpu->patience.round = 0;
    while (!pwsp_load_seq_cst(&cores->is_over)) {
        if (pwsp_aicpu_round(aicpu)) {
            aicpu->patience.round = 0;
        } else if (cores->desc.is_polled) {
            pwsp_thread_yield();
        } else if (!pwsp_cores_spin(cores, &aicpu->patience)) {
            pwsp_aicpu_sleep(aicpu, PWSP_AWAIT_ANY, &cores->is_over, 0);
        }
    }
}

PWSP_INTERNAL void pwsp_aicpu_open(pwsp_aicpu *aicpu, uint64_t limit_ns) {
    pwsp_cores *cores = aicpu->all;
    for (uint32_t i = 0; i < aicpu->core_count; i++) {
        pwsp_core *core = &cores->cores[aicpu->cores[i]];
        pwsp_aicpu_open_line(core->line);
        pwsp_sleeper_wake(core->sleeper, PWSP_AWAIT_ANY);
    }
    uint64_t begin = limit_ns ? ptowsp_clock_ns() : 0;
    for (uint32_t i = 0; i < aicpu->core_count;) {
        pwsp_core *core = &cores->cores[aicpu->cores[i]];
        if (pwsp_aicpu_sees_core(core->line, core->index)) {
            i++;
        } else if (limit_ns && ptowsp_clock_ns() - begin > limit_ns) {
            const pwsp_turn none = {core->index, PWSP_CORES_NONE, 0};
            pwsp_aicpu_lose_core(aicpu, core, &none);
            i++;
        } else if (cores->desc.is_polled) {
            pwsp_thread_yield();
        } else {
            pwsp_sleeper_begin(aicpu->sleeper, PWSP_AWAIT_ANY);
            pwsp_sleeper_end(aicpu->sleeper, pwsp_aicpu_sees_core(core->line, core->index),
                             limit_ns);
        }
    }
}

PWSP_INTERNAL void pwsp_aicpu_close(pwsp_aicpu *aicpu) {
    for (uint32_t i = 0; i < aicpu->core_count; i++) {
        pwsp_core *core = &aicpu->all->cores[aicpu->cores[i]];
        if (pwsp_core_is_lost(core)) {
            pwsp_aicpu_quit_lost_line(core->line);
        } else {
            pwsp_aicpu_quit_line(core->line);
        }
        pwsp_sleeper_wake(core->sleeper, PWSP_AWAIT_ANY);
    }
}
