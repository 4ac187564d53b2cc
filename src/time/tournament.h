// Which of many lanes ends first, by a tournament over one end of each:
//
//      winner:        (12, lane 2)
//                (15, lane 0)      (12, lane 2)           a lane's new end replays the games on the
//      ends:    15        21      12        40            way up from it, and no others
//
// A player is one number, so that a game is one minimum, and of equal ends the lowest lane's wins:
// (end - base) << lane_bits | lane. Ends too far from base for that all play as the largest number but
// NONE, which is the player of a lane without an end. When such a player wins, the owner of the ends
// moves base up to the earliest one and makes all players anew. So it does for an end before base.

#ifndef PWSP_TOURNAMENT_H
#define PWSP_TOURNAMENT_H

#include "../base/base.h"

typedef struct pwsp_tournament {
    uint64_t *games;  // [1] is the winner; lane i plays at [2^lane_bits + i]
    uint64_t base;
    uint32_t lane_count;
    uint32_t lane_bits;
} pwsp_tournament;

#define PWSP_PLAYER_NONE UINT64_MAX

// Makes room for lane_count lanes, all without ends. False when memory is out.
PWSP_INTERNAL bool pwsp_tournament_init(pwsp_tournament *tournament, const pwsp_memory *memory,
                                        uint32_t lane_count);
PWSP_INTERNAL void pwsp_tournament_clear(pwsp_tournament *tournament);
PWSP_INTERNAL void pwsp_tournament_free(pwsp_tournament *tournament, const pwsp_memory *memory);
PWSP_INTERNAL size_t pwsp_tournament_bytes(const pwsp_tournament *tournament);

// Plays all games of 2^bits players that stand at their places, and returns the winner.
PWSP_INLINE uint64_t pwsp_games_play(uint64_t *games, uint32_t bits) {
    for (uint32_t i = (1u << bits) - 1; i > 0; i--) {
        games[i] = pwsp_min_u64(games[2 * i], games[2 * i + 1]);
    }
    return games[1];
}

// Replays the games of a lane with a new player, and returns the winner. The usual games stand one behind
// the other: with a constant number of bits nothing else is left.
PWSP_FORCE_INLINE uint64_t pwsp_games_replay(uint64_t *games, uint32_t bits, uint32_t lane,
                                             uint64_t player) {
    uint32_t i = (1u << bits) + lane;
#define PWSP_GAME                                                                                  \
    games[i] = player;                                                                             \
    player = pwsp_min_u64(games[i ^ 1], player);                                                   \
    i >>= 1;
    for (; PWSP_UNLIKELY(bits > 6); bits--) {
        PWSP_GAME
    }
    switch (bits) {
    case 6: PWSP_GAME __attribute__((fallthrough));
    case 5: PWSP_GAME __attribute__((fallthrough));
    case 4: PWSP_GAME __attribute__((fallthrough));
    case 3: PWSP_GAME __attribute__((fallthrough));
    case 2: PWSP_GAME __attribute__((fallthrough));
    default: PWSP_GAME
    }
#undef PWSP_GAME
    games[1] = player;
    return player;
}

PWSP_FORCE_INLINE uint64_t pwsp_tournament_winner(const pwsp_tournament *tournament) {
    return tournament->games[1];
}

PWSP_FORCE_INLINE uint64_t pwsp_tournament_far(const pwsp_tournament *tournament) {
    return (UINT64_MAX >> tournament->lane_bits) - 1;
}

PWSP_FORCE_INLINE uint64_t pwsp_tournament_player(const pwsp_tournament *tournament, uint32_t lane,
                                                  uint64_t end) {
    const uint64_t far = pwsp_tournament_far(tournament);
    return pwsp_min_u64(end - tournament->base, far) << tournament->lane_bits | lane;
}

PWSP_FORCE_INLINE uint32_t pwsp_tournament_lane(const pwsp_tournament *tournament,
                                                uint64_t player) {
    return (uint32_t)player & ((1u << tournament->lane_bits) - 1);
}

// The end of a player that is not far; UINT64_MAX of NONE.
PWSP_FORCE_INLINE uint64_t pwsp_tournament_end(const pwsp_tournament *tournament, uint64_t player) {
    return player == PWSP_PLAYER_NONE ? UINT64_MAX
                                      : (player >> tournament->lane_bits) + tournament->base;
}

// Replays the games of a lane, and returns the winner. *out_is_far: it is too far, and base has to move.
PWSP_FORCE_INLINE uint64_t pwsp_tournament_replay(pwsp_tournament *tournament, uint32_t lane,
                                                  uint64_t player, bool *out_is_far) {
    const uint64_t winner =
        pwsp_games_replay(tournament->games, tournament->lane_bits, lane, player);
    *out_is_far = winner >> tournament->lane_bits == pwsp_tournament_far(tournament);
    return winner;
}

#endif
