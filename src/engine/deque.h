// The ready tasks of a lane: a ring. The owner keeps the newest part to itself and offers the
// oldest to thieves.
//
//              top           split            bottom
//      ring:    |   public    |    private    |    free ...
//               thieves take  |               owner pushes and pops here
//               from here
//
// The owner works on the private part with plain loads and stores. One 64-bit word, which only
// compare-and-swap changes, describes the public part:
//
//      bits 63..32  tag: incremented by each publish of the owner
//      bits 31..16  split, modulo 2^16
//      bits 15..0   top, modulo 2^16
//
//      owner                                   thief
//      writes slots (relaxed)                  loads word (acquire) (2)
//      publish: split moves up, tag + 1 (1)    reads slots from top on (relaxed)
//      reclaim: split moves down               CAS top up by as many (release) (3)
//      push into a full ring: loads word (4)
//
// Invariants. Slots in [top, split) are not written. A thief's CAS succeeds only if the word is the
// one it has read. If the owner reclaims, overwrites and publishes meanwhile, the tag differs; so a
// successful CAS means that the slots read are valid. (1) releases to (2) the slots and all that
// led to their tasks. (4) acquires from (3): a slot is rewritten only after the thief has read it.
// (1) is sequentially consistent as well: see the sleeping of lanes in engine.h.
//
// Unlike the deque of Chase and Lev (2005), popping costs no fence and thieves take half at once.
// As in the split deques of Dinan et al. (2009), work must be made public before it can be stolen.

#ifndef PWSP_DEQUE_H
#define PWSP_DEQUE_H

#include "../base/atomic.h"
#include "../base/base.h"

#define PWSP_DEQUE_SIZE 512u

typedef struct pwsp_deque {
    uint32_t bottom, split;  // private: [split, bottom)
    uint32_t limit;          // limit of bottom: a past top + PWSP_DEQUE_SIZE
    char padding[PWSP_FALSE_SHARING];
    PWSP_ALIGNAS(8) uint64_t word;  // atomic
    char padding_after[PWSP_FALSE_SHARING];
    uint32_t slots[PWSP_DEQUE_SIZE];  // atomic
} pwsp_deque;

PWSP_INLINE uint64_t pwsp_deque_word(uint64_t tag, uint32_t split, uint32_t top) {
    return tag << 32 | (uint64_t)(split & 0xffff) << 16 | (top & 0xffff);
}

// The number of tasks that a word offers.
PWSP_INLINE uint32_t pwsp_deque_offers(uint64_t word) {
    return ((uint32_t)(word >> 16) - (uint32_t)word) & 0xffff;
}

PWSP_INLINE uint32_t pwsp_deque_held(const pwsp_deque *deque) {
    return deque->bottom - deque->split;
}

// Empties a deque that no lane uses.
PWSP_INLINE void pwsp_deque_reset(pwsp_deque *deque) {
    deque->bottom = 0;
    deque->split = 0;
    deque->limit = PWSP_DEQUE_SIZE;
    pwsp_store_relaxed(&deque->word, UINT64_C(0));
}

// Finds room, which thieves may have freed; false when the ring is full.
PWSP_INTERNAL bool pwsp_deque_has_room(pwsp_deque *deque);

// Requires free room.
PWSP_INLINE void pwsp_deque_push(pwsp_deque *deque, uint32_t task) {
    pwsp_store_relaxed(&deque->slots[deque->bottom % PWSP_DEQUE_SIZE], task);
    deque->bottom++;
}

// Requires that the private part is not empty.
PWSP_INLINE uint32_t pwsp_deque_pop(pwsp_deque *deque) {
    return pwsp_load_relaxed(&deque->slots[--deque->bottom % PWSP_DEQUE_SIZE]);
}

// Makes the `count` oldest private tasks public.
PWSP_INTERNAL void pwsp_deque_publish(pwsp_deque *deque, uint32_t count);

// Takes up to `count` of the newest public tasks back; returns how many.
PWSP_INTERNAL uint32_t pwsp_deque_reclaim(pwsp_deque *deque, uint32_t count);

// Takes half of the victim's public tasks, at least one and at most `most`, oldest first; returns
// how many. The owner may take from its own deque, too.
#define PWSP_DEQUE_STEAL_MAX (PWSP_DEQUE_SIZE / 2)
PWSP_INTERNAL uint32_t pwsp_deque_steal(pwsp_deque *victim, uint32_t most, uint32_t *out_tasks);

#endif
