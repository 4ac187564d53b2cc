// What schedules refuse, and what their keys may be. What each directive does is in
// tests/cases/schedules.case. A task of kernel `work` takes as many cycles as its first argument says;
// its second one is for keys.

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

static void expect_lane(const fixture *f, uint64_t task, uint32_t lane) {
    assert_int_equal(ptowsp_run_records(f->run)[task].lane, lane);
}

// -- dispatch -------------------------------------------------------------------------------------

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
        cmocka_unit_test(schedule__keys_alone_read_tasks),
        cmocka_unit_test(schedule__keys_with_tags_have_a_limit),
        cmocka_unit_test(schedule__what_is_missing_or_not_asked_for_is_refused),
        cmocka_unit_test(schedule__choices_that_do_not_exist_are_refused_by_name),
        cmocka_unit_test(schedule__a_batch_larger_than_the_window_is_stuck_from_the_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
