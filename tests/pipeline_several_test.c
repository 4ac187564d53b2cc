// Pipelines: several producers and several consumers of one channel, on paper. What processes do is
// written as in pipeline_fixture.h; the names of several processes are in the order of the tree.

#include "pipeline_fixture.h"

static void expect_channel(const fixture *f, const char *name, uint64_t tokens, uint64_t full,
                           uint64_t empty, uint64_t pending_max) {
    const ptowsp_channel_stats *stats = channel_of(f, name);
    assert_int_equal(stats->token_count, tokens);
    assert_int_equal(stats->full_cycles, full);
    assert_int_equal(stats->empty_cycles, empty);
    assert_int_equal(stats->pending_max, pending_max);
}

// -- several producers ----------------------------------------------------------------------------

// one sends at 7 and 14, two at 5, 10 and 15; two's are before one's although one is first in the
// tree.
static void pipeline_several__tokens_are_in_the_order_in_which_senders_come(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 8, 0);
            producer(&f, "one", a, 10, 2, 7);
            producer(&f, "two", a, 20, 3, 5);
            consumer(&f, "use", a, 50, 0);
        }
    }
    run(&f);
    //                calls at 0         5   7   10  14      when the late consumer is there
    EXPECT_CALLS(&f, 10, 20, 50, 21, 11, 22, 20, 10, 21, 11, 22);
    fixture_free(&f);
}

// All come at 6: by the order of the tree, then by replica.
static void pipeline_several__senders_that_come_at_once_go_by_index_and_replica(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 0);
            consumer(&f, "use", a, 50, 10);
            producer(&f, "one", a, 1, 1, 6);
            PTOWSP_REPLICATE(f.m, w, axis(&f, "three", 3), "more") {
                ptowsp_produces(f.m, a);
                busy(&f, 6);
                ptowsp_send(f.m, a, linear(&f, w, 1, 20));
            }
            producer(&f, "last", a, 3, 1, 6);
        }
    }
    run(&f);
    EXPECT_CALLS(&f, 50, 1, 6, 6, 6, 3, 1, 20, 21, 22, 3);
    expect_steps(&f, "one", 0, "task 0-6, a!1 6, end 6");
    expect_steps(&f, "more", 0, "task 0-6, a!20 6-50, end 50");
    expect_steps(&f, "more", 1, "task 0-6, a!21 6-60, end 60");
    expect_steps(&f, "more", 2, "task 0-6, a!22 6-70, end 70");
    expect_steps(&f, "last", 0, "task 0-6, a!3 6-80, end 80");
    expect_channel(&f, "a", 5, 44 + 54 + 64 + 74, 0, 1);
    fixture_free(&f);
}

//              one            two            use
//              1 sent at 2
//                             comes at 5
//              comes at 7
//                             3 sent at 20   takes 1 at 20
//              2 sent at 30                  takes 3 at 30
static void pipeline_several__waiting_senders_are_served_in_the_order_in_which_they_came(
    void **state) {
    (void)state;
    for (uint32_t depth = 0; depth < 2; depth++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", depth, 0);
                PTOWSP_PROCESS(f.m, "one") {
                    ptowsp_produces(f.m, a);
                    busy(&f, 2);
                    PTOWSP_WHEN(f.m, ptowsp_bool(f.m, depth > 0)) {
                        send(&f, a, 1);
                    }
                    busy(&f, 5);
                    send(&f, a, 2);
                }
                PTOWSP_PROCESS(f.m, "two") {
                    ptowsp_produces(f.m, a);
                    busy(&f, 5);
                    send(&f, a, 3);
                }
                consumer(&f, "use", a, 20, 10);
            }
        }
        run(&f);
        if (depth > 0) {
            expect_steps(&f, "one", 0, "task 0-2, a!1 2, task 2-7, a!2 7-30, end 30");
            expect_steps(&f, "two", 0, "task 0-5, a!3 5-20, end 20");
            expect_steps(&f, "use", 0,
                         "task 0-20, a?1 20, task 20-30, a?3 30, task 30-40, a?2 40, task 40-50, "
                         "a?end 50, end 50");
        } else {
            expect_steps(&f, "one", 0, "task 0-2, task 2-7, a!2 7-30, end 30");
            expect_steps(&f, "two", 0, "task 0-5, a!3 5-20, end 20");
            expect_steps(&f, "use", 0,
                         "task 0-20, a?3 20, task 20-30, a?2 30, task 30-40, a?end 40, end 40");
        }
        fixture_free(&f);
    }
}

// All at 10: third finds a full and waits; last lets taker go on, taker lets second go on, and then
// takes. Now second and third can both send, having come at 10, and second is first in the tree.
static void pipeline_several__one_that_waits_is_not_before_one_that_comes_at_the_same_time(
    void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 0), go = channel(&f, "go", 1, 0);
            ptowsp_channel on = channel(&f, "on", 1, 0);
            PTOWSP_PROCESS(f.m, "taker") {
                ptowsp_consumes(f.m, go);
                ptowsp_produces(f.m, on);
                ptowsp_consumes(f.m, a);
                PTOWSP_RECEIVE(f.m, g, go) {
                }
                send(&f, on, 0);
                PTOWSP_CONSUME(f.m, t, a) {
                    work(&f, t, 1);
                }
            }
            PTOWSP_PROCESS(f.m, "second") {
                ptowsp_consumes(f.m, on);
                ptowsp_produces(f.m, a);
                PTOWSP_RECEIVE(f.m, o, on) {
                }
                send(&f, a, 2);
            }
            PTOWSP_PROCESS(f.m, "third") {
                ptowsp_produces(f.m, a);
                send(&f, a, 5);
                busy(&f, 10);
                send(&f, a, 3);
            }
            PTOWSP_PROCESS(f.m, "last") {
                ptowsp_produces(f.m, go);
                busy(&f, 10);
                send(&f, go, 0);
            }
        }
    }
    run(&f);
    expect_steps(&f, "taker", 0,
                 "go?0 0-10, on!0 10, a?5 10, task 10-11, a?2 11, task 11-12, a?3 12, task 12-13, "
                 "a?end 13, end 13");
    fixture_free(&f);
}

// The token that was sent at 0 is on its way until 50, and so is the slot that it has: one comes at
// 5, after that has been decided, and still waits for it.
static void pipeline_several__a_slot_is_taken_until_its_token_has_come(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 50);
            consumer(&f, "use", a, 0, 0);
            PTOWSP_PROCESS(f.m, "one") {
                ptowsp_produces(f.m, a);
                send(&f, a, 1);
                busy(&f, 5);
                send(&f, a, 2);
                busy(&f, 60);
                send(&f, a, 3);
            }
        }
    }
    run(&f);
    expect_steps(&f, "one", 0, "a!1 0, task 0-5, a!2 5-50, task 50-110, a!3 110, end 110");
    expect_steps(&f, "use", 0,
                 "a?1 0-50, task 50-50, a?2 50-100, task 100-100, a?3 100-160, task 160-160, "
                 "a?end 160, end 160");
    expect_channel(&f, "a", 3, 45, 160, 1);
    fixture_free(&f);
}

// -- several consumers ----------------------------------------------------------------------------

//      load      0-3  3-6  6-9  9-12      sends 1, 2, 3, 4 at 3, 6, 9, 12
//      use 0     takes 1 at 3: 3-4, 4-9; 3 at 9: 9-10, 10-15
//      use 1     takes 2 at 6: 6-7, 7-12; 4 at 12: 12-13, 13-18
static void pipeline_several__replicas_that_wait_get_each_their_token(void **state) {
    (void)state;
    for (uint32_t depth = 0; depth < 3; depth++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", depth, 0);
                producer(&f, "load", a, 1, 4, 3);
                PTOWSP_REPLICATE(f.m, w, axis(&f, "two", 2), "use") {
                    ptowsp_consumes(f.m, a);
                    PTOWSP_CONSUME(f.m, t, a) {
                        work(&f, linear(&f, w, 1, 70), 1);
                        work(&f, t, 5);
                    }
                }
            }
        }
        run(&f);
        EXPECT_CALLS(&f, 1, 2, 70, 1, 3, 71, 2, 4, 70, 3, 71, 4);
        expect_steps(&f, "use", 0,
                     "a?1 0-3, task 3-4, task 4-9, a?3 9, task 9-10, task 10-15, a?end 15, end 15");
        expect_steps(&f, "use", 1,
                     "a?2 0-6, task 6-7, task 7-12, a?4 12, task 12-13, task 13-18, a?end 18, "
                     "end 18");
        fixture_free(&f);
    }
}

// A token every 5 cycles. slow (20 cycles each) and quick (4 each) wait from 0 on; slow is first in
// the tree and takes token 0. quick takes the next ones as they come, until slow is back at 25: at
// that time quick has been waiting since 24.
//      sent     5    10   15   20   25    30
//      by       slow quick ..   ..  quick slow
static void pipeline_several__tokens_go_to_receivers_in_the_order_in_which_they_come(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 4, 0);
            producer(&f, "load", a, 0, 6, 5);
            consumer(&f, "slow", a, 0, 20);
            consumer(&f, "quick", a, 0, 4);
        }
    }
    run(&f);
    expect_steps(&f, "slow", 0, "a?0 0-5, task 5-25, a?5 25-30, task 30-50, a?end 50, end 50");
    expect_steps(&f, "quick", 0,
                 "a?1 0-10, task 10-14, a?2 14-15, task 15-19, a?3 19-20, task 20-24, a?4 24-25, "
                 "task 25-29, a?end 29-30, end 30");
    expect_channel(&f, "a", 6, 0, 5 + 5 + 10 + 1 + 1 + 1 + 1, 1);
    fixture_free(&f);
}

// early is second in the tree, but comes at 4 and not at 6.
static void pipeline_several__waiting_receivers_are_served_in_the_order_in_which_they_came(
    void **state) {
    (void)state;
    for (uint32_t depth = 0; depth < 3; depth++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", depth, 0);
                consumer(&f, "late", a, 6, 9);
                consumer(&f, "early", a, 4, 9);
                producer(&f, "load", a, 1, 2, 10);
            }
        }
        run(&f);
        expect_steps(&f, "early", 0, "task 0-4, a?1 4-10, task 10-19, a?end 19-20, end 20");
        expect_steps(&f, "late", 0, "task 0-6, a?2 6-20, task 20-29, a?end 29, end 29");
        fixture_free(&f);
    }
}

// The same for receivers: at 10 third waits already, and second comes; second is first in the tree.
static void pipeline_several__a_receiver_that_waits_is_not_before_one_of_the_same_time(
    void **state) {
    (void)state;
    for (uint32_t depth = 1; depth < 3; depth++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", depth, 0), go = channel(&f, "go", 1, 0);
                ptowsp_channel on = channel(&f, "on", 1, 0);
                PTOWSP_PROCESS(f.m, "giver") {
                    ptowsp_consumes(f.m, go);
                    ptowsp_produces(f.m, on);
                    ptowsp_produces(f.m, a);
                    PTOWSP_RECEIVE(f.m, g, go) {
                    }
                    send(&f, on, 0);
                    send(&f, a, 7);
                    send(&f, a, 8);
                }
                PTOWSP_PROCESS(f.m, "second") {
                    ptowsp_consumes(f.m, on);
                    ptowsp_consumes(f.m, a);
                    PTOWSP_RECEIVE(f.m, o, on) {
                    }
                    PTOWSP_RECEIVE(f.m, t, a) {
                        work(&f, t, 1);
                    }
                }
                PTOWSP_PROCESS(f.m, "third") {
                    ptowsp_consumes(f.m, a);
                    busy(&f, 10);
                    PTOWSP_RECEIVE(f.m, t, a) {
                        work(&f, t, 2);
                    }
                }
                PTOWSP_PROCESS(f.m, "last") {
                    ptowsp_produces(f.m, go);
                    busy(&f, 10);
                    send(&f, go, 0);
                }
            }
        }
        run(&f);
        expect_steps(&f, "giver", 0, "go?0 0-10, on!0 10, a!7 10, a!8 10, end 10");
        expect_steps(&f, "second", 0, "on?0 0-10, a?7 10, task 10-11, end 11");
        expect_steps(&f, "third", 0, "task 0-10, a?8 10, task 10-12, end 12");
        fixture_free(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_several__tokens_are_in_the_order_in_which_senders_come),
        cmocka_unit_test(pipeline_several__senders_that_come_at_once_go_by_index_and_replica),
        cmocka_unit_test(
            pipeline_several__waiting_senders_are_served_in_the_order_in_which_they_came),
        cmocka_unit_test(
            pipeline_several__one_that_waits_is_not_before_one_that_comes_at_the_same_time),
        cmocka_unit_test(pipeline_several__a_slot_is_taken_until_its_token_has_come),
        cmocka_unit_test(pipeline_several__replicas_that_wait_get_each_their_token),
        cmocka_unit_test(pipeline_several__tokens_go_to_receivers_in_the_order_in_which_they_come),
        cmocka_unit_test(
            pipeline_several__waiting_receivers_are_served_in_the_order_in_which_they_came),
        cmocka_unit_test(
            pipeline_several__a_receiver_that_waits_is_not_before_one_of_the_same_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
