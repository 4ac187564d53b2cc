// Random schedules of lanes: dependencies, dispatch, order, streams and pools. Argument 1 of each task is the
// key.

#ifndef RANDOM_SCHEDULE_H
#define RANDOM_SCHEDULE_H

#include "test.h"

// With tasks on both kinds of cores, which take pools, or maybe without.
static inline void random_schedule_make(uint64_t *seed, ptowsp_module *m, bool has_mix,
                                        ptowsp_schedule *s) {
    const ptowsp_expr key = ptowsp_task_arg(m, 1);
    memset(s, 0, sizeof *s);
    s->dependencies = (uint32_t[]){0, 1, 4, 5, 8, 13, 12}[test_random_in(seed, 0, 6)];
    s->dispatch = (ptowsp_dispatch)test_random_in(seed, 0, PTOWSP_DISPATCH_WORK_STEALING);
    if (s->dispatch >= PTOWSP_DISPATCH_AFFINITY && s->dispatch <= PTOWSP_DISPATCH_CUSTOM) {
        s->dispatch_key = key;
    }
    s->ready = (ptowsp_ready)test_random_in(seed, 0, 2);
    if (s->ready == PTOWSP_READY_PRIORITY) {
        s->priority_key = key;
    }
    if (test_random_in(seed, 0, 2) == 0) {
        s->stream_count = (uint32_t)test_random_in(seed, 2, 3);
        s->stream_key = key;
    }
    if (has_mix || test_random_in(seed, 0, 1)) {
        s->pools = PTOWSP_POOLS_BY_UNIT;
        s->cube_lane_count = (uint32_t)test_random_in(seed, 1, 2);
        s->vector_lane_count = (uint32_t)test_random_in(seed, 4, 5);
    } else {
        s->lane_count = (uint32_t)test_random_in(seed, 1, 4);
    }
}

#endif
