// Wall clock in ticks, which cost less to read than time: 8 ns instead of 25 on x86-64.
//
// What happened in an execution is marked in ticks. The clock's time at its begin and at its end then
// tells how long a tick is.

#ifndef PWSP_WALL_H
#define PWSP_WALL_H

#include "os.h"

// Of the processor's time stamp counter, which runs at one speed on all cores; elsewhere nanoseconds.
#if defined(__x86_64__) || defined(__i386__)
#define pwsp_ticks()  ((uint64_t)__builtin_ia32_rdtsc())
#define PWSP_TICKS_US UINT64_C(3000)  // in a microsecond, roughly
#else
#define pwsp_ticks()  ptowsp_clock_ns()
#define PWSP_TICKS_US UINT64_C(1000)
#endif

typedef struct pwsp_wall {
    uint64_t ticks[2], ns[2];  // at the begin and at the end
} pwsp_wall;

// Reads both. If the thread is interrupted between them, it tries again.
PWSP_INLINE void pwsp_wall_read(pwsp_wall *wall, int i) {
    uint64_t least = UINT64_MAX;
    for (int k = 0; k < 8 && least > 500; k++) {
        uint64_t before = ptowsp_clock_ns(), ticks = pwsp_ticks();
        uint64_t taken = ptowsp_clock_ns() - before;
        if (taken < least) {
            least = taken;
            wall->ns[i] = before;
            wall->ticks[i] = ticks;
        }
    }
}

// Nanoseconds from the begin. Both ends must have been read.
PWSP_INLINE uint64_t pwsp_wall_since(const pwsp_wall *wall, uint64_t ticks) {
    uint64_t all = wall->ticks[1] - wall->ticks[0], ns = wall->ns[1] - wall->ns[0];
    uint64_t passed = ticks > wall->ticks[0] ? ticks - wall->ticks[0] : 0;
    return all ? (uint64_t)((double)passed * ((double)ns / (double)all)) : 0;
}

// A task on a lane or core, in ticks; end 0: it has not run.
typedef struct pwsp_wall_mark {
    uint64_t ready, start, end;
    uint32_t lane;
} pwsp_wall_mark;

#endif
