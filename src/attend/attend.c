// Units: which rows against which tokens, where queries are read and outputs are written, and the
// errors. A unit is cut into chunks of rows (attend_block.c).

#include "attend.h"

#include "../plan/attention.h"

// -- variants -------------------------------------------------------------------------------------

PWSP_INTERNAL pwsp_attend_variant pwsp_attend_choose(void) {
    pwsp_attend_variant variant;
#if PWSP_X86
    if (pwsp_cpu_has_avx512()) {
        pwsp_attend_avx512(&variant);
        return variant;
    }
    if (pwsp_cpu_has_avx2()) {
        pwsp_attend_avx2(&variant);
        return variant;
    }
#endif
#if PWSP_NEON
    pwsp_attend_neon(&variant);
#else
    pwsp_attend_portable(&variant);
#endif
    return variant;
}

const char *ptowsp_attend_variant(void) {
    return pwsp_attend_choose().name;
}

size_t ptowsp_attend_bytes(ptowsp_attend_type type, size_t count) {
    const size_t block = (uint32_t)type < PTOWSP_ATTEND_TYPE_COUNT ? pwsp_attend_block_of(type) : 0;
    return block == 0 || count % block != 0 ? 0
           : count / block > SIZE_MAX / pwsp_attend_span(type, block)
               ? SIZE_MAX
               : pwsp_attend_span(type, count);
}

ptowsp_status ptowsp_attend_convert(const void *from, ptowsp_attend_type type, size_t count,
                                    float *to) {
    if (count > 0 && (!from || !to || ptowsp_attend_bytes(type, count) == 0)) {
        return PTOWSP_INVALID_PARAMS;
    }
    const size_t whole = count / 16 * 16, rest = count - whole;
    const pwsp_attend_variant variant = pwsp_attend_choose();
    const char *elements = (const char *)from;
    variant.convert(type, &elements, 1, whole, to);
    if (rest > 0) {
        char tail[16 * sizeof(float)] = {0};
        const char *row = tail;
        float floats[16];
        memcpy(tail, elements + pwsp_attend_span(type, whole), pwsp_attend_span(type, rest));
        variant.convert(type, &row, 1, 16, floats);
        memcpy(to + whole, floats, rest * sizeof *to);
    }
    return PTOWSP_OK;
}

// -- checks ---------------------------------------------------------------------------------------

#define PWSP_ATTEND_FAIL(info, fault, value, limit)                                                \
    pwsp_plan_fail(info, PTOWSP_FAULT_ATTEND_##fault, PTOWSP_NO_INDEX, pwsp_info_value(value),     \
                   pwsp_info_value(limit))

static bool pwsp_attend_is_dim(uint32_t dim, uint32_t step) {
    return dim > 0 && dim <= PTOWSP_ATTEND_DIM_MAX && dim % step == 0;
}

// The first stride that does not keep blocks whole, or 0.
static size_t pwsp_attend_stride_wrong(const ptowsp_attend_cache *cache, uint32_t block) {
    const ptowsp_attend_strides *k = &cache->key_strides, *v = &cache->value_strides;
    const size_t strides[] = {k->page, k->token, k->head, v->page, v->token, v->head};
    for (uint32_t i = 0; i < 6; i++) {
        if (strides[i] % block != 0) {
            return strides[i];
        }
    }
    return 0;
}

PWSP_INTERNAL ptowsp_status pwsp_attend_cache_check(const ptowsp_attend_cache *cache,
                                                    ptowsp_plan_info *info) {
    if ((uint32_t)cache->type >= PTOWSP_ATTEND_TYPE_COUNT) {
        return PWSP_ATTEND_FAIL(info, TYPE_UNKNOWN, (uint32_t)cache->type, 0);
    }
    const bool has_scales =
        cache->type != PTOWSP_ATTEND_I8 || (cache->key_scales && cache->value_scales);
    if (!cache->keys || !cache->values || !has_scales) {
        return PWSP_ATTEND_FAIL(info, CACHE_NULL, 0, 0);
    }
    const uint32_t block = pwsp_attend_block_of(cache->type);
    const uint32_t step = block > 1 ? block : PWSP_ATTEND_STEP;
    if (!pwsp_attend_is_dim(cache->key_dim, step)) {
        return PWSP_ATTEND_FAIL(info, KEY_DIM, cache->key_dim, step);
    }
    if (!pwsp_attend_is_dim(cache->value_dim, step)) {
        return PWSP_ATTEND_FAIL(info, VALUE_DIM, cache->value_dim, step);
    }
    const size_t wrong = pwsp_attend_stride_wrong(cache, block);
    return wrong != 0 ? PWSP_ATTEND_FAIL(info, STRIDE, wrong, block) : PTOWSP_OK;
}

// The fields of a step that a unit reads: all but outputs.
static bool pwsp_attend_step_is_set(const ptowsp_attend_step *step) {
    return step->batch && step->batch->kv_lengths && step->config && step->queries && step->pages;
}

PWSP_INTERNAL ptowsp_status pwsp_attend_step_check(const ptowsp_attend_cache *cache,
                                                   const ptowsp_attend_step *step,
                                                   ptowsp_plan_info *info) {
    if (!step->batch || !step->batch->kv_lengths || !step->config || !step->plan) {
        return PWSP_ATTEND_FAIL(info, STEP_NULL, 0, 0);
    }
    if (!step->queries || !step->outputs || !step->pages) {
        return PWSP_ATTEND_FAIL(info, ROWS_NULL, 0, 0);
    }
    const ptowsp_attention_config *config = step->config;
    const ptowsp_attention_plan *plan = step->plan;
    const uint32_t group = pwsp_attend_group(step);
    const uint32_t rows =
        config->tile_rows > 0 ? config->tile_rows : PTOWSP_ATTENTION_TILE_ROWS_DEFAULT;
    const uint32_t tile = rows > group ? rows / group : 1;
    const uint32_t page = config->page_size > 0 ? config->page_size : 1;
    if (step->prefix && plan != &step->prefix->attention) {
        return PWSP_ATTEND_FAIL(info, STEP_PREFIX, 0, 0);
    }
    if (plan->group != group) {
        return PWSP_ATTEND_FAIL(info, STEP_GROUP, plan->group, group);
    }
    if (plan->tile_tokens != tile) {
        return PWSP_ATTEND_FAIL(info, STEP_TILE, plan->tile_tokens, tile);
    }
    if (plan->lane_count != config->lane_count) {
        return PWSP_ATTEND_FAIL(info, STEP_LANES, plan->lane_count, config->lane_count);
    }
    if (cache->page_size > 0 && page % cache->page_size != 0) {
        return PWSP_ATTEND_FAIL(info, STEP_PAGE, cache->page_size, page);
    }
    if (step->prefix && config->window > 0) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_TREE_WINDOW, PTOWSP_NO_INDEX, config->window, 0);
    }
    if (step->prefix && pwsp_positions_of(config)) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_TREE_POSITIONS, PTOWSP_NO_INDEX, 1, 0);
    }
    return pwsp_positions_count_check(config, step->batch, info);
}

// -- units of a plan ------------------------------------------------------------------------------

// Where the sinks of a request end, if before `end`.
static uint32_t pwsp_attend_sinks_end(const ptowsp_attend_step *step, uint32_t request,
                                      uint32_t end) {
    const ptowsp_attention_positions *positions = step->config->positions;
    const int32_t sinks = positions && positions->sinks ? positions->sinks[request] : 0;
    return sinks > 0 && (uint32_t)sinks < end ? (uint32_t)sinks : sinks > 0 ? end : 0;
}

// The sinks that the first unit of a tile has besides, as section 9 says under Positions.
static uint32_t pwsp_attend_sinks_beside(const ptowsp_attend_step *step, const ptowsp_work *work) {
    const ptowsp_attention_positions *positions = step->config->positions;
    const uint32_t request = ptowsp_work_request(work), start = ptowsp_work_kv_start(work);
    const bool has_sinks = positions && request < positions->sequence_count;
    return has_sinks && ptowsp_work_is_first(work) ? pwsp_attend_sinks_end(step, request, start)
                                                   : 0;
}

ptowsp_attend_unit ptowsp_attend_unit_of(const ptowsp_attend_step *step, const ptowsp_work *work) {
    ptowsp_attend_unit unit;
    memset(&unit, 0, sizeof unit);
    if (!step || !work || !step->batch || !step->config || !step->plan) {
        return unit;
    }
    const uint64_t tile = step->plan->tile_tokens, first = work->reserved * tile;
    const ptowsp_prefix_plan *prefix = step->prefix;
    unit.request = ptowsp_work_request(work);
    unit.kv_head = ptowsp_work_head(work);
    unit.kv_start = ptowsp_work_kv_start(work);
    unit.kv_len = ptowsp_work_kv_len(work);
    uint64_t count, at = first;
    if (prefix) {
        if (unit.request >= prefix->segment_count) {
            return unit;
        }
        const ptowsp_prefix_segment *segment = &prefix->segments[unit.request];
        unit.request = segment->request;
        count = segment->token_count;
        if (segment->count > 1 && first < count) {
            at += segment->token_begin;
            unit.tokens = prefix->tokens + at;
        }
    } else {
        if (unit.request >= step->batch->sequence_count) {
            return unit;
        }
        count = pwsp_attend_query_count(step, unit.request);
        unit.sinks = pwsp_attend_sinks_beside(step, work);
    }
    if (first < count) {
        unit.query_start = (uint32_t)at;
        unit.query_count = (uint32_t)pwsp_min_u64(count - first, tile);
    }
    return unit;
}

uint32_t ptowsp_attend_unit_rows(const ptowsp_attend_step *step, const ptowsp_attend_unit *unit) {
    return step && unit && step->config ? unit->query_count * pwsp_attend_group(step) : 0;
}

// -- rows -----------------------------------------------------------------------------------------

PWSP_INTERNAL pwsp_attend_place pwsp_attend_place_of(const ptowsp_attend_step *step,
                                                     const ptowsp_attend_unit *unit, uint32_t row) {
    const uint32_t group = pwsp_attend_group(step), query = row / group;
    pwsp_attend_place place;
    place.token = unit->tokens ? unit->tokens[query]
                               : (size_t)pwsp_attend_query_first(step, unit->request) +
                                     unit->query_start + query;
    place.head = (size_t)unit->kv_head * group + row % group;
    place.output = step->outputs ? step->outputs + place.token * step->output_token_stride +
                                       place.head * step->output_head_stride
                                 : NULL;
    place.lse = step->lse ? step->lse + place.token * step->lse_token_stride +
                                place.head * step->lse_head_stride
                          : NULL;
    return place;
}

// The request of a query token of the unit, and its place there. Of several requests it is the last of
// the plan whose tokens begin there or before.
static pwsp_position_place pwsp_attend_position(const ptowsp_attend_step *step,
                                                const ptowsp_attend_unit *unit, uint32_t query,
                                                uint32_t *out_request) {
    const uint32_t at = unit->query_start + query;
    uint32_t request = unit->request, first = 0;
    if (unit->tokens) {
        const ptowsp_prefix_request *requests = step->prefix->requests;
        uint32_t low = 0, high = step->prefix->request_count;
        while (high - low > 1) {
            const uint32_t middle = low + (high - low) / 2;
            if (requests[middle].token_begin <= at) {
                low = middle;
            } else {
                high = middle;
            }
        }
        request = requests[low].request;
        first = requests[low].token_begin;
    }
    *out_request = request;
    return pwsp_position_place_of(step->batch, step->config, request, at - first);
}

// A range of tokens as far as it lies in another. An empty one lies where it keeps the order of rows:
// both ends grow.
static pwsp_attend_range pwsp_attend_inside(pwsp_attend_range range, pwsp_attend_range tokens) {
    pwsp_attend_range inside = {range.first > tokens.first ? range.first : tokens.first,
                                range.end > tokens.first ? range.end : tokens.first};
    inside.first = inside.first < tokens.end ? inside.first : tokens.end;
    inside.end = inside.end < tokens.end ? inside.end : tokens.end;
    return inside;
}

// The unit's tokens that a query token sees, or its sinks alone.
static pwsp_attend_range pwsp_attend_visible(const ptowsp_attend_step *step,
                                             const ptowsp_attend_unit *unit, uint32_t query,
                                             pwsp_attend_range tokens, bool is_of_sinks) {
    if (unit->tokens) {
        return tokens;
    }
    const ptowsp_attention_seen seen =
        ptowsp_attention_see(step->batch, step->config, unit->request, unit->query_start + query);
    const pwsp_attend_range window = {seen.begin, seen.end}, sinks = {0, seen.sinks};
    return pwsp_attend_inside(is_of_sinks ? sinks : window, tokens);
}

// Fills in row `row` of the unit as row r of the chunk.
static void pwsp_attend_add_row(pwsp_attend_chunk *c, const ptowsp_attend_step *step,
                                const ptowsp_attend_unit *unit, uint32_t row, uint32_t r,
                                float *accs) {
    const pwsp_attend_place place = pwsp_attend_place_of(step, unit, row);
    c->queries[r] = step->queries + place.token * step->query_token_stride +
                    place.head * step->query_head_stride;
    c->accs[r] = accs ? accs + (size_t)row * c->cache->value_dim : place.output;
    if (c->is_biased || c->mask_words > 0) {
        uint32_t request;
        const pwsp_position_place at =
            pwsp_attend_position(step, unit, row / pwsp_attend_group(step), &request);
        c->positions[r] = at.token;
        c->slopes[r] = c->is_biased ? step->slopes[place.head] * at.stride : 0.0f;
        c->masks[r].words = c->mask_words > 0 ? step->mask + place.token * step->mask_stride : NULL;
        c->masks[r].start = step->mask_starts ? step->mask_starts[request] : 0;
    }
    ptowsp_merge_clear(&c->states[r], c->accs[r], c->cache->value_dim);
    memset(c->scores + (size_t)r * PWSP_ATTEND_BLOCK, 0, PWSP_ATTEND_BLOCK * sizeof(float));
}

// Adds the tokens that rows of the chunk see, from row `row` of the unit on.
static void pwsp_attend_run_rows(pwsp_attend_chunk *c, const ptowsp_attend_step *step,
                                 const ptowsp_attend_unit *unit, uint32_t row,
                                 pwsp_attend_range tokens, bool is_of_sinks) {
    if (tokens.first >= tokens.end) {
        return;
    }
    const uint32_t group = pwsp_attend_group(step);
    for (uint32_t r = 0; r < c->row_count; r++) {
        const bool is_same = r > 0 && (row + r) % group > 0;  // query token as in the row before
        c->seen[r] = is_same
                         ? c->seen[r - 1]
                         : pwsp_attend_visible(step, unit, (row + r) / group, tokens, is_of_sinks);
    }
    pwsp_attend_run_chunk(c);
}

// With a sink s the row is acc / (l + e^(s - m)): the finished row without it, times 1 / (1 +
// e^(s - lse)). So it is the same whether the row was whole, or merged from any parts.
PWSP_INTERNAL void pwsp_attend_end_row(const ptowsp_attend_step *step, pwsp_attend_place place,
                                       uint32_t dim, float lse) {
    PWSP_ROUND_APART;
    const float sink = step->sinks ? step->sinks[place.head] : -pwsp_infinity();
    if (sink != -pwsp_infinity()) {
        const bool is_above = sink > lse;
        const float power =
            pwsp_exp(is_above ? lse - sink : sink - lse);  // of the difference below 0
        const float share = (is_above ? power : 1.0f) / (1.0f + power);
        for (uint32_t d = 0; d < dim; d++) {
            place.output[d] *= share;
        }
        lse = (is_above ? sink : lse) + pwsp_log(1.0f + power);
    }
    if (place.lse) {
        *place.lse = lse;
    }
}

// Finishes row r of the chunk, row `row` of the unit.
static void pwsp_attend_finish_row(const pwsp_attend_chunk *c, const ptowsp_attend_step *step,
                                   const ptowsp_attend_unit *unit, uint32_t row, uint32_t r) {
    const ptowsp_partial *state = &c->states[r];
    if (state->m != -pwsp_infinity()) {
        c->variant.divide(c->accs[r], c->cache->value_dim, state->l);
    }
    if (step->lse || step->sinks) {
        pwsp_attend_end_row(step, pwsp_attend_place_of(step, unit, row), c->cache->value_dim,
                            ptowsp_merge_finish(state, NULL, 0, NULL));
    }
}

// 1 / sqrt(dim), rounded as floats are: the root by Newton's iteration from above.
static float pwsp_attend_scale(uint32_t dim) {
    double root = (double)dim;
    for (int32_t i = 0; i < 16; i++) {
        root = 0.5 * (root + (double)dim / root);
    }
    return 1.0f / (float)root;
}

static void pwsp_attend_start_chunk(pwsp_attend_chunk *c, const ptowsp_attend_step *step,
                                    const ptowsp_attend_unit *unit) {
    const ptowsp_attend_cache *cache = c->cache;
    const bool is_scaled = cache->type == PTOWSP_ATTEND_I8;
    c->pages = step->pages + (step->page_starts ? step->page_starts[unit->request]
                                                : unit->request * step->page_stride);
    c->kv_head = unit->kv_head;
    c->is_biased = step->slopes != NULL;
    c->mask_words = step->mask ? step->mask_stride : 0;
    c->scoring.scale = step->scale != 0.0f ? step->scale : pwsp_attend_scale(cache->key_dim);
    c->scoring.cap = step->cap;
    c->scoring.key_scales = is_scaled ? c->key_scales : NULL;
    c->scoring.value_scales = is_scaled ? c->value_scales : NULL;
    pwsp_attend_choose_parts(c);
}

PWSP_INTERNAL void pwsp_attend_compute(const pwsp_attend_variant *variant,
                                       const ptowsp_attend_cache *cache,
                                       const ptowsp_attend_step *step,
                                       const ptowsp_attend_unit *unit, ptowsp_partial *states,
                                       float *accs) {
    const uint32_t length = (uint32_t)step->batch->kv_lengths[unit->request];
    const uint32_t start = unit->kv_start < length ? unit->kv_start : length;
    const uint32_t end = unit->kv_len < length - start ? start + unit->kv_len : length;
    const pwsp_attend_range tokens = {start, end};
    const pwsp_attend_range beside = {0, unit->sinks};
    const pwsp_attend_range sinks = {start, pwsp_attend_sinks_end(step, unit->request, end)};
    const uint32_t row_count = ptowsp_attend_unit_rows(step, unit);
    const uint32_t chunks = (uint32_t)pwsp_ceil_div_u64(row_count, PWSP_ATTEND_ROWS);
    for (uint32_t i = 0, row = 0; i < chunks; i++) {
        pwsp_attend_chunk c;
        c.variant = *variant;
        c.cache = cache;
        c.row_count = (row_count - row + chunks - i - 1) / (chunks - i);
        pwsp_attend_start_chunk(&c, step, unit);
        for (uint32_t r = 0; r < c.row_count; r++) {
            pwsp_attend_add_row(&c, step, unit, row + r, r, states ? accs : NULL);
        }
        pwsp_attend_run_rows(&c, step, unit, row, beside, true);
        pwsp_attend_run_rows(&c, step, unit, row, sinks, true);
        pwsp_attend_run_rows(&c, step, unit, row, tokens, false);
        for (uint32_t r = 0; r < c.row_count; r++) {
            if (states) {
                states[row + r] = c.states[r];
            } else {
                pwsp_attend_finish_row(&c, step, unit, row + r, r);
            }
        }
        row += c.row_count;
    }
}

// Whether a unit's query tokens are of the step.
static bool pwsp_attend_unit_is_good(const ptowsp_attend_step *step,
                                     const ptowsp_attend_unit *unit) {
    uint32_t count;
    if (unit->request >= step->batch->sequence_count ||
        step->batch->kv_lengths[unit->request] < 0) {
        return false;
    }
    ptowsp_plan_info spare;
    const bool has_window = step->config->window > 0 || pwsp_positions_of(step->config);
    if (unit->sinks > unit->kv_start || (unit->tokens && has_window) ||
        pwsp_positions_count_check(step->config, step->batch, &spare) != PTOWSP_OK) {
        return false;
    }
    if (!unit->tokens) {
        count = pwsp_attend_query_count(step, unit->request);
    } else if (!step->slopes && !step->mask) {
        return true;
    } else if (!step->prefix) {
        return false;
    } else {
        count = step->prefix->token_count;
    }
    return unit->query_start <= count && unit->query_count <= count - unit->query_start;
}

ptowsp_status ptowsp_attend_compute(const ptowsp_attend_cache *cache,
                                    const ptowsp_attend_step *step, const ptowsp_attend_unit *unit,
                                    ptowsp_partial *states, float *accs) {
    ptowsp_plan_info spare;
    if (!cache || !step || !unit || !pwsp_attend_step_is_set(step) ||
        (states ? !accs : !step->outputs) || pwsp_attend_cache_check(cache, &spare) != PTOWSP_OK ||
        !pwsp_attend_unit_is_good(step, unit)) {
        return PTOWSP_INVALID_PARAMS;
    }
    const pwsp_attend_variant variant = pwsp_attend_choose();
    pwsp_attend_compute(&variant, cache, step, unit, states, accs);
    return PTOWSP_OK;
}
