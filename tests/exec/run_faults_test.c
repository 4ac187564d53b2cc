// Everything that executing refuses on its way: what is outside, kernels that fail, time, windows,
// modes; status, index and exact text. What can be known beforehand is told before any kernel is
// called, and runs work afterwards.

#include "run_fixture.h"

// -- what is outside ------------------------------------------------------------------------------

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

// Tiles of x along its rows: the third begins behind the last row.
FIXTURE_TEST(run_faults__views_outside_in_a_late_iteration) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, b, f->batch) {
            fill(f, f->x, ptowsp_mul(b, number(f, 2)), number(f, 0));
        }
    }
    compile(f, NULL);
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 3), PTOWSP_OK);
    invalid_before(f, 4,
                   "main/parallel b/task fill (b = 2): tile: row 4 of tensor x is outside of its 4 "
                   "rows");
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 2), PTOWSP_OK);
    works(f, 2);
    assert_int_equal(f->data[0], 100);
    assert_int_equal(f->data[8], 102);
}

FIXTURE_TEST(run_faults__views_outside_by_column_and_index) {
    ptowsp_buffer buffer;
    int32_t d[12] = {0};
    ptowsp_task_desc desc = {.kernel = f->fill, .axes[0] = number(f, 0), .views[0].tensor = f->d};
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_workload_param(f->m, "unused", PTOWSP_TYPE_I64);
    }
    PTOWSP_WORKLOAD(f->m, "inner") {
        desc.views[0].index[0] = ptowsp_workload_param(f->m, "i", PTOWSP_TYPE_I64);
        desc.views[0].col =
            ptowsp_cast(ptowsp_workload_param(f->m, "c", PTOWSP_TYPE_U64), PTOWSP_TYPE_I64);
        ptowsp_task_make(f->m, &desc);
    }
    PTOWSP_WORKLOAD(f->m, "outer") {
        const ptowsp_expr args[] = {ptowsp_slot(f->m, 0, PTOWSP_TYPE_I64),
                                    ptowsp_slot(f->m, 1, PTOWSP_TYPE_U64)};
        ptowsp_call_make(f->m, "inner", args, 2);
    }
    compile(f, NULL);
    memset(&buffer, 0, sizeof buffer);
    buffer.data = d;
    buffer.rank = 3;
    buffer.shape[0] = 2;
    buffer.shape[1] = 3;
    buffer.shape[2] = 2;
    assert_int_equal(ptowsp_run_bind_tensor(f->run, "d", &buffer), PTOWSP_OK);
    ptowsp_run_bind_slot(f->run, 0, 2);
    invalid_before(f, 2,
                   "inner/task fill (i = 2, c = 0): tile: index 0 of tensor d is 2, outside of its "
                   "size 2");
    ptowsp_run_bind_slot(f->run, 0, (uint64_t)-1);
    invalid_before(f, PTOWSP_NEGATIVE_INDEX,
                   "inner/task fill (i = -1, c = 0): tile: index 0 of tensor d is -1, outside of "
                   "its size 2");
    ptowsp_run_bind_slot(f->run, 0, 1);
    ptowsp_run_bind_slot(f->run, 1, 5);
    invalid_before(f, 5,
                   "inner/task fill (i = 1, c = 5): tile: column 5 of tensor d is outside of its 2 "
                   "columns");
    ptowsp_run_bind_slot(f->run, 1, 1);
    works(f, 1);
    assert_int_equal(d[7], 100);
    buffer.shape[0] = 0;  // an empty tensor has no index
    assert_int_equal(ptowsp_run_bind_tensor(f->run, "d", &buffer), PTOWSP_OK);
    invalid_before(f, 1,
                   "inner/task fill (i = 1, c = 1): tile: index 0 of tensor d is 1, outside of its "
                   "size 0");
}

// Arrays read outside wherever an expression may stand; `where` says where.
static void build_read(const fixture *f, int where) {
    ptowsp_task_desc desc = {.kernel = f->fill, .views[0].tensor = f->x};
    PTOWSP_WORKLOAD(f->m, "callee") {
        step(f, ptowsp_workload_param(f->m, "n", PTOWSP_TYPE_I64));
    }
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, b, f->batch) {
            ptowsp_expr read = ptowsp_array_at(f->m, "list", PTOWSP_I64, b);
            desc.axes[0] = where == 1 ? read : b;
            desc.views[0].row = where == 2 ? read : number(f, 0);
            if (where == 3) {
                desc.tags[0].name = "t";
                desc.tags[0].value = ptowsp_cast(read, PTOWSP_TYPE_U64);
            }
            if (where == 0) {
                PTOWSP_WHEN(f->m, ptowsp_eq(read, b)) {
                }
            } else if (where == 4) {
                ptowsp_slot_set_make(f->m, 0, read);
            } else if (where == 5) {
                ptowsp_call_make(f->m, "callee", &read, 1);
            } else if (where == 6) {
                PTOWSP_PARALLEL(f->m, k, ptowsp_axis_row(f->m, f->kv, read)) {
                    step(f, k);
                }
            } else if (where == 7) {
                load(f, 0, f->y, read, number(f, 0));
            }
            ptowsp_task_make(f->m, &desc);
        }
    }
}

TEST(run_faults__arrays_read_outside) {
    static const char *const texts[] = {
        "main/parallel b/when (b = 2): array list is read at 2; it has 2 elements",
        "main/parallel b/task fill (b = 2): array list is read at 2; it has 2 elements",
        "main/parallel b/task fill (b = 2): array list is read at 2; it has 2 elements",
        ("main/parallel b/task fill (b = 2): a key of the schedule reads array list at 2; it has 2 "
         "elements"),
        "main/parallel b/slot_set 0 (b = 2): array list is read at 2; it has 2 elements",
        "main/parallel b/call callee (b = 2): array list is read at 2; it has 2 elements",
        "main/parallel b/parallel k (b = 2): array list is read at 2; it has 2 elements",
        "main/parallel b/slot_load 0 (b = 2): array list is read at 2; it has 2 elements"};
    static const int64_t list[] = {0, 1};
    static const int32_t lengths[] = {1, 1};
    for (int where = 0; where < 8; where++) {
        fixture f;
        fixture_make(&f);
        build_read(&f, where);
        ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_AFFINITY,
                                    .lane_count = 2,
                                    .dispatch_key = ptowsp_task_tag(f.m, "t")};
        compile(&f, &schedule);
        assert_int_equal(ptowsp_run_bind_size(f.run, "batch", 4), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_array(f.run, "list", PTOWSP_I64, list, 2), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_lengths(f.run, "kv", PTOWSP_I32, lengths, 2), PTOWSP_OK);
        invalid_before(&f, 2, texts[where]);
        assert_int_equal(ptowsp_run_bind_size(f.run, "batch", 2), PTOWSP_OK);
        works(&f, where == 5 || where == 6 ? 4 : 2);
        fixture_free(&f);
    }
}

FIXTURE_TEST(run_faults__slot_loads_outside) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_FOR_EACH(f->m, b, f->batch) {
            load(f, 1, f->y, b, ptowsp_slot(f->m, 0, PTOWSP_TYPE_I64));
            step(f, b);
        }
    }
    compile(f, NULL);
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 3), PTOWSP_OK);
    invalid_before(f, 2, "main/for_each b/slot_load 1 (b = 2): element (2, 0) of a tile of 2 x 2");
    ptowsp_run_bind_slot(f->run, 0, (uint64_t)-3);
    invalid_before(f, 0, "main/for_each b/slot_load 1 (b = 0): element (0, -3) of a tile of 2 x 2");
    ptowsp_run_bind_slot(f->run, 0, 1);
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 2), PTOWSP_OK);
    f->other[5] = 77;
    works(f, 2);
    assert_int_equal(ptowsp_run_slot(f->run, 1), 77);
}

// A view whose row was computed by a task can be checked only when it is there.
FIXTURE_TEST(run_faults__what_depends_on_data_is_checked_task_by_task) {
    PTOWSP_WORKLOAD(f->m, "main") {
        fill(f, f->x, number(f, 0), number(f, 0));  // sets x[0][0] to 100
        load(f, 0, f->x, no_expr(), no_expr());
        fill(f, f->y, ptowsp_slot(f->m, 0, PTOWSP_TYPE_I64), number(f, 0));
        step(f, number(f, 0));
    }
    compile(f, NULL);
    assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, 100,
                  "main/task fill: tile: row 100 of tensor y is outside of its 4 rows");
    assert_int_equal(f->calls, 1);
    assert_int_equal(f->data[0], 100);
    assert_int_equal(ptowsp_run_result(f->run)->task_count, 1);
}

// -- kernels --------------------------------------------------------------------------------------

static void build_steps(fixture *f) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, b, f->batch) {
            step(f, b);
        }
    }
}

TEST(run_faults__kernels_that_fail) {
    static const struct {
        ptowsp_cycles returned;
        ptowsp_status status;
    } rows[] = {{(ptowsp_cycles)-11, PTOWSP_KERNEL_FAILED},
                {(ptowsp_cycles)-4, PTOWSP_OUT_OF_MEMORY},
                {(ptowsp_cycles)-1, PTOWSP_BUFFER_OVERFLOW},
                {(ptowsp_cycles)-13, PTOWSP_SKIPPED},
                {(ptowsp_cycles)-14, PTOWSP_LEAKED},
                {(ptowsp_cycles)-100, PTOWSP_KERNEL_FAILED},
                {(ptowsp_cycles)-4294967297, PTOWSP_KERNEL_FAILED},
                {PTOWSP_CYCLES_MAX + 1, PTOWSP_KERNEL_FAILED}};
    fixture f;
    fixture_make(&f);
    assert_true(ptowsp_task_fail(PTOWSP_OUT_OF_MEMORY) == rows[1].returned);
    assert_true(ptowsp_task_fail(PTOWSP_OK) == rows[0].returned);
    build_steps(&f);
    compile(&f, NULL);
    assert_int_equal(ptowsp_run_bind_size(f.run, "batch", 5), PTOWSP_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[100];
        f.calls = 0;
        f.failing_task = 3;
        f.failure = rows[i].returned;
        snprintf(text, sizeof text, "main/parallel b/task step (b = 3): task 3 failed: %s",
                 ptowsp_status_name(rows[i].status));
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_EXECUTE, .record_tasks = true};
        assert_int_equal(ptowsp_run_execute(f.run, &options), rows[i].status);
        test_error_is(f.context, rows[i].status, 3, text);
        assert_int_equal(f.calls, 4);
        assert_int_equal(ptowsp_run_result(f.run)->task_count, 3);  // what was done
        assert_int_equal(ptowsp_run_result(f.run)->makespan_cycles, 3);
        assert_int_equal(ptowsp_run_records(f.run)[2].end, 3);
        f.failing_task = UINT64_MAX;
        works(&f, 5);
        assert_int_equal(ptowsp_run_result(f.run)->makespan_cycles, 5);
    }
    fixture_free(&f);
}

static ptowsp_cycles failing_cost(const ptowsp_task *task, void *user) {
    (void)user;
    assert_null(task->tiles[0].data);
    return ptowsp_task_axis(task, 0) == 1 ? ptowsp_task_fail(PTOWSP_UNSUPPORTED_SIZE) : 2;
}

FIXTURE_TEST(run_faults__costs_that_fail) {
    ptowsp_kernel_desc desc = {
        .name = "costly", .axis_count = 1, .fn = kernel, .cost = failing_cost, .user = f};
    f->step = ptowsp_kernel_make(f->m, &desc);
    build_steps(f);
    compile(f, NULL);
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 3), PTOWSP_OK);
    for (int mode = 0; mode < 2; mode++) {
        const ptowsp_run_options options = {.mode = (ptowsp_run_mode)mode, .record_tasks = false};
        f->calls = 0;
        assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_UNSUPPORTED_SIZE);
        test_error_is(f->context, PTOWSP_UNSUPPORTED_SIZE, 1,
                      "main/parallel b/task costly (b = 1): task 1 failed: UNSUPPORTED_SIZE");
        assert_int_equal(f->calls, mode == 0 ? 1 : 0);
    }
}

static void bind_and_execute(fixture *f) {
    static const int32_t lengths[1];
    const ptowsp_csr csr = {PTOWSP_I32, lengths, NULL, 0, 0};
    ptowsp_buffer buffer = {.data = f->data};
    assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_BUSY);
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 9), PTOWSP_BUSY);
    assert_int_equal(ptowsp_run_bind_symbol(f->run, "s", 9), PTOWSP_BUSY);
    assert_int_equal(ptowsp_run_bind_array(f->run, "a", PTOWSP_I32, lengths, 1), PTOWSP_BUSY);
    assert_int_equal(ptowsp_run_bind_lengths(f->run, "kv", PTOWSP_I32, lengths, 1), PTOWSP_BUSY);
    assert_int_equal(ptowsp_run_bind_csr(f->run, "pages", &csr), PTOWSP_BUSY);
    assert_int_equal(ptowsp_run_bind_tensor(f->run, "x", &buffer), PTOWSP_BUSY);
    assert_int_equal(ptowsp_run_bind_slot(f->run, 0, 9), PTOWSP_BUSY);
}

FIXTURE_TEST(run_faults__a_run_is_busy_inside_of_its_kernels) {
    build_steps(f);
    compile(f, NULL);
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 2), PTOWSP_OK);
    f->inside = bind_and_execute;
    works(f, 2);
    test_was_busy(f->context);
}

static void execute_in_a_job(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    fixture *f = (fixture *)user;
    (void)begin;
    (void)end;
    (void)lane;
    assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_BUSY);
}

FIXTURE_TEST(run_faults__a_run_is_busy_inside_of_a_job_of_its_context) {
    build_steps(f);
    compile(f, NULL);
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 2), PTOWSP_OK);
    assert_int_equal(ptowsp_parallel_for(f->context, 1, 0, execute_in_a_job, f), PTOWSP_OK);
    works(f, 2);
}

// -- time -----------------------------------------------------------------------------------------

static ptowsp_schedule schedule_of(ptowsp_issue issue, ptowsp_ready ready, uint32_t lanes) {
    ptowsp_schedule schedule = {.issue = issue, .ready = ready, .lane_count = lanes};
    return schedule;
}

TEST(run_faults__time_beyond_63_bits) {
    const ptowsp_schedule schedules[] = {
        schedule_of(PTOWSP_ISSUE_IN_ORDER, PTOWSP_READY_FIFO, 1),
        schedule_of(PTOWSP_ISSUE_DATAFLOW, PTOWSP_READY_FIFO, 1),
        schedule_of(PTOWSP_ISSUE_DATAFLOW, PTOWSP_READY_WORK_STEALING, 1)};
    for (int i = 0; i < 3; i++) {
        fixture f;
        fixture_make(&f);
        build_steps(&f);
        compile(&f, &schedules[i]);
        f.result = PTOWSP_CYCLES_MAX / 3;
        assert_int_equal(ptowsp_run_bind_size(f.run, "batch", 3), PTOWSP_OK);
        works(&f, 3);
        assert_int_equal(ptowsp_run_bind_size(f.run, "batch", 4), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_LIMIT_EXCEEDED);
        test_error_is(f.context, PTOWSP_LIMIT_EXCEEDED, 3,
                      "run: task 3 ends after 2^63 - 1 cycles");
        f.result = 1;
        works(&f, 4);
        assert_int_equal(ptowsp_run_result(f.run)->makespan_cycles, 4);
        fixture_free(&f);
    }
}

TEST(run_faults__a_window_that_aborts) {
    const ptowsp_schedule schedules[] = {
        schedule_of(PTOWSP_ISSUE_IN_ORDER, PTOWSP_READY_FIFO, 2),
        schedule_of(PTOWSP_ISSUE_DATAFLOW, PTOWSP_READY_FIFO, 2),
        schedule_of(PTOWSP_ISSUE_DATAFLOW, PTOWSP_READY_WORK_STEALING, 2)};
    for (int i = 0; i < 3; i++) {
        fixture f;
        ptowsp_schedule schedule = schedules[i];
        schedule.window = 3;
        schedule.window_policy = PTOWSP_WINDOW_ABORT;
        fixture_make(&f);
        build_steps(&f);
        compile(&f, &schedule);
        assert_int_equal(ptowsp_run_bind_size(f.run, "batch", 4), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_LIMIT_EXCEEDED);
        test_error_is(
            f.context, PTOWSP_LIMIT_EXCEEDED, 3,
            "run: task 3 finds the window of 3 tasks full at cycle 0; a larger window, or "
            "the stall policy, would help");
        assert_int_equal(ptowsp_run_bind_size(f.run, "batch", 3), PTOWSP_OK);
        f.calls = 0;
        works(&f, 3);
        fixture_free(&f);
    }
}

// Nothing ends before all tasks are issued, and the window has no room for all.
TEST(run_faults__stuck_at_the_start) {
    static const ptowsp_ready readies[] = {PTOWSP_READY_FIFO, PTOWSP_READY_WORK_STEALING};
    for (int i = 0; i < 2; i++) {
        fixture f;
        ptowsp_schedule schedule = schedule_of(PTOWSP_ISSUE_DATAFLOW, readies[i], 2);
        schedule.window = 3;
        schedule.start = PTOWSP_START_ALL_ISSUED;
        fixture_make(&f);
        build_steps(&f);
        compile(&f, &schedule);
        assert_int_equal(ptowsp_run_bind_size(f.run, "batch", 5), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_STUCK);
        test_error_is(
            f.context, PTOWSP_STUCK, 3,
            "run: stuck at task 3: the window has no room for it, but no task ends before "
            "all tasks have been issued, and 3 are (window 3); a larger window, an "
            "earlier start or no start condition would help");
        assert_int_equal(ptowsp_run_bind_size(f.run, "batch", 3), PTOWSP_OK);
        works(&f, 3);
        fixture_free(&f);
        schedule.start = PTOWSP_START_THRESHOLD;
        schedule.start_threshold = 4;
        schedule.window = 0;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            fill(&f, f.x, number(&f, 0), number(&f, 0));
            load(&f, 0, f.x, no_expr(), no_expr());
            step(&f, number(&f, 0));
        }
        compile(&f, &schedule);
        assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_STUCK);
        test_error_is(f.context, PTOWSP_STUCK, 1,
                      "run: stuck at task 1: a slot load needs the result of a task, but no task "
                      "ends before 4 tasks have been issued, and 1 are; an earlier start or no "
                      "start condition would help");
        fixture_free(&f);
    }
}

// How many tasks there are depends on what task 0 writes, and with timing their start on that.
TEST(run_faults__a_start_that_would_need_the_number_of_tasks) {
    fixture f;
    ptowsp_schedule schedule = schedule_of(PTOWSP_ISSUE_DATAFLOW, PTOWSP_READY_FIFO, 2);
    schedule.start = PTOWSP_START_THRESHOLD;
    schedule.start_threshold = 2;
    schedule.timing = PTOWSP_TIMING_RATE_LIMITED;
    schedule.timing_cycles = UINT64_C(1) << 32;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        fill(&f, f.x, number(&f, 0), number(&f, 0));
        load(&f, 0, f.x, no_expr(), no_expr());
        PTOWSP_WHEN(f.m, ptowsp_slot(f.m, 0, PTOWSP_TYPE_BOOL)) {
            step(&f, number(&f, 0));
        }
    }
    compile(&f, &schedule);
    fails_before(&f, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                 "run: start threshold with timing needs the number of tasks beforehand, and it "
                 "depends on data that tasks write");
    fixture_free(&f);
}

// -- modes ----------------------------------------------------------------------------------------

FIXTURE_TEST(run_faults__what_cannot_only_be_timed_or_only_be_run) {
    const ptowsp_run_options time_only = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = false};
    const ptowsp_run_options neither = {.mode = (ptowsp_run_mode)2, .record_tasks = false};
    build_steps(f);
    compile(f, NULL);
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 2), PTOWSP_OK);
    assert_int_equal(ptowsp_run_execute(f->run, &time_only), PTOWSP_UNSUPPORTED);
    test_error_is(f->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                  "run: kernel step has neither cost nor cycles, so that its time is known only by "
                  "executing it");
    assert_int_equal(ptowsp_run_execute(f->run, &neither), PTOWSP_INVALID_PARAMS);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "run: there is no mode 2");
    works(f, 2);
    fixture_free(f);
    fixture_make(f);
    ptowsp_kernel_desc desc = {.name = "timed", .axis_count = 1, .cycles = 7};
    f->step = ptowsp_kernel_make(f->m, &desc);
    build_steps(f);
    compile(f, NULL);
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 2), PTOWSP_OK);
    fails_before(f, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                 "run: kernel timed has no fn, so that only its time can be measured");
    assert_int_equal(ptowsp_run_execute(f->run, &time_only), PTOWSP_OK);
    assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 14);
}

FIXTURE_TEST(run_faults__time_cannot_see_what_tasks_write) {
    const ptowsp_run_options time_only = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = false};
    ptowsp_kernel_desc desc = {.name = "both", .axis_count = 1, .cycles = 3};
    const ptowsp_tile_param tile = {"tile", PTOWSP_OUT, PTOWSP_I32, 2, 2};
    desc.tiles[0] = tile;
    f->fill = ptowsp_kernel_make(f->m, &desc);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_FOR_EACH(f->m, b, f->batch) {
            fill(f, f->x, b, b);
        }
        load(f, 5, f->y, no_expr(), no_expr());
    }
    compile(f, NULL);
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 2), PTOWSP_OK);
    assert_int_equal(ptowsp_run_execute(f->run, &time_only), PTOWSP_OK);  // y is not written
    ptowsp_buffer buffer = {.data = f->data};
    assert_int_equal(ptowsp_run_bind_tensor(f->run, "y", &buffer), PTOWSP_OK);  // now it is
    assert_int_equal(ptowsp_run_execute(f->run, &time_only), PTOWSP_UNSUPPORTED);
    test_error_is(f->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                  "main/slot_load 5: it loads what a task writes, which only executing can tell");
    buffer.data = NULL;
    assert_int_equal(ptowsp_run_bind_tensor(f->run, "y", &buffer), PTOWSP_OK);
    assert_int_equal(ptowsp_run_execute(f->run, &time_only), PTOWSP_UNBOUND);
    test_error_is(f->context, PTOWSP_UNBOUND, PTOWSP_NO_INDEX,
                  "run: tensor y is bound without data");
}

FIXTURE_TEST(run_faults__null_is_refused_where_the_header_says_so) {
    ptowsp_run *run;
    build_steps(f);
    compile(f, NULL);
    assert_int_equal(ptowsp_run_create(f->context, NULL, &run), PTOWSP_INVALID_PARAMS);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "run: program or out_run is NULL");
    assert_int_equal(ptowsp_run_create(f->context, f->program, NULL), PTOWSP_INVALID_PARAMS);
    uint64_t count = 1;
    assert_null(ptowsp_run_records(f->run));
    assert_null(ptowsp_run_critical_path(f->run, &count));
    assert_int_equal(count, 0);
    assert_int_equal(ptowsp_run_result(f->run)->task_count, 0);
}

// -- threads --------------------------------------------------------------------------------------

typedef struct racer {
    const ptowsp_program *program;
    uint64_t makespan, task_count, slot;
    bool is_good;
} racer;

static void *race(void *arg) {
    racer *r = (racer *)arg;
    ptowsp_context *context;
    ptowsp_run *run;
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true};
    r->is_good = ptowsp_context_create(NULL, &context) == PTOWSP_OK &&
                 ptowsp_run_create(context, r->program, &run) == PTOWSP_OK;
    for (int i = 0; r->is_good && i < 20; i++) {
        r->is_good = ptowsp_run_bind_size(run, "batch", 500) == PTOWSP_OK &&
                     ptowsp_run_execute(run, &options) == PTOWSP_OK;
        r->makespan += ptowsp_run_result(run)->makespan_cycles;
        r->task_count += ptowsp_run_result(run)->task_count;
        r->slot += ptowsp_run_slot(run, 0);
        r->is_good = r->is_good && ptowsp_run_bind_size(run, "nobody", 1) < 0;  // an error of ours
    }
    if (r->is_good) {
        ptowsp_run_destroy(run);
        ptowsp_context_destroy(context);
    }
    return NULL;
}

static ptowsp_cycles axis_cost(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_axis(task, 0) % 7;
}

FIXTURE_TEST(run_faults__two_threads_run_one_program) {
    racer racers[2];
    pthread_t thread;
    ptowsp_kernel_desc desc = {.name = "timed", .axis_count = 1, .cost = axis_cost};
    f->step = ptowsp_kernel_make(f->m, &desc);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, b, f->batch) {
            ptowsp_slot_set_make(f->m, 0, ptowsp_add(ptowsp_slot(f->m, 0, PTOWSP_TYPE_I64), b));
            step(f, ptowsp_mul(b, b));
        }
    }
    const ptowsp_schedule schedule =
        schedule_of(PTOWSP_ISSUE_DATAFLOW, PTOWSP_READY_WORK_STEALING, 3);
    const ptowsp_program_desc program = {NULL, &schedule};
    assert_int_equal(ptowsp_program_create(f->context, f->m, &program, &f->program), PTOWSP_OK);
    memset(racers, 0, sizeof racers);
    racers[0].program = racers[1].program = f->program;
    assert_int_equal(pthread_create(&thread, NULL, race, &racers[1]), 0);
    race(&racers[0]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(racers[0].is_good && racers[1].is_good);
    assert_int_equal(racers[0].task_count, 20 * 500);
    assert_int_equal(racers[0].slot, 20 * (500 * 499 / 2));
    assert_int_equal(racers[0].makespan, racers[1].makespan);
    assert_int_equal(racers[0].task_count, racers[1].task_count);
    assert_int_equal(racers[0].slot, racers[1].slot);
}
