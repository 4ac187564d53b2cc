// Memory of the tasks in flight: a ring for each lane, which doubles when it is full. So it follows
// the work and not the worst case.

#include "window.h"

#define PWSP_FLIGHT_MIN 16

// The first place used in a lane's ring: each a cache line further than the one before. Lanes often
// advance together, and rings are a power of two apart. Without the offset all their heads would
// compete for the same few sets of the cache.
static uint32_t pwsp_window_start(uint32_t lane, uint32_t capacity) {
    return capacity ? lane * 8 & (capacity - 1) : 0;
}

PWSP_INTERNAL void pwsp_window_clear(pwsp_window *window, const pwsp_memory *memory,
                                     bool has_tasks) {
    for (uint32_t i = 0; i < window->tournament.lane_count; i++) {
        pwsp_flight_queue *queue = &window->queues[i];
        if (has_tasks && !queue->tasks) {  // it has no room for tasks
            PWSP_FREE(memory, queue->ring, queue->capacity);
            memset(queue, 0, sizeof *queue);
        }
    }
    window->has_tasks = has_tasks;
    for (uint32_t i = 0; i < window->tournament.lane_count; i++) {
        window->queues[i].head = pwsp_window_start(i, window->queues[i].capacity);
        window->queues[i].count = 0;
        window->queues[i].second = PWSP_PLAYER_NONE;
    }
    pwsp_tournament_clear(&window->tournament);
    window->count = 0;
}

PWSP_INTERNAL bool pwsp_window_init(pwsp_window *window, const pwsp_memory *memory,
                                    uint32_t lane_count) {
    memset(window, 0, sizeof *window);
    if (!PWSP_ALLOC(memory, window->queues, lane_count) ||
        !pwsp_tournament_init(&window->tournament, memory, lane_count)) {
        return false;
    }
    pwsp_window_clear(window, memory, true);
    return true;
}

PWSP_INTERNAL bool pwsp_window_grow(pwsp_window *window, const pwsp_memory *memory, uint32_t lane) {
    PTOWSP_ASSERT(lane < window->tournament.lane_count);
    pwsp_flight_queue *queue = &window->queues[lane];
    PTOWSP_ASSERT(queue->count == queue->capacity);
    if (queue->capacity > UINT32_MAX / 4) {
        return false;
    }
    uint32_t capacity = queue->capacity ? queue->capacity * 2 : PWSP_FLIGHT_MIN;
    uint64_t *ring, *tasks = NULL;
    if (!PWSP_ALLOC(memory, ring, capacity) ||
        (window->has_tasks && !PWSP_ALLOC(memory, tasks, capacity))) {
        PWSP_FREE(memory, ring, capacity);
        return false;
    }
    memset(ring, 0xff,
           capacity * sizeof *ring);  // the end behind the last may be read, but is not used
    uint32_t start = pwsp_window_start(lane, capacity);
    for (uint32_t i = 0; i < queue->count; i++) {
        uint32_t from = (queue->head + i) & (queue->capacity - 1);
        uint32_t to = (start + i) & (capacity - 1);
        ring[to] = queue->ring[from];
        if (tasks) {
            tasks[to] = queue->tasks[from];
        }
    }
    PWSP_FREE(memory, queue->ring, queue->capacity);
    PWSP_FREE(memory, queue->tasks, queue->capacity);
    queue->ring = ring;
    queue->tasks = tasks;
    queue->capacity = capacity;
    queue->head = start;
    return true;
}

PWSP_INTERNAL uint64_t pwsp_window_rebase(pwsp_window *window) {
    pwsp_tournament *tournament = &window->tournament;
    uint64_t *players = tournament->games + tournament->leaf_count, base = UINT64_MAX;
    for (uint32_t i = 0; i < tournament->lane_count; i++) {
        const pwsp_flight_queue *queue = &window->queues[i];
        base = queue->count ? pwsp_min_u64(base, queue->ring[queue->head]) : base;
    }
    PTOWSP_ASSERT(base != UINT64_MAX);
    tournament->base = base;
    for (uint32_t i = 0; i < tournament->lane_count; i++) {
        pwsp_flight_queue *queue = &window->queues[i];
        const uint64_t *ring = queue->ring;
        const uint32_t head = queue->head, second = (head + 1) & (queue->capacity - 1);
        players[i] =
            queue->count ? pwsp_tournament_player(tournament, i, ring[head]) : PWSP_PLAYER_NONE;
        queue->second = queue->count > 1 ? pwsp_tournament_player(tournament, i, ring[second])
                                         : PWSP_PLAYER_NONE;
    }
    return pwsp_tournament_play(tournament);
}
