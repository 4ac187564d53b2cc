// Pipelines: the rules of time, one by one, worked out on paper. What processes do is written as in
// pipeline_fixture.h; the names of several processes are in the order of the tree.

#include "pipeline_fixture.h"

// load -- a --> use: so many tokens from 0 on, one every `load` cycles; each is used for `use`
// cycles, the first after `late`.
static void run_two(fixture *f, uint32_t depth, ptowsp_cycles latency, int64_t count, int64_t load,
                    int64_t late, int64_t use) {
    fixture_make(f);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "two") {
            ptowsp_channel a = channel(f, "a", depth, latency);
            producer(f, "load", a, 0, count, load);
            consumer(f, "use", a, late, use);
        }
    }
    run(f);
}

static void expect_channel(const fixture *f, const char *name, uint64_t tokens, uint64_t full,
                           uint64_t empty, uint64_t pending_max) {
    const ptowsp_channel_stats *stats = channel_of(f, name);
    assert_int_equal(stats->token_count, tokens);
    assert_int_equal(stats->full_cycles, full);
    assert_int_equal(stats->empty_cycles, empty);
    assert_int_equal(stats->pending_max, pending_max);
}

// -- depth ----------------------------------------------------------------------------------------

//              token     0     1     2    end
//      load    ready     4     8    18
//              sent      4    14    24    24      goes on when the receiver does
//      use     comes     0    14    24    34
//              taken     4    14    24    34
static void pipeline__depth_0_is_a_rendezvous(void **state) {
    (void)state;
    fixture f;
    run_two(&f, 0, 0, 3, 4, 0, 10);
    expect_steps(&f, "load", 0,
                 "task 0-4, a!0 4, task 4-8, a!1 8-14, task 14-18, a!2 18-24, end 24");
    expect_steps(&f, "use", 0,
                 "a?0 0-4, task 4-14, a?1 14, task 14-24, a?2 24, task 24-34, a?end 34, end 34");
    expect_channel(&f, "a", 3, 12, 4, 0);
    assert_int_equal(makespan(&f), 34);
    assert_int_equal(channel_of(&f, "a")->depth, 0);
    fixture_free(&f);
}

//              token     0     1     2    end
//      load    ready     4     8    12
//              sent      4     8    14    14      when token k - 1 has been taken
//      use     taken     4    14    24    34
static void pipeline__depth_1_lets_the_sender_be_one_ahead(void **state) {
    (void)state;
    fixture f;
    run_two(&f, 1, 0, 3, 4, 0, 10);
    expect_steps(&f, "load", 0, "task 0-4, a!0 4, task 4-8, a!1 8, task 8-12, a!2 12-14, end 14");
    expect_steps(&f, "use", 0,
                 "a?0 0-4, task 4-14, a?1 14, task 14-24, a?2 24, task 24-34, a?end 34, end 34");
    expect_channel(&f, "a", 3, 2, 4, 1);
    assert_int_equal(process(&f, "load", 0)->end_cycles, 14);
    assert_int_equal(process(&f, "load", 0)->full_cycles, 2);
    assert_int_equal(process(&f, "use", 0)->empty_cycles, 4);
    assert_int_equal(process(&f, "use", 0)->busy_cycles, 30);
    assert_int_equal(process(&f, "use", 0)->task_count, 3);
    fixture_free(&f);
}

//              token     0     1     2     3    end
//      load    ready     4     8    12    16
//              sent      4     8    12    16     16      token 0 was taken at 4, token 1 at 14
//      use     taken     4    14    24    34     44
// At 12 and at 16 there are two tokens: 1 and 2, then 2 and 3.
static void pipeline__depth_2_lets_the_sender_be_two_ahead(void **state) {
    (void)state;
    fixture f;
    run_two(&f, 2, 0, 4, 4, 0, 10);
    expect_steps(&f, "load", 0,
                 "task 0-4, a!0 4, task 4-8, a!1 8, task 8-12, a!2 12, task 12-16, a!3 16, end 16");
    expect_channel(&f, "a", 4, 0, 4, 2);
    assert_int_equal(makespan(&f), 44);
    fixture_free(&f);
}

//      sent      1  2  3  4  5
//      taken     1 11 21 31 41      at 5 the tokens 1 to 4 are in it
static void pipeline__a_deep_channel_holds_what_it_is_sent(void **state) {
    (void)state;
    fixture f;
    run_two(&f, 100, 0, 5, 1, 0, 10);
    expect_steps(&f, "load", 0,
                 "task 0-1, a!0 1, task 1-2, a!1 2, task 2-3, a!2 3, task 3-4, a!3 4, task 4-5, "
                 "a!4 5, end 5");
    expect_channel(&f, "a", 5, 0, 1, 4);
    assert_int_equal(makespan(&f), 51);
    fixture_free(&f);
    run_two(&f, PTOWSP_CHANNEL_DEPTH_MAX, 0, 5, 1, 0, 10);
    expect_channel(&f, "a", 5, 0, 1, 4);
    assert_int_equal(makespan(&f), 51);
    assert_int_equal(channel_of(&f, "a")->depth, PTOWSP_CHANNEL_DEPTH_MAX);
    fixture_free(&f);
}

// All of 4 tokens are sent at 0 by a producer that does nothing else; the ring has room for 3.
//      sent      0  0  0 20
//      taken    20 21 22 23
static void pipeline__a_receiver_that_comes_late_finds_the_channel_full(void **state) {
    (void)state;
    fixture f;
    run_two(&f, 3, 0, 4, 0, 20, 1);
    expect_steps(&f, "load", 0,
                 "task 0-0, a!0 0, task 0-0, a!1 0, task 0-0, a!2 0, task 0-0, a!3 0-20, end 20");
    expect_steps(&f, "use", 0,
                 "task 0-20, a?0 20, task 20-21, a?1 21, task 21-22, a?2 22, task 22-23, a?3 23, "
                 "task 23-24, a?end 24, end 24");
    expect_channel(&f, "a", 4, 20, 0, 3);
    fixture_free(&f);
}

// -- latency --------------------------------------------------------------------------------------

//              token     0     1     2     3    end
//      load    ready     4     8    12    58
//              sent      4     8    54    64    64      a slot is free when its token is taken
//      use     comes     0    64    74   114   124
//              taken    54    64   104   114   124      sent + 50, or when it comes
static void pipeline__latency_is_from_send_to_receive(void **state) {
    (void)state;
    fixture f;
    run_two(&f, 2, 50, 4, 4, 0, 10);
    expect_steps(&f, "load", 0,
                 "task 0-4, a!0 4, task 4-8, a!1 8, task 8-12, a!2 12-54, task 54-58, a!3 58-64, "
                 "end 64");
    expect_steps(&f, "use", 0,
                 "a?0 0-54, task 54-64, a?1 64, task 64-74, a?2 74-104, task 104-114, a?3 114, "
                 "task 114-124, a?end 124, end 124");
    expect_channel(&f, "a", 4, 48, 84, 2);
    assert_int_equal(channel_of(&f, "a")->latency, 50);
    fixture_free(&f);
}

// At 5 both tokens are on their way: the first will be received at 50, the second at 55.
static void pipeline__tokens_on_their_way_are_in_the_channel(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 4, 50);
            PTOWSP_PROCESS(f.m, "load") {
                ptowsp_produces(f.m, a);
                send(&f, a, 1);
                busy(&f, 5);
                send(&f, a, 2);
            }
            consumer(&f, "use", a, 0, 0);
        }
    }
    run(&f);
    expect_steps(&f, "use", 0, "a?1 0-50, task 50-50, a?2 50-55, task 55-55, a?end 55, end 55");
    expect_channel(&f, "a", 2, 0, 55, 2);
    fixture_free(&f);
}

// A rendezvous at max(receiver comes, sender comes + 5); both go on then. The sender comes at 4.
static void pipeline__a_rendezvous_takes_the_latency_after_the_sender(void **state) {
    (void)state;
    static const struct {
        int64_t late;
        const char *load, *use;
        uint64_t full, empty;
    } rows[] = {
        {0, "task 0-4, a!0 4-9, end 9", "a?0 0-9, task 9-10, a?end 10, end 10", 5, 9},
        {6, "task 0-4, a!0 4-9, end 9", "task 0-6, a?0 6-9, task 9-10, a?end 10, end 10", 5, 3},
        {9, "task 0-4, a!0 4-9, end 9", "task 0-9, a?0 9, task 9-10, a?end 10, end 10", 5, 0},
        {20, "task 0-4, a!0 4-20, end 20", "task 0-20, a?0 20, task 20-21, a?end 21, end 21", 16,
         0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fixture f;
        run_two(&f, 0, 5, 1, 4, rows[i].late, 1);
        expect_steps(&f, "load", 0, rows[i].load);
        expect_steps(&f, "use", 0, rows[i].use);
        expect_channel(&f, "a", 1, rows[i].full, rows[i].empty, 0);
        fixture_free(&f);
    }
}

static void pipeline__the_largest_latency_is_a_latency(void **state) {
    (void)state;
    fixture f;
    run_two(&f, 1, PTOWSP_CYCLES_MAX, 1, 0, 0, 0);
    expect_steps(&f, "use", 0,
                 "a?0 0-9223372036854775807, task 9223372036854775807-9223372036854775807, "
                 "a?end 9223372036854775807, end 9223372036854775807");
    assert_true(makespan(&f) == PTOWSP_CYCLES_MAX);
    fixture_free(&f);
}

// -- the end of a stream --------------------------------------------------------------------------

// load sends at 4 and ends at 10; the token is there at 54. An end has no latency of its own.
static void pipeline__the_end_of_a_stream_has_no_latency(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 4, 50), b = channel(&f, "b", 0, 50);
            PTOWSP_PROCESS(f.m, "load") {
                ptowsp_produces(f.m, a);
                ptowsp_produces(f.m, b);
                busy(&f, 4);
                send(&f, a, 7);
                busy(&f, 6);
                PTOWSP_WHEN(f.m, ptowsp_slot(f.m, 0, PTOWSP_TYPE_BOOL)) {
                    send(&f, b, 1);
                }
            }
            consumer(&f, "use", a, 0, 1);
            consumer(&f, "idle", b, 0, 1);
            consumer(&f, "late", b, 11, 1);
        }
    }
    run(&f);
    expect_steps(&f, "use", 0, "a?7 0-54, task 54-55, a?end 55, end 55");
    expect_steps(&f, "idle", 0, "b?end 0-10, end 10");
    expect_steps(&f, "late", 0, "task 0-11, b?end 11, end 11");
    expect_channel(&f, "b", 0, 0, 10, 0);
    fixture_free(&f);
}

// One producer ends at 5, the other at 30, whichever comes first in the tree.
static void pipeline__a_channel_closes_with_its_last_producer(void **state) {
    (void)state;
    for (int is_turned = 0; is_turned < 2; is_turned++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", 8, 3);
                PTOWSP_PROCESS(f.m, "one") {
                    ptowsp_produces(f.m, a);
                    send(&f, a, 1);
                    busy(&f, is_turned ? 30 : 5);
                }
                PTOWSP_PROCESS(f.m, "two") {
                    ptowsp_produces(f.m, a);
                    send(&f, a, 2);
                    busy(&f, is_turned ? 5 : 30);
                }
                consumer(&f, "use", a, 0, 1);
            }
        }
        run(&f);
        expect_steps(&f, "use", 0, "a?1 0-3, task 3-4, a?2 4, task 4-5, a?end 5-30, end 30");
        expect_channel(&f, "a", 2, 0, 28, 2);
        fixture_free(&f);
    }
}

static void pipeline__a_channel_closes_earlier_than_its_producers_end(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 0);
            PTOWSP_PROCESS(f.m, "one") {
                ptowsp_produces(f.m, a);
                busy(&f, 5);
                ptowsp_close(f.m, a);
                busy(&f, 100);
            }
            PTOWSP_PROCESS(f.m, "two") {
                ptowsp_produces(f.m, a);
                busy(&f, 3);
                send(&f, a, 1);
                busy(&f, 9);
                ptowsp_close(f.m, a);
                busy(&f, 200);
            }
            consumer(&f, "use", a, 0, 2);
        }
    }
    run(&f);
    expect_steps(&f, "one", 0, "task 0-5, a!end 5, task 5-105, end 105");
    expect_steps(&f, "two", 0, "task 0-3, a!1 3, task 3-12, a!end 12, task 12-212, end 212");
    expect_steps(&f, "use", 0, "a?1 0-3, task 3-5, a?end 5-12, end 12");
    fixture_free(&f);
}

static void pipeline__closing_twice_does_nothing(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 0);
            PTOWSP_PROCESS(f.m, "one") {
                ptowsp_produces(f.m, a);
                ptowsp_close(f.m, a);
                busy(&f, 5);
                ptowsp_close(f.m, a);
                busy(&f, 10);
            }
            producer(&f, "two", a, 1, 1, 8);  // the channel is still its own
            consumer(&f, "use", a, 0, 0);
        }
    }
    run(&f);
    expect_steps(&f, "use", 0, "a?1 0-8, task 8-8, a?end 8, end 8");
    assert_int_equal(makespan(&f), 15);
    fixture_free(&f);
}

// use takes one token and ends; the other two stay.
static void pipeline__tokens_may_be_left_in_a_channel(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 2, 0);
            producer(&f, "load", a, 0, 3, 4);
            PTOWSP_PROCESS(f.m, "use") {
                ptowsp_consumes(f.m, a);
                PTOWSP_RECEIVE(f.m, t, a) {
                    work(&f, t, 1);
                }
            }
        }
    }
    run(&f);
    assert_int_equal(channel_of(&f, "a")->pending_count, 2);
    expect_channel(&f, "a", 3, 0, 4, 2);
    assert_int_equal(makespan(&f), 12);
    fixture_free(&f);
}

// -- receiving once, and draining -----------------------------------------------------------------

// Tokens at 4 and 8, the end at 8.
static void pipeline__receive_takes_one_token_or_none_at_the_end(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 0);
            producer(&f, "load", a, 10, 2, 4);
            PTOWSP_PROCESS(f.m, "use") {
                ptowsp_consumes(f.m, a);
                PTOWSP_FOR_EACH(f.m, i, axis(&f, "four", 4)) {
                    PTOWSP_RECEIVE(f.m, t, a) {
                        work(&f, t, 1);
                    }
                    busy(&f, 2);
                }
            }
        }
    }
    run(&f);
    expect_steps(
        &f, "use", 0,
        "a?10 0-4, task 4-5, task 5-7, a?11 7-8, task 8-9, task 9-11, a?end 11, task 11-13, "
        "a?end 13, task 13-15, end 15");
    EXPECT_CALLS(&f, 10, 11, 10, 2, 11, 2, 2, 2);
    fixture_free(&f);
}

// The inner loop receives what is left; then the outer one sees the end too.
static void pipeline__consuming_in_a_consume_drains_the_channel(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 0);
            PTOWSP_PROCESS(f.m, "load") {
                ptowsp_produces(f.m, a);
                PTOWSP_FOR_EACH(f.m, i, axis(&f, "three", 3)) {
                    ptowsp_send(f.m, a, linear(&f, i, 1, 5));
                }
            }
            PTOWSP_PROCESS(f.m, "use") {
                ptowsp_consumes(f.m, a);
                PTOWSP_CONSUME(f.m, first, a) {
                    PTOWSP_CONSUME(f.m, other, a) {
                        work(&f, linear(&f, first, 100, 0), 1);
                        work(&f, other, 1);
                    }
                    work(&f, first, 1);
                }
            }
        }
    }
    run(&f);
    EXPECT_CALLS(&f, 500, 6, 500, 7, 5);
    expect_steps(&f, "use", 0,
                 "a?5 0, a?6 0, task 0-1, task 1-2, a?7 2, task 2-3, task 3-4, a?end 4, task 4-5, "
                 "a?end 5, end 5");
    fixture_free(&f);
}

// -- feedback -------------------------------------------------------------------------------------

// A process that sends to itself: each token is received 3 cycles after it was sent.
static void pipeline__a_process_may_send_to_itself(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 3);
            PTOWSP_PROCESS(f.m, "loop") {
                ptowsp_produces(f.m, a);
                ptowsp_consumes(f.m, a);
                PTOWSP_FOR_EACH(f.m, i, axis(&f, "three", 3)) {
                    ptowsp_send(f.m, a, linear(&f, i, 10, 0));
                    PTOWSP_RECEIVE(f.m, t, a) {
                        work(&f, t, 2);
                    }
                }
                send(&f, a, 99);
                ptowsp_close(f.m, a);
                PTOWSP_CONSUME(f.m, u, a) {
                    work(&f, u, 1);
                }
            }
        }
    }
    run(&f);
    expect_steps(&f, "loop", 0,
                 "a!0 0, a?0 0-3, task 3-5, a!10 5, a?10 5-8, task 8-10, a!20 10, a?20 10-13, "
                 "task 13-15, a!99 15, a!end 15, a?99 15-18, task 18-19, a?end 19, end 19");
    fixture_free(&f);
}

// What comes back over b sets the pace: a round takes 4 + 2 + 1 + 3 cycles.
//      left     task 0-4, sends a at 4;        takes b at 10, ...
//      right    takes a at 6, task 6-7, sends b at 7
static void pipeline__a_circle_of_two_goes_round(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 2), b = channel(&f, "b", 1, 3);
            PTOWSP_PROCESS(f.m, "left") {
                ptowsp_produces(f.m, a);
                ptowsp_consumes(f.m, b);
                PTOWSP_FOR_EACH(f.m, i, axis(&f, "two", 2)) {
                    send_work(&f, a, i, 4);
                    PTOWSP_RECEIVE(f.m, t, b) {
                    }
                }
            }
            PTOWSP_PROCESS(f.m, "right") {
                ptowsp_consumes(f.m, a);
                ptowsp_produces(f.m, b);
                PTOWSP_CONSUME(f.m, t, a) {
                    send_work(&f, b, linear(&f, t, 1, 10), 1);
                }
            }
        }
    }
    run(&f);
    expect_steps(&f, "left", 0,
                 "task 0-4, a!0 4, b?10 4-10, task 10-14, a!1 14, b?11 14-20, end 20");
    expect_steps(&f, "right", 0,
                 "a?0 0-6, task 6-7, b!10 7, a?1 7-16, task 16-17, b!11 17, a?end 17-20, end 20");
    fixture_free(&f);
}

// -- events ---------------------------------------------------------------------------------------

// first waits from 2 on, and the record is at 7; second waits at 20, and the record since 7.
static void pipeline__a_record_meets_a_wait_whoever_comes_first(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel e = ptowsp_event_make(f.m, "E");
            PTOWSP_PROCESS(f.m, "writes") {
                ptowsp_produces(f.m, e);
                busy(&f, 7);
                ptowsp_record(f.m, e);
                ptowsp_record(f.m, e);
                busy(&f, 1);
            }
            PTOWSP_PROCESS(f.m, "first") {
                ptowsp_consumes(f.m, e);
                busy(&f, 2);
                ptowsp_wait(f.m, e);
                busy(&f, 3);
            }
            PTOWSP_PROCESS(f.m, "second") {
                ptowsp_consumes(f.m, e);
                busy(&f, 20);
                ptowsp_wait(f.m, e);
                busy(&f, 4);
            }
        }
    }
    run(&f);
    expect_steps(&f, "writes", 0, "task 0-7, E! 7, E! 7-20, task 20-21, end 21");
    expect_steps(&f, "first", 0, "task 0-2, E? 2-7, task 7-10, end 10");
    expect_steps(&f, "second", 0, "task 0-20, E? 20, task 20-24, end 24");
    expect_channel(&f, "E", 2, 13, 5, 0);
    fixture_free(&f);
}

// A barrier: each tells the other that it is there.
static void pipeline__two_events_make_a_barrier(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = ptowsp_event_make(f.m, "A"), b = ptowsp_event_make(f.m, "B");
            PTOWSP_PROCESS(f.m, "left") {
                ptowsp_produces(f.m, a);
                ptowsp_consumes(f.m, b);
                PTOWSP_FOR_EACH(f.m, i, axis(&f, "two", 2)) {
                    busy(&f, 5);
                    ptowsp_record(f.m, a);
                    ptowsp_wait(f.m, b);
                }
            }
            PTOWSP_PROCESS(f.m, "right") {
                ptowsp_produces(f.m, b);
                ptowsp_consumes(f.m, a);
                PTOWSP_FOR_EACH(f.m, i, axis(&f, "pair", 2)) {
                    busy(&f, 8);
                    ptowsp_wait(f.m, a);
                    ptowsp_record(f.m, b);
                }
            }
        }
    }
    run(&f);
    expect_steps(&f, "left", 0, "task 0-5, A! 5-8, B? 8, task 8-13, A! 13-16, B? 16, end 16");
    expect_steps(&f, "right", 0, "task 0-8, A? 8, B! 8, task 8-16, A? 16, B! 16, end 16");
    fixture_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline__depth_0_is_a_rendezvous),
        cmocka_unit_test(pipeline__depth_1_lets_the_sender_be_one_ahead),
        cmocka_unit_test(pipeline__depth_2_lets_the_sender_be_two_ahead),
        cmocka_unit_test(pipeline__a_deep_channel_holds_what_it_is_sent),
        cmocka_unit_test(pipeline__a_receiver_that_comes_late_finds_the_channel_full),
        cmocka_unit_test(pipeline__latency_is_from_send_to_receive),
        cmocka_unit_test(pipeline__tokens_on_their_way_are_in_the_channel),
        cmocka_unit_test(pipeline__a_rendezvous_takes_the_latency_after_the_sender),
        cmocka_unit_test(pipeline__the_largest_latency_is_a_latency),
        cmocka_unit_test(pipeline__the_end_of_a_stream_has_no_latency),
        cmocka_unit_test(pipeline__a_channel_closes_with_its_last_producer),
        cmocka_unit_test(pipeline__a_channel_closes_earlier_than_its_producers_end),
        cmocka_unit_test(pipeline__closing_twice_does_nothing),
        cmocka_unit_test(pipeline__tokens_may_be_left_in_a_channel),
        cmocka_unit_test(pipeline__receive_takes_one_token_or_none_at_the_end),
        cmocka_unit_test(pipeline__consuming_in_a_consume_drains_the_channel),
        cmocka_unit_test(pipeline__a_process_may_send_to_itself),
        cmocka_unit_test(pipeline__a_circle_of_two_goes_round),
        cmocka_unit_test(pipeline__a_record_meets_a_wait_whoever_comes_first),
        cmocka_unit_test(pipeline__two_events_make_a_barrier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
