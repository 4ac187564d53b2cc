// Dispatch policies: a row each. The row's rule chooses the lane, in simulated time and in real
// execution. The row also states each target's support of the policy.

#ifndef PWSP_POLICY_H
#define PWSP_POLICY_H

#include "../base/base.h"

// Pools of lanes: the first for all tasks, or two by unit; and that of the links to other ranks.
#define PWSP_POOL_LINK  2
#define PWSP_POOL_COUNT 3

// The rule that selects a lane of a pool.
typedef enum pwsp_lane_rule {
    PWSP_LANE_IN_TURN,       // one after another
    PWSP_LANE_BY_KEY,        // key % lanes
    PWSP_LANE_BY_MIXED_KEY,  // mix(key) % lanes
    PWSP_LANE_ANY            // none beforehand: the first free lane
} pwsp_lane_rule;

// Enumerator, text, rule; support of cpu_sim, threads, ascend_npu: ENFORCED, RECORDED or REFUSED.
// `with` is handed to each row.
// clang-format off
#define PWSP_DISPATCHES(ROW, with)                                                                 \
    ROW(with, ROUND_ROBIN, "round robin", IN_TURN, ENFORCED, RECORDED, ENFORCED)                   \
    ROW(with, AFFINITY, "affinity", BY_KEY, ENFORCED, ENFORCED, ENFORCED)                          \
    ROW(with, HASH, "hash", BY_MIXED_KEY, ENFORCED, ENFORCED, ENFORCED)                            \
    ROW(with, CUSTOM, "custom", BY_KEY, ENFORCED, ENFORCED, ENFORCED)                              \
    ROW(with, WORK_STEALING, "work stealing", ANY, ENFORCED, ENFORCED, ENFORCED)                  \
    ROW(with, PLAN, "plan", BY_KEY, ENFORCED, ENFORCED, ENFORCED)
// clang-format on

PWSP_INLINE pwsp_lane_rule pwsp_dispatch_rule(ptowsp_dispatch dispatch) {
    switch (dispatch) {
#define PWSP_DISPATCH_RULE(with, name, text, rule, cpu_sim, threads, ascend_npu)                   \
    case PTOWSP_DISPATCH_##name: return PWSP_LANE_##rule;
        PWSP_DISPATCHES(PWSP_DISPATCH_RULE, )
#undef PWSP_DISPATCH_RULE
    case PTOWSP_DISPATCH_DEFAULT:
    case PTOWSP_DISPATCH_FORCE_INT: break;
    }
    return PWSP_LANE_IN_TURN;
}

// Does a key choose the lane?
PWSP_INLINE bool pwsp_dispatch_has_key(ptowsp_dispatch dispatch) {
    const pwsp_lane_rule rule = pwsp_dispatch_rule(dispatch);
    return rule == PWSP_LANE_BY_KEY || rule == PWSP_LANE_BY_MIXED_KEY;
}

// The lane among lane_count; turn counts tasks of the pool. Not for ANY.
PWSP_INLINE uint32_t pwsp_lane_choose(pwsp_lane_rule rule, uint64_t key, uint64_t turn,
                                      uint32_t lane_count) {
    PTOWSP_ASSERT(rule != PWSP_LANE_ANY && lane_count > 0);
    const uint64_t number = rule == PWSP_LANE_IN_TURN        ? turn
                            : rule == PWSP_LANE_BY_MIXED_KEY ? pwsp_mix64(key)
                                                             : key;
    return pwsp_modulo(number, lane_count);
}

#endif
