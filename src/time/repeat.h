// Periods of a walk over processes, which are skipped: see repeat.c.

#ifndef PWSP_REPEAT_H
#define PWSP_REPEAT_H

#include "exchange.h"

// What is kept of a process.
typedef struct pwsp_repeat_process {
    uint64_t time, full, empty, busy, tasks;
    uint64_t i, count;  // of the innermost loop
    uint32_t next_op, after;
    pwsp_process_wait wait;
    bool has_met;
} pwsp_repeat_process;

// A place of a value: a cell, a token on its way, the iteration of a loop.
typedef struct pwsp_repeat_value {
    uint64_t *at;
    uint64_t before;       // the period
    uint64_t added;        // by a period, to the value of place `source` before it
    uint64_t twice_added;  // by two of them
    uint64_t after;        // all periods; until then what they add to the value of place `from`
    uint32_t source, twice_source, from;
} pwsp_repeat_value;

typedef struct pwsp_repeat {
    uint64_t visit_count;  // of processes by the walk
    uint64_t next_look;    // the visit before which to look
    uint64_t other_count;  // ops that may depend on values
    uint64_t weight;       // numbers in the state
    // The state before visit `kept_visit`:
    uint64_t kept_visit, distance, kept_other_count, task_count, constant_count;
    uint32_t first;  // the process that moved
    bool is_kept;
    uint64_t compared;  // numbers, by the last look
    pwsp_repeat_process *processes;
    pwsp_channel *channels;
    uint64_t *times;  // by channel and token, the last one first
    uint64_t process_capacity, channel_capacity, time_capacity;
    // While the values of a period are followed, from the state that is kept:
    pwsp_repeat_value *values;
    uint64_t value_capacity;
    uint32_t value_count;
    uint64_t skip_count;  // periods to be skipped behind it; 0: no values are followed
    pwsp_halt *halt;      // of the walk
    pwsp_halt none;
} pwsp_repeat;

typedef struct pwsp_pipelines pwsp_pipelines;

// Before the walk of a pipeline whose channels are open. False when memory is out.
PWSP_INTERNAL bool pwsp_repeat_begin(pwsp_pipelines *pipelines);

// Before visit `next_look`: skips what repeats.
PWSP_INTERNAL void pwsp_repeat_look(pwsp_pipelines *pipelines);

#endif
