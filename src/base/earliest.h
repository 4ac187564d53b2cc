// Which of many is first: a tournament over times, the left one wins among equals.
//
//                (2, third)
//        (5, second)    (2, third)
//          7     5        2     9
//
// It finds the lane that is free first, the queue with the oldest task, and the process that moves
// next. They are up to 65,536, too many to look at all of them each time; a few are looked at.

#ifndef PWSP_EARLIEST_H
#define PWSP_EARLIEST_H

#include "base.h"

#define PWSP_EARLIEST_FEW 16

typedef struct pwsp_earliest {
    uint64_t *times;    // by node: [1] is the root; i's own is at [leaf_count + i]
    uint32_t *winners;  // by node, whose time it is
    uint32_t count;
    uint32_t leaf_count;  // a power of two
} pwsp_earliest;

// Makes room for count times, which the next function sets, all to one. False when memory is out.
PWSP_INTERNAL bool pwsp_earliest_init(pwsp_earliest *earliest, const pwsp_memory *memory,
                                      uint32_t count);
PWSP_INTERNAL void pwsp_earliest_clear(pwsp_earliest *earliest, uint64_t time);

PWSP_INTERNAL void pwsp_earliest_replay(pwsp_earliest *earliest, uint32_t i, uint64_t time);

PWSP_INLINE void pwsp_earliest_set(pwsp_earliest *earliest, uint32_t i, uint64_t time) {
    PTOWSP_ASSERT(i < earliest->count && time < UINT64_MAX);
    earliest->times[earliest->leaf_count + i] = time;
    if (earliest->count > PWSP_EARLIEST_FEW) {
        pwsp_earliest_replay(earliest, i, time);
    }
}

// The lowest of those with the least time.
PWSP_INLINE uint32_t pwsp_earliest_first(const pwsp_earliest *earliest) {
    if (earliest->count > PWSP_EARLIEST_FEW) {
        return earliest->winners[1];
    }
    const uint64_t *times = earliest->times + earliest->leaf_count;
    uint32_t first = 0;
    uint64_t least = times[0];  // a load of times[first] would wait for first
    for (uint32_t i = 1; i < earliest->count; i++) {
        const bool is_less = times[i] < least;
        first = is_less ? i : first;
        least = is_less ? times[i] : least;
    }
    return first;
}

#endif
