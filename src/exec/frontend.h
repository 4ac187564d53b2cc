// The front end of the scheduler: walks a program, issues its tasks to lanes or cores, calls their
// kernels there, and accounts for them in simulated time as they retire.
//
//      walk (expander) -> frontend -> scheduler (runtime/issue.h) -> executor -> kernel
//                                          | in program order
//                                          v
//                                       frontend -> time (timeline.h), errors

#ifndef PWSP_FRONTEND_H
#define PWSP_FRONTEND_H

#include "../runtime/issue.h"
#include "../runtime/policy.h"
#include "run_pipelines.h"

#define PWSP_FRONTEND_WINDOW_MAX 4096u

// The variables around a task, for error texts, in a list of cells.
typedef struct pwsp_task_variables {
    uint32_t first, count;
} pwsp_task_variables;

// Where a tile of a task begins: the rest of pwsp_tile_at follows from its view and tensor.
typedef struct pwsp_entry_tile {
    int64_t lead, row, col;
} pwsp_entry_tile;

// The index of a slot load in a process; time has already accounted for it.
#define PWSP_FRONTEND_LOAD_IN_PROCESS 1

// The failure after which nothing is issued:
typedef enum pwsp_frontend_failure {
    PWSP_FRONTEND_GOOD = 0,
    PWSP_FRONTEND_FAILED_WALK,  // the error is the expander's
    PWSP_FRONTEND_FAILED_TIME   // the error is the simulation's
} pwsp_frontend_failure;

typedef struct pwsp_frontend {
    pwsp_memory memory;
    pwsp_walk *walk;
    pwsp_timeline *time;
    pwsp_pipes *pipes;
    pwsp_issue issue;
    pwsp_frontend_failure failure;
    bool has_keys;  // their values are kept until retirement
    pwsp_lane_rule lane_rule;
    bool is_homed;            // dispatch also chooses the real lane
    uint32_t home_counts[2];  // lanes or cores by unit; with one pool: of the vector unit
    uint32_t home_first[2];
    uint32_t tile_word;              // where tiles begin among the words of an entry
    pwsp_task_variables *variables;  // by op of a task
    uint32_t *cells;                 // of variables
    uint64_t cell_count;
    pwsp_tile_core *cores;  // by lane
    uint64_t core_capacity;
    uint32_t core_count;
    // Wall clock: the recorder that gets it (NULL: off), marks by place, and the executor that is told
    // what is ready. is_lane: entries are called on lanes, which mark them; else their executor does.
    pwsp_recorder *clocked;
    bool is_lane;
    pwsp_wall_mark *marks;
    pwsp_executor executor;
} pwsp_frontend;

// A front end without lanes. NULL when memory is out.
PWSP_INTERNAL pwsp_frontend *pwsp_frontend_create(pwsp_walk *walk, pwsp_timeline *time,
                                                  pwsp_pipes *pipes);
PWSP_INTERNAL void pwsp_frontend_destroy(pwsp_frontend *front);  // NULL is ignored
PWSP_INTERNAL size_t pwsp_frontend_bytes(const pwsp_frontend *front);

// Allocates what lanes up to lane_count need to run kernels. False when memory is out.
PWSP_INTERNAL bool pwsp_frontend_reserve(pwsp_frontend *front, uint32_t lane_count);

// Marks the wall clock of tasks for a recorder, from the next walk on; NULL: does not. False when
// memory is out.
PWSP_INTERNAL bool pwsp_frontend_set_clock(pwsp_frontend *front, pwsp_recorder *recorder,
                                           bool is_lane);

// Begins a task that communicates, or moves it on: for executors, on one thread at a time. False
// until it is done, or has failed, which is the result then.
PWSP_INTERNAL bool pwsp_frontend_move_link(void *user, uint32_t place, ptowsp_cycles *out_result);

// Runs the tasks of processes: for pwsp_pipes_begin.
PWSP_INTERNAL pwsp_process_tasks pwsp_frontend_process_tasks(pwsp_frontend *front);

// Walks the program on the calling thread, and returns when all tasks that it has issued are done.
// Time must have begun. Affinity chooses from vector_count and cube_count lanes; with cube_count 0,
// from the first for all tasks. False after a failure, which front->failure describes.
PWSP_INTERNAL bool pwsp_frontend_walk(pwsp_frontend *front, const pwsp_executor *executor,
                                      uint32_t vector_count, uint32_t cube_count);

#endif
