// Tasks that communicate: their collective for the ranks that are bound to a run, how long they take,
// and running them.
//
//      kernel + valid sizes + ranks --resolve--> ptowsp_collective
//                                        |-- time, as if all members began at once
//                                        |-- time, from when all members can begin: they tell each
//                                        |   other, or are simulated together (together.c)
//                                        '-- start, poll: data

#ifndef PWSP_COMMUNICATE_H
#define PWSP_COMMUNICATE_H

#include "../base/context.h"
#include "../base/error.h"
#include "../base/halt.h"
#include "../time/sim.h"
#include "../workload/program.h"

#define PWSP_COMM_MEMO_COUNT 64

// Waiting for the communicator: yields, then naps.
#define PWSP_COMM_YIELDS 200
#define PWSP_COMM_NAP_NS 50000

#define PWSP_COMM_CYCLES_PER_US 1850  // of a 910B

// Where ranks meet, a picosecond is cycles_per_us units of time, and a cycle this many.
#define PWSP_COMM_CYCLE UINT64_C(1000000)

// The last times found, by hash.
typedef struct pwsp_comm_memo {
    uint64_t hash;  // 0: none
    uint64_t cycles;
    ptowsp_algorithm algorithm;
    uint32_t node_size;
} pwsp_comm_memo;

// A task that has been issued and has not started, where its time depends on other ranks.
typedef struct pwsp_comm_task {
    const pwsp_kernel_info *kernel;
    uint64_t args[8];  // sizes of tiles, then scalars
    ptowsp_algorithm algorithm;
    uint32_t node_size;
} pwsp_comm_task;

// A tile that is sent or received: in place if its elements lie together, else packed.
typedef struct pwsp_comm_tile {
    ptowsp_tile tile;
    uint64_t rows, cols, blocks;  // blocks of columns, one after another when packed
    char *packed;
    uint64_t capacity;
    bool is_packed;
} pwsp_comm_tile;

typedef struct pwsp_comm {
    pwsp_memory memory;       // of the walking thread
    ptowsp_context *context;  // of the run, or of its start
    ptowsp_context own;       // errors of the walking thread, beside lanes that fail
    ptowsp_run_ranks bound;
    bool is_bound;
    pwsp_halt *halt;
    // Of the walking thread:
    const pwsp_array *arrays;
    pwsp_comm_memo *memos;  // PWSP_COMM_MEMO_COUNT, of programs that communicate
    uint64_t memo_capacity;
    uint64_t *counts;  // of a ragged collective: one for the walk, one for the collective under way
    uint64_t counts_capacity, counts_size;
    uint64_t *times;  // of members: starts, ends
    uint64_t times_capacity;
    pwsp_sim_meeting together;  // ranks that are simulated together; else without a function
    pwsp_comm_memo *choices;    // theirs
    uint64_t choice_count;
    pwsp_comm_task *tasks;  // for the meeting: [task_head, task_tail)
    uint64_t task_capacity, task_head, task_tail;
    ptowsp_rank_wait *waits;  // of tasks that waited for another rank
    uint64_t wait_capacity, wait_count;
    pwsp_sim *sim;
    // Of the lane that moves a collective on:
    bool is_under_way, is_sender;
    uint64_t element;
    pwsp_comm_tile in, out;
    pwsp_error error;  // of the task that failed
} pwsp_comm;

PWSP_INTERNAL void pwsp_comm_init(pwsp_comm *comm, const pwsp_memory *memory,
                                  ptowsp_context *context, pwsp_halt *halt);

// Tiles that are packed: lanes make them, so they are not of the memory of the walking thread.
PWSP_INTERNAL void pwsp_comm_free(pwsp_comm *comm);
PWSP_INTERNAL size_t pwsp_comm_bytes(const pwsp_comm *comm);

PWSP_INTERNAL ptowsp_status pwsp_comm_bind(pwsp_comm *comm, const ptowsp_run_ranks *ranks);

// Before an execution: are ranks bound, do groups divide them, are counts complete? Error in the
// context. Sets the meeting of the sim.
PWSP_INTERNAL ptowsp_status pwsp_comm_begin(pwsp_comm *comm, const ptowsp_program *program,
                                            const pwsp_array *arrays, pwsp_sim *sim,
                                            bool is_time_only);

// After a failure of the run: other ranks get errors instead of waiting.
PWSP_INTERNAL void pwsp_comm_give_up(pwsp_comm *comm);

// -- the walking thread ---------------------------------------------------------------------------

// Do the sizes and scalars in a task's args suit the collective? False with an error.
PWSP_INTERNAL bool pwsp_comm_check(pwsp_comm *comm, const pwsp_kernel_info *kernel,
                                   const uint64_t *args, pwsp_error *error);

// The cycles of a task, if all members begin at once; 0 where they meet. False with an error.
PWSP_INTERNAL bool pwsp_comm_cycles(pwsp_comm *comm, const pwsp_kernel_info *kernel,
                                    const uint64_t *args, uint64_t *out_cycles, pwsp_error *error);

// The collective of the next task that starts, in program order, and whether this rank has a part in
// it. False with an error.
PWSP_INTERNAL bool pwsp_comm_next(pwsp_comm *comm, ptowsp_collective *out, bool *out_is_part,
                                  pwsp_error *error);

// A task has waited for another rank; its index there is PTOWSP_NO_INDEX if it is not known. False:
// memory is out.
PWSP_INTERNAL bool pwsp_comm_note_wait(pwsp_comm *comm, const ptowsp_rank_wait *wait);

// The meeting over a communicator; user is the pwsp_comm.
PWSP_INTERNAL pwsp_meeting pwsp_comm_meet(void *user, uint64_t task, uint64_t start,
                                          uint64_t *out_cycles);

// A SEND as one of its two ends; other collectives as they are.
PWSP_INTERNAL ptowsp_collective pwsp_comm_pair(const ptowsp_collective *c);

// The communicator is not done: pauses, longer each time. False if the run is to end early; then other
// ranks hear of it.
PWSP_INTERNAL bool pwsp_comm_idle(pwsp_comm *comm, uint32_t *round);

// The member that this rank is.
PWSP_INLINE uint32_t pwsp_comm_me(const pwsp_comm *comm, const ptowsp_collective *c) {
    return (comm->bound.rank - c->first) / c->stride;
}

// The collective of a task, whose counts go to `counts`. *out_is_part: this rank has something to do
// in it. False with an error.
PWSP_INTERNAL bool pwsp_comm_resolve(const pwsp_comm *comm, const pwsp_kernel_info *kernel,
                                     const uint64_t *args, uint64_t *counts, ptowsp_collective *c,
                                     bool *out_is_part, pwsp_error *error);

// Runs a task and waits for it. False with comm->error.
PWSP_INTERNAL bool pwsp_comm_run(pwsp_comm *comm, const pwsp_kernel_info *kernel,
                                 const ptowsp_task *task);

// -- any lane, one at a time ----------------------------------------------------------------------

// Begins a task, or moves it on if it is under way. False with comm->error; then it is over.
PWSP_INTERNAL bool pwsp_comm_move(pwsp_comm *comm, const pwsp_kernel_info *kernel,
                                  const ptowsp_task *task, bool *out_is_done);

#endif
