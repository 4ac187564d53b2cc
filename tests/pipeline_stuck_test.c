// Deadlocks of pipelines: for each the exact facts, in the results and in ptowsp_run_print_stuck:
// who waits, where, since when, with which variables, in which cycle, and what would help.

#include "pipeline_fixture.h"

// -- without a cycle -----------------------------------------------------------------------------

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
        cmocka_unit_test(pipeline_stuck__a_hundred_thousand_that_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
