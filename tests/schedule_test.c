// Schedules, by hand: for each directive and each of its values a few tasks whose times are worked
// out on paper. A task of kernel `work` takes as many cycles as its first argument says; its second
// one is for keys. The kernels with a tile do the same on a 2 by 2 window of the tensor x.

#include "test.h"

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_kernel work, cube, mix, reads, writes, updates;
    ptowsp_tensor x;
    ptowsp_program *program;
    ptowsp_run *run;
    int32_t data[16];  // of x, 4 by 4
} fixture;

static ptowsp_cycles first_arg(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_axis(task, 0);
}

// Fills what the task writes with ones.
static ptowsp_cycles fill(const ptowsp_task *task, void *user) {
    bool *is_reader = (bool *)user;
    for (uint32_t t = 0; t < task->tile_count && !is_reader; t++) {
        int32_t *data = (int32_t *)task->tiles[t].data;
        for (int64_t r = 0; r < ptowsp_task_rows(task, t); r++) {
            for (int64_t c = 0; c < ptowsp_task_cols(task, t); c++) {
                data[r * task->tiles[t].row_stride + c * task->tiles[t].col_stride] = 1;
            }
        }
    }
    return 0;
}

static ptowsp_kernel kernel_make(ptowsp_module *m, const char *name, ptowsp_unit unit,
                                 ptowsp_direction direction) {
    static bool is_reader;
    ptowsp_kernel_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = name;
    desc.axis_count = 2;
    desc.unit = unit;
    desc.fn = fill;
    desc.cost = first_arg;
    desc.user = direction == PTOWSP_IN ? &is_reader : NULL;
    if (direction != PTOWSP_DIRECTION_NONE) {
        ptowsp_tile_param tile = {"tile", direction, PTOWSP_I32, 2, 2};
        desc.tiles[0] = tile;
    }
    return ptowsp_kernel_make(m, &desc);
}

// A module with the kernels and x, and no workload yet.
static void fixture_make(fixture *f) {
    memset(f, 0, sizeof *f);
    assert_int_equal(ptowsp_context_create(NULL, &f->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(f->context, NULL, &f->m), PTOWSP_OK);
    f->work = kernel_make(f->m, "work", PTOWSP_UNIT_VECTOR, PTOWSP_DIRECTION_NONE);
    f->cube = kernel_make(f->m, "cube", PTOWSP_UNIT_CUBE, PTOWSP_DIRECTION_NONE);
    f->mix = kernel_make(f->m, "mix", PTOWSP_UNIT_MIX, PTOWSP_DIRECTION_NONE);
    f->reads = kernel_make(f->m, "reads", PTOWSP_UNIT_VECTOR, PTOWSP_IN);
    f->writes = kernel_make(f->m, "writes", PTOWSP_UNIT_VECTOR, PTOWSP_OUT);
    f->updates = kernel_make(f->m, "updates", PTOWSP_UNIT_VECTOR, PTOWSP_INOUT);
    ptowsp_tensor_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "x";
    desc.dtype = PTOWSP_I32;
    desc.rank = 2;
    desc.shape[0] = desc.shape[1] = 4;
    f->x = ptowsp_tensor_make(f->m, &desc);
}

static void fixture_forget_run(fixture *f) {
    ptowsp_run_destroy(f->run);
    ptowsp_program_destroy(f->program);
    f->run = NULL;
    f->program = NULL;
}

static void fixture_free(fixture *f) {
    fixture_forget_run(f);
    ptowsp_module_destroy(f->m);
    ptowsp_context_destroy(f->context);
}

static ptowsp_task_desc task_desc(const fixture *f, ptowsp_kernel kernel, int64_t cycles,
                                  int64_t key) {
    ptowsp_task_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kernel = kernel;
    desc.axes[0] = ptowsp_i64(f->m, cycles);
    desc.axes[1] = ptowsp_i64(f->m, key);
    return desc;
}

static ptowsp_node work(const fixture *f, int64_t cycles, int64_t key) {
    ptowsp_task_desc desc = task_desc(f, f->work, cycles, key);
    return ptowsp_task_make(f->m, &desc);
}

static ptowsp_node cube(const fixture *f, int64_t cycles) {
    ptowsp_task_desc desc = task_desc(f, f->cube, cycles, 0);
    return ptowsp_task_make(f->m, &desc);
}

static ptowsp_node mix(const fixture *f, int64_t cycles) {
    ptowsp_task_desc desc = task_desc(f, f->mix, cycles, 0);
    return ptowsp_task_make(f->m, &desc);
}

// A task with the tile x[row .. row + 1][col .. col + 1].
static ptowsp_node touch(const fixture *f, ptowsp_kernel kernel, int64_t cycles, int64_t row,
                         int64_t col) {
    ptowsp_task_desc desc = task_desc(f, kernel, cycles, 0);
    desc.views[0].tensor = f->x;
    desc.views[0].row = ptowsp_i64(f->m, row);
    desc.views[0].col = ptowsp_i64(f->m, col);
    return ptowsp_task_make(f->m, &desc);
}

// Compiles the module with a schedule and executes it.
static ptowsp_status fixture_run(fixture *f, const ptowsp_schedule *schedule) {
    fixture_forget_run(f);
    const ptowsp_program_desc desc = {NULL, schedule};
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_EXECUTE, .record_tasks = true};
    ptowsp_buffer buffer;
    memset(&buffer, 0, sizeof buffer);
    memset(f->data, 0, sizeof f->data);
    buffer.data = f->data;
    ptowsp_status status = ptowsp_program_create(f->context, f->m, &desc, &f->program);
    if (status == PTOWSP_STUCK) {
        return status;  // known without running
    } else if (status != PTOWSP_OK) {
        print_message("%s\n", ptowsp_context_error(f->context).text);
    }
    assert_int_equal(status, PTOWSP_OK);
    assert_int_equal(ptowsp_run_create(f->context, f->program, &f->run), PTOWSP_OK);
    status = ptowsp_run_bind_tensor(f->run, "x", &buffer);
    assert_true(status == PTOWSP_OK || status == PTOWSP_INVALID_PARAMS);  // not used
    return ptowsp_run_execute(f->run, &options);
}

static void run_ok(fixture *f, const ptowsp_schedule *schedule) {
    assert_int_equal(fixture_run(f, schedule), PTOWSP_OK);
}

// A schedule with so many lanes; tasks go round.
static ptowsp_schedule lanes(uint32_t lane_count) {
    ptowsp_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
    schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    schedule.lane_count = lane_count;
    return schedule;
}

static void expect(const fixture *f, uint64_t task, uint64_t start, uint64_t end) {
    const ptowsp_task_record *record = &ptowsp_run_records(f->run)[task];
    if (record->start != start || record->end != end) {
        fail_msg("task %llu runs from %llu to %llu, not from %llu to %llu",
                 (unsigned long long)task, (unsigned long long)record->start,
                 (unsigned long long)record->end, (unsigned long long)start,
                 (unsigned long long)end);
    }
}

static void expect_lane(const fixture *f, uint64_t task, uint32_t lane) {
    assert_int_equal(ptowsp_run_records(f->run)[task].lane, lane);
}

static void expect_stall(const fixture *f, uint64_t task, ptowsp_stall stall) {
    assert_string_equal(ptowsp_stall_name(ptowsp_run_records(f->run)[task].stall),
                        ptowsp_stall_name(stall));
}

static uint64_t makespan(const fixture *f) {
    return ptowsp_run_result(f->run)->makespan_cycles;
}

// -- structure ------------------------------------------------------------------------------------

static void schedule__default_is_one_lane_and_tasks_one_by_one(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_COMBINE(f.m) {
            work(&f, 3, 0);
            work(&f, 4, 0);
        }
    }
    run_ok(&f, NULL);
    expect(&f, 0, 0, 3);
    expect(&f, 1, 3, 7);
    expect_stall(&f, 0, PTOWSP_STALL_NONE);
    expect_stall(&f, 1, PTOWSP_STALL_LANE);
    assert_int_equal(makespan(&f), 7);
    assert_int_equal(ptowsp_run_result(f.run)->busy_cycles, 7);
    assert_int_equal(ptowsp_run_result(f.run)->lane_count, 1);
    assert_int_equal(ptowsp_run_lanes(f.run)[0].task_count, 2);
    fixture_free(&f);
}

static void schedule__a_sequence_waits_for_all_of_the_statement_before(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_COMBINE(f.m) {
            work(&f, 10, 0);
            PTOWSP_SEQUENCE(f.m) {
                work(&f, 2, 0);
                work(&f, 3, 0);
            }
        }
        work(&f, 1, 0);
    }
    ptowsp_schedule schedule = lanes(4);
    run_ok(&f, &schedule);
    expect(&f, 0, 0, 10);
    expect(&f, 1, 0, 2);
    expect(&f, 2, 2, 5);
    expect(&f, 3, 10, 11);
    expect_stall(&f, 3, PTOWSP_STALL_DEPENDENCY);
    uint64_t count = 0;
    const uint64_t *path = ptowsp_run_critical_path(f.run, &count);
    assert_int_equal(count, 2);
    assert_int_equal(path[0], 0);
    assert_int_equal(path[1], 3);
    fixture_free(&f);
}

static void schedule__an_empty_scope_is_done_when_it_is_ready(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_axis none = ptowsp_axis_dense(f.m, "none", 0);
    PTOWSP_WORKLOAD(f.m, "main") {
        work(&f, 10, 0);
        PTOWSP_PARALLEL(f.m, i, none) {
            work(&f, 5, 0);
        }
        PTOWSP_COMBINE(f.m) {
        }
        PTOWSP_WHEN(f.m, ptowsp_slot(f.m, 0, PTOWSP_TYPE_BOOL)) {
            work(&f, 5, 0);
        }
        work(&f, 1, 0);
    }
    ptowsp_schedule schedule = lanes(4);
    run_ok(&f, &schedule);
    assert_int_equal(ptowsp_run_result(f.run)->task_count, 2);
    expect(&f, 1, 10, 11);
    fixture_free(&f);
}

static void schedule__when_adds_no_order(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_COMBINE(f.m) {
            work(&f, 10, 0);
            PTOWSP_WHEN(f.m, ptowsp_not(ptowsp_slot(f.m, 0, PTOWSP_TYPE_BOOL))) {
                work(&f, 2, 0);  // beside each other, as if written in the combine
                work(&f, 3, 0);
            }
        }
        PTOWSP_WHEN(f.m, ptowsp_slot(f.m, 0, PTOWSP_TYPE_BOOL)) {
            work(&f, 99, 0);
        }
        PTOWSP_OTHERWISE(f.m) {
            work(&f, 4, 0);  // one after another, as if written in the workload
            work(&f, 5, 0);
        }
    }
    ptowsp_schedule schedule = lanes(8);
    run_ok(&f, &schedule);
    expect(&f, 1, 0, 2);
    expect(&f, 2, 0, 3);
    expect(&f, 3, 10, 14);
    expect(&f, 4, 14, 19);
    fixture_free(&f);
}

static void schedule__loops_are_parallel_or_one_after_another(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_axis two = ptowsp_axis_dense(f.m, "two", 2);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PARALLEL(f.m, i, two) {
            work(&f, 1, 0);
            work(&f, 2, 0);
        }
        PTOWSP_FOR_EACH(f.m, i, two) {
            work(&f, 3, 0);
            work(&f, 4, 0);
        }
    }
    ptowsp_schedule schedule = lanes(8);
    run_ok(&f, &schedule);
    for (uint64_t i = 0; i < 4; i++) {
        expect(&f, i, 0, 1 + i % 2);
    }
    expect(&f, 4, 2, 5);
    expect(&f, 5, 5, 9);
    expect(&f, 6, 9, 12);
    expect(&f, 7, 12, 16);
    fixture_free(&f);
}

// -- issue ----------------------------------------------------------------------------------------

// Lane 1 has a task that waits; what is issued behind it, on lane 2, waits for nothing.
static void build_chain_and_one(const fixture *f) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_COMBINE(f->m) {
            PTOWSP_SEQUENCE(f->m) {
                work(f, 10, 0);
                work(f, 5, 0);
            }
            work(f, 3, 0);
        }
    }
}

static void schedule__in_order_the_clock_waits_for_the_data_of_earlier_tasks(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_chain_and_one(&f);
    ptowsp_schedule schedule = lanes(3);
    schedule.issue = PTOWSP_ISSUE_IN_ORDER;
    run_ok(&f, &schedule);
    expect(&f, 1, 10, 15);
    expect(&f, 2, 10, 13);
    expect_stall(&f, 1, PTOWSP_STALL_DEPENDENCY);
    expect_stall(&f, 2, PTOWSP_STALL_ORDER);
    assert_int_equal(ptowsp_run_records(f.run)[2].issue, 10);
    assert_int_equal(ptowsp_run_result(f.run)->stall_cycles[PTOWSP_STALL_DEPENDENCY], 10);
    fixture_free(&f);
}

static void schedule__dataflow_lets_later_tasks_go_ahead(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_chain_and_one(&f);
    ptowsp_schedule schedule = lanes(3);
    run_ok(&f, &schedule);
    expect(&f, 1, 10, 15);
    expect(&f, 2, 0, 3);
    assert_int_equal(ptowsp_run_records(f.run)[1].issue, 0);
    assert_int_equal(ptowsp_run_records(f.run)[1].ready, 10);
    fixture_free(&f);
}

// -- dispatch -------------------------------------------------------------------------------------

// Independent tasks with the cycles and keys given.
static void build_tasks(const fixture *f, const int64_t (*tasks)[2], int count) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_COMBINE(f->m) {
            for (int i = 0; i < count; i++) {
                work(f, tasks[i][0], tasks[i][1]);
            }
        }
    }
}

static void schedule__default_dispatch_has_as_many_lanes_as_streams(void **state) {
    (void)state;
    static const int64_t tasks[][2] = {{10, 0}, {4, 0}, {3, 0}, {2, 0}};
    fixture f;
    fixture_make(&f);
    build_tasks(&f, tasks, 4);
    ptowsp_schedule schedule = lanes(0);
    schedule.dispatch = PTOWSP_DISPATCH_DEFAULT;
    schedule.stream_count = 3;
    run_ok(&f, &schedule);
    assert_int_equal(ptowsp_run_result(f.run)->lane_count, 3);
    expect_lane(&f, 2, 2);
    expect(&f, 3, 10, 12);  // round, behind the first
    schedule.stream_count = 0;
    run_ok(&f, &schedule);
    assert_int_equal(ptowsp_run_result(f.run)->lane_count, 1);
    assert_int_equal(makespan(&f), 19);
    fixture_free(&f);
}

static void schedule__round_robin_goes_round(void **state) {
    (void)state;
    static const int64_t tasks[][2] = {{10, 0}, {4, 0}, {1, 0}};
    fixture f;
    fixture_make(&f);
    build_tasks(&f, tasks, 3);
    ptowsp_schedule schedule = lanes(2);
    run_ok(&f, &schedule);
    expect_lane(&f, 0, 0);
    expect_lane(&f, 1, 1);
    expect_lane(&f, 2, 0);
    expect(&f, 2, 10, 11);  // lane 1 was free at 4
    fixture_free(&f);
}

static void schedule__affinity_and_custom_take_the_key_modulo_the_lanes(void **state) {
    (void)state;
    static const int64_t tasks[][2] = {{1, 5}, {1, 2}, {1, 0}, {1, -1}};
    static const uint32_t expected[] = {2, 2, 0, 0};  // 2^64 - 1 is a multiple of 3
    fixture f;
    fixture_make(&f);
    build_tasks(&f, tasks, 4);
    ptowsp_schedule schedule = lanes(3);
    schedule.dispatch_key = ptowsp_task_arg(f.m, 1);
    for (int round = 0; round < 2; round++) {
        schedule.dispatch = round ? PTOWSP_DISPATCH_CUSTOM : PTOWSP_DISPATCH_AFFINITY;
        run_ok(&f, &schedule);
        for (uint64_t i = 0; i < 4; i++) {
            expect_lane(&f, i, expected[i]);
        }
        expect(&f, 1, 1, 2);
    }
    fixture_free(&f);
}

// "The task's variable n" may be a parameter of a workload that is called, if it is i64.
static void schedule__keys_may_be_parameters_of_workloads(void **state) {
    (void)state;
    for (int is_known = 0; is_known < 2; is_known++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "called") {
            ptowsp_workload_param(f.m, "other", PTOWSP_TYPE_I64);
            ptowsp_workload_param(f.m, is_known ? "flag" : "n", PTOWSP_TYPE_BOOL);
            ptowsp_workload_param(f.m, is_known ? "n" : "number", PTOWSP_TYPE_I64);
            work(&f, 1, 0);
        }
        PTOWSP_WORKLOAD(f.m, "main") {
            for (int64_t i = 0; i < 4; i++) {
                const ptowsp_expr args[] = {ptowsp_i64(f.m, 9), ptowsp_bool(f.m, true),
                                            ptowsp_i64(f.m, 7 - i)};
                ptowsp_call(f.m, "called", args, 3);
            }
        }
        ptowsp_schedule schedule = lanes(3);
        schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
        schedule.dispatch_key = ptowsp_task_variable(f.m, "n");
        if (is_known) {
            static const uint32_t expected[] = {1, 0, 2, 1};  // 7, 6, 5 and 4, modulo 3
            run_ok(&f, &schedule);
            for (uint64_t i = 0; i < 4; i++) {
                expect_lane(&f, i, expected[i]);
            }
        } else {
            const ptowsp_program_desc desc = {NULL, &schedule};
            assert_int_equal(ptowsp_program_create(f.context, f.m, &desc, &f.program),
                             PTOWSP_INVALID_PARAMS);
            if (!strstr(ptowsp_context_error(f.context).text,
                        "a key of the schedule reads variable n, which no loop around it has")) {
                fail_msg("%s", ptowsp_context_error(f.context).text);
            }
        }
        fixture_free(&f);
    }
}

// What keys read of a task is nothing that a task can be given.
static void schedule__keys_alone_read_tasks(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            ptowsp_task_desc desc = task_desc(&f, f.work, 1, 0);
            desc.axes[1] = i == 0   ? ptowsp_task_variable(f.m, "n")
                           : i == 1 ? ptowsp_task_arg(f.m, 0)
                                    : ptowsp_cast(ptowsp_task_tag(f.m, "t"), PTOWSP_TYPE_I64);
            ptowsp_task_make(f.m, &desc);
        }
        if (!strstr(ptowsp_module_error(f.m).text,
                    "axis argument 1: what belongs to a task has a value in "
                    "the keys of schedules only")) {
            fail_msg("%s", ptowsp_module_error(f.m).text);
        }
        fixture_free(&f);
    }
}

// A tag is compiled wherever a key reads it: here 2048 casts and 2047 sums. That five times is more than
// 20000.
static void schedule__keys_with_tags_have_a_limit(void **state) {
    (void)state;
    for (int count = 4; count <= 5; count++) {
        fixture f;
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PARALLEL(f.m, i, ptowsp_axis_dense(f.m, "n", 2)) {
                ptowsp_task_desc desc = task_desc(&f, f.work, 1, 0);
                ptowsp_expr value = ptowsp_cast(i, PTOWSP_TYPE_U64);
                for (int level = 0; level < 11; level++) {
                    value = ptowsp_add(value, value);
                }
                desc.tags[0].name = "weight";
                desc.tags[0].value = value;
                ptowsp_task_make(f.m, &desc);
            }
        }
        ptowsp_schedule schedule = lanes(3);
        schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
        schedule.dispatch_key = ptowsp_task_tag(f.m, "weight");
        for (int i = 1; i < count; i++) {
            schedule.dispatch_key =
                ptowsp_bitor(schedule.dispatch_key, ptowsp_task_tag(f.m, "weight"));
        }
        if (count == 4) {
            run_ok(&f, &schedule);
            expect_lane(&f, 0, 0);
            expect_lane(&f, 1, 2048 % 3);
        } else {
            const ptowsp_program_desc desc = {NULL, &schedule};
            assert_int_equal(ptowsp_program_create(f.context, f.m, &desc, &f.program),
                             PTOWSP_LIMIT_EXCEEDED);
            if (!strstr(ptowsp_context_error(f.context).text,
                        "a key with the tags that it reads has more than 20000 operations")) {
                fail_msg("%s", ptowsp_context_error(f.context).text);
            }
        }
        fixture_free(&f);
    }
}

static void schedule__hash_mixes_the_key(void **state) {
    (void)state;
    // The finalizer of SplitMix64 gives 0, 0x5692161d100b05e5, 0xdbd238973a2b148a,
    // 0x1e535eede31428f0 and 0xb7a4712c74562914 for 0 to 4.
    static const int64_t tasks[][2] = {{1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 4}};
    static const uint32_t expected[] = {0, 1, 1, 2, 2};
    fixture f;
    fixture_make(&f);
    build_tasks(&f, tasks, 5);
    ptowsp_schedule schedule = lanes(3);
    schedule.dispatch = PTOWSP_DISPATCH_HASH;
    schedule.dispatch_key = ptowsp_task_arg(f.m, 1);
    run_ok(&f, &schedule);
    for (uint64_t i = 0; i < 5; i++) {
        expect_lane(&f, i, expected[i]);
    }
    fixture_free(&f);
}

static void schedule__work_stealing_takes_the_lane_that_is_free_first(void **state) {
    (void)state;
    static const int64_t tasks[][2] = {{10, 0}, {2, 0}, {3, 0}, {4, 0}};
    fixture f;
    fixture_make(&f);
    build_tasks(&f, tasks, 4);
    ptowsp_schedule schedule = lanes(2);
    schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
    for (int round = 0; round < 2; round++) {
        schedule.issue = round ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        run_ok(&f, &schedule);
        expect_lane(&f, 0, 0);
        expect(&f, 1, 0, 2);
        expect(&f, 2, 2, 5);
        expect(&f, 3, 5, 9);
        expect_lane(&f, 3, 1);
    }
    fixture_free(&f);
}

static void schedule__work_stealing_does_not_wait_behind_what_is_not_ready(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_chain_and_one(&f);
    ptowsp_schedule schedule = lanes(1);
    schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
    run_ok(&f, &schedule);
    // At 10 both others are ready; the one issued first goes first.
    expect(&f, 1, 10, 15);
    expect(&f, 2, 15, 18);
    schedule.lane_count = 2;
    run_ok(&f, &schedule);
    expect(&f, 2, 0, 3);
    expect(&f, 1, 10, 15);
    expect_lane(&f, 1, 0);  // both lanes are free at 10
    fixture_free(&f);
}

// -- window ---------------------------------------------------------------------------------------

static const int64_t three_tasks[][2] = {{10, 0}, {4, 0}, {3, 0}};

static void schedule__a_window_of_two_stalls_the_third_task_until_one_ends(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_tasks(&f, three_tasks, 3);
    ptowsp_schedule schedule = lanes(3);
    schedule.window = 2;
    for (int round = 0; round < 2; round++) {
        schedule.window_policy = round ? PTOWSP_WINDOW_STALL : PTOWSP_WINDOW_DEFAULT;
        run_ok(&f, &schedule);
        expect(&f, 2, 4, 7);
        expect_stall(&f, 2, PTOWSP_STALL_WINDOW);
        assert_int_equal(ptowsp_run_result(f.run)->stall_cycles[PTOWSP_STALL_WINDOW], 4);
        assert_int_equal(ptowsp_run_result(f.run)->in_flight_max, 2);
    }
    fixture_free(&f);
}

static void schedule__a_full_window_aborts(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_tasks(&f, three_tasks, 3);
    ptowsp_schedule schedule = lanes(3);
    schedule.window_policy = PTOWSP_WINDOW_ABORT;
    schedule.window = 2;
    assert_int_equal(fixture_run(&f, &schedule), PTOWSP_LIMIT_EXCEEDED);
    schedule.window = 3;
    run_ok(&f, &schedule);
    expect(&f, 2, 0, 3);
    fixture_free(&f);
}

static void schedule__benchmark_counts_who_found_the_window_full(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_tasks(&f, three_tasks, 3);
    ptowsp_schedule schedule = lanes(3);
    schedule.window_policy = PTOWSP_WINDOW_BENCHMARK;
    schedule.window = 1;
    run_ok(&f, &schedule);
    expect(&f, 2, 0, 3);
    assert_int_equal(ptowsp_run_result(f.run)->window_overflow_count, 2);
    assert_int_equal(ptowsp_run_result(f.run)->in_flight_max, 3);
    fixture_free(&f);
}

// -- dependencies ---------------------------------------------------------------------------------

// A writer of 10 cycles; a reader of the same tile, one of a tile beside it that shares a column,
// and one that shares nothing.
static void build_writer_and_readers(const fixture *f) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_COMBINE(f->m) {
            touch(f, f->writes, 10, 0, 0);
            touch(f, f->reads, 1, 0, 0);
            touch(f, f->reads, 1, 0, 1);
            touch(f, f->reads, 1, 0, 2);
        }
    }
}

static void schedule__structure_does_not_look_at_data(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_writer_and_readers(&f);
    ptowsp_schedule schedule = lanes(4);
    schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
    run_ok(&f, &schedule);
    for (uint64_t i = 1; i < 4; i++) {
        expect(&f, i, 0, 1);
    }
    fixture_free(&f);
}

static void schedule__exact_waits_for_the_very_same_tile(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_writer_and_readers(&f);
    ptowsp_schedule schedule = lanes(4);
    schedule.dependencies = PTOWSP_DEPENDENCIES_EXACT;
    run_ok(&f, &schedule);
    expect(&f, 1, 10, 11);
    expect(&f, 2, 0, 1);
    expect(&f, 3, 0, 1);
    fixture_free(&f);
}

static void schedule__overlap_waits_for_a_common_element(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_writer_and_readers(&f);
    ptowsp_schedule schedule = lanes(4);
    for (int round = 0; round < 2; round++) {
        schedule.dependencies = round ? PTOWSP_DEPENDENCIES_HYBRID : PTOWSP_DEPENDENCIES_OVERLAP;
        run_ok(&f, &schedule);
        expect(&f, 1, 10, 11);
        expect(&f, 2, 10, 11);
        expect(&f, 3, 0, 1);
    }
    fixture_free(&f);
}

static void schedule__without_structure_a_sequence_is_no_order(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        work(&f, 10, 0);
        work(&f, 5, 0);
    }
    ptowsp_schedule schedule = lanes(2);
    schedule.dependencies = PTOWSP_DEPENDENCIES_OVERLAP;
    run_ok(&f, &schedule);
    expect(&f, 1, 0, 5);
    schedule.dependencies = PTOWSP_DEPENDENCIES_HYBRID;
    run_ok(&f, &schedule);
    expect(&f, 1, 10, 15);
    fixture_free(&f);
}

static void schedule__explicit_waits_for_the_tasks_that_are_named(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_axis three = ptowsp_axis_dense(f.m, "three", 3);
    PTOWSP_WORKLOAD(f.m, "main") {
        ptowsp_node first = {0};
        PTOWSP_PARALLEL(f.m, i, three) {
            ptowsp_task_desc desc = task_desc(&f, f.work, 0, 0);
            desc.axes[0] = ptowsp_mul(ptowsp_add(i, ptowsp_i64(f.m, 1)), ptowsp_i64(f.m, 10));
            first = ptowsp_task_make(f.m, &desc);
            desc = task_desc(&f, f.work, 1, 0);
            desc.after[0] = first;  // that of this iteration
            ptowsp_task_make(f.m, &desc);
        }
        ptowsp_task_desc desc = task_desc(&f, f.work, 1, 0);
        desc.after[0] = first;  // all of them
        ptowsp_task_make(f.m, &desc);
        work(&f, 1, 0);  // none
    }
    ptowsp_schedule schedule = lanes(8);
    schedule.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT;
    run_ok(&f, &schedule);
    expect(&f, 1, 10, 11);
    expect(&f, 3, 20, 21);
    expect(&f, 5, 30, 31);
    expect(&f, 6, 30, 31);
    expect(&f, 7, 0, 1);
    fixture_free(&f);
}

// -- hazards --------------------------------------------------------------------------------------

static void schedule__hazards_say_who_waits(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_COMBINE(f.m) {
            touch(&f, f.reads, 20, 0, 0);
            touch(&f, f.writes, 10, 0, 0);
            touch(&f, f.writes, 5, 0, 0);
            touch(&f, f.reads, 1, 0, 0);
        }
    }
    // The starts of the two writers and of the last reader.
    static const uint64_t expected[8][3] = {
        {20, 30, 35},  // the default: all
        {0, 0, 5},     // RAW: the reader waits for the second writer
        {20, 20, 0},   // WAR: both writers wait for the first reader
        {20, 20, 25},  // RAW and WAR
        {0, 10, 0},    // WAW
        {0, 10, 15},   // RAW and WAW
        {20, 30, 0},   // WAR and WAW
        {20, 30, 35},  // all
    };
    ptowsp_schedule schedule = lanes(4);
    schedule.dependencies = PTOWSP_DEPENDENCIES_OVERLAP;
    for (uint32_t hazards = 0; hazards < 8; hazards++) {
        schedule.hazards = hazards;
        run_ok(&f, &schedule);
        expect(&f, 1, expected[hazards][0], expected[hazards][0] + 10);
        expect(&f, 2, expected[hazards][1], expected[hazards][1] + 5);
        expect(&f, 3, expected[hazards][2], expected[hazards][2] + 1);
    }
    fixture_free(&f);
}

static void schedule__a_writer_is_a_last_one_until_a_tile_holds_all_of_its_own(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_COMBINE(f.m) {
            touch(&f, f.writes, 50, 2, 0);
            touch(&f, f.writes, 10, 3, 0);  // the lower row of it: x ends there
            touch(&f, f.reads, 1, 3, 0);
            touch(&f, f.writes, 5, 2, 0);
            touch(&f, f.reads, 1, 2, 0);
        }
    }
    ptowsp_schedule schedule = lanes(5);
    schedule.dependencies = PTOWSP_DEPENDENCIES_OVERLAP;
    schedule.hazards = PTOWSP_HAZARD_RAW;
    run_ok(&f, &schedule);
    expect(&f, 1, 0, 10);
    expect(&f, 2, 50, 51);  // for both writers before
    expect(&f, 3, 0, 5);
    expect(&f, 4, 5, 6);  // for the third alone
    schedule.dependencies = PTOWSP_DEPENDENCIES_EXACT;
    run_ok(&f, &schedule);
    expect(&f, 2, 10, 11);
    expect(&f, 4, 5, 6);
    fixture_free(&f);
}

static void schedule__an_updated_tile_is_read_and_written(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_COMBINE(f.m) {
            touch(&f, f.updates, 10, 0, 0);
            touch(&f, f.updates, 5, 1, 1);  // one element in common
            touch(&f, f.updates, 1, 2, 2);  // with the second alone
        }
    }
    static const uint32_t hazards[] = {PTOWSP_HAZARD_RAW, PTOWSP_HAZARD_WAR, PTOWSP_HAZARD_WAW};
    ptowsp_schedule schedule = lanes(3);
    for (int i = 0; i < 3; i++) {
        schedule.hazards = hazards[i];  // each of the three is a reason to wait
        run_ok(&f, &schedule);
        expect(&f, 1, 10, 15);
        expect(&f, 2, 15, 16);
    }
    fixture_free(&f);
}

// -- pools ----------------------------------------------------------------------------------------

static void schedule__pools_by_unit_keep_kinds_of_tasks_apart(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_COMBINE(f.m) {
            work(&f, 10, 0);
            cube(&f, 4);
            cube(&f, 3);
            work(&f, 2, 0);
            work(&f, 1, 0);
        }
    }
    ptowsp_schedule schedule = lanes(0);
    schedule.pools = PTOWSP_POOLS_BY_UNIT;
    schedule.vector_lane_count = 2;
    schedule.cube_lane_count = 1;
    run_ok(&f, &schedule);
    static const uint32_t expected[] = {0, 2, 2, 1, 0};  // each pool counts its own tasks
    for (uint64_t i = 0; i < 5; i++) {
        expect_lane(&f, i, expected[i]);
    }
    expect(&f, 2, 4, 7);
    expect(&f, 3, 0, 2);
    expect(&f, 4, 10, 11);
    assert_int_equal(ptowsp_run_result(f.run)->lane_count, 3);
    schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
    run_ok(&f, &schedule);
    expect_lane(&f, 2, 2);  // the idle vector lane does not take it
    expect(&f, 2, 4, 7);
    expect(&f, 4, 2, 3);
    fixture_free(&f);
}

static void expect_busy(const fixture *f, const uint64_t *cycles) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < ptowsp_run_result(f->run)->lane_count; i++) {
        assert_int_equal(ptowsp_run_lanes(f->run)[i].busy_cycles, cycles[i]);
        sum += cycles[i];
    }
    assert_int_equal(ptowsp_run_result(f->run)->busy_cycles, sum);
}

// Vector lanes 0 to 3, cube lanes 4 and 5: lane 4 has lanes 0 and 1, lane 5 has lanes 2 and 3.
static ptowsp_schedule build_blocks(const fixture *f) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_COMBINE(f->m) {
            work(f, 10, 0);
            work(f, 2, 0);
            work(f, 3, 0);
            work(f, 1, 0);
            mix(f, 5);
            cube(f, 4);
            mix(f, 2);
            work(f, 1, 0);
            work(f, 1, 0);
            work(f, 1, 0);
        }
    }
    ptowsp_schedule schedule = lanes(0);
    schedule.pools = PTOWSP_POOLS_BY_UNIT;
    schedule.vector_lane_count = 4;
    schedule.cube_lane_count = 2;
    return schedule;
}

static void schedule__mix_takes_a_cube_lane_and_its_two_vector_lanes(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_schedule schedule = build_blocks(&f);
    run_ok(&f, &schedule);
    expect_lane(&f, 4, 4);
    expect(&f, 4, 10, 15);  // lane 0 is busy until 10, lane 1 until 2
    expect_stall(&f, 4, PTOWSP_STALL_LANE);
    assert_int_equal(ptowsp_run_records(f.run)[4].cause, 0);
    expect(&f, 5, 0, 4);
    expect_lane(&f, 6, 4);
    expect(&f, 6, 15, 17);
    assert_int_equal(ptowsp_run_records(f.run)[6].cause, 4);
    expect(&f, 7, 17, 18);  // on lane 0, behind the block's tasks
    assert_int_equal(ptowsp_run_records(f.run)[7].cause, 6);
    expect(&f, 8, 17, 18);
    expect(&f, 9, 3, 4);  // lane 2 is of the other block
    expect_busy(&f, (const uint64_t[]){18, 10, 4, 1, 7, 4});
    assert_int_equal(ptowsp_run_lanes(f.run)[0].task_count, 2);  // a task counts for its own lane
    assert_int_equal(ptowsp_run_lanes(f.run)[4].task_count, 2);
    schedule.issue = PTOWSP_ISSUE_IN_ORDER;
    schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
    run_ok(&f, &schedule);
    expect_lane(&f, 4, 5);  // the block that is whole first, at 3
    expect(&f, 4, 3, 8);
    expect_lane(&f, 5, 4);
    expect(&f, 5, 0, 4);
    expect_lane(&f, 6, 5);
    expect(&f, 6, 8, 10);
    expect(&f, 9, 4, 5);  // all three of lane 1
    assert_int_equal(makespan(&f), 10);
    expect_busy(&f, (const uint64_t[]){10, 5, 10, 8, 4, 7});
    fixture_free(&f);
}

// Lane 4 takes task 4 at 0, when lane 0 has 10 cycles left: lane 1 is idle from 2 on.
static void schedule__mix_keeps_its_vector_lanes_from_other_tasks(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_schedule schedule = build_blocks(&f);
    schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
    run_ok(&f, &schedule);
    expect_lane(&f, 4, 4);
    expect(&f, 4, 10, 15);
    expect_stall(&f, 4, PTOWSP_STALL_LANE);
    expect_lane(&f, 6, 5);
    expect(&f, 6, 4, 6);  // lane 5 has run task 5, and lane 2 task 9, until 4
    expect(&f, 7, 1, 2);  // lane 3 takes what lane 1 may not
    expect_lane(&f, 7, 3);
    expect_lane(&f, 8, 3);
    expect(&f, 8, 2, 3);
    expect_lane(&f, 9, 2);
    expect(&f, 9, 3, 4);
    assert_int_equal(makespan(&f), 15);
    expect_busy(&f, (const uint64_t[]){15, 7, 6, 5, 5, 6});
    fixture_free(&f);
}

static void schedule__mix_needs_two_vector_lanes_for_each_cube_lane(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_COMBINE(f.m) {
            mix(&f, 5);
            mix(&f, 5);
        }
    }
    assert_string_equal(ptowsp_unit_name(PTOWSP_UNIT_MIX), "mix");
    assert_string_equal(ptowsp_unit_name(PTOWSP_UNIT_COUNT), "unknown");
    ptowsp_schedule schedule = lanes(1);
    run_ok(&f, &schedule);  // one pool: a lane is all that a task takes
    assert_int_equal(makespan(&f), 10);
    assert_int_equal(ptowsp_run_result(f.run)->busy_cycles, 10);
    fixture_forget_run(&f);
    schedule.pools = PTOWSP_POOLS_BY_UNIT;
    schedule.lane_count = 0;
    schedule.vector_lane_count = 3;
    schedule.cube_lane_count = 2;
    const ptowsp_program_desc desc = {NULL, &schedule};
    assert_int_equal(ptowsp_program_create(f.context, f.m, &desc, &f.program),
                     PTOWSP_INVALID_PARAMS);
    assert_non_null(strstr(ptowsp_context_error(f.context).text,
                           "task mix: its kernel takes two vector lanes with each of 2 cube lanes, "
                           "and the schedule has 3"));
    fixture_free(&f);
}

// -- ready ----------------------------------------------------------------------------------------

// On lane 1, by key: a task that waits for lane 0 until 10, and then one that waits for nothing.
static void build_lane_with_a_waiting_task(const fixture *f) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_COMBINE(f->m) {
            PTOWSP_SEQUENCE(f->m) {
                work(f, 10, 0);
                work(f, 5, 1);
            }
            work(f, 3, 1);
        }
    }
}

static ptowsp_schedule lanes_by_key(const fixture *f, uint32_t lane_count) {
    ptowsp_schedule schedule = lanes(lane_count);
    schedule.dispatch = PTOWSP_DISPATCH_CUSTOM;
    schedule.dispatch_key = ptowsp_task_arg(f->m, 1);
    return schedule;
}

static void schedule__fifo_runs_a_lanes_tasks_in_the_order_of_issue(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_lane_with_a_waiting_task(&f);
    ptowsp_schedule schedule = lanes_by_key(&f, 2);
    run_ok(&f, &schedule);
    expect(&f, 1, 10, 15);
    expect(&f, 2, 15, 18);
    expect_stall(&f, 2, PTOWSP_STALL_LANE);
    fixture_free(&f);
}

static void schedule__priority_runs_what_is_ready(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_lane_with_a_waiting_task(&f);
    ptowsp_schedule schedule = lanes_by_key(&f, 2);
    schedule.ready = PTOWSP_READY_PRIORITY;
    schedule.priority_key = ptowsp_task_arg(f.m, 0);  // longest first
    run_ok(&f, &schedule);
    expect(&f, 2, 0, 3);
    expect(&f, 1, 10, 15);
    fixture_free(&f);
}

static void schedule__priority_takes_the_largest_key_first(void **state) {
    (void)state;
    static const int64_t tasks[][2] = {{4, -2}, {5, 3}, {6, -1}, {7, 3}};
    fixture f;
    fixture_make(&f);
    build_tasks(&f, tasks, 4);
    ptowsp_schedule schedule = lanes(1);
    schedule.ready = PTOWSP_READY_PRIORITY;
    schedule.priority_key = ptowsp_task_arg(f.m, 1);
    run_ok(&f, &schedule);
    expect(&f, 1, 0, 5);  // of two equal ones the first
    expect(&f, 3, 5, 12);
    expect(&f, 2, 12, 18);
    expect(&f, 0, 18, 22);
    schedule.priority_key = ptowsp_cast(ptowsp_task_arg(f.m, 1), PTOWSP_TYPE_U64);
    run_ok(&f, &schedule);
    expect(&f, 2, 0, 6);  // unsigned, -1 is the largest
    expect(&f, 0, 6, 10);
    expect(&f, 1, 10, 15);
    expect(&f, 3, 15, 22);
    fixture_free(&f);
}

static void schedule__an_idle_lane_steals(void **state) {
    (void)state;
    static const int64_t tasks[][2] = {{10, 0}, {3, 0}, {4, 0}, {2, 1}};
    fixture f;
    fixture_make(&f);
    build_tasks(&f, tasks, 4);
    ptowsp_schedule schedule = lanes_by_key(&f, 2);
    schedule.ready = PTOWSP_READY_WORK_STEALING;
    run_ok(&f, &schedule);
    expect(&f, 0, 0, 10);
    expect(&f, 3, 0, 2);  // lane 1 begins with its own
    expect(&f, 1, 2, 5);
    expect(&f, 2, 5, 9);
    expect_lane(&f, 1, 1);
    expect_lane(&f, 2, 1);
    fixture_free(&f);
}

static void schedule__tasks_without_cycles_complete_in_the_next_round(void **state) {
    (void)state;
    static const int64_t tasks[][2] = {{0, 0}, {0, 0}, {0, 0}, {7, 0}};
    fixture f;
    fixture_make(&f);
    build_tasks(&f, tasks, 4);
    ptowsp_schedule schedule = lanes(1);
    schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
    schedule.window = 1;
    run_ok(&f, &schedule);
    for (uint64_t i = 0; i < 3; i++) {
        expect(&f, i, 0, 0);
    }
    expect(&f, 3, 0, 7);
    fixture_free(&f);
}

// -- start ----------------------------------------------------------------------------------------

static void schedule__tasks_start_at_once_or_when_enough_are_issued(void **state) {
    (void)state;
    static const int64_t tasks[][2] = {{1, 0}, {1, 0}, {1, 0}};
    fixture f;
    fixture_make(&f);
    build_tasks(&f, tasks, 3);
    ptowsp_schedule schedule = lanes(3);
    schedule.timing = PTOWSP_TIMING_RATE_LIMITED;  // issued at 0, 10 and 20
    schedule.timing_cycles = 10;
    run_ok(&f, &schedule);
    expect(&f, 0, 0, 1);
    expect(&f, 1, 10, 11);
    expect(&f, 2, 20, 21);
    schedule.start = PTOWSP_START_THRESHOLD;
    schedule.start_threshold = 2;
    run_ok(&f, &schedule);
    expect(&f, 0, 10, 11);
    expect(&f, 1, 10, 11);
    expect(&f, 2, 20, 21);
    expect_stall(&f, 0, PTOWSP_STALL_START);
    expect_stall(&f, 1, PTOWSP_STALL_TIMING);
    schedule.start_threshold = 9;  // or all of them
    run_ok(&f, &schedule);
    expect(&f, 0, 20, 21);
    schedule.start_threshold = 0;
    schedule.start = PTOWSP_START_ALL_ISSUED;
    run_ok(&f, &schedule);
    expect(&f, 0, 20, 21);
    expect(&f, 1, 20, 21);
    expect(&f, 2, 20, 21);
    fixture_free(&f);
}

static void schedule__a_window_that_fills_before_the_start_is_stuck(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_tasks(&f, three_tasks, 3);
    ptowsp_schedule schedule = lanes(3);
    schedule.window = 2;
    schedule.start = PTOWSP_START_ALL_ISSUED;
    assert_int_equal(fixture_run(&f, &schedule), PTOWSP_STUCK);
    schedule.window = 3;
    run_ok(&f, &schedule);
    expect(&f, 2, 0, 3);
    fixture_free(&f);
}

// -- streams --------------------------------------------------------------------------------------

static void schedule__tasks_of_one_stream_run_one_after_another(void **state) {
    (void)state;
    static const int64_t tasks[][2] = {{10, 0}, {3, 1}, {2, 2}};
    fixture f;
    fixture_make(&f);
    build_tasks(&f, tasks, 3);
    ptowsp_schedule schedule = lanes(3);
    schedule.stream_count = 2;
    schedule.stream_key = ptowsp_task_arg(f.m, 1);
    run_ok(&f, &schedule);
    expect(&f, 1, 0, 3);
    expect(&f, 2, 10, 12);
    expect_stall(&f, 2, PTOWSP_STALL_DEPENDENCY);
    assert_int_equal(ptowsp_run_records(f.run)[2].ready, 10);
    fixture_free(&f);
}

// -- timing ---------------------------------------------------------------------------------------

static void schedule__batches_are_issued_some_cycles_apart(void **state) {
    (void)state;
    static const int64_t tasks[][2] = {{1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}};
    fixture f;
    fixture_make(&f);
    build_tasks(&f, tasks, 5);
    ptowsp_schedule schedule = lanes(5);
    schedule.timing = PTOWSP_TIMING_BATCHED;
    schedule.timing_count = 2;
    schedule.timing_cycles = 10;
    run_ok(&f, &schedule);
    for (uint64_t i = 0; i < 5; i++) {
        expect(&f, i, i / 2 * 10, i / 2 * 10 + 1);
    }
    expect_stall(&f, 2, PTOWSP_STALL_TIMING);
    assert_int_equal(ptowsp_run_result(f.run)->stall_cycles[PTOWSP_STALL_TIMING], 20);
    fixture_free(&f);
}

static void schedule__a_batch_waits_for_room_for_all_of_it(void **state) {
    (void)state;
    static const int64_t tasks[][2] = {{5, 0}, {9, 0}, {1, 0}, {1, 0}};
    fixture f;
    fixture_make(&f);
    build_tasks(&f, tasks, 4);
    ptowsp_schedule schedule = lanes(4);
    schedule.timing = PTOWSP_TIMING_BATCHED;
    schedule.timing_count = 2;
    schedule.window = 2;
    run_ok(&f, &schedule);
    expect(&f, 2, 9, 10);
    expect(&f, 3, 9, 10);
    expect_stall(&f, 2, PTOWSP_STALL_WINDOW);
    fixture_free(&f);
}

static void schedule__streams_take_turns(void **state) {
    (void)state;
    static const int64_t tasks[][2] = {{1, 0}, {1, 0}, {1, 1}, {1, 1}};
    static const uint64_t starts[] = {0, 10, 5, 15};  // stream 1 has the turns 5, 15, ...
    fixture f;
    fixture_make(&f);
    build_tasks(&f, tasks, 4);
    ptowsp_schedule schedule = lanes(4);
    schedule.stream_count = 2;
    schedule.stream_key = ptowsp_task_arg(f.m, 1);
    schedule.timing = PTOWSP_TIMING_INTERLEAVED;
    schedule.timing_cycles = 5;
    run_ok(&f, &schedule);
    for (uint64_t i = 0; i < 4; i++) {
        expect(&f, i, starts[i], starts[i] + 1);
        assert_int_equal(ptowsp_run_records(f.run)[i].issue, 0);
    }
    expect_stall(&f, 1, PTOWSP_STALL_TIMING);
    fixture_free(&f);
}

// Tasks may start when the n-th is issued: n - 1 times 2^32 cycles after the first, of batches of two half as
// often. That must be a time, which is known before any is issued.
static void schedule__a_gate_beyond_the_end_of_time_is_refused(void **state) {
    (void)state;
    static const struct {
        uint64_t threshold;  // 0: all of 2^16 (2^16 + 1)
        uint32_t batch;
    } cases[] = {{(UINT64_C(1) << 31) + 1, 0}, {UINT64_C(1) << 32, 0}, {0, 0}, {0, 2}};
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        char text[128];
        fixture_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_PARALLEL(f.m, a, ptowsp_axis_dense(f.m, "rows", 65537)) {
                (void)a;
                PTOWSP_PARALLEL(f.m, b, ptowsp_axis_dense(f.m, "columns", 65536)) {
                    (void)b;
                    work(&f, 1, 0);
                }
            }
        }
        ptowsp_schedule schedule = lanes(1);
        schedule.start = cases[i].threshold ? PTOWSP_START_THRESHOLD : PTOWSP_START_ALL_ISSUED;
        schedule.start_threshold = cases[i].threshold;
        schedule.timing = cases[i].batch ? PTOWSP_TIMING_BATCHED : PTOWSP_TIMING_RATE_LIMITED;
        schedule.timing_count = cases[i].batch;
        schedule.timing_cycles = UINT64_C(1) << 32;
        assert_int_equal(fixture_run(&f, &schedule), PTOWSP_LIMIT_EXCEEDED);
        sprintf(text, "run: issuing %llu tasks takes more than 2^63 - 1 cycles",
                (unsigned long long)(cases[i].threshold ? cases[i].threshold
                                                        : UINT64_C(65537) * 65536));
        test_error_is(f.context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX, text);
        fixture_free(&f);
    }
}

// -- slot loads -----------------------------------------------------------------------------------

// A writer, a load of what it writes, and a task that is there when the slot is 1.
static void build_load(const fixture *f) {
    ptowsp_view view;
    memset(&view, 0, sizeof view);
    view.tensor = f->x;
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_COMBINE(f->m) {
            touch(f, f->writes, 10, 0, 0);
            touch(f, f->writes, 20, 2, 2);
            ptowsp_slot_load(f->m, 3, &view, ptowsp_i64(f->m, 0), ptowsp_i64(f->m, 0));
            PTOWSP_WHEN(f->m,
                        ptowsp_eq(ptowsp_slot(f->m, 3, PTOWSP_TYPE_I64), ptowsp_i64(f->m, 1))) {
                work(f, 1, 0);
            }
        }
    }
}

static void schedule__control_that_depends_on_data_is_issued_when_it_is_there(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_load(&f);
    ptowsp_schedule schedule = lanes(3);
    schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
    run_ok(&f, &schedule);
    assert_int_equal(ptowsp_run_result(f.run)->task_count, 3);
    expect(&f, 2, 10, 11);  // the task that writes elsewhere does not matter
    expect_stall(&f, 2, PTOWSP_STALL_SLOT);
    assert_int_equal(ptowsp_run_slot(f.run, 3), 1);
    assert_int_equal(ptowsp_run_result(f.run)->slot_load_count, 1);
    assert_int_equal(ptowsp_run_result(f.run)->stall_cycles[PTOWSP_STALL_SLOT], 10);
    schedule.issue = PTOWSP_ISSUE_IN_ORDER;
    run_ok(&f, &schedule);
    expect(&f, 2, 0, 1);  // as in v9; the data is right all the same
    fixture_free(&f);
}

static void schedule__a_load_before_the_start_is_stuck(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_load(&f);
    ptowsp_schedule schedule = lanes(3);
    schedule.start = PTOWSP_START_ALL_ISSUED;
    assert_int_equal(fixture_run(&f, &schedule), PTOWSP_STUCK);
    schedule.start = PTOWSP_START_THRESHOLD;
    schedule.start_threshold = 3;
    assert_int_equal(fixture_run(&f, &schedule), PTOWSP_STUCK);
    schedule.start_threshold = 2;
    run_ok(&f, &schedule);
    expect(&f, 2, 10, 11);
    fixture_free(&f);
}

static void schedule__measuring_cannot_load_what_tasks_write(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    build_load(&f);
    run_ok(&f, NULL);
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = false};
    assert_int_equal(ptowsp_run_execute(f.run, &options), PTOWSP_UNSUPPORTED);
    fixture_free(&f);
}

// -- what is refused ------------------------------------------------------------------------------

static void check_is(const fixture *f, const ptowsp_schedule *schedule, ptowsp_status status) {
    assert_int_equal(ptowsp_schedule_check(f->m, schedule, PTOWSP_TARGET_CPU_SIM), status);
}

static void schedule__what_is_missing_or_not_asked_for_is_refused(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_expr key = ptowsp_task_arg(f.m, 0);
    check_is(&f, NULL, PTOWSP_OK);
    ptowsp_schedule schedule = lanes(2);
    check_is(&f, &schedule, PTOWSP_OK);
    schedule.dispatch_key = key;  // round robin has none
    check_is(&f, &schedule, PTOWSP_INVALID_PARAMS);
    schedule = lanes(0);
    check_is(&f, &schedule, PTOWSP_INVALID_PARAMS);
    schedule = lanes(2);
    schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
    check_is(&f, &schedule, PTOWSP_INVALID_PARAMS);
    schedule = lanes(2);
    schedule.window_policy = PTOWSP_WINDOW_STALL;
    check_is(&f, &schedule, PTOWSP_INVALID_PARAMS);
    schedule = lanes(2);
    schedule.ready = PTOWSP_READY_PRIORITY;
    check_is(&f, &schedule, PTOWSP_INVALID_PARAMS);
    schedule = lanes(2);
    schedule.start = PTOWSP_START_THRESHOLD;
    check_is(&f, &schedule, PTOWSP_INVALID_PARAMS);
    schedule = lanes(2);
    schedule.timing = PTOWSP_TIMING_INTERLEAVED;
    schedule.timing_cycles = 1;
    check_is(&f, &schedule, PTOWSP_INVALID_PARAMS);
    fixture_free(&f);
}

static void check_is_unknown(const fixture *f, ptowsp_schedule *schedule, const char *directive,
                             uint32_t number) {
    char text[80];
    snprintf(text, sizeof text, "schedule: %s %u does not exist", directive, (unsigned)number);
    check_is(f, schedule, PTOWSP_INVALID_PARAMS);
    assert_string_equal(ptowsp_context_error(f->context).text, text);
    *schedule = lanes(2);
    schedule->window = 2;
}

// The first number behind the enumerators is looked up like any other.
static void schedule__choices_that_do_not_exist_are_refused_by_name(void **state) {
    (void)state;
    static const uint32_t numbers[] = {8, 99, INT32_MAX, UINT32_MAX};
    fixture f;
    fixture_make(&f);
    for (uint32_t i = 0; i < 4; i++) {
        ptowsp_schedule schedule = lanes(2);
        schedule.issue = (ptowsp_issue)numbers[i];
        check_is_unknown(&f, &schedule, "issue", numbers[i]);
        schedule.dispatch = (ptowsp_dispatch)numbers[i];
        check_is_unknown(&f, &schedule, "dispatch", numbers[i]);
        schedule.pools = (ptowsp_pools)numbers[i];
        check_is_unknown(&f, &schedule, "pools", numbers[i]);
        schedule.window_policy = (ptowsp_window)numbers[i];
        check_is_unknown(&f, &schedule, "window", numbers[i]);
        schedule.release = (ptowsp_release)numbers[i];
        check_is_unknown(&f, &schedule, "release", numbers[i]);
        schedule.ready = (ptowsp_ready)numbers[i];
        check_is_unknown(&f, &schedule, "ready", numbers[i]);
        schedule.start = (ptowsp_start)numbers[i];
        check_is_unknown(&f, &schedule, "start", numbers[i]);
        schedule.timing = (ptowsp_timing)numbers[i];
        check_is_unknown(&f, &schedule, "timing", numbers[i]);
    }
    fixture_free(&f);
}

static void schedule__a_batch_larger_than_the_window_is_stuck_from_the_beginning(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_schedule schedule = lanes(2);
    schedule.timing = PTOWSP_TIMING_BATCHED;
    schedule.timing_count = 3;
    schedule.window = 2;
    check_is(&f, &schedule, PTOWSP_STUCK);
    schedule.window = 3;
    check_is(&f, &schedule, PTOWSP_OK);
    fixture_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedule__default_is_one_lane_and_tasks_one_by_one),
        cmocka_unit_test(schedule__a_sequence_waits_for_all_of_the_statement_before),
        cmocka_unit_test(schedule__an_empty_scope_is_done_when_it_is_ready),
        cmocka_unit_test(schedule__when_adds_no_order),
        cmocka_unit_test(schedule__loops_are_parallel_or_one_after_another),
        cmocka_unit_test(schedule__in_order_the_clock_waits_for_the_data_of_earlier_tasks),
        cmocka_unit_test(schedule__dataflow_lets_later_tasks_go_ahead),
        cmocka_unit_test(schedule__default_dispatch_has_as_many_lanes_as_streams),
        cmocka_unit_test(schedule__round_robin_goes_round),
        cmocka_unit_test(schedule__affinity_and_custom_take_the_key_modulo_the_lanes),
        cmocka_unit_test(schedule__keys_may_be_parameters_of_workloads),
        cmocka_unit_test(schedule__keys_alone_read_tasks),
        cmocka_unit_test(schedule__keys_with_tags_have_a_limit),
        cmocka_unit_test(schedule__hash_mixes_the_key),
        cmocka_unit_test(schedule__work_stealing_takes_the_lane_that_is_free_first),
        cmocka_unit_test(schedule__work_stealing_does_not_wait_behind_what_is_not_ready),
        cmocka_unit_test(schedule__a_window_of_two_stalls_the_third_task_until_one_ends),
        cmocka_unit_test(schedule__a_full_window_aborts),
        cmocka_unit_test(schedule__benchmark_counts_who_found_the_window_full),
        cmocka_unit_test(schedule__structure_does_not_look_at_data),
        cmocka_unit_test(schedule__exact_waits_for_the_very_same_tile),
        cmocka_unit_test(schedule__overlap_waits_for_a_common_element),
        cmocka_unit_test(schedule__without_structure_a_sequence_is_no_order),
        cmocka_unit_test(schedule__explicit_waits_for_the_tasks_that_are_named),
        cmocka_unit_test(schedule__hazards_say_who_waits),
        cmocka_unit_test(schedule__a_writer_is_a_last_one_until_a_tile_holds_all_of_its_own),
        cmocka_unit_test(schedule__an_updated_tile_is_read_and_written),
        cmocka_unit_test(schedule__pools_by_unit_keep_kinds_of_tasks_apart),
        cmocka_unit_test(schedule__mix_takes_a_cube_lane_and_its_two_vector_lanes),
        cmocka_unit_test(schedule__mix_keeps_its_vector_lanes_from_other_tasks),
        cmocka_unit_test(schedule__mix_needs_two_vector_lanes_for_each_cube_lane),
        cmocka_unit_test(schedule__fifo_runs_a_lanes_tasks_in_the_order_of_issue),
        cmocka_unit_test(schedule__priority_runs_what_is_ready),
        cmocka_unit_test(schedule__priority_takes_the_largest_key_first),
        cmocka_unit_test(schedule__an_idle_lane_steals),
        cmocka_unit_test(schedule__tasks_without_cycles_complete_in_the_next_round),
        cmocka_unit_test(schedule__tasks_start_at_once_or_when_enough_are_issued),
        cmocka_unit_test(schedule__a_window_that_fills_before_the_start_is_stuck),
        cmocka_unit_test(schedule__tasks_of_one_stream_run_one_after_another),
        cmocka_unit_test(schedule__batches_are_issued_some_cycles_apart),
        cmocka_unit_test(schedule__a_batch_waits_for_room_for_all_of_it),
        cmocka_unit_test(schedule__streams_take_turns),
        cmocka_unit_test(schedule__control_that_depends_on_data_is_issued_when_it_is_there),
        cmocka_unit_test(schedule__a_load_before_the_start_is_stuck),
        cmocka_unit_test(schedule__measuring_cannot_load_what_tasks_write),
        cmocka_unit_test(schedule__what_is_missing_or_not_asked_for_is_refused),
        cmocka_unit_test(schedule__choices_that_do_not_exist_are_refused_by_name),
        cmocka_unit_test(schedule__a_batch_larger_than_the_window_is_stuck_from_the_beginning),
        cmocka_unit_test(schedule__a_gate_beyond_the_end_of_time_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
