// The bits of rows under INVARIANT plans, over all ways to group the queries of a sequence: one prefill,
// prefill in chunks, verification of drafts, and decode, on any lanes, tiles and pages. Two kernels: the
// library's, and a plain one whose blocks begin where a unit does, as those of devices do.

#include "attend_scene.h"

enum {
    TOKENS = 430,
    HEADS = 2,
    GROUP = 3,
    DIM = 32,
    ROWS = HEADS * GROUP,
    BLOCK = 16,
    GUARD = 4096
};

typedef struct plain_run {
    const scene *c;
    const made_job *made;
} plain_run;

// -- the plain kernel -----------------------------------------------------------------------------

// A token's key (0) or value (1).
static const float *row_of(const scene *c, int is_value, uint32_t token, uint32_t head) {
    return (const float *)(const void *)c->cache[is_value] +
           place_of(c, &c->kv.key_strides, 0, token, head);
}

// A row over [from, to) of a unit that begins at `start`: online softmax in blocks from `start` on.
static void plain_row(const scene *c, const float *query, uint32_t head, uint32_t start,
                      uint32_t from, uint32_t to, ptowsp_partial *state, float *acc) {
    state->m = -INFINITY;
    state->l = 0;
    memset(acc, 0, DIM * sizeof *acc);
    for (uint32_t block = start; block < to; block += BLOCK) {
        const uint32_t begin = block > from ? block : from;
        const uint32_t end = block + BLOCK < to ? block + BLOCK : to;
        float scores[BLOCK], m = state->m, l = 0, sums[DIM] = {0};
        for (uint32_t t = begin; t < end; t++) {
            const float *key = row_of(c, 0, t, head);
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
            const float *value = row_of(c, 1, t, head);
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

static void plain_unit(const ptowsp_work *work, uint32_t lane, void *user) {
    const plain_run *r = (const plain_run *)user;
    const ptowsp_attend_step *step = r->made->job.step;
    const ptowsp_attention_scratch *scratch = &r->made->job.memory.scratch;
    const ptowsp_attend_unit unit = ptowsp_attend_unit_of(step, work);
    const uint32_t slot = ptowsp_work_slot(work), end = unit.kv_start + unit.kv_len;
    const int64_t length = step->batch->kv_lengths[0], count = step->batch->query_lengths[0];
    (void)lane;
    for (uint32_t row = 0; row < ptowsp_attend_unit_rows(step, &unit); row++) {
        const uint32_t token = unit.query_start + row / GROUP, head = unit.kv_head;
        const size_t at = (step->query_starts[0] + token) * ROWS + head * GROUP + row % GROUP;
        const int64_t position = length - count + token, window = step->config->window;
        int64_t from = window ? position + 1 - window : 0, to = position + 1;
        from = from > unit.kv_start ? from : unit.kv_start;
        to = to < end ? to : end;
        ptowsp_partial state;
        float acc[DIM];
        plain_row(r->c, step->queries + at * DIM, head, unit.kv_start, (uint32_t)from,
                  from < to ? (uint32_t)to : (uint32_t)from, &state, acc);
        if (slot == PTOWSP_NO_SLOT) {
            step->lse[at] = ptowsp_merge_finish(&state, acc, DIM, step->outputs + at * DIM);
        } else {
            ptowsp_attention_states(scratch, slot)[row] = state;
            memcpy(ptowsp_attention_accs(scratch, slot) + row * DIM, acc, sizeof acc);
        }
    }
}

static void plain_merge(const ptowsp_work *work, uint32_t lane, void *user) {
    (void)lane;
    assert_ok(ptowsp_attend_merge(&((const plain_run *)user)->made->job, work));
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
        const ptowsp_work_fn table[] = {plain_unit};
        plain_run r = {c, &made};
        const ptowsp_attention_job job = {.plan = &made.plan,
                                          .table = table,
                                          .table_count = 1,
                                          .merge = plain_merge,
                                          .user = &r,
                                          .progress = made.job.memory.progress};
        assert_ok(ptowsp_attention_run_serial(&job, NULL));
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
        ptowsp_attention_config config = {.kv_head_count = HEADS,
                                          .group = GROUP,
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
            for (size_t row = 0; row < (size_t)TOKENS * ROWS; row++) {
                if (memcmp(decode + row * DIM, c.outputs + row * DIM, DIM * sizeof(float)) != 0 ||
                    memcmp(&decode_lse[row], &c.lse[row], sizeof(float)) != 0) {
                    fail_msg("%s kernel, window %u, page %u, chunk %u, grain %u, %d queries a "
                             "step: row %u of %d differs from decode",
                             is_plain ? "plain" : "library's", config.window, config.page_size,
                             config.chunk, config.grain, count, (unsigned)row, TOKENS * ROWS);
                }
            }
        }
        test_release();
    }
    assert_met(parts > 1000);
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
