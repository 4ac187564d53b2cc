// Random tile kernels (kernel_random.h) as emitted C++ against the library (npu_kernel_compare.h).

#include "kernel_random.h"
#include "npu_kernel_compare.h"

static void play(bool is_a5, uint32_t kernels, const char *options) {
    if (!npu_compiler()) {
        print_message("there is no C++ compiler: skipped\n");
        return;
    }
    static batch b;
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    const char *only = getenv("PTOWSP_KERNEL");
    uint64_t seed = test_seed() + is_a5;
    b.is_a5 = is_a5;
    for (uint32_t i = 0; i < kernels; i++) {
        uint64_t kernel_seed = test_random(&seed);
        kernel_seed = only ? strtoull(only, NULL, 0) : kernel_seed;
        kt_config config = random_config(kernel_seed, i % 2, &a5);
        config.machine = is_a5 ? &a5 : NULL;
        kt t = random_kernel_begin(config, i % 2);
        kt_lower(&t);
        batch_add(&b, &t);
    }
    batch_play(&b, options);
}

static void emitted_kernels__are_those_of_the_library_on_a2a3(void **state) {
    (void)state;
    play(false, 28, "-std=c++17 -O1");
}

static void emitted_kernels__are_those_of_the_library_on_a5(void **state) {
    (void)state;
    play(true, 14, "-std=c++20 -O1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emitted_kernels__are_those_of_the_library_on_a2a3),
        cmocka_unit_test(emitted_kernels__are_those_of_the_library_on_a5),
    };
    return cmocka_run_group_tests_name("npu_kernel", tests, NULL, NULL);
}
