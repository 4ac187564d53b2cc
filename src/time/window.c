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

static size_t pwsp_window_ring_bytes(const pwsp_flight_queue *queue) {
    return (size_t)queue->capacity * sizeof(uint64_t);
}

static void pwsp_window_free_rings(pwsp_flight_queue *queue, const pwsp_memory *memory) {
    pwsp_memory_free(memory, queue->ring, pwsp_window_ring_bytes(queue));
    pwsp_memory_free(memory, queue->tasks, queue->tasks ? pwsp_window_ring_bytes(queue) : 0);
    memset(queue, 0, sizeof *queue);
}

PWSP_INTERNAL void pwsp_window_clear(pwsp_window *window, const pwsp_memory *memory,
                                     bool has_tasks) {
    for (uint32_t i = 0; i < window->tournament.lane_count; i++) {
        if (has_tasks && !window->queues[i].tasks) {
            pwsp_window_free_rings(&window->queues[i], memory);  // it has no room for tasks
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
    PWSP_ALLOC(memory, window->queues, lane_count);
    if (window->queues) {
        memset(window->queues, 0, lane_count * sizeof(pwsp_flight_queue));
    }
    if (!pwsp_tournament_init(&window->tournament, memory, lane_count) || !window->queues) {
        pwsp_window_free(window, memory);
        return false;
    }
    pwsp_window_clear(window, memory, true);
    return true;
}

PWSP_INTERNAL void pwsp_window_free(pwsp_window *window, const pwsp_memory *memory) {
    const uint32_t lane_count = window->tournament.lane_count;
    for (uint32_t i = 0; window->queues && i < lane_count; i++) {
        pwsp_window_free_rings(&window->queues[i], memory);
    }
    PWSP_FREE(memory, window->queues, lane_count);
    pwsp_tournament_free(&window->tournament, memory);
    memset(window, 0, sizeof *window);
}

PWSP_INTERNAL size_t pwsp_window_bytes(const pwsp_window *window) {
    size_t bytes = window->tournament.lane_count * sizeof(pwsp_flight_queue) +
                   pwsp_tournament_bytes(&window->tournament);
    for (uint32_t i = 0; i < window->tournament.lane_count; i++) {
        const pwsp_flight_queue *queue = &window->queues[i];
        bytes += (queue->tasks ? 2 : 1) * pwsp_window_ring_bytes(queue);
    }
    return bytes;
}

PWSP_INTERNAL bool pwsp_window_grow(pwsp_window *window, const pwsp_memory *memory, uint32_t lane) {
    PTOWSP_ASSERT(lane < window->tournament.lane_count);
    pwsp_flight_queue *queue = &window->queues[lane];
    PTOWSP_ASSERT(queue->count == queue->capacity);
    if (queue->capacity > UINT32_MAX / 4) {
        return false;
    }
    uint32_t capacity = queue->capacity ? queue->capacity * 2 : PWSP_FLIGHT_MIN;
    const size_t bytes = (size_t)capacity * sizeof(uint64_t);
    uint64_t *ring = (uint64_t *)pwsp_memory_alloc(memory, bytes), *tasks = NULL;
    if (ring && window->has_tasks) {
        tasks = (uint64_t *)pwsp_memory_alloc(memory, bytes);
    }
    if (!ring || (window->has_tasks && !tasks)) {
        pwsp_memory_free(memory, ring, bytes);
        return false;
    }
    memset(ring, 0xff, bytes);  // the end behind the last may be read, but is not used
    uint32_t start = pwsp_window_start(lane, capacity);
    for (uint32_t i = 0; i < queue->count; i++) {
        uint32_t from = (queue->head + i) & (queue->capacity - 1);
        uint32_t to = (start + i) & (capacity - 1);
        ring[to] = queue->ring[from];
        if (tasks) {
            tasks[to] = queue->tasks[from];
        }
    }
    pwsp_memory_free(memory, queue->ring, pwsp_window_ring_bytes(queue));
    pwsp_memory_free(memory, queue->tasks, queue->tasks ? pwsp_window_ring_bytes(queue) : 0);
    queue->ring = ring;
    queue->tasks = tasks;
    queue->capacity = capacity;
    queue->head = start;
    return true;
}

PWSP_INTERNAL uint64_t pwsp_window_rebuild(pwsp_window *window, uint64_t base) {
    pwsp_tournament *tournament = &window->tournament;
    uint64_t *players = tournament->games + tournament->leaf_count;
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

PWSP_INTERNAL uint64_t pwsp_window_rebase(pwsp_window *window) {
    uint64_t base = UINT64_MAX;
    for (uint32_t i = 0; i < window->tournament.lane_count; i++) {
        const pwsp_flight_queue *queue = &window->queues[i];
        if (queue->count) {
            base = pwsp_min_u64(base, queue->ring[queue->head]);
        }
    }
    PTOWSP_ASSERT(base != UINT64_MAX);  // something is in flight
    return pwsp_window_rebuild(window, base);
}
