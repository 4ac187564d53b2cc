// Memory of the ends of lanes, and their players made anew.

#include "ends.h"

PWSP_INTERNAL void pwsp_ends_clear(pwsp_ends *ends) {
    for (uint32_t i = 0; i < ends->lane_count; i++) {
        ends->times[i] = PWSP_ENDS_NONE;
    }
    for (uint32_t i = 0; i < 2 * ends->leaf_count; i++) {
        ends->games[i] = PWSP_ENDS_NONE;
    }
    ends->base = 0;
}

PWSP_INTERNAL bool pwsp_ends_init(pwsp_ends *ends, const pwsp_memory *memory, uint32_t lane_count) {
    memset(ends, 0, sizeof *ends);
    ends->lane_count = lane_count;
    ends->leaf_count = 2;
    ends->lane_bits = 1;
    while (ends->leaf_count < lane_count) {
        ends->leaf_count *= 2;
        ends->lane_bits++;
    }
    ends->times = (uint64_t *)pwsp_memory_alloc(memory, lane_count * sizeof(uint64_t));
    ends->games =
        (uint64_t *)pwsp_memory_alloc(memory, 2 * (size_t)ends->leaf_count * sizeof(uint64_t));
    if (!ends->times || !ends->games) {
        pwsp_ends_free(ends, memory);
        return false;
    }
    pwsp_ends_clear(ends);
    return true;
}

PWSP_INTERNAL void pwsp_ends_free(pwsp_ends *ends, const pwsp_memory *memory) {
    pwsp_memory_free(memory, ends->times, ends->lane_count * sizeof(uint64_t));
    pwsp_memory_free(memory, ends->games, 2 * (size_t)ends->leaf_count * sizeof(uint64_t));
    memset(ends, 0, sizeof *ends);
}

PWSP_INTERNAL size_t pwsp_ends_bytes(const pwsp_ends *ends) {
    return ((size_t)ends->lane_count + 2 * (size_t)ends->leaf_count) * sizeof(uint64_t);
}

PWSP_INTERNAL PWSP_COLD void pwsp_ends_rebase(pwsp_ends *ends) {
    uint64_t base = PWSP_ENDS_NONE;
    for (uint32_t i = 0; i < ends->lane_count; i++) {
        base = pwsp_min_u64(base, ends->times[i]);
    }
    PTOWSP_ASSERT(base != PWSP_ENDS_NONE);  // a lane runs something
    ends->base = base;
    for (uint32_t i = 0; i < ends->lane_count; i++) {
        const uint64_t time = ends->times[i];
        ends->games[ends->leaf_count + i] =
            time == PWSP_ENDS_NONE ? PWSP_ENDS_NONE : pwsp_ends_player(ends, i, time);
    }
    for (uint32_t i = ends->leaf_count - 1; i > 0; i--) {
        ends->games[i] = pwsp_min_u64(ends->games[2 * i], ends->games[2 * i + 1]);
    }
}
