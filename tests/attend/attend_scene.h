// Steps of attention: a batch, a cache in any layout and type, plans, ways to run them, and the reference:
// softmax in double precision over all pairs of a query and a token.
//
// A test fills in what it asks for, above all the batch and its configuration; scene_make() makes the rest, in
// memory that goes with test_release(). All arrays have exactly their size, so that a sanitizer sees what
// reads past them.

#ifndef ATTEND_SCENE_H
#define ATTEND_SCENE_H

#include "positions_sample.h"

#include <math.h>

enum { SEQUENCES = POSITIONS_SEQUENCES, KV_MAX = 600, SHARED = 64, WORKERS_MAX = 9, THREADS = 4 };

typedef enum layout {
    LAYOUT_BLOCKS,  // [page][head][K or V][slot][dim], both of the larger dimension; scales [page][head][slot]
    LAYOUT_SLOTS,   // [page][slot][head][dim], K and V apart
    LAYOUT_PLAIN,   // [token][head][dim], without pages
    LAYOUT_LATENT,  // [page][slot][dim], the values are the first elements of the keys
    LAYOUT_COUNT
} layout;

typedef struct scene {
    // What a test asks for.
    positions_sample s;  // lengths, positions and the configuration
    ptowsp_attend_type type;
    layout layout;
    uint32_t key_dim, value_dim;
    uint32_t mask_words;   // of a query token; 0: no mask
    bool has_mask_starts;  // of each request; else from token 0
    bool has_sinks, has_slopes, has_equal_keys;
    bool has_prefix;  // blocks of SHARED tokens: two that 0 and 1 share, one of them with 3
    bool has_nan;     // for tokens that no query of their request sees
    float cap, scale, magnitude;  // magnitude: of the queries, or 0 for 2

    // What is made of it.
    uint32_t rows, tokens, query_tokens;  // rows: query heads
    uint32_t kv_begin[SEQUENCES + 1], query_starts[SEQUENCES + 1], page_starts[SEQUENCES + 1];
    uint32_t *pages, *mask, mask_starts[SEQUENCES];
    float *sinks, *slopes, *queries, *outputs, *lse;
    double *keys, *values;  // [token of the batch][head][dim], as the cache has them
    char *cache[2];
    float *scales[2];
    ptowsp_attend_cache kv;
    ptowsp_attend_step step;
} scene;

static inline float some(uint64_t *state) {
    return (float)test_random_in(state, -1000000, 1000000) / 1000000.0f;
}

static inline float *floats(size_t count) {
    return (float *)test_alloc(count, sizeof(float));
}

static inline uint32_t queries_of(const scene *c, uint32_t i) {
    return c->s.batch.query_lengths ? (uint32_t)c->s.queries[i] : 1;
}

// -- tables ---------------------------------------------------------------------------------------

// Tokens that a request has of an earlier one.
static inline uint32_t shared_tokens(const scene *c, uint32_t i) {
    const bool is_sharing = c->has_prefix && i > 0 && c->s.kv[i] > 0;
    return is_sharing ? (i == 1 ? 2 * SHARED : SHARED) : 0;
}

// Where each request has its tokens: pages in random order.
static inline void scene_pages(scene *c, uint64_t *state) {
    const uint32_t count = c->s.batch.sequence_count, page = c->s.config.page_size;
    const bool is_plain = c->layout == LAYOUT_PLAIN;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t kv = (uint32_t)c->s.kv[i];
        c->kv_begin[i + 1] = c->kv_begin[i] + kv;
        c->query_starts[i + 1] = c->query_starts[i] + queries_of(c, i);
        c->page_starts[i + 1] = c->page_starts[i] + (is_plain ? 1 : (kv + page - 1) / page);
    }
    c->tokens = c->kv_begin[count];
    c->query_tokens = c->query_starts[count];
    c->pages = (uint32_t *)test_alloc(c->page_starts[count], sizeof *c->pages);
    for (uint32_t i = 0; i < c->page_starts[count]; i++) {
        const uint32_t k = test_random_u32(state, 0, i);
        c->pages[i] = c->pages[k];
        c->pages[k] = i;
    }
    for (uint32_t i = 0; i < count && is_plain; i++) {
        c->pages[i] = c->kv_begin[i];
    }
    for (uint32_t i = 1; i < count && shared_tokens(c, i) > 0; i += 2) {
        memcpy(c->pages + c->page_starts[i], c->pages,
               shared_tokens(c, i) / page * sizeof *c->pages);
    }
}

// Bits, sparse or dense, in words of which some are full.
static inline void scene_mask(scene *c, uint64_t *state) {
    const bool is_dense = test_random(state) % 2;
    c->mask = (uint32_t *)test_alloc((size_t)c->query_tokens * c->mask_words, sizeof *c->mask);
    for (uint32_t i = 0; i < c->query_tokens * c->mask_words; i++) {
        const uint32_t bits = (uint32_t)(test_random(state) & test_random(state));
        c->mask[i] = test_random(state) % 3 == 0 ? UINT32_MAX : is_dense ? ~bits : bits;
    }
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        c->mask_starts[i] = c->has_mask_starts ? test_random_u32(state, 0, c->s.kv[i]) : 0;
    }
}

// -- the cache ------------------------------------------------------------------------------------

static inline void scene_strides(scene *c) {
    const size_t heads = c->s.config.kv_head_count, page = c->s.config.page_size;
    const size_t k = c->key_dim, v = c->value_dim, both = k > v ? k : v;
    ptowsp_attend_cache *kv = &c->kv;
    ptowsp_attend_strides keys = {page * heads * k, heads * k, k};
    ptowsp_attend_strides values = {page * heads * v, heads * v, v};
    ptowsp_attend_strides scales = {page * heads, heads, 1};
    kv->keys = c->cache[0];
    kv->values = c->cache[1];
    kv->page_size = (uint32_t)page;
    switch (c->layout) {
    case LAYOUT_BLOCKS:
        keys.page = heads * 2 * page * both, keys.token = both, keys.head = 2 * page * both;
        values = keys;
        scales.token = 1, scales.head = page;
        kv->values = c->cache[0] + ptowsp_attend_bytes(kv->type, page * both);
        break;
    case LAYOUT_PLAIN:
        keys.page = keys.token, values.page = values.token, scales.page = scales.token;
        kv->page_size = 0;
        break;
    case LAYOUT_LATENT: kv->values = kv->keys, values = keys; break;
    default: break;
    }
    kv->key_strides = keys;
    kv->value_strides = values;
    kv->scale_strides = scales;
    kv->key_scales = c->scales[0];
    kv->value_scales = c->layout == LAYOUT_LATENT ? c->scales[0] : c->scales[1];
}

// The element of the cache at which a row of a token begins.
static inline size_t place_of(const scene *c, const ptowsp_attend_strides *strides, uint32_t i,
                              uint32_t t, uint32_t head) {
    const uint32_t page = c->kv.page_size, *pages = c->pages + c->page_starts[i];
    const size_t at = page > 0 ? pages[t / page] : pages[0], slot = page > 0 ? t % page : t;
    return at * strides->page + slot * strides->token + head * strides->head;
}

// Writes an element of a block of 32, and returns it as rounded: a scale in f16, then 32 bytes, or 16 with
// two elements each, the first 16 in low nibbles, as numbers from 0 that stand for those from -8.
static inline double put_quantised(bool is_q4, char *block, uint32_t d, float value) {
    const float about = (is_q4 ? 1.0f / 8 : 1.0f / 127) * (0.75f + 0.25f * (float)(d / 32 % 3));
    const uint16_t half = ptowsp_f16_from_f32(isnan(value) ? value : about);
    const float scale = ptowsp_f32_from_f16(half);
    const int least = is_q4 ? -8 : -127, most = is_q4 ? 7 : 127;
    int whole = isnan(value) ? 0 : (int)lrintf(value / scale);
    whole = whole < least ? least : whole > most ? most : whole;
    memcpy(block, &half, sizeof half);
    char *byte = block + 2 + d % (is_q4 ? 16 : 32);
    const bool is_low = d % 32 < 16;
    *byte = (char)(!is_q4 ? whole : is_low ? whole + 8 : (*byte & 0x0f) | (whole + 8) << 4);
    return (double)whole * (double)scale;
}

// Writes a row, and what it stands for. The scale is that of I8.
static inline void put_row(ptowsp_attend_type type, char *to, uint32_t dim, float scale,
                           double *exact, bool is_nan, uint64_t *state) {
    for (uint32_t d = 0; d < dim; d++) {
        const float value = is_nan ? NAN : some(state);
        const uint16_t f16 = ptowsp_f16_from_f32(value), bf16 = ptowsp_bf16_from_f32(value);
        const int8_t byte = is_nan ? 0 : (int8_t)lrintf(value * 127.0f);
        switch (type) {
        case PTOWSP_ATTEND_F32: memcpy(to + 4 * d, &value, 4), exact[d] = (double)value; break;
        case PTOWSP_ATTEND_F16:
            memcpy(to + 2 * d, &f16, 2), exact[d] = (double)ptowsp_f32_from_f16(f16);
            break;
        case PTOWSP_ATTEND_BF16:
            memcpy(to + 2 * d, &bf16, 2), exact[d] = (double)ptowsp_f32_from_bf16(bf16);
            break;
        case PTOWSP_ATTEND_I8: memcpy(to + d, &byte, 1), exact[d] = byte * (double)scale; break;
        case PTOWSP_ATTEND_Q8_0: exact[d] = put_quantised(false, to + d / 32 * 34, d, value); break;
        default: exact[d] = put_quantised(true, to + d / 32 * 18, d, value); break;
        }
    }
}

static inline bool is_unseen(const scene *c, uint32_t i, uint32_t t) {
    for (uint32_t j = 0; j < queries_of(c, i); j++) {
        if (positions_sees(&c->s, i, j, t)) {
            return false;
        }
    }
    return true;
}

// The row of a token and head. It is random from its own seed, so the same in every layout.
static inline void put_token(scene *c, uint32_t i, uint32_t t, uint32_t head, uint64_t seed) {
    const uint32_t first = t < shared_tokens(c, i) ? 0 : c->kv_begin[i];  // as in the first request
    const size_t row = (size_t)(c->kv_begin[i] + t) * c->s.config.kv_head_count + head;
    const size_t from = (size_t)(first + t) * c->s.config.kv_head_count + head;
    const size_t scale = place_of(c, &c->kv.scale_strides, i, t, head);
    const bool is_nan = c->has_nan && is_unseen(c, i, t);
    double *key = c->keys + row * c->key_dim, *value = c->values + row * c->value_dim;
    uint64_t state = seed + (c->has_equal_keys ? head : from) * 1000003;
    for (int k = 0; k < 2; k++) {
        c->scales[k][scale] = is_nan ? NAN : (1.0f + 0.4f * some(&state)) / 127.0f;
    }
    put_row(c->type,
            (char *)c->cache[0] +
                ptowsp_attend_bytes(c->type, place_of(c, &c->kv.key_strides, i, t, head)),
            c->key_dim, c->scales[0][scale], key, is_nan, &state);
    if (c->layout == LAYOUT_LATENT) {
        memcpy(value, key, c->value_dim * sizeof *value);
        return;
    }
    state = seed + from * 1000033 + 7;
    char *values = c->layout == LAYOUT_BLOCKS
                       ? c->cache[0] + ((const char *)c->kv.values - c->cache[0])
                       : c->cache[1];
    put_row(c->type,
            values + ptowsp_attend_bytes(c->type, place_of(c, &c->kv.value_strides, i, t, head)),
            c->value_dim, c->scales[1][scale], value, is_nan, &state);
}

static inline void scene_cache(scene *c, uint64_t seed) {
    const uint32_t heads = c->s.config.kv_head_count, count = c->s.batch.sequence_count;
    const size_t both = c->key_dim > c->value_dim ? c->key_dim : c->value_dim;
    const size_t slots =
        heads * (c->layout == LAYOUT_PLAIN ? c->tokens
                                           : (size_t)c->page_starts[count] * c->s.config.page_size);
    const size_t sizes[2] = {c->layout == LAYOUT_BLOCKS ? 2 * both : c->key_dim, c->value_dim};
    c->kv.type = c->type;
    c->kv.key_dim = c->key_dim;
    c->kv.value_dim = c->value_dim;
    for (int i = 0; i < 2; i++) {
        c->cache[i] = (char *)test_alloc(ptowsp_attend_bytes(c->type, slots * sizes[i]), 1);
        c->scales[i] = floats(slots);
    }
    c->keys = (double *)test_alloc((size_t)c->tokens * heads * c->key_dim, sizeof(double));
    c->values = (double *)test_alloc((size_t)c->tokens * heads * c->value_dim, sizeof(double));
    scene_strides(c);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t t = 0; t < (uint32_t)c->s.kv[i] * heads; t++) {
            put_token(c, i, t / heads, t % heads, seed);
        }
    }
}

// -- the step -------------------------------------------------------------------------------------

// New outputs, which are NaN.
static inline void scene_outputs(scene *c) {
    const size_t all = (size_t)c->query_tokens * c->rows;
    c->step.outputs = c->outputs = floats(all * c->value_dim);
    c->step.lse = c->lse = floats(all);
    memset(c->outputs, 0xff, all * c->value_dim * sizeof(float));
    memset(c->lse, 0xff, all * sizeof(float));
}

static inline void scene_step(scene *c) {
    const ptowsp_attend_step step = {
        .batch = &c->s.batch,
        .config = &c->s.config,
        .queries = c->queries,
        .query_token_stride = (size_t)c->rows * c->key_dim,
        .query_head_stride = c->key_dim,
        .output_token_stride = (size_t)c->rows * c->value_dim,
        .output_head_stride = c->value_dim,
        .lse_token_stride = c->rows,
        .lse_head_stride = 1,
        .query_starts = c->query_starts,
        .pages = c->pages,
        .page_starts = c->page_starts,
        .scale = c->scale,
        .cap = c->cap,
        .sinks = c->has_sinks ? c->sinks : NULL,
        .slopes = c->has_slopes ? c->slopes : NULL,
        .mask = c->mask_words ? c->mask : NULL,
        .mask_stride = c->mask_words,
        .mask_starts = c->has_mask_starts ? c->mask_starts : NULL,
    };
    c->step = step;
    scene_outputs(c);
}

static inline void scene_make(scene *c, uint64_t seed) {
    uint64_t state = seed;
    c->rows = c->s.config.kv_head_count * c->s.config.group;
    c->s.batch.kv_lengths = c->s.kv;
    scene_pages(c, &state);
    scene_cache(c, seed);
    state = seed + 1;
    const size_t all = (size_t)c->query_tokens * c->rows * c->key_dim;
    c->queries = floats(all);
    for (size_t i = 0; i < all; i++) {
        c->queries[i] = (c->magnitude > 0 ? c->magnitude : 2.0f) * some(&state);
    }
    scene_mask(c, &state);
    c->sinks = floats(c->rows);
    c->slopes = floats(c->rows);
    for (uint32_t i = 0; i < c->rows; i++) {
        c->sinks[i] = i % 5 == 4 ? -INFINITY : 5.0f * some(&state);
        c->slopes[i] = i % 2 ? 0.03f * (1.0f + some(&state)) : 1.0f / (float)(2 << i % 8);
    }
    scene_step(c);
}

// -- running --------------------------------------------------------------------------------------

static inline void fail_plan(const ptowsp_plan_info *info) {
    char text[200];
    ptowsp_plan_explain(info, TEST_TEXT(text));
    fail_msg("%s", text);
}

// A job of a step, with its plan and memory.
typedef struct made_job {
    ptowsp_attend_job job;
    ptowsp_attend_limits limits;
    ptowsp_attention_plan plan;  // of section 9
    ptowsp_prefix_plan prefix;   // of section 12
} made_job;

static inline void make_plan(const ptowsp_attend_step *step, made_job *out) {
    ptowsp_plan_info info;
    if (ptowsp_attention_size(step->batch, step->config, &out->limits.plan, &info)) {
        fail_plan(&info);
    }
    const uint64_t bytes = out->limits.plan.block_bytes;
    assert_ok(
        ptowsp_attention_place(&out->limits.plan, test_alloc(1, (size_t)bytes), bytes, &out->plan));
    assert_ok(ptowsp_attention_generate(step->batch, step->config, &out->plan, NULL));
}

// The requests that have KV share the first block of it, and two of them the second.
static inline void make_prefix_plan(const ptowsp_attend_step *step, made_job *out) {
    static const uint64_t ids[] = {7, 8, 7, 8, 7, 9}, begin[] = {0, 2, 4, 4, 6};
    const ptowsp_prefix_batch batch = {*step->batch, ids, begin, SHARED};
    const ptowsp_prefix_limits limits = {4, 6};
    const uint64_t bytes = ptowsp_prefix_tree_bytes(&limits);
    ptowsp_prefix_tree tree;
    ptowsp_prefix_sizes sizes;
    ptowsp_plan_info info;
    assert_int_equal(step->batch->sequence_count, 4);
    assert_ok(ptowsp_prefix_tree_place(&limits, test_alloc(1, (size_t)bytes), bytes, &tree));
    if (ptowsp_prefix_build(&batch, &tree, &info) ||
        ptowsp_prefix_size(step->batch, step->config, &tree, &sizes, &info)) {
        fail_plan(&info);
    }
    out->limits.plan = sizes.attention;
    out->limits.join_count = sizes.join_count;
    assert_ok(ptowsp_prefix_place(&sizes, test_alloc(1, (size_t)sizes.block_bytes),
                                  sizes.block_bytes, &out->prefix));
    if (ptowsp_prefix_generate(step->batch, step->config, &tree, &out->prefix, &info) ||
        ptowsp_prefix_check(step->batch, step->config, &tree, &out->prefix, &info)) {
        fail_plan(&info);
    }
}

static inline void make_job(const scene *c, ptowsp_attend_step *step, bool is_prefix,
                            made_job *out) {
    uint64_t bytes;
    memset(out, 0, sizeof *out);
    (is_prefix ? make_prefix_plan : make_plan)(step, out);
    out->limits.value_dim = c->value_dim;
    out->limits.worker_count = WORKERS_MAX;
    assert_ok(ptowsp_attend_size(&out->limits, &bytes, NULL));
    assert_ok(ptowsp_attend_place(&out->limits, test_alloc(1, (size_t)bytes), bytes,
                                  &out->job.memory, NULL));
    step->plan = is_prefix ? &out->prefix.attention : &out->plan;
    step->prefix = is_prefix ? &out->prefix : NULL;
    out->job.cache = &c->kv;
    out->job.step = step;
}

typedef enum workers {
    WORKERS_ONE,
    WORKERS_TWO,  // one after another, the last one first, as seven
    WORKERS_SEVEN,
    WORKERS_THREADS,  // at the same time
    WORKERS_CONTEXT,  // the lanes of a context
    WORKERS_LAUNCH,   // all units, lane by lane, and then the merges of lanes
} workers;

typedef struct thread_run {
    const ptowsp_attend_job *job;
    ptowsp_status statuses[THREADS];
} thread_run;

static inline void run_thread(void *user, uint32_t worker) {
    thread_run *r = (thread_run *)user;
    r->statuses[worker] = ptowsp_attend_run_worker(r->job, worker, THREADS, NULL);
}

static inline void run_on_threads(const ptowsp_attend_job *job) {
    thread_run r = {.job = job};
    test_run_lanes_on_threads(NULL, THREADS, run_thread, &r);
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_ok(r.statuses[i]);
    }
}

static inline void run_on_context(const ptowsp_attend_job *job) {
    ptowsp_context *context = test_lanes(3);
    assert_ok(ptowsp_attend_run(context, job));
    ptowsp_context_destroy(context);
}

// Merges of a tile that lanes share have some of its rows each.
static inline void run_launch(const ptowsp_attend_job *job) {
    const ptowsp_attention_plan *plan = job->step->plan;
    const ptowsp_prefix_plan *prefix = job->step->prefix;
    uint32_t count;
    for (uint32_t i = 0; i < 2 * plan->lane_count; i++) {
        const bool is_merge = i >= plan->lane_count;
        const ptowsp_work *work =
            is_merge ? ptowsp_attention_lane_merges(plan, i - plan->lane_count, &count)
                     : ptowsp_attention_lane_units(plan, i, &count);
        for (uint32_t k = 0; k < count; k++) {
            if (!is_merge) {
                assert_ok(ptowsp_attend_work(job, &work[k]));
            } else if (!prefix || prefix->segments[ptowsp_work_request(&work[k])].is_whole) {
                assert_ok(ptowsp_attend_merge(job, &work[k]));
            }  // other merges are lists for joins
        }
    }
    for (uint32_t i = 0; prefix && i < prefix->join_count; i++) {
        assert_ok(ptowsp_attend_join(job, &prefix->joins[i]));
    }
}

// Runs a job that the library finds good.
static inline void job_run(const ptowsp_attend_job *job, workers how) {
    static const uint32_t counts[] = {1, 2, 7};
    ptowsp_plan_info info;
    if (ptowsp_attend_check(job, &info)) {
        fail_plan(&info);
    }
    for (uint32_t i = how <= WORKERS_SEVEN ? counts[how] : 0; i-- > 0;) {
        assert_ok(ptowsp_attend_run_worker(job, i, counts[how], NULL));
    }
    if (how > WORKERS_SEVEN) {
        (how == WORKERS_THREADS   ? run_on_threads
         : how == WORKERS_CONTEXT ? run_on_context
                                  : run_launch)(job);
    }
}

// Plans and runs a step.
static inline made_job run(const scene *c, ptowsp_attend_step step, bool is_prefix, workers how,
                           bool is_stealing) {
    made_job made;
    make_job(c, &step, is_prefix, &made);
    made.job.is_stealing = is_stealing;
    job_run(&made.job, how);
    return made;
}

// -- the reference --------------------------------------------------------------------------------

static inline double line_at(const int32_t *first, const int32_t *stride, uint32_t i,
                             int64_t standard, int64_t at) {
    return (double)((first ? first[i] : standard) + at * (stride ? stride[i] : 1));
}

static inline bool mask_hides(const scene *c, uint32_t i, uint32_t j, uint32_t t) {
    const int64_t bit = (int64_t)t - c->mask_starts[i];
    return c->step.mask && bit >= 0 && bit < 32 * (int64_t)c->mask_words &&
           !(c->step.mask[(c->query_starts[i] + j) * c->mask_words + (uint32_t)bit / 32] >>
                 bit % 32 &
             1);
}

// The score of a token, or -INFINITY; *largest grows to what roundings of f32 are relative to.
static inline double score_of(const scene *c, uint32_t i, uint32_t j, uint32_t head, uint32_t t,
                              double *largest) {
    const ptowsp_attention_positions *p = &c->s.positions;
    const uint32_t heads = c->s.config.kv_head_count, group = c->rows / heads;
    if (!positions_sees(&c->s, i, j, t) || mask_hides(c, i, j, t)) {
        return -INFINITY;
    }
    const float *query =
        c->queries + ((size_t)(c->query_starts[i] + j) * c->rows + head) * c->key_dim;
    const double *key =
        c->keys + ((size_t)(c->kv_begin[i] + t) * heads + head / group) * c->key_dim;
    double score = 0, magnitude = 0, bias = 0;
    for (uint32_t d = 0; d < c->key_dim; d++) {
        score += (double)query[d] * key[d];
        magnitude += fabs((double)query[d] * key[d]);
    }
    const double scale = c->scale != 0.0f ? (double)c->scale : 1.0 / sqrt(c->key_dim);
    score *= scale;
    score = c->cap > 0.0f ? (double)c->cap * tanh(score / (double)c->cap) : score;
    if (c->step.slopes) {
        const int64_t last = c->s.kv[i] - (int64_t)queries_of(c, i);
        bias = (double)c->slopes[head] * fabs(line_at(p->query_first, p->query_stride, i, last, j) -
                                              line_at(p->kv_first, p->kv_stride, i, 0, t));
    }
    *largest = fmax(*largest, magnitude * scale + bias);
    return score - bias;
}

// A row and its log-sum-exp over tokens [start, end), with the sink of its head or without. Values are
// below 1.5 in magnitude, so the tolerance of a weight is that of an element.
static inline void check_part(const scene *c, uint32_t i, uint32_t j, uint32_t head, uint32_t start,
                              uint32_t end, bool has_sink, const float *row, float lse) {
    const double sink = has_sink && c->step.sinks ? (double)c->sinks[head] : -INFINITY;
    double scores[KV_MAX], out[PTOWSP_ATTEND_DIM_MAX] = {0}, top = sink, largest = 1.0;
    end = end < KV_MAX ? end : KV_MAX;  // no more are seen
    for (uint32_t t = start; t < end; t++) {
        scores[t] = score_of(c, i, j, head, t, &largest);
        top = fmax(top, scores[t]);
    }
    double sum = top > -INFINITY ? exp(sink - top) : 0;
    for (uint32_t t = start; t < end && top > -INFINITY; t++) {
        const double weight = exp(scores[t] - top);
        const uint32_t heads = c->s.config.kv_head_count;
        const double *value =
            c->values +
            ((size_t)(c->kv_begin[i] + t) * heads + head / (c->rows / heads)) * c->value_dim;
        sum += weight;
        for (uint32_t d = 0; d < c->value_dim && weight > 0; d++) {
            out[d] += weight * value[d];
        }
    }
    const double tolerance =
        (64.0 + 8.0 * largest + 16.0 * fmin((double)c->cap, largest)) / (1 << 24);
    if (sum == 0) {
        assert_true(lse == -INFINITY);
    } else {
        const double exact = top + log(sum);
        assert_true(fabs((double)lse - exact) <= tolerance + fabs(exact) * 1e-7);
    }
    for (uint32_t d = 0; d < c->value_dim; d++) {
        const double exact = sum > 0 ? out[d] / sum : 0;
        assert_true(fabs((double)row[d] - exact) <= tolerance);
    }
}

// What a run has left of a row.
static inline void check_row(const scene *c, uint32_t i, uint32_t j, uint32_t head) {
    const size_t row = (size_t)(c->query_starts[i] + j) * c->rows + head;
    check_part(c, i, j, head, 0, (uint32_t)c->s.kv[i], true, c->outputs + row * c->value_dim,
               c->lse[row]);
}

// Rows of requests without KV are not written, unless there are positions.
static inline bool has_rows(const scene *c, uint32_t i) {
    return c->s.kv[i] > 0 || positions_are_there(&c->s);
}

static inline void check_values(const scene *c) {
    for (uint32_t i = 0; i < c->s.batch.sequence_count; i++) {
        for (uint32_t row = 0; has_rows(c, i) && row < queries_of(c, i) * c->rows; row++) {
            check_row(c, i, row / c->rows, row % c->rows);
        }
    }
}

// All outputs have the same bits.
static inline void same_outputs(const scene *c, const float *outputs, const float *lse) {
    const size_t all = (size_t)c->query_tokens * c->rows;
    assert_memory_equal(outputs, c->outputs, all * c->value_dim * sizeof(float));
    assert_memory_equal(lse, c->lse, all * sizeof(float));
}

// -- one sequence alone ---------------------------------------------------------------------------

typedef struct alone {
    ptowsp_attention_batch batch;
    ptowsp_attention_config config;
    ptowsp_attention_positions positions;
    ptowsp_attend_step step;
    int32_t query_first, queries;
    uint32_t query_start;
} alone;

// Query tokens [first, first + count) of a sequence, by other tiles on other lanes.
static inline void make_alone(const scene *c, uint32_t i, uint32_t first, uint32_t count,
                              alone *out) {
    const ptowsp_attention_positions *p = &c->s.positions;
    const int64_t last = c->s.kv[i] - (int64_t)queries_of(c, i);
    const bool is_whole = first == 0 && count == queries_of(c, i);
#define FROM(array) ((array) ? (array) + i : NULL)
    const ptowsp_attention_positions positions = {1,
                                                  is_whole ? FROM(p->query_first)
                                                           : &out->query_first,
                                                  FROM(p->query_stride),
                                                  FROM(p->kv_first),
                                                  FROM(p->kv_stride),
                                                  FROM(p->before),
                                                  FROM(p->after),
                                                  FROM(p->sinks)};
    out->positions = positions;
    out->query_first = (int32_t)line_at(p->query_first, p->query_stride, i, last, first);
    out->queries = (int32_t)count;
    out->query_start = c->query_starts[i] + first;
    out->batch = c->s.batch;
    out->batch.kv_lengths = FROM(c->s.batch.kv_lengths);
    out->batch.query_lengths = &out->queries;
    out->batch.sequence_count = 1;
    out->config = c->s.config;
    out->config.positions = &out->positions;
    out->config.lane_count = 2;
    out->config.lane_speeds = NULL;
    out->config.tile_rows = 5 * c->s.config.group;
    out->config.shares_merges = !c->s.config.shares_merges;
    out->step = c->step;
    out->step.batch = &out->batch;
    out->step.config = &out->config;
    out->step.query_starts = &out->query_start;
    out->step.page_starts = c->page_starts + i;
    out->step.mask_starts = FROM(c->step.mask_starts);
#undef FROM
}

#endif
