// A sleeper: one thread sleeps until another has something for it.
//
//      sleeper                               waker
//      begin: locks; asleep = what (1)       makes something visible, seq_cst (3)
//      looks whether there is something,     wake: reads asleep (4); if it matches the offer:
//          seq_cst (2)                           locks, asleep = 0, signals, unlocks
//      end: waits until asleep is 0,
//          if there was nothing; unlocks
//
// All four are sequentially consistent: either (2) sees what (3) has made visible, or (4) sees (1).
// `what` is a set of bits: a waker skips sleepers that cannot use its offer. It clears the bits, so
// a second waker moves on to the next sleeper. tests/models/handshake.pml models this protocol.
//
// A child of fork() has none of its parent's threads, and any of them may have held a lock. So the
// owner of threads asks a sleeper of theirs whether it is of this process. One that is not may be
// made again, and destroying it does nothing.

#ifndef PWSP_SLEEPER_H
#define PWSP_SLEEPER_H

#include "atomic.h"
#include "os.h"

typedef struct pwsp_sleeper {
    pwsp_mutex mutex;  // protects the sleep, nothing else
    pwsp_cond cond;
    uint32_t asleep;   // atomic; 0: awake
    uint32_t process;  // that has made it
} pwsp_sleeper;

#define PWSP_SLEEPER_ALL UINT32_MAX

PWSP_INTERNAL void pwsp_sleeper_init(pwsp_sleeper *sleeper);
PWSP_INTERNAL void pwsp_sleeper_destroy(pwsp_sleeper *sleeper);

PWSP_INTERNAL bool pwsp_sleeper_is_here(const pwsp_sleeper *sleeper);  // of this process

PWSP_INTERNAL void pwsp_sleeper_begin(pwsp_sleeper *sleeper, uint32_t what);

// limit_ns 0: until woken.
PWSP_INTERNAL void pwsp_sleeper_end(pwsp_sleeper *sleeper, bool has_something, uint64_t limit_ns);

// The part of waking that is not rare.
PWSP_INTERNAL bool pwsp_sleeper_rouse(pwsp_sleeper *sleeper, uint32_t what);

// Says whether it was asleep for that.
PWSP_INLINE bool pwsp_sleeper_wake(pwsp_sleeper *sleeper, uint32_t what) {
    return (pwsp_load_seq_cst(&sleeper->asleep) & what) && pwsp_sleeper_rouse(sleeper, what);
}

// -- several threads ------------------------------------------------------------------------------
//
// The same with a count in place of `asleep`. A waker takes those that it calls off the count: a thread
// takes tens of microseconds to come, and until then others need not lock and call again. A call is
// for those that slept at the time, not for a thread that comes later: it might have no use for what
// is offered, while one that has a use would sleep on.
//
// Each thread sleeps on a condition of its own, in a list. Where several wait on one, glibc 2.25 to 2.40
// may lose a signal (its bug 25847), and a thread that has been taken off the count is not called again.

typedef struct pwsp_sleeping {
    pwsp_cond cond;
    bool is_called;
    struct pwsp_sleeping *next;
} pwsp_sleeping;

typedef struct pwsp_sleepers {
    pwsp_mutex mutex;      // protects the sleep, and state of the owner
    pwsp_sleeping *first;  // under the lock: the one that sleeps for the shortest time
    uint32_t process;      // that has made it
    char padding[PWSP_FALSE_SHARING];
    uint32_t count;  // atomic: threads that sleep, or are about to, without those called
    char padding_after[PWSP_FALSE_SHARING];
} pwsp_sleepers;

PWSP_INTERNAL void pwsp_sleepers_init(pwsp_sleepers *sleepers);
PWSP_INTERNAL void pwsp_sleepers_destroy(pwsp_sleepers *sleepers);

// Locks. Then the thread looks, and ends: sleeps if there was nothing, perhaps for no time; unlocks.
PWSP_INTERNAL void pwsp_sleepers_begin(pwsp_sleepers *sleepers);
PWSP_INTERNAL void pwsp_sleepers_end(pwsp_sleepers *sleepers, bool has_something);

// Calls one, or all, under the lock.
PWSP_INTERNAL void pwsp_sleepers_call(pwsp_sleepers *sleepers, bool all);

// The part of waking that is not rare: are there any?
PWSP_INLINE bool pwsp_sleepers_are(const pwsp_sleepers *sleepers) {
    return pwsp_load_seq_cst(&sleepers->count) != 0;
}

PWSP_INLINE void pwsp_sleepers_wake(pwsp_sleepers *sleepers, bool all) {
    if (pwsp_sleepers_are(sleepers)) {
        pwsp_mutex_lock(&sleepers->mutex);
        pwsp_sleepers_call(sleepers, all);
        pwsp_mutex_unlock(&sleepers->mutex);
    }
}

// -- spinning -------------------------------------------------------------------------------------

// Sleeps for about so long: for what nobody announces.
PWSP_INTERNAL void pwsp_nap(uint64_t ns);

// Waits a little in round *round, which it counts: a pause, later a moment for other threads. False
// when it is time to sleep; the rounds restart then.
PWSP_INLINE bool pwsp_spin(uint32_t *round, uint32_t spin_count, uint32_t yield_count) {
    if (*round < spin_count) {
        pwsp_pause();
    } else if (*round < spin_count + yield_count) {
        pwsp_thread_yield();
    } else {
        *round = 0;
        return false;
    }
    (*round)++;
    return true;
}

#endif
