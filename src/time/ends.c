// Memory of the ends of lanes, and their players made anew.

#include "ends.h"

PWSP_INTERNAL void pwsp_ends_clear(pwsp_ends *ends) {
    for (uint32_t i = 0; i < ends->tournament.lane_count; i++) {
        ends->times[i] = PWSP_ENDS_NONE;
    }
    pwsp_tournament_clear(&ends->tournament);
}

PWSP_INTERNAL bool pwsp_ends_init(pwsp_ends *ends, const pwsp_memory *memory, uint32_t lane_count) {
    if (!PWSP_ALLOC(memory, ends->times, lane_count) ||
        !pwsp_tournament_init(&ends->tournament, memory, lane_count)) {
        return false;
    }
    pwsp_ends_clear(ends);
    return true;
}

PWSP_INTERNAL PWSP_COLD void pwsp_ends_rebase(pwsp_ends *ends) {
    pwsp_tournament *tournament = &ends->tournament;
    uint64_t *players = tournament->games + tournament->leaf_count;
    uint64_t base = PWSP_ENDS_NONE;
    for (uint32_t i = 0; i < tournament->lane_count; i++) {
        base = pwsp_min_u64(base, ends->times[i]);
    }
    PTOWSP_ASSERT(base != PWSP_ENDS_NONE);  // a lane runs something
    tournament->base = base;
    for (uint32_t i = 0; i < tournament->lane_count; i++) {
        players[i] = ends->times[i] == PWSP_ENDS_NONE
                         ? PWSP_PLAYER_NONE
                         : pwsp_tournament_player(tournament, i, ends->times[i]);
    }
    pwsp_tournament_play(tournament);
}
