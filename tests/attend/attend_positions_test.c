// Attention over plans with positions, on random batches: values against softmax in double precision over all
// pairs that are seen, with masks, slopes and sinks, and NaN for tokens that nobody sees; bits that depend
// neither on workers nor, in INVARIANT mode, on neighbours and on how queries are grouped; and arrays that do
// not fit.

#include "attend_scene.h"

#include "plan_text.h"

static scene *random_scene(uint64_t *state) {
    scene *c = (scene *)test_alloc(1, sizeof *c);
    ptowsp_attention_config *config = &c->s.config;
    positions_make(&c->s, test_random_in(state, 0, 1) ? 200 : 40, 18, state);
    config->tile_rows = test_random_u32(state, 1, 40);
    if (test_random_in(state, 0, 15) == 0) {  // as under MLA: chunks of rows begin inside a group
        config->kv_head_count = 1;
        config->group = 130;
        config->tile_rows = test_random_u32(state, 1, 4) * config->group;
    }
    c->type = (ptowsp_attend_type)test_random_in(state, 0, PTOWSP_ATTEND_I8);
    c->layout =
        (layout)test_random_in(state, 0, config->kv_head_count == 1 ? LAYOUT_LATENT : LAYOUT_PLAIN);
    c->key_dim = c->value_dim = 24;
    c->magnitude = 3.0f;
    c->mask_words = test_random_in(state, 0, 2) ? 0 : 7;
    c->has_sinks = test_random_in(state, 0, 2) == 0;
    c->has_slopes = test_random_in(state, 0, 2) == 0;
    c->has_nan = true;
    scene_make(c, test_random(state));
    return c;
}

// Some query tokens of each sequence, alone, have the bits that they have in the batch.
static void check_alone(scene *c, uint64_t *state) {
    const float *outputs = c->outputs, *lse = c->lse;
    scene_outputs(c);
    for (uint32_t i = 0; i < c->s.batch.sequence_count; i++) {
        const uint32_t queries = queries_of(c, i);
        const bool is_behind = !c->s.positions.query_first && c->s.kv[i] < (int32_t)queries;
        if (c->s.kv[i] > 0 && queries > 0 && !is_behind) {
            const uint32_t first = test_random_u32(state, 0, queries - 1);
            const uint32_t count = test_random_u32(state, 1, queries - first);
            const size_t at = (size_t)(c->query_starts[i] + first) * c->rows;
            alone one;
            make_alone(c, i, first, count, &one);
            one.config.lane_count = test_random_u32(state, 1, 9);
            one.config.tile_rows = test_random_u32(state, 1, 40);
            run(c, one.step, false, WORKERS_TWO, false);
            assert_memory_equal(outputs + at * c->value_dim, c->outputs + at * c->value_dim,
                                count * c->rows * c->value_dim * sizeof(float));
            assert_memory_equal(lse + at, c->lse + at, count * c->rows * sizeof(float));
        }
    }
}

TEST(attend__values_and_bits_with_positions_are_those_of_what_is_seen) {
    uint64_t state = test_seed();
    for (uint32_t round = 0; TEST_ROUNDS(round, 500); round++) {
        scene *c = random_scene(&state);
        const float *outputs = c->outputs, *lse = c->lse;
        run(c, c->step, false, (workers)test_random_in(&state, WORKERS_TWO, WORKERS_LAUNCH),
            test_random_in(&state, 0, 1));
        check_values(c);
        scene_outputs(c);
        run(c, c->step, false, WORKERS_ONE, false);
        same_outputs(c, outputs, lse);
        if (c->s.config.mode == PTOWSP_ATTENTION_INVARIANT) {
            check_alone(c, &state);
        }
        test_release();
    }
}

// A tree of 31 drafts, each with two behind it, after 80 tokens and under a window of 40 positions.
enum { CONTEXT = 80, DRAFTS = 31, WINDOW = 40, WORDS = 4 };

static const draft_tree tree = {CONTEXT, DRAFTS, WINDOW};

// The plan has the superset that section 9 says, and bits from token CONTEXT - before on.
TEST(attend__tree_under_a_window_is_a_superset_and_a_mask) {
    scene c = {.key_dim = 24,
               .value_dim = 24,
               .mask_words = WORDS,
               .has_mask_starts = true,
               .s = {.kv = {CONTEXT + DRAFTS},
                     .queries = {DRAFTS},
                     .before = {WINDOW - 1 + 30 - 4},  // the last draft has depth 4
                     .batch = {.sequence_count = 1},
                     .positions = {.sequence_count = 1},
                     .config = {.kv_head_count = 1,
                                .group = 1,
                                .page_size = 1,
                                .lane_count = 3,
                                .is_causal = true}}};
    c.s.config.positions = &c.s.positions;
    c.s.positions.before = c.s.before;
    c.s.batch.query_lengths = c.s.queries;
    scene_make(&c, test_seed());
    const int32_t start = CONTEXT - (int32_t)c.s.before[0];
    c.mask_starts[0] = (uint32_t)start;
    memset(c.mask, 0, DRAFTS * WORDS * sizeof *c.mask);
    for (int32_t j = 0; j < DRAFTS; j++) {
        for (int32_t t = start; t < CONTEXT + DRAFTS; t++) {
            c.mask[j * WORDS + (t - start) / 32] |=
                (uint32_t)draft_sees(&tree, (uint32_t)j, (uint32_t)t) << (t - start) % 32;
        }
    }
    run(&c, c.step, false, WORKERS_TWO, false);
    c.mask_starts[0] = 0;  // a mask from token 0 on, for the reference
    memset(c.mask, 0, DRAFTS * WORDS * sizeof *c.mask);
    for (int32_t j = 0; j < DRAFTS; j++) {
        for (int32_t t = 0; t < CONTEXT + DRAFTS; t++) {
            assert_true(!draft_sees(&tree, (uint32_t)j, (uint32_t)t) ||
                        positions_sees(&c.s, 0, j, t));
            c.mask[j * WORDS + t / 32] |= (uint32_t)draft_sees(&tree, (uint32_t)j, (uint32_t)t)
                                          << t % 32;
        }
    }
    check_values(&c);
    test_release();
}

// -- bad input ------------------------------------------------------------------------------------

// A run does not check arrays, as it takes constant time, and yet survives them; units do as well.
TEST(attend__runs_survive_arrays_that_changed_after_planning) {
    uint64_t state = test_seed() + 4;
    for (uint32_t round = 0; TEST_ROUNDS(round, 200); round++) {
        scene *c = random_scene(&state);
        made_job made;
        make_job(c, &c->step, false, &made);
        ptowsp_attend_unit unit = {.query_count = c->s.kv[0] > 0 ? queries_of(c, 0) : 0,
                                   .kv_len = (uint32_t)c->s.kv[0]};
        for (uint32_t i = 0; i < SEQUENCES; i++) {
            c->s.query_first[i] = c->s.kv_first[i] = INT32_MIN + (int32_t)(round % 3);
            c->s.query_stride[i] = c->s.kv_stride[i] = round % 2 ? INT32_MAX : 0;
            c->s.sinks[i] = round % 4 < 2 ? INT32_MAX : -5;
        }
        assert_ok(ptowsp_attend_compute(&c->kv, &c->step, &unit, NULL, NULL));
        unit.sinks = 1;  // behind where the unit starts
        assert_invalid(ptowsp_attend_compute(&c->kv, &c->step, &unit, NULL, NULL));
        unit.sinks = 0;
        c->s.positions.sequence_count = 0;
        assert_int_equal(ptowsp_attend_compute(&c->kv, &c->step, &unit, NULL, NULL),
                         positions_are_there(&c->s) ? PTOWSP_INVALID_PARAMS : PTOWSP_OK);
        test_release();
    }
}

// Jobs of prefix plans, and of arrays that are shorter than the batch, are refused by name.
TEST(attend__jobs_with_positions_that_do_not_fit_are_refused) {
    uint64_t state = test_seed() + 6;
    scene *c = random_scene(&state);
    ptowsp_attention_config *config = &c->s.config;
    const ptowsp_attention_positions few = {.before = c->s.before}, none = {0};
    ptowsp_attention_plan plan = {
        .group = config->group, .tile_tokens = 1, .lane_count = config->lane_count};
    ptowsp_prefix_plan prefix = {.attention = plan};
    ptowsp_plan_info info;
    const ptowsp_attend_job job = {.cache = &c->kv, .step = &c->step};
    config->tile_rows = config->group;
    config->window = 0;
    for (int pass = 0; pass < 2; pass++) {
        config->positions = &few;
        c->step.plan = pass == 0 ? &plan : &prefix.attention;
        c->step.prefix = pass == 0 ? NULL : &prefix;
        assert_invalid(ptowsp_attend_check(&job, &info));
        assert_int_equal(info.fault,
                         pass == 0 ? PTOWSP_FAULT_POSITIONS_COUNT : PTOWSP_FAULT_TREE_POSITIONS);
        assert_invalid(ptowsp_attend_run_worker(&job, 0, 1, &info));
        config->positions = &none;  // no arrays: a job without memory
        assert_invalid(ptowsp_attend_check(&job, &info));
        assert_int_equal(info.fault, PTOWSP_FAULT_ATTEND_MEMORY_NULL);
    }
    config->positions = NULL;  // shared segments would be seen by all, and others by the window
    config->window = 5;
    fault_is(ptowsp_attend_run_worker(&job, 0, 1, &info), PTOWSP_INVALID_PARAMS, &info,
             "plan: prefix plans have no window, and config.window is 5");
    test_release();
}
