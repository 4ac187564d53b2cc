// Memory of the tasks in flight: a ring for each lane, which doubles when it is full, so that it
// follows the work and not the worst case.

#include "window.h"

#define PWSP_FLIGHT_MIN 16

PWSP_INTERNAL void pwsp_window_clear(pwsp_window *window) {
    for (uint32_t i = 0; i < window->lane_count; i++) {
        window->queues[i].head = 0;
        window->queues[i].count = 0;
    }
    for (uint32_t i = 0; i < 2 * window->leaf_count; i++) {
        window->games[i].end = UINT64_MAX;
        window->games[i].lane = i < window->leaf_count ? 0 : i - window->leaf_count;
    }
    window->count = 0;
}

PWSP_INTERNAL bool pwsp_window_init(pwsp_window *window, const pwsp_memory *memory,
                                    uint32_t lane_count) {
    memset(window, 0, sizeof *window);
    window->lane_count = lane_count;
    window->leaf_count = 2;
    while (window->leaf_count < lane_count) {
        window->leaf_count *= 2;
    }
    window->queues =
        (pwsp_flight_queue *)pwsp_memory_alloc(memory, lane_count * sizeof(pwsp_flight_queue));
    window->games =
        (pwsp_game *)pwsp_memory_alloc(memory, 2 * (size_t)window->leaf_count * sizeof(pwsp_game));
    if (!window->queues || !window->games) {
        pwsp_window_free(window, memory);
        return false;
    }
    pwsp_window_clear(window);
    return true;
}

PWSP_INTERNAL void pwsp_window_free(pwsp_window *window, const pwsp_memory *memory) {
    for (uint32_t i = 0; window->queues && i < window->lane_count; i++) {
        pwsp_memory_free(memory, window->queues[i].ring,
                         window->queues[i].capacity * sizeof(pwsp_flight));
    }
    pwsp_memory_free(memory, window->queues, window->lane_count * sizeof(pwsp_flight_queue));
    pwsp_memory_free(memory, window->games, 2 * (size_t)window->leaf_count * sizeof(pwsp_game));
    memset(window, 0, sizeof *window);
}

PWSP_INTERNAL size_t pwsp_window_bytes(const pwsp_window *window) {
    size_t bytes = window->lane_count * sizeof(pwsp_flight_queue) +
                   2 * (size_t)window->leaf_count * sizeof(pwsp_game);
    for (uint32_t i = 0; i < window->lane_count; i++) {
        bytes += window->queues[i].capacity * sizeof(pwsp_flight);
    }
    return bytes;
}

PWSP_INTERNAL bool pwsp_window_grow(pwsp_window *window, const pwsp_memory *memory, uint32_t lane) {
    pwsp_flight_queue *queue = &window->queues[lane];
    if (queue->capacity > UINT32_MAX / 2) {
        return false;
    }
    uint32_t capacity = queue->capacity ? queue->capacity * 2 : PWSP_FLIGHT_MIN;
    pwsp_flight *ring = (pwsp_flight *)memory->resize(memory->user, queue->ring,
                                                      queue->capacity * sizeof(pwsp_flight),
                                                      capacity * sizeof(pwsp_flight));
    if (!ring) {
        return false;
    }
    // What had wrapped around to the front goes behind the old end.
    uint32_t wrapped = queue->head + queue->count > queue->capacity
                           ? queue->head + queue->count - queue->capacity
                           : 0;
    memcpy(ring + queue->capacity, ring, wrapped * sizeof(pwsp_flight));
    queue->ring = ring;
    queue->capacity = capacity;
    return true;
}
