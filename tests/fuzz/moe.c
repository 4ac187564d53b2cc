// A libFuzzer target: bytes are routes of tokens to experts, and counts with a configuration. Sorting
// is compared with a slow stable sort, serial and on lanes; units are walked beside their tokens, and
// the busiest lane is held against the best of all shares. Then the plan is damaged, which the check
// has to find.

#include "choices.h"

#include "moe_sample.h"

static void sort(uint64_t *random) {
    const uint32_t tokens = test_random_u32(random, 0, 40);
    const uint32_t top_k = test_random_u32(random, 1, 9);
    const uint32_t experts =
        (uint32_t)(test_random(random) % 16 ? test_random_in(random, 1, 40) : 600);
    const uint32_t block = (uint32_t)(test_random(random) % 2 ? test_random_in(random, 1, 20) : 0);
    sort_case c = case_of(tokens, top_k, experts, block);
    case_fill(&c, (int)(test_random(random) % KIND_COUNT), random);
    ptowsp_plan_info info;
    const bool is_bad = c.pair_count > 0 && test_random(random) % 16 == 0;
    if (is_bad) {
        const uint64_t at = test_random(random) % c.pair_count;
        c.ids[at] = (int32_t)experts;
        REQUIRE(ptowsp_moe_sort(&c.routes, &c.order, &info) == PTOWSP_INVALID_PARAMS);
        REQUIRE(info.index == at);
    } else {
        REQUIRE(ptowsp_moe_sort(&c.routes, &c.order, &info) == PTOWSP_OK);
        require_sorted(&c);
        if (c.order.row_count > 0) {
            c.order.row_capacity = c.order.row_count - 1;
            REQUIRE(ptowsp_moe_sort(&c.routes, &c.order, &info) == PTOWSP_BUFFER_OVERFLOW);
            REQUIRE(info.value == c.order.row_count);
        }
    }
    case_free(&c);
}

static void units(uint64_t *random) {
    units_case c;
    case_random(&c, random);
    const uint32_t *offsets = c.has_offsets ? c.offsets : NULL;
    ptowsp_moe_limits limits = {0};
    ptowsp_moe_sizes bound, sizes;
    for (uint32_t i = 0; i < or_one(c.config.batch_count) * c.config.expert_count; i++) {
        limits.pair_count_max += c.counts[i];
    }
    REQUIRE(ptowsp_moe_bound(&c.config, &limits, &bound, NULL) == PTOWSP_OK);
    // Arrays of exactly their size, between a sanitizer's guards.
    ptowsp_moe_plan plan = {
        .units = (ptowsp_work *)test_alloc((size_t)bound.unit_count, sizeof(ptowsp_work))};
    plan.unit_begin = (uint32_t *)test_alloc(c.config.lane_count + 1, sizeof(uint32_t));
    plan.lane_costs = (double *)test_alloc(c.config.lane_count, sizeof(double));
    plan.unit_capacity = (uint32_t)bound.unit_count;
    const ptowsp_moe_batch batch = {.counts = c.counts, .offsets = offsets};
    REQUIRE(ptowsp_moe_generate(&batch, &c.config, &plan, NULL) == PTOWSP_OK);
    REQUIRE(ptowsp_moe_size(&batch, &c.config, &sizes, NULL) == PTOWSP_OK);
    REQUIRE(sizes.unit_count == plan.unit_count && sizes.block_bytes <= bound.block_bytes);
    require_units(&c, &plan);
    require_costs(&c, &plan);
    require_equal(plan.cost_max, best_time(&c));
    require_checked(&c, &plan, random);
    test_release();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t random = choices_begin(data, size);
    if (test_random(&random) % 2) {
        sort(&random);
    } else {
        units(&random);
    }
    return 0;
}
