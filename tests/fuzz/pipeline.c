// A libFuzzer target: bytes are a pipeline, its bindings and what is around it. Status, times,
// statistics, calls and steps are those of the slow reference of pipeline_reference.h: executed, only
// timed, recorded, once more, and bound anew.

#include "choices.h"

#include "pipeline_check.h"
#include "pipeline_random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint64_t seed = choices_begin(data, size);
    sim_sample *s = sim_sample_random(seed, 0);
    sim_sample_build(s);
    ptowsp_status compiled = sim_has_loose_channel(&s->p) ? PTOWSP_STUCK : PTOWSP_OK;
    if (s->built.status != compiled) {
        sim_complain(s, NULL, compiled == PTOWSP_OK ? "it does not compile" : "it compiles");
    }
    if (compiled == PTOWSP_OK) {
        uint64_t random = seed;
        ptowsp_run *run = NULL;
        REQUIRE(ptowsp_run_create(s->context, s->built.program, &run) == PTOWSP_OK);
        sim_bind(&s->built, &s->b, run);
        sim_check_runs(s, run);
        sim_bindings before = s->b;
        sim_bindings_random(&s->p, &random, &s->b);
        s->b.has_latency = s->b.has_latency || before.has_latency;  // once bound it stays
        if (sim_sample_expect(s)) {
            sim_bind(&s->built, &s->b, run);
            sim_check_status(s, run, sim_sample_execute(s, run, PTOWSP_RUN_EXECUTE, true));
            sim_check_calls(s, run);
            sim_check_steps(s, run);
        }
        ptowsp_run_destroy(run);
    }
    sim_sample_free(s);
    return 0;
}
