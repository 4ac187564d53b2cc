// Ends that pipelines come to only when they are told: tokens that go round for ever, sums beyond
// 64 bits, names by the thousand.

#include "pipeline_fixture.h"

// Two processes that send each other what they have received, for ever.
static void build_circle(fixture *f, uint32_t depth, int64_t cycles) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            ptowsp_channel a = channel(f, "a", depth, 0), b = channel(f, "b", depth, 0);
            PTOWSP_PROCESS(f->m, "there") {
                ptowsp_produces(f->m, a);
                ptowsp_consumes(f->m, b);
                send(f, a, 1);
                PTOWSP_CONSUME(f->m, t, b) {
                    work(f, t, cycles);
                    ptowsp_send(f->m, a, t);
                }
            }
            PTOWSP_PROCESS(f->m, "back") {
                ptowsp_produces(f->m, b);
                ptowsp_consumes(f->m, a);
                PTOWSP_CONSUME(f->m, t, a) {
                    ptowsp_send(f->m, b, t);
                }
            }
        }
    }
    compile(f, NULL);
}

// there sends 1, and again after each that comes back: its 4th token is one too many. By then it
// has had 3 tasks.
static void pipeline_limits__tokens_that_go_round_for_ever_are_stopped(void **state) {
    (void)state;
    for (uint32_t depth = 0; depth < 3; depth++) {
        for (int records = 0; records < 2; records++) {
            for (int mode = 0; mode < 2; mode++) {
                fixture f;
                fixture_make(&f);
                build_circle(&f, depth, 5);
                ptowsp_run_options options;
                memset(&options, 0, sizeof options);
                options.mode = mode ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE;
                options.record_tasks = records == 1;
                options.token_limit = 3;
                f.call_count = 0;
                assert_int_equal(ptowsp_run_execute(f.run, &options), PTOWSP_LIMIT_EXCEEDED);
                const char *text = ptowsp_context_error(f.context).text;
                EXPECT_PARTS(text, "process there", "channel a", "3 tokens", "t = 1");
                assert_int_equal(channel_of(&f, "a")->token_count, 3);
                assert_int_equal(channel_of(&f, "b")->token_count, 3);
                assert_int_equal(process(&f, "there", 0)->task_count, 3);
                assert_int_equal(process(&f, "there", 0)->busy_cycles, 15);
                assert_int_equal(process(&f, "there", 0)->state, PTOWSP_PROCESS_STOPPED);
                fixture_free(&f);
            }
        }
    }
}

// Of 3 tokens none is too many; the next time the count begins anew.
static void pipeline_limits__as_many_tokens_as_the_limit_are_fine(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_FOR_EACH(f.m, k, axis(&f, "two", 2)) {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", 1, 0);
                producer(&f, "load", a, 0, 3, 1);
                consumer(&f, "use", a, 0, 1);
            }
        }
    }
    compile(&f, NULL);
    for (uint64_t limit = 2; limit < 5; limit++) {
        ptowsp_run_options options;
        memset(&options, 0, sizeof options);
        options.token_limit = limit;
        f.call_count = 0;
        assert_int_equal(ptowsp_run_execute(f.run, &options),
                         limit < 3 ? PTOWSP_LIMIT_EXCEEDED : PTOWSP_OK);
        assert_int_equal(channel_of(&f, "a")->token_count, limit < 3 ? 2 : 6);
    }
    fixture_free(&f);
}

// Five senders, of whom at depth 0 all wait for the receiver before the first token is sent.
static void pipeline_limits__those_who_wait_already_count_when_they_send(void **state) {
    (void)state;
    for (uint32_t depth = 0; depth < 2; depth++) {
        for (int mode = 0; mode < 2; mode++) {
            fixture f;
            fixture_make(&f);
            PTOWSP_WORKLOAD(f.m, "main") {
                PTOWSP_PIPELINE(f.m, "p") {
                    ptowsp_channel a = channel(&f, "a", depth, 0);
                    PTOWSP_REPLICATE(f.m, w, axis(&f, "five", 5), "load") {
                        ptowsp_produces(f.m, a);
                        ptowsp_send(f.m, a, w);
                    }
                    consumer(&f, "use", a, 10, 3);
                }
            }
            compile(&f, NULL);
            ptowsp_run_options options;
            memset(&options, 0, sizeof options);
            options.mode = mode ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE;
            options.token_limit = 2;
            assert_int_equal(ptowsp_run_execute(f.run, &options), PTOWSP_LIMIT_EXCEEDED);
            EXPECT_PARTS(ptowsp_context_error(f.context).text, "channel a", "2 tokens");
            assert_int_equal(channel_of(&f, "a")->token_count, 2);
            fixture_free(&f);
        }
    }
}

// Three tasks of 2^63 - 1 cycles, three times; and three that wait for them.
static void pipeline_limits__sums_stay_at_the_largest_number(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PARALLEL(f.m, k, axis(&f, "three", 3)) {
            PTOWSP_PIPELINE(f.m, "p") {
                ptowsp_channel a = channel(&f, "a", 3, 0);
                PTOWSP_REPLICATE(f.m, i, axis(&f, "loaders", 3), "load") {
                    ptowsp_produces(f.m, a);
                    work(&f, i, INT64_MAX);
                    ptowsp_send(f.m, a, i);
                }
                PTOWSP_REPLICATE(f.m, j, axis(&f, "users", 3), "use") {
                    ptowsp_consumes(f.m, a);
                    PTOWSP_RECEIVE(f.m, t, a) {
                        work(&f, t, 0);
                    }
                }
            }
        }
    }
    compile(&f, NULL);
    execute_ok(&f, PTOWSP_RUN_TIME_ONLY, false);
    const ptowsp_run_stats *stats = ptowsp_run_result(f.run);
    assert_true(makespan(&f) == INT64_MAX);
    assert_true(stats->busy_cycles == UINT64_MAX);
    assert_true(stats->stall_cycles[PTOWSP_STALL_CHANNEL] == UINT64_MAX);
    assert_true(pipeline(&f, 0)->total_cycles == UINT64_MAX);
    assert_true(process(&f, "load", 2)->busy_cycles == UINT64_MAX);
    assert_true(process(&f, "use", 1)->empty_cycles == UINT64_MAX);
    assert_true(channel_of(&f, "a")->empty_cycles == UINT64_MAX);
    fixture_free(&f);
}

// 5,000 channels and processes in a row, and one name twice at the end.
static void pipeline_limits__thousands_of_processes(void **state) {
    (void)state;
    enum { COUNT = 5000 };
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            static ptowsp_channel channels[COUNT];
            char name[32];
            for (int i = 0; i < COUNT; i++) {
                snprintf(name, sizeof name, "c%d", i);
                channels[i] = channel(&f, name, 1, 1);
            }
            for (int i = 0; i <= COUNT; i++) {
                snprintf(name, sizeof name, "p%d", i);
                PTOWSP_PROCESS(f.m, name) {
                    if (i > 0) {
                        ptowsp_consumes(f.m, channels[i - 1]);
                    }
                    if (i < COUNT) {
                        ptowsp_produces(f.m, channels[i]);
                    }
                    if (i == 0) {
                        send(&f, channels[0], 1);
                        send(&f, channels[0], 2);
                    } else {
                        PTOWSP_CONSUME(f.m, t, channels[i - 1]) {
                            if (i < COUNT) {
                                ptowsp_send(f.m, channels[i], t);
                            }
                        }
                    }
                }
            }
        }
    }
    compile(&f, NULL);
    // Token 1 takes a cycle for each channel; token 2 can be sent when token 1 has been received.
    for (int i = 0; i < 2; i++) {
        execute_ok(&f, i ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE, false);
        assert_int_equal(makespan(&f), COUNT + 1);
    }
    fixture_free(&f);
}

// What was only found when a pipeline had run before.
static void pipeline_limits__time_without_data_is_refused_the_first_time_too(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        touch(&f, f.put, f.x, number(&f, 0), 0, number(&f, 0), 1);
        const ptowsp_view view = {f.x, {{NULL, 0}}, {NULL, 0}, {NULL, 0},
                                  0,   0,           {NULL, 0}, {NULL, 0}};
        const ptowsp_expr none = {NULL, 0};
        ptowsp_slot_load(f.m, 1, &view, none, none);
    }
    compile(&f, NULL);
    assert_int_equal(execute(&f, PTOWSP_RUN_TIME_ONLY, false), PTOWSP_UNSUPPORTED);
    EXPECT_PARTS(ptowsp_context_error(f.context).text, "main/slot_load 1");
    fixture_free(&f);
}

static void pipeline_limits__counts_are_not_asked_for(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 0);
            producer(&f, "load", a, 0, 3, 1);
            consumer(&f, "use", a, 0, 1);
        }
    }
    compile(&f, NULL);
    execute_ok(&f, PTOWSP_RUN_EXECUTE, true);
    assert_non_null(ptowsp_run_pipelines(f.run, NULL));
    assert_non_null(ptowsp_run_processes(f.run, NULL));
    assert_non_null(ptowsp_run_channels(f.run, NULL));
    assert_non_null(ptowsp_run_steps(f.run, NULL));
    assert_non_null(ptowsp_run_critical_steps(f.run, 0, NULL));
    assert_null(ptowsp_run_critical_steps(f.run, 1, NULL));
    fixture_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_limits__tokens_that_go_round_for_ever_are_stopped),
        cmocka_unit_test(pipeline_limits__as_many_tokens_as_the_limit_are_fine),
        cmocka_unit_test(pipeline_limits__those_who_wait_already_count_when_they_send),
        cmocka_unit_test(pipeline_limits__sums_stay_at_the_largest_number),
        cmocka_unit_test(pipeline_limits__thousands_of_processes),
        cmocka_unit_test(pipeline_limits__time_without_data_is_refused_the_first_time_too),
        cmocka_unit_test(pipeline_limits__counts_are_not_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
