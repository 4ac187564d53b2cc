// A libFuzzer target: bytes are the calls that build a program of every statement, its bindings and its
// schedule, as in builder.c. It runs on one lane, on two and on four, only timed, and as the source
// tree that is emitted of it, compiled and loaded, with several numbers of cores and threads: all leave
// the same bytes, slots, numbers of tasks and cycles, or the same error. A tree takes seconds.

#define _POSIX_C_SOURCE 200809L

#include "choices.h"

#include "npu_equal_sample.h"
#include "program_ways.h"

static void end_cache(void) {
    npu_cache_end(NULL);
}

// Twice, with other bindings: sizes, lengths, symbols, arrays and data are not compiled in.
static void run_tree(sample *s, const ptowsp_program *program, ptowsp_run *run,
                     const outcome *first) {
    static bool has_cache;
    static unsigned input;
    (void)first;
    if (!npu_sample_is_supported(s, program)) {
        return;
    }
    if (!has_cache) {
        REQUIRE(npu_cache_begin(NULL) == 0);
        REQUIRE(atexit(end_cache) == 0);
        has_cache = true;
    }
    npu_doing("input", input++);
    ptowsp_npu *npu = npu_tree_build(s->context, program);
    if (!npu) {
        return;  // NPU_EQUAL_TREES: it is only written
    }
    npu_compare_sample(s, run, npu, 1);
    sample_rebind(s);
    npu_compare_sample(s, run, npu, 2);
    ptowsp_npu_destroy(npu);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run_input(data, size, run_tree);
    return 0;
}
