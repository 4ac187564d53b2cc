// The front end of the scheduler: walks a program, issues its tasks to lanes or cores, calls their
// kernels there, and accounts for them in simulated time as they retire.
//
//      walk (expander) -> frontend -> scheduler (runtime/issue.h) -> executor -> kernel
//                                          | in program order
//                                          v
//                                       frontend -> time (timeline.h), errors
//
// How tasks are issued depends on how long they take (pace.h): each alone; or several iterations of an
// innermost loop as one entry, a *block*, whose tasks one lane runs in order. And where all tasks are so
// short that handing them over costs more than running them, the walking lane *keeps* them: it issues
// nothing, and runs them as a walk without lanes does (run_walk.c), until others come.

#ifndef PWSP_FRONTEND_H
#define PWSP_FRONTEND_H

#include "../runtime/issue.h"
#include "../engine/policy.h"
#include "../workload/stretch.h"
#include "pace.h"
#include "run_pipelines.h"

#define PWSP_FRONTEND_WINDOW_MAX 4096u

// The variables around a task, for error texts, in a list of cells.
typedef struct pwsp_task_variables {
    uint32_t first, count;
} pwsp_task_variables;

// A tile of a task, as found by the walk. Its view has its tensor and access: a task of three tiles
// takes no more than 256 bytes.
typedef struct pwsp_entry_tile {
    uint32_t rows, cols;
    int64_t lead, row, col;
} pwsp_entry_tile;

#define PWSP_FRONTEND_TILE_WORDS ((uint32_t)(sizeof(pwsp_entry_tile) / sizeof(uint64_t)))

// The index of a slot load in a process; time has already accounted for it.
#define PWSP_FRONTEND_LOAD_IN_PROCESS 1

// The failure after which nothing is issued:
typedef enum pwsp_frontend_failure {
    PWSP_FRONTEND_GOOD = 0,
    PWSP_FRONTEND_FAILED_WALK,  // the error is the expander's
    PWSP_FRONTEND_FAILED_TIME   // the error is the simulation's
} pwsp_frontend_failure;

// A task that has been issued.
typedef struct pwsp_issued {
    const uint64_t *words;
    uint64_t index;
    ptowsp_cycles cycles;  // once it has run
} pwsp_issued;

typedef struct pwsp_frontend {
    pwsp_blocks blocks;  // all memory of the parts
    pwsp_memory memory;
    pwsp_walk *walk;
    pwsp_timeline *time;
    pwsp_pipes *pipes;
    pwsp_batch *batch;  // of the run, which has nothing in it while tasks are issued
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
    // Records of the tasks of blocks in flight, a ring: index, words; then the ring of results.
    uint64_t *records;
    uint32_t record_count, record_words;  // 0: no blocks
    uint64_t record_head, record_tail;
    bool is_plain, has_data;  // of time, in this execution: see lanes.h
    uint32_t block_extra;     // tasks in flight without entries of their own
    pwsp_pace pace;
    uint64_t long_tail;     // no entry from this one on is of a task that is not short
    bool wants_to_keep;     // the next tasks are to be kept
    pwsp_tile_core *cores;  // by lane
    uint64_t core_capacity;
    uint32_t core_count;
    // Wall clock: the recorder that gets it (NULL: off), marks by place, and the executor that hears
    // of ready entries. is_lane: entries are called on lanes, which mark them; else their executor does.
    pwsp_recorder *clocked;
    bool is_lane;
    pwsp_wall_mark *marks;
    pwsp_executor executor;
} pwsp_frontend;

// A front end without lanes. NULL when memory is out.
PWSP_INTERNAL pwsp_frontend *pwsp_frontend_create(pwsp_walk *walk, pwsp_timeline *time,
                                                  pwsp_pipes *pipes, pwsp_batch *batch);

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

// Begins an execution, with nothing in flight. Affinity chooses from vector_count and cube_count lanes;
// with cube_count 0, from the first for all tasks. Time and the walk must have begun.
PWSP_INTERNAL void pwsp_frontend_begin(pwsp_frontend *front, uint32_t vector_count,
                                       uint32_t cube_count);

// Walks the program on the calling thread, from an event on that has not been handled yet, or NONE. All
// tasks that have been issued are done when it returns: END; ERROR, a failure, which front->failure
// describes; or NONE: the next tasks are to be kept.
PWSP_INTERNAL pwsp_event pwsp_frontend_walk(pwsp_frontend *front, const pwsp_executor *executor,
                                            pwsp_event event);

// -- between the files of the front end -----------------------------------------------------------

PWSP_INLINE const pwsp_task_op *pwsp_frontend_op(const pwsp_frontend *front,
                                                 const uint64_t *words) {
    return &front->walk->program->tasks.items[(uint32_t)words[0]];
}

// The node of a task is above its op.
PWSP_INLINE uint32_t pwsp_frontend_node(const uint64_t *words) {
    return (uint32_t)(words[0] >> 32);
}

PWSP_INLINE pwsp_entry_tile *pwsp_frontend_tiles(const pwsp_frontend *front,
                                                 const uint64_t *words) {
    return (pwsp_entry_tile *)(uintptr_t)(words + front->tile_word);
}

PWSP_INLINE pwsp_entry_tile pwsp_entry_tile_of(const pwsp_tile_at *at) {
    const pwsp_entry_tile tile = {at->rows, at->cols, at->lead, at->row, at->col};
    return tile;
}

PWSP_INLINE pwsp_tile_at pwsp_entry_tile_at(const pwsp_entry_tile *tile, uint32_t tensor,
                                            uint32_t access) {
    const pwsp_tile_at at = {tensor,     tile->rows, tile->cols, access,
                             tile->lead, tile->row,  tile->col};
    return at;
}

// A task before its result. The caller of a kernel does not look at the cycles of its entry: the
// thread that ends the entry writes them, on a device perhaps another, which gives up a late core.
PWSP_INLINE pwsp_issued pwsp_frontend_issued(const pwsp_entry *entry) {
    const pwsp_issued issued = {pwsp_entry_words(entry), entry->index, 0};
    return issued;
}

PWSP_INLINE pwsp_wall_mark *pwsp_frontend_mark_of(const pwsp_frontend *front,
                                                  const pwsp_entry *entry) {
    const pwsp_reorder *reorder = &front->issue.reorder;
    return &front->marks[(size_t)((const char *)entry - reorder->ring) / reorder->stride];
}

// The words of the expander's task.
PWSP_INTERNAL void pwsp_frontend_fill(const pwsp_frontend *front, uint64_t *words,
                                      const pwsp_arrival *arrival);

// A task as its kernel sees it; args and tiles have room for any.
PWSP_INTERNAL ptowsp_task pwsp_frontend_task_of(const pwsp_frontend *front,
                                                const pwsp_issued *issued, uint64_t *args,
                                                ptowsp_tile *tiles);

// The tiles of a task as the walk found them.
PWSP_INTERNAL void pwsp_frontend_kept_tiles(const pwsp_frontend *front, const pwsp_issued *issued,
                                            pwsp_tile_at *out_tiles);

// Sets the walk's place and variables as they were at a task, for an error.
PWSP_INTERNAL void pwsp_frontend_go_back(pwsp_frontend *front, const pwsp_issued *issued);

// Calls the kernel of a task, whose entry it is, or in whose block it is; accounts for one that has
// run, or failed. The second is false after a failure.
PWSP_INTERNAL ptowsp_cycles pwsp_frontend_call_task(const pwsp_frontend *front,
                                                    const pwsp_entry *entry,
                                                    const pwsp_issued *issued, uint32_t lane);
PWSP_INTERNAL bool pwsp_frontend_retire_task(pwsp_frontend *front, const pwsp_entry *entry,
                                             const pwsp_issued *issued);

// Time has accounted for something, or has failed. False after a failure.
PWSP_INTERNAL bool pwsp_frontend_tell(pwsp_frontend *front, bool is_good);

// A task has been issued, or several of a kernel: are the next ones to be kept?
PWSP_INTERNAL void pwsp_frontend_see(pwsp_frontend *front, uint32_t kernel, uint32_t task_count);

// -- blocks

// A block has no index.
PWSP_INLINE bool pwsp_entry_is_block(const pwsp_entry *entry) {
    return entry->index == PTOWSP_NO_INDEX;
}

// The words of a block: its number of tasks, and the first one's record.
PWSP_INLINE uint32_t pwsp_frontend_block_count(const pwsp_entry *entry) {
    return (uint32_t)pwsp_entry_words(entry)[0];
}

// Makes room for records; false when memory is out.
PWSP_INTERNAL bool pwsp_frontend_reserve_blocks(pwsp_frontend *front);
PWSP_INTERNAL void pwsp_frontend_begin_blocks(pwsp_frontend *front);

// Retires until so many tasks more may be in flight. False after a failure.
PWSP_INTERNAL bool pwsp_frontend_has_room(pwsp_frontend *front, uint32_t task_count);

// Issues the iterations after the present task as blocks, if they can be. False after a failure.
PWSP_INTERNAL bool pwsp_frontend_blocks(pwsp_frontend *front);

// Runs the tasks of a block up to the first that fails, whose result it is; accounts for them.
PWSP_INTERNAL ptowsp_cycles pwsp_frontend_call_block(const pwsp_frontend *front,
                                                     const pwsp_entry *entry, uint32_t lane);
PWSP_INTERNAL bool pwsp_frontend_retire_block(pwsp_frontend *front, const pwsp_entry *entry);

#endif
