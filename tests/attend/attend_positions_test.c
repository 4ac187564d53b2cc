// Attention over plans with positions: values against softmax in double precision over all pairs that
// are seen, with masks, slopes and sinks; bits that depend neither on workers nor, in INVARIANT mode, on
// neighbours and on how queries are grouped; and tokens that nobody sees.

#include "positions_sample.h"

#include <math.h>
#include <stdlib.h>

enum { DIM = 24, HEADS = 3, TOKENS = 1300, QUERIES = 120, MASK_WORDS = 7, ROWS = 130 };

// A step of attention. Sequences have their KV one after another, in pages that are shuffled.
typedef struct step {
    positions_sample s;
    float keys[TOKENS * HEADS * DIM], values[TOKENS * HEADS * DIM];  // by token of the batch
    uint16_t halves[2][TOKENS * 2 * HEADS * DIM];                    // the cache, of f16
    float floats[2][TOKENS * 2 * HEADS * DIM];                       // or f32
    float queries[QUERIES * ROWS * DIM], outputs[QUERIES * ROWS * DIM];
    float lse[QUERIES * ROWS], sinks[ROWS], slopes[ROWS];
    uint32_t mask[QUERIES * MASK_WORDS];
    uint32_t kv_begin[POSITIONS_SEQUENCES], query_starts[POSITIONS_SEQUENCES];
    uint32_t pages[2 * TOKENS], page_starts[POSITIONS_SEQUENCES];
    bool is_half;
    ptowsp_attend_cache cache;
    ptowsp_attend_step step;
} step;

static const char *explain(const ptowsp_plan_info *info) {
    static char text[200];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_plan_explain(info, ptowsp_output_to_buffer(&buffer));
    return text;
}

static float some_float(uint64_t *state) {
    return (float)test_random_in(state, -1000, 1000) / 1000.0f;
}

static uint32_t queries_of(const positions_sample *s, uint32_t i) {
    return s->batch.query_lengths ? (uint32_t)s->queries[i] : 1;
}

// Writes the KV into pages of the configuration's tokens, in reversed order.
static void fill_cache(step *b) {
    const uint32_t page = b->s.config.page_size, heads = b->s.config.kv_head_count;
    uint32_t pages = 0, next = 0;
    for (uint32_t i = 0; i < b->s.batch.sequence_count; i++) {
        pages += ((uint32_t)b->s.kv[i] + page - 1) / page;
    }
    for (uint32_t i = 0; i < b->s.batch.sequence_count; i++) {
        b->page_starts[i] = next;
        for (uint32_t t = 0; t < (uint32_t)b->s.kv[i]; t++) {
            if (t % page == 0) {
                b->pages[next] = pages - 1 - next;
                next++;
            }
            const uint32_t slot = b->pages[next - 1] * page + t % page;
            for (uint32_t e = 0; e < heads * DIM; e++) {
                const size_t to = (size_t)slot * heads * DIM + e;
                const size_t from = (size_t)(b->kv_begin[i] + t) * heads * DIM + e;
                b->floats[0][to] = b->keys[from];
                b->floats[1][to] = b->values[from];
                b->halves[0][to] = ptowsp_f16_from_f32(b->keys[from]);
                b->halves[1][to] = ptowsp_f16_from_f32(b->values[from]);
            }
        }
    }
}

// Sets the library's structures, over the sample as it is.
static void settle(step *b) {
    const size_t heads = b->s.config.kv_head_count, rows = heads * b->s.config.group;
    const ptowsp_attend_strides strides = {b->s.config.page_size * heads * DIM, heads * DIM, DIM};
    b->s.batch.kv_lengths = b->s.kv;
    b->cache.keys = b->is_half ? (void *)b->halves[0] : (void *)b->floats[0];
    b->cache.values = b->is_half ? (void *)b->halves[1] : (void *)b->floats[1];
    b->cache.key_strides = b->cache.value_strides = strides;
    b->cache.type = b->is_half ? PTOWSP_ATTEND_F16 : PTOWSP_ATTEND_F32;
    b->cache.key_dim = b->cache.value_dim = DIM;
    b->cache.page_size = b->s.config.page_size;
    b->step.batch = &b->s.batch;
    b->step.config = &b->s.config;
    b->step.queries = b->queries;
    b->step.outputs = b->outputs;
    b->step.lse = b->lse;
    b->step.query_token_stride = b->step.output_token_stride = rows * DIM;
    b->step.query_head_stride = b->step.output_head_stride = DIM;
    b->step.lse_token_stride = rows;
    b->step.lse_head_stride = 1;
    b->step.query_starts = b->query_starts;
    b->step.pages = b->pages;
    b->step.page_starts = b->page_starts;
}

static step *make_step(uint64_t *state) {
    step *b = (step *)calloc(1, sizeof *b);
    assert_non_null(b);
    positions_make(&b->s, test_random_in(state, 0, 1) ? 200 : 40, 18, state);
    b->s.config.tile_rows = (uint32_t)test_random_in(state, 1, 40);
    if (test_random_in(state, 0, 15) == 0) {  // as under MLA: chunks of rows begin inside a group
        b->s.config.kv_head_count = 1;
        b->s.config.group = ROWS;
        b->s.config.tile_rows = (uint32_t)test_random_in(state, 1, 4) * ROWS;
    }
    const uint32_t rows = b->s.config.kv_head_count * b->s.config.group;
    uint32_t tokens = 0, queries = 0;
    for (uint32_t i = 0; i < b->s.batch.sequence_count; i++) {
        b->kv_begin[i] = tokens;
        b->query_starts[i] = queries;
        tokens += (uint32_t)b->s.kv[i];
        queries += queries_of(&b->s, i);
    }
    b->is_half = test_random_in(state, 0, 1);
    for (uint32_t i = 0; i < tokens * HEADS * DIM; i++) {
        b->keys[i] = some_float(state);
        b->values[i] = some_float(state);
        if (b->is_half) {
            b->keys[i] = ptowsp_f32_from_f16(ptowsp_f16_from_f32(b->keys[i]));
            b->values[i] = ptowsp_f32_from_f16(ptowsp_f16_from_f32(b->values[i]));
        }
    }
    for (uint32_t i = 0; i < queries * rows * DIM; i++) {
        b->queries[i] = 3.0f * some_float(state);
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        b->sinks[i] = i % 3 ? some_float(state) : -INFINITY;
        b->slopes[i] = 0.05f * (some_float(state) + 1.0f);
    }
    for (uint32_t i = 0; i < queries * MASK_WORDS; i++) {
        b->mask[i] = (uint32_t)test_random(state) | (uint32_t)test_random(state);
    }
    b->step.sinks = test_random_in(state, 0, 2) ? NULL : b->sinks;
    b->step.slopes = test_random_in(state, 0, 2) ? NULL : b->slopes;
    b->step.mask = test_random_in(state, 0, 2) ? NULL : b->mask;
    b->step.mask_stride = MASK_WORDS;
    fill_cache(b);
    settle(b);
    return b;
}

// Plans and runs a step, by so many workers.
static void run(step *b, uint32_t worker_count, bool is_stealing) {
    ptowsp_attention_sizes sizes;
    ptowsp_attention_plan plan;
    ptowsp_plan_info info;
    assert_int_equal(ptowsp_attention_size(&b->s.batch, &b->s.config, &sizes, NULL), PTOWSP_OK);
    void *block = malloc((size_t)sizes.block_bytes);
    assert_int_equal(ptowsp_attention_place(&sizes, block, sizes.block_bytes, &plan), PTOWSP_OK);
    assert_int_equal(ptowsp_attention_generate(&b->s.batch, &b->s.config, &plan, NULL), PTOWSP_OK);
    b->step.plan = &plan;
    ptowsp_attend_job job = {.cache = &b->cache, .step = &b->step, .is_stealing = is_stealing};
    const ptowsp_attend_limits limits = {sizes, 0, DIM, worker_count};
    uint64_t bytes;
    assert_int_equal(ptowsp_attend_size(&limits, &bytes, NULL), PTOWSP_OK);
    void *memory = malloc((size_t)bytes);
    assert_int_equal(ptowsp_attend_place(&limits, memory, bytes, &job.memory, NULL), PTOWSP_OK);
    memset(b->outputs, 0xaa, sizeof b->outputs);
    memset(b->lse, 0xaa, sizeof b->lse);
    if (ptowsp_attend_check(&job, &info) != PTOWSP_OK) {
        fail_msg("%s", explain(&info));
    }
    for (uint32_t i = 0; i < worker_count; i++) {
        const uint32_t worker = worker_count - 1 - i;
        assert_int_equal(ptowsp_attend_run_worker(&job, worker, worker_count, NULL), PTOWSP_OK);
    }
    free(memory);
    free(block);
}

// -- values ---------------------------------------------------------------------------------------

static double position_of(const int32_t *first, const int32_t *stride, uint32_t i, int64_t standard,
                          int64_t at) {
    return (double)((first ? first[i] : standard) + at * (stride ? stride[i] : 1));
}

// The score of a token, or -INFINITY if it is not seen.
static double score_of(const step *b, uint32_t i, uint32_t j, uint32_t head, uint32_t t) {
    const ptowsp_attention_positions *p = &b->s.positions;
    const uint32_t group = b->s.config.group, heads = b->s.config.kv_head_count;
    const uint32_t token = b->query_starts[i] + j;
    if (!positions_sees(&b->s, i, j, t) ||
        (b->step.mask && !(b->mask[token * MASK_WORDS + t / 32] >> t % 32 & 1))) {
        return -INFINITY;
    }
    const float *query = b->queries + ((size_t)token * heads * group + head) * DIM;
    const float *key = b->keys + ((size_t)(b->kv_begin[i] + t) * heads + head / group) * DIM;
    double score = 0;
    for (uint32_t d = 0; d < DIM; d++) {
        score += (double)query[d] * (double)key[d];
    }
    score *= (double)(1.0f / (float)sqrt(DIM));
    if (b->step.slopes) {
        const int64_t last = b->s.kv[i] - (int64_t)queries_of(&b->s, i);
        score -= (double)b->slopes[head] *
                 fabs(position_of(p->query_first, p->query_stride, i, last, j) -
                      position_of(p->kv_first, p->kv_stride, i, 0, t));
    }
    return score;
}

static void check_row(const step *b, uint32_t i, uint32_t j, uint32_t head) {
    const uint32_t kv = (uint32_t)b->s.kv[i], heads = b->s.config.kv_head_count;
    const size_t row = (size_t)(b->query_starts[i] + j) * heads * b->s.config.group + head;
    double most = b->step.sinks ? (double)b->sinks[head] : -INFINITY, sum = 0, out[DIM] = {0};
    for (uint32_t t = 0; t < kv; t++) {
        const double score = score_of(b, i, j, head, t);
        most = score > most ? score : most;
    }
    if (most == -INFINITY) {
        assert_true(b->lse[row] == -INFINITY);
        for (uint32_t d = 0; d < DIM; d++) {
            assert_true(b->outputs[row * DIM + d] == 0.0f);
        }
        return;
    }
    sum = b->step.sinks ? exp((double)b->sinks[head] - most) : 0;
    for (uint32_t t = 0; t < kv; t++) {
        const double weight = exp(score_of(b, i, j, head, t) - most);
        const size_t at = (size_t)(b->kv_begin[i] + t) * heads + head / b->s.config.group;
        sum += weight;
        for (uint32_t d = 0; d < DIM && weight > 0; d++) {
            out[d] += weight * (double)b->values[at * DIM + d];
        }
    }
    assert_true(fabs((double)b->lse[row] - (most + log(sum))) < 2e-5);
    for (uint32_t d = 0; d < DIM; d++) {
        assert_true(fabs((double)b->outputs[row * DIM + d] - out[d] / sum) < 2e-5);
    }
}

TEST(attend__values_with_positions_are_softmax_over_what_is_seen) {
    uint64_t state = test_seed();
    for (uint32_t round = 0; TEST_ROUNDS(round, 400); round++) {
        step *b = make_step(&state);
        for (size_t e = 0; e < sizeof b->outputs / sizeof *b->outputs; e++) {
            b->outputs[e] = NAN;
        }
        run(b, (uint32_t)test_random_in(&state, 1, 5), test_random_in(&state, 0, 1));
        for (uint32_t i = 0; i < b->s.batch.sequence_count; i++) {
            const bool has_rows = b->s.kv[i] > 0 || positions_are_there(&b->s);
            for (uint32_t j = 0; has_rows && j < queries_of(&b->s, i); j++) {
                for (uint32_t head = 0; head < b->s.config.kv_head_count * b->s.config.group;
                     head++) {
                    check_row(b, i, j, head);
                }
            }
        }
        free(b);
    }
}

// A tree of 31 drafts, each with two behind it, after 80 tokens and under a window of 40 positions.
enum { CONTEXT = 80, DRAFTS = 31, WINDOW = 40 };

static int32_t depth_of(int32_t draft) {
    return draft == 0 ? 0 : 1 + depth_of((draft - 1) / 2);
}

static bool tree_sees(int32_t draft, int32_t token) {
    if (token < CONTEXT) {
        return token > CONTEXT + depth_of(draft) - WINDOW;
    }
    return draft == token - CONTEXT || (draft > 0 && tree_sees((draft - 1) / 2, token));
}

// The plan has the superset that section 9 says, and bits from token CONTEXT - before on.
TEST(attend__tree_under_a_window_is_a_superset_and_a_mask) {
    uint64_t state = test_seed() + 5;
    step *b = make_step(&state);
    memset(&b->s.config, 0, sizeof b->s.config);
    memset(&b->s.positions, 0, sizeof b->s.positions);
    b->s.config.kv_head_count = b->s.config.group = b->s.config.page_size = 1;
    b->s.config.lane_count = 3;
    b->s.config.is_causal = true;
    b->s.config.positions = &b->s.positions;
    b->s.positions.sequence_count = b->s.batch.sequence_count = 1;
    b->s.batch.query_lengths = b->s.queries;
    b->s.kv[0] = CONTEXT + DRAFTS;
    b->s.queries[0] = DRAFTS;
    b->s.before[0] = WINDOW - 1 + 30 - 4;  // the last draft has depth 4
    b->s.positions.before = b->s.before;
    const int32_t start = CONTEXT - (int32_t)b->s.before[0];
    const uint32_t mask_start = (uint32_t)start;
    memset(b->mask, 0, sizeof b->mask);
    for (int32_t j = 0; j < DRAFTS; j++) {
        for (int32_t t = start; t < CONTEXT + DRAFTS; t++) {
            const uint32_t bit = (uint32_t)(t - start);
            b->mask[j * MASK_WORDS + (int32_t)bit / 32] |= (uint32_t)tree_sees(j, t) << bit % 32;
        }
    }
    b->step.mask = b->mask;
    b->step.mask_starts = &mask_start;
    b->step.sinks = b->step.slopes = NULL;
    fill_cache(b);
    settle(b);
    run(b, 2, false);
    for (int32_t j = 0; j < DRAFTS; j++) {  // a mask from token 0 on, for the reference
        memset(b->mask + j * MASK_WORDS, 0, MASK_WORDS * sizeof *b->mask);
        for (int32_t t = 0; t < CONTEXT + DRAFTS; t++) {
            assert_true(!tree_sees(j, t) || positions_sees(&b->s, 0, j, t));
            b->mask[j * MASK_WORDS + t / 32] |= (uint32_t)tree_sees(j, t) << t % 32;
        }
        check_row(b, 0, (uint32_t)j, 0);
    }
    free(b);
}

// -- bits -----------------------------------------------------------------------------------------

TEST(attend__bits_with_positions_do_not_depend_on_workers) {
    uint64_t state = test_seed() + 1;
    for (uint32_t round = 0; TEST_ROUNDS(round, 200); round++) {
        step *b = make_step(&state);
        run(b, 1, false);
        step *other = (step *)malloc(sizeof *other);
        memcpy(other, b, sizeof *other);
        run(b, (uint32_t)test_random_in(&state, 2, 7), test_random_in(&state, 0, 1));
        assert_memory_equal(b->outputs, other->outputs, sizeof b->outputs);
        assert_memory_equal(b->lse, other->lse, sizeof b->lse);
        free(other);
        free(b);
    }
}

// Runs query tokens [first, first + count) of one sequence alone, in other tiles, on other lanes; the
// rows of it have to be those of `whole`.
static void check_alone(const step *whole, uint32_t i, uint32_t first, uint32_t count,
                        uint64_t *state) {
    step *b = (step *)malloc(sizeof *b);
    memcpy(b, whole, sizeof *b);
    positions_sample *s = &b->s;
    const size_t rows = s->config.kv_head_count * s->config.group;
    const int64_t last = s->kv[i] - (int64_t)queries_of(s, i);
    const bool has_first = whole->s.positions.query_first;
    const int32_t stride = whole->s.positions.query_stride ? s->query_stride[i] : 1;
    s->query_first[0] = (int32_t)((has_first ? s->query_first[i] : last) + (int32_t)first * stride);
    s->query_stride[0] = stride;
    s->kv_first[0] = s->kv_first[i];
    s->kv_stride[0] = s->kv_stride[i];
    s->before[0] = s->before[i];
    s->after[0] = s->after[i];
    s->sinks[0] = s->sinks[i];
    s->kv[0] = s->kv[i];
    s->queries[0] = (int32_t)count;
    s->batch.query_lengths = s->queries;
    s->batch.sequence_count = 1;
    s->positions.query_first = s->query_first;
    s->positions.query_stride = whole->s.positions.query_stride ? s->query_stride : NULL;
    s->positions.kv_first = whole->s.positions.kv_first ? s->kv_first : NULL;
    s->positions.kv_stride = whole->s.positions.kv_stride ? s->kv_stride : NULL;
    s->positions.before = whole->s.positions.before ? s->before : NULL;
    s->positions.after = whole->s.positions.after ? s->after : NULL;
    s->positions.sinks = whole->s.positions.sinks ? s->sinks : NULL;
    s->config.positions = &s->positions;
    s->config.lane_speeds = NULL;
    s->config.lane_count = (uint32_t)test_random_in(state, 1, 9);
    s->config.tile_rows = (uint32_t)test_random_in(state, 1, 40);
    b->page_starts[0] = whole->page_starts[i];
    b->query_starts[0] = whole->query_starts[i] + first;
    b->step.sinks = whole->step.sinks ? b->sinks : NULL;
    b->step.slopes = whole->step.slopes ? b->slopes : NULL;
    b->step.mask = whole->step.mask ? b->mask : NULL;
    settle(b);
    run(b, 2, false);
    const size_t at = b->query_starts[0] * rows;
    assert_memory_equal(b->outputs + at * DIM, whole->outputs + at * DIM,
                        count * rows * DIM * sizeof(float));
    assert_memory_equal(b->lse + at, whole->lse + at, count * rows * sizeof(float));
    free(b);
}

TEST(attend__invariant_bits_with_positions_are_those_alone) {
    uint64_t state = test_seed() + 2;
    for (uint32_t round = 0; TEST_ROUNDS(round, 300); round++) {
        step *b = make_step(&state);
        b->s.config.mode = PTOWSP_ATTENTION_INVARIANT;
        run(b, 3, false);
        for (uint32_t i = 0; i < b->s.batch.sequence_count; i++) {
            const uint32_t queries = queries_of(&b->s, i);
            const bool is_behind = !b->s.positions.query_first && b->s.kv[i] < (int32_t)queries;
            if (b->s.kv[i] > 0 && queries > 0 && !is_behind) {
                const uint32_t first = (uint32_t)test_random_in(&state, 0, queries - 1);
                const uint32_t count = (uint32_t)test_random_in(&state, 1, queries - first);
                check_alone(b, i, first, count, &state);
            }
        }
        free(b);
    }
}

// Tokens that no query of their sequence sees may be anything.
TEST(attend__tokens_outside_of_windows_change_nothing) {
    uint64_t state = test_seed() + 3;
    for (uint32_t round = 0; TEST_ROUNDS(round, 200); round++) {
        step *b = make_step(&state);
        run(b, 1, false);
        step *other = (step *)malloc(sizeof *other);
        memcpy(other, b, sizeof *other);
        for (uint32_t i = 0; i < b->s.batch.sequence_count; i++) {
            for (uint32_t t = 0; t < (uint32_t)b->s.kv[i]; t++) {
                bool is_seen = false;
                for (uint32_t j = 0; j < queries_of(&b->s, i); j++) {
                    is_seen |= positions_sees(&b->s, i, j, t);
                }
                for (uint32_t e = 0; !is_seen && e < b->s.config.kv_head_count * DIM; e++) {
                    const size_t at =
                        (size_t)(b->kv_begin[i] + t) * b->s.config.kv_head_count * DIM + e;
                    b->keys[at] = b->values[at] = NAN;
                }
            }
        }
        fill_cache(b);
        run(b, 1, false);
        assert_memory_equal(b->outputs, other->outputs, sizeof b->outputs);
        assert_memory_equal(b->lse, other->lse, sizeof b->lse);
        free(other);
        free(b);
    }
}

// -- bad input ------------------------------------------------------------------------------------

// A run does not check arrays, as it takes constant time, and yet survives them; units do as well.
TEST(attend__runs_survive_arrays_that_changed_after_planning) {
    uint64_t state = test_seed() + 4;
    for (uint32_t round = 0; TEST_ROUNDS(round, 200); round++) {
        step *b = make_step(&state);
        run(b, 1, false);
        ptowsp_attend_unit unit = {0, 0, 0, 0, 0, 0, NULL, 0};
        unit.query_count = b->s.kv[0] > 0 ? queries_of(&b->s, 0) : 0;
        unit.kv_len = (uint32_t)b->s.kv[0];
        for (uint32_t i = 0; i < POSITIONS_SEQUENCES; i++) {
            b->s.query_first[i] = b->s.kv_first[i] = INT32_MIN + (int32_t)(round % 3);
            b->s.query_stride[i] = b->s.kv_stride[i] = round % 2 ? INT32_MAX : 0;
            b->s.sinks[i] = round % 4 < 2 ? INT32_MAX : -5;
        }
        assert_int_equal(ptowsp_attend_compute(&b->cache, &b->step, &unit, NULL, NULL), PTOWSP_OK);
        unit.sinks = 1;  // behind where the unit starts
        assert_int_equal(ptowsp_attend_compute(&b->cache, &b->step, &unit, NULL, NULL),
                         PTOWSP_INVALID_PARAMS);
        unit.sinks = 0;
        b->s.positions.sequence_count = 0;
        const bool has_any = positions_are_there(&b->s);
        assert_int_equal(ptowsp_attend_compute(&b->cache, &b->step, &unit, NULL, NULL),
                         has_any ? PTOWSP_INVALID_PARAMS : PTOWSP_OK);
        free(b);
    }
}

// Jobs of prefix plans, and of arrays that are shorter than the batch, are refused by name.
TEST(attend__jobs_with_positions_that_do_not_fit_are_refused) {
    uint64_t state = test_seed() + 6;
    step *b = make_step(&state);
    ptowsp_attention_plan plan = {0};
    const ptowsp_attention_positions few = {0, NULL, NULL, NULL, NULL, b->s.before, NULL, NULL};
    const ptowsp_attention_positions none = {0, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    ptowsp_prefix_plan prefix = {0};
    b->s.config.positions = &few;
    b->s.config.tile_rows = b->s.config.group;
    b->s.config.window = 0;
    for (int pass = 0; pass < 2; pass++) {
        ptowsp_attention_plan *of = pass == 0 ? &plan : &prefix.attention;
        of->group = b->s.config.group;
        of->tile_tokens = 1;
        of->lane_count = b->s.config.lane_count;
        b->step.plan = of;
        b->step.prefix = pass == 0 ? NULL : &prefix;
        const ptowsp_attend_job job = {.cache = &b->cache, .step = &b->step};
        ptowsp_plan_info info;
        assert_int_equal(ptowsp_attend_check(&job, &info), PTOWSP_INVALID_PARAMS);
        assert_int_equal(info.fault,
                         pass == 0 ? PTOWSP_FAULT_POSITIONS_COUNT : PTOWSP_FAULT_TREE_POSITIONS);
        assert_int_equal(ptowsp_attend_run_worker(&job, 0, 1, &info), PTOWSP_INVALID_PARAMS);
        b->s.config.positions = &none;  // no arrays: a job without memory
        assert_int_equal(ptowsp_attend_check(&job, &info), PTOWSP_INVALID_PARAMS);
        assert_int_equal(info.fault, PTOWSP_FAULT_ATTEND_MEMORY_NULL);
        b->s.config.positions = &few;
    }
    b->s.config.positions = NULL;  // shared segments would be seen by all, and others by the window
    b->s.config.window = 5;
    const ptowsp_attend_job job = {.cache = &b->cache, .step = &b->step};
    ptowsp_plan_info info;
    assert_int_equal(ptowsp_attend_run_worker(&job, 0, 1, &info), PTOWSP_INVALID_PARAMS);
    assert_string_equal(explain(&info),
                        "plan: prefix plans have no window, and config.window is 5");
    free(b);
}
