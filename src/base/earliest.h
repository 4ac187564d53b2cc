// Which of many is first: the lane that is free, the task that ends, the process that moves. A tournament
// over one time of each:
//
//      winner:        (12, lane 2)
//                (15, lane 0)      (12, lane 2)           a new time replays the games on the way up
//      times:   15        21      12        40            from it, and no others
//
// A player is one number, so that a game is one minimum, and of equal times the lowest lane's wins:
// (time - base) << 20 | lane. Times too far from base for that all play as the largest number but NONE,
// which is the player of a lane without a time. When such a player wins, base moves up to the earliest
// time, and all players are made again. The same happens for a time before base.
//
// pwsp_earliest keeps the times. pwsp_tournament has the games alone, for an owner that keeps the
// times in a different form (time/lanes.h).

#ifndef PWSP_EARLIEST_H
#define PWSP_EARLIEST_H

#include "base.h"

typedef struct pwsp_tournament {
    uint64_t *games;  // [1] is the winner; lane i plays at [leaf_count + i]
    uint64_t base;
    uint32_t lane_count;
    uint32_t leaf_count;  // a power of two, at least 2
} pwsp_tournament;

#define PWSP_PLAYER_NONE  UINT64_MAX
#define PWSP_PLAYER_SHIFT 20u  // lanes are at most 2^20
#define PWSP_PLAYER_FAR   ((PWSP_PLAYER_NONE >> PWSP_PLAYER_SHIFT) - 1)

// Makes room for lane_count lanes, all without times. False when memory is out.
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
                                                  uint64_t time) {
    const uint64_t far = PWSP_PLAYER_FAR;
    return pwsp_min_u64(time - tournament->base, far) << PWSP_PLAYER_SHIFT | lane;
}

PWSP_FORCE_INLINE uint32_t pwsp_player_lane(uint64_t player) {
    return (uint32_t)player & ((1u << PWSP_PLAYER_SHIFT) - 1);
}

// The time of a player that is not far; UINT64_MAX of NONE.
PWSP_FORCE_INLINE uint64_t pwsp_tournament_end(const pwsp_tournament *tournament, uint64_t player) {
    return player == PWSP_PLAYER_NONE ? UINT64_MAX
                                      : (player >> PWSP_PLAYER_SHIFT) + tournament->base;
}

// Replays the games of a lane with a new player, and returns the winner. *out_is_far: it is too far, and
// base has to move. The usual games are unrolled.
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

// -- with times -----------------------------------------------------------------------------------

#define PWSP_EARLIEST_NONE UINT64_MAX  // a lane that has no time is not first

typedef struct pwsp_earliest {
    uint64_t *times;  // by lane
    pwsp_tournament tournament;
} pwsp_earliest;

// Makes room for count lanes without a time. False when memory is out; it has no lanes then.
// Clear gives all lanes one time, or NONE.
PWSP_INTERNAL bool pwsp_earliest_init(pwsp_earliest *earliest, const pwsp_memory *memory,
                                      uint32_t count);
PWSP_INTERNAL void pwsp_earliest_free(pwsp_earliest *earliest, const pwsp_memory *memory);
PWSP_INTERNAL void pwsp_earliest_clear(pwsp_earliest *earliest, uint64_t time);

// Moves base to the earliest time, and makes all players again.
PWSP_INTERNAL void pwsp_earliest_rebase(pwsp_earliest *earliest);

// A lane has a new time, or NONE.
PWSP_FORCE_INLINE void pwsp_earliest_set(pwsp_earliest *earliest, uint32_t lane, uint64_t time) {
    const pwsp_tournament *tournament = &earliest->tournament;
    const bool is_none = time == PWSP_EARLIEST_NONE;
    bool is_far = time < tournament->base;
    PTOWSP_ASSERT(lane < tournament->lane_count);
    earliest->times[lane] = time;
    if (PWSP_LIKELY(!is_far)) {
        pwsp_tournament_replay(
            tournament, lane,
            is_none ? PWSP_PLAYER_NONE : pwsp_tournament_player(tournament, lane, time), &is_far);
    }
    if (PWSP_UNLIKELY(is_far)) {
        pwsp_earliest_rebase(earliest);
    }
}

// The earliest time; NONE when no lane has one.
PWSP_FORCE_INLINE uint64_t pwsp_earliest_time(const pwsp_earliest *earliest) {
    return pwsp_tournament_end(&earliest->tournament,
                               pwsp_tournament_winner(&earliest->tournament));
}

// The lowest lane with that time; without any, a number that is not a lane's.
PWSP_FORCE_INLINE uint32_t pwsp_earliest_lane(const pwsp_earliest *earliest) {
    return pwsp_player_lane(pwsp_tournament_winner(&earliest->tournament));
}

#endif
