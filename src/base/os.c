// POSIX, kept in one file. In header mode it is too late for feature-test macros, so strict C11
// hides clock_gettime from us; it is declared here in that case, as POSIX gives it.

#include "os.h"

#include <time.h>
#include <unistd.h>

#if PWSP_HAS_THREADS

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
    PWSP_PTHREAD(pthread_cond_init(cond, NULL));
}

PWSP_INTERNAL void pwsp_cond_destroy(pwsp_cond *cond) {
    PWSP_PTHREAD(pthread_cond_destroy(cond));
}

PWSP_INTERNAL void pwsp_cond_wait(pwsp_cond *cond, pwsp_mutex *mutex) {
    PWSP_PTHREAD(pthread_cond_wait(cond, mutex));
}

PWSP_INTERNAL void pwsp_cond_signal(pwsp_cond *cond) {
    PWSP_PTHREAD(pthread_cond_signal(cond));
}

PWSP_INTERNAL void pwsp_cond_broadcast(pwsp_cond *cond) {
    PWSP_PTHREAD(pthread_cond_broadcast(cond));
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
    (void)mutex;
}

PWSP_INTERNAL void pwsp_mutex_unlock(pwsp_mutex *mutex) {
    (void)mutex;
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

PWSP_INTERNAL void pwsp_cond_signal(pwsp_cond *cond) {
    (void)cond;
}

PWSP_INTERNAL void pwsp_cond_broadcast(pwsp_cond *cond) {
    (void)cond;
}

#endif

PWSP_INTERNAL uint32_t pwsp_cpu_count(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > PTOWSP_LANE_COUNT_MAX ? PTOWSP_LANE_COUNT_MAX : (uint32_t)count;
}

#if defined(CLOCK_MONOTONIC)
#define PWSP_CLOCK CLOCK_MONOTONIC
#else
#define PWSP_CLOCK 1  // Linux
extern int clock_gettime(int clock, struct timespec *out_time);
#endif

uint64_t ptowsp_clock_ns(void) {
    struct timespec now = {0, 0};
    clock_gettime(PWSP_CLOCK, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
