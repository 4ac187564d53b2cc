// Simulated time, behind one front. In order, a task's times follow from earlier tasks;
// event-driven, lanes choose among ready tasks, share memory or wait for control. The schedule selects one.

#ifndef PWSP_TIMELINE_H
#define PWSP_TIMELINE_H

#include "../base/block_list.h"
#include "events.h"
#include "lanes.h"

typedef struct pwsp_timeline {
    pwsp_blocks blocks;  // all memory of the parts
    pwsp_sim sim;        // shared by both: the error, statistics and records are read here
    bool is_events;
    pwsp_lanes lanes;
    pwsp_events events;
} pwsp_timeline;

// False when memory is out; pwsp_timeline_free must still be called. The timeline must not be
// moved, and timed must live as long.
PWSP_INTERNAL bool pwsp_timeline_init(pwsp_timeline *time, const pwsp_memory *memory,
                                      const pwsp_timed *timed);
PWSP_INTERNAL void pwsp_timeline_free(pwsp_timeline *time);
PWSP_INTERNAL size_t pwsp_timeline_bytes(const pwsp_timeline *time);

// Does pwsp_timeline_begin need the number of tasks?
PWSP_INTERNAL bool pwsp_timeline_needs_count(const pwsp_timeline *time);

// Forgets everything, and learns which tensors share memory in the current bindings.
PWSP_INTERNAL void pwsp_timeline_bind(pwsp_timeline *time, const pwsp_bound_tensor *bound);

// After pwsp_sim_begin and pwsp_timeline_bind. With records the recorder has been set. task_count matters if it is needed: the number of tasks, or a number that is
// enough for the threshold; UINT64_MAX: not known. False with an error in sim, as for all following
// calls.
PWSP_INTERNAL bool pwsp_timeline_begin(pwsp_timeline *time, bool has_records, uint64_t task_count);
PWSP_INTERNAL bool pwsp_timeline_mark(pwsp_timeline *time, const pwsp_mark *mark);

// A slot load of one element waits for its writer.
PWSP_INTERNAL bool pwsp_timeline_slot_load(pwsp_timeline *time, const pwsp_tile_at *tile);

// A pipeline takes no lane and no place in the window. Its tasks have been counted.
PWSP_INTERNAL bool pwsp_timeline_pipeline(pwsp_timeline *time,
                                          const pwsp_pipeline_arrival *arrival);

PWSP_INLINE bool pwsp_timeline_task(pwsp_timeline *time, const pwsp_arrival *arrival) {
    return time->is_events ? pwsp_events_task(&time->events, arrival)
                           : pwsp_lanes_task(&time->lanes, arrival);
}

// All has been issued: simulates to the end. pwsp_sim_end completes the statistics separately,
// after errors, too.
PWSP_INTERNAL bool pwsp_timeline_end(pwsp_timeline *time);

// Tasks that can be issued in batches: see lanes.h.
PWSP_INLINE bool pwsp_timeline_is_plain(const pwsp_timeline *time) {
    return !time->is_events && pwsp_lanes_is_plain(&time->lanes);
}

PWSP_INLINE bool pwsp_timeline_has_data(const pwsp_timeline *time) {
    return pwsp_lanes_has_data(&time->lanes);
}

PWSP_INLINE bool pwsp_timeline_batch(pwsp_timeline *time, const pwsp_batch *batch, uint32_t count) {
    return pwsp_lanes_batch(&time->lanes, batch, count);
}

#endif
