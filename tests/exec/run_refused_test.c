// What a run refuses that has been asked at the wrong time, or for what is not there: calls while it runs,
// ranks that are not bound any more, transient tensors on devices. Others are in runs.facts.

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

TEST_F(refused__ranks_that_are_not_bound_any_more) {
    const ptowsp_run_ranks four = {.rank_count = 4};
    program_make(f,
                 "module m\nkernel sum(axes 0, inout data i64 ? x ?) link, all_reduce\n"
                 "tensor x i64 [4, 4] global\nworkload w\n  task sum() data = x\n",
                 NULL, NULL);
    assert_ok(ptowsp_run_bind_ranks(f->run, &four));
    assert_ok(test_time(f->run));
    assert_ok(ptowsp_run_bind_ranks(f->run, NULL));
    test_invalid(f->context, test_time(f->run),
                 "run: kernel sum communicates, and no ranks are bound (ptowsp_run_bind_ranks)");
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
