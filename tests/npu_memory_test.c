// Emitting where memory is out: every allocation is refused once, for programs of all kinds. The tree is
// the same after that, or there is none.

#define _POSIX_C_SOURCE 200809L

#include "npu_refuse.h"

#include "kernel_loop.h"
#include "kernel_reference.h"
#include "npu_calls.h"

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

static void memory__of_kernels_may_be_refused_at_every_point(void **state) {
    (void)state;
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    sweep_halves(NULL);
    sweep_halves(&a5);
    sweep_loop(NULL, lp_attention, 1);
    sweep_loop(NULL, lp_nested, 5);
    sweep_loop(&a5, lp_rows, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory__of_kernels_may_be_refused_at_every_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
