// Blocks of a chunk of rows, one after another:
//
//      keys   ->  packed, a part at a time  ->  scores of all rows that see the part
//      scores ->  scale, cap, mask          ->  weights, state, factor: online softmax
//      values ->  f32, a part at a time     ->  accs = accs * factor + weights * values
//
// Parts fit the first-level cache together with a tile of rows, and a part is used by all rows before
// the next is read. Rows of a tile that see different tokens of a block get their values apart, each
// from the tokens it sees alone.

#include "attend_simd.h"

// -- the cache ------------------------------------------------------------------------------------

typedef struct pwsp_attend_spot {
    size_t page, slot;
    uint32_t left;  // tokens to the end of the page, this one included
} pwsp_attend_spot;

static pwsp_attend_spot pwsp_attend_find(const ptowsp_attend_cache *cache, const uint32_t *pages,
                                         uint32_t token) {
    pwsp_attend_spot place = {pages[0], token, UINT32_MAX - token};
    if (cache->page_size > 0) {
        place.page = pages[token / cache->page_size];
        place.slot = token % cache->page_size;
        place.left = cache->page_size - token % cache->page_size;
    }
    return place;
}

static size_t pwsp_attend_offset(const ptowsp_attend_strides *strides,
                                 const pwsp_attend_spot *place, uint32_t kv_head) {
    return place->page * strides->page + place->slot * strides->token + kv_head * strides->head;
}

// Finds the rows of tokens `seen` of the block that begins at `token`, page by page.
static void pwsp_attend_find_rows(const ptowsp_attend_cache *cache, const uint32_t *pages,
                                  uint32_t kv_head, uint32_t token, pwsp_attend_range seen,
                                  pwsp_attend_rows *rows) {
    const size_t key_step = pwsp_attend_span(cache->type, cache->key_strides.token);
    const size_t value_step = pwsp_attend_span(cache->type, cache->value_strides.token);
    rows->seen = seen;
    for (uint32_t t = seen.first; t < seen.end;) {
        pwsp_attend_spot place = pwsp_attend_find(cache, pages, token + t);
        if (cache->type == PTOWSP_ATTEND_I8) {
            size_t scale = pwsp_attend_offset(&cache->scale_strides, &place, kv_head);
            PWSP_PREFETCH(cache->key_scales + scale);
            PWSP_PREFETCH(cache->value_scales + scale);
        }
        const char *key =
            (const char *)cache->keys +
            pwsp_attend_span(cache->type, pwsp_attend_offset(&cache->key_strides, &place, kv_head));
        const char *value = (const char *)cache->values +
                            pwsp_attend_span(cache->type, pwsp_attend_offset(&cache->value_strides,
                                                                             &place, kv_head));
        uint32_t stop = place.left < seen.end - t ? t + place.left : seen.end;
        for (; t < stop; t++) {
            rows->keys[t] = key;
            rows->values[t] = value;
            key += key_step;
            value += value_step;
        }
    }
    for (uint32_t t = 0; t < seen.first; t++) {
        rows->keys[t] = rows->keys[seen.first];
        rows->values[t] = rows->values[seen.first];
    }
    for (uint32_t t = seen.end; t < PWSP_ATTEND_BLOCK; t++) {
        rows->keys[t] = rows->keys[seen.first];
        rows->values[t] = rows->values[seen.first];
    }
}

// The scales of the same tokens, zeros around them.
static void pwsp_attend_find_scales(const ptowsp_attend_cache *cache, const uint32_t *pages,
                                    uint32_t kv_head, uint32_t token, pwsp_attend_range seen,
                                    float *keys, float *values) {
    memset(keys, 0, PWSP_ATTEND_BLOCK * sizeof *keys);
    memset(values, 0, PWSP_ATTEND_BLOCK * sizeof *values);
    for (uint32_t t = seen.first; t < seen.end;) {
        pwsp_attend_spot place = pwsp_attend_find(cache, pages, token + t);
        size_t at = pwsp_attend_offset(&cache->scale_strides, &place, kv_head);
        uint32_t stop = place.left < seen.end - t ? t + place.left : seen.end;
        for (; t < stop; t++, at += cache->scale_strides.token) {
            keys[t] = cache->key_scales[at];
            values[t] = cache->value_scales[at];
        }
    }
}

// -- a chunk of rows ------------------------------------------------------------------------------

// The tokens of [start, start + count) in a range, from start on.
static pwsp_attend_range pwsp_attend_clip(pwsp_attend_range range, uint32_t start, uint32_t count) {
    uint32_t first = range.first > start ? range.first - start : 0;
    uint32_t end = range.end > start ? range.end - start : 0;
    pwsp_attend_range out = {first < count ? first : count, end < count ? end : count};
    return out;
}

static bool pwsp_attend_is_empty(pwsp_attend_range range) {
    return range.first >= range.end;
}

// The tokens that the rows see of the block that begins at `token`, and which rows see some.
static void pwsp_attend_mask(pwsp_attend_chunk *c, uint32_t token) {
    const pwsp_attend_range *last = &c->seen[c->row_count - 1];
    c->is_full = last->first <= token && c->seen[0].end >= token + PWSP_ATTEND_BLOCK;
    c->row_first = 0;
    c->row_end = c->row_count;
    if (c->is_full) {
        return;
    }
    for (uint32_t r = 0; r < c->row_count; r++) {
        c->in_block[r] = pwsp_attend_clip(c->seen[r], token, PWSP_ATTEND_BLOCK);
    }
    while (c->row_first < c->row_end && pwsp_attend_is_empty(c->in_block[c->row_first])) {
        c->row_first++;
    }
    while (c->row_first < c->row_end && pwsp_attend_is_empty(c->in_block[c->row_end - 1])) {
        c->row_end--;
    }
}

// The part [at, at + count) of the block as rows [first, end) see it: from the earliest to the
// latest token of any, and the tokens that all see.
static pwsp_attend_range pwsp_attend_some(const pwsp_attend_chunk *c, uint32_t first, uint32_t end,
                                          uint32_t at, uint32_t count) {
    pwsp_attend_range all = {0, count}, some = {c->in_block[first].first, c->in_block[end - 1].end};
    return c->is_full ? all : pwsp_attend_clip(some, at, count);
}

static pwsp_attend_range pwsp_attend_common(const pwsp_attend_chunk *c, uint32_t first,
                                            uint32_t end, uint32_t at, uint32_t count) {
    pwsp_attend_range all = {0, count},
                      common = {c->in_block[end - 1].first, c->in_block[first].end};
    return c->is_full ? all : pwsp_attend_clip(common, at, count);
}

// Rows of the next tile: `left` rows in tiles of about equal size, at most `most`.
static uint32_t pwsp_attend_tile(uint32_t left, uint32_t most) {
    uint32_t tiles = (left + most - 1) / most;
    return (left + tiles - 1) / tiles;
}

// Begins to prefetch keys or values of tokens `seen`, after the rest of the rows before: rows of blocks
// with scales have more lines than tiles ask for.
static void pwsp_attend_look_ahead(pwsp_attend_chunk *c, const char *const *rows,
                                   pwsp_attend_range seen, uint32_t dim) {
    while (c->ahead.row_count > 0 || c->ahead.at < c->ahead.end) {
        PWSP_ATTEND_ASK(&c->ahead, 1, 64);
    }
    const pwsp_attend_ahead ahead = {rows + seen.first, seen.end - seen.first,
                                     pwsp_attend_span(c->cache->type, dim), NULL, NULL};
    c->ahead = ahead;
}

// Writes rows of Q4_0 as Q8_0: the same numbers, which tiles load.
static void pwsp_attend_widen(pwsp_attend_chunk *c, const char *const *rows, uint32_t count,
                              uint32_t dim, const char **out) {
    const size_t size = pwsp_attend_span(PTOWSP_ATTEND_Q8_0, dim);
    for (uint32_t i = 0; i < count; i++) {
        char *row = (char *)c->part + i * size;
        pwsp_attend_eights(rows[i], dim, row);
        out[i] = row;
    }
}

// Packs the keys of a part that begins at token t of the block, as elements of tiles.
static const char *pwsp_attend_pack_keys(pwsp_attend_chunk *c, uint32_t t) {
    const uint32_t dim = c->cache->key_dim;
    const char *const *rows = c->rows->keys + t, *wide[PWSP_ATTEND_PART];
    char *packed = (char *)c->packed;
    ptowsp_attend_type type = c->cache->type;
    if (type == PTOWSP_ATTEND_Q4_0) {
        pwsp_attend_widen(c, rows, PWSP_ATTEND_PART, dim, wide);
        rows = wide;
        type = PTOWSP_ATTEND_Q8_0;
    }
    c->variant.pack(type, rows, dim, packed, c->packed_scales);
    if (c->tile_type == type) {
        return packed;
    }
    c->variant.unpack(type, packed, c->packed_scales, dim, c->part);
    return (const char *)c->part;
}

static void pwsp_attend_score(pwsp_attend_chunk *c) {
    pwsp_attend_range all = c->rows->seen;
    uint32_t dim = c->cache->key_dim;
    pwsp_attend_look_ahead(c, c->rows->values, all, c->cache->value_dim);
    for (uint32_t t = all.first / PWSP_ATTEND_PART * PWSP_ATTEND_PART; t < all.end;
         t += PWSP_ATTEND_PART) {
        const char *keys = pwsp_attend_pack_keys(c, t);
        for (uint32_t r = c->row_first, count; r < c->row_end; r += count) {
            count = pwsp_attend_tile(c->row_end - r, c->score_rows);
            if (!pwsp_attend_is_empty(pwsp_attend_some(c, r, r + count, t, PWSP_ATTEND_PART))) {
                c->variant.scores(c->tile_type, count, c->queries + r, keys, c->packed_scales,
                                  &c->ahead, dim, c->scores + (size_t)r * PWSP_ATTEND_BLOCK + t);
            }
        }
    }
}

// Adds the weighted values of tokens `seen` of the part that begins at `at` to rows [first, end).
static void pwsp_attend_add(pwsp_attend_chunk *c, const char *const *values, pwsp_attend_range seen,
                            uint32_t at, uint32_t first, uint32_t end) {
    c->variant.values(c->tile_type, end - first, values + seen.first, seen.end - seen.first,
                      &c->ahead, c->scores + (size_t)first * PWSP_ATTEND_BLOCK + at + seen.first,
                      c->factors + first, c->cache->value_dim, c->accs + first);
    for (uint32_t r = first; r < end; r++) {
        c->factors[r] = 1.0f;
    }
}

// The same for all that a row sees of a part under a mask, run by run.
static void pwsp_attend_add_runs(pwsp_attend_chunk *c, const char *const *values, uint32_t at,
                                 uint32_t count, uint32_t r) {
    const pwsp_attend_range range = pwsp_attend_clip(c->in_block[r], at, count);
    const uint64_t seen = c->biases[r].seen >> at;
    for (uint32_t t = range.first; t < range.end;) {
        pwsp_attend_range run = {t, t};
        while (run.end < range.end && (seen >> run.end & 1)) {
            run.end++;
        }
        if (!pwsp_attend_is_empty(run)) {
            pwsp_attend_add(c, values, run, at, r, r + 1);
        }
        t = run.end + 1;
    }
}

// The same for all tokens of a part that the rows of a tile see: together those that all of them see, and each
// alone those before and after. The order of a row's tokens stays.
static void pwsp_attend_add_tile(pwsp_attend_chunk *c, const char *const *values, uint32_t at,
                                 uint32_t count, uint32_t first, uint32_t end) {
    pwsp_attend_range common = pwsp_attend_common(c, first, end, at, count);
    bool has_common = !pwsp_attend_is_empty(common);
    for (uint32_t r = first; r < end && !c->is_full; r++) {
        pwsp_attend_range before = pwsp_attend_clip(c->in_block[r], at, count);
        before.end = has_common ? common.first : before.end;
        if (!pwsp_attend_is_empty(before)) {
            pwsp_attend_add(c, values, before, at, r, r + 1);
        }
    }
    if (has_common) {
        pwsp_attend_add(c, values, common, at, first, end);
    }
    for (uint32_t r = first; r < end && has_common && !c->is_full; r++) {
        pwsp_attend_range after = pwsp_attend_clip(c->in_block[r], at, count);
        after.first = common.end;
        if (!pwsp_attend_is_empty(after)) {
            pwsp_attend_add(c, values, after, at, r, r + 1);
        }
    }
}

static void pwsp_attend_value(pwsp_attend_chunk *c) {
    pwsp_attend_range all = c->rows->seen;
    uint32_t part = c->part_tokens, dim = c->cache->value_dim;
    if (c->next) {
        pwsp_attend_look_ahead(c, c->next->keys, c->next->seen, c->cache->key_dim);
    }
    for (uint32_t t = all.first / part * part, count; t < all.end; t += count) {
        count = all.end - t < part ? all.end - t : part;
        const char *const *values = c->rows->values + t;
        if (c->is_converted) {
            c->variant.convert(c->cache->type, values, count, dim, c->part);
            values = c->part_rows;
        } else if (c->tile_type != c->cache->type) {
            pwsp_attend_widen(c, values, count, dim, c->part_rows);
            values = c->part_rows;
        }
        for (uint32_t r = c->row_first, rows; r < c->row_end; r += rows) {
            rows = pwsp_attend_tile(c->row_end - r, c->value_rows);
            for (uint32_t i = r; c->is_masked && i < r + rows; i++) {
                pwsp_attend_add_runs(c, values, t, count, i);
            }
            if (!c->is_masked) {
                pwsp_attend_add_tile(c, values, t, count, r, r + rows);
            }
        }
    }
}

// The mask's bits of the 64 tokens from `token` on. Tokens before the mask and after it are seen.
static uint64_t pwsp_attend_mask_bits(const pwsp_attend_bits *mask, size_t words, uint32_t token) {
    const int64_t first = token - mask->start;
    const uint32_t shift = (uint32_t)((uint64_t)first % 32);
    const int64_t at = (first - shift) / 32;
    uint64_t bits = 0;
    for (int64_t i = 0; i < 3; i++) {
        const bool is_there = at + i >= 0 && at + i < (int64_t)words;
        const uint64_t word = is_there ? mask->words[at + i] : UINT32_MAX;
        bits |= i == 0 ? word >> shift : i == 1 || shift > 0 ? word << (32 * i - shift) : 0;
    }
    return bits;
}

// How the rows adjust the scores of the block that begins at `token`. Where the mask hides something,
// rows see their ranges by pwsp_attend_mask, less that.
static void pwsp_attend_find_biases(pwsp_attend_chunk *c, uint32_t token) {
    c->is_masked = false;
    if (!c->is_biased && c->mask_words == 0) {
        return;
    }
    for (uint32_t r = c->row_first; r < c->row_end; r++) {
        pwsp_attend_bias bias = {0.0f, 0.0f, UINT64_MAX};
        if (c->is_biased) {
            bias.slope = c->slopes[r];
            bias.distance = (float)(c->positions[r] - (double)token);
        }
        if (c->mask_words > 0) {
            bias.seen = pwsp_attend_mask_bits(&c->masks[r], c->mask_words, token);
            c->is_masked = c->is_masked || bias.seen != UINT64_MAX;
        }
        c->biases[r] = bias;
    }
    for (uint32_t r = c->row_first; c->is_masked && c->is_full && r < c->row_end; r++) {
        const pwsp_attend_range all = {0, PWSP_ATTEND_BLOCK};
        c->in_block[r] = all;
    }
    c->is_full = c->is_full && !c->is_masked;
}

static void pwsp_attend_block(pwsp_attend_chunk *c, uint32_t token) {
    const pwsp_attend_range block = {0, PWSP_ATTEND_BLOCK};
    pwsp_attend_mask(c, token);
    if (c->row_first == c->row_end) {
        return;  // it lies between windows
    }
    if (c->cache->type == PTOWSP_ATTEND_I8) {
        pwsp_attend_find_scales(c->cache, c->pages, c->kv_head, token, c->rows->seen, c->key_scales,
                                c->value_scales);
    }
    pwsp_attend_find_biases(c, token);
    pwsp_attend_score(c);
    for (uint32_t r = c->row_first, count; r < c->row_end; r += count) {
        pwsp_attend_range seen = c->is_full ? block : c->in_block[r];
        count = c->is_full ? c->row_end - r : 1;
        c->variant.softmax(&c->scoring, c->is_biased || c->is_masked ? c->biases + r : NULL,
                           c->scores + (size_t)r * PWSP_ATTEND_BLOCK, seen.first, seen.end, count,
                           c->states + r, c->factors + r);
    }
    pwsp_attend_value(c);
}

// All that the rows see, in blocks that begin at multiples of their size: a row's bits then do not depend
// on where the unit begins.
PWSP_INTERNAL void pwsp_attend_run_chunk(pwsp_attend_chunk *c) {
    pwsp_attend_range all = {UINT32_MAX, 0};
    for (uint32_t r = 0; r < c->row_count; r++) {
        if (!pwsp_attend_is_empty(c->seen[r])) {
            all.first = all.end == 0 ? c->seen[r].first : all.first;
            all.end = c->seen[r].end;
        }
    }
    if (pwsp_attend_is_empty(all)) {
        return;
    }
    const pwsp_attend_ahead nothing = {NULL, 0, 0, NULL, NULL};
    c->ahead = nothing;
    pwsp_attend_rows rows[2];
    uint32_t token = all.first / PWSP_ATTEND_BLOCK * PWSP_ATTEND_BLOCK, turn = 0;
    pwsp_attend_find_rows(c->cache, c->pages, c->kv_head, token,
                          pwsp_attend_clip(all, token, PWSP_ATTEND_BLOCK), &rows[turn]);
    for (;;) {
        uint32_t left = all.end - token;
        c->rows = &rows[turn];
        c->next = left > PWSP_ATTEND_BLOCK ? &rows[1 - turn] : NULL;
        if (c->next) {
            pwsp_attend_range seen = {0, left < 2 * PWSP_ATTEND_BLOCK ? left - PWSP_ATTEND_BLOCK
                                                                      : PWSP_ATTEND_BLOCK};
            pwsp_attend_find_rows(c->cache, c->pages, c->kv_head, token + PWSP_ATTEND_BLOCK, seen,
                                  &rows[1 - turn]);
        }
        pwsp_attend_block(c, token);
        if (!c->next) {
            break;
        }
        token += PWSP_ATTEND_BLOCK;
        turn = 1 - turn;
    }
}

// Few rows convert elements as they load them, which saves storing the result. Many have them
// converted once, in parts of 16, 32 or 64 values.
PWSP_INTERNAL void pwsp_attend_choose_parts(pwsp_attend_chunk *c) {
    const ptowsp_attend_type type = c->cache->type;
    const uint32_t dim = c->cache->value_dim;
    const uint32_t most = type == PTOWSP_ATTEND_F32 ? PWSP_ATTEND_TILE : c->variant.type_rows;
    c->is_converted =
        type != PTOWSP_ATTEND_F32 && (c->row_count > PWSP_ATTEND_FEW || c->variant.type_rows == 0);
    c->tile_type = c->is_converted              ? PTOWSP_ATTEND_F32
                   : type == PTOWSP_ATTEND_Q4_0 ? PTOWSP_ATTEND_Q8_0
                                                : type;
    c->score_rows = c->variant.score_rows;
    c->value_rows = c->variant.value_rows;
    if (!c->is_converted) {
        c->score_rows = c->score_rows < most ? c->score_rows : most;
        c->value_rows = c->value_rows < most ? c->value_rows : most;
    }
    c->part_tokens = PWSP_ATTEND_BLOCK;
    while (c->is_converted && c->part_tokens * dim > PWSP_ATTEND_FLOATS) {
        c->part_tokens /= 2;
    }
    for (uint32_t t = 0; c->is_converted && t < c->part_tokens; t++) {
        c->part_rows[t] = (const char *)(c->part + (size_t)t * dim);
    }
}
