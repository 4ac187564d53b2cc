// Loops in tile kernels: what they compute, against the same kernels unrolled by hand; their trips,
// their errors, and their cycles.

#include "kernel_loop.h"

static void play_all(lp_scene scene, int most) {
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    uint64_t seed = test_seed();
    for (int which = 0; which <= most; which++) {
        for (int way = 0; way < 8; way++) {
            kt_config config = kt_any(test_random(&seed));
            config.is_partial = way % 2 != 0;
            config.strides = (kt_strides)(way % 4);
            config.machine = way / 4 ? &a5 : NULL;
            config.low = -1;
            config.high = 1;
            lp_play(scene, which, config);
        }
    }
}

static void loop__sums_products_over_chunks_of_the_inner_size(void **state) {
    (void)state;
    play_all(lp_matmul, 6);
}

static void loop__carries_values_that_add_up_and_change_places(void **state) {
    (void)state;
    play_all(lp_rows, 6);
}

static void loop__computes_attention_over_chunks_of_keys(void **state) {
    (void)state;
    play_all(lp_attention, 6);
}

static void loop__runs_inside_another(void **state) {
    (void)state;
    play_all(lp_nested, 15);
}

static void loop__random_kernels_are_what_they_are_unrolled(void **state) {
    (void)state;
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    uint64_t seed = test_seed();
    for (int i = 0; TEST_ROUNDS(i, 400); i++) {
        kt_config config = kt_any(test_random(&seed));
        config.strides = (kt_strides)(i % 4);
        config.is_fused = i / 4 % 2 != 0;
        config.machine = i / 8 % 2 ? &a5 : NULL;
        config.low = -1;
        config.high = 1;
        lp_play(lp_random, i, config);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loop__sums_products_over_chunks_of_the_inner_size),
        cmocka_unit_test(loop__carries_values_that_add_up_and_change_places),
        cmocka_unit_test(loop__computes_attention_over_chunks_of_keys),
        cmocka_unit_test(loop__runs_inside_another),
        cmocka_unit_test(loop__random_kernels_are_what_they_are_unrolled),
    };
    return cmocka_run_group_tests_name("kernel_loop", tests, NULL, NULL);
}
