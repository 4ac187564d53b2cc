// Everything that executing refuses on its way: what is outside, kernels that fail, time, windows,
// modes; status, index and exact text. What can be known beforehand is told before any kernel is
// called, and runs work afterwards.

#include "run_fixture.h"

#define STEPS "workload main\n  parallel b in batch\n    task step(b)\n"

// -- what is outside ------------------------------------------------------------------------------

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

// Tiles of x along its rows: the third begins behind the last row.
FIXTURE_TEST(run_faults__views_outside_in_a_late_iteration_are_refused) {
    fixture_parse(f, "workload main\n  parallel b in batch\n"
                     "    task fill(b * 2) tile = x at (b * 2, (0))\n");
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

FIXTURE_TEST(run_faults__views_outside_by_column_and_index_are_refused) {
    int32_t d[12] = {0};
    fixture_parse(f, "workload main(unused i64)\nworkload inner(i i64, c u64)\n"
                     "  task fill(0) tile = d[i] at (0, i64(c))\n"
                     "workload outer\n  call inner(slot_i64[0], slot_u64[1])\n");
    compile(f, NULL);
    ptowsp_buffer buffer = {.data = d, .rank = 3, .shape[0] = 2, .shape[1] = 3, .shape[2] = 2};
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

// Arrays read outside wherever an expression may stand.
FIXTURE_TEST(run_faults__arrays_read_outside) {
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
    // What stands before the task, and the task's argument, row and tag.
    static const struct {
        const char *before, *axis, *row, *tag;
    } places[] = {{"    when list[b] == b\n", "b", "(0)", ""},
                  {"", "list[b]", "(0)", ""},
                  {"", "b", "list[b]", ""},
                  {"", "b", "(0)", " tag t = u64(list[b])"},
                  {"    slot_set 0 = list[b]\n", "b", "(0)", ""},
                  {"    call callee(list[b])\n", "b", "(0)", ""},
                  {"    parallel k in kv[list[b]]\n      task step(k)\n", "b", "(0)", ""},
                  {"    slot_load 0 = y of 2 x 2 element (list[b], (0))\n", "b", "(0)", ""}};
    for (int where = 0; where < 8; where++) {
        char text[400];
        snprintf(
            text, sizeof text,
            "array list i64\nworkload callee(n i64)\n  task step(n)\n"
            "workload main\n  parallel b in batch\n%s    task fill(%s) tile = x at (%s, 0)%s\n",
            places[where].before, places[where].axis, places[where].row, places[where].tag);
        f->calls = 0;
        fixture_parse(f, text);
        ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_AFFINITY,
                                    .lane_count = 2,
                                    .dispatch_key = ptowsp_task_tag(f->m, "t")};
        compile(f, &schedule);
        assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 4), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_array(f->run, "list", PTOWSP_I64, list, 2), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_lengths(f->run, "kv", PTOWSP_I32, lengths, 2), PTOWSP_OK);
        invalid_before(f, 2, texts[where]);
        assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 2), PTOWSP_OK);
        works(f, where == 5 || where == 6 ? 4 : 2);
    }
}

FIXTURE_TEST(run_faults__slot_loads_outside) {
    fixture_parse(f, "workload main\n  for_each b in batch\n"
                     "    slot_load 1 = y of 2 x 2 element (b, slot_i64[0])\n    task step(b)\n");
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
    // The first sets x[0][0] to 100.
    fixture_parse(f, "workload main\n  task fill(0) tile = x at ((0), (0))\n"
                     "  slot_load 0 = x of 2 x 2\n"
                     "  task fill(slot_i64[0]) tile = y at (slot_i64[0], (0))\n  task step(0)\n");
    compile(f, NULL);
    assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, 100,
                  "main/task fill: tile: row 100 of tensor y is outside of its 4 rows");
    assert_int_equal(f->calls, 1);
    assert_int_equal(f->data[0], 100);
    assert_int_equal(ptowsp_run_result(f->run)->task_count, 1);
}

// -- kernels --------------------------------------------------------------------------------------

FIXTURE_TEST(run_faults__kernels_that_fail) {
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
    assert_true(ptowsp_task_fail(PTOWSP_OUT_OF_MEMORY) == rows[1].returned);
    assert_true(ptowsp_task_fail(PTOWSP_OK) == rows[0].returned);
    fixture_parse(f, STEPS);
    compile(f, NULL);
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 5), PTOWSP_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[100];
        f->calls = 0;
        f->failing_task = 3;
        f->failure = rows[i].returned;
        snprintf(text, sizeof text, "main/parallel b/task step (b = 3): task 3 failed: %s",
                 ptowsp_status_name(rows[i].status));
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_EXECUTE, .record_tasks = true};
        assert_int_equal(ptowsp_run_execute(f->run, &options), rows[i].status);
        test_error_is(f->context, rows[i].status, 3, text);
        assert_int_equal(f->calls, 4);
        assert_int_equal(ptowsp_run_result(f->run)->task_count, 3);  // what was done
        assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 3);
        assert_int_equal(ptowsp_run_records(f->run)[2].end, 3);
        f->failing_task = UINT64_MAX;
        works(f, 5);
        assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 5);
    }
}

static ptowsp_cycles failing_cost(const ptowsp_task *task, void *user) {
    (void)user;
    assert_null(task->tiles[0].data);
    return ptowsp_task_axis(task, 0) == 1 ? ptowsp_task_fail(PTOWSP_UNSUPPORTED_SIZE) : 2;
}

FIXTURE_TEST(run_faults__costs_that_fail) {
    f->cost = failing_cost;
    fixture_parse(f, "kernel costly(axes 1) vector, cycles by a cost function\nworkload main\n"
                     "  parallel b in batch\n    task costly(b)\n");
    compile(f, NULL);
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 3), PTOWSP_OK);
    for (int mode = 0; mode < 2; mode++) {
        const ptowsp_run_options options = {.mode = (ptowsp_run_mode)mode, .record_tasks = false};
        f->calls = 0;
        assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_UNSUPPORTED_SIZE);
        test_error_is(f->context, PTOWSP_UNSUPPORTED_SIZE, 1,
                      mode == 0 ? "main/parallel b/task costly (b = 1): task 1 failed: "
                                  "UNSUPPORTED_SIZE"
                                : "main/parallel b/task costly (b = 1): task 1: the cost of costly "
                                  "returned UNSUPPORTED_SIZE");
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
    fixture_parse(f, STEPS);
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
    fixture_parse(f, STEPS);
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

FIXTURE_TEST(run_faults__time_beyond_63_bits_is_refused) {
    const ptowsp_schedule schedules[] = {
        schedule_of(PTOWSP_ISSUE_IN_ORDER, PTOWSP_READY_FIFO, 1),
        schedule_of(PTOWSP_ISSUE_DATAFLOW, PTOWSP_READY_FIFO, 1),
        schedule_of(PTOWSP_ISSUE_DATAFLOW, PTOWSP_READY_WORK_STEALING, 1)};
    for (int i = 0; i < 3; i++) {
        fixture_parse(f, STEPS);
        compile(f, &schedules[i]);
        f->result = PTOWSP_CYCLES_MAX / 3;
        assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 3), PTOWSP_OK);
        works(f, 3);
        assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 4), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_LIMIT_EXCEEDED);
        test_error_is(f->context, PTOWSP_LIMIT_EXCEEDED, 3,
                      "run: task 3 ends after 2^63 - 1 cycles");
        f->result = 1;
        works(f, 4);
        assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 4);
    }
}

FIXTURE_TEST(run_faults__a_full_window_can_abort) {
    const ptowsp_schedule schedules[] = {
        schedule_of(PTOWSP_ISSUE_IN_ORDER, PTOWSP_READY_FIFO, 2),
        schedule_of(PTOWSP_ISSUE_DATAFLOW, PTOWSP_READY_FIFO, 2),
        schedule_of(PTOWSP_ISSUE_DATAFLOW, PTOWSP_READY_WORK_STEALING, 2)};
    for (int i = 0; i < 3; i++) {
        ptowsp_schedule schedule = schedules[i];
        schedule.window = 3;
        schedule.window_policy = PTOWSP_WINDOW_ABORT;
        fixture_parse(f, STEPS);
        compile(f, &schedule);
        assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 4), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_LIMIT_EXCEEDED);
        test_error_is(
            f->context, PTOWSP_LIMIT_EXCEEDED, 3,
            "run: task 3 finds the window of 3 tasks full at cycle 0; a larger window, or "
            "the stall policy, would help");
        assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 3), PTOWSP_OK);
        f->calls = 0;
        works(f, 3);
    }
}

// Nothing ends before all tasks are issued, and the window has no room for all.
FIXTURE_TEST(run_faults__stuck_at_the_start) {
    static const ptowsp_ready readies[] = {PTOWSP_READY_FIFO, PTOWSP_READY_WORK_STEALING};
    for (int i = 0; i < 2; i++) {
        ptowsp_schedule schedule = schedule_of(PTOWSP_ISSUE_DATAFLOW, readies[i], 2);
        schedule.window = 3;
        schedule.start = PTOWSP_START_ALL_ISSUED;
        fixture_parse(f, STEPS);
        compile(f, &schedule);
        assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 5), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_STUCK);
        test_error_is(
            f->context, PTOWSP_STUCK, 3,
            "run: stuck at task 3: the window has no room for it, but no task ends before "
            "all tasks have been issued, and 3 are (window 3); a larger window, an "
            "earlier start or no start condition would help");
        assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 3), PTOWSP_OK);
        works(f, 3);
        schedule.start = PTOWSP_START_THRESHOLD;
        schedule.start_threshold = 4;
        schedule.window = 0;
        fixture_parse(f, "workload main\n  task fill(0) tile = x at ((0), (0))\n"
                         "  slot_load 0 = x of 2 x 2\n  task step(0)\n");
        compile(f, &schedule);
        assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_STUCK);
        test_error_is(f->context, PTOWSP_STUCK, 1,
                      "run: stuck at task 1: a slot load needs the result of a task, but no task "
                      "ends before 4 tasks have been issued, and 1 are; an earlier start or no "
                      "start condition would help");
    }
}

// How many tasks there are depends on what task 0 writes, and with timing their start on that.
FIXTURE_TEST(run_faults__a_start_that_would_need_the_number_of_tasks) {
    ptowsp_schedule schedule = schedule_of(PTOWSP_ISSUE_DATAFLOW, PTOWSP_READY_FIFO, 2);
    schedule.start = PTOWSP_START_THRESHOLD;
    schedule.start_threshold = 2;
    schedule.timing = PTOWSP_TIMING_RATE_LIMITED;
    schedule.timing_cycles = UINT64_C(1) << 32;
    fixture_parse(f, "workload main\n  task fill(0) tile = x at ((0), (0))\n"
                     "  slot_load 0 = x of 2 x 2\n  when slot_bool[0]\n    task step(0)\n");
    compile(f, &schedule);
    fails_before(f, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                 "run: start threshold with timing needs the number of tasks beforehand, and it "
                 "depends on data that tasks write");
}

// -- modes ----------------------------------------------------------------------------------------

FIXTURE_TEST(run_faults__what_cannot_only_be_timed_or_only_be_run) {
    const ptowsp_run_options time_only = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = false};
    const ptowsp_run_options neither = {.mode = (ptowsp_run_mode)2, .record_tasks = false};
    fixture_parse(f, STEPS);
    compile(f, NULL);
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 2), PTOWSP_OK);
    assert_int_equal(ptowsp_run_execute(f->run, &time_only), PTOWSP_UNSUPPORTED);
    test_error_is(f->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                  "run: kernel step has neither cost nor cycles, so that its time is known only by "
                  "executing it");
    assert_int_equal(ptowsp_run_execute(f->run, &neither), PTOWSP_INVALID_PARAMS);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "run: there is no mode 2");
    works(f, 2);
    fixture_parse(f, "kernel timed(axes 1) vector, 7 cycles, time only\nworkload main\n"
                     "  parallel b in batch\n    task timed(b)\n");
    compile(f, NULL);
    assert_int_equal(ptowsp_run_bind_size(f->run, "batch", 2), PTOWSP_OK);
    fails_before(f, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                 "run: kernel timed has no fn, so that only its time can be measured");
    assert_int_equal(ptowsp_run_execute(f->run, &time_only), PTOWSP_OK);
    assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 14);
}

FIXTURE_TEST(run_faults__time_cannot_see_what_tasks_write) {
    const ptowsp_run_options time_only = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = false};
    fixture_parse(f, "kernel both(axes 1, out tile i32 2 x 2) vector, 3 cycles, time only\n"
                     "workload main\n  for_each b in batch\n    task both(b) tile = x at (b, b)\n"
                     "  slot_load 5 = y of 2 x 2\n");
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
    fixture_parse(f, STEPS);
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
    f->cost = axis_cost;
    fixture_parse(f, "kernel timed(axes 1) vector, cycles by a cost function, time only\n"
                     "workload main\n  parallel b in batch\n    slot_set 0 = slot_i64[0] + b\n"
                     "    task timed(b * b)\n");
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
