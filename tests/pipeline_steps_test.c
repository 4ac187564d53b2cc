// Steps of pipelines and their critical chains, on paper. Steps are written as in pipeline_fixture.h,
// each behind the name of its process.

#include "pipeline_fixture.h"

// Asserts that steps are these; `ids` says which, NULL are the first ones.
static void expect_list(const fixture *f, const uint64_t *ids, uint64_t count,
                        const char *expected) {
    static char text[1 << 16];
    uint64_t step_count = 0;
    uint32_t process_count = 0;
    size_t length = 0;
    const ptowsp_step_record *steps = ptowsp_run_steps(f->run, &step_count);
    const ptowsp_process_stats *processes = ptowsp_run_processes(f->run, &process_count);
    text[0] = '\0';
    for (uint64_t i = 0; i < count && length + 200 < sizeof text; i++) {
        char one[200];
        const ptowsp_step_record *step = &steps[ids ? ids[i] : i];
        assert_true(step < steps + step_count && step->process < process_count);
        step_text(f->run, step, one, sizeof one);
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s %s",
                                   length ? ", " : "", processes[step->process].name, one);
    }
    if (strcmp(text, expected) != 0) {
        print_error("  got    %s\n  not    %s\n", text, expected);
        fail();
    }
}

static void expect_chain(const fixture *f, uint32_t id, const char *expected) {
    uint64_t count = 0;
    const uint64_t *chain = ptowsp_run_critical_steps(f->run, id, &count);
    expect_list(f, chain, count, expected);
}

static void expect_all_steps(const fixture *f, const char *expected) {
    uint64_t count = 0;
    ptowsp_run_steps(f->run, &count);
    expect_list(f, NULL, count, expected);
}

// The step of this kind of a process that ends at a time.
static uint64_t step_of(const fixture *f, const char *name, ptowsp_step_kind kind, uint64_t end) {
    uint64_t count = 0;
    const ptowsp_step_record *steps = ptowsp_run_steps(f->run, &count);
    for (uint64_t i = 0; i < count; i++) {
        if (steps[i].process == process_of(f, name, 0) && steps[i].kind == kind &&
            steps[i].end == end) {
            return i;
        }
    }
    fail_msg("%s has no such step at %llu", name, (unsigned long long)end);
    return 0;
}

static const ptowsp_step_record *steps_of(const fixture *f) {
    uint64_t count = 0;
    return ptowsp_run_steps(f->run, &count);
}

// load --[depth, latency]--> use
static void run_two(fixture *f, uint32_t depth, ptowsp_cycles latency, int64_t count,
                    int64_t load_cycles, int64_t late, int64_t use_cycles) {
    fixture_make(f);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "two") {
            ptowsp_channel a = channel(f, "a", depth, latency);
            producer(f, "load", a, 0, count, load_cycles);
            consumer(f, "use", a, late, use_cycles);
        }
    }
    run(f);
}

// -- steps ----------------------------------------------------------------------------------------

// At each moment the process with the smallest time moves, load first of two; one that waits keeps
// the time at which it came. So use takes token 0 (it waits since 0) before load goes on at 4, and
// load sends token 2 (it waits since 12) before use goes on at 14.
static void pipeline_steps__are_in_the_order_in_which_time_moves(void **state) {
    (void)state;
    fixture f;
    run_two(&f, 1, 0, 3, 4, 0, 10);
    expect_all_steps(&f, "load task 0-4, load a!0 4, use a?0 0-4, load task 4-8, use task 4-14, "
                         "load a!1 8, load task 8-12, use a?1 14, load a!2 12-14, load end 14, "
                         "use task 14-24, use a?2 24, use task 24-34, use a?end 34, use end 34");
    fixture_free(&f);
}

static void pipeline_steps__say_what_and_where(void **state) {
    (void)state;
    fixture f;
    run_two(&f, 1, 0, 3, 4, 0, 10);
    const ptowsp_step_record *steps = steps_of(&f);
    char text[200];
    uint64_t send = step_of(&f, "load", PTOWSP_STEP_SEND, 8);
    uint64_t receive = step_of(&f, "use", PTOWSP_STEP_RECEIVE, 14);
    uint64_t task = step_of(&f, "use", PTOWSP_STEP_TASK, 24);
    uint64_t end = step_of(&f, "use", PTOWSP_STEP_END, 34);
    assert_int_equal(steps[send].token, 1);
    assert_int_equal(steps[receive].token, 1);
    assert_int_equal(steps[task].token, 4);  // tasks: load, load, use, load, use, use
    assert_int_equal(ptowsp_run_records(f.run)[4].start, 14);
    assert_int_equal(steps[send].channel, 0);
    assert_int_equal(steps[receive].channel, 0);
    assert_int_equal(steps[end].channel, 0);
    assert_int_equal(steps[task].channel, UINT32_MAX);
    const struct {
        uint64_t step;
        const char *place;
    } rows[] = {{send, "main/pipeline two/process load/for_each i/"},
                {receive, "main/pipeline two/process use/consume t"},
                {task, "main/pipeline two/process use/consume t/task work"},
                {end, "main/pipeline two/process use/consume t"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ptowsp_text_buffer buffer = {text, sizeof text, 0};
        ptowsp_program_print_place(f.program, steps[rows[i].step].node,
                                   ptowsp_text_to_buffer(&buffer));
        assert_memory_equal(text, rows[i].place, strlen(rows[i].place));
    }
    for (int i = 0; i < 2; i++) {  // which has waited, and which has not
        uint64_t last = step_of(&f, i == 0 ? "load" : "use", PTOWSP_STEP_CLOSE, i == 0 ? 14 : 34);
        ptowsp_text_buffer buffer = {text, sizeof text, 0};
        ptowsp_program_print_place(f.program, steps[last].node, ptowsp_text_to_buffer(&buffer));
        assert_string_equal(text, i == 0 ? "main/pipeline two/process load"
                                         : "main/pipeline two/process use");
    }
    fixture_free(&f);
}

// A receive that waits has the send as its cause, a send that waits the receive that made room, an
// end the close; what did not wait has none.
static void pipeline_steps__know_what_they_waited_for(void **state) {
    (void)state;
    fixture f;
    run_two(&f, 1, 0, 3, 4, 0, 10);
    const ptowsp_step_record *steps = steps_of(&f);
    uint64_t none = PTOWSP_NO_INDEX;
    assert_true(steps[step_of(&f, "use", PTOWSP_STEP_RECEIVE, 4)].cause ==
                step_of(&f, "load", PTOWSP_STEP_SEND, 4));
    assert_true(steps[step_of(&f, "load", PTOWSP_STEP_SEND, 14)].cause ==
                step_of(&f, "use", PTOWSP_STEP_RECEIVE, 14));
    assert_true(steps[step_of(&f, "load", PTOWSP_STEP_SEND, 4)].cause == none);
    assert_true(steps[step_of(&f, "load", PTOWSP_STEP_SEND, 8)].cause == none);
    assert_true(steps[step_of(&f, "use", PTOWSP_STEP_RECEIVE, 14)].cause == none);
    assert_true(steps[step_of(&f, "use", PTOWSP_STEP_END, 34)].cause == none);
    assert_true(steps[step_of(&f, "use", PTOWSP_STEP_TASK, 14)].cause == none);
    assert_true(steps[step_of(&f, "use", PTOWSP_STEP_CLOSE, 34)].cause == none);
    fixture_free(&f);
}

// -- critical chains ------------------------------------------------------------------------------

static void pipeline_steps__a_slow_consumer_is_the_chain(void **state) {
    (void)state;
    fixture f;
    run_two(&f, 1, 0, 3, 4, 0, 10);
    expect_chain(&f, 0,
                 "load task 0-4, load a!0 4, use a?0 0-4, use task 4-14, use a?1 14, "
                 "use task 14-24, use a?2 24, use task 24-34, use a?end 34, use end 34");
    fixture_free(&f);
}

static void pipeline_steps__a_slow_producer_is_the_chain(void **state) {
    (void)state;
    fixture f;
    run_two(&f, 1, 0, 3, 10, 0, 4);
    expect_chain(&f, 0,
                 "load task 0-10, load a!0 10, load task 10-20, load a!1 20, load task 20-30, "
                 "load a!2 30, use a?2 24-30, use task 30-34, use a?end 34, use end 34");
    fixture_free(&f);
}

// A channel that is too short for its latency: room comes back with the receive.
//      sent     0   50  100
//      taken   50  100  150
static void pipeline_steps__latency_and_depth_are_the_chain(void **state) {
    (void)state;
    fixture f;
    run_two(&f, 1, 50, 3, 0, 0, 0);
    expect_chain(&f, 0,
                 "load task 0-0, load a!0 0, use a?0 0-50, load a!1 0-50, use a?1 50-100, "
                 "load a!2 50-100, use a?2 100-150, use task 150-150, use a?end 150, use end 150");
    fixture_free(&f);
}

// The receiver is late: the sender waits for it, and it for nobody.
static void pipeline_steps__a_rendezvous_waits_for_who_came_last(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 0, 0);
            PTOWSP_PROCESS(f.m, "load") {
                ptowsp_produces(f.m, a);
                busy(&f, 4);
                send(&f, a, 1);
                busy(&f, 40);
            }
            PTOWSP_PROCESS(f.m, "use") {
                ptowsp_consumes(f.m, a);
                busy(&f, 10);
                PTOWSP_RECEIVE(f.m, t, a) {
                    work(&f, t, 5);
                }
            }
        }
    }
    run(&f);
    expect_chain(&f, 0, "use task 0-10, use a?1 10, load a!1 4-10, load task 10-50, load end 50");
    fixture_free(&f);
}

// Both wait until 9, five cycles after the sender came: that is what counts for both.
static void pipeline_steps__a_rendezvous_with_latency_waits_for_the_sender(void **state) {
    (void)state;
    for (int is_load_last = 0; is_load_last < 2; is_load_last++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", 0, 5);
                PTOWSP_PROCESS(f.m, "load") {
                    ptowsp_produces(f.m, a);
                    busy(&f, 4);
                    send(&f, a, 1);
                    busy(&f, is_load_last ? 20 : 1);
                }
                PTOWSP_PROCESS(f.m, "use") {
                    ptowsp_consumes(f.m, a);
                    busy(&f, 6);
                    PTOWSP_RECEIVE(f.m, t, a) {
                        work(&f, t, 2);
                    }
                }
            }
        }
        run(&f);
        expect_chain(&f, 0,
                     is_load_last ? "load task 0-4, load a!1 4-9, load task 9-29, load end 29"
                                  : "load task 0-4, load a!1 4-9, use a?1 6-9, use task 9-11, "
                                    "use end 11");
        fixture_free(&f);
    }
}

// use ends when the channel is closed, by a close or by the end of the process.
static void pipeline_steps__the_end_of_a_stream_waits_for_the_close(void **state) {
    (void)state;
    for (int is_early = 0; is_early < 2; is_early++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", 2, 0);
                PTOWSP_PROCESS(f.m, "load") {
                    ptowsp_produces(f.m, a);
                    send(&f, a, 1);
                    busy(&f, 30);
                    if (is_early) {
                        ptowsp_close(f.m, a);
                    }
                }
                PTOWSP_PROCESS(f.m, "use") {
                    ptowsp_consumes(f.m, a);
                    PTOWSP_CONSUME(f.m, t, a) {
                        work(&f, t, 5);
                    }
                    busy(&f, 1);
                }
            }
        }
        run(&f);
        expect_chain(&f, 0,
                     is_early ? "load a!1 0, load task 0-30, load a!end 30, use a?end 5-30, "
                                "use task 30-31, use end 31"
                              : "load a!1 0, load task 0-30, load end 30, use a?end 5-30, "
                                "use task 30-31, use end 31");
        fixture_free(&f);
    }
}

// Of two processes that end last, the first one counts.
static void pipeline_steps__of_several_that_end_last_the_first_is_the_chain(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            PTOWSP_PROCESS(f.m, "short") {
                busy(&f, 3);
            }
            PTOWSP_PROCESS(f.m, "first") {
                busy(&f, 4);
                busy(&f, 5);
            }
            PTOWSP_PROCESS(f.m, "second") {
                busy(&f, 9);
            }
        }
    }
    run(&f);
    expect_chain(&f, 0, "first task 0-4, first task 4-9, first end 9");
    fixture_free(&f);
}

// Around a circle: each round goes through both processes and both latencies.
static void pipeline_steps__a_chain_goes_around_a_circle(void **state) {
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
                    send_work(&f, b, t, 1);
                }
            }
        }
    }
    run(&f);
    expect_chain(&f, 0,
                 "left task 0-4, left a!0 4, right a?0 0-6, right task 6-7, right b!0 7, "
                 "left b?0 4-10, left task 10-14, left a!1 14, right a?1 7-16, right task 16-17, "
                 "right b!1 17, left b?1 14-20, left end 20");
    fixture_free(&f);
}

// A chain is of the last time that its pipeline ran, and times are of its own clock.
static void pipeline_steps__a_chain_is_of_the_last_time(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_FOR_EACH(f.m, k, axis(&f, "three", 3)) {
            busy(&f, 100);
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", 1, 1);
                PTOWSP_PROCESS(f.m, "load") {
                    ptowsp_produces(f.m, a);
                    ptowsp_task_desc desc = task_desc(&f, f.work, k, 0);
                    desc.axes[1] = linear(&f, k, 10, 5);
                    ptowsp_send_task(f.m, a, &desc);
                }
                consumer(&f, "use", a, 0, 2);
            }
            PTOWSP_PIPELINE(f.m, "q") {
                PTOWSP_PROCESS(f.m, "only") {
                    work(&f, k, 7);
                }
            }
        }
    }
    run(&f);
    expect_chain(&f, 0,
                 "load task 0-25, load a!2 25, use a?2 0-26, use task 26-28, use a?end 28, "
                 "use end 28");
    expect_chain(&f, 1, "only task 0-7, only end 7");
    uint64_t count = 0;
    ptowsp_run_steps(f.run, &count);
    assert_int_equal(count, 3 * (3 + 4 + 2));
    fixture_free(&f);
}

static void pipeline_steps__are_not_kept_unless_asked_for(void **state) {
    (void)state;
    fixture f;
    run_two(&f, 1, 0, 3, 4, 0, 10);
    execute_ok(&f, PTOWSP_RUN_EXECUTE, false);
    uint64_t count = 1;
    assert_null(ptowsp_run_steps(f.run, &count));
    assert_int_equal(count, 0);
    count = 1;
    assert_null(ptowsp_run_critical_steps(f.run, 0, &count));
    assert_int_equal(count, 0);
    fixture_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_steps__are_in_the_order_in_which_time_moves),
        cmocka_unit_test(pipeline_steps__say_what_and_where),
        cmocka_unit_test(pipeline_steps__know_what_they_waited_for),
        cmocka_unit_test(pipeline_steps__a_slow_consumer_is_the_chain),
        cmocka_unit_test(pipeline_steps__a_slow_producer_is_the_chain),
        cmocka_unit_test(pipeline_steps__latency_and_depth_are_the_chain),
        cmocka_unit_test(pipeline_steps__a_rendezvous_waits_for_who_came_last),
        cmocka_unit_test(pipeline_steps__a_rendezvous_with_latency_waits_for_the_sender),
        cmocka_unit_test(pipeline_steps__the_end_of_a_stream_waits_for_the_close),
        cmocka_unit_test(pipeline_steps__of_several_that_end_last_the_first_is_the_chain),
        cmocka_unit_test(pipeline_steps__a_chain_goes_around_a_circle),
        cmocka_unit_test(pipeline_steps__a_chain_is_of_the_last_time),
        cmocka_unit_test(pipeline_steps__are_not_kept_unless_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
