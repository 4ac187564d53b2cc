// Features of steps of attention, each with some levels, for tests that cross them (attend_pairs_test.c) or draw
// them at random.

#ifndef ATTEND_LEVELS_H
#define ATTEND_LEVELS_H

#include "attend_scene.h"

#define FEATURES(FEATURE)                                                                          \
    FEATURE(TYPE, 6)     /* as ptowsp_attend_type */                                               \
    FEATURE(DIMS, 6)     /* see dims */                                                            \
    FEATURE(LAYOUT, 4)   /* as layout */                                                           \
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
    FEATURE(WORKERS, 6)  /* as workers */                                                          \
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

// Random levels, of which a test may set some.
static inline levels_of random_levels(uint64_t *state) {
    levels_of c;
    for (uint32_t i = 0; i < COUNT; i++) {
        c.at[i] = (uint8_t)test_random_in(state, 0, levels[i] - 1);
    }
    return c;
}

// Lengths and positions of four sequences, of which the third has no KV.
static inline void levels_batch(scene *c, const uint8_t *at, uint64_t *state) {
    positions_sample *s = &c->s;
    const int32_t most[3] = {1, 6, 20};
    s->batch.query_lengths = at[QUERIES] > 0 ? s->queries : NULL;
    s->batch.sequence_count = s->positions.sequence_count = 4;
    for (uint32_t i = 0; i < 4; i++) {
        const int64_t least = at[PREFIX] ? 140 : i == 0 ? 90 : 1;
        const int64_t kv = i == 2 ? 0 : test_random_in(state, least, at[PREFIX] ? 190 : 150);
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

static inline void levels_config(scene *c, const uint8_t *at) {
    static const ptowsp_tier two[2] = {{0, 1, 90}, {5, 91, 190}};
    static const uint32_t lanes[3] = {1, 3, 16}, pages[3] = {1, 4, 16};
    ptowsp_attention_config *config = &c->s.config;
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
    config->tiers = at[TIERS] ? two : NULL;
    config->tier_count = at[TIERS] ? 2 : 0;
}

static inline scene *levels_make(const levels_of *of, bool has_nan, uint64_t *state) {
    scene *c = (scene *)test_alloc(1, sizeof *c);
    const uint8_t *at = of->at;
    levels_batch(c, at, state);
    levels_config(c, at);
    c->type = (ptowsp_attend_type)at[TYPE];
    c->layout = (layout)at[LAYOUT];
    c->key_dim = dims[at[DIMS]][0];
    c->value_dim = dims[at[DIMS]][1];
    c->mask_words = at[MASK] ? 6 : 0;
    c->has_mask_starts = at[MASK] == 2;
    c->has_sinks = at[SINKS];
    c->has_slopes = at[SLOPES];
    c->has_prefix = at[PREFIX];
    c->has_nan = has_nan;
    c->cap = at[CAP] ? 7.0f : 0.0f;
    c->scale = at[SCALE] ? 0.2f : 0.0f;
    scene_make(c, test_random(state));
    return c;
}

// Random features of section 9 that go together, small.
static inline levels_of small_levels(uint64_t *state) {
    levels_of c;
    do {
        c = random_levels(state);
        c.at[DIMS] = c.at[TYPE] < PTOWSP_ATTEND_Q8_0 ? c.at[DIMS] % 3 : 2;  // small ones
        c.at[GROUP] %= 3;
        c.at[PREFIX] = 0;  // the check of a job cannot prove such a plan
    } while (!is_allowed(&c));
    return c;
}

#endif
