// Schedules whose lanes share memory.

#ifndef CONTENTION_H
#define CONTENTION_H

#include "support/fixture.h"

#include <math.h>

static inline ptowsp_schedule lanes_of(uint32_t lane_count, uint32_t hbm_rate, uint32_t l2_rate) {
    const ptowsp_schedule schedule = {.lane_count = lane_count,
                                      .dispatch = PTOWSP_DISPATCH_WORK_STEALING,
                                      .shared.hbm_rate = hbm_rate,
                                      .shared.l2_rate = l2_rate};
    return schedule;
}

#endif
