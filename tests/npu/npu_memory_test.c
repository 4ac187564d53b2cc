// Emitting where memory is out: every allocation is refused once, for programs of all kinds. The tree is
// the same after that, or there is none.

#define _POSIX_C_SOURCE 200809L

#include "npu_refuse.h"

#include "kernel_loop.h"
#include "kernel_reference.h"
#include "npu_fixture.h"
#include "npu_texts.h"

static ptowsp_status count_bytes(void *user, const char *path, const char *text, size_t size) {
    (void)path;
    (void)text;
    *(size_t *)user += size;
    return PTOWSP_OK;
}

static size_t emit(ptowsp_context *context, const ptowsp_program *program, ptowsp_status status) {
    size_t size = 0;
    assert_int_equal(ptowsp_npu_emit_files(context, program, count_bytes, &size), status);
    assert_int_equal(hooks.live, 0);
    return size;
}

// Refuses the first allocation, the second, and so on, until there is none left to refuse.
static void sweep(ptowsp_context *context, const ptowsp_program *program) {
    memset(&hooks, 0, sizeof hooks);
    const size_t whole = emit(context, program, PTOWSP_OK), count = hooks.allocations;
    for (size_t n = 1; n <= count; n++) {
        hooks.allocations = 0;
        hooks.refuse_at = n;
        assert_int_equal(emit(context, program, PTOWSP_OUT_OF_MEMORY), 0);
        test_error_is(context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                      "emit: no memory for the tree");
    }
    hooks.refuse_at = 0;
    assert_int_equal(emit(context, program, PTOWSP_OK), whole);
    print_message("%zu allocations\n", count);
}

static kt_config config_of(const ptowsp_machine *machine) {
    kt_config config = kt_any(test_seed());
    config.is_partial = true;
    config.machine = machine;
    config.low = -1;
    config.high = 1;
    return config;
}

// A product and its rows by themselves: cube and vector cores, which A2/A3 has apart.
static void sweep_halves(const ptowsp_machine *machine) {
    kt t = kt_begin(config_of(machine));
    kt_value a = kt_in(&t, PTOWSP_F16, 20, 24), b = kt_in(&t, PTOWSP_F16, 24, 40);
    kt_value x = kt_matmul(&t, a, b);
    x = kt_unary(&t, KT_UNARY_exp, kt_sub(&t, x, kt_rowmax(&t, x)));
    kt_keep(&t, kt_matmul(&t, kt_cvt(&t, x, PTOWSP_F16, PTOWSP_ROUND_NEAREST),
                          kt_in(&t, PTOWSP_F16, 40, 16)));
    kt_lower(&t);
    sweep(t.context, kt_compile(&t));
    kt_free(&t);
}

static void sweep_loop(const ptowsp_machine *machine, lp_scene scene, int which) {
    kt t = kt_begin(config_of(machine));
    scene(&t, true, which);
    lp_lower(&t);
    sweep(t.context, kt_compile(&t));
    kt_free(&t);
}

TEST(memory__of_kernels_may_be_refused_at_every_point) {
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    sweep_halves(NULL);
    sweep_halves(&a5);
    sweep_loop(NULL, lp_attention, 1);
    sweep_loop(NULL, lp_nested, 5);
    sweep_loop(&a5, lp_rows, 2);
}

// -- other programs -------------------------------------------------------------------------------

#define NPU_FIXTURE_TEST(name)                                                                     \
    TEST_MADE(name, npu_fixture, f, npu_fixture_begin(f), npu_fixture_free(f))

static void sweep_text(npu_fixture *f, const ptowsp_parse_kernel *kernels, uint32_t count,
                       const char *text) {
    npu_parse(f, text, kernels, count);
    npu_fixture_compile(f, NULL);
    sweep(f->context, f->program);
}

// C functions in lines and in one line, and a PTO-ISA source with a header.
NPU_FIXTURE_TEST(memory__of_sources_may_be_refused_at_every_point) {
    file_write(textf("%s/one.hpp", f->directory), "int one;\n", 9);
    const ptowsp_pto_source pto = {
        .text = "#include \"one.hpp\"\n#include <cstdint>\nvoid own(float *) {}",
        .include_dirs[0] = f->directory};
    const ptowsp_parse_kernel kernels[] = {
        NPU_SCALE_KERNEL("lines"),
        {.name = "line",
         .fn = npu_scale,
         .source.text = "static ptowsp_cycles scale(const ptowsp_task *t, void *u) { return 7; }",
         .source.fn = "scale"},
        {.name = "own", .pto = &pto}};
    sweep_text(f, kernels, 3, npu_module("sources"));
}

// Loops of each kind, a transient tensor, calls, and a pipeline.
NPU_FIXTURE_TEST(memory__of_statements_may_be_refused_at_every_point) {
    const ptowsp_parse_kernel kernels[] = {NPU_SCALE_KERNEL("scale"), NPU_SCALE_KERNEL("make")};
    sweep_text(f, kernels, 2, npu_module("statements"));
}

// Its sizes of transient tensors are asked for while files are made, and its run is recorded.
NPU_FIXTURE_TEST(memory__of_trees_for_pto_runtime_may_be_refused_at_every_point) {
    float data[2][16 * 8] = {{0}};
    npu_parse(f, npu_module("runtime"), NULL, 0);
    npu_fixture_compile(f, NULL);
    const char *path = textf("%s/tree", f->directory);
    const ptowsp_npu_desc tree = {.directory = path,
                                  .runtime = PTOWSP_NPU_SIMPLER,
                                  .run = test_run_of(f->context, f->program)};
    test_bind(tree.run, "x", data[0]);
    test_bind(tree.run, "y", data[1]);
    memset(&hooks, 0, sizeof hooks);
    for (size_t n = 1;; n++) {
        hooks.allocations = 0;
        hooks.refuse_at = n;
        const ptowsp_status status = ptowsp_npu_emit(f->context, f->program, &tree);
        assert_int_equal(hooks.live, 0);
        if (status == PTOWSP_OK) {
            assert_true(hooks.allocations < n && n > 100);
            break;
        }
        test_error_is(f->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                      "emit: no memory for the tree");
        assert_int_equal(npu_entries(f->directory), 0);
    }
    print_message("%zu allocations\n", hooks.allocations);
    hooks.refuse_at = 0;
    ptowsp_run_destroy(tree.run);
}
