// Nodes count their open dependences and possible waiters. Links of waiters and free nodes are kept
// in lists, so that a run takes memory only for the tasks in flight. Tasks of a parallel scope wait for
// one node and have one waiter, the scope's join, and take no link for either:
//
//      before: c -> b -> a        what the scope waits for; a stands at the end, b and c are their
//                                 own links
//      a: join   b: join          the lists of the tasks, of one place each

#include "nodes.h"

#include "../base/heap.h"

// -- queues ---------------------------------------------------------------------------------------

static pwsp_events_entry pwsp_events_entry_make(uint64_t key, uint32_t node) {
    pwsp_events_entry entry = {(uint32_t)key, (uint32_t)(key >> 32), node};
    return entry;
}

#define PWSP_ENTRY_IS_LESS(events, a, b) pwsp_events_entry_is_less(events, &(a), &(b))
PWSP_HEAP(pwsp_events_heap, pwsp_events_entry, pwsp_events, PWSP_ENTRY_IS_LESS)

static bool pwsp_events_heap_add(pwsp_events *events, pwsp_events_queue *queue,
                                 pwsp_events_entry entry) {
    if (!PWSP_GROW_LITTLE(&events->sim->memory, queue->heap, queue->heap_capacity,
                          queue->heap_count + 1)) {
        return false;
    }
    pwsp_events_heap_push(events, queue->heap, queue->heap_count++, entry);
    return true;
}

// Doubles the room for the run. False when memory is out.
static bool pwsp_events_run_grow(const pwsp_events *events, pwsp_events_queue *queue) {
    uint64_t capacity = queue->run_capacity ? 2 * queue->run_capacity : 16;
    pwsp_events_entry *run = (pwsp_events_entry *)pwsp_memory_alloc(&events->sim->memory,
                                                                    (size_t)capacity * sizeof *run);
    if (!run) {
        return false;
    }
    for (uint64_t i = 0; i < queue->run_capacity; i++) {
        run[i] = *pwsp_events_run_at(queue, i);
    }
    PWSP_FREE(&events->sim->memory, queue->run, queue->run_capacity);
    queue->run = run;
    queue->run_capacity = capacity;
    queue->run_head = 0;
    return true;
}

PWSP_INTERNAL bool pwsp_events_queue_push(pwsp_events *events, pwsp_events_queue *queue,
                                          uint64_t key, uint32_t node) {
    const pwsp_events_entry entry = pwsp_events_entry_make(key, node);
    const uint64_t run_count = queue->count - queue->heap_count;
    bool is_last = run_count == 0 || pwsp_events_entry_is_less(
                                         events, pwsp_events_run_at(queue, run_count - 1), &entry);
    bool is_first =
        !is_last && pwsp_events_entry_is_less(events, &entry, pwsp_events_run_at(queue, 0));
    const bool is_of_run = is_last || is_first;
    if (is_of_run ? run_count == queue->run_capacity && !pwsp_events_run_grow(events, queue)
                  : !pwsp_events_heap_add(events, queue, entry)) {
        events->is_out_of_memory = true;
        return false;
    }
    if (is_of_run) {
        queue->run_head -= is_first;
        *pwsp_events_run_at(queue, is_first ? 0 : run_count) = entry;
    }
    queue->count++;
    return true;
}

PWSP_INTERNAL pwsp_events_entry pwsp_events_queue_take(const pwsp_events *events,
                                                       pwsp_events_queue *queue) {
    const pwsp_events_entry *least = pwsp_events_queue_first(events, queue);
    pwsp_events_entry first = *least;
    queue->count--;
    if (least == queue->heap) {
        pwsp_events_heap_pop(events, queue->heap, queue->heap_count--);
    } else {
        queue->run_head++;
    }
    return first;
}

// -- nodes ----------------------------------------------------------------------------------------

// Makes room for a node in an array by node.
static bool pwsp_events_grow(pwsp_events *events, uint64_t **array, uint64_t *capacity,
                             uint64_t needed) {
    return PWSP_GROW_LITTLE(&events->sim->memory, *array, *capacity, needed);
}

static bool pwsp_events_grow_nodes(pwsp_events *events, uint64_t needed) {
    const ptowsp_schedule *schedule = events->sim->schedule;
    bool is_good =
        PWSP_GROW_LITTLE(&events->sim->memory, events->nodes, events->node_capacity, needed);
    return is_good &&
           (!events->sim->has_records ||
            pwsp_events_grow(events, &events->causes, &events->cause_capacity, needed)) &&
           (schedule->ready != PTOWSP_READY_PRIORITY ||
            pwsp_events_grow(events, &events->ranks, &events->rank_capacity, needed)) &&
           (schedule->timing != PTOWSP_TIMING_INTERLEAVED ||
            pwsp_events_grow(events, &events->turns_at, &events->turn_capacity, needed));
}

PWSP_INTERNAL uint32_t pwsp_events_node_place(pwsp_events *events) {
    const uint64_t next = events->node_count ? events->node_count : 1;
    if (next >= PWSP_EVENTS_ID_LIMIT || !pwsp_events_grow_nodes(events, next + 1)) {
        events->is_out_of_memory = true;
        return 0;
    }
    events->node_count = next + 1;
    return (uint32_t)next;
}

PWSP_INTERNAL void pwsp_events_ref(pwsp_events *events, uint64_t node) {
    if (node != PWSP_EVENTS_NONE) {
        events->nodes[node].refs++;
    }
}

// A join is done: its waiters are told after those of others.
static void pwsp_events_fire(pwsp_events *events, uint32_t id) {
    PTOWSP_ASSERT(!events->nodes[id].is_done && events->nodes[id].pending == 0);
    events->nodes[id].is_done = true;
    if (!PWSP_GROW(&events->sim->memory, events->fired, events->fired_capacity,
                   events->fired_count + 1)) {
        events->is_out_of_memory = true;
        return;
    }
    events->fired[events->fired_count++] = id;
}

PWSP_INTERNAL bool pwsp_events_link_new(pwsp_events *events, uint32_t waiter, uint32_t *list) {
    uint32_t id = events->free_link;
    if (id) {
        events->free_link = events->links[id].next;
    } else {
        uint64_t next = events->link_count ? events->link_count : 1;
        if (next >= PWSP_EVENTS_ID_LIMIT || !PWSP_GROW_LITTLE(&events->sim->memory, events->links,
                                                              events->link_capacity, next + 1)) {
            events->is_out_of_memory = true;
            return false;
        }
        events->link_count = next + 1;
        id = (uint32_t)next;
    }
    pwsp_events_link link = {waiter, *list};
    events->links[id] = link;
    *list = id;
    return true;
}

// A pipeline has no open dependence left: it starts.
static void pwsp_events_start_pipeline(pwsp_events *events, uint32_t id) {
    const pwsp_events_node *node = &events->nodes[id];
    pwsp_events_pipeline_node *more = &events->pipelines[node->cycles];
    pwsp_sim *sim = events->sim;
    pwsp_token ready = {node->time, pwsp_events_cause(events, id)};
    uint64_t start = pwsp_max_u64(node->time, node->clock), end = start + more->cycles;
    if (end > PTOWSP_CYCLES_MAX) {
        events->late = id;
        return;
    }
    uint64_t cause =
        pwsp_sim_place_records(sim, node->index, more->task_count, &ready, node->clock, start);
    more->end_task = more->end_task != PTOWSP_NO_INDEX ? more->end_task : cause;
    pwsp_sim_start_pipeline(sim, more->pipeline, more->run, start);
    sim->stats.stall_cycles[PTOWSP_STALL_DEPENDENCY] += start - node->clock;
    sim->stats.makespan_cycles = pwsp_max_u64(sim->stats.makespan_cycles, end);
    pwsp_events_queue_push(events, events->ends, end, id);
}

PWSP_INTERNAL PWSP_COLD void pwsp_events_open(pwsp_events *events, uint32_t id) {
    switch (events->nodes[id].kind) {
    case PWSP_EVENTS_PIPELINE: pwsp_events_start_pipeline(events, id); break;
    case PWSP_EVENTS_JOIN: pwsp_events_fire(events, id); break;
    default: pwsp_events_queue_push(events, events->turns, pwsp_events_turn(events, id), id); break;
    }
}

// Takes the first of a list of waiters.
PWSP_FORCE_INLINE uint32_t pwsp_events_list_take(pwsp_events *events, uint32_t *list) {
    const uint32_t at = *list, id = at & (PWSP_EVENTS_ID_LIMIT - 1);
    if (at >= PWSP_EVENTS_LAST) {
        *list = 0;
        return id;
    }
    if (at >= PWSP_EVENTS_OWN) {
        *list = events->nodes[id].next;
        events->nodes[id].is_linked = false;
        return id;
    }
    const pwsp_events_link link = events->links[id];
    events->links[id].next = events->free_link;
    events->free_link = id;
    *list = link.next;
    return link.node;
}

// Tells the waiters of one node.
static void pwsp_events_tell_those_of(pwsp_events *events, uint32_t id) {
    const uint64_t time = events->nodes[id].time, cause = pwsp_events_cause(events, id);
    uint32_t list = events->nodes[id].waiters;
    PTOWSP_ASSERT(events->nodes[id].is_done);
    events->nodes[id].waiters = 0;
    while (list) {
        const uint32_t waiter = pwsp_events_list_take(events, &list);
        pwsp_events_later(events, waiter, time, cause);
        pwsp_events_arrive(events, waiter);
    }
    pwsp_events_unref(events, id);  // the cause of its end
}

// Tells the waiters of joins that are done, and theirs in turn.
static void pwsp_events_settle(pwsp_events *events) {
    while (events->fired_count > 0) {
        pwsp_events_tell_those_of(events, events->fired[--events->fired_count]);
    }
}

PWSP_INTERNAL void pwsp_events_tell_waiters(pwsp_events *events, uint32_t id) {
    pwsp_events_tell_those_of(events, id);
    pwsp_events_settle(events);
}

PWSP_INTERNAL void pwsp_events_close(pwsp_events *events, uint64_t id) {
    pwsp_events_node *node = &events->nodes[id];
    if (node->kind == PWSP_EVENTS_OPEN_JOIN) {
        node->kind = PWSP_EVENTS_JOIN;
        pwsp_events_arrive(events, (uint32_t)id);
        pwsp_events_settle(events);
    }
}

// An open join of two nodes, with one reference, kept until done; 0 when memory is out.
static uint32_t pwsp_events_join(pwsp_events *events, uint64_t a, uint64_t b) {
    uint32_t id = pwsp_events_node_new(events);
    if (id) {
        events->nodes[id].kind = PWSP_EVENTS_OPEN_JOIN;
        events->nodes[id].refs = 2;
        events->nodes[id].pending = 1;  // until it is closed
        pwsp_events_wait(events, id, a);
        pwsp_events_wait(events, id, b);
    }
    return id;
}

// -- tokens, for the map of regions and for precedence --------------------------------------------

PWSP_INTERNAL bool pwsp_events_token_is_dead(void *user, const pwsp_token *token) {
    const pwsp_events *events = (const pwsp_events *)user;
    const pwsp_events_node *node = &events->nodes[token->task];
    bool is_done = node->is_done || (node->kind == PWSP_EVENTS_OPEN_JOIN && node->pending == 1);
    return is_done && node->time < events->now;
}

PWSP_INTERNAL void pwsp_events_token_visit(void *user, const pwsp_token *token) {
    pwsp_events *events = (pwsp_events *)user;
    pwsp_events_wait(events, events->current, token->task);
}

PWSP_INTERNAL void pwsp_events_token_keep(void *user, const pwsp_token *token) {
    pwsp_events_ref((pwsp_events *)user, token->task);
}

PWSP_INTERNAL void pwsp_events_token_drop(void *user, const pwsp_token *token) {
    pwsp_events *events = (pwsp_events *)user;
    if (token->task != PWSP_EVENTS_NONE) {
        pwsp_events_close(events, token->task);
        pwsp_events_unref(events, token->task);
    }
}

PWSP_INTERNAL void pwsp_events_token_merge(void *user, pwsp_token *into, const pwsp_token *other) {
    pwsp_events *events = (pwsp_events *)user;
    uint64_t before = into->task;
    if (events->nodes[before].kind == PWSP_EVENTS_OPEN_JOIN) {
        pwsp_events_wait(events, (uint32_t)before, other->task);
        return;
    }
    uint32_t join = pwsp_events_join(events, before, other->task);
    if (join) {
        into->task = join;
        pwsp_events_unref(events, before);
    }
}
