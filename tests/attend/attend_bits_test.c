// The bits of rows under INVARIANT plans, over all ways to group the queries of a sequence: one prefill,
// prefill in chunks, verification of drafts, and decode, on any lanes, tiles and pages. Two kernels: the
// library's, and a plain one whose blocks begin where a unit does, as those of devices do.

#include "test.h"

#include <math.h>

enum {
    TOKENS = 430,
    MASK_WORDS = 14,
    POOL = TOKENS + 64,
    HEADS = 2,
    GROUP = 3,
    DIM = 32,
    ROWS = HEADS * GROUP,
    BLOCK = 16,
    WORKERS = 5,
    GUARD = 4096
};

typedef struct world {
    float keys[POOL * HEADS * DIM], values[POOL * HEADS * DIM];  // [page][slot][head][dim]
    float queries[TOKENS * ROWS * DIM];
    uint32_t pages[TOKENS];
    float sinks[ROWS], slopes[ROWS];
    bool has_sinks, has_mask;
    uint32_t mask[TOKENS * MASK_WORDS];  // of each query token, over all KV
    ptowsp_attend_cache kv;
} world;

typedef struct result {
    float outputs[TOKENS * ROWS * DIM], lse[TOKENS * ROWS];
} result;

typedef struct run {
    const world *w;
    ptowsp_attend_step step;
    ptowsp_attend_job job;
    ptowsp_attention_scratch scratch;  // of the job
} run;

static float random_unit(uint64_t *state) {
    return (float)test_random_in(state, -1000000, 1000000) / 1000000.0f;
}

static void world_fill(world *w, uint64_t *random, uint32_t page_size) {
    for (uint32_t i = 0; i < POOL * HEADS * DIM; i++) {
        w->keys[i] = random_unit(random);
        w->values[i] = random_unit(random);
    }
    for (uint32_t i = 0; i < TOKENS * ROWS * DIM; i++) {
        w->queries[i] = 4.0f * random_unit(random);
    }
    uint32_t count = (TOKENS + page_size - 1) / page_size;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = (uint32_t)test_random_in(random, 0, i);
        w->pages[i] = w->pages[k];
        w->pages[k] = i;
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        w->sinks[i] = 3.0f * random_unit(random);
        w->slopes[i] = 0.01f * (float)(i + 1);
    }
    for (uint32_t i = 0; i < TOKENS * MASK_WORDS; i++) {
        w->mask[i] = (uint32_t)(test_random(random) | (i % 3 ? 0 : UINT32_MAX));
    }
    memset(&w->kv, 0, sizeof w->kv);
    w->kv.keys = w->keys;
    w->kv.values = w->values;
    const ptowsp_attend_strides strides = {(size_t)page_size * HEADS * DIM, HEADS * DIM, DIM};
    w->kv.key_strides = w->kv.value_strides = strides;
    w->kv.key_dim = w->kv.value_dim = DIM;
    w->kv.page_size = page_size;
}

// -- the plain kernel -----------------------------------------------------------------------------

// A row over [from, to) of a unit that begins at `start`: online softmax in blocks from `start` on.
static void plain_row(const world *w, const float *query, uint32_t head, uint32_t start,
                      uint32_t from, uint32_t to, ptowsp_partial *state, float *acc) {
    state->m = -INFINITY;
    state->l = 0;
    memset(acc, 0, DIM * sizeof *acc);
    for (uint32_t block = start; block < to; block += BLOCK) {
        float scores[BLOCK], m = state->m, l = 0, sums[DIM] = {0};
        for (uint32_t i = 0; i < BLOCK; i++) {
            const uint32_t t = block + i;
            scores[i] = -INFINITY;
            if (t >= from && t < to) {
                const size_t row =
                    (size_t)w->pages[t / w->kv.page_size] * w->kv.page_size + t % w->kv.page_size;
                const float *key = w->keys + (row * HEADS + head) * DIM;
                scores[i] = 0;
                for (uint32_t d = 0; d < DIM; d++) {
                    scores[i] += query[d] * key[d];
                }
                m = scores[i] > m ? scores[i] : m;
            }
        }
        if (m == -INFINITY) {
            continue;
        }
        for (uint32_t i = 0; i < BLOCK; i++) {
            const uint32_t t = block + i;
            if (t < from || t >= to) {
                continue;
            }
            const float weight = expf(scores[i] - m);
            const size_t row =
                (size_t)w->pages[t / w->kv.page_size] * w->kv.page_size + t % w->kv.page_size;
            l += weight;
            for (uint32_t d = 0; d < DIM; d++) {
                sums[d] += weight * w->values[(row * HEADS + head) * DIM + d];
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

static void plain_unit(const run *r, const ptowsp_work *work, const ptowsp_attend_unit *unit) {
    const uint32_t slot = ptowsp_work_slot(work), head = unit->kv_head;
    const uint32_t end = unit->kv_start + unit->kv_len;
    const int64_t length = r->step.batch->kv_lengths[0], count = r->step.batch->query_lengths[0];
    for (uint32_t row = 0; row < ptowsp_attend_unit_rows(&r->step, unit); row++) {
        const uint32_t token = unit->query_start + row / GROUP, at = head * GROUP + row % GROUP;
        const int64_t position = length - count + token;
        int64_t from = r->step.config->window ? position + 1 - r->step.config->window : 0;
        int64_t to = position + 1;
        from = from > unit->kv_start ? from : unit->kv_start;
        to = to < end ? to : end;
        ptowsp_partial state;
        float acc[DIM];
        plain_row(r->w, r->step.queries + (token * ROWS + at) * DIM, head, unit->kv_start,
                  (uint32_t)from, from < to ? (uint32_t)to : (uint32_t)from, &state, acc);
        if (slot == PTOWSP_NO_SLOT) {
            r->step.lse[token * ROWS + at] =
                ptowsp_merge_finish(&state, acc, DIM, r->step.outputs + (token * ROWS + at) * DIM);
        } else {
            ptowsp_attention_states(&r->scratch, slot)[row] = state;
            memcpy(ptowsp_attention_accs(&r->scratch, slot) + row * DIM, acc, sizeof acc);
        }
    }
}

// -- steps ----------------------------------------------------------------------------------------

static void compute(const ptowsp_work *work, uint32_t lane, void *user) {
    const run *r = (const run *)user;
    const ptowsp_attend_unit unit = ptowsp_attend_unit_of(&r->step, work);
    (void)lane;
    plain_unit(r, work, &unit);
}

static void merge(const ptowsp_work *work, uint32_t lane, void *user) {
    const run *r = (const run *)user;
    (void)lane;
    assert_int_equal(ptowsp_attend_merge(&r->job, work), PTOWSP_OK);
}

// With the plain kernel; or as so many workers, the last one first.
static void run_all(run *r, bool is_plain, uint32_t worker_count) {
    if (is_plain) {
        const ptowsp_work_fn table[] = {compute};
        const ptowsp_attention_job job = {r->step.plan,           table, 1,    merge, r,
                                          r->job.memory.progress, false, NULL, NULL,  NULL};
        assert_int_equal(ptowsp_attention_run_serial(&job, NULL), PTOWSP_OK);
        return;
    }
    for (uint32_t worker = worker_count; worker > 0; worker--) {
        assert_int_equal(ptowsp_attend_run_worker(&r->job, worker - 1, worker_count, NULL),
                         PTOWSP_OK);
    }
}

// Plans and computes query tokens [first, end) of the sequence in one step. Nothing is written beyond
// the slots.
static void step_run(const world *w, ptowsp_attention_config config, bool is_plain, int32_t first,
                     int32_t end, result *out, uint64_t *parts) {
    const int32_t length = end, count = end - first;
    const ptowsp_attention_batch batch = {&length, &count, 1};
    const uint32_t query_start = 0;
    ptowsp_attention_sizes sizes;
    ptowsp_attention_plan plan;
    assert_int_equal(ptowsp_attention_size(&batch, &config, &sizes, NULL), PTOWSP_OK);
    void *block = calloc(1, (size_t)sizes.block_bytes);
    assert_non_null(block);
    assert_int_equal(ptowsp_attention_place(&sizes, block, sizes.block_bytes, &plan), PTOWSP_OK);
    assert_int_equal(ptowsp_attention_generate(&batch, &config, &plan, NULL), PTOWSP_OK);
    run r = {.w = w};
    for (uint32_t i = 0; i < plan.unit_count; i++) {
        *parts += !ptowsp_work_is_whole(&plan.units[i]);
    }
    const ptowsp_attend_limits limits = {sizes, 0, DIM, WORKERS};
    uint64_t bytes;
    assert_int_equal(ptowsp_attend_size(&limits, &bytes, NULL), PTOWSP_OK);
    unsigned char *memory = (unsigned char *)malloc((size_t)bytes + GUARD);
    assert_non_null(memory);
    memset(memory, 0x5a, (size_t)bytes + GUARD);
    assert_int_equal(ptowsp_attend_place(&limits, memory, bytes, &r.job.memory, NULL), PTOWSP_OK);
    r.scratch = r.job.memory.scratch;
    r.job.cache = &w->kv;
    r.job.step = &r.step;
    r.step.batch = &batch;
    r.step.config = &config;
    r.step.plan = &plan;
    r.step.query_starts = &query_start;
    r.step.pages = w->pages;
    r.step.sinks = w->has_sinks ? w->sinks : NULL;
    r.step.mask = w->has_mask ? w->mask + first * MASK_WORDS : NULL;
    r.step.mask_stride = MASK_WORDS;
    r.step.slopes = w->has_sinks ? w->slopes : NULL;
    r.step.queries = w->queries + first * ROWS * DIM;
    r.step.outputs = out->outputs + first * ROWS * DIM;
    r.step.lse = out->lse + first * ROWS;
    r.step.query_token_stride = r.step.output_token_stride = ROWS * DIM;
    r.step.query_head_stride = r.step.output_head_stride = DIM;
    r.step.lse_token_stride = ROWS;
    r.step.lse_head_stride = 1;
    assert_int_equal(ptowsp_attend_check(&r.job, NULL), PTOWSP_OK);
    run_all(&r, is_plain, (uint32_t)(1 + first % WORKERS));
    for (size_t i = 0; i < GUARD; i++) {
        assert_int_equal(memory[bytes + i], 0x5a);
    }
    free(block);
    free(memory);
}

// All tokens, `count` in a step.
static void group_by(const world *w, const ptowsp_attention_config *config, bool is_plain,
                     int32_t count, result *out, uint64_t *parts) {
    memset(out, 0xff, sizeof *out);  // NaN where nothing is written
    for (int32_t first = 0; first < TOKENS; first += count) {
        const int32_t end = first + count < TOKENS ? first + count : TOKENS;
        step_run(w, *config, is_plain, first, end, out, parts);
    }
}

TEST(attend_bits__rows_do_not_depend_on_how_queries_are_grouped) {
    static const uint32_t windows[] = {0, 100, 33, 170, 7};
    // Pages, chunks and grains; the plain kernel's blocks of 16 divide the grains of the first four.
    static const struct {
        uint32_t page, chunk, grain;
    } cuts[] = {{1, 128, 0}, {16, 64, 0}, {16, 128, 32}, {1, 96, 16}, {10, 100, 10}, {43, 86, 0}};
    static const int32_t counts[] = {TOKENS, 100, 64, 5, 3, 17};
    uint64_t random = test_seed(), parts = 0, differ = 0;
    world *w = (world *)malloc(sizeof *w);
    result *decode = (result *)malloc(sizeof *decode), *other = (result *)malloc(sizeof *other);
    assert_true(w && decode && other);
    for (uint32_t i = 0; TEST_ROUNDS(i, 30); i++) {
        ptowsp_attention_config config = {.kv_head_count = HEADS,
                                          .group = GROUP,
                                          .mode = PTOWSP_ATTENTION_INVARIANT,
                                          .is_causal = true,
                                          .window = windows[i % 5],
                                          .page_size = cuts[i % 6].page,
                                          .chunk = cuts[i % 6].chunk,
                                          .grain = cuts[i % 6].grain};
        const bool is_plain = i % 6 < 4 && test_random(&random) % 2;
        config.lane_count = 1;
        world_fill(w, &random, config.page_size);
        w->has_sinks = !is_plain && i % 2;
        w->has_mask = !is_plain && i % 4 > 1;
        w->kv.type = PTOWSP_ATTEND_F32;
        group_by(w, &config, is_plain, 1, decode, &parts);
        for (uint32_t k = 0; k < 2; k++) {
            config.lane_count = (uint32_t)test_random_in(&random, 1, 9);
            config.tile_rows = (uint32_t)test_random_in(&random, 1, 90);
            group_by(w, &config, is_plain, counts[(i + 3 * k) % 6], other, &parts);
            for (uint32_t row = 0; row < TOKENS * ROWS; row++) {
                differ += memcmp(decode->outputs + (size_t)row * DIM,
                                 other->outputs + (size_t)row * DIM, DIM * sizeof(float)) != 0 ||
                          memcmp(&decode->lse[row], &other->lse[row], sizeof(float)) != 0;
            }
            if (differ > 0) {
                fail_msg("%s kernel, window %u, page %u, chunk %u, grain %u, %d queries a step: "
                         "%u of %d rows differ from decode",
                         is_plain ? "plain" : "library's", config.window, config.page_size,
                         config.chunk, config.grain, counts[(i + 3 * k) % 6], (unsigned)differ,
                         TOKENS * ROWS);
            }
        }
    }
    assert_met(parts > 1000);
    free(w);
    free(decode);
    free(other);
}

// The last number of a row may be -0: weights of a value below the least number round to it.
TEST(attend_bits__single_part_among_empty_ones_has_those_of_the_finished_row) {
    uint64_t random = test_seed();
    for (uint32_t round = 0; TEST_ROUNDS(round, 200); round++) {
        enum { PARTS = 70 };
        ptowsp_partial states[PARTS];
        float accs[PARTS * DIM], merged[DIM], finished[DIM];
        const uint32_t count = (uint32_t)test_random_in(&random, 1, PARTS);
        const uint32_t own = (uint32_t)test_random_in(&random, 0, count - 1);
        for (uint32_t i = 0; i < count; i++) {
            states[i].m = i == own ? 20.0f * random_unit(&random) : -INFINITY;
            states[i].l = i == own ? 1.5f + random_unit(&random) : 0.0f;
            for (uint32_t d = 0; d < DIM; d++) {
                accs[i * DIM + d] = d % 3 ? random_unit(&random) : d % 2 ? -0.0f : 0.0f;
            }
        }
        const float lse = ptowsp_merge_partials(states, accs, count, 1, DIM, merged);
        const float own_lse = ptowsp_merge_finish(&states[own], accs + own * DIM, DIM, finished);
        assert_memory_equal(merged, finished, sizeof merged);
        assert_memory_equal(&lse, &own_lse, sizeof lse);
    }
}
