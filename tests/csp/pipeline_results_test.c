// Results of pipelines: what steps say and when they are kept, results before anything ran, and results
// as text. Times and chains are cases (tests/cases/pipelines*.case).

#include "pipeline_fixture.h"

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

#define FIXTURE_TEST(name)                                                                         \
    TEST_MADE(name, fixture, f, run_two(f, 1, 0, 3, 4, 0, 10), fixture_free(f))

FIXTURE_TEST(pipeline_steps__say_what_and_where) {
    const ptowsp_step_record *steps = steps_of(f);
    char text[200];
    uint64_t send = step_of(f, "load", PTOWSP_STEP_SEND, 8);
    uint64_t receive = step_of(f, "use", PTOWSP_STEP_RECEIVE, 14);
    uint64_t task = step_of(f, "use", PTOWSP_STEP_TASK, 24);
    uint64_t end = step_of(f, "use", PTOWSP_STEP_END, 34);
    assert_int_equal(steps[send].token, 1);
    assert_int_equal(steps[receive].token, 1);
    assert_int_equal(steps[task].token, 4);  // tasks: load, load, use, load, use, use
    assert_int_equal(ptowsp_run_records(f->run)[4].start, 14);
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
        ptowsp_output_buffer buffer = {text, sizeof text, 0};
        ptowsp_program_print_place(f->program, steps[rows[i].step].node,
                                   ptowsp_output_to_buffer(&buffer));
        assert_memory_equal(text, rows[i].place, strlen(rows[i].place));
    }
    for (int i = 0; i < 2; i++) {  // which has waited, and which has not
        uint64_t last = step_of(f, i == 0 ? "load" : "use", PTOWSP_STEP_CLOSE, i == 0 ? 14 : 34);
        ptowsp_output_buffer buffer = {text, sizeof text, 0};
        ptowsp_program_print_place(f->program, steps[last].node, ptowsp_output_to_buffer(&buffer));
        assert_string_equal(text, i == 0 ? "main/pipeline two/process load"
                                         : "main/pipeline two/process use");
    }
}

// A receive that waits has the send as its cause, a send that waits the receive that made room, an
// end the close; what did not wait has none.
FIXTURE_TEST(pipeline_steps__know_what_they_waited_for) {
    const ptowsp_step_record *steps = steps_of(f);
    uint64_t none = PTOWSP_NO_INDEX;
    assert_true(steps[step_of(f, "use", PTOWSP_STEP_RECEIVE, 4)].cause ==
                step_of(f, "load", PTOWSP_STEP_SEND, 4));
    assert_true(steps[step_of(f, "load", PTOWSP_STEP_SEND, 14)].cause ==
                step_of(f, "use", PTOWSP_STEP_RECEIVE, 14));
    assert_true(steps[step_of(f, "load", PTOWSP_STEP_SEND, 4)].cause == none);
    assert_true(steps[step_of(f, "load", PTOWSP_STEP_SEND, 8)].cause == none);
    assert_true(steps[step_of(f, "use", PTOWSP_STEP_RECEIVE, 14)].cause == none);
    assert_true(steps[step_of(f, "use", PTOWSP_STEP_END, 34)].cause == none);
    assert_true(steps[step_of(f, "use", PTOWSP_STEP_TASK, 14)].cause == none);
    assert_true(steps[step_of(f, "use", PTOWSP_STEP_CLOSE, 34)].cause == none);
}

// -- critical chains ------------------------------------------------------------------------------

FIXTURE_TEST(pipeline_steps__are_not_kept_unless_asked_for) {
    execute_ok(f, PTOWSP_RUN_EXECUTE, false);
    uint64_t count = 1;
    assert_null(ptowsp_run_steps(f->run, &count));
    assert_int_equal(count, 0);
    count = 1;
    assert_null(ptowsp_run_critical_steps(f->run, 0, &count));
    assert_int_equal(count, 0);
}

// -- before anything ran, and as text -------------------------------------------------------------

static bool discard(void *user, const void *text, size_t length) {
    (void)text;
    *(size_t *)user += length;
    return true;
}

TEST(pipeline_issue__results_are_zero_before_the_first_run) {
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
    const ptowsp_output text = {discard, &length};
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
TEST(pipeline_issue__results_are_written_as_text) {
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
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_run_print(f.run, ptowsp_output_to_buffer(&buffer));
    assert_true(buffer.length < sizeof text);
    // sent at 4, 8, 54, 58, taken at 54, 58 and then at 1054 and 1058
    EXPECT_PARTS(text, "2061 cycles, 9 tasks", "double_buffer", "2058 cycles", "process load",
                 "busy 16", "full 42", "ended at 58", "compute[1]", "busy 2000", "empty 58",
                 "ended at 2054", "channel loaded", "depth 2", "latency 50", "4 tokens",
                 "empty 112", "channel 154 cycles", "critical");
    assert_null(strstr(text, "4294967295"));
    fixture_free(&f);
}
