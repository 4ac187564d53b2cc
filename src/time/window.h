// The tasks in flight: which of them ends first.
//
// Tasks of one lane end in the order in which they were issued, so each lane's ends are a queue, and
// the earliest end of all is that of one of the queues' heads. A tournament over the heads finds it:
//
//      winner:        (12, lane 2)
//                (15, lane 0)      (12, lane 2)           taking the winner replays the games on the
//      heads:   15        21      12        40            way up from its lane: log2(lanes) of them
//      queues:  15 18 30  21 33   12 19 60  40
//
// A binary heap of all tasks in flight costs log2(window) unpredictable swaps for each task instead;
// with 24 lanes and a window of 8192 this is about five times as fast.

#ifndef PWSP_WINDOW_H
#define PWSP_WINDOW_H

#include "../base/base.h"

typedef struct pwsp_flight {
    uint64_t end;
    uint64_t task;
} pwsp_flight;

// Tasks of one lane, in a ring.
typedef struct pwsp_flight_queue {
    pwsp_flight *ring;
    uint32_t capacity;  // a power of two, or 0
    uint32_t head, count;
} pwsp_flight_queue;

typedef struct pwsp_game {
    uint64_t end;
    uint64_t lane;
} pwsp_game;

typedef struct pwsp_window {
    pwsp_flight_queue *queues;  // by lane
    pwsp_game *games;           // [1] is the winner; lane i plays at [leaf_count + i]
    uint32_t lane_count;
    uint32_t leaf_count;  // a power of two
    uint64_t count;       // tasks in flight
} pwsp_window;

// Makes room for lane_count lanes, all empty. False when memory is out.
PWSP_INTERNAL bool pwsp_window_init(pwsp_window *window, const pwsp_memory *memory,
                                    uint32_t lane_count);
PWSP_INTERNAL void pwsp_window_clear(pwsp_window *window);
PWSP_INTERNAL void pwsp_window_free(pwsp_window *window, const pwsp_memory *memory);
PWSP_INTERNAL size_t pwsp_window_bytes(const pwsp_window *window);

// Doubles the ring of a lane. False when memory is out.
PWSP_INTERNAL bool pwsp_window_grow(pwsp_window *window, const pwsp_memory *memory, uint32_t lane);

// The earliest end; UINT64_MAX when nothing is in flight.
PWSP_INLINE uint64_t pwsp_window_first_end(const pwsp_window *window) {
    return window->games[1].end;
}

// Replays the games of a lane whose head is now `end`.
PWSP_FORCE_INLINE void pwsp_window_replay(pwsp_window *window, uint32_t lane, uint64_t end) {
    pwsp_game *games = window->games;
    pwsp_game best = {end, lane};
    uint32_t i = window->leaf_count + lane;
    games[i] = best;
    while (i > 1) {
        pwsp_game other = games[i ^ 1];
        bool is_other = other.end < best.end;
        best.end = is_other ? other.end : best.end;
        best.lane = is_other ? other.lane : best.lane;
        i >>= 1;
        games[i] = best;
    }
}

// Adds a task that ends no earlier than the others of its lane. False when memory is out.
PWSP_FORCE_INLINE bool pwsp_window_push(pwsp_window *window, const pwsp_memory *memory,
                                        uint32_t lane, uint64_t end, uint64_t task) {
    pwsp_flight_queue *queue = &window->queues[lane];
    if (queue->count == queue->capacity && !pwsp_window_grow(window, memory, lane)) {
        return false;
    }
    pwsp_flight *flight = &queue->ring[(queue->head + queue->count) & (queue->capacity - 1)];
    flight->end = end;
    flight->task = task;
    window->count++;
    if (queue->count++ == 0) {
        pwsp_window_replay(window, lane, end);
    }
    return true;
}

// Takes the task that ends first. Requires that there is one.
PWSP_FORCE_INLINE pwsp_flight pwsp_window_pop(pwsp_window *window) {
    uint32_t lane = (uint32_t)window->games[1].lane;
    pwsp_flight_queue *queue = &window->queues[lane];
    pwsp_flight flight = queue->ring[queue->head];
    queue->head = (queue->head + 1) & (queue->capacity - 1);
    window->count--;
    pwsp_window_replay(window, lane, --queue->count ? queue->ring[queue->head].end : UINT64_MAX);
    return flight;
}

#endif
