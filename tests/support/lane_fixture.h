// What tests of programs on lanes share: contexts with all kinds of lanes, and a watch that kernels
// report to. It sees that each task is called once and that no two are on one lane at a time, notes
// when tasks begin and end, and makes some take a little longer than others. It orders nothing
// itself: all its atomics are relaxed.

#ifndef LANE_FIXTURE_H
#define LANE_FIXTURE_H

#include "test.h"

#include <sched.h>

// Lanes that wait never sleep in builds without threads.
#ifdef PTOWSP_NO_THREADS
#define LANE_SPINS 1
#else
#define LANE_SPINS 0
#endif

// Tests do less then, and where every access is checked.
#if LANE_SPINS
#define LANE_IS_CHECKED 1
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LANE_IS_CHECKED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define LANE_IS_CHECKED 1
#endif
#endif
#ifndef LANE_IS_CHECKED
#define LANE_IS_CHECKED 0
#endif

// -- contexts -------------------------------------------------------------------------------------

typedef enum lane_kind {
    LANE_IN_ORDER = 0,  // the user's, one after another
    LANE_BACKWARDS,     // the last first
    LANE_THREADS,       // a thread for each
    LANE_LATE,          // threads that start late, the first one, too
    LANE_OWN,           // the context's own, if it may have threads
    LANE_KIND_COUNT,
    LANE_WORKERS  // those that come, see worker_test.c
} lane_kind;

static inline void lane_run_in_order(void *user, uint32_t lane_count, ptowsp_lane_fn lane,
                                     void *job) {
    (void)user;
    for (uint32_t i = 0; i < lane_count; i++) {
        lane(job, i);
    }
}

// What a kernel waits for another lane that may not come at all, and for one that is sure to come
// however busy the machine is. Waits end early where lanes that wait never sleep.
#define LANE_PATIENCE_NS ((LANE_SPINS ? 5 : 50) * UINT64_C(1000000))
#define LANE_CERTAIN_NS  (60 * UINT64_C(1000000000))

static inline void lane_await(const uint64_t *count, uint64_t enough, uint64_t patience_ns) {
    const uint64_t end = ptowsp_clock_ns() + patience_ns;
    while (__atomic_load_n(count, __ATOMIC_RELAXED) < enough && ptowsp_clock_ns() < end) {
        sched_yield();
    }
}

static inline void lane_yield(uint64_t count) {
    count = LANE_SPINS && count > 0 ? count / 50 + 1 : count;
    for (uint64_t i = 0; i < count; i++) {
        sched_yield();
    }
}

static inline void *lane_late_main(void *arg) {
    const test_lane_call *call = (const test_lane_call *)arg;
    uint64_t random = call->lane * UINT64_C(7919) + (uint64_t)(uintptr_t)call;
    lane_yield(test_splitmix(&random) % 100);
    call->lane_fn(call->job, call->lane);
    return NULL;
}

static inline void lane_run_late(void *user, uint32_t lane_count, ptowsp_lane_fn lane, void *job) {
    pthread_t threads[8];
    test_lane_call calls[8];
    (void)user;
    assert_true(lane_count <= 8);
    for (uint32_t i = 0; i < lane_count; i++) {
        test_lane_call call = {lane, job, i};
        calls[i] = call;
        assert_int_equal(pthread_create(&threads[i], NULL, lane_late_main, &calls[i]), 0);
    }
    for (uint32_t i = 0; i < lane_count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

// On two threads: lane 1 on its own, all others one after another.
static inline void lane_run_on_two(void *user, uint32_t lane_count, ptowsp_lane_fn lane,
                                   void *job) {
    (void)user;
    pthread_t thread;
    test_lane_call call = {lane, job, 1};
    assert_int_equal(pthread_create(&thread, NULL, test_lane_call_main, &call), 0);
    for (uint32_t i = 0; i < lane_count; i += i == 0 ? 2 : 1) {
        lane(job, i);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
}

// A context with such lanes, up to 8; memory may be NULL. In builds without threads own ones are
// the user's, and more than 3 share two.
static inline ptowsp_context *lane_context(lane_kind kind, uint32_t lane_count,
                                           test_memory *memory) {
    ptowsp_context_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.threads = PTOWSP_THREADS_USER;
    desc.lane_count = lane_count;
    switch (kind) {
    case LANE_IN_ORDER: desc.run_lanes = lane_run_in_order; break;
    case LANE_BACKWARDS: desc.run_lanes = test_run_lanes_backwards; break;
    case LANE_THREADS: desc.run_lanes = test_run_lanes_on_threads; break;
    case LANE_LATE: desc.run_lanes = lane_run_late; break;
    case LANE_WORKERS: desc.threads = PTOWSP_THREADS_WORKERS; break;
    default:
#ifdef PTOWSP_NO_THREADS
        desc.run_lanes = lane_count > 3 ? lane_run_on_two : test_run_lanes_on_threads;
#else
        desc.threads = PTOWSP_THREADS_OWN;
#endif
        break;
    }
    if (memory) {
        desc.resize = test_resize;
        desc.resize_user = memory;
    }
    ptowsp_context *context = NULL;
    assert_ok(ptowsp_context_create(&desc, &context));
    return context;
}

// -- the watch ------------------------------------------------------------------------------------

typedef struct lane_watch {
    uint32_t lane_count;  // of this execution
    uint64_t seed;        // of who takes longer; 0: nobody
    uint64_t task_max;
    uint8_t *calls;           // by task: how often it was called
    uint64_t *begins, *ends;  // by task: numbers from 1, in the order of what happened
    uint32_t *lanes;          // by task
    uint64_t clock;           // atomic
    uint32_t inside[8];       // by lane; atomic
    uint32_t wrong_count;     // atomic: calls that should not have been
} lane_watch;

static inline void lane_watch_begin(lane_watch *watch, uint64_t task_max) {
    memset(watch, 0, sizeof *watch);
    watch->task_max = task_max;
    watch->calls = (uint8_t *)calloc(task_max + 1, 1);
    watch->begins = (uint64_t *)calloc(task_max + 1, sizeof(uint64_t));
    watch->ends = (uint64_t *)calloc(task_max + 1, sizeof(uint64_t));
    watch->lanes = (uint32_t *)calloc(task_max + 1, sizeof(uint32_t));
    assert_true(watch->calls && watch->begins && watch->ends && watch->lanes);
}

static inline void lane_watch_end(lane_watch *watch) {
    free(watch->calls);
    free(watch->begins);
    free(watch->ends);
    free(watch->lanes);
}

// Before an execution.
static inline void lane_watch_restart(lane_watch *watch, uint32_t lane_count, uint64_t seed) {
    memset(watch->calls, 0, watch->task_max);
    memset(watch->inside, 0, sizeof watch->inside);
    watch->clock = 0;
    watch->wrong_count = 0;
    watch->lane_count = lane_count;
    watch->seed = seed;
}

// Now and then a few microseconds, chosen by the task.
static inline void lane_watch_delay(const lane_watch *watch, uint64_t task) {
    uint64_t random = watch->seed + task * UINT64_C(1000003), spins = 0;
    if (watch->seed) {
        uint64_t kind = test_splitmix(&random) % 32;
        spins = kind < 8 ? test_splitmix(&random) % 4000 : 0;
        lane_yield(kind == 31 ? 5 : 0);
    }
    for (volatile uint64_t i = 0; i < spins; i++) {
    }
}

static inline uint64_t lane_watch_stamp(lane_watch *watch) {
    return __atomic_add_fetch(&watch->clock, 1u, __ATOMIC_RELAXED);
}

// A task begins, and ends, in its kernel. Executions without lanes are on lane 0.
static inline void lane_watch_enter(lane_watch *watch, const ptowsp_task *task) {
    uint32_t lane_count = watch->lane_count ? watch->lane_count : 1;
    bool is_good = task->lane < lane_count && task->index < watch->task_max;
    if (is_good) {
        is_good = __atomic_fetch_add(&watch->inside[task->lane], 1u, __ATOMIC_RELAXED) == 0 &&
                  __atomic_fetch_add(&watch->calls[task->index], 1u, __ATOMIC_RELAXED) == 0;
    }
    if (is_good) {
        watch->lanes[task->index] = task->lane;
        watch->begins[task->index] = lane_watch_stamp(watch);
    } else {
        __atomic_fetch_add(&watch->wrong_count, 1u, __ATOMIC_RELAXED);
    }
    lane_watch_delay(watch, task->index);
}

static inline void lane_watch_leave(lane_watch *watch, const ptowsp_task *task) {
    if (task->index < watch->task_max) {
        watch->ends[task->index] = lane_watch_stamp(watch);
    }
    if (task->lane < 8) {
        __atomic_fetch_sub(&watch->inside[task->lane], 1u, __ATOMIC_RELAXED);
    }
}

// -- fleets ---------------------------------------------------------------------------------------

// A context of each kind, of 8 own lanes and 3 others, and what is tried in them.
typedef struct lane_fleet {
    test_memory memories[LANE_KIND_COUNT];
    ptowsp_context *contexts[LANE_KIND_COUNT];
    lane_watch watch;
    uint64_t seed;  // of the next execution
} lane_fleet;

enum { LANE_SETTING_COUNT = 7 };

static const struct {
    lane_kind kind;
    uint32_t lane_count;
} lane_settings[LANE_SETTING_COUNT] = {{LANE_OWN, 2},      {LANE_OWN, 3},       {LANE_OWN, 8},
                                       {LANE_IN_ORDER, 3}, {LANE_BACKWARDS, 3}, {LANE_LATE, 3},
                                       {LANE_OWN, 1}};

static inline void lane_fleet_make(lane_fleet *fleet, uint64_t task_max) {
    memset(fleet, 0, sizeof *fleet);
    fleet->seed = test_seed();
    for (int kind = 0; kind < LANE_KIND_COUNT; kind++) {
        fleet->contexts[kind] =
            lane_context((lane_kind)kind, kind == LANE_OWN ? 8 : 3, &fleet->memories[kind]);
    }
    lane_watch_begin(&fleet->watch, task_max);
}

static inline void lane_fleet_free(lane_fleet *fleet) {
    for (int kind = 0; kind < LANE_KIND_COUNT; kind++) {
        ptowsp_context_destroy(fleet->contexts[kind]);
        assert_int_equal(fleet->memories[kind].live_blocks, 0);
    }
    lane_watch_end(&fleet->watch);
}

// -- errors ---------------------------------------------------------------------------------------

// A copy of an error, to be compared with that of another execution.
typedef struct lane_error {
    ptowsp_status status;
    uint64_t index;
    char text[1024];
} lane_error;

// What ended an execution.
static inline lane_error lane_error_of(const ptowsp_context *context, ptowsp_status status) {
    lane_error copy = {status, 0, ""};
    if (status != PTOWSP_OK) {
        ptowsp_error error = ptowsp_context_error(context);
        copy.index = error.index;
        snprintf(copy.text, sizeof copy.text, "%s", error.text);
    }
    return copy;
}

static inline bool lane_error_is(const lane_error *a, const lane_error *b) {
    bool is_same = a->status == b->status && a->index == b->index && !strcmp(a->text, b->text);
    if (!is_same) {
        print_message("%s\nand not: %s\n", a->text, b->text);
    }
    return is_same;
}

#endif
