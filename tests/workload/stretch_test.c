// Loops whose only task is walked many iterations at once: what each task gets is worked out by
// hand, and an error in the middle names its iteration.

#include "test.h"

enum { TASKS = 334, ROWS = 1000, COLS = 8 };

typedef struct loop {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_kernel_desc kernel;
    ptowsp_task_desc task;
    ptowsp_program *program;
    ptowsp_run *run;
    int32_t data[ROWS * COLS];
    uint64_t calls;
} loop;

// Task i: rows [3 i, 3 i + 4) of the tensor, of which the last task has one; at most i % 5 + 1.
static ptowsp_cycles check_task(const ptowsp_task *task, void *user) {
    loop *l = (loop *)user;
    const uint64_t i = l->calls++;
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
    assert_ptr_equal(task->tiles[0].data, &l->data[3 * i * COLS + 6]);
    assert_int_equal(task->tiles[0].row_stride, COLS);
    assert_ptr_equal(task->tiles[1].data, &l->data[i % 7]);
    return 1 + i;
}

static void loop_begin(loop *l) {
    const ptowsp_tensor_desc x = {
        .name = "x", .dtype = PTOWSP_I32, .rank = 2, .shape = {ROWS, COLS}};
    memset(l, 0, sizeof *l);
    assert_int_equal(ptowsp_context_create(NULL, &l->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(l->context, NULL, &l->m), PTOWSP_OK);
    l->kernel.name = "k";
    l->kernel.axis_count = 1;
    l->kernel.fn = check_task;
    l->kernel.user = l;
    l->kernel.tiles[0] = (ptowsp_tile_param){"a", PTOWSP_INOUT, PTOWSP_I32, 4, 4};
    l->kernel.tiles[1] = (ptowsp_tile_param){"b", PTOWSP_IN, PTOWSP_I32, 1, 1};
    l->kernel.scalars[0] = (ptowsp_scalar_param){"s", PTOWSP_TYPE_I64};
    l->task.views[0].tensor = l->task.views[1].tensor = ptowsp_tensor_make(l->m, &x);
    l->task.kernel = ptowsp_kernel_make(l->m, &l->kernel);
}

static ptowsp_status loop_run(loop *l, const ptowsp_schedule *schedule, ptowsp_run_mode mode) {
    const ptowsp_program_desc desc = {NULL, schedule};
    const ptowsp_run_options options = {.mode = mode};
    if (ptowsp_program_create(l->context, l->m, &desc, &l->program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(l->context).text);
    }
    assert_int_equal(ptowsp_run_create(l->context, l->program, &l->run), PTOWSP_OK);
    const ptowsp_buffer x = {.data = l->data, .dtype = PTOWSP_I32};
    assert_int_equal(ptowsp_run_bind_tensor(l->run, "x", &x), PTOWSP_OK);
    return ptowsp_run_execute(l->run, &options);
}

static void loop_end(loop *l) {
    test_destroy(l->run, l->program, l->m, l->context);
}

TEST(stretch__tasks_get_what_is_worked_out_by_hand) {
    static loop l;
    for (uint32_t way = 0; way < 4; way++) {
        loop_begin(&l);
        ptowsp_module *m = l.m;
        PTOWSP_WORKLOAD(m, "w") {
            PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "n", TASKS)) {
                l.task.axes[0] = ptowsp_mul(i, ptowsp_i64(m, 2));
                l.task.views[0].row = ptowsp_mul(i, ptowsp_i64(m, 3));
                l.task.views[0].col = ptowsp_i64(m, 6);
                l.task.views[0].row_count =
                    ptowsp_add(ptowsp_rem(i, ptowsp_i64(m, 5)), ptowsp_i64(m, 1));
                l.task.views[1].col = ptowsp_rem(i, ptowsp_i64(m, 7));
                l.task.scalars[0] = ptowsp_mul(i, i);
                ptowsp_task_make(m, &l.task);
            }
        }
        const ptowsp_schedule schedule = {
            .dependencies = way % 2 ? PTOWSP_DEPENDENCIES_STRUCTURE : PTOWSP_DEPENDENCIES_OVERLAP,
            .dispatch = way < 2 ? PTOWSP_DISPATCH_ROUND_ROBIN : PTOWSP_DISPATCH_WORK_STEALING,
            .lane_count = 1};
        assert_int_equal(loop_run(&l, &schedule, PTOWSP_RUN_EXECUTE), PTOWSP_OK);
        assert_int_equal(l.calls, TASKS);
        assert_int_equal(ptowsp_run_result(l.run)->task_count, TASKS);
        // one lane: 1 + 2 + ... + 334
        assert_int_equal(ptowsp_run_result(l.run)->makespan_cycles, TASKS * (TASKS + 1) / 2);
        loop_end(&l);
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

TEST(stretch__arguments_that_do_not_change_stay) {
    for (uint32_t lanes = 1; lanes < 3; lanes++) {
        mixed x = {0, lanes == 2};
        ptowsp_context *context = test_context(NULL);
        ptowsp_module *m = test_module(context, NULL);
        ptowsp_kernel_desc kernel = {.name = "k", .axis_count = 3, .cost = check_mixed, .user = &x};
        kernel.scalars[0] = (ptowsp_scalar_param){"r", PTOWSP_TYPE_I64};
        kernel.scalars[1] = (ptowsp_scalar_param){"s", PTOWSP_TYPE_I64};
        kernel.scalars[2] = (ptowsp_scalar_param){"c", PTOWSP_TYPE_I64};
        ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &kernel)};
        PTOWSP_WORKLOAD(m, "w") {
            PTOWSP_FOR_EACH(m, j, ptowsp_axis_dense(m, "rows", 5)) {
                PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "n", 300)) {
                    task.axes[0] = ptowsp_i64(m, 7);
                    task.axes[1] = i;
                    task.axes[2] = j;
                    task.scalars[0] = x.is_worked_out ? ptowsp_mul(j, ptowsp_i64(m, 3)) : j;
                    task.scalars[1] = x.is_worked_out ? ptowsp_add(i, j) : i;
                    task.scalars[2] = ptowsp_i64(m, -9);
                    ptowsp_task_make(m, &task);
                }
            }
        }
        const ptowsp_schedule schedule = {.lane_count = lanes};
        const ptowsp_program_desc desc = {NULL, &schedule};
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
        ptowsp_program *program = test_program(context, m, &desc);
        ptowsp_run *run = test_run_of(context, program);
        assert_int_equal(ptowsp_run_execute(run, &options), PTOWSP_OK);
        assert_int_equal(x.calls, 1500);
        test_destroy(run, program, m, context);
    }
}

// A view whose values are linear in the iteration, and what is said of the first that is wrong.
typedef struct wrong {
    int64_t row, row_step, col, count, count_step;
    int64_t at;
    const char *text;
} wrong;

static ptowsp_cycles no_task(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 1;
}

TEST(stretch__an_error_names_its_iteration) {
    static loop l;
    static const wrong all[] = {
        {0, 4, 0, 4, 0, 250, "row 1000 of tensor x is outside of its 1000 rows"},
        {750, 1, 0, 4, 0, 250, "row 1000 of tensor x is outside of its 1000 rows"},
        {250, -1, 0, 4, 0, 251, "row -1 of tensor x is outside of its 1000 rows"},
        {0, 1, 0, 100, -1, 100, "the tile of tensor x has 0 rows"},
    };
    for (uint32_t i = 0; i < 2 * sizeof all / sizeof *all; i++) {
        const wrong *w = &all[i / 2];
        loop_begin(&l);
        ptowsp_module *m = l.m;
        l.kernel.name = "none";
        l.kernel.fn = no_task;
        l.kernel.cost = no_task;
        l.task.kernel = ptowsp_kernel_make(m, &l.kernel);
        PTOWSP_WORKLOAD(m, "w") {
            PTOWSP_PARALLEL(m, at, ptowsp_axis_dense(m, "n", TASKS)) {
                ptowsp_view *view = &l.task.views[0];
                view->row =
                    ptowsp_add(ptowsp_mul(at, ptowsp_i64(m, w->row_step)), ptowsp_i64(m, w->row));
                view->col = ptowsp_i64(m, w->col);
                view->row_count = ptowsp_add(ptowsp_mul(at, ptowsp_i64(m, w->count_step)),
                                             ptowsp_i64(m, w->count));
                l.task.axes[0] = at;
                l.task.scalars[0] = at;
                ptowsp_task_make(m, &l.task);
            }
        }
        const ptowsp_schedule schedule = {.lane_count = 2};
        const ptowsp_run_mode mode = i % 2 ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE;
        char text[256];
        snprintf(text, sizeof text, "w/parallel at/task none (at = %d): a: %s", (int)w->at,
                 w->text);
        assert_int_equal(loop_run(&l, &schedule, mode), PTOWSP_INVALID_PARAMS);
        assert_string_equal(ptowsp_context_error(l.context).text, text);
        loop_end(&l);
    }
}

// One iteration alone is outside: the first ones, those around the end of a block, the last ones.
TEST(stretch__one_iteration_outside_is_found_wherever_it_is) {
    static loop l;
    for (int64_t i = 0; i < TASKS; i += i == 8 ? 115 : i == 133 ? 195 : 1) {
        loop_begin(&l);
        ptowsp_module *m = l.m;
        const ptowsp_kernel_desc none = {.name = "none",
                                         .axis_count = 1,
                                         .cost = no_task,
                                         .tiles = {{"a", PTOWSP_IN, PTOWSP_I32, 1, COLS}}};
        ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &none)};
        task.views[0].tensor = l.task.views[0].tensor;
        PTOWSP_WORKLOAD(m, "w") {
            PTOWSP_PARALLEL(m, at, ptowsp_axis_dense(m, "n", TASKS)) {
                const ptowsp_expr from = ptowsp_sub(at, ptowsp_i64(m, i));
                const ptowsp_expr is_wrong = ptowsp_max(
                    ptowsp_sub(ptowsp_i64(m, 1), ptowsp_mul(from, from)), ptowsp_i64(m, 0));
                task.axes[0] = at;
                task.views[0].row = ptowsp_mul(is_wrong, ptowsp_i64(m, ROWS));
                ptowsp_task_make(m, &task);
            }
        }
        const ptowsp_schedule schedule = {.lane_count = 2};
        char text[256];
        snprintf(
            text, sizeof text,
            "w/parallel at/task none (at = %d): a: row 1000 of tensor x is outside of its 1000 "
            "rows",
            (int)i);
        assert_int_equal(loop_run(&l, &schedule, PTOWSP_RUN_TIME_ONLY), PTOWSP_INVALID_PARAMS);
        assert_string_equal(ptowsp_context_error(l.context).text, text);
        loop_end(&l);
    }
}

// The entries of a sparse loop in which nothing has to be evaluated are in a cell alone, as is its
// variable. Each is the row of a view, or the leading index; the first that is outside is named.
TEST(stretch__an_entry_in_a_cell_is_checked_to_the_end) {
    static loop l;
    static const int32_t indices[ROWS + 20] = {0};
    for (uint32_t way = 0; way < 4; way++) {
        const uint64_t count = ROWS + (way % 2 ? 20 : 0);
        const int32_t indptr[] = {0, (int32_t)count};
        const ptowsp_csr csr = {PTOWSP_I32, indptr, indices, 1, count};
        loop_begin(&l);
        ptowsp_module *m = l.m;
        const ptowsp_tensor_desc v = {
            .name = "v", .dtype = PTOWSP_I32, .rank = 3, .shape = {ROWS, 1, COLS}};
        const ptowsp_tensor deep = ptowsp_tensor_make(m, &v);
        const ptowsp_kernel_desc none = {
            .name = "none", .fn = no_task, .tiles = {{"a", PTOWSP_IN, PTOWSP_I32, 1, COLS}}};
        ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &none)};
        task.views[0].tensor = way < 2 ? l.task.views[0].tensor : deep;
        PTOWSP_WORKLOAD(m, "w") {
            PTOWSP_SELECT(m, e, ptowsp_axis_sparse(m, "s")) {
                *(way < 2 ? &task.views[0].row : &task.views[0].index[0]) = ptowsp_loop_entry(e);
                ptowsp_task_make(m, &task);
            }
        }
        assert_int_equal(ptowsp_program_create(l.context, m, NULL, &l.program), PTOWSP_OK);
        assert_int_equal(ptowsp_run_create(l.context, l.program, &l.run), PTOWSP_OK);
        const ptowsp_buffer data = {.data = l.data, .dtype = PTOWSP_I32};
        assert_int_equal(ptowsp_run_bind_tensor(l.run, way < 2 ? "x" : "v", &data), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_csr(l.run, "s", &csr), PTOWSP_OK);
        const ptowsp_status status = ptowsp_run_execute(l.run, NULL);
        assert_int_equal(status, way % 2 ? PTOWSP_INVALID_PARAMS : PTOWSP_OK);
        if (status == PTOWSP_OK) {
            assert_int_equal(ptowsp_run_result(l.run)->task_count, ROWS);
        } else {
            assert_non_null(strstr(ptowsp_context_error(l.context).text, "(e = 0)"));
            assert_non_null(strstr(ptowsp_context_error(l.context).text, " 1000"));
        }
        loop_end(&l);
    }
}

// Two thousand million tasks with fixed cycles, of which nothing is called or evaluated, take seconds.
TEST(stretch__a_loop_without_calls_meets_the_time_limit) {
    const uint64_t count = UINT64_C(2000000000);
    static loop l;
    loop_begin(&l);
    ptowsp_module *m = l.m;
    const ptowsp_kernel_desc fixed = {.name = "fixed", .cycles = 1};
    const ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &fixed)};
    PTOWSP_WORKLOAD(m, "w") {
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "n", (int64_t)count)) {
            (void)i;
            ptowsp_task_make(m, &task);
        }
    }
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .time_limit_ns = 10000000};
    assert_int_equal(ptowsp_program_create(l.context, m, NULL, &l.program), PTOWSP_OK);
    assert_int_equal(ptowsp_run_create(l.context, l.program, &l.run), PTOWSP_OK);
    assert_int_equal(ptowsp_run_execute(l.run, &options), PTOWSP_TIMED_OUT);
    assert_in_range(ptowsp_run_result(l.run)->task_count, 0, count - 1);
    loop_end(&l);
}
