// Time event by event: where lanes choose among ready tasks, share memory, or wait for control.

#ifndef PWSP_EVENTS_H
#define PWSP_EVENTS_H

#include "../engine/ready_pool.h"
#include "../base/free_list.h"
#include "contention.h"
#include "control_threads.h"
#include "sim.h"

#define PWSP_EVENTS_NONE PTOWSP_NO_INDEX  // no node

// An open join may gain dependences: it is closed when a node waits for it, or its holder drops it.
typedef enum pwsp_events_kind {
    PWSP_EVENTS_JOIN,
    PWSP_EVENTS_OPEN_JOIN,
    PWSP_EVENTS_TASK,
    PWSP_EVENTS_PIPELINE,
    PWSP_EVENTS_DONE  // any of them
} pwsp_events_kind;

typedef struct pwsp_events_node {
    pwsp_ready_link link;  // numbered by the task's index; lists of free nodes and finished joins
    uint64_t time;         // its dependences are done by then; of a task that was taken, its end
    uint64_t cycles;
    uint64_t clock;    // when it was issued
    uint32_t pending;  // dependences not yet done, and 1 until all are known
    uint32_t refs;
    uint32_t waiters;  // a list
    uint16_t lane;     // of a task: its lane, or its pool
    uint8_t kind, unit;
} pwsp_events_node;

// More of a node, in executions with records, interleaved tasks or followers: others save the memory.
typedef struct pwsp_events_detail {
    uint64_t cause;      // the task that the node's time comes from, or PTOWSP_NO_INDEX
    uint64_t turn;       // a task's earliest start; while it waits for that, its key afterwards
    uint32_t followers;  // of a task: a list of those that its lanes may take only after it
} pwsp_events_detail;

// The rest of a pipeline. Its node has the first task as number, and the place of this instead of
// cycles.
typedef struct pwsp_events_pipeline_node {
    uint64_t task_count, end_task;
    uint64_t cycles;
    uint32_t node, pipeline, run;
    uint32_t next_free;
} pwsp_events_pipeline_node;

typedef struct pwsp_events_link {
    uint32_t node, next;
} pwsp_events_link;

// Of a lane, where lanes share memory: how far the task that it has taken is.
typedef struct pwsp_events_progress {
    uint32_t missing;  // until it begins: vector lanes that still run, and its delivery
    uint32_t holder;   // of a vector lane that runs: the cube lane whose block takes it + 1, or 0
    bool has_ended;    // and is not complete
} pwsp_events_progress;

typedef struct pwsp_events {
    pwsp_sim *sim;
    uint64_t now;
    pwsp_events_node *nodes;  // from 1
    pwsp_free_list node_list;
    pwsp_events_detail *details;  // by node, if has_details
    uint64_t detail_capacity;
    bool has_details;
    pwsp_events_link *links;  // from 1
    pwsp_free_list link_list;
    pwsp_events_pipeline_node *pipelines;  // from 1, issued and not done
    pwsp_free_list pipeline_list;
    pwsp_ready_pool pool;     // ready tasks: lanes are its workers
    pwsp_ready_queue timers;  // by time: tasks until their turns, pipelines until their ends
    uint64_t pipeline_count;  // issued and not done
    uint32_t late;            // a pipeline that would end too late, or 0
    uint64_t *idle;           // bits: lanes that run nothing, and that no block task waits for
    // Ends of lanes that run a task, or have one that waits for its block: with control, when they can be
    // noticed. Of lanes whose cores have not started, when these do. Where lanes share memory, the next
    // that is known of a lane's task: its delivery, the end of a part, when its end can be noticed.
    pwsp_earliest running;
    uint32_t *tasks;  // by lane: that task, or 0
    uint64_t in_flight;
    uint64_t last_ended;  // the task that completed last
    uint32_t current;     // the node of the task being issued, for visits
    pwsp_policy policy;
    pwsp_control_threads control;
    // By lane, if lanes run their tasks in the order of issue: the last one, if it has not been taken, or 0.
    uint32_t *last_issued;
    pwsp_contention contention;      // where lanes share memory: flows of running tasks
    pwsp_events_progress *progress;  // by lane, there
    bool has_extras;                 // control, or lanes that share memory
    bool is_out_of_memory;
    bool has_ended;     // all tasks are issued
    uint32_t ordered;   // in order: the node of a task or pipeline that waits for its dependences
    uint32_t entering;  // the node of a task that waits for rings, and may be held there
    bool has_asked;     // what that task needs of rings is known
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
