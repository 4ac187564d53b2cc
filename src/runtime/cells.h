// The lists of the map of regions: by level and cell, with room for new accesses.

#ifndef PWSP_CELLS_H
#define PWSP_CELLS_H

#include "access.h"

#define PWSP_DEPS_SWEEP_MIN 1024  // accesses

// The position of an access in the grids of its group.
typedef struct pwsp_extent_at {
    uint64_t name;  // of the divided space: a matrix, or the memory of a group
    uint64_t row, rows, col, cols;
    bool is_wide;  // in no grid
} pwsp_extent_at;

// log2 of a size, rounded up.
PWSP_INLINE uint8_t pwsp_deps_log2(uint64_t size) {
    return size > 1 ? (uint8_t)(64 - __builtin_clzll(size - 1)) : 0;
}

// The extent of an access to a tensor that is not plain.
PWSP_INTERNAL void pwsp_deps_extent_of_bytes(const pwsp_deps *deps, const pwsp_access *at,
                                             pwsp_extent_at *extent);

PWSP_FORCE_INLINE void pwsp_deps_extent(const pwsp_deps *deps, const pwsp_access *at,
                                        pwsp_extent_at *extent) {
    extent->is_wide = pwsp_deps_is_whole(at);
    if (PWSP_UNLIKELY(extent->is_wide)) {
        return;
    }
    if (PWSP_UNLIKELY(!deps->tensors[at->tensor].is_plain)) {
        pwsp_deps_extent_of_bytes(deps, at, extent);
        return;
    }
    extent->name = pwsp_access_place(at) * UINT64_C(0x9e3779b97f4a7c15) + at->tensor;
    extent->row = at->row;
    extent->rows = at->rows;
    extent->col = at->col;
    extent->cols = at->cols;
}

// The hash of a cell: a mix of everything that identifies it. The upper half selects the list.
PWSP_INLINE uint64_t pwsp_deps_hash(const pwsp_extent_at *extent, uint32_t row_shift,
                                    uint32_t col_shift, uint64_t row, uint64_t col) {
    uint64_t z = extent->name + row_shift * 64u + col_shift;
    z = (z ^ (z >> 29)) * UINT64_C(0xbf58476d1ce4e5b9) + row * UINT64_C(0xd6e8feb86659fd93) +
        col * UINT64_C(0xa0761d6478bd642f);
    z = (z ^ (z >> 32)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

PWSP_INLINE uint32_t *pwsp_deps_bucket(const pwsp_deps *deps, uint64_t hash) {
    return &deps->buckets[((hash >> 32) * deps->bucket_count) >> 32];
}

// A link holds the next access, + 1, and some bits of its cell's hash. So accesses of other cells
// in the same list need not be touched.
PWSP_INLINE uint32_t pwsp_deps_linked(const pwsp_deps *deps, uint32_t link) {
    return (link & deps->index_mask) - 1;
}

// Enters an access into the list where queries look for it. The hint may be NULL. False when memory
// is out.
PWSP_INTERNAL bool pwsp_deps_enter(pwsp_deps *deps, uint32_t index, const pwsp_deps_hint *hint);

// An access has been removed from the list of its cell.
PWSP_INLINE void pwsp_deps_left(pwsp_deps *deps, const pwsp_access *access) {
    uint32_t id = deps->tensors[deps->tensors[access->tensor].group].levels;
    while (deps->levels[id].row_shift != access->row_shift ||
           deps->levels[id].col_shift != access->col_shift) {
        id = deps->levels[id].next;
        PTOWSP_ASSERT(id != 0);
    }
    pwsp_deps_level *level = &deps->levels[id];
    PTOWSP_ASSERT(level->count > 0);
    if (--level->count == 0) {
        level->row_over = level->col_over = false;
    }
}

// The list that contains an access.
PWSP_INTERNAL uint32_t *pwsp_deps_list(const pwsp_deps *deps, const pwsp_access *access);

// Removes an access from its list.
PWSP_INTERNAL void pwsp_deps_leave(pwsp_deps *deps, uint32_t index, uint32_t *list);

// -- tokens ---------------------------------------------------------------------------------------

PWSP_INLINE pwsp_token pwsp_deps_token(const pwsp_deps *deps, uint32_t index) {
    pwsp_token token = {0, PTOWSP_NO_INDEX};
    if (deps->ops.is_small) {
        token.task = deps->accesses[index].token;
    } else {
        token.time = deps->times[index];
        token.task = deps->has_tasks ? deps->tasks[index] : PTOWSP_NO_INDEX;
    }
    return token;
}

PWSP_INTERNAL void pwsp_deps_put_token(pwsp_deps *deps, uint32_t index, const pwsp_token *token);

PWSP_INLINE bool pwsp_deps_is_dead(const pwsp_deps *deps, uint32_t index) {
    if (deps->accesses[index].flags & PWSP_ACCESS_GONE) {
        return true;
    }
    if (!deps->ops.is_dead) {
        return deps->times[index] < deps->clock;
    }
    pwsp_token token = pwsp_deps_token(deps, index);
    return deps->ops.is_dead(deps->ops.user, &token);
}

PWSP_INTERNAL void pwsp_deps_drop(pwsp_deps *deps, uint32_t index);

// -- room -----------------------------------------------------------------------------------------

// Keeps only the living accesses, compactly. False when memory is out.
PWSP_INTERNAL bool pwsp_deps_sweep(pwsp_deps *deps);

// Advances the hand, which frees dead accesses, unless enough room is free for a full round. Must
// not be called between a query and adding: found accesses must keep their places. Lists are
// prefetched from memory while the hand looks for more.
PWSP_INTERNAL void pwsp_deps_make_room(pwsp_deps *deps, uint32_t count);

// A place for an access, + 1; 0 when memory is out.
PWSP_INTERNAL uint32_t pwsp_deps_place(pwsp_deps *deps);

#endif
