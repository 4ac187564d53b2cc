// A context holds memory, lanes and the last error. In a parallel-for lanes take ranges from a
// queue.
//
// Ranges shrink as work runs out (guided self-scheduling, Polychronopoulos and Kuck 1987): a lane
// takes an eighth of its even share of the remainder. Early ranges are large, so that the shared
// cursor is touched rarely; the last ones are single items, so that lanes end together. For n items
// and p lanes that is about 8 p ln(n / 8p) ranges.

#include "context.h"

#include "atomic.h"
#include "os.h"
#include "text.h"

PWSP_INTERNAL ptowsp_status pwsp_fail(ptowsp_context *context, ptowsp_status status, uint64_t index,
                                      const char *format, ...) {
    PWSP_TEXT_FORMAT_INTO(context->text, format);
    context->status = status;
    context->index = index;
    pwsp_store_release(
        &context->last,
        (uint32_t)(pwsp_load_relaxed(&context->busy) ? PWSP_LAST_KEPT : PWSP_LAST_TEXT));
    return status;
}

PWSP_INTERNAL ptowsp_status pwsp_fail_null(ptowsp_context *context, const char *what) {
    return PWSP_REFUSE(context, "%s is NULL", what);
}

PWSP_INTERNAL ptowsp_status pwsp_fail_busy(ptowsp_context *context) {
    uint32_t last = PWSP_LAST_TEXT;
    pwsp_cas_relaxed(&context->last, &last, (uint32_t)PWSP_LAST_BUSY);
    return PTOWSP_BUSY;
}

PWSP_INTERNAL bool pwsp_queue_take(pwsp_queue *queue, uint64_t *out_begin, uint64_t *out_end) {
    uint64_t begin = pwsp_load_relaxed(&queue->cursor);
    while (begin < queue->item_count) {
        uint64_t left = queue->item_count - begin;
        uint64_t share = queue->grain ? queue->grain : left / (UINT64_C(8) * queue->lane_count);
        uint64_t end = begin + pwsp_min_u64(left, pwsp_max_u64(share, 1));
        if (pwsp_cas_relaxed(&queue->cursor, &begin, end)) {
            *out_begin = begin;
            *out_end = end;
            return true;
        }
    }
    return false;
}

// Checks the thread fields of a description and fills in its lane count.
static ptowsp_status pwsp_context_desc_check(ptowsp_context_desc *desc) {
    bool is_user = desc->threads == PTOWSP_THREADS_USER;
    if (is_user != (desc->run_lanes != NULL) || desc->lane_count > PTOWSP_LANE_COUNT_MAX) {
        return PTOWSP_INVALID_PARAMS;
    }
    switch (desc->threads) {
    case PTOWSP_THREADS_SERIAL:
        desc->lane_count = desc->lane_count ? desc->lane_count : 1;
        return desc->lane_count == 1 ? PTOWSP_OK : PTOWSP_INVALID_PARAMS;
    case PTOWSP_THREADS_OWN:
        desc->lane_count = desc->lane_count ? desc->lane_count : ptowsp_processor_count();
        return PWSP_HAS_THREADS ? PTOWSP_OK : PTOWSP_UNSUPPORTED;
    case PTOWSP_THREADS_WORKERS:
        return !PWSP_HAS_THREADS  ? PTOWSP_UNSUPPORTED
               : desc->lane_count ? PTOWSP_OK
                                  : PTOWSP_INVALID_PARAMS;
    case PTOWSP_THREADS_USER: return desc->lane_count ? PTOWSP_OK : PTOWSP_INVALID_PARAMS;
    case PTOWSP_THREADS_FORCE_INT: break;
    }
    return PTOWSP_INVALID_PARAMS;
}

ptowsp_status ptowsp_context_create(const ptowsp_context_desc *desc, ptowsp_context **out_context) {
    if (!out_context) {
        return PTOWSP_INVALID_PARAMS;
    }
    *out_context = NULL;
    PWSP_ZERO(ptowsp_context_desc, checked);
    if (desc) {
        checked = *desc;
    }
    ptowsp_status status = pwsp_context_desc_check(&checked);
    if (status != PTOWSP_OK) {
        return status;
    }
    pwsp_memory memory = pwsp_memory_make(checked.resize, checked.resize_user);
    ptowsp_context *context = (ptowsp_context *)pwsp_memory_alloc(&memory, sizeof(ptowsp_context));
    if (!context) {
        return PTOWSP_OUT_OF_MEMORY;
    }
    context->memory = memory;
    context->index = PTOWSP_NO_INDEX;
    status = pwsp_pool_create(&memory, &checked, &context->pool);
    if (status != PTOWSP_OK) {
        PWSP_FREE(&memory, context, 1);
        return status;
    }
    *out_context = context;
    return PTOWSP_OK;
}

void ptowsp_context_destroy(ptowsp_context *context) {
    if (context) {
        PTOWSP_ASSERT(!pwsp_load_relaxed(&context->busy));
        PTOWSP_ASSERT(context->owned_count == 0 &&
                      "a context destroyed before what was made from it");
        pwsp_memory memory = context->memory;
        pwsp_pool_destroy(context->pool);
        PWSP_FREE(&memory, context, 1);
    }
}

PWSP_INTERNAL void pwsp_context_own(ptowsp_context *context) {
    context->owned_count++;
}

PWSP_INTERNAL void pwsp_context_disown(ptowsp_context *context) {
    PTOWSP_ASSERT(context->owned_count > 0 && "destroyed twice, or of another context");
    context->owned_count--;
}

ptowsp_error ptowsp_context_error(const ptowsp_context *context) {
    PTOWSP_ASSERT(context);
    ptowsp_error error = {context->status, context->index, context->text};
    ptowsp_error busy = {PTOWSP_BUSY, PTOWSP_NO_INDEX,
                         "busy: the context, or the object of the call, is running something"};
    return pwsp_load_acquire(&context->last) == PWSP_LAST_BUSY ? busy : error;
}

ptowsp_status ptowsp_context_fail(ptowsp_context *context, ptowsp_status status, uint64_t index,
                                  const char *text) {
    PTOWSP_ASSERT(context && status != PTOWSP_OK);
    return pwsp_fail(context, status, index, "%s", text ? text : ptowsp_status_text(status));
}

uint32_t ptowsp_context_lane_count(const ptowsp_context *context) {
    PTOWSP_ASSERT(context);
    return pwsp_pool_lane_count(context->pool);
}

typedef struct pwsp_for_job {
    pwsp_queue queue;
    ptowsp_range_fn fn;
    void *user;
} pwsp_for_job;

static void pwsp_for_lane(void *arg, uint32_t lane) {
    pwsp_for_job *job = (pwsp_for_job *)arg;
    uint64_t begin, end;
    while (pwsp_queue_take(&job->queue, &begin, &end)) {
        job->fn(job->user, begin, end, lane);
    }
}

PWSP_INTERNAL bool pwsp_context_enter(ptowsp_context *context) {
    return pwsp_exchange_acquire(&context->busy, 1u) == 0;
}

PWSP_INTERNAL void pwsp_context_leave(ptowsp_context *context) {
    if (pwsp_load_relaxed(&context->last) == PWSP_LAST_KEPT) {
        pwsp_store_relaxed(&context->last, (uint32_t)PWSP_LAST_TEXT);
    }
    pwsp_store_release(&context->busy, 0u);
}

PWSP_INTERNAL ptowsp_status pwsp_context_run_lanes(ptowsp_context *context, ptowsp_lane_fn lane,
                                                   void *job) {
    PTOWSP_ASSERT(pwsp_load_relaxed(&context->busy) && lane);
    if (!pwsp_pool_run(context->pool, lane, job)) {
        return pwsp_fail(context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                         "threads: run_lanes did not call each of its %u lanes once",
                         (unsigned)pwsp_pool_lane_count(context->pool));
    }
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_context_run(ptowsp_context *context, uint64_t item_count,
                                             uint64_t grain, ptowsp_range_fn fn, void *user) {
    PTOWSP_ASSERT(fn);
    if (item_count == 0) {
        return PTOWSP_OK;
    }
    uint32_t lane_count = pwsp_pool_lane_count(context->pool);
    pwsp_for_job job = {{0, item_count, grain, lane_count}, fn, user};
    return pwsp_context_run_lanes(context, pwsp_for_lane, &job);
}

ptowsp_status ptowsp_parallel_for(ptowsp_context *context, uint64_t item_count, uint64_t grain,
                                  ptowsp_range_fn fn, void *user) {
    PTOWSP_ASSERT(context);
    if (!pwsp_context_enter(context)) {
        return pwsp_fail_busy(context);
    }
    ptowsp_status status = fn ? pwsp_context_run(context, item_count, grain, fn, user)
                              : PWSP_REFUSE(context, "parallel_for: fn is NULL");
    pwsp_context_leave(context);
    return status;
}

// A worker that is refused does not write the text during a session: lead's calls would find BUSY.
#define PWSP_REFUSE_WORKER(context, ...)                                                           \
    do {                                                                                           \
        if (!pwsp_pool_has_session(context->pool) && pwsp_context_enter(context)) {                \
            PWSP_REFUSE(context, "workers: " __VA_ARGS__);                                         \
            pwsp_context_leave(context);                                                           \
        }                                                                                          \
        return PTOWSP_INVALID_PARAMS;                                                              \
    } while (0)

ptowsp_status ptowsp_context_run_worker(ptowsp_context *context, uint32_t worker,
                                        uint32_t worker_count, ptowsp_lead_fn lead, void *user) {
    PTOWSP_ASSERT(context);
    const uint32_t most = pwsp_pool_lane_count(context->pool);
    const bool is_lent = pwsp_pool_is_lent(context->pool);
    if (!lead) {
        PWSP_REFUSE_WORKER(context, "lead is NULL");
    }
    if (!is_lent && worker_count > 1) {
        PWSP_REFUSE_WORKER(context, "the context's threads are not PTOWSP_THREADS_WORKERS");
    }
    if (worker_count == 0 || worker_count > most) {
        PWSP_REFUSE_WORKER(context, "worker_count %u is not in 1 to %u, the context's lanes",
                           (unsigned)worker_count, (unsigned)most);
    }
    if (worker >= worker_count) {
        PWSP_REFUSE_WORKER(context, "worker %u is not below worker_count %u", (unsigned)worker,
                           (unsigned)worker_count);
    }
    if (!is_lent) {
        return lead(user);
    }
    bool is_refused = false;
    const ptowsp_status status =
        pwsp_pool_lend(context->pool, worker, worker_count, lead, user, &is_refused);
    return is_refused ? pwsp_fail_busy(context) : status;
}
