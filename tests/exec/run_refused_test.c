// What a run refuses that has been asked at the wrong time, or for what is not there: calls while it runs, transient
// tensors on devices, NULL; a step of bindings, and two threads. Others are in runs.facts.

#include "support/fixture.h"

static uint32_t busy_count;

// Everything that changes the run that calls it, or executes.
static ptowsp_cycles meddle(const ptowsp_task *task, void *user) {
    fixture *f = (fixture *)user;
    (void)task;
    ptowsp_transient_sizes sizes;
    ptowsp_what_if what_if = {1, 50, 0, 0};
    ptowsp_buffer buffer = {0};
    const ptowsp_status statuses[] = {
        ptowsp_run_bind_size(f->run, "n", 1),
        ptowsp_run_bind_slot(f->run, 0, 9),
        ptowsp_run_bind_symbol(f->run, "s", 1),
        ptowsp_run_bind_array(f->run, "a", PTOWSP_I32, &buffer, 1),
        ptowsp_run_bind_lengths(f->run, "kv", PTOWSP_I32, &buffer, 1),
        ptowsp_run_bind_csr(f->run, "pages", NULL),
        ptowsp_run_bind_tensor(f->run, "x", &buffer),
        ptowsp_run_bind_transients(f->run, NULL, 0),
        ptowsp_run_bind_plan(f->run, "p", NULL),
        ptowsp_run_bind_work(f->run, "p", NULL, 0),
        ptowsp_run_bind_batch(f->run, "p", NULL, NULL, NULL),
        ptowsp_run_bind_ranks(f->run, NULL),
        ptowsp_run_size_transients(f->run, &sizes),
        ptowsp_run_what_if(f->run, NULL, &what_if),
        ptowsp_run_execute(f->run, NULL),
        ptowsp_run_start(f->run, NULL),
    };
    for (uint32_t i = 0; i < COUNT_OF(statuses); i++) {
        busy_count += statuses[i] == PTOWSP_BUSY;
        if (statuses[i] != PTOWSP_BUSY) {
            print_error("call %u: %s\n", i, ptowsp_status_name(statuses[i]));
        }
    }
    return 1;
}

TEST_F(refused__all_changes_while_it_runs) {
    const ptowsp_parse_kernel kernel = {.name = "meddle", .fn = meddle, .user = f};
    const ptowsp_parse_desc attached = {&kernel, 1, 0};
    program_make(f, "module m\nkernel meddle(axes 0) vector\nworkload w\n  task meddle()\n",
                 &attached, NULL);
    assert_ok(ptowsp_run_execute(f->run, NULL));
    assert_int_equal(busy_count, 16);
    test_was_busy(f->context);
    assert_int_equal(ptowsp_run_result(f->run)->task_count, 1);
}

// -- transient tensors ----------------------------------------------------------------------------

static ptowsp_cycles put_one(const ptowsp_task *task, void *user) {
    (void)user;
    *(int32_t *)task->tiles[0].data = 1;
    return 1;
}

static const char transient_text[] = "module m slots 2\n"
                                     "tensor mid i32 [1, 8] global transient\n"
                                     "kernel put(axes 0, out x i32 1 x 8) vector\n"
                                     "workload w\n"
                                     "  task put() x = mid\n"
                                     "  slot_load 1 = mid element (0, 0)\n";

// One that no statement uses needs no memory, as with bound tensors.
TEST_F(refused__no_device_for_a_transient_tensor_without_use) {
#ifndef PTOWSP_NO_THREADS
    ptowsp_device *device;
    const ptowsp_parse_kernel kernel = {.name = "put", .fn = put_one};
    const ptowsp_parse_desc attached = {&kernel, 1, 0};
    program_make(f,
                 "module m\n"
                 "tensor mid i32 [1, 8] global transient\n"
                 "kernel put(axes 0) vector\n"
                 "workload w\n"
                 "  slot_set 1 = 3\n",
                 &attached, NULL);
    assert_ok(ptowsp_device_open(f->context, NULL, &device));
    assert_ok(ptowsp_device_run(device, f->run, NULL));
    assert_int_equal(ptowsp_run_slot(f->run, 1), 3);
    assert_ok(ptowsp_device_close(device));
#else
    (void)f;
#endif
}

// On a device the block is the device's, and large enough.
TEST_F(refused__blocks_that_are_not_the_devices) {
#ifndef PTOWSP_NO_THREADS
    const ptowsp_parse_kernel kernel = {.name = "put", .fn = put_one};
    const ptowsp_parse_desc attached = {&kernel, 1, 0};
    static _Alignas(64) char own[64];
    ptowsp_device *device;
    void *memory;
    program_make(f, transient_text, &attached, NULL);
    assert_ok(ptowsp_device_open(f->context, NULL, &device));
    test_invalid(f->context, ptowsp_device_run(device, f->run, NULL),
                 "device: the program has transient tensors: give them a block of the device's "
                 "memory (ptowsp_run_bind_transients)");
    assert_ok(ptowsp_run_bind_transients(f->run, own, sizeof own));
    test_invalid(f->context, ptowsp_device_run(device, f->run, NULL),
                 "device: transient tensors of 64 bytes is at no memory of the device");
    assert_ok(ptowsp_device_alloc(device, "block", 64, &memory));
    assert_ok(ptowsp_run_bind_transients(f->run, memory, 128));
    test_invalid(f->context, ptowsp_device_run(device, f->run, NULL),
                 "device: transient tensors of 128 bytes at 0 of 'block' (64 bytes) goes 64 beyond "
                 "its end");
    // An empty block is one that is too small.
    assert_ok(ptowsp_run_bind_transients(f->run, memory, 0));
    assert_int_equal(ptowsp_device_run(device, f->run, NULL), PTOWSP_LIMIT_EXCEEDED);
    assert_non_null(strstr(ptowsp_context_error(f->context).text,
                           "run: transient tensors take 64 bytes, and there are 0"));
    assert_ok(ptowsp_run_bind_transients(f->run, memory, 64));
    assert_ok(ptowsp_device_run(device, f->run, NULL));
    assert_int_equal(ptowsp_run_slot(f->run, 1), 1);
    assert_ok(ptowsp_device_free(device, memory));
    assert_ok(ptowsp_device_close(device));
#else
    (void)f;
#endif
}

// -- other calls ----------------------------------------------------------------------------------

static uint32_t call_count;

static ptowsp_cycles count_call(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    call_count++;
    return 1;
}

static void execute_in_a_job(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)begin, (void)end, (void)lane;
    assert_int_equal(ptowsp_run_execute((ptowsp_run *)user, NULL), PTOWSP_BUSY);
}

TEST_F(refused__null_and_a_job_of_the_same_context) {
    const ptowsp_parse_kernel kernel = {.name = "step", .fn = count_call};
    const ptowsp_parse_desc attached = {&kernel, 1, 0};
    ptowsp_run *run;
    uint64_t count = 1;
    program_make(f, "module m\nkernel step(axes 0) vector\nworkload w\n  task step()\n", &attached,
                 NULL);
    test_invalid(f->context, ptowsp_run_create(f->context, NULL, &run),
                 "run: program or out_run is NULL");
    assert_invalid(ptowsp_run_create(f->context, f->program, NULL));
    assert_null(ptowsp_run_records(f->run));
    assert_null(ptowsp_run_critical_path(f->run, &count));
    assert_int_equal(count, 0);
    assert_int_equal(ptowsp_run_result(f->run)->task_count, 0);
    call_count = 0;
    assert_ok(ptowsp_parallel_for(f->context, 1, 0, execute_in_a_job, f->run));
    assert_ok(ptowsp_run_execute(f->run, NULL));
    assert_int_equal(call_count, 1);
    assert_true(ptowsp_task_fail(PTOWSP_OUT_OF_MEMORY) == (ptowsp_cycles)-4);
    assert_true(ptowsp_task_fail(PTOWSP_OK) == (ptowsp_cycles)-11);  // KERNEL_FAILED
}

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

TEST_F(refused__nothing_of_two_threads_that_run_one_program) {
    racer racers[2];
    pthread_t thread;
    const ptowsp_parse_kernel kernel = {.name = "timed", .cost = axis_cost};
    const ptowsp_parse_desc attached = {&kernel, 1, 0};
    const ptowsp_schedule schedule = {.ready = PTOWSP_READY_WORK_STEALING, .lane_count = 3};
    const ptowsp_program_desc desc = {NULL, &schedule};
    program_make(f,
                 "module m slots 1\naxis batch dynamic\n"
                 "kernel timed(axes 1) vector, cycles by a cost function, time only\n"
                 "workload main\n  parallel b in batch\n    slot_set 0 = slot_i64[0] + b\n"
                 "    task timed(b * b)\n",
                 &attached, &desc);
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

// A step in one call: all that the program uses. The first error ends it, and what comes before
// it is bound.
TEST_F(refused__a_whole_step_ends_at_its_first_error) {
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
    const ptowsp_parse_kernel kernel = {.name = "step", .fn = count_call};
    const ptowsp_parse_desc attached = {&kernel, 1, 0};
    program_make(f,
                 "module decode slots 8\naxis batch dynamic\naxis kv ragged\naxis pages sparse\n"
                 "tensor d i32 [?, 3, 2] global\nsymbol scale\narray list i16\n"
                 "kernel step(axes 1) vector\nworkload main\n  parallel b in batch\n"
                 "    parallel k in kv[b]\n      task step(k + i64(scale))\n"
                 "    select p in pages[b]\n      task step(list[p])\n",
                 &attached, NULL);
    test_invalid(f->context, ptowsp_run_bind(f->run, NULL, 3),
                 "bind: bindings is NULL with count 3");
    assert_ok(ptowsp_run_bind(f->run, NULL, 0));
    step_of[COUNT - 1].kind = PTOWSP_BIND_KIND_COUNT;
    test_invalid(f->context, ptowsp_run_bind(f->run, step_of, COUNT),
                 "bind: there is no kind of binding 12");
    assert_int_equal(ptowsp_run_bound_slot(f->run, 3), 9);  // what comes before it is bound
    step_of[COUNT - 1].kind = PTOWSP_BIND_RANKS;
    step_of[3].name = "batch";
    step_of[6].value = 10;
    test_invalid(f->context, ptowsp_run_bind(f->run, step_of, COUNT),
                 "bind: module decode has no symbol batch; it has scale");
    assert_int_equal(ptowsp_run_bound_slot(f->run, 3), 9);  // what comes behind it is not
    step_of[3].name = "scale";
    assert_ok(ptowsp_run_bind(f->run, step_of, COUNT));
    assert_int_equal(ptowsp_run_bound_slot(f->run, 3), 10);
    call_count = 0;
    assert_ok(ptowsp_run_execute(f->run, NULL));
    assert_int_equal(call_count, 2);  // a token of kv, and an entry of pages
}
