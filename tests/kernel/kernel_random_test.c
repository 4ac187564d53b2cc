// Random tile kernels (kernel_random.h), lowered, run and compared; with and without fusion, full
// and cut off, on both machines. Some are built again the other way about fusion, and for a machine
// that has hardly the memories that they used: then loops have no room for two buffers, or the kernel
// is refused as it does not fit.

#include "kernel_random.h"

// What kernels there were.
typedef struct seen {
    uint64_t elements;
    uint32_t kernels, looped, nested, stored, mixed, split;  // stored: to parts, in loops
    uint32_t halves, bytes;                                  // with bf16; with i8
    uint32_t small, refused;                                 // built again; as it does not fit
} seen;

static void look(seen *s, const kt *t) {
    ptowsp_kernel_info info = ptowsp_program_read(t->program)->kernels[1];
    bool has_half = false, has_byte = false, has_nested = false, has_stored = false;
    for (uint32_t i = 1; i < info.tile_object_count; i++) {
        uint32_t dtype = ptowsp_program_read(t->program)->kernels[1].objects[i].dtype;
        has_half = has_half || dtype == PTOWSP_BF16;
        has_byte = has_byte || dtype == PTOWSP_I8;
    }
    for (uint32_t i = 1; i <= info.loop_count; i++) {
        has_nested = has_nested || ptowsp_program_read(t->program)->kernels[1].loops[i].parent != 0;
    }
    for (uint32_t i = 0; i < info.insn_count; i++) {
        ptowsp_insn_info insn = ptowsp_program_read(t->program)->kernels[1].insns[i];
        has_stored = has_stored || (insn.op == PTOWSP_OP_TSTORE && insn.row_loop);
    }
    s->elements += t->compared;
    s->kernels++;
    s->looped += info.loop_count > 0;
    s->nested += has_nested;
    s->stored += has_stored;
    s->mixed += info.is_mixed;
    s->split += info.is_split;
    s->halves += has_half;
    s->bytes += has_byte;
}

// Runs a kernel and compares. Tells what memories it used; false if it does not fit.
static bool random_kernel(kt_config config, bool is_exact, bool is_small, seen *s,
                          ptowsp_machine *out_used) {
    kt t = random_kernel_begin(config, is_exact);
    if (is_small) {
        t.kernel = ptowsp_kernel_end(t.k);
        ptowsp_error error = ptowsp_module_error(t.m);
        if (error.status != PTOWSP_OK) {
            if (error.status != PTOWSP_LIMIT_EXCEEDED || !strstr(error.text, "rule: memories")) {
                kt_complain(&t);
                fail_msg("%s", error.text);
            }
            s->refused++;
            kt_free(&t);
            return false;
        }
    } else {
        kt_lower(&t);
    }
    if (kt_execute(&t) != PTOWSP_OK) {
        kt_complain(&t);
        fail_msg("%s", ptowsp_context_error(t.context).text);
    }
    for (uint32_t i = 0; i < t.param_count; i++) {
        kt_compare(&t, &t.params[i]);
    }
    ptowsp_kernel_info info = ptowsp_program_read(t.program)->kernels[1];
    *out_used = info.machine;
    memcpy(out_used->memory_bytes, info.memory_bytes, sizeof info.memory_bytes);
    look(s, &t);
    kt_free(&t);
    return true;
}

// A kernel as it is; some the other way about fusion, and with less and less memory.
static void random_ways(kt_config config, bool is_exact, bool is_all, seen *s) {
    ptowsp_machine used, ignored;
    assert_true(random_kernel(config, is_exact, false, s, &used));
    if (!is_all) {
        return;
    }
    kt_config other = config;
    other.machine = &used;
    s->small += 2;
    assert_true(random_kernel(other, is_exact, true, s, &ignored));  // no less than it used
    const uint32_t parts[] = {UINT32_MAX, 8, 3};
    for (int i = 0; i < PTOWSP_MEMORY_COUNT; i++) {
        uint32_t less = used.memory_bytes[i] / parts[config.seed % 3] / 32 * 32;
        used.memory_bytes[i] -= less ? less : used.memory_bytes[i] ? 32 : 0;
    }
    random_kernel(other, is_exact, true, s, &ignored);
    other = config;
    other.is_fused = !config.is_fused;
    random_kernel(other, is_exact, false, s, &ignored);
}

static void play(bool is_exact, uint32_t count) {
    uint64_t seed = test_seed() + (is_exact ? 0 : 1000000);
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    const char *only = getenv("PTOWSP_KERNEL");  // the seed of one kernel, as it complains
    seen s = {0};
    for (uint32_t i = 0; i < count; i++) {
        uint64_t kernel_seed = test_random(&seed);
        kernel_seed = only ? strtoull(only, NULL, 0) : kernel_seed;
        random_ways(random_config(kernel_seed, is_exact, &a5), is_exact, i % 4 == 0, &s);
    }
    print_message(
        "%u kernels: %u with loops (%u in loops, %u that store), %u mixed (%u split), %u "
        "with bf16, %u with i8; %u in small memories, %u refused; %llu elements compared\n",
        s.kernels, s.looped, s.nested, s.stored, s.mixed, s.split, s.halves, s.bytes, s.small,
        s.refused, (unsigned long long)s.elements);
    if (!only && count >= 100) {
        assert_met(s.looped > count / 10 && s.nested > count / 10 && s.stored > count / 10 &&
                   s.mixed > count / 10 && s.halves > count / 10 && s.bytes > count / 20 &&
                   s.refused > s.small / 20 && s.refused < s.small / 2);
    }
}

TEST(random__exact_kernels_have_the_very_bits) {
    play(true, (uint32_t)test_rounds(2000));
}

TEST(random__all_kernels_are_within_their_bounds) {
    play(false, (uint32_t)test_rounds(1200));
}

// Reads a module; its n-th allocation is refused, if there are so many. Returns how many there are
// up to then.
static size_t read_refused(const char *text, size_t n) {
    const ptowsp_parse_desc desc = {NULL, 0, 1};
    test_memory memory = {0};
    ptowsp_context_desc context_desc = {.resize = test_resize, .resize_user = &memory};
    ptowsp_module *m = NULL;
    ptowsp_context *context = test_context(&context_desc);
    const size_t before = memory.allocations;
    memory.refuse_at = before + n;
    const ptowsp_status status = ptowsp_module_parse(context, text, strlen(text), &desc, &m, NULL);
    const size_t count = memory.allocations - before;
    if (status != (count < n ? PTOWSP_OK : PTOWSP_OUT_OF_MEMORY)) {
        fail_msg("%s", ptowsp_context_error(context).text);
    }
    assert_true(count < n || strstr(ptowsp_context_error(context).text, "out of memory"));
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
    assert_int_equal(memory.live_blocks, 0);
    return count;
}

// Where lists grow depends on the kernel: of many kernels, some allocations of each are refused, so
// that every pass lacks memory at each place that asks for it. Kernels are read from their texts,
// which is faster than building them with what they compute.
TEST(random__any_allocation_may_be_refused) {
    static char text[1 << 18];
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    uint64_t seed = test_seed() + 2000000;
    for (int i = 0; TEST_ROUNDS(i, 150); i++) {
        kt t = random_kernel_begin(random_config(test_random(&seed), i % 2, &a5), i % 2);
        ptowsp_output_buffer buffer = {text, sizeof text, 0};
        kt_lower(&t);
        ptowsp_module_print(t.m, ptowsp_output_to_buffer(&buffer));
        assert_in_range(buffer.length, 1, sizeof text - 1);
        kt_free(&t);
        const size_t count = read_refused(text, SIZE_MAX / 2);
        for (int k = 0; k < 6; k++) {
            read_refused(text, 1 + test_random(&seed) % count);
        }
    }
}
