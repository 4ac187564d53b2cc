// Nodes: what can be waited for, and the heaps that ready tasks wait in.

#ifndef PWSP_NODES_H
#define PWSP_NODES_H

#include "flow.h"

PWSP_INLINE uint64_t pwsp_flow_entry_key(const pwsp_flow_entry *entry) {
    return (uint64_t)entry->key_high << 32 | entry->key_low;
}

// The task that a node's time comes from; without records nobody asks for it.
PWSP_INLINE uint64_t pwsp_flow_cause(const pwsp_flow *flow, uint32_t id) {
    return flow->sim->has_records ? flow->causes[id] : PTOWSP_NO_INDEX;
}

PWSP_INLINE void pwsp_flow_set_cause(pwsp_flow *flow, uint32_t id, uint64_t cause) {
    if (flow->sim->has_records) {
        flow->causes[id] = cause;
    }
}

// When a task may start at all.
PWSP_INLINE uint64_t pwsp_flow_turn(const pwsp_flow *flow, uint32_t id) {
    return flow->sim->schedule->timing == PTOWSP_TIMING_INTERLEAVED ? flow->turns_at[id]
                                                                    : flow->nodes[id].clock;
}

// Takes the least entry of a heap that is not empty.
PWSP_INTERNAL pwsp_flow_entry pwsp_flow_queue_pop(const pwsp_flow *flow, pwsp_flow_queue *queue);

// A node that is referred to once; 0 when memory is out.
PWSP_INTERNAL uint32_t pwsp_flow_node_new(pwsp_flow *flow);

// One reference more, or less: a node that is done and has none is free. NONE is ignored.
PWSP_INTERNAL void pwsp_flow_ref(pwsp_flow *flow, uint64_t node);
PWSP_INTERNAL void pwsp_flow_unref(pwsp_flow *flow, uint64_t node);

// Makes one node wait for another, or for nothing if that is done or NONE.
PWSP_INTERNAL void pwsp_flow_wait(pwsp_flow *flow, uint32_t waiter, uint64_t other);

// A node is done: who waits for it will be told when the flow settles.
PWSP_INTERNAL void pwsp_flow_fire(pwsp_flow *flow, uint32_t id);

// A task waits for nothing but a lane: into its queue.
PWSP_INTERNAL void pwsp_flow_make_ready(pwsp_flow *flow, uint32_t id);

// One thing less to wait for.
PWSP_INTERNAL void pwsp_flow_arrive(pwsp_flow *flow, uint32_t id);

// Tells those who wait for what is done, and those who wait for them.
PWSP_INTERNAL void pwsp_flow_settle(pwsp_flow *flow);

// Tokens as the map of regions handles them: the node is `task`.
PWSP_INTERNAL bool pwsp_flow_token_is_dead(void *user, const pwsp_token *token);
PWSP_INTERNAL void pwsp_flow_token_visit(void *user, const pwsp_token *token);
PWSP_INTERNAL void pwsp_flow_token_keep(void *user, const pwsp_token *token);
PWSP_INTERNAL void pwsp_flow_token_drop(void *user, const pwsp_token *token);
PWSP_INTERNAL void pwsp_flow_token_merge(void *user, pwsp_token *into, const pwsp_token *other);

// Replaces what a token stands for.
PWSP_INTERNAL void pwsp_flow_token_set(pwsp_flow *flow, pwsp_token *token, uint64_t node);

#endif
