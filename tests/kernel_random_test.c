// Random tile kernels (kernel_random.h), lowered, run and compared; with and without fusion, full
// and cut off, on both machines.

#include "kernel_random.h"

// What kernels there were.
typedef struct seen {
    uint64_t elements;
    uint32_t kernels, looped, mixed, split, halves, bytes;  // halves: with bf16; bytes: with i8
} seen;

static void look(seen *s, const kt *t) {
    ptowsp_kernel_info info = ptowsp_program_kernel_at(t->program, 1);
    bool has_half = false, has_byte = false;
    for (uint32_t i = 1; i < info.tile_object_count; i++) {
        uint32_t dtype = ptowsp_program_tile_at(t->program, 1, i).dtype;
        has_half = has_half || dtype == PTOWSP_BF16;
        has_byte = has_byte || dtype == PTOWSP_I8;
    }
    s->elements += t->compared;
    s->kernels++;
    s->looped += info.loop_count > 0;
    s->mixed += info.is_mixed;
    s->split += info.is_split;
    s->halves += has_half;
    s->bytes += has_byte;
}

static void random_kernel(kt_config config, bool is_exact, seen *s) {
    kt t = random_kernel_begin(config, is_exact);
    kt_lower(&t);
    if (kt_execute(&t) != PTOWSP_OK) {
        kt_complain(&t);
        fail_msg("%s", ptowsp_context_error(t.context).text);
    }
    for (uint32_t i = 0; i < t.param_count; i++) {
        kt_compare(&t, &t.params[i]);
    }
    look(s, &t);
    kt_free(&t);
}

static void play(bool is_exact, uint32_t count) {
    uint64_t seed = test_seed() + (is_exact ? 0 : 1000000);
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    const char *only = getenv("PTOWSP_KERNEL");  // the seed of one kernel, as it complains
    seen s;
    memset(&s, 0, sizeof s);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t kernel_seed = test_random(&seed);
        kernel_seed = only ? strtoull(only, NULL, 0) : kernel_seed;
        random_kernel(random_config(kernel_seed, is_exact, &a5), is_exact, &s);
    }
    print_message("%u kernels: %u with loops, %u mixed (%u split), %u with bf16, %u with i8; %llu "
                  "elements compared\n",
                  s.kernels, s.looped, s.mixed, s.split, s.halves, s.bytes,
                  (unsigned long long)s.elements);
    if (!only && count >= 100) {
        assert_met(s.looped > count / 10 && s.mixed > count / 10 && s.halves > count / 10 &&
                   s.bytes > count / 20);
    }
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
