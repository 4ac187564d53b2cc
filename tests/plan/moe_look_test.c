// Combining beside doubles and on any division of tokens; generated routes: what each pattern promises,
// counted. Balances and histories are in moe_facts_test.c.

#include "test.h"

#include <math.h>

// -- combining ------------------------------------------------------------------------------------

typedef struct combine_range {
    const uint32_t *rows;
    const float *gates, *made;
    float *out;
    uint32_t top_k, dim;
} combine_range;

static void combine_some(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    const combine_range *c = (const combine_range *)user;
    (void)lane;
    ptowsp_moe_combine(c->rows, c->top_k, c->gates, c->made, c->dim, (uint32_t)begin, (uint32_t)end,
                       c->out);
}

TEST(moe_combine__adds_in_order_with_the_same_bits_on_any_lanes) {
    enum { TOKENS = 23, TOP_K = 5, DIM = 53 };
    uint64_t random = test_seed();
    static float made[TOKENS * TOP_K * DIM], one[TOKENS * DIM], lanes[TOKENS * DIM];
    float gates[TOKENS * TOP_K];
    uint32_t rows[TOKENS * TOP_K];
    for (int round = 0; TEST_ROUNDS(round, 60); round++) {
        const uint32_t dim = round % 4 ? test_random_u32(&random, 0, DIM) : 32;  // whole strips
        const uint32_t top_k = test_random_u32(&random, 1, TOP_K);
        for (uint32_t i = 0; i < TOKENS * top_k; i++) {
            rows[i] = test_random(&random) % 5 == 0
                          ? PTOWSP_MOE_NO_ROW
                          : (uint32_t)(test_random(&random) % (TOKENS * TOP_K));
            gates[i] = (float)test_random_in(&random, -1000, 1000) / 777.0f;
        }
        for (uint32_t i = 0; i < TOKENS * TOP_K * DIM; i++) {
            made[i] = (float)test_random_in(&random, -1000000, 1000000) / 333.0f;
        }
        const float *gate = round % 3 ? gates : NULL;
        ptowsp_moe_combine(rows, top_k, gate, made, dim, 0, TOKENS, one);
        for (uint32_t t = 0; t < TOKENS; t++) {
            for (uint32_t d = 0; d < dim; d++) {
                double sum = 0, size = 0;
                for (uint32_t k = 0; k < top_k; k++) {
                    if (rows[t * top_k + k] != PTOWSP_MOE_NO_ROW) {
                        const double term = (gate ? (double)gate[t * top_k + k] : 1) *
                                            (double)made[rows[t * top_k + k] * dim + d];
                        sum += term;
                        size += fabs(term);
                    }
                }
                assert_true(fabs((double)one[t * dim + d] - sum) <= 1e-6 * size);
            }
        }
        for (uint32_t n = 1; n <= 4; n *= 2) {
            ptowsp_context *context = test_lanes(n);
            combine_range c = {rows, gate, made, lanes, top_k, dim};
            memset(lanes, 0x7f, sizeof lanes);
            assert_ok(ptowsp_parallel_for(context, TOKENS, (uint64_t)round % 4, combine_some, &c));
            assert_memory_equal(one, lanes, TOKENS * dim * sizeof *one);
            ptowsp_context_destroy(context);
        }
    }
}

TEST(moe_combine__adds_from_the_first_expert) {
    // 1 + 2^24 - 2^24: 1 is lost if it is added to 2^24, which the order of k decides.
    const float made[3] = {1, 16777216, -16777216};
    const uint32_t orders[3][3] = {{0, 1, 2}, {1, 2, 0}, {1, PTOWSP_MOE_NO_ROW, 2}};
    const float expected[3] = {0, 1, 0};
    for (int i = 0; i < 3; i++) {
        float out = 9;
        ptowsp_moe_combine(orders[i], 3, NULL, made, 1, 0, 1, &out);
        assert_true(out >= expected[i] && out <= expected[i]);
    }
}

// -- generated routes -----------------------------------------------------------------------------

enum { EXPERTS = 64, TOKENS = 8192, TOP_K = 4, RANKS = 8 };

static int32_t generated[TOKENS * TOP_K], generated_again[TOKENS * TOP_K];
static uint32_t generated_counts[EXPERTS];

static ptowsp_moe_traffic traffic_of(ptowsp_moe_pattern pattern, uint64_t seed) {
    const ptowsp_moe_traffic t = {.pattern = pattern,
                                  .token_count = TOKENS,
                                  .top_k = TOP_K,
                                  .expert_count = EXPERTS,
                                  .rank_count = RANKS,
                                  .seed = seed};
    return t;
}

// Generates, counts, and looks; tokens' experts are in range and differ.
static ptowsp_moe_balance generate(const ptowsp_moe_traffic *t) {
    uint64_t scratch[EXPERTS + 2];
    const uint32_t top_k = t->top_k, pairs = t->token_count * top_k;
    scratch[t->expert_count + 1] = 0x5a5a;
    assert_ok(ptowsp_moe_routes_generate(t, scratch, generated, NULL));
    assert_int_equal(scratch[t->expert_count + 1], 0x5a5a);
    memset(generated_counts, 0, sizeof generated_counts);
    for (uint32_t i = 0; i < pairs; i++) {
        const int32_t id = generated[i];
        const bool is_ragged = t->pattern == PTOWSP_MOE_RAGGED;
        assert_true(id < (int32_t)t->expert_count && (is_ragged ? id >= -1 : id >= 0));
        assert_true(i % top_k == 0 || generated[i - 1] >= 0 || id < 0);
        for (uint32_t j = i / top_k * top_k; j < i; j++) {
            assert_true(id < 0 || generated[j] != id);
        }
        generated_counts[id < 0 ? 0 : id] += id >= 0;
    }
    ptowsp_moe_balance b;
    assert_ok(ptowsp_moe_look(generated_counts, t->expert_count, t->rank_count, 0, &b, NULL));
    return b;
}

TEST(moe_routes__have_the_patterns_of_the_header) {
    const uint64_t seed = test_seed();
    for (uint64_t s = seed; s < seed + 5; s++) {
        ptowsp_moe_traffic t = traffic_of(PTOWSP_MOE_BALANCED, s);
        ptowsp_moe_balance b = generate(&t);
        assert_int_equal(b.expert_max, TOKENS * TOP_K / EXPERTS);
        assert_int_equal(b.expert_idle, 0);

        t.pattern = PTOWSP_MOE_SPREAD;
        b = generate(&t);
        assert_true(b.expert_ratio < 1.3 && b.expert_idle == 0);
        for (uint32_t i = 0; i < TOKENS * TOP_K; i++) {  // on different ranks
            for (uint32_t j = i / TOP_K * TOP_K; j < i; j++) {
                assert_true(generated[i] / (EXPERTS / RANKS) != generated[j] / (EXPERTS / RANKS));
            }
        }

        t.pattern = PTOWSP_MOE_HOT_SET;  // 4 of 64 get 3/4 of 32,768 pairs: 6,144 each
        b = generate(&t);
        uint32_t hot = 0;
        for (uint32_t e = 0; e < EXPERTS; e++) {
            hot += generated_counts[e] > 5900 && generated_counts[e] < 6400;
        }
        assert_int_equal(hot, 4);

        t.pattern = PTOWSP_MOE_HOT_RANK;
        b = generate(&t);
        assert_true(fabs(b.rank_ratio - 0.75 * RANKS) < 0.2 && b.rank_idle == 0);

        t.pattern = PTOWSP_MOE_ZERO_RANK;
        b = generate(&t);
        assert_int_equal(b.rank_idle, 1);
        assert_true(b.expert_idle == EXPERTS / RANKS && b.rank_ratio < 1.3);

        t.pattern = PTOWSP_MOE_RAGGED;  // 0 to 4 each, so half
        b = generate(&t);
        assert_true(fabs((double)b.total / (TOKENS * TOP_K) - 0.5) < 0.03);

        t.pattern = PTOWSP_MOE_BURST;
        b = generate(&t);
        uint32_t same = 0;
        for (uint32_t i = 1; i < TOKENS; i++) {
            same += memcmp(generated + i * TOP_K, generated + (i - 1) * TOP_K,
                           TOP_K * sizeof *generated) == 0;
        }
        assert_true(same >= TOKENS / 4 - 1 && same < TOKENS / 4 + 60);
        assert_true(b.expert_max > TOKENS / 4);

        t.pattern = PTOWSP_MOE_SKEWED;
        for (t.skew = 3; t.skew < 14; t.skew += 2) {
            b = generate(&t);
            assert_true(fabs(b.expert_ratio / t.skew - 1) < 0.06);
        }
        t.skew = 1;
        b = generate(&t);
        assert_true(b.expert_ratio < 1.3);
        t.skew = EXPERTS / TOP_K;  // the busiest is among those of every token
        b = generate(&t);
        assert_true(b.expert_max > TOKENS - 10);
    }
}

TEST(moe_routes__rotate_with_steps) {
    ptowsp_moe_traffic t = traffic_of(PTOWSP_MOE_ROTATING, 3);  // the set begins at 3 + 4 * step
    for (t.step = 0; t.step < 20; t.step++) {
        generate(&t);
        for (uint32_t e = 0; e < EXPERTS; e++) {
            const bool is_hot = (e + 2 * EXPERTS - 3 - 4 * t.step) % EXPERTS < 4;
            assert_true(is_hot ? generated_counts[e] > 5900 : generated_counts[e] < 300);
        }
    }
}

TEST(moe_routes__depend_on_seed_and_step_alone) {
    for (int p = 0; p < PTOWSP_MOE_PATTERN_COUNT; p++) {
        ptowsp_moe_traffic t = traffic_of((ptowsp_moe_pattern)p, 7);
        generate(&t);
        memcpy(generated_again, generated, sizeof generated);
        generate(&t);
        assert_memory_equal(generated_again, generated, sizeof generated);
        t.step = 1;
        generate(&t);
        assert_true(memcmp(generated_again, generated, sizeof generated) != 0);
        t.step = 0, t.seed = 8;
        generate(&t);
        assert_true(memcmp(generated_again, generated, sizeof generated) != 0);
    }
}

// One hash of all patterns, for every compiler, level and machine. A new one needs a reason.
TEST(moe_routes__are_the_same_on_every_machine) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);  // FNV-1a, by ids
    for (int p = 0; p < PTOWSP_MOE_PATTERN_COUNT; p++) {
        ptowsp_moe_traffic t = traffic_of((ptowsp_moe_pattern)p, 11);
        t.skew = 7.3;
        generate(&t);
        for (uint32_t i = 0; i < TOKENS * TOP_K; i++) {
            hash = (hash ^ (uint32_t)generated[i]) * UINT64_C(0x100000001b3);
        }
    }
    assert_int_equal(hash, UINT64_C(0x836ee2e6fd832e68));
}

// Any sizes: experts in range, and different.
TEST(moe_routes__differ_within_a_token) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 3000); round++) {
        ptowsp_moe_traffic t = traffic_of((ptowsp_moe_pattern)(round % PTOWSP_MOE_PATTERN_COUNT),
                                          test_random(&random));
        t.rank_count = test_random_u32(&random, 1, 4);
        t.expert_count = t.rank_count * test_random_u32(&random, 1, 8);
        t.token_count = test_random_u32(&random, 0, 20);
        uint32_t most = t.expert_count;
        most -= t.pattern == PTOWSP_MOE_ZERO_RANK ? t.expert_count / t.rank_count : 0;
        if (most == 0) {
            continue;
        }
        t.top_k = test_random_u32(&random, 1, most);
        const double share = (double)(test_random(&random) % 1001) / 1000;
        t.skew = 1 + share * ((double)t.expert_count / t.top_k - 1);
        generate(&t);
    }
}
