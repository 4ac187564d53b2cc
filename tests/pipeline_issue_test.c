// Pipelines and the clock of issue, on paper: slot loads, windows, timing; why tasks of processes
// start when they do; critical paths; results before anything ran, and as text.

#include "pipeline_fixture.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_issue__results_are_zero_before_the_first_run),
        cmocka_unit_test(pipeline_issue__results_are_written_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
