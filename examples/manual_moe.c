// Section 11 of the manual: the steps of a MoE layer in a service. Each step sorts its tokens, plans
// the experts' rows, and adds its loads to a history; in between, busy experts get replicas.

#include "common/manual.h"

#include <stdlib.h>
#include <string.h>

enum {
    TOKENS = 96,
    TOP_K = 2,
    EXPERTS = 8,
    BLOCK = 8,
    LANES = 6,
    RANKS = 2,
    REPLICAS = 10,
    STEPS = 3
};

static void stop(const ptowsp_plan_info *info) {
    ptowsp_plan_explain(info, manual_output());
    puts("");
    exit(1);
}

// Room that serves every step.
typedef struct service {
    ptowsp_moe_order order;
    ptowsp_moe_config config;
    ptowsp_moe_plan plan;
} service;

static void reserve(service *s) {
    const ptowsp_moe_routes most = {
        .token_count = TOKENS, .top_k = TOP_K, .expert_count = EXPERTS, .block_rows = BLOCK};
    const uint64_t rows = ptowsp_moe_row_bound(&most);
    s->order.counts = (uint32_t *)calloc(EXPERTS, sizeof(uint32_t));
    s->order.offsets = (uint32_t *)calloc(EXPERTS + 1, sizeof(uint32_t));
    s->order.pairs = (uint32_t *)calloc(rows, sizeof(uint32_t));
    s->order.rows = (uint32_t *)calloc(TOKENS * TOP_K, sizeof(uint32_t));
    s->order.row_capacity = (uint32_t)rows;
    s->config = (ptowsp_moe_config){
        .expert_count = EXPERTS, .lane_count = LANES, .block_rows = BLOCK, .unit_tokens = 32};
    const ptowsp_moe_limits limits = {.pair_count_max = TOKENS * TOP_K};
    ptowsp_moe_sizes sizes;
    ptowsp_plan_info info;
    if (ptowsp_moe_bound(&s->config, &limits, &sizes, &info) ||
        ptowsp_moe_place(&sizes, malloc(sizes.block_bytes), sizes.block_bytes, &s->plan)) {
        stop(&info);
    }
}

static void step_run(service *s, const int32_t *ids) {
    const ptowsp_moe_routes routes = {.ids = ids,
                                      .token_count = TOKENS,
                                      .top_k = TOP_K,
                                      .expert_count = EXPERTS,
                                      .block_rows = BLOCK};
    const ptowsp_moe_batch batch = {.counts = s->order.counts, .offsets = s->order.offsets};
    ptowsp_plan_info info;
    if (ptowsp_moe_sort(&routes, &s->order, &info) ||
        ptowsp_moe_generate(&batch, &s->config, &s->plan, &info) ||
        ptowsp_moe_check(&batch, &s->config, &s->plan, &info)) {
        stop(&info);
    }
    uint32_t pairs = 0;
    for (uint32_t i = 0; i < s->plan.unit_count; i++) {  // what a kernel gathers for a unit
        const ptowsp_work *unit = &s->plan.units[i];
        uint32_t count;
        const uint32_t *rows = ptowsp_moe_unit_rows(&s->order, unit, &count);
        for (uint32_t row = 0; row < count; row++) {
            manual_check(ids[rows[row]] == (int32_t)ptowsp_work_expert(unit), "a pair's expert");
        }
        manual_check(ptowsp_work_batch(unit) == 0, "one batch");
        pairs += count;
    }
    manual_check(pairs == s->order.pair_count, "each pair is in a unit");
}

// Places replicas by the history, then improves the placement by few moves as loads have drifted.
static void experts_place(const float *loads, const uint32_t *counts) {
    const ptowsp_moe_cluster cluster = {
        .expert_count = EXPERTS, .replica_count = REPLICAS, .rank_count = RANKS, .is_spread = true};
    int32_t experts[REPLICAS], replica_counts[EXPERTS], replicas[EXPERTS * REPLICAS];
    const ptowsp_moe_placement placement = {.replica_experts = experts,
                                            .expert_counts = replica_counts,
                                            .expert_replicas = replicas,
                                            .stride = REPLICAS};
    const uint64_t bytes = ptowsp_moe_scratch_bytes(&cluster);
    void *scratch = malloc(bytes);
    float drifted[EXPERTS];
    ptowsp_moe_moved moved;
    ptowsp_plan_info info;
    for (uint32_t e = 0; e < EXPERTS; e++) {
        drifted[e] = (float)counts[e];
    }
    if (ptowsp_moe_rebalance(&cluster, loads, 1, scratch, bytes, &placement, &info) ||
        ptowsp_moe_move(&cluster, drifted, 2, scratch, bytes, experts, NULL, &moved, &info) ||
        ptowsp_moe_index(&cluster, &placement, &info)) {
        stop(&info);
    }
    int32_t sum = 0;
    for (uint32_t e = 0; e < EXPERTS; e++) {
        sum += replica_counts[e];
    }
    manual_check(sum == REPLICAS && moved.load_after <= moved.load_before, "the placement");
    printf("moves: %u, load of the busiest rank %g, then %g\n", moved.move_count, moved.load_before,
           moved.load_after);
    free(scratch);
}

int main(void) {
    service s = {0};
    reserve(&s);
    int32_t ids[TOKENS * TOP_K];
    uint64_t scratch[EXPERTS + 1];
    float loads[EXPERTS] = {0};
    ptowsp_plan_info info;
    for (uint32_t step = 0; step < STEPS; step++) {
        const ptowsp_moe_traffic traffic = {.pattern = PTOWSP_MOE_SKEWED,
                                            .token_count = TOKENS,
                                            .top_k = TOP_K,
                                            .expert_count = EXPERTS,
                                            .step = step,
                                            .seed = 1 + step,
                                            .skew = 3};
        if (ptowsp_moe_routes_generate(&traffic, scratch, ids, &info)) {
            stop(&info);
        }
        step_run(&s, ids);
        if (ptowsp_moe_history_add(loads, EXPERTS, s.order.counts, 0.5, &info)) {
            stop(&info);
        }
    }
    ptowsp_moe_print(&s.plan, manual_output());
    ptowsp_moe_balance balance;
    if (ptowsp_moe_look(s.order.counts, EXPERTS, RANKS, BLOCK, &balance, &info)) {
        stop(&info);
    }
    manual_check(balance.total == TOKENS * TOP_K, "the tokens of all experts");
    printf("loads: the busiest expert has %.2f times the mean, the busiest rank %.2f times\n",
           balance.expert_ratio, balance.rank_ratio);
    experts_place(loads, s.order.counts);
    free(s.order.counts);
    free(s.order.offsets);
    free(s.order.pairs);
    free(s.order.rows);
    free(s.plan.units);  // the block
    return manual_end();
}
