// Time where lanes choose among tasks that are ready: work stealing and priorities.

#ifndef PWSP_FLOW_H
#define PWSP_FLOW_H

#include "sim.h"
#include "window.h"

typedef struct pwsp_flow_node pwsp_flow_node;
typedef struct pwsp_flow_link pwsp_flow_link;
typedef struct pwsp_flow_queue pwsp_flow_queue;
typedef struct pwsp_flow_scope pwsp_flow_scope;

typedef struct pwsp_flow {
    pwsp_sim *sim;
    uint64_t now;
    pwsp_flow_node *nodes;  // from 1
    uint64_t node_count, node_capacity;
    uint32_t free_node;
    pwsp_flow_link *links;  // from 1
    uint64_t link_count, link_capacity;
    uint32_t free_link;
    uint32_t *fired;  // nodes whose waiters have yet to be told
    uint64_t fired_count, fired_capacity;
    pwsp_flow_queue *queues;  // ready tasks: by lane, or by pool when all its lanes share them
    uint32_t queue_count;
    pwsp_flow_queue *turns;   // interleaved: tasks that are ready before their turn
    uint64_t ready_count[2];  // by pool
    uint64_t *idle;           // bits: lanes that run nothing
    uint64_t *able;           // bits: idle lanes with something in their own queue
    pwsp_window running;      // one task at most on each lane
    pwsp_flow_scope *scopes;
    uint32_t depth;
    uint64_t in_flight;
    uint64_t last_ended;  // the task that completed last
    uint32_t current;     // the node of the task being issued, for visits
    bool is_shared;       // lanes of a pool share a queue
    bool is_out_of_memory;
    bool has_ended;  // all tasks are issued
} pwsp_flow;

PWSP_INTERNAL bool pwsp_flow_init(pwsp_flow *flow, pwsp_sim *sim);
PWSP_INTERNAL void pwsp_flow_free(pwsp_flow *flow);
PWSP_INTERNAL size_t pwsp_flow_bytes(const pwsp_flow *flow);

// Back to time 0; after pwsp_sim_begin.
PWSP_INTERNAL void pwsp_flow_begin(pwsp_flow *flow);

// False with an error in sim, each of them.
PWSP_INTERNAL bool pwsp_flow_scope_begin(pwsp_flow *flow, bool is_parallel);
PWSP_INTERNAL bool pwsp_flow_scope_end(pwsp_flow *flow);
PWSP_INTERNAL void pwsp_flow_reset(pwsp_flow *flow, pwsp_range edges);

// Simulates until the task can be issued, and issues it.
PWSP_INTERNAL bool pwsp_flow_task(pwsp_flow *flow, const pwsp_arrival *arrival);

// Simulates until the element has been written.
PWSP_INTERNAL bool pwsp_flow_slot_load(pwsp_flow *flow, const pwsp_tile_at *tile);

// All tasks have been issued: simulates until all have ended.
PWSP_INTERNAL bool pwsp_flow_end(pwsp_flow *flow);

#endif
