// Cost models as users name them: rows of PTOWSP_MODELS. Their costs are in ../isa/cost_models.h.

#ifndef PWSP_COST_MODEL_H
#define PWSP_COST_MODEL_H

#include "../base/base.h"

#include <stdio.h>

#define PWSP_COST_TEXT_MAX 128
// With these limits a transfer of 64 MiB in rows of a byte takes less than 2^43 cycles, the most that
// a user's function may return.
#define PWSP_TIMING_CYCLES_MAX   (1u << 20)
#define PWSP_TIMING_BURST_MAX    (1u << 10)
#define PWSP_TIMING_CLOCKS_MAX   64  // times memory_mhz
#define PWSP_TIMING_MHZ_MAX      (1u << 17)
#define PWSP_TIMING_RATE_MAX     (1u << 30)
#define PWSP_TIMING_IS_CLOCK(at) ((at) > 0 && (at) <= PWSP_TIMING_MHZ_MAX)

// Checks the times of a model; false with a text.
PWSP_INLINE bool pwsp_timing_check(const ptowsp_core_timing *timing, ptowsp_model model,
                                   char text[PWSP_COST_TEXT_MAX]) {
    bool is_a5 = model == PTOWSP_MODEL_950PR;
    if (model != PTOWSP_MODEL_910B && !is_a5) {
        snprintf(text, PWSP_COST_TEXT_MAX, "cost model %d has no timing", (int)model);
        return false;
    }
    if (timing->family != (is_a5 ? PTOWSP_FAMILY_A5 : PTOWSP_FAMILY_A2A3)) {
        snprintf(text, PWSP_COST_TEXT_MAX, "timing: family %d does not belong to cost model %d",
                 (int)timing->family, (int)model);
        return false;
    }
    if (!PWSP_TIMING_IS_CLOCK(timing->clock_mhz) || !PWSP_TIMING_IS_CLOCK(timing->memory_mhz)) {
        snprintf(text, PWSP_COST_TEXT_MAX, "timing: clocks are %u and %u MHz, not 1 to %u",
                 timing->clock_mhz, timing->memory_mhz, PWSP_TIMING_MHZ_MAX);
        return false;
    }
    if (timing->clock_mhz / timing->memory_mhz >= PWSP_TIMING_CLOCKS_MAX) {
        snprintf(text, PWSP_COST_TEXT_MAX,
                 "timing: clock_mhz is %u, %d times memory_mhz (%u) or more", timing->clock_mhz,
                 PWSP_TIMING_CLOCKS_MAX, timing->memory_mhz);
        return false;
    }
    if (timing->transposed_rate == 0 || timing->transposed_rate > PWSP_TIMING_RATE_MAX) {
        snprintf(text, PWSP_COST_TEXT_MAX, "timing: transposed_rate is %u, not 1 to %u",
                 timing->transposed_rate, PWSP_TIMING_RATE_MAX);
        return false;
    }
    for (int i = 0; i < PTOWSP_PATH_COUNT; i++) {
        const ptowsp_path_timing *path = &timing->paths[i];
        if (path->rate == 0 || path->rate > PWSP_TIMING_RATE_MAX) {
            snprintf(text, PWSP_COST_TEXT_MAX, "timing: the rate of path %d is %u, not 1 to %u", i,
                     path->rate, PWSP_TIMING_RATE_MAX);
            return false;
        }
        if (path->latency > PWSP_TIMING_CYCLES_MAX || path->setup > PWSP_TIMING_CYCLES_MAX) {
            snprintf(text, PWSP_COST_TEXT_MAX,
                     "timing: path %d has a latency of %u and a setup of %u, above %u cycles", i,
                     path->latency, path->setup, PWSP_TIMING_CYCLES_MAX);
            return false;
        }
        if (path->burst > PWSP_TIMING_BURST_MAX) {
            snprintf(text, PWSP_COST_TEXT_MAX, "timing: path %d has bursts of %u cycles, above %u",
                     i, path->burst, PWSP_TIMING_BURST_MAX);
            return false;
        }
    }
    return true;
}

// Checks a cost before it is used; false with a text.
PWSP_INLINE bool pwsp_cost_check(const ptowsp_cost *cost, char text[PWSP_COST_TEXT_MAX]) {
    switch (cost->model) {
#define PWSP_MODEL_KNOWN(name, text) case PTOWSP_MODEL_##name:
        PTOWSP_MODELS(PWSP_MODEL_KNOWN)
#undef PWSP_MODEL_KNOWN
        if (cost->timing) {
            return pwsp_timing_check(cost->timing, cost->model, text);
        }
        if (cost->model != PTOWSP_MODEL_USER || cost->fn) {
            return true;
        }
        break;
    default: break;
    }
    snprintf(text, PWSP_COST_TEXT_MAX, "there is no cost model %d, or it lacks its function",
             (int)cost->model);
    return false;
}

#endif
