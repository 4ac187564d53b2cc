// A sleeper: one thread sleeps until another has something for it.
//
//      sleeper                               waker
//      begin: locks; asleep = what (1)       makes something visible, seq_cst (3)
//      looks whether there is something,     wake: reads asleep (4); if it is what is offered:
//          seq_cst (2)                           locks, asleep = 0, signals, unlocks
//      end: waits until asleep is 0,
//          if there was nothing; unlocks
//
// All four are sequentially consistent: either (2) sees what (3) has made visible, or (4) sees (1).
// `what` is a set of bits: a waker skips sleepers that cannot use its offer. It clears the bits, so
// a second waker goes on to the next sleeper. tests/models/handshake.pml models this protocol.

#ifndef PWSP_SLEEPER_H
#define PWSP_SLEEPER_H

#include "atomic.h"
#include "os.h"

typedef struct pwsp_sleeper {
    pwsp_mutex mutex;  // protects the sleep, nothing else
    pwsp_cond cond;
    uint32_t asleep;  // atomic; 0: awake
} pwsp_sleeper;

#define PWSP_SLEEPER_ALL UINT32_MAX

PWSP_INTERNAL void pwsp_sleeper_init(pwsp_sleeper *sleeper);
PWSP_INTERNAL void pwsp_sleeper_destroy(pwsp_sleeper *sleeper);

PWSP_INTERNAL void pwsp_sleeper_begin(pwsp_sleeper *sleeper, uint32_t what);

// limit_ns 0: until woken.
PWSP_INTERNAL void pwsp_sleeper_end(pwsp_sleeper *sleeper, bool has_something, uint64_t limit_ns);

// The part of waking that is not rare.
PWSP_INTERNAL bool pwsp_sleeper_rouse(pwsp_sleeper *sleeper, uint32_t what);

// Says whether it was asleep for that.
PWSP_INLINE bool pwsp_sleeper_wake(pwsp_sleeper *sleeper, uint32_t what) {
    return (pwsp_load_seq_cst(&sleeper->asleep) & what) && pwsp_sleeper_rouse(sleeper, what);
}

#endif
