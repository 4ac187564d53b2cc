// The crew: lanes that run what is ready.
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

#include "crew.h"

#include "../base/os.h"

#define PWSP_CREW_NONE UINT32_MAX

#define PWSP_CREW_SPIN_LONG  1000u
#define PWSP_CREW_SPIN_SHORT 50u

typedef struct pwsp_crew_lane {
    pwsp_mutex mutex;      // protects the queue
    uint32_t first, last;  // places of entries
    uint32_t count;        // atomic; changed under the lock
    uint32_t has_come;     // atomic
    uint32_t kept;         // what the lane does next, or PWSP_CREW_NONE
    char padding[PWSP_FALSE_SHARING];
} pwsp_crew_lane;

struct pwsp_crew {
    ptowsp_run *run;
    pwsp_memory memory;
    pwsp_crew_lane *lanes;
    uint32_t lane_capacity;
    uint32_t lane_count;  // of this walk
    uint32_t spin_count;
    bool is_homed;
    bool is_numbered;  // as they come
    uint32_t next;     // lane that gets what the walk finds ready
    ptowsp_status status;
    pwsp_mutex mutex;  // protects sleep
    pwsp_cond wake, walker_wake;
    char padding[PWSP_FALSE_SHARING];
    uint32_t come_count;        // atomic
    uint32_t is_over;           // atomic
    uint32_t sleeper_count;     // atomic
    uint32_t is_walker_asleep;  // atomic
};

// -- queues ---------------------------------------------------------------------------------------

static void pwsp_crew_wake(pwsp_crew *crew, bool all) {
    if (pwsp_load_seq_cst(&crew->sleeper_count)) {
        pwsp_mutex_lock(&crew->mutex);
        if (all) {
            pwsp_cond_broadcast(&crew->wake);
        } else {
            pwsp_cond_signal(&crew->wake);
        }
        pwsp_mutex_unlock(&crew->mutex);
    }
}

static void pwsp_crew_push(pwsp_crew *crew, uint32_t index, uint32_t place) {
    pwsp_crew_lane *lane = &crew->lanes[index];
    pwsp_reorder *reorder = &crew->run->issue->reorder;
    pwsp_reorder_at(reorder, place)->next = PWSP_CREW_NONE;
    pwsp_mutex_lock(&lane->mutex);
    if (lane->first == PWSP_CREW_NONE) {
        lane->first = place;
    } else {
        pwsp_reorder_at(reorder, lane->last)->next = place;
    }
    lane->last = place;
    pwsp_fetch_add_seq_cst(&lane->count, 1u);
    pwsp_mutex_unlock(&lane->mutex);
    pwsp_crew_wake(crew, crew->is_homed);
}

// The oldest of a queue, or PWSP_CREW_NONE.
static uint32_t pwsp_crew_pop(pwsp_crew *crew, pwsp_crew_lane *lane) {
    if (!pwsp_load_relaxed(&lane->count)) {
        return PWSP_CREW_NONE;
    }
    pwsp_mutex_lock(&lane->mutex);
    uint32_t place = lane->first;
    if (place != PWSP_CREW_NONE) {
        lane->first = pwsp_reorder_at(&crew->run->issue->reorder, place)->next;
        pwsp_fetch_sub_seq_cst(&lane->count, 1u);
    }
    pwsp_mutex_unlock(&lane->mutex);
    return place;
}

// May a lane take what is in the queue of another one?
static bool pwsp_crew_may_take(const pwsp_crew *crew, uint32_t index, uint32_t other) {
    return index == other || !crew->is_homed || !pwsp_load_seq_cst(&crew->lanes[other].has_come);
}

static uint32_t pwsp_crew_take(pwsp_crew *crew, uint32_t index) {
    for (uint32_t i = 0; i < crew->lane_count; i++) {
        uint32_t other = index + i < crew->lane_count ? index + i : index + i - crew->lane_count;
        if (pwsp_crew_may_take(crew, index, other)) {
            uint32_t place = pwsp_crew_pop(crew, &crew->lanes[other]);
            if (place != PWSP_CREW_NONE) {
                return place;
            }
        }
    }
    return PWSP_CREW_NONE;
}

#if PWSP_HAS_THREADS
static bool pwsp_crew_has_work(const pwsp_crew *crew, uint32_t index) {
    for (uint32_t i = 0; i < crew->lane_count; i++) {
        if (pwsp_load_seq_cst(&crew->lanes[i].count) && pwsp_crew_may_take(crew, index, i)) {
            return true;
        }
    }
    return false;
}
#endif

// -- the executor ---------------------------------------------------------------------------------

// The lane that is next to get what the walk finds ready: one that has come.
static uint32_t pwsp_crew_next(pwsp_crew *crew) {
    uint32_t lane = crew->next;
    do {
        lane = lane + 1 == crew->lane_count ? 0 : lane + 1;
    } while (lane != 0 && !pwsp_load_relaxed(&crew->lanes[lane].has_come));
    crew->next = lane;
    return lane;
}

static void pwsp_crew_ready(void *user, uint32_t by, uint32_t place) {
    pwsp_crew *crew = (pwsp_crew *)user;
    uint32_t home = pwsp_reorder_at(&crew->run->issue->reorder, place)->home;
    if (home == PWSP_NO_HOME) {
        home = by == PWSP_BY_WALK ? pwsp_crew_next(crew) : by;
    }
    if (home == by && crew->lanes[by].kept == PWSP_CREW_NONE) {
        crew->lanes[by].kept = place;
    } else {
        pwsp_crew_push(crew, home, place);
    }
}

// Runs a task; returns the one that it has made ready, or PWSP_CREW_NONE.
static uint32_t pwsp_crew_run(pwsp_crew *crew, uint32_t index, uint32_t place) {
    pwsp_reorder *reorder = &crew->run->issue->reorder;
    pwsp_crew_lane *lane = &crew->lanes[index];
    lane->kept = PWSP_CREW_NONE;
    pwsp_reorder_run(reorder, place, index);
    pwsp_reorder_done(reorder, place, index);
    if (pwsp_load_seq_cst(&crew->is_walker_asleep)) {
        pwsp_mutex_lock(&crew->mutex);
        pwsp_cond_signal(&crew->walker_wake);
        pwsp_mutex_unlock(&crew->mutex);
    }
    return lane->kept;
}

static void pwsp_crew_help(void *user, uint32_t ticket) {
    pwsp_crew *crew = (pwsp_crew *)user;
    const pwsp_reorder *reorder = &crew->run->issue->reorder;
    uint32_t place = pwsp_crew_take(crew, 0);
    if (place != PWSP_CREW_NONE) {
        uint32_t next = pwsp_crew_run(crew, 0, place);
        if (next != PWSP_CREW_NONE) {
            pwsp_crew_push(crew, 0, next);
        }
        return;
    }
    for (uint32_t i = 0; i < crew->spin_count; i++) {
        if (pwsp_reorder_ticket(reorder) != ticket) {
            return;
        }
        pwsp_pause();
    }
#if PWSP_HAS_THREADS
    pwsp_mutex_lock(&crew->mutex);
    pwsp_store_seq_cst(&crew->is_walker_asleep, 1u);
    while (pwsp_reorder_ticket(reorder) == ticket) {
        pwsp_cond_wait(&crew->walker_wake, &crew->mutex);
    }
    pwsp_store_seq_cst(&crew->is_walker_asleep, 0u);
    pwsp_mutex_unlock(&crew->mutex);
#else
    pwsp_thread_yield();
#endif
}

// -- lanes ----------------------------------------------------------------------------------------

static void pwsp_crew_sleep(pwsp_crew *crew, uint32_t index) {
#if PWSP_HAS_THREADS
    pwsp_mutex_lock(&crew->mutex);
    pwsp_fetch_add_seq_cst(&crew->sleeper_count, 1u);
    if (!pwsp_load_seq_cst(&crew->is_over) && !pwsp_crew_has_work(crew, index)) {
        pwsp_cond_wait(&crew->wake, &crew->mutex);
    }
    pwsp_fetch_sub_seq_cst(&crew->sleeper_count, 1u);
    pwsp_mutex_unlock(&crew->mutex);
#else
    (void)crew, (void)index;
    pwsp_thread_yield();
#endif
}

static void pwsp_crew_work(pwsp_crew *crew, uint32_t index) {
    uint32_t idle = 0, next = PWSP_CREW_NONE;
    pwsp_store_seq_cst(&crew->lanes[index].has_come, 1u);
    while (!pwsp_load_seq_cst(&crew->is_over)) {
        uint32_t place = next != PWSP_CREW_NONE ? next : pwsp_crew_take(crew, index);
        if (place != PWSP_CREW_NONE) {
            next = pwsp_crew_run(crew, index, place);
            idle = 0;
        } else if (idle < crew->spin_count) {
            idle++;
            pwsp_pause();
        } else {
            pwsp_crew_sleep(crew, index);
        }
    }
}

static void pwsp_crew_lane_main(void *user, uint32_t lane) {
    pwsp_crew *crew = (pwsp_crew *)user;
    uint32_t index = crew->is_numbered ? pwsp_fetch_add_seq_cst(&crew->come_count, 1u) : lane;
    if (index >= crew->lane_count) {
        return;
    }
    if (index > 0) {
        pwsp_crew_work(crew, index);
        return;
    }
    pwsp_executor executor = {pwsp_crew_ready, pwsp_crew_help, crew};
    crew->status = pwsp_issue_walk(crew->run->issue, &executor, crew->lane_count, 0);
    pwsp_store_seq_cst(&crew->is_over, 1u);
    pwsp_crew_wake(crew, true);
}

PWSP_INTERNAL ptowsp_status pwsp_crew_walk(pwsp_crew *crew, uint32_t lane_count) {
    ptowsp_context *context = crew->run->context;
    crew->lane_count = lane_count;
    crew->spin_count = lane_count > pwsp_cpu_count() ? PWSP_CREW_SPIN_SHORT : PWSP_CREW_SPIN_LONG;
    crew->is_homed = crew->run->issue->is_homed;
    crew->is_numbered = pwsp_pool_is_user(context->pool);
    crew->next = 0;
    crew->come_count = 0;
    crew->is_over = 0;
    crew->sleeper_count = 0;
    crew->is_walker_asleep = 0;
    for (uint32_t i = 0; i < lane_count; i++) {
        pwsp_crew_lane *lane = &crew->lanes[i];
        lane->first = PWSP_CREW_NONE;
        lane->count = 0;
        lane->kept = PWSP_CREW_NONE;
        lane->has_come = i == 0;
    }
    bool is_good = pwsp_pool_run(context->pool, pwsp_crew_lane_main, crew);
    if (!is_good && crew->status == PTOWSP_OK) {
        return pwsp_fail(context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                         "run: run_lanes did not call each lane once (the work is done)");
    }
    return crew->status;
}

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL pwsp_crew *pwsp_crew_create(ptowsp_run *run) {
    pwsp_crew *crew = (pwsp_crew *)pwsp_memory_alloc(&run->memory, sizeof(pwsp_crew));
    if (crew) {
        crew->run = run;
        crew->memory = run->memory;
        pwsp_mutex_init(&crew->mutex);
        pwsp_cond_init(&crew->wake);
        pwsp_cond_init(&crew->walker_wake);
    }
    return crew;
}

PWSP_INTERNAL bool pwsp_crew_reserve(pwsp_crew *crew, uint32_t lane_count) {
    if (lane_count <= crew->lane_capacity) {
        return true;
    }
    pwsp_crew_lane *lanes =
        (pwsp_crew_lane *)pwsp_memory_alloc(&crew->memory, lane_count * sizeof(pwsp_crew_lane));
    if (!lanes) {
        return false;
    }
    for (uint32_t i = 0; i < crew->lane_capacity; i++) {  // mutexes are not moved
        pwsp_mutex_destroy(&crew->lanes[i].mutex);
    }
    pwsp_memory_free(&crew->memory, crew->lanes,
                     (size_t)crew->lane_capacity * sizeof(pwsp_crew_lane));
    for (uint32_t i = 0; i < lane_count; i++) {
        pwsp_mutex_init(&lanes[i].mutex);
    }
    crew->lanes = lanes;
    crew->lane_capacity = lane_count;
    return true;
}

PWSP_INTERNAL void pwsp_crew_destroy(pwsp_crew *crew) {
    if (!crew) {
        return;
    }
    pwsp_memory memory = crew->memory;
    for (uint32_t i = 0; i < crew->lane_capacity; i++) {
        pwsp_mutex_destroy(&crew->lanes[i].mutex);
    }
    pwsp_memory_free(&memory, crew->lanes, (size_t)crew->lane_capacity * sizeof(pwsp_crew_lane));
    pwsp_cond_destroy(&crew->walker_wake);
    pwsp_cond_destroy(&crew->wake);
    pwsp_mutex_destroy(&crew->mutex);
    pwsp_memory_free(&memory, crew, sizeof(pwsp_crew));
}

PWSP_INTERNAL size_t pwsp_crew_bytes(const pwsp_crew *crew) {
    return crew ? sizeof(pwsp_crew) + (size_t)crew->lane_capacity * sizeof(pwsp_crew_lane) : 0;
}
