// Which of many lanes ends first, by a tournament over one end of each:
//
//      winner:        (12, lane 2)
//                (15, lane 0)      (12, lane 2)           a lane's new end replays the games on the
//      ends:    15        21      12        40            way up from it, and no others
//
// A player is one number, so that a game is one minimum, and of equal ends the lowest lane's wins:
// (end - base) << 16 | lane. Ends too far from base for that all play as the largest number but NONE,
// which is the player of a lane without an end. When such a player wins, the owner of the ends moves
// base up to the earliest one and makes all players again. So it does for an end before base.

#ifndef PWSP_TOURNAMENT_H
#define PWSP_TOURNAMENT_H

#include "../base/base.h"

typedef struct pwsp_tournament {
    uint64_t *games;  // [1] is the winner; lane i plays at [leaf_count + i]
    uint64_t base;
    uint32_t lane_count;
    uint32_t leaf_count;  // a power of two, at least 2
} pwsp_tournament;

#define PWSP_PLAYER_NONE  UINT64_MAX
#define PWSP_PLAYER_SHIFT 16u  // lanes are at most 2^16
#define PWSP_PLAYER_FAR   ((PWSP_PLAYER_NONE >> PWSP_PLAYER_SHIFT) - 1)

// Makes room for lane_count lanes, all without ends. False when memory is out.
PWSP_INTERNAL bool pwsp_tournament_init(pwsp_tournament *tournament, const pwsp_memory *memory,
                                        uint32_t lane_count);
PWSP_INTERNAL void pwsp_tournament_clear(pwsp_tournament *tournament);

// Plays all games of players that stand at their places, and returns the winner.
PWSP_INLINE uint64_t pwsp_tournament_play(const pwsp_tournament *tournament) {
    uint64_t *games = tournament->games;
    for (uint32_t i = tournament->leaf_count - 1; i > 0; i--) {
        games[i] = pwsp_min_u64(games[2 * i], games[2 * i + 1]);
    }
    return games[1];
}

PWSP_FORCE_INLINE uint64_t pwsp_tournament_winner(const pwsp_tournament *tournament) {
    return tournament->games[1];
}

PWSP_FORCE_INLINE uint64_t pwsp_tournament_player(const pwsp_tournament *tournament, uint32_t lane,
                                                  uint64_t end) {
    const uint64_t far = PWSP_PLAYER_FAR;
    return pwsp_min_u64(end - tournament->base, far) << PWSP_PLAYER_SHIFT | lane;
}

PWSP_FORCE_INLINE uint32_t pwsp_player_lane(uint64_t player) {
    return (uint32_t)player & ((1u << PWSP_PLAYER_SHIFT) - 1);
}

// The end of a player that is not far; UINT64_MAX of NONE.
PWSP_FORCE_INLINE uint64_t pwsp_tournament_end(const pwsp_tournament *tournament, uint64_t player) {
    return player == PWSP_PLAYER_NONE ? UINT64_MAX
                                      : (player >> PWSP_PLAYER_SHIFT) + tournament->base;
}

// Replays the games of a lane with a new player, and returns the winner. *out_is_far: it is too far, and
// base has to move. The usual games stand one behind the other.
PWSP_FORCE_INLINE uint64_t pwsp_tournament_replay(const pwsp_tournament *tournament, uint32_t lane,
                                                  uint64_t player, bool *out_is_far) {
    uint64_t *games = tournament->games, i = tournament->leaf_count + (uint64_t)lane;
    uint32_t bits = (uint32_t)__builtin_ctz(tournament->leaf_count);
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
    *out_is_far =
        PWSP_UNLIKELY(player >= PWSP_PLAYER_FAR << PWSP_PLAYER_SHIFT) && player != PWSP_PLAYER_NONE;
    return player;
}

#endif
