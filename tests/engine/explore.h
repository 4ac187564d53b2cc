// A schedule explorer: runs the threads of the library one at a time, in orders that it chooses.
//
// The file that is shipped is compiled into the test, with its atomic operations and calls of
// POSIX threads going through here; the library has no hooks for it. A thread is a coroutine. Each
// atomic operation, lock and unlock, wait, signal, start and end of a thread is a point where another
// one may go on. Time is the number of points.
//
// Orders are those of delay-bounded scheduling (Emmi, Qadeer and Rakamaric 2011). Without delays, a
// thread goes on until it blocks, ends or pauses in a loop that waits; then the next one in a ring
// does. A delay at a point passes its turn on to the next thread that can go on. All orders with up
// to so many delays are tried, and random ones with any number.
//
// In half of the random orders atomic stores may be seen late. A store waits with its thread, which
// sees it at once; others do at a random point. Stores to the same place keep their order. One with
// release order waits until all before it are seen, as does any other operation that releases or is
// sequentially consistent. Late stores are fewer than C11 allows, where loads may be early as well,
// but more than x86 has: there they are seen in their order.
//
// What it finds: lost wake-ups and other deadlocks, loops that do not end, broken assertions, wrong
// results, leaks, memory freed before a store to it is seen. Data that is not atomic is seen at once:
// the thread sanitizer and tests/models are for that.

#ifndef EXPLORE_H
#define EXPLORE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#undef _FORTIFY_SOURCE  // it takes a jump to another stack for a mistake

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

enum {
    EXPLORE_THREAD_MAX = 12,
    EXPLORE_DELAY_MAX = 3,
    EXPLORE_STACK = 256 << 10,
    EXPLORE_STEP_MAX = 400000,  // more: it does not end
    EXPLORE_ALONE_MAX = 2000,   // points of one thread in a row before it has to pause
    EXPLORE_REACH_MAX = 1 << 16,
    EXPLORE_LATE_MAX = 8  // stores of a thread that wait to be seen
};

typedef enum explore_state {
    READY,
    ON_MUTEX,
    ON_COND,
    ON_COND_FOR,
    ON_THREAD,
    ENDED
} explore_state;

// A store that others do not see yet.
typedef struct explore_late {
    void *at;
    size_t size;
    bool is_release;
    uint64_t value, other;  // `other` is not in memory now: while the thread runs, what others see
} explore_late;

typedef struct explore_thread {
    ucontext_t context;  // of its first entry
    jmp_buf place;       // where it goes on, without system calls
    bool has_begun;
    char *stack;  // kept for the next run, as is a thread that has ended
    void *(*fn)(void *arg);
    void *arg;
    explore_state state;
    const void *on;  // what it waits for
    uint64_t until;  // ON_COND_FOR
    const char *doing;
    explore_late late[EXPLORE_LATE_MAX];  // in the order of the program
    uint32_t late_count;
} explore_thread;

// A mutex of the library is used as this. 0: free.
typedef struct explore_mutex {
    uint32_t owner;
} explore_mutex;

static struct {
    explore_thread threads[EXPLORE_THREAD_MAX];
    uint32_t thread_count, current;
    jmp_buf home;
    void (*scenario)(void);
    uint64_t step, alone;
    // The order: delays at these steps; or with a random state, anywhere.
    uint64_t delays[EXPLORE_DELAY_MAX];
    uint32_t delay_count, delay_next;
    uint64_t random;  // 0: none
    uint32_t rarity;  // of random delays: one of so many points
    bool has_late;    // stores may be seen late
    // At which steps a delay would change something.
    uint8_t reach[EXPLORE_REACH_MAX];
    bool has_failed;
    char failure[512];
    // Over all orders.
    uint64_t order_count, step_count, most_steps;
} explore;

// -- the end of an order --------------------------------------------------------------------------

static inline void explore_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(explore.failure, sizeof explore.failure, format, args);
    va_end(args);
    explore.has_failed = true;
    _longjmp(explore.home, 1);
}

#define EXPLORE_CHECK(condition)                                                                   \
    ((condition) ? (void)0                                                                         \
                 : explore_fail("%s:%d: %s", strrchr(__FILE__, '/') + 1, __LINE__, #condition))

static inline void explore_fail_stuck(void) {
    static const char *const waits[] = {"can go on",      "waits for a lock",   "sleeps",
                                        "sleeps a while", "waits for a thread", "has ended"};
    char text[400] = "";
    for (uint32_t i = 0; i < explore.thread_count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "; thread %u %s (%s)", i,
                 waits[explore.threads[i].state], explore.threads[i].doing);
    }
    explore_fail("deadlock at point %llu%s", (unsigned long long)explore.step, text);
}

// -- choosing -------------------------------------------------------------------------------------

static inline uint64_t explore_random(void) {
    explore.random ^= explore.random << 13;  // xorshift64 (Marsaglia 2003)
    explore.random ^= explore.random >> 7;
    explore.random ^= explore.random << 17;
    return explore.random;
}

// The next thread behind one in the ring that can go on; that one itself is the last choice.
static inline uint32_t explore_next(uint32_t from) {
    for (uint32_t i = 1; i <= explore.thread_count; i++) {
        uint32_t thread = (from + i) % explore.thread_count;
        if (explore.threads[thread].state == READY) {
            return thread;
        }
    }
    return EXPLORE_THREAD_MAX;
}

// When none can go on, those that sleep for a while wake up: time passes.
static inline bool explore_pass_time(void) {
    uint32_t first = EXPLORE_THREAD_MAX;
    for (uint32_t i = 0; i < explore.thread_count; i++) {
        const explore_thread *thread = &explore.threads[i];
        if (thread->state == ON_COND_FOR &&
            (first == EXPLORE_THREAD_MAX || thread->until < explore.threads[first].until)) {
            first = i;
        }
    }
    if (first == EXPLORE_THREAD_MAX) {
        return false;
    }
    explore.step =
        explore.threads[first].until > explore.step ? explore.threads[first].until : explore.step;
    explore.threads[first].state = READY;
    return true;
}

// -- late stores ----------------------------------------------------------------------------------
//
// Memory is what the thread sees that runs: what others see of its late stores is beside it.

static inline void explore_forget(explore_thread *thread, uint32_t i) {
    thread->late_count--;
    memmove(&thread->late[i], &thread->late[i + 1],
            (thread->late_count - i) * sizeof *thread->late);
}

static inline void explore_seen_all(void) {
    explore.threads[explore.current].late_count = 0;
}

// Others see a store, and before it those of the thread that have to be seen before.
static inline void explore_see(uint32_t owner, uint32_t i) {
    explore_thread *thread = &explore.threads[owner], *current = &explore.threads[explore.current];
    while (thread->late[i].is_release && i > 0) {
        explore_see(owner, 0);
        i--;
    }
    const explore_late seen = thread->late[i];
    explore_forget(thread, i);
    if (owner == explore.current) {
        return;
    }
    for (i = 0; i < current->late_count; i++) {
        if (current->late[i].at == seen.at) {
            current->late[i].other = seen.value;
            return;
        }
    }
    memcpy(seen.at, &seen.value, seen.size);
}

static inline void explore_see_some(void) {
    for (uint32_t i = 0; explore.has_late && i < explore.thread_count; i++) {
        uint32_t count = explore.threads[i].late_count;
        if (count > 0 && explore_random() % 8 == 0) {
            explore_see(i, (uint32_t)(explore_random() % count));
        }
    }
}

// Those to one place are seen; with an operation that releases, all of the current thread.
static inline void explore_see_before(const void *at, int order) {
    explore_thread *thread = &explore.threads[explore.current];
    if (order != __ATOMIC_RELAXED && order != __ATOMIC_ACQUIRE) {
        explore_seen_all();
    }
    for (uint32_t i = 0; i < thread->late_count; i++) {
        if (thread->late[i].at == at) {
            explore_see(explore.current, i);
            return;
        }
    }
}

static inline void explore_store(void *at, const void *value, size_t size, int order) {
    explore_thread *thread = &explore.threads[explore.current];
    bool is_late = explore.has_late && order != __ATOMIC_SEQ_CST && explore_random() % 2;
    explore_see_before(at, is_late ? __ATOMIC_RELAXED : order);
    if (is_late && thread->late_count == EXPLORE_LATE_MAX) {
        explore_see(explore.current, 0);
    }
    if (is_late) {
        explore_late *late = &thread->late[thread->late_count++];
        memset(late, 0, sizeof *late);
        late->at = at;
        late->size = size;
        late->is_release = order == __ATOMIC_RELEASE;
        memcpy(&late->value, value, size);
        memcpy(&late->other, at, size);
    }
    memcpy(at, value, size);
}

// Before another thread goes on, and after: memory is as that one sees it.
static inline void explore_swap(explore_thread *thread, bool runs) {
    for (uint32_t i = 0; i < thread->late_count; i++) {
        explore_late *late = &thread->late[i];
        if (!runs && memcmp(late->at, &late->value, late->size) != 0) {
            explore_forget(thread, i--);  // overwritten by what is not atomic
            continue;
        }
        if (runs) {
            late->other = 0;
            memcpy(&late->other, late->at, late->size);
        }
        memcpy(late->at, runs ? &late->value : &late->other, late->size);
    }
}

// Memory is given back. No store to it may be late: it could be seen after the next use has begun.
static inline void explore_free(const void *at, size_t size) {
    explore_seen_all();
    for (uint32_t i = 0; i < explore.thread_count; i++) {
        for (uint32_t k = 0; k < explore.threads[i].late_count; k++) {
            const char *to = (const char *)explore.threads[i].late[k].at;
            if (to >= (const char *)at && to < (const char *)at + size) {
                explore_fail("memory is freed before thread %u's store to it is seen", i);
            }
        }
    }
}

static inline void explore_jump(explore_thread *thread) {
    if (thread->has_begun) {
        _longjmp(thread->place, 1);
    }
    thread->has_begun = true;
    setcontext(&thread->context);
    abort();
}

static inline void explore_go(uint32_t thread) {
    uint32_t from = explore.current;
    if (thread != from) {
        explore_swap(&explore.threads[from], false);
        explore.current = thread;
        explore.alone = 0;
        explore_swap(&explore.threads[thread], true);
        if (!_setjmp(explore.threads[from].place)) {
            explore_jump(&explore.threads[thread]);
        }
    }
}

static inline bool explore_is_delayed(void) {
    if (explore.random) {
        return explore_random() % explore.rarity == 0;
    }
    bool is_delayed = explore.delay_next < explore.delay_count &&
                      explore.delays[explore.delay_next] == explore.step;
    explore.delay_next += is_delayed;
    return is_delayed;
}

// A point: the current thread goes on, unless it cannot, pauses, or is delayed.
static inline void explore_point(const char *doing, bool has_paused) {
    explore_thread *thread = &explore.threads[explore.current];
    thread->doing = doing;
    explore_see_some();
    explore.step++;
    if (explore.step > EXPLORE_STEP_MAX && !explore.random) {
        explore_fail("it does not end; thread %u: %s", explore.current, doing);
    }
    bool goes_on = thread->state == READY && !has_paused && ++explore.alone < EXPLORE_ALONE_MAX;
    uint32_t chosen = goes_on ? explore.current : explore_next(explore.current);
    while (chosen == EXPLORE_THREAD_MAX) {
        if (!explore_pass_time()) {
            explore_fail_stuck();
        }
        chosen = explore_next(explore.current);
    }
    explore.alone = goes_on ? explore.alone : 0;
    uint32_t other = explore_next(chosen);
    if (other != chosen) {
        if (explore.step < EXPLORE_REACH_MAX) {
            explore.reach[explore.step] = 1;
        }
        chosen = explore_is_delayed() ? other : chosen;
    }
    explore_go(chosen);
}

static inline void explore_block(explore_state state, const void *on, const char *doing) {
    explore_seen_all();
    explore.threads[explore.current].state = state;
    explore.threads[explore.current].on = on;
    explore_point(doing, false);
}

// Wakes those that wait for something: all, or the first behind the current one.
static inline void explore_wake(explore_state state, const void *on, bool all) {
    for (uint32_t i = 1; i <= explore.thread_count; i++) {
        explore_thread *thread = &explore.threads[(explore.current + i) % explore.thread_count];
        bool waits = thread->state == state || (state == ON_COND && thread->state == ON_COND_FOR);
        if (waits && thread->on == on) {
            thread->state = READY;
            if (!all) {
                return;
            }
        }
    }
}

// -- threads --------------------------------------------------------------------------------------

static void explore_main(void) {
    explore_thread *thread = &explore.threads[explore.current];
    while (thread != explore.threads) {
        thread->fn(thread->arg);
        explore_wake(ON_THREAD, thread, true);
        explore_block(ENDED, NULL, "its end");
    }
    for (;;) {
        explore.scenario();
        thread->state = ENDED;
        if (!_setjmp(thread->place)) {
            _longjmp(explore.home, 1);
        }
    }
}

static inline void explore_make(void *(*fn)(void *arg), void *arg) {
    explore_thread *thread = &explore.threads[explore.thread_count++];
    thread->late_count = 0;
    thread->fn = fn;
    thread->arg = arg;
    thread->has_begun = thread->state == ENDED;
    thread->state = READY;
    thread->doing = "its start";
    if (thread->has_begun) {
        return;
    }
    thread->stack = thread->stack ? thread->stack : (char *)malloc(EXPLORE_STACK);
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = thread->stack;
    thread->context.uc_stack.ss_size = EXPLORE_STACK;
    thread->context.uc_link = NULL;
    makecontext(&thread->context, explore_main, 0);
}

static inline int explore_create(pthread_t *out, void *(*fn)(void *arg), void *arg) {
    if (explore.thread_count == EXPLORE_THREAD_MAX) {
        explore_fail("more than %d threads", EXPLORE_THREAD_MAX);
    }
    *out = (pthread_t)explore.thread_count;
    explore_seen_all();
    explore_make(fn, arg);
    explore_point("starting a thread", false);
    return 0;
}

static inline int explore_join(pthread_t id) {
    const explore_thread *thread = &explore.threads[(uint32_t)id];
    explore_point("joining a thread", false);
    while (thread->state != ENDED) {
        explore_block(ON_THREAD, thread, "joining a thread");
    }
    return 0;
}

// -- locks and conditions -------------------------------------------------------------------------

static inline int explore_lock(pthread_mutex_t *at) {
    explore_mutex *mutex = (explore_mutex *)(void *)at;
    explore_point("lock", false);
    while (mutex->owner) {
        if (mutex->owner == explore.current + 1) {
            explore_fail("a thread locks twice");
        }
        explore_block(ON_MUTEX, mutex, "lock");
    }
    explore_seen_all();
    mutex->owner = explore.current + 1;
    return 0;
}

static inline int explore_unlock(pthread_mutex_t *at) {
    explore_mutex *mutex = (explore_mutex *)(void *)at;
    if (mutex->owner != explore.current + 1) {
        explore_fail("a lock is left that another thread has");
    }
    explore_seen_all();
    mutex->owner = 0;
    explore_wake(ON_MUTEX, mutex, true);
    explore_point("unlock", false);
    return 0;
}

static inline int explore_mutex_init(pthread_mutex_t *at) {
    ((explore_mutex *)(void *)at)->owner = 0;
    return 0;
}

static inline int explore_mutex_destroy(const pthread_mutex_t *at) {
    EXPLORE_CHECK(((const explore_mutex *)(const void *)at)->owner == 0);
    return 0;
}

// Between unlocking and sleeping there is no point, as in POSIX.
static inline int explore_sleep(pthread_cond_t *cond, pthread_mutex_t *at, explore_state state) {
    explore_mutex *mutex = (explore_mutex *)(void *)at;
    EXPLORE_CHECK(mutex->owner == explore.current + 1);
    mutex->owner = 0;
    explore_wake(ON_MUTEX, mutex, true);
    explore_block(state, cond, "sleep");
    return explore_lock(at);
}

static inline int explore_sleep_for(pthread_cond_t *cond, pthread_mutex_t *at,
                                    const struct timespec *until) {
    explore.threads[explore.current].until =
        (uint64_t)until->tv_sec * 10000000u + (uint64_t)until->tv_nsec / 100;
    return explore_sleep(cond, at, ON_COND_FOR);
}

static inline int explore_signal(const pthread_cond_t *cond, bool all) {
    explore_point(all ? "broadcast" : "signal", false);
    explore_seen_all();
    explore_wake(ON_COND, cond, all);
    return 0;
}

// A point is 100 ns.
static inline int explore_time(struct timespec *out_time) {
    explore_point("clock", false);
    out_time->tv_sec = (time_t)(explore.step / 10000000u);
    out_time->tv_nsec = (long)(explore.step % 10000000u * 100);
    return 0;
}

static inline void explore_change(const char *doing, const void *at, int order) {
    explore_point(doing, false);
    explore_see_before(at, order);
}

// Quotas are not read: orders are the same on every machine, and most of their time would be that.
static inline int explore_open(const char *path, int flags, ...) {
    (void)path;
    (void)flags;
    errno = ENOENT;
    return -1;
}

// -- the library's face ---------------------------------------------------------------------------

#define pthread_create(thread, attributes, fn, arg) explore_create(thread, fn, arg)
#define pthread_join(thread, result)                explore_join(thread)
#define pthread_mutex_init(mutex, attributes)       explore_mutex_init(mutex)
#define pthread_mutex_destroy(mutex)                explore_mutex_destroy(mutex)
#define pthread_mutex_lock(mutex)                   explore_lock(mutex)
#define pthread_mutex_unlock(mutex)                 explore_unlock(mutex)
#define pthread_cond_init(cond, attributes)         ((void)(cond), (void)(attributes), 0)
#define pthread_cond_destroy(cond)                  ((void)(cond), 0)
#define pthread_cond_wait(cond, mutex)              explore_sleep(cond, mutex, ON_COND)
#define pthread_cond_timedwait(cond, mutex, until)  explore_sleep_for(cond, mutex, until)
#define pthread_cond_signal(cond)                   explore_signal(cond, false)
#define pthread_cond_broadcast(cond)                explore_signal(cond, true)
#define clock_gettime(clock, time)                  explore_time(time)
#define sched_yield()                               explore_point("yield", true)
#define sysconf(name)                               1L
#define open(...)                                   explore_open(__VA_ARGS__)
#define __builtin_ia32_rdtsc()                      (explore.step * 300u)
#define __builtin_ia32_pause()                      explore_point("pause", true)
#define __atomic_load_n(at, order)                  (explore_point("load", false), __atomic_load_n(at, order))
#define __atomic_store_n(at, to, order)                                                            \
    __extension__({                                                                                \
        __typeof__(*(at)) explore_to = (to);                                                       \
        explore_point("store", false);                                                             \
        explore_store(at, &explore_to, sizeof explore_to, order);                                  \
    })
#define __atomic_exchange_n(at, value, order)                                                      \
    (explore_change("exchange", at, order), __atomic_exchange_n(at, value, order))
#define __atomic_fetch_add(at, value, order)                                                       \
    (explore_change("add", at, order), __atomic_fetch_add(at, value, order))
#define __atomic_fetch_sub(at, value, order)                                                       \
    (explore_change("subtract", at, order), __atomic_fetch_sub(at, value, order))
#define __atomic_fetch_and(at, value, order)                                                       \
    (explore_change("and", at, order), __atomic_fetch_and(at, value, order))
#define __atomic_fetch_or(at, value, order)                                                        \
    (explore_change("or", at, order), __atomic_fetch_or(at, value, order))
#define __atomic_compare_exchange_n(at, expected, desired, is_weak, order, other)                  \
    (explore_change("compare", at, order),                                                         \
     __atomic_compare_exchange_n(at, expected, desired, is_weak, order, other))
#define PTOWSP_ASSERT(condition) EXPLORE_CHECK(condition)

// Threads sleep soon, so that waking them is explored.
#define PWSP_SPIN_SHORT        1
#define PWSP_DEVICE_SPIN_SHORT 1

// -- orders ---------------------------------------------------------------------------------------

// Runs a scenario in one order. False with a failure.
static inline bool explore_run(void (*scenario)(void)) {
    memset(explore.reach, 0,
           explore.step < EXPLORE_REACH_MAX ? (size_t)explore.step + 1 : EXPLORE_REACH_MAX);
    explore.thread_count = explore.current = 0;
    explore.scenario = scenario;
    explore.step = explore.alone = explore.delay_next = 0;
    explore.has_failed = false;
    explore_make(NULL, NULL);
    if (!_setjmp(explore.home)) {  // where it ends
        explore_jump(&explore.threads[0]);
    }
    for (uint32_t i = 1; i < explore.thread_count && !explore.has_failed; i++) {
        if (explore.threads[i].state != ENDED) {
            snprintf(explore.failure, sizeof explore.failure, "thread %u is left", i);
            explore.has_failed = true;
        }
    }
    explore.order_count++;
    explore.step_count += explore.step;
    explore.most_steps = explore.step > explore.most_steps ? explore.step : explore.most_steps;
    return !explore.has_failed;
}

// All orders with up to `count` delays behind those that there are, up to a number of orders.
static bool explore_all(void (*scenario)(void), uint32_t count, uint64_t order_max) {
    if (explore.order_count >= order_max) {
        return true;
    }
    if (!explore_run(scenario)) {
        return false;
    }
    uint64_t first = explore.delay_count ? explore.delays[explore.delay_count - 1] + 1 : 1;
    uint64_t end = explore.step < EXPLORE_REACH_MAX ? explore.step + 1 : EXPLORE_REACH_MAX;
    if (count == 0 || first >= end) {
        return true;
    }
    uint8_t *reach = (uint8_t *)malloc((size_t)end);
    memcpy(reach, explore.reach, (size_t)end);
    bool is_good = true;
    for (uint64_t i = first; i < end && is_good; i++) {
        if (reach[i]) {
            explore.delays[explore.delay_count++] = i;
            is_good = explore_all(scenario, count - 1, order_max);
            explore.delay_count -= is_good;  // a failure keeps its delays
        }
    }
    free(reach);
    return is_good;
}

static bool explore_some(void (*scenario)(void), uint64_t seed, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        explore.random = (seed + i) * UINT64_C(0x9e3779b97f4a7c15) | 1;
        explore.rarity = 4u << 2 * ((seed + i) % 3);
        explore.has_late = (seed + i) / 3 % 2;
        if (!explore_run(scenario)) {
            explore.delay_count = 0;
            snprintf(explore.failure + strlen(explore.failure),
                     sizeof explore.failure - strlen(explore.failure), " (seed %llu)",
                     (unsigned long long)(seed + i));
            return false;
        }
    }
    explore.random = 0;
    explore.has_late = false;
    return true;
}

#endif
