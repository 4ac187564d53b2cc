// Tensors that tasks access in tiles of one size, each from a multiple of it on, while tokens are
// times and tasks wait for all hazards.
//
// There two tiles are one or apart, and of each there are at most two accesses in the map: one that
// has written it, and one that stands for all its readers since. So the number of a tile, counted
// along rows, then from row to row and from matrix to matrix, leads to both at once, and nothing is
// compared. A task that accesses a tile twice in the same way, as those at the edge of a wavefront do, has
// one access for both. There is a page of 16 neighbours where one of them has an access, and nothing elsewhere:
//
//      tile 37 of tensor 2 -> page (2, 37 / 16), by a table of pages
//                          -> slots 37 % 16 * 2 = access 5, has written; and the next = access 9, reads
//
// The accesses are in the map: they have places, die, and are found as others are. But
// only their states are stored: their slots tell their tiles. When a tile comes that does not
// fit, something else looks at the tensor, or pages are mostly empty, its accesses move to the lists of the
// map, and stay there.

#ifndef PWSP_GRID_H
#define PWSP_GRID_H

#include "cells.h"

// Slots are numbered through all pages: a tile has one for the access that has written it, and then
// one for its readers. A slot holds the access, + 1, or 0.
#define PWSP_DEPS_PAGE_SLOTS (2 * PWSP_DEPS_PAGE)

// Sees whether a tensor's accesses can be in a grid of tiles like its first one, and notes it. False
// when memory is out.
PWSP_INTERNAL bool pwsp_deps_grid_begin(pwsp_deps *deps, const pwsp_tile_at *tile);

// The accesses of a tensor go to the lists of the map, and later ones, too. False when memory is out.
PWSP_INTERNAL bool pwsp_deps_grid_end(pwsp_deps *deps, uint32_t tensor);

// The page of a number, or 0; and one that is made for it, 0 when memory is out.
PWSP_INTERNAL uint32_t pwsp_deps_page_find(const pwsp_deps *deps, uint64_t number);
PWSP_INTERNAL uint32_t pwsp_deps_page_make(pwsp_deps *deps, uint64_t number);

// A page without accesses can be made for another number.
PWSP_INTERNAL void pwsp_deps_page_release(pwsp_deps *deps, uint32_t page);

// Forgets all pages.
PWSP_INTERNAL void pwsp_deps_pages_clear(pwsp_deps *deps);

// A tile of any tensor that is in a grid as one number: its key.
PWSP_INLINE uint64_t pwsp_deps_grid_key(uint32_t tensor, uint64_t number) {
    return (uint64_t)tensor << 32 | number;
}

// The tile of a key, except for how it is accessed.
PWSP_INTERNAL void pwsp_deps_grid_tile(const pwsp_deps *deps, uint64_t key, pwsp_tile_at *out);

// Do pages take too much memory: less than four accesses in each, on average? Or more than 16 GiB?
PWSP_INLINE bool pwsp_deps_pages_are_sparse(const pwsp_deps *deps) {
    return 4 * deps->pages_used > deps->access_count + 4 * PWSP_DEPS_PAGE ||
           deps->pages_used >= UINT32_MAX / PWSP_DEPS_PAGE_SLOTS - 1;
}

// Finds the number of a tile. False if it does not fit.
PWSP_FORCE_INLINE bool pwsp_deps_grid_number(const pwsp_deps_grid *grid, const pwsp_tile_at *tile,
                                             uint64_t *out_number) {
    const uint64_t at_row = (uint64_t)tile->row, at_col = (uint64_t)tile->col;
    const uint64_t row = at_row * grid->row_inverse >> 32, col = at_col * grid->col_inverse >> 32;
    const uint64_t matrix = ((uint64_t)tile->lead >> grid->place_shift) * grid->place_factor;
    // At the end of the tensor a tile is the rest.
    const uint64_t rows = pwsp_min_u64(grid->rows, grid->matrix_rows - at_row);
    const uint64_t cols = pwsp_min_u64(grid->cols, grid->matrix_cols - at_col);
    *out_number = (matrix * grid->row_tiles + row) * grid->col_tiles + col;
    const uint64_t differs = (row * grid->rows ^ at_row) | (col * grid->cols ^ at_col) |
                             (tile->rows ^ rows) | (tile->cols ^ cols);
    return (differs == 0) & (matrix < grid->matrix_count);
}

PWSP_FORCE_INLINE uint32_t pwsp_deps_grid_slot(uint32_t page, uint64_t key) {
    return page * PWSP_DEPS_PAGE_SLOTS + 2 * (uint32_t)(key % PWSP_DEPS_PAGE);
}

// The key of an access's tile.
PWSP_INLINE uint64_t pwsp_deps_slot_key(const pwsp_deps *deps, uint32_t slot) {
    return deps->pages[slot / PWSP_DEPS_PAGE_SLOTS].number * PWSP_DEPS_PAGE +
           slot % PWSP_DEPS_PAGE_SLOTS / 2;
}

// Empties the slot of an access that leaves.
PWSP_FORCE_INLINE void pwsp_deps_slot_clear(pwsp_deps *deps, uint32_t slot) {
    const uint32_t page = slot / PWSP_DEPS_PAGE_SLOTS;
    deps->slots[slot] = 0;
    if (--deps->pages[page].count == 0) {
        pwsp_deps_page_release(deps, page);
    }
}

// Removes an access from its slot.
PWSP_FORCE_INLINE void pwsp_deps_grid_leave(pwsp_deps *deps, uint32_t index) {
    pwsp_access_state *state = &deps->states[index];
    PTOWSP_ASSERT(state->flags & PWSP_ACCESS_GRID);
    state->flags &= (uint16_t) ~(PWSP_ACCESS_LINKED | PWSP_ACCESS_GRID);
    pwsp_deps_slot_clear(deps, state->cell);
}

#endif
