// Loops whose only task is walked many iterations at once: what each task gets is worked out by hand. Errors in the
// middle are in tests/exec/runs.facts.

#include "support/fixture.h"

enum { TASKS = 334, ROWS = 1000, COLS = 8 };

static int32_t data[ROWS * COLS];  // of x
static uint64_t calls;

// Task i: rows [3 i, 3 i + 4) of the tensor, of which the last task has one; at most i % 5 + 1.
static ptowsp_cycles check_task(const ptowsp_task *task, void *user) {
    (void)user;
    const uint64_t i = calls++;
    const uint64_t left = ROWS - 3 * i, limit = i % 5 + 1;
    const uint64_t rows = left < 4 ? left : 4;
    assert_int_equal(task->index, i);
    assert_int_equal(task->arg_count, 6);
    assert_int_equal(task->args[0], 2 * i);
    assert_int_equal(task->args[1], rows < limit ? rows : limit);
    assert_int_equal(task->args[2], 2);
    assert_int_equal(task->args[3], 1);
    assert_int_equal(task->args[4], 1);
    assert_int_equal(task->args[5], i * i);
    assert_ptr_equal(task->tiles[0].data, &data[3 * i * COLS + 6]);
    assert_int_equal(task->tiles[0].row_stride, COLS);
    assert_ptr_equal(task->tiles[1].data, &data[i % 7]);
    return 1 + i;
}

static ptowsp_cycles no_task(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 1;
}

// A module of the lines behind its tensor, of loops over n.
static void parse(fixture *f, const char *lines) {
    char text[1024];
    const ptowsp_parse_kernel kernels[] = {{.name = "k", .fn = check_task},
                                           {.name = "none", .fn = no_task, .cost = no_task}};
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = 2};
    snprintf(text, sizeof text, "module m\naxis n 334\ntensor x i32 [1000, 8] global\n%s", lines);
    fixture_clear(f);
    calls = 0;
    if (ptowsp_module_parse(f->context, text, strlen(text), &attached, &f->module, NULL)) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
}

static ptowsp_status loop_run(fixture *f, const ptowsp_schedule *schedule, ptowsp_run_mode mode) {
    const ptowsp_program_desc desc = {NULL, schedule};
    const ptowsp_run_options options = {.mode = mode};
    program_make(f, NULL, NULL, &desc);
    test_bind(f->run, "x", data);
    return ptowsp_run_execute(f->run, &options);
}

TEST_F(stretch__tasks_get_what_is_worked_out_by_hand) {
    for (uint32_t way = 0; way < 4; way++) {
        parse(f, "kernel k(axes 1, inout a i32 4 x 4, in b i32 1 x 1, s i64) vector\n"
                 "workload w\n  parallel i in n\n    task k(i * 2) a = x at (i * 3, 6) "
                 "up to i % 5 + 1 rows b = x at (0, i % 7) s = i * i\n");
        const ptowsp_schedule schedule = {
            .dependencies = way % 2 ? PTOWSP_DEPENDENCIES_STRUCTURE : PTOWSP_DEPENDENCIES_OVERLAP,
            .dispatch = way < 2 ? PTOWSP_DISPATCH_ROUND_ROBIN : PTOWSP_DISPATCH_WORK_STEALING,
            .lane_count = 1};
        assert_ok(loop_run(f, &schedule, PTOWSP_RUN_EXECUTE));
        assert_int_equal(calls, TASKS);
        assert_int_equal(ptowsp_run_result(f->run)->task_count, TASKS);
        // one lane: 1 + 2 + ... + 334
        assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, TASKS * (TASKS + 1) / 2);
    }
}

typedef struct mixed {
    uint64_t calls;
    bool
        is_worked_out;  // arguments are 3 j and i + j, else j and i: then these are in their cells alone
} mixed;

// Iteration (j, i) of 5 x 300 tasks, whose arguments change with i, with j alone, or never.
static ptowsp_cycles check_mixed(const ptowsp_task *task, void *user) {
    mixed *x = (mixed *)user;
    const uint64_t j = x->calls / 300, i = x->calls % 300;
    assert_int_equal(task->index, x->calls++);
    assert_int_equal(task->arg_count, 6);
    assert_int_equal(task->args[0], 7);
    assert_int_equal(task->args[1], i);
    assert_int_equal(task->args[2], j);
    assert_int_equal(task->args[3], x->is_worked_out ? 3 * j : j);
    assert_int_equal(task->args[4], x->is_worked_out ? i + j : i);
    assert_int_equal(task->args[5], -9);
    return 1;
}

TEST_F(stretch__arguments_that_do_not_change_stay) {
    for (uint32_t lanes = 1; lanes < 3; lanes++) {
        mixed x = {0, lanes == 2};
        const ptowsp_parse_kernel kernel = {.name = "k", .cost = check_mixed, .user = &x};
        const ptowsp_parse_desc attached = {.kernels = &kernel, .kernel_count = 1};
        const ptowsp_schedule schedule = {.lane_count = lanes};
        const ptowsp_program_desc desc = {NULL, &schedule};
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
        char text[400];
        snprintf(text, sizeof text,
                 "module m\naxis rows 5\naxis n 300\nkernel k(axes 3, r i64, s i64, c i64) vector, "
                 "cycles by a cost function, time only\nworkload w\n  for_each j in rows\n"
                 "    parallel i in n\n      task k(7, i, j) r = %s s = %s c = -9\n",
                 x.is_worked_out ? "j * 3" : "j", x.is_worked_out ? "i + j" : "i");
        fixture_clear(f);
        program_make(f, text, &attached, &desc);
        assert_ok(ptowsp_run_execute(f->run, &options));
        assert_int_equal(x.calls, 1500);
    }
}

// The entries of a sparse loop in which nothing has to be evaluated are in a cell alone, as is its
// variable. Each is the row of a view, or the leading index; the first that is outside is named.
TEST_F(stretch__an_entry_in_a_cell_is_checked_to_the_end) {
    static const int32_t indices[ROWS + 20] = {0};
    for (uint32_t way = 0; way < 4; way++) {
        const uint64_t count = ROWS + (way % 2 ? 20 : 0);
        const int32_t indptr[] = {0, (int32_t)count};
        const ptowsp_csr csr = {PTOWSP_I32, indptr, indices, 1, count};
        char text[400];
        snprintf(text, sizeof text,
                 "axis s sparse\ntensor v i32 [1000, 1, 8] global\n"
                 "kernel none(axes 0, in a i32 1 x 8) vector\n"
                 "workload w\n  select e in s\n    task none() a = %s\n",
                 way < 2 ? "x at (entry(e), 0)" : "v[entry(e)]");
        parse(f, text);
        program_make(f, NULL, NULL, NULL);
        test_bind(f->run, way < 2 ? "x" : "v", data);
        assert_ok(ptowsp_run_bind_csr(f->run, "s", &csr));
        const ptowsp_status status = ptowsp_run_execute(f->run, NULL);
        assert_int_equal(status, way % 2 ? PTOWSP_INVALID_PARAMS : PTOWSP_OK);
        if (status == PTOWSP_OK) {
            assert_int_equal(ptowsp_run_result(f->run)->task_count, ROWS);
        } else {
            fixture_refused(f, status, PTOWSP_INVALID_PARAMS, "(e = 0)");
            fixture_refused(f, status, PTOWSP_INVALID_PARAMS, " 1000");
        }
    }
}

// Two thousand million tasks with fixed cycles, of which nothing is called or evaluated, take seconds.
TEST_F(stretch__a_loop_without_calls_meets_the_time_limit) {
    program_make(f,
                 "module m\naxis n 2000000000\nkernel fixed(axes 0) vector, 1 cycles, time only\n"
                 "workload w\n  parallel i in n\n    task fixed()\n",
                 NULL, NULL);
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .time_limit_ns = 10000000};
    assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_TIMED_OUT);
    assert_in_range(ptowsp_run_result(f->run)->task_count, 0, UINT64_C(2000000000) - 1);
}
