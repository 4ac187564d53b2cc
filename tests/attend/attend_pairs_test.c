// Attention by jobs, with features crossed: every pair of levels of any two features below occurs in a
// case, and each case is checked row by row against softmax in double precision over a list of all
// pairs of a query and a token, with the same bits for any workers, and in INVARIANT mode for any group of
// query tokens of each sequence alone. Cases are found greedily: the next one has the most pairs that are missing yet.

#include "attend_levels.h"

#include <stdio.h>

// -- cases ----------------------------------------------------------------------------------------

static bool met[COUNT][LEVELS_MAX][COUNT][LEVELS_MAX];

// Pairs of a case that were not met; notes them if told to.
static uint32_t new_pairs(const levels_of *c, bool is_noted) {
    uint32_t count = 0;
    for (uint32_t f = 0; f < COUNT; f++) {
        for (uint32_t g = f + 1; g < COUNT; g++) {
            bool *pair = &met[f][c->at[f]][g][c->at[g]];
            count += !*pair;
            *pair = *pair || is_noted;
        }
    }
    return count;
}

// A random case with the given pair.
static levels_of case_with(uint32_t f, uint32_t a, uint32_t g, uint32_t b, uint64_t *state) {
    levels_of c;
    do {
        c = random_levels(state);
        c.at[f] = (uint8_t)a;
        c.at[g] = (uint8_t)b;
    } while (!is_allowed(&c));
    return c;
}

// The first pair that is missing, and a case with it and many others. False if none is.
static bool next_case(levels_of *out, uint64_t *state) {
    for (uint32_t f = 0; f < COUNT; f++) {
        for (uint32_t g = f + 1; g < COUNT; g++) {
            for (uint32_t i = 0; i < (uint32_t)levels[f] * levels[g]; i++) {
                const uint32_t a = i / levels[g], b = i % levels[g];
                if (met[f][a][g][b] || pair_is_refused((feature)f, a, (feature)g, b)) {
                    continue;
                }
                uint32_t most = 0;
                for (uint32_t k = 0; k < 60; k++) {
                    const levels_of c = case_with(f, a, g, b, state);
                    const uint32_t count = new_pairs(&c, false);
                    *out = count > most ? c : *out;
                    most = count > most ? count : most;
                }
                return true;
            }
        }
    }
    return false;
}

// -- bits -----------------------------------------------------------------------------------------

// The same bits by one worker, and in INVARIANT mode for some query tokens of each sequence alone, by other tiles on
// other lanes.
static void check_bits(scene *c, const levels_of *at, uint64_t *state) {
    const float *outputs = c->outputs, *lse = c->lse;
    scene_outputs(c);
    run(c, c->step, at->at[PREFIX], WORKERS_ONE, false);
    same_outputs(c, outputs, lse);
    scene_outputs(c);
    for (uint32_t i = 0; at->at[MODE] && i < c->s.batch.sequence_count; i++) {
        const uint32_t queries = queries_of(c, i), kv = (uint32_t)c->s.kv[i];
        const uint32_t first = kv > 0 ? test_random_u32(state, 0, queries - 1) : 0;
        const uint32_t count = kv > 0 ? test_random_u32(state, 1, queries - first) : queries;
        const size_t row = (size_t)(c->query_starts[i] + first) * c->rows;
        const size_t rows = (size_t)count * c->rows, dim = c->value_dim;
        alone one;
        make_alone(c, i, first, count, &one);
        one.config.lane_count = test_random_u32(state, 1, 9);
        one.config.tile_rows = test_random_u32(state, 1, 40);
        run(c, one.step, false, WORKERS_TWO, false);
        assert_memory_equal(outputs + row * dim, c->outputs + row * dim,
                            rows * dim * sizeof(float));
        assert_memory_equal(lse + row, c->lse + row, rows * sizeof(float));
    }
}

TEST(attend_pairs__every_two_features_together_have_right_values_and_bits) {
    uint64_t state = test_seed();
    uint32_t cases = 0, pairs = 0, refused = 0, possible = 0, slots = 0, shared = 0;
    levels_of at;
    memset(&at, 0, sizeof at);
    memset(met, 0, sizeof met);
    for (uint32_t f = 0; f < COUNT; f++) {
        for (uint32_t g = f + 1; g < COUNT; g++) {
            for (uint32_t i = 0; i < (uint32_t)levels[f] * levels[g]; i++) {
                refused += pair_is_refused((feature)f, i / levels[g], (feature)g, i % levels[g]);
                possible++;
            }
        }
    }
    while (next_case(&at, &state)) {
        scene *c = levels_make(&at, true, &state);
        const made_job made =
            run(c, c->step, at.at[PREFIX], (workers)at.at[WORKERS], at.at[STEALING]);
        slots += made.plan.slot_count + made.prefix.attention.slot_count;
        shared += made.prefix.shared_count;  // none, where sharing is not faster
        check_values(c);
        check_bits(c, &at, &state);
        test_release();
        pairs += new_pairs(&at, true);
        cases++;
    }
    printf("%u cases have all %u pairs of levels of %u features; %u more are refused\n", cases,
           pairs, (unsigned)COUNT, refused);
    assert_int_equal(pairs + refused, possible);
    assert_true(slots > cases && shared > 5);  // there are merges and joins
}

TEST(attend_pairs__any_features_together_have_right_values_and_bits) {
    uint64_t state = test_seed();
    for (uint32_t round = 0; TEST_ROUNDS(round, 200); round++) {
        const levels_of at = small_levels(&state);
        scene *c = levels_make(&at, true, &state);
        run(c, c->step, false, (workers)at.at[WORKERS], at.at[STEALING]);
        check_values(c);
        check_bits(c, &at, &state);
        test_release();
    }
}

// Each pair that is left out of the cases is refused by the library, or has no meaning (a latent cache has
// one head; values are its first elements).
TEST(attend_pairs__pairs_that_are_left_out_are_refused) {
    uint64_t state = 1;
    for (uint32_t i = 0; i < 4; i++) {
        const levels_of plain = {{0}};
        scene *c = levels_make(&plain, false, &state);
        ptowsp_attention_sizes sizes;
        ptowsp_attention_plan plan = {.tile_tokens = 64, .group = 1, .lane_count = 1};
        ptowsp_plan_info info;
        const ptowsp_attend_job job = {.cache = &c->kv, .step = &c->step};
        c->step.plan = &plan;
        if (i < 2) {
            c->kv.type = i == 0 ? PTOWSP_ATTEND_Q8_0 : PTOWSP_ATTEND_Q4_0;
            assert_invalid(ptowsp_attend_run_worker(&job, 0, 1, &info));
            assert_int_equal(info.fault, PTOWSP_FAULT_ATTEND_KEY_DIM);
        } else {
            c->s.config.is_causal = true;
            c->s.positions.after = i == 2 ? c->s.after : NULL;
            c->s.positions.kv_stride = i == 3 ? c->s.kv_stride : NULL;
            assert_invalid(ptowsp_attention_size(&c->s.batch, &c->s.config, &sizes, &info));
            assert_int_equal(info.fault,
                             i == 2 ? PTOWSP_FAULT_POSITIONS_AFTER : PTOWSP_FAULT_POSITIONS_ALONE);
        }
        test_release();
    }
}
