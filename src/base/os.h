// Threads, locks and the clock of the operating system, and nothing else of it. Under
// PTOWSP_NO_THREADS no thread can be started and no condition waited for. Locks then spin and
// yield, because lanes may be the user's threads.

#ifndef PWSP_OS_H
#define PWSP_OS_H

#include "base.h"

#if !defined(PTOWSP_NO_THREADS)
#include <pthread.h>
typedef pthread_t pwsp_thread;
typedef pthread_mutex_t pwsp_mutex;
typedef pthread_cond_t pwsp_cond;
#define PWSP_HAS_THREADS 1
#else
typedef int pwsp_thread;
typedef uint32_t pwsp_mutex;
typedef int pwsp_cond;
#define PWSP_HAS_THREADS 0
#endif

typedef void *(*pwsp_thread_fn)(void *arg);

// False when the system has no room for another thread.
PWSP_INTERNAL bool pwsp_thread_start(pwsp_thread *out_thread, pwsp_thread_fn fn, void *arg);
PWSP_INTERNAL void pwsp_thread_join(pwsp_thread thread);
PWSP_INTERNAL void pwsp_thread_yield(void);  // lets another thread have the processor
PWSP_INTERNAL uint32_t pwsp_process_id(void);

PWSP_INTERNAL void pwsp_mutex_init(pwsp_mutex *mutex);
PWSP_INTERNAL void pwsp_mutex_destroy(pwsp_mutex *mutex);
PWSP_INTERNAL void pwsp_mutex_lock(pwsp_mutex *mutex);
PWSP_INTERNAL void pwsp_mutex_unlock(pwsp_mutex *mutex);

PWSP_INTERNAL void pwsp_cond_init(pwsp_cond *cond);
PWSP_INTERNAL void pwsp_cond_destroy(pwsp_cond *cond);
PWSP_INTERNAL void pwsp_cond_wait(pwsp_cond *cond, pwsp_mutex *mutex);  // may wake for no reason
// The same, for some time at most.
PWSP_INTERNAL void pwsp_cond_wait_for(pwsp_cond *cond, pwsp_mutex *mutex, uint64_t time_ns);
PWSP_INTERNAL void pwsp_cond_signal(pwsp_cond *cond);  // wakes one

#endif
