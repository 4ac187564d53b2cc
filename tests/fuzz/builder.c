// A libFuzzer target: bytes are the calls that build a program of every statement, its bindings and
// its schedule. It runs as the slow reference of workload_reference.h says: on one lane, on two and on
// four, only timed, and saved and loaded again.

#include "choices.h"

#include "program_ways.h"

static void run_saved(sample *s, const ptowsp_program *program, ptowsp_run *unsaved,
                      const outcome *first) {
    (void)unsaved;
    ptowsp_program *loaded = sample_reload(s, program);
    ptowsp_run *run = test_run_of(s->context, loaded);
    sample_expect(s);
    check_same(s, first, run, check_execution(s, run), "what was saved differs");
    test_destroy(run, loaded, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run_input(data, size, run_saved);
    return 0;
}
