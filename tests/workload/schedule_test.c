// What schedules refuse, and what their keys may be. What each directive does is in
// tests/cases/schedules.case. A task of `work` takes as many cycles as its first argument says.

#include "support/fixture.h"

static ptowsp_task_desc begin(fixture *f) {
    assert_ok(ptowsp_module_create(f->context, NULL, &f->module));
    const ptowsp_kernel_desc work = {.name = "work", .axis_count = 2, .fn = test_first_arg};
    const ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(f->module, &work),
                                   .axes = {ptowsp_i64(f->module, 1), ptowsp_i64(f->module, 0)}};
    return task;
}

// -- keys -----------------------------------------------------------------------------------------

// What keys read of a task is nothing that a task can be given.
TEST_F(schedule__keys_alone_read_tasks) {
    for (int i = 0; i < 3; i++) {
        ptowsp_task_desc task = begin(f);
        PTOWSP_WORKLOAD(f->module, "main") {
            task.axes[1] = i == 0   ? ptowsp_task_variable(f->module, "n")
                           : i == 1 ? ptowsp_task_arg(f->module, 0)
                                    : ptowsp_cast(ptowsp_task_tag(f->module, "t"), PTOWSP_TYPE_I64);
            ptowsp_task_make(f->module, &task);
        }
        if (!strstr(ptowsp_module_error(f->module).text,
                    "axis argument 1: what belongs to a task has a value in "
                    "the keys of schedules only")) {
            fail_msg("%s", ptowsp_module_error(f->module).text);
        }
        ptowsp_module_destroy(f->module);
        f->module = NULL;
    }
}

// A tag is compiled wherever a key reads it: here 2048 casts and 2047 sums. That five times is more than
// 20000.
TEST_F(schedule__keys_with_tags_have_a_limit) {
    ptowsp_task_desc task = begin(f);
    PTOWSP_WORKLOAD(f->module, "main") {
        PTOWSP_PARALLEL(f->module, i, ptowsp_axis_dense(f->module, "n", 2)) {
            ptowsp_expr value = ptowsp_cast(i, PTOWSP_TYPE_U64);
            for (int level = 0; level < 11; level++) {
                value = ptowsp_add(value, value);
            }
            task.tags[0].name = "weight";
            task.tags[0].value = value;
            ptowsp_task_make(f->module, &task);
        }
    }
    const ptowsp_expr tag = ptowsp_task_tag(f->module, "weight");
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_AFFINITY, .lane_count = 3};
    const ptowsp_program_desc desc = {NULL, &schedule};
    schedule.dispatch_key = ptowsp_bitor(ptowsp_bitor(ptowsp_bitor(tag, tag), tag), tag);
    program_make(f, NULL, NULL, &desc);
    fixture_run(f);
    assert_int_equal(ptowsp_run_records(f->run)[0].lane, 0);
    assert_int_equal(ptowsp_run_records(f->run)[1].lane, 2048 % 3);
    schedule.dispatch_key = ptowsp_bitor(schedule.dispatch_key, tag);
    ptowsp_program *program;
    fixture_refused(f, ptowsp_program_create(f->context, f->module, &desc, &program),
                    PTOWSP_LIMIT_EXCEEDED,
                    "a key with the tags that it reads has more than 20000 operations");
}

// -- what is refused ------------------------------------------------------------------------------

static void check_is(const fixture *f, const ptowsp_schedule *schedule, ptowsp_status status,
                     const char *part) {
    fixture_refused(f, ptowsp_schedule_check(f->module, schedule, PTOWSP_TARGET_CPU_SIM), status,
                    part);
}

// The first number after the enumerators is looked up like any other.
TEST_F(schedule__choices_that_do_not_exist_are_refused_by_name) {
    static const uint32_t numbers[] = {8, 99, INT32_MAX, UINT32_MAX};
    static const char *const names[] = {"issue",   "dispatch", "pools", "window",
                                        "release", "ready",    "start", "timing"};
    begin(f);
    for (uint32_t i = 0; i < 4 * 8; i++) {
        const uint32_t number = numbers[i / 8];
        ptowsp_schedule schedule = {.lane_count = 2, .window = i == 0 ? 0 : 2};
        char text[80];
        switch (i % 8) {
        case 0: schedule.issue = (ptowsp_issue)number; break;
        case 1: schedule.dispatch = (ptowsp_dispatch)number; break;
        case 2: schedule.pools = (ptowsp_pools)number; break;
        case 3: schedule.window_policy = (ptowsp_window)number; break;
        case 4: schedule.release = (ptowsp_release)number; break;
        case 5: schedule.ready = (ptowsp_ready)number; break;
        case 6: schedule.start = (ptowsp_start)number; break;
        default: schedule.timing = (ptowsp_timing)number; break;
        }
        snprintf(text, sizeof text, "schedule: %s %u does not exist", names[i % 8], number);
        check_is(f, &schedule, PTOWSP_INVALID_PARAMS, NULL);
        assert_string_equal(ptowsp_context_error(f->context).text, text);
    }
}
