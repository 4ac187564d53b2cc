// Steps of pipelines and their critical chains, on paper. Steps are written as in pipeline_fixture.h,
// each behind the name of its process.

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
        cmocka_unit_test(pipeline_steps__say_what_and_where),
        cmocka_unit_test(pipeline_steps__know_what_they_waited_for),
        cmocka_unit_test(pipeline_steps__are_not_kept_unless_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
