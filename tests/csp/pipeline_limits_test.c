// Ends that pipelines come to only when they are told: sums beyond 64 bits, names by the thousand, waits
// by the hundred thousand; and calls from inside kernels. Errors, limits of tokens, and deadlocks, are
// cases (pipeline_faults.case, deadlocks.case), and which pipelines depend on times (orders.case).

#include "pipeline_fixture.h"

// Three tasks of 2^63 - 1 cycles, three times; and three that wait for them.
TEST_F(pipeline_limits__sums_stay_at_the_largest_number) {
    fixture_parse(f, "axis three 3\nworkload main\n  parallel k in three\n    pipeline p\n"
                     "      channel a depth 3 latency 0\n"
                     "      process load replicas i in three produces a\n"
                     "        task work(i, 9223372036854775807)\n        send a(i)\n"
                     "      process use replicas j in three consumes a\n"
                     "        receive t from a\n          task work(t, 0)\n");
    execute_ok(f, PTOWSP_RUN_TIME_ONLY, false);
    const ptowsp_run_stats *stats = ptowsp_run_result(f->run);
    assert_true(stats->makespan_cycles == INT64_MAX);
    assert_true(stats->busy_cycles == UINT64_MAX);
    assert_true(stats->stall_cycles[PTOWSP_STALL_CHANNEL] == UINT64_MAX);
    assert_true(ptowsp_run_pipelines(f->run, NULL)->total_cycles == UINT64_MAX);
    const ptowsp_process_stats *processes = ptowsp_run_processes(f->run, NULL);
    assert_true(processes[2].busy_cycles == UINT64_MAX);   // load[2]
    assert_true(processes[4].empty_cycles == UINT64_MAX);  // use[1]
    assert_true(ptowsp_run_channels(f->run, NULL)->empty_cycles == UINT64_MAX);
}

// 5,000 channels and processes in a row, and one name twice at the end.
TEST_F(pipeline_limits__thousands_of_processes_are_checked_for_equal_names) {
    enum { COUNT = 5000 };
    static char text[1 << 20];  // 680,000 are written
    char *at = text + sprintf(text, MAIN);
    for (int i = 0; i < COUNT; i++) {
        at += sprintf(at, "    channel c%d depth 1 latency 1\n", i);
    }
    at += sprintf(at, "    process p0 produces c0\n      send c0(1)\n      send c0(2)\n");
    for (int i = 1; i < COUNT; i++) {
        at += sprintf(at,
                      "    process p%d consumes c%d produces c%d\n      consume t from c%d\n"
                      "        send c%d(t)\n",
                      i, i - 1, i, i - 1, i);
    }
    sprintf(at, "    process last consumes c%d\n      consume t from c%d\n", COUNT - 1, COUNT - 1);
    fixture_parse(f, "%s", text);
    // Token 1 takes a cycle for each channel; token 2 can be sent when token 1 has been received.
    for (int i = 0; i < 2; i++) {
        execute_ok(f, i ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE, false);
        assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, COUNT + 1);
    }
    fixture_clear(f);
    memcpy(strstr(at, "last"), "p999", 4);
    fixture_refused(f, fixture_read(f, text), PTOWSP_INVALID_PARAMS,
                    "process p999: the pipeline has a process of this name already");
}

// What was only found when a pipeline had run before.
TEST_F(pipeline_limits__time_without_data_is_refused_the_first_time_too) {
    fixture_parse(f,
                  "workload main\n  task writes(0, 1) tile = x at ((0), (0))\n  slot_load 1 = x\n");
    fixture_refused(f, execute(f, PTOWSP_RUN_TIME_ONLY, false), PTOWSP_UNSUPPORTED,
                    "main/slot_load 1");
}

TEST_F(pipeline_limits__counts_are_not_asked_for) {
    fixture_parse(f, "axis three 3\n" MAIN "    channel a depth 1 latency 0\n" PRODUCER(
                         "load", "a", "three", "i", "1") CONSUMER("use", "a", "1"));
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
TEST_F(pipeline_stuck__a_hundred_thousand_that_wait) {
    fixture_parse(f, "axis crowd 100000\n" MAIN "    event E\n"
                     "    process waits replicas w in crowd consumes E\n      wait E\n"
                     "    process records produces E\n      record E\n");
    assert_int_equal(execute(f, PTOWSP_RUN_TIME_ONLY, false), PTOWSP_STUCK);
    error_has(f, "waits[1] finds E empty");
    error_has(f, "and 99996 more wait");
    error_has(f, "event E needs as many waits as records");
}

// -- inside kernels -------------------------------------------------------------------------------

static void bind_and_execute(const fixture *f) {
    assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_BUSY);
    assert_int_equal(ptowsp_run_bind_size(f->run, "workers", 9), PTOWSP_BUSY);
    assert_int_equal(ptowsp_run_bind_slot(f->run, 0, 9), PTOWSP_BUSY);
    assert_int_equal(ptowsp_run_bind_symbol(f->run, PTOWSP_CHANNEL_LATENCY_SYMBOL, 9), PTOWSP_BUSY);
}

TEST_F(pipeline_faults__a_run_is_busy_in_kernels_of_processes) {
    fixture_parse(f, "axis workers dynamic\n" MAIN
                     "    process only replicas w in workers\n      task work(w, 1)\n");
    assert_ok(ptowsp_run_bind_size(f->run, "workers", 2));
    kernels.inside = bind_and_execute;
    execute_ok(f, PTOWSP_RUN_EXECUTE, true);
    assert_int_equal(kernels.call_count, 2);
    test_was_busy(f->context);
}
