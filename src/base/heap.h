// Binary heaps in arrays, and the sort that follows from them: in place, n log n, not stable.
//
//      PWSP_HEAP(pwsp_places, uint32_t, pwsp_map, pwsp_place_is_before)
//
// makes pwsp_places_push, _pop, _sink and _make for a uint32_t *heap whose first item comes before all
// others, by pwsp_place_is_before(const pwsp_map *of, uint32_t a, uint32_t b). PWSP_SORT takes the same
// and makes one function of the given name, which puts all items in order.

#ifndef PWSP_HEAP_H
#define PWSP_HEAP_H

#include "base.h"

// sink: the subtree at `at`, whose top has no item, gets one. push: there are count items, and room for
// one more. pop: there are count items, at least one. make: an array in any order becomes a heap.
#define PWSP_HEAP(name, item, owner, is_before)                                                    \
    PWSP_INLINE void name##_sink(const owner *of, item *heap, uint64_t count, uint64_t at,         \
                                 item sunk) {                                                      \
        (void)of;                                                                                  \
        for (uint64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {                     \
            child += child + 1 < count && is_before(of, heap[child + 1], heap[child]);             \
            if (!is_before(of, heap[child], sunk)) {                                               \
                break;                                                                             \
            }                                                                                      \
            heap[at] = heap[child];                                                                \
            at = child;                                                                            \
        }                                                                                          \
        heap[at] = sunk;                                                                           \
    }                                                                                              \
                                                                                                   \
    PWSP_INLINE void name##_push(const owner *of, item *heap, uint64_t count, item added) {        \
        (void)of;                                                                                  \
        uint64_t at = count;                                                                       \
        for (; at > 0 && is_before(of, added, heap[(at - 1) / 2]); at = (at - 1) / 2) {            \
            heap[at] = heap[(at - 1) / 2];                                                         \
        }                                                                                          \
        heap[at] = added;                                                                          \
    }                                                                                              \
                                                                                                   \
    PWSP_INLINE item name##_pop(const owner *of, item *heap, uint64_t count) {                     \
        const item first = heap[0];                                                                \
        name##_sink(of, heap, count - 1, 0, heap[count - 1]);                                      \
        return first;                                                                              \
    }                                                                                              \
                                                                                                   \
    PWSP_INLINE void name##_make(const owner *of, item *heap, uint64_t count) {                    \
        for (uint64_t at = count / 2; at-- > 0;) {                                                 \
            name##_sink(of, heap, count, at, heap[at]);                                            \
        }                                                                                          \
    }

// The last item is on top of the heap, and goes to the end.
#define PWSP_SORT(name, item, owner, is_before)                                                    \
    PWSP_INLINE bool name##_is_after(const owner *of, item a, item b) {                            \
        (void)of;                                                                                  \
        return is_before(of, b, a);                                                                \
    }                                                                                              \
    PWSP_HEAP(name##_heap, item, owner, name##_is_after)                                           \
                                                                                                   \
    PWSP_INLINE void name(const owner *of, item *items, uint64_t count) {                          \
        name##_heap_make(of, items, count);                                                        \
        for (; count > 1; count--) {                                                               \
            items[count - 1] = name##_heap_pop(of, items, count);                                  \
        }                                                                                          \
    }

// The order of plain numbers, which needs no owner: NULL.
#define PWSP_IS_LESS(of, a, b) ((a) < (b))

PWSP_SORT(pwsp_sort_u64, uint64_t, void, PWSP_IS_LESS)

#endif
