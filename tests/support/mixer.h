// A program for tests of executing: random dependencies, slots that are loaded from what tasks write,
// and a pipeline. Its outputs, times and records are the same wherever it runs.

#ifndef MIXER_H
#define MIXER_H

#include "device_fixture.h"
#include "fixture.h"

// Program and run of a text, with kernels that are functions.
static inline fixture program_of(ptowsp_context *context, const char *text,
                                 const ptowsp_parse_kernel *kernels, uint32_t count,
                                 const ptowsp_schedule *schedule) {
    fixture f = {.context = context};
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = count};
    const ptowsp_program_desc desc = {NULL, schedule};
    program_make(&f, text, &attached, &desc);
    return f;
}

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

#define MIXER_KERNEL(name, unit)                                                                   \
    "kernel " name "(axes 1, in from i64 1 x 4, inout to i64 1 x 4, salt i64) " unit "\n"

static inline void mixer_build(mixer *m, ptowsp_context *context, bool has_cubes,
                               const ptowsp_schedule *schedule) {
    static const char text[] =
        "module m slots 2\naxis steps 12\naxis tasks 16\naxis rows 24\n"
        "tensor x i64 [24, 4] global\narray left i64\narray right i64\narray unit i64\n"
        "kernel add_one(axes 1, inout to i64 1 x 4) vector, 10 cycles\n%s"
        "workload part(at i64, salt i64)\n  when unit[at] == 0\n"
        "    task mix(at) from = x at (left[at], 0) to = x at (right[at], 0) salt = salt\n"
        "  otherwise\n"
        "    task %s(at) from = x at (left[at], 0) to = x at (right[at], 0) salt = salt\n"
        "workload main\n  for_each step in steps\n    parallel i in tasks\n"
        "      call part(step * 16 + i, i)\n    slot_load 1 = x at (3, 0) of 1 x 4\n"
        "    when slot_i64[1] < 0\n      task add_one(step) to = x at (step, 0)\n"
        "  pipeline pipe\n    channel done depth 2 latency 5\n"
        "    process make produces done\n      for_each i in rows\n"
        "        task add_one(i) to = x at (i, 0)\n        send done(i)\n"
        "    process use consumes done\n      consume row from done\n"
        "        task add_one(row) to = x at (row, 0)\n";
    const ptowsp_parse_kernel kernels[3] = {{.name = "add_one", .fn = add_one},
                                            {.name = "mix", .fn = mix_vector, .user = m},
                                            {.name = "mix_cube", .fn = mix_cube, .user = m}};
    char all[2048];
    snprintf(all, sizeof all, text,
             has_cubes ? MIXER_KERNEL("mix", "vector") MIXER_KERNEL("mix_cube", "cube")
                       : MIXER_KERNEL("mix", "vector"),
             has_cubes ? "mix_cube" : "mix");
    const fixture f = program_of(context, all, kernels, 3, schedule);
    ptowsp_run_destroy(f.run);
    m->context = context;
    m->module = f.module;
    m->program = f.program;
}

static inline void mixer_free(mixer *m) {
    ptowsp_program_destroy(m->program);
    ptowsp_module_destroy(m->module);
}

static inline ptowsp_run *mixer_run(const mixer *m, void *data) {
    ptowsp_run *run = test_run_of(m->context, m->program);
    ptowsp_buffer buffer = {.data = data, .size = ROWS * COLS * sizeof(int64_t)};
    assert_ok(ptowsp_run_bind_tensor(run, "x", &buffer));
    const struct {
        const char *name;
        const int64_t *data;
    } arrays[] = {{"left", m->left}, {"right", m->right}, {"unit", m->unit}};
    for (int i = 0; i < 3; i++) {
        assert_ok(
            ptowsp_run_bind_array(run, arrays[i].name, PTOWSP_I64, arrays[i].data, STEPS * TASKS));
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
