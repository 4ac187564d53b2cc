// A slow, plain reference for attention plans (section 9 of the header): the KV range of each tile,
// costs in double, a verdict on a plan by counting, and exact searches for the best plan of a small
// batch. It is written from the header alone and shares nothing with the planner.
//
// It needs no test framework, as the fuzzer uses it, too.

#ifndef PTOWSP_ATTENTION_JUDGE_H
#define PTOWSP_ATTENTION_JUDGE_H

#include "ptowsp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline uint64_t reference_ceil(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

static inline void *reference_alloc(uint64_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        abort();
    }
    return memory;
}

// -- configurations -------------------------------------------------------------------------------

// A configuration with its defaults filled in.
typedef struct reference_rules {
    uint64_t kv_head_count, group, lane_count, window, page_size, tile_tokens, piece_min, chunk,
        grain;
    bool is_causal, is_invariant;
    ptowsp_attention_cost cost;
    const uint32_t *speeds;
    const ptowsp_tier *tiers;
    uint32_t tier_count;
} reference_rules;

static inline reference_rules reference_rules_of(const ptowsp_attention_config *config) {
    reference_rules rules = {.kv_head_count = config->kv_head_count,
                             .group = config->group ? config->group : 1,
                             .lane_count = config->lane_count,
                             .window = config->window,
                             .page_size = config->page_size ? config->page_size : 1};
    uint64_t tile_rows = config->tile_rows ? config->tile_rows : PTOWSP_ATTENTION_TILE_ROWS_DEFAULT;
    rules.tile_tokens = tile_rows / rules.group ? tile_rows / rules.group : 1;
    uint64_t piece_min = config->piece_min ? config->piece_min : 1;
    rules.piece_min = reference_ceil(piece_min, rules.page_size) * rules.page_size;
    uint64_t chunk = config->chunk ? config->chunk : PTOWSP_ATTENTION_CHUNK_DEFAULT;
    rules.chunk = reference_ceil(chunk, rules.page_size) * rules.page_size;
    uint64_t grain = rules.page_size > 64 ? rules.page_size : 64;
    bool fits = grain % 64 == 0 && grain % rules.page_size == 0 && rules.chunk % grain == 0;
    rules.grain = config->grain ? config->grain : fits ? grain : rules.chunk;
    rules.is_causal = config->is_causal;
    rules.is_invariant = config->mode == PTOWSP_ATTENTION_INVARIANT;
    const ptowsp_attention_cost standard = {64.0, 1.0, 1.0 / 64, 1.0};
    const ptowsp_attention_cost *cost = &config->cost;
    bool is_zero = cost->per_unit == 0 && cost->per_token == 0 && cost->per_row_token == 0 &&
                   cost->per_merged_row == 0;
    rules.cost = is_zero ? standard : *cost;
    rules.speeds = config->lane_speeds;
    rules.tiers = config->tiers;
    rules.tier_count = config->tier_count;
    return rules;
}

static inline double reference_speed(const reference_rules *rules, uint64_t lane) {
    return rules->speeds ? rules->speeds[lane] : 1.0;
}

// The tier of a KV length, or -1.
static inline int32_t reference_tier_of(const reference_rules *rules, int32_t length) {
    if (!rules->tiers) {
        return 0;
    }
    for (uint32_t i = 0; i < rules->tier_count; i++) {
        if (rules->tiers[i].length_min <= length && length <= rules->tiers[i].length_max) {
            return rules->tiers[i].id;
        }
    }
    return -1;
}

static inline double reference_unit_cost(const reference_rules *rules, uint64_t rows, double kv) {
    return rules->cost.per_unit +
           kv * (rules->cost.per_token + (double)rows * rules->cost.per_row_token);
}

static inline double reference_merge_cost(const reference_rules *rules, uint64_t rows,
                                          double slots) {
    return slots * (double)rows * rules->cost.per_merged_row;
}

// -- tiles ----------------------------------------------------------------------------------------

typedef struct reference_tile {
    uint32_t request, head, tile;
    uint64_t rows;
    uint64_t begin, end;  // its KV tokens
    int32_t tier;
} reference_tile;

// All tiles of a batch, in the order of units.
typedef struct reference_tiles {
    reference_tile *tiles;
    uint64_t count;
    uint64_t *base;    // [sequence_count + 1] tiles before each sequence
    uint64_t *height;  // [sequence_count] tiles of each of its heads
    uint32_t sequence_count;
    uint64_t rows_max;
} reference_tiles;

static inline uint64_t reference_queries(const ptowsp_attention_batch *batch, uint32_t sequence) {
    return batch->query_lengths ? (uint64_t)batch->query_lengths[sequence] : 1;
}

// The KV tokens that query token j sees: [*out_begin, *out_end).
static inline void reference_sees(const reference_rules *rules, uint64_t kv, uint64_t queries,
                                  uint64_t j, uint64_t *out_begin, uint64_t *out_end) {
    int64_t position = (int64_t)kv - (int64_t)queries + (int64_t)j;
    int64_t begin = rules->window ? position - (int64_t)rules->window + 1 : 0;
    *out_begin = begin > 0 ? (uint64_t)begin : 0;
    *out_end = rules->is_causal ? (uint64_t)(position + 1) : kv;
}

static inline uint64_t reference_tile_count(const ptowsp_attention_batch *batch,
                                            const reference_rules *rules) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < batch->sequence_count; i++) {
        count += batch->kv_lengths[i] > 0
                     ? rules->kv_head_count *
                           reference_ceil(reference_queries(batch, i), rules->tile_tokens)
                     : 0;
    }
    return count;
}

static inline reference_tile reference_tile_of(const ptowsp_attention_batch *batch,
                                               const reference_rules *rules, uint32_t sequence,
                                               uint32_t head, uint32_t number) {
    uint64_t kv = (uint64_t)batch->kv_lengths[sequence];
    uint64_t queries = reference_queries(batch, sequence);
    uint64_t first = number * rules->tile_tokens, end = first + rules->tile_tokens;
    end = end < queries ? end : queries;
    reference_tile tile = {sequence, head, number, (end - first) * rules->group, UINT64_MAX, 0, 0};
    // Begins and ends only grow with the token, but all tokens are asked where there are few.
    for (uint64_t j = first; j<end; j += end - first> 64 ? end - first - 1 : 1) {
        uint64_t from, to;
        reference_sees(rules, kv, queries, j, &from, &to);
        tile.begin = from < tile.begin ? from : tile.begin;
        tile.end = to > tile.end ? to : tile.end;
    }
    tile.begin -= rules->is_invariant ? tile.begin % rules->grain : 0;
    tile.tier = reference_tier_of(rules, batch->kv_lengths[sequence]);
    return tile;
}

static inline reference_tiles reference_tiles_of(const ptowsp_attention_batch *batch,
                                                 const reference_rules *rules) {
    reference_tiles all = {0};
    uint32_t n = batch->sequence_count;
    all.sequence_count = n;
    all.tiles =
        (reference_tile *)reference_alloc(reference_tile_count(batch, rules), sizeof *all.tiles);
    all.base = (uint64_t *)reference_alloc((uint64_t)n + 1, sizeof *all.base);
    all.height = (uint64_t *)reference_alloc(n, sizeof *all.height);
    for (uint32_t i = 0; i < n; i++) {
        all.base[i] = all.count;
        uint64_t queries = batch->kv_lengths[i] > 0 ? reference_queries(batch, i) : 0;
        all.height[i] = reference_ceil(queries, rules->tile_tokens);
        for (uint32_t head = 0; all.height[i] > 0 && head < rules->kv_head_count; head++) {
            for (uint32_t t = 0; t < all.height[i]; t++) {
                reference_tile tile = reference_tile_of(batch, rules, i, head, t);
                all.rows_max = tile.rows > all.rows_max ? tile.rows : all.rows_max;
                all.tiles[all.count++] = tile;
            }
        }
    }
    all.base[n] = all.count;
    return all;
}

static inline void reference_tiles_free(reference_tiles *all) {
    free(all->tiles);
    free(all->base);
    free(all->height);
}

// The index of a tile, or UINT64_MAX if the batch has none of that name.
static inline uint64_t reference_tile_find(const reference_tiles *all, const reference_rules *rules,
                                           const ptowsp_work *work) {
    uint32_t request = work->params[0], head = work->params[1], tile = work->reserved;
    if (request >= all->sequence_count || head >= rules->kv_head_count ||
        tile >= all->height[request]) {
        return UINT64_MAX;
    }
    return all->base[request] + head * all->height[request] + tile;
}

// Limits that a batch reaches.
static inline ptowsp_attention_limits reference_limits(const ptowsp_attention_batch *batch) {
    ptowsp_attention_limits limits = {.sequence_count_max = batch->sequence_count};
    for (uint32_t i = 0; i < batch->sequence_count; i++) {
        const int32_t kv = batch->kv_lengths[i], queries = (int32_t)reference_queries(batch, i);
        limits.kv_length_max = kv > limits.kv_length_max ? kv : limits.kv_length_max;
        limits.query_length_max =
            queries > limits.query_length_max ? queries : limits.query_length_max;
        limits.kv_token_count_max += (uint64_t)kv;
        limits.query_token_count_max += (uint64_t)queries;
    }
    return limits;
}

static inline bool reference_is_within(const ptowsp_attention_sizes *sizes,
                                       const ptowsp_attention_sizes *bound) {
    return sizes->unit_count <= bound->unit_count && sizes->merge_count <= bound->merge_count &&
           sizes->slot_count <= bound->slot_count && sizes->slot_rows <= bound->slot_rows &&
           sizes->block_bytes <= bound->block_bytes;
}

// Pieces of a tile in INVARIANT mode.
static inline uint64_t reference_chunks(const reference_rules *rules, const reference_tile *tile) {
    return (tile->end - 1) / rules->chunk - tile->begin / rules->chunk + 1;
}

// -- the verdict on a plan ------------------------------------------------------------------------

// WRONG: what ptowsp_attention_check has to find. ODD: all is computed once, and yet something is
// not as the header says: an order, a cost, a cut that is not at a page.
typedef enum reference_grade { REFERENCE_GOOD, REFERENCE_ODD, REFERENCE_WRONG } reference_grade;

typedef struct reference_verdict {
    reference_grade grade;
    char text[200];  // of the first of the worst
} reference_verdict;

typedef struct reference_proof {
    const ptowsp_attention_batch *batch;
    const ptowsp_attention_config *config;
    const ptowsp_attention_plan *plan;
    reference_rules rules;
    reference_tiles all;
    uint64_t *piece_count;  // of each tile
    uint64_t *piece_begin;  // [tile_count + 1] into pieces
    uint32_t *pieces;       // units of each tile, by KV start
    uint64_t live_units, live_merges, split_tiles, parts;
    reference_verdict verdict;
} reference_proof;

#define REFERENCE_REQUIRE(proof, worse, condition, ...)                                            \
    do {                                                                                           \
        if (!(condition) && (proof)->verdict.grade < (worse)) {                                    \
            (proof)->verdict.grade = (worse);                                                      \
            snprintf((proof)->verdict.text, sizeof(proof)->verdict.text, __VA_ARGS__);             \
        }                                                                                          \
    } while (0)
#define REFERENCE_MUST(proof, ...)   REFERENCE_REQUIRE(proof, REFERENCE_WRONG, __VA_ARGS__)
#define REFERENCE_SHOULD(proof, ...) REFERENCE_REQUIRE(proof, REFERENCE_ODD, __VA_ARGS__)

// Ranges of lanes: from 0 to the count, in order. Returns whether they may be followed.
static inline bool reference_prove_ranges(reference_proof *p, const uint32_t *begin, uint32_t count,
                                          const char *what) {
    bool is_good = begin[0] == 0 && begin[p->rules.lane_count] == count;
    REFERENCE_MUST(p, is_good, "%s ranges do not span [0, %u)", what, count);
    for (uint64_t lane = 0; lane < p->rules.lane_count; lane++) {
        bool is_ascending = begin[lane] <= begin[lane + 1];
        REFERENCE_MUST(p, is_ascending, "lane %u: %s range descends", (unsigned)lane, what);
        is_good = is_good && is_ascending;
    }
    return is_good;
}

static inline void reference_prove_rest(reference_proof *p, const ptowsp_work *work, uint32_t count,
                                        uint32_t capacity, const char *what) {
    for (uint64_t i = count; i < capacity; i++) {
        REFERENCE_MUST(p, (work[i].flags & PTOWSP_WORK_INVALID) != 0 && work[i].params[3] == 0,
                       "%s %u behind the last is not INVALID or has a length", what, (unsigned)i);
        REFERENCE_SHOULD(p, work[i].flags == PTOWSP_WORK_INVALID,
                         "%s %u behind the last has flags %u", what, (unsigned)i, work[i].flags);
    }
}

// Counts, capacities and what a plan repeats of its configuration. False: nothing may be read.
static inline bool reference_prove_counts(reference_proof *p) {
    const ptowsp_attention_plan *plan = p->plan;
    REFERENCE_MUST(p, plan->lane_count == p->rules.lane_count, "lane_count is %u",
                   plan->lane_count);
    REFERENCE_MUST(p, plan->group == p->rules.group, "group is %u", plan->group);
    REFERENCE_MUST(p, plan->tile_tokens == p->rules.tile_tokens, "tile_tokens is %u",
                   plan->tile_tokens);
    REFERENCE_MUST(p,
                   plan->unit_count <= plan->unit_capacity &&
                       plan->merge_count <= plan->merge_capacity &&
                       plan->slot_count <= plan->slot_capacity,
                   "a count exceeds its capacity");
    return p->verdict.grade != REFERENCE_WRONG;
}

// Every live unit belongs to a tile; collects the pieces of each.
static inline void reference_collect(reference_proof *p) {
    const ptowsp_attention_plan *plan = p->plan;
    for (uint32_t i = 0; i < plan->unit_count; i++) {
        const ptowsp_work *unit = &plan->units[i];
        if (!ptowsp_work_is_valid(unit)) {
            REFERENCE_MUST(p, false, "unit %u is INVALID", i);
            continue;
        }
        p->live_units++;
        uint64_t tile = reference_tile_find(&p->all, &p->rules, unit);
        if (tile == UINT64_MAX) {
            REFERENCE_MUST(p, false, "unit %u is of a tile that is not in the batch", i);
        } else {
            p->piece_count[tile]++;
        }
    }
    for (uint64_t t = 0; t < p->all.count; t++) {
        p->piece_begin[t + 1] = p->piece_begin[t] + p->piece_count[t];
        p->piece_count[t] = 0;
    }
    for (uint32_t i = 0; i < plan->unit_count; i++) {
        const ptowsp_work *unit = &plan->units[i];
        uint64_t tile =
            ptowsp_work_is_valid(unit) ? reference_tile_find(&p->all, &p->rules, unit) : UINT64_MAX;
        if (tile != UINT64_MAX) {
            uint32_t *mine = p->pieces + p->piece_begin[tile];
            uint64_t at = p->piece_count[tile]++;
            while (at > 0 && plan->units[mine[at - 1]].params[2] > unit->params[2]) {
                mine[at] = mine[at - 1];
                at--;
            }
            mine[at] = i;
        }
    }
}

static inline void reference_prove_cut(reference_proof *p, uint64_t t, uint64_t ordinal,
                                       uint64_t start, uint64_t end, uint32_t unit) {
    const reference_tile *tile = &p->all.tiles[t];
    uint64_t at = p->rules.is_invariant ? p->rules.chunk : p->rules.page_size;
    REFERENCE_SHOULD(p, ordinal == 0 || start % at == 0,
                     "unit %u: cut at %u is not a multiple of %u", unit, (unsigned)start,
                     (unsigned)at);
    if (p->rules.is_invariant) {
        REFERENCE_SHOULD(p, (end - 1) / at == start / at,
                         "unit %u: a multiple of the chunk is inside", unit);
    } else if (p->piece_count[t] > 1) {
        REFERENCE_SHOULD(p, end - start >= p->rules.piece_min,
                         "unit %u: %u tokens of [%u, %u) are below piece_min %u", unit,
                         (unsigned)(end - start), (unsigned)tile->begin, (unsigned)tile->end,
                         (unsigned)p->rules.piece_min);
    }
}

// The pieces of a tile: its KV once, flags, tier, slots that follow one another.
static inline void reference_prove_tile(reference_proof *p, uint64_t t) {
    const reference_tile *tile = &p->all.tiles[t];
    const uint32_t *mine = p->pieces + p->piece_begin[t];
    uint64_t count = p->piece_count[t], next = tile->begin;
    p->split_tiles += count > 1;
    p->parts += count > 1 ? count : 0;
    for (uint64_t i = 0; i < count; i++) {
        const ptowsp_work *unit = &p->plan->units[mine[i]];
        uint64_t start = unit->params[2], end = start + unit->params[3];
        REFERENCE_MUST(p, start == next && end > start && end <= tile->end,
                       "unit %u: [%u, %u) does not follow %u", mine[i], (unsigned)start,
                       (unsigned)end, (unsigned)next);
        next = end;
        unsigned flags = (i == 0 ? PTOWSP_WORK_FIRST : 0) | (i + 1 == count ? PTOWSP_WORK_LAST : 0);
        REFERENCE_MUST(p, (unit->flags & 3u) == flags, "unit %u: flags are %u, not %u", mine[i],
                       unit->flags, flags);
        REFERENCE_SHOULD(p, unit->flags == flags, "unit %u: flags are %u", mine[i], unit->flags);
        REFERENCE_MUST(p, unit->tier == tile->tier, "unit %u: tier is %u", mine[i], unit->tier);
        uint32_t first = p->plan->units[mine[0]].work_id;
        bool is_slot = count == 1 ? unit->work_id == PTOWSP_NO_SLOT
                                  : unit->work_id < p->plan->slot_count &&
                                        unit->work_id == (uint64_t)first + i;
        REFERENCE_MUST(p, is_slot, "unit %u: slot is %u", mine[i], unit->work_id);
        if (end > start) {
            reference_prove_cut(p, t, i, start, end, mine[i]);
        }
    }
    REFERENCE_MUST(p, next == tile->end, "sequence %u head %u tile %u: [%u, %u) is not computed",
                   tile->request, tile->head, tile->tile, (unsigned)next, (unsigned)tile->end);
    REFERENCE_MUST(p, count < 2 || tile->rows <= p->plan->slot_rows,
                   "slots of %u rows for a tile of %u", p->plan->slot_rows, (unsigned)tile->rows);
}

// No slot is written by two units.
static inline void reference_prove_slots(reference_proof *p) {
    uint8_t *used = (uint8_t *)reference_alloc(p->plan->slot_count, 1);
    for (uint32_t i = 0; i < p->plan->unit_count; i++) {
        const ptowsp_work *unit = &p->plan->units[i];
        if (!ptowsp_work_is_valid(unit) || unit->work_id == PTOWSP_NO_SLOT) {
            continue;
        }
        if (unit->work_id >= p->plan->slot_count || used[unit->work_id]++) {
            REFERENCE_MUST(p, false, "unit %u: slot %u is another's or too high", i, unit->work_id);
        }
    }
    REFERENCE_MUST(p, p->parts == p->plan->slot_count, "%u parts have %u slots", (unsigned)p->parts,
                   p->plan->slot_count);
    free(used);
}

// The lane of an element of a list.
static inline uint64_t reference_lane_of(const reference_proof *p, const uint32_t *begin,
                                         uint32_t index) {
    uint64_t lane = 0;
    while (lane < p->rules.lane_count && begin[lane + 1] <= index) {
        lane++;
    }
    return lane;
}

// The rows that a merge should have: all, or those of its lane among the lanes that have pieces of the
// tile, in order.
static inline void reference_prove_share(reference_proof *p, uint64_t t, uint32_t i,
                                         uint64_t *rows_done) {
    const ptowsp_work *merge = &p->plan->merges[i];
    const uint64_t rows = p->all.tiles[t].rows;
    uint64_t lanes = 0, mine = UINT64_MAX, last = UINT64_MAX;
    const uint64_t lane = reference_lane_of(p, p->plan->merge_begin, i);
    for (uint64_t k = 0; k < p->piece_count[t]; k++) {
        const uint32_t unit = p->pieces[p->piece_begin[t] + k];
        const uint64_t at = reference_lane_of(p, p->plan->unit_begin, unit);
        lanes += at != last;
        mine = at == lane ? lanes - 1 : mine;
        last = at;
    }
    REFERENCE_SHOULD(p, mine < lanes, "merge %u: its lane has no part", i);
    const bool is_shared = p->config->shares_merges && merge->flags == PTOWSP_WORK_ROWS;
    uint64_t first = 0, end = rows;
    if (is_shared) {
        first = merge->work_id & 0xffff, end = first + (merge->work_id >> 16);
    } else {
        REFERENCE_MUST(p, merge->work_id == i && merge->flags == 0,
                       "merge %u: work_id %u, flags %u", i, merge->work_id, merge->flags);
    }
    const bool shares = p->config->shares_merges && lanes > 1 && rows <= 65535;
    REFERENCE_SHOULD(p,
                     is_shared == shares && (!shares || (first == rows * mine / lanes &&
                                                         end == rows * (mine + 1) / lanes)),
                     "merge %u: rows %u to %u of lane %u of %u", i, (unsigned)first, (unsigned)end,
                     (unsigned)mine, (unsigned)lanes);
    REFERENCE_MUST(p, first == *rows_done && first < end && end <= rows,
                   "merge %u: rows from %u, not %u", i, (unsigned)first, (unsigned)*rows_done);
    *rows_done = end;
}

// Each row of a split tile is merged once, with all of its slots.
static inline void reference_prove_merges(reference_proof *p) {
    const ptowsp_attention_plan *plan = p->plan;
    uint64_t *rows = (uint64_t *)reference_alloc(p->all.count, sizeof *rows);
    uint64_t last = 0, slots = 0;
    for (uint32_t i = 0; i < plan->merge_count; i++) {
        const ptowsp_work *merge = &plan->merges[i];
        if (!ptowsp_work_is_valid(merge)) {
            REFERENCE_MUST(p, false, "merge %u is INVALID", i);
            continue;
        }
        p->live_merges++;
        uint64_t t = reference_tile_find(&p->all, &p->rules, merge);
        if (t == UINT64_MAX || p->piece_count[t] < 2 || rows[t] >= p->all.tiles[t].rows) {
            REFERENCE_MUST(p, false, "merge %u is of a tile without parts, or again", i);
            continue;
        }
        uint32_t first = plan->units[p->pieces[p->piece_begin[t]]].work_id;
        REFERENCE_MUST(p, merge->params[2] == first && merge->params[3] == p->piece_count[t],
                       "merge %u: slots from %u, %u of them", i, merge->params[2],
                       merge->params[3]);
        const bool is_next = rows[t] == 0;
        reference_prove_share(p, t, i, &rows[t]);
        REFERENCE_SHOULD(p, p->live_merges == 1 || last < t + !is_next, "merge %u: order", i);
        REFERENCE_SHOULD(p, !is_next || merge->params[2] == slots,
                         "merge %u: first slot %u, after %u slots", i, merge->params[2],
                         (unsigned)slots);
        last = t;
        slots += is_next ? merge->params[3] : 0;
    }
    for (uint64_t t = 0; t < p->all.count; t++) {
        REFERENCE_MUST(p, p->piece_count[t] < 2 || rows[t] == p->all.tiles[t].rows,
                       "sequence %u head %u tile %u: %u rows are merged", p->all.tiles[t].request,
                       p->all.tiles[t].head, p->all.tiles[t].tile, (unsigned)rows[t]);
    }
    free(rows);
}

// Units in order of sequence, head, tile and KV; numbers of them.
static inline void reference_prove_order(reference_proof *p) {
    uint64_t last_tile = 0;
    uint32_t last_start = 0;
    bool is_first = true;
    for (uint32_t i = 0; i < p->plan->unit_count; i++) {
        const ptowsp_work *unit = &p->plan->units[i];
        if (!ptowsp_work_is_valid(unit)) {
            continue;
        }
        uint64_t tile = reference_tile_find(&p->all, &p->rules, unit);
        REFERENCE_SHOULD(
            p, is_first || last_tile < tile || (last_tile == tile && last_start < unit->params[2]),
            "unit %u: order", i);
        last_tile = tile;
        last_start = unit->params[2];
        is_first = false;
    }
    uint64_t lanes = p->rules.lane_count, extra = p->live_units - p->all.count;
    if (!p->rules.is_invariant) {
        REFERENCE_SHOULD(p, extra < lanes, "%u extra units on %u lanes", (unsigned)extra,
                         (unsigned)lanes);
        REFERENCE_SHOULD(p, p->plan->slot_count <= 2 * (lanes - 1), "%u slots on %u lanes",
                         p->plan->slot_count, (unsigned)lanes);
    }
    REFERENCE_SHOULD(p, p->plan->tile_count == p->all.count, "tile_count is %u, not %u",
                     p->plan->tile_count, (unsigned)p->all.count);
    REFERENCE_SHOULD(p, p->all.count == 0 || p->plan->slot_rows == p->all.rows_max,
                     "slot_rows is %u, not %u", p->plan->slot_rows, (unsigned)p->all.rows_max);
}

// The cost of what a lane has, by its speed. A lane of speed 0 must have nothing.
static inline double reference_lane_cost(reference_proof *p, uint64_t lane) {
    const ptowsp_attention_plan *plan = p->plan;
    double cost = 0;
    uint64_t live = 0;
    for (uint32_t i = plan->unit_begin[lane]; i < plan->unit_begin[lane + 1]; i++) {
        if (ptowsp_work_is_valid(&plan->units[i])) {
            uint64_t t = reference_tile_find(&p->all, &p->rules, &plan->units[i]);
            cost += reference_unit_cost(&p->rules, p->all.tiles[t].rows, plan->units[i].params[3]);
            live++;
        }
    }
    for (uint32_t i = plan->merge_begin[lane]; i < plan->merge_begin[lane + 1]; i++) {
        if (ptowsp_work_is_valid(&plan->merges[i])) {
            uint64_t t = reference_tile_find(&p->all, &p->rules, &plan->merges[i]);
            const bool is_shared = (plan->merges[i].flags & PTOWSP_WORK_ROWS) != 0;
            uint64_t rows = is_shared ? plan->merges[i].work_id >> 16 : p->all.tiles[t].rows;
            cost += reference_merge_cost(&p->rules, rows, plan->merges[i].params[3]);
            live++;
        }
    }
    double speed = reference_speed(&p->rules, lane);
    REFERENCE_SHOULD(p, speed > 0 || live == 0, "lane %u of speed 0 has work", (unsigned)lane);
    return speed > 0 ? cost / speed : 0;
}

// Whether a predicted cost is the real one up to the grid: 0.1 %.
static inline bool reference_same_cost(double got, double expected) {
    return fabs(got - expected) <= 1.0e-3 * expected + 1e-300;
}

static inline void reference_prove_costs(reference_proof *p, double *out_max) {
    double sum = 0, speeds = 0, max = 0;
    for (uint64_t lane = 0; lane < p->rules.lane_count; lane++) {
        double cost = reference_lane_cost(p, lane), speed = reference_speed(&p->rules, lane);
        if (p->plan->lane_costs) {
            REFERENCE_SHOULD(p, reference_same_cost(p->plan->lane_costs[lane], cost),
                             "lane %u: cost %.17g, not %.17g", (unsigned)lane,
                             p->plan->lane_costs[lane], cost);
        }
        sum += cost * speed;
        speeds += speed;
        max = cost > max ? cost : max;
    }
    REFERENCE_SHOULD(p, reference_same_cost(p->plan->cost_max, max), "cost_max %.17g, not %.17g",
                     p->plan->cost_max, max);
    REFERENCE_SHOULD(p, reference_same_cost(p->plan->cost_mean, sum / speeds),
                     "cost_mean %.17g, not %.17g", p->plan->cost_mean, sum / speeds);
    *out_max = max;
}

// Judges a plan. *out_cost_max, which may be NULL, is its largest lane cost in double, if it is not
// WRONG.
static inline reference_verdict reference_judge(const ptowsp_attention_batch *batch,
                                                const ptowsp_attention_config *config,
                                                const ptowsp_attention_plan *plan,
                                                double *out_cost_max) {
    reference_proof p = {
        .batch = batch, .config = config, .plan = plan, .rules = reference_rules_of(config)};
    if (!reference_prove_counts(&p)) {
        return p.verdict;
    }
    bool has_ranges = reference_prove_ranges(&p, plan->unit_begin, plan->unit_count, "unit");
    has_ranges =
        reference_prove_ranges(&p, plan->merge_begin, plan->merge_count, "merge") && has_ranges;
    reference_prove_rest(&p, plan->units, plan->unit_count, plan->unit_capacity, "unit");
    reference_prove_rest(&p, plan->merges, plan->merge_count, plan->merge_capacity, "merge");
    p.all = reference_tiles_of(batch, &p.rules);
    p.piece_count = (uint64_t *)reference_alloc(p.all.count, sizeof(uint64_t));
    p.piece_begin = (uint64_t *)reference_alloc(p.all.count + 1, sizeof(uint64_t));
    p.pieces = (uint32_t *)reference_alloc(plan->unit_count, sizeof(uint32_t));
    reference_collect(&p);
    for (uint64_t t = 0; t < p.all.count; t++) {
        reference_prove_tile(&p, t);
    }
    reference_prove_slots(&p);
    reference_prove_merges(&p);
    double max = 0;
    if (p.verdict.grade != REFERENCE_WRONG) {
        reference_prove_order(&p);
        reference_prove_costs(&p, &max);
    }
    if (out_cost_max) {
        *out_cost_max = max;
    }
    free(p.piece_count);
    free(p.piece_begin);
    free(p.pieces);
    reference_tiles_free(&p.all);
    return p.verdict;
}

// -- the best plan --------------------------------------------------------------------------------
//
// A batch is a row of *atoms*: runs of KV between the places at which a tile may be cut, tile after
// tile. A contiguous plan gives each lane a run of atoms. The search tries all of them, lane by lane,
// and drops what cannot beat the best so far; merges go to the lanes where they fit best.

#define REFERENCE_ATOM_MAX 200
#define REFERENCE_LANE_MAX 16

typedef struct reference_search {
    const reference_rules *rules;
    uint32_t atom_count;
    uint64_t tile[REFERENCE_ATOM_MAX];    // of each atom
    uint64_t kv[REFERENCE_ATOM_MAX];      // tokens of each atom
    uint64_t rows[REFERENCE_ATOM_MAX];    // of its tile
    double rest[REFERENCE_ATOM_MAX + 1];  // least cost of the atoms from here on
    double loads[REFERENCE_LANE_MAX];     // cost so far, not by speed
    double merges[REFERENCE_ATOM_MAX];    // costs
    uint32_t merge_count;
    double best;
    uint64_t steps, steps_max;  // the search gives up
} reference_search;

// The atoms of a batch. False if there are too many.
static inline bool reference_search_begin(reference_search *s, const ptowsp_attention_batch *batch,
                                          const reference_rules *rules, double best) {
    memset(s, 0, sizeof *s);
    s->rules = rules;
    s->best = best;
    s->steps_max = 3000000;
    reference_tiles all = reference_tiles_of(batch, rules);
    bool fits = rules->lane_count <= REFERENCE_LANE_MAX;
    uint64_t at = rules->is_invariant ? rules->chunk : rules->page_size;
    for (uint64_t t = 0; t < all.count && fits; t++) {
        for (uint64_t from = all.tiles[t].begin, to; from < all.tiles[t].end && fits; from = to) {
            to = (from / at + 1) * at;
            to = to < all.tiles[t].end ? to : all.tiles[t].end;
            fits = s->atom_count < REFERENCE_ATOM_MAX;
            if (fits) {
                s->tile[s->atom_count] = t;
                s->rows[s->atom_count] = all.tiles[t].rows;
                s->kv[s->atom_count++] = to - from;
            }
        }
    }
    for (uint32_t i = s->atom_count; i-- > 0;) {
        bool is_unit = rules->is_invariant || i == 0 || s->tile[i - 1] != s->tile[i];
        double cost = reference_unit_cost(rules, s->rows[i], (double)s->kv[i]);
        s->rest[i] = s->rest[i + 1] + cost - (is_unit ? 0 : rules->cost.per_unit);
    }
    reference_tiles_free(&all);
    return fits;
}

static inline void reference_search_merges(reference_search *s, uint32_t merge) {
    double max = 0;
    if (++s->steps > s->steps_max) {
        return;
    }
    if (merge == s->merge_count) {
        for (uint64_t lane = 0; lane < s->rules->lane_count; lane++) {
            double speed = reference_speed(s->rules, lane);
            double cost = speed > 0 ? s->loads[lane] / speed : 0;
            max = cost > max ? cost : max;
        }
        s->best = max < s->best ? max : s->best;
        return;
    }
    for (uint64_t lane = 0; lane < s->rules->lane_count; lane++) {
        double speed = reference_speed(s->rules, lane), before = s->loads[lane];
        if (speed > 0 && (before + s->merges[merge]) / speed < s->best) {
            s->loads[lane] += s->merges[merge];
            reference_search_merges(s, merge + 1);
            s->loads[lane] = before;
        }
    }
}

// Counts pieces of tiles by where lanes end, and gives merges to lanes.
static inline void reference_search_cut(reference_search *s, const uint32_t *ends) {
    s->merge_count = 0;
    uint64_t pieces = 1, lane = 0;
    for (uint32_t i = 1; i <= s->atom_count; i++) {
        bool is_cut = s->rules->is_invariant;
        while (lane < s->rules->lane_count && ends[lane] <= i) {
            is_cut = is_cut || ends[lane] == i;
            lane++;
        }
        if (i < s->atom_count && s->tile[i] == s->tile[i - 1]) {
            pieces += is_cut;
        } else {
            if (pieces > 1) {
                s->merges[s->merge_count++] =
                    reference_merge_cost(s->rules, s->rows[i - 1], (double)pieces);
            }
            pieces = 1;
        }
    }
    reference_search_merges(s, 0);
}

// Whether the piece of atoms [from, to) of one tile is long enough.
static inline bool reference_piece_fits(const reference_search *s, uint32_t from, uint32_t to) {
    bool is_begin = from == 0 || s->tile[from - 1] != s->tile[from];
    bool is_end = to == s->atom_count || s->tile[to - 1] != s->tile[to];
    uint64_t kv = 0;
    for (uint32_t i = from; i < to; i++) {
        kv += s->kv[i];
    }
    return s->rules->is_invariant || (is_begin && is_end) || kv >= s->rules->piece_min;
}

// Gives lane `lane` the atoms from `from` on, in every way.
static inline void reference_search_lane(reference_search *s, uint64_t lane, uint32_t from,
                                         uint32_t *ends) {
    if (++s->steps > s->steps_max) {
        return;
    }
    if (lane == s->rules->lane_count) {
        if (from == s->atom_count) {
            reference_search_cut(s, ends);
        }
        return;
    }
    double speeds = 0, speed = reference_speed(s->rules, lane);
    for (uint64_t i = lane; i < s->rules->lane_count; i++) {
        speeds += reference_speed(s->rules, i);
    }
    if (s->rest[from] > 0 && (speeds <= 0 || s->rest[from] / speeds >= s->best)) {
        return;
    }
    ends[lane] = from;
    reference_search_lane(s, lane + 1, from, ends);
    uint32_t piece = from;  // the first atom of the last piece
    for (uint32_t to = from + 1; speed > 0 && to <= s->atom_count; to++) {
        bool is_new =
            s->rules->is_invariant || to - 1 == from || s->tile[to - 2] != s->tile[to - 1];
        if (is_new) {
            if (to - 1 > from && !reference_piece_fits(s, piece, to - 1)) {
                break;
            }
            piece = to - 1;
        }
        s->loads[lane] += reference_unit_cost(s->rules, s->rows[to - 1], (double)s->kv[to - 1]) -
                          (is_new ? 0 : s->rules->cost.per_unit);
        if (s->loads[lane] / speed >= s->best) {
            break;
        }
        if (reference_piece_fits(s, piece, to)) {
            ends[lane] = to;
            reference_search_lane(s, lane + 1, to, ends);
        }
    }
    s->loads[lane] = 0;
}

// The least largest lane cost of all contiguous plans, if it is below `best`; else `best`. Negative: too
// large to tell.
static inline double reference_best(const ptowsp_attention_batch *batch,
                                    const ptowsp_attention_config *config, double best) {
    reference_rules rules = reference_rules_of(config);
    reference_search *s = (reference_search *)reference_alloc(1, sizeof *s);
    uint32_t ends[REFERENCE_LANE_MAX];
    double found = -1;
    if (reference_search_begin(s, batch, &rules, best)) {
        if (s->atom_count == 0) {
            s->best = 0;
        } else {
            reference_search_lane(s, 0, 0, ends);
        }
        found = s->steps > s->steps_max ? -1 : s->best;
    }
    free(s);
    return found;
}

#endif
