// Kernels with loops as emitted C++ against the library (npu_kernel_compare.h).

#define _POSIX_C_SOURCE 200809L

#include "kernel_loop.h"
#include "npu_kernel_compare.h"

static void add(batch *b, lp_scene scene, int which, uint64_t seed, bool is_a5) {
    static ptowsp_machine a5;
    a5 = ptowsp_machine_950pr();
    kt_config config = kt_any(seed);
    config.is_partial = seed % 2 != 0;
    config.strides = (kt_strides)(seed / 2 % 4);
    config.machine = is_a5 ? &a5 : NULL;
    config.low = -1;
    config.high = 1;
    kt t = kt_begin(config);
    scene(&t, true, which);
    lp_lower(&t);
    batch_add(b, &t);
}

static void play(bool is_a5, const char *options) {
    if (!npu_compiler()) {
        print_message("there is no C++ compiler: skipped\n");
        return;
    }
    static batch b;
    uint64_t seed = test_seed() + is_a5;
    b.is_a5 = is_a5;
    for (int which = 0; which < 5; which++) {
        add(&b, lp_matmul, which, test_random(&seed), is_a5);
        add(&b, lp_rows, which, test_random(&seed), is_a5);
        add(&b, lp_attention, which, test_random(&seed), is_a5);
        add(&b, lp_nested, (int)(test_random(&seed) % 16), test_random(&seed), is_a5);
    }
    for (int which = 0; which < 12; which++) {
        add(&b, which < 4 ? lp_cache : lp_random, which, test_random(&seed), is_a5);
    }
    batch_play(&b, options);
}

static void emitted_loops__are_those_of_the_library_on_a2a3(void **state) {
    (void)state;
    play(false, "-std=c++17 -O0");
}

static void emitted_loops__are_those_of_the_library_on_a5(void **state) {
    (void)state;
    play(true, "-std=c++20 -O0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emitted_loops__are_those_of_the_library_on_a2a3),
        cmocka_unit_test(emitted_loops__are_those_of_the_library_on_a5),
    };
    return cmocka_run_group_tests_name("npu_loop", tests, NULL, NULL);
}
