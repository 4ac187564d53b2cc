// What executing refuses on its way that is not a program in and a text out (tests/cases/run_faults.case):
// kernels and costs that fail, runs that are busy, modes, two threads.

#include "run_fixture.h"

#define STEPS "workload main\n  parallel b in batch\n    task step(b)\n"

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

// -- views ----------------------------------------------------------------------------------------

FIXTURE_TEST(run_faults__an_empty_tensor_has_no_index) {
    int32_t d[12] = {0};
    fixture_parse(f, "workload main\n  task fill(0) tile = d[slot_i64[0]] at (0, 0)\n");
    compile(f, NULL);
    ptowsp_buffer buffer = {.data = d, .rank = 3, .shape[0] = 2, .shape[1] = 3, .shape[2] = 2};
    assert_ok(ptowsp_run_bind_tensor(f->run, "d", &buffer));
    ptowsp_run_bind_slot(f->run, 0, 1);
    works(f, 1);
    assert_int_equal(d[6], 100);
    buffer.shape[0] = 0;
    assert_ok(ptowsp_run_bind_tensor(f->run, "d", &buffer));
    for (uint64_t index = 0; index < 2; index++) {
        char text[100];
        ptowsp_run_bind_slot(f->run, 0, index);
        snprintf(text, sizeof text,
                 "main/task fill: tile: index 0 of tensor d is %d, outside of its size 0",
                 (int)index);
        invalid_before(f, index, text);
    }
    assert_int_equal(d[0], 0);
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
    assert_ok(ptowsp_run_bind_size(f->run, "batch", 5));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[100];
        f->calls = 0;
        f->failing_task = 3;
        f->failure = rows[i].returned;
        snprintf(text, sizeof text, "main/parallel b/task step (b = 3): task 3 failed: %s",
                 ptowsp_status_name(rows[i].status));
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_EXECUTE, .record_tasks = true};
        test_refused(f->context, ptowsp_run_execute(f->run, &options), rows[i].status, 3, text);
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
    assert_ok(ptowsp_run_bind_size(f->run, "batch", 3));
    for (int mode = 0; mode < 2; mode++) {
        const ptowsp_run_options options = {.mode = (ptowsp_run_mode)mode, .record_tasks = false};
        f->calls = 0;
        test_refused(f->context, ptowsp_run_execute(f->run, &options), PTOWSP_UNSUPPORTED_SIZE, 1,
                     mode == 0 ? "main/parallel b/task costly (b = 1): task 1 failed: "
                                 "UNSUPPORTED_SIZE"
                               : "main/parallel b/task costly (b = 1): task 1: the cost of costly "
                                 "returned UNSUPPORTED_SIZE");
        assert_int_equal(f->calls, mode == 0 ? 1 : 0);
    }
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
    assert_ok(ptowsp_run_bind_size(f->run, "batch", 2));
    assert_ok(ptowsp_parallel_for(f->context, 1, 0, execute_in_a_job, f));
    works(f, 2);
}

// -- modes ----------------------------------------------------------------------------------------

FIXTURE_TEST(run_faults__what_cannot_only_be_timed_or_only_be_run) {
    const ptowsp_run_options neither = {.mode = (ptowsp_run_mode)2, .record_tasks = false};
    fixture_parse(f, STEPS);
    compile(f, NULL);
    assert_ok(ptowsp_run_bind_size(f->run, "batch", 2));
    test_refused(f->context, test_time(f->run), PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                 "run: kernel step has neither cost nor cycles, so that its time is known only by "
                 "executing it");
    test_invalid(f->context, ptowsp_run_execute(f->run, &neither), "run: there is no mode 2");
    works(f, 2);
    fixture_parse(f, "kernel timed(axes 1) vector, 7 cycles, time only\nworkload main\n"
                     "  parallel b in batch\n    task timed(b)\n");
    compile(f, NULL);
    assert_ok(ptowsp_run_bind_size(f->run, "batch", 2));
    fails_before(f, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                 "run: kernel timed has no fn, so that only its time can be measured");
    assert_ok(test_time(f->run));
    assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 14);
}

FIXTURE_TEST(run_faults__time_cannot_see_what_tasks_write) {
    fixture_parse(f, "kernel both(axes 1, out tile i32 2 x 2) vector, 3 cycles, time only\n"
                     "workload main\n  for_each b in batch\n    task both(b) tile = x at (b, b)\n"
                     "  slot_load 5 = y of 2 x 2\n");
    compile(f, NULL);
    assert_ok(ptowsp_run_bind_size(f->run, "batch", 2));
    assert_ok(test_time(f->run));  // y is not written
    ptowsp_buffer buffer = {.data = f->data};
    assert_ok(ptowsp_run_bind_tensor(f->run, "y", &buffer));  // now it is
    test_refused(f->context, test_time(f->run), PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                 "main/slot_load 5: it loads what a task writes, which only executing can tell");
    buffer.data = NULL;
    assert_ok(ptowsp_run_bind_tensor(f->run, "y", &buffer));
    test_refused(f->context, test_time(f->run), PTOWSP_UNBOUND, PTOWSP_NO_INDEX,
                 "run: tensor y is bound without data");
}

FIXTURE_TEST(run_faults__null_is_refused_where_the_header_says_so) {
    ptowsp_run *run;
    fixture_parse(f, STEPS);
    compile(f, NULL);
    test_invalid(f->context, ptowsp_run_create(f->context, NULL, &run),
                 "run: program or out_run is NULL");
    assert_invalid(ptowsp_run_create(f->context, f->program, NULL));
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
    const ptowsp_schedule schedule = {.ready = PTOWSP_READY_WORK_STEALING, .lane_count = 3};
    const ptowsp_program_desc program = {NULL, &schedule};
    assert_ok(ptowsp_program_create(f->context, f->m, &program, &f->program));
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
