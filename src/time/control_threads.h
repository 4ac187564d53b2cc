// Control in event-driven time: AICPU threads are servers that dispatch ready tasks and complete tasks
// that have ended; see ptowsp_control and control_threads.c.

#ifndef PWSP_CONTROL_THREADS_H
#define PWSP_CONTROL_THREADS_H

#include "../engine/ready.h"
#include "sim.h"

struct pwsp_events;

typedef struct pwsp_control_threads {
    bool is_on;
    uint32_t count;      // threads; 0: nothing waits for one
    uint64_t idle;       // bits: threads without work. Without threads all bits
    pwsp_earliest ends;  // of their work
    uint32_t *jobs;      // by thread: the lane whose task it completes; LANE_NONE: it dispatches
    pwsp_ready_queue ended;  // lanes whose tasks have ended, in the order in which that is noticed
    pwsp_ready_links lanes;  // one word for each
    uint64_t ahead;          // from when a thread takes a task until that starts
    uint64_t submitted;      // when the task that is being submitted is; 0: none is
} pwsp_control_threads;

// False when memory is out.
PWSP_INTERNAL bool pwsp_control_init(pwsp_control_threads *control, const pwsp_sim *sim);
PWSP_INTERNAL void pwsp_control_begin(pwsp_control_threads *control);

// Is there a thread that can take a task?
PWSP_INLINE bool pwsp_control_is_idle(const pwsp_control_threads *control) {
    return control->idle != 0;
}

// When the work of a thread ends; UINT64_MAX without any.
PWSP_INLINE uint64_t pwsp_control_next(const pwsp_control_threads *control) {
    return control->count ? pwsp_earliest_time(&control->ends) : UINT64_MAX;
}

// A thread dispatches a task from now on. Requires one that is idle.
PWSP_INTERNAL void pwsp_control_dispatch(struct pwsp_events *events);

// The task of a lane has ended, which a thread could notice now.
PWSP_INLINE void pwsp_control_note_end(pwsp_control_threads *control, uint32_t lane) {
    pwsp_ready_append(&control->ended, control->lanes, lane);
}

// Work that ends now ends; idle threads take tasks that have ended.
PWSP_INTERNAL void pwsp_control_serve(struct pwsp_events *events);

// Simulates until the next task, for which the window has room, has been submitted. False with an
// error, or if it is held: it continues when called again.
PWSP_INTERNAL bool pwsp_control_submit(struct pwsp_events *events);

#endif
