// Memory that simulated lanes share: how long a running task takes.
//
// Events owns when tasks start; this room owns their progress from there to the end.

#ifndef PWSP_CONTENTION_H
#define PWSP_CONTENTION_H

#include "hits.h"

#include "../base/earliest.h"
#include "../engine/policy.h"

typedef enum pwsp_memory_level {
    PWSP_LEVEL_HBM,
    PWSP_LEVEL_L2,
    PWSP_LEVEL_COUNT,
    PWSP_LEVEL_NONE = PWSP_LEVEL_COUNT  // the part moves nothing
} pwsp_memory_level;

// By task in flight.
typedef struct pwsp_contention_task {
    pwsp_demand demand;
    uint64_t missed_bytes;
} pwsp_contention_task;

// By lane: the task that it runs, and the flow of its present part.
typedef struct pwsp_contention_lane {
    uint64_t start;   // of the task
    uint64_t cycles;  // that the task takes alone
    uint64_t begin;   // of the flow
    uint64_t units;   // that it moves
    uint64_t span;    // cycles that it takes alone
    uint64_t cap;     // units a cycle that it takes alone, rounded up
    uint32_t task;
    uint32_t step;  // of the task's parts, two for each: from HBM, from L2
    uint8_t level;  // pwsp_memory_level
    bool is_bound;  // by its share
} pwsp_contention_lane;

// HBM or L2. A bound flow ends when the meter reaches its key.
typedef struct pwsp_bandwidth {
    uint64_t capacity;  // units a cycle; 0: moving takes no time
    uint64_t left;      // capacity for bound flows
    uint64_t share;     // of each of them, rounded down
    uint64_t carry;     // units, fewer than bound flows: that the meter has not yet counted
    uint64_t next;      // when the first of them ends, unless the share is stale; UINT64_MAX: never
    uint64_t meter;
    uint64_t free_caps;  // sum
    uint32_t bound_count;
    bool is_stale;                   // flows have come or gone: share is to be found
    pwsp_earliest bound_ends;        // by lane: meter at which a bound flow ends
    pwsp_earliest bound_by_cap;      // by lane: own rate of a bound flow
    pwsp_earliest free_by_cap;       // by lane: CAP_MAX less the own rate of a free flow
    uint64_t bytes, limited_cycles;  // results
} pwsp_bandwidth;

typedef struct pwsp_contention {
    bool is_used;
    pwsp_memory memory;
    uint32_t lane_count;
    ptowsp_shared_memory shared;
    uint64_t lane_cap;  // in units a cycle; UINT64_MAX: no limit
    pwsp_bandwidth levels[PWSP_LEVEL_COUNT];
    pwsp_contention_lane *lanes;
    pwsp_contention_task *tasks;  // by node
    uint64_t task_capacity;
    pwsp_hits hits;
    uint32_t *begun;  // lanes whose tasks begin now; their flows begin before time moves
    uint32_t begun_count;
    uint64_t now;         // of the meters
    pwsp_earliest *ends;  // by lane: the end of its present part, if that is known
} pwsp_contention;

// Without shared memory in the schedule it is not used, and no other function is called. ends must
// live as long. False when memory is out.
PWSP_INTERNAL bool pwsp_contention_init(pwsp_contention *contention, const pwsp_memory *memory,
                                        const pwsp_timed *timed, pwsp_earliest *ends);

// Back to the beginning, a time before which no task begins. percent: of the schedule's rates.
PWSP_INTERNAL void pwsp_contention_begin(pwsp_contention *contention, uint32_t percent,
                                         uint64_t now);

// A task is issued: keeps its bytes and tiles. False when memory is out.
PWSP_INTERNAL bool pwsp_contention_issue(pwsp_contention *contention, uint32_t task,
                                         const pwsp_arrival *arrival,
                                         const pwsp_bound_tensor *bound);

// A lane begins a task that has been issued, and that takes so many cycles alone. Its end is not known
// before pwsp_contention_next.
PWSP_INTERNAL void pwsp_contention_start(pwsp_contention *contention, uint32_t lane, uint32_t task,
                                         uint64_t cycles);

// A lane's present part has ended. False: its task has, too.
PWSP_INTERNAL bool pwsp_contention_step(pwsp_contention *contention, uint32_t lane);

// Begins the tasks that begin now. Returns when the first bound flow ends, with the shares of the present
// flows; UINT64_MAX without any.
PWSP_INTERNAL uint64_t pwsp_contention_next(pwsp_contention *contention);

// The lane of such a flow.
PWSP_INTERNAL uint32_t pwsp_contention_first(const pwsp_contention *contention);

// Time moves, at most to that. Lanes whose bound flows end then get it as their end.
PWSP_INTERNAL void pwsp_contention_move(pwsp_contention *contention, uint64_t now);

// Adds the results of a run.
PWSP_INTERNAL void pwsp_contention_end(const pwsp_contention *contention, ptowsp_run_stats *stats);

#endif
