// Memory of tournaments, and all players made again.

#include "earliest.h"

PWSP_INTERNAL void pwsp_tournament_clear(pwsp_tournament *tournament) {
    const size_t bytes = sizeof *tournament->games * 2 * tournament->leaf_count;
    memset(tournament->games, 0xff, bytes);  // all NONE
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
    if (!PWSP_ALLOC(memory, tournament->games, 2 * (size_t)tournament->leaf_count)) {
        return false;
    }
    pwsp_tournament_clear(tournament);
    return true;
}

PWSP_INTERNAL bool pwsp_earliest_init(pwsp_earliest *earliest, const pwsp_memory *memory,
                                      uint32_t count) {
    earliest->times = NULL;
    if (!pwsp_tournament_init(&earliest->tournament, memory, count) ||
        !PWSP_ALLOC(memory, earliest->times, count)) {
        pwsp_earliest_free(earliest, memory);
        return false;
    }
    pwsp_earliest_clear(earliest, PWSP_EARLIEST_NONE);
    return true;
}

PWSP_INTERNAL void pwsp_earliest_free(pwsp_earliest *earliest, const pwsp_memory *memory) {
    PWSP_FREE(memory, earliest->times, earliest->tournament.lane_count);
    PWSP_FREE(memory, earliest->tournament.games, 2 * (size_t)earliest->tournament.leaf_count);
    memset(earliest, 0, sizeof *earliest);
}

PWSP_INTERNAL void pwsp_earliest_clear(pwsp_earliest *earliest, uint64_t time) {
    pwsp_tournament_clear(&earliest->tournament);
    for (uint32_t i = 0; i < earliest->tournament.lane_count; i++) {
        earliest->times[i] = time;
    }
    pwsp_earliest_rebase(earliest);
}

PWSP_INTERNAL PWSP_COLD void pwsp_earliest_rebase(pwsp_earliest *earliest) {
    pwsp_tournament *tournament = &earliest->tournament;
    uint64_t *players = tournament->games + tournament->leaf_count;
    uint64_t base = PWSP_EARLIEST_NONE;
    for (uint32_t i = 0; i < tournament->lane_count; i++) {
        base = pwsp_min_u64(base, earliest->times[i]);
    }
    tournament->base = base == PWSP_EARLIEST_NONE ? 0 : base;
    for (uint32_t i = 0; i < tournament->lane_count; i++) {
        players[i] = earliest->times[i] == PWSP_EARLIEST_NONE
                         ? PWSP_PLAYER_NONE
                         : pwsp_tournament_player(tournament, i, earliest->times[i]);
    }
    pwsp_tournament_play(tournament);
}
