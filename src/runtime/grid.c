// Grids begin and end, and their pages: grid.h explains them.

#include "grid.h"

#define PWSP_DEPS_NO_PAGE UINT64_MAX  // the number of a page that is free

// -- pages ----------------------------------------------------------------------------------------

// Runs of 16 pages stay together, as tasks access tiles one after another.
static uint32_t *pwsp_deps_page_head(const pwsp_deps *deps, uint64_t number) {
    const uint64_t run = number / 16 * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    return &deps->heads[(run * 16 + number % 16) & (deps->head_capacity - 1)];
}

PWSP_INTERNAL uint32_t pwsp_deps_page_find(const pwsp_deps *deps, uint64_t number) {
    uint32_t page = *pwsp_deps_page_head(deps, number);
    while (page && deps->pages[page].number != number) {
        page = deps->pages[page].next;
    }
    return page;
}

static void pwsp_deps_page_link(pwsp_deps *deps, uint32_t page) {
    uint32_t *head = pwsp_deps_page_head(deps, deps->pages[page].number);
    deps->pages[page].next = *head;
    *head = page;
}

// Makes room for the heads of a number of pages. False when memory is out.
static bool pwsp_deps_grow_heads(pwsp_deps *deps, uint64_t count) {
    if (count <= deps->head_capacity) {
        return true;
    }
    const uint64_t capacity = pwsp_max_u64(2 * deps->head_capacity, 16);
    uint32_t *heads;
    if (!PWSP_ALLOC(deps->memory, heads, capacity)) {
        return false;
    }
    PWSP_FREE(deps->memory, deps->heads, deps->head_capacity);
    deps->heads = heads;
    deps->head_capacity = capacity;
    for (uint32_t i = 1; i < deps->page_count; i++) {
        if (deps->pages[i].number != PWSP_DEPS_NO_PAGE) {
            pwsp_deps_page_link(deps, i);
        }
    }
    return true;
}

// Makes room for a number of pages. False when memory is out.
static bool pwsp_deps_grow_pages(pwsp_deps *deps, uint64_t count) {
    return PWSP_GROW_LITTLE(deps->memory, deps->pages, deps->page_capacity, count) &&
           pwsp_memory_grow_little(deps->memory, &deps->slots, &deps->slot_capacity, count,
                                   PWSP_DEPS_PAGE_SLOTS * sizeof(uint32_t)) &&
           pwsp_deps_grow_heads(deps, count);
}

// A page that is in no list; 0 when memory is out.
static uint32_t pwsp_deps_page_new(pwsp_deps *deps) {
    uint32_t page = deps->free_page;
    if (page) {
        deps->free_page = deps->pages[page].next;
        return page;
    }
    page = (uint32_t)deps->page_count;
    if (!pwsp_deps_grow_pages(deps, page + UINT64_C(1))) {
        return 0;
    }
    deps->page_count++;
    return page;
}

PWSP_INTERNAL uint32_t pwsp_deps_page_make(pwsp_deps *deps, uint64_t number) {
    const uint32_t page = pwsp_deps_page_new(deps);
    if (page) {
        memset(&deps->slots[(size_t)page * PWSP_DEPS_PAGE_SLOTS], 0,
               PWSP_DEPS_PAGE_SLOTS * sizeof(uint32_t));
        deps->pages[page].number = number;
        deps->pages[page].count = 0;
        pwsp_deps_page_link(deps, page);
        deps->pages_used++;
    }
    return page;
}

PWSP_INTERNAL void pwsp_deps_page_release(pwsp_deps *deps, uint32_t page) {
    uint32_t *at = pwsp_deps_page_head(deps, deps->pages[page].number);
    while (*at != page) {
        PTOWSP_ASSERT(*at != 0);  // it is in its list
        at = &deps->pages[*at].next;
    }
    *at = deps->pages[page].next;
    deps->pages[page].number = PWSP_DEPS_NO_PAGE;
    deps->pages[page].next = deps->free_page;
    deps->free_page = page;
    deps->pages_used--;
}

PWSP_INTERNAL void pwsp_deps_pages_clear(pwsp_deps *deps) {
    if (deps->heads) {
        memset(deps->heads, 0, (size_t)deps->head_capacity * sizeof(uint32_t));
    }
    deps->page_count = deps->page_count ? 1 : 0;
    deps->pages_used = 0;
    deps->free_page = 0;
    memset(deps->queries, 0, deps->query_count * sizeof *deps->queries);
    if (deps->grids) {
        memset(deps->grids, 0, deps->tensor_count * sizeof *deps->grids);
    }
}

// -- grids ----------------------------------------------------------------------------------------

// Memory of all grids, and an unused page 0. False when memory is out.
static bool pwsp_deps_grids_make(pwsp_deps *deps) {
    if (!deps->grids && !PWSP_ALLOC(deps->memory, deps->grids, deps->tensor_count)) {
        return false;
    }
    if (deps->page_count == 0) {
        if (!pwsp_deps_grow_pages(deps, 1)) {
            return false;
        }
        memset(deps->slots, 0, PWSP_DEPS_PAGE_SLOTS * sizeof(uint32_t));
        deps->pages[0].number = PWSP_DEPS_NO_PAGE;
        deps->page_count = 1;
    }
    return true;
}

// The number of a tensor's matrices, as their places count them; 0 if that is not known.
static uint64_t pwsp_deps_count_matrices(const pwsp_bound_tensor *bound, uint64_t step) {
    uint64_t last = 0;
    for (uint32_t i = 0; i < PWSP_TENSOR_LEAD_MAX; i++) {
        if (bound->lead_shape[i] > 1) {
            uint64_t reach;
            if (bound->lead_strides[i] < 0 ||
                !pwsp_mul_fits((uint64_t)bound->lead_shape[i] - 1, (uint64_t)bound->lead_strides[i],
                               &reach)) {
                return 0;
            }
            last = pwsp_sum_u64(last, reach);
        }
    }
    return step ? last / step + 1 : 1;
}

// Describes the grid of a plain tensor's tiles. False if they have no numbers below 2^32.
static bool pwsp_deps_grid_describe(const pwsp_deps *deps, const pwsp_tile_at *tile,
                                    pwsp_deps_grid *grid) {
    const pwsp_bound_tensor *bound = &deps->bound[tile->tensor];
    const uint64_t rows = (uint64_t)bound->rows, cols = (uint64_t)bound->cols;
    const uint64_t step = pwsp_deps_matrix_step(bound);
    uint64_t count, number;
    memset(grid, 0, sizeof *grid);
    grid->rows = tile->rows;
    grid->cols = tile->cols;
    grid->row_inverse = pwsp_ceil_div_u64(UINT64_C(1) << 32, tile->rows);
    grid->col_inverse = pwsp_ceil_div_u64(UINT64_C(1) << 32, tile->cols);
    grid->row_tiles = pwsp_ceil_div_u64(rows, tile->rows);
    grid->col_tiles = pwsp_ceil_div_u64(cols, tile->cols);
    grid->matrix_rows = rows;
    grid->matrix_cols = cols;
    grid->matrix_step = step;
    grid->matrix_count = pwsp_deps_count_matrices(bound, step);
    if (step) {
        grid->place_shift = (uint8_t)__builtin_ctzll(step);
        grid->place_factor = pwsp_deps_inverse(step >> grid->place_shift);
    }
    // Dividing by an inverse is exact as long as these products are below 2^32.
    return ((rows * tile->rows) | (cols * tile->cols)) >> 32 == 0 &&
           pwsp_mul_fits(grid->row_tiles * grid->col_tiles, grid->matrix_count, &count) &&
           count >> 32 == 0 && pwsp_deps_grid_number(grid, tile, &number);
}

PWSP_INTERNAL bool pwsp_deps_grid_begin(pwsp_deps *deps, const pwsp_tile_at *tile) {
    pwsp_deps_tensor *tensor = &deps->tensors[tile->tensor];
    PTOWSP_ASSERT(tensor->form == PWSP_DEPS_UNSEEN);
    tensor->form = PWSP_DEPS_LISTS;
    if (!tensor->is_plain || !tensor->is_tracked || tensor->is_loaded || tile->rows == 0) {
        return true;
    }
    if (!pwsp_deps_grids_make(deps)) {
        return false;
    }
    if (pwsp_deps_grid_describe(deps, tile, &deps->grids[tile->tensor])) {
        tensor->form = PWSP_DEPS_GRID;
    } else {
        deps->grids[tile->tensor].matrix_count = 0;
    }
    return true;
}

PWSP_INTERNAL void pwsp_deps_grid_tile(const pwsp_deps *deps, uint64_t key, pwsp_tile_at *out) {
    const pwsp_deps_grid *grid = &deps->grids[key >> 32];
    const uint64_t number = key & UINT32_MAX, row = number / grid->col_tiles;
    const uint64_t at_row = row % grid->row_tiles * grid->rows;
    const uint64_t at_col = number % grid->col_tiles * grid->cols;
    out->tensor = (uint32_t)(key >> 32);
    out->lead = (int64_t)(row / grid->row_tiles * grid->matrix_step);
    out->row = (int64_t)at_row;
    out->col = (int64_t)at_col;
    out->rows = (uint32_t)pwsp_min_u64(grid->rows, grid->matrix_rows - at_row);
    out->cols = (uint32_t)pwsp_min_u64(grid->cols, grid->matrix_cols - at_col);
}

// Turns an access of a grid into an access of lists.
static void pwsp_deps_grid_unmake(pwsp_deps *deps, uint32_t index) {
    pwsp_access_state *state = &deps->states[index];
    pwsp_tile_at at;
    pwsp_deps_grid_tile(deps, pwsp_deps_slot_key(deps, state->cell), &at);
    pwsp_deps_grid_leave(deps, index);
    pwsp_deps_access(deps, &at, &deps->accesses[index]);
    state->flags |= PWSP_ACCESS_LINKED;
}

PWSP_INTERNAL bool pwsp_deps_grid_end(pwsp_deps *deps, uint32_t tensor) {
    PTOWSP_ASSERT(deps->tensors[tensor].form == PWSP_DEPS_GRID);
    deps->tensors[tensor].form = PWSP_DEPS_LISTS_SINCE;
    deps->grids[tensor].matrix_count = 0;
    if (!pwsp_deps_widen(deps)) {
        return false;
    }
    for (uint32_t i = 0; i < deps->access_count; i++) {
        const pwsp_access_state *state = &deps->states[i];
        if ((state->flags & PWSP_ACCESS_GRID) &&
            pwsp_deps_slot_key(deps, state->cell) >> 32 == tensor) {
            pwsp_deps_grid_unmake(deps, i);
            if (!pwsp_deps_enter(deps, i)) {
                return false;
            }
        }
    }
    return true;
}
