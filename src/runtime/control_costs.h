// The costs of control in cycles: see ptowsp_control. Shared by the checks of schedules and by time.

#ifndef PWSP_CONTROL_COSTS_H
#define PWSP_CONTROL_COSTS_H

#include "../base/base.h"

typedef struct pwsp_control_costs {
    uint64_t cycles[PTOWSP_CONTROL_COST_COUNT];
} pwsp_control_costs;

// Rounds each cost to cycles, a half up. False if one, or their sum, is over
// PTOWSP_CONTROL_CYCLES_MAX; *out_cost is the first cost that exceeds it.
PWSP_INLINE bool pwsp_control_costs_make(const ptowsp_control *control, pwsp_control_costs *costs,
                                         uint32_t *out_cost) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < PTOWSP_CONTROL_COST_COUNT; i++) {
        const uint64_t ns = control->cost_ns[i], mhz = control->clock_mhz;
        uint64_t whole = 0;
        *out_cost = i;
        if (!pwsp_mul_fits(ns / 1000, mhz, &whole) || whole > PTOWSP_CONTROL_CYCLES_MAX) {
            return false;
        }
        costs->cycles[i] = whole + (ns % 1000 * mhz + 500) / 1000;
        sum += costs->cycles[i];
        if (sum > PTOWSP_CONTROL_CYCLES_MAX) {
            return false;
        }
    }
    return true;
}

// When lane i of `count` starts, after the launch. A quarter has i / (count - 1) between 1/4 and 2/4,
// and so on; the difference of two times is multiplied in two parts, as it may be large.
PWSP_INLINE uint64_t pwsp_control_start(const pwsp_control_costs *costs, uint32_t i,
                                        uint32_t count) {
    const uint64_t *at = &costs->cycles[PTOWSP_CONTROL_START_FIRST];
    if (count <= 1) {
        return at[0];
    }
    const uint64_t span = count - 1, quarter = i * UINT64_C(4) / span;
    if (quarter == 4) {
        return at[4];
    }
    const uint64_t part = i * UINT64_C(4) - quarter * span;  // of span
    const uint64_t apart = at[quarter + 1] - at[quarter];
    return at[quarter] + apart / span * part + apart % span * part / span;
}

#endif
