// Lanes in the order of issue.
//
// In order and by fifo a lane runs its tasks in the order of issue, ready or not. lanes.c needs no events
// for that, as ends follow from earlier tasks. With control they do not: threads complete tasks in the
// order in which these end. Nor do they where lanes share memory: tasks that begin later slow a task. So
// the same order is kept here: each lane has a line of the tasks that were
// issued to it, and a ready task goes into the lane's queue when it is the first of the line, of a
// task that takes a block in the lines of all three lanes:
//
//      line of a lane:   [4, waits] [7, ready: LATER] [9]      queue: empty until 4 is ready
//
// A lane's queue thus has one task at most.

#include "lane_fifo.h"

#include "nodes.h"

PWSP_INTERNAL void pwsp_lane_fifo_begin(pwsp_lane_fifo *fifo, uint32_t lane_count) {
    for (uint32_t i = 0; fifo->lines && i < lane_count; i++) {
        fifo->lines[i].head = fifo->lines[i].tail = 0;
    }
}

static uint32_t pwsp_lane_fifo_lanes(const pwsp_events *events, uint32_t id,
                                     uint32_t lanes[PWSP_BLOCK_LANES]) {
    const pwsp_events_node *node = &events->nodes[id];
    return pwsp_sim_lanes(events->sim, (ptowsp_unit)node->unit, node->lane, lanes);
}

// Makes room for one more; the nodes stay in order.
static bool pwsp_lane_line_grow(const pwsp_memory *memory, pwsp_lane_line *line) {
    const uint64_t capacity = line->capacity ? 2 * line->capacity : 16;
    uint32_t *nodes = NULL;
    if (!PWSP_ALLOC(memory, nodes, capacity)) {
        return false;
    }
    for (uint64_t i = line->head; i < line->tail; i++) {
        nodes[i & (capacity - 1)] = line->nodes[i & (line->capacity - 1)];
    }
    PWSP_FREE(memory, line->nodes, line->capacity);
    line->nodes = nodes;
    line->capacity = capacity;
    return true;
}

PWSP_INTERNAL bool pwsp_lane_fifo_issue(pwsp_events *events, uint32_t id) {
    uint32_t lanes[PWSP_BLOCK_LANES];
    const uint32_t count = events->fifo.lines ? pwsp_lane_fifo_lanes(events, id, lanes) : 0;
    for (uint32_t i = 0; i < count; i++) {
        pwsp_lane_line *line = &events->fifo.lines[lanes[i]];
        if (line->tail - line->head == line->capacity &&
            !pwsp_lane_line_grow(&events->sim->memory, line)) {
            return false;
        }
        line->nodes[line->tail++ & (line->capacity - 1)] = id;
    }
    return true;
}

PWSP_INTERNAL bool pwsp_lane_fifo_admits(pwsp_events *events, uint32_t id) {
    uint32_t lanes[PWSP_BLOCK_LANES];
    const uint32_t count = events->fifo.lines ? pwsp_lane_fifo_lanes(events, id, lanes) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const pwsp_lane_line *line = &events->fifo.lines[lanes[i]];
        PTOWSP_ASSERT(line->head < line->tail);
        if (line->nodes[line->head & (line->capacity - 1)] != id) {
            events->nodes[id].kind = PWSP_EVENTS_TASK_LATER;
            return false;
        }
    }
    events->nodes[id].kind = PWSP_EVENTS_TASK;
    return true;
}

PWSP_INTERNAL void pwsp_lane_fifo_take(pwsp_events *events, uint32_t id) {
    uint32_t lanes[PWSP_BLOCK_LANES], firsts[PWSP_BLOCK_LANES];
    const uint32_t count = events->fifo.lines ? pwsp_lane_fifo_lanes(events, id, lanes) : 0;
    for (uint32_t i = 0; i < count; i++) {
        pwsp_lane_line *line = &events->fifo.lines[lanes[i]];
        PTOWSP_ASSERT(line->nodes[line->head & (line->capacity - 1)] == id);
        line->head++;
        firsts[i] = line->head < line->tail ? line->nodes[line->head & (line->capacity - 1)] : 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (firsts[i] && events->nodes[firsts[i]].kind == PWSP_EVENTS_TASK_LATER) {
            pwsp_events_make_ready(events, firsts[i]);
        }
    }
}
