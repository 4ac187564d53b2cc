// How results are named by the program, from the outside.

#include "test.h"

CONTEXT_TEST(workload__records_are_named_by_the_program) {
    ptowsp_module *m = test_module(context, NULL);
    ptowsp_kernel_desc kernel = {.name = "k", .cycles = 7};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &kernel)};
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "n", 2)) {
            ptowsp_task_make(m, &task);
        }
    }
    ptowsp_program *program = test_program(context, m, NULL);
    ptowsp_module_destroy(m);
    ptowsp_run *run = test_run_of(context, program);
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true};
    assert_ok(ptowsp_run_execute(run, &options));
    const ptowsp_task_record *record = &ptowsp_run_records(run)[1];
    assert_string_equal(ptowsp_program_kernel_name(program, record->kernel), "k");
    assert_null(ptowsp_program_kernel_name(program, 0));
    assert_null(ptowsp_program_kernel_name(program, 2));
    char text[64];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_program_print_place(program, record->node, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(text, "main/parallel i/task k");
    ptowsp_program_print_place(program, 1000, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(text, "");
    test_destroy(run, program, NULL, NULL);
}
