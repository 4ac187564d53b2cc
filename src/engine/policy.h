// Who takes a task, by policies: tables of dispatch, which chooses a lane, and of ready tasks, for
// simulated time and real execution alike. And the workers: pools of them, and blocks.

#ifndef PWSP_POLICY_H
#define PWSP_POLICY_H

#include "../base/base.h"

// The unit whose lanes, cores and queues tasks of a unit go to: MIX is at its block's cube core.
PWSP_INLINE ptowsp_unit pwsp_unit_lane(ptowsp_unit unit) {
    return unit == PTOWSP_UNIT_MIX ? PTOWSP_UNIT_CUBE : unit;
}

// Lanes of one kind, after the lanes of the previous pool.
typedef struct pwsp_pool_info {
    const char *name;  // "" of the one pool
    uint32_t first, count;
    uint32_t depth;  // tasks in flight; 0: no limit
} pwsp_pool_info;

// The pools of a schedule, and the pool of links to other ranks.
#define PWSP_POOL_MAX (PTOWSP_SCHEDULE_POOL_MAX + 1)

// The index of a lane's pool. Pools may have no lanes.
PWSP_INLINE uint32_t pwsp_pool_of(const pwsp_pool_info *pools, uint32_t pool_count, uint32_t lane) {
    uint32_t pool = 0;
    while (pool + 1 < pool_count && lane >= pools[pool + 1].first) {
        pool++;
    }
    return pool;
}

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
    static const uint8_t rules[] = {PWSP_LANE_IN_TURN,
#define PWSP_DISPATCH_RULE(with, name, text, rule, cpu_sim, threads, ascend_npu) PWSP_LANE_##rule,
                                    PWSP_DISPATCHES(PWSP_DISPATCH_RULE, )
#undef PWSP_DISPATCH_RULE
    };
    // Of a value that does not exist too: schedules are refused only when all has been looked at.
    return (pwsp_lane_rule)rules[(uint32_t)dispatch < sizeof rules ? (uint32_t)dispatch : 0];
}

// Ready policies: does the entry of the largest priority go first; does a worker without entries take those
// of others; does it run its newest entry first, whose inputs are still in its cache. Simulated lanes and
// cores have the schedule's. Lanes that are threads have FIFO where dispatch chooses them by a key, and else
// WORK_STEALING; in graphs PRIORITY with priorities or units, and else NEWEST. Where they steal, each keeps
// its entries in a deque; where they do not, all entries stand in queues.
#define PWSP_READIES(ROW, with)                                                                    \
    ROW(with, FIFO, false, false, false)                                                           \
    ROW(with, PRIORITY, true, false, false)                                                        \
    ROW(with, WORK_STEALING, false, true, false)                                                   \
    ROW(with, NEWEST, false, true, true)

// The rows by number: the policies of schedules come first.
#define PWSP_READY_ENUM(with, name, has_priority, steals, is_newest_first) PWSP_READY_BY_##name,
typedef enum pwsp_ready { PWSP_READIES(PWSP_READY_ENUM, ) PWSP_READY_COUNT } pwsp_ready;
#undef PWSP_READY_ENUM
PTOWSP_STATIC_ASSERT((int)PWSP_READY_BY_FIFO == (int)PTOWSP_READY_FIFO &&
                         (int)PWSP_READY_BY_PRIORITY == (int)PTOWSP_READY_PRIORITY &&
                         (int)PWSP_READY_BY_WORK_STEALING == (int)PTOWSP_READY_WORK_STEALING,
                     "a schedule's policy is a row's number");

typedef struct pwsp_ready_policy {
    bool has_priority, steals, is_newest_first;
} pwsp_ready_policy;

PWSP_INLINE pwsp_ready_policy pwsp_ready_policy_of(pwsp_ready ready) {
    static const pwsp_ready_policy policies[] = {
#define PWSP_READY_ROW(with, name, has_priority, steals, is_newest_first)                          \
    {has_priority, steals, is_newest_first},
        PWSP_READIES(PWSP_READY_ROW, )
#undef PWSP_READY_ROW
    };
    PTOWSP_ASSERT((size_t)ready < sizeof policies / sizeof policies[0]);
    return policies[ready];
}

// Who takes a ready task, and when: the same for simulated lanes and for cores of trees. Of a schedule
// that has been checked.
typedef struct pwsp_policy {
    pwsp_lane_rule lane_rule;
    bool is_shared;    // the lanes of a pool have one queue, by its rule
    bool is_in_order;  // tasks begin in the order of the program
    bool has_priority, steals;
} pwsp_policy;

PWSP_INLINE pwsp_policy pwsp_policy_of(const ptowsp_schedule *schedule) {
    const pwsp_ready_policy ready = pwsp_ready_policy_of((pwsp_ready)schedule->ready);
    const pwsp_lane_rule rule = pwsp_dispatch_rule(schedule->dispatch);
    const pwsp_policy policy = {rule, rule == PWSP_LANE_ANY,
                                schedule->issue == PTOWSP_ISSUE_IN_ORDER, ready.has_priority,
                                ready.steals};
    return policy;
}

// Do lanes share memory?
PWSP_INLINE bool pwsp_schedule_shares(const ptowsp_schedule *schedule) {
    return schedule->shared.hbm_rate > 0;
}

// The rank of a task by its priority: the larger one goes first.
PWSP_INLINE uint64_t pwsp_priority_rank(uint64_t key, bool is_signed) {
    return is_signed ? key ^ UINT64_C(1) << 63 : key;
}

// Blocks, of lanes and of cores: cube i with the vectors 2 i and 2 i + 1. There are as many as cubes, or
// none if vectors are too few. Vectors are the first workers, and cubes follow.
#define PWSP_BLOCK_VECTORS 2u
#define PWSP_BLOCK_LANES   (1 + PWSP_BLOCK_VECTORS)

PWSP_INLINE uint32_t pwsp_block_count(uint32_t vector_count, uint32_t cube_count) {
    return vector_count / PWSP_BLOCK_VECTORS >= cube_count ? cube_count : 0;
}

// Vector i of the block of a cube.
PWSP_INLINE uint32_t pwsp_block_vector(uint32_t vector_count, uint32_t cube, uint32_t i) {
    PTOWSP_ASSERT(cube >= vector_count && i < PWSP_BLOCK_VECTORS);
    return PWSP_BLOCK_VECTORS * (cube - vector_count) + i;
}

// The block of a worker, if there are so many.
PWSP_INLINE uint32_t pwsp_block_of(uint32_t vector_count, uint32_t worker) {
    return worker < vector_count ? worker / PWSP_BLOCK_VECTORS : worker - vector_count;
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

// The pools of a schedule with its defaults filled in, and the pool of links after the others;
// returns the number without the latter. pools has room for PWSP_POOL_MAX, and named pools have been
// checked.
PWSP_INLINE uint32_t pwsp_schedule_pools(const ptowsp_schedule *schedule, pwsp_pool_info *pools) {
    const uint32_t depth = schedule->depths[PTOWSP_DEPTH_POOL];
    const pwsp_pool_info none = {"", 0, 0, depth};
    uint32_t count = 1;
    pools[0] = none;
    pools[0].count = schedule->lane_count;
    if (schedule->pools == PTOWSP_POOLS_BY_UNIT) {
        count = 2;
        pools[1] = none;
        pools[0].name = "vector";
        pools[0].count = schedule->vector_lane_count;
        pools[1].name = "cube";
        pools[1].count = schedule->cube_lane_count;
    } else if (schedule->pools == PTOWSP_POOLS_NAMED) {
        count = schedule->pool_count;
        for (uint32_t i = 0; i < count; i++) {
            const ptowsp_pool *pool = &schedule->named_pools[i];
            pools[i].name = pool->name;
            pools[i].count = pool->lane_count;
            pools[i].depth = pool->depth ? pool->depth : depth;
        }
    }
    pools[count] = none;
    pools[count].name = "link";
    pools[count].count = 1;
    for (uint32_t i = 0; i <= count; i++) {
        pools[i].first = i ? pools[i - 1].first + pools[i - 1].count : 0;
    }
    return count;
}

// The index of the pool that tasks of a unit take, of so many without the pool of links, if no pool
// names their kernel.
PWSP_INLINE uint32_t pwsp_schedule_unit_pool(const ptowsp_schedule *schedule, uint32_t pool_count,
                                             ptowsp_unit unit) {
    return unit == PTOWSP_UNIT_LINK ? pool_count
                                    : schedule->pools == PTOWSP_POOLS_BY_UNIT &&
                                          pwsp_unit_lane(unit) == PTOWSP_UNIT_CUBE;
}

#endif
