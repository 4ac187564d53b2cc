// A queue of ready entries, the one that goes first in front.
//
// Most entries become ready in the order in which they go. So a queue is two things: a list in that
// order, and a pairing heap of the entries that precede the last of the list when they come.
//
//      head -> 3 -> 5 -> 9 <- tail        root: 4 with the children 6 and 7
//
// The first entry is head or root. The owner keeps the links, one for each entry, so queues take no
// memory and an entry may be in any of them. Calls need the owner's lock, but for the count, which
// is read without.

#ifndef PWSP_READY_H
#define PWSP_READY_H

#include "../base/atomic.h"
#include "../base/base.h"

#define PWSP_READY_NONE UINT32_MAX

typedef struct pwsp_ready_link {
    uint32_t next;   // in the list, or the next child of the same parent
    uint32_t child;  // the first one; in the heap
} pwsp_ready_link;

// The order of the queues. Entries of which neither precedes the other go in any order.
typedef struct pwsp_ready_order {
    pwsp_ready_link *links;  // by entry
    bool (*precedes)(void *user, uint32_t a, uint32_t b);
    void *user;
} pwsp_ready_order;

typedef struct pwsp_ready_queue {
    uint32_t head, tail, root;
    uint32_t count;  // atomic
} pwsp_ready_queue;

PWSP_INTERNAL void pwsp_ready_init(pwsp_ready_queue *queue);
PWSP_INTERNAL void pwsp_ready_push(pwsp_ready_queue *queue, const pwsp_ready_order *order,
                                   uint32_t entry);

// The first entry, or PWSP_READY_NONE; and the same taken out, where there is one.
PWSP_INTERNAL uint32_t pwsp_ready_first(const pwsp_ready_queue *queue,
                                        const pwsp_ready_order *order);
PWSP_INTERNAL void pwsp_ready_pop(pwsp_ready_queue *queue, const pwsp_ready_order *order);

#endif
