// Cores and AICPU threads: memory, queues, waking, the host's calls, and the loop of a core that is a
// thread. See cores.h; rounds of AICPU threads are in aicpu.c.
//
// Queue counts, lines and flags are all written seq_cst (see ../base/sleeper.h), so that a thread
// which says that it sleeps, and looks again, misses nothing.

#include "cores.h"

// -- memory ---------------------------------------------------------------------------------------

// The AICPU thread of a core. The cores of a block have the same one, by its number; vector cores after the
// blocks' have the numbers of further blocks.
static uint32_t pwsp_cores_owner(const pwsp_cores *cores, uint32_t core) {
    uint32_t first = cores->desc.is_host && cores->desc.aicpu_count > 1;
    uint32_t block = pwsp_block_of(cores->desc.vector_count, core);
    uint32_t number = block < cores->block_count ? block : core - cores->block_count;
    return first + number % (cores->desc.aicpu_count - first);
}

#define PWSP_CORES_ARRAYS(ARRAY)                                                                   \
    ARRAY(cores->cores, cores->core_count)                                                         \
    ARRAY(cores->aicpus, cores->desc.aicpu_count)                                                  \
    ARRAY(cores->queue_counts, cores->core_count + 2)                                              \
    ARRAY(cores->picks, cores->core_count)                                                         \
    ARRAY(cores->lists, 5 * cores->core_count)

// Gives an AICPU thread its part of the lists, after the parts of `behind` cores; returns how many it has.
static uint32_t pwsp_aicpu_init(pwsp_cores *cores, uint32_t index, uint32_t behind) {
    pwsp_aicpu *aicpu = &cores->aicpus[index];
    uint32_t count = 0, *lists = cores->lists + 5 * behind;
    for (uint32_t core = 0; core < cores->core_count; core++) {
        count += pwsp_cores_owner(cores, core) == index;
    }
    aicpu->all = cores;
    aicpu->index = index;
    aicpu->picks = cores->picks + behind;
    aicpu->cores = lists;
    aicpu->free_cores[0] = lists + count;
    aicpu->free_cores[1] = lists + 2 * count;
    aicpu->busy_cores = lists + 3 * count;
    aicpu->waiting_cores = lists + 4 * count;
    pwsp_sleeper_init(&aicpu->own);
    aicpu->sleeper = cores->desc.is_host && index == 0 ? &cores->host : &aicpu->own;
    return count;
}

static void pwsp_core_init(pwsp_cores *cores, uint32_t index) {
    pwsp_core *core = &cores->cores[index];
    core->index = index;
    core->unit = index < cores->desc.vector_count ? PTOWSP_UNIT_VECTOR : PTOWSP_UNIT_CUBE;
    core->aicpu = &cores->aicpus[pwsp_cores_owner(cores, index)];
    core->aicpu->cores[core->aicpu->core_count++] = index;
    core->aicpu->free_cores[core->unit][core->aicpu->free_count[core->unit]++] = index;
    pwsp_sleeper_init(&core->own);
    core->sleeper = &core->own;
}

PWSP_INTERNAL bool pwsp_cores_init(pwsp_cores *cores, const pwsp_memory *memory,
                                   const pwsp_cores_desc *desc) {
    PTOWSP_ASSERT(desc->aicpu_count > 0 && desc->aicpu_count <= 32);
    cores->desc = *desc;
    cores->memory = *memory;
    cores->core_count = desc->vector_count + desc->cube_count;
    cores->block_count = pwsp_block_count(desc->vector_count, desc->cube_count);
    pwsp_sleeper_init(&cores->host);
    pwsp_mutex_init(&cores->mutex);
    pwsp_mutex_init(&cores->host_act);
    const pwsp_pool_info units[] = {{"", 0, desc->vector_count, 0},
                                    {"", desc->vector_count, desc->cube_count, 0}};
    bool is_good = pwsp_ready_pool_init(&cores->pool, memory, units, 2, true);
    PWSP_CORES_ARRAYS(PWSP_ARRAY_ALLOC)
    for (uint32_t i = 0, behind = 0; is_good && i < desc->aicpu_count; i++) {
        behind += pwsp_aicpu_init(cores, i, behind);
    }
    for (uint32_t i = 0; is_good && i < cores->core_count; i++) {
        pwsp_core_init(cores, i);
    }
    return is_good;
}

PWSP_INTERNAL void pwsp_cores_free(pwsp_cores *cores) {
    const pwsp_memory *memory = &cores->memory;
    for (uint32_t i = 0; cores->aicpus && i < cores->desc.aicpu_count; i++) {
        pwsp_sleeper_destroy(&cores->aicpus[i].own);
    }
    for (uint32_t i = 0; cores->cores && i < cores->core_count; i++) {
        pwsp_sleeper_destroy(&cores->cores[i].own);
    }
    if (pwsp_sleeper_is_here(&cores->host)) {  // else they may be locked
        pwsp_mutex_destroy(&cores->mutex);
        pwsp_mutex_destroy(&cores->host_act);
    }
    pwsp_sleeper_destroy(&cores->host);
    pwsp_ready_pool_free(&cores->pool, memory);
    PWSP_CORES_ARRAYS(PWSP_ARRAY_FREE)
}

// -- queues, under the lock -----------------------------------------------------------------------

PWSP_INTERNAL void pwsp_cores_prepare(pwsp_cores *cores, const pwsp_core_job *job) {
    PTOWSP_ASSERT(!cores->is_open);
    cores->job = *job;
    cores->links.first = job->links;
    cores->links.stride = sizeof *job->links;
    pwsp_ready_pool_begin(&cores->pool, job->is_stealing);
    memset(cores->queue_counts, 0, (cores->core_count + 2) * sizeof *cores->queue_counts);
    cores->queued_count[0] = cores->queued_count[1] = 0;
    for (uint32_t i = 0; i < cores->desc.aicpu_count; i++) {
        pwsp_ready_init(&cores->aicpus[i].ready);
    }
    pwsp_store_relaxed(&cores->is_over, 0u);
}

// Adds to the count of a queue, and to the count of entries that any core of a unit takes if entries of the
// queue are among them. Returns whether they are.
static bool pwsp_cores_count(pwsp_cores *cores, uint32_t queue, uint32_t added) {
    const bool is_of_unit = queue >= cores->core_count;
    const uint32_t unit = is_of_unit ? queue - cores->core_count : cores->cores[queue].unit;
    uint32_t *counts[] = {&cores->queue_counts[queue], &cores->queued_count[unit]};
    const bool is_for_all = is_of_unit || cores->job.is_stealing;
    for (uint32_t i = 0; i <= is_for_all; i++) {
        pwsp_store_seq_cst(counts[i], pwsp_load_relaxed(counts[i]) + added);
    }
    return is_for_all;
}

PWSP_INTERNAL void pwsp_cores_enqueue(pwsp_cores *cores, uint32_t entry, uint32_t *owners) {
    const pwsp_need need = cores->job.need_of(cores->job.user, entry);
    const uint32_t unit = (uint32_t)pwsp_unit_lane(need.unit);
    const uint32_t queue =
        need.home != PWSP_CORES_NONE ? need.home : pwsp_ready_pool_common(&cores->pool, unit);
    pwsp_ready_link *link = pwsp_ready_at(cores->links, entry);
    link->key = ~need.rank;
    link->number = need.number;
    pwsp_ready_pool_put(&cores->pool, cores->links, queue, entry);
    if (!pwsp_cores_count(cores, queue, 1)) {
        *owners |= UINT32_C(1) << cores->cores[queue].aicpu->index;
    }
}

static uint32_t pwsp_cores_best(const pwsp_cores *cores, const pwsp_core *core) {
    return pwsp_ready_pool_best(&cores->pool, cores->links, core->index, cores->job.may_begin,
                                cores->job.user);
}

PWSP_INTERNAL bool pwsp_cores_has_entry(pwsp_cores *cores, const pwsp_core *core) {
    bool has_some = pwsp_load_seq_cst(&cores->queued_count[core->unit]) > 0 ||
                    pwsp_load_seq_cst(&cores->queue_counts[core->index]) > 0;
    if (has_some && cores->job.may_begin) {  // if one of these may
        pwsp_mutex_lock(&cores->mutex);
        has_some = pwsp_cores_best(cores, core) != PWSP_READY_NONE;
        pwsp_mutex_unlock(&cores->mutex);
    }
    return has_some;
}

PWSP_INTERNAL bool pwsp_cores_take(pwsp_cores *cores, const pwsp_core *core, pwsp_turn *out_turn) {
    const pwsp_core_job *job = &cores->job;
    const uint32_t queue = pwsp_cores_best(cores, core);
    if (queue == PWSP_READY_NONE) {
        return false;
    }
    out_turn->core = core->index;
    out_turn->entry = pwsp_ready_first(&cores->pool.queues[queue], cores->links);
    out_turn->part = 0;
    if (!job->take || !job->take(job->user, out_turn->entry, &out_turn->part)) {
        pwsp_ready_pool_take(&cores->pool, cores->links, queue);
        pwsp_cores_count(cores, queue, UINT32_MAX);  // one less
    }
    return true;
}

// -- waking ---------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_cores_wake_all(pwsp_cores *cores) {
    for (uint32_t i = 0; i < cores->desc.aicpu_count; i++) {
        pwsp_sleeper_wake(cores->aicpus[i].sleeper, PWSP_SLEEPER_ALL);
    }
}

PWSP_INTERNAL void pwsp_cores_wake(pwsp_cores *cores, uint32_t owners, uint32_t from) {
    if (PWSP_UNLIKELY(pwsp_load_seq_cst(&cores->lost_count) > 0)) {
        pwsp_cores_wake_all(cores);
        return;
    }
    uint32_t aicpu_count = cores->desc.aicpu_count;
    for (uint32_t i = 0; i < aicpu_count && owners; i++) {
        if (owners & UINT32_C(1) << i) {
            pwsp_sleeper_wake(cores->aicpus[i].sleeper, PWSP_AWAIT_ANY);
        }
    }
    for (uint32_t unit = 0; unit < 2; unit++) {
        uint32_t count = pwsp_load_seq_cst(&cores->queued_count[unit]);
        for (uint32_t i = 0; count > 0 && i < aicpu_count; i++) {
            pwsp_aicpu *aicpu = &cores->aicpus[(from + i) % aicpu_count];
            count -= pwsp_sleeper_wake(aicpu->sleeper, PWSP_AWAIT_VECTOR << unit);
        }
    }
}

// -- the host -------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_cores_ready(pwsp_cores *cores, uint32_t by, uint32_t entry) {
    if (by != PWSP_CORES_NONE) {
        pwsp_ready_append(&cores->aicpus[by].ready, cores->links, entry);
        return;
    }
    uint32_t owners = 0;
    pwsp_mutex_lock(&cores->mutex);
    pwsp_cores_enqueue(cores, entry, &owners);
    bool is_open = cores->is_open;
    pwsp_mutex_unlock(&cores->mutex);
    if (is_open) {
        pwsp_cores_wake(cores, owners, 0);
    }
}

PWSP_INTERNAL bool pwsp_cores_act(pwsp_cores *cores) {
    if (!cores->desc.is_host || cores->aicpus[0].core_count == 0) {
        return false;
    }
    pwsp_mutex_lock(&cores->host_act);
    bool has_some = pwsp_aicpu_round(&cores->aicpus[0]);
    pwsp_mutex_unlock(&cores->host_act);
    return has_some;
}

PWSP_INTERNAL void pwsp_cores_await(pwsp_cores *cores, const uint32_t *word, uint32_t seen) {
    for (uint32_t round = 0; pwsp_load_seq_cst(word) == seen;) {
        if (pwsp_cores_act(cores)) {
            round = 0;
        } else if (cores->desc.is_polled) {
            pwsp_thread_yield();
        } else if (pwsp_spin(&round, cores->desc.spin_count, 0)) {
            continue;
        } else if (cores->desc.is_host && cores->aicpus[0].core_count > 0) {
            pwsp_aicpu_sleep(&cores->aicpus[0], PWSP_AWAIT_DONE, word, seen);
        } else {
            pwsp_sleeper_begin(&cores->host, PWSP_AWAIT_ANY | PWSP_AWAIT_DONE);
            pwsp_sleeper_end(&cores->host, pwsp_load_seq_cst(word) != seen, 0);
        }
    }
}

PWSP_INTERNAL void pwsp_cores_finish(pwsp_cores *cores) {
    pwsp_store_seq_cst(&cores->is_over, 1u);
    pwsp_cores_wake_all(cores);
    pwsp_sleeper_wake(&cores->host, PWSP_SLEEPER_ALL);
}

// -- cores made of threads ------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_core_open(pwsp_core *core) {
    pwsp_line *line = core->line;
    while (!pwsp_core_may_begin(line) && !pwsp_core_must_quit(line)) {
        pwsp_sleeper_begin(core->sleeper, PWSP_AWAIT_ANY);
        pwsp_sleeper_end(core->sleeper, pwsp_core_may_begin(line) || pwsp_core_must_quit(line), 0);
    }
    if (pwsp_core_must_quit(line)) {
        return false;
    }
    pwsp_core_begin(line, core->index);
    pwsp_core_wake_aicpu(core);
    return true;
}

PWSP_INTERNAL uint64_t pwsp_core_next(pwsp_core *core) {
    const pwsp_line *line = core->line;
    core->patience.round = 0;
    for (;;) {
        uint64_t task = pwsp_core_poll(line);
        if (task || pwsp_core_must_quit(line)) {
            return task;
        }
        if (!pwsp_cores_spin(core->aicpu->all, &core->patience)) {
            pwsp_sleeper_begin(core->sleeper, PWSP_AWAIT_ANY);
            pwsp_sleeper_end(core->sleeper, pwsp_core_poll(line) || pwsp_core_must_quit(line), 0);
        }
    }
}

// -- waiting --------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_cores_spin(const pwsp_cores *cores, pwsp_patience *patience) {
    const pwsp_cores_desc *desc = &cores->desc;
    bool is_hasty = patience->hurry > 0;
    bool yields = !is_hasty && patience->round >= desc->spin_count;
    uint64_t begin = yields ? ptowsp_clock_ns() : 0;
    bool goes_on = pwsp_spin(&patience->round, desc->spin_count, is_hasty ? 0 : desc->yield_count);
    if (goes_on && yields) {
        pwsp_patience_yielded(patience, ptowsp_clock_ns() - begin);
    }
    patience->hurry -= is_hasty && !goes_on;
    return goes_on;
}
