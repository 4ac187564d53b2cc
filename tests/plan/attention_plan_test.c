// Attention plans: numbers from paper, the drawing of the header, sizes, bounds, placing, and the
// balance of large batches. attention_faults_test.c has what is refused; attention_random_test.c holds
// random batches against a slow reference.

#include "attention_fixture.h"

// Holds units to (request, head, tile, start, length, slot) and ranges of lanes.
static void assert_unit(const aplan *plan, uint32_t i, uint32_t request, uint32_t head,
                        uint32_t tile, uint32_t start, uint32_t length, uint32_t slot) {
    const ptowsp_work *unit = &plan->units[i];
    assert_int_equal(unit->params[0], request);
    assert_int_equal(unit->params[1], head);
    assert_int_equal(ptowsp_work_tile(unit), tile);
    assert_int_equal(unit->params[2], start);
    assert_int_equal(unit->params[3], length);
    assert_int_equal(ptowsp_work_slot(unit), slot);
}

// The batch of the header's drawing, and its configuration.
static const int32_t drawn_lengths[] = {250, 100, 50};
static const abatch drawn = {drawn_lengths, NULL, 3};
static const aconfig drawn_config = {.kv_head_count = 1, .lane_count = 4, .cost.per_token = 1};

static aconfig config_of(uint32_t heads, uint32_t lanes) {
    aconfig c = {.kv_head_count = heads, .lane_count = lanes};
    return c;
}

// Another plan in place of one.
static void plan_again(aplan *plan, const abatch *batch, const aconfig *config) {
    plan_free(plan);
    *plan = plan_make(batch, config);
}

TEST(attention_plan__gives_the_drawing_of_the_header) {
    aplan plan = plan_make(&drawn, &drawn_config);
    plan_check(&drawn, &drawn_config, &plan);
    const uint32_t begin[5] = {0, 1, 2, 4, 6}, merge_begin[5] = {0, 1, 1, 2, 2};
    assert_memory_equal(plan.unit_begin, begin, sizeof begin);
    assert_memory_equal(plan.merge_begin, merge_begin, sizeof merge_begin);
    assert_unit(&plan, 0, 0, 0, 0, 0, 100, 0);
    assert_unit(&plan, 1, 0, 0, 0, 100, 100, 1);
    assert_unit(&plan, 2, 0, 0, 0, 200, 50, 2);
    assert_unit(&plan, 3, 1, 0, 0, 0, 50, 3);
    assert_unit(&plan, 4, 1, 0, 0, 50, 50, 4);
    assert_unit(&plan, 5, 2, 0, 0, 0, 50, PTOWSP_NO_SLOT);
    assert_int_equal(ptowsp_work_slot_count(&plan.merges[0]), 3);
    assert_int_equal(ptowsp_work_slot_first(&plan.merges[1]), 3);
    assert_true(plan.cost_max == 100 && plan.cost_mean == 100);
    uint32_t count;
    assert_ptr_equal(ptowsp_attention_lane_units(&plan, 2, &count), plan.units + 2);
    assert_int_equal(count, 2);
    assert_ptr_equal(ptowsp_attention_lane_merges(&plan, 2, &count), plan.merges + 1);
    assert_int_equal(count, 1);
    ptowsp_attention_lane_merges(&plan, 3, &count);
    assert_int_equal(count, 0);
    plan_free(&plan);
}

// One sequence of 1,000 tokens on two lanes: unit 10, token 1, 8 rows, 2 per merged row. Parts of x
// and 1,000 - x tokens: 10 + x + 2 * 8 * 2 = 10 + 1,000 - x, so x = 484. In pages of 16 that is 30.25.
TEST(attention_plan__the_lane_that_merges_computes_less) {
    const int32_t lengths[] = {1000};
    const abatch batch = {lengths, NULL, 1};
    aconfig c = {.kv_head_count = 1,
                 .lane_count = 2,
                 .group = 8,
                 .cost.per_unit = 10,
                 .cost.per_token = 1,
                 .cost.per_merged_row = 2};
    aplan plan = plan_make(&batch, &c);
    assert_int_equal(plan.unit_count, 2);
    assert_in_range(plan.units[0].params[3], 483, 485);
    assert_int_equal(plan.merge_begin[1], 1);
    c.page_size = 16;
    plan_again(&plan, &batch, &c);
    assert_int_equal(plan.units[0].params[3], 480);
    assert_true(plan.lane_costs[0] == 10 + 480 + 32 && plan.lane_costs[1] == 10 + 520);
    c.piece_min = 497;  // 512 in pages, and 1,000 is less than two
    plan_again(&plan, &batch, &c);
    assert_int_equal(plan.unit_count, 1);
    assert_int_equal(plan.slot_count, 0);
    c.piece_min = 0;
    c.cost.per_merged_row = 70;  // two slots cost 1,120: more than the split saves
    plan_again(&plan, &batch, &c);
    assert_int_equal(plan.unit_count, 1);
    plan_free(&plan);
}

// 100 queries are the last of 250 tokens, 4 heads a KV head, tiles of 32 rows: 8 tokens, 13 tiles.
// Tile t has queries 8 t to 8 t + 7, at positions from 150 + 8 t.
TEST(attention_plan__tiles_see_what_the_header_says) {
    const int32_t lengths[] = {250}, queries[] = {100};
    const abatch batch = {lengths, queries, 1};
    aconfig c = {.kv_head_count = 1, .lane_count = 1, .group = 4, .tile_rows = 35};
    aplan plan = plan_make(&batch, &c);
    assert_int_equal(plan.tile_count, 13);
    assert_int_equal(plan.tile_tokens, 8);
    assert_int_equal(plan.slot_rows, 32);
    assert_unit(&plan, 12, 0, 0, 12, 0, 250, PTOWSP_NO_SLOT);
    c.is_causal = true;
    plan_again(&plan, &batch, &c);
    assert_unit(&plan, 0, 0, 0, 0, 0, 158, PTOWSP_NO_SLOT);
    assert_unit(&plan, 11, 0, 0, 11, 0, 246, PTOWSP_NO_SLOT);
    assert_unit(&plan, 12, 0, 0, 12, 0, 250, PTOWSP_NO_SLOT);  // 4 tokens
    c.window = 20;  // the first of tile 0 sees 131 to 150
    plan_again(&plan, &batch, &c);
    assert_unit(&plan, 0, 0, 0, 0, 131, 27, PTOWSP_NO_SLOT);
    assert_unit(&plan, 12, 0, 0, 12, 227, 23, PTOWSP_NO_SLOT);
    c.mode = PTOWSP_ATTENTION_INVARIANT;
    c.chunk = 50;  // tile 0: 131 to 158 is cut at 150
    c.grain = 1;
    plan_again(&plan, &batch, &c);
    assert_unit(&plan, 0, 0, 0, 0, 131, 19, 0);
    assert_unit(&plan, 1, 0, 0, 0, 150, 8, 1);
    assert_unit(&plan, 2, 0, 0, 1, 139, 11, 2);
    c.grain = 25;  // 125 to 158, then 125 to 166
    plan_again(&plan, &batch, &c);
    assert_unit(&plan, 0, 0, 0, 0, 125, 25, 0);
    assert_unit(&plan, 1, 0, 0, 0, 150, 8, 1);
    assert_unit(&plan, 2, 0, 0, 1, 125, 25, 2);
    plan_free(&plan);
    // Without is_causal queries may be beyond the KV: at positions from -50 on.
    const int32_t few[] = {50};
    const abatch beyond = {few, queries, 1};
    // Tile 12 has positions 46 to 49.
    c = (aconfig){.kv_head_count = 1, .lane_count = 1, .group = 4, .tile_rows = 32, .window = 20};
    plan = plan_make(&beyond, &c);
    assert_unit(&plan, 0, 0, 0, 0, 0, 50, PTOWSP_NO_SLOT);
    assert_unit(&plan, 12, 0, 0, 12, 27, 23, PTOWSP_NO_SLOT);
    plan_free(&plan);
}

TEST(attention_plan__windows_beyond_all_kv_are_none) {
    const int32_t lengths[] = {2147483647, 5};
    const abatch batch = {lengths, NULL, 2};
    const uint32_t windows[] = {0, 2147483647, 2147483648u, UINT32_MAX};
    for (int i = 0; i < 4; i++) {
        const aconfig c = {.kv_head_count = 1, .lane_count = 1, .window = windows[i]};
        aplan plan = plan_make(&batch, &c);
        assert_unit(&plan, 0, 0, 0, 0, 0, 2147483647, PTOWSP_NO_SLOT);
        plan_free(&plan);
    }
    const aconfig c = {.kv_head_count = 1, .lane_count = 1, .window = 1};
    aplan plan = plan_make(&batch, &c);
    assert_unit(&plan, 0, 0, 0, 0, 2147483646, 1, PTOWSP_NO_SLOT);
    plan_free(&plan);
}

TEST(attention_plan__empty_sequences_have_no_units) {
    const int32_t lengths[] = {0, 7, 0, 9}, queries[] = {3, 0, 0, 2};
    const abatch batch = {lengths, queries, 4}, none = {NULL, NULL, 0}, zeros = {lengths, NULL, 1};
    aconfig c = config_of(2, 3);
    c.is_causal = true;
    aplan plan = plan_make(&batch, &c);
    plan_check(&batch, &c, &plan);
    assert_int_equal(plan.tile_count, 2);
    assert_int_equal(plan.units[0].params[0], 3);
    plan_free(&plan);
    const abatch *empty[] = {&none, &zeros};
    for (int i = 0; i < 2; i++) {
        plan = plan_make(empty[i], &c);
        plan_check(empty[i], &c, &plan);
        assert_int_equal(plan.unit_count, 0);
        assert_true(plan.cost_max == 0 && plan.cost_mean == 0);
        plan_free(&plan);
    }
}

TEST(attention_plan__lanes_get_work_by_their_speed) {
    const int32_t lengths[] = {600};
    const abatch batch = {lengths, NULL, 1};
    const uint32_t speeds[] = {0, 3, 0, 2, 1, 0};
    aconfig c = {.kv_head_count = 1, .lane_count = 6, .lane_speeds = speeds, .cost.per_token = 1};
    aplan plan = plan_make(&batch, &c);
    plan_check(&batch, &c, &plan);
    assert_unit(&plan, 0, 0, 0, 0, 0, 300, 0);
    assert_unit(&plan, 1, 0, 0, 0, 300, 200, 1);
    assert_unit(&plan, 2, 0, 0, 0, 500, 100, 2);
    const uint32_t begin[7] = {0, 0, 1, 1, 2, 3, 3};
    assert_memory_equal(plan.unit_begin, begin, sizeof begin);
    assert_true(plan.cost_max == 100 && plan.cost_mean == 100);
    plan_free(&plan);
}

// 264 parts of one tile would cost 264 slots on one lane. Of 100,000 tokens and 8 a slot the best
// is near the root of 800,000.
TEST(attention_plan__few_long_sequences_are_not_shredded) {
    const int32_t lengths[] = {100000};
    const abatch batch = {lengths, NULL, 1};
    aconfig c = {.kv_head_count = 1,
                 .lane_count = 264,
                 .group = 8,
                 .cost.per_token = 1,
                 .cost.per_merged_row = 1};
    aplan plan = plan_make(&batch, &c);
    plan_check(&batch, &c, &plan);
    assert_in_range(plan.unit_count, 90, 140);
    assert_true(plan.cost_max > 894 && plan.cost_max < 920);
    plan_free(&plan);
}

TEST(attention_plan__only_the_mode_makes_a_plan_invariant) {
    aconfig c = config_of(1, 1);
    c.chunk = 1024;  // a picked chunk alone promises nothing
    assert_false(ptowsp_attention_is_invariant(&c));
    c.mode = PTOWSP_ATTENTION_INVARIANT;
    assert_true(ptowsp_attention_is_invariant(&c));
    assert_false(ptowsp_attention_is_invariant(NULL));
}

// -- sizes, bounds, placing -----------------------------------------------------------------------

TEST(attention_plan__bounds_are_those_of_paper) {
    ptowsp_attention_sizes sizes;
    ptowsp_attention_limits limits = {256, 10000, 0, 0, 0};
    aconfig c = config_of(8, 264);
    c.group = 4;
    assert_ok(ptowsp_attention_bound(&c, &limits, &sizes, NULL));
    assert_int_equal(sizes.unit_count, 256 * 8 + 263);
    assert_int_equal(sizes.merge_count, 263);
    assert_int_equal(sizes.slot_count, 2 * 263);
    assert_int_equal(sizes.slot_rows, 4);
    assert_int_equal(sizes.lane_count, 264);
    assert_int_equal(sizes.block_bytes, 24 * (2048 + 263 + 263) + 8 * 264 + 8 * 265);
    limits.query_length_max = 100;  // tiles of 16 tokens: 7
    assert_ok(ptowsp_attention_bound(&c, &limits, &sizes, NULL));
    assert_int_equal(sizes.unit_count, 7 * 256 * 8 + 263);
    assert_int_equal(sizes.slot_rows, 64);
    limits.query_token_count_max = 160;  // at most 160 sequences of one: 160 tiles, no more
    assert_ok(ptowsp_attention_bound(&c, &limits, &sizes, NULL));
    assert_int_equal(sizes.unit_count, 160 * 8 + 263);
    c.mode = PTOWSP_ATTENTION_INVARIANT;  // chunks of 1,024: 10
    limits.query_length_max = 0;
    limits.query_token_count_max = 0;
    assert_ok(ptowsp_attention_bound(&c, &limits, &sizes, NULL));
    assert_int_equal(sizes.unit_count, 256 * 8 * 10);
    assert_int_equal(sizes.slot_count, 256 * 8 * 10);
    assert_int_equal(sizes.merge_count, 256 * 8);
    limits.kv_token_count_max = 10240;  // 10 chunks, and one more for each sequence but whole ones
    assert_ok(ptowsp_attention_bound(&c, &limits, &sizes, NULL));
    assert_in_range(sizes.unit_count, 8 * 256, 8 * (10 + 256));
    limits.sequence_count_max = UINT32_MAX / 2;  // 2^31 of one token: 2^31 * 8 units
    limits.kv_token_count_max = 0;
    ptowsp_plan_info info;
    assert_int_equal(ptowsp_attention_bound(&c, &limits, &sizes, &info), PTOWSP_LIMIT_EXCEEDED);
    assert_int_equal(info.fault, PTOWSP_FAULT_UNITS_EXCEEDED);
    assert_int_equal(sizes.unit_count, 0);
    c = config_of(1, 1);
    assert_ok(ptowsp_attention_bound(&c, &limits, &sizes, &info));
    assert_int_equal(sizes.unit_count, UINT32_MAX / 2);
}

TEST(attention_plan__place_puts_all_arrays_into_the_block) {
    const ptowsp_attention_sizes sizes = {5, 2, 4, 3, 7, 24 * 7 + 8 * 7 + 8 * 8};
    PWSP_ALIGNAS(8) char block[24 * 7 + 8 * 7 + 8 * 8 + 8];
    aplan plan;
    const uint64_t bytes = sizes.block_bytes;
    assert_ok(ptowsp_attention_place(&sizes, block, bytes, &plan));
    const char *at[] = {(char *)plan.units, (char *)plan.merges, (char *)plan.unit_begin,
                        (char *)plan.merge_begin, (char *)plan.lane_costs};
    const size_t length[] = {5 * 24, 2 * 24, 8 * 4, 8 * 4, 7 * 8};
    for (int i = 0; i < 5; i++) {
        assert_true(at[i] >= block && at[i] + length[i] <= block + bytes);
        for (int k = 0; k < i; k++) {
            assert_true(at[i] + length[i] <= at[k] || at[k] + length[k] <= at[i]);
        }
    }
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

// -- text and arrays ------------------------------------------------------------------------------

TEST(attention_plan__print_writes_a_table) {
    aplan plan = plan_make(&drawn, &drawn_config);
    char text[4096];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_attention_print(&plan, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(
        text,
        "attention plan: 3 tiles of up to 1 rows in 6 units, on 4 lanes\n"
        "splits: 3 units more than tiles, 2 merges\n"
        "scratch: 5 slots of 1 rows of dim + 2 floats\n"
        "cost: largest 100, mean 100, ratio 1.0000\n"
        "                 lanes            units each           merges each             "
        "cost each\n"
        "                     0                     1                     1                   "
        "100\n"
        "                     1                     1                     0                   "
        "100\n"
        "                     2                     2                     1                   "
        "100\n"
        "                     3                     2                     0                   "
        "100\n");
    double *const costs = plan.lane_costs;
    plan.lane_costs = NULL;  // as callers may have it
    buffer.length = 0;
    ptowsp_attention_print(&plan, ptowsp_output_to_buffer(&buffer));
    assert_non_null(strstr(text,
                           "                 lanes            units each           merges each\n"
                           "                     0                     1                     1\n"
                           "                     1                     1                     0\n"
                           "                     2                     2                     1\n"));
    plan.lane_costs = costs;
    plan_free(&plan);
    aconfig c = drawn_config;
    c.lane_count = 1000;  // lines stand for lanes
    c.cost.per_unit = 20;
    plan = plan_make(&drawn, &c);
    buffer.length = 0;
    ptowsp_attention_print(&plan, ptowsp_output_to_buffer(&buffer));
    uint32_t lines = 0;
    for (const char *at = text; *at; at++) {
        lines += *at == '\n';
    }
    assert_in_range(lines, 6, 5 + 33);
    assert_non_null(strstr(text, " to 999 "));
    plan_free(&plan);
}

// Without work there is no mean cost, and so no ratio.
TEST(attention_plan__print_of_nothing_has_no_ratio) {
    const int32_t lengths[] = {0, 0};
    const abatch batch = {lengths, NULL, 2};
    const aconfig c = config_of(2, 1);
    aplan plan = plan_make(&batch, &c);
    char text[1024];
    ptowsp_attention_print(&plan, TEST_TEXT(text));
    assert_non_null(strstr(text, "cost: largest 0, mean 0\n"));
    plan_free(&plan);
}

TEST(attention_plan__export_gives_the_arrays_of_others) {
    aplan plan = plan_make(&drawn, &drawn_config);
    int32_t request[6], piece[6], o[7], merge[3];
    ptowsp_attention_arrays arrays = {request, piece, o, merge};
    assert_ok(ptowsp_attention_export(&plan, &arrays));
    const int32_t requests[] = {0, 0, 0, 1, 1, 2}, pieces[] = {0, 1, 2, 0, 1, 0};
    const int32_t os[] = {0, 3, 5, 6}, merges[] = {0, 3, 5};
    assert_memory_equal(request, requests, sizeof requests);
    assert_memory_equal(piece, pieces, sizeof pieces);
    assert_memory_equal(o, os, sizeof os);
    assert_memory_equal(merge, merges, sizeof merges);
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

// Three steps into one plan for up to 8 units and 4 merges: the second request ends, then all do. Every
// element of the arrays is written in each step, and none beyond.
TEST(attention_plan__export_fills_the_arrays_to_capacity) {
    enum { UNITS = 8, MERGES = 4, MARK = 0x5a5a5a5a };
    const int32_t steps[3][3] = {{250, 100, 50}, {250, 0, 50}, {0, 0, 0}};
    // Four lanes: 100 each of 400 tokens; then 75 each of 300.
    const int32_t requests[3][UNITS] = {
        {0, 0, 0, 1, 1, 2, -1, -1}, {0, 0, 0, 0, 2, -1, -1, -1}, {-1, -1, -1, -1, -1, -1, -1, -1}};
    const int32_t pieces[3][UNITS] = {
        {0, 1, 2, 0, 1, 0, -1, -1}, {0, 1, 2, 3, 0, -1, -1, -1}, {-1, -1, -1, -1, -1, -1, -1, -1}};
    const int32_t os[3][UNITS + 1] = {
        {0, 3, 5, 6, 6, 6, 6, 6, 6}, {0, 4, 5, 5, 5, 5, 5, 5, 5}, {0, 0, 0, 0, 0, 0, 0, 0, 0}};
    const int32_t merges[3][MERGES + 1] = {{0, 3, 5, 5, 5}, {0, 4, 4, 4, 4}, {0, 0, 0, 0, 0}};
    const aconfig c = {.kv_head_count = 1, .lane_count = 4, .cost.per_token = 1};
    const ptowsp_attention_sizes sizes = {UNITS, MERGES, UNITS, 1, 4, 0};
    ptowsp_work block[UNITS + MERGES + 8];
    aplan plan;
    assert_ok(ptowsp_attention_place(&sizes, block, sizeof block, &plan));
    for (int step = 0; step < 3; step++) {
        const abatch batch = {steps[step], NULL, 3};
        int32_t got[4][UNITS + 2];
        for (int i = 0; i < 4 * (UNITS + 2); i++) {
            got[i / (UNITS + 2)][i % (UNITS + 2)] = MARK;
        }
        const ptowsp_attention_arrays arrays = {got[0], got[1], got[2], got[3]};
        assert_ok(ptowsp_attention_generate(&batch, &c, &plan, NULL));
        assert_ok(ptowsp_attention_export(&plan, &arrays));
        assert_memory_equal(got[0], requests[step], sizeof requests[step]);
        assert_memory_equal(got[1], pieces[step], sizeof pieces[step]);
        assert_memory_equal(got[2], os[step], sizeof os[step]);
        assert_memory_equal(got[3], merges[step], sizeof merges[step]);
        assert_true(got[0][UNITS] == MARK && got[1][UNITS] == MARK && got[2][UNITS + 1] == MARK);
        assert_int_equal(got[3][MERGES + 1], MARK);
    }
}

// A window of 100 at 1,000 tokens sees tokens 900 on, in a decode step; tiles of two query tokens at
// 998 and 999 see 899 on.
TEST(attention_plan__first_pieces_start_at_the_grain) {
    const int32_t kv[] = {1000}, queries[] = {2};
    const struct {
        uint32_t page, chunk, grain, start[2];  // of decode, of the tile of two
    } cases[] = {
        {1, 0, 0, {896, 896}},      // 64: 14 * 64
        {16, 256, 0, {896, 896}},   // 64, a multiple of 16
        {128, 0, 0, {896, 896}},    // the page: 7 * 128
        {1, 100, 0, {900, 800}},    // 64 does not divide 100: the chunk
        {48, 0, 0, {0, 0}},         // 64 is not of whole pages of 48: the chunk, 1,056
        {10, 300, 50, {900, 850}},  // as given
        {1, 300, 1, {900, 899}},    // as given: the window itself
        {1, 256, 256, {768, 768}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const aconfig c = {.kv_head_count = 1,
                           .lane_count = 1,
                           .mode = PTOWSP_ATTENTION_INVARIANT,
                           .is_causal = true,
                           .window = 100,
                           .page_size = cases[i].page,
                           .chunk = cases[i].chunk,
                           .grain = cases[i].grain};
        for (int is_two = 0; is_two < 2; is_two++) {
            const abatch batch = {kv, is_two ? queries : NULL, 1};
            aplan plan = plan_make(&batch, &c);
            const uint32_t chunk = c.chunk ? c.chunk : c.page_size == 48 ? 1056 : 1024;
            uint32_t at = cases[i].start[is_two], unit = 0;
            for (; at < 1000; unit++) {
                const uint32_t next = (at / chunk + 1) * chunk;
                const uint32_t end = next < 1000 ? next : 1000;
                assert_true(unit < plan.unit_count);
                assert_int_equal(plan.units[unit].params[2], at);
                assert_int_equal(plan.units[unit].params[3], end - at);
                at = end;
            }
            assert_int_equal(plan.unit_count, unit);
            plan_check(&batch, &c, &plan);
            plan_free(&plan);
        }
    }
}

// Two slots of two rows, each a half of a softmax: (l 2 + 2), acc (2, 6) + (4, 8).
TEST(attention_plan__merge_row_merges_the_slots_of_a_row) {
    ptowsp_partial states[6];
    float accs[6 * 2], out[2];
    for (uint32_t i = 0; i < 6; i++) {
        states[i].m = 1;
        states[i].l = 2;
        accs[2 * i] = (float)(2 * i);
        accs[2 * i + 1] = (float)i;
    }
    const ptowsp_attention_scratch scratch = {states, accs, 2, 2};
    const ptowsp_work merge = ptowsp_work_of(0, 0, 0, 0, 0, 1, 2);  // slots 1 and 2: rows 2 to 5
    const float lse = ptowsp_attention_merge_row(&scratch, &merge, 1, out);
    assert_true(fabsf(lse - (1 + logf(4))) < 1e-6f);
    assert_true(out[0] == (6 + 10) / 4.0f && out[1] == (3 + 5) / 4.0f);
}

// 100 tokens on two lanes, and 2 slots of 4 rows at 5 each: 100 + 40 = 70 for each lane, of which its two
// rows of both slots are 20.
TEST(attention_plan__lanes_share_a_merge_by_rows) {
    const int32_t kv[] = {100};
    const abatch batch = {kv, NULL, 1};
    aconfig config = {.kv_head_count = 1,
                      .group = 4,
                      .lane_count = 2,
                      .cost.per_token = 1,
                      .cost.per_merged_row = 5,
                      .shares_merges = true};
    aplan plan = plan_make(&batch, &config);
    plan_check(&batch, &config, &plan);
    assert_int_equal(plan.unit_count, 2);
    assert_int_equal(plan.units[1].params[2], 50);
    assert_int_equal(plan.merge_count, 2);
    assert_int_equal(plan.merge_begin[1], 1);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t first;
        assert_int_equal(plan.merges[i].flags, PTOWSP_WORK_ROWS);
        assert_int_equal(ptowsp_work_merge_rows(&plan.merges[i], 4, &first), 2);
        assert_int_equal(first, 2 * i);
        assert_int_equal(plan.merges[i].params[2], 0);
        assert_int_equal(plan.merges[i].params[3], 2);
        assert_true(plan.lane_costs[i] == 70.0);
    }
    plan.merges[1].work_id = 1 | 3 << 16;  // row 1 again
    ptowsp_plan_info info;
    assert_invalid(ptowsp_attention_check(&batch, &config, &plan, &info));
    assert_int_equal(info.fault, PTOWSP_FAULT_MERGE_WRONG);
    plan_free(&plan);
}

// A lane 250 times slower than the other has hardly room for its share of a merge: even then there is a
// plan.
TEST(attention_plan__lanes_of_unlike_speeds_share_merges) {
    const int32_t kv[] = {10000, 10000};
    const uint32_t speeds[] = {4, 1000};
    const abatch batch = {kv, NULL, 2};
    const aconfig config = {.kv_head_count = 1,
                            .lane_count = 2,
                            .group = 128,
                            .tile_rows = 128,
                            .lane_speeds = speeds,
                            .shares_merges = true};
    aplan plan = plan_make(&batch, &config);
    plan_check(&batch, &config, &plan);
    plan_free(&plan);
}

// One lane alone would merge 128 rows of each slot: 128 * lanes, more than the KV of a lane costs.
TEST(attention_plan__one_long_sequence_uses_all_lanes) {
    static const struct {
        uint32_t sequences, lanes;
        int32_t length;
    } cases[] = {{1, 256, 131072}, {1, 132, 32768}, {2, 132, 32768}, {4, 132, 32768}};
    for (uint32_t i = 0; i < 4; i++) {
        const int32_t kv[4] = {cases[i].length, cases[i].length, cases[i].length, cases[i].length};
        const abatch batch = {kv, NULL, cases[i].sequences};
        aconfig config = {.kv_head_count = 1,
                          .group = 128,
                          .lane_count = cases[i].lanes,
                          .page_size = 64,
                          .shares_merges = true};
        aplan plan = plan_make(&batch, &config);
        assert_ok(ptowsp_attention_check(&batch, &config, &plan, NULL));
        // A token of 128 rows costs 3. A lane has a unit, and of each part as many rows in all.
        const double even = cases[i].sequences * 3.0 * cases[i].length / cases[i].lanes + 64 + 128;
        assert_true(plan.cost_max / plan.cost_mean <= 1.05);
        assert_true(plan.cost_max <= 1.05 * even);
        plan_free(&plan);
    }
}

// 5 query tokens with 3 query heads each, in tiles of at most 6 rows: 2 tokens are 6 rows, the last is 3.
// In decode a unit has the group's rows.
TEST(attention_plan__rows_of_units) {
    const int32_t kv[2] = {40, 7}, queries[2] = {5, 1};
    abatch batch = {.kv_lengths = kv, .query_lengths = queries, .sequence_count = 2};
    const aconfig config = {.kv_head_count = 1, .group = 3, .lane_count = 1, .tile_rows = 6};
    aplan plan = plan_make(&batch, &config);
    static const uint32_t rows[] = {6, 6, 3, 3};
    assert_int_equal(plan.unit_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(ptowsp_attention_unit_rows(&batch, &plan, &plan.units[i]), rows[i]);
    }
    plan_free(&plan);
    batch.query_lengths = NULL;
    plan = plan_make(&batch, &config);
    assert_int_equal(ptowsp_attention_unit_rows(&batch, &plan, &plan.units[1]), 3);
    plan_free(&plan);
}

// A window of two tokens on both sides of a chunk's end. A whole chunk costs 2^24 * 2^30 of the least
// cost, which is 2^10 of the grid: 2^64.
TEST(attention__chunks_may_cost_more_than_all_that_is_seen) {
    const int32_t lengths[] = {(1 << 24) + 1};
    const ptowsp_attention_batch batch = {lengths, NULL, 1};
    ptowsp_attention_config c = {.kv_head_count = 1,
                                 .lane_count = 2,
                                 .mode = PTOWSP_ATTENTION_INVARIANT,
                                 .window = 2,
                                 .chunk = 1 << 24,
                                 .grain = 1,
                                 .cost.per_token = 1 << 30,
                                 .cost.per_merged_row = 1};
    ptowsp_work units[2], merges[1];
    uint32_t unit_begin[3], merge_begin[3];
    ptowsp_attention_plan plan = {
        .units = units, .merges = merges, .unit_begin = unit_begin, .merge_begin = merge_begin};
    plan.unit_capacity = plan.slot_capacity = 2;
    plan.merge_capacity = 1;
    assert_ok(ptowsp_attention_generate(&batch, &c, &plan, NULL));
    assert_int_equal(unit_begin[1], 1);
    assert_int_equal(units[0].params[2], (1 << 24) - 1);
    assert_int_equal(units[0].params[3], 1);
    assert_int_equal(units[1].params[3], 1);
    assert_ok(ptowsp_attention_check(&batch, &c, &plan, NULL));
}
