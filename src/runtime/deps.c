// The map of regions.
//
// A tensor whose indices all have memory of their own, and which shares none with another tensor,
// is *plain*: two tiles of it overlap exactly when their leading indices are the same and their
// windows intersect. For plain tensors the last two dimensions are covered by grids. Tensors that
// are not plain are in a group with those whose memory they may share (groups.c); the grid of a
// group is one of blocks of addresses, and tiles are compared byte by byte.
//
// There is a grid for each size of tiles, rounded up to powers of two: a *level*. So a tile is not
// larger than a cell of its level, and it is in the list of one cell: that in which it begins.
//
//      +-----+-----+-----+        Tiles of the usual tiling are cells: looking one up is one probe
//      |  A  |  BBBBB    |        of a table of lists for each level in use. Once a tile of one
//      +-----+--BBBBB----+        runs over into the next cell (B), queries of the level begin one
//      |     |     |     |        cell earlier.
//      +-----+-----+-----+
//
// The cells of a level are numbered along rows, then from row to row and from matrix to matrix. The
// table keeps runs of 64 numbers together and scatters the runs: tiles that tasks access one after
// another have neighbouring lists, which are as long as each other, so neither the cache nor the
// prediction of branches misses often.
//
// Where all tiles of a tensor are one tiling, and tokens are times, it has a grid instead of lists: grid.h.
//
// A panel among small tiles has a level of its own. Small tiles find it with one probe; the panel
// looks at as many small cells as it covers, or at all accesses if these are fewer. Levels are few:
// a tile goes to a level in use that is at most four times too large. So does a tile that the end
// of its tensor has cut off, whatever its size. A level without tiles is reused. Whole tensors are
// in a list of their group that every query looks through, and their queries compare with all
// accesses.
//
// A write makes older accesses within its tile invisible. Writers in the tile cease to be the
// last ones: readers wait for the new writer, and so do writers, if they wait. (Slot loads still look
// at them where a write does not wait for writes, so there they are hidden and not dropped.)
// Readers in the tile stay where later writers wait for readers but not for the new writer.
// Accesses of tasks that ended before the clock are dead, and new accesses take their places. A
// hand goes round all accesses, a few steps for each new one, so the map is hardly larger than the
// tasks in flight.
//
// The dependences found, and so the memory they take, do not depend on the order of lists or on
// hash collisions: only accesses that overlap a query are touched.

#include "meet.h"

// -- queries --------------------------------------------------------------------------------------

// Finds the cell in which an extent begins, in the newest level of its group.
PWSP_FORCE_INLINE void pwsp_deps_find_cell(const pwsp_deps *deps, const pwsp_deps_tensor *first,
                                           const pwsp_extent_at *extent,
                                           pwsp_deps_query_state *query) {
    query->level = first->levels;
    query->is_cell = false;
    if (PWSP_UNLIKELY(!query->level)) {
        return;
    }
    const pwsp_deps_level *level = &deps->levels[query->level];
    const uint8_t row_shift = level->row_shift, col_shift = level->col_shift;
    const uint64_t row = extent->row >> row_shift, col = extent->col >> col_shift;
    query->row_shift = row_shift;
    query->col_shift = col_shift;
    query->is_fit =
        pwsp_deps_is_fit(row_shift, extent->rows) && pwsp_deps_is_fit(col_shift, extent->cols);
    query->row_over = (extent->row + extent->rows - 1) >> row_shift != row;
    query->col_over = (extent->col + extent->cols - 1) >> col_shift != col;
    query->cell = pwsp_deps_cell(level, extent->place, row, col);
    query->is_cell = !(level->next | first->wides | query->row_over | query->col_over |
                       level->row_over | level->col_over);
    PWSP_PREFETCH(pwsp_deps_bucket(deps, query->cell));
}

// The same for tensors that are not plain, and whole ones.
static void pwsp_deps_find_other_cell(const pwsp_deps *deps, pwsp_deps_query_state *query) {
    pwsp_extent_at extent;
    pwsp_deps_extent(deps, &query->at, &extent);
    query->level = 0;
    query->is_cell = false;
    if (!extent.is_wide) {
        const uint32_t group = deps->tensors[query->at.tensor].group;
        pwsp_deps_find_cell(deps, &deps->tensors[group], &extent, query);
    }
}

// Fields that do not depend on other findings, so that they can be prefetched from memory.
PWSP_FORCE_INLINE void pwsp_deps_prepare(const pwsp_deps *deps, const pwsp_tile_at *tile,
                                         pwsp_deps_query_state *query) {
    const pwsp_deps_tensor *tensor = &deps->tensors[tile->tensor];
    pwsp_deps_access(deps, tile, &query->at);
    query->is_plain = tensor->is_plain;
    query->same = 0;
    if (PWSP_LIKELY(tensor->is_plain && tile->rows)) {
        const pwsp_extent_at extent = {(uint64_t)tile->lead, (uint32_t)tile->row, tile->rows,
                                       (uint32_t)tile->col,  tile->cols,          false};
        pwsp_deps_find_cell(deps, tensor, &extent, query);
    } else {
        pwsp_deps_find_other_cell(deps, query);
    }
}

// Visits the accesses of a group that have no cell.
static void pwsp_deps_walk_wides(pwsp_deps *deps, pwsp_deps_query_state *query, uint32_t *list) {
    uint32_t *at = list;
    while (*at) {
        uint32_t index = pwsp_deps_linked(deps, *at);
        if (pwsp_deps_meet(deps, query, index)) {
            *at = deps->nexts[index];
            deps->states[index].flags &= (uint16_t)~PWSP_ACCESS_LINKED;
            pwsp_deps_drop(deps, index);
        } else {
            at = &deps->nexts[index];
        }
    }
}

static void pwsp_deps_meet_all(pwsp_deps *deps, pwsp_deps_query_state *query) {
    uint64_t dead = 0;
    for (uint32_t i = 0; i < deps->access_count; i++) {
        if (pwsp_deps_is_dead(deps, i)) {
            dead++;
        } else if (!(deps->states[i].flags & PWSP_ACCESS_GRID)) {  // of other tensors
            pwsp_deps_meet(deps, query, i);
        }
    }
    deps->wants_sweep = deps->access_count >= PWSP_DEPS_SWEEP_MIN && dead > deps->access_count / 2;
}

// The identical tile is in a level not smaller than the tile, and begins in the same cell.
static void pwsp_deps_look_exact(pwsp_deps *deps, pwsp_deps_query_state *query, uint32_t levels,
                                 const pwsp_extent_at *extent) {
    for (uint32_t id = levels; id; id = deps->levels[id].next) {
        const pwsp_deps_level *level = &deps->levels[id];
        if (level->count && extent->rows - 1 <= (UINT64_C(1) << level->row_shift) - 1 &&
            extent->cols - 1 <= (UINT64_C(1) << level->col_shift) - 1) {
            pwsp_deps_walk(deps, query,
                           pwsp_deps_cell(level, extent->place, extent->row >> level->row_shift,
                                          extent->col >> level->col_shift));
        }
    }
}

static void pwsp_deps_look(pwsp_deps *deps, pwsp_deps_query_state *query) {
    pwsp_deps_tensor *first = &deps->tensors[deps->tensors[query->at.tensor].group];
    pwsp_extent_at extent;
    if (first->wides) {
        pwsp_deps_walk_wides(deps, query, &first->wides);
    }
    if (!first->levels && first->form != PWSP_DEPS_LISTS_SINCE) {
        return;
    }
    pwsp_deps_extent(deps, &query->at, &extent);
    if (extent.is_wide) {
        pwsp_deps_meet_all(deps, query);
        return;
    }
    if (query->is_exact) {
        pwsp_deps_look_exact(deps, query, first->levels, &extent);
        return;
    }
    for (uint32_t id = first->levels; id; id = deps->levels[id].next) {
        const pwsp_deps_level *level = &deps->levels[id];
        if (level->count == 0) {
            continue;
        }
        pwsp_cells cells = pwsp_deps_cells(level, &extent);
        if (id == query->level && cells.first_row == cells.last_row &&
            cells.first_col == cells.last_col) {
            pwsp_deps_walk(deps, query, query->cell);
            continue;
        }
        if (pwsp_deps_is_large(&cells, deps->access_count)) {
            pwsp_deps_meet_all(deps, query);
            return;
        }
        for (uint64_t row = cells.first_row; row <= cells.last_row; row++) {
            for (uint64_t col = cells.first_col; col <= cells.last_col; col++) {
                pwsp_deps_walk(deps, query, pwsp_deps_cell(level, extent.place, row, col));
            }
        }
    }
}

// Looks for the dependences of a tile that has been prepared.
PWSP_FORCE_INLINE void pwsp_deps_query_tile(pwsp_deps *deps, uint32_t access,
                                            pwsp_deps_query_state *query) {
    query->is_load = false;
    query->is_read = (access & PWSP_TILE_READ) != 0;
    query->is_written = (access & PWSP_TILE_WRITTEN) != 0;
    query->is_exact = !deps->is_overlap;
    query->supersedes = deps->is_one_pass && query->is_written;
    query->token = NULL;
    if (PWSP_LIKELY(query->is_cell && !query->is_exact)) {
        pwsp_deps_walk(deps, query, query->cell);
    } else {
        pwsp_deps_look(deps, query);
    }
}

static bool pwsp_deps_has_grids(const pwsp_deps *deps) {
    return deps->is_one_pass && !deps->ops.is_dead && !deps->is_counted;
}

// Prepares queries. Decides where accesses of a new tensor go, and ends grids that a tile does not fit.
// False when memory is out.
PWSP_FORCE_INLINE bool pwsp_deps_prepare_all(pwsp_deps *deps, const pwsp_tile_at *tiles,
                                             uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const pwsp_tile_at *tile = &tiles[i];
        pwsp_deps_query_state *query = &deps->queries[i];
        PTOWSP_ASSERT(tile->tensor - 1 < deps->tensor_count - 1);
        const pwsp_deps_tensor *tensor = &deps->tensors[tile->tensor];
        if (PWSP_UNLIKELY(tensor->form == PWSP_DEPS_UNSEEN) && pwsp_deps_has_grids(deps) &&
            !pwsp_deps_grid_begin(deps, tile)) {
            return false;
        }
        query->is_grid = tensor->form == PWSP_DEPS_GRID;
        if (PWSP_LIKELY(query->is_grid)) {
            uint64_t number;
            if (PWSP_LIKELY(pwsp_deps_grid_number(&deps->grids[tile->tensor], tile, &number))) {
                query->key = pwsp_deps_grid_key(tile->tensor, number);
                continue;
            }
            if (!pwsp_deps_grid_end(deps, tile->tensor)) {
                return false;
            }
            i = UINT32_MAX;  // all once more
            continue;
        }
        pwsp_deps_prepare(deps, tile, query);
    }
    return true;
}

// Prepares queries of tiles in grids. False if one is not, or does not fit.
PWSP_FORCE_INLINE bool pwsp_deps_find_keys(const pwsp_deps *deps, const pwsp_tile_at *tiles,
                                           uint32_t count) {
    pwsp_deps_query_state *query = deps->queries;
    const pwsp_deps_grid *grids = deps->grids;
    for (const pwsp_tile_at *end = tiles + (grids ? count : 0); tiles != end; tiles++, query++) {
        uint64_t number;
        if (PWSP_UNLIKELY(!pwsp_deps_grid_number(&grids[tiles->tensor], tiles, &number))) {
            return false;
        }
        query->is_grid = true;
        query->key = pwsp_deps_grid_key(tiles->tensor, number);
    }
    return grids != NULL;
}

// The query of a task with a tile that is not in a grid, or is about to begin one.
static PWSP_NOINLINE bool pwsp_deps_query_any(pwsp_deps *deps, const pwsp_tile_at *tiles,
                                              uint32_t count) {
    if (!deps->is_exact && !deps->is_overlap) {
        return true;
    }
    if (PWSP_UNLIKELY(deps->wants_sweep) && !pwsp_deps_sweep(deps)) {
        return false;
    }
    for (uint32_t first = 0; first < count; first += deps->query_count) {
        const uint32_t left = count - first;
        const uint32_t part = left < deps->query_count ? left : deps->query_count;
        if (!pwsp_deps_prepare_all(deps, tiles + first, part)) {
            return false;
        }
        if (first == 0) {
            pwsp_deps_make_room(deps, count);
        }
        for (uint32_t i = 0; i < part; i++) {
            const pwsp_tile_at *tile = &tiles[first + i];
            pwsp_deps_query_state *query = &deps->queries[i];
            if (PWSP_LIKELY(query->is_grid)) {
                pwsp_deps_meet_grid(deps, query, query->key, tile->access);
            } else {
                pwsp_deps_query_tile(deps, tile->access, query);
            }
            deps->same[first + i] = query->same;
        }
    }
    return !deps->is_list_lost;
}

PWSP_INTERNAL bool pwsp_deps_query(pwsp_deps *deps, const pwsp_tile_at *tiles, uint32_t count) {
    PTOWSP_ASSERT(count <= deps->same_count && (deps->bound || count == 0));
    if (PWSP_UNLIKELY(deps->wants_sweep || count > deps->query_count) ||
        !pwsp_deps_find_keys(deps, tiles, count)) {
        return pwsp_deps_query_any(deps, tiles, count);
    }
    pwsp_deps_make_room(deps, count);
    pwsp_deps_query_state *query = deps->queries;
    for (const pwsp_tile_at *end = tiles + count; tiles != end; tiles++, query++) {
        pwsp_deps_meet_grid(deps, query, query->key, tiles->access);
    }
    return !deps->is_list_lost;
}

// A slot load of an element from a grid: the writer of its tile.
static void pwsp_deps_load_grid(pwsp_deps *deps, const pwsp_tile_at *tile) {
    const pwsp_deps_grid *grid = &deps->grids[tile->tensor];
    pwsp_tile_at around = *tile;
    pwsp_deps_query_state query;
    around.row -= around.row % grid->rows;
    around.col -= around.col % grid->cols;
    around.rows = (uint32_t)pwsp_min_u64(grid->rows, grid->matrix_rows - (uint64_t)around.row);
    around.cols = (uint32_t)pwsp_min_u64(grid->cols, grid->matrix_cols - (uint64_t)around.col);
    uint64_t number;
    const bool is_good = pwsp_deps_grid_number(grid, &around, &number);
    PTOWSP_ASSERT(is_good);
    (void)is_good;
    query.page = 0;
    pwsp_deps_meet_grid(deps, &query, pwsp_deps_grid_key(tile->tensor, number), PWSP_TILE_READ);
}

PWSP_INTERNAL void pwsp_deps_query_load(pwsp_deps *deps, const pwsp_tile_at *tile) {
    PTOWSP_ASSERT(tile->tensor > 0 && tile->tensor < deps->tensor_count);
    if (deps->tensors[tile->tensor].form == PWSP_DEPS_GRID) {
        if (tile->rows == 1 && tile->cols == 1) {
            pwsp_deps_load_grid(deps, tile);
            return;
        }
        if (!pwsp_deps_grid_end(deps, tile->tensor)) {
            deps->is_list_lost = true;
            return;
        }
    }
    uint32_t hazards = deps->hazards;
    deps->hazards = PTOWSP_HAZARD_RAW;
    pwsp_deps_query_state query;
    pwsp_deps_prepare(deps, tile, &query);
    query.is_load = query.is_read = true;
    query.is_written = query.is_exact = query.supersedes = false;
    query.token = NULL;
    pwsp_deps_look(deps, &query);
    deps->hazards = hazards;
}

PWSP_INTERNAL void pwsp_deps_query_loads(pwsp_deps *deps, const pwsp_tile_at *tiles,
                                         uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (tiles[i].access & PWSP_TILE_LOADED) {
            pwsp_deps_query_load(deps, &tiles[i]);
        }
    }
}

// -- adding ---------------------------------------------------------------------------------------

// An access of the task that is being added takes the place of an older one of its cell.
PWSP_FORCE_INLINE void pwsp_deps_grid_take(pwsp_deps *deps, uint32_t index, uint32_t flags,
                                           const pwsp_token *token) {
    pwsp_access_state *state = &deps->states[index];
    if (!(flags & PWSP_ACCESS_WRITTEN)) {
        if (token->time > deps->times[index]) {
            pwsp_deps_put_token(deps, index, token);
        }
        return;
    }
    if (!(state->flags & PWSP_ACCESS_WRITTEN)) {
        PTOWSP_ASSERT(state->cell % 2 && deps->slots[state->cell - 1] == 0);
        deps->slots[state->cell--] = 0;
        deps->slots[state->cell] = index + 1;
    }
    state->flags |= (uint16_t)flags;
    pwsp_deps_put_token(deps, index, token);
}

// Adds the access of a tile that has been queried. Returns its place, + 1. 0: memory is out, or
// *out_is_full: the grid takes too much memory, and has to end.
PWSP_FORCE_INLINE uint32_t pwsp_deps_add_grid(pwsp_deps *deps, pwsp_deps_query_state *query,
                                              uint32_t access, const pwsp_token *token,
                                              bool *out_is_full) {
    const uint32_t flags = access & (PWSP_ACCESS_READ | PWSP_ACCESS_WRITTEN), same = query->same;
    const uint64_t key = query->key, number = key / PWSP_DEPS_PAGE;
    uint32_t page = query->page;
    if (same && !(deps->states[same - 1].flags & PWSP_ACCESS_GONE)) {
        pwsp_deps_grid_take(deps, same - 1, flags, token);
        return same;
    }
    if (PWSP_UNLIKELY(deps->pages[page].number != number)) {
        page = pwsp_deps_page_find(deps, number);
        if (page == 0) {
            *out_is_full = pwsp_deps_pages_are_sparse(deps);
            page = *out_is_full ? 0 : pwsp_deps_page_make(deps, number);
        }
        query->page = page;
        if (page == 0) {
            return 0;
        }
    }
    const uint32_t slot = pwsp_deps_grid_slot(page, key) + !(flags & PWSP_ACCESS_WRITTEN);
    const uint32_t own = deps->slots[slot];
    if (PWSP_UNLIKELY(own)) {  // another's would be `same`: the task has accessed the tile before
        PTOWSP_ASSERT(deps->times[own - 1] == token->time);
        deps->states[own - 1].flags |= (uint16_t)flags;
        return own;
    }
    const uint32_t place = pwsp_deps_place(deps);
    if (PWSP_UNLIKELY(place == 0)) {
        return 0;
    }
    pwsp_access_state *state = &deps->states[place - 1];
    state->cell = slot;
    state->flags = (uint16_t)(flags | PWSP_ACCESS_LINKED | PWSP_ACCESS_GRID);
    deps->times[place - 1] = token->time;
    if (deps->has_tasks) {
        deps->tasks[place - 1] = token->task;
    }
    deps->slots[slot] = place;
    deps->pages[page].count++;
    return place;
}

// A reader of a tile that other tasks also only read: they count as one.
static void pwsp_deps_merge(pwsp_deps *deps, uint32_t index, const pwsp_token *token) {
    PTOWSP_ASSERT(index < deps->access_count && !(deps->states[index].flags & PWSP_ACCESS_GONE));
    pwsp_token merged = pwsp_deps_token(deps, index);
    if (deps->ops.merge) {
        deps->ops.merge(deps->ops.user, &merged, token);
    } else if (token->time > merged.time) {
        merged = *token;
    }
    pwsp_deps_put_token(deps, index, &merged);
    deps->states[index].flags |= PWSP_ACCESS_OWN;
}

// Looks for accesses that a new one takes over or covers, where the query of its task could not yet
// do so. Returns the one to take over, + 1.
static uint32_t pwsp_deps_find_same(pwsp_deps *deps, const pwsp_tile_at *at,
                                    const pwsp_token *token) {
    pwsp_deps_query_state query;
    pwsp_deps_prepare(deps, at, &query);
    query.is_load = false;
    query.is_read = (at->access & PWSP_TILE_READ) != 0;
    query.is_written = query.supersedes = (at->access & PWSP_TILE_WRITTEN) != 0;
    query.is_exact = deps->is_exact && !deps->is_overlap;
    query.token = token;
    uint32_t hazards = deps->hazards;
    deps->hazards = 0;  // only to find identical and superseded accesses
    pwsp_deps_look(deps, &query);
    deps->hazards = hazards;
    return query.same;
}

// An access of the task that is being added takes the place of an older one.
static void pwsp_deps_take_over(pwsp_deps *deps, uint32_t index, uint32_t flags,
                                const pwsp_token *token) {
    pwsp_access_state *found = &deps->states[index];
    if (!(flags & PWSP_ACCESS_WRITTEN)) {
        pwsp_deps_merge(deps, index, token);
        return;
    }
    uint32_t own = found->flags & PWSP_ACCESS_OWN ? found->flags & PWSP_ACCESS_READ : 0;
    found->flags =
        (uint16_t)((found->flags & ~(PWSP_ACCESS_READ | PWSP_ACCESS_WRITTEN)) | own | flags);
    pwsp_deps_set_token(deps, index, token);
}

// Adds an access; same is one to replace, + 1, and query is its tile's, or NULL. Returns its place,
// + 1, or 0 when memory is out.
PWSP_FORCE_INLINE uint32_t pwsp_deps_add_one(pwsp_deps *deps, const pwsp_tile_at *at, uint32_t same,
                                             const pwsp_deps_query_state *query,
                                             const pwsp_token *token) {
    const uint32_t flags = at->access & (PWSP_ACCESS_READ | PWSP_ACCESS_WRITTEN);
    if (!deps->is_one_pass) {
        same = pwsp_deps_find_same(deps, at, token);
    }
    PTOWSP_ASSERT(same <= deps->access_count);
    if (same && !(deps->states[same - 1].flags & PWSP_ACCESS_GONE)) {
        pwsp_deps_take_over(deps, same - 1, flags, token);
        return same;
    }
    uint32_t place = pwsp_deps_place(deps);
    if (place == 0 || !pwsp_deps_widen(deps)) {
        return 0;
    }
    pwsp_access *access = &deps->accesses[place - 1];
    if (PWSP_LIKELY(query)) {
        *access = query->at;
    } else {
        pwsp_deps_access(deps, at, access);
    }
    deps->states[place - 1].level = 0;
    deps->states[place - 1].flags = (uint16_t)(flags | PWSP_ACCESS_OWN);
    pwsp_deps_put_token(deps, place - 1, token);
    if (deps->ops.keep) {
        deps->ops.keep(deps->ops.user, token);
    }
    if (PWSP_LIKELY(query && pwsp_deps_is_cell_good(deps, query))) {
        pwsp_deps_enter_cell(deps, place - 1, query->level, query->cell, query->row_over,
                             query->col_over);
        return place;
    }
    return pwsp_deps_enter(deps, place - 1) ? place : 0;
}

// Adds a tile's access, wherever the tensor's are. Returns its place, + 1, or 0 when memory is out.
PWSP_FORCE_INLINE uint32_t pwsp_deps_add_tile(pwsp_deps *deps, const pwsp_tile_at *at,
                                              uint32_t same, pwsp_deps_query_state *query,
                                              const pwsp_token *token) {
    if (deps->tensors[at->tensor].form == PWSP_DEPS_GRID) {
        bool is_full = query == NULL;
        const uint32_t place =
            is_full ? 0 : pwsp_deps_add_grid(deps, query, at->access, token, &is_full);
        if (PWSP_LIKELY(!is_full)) {
            return place;
        }
        if (!pwsp_deps_grid_end(deps, at->tensor)) {
            return 0;
        }
    }
    return pwsp_deps_add_one(deps, at, same, query && !query->is_grid ? query : NULL, token);
}

// Adds the tiles of a task from `first` on, for which more than grids is looked at.
static PWSP_NOINLINE bool pwsp_deps_add_any(pwsp_deps *deps, const pwsp_tile_at *tiles,
                                            uint32_t first, uint32_t count,
                                            const pwsp_token *token) {
    const bool is_queried = deps->is_exact || deps->is_overlap;
    const bool has_queries = is_queried && count <= deps->query_count;
    if (!is_queried) {
        if (PWSP_UNLIKELY(deps->wants_sweep) && !pwsp_deps_sweep(deps)) {
            return false;
        }
        pwsp_deps_make_room(deps, count);
    }
    for (uint32_t i = first; i < count; i++) {
        pwsp_deps_query_state *query = has_queries ? &deps->queries[i] : NULL;
        const uint32_t same = query ? query->same : is_queried ? deps->same[i] : 0;
        deps->same[i] = 0;
        if (deps->tensors[tiles[i].tensor].is_tracked) {
            deps->same[i] = pwsp_deps_add_tile(deps, &tiles[i], same, query, token);
            if (deps->same[i] == 0) {
                return false;
            }
        }
    }
    for (uint32_t i = first; i < count; i++) {  // they are not the task's own any more
        if (deps->same[i]) {
            deps->states[deps->same[i] - 1].flags &= (uint16_t)~PWSP_ACCESS_OWN;
        }
    }
    return true;
}

PWSP_INTERNAL bool pwsp_deps_add(pwsp_deps *deps, const pwsp_tile_at *tiles, uint32_t count,
                                 const pwsp_token *token) {
    PTOWSP_ASSERT(count <= deps->same_count);
    const uint32_t query_count = count <= deps->query_count ? count : 0;
    pwsp_deps_query_state *query = deps->queries;  // without queries none is of a grid
    uint32_t first = 0;
    for (; first < query_count && query->is_grid; first++, query++) {
        bool is_full = false;
        if (PWSP_UNLIKELY(!pwsp_deps_add_grid(deps, query, tiles[first].access, token, &is_full))) {
            if (!is_full) {
                return false;
            }
            break;
        }
    }
    return first == count || pwsp_deps_add_any(deps, tiles, first, count, token);
}

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_deps_init(pwsp_deps *deps, const pwsp_memory *memory,
                                  uint32_t tensor_count) {
    memset(deps, 0, sizeof *deps);
    deps->memory = memory;
    deps->tensor_count = tensor_count;
    bool is_good = PWSP_ALLOC(memory, deps->tensors, tensor_count + 1) &&
                   PWSP_ALLOC(memory, deps->order, 2 * ((size_t)tensor_count + 1));
    for (uint32_t i = 0; is_good && i < tensor_count; i++) {
        deps->order[i] = i;
    }
    return is_good && pwsp_deps_reserve_tiles(deps, PTOWSP_TASK_TILE_MAX);
}

PWSP_INTERNAL bool pwsp_deps_reserve_tiles(pwsp_deps *deps, uint32_t tile_count) {
    const pwsp_memory *memory = deps->memory;
    if (tile_count <= deps->query_count) {
        return true;
    }
    const uint32_t same_count = tile_count > deps->tensor_count ? tile_count : deps->tensor_count;
    uint32_t *same = NULL;
    pwsp_deps_query_state *queries = NULL;  // without pages
    if (!PWSP_ALLOC(memory, same, same_count) || !PWSP_ALLOC(memory, queries, tile_count)) {
        PWSP_FREE(memory, same, same_count);
        return false;
    }
    PWSP_FREE(memory, deps->same, deps->same_count);
    PWSP_FREE(memory, deps->queries, deps->query_count);
    deps->same = same;
    deps->same_count = same_count;
    deps->queries = queries;
    deps->query_count = tile_count;
    return true;
}

static void pwsp_deps_forget(pwsp_deps *deps, const pwsp_bound_tensor *bound) {
    deps->bound = bound;
    deps->clock = 0;
    deps->has_tasks = true;
    deps->access_max = 0;
    if (deps->access_count && deps->buckets) {  // none if making room for more was refused
        memset(deps->buckets, 0, (size_t)deps->bucket_count * sizeof(uint32_t));
    }
    pwsp_deps_pages_clear(deps);
    deps->access_count = 0;
    deps->room = 0;
    deps->free_count = 0;
    deps->hand = 0;
    deps->wants_sweep = false;
    deps->is_list_lost = false;
    deps->level_count = 0;
}

PWSP_INTERNAL void pwsp_deps_begin(pwsp_deps *deps, const pwsp_timed *timed,
                                   const pwsp_bound_tensor *bound) {
    const ptowsp_schedule *schedule = &timed->schedule;
    pwsp_deps_forget(deps, bound);
    deps->is_exact = (schedule->dependencies & PTOWSP_DEPENDENCIES_EXACT) != 0;
    deps->is_overlap = (schedule->dependencies & PTOWSP_DEPENDENCIES_OVERLAP) != 0;
    deps->hazards = schedule->hazards;
    deps->keeps_readers = (deps->is_exact || deps->is_overlap) &&
                          (deps->hazards & PTOWSP_HAZARD_WAR) &&
                          !(deps->hazards & PTOWSP_HAZARD_WAW);
    deps->is_one_pass = (deps->is_exact || deps->is_overlap) && deps->hazards == PWSP_DEPS_HAZARDS;
    pwsp_deps_find_tensors(deps, timed, false);
}

PWSP_INTERNAL void pwsp_deps_begin_data(pwsp_deps *deps, const pwsp_timed *timed,
                                        const pwsp_bound_tensor *bound) {
    pwsp_deps_forget(deps, bound);
    deps->is_exact = false;
    deps->is_overlap = true;
    deps->hazards = PWSP_DEPS_HAZARDS;
    deps->keeps_readers = false;
    deps->is_one_pass = true;
    pwsp_deps_find_tensors(deps, timed, true);
}
