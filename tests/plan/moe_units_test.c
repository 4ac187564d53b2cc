// Units of MoE plans: every token once, in order, with what the header says of descriptors; costs
// summed up again; and the busiest lane beside the best of all contiguous shares, found by dynamic
// programming over every place where a lane could end. Units on paper, and what is refused, are in
// moe_facts_test.c.

#include "moe_sample.h"

// The exact sizes are the plan's, no more than the bound, and a plan placed in a block of them is the same.
static void require_placed(const units_case *c, const ptowsp_moe_plan *plan,
                           const ptowsp_moe_sizes *bound) {
    static _Alignas(8) char block[1 << 16];
    const ptowsp_moe_batch batch = {c->counts, c->has_offsets ? c->offsets : NULL};
    ptowsp_moe_sizes sizes;
    ptowsp_moe_plan placed;
    assert_ok(ptowsp_moe_size(&batch, &c->config, &sizes, NULL));
    assert_int_equal(sizes.unit_count, plan->unit_count);
    assert_int_equal(sizes.lane_count, plan->lane_count);
    assert_true(sizes.block_bytes <= bound->block_bytes && sizes.block_bytes < sizeof block);
    assert_int_equal(ptowsp_moe_place(&sizes, block, sizes.block_bytes - 1, &placed),
                     PTOWSP_BUFFER_OVERFLOW);
    memset(block, 0x5a, sizeof block);
    assert_ok(ptowsp_moe_place(&sizes, block, sizes.block_bytes, &placed));
    assert_ok(ptowsp_moe_generate(&batch, &c->config, &placed, NULL));
    assert_int_equal(block[sizes.block_bytes], 0x5a);
    assert_memory_equal(placed.units, plan->units, plan->unit_count * sizeof *plan->units);
    assert_memory_equal(placed.unit_begin, plan->unit_begin,
                        (plan->lane_count + 1) * sizeof(uint32_t));
    assert_memory_equal(placed.lane_costs, plan->lane_costs, plan->lane_count * sizeof(double));
    assert_ok(ptowsp_moe_check(&batch, &c->config, &placed, NULL));
}

// Sizes that are missing or too large, and blocks that are missing or not aligned.
TEST(moe_units__are_not_placed_anywhere) {
    static _Alignas(8) char block[256];
    const ptowsp_status invalid = PTOWSP_INVALID_PARAMS;
    ptowsp_moe_sizes sizes = {4, 2, 0};
    ptowsp_moe_plan plan;
    assert_ok(ptowsp_moe_place(&sizes, block, sizeof block, &plan));
    assert_int_equal(plan.unit_capacity, 4);
    assert_int_equal(plan.lane_count, 2);
    assert_ptr_equal(plan.units, block);
    assert_int_equal(ptowsp_moe_place(NULL, block, sizeof block, &plan), invalid);
    assert_int_equal(ptowsp_moe_place(&sizes, NULL, sizeof block, &plan), invalid);
    assert_int_equal(ptowsp_moe_place(&sizes, block, sizeof block, NULL), invalid);
    assert_int_equal(ptowsp_moe_place(&sizes, block + 4, 200, &plan), invalid);
    sizes.lane_count = 0;
    assert_int_equal(ptowsp_moe_place(&sizes, block, sizeof block, &plan), invalid);
    sizes.lane_count = 2, sizes.unit_count = UINT64_C(1) << 32;
    assert_int_equal(ptowsp_moe_place(&sizes, block, sizeof block, &plan), PTOWSP_LIMIT_EXCEEDED);
}

TEST(moe_units__have_every_token_once_and_the_best_time) {
    uint64_t random = test_seed();
    static ptowsp_work units[PLACE_MAX + LANE_MAX];
    uint32_t begin[LANE_MAX + 1], parted = 0;
    double costs[LANE_MAX];
    for (int round = 0; TEST_ROUNDS(round, 4000); round++) {
        units_case c;
        case_random(&c, &random);
        const uint32_t *offsets = c.has_offsets ? c.offsets : NULL;
        ptowsp_moe_limits limits = {0};
        ptowsp_moe_sizes bound;
        for (uint32_t i = 0; i < or_one(c.config.batch_count) * c.config.expert_count; i++) {
            limits.pair_count_max += c.counts[i];
        }
        assert_ok(ptowsp_moe_bound(&c.config, &limits, &bound, NULL));
        assert_true(bound.unit_count <= PLACE_MAX + LANE_MAX);
        ptowsp_moe_plan plan = {.units = units,
                                .unit_begin = begin,
                                .lane_costs = costs,
                                .unit_capacity = (uint32_t)bound.unit_count};
        ptowsp_plan_info info;
        assert_ok(ptowsp_moe_generate(BATCH(c.counts, offsets), &c.config, &plan, &info));
        assert_int_equal(info.work_count, plan.unit_count);
        require_placed(&c, &plan, &bound);
        require_units(&c, &plan);
        require_costs(&c, &plan);
        require_equal(plan.cost_max, best_time(&c));
        require_checked(&c, &plan, &random);
        parted += plan.column_parts > 1;
        if (plan.unit_count > 0) {  // one too few
            const uint32_t needed = plan.unit_count;
            plan.unit_capacity = needed - 1;
            units[0].params[1] = 77;
            assert_int_equal(ptowsp_moe_generate(BATCH(c.counts, offsets), &c.config, &plan, &info),
                             PTOWSP_BUFFER_OVERFLOW);
            assert_int_equal(info.work_count, needed);
            assert_int_equal(info.value, needed);
            assert_int_equal(info.limit, needed - 1);
            assert_int_equal(units[0].params[1], 77);
        }
    }
    assert_met(parted > test_rounds(4000) / 10);
}

// 10 columns by blocks of 3 are 4 blocks: 3, 3, 3, 1.
TEST(moe_units__of_parts_have_all_columns_once) {
    const uint32_t paper[6][5] = {{0, 10},          {0, 6, 10},      {0, 3, 6, 10},
                                  {0, 3, 6, 9, 10}, {0, 0, 3, 6, 9}, {0, 0, 3, 6, 6}};
    for (uint32_t parts = 1; parts <= 6; parts++) {
        for (uint32_t part = 0; part <= parts && part < 5; part++) {
            assert_int_equal(ptowsp_moe_column_begin(part, parts, 10, 3), paper[parts - 1][part]);
        }
        assert_int_equal(ptowsp_moe_column_end(parts - 1, parts, 10, 3), 10);
    }
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 2000); round++) {
        const uint32_t parts = test_random_u32(&random, 1, 40);
        const uint32_t block = test_random_u32(&random, 0, 40);
        const uint32_t columns =
            test_random(&random) % 8 ? (uint32_t)(test_random(&random) % 3000) : UINT32_MAX - block;
        uint32_t at = 0;
        for (uint32_t part = 0; part < parts; part++) {
            assert_int_equal(ptowsp_moe_column_begin(part, parts, columns, block), at);
            assert_true(at % or_one(block) == 0 || at == columns);
            const uint32_t end = ptowsp_moe_column_end(part, parts, columns, block);
            // No part is more than a block wider than the mean.
            assert_true(end - at <= (double)columns / parts + or_one(block));
            at = end;
        }
        assert_int_equal(at, columns);
    }
}

// The rows of units are the pairs of their expert.
TEST(moe_units__have_rows_by_a_function) {
    const int32_t ids[8] = {2, 0, 2, 1, 0, 2, 2, -1};
    const ptowsp_moe_routes routes = {ids, 4, 2, 3, 0};
    uint32_t counts[3], offsets[4], pairs[8], begin[3];
    ptowsp_work units[6];
    ptowsp_moe_order order = {counts, offsets, pairs, NULL, NULL, 8, 0, 0, 0, 0};
    ptowsp_moe_config config = {1, 3, 2, 0, 0, {0, 1, 0}, 0};
    ptowsp_moe_plan plan = {.units = units, .unit_begin = begin, .unit_capacity = 6};
    assert_ok(ptowsp_moe_sort(&routes, &order, NULL));
    assert_ok(ptowsp_moe_generate(BATCH(counts, offsets), &config, &plan, NULL));
    uint32_t seen = 0;
    for (uint32_t i = 0; i < plan.unit_count; i++) {
        uint32_t count;
        const uint32_t *rows = ptowsp_moe_unit_rows(&order, &units[i], &count);
        for (uint32_t k = 0; k < count; k++, seen++) {
            assert_int_equal(ids[rows[k]], ptowsp_work_expert(&units[i]));
        }
    }
    assert_int_equal(seen, 7);
}
