// What a run refuses that has been asked at the wrong time, or for what is not there: calls while it runs,
// ranks, what-ifs, the memory of transient tensors.

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

TEST_F(refused__what_ifs_of_no_kernel) {
    program_make(f,
                 "module m\nkernel k(axes 0) vector, 4 cycles, time only\nworkload w\n  task k()\n",
                 NULL, NULL);
    static const struct { uint32_t kernel, percent; } cases[] = {{0, 50}, {2, 50}, {1, 1001}};
    char text[128];
    for (uint32_t i = 0; i < 3; i++) {
        ptowsp_what_if what_if = {cases[i].kernel, cases[i].percent, 0, 0};
        assert_invalid(ptowsp_run_what_if(f->run, NULL, &what_if));
        snprintf(text, sizeof text,
                 "run: what if kernel %u took %u percent: no such kernel, or over 1000",
                 (unsigned)cases[i].kernel, (unsigned)cases[i].percent);
        test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, text);
    }
    ptowsp_what_if what_if = {1, 1000, 0, 0};
    assert_ok(ptowsp_run_what_if(f->run, NULL, &what_if));
    assert_int_equal(what_if.makespan_cycles, 40);  // ten times 4
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

TEST_F(refused__time_alone_that_depends_on_transient_data) {
    const ptowsp_parse_kernel kernel = {.name = "put", .fn = put_one};
    const ptowsp_parse_desc attached = {&kernel, 1, 0};
    program_make(f, transient_text, &attached, NULL);
    test_refused(f->context, test_time(f->run), PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                 "run: a slot is loaded from transient tensor mid, which only kernels write, so "
                 "that its time is known only by executing");
    assert_ok(ptowsp_run_execute(f->run, NULL));
    assert_int_equal(ptowsp_run_slot(f->run, 1), 1);
}

// The error of too little memory names the four largest tensors, in whatever order they are declared, and
// the first place where they all live: where the last one is written.
TEST_F(refused__memory_that_is_not_there) {
    static const char text[] =
        "module m\nkernel put(axes 0, out x i32 ? x 16) vector, 1 cycles\n"
        "kernel use(axes 0, in a i32 ? x 16, in b i32 ? x 16, in c i32 ? x 16, in d i32 ? x 16, "
        "in e i32 ? x 16, in f i32 ? x 16) vector, 1 cycles\n"
        "tensor t0 i32 [1, 16] global transient\ntensor t1 i32 [2, 16] global transient\n"
        "tensor t2 i32 [3, 16] global transient\ntensor t3 i32 [4, 16] global transient\n"
        "tensor t4 i32 [5, 16] global transient\ntensor t5 i32 [6, 16] global transient\n"
        "workload main\n  task put() x = t0\n  task put() x = t1\n  task put() x = t2\n"
        "  task put() x = t3\n  task put() x = t4\n  task put() x = t5\n"
        "  task use() a = t0 b = t1 c = t2 d = t3 e = t4 f = t5\n";
    const ptowsp_parse_kernel kernels[2] = {{.name = "put", .fn = put_one},
                                            {.name = "use", .fn = put_one}};
    const ptowsp_parse_desc attached = {kernels, 2, 0};
    program_make(f, text, &attached, NULL);
    assert_ok(ptowsp_run_bind_transients(f->run, NULL, 1343));
    test_refused(
        f->context, ptowsp_run_execute(f->run, NULL), PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
        "run: transient tensors take 1344 bytes, and there are 1343; most at main/task "
        "put: t5 384, t4 320, t3 256, t2 192. Smaller tiles there, or computing again what "
        "lives long, takes less");
    assert_ok(ptowsp_run_bind_transients(f->run, NULL, 1344));
    assert_ok(ptowsp_run_execute(f->run, NULL));
}

TEST_F(refused__sizes_that_no_memory_has) {
    program_make(f,
                 "module m\naxis n dynamic\n"
                 "tensor a i64 [size(n), 8] global transient\n"
                 "tensor b i64 [size(n), 8] global transient\n"
                 "kernel put(axes 0, out x i64 1 x 8) vector, 1 cycles, time only\n"
                 "kernel use(axes 0, in x i64 1 x 8, in y i64 1 x 8) vector, 1 cycles, time only\n"
                 "workload w\n  task put() x = a\n  task put() x = b\n  task use() x = a y = b\n",
                 NULL, NULL);
    ptowsp_transient_sizes sizes;
    assert_ok(ptowsp_run_bind_size(f->run, "n", INT64_C(1) << 54));
    assert_ok(ptowsp_run_size_transients(f->run, &sizes));
    assert_true(sizes.peak == UINT64_C(1) << 61);  // 64 bytes each row, twice
    assert_ok(ptowsp_run_bind_size(f->run, "n", (INT64_C(1) << 54) + 1));
    test_refused(f->context, ptowsp_run_size_transients(f->run, &sizes), PTOWSP_LIMIT_EXCEEDED,
                 PTOWSP_NO_INDEX, "run: transient tensors, up to b, take more than 2^61 bytes");
}

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
