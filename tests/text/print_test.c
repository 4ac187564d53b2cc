// What is printed, word by word: a module that failed, expressions, schedules, the table of capabilities, and
// the results of a run. Modules and programs are cases (tests/cases/printed.case). The texts below are
// written from what they should say.

#include "support/fixture.h"

static char text[16000];

// A sink that empties the text.
static ptowsp_output sink(void) {
    static ptowsp_output_buffer buffer;
    buffer = (ptowsp_output_buffer){text, sizeof text, 0};
    return ptowsp_output_to_buffer(&buffer);
}

static void module_begin(fixture *f, const char *name) {
    f->module = test_module(f->context, &(ptowsp_module_desc){name, 8});
}

TEST_F(print__a_module_that_failed_ends_with_its_error) {
    module_begin(f, "m");
    ptowsp_axis_dense(f->module, "n", 3);
    ptowsp_axis_dense(f->module, "n", 4);
    ptowsp_module_print(f->module, sink());
    assert_string_equal(text, "module m slots 8\n"
                              "axis n 3\n"
                              "error INVALID_PARAMS: m: axis n: the name is already that of an "
                              "axis\n");
}

TEST_F(print__expressions_have_the_names_of_the_user) {
    module_begin(f, "m");
    PTOWSP_WORKLOAD(f->module, "main") {
        PTOWSP_PARALLEL(f->module, b, ptowsp_axis_dynamic(f->module, "batch")) {
            ptowsp_expr next = ptowsp_add(b, ptowsp_i64(f->module, 1));
            ptowsp_expr is_short =
                ptowsp_le(ptowsp_array_at(f->module, "lengths", PTOWSP_I32, next),
                          ptowsp_i64(f->module, 2048));
            ptowsp_expr_print(is_short, sink());
            assert_string_equal(text, "lengths[b + 1] <= 2048");
            ptowsp_expr_print(ptowsp_select(is_short, b, next), sink());
            assert_string_equal(text, "lengths[b + 1] <= 2048 ? b : b + 1");
        }
    }
}

// -- schedules ------------------------------------------------------------------------------------

// Others are cases (tests/cases/printed.case).
TEST_F(print__the_schedule_of_those_who_give_none) {
    ptowsp_schedule_print(NULL, sink());
    assert_string_equal(text, "schedule\n"
                              "  issue dataflow\n"
                              "  dispatch round robin over 1 lanes\n"
                              "  dependencies structure overlap\n");
}

TEST_F(print__capabilities_are_a_table) {
    module_begin(f, "m");
    ptowsp_capability_print(sink());
    static const char *const lines[] = {
        "directive     value          cpu_sim     threads     ascend_npu ",
        "issue         dataflow       enforced    enforced    enforced   ",
        "dispatch      work stealing  enforced    enforced    enforced   ",
        "window        abort          enforced    recorded    refused    ",
        "location      l2             recorded    recorded    recorded   ",
        "kernel        both cores     legalised   legalised   legalised  ",
        "kernel        direct FIFOs   enforced    enforced    refused    "};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_non_null(strstr(text, lines[i]));
    }
    uint32_t line_count = 0;
    for (const char *at = text; *at; at++) {
        line_count += *at == '\n';
    }
    assert_int_equal(line_count, 1 + ptowsp_capability_count());
    ptowsp_capability row = ptowsp_capability_at(3);
    assert_string_equal(row.directive, "dispatch");
    assert_string_equal(row.value, "affinity");
    assert_int_equal(row.support[PTOWSP_TARGET_CPU_SIM], PTOWSP_SUPPORT_ENFORCED);
}

// -- runs -----------------------------------------------------------------------------------------

// With records it also has a path (tests/cases/written.case).
TEST_F(print__a_run_says_where_time_went) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    program_make(f,
                 "module one\nkernel work(axes 0) vector, 10 cycles, time only\n"
                 "workload main\n  task work()\n",
                 NULL, NULL);
    ptowsp_run_print(f->run, sink());
    assert_string_equal(text, "run of module one: not executed\n");
    assert_ok(ptowsp_run_execute(f->run, &options));
    ptowsp_run_print(f->run, sink());
    assert_string_equal(text, "run of module one: 10 cycles, 1 tasks, 1 lanes, 100.0 % busy\n"
                              "  lane 0  1 tasks, busy 10, idle 0, ends at 10\n");
}

// -- sinks ----------------------------------------------------------------------------------------

TEST_F(print__a_text_that_does_not_fit_is_cut_and_counted) {
    static const char module_text[] = "module m slots 8\naxis batch dynamic\n";
    char small[20];
    ptowsp_output_buffer buffer = {small, sizeof small, 0};
    module_begin(f, "m");
    ptowsp_axis_dynamic(f->module, "batch");
    ptowsp_module_print(f->module, ptowsp_output_to_buffer(&buffer));
    assert_int_equal(buffer.length, sizeof module_text - 1);
    assert_int_equal(strlen(small), sizeof small - 1);
    assert_memory_equal(small, module_text, sizeof small - 1);
}
