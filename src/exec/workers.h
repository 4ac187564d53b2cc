// The lanes of a context as an executor: one lane issues, all lanes run ready tasks.

#ifndef PWSP_WORKERS_H
#define PWSP_WORKERS_H

#include "../base/context.h"
#include "../runtime/reorder.h"

typedef struct pwsp_workers pwsp_workers;

// Issues to an executor, and returns when all is done. False after a failure.
typedef bool (*pwsp_workers_issue_fn)(void *user, const pwsp_executor *executor);

// What lanes do.
typedef struct pwsp_workers_job {
    pwsp_reorder *reorder;
    bool is_homed;  // entries have homes, and run there
    pwsp_workers_issue_fn issue;
    void *issue_user;
    // Begins a task that communicates, or moves it on; false until it is done. Never on two lanes
    // at once. NULL without such tasks.
    bool (*move_link)(void *user, uint32_t place, ptowsp_cycles *out_result);
    void *link_user;
} pwsp_workers_job;

// Workers without lanes. NULL when memory is out.
PWSP_INTERNAL pwsp_workers *pwsp_workers_create(const pwsp_memory *memory);
PWSP_INTERNAL void pwsp_workers_destroy(pwsp_workers *workers);  // NULL is ignored
PWSP_INTERNAL size_t pwsp_workers_bytes(const pwsp_workers *workers);

// Makes room for lane_count lanes. False when memory is out.
PWSP_INTERNAL bool pwsp_workers_reserve(pwsp_workers *workers, uint32_t lane_count);

// Calls `issue` on lane 0 of lane_count lanes of a context, which must have been entered; all of
// them run the ready entries of the reorder buffer. False after a failure; *out_is_kept: the pool
// called each lane once.
PWSP_INTERNAL bool pwsp_workers_run(pwsp_workers *workers, ptowsp_context *context,
                                    uint32_t lane_count, const pwsp_workers_job *job,
                                    bool *out_is_kept);

#endif
