// Memory of a tournament.

#include "tournament.h"

static size_t pwsp_games_bytes(const pwsp_tournament *tournament) {
    return sizeof(uint64_t) * 2 * tournament->leaf_count;
}

PWSP_INTERNAL void pwsp_tournament_clear(pwsp_tournament *tournament) {
    memset(tournament->games, 0xff, pwsp_games_bytes(tournament));  // all NONE
    tournament->base = 0;
}

PWSP_INTERNAL bool pwsp_tournament_init(pwsp_tournament *tournament, const pwsp_memory *memory,
                                        uint32_t lane_count) {
    PTOWSP_ASSERT(lane_count <= 1u << PWSP_PLAYER_SHIFT);
    memset(tournament, 0, sizeof *tournament);
    tournament->lane_count = lane_count;
    tournament->leaf_count = 2;
    while (tournament->leaf_count < lane_count) {
        tournament->leaf_count *= 2;
    }
    tournament->games = (uint64_t *)pwsp_memory_alloc(memory, pwsp_games_bytes(tournament));
    if (tournament->games) {
        pwsp_tournament_clear(tournament);
    }
    return tournament->games != NULL;
}
