// Devices for which the system has no more threads: each thread that a device starts is refused
// once, and those that have been started end. (The library is inside, pwsp_thread_start too, so
// that pthread_create can be replaced.) And how threads of devices wait beside programs that compute.

#include <pthread.h>

__attribute__((unused)) static int test_pthread_create(pthread_t *out_thread,
                                                       const pthread_attr_t *attributes,
                                                       void *(*fn)(void *), void *arg);
#define pthread_create test_pthread_create

#include "src/base/os.c"

#include "src/device/device.h"

#include "test.h"

#undef pthread_create

static uint32_t started, refuse_at;  // from 1; 0 refuses none

static int test_pthread_create(pthread_t *out_thread, const pthread_attr_t *attributes,
                               void *(*fn)(void *), void *arg) {
    return ++started == refuse_at ? 11 : pthread_create(out_thread, attributes, fn, arg);
}

TEST(device_threads__any_thread_may_be_refused) {
#ifndef PTOWSP_NO_THREADS
    test_memory memory;
    ptowsp_context *context = test_counted(&memory);
    size_t before = memory.live_bytes;
    const ptowsp_device_desc desc = {.scheduler_count = 3, .vector_count = 4, .cube_count = 1};
    for (refuse_at = 1; refuse_at <= 9; refuse_at++) {
        started = 0;
        ptowsp_device *device;
        ptowsp_status status = ptowsp_device_open(context, &desc, &device);
        assert_int_equal(status, refuse_at <= 8 ? PTOWSP_SYSTEM_FAILED : PTOWSP_OK);
        if (status != PTOWSP_OK) {
            assert_null(device);
            test_error_is(context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                          "device: the system starts no more threads");
        }
        assert_int_equal(started, refuse_at <= 8 ? refuse_at : 8);
        assert_ok(ptowsp_device_close(device));
        assert_int_equal(memory.live_bytes, before);
    }
    ptowsp_context_destroy(context);
#endif
}

// Rounds until a thread sleeps.
static uint32_t count_rounds(const pwsp_cores *cores, pwsp_patience *patience) {
    uint32_t rounds = 0;
    while (pwsp_cores_spin(cores, patience)) {
        rounds++;
    }
    assert_int_equal(patience->round, 0);
    return rounds;
}

TEST(device_threads__after_a_yield_that_came_late_there_are_none_for_a_while) {
    static pwsp_cores cores;
    pwsp_patience patience = {0, 0};
    cores.desc.spin_count = 7;
    cores.desc.yield_count = 5;
    pwsp_patience_yielded(&patience, PWSP_LATE_NS - 1);
    assert_int_equal(patience.hurry, 0);
    assert_in_range(count_rounds(&cores, &patience), 8, 12);  // 12, if none of them is late
    // In the midst of yields:
    patience.round = 9;
    pwsp_patience_yielded(&patience, PWSP_LATE_NS);
    assert_int_equal(count_rounds(&cores, &patience), 0);
    for (uint32_t i = 1; i < PWSP_HURRY_COUNT; i++) {
        assert_int_equal(count_rounds(&cores, &patience), 7);
    }
    assert_int_equal(patience.hurry, 0);
    assert_in_range(count_rounds(&cores, &patience), 8, 12);
}

// A core that has not come back is told to leave while it has its task; it sees that when it has ended.
TEST(device_threads__a_core_that_was_given_up_leaves_when_it_has_ended) {
    pwsp_line line = {0};
    assert_false(pwsp_core_may_begin(&line));
    pwsp_aicpu_open_line(&line);
    assert_true(pwsp_core_may_begin(&line));
    pwsp_core_begin(&line, 6);
    assert_true(pwsp_aicpu_sees_core(&line, 6));
    assert_false(pwsp_aicpu_sees_core(&line, 7));
    pwsp_aicpu_give(&line, 4096);
    assert_true(pwsp_core_poll(&line) == 4096);
    assert_false(pwsp_core_must_quit(&line));
    pwsp_aicpu_quit_lost_line(&line);
    assert_int_equal(pwsp_aicpu_status(&line), PWSP_TASK_ASSIGNED);  // it is not interrupted
    pwsp_core_done(&line);
    assert_true(pwsp_core_poll(&line) == 0);
    assert_true(pwsp_core_must_quit(&line));
}
