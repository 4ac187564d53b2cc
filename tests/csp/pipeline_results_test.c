// Results of pipelines: what steps say and when they are kept, and results before anything ran. Times and chains
// are cases (tests/cases/pipelines*.case), and results as text (written.case).

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

static void run_two(fixture *f) {
    fixture_make(f);
    fixture_parse(f, "axis three 3\nworkload main\n  pipeline two\n"
                     "    channel a depth 1 latency 0\n" PRODUCER("load", "a", "three", "i", "4")
                         CONSUMER("use", "a", "10"));
    run_compiled(f);
}

// -- steps ----------------------------------------------------------------------------------------

#define TWO_TEST(name) TEST_MADE(name, fixture, f, run_two(f), fixture_free(f))

TWO_TEST(pipeline_steps__say_what_and_where) {
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
TWO_TEST(pipeline_steps__know_what_they_waited_for) {
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

TWO_TEST(pipeline_steps__are_not_kept_unless_asked_for) {
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

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

FIXTURE_TEST(pipeline_issue__results_are_zero_before_the_first_run) {
    fixture_parse(
        f, "axis two 2\naxis workers dynamic\n" MAIN "    channel a depth 1 latency 0\n" PRODUCER(
               "load", "a", "two", "i",
               "3") "    process use replicas w in workers consumes a\n      consume t from a\n"
                    "        task work(t, 1)\n");
    uint32_t count = 99;
    uint64_t long_count = 99;
    const ptowsp_pipeline_stats *pipelines = ptowsp_run_pipelines(f->run, &count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(pipelines[i].run_count, 0);
        assert_int_equal(pipelines[i].makespan_cycles, 0);
    }
    assert_true(count <= 1);
    const ptowsp_process_stats *processes = ptowsp_run_processes(f->run, &count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(processes[i].state, PTOWSP_PROCESS_ENDED);
        assert_int_equal(processes[i].task_count, 0);
    }
    ptowsp_run_channels(f->run, &count);
    assert_true(count <= 1);
    assert_null(ptowsp_run_steps(f->run, &long_count));
    assert_int_equal(long_count, 0);
    long_count = 99;
    assert_null(ptowsp_run_critical_steps(f->run, 0, &long_count));
    assert_int_equal(long_count, 0);
    size_t length = 0;
    const ptowsp_output text = {discard, &length};
    ptowsp_run_print_stuck(f->run, text);
    assert_int_equal(length, 0);
    ptowsp_run_print(f->run, text);
    assert_ok(ptowsp_run_bind_size(f->run, "workers", 2));
    run_compiled(f);
    assert_int_equal(makespan(f), 7);
    length = 0;
    ptowsp_run_print_stuck(f->run, text);
    assert_int_equal(length, 0);
}
