// Dispatch: descriptors to kernels, serially, or over lanes.
//
// Before anything runs, one pass finds which of the 256 tiers occur, so that a missing kernel is an
// error and not half a step. Lanes take ranges of descriptors from one queue per group; in MPMD a
// lane skips the descriptors of other groups in its range, at the cost of one byte comparison each.

#include "../base/context.h"

#define PWSP_TIER_COUNT 256

// For each tier the index of the first descriptor that has it, or PTOWSP_NO_INDEX.
typedef struct pwsp_tier_uses {
    uint64_t first[PWSP_TIER_COUNT];
} pwsp_tier_uses;

static void pwsp_tier_uses_find(pwsp_tier_uses *uses, const PTOWSP_GM ptowsp_work *work,
                                uint64_t work_count) {
    for (uint32_t tier = 0; tier < PWSP_TIER_COUNT; tier++) {
        uses->first[tier] = PTOWSP_NO_INDEX;
    }
    for (uint64_t i = 0; i < work_count;) {
        uint8_t tier = work[i].tier;
        uses->first[tier] = pwsp_min_u64(uses->first[tier], i);
        do {
            i++;
        } while (i < work_count && work[i].tier == tier);
    }
}

static bool pwsp_table_has(const ptowsp_lane_group *group, uint32_t tier) {
    return tier < group->table_count && group->table[tier] != NULL;
}

// Finds the first group that has a kernel for each tier in use. Returns the lowest index of a
// descriptor that none serves, or PTOWSP_NO_INDEX.
static uint64_t pwsp_owners_find(const pwsp_tier_uses *uses, const ptowsp_lane_group *groups,
                                 uint32_t group_count, uint8_t *owners) {
    uint64_t orphan = PTOWSP_NO_INDEX;
    for (uint32_t tier = 0; tier < PWSP_TIER_COUNT; tier++) {
        uint32_t owner = 0;
        while (owner < group_count && !pwsp_table_has(&groups[owner], tier)) {
            owner++;
        }
        PTOWSP_ASSERT(owner <= PTOWSP_LANE_GROUP_MAX);
        owners[tier] = (uint8_t)owner;
        if (owner == group_count) {
            orphan = pwsp_min_u64(orphan, uses->first[tier]);
        }
    }
    return orphan;
}

ptowsp_status ptowsp_dispatch_serial(const PTOWSP_GM ptowsp_work *work, uint64_t work_count,
                                     const ptowsp_work_fn *table, uint32_t table_count, void *user,
                                     uint64_t *out_index) {
    if (out_index) {
        *out_index = PTOWSP_NO_INDEX;
    }
    if ((!work && work_count > 0) || (!table && table_count > 0)) {
        return PTOWSP_INVALID_PARAMS;
    }
    ptowsp_lane_group group = {1, table, table_count};
    pwsp_tier_uses uses;
    uint8_t owners[PWSP_TIER_COUNT];
    pwsp_tier_uses_find(&uses, work, work_count);
    uint64_t orphan = pwsp_owners_find(&uses, &group, 1, owners);
    if (orphan != PTOWSP_NO_INDEX) {
        if (out_index) {
            *out_index = orphan;
        }
        return PTOWSP_INVALID_PARAMS;
    }
    for (uint64_t i = 0; i < work_count; i++) {
        table[work[i].tier](&work[i], 0, user);
    }
    return PTOWSP_OK;
}

// Checks the groups of an MPMD dispatch.
static ptowsp_status pwsp_groups_check(ptowsp_context *context, const ptowsp_lane_group *groups,
                                       uint32_t group_count) {
    if (group_count == 0 || group_count > PTOWSP_LANE_GROUP_MAX) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "dispatch: group_count %u is not in 1 to %u", (unsigned)group_count,
                         (unsigned)PTOWSP_LANE_GROUP_MAX);
    }
    if (!groups) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "dispatch: groups is NULL with group_count %u", (unsigned)group_count);
    }
    uint32_t lanes_left = PTOWSP_LANE_COUNT_MAX;
    for (uint32_t i = 0; i < group_count; i++) {
        const ptowsp_lane_group *group = &groups[i];
        if (group->lane_count == 0 || group->lane_count > lanes_left) {
            return pwsp_fail(
                context, PTOWSP_INVALID_PARAMS, i,
                "dispatch: group %u has %u lanes; at least 1 each and at most %u in all",
                (unsigned)i, (unsigned)group->lane_count, (unsigned)PTOWSP_LANE_COUNT_MAX);
        }
        if (!group->table && group->table_count > 0) {
            return pwsp_fail(context, PTOWSP_INVALID_PARAMS, i,
                             "dispatch: the table of group %u is NULL with table_count %u",
                             (unsigned)i, (unsigned)group->table_count);
        }
        lanes_left -= group->lane_count;
    }
    return PTOWSP_OK;
}

// Checks the work against the tables of checked groups, and finds the group that owns each tier.
static ptowsp_status pwsp_work_check_tiers(ptowsp_context *context,
                                           const PTOWSP_GM ptowsp_work *work, uint64_t work_count,
                                           const ptowsp_lane_group *groups, uint32_t group_count,
                                           uint8_t *owners) {
    if (!work && work_count > 0) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "dispatch: work is NULL with work_count %llu",
                         (unsigned long long)work_count);
    }
    pwsp_tier_uses uses;
    pwsp_tier_uses_find(&uses, work, work_count);
    uint64_t orphan = pwsp_owners_find(&uses, groups, group_count, owners);
    if (orphan != PTOWSP_NO_INDEX) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, orphan,
                         "dispatch: work at %llu has tier %u, for which no table has a kernel",
                         (unsigned long long)orphan, (unsigned)work[orphan].tier);
    }
    return PTOWSP_OK;
}

typedef struct pwsp_spmd_job {
    const PTOWSP_GM ptowsp_work *work;
    const ptowsp_work_fn *table;
    void *user;
} pwsp_spmd_job;

static void pwsp_spmd_range(void *arg, uint64_t begin, uint64_t end, uint32_t lane) {
    const pwsp_spmd_job *job = (const pwsp_spmd_job *)arg;
    for (uint64_t i = begin; i < end; i++) {
        job->table[job->work[i].tier](&job->work[i], lane, job->user);
    }
}

ptowsp_status ptowsp_dispatch_spmd(ptowsp_context *context, const PTOWSP_GM ptowsp_work *work,
                                   uint64_t work_count, const ptowsp_work_fn *table,
                                   uint32_t table_count, void *user) {
    PTOWSP_ASSERT(context);
    if (!pwsp_context_enter(context)) {
        return pwsp_fail_busy(context);
    }
    ptowsp_status status;
    if (!table && table_count > 0) {
        status = pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                           "dispatch: table is NULL with table_count %u", (unsigned)table_count);
    } else {
        ptowsp_lane_group group = {1, table, table_count};
        uint8_t owners[PWSP_TIER_COUNT];
        status = pwsp_work_check_tiers(context, work, work_count, &group, 1, owners);
    }
    if (status == PTOWSP_OK) {
        pwsp_spmd_job job = {work, table, user};
        status = pwsp_context_run(context, work_count, 0, pwsp_spmd_range, &job);
    }
    pwsp_context_leave(context);
    return status;
}

typedef struct pwsp_mpmd_job {
    const PTOWSP_GM ptowsp_work *work;
    const ptowsp_lane_group *groups;
    uint32_t group_count;
    void *user;
    uint8_t owners[PWSP_TIER_COUNT];
    pwsp_queue queues[PTOWSP_LANE_GROUP_MAX];
} pwsp_mpmd_job;

static void pwsp_mpmd_lane(pwsp_mpmd_job *job, uint32_t group_index, uint32_t lane) {
    const ptowsp_lane_group *group = &job->groups[group_index];
    uint64_t begin, end;
    PTOWSP_ASSERT(group_index < job->group_count);
    while (pwsp_queue_take(&job->queues[group_index], &begin, &end)) {
        for (uint64_t i = begin; i < end; i++) {
            uint8_t tier = job->work[i].tier;
            if (job->owners[tier] == group_index) {
                group->table[tier](&job->work[i], lane, job->user);
            }
        }
    }
}

static void pwsp_mpmd_lanes(void *arg, uint64_t begin, uint64_t end, uint32_t context_lane) {
    pwsp_mpmd_job *job = (pwsp_mpmd_job *)arg;
    (void)context_lane;
    for (uint64_t lane = begin; lane < end; lane++) {
        uint64_t group_index = 0, first = 0;
        while (lane - first >= job->groups[group_index].lane_count) {
            PTOWSP_ASSERT(group_index + 1 < job->group_count);
            first += job->groups[group_index].lane_count;
            group_index++;
        }
        pwsp_mpmd_lane(job, (uint32_t)group_index, (uint32_t)lane);
    }
}

// Runs checked work on the lanes of all groups.
static ptowsp_status pwsp_mpmd_run(ptowsp_context *context, pwsp_mpmd_job *job,
                                   uint64_t work_count) {
    uint64_t lane_count = 0;
    for (uint32_t i = 0; i < job->group_count; i++) {
        pwsp_queue queue = {0, work_count, 0, job->groups[i].lane_count};
        job->queues[i] = queue;
        lane_count += queue.lane_count;
    }
    return pwsp_context_run(context, work_count ? lane_count : 0, 1, pwsp_mpmd_lanes, job);
}

ptowsp_status ptowsp_dispatch_mpmd(ptowsp_context *context, const PTOWSP_GM ptowsp_work *work,
                                   uint64_t work_count, const ptowsp_lane_group *groups,
                                   uint32_t group_count, void *user) {
    PTOWSP_ASSERT(context);
    if (!pwsp_context_enter(context)) {
        return pwsp_fail_busy(context);
    }
    pwsp_mpmd_job job;
    ptowsp_status status = pwsp_groups_check(context, groups, group_count);
    if (status == PTOWSP_OK) {
        status = pwsp_work_check_tiers(context, work, work_count, groups, group_count, job.owners);
    }
    if (status == PTOWSP_OK) {
        job.work = work;
        job.groups = groups;
        job.group_count = group_count;
        job.user = user;
        status = pwsp_mpmd_run(context, &job, work_count);
    }
    pwsp_context_leave(context);
    return status;
}
