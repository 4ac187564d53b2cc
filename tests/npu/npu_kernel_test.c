// Random tile kernels (kernel_random.h) as emitted C++ against the library (npu_kernel_compare.h).

#define _POSIX_C_SOURCE 200809L

#include "kernel_random.h"
#include "npu_kernel_compare.h"

static void play(bool is_a5, uint32_t kernels) {
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
    batch_play(&b, is_a5 ? "-std=c++17" : "");
}

TEST(emitted_kernels__are_those_of_the_library_on_a2a3) {
    play(false, 28);
}

TEST(emitted_kernels__are_those_of_the_library_on_a5) {
    play(true, 14);
}

// A machine of the user's own, with more UB than any, and other rates, between two others. It is compiled
// as a user does it.
TEST(emitted_kernels__of_another_machine_have_its_memories_and_rates) {
    static batch b;
    ptowsp_machine large = ptowsp_machine_910b();
    snprintf(large.name, sizeof large.name, "large");
    large.clock_mhz = 1000;
    large.memory_bytes[PTOWSP_MEMORY_UB] = 4u << 20;
    for (int i = 0; i < PTOWSP_PATH_COUNT; i++) {
        large.rates[i] = large.rates[i] / 3 + (uint32_t)i;
    }
    for (int i = 0; i < 3; i++) {
        kt_config config = kt_any(test_seed());
        config.machine = i == 1 ? &large : NULL;
        kt t = kt_begin(config);
        int64_t size = i == 1 ? 512 : 64;
        kt_value x = kt_in(&t, PTOWSP_F32, size, size);
        kt_keep(&t, kt_add(&t, kt_exp(&t, x), x));
        kt_lower(&t);
        batch_add(&b, &t);
    }
    assert_true(ptowsp_program_read(kt_compile(&b.kernels[1]))->kernels[1].memory_bytes[0] >
                1u << 20);
    batch_play(&b, "-O0");
}
