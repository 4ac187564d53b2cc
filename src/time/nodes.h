// What the rooms of event-driven time share: nodes, which can be waited for, the queues of ready tasks,
// and the steps.

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
    return events->turns_at ? events->turns_at[id] : events->nodes[id].clock;
}

// -- queues ---------------------------------------------------------------------------------------

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
    const pwsp_events_entry *run = pwsp_events_run_at(queue, 0);
    bool is_of_run =
        queue->heap_count == 0 || (queue->heap_count < queue->count &&
                                   pwsp_events_entry_is_less(events, run, &queue->heap[0]));
    return is_of_run ? run : &queue->heap[0];
}

// Takes the least entry of a queue that is not empty.
PWSP_INTERNAL pwsp_events_entry pwsp_events_queue_take(const pwsp_events *events,
                                                       pwsp_events_queue *queue);

PWSP_INLINE pwsp_events_entry pwsp_events_queue_pop(const pwsp_events *events,
                                                    pwsp_events_queue *queue) {
    PTOWSP_ASSERT(queue->count > 0);
    if (PWSP_UNLIKELY(queue->heap_count > 0)) {
        return pwsp_events_queue_take(events, queue);
    }
    queue->count--;
    return queue->run[queue->run_head++ & (queue->run_capacity - 1)];
}

// Adds an entry. False when memory is out, which the events then know.
PWSP_INTERNAL bool pwsp_events_queue_push(pwsp_events *events, pwsp_events_queue *queue,
                                          uint64_t key, uint32_t node);

// A lane's queue has changed; others steal by its first task.
PWSP_INLINE void pwsp_events_note_change(pwsp_events *events, uint32_t lane) {
    pwsp_events_queue *queue = &events->queues[lane];
    if (events->stale && !queue->is_stale) {
        queue->is_stale = true;
        events->stale[events->stale_count++] = lane;
    }
}

// -- nodes ----------------------------------------------------------------------------------------

// A place for one more node; 0 when memory is out.
PWSP_INTERNAL uint32_t pwsp_events_node_place(pwsp_events *events);

// A node with one reference; 0 when memory is out.
PWSP_INLINE uint32_t pwsp_events_node_new(pwsp_events *events) {
    uint32_t id = events->free_node;
    if (PWSP_LIKELY(id != 0)) {
        events->free_node = events->nodes[id].waiters;
    } else if ((id = pwsp_events_node_place(events)) == 0) {
        return 0;
    }
    const pwsp_events_node node = {0, 0, 0, 0, 0, 1, 0, 0, 0, PWSP_EVENTS_JOIN, false, false};
    events->nodes[id] = node;
    pwsp_events_set_cause(events, id, PTOWSP_NO_INDEX);
    return id;
}

// Adds, or drops, a reference: a node that is done and has none is free. NONE is ignored.
PWSP_INTERNAL void pwsp_events_ref(pwsp_events *events, uint64_t node);
PWSP_INLINE void pwsp_events_unref(pwsp_events *events, uint64_t node) {
    if (node != PWSP_EVENTS_NONE && --events->nodes[node].refs == 0) {
        PTOWSP_ASSERT(events->nodes[node].is_done);
        events->nodes[node].waiters = events->free_node;
        events->free_node = (uint32_t)node;
    }
}

// Makes a list of waiters one longer with a link. False when memory is out.
PWSP_INTERNAL bool pwsp_events_link_new(pwsp_events *events, uint32_t waiter, uint32_t *list);

// A join gets no further dependences.
PWSP_INTERNAL void pwsp_events_close(pwsp_events *events, uint64_t id);

// A dependence is done, at a time that a task has caused. Of several that are done at one time the
// lowest task counts.
PWSP_INLINE void pwsp_events_later(pwsp_events *events, uint32_t waiter, uint64_t time,
                                   uint64_t cause) {
    const uint64_t before = events->nodes[waiter].time;
    if (time > before || (time == before && cause < pwsp_events_cause(events, waiter))) {
        events->nodes[waiter].time = time;
        pwsp_events_set_cause(events, waiter, cause);
    }
}

// One more dependence of a node: another that is not done.
PWSP_FORCE_INLINE void pwsp_events_add_waiter(pwsp_events *events, uint32_t waiter,
                                              uint32_t other) {
    pwsp_events_node *node = &events->nodes[waiter];
    uint32_t *list = &events->nodes[other].waiters;
    if (*list == 0) {
        *list = PWSP_EVENTS_LAST | waiter;
    } else if (!node->is_linked) {
        node->is_linked = true;
        node->next = *list;
        *list = PWSP_EVENTS_OWN | waiter;
    } else if (!pwsp_events_link_new(events, waiter, list)) {
        return;
    }
    node->pending++;
}

// Makes one node wait for another; no effect if that is done or NONE.
PWSP_FORCE_INLINE void pwsp_events_wait(pwsp_events *events, uint32_t waiter, uint64_t other) {
    if (other == PWSP_EVENTS_NONE || waiter == 0) {
        return;
    }
    PTOWSP_ASSERT(waiter != other);
    if (events->nodes[other].kind == PWSP_EVENTS_OPEN_JOIN) {
        pwsp_events_close(events, other);
    }
    if (events->nodes[other].is_done) {
        pwsp_events_later(events, waiter, events->nodes[other].time,
                          pwsp_events_cause(events, (uint32_t)other));
    } else {
        pwsp_events_add_waiter(events, waiter, (uint32_t)other);
    }
}

// A task waits only for its lane now: into its queue.
PWSP_INLINE void pwsp_events_make_ready(pwsp_events *events, uint32_t id) {
    const uint32_t lane = events->nodes[id].lane;
    const uint64_t key = events->ranks ? events->ranks[id] : events->nodes[id].index;
    if (!pwsp_events_queue_push(events, &events->queues[lane], key, id)) {
        return;
    }
    if (events->is_shared) {
        events->ready_count[lane]++;
        return;
    }
    pwsp_events_note_change(events, lane);
    events->ready_count[pwsp_sim_pool_of(events->sim, lane)]++;
    events->able[lane / 64] |= events->idle[lane / 64] & (UINT64_C(1) << lane % 64);
}

// What is no task, or whose turn is later, has no open dependence left.
PWSP_INTERNAL void pwsp_events_open(pwsp_events *events, uint32_t id);

// One dependence less.
PWSP_INLINE void pwsp_events_arrive(pwsp_events *events, uint32_t id) {
    pwsp_events_node *node = &events->nodes[id];
    PTOWSP_ASSERT(node->pending > 0);
    if (--node->pending > 0) {
        return;
    }
    const bool is_task = node->kind == PWSP_EVENTS_TASK || node->kind == PWSP_EVENTS_BLOCK_TASK;
    if (is_task && pwsp_events_turn(events, id) <= events->now) {
        pwsp_events_make_ready(events, id);
    } else {
        pwsp_events_open(events, id);
    }
}

// Tells the waiters of a node that is done, and theirs in turn if they are joins.
PWSP_INTERNAL void pwsp_events_tell_waiters(pwsp_events *events, uint32_t id);

// A node is done.
PWSP_FORCE_INLINE void pwsp_events_done(pwsp_events *events, uint32_t id) {
    pwsp_events_node *node = &events->nodes[id];
    const uint32_t list = node->waiters, waiter = list & (PWSP_EVENTS_ID_LIMIT - 1);
    PTOWSP_ASSERT(!node->is_done && node->pending == 0);
    node->is_done = true;
    if (list >= PWSP_EVENTS_LAST && events->nodes[waiter].pending > 1) {
        // A child of a parallel scope that is not its last: nothing follows from its end.
        node->waiters = 0;
        events->nodes[waiter].pending--;
        pwsp_events_later(events, waiter, node->time, pwsp_events_cause(events, id));
        pwsp_events_unref(events, id);
    } else {
        pwsp_events_tell_waiters(events, id);
    }
}

// -- steps ----------------------------------------------------------------------------------------

// Do tasks start already?
PWSP_INLINE bool pwsp_events_is_open(const pwsp_events *events) {
    return events->has_ended || pwsp_sim_is_open(events->sim);
}

// One step: lanes take tasks, then time moves to the next event, at most to `until`. *out_moved is
// whether anything happened. False with an error.
PWSP_INTERNAL bool pwsp_events_step(pwsp_events *events, uint64_t until, bool *out_moved);

// -- tokens ---------------------------------------------------------------------------------------

// Tokens as the map of regions handles them: the node is `task`.
PWSP_INTERNAL bool pwsp_events_token_is_dead(void *user, const pwsp_token *token);
PWSP_INTERNAL void pwsp_events_token_visit(void *user, const pwsp_token *token);
PWSP_INTERNAL void pwsp_events_token_keep(void *user, const pwsp_token *token);
PWSP_INTERNAL void pwsp_events_token_drop(void *user, const pwsp_token *token);
PWSP_INTERNAL void pwsp_events_token_merge(void *user, pwsp_token *into, const pwsp_token *other);

#endif
