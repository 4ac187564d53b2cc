// Soak cases of plans: prefix trees and plans of random requests, run on threads that may not start.

#include "soak.h"

#include "prefix_judge.h"

void soak_run_plan(uint64_t seed) {
    uint64_t random = seed;
    soak_memory memory;
    sample s;
    ptowsp_plan_info info;
    sample_make(&s, test_random(&random), REQUESTS);
    assert_ok(ptowsp_prefix_build(&s.batch, &s.tree, &info));
    require_tree(&s, &s.tree, s.count);
    planned p = plan_make(&s);
    require_numbers(&s, &p.plan);
    ptowsp_context *context = soak_context(&memory, test_random_u32(&random, 1, 8), &random);
    for (uint64_t way = 0; way < RUN_WAYS; way++) {
        plan_run run;
        run_make(&run, &s, &p.plan.attention, &p.plan);
        run_plan(&run, way, context);
        require_met(&run);
        require_outputs(&run);
        run_free(&run);
        soak_count(SOAK_BY_none, false);
    }
    soak_context_end(context, &memory);
    free(p.block);
    free(s.block);
}
