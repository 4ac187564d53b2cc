// Lists and pairing heaps of ready entries; see ready.h.
//
// A heap is a tree in which each entry precedes its children. Two heaps are melded by making one
// root the first child of the other. Taking the root out melds its children in pairs, and these one
// after another, which takes log n steps on average over all that were put in (Fredman, Sedgewick,
// Sleator and Tarjan, 1986).

#include "ready.h"

PWSP_INTERNAL void pwsp_ready_init(pwsp_ready_queue *queue) {
    queue->head = queue->tail = queue->root = PWSP_READY_NONE;
    queue->count = 0;
}

static bool pwsp_ready_precedes(const pwsp_ready_order *order, uint32_t a, uint32_t b) {
    return order->precedes(order->user, a, b);
}

static uint32_t pwsp_ready_meld(const pwsp_ready_order *order, uint32_t a, uint32_t b) {
    if (a == PWSP_READY_NONE || b == PWSP_READY_NONE) {
        return a == PWSP_READY_NONE ? b : a;
    }
    bool is_second = pwsp_ready_precedes(order, b, a);
    uint32_t root = is_second ? b : a, child = is_second ? a : b;
    order->links[child].next = order->links[root].child;
    order->links[root].child = child;
    return root;
}

// Melds a list of heaps into one: in pairs, and then these, the last pair first.
static uint32_t pwsp_ready_meld_all(const pwsp_ready_order *order, uint32_t heaps) {
    pwsp_ready_link *links = order->links;
    uint32_t pairs = PWSP_READY_NONE, root = PWSP_READY_NONE;
    while (heaps != PWSP_READY_NONE) {
        uint32_t a = heaps, b = links[a].next;
        heaps = b == PWSP_READY_NONE ? PWSP_READY_NONE : links[b].next;
        uint32_t pair = pwsp_ready_meld(order, a, b);
        links[pair].next = pairs;
        pairs = pair;
    }
    while (pairs != PWSP_READY_NONE) {
        uint32_t next = links[pairs].next;
        root = pwsp_ready_meld(order, root, pairs);
        pairs = next;
    }
    return root;
}

PWSP_INTERNAL void pwsp_ready_push(pwsp_ready_queue *queue, const pwsp_ready_order *order,
                                   uint32_t entry) {
    pwsp_ready_link *links = order->links;
    links[entry].next = links[entry].child = PWSP_READY_NONE;
    if (queue->head == PWSP_READY_NONE) {
        queue->head = queue->tail = entry;
    } else if (pwsp_ready_precedes(order, entry, queue->tail)) {
        queue->root = pwsp_ready_meld(order, queue->root, entry);
    } else {
        links[queue->tail].next = entry;
        queue->tail = entry;
    }
    pwsp_store_seq_cst(&queue->count, pwsp_load_relaxed(&queue->count) + 1);
}

// Is the first entry the heap's?
static bool pwsp_ready_is_root(const pwsp_ready_queue *queue, const pwsp_ready_order *order) {
    return queue->root != PWSP_READY_NONE &&
           (queue->head == PWSP_READY_NONE || pwsp_ready_precedes(order, queue->root, queue->head));
}

PWSP_INTERNAL uint32_t pwsp_ready_first(const pwsp_ready_queue *queue,
                                        const pwsp_ready_order *order) {
    return pwsp_ready_is_root(queue, order) ? queue->root : queue->head;
}

PWSP_INTERNAL void pwsp_ready_pop(pwsp_ready_queue *queue, const pwsp_ready_order *order) {
    const pwsp_ready_link *links = order->links;
    PTOWSP_ASSERT(pwsp_load_relaxed(&queue->count) > 0);
    if (pwsp_ready_is_root(queue, order)) {
        queue->root = pwsp_ready_meld_all(order, links[queue->root].child);
    } else {
        queue->head = links[queue->head].next;
    }
    pwsp_store_seq_cst(&queue->count, pwsp_load_relaxed(&queue->count) - 1);
}
