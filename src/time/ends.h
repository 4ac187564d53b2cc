// Which of many lanes is the first to end what it runs, where each runs one task at a time.

#ifndef PWSP_ENDS_H
#define PWSP_ENDS_H

#include "tournament.h"

typedef struct pwsp_ends {
    uint64_t *times;  // by lane; NONE: it runs nothing
    pwsp_tournament tournament;
} pwsp_ends;

#define PWSP_ENDS_NONE UINT64_MAX

// Makes room for lane_count lanes, none of which runs anything. False when memory is out.
PWSP_INTERNAL bool pwsp_ends_init(pwsp_ends *ends, const pwsp_memory *memory, uint32_t lane_count);
PWSP_INTERNAL void pwsp_ends_clear(pwsp_ends *ends);

// Moves base to the earliest end, of which there is one, and makes all players anew.
PWSP_INTERNAL void pwsp_ends_rebase(pwsp_ends *ends);

PWSP_FORCE_INLINE void pwsp_ends_replay(pwsp_ends *ends, uint32_t lane, uint64_t player) {
    bool is_far;
    pwsp_tournament_replay(&ends->tournament, lane, player, &is_far);
    if (PWSP_UNLIKELY(is_far)) {
        pwsp_ends_rebase(ends);
    }
}

// A lane that runs nothing runs a task up to an end.
PWSP_FORCE_INLINE void pwsp_ends_add(pwsp_ends *ends, uint32_t lane, uint64_t end) {
    PTOWSP_ASSERT(ends->times[lane] == PWSP_ENDS_NONE && end != PWSP_ENDS_NONE);
    ends->times[lane] = end;
    if (PWSP_UNLIKELY(end < ends->tournament.base)) {
        pwsp_ends_rebase(ends);
    } else {
        pwsp_ends_replay(ends, lane, pwsp_tournament_player(&ends->tournament, lane, end));
    }
}

// The earliest end; NONE when no lane runs anything.
PWSP_FORCE_INLINE uint64_t pwsp_ends_first(const pwsp_ends *ends) {
    return pwsp_tournament_end(&ends->tournament, pwsp_tournament_winner(&ends->tournament));
}

// The lane with the earliest end runs nothing any more. Requires that there is one.
PWSP_FORCE_INLINE uint32_t pwsp_ends_take(pwsp_ends *ends) {
    const uint64_t winner = pwsp_tournament_winner(&ends->tournament);
    const uint32_t lane = pwsp_player_lane(winner);
    PTOWSP_ASSERT(winner != PWSP_PLAYER_NONE);
    ends->times[lane] = PWSP_ENDS_NONE;
    pwsp_ends_replay(ends, lane, PWSP_PLAYER_NONE);
    return lane;
}

#endif
