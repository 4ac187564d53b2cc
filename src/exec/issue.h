// Issuing a program's tasks to lanes or cores, and retiring them in program order.
//
//      walk (expander) -> issue -> reorder buffer -> executor runs them
//                                     | in program order
//                                     v
//                                  retire -> time (lanes or flow), errors
//
// What a task waits for, in real time: tasks that touch the same data, by a map of regions of its
// own; and the structure, explicit edges and streams of the schedule, where it has them.

#ifndef PWSP_ISSUE_H
#define PWSP_ISSUE_H

#include "reorder.h"
#include "run.h"

#define PWSP_ISSUE_WINDOW_MAX 4096u

typedef struct pwsp_issue_scope {
    bool is_parallel;
    pwsp_token ready;  // of the next child
    pwsp_token done;   // of the children so far, where they are parallel
} pwsp_issue_scope;

// The variables around a task, for texts of errors, in a list of cells.
typedef struct pwsp_issue_variables {
    uint32_t first, count;
} pwsp_issue_variables;

// After it nothing is issued.
typedef enum pwsp_issue_failure {
    PWSP_ISSUE_GOOD = 0,
    PWSP_ISSUE_FAILED_WALK,  // the error is the expander's
    PWSP_ISSUE_FAILED_TIME   // the error is the simulation's
} pwsp_issue_failure;

// Of a slot load in a process, which time has accounted for: the index of its entry.
#define PWSP_ISSUE_LOAD_IN_PROCESS 1

struct pwsp_issue {
    ptowsp_run *run;
    pwsp_memory memory;
    pwsp_reorder reorder;
    pwsp_deps deps;
    pwsp_issue_scope *scopes;
    uint32_t depth;
    pwsp_token *streams;  // by stream
    pwsp_token *edges;    // by explicit edge
    bool has_structure;
    bool has_keys;  // their values are kept for retiring
    bool is_homed;  // dispatch chooses the real lane, too
    pwsp_issue_failure failure;
    uint32_t home_counts[2];  // lanes or cores by unit; with one pool: of the vector unit
    uint32_t home_first[2];
    pwsp_issue_variables *variables;  // by op of a task
    uint32_t *cells;                  // of variables
    uint64_t cell_count;
    pwsp_tile_core *cores;  // by lane
    uint64_t core_capacity;
    uint32_t core_count;
    // Of the pipeline that is being run:
    uint64_t *process_last;  // by process: sequence of its last task, or PWSP_NO_TOKEN_TASK
    uint64_t process_capacity;
    pwsp_token pipeline_done;
};

// Makes what issues a run's program, with no lanes yet. NULL when memory is out.
PWSP_INTERNAL pwsp_issue *pwsp_issue_create(ptowsp_run *run);
PWSP_INTERNAL void pwsp_issue_destroy(pwsp_issue *issue);  // NULL is ignored
PWSP_INTERNAL size_t pwsp_issue_bytes(const pwsp_issue *issue);

// Makes what lanes up to lane_count need to run kernels. False when memory is out.
PWSP_INTERNAL bool pwsp_issue_reserve(pwsp_issue *issue, uint32_t lane_count);

// Order in real time (order.c). A child of the open scope is done when the token is; a scope begins,
// or ends; edges are forgotten; edges begin at a task or pipeline.
PWSP_INTERNAL void pwsp_issue_child(pwsp_issue *issue, const pwsp_token *token);
PWSP_INTERNAL void pwsp_issue_scope_begin(pwsp_issue *issue, bool is_parallel);
PWSP_INTERNAL void pwsp_issue_scope_end(pwsp_issue *issue);
PWSP_INTERNAL void pwsp_issue_reset(pwsp_issue *issue, pwsp_range edges);
PWSP_INTERNAL void pwsp_issue_out(pwsp_issue *issue, const pwsp_task_op *op,
                                  const pwsp_token *token);

// Connects the task that has been opened with those before it. False when memory is out.
PWSP_INTERNAL bool pwsp_issue_connect(pwsp_issue *issue, const pwsp_expander *x,
                                      uint64_t stream_key);

// Walks the program on the calling thread, and returns when all tasks that it has issued are done.
// Time has been begun. vector_count and cube_count are what affinity chooses from: with cube_count
// 0, all tasks from the first.
PWSP_INTERNAL ptowsp_status pwsp_issue_walk(pwsp_issue *issue, const pwsp_executor *executor,
                                            uint32_t vector_count, uint32_t cube_count);

// Calls the kernel of an entry: what the reorder buffer is given.
PWSP_INTERNAL ptowsp_cycles pwsp_issue_call(void *issue, const pwsp_entry *entry, uint32_t lane);

// A task in a process: runs it, or only counts it and lets it run later. A slot load in a process:
// waits for what writes the element, and loads it. False with the expander's error.
PWSP_INTERNAL bool pwsp_issue_process_task(pwsp_issue *issue, uint32_t process,
                                           ptowsp_cycles *out_cycles);
PWSP_INTERNAL bool pwsp_issue_process_load(pwsp_issue *issue);

// Waits for the tasks of processes, before a pipeline is told to be stuck. False with the error of
// one that has failed.
PWSP_INTERNAL bool pwsp_issue_process_settle(pwsp_issue *issue);

#endif
