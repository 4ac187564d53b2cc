// Lanes of a run: when one that has ended a task may let the walking lane sleep.

#include "src/exec/workers.c"

#include "test.h"

TEST(workers__in_a_chain_the_walking_lane_is_left_asleep) {
    static pwsp_workers_lane lanes[2];
    static pwsp_workers workers;
    pwsp_workers_lane *lane = &lanes[1];
    pwsp_engine *engine = &workers.engine;
    engine->lanes = (char *)lanes;
    engine->lane_stride = sizeof lanes[0];
    engine->lane_capacity = 2;
    pwsp_engine_begin(engine, PWSP_READY_BY_WORK_STEALING, 2, 0);
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
    pwsp_engine_push(engine, &lane->lane, 3);  // something that another lane may take
    pwsp_engine_offer(engine, &lane->lane, 1);
    assert_false(pwsp_workers_may_be_quiet(&workers, lane));
    pwsp_engine_begin(engine, PWSP_READY_BY_FIFO, 2, 0);
    lanes[0].lane.with_index.come_count = 1;
    lanes[1].lane.with_index.come_count = 1;
    lanes[0].lane.with_index.first_key = 0;  // a task that only the walking lane runs
    assert_false(pwsp_workers_may_be_quiet(&workers, lane));
    lanes[0].lane.with_index.first_key = PWSP_ENGINE_EMPTY;
    lanes[1].lane.with_index.first_key = 0;  // one that only the other lane runs
    assert_true(pwsp_workers_may_be_quiet(&workers, lane));
}
