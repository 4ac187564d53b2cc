// Lanes: runs a function on several lanes at once, with own threads, through the user's executor,
// or serially on the calling thread.

#ifndef PWSP_POOL_H
#define PWSP_POOL_H

#include "base.h"

typedef struct pwsp_pool pwsp_pool;

// Creates a pool from the thread fields of a description that has been checked, lane_count filled
// in.
PWSP_INTERNAL ptowsp_status pwsp_pool_create(const pwsp_memory *memory,
                                             const ptowsp_context_desc *desc, pwsp_pool **out_pool);
PWSP_INTERNAL void pwsp_pool_destroy(pwsp_pool *pool);
PWSP_INTERNAL uint32_t pwsp_pool_lane_count(const pwsp_pool *pool);
PWSP_INTERNAL bool pwsp_pool_is_user(const pwsp_pool *pool);  // the user's executor runs lanes

// Rounds of pwsp_pause() before one of so many threads sleeps.
PWSP_INTERNAL uint32_t pwsp_pool_spin_count(pwsp_pool *pool, uint32_t thread_count);
// Are there more threads than processors?
PWSP_INTERNAL bool pwsp_pool_is_crowded(pwsp_pool *pool, uint64_t thread_count);

// Calls lane(job, i) at most once for each lane i, on the calling thread for lane 0, and returns
// when all calls have returned. A lane whose thread wakes too late is left out, so the lanes must
// take their work from something shared. False when the user's executor did not call each lane
// once; even then all calls have returned, and at least one lane has been called.
PWSP_INTERNAL bool pwsp_pool_run(pwsp_pool *pool, ptowsp_lane_fn lane, void *job);

PWSP_INTERNAL bool pwsp_pool_is_lent(const pwsp_pool *pool);      // PTOWSP_THREADS_WORKERS
PWSP_INTERNAL bool pwsp_pool_has_session(const pwsp_pool *pool);  // of lent workers, under way

// A worker of the user lends itself to such a pool: returns what lead returns, which worker 0 calls,
// while the others run lanes. Requires worker < worker_count, and no more workers than lanes. Refused
// (BUSY) if the worker is in a session already, or one of another number of workers has not ended.
PWSP_INTERNAL ptowsp_status pwsp_pool_lend(pwsp_pool *pool, uint32_t worker, uint32_t worker_count,
                                           ptowsp_lead_fn lead, void *user, bool *out_is_refused);

#endif
