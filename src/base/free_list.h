// Arrays whose items come and go: an item that was given back is taken again before the array grows. Free
// items are listed through a member of their own, the last one that was given back first.
//
//      PWSP_FREE_LIST(pwsp_flights, pwsp_flight, next)
//
// makes pwsp_flights_take and _give for a pwsp_flight *items, by ids from 1 to 2^31 - 1.

#ifndef PWSP_FREE_LIST_H
#define PWSP_FREE_LIST_H

#include "base.h"

#define PWSP_FREE_LIST_LIMIT (UINT32_C(1) << 31)

typedef struct pwsp_free_list {
    const pwsp_memory *memory;
    uint64_t count, capacity;  // of the array: items that have been taken, with 0, which none takes
    uint32_t first;            // free, or 0
} pwsp_free_list;

// No item is taken.
PWSP_INLINE void pwsp_free_list_begin(pwsp_free_list *list, const pwsp_memory *memory) {
    list->memory = memory;
    list->count = 1;
    list->first = 0;
}

// take: the id of an item with any contents, or 0 when memory or ids are out.
#define PWSP_FREE_LIST(name, item, next)                                                           \
    PWSP_INLINE uint32_t name##_take(item **items, pwsp_free_list *list) {                         \
        const uint32_t id = list->first;                                                           \
        if (PWSP_LIKELY(id)) {                                                                     \
            list->first = (*items)[id].next;                                                       \
            return id;                                                                             \
        }                                                                                          \
        return list->count < list->capacity ||                                                     \
                       (list->count < PWSP_FREE_LIST_LIMIT &&                                      \
                        PWSP_GROW_LITTLE(list->memory, *items, list->capacity, list->count + 1))   \
                   ? (uint32_t)list->count++                                                       \
                   : 0;                                                                            \
    }                                                                                              \
                                                                                                   \
    PWSP_INLINE void name##_give(item *items, pwsp_free_list *list, uint64_t id) {                 \
        items[id].next = list->first;                                                              \
        list->first = (uint32_t)id;                                                                \
    }

#endif
