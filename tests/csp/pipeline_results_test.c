// Results of pipelines: where steps are and when they are kept, and results before anything ran. Times and chains
// are cases (tests/cases/pipelines*.case), and results as text (written.case); what steps say and wait for is held
// against the slow reference (pipeline_steps.h).

#include "pipeline_fixture.h"

// The step of this kind of a process that ends at a time.
static const ptowsp_step_record *step_of(const fixture *f, const char *name, ptowsp_step_kind kind,
                                         uint64_t end) {
    uint64_t count = 0;
    const ptowsp_step_record *steps = ptowsp_run_steps(f->run, &count);
    const ptowsp_process_stats *processes = ptowsp_run_processes(f->run, NULL);
    for (uint64_t i = 0; i < count; i++) {
        if (!strcmp(processes[steps[i].process].name, name) && steps[i].kind == kind &&
            steps[i].end == end) {
            return &steps[i];
        }
    }
    fail_msg("%s has no such step at %llu", name, (unsigned long long)end);
    return NULL;
}

static void run_two(fixture *f) {
    fixture_parse(f, "axis three 3\nworkload main\n  pipeline two\n"
                     "    channel a depth 1 latency 0\n" PRODUCER("load", "a", "three", "i", "4")
                         CONSUMER("use", "a", "10"));
    execute_ok(f, PTOWSP_RUN_EXECUTE, true);
}

// -- steps ----------------------------------------------------------------------------------------

TEST_F(pipeline_steps__say_where) {
    run_two(f);
    const struct {
        const char *process;
        ptowsp_step_kind kind;
        uint64_t end;
        const char *place;
    } rows[] = {
        {"load", PTOWSP_STEP_SEND, 8, "main/pipeline two/process load/for_each i/send a"},
        {"use", PTOWSP_STEP_RECEIVE, 14, "main/pipeline two/process use/consume t"},
        {"use", PTOWSP_STEP_TASK, 24, "main/pipeline two/process use/consume t/task work"},
        {"use", PTOWSP_STEP_END, 34, "main/pipeline two/process use/consume t"},
        {"load", PTOWSP_STEP_CLOSE, 14, "main/pipeline two/process load"},  // which has waited
        {"use", PTOWSP_STEP_CLOSE, 34, "main/pipeline two/process use"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[200];
        ptowsp_output_buffer buffer = {text, sizeof text, 0};
        ptowsp_program_print_place(f->program,
                                   step_of(f, rows[i].process, rows[i].kind, rows[i].end)->node,
                                   ptowsp_output_to_buffer(&buffer));
        assert_string_equal(text, rows[i].place);
    }
}

// -- critical chains ------------------------------------------------------------------------------

TEST_F(pipeline_steps__are_not_kept_unless_asked_for) {
    run_two(f);
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

TEST_F(pipeline_issue__results_are_zero_before_the_first_run) {
    fixture_parse(f, "axis two 2\naxis workers dynamic\n" MAIN
                     "    channel a depth 1 latency 0\n" PRODUCER("load", "a", "two", "i", "3")
                         CONSUMER("use replicas w in workers", "a", "1"));
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
    execute_ok(f, PTOWSP_RUN_EXECUTE, true);
    assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 7);
    length = 0;
    ptowsp_run_print_stuck(f->run, text);
    assert_int_equal(length, 0);
}
