// POSIX, kept in one file. In header mode it is too late for feature-test macros, so strict C11
// hides clock_gettime and pthread_condattr_setclock. They are declared here as POSIX defines them.
// macOS has no pthread_condattr_setclock: waits there use the wall clock, and the waiter checks
// again.

#include "os.h"

#include "atomic.h"

#include <time.h>

#if PWSP_POSIX
#include <sched.h>
#include <unistd.h>
#endif

#if !PWSP_POSIX
#define PWSP_CLOCK TIME_UTC
static void pwsp_clock_read(int base, struct timespec *out_time) {
    timespec_get(out_time, base);
}
#elif defined(CLOCK_MONOTONIC)
#define PWSP_CLOCK CLOCK_MONOTONIC
#else
#define PWSP_CLOCK 1  // Linux
extern int clock_gettime(int clock, struct timespec *out_time);
#endif
#if PWSP_POSIX
#define pwsp_clock_read clock_gettime
#endif

PWSP_INTERNAL void pwsp_thread_yield(void) {
#if PWSP_POSIX
    sched_yield();
#else
    pwsp_pause();
#endif
}

PWSP_INTERNAL uint32_t pwsp_process_id(void) {
#if PWSP_POSIX
    return (uint32_t)getpid();
#else
    return 0;  // a process has no copies there
#endif
}

#if PWSP_HAS_THREADS

#if defined(__APPLE__)
#define PWSP_COND_CLOCK CLOCK_REALTIME
#else
#define PWSP_COND_CLOCK PWSP_CLOCK
#if !defined(__cplusplus)  // where it is never hidden
extern int pthread_condattr_setclock(pthread_condattr_t *attributes, int clock);
#endif
#endif

// pthread calls on valid, initialised objects do not fail: a failure is a bug of ours.
#define PWSP_PTHREAD(call)                                                                         \
    do {                                                                                           \
        int pwsp_failed = call;                                                                    \
        PTOWSP_ASSERT(pwsp_failed == 0);                                                           \
        (void)pwsp_failed;                                                                         \
    } while (0)

PWSP_INTERNAL bool pwsp_thread_start(pwsp_thread *out_thread, pwsp_thread_fn fn, void *arg) {
    return pthread_create(out_thread, NULL, fn, arg) == 0;
}

PWSP_INTERNAL void pwsp_thread_join(pwsp_thread thread) {
    PWSP_PTHREAD(pthread_join(thread, NULL));
}

PWSP_INTERNAL void pwsp_mutex_init(pwsp_mutex *mutex) {
    PWSP_PTHREAD(pthread_mutex_init(mutex, NULL));
}

PWSP_INTERNAL void pwsp_mutex_destroy(pwsp_mutex *mutex) {
    PWSP_PTHREAD(pthread_mutex_destroy(mutex));
}

PWSP_INTERNAL void pwsp_mutex_lock(pwsp_mutex *mutex) {
    PWSP_PTHREAD(pthread_mutex_lock(mutex));
}

PWSP_INTERNAL void pwsp_mutex_unlock(pwsp_mutex *mutex) {
    PWSP_PTHREAD(pthread_mutex_unlock(mutex));
}

PWSP_INTERNAL void pwsp_cond_init(pwsp_cond *cond) {
    pthread_condattr_t attributes;
    PWSP_PTHREAD(pthread_condattr_init(&attributes));
#if !defined(__APPLE__)
    PWSP_PTHREAD(pthread_condattr_setclock(&attributes, PWSP_COND_CLOCK));
#endif
    PWSP_PTHREAD(pthread_cond_init(cond, &attributes));
    PWSP_PTHREAD(pthread_condattr_destroy(&attributes));
}

PWSP_INTERNAL void pwsp_cond_destroy(pwsp_cond *cond) {
    PWSP_PTHREAD(pthread_cond_destroy(cond));
}

PWSP_INTERNAL void pwsp_cond_wait(pwsp_cond *cond, pwsp_mutex *mutex) {
    PWSP_PTHREAD(pthread_cond_wait(cond, mutex));
}

PWSP_INTERNAL void pwsp_cond_wait_for(pwsp_cond *cond, pwsp_mutex *mutex, uint64_t time_ns) {
    struct timespec until = {0, 0};
    clock_gettime(PWSP_COND_CLOCK, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + time_ns % UINT64_C(1000000000);
    uint64_t seconds = time_ns / UINT64_C(1000000000) + ns / UINT64_C(1000000000);
    until.tv_sec += (time_t)pwsp_min_u64(seconds, 1000000000);
    until.tv_nsec = (long)(ns % UINT64_C(1000000000));
    pthread_cond_timedwait(cond, mutex, &until);  // the waiter reads the clock, not this
}

PWSP_INTERNAL void pwsp_cond_signal(pwsp_cond *cond) {
    PWSP_PTHREAD(pthread_cond_signal(cond));
}

#else

PWSP_INTERNAL bool pwsp_thread_start(pwsp_thread *out_thread, pwsp_thread_fn fn, void *arg) {
    (void)out_thread, (void)fn, (void)arg;
    return false;
}

PWSP_INTERNAL void pwsp_thread_join(pwsp_thread thread) {
    (void)thread;
}

PWSP_INTERNAL void pwsp_mutex_init(pwsp_mutex *mutex) {
    *mutex = 0;
}

PWSP_INTERNAL void pwsp_mutex_destroy(pwsp_mutex *mutex) {
    (void)mutex;
}

PWSP_INTERNAL void pwsp_mutex_lock(pwsp_mutex *mutex) {
    while (pwsp_exchange_acquire(mutex, 1u)) {
        pwsp_thread_yield();
    }
}

PWSP_INTERNAL void pwsp_mutex_unlock(pwsp_mutex *mutex) {
    pwsp_store_release(mutex, 0u);
}

PWSP_INTERNAL void pwsp_cond_init(pwsp_cond *cond) {
    *cond = 0;
}

PWSP_INTERNAL void pwsp_cond_destroy(pwsp_cond *cond) {
    (void)cond;
}

PWSP_INTERNAL void pwsp_cond_wait(pwsp_cond *cond, pwsp_mutex *mutex) {
    (void)cond, (void)mutex;
}

PWSP_INTERNAL void pwsp_cond_wait_for(pwsp_cond *cond, pwsp_mutex *mutex, uint64_t time_ns) {
    (void)cond, (void)mutex, (void)time_ns;
}

PWSP_INTERNAL void pwsp_cond_signal(pwsp_cond *cond) {
    (void)cond;
}

#endif

uint64_t ptowsp_clock_ns(void) {
    struct timespec now = {0, 0};
    pwsp_clock_read(PWSP_CLOCK, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
