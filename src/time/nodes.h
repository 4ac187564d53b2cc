// Shared by the rooms of event-driven time: nodes, which can be waited for, and the steps.

#ifndef PWSP_NODES_H
#define PWSP_NODES_H

#include "events.h"

PWSP_INLINE pwsp_ready_links pwsp_events_links(const pwsp_events *events) {
    const pwsp_ready_links links = {events->nodes, sizeof *events->nodes};
    return links;
}

PWSP_FREE_LIST(pwsp_events_nodes, pwsp_events_node, link.next)
PWSP_FREE_LIST(pwsp_events_waiters, pwsp_events_link, next)
PWSP_FREE_LIST(pwsp_events_pipelines, pwsp_events_pipeline_node, next_free)

// -- nodes ----------------------------------------------------------------------------------------

// A node that waits until all its dependences are known, with one reference; 0 when memory is out. An
// open join has another one, until it is done.
PWSP_INTERNAL uint32_t pwsp_events_node_new(pwsp_events *events, pwsp_events_kind kind);

// Drops a reference: a node that is done and has none is free. NONE is ignored.
PWSP_INTERNAL void pwsp_events_unref(pwsp_events *events, uint64_t node);

PWSP_INLINE uint64_t pwsp_events_cause(const pwsp_events *events, uint32_t id) {
    return events->has_details ? events->details[id].cause : PTOWSP_NO_INDEX;
}

PWSP_INLINE void pwsp_events_set_cause(pwsp_events *events, uint32_t id, uint64_t cause) {
    if (events->has_details) {
        events->details[id].cause = cause;
    }
}

// The earliest start of a task that does not wait for it.
PWSP_INLINE uint64_t pwsp_events_turn(const pwsp_events *events, uint32_t id) {
    return events->has_details ? events->details[id].turn : events->nodes[id].clock;
}

// A task begins to wait for its turn, which is its key meanwhile, or has waited.
PWSP_INLINE void pwsp_events_swap_turn(pwsp_events *events, uint32_t id) {
    const uint64_t turn = events->details[id].turn;
    events->details[id].turn = events->nodes[id].link.key;
    events->nodes[id].link.key = turn;
}

// Makes one node wait for another; no effect if that is done or NONE.
PWSP_INTERNAL void pwsp_events_wait(pwsp_events *events, uint32_t waiter, uint64_t other);

// One dependence less.
PWSP_INTERNAL void pwsp_events_arrive(pwsp_events *events, uint32_t id);

// A node is done: tells its waiters, and theirs in turn if they are joins.
PWSP_INTERNAL void pwsp_events_done(pwsp_events *events, uint32_t id);

// Where lanes run their tasks in the order of issue: a task waits until those before it have been taken; and
// a task has been taken.
PWSP_INTERNAL void pwsp_events_follow(pwsp_events *events, uint32_t id);
PWSP_INTERNAL void pwsp_events_call_followers(pwsp_events *events, uint32_t id);

// A join gets no further dependences.
PWSP_INTERNAL void pwsp_events_close(pwsp_events *events, uint64_t id);

// Has not all ended that a token stands for?
PWSP_INTERNAL bool pwsp_events_token_is_open(const void *user, const pwsp_token *token);

// Tokens as the map of regions handles them: the node is `task`.
PWSP_INTERNAL pwsp_token_ops pwsp_events_token_ops(pwsp_events *events);

// -- steps ----------------------------------------------------------------------------------------

// A task waits only for its lane now: into its queue.
PWSP_INTERNAL void pwsp_events_make_ready(pwsp_events *events, uint32_t id);

// In order: a lane is idle since a time, or PWSP_EARLIEST_NONE.
PWSP_INTERNAL void pwsp_events_note_idle(pwsp_events *events, uint32_t lane, uint64_t since);

// A lane's task has been completed: by its end, or with control by a thread.
PWSP_INTERNAL void pwsp_events_end_task(pwsp_events *events, uint32_t lane);

// Do tasks start already?
PWSP_INLINE bool pwsp_events_is_open(const pwsp_events *events) {
    return events->has_ended || pwsp_sim_is_open(events->sim);
}

// The lanes that a task takes, its own first; returns how many.
PWSP_INLINE uint32_t pwsp_events_lanes(const pwsp_events *events, uint32_t id, uint32_t lane,
                                       uint32_t lanes[PWSP_BLOCK_LANES]) {
    return pwsp_sim_lanes(events->sim, (ptowsp_unit)events->nodes[id].unit, lane, lanes);
}

// One step: lanes take tasks, then time moves to the next event, at most to `until`. *out_moved is
// whether anything happened. False with an error.
PWSP_INTERNAL bool pwsp_events_step(pwsp_events *events, uint64_t until, bool *out_moved);

#endif
