// A libFuzzer target: bytes are the calls that build a program of every statement, its bindings and
// its schedule. It runs as the slow reference of workload_reference.h says: on one lane, on two and on
// four, only timed, and saved and loaded again.

#include "choices.h"

#include "program_ways.h"

static void run_saved(sample *s, const ptowsp_program *program, const outcome *first) {
    ptowsp_program *loaded = sample_reload(s, program);
    ptowsp_run *run = test_run_of(s->context, loaded);
    sample_expect(s);
    check_same(s, first, run, check_execution(s, run), "what was saved differs");
    test_destroy(run, loaded, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    sample *s = sample_make(choices_begin(data, size), 0);
    sample_schedule(s, 0);
    sample_expect(s);
    ptowsp_status status = sample_compile(s, &s->module, &program);
    if (status == PTOWSP_OK) {
        REQUIRE(ptowsp_run_create(s->context, program, &run) == PTOWSP_OK);
        status = check_execution(s, run);
        outcome *first = outcome_of(run, status);
        run_on_lanes(s, program, 2, first);
        run_on_lanes(s, program, 4, first);
        run_timed(s, run, first);
        run_saved(s, program, first);
        free(first);
        ptowsp_run_destroy(run);
        ptowsp_program_destroy(program);
    } else if (status != PTOWSP_STUCK || s->expected.status != PTOWSP_STUCK) {
        complain(s, NULL, -1, "the program is refused");
    }
    sample_free(s);
    return 0;
}
