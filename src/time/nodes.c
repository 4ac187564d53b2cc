// Nodes count what they still wait for and who may yet wait for them; links of waiters and nodes
// that are free again are in lists, so that a run takes memory for what is in flight at most.

#include "nodes.h"

// -- heaps ----------------------------------------------------------------------------------------

static bool pwsp_flow_entry_is_less(const pwsp_flow_entry *a, const pwsp_flow_entry *b) {
    return a->rank < b->rank || (a->rank == b->rank && a->index < b->index);
}

static bool pwsp_flow_queue_push(pwsp_flow *flow, pwsp_flow_queue *queue, pwsp_flow_entry entry) {
    void *entries = queue->entries;
    if (!pwsp_memory_grow(&flow->sim->memory, &entries, &queue->capacity, queue->count + 1,
                          sizeof entry)) {
        flow->is_out_of_memory = true;
        return false;
    }
    queue->entries = (pwsp_flow_entry *)entries;
    uint64_t i = queue->count++;
    while (i > 0 && pwsp_flow_entry_is_less(&entry, &queue->entries[(i - 1) / 2])) {
        queue->entries[i] = queue->entries[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    queue->entries[i] = entry;
    return true;
}

PWSP_INTERNAL pwsp_flow_entry pwsp_flow_queue_pop(pwsp_flow_queue *queue) {
    PTOWSP_ASSERT(queue->count > 0);
    pwsp_flow_entry first = queue->entries[0];
    pwsp_flow_entry last = queue->entries[--queue->count];
    uint64_t i = 0;
    for (;;) {
        uint64_t child = 2 * i + 1;
        if (child >= queue->count) {
            break;
        }
        child += child + 1 < queue->count &&
                 pwsp_flow_entry_is_less(&queue->entries[child + 1], &queue->entries[child]);
        if (!pwsp_flow_entry_is_less(&queue->entries[child], &last)) {
            break;
        }
        queue->entries[i] = queue->entries[child];
        i = child;
    }
    queue->entries[i] = last;
    return first;
}

// -- nodes ----------------------------------------------------------------------------------------

PWSP_INTERNAL uint32_t pwsp_flow_node_new(pwsp_flow *flow) {
    uint32_t id = flow->free_node;
    if (id) {
        flow->free_node = flow->nodes[id].waiters;
    } else {
        void *nodes = flow->nodes;
        uint64_t next = flow->node_count ? flow->node_count : 1;
        if (next >= UINT32_MAX ||
            !pwsp_memory_grow(&flow->sim->memory, &nodes, &flow->node_capacity, next + 1,
                              sizeof(pwsp_flow_node))) {
            flow->is_out_of_memory = true;
            return 0;
        }
        flow->nodes = (pwsp_flow_node *)nodes;
        flow->node_count = next + 1;
        id = (uint32_t)next;
    }
    memset(&flow->nodes[id], 0, sizeof flow->nodes[id]);
    flow->nodes[id].cause = PWSP_FLOW_NONE;
    flow->nodes[id].refs = 1;
    return id;
}

PWSP_INTERNAL void pwsp_flow_ref(pwsp_flow *flow, uint64_t node) {
    if (node != PWSP_FLOW_NONE) {
        flow->nodes[node].refs++;
    }
}

PWSP_INTERNAL void pwsp_flow_unref(pwsp_flow *flow, uint64_t node) {
    if (node != PWSP_FLOW_NONE && --flow->nodes[node].refs == 0) {
        PTOWSP_ASSERT(flow->nodes[node].is_done);
        flow->nodes[node].waiters = flow->free_node;
        flow->free_node = (uint32_t)node;
    }
}

// Makes one node wait for another, or for nothing if that is done.
PWSP_INTERNAL void pwsp_flow_wait(pwsp_flow *flow, uint32_t waiter, uint64_t other) {
    if (other == PWSP_FLOW_NONE || waiter == 0) {
        return;
    }
    pwsp_flow_node *node = &flow->nodes[other];
    if (node->is_done) {
        if (node->time > flow->nodes[waiter].time) {
            flow->nodes[waiter].time = node->time;
            flow->nodes[waiter].cause = node->cause;
        }
        return;
    }
    uint32_t id = flow->free_link;
    if (id) {
        flow->free_link = flow->links[id].next;
    } else {
        void *links = flow->links;
        uint64_t next = flow->link_count ? flow->link_count : 1;
        if (next >= UINT32_MAX ||
            !pwsp_memory_grow(&flow->sim->memory, &links, &flow->link_capacity, next + 1,
                              sizeof(pwsp_flow_link))) {
            flow->is_out_of_memory = true;
            return;
        }
        flow->links = (pwsp_flow_link *)links;
        flow->link_count = next + 1;
        id = (uint32_t)next;
    }
    pwsp_flow_link link = {waiter, node->waiters};
    flow->links[id] = link;
    node->waiters = id;
    flow->nodes[waiter].pending++;
}

PWSP_INTERNAL void pwsp_flow_fire(pwsp_flow *flow, uint32_t id) {
    void *fired = flow->fired;
    flow->nodes[id].is_done = true;
    if (!pwsp_memory_grow(&flow->sim->memory, &fired, &flow->fired_capacity, flow->fired_count + 1,
                          sizeof(uint32_t))) {
        flow->is_out_of_memory = true;
        return;
    }
    flow->fired = (uint32_t *)fired;
    flow->fired[flow->fired_count++] = id;
}

// A task waits for nothing but a lane: into its queue.
PWSP_INTERNAL void pwsp_flow_make_ready(pwsp_flow *flow, uint32_t id) {
    const pwsp_flow_node *node = &flow->nodes[id];
    pwsp_flow_entry entry = {node->rank, node->index, id};
    if (!pwsp_flow_queue_push(flow, &flow->queues[node->lane], entry)) {
        return;
    }
    if (flow->is_shared) {
        flow->ready_count[node->lane]++;
        return;
    }
    const pwsp_sim *sim = flow->sim;
    flow->ready_count[node->lane >= sim->pools[0].count]++;
    flow->able[node->lane / 64] |= flow->idle[node->lane / 64] & (UINT64_C(1) << node->lane % 64);
}

// A pipeline waits for nothing any more: it starts.
static void pwsp_flow_start_pipeline(pwsp_flow *flow, uint32_t id) {
    pwsp_flow_node *node = &flow->nodes[id];
    pwsp_sim *sim = flow->sim;
    pwsp_token ready = {node->time, node->cause};
    uint64_t start = pwsp_max_u64(node->time, node->clock), end = start + node->cycles;
    if (end > PTOWSP_CYCLES_MAX) {
        flow->late = id;
        return;
    }
    uint64_t cause =
        pwsp_sim_place_records(sim, node->index, node->rank, &ready, node->clock, start);
    node->turn = node->turn != PTOWSP_NO_INDEX ? node->turn : cause;
    pwsp_sim_start_pipeline(sim, node->lane, node->kernel, start);
    sim->stats.stall_cycles[PTOWSP_STALL_DEPENDENCY] += start - node->clock;
    sim->stats.makespan_cycles = pwsp_max_u64(sim->stats.makespan_cycles, end);
    pwsp_flow_entry entry = {end, node->index, id};
    pwsp_flow_queue_push(flow, flow->ends, entry);
}

// One thing less to wait for.
PWSP_INTERNAL void pwsp_flow_arrive(pwsp_flow *flow, uint32_t id) {
    pwsp_flow_node *node = &flow->nodes[id];
    PTOWSP_ASSERT(node->pending > 0);
    if (--node->pending > 0) {
        return;
    }
    if (node->is_pipeline) {
        pwsp_flow_start_pipeline(flow, id);
        return;
    }
    if (!node->is_task) {
        pwsp_flow_fire(flow, id);
        return;
    }
    node->ready = node->time;
    node->ready_cause = node->cause;
    if (node->turn > flow->now) {
        pwsp_flow_entry entry = {node->turn, node->index, id};
        pwsp_flow_queue_push(flow, flow->turns, entry);
    } else {
        pwsp_flow_make_ready(flow, id);
    }
}

// Tells those who wait for what is done, and those who wait for them.
PWSP_INTERNAL void pwsp_flow_settle(pwsp_flow *flow) {
    while (flow->fired_count > 0) {
        uint32_t id = flow->fired[--flow->fired_count];
        uint32_t link = flow->nodes[id].waiters;
        flow->nodes[id].waiters = 0;
        while (link) {
            uint32_t next = flow->links[link].next, waiter = flow->links[link].node;
            flow->links[link].next = flow->free_link;
            flow->free_link = link;
            if (flow->nodes[id].time > flow->nodes[waiter].time) {
                flow->nodes[waiter].time = flow->nodes[id].time;
                flow->nodes[waiter].cause = flow->nodes[id].cause;
            }
            pwsp_flow_arrive(flow, waiter);
            link = next;
        }
        pwsp_flow_unref(flow, id);  // what kept it until it was done
    }
}

// A join of two nodes, which is referred to once and kept until done; 0 when memory is out.
static uint32_t pwsp_flow_join(pwsp_flow *flow, uint64_t a, uint64_t b) {
    uint32_t id = pwsp_flow_node_new(flow);
    if (id) {
        flow->nodes[id].refs = 2;
        flow->nodes[id].pending = 1;
        pwsp_flow_wait(flow, id, a);
        pwsp_flow_wait(flow, id, b);
        pwsp_flow_arrive(flow, id);
        pwsp_flow_settle(flow);
    }
    return id;
}

// -- tokens, for the map of regions ---------------------------------------------------------------

PWSP_INTERNAL bool pwsp_flow_token_is_dead(void *user, const pwsp_token *token) {
    const pwsp_flow *flow = (const pwsp_flow *)user;
    const pwsp_flow_node *node = &flow->nodes[token->task];
    return node->is_done && node->time < flow->now;
}

PWSP_INTERNAL void pwsp_flow_token_visit(void *user, const pwsp_token *token) {
    pwsp_flow *flow = (pwsp_flow *)user;
    pwsp_flow_wait(flow, flow->current, token->task);
}

PWSP_INTERNAL void pwsp_flow_token_keep(void *user, const pwsp_token *token) {
    pwsp_flow_ref((pwsp_flow *)user, token->task);
}

PWSP_INTERNAL void pwsp_flow_token_drop(void *user, const pwsp_token *token) {
    pwsp_flow_unref((pwsp_flow *)user, token->task);
}

PWSP_INTERNAL void pwsp_flow_token_merge(void *user, pwsp_token *into, const pwsp_token *other) {
    pwsp_flow *flow = (pwsp_flow *)user;
    uint64_t before = into->task;
    uint32_t join = pwsp_flow_join(flow, before, other->task);
    if (join) {
        into->task = join;
        pwsp_flow_unref(flow, before);
    }
}

// Replaces what a token stands for.
PWSP_INTERNAL void pwsp_flow_token_set(pwsp_flow *flow, pwsp_token *token, uint64_t node) {
    uint64_t before = token->task;
    pwsp_flow_ref(flow, node);
    token->task = node;
    pwsp_flow_unref(flow, before);
}
