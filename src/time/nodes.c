// Nodes count their open dependences and list their waiters. Links of waiters and free nodes are kept in
// lists, so that a run takes memory only for the tasks in flight.

#include "nodes.h"

// -- nodes ----------------------------------------------------------------------------------------

PWSP_INTERNAL uint32_t pwsp_events_node_new(pwsp_events *events, pwsp_events_kind kind) {
    const uint32_t id = pwsp_events_nodes_take(&events->nodes, &events->node_list);
    if (id == 0 ||
        (events->has_details && !PWSP_GROW_LITTLE(&events->sim->memory, events->details,
                                                  events->detail_capacity, id + UINT64_C(1)))) {
        events->is_out_of_memory = true;
        return 0;
    }
    if (events->has_details) {
        const pwsp_events_detail none = {PTOWSP_NO_INDEX, 0, 0};
        events->details[id] = none;
    }
    pwsp_events_node *node = &events->nodes[id];
    memset(node, 0, sizeof *node);
    node->pending = 1;
    node->refs = kind == PWSP_EVENTS_OPEN_JOIN ? 2 : 1;
    node->kind = (uint8_t)kind;
    return id;
}

PWSP_INTERNAL void pwsp_events_unref(pwsp_events *events, uint64_t id) {
    if (id != PWSP_EVENTS_NONE && --events->nodes[id].refs == 0) {
        PTOWSP_ASSERT(events->nodes[id].kind == PWSP_EVENTS_DONE);
        pwsp_events_nodes_give(events->nodes, &events->node_list, id);
    }
}

// A dependence is done, at a time that a task has caused. Of several that are done at one time the
// lowest task counts.
PWSP_INLINE void pwsp_events_later(pwsp_events *events, uint32_t waiter, uint64_t time,
                                   uint64_t cause) {
    uint64_t *known = &events->nodes[waiter].time;
    if (time > *known || (time == *known && cause < pwsp_events_cause(events, waiter))) {
        *known = time;
        pwsp_events_set_cause(events, waiter, cause);
    }
}

// A link to a waiter, in front of a list. False when memory is out.
static bool pwsp_events_link_new(pwsp_events *events, uint32_t waiter, uint32_t *list) {
    const uint32_t id = pwsp_events_waiters_take(&events->links, &events->link_list);
    if (id == 0) {
        events->is_out_of_memory = true;
        return false;
    }
    const pwsp_events_link link = {waiter, *list};
    events->links[id] = link;
    *list = id;
    return true;
}

// Frees the first link of a list, which then begins with the next one; returns its node.
PWSP_INLINE uint32_t pwsp_events_unlink(pwsp_events *events, uint32_t *list) {
    const uint32_t id = *list;
    const pwsp_events_link link = events->links[id];
    pwsp_events_waiters_give(events->links, &events->link_list, id);
    *list = link.next;
    return link.node;
}

PWSP_INTERNAL void pwsp_events_wait(pwsp_events *events, uint32_t waiter, uint64_t other) {
    if (other == PWSP_EVENTS_NONE || waiter == 0) {
        return;
    }
    PTOWSP_ASSERT(waiter != other);
    pwsp_events_close(events, other);
    pwsp_events_node *awaited = &events->nodes[other];
    if (awaited->kind == PWSP_EVENTS_DONE) {
        pwsp_events_later(events, waiter, awaited->time,
                          pwsp_events_cause(events, (uint32_t)other));
    } else {
        events->nodes[waiter].pending += pwsp_events_link_new(events, waiter, &awaited->waiters);
    }
}

// -- nodes without an open dependence -------------------------------------------------------------

// A pipeline starts.
static void pwsp_events_start_pipeline(pwsp_events *events, uint32_t id) {
    pwsp_events_node *node = &events->nodes[id];
    pwsp_events_pipeline_node *more = &events->pipelines[node->cycles];
    pwsp_sim *sim = events->sim;
    // With control, its dependences have been noticed later than they ended.
    const uint64_t noticed = pwsp_max_u64(node->time, events->control.is_on ? events->now : 0);
    const uint64_t start = pwsp_max_u64(noticed, node->clock), end = start + more->cycles;
    const pwsp_token ready = {node->time > node->clock ? start : node->time,
                              pwsp_events_cause(events, id)};
    if (end > PTOWSP_CYCLES_MAX) {
        events->late = id;
        return;
    }
    const uint64_t cause = pwsp_sim_place_records(sim, node->link.number, more->task_count, &ready,
                                                  node->clock, start);
    more->end_task = more->end_task != PTOWSP_NO_INDEX ? more->end_task : cause;
    pwsp_sim_start_pipeline(sim, more->pipeline, more->run, start);
    sim->stats.stall_cycles[PTOWSP_STALL_DEPENDENCY] += start - node->clock;
    sim->stats.makespan_cycles = pwsp_max_u64(sim->stats.makespan_cycles, end);
    node->link.key = end;
    pwsp_ready_push(&events->timers, pwsp_events_links(events), id);
}

// A task, or a pipeline.
static void pwsp_events_release(pwsp_events *events, uint32_t id) {
    pwsp_events_node *node = &events->nodes[id];
    if (node->kind == PWSP_EVENTS_PIPELINE) {
        pwsp_events_start_pipeline(events, id);
    } else if (PWSP_LIKELY(pwsp_events_turn(events, id) <= events->now)) {
        pwsp_events_make_ready(events, id);
    } else {
        pwsp_events_swap_turn(events, id);
        pwsp_ready_push(&events->timers, pwsp_events_links(events), id);
    }
}

PWSP_INTERNAL void pwsp_events_done(pwsp_events *events, uint32_t id) {
    PTOWSP_ASSERT(events->nodes[id].kind != PWSP_EVENTS_DONE && events->nodes[id].pending == 0);
    events->nodes[id].kind = PWSP_EVENTS_DONE;
    for (uint32_t joins = 0;; joins = events->nodes[id].link.next) {
        const uint64_t time = events->nodes[id].time, cause = pwsp_events_cause(events, id);
        for (uint32_t at = events->nodes[id].waiters; at;) {
            const uint32_t to = pwsp_events_unlink(events, &at);
            pwsp_events_node *waiter = &events->nodes[to];
            pwsp_events_later(events, to, time, cause);
            PTOWSP_ASSERT(waiter->pending > 0);
            if (--waiter->pending > 0) {
                continue;
            }
            if (waiter->kind == PWSP_EVENTS_JOIN) {
                waiter->kind = PWSP_EVENTS_DONE;
                waiter->link.next = joins;
                joins = to;
            } else {
                pwsp_events_release(events, to);
            }
        }
        pwsp_events_unref(events, id);  // the cause of its end
        if (joins == 0) {
            return;
        }
        id = joins;
    }
}

PWSP_INTERNAL void pwsp_events_arrive(pwsp_events *events, uint32_t id) {
    PTOWSP_ASSERT(events->nodes[id].pending > 0);
    if (--events->nodes[id].pending > 0) {
        return;
    }
    if (events->nodes[id].kind == PWSP_EVENTS_JOIN) {
        pwsp_events_done(events, id);
    } else {
        pwsp_events_release(events, id);
    }
}

PWSP_INTERNAL void pwsp_events_follow(pwsp_events *events, uint32_t id) {
    uint32_t lanes[PWSP_BLOCK_LANES];
    const uint32_t count = pwsp_events_lanes(events, id, events->nodes[id].lane, lanes);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *last = &events->last_issued[lanes[i]];
        if (*last) {
            events->nodes[id].pending +=
                pwsp_events_link_new(events, id, &events->details[*last].followers);
        }
        *last = id;
    }
}

PWSP_INTERNAL void pwsp_events_call_followers(pwsp_events *events, uint32_t id) {
    uint32_t lanes[PWSP_BLOCK_LANES];
    const uint32_t count =
        events->last_issued ? pwsp_events_lanes(events, id, events->nodes[id].lane, lanes) : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *last = &events->last_issued[lanes[i]];
        *last = *last == id ? 0 : *last;
    }
    for (uint32_t at = count ? events->details[id].followers : 0; at;) {
        pwsp_events_arrive(events, pwsp_events_unlink(events, &at));
    }
}

PWSP_INTERNAL void pwsp_events_close(pwsp_events *events, uint64_t id) {
    if (events->nodes[id].kind == PWSP_EVENTS_OPEN_JOIN) {
        events->nodes[id].kind = PWSP_EVENTS_JOIN;
        pwsp_events_arrive(events, (uint32_t)id);
    }
}

// -- tokens, for the map of regions and for precedence --------------------------------------------

PWSP_INTERNAL bool pwsp_events_token_is_open(const void *user, const pwsp_token *token) {
    const pwsp_events *events = (const pwsp_events *)user;
    if (token->task == PWSP_EVENTS_NONE) {
        return false;
    }
    const pwsp_events_node *node = &events->nodes[token->task];
    return node->kind != PWSP_EVENTS_DONE &&
           !(node->kind == PWSP_EVENTS_OPEN_JOIN && node->pending == 1);
}

static bool pwsp_events_token_is_dead(void *user, const pwsp_token *token) {
    const pwsp_events *events = (const pwsp_events *)user;
    return !pwsp_events_token_is_open(user, token) && events->nodes[token->task].time < events->now;
}

static void pwsp_events_token_visit(void *user, const pwsp_token *token) {
    pwsp_events *events = (pwsp_events *)user;
    pwsp_events_wait(events, events->current, token->task);
}

static void pwsp_events_token_keep(void *user, const pwsp_token *token) {
    if (token->task != PWSP_EVENTS_NONE) {
        ((pwsp_events *)user)->nodes[token->task].refs++;
    }
}

static void pwsp_events_token_drop(void *user, const pwsp_token *token) {
    pwsp_events *events = (pwsp_events *)user;
    if (token->task != PWSP_EVENTS_NONE) {
        pwsp_events_close(events, token->task);
        pwsp_events_unref(events, token->task);
    }
}

static void pwsp_events_token_merge(void *user, pwsp_token *into, const pwsp_token *other) {
    pwsp_events *events = (pwsp_events *)user;
    const uint64_t before = into->task;
    if (events->nodes[before].kind == PWSP_EVENTS_OPEN_JOIN) {
        pwsp_events_wait(events, (uint32_t)before, other->task);
        return;
    }
    const uint32_t join = pwsp_events_node_new(events, PWSP_EVENTS_OPEN_JOIN);
    if (join) {
        pwsp_events_wait(events, join, before);
        pwsp_events_wait(events, join, other->task);
        into->task = join;
        pwsp_events_unref(events, before);
    }
}

PWSP_INTERNAL pwsp_token_ops pwsp_events_token_ops(pwsp_events *events) {
    const pwsp_token_ops ops = {pwsp_events_token_is_dead,
                                pwsp_events_token_visit,
                                pwsp_events_token_keep,
                                pwsp_events_token_drop,
                                pwsp_events_token_merge,
                                events,
                                true};
    return ops;
}
