// Programs on lanes at their limits: how far the walk runs ahead, in which order errors come when memory is
// missing, and what is asked of options.

#include "lane_program.h"

enum { TASKS = 3000 };  // more than there is room for from the start

// A loop of tasks, each with an element that few have besides, or all with the same.
#define LOOP(at)                                                                                   \
    "axis n 3000\nworkload main\n  parallel i in n\n    task touch(1) tile = x at " at " of 1 x "  \
    "1\n"

static void begin(lp *p, lane_kind kind, const char *text, uint32_t window) {
    const ptowsp_schedule schedule = {.lane_count = 2, .window = window};
    lp_begin(p, kind, 4);
    lp_parse(p, text);
    lp_compile(p, &schedule);
}

// Each tenth task takes its time; none may begin while one that is a window before it runs.
TEST(lane_limits__no_task_begins_a_window_before_the_oldest_has_ended) {
    static const uint32_t windows[] = {1, 2, 3, 5, 6, 9};
    for (int i = 0; i < 6; i++) {
        lp p;
        begin(&p, LANE_THREADS, LOOP("(i % 16, i / 16 % 16)"), windows[i]);
        for (uint32_t task = 0; task < TASKS; task += 10) {
            p.is_slow[task] = true;
        }
        lp_works(&p, TASKS);
        uint64_t end = 0;  // of all up to here
        for (uint32_t task = windows[i]; task < TASKS; task++) {
            const uint64_t last = p.watch.ends[task - windows[i]];
            end = last > end ? last : end;
            assert_true(p.watch.begins[task] > end);
        }
        lp_end(&p);
    }
}

// All tasks from the third on fail, and each waits for the one before, so that all are issued first. Memory is
// refused at each allocation: if that is met while tasks are issued, those before it count, and of them the
// first that fails.
TEST(lane_limits__a_failure_comes_before_memory_that_is_missing_behind_it) {
    unsigned refused = 0, failed = 0;
    EACH_REFUSED(n, 0) {
        lp p;
        begin(&p, LANE_IN_ORDER, LOOP("(0, 0)"), 0);
        for (uint32_t task = 2; task < TASKS; task++) {
            p.result[task] = ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
        }
        test_refuse(&p.memory, n);
        ptowsp_status status = lp_execute(&p, 3);
        has_more = p.memory.allocations >= p.memory.refuse_at;
        p.memory.refuse_at = 0;
        if (status == PTOWSP_OUT_OF_MEMORY) {
            refused++;
            assert_true(ptowsp_run_result(p.run)->task_count <= 2);  // perhaps for their time
        } else {
            assert_int_equal(status, PTOWSP_KERNEL_FAILED);
            assert_int_equal(ptowsp_context_error(p.context).index, 2);
            assert_int_equal(ptowsp_run_result(p.run)->task_count, 2);
            failed += has_more != 0;
        }
        memset(p.result, 0, sizeof p.result);
        assert_ok(lp_execute(&p, 3));
        lp_end(&p);
    }
    assert_true(refused > 0 && failed > 0);
}

TEST(lane_limits__time_alone_takes_no_notice_of_lanes) {
    lp p;
    ptowsp_run_options options = {.lane_count = 5};
    begin(&p, LANE_IN_ORDER, "workload main\n  task known(0)\n", 0);
    assert_invalid(ptowsp_run_execute(p.run, &options));
    options.mode = PTOWSP_RUN_TIME_ONLY;
    assert_ok(ptowsp_run_execute(p.run, &options));
    assert_int_equal(p.watch.calls[0], 0);
    assert_int_equal(ptowsp_run_result(p.run)->makespan_cycles, 10);
    lp_end(&p);
}
