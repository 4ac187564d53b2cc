// The bits of rows under INVARIANT plans, over all ways to group the queries of a sequence: one prefill,
// prefill in chunks, verification of drafts, and decode, on any lanes, tiles and pages. Two kernels: the
// library's, and a plain one whose blocks begin where a unit does, as those of devices do.

#include "attend_scene.h"

enum { TOKENS = 430, DIM = 32, BLOCK = 16, GUARD = 4096 };

typedef struct plain_run {
    const scene *c;
    const made_job *made;
} plain_run;

// -- the plain kernel -----------------------------------------------------------------------------

// A token's key (0) or value (1).
static const float *row_of(const plain_run *r, int is_value, uint32_t request, uint32_t token,
                           uint32_t head) {
    const ptowsp_attend_step *step = r->made->job.step;
    const uint32_t size = r->c->kv.page_size, *pages = step->pages + step->page_starts[request];
    const size_t slot = (size_t)pages[token / size] * size + token % size;
    return (const float *)(const void *)r->c->cache[is_value] +
           (slot * step->config->kv_head_count + head) * DIM;
}

// A row over [from, to) of a unit: online softmax in blocks from where the unit starts on.
static void plain_row(const plain_run *r, const float *query, const ptowsp_attend_unit *unit,
                      uint32_t from, uint32_t to, ptowsp_partial *state, float *acc) {
    state->m = -INFINITY;
    state->l = 0;
    memset(acc, 0, DIM * sizeof *acc);
    for (uint32_t block = unit->kv_start; block < to; block += BLOCK) {
        const uint32_t begin = block > from ? block : from;
        const uint32_t end = block + BLOCK < to ? block + BLOCK : to;
        float scores[BLOCK], m = state->m, l = 0, sums[DIM] = {0};
        for (uint32_t t = begin; t < end; t++) {
            const float *key = row_of(r, 0, unit->request, t, unit->kv_head);
            float score = 0;
            for (uint32_t d = 0; d < DIM; d++) {
                score += query[d] * key[d];
            }
            scores[t - block] = score;
            m = score > m ? score : m;
        }
        if (m == -INFINITY) {
            continue;
        }
        for (uint32_t t = begin; t < end; t++) {
            const float *value = row_of(r, 1, unit->request, t, unit->kv_head);
            const float weight = expf(scores[t - block] - m);
            l += weight;
            for (uint32_t d = 0; d < DIM; d++) {
                sums[d] += weight * value[d];
            }
        }
        const float factor = expf(state->m - m);
        state->m = m;
        state->l = state->l * factor + l;
        for (uint32_t d = 0; d < DIM; d++) {
            acc[d] = acc[d] * factor + sums[d];
        }
    }
}

// The row of the step that is row `row` of a tile.
static size_t step_row(const ptowsp_attend_step *step, const ptowsp_attend_unit *unit,
                       uint32_t row) {
    const uint32_t heads = step->config->kv_head_count, group = step->config->group;
    const size_t token = step->query_starts[unit->request] + unit->query_start + row / group;
    return (token * heads + unit->kv_head) * group + row % group;
}

static void plain_unit(const ptowsp_work *work, uint32_t lane, void *user) {
    const plain_run *r = (const plain_run *)user;
    const ptowsp_attend_step *step = r->made->job.step;
    const ptowsp_attention_scratch *scratch = &r->made->job.memory.scratch;
    const ptowsp_attend_unit unit = ptowsp_attend_unit_of(step, work);
    const uint32_t slot = ptowsp_work_slot(work);
    const int64_t length = step->batch->kv_lengths[unit.request], end = ptowsp_work_kv_end(work);
    const int64_t count = step->batch->query_lengths[unit.request];
    (void)lane;
    for (uint32_t row = 0; row < ptowsp_attend_unit_rows(step, &unit); row++) {
        const uint32_t token = unit.query_start + row / step->config->group;
        const size_t at = step_row(step, &unit, row);
        const int64_t position = length - count + token, window = step->config->window;
        int64_t from = window ? position + 1 - window : 0;
        int64_t to = step->config->is_causal ? position + 1 : length;
        from = from > unit.kv_start ? from : unit.kv_start;
        to = to < end ? to : end;
        ptowsp_partial state;
        float acc[DIM];
        plain_row(r, step->queries + at * DIM, &unit, (uint32_t)from,
                  from < to ? (uint32_t)to : (uint32_t)from, &state, acc);
        if (slot == PTOWSP_NO_SLOT) {
            step->lse[at] = ptowsp_merge_finish(&state, acc, DIM, step->outputs + at * DIM);
        } else {
            ptowsp_attention_states(scratch, slot)[row] = state;
            memcpy(ptowsp_attention_accs(scratch, slot) + row * DIM, acc, sizeof acc);
        }
    }
}

// Merging a row of a tile is merging the parts of it.
static void plain_merge(const ptowsp_work *work, uint32_t lane, void *user) {
    const plain_run *r = (const plain_run *)user;
    const ptowsp_attend_step *step = r->made->job.step;
    const ptowsp_attention_scratch *scratch = &r->made->job.memory.scratch;
    const ptowsp_attend_unit unit = ptowsp_attend_unit_of(step, work);
    const uint32_t first = ptowsp_work_slot_first(work);
    (void)lane;
    for (uint32_t row = 0; row < ptowsp_attend_unit_rows(step, &unit); row++) {
        const size_t at = step_row(step, &unit, row);
        float again[DIM], *out = step->outputs + at * DIM;
        step->lse[at] =
            ptowsp_merge_partials(ptowsp_attention_states(scratch, first) + row,
                                  ptowsp_attention_accs(scratch, first) + row * DIM,
                                  ptowsp_work_slot_count(work), scratch->rows, DIM, out);
        const float lse = ptowsp_attention_merge_row(scratch, work, row, again);
        assert_memory_equal(&lse, &step->lse[at], sizeof lse);
        assert_memory_equal(again, out, sizeof again);
    }
}

// Runs the plain kernel over a plan: serially, as workers in turn, on the lanes of a context.
static void plain_job(const scene *c, const made_job *made, uint32_t way, bool is_stealing) {
    static const ptowsp_work_fn table[] = {plain_unit};
    plain_run r = {c, made};
    const ptowsp_attention_job job = {.plan = &made->plan,
                                      .table = table,
                                      .table_count = 1,
                                      .merge = plain_merge,
                                      .user = &r,
                                      .progress = made->job.memory.progress,
                                      .is_stealing = is_stealing};
    if (way == 0) {
        assert_ok(ptowsp_attention_run_serial(&job, NULL));
    } else if (way == 1) {
        ptowsp_context *context = test_lanes(4);
        assert_ok(ptowsp_attention_run(context, &job));
        ptowsp_context_destroy(context);
    } else {
        for (uint32_t worker = way; worker > 0; worker--) {
            ptowsp_attention_run_worker(&job, worker - 1, way);
        }
    }
}

// -- steps ----------------------------------------------------------------------------------------

// Plans and computes query tokens [first, end) of the sequence in one step. Nothing is written beyond
// the slots.
static uint64_t step_run(const scene *c, const ptowsp_attention_config *config, bool is_plain,
                         int32_t first, int32_t end) {
    const int32_t length = end, count = end - first;
    const uint32_t query_start = (uint32_t)first;
    const ptowsp_attention_batch batch = {&length, &count, 1};
    const size_t held = test_held.count;
    ptowsp_attend_step step = c->step;
    made_job made;
    step.batch = &batch;
    step.config = config;
    step.query_starts = &query_start;
    make_job(c, &step, false, &made);
    uint64_t bytes, parts = 0;
    assert_ok(ptowsp_attend_size(&made.limits, &bytes, NULL));
    unsigned char *memory = (unsigned char *)test_alloc(1, (size_t)bytes + GUARD);
    memset(memory, 0x5a, (size_t)bytes + GUARD);
    assert_ok(ptowsp_attend_place(&made.limits, memory, bytes, &made.job.memory, NULL));
    if (is_plain) {
        plain_job(c, &made, 0, false);
    } else {
        job_run(&made.job, (workers)(first % (WORKERS_SEVEN + 1)));
    }
    for (size_t i = 0; i < GUARD; i++) {
        assert_int_equal(memory[bytes + i], 0x5a);
    }
    for (uint32_t i = 0; i < made.plan.unit_count; i++) {
        parts += !ptowsp_work_is_whole(&made.plan.units[i]);
    }
    test_release_to(held);
    return parts;
}

// All tokens, `count` in a step, into new outputs. Returns the number of units that are parts.
static uint64_t group_by(scene *c, const ptowsp_attention_config *config, bool is_plain,
                         int32_t count) {
    uint64_t parts = 0;
    scene_outputs(c);
    for (int32_t first = 0; first < TOKENS; first += count) {
        parts +=
            step_run(c, config, is_plain, first, first + count < TOKENS ? first + count : TOKENS);
    }
    return parts;
}

TEST(attend_bits__rows_do_not_depend_on_how_queries_are_grouped) {
    static const uint32_t windows[] = {0, 100, 33, 170, 7};
    // Pages, chunks and grains; the plain kernel's blocks of 16 divide the grains of the first four.
    static const struct {
        uint32_t page, chunk, grain;
    } cuts[] = {{1, 128, 0}, {16, 64, 0}, {16, 128, 32}, {1, 96, 16}, {10, 100, 10}, {43, 86, 0}};
    static const int32_t counts[] = {TOKENS, 100, 64, 5, 3, 17};
    uint64_t random = test_seed(), parts = 0;
    for (uint32_t i = 0; TEST_ROUNDS(i, 30); i++) {
        const bool is_plain = i % 6 < 4 && test_random(&random) % 2;
        ptowsp_attention_config config = {.kv_head_count = 2,
                                          .group = 3,
                                          .lane_count = 1,
                                          .mode = PTOWSP_ATTENTION_INVARIANT,
                                          .is_causal = true,
                                          .window = windows[i % 5],
                                          .page_size = cuts[i % 6].page,
                                          .chunk = cuts[i % 6].chunk,
                                          .grain = cuts[i % 6].grain};
        scene c = {.layout = LAYOUT_SLOTS,
                   .key_dim = DIM,
                   .value_dim = DIM,
                   .magnitude = 4.0f,
                   .has_sinks = !is_plain && i % 2,
                   .has_slopes = !is_plain && i % 2,
                   .mask_words = !is_plain && i % 4 > 1 ? 14 : 0,
                   .s = {.kv = {TOKENS},
                         .queries = {TOKENS},
                         .batch = {.sequence_count = 1},
                         .config = config}};
        c.s.batch.query_lengths = c.s.queries;
        scene_make(&c, test_random(&random));
        parts += group_by(&c, &config, is_plain, 1);
        const float *decode = c.outputs, *decode_lse = c.lse;
        for (uint32_t k = 0; k < 2; k++) {
            const int32_t count = counts[(i + 3 * k) % 6];
            config.lane_count = test_random_u32(&random, 1, 9);
            config.tile_rows = test_random_u32(&random, 1, 90);
            parts += group_by(&c, &config, is_plain, count);
            for (size_t row = 0; row < (size_t)TOKENS * c.rows; row++) {
                if (memcmp(decode + row * DIM, c.outputs + row * DIM, DIM * sizeof(float)) != 0 ||
                    memcmp(&decode_lse[row], &c.lse[row], sizeof(float)) != 0) {
                    fail_msg("%s kernel, window %u, page %u, chunk %u, grain %u, %d queries a "
                             "step: row %u of %d differs from decode",
                             is_plain ? "plain" : "library's", config.window, config.page_size,
                             config.chunk, config.grain, count, (unsigned)row,
                             (int)(TOKENS * c.rows));
                }
            }
        }
        test_release();
    }
    assert_met(parts > 1000);
}

// In any batch, at any place in it, on any lanes, by any way of running, in both modes; and the numbers of double
// precision.
TEST(attend_bits__plain_kernels_have_those_of_the_sequence_alone) {
    uint64_t random = test_seed(), parts = 0;
    for (uint32_t i = 0; TEST_ROUNDS(i, 60); i++) {
        const bool is_invariant = i % 4 > 0;
        const uint32_t page = UINT32_C(1) << test_random_in(&random, 0, 5);
        scene c = {.layout = LAYOUT_SLOTS,
                   .key_dim = DIM,
                   .value_dim = DIM,
                   .scale = 1.0f,
                   .magnitude = 1.0f,
                   .s = {.batch = {.sequence_count = test_random_u32(&random, 1, SEQUENCES)},
                         .config = {.kv_head_count = test_random_u32(&random, 1, 3),
                                    .group = test_random_u32(&random, 1, 5),
                                    .lane_count = test_random_u32(&random, 1, 24),
                                    .mode = is_invariant ? PTOWSP_ATTENTION_INVARIANT
                                                         : PTOWSP_ATTENTION_BALANCED,
                                    .is_causal = test_random_in(&random, 0, 1),
                                    .page_size = page,
                                    .tile_rows = test_random_u32(&random, 1, 40)}}};
        ptowsp_attention_config *config = &c.s.config;
        uint32_t speeds[24];
        for (uint32_t lane = 0; lane < 24; lane++) {
            speeds[lane] = test_random_u32(&random, lane == 0, 3);
        }
        config->lane_speeds = test_random_in(&random, 0, 2) ? NULL : speeds;
        config->chunk = page * test_random_u32(&random, 1, 8) + (page == 1 ? 16 : 0);
        config->window = test_random_in(&random, 0, 1) ? 0 : test_random_u32(&random, 1, 500);
        c.s.batch.query_lengths = c.s.queries;
        for (uint32_t k = 0; k < c.s.batch.sequence_count; k++) {  // decode and prefill
            const int64_t kv = test_random_in(&random, 0, test_random_in(&random, 0, 2) ? 500 : 60);
            const int64_t queries = k % 2 ? test_random_in(&random, 0, 40) : 1;
            c.s.kv[k] = (int32_t)kv;
            c.s.queries[k] = (int32_t)(queries < kv ? queries : kv);
        }
        scene_make(&c, test_random(&random));
        made_job made;
        make_job(&c, &c.step, false, &made);
        parts += made.plan.slot_count;
        plain_job(&c, &made, 0, false);
        check_values(&c);
        const float *outputs = c.outputs, *lse = c.lse;
        for (uint32_t way = 1; way < 7; way++) {  // again in the same memory
            scene_outputs(&c);
            plain_job(&c, &made, way, way % 2 == test_random(&random) % 2);
            same_outputs(&c, outputs, lse);
        }
        scene_outputs(&c);
        for (uint32_t k = 0; k < c.s.batch.sequence_count && is_invariant; k++) {
            alone one;
            make_alone(&c, k, 0, queries_of(&c, k), &one);
            one.config.positions = NULL;
            make_job(&c, &one.step, false, &made);
            plain_job(&c, &made, 0, false);
        }
        if (is_invariant) {
            same_outputs(&c, outputs, lse);
        }
        test_release();
    }
    assert_met(parts > 100);
}

// The last number of a row may be -0: weights of a value below the least number round to it.
TEST(attend_bits__single_part_among_empty_ones_has_those_of_the_finished_row) {
    uint64_t random = test_seed();
    for (uint32_t round = 0; TEST_ROUNDS(round, 200); round++) {
        enum { PARTS = 70 };
        ptowsp_partial states[PARTS];
        float accs[PARTS * DIM], merged[DIM], finished[DIM];
        const uint32_t count = test_random_u32(&random, 1, PARTS);
        const uint32_t own = test_random_u32(&random, 0, count - 1);
        for (uint32_t i = 0; i < count; i++) {
            states[i].m = i == own ? 20.0f * some(&random) : -INFINITY;
            states[i].l = i == own ? 1.5f + some(&random) : 0.0f;
            for (uint32_t d = 0; d < DIM; d++) {
                accs[i * DIM + d] = d % 3 ? some(&random) : d % 2 ? -0.0f : 0.0f;
            }
        }
        const float lse = ptowsp_merge_partials(states, accs, count, 1, DIM, merged);
        const float own_lse = ptowsp_merge_finish(&states[own], accs + own * DIM, DIM, finished);
        assert_memory_equal(merged, finished, sizeof merged);
        assert_memory_equal(&lse, &own_lse, sizeof lse);
    }
}
