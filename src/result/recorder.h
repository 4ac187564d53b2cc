// Records of tasks: what time tells of each, with what identifies it; and sums over all of them.
//
// Time reports a task when it is issued and when its times are known. Until then every task has a
// record. After that it stays or goes, as the options say:
//
//      slots   | kept | kept | gone | waits | gone | waits |      in the order of issue
//
// Slots that have gone are taken out when the last one goes, or when the table is full and an eighth
// of it has gone. So memory is for the tasks that are kept, and for those in flight. If all are kept,
// a task's slot is its index.

#ifndef PWSP_RECORDER_H
#define PWSP_RECORDER_H

#include "../base/wall.h"
#include "../time/sim.h"
#include "../workload/program.h"
#include "edges.h"

#define PWSP_USAGE_BINS 512u

// Beside a record, by slot.
typedef struct pwsp_record_more {
    uint64_t index;       // of the task
    uint64_t first_word;  // axis values, then scalars
    uint64_t bytes_read, bytes_written;
    bool is_done, is_gone;
} pwsp_record_more;

typedef struct pwsp_recorder {
    pwsp_memory memory;
    const ptowsp_program *program;
    const pwsp_bound_tensor *bound;
    const pwsp_sim *sim;
    ptowsp_record_options options;
    bool is_dense;  // all tasks are kept
    ptowsp_task_record *records;
    pwsp_record_more *more;
    uint64_t *words;
    uint64_t count, gone_count, record_capacity, more_capacity, word_count, word_capacity;
    // Sums.
    ptowsp_task_sums *kernels;
    ptowsp_cycles idle[PTOWSP_STALL_COUNT];
    ptowsp_cycles *usage;  // by bin and kernel
    ptowsp_cycles bin_cycles;
    uint64_t kernel_capacity, usage_capacity;
    pwsp_edges edges;
    // Wall clock: by slot, in ticks until the end, then in nanoseconds.
    pwsp_wall clock;
    ptowsp_task_record *clocks;
    uint64_t clock_capacity;
} pwsp_recorder;

PWSP_INTERNAL void pwsp_recorder_init(pwsp_recorder *recorder, const pwsp_memory *memory,
                                      const ptowsp_program *program,
                                      const pwsp_bound_tensor *bound);

// Forgets everything. False when memory is out.
PWSP_INTERNAL bool pwsp_recorder_begin(pwsp_recorder *recorder, const pwsp_sim *sim,
                                       const ptowsp_record_options *options);

// All has been timed: the sums become final, and the slots that have gone are taken out.
PWSP_INTERNAL void pwsp_recorder_end(pwsp_recorder *recorder);

// The calls that time makes.
PWSP_INTERNAL pwsp_sim_recorder pwsp_recorder_calls(pwsp_recorder *recorder);

// A task has run, after it has been added: its wall clock.
PWSP_INTERNAL void pwsp_recorder_clock(pwsp_recorder *recorder, uint64_t index,
                                       const pwsp_wall_mark *mark);

// The slot of a kept task. False: it was not kept.
PWSP_INTERNAL bool pwsp_recorder_find(const pwsp_recorder *recorder, uint64_t index,
                                      uint64_t *out_slot);

#endif
