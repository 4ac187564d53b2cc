// A pool of lanes. Lane 0 is the caller; with own threads, lane i > 0 is a thread that sleeps
// between jobs. Jobs are short (a decode step has tens of microseconds), so a worker joins with one
// atomic operation and leaves with another. The caller does not wait for a worker that wakes too
// late.
//
// One 64-bit word, the gate, controls the protocol:
//
//      bits 63..32  generation: counts jobs, so that a worker joins each job once
//      bit  31      OPEN: a job may be joined
//      bit  30      STOP: workers end
//      bits 29..0   workers inside the job
//
//      caller                                worker
//      writes lane and job
//      gate: generation + 1, OPEN (1)        waits until OPEN and a new generation
//      works as lane 0                       CAS gate to inside + 1 (2); on success works
//      gate: OPEN off (3)                    gate: inside - 1 (4)
//      waits for inside = 0 (5)
//
// Invariant: lane and job are written only while the gate is closed and nobody is inside. (1)
// releases the caller's writes to (2); (4) releases the worker's to (5). Because (2) and
// (3) change the same word, a worker is either counted before the gate closes, or does not get in.
//
// Fork: a child has none of the workers, wherever they were. It makes new ones as it runs a job, and
// closes the gate before. It looks for that where this costs nothing beside: when workers sleep or
// the gate has not been left, and else in one of 64 jobs, which lane 0 does alone until then.
//
// Workers that the user lends: the same gate, but no threads. Worker 0 calls what uses the pool, and
// is lane 0 of all jobs; the others wait at the gate, as threads do, until STOP ends the session. All
// have to come once: the first one sets their number, each marks itself with the number of the session,
// and the last to leave begins the next one. So a worker that comes twice, or too early, is refused: a
// session cannot end without one that has a mark of it, and marks of others do not count.
//
// Sleeping: workers spin for a while, then sleep on `wake`; the caller spins, then sleeps on
// `done`; see sleeper.h. The gate is the state that is published there.

#include "pool.h"

#include "processors.h"
#include "sleeper.h"

#define PWSP_SPIN_LONG 1000
#if !defined(PWSP_SPIN_SHORT)  // tests/engine/explore.h has less
#define PWSP_SPIN_SHORT 50
#endif

#define PWSP_GATE_OPEN       (UINT64_C(1) << 31)
#define PWSP_GATE_STOP       (UINT64_C(1) << 30)
#define PWSP_GATE_INSIDE     (PWSP_GATE_STOP - 1)
#define PWSP_GATE_GENERATION (UINT64_C(1) << 32)

typedef struct pwsp_worker {
    struct pwsp_pool *pool;
    uint32_t lane;
    pwsp_thread thread;
} pwsp_worker;

struct pwsp_pool {
    pwsp_memory memory;
    size_t size;  // of this block, workers included
    ptowsp_threads threads;
    uint32_t lane_count;
    ptowsp_run_lanes_fn run_lanes;
    void *run_lanes_user;
    uint32_t spin_count;
    uint32_t processor_count;  // atomic; 0: not counted yet, as the system opens files for that

    ptowsp_lane_fn lane;  // the current job; see the invariant above
    void *job;

    pwsp_sleepers wake;  // workers sleep here
    pwsp_sleeper done;   // the caller sleeps here

    pwsp_worker *workers;  // [lane_count - 1], after this struct
    uint32_t started_count;

    uint32_t *lent_marks;   // [lane_count] atomic; after this struct, where the user lends workers
    uint32_t left_count;    // atomic; workers that have left the session
    ptowsp_status outcome;  // of the session; written before STOP
    PWSP_ALIGNAS(8) uint64_t session;  // atomic; its number << 32 | its workers, 0 before the first

    char padding[PWSP_FALSE_SHARING];
    PWSP_ALIGNAS(8) uint64_t gate;  // 32-bit machines align it to 4 only, too little for an atomic
    char padding_after[PWSP_FALSE_SHARING];
};

static bool pwsp_gate_is_news(uint64_t gate, uint64_t served) {
    return (gate & PWSP_GATE_STOP) ||
           ((gate & PWSP_GATE_OPEN) && gate / PWSP_GATE_GENERATION != served);
}

// Waits until there is a job of a generation other than `served`, or the end; returns the gate.
static uint64_t pwsp_worker_wait(pwsp_pool *pool, uint64_t served) {
    uint64_t gate = 0;
    for (uint32_t i = 0; i < pool->spin_count; i++) {
        gate = pwsp_load_relaxed(&pool->gate);
        if (pwsp_gate_is_news(gate, served)) {
            return gate;
        }
        pwsp_pause();
    }
    for (;;) {
        pwsp_sleepers_begin(&pool->wake);
        gate = pwsp_load_seq_cst(&pool->gate);
        bool is_news = pwsp_gate_is_news(gate, served);
        pwsp_sleepers_end(&pool->wake, is_news);
        if (is_news) {
            return gate;
        }
    }
}

// Joins jobs until STOP.
static void pwsp_worker_serve(pwsp_pool *pool, uint32_t lane) {
    uint64_t served = 0;
    for (;;) {
        uint64_t gate = pwsp_worker_wait(pool, served);
        if (gate & PWSP_GATE_STOP) {
            return;
        }
        if (!pwsp_cas_acquire(&pool->gate, &gate, gate + 1)) {  // (2), pairs with (1)
            continue;
        }
        served = gate / PWSP_GATE_GENERATION;
        pool->lane(pool->job, lane);
        gate = pwsp_fetch_sub_seq_cst(&pool->gate, UINT64_C(1)) - 1;  // (4), pairs with (5)
        if (!(gate & (PWSP_GATE_OPEN | PWSP_GATE_INSIDE))) {
            pwsp_sleeper_wake(&pool->done, PWSP_SLEEPER_ALL);
        }
    }
}

static void *pwsp_worker_main(void *arg) {
    pwsp_worker *worker = (pwsp_worker *)arg;
    pwsp_worker_serve(worker->pool, worker->lane);
    return NULL;
}

// Changes the gate while no worker is inside, and wakes the sleeping workers.
static void pwsp_gate_announce(pwsp_pool *pool, uint64_t gate) {
    pwsp_store_seq_cst(&pool->gate, gate);
    pwsp_sleepers_wake(&pool->wake, true);
}

static void pwsp_gate_close(pwsp_pool *pool) {
    uint64_t gate = pwsp_fetch_and_seq_cst(&pool->gate, ~PWSP_GATE_OPEN);  // (3)
    for (uint32_t i = 0; (gate & PWSP_GATE_INSIDE) && i < pool->spin_count; i++) {
        pwsp_pause();
        gate = pwsp_load_acquire(&pool->gate);  // (5), pairs with (4)
    }
    while (gate & PWSP_GATE_INSIDE) {
        pwsp_sleeper_begin(&pool->done, PWSP_SLEEPER_ALL);
        gate = pwsp_load_seq_cst(&pool->gate);  // (5)
        pwsp_sleeper_end(&pool->done, !(gate & PWSP_GATE_INSIDE), 0);
        gate = pwsp_load_seq_cst(&pool->gate);
    }
}

// Starts the workers; false when the system has no room for more.
static bool pwsp_pool_start(pwsp_pool *pool) {
    uint32_t count = pool->threads == PTOWSP_THREADS_OWN ? pool->lane_count - 1 : 0;
    pool->started_count = 0;
    pwsp_sleepers_init(&pool->wake);
    pwsp_sleeper_init(&pool->done);
    for (uint32_t i = 0; i < count; i++) {
        pwsp_worker *worker = &pool->workers[i];
        worker->pool = pool;
        worker->lane = i + 1;
        if (!pwsp_thread_start(&worker->thread, pwsp_worker_main, worker)) {
            return false;
        }
        pool->started_count++;
    }
    return true;
}

// In a child of fork(), starts the workers again. Lanes whose threads cannot start are left out.
static void pwsp_pool_notice_fork(pwsp_pool *pool) {
    uint64_t gate = pwsp_load_relaxed(&pool->gate);
    if (!pool->lent_marks &&  // those threads are the engine's: the child has none of them
        (pwsp_sleepers_are(&pool->wake) || (gate & (PWSP_GATE_OPEN | PWSP_GATE_INSIDE)) ||
         gate / PWSP_GATE_GENERATION % 64 == 0) &&
        !pwsp_sleeper_is_here(&pool->done)) {
        pwsp_store_relaxed(&pool->gate, gate - gate % PWSP_GATE_GENERATION);
        (void)pwsp_pool_start(pool);
    }
}

static void pwsp_pool_run_own(pwsp_pool *pool, ptowsp_lane_fn lane, void *job) {
    pwsp_pool_notice_fork(pool);
    PTOWSP_ASSERT(!(pwsp_load_relaxed(&pool->gate) & (PWSP_GATE_OPEN | PWSP_GATE_INSIDE)));
    pool->lane = lane;
    pool->job = job;
    // Added, not stored: lent workers that still leave clear STOP in the same word.
    pwsp_fetch_add_seq_cst(&pool->gate, PWSP_GATE_GENERATION | PWSP_GATE_OPEN);  // (1)
    pwsp_sleepers_wake(&pool->wake, true);
    lane(job, 0);
    pwsp_gate_close(pool);
}

// The user's executor gets this instead of the job, which shows whether it keeps its contract.
typedef struct pwsp_user_job {
    ptowsp_lane_fn lane;
    void *job;
    uint32_t lane_count;
    uint32_t good_calls;  // first calls of a lane
    uint32_t bad_calls;   // duplicates, and lanes out of range
    PWSP_ALIGNAS(8) uint64_t called[(PTOWSP_LANE_COUNT_MAX + 63) / 64];  // a bit for each lane
} pwsp_user_job;

static void pwsp_user_lane(void *arg, uint32_t lane) {
    pwsp_user_job *user_job = (pwsp_user_job *)arg;
    uint64_t bit = UINT64_C(1) << (lane % 64);
    if (lane >= user_job->lane_count ||
        (pwsp_fetch_or_seq_cst(&user_job->called[lane / 64], bit) & bit)) {
        pwsp_fetch_add_seq_cst(&user_job->bad_calls, 1u);
        return;
    }
    pwsp_fetch_add_seq_cst(&user_job->good_calls, 1u);
    user_job->lane(user_job->job, lane);
}

static bool pwsp_pool_run_user(pwsp_pool *pool, ptowsp_lane_fn lane, void *job) {
    PWSP_ZERO(pwsp_user_job, user_job);
    user_job.lane = lane;
    user_job.job = job;
    user_job.lane_count = pool->lane_count;
    pool->run_lanes(pool->run_lanes_user, pool->lane_count, pwsp_user_lane, &user_job);
    uint32_t good_calls = pwsp_load_seq_cst(&user_job.good_calls);
    if (good_calls == 0) {
        lane(job, 0);  // any lane that was called has done all there was
    }
    return good_calls == pool->lane_count && pwsp_load_seq_cst(&user_job.bad_calls) == 0;
}

PWSP_INTERNAL bool pwsp_pool_run(pwsp_pool *pool, ptowsp_lane_fn lane, void *job) {
    if (pool->threads == PTOWSP_THREADS_USER) {
        return pwsp_pool_run_user(pool, lane, job);
    }
    if (pool->lane_count == 1) {
        lane(job, 0);
    } else {
        pwsp_pool_run_own(pool, lane, job);
    }
    return true;
}

// Begins a session of so many workers, or joins it; false if another is under way, or the worker is
// in this one.
static bool pwsp_pool_join(pwsp_pool *pool, uint32_t worker, uint32_t worker_count) {
    uint64_t session = pwsp_load_acquire(&pool->session);  // pairs with (7)
    while ((uint32_t)session == 0) {
        if (pwsp_cas_acquire(&pool->session, &session, session | worker_count)) {
            session |= worker_count;
        }
    }
    const uint32_t number = (uint32_t)(session >> 32);
    uint32_t mark = pwsp_load_relaxed(&pool->lent_marks[worker]);
    return (uint32_t)session == worker_count && mark != number &&
           pwsp_cas_acquire(&pool->lent_marks[worker], &mark, number) &&
           pwsp_load_acquire(&pool->session) == session;
}

PWSP_INTERNAL ptowsp_status pwsp_pool_lend(pwsp_pool *pool, uint32_t worker, uint32_t worker_count,
                                           ptowsp_lead_fn lead, void *user, bool *out_is_refused) {
    PTOWSP_ASSERT(pool->lent_marks && worker < worker_count && worker_count <= pool->lane_count);
    *out_is_refused = !pwsp_pool_join(pool, worker, worker_count);
    if (*out_is_refused) {
        return PTOWSP_BUSY;
    }
    if (worker == 0) {
        pool->outcome = lead(user);
        pwsp_fetch_or_seq_cst(&pool->gate, PWSP_GATE_STOP);  // (6)
        pwsp_sleepers_wake(&pool->wake, true);
    } else {
        pwsp_worker_serve(pool, worker);
        (void)pwsp_load_acquire(&pool->gate);  // pairs with (6)
    }
    const ptowsp_status outcome = pool->outcome;
    if (pwsp_fetch_add_acq_rel(&pool->left_count, 1u) + 1 == worker_count) {
        pwsp_store_relaxed(&pool->left_count, 0u);
        pwsp_fetch_and_seq_cst(&pool->gate, ~PWSP_GATE_STOP);
        const uint32_t number = (uint32_t)(pwsp_load_relaxed(&pool->session) >> 32) + 1;
        // 0 is the mark of a worker that has never come.
        pwsp_store_release(&pool->session, (uint64_t)(number ? number : 1) << 32);  // (7)
    }
    return outcome;
}

PWSP_INTERNAL uint32_t pwsp_pool_lane_count(const pwsp_pool *pool) {
    return pool->lane_count;
}

PWSP_INTERNAL bool pwsp_pool_is_user(const pwsp_pool *pool) {
    return pool->threads == PTOWSP_THREADS_USER;
}

PWSP_INTERNAL bool pwsp_pool_is_lent(const pwsp_pool *pool) {
    return pool->threads == PTOWSP_THREADS_WORKERS;
}

PWSP_INTERNAL bool pwsp_pool_has_session(const pwsp_pool *pool) {
    return (uint32_t)pwsp_load_relaxed(&pool->session) != 0;
}

PWSP_INTERNAL bool pwsp_pool_is_crowded(pwsp_pool *pool, uint64_t thread_count) {
    uint32_t count = pwsp_load_relaxed(&pool->processor_count);
    if (count == 0 && thread_count > 1) {
        count = ptowsp_processor_count();
        pwsp_store_relaxed(&pool->processor_count, count);
    }
    return thread_count > 1 && thread_count > count;
}

PWSP_INTERNAL uint32_t pwsp_pool_spin_count(pwsp_pool *pool, uint32_t thread_count) {
    return pwsp_pool_is_crowded(pool, thread_count) ? PWSP_SPIN_SHORT : PWSP_SPIN_LONG;
}

PWSP_INTERNAL ptowsp_status pwsp_pool_create(const pwsp_memory *memory,
                                             const ptowsp_context_desc *desc,
                                             pwsp_pool **out_pool) {
    PTOWSP_ASSERT(desc->lane_count >= 1 && desc->lane_count <= PTOWSP_LANE_COUNT_MAX);
    *out_pool = NULL;
    uint32_t worker_count = desc->threads == PTOWSP_THREADS_OWN ? desc->lane_count - 1 : 0;
    const uint32_t lent_max = desc->threads == PTOWSP_THREADS_WORKERS ? desc->lane_count : 0;
    size_t size =
        sizeof(pwsp_pool) + worker_count * sizeof(pwsp_worker) + lent_max * sizeof(uint32_t);
    pwsp_pool *pool = (pwsp_pool *)pwsp_memory_alloc(memory, size);
    if (!pool) {
        return PTOWSP_OUT_OF_MEMORY;
    }
    pool->memory = *memory;
    pool->size = size;
    pool->threads = desc->threads;
    pool->lane_count = desc->lane_count;
    pool->run_lanes = desc->run_lanes;
    pool->run_lanes_user = desc->run_lanes_user;
    pool->workers = (pwsp_worker *)(void *)(pool + 1);
    pool->session = UINT64_C(1) << 32;
    pool->lent_marks = lent_max > 0 ? (uint32_t *)(void *)(pool + 1) : NULL;
    pool->spin_count = pwsp_pool_spin_count(pool, desc->lane_count);
    if (!pwsp_pool_start(pool)) {
        pwsp_pool_destroy(pool);
        return PTOWSP_SYSTEM_FAILED;
    }
    *out_pool = pool;
    return PTOWSP_OK;
}

PWSP_INTERNAL void pwsp_pool_destroy(pwsp_pool *pool) {
    PTOWSP_ASSERT(pool && (uint32_t)pwsp_load_relaxed(&pool->session) == 0);
    if (pwsp_sleeper_is_here(&pool->done)) {
        pwsp_gate_announce(pool, PWSP_GATE_STOP);
        for (uint32_t i = 0; i < pool->started_count; i++) {
            pwsp_thread_join(pool->workers[i].thread);
        }
    }
    pwsp_sleeper_destroy(&pool->done);
    pwsp_sleepers_destroy(&pool->wake);
    pwsp_memory memory = pool->memory;
    pwsp_memory_free(&memory, pool, pool->size);
}
