// Units of MoE plans: every token once, in order, with what the header says of descriptors; costs
// summed up again; and the busiest lane beside the best of all contiguous shares, found by dynamic
// programming over every place where a lane could end.

#include "moe_sample.h"
#include "plan_text.h"

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

TEST(moe_units__are_what_the_accessors_of_experts_read) {
    // Worked out on paper: 2 batches of 3 experts, one lane, units of at most 4.
    const uint32_t counts[6] = {5, 0, 2, 1, 0, 3}, offsets[8] = {10, 15, 15, 17, 0, 1, 1, 4};
    const uint32_t expected[5][4] = {
        {0, 0, 10, 4}, {0, 0, 14, 1}, {1, 0, 0, 1}, {0, 2, 15, 2}, {1, 2, 1, 3}};
    ptowsp_moe_config config = {
        .batch_count = 2, .expert_count = 3, .lane_count = 1, .unit_tokens = 4};
    ptowsp_work units[5];
    uint32_t begin[2];
    ptowsp_moe_plan plan = {.units = units, .unit_begin = begin, .unit_capacity = 5};
    assert_ok(ptowsp_moe_generate(BATCH(counts, offsets), &config, &plan, NULL));
    assert_int_equal(plan.unit_count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(ptowsp_work_batch(&units[i]), expected[i][0]);
        assert_int_equal(ptowsp_work_expert(&units[i]), expected[i][1]);
        assert_int_equal(ptowsp_work_token_start(&units[i]), expected[i][2]);
        assert_int_equal(ptowsp_work_token_count(&units[i]), expected[i][3]);
    }
    // The default cost: 5 units of 4, 11 tokens of 1, 2 experts of 64.
    require_equal(plan.cost_max, 5 * 4 + 11 + 2 * 64);
}

// The plan of the header: its units, and what the check says of each thing that is wrong.
typedef struct small_plan {
    ptowsp_moe_config config;
    uint32_t counts[3], offsets[4], begin[3];
    ptowsp_work units[6];
    double costs[2];
    ptowsp_moe_plan plan;
} small_plan;

static void small_make(small_plan *s) {
    const small_plan small = {
        .counts = {2, 1, 4},
        .offsets = {0, 2, 3, 7},
        .config = {.expert_count = 3, .lane_count = 2, .cost.per_token = 1},
        .plan = {.units = s->units, .unit_begin = s->begin, .lane_costs = s->costs},
        .plan.unit_capacity = 6};
    *s = small;
    assert_ok(ptowsp_moe_generate(BATCH(s->counts, s->offsets), &s->config, &s->plan, NULL));
}

#define FOUND(s, change, text)                                                                     \
    do {                                                                                           \
        ptowsp_plan_info info;                                                                     \
        small_make(&(s));                                                                          \
        change;                                                                                    \
        assert_int_equal(                                                                          \
            ptowsp_moe_check(BATCH((s).counts, (s).offsets), &(s).config, &(s).plan, &info),       \
            PTOWSP_INVALID_PARAMS);                                                                \
        fault_text_is(&info, "plan: " text);                                                       \
    } while (0)

TEST(moe_units__that_are_wrong_are_found) {
    small_plan s;
    FOUND(s, s.counts[2] = 5, "offset 3 is 7, and the rows before it end at 8");
    FOUND(s, s.plan.units = NULL, "plan.units is NULL: was the plan placed?");
    FOUND(s, s.plan.lane_count = 3, "the plan says 3 where 2 belongs");
    FOUND(s, s.plan.unit_capacity = 3, "the plan says 4 where 3 belongs");
    FOUND(s, s.begin[0] = 1, "the plan says 1 where 0 belongs");
    FOUND(s, s.begin[1] = 5, "the range of lane 0 ends at 5, not in order or beyond 4");
    FOUND(s, s.begin[2] = 3, "the range of lane 1 ends at 3, not in order or beyond 4");
    FOUND(s, s.units[1].params[1] = 2, "unit 1 has the value 2 where 1 belongs");
    FOUND(s, s.units[2].params[2] = 4, "unit 2 has the value 4 where 3 belongs");
    FOUND(s, s.units[3].params[3] = 4, "unit 3 has the value 4 where 3 belongs");
    FOUND(s, s.units[0].params[3] = 0, "unit 0 has the value 0 where 2 belongs");
    FOUND(s, s.units[2].flags = 0, "unit 2 has the value 0 where 1 belongs");
    FOUND(s, s.units[1].work_id = 7, "unit 1 has the value 7 where 1 belongs");
    FOUND(s, (s.plan.unit_count = 3, s.begin[2] = 3), "unit 3 has the value 0 where 3 belongs");
    FOUND(s, (s.plan.unit_count = 5, s.begin[2] = 5), "unit 4 is beyond what the batch has");
    FOUND(s, s.units[5].params[3] = 1, "unit 5 is beyond what the batch has");
    FOUND(s, s.units[5].flags = 0, "unit 5 is beyond what the batch has");
    FOUND(s, (s.config.block_rows = 4, s.config.unit_tokens = 0),
          "unit 2 has the value 1 where 0 belongs");
    FOUND(s, s.config.unit_tokens = 2, "unit 3 has the value 3 where 2 belongs");
    FOUND(s, s.costs[1] = 4, "cost 1 (of lanes, largest, mean) is not that of its units");
    FOUND(s, s.costs[1] = 2, "cost 1 (of lanes, largest, mean) is not that of its units");
    FOUND(s, s.plan.cost_max = 5, "cost 2 (of lanes, largest, mean) is not that of its units");
    FOUND(s, s.plan.cost_mean = 4, "cost 2 (of lanes, largest, mean) is not that of its units");
    FOUND(s, s.begin[1] = 2, "cost 0 (of lanes, largest, mean) is not that of its units");
    small_make(&s);
    s.plan.lane_costs = NULL;  // they are not needed
    assert_ok(ptowsp_moe_check(BATCH(s.counts, s.offsets), &s.config, &s.plan, NULL));
}

TEST(moe_units__are_printed_with_their_lanes) {
    small_plan s;
    small_make(&s);
    char text[400];
    ptowsp_moe_print(&s.plan, TEST_TEXT(text));
    assert_string_equal(text,
                        "MoE plan: 7 pairs of 3 experts in 4 units, on 2 lanes\n"
                        "splits: lanes read 1 expert more than there are\n"
                        "cost: largest 4, mean 3.5, ratio 1.1429\n"
                        "                 lanes            units each             cost each\n"
                        "                     0                     3                     4\n"
                        "                     1                     1                     3\n");
}

TEST(moe_units__of_one_expert_are_read_once_by_a_lane) {
    const uint32_t counts[1] = {4};
    ptowsp_moe_config config = {0};
    config.expert_count = config.lane_count = 1;
    config.unit_tokens = 2;
    config.cost.per_token = 1;
    ptowsp_work units[2];
    uint32_t begin[2];
    ptowsp_moe_plan plan = {.units = units, .unit_begin = begin, .unit_capacity = 2};
    assert_ok(ptowsp_moe_generate(BATCH(counts, NULL), &config, &plan, NULL));
    char text[400];
    ptowsp_moe_print(&plan, TEST_TEXT(text));
    assert_non_null(strstr(text, "MoE plan: 4 pairs of 1 expert in 2 units, on 1 lane\n"
                                 "splits: lanes read 0 experts more than there are\n"));
}

TEST(moe_units__split_a_hot_expert_over_lanes) {
    const uint32_t counts[4] = {1, 1, 1000, 1};
    ptowsp_moe_config config = {.expert_count = 4, .lane_count = 8, .cost.per_token = 1};
    ptowsp_work units[11];
    uint32_t begin[9];
    ptowsp_moe_plan plan = {.units = units, .unit_begin = begin, .unit_capacity = 11};
    assert_ok(ptowsp_moe_generate(BATCH(counts, NULL), &config, &plan, NULL));
    require_equal(plan.cost_max, 126);  // ceil(1003 / 8)
    for (uint32_t l = 0; l < 8; l++) {
        assert_true(begin[l + 1] > begin[l]);
    }
    ptowsp_plan_info info;
    char text[96];
    snprintf(text, sizeof text, "plan: the range of lane 1 ends at 0, not in order or beyond %u",
             plan.unit_count);
    begin[2] = 0;
    fault_is(ptowsp_moe_check(BATCH(counts, NULL), &config, &plan, &info), PTOWSP_INVALID_PARAMS,
             &info, text);
}

// 1 token of 8 experts of 20 on 32 lanes, at the default costs: 4 parts make 32 units, each of which
// reads 64 / 4, has 1 / 4 of a token and costs 4 as a unit. Without parts a lane has 64 + 1 + 4.
TEST(moe_units__of_few_tokens_divide_columns) {
    uint32_t counts[20] = {0}, begin[33];
    for (uint32_t i = 0; i < 8; i++) {
        counts[i * 2 + 1] = 1;
    }
    static ptowsp_work units[8 * 16 + 31];
    ptowsp_moe_config config = {.expert_count = 20, .lane_count = 32};
    ptowsp_moe_plan plan = {.units = units, .unit_begin = begin, .unit_capacity = 8 * 16};
    assert_ok(ptowsp_moe_generate(BATCH(counts, NULL), &config, &plan, NULL));
    assert_int_equal(plan.column_parts, 1);
    require_equal(plan.cost_max, 69);
    config.column_parts = 16;
    ptowsp_moe_sizes bound;
    assert_ok(ptowsp_moe_bound(&config, &(ptowsp_moe_limits){8}, &bound, NULL));
    assert_int_equal(bound.unit_count, 8 * 16);
    assert_ok(ptowsp_moe_generate(BATCH(counts, NULL), &config, &plan, NULL));
    assert_int_equal(plan.column_parts, 4);
    assert_int_equal(plan.unit_count, 32);
    require_equal(plan.cost_max, 20.25);
    for (uint32_t i = 0; i < 32; i++) {
        assert_int_equal(begin[i], i);
        assert_int_equal(ptowsp_work_expert(&units[i]), i / 4 * 2 + 1);
        assert_int_equal(ptowsp_work_column_part(&units[i]), i % 4);
        assert_true(ptowsp_work_is_whole(&units[i]));
    }
    char text[400];
    ptowsp_moe_print(&plan, TEST_TEXT(text));
    assert_non_null(strstr(text, "MoE plan: 8 pairs of 8 experts in 32 units, on 32 lanes\n"
                                 "columns: those of an expert in 4 parts\n"
                                 "splits: lanes read 0 parts more than there are\n"));
    // At most 5 parts: 4 and 5 are tried, and 40 units on 32 lanes are worse.
    config.column_parts = 5;
    assert_ok(ptowsp_moe_generate(BATCH(counts, NULL), &config, &plan, NULL));
    assert_int_equal(plan.column_parts, 4);
    // On 40 lanes they are better: 64 / 5 and 1 / 5, on a grid of 1 / 1024 of a token's cost.
    uint32_t wider[41];
    plan.unit_begin = wider, config.lane_count = 40;
    assert_ok(ptowsp_moe_generate(BATCH(counts, NULL), &config, &plan, NULL));
    assert_int_equal(plan.column_parts, 5);
    assert_true(fabs(plan.cost_max - 17) < 0.01);
    ptowsp_plan_info info;
    assert_ok(ptowsp_moe_check(BATCH(counts, NULL), &config, &plan, NULL));
    config.column_parts = 4;  // more parts than are allowed
    fault_is(ptowsp_moe_check(BATCH(counts, NULL), &config, &plan, &info), PTOWSP_INVALID_PARAMS,
             &info, "plan: the plan says 5 where 4 belongs");
    config.column_parts = 5, plan.column_parts = 0;
    fault_is(ptowsp_moe_check(BATCH(counts, NULL), &config, &plan, &info), PTOWSP_INVALID_PARAMS,
             &info, "plan: the plan says 0 where 5 belongs");
    config.column_parts = 65536;
    fault_is(ptowsp_moe_check(BATCH(counts, NULL), &config, &plan, &info), PTOWSP_INVALID_PARAMS,
             &info, "plan: column_parts 65536 is above 65535");
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

TEST(moe_units__are_none_for_an_empty_step) {
    const uint32_t counts[4] = {0, 0, 0, 0};
    ptowsp_moe_config config = {.expert_count = 4, .lane_count = 2};
    uint32_t begin[3] = {9, 9, 9};
    ptowsp_moe_plan plan = {NULL, begin, NULL, 0, 0, 9, 9, 9, 9, 0};
    ptowsp_moe_sizes bound = {9, 9, 9};
    assert_ok(ptowsp_moe_bound(&config, &(ptowsp_moe_limits){0}, &bound, NULL));
    assert_int_equal(bound.unit_count, 0);
    assert_ok(ptowsp_moe_generate(BATCH(counts, NULL), &config, &plan, NULL));
    assert_int_equal(plan.unit_count, 0);
    assert_int_equal(begin[0] + begin[1] + begin[2], 0);
    require_equal(plan.cost_max, 0);
}

static void refused(const ptowsp_moe_config *config, const uint32_t *counts,
                    const uint32_t *offsets, ptowsp_moe_plan *plan, ptowsp_status status,
                    uint64_t index, const char *text) {
    ptowsp_plan_info info;
    assert_int_equal(ptowsp_moe_generate(BATCH(counts, offsets), config, plan, &info), status);
    assert_int_equal(info.index, index);
    fault_text_is(&info, text);
}

TEST(moe_units__of_more_lanes_than_were_placed_are_refused) {
    enum { PLACED = 2, UNITS = 120, GUARD = 4096 };
    const uint32_t counts[3] = {2, 1, 4};
    const ptowsp_moe_batch batch = {counts, NULL};
    ptowsp_moe_config config = {.expert_count = 3, .lane_count = PLACED, .cost = {0, 1, 0}};
    const ptowsp_moe_sizes sizes = {UNITS, PLACED, 0};
    const size_t bytes = UNITS * sizeof(ptowsp_work) + PLACED * 8 + 2 * (PLACED + 1) * 4;
    unsigned char *block = (unsigned char *)malloc(bytes + GUARD);
    unsigned char *before = (unsigned char *)malloc(bytes + GUARD);
    memset(block, 0xa5, bytes + GUARD);
    memcpy(before, block, bytes + GUARD);
    ptowsp_moe_plan plan;
    assert_ok(ptowsp_moe_place(&sizes, block, bytes, &plan));
    assert_int_equal(plan.lane_capacity, PLACED);
    assert_int_equal(plan.lane_count, PLACED);
    const uint32_t lanes[3] = {PLACED + 1, 100, PTOWSP_ATTENTION_LANE_MAX};
    ptowsp_plan_info info;
    for (int i = 0; i < 3; i++) {
        config.lane_count = lanes[i];
        const ptowsp_moe_plan placed = plan;
        assert_int_equal(ptowsp_moe_generate(&batch, &config, &plan, &info),
                         PTOWSP_BUFFER_OVERFLOW);
        char text[96];
        snprintf(text, sizeof text, "plan: %u lanes do not fit the plan, which has room for 2",
                 lanes[i]);
        fault_text_is(&info, text);
        assert_int_equal(info.fault, PTOWSP_FAULT_LANES_SMALL);
        assert_true(info.work_count >= 3);
        assert_memory_equal(&placed, &plan, sizeof plan);
        assert_memory_equal(before, block, bytes + GUARD);
    }
    config.lane_count = PLACED;
    assert_ok(ptowsp_moe_generate(&batch, &config, &plan, NULL));
    assert_memory_equal(before + bytes, block + bytes, GUARD);
    assert_int_equal(ptowsp_moe_plan_units(&plan).lane_capacity, PLACED);
    plan.lane_capacity = 1;
    fault_is(ptowsp_moe_check(&batch, &config, &plan, &info), PTOWSP_INVALID_PARAMS, &info,
             "plan: the plan says 2 where 1 belongs");
    free(block);
    free(before);
}

// Changes a good configuration, which is then refused.
#define WRONG(change, counts, status, index, text)                                                 \
    (config = good, change, refused(&config, counts, NULL, &plan, status, index, text))

TEST(moe_units__refuse_what_is_wrong) {
    const uint64_t none = PTOWSP_NO_INDEX;
    const uint32_t counts[2] = {3, 2}, offsets[3] = {0, 3, 4};
    uint32_t huge[2] = {UINT32_MAX, UINT32_MAX};
    ptowsp_work units[4];
    uint32_t begin[3];
    ptowsp_moe_plan plan = {.units = units, .unit_begin = begin, .unit_capacity = 4};
    const ptowsp_moe_config good = {.expert_count = 2, .lane_count = 2};
    ptowsp_moe_config config;
    const ptowsp_status invalid = PTOWSP_INVALID_PARAMS;
    refused(NULL, counts, NULL, &plan, invalid, none, "plan: config is NULL");
    refused(&good, NULL, NULL, &plan, invalid, 5, "plan: batch.counts is NULL");
    refused(&good, counts, NULL, NULL, invalid, none, "plan: plan is NULL");
    refused(&good, counts, offsets, &plan, invalid, 2,
            "plan: offset 2 is 4, and the rows before it end at 5");
    WRONG(config.expert_count = 0, counts, invalid, none,
          "plan: 0 experts or replicas are not in 1 to 65536");
    WRONG(config.lane_count = 0, counts, invalid, none, "plan: lane_count 0 is not in 1 to 65536");
    config.lane_count = 65537;
    refused(&config, counts, NULL, &plan, invalid, none,
            "plan: lane_count 65537 is not in 1 to 65536");
    const char *names[3] = {"per_unit", "per_token", "per_expert"};
    const uint64_t indices[3] = {0, 1, 4};  // as %i{...} in the header
    const double wrong[3] = {-1, (double)NAN, 1e101};
    for (uint32_t i = 0; i < 9; i++) {
        config = good;
        *(i % 3 == 0   ? &config.cost.per_unit
          : i % 3 == 1 ? &config.cost.per_token
                       : &config.cost.per_expert) = wrong[i / 3];
        char text[96];
        snprintf(text, sizeof text, "plan: cost.%s is negative, NaN or out of range", names[i % 3]);
        refused(&config, counts, NULL, &plan, invalid, indices[i % 3], text);
    }
    WRONG((config.cost.per_unit = 1, config.cost.per_expert = 1.1e9), counts, invalid, 4,
          "plan: cost.per_expert is over 2^30 times the smallest");
    config.cost.per_token = 1e9, config.cost.per_expert = 1;
    refused(&config, huge, NULL, &plan, PTOWSP_LIMIT_EXCEEDED, none,
            "plan: the cost of the batch exceeds 2^62 of the planner's grid");
    WRONG((config.unit_tokens = 4, config.cost.per_token = 1, config.cost.per_unit = 1e9), huge,
          PTOWSP_LIMIT_EXCEEDED, none,
          "plan: the cost of the batch exceeds 2^62 of the planner's grid");
    static uint32_t ones[PTOWSP_MOE_EXPERT_MAX];
    for (uint32_t e = 0; e < PTOWSP_MOE_EXPERT_MAX; e++) {
        ones[e] = 1;
    }
    WRONG((config.expert_count = PTOWSP_MOE_EXPERT_MAX, config.cost.per_token = 1,
           config.cost.per_expert = 1e9),
          ones, PTOWSP_BUFFER_OVERFLOW, none,
          "plan: 65536 units do not fit the plan, which holds 4");
    WRONG(config.unit_tokens = 1, huge, PTOWSP_LIMIT_EXCEEDED, none,
          "plan: 8589934590 units are more than the 4294967295 of a plan");
    ptowsp_moe_sizes bound = {1, 1, 1};
    ptowsp_moe_limits limits = {UINT64_C(1) << 33};
    ptowsp_plan_info info;
    assert_int_equal(ptowsp_moe_bound(&config, &limits, &bound, &info), PTOWSP_LIMIT_EXCEEDED);
    assert_int_equal(bound.unit_count + bound.lane_count + bound.block_bytes, 0);
    fault_text_is(&info, "plan: 8589934592 units are more than the 4294967295 of a plan");
    fault_is(ptowsp_moe_bound(&good, &limits, NULL, &info), invalid, &info,
             "plan: out_sizes is NULL");
    fault_is(ptowsp_moe_bound(NULL, &limits, &bound, &info), invalid, &info,
             "plan: config is NULL");
    fault_is(ptowsp_moe_bound(&good, NULL, &bound, &info), invalid, &info, "plan: limits is NULL");
    fault_is(ptowsp_moe_generate(NULL, &good, &plan, &info), invalid, &info, "plan: batch is NULL");
    fault_is(ptowsp_moe_size(NULL, &good, &bound, &info), invalid, &info, "plan: batch is NULL");
    fault_is(ptowsp_moe_size(BATCH(counts, NULL), &good, NULL, &info), invalid, &info,
             "plan: out_sizes is NULL");
    plan.units = NULL;
    refused(&good, counts, NULL, &plan, invalid, 0,
            "plan: plan.units is NULL: was the plan placed?");
    plan.units = units, plan.unit_begin = NULL;
    refused(&good, counts, NULL, &plan, invalid, 2,
            "plan: plan.unit_begin is NULL: was the plan placed?");
    plan.unit_begin = begin, plan.unit_capacity = 1;
    refused(&good, counts, NULL, &plan, PTOWSP_BUFFER_OVERFLOW, none,
            "plan: 2 units do not fit the plan, which holds 1");
}
