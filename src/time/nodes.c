// Nodes count what they still wait for and who may yet wait for them; links of waiters and nodes
// that are free again are in lists, so that a run takes memory for what is in flight at most.

#include "nodes.h"

// -- heaps ----------------------------------------------------------------------------------------

static pwsp_flow_entry pwsp_flow_entry_make(uint64_t key, uint32_t node) {
    pwsp_flow_entry entry = {(uint32_t)key, (uint32_t)(key >> 32), node};
    return entry;
}

PWSP_INLINE bool pwsp_flow_entry_is_less(const pwsp_flow *flow, const pwsp_flow_entry *a,
                                         const pwsp_flow_entry *b) {
    uint64_t a_key = pwsp_flow_entry_key(a), b_key = pwsp_flow_entry_key(b);
    return a_key < b_key ||
           (a_key == b_key && flow->nodes[a->node].index < flow->nodes[b->node].index);
}

static bool pwsp_flow_queue_push(pwsp_flow *flow, pwsp_flow_queue *queue, pwsp_flow_entry entry) {
    void *entries = queue->entries;
    if (!pwsp_memory_grow_little(&flow->sim->memory, &entries, &queue->capacity, queue->count + 1,
                                 sizeof entry)) {
        flow->is_out_of_memory = true;
        return false;
    }
    queue->entries = (pwsp_flow_entry *)entries;
    uint64_t i = queue->count++;
    while (i > 0 && pwsp_flow_entry_is_less(flow, &entry, &queue->entries[(i - 1) / 2])) {
        queue->entries[i] = queue->entries[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    queue->entries[i] = entry;
    return true;
}

PWSP_INTERNAL pwsp_flow_entry pwsp_flow_queue_pop(const pwsp_flow *flow, pwsp_flow_queue *queue) {
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
                 pwsp_flow_entry_is_less(flow, &queue->entries[child + 1], &queue->entries[child]);
        if (!pwsp_flow_entry_is_less(flow, &queue->entries[child], &last)) {
            break;
        }
        queue->entries[i] = queue->entries[child];
        i = child;
    }
    queue->entries[i] = last;
    return first;
}

// -- nodes ----------------------------------------------------------------------------------------

// Makes room for a node in an array by node.
static bool pwsp_flow_grow(pwsp_flow *flow, uint64_t **array, uint64_t *capacity, uint64_t needed) {
    void *items = *array;
    bool is_good =
        pwsp_memory_grow_little(&flow->sim->memory, &items, capacity, needed, sizeof(uint64_t));
    *array = (uint64_t *)items;
    return is_good;
}

static bool pwsp_flow_grow_nodes(pwsp_flow *flow, uint64_t needed) {
    void *nodes = flow->nodes;
    const ptowsp_schedule *schedule = flow->sim->schedule;
    bool is_good = pwsp_memory_grow_little(&flow->sim->memory, &nodes, &flow->node_capacity, needed,
                                           sizeof(pwsp_flow_node));
    flow->nodes = (pwsp_flow_node *)nodes;
    return is_good &&
           (!flow->sim->has_records ||
            pwsp_flow_grow(flow, &flow->causes, &flow->cause_capacity, needed)) &&
           (schedule->ready != PTOWSP_READY_PRIORITY ||
            pwsp_flow_grow(flow, &flow->ranks, &flow->rank_capacity, needed)) &&
           (schedule->timing != PTOWSP_TIMING_INTERLEAVED ||
            pwsp_flow_grow(flow, &flow->turns_at, &flow->turn_capacity, needed));
}

PWSP_INTERNAL uint32_t pwsp_flow_node_new(pwsp_flow *flow) {
    uint32_t id = flow->free_node;
    if (id) {
        flow->free_node = flow->nodes[id].waiters;
    } else {
        uint64_t next = flow->node_count ? flow->node_count : 1;
        if (next >= UINT32_MAX || !pwsp_flow_grow_nodes(flow, next + 1)) {
            flow->is_out_of_memory = true;
            return 0;
        }
        flow->node_count = next + 1;
        id = (uint32_t)next;
    }
    memset(&flow->nodes[id], 0, sizeof flow->nodes[id]);
    pwsp_flow_set_cause(flow, id, PTOWSP_NO_INDEX);
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

// One node has waited for another. Of several that are done at one time the lowest task counts.
PWSP_INLINE void pwsp_flow_later(pwsp_flow *flow, uint32_t waiter, uint32_t done) {
    uint64_t time = flow->nodes[done].time, before = flow->nodes[waiter].time;
    if (time < before) {
        return;
    }
    uint64_t cause = pwsp_flow_cause(flow, done);
    if (time > before || cause < pwsp_flow_cause(flow, waiter)) {
        flow->nodes[waiter].time = time;
        pwsp_flow_set_cause(flow, waiter, cause);
    }
}

// Makes one node wait for another, or for nothing if that is done.
PWSP_INTERNAL void pwsp_flow_wait(pwsp_flow *flow, uint32_t waiter, uint64_t other) {
    if (other == PWSP_FLOW_NONE || waiter == 0) {
        return;
    }
    pwsp_flow_node *node = &flow->nodes[other];
    if (node->is_done) {
        pwsp_flow_later(flow, waiter, (uint32_t)other);
        return;
    }
    uint32_t id = flow->free_link;
    if (id) {
        flow->free_link = flow->links[id].next;
    } else {
        void *links = flow->links;
        uint64_t next = flow->link_count ? flow->link_count : 1;
        if (next >= UINT32_MAX ||
            !pwsp_memory_grow_little(&flow->sim->memory, &links, &flow->link_capacity, next + 1,
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
    uint32_t lane = node->lane;
    pwsp_flow_entry entry = pwsp_flow_entry_make(
        flow->sim->schedule->ready == PTOWSP_READY_PRIORITY ? flow->ranks[id] : node->index, id);
    if (!pwsp_flow_queue_push(flow, &flow->queues[lane], entry)) {
        return;
    }
    if (flow->is_shared) {
        flow->ready_count[lane]++;
        return;
    }
    const pwsp_sim *sim = flow->sim;
    flow->ready_count[lane >= sim->pools[0].count]++;
    flow->able[lane / 64] |= flow->idle[lane / 64] & (UINT64_C(1) << lane % 64);
}

// A pipeline waits for nothing any more: it starts.
static void pwsp_flow_start_pipeline(pwsp_flow *flow, uint32_t id) {
    const pwsp_flow_node *node = &flow->nodes[id];
    pwsp_flow_pipeline_node *more = &flow->pipelines[node->cycles];
    pwsp_sim *sim = flow->sim;
    pwsp_token ready = {node->time, pwsp_flow_cause(flow, id)};
    uint64_t start = pwsp_max_u64(node->time, node->clock), end = start + more->cycles;
    if (end > PTOWSP_CYCLES_MAX) {
        flow->late = id;
        return;
    }
    uint64_t cause =
        pwsp_sim_place_records(sim, node->index, more->task_count, &ready, node->clock, start);
    more->end_task = more->end_task != PTOWSP_NO_INDEX ? more->end_task : cause;
    pwsp_sim_start_pipeline(sim, more->pipeline, more->run, start);
    sim->stats.stall_cycles[PTOWSP_STALL_DEPENDENCY] += start - node->clock;
    sim->stats.makespan_cycles = pwsp_max_u64(sim->stats.makespan_cycles, end);
    pwsp_flow_queue_push(flow, flow->ends, pwsp_flow_entry_make(end, id));
}

// One thing less to wait for.
PWSP_INTERNAL void pwsp_flow_arrive(pwsp_flow *flow, uint32_t id) {
    pwsp_flow_node *node = &flow->nodes[id];
    PTOWSP_ASSERT(node->pending > 0);
    if (--node->pending > 0) {
        return;
    }
    if (node->kind == PWSP_FLOW_PIPELINE) {
        pwsp_flow_start_pipeline(flow, id);
        return;
    }
    if (node->kind == PWSP_FLOW_JOIN) {
        pwsp_flow_fire(flow, id);
        return;
    }
    uint64_t turn = pwsp_flow_turn(flow, id);
    if (turn > flow->now) {
        pwsp_flow_queue_push(flow, flow->turns, pwsp_flow_entry_make(turn, id));
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
            pwsp_flow_later(flow, waiter, id);
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
