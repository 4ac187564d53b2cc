// The context: memory, lanes, the last error, and queues of items that lanes share.

#ifndef PWSP_CONTEXT_H
#define PWSP_CONTEXT_H

#include "base.h"
#include "halt.h"
#include "pool.h"
#include "text.h"

// BUSY may come from any thread, while another one owns the text. So it is a mark alone, and no mark
// takes the place of a failure that happened in the same execution.
typedef enum pwsp_last { PWSP_LAST_TEXT = 0, PWSP_LAST_BUSY, PWSP_LAST_KEPT } pwsp_last;

struct ptowsp_context {
    pwsp_memory memory;
    pwsp_pool *pool;
    uint32_t busy;         // atomic: a job is running
    uint64_t owned_count;  // objects made from it and not destroyed
#if !defined(PTOWSP_ONLY_PLAN)
    // Of the current schedule search; may be cancelled at any time.
    pwsp_halt search;
#endif  // PTOWSP_ONLY_PLAN

    uint32_t last;         // atomic, pwsp_last: which failure was the last one
    ptowsp_status status;  // of the last failure with a text of its own
    uint64_t index;
    char text[PWSP_ERROR_TEXT_MAX];
};

// The commonest failures, which concern no index: a user's mistake, and memory.
#define PWSP_REFUSE(context, ...)                                                                  \
    pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, __VA_ARGS__)
#define PWSP_NO_MEMORY(context, ...)                                                               \
    pwsp_fail(context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, __VA_ARGS__)

// Records a failure with a printf text and returns the status.
PWSP_INTERNAL ptowsp_status pwsp_fail(ptowsp_context *context, ptowsp_status status, uint64_t index,
                                      const char *format, ...) PWSP_PRINTF(4, 5);

// INVALID_PARAMS with the text "<what> is NULL".
PWSP_INTERNAL ptowsp_status pwsp_fail_null(ptowsp_context *context, const char *what);

// BUSY, from any thread.
PWSP_INTERNAL ptowsp_status pwsp_fail_busy(ptowsp_context *context);

// Count the objects made from a context, and those destroyed.
PWSP_INTERNAL void pwsp_context_own(ptowsp_context *context);
PWSP_INTERNAL void pwsp_context_disown(ptowsp_context *context);

// Marks the context as running; false when it already is, and then nothing of it may be touched:
// the call comes from inside a job, perhaps on another thread.
PWSP_INTERNAL bool pwsp_context_enter(ptowsp_context *context);
PWSP_INTERNAL void pwsp_context_leave(ptowsp_context *context);

// Calls lane(job, i) at most once for each lane of a context that has been entered, as pwsp_pool_run
// does. SYSTEM_FAILED where that returns false.
PWSP_INTERNAL ptowsp_status pwsp_context_run_lanes(ptowsp_context *context, ptowsp_lane_fn lane,
                                                   void *job);

// ptowsp_parallel_for for a context that has been entered and an fn that is not NULL.
PWSP_INTERNAL ptowsp_status pwsp_context_run(ptowsp_context *context, uint64_t item_count,
                                             uint64_t grain, ptowsp_range_fn fn, void *user);

// Items that lanes take in order, in ranges; the cursor never passes item_count.
typedef struct pwsp_queue {
    PWSP_ALIGNAS(8) uint64_t cursor;  // atomic
    uint64_t item_count;
    uint64_t grain;  // 0: an eighth of an even share of the remainder, at least one
    uint32_t lane_count;
} pwsp_queue;

// Takes the next range; false at the end.
PWSP_INTERNAL bool pwsp_queue_take(pwsp_queue *queue, uint64_t *out_begin, uint64_t *out_end);

#endif
