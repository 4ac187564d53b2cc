// Decisions that export.facts does not have: of kernels that no text declares; a visitor that stops.

#include "written.h"

static const char *decisions_of(const fixture *f) {
    written_good(f, ptowsp_run_export_decisions(f->run, PTOWSP_REPORT_TEXT, written_output()));
    return written.text;
}

// What else a kernel can be, and says how long it takes: a PTO-ISA source, a collective, a tile kernel of
// two halves.
TEST_F(decisions__name_the_cycles_of_all_kinds_of_kernels) {
    ptowsp_module *m = f->module = test_module(f->context, NULL);
    ptowsp_kernel_desc desc = {0};
    ptowsp_collective_desc sum = {0};
    ptowsp_tensor_desc tensor = {0};
    ptowsp_task_desc task = {0};
    ptowsp_pto_source pto = {.text = "void source() {}"};
    desc.name = "source", desc.cycles = 7, desc.pto = &pto;
    const ptowsp_kernel source = ptowsp_kernel_make(m, &desc);
    desc.name = "filed", desc.pto = NULL;
    desc.source.file = "filed.c";
    const ptowsp_kernel filed = ptowsp_kernel_make(m, &desc);
    sum.name = "sum", sum.kind = PTOWSP_ALL_REDUCE, sum.dtype = PTOWSP_F32;
    const ptowsp_kernel collective = ptowsp_kernel_collective(m, &sum);
    tensor.name = "x", tensor.dtype = PTOWSP_F32, tensor.rank = 2;
    tensor.shape[0] = tensor.shape[1] = 8;
    const ptowsp_tensor x = ptowsp_tensor_make(m, &tensor);
    PTOWSP_WORKLOAD(m, "w") {
        task.kernel = source;
        ptowsp_task_make(m, &task);
        task.kernel = filed;
        ptowsp_task_make(m, &task);
        task.kernel = collective;
        task.views[0].tensor = x;
        task.views[0].rows = task.views[0].cols = 8;
        ptowsp_task_make(m, &task);
    }
    test_ok(f->context, ptowsp_program_create(f->context, m, NULL, &f->program));
    assert_ok(ptowsp_run_create(f->context, f->program, &f->run));
    decisions_of(f);
    static const char *const lines[] = {
        "  compile  kernel source: a PTO-ISA source; 7 cycles\n",
        "  compile  kernel filed: time only; 7 cycles\n",
        "  compile  kernel sum: all_reduce; the links say how long it takes\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        has(lines[i]);
    }
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
