// What keys of schedules may be. What each directive does is in tests/cases/schedules.case, and what is refused in
// schedules.facts. A task of `work` takes as many cycles as its first argument says.

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
