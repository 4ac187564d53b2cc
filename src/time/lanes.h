// Time where each lane runs its tasks in the order of issue: in order, and dataflow by fifo.

#ifndef PWSP_LANES_H
#define PWSP_LANES_H

#include "sim.h"
#include "window.h"

// Where a task that is issued starts.
typedef struct pwsp_lanes_place {
    pwsp_token ready;  // when its dependences are done
    uint64_t issue;    // its turn
    uint64_t start;
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

// The next task would end too late: the error. Returns false.
PWSP_INTERNAL bool pwsp_lanes_fail_time(pwsp_sim *sim);

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
