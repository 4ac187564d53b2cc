// Attention plans with positions: every pair of a query and a KV token that it sees is in exactly one
// unit, by a list of all pairs; nothing else is planned than tiles need; bits of positions that say
// what is so anyway; the pairs of tree drafts. Those of context parallelism and of compressed KV, and
// what is refused, are in attention_facts_test.c.

#include "attention_fixture.h"
#include "positions_sample.h"

static aplan make(const abatch *of, const aconfig *config) {
    aplan plan = plan_make(of, config);
    assert_ok(ptowsp_attention_check(of, config, &plan, NULL));
    return plan;
}

// -- every pair once ------------------------------------------------------------------------------

static uint32_t queries_of(const positions_sample *s, uint32_t i) {
    return s->batch.query_lengths ? (uint32_t)s->queries[i] : 1;
}

// Whether a unit has a KV token.
static bool unit_has(const positions_sample *s, const ptowsp_work *unit, uint32_t token) {
    const uint32_t start = ptowsp_work_kv_start(unit);
    const uint32_t sinks = s->positions.sinks ? (uint32_t)s->sinks[unit->params[0]] : 0;
    const bool is_sink = ptowsp_work_is_first(unit) && token < sinks && token < start;
    return is_sink || (token >= start && token - start < ptowsp_work_kv_len(unit));
}

// How often units of a tile have a token: for a head, by [tile][token].
static void count_units(const positions_sample *s, const aplan *plan, uint32_t i, uint32_t head,
                        uint32_t *counts, uint32_t *units) {
    const uint32_t kv = (uint32_t)s->kv[i];
    for (uint32_t u = 0; u < plan->unit_count; u++) {
        const ptowsp_work *unit = &plan->units[u];
        if (unit->params[0] == i && unit->params[1] == head) {
            const bool is_beside = kv > 0 && unit_has(s, unit, 0) && ptowsp_work_kv_start(unit) > 0;
            const bool is_of_positions = is_beside || ptowsp_work_kv_len(unit) == 0;
            assert_int_equal((unit->flags & PTOWSP_WORK_POSITIONS) != 0, is_of_positions);
            units[unit->reserved]++;
            assert_true(ptowsp_work_kv_end(unit) <= kv);
            for (uint32_t t = 0; t < kv; t++) {
                counts[(size_t)unit->reserved * kv + t] += unit_has(s, unit, t);
            }
        }
    }
}

// Of a tile: whether each pair that is seen has its token in one unit; and whether units have no others
// than sinks, and tokens from the begin of the first window to the end of the last.
static void check_tile(const positions_sample *s, uint32_t i, uint32_t first, uint32_t end,
                       const uint32_t *counts, uint32_t grain) {
    const uint32_t kv = (uint32_t)s->kv[i], sinks = s->positions.sinks ? (uint32_t)s->sinks[i] : 0;
    uint32_t low = 0, end_of_all = 0;
    for (uint32_t t = 0; t < kv; t++) {
        bool is_seen = false;
        for (uint32_t j = first; j < end; j++) {
            is_seen |= positions_sees(s, i, j, t);
        }
        assert_int_equal(is_seen && counts[t] != 1, 0);
        assert_true(counts[t] <= 1);
        low += positions_side(s, i, first, t) < 0;
        end_of_all += positions_side(s, i, end - 1, t) <= 0;
    }
    const uint32_t sinks_end = (sinks + grain - 1) / grain * grain;
    for (uint32_t t = 0; t < kv; t++) {
        const bool is_of_window = t >= low / grain * grain && low < end_of_all;
        assert_false(counts[t] > 0 && (t >= end_of_all || (!is_of_window && t >= sinks_end)));
    }
}

static void check_pairs(const positions_sample *s, const aplan *plan) {
    const uint32_t tokens = plan->tile_tokens;
    const uint32_t grain = s->config.mode == PTOWSP_ATTENTION_INVARIANT ? s->config.grain : 1;
    for (uint32_t i = 0; i < s->batch.sequence_count; i++) {
        const uint32_t kv = (uint32_t)s->kv[i],
                       queries = kv > 0 || positions_are_there(s) ? queries_of(s, i) : 0;
        const uint32_t tiles = (queries + tokens - 1) / tokens;
        for (uint32_t head = 0; head < s->config.kv_head_count && tiles > 0; head++) {
            uint32_t *counts = (uint32_t *)test_alloc((size_t)tiles * kv, sizeof *counts);
            uint32_t *units = (uint32_t *)test_alloc(tiles, sizeof *units);
            count_units(s, plan, i, head, counts, units);
            for (uint32_t tile = 0; tile < tiles; tile++) {
                const uint32_t first = tile * tokens;
                assert_true(units[tile] > 0);
                check_tile(s, i, first, first + tokens < queries ? first + tokens : queries,
                           counts + (size_t)tile * kv, grain);
            }
            test_release();
        }
    }
}

// The unit of a token for a query, as its index.
static uint32_t unit_of(const positions_sample *s, const aplan *plan, uint32_t i, uint32_t tile,
                        uint32_t token) {
    for (uint32_t u = 0; u < plan->unit_count; u++) {
        const ptowsp_work *unit = &plan->units[u];
        if (unit->params[0] == i && unit->params[1] == 0 && unit->reserved == tile &&
            unit_has(s, unit, token)) {
            return u;
        }
    }
    fail_msg("no unit has token %u", (unsigned)token);
    return 0;
}

// In INVARIANT mode, tokens that a query sees side by side are in different units if the second is at a
// multiple of the chunk, or at the end of the sinks, rounded up to the grain; there is no other reason.
static void check_cuts(const positions_sample *s, const aplan *plan, uint32_t i, uint32_t j) {
    const bool has_window = s->positions.before ? s->before[i] <= INT32_MAX : s->config.window > 0;
    const uint32_t sinks = s->positions.sinks && has_window ? (uint32_t)s->sinks[i] : 0;
    const uint32_t end = (sinks + s->config.grain - 1) / s->config.grain * s->config.grain;
    const uint32_t tile = j / plan->tile_tokens;
    for (uint32_t t = 1; t < (uint32_t)s->kv[i]; t++) {
        if (positions_sees(s, i, j, t) && positions_sees(s, i, j, t - 1)) {
            const bool is_cut = t == end || (t > end && t % s->config.chunk == 0);
            assert_int_equal(unit_of(s, plan, i, tile, t) != unit_of(s, plan, i, tile, t - 1),
                             is_cut);
        }
    }
}

TEST(positions__invariant_cuts_follow_from_chunk_and_sinks_alone) {
    uint64_t seed = test_seed() + 4;
    for (uint32_t round = 0; TEST_ROUNDS(round, 1000); round++) {
        positions_sample s;
        positions_make(&s, 60, 6, &seed);
        s.config.mode = PTOWSP_ATTENTION_INVARIANT;
        s.config.kv_head_count = 1;
        aplan plan = make(&s.batch, &s.config);
        for (uint32_t i = 0; i < s.batch.sequence_count; i++) {
            for (uint32_t j = 0; s.kv[i] > 0 && j < queries_of(&s, i); j++) {
                check_cuts(&s, &plan, i, j);
            }
        }
        free(plan.units);
    }
}

// What a query sees is also what ptowsp_attention_see says.
static void check_seen(const positions_sample *s) {
    for (uint32_t i = 0; i < s->batch.sequence_count; i++) {
        for (uint32_t j = 0; j < queries_of(s, i); j++) {
            const ptowsp_attention_seen seen = ptowsp_attention_see(&s->batch, &s->config, i, j);
            assert_true(seen.sinks <= seen.begin && seen.begin <= seen.end);
            for (uint32_t t = 0; t < (uint32_t)s->kv[i]; t++) {
                const bool sees = t < seen.sinks || (t >= seen.begin && t < seen.end);
                assert_int_equal(sees, positions_sees(s, i, j, t));
            }
        }
    }
}

// What a sample has, of which any two meet in some: arrays, and fields of the configuration.
enum { HAS_AFTER = 5, HAS_CAUSAL = 7, HAS_INVARIANT = 9, HAS_BALANCED = 10, HAS_COUNT = 15 };

static void note_features(const positions_sample *s, uint32_t met[HAS_COUNT][HAS_COUNT]) {
    const ptowsp_attention_positions *p = &s->positions;
    const ptowsp_attention_config *c = &s->config;
    const bool has[HAS_COUNT] = {p->query_first,
                                 p->query_stride,
                                 p->kv_first,
                                 p->kv_stride,
                                 p->before,
                                 p->after,
                                 p->sinks,
                                 c->is_causal,
                                 c->window > 0,
                                 c->mode == PTOWSP_ATTENTION_INVARIANT,
                                 c->mode == PTOWSP_ATTENTION_BALANCED,
                                 c->shares_merges,
                                 c->lane_speeds,
                                 s->batch.query_lengths,
                                 c->page_size > 1};
    for (uint32_t i = 0; i < HAS_COUNT; i++) {
        for (uint32_t k = i; k < HAS_COUNT; k++) {
            met[i][k] += has[i] && has[k];
        }
    }
}

// With totals, and without.
static void check_bounds(const positions_sample *s) {
    ptowsp_attention_sizes sizes, bound;
    ptowsp_attention_limits limits = reference_limits(&s->batch);
    for (int pass = 0; pass < 2; pass++) {
        assert_ok(ptowsp_attention_bound(&s->config, &limits, &bound, NULL));
        assert_ok(ptowsp_attention_size(&s->batch, &s->config, &sizes, NULL));
        assert_true(reference_is_within(&sizes, &bound));
        limits.kv_token_count_max = limits.query_token_count_max = 0;
    }
}

TEST(positions__every_pair_that_is_seen_is_in_one_unit) {
    uint64_t seed = test_seed();
    uint32_t met[HAS_COUNT][HAS_COUNT] = {{0}}, pairs = 0;
    for (uint32_t round = 0; TEST_ROUNDS(round, 4000); round++) {
        positions_sample s;
        positions_make(&s, round % 8 ? 40 : 150, round % 8 ? 12 : 40, &seed);
        aplan plan = make(&s.batch, &s.config);
        check_pairs(&s, &plan);
        check_seen(&s);
        check_bounds(&s);
        note_features(&s, met);
        free(plan.units);
    }
    for (uint32_t i = 0; i < HAS_COUNT; i++) {
        for (uint32_t k = i; k < HAS_COUNT; k++) {
            const bool is_refused = i == HAS_AFTER && k == HAS_CAUSAL;
            const bool is_either = i == HAS_INVARIANT && k == HAS_BALANCED;
            assert_met(is_refused || is_either || met[i][k] > 10);
            assert_true((!is_refused && !is_either) || met[i][k] == 0);
            pairs += i < k && met[i][k] > 0;
        }
    }
    printf("%u pairs of %u features have met\n", pairs, (unsigned)HAS_COUNT);
}

// Positions, strides and windows at the ends of their types are refused, or planned right.
TEST(positions__at_the_ends_of_their_types_are_refused_or_right) {
    uint64_t seed = test_seed() + 5;
    uint32_t planned = 0, refused = 0;
    for (uint32_t round = 0; TEST_ROUNDS(round, 4000); round++) {
        positions_sample s;
        ptowsp_attention_sizes sizes;
        positions_make(&s, 30, 9, &seed);
        static const int64_t ends[] = {INT32_MIN, -1, 0, 1, INT32_MAX - 30, INT32_MAX, UINT32_MAX};
        for (uint32_t i = 0; i < s.batch.sequence_count; i++) {
            int32_t *const fields[5] = {&s.query_first[i], &s.query_stride[i], &s.kv_first[i],
                                        &s.kv_stride[i], &s.sinks[i]};
            const uint32_t field = (uint32_t)test_random_in(&seed, 0, 19);
            if (field < 5) {
                *fields[field] = (int32_t)ends[test_random_in(&seed, 0, 5)];
            }
            s.before[i] = field == 5 ? (uint32_t)ends[test_random_in(&seed, 2, 6)] : s.before[i];
            s.after[i] = field == 6 ? (uint32_t)ends[test_random_in(&seed, 2, 6)] : s.after[i];
        }
        const ptowsp_status status = ptowsp_attention_size(&s.batch, &s.config, &sizes, NULL);
        if (status == PTOWSP_OK) {
            aplan plan = make(&s.batch, &s.config);
            check_pairs(&s, &plan);
            free(plan.units);
            planned++;
        } else {
            assert_int_equal(status, PTOWSP_INVALID_PARAMS);
            refused++;
        }
    }
    assert_met(planned > 0 && refused > 0);
}

// Arrays of FlashInfer's form have the pieces of each tile, those that see nothing included.
TEST(positions__export_counts_pieces) {
    uint64_t seed = test_seed() + 6;
    for (uint32_t round = 0; TEST_ROUNDS(round, 500); round++) {
        positions_sample s;
        positions_make(&s, 40, 12, &seed);
        aplan plan = make(&s.batch, &s.config);
        const size_t most = plan.unit_capacity + (size_t)1;
        int32_t *requests = (int32_t *)test_alloc(most, 4);
        int32_t *pieces = (int32_t *)test_alloc(most, 4), *tiles = (int32_t *)test_alloc(most, 4);
        int32_t *merges = (int32_t *)test_alloc(most, 4);
        const ptowsp_attention_arrays arrays = {requests, pieces, tiles, merges};
        assert_ok(ptowsp_attention_export(&plan, &arrays));
        uint32_t tile = 0;
        for (uint32_t u = 0; u < plan.unit_count; u++) {
            const ptowsp_work *unit = &plan.units[u];
            const bool is_same = u > 0 && memcmp(unit->params, unit[-1].params, 8) == 0 &&
                                 unit->reserved == unit[-1].reserved;
            assert_int_equal(ptowsp_work_is_first(unit), !is_same);
            tile += !is_same;
            assert_int_equal(requests[u], unit->params[0]);
            assert_int_equal(pieces[u], is_same ? pieces[u - 1] + 1 : 0);
            assert_true(is_same || tiles[tile - 1] == (int32_t)u);
        }
        assert_int_equal(tile, plan.tile_count);
        test_release();
        free(plan.units);
    }
}

// -- faults of a plan -----------------------------------------------------------------------------

TEST(positions__check_finds_units_of_other_tokens) {
    uint64_t seed = test_seed() + 2;
    for (uint32_t round = 0; TEST_ROUNDS(round, 2000); round++) {
        positions_sample s;
        positions_make(&s, 40, 12, &seed);
        aplan plan = make(&s.batch, &s.config);
        if (plan.unit_count > 0) {
            const uint32_t field = (uint32_t)test_random_in(&seed, 2, 3);
            ptowsp_work *unit = &plan.units[test_random_in(&seed, 0, plan.unit_count - 1)];
            unit->params[field] += test_random_in(&seed, 0, 1) ? 1u : UINT32_MAX;
            assert_invalid(ptowsp_attention_check(&s.batch, &s.config, &plan, NULL));
        }
        free(plan.units);
    }
}

// -- bits -----------------------------------------------------------------------------------------

static void assert_same(const aplan *a, const aplan *b) {
    assert_int_equal(a->unit_count, b->unit_count);
    assert_int_equal(a->merge_count, b->merge_count);
    assert_memory_equal(a->units, b->units, a->unit_count * sizeof *a->units);
    assert_memory_equal(a->merges, b->merges, a->merge_count * sizeof *a->merges);
    assert_memory_equal(a->unit_begin, b->unit_begin, (a->lane_count + 1) * sizeof(uint32_t));
    assert_memory_equal(a->lane_costs, b->lane_costs, a->lane_count * sizeof(double));
}

// Arrays that say what is so without them give the same plan, and a structure without arrays does.
TEST(positions__that_say_nothing_new_change_nothing) {
    uint64_t seed = test_seed() + 3;
    const ptowsp_attention_positions none = {0, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    for (uint32_t round = 0; TEST_ROUNDS(round, 2000); round++) {
        positions_sample s;
        positions_make(&s, 60, 12, &seed);
        const uint32_t window = s.config.window;
        for (uint32_t i = 0; i < s.batch.sequence_count; i++) {
            const int32_t queries = (int32_t)queries_of(&s, i);
            s.kv[i] = s.kv[i] < queries ? queries : s.kv[i];
            s.query_first[i] = s.kv[i] - queries;
            s.query_stride[i] = s.kv_stride[i] = 1;
            s.kv_first[i] = s.sinks[i] = 0;
            s.before[i] = window > 0 ? window - 1 : UINT32_MAX;
            s.after[i] = s.config.is_causal ? 0 : UINT32_MAX;
        }
        const ptowsp_attention_config with = s.config;
        aplan b = make(&s.batch, &with);
        s.config.positions = round % 2 ? NULL : &none;
        aplan a = make(&s.batch, &s.config);
        assert_same(&a, &b);
        for (uint32_t i = 0; i < s.batch.sequence_count; i++) {
            const ptowsp_attention_seen x = ptowsp_attention_see(&s.batch, &s.config, i, 0);
            const ptowsp_attention_seen y = ptowsp_attention_see(&s.batch, &with, i, 0);
            assert_memory_equal(&x, &y, sizeof x);
        }
        free(a.units);
        free(b.units);
    }
}

// -- paper ----------------------------------------------------------------------------------------

// Pairs that the tiles of one sequence and head cover and that the tree's drafts see.
static uint32_t pairs_of(const ptowsp_attention_batch *batch, ptowsp_attention_config config,
                         const draft_tree *tree) {
    config.kv_head_count = config.lane_count = config.tile_rows = 1;
    aplan plan = make(batch, &config);
    uint32_t pairs = 0;
    for (uint32_t u = 0; u < plan.unit_count; u++) {
        const ptowsp_work *unit = &plan.units[u];
        for (uint32_t t = ptowsp_work_kv_start(unit); t < ptowsp_work_kv_end(unit); t++) {
            pairs += draft_sees(tree, unit->reserved, t);
        }
    }
    free(plan.units);
    return pairs;
}

// A binary tree of 63 drafts after 300 tokens, under a window of 128: draft j has depth d(j) = the
// exponent of j + 1, stands at 300 + d, and sees the last 128 - d - 1 of the 300 tokens, itself and
// its d ancestors: 128. So 63 * 128 = 8,064 pairs.
//
// Under the window by index, draft j does not have the first j - d(j) tokens of its window: the sum of
// all j, 62 * 63 / 2 = 1,953, less that of depths, 1 * 2 + 2 * 4 + 3 * 8 + 4 * 16 + 5 * 32 = 258, is
// 1,695 pairs. The superset, a window longer by the largest j - d = 62 - 5, has them all.
TEST(positions__superset_of_a_tree_under_a_window_has_its_8064_pairs) {
    static const draft_tree tree = {300, 63, 128};
    const int32_t kv = 363, queries = 63;
    const ptowsp_attention_batch batch = {&kv, &queries, 1};
    ptowsp_attention_config config = {.is_causal = true, .window = 128};
    assert_int_equal(pairs_of(&batch, config, &tree), 8064 - 1695);
    const uint32_t before = 128 - 1 + 62 - 5;
    ptowsp_attention_positions positions = {1, NULL, NULL, NULL, NULL, &before, NULL, NULL};
    config.positions = &positions;
    assert_int_equal(pairs_of(&batch, config, &tree), 8064);
    const uint32_t less = before - 1;  // the last draft misses its first token
    positions.before = &less;
    assert_true(pairs_of(&batch, config, &tree) < 8064);
}

TEST(positions__see_says_nothing_of_what_is_not_there) {
    const int32_t kv[2] = {5, 9}, queries[2] = {2, 3};
    const ptowsp_attention_batch batch = {kv, queries, 2};
    const int32_t first[2] = {3, 6}, ones[2] = {1, 1};
    const uint32_t before[2] = {3, UINT32_MAX}, after[2] = {0, 1};
    const ptowsp_attention_positions positions = {2, first, ones, first, ones, before, after, ones};
    const ptowsp_attention_config config = {
        .kv_head_count = 1, .lane_count = 1, .positions = &positions};
    const ptowsp_attention_seen none = {0, 0, 0};
    const ptowsp_attention_seen seen[5] = {
        ptowsp_attention_see(NULL, &config, 0, 0), ptowsp_attention_see(&batch, NULL, 0, 0),
        ptowsp_attention_see(&batch, &config, 2, 0), ptowsp_attention_see(&batch, &config, 0, 2),
        ptowsp_attention_see(&batch, &config, 0, UINT32_MAX)};
    for (int i = 0; i < 5; i++) {
        assert_memory_equal(&seen[i], &none, sizeof none);
    }
}
