// Decisions that export.facts does not have: of kernels that no text declares; a visitor that stops.

#include "written.h"

// What else a kernel can be, and says how long it takes: a PTO-ISA source, a collective, a tile kernel of
// two halves.
TEST_F(decisions__name_the_cycles_of_all_kinds_of_kernels) {
    ptowsp_module *m = f->module = test_module(f->context, NULL);
    const ptowsp_pto_source pto = {.text = "void source() {}"};
    const ptowsp_kernel_desc source = {.name = "source", .cycles = 7, .pto = &pto};
    const ptowsp_kernel_desc filed = {.name = "filed", .cycles = 7, .source.file = "filed.c"};
    const ptowsp_collective_desc sum = {.name = "sum", .dtype = PTOWSP_F32};
    const ptowsp_tensor_desc tensor = {"x", PTOWSP_F32, 2, {8, 8}, PTOWSP_LOCATION_GLOBAL};
    const ptowsp_task_desc tasks[] = {
        {.kernel = ptowsp_kernel_make(m, &source)},
        {.kernel = ptowsp_kernel_make(m, &filed)},
        {.kernel = ptowsp_kernel_collective(m, &sum),
         .views[0] = {.tensor = ptowsp_tensor_make(m, &tensor), .rows = 8, .cols = 8}}};
    PTOWSP_WORKLOAD(m, "w") {
        for (size_t i = 0; i < COUNT_OF(tasks); i++) {
            ptowsp_task_make(m, &tasks[i]);
        }
    }
    test_ok(f->context, ptowsp_program_create(f->context, m, NULL, &f->program));
    assert_ok(ptowsp_run_create(f->context, f->program, &f->run));
    written_good(f, ptowsp_run_export_decisions(f->run, PTOWSP_REPORT_TEXT, written_output()));
    has("  compile  kernel source: a PTO-ISA source; 7 cycles\n");
    has("  compile  kernel filed: time only; 7 cycles\n");
    has("  compile  kernel sum: all_reduce; the links say how long it takes\n");
    // In a tree there are no links; the other two have sources.
    has("kernel sum: refused by ascend_npu; it has no source\n");
    has_not("kernel source: refused");
    has_not("kernel filed: refused");
}

static bool count_two(void *user, const ptowsp_decision *decision) {
    (void)decision;
    return ++*(uint32_t *)user < 2;
}

TEST_F(decisions__can_be_stopped) {
    uint32_t count = 0;
    program_make(f,
                 "module m\nkernel k(axes 0) vector, 3 cycles, time only\n"
                 "kernel l(axes 0) vector, 2 cycles, time only\n"
                 "workload w\n  task k()\n  task l()\n",
                 NULL, NULL);
    assert_false(ptowsp_run_decisions(f->run, count_two, &count));
    assert_int_equal(count, 2);
}
