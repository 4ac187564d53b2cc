// What the tests of attention plans share: plans in a block of memory, a check of them that shares
// nothing with the library's, and an exhaustive search for the best cut of small batches.

#ifndef ATTENTION_REFERENCE_H
#define ATTENTION_REFERENCE_H

#include "test.h"

#include <math.h>

typedef ptowsp_attention_batch abatch;
typedef ptowsp_attention_config aconfig;
typedef ptowsp_attention_plan aplan;

// A plan whose arrays have exactly the sizes that ptowsp_attention_size says.
static inline aplan plan_make(const abatch *batch, const aconfig *config) {
    ptowsp_attention_sizes sizes;
    ptowsp_plan_info info;
    aplan plan;
    assert_int_equal(ptowsp_attention_size(batch, config, &sizes, &info), PTOWSP_OK);
    void *block = malloc((size_t)sizes.block_bytes);
    assert_int_equal(ptowsp_attention_place(&sizes, block, sizes.block_bytes, &plan), PTOWSP_OK);
    ptowsp_status status = ptowsp_attention_generate(batch, config, &plan, &info);
    assert_int_equal(status, PTOWSP_OK);
    assert_int_equal(plan.unit_count, sizes.unit_count);
    assert_int_equal(plan.merge_count, sizes.merge_count);
    assert_int_equal(plan.slot_count, sizes.slot_count);
    assert_int_equal(plan.slot_rows, sizes.slot_rows);
    return plan;
}

static inline void plan_free(aplan *plan) {
    free(plan->units);
}

// -- the rules of the header, as plain loops ------------------------------------------------------

typedef struct ref_config {
    uint32_t group, tile_tokens, page, piece_min, chunk;
    double unit, token, row_token, merged_row;
} ref_config;

static inline ref_config ref_defaults(const aconfig *c) {
    ref_config r;
    r.group = c->group ? c->group : 1;
    const uint32_t rows = c->tile_rows ? c->tile_rows : 64;
    r.tile_tokens = rows / r.group ? rows / r.group : 1;
    r.page = c->page_size ? c->page_size : 1;
    r.piece_min = c->piece_min ? (c->piece_min + r.page - 1) / r.page * r.page : r.page;
    r.chunk = c->chunk ? c->chunk : (1024 + r.page - 1) / r.page * r.page;
    r.unit = c->cost.per_unit, r.token = c->cost.per_token;
    r.row_token = c->cost.per_row_token, r.merged_row = c->cost.per_merged_row;
    if (r.unit == 0 && r.token == 0 && r.row_token == 0 && r.merged_row == 0) {
        r.unit = 64, r.token = 1, r.row_token = 1.0 / 64, r.merged_row = 1;
    }
    return r;
}

typedef struct ref_tile {
    uint32_t sequence, head, index, rows;
    int64_t begin, end;
} ref_tile;

// All tiles of a batch, in order.
static inline ref_tile *ref_tiles(const abatch *batch, const aconfig *c, uint64_t *out_count) {
    const ref_config r = ref_defaults(c);
    ref_tile *tiles = NULL;
    uint64_t count = 0, room = 0;
    for (uint32_t s = 0; s < batch->sequence_count; s++) {
        const int64_t n = batch->kv_lengths[s];
        const int64_t q = batch->query_lengths ? batch->query_lengths[s] : 1;
        for (uint32_t h = 0; n > 0 && h < c->head_count; h++) {
            for (int64_t first = 0; first < q; first += r.tile_tokens) {
                ref_tile tile = {s, h, (uint32_t)(first / r.tile_tokens), 0, INT64_MAX, 0};
                for (int64_t j = first; j < q && j < first + r.tile_tokens; j++) {
                    const int64_t position = n - q + j;
                    const int64_t end = c->is_causal ? position + 1 : n;
                    int64_t begin = c->window ? position - (int64_t)c->window + 1 : 0;
                    begin = begin > 0 ? begin : 0;
                    tile.begin = begin < tile.begin ? begin : tile.begin;
                    tile.end = end > tile.end ? end : tile.end;
                    tile.rows += r.group;
                }
                if (count == room) {
                    room = room ? 2 * room : 64;
                    tiles = (ref_tile *)realloc(tiles, room * sizeof *tiles);
                    assert_non_null(tiles);
                }
                tiles[count++] = tile;
            }
        }
    }
    *out_count = count;
    return tiles;
}

static inline double ref_unit_cost(const ref_config *r, const ref_tile *tile, int64_t tokens) {
    return r->unit + (double)tokens * (r->token + tile->rows * r->row_token);
}

// Holds a plan against all that section 10 promises. slot_rows may be 0: not known.
static inline void ref_check(const abatch *batch, const aconfig *c, const aplan *plan) {
    const ref_config r = ref_defaults(c);
    uint64_t tile_count;
    ref_tile *tiles = ref_tiles(batch, c, &tile_count);
    double *costs = (double *)calloc(c->lane_count, sizeof(double));
    assert_int_equal(plan->tile_count, tile_count);
    assert_int_equal(plan->lane_count, c->lane_count);
    assert_int_equal(plan->group, r.group);
    assert_int_equal(plan->tile_tokens, r.tile_tokens);
    assert_int_equal(plan->unit_begin[0], 0);
    assert_int_equal(plan->merge_begin[0], 0);
    assert_int_equal(plan->unit_begin[c->lane_count], plan->unit_count);
    assert_int_equal(plan->merge_begin[c->lane_count], plan->merge_count);
    uint32_t unit = 0, slot = 0, merge = 0, lane = 0, merge_lane = 0, rows_max = 0;
    for (uint64_t t = 0; t < tile_count; t++) {
        const ref_tile *tile = &tiles[t];
        rows_max = tile->rows > rows_max ? tile->rows : rows_max;
        const uint32_t slot_first = slot;
        for (int64_t at = tile->begin; at < tile->end; unit++) {
            assert_true(unit < plan->unit_count);
            const ptowsp_work *w = &plan->units[unit];
            while (unit >= plan->unit_begin[lane + 1]) {
                lane++;
                assert_true(plan->unit_begin[lane] <= plan->unit_begin[lane + 1]);
            }
            assert_true(!c->lane_speeds || c->lane_speeds[lane] > 0);
            assert_int_equal(w->params[0], tile->sequence);
            assert_int_equal(w->params[1], tile->head);
            assert_int_equal(w->reserved, tile->index);
            assert_int_equal(w->params[2], at);
            assert_true(w->params[3] > 0);
            const int64_t end = at + w->params[3];
            assert_true(end <= tile->end);
            const uint32_t flags = (at == tile->begin ? PTOWSP_WORK_FIRST : 0) |
                                   (end == tile->end ? PTOWSP_WORK_LAST : 0);
            assert_int_equal(w->flags, flags);
            if (flags == 3) {
                assert_int_equal(w->work_id, PTOWSP_NO_SLOT);
            } else {
                assert_int_equal(w->work_id, slot);
                slot++;
                if (c->mode == PTOWSP_ATTENTION_BALANCED) {
                    assert_true(w->params[3] >= r.piece_min);
                }
            }
            if (c->mode == PTOWSP_ATTENTION_INVARIANT) {
                const int64_t cut = (at / r.chunk + 1) * r.chunk;
                assert_int_equal(end, cut < tile->end ? cut : tile->end);
            } else if (end < tile->end) {
                assert_int_equal(end % r.page, 0);
            }
            int32_t tier = 0;
            if (c->tiers) {
                tier = ptowsp_tier_find(c->tiers, c->tier_count, batch->kv_lengths[tile->sequence]);
            }
            assert_int_equal(w->tier, tier);
            costs[lane] += ref_unit_cost(&r, tile, w->params[3]);
            at = end;
        }
        if (slot > slot_first) {
            assert_true(slot > slot_first + 1);
            assert_true(merge < plan->merge_count);
            const ptowsp_work *w = &plan->merges[merge];
            while (merge >= plan->merge_begin[merge_lane + 1]) {
                merge_lane++;
                assert_true(plan->merge_begin[merge_lane] <= plan->merge_begin[merge_lane + 1]);
            }
            assert_true(!c->lane_speeds || c->lane_speeds[merge_lane] > 0);
            assert_int_equal(w->work_id, merge);
            assert_int_equal(w->flags, 0);
            assert_int_equal(w->params[0], tile->sequence);
            assert_int_equal(w->params[1], tile->head);
            assert_int_equal(w->params[2], slot_first);
            assert_int_equal(w->params[3], slot - slot_first);
            assert_int_equal(w->reserved, tile->index);
            costs[merge_lane] += (double)(slot - slot_first) * tile->rows * r.merged_row;
            merge++;
        }
    }
    assert_int_equal(unit, plan->unit_count);
    assert_int_equal(slot, plan->slot_count);
    assert_int_equal(merge, plan->merge_count);
    assert_true(plan->slot_rows == 0 || plan->slot_rows == rows_max);
    assert_true(unit <= plan->unit_capacity && merge <= plan->merge_capacity);
    assert_true(slot <= plan->slot_capacity);
    for (uint32_t i = unit; i < plan->unit_capacity; i++) {
        assert_int_equal(plan->units[i].flags, PTOWSP_WORK_INVALID);
        assert_int_equal(plan->units[i].params[3], 0);
    }
    for (uint32_t i = merge; i < plan->merge_capacity; i++) {
        assert_int_equal(plan->merges[i].flags, PTOWSP_WORK_INVALID);
        assert_int_equal(plan->merges[i].params[3], 0);
    }
    double max = 0, total = 0, speeds = 0;
    for (uint32_t l = 0; l < c->lane_count; l++) {
        const double speed = c->lane_speeds ? c->lane_speeds[l] : 1;
        total += costs[l];
        speeds += speed;
        const double cost = speed > 0 ? costs[l] / speed : 0;
        max = cost > max ? cost : max;
        if (plan->lane_costs) {
            assert_true(fabs(plan->lane_costs[l] - cost) <= 1e-3 * cost + 1e-12);
        }
    }
    assert_true(fabs(plan->cost_max - max) <= 1e-3 * max);
    assert_true(fabs(plan->cost_mean - total / speeds) <= 1e-3 * plan->cost_mean);
    free(costs);
    free(tiles);
    ptowsp_plan_info info;
    aplan checked = *plan;
    checked.slot_rows = rows_max;
    assert_int_equal(ptowsp_attention_check(batch, c, &checked, &info), PTOWSP_OK);
    assert_int_equal(info.fault, PTOWSP_FAULT_NONE);
}

// -- the best cut of a small batch ----------------------------------------------------------------

// The least time in which lanes from `lane` on can do the tiles from (tile, at) on, is found by
// trying every end of every lane. A split tile's merge goes to the best of the lanes of its parts.
typedef struct ref_search {
    const aconfig *c;
    ref_config r;
    const ref_tile *tiles;
    uint64_t tile_count;
    double best;
    double loads[8];
    uint32_t part_lanes[8];  // of the tile that is open: the lanes of its parts so far
    uint32_t part_count;
} ref_search;

static inline void ref_try(ref_search *s, uint32_t lane, uint64_t tile, int64_t at);

// Tries each lane for the merge of the tile that has just been completed, then goes on.
static inline void ref_try_merge(ref_search *s, uint32_t lane, uint64_t tile) {
    const double price = s->part_count * s->tiles[tile].rows * s->r.merged_row;
    if (s->part_count < 2) {
        const uint32_t kept = s->part_count;
        s->part_count = 0;
        ref_try(s, lane, tile + 1, -1);
        s->part_count = kept;
        return;
    }
    const uint32_t count = s->part_count;
    uint32_t lanes[8];
    memcpy(lanes, s->part_lanes, sizeof lanes);
    for (uint32_t i = 0; i < count; i++) {
        s->loads[lanes[i]] += price;
        s->part_count = 0;
        ref_try(s, lane, tile + 1, -1);
        s->loads[lanes[i]] -= price;
    }
    s->part_count = count;
    memcpy(s->part_lanes, lanes, sizeof lanes);
}

static inline double ref_time(const ref_search *s, uint32_t lane) {
    const double speed = s->c->lane_speeds ? s->c->lane_speeds[lane] : 1;
    return speed > 0 ? s->loads[lane] / speed : s->loads[lane] > 1e-6 ? INFINITY : 0;
}

static inline void ref_try(ref_search *s, uint32_t lane, uint64_t tile, int64_t at) {
    double time = 0;
    for (uint32_t i = 0; i <= lane && i < s->c->lane_count; i++) {
        time = fmax(time, ref_time(s, i));
    }
    if (time >= s->best) {
        return;
    }
    if (tile == s->tile_count) {
        s->best = time;
        return;
    }
    if (lane == s->c->lane_count) {
        return;
    }
    const ref_tile *t = &s->tiles[tile];
    const int64_t from = at < 0 ? t->begin : at;
    // Nothing more for this lane; or all that is left of the tile; or a part, which ends the lane.
    ref_try(s, lane + 1, tile, at);
    for (int64_t end = from + 1; end <= t->end; end++) {
        const bool is_all = end == t->end;
        if (!is_all && (s->c->mode == PTOWSP_ATTENTION_INVARIANT ? end % s->r.chunk != 0
                                                                 : end % s->r.page != 0)) {
            continue;
        }
        const bool is_part = from > t->begin || !is_all;
        if (is_part && s->c->mode == PTOWSP_ATTENTION_BALANCED && end - from < s->r.piece_min) {
            continue;
        }
        const double cost = ref_unit_cost(&s->r, t, end - from);
        s->loads[lane] += cost;
        s->part_lanes[s->part_count++] = lane;
        if (is_all) {
            ref_try_merge(s, lane, tile);
        } else {
            ref_try(s, lane + 1, tile, end);
        }
        s->part_count--;
        s->loads[lane] -= cost;
    }
}

static inline double ref_best(const abatch *batch, const aconfig *c) {
    ref_search s;
    memset(&s, 0, sizeof s);
    s.c = c;
    s.r = ref_defaults(c);
    s.best = INFINITY;
    ref_tile *tiles = ref_tiles(batch, c, &s.tile_count);
    s.tiles = tiles;
    ref_try(&s, 0, 0, -1);
    free(tiles);
    return s.best;
}

// -- random batches -------------------------------------------------------------------------------

// A batch and a configuration, with the arrays they point to.
typedef struct random_case {
    abatch batch;
    aconfig config;
    int32_t kv[48], queries[48];
    uint32_t speeds[64];
    ptowsp_tier tiers[3];
} random_case;

static inline uint32_t random_up_to(uint64_t *random, uint32_t high) {
    return (uint32_t)test_random_in(random, 0, high);
}

static inline bool random_one_in(uint64_t *random, uint32_t n) {
    return test_random(random) % n == 0;
}

static inline void random_cost(uint64_t *random, ptowsp_attention_cost *cost) {
    cost->per_unit = random_one_in(random, 3) ? 0 : random_up_to(random, 100);
    cost->per_token = random_one_in(random, 3) ? 0 : random_up_to(random, 10);
    cost->per_row_token = random_one_in(random, 3) ? 0 : random_up_to(random, 10) * 0.1;
    cost->per_merged_row = random_one_in(random, 3) ? 0 : random_up_to(random, 100) * 0.1;
}

static inline void random_case_make(uint64_t *random, random_case *r) {
    memset(r, 0, sizeof *r);
    aconfig *c = &r->config;
    r->batch.kv_lengths = r->kv;
    r->batch.query_lengths = random_one_in(random, 2) ? r->queries : NULL;
    r->batch.sequence_count = random_up_to(random, 24);
    c->head_count = 1 + random_up_to(random, 8);
    c->group = random_up_to(random, 9);
    c->lane_count = 1 + random_up_to(random, 39);
    c->is_causal = random_one_in(random, 2);
    c->mode = random_one_in(random, 3) ? PTOWSP_ATTENTION_INVARIANT : PTOWSP_ATTENTION_BALANCED;
    c->window = random_one_in(random, 3) ? 1 + random_up_to(random, 200) : 0;
    c->page_size = random_one_in(random, 3) ? 1 + random_up_to(random, 20) : 0;
    c->tile_rows = random_one_in(random, 2) ? 1 + random_up_to(random, 100) : 0;
    c->piece_min = random_one_in(random, 2) ? random_up_to(random, 50) : 0;
    c->chunk = (c->page_size ? c->page_size : 1) * random_up_to(random, 20);
    for (uint32_t i = 0; i < 64; i++) {
        r->speeds[i] = random_up_to(random, 3);
    }
    r->speeds[random_up_to(random, c->lane_count - 1)] = 1 + random_up_to(random, 4);
    c->lane_speeds = random_one_in(random, 4) ? r->speeds : NULL;
    if (random_one_in(random, 2)) {
        random_cost(random, &c->cost);
    }
    if (random_one_in(random, 3)) {
        const ptowsp_tier tiers[3] = {{9, 4000, INT32_MAX}, {3, 1, 100}, {5, 50, 4000}};
        memcpy(r->tiers, tiers, sizeof tiers);
        c->tiers = r->tiers;
        c->tier_count = 3;
    }
    for (uint32_t i = 0; i < r->batch.sequence_count; i++) {
        r->kv[i] = (int32_t)random_up_to(random, random_one_in(random, 4) ? 6000 : 500);
        r->kv[i] = random_one_in(random, 8) ? 0 : r->kv[i];
        r->queries[i] = (int32_t)random_up_to(random, random_one_in(random, 2) ? 3 : 200);
        if (c->is_causal && r->kv[i] > 0 && r->queries[i] > r->kv[i]) {
            r->queries[i] = r->kv[i];
        }
    }
}

#endif
