// Lanes take from a queue what their ring has room for.

#include "src/engine/engine.h"

#include "test.h"

enum { RING = 512, TASKS = 2000 };

// A lane with a full ring has a task from the queue; it offers all that the ring has, and runs the 512 oldest
// first. Its last one makes 480 ready, so that of the 99 in the queue, of which a lane takes half, the ring has
// room for 32 besides the one that the lane runs.
TEST(take__no_more_than_the_ring_has_room_for) {
    static pwsp_engine_lane lanes[2];
    static pwsp_ready_link links[TASKS];
    static uint32_t runs[TASKS];
    pwsp_engine engine = {.job.links = {links, sizeof links[0]},
                          .lanes = (char *)lanes,
                          .lane_stride = sizeof lanes[0],
                          .lane_capacity = 2};
    pwsp_engine_lane *lane = &lanes[0];
    pwsp_engine_begin(&engine, PWSP_READY_BY_WORK_STEALING, 1, 0);
    for (uint32_t i = 0; i < RING + 100; i++) {
        pwsp_engine_push(&engine, lane, i);
    }
    assert_int_equal(lane->excess_count, 100);
    assert_int_equal(pwsp_engine_take(&engine, lane), RING);
    for (uint32_t i = 0; i < RING; i++) {
        assert_int_equal(pwsp_engine_take(&engine, lane), i);
    }
    for (uint32_t i = 1000; i < 1480; i++) {
        pwsp_engine_push(&engine, lane, i);
    }
    assert_int_equal(pwsp_engine_take(&engine, lane), RING + 1);
    assert_int_equal(pwsp_deque_offers(lane->deque.word), RING);
    for (uint32_t task; (task = pwsp_engine_take(&engine, lane)) != PWSP_ENGINE_NONE;) {
        assert_in_range(task, RING + 2, 1479);
        runs[task]++;
    }
    for (uint32_t i = RING + 2; i < 1480; i++) {
        assert_int_equal(runs[i], i < RING + 100 || i >= 1000);
    }
}
