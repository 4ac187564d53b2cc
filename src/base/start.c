// Starting and waiting; see start.h.

#include "start.h"

static void *pwsp_start_main(void *arg) {
    pwsp_start *start = (pwsp_start *)arg;
    for (;;) {
        uint32_t state = pwsp_load_seq_cst(&start->state);  // (2), pairs with (1)
        if (state == PWSP_START_STOP) {
            return NULL;
        }
        if (state == PWSP_START_ASKED) {
            start->status = start->fn(start->user);
            pwsp_store_seq_cst(&start->state, (uint32_t)PWSP_START_DONE);  // (3), pairs with (4)
            pwsp_sleeper_wake(&start->done, PWSP_SLEEPER_ALL);
        }
        pwsp_sleeper_begin(&start->asked, PWSP_SLEEPER_ALL);
        state = pwsp_load_seq_cst(&start->state);
        bool has_news = state == PWSP_START_ASKED || state == PWSP_START_STOP;
        pwsp_sleeper_end(&start->asked, has_news, 0);
    }
}

static void pwsp_start_tell(pwsp_start *start, uint32_t state) {
    pwsp_store_seq_cst(&start->state, state);  // (1)
    pwsp_sleeper_wake(&start->asked, PWSP_SLEEPER_ALL);
}

static void pwsp_start_free(pwsp_start *start) {
    pwsp_memory memory = start->context->memory;
    pwsp_sleeper_destroy(&start->done);
    pwsp_sleeper_destroy(&start->asked);
    PWSP_FREE(&memory, start, 1);
}

PWSP_INTERNAL ptowsp_status pwsp_start_reserve(pwsp_start **start, ptowsp_context *context,
                                               const char *what) {
    pwsp_start *made = *start;
    if (made && pwsp_sleeper_is_here(&made->done)) {
        return PTOWSP_OK;
    }
    made = made ? made : (pwsp_start *)pwsp_memory_alloc(&context->memory, sizeof *made);
    if (!made) {
        return PWSP_NO_MEMORY(context, "%s: out of memory", what);
    }
    PTOWSP_ASSERT(!made->is_pending);
    *start = NULL;
    made->context = context;
    made->state = PWSP_START_IDLE;
    pwsp_sleeper_init(&made->asked);
    pwsp_sleeper_init(&made->done);
    if (!pwsp_thread_start(&made->thread, pwsp_start_main, made)) {
        pwsp_start_free(made);
        return pwsp_fail(context, PWSP_HAS_THREADS ? PTOWSP_SYSTEM_FAILED : PTOWSP_UNSUPPORTED,
                         PTOWSP_NO_INDEX,
                         PWSP_HAS_THREADS ? "%s: a thread could not be started"
                                          : "%s: this build has no threads to start on",
                         what);
    }
    *start = made;
    return PTOWSP_OK;
}

PWSP_INTERNAL void pwsp_start_destroy(pwsp_start *start) {
    if (start) {
        if (pwsp_sleeper_is_here(&start->done)) {
            PTOWSP_ASSERT(!start->is_pending);
            pwsp_start_tell(start, PWSP_START_STOP);
            pwsp_thread_join(start->thread);
        }
        pwsp_start_free(start);
    }
}

PWSP_INTERNAL size_t pwsp_start_bytes(const pwsp_start *start) {
    return start ? sizeof *start : 0;
}

PWSP_INTERNAL void pwsp_start_go(pwsp_start *start, bool is_busy, pwsp_start_fn fn, void *user) {
    PTOWSP_ASSERT(!start->is_pending && fn);
    memset(&start->inner, 0, sizeof start->inner);
    start->inner.memory = start->context->memory;
    start->inner.pool = start->context->pool;
    start->inner.index = PTOWSP_NO_INDEX;
    start->inner.busy = is_busy;
    start->fn = fn;
    start->user = user;
    start->is_pending = true;
    pwsp_start_tell(start, PWSP_START_ASKED);
}

PWSP_INTERNAL ptowsp_status pwsp_start_refuse(ptowsp_context *context, bool is_running,
                                              const char *what) {
    return is_running
               ? pwsp_fail_busy(context)
               : PWSP_REFUSE(context, "%s: it has not been started, or has been waited for", what);
}

static bool pwsp_start_is_done(const pwsp_start *start) {
    return pwsp_load_seq_cst(&start->state) == PWSP_START_DONE;  // (4)
}

PWSP_INTERNAL bool pwsp_start_is_under_way(const pwsp_start *start) {
    return pwsp_start_is_pending(start) && !pwsp_start_is_done(start);
}

PWSP_INTERNAL bool pwsp_start_is_lost(const pwsp_start *start) {
    return pwsp_start_is_under_way(start) && !pwsp_sleeper_is_here(&start->done);
}

PWSP_INTERNAL ptowsp_status pwsp_start_wait(pwsp_start *start, const char *what) {
    if (pwsp_start_is_lost(start)) {
        return pwsp_fail(
            start->context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
            "%s: the parent of this process executes it; here it can only be destroyed", what);
    }
    while (!pwsp_start_is_done(start)) {
        pwsp_sleeper_begin(&start->done, PWSP_SLEEPER_ALL);
        pwsp_sleeper_end(&start->done, pwsp_start_is_done(start), 0);
    }
    start->is_pending = false;
    const ptowsp_context *inner = &start->inner;
    if (inner->status != PTOWSP_OK && inner->status == start->status) {
        pwsp_fail(start->context, inner->status, inner->index, "%s", inner->text);
    }
    return start->status;
}
