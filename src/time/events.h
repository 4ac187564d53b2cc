// Time where lanes choose among tasks that are ready: work stealing and priorities.

#ifndef PWSP_EVENTS_H
#define PWSP_EVENTS_H

#include "sim.h"

#define PWSP_EVENTS_NONE PTOWSP_NO_INDEX  // no node

typedef struct pwsp_events_node {
    uint64_t time;           // its dependences are done by then; of a task that has ended, its end
    uint64_t index, cycles;  // of a task
    uint64_t clock;          // of a task: when it was issued
    uint32_t pending;        // dependences not yet done
    uint32_t refs;
    uint32_t waiters;  // a list; of a free node, the next one
    uint32_t next;     // what is behind it in a list, if it is its own link
    uint16_t lane;     // of a task: its lane, or its pool
    uint8_t kind;      // PWSP_EVENTS_JOIN, ...
    bool is_done;
    bool is_linked;  // it is its own link in a list
} pwsp_events_node;

// A list of waiters is the place of its first link, or 0. Most nodes wait for one other, or have one
// waiter, and for these no link is made: a node can be its own link in one list, and it can stand at the
// end of any list without a link.
#define PWSP_EVENTS_OWN      (UINT32_C(2) << 30)  // | node
#define PWSP_EVENTS_LAST     (UINT32_C(3) << 30)  // | node
#define PWSP_EVENTS_ID_LIMIT (UINT32_C(1) << 30)  // of nodes and of links

// An open join may gain dependences: it is closed when a node waits for it, or its holder drops it.
// A block task takes a block of lanes.
enum {
    PWSP_EVENTS_JOIN,
    PWSP_EVENTS_OPEN_JOIN,
    PWSP_EVENTS_TASK,
    PWSP_EVENTS_BLOCK_TASK,
    PWSP_EVENTS_PIPELINE
};

// The rest of a pipeline. Its node has the first task as index, and the place of this instead of
// cycles.
typedef struct pwsp_events_pipeline_node {
    uint64_t task_count, end_task;
    uint64_t cycles;
    uint32_t node, pipeline, run;
    uint32_t next_free;  // + 1
} pwsp_events_pipeline_node;

typedef struct pwsp_events_link {
    uint32_t node, next;
} pwsp_events_link;

typedef struct pwsp_events_entry {
    uint32_t key_low, key_high;  // a smaller key comes first, then a smaller index
    uint32_t node;
} pwsp_events_entry;

// The least entry comes first. Entries mostly come in order, or, when a join is done, in the order
// reversed. So there is a run, in order, that grows at both ends, and a binary heap of what comes
// in between.
typedef struct pwsp_events_queue {
    uint64_t count;  // of both
    pwsp_events_entry *heap;
    uint64_t heap_count, heap_capacity;
    pwsp_events_entry *run;  // a ring
    uint64_t run_capacity;   // a power of two, or 0
    uint64_t run_head;
    bool is_stale;  // its lane is among the stale ones
} pwsp_events_queue;

typedef struct pwsp_events {
    pwsp_sim *sim;
    uint64_t now;
    pwsp_events_node *nodes;  // from 1
    uint64_t node_count, node_capacity;
    // By node, where needed: with records, the task that its time comes from; with priorities, the
    // key of a task; interleaved, the earliest start of a task.
    uint64_t *causes, *ranks, *turns_at;
    uint64_t cause_capacity, rank_capacity, turn_capacity;
    pwsp_events_pipeline_node *pipelines;  // issued and not done
    uint64_t pipeline_node_count, pipeline_capacity;
    uint32_t free_pipeline;  // + 1
    uint32_t free_node;
    pwsp_events_link *links;  // from 1
    uint64_t link_count, link_capacity;
    uint32_t free_link;
    uint32_t *fired;  // nodes whose waiters have yet to be told
    uint64_t fired_count, fired_capacity;
    pwsp_events_queue *queues;  // ready tasks: by lane, or by pool when all its lanes share them
    uint32_t queue_count;
    // Of lanes that steal from each other, by pool: the first of their queues. Those of stale lanes
    // are brought up to date by the next that steals.
    pwsp_earliest oldest[PWSP_POOL_MAX];
    uint32_t *stale;
    uint32_t stale_count;
    pwsp_events_queue *turns;  // interleaved: tasks that are ready before their turn
    pwsp_events_queue *ends;   // pipelines that have started, by their ends
    uint64_t pipeline_count;   // issued and not done
    uint32_t late;             // a pipeline that would end too late, or 0
    uint64_t ready_count[PWSP_POOL_MAX];
    uint64_t *idle;  // bits: lanes that run nothing, and that no block task waits for
    uint64_t *able;  // bits: idle lanes with tasks in their own queue
    pwsp_earliest
        running;      // lanes that run a task, or a block task that waits for its vector lanes
    uint32_t *tasks;  // by lane: that task
    uint64_t in_flight;
    uint64_t last_ended;  // the task that completed last
    uint32_t current;     // the node of the task being issued, for visits
    bool is_shared;       // lanes of a pool share a queue
    bool is_plain;        // see pwsp_events_find_plain
    bool is_structure;    // all precedence is that of structure
    bool is_out_of_memory;
    bool has_ended;     // all tasks are issued
    uint32_t entering;  // the node of a task that waits for rings, and may be held there
} pwsp_events;

PWSP_INTERNAL bool pwsp_events_init(pwsp_events *events, pwsp_sim *sim);

// Back to time 0; after pwsp_sim_begin.
PWSP_INTERNAL void pwsp_events_begin(pwsp_events *events);

// False with an error in sim, each of them. Errors found elsewhere are reported there:
PWSP_INTERNAL bool pwsp_events_fail(pwsp_events *events);

PWSP_INLINE bool pwsp_events_check(pwsp_events *events) {
    return PWSP_LIKELY(!events->late && !events->is_out_of_memory) || pwsp_events_fail(events);
}

// Simulates until the task can be issued, and issues it.
PWSP_INTERNAL bool pwsp_events_task(pwsp_events *events, const pwsp_arrival *arrival);

// Issues a pipeline, which takes no lane and no place in the window.
PWSP_INTERNAL bool pwsp_events_pipeline(pwsp_events *events, const pwsp_pipeline_arrival *arrival);

// Simulates until the element has been written.
PWSP_INTERNAL bool pwsp_events_slot_load(pwsp_events *events, const pwsp_tile_at *tile);

// All tasks have been issued: simulates until all have ended.
PWSP_INTERNAL bool pwsp_events_end(pwsp_events *events);

#endif
