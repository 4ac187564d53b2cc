// Schedules whose lanes share memory, and programs on such lanes.

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

// A program of a text in a context of its own, in place of the one at hand.
static inline void remake(fixture *f, const ptowsp_context_desc *context, const char *source,
                          const ptowsp_parse_desc *attached, const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {NULL, schedule};
    fixture_free(f);
    memset(f, 0, sizeof *f);
    f->context = test_context(context);
    program_make(f, source, attached, &desc);
}

#endif
