// Programs on devices: the same outputs, times, errors and records as on one lane, for random data,
// schedules and devices; and what is refused.

#include "device_fixture.h"

// -- a program with random dependencies -----------------------------------------------------------

// Steps of TASKS tasks; each mixes row `left` into row `right` of x, by a kernel of one unit or the
// other. After a step a slot is loaded from x, and decides about one more task. In the end rows go
// through a pipeline of two processes.
enum { ROWS = 24, COLS = 4, TASKS = 16, STEPS = 12 };

typedef struct mixer {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_program *program;
    int64_t left[STEPS * TASKS], right[STEPS * TASKS];
    int64_t unit[STEPS * TASKS], fails[STEPS * TASKS];  // by task
    uint32_t delay_max;
    uint32_t core_max;  // atomic
} mixer;

static uint64_t mix(uint64_t x) {
    return test_random(&x);
}

static ptowsp_cycles mix_rows(const ptowsp_task *task, mixer *m) {
    const uint64_t *from = (const uint64_t *)task->tiles[0].data;
    uint64_t *to = (uint64_t *)task->tiles[1].data;
    device_spend(m->delay_max ? (uint32_t)(mix(task->index) % m->delay_max) : 0);
    for (int64_t i = 0; i < ptowsp_task_cols(task, 0); i++) {
        to[i] = mix(to[i] + from[i] + ptowsp_task_scalar(task, 0) + (uint64_t)i);
    }
    if (task->lane > __atomic_load_n(&m->core_max, __ATOMIC_RELAXED)) {
        __atomic_store_n(&m->core_max, task->lane, __ATOMIC_RELAXED);
    }
    int64_t at = ptowsp_task_axis(task, 0);
    return m->fails[at] ? ptowsp_task_fail((ptowsp_status)-m->fails[at]) : 1 + to[0] % 100;
}

static ptowsp_cycles mix_vector(const ptowsp_task *task, void *user) {
    return mix_rows(task, (mixer *)user);
}

static ptowsp_cycles mix_cube(const ptowsp_task *task, void *user) {
    return mix_rows(task, (mixer *)user);
}

static ptowsp_cycles add_one(const ptowsp_task *task, void *user) {
    uint64_t *to = (uint64_t *)task->tiles[0].data;
    (void)user;
    to[0] += 1;
    return 10;
}

static ptowsp_kernel kernel_of(mixer *m, const char *name, ptowsp_kernel_fn fn, ptowsp_unit unit) {
    ptowsp_kernel_desc desc = {.name = name, .axis_count = 1, .fn = fn, .unit = unit, .user = m};
    desc.tiles[0] = (ptowsp_tile_param){"from", PTOWSP_IN, PTOWSP_I64, 1, COLS};
    desc.tiles[1] = (ptowsp_tile_param){"to", PTOWSP_INOUT, PTOWSP_I64, 1, COLS};
    desc.scalars[0] = (ptowsp_scalar_param){"salt", PTOWSP_TYPE_I64};
    return ptowsp_kernel_make(m->module, &desc);
}

static ptowsp_view row_of(ptowsp_tensor x, ptowsp_expr row) {
    return (ptowsp_view){.tensor = x, .row = row, .rows = 1, .cols = COLS};
}

static void mixer_build(mixer *m, ptowsp_context *context, bool has_cubes,
                        const ptowsp_schedule *schedule) {
    m->context = context;
    assert_int_equal(ptowsp_module_create(context, NULL, &m->module), PTOWSP_OK);
    ptowsp_module *mod = m->module;
    ptowsp_tensor_desc tensor = {"x", PTOWSP_I64, 2, {ROWS, COLS}, PTOWSP_LOCATION_GLOBAL};
    ptowsp_tensor x = ptowsp_tensor_make(mod, &tensor);
    ptowsp_kernel vector = kernel_of(m, "mix", mix_vector, PTOWSP_UNIT_VECTOR);
    ptowsp_kernel cube = has_cubes ? kernel_of(m, "mix_cube", mix_cube, PTOWSP_UNIT_CUBE) : vector;
    ptowsp_kernel_desc one = {.name = "add_one", .axis_count = 1, .fn = add_one, .cycles = 10};
    one.tiles[0] = (ptowsp_tile_param){"to", PTOWSP_INOUT, PTOWSP_I64, 1, COLS};
    ptowsp_kernel add = ptowsp_kernel_make(mod, &one);
    ptowsp_channel_desc rows = {.name = "rows", .depth = 2, .latency = 5};
    PTOWSP_WORKLOAD(mod, "main") {
        PTOWSP_FOR_EACH(mod, step, ptowsp_axis_dense(mod, "steps", STEPS)) {
            PTOWSP_PARALLEL(mod, i, ptowsp_axis_dense(mod, "tasks", TASKS)) {
                ptowsp_expr at = ptowsp_add(ptowsp_mul(step, ptowsp_i64(mod, TASKS)), i);
                ptowsp_task_desc task = {.kernel = vector};
                task.axes[0] = at;
                task.views[0] = row_of(x, ptowsp_array_at(mod, "left", PTOWSP_I64, at));
                task.views[1] = row_of(x, ptowsp_array_at(mod, "right", PTOWSP_I64, at));
                task.scalars[0] = i;
                PTOWSP_WHEN(mod, ptowsp_eq(ptowsp_array_at(mod, "unit", PTOWSP_I64, at),
                                           ptowsp_i64(mod, 0))) {
                    ptowsp_task_make(mod, &task);
                }
                PTOWSP_OTHERWISE(mod) {
                    task.kernel = cube;
                    ptowsp_task_make(mod, &task);
                }
            }
            ptowsp_view first = row_of(x, ptowsp_i64(mod, 3));
            ptowsp_slot_load(mod, 1, &first, ptowsp_i64(mod, 0), ptowsp_i64(mod, 0));
            PTOWSP_WHEN(mod, ptowsp_lt(ptowsp_slot(mod, 1, PTOWSP_TYPE_I64), ptowsp_i64(mod, 0))) {
                ptowsp_task_desc task = {.kernel = add};
                task.axes[0] = step;
                task.views[0] = row_of(x, step);
                ptowsp_task_make(mod, &task);
            }
        }
        PTOWSP_PIPELINE(mod, "pipe") {
            ptowsp_channel channel = ptowsp_channel_make(mod, &rows);
            PTOWSP_PROCESS(mod, "make") {
                ptowsp_produces(mod, channel);
                PTOWSP_FOR_EACH(mod, i, ptowsp_axis_dense(mod, "rows", ROWS)) {
                    ptowsp_task_desc task = {.kernel = add};
                    task.axes[0] = i;
                    task.views[0] = row_of(x, i);
                    ptowsp_send_task(mod, channel, &task);
                }
            }
            PTOWSP_PROCESS(mod, "use") {
                ptowsp_consumes(mod, channel);
                PTOWSP_CONSUME(mod, row, channel) {
                    ptowsp_task_desc task = {.kernel = add};
                    task.axes[0] = row;
                    task.views[0] = row_of(x, row);
                    ptowsp_task_make(mod, &task);
                }
            }
        }
    }
    ptowsp_program_desc desc = {NULL, schedule};
    if (ptowsp_program_create(context, mod, &desc, &m->program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(context).text);
    }
}

static void mixer_free(mixer *m) {
    ptowsp_program_destroy(m->program);
    ptowsp_module_destroy(m->module);
}

static ptowsp_run *mixer_run(const mixer *m, void *data) {
    ptowsp_run *run;
    assert_int_equal(ptowsp_run_create(m->context, m->program, &run), PTOWSP_OK);
    ptowsp_buffer buffer = {.data = data, .size = ROWS * COLS * sizeof(int64_t)};
    assert_int_equal(ptowsp_run_bind_tensor(run, "x", &buffer), PTOWSP_OK);
    const struct {
        const char *name;
        const int64_t *data;
    } arrays[] = {{"left", m->left}, {"right", m->right}, {"unit", m->unit}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            ptowsp_run_bind_array(run, arrays[i].name, PTOWSP_I64, arrays[i].data, STEPS * TASKS),
            PTOWSP_OK);
    }
    return run;
}

static void mixer_random(mixer *m, uint64_t *random) {
    int64_t reach = test_random_in(random, 1, ROWS);
    int64_t rate = test_random_in(random, 0, 2) ? 0 : test_random_in(random, 1, 100);
    for (int i = 0; i < STEPS * TASKS; i++) {
        m->left[i] = test_random_in(random, 0, reach - 1);
        m->right[i] = test_random_in(random, 0, ROWS - 1);
        m->unit[i] = test_random_in(random, 0, 1);
        bool fails = rate && test_random_in(random, 1, rate * 10) == 1;
        m->fails[i] = fails ? test_random_in(random, 1, 14) : 0;
    }
    m->delay_max = test_random_in(random, 0, 1) ? 0 : (uint32_t)test_random_in(random, 1, 3000);
}

static ptowsp_schedule random_schedule(uint64_t *random) {
    static const ptowsp_dispatch dispatches[] = {PTOWSP_DISPATCH_ROUND_ROBIN,
                                                 PTOWSP_DISPATCH_WORK_STEALING};
    ptowsp_schedule schedule = {.lane_count = (uint32_t)test_random_in(random, 1, 5)};
    schedule.dispatch = dispatches[test_random_in(random, 0, 1)];
    schedule.issue = test_random_in(random, 0, 3) ? PTOWSP_ISSUE_DATAFLOW : PTOWSP_ISSUE_IN_ORDER;
    if (schedule.issue == PTOWSP_ISSUE_IN_ORDER) {
        schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    }
    schedule.window = test_random_in(random, 0, 1) ? 0 : (uint32_t)test_random_in(random, 1, 64);
    return schedule;
}

// The same after an execution of both: outputs, results, records.
static void same_results(const ptowsp_run *a, const ptowsp_run *b) {
    ptowsp_run_stats left = *ptowsp_run_result(a), right = *ptowsp_run_result(b);
    left.memory_bytes = right.memory_bytes = 0;
    assert_memory_equal(&left, &right, sizeof left);
    assert_memory_equal(ptowsp_run_lanes(a), ptowsp_run_lanes(b),
                        left.lane_count * sizeof(ptowsp_lane_stats));
    const ptowsp_task_record *records = ptowsp_run_records(a), *others = ptowsp_run_records(b);
    assert_int_equal(records != NULL, others != NULL);
    for (uint64_t i = 0; records && i < left.task_count; i++) {
        assert_true(records[i].start == others[i].start && records[i].end == others[i].end &&
                    records[i].lane == others[i].lane && records[i].kernel == others[i].kernel &&
                    records[i].cause == others[i].cause);
    }
    assert_true(ptowsp_run_slot(a, 1) == ptowsp_run_slot(b, 1));
}

static void device_run__agrees_with_one_lane_for_random_programs_and_devices(void **state) {
    (void)state;
    uint64_t random = test_seed();
    uint64_t fail_count = 0;
    for (int round = 0; TEST_ROUNDS(round, 40); round++) {
        ptowsp_context *context = plain_context();
        uint32_t schedulers = (uint32_t)test_random_in(&random, 1, 4);
        uint32_t vectors = (uint32_t)test_random_in(&random, 1, 5);
        uint32_t cubes = (uint32_t)test_random_in(&random, 0, 3);
        ptowsp_device *device = device_of(context, schedulers, vectors, cubes);
        ptowsp_schedule schedule = random_schedule(&random);
        mixer m;
        memset(&m, 0, sizeof m);
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
            assert_int_equal(ptowsp_device_copy_in(device, inside, begin, sizeof begin), PTOWSP_OK);
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
                assert_int_equal(ptowsp_device_copy_out(device, copy, inside, sizeof copy),
                                 PTOWSP_OK);
                assert_memory_equal(copy, host, sizeof copy);
            }
        }
        ptowsp_run_destroy(one);
        ptowsp_run_destroy(many);
        mixer_free(&m);
        assert_int_equal(ptowsp_device_free(device, inside), PTOWSP_OK);
        assert_int_equal(ptowsp_device_close(device), PTOWSP_OK);
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

static void device_run__affinity_chooses_the_core(void **state) {
    (void)state;
    ptowsp_context *context = plain_context();
    for (uint32_t schedulers = 1; schedulers <= 3; schedulers++) {
        ptowsp_device *device = device_of(context, schedulers, 5, 2);
        ptowsp_module *module;
        placed p;
        assert_int_equal(ptowsp_module_create(context, NULL, &module), PTOWSP_OK);
        ptowsp_kernel_desc vector = {.name = "v", .axis_count = 1, .fn = note_place, .user = &p};
        ptowsp_kernel_desc cube = vector, mix = vector;
        cube.name = "c";
        cube.unit = PTOWSP_UNIT_CUBE;
        mix.name = "m";
        mix.unit = PTOWSP_UNIT_MIX;
        ptowsp_task_desc v = {.kernel = ptowsp_kernel_make(module, &vector)};
        ptowsp_task_desc c = {.kernel = ptowsp_kernel_make(module, &cube)};
        ptowsp_task_desc both = {.kernel = ptowsp_kernel_make(module, &mix)};
        ptowsp_expr key = {NULL, 0};
        PTOWSP_WORKLOAD(module, "main") {
            PTOWSP_PARALLEL(module, i, ptowsp_axis_dense(module, "n", 32)) {
                v.axes[0] = i;
                c.axes[0] = ptowsp_add(i, ptowsp_i64(module, 32));
                both.axes[0] = ptowsp_add(i, ptowsp_i64(module, 64));
                key = i;
                ptowsp_task_make(module, &v);
                ptowsp_task_make(module, &c);
                ptowsp_task_make(module, &both);
            }
        }
        ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_AFFINITY, .lane_count = 4};
        schedule.dispatch_key = key;
        ptowsp_program_desc desc = {NULL, &schedule};
        ptowsp_program *program;
        ptowsp_run *run;
        if (ptowsp_program_create(context, module, &desc, &program) != PTOWSP_OK) {
            fail_msg("%s", ptowsp_context_error(context).text);
        }
        assert_int_equal(ptowsp_run_create(context, program, &run), PTOWSP_OK);
        for (int round = 0; round < 3; round++) {
            memset(&p, 0, sizeof p);
            assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_OK);
            for (uint32_t i = 0; i < 96; i++) {
                assert_int_equal(p.core[i], i < 32 ? i % 5 + 1 : i % 2 + 6);
            }
        }
        ptowsp_run_destroy(run);
        ptowsp_program_destroy(program);
        ptowsp_module_destroy(module);
        assert_int_equal(ptowsp_device_close(device), PTOWSP_OK);
    }
    ptowsp_context_destroy(context);
}

// -- what is refused ------------------------------------------------------------------------------

static void device_run__what_is_refused_before_any_kernel(void **state) {
    (void)state;
    ptowsp_context *context = plain_context(), *other = plain_context();
    ptowsp_device *device = device_of(context, 1, 1, 0), *foreign = device_of(other, 1, 1, 0);
    mixer m;
    memset(&m, 0, sizeof m);
    mixer_build(&m, context, true, NULL);
    uint64_t host[ROWS * COLS];
    char *small = (char *)piece_of(device, "small", sizeof host);
    ptowsp_run *run = mixer_run(&m, host);
    assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "device: kernel mix_cube needs a cube core, and there is none");
    ptowsp_run_options time_only = {.mode = PTOWSP_RUN_TIME_ONLY};
    assert_int_equal(ptowsp_device_run(device, run, &time_only), PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "device: a run that only measures time does not run on it");
    assert_int_equal(ptowsp_device_run(device, NULL, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "device: run is NULL");
    assert_int_equal(ptowsp_device_run(foreign, run, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(other, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "device: the run is of another context");
    ptowsp_run_destroy(run);
    mixer_free(&m);
    mixer_build(&m, context, false, NULL);
    run = mixer_run(&m, host);
    assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "device: tensor x of 768 bytes is at no memory of the device");
    ptowsp_buffer buffer = {.data = small + 8};
    assert_int_equal(ptowsp_run_bind_tensor(run, "x", &buffer), PTOWSP_OK);
    assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(
        context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
        "device: tensor x of 768 bytes at 8 of 'small' (768 bytes) goes 8 beyond its end");
    ptowsp_run_options bad = {.mode = (ptowsp_run_mode)7, .lane_count = 99};
    buffer.data = small;
    assert_int_equal(ptowsp_run_bind_tensor(run, "x", &buffer), PTOWSP_OK);
    assert_int_equal(ptowsp_device_run(device, run, &bad), PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "run: there is no mode 7");
    bad.mode = PTOWSP_RUN_EXECUTE;
    memset(small, 0, sizeof host);
    assert_int_equal(ptowsp_device_run(device, run, &bad), PTOWSP_OK);  // lanes are not used
    m.left[3] = ROWS;
    assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_context_error(context).index, ROWS);
    assert_int_equal(ptowsp_run_result(run)->task_count, 0);
    ptowsp_run_destroy(run);
    mixer_free(&m);
    assert_int_equal(ptowsp_device_free(device, small), PTOWSP_OK);
    assert_int_equal(ptowsp_device_close(device), PTOWSP_OK);
    assert_int_equal(ptowsp_device_close(foreign), PTOWSP_OK);
    ptowsp_context_destroy(context);
    ptowsp_context_destroy(other);
}

static ptowsp_cycles set_first(const ptowsp_task *task, void *user) {
    (void)user;
    *(int64_t *)task->tiles[0].data = 7;
    return 1;
}

// x is used, y is only declared.
static void device_run__only_tensors_with_data_that_are_used_have_to_be_in_its_memory(
    void **state) {
    (void)state;
    ptowsp_context *context = plain_context();
    ptowsp_device *device = device_of(context, 1, 1, 0);
    ptowsp_module *module;
    assert_int_equal(ptowsp_module_create(context, NULL, &module), PTOWSP_OK);
    ptowsp_tensor_desc tensor = {"x", PTOWSP_I64, 2, {1, COLS}, PTOWSP_LOCATION_GLOBAL};
    ptowsp_tensor x = ptowsp_tensor_make(module, &tensor);
    tensor.name = "y";
    ptowsp_tensor_make(module, &tensor);
    ptowsp_kernel_desc kernel = {.name = "set", .fn = set_first};
    kernel.tiles[0] = (ptowsp_tile_param){"to", PTOWSP_OUT, PTOWSP_I64, 1, COLS};
    PTOWSP_WORKLOAD(module, "main") {
        ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(module, &kernel)};
        task.views[0] = row_of(x, ptowsp_i64(module, 0));
        ptowsp_task_make(module, &task);
    }
    ptowsp_program *program;
    ptowsp_run *run;
    assert_int_equal(ptowsp_program_create(context, module, NULL, &program), PTOWSP_OK);
    assert_int_equal(ptowsp_run_create(context, program, &run), PTOWSP_OK);
    int64_t host[COLS] = {0};
    ptowsp_buffer buffer = {.data = host};
    assert_int_equal(ptowsp_run_bind_tensor(run, "y", &buffer), PTOWSP_OK);
    // What is missing is told as on lanes.
    for (int round = 0; round < 2; round++) {
        ptowsp_status status =
            round ? ptowsp_device_run(device, run, NULL) : ptowsp_run_execute(run, NULL);
        assert_int_equal(status, PTOWSP_UNBOUND);
        test_error_is(context, PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "run: tensor x is not bound");
    }
    buffer.data = NULL;
    assert_int_equal(ptowsp_run_bind_tensor(run, "x", &buffer), PTOWSP_OK);
    for (int round = 0; round < 2; round++) {
        ptowsp_status status =
            round ? ptowsp_device_run(device, run, NULL) : ptowsp_run_execute(run, NULL);
        assert_int_equal(status, PTOWSP_UNBOUND);
        test_error_is(context, PTOWSP_UNBOUND, PTOWSP_NO_INDEX,
                      "run: tensor x is bound without data");
    }
    buffer.data = piece_of(device, "x", sizeof host);
    assert_int_equal(ptowsp_run_bind_tensor(run, "x", &buffer), PTOWSP_OK);
    assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_OK);
    assert_int_equal(ptowsp_device_copy_out(device, host, buffer.data, sizeof host), PTOWSP_OK);
    assert_int_equal(host[0], 7);
    assert_int_equal(ptowsp_device_free(device, buffer.data), PTOWSP_OK);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(module);
    assert_int_equal(ptowsp_device_close(device), PTOWSP_OK);
    ptowsp_context_destroy(context);
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

static void device_run__a_stuck_core_ends_the_run(void **state) {
    (void)state;
    for (uint32_t cores = 1; cores <= 4; cores += 3) {
        ptowsp_context *context = plain_context();
        ptowsp_device_desc desc = {.scheduler_count = 2, .vector_count = cores};
        desc.time_limit_ns = 500000000;
        ptowsp_device *device;
        assert_int_equal(ptowsp_device_open(context, &desc, &device), PTOWSP_OK);
        waiter w = {0, 0, 7};
        ptowsp_module *module;
        assert_int_equal(ptowsp_module_create(context, NULL, &module), PTOWSP_OK);
        ptowsp_kernel_desc kernel = {.name = "spin", .axis_count = 1, .fn = wait_at, .user = &w};
        ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(module, &kernel)};
        PTOWSP_WORKLOAD(module, "main") {
            PTOWSP_PARALLEL(module, i, ptowsp_axis_dense(module, "n", 20000)) {
                task.axes[0] = i;
                ptowsp_task_make(module, &task);
            }
        }
        ptowsp_program *program;
        ptowsp_run *run;
        assert_int_equal(ptowsp_program_create(context, module, NULL, &program), PTOWSP_OK);
        assert_int_equal(ptowsp_run_create(context, program, &run), PTOWSP_OK);
        assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_STUCK);
        ptowsp_error error = ptowsp_context_error(context);
        assert_int_equal(error.index, 7);
        assert_non_null(
            strstr(error.text, " has not come back from task 7 of kernel spin in 500000000 ns"));
        assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_STUCK);
        uint32_t count = __atomic_load_n(&w.count, __ATOMIC_ACQUIRE);
        __atomic_store_n(&w.flag, 1, __ATOMIC_RELEASE);
        assert_int_equal(ptowsp_device_close(device), PTOWSP_OK);
        assert_int_equal(w.count, count + 1);
        assert_int_equal(ptowsp_run_execute(run, NULL), PTOWSP_OK);
        ptowsp_run_destroy(run);
        ptowsp_program_destroy(program);
        ptowsp_module_destroy(module);
        ptowsp_context_destroy(context);
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

static void device_run__of_stuck_tasks_the_first_in_program_order_is_reported(void **state) {
    (void)state;
    ptowsp_context *context = plain_context();
    ptowsp_device_desc desc = {.vector_count = 2, .time_limit_ns = 500000000};
    ptowsp_device *device;
    assert_int_equal(ptowsp_device_open(context, &desc, &device), PTOWSP_OK);
    waiter w = {0, 0, 3};
    ptowsp_module *module;
    assert_int_equal(ptowsp_module_create(context, NULL, &module), PTOWSP_OK);
    ptowsp_kernel_desc kernel = {.name = "spin", .axis_count = 1, .fn = wait_at_two, .user = &w};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(module, &kernel)};
    PTOWSP_WORKLOAD(module, "main") {
        PTOWSP_PARALLEL(module, i, ptowsp_axis_dense(module, "n", 100)) {
            task.axes[0] = i;
            ptowsp_task_make(module, &task);
        }
    }
    ptowsp_schedule schedule = {.lane_count = 2, .window = 4};
    ptowsp_program_desc program_desc = {NULL, &schedule};
    ptowsp_program *program;
    ptowsp_run *run;
    assert_int_equal(ptowsp_program_create(context, module, &program_desc, &program), PTOWSP_OK);
    assert_int_equal(ptowsp_run_create(context, program, &run), PTOWSP_OK);
    assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_STUCK);
    ptowsp_error error = ptowsp_context_error(context);
    assert_int_equal(error.index, 3);
    assert_non_null(strstr(error.text, " has not come back from task 3 of kernel spin in "));
    __atomic_store_n(&w.flag, 1, __ATOMIC_RELEASE);
    assert_int_equal(ptowsp_device_close(device), PTOWSP_OK);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(module);
    ptowsp_context_destroy(context);
}

// -- memory of the host ---------------------------------------------------------------------------

static void device_run__every_allocation_may_be_refused(void **state) {
    (void)state;
    for (size_t refuse_at = 1;; refuse_at++) {
        test_memory memory = {0};
        ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};
        ptowsp_context *context;
        assert_int_equal(ptowsp_context_create(&desc, &context), PTOWSP_OK);
        ptowsp_device *device = device_of(context, 1, 2, 1);
        mixer m;
        memset(&m, 0, sizeof m);
        mixer_build(&m, context, true, NULL);
        uint64_t *inside = (uint64_t *)piece_of(device, "x", ROWS * COLS * sizeof(uint64_t));
        memset(inside, 0, ROWS * COLS * sizeof(uint64_t));
        ptowsp_run *run = mixer_run(&m, inside);
        memory.refuse_at = memory.allocations + refuse_at;
        ptowsp_status status = ptowsp_device_run(device, run, NULL);
        bool was_refused = memory.allocations >= memory.refuse_at;
        assert_int_equal(status, was_refused ? PTOWSP_OUT_OF_MEMORY : PTOWSP_OK);
        memory.refuse_at = 0;
        assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_OK);
        size_t allocations = memory.allocations;
        assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_OK);
        assert_int_equal(ptowsp_device_run(device, run, NULL), PTOWSP_OK);
        assert_in_range(memory.allocations, allocations, allocations + 8);
        ptowsp_run_destroy(run);
        mixer_free(&m);
        assert_int_equal(ptowsp_device_free(device, inside), PTOWSP_OK);
        assert_int_equal(ptowsp_device_close(device), PTOWSP_OK);
        ptowsp_context_destroy(context);
        assert_int_equal(memory.live_bytes, 0);
        if (!was_refused) {
            assert_true(refuse_at > 5);
            break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_run__agrees_with_one_lane_for_random_programs_and_devices),
        cmocka_unit_test(device_run__affinity_chooses_the_core),
        cmocka_unit_test(device_run__what_is_refused_before_any_kernel),
        cmocka_unit_test(device_run__only_tensors_with_data_that_are_used_have_to_be_in_its_memory),
        cmocka_unit_test(device_run__a_stuck_core_ends_the_run),
        cmocka_unit_test(device_run__of_stuck_tasks_the_first_in_program_order_is_reported),
        cmocka_unit_test(device_run__every_allocation_may_be_refused),
    };
    return _cmocka_run_group_tests("tests", tests, DEVICE_TESTS(tests), NULL, NULL);
}
