// The tournament; players behind the last never win.

#include "earliest.h"

PWSP_INTERNAL void pwsp_earliest_clear(pwsp_earliest *earliest, uint64_t time) {
    uint32_t leaf_count = earliest->leaf_count;
    for (uint32_t i = 0; i < leaf_count; i++) {
        earliest->times[leaf_count + i] = i < earliest->count ? time : UINT64_MAX;
        earliest->winners[leaf_count + i] = i;
    }
    for (uint32_t i = leaf_count - 1; i > 0; i--) {
        uint32_t child = 2 * i + (earliest->times[2 * i + 1] < earliest->times[2 * i]);
        earliest->times[i] = earliest->times[child];
        earliest->winners[i] = earliest->winners[child];
    }
}

PWSP_INTERNAL bool pwsp_earliest_init(pwsp_earliest *earliest, const pwsp_memory *memory,
                                      uint32_t count) {
    PTOWSP_ASSERT(0 < count && count <= UINT32_MAX / 4);
    earliest->count = count;
    earliest->leaf_count = 1;
    while (earliest->leaf_count < count) {
        earliest->leaf_count *= 2;
    }
    return PWSP_ALLOC(memory, earliest->times, 2 * (size_t)earliest->leaf_count) &&
           PWSP_ALLOC(memory, earliest->winners, 2 * (size_t)earliest->leaf_count);
}

PWSP_INTERNAL void pwsp_earliest_replay(pwsp_earliest *earliest, uint32_t i, uint64_t time) {
    uint64_t *times = earliest->times;
    uint32_t *winners = earliest->winners, winner = i;
    uint32_t node = earliest->leaf_count + i;
    while (node > 1) {
        uint64_t other = times[node ^ 1];
        uint32_t other_winner = winners[node ^ 1];
        bool is_other = other < time + (node & 1);  // equal: if this one is the right one
        time = is_other ? other : time;
        winner = is_other ? other_winner : winner;
        node /= 2;
        times[node] = time;
        winners[node] = winner;
    }
}
