// Dependences of recorded tasks, with their reasons.
//
// Structure is kept as the tree of scopes that were walked, and its edges are found when asked for: a
// task waits for the last tasks of the child before it in the innermost sequential scope that has
// one. Barriers between wide loops thus take no memory. All other edges are found as tasks come, and
// kept.
//
//      scope (sequential)
//        +- scope (parallel) -- task 0, task 1
//        +- task 2                                   waits for 0 and 1

#ifndef PWSP_EDGES_H
#define PWSP_EDGES_H

#include "../time/sim.h"

// A scope or a task. Indices count from 1; 0 means none.
typedef struct pwsp_edge_node {
    uint64_t task;              // of a scope PTOWSP_NO_INDEX
    uint32_t parent, previous;  // the sibling before it that has tasks
    uint32_t last;              // of a scope: its last child that has tasks
    bool is_parallel;
} pwsp_edge_node;

// An edge that is kept, to the task that has it.
typedef struct pwsp_edge_kept {
    uint64_t from;
    uint8_t reason, hazards, from_tile, to_tile;
} pwsp_edge_kept;

// A tile of a task, that no later task has written over.
typedef struct pwsp_edge_access {
    pwsp_region region;
    uint64_t task;
    uint64_t next;  // of the same group of tensors, + 1
    uint32_t access, tile;
} pwsp_edge_access;

// The beginnings of an explicit edge since it was reset.
typedef struct pwsp_edge_begin {
    uint64_t task;
    uint64_t next;  // + 1
} pwsp_edge_begin;

// By task.
typedef struct pwsp_edge_task {
    uint64_t first_kept;
    uint64_t first_tile;
    uint32_t node;
    uint32_t pipeline;  // the run of a pipeline that it belongs to, from 1; 0: none
} pwsp_edge_task;

typedef struct pwsp_edges {
    pwsp_memory memory;
    const pwsp_sim *sim;
    pwsp_edge_node *nodes;
    pwsp_edge_kept *kept;
    pwsp_edge_access *accesses;
    pwsp_edge_begin *begins;
    pwsp_edge_task *tasks;
    pwsp_tile_at *tiles;
    uint64_t node_count, kept_count, access_count, begin_count, task_count, tile_count;
    uint64_t node_capacity, kept_capacity, access_capacity, begin_capacity, task_capacity,
        tile_capacity;
    uint64_t *groups;   // by tensor: the first access of its group, + 1
    uint64_t *edges;    // by explicit edge: its first beginning, + 1
    uint64_t *streams;  // by stream: its last task, + 1
    uint64_t link;      // the same of tasks that communicate
    uint64_t free_access;
    uint32_t open;  // the innermost open scope
    uint32_t pipeline, pipeline_count;
    bool is_out_of_memory;
} pwsp_edges;

// False when memory is out.
PWSP_INTERNAL bool pwsp_edges_begin(pwsp_edges *edges, const pwsp_memory *memory,
                                    const pwsp_sim *sim);

// What time tells. False when memory is out; a mark reports that with the next task.
PWSP_INTERNAL bool pwsp_edges_task(pwsp_edges *edges, const pwsp_arrival *arrival,
                                   const pwsp_bound_tensor *bound);
PWSP_INTERNAL void pwsp_edges_mark(pwsp_edges *edges, const pwsp_mark *mark);

// Visits the edges of structure, and the kept ones, of a task, until visit returns false.
PWSP_INTERNAL bool pwsp_edges_of(const pwsp_edges *edges, uint64_t task, ptowsp_edge_fn visit,
                                 void *user);

// The node that a node waits for by structure (0: none), and the tasks with which a node ends, the
// last first, as edges to a task.
PWSP_INTERNAL uint32_t pwsp_edges_before(const pwsp_edges *edges, uint32_t node);
PWSP_INTERNAL bool pwsp_edges_exits(const pwsp_edges *edges, uint32_t node, uint64_t task,
                                    ptowsp_edge_fn visit, void *user);

// The longest chain of tasks that wait for each other, in cycles. False when memory is out.
PWSP_INTERNAL bool pwsp_edges_longest(const pwsp_edges *edges, const ptowsp_task_record *records,
                                      uint64_t *out_cycles);

#endif
