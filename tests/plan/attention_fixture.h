// What the tests of attention plans share: plans whose arrays fit exactly, and a verdict on them by
// the slow reference of attention_judge.h.

#ifndef ATTENTION_FIXTURE_H
#define ATTENTION_FIXTURE_H

#include "attention_judge.h"
#include "test.h"

typedef ptowsp_attention_batch abatch;
typedef ptowsp_attention_config aconfig;
typedef ptowsp_attention_plan aplan;

// A plan whose arrays have exactly the sizes that ptowsp_attention_size says.
static inline aplan plan_make(const abatch *batch, const aconfig *config) {
    ptowsp_attention_sizes sizes;
    ptowsp_plan_info info;
    aplan plan;
    assert_ok(ptowsp_attention_size(batch, config, &sizes, &info));
    void *block = malloc((size_t)sizes.block_bytes);
    assert_ok(ptowsp_attention_place(&sizes, block, sizes.block_bytes, &plan));
    ptowsp_status status = ptowsp_attention_generate(batch, config, &plan, &info);
    assert_ok(status);
    assert_int_equal(plan.unit_count, sizes.unit_count);
    assert_int_equal(plan.merge_count, sizes.merge_count);
    assert_int_equal(plan.slot_count, sizes.slot_count);
    assert_int_equal(plan.slot_rows, sizes.slot_rows);
    return plan;
}

static inline void plan_free(aplan *plan) {
    free(plan->units);
}

// Holds a plan that was made just now against all that section 9 promises.
static inline void plan_check(const abatch *batch, const aconfig *config, const aplan *plan) {
    const reference_verdict verdict = reference_judge(batch, config, plan, NULL);
    if (verdict.grade != REFERENCE_GOOD) {
        fail_msg("%s", verdict.text);
    }
    ptowsp_plan_info info;
    assert_ok(ptowsp_attention_check(batch, config, plan, &info));
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
}

#endif
