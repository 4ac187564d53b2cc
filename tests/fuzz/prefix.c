// A libFuzzer target: bytes are requests that share blocks, and a configuration. The tree is held
// against all pairs of requests, built at once and by adding and removing; the plan is counted, run
// on one lane, as two workers or on three threads, and compared with plain softmax in double.

#include "choices.h"

#include "prefix_judge.h"

static void build_by_adding(const sample *s, uint64_t seed, const uint8_t *data, size_t size) {
    sample t;
    ptowsp_plan_info info;
    uint32_t present = 0;
    choices_begin(data, size);
    sample_make(&t, seed, REQUESTS);
    t.tree.is_ordered = s->tree.is_ordered;
    for (uint32_t r = 0; r < t.count; r++) {
        require(&t, ptowsp_prefix_add(&t.batch, r, &t.tree, &info) == PTOWSP_OK);
        require_tree(&t, &t.tree, ++present);
        if (!t.tree.is_ordered && sample_in(&t, 0, 2) == 0) {
            const uint32_t gone = sample_in(&t, 0, r);
            require(&t, ptowsp_prefix_remove(gone, &t.tree, &info) == PTOWSP_OK);
            require_tree(&t, &t.tree, present - 1);
            require(&t, ptowsp_prefix_add(&t.batch, gone, &t.tree, &info) == PTOWSP_OK);
        }
    }
    require_tree(&t, &t.tree, s->count);
    require(&t, t.tree.node_count == s->tree.node_count);
    free(t.block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static ptowsp_context *threads;
    if (!threads) {
        ptowsp_context_desc desc = test_lanes_desc(3);
        REQUIRE(ptowsp_context_create(&desc, &threads) == PTOWSP_OK);
    }
    sample s;
    const uint64_t seed = choices_begin(data, size);
    sample_make(&s, seed, REQUESTS);
    const uint64_t way = test_random(&s.random) % RUN_WAYS;
    s.tree.is_ordered = test_random(&s.random) % 4 == 0;
    ptowsp_plan_info info;
    REQUIRE(ptowsp_prefix_build(&s.batch, &s.tree, &info) == PTOWSP_OK);
    require_tree(&s, &s.tree, s.count);
    build_by_adding(&s, seed, data, size);
    planned p = plan_make(&s);
    require_numbers(&s, &p.plan);
    plan_run run;
    run_make(&run, &s, &p.plan.attention, &p.plan);
    run_plan(&run, way, threads);
    require_met(&run);
    require_outputs(&run);
    run_free(&run);
    free(p.block);
    free(s.block);
    return 0;
}
