// Units, rows and blocks of attention. The inner loops are attention_body.h, once for each
// instruction set of attention_simd.h.
//
// A unit is computed in chunks of up to CHUNK_ROWS rows, and a chunk in blocks of ATTENTION_BLOCK
// tokens:
//
//      keys   ->  packed, a part at a time  ->  scores of all rows that see the part
//      scores ->  scale, cap, mask          ->  weights, state, factor: online softmax
//      values ->  f32, a part at a time     ->  accs = accs * factor + weights * values
//
// Parts fit the first-level cache together with a tile of rows, and a part is used by all rows before
// the next is read. Rows of a tile that see different tokens of a block get their values apart, each
// from the tokens it sees alone.

#include "attention.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    CHUNK_ROWS = 128,
    TILE_ROWS = 6,                         // rows of a register tile, at most
    PART_TOKENS = 16,                      // parts are multiples of it
    PART_FLOATS = 16 * ATTENTION_DIM_MAX,  // 36 KiB
    FEW_ROWS = 12
};

// -- number formats -------------------------------------------------------------------------------

size_t attention_type_size(attention_type type) {
    static const uint8_t sizes[] = {4, 2, 2, 1};
    return sizes[type];
}

static inline float attention_f32_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float attention_f32_from_bf16(uint16_t bits) {
    return attention_f32_from_bits((uint32_t)bits << 16);
}

static inline float attention_f32_from_f16(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
    if (magnitude < 0x0400) {  // zero or subnormal, a multiple of 2^-24
        float value = (float)magnitude * (1.0f / 16777216.0f);
        return sign ? -value : value;
    }
    uint32_t rebias = magnitude >= 0x7c00 ? (255 - 31) << 23 : (127 - 15) << 23;
    return attention_f32_from_bits(sign | ((magnitude << 13) + rebias));
}

// -- variants -------------------------------------------------------------------------------------

// How products become scores and weights. Scales have ATTENTION_BLOCK elements or are NULL.
typedef struct attention_scoring {
    float scale, cap;
    const float *key_scales, *value_scales;
} attention_scoring;

// Rows that are needed soon. Computing on keys asks for the values of the same tokens, and on values
// for the keys of the next block: memory is busy all the time only if it is asked while computing, not
// only while reading. Tiles of scores ask for the first rows of a part and packing for the others.
typedef struct attention_ahead {
    const char *const *rows;
    uint32_t first;  // rows that tiles of scores ask for
    size_t element;  // bytes of one
    size_t size;     // bytes of a row, 0: there are none
} attention_ahead;

// The loops of attention_body.h, by type; tiles by their number of rows, too.
typedef struct attention_variant {
    const char *name;
    uint32_t score_rows;
    void (*pack[4])(const char *const *rows, const attention_ahead *ahead, size_t dim, char *out);
    void (*convert[4])(const char *from, size_t count, float *to);
    void (*scores[4][TILE_ROWS + 1])(const float *const *queries, const char *keys,
                                     const attention_ahead *ahead, size_t dim, float *scores);
    void (*values[4][TILE_ROWS + 1])(const char *const *rows, size_t count,
                                     const attention_ahead *ahead, const float *weights,
                                     const float *factors, size_t dim, float *const *accs);
    void (*softmax)(const attention_scoring *how, float *products, size_t low, size_t high,
                    size_t row_count, ptowsp_partial *states, float *factors);
    void (*divide)(float *row, size_t dim, float l);
} attention_variant;

#include "attention_simd.h"

static const attention_variant *attention_variant_choose(void) {
#if ATTENTION_X86
    bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        return &attention_avx512_variant;
    }
    if (has_avx2) {  // every processor with AVX2 has F16C
        return &attention_avx2_variant;
    }
#endif
#if ATTENTION_NEON
    return &attention_neon_variant;
#else
    return &attention_portable_variant;
#endif
}

const char *attention_variant_name(void) {
    return attention_variant_choose()->name;
}

void attention_convert(const void *from, attention_type type, size_t count, float *to) {
    size_t size = attention_type_size(type), whole = count / 16 * 16, rest = count - whole;
    const attention_variant *variant = attention_variant_choose();
    const char *elements = (const char *)from;
    variant->convert[type](elements, whole, to);
    if (rest > 0) {
        char tail[16 * 4] = {0};
        float floats[16];
        memcpy(tail, elements + whole * size, rest * size);
        variant->convert[type](tail, 16, floats);
        memcpy(to + whole, floats, rest * sizeof *to);
    }
}

// -- the cache ------------------------------------------------------------------------------------

// Tokens [first, end) of a sequence, or of a block.
typedef struct attention_range {
    uint32_t first, end;
} attention_range;

// Rows of the tokens of a block. Those outside of `seen` repeat a row inside.
typedef struct attention_rows {
    attention_range seen;
    const char *keys[ATTENTION_BLOCK], *values[ATTENTION_BLOCK];
} attention_rows;

typedef struct attention_place {
    size_t page, slot;
    uint32_t left;  // tokens to the end of the page, this one included
} attention_place;

static attention_place attention_find(const attention_kv *kv, const uint32_t *pages,
                                      uint32_t token) {
    attention_place place = {pages[0], token, UINT32_MAX - token};
    if (kv->page_size > 0) {
        place.page = pages[token / kv->page_size];
        place.slot = token % kv->page_size;
        place.left = kv->page_size - token % kv->page_size;
    }
    return place;
}

static size_t attention_offset(const attention_strides *strides, const attention_place *place,
                               uint32_t kv_head) {
    return place->page * strides->page + place->slot * strides->token + kv_head * strides->head;
}

// Finds the rows of tokens `seen` of the block that begins at `token`, page by page.
static void attention_find_rows(const attention_kv *kv, const uint32_t *pages, uint32_t kv_head,
                                uint32_t token, attention_range seen, attention_rows *rows) {
    size_t size = attention_type_size(kv->type);
    rows->seen = seen;
    for (uint32_t t = seen.first; t < seen.end;) {
        attention_place place = attention_find(kv, pages, token + t);
        if (kv->type == ATTENTION_I8) {
            size_t scale = attention_offset(&kv->scale_strides, &place, kv_head);
            PREFETCH(kv->key_scales + scale);
            PREFETCH(kv->value_scales + scale);
        }
        const char *key =
            (const char *)kv->keys + attention_offset(&kv->key_strides, &place, kv_head) * size;
        const char *value =
            (const char *)kv->values + attention_offset(&kv->value_strides, &place, kv_head) * size;
        uint32_t stop = place.left < seen.end - t ? t + place.left : seen.end;
        for (; t < stop; t++) {
            rows->keys[t] = key;
            rows->values[t] = value;
            key += kv->key_strides.token * size;
            value += kv->value_strides.token * size;
        }
    }
    for (uint32_t t = 0; t < seen.first; t++) {
        rows->keys[t] = rows->keys[seen.first];
        rows->values[t] = rows->values[seen.first];
    }
    for (uint32_t t = seen.end; t < ATTENTION_BLOCK; t++) {
        rows->keys[t] = rows->keys[seen.first];
        rows->values[t] = rows->values[seen.first];
    }
}

// The scales of the same tokens, zeros around them.
static void attention_find_scales(const attention_kv *kv, const uint32_t *pages, uint32_t kv_head,
                                  uint32_t token, attention_range seen, float *keys,
                                  float *values) {
    memset(keys, 0, ATTENTION_BLOCK * sizeof *keys);
    memset(values, 0, ATTENTION_BLOCK * sizeof *values);
    for (uint32_t t = seen.first; t < seen.end;) {
        attention_place place = attention_find(kv, pages, token + t);
        size_t at = attention_offset(&kv->scale_strides, &place, kv_head);
        uint32_t stop = place.left < seen.end - t ? t + place.left : seen.end;
        for (; t < stop; t++, at += kv->scale_strides.token) {
            keys[t] = kv->key_scales[at];
            values[t] = kv->value_scales[at];
        }
    }
}

// -- a chunk of rows ------------------------------------------------------------------------------

// Rows of a unit, sorted by query token: both ends of what they see grow from row to row.
typedef struct attention_chunk {
    const attention_variant *variant;
    const attention_kv *kv;
    const uint32_t *pages;
    uint32_t kv_head, row_count;
    attention_scoring scoring;
    const float *queries[CHUNK_ROWS];
    float *accs[CHUNK_ROWS];
    ptowsp_partial states[CHUNK_ROWS];
    attention_range seen[CHUNK_ROWS];        // of the unit's tokens
    bool is_converted;                       // parts, to f32
    attention_type tile_type;                // of elements in tiles
    uint32_t part_tokens;                    // of values
    const char *part_rows[ATTENTION_BLOCK];  // of converted values

    // The current block:
    const attention_rows *rows, *next;     // of this block and the next, NULL in the last
    bool is_full;                          // all rows see all of it; otherwise:
    attention_range in_block[CHUNK_ROWS];  // what each sees
    uint32_t row_first, row_end;           // rows that see some of it
    float factors[CHUNK_ROWS];
    float key_scales[ATTENTION_BLOCK], value_scales[ATTENTION_BLOCK];
    _Alignas(64) float scores[CHUNK_ROWS * ATTENTION_BLOCK];
    _Alignas(64) float part[PART_FLOATS];    // converted keys or values
    _Alignas(64) float packed[PART_FLOATS];  // packed keys
} attention_chunk;

// The tokens of [start, start + count) in a range, from start on.
static attention_range attention_clip(attention_range range, uint32_t start, uint32_t count) {
    uint32_t first = range.first > start ? range.first - start : 0;
    uint32_t end = range.end > start ? range.end - start : 0;
    attention_range out = {first < count ? first : count, end < count ? end : count};
    return out;
}

static bool attention_is_empty(attention_range range) {
    return range.first >= range.end;
}

// What the rows see of the block that begins at `token`, and which rows see some.
static void attention_mask(attention_chunk *c, uint32_t token) {
    const attention_range *last = &c->seen[c->row_count - 1];
    c->is_full = last->first <= token && c->seen[0].end >= token + ATTENTION_BLOCK;
    c->row_first = 0;
    c->row_end = c->row_count;
    if (c->is_full) {
        return;
    }
    for (uint32_t r = 0; r < c->row_count; r++) {
        c->in_block[r] = attention_clip(c->seen[r], token, ATTENTION_BLOCK);
    }
    while (attention_is_empty(c->in_block[c->row_first])) {
        c->row_first++;
    }
    while (attention_is_empty(c->in_block[c->row_end - 1])) {
        c->row_end--;
    }
}

// The part [at, at + count) of the block as rows [first, end) see it: from the earliest to the
// latest token of any, and the tokens that all see.
static attention_range attention_some(const attention_chunk *c, uint32_t first, uint32_t end,
                                      uint32_t at, uint32_t count) {
    attention_range all = {0, count}, some = {c->in_block[first].first, c->in_block[end - 1].end};
    return c->is_full ? all : attention_clip(some, at, count);
}

static attention_range attention_common(const attention_chunk *c, uint32_t first, uint32_t end,
                                        uint32_t at, uint32_t count) {
    attention_range all = {0, count}, common = {c->in_block[end - 1].first, c->in_block[first].end};
    return c->is_full ? all : attention_clip(common, at, count);
}

// Rows of the next tile: `left` rows in tiles of about equal size, at most `most`.
static uint32_t attention_tile(uint32_t left, uint32_t most) {
    uint32_t tiles = (left + most - 1) / most;
    return (left + tiles - 1) / tiles;
}

static const char *const attention_no_row = NULL;
static const attention_ahead attention_nothing_ahead = {&attention_no_row, 0, 0, 0};

// For a part of keys that begins at token t of the block.
static attention_ahead attention_ahead_of_keys(const attention_chunk *c, uint32_t t) {
    attention_ahead ahead = {c->rows->values + t, PART_TOKENS, attention_type_size(c->kv->type), 0};
    ahead.size = c->kv->value_dim * ahead.element;
    size_t lines = (ahead.size + 63) / 64, first = c->kv->key_dim / 4 / lines;
    ahead.first = first < PART_TOKENS ? (uint32_t)first : PART_TOKENS;
    return ahead;
}

// For tokens of values from t on.
static attention_ahead attention_ahead_of_values(const attention_chunk *c, uint32_t t) {
    attention_ahead ahead = attention_nothing_ahead;
    if (c->next) {
        ahead.rows = c->next->keys + t;
        ahead.element = attention_type_size(c->kv->type);
        ahead.size = c->kv->key_dim * ahead.element;
    }
    return ahead;
}

static void attention_score(attention_chunk *c) {
    attention_range all = c->rows->seen;
    attention_type type = c->kv->type;
    uint32_t dim = c->kv->key_dim;
    for (uint32_t t = all.first / PART_TOKENS * PART_TOKENS; t < all.end; t += PART_TOKENS) {
        const attention_ahead part_ahead = attention_ahead_of_keys(c, t), *ahead = &part_ahead;
        const char *keys = (const char *)c->packed;
        c->variant->pack[type](c->rows->keys + t, ahead, dim, (char *)c->packed);
        if (c->tile_type != type) {
            c->variant->convert[type](keys, (size_t)PART_TOKENS * dim, c->part);
            keys = (const char *)c->part;
        }
        for (uint32_t r = c->row_first, count; r < c->row_end; r += count) {
            count = attention_tile(c->row_end - r, c->variant->score_rows);
            if (!attention_is_empty(attention_some(c, r, r + count, t, PART_TOKENS))) {
                c->variant->scores[c->tile_type][count](
                    c->queries + r, keys, ahead, dim, c->scores + (size_t)r * ATTENTION_BLOCK + t);
                ahead = &attention_nothing_ahead;  // once
            }
        }
    }
}

// Adds the weighted values of tokens `seen` of the part that begins at `at` to rows [first, end).
static void attention_add(attention_chunk *c, const char *const *values, attention_range seen,
                          uint32_t at, bool is_ahead, uint32_t first, uint32_t end) {
    attention_ahead ahead =
        is_ahead ? attention_ahead_of_values(c, at + seen.first) : attention_nothing_ahead;
    c->variant->values[c->tile_type][end - first](
        values + seen.first, seen.end - seen.first, &ahead,
        c->scores + (size_t)first * ATTENTION_BLOCK + at + seen.first, c->factors + first,
        c->kv->value_dim, c->accs + first);
    for (uint32_t r = first; r < end; r++) {
        c->factors[r] = 1.0f;
    }
}

// The same for all that the rows of a tile see of a part: together what all of them see, and each
// alone what comes before and after it. The order of a row's tokens stays.
static void attention_add_tile(attention_chunk *c, const char *const *values, uint32_t at,
                               uint32_t count, uint32_t first, uint32_t end) {
    attention_range common = attention_common(c, first, end, at, count);
    bool has_common = !attention_is_empty(common);
    for (uint32_t r = first; r < end && !c->is_full; r++) {
        attention_range before = attention_clip(c->in_block[r], at, count);
        before.end = has_common ? common.first : before.end;
        if (!attention_is_empty(before)) {
            attention_add(c, values, before, at, false, r, r + 1);
        }
    }
    if (has_common) {
        attention_add(c, values, common, at, first == c->row_first, first, end);
    }
    for (uint32_t r = first; r < end && has_common && !c->is_full; r++) {
        attention_range after = attention_clip(c->in_block[r], at, count);
        after.first = common.end;
        if (!attention_is_empty(after)) {
            attention_add(c, values, after, at, false, r, r + 1);
        }
    }
}

static void attention_value(attention_chunk *c) {
    attention_range all = c->rows->seen;
    uint32_t part = c->part_tokens, dim = c->kv->value_dim;
    for (uint32_t t = all.first / part * part, count; t < all.end; t += count) {
        count = all.end - t < part ? all.end - t : part;
        const char *const *values = c->rows->values + t;
        for (uint32_t i = 0; c->is_converted && i < count; i++) {
            c->variant->convert[c->kv->type](values[i], dim, c->part + (size_t)i * dim);
        }
        values = c->is_converted ? c->part_rows : values;
        for (uint32_t r = c->row_first, rows; r < c->row_end; r += rows) {
            rows = attention_tile(c->row_end - r, TILE_ROWS);
            attention_add_tile(c, values, t, count, r, r + rows);
        }
    }
}

static void attention_block(attention_chunk *c, uint32_t token) {
    const attention_range block = {0, ATTENTION_BLOCK};
    attention_mask(c, token);
    if (c->kv->type == ATTENTION_I8) {
        attention_find_scales(c->kv, c->pages, c->kv_head, token, c->rows->seen, c->key_scales,
                              c->value_scales);
    }
    attention_score(c);
    for (uint32_t r = c->row_first, count; r < c->row_end; r += count) {
        attention_range seen = c->is_full ? block : c->in_block[r];
        count = c->is_full ? c->row_end - r : 1;
        c->variant->softmax(&c->scoring, c->scores + (size_t)r * ATTENTION_BLOCK, seen.first,
                            seen.end, count, c->states + r, c->factors + r);
    }
    attention_value(c);
}

// All that the rows see, in blocks that begin at multiples of their size: a row's bits then do not depend
// on where the unit begins.
static void attention_run(attention_chunk *c) {
    attention_range all = {UINT32_MAX, 0};
    for (uint32_t r = 0; r < c->row_count; r++) {
        if (!attention_is_empty(c->seen[r])) {
            all.first = all.end == 0 ? c->seen[r].first : all.first;
            all.end = c->seen[r].end;
        }
    }
    if (attention_is_empty(all)) {
        return;
    }
    attention_rows rows[2];
    uint32_t token = all.first / ATTENTION_BLOCK * ATTENTION_BLOCK, turn = 0;
    attention_find_rows(c->kv, c->pages, c->kv_head, token,
                        attention_clip(all, token, ATTENTION_BLOCK), &rows[turn]);
    for (;;) {
        uint32_t left = all.end - token;
        c->rows = &rows[turn];
        c->next = left > ATTENTION_BLOCK ? &rows[1 - turn] : NULL;
        if (c->next) {
            attention_range seen = {0, left < 2 * ATTENTION_BLOCK ? left - ATTENTION_BLOCK
                                                                  : ATTENTION_BLOCK};
            attention_find_rows(c->kv, c->pages, c->kv_head, token + ATTENTION_BLOCK, seen,
                                &rows[1 - turn]);
        }
        attention_block(c, token);
        if (!c->next) {
            break;
        }
        token += ATTENTION_BLOCK;
        turn = 1 - turn;
    }
}

// -- units ----------------------------------------------------------------------------------------

static uint32_t attention_query_first(const attention_step *step, uint32_t request) {
    return step->query_starts ? step->query_starts[request] : request;
}

static uint32_t attention_query_count(const attention_step *step, uint32_t request) {
    const ptowsp_attention_batch *batch = step->batch;
    return batch->query_lengths ? (uint32_t)batch->query_lengths[request] : 1;
}

static uint32_t attention_group(const attention_step *step) {
    return step->config->group > 0 ? step->config->group : 1;
}

// The dimension that belongs in the place of `dim`.
static uint32_t attention_dim_of(uint32_t dim) {
    uint32_t whole = (dim + 15) / 16 * 16;
    return dim == 0 ? 16 : whole < ATTENTION_DIM_MAX ? whole : ATTENTION_DIM_MAX;
}

bool attention_step_check(const attention_kv *kv, const attention_step *step,
                          const ptowsp_attention_scratch *scratch, attention_fault *out_fault) {
    const ptowsp_attention_config *config = step->config;
    const ptowsp_attention_plan *plan = step->plan;
    uint32_t group = attention_group(step), slot_rows = plan->slot_count > 0 ? plan->slot_rows : 0;
    uint32_t tile_rows =
        config->tile_rows > 0 ? config->tile_rows : PTOWSP_ATTENTION_TILE_ROWS_DEFAULT;
    uint32_t tile = tile_rows > group ? tile_rows / group : 1;
    uint32_t page = config->page_size > 0 ? config->page_size : 1;
    uint32_t kv_page = kv->page_size > 0 ? kv->page_size : 1;
    bool has_rows = !scratch || scratch->rows >= slot_rows;  // larger slots are as good
    bool has_dim = !scratch || slot_rows == 0 || scratch->dim == kv->value_dim;
    const attention_fault faults[] = {
        {"group of the plan", plan->group, group},
        {"tile_tokens of the plan", plan->tile_tokens, tile},
        {"lane_count of the plan", plan->lane_count, config->lane_count},
        {"rows of the scratch", has_rows ? slot_rows : scratch->rows, slot_rows},
        {"dim of the scratch", has_dim ? kv->value_dim : scratch->dim, kv->value_dim},
        {"page_size of the cache", page % kv_page == 0 ? page : kv_page, page},
        {"key_dim of the cache", kv->key_dim, attention_dim_of(kv->key_dim)},
        {"value_dim of the cache", kv->value_dim, attention_dim_of(kv->value_dim)},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (faults[i].value != faults[i].expected) {
            *out_fault = faults[i];
            return false;
        }
    }
    for (uint32_t i = 0; !step->query_starts && i < step->batch->sequence_count; i++) {
        if (attention_query_count(step, i) != 1) {
            attention_fault fault = {"query length without query_starts",
                                     attention_query_count(step, i), 1};
            *out_fault = fault;
            return false;
        }
    }
    return true;
}

attention_unit attention_unit_of(const attention_step *step, const ptowsp_work *work) {
    uint32_t request = ptowsp_work_request(work), q = attention_query_count(step, request);
    assert(step->plan && step->plan->tile_tokens > 0);
    uint64_t tile = step->plan->tile_tokens, first = work->reserved * tile;
    attention_unit unit = {request, ptowsp_work_head(work),     0,
                           0,       ptowsp_work_kv_start(work), ptowsp_work_kv_len(work),
                           NULL};
    if (first < q) {
        unit.query_start = (uint32_t)first;
        unit.query_count = q - unit.query_start < tile ? q - unit.query_start : (uint32_t)tile;
    }
    return unit;
}

attention_unit attention_unit_of_prefix(const ptowsp_prefix_plan *plan, const ptowsp_work *work) {
    const ptowsp_prefix_segment *segment = &plan->segments[ptowsp_work_request(work)];
    uint32_t count;
    const uint32_t *tokens = ptowsp_prefix_unit_tokens(plan, work, &count);
    attention_unit unit = {segment->request,
                           ptowsp_work_head(work),
                           work->reserved * plan->attention.tile_tokens,
                           count,
                           ptowsp_work_kv_start(work),
                           ptowsp_work_kv_len(work),
                           segment->count > 1 ? tokens : NULL};
    return unit;
}

uint32_t attention_unit_rows(const attention_step *step, const attention_unit *unit) {
    return unit->query_count * attention_group(step);
}

// The query token of the batch that a row is of.
static size_t attention_row_token(const attention_step *step, const attention_unit *unit,
                                  uint32_t row) {
    const uint32_t query = row / attention_group(step);
    return unit->tokens
               ? unit->tokens[query]
               : (size_t)attention_query_first(step, unit->request) + unit->query_start + query;
}

// The tokens of [start, end) that a query token sees, as Mask of the header says. An empty range lies
// where it keeps the order of rows: both ends grow.
static attention_range attention_visible(const attention_step *step, const attention_unit *unit,
                                         uint32_t query, uint32_t start, uint32_t end) {
    if (unit->tokens) {
        attention_range all = {start, end};
        return all;
    }
    const ptowsp_attention_config *config = step->config;
    int64_t length = step->batch->kv_lengths[unit->request];
    int64_t position = length - attention_query_count(step, unit->request) + query;
    int64_t first = config->window > 0 ? position + 1 - config->window : 0;
    int64_t stop = config->is_causal ? position + 1 : length;
    first = first > start ? first : start;
    stop = stop < end ? stop : end;
    attention_range range = {start, start};
    if (first < stop) {
        range.first = (uint32_t)first;
        range.end = (uint32_t)stop;
    } else if (first >= end) {
        range.first = range.end = end;
    }
    return range;
}

// Few rows convert elements as they load them, which saves storing the result. Many have them
// converted once, in parts of 16, 32 or 64 values.
static void attention_choose_parts(attention_chunk *c) {
    uint32_t dim = c->kv->value_dim;
    c->is_converted = c->row_count > FEW_ROWS;
    c->tile_type = c->is_converted ? ATTENTION_F32 : c->kv->type;
    c->part_tokens = ATTENTION_BLOCK;
    while (c->is_converted && c->part_tokens * dim > PART_FLOATS) {
        c->part_tokens /= 2;
    }
    for (uint32_t t = 0; c->is_converted && t < c->part_tokens; t++) {
        c->part_rows[t] = (const char *)(c->part + (size_t)t * dim);
    }
}

// Fills in row `row` of the unit as row r of the chunk.
static void attention_add_row(attention_chunk *c, const attention_step *step,
                              const attention_unit *unit, uint32_t row, uint32_t r, float *accs,
                              attention_range tokens) {
    uint32_t group = attention_group(step);
    size_t query = unit->query_start + row / group;
    size_t token = attention_row_token(step, unit, row);
    size_t head = (size_t)unit->kv_head * group + row % group;
    c->queries[r] =
        step->queries + token * step->query_token_stride + head * step->query_head_stride;
    c->accs[r] =
        accs ? accs + (size_t)row * c->kv->value_dim
             : step->outputs + token * step->output_token_stride + head * step->output_head_stride;
    c->seen[r] = attention_visible(step, unit, (uint32_t)query, tokens.first, tokens.end);
    c->states[r].m = -INFINITY;
    c->states[r].l = 0.0f;
    memset(c->accs[r], 0, c->kv->value_dim * sizeof(float));
    memset(c->scores + (size_t)r * ATTENTION_BLOCK, 0, ATTENTION_BLOCK * sizeof(float));
}

// Finishes row r of the chunk, row `row` of the unit.
static void attention_finish_row(const attention_chunk *c, const attention_step *step,
                                 const attention_unit *unit, uint32_t row, uint32_t r) {
    const ptowsp_partial *state = &c->states[r];
    if (state->m != -INFINITY) {
        c->variant->divide(c->accs[r], c->kv->value_dim, state->l);
    }
    if (step->lse) {
        size_t token = attention_row_token(step, unit, row);
        uint32_t group = attention_group(step);
        size_t head = (size_t)unit->kv_head * group + row % group;
        step->lse[token * step->lse_token_stride + head * step->lse_head_stride] =
            ptowsp_merge_finish(state, NULL, 0, NULL);
    }
}

static void attention_compute_with(const attention_variant *variant, const attention_kv *kv,
                                   const attention_step *step, const attention_unit *unit,
                                   ptowsp_partial *states, float *accs) {
    assert(kv->key_dim > 0 && kv->key_dim % 16 == 0 && kv->key_dim <= ATTENTION_DIM_MAX);
    assert(kv->value_dim > 0 && kv->value_dim % 16 == 0 && kv->value_dim <= ATTENTION_DIM_MAX);
    assert(step->batch && step->config && (states ? accs != NULL : step->outputs != NULL));
    uint32_t request = unit->request, length = (uint32_t)step->batch->kv_lengths[request];
    uint32_t start = unit->kv_start < length ? unit->kv_start : length;
    uint32_t end = unit->kv_len < length - start ? start + unit->kv_len : length;
    uint32_t row_count = attention_unit_rows(step, unit);
    uint32_t chunks = (row_count + CHUNK_ROWS - 1) / CHUNK_ROWS;
    for (uint32_t i = 0, row = 0; i < chunks; i++) {
        attention_chunk c;
        c.variant = variant;
        c.kv = kv;
        c.pages = step->pages +
                  (step->page_starts ? step->page_starts[request] : request * step->page_stride);
        c.kv_head = unit->kv_head;
        c.row_count = (row_count - row + chunks - i - 1) / (chunks - i);
        c.scoring.scale = step->scale != 0.0f ? step->scale : 1.0f / sqrtf((float)kv->key_dim);
        c.scoring.cap = step->cap;
        c.scoring.key_scales = kv->type == ATTENTION_I8 ? c.key_scales : NULL;
        c.scoring.value_scales = kv->type == ATTENTION_I8 ? c.value_scales : NULL;
        attention_choose_parts(&c);
        attention_range tokens = {start, end};
        for (uint32_t r = 0; r < c.row_count; r++) {
            attention_add_row(&c, step, unit, row + r, r, states ? accs : NULL, tokens);
        }
        attention_run(&c);
        for (uint32_t r = 0; r < c.row_count; r++) {
            if (states) {
                states[row + r] = c.states[r];
            } else {
                attention_finish_row(&c, step, unit, row + r, r);
            }
        }
        row += c.row_count;
    }
}

void attention_compute(const attention_kv *kv, const attention_step *step,
                       const attention_unit *unit, ptowsp_partial *states, float *accs) {
    attention_compute_with(attention_variant_choose(), kv, step, unit, states, accs);
}

void attention_compute_work(const attention_kv *kv, const attention_step *step,
                            const ptowsp_attention_scratch *scratch, const ptowsp_work *work) {
    attention_unit unit = attention_unit_of(step, work);
    uint32_t slot = ptowsp_work_slot(work);
    bool is_part = slot != PTOWSP_NO_SLOT;
    assert(!is_part ||
           (attention_unit_rows(step, &unit) <= scratch->rows && scratch->dim == kv->value_dim));
    attention_compute(kv, step, &unit, is_part ? ptowsp_attention_states(scratch, slot) : NULL,
                      is_part ? ptowsp_attention_accs(scratch, slot) : NULL);
}
