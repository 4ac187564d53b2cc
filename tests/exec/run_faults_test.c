// What executing refuses on its way that is not a program in and a text out (tests/cases/run_faults.case, runs.facts):
// kernels and costs that fail, runs that are busy, two threads, a step of bindings.

#include "run_fixture.h"

#define STEPS "workload main\n  parallel b in batch\n    task step(b)\n"

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

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

// -- calls ----------------------------------------------------------------------------------------

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

// -- binding -----------------------------------------------------------------------------------------

// A program that uses one of everything.
static void make_one_of_everything(fixture *f) {
    fixture_parse(f, "symbol scale\narray list i16\nworkload main\n  parallel b in batch\n"
                     "    parallel k in kv[b]\n      task step(k + i64(scale))\n"
                     "    select p in pages[b]\n      task step(list[p])\n"
                     "  task fill(0) tile = d[0]\n");
    compile(f, NULL);
}

// A step in one call: all that one_of_everything uses. The first error ends it, and what comes before
// it is bound.
FIXTURE_TEST(run_faults__a_whole_step_ends_at_its_first_error) {
    static const int32_t lengths[] = {1, 0}, indptr[] = {0, 1, 1}, indices[] = {2};
    static const int16_t list[] = {0, 0, 5};
    static int32_t d[12];
    const ptowsp_csr csr = {PTOWSP_I32, indptr, indices, 2, 1};
    const ptowsp_buffer buffer = {
        .data = d, .size = sizeof d, .dtype = PTOWSP_I32, .rank = 3, .shape = {2, 3, 2}};
    ptowsp_binding step_of[] = {
        {.kind = PTOWSP_BIND_SIZE, .name = "batch", .value = 2},
        {.kind = PTOWSP_BIND_LENGTHS,
         .name = "kv",
         .dtype = PTOWSP_I32,
         .data = lengths,
         .count = 2},
        {.kind = PTOWSP_BIND_CSR, .name = "pages", .data = &csr},
        {.kind = PTOWSP_BIND_SYMBOL, .name = "scale", .value = 7},
        {.kind = PTOWSP_BIND_ARRAY, .name = "list", .dtype = PTOWSP_I16, .data = list, .count = 3},
        {.kind = PTOWSP_BIND_TENSOR, .name = "d", .data = &buffer},
        {.kind = PTOWSP_BIND_SLOT, .slot = 3, .value = 9},
        {.kind = PTOWSP_BIND_TRANSIENTS, .count = 4096},
        {.kind = PTOWSP_BIND_RANKS}};
    enum { COUNT = COUNT_OF(step_of) };
    make_one_of_everything(f);
    refused(f, ptowsp_run_bind(f->run, NULL, 3), PTOWSP_NO_INDEX,
            "bind: bindings is NULL with count 3");
    assert_ok(ptowsp_run_bind(f->run, NULL, 0));
    step_of[COUNT - 1].kind = PTOWSP_BIND_KIND_COUNT;
    refused(f, ptowsp_run_bind(f->run, step_of, COUNT), PTOWSP_NO_INDEX,
            "bind: there is no kind of binding 12");
    assert_int_equal(ptowsp_run_bound_slot(f->run, 3), 9);  // what comes before it is bound
    step_of[COUNT - 1].kind = PTOWSP_BIND_RANKS;
    step_of[3].name = "batch";
    step_of[6].value = 10;
    refused(f, ptowsp_run_bind(f->run, step_of, COUNT), PTOWSP_NO_INDEX,
            "bind: module decode has no symbol batch; it has scale");
    assert_int_equal(ptowsp_run_bound_slot(f->run, 3), 9);  // what comes behind it is not
    step_of[3].name = "scale";
    assert_ok(ptowsp_run_bind(f->run, step_of, COUNT));
    assert_int_equal(ptowsp_run_bound_slot(f->run, 3), 10);
    f->calls = 0;
    assert_ok(ptowsp_run_execute(f->run, NULL));
    assert_int_equal(f->calls, 3);  // a token of kv, an entry of pages, and fill
}
