// Pipelines and the clock of issue, on paper: slot loads, windows, timing; why tasks of processes
// start when they do; critical paths; results before anything ran, and as text.

#include "pipeline_fixture.h"

static ptowsp_schedule lanes(uint32_t lane_count) {
    ptowsp_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
    schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    schedule.lane_count = lane_count;
    return schedule;
}

// Dataflow with fixed lanes, and where lanes choose.
static ptowsp_schedule choosing(int is_choosing, uint32_t lane_count) {
    ptowsp_schedule schedule = lanes(lane_count);
    if (is_choosing) {
        schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
    }
    return schedule;
}

static void expect(const fixture *f, uint64_t task, uint64_t start, uint64_t end,
                   const char *stall) {
    assert_true(task < ptowsp_run_result(f->run)->task_count);
    const ptowsp_task_record *record = &ptowsp_run_records(f->run)[task];
    if (record->start != start || record->end != end ||
        strcmp(ptowsp_stall_name(record->stall), stall) != 0) {
        fail_msg("task %llu runs from %llu to %llu (%s), not from %llu to %llu (%s)",
                 (unsigned long long)task, (unsigned long long)record->start,
                 (unsigned long long)record->end, ptowsp_stall_name(record->stall),
                 (unsigned long long)start, (unsigned long long)end, stall);
    }
}

static uint64_t stalled(const fixture *f, ptowsp_stall stall) {
    return ptowsp_run_result(f->run)->stall_cycles[stall];
}

// One process with one task of so many cycles.
static void one(const fixture *f, const char *name, int64_t cycles) {
    PTOWSP_PIPELINE(f->m, name) {
        PTOWSP_PROCESS(f->m, "only") {
            busy(f, cycles);
        }
    }
}

static void load(const fixture *f, uint32_t slot, ptowsp_tensor tensor, int64_t row, int64_t col) {
    ptowsp_view view;
    memset(&view, 0, sizeof view);
    view.tensor = tensor;
    view.row = number(f, row);
    view.col = number(f, col);
    ptowsp_slot_load(f->m, slot, &view, number(f, 0), number(f, 0));
}

// -- slot loads -----------------------------------------------------------------------------------

// p writes x (2, 3) in 20 cycles; what is loaded from x, anywhere, is there at 20. A load from y,
// which p reads, waits for nothing. Structure counts for nothing.
static void pipeline_issue__a_slot_load_waits_for_the_pipeline_that_writes_its_tensor(
    void **state) {
    (void)state;
    for (int row = 0; row < 8; row++) {
        bool is_in_order = row & 1, is_y = row & 4;
        int64_t col = row & 2 ? 3 : 7;
        fixture f;
        fixture_make(&f);
        f.is_loading = !is_y;
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PIPELINE(f.m, "p") {
                PTOWSP_PROCESS(f.m, "only") {
                    touch(&f, f.put, f.x, number(&f, 2), 3, number(&f, 77), 20);
                    touch(&f, f.sees, f.y, number(&f, 2), 3, number(&f, 0), 0);
                }
            }
            busy(&f, 2);
            load(&f, 0, is_y ? f.y : f.x, 2, col);
            work(&f, ptowsp_slot(f.m, 0, PTOWSP_TYPE_I64), 4);
        }
        ptowsp_schedule schedule = lanes(4);
        schedule.issue = is_in_order ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        schedule.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT;  // there are none
        run_with(&f, &schedule);
        assert_int_equal(f.called[3], is_y || col == 7 ? 0 : 77);
        bool is_waiting = !is_in_order && !is_y;
        expect(&f, 2, 0, 2, "none");
        expect(&f, 3, is_waiting ? 20 : 0, is_waiting ? 24 : 4, is_waiting ? "slot" : "none");
        assert_int_equal(stalled(&f, PTOWSP_STALL_SLOT), is_waiting ? 20 : 0);
        fixture_free(&f);
    }
}

// -- windows and timing ---------------------------------------------------------------------------

// Nothing completes before tasks begin to start: a load of what a pipeline writes cannot proceed
// then, where lanes choose and where they do not. A load of something else can.
static void pipeline_issue__a_slot_load_needs_tasks_to_have_begun(void **state) {
    (void)state;
    for (int row = 0; row < 4; row++) {
        bool is_y = row & 2;
        fixture f;
        fixture_make(&f);
        f.is_loading = !is_y;
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                PTOWSP_PIPELINE(f.m, "p") {
                    PTOWSP_PROCESS(f.m, "only") {
                        touch(&f, f.put, f.x, number(&f, 0), 0, number(&f, 6), 10);
                    }
                }
                load(&f, 0, is_y ? f.y : f.x, 0, 0);
                busy(&f, 3);
            }
        }
        ptowsp_schedule schedule = choosing(row & 1, 2);
        schedule.start = PTOWSP_START_ALL_ISSUED;
        compile(&f, &schedule);
        if (is_y) {
            run_compiled(&f);
            expect(&f, 1, 0, 3, "none");
            assert_int_equal(makespan(&f), 10);
        } else {
            assert_int_equal(execute(&f, PTOWSP_RUN_EXECUTE, true), PTOWSP_STUCK);
            EXPECT_PARTS(ptowsp_context_error(f.context).text, "slot load", "start");
        }
        fixture_free(&f);
    }
}

// -- before anything ran, and as text -------------------------------------------------------------

static void discard(void *user, const char *text, size_t length) {
    (void)text;
    *(size_t *)user += length;
}

static void pipeline_issue__results_are_zero_before_the_first_run(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_axis workers = ptowsp_axis_dynamic(f.m, "workers");
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 0);
            producer(&f, "load", a, 0, 2, 3);
            PTOWSP_REPLICATE(f.m, w, workers, "use") {
                ptowsp_consumes(f.m, a);
                PTOWSP_CONSUME(f.m, t, a) {
                    work(&f, t, 1);
                }
            }
        }
    }
    compile(&f, NULL);
    uint32_t count = 99;
    uint64_t long_count = 99;
    const ptowsp_pipeline_stats *pipelines = ptowsp_run_pipelines(f.run, &count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(pipelines[i].run_count, 0);
        assert_int_equal(pipelines[i].makespan_cycles, 0);
    }
    assert_true(count <= 1);
    const ptowsp_process_stats *processes = ptowsp_run_processes(f.run, &count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(processes[i].state, PTOWSP_PROCESS_ENDED);
        assert_int_equal(processes[i].task_count, 0);
    }
    ptowsp_run_channels(f.run, &count);
    assert_true(count <= 1);
    assert_null(ptowsp_run_steps(f.run, &long_count));
    assert_int_equal(long_count, 0);
    long_count = 99;
    assert_null(ptowsp_run_critical_steps(f.run, 0, &long_count));
    assert_int_equal(long_count, 0);
    size_t length = 0;
    const ptowsp_text text = {discard, &length};
    ptowsp_run_print_stuck(f.run, text);
    assert_int_equal(length, 0);
    ptowsp_run_print(f.run, text);
    assert_int_equal(ptowsp_run_bind_size(f.run, "workers", 2), PTOWSP_OK);
    run_compiled(&f);
    assert_int_equal(makespan(&f), 7);
    length = 0;
    ptowsp_run_print_stuck(f.run, text);
    assert_int_equal(length, 0);
    fixture_free(&f);
}

// The text names pipelines, processes and channels, and has their numbers.
static void pipeline_issue__results_are_written_as_text(void **state) {
    (void)state;
    static char text[8000];
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "double_buffer") {
            ptowsp_channel a = channel(&f, "loaded", 2, 50);
            producer(&f, "load", a, 0, 4, 4);
            PTOWSP_REPLICATE(f.m, w, axis(&f, "pair", 2), "compute") {
                ptowsp_consumes(f.m, a);
                PTOWSP_CONSUME(f.m, t, a) {
                    work(&f, t, 1000);
                }
            }
        }
        busy(&f, 3);
    }
    run(&f);
    ptowsp_text_buffer buffer = {text, sizeof text, 0};
    ptowsp_run_print(f.run, ptowsp_text_to_buffer(&buffer));
    assert_true(buffer.length < sizeof text);
    // sent at 4, 8, 54, 58, taken at 54, 58 and then at 1054 and 1058
    EXPECT_PARTS(text, "2061 cycles, 9 tasks", "double_buffer", "2058 cycles", "process load",
                 "busy 16", "full 42", "ended at 58", "compute[1]", "busy 2000", "empty 58",
                 "ended at 2054", "channel loaded", "depth 2", "latency 50", "4 tokens",
                 "empty 112", "channel 154 cycles", "critical");
    assert_null(strstr(text, "4294967295"));
    fixture_free(&f);
}

// -- what is around, whatever a pipeline does this time -------------------------------------------

// A task of 2^62 cycles, and a pipeline behind it that takes one cycle too many.
static void pipeline_issue__the_end_of_time_is_that_of_a_pipeline(void **state) {
    (void)state;
    const int64_t half = INT64_C(1) << 62;
    for (int i = 0; i < 12; i++) {
        const bool is_late = i % 2;
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            busy(&f, half);
            one(&f, "p", is_late ? half : half - 1);
            if (i / 6) {
                one(&f, "q", 0);
            }
        }
        ptowsp_schedule schedule = choosing(i / 2 % 3 == 1, 2);
        schedule.issue = i / 2 % 3 == 2 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        compile(&f, &schedule);
        for (int mode = 0; mode < 2; mode++) {
            f.call_count = 0;
            const ptowsp_status status =
                execute(&f, mode ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE, false);
            assert_int_equal(status, is_late ? PTOWSP_LIMIT_EXCEEDED : PTOWSP_OK);
            if (is_late) {
                test_error_is(f.context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                              "main/pipeline p: the pipeline ends after 2^63 - 1 cycles");
            } else {
                assert_true(makespan(&f) == PTOWSP_CYCLES_MAX);
            }
        }
        fixture_free(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_issue__a_slot_load_waits_for_the_pipeline_that_writes_its_tensor),
        cmocka_unit_test(pipeline_issue__a_slot_load_needs_tasks_to_have_begun),
        cmocka_unit_test(pipeline_issue__results_are_zero_before_the_first_run),
        cmocka_unit_test(pipeline_issue__results_are_written_as_text),
        cmocka_unit_test(pipeline_issue__the_end_of_time_is_that_of_a_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
