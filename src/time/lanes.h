// Time where each lane runs its tasks in the order of issue: in order, and dataflow by fifo.

#ifndef PWSP_LANES_H
#define PWSP_LANES_H

#include "../base/earliest.h"
#include "sim.h"

// -- the window -----------------------------------------------------------------------------------
//
// The tasks in flight, and the one that ends first.
//
// Tasks of one lane end in the order of their issue, so each lane's ends are a queue, and the
// earliest end of all is at one of the heads, which a tournament finds:
//
//      heads:   15        21      12        40
//      queues:  15 18 30  21 33   12 19 60  40
//
// A binary heap of all tasks in flight costs log2(window) unpredictable swaps for each task
// instead. The tournament's base moves up when the clock is far behind the earliest end.

typedef struct pwsp_flight {
    uint64_t end;
    uint64_t task;
} pwsp_flight;

// Tasks of one lane, in a ring of their ends, and one of the tasks if these are kept.
typedef struct pwsp_flight_queue {
    uint64_t *ring, *tasks;
    uint64_t second;    // the player behind the head's, or NONE
    uint32_t capacity;  // a power of two, or 0
    uint32_t head, count;
} pwsp_flight_queue;

typedef struct pwsp_window {
    pwsp_flight_queue *queues;   // by lane
    pwsp_tournament tournament;  // of their heads
    uint64_t count;              // tasks in flight
    bool has_tasks;              // else they are not kept
} pwsp_window;

// Makes room for lane_count lanes, all empty. False when memory is out.
PWSP_INTERNAL bool pwsp_window_init(pwsp_window *window, const pwsp_memory *memory,
                                    uint32_t lane_count);
PWSP_INTERNAL void pwsp_window_clear(pwsp_window *window, const pwsp_memory *memory,
                                     bool has_tasks);

// Doubles the ring of a lane. False when memory is out.
PWSP_INTERNAL bool pwsp_window_grow(pwsp_window *window, const pwsp_memory *memory, uint32_t lane);

// Makes all players again, with the earliest end for a base, and returns the winner. Something is in
// flight.
PWSP_INTERNAL uint64_t pwsp_window_rebase(pwsp_window *window);

// Replays the games of a lane with a new player, and returns the winner.
PWSP_FORCE_INLINE uint64_t pwsp_window_replay(pwsp_window *window, uint32_t lane, uint64_t player) {
    bool is_far;
    const uint64_t winner = pwsp_tournament_replay(&window->tournament, lane, player, &is_far);
    return PWSP_UNLIKELY(is_far) ? pwsp_window_rebase(window) : winner;
}

PWSP_INLINE uint64_t pwsp_window_first_end(const pwsp_window *window) {
    return pwsp_tournament_end(&window->tournament, pwsp_tournament_winner(&window->tournament));
}

// Adds a task to its lane's ring; *out_before is how many are before it. False when memory is out.
PWSP_FORCE_INLINE bool pwsp_window_append(pwsp_window *window, const pwsp_memory *memory,
                                          uint32_t lane, uint64_t end, uint32_t *out_before) {
    pwsp_flight_queue *queue = &window->queues[lane];
    const uint32_t before = queue->count;
    if (PWSP_UNLIKELY(before == queue->capacity) && !pwsp_window_grow(window, memory, lane)) {
        return false;
    }
    queue->ring[(queue->head + before) & (queue->capacity - 1)] = end;
    queue->count = before + 1;
    *out_before = before;
    return true;
}

// Adds a task that ends no earlier than the others of its lane; *winner is kept up to date, and the
// caller counts it. False when memory is out.
PWSP_FORCE_INLINE bool pwsp_window_push_after(pwsp_window *window, const pwsp_memory *memory,
                                              uint32_t lane, uint64_t end, uint64_t *winner) {
    uint32_t before;
    if (!pwsp_window_append(window, memory, lane, end, &before)) {
        return false;
    }
    if (before <= 1) {  // others are behind two that play, and so not before base
        const uint64_t player = pwsp_tournament_player(&window->tournament, lane, end);
        if (before == 1) {
            window->queues[lane].second = player;
        } else if (PWSP_UNLIKELY(end < window->tournament.base)) {
            *winner = pwsp_window_rebase(window);
        } else {
            *winner = pwsp_window_replay(window, lane, player);
        }
    }
    return true;
}

// Takes the first task of a lane, and returns the lane's next player.
PWSP_FORCE_INLINE uint64_t pwsp_window_take(pwsp_window *window, uint32_t lane) {
    pwsp_flight_queue *queue = &window->queues[lane];
    const uint64_t player = queue->second;
    const uint32_t mask = queue->capacity - 1, head = queue->head + 1, count = queue->count - 1;
    const uint64_t third =
        pwsp_tournament_player(&window->tournament, lane, queue->ring[(head + 1) & mask]);
    queue->count = count;
    queue->head = head & mask;
    queue->second = count > 1 ? third : PWSP_PLAYER_NONE;  // no branch: it would be a guess
    return player;
}

// Takes the winner, which the caller counts, and returns the next one.
PWSP_FORCE_INLINE uint64_t pwsp_window_pop_first(pwsp_window *window, uint64_t winner) {
    const uint32_t lane = pwsp_player_lane(winner);
    return pwsp_window_replay(window, lane, pwsp_window_take(window, lane));
}

PWSP_INLINE bool pwsp_window_push(pwsp_window *window, const pwsp_memory *memory, uint32_t lane,
                                  uint64_t end, uint64_t task) {
    uint64_t winner;
    if (!pwsp_window_push_after(window, memory, lane, end, &winner)) {
        return false;
    }
    window->count++;
    const pwsp_flight_queue *queue = &window->queues[lane];
    if (window->has_tasks) {
        queue->tasks[(queue->head + queue->count - 1) & (queue->capacity - 1)] = task;
    }
    return true;
}

// Takes the task that ends first; NO_INDEX if tasks are not kept. Requires that there is one.
PWSP_INLINE pwsp_flight pwsp_window_pop(pwsp_window *window, uint32_t *out_lane) {
    const uint64_t winner = pwsp_tournament_winner(&window->tournament);
    PTOWSP_ASSERT(window->count > 0 && winner != PWSP_PLAYER_NONE);
    *out_lane = pwsp_player_lane(winner);
    const pwsp_flight_queue *queue = &window->queues[*out_lane];
    pwsp_flight flight = {queue->ring[queue->head],
                          window->has_tasks ? queue->tasks[queue->head] : PTOWSP_NO_INDEX};
    pwsp_window_pop_first(window, winner);
    window->count--;
    return flight;
}

// Takes all tasks that end up to a time.
PWSP_INLINE void pwsp_window_leave(pwsp_window *window, uint64_t time) {
    uint32_t lane;
    while (pwsp_window_first_end(window) <= time) {
        pwsp_window_pop(window, &lane);
    }
}

// -- lanes ----------------------------------------------------------------------------------------

// Where a task that is issued starts.
typedef struct pwsp_lanes_place {
    pwsp_token ready;  // when its dependences are done
    uint64_t issue;    // its turn
    // One after the other: its dependences are done, its turn has come, its lanes are free, and tasks
    // start.
    uint64_t known, due, able, start;
    uint32_t lane;
} pwsp_lanes_place;

typedef struct pwsp_lanes {
    pwsp_sim *sim;
    pwsp_window window;
    pwsp_lanes_place held;  // of the task that is held
    bool is_held;
} pwsp_lanes;

PWSP_INTERNAL bool pwsp_lanes_init(pwsp_lanes *lanes, pwsp_sim *sim);

// Back to time 0; after pwsp_sim_begin.
PWSP_INTERNAL void pwsp_lanes_begin(pwsp_lanes *lanes);

// Issues a task; its end is then known. False with an error in sim.
PWSP_INTERNAL bool pwsp_lanes_task(pwsp_lanes *lanes, const pwsp_arrival *arrival);

// Issues a pipeline, which takes no lane and no place in the window. False with an error in sim.
PWSP_INTERNAL bool pwsp_lanes_pipeline(pwsp_lanes *lanes, const pwsp_pipeline_arrival *arrival);

// Tasks of one pool without anything but cycles, a dispatch key and the same number of tiles,
// and all children of the open scope. None takes a block.
#define PWSP_BATCH_MAX      512
#define PWSP_BATCH_TILE_MAX 256

typedef struct pwsp_batch {
    uint64_t cycles[PWSP_BATCH_MAX];
    uint64_t keys[PWSP_BATCH_MAX];
    pwsp_tile_at tiles[PWSP_BATCH_TILE_MAX];  // task by task
    uint32_t count;
    uint32_t pool;
    uint32_t tile_count;  // of a task; 0: time uses none
} pwsp_batch;

// The most tasks that a batch has room for.
PWSP_INLINE uint32_t pwsp_batch_room(uint32_t tile_count) {
    return tile_count ? PWSP_BATCH_TILE_MAX / tile_count : PWSP_BATCH_MAX;
}

// Does a batch have all that time needs? Not with records, edges, streams, timing, a
// start condition, control, or any window but stall.
PWSP_INTERNAL bool pwsp_lanes_is_plain(const pwsp_lanes *lanes);

// Does time use the tiles of tasks?
PWSP_INTERNAL bool pwsp_lanes_has_data(const pwsp_lanes *lanes);

// Issues count tasks of a batch; equal to issuing them one by one. False with an error in sim.
PWSP_INTERNAL bool pwsp_lanes_batch(pwsp_lanes *lanes, const pwsp_batch *batch, uint32_t count);

// A slot load of one element.
PWSP_INTERNAL bool pwsp_lanes_slot_load(pwsp_lanes *lanes, const pwsp_tile_at *tile);

#endif
