// A program for tests of executing: random dependencies, slots that are loaded from what tasks write,
// and a pipeline. Its outputs, times and records are the same wherever it runs.

#ifndef MIXER_H
#define MIXER_H

#include "device_fixture.h"

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

static inline uint64_t mix(uint64_t x) {
    return test_splitmix(&x);
}

static inline ptowsp_cycles mix_rows(const ptowsp_task *task, mixer *m) {
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

static inline ptowsp_cycles mix_vector(const ptowsp_task *task, void *user) {
    return mix_rows(task, (mixer *)user);
}

static inline ptowsp_cycles mix_cube(const ptowsp_task *task, void *user) {
    return mix_rows(task, (mixer *)user);
}

static inline ptowsp_cycles add_one(const ptowsp_task *task, void *user) {
    uint64_t *to = (uint64_t *)task->tiles[0].data;
    (void)user;
    to[0] += 1;
    return 10;
}

static inline ptowsp_kernel kernel_of(mixer *m, const char *name, ptowsp_kernel_fn fn,
                                      ptowsp_unit unit) {
    ptowsp_kernel_desc desc = {
        .name = name,
        .axis_count = 1,
        .fn = fn,
        .unit = unit,
        .user = m,
        .tiles[0] = (ptowsp_tile_param){"from", PTOWSP_IN, PTOWSP_I64, 1, COLS},
        .tiles[1] = (ptowsp_tile_param){"to", PTOWSP_INOUT, PTOWSP_I64, 1, COLS},
        .scalars[0] = (ptowsp_scalar_param){"salt", PTOWSP_TYPE_I64}};
    return ptowsp_kernel_make(m->module, &desc);
}

static inline ptowsp_view row_of(ptowsp_tensor x, ptowsp_expr row) {
    return (ptowsp_view){.tensor = x, .row = row, .rows = 1, .cols = COLS};
}

static inline void mixer_build(mixer *m, ptowsp_context *context, bool has_cubes,
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
                ptowsp_task_desc task = {.kernel = vector, .axes[0] = at};
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
            ptowsp_slot_load_make(mod, 1, &first, ptowsp_i64(mod, 0), ptowsp_i64(mod, 0));
            PTOWSP_WHEN(mod, ptowsp_lt(ptowsp_slot(mod, 1, PTOWSP_TYPE_I64), ptowsp_i64(mod, 0))) {
                ptowsp_task_desc task = {
                    .kernel = add, .axes[0] = step, .views[0] = row_of(x, step)};
                ptowsp_task_make(mod, &task);
            }
        }
        PTOWSP_PIPELINE(mod, "pipe") {
            ptowsp_channel channel = ptowsp_channel_make(mod, &rows);
            PTOWSP_PROCESS(mod, "make") {
                ptowsp_produces(mod, channel);
                PTOWSP_FOR_EACH(mod, i, ptowsp_axis_dense(mod, "rows", ROWS)) {
                    ptowsp_task_desc task = {.kernel = add, .axes[0] = i, .views[0] = row_of(x, i)};
                    ptowsp_send_task_make(mod, channel, &task);
                }
            }
            PTOWSP_PROCESS(mod, "use") {
                ptowsp_consumes(mod, channel);
                PTOWSP_CONSUME(mod, row, channel) {
                    ptowsp_task_desc task = {
                        .kernel = add, .axes[0] = row, .views[0] = row_of(x, row)};
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

static inline void mixer_free(mixer *m) {
    ptowsp_program_destroy(m->program);
    ptowsp_module_destroy(m->module);
}

static inline ptowsp_run *mixer_run(const mixer *m, void *data) {
    ptowsp_run *run = test_run_of(m->context, m->program);
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

static inline void mixer_random(mixer *m, uint64_t *random) {
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

static inline ptowsp_schedule random_schedule(uint64_t *random) {
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
static inline void same_results(const ptowsp_run *a, const ptowsp_run *b) {
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

#endif
