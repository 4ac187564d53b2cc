// Lanes of a run: when one that has ended a task may let the walking lane sleep.

#include "../src/exec/workers.c"

#include "test.h"

static void workers__in_a_chain_the_walking_lane_is_left_asleep(void **state) {
    (void)state;
    static pwsp_workers_lane lanes[2];
    static pwsp_workers workers;
    pwsp_workers_lane *lane = &lanes[1];
    workers.lanes = lanes;
    workers.lane_count = 2;
    for (int i = 0; i < 2; i++) {
        pwsp_deque_reset(&lanes[i].deque);
        lanes[i].has_come = 1;
    }
    lane->kept = 7;  // its next task
    workers.walker.asleep = 1;
    assert_true(pwsp_workers_may_be_quiet(&workers, lane));
    lane->kept = PWSP_WORKERS_NONE;  // its last task
    assert_false(pwsp_workers_may_be_quiet(&workers, lane));
    lane->kept = 7;
    workers.walker.asleep = 0;  // the full protocol decides
    assert_false(pwsp_workers_may_be_quiet(&workers, lane));
    workers.walker.asleep = 1;
    assert_true(pwsp_workers_may_be_quiet(&workers, lane));
    workers.link = 1;  // a task that communicates
    assert_false(pwsp_workers_may_be_quiet(&workers, lane));
    workers.link = 0;
    pwsp_deque_push(&lane->deque, 3);  // something that another lane may take
    pwsp_deque_publish(&lane->deque, 1);
    assert_false(pwsp_workers_may_be_quiet(&workers, lane));
    pwsp_deque_reset(&lane->deque);
    workers.job.is_homed = true;
    lanes[0].queue.count = 1;  // a task that only the walking lane runs
    assert_false(pwsp_workers_may_be_quiet(&workers, lane));
    lanes[0].queue.count = 0;
    lanes[1].queue.count = 1;  // one that only the other lane runs
    assert_true(pwsp_workers_may_be_quiet(&workers, lane));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers__in_a_chain_the_walking_lane_is_left_asleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
