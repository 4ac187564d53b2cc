// Contexts of each kind of lanes, for tests that run the same work on all of them.

#ifndef LANE_MODES_H
#define LANE_MODES_H

#include "test.h"

#include <sched.h>

// Delays a call by a random time, or by 20 times as much.
static inline void lane_delay(uint64_t seed, bool is_long) {
    const uint64_t turns = test_random(&seed) % 200 * (is_long ? 20 : 1);
    for (volatile uint64_t i = 0; i < turns; i++) {
    }
    if (test_random(&seed) % 16 == 0) {
        sched_yield();
    }
}

// An executor that never calls the last lane.
static inline void run_lanes_but_one(void *user, uint32_t lane_count, ptowsp_lane_fn lane,
                                     void *job) {
    (void)user;
    for (uint32_t i = 0; i + 1 < lane_count; i++) {
        lane(job, i);
    }
}

// In order, on the calling thread.
static inline void run_lanes_forwards(void *user, uint32_t lane_count, ptowsp_lane_fn lane,
                                      void *job) {
    (void)user;
    for (uint32_t i = 0; i < lane_count; i++) {
        lane(job, i);
    }
}

static inline ptowsp_context *context_make(ptowsp_threads threads, uint32_t lane_count,
                                           ptowsp_run_lanes_fn run_lanes) {
    ptowsp_context_desc desc = {NULL, NULL, threads, lane_count, run_lanes, NULL};
    return test_context(&desc);
}

static const struct {
    ptowsp_threads threads;
    uint32_t lane_count;
    ptowsp_run_lanes_fn run_lanes;
} modes[] = {
    {PTOWSP_THREADS_SERIAL, 1, NULL},
    {PTOWSP_THREADS_USER, 1, test_run_lanes_backwards},
    {PTOWSP_THREADS_USER, 5, test_run_lanes_backwards},
    {PTOWSP_THREADS_USER, 3, run_lanes_forwards},
    {PTOWSP_THREADS_USER, 3, test_run_lanes_on_threads},
#if !defined(PTOWSP_NO_THREADS)
    {PTOWSP_THREADS_OWN, 1, NULL},
    {PTOWSP_THREADS_OWN, 2, NULL},
    {PTOWSP_THREADS_OWN, 3, NULL},
    {PTOWSP_THREADS_OWN, 8, NULL},
#endif
};

#define MODE_COUNT (COUNT_OF(modes))

static inline ptowsp_context *context_of_mode(size_t mode) {
    return context_make(modes[mode].threads, modes[mode].lane_count, modes[mode].run_lanes);
}

// A test with a context of each kind.
#define MODES_TEST(name)                                                                           \
    static void name##_of(ptowsp_context *context, size_t mode);                                   \
    TEST(name) {                                                                                   \
        for (size_t mode = 0; mode < MODE_COUNT; mode++) {                                         \
            ptowsp_context *context = context_of_mode(mode);                                       \
            name##_of(context, mode);                                                              \
            ptowsp_context_destroy(context);                                                       \
        }                                                                                          \
    }                                                                                              \
    static void name##_of(ptowsp_context *context, __attribute__((unused)) size_t mode)

#endif
