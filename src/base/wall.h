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

PWSP_INLINE void pwsp_wall_read(pwsp_wall *clock, int i) {
    clock->ns[i] = ptowsp_clock_ns();
    clock->ticks[i] = pwsp_ticks();
}

// Nanoseconds from the begin. Both ends must have been read.
PWSP_INLINE uint64_t pwsp_wall_since(const pwsp_wall *clock, uint64_t ticks) {
    uint64_t all = clock->ticks[1] - clock->ticks[0], ns = clock->ns[1] - clock->ns[0];
    uint64_t passed = ticks > clock->ticks[0] ? ticks - clock->ticks[0] : 0;
    return all ? (uint64_t)((double)passed * ((double)ns / (double)all)) : 0;
}

// A task on a lane or core, in ticks; end 0: it has not run.
typedef struct pwsp_wall_mark {
    uint64_t ready, start, end;
    uint32_t lane;
} pwsp_wall_mark;

#endif
