// Attention plans: the configuration, its costs on a grid, and one pass over the batch that checks
// and counts.
//
// The grid. Doubles become integers once, here: the smallest cost that is not 0 gets 11 bits, by a
// power of two that multiplies all. So the costs are exact where they are powers of two, as the
// defaults are, and within 0.05 % otherwise. The others are at most 2^30 larger.

#include "attention.h"

#define PWSP_COST_RATIO_BITS 30
#define PWSP_COST_GREATEST   1e100

// 2^exponent.
static double pwsp_power_of_two(int exponent) {
    const uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

// The exponent of a double from 2^exponent on, which is a normal number.
static int pwsp_exponent_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

PWSP_INTERNAL ptowsp_status pwsp_costs_to_grid(const double *costs, const double *defaults,
                                               uint32_t count, uint64_t *out_fixed,
                                               double *out_grid, ptowsp_plan_info *info) {
    double least = 0.0;
    for (uint32_t pass = 0; pass < 2 && least <= 0.0; pass++) {
        costs = pass == 0 ? costs : defaults;
        for (uint32_t i = 0; i < count; i++) {
            const bool is_inside =
                costs[i] >= 1.0 / PWSP_COST_GREATEST && costs[i] <= PWSP_COST_GREATEST;
            if (!is_inside && !(costs[i] >= 0.0 && costs[i] <= 0.0)) {
                return pwsp_plan_fail(info, PTOWSP_FAULT_COST_INVALID, i, 0, 0);
            }
            least = is_inside && (least <= 0.0 || costs[i] < least) ? costs[i] : least;
        }
    }
    const double ratio = pwsp_power_of_two(PWSP_COST_RATIO_BITS);
    const int shift = 10 - pwsp_exponent_of(least);
    const double scale = pwsp_power_of_two(shift);
    for (uint32_t i = 0; i < count; i++) {
        if (costs[i] > least * ratio) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_COST_APART, i, 0, PWSP_COST_RATIO_BITS);
        }
        out_fixed[i] = (uint64_t)(costs[i] * scale + 0.5);  // the product is exact
    }
    *out_grid = pwsp_power_of_two(-shift);
    return PTOWSP_OK;
}

static ptowsp_status pwsp_costs_set(pwsp_attention *a, ptowsp_plan_info *info) {
    const ptowsp_attention_cost *given = &a->config.cost;
    const double costs[4] = {given->per_unit, given->per_token, given->per_row_token,
                             given->per_merged_row};
    static const double defaults[4] = {64.0, 1.0, 1.0 / 64.0, 1.0};
    uint64_t fixed[4];
    ptowsp_status status = pwsp_costs_to_grid(costs, defaults, 4, fixed, &a->grid, info);
    if (status == PTOWSP_OK) {
        a->unit = fixed[0], a->token = fixed[1], a->row_token = fixed[2], a->merged_row = fixed[3];
    }
    return status;
}

static ptowsp_status pwsp_lanes_set(pwsp_attention *a, ptowsp_plan_info *info) {
    const uint32_t count = a->config.lane_count, *speeds = a->config.lane_speeds;
    if (count == 0 || count > PTOWSP_ATTENTION_LANE_MAX) {
        return PWSP_PLAN_FAIL(info, LANES_COUNT, count, PTOWSP_ATTENTION_LANE_MAX);
    }
    a->worker_count = count, a->speed_sum = count, a->speed_max = 1, a->worker_last = count - 1;
    if (speeds) {
        a->worker_count = 0, a->speed_sum = 0, a->speed_max = 0;
        for (uint32_t lane = 0; lane < count; lane++) {
            a->worker_count += speeds[lane] > 0;
            a->worker_last = speeds[lane] > 0 ? lane : a->worker_last;
            a->speed_sum += speeds[lane];
            a->speed_max = speeds[lane] > a->speed_max ? speeds[lane] : a->speed_max;
        }
    }
    return a->worker_count == 0 ? PWSP_PLAN_FAIL(info, SPEEDS_ZERO, count, 0) : PTOWSP_OK;
}

// Sets where the pieces of an INVARIANT plan may begin. The default grain is one that a kernel's blocks
// of up to 64 tokens divide; where none such fits both the page and the chunk, it is the chunk.
static ptowsp_status pwsp_pieces_set(pwsp_attention *a, ptowsp_plan_info *info) {
    const ptowsp_attention_config *c = &a->config;
    const uint32_t page = c->page_size;
    a->chunk = c->chunk;
    a->grain = 1;
    if (a->chunk == 0) {
        a->chunk = pwsp_ceil_div_u64(PTOWSP_ATTENTION_CHUNK_DEFAULT, page) * page;
    }
    if (!pwsp_attention_cuts_chunks(a)) {
        return PTOWSP_OK;
    }
    if (a->chunk % page != 0) {
        return PWSP_PLAN_FAIL(info, CHUNK_PAGES, c->chunk, page);
    }
    a->grain = c->grain;
    if (a->grain == 0) {
        const uint32_t block = PTOWSP_ATTENTION_GRAIN_DEFAULT, grain = page > block ? page : block;
        const bool fits = grain % block == 0 && grain % page == 0 && a->chunk % grain == 0;
        a->grain = fits ? grain : (uint32_t)a->chunk;
    }
    if (a->grain % page != 0) {
        return PWSP_PLAN_FAIL(info, GRAIN_PAGES, a->grain, page);
    }
    if (a->chunk % a->grain != 0) {
        return PWSP_PLAN_FAIL(info, GRAIN_CHUNK, a->grain, pwsp_info_value(a->chunk));
    }
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_attention_configure(const ptowsp_attention_config *config,
                                                     pwsp_attention *a, ptowsp_plan_info *info) {
    memset(a, 0, sizeof *a);
    if (!config) {
        return PWSP_PLAN_FAIL(info, CONFIG_NULL, 0, 0);
    }
    ptowsp_attention_config *c = &a->config;
    *c = *config;
    if (c->kv_head_count == 0) {
        return PWSP_PLAN_FAIL(info, HEADS_ZERO, 0, 0);
    }
    c->group = pwsp_group_of(config);
    const uint64_t heads = (uint64_t)c->kv_head_count * c->group;
    if (c->query_head_count > 0 && c->query_head_count != heads) {
        const bool is_given = config->group > 0;
        return pwsp_plan_fail(info,
                              is_given ? PTOWSP_FAULT_HEADS_OTHER : PTOWSP_FAULT_HEADS_MULTIPLE,
                              PTOWSP_NO_INDEX, c->query_head_count,
                              is_given ? pwsp_info_value(heads) : c->kv_head_count);
    }
    ptowsp_status status = pwsp_lanes_set(a, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    if (c->mode != PTOWSP_ATTENTION_BALANCED && c->mode != PTOWSP_ATTENTION_INVARIANT) {
        return PWSP_PLAN_FAIL(info, MODE_UNKNOWN, (int64_t)c->mode, 0);
    }
    c->page_size = c->page_size ? c->page_size : 1;
    c->tile_rows = c->tile_rows ? c->tile_rows : PTOWSP_ATTENTION_TILE_ROWS_DEFAULT;
    c->window = c->window <= INT32_MAX ? c->window : 0;  // no query sees more anyway
    a->tile_tokens = c->tile_rows > c->group ? c->tile_rows / c->group : 1;
    a->slot_rows_max = a->tile_tokens * c->group;
    const uint64_t page = c->page_size;
    a->piece_min = pwsp_ceil_div_u64(c->piece_min ? c->piece_min : 1, page) * page;
    status = pwsp_pieces_set(a, info);
    if (status == PTOWSP_OK) {
        status = pwsp_costs_set(a, info);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_positions_configure(c, info);
        a->has_own_tiles = c->positions != NULL;
    }
    if (status == PTOWSP_OK && (c->tiers || c->tier_count > 0)) {
        status = pwsp_tiers_check(c->tiers, c->tier_count, info);
    }
    return status;
}

// Checks a sequence; *out_tiles are its query tiles.
static ptowsp_status pwsp_sequence_check(const pwsp_attention *a, uint32_t sequence,
                                         bool is_covered, uint32_t *out_tiles,
                                         ptowsp_plan_info *info) {
    const int32_t kv = a->kv_lengths[sequence];
    const int32_t queries = a->query_lengths ? a->query_lengths[sequence] : 1;
    *out_tiles = 0;
    if (kv < 0) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_LENGTH_NEGATIVE, sequence, kv, 0);
    }
    if (queries < 0) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_QUERY_NEGATIVE, sequence, queries, 0);
    }
    const ptowsp_attention_positions *positions = a->config.positions;
    if (queries == 0 || (kv == 0 && !positions)) {
        return PTOWSP_OK;
    }
    const bool is_last = kv > 0 && !(positions && positions->query_first);  // its queries are
    if (a->config.is_causal && queries > kv && is_last) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_QUERY_LONG, sequence, queries, kv);
    }
    const ptowsp_status status = positions ? pwsp_positions_check(a, sequence, info) : PTOWSP_OK;
    if (status != PTOWSP_OK) {
        return status;
    }
    if (!is_covered && kv > 0 && ptowsp_tier_find(a->config.tiers, a->config.tier_count, kv) < 0) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_LENGTH_UNCOVERED, sequence, kv, 0);
    }
    *out_tiles = pwsp_query_tiles(a, sequence);
    if (*out_tiles > UINT16_MAX + 1u) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_TILES_EXCEEDED, sequence, *out_tiles,
                              UINT16_MAX + 1);
    }
    return PTOWSP_OK;
}

static pwsp_query_tile pwsp_segment_tile_at(const pwsp_attention *a, uint32_t segment,
                                            uint32_t index) {
    const ptowsp_prefix_segment *s = &a->segments[segment];
    const uint32_t before = index * a->tile_tokens, left = s->token_count - before;
    const uint32_t tokens = left < a->tile_tokens ? left : a->tile_tokens;
    pwsp_query_tile tile;
    tile.begin = s->kv_begin;
    tile.end = s->kv_end;
    if (a->config.is_causal && s->count == 1) {
        tile.end -= left - tokens;  // the KV that only tokens after the tile see
    }
    tile.rows = tokens * a->config.group;
    tile.is_slotted = !s->is_whole;
    tile.is_empty = false;
    tile.sinks = 0;
    tile.rate = pwsp_tile_rate(a, tile.rows);
    PTOWSP_ASSERT(before < s->token_count && tile.begin < tile.end);
    return tile;
}

PWSP_INTERNAL pwsp_query_tile pwsp_own_tile_at(const pwsp_attention *a, uint32_t sequence,
                                               uint32_t index) {
    return a->segments ? pwsp_segment_tile_at(a, sequence, index)
                       : pwsp_position_tile_at(a, sequence, index);
}

PWSP_INTERNAL void pwsp_tile_count(pwsp_attention *a, const pwsp_query_tile *tile) {
    uint64_t units = 1, slots = tile->is_slotted;
    if (pwsp_attention_cuts_chunks(a)) {
        units = pwsp_chunk_pieces(a, tile, tile->begin, tile->end);
        slots = units > 1 || tile->is_slotted ? units : 0;
    }
    const uint64_t slot_cost = pwsp_slot_cost(a, tile->rows);
    uint64_t cost = pwsp_sum_u64(pwsp_mul_u64(units, a->unit),
                                 pwsp_mul_u64(tile->end - tile->begin, tile->rate));
    cost = pwsp_sum_u64(cost, pwsp_mul_u64(slots, slot_cost));
    a->tile_count++;
    a->slotted_count += tile->is_slotted;
    a->unit_count += units;
    a->merge_count += slots > 0;
    a->slot_count += slots;
    a->total = pwsp_sum_u64(a->total, cost);
    a->tile_cost_max = pwsp_max_u64(a->tile_cost_max, cost);
    a->slot_cost_max = pwsp_max_u64(a->slot_cost_max, slot_cost);
    a->slot_rows = tile->rows > a->slot_rows ? tile->rows : a->slot_rows;
}

// The same for a decode step whose lengths are facts: all tiles have the same rows.
static void pwsp_decode_count(pwsp_attention *a, const pwsp_lengths_facts *facts) {
    const uint32_t rows = a->config.group;
    const uint64_t rate = pwsp_sum_u64(a->token, pwsp_mul_u64(rows, a->row_token));
    a->tile_count = a->unit_count = facts->positive_count;
    a->total = pwsp_sum_u64(pwsp_mul_u64(facts->positive_count, a->unit),
                            pwsp_mul_u64(facts->total, rate));
    a->tile_cost_max = pwsp_sum_u64(a->unit, pwsp_mul_u64((uint32_t)facts->max, rate));
    a->slot_cost_max = pwsp_slot_cost(a, rows);
    a->slot_rows = rows;
}

PWSP_INTERNAL ptowsp_status pwsp_counts_check(pwsp_attention *a, ptowsp_plan_info *info) {
    const uint64_t heads = a->config.kv_head_count;
    uint64_t units = pwsp_mul_u64(a->unit_count, heads);
    if (units > UINT32_MAX) {
        return PWSP_PLAN_FAIL(info, UNITS_EXCEEDED, pwsp_info_value(units), UINT32_MAX);
    }
    a->total = pwsp_mul_u64(a->total, heads);
    if (a->total > PWSP_COST_MAX) {
        return PWSP_PLAN_FAIL(info, COST_OVERFLOW, 0, PWSP_COST_BITS);
    }
    a->unit_count = units;
    a->tile_count *= heads;
    a->slotted_count *= heads;
    a->merge_count *= heads;
    a->slot_count *= heads;
    return PTOWSP_OK;
}

// Checks a batch under a configuration that has been checked, and counts.
static ptowsp_status pwsp_attention_count(const ptowsp_attention_batch *batch, pwsp_attention *a,
                                          ptowsp_plan_info *info) {
    if (!batch) {
        return PWSP_PLAN_FAIL(info, BATCH_NULL, 0, 0);
    }
    if (!batch->kv_lengths && batch->sequence_count > 0) {
        return PWSP_PLAN_FAIL(info, LENGTHS_NULL, batch->sequence_count, 0);
    }
    ptowsp_status status = pwsp_positions_count_check(&a->config, batch, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    a->kv_lengths = batch->kv_lengths;
    a->query_lengths = batch->query_lengths;
    a->sequence_count = batch->sequence_count;
    const pwsp_lengths_facts facts = pwsp_lengths_scan(batch->kv_lengths, batch->sequence_count);
    const bool is_covered =
        !a->config.tiers || facts.positive_count == 0 ||
        (facts.min >= 0 &&
         pwsp_tiers_cover(a->config.tiers, a->config.tier_count, facts.positive_min, facts.max));
    if (facts.positive_count == 0 && facts.min >= 0 && !batch->query_lengths && !a->has_own_tiles) {
        return PTOWSP_OK;
    }
    if (facts.min >= 0 && is_covered && pwsp_attention_is_decode(a)) {
        pwsp_decode_count(a, &facts);
        return pwsp_counts_check(a, info);
    }
    for (uint32_t sequence = 0; sequence < batch->sequence_count; sequence++) {
        uint32_t tiles;
        status = pwsp_sequence_check(a, sequence, is_covered, &tiles, info);
        if (status != PTOWSP_OK) {
            return status;
        }
        for (uint32_t i = 0; i < tiles; i++) {
            const pwsp_query_tile tile = pwsp_query_tile_at(a, sequence, i);
            pwsp_tile_count(a, &tile);
        }
    }
    return pwsp_counts_check(a, info);
}

PWSP_INTERNAL ptowsp_status pwsp_attention_prepare(const ptowsp_attention_batch *batch,
                                                   const ptowsp_attention_config *config,
                                                   pwsp_attention *a, ptowsp_plan_info *info) {
    ptowsp_status status = pwsp_attention_configure(config, a, info);
    return status == PTOWSP_OK ? pwsp_attention_count(batch, a, info) : status;
}

PWSP_INTERNAL ptowsp_status pwsp_plan_arrays_check(const ptowsp_attention_plan *plan,
                                                   ptowsp_plan_info *info) {
    if (!plan) {
        return PWSP_PLAN_FAIL(info, PLAN_NULL, 0, 0);
    }
    const bool are_null[4] = {!plan->units && plan->unit_capacity > 0,
                              !plan->merges && plan->merge_capacity > 0, !plan->unit_begin,
                              !plan->merge_begin};
    for (uint32_t i = 0; i < 4; i++) {
        if (are_null[i]) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_PLAN_ARRAY, i, 0, 0);
        }
    }
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_plan_other_check(const pwsp_attention *a,
                                                  const ptowsp_attention_plan *plan,
                                                  ptowsp_plan_info *info) {
    const uint32_t pairs[3][2] = {{plan->lane_count, a->config.lane_count},
                                  {plan->tile_tokens, a->tile_tokens},
                                  {plan->group, a->config.group}};
    for (uint32_t i = 0; i < 3; i++) {
        if (pairs[i][0] != pairs[i][1]) {
            return PWSP_PLAN_FAIL(info, PLAN_OTHER, pairs[i][0], pairs[i][1]);
        }
    }
    return PTOWSP_OK;
}
