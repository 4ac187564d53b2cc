// Ends that pipelines come to only when they are told: sums beyond 64 bits, names by the thousand, waits
// by the hundred thousand; and which pipelines depend on times. Limits of tokens, and deadlocks, are
// cases (pipeline_faults.case, deadlocks.case).

#include "pipeline_fixture.h"

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

// Three tasks of 2^63 - 1 cycles, three times; and three that wait for them.
FIXTURE_TEST(pipeline_limits__sums_stay_at_the_largest_number) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, k, axis(f, "three", 3)) {
            PTOWSP_PIPELINE(f->m, "p") {
                ptowsp_channel a = channel(f, "a", 3, 0);
                PTOWSP_REPLICATE(f->m, i, axis(f, "loaders", 3), "load") {
                    ptowsp_produces(f->m, a);
                    work(f, i, INT64_MAX);
                    ptowsp_send_make(f->m, a, i);
                }
                PTOWSP_REPLICATE(f->m, j, axis(f, "users", 3), "use") {
                    ptowsp_consumes(f->m, a);
                    PTOWSP_RECEIVE(f->m, t, a) {
                        work(f, t, 0);
                    }
                }
            }
        }
    }
    compile(f, NULL);
    execute_ok(f, PTOWSP_RUN_TIME_ONLY, false);
    const ptowsp_run_stats *stats = ptowsp_run_result(f->run);
    assert_true(makespan(f) == INT64_MAX);
    assert_true(stats->busy_cycles == UINT64_MAX);
    assert_true(stats->stall_cycles[PTOWSP_STALL_CHANNEL] == UINT64_MAX);
    assert_true(pipeline(f, 0)->total_cycles == UINT64_MAX);
    assert_true(process(f, "load", 2)->busy_cycles == UINT64_MAX);
    assert_true(process(f, "use", 1)->empty_cycles == UINT64_MAX);
    assert_true(channel_of(f, "a")->empty_cycles == UINT64_MAX);
}

// 5,000 channels and processes in a row, and one name twice at the end.
FIXTURE_TEST(pipeline_limits__thousands_of_processes) {
    enum { COUNT = 5000 };
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            static ptowsp_channel channels[COUNT];
            char name[32];
            for (int i = 0; i < COUNT; i++) {
                snprintf(name, sizeof name, "c%d", i);
                channels[i] = channel(f, name, 1, 1);
            }
            for (int i = 0; i <= COUNT; i++) {
                snprintf(name, sizeof name, "p%d", i);
                PTOWSP_PROCESS(f->m, name) {
                    if (i > 0) {
                        ptowsp_consumes(f->m, channels[i - 1]);
                    }
                    if (i < COUNT) {
                        ptowsp_produces(f->m, channels[i]);
                    }
                    if (i == 0) {
                        send(f, channels[0], 1);
                        send(f, channels[0], 2);
                    } else {
                        PTOWSP_CONSUME(f->m, t, channels[i - 1]) {
                            if (i < COUNT) {
                                ptowsp_send_make(f->m, channels[i], t);
                            }
                        }
                    }
                }
            }
        }
    }
    compile(f, NULL);
    // Token 1 takes a cycle for each channel; token 2 can be sent when token 1 has been received.
    for (int i = 0; i < 2; i++) {
        execute_ok(f, i ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE, false);
        assert_int_equal(makespan(f), COUNT + 1);
    }
}

// What was only found when a pipeline had run before.
FIXTURE_TEST(pipeline_limits__time_without_data_is_refused_the_first_time_too) {
    PTOWSP_WORKLOAD(f->m, "main") {
        touch(f, f->put, f->x, number(f, 0), 0, number(f, 0), 1);
        const ptowsp_view view = {f->x, {{NULL, 0}}, {NULL, 0}, {NULL, 0},
                                  0,    0,           {NULL, 0}, {NULL, 0}};
        const ptowsp_expr none = {NULL, 0};
        ptowsp_slot_load_make(f->m, 1, &view, none, none);
    }
    compile(f, NULL);
    assert_int_equal(execute(f, PTOWSP_RUN_TIME_ONLY, false), PTOWSP_UNSUPPORTED);
    EXPECT_PARTS(ptowsp_context_error(f->context).text, "main/slot_load 1");
}

FIXTURE_TEST(pipeline_limits__counts_are_not_asked_for) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            ptowsp_channel a = channel(f, "a", 1, 0);
            producer(f, "load", a, 0, 3, 1);
            consumer(f, "use", a, 0, 1);
        }
    }
    compile(f, NULL);
    execute_ok(f, PTOWSP_RUN_EXECUTE, true);
    assert_non_null(ptowsp_run_pipelines(f->run, NULL));
    assert_non_null(ptowsp_run_processes(f->run, NULL));
    assert_non_null(ptowsp_run_channels(f->run, NULL));
    assert_non_null(ptowsp_run_steps(f->run, NULL));
    assert_non_null(ptowsp_run_critical_steps(f->run, 0, NULL));
    assert_null(ptowsp_run_critical_steps(f->run, 1, NULL));
}

// -- without a cycle -----------------------------------------------------------------------------

// One record for 100,000 waits. (To look for each process at who could let it go on, among all,
// would take minutes.)
FIXTURE_TEST(pipeline_stuck__a_hundred_thousand_that_wait) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PIPELINE(f->m, "p") {
            ptowsp_channel e = ptowsp_event_make(f->m, "E");
            PTOWSP_REPLICATE(f->m, w, axis(f, "crowd", 100000), "waits") {
                (void)w;
                ptowsp_consumes(f->m, e);
                ptowsp_wait_make(f->m, e);
            }
            PTOWSP_PROCESS(f->m, "records") {
                ptowsp_produces(f->m, e);
                ptowsp_record_make(f->m, e);
            }
        }
    }
    compile(f, NULL);
    assert_int_equal(execute(f, PTOWSP_RUN_TIME_ONLY, false), PTOWSP_STUCK);
    EXPECT_PARTS(ptowsp_context_error(f->context).text, "waits[1] finds E empty",
                 "and 99996 more wait", "event E needs as many waits as records");
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

TEST(pipeline_stuck__some_depend_on_times) {
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
                        ptowsp_slot_load_make(f.m, 0, &view, ptowsp_i64(f.m, 0),
                                              ptowsp_i64(f.m, 0));
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
