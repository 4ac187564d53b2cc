// Everything that goes wrong in a pipeline while it runs, but for deadlocks (deadlocks.case):
// the status, and a text that names the pipeline, the process, the channel, the place and its
// variables; what results say of processes then; and that the run works afterwards.

#include "pipeline_fixture.h"

// Asserts that executing fails with this status and index; the text is checked by EXPECT_PARTS.
static const char *fails(fixture *f, ptowsp_status status, uint64_t index) {
    ptowsp_status got = execute(f, PTOWSP_RUN_EXECUTE, true);
    ptowsp_error error = ptowsp_context_error(f->context);
    char text[8000];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    if (got != status || error.status != status || error.index != index) {
        fail_msg("%s, index %llu: %s", ptowsp_status_name(got), (unsigned long long)error.index,
                 error.text);
    }
    assert_null(strchr(error.text, '\n'));
    ptowsp_run_print(f->run, ptowsp_output_to_buffer(&buffer));  // says what was done
    assert_null(strstr(text, "(null)"));
    return error.text;
}

static void expect_state(const fixture *f, const char *name, uint32_t replica,
                         ptowsp_process_state state, uint64_t end, uint64_t task_count) {
    const ptowsp_process_stats *stats = process(f, name, replica);
    assert_int_equal(stats->state, state);
    assert_int_equal(stats->end_cycles, end);
    assert_int_equal(stats->task_count, task_count);
}

// Nothing is to be said of a run that was not stuck.
static void expect_not_stuck(const fixture *f) {
    char text[1000];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_run_print_stuck(f->run, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(text, "");
}

// -- time -----------------------------------------------------------------------------------------

enum { BY_LATENCY, BY_RENDEZVOUS, BY_TASK, BY_FEEDBACK, BY_START, CAUSE_COUNT };

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

// load has a task of 2^63 - 1 cycles; then comes one cycle more: a latency, a task of use, or one
// before the pipeline. With one cycle less all is well.
FIXTURE_TEST(pipeline_faults__time_beyond_63_bits_is_refused) {
    for (int cause = 0; cause < CAUSE_COUNT; cause++) {
        fixture_parse(f,
                      "workload main\n  task work(%d, %d)\n  pipeline p\n"
                      "    channel tiles depth %d latency %d\n"
                      "    process load consumes tiles produces tiles\n"
                      "      task work(5, slot_i64[0])\n      send tiles(5)\n      when %s\n"
                      "        receive t from tiles\n%s",
                      cause == BY_START, cause == BY_START, cause != BY_RENDEZVOUS,
                      cause != BY_TASK && cause != BY_START,
                      cause == BY_FEEDBACK ? "true" : "false",
                      cause == BY_FEEDBACK ? ""
                      : cause == BY_TASK   ? CONSUMER("use", "tiles", "1")
                                           : CONSUMER("use", "tiles", "0"));
        assert_ok(ptowsp_run_bind_slot(f->run, 0, PTOWSP_CYCLES_MAX));
        const char *text = fails(f, PTOWSP_LIMIT_EXCEEDED, cause == BY_TASK ? 2 : PTOWSP_NO_INDEX);
        EXPECT_PARTS(text, "main/pipeline p", "2^63 - 1");
        if (cause == BY_TASK) {
            EXPECT_PARTS(text, "process use/consume t/task work", "(t = 5)");
        } else if (cause != BY_START) {
            EXPECT_PARTS(text, "/process ", "tiles");
        }
        uint32_t count = 0;
        const ptowsp_process_stats *processes = ptowsp_run_processes(f->run, &count);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(processes[i].end_cycles <= PTOWSP_CYCLES_MAX);
            assert_true(processes[i].empty_cycles <= PTOWSP_CYCLES_MAX);
        }
        assert_true(makespan(f) <= PTOWSP_CYCLES_MAX);
        assert_ok(ptowsp_run_bind_slot(f->run, 0, PTOWSP_CYCLES_MAX - 1));
        run_compiled(f);
        assert_true(makespan(f) == PTOWSP_CYCLES_MAX);
    }
}

// -- kernels --------------------------------------------------------------------------------------

//      load   tasks 0, 1, 3, 4 at 0, 1, 2, 3; task 5 at 4, when it has sent token 13
//      use    takes 10 at 1, task 2 (1-4); takes 11 at 4, task 6, which fails
FIXTURE_TEST(pipeline_faults__a_kernel_that_fails) {
    static const struct {
        ptowsp_cycles returned;
        ptowsp_status status;
    } rows[] = {{(ptowsp_cycles)-2, PTOWSP_UNSUPPORTED_SIZE},
                {(ptowsp_cycles)-4, PTOWSP_OUT_OF_MEMORY},
                {PTOWSP_CYCLES_MAX + 1, PTOWSP_KERNEL_FAILED}};
    fixture_parse(f, "axis five 5\nkernel fragile(axes 2) vector\n" MAIN
                     "    channel a depth 2 latency 0\n    process load produces a\n"
                     "      for_each i in five\n        task fragile(i + 10, 1)\n"
                     "        send a(i + 10)\n    process use consumes a\n"
                     "      consume t from a\n        task fragile(t, 3)\n    process idle\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        f->failing_task = 6;
        f->failure = rows[i].returned;
        const char *text = fails(f, rows[i].status, 6);
        EXPECT_PARTS(text, "main/pipeline p/process use/consume t/task fragile", "(t = 11)",
                     "task 6");
        assert_non_null(strstr(text, ptowsp_status_name(rows[i].status)));
        assert_int_equal(f->call_count, 7);
        expect_state(f, "load", 0, PTOWSP_PROCESS_STOPPED, 5, 5);
        expect_state(f, "use", 0, PTOWSP_PROCESS_STOPPED, 4, 1);
        expect_state(f, "idle", 0, PTOWSP_PROCESS_ENDED, 0, 0);
        const ptowsp_run_stats *stats = ptowsp_run_result(f->run);
        assert_int_equal(stats->task_count, 6);  // what was done
        assert_int_equal(stats->busy_cycles, 5 + 3);
        assert_int_equal(stats->makespan_cycles, 5);
        for (uint64_t k = 0; k < 6; k++) {
            assert_true(ptowsp_run_records(f->run)[k].end <= 5);
        }
        expect_not_stuck(f);
        f->failing_task = UINT64_MAX;
        execute_ok(f, PTOWSP_RUN_EXECUTE, true);
        check_results(f->run);
        assert_int_equal(makespan(f), 16);
        expect_state(f, "load", 0, PTOWSP_PROCESS_ENDED, 7, 5);
    }
}

// Also when the pipeline runs for the third time, beside others that have been done.
FIXTURE_TEST(pipeline_faults__a_kernel_that_fails_later_on) {
    fixture_parse(f, "axis one 1\naxis three 3\nworkload main\n  for_each k in three\n"
                     "    pipeline p\n      channel a depth 2 latency 0\n"
                     "      process load produces a\n        for_each i in one\n"
                     "          task work(i, 10)\n          send a(i)\n"
                     "      process use consumes a\n        consume t from a\n"
                     "          task work(t, 5)\n");
    f->failing_task = 5;
    f->failure = ptowsp_task_fail(PTOWSP_OK);
    assert_ok(execute(f, PTOWSP_RUN_TIME_ONLY, true));
    EXPECT_PARTS(fails(f, PTOWSP_KERNEL_FAILED, 5),
                 "main/for_each k/pipeline p/process use/consume t/task work", "k = 2", "t = 0");
    assert_int_equal(ptowsp_run_result(f->run)->task_count, 5);
    expect_state(f, "load", 0, PTOWSP_PROCESS_ENDED, 10, 3);
    expect_state(f, "use", 0, PTOWSP_PROCESS_STOPPED, 10, 2);
    assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 40);
    f->failing_task = UINT64_MAX;
    run_compiled(f);
    assert_int_equal(makespan(f), 45);
}

// A process that fails has set slot 0, another one too: behind the pipeline slots are as before.
FIXTURE_TEST(pipeline_faults__slots_are_as_before_where_a_process_failed) {
    fixture_parse(f, "axis three 3\nworkload main\n  slot_set 0 = 5\n  pipeline p\n"
                     "    process sets replicas w in three\n      slot_set 0 = w + 100\n"
                     "      task work(slot_i64[0], 2)\n      slot_set 0 = w + 200\n"
                     "      task work(slot_i64[0], 2)\n  task work(slot_i64[0], 1)\n");
    for (uint64_t task = 0; task < 6; task++) {
        f->failing_task = task;
        f->failure = ptowsp_task_fail(PTOWSP_OK);
        EXPECT_PARTS(fails(f, PTOWSP_KERNEL_FAILED, task), "sets/task work");
        assert_int_equal(ptowsp_run_slot(f->run, 0), 5);
    }
    f->failing_task = UINT64_MAX;
    run_compiled(f);
    EXPECT_CALLS(f, 100, 101, 102, 200, 201, 202, 5);
}

static void bind_and_execute(void *user) {
    const fixture *f = (const fixture *)user;
    assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_BUSY);
    assert_int_equal(ptowsp_run_bind_size(f->run, "workers", 9), PTOWSP_BUSY);
    assert_int_equal(ptowsp_run_bind_slot(f->run, 0, 9), PTOWSP_BUSY);
    assert_int_equal(ptowsp_run_bind_symbol(f->run, PTOWSP_CHANNEL_LATENCY_SYMBOL, 9), PTOWSP_BUSY);
}

FIXTURE_TEST(pipeline_faults__a_run_is_busy_in_kernels_of_processes) {
    fixture_parse(f, "axis workers dynamic\n" MAIN
                     "    process only replicas w in workers\n      task work(w, 1)\n");
    assert_ok(ptowsp_run_bind_size(f->run, "workers", 2));
    f->inside = bind_and_execute;
    f->inside_user = f;
    run_compiled(f);
    test_was_busy(f->context);
}

// -- what is outside ------------------------------------------------------------------------------

// Arrays that are read outside by a token: in a send, a condition, an argument, the loop of a row.
FIXTURE_TEST(pipeline_faults__an_array_read_outside_by_a_token) {
    static const int64_t list[] = {0, 1, 0};
    static const int32_t lengths[] = {1, 1, 1};
    static const char *const places[] = {"send b", "when", "task work", "parallel j"};
    for (int where = 0; where < 4; where++) {
        static const char *const uses[] = {
            "", "        when list[t] == 77\n          task work(1, 1)\n",
            "        task work(list[t], 1)\n",
            "        parallel j in kv[t]\n          task work(j, 1)\n"};
        fixture_parse(f,
                      "axis three 3\naxis kv ragged\narray list i64\n" MAIN
                      "    channel a depth 1 latency 0\n"
                      "    channel b depth 1 latency 0\n" PRODUCER(
                          "load", "a", "three", "i + 1",
                          "1") "    process use consumes a produces b\n      consume t from a\n%s"
                               "        send b(%s)\n" CONSUMER("end", "b", "1"),
                      uses[where], where == 0 ? "list[t]" : "t");
        assert_ok(ptowsp_run_bind_array(f->run, "list", PTOWSP_I64, list, 3));
        assert_ok(ptowsp_run_bind_lengths(f->run, "kv", PTOWSP_I32, lengths, 3));
        const char *text = fails(f, PTOWSP_INVALID_PARAMS, 3);
        EXPECT_PARTS(text, "main/pipeline p/process use/consume t/", "(t = 3)");
        assert_non_null(strstr(text, where == 3 ? "kv" : "list"));
        assert_non_null(strstr(text, places[where]));
        assert_int_equal(process(f, "use", 0)->state, PTOWSP_PROCESS_STOPPED);
        assert_int_equal(process(f, "end", 0)->state, PTOWSP_PROCESS_STOPPED);
    }
}

// The last row of x and two of y do not go together: known before the task in front of it runs.
FIXTURE_TEST(pipeline_faults__tiles_that_do_not_go_together) {
    for (int is_good = 0; is_good < 2; is_good++) {
        fixture_parse(
            f,
            "kernel sum(axes 0, in a i32 2 x 8, in b i32 2 x 8, out c i32 2 x 8) vector, "
            "0 instructions\n  %%1 = parameter a\n  %%2 = parameter b\n"
            "  %%3 = parameter c\n  %%4 = add %%1, %%2 : i32 2 x 8\n  store %%3, %%4\n" MAIN
            "    process only\n      task put(5, 3) tile = x at (6, 1)\n"
            "      task put(7, 3) tile = y at (0, 1)\n"
            "      task sum() a = x at (%d, 0) b = y c = y at (4, 0)\n",
            is_good ? 6 : 7);
        if (is_good) {
            execute_ok(f, PTOWSP_RUN_EXECUTE, true);
            assert_int_equal(f->y_data[4 * SIDE + 1], 12);
            assert_int_equal(f->y_data[5 * SIDE + 1], 0);
        } else {
            EXPECT_PARTS(fails(f, PTOWSP_INVALID_PARAMS, 2),
                         "main/pipeline p/process only/task sum: task 2: add: 1 and 2 valid rows");
            assert_int_equal(f->call_count, 0);
        }
    }
}
