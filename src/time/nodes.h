// Nodes, which can be waited for, and the queues of ready tasks.

#ifndef PWSP_NODES_H
#define PWSP_NODES_H

#include "events.h"

PWSP_INLINE uint64_t pwsp_events_entry_key(const pwsp_events_entry *entry) {
    return (uint64_t)entry->key_high << 32 | entry->key_low;
}

// The task that a node's time comes from; unused without records.
PWSP_INLINE uint64_t pwsp_events_cause(const pwsp_events *events, uint32_t id) {
    return events->sim->has_records ? events->causes[id] : PTOWSP_NO_INDEX;
}

PWSP_INLINE void pwsp_events_set_cause(pwsp_events *events, uint32_t id, uint64_t cause) {
    if (events->sim->has_records) {
        events->causes[id] = cause;
    }
}

// The earliest start of a task.
PWSP_INLINE uint64_t pwsp_events_turn(const pwsp_events *events, uint32_t id) {
    return events->sim->schedule->timing == PTOWSP_TIMING_INTERLEAVED ? events->turns_at[id]
                                                                      : events->nodes[id].clock;
}

// Does an entry come before another?
PWSP_INLINE bool pwsp_events_entry_is_less(const pwsp_events *events, const pwsp_events_entry *a,
                                           const pwsp_events_entry *b) {
    uint64_t a_key = pwsp_events_entry_key(a), b_key = pwsp_events_entry_key(b);
    return a_key < b_key ||
           (a_key == b_key && events->nodes[a->node].index < events->nodes[b->node].index);
}

// Entry i of a queue's run.
PWSP_INLINE pwsp_events_entry *pwsp_events_run_at(const pwsp_events_queue *queue, uint64_t i) {
    return &queue->run[(queue->run_head + i) & (queue->run_capacity - 1)];
}

// The least entry of a queue that is not empty.
PWSP_INLINE const pwsp_events_entry *pwsp_events_queue_first(const pwsp_events *events,
                                                             const pwsp_events_queue *queue) {
    PTOWSP_ASSERT(queue->count > 0);
    if (queue->run_count == 0) {
        return &queue->heap[0];
    }
    const pwsp_events_entry *run = pwsp_events_run_at(queue, 0);
    bool is_of_run =
        queue->heap_count == 0 || pwsp_events_entry_is_less(events, run, &queue->heap[0]);
    return is_of_run ? run : &queue->heap[0];
}

// A lane's queue has changed; others steal by its first task.
PWSP_INLINE void pwsp_events_note_change(pwsp_events *events, uint32_t lane) {
    pwsp_events_queue *queue = &events->queues[lane];
    if (events->stale && !queue->is_stale) {
        queue->is_stale = true;
        events->stale[events->stale_count++] = lane;
    }
}

// Takes the least entry of a queue that is not empty.
PWSP_INTERNAL pwsp_events_entry pwsp_events_queue_pop(const pwsp_events *events,
                                                      pwsp_events_queue *queue);

// A node with one reference; 0 when memory is out.
PWSP_INTERNAL uint32_t pwsp_events_node_new(pwsp_events *events);

// Adds, or drops, a reference: a node that is done and has none is free. NONE is ignored.
PWSP_INTERNAL void pwsp_events_ref(pwsp_events *events, uint64_t node);
PWSP_INTERNAL void pwsp_events_unref(pwsp_events *events, uint64_t node);

// Makes one node wait for another; no effect if that is done or NONE.
PWSP_INTERNAL void pwsp_events_wait(pwsp_events *events, uint32_t waiter, uint64_t other);

// A node is done: its waiters are told when events settle.
PWSP_INTERNAL void pwsp_events_fire(pwsp_events *events, uint32_t id);

// A task waits only for its lane now: into its queue.
PWSP_INTERNAL void pwsp_events_make_ready(pwsp_events *events, uint32_t id);

// One dependence less.
PWSP_INTERNAL void pwsp_events_arrive(pwsp_events *events, uint32_t id);

// Tells the waiters of done nodes, and their waiters in turn.
PWSP_INTERNAL void pwsp_events_settle(pwsp_events *events);

// Tokens as the map of regions handles them: the node is `task`.
PWSP_INTERNAL bool pwsp_events_token_is_dead(void *user, const pwsp_token *token);
PWSP_INTERNAL void pwsp_events_token_visit(void *user, const pwsp_token *token);
PWSP_INTERNAL void pwsp_events_token_keep(void *user, const pwsp_token *token);
PWSP_INTERNAL void pwsp_events_token_drop(void *user, const pwsp_token *token);
PWSP_INTERNAL void pwsp_events_token_merge(void *user, pwsp_token *into, const pwsp_token *other);

#endif
