// Programs on devices: the same outputs, times, errors and records as on one lane, for random data,
// schedules and devices; and what is refused.

#include "mixer.h"

DEVICE_TEST(device_run__agrees_with_one_lane_for_random_programs_and_devices) {
    uint64_t random = test_seed();
    uint64_t fail_count = 0;
    for (int round = 0; TEST_ROUNDS(round, 40); round++) {
        ptowsp_context *context = plain_context();
        uint32_t schedulers = (uint32_t)test_random_in(&random, 1, 4);
        uint32_t vectors = (uint32_t)test_random_in(&random, 1, 5);
        uint32_t cubes = (uint32_t)test_random_in(&random, 0, 3);
        ptowsp_device *device = device_of(context, schedulers, vectors, cubes);
        ptowsp_schedule schedule = random_schedule(&random);
        mixer m = {0};
        mixer_build(&m, context, cubes > 0, &schedule);
        uint64_t host[ROWS * COLS], copy[ROWS * COLS], begin[ROWS * COLS];
        uint64_t *inside = (uint64_t *)piece_of(device, "x", sizeof host);
        ptowsp_run *one = mixer_run(&m, host), *many = mixer_run(&m, inside);
        for (int run = 0; run < 5; run++) {
            mixer_random(&m, &random);
            for (int i = 0; i < ROWS * COLS; i++) {
                begin[i] = test_random(&random);
            }
            memcpy(host, begin, sizeof host);
            assert_ok(ptowsp_device_copy_in(device, inside, begin, sizeof begin));
            ptowsp_run_options options = {.record_tasks = test_random_in(&random, 0, 1) != 0};
            ptowsp_status status = ptowsp_run_execute(one, &options);
            ptowsp_error error = ptowsp_context_error(context);
            char text[600];
            snprintf(text, sizeof text, "%s", error.text);
            assert_int_equal(ptowsp_device_run(device, many, &options), status);
            assert_true(m.core_max < vectors + cubes);
            if (status != PTOWSP_OK) {
                test_error_is(context, status, error.index, text);
                fail_count++;
            } else {
                same_results(one, many);
                assert_ok(ptowsp_device_copy_out(device, copy, inside, sizeof copy));
                assert_memory_equal(copy, host, sizeof copy);
            }
        }
        ptowsp_run_destroy(one);
        ptowsp_run_destroy(many);
        mixer_free(&m);
        assert_ok(ptowsp_device_free(device, inside));
        assert_ok(ptowsp_device_close(device));
        ptowsp_context_destroy(context);
    }
    assert_in_range(fail_count, 1, 180);
}

// -- affinity -------------------------------------------------------------------------------------

typedef struct placed {
    uint32_t core[96];  // + 1
} placed;

static ptowsp_cycles note_place(const ptowsp_task *task, void *user) {
    ((placed *)user)->core[ptowsp_task_axis(task, 0)] = task->lane + 1;
    return 1;
}

DEVICE_CONTEXT_TEST(device_run__affinity_chooses_the_core) {
    for (uint32_t schedulers = 1; schedulers <= 3; schedulers++) {
        ptowsp_device *device = device_of(context, schedulers, 5, 2);
        placed p;
        const ptowsp_parse_kernel kernels[3] = {{.name = "v", .fn = note_place, .user = &p},
                                                {.name = "c", .fn = note_place, .user = &p},
                                                {.name = "m", .fn = note_place, .user = &p}};
        const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = 3};
        fixture f = {.context = context};
        module_make(&f,
                    "module m\naxis n 32\nkernel v(axes 1) vector\nkernel c(axes 1) cube\n"
                    "kernel m(axes 1) mix\nworkload main\n  parallel i in n\n"
                    "    task v(i) tag home = u64(i)\n    task c(i + 32) tag home = u64(i)\n"
                    "    task m(i + 64) tag home = u64(i)\n",
                    &attached);
        const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_AFFINITY,
                                          .lane_count = 4,
                                          .dispatch_key = ptowsp_task_tag(f.module, "home")};
        const ptowsp_program_desc desc = {NULL, &schedule};
        program_make(&f, NULL, NULL, &desc);
        for (int round = 0; round < 3; round++) {
            memset(&p, 0, sizeof p);
            assert_ok(ptowsp_device_run(device, f.run, NULL));
            for (uint32_t i = 0; i < 96; i++) {
                assert_int_equal(p.core[i], i < 32 ? i % 5 + 1 : i % 2 + 6);
            }
        }
        fixture_clear(&f);
        assert_ok(ptowsp_device_close(device));
    }
}

// -- what is refused ------------------------------------------------------------------------------

DEVICE_TEST(device_run__what_is_refused_before_any_kernel) {
    ptowsp_context *context = plain_context(), *other = plain_context();
    ptowsp_device *device = device_of(context, 1, 1, 0), *foreign = device_of(other, 1, 1, 0);
    mixer m = {0};
    mixer_build(&m, context, true, NULL);
    uint64_t host[ROWS * COLS];
    char *small = (char *)piece_of(device, "small", sizeof host);
    ptowsp_run *run = mixer_run(&m, host);
    test_invalid(context, ptowsp_device_run(device, run, NULL),
                 "device: kernel mix_cube needs a cube core, and there is none");
    ptowsp_run_options time_only = {.mode = PTOWSP_RUN_TIME_ONLY};
    test_invalid(context, ptowsp_device_run(device, run, &time_only),
                 "device: a run that only measures time does not run on it");
    test_invalid(context, ptowsp_device_run(device, NULL, NULL), "device: run is NULL");
    test_invalid(other, ptowsp_device_run(foreign, run, NULL),
                 "device: the run is of another context");
    ptowsp_run_destroy(run);
    mixer_free(&m);
    mixer_build(&m, context, false, NULL);
    run = mixer_run(&m, host);
    test_invalid(context, ptowsp_device_run(device, run, NULL),
                 "device: tensor x of 768 bytes is at no memory of the device");
    ptowsp_buffer buffer = {.data = small + 8};
    assert_ok(ptowsp_run_bind_tensor(run, "x", &buffer));
    test_invalid(context, ptowsp_device_run(device, run, NULL),
                 "device: tensor x of 768 bytes at 8 of 'small' (768 bytes) goes 8 beyond its end");
    ptowsp_run_options bad = {.mode = (ptowsp_run_mode)7, .lane_count = 99};
    buffer.data = small;
    assert_ok(ptowsp_run_bind_tensor(run, "x", &buffer));
    test_invalid(context, ptowsp_device_run(device, run, &bad), "run: there is no mode 7");
    bad.mode = PTOWSP_RUN_EXECUTE;
    memset(small, 0, sizeof host);
    assert_ok(ptowsp_device_run(device, run, &bad));  // lanes are not used
    m.left[3] = ROWS;
    assert_invalid(ptowsp_device_run(device, run, NULL));
    assert_int_equal(ptowsp_context_error(context).index, ROWS);
    assert_int_equal(ptowsp_run_result(run)->task_count, 0);
    ptowsp_run_destroy(run);
    mixer_free(&m);
    assert_ok(ptowsp_device_free(device, small));
    assert_ok(ptowsp_device_close(device));
    assert_ok(ptowsp_device_close(foreign));
    ptowsp_context_destroy(context);
    ptowsp_context_destroy(other);
}

static ptowsp_cycles set_first(const ptowsp_task *task, void *user) {
    (void)user;
    *(int64_t *)task->tiles[0].data = 7;
    return 1;
}

// x is used, y is only declared.
DEVICE_TEST_ON(1, 1, 0, device_run__only_tensors_with_data_that_are_used_have_to_be_in_its_memory) {
    const ptowsp_parse_kernel set = {.name = "set", .fn = set_first};
    fixture f = program_of(context,
                           "module m\ntensor x i64 [1, 4] global\ntensor y i64 [1, 4] global\n"
                           "kernel set(axes 0, out to i64 1 x 4) vector\nworkload main\n"
                           "  task set() to = x\n",
                           &set, 1, NULL);
    ptowsp_run *run = f.run;
    int64_t host[COLS] = {0};
    ptowsp_buffer buffer = {.data = host};
    assert_ok(ptowsp_run_bind_tensor(run, "y", &buffer));
    // What is missing is told as on lanes.
    buffer.data = NULL;
    for (int round = 0; round < 4; round++) {
        if (round == 2) {
            assert_ok(ptowsp_run_bind_tensor(run, "x", &buffer));
        }
        test_refused(
            context,
            round % 2 ? ptowsp_device_run(device, run, NULL) : ptowsp_run_execute(run, NULL),
            PTOWSP_UNBOUND, PTOWSP_NO_INDEX,
            round < 2 ? "run: tensor x is not bound" : "run: tensor x is bound without data");
    }
    buffer.data = piece_of(device, "x", sizeof host);
    assert_ok(ptowsp_run_bind_tensor(run, "x", &buffer));
    assert_ok(ptowsp_device_run(device, run, NULL));
    assert_ok(ptowsp_device_copy_out(device, host, buffer.data, sizeof host));
    assert_int_equal(host[0], 7);
    assert_ok(ptowsp_device_free(device, buffer.data));
    fixture_clear(&f);
}

typedef struct elsewhere {
    ptowsp_device *device;
    ptowsp_run *run;
    uint32_t called;
} elsewhere;

static ptowsp_cycles run_elsewhere(const ptowsp_task *task, void *user) {
    elsewhere *e = (elsewhere *)user;
    (void)task;
    assert_int_equal(ptowsp_device_run(e->device, e->run, NULL), PTOWSP_BUSY);
    assert_int_equal(ptowsp_device_start(e->device, e->run, NULL), PTOWSP_BUSY);
    e->called++;
    return 1;
}

// A run executes in its context; a device of another one says so before it says whose the run is.
DEVICE_TEST(device_run__a_run_that_executes_elsewhere_is_busy) {
    ptowsp_context *context = plain_context(), *other = plain_context();
    elsewhere e = {device_of(context, 1, 1, 0), NULL, 0};
    const ptowsp_parse_kernel kernel = {.name = "k", .fn = run_elsewhere, .user = &e};
    fixture f = program_of(other, "module m\nkernel k(axes 0) vector\nworkload main\n  task k()\n",
                           &kernel, 1, NULL);
    e.run = f.run;
    assert_ok(ptowsp_run_execute(e.run, NULL));
    assert_int_equal(e.called, 1);
    test_invalid(context, ptowsp_device_run(e.device, e.run, NULL),
                 "device: the run is of another context");
    fixture_clear(&f);
    assert_ok(ptowsp_device_close(e.device));
    ptowsp_context_destroy(context);
    ptowsp_context_destroy(other);
}

// -- stuck ----------------------------------------------------------------------------------------

typedef struct waiter {
    uint32_t flag, count;  // atomic
    uint64_t at;
} waiter;

static ptowsp_cycles wait_at(const ptowsp_task *task, void *user) {
    waiter *w = (waiter *)user;
    while (task->index == w->at && !__atomic_load_n(&w->flag, __ATOMIC_ACQUIRE)) {
    }
    __atomic_fetch_add(&w->count, 1, __ATOMIC_RELAXED);
    return 5;
}

DEVICE_TEST(device_run__a_stuck_core_ends_the_run) {
    for (uint32_t i = 0; i < 5; i++) {
        static const uint32_t core_counts[] = {1, 4, 1, 4, 2};
        const uint32_t cores = core_counts[i];
        const bool has_homes = i >= 2;  // then tasks wait for the core that is stuck
        ptowsp_context *context = plain_context();
        ptowsp_device *device =
            device_with(context, (ptowsp_device_desc){.scheduler_count = i == 4 ? 1 : 2,
                                                      .vector_count = cores,
                                                      .time_limit_ns = 500000000});
        waiter w = {0, 0, 7};
        const ptowsp_parse_kernel kernel = {.name = "spin", .fn = wait_at, .user = &w};
        const ptowsp_parse_desc attached = {.kernels = &kernel, .kernel_count = 1};
        fixture f = {.context = context};
        module_make(&f,
                    "module m\naxis n 20000\nkernel spin(axes 1) vector\nworkload main\n"
                    "  parallel i in n\n    task spin(i)\n",
                    &attached);
        const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_AFFINITY,
                                          .lane_count = 4,
                                          .dispatch_key = ptowsp_task_arg(f.module, 0)};
        const ptowsp_program_desc homes = {NULL, &schedule};
        program_make(&f, NULL, NULL, has_homes ? &homes : NULL);
        ptowsp_run *run = f.run;
        assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_STUCK);
        ptowsp_error error = ptowsp_context_error(context);
        assert_int_equal(error.index, 7);
        assert_non_null(
            strstr(error.text, " has not come back from task 7 of kernel spin in 500000000 ns"));
        assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_STUCK);
        uint32_t count = __atomic_load_n(&w.count, __ATOMIC_ACQUIRE);
        __atomic_store_n(&w.flag, 1, __ATOMIC_RELEASE);
        assert_ok(device_close_late(device));
        assert_int_equal(w.count, count + 1);
        assert_ok(ptowsp_run_execute(run, NULL));
        fixture_free(&f);
    }
}

// Two cores are stuck, in tasks 3 and 4, which are in places 3 and 0 of a window of four.
static ptowsp_cycles wait_at_two(const ptowsp_task *task, void *user) {
    waiter *w = (waiter *)user;
    bool waits = task->index == w->at || task->index == w->at + 1;
    while (waits && !__atomic_load_n(&w->flag, __ATOMIC_ACQUIRE)) {
    }
    return 5;
}

DEVICE_TEST(device_run__of_stuck_tasks_the_first_in_program_order_is_reported) {
    ptowsp_context *context = plain_context();
    ptowsp_device *device =
        device_with(context, (ptowsp_device_desc){.vector_count = 2, .time_limit_ns = 500000000});
    waiter w = {0, 0, 3};
    const ptowsp_parse_kernel kernel = {.name = "spin", .fn = wait_at_two, .user = &w};
    const ptowsp_schedule schedule = {.lane_count = 2, .window = 4};
    fixture f = program_of(context,
                           "module m\naxis n 100\nkernel spin(axes 1) vector\nworkload main\n"
                           "  parallel i in n\n    task spin(i)\n",
                           &kernel, 1, &schedule);
    ptowsp_run *run = f.run;
    assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_STUCK);
    ptowsp_error error = ptowsp_context_error(context);
    assert_int_equal(error.index, 3);
    assert_non_null(strstr(error.text, " has not come back from task 3 of kernel spin in "));
    __atomic_store_n(&w.flag, 1, __ATOMIC_RELEASE);
    assert_ok(device_close_late(device));
    fixture_free(&f);
}

// -- memory of the host ---------------------------------------------------------------------------

static void refuse_each(bool starts) {
    EACH_REFUSED(n, 5) {
        test_memory memory;
        ptowsp_context *context = test_counted(&memory);
        ptowsp_device *device = device_of(context, 1, 2, 1);
        mixer m = {0};
        mixer_build(&m, context, true, NULL);
        uint64_t *inside = (uint64_t *)piece_of(device, "x", ROWS * COLS * sizeof(uint64_t));
        memset(inside, 0, ROWS * COLS * sizeof(uint64_t));
        ptowsp_run *run = mixer_run(&m, inside);
        test_refuse(&memory, n);
        ptowsp_status status =
            starts ? ptowsp_device_start(device, run, NULL) : ptowsp_device_run(device, run, NULL);
        status = starts && status == PTOWSP_OK ? ptowsp_run_wait(run) : status;
        has_more = test_was_refused(&memory, status);
        assert_ok(ptowsp_device_run(device, run, NULL));
        size_t allocations = memory.allocations;
        assert_ok(ptowsp_device_run(device, run, NULL));
        assert_ok(ptowsp_device_run(device, run, NULL));
        assert_in_range(memory.allocations, allocations, allocations + 8);
        ptowsp_run_destroy(run);
        mixer_free(&m);
        assert_ok(ptowsp_device_free(device, inside));
        assert_ok(ptowsp_device_close(device));
        ptowsp_context_destroy(context);
        assert_int_equal(memory.live_bytes, 0);
    }
}

DEVICE_TEST(device_run__every_allocation_may_be_refused) {
    refuse_each(false);
    refuse_each(true);
}
