// Steps of attention with features chosen from a list: batches, caches in every layout and type, plans,
// ways to run them, and the reference: softmax in double precision over all pairs of a query and a token.

#ifndef ATTEND_SCENE_H
#define ATTEND_SCENE_H

#include "positions_sample.h"

#include <math.h>
#include <pthread.h>

// -- features -------------------------------------------------------------------------------------

#define FEATURES(FEATURE)                                                                          \
    FEATURE(TYPE, 6)     /* as ptowsp_attend_type */                                               \
    FEATURE(DIMS, 6)     /* see dims */                                                            \
    FEATURE(LAYOUT, 4)   /* see layout */                                                          \
    FEATURE(GROUP, 4)    /* see groups */                                                          \
    FEATURE(HEADS, 2)    /* 1, 2 */                                                                \
    FEATURE(QUERIES, 3)  /* one each; few; a prompt */                                             \
    FEATURE(MASK, 3)     /* none; from token 0; from tokens of their own */                        \
    FEATURE(SINKS, 2)    /* none; a logit for each head */                                         \
    FEATURE(SLOPES, 2)   /* none; ALiBi */                                                         \
    FEATURE(CAP, 2)      /* none; 7 */                                                             \
    FEATURE(SCALE, 2)    /* the default; 0.2 */                                                    \
    FEATURE(CAUSAL, 2)   /* no; yes */                                                             \
    FEATURE(WINDOW, 3)   /* none; one for all; `before` by sequence */                             \
    FEATURE(AFTER, 2)    /* none; by sequence */                                                   \
    FEATURE(FIRST, 2)    /* tokens that are always seen: none; by sequence */                      \
    FEATURE(QUERY_AT, 3) /* the last of the KV; query_first; with query_stride */                  \
    FEATURE(KV_AT, 3)    /* from 0; kv_first; with kv_stride */                                    \
    FEATURE(MODE, 2)     /* BALANCED, INVARIANT */                                                 \
    FEATURE(SHARES, 2)   /* merges on one lane; shared */                                          \
    FEATURE(TILE, 4)     /* tile_rows: see tiles */                                                \
    FEATURE(LANES, 3)    /* 1, 3, 16 */                                                            \
    FEATURE(SPEEDS, 2)   /* equal; unequal */                                                      \
    FEATURE(PAGE, 3)     /* 1, 4, 16 tokens */                                                     \
    FEATURE(TIERS, 2)    /* none; two */                                                           \
    FEATURE(WORKERS, 6)  /* see workers */                                                         \
    FEATURE(STEALING, 2) /* no; yes */                                                             \
    FEATURE(PREFIX, 2)   /* a plan of section 9; of section 12, with KV that requests share */

typedef enum feature {
#define FEATURE_ENUM(name, levels) name,
    FEATURES(FEATURE_ENUM)
#undef FEATURE_ENUM
        COUNT
} feature;

static const uint8_t levels[COUNT] = {
#define FEATURE_LEVELS(name, levels) levels,
    FEATURES(FEATURE_LEVELS)
#undef FEATURE_LEVELS
};

enum { LEVELS_MAX = 6, DIMS_SMALL = 2 };

static const uint32_t dims[][2] = {{8, 8}, {24, 40}, {64, 64}, {128, 128}, {96, 32}, {576, 512}};
static const uint32_t groups[] = {1, 3, 8, 40}, tiles[] = {0, 1, 24, 4096};

typedef enum layout {
    LAYOUT_BLOCKS,  // [page][head][K or V][slot][dim]
    LAYOUT_SLOTS,   // [page][slot][head][dim], K and V apart
    LAYOUT_PLAIN,   // [token][head][dim], without pages
    LAYOUT_LATENT,  // [page][slot][dim], the values are the first elements of the keys
} layout;

typedef enum workers {
    WORKERS_ONE,
    WORKERS_TWO,  // one after another, as seven
    WORKERS_SEVEN,
    WORKERS_THREADS,  // at the same time
    WORKERS_CONTEXT,  // the lanes of a context
    WORKERS_LAUNCH,   // all units, lane by lane, and then the merges of lanes
} workers;

typedef struct levels_of {
    uint8_t at[COUNT];
} levels_of;

// What the manual refuses: of two features, in this order.
static inline bool pair_is_refused(feature f, uint32_t a, feature g, uint32_t b) {
    return (f == TYPE && g == DIMS && a >= PTOWSP_ATTEND_Q8_0 && b < DIMS_SMALL) ||
           (f == DIMS && g == LAYOUT && dims[a][1] > dims[a][0] && b == LAYOUT_LATENT) ||
           (f == LAYOUT && g == HEADS && a == LAYOUT_LATENT && b == 1) ||
           (f == CAUSAL && g == AFTER && a == 1 && b == 1) ||
           (f == QUERY_AT && g == KV_AT && a == 0 && b > 0) ||
           (f == LAYOUT && g == PREFIX && a == LAYOUT_PLAIN && b == 1) ||
           ((f == WINDOW || f == AFTER || f == FIRST || f == QUERY_AT || f == KV_AT ||
             f == SHARES) &&
            g == PREFIX && a > 0 && b == 1);
}

static inline bool is_allowed(const levels_of *c) {
    for (uint32_t f = 0; f < COUNT; f++) {
        for (uint32_t g = f + 1; g < COUNT; g++) {
            if (pair_is_refused((feature)f, c->at[f], (feature)g, c->at[g])) {
                return false;
            }
        }
    }
    return true;
}

// -- a case ---------------------------------------------------------------------------------------

enum { SEQUENCES = 4, KV_MAX = 150, QUERY_MAX = 20, MASK_WORDS = 6, ROWS_MAX = 80 };
enum { SHARED = 64 };  // tokens of a prefix, which all requests with KV have

typedef struct scene {
    levels_of at;
    positions_sample s;  // the batch and its configuration
    ptowsp_tier tiers[2];
    uint32_t key_dim, value_dim, rows, tokens;  // rows: query heads
    uint32_t kv_begin[SEQUENCES + 1], query_starts[SEQUENCES + 1], page_starts[SEQUENCES + 1];
    uint32_t pages[SEQUENCES * KV_MAX], mask_starts[SEQUENCES];
    uint32_t mask[SEQUENCES * QUERY_MAX * MASK_WORDS];
    float row_sinks[ROWS_MAX], slopes[ROWS_MAX];
    double *keys, *values;  // [token][head][dim], as the cache has them
    float *queries, *outputs, *lse;
    char *cache[2];
    float *scales[2];
    size_t query_tokens;
    ptowsp_attend_cache kv;
    ptowsp_attend_step step;
} scene;

static inline float some(uint64_t *state) {
    return (float)test_random_in(state, -1000, 1000) / 1000.0f;
}

static inline void *room(size_t count, size_t size) {
    void *memory = calloc(count > 0 ? count : 1, size);
    assert_non_null(memory);
    return memory;
}

static inline uint32_t queries_of(const scene *c, uint32_t i) {
    return c->s.batch.query_lengths ? (uint32_t)c->s.queries[i] : 1;
}

// Lengths, positions and the configuration.
static inline void make_batch(scene *c, uint64_t *state) {
    positions_sample *s = &c->s;
    const uint8_t *at = c->at.at;
    const int32_t most[3] = {1, 6, QUERY_MAX};
    s->batch.kv_lengths = s->kv;
    s->batch.query_lengths = at[QUERIES] > 0 ? s->queries : NULL;
    s->batch.sequence_count = s->positions.sequence_count = SEQUENCES;
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        const int64_t least = i == 0 || at[PREFIX] ? 90 : 1;
        const int64_t kv = i == 2 ? 0 : test_random_in(state, least, KV_MAX);
        const int64_t queries = test_random_in(state, 1, most[at[QUERIES]]);
        s->kv[i] = (int32_t)kv;
        s->queries[i] = (int32_t)(queries < kv || kv == 0 ? queries : kv);
        s->query_first[i] = (int32_t)test_random_in(state, kv / 2, 2 * kv);
        s->query_stride[i] = (int32_t)test_random_in(state, 1, 5);
        s->kv_first[i] = (int32_t)test_random_in(state, 0, kv / 2);
        s->kv_stride[i] = (int32_t)test_random_in(state, 1, 3);
        s->before[i] = i == 1 ? (uint32_t)INT32_MAX + 1 : (uint32_t)test_random_in(state, 0, 80);
        s->after[i] = i == 3 ? UINT32_MAX : (uint32_t)test_random_in(state, 0, 40);
        s->sinks[i] = (int32_t)test_random_in(state, 0, kv < 9 ? kv : 9);
    }
    ptowsp_attention_positions *p = &s->positions;
    p->query_first = at[QUERY_AT] > 0 ? s->query_first : NULL;
    p->query_stride = at[QUERY_AT] > 1 ? s->query_stride : NULL;
    p->kv_first = at[KV_AT] > 0 ? s->kv_first : NULL;
    p->kv_stride = at[KV_AT] > 1 ? s->kv_stride : NULL;
    p->before = at[WINDOW] == 2 ? s->before : NULL;
    p->after = at[AFTER] ? s->after : NULL;
    p->sinks = at[FIRST] ? s->sinks : NULL;
    s->config.positions = p;
}

static inline void make_config(scene *c) {
    ptowsp_attention_config *config = &c->s.config;
    const uint8_t *at = c->at.at;
    const uint32_t lanes[3] = {1, 3, 16}, pages[3] = {1, 4, 16};
    const ptowsp_tier two[2] = {{0, 1, 90}, {5, 91, KV_MAX}};
    config->kv_head_count = at[HEADS] + 1u;
    config->group = groups[at[GROUP]];
    config->is_causal = at[CAUSAL];
    config->window = at[WINDOW] == 1 ? 37 : 0;
    config->mode = at[MODE] ? PTOWSP_ATTENTION_INVARIANT : PTOWSP_ATTENTION_BALANCED;
    config->chunk = at[MODE] ? 64 : 0;
    config->grain = at[MODE] ? 32 : 0;
    config->cost.per_unit = config->cost.per_token = 1.0;  // many splits
    config->shares_merges = at[SHARES];
    config->tile_rows = tiles[at[TILE]];
    config->lane_count = lanes[at[LANES]];
    for (uint32_t i = 0; i < 16; i++) {
        c->s.speeds[i] = (i * 7 + 2) % 5;  // 2 4 1 3 0 ...
    }
    config->lane_speeds = at[SPEEDS] ? c->s.speeds : NULL;
    config->page_size = pages[at[PAGE]];
    memcpy(c->tiers, two, sizeof two);
    config->tiers = at[TIERS] ? c->tiers : NULL;
    config->tier_count = at[TIERS] ? 2 : 0;
    c->key_dim = dims[at[DIMS]][0];
    c->value_dim = dims[at[DIMS]][1];
    c->rows = config->kv_head_count * config->group;
}

// Where each request has its tokens: pages in reversed order.
static inline void make_tables(scene *c, uint64_t *state) {
    const uint32_t page = c->s.config.page_size;
    const bool is_plain = c->at.at[LAYOUT] == LAYOUT_PLAIN;
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        const uint32_t kv = (uint32_t)c->s.kv[i];
        c->kv_begin[i + 1] = c->kv_begin[i] + kv;
        c->query_starts[i + 1] = c->query_starts[i] + queries_of(c, i);
        c->page_starts[i + 1] = c->page_starts[i] + (is_plain ? 1 : (kv + page - 1) / page);
        c->mask_starts[i] =
            c->at.at[MASK] == 2 ? (uint32_t)test_random_in(state, 0, (int64_t)kv) : 0;
    }
    for (uint32_t i = 0; i < c->page_starts[SEQUENCES]; i++) {
        c->pages[i] = is_plain ? c->kv_begin[i] : c->page_starts[SEQUENCES] - 1 - i;
    }
    for (uint32_t i = 1; i < SEQUENCES && c->at.at[PREFIX]; i++) {
        const uint32_t count = c->s.kv[i] > 0 ? SHARED / page : 0;
        memcpy(c->pages + c->page_starts[i], c->pages, count * sizeof *c->pages);
    }
    c->query_tokens = c->query_starts[SEQUENCES];
    c->tokens = c->kv_begin[SEQUENCES];
    for (uint32_t i = 0; i < SEQUENCES * QUERY_MAX * MASK_WORDS; i++) {
        c->mask[i] = (uint32_t)(test_random(state) | test_random(state));
    }
    for (uint32_t i = 0; i < ROWS_MAX; i++) {
        c->row_sinks[i] = i % 5 == 4 ? -INFINITY : 3.0f * some(state);
        c->slopes[i] = 0.03f * (1.0f + some(state));
    }
}

// -- the cache ------------------------------------------------------------------------------------

// Writes a block of 32 as Q8_0 or Q4_0, and what it stands for.
static inline void put_block(bool is_q4, char *to, double *exact, uint64_t *state) {
    const uint16_t half = ptowsp_f16_from_f32((1.5f + 0.5f * some(state)) / (is_q4 ? 12 : 190));
    const double scale = (double)ptowsp_f32_from_f16(half);
    memcpy(to, &half, sizeof half);
    for (uint32_t d = 0; d < 32; d++) {
        const int whole = (int)test_random_in(state, is_q4 ? -8 : -128, is_q4 ? 7 : 127);
        exact[d] = whole * scale;
        char *byte = to + 2 + (is_q4 ? d % 16 : d);
        const int low = is_q4 && d >= 16 ? *byte : 0;  // two elements a byte, from -8
        *byte = (char)(!is_q4 ? whole : d < 16 ? whole + 8 : low + 16 * (whole + 8));
    }
}

// Writes a row, and what it stands for. The scale of I8 is given.
static inline void put_row(ptowsp_attend_type type, char *to, uint32_t dim, float scale,
                           double *exact, uint64_t *state) {
    if (type >= PTOWSP_ATTEND_Q8_0) {
        const bool is_q4 = type == PTOWSP_ATTEND_Q4_0;
        for (uint32_t d = 0; d < dim; d += 32) {
            put_block(is_q4, to + d / 32 * (is_q4 ? 18 : 34), exact + d, state);
        }
        return;
    }
    for (uint32_t d = 0; d < dim; d++) {
        const float value = some(state);
        const uint16_t f16 = ptowsp_f16_from_f32(value), bf16 = ptowsp_bf16_from_f32(value);
        const int8_t byte = (int8_t)lrintf(value * 127.0f);
        switch (type) {
        case PTOWSP_ATTEND_F32: memcpy(to + 4 * d, &value, 4), exact[d] = (double)value; break;
        case PTOWSP_ATTEND_F16:
            memcpy(to + 2 * d, &f16, 2), exact[d] = (double)ptowsp_f32_from_f16(f16);
            break;
        case PTOWSP_ATTEND_BF16:
            memcpy(to + 2 * d, &bf16, 2), exact[d] = (double)ptowsp_f32_from_bf16(bf16);
            break;
        default: memcpy(to + d, &byte, 1), exact[d] = byte * (double)scale; break;
        }
    }
}

// The strides of the layout: of keys and values, and of scales.
static inline void make_strides(scene *c) {
    const size_t heads = c->s.config.kv_head_count, page = c->s.config.page_size;
    const size_t k = c->key_dim, v = c->value_dim, both = k > v ? k : v;
    ptowsp_attend_cache *kv = &c->kv;
    ptowsp_attend_strides keys = {page * heads * k, heads * k, k};
    ptowsp_attend_strides values = {page * heads * v, heads * v, v};
    ptowsp_attend_strides scales = {page * heads, heads, 1};
    kv->keys = c->cache[0];
    kv->values = c->cache[1];
    kv->page_size = (uint32_t)page;
    switch ((layout)c->at.at[LAYOUT]) {
    case LAYOUT_BLOCKS:
        keys.page = heads * 2 * page * both, keys.token = both, keys.head = 2 * page * both;
        values = keys;
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
    kv->value_scales = c->at.at[LAYOUT] == LAYOUT_LATENT ? c->scales[0] : c->scales[1];
}

static inline size_t place_of(const scene *c, const ptowsp_attend_strides *strides, uint32_t i,
                              uint32_t t, uint32_t head) {
    const uint32_t page = c->kv.page_size, *pages = c->pages + c->page_starts[i];
    const size_t at = page > 0 ? pages[t / page] : pages[0], slot = page > 0 ? t % page : t;
    return at * strides->page + slot * strides->token + head * strides->head;
}

static inline void make_cache(scene *c, uint64_t *state) {
    const uint32_t heads = c->s.config.kv_head_count;
    const size_t both = c->key_dim > c->value_dim ? c->key_dim : c->value_dim;
    const size_t slots = (c->page_starts[SEQUENCES] + (size_t)c->tokens) * 16 * heads;
    ptowsp_attend_cache *kv = &c->kv;
    kv->type = (ptowsp_attend_type)c->at.at[TYPE];
    kv->key_dim = c->key_dim;
    kv->value_dim = c->value_dim;
    for (int i = 0; i < 2; i++) {
        c->cache[i] = (char *)room(ptowsp_attend_bytes(kv->type, slots * 2 * both), 1);
        c->scales[i] = (float *)room(slots, sizeof(float));
        for (size_t k = 0; k < slots; k++) {
            c->scales[i][k] = (1.0f + 0.3f * some(state)) / 127.0f;
        }
    }
    c->keys = (double *)room((size_t)c->tokens * heads * c->key_dim, sizeof(double));
    c->values = (double *)room((size_t)c->tokens * heads * c->value_dim, sizeof(double));
    make_strides(c);
    char *values = c->at.at[LAYOUT] == LAYOUT_BLOCKS
                       ? c->cache[0] + ((const char *)kv->values - c->cache[0])
                       : c->cache[1];
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        for (uint32_t t = 0; t < (uint32_t)c->s.kv[i]; t++) {
            for (uint32_t head = 0; head < heads; head++) {
                const size_t row = (size_t)(c->kv_begin[i] + t) * heads + head;
                const size_t scale = place_of(c, &kv->scale_strides, i, t, head);
                double *key = c->keys + row * c->key_dim, *value = c->values + row * c->value_dim;
                if (c->at.at[PREFIX] && i > 0 && t < SHARED) {  // as in the first request
                    const size_t first = (size_t)t * heads + head;
                    memcpy(key, c->keys + first * c->key_dim, c->key_dim * sizeof *key);
                    memcpy(value, c->values + first * c->value_dim, c->value_dim * sizeof *value);
                    continue;
                }
                put_row(kv->type,
                        c->cache[0] + ptowsp_attend_bytes(
                                          kv->type, place_of(c, &kv->key_strides, i, t, head)),
                        c->key_dim, c->scales[0][scale], key, state);
                if (c->at.at[LAYOUT] == LAYOUT_LATENT) {
                    memcpy(value, key, c->value_dim * sizeof *value);
                    continue;
                }
                put_row(kv->type,
                        values + ptowsp_attend_bytes(kv->type,
                                                     place_of(c, &kv->value_strides, i, t, head)),
                        c->value_dim, c->scales[1][scale], value, state);
            }
        }
    }
}

static inline void make_step(scene *c, uint64_t *state) {
    const uint8_t *at = c->at.at;
    ptowsp_attend_step *step = &c->step;
    const size_t all = c->query_tokens * c->rows;
    c->queries = (float *)room(all * c->key_dim, sizeof(float));
    c->outputs = (float *)room(all * c->value_dim, sizeof(float));
    c->lse = (float *)room(all, sizeof(float));
    for (size_t i = 0; i < all * c->key_dim; i++) {
        c->queries[i] = 2.0f * some(state);
    }
    step->batch = &c->s.batch;
    step->config = &c->s.config;
    step->queries = c->queries;
    step->query_token_stride = (size_t)c->rows * c->key_dim;
    step->query_head_stride = c->key_dim;
    step->outputs = c->outputs;
    step->output_token_stride = (size_t)c->rows * c->value_dim;
    step->output_head_stride = c->value_dim;
    step->lse = c->lse;
    step->lse_token_stride = c->rows;
    step->lse_head_stride = 1;
    step->query_starts = c->query_starts;
    step->pages = c->pages;
    step->page_starts = c->page_starts;
    step->scale = at[SCALE] ? 0.2f : 0.0f;
    step->cap = at[CAP] ? 7.0f : 0.0f;
    step->sinks = at[SINKS] ? c->row_sinks : NULL;
    step->slopes = at[SLOPES] ? c->slopes : NULL;
    step->mask = at[MASK] ? c->mask : NULL;
    step->mask_stride = MASK_WORDS;
    step->mask_starts = at[MASK] == 2 ? c->mask_starts : NULL;
}

static inline scene *make_scene(const levels_of *at, uint64_t *state) {
    scene *c = (scene *)room(1, sizeof *c);
    c->at = *at;
    make_batch(c, state);
    make_config(c);
    make_tables(c, state);
    make_cache(c, state);
    make_step(c, state);
    return c;
}

static inline void free_scene(scene *c) {
    for (int i = 0; i < 2; i++) {
        free(c->cache[i]);
        free(c->scales[i]);
    }
    free(c->keys);
    free(c->values);
    free(c->queries);
    free(c->outputs);
    free(c->lse);
    free(c);
}

static inline void clear(scene *c) {
    memset(c->outputs, 0xff, c->query_tokens * c->rows * c->value_dim * sizeof(float));
    memset(c->lse, 0xff, c->query_tokens * c->rows * sizeof(float));
}

// -- running --------------------------------------------------------------------------------------

enum { THREADS = 4, WORKERS_MAX = 7 };

typedef struct thread {
    const ptowsp_attend_job *job;
    uint32_t worker;
} thread;

static inline void *thread_run(void *arg) {
    const thread *t = (const thread *)arg;
    return ptowsp_attend_run_worker(t->job, t->worker, THREADS, NULL) == PTOWSP_OK ? NULL : arg;
}

static inline void run_on_threads(const ptowsp_attend_job *job) {
    pthread_t ids[THREADS];
    thread threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        const thread one = {job, i};
        threads[i] = one;
        assert_int_equal(pthread_create(&ids[i], NULL, thread_run, &threads[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        void *failed;
        assert_int_equal(pthread_join(ids[i], &failed), 0);
        assert_null(failed);
    }
}

static inline void run_on_context(const ptowsp_attend_job *job) {
    const ptowsp_context_desc desc = {.threads = PTOWSP_THREADS_OWN, .lane_count = 3};
    ptowsp_context *context = test_context(&desc);
    assert_int_equal(ptowsp_attend_run(context, job), PTOWSP_OK);
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
                assert_int_equal(ptowsp_attend_work(job, &work[k]), PTOWSP_OK);
            } else if (!prefix || prefix->segments[ptowsp_work_request(&work[k])].is_whole) {
                assert_int_equal(ptowsp_attend_merge(job, &work[k]), PTOWSP_OK);
            }  // other merges are lists for joins
        }
    }
    for (uint32_t i = 0; prefix && i < prefix->join_count; i++) {
        assert_int_equal(ptowsp_attend_join(job, &prefix->joins[i]), PTOWSP_OK);
    }
}

static inline void fail_plan(const ptowsp_plan_info *info) {
    char text[200];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_plan_explain(info, ptowsp_output_to_buffer(&buffer));
    fail_msg("%s", text);
}

// A job of a step, with its plan and memory.
typedef struct made_job {
    ptowsp_attend_job job;
    ptowsp_attend_limits limits;
    ptowsp_attention_plan plan;  // of section 9
    ptowsp_prefix_plan prefix;   // of section 12
    void *block, *memory;
} made_job;

static inline void make_plan(const ptowsp_attend_step *step, made_job *out) {
    ptowsp_plan_info info;
    if (ptowsp_attention_size(step->batch, step->config, &out->limits.plan, &info)) {
        fail_plan(&info);
    }
    const uint64_t bytes = out->limits.plan.block_bytes;
    out->block = room(1, (size_t)bytes);
    assert_int_equal(ptowsp_attention_place(&out->limits.plan, out->block, bytes, &out->plan),
                     PTOWSP_OK);
    assert_int_equal(ptowsp_attention_generate(step->batch, step->config, &out->plan, NULL),
                     PTOWSP_OK);
}

static uint32_t shared_segments;  // of all prefix plans that were made

// The requests that have KV share the first block of it.
static inline void make_prefix_plan(const ptowsp_attend_step *step, made_job *out) {
    static const uint64_t ids[] = {7, 7, 7}, begin[SEQUENCES + 1] = {0, 1, 2, 2, 3};
    const ptowsp_prefix_batch batch = {*step->batch, ids, begin, SHARED};
    const ptowsp_prefix_limits limits = {SEQUENCES, SEQUENCES};
    const uint64_t bytes = ptowsp_prefix_tree_bytes(&limits);
    ptowsp_prefix_tree tree;
    ptowsp_prefix_sizes sizes;
    ptowsp_plan_info info;
    void *block = room(1, (size_t)bytes);
    assert_int_equal(ptowsp_prefix_tree_place(&limits, block, bytes, &tree), PTOWSP_OK);
    if (ptowsp_prefix_build(&batch, &tree, &info) ||
        ptowsp_prefix_size(step->batch, step->config, &tree, &sizes, &info)) {
        fail_plan(&info);
    }
    out->limits.plan = sizes.attention;
    out->limits.join_count = sizes.join_count;
    out->block = room(1, (size_t)sizes.block_bytes);
    assert_int_equal(ptowsp_prefix_place(&sizes, out->block, sizes.block_bytes, &out->prefix),
                     PTOWSP_OK);
    if (ptowsp_prefix_generate(step->batch, step->config, &tree, &out->prefix, &info) ||
        ptowsp_prefix_check(step->batch, step->config, &tree, &out->prefix, &info)) {
        fail_plan(&info);
    }
    shared_segments += out->prefix.shared_count;  // none, where sharing is not faster
    free(block);
}

static inline void make_job(const scene *c, ptowsp_attend_step *step, bool is_prefix,
                            made_job *out) {
    uint64_t bytes;
    memset(out, 0, sizeof *out);
    if (is_prefix) {
        make_prefix_plan(step, out);
    } else {
        make_plan(step, out);
    }
    out->limits.value_dim = c->value_dim;
    out->limits.worker_count = WORKERS_MAX;
    assert_int_equal(ptowsp_attend_size(&out->limits, &bytes, NULL), PTOWSP_OK);
    out->memory = room(1, (size_t)bytes);
    assert_int_equal(ptowsp_attend_place(&out->limits, out->memory, bytes, &out->job.memory, NULL),
                     PTOWSP_OK);
    step->plan = is_prefix ? &out->prefix.attention : &out->plan;
    step->prefix = is_prefix ? &out->prefix : NULL;
    out->job.cache = &c->kv;
    out->job.step = step;
}

static inline void free_job(made_job *made) {
    free(made->memory);
    free(made->block);
}

// Plans and runs a step as WORKERS says. Returns the slots of the plan.
static inline uint32_t run(const scene *c, ptowsp_attend_step step, bool is_prefix, workers how,
                           bool is_stealing) {
    static const uint32_t counts[] = {1, 2, WORKERS_MAX};
    ptowsp_plan_info info;
    made_job made;
    make_job(c, &step, is_prefix, &made);
    made.job.is_stealing = is_stealing;
    if (ptowsp_attend_check(&made.job, &info)) {
        fail_plan(&info);
    }
    for (uint32_t i = how <= WORKERS_SEVEN ? counts[how] : 0; i-- > 0;) {
        assert_int_equal(ptowsp_attend_run_worker(&made.job, i, counts[how], NULL), PTOWSP_OK);
    }
    if (how == WORKERS_THREADS) {
        run_on_threads(&made.job);
    } else if (how == WORKERS_CONTEXT) {
        run_on_context(&made.job);
    } else if (how == WORKERS_LAUNCH) {
        run_launch(&made.job);
    }
    free_job(&made);
    return is_prefix ? made.prefix.attention.slot_count : made.plan.slot_count;
}

// -- the reference --------------------------------------------------------------------------------

static inline double line_at(const int32_t *first, const int32_t *stride, uint32_t i,
                             int64_t standard, int64_t at) {
    return (double)((first ? first[i] : standard) + at * (stride ? stride[i] : 1));
}

// The score of a token, or -INFINITY; *largest grows to what roundings of f32 are relative to.
static inline double score_of(const scene *c, uint32_t i, uint32_t j, uint32_t head, uint32_t t,
                              double *largest) {
    const ptowsp_attention_positions *p = &c->s.positions;
    const uint32_t heads = c->s.config.kv_head_count, token = c->query_starts[i] + j;
    const int64_t bit = (int64_t)t - c->mask_starts[i];
    if (!positions_sees(&c->s, i, j, t) ||
        (c->at.at[MASK] > 0 && bit >= 0 &&
         !(c->mask[token * MASK_WORDS + (uint32_t)bit / 32] >> bit % 32 & 1))) {
        return -INFINITY;
    }
    const float *query = c->queries + ((size_t)token * c->rows + head) * c->key_dim;
    const double *key =
        c->keys +
        ((size_t)(c->kv_begin[i] + t) * heads + head / groups[c->at.at[GROUP]]) * c->key_dim;
    double score = 0, magnitude = 0;
    for (uint32_t d = 0; d < c->key_dim; d++) {
        score += (double)query[d] * key[d];
        magnitude += fabs((double)query[d] * key[d]);
    }
    const double scale = c->at.at[SCALE] ? (double)0.2f : 1.0 / sqrt(c->key_dim);
    score *= scale;
    score = c->at.at[CAP] ? 7.0 * tanh(score / 7.0) : score;
    double bias = 0;
    if (c->at.at[SLOPES]) {
        const int64_t last = c->s.kv[i] - (int64_t)queries_of(c, i);
        bias = (double)c->slopes[head] * fabs(line_at(p->query_first, p->query_stride, i, last, j) -
                                              line_at(p->kv_first, p->kv_stride, i, 0, t));
    }
    *largest = fmax(*largest, magnitude * scale + bias);
    return score - bias;
}

static inline void check_row(const scene *c, uint32_t i, uint32_t j, uint32_t head) {
    const size_t row = (size_t)(c->query_starts[i] + j) * c->rows + head;
    const double sink = c->at.at[SINKS] ? (double)c->row_sinks[head] : -INFINITY;
    const uint32_t kv = c->s.kv[i] < KV_MAX ? (uint32_t)c->s.kv[i] : KV_MAX;  // no more are seen
    double scores[KV_MAX], out[512] = {0}, top = sink, largest = 1.0;
    for (uint32_t t = 0; t < kv; t++) {
        scores[t] = score_of(c, i, j, head, t, &largest);
        top = fmax(top, scores[t]);
    }
    double sum = top > -INFINITY ? exp(sink - top) : 0;
    for (uint32_t t = 0; t < kv && top > -INFINITY; t++) {
        const double weight = exp(scores[t] - top);
        const double *value =
            c->values + ((size_t)(c->kv_begin[i] + t) * c->s.config.kv_head_count +
                         head / groups[c->at.at[GROUP]]) *
                            c->value_dim;
        sum += weight;
        for (uint32_t d = 0; d < c->value_dim && weight > 0; d++) {
            out[d] += weight * value[d];
        }
    }
    const double tolerance = (64.0 + 8.0 * largest) / (1 << 24);
    if (sum == 0) {
        assert_true(c->lse[row] == -INFINITY);
    } else {
        assert_true(fabs((double)c->lse[row] - top - log(sum)) <= tolerance);
    }
    for (uint32_t d = 0; d < c->value_dim; d++) {
        const double exact = sum > 0 ? out[d] / sum : 0;
        assert_true(fabs((double)c->outputs[row * c->value_dim + d] - exact) <= tolerance);
    }
}

// Rows of requests without KV are not written, unless there are positions.
static inline bool has_rows(const scene *c, uint32_t i) {
    return c->s.kv[i] > 0 || positions_are_there(&c->s);
}

static inline void check_values(const scene *c) {
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        for (uint32_t row = 0; has_rows(c, i) && row < queries_of(c, i) * c->rows; row++) {
            check_row(c, i, row / c->rows, row % c->rows);
        }
    }
}

#endif
