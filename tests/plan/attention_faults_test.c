// Attention plans: what is refused, with its text; and what the check finds.

#include "attention_fixture.h"
#include "plan_text.h"

enum { LANES = 3 };

typedef struct faults_case {
    int32_t kv[4], queries[4];
    uint32_t speeds[LANES];
    ptowsp_tier tiers[1];
    abatch batch;
    aconfig config;
    ptowsp_attention_sizes sizes;
    ptowsp_plan_info info;
} faults_case;

static void case_make(faults_case *f) {
    *f = (faults_case){.kv = {300, 0, 20, 50},
                       .queries = {1, 5, 2, 1},
                       .batch = {f->kv, f->queries, 4},
                       .config = {.kv_head_count = 2, .lane_count = LANES}};
}

#define SIZE(f)           ptowsp_attention_size(&(f)->batch, &(f)->config, &(f)->sizes, &(f)->info)
#define GENERATE(f, plan) ptowsp_attention_generate(&(f)->batch, &(f)->config, plan, &(f)->info)
#define CHECK(f, plan)    ptowsp_attention_check(&(f)->batch, &(f)->config, plan, &(f)->info)

// All that plan refuse it, with this text, and write nothing.
static void refused(faults_case *f, ptowsp_status status, ptowsp_plan_fault fault, uint64_t index,
                    const char *text) {
    faults_case good;
    case_make(&good);
    aplan plan = plan_make(&good.batch, &good.config);
    const ptowsp_work first = plan.units[0];
    memset(&f->sizes, 1, sizeof f->sizes);
    for (int call = 0; call < 3; call++) {
        memset(&f->info, 0x55, sizeof f->info);
        fault_is(call == 0   ? GENERATE(f, &plan)
                 : call == 1 ? SIZE(f)
                             : CHECK(f, &plan),
                 status, &f->info, text);
        assert_int_equal(f->info.fault, fault);
        assert_int_equal(f->info.index, index);
        assert_int_equal(f->info.work_count, 0);
    }
    assert_int_equal(f->sizes.unit_count, 0);
    assert_memory_equal(&first, plan.units, sizeof first);
    plan_free(&plan);
}

// Changes some of the good case, which is then refused; of all of it, or of an index.
#define WRONG_AS(status, fault, index, change, text)                                               \
    (case_make(f), change, refused(f, PTOWSP_##status, PTOWSP_FAULT_##fault, index, text))
#define WRONG(fault, change, text)                                                                 \
    WRONG_AS(INVALID_PARAMS, fault, PTOWSP_NO_INDEX, change, "plan: " text)
#define WRONG_AT(index, fault, change, text)                                                       \
    WRONG_AS(INVALID_PARAMS, fault, index, change, "plan: " text)
#define TOO_MUCH(index, fault, change, text)                                                       \
    WRONG_AS(LIMIT_EXCEEDED, fault, index, change, "plan: " text)
// Changes some of the good case, which is good then too.
#define GOOD(change) (case_make(f), change, assert_ok(SIZE(f)))

// What the check finds in `plan`, as a fault or a text.
#define FOUND(of)                                                                                  \
    (assert_invalid(CHECK(f, &plan)), assert_int_equal(f->info.fault, PTOWSP_FAULT_##of))
#define FOUND_AS(text) fault_is(CHECK(f, &plan), PTOWSP_INVALID_PARAMS, &f->info, text)

#define FAULTS_TEST(name) TEST_MADE(name, faults_case, f, case_make(f), (void)0)

// 12 query heads of 3 KV heads are groups of 4, whether the group is given, derived or both; so are
// the rows of a slot.
FAULTS_TEST(attention_faults__heads_that_agree_are_one_plan) {
    static const uint32_t given[3][2] = {{4, 0}, {0, 12}, {4, 12}};
    const ptowsp_attention_limits limits = {.sequence_count_max = 3, .kv_length_max = 9000};
    for (int i = 0; i < 3; i++) {
        f->config.kv_head_count = 3, f->config.group = given[i][0];
        f->config.query_head_count = given[i][1];
        ptowsp_prefix_sizes bound;
        aplan plan = plan_make(&f->batch, &f->config);
        assert_int_equal(plan.group, 4);
        assert_int_equal(plan.tile_tokens, 64 / 4);
        plan_free(&plan);
        assert_ok(ptowsp_prefix_bound(&f->config, &limits, &bound, NULL));
        assert_int_equal(bound.attention.slot_rows, 3 * 4);  // of 3 requests, a token each
        const ptowsp_attend_step step = {.config = &f->config};
        const ptowsp_attend_unit unit = {.query_count = 2};
        assert_int_equal(ptowsp_attend_unit_rows(&step, &unit), 2 * 4);
    }
}

FAULTS_TEST(attention_faults__wrong_configurations_are_refused) {
    aconfig *c = &f->config;
    WRONG(HEADS_ZERO, c->kv_head_count = 0, "kv_head_count is 0");
    // 32 query heads share 8 KV heads: 32 where the KV heads belong contradicts the group.
    WRONG(HEADS_OTHER, (c->kv_head_count = 32, c->group = 4, c->query_head_count = 32),
          "query_head_count 32 is not kv_head_count * group, which is 128");
    WRONG(HEADS_MULTIPLE, (c->kv_head_count = 8, c->query_head_count = 36),
          "query_head_count 36 is not a multiple of kv_head_count 8");
    WRONG(HEADS_MULTIPLE, (c->kv_head_count = 8, c->query_head_count = 4),
          "query_head_count 4 is not a multiple of kv_head_count 8");
    WRONG(HEADS_OTHER, (c->kv_head_count = c->group = UINT32_MAX, c->query_head_count = 4),
          "query_head_count 4 is not kv_head_count * group, which is 9223372036854775807");
    WRONG(LANES_COUNT, c->lane_count = 0, "lane_count 0 is not in 1 to 65536");
    WRONG(LANES_COUNT, c->lane_count = 65537, "lane_count 65537 is not in 1 to 65536");
    WRONG(SPEEDS_ZERO, c->lane_speeds = f->speeds, "the speeds of all 3 lanes are 0");
    WRONG(MODE_UNKNOWN, c->mode = (ptowsp_attention_mode)7, "config.mode has the unknown value 7");
#define CHUNKS(pages, chunks, grains)                                                              \
    (c->mode = PTOWSP_ATTENTION_INVARIANT, c->page_size = pages, c->chunk = chunks,                \
     c->grain = grains)
    WRONG(CHUNK_PAGES, CHUNKS(16, 100, 0), "chunk 100 is not a multiple of page_size 16");
    WRONG(GRAIN_PAGES, CHUNKS(16, 128, 8), "grain 8 is not a multiple of page_size 16");
    WRONG(GRAIN_CHUNK, CHUNKS(16, 128, 48), "grain 48 does not divide chunk 128");
    WRONG(GRAIN_CHUNK, CHUNKS(16, 128, 256), "grain 256 does not divide chunk 128");
    WRONG(TIERS_EMPTY, c->tiers = f->tiers, "tiers is given with tier_count 0");
    WRONG(TIERS_NULL, c->tier_count = 2, "tiers is NULL with tier_count 2");
    fault_is(ptowsp_attention_size(&f->batch, NULL, &f->sizes, &f->info), PTOWSP_INVALID_PARAMS,
             &f->info, "plan: config is NULL");
    fault_is(ptowsp_attention_size(&f->batch, c, NULL, &f->info), PTOWSP_INVALID_PARAMS, &f->info,
             "plan: out_sizes is NULL");
}

FAULTS_TEST(attention_faults__of_costs) {
    const double wrong[] = {-1, NAN, INFINITY, -INFINITY, 1e101, 1e-101};
    ptowsp_attention_cost *cost = &f->config.cost;
    for (size_t k = 0; k < COUNT_OF(wrong); k++) {
        WRONG_AT(0, COST_INVALID, cost->per_unit = wrong[k],
                 "cost.per_unit is negative, NaN or out of range");
        WRONG_AT(1, COST_INVALID, cost->per_token = wrong[k],
                 "cost.per_token is negative, NaN or out of range");
        WRONG_AT(2, COST_INVALID, cost->per_row_token = wrong[k],
                 "cost.per_row_token is negative, NaN or out of range");
        WRONG_AT(3, COST_INVALID, cost->per_merged_row = wrong[k],
                 "cost.per_merged_row is negative, NaN or out of range");
    }
    GOOD((cost->per_unit = 1, cost->per_token = 1.0 / (1 << 30)));
    WRONG_AT(0, COST_APART, (cost->per_unit = 1.001, cost->per_token = 1.0 / (1 << 30)),
             "cost.per_unit is over 2^30 times the smallest");
    // Great and small ones, all on the same grid.
    for (double scale = 1e-90; scale < 1e91; scale *= 1e30) {
        GOOD((cost->per_unit = 3 * scale, cost->per_token = scale));
        aplan plan = plan_make(&f->batch, &f->config);
        plan_check(&f->batch, &f->config, &plan);
        plan_free(&plan);
    }
}

FAULTS_TEST(attention_faults__wrong_batches_are_refused) {
    abatch *batch = &f->batch;
    aconfig *c = &f->config;
    WRONG_AT(2, LENGTH_NEGATIVE, f->kv[2] = -7, "sequence 2 has the negative length -7");
    WRONG_AT(2, LENGTH_NEGATIVE, (f->kv[2] = -7, batch->query_lengths = NULL),
             "sequence 2 has the negative length -7");
    WRONG_AT(1, QUERY_NEGATIVE, f->queries[1] = INT32_MIN,  // with KV length 0 as well
             "sequence 1 has the negative query length -2147483648");
    WRONG_AT(3, QUERY_LONG, (c->is_causal = true, f->queries[3] = 51),
             "sequence 3 has 51 queries for 50 KV tokens, under is_causal");
    GOOD((c->is_causal = true, f->queries[3] = 50));  // and 5 for none are no fault
#define TIERS_TO(length)                                                                           \
    (f->tiers[0].length_min = 1, f->tiers[0].length_max = length, c->tiers = f->tiers,             \
     c->tier_count = 1)
    WRONG_AS(UNSUPPORTED_SIZE, LENGTH_UNCOVERED, 0, TIERS_TO(299),
             "plan: sequence 0 has length 300, which no tier covers");
    GOOD((TIERS_TO(299), f->queries[0] = 0));  // has no units, so needs none
    TOO_MUCH(0, TILES_EXCEEDED, (c->tile_rows = 1, f->queries[0] = 65537),
             "sequence 0 has 65537 query tiles, more than 65536");
    GOOD((c->tile_rows = 1, f->queries[0] = 65536));
    WRONG(LENGTHS_NULL, batch->kv_lengths = NULL, "lengths is NULL with sequence_count 4");
    fault_is(ptowsp_attention_size(NULL, c, &f->sizes, &f->info), PTOWSP_INVALID_PARAMS, &f->info,
             "plan: batch is NULL");
}

FAULTS_TEST(attention_faults__totals_too_large_are_refused) {
    abatch *batch = &f->batch;
    aconfig *c = &f->config;
    ptowsp_attention_cost *cost = &c->cost;
    const uint64_t all = PTOWSP_NO_INDEX;
    // Of three sequences: 2^32 - 1 units.
    GOOD((batch->query_lengths = NULL, c->kv_head_count = 1431655765, c->lane_count = 1));
    assert_int_equal(f->sizes.unit_count, UINT32_MAX);
    TOO_MUCH(all, UNITS_EXCEEDED, (batch->query_lengths = NULL, c->kv_head_count = 1431655766),
             "4294967298 units are more than the 4294967295 of a plan");
    TOO_MUCH(all, UNITS_EXCEEDED, (batch->query_lengths = NULL, c->kv_head_count = UINT32_MAX),
             "12884901885 units are more than the 4294967295 of a plan");
    // 2^31 - 1 tokens at 2^40 of the grid: 2^71.
    TOO_MUCH(all, COST_OVERFLOW,
             (f->kv[0] = INT32_MAX, cost->per_unit = 1, cost->per_token = 1 << 30),
             "the cost of the batch exceeds 2^62 of the planner's grid");
    TOO_MUCH(all, COST_OVERFLOW,
             (f->kv[0] = INT32_MAX, cost->per_unit = 1, cost->per_token = 1 << 30,
              batch->query_lengths = NULL),
             "the cost of the batch exceeds 2^62 of the planner's grid");
    // Rows times rate overflow only where there are rows.
#define MANY_ROWS                                                                                  \
    (batch->query_lengths = NULL, cost->per_unit = 1, cost->per_token = 1 << 30,                   \
     cost->per_row_token = 1 << 29, c->tile_rows = UINT32_MAX)
    GOOD(MANY_ROWS);
    TOO_MUCH(all, COST_OVERFLOW, (MANY_ROWS, c->group = UINT32_MAX),
             "the cost of the batch exceeds 2^62 of the planner's grid");
}

FAULTS_TEST(attention_faults__capacities_too_small_are_refused) {
    f->config.cost.per_token = 1;
    f->batch.sequence_count = 1;
    f->config.kv_head_count = 1;  // 300 tokens on 3 lanes
    aplan plan = plan_make(&f->batch, &f->config);
    assert_int_equal(plan.unit_count, 3);
    const ptowsp_work mark = ptowsp_work_of(77, 1, 2, 3, 4, 5, 6);
    plan.units[0] = mark;
    uint32_t *capacity[] = {&plan.unit_capacity, &plan.merge_capacity, &plan.slot_capacity};
    const uint32_t needed[] = {3, 1, 3};
    const char *texts[] = {"plan: 3 units do not fit the plan, which holds 2",
                           "plan: 1 merges do not fit the plan, which holds 0",
                           "plan: 3 slots do not fit the scratch, which holds 2"};
    for (int i = 0; i < 3; i++) {
        *capacity[i] = needed[i] - 1;
        fault_is(GENERATE(f, &plan), PTOWSP_BUFFER_OVERFLOW, &f->info, texts[i]);
        assert_int_equal(f->info.value, needed[i]);
        assert_int_equal(f->info.limit, needed[i] - 1);
        assert_int_equal(f->info.work_count, 3);
        assert_memory_equal(&mark, plan.units, sizeof mark);
        *capacity[i] = needed[i];
    }
    const char *names[] = {"units", "merges", "unit_begin", "merge_begin"};
    for (int i = 0; i < 4; i++) {
        aplan holed = plan;
        holed.units = i == 0 ? NULL : plan.units;
        holed.merges = i == 1 ? NULL : plan.merges;
        holed.unit_begin = i == 2 ? NULL : plan.unit_begin;
        holed.merge_begin = i == 3 ? NULL : plan.merge_begin;
        char text[64];
        snprintf(text, sizeof text, "plan: plan.%s is NULL: was the plan placed?", names[i]);
        fault_is(GENERATE(f, &holed), PTOWSP_INVALID_PARAMS, &f->info, text);
    }
    fault_is(GENERATE(f, NULL), PTOWSP_INVALID_PARAMS, &f->info, "plan: plan is NULL");
    plan.lane_costs = NULL;  // may be
    assert_ok(GENERATE(f, &plan));
    plan_free(&plan);
}

// 100 lanes have the units of 2 lanes where there are few tokens, but not their ranges.
FAULTS_TEST(attention_faults__more_lanes_than_were_placed_are_refused) {
    enum { PLACED = 2, GUARD = 4096 };
    f->config.lane_count = PLACED;
    assert_ok(SIZE(f));
    ptowsp_attention_sizes sizes = f->sizes;
    sizes.unit_count = sizes.merge_count = sizes.slot_count = 300;
    sizes.block_bytes = 600 * sizeof(ptowsp_work) + PLACED * 8 + 2 * (PLACED + 1) * 4;
    const size_t bytes = (size_t)sizes.block_bytes, all = bytes + GUARD;
    unsigned char *block = (unsigned char *)malloc(all), *before = (unsigned char *)malloc(all);
    memset(block, 0xa5, all);
    memcpy(before, block, all);
    aplan plan;
    assert_ok(ptowsp_attention_place(&sizes, block, bytes, &plan));
    assert_int_equal(plan.lane_capacity, PLACED);
    assert_int_equal(plan.lane_count, PLACED);
    const uint32_t lanes[] = {PLACED + 1, 100, PTOWSP_ATTENTION_LANE_MAX};
    for (int i = 0; i < 6; i++) {
        f->config.lane_count = lanes[i % 3];
        f->config.mode = i < 3 ? PTOWSP_ATTENTION_BALANCED : PTOWSP_ATTENTION_INVARIANT;
        const aplan placed = plan;
        char text[96];
        snprintf(text, sizeof text, "plan: %u lanes do not fit the plan, which has room for 2",
                 lanes[i % 3]);
        fault_is(GENERATE(f, &plan), PTOWSP_BUFFER_OVERFLOW, &f->info, text);
        assert_int_equal(f->info.fault, PTOWSP_FAULT_LANES_SMALL);
        assert_int_equal(f->info.index, PTOWSP_NO_INDEX);
        assert_ok(SIZE(f));
        assert_int_equal(f->info.work_count, f->sizes.unit_count);
        assert_memory_equal(&placed, &plan, sizeof plan);
        assert_memory_equal(before, block, all);
    }
    // Fewer lanes fit, and a plan that has more lanes than room is not right.
    f->config.mode = PTOWSP_ATTENTION_BALANCED;
    f->config.lane_count = 1;
    assert_ok(GENERATE(f, &plan));
    f->config.lane_count = PLACED;
    assert_ok(GENERATE(f, &plan));
    assert_memory_equal(before + bytes, block + bytes, GUARD);
    assert_ok(CHECK(f, &plan));
    plan.lane_capacity = 1;
    FOUND_AS("plan: the plan says 2 where 1 belongs");
    free(block);
    free(before);
}

FAULTS_TEST(attention_faults__plans_set_up_by_hand_may_leave_out_their_room_for_lanes) {
    f->config.lane_count = 100;
    ptowsp_work units[200], merges[100];
    uint32_t unit_begin[101], merge_begin[101];
    aplan plan = {.units = units,
                  .merges = merges,
                  .unit_begin = unit_begin,
                  .merge_begin = merge_begin,
                  .unit_capacity = 200,
                  .merge_capacity = 100,
                  .slot_capacity = 300};
    assert_ok(GENERATE(f, &plan));
    assert_int_equal(plan.lane_count, 100);
    assert_int_equal(plan.lane_capacity, 0);
    plan_check(&f->batch, &f->config, &plan);
}

TEST(attention_faults__a_number_that_names_nothing_leaves_the_name_out) {
    ptowsp_plan_info info = {0, PTOWSP_FAULT_PLAN_ARRAY, 4, 0, 0, false};
    fault_text_is(&info, "plan: plan. is NULL: was the plan placed?");
    info.index = INT64_MAX;
    fault_text_is(&info, "plan: plan. is NULL: was the plan placed?");
    info.fault = PTOWSP_FAULT_POSITIONS_ALONE;
    info.value = INT64_MIN;
    fault_text_is(&info, "plan: positions. is given without query_first");
}

FAULTS_TEST(attention_faults__wrong_arguments_of_bounds_are_refused) {
    ptowsp_attention_limits limits = {4, -1, 0, 0, 0};
    fault_is(ptowsp_attention_bound(&f->config, &limits, &f->sizes, &f->info),
             PTOWSP_INVALID_PARAMS, &f->info, "plan: a largest length in limits is -1");
    fault_is(ptowsp_attention_bound(&f->config, NULL, &f->sizes, &f->info), PTOWSP_INVALID_PARAMS,
             &f->info, "plan: limits is NULL");
    assert_invalid(ptowsp_attention_bound(&f->config, &limits, NULL, &f->info));
    assert_invalid(ptowsp_attention_bound(NULL, &limits, &f->sizes, &f->info));
    limits.kv_length_max = 0;
    assert_ok(ptowsp_attention_bound(&f->config, &limits, &f->sizes, &f->info));
    assert_int_equal(f->sizes.unit_count, 0);
}

// Ranges beyond the counts, out of order, that end early, or of a lane without speed; and counts.
FAULTS_TEST(attention_faults__check_finds_wrong_ranges_and_counts) {
    aplan plan = plan_make(&f->batch, &f->config);
    f->config.lane_count = 2;
    FOUND_AS("plan: the plan is of another configuration: it has 3 where 2 belongs");
    case_make(f);
    struct {
        uint32_t *bound, value;
    } ranges[] = {{&plan.unit_begin[LANES], 1000},  {&plan.unit_begin[1], 1000},
                  {&plan.unit_begin[LANES], 1},     {&plan.unit_begin[0], 1},
                  {&plan.merge_begin[LANES], 1000}, {&plan.merge_begin[1], UINT32_MAX},
                  {&plan.merge_begin[0], 1}};
    for (int i = 0; i < 7; i++) {
        const uint32_t kept = *ranges[i].bound;
        *ranges[i].bound = ranges[i].value;
        FOUND(LANE_RANGE);
        *ranges[i].bound = kept;
    }
    uint32_t *const counts[] = {&plan.unit_count, &plan.merge_count};
    for (int i = 0; i < 2; i++) {  // of arrays that are exactly as large as they are full
        char text[80];
        snprintf(text, sizeof text, "plan: the plan says %u where %u belongs",
                 (unsigned)*counts[i] + 1, (unsigned)*counts[i]);
        ++*counts[i];
        FOUND_AS(text);
        --*counts[i];
    }
    ++plan.slot_count;  // a slot that no part has
    ++plan.slot_capacity;
    FOUND(COUNT_WRONG);
    --plan.slot_count;
    assert_ok(CHECK(f, &plan));
    f->speeds[0] = f->speeds[1] = 1;  // but lane 2 has work
    f->config.lane_speeds = f->speeds;
    FOUND(LANE_RANGE);
    plan_free(&plan);
}

// An INVALID unit below the count is not of a plan, even without KV: nor is a count that includes one.
FAULTS_TEST(attention_faults__check_finds_invalid_units_among_the_others) {
    const int32_t lengths[] = {40, 30};
    f->batch = (abatch){lengths, NULL, 2};
    f->config = (aconfig){.kv_head_count = 1, .lane_count = 1};
    aplan plan = plan_make(&f->batch, &f->config);
    assert_int_equal(plan.unit_count, 2);
    plan.tile_count = 1;
    const ptowsp_work kept = plan.units[1];
    plan.units[1] = ptowsp_work_of(PTOWSP_NO_SLOT, 0, PTOWSP_WORK_INVALID, 0, 0, 0, 0);
    f->batch.sequence_count = 1;
    FOUND_AS("plan: the plan says 2 where 1 belongs");
    plan.units[0] = plan.units[1];
    plan.units[1] = kept;
    plan.units[1].params[0] = 0;
    f->batch.kv_lengths = lengths + 1;
    FOUND(UNIT_WRONG);
    assert_int_equal(f->info.index, 0);
    plan_free(&plan);
}

// 2^32 - 1 heads on two lanes: the middle one is split, and so there is one unit too many.
FAULTS_TEST(attention_faults__one_unit_too_many_is_refused) {
    const int32_t length = 1000;
    f->batch = (abatch){&length, NULL, 1};
    f->config = (aconfig){.kv_head_count = UINT32_MAX, .lane_count = 2};
    ptowsp_work works[2];
    uint32_t begins[6];
    aplan plan = {
        .units = works, .merges = works + 1, .unit_begin = begins, .merge_begin = begins + 3};
    plan.unit_capacity = plan.merge_capacity = 1;
    const char text[] = "plan: 4294967296 units are more than the 4294967295 of a plan";
    fault_is(GENERATE(f, &plan), PTOWSP_LIMIT_EXCEEDED, &f->info, text);
    fault_is(SIZE(f), PTOWSP_LIMIT_EXCEEDED, &f->info, text);
    f->config
        .kv_head_count--;  // one head less is half of them on each lane, and as many units as a plan can have
    assert_int_equal(GENERATE(f, &plan), PTOWSP_BUFFER_OVERFLOW);
    assert_int_equal(f->info.fault, PTOWSP_FAULT_UNITS_SMALL);
    assert_true(f->info.value == (int64_t)UINT32_MAX - 1);
}

// Arrays of 32-bit integers number units up to 2^31 - 1; nothing is read of a plan with more.
TEST(attention_faults__plans_too_large_to_export_are_refused) {
    ptowsp_work unit;
    const ptowsp_attention_arrays arrays = {NULL, NULL, NULL, NULL};
    aplan plan = {0};
    assert_ok(ptowsp_attention_export(&plan, &arrays));
    plan.unit_count = plan.unit_capacity = 1;
    assert_invalid(ptowsp_attention_export(&plan, &arrays));
    plan.units = &unit;
    plan.unit_count = plan.unit_capacity = (uint32_t)INT32_MAX + 1;
    assert_int_equal(ptowsp_attention_export(&plan, &arrays), PTOWSP_LIMIT_EXCEEDED);
    plan.unit_capacity--;  // fewer than there are
    assert_invalid(ptowsp_attention_export(&plan, &arrays));
    plan.unit_count = 0;
    plan.merge_count = plan.merge_capacity = 1;
    assert_invalid(ptowsp_attention_export(&plan, &arrays));
    plan.merges = &unit;
    plan.merge_capacity = 0;
    assert_invalid(ptowsp_attention_export(&plan, &arrays));
}

// Parts without slots need no merges, and their results would be lost.
FAULTS_TEST(attention_faults__check_finds_parts_without_slots) {
    const int32_t lengths[] = {250, 100, 50};
    f->batch = (abatch){lengths, NULL, 3};
    f->config = (aconfig){.kv_head_count = 1, .lane_count = 4, .cost.per_token = 1};
    aplan plan = plan_make(&f->batch, &f->config);
    assert_int_equal(plan.merge_count, 2);
    for (uint32_t i = 0; i < plan.unit_count; i++) {
        plan.units[i].work_id = PTOWSP_NO_SLOT;
    }
    for (uint32_t i = 0; i < plan.merge_count; i++) {
        plan.merges[i].flags = PTOWSP_WORK_INVALID;
        plan.merges[i].params[3] = 0;
    }
    FOUND(UNIT_WRONG);
    assert_int_equal(f->info.index, 0);
    plan_free(&plan);
}

// Two parts of a tile whose entry in the list of merges is missing.
FAULTS_TEST(attention_faults__check_finds_parts_without_a_merge) {
    const int32_t length = 400;
    f->batch = (abatch){&length, NULL, 1};
    f->config = (aconfig){.kv_head_count = 1, .lane_count = 2};
    aplan plan = plan_make(&f->batch, &f->config);
    assert_int_equal(plan.merge_count, 1);
    plan.merge_count = plan.merge_begin[1] = plan.merge_begin[2] = 0;
    FOUND_AS("plan: merge 0 has the value 0 where 1 belongs");
    plan_free(&plan);
}

// Each field of each unit and merge, changed alone, is found, and so is each count and range.
FAULTS_TEST(attention_faults__check_finds_what_is_changed) {
    f->config.cost.per_token = 1;
    f->config.page_size = 5;
    aplan plan = plan_make(&f->batch, &f->config);
    assert_true(plan.merge_count > 0 && plan.unit_count > 6);
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
            const ptowsp_status status = CHECK(f, &plan);
            assert_int_equal(status, is_same ? PTOWSP_OK : PTOWSP_INVALID_PARAMS);
            if (!is_same) {
                assert_true(f->info.fault == (i < unit_count ? PTOWSP_FAULT_UNIT_WRONG
                                                             : PTOWSP_FAULT_MERGE_WRONG) ||
                            f->info.fault == PTOWSP_FAULT_MERGE_WRONG);
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
        assert_invalid(CHECK(f, &plan));
        *numbers[i] = kept;
    }
    assert_ok(CHECK(f, &plan));
    f->kv[3] = 51;  // another batch
    FOUND(UNIT_WRONG);
    f->kv[3] = 0;
    assert_invalid(CHECK(f, &plan));
    plan.tile_count -= 2;
    FOUND(UNIT_EXTRA);
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
        assert_ok(ptowsp_plan_chunk_size(&batch, &config, &chunk, &info));
        assert_int_equal(chunk, 100);
        assert_int_equal(info.is_over, units < 10);
        assert_ok(ptowsp_plan_total_work(&batch, &config, chunk, &info));
        assert_int_equal(info.is_over, units < 10);
        assert_ok(ptowsp_plan_generate(&batch, &config, chunk, work, 16, &info));
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
