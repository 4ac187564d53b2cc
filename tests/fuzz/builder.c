// A libFuzzer target: bytes are the calls that build a program of every statement, its bindings and
// its schedule. It runs as the slow reference of workload_reference.h says: on one lane, on two and on
// four, only timed, and saved and loaded again.

#include "choices.h"

#include "program_ways.h"

enum { SAVED_MAX = 1 << 20 };

static void run_saved(sample *s, const outcome *first) {
    static char saved[SAVED_MAX];
    ptowsp_schedule schedule;
    ptowsp_program *loaded = NULL;
    ptowsp_run *run = NULL;
    sample_kernels kernels;
    const ptowsp_parse_desc attached = sample_attach(s, &kernels);
    const ptowsp_program_desc desc = sample_desc(s, &s->module, &schedule);
    ptowsp_output_buffer buffer = {saved, SAVED_MAX, 0};
    REQUIRE(ptowsp_program_save(s->context, s->module.module, &desc,
                                ptowsp_output_to_buffer(&buffer)) == PTOWSP_OK);
    REQUIRE(buffer.length < SAVED_MAX);
    if (ptowsp_program_load(s->context, saved, buffer.length, &attached, &loaded, NULL) !=
        PTOWSP_OK) {
        fail_msg("%s\n%s", ptowsp_context_error(s->context).text, saved);
    }
    REQUIRE(ptowsp_run_create(s->context, loaded, &run) == PTOWSP_OK);
    sample_expect(s);
    check_same(s, first, run, check_execution(s, run), "what was saved differs");
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(loaded);
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
        run_saved(s, first);
        free(first);
        ptowsp_run_destroy(run);
        ptowsp_program_destroy(program);
    } else if (status != PTOWSP_STUCK || s->expected.status != PTOWSP_STUCK) {
        complain(s, NULL, -1, "the program is refused");
    }
    sample_free(s);
    return 0;
}
