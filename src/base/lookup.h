// Where the items of an array are, by their keys: a hash table whose slots have a place + 1, or 0. At
// most half of them are in use.
//
//      PWSP_LOOKUP(pwsp_states, pwsp_explorer, const pwsp_state *, pwsp_state_hash, pwsp_state_at,
//                  pwsp_state_is)
//
// makes pwsp_states_slot and pwsp_states_reserve by hash(of, key), key_at(of, place) and
// is_same(of, key, key), functions or macros, with a const pwsp_explorer *of.

#ifndef PWSP_LOOKUP_H
#define PWSP_LOOKUP_H

#include "base.h"

typedef struct pwsp_lookup {
    uint32_t *slots;
    uint64_t count;  // of slots: a power of two, or 0
} pwsp_lookup;

// slot: where a key is, or the free one where it belongs; there must be slots. reserve: makes room for one
// more item than `count`. False when memory is out, and nothing has changed.
#define PWSP_LOOKUP(name, owner, key, hash, key_at, is_same)                                       \
    PWSP_INLINE uint32_t *name##_slot(const owner *of, const pwsp_lookup *lookup, key sought) {    \
        for (uint64_t i = hash(of, sought);; i++) {                                                \
            uint32_t *slot = &lookup->slots[i & (lookup->count - 1)];                              \
            if (*slot == 0 || is_same(of, key_at(of, *slot - 1), sought)) {                        \
                return slot;                                                                       \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    PWSP_INLINE bool name##_reserve(const owner *of, pwsp_lookup *lookup,                          \
                                    const pwsp_memory *memory, uint64_t count) {                   \
        const pwsp_lookup before = *lookup;                                                        \
        if (2 * (count + 1) <= before.count) {                                                     \
            return true;                                                                           \
        }                                                                                          \
        lookup->count = before.count ? 2 * before.count : 64;                                      \
        if (!PWSP_ALLOC(memory, lookup->slots, lookup->count)) {                                   \
            *lookup = before;                                                                      \
            return false;                                                                          \
        }                                                                                          \
        PWSP_FREE(memory, before.slots, before.count);                                             \
        for (uint64_t i = 0; i < count; i++) {                                                     \
            *name##_slot(of, lookup, key_at(of, i)) = (uint32_t)i + 1;                             \
        }                                                                                          \
        return true;                                                                               \
    }

#endif
