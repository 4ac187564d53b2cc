// Random tile kernels (kernel_random.h), lowered, run and compared; with and without fusion, full
// and cut off, on both machines.

#include "kernel_random.h"

// Returns how many elements were compared.
static uint64_t random_kernel(kt_config config, bool is_exact) {
    kt t = random_kernel_begin(config, is_exact);
    uint64_t compared = 0;
    kt_lower(&t);
    if (kt_execute(&t) != PTOWSP_OK) {
        kt_complain(&t);
        fail_msg("%s", ptowsp_context_error(t.context).text);
    }
    for (uint32_t i = 0; i < t.param_count; i++) {
        kt_compare(&t, &t.params[i]);
    }
    compared = t.compared;
    kt_free(&t);
    return compared;
}

static void play(bool is_exact, int count) {
    uint64_t seed = test_seed() + (is_exact ? 0 : 1000000), compared = 0;
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    const char *only = getenv("PTOWSP_KERNEL");  // the seed of one kernel, as it complains
    for (int i = 0; i < count; i++) {
        uint64_t kernel_seed = test_random(&seed);
        kernel_seed = only ? strtoull(only, NULL, 0) : kernel_seed;
        compared += random_kernel(random_config(kernel_seed, is_exact, &a5), is_exact);
    }
    print_message("%d kernels, %llu elements compared\n", count, (unsigned long long)compared);
}

static void random__exact_kernels_have_the_very_bits(void **state) {
    (void)state;
    play(true, 4000);
}

static void random__all_kernels_are_within_their_bounds(void **state) {
    (void)state;
    play(false, 2500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random__exact_kernels_have_the_very_bits),
        cmocka_unit_test(random__all_kernels_are_within_their_bounds),
    };
    return cmocka_run_group_tests_name("kernel_random", tests, NULL, NULL);
}
