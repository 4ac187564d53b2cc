// Planning: the bound held against all batches, or many random ones, within limits. Numbers from paper, and
// what is refused, are in chunk_facts_test.c, the rest of what is random in plan_random_test.c.

#include "plan_reference.h"

// -- the bound ------------------------------------------------------------------------------------

static uint64_t bound_of(const ptowsp_plan_config *config, const ptowsp_plan_limits *limits) {
    uint64_t count = 77, again = 77;
    ptowsp_plan_info info = info_with_rubbish();
    assert_ok(ptowsp_plan_work_bound(config, limits, &count, &info));
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
    assert_true(info.work_count == 0 && info.index == NONE && info.value == 0 && info.limit == 0);
    assert_ok(ptowsp_plan_work_bound(config, limits, &again, NULL));
    assert_true(count == again);
    return count;
}

// The count of the chunk that is picked for a batch.
static uint64_t picked_count(const ptowsp_batch *batch, const ptowsp_plan_config *config) {
    uint32_t chunk = 0;
    assert_ok(ptowsp_plan_chunk_size(batch, config, &chunk, NULL));
    return reference_total(batch, chunk);
}

// The largest count of all batches within limits of at most three sequences, all of them tried.
static uint64_t largest_count(const ptowsp_plan_config *config, const ptowsp_plan_limits *limits,
                              int32_t length_max) {
    uint64_t most = 0;
    int32_t l[3];
    for (l[0] = 0; l[0] <= length_max; l[0]++) {
        for (l[1] = 0; l[1] <= (limits->sequence_count_max > 1 ? l[0] : 0); l[1]++) {
            for (l[2] = 0; l[2] <= (limits->sequence_count_max > 2 ? l[1] : 0); l[2]++) {
                uint64_t tokens = (uint64_t)l[0] + (uint64_t)l[1] + (uint64_t)l[2];
                if (limits->token_count_max == 0 || tokens <= limits->token_count_max) {
                    ptowsp_batch batch = {l, limits->sequence_count_max, limits->kv_head_count};
                    uint64_t count = picked_count(&batch, config);
                    most = count > most ? count : most;
                }
            }
        }
    }
    return most;
}

// Every batch within small limits is tried, with a config that makes the chunk matter. With a limit
// on tokens the bound may be too large; without one it is what the worst batch has.
TEST(plan__work_bound_holds_for_all_batches_within_small_limits) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 3000); round++) {
        const ptowsp_tier tier[] = {{0, 1, (int32_t)test_random_in(&random, 1, 9)}};
        ptowsp_plan_config config = {.chunk_min = test_random_u32(&random, 1, 5)};
        config.chunk_max = config.chunk_min + test_random_u32(&random, 2, 6);
        config.max_work_units = test_random_u32(&random, 1, 30);
        config.align = test_random_u32(&random, 0, 3);
        ptowsp_plan_limits limits = {test_random_u32(&random, 1, 3), test_random_u32(&random, 1, 3),
                                     (int32_t)test_random_in(&random, 1, 9),
                                     (uint64_t)test_random_in(&random, 1, 25)};
        int32_t length_max = limits.length_max;
        if (round % 3 == 0) {
            config.tiers = tier;
            config.tier_count = 1;
            length_max = length_max < tier[0].length_max ? length_max : tier[0].length_max;
        }
        assert_true(bound_of(&config, &limits) >= largest_count(&config, &limits, length_max));
        limits.token_count_max = 0;
        assert_int_equal(bound_of(&config, &limits), largest_count(&config, &limits, length_max));
    }
}

// Lengths within the limits: as many tokens as there are, in few or in many sequences.
static void bounded_lengths(const ptowsp_plan_limits *limits, uint64_t *random, int32_t *lengths,
                            uint32_t count) {
    uint64_t left = limits->token_count_max ? limits->token_count_max : UINT64_MAX;
    int64_t shape = test_random_in(random, 0, 4);
    for (uint32_t i = 0; i < count; i++) {
        int64_t length = shape == 0   ? limits->length_max
                         : shape == 1 ? 1
                         : shape == 2 ? test_random_in(random, 0, limits->length_max)
                         : shape == 3 ? random_scaled(random, 17)
                                      : random_scaled(random, 10);
        length = length > limits->length_max ? limits->length_max : length;
        lengths[i] = (uint64_t)length > left ? (int32_t)left : (int32_t)length;
        left -= (uint64_t)lengths[i];
    }
}

TEST(plan__work_bound_is_never_exceeded) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 3000); round++) {
        ptowsp_plan_config config = {.chunk_min = (uint32_t)random_scaled(&random, 10)};
        config.chunk_max = config.chunk_min + (uint32_t)random_scaled(&random, 12);
        config.max_work_units = round % 4 ? (uint32_t)random_scaled(&random, 16) : 0;
        config.align = test_random_u32(&random, 0, config.chunk_max - config.chunk_min);
        ptowsp_plan_limits limits = {test_random_u32(&random, 0, 200),
                                     test_random_u32(&random, 1, 40),
                                     (int32_t)test_random_in(&random, 0, 131072), 0};
        limits.token_count_max = round % 3 ? (uint64_t)random_scaled(&random, 24) : 0;
        uint64_t bound = bound_of(&config, &limits);
        for (int i = 0; i < 8; i++) {
            int32_t lengths[200];
            uint32_t count = i == 0 ? limits.sequence_count_max
                                    : test_random_u32(&random, 0, limits.sequence_count_max);
            bounded_lengths(&limits, &random, lengths, count);
            ptowsp_batch batch = {lengths, count, limits.kv_head_count};
            assert_true(picked_count(&batch, &config) <= bound);
        }
    }
}
