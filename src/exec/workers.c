// The workers: lanes that run what is ready.
//
// Each lane has a queue of ready tasks, oldest first, linked through their entries. Lane 0 walks;
// it hands what it finds ready to the lanes that have come, in turn, and runs tasks itself when it
// has to wait. The first task that another lane makes ready is what it does next, without any
// queue; further ones it adds to its own. A lane without tasks takes the oldest of another one;
// where dispatch chooses the lane, only from lanes that have not come (with your executor, or when
// threads wake late).
//
// With own threads lane 0 is the calling thread. An executor may run lanes in any order, one after
// another even: so with one, lanes are numbered as they come, and the first one walks. It needs no
// other.
//
// Sleep. A lane that finds nothing spins for some 20 us and then sleeps; it counts itself in
// `sleeper_count` and then looks at the queues again. Who adds a task changes the count of its
// queue and then reads sleeper_count. All are sequentially consistent, so either the sleeper sees
// the task or the other one sees the sleeper. In the same way the walking lane raises
// `is_walker_asleep` and looks at done_count again, which others change before they look at the
// flag; as they add tasks before that, it need not be woken for these.

#include "workers.h"

#include "../base/os.h"

#define PWSP_WORKERS_NONE UINT32_MAX

#define PWSP_WORKERS_SPIN_LONG  1000u
#define PWSP_WORKERS_SPIN_SHORT 50u

typedef struct pwsp_workers_lane {
    pwsp_mutex mutex;      // protects the queue
    uint32_t first, last;  // places of entries
    uint32_t count;        // atomic; changed under the lock
    uint32_t has_come;     // atomic
    uint32_t kept;         // what the lane does next, or PWSP_WORKERS_NONE
    char padding[PWSP_FALSE_SHARING];
} pwsp_workers_lane;

struct pwsp_workers {
    pwsp_memory memory;
    pwsp_reorder *reorder;  // of this run
    pwsp_workers_issue_fn issue;
    void *issue_user;
    pwsp_workers_lane *lanes;
    uint32_t lane_capacity;
    uint32_t lane_count;
    uint32_t spin_count;
    bool is_homed;
    bool is_numbered;  // as they come
    uint32_t next;     // lane that gets what the walk finds ready
    bool is_good;
    pwsp_mutex mutex;  // protects sleep
    pwsp_cond wake, walker_wake;
    char padding[PWSP_FALSE_SHARING];
    uint32_t come_count;        // atomic
    uint32_t is_over;           // atomic
    uint32_t sleeper_count;     // atomic
    uint32_t is_walker_asleep;  // atomic
};

// -- queues ---------------------------------------------------------------------------------------

static void pwsp_workers_wake(pwsp_workers *workers, bool all) {
    if (pwsp_load_seq_cst(&workers->sleeper_count)) {
        pwsp_mutex_lock(&workers->mutex);
        if (all) {
            pwsp_cond_broadcast(&workers->wake);
        } else {
            pwsp_cond_signal(&workers->wake);
        }
        pwsp_mutex_unlock(&workers->mutex);
    }
}

static void pwsp_workers_push(pwsp_workers *workers, uint32_t index, uint32_t place) {
    pwsp_workers_lane *lane = &workers->lanes[index];
    pwsp_reorder *reorder = workers->reorder;
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
    pwsp_workers_wake(workers, workers->is_homed);
}

// The oldest of a queue, or PWSP_WORKERS_NONE.
static uint32_t pwsp_workers_pop(pwsp_workers *workers, pwsp_workers_lane *lane) {
    if (!pwsp_load_relaxed(&lane->count)) {
        return PWSP_WORKERS_NONE;
    }
    pwsp_mutex_lock(&lane->mutex);
    uint32_t place = lane->first;
    if (place != PWSP_WORKERS_NONE) {
        lane->first = pwsp_reorder_at(workers->reorder, place)->next;
        pwsp_fetch_sub_seq_cst(&lane->count, 1u);
    }
    pwsp_mutex_unlock(&lane->mutex);
    return place;
}

// May a lane take what is in the queue of another one?
static bool pwsp_workers_may_take(const pwsp_workers *workers, uint32_t index, uint32_t other) {
    return index == other || !workers->is_homed ||
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

#if PWSP_HAS_THREADS
static bool pwsp_workers_has_work(const pwsp_workers *workers, uint32_t index) {
    for (uint32_t i = 0; i < workers->lane_count; i++) {
        if (pwsp_load_seq_cst(&workers->lanes[i].count) &&
            pwsp_workers_may_take(workers, index, i)) {
            return true;
        }
    }
    return false;
}
#endif

// -- the executor ---------------------------------------------------------------------------------

// The lane that is next to get what the walk finds ready: one that has come.
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
    uint32_t home = pwsp_reorder_at(workers->reorder, place)->home;
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
    if (pwsp_load_seq_cst(&workers->is_walker_asleep)) {
        pwsp_mutex_lock(&workers->mutex);
        pwsp_cond_signal(&workers->walker_wake);
        pwsp_mutex_unlock(&workers->mutex);
    }
    return lane->kept;
}

static void pwsp_workers_help(void *user, uint32_t ticket) {
    pwsp_workers *workers = (pwsp_workers *)user;
    const pwsp_reorder *reorder = workers->reorder;
    uint32_t place = pwsp_workers_take(workers, 0);
    if (place != PWSP_WORKERS_NONE) {
        uint32_t next = pwsp_workers_run_task(workers, 0, place);
        if (next != PWSP_WORKERS_NONE) {
            pwsp_workers_push(workers, 0, next);
        }
        return;
    }
    for (uint32_t i = 0; i < workers->spin_count; i++) {
        if (pwsp_reorder_ticket(reorder) != ticket) {
            return;
        }
        pwsp_pause();
    }
#if PWSP_HAS_THREADS
    pwsp_mutex_lock(&workers->mutex);
    pwsp_store_seq_cst(&workers->is_walker_asleep, 1u);
    while (pwsp_reorder_ticket(reorder) == ticket) {
        pwsp_cond_wait(&workers->walker_wake, &workers->mutex);
    }
    pwsp_store_seq_cst(&workers->is_walker_asleep, 0u);
    pwsp_mutex_unlock(&workers->mutex);
#else
    pwsp_thread_yield();
#endif
}

// -- lanes ----------------------------------------------------------------------------------------

static void pwsp_workers_sleep(pwsp_workers *workers, uint32_t index) {
#if PWSP_HAS_THREADS
    pwsp_mutex_lock(&workers->mutex);
    pwsp_fetch_add_seq_cst(&workers->sleeper_count, 1u);
    if (!pwsp_load_seq_cst(&workers->is_over) && !pwsp_workers_has_work(workers, index)) {
        pwsp_cond_wait(&workers->wake, &workers->mutex);
    }
    pwsp_fetch_sub_seq_cst(&workers->sleeper_count, 1u);
    pwsp_mutex_unlock(&workers->mutex);
#else
    (void)workers, (void)index;
    pwsp_thread_yield();
#endif
}

static void pwsp_workers_work(pwsp_workers *workers, uint32_t index) {
    uint32_t idle = 0, next = PWSP_WORKERS_NONE;
    pwsp_store_seq_cst(&workers->lanes[index].has_come, 1u);
    while (!pwsp_load_seq_cst(&workers->is_over)) {
        uint32_t place = next != PWSP_WORKERS_NONE ? next : pwsp_workers_take(workers, index);
        if (place != PWSP_WORKERS_NONE) {
            next = pwsp_workers_run_task(workers, index, place);
            idle = 0;
        } else if (idle < workers->spin_count) {
            idle++;
            pwsp_pause();
        } else {
            pwsp_workers_sleep(workers, index);
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
    workers->is_good = workers->issue(workers->issue_user, &executor);
    pwsp_store_seq_cst(&workers->is_over, 1u);
    pwsp_workers_wake(workers, true);
}

PWSP_INTERNAL bool pwsp_workers_run(pwsp_workers *workers, ptowsp_context *context,
                                    uint32_t lane_count, pwsp_reorder *reorder, bool is_homed,
                                    pwsp_workers_issue_fn issue, void *user, bool *out_is_kept) {
    PTOWSP_ASSERT(lane_count > 0 && lane_count <= workers->lane_capacity);
    workers->reorder = reorder;
    workers->issue = issue;
    workers->issue_user = user;
    workers->lane_count = lane_count;
    workers->spin_count =
        lane_count > pwsp_cpu_count() ? PWSP_WORKERS_SPIN_SHORT : PWSP_WORKERS_SPIN_LONG;
    workers->is_homed = is_homed;
    workers->is_numbered = pwsp_pool_is_user(context->pool);
    workers->is_good = true;
    workers->next = 0;
    workers->come_count = 0;
    workers->is_over = 0;
    workers->sleeper_count = 0;
    workers->is_walker_asleep = 0;
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
        pwsp_mutex_init(&workers->mutex);
        pwsp_cond_init(&workers->wake);
        pwsp_cond_init(&workers->walker_wake);
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
    pwsp_cond_destroy(&workers->walker_wake);
    pwsp_cond_destroy(&workers->wake);
    pwsp_mutex_destroy(&workers->mutex);
    pwsp_memory_free(&memory, workers, sizeof(pwsp_workers));
}

PWSP_INTERNAL size_t pwsp_workers_bytes(const pwsp_workers *workers) {
    return workers
               ? sizeof(pwsp_workers) + (size_t)workers->lane_capacity * sizeof(pwsp_workers_lane)
               : 0;
}
