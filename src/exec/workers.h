// The lanes of a context as an executor: one lane issues, all lanes run ready tasks.

#ifndef PWSP_WORKERS_H
#define PWSP_WORKERS_H

#include "../base/context.h"
#include "../runtime/reorder.h"

typedef struct pwsp_workers pwsp_workers;

// Issues to an executor, and returns when all is done. False after a failure.
typedef bool (*pwsp_workers_issue_fn)(void *user, const pwsp_executor *executor);

// Workers without lanes. NULL when memory is out.
PWSP_INTERNAL pwsp_workers *pwsp_workers_create(const pwsp_memory *memory);
PWSP_INTERNAL void pwsp_workers_destroy(pwsp_workers *workers);  // NULL is ignored
PWSP_INTERNAL size_t pwsp_workers_bytes(const pwsp_workers *workers);

// Makes room for lane_count lanes. False when memory is out.
PWSP_INTERNAL bool pwsp_workers_reserve(pwsp_workers *workers, uint32_t lane_count);

// Calls `issue` on lane 0 of lane_count lanes of a context, which must have been entered; all of
// them run the ready entries of the reorder buffer. is_homed: entries have homes, and run there.
// False
PWSP_INTERNAL bool pwsp_workers_run(pwsp_workers *workers, ptowsp_context *context,
                                    uint32_t lane_count, pwsp_reorder *reorder, bool is_homed,
                                    pwsp_workers_issue_fn issue, void *user, bool *out_is_kept);

#endif
