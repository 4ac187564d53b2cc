// Soak cases of pipelines: memory that is refused while they are built and run.

#include "soak.h"

#include "pipeline_check.h"
#include "pipeline_random.h"

enum { ROUNDS = 4 };

void soak_run_pipeline(uint64_t seed) {
    uint64_t random = seed;
    sim_sample *s = sim_sample_random(test_random(&random), 0);
    sim_sample_build(s);
    const ptowsp_status compiled = sim_has_loose_channel(&s->p) ? PTOWSP_STUCK : PTOWSP_OK;
    assert_int_equal(s->built.status, compiled);
    for (int i = 0; i < ROUNDS && compiled == PTOWSP_OK; i++) {
        ptowsp_run *run = NULL;
        assert_ok(ptowsp_run_create(s->context, s->built.program, &run));
        sim_bind(&s->built, &s->b, run);
        // The first execution is the one that allocates.
        const bool is_refused = test_random(&random) % 4 != 0;
        s->memory.refuse_at =
            is_refused ? s->memory.allocations + (size_t)test_random_in(&random, 1, 12) : 0;
        ptowsp_status status = sim_sample_execute(s, run, PTOWSP_RUN_EXECUTE, true);
        const bool has_ended = status == PTOWSP_OUT_OF_MEMORY;
        s->memory.refuse_at = 0;
        soak_count(is_refused ? SOAK_BY_memory : SOAK_BY_none, has_ended);
        assert_true(!has_ended || is_refused);
        if (!has_ended) {
            sim_check_status(s, run, status);
            sim_check_calls(s, run);
            sim_check_steps(s, run);
        }
        sim_check_status(s, run, sim_sample_execute(s, run, PTOWSP_RUN_EXECUTE, true));
        sim_check_calls(s, run);
        sim_check_steps(s, run);
        ptowsp_run_destroy(run);
    }
    sim_sample_free(s);
}
