// An access of a tile as stored in the map of regions, and the overlap test of two accesses.

#ifndef PWSP_ACCESS_H
#define PWSP_ACCESS_H

#include "deps.h"

PWSP_INLINE uint64_t pwsp_access_place(const pwsp_access *access) {
    uint64_t place;  // stored as one, and loaded as one: two halves would have to wait for stores
    memcpy(&place, access->place, sizeof place);
    return place;
}

PWSP_INLINE void pwsp_deps_access(const pwsp_deps *deps, const pwsp_tile_at *at,
                                  pwsp_access *access) {
    uint64_t place = (uint64_t)at->lead;
    access->row = access->col = 0;
    if (PWSP_LIKELY(deps->tensors[at->tensor].is_plain)) {
        access->row = (uint32_t)at->row;
        access->col = (uint32_t)at->col;
    } else {
        const pwsp_bound_tensor *tensor = &deps->bound[at->tensor];
        place += (uint64_t)at->row * (uint64_t)tensor->row_stride +
                 (uint64_t)at->col * (uint64_t)tensor->col_stride;
    }
    memcpy(access->place, &place, sizeof place);
    access->rows = at->rows;
    access->cols = at->cols;
    access->tensor = at->tensor;
}

// Of an access of a tensor that is not plain.
PWSP_INTERNAL pwsp_region pwsp_deps_region(const pwsp_deps *deps, const pwsp_access *at);

// The whole of a tensor counts as all bytes from its first element to its last.
PWSP_INLINE bool pwsp_deps_is_whole(const pwsp_access *at) {
    return at->rows == 0;
}

PWSP_INLINE bool pwsp_deps_same_matrix(const pwsp_access *a, const pwsp_access *b) {
    return a->tensor == b->tensor && pwsp_access_place(a) == pwsp_access_place(b);
}

PWSP_INLINE bool pwsp_deps_is_plain_equal(const pwsp_access *a, const pwsp_access *b) {
    return a->row == b->row && a->col == b->col && a->rows == b->rows && a->cols == b->cols &&
           pwsp_deps_same_matrix(a, b);
}

// Negative differences wrap around to values larger than any size.
PWSP_INLINE bool pwsp_deps_is_plain_overlap(const pwsp_access *a, const pwsp_access *b) {
    return (a->row - b->row < b->rows || b->row - a->row < a->rows) &&
           (a->col - b->col < b->cols || b->col - a->col < a->cols) && pwsp_deps_same_matrix(a, b);
}

PWSP_INTERNAL bool pwsp_deps_is_equal(const pwsp_deps *deps, bool is_plain, const pwsp_access *a,
                                      const pwsp_access *b);

PWSP_INTERNAL bool pwsp_deps_is_overlap(const pwsp_deps *deps, bool is_plain, const pwsp_access *a,
                                        const pwsp_access *b);

PWSP_INTERNAL bool pwsp_deps_is_within(const pwsp_deps *deps, bool is_plain,
                                       const pwsp_access *outer, const pwsp_access *inner);

#endif
