// Attention plans that are taken on by a step. An updated plan has INVALID units and merges where
// sequences ended, and gaps in its slots; without these it has to be a plan of the batch like any
// other.

#include "attention_reference.h"

// A copy of a plan in arrays of its own.
static aplan plan_copy(const aplan *plan) {
    aplan copy = *plan;
    const ptowsp_attention_sizes sizes = {plan->unit_capacity, plan->merge_capacity,
                                          plan->slot_capacity, plan->slot_rows,
                                          plan->lane_count,    0};
    const uint64_t bytes = UINT64_C(24) * (sizes.unit_count + sizes.merge_count) +
                           UINT64_C(16) * (sizes.lane_count + 1);
    void *block = malloc((size_t)bytes);
    assert_int_equal(ptowsp_attention_place(&sizes, block, bytes, &copy), PTOWSP_OK);
    memcpy(copy.units, plan->units, plan->unit_capacity * sizeof *plan->units);
    memcpy(copy.merges, plan->merges, plan->merge_capacity * sizeof *plan->merges);
    memcpy(copy.unit_begin, plan->unit_begin, (plan->lane_count + 1) * sizeof(uint32_t));
    memcpy(copy.merge_begin, plan->merge_begin, (plan->lane_count + 1) * sizeof(uint32_t));
    memcpy(copy.lane_costs, plan->lane_costs, plan->lane_count * sizeof(double));
    copy.unit_count = plan->unit_count;
    copy.merge_count = plan->merge_count;
    copy.slot_count = plan->slot_count;
    copy.tile_count = plan->tile_count;
    copy.lane_count = plan->lane_count;
    copy.tile_tokens = plan->tile_tokens;
    copy.group = plan->group;
    copy.slot_rows = plan->slot_rows;
    copy.cost_max = plan->cost_max;
    copy.cost_mean = plan->cost_mean;
    return copy;
}

// The plan without what is INVALID, and with slots that are numbered anew.
static aplan plan_compact(const aplan *plan) {
    aplan copy = plan_copy(plan);
    const ptowsp_work none = ptowsp_work_of(PTOWSP_NO_SLOT, 0, PTOWSP_WORK_INVALID, 0, 0, 0, 0);
    copy.unit_count = copy.merge_count = copy.slot_count = 0;
    for (uint32_t lane = 0; lane < plan->lane_count; lane++) {
        for (uint32_t i = plan->unit_begin[lane]; i < plan->unit_begin[lane + 1]; i++) {
            if (ptowsp_work_is_valid(&plan->units[i])) {
                ptowsp_work *unit = &copy.units[copy.unit_count++];
                *unit = plan->units[i];
                unit->work_id = ptowsp_work_is_whole(unit) ? PTOWSP_NO_SLOT : copy.slot_count++;
            }
        }
        copy.unit_begin[lane + 1] = copy.unit_count;
    }
    uint32_t slot = 0;
    for (uint32_t lane = 0; lane < plan->lane_count; lane++) {
        for (uint32_t i = plan->merge_begin[lane]; i < plan->merge_begin[lane + 1]; i++) {
            if (ptowsp_work_is_valid(&plan->merges[i])) {
                ptowsp_work *merge = &copy.merges[copy.merge_count];
                *merge = plan->merges[i];
                assert_int_equal(merge->work_id, i);
                merge->work_id = copy.merge_count++;
                merge->params[2] = slot;
                slot += merge->params[3];
            }
        }
        copy.merge_begin[lane + 1] = copy.merge_count;
    }
    for (uint32_t i = copy.unit_count; i < copy.unit_capacity; i++) {
        copy.units[i] = none;
    }
    for (uint32_t i = copy.merge_count; i < copy.merge_capacity; i++) {
        copy.merges[i] = none;
    }
    return copy;
}

// The same plan with room for any of its batch, so that an update writes at once.
static aplan plan_roomy(const aplan *plan, const random_case *r) {
    const uint64_t lanes = plan->lane_count, more = plan->unit_count + lanes;
    const ptowsp_attention_sizes sizes = {more, more, 2 * more, plan->slot_rows, plan->lane_count,
                                          0};
    const uint64_t bytes = 48 * more + 16 * (lanes + 1);
    aplan roomy;
    void *block = malloc((size_t)bytes);
    assert_int_equal(ptowsp_attention_place(&sizes, block, bytes, &roomy), PTOWSP_OK);
    assert_int_equal(ptowsp_attention_generate(&r->batch, &r->config, &roomy, NULL), PTOWSP_OK);
    assert_int_equal(roomy.unit_count, plan->unit_count);
    return roomy;
}

// Lets sequences grow, and some end.
static void case_step(uint64_t *random, random_case *r, uint32_t growth, uint32_t one_ends_in) {
    for (uint32_t i = 0; i < r->batch.sequence_count; i++) {
        if (r->kv[i] > 0) {
            r->kv[i] += (int32_t)random_up_to(random, growth);
        }
        if (random_one_in(random, one_ends_in)) {
            r->kv[i] = 0;
        }
    }
}

static void attention_update__steps_give_plans_of_the_batch(void **state) {
    (void)state;
    uint64_t random = test_seed();
    uint32_t kept = 0, anew = 0;
    for (int round = 0; TEST_ROUNDS(round, 3000); round++) {
        random_case r;
        random_case_make(&random, &r);
        aplan plan = plan_make(&r.batch, &r.config);
        if (random_one_in(&random, 2)) {
            const aplan exact = plan;
            plan = plan_roomy(&exact, &r);
            free(exact.units);
        }
        const uint32_t growth = random_one_in(&random, 2) ? 1 : 20;
        for (int step = 0; step < 5; step++) {
            case_step(&random, &r, growth, random_one_in(&random, 2) ? 10 : 1000);
            const aplan before = plan_copy(&plan);
            ptowsp_attention_change change = {true, -1};
            ptowsp_plan_info info;
            const double gain_max = random_one_in(&random, 2) ? 0 : INFINITY;
            const ptowsp_status status = ptowsp_attention_update(&r.batch, &r.config, NULL, 0,
                                                                 gain_max, &plan, &change, &info);
            if (status == PTOWSP_BUFFER_OVERFLOW) {
                assert_memory_equal(before.units, plan.units,
                                    plan.unit_capacity * sizeof *plan.units);
                free(before.units);
                break;
            }
            assert_int_equal(status, PTOWSP_OK);
            assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
            assert_int_equal(info.work_count, plan.unit_count);
            assert_true(change.gain >= 0 && change.gain <= (gain_max > 0 ? 1 : 0.1));
            assert_int_equal(ptowsp_attention_check(&r.batch, &r.config, &plan, &info), PTOWSP_OK);
            aplan compact = plan_compact(&plan);
            compact.slot_rows = change.is_new ? plan.slot_rows : 0;
            ref_check(&r.batch, &r.config, &compact);
            if (change.is_new) {
                anew++;
                aplan fresh = plan_make(&r.batch, &r.config);
                assert_int_equal(fresh.unit_count, plan.unit_count);
                assert_memory_equal(fresh.units, plan.units, fresh.unit_count * sizeof *plan.units);
                plan_free(&fresh);
            } else {
                kept++;
                assert_int_equal(before.unit_count, plan.unit_count);
                assert_memory_equal(before.unit_begin, plan.unit_begin,
                                    (plan.lane_count + 1) * sizeof(uint32_t));
            }
            plan_free(&compact);
            free(before.units);
        }
        plan_free(&plan);
    }
    print_message("kept %u times, planned anew %u times\n", kept, anew);
    assert_true(kept > 0 && anew > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_update__steps_give_plans_of_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
