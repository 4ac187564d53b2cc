// How loads of experts are spread, and histories of them.

#include "moe.h"

// Finds the largest, the first that has it, and how many have nothing.
typedef struct pwsp_moe_peak {
    uint64_t max;
    uint32_t busiest, idle;
} pwsp_moe_peak;

static void pwsp_moe_peak_add(pwsp_moe_peak *peak, uint32_t index, uint64_t load) {
    if (load > peak->max) {
        peak->max = load;
        peak->busiest = index;
    }
    peak->idle += load == 0;
}

static double pwsp_moe_ratio(uint64_t max, uint64_t total, uint32_t count) {
    return total > 0 ? (double)max * count / (double)total : 0.0;
}

ptowsp_status ptowsp_moe_look(const PTOWSP_GM uint32_t *counts, uint32_t count, uint32_t rank_count,
                              uint32_t block_rows, ptowsp_moe_balance *out_balance,
                              ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    if (!out_balance) {
        return PWSP_PLAN_FAIL(info, OUT_NULL, PWSP_OUT_BALANCE, 0);
    }
    memset(out_balance, 0, sizeof *out_balance);
    if (!counts) {
        return pwsp_moe_null(info, PWSP_MOE_IN_COUNTS);
    }
    if (!pwsp_moe_expert_count_is_valid(count)) {
        return PWSP_PLAN_FAIL(info, EXPERTS_COUNT, count, PTOWSP_MOE_EXPERT_MAX);
    }
    if (rank_count == 0 || count % rank_count != 0) {
        return PWSP_PLAN_FAIL(info, RANKS_DIVIDE, count, rank_count);
    }
    const uint64_t block = block_rows > 0 ? block_rows : 1;
    const uint32_t size = count / rank_count;
    pwsp_moe_peak experts = {0, 0, 0}, ranks = {0, 0, 0};
    uint64_t total = 0, rows = 0;
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        uint64_t of_rank = 0;
        for (uint32_t e = rank * size; e < (rank + 1) * size; e++) {
            pwsp_moe_peak_add(&experts, e, counts[e]);
            of_rank += counts[e];
            rows += pwsp_ceil_div_u64(counts[e], block) * block;
        }
        pwsp_moe_peak_add(&ranks, rank, of_rank);
        total += of_rank;
    }
    out_balance->total = total;
    out_balance->expert_max = experts.max;
    out_balance->rank_max = ranks.max;
    out_balance->expert_busiest = experts.busiest;
    out_balance->rank_busiest = ranks.busiest;
    out_balance->expert_idle = experts.idle;
    out_balance->rank_idle = ranks.idle;
    out_balance->expert_ratio = pwsp_moe_ratio(experts.max, total, count);
    out_balance->rank_ratio = pwsp_moe_ratio(ranks.max, total, rank_count);
    out_balance->rank_perfect = pwsp_ceil_div_u64(total, rank_count);
    out_balance->padding_share = rows > 0 ? (double)(rows - total) / (double)rows : 0.0;
    return PTOWSP_OK;
}

ptowsp_status ptowsp_moe_history_add(PTOWSP_GM float *loads, uint32_t count,
                                     const PTOWSP_GM uint32_t *counts, double decay,
                                     ptowsp_plan_info *out_info) {
    PWSP_ROUND_APART
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    if (count > 0 && (!loads || !counts)) {
        return pwsp_moe_null(info, loads ? PWSP_MOE_IN_COUNTS : PWSP_MOE_IN_LOADS);
    }
    if (!(decay >= 0.0 && decay <= 1.0)) {
        return PWSP_PLAN_FAIL(info, DECAY_INVALID, 0, 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        const double kept = (double)loads[i] * decay;
        loads[i] = (float)(kept + counts[i]);
    }
    return PTOWSP_OK;
}
