// The pairing heaps of ready entries; see ready.h.
//
// A heap is a tree in which each entry precedes its children. Two heaps are melded by making one
// root the first child of the other. Taking the root out melds its children in pairs, and these one
// after another, which takes log n steps on average over all that were put in (Fredman, Sedgewick,
// Sleator and Tarjan, 1986).

#include "ready.h"

PWSP_INTERNAL uint32_t pwsp_ready_meld(pwsp_ready_links links, uint32_t a, uint32_t b) {
    if (a == PWSP_READY_NONE || b == PWSP_READY_NONE) {
        return a == PWSP_READY_NONE ? b : a;
    }
    const bool is_second = pwsp_ready_precedes(links, b, a);
    const uint32_t root = is_second ? b : a, child = is_second ? a : b;
    pwsp_ready_at(links, child)->next = pwsp_ready_at(links, root)->child;
    pwsp_ready_at(links, root)->child = child;
    return root;
}

PWSP_INTERNAL void pwsp_ready_pop_root(pwsp_ready_queue *queue, pwsp_ready_links links) {
    uint32_t heaps = pwsp_ready_at(links, queue->root)->child;
    uint32_t pairs = PWSP_READY_NONE, root = PWSP_READY_NONE;
    while (heaps != PWSP_READY_NONE) {
        const uint32_t a = heaps, b = pwsp_ready_at(links, a)->next;
        heaps = b == PWSP_READY_NONE ? PWSP_READY_NONE : pwsp_ready_at(links, b)->next;
        const uint32_t pair = pwsp_ready_meld(links, a, b);
        pwsp_ready_at(links, pair)->next = pairs;
        pairs = pair;
    }
    while (pairs != PWSP_READY_NONE) {  // the last pair first
        const uint32_t next = pwsp_ready_at(links, pairs)->next;
        root = pwsp_ready_meld(links, root, pairs);
        pairs = next;
    }
    queue->root = root;
}
