// Sleeping and waking; see sleeper.h.

#include "sleeper.h"

PWSP_INTERNAL void pwsp_sleeper_init(pwsp_sleeper *sleeper) {
    pwsp_mutex_init(&sleeper->mutex);
    pwsp_cond_init(&sleeper->cond);
    sleeper->asleep = 0;
    sleeper->process = pwsp_process_id();
}

PWSP_INTERNAL bool pwsp_sleeper_is_here(const pwsp_sleeper *sleeper) {
    return sleeper->process == pwsp_process_id();
}

PWSP_INTERNAL void pwsp_sleeper_destroy(pwsp_sleeper *sleeper) {
    if (pwsp_sleeper_is_here(sleeper)) {
        pwsp_cond_destroy(&sleeper->cond);
        pwsp_mutex_destroy(&sleeper->mutex);
    }
}

PWSP_INTERNAL void pwsp_sleeper_begin(pwsp_sleeper *sleeper, uint32_t what) {
    PTOWSP_ASSERT(what != 0);
    pwsp_mutex_lock(&sleeper->mutex);
    pwsp_store_seq_cst(&sleeper->asleep, what);  // (1)
}

PWSP_INTERNAL void pwsp_sleeper_end(pwsp_sleeper *sleeper, bool has_something, uint64_t limit_ns) {
#if PWSP_HAS_THREADS
    if (!has_something && limit_ns > 0) {
        pwsp_cond_wait_for(&sleeper->cond, &sleeper->mutex, limit_ns);
    }
    while (!has_something && limit_ns == 0 && pwsp_load_relaxed(&sleeper->asleep)) {
        pwsp_cond_wait(&sleeper->cond, &sleeper->mutex);
    }
#else
    (void)limit_ns;
#endif
    pwsp_store_relaxed(&sleeper->asleep, 0u);
    pwsp_mutex_unlock(&sleeper->mutex);
#if !PWSP_HAS_THREADS
    if (!has_something) {  // nobody can sleep: the caller looks again
        pwsp_thread_yield();
    }
#endif
}

PWSP_INTERNAL bool pwsp_sleeper_rouse(pwsp_sleeper *sleeper, uint32_t what) {
    pwsp_mutex_lock(&sleeper->mutex);
    bool is_asleep = (pwsp_load_relaxed(&sleeper->asleep) & what) != 0;
    if (is_asleep) {
        pwsp_store_relaxed(&sleeper->asleep, 0u);
        pwsp_cond_signal(&sleeper->cond);
    }
    pwsp_mutex_unlock(&sleeper->mutex);
    return is_asleep;
}

// -- several threads ------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_sleepers_init(pwsp_sleepers *sleepers) {
    pwsp_mutex_init(&sleepers->mutex);
    sleepers->first = NULL;
    sleepers->count = 0;
    sleepers->process = pwsp_process_id();
}

PWSP_INTERNAL void pwsp_sleepers_destroy(pwsp_sleepers *sleepers) {
    if (sleepers->process == pwsp_process_id()) {
        PTOWSP_ASSERT(pwsp_load_relaxed(&sleepers->count) == 0 && !sleepers->first);
        pwsp_mutex_destroy(&sleepers->mutex);
    }
}

PWSP_INTERNAL void pwsp_sleepers_begin(pwsp_sleepers *sleepers) {
    pwsp_mutex_lock(&sleepers->mutex);
    pwsp_fetch_add_seq_cst(&sleepers->count, 1u);
}

PWSP_INTERNAL void pwsp_sleepers_end(pwsp_sleepers *sleepers, bool has_something) {
#if PWSP_HAS_THREADS
    if (!has_something) {
        pwsp_sleeping own;
        pwsp_cond_init(&own.cond);
        own.is_called = false;
        own.next = sleepers->first;
        sleepers->first = &own;
        while (!own.is_called) {
            pwsp_cond_wait(&own.cond, &sleepers->mutex);
        }
        pwsp_cond_destroy(&own.cond);  // the caller has signalled under the lock
        pwsp_mutex_unlock(&sleepers->mutex);
        return;  // it has been taken off the list and the count
    }
#endif
    pwsp_fetch_sub_seq_cst(&sleepers->count, 1u);
    pwsp_mutex_unlock(&sleepers->mutex);
#if !PWSP_HAS_THREADS
    if (!has_something) {
        pwsp_thread_yield();
    }
#endif
}

PWSP_INTERNAL void pwsp_sleepers_call(pwsp_sleepers *sleepers, bool all) {
    bool is_last = false;
    while (sleepers->first && !is_last) {  // none: another waker was faster
        pwsp_sleeping *sleeping = sleepers->first;
        sleepers->first = sleeping->next;
        pwsp_fetch_sub_seq_cst(&sleepers->count, 1u);
        sleeping->is_called = true;
        pwsp_cond_signal(&sleeping->cond);
        is_last = !all;
    }
}

// -- spinning -------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_nap(uint64_t ns) {
#if PWSP_HAS_THREADS
    pwsp_mutex mutex;
    pwsp_cond cond;
    pwsp_mutex_init(&mutex);
    pwsp_cond_init(&cond);
    pwsp_mutex_lock(&mutex);
    pwsp_cond_wait_for(&cond, &mutex, ns);  // nobody signals it
    pwsp_mutex_unlock(&mutex);
    pwsp_cond_destroy(&cond);
    pwsp_mutex_destroy(&mutex);
#else
    (void)ns;
    pwsp_thread_yield();
#endif
}
