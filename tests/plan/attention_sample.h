// Random batches and configurations for attention plans, and buffers between guard bytes.

#ifndef PTOWSP_ATTENTION_SAMPLE_H
#define PTOWSP_ATTENTION_SAMPLE_H

#include "attention_judge.h"
#include "test.h"

// 1 to 2^bits, every order of magnitude equally likely.
static inline int64_t random_scaled(uint64_t *random, int64_t bits) {
    return test_random_in(random, 1, INT64_C(1) << test_random_in(random, 0, bits));
}

static inline bool random_one_in(uint64_t *random, uint64_t n) {
    return test_random(random) % n == 0;
}

static inline double random_unit(uint64_t *random) {
    return (double)(test_random(random) >> 11) * 0x1p-53;
}

// -- plans in buffers -----------------------------------------------------------------------------

#define GUARD_BYTES 64
#define GUARD_VALUE 0xa7

// The arrays of a plan in one block, each between guards.
typedef struct plan_buffer {
    ptowsp_attention_plan plan;
    unsigned char *block;
    size_t bytes;
    size_t at[6];  // of each array's guard; the last is behind all
    size_t sizes[5];
} plan_buffer;

// Points the plan's arrays into the block.
static inline void plan_buffer_point(plan_buffer *b, bool has_merges, bool has_costs) {
    void *starts[5];
    for (int i = 0; i < 5; i++) {
        starts[i] = b->block + b->at[i] + GUARD_BYTES;
    }
    b->plan.units = (ptowsp_work *)starts[0];
    b->plan.merges = has_merges ? (ptowsp_work *)starts[1] : NULL;
    b->plan.unit_begin = (uint32_t *)starts[2];
    b->plan.merge_begin = (uint32_t *)starts[3];
    b->plan.lane_costs = has_costs ? (double *)starts[4] : NULL;
}

static inline plan_buffer plan_buffer_make(uint64_t units, uint64_t merges, uint64_t slots,
                                           uint32_t lanes, bool has_costs) {
    plan_buffer b = {0};
    const size_t ranges = ((size_t)lanes + 1) * sizeof(uint32_t);
    b.sizes[0] = (size_t)units * sizeof(ptowsp_work);
    b.sizes[1] = (size_t)merges * sizeof(ptowsp_work);
    b.sizes[2] = ranges;
    b.sizes[3] = ranges;
    b.sizes[4] = has_costs ? lanes * sizeof(double) : 0;
    for (int i = 0; i < 5; i++) {
        b.at[i] = b.bytes;
        b.bytes += GUARD_BYTES + (b.sizes[i] + 7) / 8 * 8;
    }
    b.at[5] = b.bytes;
    b.bytes += GUARD_BYTES;
    b.block = (unsigned char *)test_alloc(b.bytes, 1);
    memset(b.block, GUARD_VALUE, b.bytes);
    plan_buffer_point(&b, merges > 0, has_costs);
    b.plan.unit_capacity = (uint32_t)units;
    b.plan.merge_capacity = (uint32_t)merges;
    b.plan.slot_capacity = (uint32_t)slots;
    return b;
}

// A buffer of the sizes, and `spare` more of each.
static inline plan_buffer plan_buffer_of(const ptowsp_attention_sizes *sizes, uint64_t spare,
                                         bool has_costs) {
    return plan_buffer_make(sizes->unit_count + spare, sizes->merge_count + spare,
                            sizes->slot_count + spare, sizes->lane_count, has_costs);
}

static inline void plan_buffer_assert_guards(const plan_buffer *b) {
    for (int i = 0; i < 6; i++) {
        size_t from = i ? b->at[i - 1] + GUARD_BYTES + b->sizes[i - 1] : 0;
        for (size_t j = from; j < b->at[i] + GUARD_BYTES; j++) {
            if (b->block[j] != GUARD_VALUE) {
                fail_msg("a byte next to array %d was written", i);
            }
        }
    }
}

static inline plan_buffer plan_buffer_copy(const plan_buffer *b) {
    plan_buffer copy = *b;
    copy.block = (unsigned char *)test_alloc(b->bytes, 1);
    memcpy(copy.block, b->block, b->bytes);
    plan_buffer_point(&copy, b->plan.merges != NULL, b->plan.lane_costs != NULL);
    return copy;
}

// Nothing has changed since the copy was made, neither in arrays nor in the plan.
static inline void plan_buffer_assert_same(const plan_buffer *b, const plan_buffer *copy) {
    assert_memory_equal(b->block, copy->block, b->bytes);
    const ptowsp_attention_plan *x = &b->plan, *y = &copy->plan;
    assert_true(x->unit_count == y->unit_count && x->merge_count == y->merge_count);
    assert_true(x->slot_count == y->slot_count && x->tile_count == y->tile_count);
    assert_true(x->lane_count == y->lane_count && x->tile_tokens == y->tile_tokens);
    assert_true(x->group == y->group && x->slot_rows == y->slot_rows);
    assert_true(x->unit_capacity == y->unit_capacity && x->merge_capacity == y->merge_capacity);
    assert_true(x->slot_capacity == y->slot_capacity);
    assert_true(memcmp(&x->cost_max, &y->cost_max, sizeof(double)) == 0);
    assert_true(memcmp(&x->cost_mean, &y->cost_mean, sizeof(double)) == 0);
}

// -- random batches -------------------------------------------------------------------------------

#define SAMPLE_TIERS_MAX 8
#define SAMPLE_LANES_MAX 300

typedef struct sample {
    uint64_t number, random;
    ptowsp_attention_config config;
    ptowsp_attention_batch batch;
    int32_t *kv, *queries;  // blocks of exactly their size
    uint32_t speeds[SAMPLE_LANES_MAX];
    ptowsp_tier tiers[SAMPLE_TIERS_MAX];
    reference_rules rules;
    uint64_t tile_count, unit_count_max;
} sample;

static inline void sample_costs(uint64_t *random, ptowsp_attention_cost *cost) {
    double parts[4];
    uint64_t kind = test_random(random) % 8;
    for (int i = 0; i < 4; i++) {
        double part = 0.5 + random_unit(random);
        parts[i] = ldexp(part, (int)test_random_in(random, -6, 6));
        parts[i] = random_one_in(random, 6) ? 0 : parts[i];
    }
    if (kind == 0) {  // one alone
        uint64_t one = test_random(random) % 4;
        for (uint64_t i = 0; i < 4; i++) {
            parts[i] = i == one ? parts[i] : 0;
        }
    } else if (kind == 1) {  // as far apart as allowed
        for (int i = 0; i < 4; i++) {
            parts[i] = random_one_in(random, 2) ? 1 : random_one_in(random, 2) ? 0x1p30 : 0x1p15;
        }
    } else if (kind == 2) {  // any unit
        double scale = ldexp(1, (int)test_random_in(random, -90, 90));
        for (int i = 0; i < 4; i++) {
            parts[i] *= scale;
        }
    }
    cost->per_unit = parts[0];
    cost->per_token = parts[1];
    cost->per_row_token = parts[2];
    cost->per_merged_row = parts[3];
}

static inline void sample_speeds(sample *s) {
    uint32_t lanes = s->config.lane_count;
    uint64_t kind = test_random(&s->random) % 6;
    if (kind > 3) {
        return;
    }
    bool any = false;
    for (uint32_t i = 0; i < lanes; i++) {
        uint32_t speed = test_random_u32(&s->random, 1, 4);
        speed = kind == 1 && random_one_in(&s->random, 2) ? 0 : speed;
        speed = kind == 2 ? (uint32_t)(random_scaled(&s->random, 32) - 1) : speed;
        speed = kind == 3 ? 7 : speed;
        s->speeds[i] = speed;
        any = any || speed > 0;
    }
    s->speeds[test_random(&s->random) % lanes] += !any;
    s->config.lane_speeds = s->speeds;
}

static inline void sample_tiers(sample *s) {
    if (!random_one_in(&s->random, 4)) {
        return;
    }
    uint32_t count = 0, inner = test_random_u32(&s->random, 0, SAMPLE_TIERS_MAX - 1);
    while (count < inner) {
        s->tiers[count].id = (uint8_t)test_random_in(&s->random, 0, 255);
        s->tiers[count].length_min = (int32_t)random_scaled(&s->random, 14);
        s->tiers[count].length_max =
            s->tiers[count].length_min + (int32_t)random_scaled(&s->random, 14);
        count++;
    }
    s->tiers[count].id = (uint8_t)test_random_in(&s->random, 0, 255);
    s->tiers[count].length_min = 1;
    s->tiers[count++].length_max = INT32_MAX;
    s->config.tiers = s->tiers;
    s->config.tier_count = count;
}

static inline void sample_config(sample *s) {
    uint64_t *random = &s->random;
    ptowsp_attention_config *config = &s->config;
    config->kv_head_count = (uint32_t)random_scaled(random, random_one_in(random, 16) ? 6 : 3);
    config->group = random_one_in(random, 3) ? 0 : (uint32_t)random_scaled(random, 5);
    config->group = random_one_in(random, 16) ? (uint32_t)random_scaled(random, 8) : config->group;
    config->lane_count = (uint32_t)random_scaled(random, random_one_in(random, 4) ? 8 : 5);
    config->lane_count =
        random_one_in(random, 32) ? test_random_u32(random, 1, 300) : config->lane_count;
    sample_speeds(s);
    config->mode =
        random_one_in(random, 3) ? PTOWSP_ATTENTION_INVARIANT : PTOWSP_ATTENTION_BALANCED;
    config->is_causal = random_one_in(random, 2);
    uint64_t window = test_random(random) % 8;
    config->window = window < 5 ? 0 : (uint32_t)random_scaled(random, window == 5 ? 6 : 13);
    config->window = random_one_in(random, 24) ? UINT32_MAX : config->window;
    uint64_t page = test_random(random) % 8;
    config->page_size = page < 2 ? 0 : (uint32_t)random_scaled(random, page == 7 ? 12 : 6);
    config->page_size = random_one_in(random, 48) ? 0x40000000u : config->page_size;
    config->tile_rows = random_one_in(random, 2) ? 0 : (uint32_t)random_scaled(random, 8);
    config->piece_min = random_one_in(random, 2) ? 0 : (uint32_t)random_scaled(random, 11);
    config->piece_min = random_one_in(random, 48) ? 0x7fffffffu : config->piece_min;
    uint64_t pages = config->page_size ? config->page_size : 1;
    uint64_t chunk = (uint64_t)random_scaled(random, 10) * pages;
    config->chunk = random_one_in(random, 4) || chunk > UINT32_MAX ? 0 : (uint32_t)chunk;
    uint64_t parts = chunk / pages, part = (uint64_t)random_scaled(random, 5);
    config->grain = config->chunk > 0 && random_one_in(random, 2) && parts % part == 0
                        ? (uint32_t)(chunk / part)  // parts / part pages, which divide the chunk
                        : 0;
    if (!random_one_in(random, 3)) {
        sample_costs(random, &config->cost);
    }
    sample_tiers(s);
    config->shares_merges = random_one_in(random, 3);
    s->rules = reference_rules_of(config);
}

// A length of some kind; kinds from 8 on are mixed by the caller.
static inline int32_t sample_length(sample *s, uint64_t kind, int32_t same) {
    uint64_t *random = &s->random;
    int64_t cut = (int64_t)(s->rules.is_invariant ? s->rules.chunk : s->rules.page_size);
    int64_t length = 0;
    switch (kind) {
    case 0: length = test_random_in(random, 0, 1); break;
    case 1: length = same; break;
    case 2: length = random_scaled(random, 13); break;
    case 3: length = test_random_in(random, 0, 700); break;
    case 4: length = cut * random_scaled(random, 5) + test_random_in(random, -1, 1); break;
    case 5: length = random_one_in(random, 10) ? 50000 : test_random_in(random, 0, 40); break;
    case 6: length = (int64_t)s->rules.window + test_random_in(random, -1, 1); break;
    default: length = random_one_in(random, 64) ? INT32_MAX : random_scaled(random, 16); break;
    }
    return length < 0 || length > INT32_MAX ? (int32_t)random_scaled(random, 8) : (int32_t)length;
}

// The number of queries of a sequence of n KV tokens, 0 to n where causal.
static inline int32_t sample_queries(sample *s, uint64_t kind, int32_t n) {
    int64_t queries = 1;
    switch (kind) {
    case 0: queries = 0; break;
    case 1: queries = 1; break;
    case 2: queries = random_scaled(&s->random, 4); break;
    case 3: queries = n < 2000 ? n : 100; break;  // the whole of it is prefilled
    default: queries = random_scaled(&s->random, 9); break;
    }
    return (int32_t)(s->config.is_causal && queries > n ? n : queries);
}

static inline void sample_count(sample *s) {
    s->tile_count = reference_tile_count(&s->batch, &s->rules);
    s->unit_count_max = s->tile_count + s->config.lane_count - 1;
    if (s->rules.is_invariant) {
        s->unit_count_max = 0;
        for (uint32_t i = 0; i < s->batch.sequence_count; i++) {
            uint64_t kv = (uint64_t)s->batch.kv_lengths[i];
            uint64_t tiles = reference_ceil(reference_queries(&s->batch, i), s->rules.tile_tokens);
            s->unit_count_max +=
                s->rules.kv_head_count * tiles * reference_ceil(kv, s->rules.chunk);
        }
    }
}

// Makes a plan small enough to be judged slowly.
static inline void sample_shrink(sample *s, uint64_t units_max) {
    for (sample_count(s); s->tile_count > units_max || s->unit_count_max > units_max + 300;
         sample_count(s)) {
        if (s->tile_count > units_max && s->config.kv_head_count > 1) {
            s->config.kv_head_count = 1;
        } else if (s->tile_count > units_max && s->queries) {
            for (uint32_t i = 0; i < s->batch.sequence_count; i++) {
                s->queries[i] /= 2;
            }
        } else {
            for (uint32_t i = 0; i < s->batch.sequence_count; i++) {
                s->kv[i] =
                    s->kv[i] / 4 > (s->queries ? s->queries[i] : 1) ? s->kv[i] / 4 : s->kv[i];
                if (s->kv[i] > 2000 && s->queries) {
                    s->queries[i] /= 2;
                }
            }
            if (s->config.chunk < 0x10000000u) {
                s->config.chunk = (uint32_t)s->rules.chunk * 2;
            }
        }
        s->rules = reference_rules_of(&s->config);
    }
}

static inline void sample_batch(sample *s, uint32_t count) {
    s->kv = (int32_t *)test_alloc(count, sizeof(int32_t));
    s->queries = (int32_t *)test_alloc(count, sizeof(int32_t));
    uint64_t kind = test_random(&s->random) % 12, query_kind = test_random(&s->random) % 8;
    int32_t same = (int32_t)random_scaled(&s->random, 12);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t mine = test_random(&s->random) % (kind == 11 ? 8 : 7);
        s->kv[i] = sample_length(s, kind < 8 ? kind : mine, same);
        mine = test_random(&s->random) % 5;
        s->queries[i] = sample_queries(s, query_kind < 5 ? query_kind : mine, s->kv[i]);
    }
    s->batch.kv_lengths = s->kv;
    s->batch.query_lengths = s->queries;
    if (random_one_in(&s->random, 3)) {
        s->queries = NULL;
        s->batch.query_lengths = NULL;
    }
    s->batch.sequence_count = count;
}

static inline void sample_make(sample *s, uint64_t seed, uint64_t number) {
    memset(s, 0, sizeof *s);
    s->number = number;
    s->random = seed + number * UINT64_C(1000003);
    sample_config(s);
    uint32_t count = (uint32_t)random_scaled(&s->random, random_one_in(&s->random, 64) ? 8 : 5);
    sample_batch(s, random_one_in(&s->random, 32) ? 0 : count);
    sample_shrink(s, random_one_in(&s->random, 64) ? 4000 : 400);
}

// What to tell of a batch that failed, so that it can be made by hand.
static inline void sample_print(const sample *s) {
    const ptowsp_attention_config *c = &s->config;
    print_message("batch %llu: heads %u, group %u, lanes %u, speeds %s, mode %d, causal %d, "
                  "window %u, page %u, tile rows %u, piece_min %u, chunk %u, tiers %u, shares %d,\n"
                  "cost {%a, %a, %a, %a}, %u sequences:",
                  (unsigned long long)s->number, c->kv_head_count, c->group, c->lane_count,
                  c->lane_speeds ? "given" : "NULL", (int)c->mode, (int)c->is_causal, c->window,
                  c->page_size, c->tile_rows, c->piece_min, c->chunk, c->tier_count,
                  (int)c->shares_merges, c->cost.per_unit, c->cost.per_token, c->cost.per_row_token,
                  c->cost.per_merged_row, s->batch.sequence_count);
    for (uint32_t i = 0; i < s->batch.sequence_count && i < 40; i++) {
        print_message(" %d", s->kv[i]);
        if (s->queries) {
            print_message("/%d", s->queries[i]);
        }
    }
    for (uint32_t i = 0; c->lane_speeds && i < c->lane_count && i < 40; i++) {
        print_message("%s%u", i ? " " : "\nspeeds: ", c->lane_speeds[i]);
    }
    print_message("\n");
}

// Whether the fixed-point costs of a batch may be too large for the planner: more than 2^63 parts
// of 0.1 % of the smallest cost.
static inline bool sample_may_overflow(const sample *s) {
    const ptowsp_attention_cost *cost = &s->rules.cost;
    const double parts[] = {cost->per_unit, cost->per_token, cost->per_row_token,
                            cost->per_merged_row};
    double least = INFINITY, total = 0;
    for (int i = 0; i < 4; i++) {
        least = parts[i] > 0 && parts[i] < least ? parts[i] : least;
    }
    reference_tiles all = reference_tiles_of(&s->batch, &s->rules);
    for (uint64_t t = 0; t < all.count; t++) {
        const reference_tile *tile = &all.tiles[t];
        double kv = (double)(tile->end - tile->begin);
        double pieces = s->rules.is_invariant ? (double)reference_chunks(&s->rules, tile) : 1;
        total += reference_unit_cost(&s->rules, tile->rows, kv) + pieces * cost->per_unit;
        total +=
            (pieces + (double)s->rules.lane_count) * reference_merge_cost(&s->rules, tile->rows, 1);
    }
    reference_tiles_free(&all);
    // Times a speed, as shares of a total by speed are found by such a product.
    double speed = 1;
    for (uint64_t i = 0; i < s->rules.lane_count; i++) {
        double mine = reference_speed(&s->rules, i);
        speed = mine > speed ? mine : speed;
    }
    return total / least * 1000 * speed > 0x1p57;
}

// -- demands -------------------------------------------------------------------------------------

static inline void require(const sample *s, bool condition, const char *what) {
    if (!condition) {
        sample_print(s);
        fail_msg("%s", what);
    }
}

static inline void require_good(const sample *s, const ptowsp_attention_plan *plan,
                                double *out_cost_max) {
    reference_verdict verdict = reference_judge(&s->batch, &s->config, plan, out_cost_max);
    if (verdict.grade != REFERENCE_GOOD) {
        sample_print(s);
        fail_msg("%s: %s", verdict.grade == REFERENCE_WRONG ? "wrong" : "odd", verdict.text);
    }
    ptowsp_plan_info info;
    memset(&info, 0x77, sizeof info);
    ptowsp_status status = ptowsp_attention_check(&s->batch, &s->config, plan, &info);
    if (status != PTOWSP_OK || info.fault != PTOWSP_FAULT_NONE) {
        char text[200];
        ptowsp_plan_explain(&info, TEST_TEXT(text));
        sample_print(s);
        fail_msg("check refuses a good plan: %s", text);
    }
}

// Sizes of a batch. False: it is refused, as its costs are beyond what fixed point can hold.
static inline bool size_of(const sample *s, ptowsp_attention_sizes *out_sizes) {
    ptowsp_plan_info info;
    memset(&info, 0x77, sizeof info);
    ptowsp_status status = ptowsp_attention_size(&s->batch, &s->config, out_sizes, &info);
    if (status == PTOWSP_LIMIT_EXCEEDED && sample_may_overflow(s)) {
        return false;
    }
    require(s, status == PTOWSP_OK, "size refuses a good batch");
    require(s, info.fault == PTOWSP_FAULT_NONE, "size reports a fault of a good batch");
    return true;
}

static inline bool same_plan(const ptowsp_attention_plan *x, const ptowsp_attention_plan *y) {
    size_t ranges = ((size_t)x->lane_count + 1) * sizeof(uint32_t);
    return x->unit_count == y->unit_count && x->merge_count == y->merge_count &&
           x->slot_count == y->slot_count && x->tile_count == y->tile_count &&
           x->lane_count == y->lane_count && x->tile_tokens == y->tile_tokens &&
           x->group == y->group && x->slot_rows == y->slot_rows && x->cost_max == y->cost_max &&
           x->cost_mean == y->cost_mean &&
           memcmp(x->units, y->units, x->unit_count * sizeof *x->units) == 0 &&
           (x->merge_count == 0 ||
            memcmp(x->merges, y->merges, x->merge_count * sizeof *x->merges) == 0) &&
           memcmp(x->unit_begin, y->unit_begin, ranges) == 0 &&
           memcmp(x->merge_begin, y->merge_begin, ranges) == 0;
}

#endif
