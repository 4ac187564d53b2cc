// How an execution ends early: cancelled by any thread, or by its time limit.
//
// One word says whether there is anything to look at, so a task costs one relaxed load. Nobody is
// woken: a thread that sleeps waits for a kernel that has begun, or for a lane that is about to run
// ready tasks. Those return or are left out, and wake it.
//
// An execution that is part of a larger one, such as a search, ends when the outer one does: it
// checks the outer halt each time.

#ifndef PWSP_HALT_H
#define PWSP_HALT_H

#include "atomic.h"
#include "base.h"

#if !defined(PTOWSP_ONLY_PLAN)

#define PWSP_HALT_CANCELLED 1u
#define PWSP_HALT_TIMED_OUT 2u
#define PWSP_HALT_LIMITED   4u  // the clock must be looked at
#define PWSP_HALT_INNER     8u  // the outer one must be looked at

typedef struct pwsp_halt {
    struct pwsp_halt *outer;               // it ends this one as well; or NULL
    uint32_t word;                         // atomic
    PWSP_ALIGNAS(8) uint64_t deadline_ns;  // of ptowsp_clock_ns; if limited
} pwsp_halt;

// Before an execution, on the thread that starts it. Forgets earlier cancellations.
PWSP_INLINE void pwsp_halt_begin(pwsp_halt *halt, uint64_t time_limit_ns) {
    uint64_t now = time_limit_ns ? ptowsp_clock_ns() : 0;
    halt->deadline_ns = time_limit_ns > UINT64_MAX - now ? UINT64_MAX : now + time_limit_ns;
    pwsp_store_seq_cst(&halt->word, (time_limit_ns ? PWSP_HALT_LIMITED : 0u) |
                                        (halt->outer ? PWSP_HALT_INNER : 0u));
}

PWSP_INLINE void pwsp_halt_cancel(pwsp_halt *halt) {
    pwsp_fetch_or_seq_cst(&halt->word, PWSP_HALT_CANCELLED);
}

// CANCELLED, TIMED_OUT, or OK; does not look at the clock.
PWSP_INLINE ptowsp_status pwsp_halt_status(const pwsp_halt *halt) {
    uint32_t word = pwsp_load_relaxed(&halt->word);
    return word & PWSP_HALT_CANCELLED   ? PTOWSP_CANCELLED
           : word & PWSP_HALT_TIMED_OUT ? PTOWSP_TIMED_OUT
                                        : PTOWSP_OK;
}

// The part of pwsp_halt_is that is rare.
static PWSP_UNUSED PWSP_COLD bool pwsp_halt_look(pwsp_halt *halt) {
    uint32_t word = pwsp_load_relaxed(&halt->word), ends = 0;
    if (pwsp_halt_status(halt) != PTOWSP_OK) {
        return true;
    }
    if ((word & PWSP_HALT_INNER) && pwsp_load_relaxed(&halt->outer->word) != 0) {
        pwsp_halt_look(halt->outer);
        ends = pwsp_load_relaxed(&halt->outer->word) & (PWSP_HALT_CANCELLED | PWSP_HALT_TIMED_OUT);
    }
    if ((word & PWSP_HALT_LIMITED) && ptowsp_clock_ns() >= halt->deadline_ns) {
        ends |= PWSP_HALT_TIMED_OUT;
    }
    if (ends) {
        pwsp_fetch_or_seq_cst(&halt->word, ends);
    }
    return pwsp_halt_status(halt) != PTOWSP_OK;
}

// The status of a failed kernel, one that returned more than PTOWSP_CYCLES_MAX.
PWSP_INLINE ptowsp_status pwsp_kernel_status(ptowsp_cycles result) {
    PTOWSP_ASSERT(result > PTOWSP_CYCLES_MAX);
    bool is_status = (int64_t)result >= PTOWSP_RANK_FAILED;  // the last one
    return is_status ? (ptowsp_status)(int64_t)result : PTOWSP_KERNEL_FAILED;
}

// Must nothing more be begun?
PWSP_FORCE_INLINE bool pwsp_halt_is(pwsp_halt *halt) {
    return PWSP_UNLIKELY(pwsp_load_relaxed(&halt->word) != 0) && pwsp_halt_look(halt);
}

#endif  // PTOWSP_ONLY_PLAN

#endif
