// Which of many lanes is the first to end what it runs, where each runs one task at a time: the
// tournament of window.h, over one end for each lane instead of a queue.
//
// A player is (end - base) << lane_bits | lane, so a game is one minimum and among equal ends the
// lowest lane wins. Ends too far from base play as the largest number; when such a player wins, or a
// task ends before base, base moves to the earliest end and all players are made anew.

#ifndef PWSP_ENDS_H
#define PWSP_ENDS_H

#include "../base/base.h"

typedef struct pwsp_ends {
    uint64_t *times;  // by lane; NONE: it runs nothing
    uint64_t *games;  // [1] is the winner; lane i plays at [leaf_count + i]
    uint64_t base;
    uint32_t lane_count;
    uint32_t leaf_count;  // a power of two
    uint32_t lane_bits;   // log2(leaf_count)
} pwsp_ends;

#define PWSP_ENDS_NONE UINT64_MAX  // an end, and a player

// Makes room for lane_count lanes, none of which runs anything. False when memory is out.
PWSP_INTERNAL bool pwsp_ends_init(pwsp_ends *ends, const pwsp_memory *memory, uint32_t lane_count);
PWSP_INTERNAL void pwsp_ends_clear(pwsp_ends *ends);
PWSP_INTERNAL void pwsp_ends_free(pwsp_ends *ends, const pwsp_memory *memory);
PWSP_INTERNAL size_t pwsp_ends_bytes(const pwsp_ends *ends);

// Moves base to the earliest end, of which there is one, and makes all players anew.
PWSP_INTERNAL void pwsp_ends_rebase(pwsp_ends *ends);

PWSP_FORCE_INLINE uint64_t pwsp_ends_far(const pwsp_ends *ends) {
    return (UINT64_MAX >> ends->lane_bits) - 1;
}

PWSP_FORCE_INLINE uint64_t pwsp_ends_player(const pwsp_ends *ends, uint32_t lane, uint64_t end) {
    return pwsp_min_u64(end - ends->base, pwsp_ends_far(ends)) << ends->lane_bits | lane;
}

PWSP_FORCE_INLINE void pwsp_ends_replay(pwsp_ends *ends, uint32_t lane, uint64_t player) {
    uint64_t *games = ends->games, best = player;
    uint32_t i = ends->leaf_count + lane;
    games[i] = best;
    while (i > 1) {
        best = pwsp_min_u64(games[i ^ 1], best);
        i >>= 1;
        games[i] = best;
    }
    if (PWSP_UNLIKELY(best >> ends->lane_bits == pwsp_ends_far(ends))) {
        pwsp_ends_rebase(ends);
    }
}

// A lane that runs nothing runs a task up to an end.
PWSP_FORCE_INLINE void pwsp_ends_add(pwsp_ends *ends, uint32_t lane, uint64_t end) {
    PTOWSP_ASSERT(ends->times[lane] == PWSP_ENDS_NONE && end != PWSP_ENDS_NONE);
    ends->times[lane] = end;
    if (PWSP_UNLIKELY(end < ends->base)) {
        pwsp_ends_rebase(ends);
    } else {
        pwsp_ends_replay(ends, lane, pwsp_ends_player(ends, lane, end));
    }
}

// The earliest end; NONE when no lane runs anything.
PWSP_FORCE_INLINE uint64_t pwsp_ends_first(const pwsp_ends *ends) {
    const uint64_t winner = ends->games[1];
    return winner == PWSP_ENDS_NONE ? PWSP_ENDS_NONE : (winner >> ends->lane_bits) + ends->base;
}

// The lane with the earliest end runs nothing any more. Requires that there is one.
PWSP_FORCE_INLINE uint32_t pwsp_ends_take(pwsp_ends *ends) {
    const uint32_t lane = (uint32_t)ends->games[1] & (ends->leaf_count - 1);
    PTOWSP_ASSERT(ends->games[1] != PWSP_ENDS_NONE);
    ends->times[lane] = PWSP_ENDS_NONE;
    pwsp_ends_replay(ends, lane, PWSP_ENDS_NONE);
    return lane;
}

#endif
