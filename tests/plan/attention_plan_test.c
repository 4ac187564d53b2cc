// Attention plans: placing, the balance of large batches, arrays, and what the check finds.
// attention_facts_test.c has numbers from paper and what is refused; attention_random_test.c holds random
// batches against a slow reference.

#include "attention_fixture.h"
#include "plan_text.h"

// The batch of the header's drawing, and its configuration.
static const int32_t drawn_lengths[] = {250, 100, 50};
static const abatch drawn = {drawn_lengths, NULL, 3};
static const aconfig drawn_config = {.kv_head_count = 1, .lane_count = 4, .cost.per_token = 1};

static aconfig config_of(uint32_t heads, uint32_t lanes) {
    aconfig c = {.kv_head_count = heads, .lane_count = lanes};
    return c;
}

// -- sizes, bounds, placing -----------------------------------------------------------------------

// Where the arrays lie is in attention_random_test.c.
TEST(attention_plan__place_refuses_what_does_not_fit) {
    const ptowsp_attention_sizes sizes = {5, 2, 4, 3, 7, 24 * 7 + 8 * 7 + 8 * 8};
    PWSP_ALIGNAS(8) char block[24 * 7 + 8 * 7 + 8 * 8 + 8];
    aplan plan;
    const uint64_t bytes = sizes.block_bytes;
    assert_ok(ptowsp_attention_place(&sizes, block, bytes, &plan));
    assert_int_equal(plan.unit_capacity, 5);
    assert_int_equal(plan.merge_capacity, 2);
    assert_int_equal(plan.slot_capacity, 4);
    assert_int_equal(ptowsp_attention_place(&sizes, block, bytes - 1, &plan),
                     PTOWSP_BUFFER_OVERFLOW);
    assert_invalid(ptowsp_attention_place(&sizes, block + 4, bytes, &plan));
    assert_invalid(ptowsp_attention_place(NULL, block, bytes, &plan));
    assert_invalid(ptowsp_attention_place(&sizes, NULL, bytes, &plan));
    assert_invalid(ptowsp_attention_place(&sizes, block, bytes, NULL));
    ptowsp_attention_sizes large;
    uint64_t *const counts[] = {&large.unit_count, &large.merge_count, &large.slot_count};
    for (int i = 0; i < 3; i++) {
        large = sizes;
        *counts[i] = UINT64_C(1) << 32;
        assert_int_equal(ptowsp_attention_place(&large, block, bytes, &plan),
                         PTOWSP_LIMIT_EXCEEDED);
    }
    large = sizes;
    large.lane_count = 0;
    assert_invalid(ptowsp_attention_place(&large, block, bytes, &plan));
}

// -- balance --------------------------------------------------------------------------------------

// Large batches, where the first attempt writes.
TEST(attention_plan__large_batches_are_balanced) {
    uint64_t random = test_seed();
    static int32_t lengths[5000];
    for (int round = 0; TEST_ROUNDS(round, 200); round++) {
        const abatch batch = {lengths, NULL, 200 + test_random_u32(&random, 0, 4800)};
        for (uint32_t i = 0; i < batch.sequence_count; i++) {
            lengths[i] =
                (int32_t)test_random_in(&random, 0, test_random(&random) % 20 == 0 ? 20000 : 2000);
        }
        const uint32_t heads = 1 + test_random_u32(&random, 0, 7);
        aconfig c = config_of(heads, 100 + test_random_u32(&random, 0, 200));
        c.page_size = 16;
        c.group = 1 + test_random_u32(&random, 0, 7);
        aplan plan = plan_make(&batch, &c);
        plan_check(&batch, &c, &plan);
        // Half a page and a split more than the mean, where lanes have several tiles; a thousandth
        // more where not all fits the first attempt.
        const double page = 16 * (1 + c.group / 64.0), split = 64 + 2 * c.group;
        const double share = plan.tile_count >= 8 * c.lane_count ? 0.001 : 0.1;
        assert_true(plan.cost_max <= (1 + share) * plan.cost_mean + page + split);
        // With room to spare the plan is the same.
        aplan roomy = plan;
        roomy.unit_capacity = plan.tile_count + c.lane_count;
        roomy.units = (ptowsp_work *)malloc(roomy.unit_capacity * sizeof *roomy.units);
        roomy.merge_capacity = c.lane_count;
        roomy.merges = (ptowsp_work *)malloc(c.lane_count * sizeof *roomy.merges);
        roomy.slot_capacity = 2 * c.lane_count;
        assert_ok(ptowsp_attention_generate(&batch, &c, &roomy, NULL));
        plan_check(&batch, &c, &roomy);
        assert_int_equal(roomy.unit_count, plan.unit_count);
        assert_memory_equal(roomy.units, plan.units, plan.unit_count * sizeof *plan.units);
        free(roomy.units);
        free(roomy.merges);
        plan_free(&plan);
    }
}

// -- arrays ------------------------------------------------------------------------------

TEST(attention_plan__export_refuses_what_is_no_plan) {
    aplan plan = plan_make(&drawn, &drawn_config);
    int32_t o[7];
    ptowsp_attention_arrays arrays = {.o_indptr = o};
    assert_ok(ptowsp_attention_export(&plan, &arrays));
    const ptowsp_attention_arrays none = {NULL, NULL, NULL, NULL};
    assert_ok(ptowsp_attention_export(&plan, &none));
    assert_invalid(ptowsp_attention_export(&plan, NULL));
    assert_invalid(ptowsp_attention_export(NULL, &arrays));
    plan.tile_count = 2;  // but three begin
    o[3] = 77;
    assert_invalid(ptowsp_attention_export(&plan, &arrays));
    assert_int_equal(o[3], 77);
    plan.tile_count = 3;
    plan.units[5].flags = PTOWSP_WORK_INVALID;
    assert_invalid(ptowsp_attention_export(&plan, &arrays));
    plan_free(&plan);
}

// Arrays of the drawn batch in a plan for up to 8 units and 4 merges: all elements are written, and none beyond.
// Other batches are in attention_random_test.c.
TEST(attention_plan__export_fills_the_arrays_to_capacity) {
    enum { UNITS = 8, MERGES = 4, MARK = 0x5a5a5a5a };
    static const int32_t expected[4][UNITS + 2] = {{0, 0, 0, 1, 1, 2, -1, -1, MARK, MARK},
                                                   {0, 1, 2, 0, 1, 0, -1, -1, MARK, MARK},
                                                   {0, 3, 5, 6, 6, 6, 6, 6, 6, MARK},
                                                   {0, 3, 5, 5, 5, MARK, MARK, MARK, MARK, MARK}};
    const ptowsp_attention_sizes sizes = {UNITS, MERGES, UNITS, 1, 4, 0};
    ptowsp_work placed[UNITS + MERGES + 8];
    aplan plan;
    int32_t got[4][UNITS + 2];
    const ptowsp_attention_arrays arrays = {got[0], got[1], got[2], got[3]};
    memset(got, 0x5a, sizeof got);
    assert_ok(ptowsp_attention_place(&sizes, placed, sizeof placed, &plan));
    assert_ok(ptowsp_attention_generate(&drawn, &drawn_config, &plan, NULL));
    assert_ok(ptowsp_attention_export(&plan, &arrays));
    assert_memory_equal(got, expected, sizeof got);
}

// -- faults ---------------------------------------------------------------------------------------

TEST(attention_faults__plans_set_up_by_hand_may_leave_out_their_room_for_lanes) {
    const aconfig config = config_of(2, 100);
    ptowsp_work units[200], merges[100];
    uint32_t unit_begin[101], merge_begin[101];
    aplan plan = {.units = units,
                  .merges = merges,
                  .unit_begin = unit_begin,
                  .merge_begin = merge_begin,
                  .unit_capacity = 200,
                  .merge_capacity = 100,
                  .slot_capacity = 300};
    assert_ok(ptowsp_attention_generate(&drawn, &config, &plan, NULL));
    assert_int_equal(plan.lane_count, 100);
    assert_int_equal(plan.lane_capacity, 0);
    plan_check(&drawn, &config, &plan);
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

// As the facts say of the size: 2^32 - 1 heads on two lanes have a unit more.
TEST(attention_faults__one_unit_too_many_is_refused) {
    const int32_t length = 1000;
    const abatch batch = {&length, NULL, 1};
    const aconfig config = config_of(UINT32_MAX, 2);
    aplan plan = plan_make(&drawn, &drawn_config);
    ptowsp_plan_info info;
    plan.lane_capacity = 0;
    fault_is(ptowsp_attention_generate(&batch, &config, &plan, &info), PTOWSP_LIMIT_EXCEEDED, &info,
             "plan: 4294967296 units are more than the 4294967295 of a plan");
    plan_free(&plan);
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
