// Tasks on lanes in a window, the slow way: the ends of all tasks in flight in an array, of which the earliest is
// looked for each time.

#ifndef BATCH_REFERENCE_H
#define BATCH_REFERENCE_H

#include "support/fixture.h"

enum { SLOW_TASKS_MAX = 3000, SLOW_LANES_MAX = 70 };

typedef struct slow_lanes {
    uint32_t lane_count, window;  // window 0: none
    bool is_in_order;
    uint64_t clock, flight[SLOW_TASKS_MAX];
    uint32_t flight_count;
    // What comes of it.
    uint64_t task_count, makespan, ready, window_stall, lane_stall, in_flight_max;
    uint64_t busy[SLOW_LANES_MAX], ends[SLOW_LANES_MAX], counts[SLOW_LANES_MAX];
} slow_lanes;

static inline uint64_t slow_later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

// What has ended leaves; a full window waits for the first.
static inline void slow_make_room(slow_lanes *s) {
    for (bool is_full = s->window > 0; is_full;) {
        uint32_t left = 0;
        uint64_t first = UINT64_MAX;
        for (uint32_t k = 0; k < s->flight_count; k++) {
            if (s->flight[k] > s->clock) {
                first = s->flight[k] < first ? s->flight[k] : first;
                s->flight[left++] = s->flight[k];
            }
        }
        s->flight_count = left;
        is_full = left >= s->window;
        s->window_stall += is_full ? first - s->clock : 0;
        s->clock = is_full ? first : s->clock;
    }
}

// The next task, which is ready then, takes so many cycles on a lane: its end.
static inline uint64_t slow_place(slow_lanes *s, uint64_t ready, uint32_t lane, uint64_t cycles) {
    if (s->is_in_order && ready > s->clock) {
        s->ready += ready - s->clock;
        s->clock = ready;
    }
    slow_make_room(s);
    const uint64_t due = slow_later(s->clock, ready), start = slow_later(due, s->ends[lane]);
    const uint64_t end = start + cycles;
    s->ready += due - s->clock;
    s->lane_stall += start - due;
    s->busy[lane] += cycles;
    s->ends[lane] = end;
    s->counts[lane]++;
    s->makespan = slow_later(s->makespan, end);
    s->task_count++;
    if (s->window && end > s->clock) {
        s->flight[s->flight_count++] = end;
    }
    s->in_flight_max = slow_later(s->in_flight_max, s->flight_count);
    return end;
}

static inline void slow_check(const slow_lanes *s, const ptowsp_run *run) {
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    assert_int_equal(stats->task_count, s->task_count);
    assert_int_equal(stats->makespan_cycles, s->makespan);
    assert_int_equal(stats->in_flight_max, s->in_flight_max);
    assert_int_equal(stats->stall_cycles[PTOWSP_STALL_DEPENDENCY], s->ready);
    assert_int_equal(stats->stall_cycles[PTOWSP_STALL_WINDOW], s->window_stall);
    assert_int_equal(stats->stall_cycles[PTOWSP_STALL_LANE], s->lane_stall);
    for (uint32_t i = 0; i < s->lane_count; i++) {
        const ptowsp_lane_stats *lane = &ptowsp_run_lanes(run)[i];
        assert_int_equal(lane->busy_cycles, s->busy[i]);
        assert_int_equal(lane->end_cycles, s->ends[i]);
        assert_int_equal(lane->task_count, s->counts[i]);
    }
}

#endif
