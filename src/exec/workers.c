// The workers: lanes that run ready tasks.
//
// Each lane has a queue of ready tasks, oldest first, linked through their entries. Lane 0 walks
// the program. It hands tasks that it finds ready to the lanes that have arrived, in turn, and runs
// tasks itself when it has to wait. A lane runs the first task that it makes ready next, without
// any queue; it adds further ones to its own queue. A lane without tasks takes the oldest task of
// another lane. Where dispatch chooses the lane, it takes only from lanes that have not arrived
// (with your executor, or when threads wake late).
//
// With own threads lane 0 is the calling thread. An executor may run lanes in any order, even one
// after another. So with an executor, lanes are numbered as they arrive, and the first one walks.
// It needs no other lane.
//
// Links. A task that communicates is never in a queue, and there is one at most, as each waits for
// the one before. A lane that looks for work, or is between two tasks, moves it on (`is_moving` keeps
// others away: acquire, release); none waits for it. While there is one, lanes without work do not
// sleep but nap, because nobody tells when a message has come.
//
// Sleep. A lane that finds nothing spins for some 20 us and then sleeps (see sleeper.h), until a
// task is added: that changes the count of a queue. The walking lane sleeps until done_count has
// changed. Other lanes add tasks before that change, so these additions need not wake it.

#include "workers.h"

#include "../base/sleeper.h"

#define PWSP_WORKERS_NONE   UINT32_MAX
#define PWSP_WORKERS_NAP_NS 50000

typedef struct pwsp_workers_lane {
    pwsp_mutex mutex;      // protects the queue
    uint32_t first, last;  // places of entries
    uint32_t count;        // atomic; changed under the lock
    uint32_t has_come;     // atomic
    uint32_t kept;         // the lane's next task, or PWSP_WORKERS_NONE
    char padding[PWSP_FALSE_SHARING];
} pwsp_workers_lane;

struct pwsp_workers {
    pwsp_memory memory;
    pwsp_reorder *reorder;  // of this run
    pwsp_workers_job job;
    pwsp_workers_lane *lanes;
    uint32_t lane_capacity;
    uint32_t lane_count;
    uint32_t spin_count;
    bool is_numbered;  // in order of arrival
    uint32_t next;     // lane that gets the walk's next ready task
    bool is_good;
    pwsp_sleepers sleepers;
    pwsp_sleeper walker;
    char padding[PWSP_FALSE_SHARING];
    uint32_t come_count;  // atomic
    uint32_t is_over;     // atomic
    uint32_t link;        // atomic: the place of the task that communicates + 1, or 0
    uint32_t is_moving;   // atomic: a lane moves it on
};

// -- queues ---------------------------------------------------------------------------------------

static void pwsp_workers_push(pwsp_workers *workers, uint32_t index, uint32_t place) {
    pwsp_workers_lane *lane = &workers->lanes[index];
    pwsp_reorder *reorder = workers->reorder;
    PTOWSP_ASSERT(index < workers->lane_count && place <= reorder->place_mask);
    pwsp_reorder_at(reorder, place)->next = PWSP_WORKERS_NONE;
    pwsp_mutex_lock(&lane->mutex);
    if (lane->first == PWSP_WORKERS_NONE) {
        lane->first = place;
    } else {
        pwsp_reorder_at(reorder, lane->last)->next = place;
    }
    lane->last = place;
    pwsp_fetch_add_seq_cst(&lane->count, 1u);
    pwsp_mutex_unlock(&lane->mutex);
    pwsp_sleepers_wake(&workers->sleepers, workers->job.is_homed);
}

// The oldest of a queue, or PWSP_WORKERS_NONE.
static uint32_t pwsp_workers_pop(pwsp_workers *workers, pwsp_workers_lane *lane) {
    if (!pwsp_load_relaxed(&lane->count)) {
        return PWSP_WORKERS_NONE;
    }
    pwsp_mutex_lock(&lane->mutex);
    uint32_t place = lane->first;
    PTOWSP_ASSERT((place != PWSP_WORKERS_NONE) == (pwsp_load_relaxed(&lane->count) > 0));
    if (place != PWSP_WORKERS_NONE) {
        lane->first = pwsp_reorder_at(workers->reorder, place)->next;
        pwsp_fetch_sub_seq_cst(&lane->count, 1u);
    }
    pwsp_mutex_unlock(&lane->mutex);
    return place;
}

// May a lane take tasks from another lane's queue?
static bool pwsp_workers_may_take(const pwsp_workers *workers, uint32_t index, uint32_t other) {
    return index == other || !workers->job.is_homed ||
           !pwsp_load_seq_cst(&workers->lanes[other].has_come);
}

static uint32_t pwsp_workers_take(pwsp_workers *workers, uint32_t index) {
    for (uint32_t i = 0; i < workers->lane_count; i++) {
        uint32_t other =
            index + i < workers->lane_count ? index + i : index + i - workers->lane_count;
        if (pwsp_workers_may_take(workers, index, other)) {
            uint32_t place = pwsp_workers_pop(workers, &workers->lanes[other]);
            if (place != PWSP_WORKERS_NONE) {
                return place;
            }
        }
    }
    return PWSP_WORKERS_NONE;
}

static bool pwsp_workers_has_work(const pwsp_workers *workers, uint32_t index) {
    for (uint32_t i = 0; i < workers->lane_count; i++) {
        if (pwsp_load_seq_cst(&workers->lanes[i].count) &&
            pwsp_workers_may_take(workers, index, i)) {
            return true;
        }
    }
    return false;
}

// -- the executor ---------------------------------------------------------------------------------

// The lane that gets the walk's next ready task: one that has arrived.
static uint32_t pwsp_workers_next(pwsp_workers *workers) {
    uint32_t lane = workers->next;
    do {
        lane = lane + 1 == workers->lane_count ? 0 : lane + 1;
    } while (lane != 0 && !pwsp_load_relaxed(&workers->lanes[lane].has_come));
    workers->next = lane;
    return lane;
}

static void pwsp_workers_ready(void *user, uint32_t by, uint32_t place) {
    pwsp_workers *workers = (pwsp_workers *)user;
    const pwsp_entry *entry = pwsp_reorder_at(workers->reorder, place);
    uint32_t home = entry->home;
    // One that does not run, as there was no memory to have it wait, is only passed over: another may be
    // under way.
    if (entry->kind == PWSP_ENTRY_TASK && entry->unit == PTOWSP_UNIT_LINK &&
        !pwsp_load_relaxed(&entry->fan.is_poisoned)) {
        PTOWSP_ASSERT(workers->job.move_link && !pwsp_load_relaxed(&workers->link));
        pwsp_store_seq_cst(&workers->link, place + 1);
        pwsp_sleepers_wake(&workers->sleepers, false);
        return;
    }
    if (home == PWSP_NO_HOME) {
        home = by == PWSP_BY_WALK ? pwsp_workers_next(workers) : by;
    }
    if (home == by && workers->lanes[by].kept == PWSP_WORKERS_NONE) {
        workers->lanes[by].kept = place;
    } else {
        pwsp_workers_push(workers, home, place);
    }
}

// Runs a task; returns the one that it has made ready, or PWSP_WORKERS_NONE.
static uint32_t pwsp_workers_run_task(pwsp_workers *workers, uint32_t index, uint32_t place) {
    pwsp_reorder *reorder = workers->reorder;
    pwsp_workers_lane *lane = &workers->lanes[index];
    lane->kept = PWSP_WORKERS_NONE;
    pwsp_reorder_run(reorder, place, index);
    pwsp_reorder_done(reorder, place, index);
    pwsp_sleeper_wake(&workers->walker, PWSP_SLEEPER_ALL);
    return lane->kept;
}

// Moves the task that communicates on, if there is one and no other lane does.
static void pwsp_workers_move_link(pwsp_workers *workers, uint32_t index) {
    if (!pwsp_load_relaxed(&workers->link) || pwsp_exchange_acquire(&workers->is_moving, 1u)) {
        return;
    }
    const uint32_t link = pwsp_load_seq_cst(&workers->link);
    pwsp_reorder *reorder = workers->reorder;
    ptowsp_cycles result = ptowsp_task_fail(PTOWSP_SKIPPED);
    bool is_done = link != 0;
    if (link && !pwsp_load_relaxed(&pwsp_reorder_at(reorder, link - 1)->fan.is_poisoned)) {
        is_done = workers->job.move_link(workers->job.link_user, link - 1, &result);
    }
    if (is_done) {
        pwsp_store_seq_cst(&workers->link, 0u);  // before the next one is ready
    }
    pwsp_store_release(&workers->is_moving, 0u);
    if (is_done) {
        pwsp_workers_lane *lane = &workers->lanes[index];
        lane->kept = PWSP_WORKERS_NONE;
        pwsp_reorder_set_result(reorder, link - 1, result);
        pwsp_reorder_done(reorder, link - 1, index);
        pwsp_sleeper_wake(&workers->walker, PWSP_SLEEPER_ALL);
        if (lane->kept != PWSP_WORKERS_NONE) {
            pwsp_workers_push(workers, index, lane->kept);
        }
    }
}

static void pwsp_workers_help(void *user, uint32_t ticket) {
    pwsp_workers *workers = (pwsp_workers *)user;
    const pwsp_reorder *reorder = workers->reorder;
    pwsp_workers_move_link(workers, 0);
    uint32_t place = pwsp_workers_take(workers, 0);
    if (place != PWSP_WORKERS_NONE) {
        uint32_t next = pwsp_workers_run_task(workers, 0, place);
        if (next != PWSP_WORKERS_NONE) {
            pwsp_workers_push(workers, 0, next);
        }
        return;
    }
    uint32_t round = 0;
    do {
        pwsp_workers_move_link(workers, 0);
        if (pwsp_reorder_ticket(reorder) != ticket) {
            return;
        }
    } while (pwsp_spin(&round, workers->spin_count, 0));
    if (pwsp_load_seq_cst(&workers->link)) {
        pwsp_nap(PWSP_WORKERS_NAP_NS);
        return;
    }
    pwsp_sleeper_begin(&workers->walker, PWSP_SLEEPER_ALL);
    pwsp_sleeper_end(&workers->walker, pwsp_reorder_ticket(reorder) != ticket, 0);
}

// -- lanes ----------------------------------------------------------------------------------------

static void pwsp_workers_sleep(pwsp_workers *workers, uint32_t index) {
    pwsp_sleepers_begin(&workers->sleepers);
    bool is_over = pwsp_load_seq_cst(&workers->is_over) != 0;
    bool has_link = pwsp_load_seq_cst(&workers->link) != 0;
    pwsp_sleepers_end(&workers->sleepers,
                      is_over || has_link || pwsp_workers_has_work(workers, index));
}

static void pwsp_workers_work(pwsp_workers *workers, uint32_t index) {
    uint32_t idle = 0, next = PWSP_WORKERS_NONE;
    pwsp_store_seq_cst(&workers->lanes[index].has_come, 1u);
    while (!pwsp_load_seq_cst(&workers->is_over)) {
        pwsp_workers_move_link(workers, index);
        uint32_t place = next != PWSP_WORKERS_NONE ? next : pwsp_workers_take(workers, index);
        if (place != PWSP_WORKERS_NONE) {
            next = pwsp_workers_run_task(workers, index, place);
            idle = 0;
        } else if (idle < workers->spin_count) {
            pwsp_spin(&idle, workers->spin_count, 0);
        } else if (pwsp_load_seq_cst(&workers->link)) {
            pwsp_nap(PWSP_WORKERS_NAP_NS);
        } else {
            pwsp_workers_sleep(workers, index);  // repeated until there is work
        }
    }
}

static void pwsp_workers_lane_main(void *user, uint32_t lane) {
    pwsp_workers *workers = (pwsp_workers *)user;
    uint32_t index = workers->is_numbered ? pwsp_fetch_add_seq_cst(&workers->come_count, 1u) : lane;
    if (index >= workers->lane_count) {
        return;
    }
    if (index > 0) {
        pwsp_workers_work(workers, index);
        return;
    }
    pwsp_executor executor = {pwsp_workers_ready, pwsp_workers_help, workers};
    workers->is_good = workers->job.issue(workers->job.issue_user, &executor);
    pwsp_store_seq_cst(&workers->is_over, 1u);
    pwsp_sleepers_wake(&workers->sleepers, true);
}

PWSP_INTERNAL bool pwsp_workers_run(pwsp_workers *workers, ptowsp_context *context,
                                    uint32_t lane_count, const pwsp_workers_job *job,
                                    bool *out_is_kept) {
    PTOWSP_ASSERT(lane_count > 0 && lane_count <= workers->lane_capacity);
    workers->reorder = job->reorder;
    workers->job = *job;
    workers->link = 0;
    workers->is_moving = 0;
    workers->lane_count = lane_count;
    workers->spin_count = pwsp_spin_count(lane_count);
    workers->is_numbered = pwsp_pool_is_user(context->pool);
    workers->is_good = true;
    workers->next = 0;
    workers->come_count = 0;
    workers->is_over = 0;
    for (uint32_t i = 0; i < lane_count; i++) {
        pwsp_workers_lane *lane = &workers->lanes[i];
        lane->first = PWSP_WORKERS_NONE;
        lane->count = 0;
        lane->kept = PWSP_WORKERS_NONE;
        lane->has_come = i == 0;
    }
    *out_is_kept = pwsp_pool_run(context->pool, pwsp_workers_lane_main, workers);
    return workers->is_good;
}

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL pwsp_workers *pwsp_workers_create(const pwsp_memory *memory) {
    pwsp_workers *workers = (pwsp_workers *)pwsp_memory_alloc(memory, sizeof(pwsp_workers));
    if (workers) {
        workers->memory = *memory;
        pwsp_sleepers_init(&workers->sleepers);
        pwsp_sleeper_init(&workers->walker);
    }
    return workers;
}

PWSP_INTERNAL bool pwsp_workers_reserve(pwsp_workers *workers, uint32_t lane_count) {
    if (lane_count <= workers->lane_capacity) {
        return true;
    }
    pwsp_workers_lane *lanes = (pwsp_workers_lane *)pwsp_memory_alloc(
        &workers->memory, lane_count * sizeof(pwsp_workers_lane));
    if (!lanes) {
        return false;
    }
    for (uint32_t i = 0; i < workers->lane_capacity; i++) {  // mutexes are not moved
        pwsp_mutex_destroy(&workers->lanes[i].mutex);
    }
    pwsp_memory_free(&workers->memory, workers->lanes,
                     (size_t)workers->lane_capacity * sizeof(pwsp_workers_lane));
    for (uint32_t i = 0; i < lane_count; i++) {
        pwsp_mutex_init(&lanes[i].mutex);
    }
    workers->lanes = lanes;
    workers->lane_capacity = lane_count;
    return true;
}

PWSP_INTERNAL void pwsp_workers_destroy(pwsp_workers *workers) {
    if (!workers) {
        return;
    }
    pwsp_memory memory = workers->memory;
    for (uint32_t i = 0; i < workers->lane_capacity; i++) {
        pwsp_mutex_destroy(&workers->lanes[i].mutex);
    }
    pwsp_memory_free(&memory, workers->lanes,
                     (size_t)workers->lane_capacity * sizeof(pwsp_workers_lane));
    pwsp_sleeper_destroy(&workers->walker);
    pwsp_sleepers_destroy(&workers->sleepers);
    pwsp_memory_free(&memory, workers, sizeof(pwsp_workers));
}

PWSP_INTERNAL size_t pwsp_workers_bytes(const pwsp_workers *workers) {
    return workers
               ? sizeof(pwsp_workers) + (size_t)workers->lane_capacity * sizeof(pwsp_workers_lane)
               : 0;
}
