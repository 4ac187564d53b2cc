// Random batches for MoE plans, and what is slow and obvious: a stable sort that looks for each
// expert's pairs in turn; costs of units summed up again; and the best of all contiguous shares, by
// dynamic programming over every place where a lane could end. Parts of columns are more places, at a
// part of the cost, and all numbers of parts that are promised are tried.

#ifndef MOE_SAMPLE_H
#define MOE_SAMPLE_H

#include "test.h"

#include <math.h>

// -- sorting --------------------------------------------------------------------------------------

typedef struct sort_case {
    ptowsp_moe_routes routes;
    ptowsp_moe_order order;
    int32_t *ids;
    uint64_t pair_count;
} sort_case;

static inline void case_free(sort_case *c) {
    free(c->ids);
    free(c->order.counts);
    free(c->order.offsets);
    free(c->order.pairs);
    free(c->order.rows);
    free(c->order.block_experts);
}

static inline void *fresh(uint64_t count) {  // never NULL; of values that nothing should have
    void *memory = malloc((size_t)(count + 1) * sizeof(uint32_t));
    assert_non_null(memory);
    memset(memory, 0x5a, (size_t)(count + 1) * sizeof(uint32_t));
    return memory;
}

// Arrays of exactly what the bound says.
static inline void case_arrays(sort_case *c) {
    const uint64_t rows = ptowsp_moe_row_bound(&c->routes);
    const uint32_t block = c->routes.block_rows > 0 ? c->routes.block_rows : 1;
    memset(&c->order, 0, sizeof c->order);
    c->order.counts = fresh(c->routes.expert_count);
    c->order.offsets = fresh(c->routes.expert_count + 1u);
    c->order.pairs = fresh(rows);
    c->order.rows = fresh(c->pair_count);
    c->order.block_experts = fresh(rows / block + 1);
    c->order.row_capacity = (uint32_t)rows;
}

static inline sort_case case_of(uint32_t tokens, uint32_t top_k, uint32_t experts,
                                uint32_t block_rows) {
    sort_case c = {.pair_count = (uint64_t)tokens * top_k};
    c.ids = (int32_t *)calloc((size_t)c.pair_count + 1, sizeof *c.ids);
    const ptowsp_moe_routes routes = {c.ids, tokens, top_k, experts, block_rows};
    c.routes = routes;
    case_arrays(&c);
    return c;
}

// What a slow stable sort has: for each expert all pairs are walked.
static inline void require_sorted(const sort_case *c) {
    const uint32_t block = c->routes.block_rows > 0 ? c->routes.block_rows : 1;
    uint32_t row = 0, pairs = 0;
    for (uint32_t e = 0; e < c->routes.expert_count; e++) {
        uint32_t count = 0;
        assert_int_equal(c->order.offsets[e], row);
        for (uint64_t i = 0; i < c->pair_count; i++) {
            if (c->ids[i] == (int32_t)e) {
                assert_int_equal(c->order.pairs[row], i);
                assert_int_equal(c->order.rows[i], row);
                assert_int_equal(c->order.block_experts[row / block], e);
                row++, count++;
            }
        }
        assert_int_equal(c->order.counts[e], count);
        pairs += count;
        for (; row % block != 0; row++) {
            assert_true(c->order.pairs[row] == PTOWSP_MOE_NO_ROW);
        }
    }
    for (uint64_t i = 0; i < c->pair_count; i++) {
        assert_true(c->ids[i] >= 0 || c->order.rows[i] == PTOWSP_MOE_NO_ROW);
    }
    assert_int_equal(c->order.offsets[c->routes.expert_count], row);
    assert_int_equal(c->order.row_count, row);
    assert_int_equal(c->order.pair_count, pairs);
    assert_int_equal(c->order.block_count, row / block);
    const double padding = row > 0 ? (row - pairs) / (double)row : 0;
    assert_true(c->order.padding_share >= padding && c->order.padding_share <= padding);
    assert_true(row <= c->order.row_capacity);
}

enum {
    KIND_UNIFORM,
    KIND_ONE,
    KIND_RISING,
    KIND_FALLING,
    KIND_DROPPED,
    KIND_RUNS,
    KIND_DISTINCT,  // those of a token, if there are enough; some are dropped
    KIND_COUNT
};

static inline void case_fill(sort_case *c, int kind, uint64_t *random) {
    const uint32_t experts = c->routes.expert_count, top_k = c->routes.top_k;
    uint32_t of_token = 0;
    for (uint64_t i = 0; i < c->pair_count; i++) {
        const uint32_t any = (uint32_t)(test_random(random) % experts);
        of_token = i % top_k == 0 ? any : of_token + 1;
        switch (kind) {
        case KIND_DISTINCT:
            c->ids[i] = test_random(random) % 9 ? (int32_t)(of_token % experts) : -1;
            break;
        case KIND_ONE: c->ids[i] = (int32_t)(experts - 1); break;
        case KIND_RISING: c->ids[i] = (int32_t)(i * experts / c->pair_count); break;
        case KIND_FALLING: c->ids[i] = (int32_t)(experts - 1 - i * experts / c->pair_count); break;
        case KIND_DROPPED:
            c->ids[i] = test_random(random) % 2 ? (int32_t)any : -1 - (int32_t)any;
            break;
        case KIND_RUNS: c->ids[i] = (int32_t)(i / 37 % experts); break;
        default: c->ids[i] = (int32_t)any; break;
        }
    }
}

// -- units ----------------------------------------------------------------------------------------

#define BATCH(...) (&(ptowsp_moe_batch){__VA_ARGS__})

enum { BATCH_MAX = 3, EXPERT_MAX = 9, LANE_MAX = 6, PLACE_MAX = 400, PARTED_MAX = 60 };

typedef struct units_case {
    ptowsp_moe_config config;
    uint32_t counts[BATCH_MAX * EXPERT_MAX];
    uint32_t offsets[BATCH_MAX * (EXPERT_MAX + 1)];
    bool has_offsets;
} units_case;

static inline uint32_t or_one(uint32_t value) {
    return value > 0 ? value : 1;
}

// The tokens in the order of the plan, by blocks.
typedef struct place {
    uint32_t expert, part, batch, tokens;
} place;

static inline uint32_t places_of(const units_case *c, uint32_t parts, place *places) {
    const uint32_t block = or_one(c->config.block_rows);
    uint32_t count = 0;
    for (uint32_t row = 0; row < c->config.expert_count * parts; row++) {
        for (uint32_t b = 0; b < or_one(c->config.batch_count); b++) {
            for (uint32_t left = c->counts[b * c->config.expert_count + row / parts]; left > 0;) {
                const uint32_t tokens = left < block ? left : block;
                const place here = {row / parts, row % parts, b, tokens};
                assert_true(count < PLACE_MAX);
                places[count++] = here;
                left -= tokens;
            }
        }
    }
    return count;
}

static inline double places_cost(const units_case *c, uint32_t parts, const place *places,
                                 uint32_t begin, uint32_t end) {
    const ptowsp_moe_cost *cost = &c->config.cost;
    const uint32_t block = or_one(c->config.block_rows);
    const uint32_t most = (c->config.unit_tokens + block - 1) / block * block;
    double sum = 0;
    uint32_t in_unit = 0;
    for (uint32_t i = begin; i < end; i++) {
        const bool is_expert = i == begin || places[i].expert != places[i - 1].expert ||
                               places[i].part != places[i - 1].part;
        const bool is_batch = is_expert || places[i].batch != places[i - 1].batch;
        sum += is_expert ? cost->per_expert / parts : 0;
        if (is_batch || (most > 0 && in_unit + places[i].tokens > most)) {
            sum += cost->per_unit;
            in_unit = 0;
        }
        in_unit += places[i].tokens;
        sum += places[i].tokens * cost->per_token / parts;
    }
    return sum;
}

static inline double best_time_of(const units_case *c, uint32_t parts) {
    static place places[PLACE_MAX];
    static double best[LANE_MAX + 1][PLACE_MAX + 1];
    const uint32_t count = places_of(c, parts, places);
    for (uint32_t p = 0; p <= count; p++) {
        best[0][p] = p == 0 ? 0 : 1e300;
    }
    for (uint32_t l = 1; l <= c->config.lane_count; l++) {
        for (uint32_t p = 0; p <= count; p++) {
            best[l][p] = 1e300;
            for (uint32_t q = 0; q <= p; q++) {
                const double cost = places_cost(c, parts, places, q, p);
                const double most = cost > best[l - 1][q] ? cost : best[l - 1][q];
                best[l][p] = most < best[l][p] ? most : best[l][p];
            }
        }
    }
    return best[c->config.lane_count][count];
}

static inline double best_time(const units_case *c) {
    double best = best_time_of(c, 1);
    for (uint32_t parts = 2; parts <= c->config.column_parts; parts++) {
        if (parts != 5) {  // 1, 2, 3, 4, 6, as the header says
            const double time = best_time_of(c, parts);
            best = time < best ? time : best;
        }
    }
    return best;
}

static inline void require_equal(double a, double b) {
    if (a < b || a > b) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

// Walks tokens and units side by side.
static inline void require_units(const units_case *c, const ptowsp_moe_plan *plan) {
    const uint32_t experts = c->config.expert_count, block = or_one(c->config.block_rows);
    const uint32_t most = (c->config.unit_tokens + block - 1) / block * block;
    uint32_t next = 0;
    assert_in_range(plan->column_parts, 1, or_one(c->config.column_parts));
    for (uint32_t row = 0; row < experts * plan->column_parts; row++) {
        const uint32_t e = row / plan->column_parts, part = row % plan->column_parts;
        for (uint32_t b = 0; b < or_one(c->config.batch_count); b++) {
            const uint32_t count = c->counts[b * experts + e];
            const uint32_t base = c->has_offsets ? c->offsets[b * (experts + 1) + e] : 0;
            for (uint32_t at = 0; at < count; next++) {
                assert_true(next < plan->unit_count);
                const ptowsp_work *unit = &plan->units[next];
                const uint32_t tokens = ptowsp_work_token_count(unit);
                assert_int_equal(ptowsp_work_batch(unit), b);
                assert_int_equal(ptowsp_work_expert(unit), e);
                assert_int_equal(ptowsp_work_token_start(unit), base + at);
                assert_int_equal(ptowsp_work_token_end(unit), base + at + tokens);
                assert_int_equal(unit->work_id, next);
                assert_int_equal(unit->tier, 0);
                assert_int_equal(ptowsp_work_column_part(unit), part);
                assert_true(ptowsp_work_is_valid(unit));
                assert_int_equal(ptowsp_work_is_first(unit), at == 0);
                assert_int_equal(ptowsp_work_is_last(unit), at + tokens == count);
                assert_true(tokens > 0 && at + tokens <= count && (most == 0 || tokens <= most));
                at += tokens;
                assert_true(at == count || at % block == 0);
            }
        }
    }
    assert_int_equal(next, plan->unit_count);
    for (uint32_t i = next; i < plan->unit_capacity; i++) {
        assert_int_equal(plan->units[i].flags, PTOWSP_WORK_INVALID);
        assert_int_equal(ptowsp_work_token_count(&plan->units[i]), 0);
    }
}

// Costs that are exact on the planner's grid.
static inline void require_costs(const units_case *c, const ptowsp_moe_plan *plan) {
    double most = 0, sum = 0;
    assert_int_equal(plan->lane_count, c->config.lane_count);
    assert_int_equal(plan->unit_begin[0], 0);
    assert_int_equal(plan->unit_begin[plan->lane_count], plan->unit_count);
    for (uint32_t l = 0; l < plan->lane_count; l++) {
        double cost = 0;
        for (uint32_t i = plan->unit_begin[l]; i < plan->unit_begin[l + 1]; i++) {
            const ptowsp_work *unit = &plan->units[i];
            cost += c->config.cost.per_unit;
            cost += ptowsp_work_token_count(unit) * c->config.cost.per_token / plan->column_parts;
            if (i == plan->unit_begin[l] ||
                ptowsp_work_expert(unit) != ptowsp_work_expert(unit - 1) ||
                ptowsp_work_column_part(unit) != ptowsp_work_column_part(unit - 1)) {
                cost += c->config.cost.per_expert / plan->column_parts;
            }
        }
        require_equal(plan->lane_costs[l], cost);
        most = cost > most ? cost : most;
        sum += cost;
    }
    require_equal(plan->cost_max, most);
    require_equal(plan->cost_mean, sum / plan->lane_count);
}

// The check passes the plan, and finds any other byte in it.
static inline void require_checked(const units_case *c, ptowsp_moe_plan *plan, uint64_t *random) {
    const uint32_t *offsets = c->has_offsets ? c->offsets : NULL;
    assert_ok(ptowsp_moe_check(BATCH(c->counts, offsets), &c->config, plan, NULL));
    for (int i = 0; i < 8 && plan->unit_count > 0; i++) {
        ptowsp_work *unit = &plan->units[test_random(random) % plan->unit_count];
        unsigned char *byte = (unsigned char *)unit + test_random(random) % sizeof *unit;
        const unsigned char before = *byte;
        *byte = (unsigned char)(before ^ (1 + test_random(random) % 255));
        assert_invalid(ptowsp_moe_check(BATCH(c->counts, offsets), &c->config, plan, NULL));
        *byte = before;
    }
}

static inline void case_random(units_case *c, uint64_t *random) {
    memset(c, 0, sizeof *c);
    ptowsp_moe_config *config = &c->config;
    config->batch_count = test_random_u32(random, 0, BATCH_MAX);
    config->expert_count = test_random_u32(random, 1, EXPERT_MAX);
    config->lane_count = test_random_u32(random, 1, LANE_MAX);
    config->block_rows =
        (uint32_t)(test_random(random) % 3 ? test_random(random) % 2 : test_random(random) % 9);
    config->unit_tokens = (uint32_t)(test_random(random) % 2 ? test_random(random) % 13 : 0);
    do {  // multiples of 1/4, which the grid has exactly
        config->cost.per_unit = (double)(test_random(random) % 3 * (test_random(random) % 40)) / 4;
        config->cost.per_token = (double)(test_random(random) % 9) / 4;
        config->cost.per_expert =
            (double)(test_random(random) % 3 * (test_random(random) % 90)) / 4;
    } while (config->cost.per_unit + config->cost.per_token + config->cost.per_expert <= 0);
    const uint32_t kind = (uint32_t)(test_random(random) % 4),
                   batches = or_one(config->batch_count);
    for (uint32_t b = 0; b < batches; b++) {
        uint32_t row = (uint32_t)(test_random(random) % 5);
        for (uint32_t e = 0; e < config->expert_count; e++) {
            uint32_t count = (uint32_t)(test_random(random) % (kind == 0 ? 2 : kind == 1 ? 4 : 14));
            count = kind == 3 && test_random(random) % 3 ? 0 : count;
            c->counts[b * config->expert_count + e] = count;
            c->offsets[b * (config->expert_count + 1) + e] = row;
            row += count + (uint32_t)(test_random(random) % 3);
        }
        c->offsets[b * (config->expert_count + 1) + config->expert_count] = row;
    }
    c->has_offsets = test_random(random) % 2;
    if (test_random(random) % 2) {  // with costs that can be divided by 2, 3, 4 and 6
        const uint32_t most[6] = {1, 2, 3, 4, 6, 6};
        const uint32_t parts = most[test_random(random) % 6];
        static place places[PLACE_MAX];
        if (places_of(c, 1, places) * parts <= PARTED_MAX) {
            config->column_parts = parts;
            config->cost.per_unit *= 3;
            config->cost.per_token *= 3;
            config->cost.per_expert *= 3;
        }
    }
}

#endif
