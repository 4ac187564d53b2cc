// The rings of a schedule: what tasks in flight hold, and give back in the order of issue.

#ifndef PWSP_RINGS_H
#define PWSP_RINGS_H

#include "../runtime/arrival.h"
#include "../runtime/deps.h"
#include "../engine/policy.h"

// A task that has not retired.
typedef struct pwsp_ring_task {
    uint64_t end;  // UINT64_MAX: not known yet
    uint64_t task;
    uint64_t edges;  // that it holds
    uint64_t tiles;
    uint32_t groups[PTOWSP_DEPTH_COUNT];  // its stream and its pool
    bool is_over;                         // it does not count in its groups any more
} pwsp_ring_task;

// Bytes that a task has written, in the order of issue.
typedef struct pwsp_ring_block {
    uint64_t bytes;
    uint64_t last;    // once the pass has ended: the last task that uses its tensor
    uint64_t before;  // the block before it of its tensor and pass, + 1, or 0
    uint32_t tensor;
    bool is_open;  // the pass through its tensor's scope has not ended
} pwsp_ring_block;

// By tensor, of the pass that is being walked.
typedef struct pwsp_ring_tensor {
    uint64_t block;  // the last, + 1, or 0
    uint64_t user;   // the last task, if there is a block
} pwsp_ring_tensor;

// Tasks and blocks have sequence numbers; number n has place n & (capacity - 1).
typedef struct pwsp_rings {
    const pwsp_memory *memory;
    const pwsp_timed *timed;
    bool is_used;      // by any ring or depth, or by a window that frees in the order of issue
    bool is_in_order;  // the window does
    uint64_t used[PTOWSP_RING_COUNT], used_max[PTOWSP_RING_COUNT];
    uint64_t needed[PTOWSP_RING_COUNT];    // by the task that is being issued
    uint32_t groups[PTOWSP_DEPTH_COUNT];   // of that task
    uint32_t *counts[PTOWSP_DEPTH_COUNT];  // tasks in flight by stream and by pool; NULL: no depth
    pwsp_ring_task *tasks;
    uint64_t task_capacity, head, tail;
    pwsp_ring_block *blocks;
    uint64_t block_capacity, block_head, block_tail;
    pwsp_ring_tensor *tensors;  // NULL without a ring of bytes
    uint64_t retire_time;       // the last time at which a task that ended then has retired
    uint64_t retire_task;       // the first of these
    uint64_t
        left[PTOWSP_DEPTH_COUNT];  // the task that left the stream, the pool of the next task last
} pwsp_rings;

// False when memory is out.
PWSP_INTERNAL bool pwsp_rings_init(pwsp_rings *rings, const pwsp_memory *memory,
                                   const pwsp_timed *timed);
PWSP_INTERNAL void pwsp_rings_begin(pwsp_rings *rings);

// Tasks that have not retired.
PWSP_INLINE uint64_t pwsp_rings_in_flight(const pwsp_rings *rings) {
    return rings->tail - rings->head;
}

// When the oldest task ends; UINT64_MAX if that is not known, or without tasks.
PWSP_INTERNAL uint64_t pwsp_rings_first_end(const pwsp_rings *rings);

// Retires the tasks that can be retired by a time.
PWSP_INTERNAL void pwsp_rings_retire(pwsp_rings *rings, uint64_t now);

// How many tasks of a stream or a pool may be in flight; 0: any number.
PWSP_INTERNAL uint32_t pwsp_rings_depth(const pwsp_timed *timed, uint32_t depth, uint32_t group);

// Depths: the stream and the pool of the next task; the first of these that is as deep as it may be,
// or PTOWSP_DEPTH_COUNT; and when that is not so any more, if ends are known.
PWSP_INTERNAL void pwsp_rings_enter(pwsp_rings *rings, uint32_t stream, uint32_t pool);
PWSP_INTERNAL ptowsp_depth pwsp_rings_full(const pwsp_rings *rings);
PWSP_INTERNAL uint64_t pwsp_rings_group_end(pwsp_rings *rings, ptowsp_depth depth, uint64_t now,
                                            uint64_t *out_task);

// What the next task needs; edges are those that lead to it from what has not ended.
PWSP_INTERNAL void pwsp_rings_ask(pwsp_rings *rings, const pwsp_arrival *arrival,
                                  const pwsp_bound_tensor *bound, uint64_t edges);

// The first ring that has no room for that, or PTOWSP_RING_COUNT.
PWSP_INTERNAL ptowsp_ring pwsp_rings_lacking(const pwsp_rings *rings);

// Gives the next task what it needs; end may be UINT64_MAX until it is known. False when memory is
// out.
PWSP_INTERNAL bool pwsp_rings_take(pwsp_rings *rings, const pwsp_arrival *arrival,
                                   const pwsp_bound_tensor *bound, uint64_t task, uint64_t end);

// A task has ended.
PWSP_INTERNAL void pwsp_rings_end(pwsp_rings *rings, uint64_t task, uint64_t end);

// The pass through the scope of a tensor ends.
PWSP_INTERNAL void pwsp_rings_release(pwsp_rings *rings, uint32_t tensor);

// The node of the scope that holds the oldest bytes, or 0.
PWSP_INTERNAL uint32_t pwsp_rings_holder(const pwsp_rings *rings);

#endif
