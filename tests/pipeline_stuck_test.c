// Deadlocks of pipelines: for each the exact facts, in the results and in ptowsp_run_print_stuck:
// who waits, where, since when, with which variables, in which cycle, and what would help.

#include "pipeline_fixture.h"

// Executes, asserts that it is stuck, and returns what is to be said about that.
static const char *stuck(fixture *f) {
    static char text[16000];
    char other[8000];
    ptowsp_text_buffer buffer = {text, sizeof text, 0};
    ptowsp_text_buffer result = {other, sizeof other, 0};
    assert_int_equal(execute(f, PTOWSP_RUN_EXECUTE, true), PTOWSP_STUCK);
    ptowsp_error error = ptowsp_context_error(f->context);
    assert_int_equal(error.status, PTOWSP_STUCK);
    assert_null(strchr(error.text, '\n'));
    EXPECT_PARTS(error.text, "main/", "pipeline p");
    ptowsp_run_print_stuck(f->run, ptowsp_text_to_buffer(&buffer));
    assert_in_range(buffer.length, 1, sizeof text - 1);
    EXPECT_PARTS(text, "pipeline p");
    ptowsp_run_print(f->run, ptowsp_text_to_buffer(&result));
    assert_in_range(result.length, 1, sizeof other - 1);
    return text;
}

// Asserts how a process waits, and that the text says so: its paragraph names the channel, the time
// and the place.
static void expect_waiting(const fixture *f, const char *text, const char *name, uint32_t replica,
                           ptowsp_process_state state, const char *at, uint64_t since,
                           const char *place) {
    uint32_t count = 0;
    const ptowsp_process_stats *stats = process(f, name, replica);
    const ptowsp_channel_stats *channels = ptowsp_run_channels(f->run, &count);
    char line[100], where[200];
    assert_int_equal(stats->state, state);
    assert_true(stats->channel < count);
    assert_string_equal(channels[stats->channel].name, at);
    assert_int_equal(stats->end_cycles, since);
    ptowsp_text_buffer buffer = {where, sizeof where, 0};
    ptowsp_program_print_place(f->program, stats->node, ptowsp_text_to_buffer(&buffer));
    assert_non_null(strstr(place, where));  // and the variables behind it
    assert_non_null(strstr(text, place));
    const char *paragraph = strstr(text, name), *end = paragraph ? strchr(paragraph, '\n') : NULL;
    assert_non_null(end);
    snprintf(line, sizeof line, "%.*s", (int)(end - paragraph), paragraph);
    assert_non_null(strstr(line, at));
    assert_non_null(strstr(line, state == PTOWSP_PROCESS_FULL ? "full" : "empty"));
    snprintf(where, sizeof where, "since cycle %llu", (unsigned long long)since);
    assert_non_null(strstr(line, where));
}

static void expect_ended(const fixture *f, const char *name, uint32_t replica, uint64_t end) {
    assert_int_equal(process(f, name, replica)->state, PTOWSP_PROCESS_ENDED);
    assert_int_equal(process(f, name, replica)->end_cycles, end);
}

// Asserts that the cycle goes through these processes, in this order, back to the first.
static void expect_cycle(const char *text, const char *const *names, int count) {
    const char *line = strstr(text, "  cycle: "), *end = line ? strchr(line, '\n') : NULL;
    assert_non_null(end);
    for (int i = 0; i <= count; i++) {
        line = strstr(line, names[i % count]);
        assert_non_null(line);
        assert_true(line < end);
        line++;
    }
}

// -- cycles --------------------------------------------------------------------------------------

// left comes to b at 3, right to a at 5: each waits for the other.
static void pipeline_stuck__two_that_receive_first(void **state) {
    (void)state;
    for (uint32_t depth = 0; depth < 3; depth++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "ask", depth, 0);
                ptowsp_channel b = channel(&f, "back", depth, 9);
                PTOWSP_PROCESS(f.m, "left") {
                    ptowsp_consumes(f.m, b);
                    ptowsp_produces(f.m, a);
                    busy(&f, 3);
                    PTOWSP_RECEIVE(f.m, t, b) {
                    }
                    send(&f, a, 1);
                }
                PTOWSP_PROCESS(f.m, "right") {
                    ptowsp_consumes(f.m, a);
                    ptowsp_produces(f.m, b);
                    busy(&f, 5);
                    PTOWSP_CONSUME(f.m, t, a) {
                        ptowsp_send(f.m, b, t);
                    }
                }
                PTOWSP_PROCESS(f.m, "other") {
                    busy(&f, 100);
                }
            }
        }
        compile(&f, NULL);
        const char *text = stuck(&f);
        static const char *const cycle[] = {"left", "right"};
        expect_waiting(&f, text, "left", 0, PTOWSP_PROCESS_EMPTY, "back", 3,
                       "main/pipeline p/process left/receive t");
        expect_waiting(&f, text, "right", 0, PTOWSP_PROCESS_EMPTY, "ask", 5,
                       "main/pipeline p/process right/consume t");
        expect_ended(&f, "other", 0, 100);
        expect_cycle(text, cycle, 2);
        EXPECT_PARTS(text, "2 of 3", "help");
        assert_int_equal(ptowsp_run_result(f.run)->task_count, 3);
        assert_int_equal(ptowsp_run_result(f.run)->busy_cycles, 108);
        assert_int_equal(makespan(&f), 100);
        fixture_free(&f);
    }
}

// Each sends 3 tokens on, and receives only then. A depth of 1 is full with the first; the second
// is ready at 4, 6, 8. With a depth of 3 it goes on.
static void pipeline_stuck__a_full_ring(void **state) {
    (void)state;
    static const char *const names[] = {"first", "second", "third"};
    static const char *const channels[] = {"one", "two", "three"};
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel ring[3];
            for (int k = 0; k < 3; k++) {
                const ptowsp_channel_desc desc = {
                    channels[k], 0, 0, ptowsp_symbol(f.m, "depth"), {NULL, 0}};
                ring[k] = ptowsp_channel_make(f.m, &desc);
            }
            for (int k = 0; k < 3; k++) {
                PTOWSP_PROCESS(f.m, names[k]) {
                    ptowsp_produces(f.m, ring[k]);
                    ptowsp_consumes(f.m, ring[(k + 2) % 3]);
                    PTOWSP_FOR_EACH(f.m, i, axis(&f, names[k], 3)) {
                        send_work(&f, ring[k], i, k + 2);
                    }
                    PTOWSP_FOR_EACH(f.m, j, axis(&f, channels[k], 3)) {
                        PTOWSP_RECEIVE(f.m, t, ring[(k + 2) % 3]) {
                            work(&f, t, 1);
                        }
                    }
                }
            }
        }
    }
    compile(&f, NULL);
    for (uint64_t depth = 0; depth < 4; depth++) {
        assert_int_equal(ptowsp_run_bind_symbol(f.run, "depth", depth), PTOWSP_OK);
        if (depth == 3) {
            run_compiled(&f);
            break;
        }
        const char *text = stuck(&f);
        for (uint64_t k = 0; k < 3; k++) {
            char place[100];
            snprintf(place, sizeof place,
                     "main/pipeline p/process %s/for_each i/send %s (i = %llu)", names[k],
                     channels[k], (unsigned long long)depth);
            expect_waiting(&f, text, names[k], 0, PTOWSP_PROCESS_FULL, channels[k],
                           (depth + 1) * (k + 2), place);
            assert_int_equal(channel_of(&f, channels[k])->token_count, depth);
            assert_int_equal(channel_of(&f, channels[k])->pending_count, depth);
        }
        expect_cycle(text, names, 3);
        EXPECT_PARTS(text, "3 of 3", "help", "depth");
    }
    fixture_free(&f);
}

// Each round load sends two tokens to a and one to b, with a task of 1 cycle before each; zip takes
// one of each. In round 2 a is full: tokens 2 and 3 are there, 0 and 1 have been taken.
//      load    a 1  a 2  b 3    a 4  a 5  b 6    a 7: full at 8 for the second one of round 2
//      zip     a 1       b 3-4  a 4       b 6-7  a 7, waits for b since then
static void pipeline_stuck__an_unequal_zip(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "even", 2, 0), b = channel(&f, "odd", 2, 0);
            PTOWSP_PROCESS(f.m, "load") {
                ptowsp_produces(f.m, a);
                ptowsp_produces(f.m, b);
                PTOWSP_FOR_EACH(f.m, i, axis(&f, "five", 5)) {
                    send_work(&f, a, linear(&f, i, 10, 0), 1);
                    send_work(&f, a, linear(&f, i, 10, 1), 1);
                    send_work(&f, b, i, 1);
                }
            }
            PTOWSP_PROCESS(f.m, "zip") {
                ptowsp_consumes(f.m, a);
                ptowsp_consumes(f.m, b);
                PTOWSP_CONSUME(f.m, t, a) {
                    PTOWSP_RECEIVE(f.m, u, b) {
                        work(&f, u, 1);
                    }
                }
            }
        }
    }
    compile(&f, NULL);
    const char *text = stuck(&f);
    static const char *const cycle[] = {"load", "zip"};
    expect_waiting(&f, text, "load", 0, PTOWSP_PROCESS_FULL, "even", 8,
                   "main/pipeline p/process load/for_each i/send even (i = 2)");
    expect_waiting(&f, text, "zip", 0, PTOWSP_PROCESS_EMPTY, "odd", 7,
                   "main/pipeline p/process zip/consume t/receive u (t = 10)");
    expect_cycle(text, cycle, 2);
    EXPECT_PARTS(text, "2 of 2", "help", "depth", "even");
    assert_int_equal(channel_of(&f, "even")->token_count, 5);
    assert_int_equal(channel_of(&f, "even")->pending_count, 2);
    assert_int_equal(channel_of(&f, "even")->pending_max, 2);
    assert_int_equal(channel_of(&f, "odd")->token_count, 2);
    assert_int_equal(channel_of(&f, "odd")->pending_count, 0);
    fixture_free(&f);
}

// Two barriers that wait before they record.
static void pipeline_stuck__events_in_a_cycle(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = ptowsp_event_make(f.m, "Loaded");
            ptowsp_channel b = ptowsp_event_make(f.m, "Stored");
            PTOWSP_PROCESS(f.m, "left") {
                ptowsp_produces(f.m, a);
                ptowsp_consumes(f.m, b);
                busy(&f, 1);
                ptowsp_wait(f.m, b);
                ptowsp_record(f.m, a);
            }
            PTOWSP_PROCESS(f.m, "right") {
                ptowsp_produces(f.m, b);
                ptowsp_consumes(f.m, a);
                busy(&f, 2);
                ptowsp_wait(f.m, a);
                ptowsp_record(f.m, b);
            }
        }
    }
    compile(&f, NULL);
    const char *text = stuck(&f);
    static const char *const cycle[] = {"left", "right"};
    assert_int_equal(process(&f, "left", 0)->state, PTOWSP_PROCESS_EMPTY);
    assert_int_equal(process(&f, "left", 0)->end_cycles, 1);
    assert_int_equal(process(&f, "right", 0)->end_cycles, 2);
    EXPECT_PARTS(text, "Stored", "Loaded", "since cycle 1", "since cycle 2", "wait Stored", "help");
    expect_cycle(text, cycle, 2);
    fixture_free(&f);
}

// write records once and ends at 6; read waits for the second time, in round 1: at 4, or, when it is
// late, at 10.
static void pipeline_stuck__a_wait_for_what_is_never_recorded(void **state) {
    (void)state;
    static const char *const since[] = {"since cycle 4", "since cycle 10"};
    for (int is_late = 0; is_late < 2; is_late++) {
        fixture f;
        fixture_make(&f);
        ptowsp_axis rounds = ptowsp_axis_dynamic(f.m, "rounds");
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel e = ptowsp_event_make(f.m, "Done");
                PTOWSP_PROCESS(f.m, "write") {
                    ptowsp_produces(f.m, e);
                    busy(&f, 4);
                    ptowsp_record(f.m, e);
                    busy(&f, 2);
                }
                PTOWSP_PROCESS(f.m, "read") {
                    ptowsp_consumes(f.m, e);
                    PTOWSP_FOR_EACH(f.m, i, rounds) {
                        ptowsp_wait(f.m, e);
                        if (is_late) {
                            busy(&f, 6);
                        }
                    }
                }
            }
        }
        compile(&f, NULL);
        assert_int_equal(ptowsp_run_bind_size(f.run, "rounds", 3), PTOWSP_OK);
        const char *text = stuck(&f);
        assert_int_equal(process(&f, "read", 0)->state, PTOWSP_PROCESS_EMPTY);
        assert_int_equal(process(&f, "read", 0)->end_cycles, is_late ? 10 : 4);
        expect_ended(&f, "write", 0, 6);
        EXPECT_PARTS(text, "main/pipeline p/process read/for_each i/wait Done (i = 1)", "1 of 2",
                     "help", "record");
        assert_non_null(strstr(text, since[is_late]));
        EXPECT_PARTS(ptowsp_context_error(f.context).text, "main/pipeline p", "read", "Done");
        assert_int_equal(ptowsp_run_bind_size(f.run, "rounds", 1), PTOWSP_OK);
        run_compiled(&f);
        expect_steps(&f, "read", 0, is_late ? "Done? 0-4, task 4-10, end 10" : "Done? 0-4, end 4");
        fixture_free(&f);
    }
}

// -- oneself --------------------------------------------------------------------------------------

// A rendezvous with oneself; or the wait for the end of a stream that only oneself could close.
static void pipeline_stuck__a_process_that_waits_for_itself(void **state) {
    (void)state;
    for (uint32_t depth = 0; depth < 2; depth++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "again", depth, 2);
                PTOWSP_PROCESS(f.m, "self") {
                    ptowsp_produces(f.m, a);
                    ptowsp_consumes(f.m, a);
                    busy(&f, 6);
                    send(&f, a, 1);
                    PTOWSP_CONSUME(f.m, t, a) {
                        work(&f, t, 1);
                    }
                }
            }
        }
        compile(&f, NULL);
        const char *text = stuck(&f);
        static const char *const cycle[] = {"self"};
        if (depth == 0) {
            expect_waiting(&f, text, "self", 0, PTOWSP_PROCESS_FULL, "again", 6,
                           "main/pipeline p/process self/send again");
        } else {  // sent at 6, taken at 8, 8-9
            expect_waiting(&f, text, "self", 0, PTOWSP_PROCESS_EMPTY, "again", 9,
                           "main/pipeline p/process self/consume t");
        }
        expect_cycle(text, cycle, 1);
        EXPECT_PARTS(text, "1 of 1", "help");
        fixture_free(&f);
    }
}

// -- without a cycle -----------------------------------------------------------------------------

// Two consumers take one token each and end. load sends at 2, 4, 6 and waits at 8 with token 3.
static void pipeline_stuck__consumers_that_stop(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_axis users = ptowsp_axis_dynamic(f.m, "users");
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_FOR_EACH(f.m, k, axis(&f, "rounds", 2)) {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "tiles", 1, 0);
                producer(&f, "load", a, 0, 6, 2);
                PTOWSP_REPLICATE(f.m, w, users, "use") {
                    ptowsp_consumes(f.m, a);
                    PTOWSP_RECEIVE(f.m, t, a) {
                        work(&f, t, 4);
                    }
                }
            }
        }
    }
    compile(&f, NULL);
    assert_int_equal(ptowsp_run_bind_size(f.run, "users", 2), PTOWSP_OK);
    const char *text = stuck(&f);
    expect_waiting(&f, text, "load", 0, PTOWSP_PROCESS_FULL, "tiles", 8,
                   "main/for_each k/pipeline p/process load/for_each i/send tiles (k = 0, i = 3)");
    EXPECT_PARTS(text, "k = 0", "i = 3", "1 of 3", "help", "end");
    assert_null(strstr(text, "  cycle: "));
    expect_ended(&f, "use", 0, 6);
    expect_ended(&f, "use", 1, 8);
    assert_int_equal(process(&f, "use", 1)->empty_cycles, 4);
    assert_int_equal(channel_of(&f, "tiles")->pending_count, 1);
    // with one more the last one stays in the channel, with two more none does
    assert_int_equal(ptowsp_run_bind_size(f.run, "users", 5), PTOWSP_OK);
    run_compiled(&f);
    assert_int_equal(channel_of(&f, "tiles")->pending_count, 1);
    char other[100];
    ptowsp_text_buffer buffer = {other, sizeof other, 0};
    ptowsp_run_print_stuck(f.run, ptowsp_text_to_buffer(&buffer));
    assert_string_equal(other, "");
    fixture_free(&f);
}

// end waits for pass, pass for room at the side, which nobody receives from any more: the chain of
// waits ends there, and every process that waits is named.
static void pipeline_stuck__a_chain_that_ends_where_nobody_is(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "in", 1, 0), b = channel(&f, "out", 1, 0);
            ptowsp_channel side = channel(&f, "side", 0, 0);
            producer(&f, "load", a, 0, 9, 1);
            PTOWSP_REPLICATE(f.m, w, axis(&f, "pair", 2), "pass") {
                ptowsp_consumes(f.m, a);
                ptowsp_produces(f.m, b);
                ptowsp_produces(f.m, side);
                PTOWSP_CONSUME(f.m, t, a) {
                    ptowsp_send(f.m, side, t);
                    ptowsp_send(f.m, b, t);
                }
            }
            consumer(&f, "end", b, 0, 0);
            PTOWSP_PROCESS(f.m, "gone") {
                ptowsp_consumes(f.m, side);
                busy(&f, 20);
                PTOWSP_WHEN(f.m, ptowsp_slot(f.m, 0, PTOWSP_TYPE_BOOL)) {
                    PTOWSP_CONSUME(f.m, t, side) {
                    }
                }
            }
        }
    }
    compile(&f, NULL);
    const char *text = stuck(&f);
    // pass 0 takes token 0 at 1, pass 1 token 1 at 2; token 2 is sent at 3, token 3 not
    assert_int_equal(process(&f, "load", 0)->end_cycles, 4);
    assert_int_equal(process(&f, "pass", 0)->state, PTOWSP_PROCESS_FULL);
    assert_int_equal(process(&f, "pass", 0)->end_cycles, 1);
    assert_int_equal(process(&f, "pass", 1)->state, PTOWSP_PROCESS_FULL);
    assert_int_equal(process(&f, "pass", 1)->end_cycles, 2);
    assert_int_equal(process(&f, "end", 0)->state, PTOWSP_PROCESS_EMPTY);
    assert_int_equal(process(&f, "end", 0)->end_cycles, 0);
    expect_ended(&f, "gone", 0, 20);
    EXPECT_PARTS(text, "load waits", "pass", "(w = 0, t = 0)", "(w = 1, t = 1)", "end waits",
                 "side", "4 of 5", "help", "since cycle 0", "since cycle 1", "since cycle 2",
                 "since cycle 4", "(i = 3)");
    assert_null(strstr(text, "  cycle: "));
    fixture_free(&f);
}

// In a larger program: what was done before is in the results, and what comes after is not done.
static void pipeline_stuck__in_the_middle_of_a_program(void **state) {
    (void)state;
    for (int which = 0; which < 4; which++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            busy(&f, 10);
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", 0, 0);
                producer(&f, "load", a, 0, 2, 3);
                PTOWSP_PROCESS(f.m, "use") {
                    ptowsp_consumes(f.m, a);
                    PTOWSP_WHEN(f.m, ptowsp_slot(f.m, 0, PTOWSP_TYPE_BOOL)) {
                        PTOWSP_CONSUME(f.m, t, a) {
                            work(&f, t, 1);
                        }
                    }
                }
            }
            busy(&f, 20);
        }
        ptowsp_schedule schedule;
        memset(&schedule, 0, sizeof schedule);
        schedule.issue = which == 0 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        schedule.dispatch = which >= 2 ? PTOWSP_DISPATCH_WORK_STEALING : PTOWSP_DISPATCH_DEFAULT;
        schedule.start = which == 3 ? PTOWSP_START_ALL_ISSUED : PTOWSP_START_AT_ONCE;
        schedule.lane_count = 2;
        compile(&f, &schedule);
        const char *text = stuck(&f);
        expect_waiting(&f, text, "load", 0, PTOWSP_PROCESS_FULL, "a", 3,
                       "main/pipeline p/process load/for_each i/send a (i = 0)");
        expect_ended(&f, "use", 0, 0);
        EXPECT_CALLS(&f, 10, 0);
        assert_int_equal(ptowsp_run_result(f.run)->task_count, 2);
        assert_int_equal(makespan(&f), 13);
        assert_int_equal(pipeline(&f, 0)->start_cycles, 10);
        assert_int_equal(ptowsp_run_records(f.run)[0].end, 10);
        assert_int_equal(ptowsp_run_records(f.run)[1].start, 10);
        assert_int_equal(ptowsp_run_records(f.run)[1].end, 13);
        assert_int_equal(ptowsp_run_bind_slot(f.run, 0, 1), PTOWSP_OK);
        run_compiled(&f);
        assert_int_equal(makespan(&f), 10 + 7 + 20);
        fixture_free(&f);
    }
}

// One record for 100,000 waits. (To look for each process at who could let it go on, among all,
// would take minutes.)
static void pipeline_stuck__a_hundred_thousand_that_wait(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel e = ptowsp_event_make(f.m, "E");
            PTOWSP_REPLICATE(f.m, w, axis(&f, "crowd", 100000), "waits") {
                (void)w;
                ptowsp_consumes(f.m, e);
                ptowsp_wait(f.m, e);
            }
            PTOWSP_PROCESS(f.m, "records") {
                ptowsp_produces(f.m, e);
                ptowsp_record(f.m, e);
            }
        }
    }
    compile(&f, NULL);
    assert_int_equal(execute(&f, PTOWSP_RUN_TIME_ONLY, false), PTOWSP_STUCK);
    EXPECT_PARTS(ptowsp_context_error(f.context).text, "waits[1] finds E empty",
                 "and 99996 more wait", "event E needs as many waits as records");
    fixture_free(&f);
}

// -- what depends on times ---------------------------------------------------------------------------

// Two pages, which two processes take one by one: the second one begins at its own time.
static ptowsp_status pages(int64_t late, bool *out_is_independent) {
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel free = channel(&f, "free", 4, 0);
            PTOWSP_PROCESS(f.m, "pool") {
                ptowsp_produces(f.m, free);
                send(&f, free, 0);
                send(&f, free, 1);
            }
            for (int i = 0; i < 2; i++) {
                PTOWSP_PROCESS(f.m, i ? "second" : "first") {
                    ptowsp_consumes(f.m, free);
                    ptowsp_produces(f.m, free);
                    busy(&f, i ? late : 1);
                    PTOWSP_RECEIVE(f.m, a, free) {
                        busy(&f, 10);
                        PTOWSP_RECEIVE(f.m, b, free) {
                            busy(&f, 10);
                        }
                    }
                    send(&f, free, 2);
                    send(&f, free, 3);
                }
            }
        }
    }
    compile(&f, NULL);
    ptowsp_status status = execute(&f, PTOWSP_RUN_EXECUTE, false);
    *out_is_independent = ptowsp_run_pipelines(f.run, NULL)->is_timing_independent;
    fixture_free(&f);
    return status;
}

static void pipeline_stuck__some_depend_on_times(void **state) {
    (void)state;
    bool is_independent;
    assert_int_equal(pages(30, &is_independent), PTOWSP_OK);
    assert_false(is_independent);
    assert_int_equal(pages(2, &is_independent), PTOWSP_STUCK);
    assert_false(is_independent);
    // One producer and one consumer each: whether loads of slots depend on times decides.
    for (int is_loading = 0; is_loading < 3; is_loading++) {
        fixture f;
        fixture_make(&f);
        f.is_loading = is_loading == 2;
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", 1, 0);
                PTOWSP_PROCESS(f.m, "one") {
                    ptowsp_produces(f.m, a);
                    busy(&f, 3);
                    send(&f, a, 1);
                }
                PTOWSP_PROCESS(f.m, "two") {
                    ptowsp_consumes(f.m, a);
                    if (is_loading) {
                        ptowsp_view view = {
                            .tensor = is_loading == 2 ? f.y : f.x, .rows = 1, .cols = 1};
                        ptowsp_slot_load(f.m, 0, &view, ptowsp_i64(f.m, 0), ptowsp_i64(f.m, 0));
                    }
                    PTOWSP_RECEIVE(f.m, t, a) {
                        touch(&f, f.writes, f.y, number(&f, 0), 0, number(&f, 1), 1);
                    }
                }
            }
        }
        compile(&f, NULL);
        assert_int_equal(execute(&f, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
        assert_int_equal(ptowsp_run_pipelines(f.run, NULL)->is_timing_independent, is_loading < 2);
        fixture_free(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_stuck__some_depend_on_times),
        cmocka_unit_test(pipeline_stuck__two_that_receive_first),
        cmocka_unit_test(pipeline_stuck__a_full_ring),
        cmocka_unit_test(pipeline_stuck__an_unequal_zip),
        cmocka_unit_test(pipeline_stuck__events_in_a_cycle),
        cmocka_unit_test(pipeline_stuck__a_wait_for_what_is_never_recorded),
        cmocka_unit_test(pipeline_stuck__a_process_that_waits_for_itself),
        cmocka_unit_test(pipeline_stuck__consumers_that_stop),
        cmocka_unit_test(pipeline_stuck__a_chain_that_ends_where_nobody_is),
        cmocka_unit_test(pipeline_stuck__in_the_middle_of_a_program),
        cmocka_unit_test(pipeline_stuck__a_hundred_thousand_that_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
