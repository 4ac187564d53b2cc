// Arrivals at the scheduler and at simulated time: tasks and pipelines, with the tiles that they
// access, and the facts about their program that both consumers need. And tokens, by which tasks are
// awaited.
//
// This floor needs base, data and engine only, so it does not depend on the objects that it schedules:
// emitted trees carry it unchanged.

#ifndef PWSP_ARRIVAL_H
#define PWSP_ARRIVAL_H

#include "../engine/policy.h"
#include "../data/region.h"
#include "../data/demand.h"

// The use of a channel by a process of a pipeline.
typedef struct pwsp_port {
    uint32_t channel;
    bool is_produced;
    bool is_closed_early;  // the process has an op that closes it
} pwsp_port;

// Memory bound to a tensor. Sizes and strides of missing dimensions are 1 and 0.
typedef struct pwsp_bound_tensor {
    char *data;     // NULL in runs that only measure time
    uint64_t base;  // its address, or one that no other tensor has
    int64_t lead_shape[PWSP_TENSOR_LEAD_MAX];
    int64_t lead_strides[PWSP_TENSOR_LEAD_MAX];  // in elements, as the following
    int64_t rows, cols, row_stride, col_stride;
    int64_t low, high;  // lowest and highest offset, in elements; of a bound tensor
    uint32_t element_size;
    ptowsp_dtype dtype;
    bool is_bound;
} pwsp_bound_tensor;

// How a tile is accessed: a set.
#define PWSP_TILE_READ    1u
#define PWSP_TILE_WRITTEN 2u
#define PWSP_TILE_LOADED  4u  // of a pipeline: its processes load slots from the tensor

// The location of a tile. With rows 0 it is the whole tensor, as pipelines access it.
typedef struct pwsp_tile_at {
    uint32_t tensor;
    uint32_t rows, cols;  // valid
    uint32_t access;
    int64_t lead;      // elements from the tensor's start to the leading indices' matrix
    int64_t row, col;  // of the tile in that matrix
} pwsp_tile_at;

// The offset of its first element, in elements.
PWSP_INLINE int64_t pwsp_tile_offset(const pwsp_bound_tensor *tensor, const pwsp_tile_at *at) {
    return at->lead + at->row * tensor->row_stride + at->col * tensor->col_stride;
}

// A task. The scheduler needs no cycles; time needs the cycles of every task.
typedef struct pwsp_arrival {
    uint64_t cycles;
    uint64_t dispatch_key, priority_key, stream_key;
    const pwsp_tile_at *tiles;
    const uint64_t *args, *scalars;  // for records: axis values, and scalars; of a pipeline none
    const uint32_t *after, *before;  // explicit edges that end here, and those that begin here
    uint32_t tile_count, after_count, before_count;
    uint32_t kernel, node;  // for records and errors
    uint32_t pool;          // for time
    ptowsp_unit unit;
    const pwsp_demand *demand;  // for time, if lanes share memory; NULL: none
} pwsp_arrival;

// A pipeline that has run: its tasks have indices up to the next one. It counts as one task with a
// tile for each tensor; keys and kernel have no meaning.
typedef struct pwsp_pipeline_arrival {
    pwsp_arrival whole;
    uint64_t first_task, task_count;
    uint64_t end_task;       // the task that its end comes from; PTOWSP_NO_INDEX: none of its own
    uint32_t pipeline, run;  // its index, and the ordinal of its run
} pwsp_pipeline_arrival;

// Events between tasks, in program order.
typedef enum pwsp_mark_kind {
    PWSP_MARK_PARALLEL,    // a scope begins
    PWSP_MARK_SEQUENTIAL,  //
    PWSP_MARK_END,         // the innermost ends
    PWSP_MARK_RESET,       // explicit edges restart
    PWSP_MARK_JOIN,        // of explicit edges: one stands for others, too
    PWSP_MARK_RELEASE,     // the pass through the scope of a transient tensor ends
    PWSP_MARK_PIPELINE     // for records: the following tasks are of a pipeline, up to END
} pwsp_mark_kind;

typedef struct pwsp_mark {
    pwsp_mark_kind kind;
    uint32_t id;            // RELEASE: a tensor; JOIN: the edge that stands for the others
    uint32_t edge_count;    // of RESET and JOIN
    const uint32_t *edges;  //
} pwsp_mark;

PWSP_INLINE pwsp_mark pwsp_mark_of(pwsp_mark_kind kind) {
    const pwsp_mark mark = {kind, 0, 0, NULL};
    return mark;
}

// The facts about a program that are needed beforehand. Tables live at least as long.
typedef struct pwsp_timed {
    ptowsp_schedule schedule;  // resolved
    bool is_priority_signed;
    bool has_streams;             // by a key
    const pwsp_pool_info *pools;  // with the pool of links, which is the last one
    uint32_t pool_count;
    uint32_t lane_count;   // of all pools
    bool has_link;         // the last lane is for tasks that communicate
    uint32_t scope_depth;  // nesting depth of scopes, including the outermost
    uint32_t pipeline_count;
    uint32_t tensor_count;                             // including 0: no tensor
    uint32_t edge_count;                               // explicit edges
    const bool *tensor_is_loaded, *tensor_is_written;  // by tensor: by a slot, by a task
    // By tensor, for a ring of bytes: the node of a transient tensor's scope, or 0. NULL: none.
    const uint32_t *tensor_scopes;
    // Writes the place of a node, for texts of errors.
    void (*print_place)(const void *user, uint32_t node, ptowsp_output text);
    const void *user;
} pwsp_timed;

// -- tokens ---------------------------------------------------------------------------------------
//
// Tokens stand for the completion of one or several tasks. The map of regions and the rules of
// precedence hold tokens without knowing their meaning:
//
//      in-order time     the end of a task, and its index
//      event simulation  a node
//      real execution    an entry of the reorder buffer, or a join of several

typedef struct pwsp_token {
    uint64_t time;
    uint64_t task;  // PTOWSP_NO_INDEX: none
} pwsp_token;

// Operations on tokens. With is_dead NULL a token is a time: dead when it is before the clock, and
// two merge to the later one.
typedef struct pwsp_token_ops {
    bool (*is_dead)(void *user, const pwsp_token *token);
    void (*visit)(void *user, const pwsp_token *token);  // the current task waits for it
    void (*keep)(void *user, const pwsp_token *token);   // adds a reference
    void (*drop)(void *user, const pwsp_token *token);   // it is held no more
    void (*merge)(void *user, pwsp_token *into, const pwsp_token *other);  // into is held
    void *user;
    bool is_small;  // tokens are a task below 2^32 and time 0: they take less memory
} pwsp_token_ops;

PWSP_INLINE pwsp_token pwsp_token_none(void) {
    pwsp_token token = {0, PTOWSP_NO_INDEX};
    return token;
}

PWSP_INLINE bool pwsp_token_is_same(const pwsp_token *a, const pwsp_token *b) {
    return a->time == b->time && a->task == b->task;
}

// Of two times, the later one.
PWSP_INLINE void pwsp_token_later(pwsp_token *token, const pwsp_token *other) {
    if (other->time > token->time) {
        *token = *other;
    }
}

#endif
