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

// Contexts of each kind over counted memory, and what running on them says: an executor may leave out a
// lane, which is an error though the work is done.
static const struct {
    ptowsp_threads threads;
    uint32_t lane_count;
    ptowsp_run_lanes_fn run_lanes;
    ptowsp_status status;
} modes[] = {
    {PTOWSP_THREADS_SERIAL, 1, NULL, PTOWSP_OK},
    {PTOWSP_THREADS_USER, 1, test_run_lanes_backwards, PTOWSP_OK},
    {PTOWSP_THREADS_USER, 5, test_run_lanes_backwards, PTOWSP_OK},
    {PTOWSP_THREADS_USER, 3, run_lanes_forwards, PTOWSP_OK},
    {PTOWSP_THREADS_USER, 3, test_run_lanes_on_threads, PTOWSP_OK},
    {PTOWSP_THREADS_USER, 4, run_lanes_but_one, PTOWSP_SYSTEM_FAILED},
#if !defined(PTOWSP_NO_THREADS)
    {PTOWSP_THREADS_OWN, 1, NULL, PTOWSP_OK},
    {PTOWSP_THREADS_OWN, 2, NULL, PTOWSP_OK},
    {PTOWSP_THREADS_OWN, 3, NULL, PTOWSP_OK},
    {PTOWSP_THREADS_OWN, 8, NULL, PTOWSP_OK},
#endif
};

#define MODE_COUNT (COUNT_OF(modes))

static test_memory lane_memory;

static inline ptowsp_context *context_make(ptowsp_threads threads, uint32_t lane_count,
                                           ptowsp_run_lanes_fn run_lanes) {
    const ptowsp_context_desc desc = {test_resize, &lane_memory, threads,
                                      lane_count,  run_lanes,    NULL};
    return test_context(&desc);
}

static inline ptowsp_context *context_of_mode(size_t mode) {
    return context_make(modes[mode].threads, modes[mode].lane_count, modes[mode].run_lanes);
}

// A call on lanes of a kind has done its work, and says so, or that a lane was left out.
static inline void lanes_have_run(const ptowsp_context *context, size_t mode,
                                  ptowsp_status status) {
    assert_int_equal(status, modes[mode].status);
    if (status == PTOWSP_SYSTEM_FAILED) {
        test_error_is(context, status, PTOWSP_NO_INDEX,
                      "threads: run_lanes did not call each of its 4 lanes once");
    }
}

// Where no lane is left out there has been no error.
static inline void no_error(const ptowsp_context *context, size_t mode) {
    if (modes[mode].status == PTOWSP_OK) {
        test_error_is(context, PTOWSP_OK, PTOWSP_NO_INDEX, "");
    }
}

// A test with a context of each kind. What runs there allocates nothing.
#define MODES_TEST(name)                                                                           \
    static void name##_of(ptowsp_context *context, size_t mode);                                   \
    TEST(name) {                                                                                   \
        for (size_t mode = 0; mode < MODE_COUNT; mode++) {                                         \
            ptowsp_context *context = context_of_mode(mode);                                       \
            const size_t allocations = lane_memory.allocations;                                    \
            name##_of(context, mode);                                                              \
            assert_int_equal(lane_memory.allocations, allocations);                                \
            ptowsp_context_destroy(context);                                                       \
            assert_int_equal(lane_memory.live_blocks, 0);                                          \
            test_release();                                                                        \
        }                                                                                          \
    }                                                                                              \
    static void name##_of(ptowsp_context *context, __attribute__((unused)) size_t mode)

#endif
