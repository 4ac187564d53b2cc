// Starting: an execution on a thread of its own, which its owner polls or waits for.
//
//      owner's thread                       its thread, asleep between executions
//      begin: inner context, state IDLE
//      go: state ASKED (1)                  sees ASKED (2), calls fn
//                                           state DONE (3)
//      poll or wait: sees DONE (4)
//
// (1) releases the owner's preparation to (2), (3) releases the execution to (4). While the
// execution runs, it uses the inner context, which shares the owner's memory and lanes but has its
// own error. So the owner may use its context meanwhile.
//
// A child of fork() has no such thread: the next start makes one. An execution that was under way
// at the fork is lost to the child. It stays pending there, as the state that it was changing is
// unknown.

#ifndef PWSP_START_H
#define PWSP_START_H

#include "context.h"
#include "sleeper.h"

typedef ptowsp_status (*pwsp_start_fn)(void *user);

enum { PWSP_START_IDLE = 0, PWSP_START_ASKED, PWSP_START_DONE, PWSP_START_STOP };

typedef struct pwsp_start {
    ptowsp_context *context;  // the owner's
    ptowsp_context inner;
    pwsp_thread thread;
    pwsp_start_fn fn;
    void *user;
    ptowsp_status status;  // of the execution; see (3)
    bool is_pending;       // it has been started and not been waited for; the owner's alone
    uint32_t state;        // atomic
    pwsp_sleeper asked;    // the thread sleeps here
    pwsp_sleeper done;     // the owner sleeps here
} pwsp_start;

// Makes the thread, if this process has none. An error in the context otherwise; `what` begins its
// text.
PWSP_INTERNAL ptowsp_status pwsp_start_reserve(pwsp_start **start, ptowsp_context *context,
                                               const char *what);
PWSP_INTERNAL void pwsp_start_destroy(pwsp_start *start);  // NULL is ignored; not pending, or lost
PWSP_INTERNAL size_t pwsp_start_bytes(const pwsp_start *start);

PWSP_INLINE bool pwsp_start_is_pending(const pwsp_start *start) {
    return start && start->is_pending;
}

// Calls fn on the thread. is_busy: the inner context has been entered.
PWSP_INTERNAL void pwsp_start_go(pwsp_start *start, bool is_busy, pwsp_start_fn fn, void *user);

// Waiting without a pending start: BUSY from within an execution, an error in the context
// otherwise.
PWSP_INTERNAL ptowsp_status pwsp_start_refuse(ptowsp_context *context, bool is_running,
                                              const char *what);

// Is it pending, and not done? And, in a child of fork(), lost?
PWSP_INTERNAL bool pwsp_start_is_under_way(const pwsp_start *start);
PWSP_INTERNAL bool pwsp_start_is_lost(const pwsp_start *start);

// Would waiting for it take time?
PWSP_INLINE bool pwsp_start_is_busy(const pwsp_start *start) {
    return pwsp_start_is_under_way(start) && !pwsp_start_is_lost(start);
}

// Waits, and returns the status of fn. Its error becomes the error of the owner's context. It stays
// pending only if it is lost: then the error is about waiting, and its text begins with `what`.
PWSP_INTERNAL ptowsp_status pwsp_start_wait(pwsp_start *start, const char *what);

#endif
