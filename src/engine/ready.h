// A queue of ready entries, the one that goes first in front: of cores, of simulated lanes, and of lanes.
//
// Most entries become ready in the order in which they go, or, when one event readies many, in the order
// reversed. So a queue is two things: a list in order, which grows at both ends, and a pairing heap of
// the entries that would go in between.
//
//      head -> 3 -> 5 -> 9 <- tail        root: 4 with the children 6 and 7
//
// The first entry is head or root. The owner keeps the links, one for each entry, alone or as the first
// member of something larger. So queues take no memory, and an entry may be in any of them. Calls need
// the owner's lock.
//
// Entries that go in the order in which they come are appended. They need one word each, `next`, and
// stand in the list alone.

#ifndef PWSP_READY_H
#define PWSP_READY_H

#include "../base/base.h"

#define PWSP_READY_NONE UINT32_MAX

// Key and number are set by the owner before an entry is put into a queue: a smaller key goes first, and
// of equal keys the smaller number.
typedef struct pwsp_ready_link {
    uint32_t next;   // in the list, or the next child of the same parent
    uint32_t child;  // the first one; in the heap
    uint64_t key, number;
} pwsp_ready_link;

typedef struct pwsp_ready_links {
    void *first;    // the link of entry 0, or its `next` alone
    size_t stride;  // bytes from one to the next
} pwsp_ready_links;

typedef struct pwsp_ready_queue {
    uint32_t head, tail, root;
} pwsp_ready_queue;

PWSP_INLINE pwsp_ready_link *pwsp_ready_at(pwsp_ready_links links, uint32_t entry) {
    return (pwsp_ready_link *)(void *)((char *)links.first + entry * links.stride);
}

PWSP_INLINE uint32_t *pwsp_ready_next(pwsp_ready_links links, uint32_t entry) {
    return (uint32_t *)(void *)((char *)links.first + entry * links.stride);
}

PWSP_INLINE bool pwsp_ready_precedes(pwsp_ready_links links, uint32_t a, uint32_t b) {
    const pwsp_ready_link *first = pwsp_ready_at(links, a), *second = pwsp_ready_at(links, b);
    return first->key < second->key ||
           (first->key == second->key && first->number < second->number);
}

PWSP_INLINE void pwsp_ready_init(pwsp_ready_queue *queue) {
    queue->head = queue->tail = queue->root = PWSP_READY_NONE;
}

PWSP_INLINE bool pwsp_ready_is_empty(const pwsp_ready_queue *queue) {
    return (queue->head & queue->root) == PWSP_READY_NONE;
}

// Melds two heaps, either may be NONE; returns the root.
PWSP_INTERNAL uint32_t pwsp_ready_meld(pwsp_ready_links links, uint32_t a, uint32_t b);

PWSP_INLINE void pwsp_ready_push(pwsp_ready_queue *queue, pwsp_ready_links links, uint32_t entry) {
    pwsp_ready_link *link = pwsp_ready_at(links, entry);
    link->next = link->child = PWSP_READY_NONE;
    if (queue->head == PWSP_READY_NONE) {
        queue->head = queue->tail = entry;
    } else if (!pwsp_ready_precedes(links, entry, queue->tail)) {
        pwsp_ready_at(links, queue->tail)->next = entry;
        queue->tail = entry;
    } else if (pwsp_ready_precedes(links, entry, queue->head)) {
        link->next = queue->head;
        queue->head = entry;
    } else {
        queue->root = pwsp_ready_meld(links, queue->root, entry);
    }
}

// Puts all entries of another queue, which have been appended there, after all that are in the queue,
// which have been appended, too.
PWSP_INLINE void pwsp_ready_append_all(pwsp_ready_queue *queue, pwsp_ready_links links,
                                       pwsp_ready_queue *other) {
    PTOWSP_ASSERT((queue->root & other->root) == PWSP_READY_NONE);
    if (other->head != PWSP_READY_NONE) {
        *(queue->head == PWSP_READY_NONE ? &queue->head : pwsp_ready_next(links, queue->tail)) =
            other->head;
        queue->tail = other->tail;
        pwsp_ready_init(other);
    }
}

// The same for one entry, which is in no queue.
PWSP_INLINE void pwsp_ready_append(pwsp_ready_queue *queue, pwsp_ready_links links,
                                   uint32_t entry) {
    pwsp_ready_queue one = {entry, entry, PWSP_READY_NONE};
    *pwsp_ready_next(links, entry) = PWSP_READY_NONE;
    pwsp_ready_append_all(queue, links, &one);
}

// The first entry, or PWSP_READY_NONE.
PWSP_INLINE uint32_t pwsp_ready_first(const pwsp_ready_queue *queue, pwsp_ready_links links) {
    const bool is_root =
        queue->root != PWSP_READY_NONE &&
        (queue->head == PWSP_READY_NONE || pwsp_ready_precedes(links, queue->root, queue->head));
    return is_root ? queue->root : queue->head;
}

// Takes the root out of the heap.
PWSP_INTERNAL void pwsp_ready_pop_root(pwsp_ready_queue *queue, pwsp_ready_links links);

// The first entry taken out. Requires that there is one.
PWSP_INLINE uint32_t pwsp_ready_pop(pwsp_ready_queue *queue, pwsp_ready_links links) {
    const uint32_t first = pwsp_ready_first(queue, links);
    PTOWSP_ASSERT(first != PWSP_READY_NONE);
    if (PWSP_LIKELY(first == queue->head)) {
        queue->head = *pwsp_ready_next(links, first);
    } else {
        pwsp_ready_pop_root(queue, links);
    }
    return first;
}

#endif
