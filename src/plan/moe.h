// Shared by MoE plans: checks of inputs, and reading of placements.

#ifndef PWSP_MOE_H
#define PWSP_MOE_H

#include "plan.h"

#define PWSP_MOE_ROW_MAX (UINT32_MAX - 1u)  // pairs and rows: NO_ROW means no row

// A cluster that has been checked, with its defaults, and with one group and one node where it is
// placed globally.
typedef struct pwsp_moe_cluster {
    uint32_t expert_count, replica_count, group_count, node_count, rank_count;
    uint32_t rank_replicas, node_ranks;
    bool is_spread;
} pwsp_moe_cluster;

PWSP_INTERNAL ptowsp_status pwsp_moe_cluster_check(const ptowsp_moe_cluster *given,
                                                   pwsp_moe_cluster *cluster,
                                                   ptowsp_plan_info *info);

// Memory from scratch, in turn; base NULL only adds up.
typedef struct pwsp_moe_carver {
    char *base;
    uint64_t used;
} pwsp_moe_carver;

PWSP_INLINE void *pwsp_moe_carve(pwsp_moe_carver *carver, uint64_t count, uint64_t size) {
    char *memory = carver->base ? carver->base + carver->used : NULL;
    carver->used += (count * size + 7) / 8 * 8;  // counts are below 2^33
    return memory;
}

// Checks that scratch is there, aligned, and as large as ptowsp_moe_scratch_bytes.
PWSP_INTERNAL ptowsp_status pwsp_moe_scratch_check(const pwsp_moe_cluster *cluster,
                                                   const void *scratch, uint64_t bytes,
                                                   ptowsp_plan_info *info);

// The bytes that ptowsp_moe_move needs.
PWSP_INTERNAL uint64_t pwsp_moe_move_bytes(const pwsp_moe_cluster *cluster);

// Checks that loads are there, not negative and finite.
PWSP_INTERNAL ptowsp_status pwsp_moe_loads_check(const float *loads, uint64_t count,
                                                 ptowsp_plan_info *info);

// Checks the description of routes, but not their ids.
PWSP_INTERNAL ptowsp_status pwsp_moe_routes_check(const ptowsp_moe_routes *routes,
                                                  ptowsp_plan_info *info);

// Checks the ids.
PWSP_INTERNAL ptowsp_status pwsp_moe_ids_check(const ptowsp_moe_routes *routes,
                                               ptowsp_plan_info *info);

// A configuration of units, with its defaults, and the step that is planned.
typedef struct pwsp_moe_units {
    uint32_t batch_count, expert_count, lane_count;
    uint64_t unit_tokens;  // a multiple of block_rows, or UINT64_MAX
    uint64_t block_rows;
    uint32_t parts;                // of an expert's columns
    uint64_t unit, token, expert;  // costs, the last two of a part
    double grid;
    const PTOWSP_GM uint32_t *counts;
    const PTOWSP_GM uint32_t *offsets;
    uint64_t total;  // the cost on one lane
} pwsp_moe_units;

// Takes a configuration, with experts in so many parts.
PWSP_INTERNAL ptowsp_status pwsp_moe_configure(const ptowsp_moe_config *config, uint32_t parts,
                                               pwsp_moe_units *u, ptowsp_plan_info *info);

// The most parts that a configuration allows.
PWSP_INLINE uint32_t pwsp_moe_parts_max(const ptowsp_moe_config *config) {
    return config && config->column_parts > 0 ? config->column_parts : 1;
}

// The same with the step: checks configuration and counts, and sums up their cost.
PWSP_INTERNAL ptowsp_status pwsp_moe_units_start(const ptowsp_moe_batch *batch,
                                                 const ptowsp_moe_config *config, uint32_t parts,
                                                 pwsp_moe_units *u, ptowsp_plan_info *info);

// Checks that a plan has its arrays.
PWSP_INTERNAL ptowsp_status pwsp_moe_arrays_check(const ptowsp_moe_plan *plan,
                                                  ptowsp_plan_info *info);

PWSP_INLINE uint32_t pwsp_moe_count_at(const pwsp_moe_units *u, uint32_t batch, uint32_t expert) {
    return u->counts[(size_t)batch * u->expert_count + expert];
}

// The first row of the tokens of an expert.
PWSP_INLINE uint64_t pwsp_moe_base_at(const pwsp_moe_units *u, uint32_t batch, uint32_t expert) {
    return u->offsets ? u->offsets[(size_t)batch * (u->expert_count + (size_t)1) + expert] : 0;
}

// Arguments and arrays that may not be NULL: the names of PTOWSP_FAULT_INPUT_NULL.
typedef enum pwsp_moe_input {
    PWSP_MOE_IN_ROUTES,
    PWSP_MOE_IN_ROUTES_IDS,
    PWSP_MOE_IN_SCRATCH,
    PWSP_MOE_IN_CLUSTER,
    PWSP_MOE_IN_LOADS,
    PWSP_MOE_IN_BATCH_COUNTS,
    PWSP_MOE_IN_TRAFFIC,
    PWSP_MOE_IN_COUNTS,
    PWSP_MOE_IN_ORDER_COUNTS,
    PWSP_MOE_IN_ORDER_OFFSETS,
    PWSP_MOE_IN_ORDER_PAIRS,
    PWSP_MOE_IN_PLACEMENT,
    PWSP_MOE_IN_PLACEMENT_REPLICAS,
    PWSP_MOE_IN_PLACEMENT_COUNTS,
    PWSP_MOE_IN_PLACEMENT_LISTS,
    PWSP_MOE_IN_REPLICAS
} pwsp_moe_input;

PWSP_INLINE ptowsp_status pwsp_moe_null(ptowsp_plan_info *info, pwsp_moe_input input) {
    return pwsp_plan_fail(info, PTOWSP_FAULT_INPUT_NULL, (uint64_t)input, 0, 0);
}

PWSP_INLINE bool pwsp_moe_expert_count_is_valid(uint32_t count) {
    return count > 0 && count <= PTOWSP_MOE_EXPERT_MAX;
}

#endif
