// A libFuzzer target: bytes are a tile kernel, which is built three times: plain, fused, and for a
// machine with small memories, where it may be refused. Each computes what the interpreter of
// kernel_fixture.h does, in double with a bound of the error or to the very bits, and leaves all
// other memory as it was: rows and columns around its tiles, and what is between strides.

#include "choices.h"

#define RANDOM_IS_REPEATED(is_repeated) (choices_are_held = (is_repeated))
#include "kernel_random.h"

typedef enum way { PLAIN, FUSED, SMALL, WAY_COUNT } way;

// A machine with a share of each memory, in units of 8 KiB.
static ptowsp_machine small_machine(const ptowsp_machine *machine, uint32_t share) {
    ptowsp_machine small = *machine;
    for (int i = 0; i < PTOWSP_MEMORY_COUNT; i++) {
        const uint32_t units = small.memory_bytes[i] / 8192 * share / 16;
        if (small.memory_bytes[i] > 0 && units >= 2) {
            small.memory_bytes[i] = units * 8192;
        }
    }
    return small;
}

static kt build(const uint8_t *data, size_t size, way w, const ptowsp_machine *machines) {
    uint64_t state = choices_begin(data, size);
    const bool is_exact = test_random(&state) % 2;
    kt_config config = random_config(test_random(&state), is_exact, &machines[0]);
    config.is_fused = w == FUSED;
    if (w == SMALL) {
        config.machine = config.machine ? &machines[1] : &machines[2];
    }
    return random_kernel_begin(config, is_exact);
}

// Ends the kernel, and says whether it was refused, as it does not fit.
static bool is_too_large(const uint8_t *data, size_t size, const ptowsp_machine *machines) {
    kt t = build(data, size, SMALL, machines);
    ptowsp_kernel_end(t.k);
    const ptowsp_error error = ptowsp_module_error(t.m);
    REQUIRE(error.status == PTOWSP_OK || error.status == PTOWSP_LIMIT_EXCEEDED);
    REQUIRE(error.status == PTOWSP_OK || strstr(error.text, "kernel k") != NULL);
    kt_free(&t);
    return error.status != PTOWSP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint32_t share = size > 2 ? 1 + data[2] % 15 : 8;
    const ptowsp_machine a3 = ptowsp_machine_910b(), a5 = ptowsp_machine_950pr();
    const ptowsp_machine machines[3] = {a5, small_machine(&a5, share), small_machine(&a3, share)};
    for (int w = 0; w < WAY_COUNT; w++) {
        if (w == SMALL && is_too_large(data, size, machines)) {
            continue;
        }
        kt t = build(data, size, (way)w, machines);
        kt_lower(&t);
        if (kt_execute(&t) != PTOWSP_OK) {
            kt_complain(&t);
            fail_msg("%s", ptowsp_context_error(t.context).text);
        }
        for (uint32_t i = 0; i < t.param_count; i++) {
            kt_compare(&t, &t.params[i]);
        }
        kt_free(&t);
    }
    return 0;
}
