// Lanes that run their tasks in the order of issue, in event-driven time: see lane_fifo.c.

#ifndef PWSP_LANE_FIFO_H
#define PWSP_LANE_FIFO_H

#include "../base/base.h"

struct pwsp_events;

// The nodes of a lane's tasks that have been issued and not taken, the first one at head.
typedef struct pwsp_lane_line {
    uint32_t *nodes;
    uint64_t capacity;  // a power of two, or 0
    uint64_t head, tail;
} pwsp_lane_line;

typedef struct pwsp_lane_fifo {
    pwsp_lane_line *lines;  // by lane; NULL: lanes choose among ready tasks
} pwsp_lane_fifo;

// A task has been issued to its lanes. False when memory is out.
PWSP_INTERNAL bool pwsp_lane_fifo_issue(struct pwsp_events *events, uint32_t id);

// Is a task that is ready the first of all its lanes? Otherwise it is held until it is.
PWSP_INTERNAL bool pwsp_lane_fifo_admits(struct pwsp_events *events, uint32_t id);

// Lanes have taken a task: those that are first now, and ready, go into their queues.
PWSP_INTERNAL void pwsp_lane_fifo_take(struct pwsp_events *events, uint32_t id);

PWSP_INTERNAL void pwsp_lane_fifo_begin(pwsp_lane_fifo *fifo, uint32_t lane_count);

#endif
