// Lanes take from queues: their own, and what their ring has room for.

#include "src/engine/engine.h"

#include "test.h"

enum { RING = 512, TASKS = 2000 };

static pwsp_engine_lane lanes[2];

static pwsp_engine engine_of_two(void) {
    static pwsp_ready_link links[TASKS];
    memset(lanes, 0, sizeof lanes);
    return (pwsp_engine){.job.links = {links, sizeof links[0]},
                         .lanes = (char *)lanes,
                         .lane_stride = sizeof lanes[0],
                         .lane_capacity = 2};
}

// A lane with a full ring has a task from the queue; it offers all that the ring has, and runs the 512 oldest
// first. Its last one makes 480 ready, so that of the 99 in the queue, of which a lane takes half, the ring has
// room for 32 besides the one that the lane runs.
TEST(take__no_more_than_the_ring_has_room_for) {
    static uint32_t runs[TASKS];
    pwsp_engine engine = engine_of_two();
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

static uint32_t third_group(void *user, uint32_t task, uint64_t *out_key) {
    (void)user;
    *out_key = 0;
    return task % 3;
}

// Each lane has a queue.
TEST(take__every_group_of_lanes_has_its_queue) {
    static pwsp_ready_link links[9];
    test_memory memory = {0};
    const pwsp_memory made = pwsp_memory_make(test_resize, &memory);
    pwsp_engine engine;
    pwsp_engine_init(&engine, &made);
    engine.job.links = (pwsp_ready_links){links, sizeof links[0]};
    engine.job.group_of = third_group;
    assert_true(pwsp_engine_reserve(&engine, 3, sizeof(pwsp_engine_lane)));
    pwsp_engine_begin(&engine, PWSP_READY_BY_FIFO, 3, 0);
    for (uint32_t i = 0; i < 9; i++) {
        pwsp_engine_push(&engine, pwsp_engine_at(&engine, 0), i);
    }
    pwsp_engine_offer(&engine, pwsp_engine_at(&engine, 0), 0);
    for (uint32_t lane = 0; lane < 3; lane++) {
        for (uint32_t i = lane; i < 9; i += 3) {  // in the order in which they came
            assert_int_equal(pwsp_engine_take(&engine, pwsp_engine_at(&engine, lane)), i);
        }
    }
    assert_int_equal(pwsp_engine_take(&engine, pwsp_engine_at(&engine, 1)), PWSP_ENGINE_NONE);
    pwsp_engine_free(&engine);
    assert_int_equal(memory.live_blocks, 0);
}

// A thief that has read the word of a deque must not take what the owner has put there since, however often the
// owner takes tasks back and offers as many others.
TEST(deque__each_offer_has_a_word_of_its_own) {
    static pwsp_deque deque;
    uint64_t words[8];
    pwsp_deque_reset(&deque);
    for (uint32_t i = 0; i < 8; i++) {
        pwsp_deque_push(&deque, i);
        pwsp_deque_publish(&deque, 1);
        words[i] = deque.word;
        for (uint32_t before = 0; before < i; before++) {
            assert_true(words[before] != words[i]);
        }
        assert_int_equal(pwsp_deque_reclaim(&deque, 1), 1);
        assert_int_equal(pwsp_deque_pop(&deque), i);
    }
}

// As a run that was cancelled leaves them.
TEST(take__tasks_of_the_run_before_are_gone) {
    pwsp_engine engine = engine_of_two();
    for (int run = 0; run < 2; run++) {
        pwsp_engine_begin(&engine, PWSP_READY_BY_WORK_STEALING, 2, 0);
        for (uint32_t lane = 0; lane < 2; lane++) {
            assert_int_equal(pwsp_engine_own(&engine, &lanes[lane], 1), PWSP_ENGINE_NONE);
            assert_int_equal(pwsp_engine_take(&engine, &lanes[lane]), PWSP_ENGINE_NONE);
        }
        for (uint32_t i = 0; i < RING + 100; i++) {
            pwsp_engine_push(&engine, &lanes[0], i);
        }
        assert_int_equal(pwsp_engine_take(&engine, &lanes[0]), RING);  // and offers the others
    }
}
