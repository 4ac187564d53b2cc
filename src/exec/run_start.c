// Runs that execute on a thread of their own; see start.h.
//
// A started run and its bindings have the inner context in place of the caller's. It is set and put
// back on the caller's thread, when nothing executes. On lanes the caller's context is entered as
// well, since these are its lanes; on a device, whose calls then say BUSY, too.

#include "run.h"

#include "../base/atomic.h"

static void pwsp_run_set_context(ptowsp_run *run, ptowsp_context *context) {
    run->context = context;
    run->bindings.context = context;
    run->walk.comm.context = context;
    if (run->device_context) {
        *run->device_context = context;
    }
}

PWSP_INTERNAL void pwsp_run_end_start(ptowsp_run *run) {
    pwsp_run_set_context(run, run->start->context);
    if (run->has_lanes || run->device_context) {
        pwsp_context_leave(run->context);
    }
    run->device_context = NULL;
    run->has_lanes = false;
}

PWSP_INTERNAL ptowsp_status pwsp_run_start_by(ptowsp_run *run, const ptowsp_run_options *options,
                                              pwsp_start_fn fn, void *user) {
    ptowsp_status status = pwsp_start_reserve(&run->start, run->context, "run");
    if (status == PTOWSP_OK) {
        run->started = *options;
        pwsp_run_set_context(run, &run->start->inner);
        pwsp_start_go(run->start, run->device_context != NULL, fn, user);
    }
    return status;
}

static ptowsp_status pwsp_run_started(void *user) {
    ptowsp_run *run = (ptowsp_run *)user;
    ptowsp_status status = pwsp_run_execute_here(run, &run->started);
    pwsp_run_give_up(run, status);
    return status;
}

ptowsp_status ptowsp_run_start(ptowsp_run *run, const ptowsp_run_options *options) {
    PTOWSP_ASSERT(run);
    ptowsp_run_options chosen = pwsp_run_options(options);
    // A run that is running may have the inner context, which must not be looked at.
    if (pwsp_load_relaxed(&run->is_running) || pwsp_load_relaxed(&run->context->busy) ||
        !pwsp_run_claim(run, &chosen)) {
        return pwsp_fail_busy(run->owner);
    }
    ptowsp_status status = pwsp_run_check_options(run, &chosen);
    run->has_lanes = false;
    run->device_context = NULL;
    if (status == PTOWSP_OK && pwsp_run_is_on_lanes(&chosen)) {
        run->has_lanes = pwsp_context_enter(run->context);
        status = run->has_lanes ? PTOWSP_OK : pwsp_fail_busy(run->owner);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_run_start_by(run, &chosen, pwsp_run_started, run);
    }
    if (status != PTOWSP_OK) {
        if (run->has_lanes) {
            pwsp_context_leave(run->context);
        }
        pwsp_run_give_up(run, status);
        pwsp_run_leave(run);
    }
    return status;
}

ptowsp_status ptowsp_run_wait(ptowsp_run *run) {
    PTOWSP_ASSERT(run);
    if (!pwsp_start_is_pending(run->start)) {
        return pwsp_start_refuse(run->owner, pwsp_load_relaxed(&run->is_running), "run");
    }
    ptowsp_status status = pwsp_start_wait(run->start, "run");
    if (!pwsp_start_is_pending(run->start)) {
        pwsp_run_end_start(run);
        pwsp_run_leave(run);
    }
    return status;
}

ptowsp_status ptowsp_run_poll(ptowsp_run *run) {
    PTOWSP_ASSERT(run);
    return pwsp_start_is_busy(run->start) ? pwsp_fail_busy(run->owner) : ptowsp_run_wait(run);
}
