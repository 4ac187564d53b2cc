// The pace of tasks: how long tasks of each kernel take on lanes, and what this decides.
//
//      short    below 0.2 us    handing a task to another lane costs as much: while all tasks that come
//                               are short, the walking lane keeps them, and runs them as it does
//                               without lanes
//      medium   below 4 us      consecutive iterations of an innermost loop go to a lane as one block
//      long                     each task alone. So are all of a kernel that is not known yet
//
// Lanes note what tasks take, each in numbers of its own, which the walking lane reads. Of several
// lanes the fastest counts: on a busy machine a lane may be interrupted in the middle of a task.
//
// Keeping may be wrong: tasks become longer, or a few of them are very long. So the walking lane looks at
// the clock after each PWSP_PACE_LOOK tasks, and stops keeping when it finds them long twice in a row:
// once may be an interruption. It waits for twice as many tasks each time before it keeps again.
// Numbers stay from one execution to the next.

#ifndef PWSP_PACE_H
#define PWSP_PACE_H

#include "../base/atomic.h"
#include "../base/wall.h"

#define PWSP_PACE_LOOK 16u     // tasks that are kept between looks at the clock
#if !defined(PWSP_PACE_KNOWN)  // tests/engine/explore_test.c knows sooner
#define PWSP_PACE_KNOWN 32u    // notes of a kernel before its pace is known
#endif
#define PWSP_PACE_BLOCK_MAX 16u  // tasks of a block

#if !defined(PWSP_PACE_SHORT_TICKS)  // more under a sanitizer, where nothing is short
#define PWSP_PACE_SHORT_TICKS (PWSP_TICKS_US / 5)
#endif
#define PWSP_PACE_BLOCK_TICKS (8 * PWSP_TICKS_US)  // the time of a block
#if !defined(PWSP_PACE_HOLD_MIN)
#define PWSP_PACE_HOLD_MIN 64u
#endif
#define PWSP_PACE_HOLD_MAX (1u << 20)
#define PWSP_PACE_TERM     (1u << 18)  // kept tasks, then kernels are measured again

// Of a kernel on a lane, which alone writes it. Atomic.
typedef struct pwsp_pace_note {
    uint32_t ticks;  // of a task, a moving average
    uint32_t count;  // of notes, up to PWSP_PACE_KNOWN
} pwsp_pace_note;

typedef struct pwsp_pace {
    pwsp_memory memory;
    pwsp_pace_note *notes;  // by lane, then by kernel; each lane has whole lines of the cache
    uint32_t kernel_count;
    uint32_t lane_stride, lane_capacity, lane_count;
    // Of the walking lane:
    uint32_t *ticks;      // by kernel: of a task; 0: not known
    bool is_on;           // in this execution blocks may be made
    bool may_keep;        // and tasks may be kept
    uint32_t seen_count;  // tasks seen since it last kept some, up to hold
    uint32_t hold;        // that many tasks must have been seen before it keeps some
    uint32_t kept_count;  // tasks kept since kernels were measured
    uint32_t look_count;  // of these since it looked at the clock
    uint64_t looked_at;   // ticks
    bool was_long;        // at the last look
} pwsp_pace;

// False when memory is out.
PWSP_INTERNAL bool pwsp_pace_init(pwsp_pace *pace, const pwsp_memory *memory,
                                  uint32_t kernel_count);

// Makes room for lanes; false when memory is out.
PWSP_INTERNAL bool pwsp_pace_reserve(pwsp_pace *pace, uint32_t lane_count);

// An execution begins on lanes.
PWSP_INTERNAL void pwsp_pace_begin(pwsp_pace *pace, uint32_t lane_count, bool is_on, bool may_keep);

// -- on lanes -------------------------------------------------------------------------------------

// A lane has run tasks of a kernel in so many ticks.
PWSP_INTERNAL void pwsp_pace_tell(pwsp_pace *pace, uint32_t lane, uint32_t kernel, uint64_t ticks,
                                  uint32_t task_count);

// -- on the walking lane --------------------------------------------------------------------------

// Learns what lanes know of a kernel.
PWSP_INTERNAL void pwsp_pace_learn(pwsp_pace *pace, uint32_t kernel);

// Are tasks of a kernel known to be short?
PWSP_INLINE bool pwsp_pace_is_short(const pwsp_pace *pace, uint32_t kernel) {
    return pace->ticks[kernel] - 1 < PWSP_PACE_SHORT_TICKS - 1;  // 0 is not
}

// The number of tasks in a block, where a kernel has `count` of them; 1: no block.
PWSP_INTERNAL uint32_t pwsp_pace_block(const pwsp_pace *pace, uint32_t kernel, uint64_t count);

// Begins to keep tasks.
PWSP_INTERNAL void pwsp_pace_keep(pwsp_pace *pace);

// The part of pwsp_pace_may_go_on that is rare.
PWSP_INTERNAL bool pwsp_pace_look(pwsp_pace *pace);

// So many tasks have been kept, at most PWSP_PACE_LOOK: may others be? If not, kernels are measured
// again.
PWSP_INLINE bool pwsp_pace_may_go_on(pwsp_pace *pace, uint32_t task_count) {
    pace->look_count += task_count;
    return pace->look_count < PWSP_PACE_LOOK || pwsp_pace_look(pace);
}

#endif
