// Attention on CPUs, unit by unit: every variant that this machine runs, against plain
// softmax in double precision over the same (rounded) cache; what its contract says about bits,
// masks and reads; and number formats, against their definition.

#include "test.h"

#include "src/attend/attend.h"

#include <math.h>

// -- a batch with its cache -----------------------------------------------------------------------

enum { REQUESTS_MAX = 4, HEADS_MAX = 3, GROUP_MAX = 128, LENGTH_MAX = 300 };

typedef enum layout {
    LAYOUT_BLOCKS,      // [page][head][K or V][slot][dim]
    LAYOUT_SLOTS,       // [page][slot][head][dim], K and V apart
    LAYOUT_CONTIGUOUS,  // [token][head][dim], K and V apart
    LAYOUT_LATENT,      // [page][slot][dim], the values are the first elements of the keys
    LAYOUT_COUNT
} layout;

// What a test asks for; the rest is made from it.
typedef struct shape {
    ptowsp_attend_type type;
    layout layout;
    uint32_t key_dim, value_dim, page_size, heads, group, request_count;
    uint32_t queries[REQUESTS_MAX], lengths[REQUESTS_MAX];
    uint32_t window;
    float cap, scale, magnitude;  // magnitude: of the queries
    bool is_causal, has_equal_keys, has_sinks, has_slopes, has_mask;
} shape;

typedef struct batch {
    shape s;
    ptowsp_attend_cache kv;
    ptowsp_attend_step step;
    ptowsp_attention_batch of;
    ptowsp_attention_config config;
    ptowsp_attention_plan plan;  // of tiles alone
    uint32_t token_starts[REQUESTS_MAX + 1], page_starts[REQUESTS_MAX + 1];
    uint32_t query_starts[REQUESTS_MAX + 1];
    int32_t kv_lengths[REQUESTS_MAX], query_lengths[REQUESTS_MAX];
    uint32_t *pages, page_count;
    uint32_t *mask, mask_words, mask_starts[REQUESTS_MAX];
    double *keys, *values;  // [token of the batch][head][dim], as rounded in the cache
    void *cache[2];
    float *scales[2];
    float *queries, *outputs, *lse;
    float sinks[HEADS_MAX * GROUP_MAX], slopes[HEADS_MAX * GROUP_MAX];
} batch;

static float random_unit(uint64_t *state) {
    return (float)test_random_in(state, -1000000, 1000000) / 1000000.0f;
}

// Where an element lies, by the layout's definition.
static size_t cache_index(const batch *b, uint32_t is_value, uint32_t request, uint32_t token,
                          uint32_t head, uint32_t d) {
    const shape *s = &b->s;
    uint32_t dim = is_value ? s->value_dim : s->key_dim;
    if (s->layout == LAYOUT_CONTIGUOUS) {
        return ((size_t)(b->token_starts[request] + token) * s->heads + head) * dim + d;
    }
    size_t page = b->pages[b->page_starts[request] + token / s->page_size];
    size_t slot = token % s->page_size;
    if (s->layout == LAYOUT_BLOCKS) {  // both of the larger dimension
        dim = s->key_dim > s->value_dim ? s->key_dim : s->value_dim;
        return (((page * s->heads + head) * 2 + is_value) * s->page_size + slot) * dim + d;
    }
    if (s->layout == LAYOUT_SLOTS) {
        return ((page * s->page_size + slot) * s->heads + head) * dim + d;
    }
    return (page * s->page_size + slot) * s->key_dim + d;
}

static size_t scale_index(const batch *b, uint32_t request, uint32_t token, uint32_t head) {
    const shape *s = &b->s;
    if (s->layout == LAYOUT_CONTIGUOUS) {
        return (size_t)(b->token_starts[request] + token) * s->heads + head;
    }
    size_t page = b->pages[b->page_starts[request] + token / s->page_size];
    return (page * s->heads + head) * s->page_size + token % s->page_size;
}

// The same in a block of 32: a scale in f16, then 32 bytes, or 16 with two elements each, the first 16
// in low nibbles, as numbers from 0 that stand for those from -8.
static double block_put(ptowsp_attend_type type, unsigned char *cache, size_t at, uint32_t d,
                        float value) {
    const bool is_q4 = type == PTOWSP_ATTEND_Q4_0;
    const uint16_t half = ptowsp_f16_from_f32((is_q4 ? 1.0f / 8 : 1.0f / 127) *
                                              (0.75f + 0.25f * (float)(d / 32 % 3)));
    const float scale = ptowsp_f32_from_f16(half);
    const int least = is_q4 ? -8 : -127, most = is_q4 ? 7 : 127;
    unsigned char *block = cache + at / 32 * (is_q4 ? 18 : 34);
    int whole = (int)lrintf(value / scale);
    whole = whole < least ? least : whole > most ? most : whole;
    memcpy(block, &half, sizeof half);
    if (is_q4) {
        unsigned char *byte = block + 2 + at % 16;
        *byte = (unsigned char)(at % 32 < 16 ? (*byte & 0xf0) | (whole + 8)
                                             : (*byte & 0x0f) | (whole + 8) << 4);
    } else {
        block[2 + at % 32] = (unsigned char)(int8_t)whole;
    }
    return (double)whole * (double)scale;
}

// Writes an element, and returns it as rounded.
static double cache_put(batch *b, uint32_t is_value, size_t at, uint32_t d, float value,
                        float scale) {
    void *cache = b->s.layout == LAYOUT_BLOCKS || b->s.layout == LAYOUT_LATENT ? b->cache[0]
                                                                               : b->cache[is_value];
    switch (b->s.type) {
    case PTOWSP_ATTEND_F32: ((float *)cache)[at] = value; return (double)value;
    case PTOWSP_ATTEND_F16: {
        uint16_t half = ptowsp_f16_from_f32(value);
        ((uint16_t *)cache)[at] = half;
        return (double)ptowsp_f32_from_f16(half);
    }
    case PTOWSP_ATTEND_BF16: {
        uint16_t half = ptowsp_bf16_from_f32(value);
        ((uint16_t *)cache)[at] = half;
        return (double)ptowsp_f32_from_bf16(half);
    }
    case PTOWSP_ATTEND_Q8_0:
    case PTOWSP_ATTEND_Q4_0: return block_put(b->s.type, (unsigned char *)cache, at, d, value);
    default: break;
    }
    int8_t whole = (int8_t)lrintf(value * 127.0f);
    ((int8_t *)cache)[at] = whole;
    return (double)whole * (double)scale;
}

static void make_strides(batch *b) {
    const shape *s = &b->s;
    size_t heads = s->heads, slots = s->page_size, k = s->key_dim, v = s->value_dim;
    size_t both = k > v ? k : v;
    ptowsp_attend_cache *kv = &b->kv;
    ptowsp_attend_strides blocks = {heads * 2 * slots * both, both, 2 * slots * both};
    ptowsp_attend_strides key_slots = {slots * heads * k, heads * k, k};
    ptowsp_attend_strides value_slots = {slots * heads * v, heads * v, v};
    ptowsp_attend_strides key_tokens = {heads * k, heads * k, k}, latent = {slots * k, k, 0};
    ptowsp_attend_strides value_tokens = {heads * v, heads * v, v};
    ptowsp_attend_strides scale_pages = {heads * slots, 1, slots}, scale_tokens = {heads, heads, 1};
    bool is_contiguous = s->layout == LAYOUT_CONTIGUOUS;
    kv->keys = b->cache[0];
    kv->values = b->cache[1];
    kv->key_strides = is_contiguous ? key_tokens : key_slots;
    kv->value_strides = is_contiguous ? value_tokens : value_slots;
    if (s->layout == LAYOUT_BLOCKS) {
        kv->values = (char *)b->cache[0] + ptowsp_attend_bytes(s->type, slots * both);
        kv->key_strides = kv->value_strides = blocks;
    } else if (s->layout == LAYOUT_LATENT) {
        kv->values = kv->keys;
        kv->key_strides = kv->value_strides = latent;
    }
    kv->key_scales = b->scales[0];
    kv->value_scales = s->layout == LAYOUT_LATENT ? b->scales[0] : b->scales[1];
    kv->scale_strides = is_contiguous ? scale_tokens : scale_pages;
    kv->type = s->type;
    kv->key_dim = s->key_dim;
    kv->value_dim = s->value_dim;
    kv->page_size = is_contiguous ? 0 : s->page_size;
}

// Fills the cache. Elements of a (token, head) come from `seed`, so they are the same in every layout.
static void fill_cache(batch *b, uint64_t seed) {
    const shape *s = &b->s;
    for (uint32_t r = 0; r < s->request_count; r++) {
        for (uint32_t t = 0; t < s->lengths[r]; t++) {
            for (uint32_t h = 0; h < s->heads; h++) {
                size_t row = (size_t)(b->token_starts[r] + t) * s->heads + h;
                uint64_t state = seed + (s->has_equal_keys ? h : row) * 1000003;
                size_t scale = scale_index(b, r, t, h);
                b->scales[0][scale] = (1.0f + 0.5f * random_unit(&state)) / 127.0f;
                b->scales[1][scale] = (1.0f + 0.5f * random_unit(&state)) / 127.0f;
                for (uint32_t d = 0; d < s->key_dim; d++) {
                    b->keys[row * s->key_dim + d] =
                        cache_put(b, 0, cache_index(b, 0, r, t, h, d), d, random_unit(&state),
                                  b->scales[0][scale]);
                }
                state = seed + row * 1000033 + 7;
                for (uint32_t d = 0; d < s->value_dim; d++) {
                    b->values[row * s->value_dim + d] =
                        s->layout == LAYOUT_LATENT
                            ? b->keys[row * s->key_dim + d]
                            : cache_put(b, 1, cache_index(b, 1, r, t, h, d), d, random_unit(&state),
                                        b->scales[1][scale]);
                }
            }
        }
    }
}

static void make_pages(batch *b, uint64_t *state) {
    const shape *s = &b->s;
    for (uint32_t r = 0; r < s->request_count; r++) {
        b->token_starts[r + 1] = b->token_starts[r] + s->lengths[r];
        b->query_starts[r + 1] = b->query_starts[r] + s->queries[r];
        b->kv_lengths[r] = (int32_t)s->lengths[r];
        b->query_lengths[r] = (int32_t)s->queries[r];
        b->page_starts[r + 1] =
            b->page_starts[r] + (s->layout == LAYOUT_CONTIGUOUS
                                     ? 1
                                     : (s->lengths[r] + s->page_size - 1) / s->page_size);
    }
    b->page_count = b->page_starts[s->request_count];
    b->pages = (uint32_t *)test_alloc(b->page_count, sizeof *b->pages);
    for (uint32_t i = 0; i < b->page_count; i++) {
        uint32_t k = test_random_u32(state, 0, i);
        b->pages[i] = b->pages[k];
        b->pages[k] = i;
    }
    for (uint32_t r = 0; s->layout == LAYOUT_CONTIGUOUS && r < s->request_count; r++) {
        b->pages[r] = b->token_starts[r];
    }
}

// Bits that begin at any token of a request, sparse or dense, and may end before its end.
static void make_mask(batch *b, uint64_t *state) {
    const shape *s = &b->s;
    const uint32_t rows = b->query_starts[s->request_count];
    const bool is_dense = test_random(state) % 2;
    b->mask_words = test_random_u32(state, 1, 8);
    b->mask = (uint32_t *)test_alloc((size_t)rows * b->mask_words, sizeof *b->mask);
    for (uint32_t i = 0; i < rows * b->mask_words; i++) {
        const uint32_t some = (uint32_t)(test_random(state) & test_random(state));
        b->mask[i] = test_random(state) % 3 == 0 ? UINT32_MAX : is_dense ? ~some : some;
    }
    for (uint32_t r = 0; r < s->request_count; r++) {
        b->mask_starts[r] = test_random_u32(state, 0, s->lengths[r]);
    }
}

// Arrays have exact sizes: what reads past them is seen by ASan.
static void make_batch(batch *b, const shape *s, uint64_t seed) {
    *b = (batch){.s = *s};
    uint64_t state = seed;
    make_pages(b, &state);
    size_t tokens = b->token_starts[s->request_count];
    size_t slots = s->layout == LAYOUT_CONTIGUOUS ? tokens : (size_t)b->page_count * s->page_size;
    size_t both = s->key_dim > s->value_dim ? s->key_dim : s->value_dim;
    b->cache[0] = test_alloc(
        ptowsp_attend_bytes(s->type, slots * s->heads *
                                         (s->layout == LAYOUT_BLOCKS ? 2 * both : s->key_dim)),
        1);
    b->cache[1] = test_alloc(ptowsp_attend_bytes(s->type, slots * s->heads * s->value_dim), 1);
    b->scales[0] = (float *)test_alloc(slots * s->heads, sizeof(float));
    b->scales[1] = (float *)test_alloc(slots * s->heads, sizeof(float));
    b->keys = (double *)test_alloc(tokens * s->heads * s->key_dim, sizeof(double));
    b->values = (double *)test_alloc(tokens * s->heads * s->value_dim, sizeof(double));
    make_strides(b);
    fill_cache(b, seed);

    size_t rows = (size_t)b->query_starts[s->request_count] * s->heads * s->group;
    b->queries = (float *)test_alloc(rows * s->key_dim, sizeof(float));
    b->outputs = (float *)test_alloc(rows * s->value_dim, sizeof(float));
    b->lse = (float *)test_alloc(rows, sizeof(float));
    state = seed + 1;
    for (size_t i = 0; i < rows * s->key_dim; i++) {
        b->queries[i] = random_unit(&state) * s->magnitude;
    }
    make_mask(b, &state);
    for (size_t i = 0; i < HEADS_MAX * GROUP_MAX; i++) {
        b->slopes[i] = 1.0f / (float)(2 << i % 8);
        b->sinks[i] = i % 7 == 3 ? -INFINITY : 6.0f * random_unit(&state);
    }
    b->step.queries = b->queries;
    b->step.query_head_stride = s->key_dim;
    b->step.query_token_stride = (size_t)s->key_dim * s->heads * s->group;
    b->step.outputs = b->outputs;
    b->step.output_head_stride = s->value_dim;
    b->step.output_token_stride = (size_t)s->value_dim * s->heads * s->group;
    b->step.lse = b->lse;
    b->step.lse_head_stride = 1;
    b->step.lse_token_stride = (size_t)s->heads * s->group;
    b->step.pages = b->pages;
    b->config.group = s->group;
    b->step.scale = s->scale;
    b->step.cap = s->cap;
    b->config.window = s->window;
    b->config.is_causal = s->is_causal;
    b->step.query_starts = b->query_starts;
    b->of.kv_lengths = b->kv_lengths;
    b->of.query_lengths = b->query_lengths;
    b->of.sequence_count = s->request_count;
    b->step.batch = &b->of;
    b->step.config = &b->config;
    b->step.page_starts = b->page_starts;
    b->step.sinks = s->has_sinks ? b->sinks : NULL;
    b->step.slopes = s->has_slopes ? b->slopes : NULL;
    b->step.mask = s->has_mask ? b->mask : NULL;
    b->step.mask_stride = b->mask_words;
    b->step.mask_starts = b->mask_starts;
}

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

// -- the reference --------------------------------------------------------------------------------

// One row in double precision over tokens [start, end); returns the log-sum-exp, and how far f32
// may be off: a few roundings of the largest sum of products.
static double reference_row(const batch *b, uint32_t request, uint32_t query, uint32_t head,
                            uint32_t start, uint32_t end, bool has_sink, double *out,
                            double *out_tolerance) {
    const shape *s = &b->s;
    const float *q =
        b->queries +
        ((size_t)(b->query_starts[request] + query) * s->heads * s->group + head) * s->key_dim;
    static double scores[LENGTH_MAX];
    assert_true(end <= LENGTH_MAX);
    double top = -INFINITY, total = 0.0, largest = 0.0;
    double scale = s->scale != 0.0f ? (double)s->scale : 1.0 / sqrt((double)s->key_dim);
    int64_t position = (int64_t)s->lengths[request] - s->queries[request] + query;
    memset(out, 0, s->value_dim * sizeof *out);
    for (int64_t t = start; t < end; t++) {
        scores[t] = -INFINITY;
        if ((s->is_causal && t > position) || (s->window > 0 && t <= position - s->window)) {
            continue;
        }
        const int64_t bit = t - b->mask_starts[request];
        if (s->has_mask && bit >= 0 && bit < 32 * (int64_t)b->mask_words &&
            !(b->mask[(size_t)(b->query_starts[request] + query) * b->mask_words +
                      (size_t)bit / 32] >>
                  bit % 32 &
              1)) {
            continue;
        }
        const double *k =
            b->keys +
            ((size_t)(b->token_starts[request] + t) * s->heads + head / s->group) * s->key_dim;
        double sum = 0.0, magnitude = 0.0;
        for (uint32_t d = 0; d < s->key_dim; d++) {
            sum += (double)q[d] * k[d];
            magnitude += fabs((double)q[d] * k[d]);
        }
        scores[t] = sum * scale;
        scores[t] = s->cap > 0.0f ? (double)s->cap * tanh(scores[t] / (double)s->cap) : scores[t];
        const double bias =
            s->has_slopes ? -(double)b->slopes[head] * fabs((double)(position - t)) : 0;
        scores[t] += bias;
        largest = fmax(largest, magnitude * scale - bias);
        top = fmax(top, scores[t]);
    }
    for (int64_t t = start; t < end && top > -INFINITY; t++) {
        double weight = exp(scores[t] - top);
        total += weight;
        const double *v =
            b->values +
            ((size_t)(b->token_starts[request] + t) * s->heads + head / s->group) * s->value_dim;
        for (uint32_t d = 0; d < s->value_dim && weight > 0.0; d++) {
            out[d] += weight * v[d];
        }
    }
    if (has_sink && s->has_sinks) {  // a score of no value
        const double sink = (double)b->sinks[head], more = fmax(top, sink);
        const double rescale = top > -INFINITY ? exp(top - more) : 0.0;
        for (uint32_t d = 0; d < s->value_dim; d++) {
            out[d] *= rescale;
        }
        total = more > -INFINITY ? total * rescale + exp(sink - more) : 0.0;
        top = more;
    }
    for (uint32_t d = 0; d < s->value_dim && total > 0.0; d++) {
        out[d] /= total;
    }
    const double ulp = 1.0 / (1 << 24);
    *out_tolerance = (32.0 + 8.0 * largest + 16.0 * fmin((double)s->cap, largest)) * ulp;
    return total > 0.0 ? top + log(total) : -INFINITY;
}

// Values are below 1.5 in magnitude, so the tolerance of a weight is that of an element.
static void check_row(const batch *b, uint32_t request, uint32_t query, uint32_t head,
                      uint32_t start, uint32_t end, bool has_sink, const float *row, float lse) {
    double exact[PTOWSP_ATTEND_DIM_MAX], tolerance;
    double exact_lse =
        reference_row(b, request, query, head, start, end, has_sink, exact, &tolerance);
    if (exact_lse == -INFINITY) {
        assert_true(lse == -INFINITY);
    } else {
        assert_true(fabs(exact_lse - (double)lse) <= tolerance + fabs(exact_lse) * 1e-7);
    }
    for (uint32_t d = 0; d < b->s.value_dim; d++) {
        assert_true(fabs(exact[d] - (double)row[d]) <= tolerance);
    }
}

// -- against double precision ---------------------------------------------------------------------

// A unit as pieces that are cut at random tokens and merged.
static void check_pieces(const pwsp_attend_variant *variant, batch *b, ptowsp_attend_unit unit,
                         uint64_t *state) {
    const shape *s = &b->s;
    uint32_t rows = ptowsp_attend_unit_rows(&b->step, &unit), piece_count = 0;
    uint32_t start = unit.kv_start, end = unit.kv_start + unit.kv_len;
    const size_t held = test_held.count;
    ptowsp_partial *states = (ptowsp_partial *)test_alloc(8 * rows, sizeof *states);
    float *accs = (float *)test_alloc((size_t)8 * rows * s->value_dim, sizeof *accs);
    float *out = (float *)test_alloc(s->value_dim, sizeof *out);
    while (piece_count == 0 || unit.kv_start < end) {
        unit.kv_len =
            piece_count == 7 ? end - unit.kv_start : test_random_u32(state, 0, end - unit.kv_start);
        pwsp_attend_compute(variant, &b->kv, &b->step, &unit, states + piece_count * rows,
                            accs + (size_t)piece_count * rows * s->value_dim);
        unit.kv_start += unit.kv_len;
        piece_count++;
    }
    for (uint32_t r = 0; r < rows; r++) {
        float lse = ptowsp_merge_partials(states + r, accs + (size_t)r * s->value_dim, piece_count,
                                          rows, s->value_dim, out);
        check_row(b, unit.request, unit.query_start + r / s->group,
                  unit.kv_head * s->group + r % s->group, start, end, false, out, lse);
    }
    test_release_to(held);
}

// Every row of a batch, in tiles of `tile` query tokens (0: all), whole and in pieces.
static void check_batch(const pwsp_attend_variant *variant, batch *b, uint32_t tile,
                        uint64_t *state) {
    const shape *s = &b->s;
    b->plan.tile_tokens = tile > 0 ? tile : UINT32_MAX;
    b->step.plan = &b->plan;
    for (uint32_t request = 0; request < s->request_count; request++) {
        uint32_t tiles = tile > 0 ? (s->queries[request] + tile - 1) / tile : 1;
        for (uint32_t i = 0; i < tiles * s->heads; i++) {
            ptowsp_work work = ptowsp_work_of(0, 0, 0, request, i / tiles, 0, s->lengths[request]);
            work.reserved = (uint16_t)(i % tiles);
            ptowsp_attend_unit unit = ptowsp_attend_unit_of(&b->step, &work);
            pwsp_attend_compute(variant, &b->kv, &b->step, &unit, NULL, NULL);
            check_pieces(variant, b, unit, state);
        }
        for (uint32_t row = 0; row < s->queries[request] * s->heads * s->group; row++) {
            uint32_t query = row / (s->heads * s->group), head = row % (s->heads * s->group);
            size_t at = (size_t)b->query_starts[request] * s->heads * s->group + row;
            check_row(b, request, query, head, 0, s->lengths[request], true,
                      b->outputs + at * s->value_dim, b->lse[at]);
        }
    }
}

static shape random_shape(uint64_t *state) {
    static const uint32_t groups[] = {1, 2, 3, 4, 5, 7, 8, 16};
    shape s = {.type = (ptowsp_attend_type)test_random_in(state, 0, PTOWSP_ATTEND_TYPE_COUNT - 1)};
    s.layout = (layout)test_random_in(state, 0, LAYOUT_COUNT - 1);
    s.key_dim = 8 * test_random_u32(state, 1, 18);
    s.value_dim = test_random(state) % 2 ? s.key_dim : 8 * test_random_u32(state, 1, 18);
    s.value_dim = s.layout == LAYOUT_LATENT && s.value_dim > s.key_dim ? s.key_dim : s.value_dim;
    if (s.type >= PTOWSP_ATTEND_Q8_0) {
        s.key_dim = (s.key_dim + 31) / 32 * 32;
        s.value_dim = (s.value_dim + 31) / 32 * 32;
    }
    s.page_size = test_random_u32(state, 1, 40);
    s.heads = s.layout == LAYOUT_LATENT ? 1 : test_random_u32(state, 1, HEADS_MAX);
    s.group = groups[test_random(state) % 8];
    s.request_count = test_random_u32(state, 1, 3);
    for (uint32_t r = 0; r < s.request_count; r++) {  // decode and prefill mixed
        s.queries[r] = test_random(state) % 2 ? 1 : test_random_u32(state, 1, 40);
        s.lengths[r] = s.queries[r] + test_random_u32(state, 0, 200);
    }
    s.window = test_random(state) % 3 ? 0 : test_random_u32(state, 1, 150);
    static const float caps[] = {20.0f, 3e3f, 1e8f, 1e38f};  // the larger, the less they may change
    const uint64_t cap = test_random(state) % 12;
    s.cap = cap < 4 ? caps[cap] : 0.0f;
    s.scale = test_random(state) % 2 ? 0.0f : 0.3f;
    s.magnitude = test_random(state) % 4 ? 3.0f : 100.0f;
    s.is_causal = test_random(state) % 4 != 0;
    s.has_equal_keys = test_random(state) % 8 == 0;
    s.has_sinks = test_random(state) % 2;
    s.has_slopes = test_random(state) % 3 == 0;
    s.has_mask = test_random(state) % 3 == 0;
    return s;
}

static void check_shape(const shape *s, uint32_t tile, uint64_t *state) {
    batch b;
    make_batch(&b, s, *state);
    for (uint32_t i = 0; i < variant_count; i++) {
        check_batch(&variants[i], &b, tile, state);
    }
    test_release();
}

TEST(attend__agrees_with_double_precision_in_every_variant) {
    uint64_t state = test_seed();
    for (int i = 0; TEST_ROUNDS(i, 40); i++) {
        shape s = random_shape(&state);
        uint32_t tile = test_random(&state) % 2 ? 0 : test_random_u32(&state, 1, 20);
        check_shape(&s, tile, &state);
    }
}

TEST(attend__usual_dimensions_and_groups_are_exact_in_every_type) {
    static const uint32_t dims[][2] = {{64, 64},   {80, 80},   {96, 96},  {112, 112}, {128, 128},
                                       {192, 128}, {256, 256}, {512, 64}, {576, 512}, {40, 40},
                                       {72, 72},   {120, 8},   {8, 568}};
    static const uint32_t groups[] = {1, 3, 4, 7, 8, 16, 128};
    uint64_t state = test_seed();
    for (uint32_t i = 0; i < 13 || TEST_ROUNDS(i, 13 * 7); i++) {  // each of them in the first
        shape s = {.type = (ptowsp_attend_type)(i % (dims[i % 13][0] % 32 == 0 ? 6 : 4)),
                   .key_dim = dims[i % 13][0],
                   .value_dim = dims[i % 13][1]};
        s.layout = s.key_dim == 576 ? LAYOUT_LATENT : (layout)((i / 3 + i / 13) % 3);
        s.page_size = 16;
        s.heads = 1;
        s.group = groups[(i / 13 + i) % 7];
        s.request_count = 2;
        s.queries[0] = 1;
        s.lengths[0] = 90;
        s.queries[1] = s.group > 16 ? 2 : 9;
        s.lengths[1] = 75;
        s.magnitude = 4.0f;
        s.is_causal = true;
        check_shape(&s, 0, &state);
    }
}

static shape plain_shape(ptowsp_attend_type type, uint32_t group, uint32_t queries,
                         uint32_t length) {
    shape s = {.type = type,
               .layout = LAYOUT_SLOTS,
               .key_dim = 64,
               .value_dim = 80,
               .page_size = 8,
               .heads = 1,
               .group = group,
               .request_count = 1,
               .queries[0] = queries,
               .lengths[0] = length,
               .magnitude = 3.0f,
               .is_causal = true};
    return s;
}

TEST(attend__scores_of_thousands_stay_exact) {
    uint64_t state = test_seed();
    shape s = plain_shape(PTOWSP_ATTEND_F32, 3, 5, 200);
    s.magnitude = 1e4f;
    check_shape(&s, 0, &state);
    s.cap = 50.0f;
    check_shape(&s, 0, &state);
    s.has_equal_keys = true;
    check_shape(&s, 0, &state);
}

// Below a large cap a score is itself: tanh x is x where x is small.
TEST(attend__large_caps_leave_scores_as_they_are) {
    uint64_t state = test_seed();
    static const float caps[] = {1.0f, 5.0f, 20.0f, 1e3f, 1e5f, 1e8f, 1e38f};
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        shape s = plain_shape((ptowsp_attend_type)(i % 6), 3, 5, 200);
        s.value_dim = 96;
        s.cap = caps[i];
        check_shape(&s, 0, &state);
    }
}

TEST(attend__of_one_token_is_its_value_row) {
    float keys[16], values[16], query[16] = {3.0f}, acc[16], out[16], lse;
    for (int d = 0; d < 16; d++) {
        keys[d] = 1.0f;
        values[d] = (float)d;
    }
    ptowsp_attend_step step = {0};
    ptowsp_attend_cache kv = {.keys = keys, .values = values};
    kv.key_dim = kv.value_dim = 16;
    uint32_t page = 0;
    int32_t length = 1;
    step.queries = query;
    step.outputs = out;
    step.lse = &lse;
    const ptowsp_attention_batch given = {&length, NULL, 1};
    ptowsp_attention_config config = {0};
    step.batch = &given;
    step.config = &config;
    step.pages = &page;
    ptowsp_attend_unit unit = {0, 0, 0, 1, 0, 1, NULL, 0};
    ptowsp_partial state;
    ptowsp_attend_compute(&kv, &step, &unit, &state, acc);
    assert_true(state.m == 0.75f && state.l == 1.0f);  // 3 * 1 / sqrt(16)
    ptowsp_attend_compute(&kv, &step, &unit, NULL, NULL);
    assert_true(lse == 0.75f);
    for (int d = 0; d < 16; d++) {
        assert_true(acc[d] == (float)d && out[d] == (float)d);
    }
}

// -- bits -----------------------------------------------------------------------------------------

typedef struct result {
    ptowsp_partial *states;
    float *accs;
    uint32_t rows, dim;
} result;

static result compute(const pwsp_attend_variant *variant, const batch *b,
                      const ptowsp_attend_step *step, ptowsp_attend_unit unit) {
    result out = {NULL, NULL, ptowsp_attend_unit_rows(step, &unit), b->s.value_dim};
    out.states = (ptowsp_partial *)test_alloc(out.rows, sizeof *out.states);
    out.accs = (float *)test_alloc((size_t)out.rows * out.dim, sizeof *out.accs);
    pwsp_attend_compute(variant, &b->kv, step, &unit, out.states, out.accs);
    return out;
}

// Row `a` of x and row `b` of y have the same bits.
static void same_row(const result *x, uint32_t a, const result *y, uint32_t b) {
    assert_memory_equal(&x->states[a], &y->states[b], sizeof *x->states);
    assert_memory_equal(x->accs + (size_t)a * x->dim, y->accs + (size_t)b * x->dim,
                        x->dim * sizeof *x->accs);
}

static ptowsp_attend_unit random_piece(const batch *b, uint64_t *state) {
    const shape *s = &b->s;
    uint32_t request = test_random_u32(state, 0, s->request_count - 1);
    ptowsp_attend_unit unit = {
        request, test_random_u32(state, 0, s->heads - 1), 0, s->queries[request], 0, 0, NULL, 0};
    unit.kv_start = test_random_u32(state, 0, s->lengths[request] - 1);
    unit.kv_len = test_random_u32(state, 1, s->lengths[request] - unit.kv_start);
    return unit;
}

TEST(attend__row_has_the_bits_that_it_has_alone) {
    uint64_t state = test_seed();
    for (int i = 0; TEST_ROUNDS(i, 60); i++) {
        shape s = random_shape(&state);
        batch b;
        make_batch(&b, &s, state);
        ptowsp_attend_unit unit = random_piece(&b, &state);
        const pwsp_attend_variant *variant = &variants[test_random(&state) % variant_count];
        result tile = compute(variant, &b, &b.step, unit);
        for (uint32_t r = 0; r < tile.rows; r++) {  // as a group of one head
            ptowsp_attend_step step = b.step;
            ptowsp_attend_unit one = unit;
            ptowsp_attention_config config = b.config;
            config.group = 1;
            step.config = &config;
            step.queries +=
                (unit.kv_head * (s.group - 1) + r % s.group) * (size_t)step.query_head_stride;
            step.slopes =
                s.has_slopes ? step.slopes + unit.kv_head * (s.group - 1) + r % s.group : NULL;
            one.query_start = r / s.group;
            one.query_count = 1;
            result alone = compute(variant, &b, &step, one);
            same_row(&tile, r, &alone, 0);
        }
        test_release();
    }
}

// A piece that begins earlier or ends later changes nothing for rows that do not see its ends.
TEST(attend__row_depends_on_the_tokens_it_sees_alone) {
    uint64_t state = test_seed();
    for (int i = 0; TEST_ROUNDS(i, 20); i++) {
        shape s = plain_shape(PTOWSP_ATTEND_F16, 4, 30, 150);
        s.window = i % 2 ? 70 : 0;
        batch b;
        make_batch(&b, &s, state++);
        const pwsp_attend_variant *variant = fastest();
        ptowsp_attend_unit unit = {0, 0, 0, 30, test_random_u32(&state, 0, 110), 150, NULL, 0};
        result whole = compute(variant, &b, &b.step, unit);
        uint32_t query = test_random_u32(&state, 0, 29);
        unit.kv_len = 150 - 30 + query + 1 - unit.kv_start;  // up to what this query sees
        result cut = compute(variant, &b, &b.step, unit);
        for (uint32_t r = 0; r < (query + 1) * 4; r++) {
            same_row(&whole, r, &cut, r);
        }
        for (uint32_t r = 0; s.window > 0 && r < 30; r++) {  // from where each query's window is
            const uint32_t begin = 150 - 30 + r + 1 - s.window;
            const uint32_t start = unit.kv_start > begin ? unit.kv_start : begin;
            ptowsp_attend_unit later = {0, 0, 0, 30, start, 150, NULL, 0};
            result seen = compute(variant, &b, &b.step, later);
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
        shape s = random_shape(&state);
        s.value_dim = s.key_dim;
        result results[3];
        ptowsp_attend_unit unit = {0, 0, 0, s.queries[0], 0, 0, NULL, 0};
        unit.kv_start = test_random_u32(&state, 0, s.lengths[0] - 1);
        unit.kv_len = s.lengths[0];
        uint64_t seed = state;
        for (uint32_t k = 0; k < 3; k++) {
            s.layout = (layout)k;
            s.page_size = test_random_u32(&state, 1, 100);
            batch b;
            make_batch(&b, &s, seed);
            results[k] = compute(fastest(), &b, &b.step, unit);
        }
        for (uint32_t r = 0; r < results[0].rows; r++) {
            same_row(&results[0], r, &results[1], r);
            same_row(&results[0], r, &results[2], r);
        }
        test_release();
    }
}

TEST(attend__vector_variants_give_the_same_bits) {
    uint64_t state = test_seed();
    for (int i = 0; variant_count == 3 && TEST_ROUNDS(i, 40); i++) {
        shape s = random_shape(&state);
        batch b;
        make_batch(&b, &s, state);
        ptowsp_attend_unit unit = random_piece(&b, &state);
        result first = compute(&variants[1], &b, &b.step, unit);
        result second = compute(&variants[2], &b, &b.step, unit);
        for (uint32_t r = 0; r < first.rows; r++) {
            same_row(&first, r, &second, r);
        }
        test_release();
    }
}

TEST(attend__finished_row_is_its_finished_state) {
    uint64_t state = test_seed();
    for (int i = 0; TEST_ROUNDS(i, 20); i++) {
        shape s = random_shape(&state);
        s.has_sinks = false;
        batch b;
        make_batch(&b, &s, state);
        ptowsp_attend_unit unit = {0, s.heads - 1, 0, s.queries[0], 0, s.lengths[0], NULL, 0};
        result parts = compute(fastest(), &b, &b.step, unit);
        ptowsp_attend_compute(&b.kv, &b.step, &unit, NULL, NULL);
        float *out = (float *)test_alloc(s.value_dim, sizeof *out);
        for (uint32_t r = 0; r < parts.rows; r++) {
            size_t at = ((size_t)(r / s.group) * s.heads + s.heads - 1) * s.group + r % s.group;
            float lse = ptowsp_merge_finish(&parts.states[r], parts.accs + (size_t)r * s.value_dim,
                                            s.value_dim, out);
            assert_memory_equal(out, b.outputs + at * s.value_dim, s.value_dim * sizeof *out);
            assert_memory_equal(&lse, &b.lse[at], sizeof lse);
        }
        test_release();
    }
}

// -- masks and reads ------------------------------------------------------------------------------

TEST(attend__rows_that_see_nothing_are_empty) {
    shape s = plain_shape(PTOWSP_ATTEND_F32, 2, 10, 100);
    s.window = 20;
    batch b;
    make_batch(&b, &s, 1);
    for (uint32_t i = 0; i < variant_count; i++) {
        // Queries stand at 90 to 99. Of tokens 78 and 79 query j sees those from 71 + j on.
        ptowsp_attend_unit unit = {0, 0, 0, 10, 78, 2, NULL, 0};
        result r = compute(&variants[i], &b, &b.step, unit);
        for (uint32_t row = 0; row < r.rows; row++) {
            bool is_empty = 71 + row / 2 > 79;
            assert_true((r.states[row].m == -INFINITY) == is_empty);
            assert_true((r.states[row].l == 0.0f) == is_empty);
            assert_true((r.accs[row * s.value_dim] == 0.0f) == is_empty);
        }
        unit.kv_start = 95;  // the first five queries stand before it
        unit.kv_len = 5;
        b.step.lse_head_stride = 1;
        pwsp_attend_compute(&variants[i], &b.kv, &b.step, &unit, NULL, NULL);
        for (uint32_t row = 0; row < 20; row++) {
            assert_true((b.lse[row] == -INFINITY) == (row / 2 < 5));
            assert_true((b.outputs[row * s.value_dim] == 0.0f) == (row / 2 < 5));
        }
        unit.kv_len = 0;
        r = compute(&variants[i], &b, &b.step, unit);
        assert_true(r.states[0].m == -INFINITY && r.states[19].m == -INFINITY);
        unit.kv_start = 200;  // behind the sequence
        unit.kv_len = 10;
        r = compute(&variants[i], &b, &b.step, unit);
        assert_true(r.states[0].m == -INFINITY && r.states[19].m == -INFINITY);
    }
    test_release();
}

// Pages that a window has left behind may be gone.
TEST(attend__tokens_that_no_row_sees_are_not_read) {
    for (uint32_t type = 0; type < PTOWSP_ATTEND_TYPE_COUNT; type++) {
        shape s = plain_shape((ptowsp_attend_type)type, 4, 3, 120);
        s.value_dim = 96;
        s.window = 30;  // queries stand at 117 to 119, so the first token seen is 88, in page 11
        batch b;
        make_batch(&b, &s, 1);
        ptowsp_attend_unit unit = {0, 0, 0, 3, 0, 120, NULL, 0};
        result before = compute(fastest(), &b, &b.step, unit);
        for (uint32_t page = 0; page < 11; page++) {
            b.pages[page] = UINT32_MAX;
        }
        result after = compute(fastest(), &b, &b.step, unit);
        for (uint32_t r = 0; r < before.rows; r++) {
            same_row(&before, r, &after, r);
        }
        test_release();
    }
}

TEST(attend__nan_of_a_token_stays_in_the_rows_that_see_it) {
    for (uint32_t is_value = 0; is_value < 2; is_value++) {
        shape s = plain_shape(PTOWSP_ATTEND_F32, 3, 20, 100);
        batch b;
        make_batch(&b, &s, 1);
        uint32_t dim = is_value ? s.value_dim : s.key_dim;
        for (uint32_t d = 0; d < dim; d++) {  // token 90 is that of query 10
            ((float *)b.cache[is_value])[cache_index(&b, is_value, 0, 90, 0, d)] = NAN;
        }
        for (uint32_t i = 0; i < variant_count; i++) {
            ptowsp_attend_unit unit = {0, 0, 0, 20, 0, 100, NULL, 0};
            pwsp_attend_compute(&variants[i], &b.kv, &b.step, &unit, NULL, NULL);
            for (uint32_t row = 0; row < 60; row++) {
                float out = b.outputs[(size_t)row * s.value_dim];
                assert_true((out != out) == (row / 3 >= 10));
            }
            unit.kv_start = 90;  // it alone, as a partial state: merged, it is not lost
            unit.kv_len = 1;
            result r = compute(&variants[i], &b, &b.step, unit);
            float merged[96];
            ptowsp_merge_partials(&r.states[30], r.accs + (size_t)30 * s.value_dim, 1, 1,
                                  s.value_dim, merged);
            assert_true(merged[0] != merged[0]);
        }
        test_release();
    }
}

// Hidden keys and values that are NaN change nothing: of 16 drafts each sees the prompt, itself and the
// drafts whose number halves to it.
TEST(attend__tokens_that_a_mask_hides_change_nothing) {
    for (uint32_t is_value = 0; is_value < 2; is_value++) {
        shape s = plain_shape(PTOWSP_ATTEND_F32, 3, 16, 130);
        s.has_mask = true;
        batch b;
        make_batch(&b, &s, 1);
        b.mask_starts[0] = 114;
        b.mask_words = 1;
        b.step.mask_stride = 1;
        uint32_t mask[16];
        for (uint32_t q = 0; q < 16; q++) {
            mask[q] = 0;
            for (uint32_t node = q + 1; node > 0; node /= 2) {
                mask[q] |= 1u << (node - 1);
            }
        }
        b.step.mask = mask;
        ptowsp_attend_unit unit = {0, 0, 0, 16, 0, 130, NULL, 0};
        for (uint32_t i = 0; i < variant_count; i++) {
            result before = compute(&variants[i], &b, &b.step, unit);
            const uint32_t dim = is_value ? s.value_dim : s.key_dim;
            float *row = (float *)b.cache[is_value] + cache_index(&b, is_value, 0, 114 + 4, 0, 0);
            float kept[80];
            memcpy(kept, row, dim * sizeof *kept);
            for (uint32_t d = 0; d < dim; d++) {  // draft 4, node 5: above nodes 10 and 11 alone
                row[d] = NAN;
            }
            result after = compute(&variants[i], &b, &b.step, unit);
            for (uint32_t r = 0; r < before.rows; r++) {
                if (r / 3 == 4 || r / 3 == 9 || r / 3 == 10) {
                    assert_true(after.accs[(size_t)r * s.value_dim] !=
                                after.accs[(size_t)r * s.value_dim]);
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

// -- number formats -------------------------------------------------------------------------------

TEST(attend__converts_every_half_exactly) {
    uint16_t *halves = (uint16_t *)test_alloc(65536, sizeof *halves);
    float *f16 = (float *)test_alloc(65536, sizeof(float));
    float *bf16 = (float *)test_alloc(65536, sizeof(float));
    for (uint32_t i = 0; i < 65536; i++) {
        halves[i] = (uint16_t)i;
    }
    for (uint32_t v = 0; v < variant_count; v++) {
        const char *from = (const char *)halves;
        variants[v].convert(PTOWSP_ATTEND_F16, &from, 1, 65536, f16);
        variants[v].convert(PTOWSP_ATTEND_BF16, &from, 1, 65536, bf16);
        for (uint32_t half = 0; half < 65536; half++) {
            uint32_t exponent = (half >> 10) & 31, fraction = half & 0x3ff;
            if (exponent == 31 && fraction != 0) {
                assert_true(f16[half] != f16[half]);
            } else {
                double exact = exponent == 0    ? ldexp((double)fraction, -24)
                               : exponent == 31 ? INFINITY
                                                : ldexp(1024.0 + fraction, (int)exponent - 25);
                assert_true((double)f16[half] == (half & 0x8000 ? -exact : exact));
                assert_true(!signbit(f16[half]) == !(half & 0x8000));
            }
            uint32_t bits;
            memcpy(&bits, &bf16[half], sizeof bits);
            // NaNs may have become quiet, as they do where floats are returned by the x87.
            const uint32_t quiet = (half & 0x7fff) > 0x7f80 ? 0x400000 : 0;
            assert_int_equal(bits | quiet, half << 16 | quiet);
        }
    }
}

TEST(attend__converts_any_number_of_elements) {
    int8_t from[40];
    float to[41];
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
    }
}
