// Placing items with lifetimes in one block of memory: items that are never alive at the same point
// may have the same bytes.

#ifndef PWSP_PLACEMENT_H
#define PWSP_PLACEMENT_H

#include "../base/base.h"

// Alive from one point to another, inclusive.
typedef struct pwsp_lifetime {
    uint32_t first, last;
} pwsp_lifetime;

// An item. Its lifetimes are in order, without a point in common.
typedef struct pwsp_placed {
    const char *name;  // for errors
    uint64_t bytes;    // a multiple of the alignment that offsets shall have
    uint64_t offset;   // found here; 0 without bytes
    uint32_t first_lifetime, lifetime_count;
} pwsp_placed;

// The memory of a placement.
typedef struct pwsp_placement {
    uint64_t peak;   // bytes from 0 to the highest end of an item
    uint64_t sum;    // of all items
    uint64_t bound;  // the most bytes alive at one point: no placement has a lower peak
    uint32_t point;  // the first point where that is so
} pwsp_placement;

// Finds the offsets of count items by first fit: the largest item first, each at the lowest offset
// that no item alive at the same time has; or, where that takes less memory, in the order of first
// points. order has 2 * count cells, offsets count, alive point_count + 1: scratch. The sum of all
// bytes must be below 2^63. The result depends on the items alone.
// Cost     Of the order of count^2 steps.
PWSP_INTERNAL pwsp_placement pwsp_placement_find(pwsp_placed *items, uint32_t count,
                                                 const pwsp_lifetime *lifetimes,
                                                 uint32_t point_count, uint32_t *order,
                                                 uint64_t *offsets, uint64_t *alive);

#endif
