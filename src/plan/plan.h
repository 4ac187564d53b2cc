// What chunk plans and attention plans share: faults, and the checks of tiers.

#ifndef PWSP_PLAN_H
#define PWSP_PLAN_H

#include "count.h"

// Sets the info to a fault and returns its status.
PWSP_INTERNAL ptowsp_status pwsp_plan_fail(ptowsp_plan_info *info, ptowsp_plan_fault fault,
                                           uint64_t index, int64_t value, int64_t limit);

// The same for a fault that is at no element.
#define PWSP_PLAN_FAIL(info, name, value, limit)                                                   \
    pwsp_plan_fail(info, PTOWSP_FAULT_##name, PTOWSP_NO_INDEX, value, limit)

// Results that may not be NULL: the names of PTOWSP_FAULT_OUT_NULL.
typedef enum pwsp_plan_out {
    PWSP_OUT_ONLY,  // of a function of section 6
    PWSP_OUT_SIZES,
    PWSP_OUT_ORDER,
    PWSP_OUT_PLACEMENT,
    PWSP_OUT_NEXT,
    PWSP_OUT_IDS,
    PWSP_OUT_BALANCE
} pwsp_plan_out;

// The info to fill in: the caller's, or a spare one where he wants none. No fault so far.
PWSP_INTERNAL ptowsp_plan_info *pwsp_info_start(ptowsp_plan_info *out_info,
                                                ptowsp_plan_info *spare);

// Puts a fault's line into the context's error. Returns the status.
PWSP_INTERNAL ptowsp_status pwsp_plan_report(ptowsp_context *context, ptowsp_status status,
                                             const ptowsp_plan_info *info);

PWSP_INTERNAL ptowsp_status pwsp_tiers_check(const ptowsp_tier *tiers, uint32_t tier_count,
                                             ptowsp_plan_info *info);

// True when the tiers together cover every length from low to high. False does not mean that a
// length of the batch is not covered, only that each has to be looked up.
PWSP_INTERNAL bool pwsp_tiers_cover(const ptowsp_tier *tiers, uint32_t tier_count, int32_t low,
                                    int32_t high);

// Costs as integers on a grid with the unit *out_grid; all zero: the defaults. The smallest
// that is not 0 has 11 bits, the largest at most 41. See attention.c.
PWSP_INTERNAL ptowsp_status pwsp_costs_to_grid(const double *costs, const double *defaults,
                                               uint32_t count, uint64_t *out_fixed,
                                               double *out_grid, ptowsp_plan_info *info);

// The lanes that a plan has room for; any number in a plan that was set up by hand without it.
PWSP_INLINE uint32_t pwsp_lane_capacity(uint32_t lane_capacity) {
    return lane_capacity > 0 ? lane_capacity : UINT32_MAX;
}

// A value of an info, at most INT64_MAX.
PWSP_INLINE int64_t pwsp_info_value(uint64_t value) {
    return (int64_t)pwsp_min_u64(value, INT64_MAX);
}

#endif
