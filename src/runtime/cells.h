// The lists of the map of regions: by level and cell, with room for new accesses.

#ifndef PWSP_CELLS_H
#define PWSP_CELLS_H

#include "access.h"

#define PWSP_DEPS_SWEEP_MIN 1024  // accesses
#define PWSP_DEPS_RUN       64u   // cells

// The position of an access in the grids of its group.
typedef struct pwsp_extent_at {
    uint64_t place;  // of the divided matrix; of the memory of a group 0
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
    extent->place = pwsp_access_place(at);
    extent->row = at->row;
    extent->rows = at->rows;
    extent->col = at->col;
    extent->cols = at->cols;
}

// The hash of a cell. Runs of cells stay together, so that tiles that tasks access one after
// another have their lists in the same lines of memory, and the runs are scattered, so that no
// distance of tiles makes lists long.
PWSP_INLINE uint32_t pwsp_deps_cell(const pwsp_deps_level *level, uint64_t place, uint64_t row,
                                    uint64_t col) {
    const uint64_t number = level->first + (place >> level->place_shift) * level->place_factor +
                            row * level->row_cells + col;
    const uint64_t run = number / PWSP_DEPS_RUN * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(run >> 32) / PWSP_DEPS_RUN * PWSP_DEPS_RUN + (uint32_t)number % PWSP_DEPS_RUN;
}

// The list of a cell.
PWSP_INLINE uint32_t *pwsp_deps_bucket(const pwsp_deps *deps, uint32_t cell) {
    const uint64_t run = (cell * (deps->bucket_count / PWSP_DEPS_RUN)) >> 32;
    return &deps->buckets[run * PWSP_DEPS_RUN + cell % PWSP_DEPS_RUN];
}

// A link holds the next access, + 1, and some bits that its cell is known by. So accesses of other
// cells in the same list need not be touched.
PWSP_INLINE uint32_t pwsp_deps_linked(const pwsp_deps *deps, uint32_t link) {
    return (link & deps->index_mask) - 1;
}

PWSP_INLINE uint32_t pwsp_deps_mark(uint32_t cell) {
    return cell * UINT32_C(0x9e3779b1);
}

// Puts an access into a list.
PWSP_INLINE void pwsp_deps_push(pwsp_deps *deps, uint32_t *list, uint32_t index, uint32_t cell) {
    PTOWSP_ASSERT(index < deps->access_count && index < deps->index_mask);
    PTOWSP_ASSERT(!(deps->states[index].flags & PWSP_ACCESS_FREE));
    deps->nexts[index] = *list;
    *list = (pwsp_deps_mark(cell) & ~deps->index_mask) | (index + 1);
}

// Enters an access of a level into the list of its cell.
PWSP_INLINE void pwsp_deps_enter_cell(pwsp_deps *deps, uint32_t index, uint32_t level,
                                      uint32_t cell, bool row_over, bool col_over) {
    pwsp_access_state *state = &deps->states[index];
    pwsp_deps_level *entered = &deps->levels[level];
    state->flags |= PWSP_ACCESS_LINKED;
    state->level = (uint16_t)level;
    state->cell = deps->ops.is_small ? state->token : cell;
    entered->count++;
    entered->row_over |= row_over;
    entered->col_over |= col_over;
    pwsp_deps_push(deps, pwsp_deps_bucket(deps, cell), index, cell);
}

// Enters an access into the list where queries look for it. False when memory is out.
PWSP_INTERNAL bool pwsp_deps_enter(pwsp_deps *deps, uint32_t index);

// An access has been removed from the list of its cell.
PWSP_INLINE void pwsp_deps_left(pwsp_deps *deps, uint32_t index) {
    pwsp_deps_level *level = &deps->levels[deps->states[index].level];
    PTOWSP_ASSERT(deps->states[index].level > 0 && level->count > 0);
    if (--level->count == 0) {
        level->row_over = level->col_over = false;
    }
}

// The list that contains an access.
PWSP_INLINE uint32_t *pwsp_deps_list(const pwsp_deps *deps, uint32_t index) {
    const pwsp_access *access = &deps->accesses[index];
    const pwsp_access_state *state = &deps->states[index];
    if (PWSP_UNLIKELY(state->level == 0)) {
        return &deps->tensors[deps->tensors[access->tensor].group].wides;
    }
    if (!deps->ops.is_small) {
        return pwsp_deps_bucket(deps, state->cell);
    }
    const pwsp_deps_level *level = &deps->levels[state->level];
    pwsp_extent_at at = {0, 0, 0, 0, 0, false};
    pwsp_deps_extent(deps, access, &at);
    return pwsp_deps_bucket(deps, pwsp_deps_cell(level, at.place, at.row >> level->row_shift,
                                                 at.col >> level->col_shift));
}

// Removes an access from its list.
PWSP_INLINE void pwsp_deps_leave(pwsp_deps *deps, uint32_t index, uint32_t *list) {
    pwsp_access_state *state = &deps->states[index];
    uint32_t *at = list;
    PTOWSP_ASSERT(state->flags & PWSP_ACCESS_LINKED);
    state->flags &= (uint16_t)~PWSP_ACCESS_LINKED;
    if (state->level) {
        pwsp_deps_left(deps, index);
    }
    while (pwsp_deps_linked(deps, *at) != index) {
        PTOWSP_ASSERT(*at != 0);  // it is in its list
        at = &deps->nexts[pwsp_deps_linked(deps, *at)];
    }
    *at = deps->nexts[index];
}

// The number that is odd's inverse modulo 2^64.
PWSP_INTERNAL uint64_t pwsp_deps_inverse(uint64_t odd);

// The greatest common divisor of a tensor's leading strides. The places of its matrices are its
// multiples; 0 if there is one matrix. Dividing by it is multiplying by an inverse.
PWSP_INTERNAL uint64_t pwsp_deps_matrix_step(const pwsp_bound_tensor *bound);

// The cells of a level that may hold the start of an access overlapping an extent.
typedef struct pwsp_cells {
    uint64_t first_row, last_row, first_col, last_col;
} pwsp_cells;

PWSP_INLINE pwsp_cells pwsp_deps_cells(const pwsp_deps_level *level, const pwsp_extent_at *extent) {
    pwsp_cells cells;
    cells.first_row = extent->row >> level->row_shift;
    cells.first_col = extent->col >> level->col_shift;
    cells.last_row = (extent->row + extent->rows - 1) >> level->row_shift;
    cells.last_col = (extent->col + extent->cols - 1) >> level->col_shift;
    cells.first_row -= cells.first_row > 0 ? level->row_over : 0;
    cells.first_col -= cells.first_col > 0 ? level->col_over : 0;
    return cells;
}

// Are there more cells to visit than accesses?
PWSP_INLINE bool pwsp_deps_is_large(const pwsp_cells *cells, uint64_t access_count) {
    uint64_t rows = cells->last_row - cells->first_row + 1;
    uint64_t cols = cells->last_col - cells->first_col + 1, count;
    return (rows | cols) > 4 && (!pwsp_mul_fits(rows, cols, &count) || count > access_count);
}

// Would a level have cells of this size for tiles of that one: the next power of two? That is, is
// 2^shift < 2 * size <= 2^(shift + 1)?
PWSP_INLINE bool pwsp_deps_is_fit(uint8_t shift, uint64_t size) {
    return (2 * size - 1) >> shift == 1;
}

// May the access of a query go to its cell? The level may have been reused for other tiles since.
PWSP_FORCE_INLINE bool pwsp_deps_is_cell_good(const pwsp_deps *deps,
                                              const pwsp_deps_query_state *query) {
    if (!query->level || !query->is_fit) {
        return false;
    }
    const pwsp_deps_level *level = &deps->levels[query->level];
    return level->row_shift == query->row_shift && level->col_shift == query->col_shift;
}

// -- tokens ---------------------------------------------------------------------------------------

PWSP_INLINE pwsp_token pwsp_deps_token(const pwsp_deps *deps, uint32_t index) {
    pwsp_token token = {0, PTOWSP_NO_INDEX};
    if (deps->ops.is_small) {
        token.task = deps->states[index].token;
    } else {
        token.time = deps->times[index];
        token.task = deps->has_tasks ? deps->tasks[index] : PTOWSP_NO_INDEX;
    }
    return token;
}

PWSP_INLINE void pwsp_deps_put_token(pwsp_deps *deps, uint32_t index, const pwsp_token *token) {
    if (deps->ops.is_small) {
        PTOWSP_ASSERT(token->time == 0 && token->task <= UINT32_MAX);
        deps->states[index].token = (uint32_t)token->task;
    } else {
        deps->times[index] = token->time;
        if (deps->has_tasks) {
            deps->tasks[index] = token->task;
        }
    }
}

PWSP_INLINE bool pwsp_deps_is_dead(const pwsp_deps *deps, uint32_t index) {
    if (deps->states[index].flags & PWSP_ACCESS_GONE) {
        return true;
    }
    if (!deps->ops.is_dead) {
        return deps->times[index] < deps->clock;
    }
    pwsp_token token = pwsp_deps_token(deps, index);
    return deps->ops.is_dead(deps->ops.user, &token);
}

// An access is not waited for any more.
PWSP_INLINE void pwsp_deps_drop(pwsp_deps *deps, uint32_t index) {
    pwsp_access_state *state = &deps->states[index];
    if (!(state->flags & PWSP_ACCESS_GONE)) {
        state->flags |= PWSP_ACCESS_GONE;
        if (!deps->ops.is_dead) {
            deps->times[index] = 0;  // the hand looks here first
        }
        if (deps->ops.drop) {
            pwsp_token token = pwsp_deps_token(deps, index);
            deps->ops.drop(deps->ops.user, &token);
        }
    }
}

// -- room -----------------------------------------------------------------------------------------

// Keeps only the living accesses, compactly. False when memory is out.
PWSP_INTERNAL bool pwsp_deps_sweep(pwsp_deps *deps);

// Advances the hand, which frees dead accesses, unless enough room is free for a full round. Must
// not be called between a query and adding: found accesses must keep their places. Lists are
// prefetched from memory while the hand looks for more.
PWSP_INTERNAL void pwsp_deps_make_room(pwsp_deps *deps, uint32_t count);

// Makes room in lists for all accesses there are. False when memory is out.
PWSP_INTERNAL bool pwsp_deps_widen(pwsp_deps *deps);

// A place for an access, + 1, after all others; 0 when memory is out.
PWSP_INTERNAL uint32_t pwsp_deps_place_new(pwsp_deps *deps);

// A place for an access, + 1, or 0.
PWSP_INLINE uint32_t pwsp_deps_place(pwsp_deps *deps) {
    uint32_t index = deps->free_first;
    if (deps->free_count == 0) {
        return pwsp_deps_place_new(deps);
    }
    PTOWSP_ASSERT(deps->states[index].flags & PWSP_ACCESS_FREE);
    deps->free_first = deps->states[index].next;
    deps->free_count--;
    return index + 1;
}

#endif
