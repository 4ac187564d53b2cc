// Attention plans: what is refused, with its text; and what the check finds.

#include "attention_fixture.h"

enum { LANES = 3 };

typedef struct faults_case {
    int32_t kv[4], queries[4];
    uint32_t speeds[LANES];
    ptowsp_tier tiers[1];
    abatch batch;
    aconfig config;
} faults_case;

static void case_make(faults_case *f) {
    memset(f, 0, sizeof *f);
    const int32_t kv[4] = {300, 0, 20, 50}, queries[4] = {1, 5, 2, 1};
    memcpy(f->kv, kv, sizeof kv);
    memcpy(f->queries, queries, sizeof queries);
    f->batch.kv_lengths = f->kv;
    f->batch.query_lengths = f->queries;
    f->batch.sequence_count = 4;
    f->config.kv_head_count = 2;
    f->config.lane_count = LANES;
}

static void assert_text(const ptowsp_plan_info *info, const char *text) {
    char line[160];
    ptowsp_output_buffer buffer = {line, sizeof line, 0};
    ptowsp_plan_explain(info, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(line, text);
}

// All that plan refuse it, with this text, and write nothing.
static void refused(const faults_case *f, ptowsp_status status, ptowsp_plan_fault fault,
                    uint64_t index, const char *text) {
    faults_case good;
    case_make(&good);
    aplan plan = plan_make(&good.batch, &good.config);
    const ptowsp_work first = plan.units[0];
    ptowsp_attention_sizes sizes;
    memset(&sizes, 1, sizeof sizes);
    for (int call = 0; call < 3; call++) {
        ptowsp_plan_info info;
        memset(&info, 0x55, sizeof info);
        ptowsp_status got = PTOWSP_OK;
        switch (call) {
        case 0: got = ptowsp_attention_generate(&f->batch, &f->config, &plan, &info); break;
        case 1: got = ptowsp_attention_size(&f->batch, &f->config, &sizes, &info); break;
        default: got = ptowsp_attention_check(&f->batch, &f->config, &plan, &info); break;
        }
        assert_int_equal(got, status);
        assert_int_equal(info.fault, fault);
        assert_int_equal(info.index, index);
        assert_int_equal(info.work_count, 0);
        assert_text(&info, text);
    }
    assert_int_equal(sizes.unit_count, 0);
    assert_memory_equal(&first, plan.units, sizeof first);
    plan_free(&plan);
}

// 12 query heads of 3 KV heads are groups of 4, whether the group is given, derived or both; so are
// the rows of a slot.
TEST(attention_faults__heads_that_agree_are_one_plan) {
    static const uint32_t given[3][2] = {{4, 0}, {0, 12}, {4, 12}};
    const ptowsp_attention_limits limits = {.sequence_count_max = 3, .kv_length_max = 9000};
    faults_case f;
    for (int i = 0; i < 3; i++) {
        case_make(&f);
        f.config.kv_head_count = 3, f.config.group = given[i][0];
        f.config.query_head_count = given[i][1];
        ptowsp_prefix_sizes bound;
        aplan plan = plan_make(&f.batch, &f.config);
        assert_int_equal(plan.group, 4);
        assert_int_equal(plan.tile_tokens, 64 / 4);
        plan_free(&plan);
        assert_int_equal(ptowsp_prefix_bound(&f.config, &limits, &bound, NULL), PTOWSP_OK);
        assert_int_equal(bound.attention.slot_rows, 3 * 4);  // of 3 requests, a token each
        const ptowsp_attend_step step = {.config = &f.config};
        const ptowsp_attend_unit unit = {.query_count = 2};
        assert_int_equal(ptowsp_attend_unit_rows(&step, &unit), 2 * 4);
    }
}

TEST(attention_faults__wrong_configurations_are_refused) {
    const uint64_t none = PTOWSP_NO_INDEX;
    faults_case f;
    case_make(&f);
    f.config.kv_head_count = 0;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_HEADS_ZERO, none, "plan: kv_head_count is 0");
    // 32 query heads share 8 KV heads: 32 where the KV heads belong contradicts the group.
    case_make(&f);
    f.config.kv_head_count = 32, f.config.group = 4, f.config.query_head_count = 32;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_HEADS_OTHER, none,
            "plan: query_head_count 32 is not kv_head_count * group, which is 128");
    f.config.kv_head_count = 8, f.config.group = 0, f.config.query_head_count = 36;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_HEADS_MULTIPLE, none,
            "plan: query_head_count 36 is not a multiple of kv_head_count 8");
    f.config.query_head_count = 4;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_HEADS_MULTIPLE, none,
            "plan: query_head_count 4 is not a multiple of kv_head_count 8");
    f.config.kv_head_count = f.config.group = UINT32_MAX;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_HEADS_OTHER, none,
            "plan: query_head_count 4 is not kv_head_count * group, which is 9223372036854775807");
    case_make(&f);
    f.config.lane_count = 0;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_LANES_COUNT, none,
            "plan: lane_count 0 is not in 1 to 65536");
    f.config.lane_count = 65537;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_LANES_COUNT, none,
            "plan: lane_count 65537 is not in 1 to 65536");
    case_make(&f);
    f.config.lane_speeds = f.speeds;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_SPEEDS_ZERO, none,
            "plan: the speeds of all 3 lanes are 0");
    case_make(&f);
    f.config.mode = (ptowsp_attention_mode)7;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_MODE_UNKNOWN, none,
            "plan: config.mode has the unknown value 7");
    case_make(&f);
    f.config.mode = PTOWSP_ATTENTION_INVARIANT;
    f.config.page_size = 16;
    f.config.chunk = 100;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_CHUNK_PAGES, none,
            "plan: chunk 100 is not a multiple of page_size 16");
    f.config.chunk = 128;
    f.config.grain = 8;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_GRAIN_PAGES, none,
            "plan: grain 8 is not a multiple of page_size 16");
    f.config.grain = 48;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_GRAIN_CHUNK, none,
            "plan: grain 48 does not divide chunk 128");
    f.config.grain = 256;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_GRAIN_CHUNK, none,
            "plan: grain 256 does not divide chunk 128");
    case_make(&f);
    f.config.tiers = f.tiers;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_TIERS_EMPTY, none,
            "plan: tiers is given with tier_count 0");
    f.config.tiers = NULL;
    f.config.tier_count = 2;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_TIERS_NULL, none,
            "plan: tiers is NULL with tier_count 2");
    ptowsp_plan_info info;
    ptowsp_attention_sizes sizes;
    assert_int_equal(ptowsp_attention_size(&f.batch, NULL, &sizes, &info), PTOWSP_INVALID_PARAMS);
    assert_text(&info, "plan: config is NULL");
    assert_int_equal(ptowsp_attention_size(&f.batch, &f.config, NULL, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_text(&info, "plan: out_sizes is NULL");
}

TEST(attention_faults__of_costs) {
    const double wrong[] = {-1, NAN, INFINITY, -INFINITY, 1e101, 1e-101};
    const char *names[] = {"per_unit", "per_token", "per_row_token", "per_merged_row"};
    faults_case f;
    for (uint32_t i = 0; i < 4; i++) {
        for (int k = 0; k < 6; k++) {
            case_make(&f);
            double *cost[] = {&f.config.cost.per_unit, &f.config.cost.per_token,
                              &f.config.cost.per_row_token, &f.config.cost.per_merged_row};
            *cost[i] = wrong[k];
            char text[96];
            snprintf(text, sizeof text, "plan: cost.%s is negative, NaN or out of range", names[i]);
            refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_COST_INVALID, i, text);
        }
    }
    case_make(&f);
    f.config.cost.per_unit = 1;
    f.config.cost.per_token = 1.0 / (1 << 30);
    ptowsp_attention_sizes sizes;
    assert_int_equal(ptowsp_attention_size(&f.batch, &f.config, &sizes, NULL), PTOWSP_OK);
    f.config.cost.per_unit = 1.001;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_COST_APART, 0,
            "plan: cost.per_unit is over 2^30 times the smallest");
    // Great and small ones, all on the same grid.
    for (double scale = 1e-90; scale < 1e91; scale *= 1e30) {
        case_make(&f);
        f.config.cost.per_unit = 3 * scale;
        f.config.cost.per_token = scale;
        aplan plan = plan_make(&f.batch, &f.config);
        plan_check(&f.batch, &f.config, &plan);
        plan_free(&plan);
    }
}

TEST(attention_faults__wrong_batches_are_refused) {
    faults_case f;
    case_make(&f);
    f.kv[2] = -7;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_LENGTH_NEGATIVE, 2,
            "plan: sequence 2 has the negative length -7");
    f.batch.query_lengths = NULL;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_LENGTH_NEGATIVE, 2,
            "plan: sequence 2 has the negative length -7");
    case_make(&f);
    f.queries[1] = INT32_MIN;  // with KV length 0 as well
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_QUERY_NEGATIVE, 1,
            "plan: sequence 1 has the negative query length -2147483648");
    case_make(&f);
    f.config.is_causal = true;
    f.queries[3] = 51;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_QUERY_LONG, 3,
            "plan: sequence 3 has 51 queries for 50 KV tokens, under is_causal");
    f.queries[3] = 50;  // and sequence 1 has 5 for none, which is no fault
    ptowsp_attention_sizes sizes;
    assert_int_equal(ptowsp_attention_size(&f.batch, &f.config, &sizes, NULL), PTOWSP_OK);
    case_make(&f);
    f.tiers[0].length_min = 1;
    f.tiers[0].length_max = 299;
    f.config.tiers = f.tiers;
    f.config.tier_count = 1;
    refused(&f, PTOWSP_UNSUPPORTED_SIZE, PTOWSP_FAULT_LENGTH_UNCOVERED, 0,
            "plan: sequence 0 has length 300, which no tier covers");
    f.queries[0] = 0;  // has no units, so needs none
    assert_int_equal(ptowsp_attention_size(&f.batch, &f.config, &sizes, NULL), PTOWSP_OK);
    case_make(&f);
    f.config.tile_rows = 1;
    f.queries[0] = 65537;
    refused(&f, PTOWSP_LIMIT_EXCEEDED, PTOWSP_FAULT_TILES_EXCEEDED, 0,
            "plan: sequence 0 has 65537 query tiles, more than 65536");
    f.queries[0] = 65536;
    assert_int_equal(ptowsp_attention_size(&f.batch, &f.config, &sizes, NULL), PTOWSP_OK);
    case_make(&f);
    f.batch.kv_lengths = NULL;
    refused(&f, PTOWSP_INVALID_PARAMS, PTOWSP_FAULT_LENGTHS_NULL, PTOWSP_NO_INDEX,
            "plan: lengths is NULL with sequence_count 4");
    ptowsp_plan_info info;
    assert_int_equal(ptowsp_attention_size(NULL, &f.config, &sizes, &info), PTOWSP_INVALID_PARAMS);
    assert_text(&info, "plan: batch is NULL");
}

TEST(attention_faults__totals_too_large_are_refused) {
    faults_case f;
    case_make(&f);
    f.batch.query_lengths = NULL;
    f.config.kv_head_count = 1431655765;  // three sequences: 2^32 - 1 units
    ptowsp_attention_sizes sizes;
    f.config.lane_count = 1;
    assert_int_equal(ptowsp_attention_size(&f.batch, &f.config, &sizes, NULL), PTOWSP_OK);
    assert_int_equal(sizes.unit_count, UINT32_MAX);
    f.config.lane_count = LANES;
    f.config.kv_head_count++;
    refused(&f, PTOWSP_LIMIT_EXCEEDED, PTOWSP_FAULT_UNITS_EXCEEDED, PTOWSP_NO_INDEX,
            "plan: 4294967298 units are more than the 4294967295 of a plan");
    f.config.kv_head_count = UINT32_MAX;
    refused(&f, PTOWSP_LIMIT_EXCEEDED, PTOWSP_FAULT_UNITS_EXCEEDED, PTOWSP_NO_INDEX,
            "plan: 12884901885 units are more than the 4294967295 of a plan");
    // 2^31 - 1 tokens at 2^40 of the grid: 2^71.
    case_make(&f);
    f.kv[0] = INT32_MAX;
    f.config.cost.per_unit = 1;
    f.config.cost.per_token = 1 << 30;
    refused(&f, PTOWSP_LIMIT_EXCEEDED, PTOWSP_FAULT_COST_OVERFLOW, PTOWSP_NO_INDEX,
            "plan: the cost of the batch exceeds 2^62 of the planner's grid");
    f.batch.query_lengths = NULL;
    refused(&f, PTOWSP_LIMIT_EXCEEDED, PTOWSP_FAULT_COST_OVERFLOW, PTOWSP_NO_INDEX,
            "plan: the cost of the batch exceeds 2^62 of the planner's grid");
    f.kv[0] = 300;
    f.config.tile_rows = UINT32_MAX;  // rows times rate overflow only where there are rows
    f.config.cost.per_row_token = 1 << 29;
    assert_int_equal(ptowsp_attention_size(&f.batch, &f.config, &sizes, NULL), PTOWSP_OK);
    f.config.group = UINT32_MAX;
    refused(&f, PTOWSP_LIMIT_EXCEEDED, PTOWSP_FAULT_COST_OVERFLOW, PTOWSP_NO_INDEX,
            "plan: the cost of the batch exceeds 2^62 of the planner's grid");
}

TEST(attention_faults__capacities_too_small_are_refused) {
    faults_case f;
    case_make(&f);
    f.config.cost.per_token = 1;
    f.batch.sequence_count = 1;
    f.config.kv_head_count = 1;  // 300 tokens on 3 lanes
    aplan plan = plan_make(&f.batch, &f.config);
    assert_int_equal(plan.unit_count, 3);
    const ptowsp_work mark = ptowsp_work_of(77, 1, 2, 3, 4, 5, 6);
    plan.units[0] = mark;
    uint32_t *capacity[] = {&plan.unit_capacity, &plan.merge_capacity, &plan.slot_capacity};
    const uint32_t needed[] = {3, 1, 3};
    const char *texts[] = {"plan: 3 units do not fit the plan, which holds 2",
                           "plan: 1 merges do not fit the plan, which holds 0",
                           "plan: 3 slots do not fit the scratch, which holds 2"};
    for (int i = 0; i < 3; i++) {
        ptowsp_plan_info info;
        *capacity[i] = needed[i] - 1;
        assert_int_equal(ptowsp_attention_generate(&f.batch, &f.config, &plan, &info),
                         PTOWSP_BUFFER_OVERFLOW);
        assert_text(&info, texts[i]);
        assert_int_equal(info.value, needed[i]);
        assert_int_equal(info.limit, needed[i] - 1);
        assert_int_equal(info.work_count, 3);
        assert_memory_equal(&mark, plan.units, sizeof mark);
        *capacity[i] = needed[i];
    }
    const char *names[] = {"units", "merges", "unit_begin", "merge_begin"};
    void *arrays[] = {plan.units, plan.merges, plan.unit_begin, plan.merge_begin};
    for (int i = 0; i < 4; i++) {
        aplan holed = plan;
        if (i == 0)
            holed.units = NULL;
        if (i == 1)
            holed.merges = NULL;
        if (i == 2)
            holed.unit_begin = NULL;
        if (i == 3)
            holed.merge_begin = NULL;
        ptowsp_plan_info info;
        assert_int_equal(ptowsp_attention_generate(&f.batch, &f.config, &holed, &info),
                         PTOWSP_INVALID_PARAMS);
        char text[64];
        snprintf(text, sizeof text, "plan: plan.%s is NULL: was the plan placed?", names[i]);
        assert_text(&info, text);
        assert_non_null(arrays[i]);
    }
    ptowsp_plan_info info;
    assert_int_equal(ptowsp_attention_generate(&f.batch, &f.config, NULL, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_text(&info, "plan: plan is NULL");
    plan.lane_costs = NULL;  // may be
    assert_int_equal(ptowsp_attention_generate(&f.batch, &f.config, &plan, &info), PTOWSP_OK);
    plan_free(&plan);
}

// 100 lanes have the units of 2 lanes where there are few tokens, but not their ranges.
TEST(attention_faults__more_lanes_than_were_placed_are_refused) {
    enum { PLACED = 2, GUARD = 4096 };
    faults_case f;
    case_make(&f);
    f.config.lane_count = PLACED;
    ptowsp_attention_sizes sizes;
    ptowsp_plan_info info;
    assert_int_equal(ptowsp_attention_size(&f.batch, &f.config, &sizes, &info), PTOWSP_OK);
    sizes.unit_count = sizes.merge_count = sizes.slot_count = 300;
    sizes.block_bytes = 600 * sizeof(ptowsp_work) + PLACED * 8 + 2 * (PLACED + 1) * 4;
    const size_t bytes = (size_t)sizes.block_bytes, all = bytes + GUARD;
    unsigned char *block = (unsigned char *)malloc(all), *before = (unsigned char *)malloc(all);
    memset(block, 0xa5, all);
    memcpy(before, block, all);
    aplan plan;
    assert_int_equal(ptowsp_attention_place(&sizes, block, bytes, &plan), PTOWSP_OK);
    assert_int_equal(plan.lane_capacity, PLACED);
    assert_int_equal(plan.lane_count, PLACED);
    const uint32_t lanes[] = {PLACED + 1, 100, PTOWSP_ATTENTION_LANE_MAX};
    for (int i = 0; i < 6; i++) {
        f.config.lane_count = lanes[i % 3];
        f.config.mode = i < 3 ? PTOWSP_ATTENTION_BALANCED : PTOWSP_ATTENTION_INVARIANT;
        const aplan placed = plan;
        assert_int_equal(ptowsp_attention_generate(&f.batch, &f.config, &plan, &info),
                         PTOWSP_BUFFER_OVERFLOW);
        char text[96];
        snprintf(text, sizeof text, "plan: %u lanes do not fit the plan, which has room for 2",
                 lanes[i % 3]);
        assert_text(&info, text);
        assert_int_equal(info.fault, PTOWSP_FAULT_LANES_SMALL);
        assert_int_equal(info.index, PTOWSP_NO_INDEX);
        assert_int_equal(ptowsp_attention_size(&f.batch, &f.config, &sizes, NULL), PTOWSP_OK);
        assert_int_equal(info.work_count, sizes.unit_count);
        assert_memory_equal(&placed, &plan, sizeof plan);
        assert_memory_equal(before, block, all);
    }
    // Fewer lanes fit, and a plan that has more lanes than room is not right.
    f.config.mode = PTOWSP_ATTENTION_BALANCED;
    f.config.lane_count = 1;
    assert_int_equal(ptowsp_attention_generate(&f.batch, &f.config, &plan, NULL), PTOWSP_OK);
    f.config.lane_count = PLACED;
    assert_int_equal(ptowsp_attention_generate(&f.batch, &f.config, &plan, NULL), PTOWSP_OK);
    assert_memory_equal(before + bytes, block + bytes, GUARD);
    assert_int_equal(ptowsp_attention_check(&f.batch, &f.config, &plan, NULL), PTOWSP_OK);
    plan.lane_capacity = 1;
    assert_int_equal(ptowsp_attention_check(&f.batch, &f.config, &plan, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_text(&info, "plan: the plan says 2 where 1 belongs");
    free(block);
    free(before);
}

TEST(attention_faults__plans_set_up_by_hand_may_leave_out_their_room_for_lanes) {
    faults_case f;
    case_make(&f);
    f.config.lane_count = 100;
    ptowsp_work units[200], merges[100];
    uint32_t unit_begin[101], merge_begin[101];
    aplan plan = {.units = units,
                  .merges = merges,
                  .unit_begin = unit_begin,
                  .merge_begin = merge_begin,
                  .unit_capacity = 200,
                  .merge_capacity = 100,
                  .slot_capacity = 300};
    assert_int_equal(ptowsp_attention_generate(&f.batch, &f.config, &plan, NULL), PTOWSP_OK);
    assert_int_equal(plan.lane_count, 100);
    assert_int_equal(plan.lane_capacity, 0);
    plan_check(&f.batch, &f.config, &plan);
}

TEST(attention_faults__a_number_that_names_nothing_leaves_the_name_out) {
    ptowsp_plan_info info = {0, PTOWSP_FAULT_PLAN_ARRAY, 4, 0, 0, false};
    assert_text(&info, "plan: plan. is NULL: was the plan placed?");
    info.index = INT64_MAX;
    assert_text(&info, "plan: plan. is NULL: was the plan placed?");
    info.fault = PTOWSP_FAULT_POSITIONS_ALONE;
    info.value = INT64_MIN;
    assert_text(&info, "plan: positions. is given without query_first");
}

TEST(attention_faults__wrong_arguments_of_bounds_are_refused) {
    faults_case f;
    case_make(&f);
    ptowsp_attention_limits limits = {4, -1, 0, 0, 0};
    ptowsp_attention_sizes sizes;
    ptowsp_plan_info info;
    assert_int_equal(ptowsp_attention_bound(&f.config, &limits, &sizes, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_text(&info, "plan: a largest length in limits is -1");
    assert_int_equal(ptowsp_attention_bound(&f.config, NULL, &sizes, &info), PTOWSP_INVALID_PARAMS);
    assert_text(&info, "plan: limits is NULL");
    assert_int_equal(ptowsp_attention_bound(&f.config, &limits, NULL, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_attention_bound(NULL, &limits, &sizes, &info), PTOWSP_INVALID_PARAMS);
    limits.kv_length_max = 0;
    assert_int_equal(ptowsp_attention_bound(&f.config, &limits, &sizes, &info), PTOWSP_OK);
    assert_int_equal(sizes.unit_count, 0);
}

// Ranges beyond the counts, out of order, that end early, or of a lane without speed; and counts.
TEST(attention_faults__check_finds_wrong_ranges_and_counts) {
    faults_case f;
    case_make(&f);
    aplan plan = plan_make(&f.batch, &f.config);
    ptowsp_plan_info info;
    f.config.lane_count = 2;
    assert_int_equal(ptowsp_attention_check(&f.batch, &f.config, &plan, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_text(&info, "plan: the plan is of another configuration: it has 3 where 2 belongs");
    case_make(&f);
    struct {
        uint32_t *bound, value;
    } ranges[] = {{&plan.unit_begin[LANES], 1000},  {&plan.unit_begin[1], 1000},
                  {&plan.unit_begin[LANES], 1},     {&plan.unit_begin[0], 1},
                  {&plan.merge_begin[LANES], 1000}, {&plan.merge_begin[1], UINT32_MAX},
                  {&plan.merge_begin[0], 1}};
    for (int i = 0; i < 7; i++) {
        const uint32_t kept = *ranges[i].bound;
        *ranges[i].bound = ranges[i].value;
        assert_int_equal(ptowsp_attention_check(&f.batch, &f.config, &plan, &info),
                         PTOWSP_INVALID_PARAMS);
        assert_int_equal(info.fault, PTOWSP_FAULT_LANE_RANGE);
        *ranges[i].bound = kept;
    }
    uint32_t *const counts[] = {&plan.unit_count, &plan.merge_count};
    for (int i = 0; i < 2; i++) {  // of arrays that are exactly as large as they are full
        char text[80];
        snprintf(text, sizeof text, "plan: the plan says %u where %u belongs",
                 (unsigned)*counts[i] + 1, (unsigned)*counts[i]);
        ++*counts[i];
        assert_int_equal(ptowsp_attention_check(&f.batch, &f.config, &plan, &info),
                         PTOWSP_INVALID_PARAMS);
        assert_text(&info, text);
        --*counts[i];
    }
    ++plan.slot_count;  // a slot that no part has
    ++plan.slot_capacity;
    assert_int_equal(ptowsp_attention_check(&f.batch, &f.config, &plan, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_int_equal(info.fault, PTOWSP_FAULT_COUNT_WRONG);
    --plan.slot_count;
    assert_int_equal(ptowsp_attention_check(&f.batch, &f.config, &plan, &info), PTOWSP_OK);
    f.speeds[0] = f.speeds[1] = 1;  // but lane 2 has work
    f.config.lane_speeds = f.speeds;
    assert_int_equal(ptowsp_attention_check(&f.batch, &f.config, &plan, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_int_equal(info.fault, PTOWSP_FAULT_LANE_RANGE);
    plan_free(&plan);
}

// An INVALID unit below the count is not of a plan, even without KV: nor is a count that includes one.
TEST(attention_faults__check_finds_invalid_units_among_the_others) {
    const int32_t lengths[] = {40, 30};
    const abatch both = {lengths, NULL, 2}, first = {lengths, NULL, 1},
                 second = {lengths + 1, NULL, 1};
    aconfig c = {0};
    c.kv_head_count = c.lane_count = 1;
    aplan plan = plan_make(&both, &c);
    ptowsp_plan_info info;
    assert_int_equal(plan.unit_count, 2);
    plan.tile_count = 1;
    const ptowsp_work kept = plan.units[1];
    plan.units[1] = ptowsp_work_of(PTOWSP_NO_SLOT, 0, PTOWSP_WORK_INVALID, 0, 0, 0, 0);
    assert_int_equal(ptowsp_attention_check(&first, &c, &plan, &info), PTOWSP_INVALID_PARAMS);
    assert_text(&info, "plan: the plan says 2 where 1 belongs");
    plan.units[0] = plan.units[1];
    plan.units[1] = kept;
    plan.units[1].params[0] = 0;
    assert_int_equal(ptowsp_attention_check(&second, &c, &plan, &info), PTOWSP_INVALID_PARAMS);
    assert_int_equal(info.fault, PTOWSP_FAULT_UNIT_WRONG);
    assert_int_equal(info.index, 0);
    plan_free(&plan);
}

// 2^32 - 1 heads on two lanes: the middle one is split, and so there is one unit too many.
TEST(attention_faults__one_unit_too_many_is_refused) {
    const int32_t length = 1000;
    const abatch batch = {&length, NULL, 1};
    aconfig c = {.kv_head_count = UINT32_MAX, .lane_count = 2};
    ptowsp_work works[2];
    uint32_t begins[6];
    aplan plan = {
        .units = works, .merges = works + 1, .unit_begin = begins, .merge_begin = begins + 3};
    plan.unit_capacity = plan.merge_capacity = 1;
    ptowsp_plan_info info;
    ptowsp_attention_sizes sizes;
    const char text[] = "plan: 4294967296 units are more than the 4294967295 of a plan";
    assert_int_equal(ptowsp_attention_generate(&batch, &c, &plan, &info), PTOWSP_LIMIT_EXCEEDED);
    assert_text(&info, text);
    assert_int_equal(ptowsp_attention_size(&batch, &c, &sizes, &info), PTOWSP_LIMIT_EXCEEDED);
    assert_text(&info, text);
    c.kv_head_count--;  // one head less is half of them on each lane, and as many units as a plan can have
    assert_int_equal(ptowsp_attention_generate(&batch, &c, &plan, &info), PTOWSP_BUFFER_OVERFLOW);
    assert_int_equal(info.fault, PTOWSP_FAULT_UNITS_SMALL);
    assert_true(info.value == (int64_t)UINT32_MAX - 1);
}

// Arrays of 32-bit integers number units up to 2^31 - 1; nothing is read of a plan with more.
TEST(attention_faults__plans_too_large_to_export_are_refused) {
    ptowsp_work unit;
    const ptowsp_attention_arrays arrays = {NULL, NULL, NULL, NULL};
    aplan plan = {0};
    assert_int_equal(ptowsp_attention_export(&plan, &arrays), PTOWSP_OK);
    plan.unit_count = plan.unit_capacity = 1;
    assert_int_equal(ptowsp_attention_export(&plan, &arrays), PTOWSP_INVALID_PARAMS);
    plan.units = &unit;
    plan.unit_count = plan.unit_capacity = (uint32_t)INT32_MAX + 1;
    assert_int_equal(ptowsp_attention_export(&plan, &arrays), PTOWSP_LIMIT_EXCEEDED);
    plan.unit_capacity--;  // fewer than there are
    assert_int_equal(ptowsp_attention_export(&plan, &arrays), PTOWSP_INVALID_PARAMS);
    plan.unit_count = 0;
    plan.merge_count = plan.merge_capacity = 1;
    assert_int_equal(ptowsp_attention_export(&plan, &arrays), PTOWSP_INVALID_PARAMS);
    plan.merges = &unit;
    plan.merge_capacity = 0;
    assert_int_equal(ptowsp_attention_export(&plan, &arrays), PTOWSP_INVALID_PARAMS);
}

// Parts without slots need no merges, and their results would be lost.
TEST(attention_faults__check_finds_parts_without_slots) {
    const int32_t lengths[] = {250, 100, 50};
    const abatch batch = {lengths, NULL, 3};
    aconfig c = {.kv_head_count = 1, .lane_count = 4, .cost.per_token = 1};
    aplan plan = plan_make(&batch, &c);
    assert_int_equal(plan.merge_count, 2);
    for (uint32_t i = 0; i < plan.unit_count; i++) {
        plan.units[i].work_id = PTOWSP_NO_SLOT;
    }
    for (uint32_t i = 0; i < plan.merge_count; i++) {
        plan.merges[i].flags = PTOWSP_WORK_INVALID;
        plan.merges[i].params[3] = 0;
    }
    ptowsp_plan_info info;
    assert_int_equal(ptowsp_attention_check(&batch, &c, &plan, &info), PTOWSP_INVALID_PARAMS);
    assert_int_equal(info.fault, PTOWSP_FAULT_UNIT_WRONG);
    assert_int_equal(info.index, 0);
    plan_free(&plan);
}

// Two parts of a tile whose entry in the list of merges is missing.
TEST(attention_faults__check_finds_parts_without_a_merge) {
    const int32_t length = 400;
    const abatch batch = {&length, NULL, 1};
    aconfig c = {.kv_head_count = 1, .lane_count = 2};
    aplan plan = plan_make(&batch, &c);
    assert_int_equal(plan.merge_count, 1);
    plan.merge_count = plan.merge_begin[1] = plan.merge_begin[2] = 0;
    ptowsp_plan_info info;
    assert_int_equal(ptowsp_attention_check(&batch, &c, &plan, &info), PTOWSP_INVALID_PARAMS);
    assert_text(&info, "plan: merge 0 has the value 0 where 1 belongs");
    plan_free(&plan);
}

// Each field of each unit and merge, changed alone, is found, and so is each count and range.
TEST(attention_faults__check_finds_what_is_changed) {
    faults_case f;
    case_make(&f);
    f.config.cost.per_token = 1;
    f.config.page_size = 5;
    aplan plan = plan_make(&f.batch, &f.config);
    assert_true(plan.merge_count > 0 && plan.unit_count > 6);
    ptowsp_plan_info info;
    const uint32_t unit_count = plan.unit_count, merge_count = plan.merge_count;
    for (uint32_t i = 0; i < unit_count + merge_count; i++) {
        ptowsp_work *work = i < unit_count ? &plan.units[i] : &plan.merges[i - unit_count];
        const ptowsp_work kept = *work;
        for (int field = 0; field < 8; field++) {
            switch (field) {
            case 0: work->work_id ^= 1; break;
            case 1: work->tier ^= i < unit_count; break;
            case 2: work->flags ^= 1; break;
            case 3: work->reserved ^= 1; break;
            default: work->params[field - 4] ^= 1; break;
            }
            const bool is_same = memcmp(work, &kept, sizeof kept) == 0;
            const ptowsp_status status = ptowsp_attention_check(&f.batch, &f.config, &plan, &info);
            assert_int_equal(status, is_same ? PTOWSP_OK : PTOWSP_INVALID_PARAMS);
            if (!is_same) {
                assert_true(info.fault == (i < unit_count ? PTOWSP_FAULT_UNIT_WRONG
                                                          : PTOWSP_FAULT_MERGE_WRONG) ||
                            info.fault == PTOWSP_FAULT_MERGE_WRONG);
            }
            *work = kept;
        }
    }
    uint32_t *numbers[] = {&plan.unit_count,   &plan.merge_count,    &plan.slot_count,
                           &plan.tile_count,   &plan.lane_count,     &plan.tile_tokens,
                           &plan.group,        &plan.unit_begin[0],  &plan.unit_begin[3],
                           &plan.slot_rows,    &plan.merge_begin[0], &plan.merge_begin[3],
                           &plan.unit_begin[1]};
    for (int i = 0; i < 13; i++) {
        const uint32_t kept = *numbers[i];
        *numbers[i] = i == 9 || i == 2 ? 0 : i == 12 ? 1000 : kept + 1;
        assert_int_equal(ptowsp_attention_check(&f.batch, &f.config, &plan, &info),
                         PTOWSP_INVALID_PARAMS);
        *numbers[i] = kept;
    }
    assert_int_equal(ptowsp_attention_check(&f.batch, &f.config, &plan, &info), PTOWSP_OK);
    f.kv[3] = 51;  // another batch
    assert_int_equal(ptowsp_attention_check(&f.batch, &f.config, &plan, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_int_equal(info.fault, PTOWSP_FAULT_UNIT_WRONG);
    f.kv[3] = 0;
    assert_int_equal(ptowsp_attention_check(&f.batch, &f.config, &plan, &info),
                     PTOWSP_INVALID_PARAMS);
    plan.tile_count -= 2;
    assert_int_equal(ptowsp_attention_check(&f.batch, &f.config, &plan, &info),
                     PTOWSP_INVALID_PARAMS);
    assert_int_equal(info.fault, PTOWSP_FAULT_UNIT_EXTRA);
    plan_free(&plan);
}

TEST(attention_faults__chunk_plans_say_when_they_exceed_their_units) {
    const int32_t lengths[] = {1000};
    const ptowsp_batch batch = {lengths, 1, 1};
    ptowsp_plan_config config = {.chunk_min = 1, .chunk_max = 100};
    ptowsp_work work[16];
    ptowsp_plan_info info;
    for (uint32_t units = 9; units <= 10; units++) {
        uint32_t chunk;
        config.max_work_units = units;
        assert_int_equal(ptowsp_plan_chunk_size(&batch, &config, &chunk, &info), PTOWSP_OK);
        assert_int_equal(chunk, 100);
        assert_int_equal(info.is_over, units < 10);
        assert_int_equal(ptowsp_plan_total_work(&batch, &config, chunk, &info), PTOWSP_OK);
        assert_int_equal(info.is_over, units < 10);
        assert_int_equal(ptowsp_plan_generate(&batch, &config, chunk, work, 16, &info), PTOWSP_OK);
        assert_int_equal(info.is_over, units < 10);
    }
    assert_false(ptowsp_plan_is_invariant(NULL));
    assert_false(ptowsp_plan_is_invariant(&config));
    config.chunks = PTOWSP_CHUNKS_FIXED;
    assert_false(ptowsp_plan_is_invariant(&config));
    config.chunk_min = 100;
    assert_true(ptowsp_plan_is_invariant(&config));
    config.chunk_min = 97;  // in pages of 50 only 100 is left
    config.align = 50;
    assert_true(ptowsp_plan_is_invariant(&config));
}
