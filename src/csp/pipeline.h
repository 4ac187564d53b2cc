// Pipelines: processes with a time of their own that meet in channels.

#ifndef PWSP_PIPELINE_H
#define PWSP_PIPELINE_H

#include "../workload/expand.h"
#include "exchange.h"

#define PWSP_NO_STEP PTOWSP_NO_INDEX

// The ops that order.c walks without the expander.
typedef enum pwsp_order_kind {
    PWSP_ORDER_OTHER,
    PWSP_ORDER_LOOP_END,  // of a loop whose variable counts
    PWSP_ORDER_SEND,      // of the value of a cell
    PWSP_ORDER_RECEIVE,
    PWSP_ORDER_TASK,
    PWSP_ORDER_CONSTANT  // a task that is its cycles alone
} pwsp_order_kind;

// An op, prepared for that.
typedef struct pwsp_order_op {
    pwsp_order_kind kind;
    uint32_t cell;   // of the variable or the token
    uint32_t place;  // of this cell among the private ones of the process, + 1; 0: not there
    bool is_loop;    // a receive: see pwsp_process
    pwsp_channel *channel;
    uint32_t node;
    uint32_t index;                          // of itself
    const struct pwsp_order_op *next, *end;  // after it; at the end of the stream
    uint64_t cycles;                         // of a constant task
} pwsp_order_op;

// The callbacks of a pipeline's owner.
typedef struct pwsp_pipeline_host {
    // Runs, or counts, the expander's current task, in a process. False with the expander's error.
    bool (*task)(void *user, const pwsp_process *process, ptowsp_cycles *out_cycles);
    // Do all tasks of an op take the same cycles, and does nobody look at them? Then `task` is not
    // called for them.
    bool (*is_constant)(void *user, const pwsp_task_op *task, ptowsp_cycles *out_cycles);
    // Loads the expander's current slot, in a process, once its element has been written. NULL: it
    // already is. False after a failure.
    bool (*load)(void *user);
    // Waits for tasks that run later than they were accounted for. NULL: no such tasks. False with
    // the expander's error if one has failed.
    bool (*settle)(void *user);
    void *user, *waiting;  // of the first two; of load and settle
    bool is_ordered;       // tasks must be run in the order of time
    bool has_records;      // steps are recorded
    bool has_latency;      // of all channels:
    uint64_t latency;
    uint64_t token_limit;  // of each channel
    pwsp_halt *halt;       // ends the walk early
} pwsp_pipeline_host;

typedef struct pwsp_chain {
    uint64_t first, count;  // in the list of chains' steps
    uint64_t end_step;      // of the last time that the pipeline ran: where its chain ends
} pwsp_chain;

// All pipelines of a run. One runs at a time.
typedef struct pwsp_pipelines {
    const ptowsp_program *program;
    pwsp_memory memory;
    pwsp_expander *x;
    pwsp_pipeline_host host;
    // Of all pipelines:
    ptowsp_pipeline_stats *stats;
    ptowsp_channel_stats *channel_stats;
    ptowsp_process_stats *process_stats;
    uint64_t process_stats_capacity;
    uint32_t process_count;
    pwsp_chain *chains;
    pwsp_order_op *order_ops;  // by op, prepared
    uint64_t slot_load_count;
    uint64_t constant_count;   // tasks for which `task` of the host was not called
    bool has_constants_found;  // in this execution
    // No run of a pipeline can take less than these, of a process and of a channel; the largest of
    // all runs, and whose they are. See pwsp_pipelines_bound.
    uint64_t process_least, channel_least;
    uint32_t least_process, least_channel;  // UINT32_MAX: nobody's
    // Of the running pipeline:
    const pwsp_pipeline_op *op;
    uint32_t index;
    pwsp_frame *outer_frames;  // of the expander, around it
    uint32_t outer_frame_count, outer_next_op, outer_node;
    pwsp_exchange exchange;         // its processes, and the channels of all
    ptowsp_process_stats *running;  // their stats
    uint64_t end_task;  // the last on the critical chain; none unless steps are recorded
    uint64_t *cells;    // of the run
    // Memory for the largest one:
    uint64_t process_capacity, kept_capacity, frame_capacity, closed_capacity;
    uint64_t *kept;  // the slots as they were before, then private cells of processes
    pwsp_frame *frames;
    uint8_t *closed;
    // Steps:
    ptowsp_step_record *steps;
    uint64_t step_capacity;
    uint64_t *chain_steps;
    uint64_t chain_count, chain_capacity;
    bool is_out_of_memory;
    // Of the pipeline in which the last execution deadlocked, until the next execution:
    bool is_stuck;
} pwsp_pipelines;

PWSP_INTERNAL bool pwsp_pipelines_init(pwsp_pipelines *pipelines, const pwsp_memory *memory,
                                       const ptowsp_program *program);

// Forgets the results of the last execution.
PWSP_INTERNAL void pwsp_pipelines_forget(pwsp_pipelines *pipelines);

// Before an execution: makes room for the replicas that the sizes imply; `cells` has the sizes.
// False with an error in the expander.
PWSP_INTERNAL bool pwsp_pipelines_begin(pwsp_pipelines *pipelines, pwsp_expander *x,
                                        const pwsp_pipeline_host *host, const uint64_t *cells);

// Runs the expander's current pipeline, from its time 0. *out_cycles is its makespan. False with an
// error in the expander; *out_cycles is then its progress. The expander returns to its place.
PWSP_INTERNAL bool pwsp_pipelines_run(pwsp_pipelines *pipelines, ptowsp_cycles *out_cycles);

// After an execution: the critical chains. False when memory is out.
PWSP_INTERNAL bool pwsp_pipelines_end(pwsp_pipelines *pipelines);

// Gives the processes of the expander's current pipeline their cells, all at time 0. The expander may
// enter them then.
PWSP_INTERNAL void pwsp_pipelines_place(pwsp_pipelines *pipelines);

#define PWSP_PIPELINE_AT(p, i)   (&(p)->program->pipelines.items[i])
#define PWSP_CHANNEL_AT(p, i)    (&(p)->program->channels.items[i])
#define PWSP_PROCESS_OP_AT(p, i) (&(p)->program->processes.items[i])
#define PWSP_PORT_AT(p, i)       (&(p)->program->ports.items[i])

// Opens the channels of the pipeline whose processes have been placed. *out_is_simple: none has
// several producers or consumers. False with an error in the expander.
PWSP_INTERNAL bool pwsp_pipelines_open(pwsp_pipelines *pipelines, bool *out_is_simple);

// Records the pipeline's present state as a deadlocked run, with the expander's error.
PWSP_INTERNAL void pwsp_pipelines_fail_stuck(pwsp_pipelines *pipelines);

// The expander returns to its place, and slots are as they were before the pipeline.
PWSP_INTERNAL void pwsp_pipelines_restore(pwsp_pipelines *pipelines);

// A process of a pipeline is a walk of its ops: its position, loops and cells, nothing else. So
// thousands need no stacks and no threads. Processes share the cells of the run. A process keeps
// its own copy of cells that others use as well (of replicas, of slots that are set), and these are
// in place only while it walks.

// Swaps the private cells of a process with the run's cells.
PWSP_INLINE void pwsp_process_swap(const pwsp_pipelines *pipelines, const pwsp_process *process) {
    const pwsp_process_op *op = process->op;
    const uint32_t *privates = &pipelines->program->privates.items[op->first_private];
    for (uint32_t i = 0; i < op->private_count; i++) {
        uint64_t *cell = &pipelines->cells[privates[i]], value = *cell;
        *cell = process->kept[i];
        process->kept[i] = value;
    }
}

// Where a process wants a token while it does not walk.
PWSP_INLINE uint64_t *pwsp_process_inbox(const pwsp_pipelines *pipelines,
                                         const pwsp_process *process,
                                         const pwsp_receive_op *receive) {
    return receive->place ? &process->kept[receive->place - 1] : &pipelines->cells[receive->cell];
}

// The expander enters a process at its place; and leaves it.
PWSP_INLINE void pwsp_process_enter(const pwsp_pipelines *pipelines, const pwsp_process *process) {
    pwsp_expander *x = pipelines->x;
    x->frames = process->frames;
    x->frame_count = process->frame_count;
    x->next_op = process->next_op;
    if (process->op->private_count) {
        pwsp_process_swap(pipelines, process);
    }
}

PWSP_INLINE void pwsp_process_leave(const pwsp_pipelines *pipelines, pwsp_process *process) {
    process->frame_count = pipelines->x->frame_count;
    if (process->op->private_count) {
        pwsp_process_swap(pipelines, process);
    }
}

// Records a step of a process, whose time comes from `cause` if that is not NULL, and returns its
// index: a callback of the exchange. See steps.c.
PWSP_INTERNAL uint64_t pwsp_step_add(void *pipelines, pwsp_process *process, ptowsp_step_kind kind,
                                     uint32_t channel, uint64_t end, uint64_t token,
                                     const pwsp_channel_mark *cause);
PWSP_INTERNAL bool pwsp_steps_find_chains(pwsp_pipelines *pipelines);

// "compute[1]"; "compute[1] receives 3 from loaded".
PWSP_INTERNAL void pwsp_steps_print_name(const ptowsp_process_stats *process, ptowsp_output text);
PWSP_INTERNAL void pwsp_steps_print(const pwsp_pipelines *pipelines, const ptowsp_step_record *step,
                                    ptowsp_output text);

// The steps of an order that gets stuck, one on each line.
PWSP_INTERNAL void pwsp_steps_print_order(const pwsp_pipelines *pipelines, ptowsp_output text);

// A report of why the last execution deadlocked, if it did.
PWSP_INTERNAL void pwsp_pipelines_print_stuck(const pwsp_pipelines *pipelines, ptowsp_output text);

#endif
