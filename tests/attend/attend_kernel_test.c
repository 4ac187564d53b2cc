// Attention on CPUs, unit by unit: every variant that this machine runs, against plain
// softmax in double precision over the same (rounded) cache; what its contract says about bits,
// masks and reads; and number formats, against their definition.

#include "attend_scene.h"

#include "src/attend/attend.h"

// All variants of this machine, the fastest last: portable code or NEON, AVX2, AVX-512.
static pwsp_attend_variant variants[3];
static uint32_t variant_count;

static int variants_make(void **state) {
    (void)state;
#if PWSP_NEON
    pwsp_attend_neon(&variants[variant_count++]);
#else
    pwsp_attend_portable(&variants[variant_count++]);
#endif
#if PWSP_X86
    if (pwsp_cpu_has_avx2()) {
        pwsp_attend_avx2(&variants[variant_count++]);
    }
    if (pwsp_cpu_has_avx512()) {
        pwsp_attend_avx512(&variants[variant_count++]);
    }
#endif
    return 0;
}

SUITE_AROUND(variants_make, NULL)

static const pwsp_attend_variant *fastest(void) {
    return &variants[variant_count - 1];
}

// -- against double precision ---------------------------------------------------------------------

// A unit as pieces that are cut at random tokens and merged.
static void check_pieces(const pwsp_attend_variant *variant, const scene *c,
                         ptowsp_attend_unit unit, uint64_t *state) {
    const uint32_t rows = ptowsp_attend_unit_rows(&c->step, &unit), group = c->s.config.group;
    uint32_t start = unit.kv_start, end = unit.kv_start + unit.kv_len, piece_count = 0;
    const size_t held = test_held.count;
    ptowsp_partial *states = (ptowsp_partial *)test_alloc((size_t)8 * rows, sizeof *states);
    float *accs = floats((size_t)8 * rows * c->value_dim), *out = floats(c->value_dim);
    while (piece_count == 0 || unit.kv_start < end) {
        unit.kv_len =
            piece_count == 7 ? end - unit.kv_start : test_random_u32(state, 0, end - unit.kv_start);
        pwsp_attend_compute(variant, &c->kv, &c->step, &unit, states + piece_count * rows,
                            accs + (size_t)piece_count * rows * c->value_dim);
        unit.kv_start += unit.kv_len;
        piece_count++;
    }
    for (uint32_t r = 0; r < rows; r++) {
        float lse = ptowsp_merge_partials(states + r, accs + (size_t)r * c->value_dim, piece_count,
                                          rows, c->value_dim, out);
        check_part(c, unit.request, unit.query_start + r / group, unit.kv_head * group + r % group,
                   start, end, false, out, lse);
    }
    test_release_to(held);
}

// Every row of a scene, in tiles of `tile` query tokens (0: all), whole and in pieces, by each variant.
static void check_scene(scene *c, uint32_t tile, uint64_t *state) {
    const ptowsp_attention_plan plan = {.tile_tokens = tile > 0 ? tile : UINT32_MAX};
    c->step.plan = &plan;
    for (uint32_t v = 0; v < variant_count; v++) {
        for (uint32_t request = 0; request < c->s.batch.sequence_count; request++) {
            const uint32_t tiles = tile > 0 ? (queries_of(c, request) + tile - 1) / tile : 1;
            for (uint32_t i = 0; i < tiles * c->s.config.kv_head_count; i++) {
                ptowsp_work work =
                    ptowsp_work_of(0, 0, 0, request, i / tiles, 0, (uint32_t)c->s.kv[request]);
                work.reserved = (uint16_t)(i % tiles);
                const ptowsp_attend_unit unit = ptowsp_attend_unit_of(&c->step, &work);
                pwsp_attend_compute(&variants[v], &c->kv, &c->step, &unit, NULL, NULL);
                check_pieces(&variants[v], c, unit, state);
            }
        }
        check_values(c);
        scene_outputs(c);
    }
    test_release();
}

static scene *random_scene(uint64_t *state) {
    static const uint32_t groups[] = {1, 2, 3, 4, 5, 7, 8, 16};
    scene *c = (scene *)test_alloc(1, sizeof *c);
    c->type = (ptowsp_attend_type)test_random_in(state, 0, PTOWSP_ATTEND_TYPE_COUNT - 1);
    c->layout = (layout)test_random_in(state, 0, LAYOUT_COUNT - 1);
    const uint32_t unit = c->type >= PTOWSP_ATTEND_Q8_0 ? 32 : 8;
    c->key_dim = unit * test_random_u32(state, 1, 144 / unit);
    c->value_dim =
        test_random(state) % 2 ? c->key_dim : unit * test_random_u32(state, 1, 144 / unit);
    if (c->layout == LAYOUT_LATENT && c->value_dim > c->key_dim) {
        c->value_dim = c->key_dim;
    }
    positions_sample *s = &c->s;
    s->config.page_size = test_random_u32(state, 1, 40);
    s->config.kv_head_count = c->layout == LAYOUT_LATENT ? 1 : test_random_u32(state, 1, 3);
    s->config.group = groups[test_random(state) % 8];
    s->config.window = test_random(state) % 3 ? 0 : test_random_u32(state, 1, 150);
    s->config.is_causal = test_random(state) % 4 != 0;
    s->batch.query_lengths = s->queries;
    s->batch.sequence_count = test_random_u32(state, 1, 3);
    for (uint32_t r = 0; r < s->batch.sequence_count; r++) {  // decode and prefill mixed
        s->queries[r] = test_random(state) % 2 ? 1 : (int32_t)test_random_in(state, 1, 40);
        s->kv[r] = s->queries[r] + (int32_t)test_random_in(state, 0, 200);
    }
    static const float caps[] = {20.0f, 3e3f, 1e8f, 1e38f};  // the larger, the less they may change
    const uint64_t cap = test_random(state) % 12;
    c->cap = cap < 4 ? caps[cap] : 0.0f;
    c->scale = test_random(state) % 2 ? 0.0f : 0.3f;
    c->magnitude = test_random(state) % 4 ? 3.0f : 100.0f;
    c->has_equal_keys = test_random(state) % 8 == 0;
    c->has_sinks = test_random(state) % 2;
    c->has_slopes = test_random(state) % 3 == 0;
    c->has_mask_starts = test_random(state) % 3 == 0;  // a mask may end before its request does
    c->mask_words = c->has_mask_starts ? test_random_u32(state, 1, 8) : 0;
    c->has_nan = true;
    return c;
}

TEST(attend__agrees_with_double_precision_in_every_variant) {
    uint64_t state = test_seed();
    for (int i = 0; TEST_ROUNDS(i, 40); i++) {
        scene *c = random_scene(&state);
        scene_make(c, state);
        check_scene(c, test_random(&state) % 2 ? 0 : test_random_u32(&state, 1, 20), &state);
    }
}

TEST(attend__usual_dimensions_and_groups_are_exact_in_every_type) {
    static const uint32_t dims[][2] = {{64, 64},   {80, 80},   {96, 96},  {112, 112}, {128, 128},
                                       {192, 128}, {256, 256}, {512, 64}, {576, 512}, {40, 40},
                                       {72, 72},   {120, 8},   {8, 568}};
    static const uint32_t groups[] = {1, 3, 4, 7, 8, 16, 128};
    uint64_t state = test_seed();
    for (uint32_t i = 0; i < 13 || TEST_ROUNDS(i, 13 * 7); i++) {  // each of them in the first
        const uint32_t *dim = dims[i % 13], group = groups[(i / 13 + i) % 7];
        scene c = {
            .type = (ptowsp_attend_type)(i % (dim[0] % 32 == 0 ? 6 : 4)),
            .layout = dim[0] == 576 ? LAYOUT_LATENT : (layout)((i / 3 + i / 13) % 3),
            .key_dim = dim[0],
            .value_dim = dim[1],
            .magnitude = 4.0f,
            .s = {.kv = {90, 75},
                  .queries = {1, group > 16 ? 2 : 9},
                  .batch = {.sequence_count = 2},
                  .config = {
                      .kv_head_count = 1, .group = group, .page_size = 16, .is_causal = true}}};
        c.s.batch.query_lengths = c.s.queries;
        scene_make(&c, state);
        check_scene(&c, 0, &state);
    }
}

// One request, of one KV head, in pages of 8.
static scene *plain_scene(ptowsp_attend_type type, uint32_t group, int32_t queries, int32_t kv) {
    scene *c = (scene *)test_alloc(1, sizeof *c);
    *c = (scene){
        .type = type,
        .layout = LAYOUT_SLOTS,
        .key_dim = 64,
        .value_dim = 80,
        .magnitude = 3.0f,
        .s = {.kv = {kv},
              .queries = {queries},
              .batch = {.query_lengths = c->s.queries, .sequence_count = 1},
              .config = {.kv_head_count = 1, .group = group, .page_size = 8, .is_causal = true}}};
    return c;
}

// Scores of thousands, and below a large cap a score is itself: tanh x is x where x is small.
TEST(attend__large_scores_and_caps_stay_exact) {
    uint64_t state = test_seed();
    static const float caps[] = {0, 50.0f, 50.0f, 1.0f, 5.0f, 20.0f, 1e3f, 1e5f, 1e8f, 1e38f};
    for (uint32_t i = 0; i < COUNT_OF(caps); i++) {
        const bool is_large = i < 3;
        scene *c = plain_scene(is_large ? PTOWSP_ATTEND_F32 : (ptowsp_attend_type)((i - 3) % 6), 3,
                               5, 200);
        c->value_dim = is_large ? c->value_dim : 96;
        c->magnitude = is_large ? 1e4f : c->magnitude;
        c->has_equal_keys = i == 2;
        c->cap = caps[i];
        scene_make(c, state);
        check_scene(c, 0, &state);
    }
}

// The key or the value of a token of a plain scene of f32.
static float *row_of(const scene *c, uint32_t is_value, uint32_t token) {
    const ptowsp_attend_strides *strides = is_value ? &c->kv.value_strides : &c->kv.key_strides;
    return (float *)(void *)c->cache[is_value] + place_of(c, strides, 0, token, 0);
}

TEST(attend__of_one_token_is_its_value_row) {
    scene *c = plain_scene(PTOWSP_ATTEND_F32, 1, 1, 1);
    scene_make(c, 1);
    for (uint32_t d = 0; d < 80; d++) {
        c->queries[d % 64] = 0.75f;
        row_of(c, 0, 0)[d % 64] = 1.0f;
        row_of(c, 1, 0)[d] = (float)d;
    }
    const ptowsp_attend_unit unit = {0, 0, 0, 1, 0, 1, NULL, 0};
    ptowsp_partial state;
    float acc[80];
    ptowsp_attend_compute(&c->kv, &c->step, &unit, &state, acc);
    assert_true(state.m == 6 && state.l == 1);  // 0.75 * 64 / sqrt(64)
    ptowsp_attend_compute(&c->kv, &c->step, &unit, NULL, NULL);
    assert_true(c->lse[0] == 6);
    for (int d = 0; d < 80; d++) {
        assert_true(acc[d] == (float)d && c->outputs[d] == (float)d);
    }
    test_release();
}

// -- bits -----------------------------------------------------------------------------------------

typedef struct result {
    ptowsp_partial *states;
    float *accs;
    uint32_t rows, dim;
} result;

static result compute(const pwsp_attend_variant *variant, const scene *c,
                      const ptowsp_attend_step *step, ptowsp_attend_unit unit) {
    result out = {NULL, NULL, ptowsp_attend_unit_rows(step, &unit), c->value_dim};
    out.states = (ptowsp_partial *)test_alloc(out.rows, sizeof *out.states);
    out.accs = floats((size_t)out.rows * out.dim);
    pwsp_attend_compute(variant, &c->kv, step, &unit, out.states, out.accs);
    return out;
}

// Row `a` of x and row `b` of y have the same bits.
static void same_row(const result *x, uint32_t a, const result *y, uint32_t b) {
    assert_memory_equal(&x->states[a], &y->states[b], sizeof *x->states);
    assert_memory_equal(x->accs + (size_t)a * x->dim, y->accs + (size_t)b * x->dim,
                        x->dim * sizeof *x->accs);
}

static ptowsp_attend_unit random_piece(const scene *c, uint64_t *state) {
    const uint32_t request = test_random_u32(state, 0, c->s.batch.sequence_count - 1);
    const uint32_t kv = (uint32_t)c->s.kv[request], start = test_random_u32(state, 0, kv - 1);
    return (ptowsp_attend_unit){.request = request,
                                .kv_head = test_random_u32(state, 0, c->s.config.kv_head_count - 1),
                                .query_count = queries_of(c, request),
                                .kv_start = start,
                                .kv_len = test_random_u32(state, 1, kv - start)};
}

// As a group of one head, finished, and by another vector variant.
TEST(attend__row_of_a_piece_has_the_same_bits_however_it_is_computed) {
    uint64_t state = test_seed();
    for (int i = 0; TEST_ROUNDS(i, 60); i++) {
        scene *c = random_scene(&state);
        scene_make(c, state);
        ptowsp_attend_unit unit = random_piece(c, &state);
        const uint32_t v = (uint32_t)(test_random(&state) % variant_count);
        result tile = compute(&variants[v], c, &c->step, unit);
        pwsp_attend_compute(&variants[v], &c->kv, &c->step, &unit, NULL, NULL);
        result vector =
            compute(&variants[v > 0 && variant_count == 3 ? 3 - v : v], c, &c->step, unit);
        const uint32_t group = c->s.config.group;
        float *out = floats(c->value_dim);
        for (uint32_t r = 0; r < tile.rows; r++) {
            const uint32_t head = unit.kv_head * (group - 1) + r % group;
            ptowsp_attend_step step = c->step;
            ptowsp_attend_unit one = unit;
            ptowsp_attention_config config = c->s.config;
            config.group = 1;
            step.config = &config;
            step.queries += head * (size_t)step.query_head_stride;
            step.slopes = c->has_slopes ? step.slopes + head : NULL;
            one.query_start = r / group;
            one.query_count = 1;
            result by_itself = compute(&variants[v], c, &step, one);
            same_row(&tile, r, &by_itself, 0);
            same_row(&tile, r, &vector, r);
            const size_t token = c->query_starts[unit.request] + r / group;
            const size_t at = token * c->rows + unit.kv_head * group + r % group;
            const float lse = ptowsp_merge_finish(
                &tile.states[r], tile.accs + (size_t)r * c->value_dim, c->value_dim, out);
            if (!c->has_sinks) {
                assert_memory_equal(out, c->outputs + at * c->value_dim,
                                    c->value_dim * sizeof *out);
                assert_memory_equal(&lse, &c->lse[at], sizeof lse);
            }
        }
        test_release();
    }
}

// A piece that begins earlier or ends later changes nothing for rows that do not see its ends.
TEST(attend__row_depends_on_the_tokens_it_sees_alone) {
    uint64_t state = test_seed();
    for (int i = 0; TEST_ROUNDS(i, 20); i++) {
        scene *c = plain_scene(PTOWSP_ATTEND_F16, 4, 30, 150);
        const uint32_t window = c->s.config.window = i % 2 ? 70 : 0;
        scene_make(c, state++);
        ptowsp_attend_unit unit = {0, 0, 0, 30, test_random_u32(&state, 0, 110), 150, NULL, 0};
        result whole = compute(fastest(), c, &c->step, unit);
        uint32_t query = test_random_u32(&state, 0, 29);
        unit.kv_len = 150 - 30 + query + 1 - unit.kv_start;  // up to what this query sees
        result cut = compute(fastest(), c, &c->step, unit);
        for (uint32_t r = 0; r < (query + 1) * 4; r++) {
            same_row(&whole, r, &cut, r);
        }
        for (uint32_t r = 0; window > 0 && r < 30; r++) {  // from where each query's window is
            const uint32_t begin = 150 - 30 + r + 1 - window;
            const uint32_t start = unit.kv_start > begin ? unit.kv_start : begin;
            ptowsp_attend_unit later = {0, 0, 0, 30, start, 150, NULL, 0};
            result seen = compute(fastest(), c, &c->step, later);
            for (uint32_t g = 0; g < 4; g++) {
                same_row(&whole, r * 4 + g, &seen, r * 4 + g);
            }
        }
        test_release();
    }
}

TEST(attend__layout_of_the_cache_changes_no_bit) {
    uint64_t state = test_seed();
    for (int i = 0; TEST_ROUNDS(i, 20); i++) {
        const scene *of = random_scene(&state);
        const uint32_t kv = (uint32_t)of->s.kv[0], start = test_random_u32(&state, 0, kv - 1);
        const ptowsp_attend_unit unit = {0, 0, 0, queries_of(of, 0), start, kv, NULL, 0};
        const uint64_t seed = state;
        result results[3];
        for (uint32_t k = 0; k < 3; k++) {
            scene *c = (scene *)test_alloc(1, sizeof *c);
            *c = *of;
            c->s.batch.query_lengths = c->s.queries;
            c->value_dim = c->key_dim;
            c->layout = (layout)k;
            c->s.config.page_size = test_random_u32(&state, 1, 100);
            scene_make(c, seed);
            results[k] = compute(fastest(), c, &c->step, unit);
        }
        for (uint32_t r = 0; r < results[0].rows; r++) {
            same_row(&results[0], r, &results[1], r);
            same_row(&results[0], r, &results[2], r);
        }
        test_release();
    }
}

// -- masks and reads ------------------------------------------------------------------------------

TEST(attend__rows_that_see_nothing_are_empty) {
    scene *c = plain_scene(PTOWSP_ATTEND_F32, 2, 10, 100);
    c->s.config.window = 20;
    scene_make(c, 1);
    for (uint32_t i = 0; i < variant_count; i++) {
        // Queries stand at 90 to 99. Of tokens 78 and 79 query j sees those from 71 + j on.
        ptowsp_attend_unit unit = {0, 0, 0, 10, 78, 2, NULL, 0};
        result r = compute(&variants[i], c, &c->step, unit);
        for (uint32_t row = 0; row < r.rows; row++) {
            bool is_empty = 71 + row / 2 > 79;
            assert_true((r.states[row].m == -INFINITY) == is_empty);
            assert_true((r.states[row].l == 0.0f) == is_empty);
            assert_true((r.accs[row * c->value_dim] == 0.0f) == is_empty);
        }
        unit.kv_start = 95;  // the first five queries stand before it
        unit.kv_len = 5;
        pwsp_attend_compute(&variants[i], &c->kv, &c->step, &unit, NULL, NULL);
        for (uint32_t row = 0; row < 20; row++) {
            assert_true((c->lse[row] == -INFINITY) == (row / 2 < 5));
            assert_true((c->outputs[row * c->value_dim] == 0.0f) == (row / 2 < 5));
        }
        unit.kv_len = 0;
        r = compute(&variants[i], c, &c->step, unit);
        assert_true(r.states[0].m == -INFINITY && r.states[19].m == -INFINITY);
        unit.kv_start = 200;  // behind the sequence
        unit.kv_len = 10;
        r = compute(&variants[i], c, &c->step, unit);
        assert_true(r.states[0].m == -INFINITY && r.states[19].m == -INFINITY);
    }
    test_release();
}

// Pages that a window has left behind may be gone.
TEST(attend__tokens_that_no_row_sees_are_not_read) {
    for (uint32_t type = 0; type < PTOWSP_ATTEND_TYPE_COUNT; type++) {
        scene *c = plain_scene((ptowsp_attend_type)type, 4, 3, 120);
        c->value_dim = 96;
        c->s.config.window =
            30;  // queries stand at 117 to 119, so the first token seen is 88, in page 11
        scene_make(c, 1);
        ptowsp_attend_unit unit = {0, 0, 0, 3, 0, 120, NULL, 0};
        result before = compute(fastest(), c, &c->step, unit);
        for (uint32_t page = 0; page < 11; page++) {
            c->pages[page] = UINT32_MAX;
        }
        result after = compute(fastest(), c, &c->step, unit);
        for (uint32_t r = 0; r < before.rows; r++) {
            same_row(&before, r, &after, r);
        }
        test_release();
    }
}

// Two queries, whose windows are several blocks of tokens apart. Tokens that neither sees are NaN.
TEST(attend__tokens_between_windows_change_nothing) {
    uint64_t state = test_seed();
    for (uint32_t type = 0; type < PTOWSP_ATTEND_TYPE_COUNT; type++) {
        scene *c = plain_scene((ptowsp_attend_type)type, 3, 2, 300);
        c->value_dim = 96;
        c->has_nan = true;
        c->s.query_first[0] = 20, c->s.query_stride[0] = 256, c->s.before[0] = 9;
        c->s.positions = (ptowsp_attention_positions){.query_first = c->s.query_first,
                                                      .query_stride = c->s.query_stride,
                                                      .before = c->s.before,
                                                      .sequence_count = 1};
        c->s.config.positions = &c->s.positions;
        scene_make(c, state);
        check_scene(c, 0, &state);
    }
}

TEST(attend__nan_of_a_token_stays_in_the_rows_that_see_it) {
    for (uint32_t is_value = 0; is_value < 2; is_value++) {
        scene *c = plain_scene(PTOWSP_ATTEND_F32, 3, 20, 100);
        scene_make(c, 1);
        uint32_t dim = is_value ? c->value_dim : c->key_dim;
        float *of_token = row_of(c, is_value, 90);
        for (uint32_t d = 0; d < dim; d++) {  // token 90 is that of query 10
            of_token[d] = NAN;
        }
        for (uint32_t i = 0; i < variant_count; i++) {
            ptowsp_attend_unit unit = {0, 0, 0, 20, 0, 100, NULL, 0};
            pwsp_attend_compute(&variants[i], &c->kv, &c->step, &unit, NULL, NULL);
            for (uint32_t row = 0; row < 60; row++) {
                float out = c->outputs[(size_t)row * c->value_dim];
                assert_true((out != out) == (row / 3 >= 10));
            }
            unit.kv_start = 90;  // it alone, as a partial state: merged, it is not lost
            unit.kv_len = 1;
            result r = compute(&variants[i], c, &c->step, unit);
            float merged[96];
            ptowsp_merge_partials(&r.states[30], r.accs + (size_t)30 * c->value_dim, 1, 1,
                                  c->value_dim, merged);
            assert_true(merged[0] != merged[0]);
        }
        test_release();
    }
}

// Hidden keys and values that are NaN change nothing: of 16 drafts each sees the prompt, itself and the
// drafts whose number halves to it.
TEST(attend__tokens_that_a_mask_hides_change_nothing) {
    for (uint32_t is_value = 0; is_value < 2; is_value++) {
        scene *c = plain_scene(PTOWSP_ATTEND_F32, 3, 16, 130);
        c->mask_words = 1;
        c->has_mask_starts = true;
        scene_make(c, 1);
        c->mask_starts[0] = 114;
        for (uint32_t q = 0; q < 16; q++) {
            c->mask[q] = 0;
            for (uint32_t node = q + 1; node > 0; node /= 2) {
                c->mask[q] |= 1u << (node - 1);
            }
        }
        ptowsp_attend_unit unit = {0, 0, 0, 16, 0, 130, NULL, 0};
        for (uint32_t i = 0; i < variant_count; i++) {
            result before = compute(&variants[i], c, &c->step, unit);
            const uint32_t dim = is_value ? c->value_dim : c->key_dim;
            float *row = row_of(c, is_value, 114 + 4);
            float kept[80];
            memcpy(kept, row, dim * sizeof *kept);
            for (uint32_t d = 0; d < dim; d++) {  // draft 4, node 5: above nodes 10 and 11 alone
                row[d] = NAN;
            }
            result after = compute(&variants[i], c, &c->step, unit);
            for (uint32_t r = 0; r < before.rows; r++) {
                if (r / 3 == 4 || r / 3 == 9 || r / 3 == 10) {
                    assert_true(after.accs[(size_t)r * c->value_dim] !=
                                after.accs[(size_t)r * c->value_dim]);
                } else {
                    same_row(&before, r, &after, r);
                }
            }
            memcpy(row, kept, dim * sizeof *kept);
        }
        test_release();
    }
}

TEST(attend__work_names_the_tile) {
    const uint32_t starts[] = {0, 1};
    const int32_t queries[] = {1, 70};
    ptowsp_attention_batch given = {NULL, queries, 2};
    ptowsp_attention_config config = {0};
    ptowsp_attention_plan plan = {0};
    ptowsp_attend_step step = {
        .batch = &given, .config = &config, .plan = &plan, .query_starts = starts};
    config.group = 4;
    plan.tile_tokens = 32;
    ptowsp_work work = ptowsp_work_of(9, 0, 0, 1, 3, 256, 128);
    work.reserved = 2;
    ptowsp_attend_unit unit = ptowsp_attend_unit_of(&step, &work);
    assert_int_equal(unit.request, 1);
    assert_int_equal(unit.kv_head, 3);
    assert_int_equal(unit.query_start, 64);
    assert_int_equal(unit.query_count, 6);
    assert_int_equal(unit.kv_start, 256);
    assert_int_equal(unit.kv_len, 128);
    assert_int_equal(ptowsp_attend_unit_rows(&step, &unit), 24);
    work.reserved = 3;  // behind the last
    assert_int_equal(ptowsp_attend_unit_of(&step, &work).query_count, 0);
    given.query_lengths = NULL;  // decode
    work.reserved = 0;
    assert_int_equal(ptowsp_attend_unit_of(&step, &work).query_count, 1);
}

TEST(attend__variant_is_the_fastest_of_this_machine) {
    assert_string_equal(ptowsp_attend_variant(), fastest()->name);
}

// -- number formats -------------------------------------------------------------------------------

TEST(attend__converts_every_half_exactly) {
    uint16_t *halves = (uint16_t *)test_alloc(65536, sizeof *halves);
    float *f16 = floats(65536), *bf16 = floats(65536);
    for (uint32_t i = 0; i < 65536; i++) {
        halves[i] = (uint16_t)i;
    }
    for (uint32_t v = 0; v < variant_count; v++) {
        const char *from = (const char *)halves;
        variants[v].convert(PTOWSP_ATTEND_F16, &from, 1, 65536, f16);
        variants[v].convert(PTOWSP_ATTEND_BF16, &from, 1, 65536, bf16);
        for (uint32_t half = 0; half < 65536; half++) {
            // These two are held against exact arithmetic for every half by dtype_test.c (widens_and_returns).
            // NaNs may have become quiet, as they do where floats are returned by the x87.
            const float expected[2] = {ptowsp_f32_from_f16((uint16_t)half),
                                       ptowsp_f32_from_bf16((uint16_t)half)};
            const float got[2] = {f16[half], bf16[half]};
            for (int i = 0; i < 2; i++) {
                assert_true(isnan(expected[i]) ? isnan(got[i])
                                               : memcmp(&got[i], &expected[i], 4) == 0);
            }
        }
    }
}

TEST(attend__converts_any_number_of_elements) {
    int8_t from[40];
    float to[41], copy[40];
    for (int i = 0; i < 40; i++) {
        from[i] = (int8_t)(i * 13 - 128);
    }
    for (uint32_t count = 0; count <= 40; count++) {
        to[count] = 77.0f;
        ptowsp_attend_convert(from, PTOWSP_ATTEND_I8, count, to);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(to[i] == (float)from[i]);
        }
        assert_true(to[count] == 77.0f);
        assert_ok(ptowsp_attend_convert(to, PTOWSP_ATTEND_F32, count, copy));
        assert_memory_equal(copy, to, count * sizeof *to);
    }
}
