// Attention over plans with positions: a tree of drafts under a window, arrays that change after planning, and arrays
// that do not fit. Values and bits with positions are in attend_pairs_test.c.

#include "attend_levels.h"

#include "plan_text.h"

// A tree of 31 drafts, each with two behind it, after 80 tokens and under a window of 40 positions.
enum { CONTEXT = 80, DRAFTS = 31, TREE_WINDOW = 40, WORDS = 4 };

static const draft_tree tree = {CONTEXT, DRAFTS, TREE_WINDOW};

// The plan has the superset that section 9 says, and bits from token CONTEXT - before on.
TEST(attend__tree_under_a_window_is_a_superset_and_a_mask) {
    scene c = {.key_dim = 24,
               .value_dim = 24,
               .mask_words = WORDS,
               .has_mask_starts = true,
               .s = {.kv = {CONTEXT + DRAFTS},
                     .queries = {DRAFTS},
                     .before = {TREE_WINDOW - 1 + 30 - 4},  // the last draft has depth 4
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
        const levels_of at = small_levels(&state);
        scene *c = levels_make(&at, true, &state);
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
    const levels_of at = small_levels(&state);
    scene *c = levels_make(&at, true, &state);
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
