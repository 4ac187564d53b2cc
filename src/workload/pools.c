// Named pools of lanes: which one a kernel's tasks take, checks, printing.
//
//      pool     "cores"       "dma"   "link"
//      lanes    0 1 2 3       4 5     6
//      kernels  all others    load    those that communicate
//
// Time knows ranges of lanes (engine/policy.h) and the index of a task's pool, which a program has
// for each kernel. Names of kernels are looked at here alone.

#include "../base/text.h"
#include "../engine/policy.h"
#include "schedule.h"

#include <inttypes.h>

// -- pools of a schedule --------------------------------------------------------------------------

PWSP_INTERNAL uint32_t pwsp_schedule_lanes(const ptowsp_schedule *schedule) {
    pwsp_pool_info pools[PWSP_POOL_MAX];
    return pools[pwsp_schedule_pools(schedule, pools)].first;
}

// The first place in named pools with a kernel: its pool and its index there; false if none.
static bool pwsp_pools_find(const ptowsp_schedule *schedule, const char *kernel, uint32_t *out_pool,
                            uint32_t *out_index) {
    for (uint32_t i = 0; i < schedule->pool_count; i++) {
        const ptowsp_pool *pool = &schedule->named_pools[i];
        for (uint32_t j = 0; j < PTOWSP_POOL_KERNEL_MAX && pool->kernels[j]; j++) {
            if (strcmp(pool->kernels[j], kernel) == 0) {
                *out_pool = i;
                *out_index = j;
                return true;
            }
        }
    }
    return false;
}

PWSP_INTERNAL uint32_t pwsp_schedule_pool(const ptowsp_schedule *schedule, uint32_t pool_count,
                                          const pwsp_kernel_info *kernel) {
    uint32_t pool = 0, index;
    bool is_named = schedule->pools == PTOWSP_POOLS_NAMED && kernel->unit != PTOWSP_UNIT_LINK &&
                    pwsp_pools_find(schedule, kernel->name, &pool, &index);
    return is_named ? pool : pwsp_schedule_unit_pool(schedule, pool_count, kernel->unit);
}

// -- checking -------------------------------------------------------------------------------------

// The kernels of a pool, whose name is good.
static ptowsp_status pwsp_pools_check_kernels(const ptowsp_module *module,
                                              const ptowsp_schedule *schedule, uint32_t at) {
    const ptowsp_pool *pool = &schedule->named_pools[at];
    for (uint32_t i = 0; i < PTOWSP_POOL_KERNEL_MAX && pool->kernels[i]; i++) {
        const char *name = pool->kernels[i];
        const pwsp_name *found = pwsp_names_get(&module->kernel_names, name);
        uint32_t first = at, index = i;
        if (!found) {
            return PWSP_REFUSE(module->context, "schedule: pool %s: module %s has no kernel %.64s",
                               pool->name, module->name, name);
        }
        const pwsp_kernel_info *kernel = PWSP_KERNEL(module, found->index);
        if (kernel->variant_count || kernel->unit == PTOWSP_UNIT_LINK) {
            return PWSP_REFUSE(module->context, "schedule: pool %s: kernel %s %s", pool->name, name,
                               kernel->variant_count
                                   ? "is a choice; its variants have names of their own"
                                   : "communicates, and has the lane of the links");
        }
        (void)pwsp_pools_find(schedule, name, &first, &index);
        if (first != at || index != i) {
            return PWSP_REFUSE(module->context,
                               "schedule: pool %s: kernel %s is in pool %s already", pool->name,
                               name, schedule->named_pools[first].name);
        }
    }
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_schedule_check_pools(const ptowsp_module *module,
                                                      const ptowsp_schedule *schedule) {
    uint64_t lanes = 0;
    ptowsp_status status = PTOWSP_OK;
    if (!schedule->named_pools || schedule->pool_count == 0) {
        return PWSP_REFUSE(module->context,
                           "schedule: pools named, but named_pools or pool_count is missing");
    }
    if (schedule->pool_count > PTOWSP_SCHEDULE_POOL_MAX) {
        return pwsp_fail(module->context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "schedule: %u pools are more than %d", schedule->pool_count,
                         PTOWSP_SCHEDULE_POOL_MAX);
    }
    for (uint32_t i = 0; i < schedule->pool_count; i++) {
        const ptowsp_pool *pool = &schedule->named_pools[i];
        if (!pool->name || !pwsp_name_is_valid(pool->name)) {
            return PWSP_REFUSE(
                module->context,
                "schedule: the name of pool %u is not 1 to %d printable ASCII characters "
                "without quotes and backslash",
                i, PTOWSP_NAME_MAX);
        }
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(pool->name, schedule->named_pools[j].name) == 0) {
                return PWSP_REFUSE(module->context, "schedule: two pools are named %s", pool->name);
            }
        }
        if (pool->lane_count == 0) {
            return PWSP_REFUSE(module->context, "schedule: pool %s has no lanes", pool->name);
        }
        if (pool->depth > PTOWSP_SCHEDULE_WINDOW_MAX) {
            return pwsp_fail(module->context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                             "schedule: pool %s: a depth of %u is more than %d", pool->name,
                             pool->depth, PTOWSP_SCHEDULE_WINDOW_MAX);
        }
        lanes += pool->lane_count;
    }
    if (lanes > PTOWSP_SCHEDULE_LANE_MAX) {
        return pwsp_fail(module->context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "schedule: %" PRIu64 " lanes are more than %d", lanes,
                         PTOWSP_SCHEDULE_LANE_MAX);
    }
    for (uint32_t i = 0; i < schedule->pool_count && status == PTOWSP_OK; i++) {
        status = pwsp_pools_check_kernels(module, schedule, i);
    }
    return status;
}

// -- printing -------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_schedule_print_pools(const ptowsp_schedule *schedule, ptowsp_output text) {
    for (uint32_t i = 0; i < schedule->pool_count && schedule->named_pools; i++) {
        const ptowsp_pool *pool = &schedule->named_pools[i];
        pwsp_text_format(text, "  pool %s of %u lanes", pwsp_quoted(pool->name).text,
                         pool->lane_count);
        if (pool->depth) {
            pwsp_text_format(text, " depth %u", pool->depth);
        }
        for (uint32_t j = 0; j < PTOWSP_POOL_KERNEL_MAX && pool->kernels[j]; j++) {
            pwsp_text_format(text, "%s%s", j ? ", " : " for ", pwsp_quoted(pool->kernels[j]).text);
        }
        pwsp_text_format(text, "\n");
    }
}
