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
// A panel among small tiles has a level of its own. Small tiles find it with one probe; the panel
// looks at as many small cells as it covers, or at all accesses if these are fewer. Levels are few:
// a tile goes to a level in use that is at most four times too large. So does a tile that the end
// of its tensor has cut off, whatever its size. A level without tiles is reused. Whole tensors are
// in a list of their group that every query looks through, and their queries compare with all
// accesses.
//
// A write makes older accesses within its tile invisible. Writers in the tile are no longer the
// last ones: readers wait for the new writer, and so do writers, if at all. (Slot loads still look
// at them where a write does not wait for writes, so there they are hidden and not dropped.)
// Readers in the tile stay where later writers wait for readers but not for the new writer.
// Accesses of tasks that ended before the clock are dead, and new accesses take their places. A
// hand goes round all accesses, a few steps for each new one, so the map is hardly larger than the
// tasks in flight.
//
// The dependences found, and so the memory they take, do not depend on the order of lists or on
// hash collisions: only accesses that overlap a query are touched.

#include "cells.h"

// -- queries --------------------------------------------------------------------------------------

typedef struct pwsp_deps_query_state {
    pwsp_access at;
    pwsp_deps_hint hint;
    bool is_cell;  // the hint's cell is all that there is to look at, unless exact
    bool is_load;  // of a slot
    bool is_read, is_written;
    bool is_plain;
    bool is_exact;            // only the identical tile counts
    bool supersedes;          // older accesses within the tile are dropped
    const pwsp_token *token;  // of the task that is being added, or NULL
    uint32_t same;            // an access of the identical tile, + 1
} pwsp_deps_query_state;

// Fields that do not depend on other findings, so that they can be prefetched from memory.
PWSP_FORCE_INLINE void pwsp_deps_prepare(const pwsp_deps *deps, const pwsp_tile_at *tile,
                                         pwsp_deps_query_state *query) {
    const pwsp_deps_tensor *tensor = &deps->tensors[tile->tensor];
    const pwsp_deps_tensor *first = tensor->is_plain ? tensor : &deps->tensors[tensor->group];
    pwsp_deps_hint *hint = &query->hint;
    pwsp_extent_at extent;
    pwsp_deps_access(deps, tile, &query->at);
    pwsp_deps_extent(deps, &query->at, &extent);
    query->is_plain = tensor->is_plain;
    query->is_cell = false;
    query->same = 0;
    hint->level = extent.is_wide ? 0 : first->levels;
    if (PWSP_LIKELY(hint->level)) {
        const pwsp_deps_level *level = &deps->levels[hint->level];
        uint64_t row = extent.row >> level->row_shift, col = extent.col >> level->col_shift;
        hint->row_shift = level->row_shift;
        hint->col_shift = level->col_shift;
        hint->is_fit = pwsp_deps_is_fit(level->row_shift, extent.rows) &&
                       pwsp_deps_is_fit(level->col_shift, extent.cols);
        hint->row_over = (extent.row + extent.rows - 1) >> level->row_shift != row;
        hint->col_over = (extent.col + extent.cols - 1) >> level->col_shift != col;
        hint->cell = pwsp_deps_cell(level, extent.place, row, col);
        query->is_cell = !(level->next | first->wides | hint->row_over | hint->col_over |
                           level->row_over | level->col_over);
        PWSP_PREFETCH(pwsp_deps_bucket(deps, hint->cell));
    }
}

// Lists a visited token, if it is not in the list.
static void pwsp_deps_note(pwsp_deps *deps, const pwsp_token *token) {
    uint64_t low = 0, high = deps->visited_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        const pwsp_token *at = &deps->visited[middle];
        bool is_before =
            at->task < token->task || (at->task == token->task && at->time < token->time);
        low = is_before ? middle + 1 : low;
        high = is_before ? high : middle;
    }
    if (low < deps->visited_count && pwsp_token_is_same(&deps->visited[low], token)) {
        return;
    }
    void *visited = deps->visited;
    if (!pwsp_memory_grow(deps->memory, &visited, &deps->visited_capacity, deps->visited_count + 1,
                          sizeof(pwsp_token))) {
        deps->is_list_lost = true;
        return;
    }
    deps->visited = (pwsp_token *)visited;
    memmove(&deps->visited[low + 1], &deps->visited[low],
            (size_t)(deps->visited_count - low) * sizeof(pwsp_token));
    deps->visited[low] = *token;
    deps->visited_count++;
}

// Of tokens with the same time the lowest task counts, in whatever order they are found.
static void pwsp_deps_visit(pwsp_deps *deps, uint32_t index) {
    PTOWSP_ASSERT(!(deps->accesses[index].flags & (PWSP_ACCESS_GONE | PWSP_ACCESS_FREE)));
    pwsp_token token = pwsp_deps_token(deps, index);
    if (PWSP_UNLIKELY(deps->is_counted)) {
        pwsp_deps_note(deps, &token);
    }
    if (deps->ops.visit) {
        deps->ops.visit(deps->ops.user, &token);
        return;
    }
    deps->visit_count++;
    if (token.time > deps->latest.time ||
        (token.time == deps->latest.time && token.task < deps->latest.task)) {
        deps->latest = token;
    }
}

// Makes an access one of the task that is being added.
static void pwsp_deps_set_token(pwsp_deps *deps, uint32_t index, const pwsp_token *token) {
    PTOWSP_ASSERT(index < deps->access_count && !(deps->accesses[index].flags & PWSP_ACCESS_GONE));
    if (deps->ops.keep) {
        pwsp_token before = pwsp_deps_token(deps, index);
        deps->ops.keep(deps->ops.user, token);
        deps->ops.drop(deps->ops.user, &before);
    }
    pwsp_deps_put_token(deps, index, token);
    deps->accesses[index].flags |= PWSP_ACCESS_OWN;
}

// Does an access of another task stay a reader when a write covers it? If a later writer waits for
// the write, it also waits for the reader, because the write did: by write-after-write, or by
// write-after-read if the write reads as well.
static bool pwsp_deps_stays_read(const pwsp_deps *deps, const pwsp_deps_query_state *query,
                                 const pwsp_access *access) {
    return (access->flags & PWSP_ACCESS_READ) && !query->is_read && deps->keeps_readers;
}

// A write covers an access: older accesses in it are not waited for any more, except those that
// stay readers.
static void pwsp_deps_cover(pwsp_deps *deps, const pwsp_deps_query_state *query, uint32_t index) {
    pwsp_access *access = &deps->accesses[index];
    if (access->flags & PWSP_ACCESS_OWN) {
        pwsp_deps_set_token(deps, index, query->token);
        return;
    }
    bool stays_read = pwsp_deps_stays_read(deps, query, access);
    bool is_loaded = deps->tensors[access->tensor].is_loaded;
    bool stays_hidden = (access->flags & PWSP_ACCESS_WRITTEN) && is_loaded;
    if (!stays_read && !stays_hidden) {
        pwsp_deps_drop(deps, index);
        return;
    }
    uint32_t lost = (stays_read ? 0 : PWSP_ACCESS_READ) | (is_loaded ? 0 : PWSP_ACCESS_WRITTEN);
    uint32_t gained = stays_hidden ? PWSP_ACCESS_HIDDEN : 0;
    access->flags = (uint8_t)((access->flags & ~lost) | gained);
}

// An access of the identical tile, which a new access may replace: a reader replaces another
// reader, a writer any access. Of several accesses that a writer supersedes, one stays for the
// writer: its own, which may have been a read, or the first.
static void pwsp_deps_meet_same(pwsp_deps *deps, pwsp_deps_query_state *query, uint32_t index) {
    const pwsp_access *access = &deps->accesses[index];
    bool is_written = (access->flags & PWSP_ACCESS_WRITTEN) != 0;
    if (!query->supersedes) {
        bool is_first = query->same == 0 || index < query->same;
        bool can_merge = !is_written && !deps->is_counted;
        query->same = can_merge && is_first ? index + 1 : query->same;
        return;
    }
    if (query->same == index + 1) {
        return;  // found in another cell with the same list
    }
    bool is_own = (access->flags & PWSP_ACCESS_OWN) != 0;
    bool is_for_loads = is_written && deps->tensors[access->tensor].is_loaded;
    if (!is_own && (is_for_loads || pwsp_deps_stays_read(deps, query, access))) {
        pwsp_deps_cover(deps, query, index);
        return;
    }
    if (query->same) {
        bool is_same_own = (deps->accesses[query->same - 1].flags & PWSP_ACCESS_OWN) != 0;
        bool stays = is_same_own != is_own ? is_same_own : query->same - 1 < index;
        if (stays) {
            pwsp_deps_cover(deps, query, index);
            return;
        }
        pwsp_deps_cover(deps, query, query->same - 1);
    }
    query->same = index + 1;
}

// Visits one older access. True if it is dead or gone.
static bool pwsp_deps_meet(pwsp_deps *deps, pwsp_deps_query_state *query, uint32_t index) {
    pwsp_access *access = &deps->accesses[index];
    const pwsp_access *at = &query->at;
    if (query->is_plain ? access->tensor != at->tensor
                        : deps->tensors[access->tensor].group != deps->tensors[at->tensor].group) {
        return false;
    }
    bool is_hidden = (access->flags & PWSP_ACCESS_HIDDEN) && !query->is_load;
    bool is_read = (access->flags & PWSP_ACCESS_READ) != 0;
    if (is_hidden && !is_read) {
        return false;
    }
    bool is_equal = query->is_plain && at->rows && access->rows
                        ? pwsp_deps_is_plain_equal(at, access)
                        : pwsp_deps_is_equal(deps, query->is_plain, at, access);
    bool is_exact = query->is_exact && !pwsp_deps_is_whole(at) && !pwsp_deps_is_whole(access);
    if (!is_equal && (is_exact || !pwsp_deps_is_overlap(deps, query->is_plain, at, access))) {
        return false;
    }
    if (pwsp_deps_is_dead(deps, index)) {
        return true;
    }
    bool is_written = (access->flags & PWSP_ACCESS_WRITTEN) && !is_hidden;
    if ((is_written && query->is_read && (deps->hazards & PTOWSP_HAZARD_RAW)) ||
        (is_read && query->is_written && (deps->hazards & PTOWSP_HAZARD_WAR)) ||
        (is_written && query->is_written && (deps->hazards & PTOWSP_HAZARD_WAW))) {
        pwsp_deps_visit(deps, index);
    }
    if (is_equal) {
        pwsp_deps_meet_same(deps, query, index);
    } else if (query->supersedes && !query->is_exact &&
               pwsp_deps_is_within(deps, query->is_plain, at, access)) {
        pwsp_deps_cover(deps, query, index);
    }
    return (access->flags & PWSP_ACCESS_GONE) != 0;
}

// Visits all accesses of a cell, and removes the dead ones.
PWSP_FORCE_INLINE void pwsp_deps_walk_in(pwsp_deps *deps, pwsp_deps_query_state *query,
                                         uint32_t cell) {
    uint32_t *at = pwsp_deps_bucket(deps, cell), mask = deps->index_mask;
    const uint32_t mark = pwsp_deps_mark(cell);
    while (*at) {
        uint32_t link = *at, index = (link & mask) - 1;
        if (((link ^ mark) & ~mask) == 0 && pwsp_deps_meet(deps, query, index)) {
            *at = deps->nexts[index];
            deps->accesses[index].flags &= (uint8_t)~PWSP_ACCESS_LINKED;
            pwsp_deps_left(deps, &deps->accesses[index]);
            pwsp_deps_drop(deps, index);
        } else {
            at = &deps->nexts[index];
        }
    }
}

static void pwsp_deps_walk(pwsp_deps *deps, pwsp_deps_query_state *query, uint32_t cell) {
    pwsp_deps_walk_in(deps, query, cell);
}

// Visits those of a group that are in no cell.
static void pwsp_deps_walk_wides(pwsp_deps *deps, pwsp_deps_query_state *query, uint32_t *list) {
    uint32_t *at = list;
    while (*at) {
        uint32_t index = pwsp_deps_linked(deps, *at);
        if (pwsp_deps_meet(deps, query, index)) {
            *at = deps->nexts[index];
            deps->accesses[index].flags &= (uint8_t)~PWSP_ACCESS_LINKED;
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
        } else {
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
    if (!first->levels) {
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
        if (id == query->hint.level && cells.first_row == cells.last_row &&
            cells.first_col == cells.last_col) {
            pwsp_deps_walk(deps, query, query->hint.cell);
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

PWSP_INTERNAL bool pwsp_deps_query(pwsp_deps *deps, const pwsp_tile_at *tiles, uint32_t count) {
    PTOWSP_ASSERT(count <= deps->same_count && (deps->bound || count == 0));
    if (!deps->is_exact && !deps->is_overlap) {
        return true;
    }
    if (PWSP_UNLIKELY(deps->wants_sweep) && !pwsp_deps_sweep(deps)) {
        return false;
    }
    pwsp_deps_query_state queries[PTOWSP_TASK_TILE_MAX];
    for (uint32_t first = 0; first < count; first += PTOWSP_TASK_TILE_MAX) {
        uint32_t end = count - first < PTOWSP_TASK_TILE_MAX ? count : first + PTOWSP_TASK_TILE_MAX;
        for (uint32_t i = first; i < end; i++) {
            PTOWSP_ASSERT(tiles[i].tensor > 0 && tiles[i].tensor < deps->tensor_count);
            pwsp_deps_prepare(deps, &tiles[i], &queries[i - first]);
        }
        if (first == 0) {
            pwsp_deps_make_room(deps, count);
        }
        for (uint32_t i = first; i < end; i++) {
            pwsp_deps_query_state *query = &queries[i - first];
            query->is_load = false;
            query->is_read = (tiles[i].access & PWSP_TILE_READ) != 0;
            query->is_written = (tiles[i].access & PWSP_TILE_WRITTEN) != 0;
            query->is_exact = !deps->is_overlap;
            query->supersedes = deps->is_one_pass && query->is_written;
            query->token = NULL;
            if (PWSP_LIKELY(query->is_cell && !query->is_exact)) {
                pwsp_deps_walk_in(deps, query, query->hint.cell);
            } else {
                pwsp_deps_look(deps, query);
            }
            deps->same[i] = query->same;
            deps->hints[i] = query->hint;
        }
    }
    return !deps->is_list_lost;
}

PWSP_INTERNAL void pwsp_deps_query_load(pwsp_deps *deps, const pwsp_tile_at *tile) {
    PTOWSP_ASSERT(tile->tensor > 0 && tile->tensor < deps->tensor_count);
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

// A reader of a tile that other tasks also only read: they count as one.
static void pwsp_deps_merge(pwsp_deps *deps, uint32_t index, const pwsp_token *token) {
    PTOWSP_ASSERT(index < deps->access_count && !(deps->accesses[index].flags & PWSP_ACCESS_GONE));
    pwsp_token merged = pwsp_deps_token(deps, index);
    if (deps->ops.merge) {
        deps->ops.merge(deps->ops.user, &merged, token);
    } else if (token->time > merged.time) {
        merged = *token;
    }
    pwsp_deps_put_token(deps, index, &merged);
    deps->accesses[index].flags |= PWSP_ACCESS_OWN;
}

// Adds an access; same is one to replace, + 1. Returns its place, + 1, or 0 when memory is out.
static uint32_t pwsp_deps_add_one(pwsp_deps *deps, const pwsp_tile_at *at, uint32_t same,
                                  const pwsp_deps_hint *hint, const pwsp_token *token) {
    const uint32_t flags = at->access & (PWSP_ACCESS_READ | PWSP_ACCESS_WRITTEN);
    if (!deps->is_one_pass) {
        pwsp_deps_query_state query;
        pwsp_deps_prepare(deps, at, &query);
        query.is_load = false;
        query.is_read = (flags & PWSP_ACCESS_READ) != 0;
        query.is_written = query.supersedes = (flags & PWSP_ACCESS_WRITTEN) != 0;
        query.is_exact = deps->is_exact && !deps->is_overlap;
        query.token = token;
        uint32_t hazards = deps->hazards;
        deps->hazards = 0;  // only to find identical and superseded accesses
        pwsp_deps_look(deps, &query);
        deps->hazards = hazards;
        same = query.same;
    }
    PTOWSP_ASSERT(same <= deps->access_count);
    if (same && !(deps->accesses[same - 1].flags & PWSP_ACCESS_GONE)) {
        pwsp_access *found = &deps->accesses[same - 1];
        if (!(flags & PWSP_ACCESS_WRITTEN)) {
            pwsp_deps_merge(deps, same - 1, token);
            return same;
        }
        uint8_t own = found->flags & PWSP_ACCESS_OWN ? found->flags & PWSP_ACCESS_READ : 0;
        found->flags =
            (uint8_t)((found->flags & ~(PWSP_ACCESS_READ | PWSP_ACCESS_WRITTEN)) | own | flags);
        pwsp_deps_set_token(deps, same - 1, token);
        return same;
    }
    uint32_t place = pwsp_deps_place(deps);
    if (place == 0) {
        return 0;
    }
    pwsp_access *access = &deps->accesses[place - 1];
    pwsp_deps_access(deps, at, access);
    access->flags = (uint8_t)(flags | PWSP_ACCESS_OWN);
    pwsp_deps_put_token(deps, place - 1, token);
    if (deps->ops.keep) {
        deps->ops.keep(deps->ops.user, token);
    }
    if (hint && pwsp_deps_is_hint_good(deps, hint)) {
        pwsp_deps_enter_cell(deps, place - 1, hint->level, hint->cell, hint->row_over,
                             hint->col_over);
        return place;
    }
    return pwsp_deps_enter(deps, place - 1) ? place : 0;
}

PWSP_INTERNAL bool pwsp_deps_add(pwsp_deps *deps, const pwsp_tile_at *tiles, uint32_t count,
                                 const pwsp_token *token) {
    bool is_queried = deps->is_exact || deps->is_overlap;
    PTOWSP_ASSERT(count <= deps->same_count);
    if (!is_queried) {
        if (PWSP_UNLIKELY(deps->wants_sweep) && !pwsp_deps_sweep(deps)) {
            return false;
        }
        pwsp_deps_make_room(deps, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        bool is_tracked = deps->tensors[tiles[i].tensor].is_tracked;
        uint32_t same = is_queried ? deps->same[i] : 0;
        deps->same[i] = 0;
        if (is_tracked) {
            const pwsp_deps_hint *hint = is_queried ? &deps->hints[i] : NULL;
            deps->same[i] = pwsp_deps_add_one(deps, &tiles[i], same, hint, token);
            if (deps->same[i] == 0) {
                return false;
            }
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (deps->same[i]) {
            deps->accesses[deps->same[i] - 1].flags &= (uint8_t)~PWSP_ACCESS_OWN;
        }
    }
    return true;
}

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_deps_init(pwsp_deps *deps, const pwsp_memory *memory,
                                  uint32_t tensor_count) {
    memset(deps, 0, sizeof *deps);
    deps->memory = memory;
    deps->tensor_count = tensor_count;
    deps->tensors = (pwsp_deps_tensor *)pwsp_memory_alloc(memory, (tensor_count + 1) *
                                                                      sizeof(pwsp_deps_tensor));
    deps->order =
        (uint32_t *)pwsp_memory_alloc(memory, 2 * ((size_t)tensor_count + 1) * sizeof(uint32_t));
    for (uint32_t i = 0; deps->order && i < tensor_count; i++) {
        deps->order[i] = i;
    }
    return deps->tensors && deps->order &&
           pwsp_deps_widen(deps, tensor_count > PTOWSP_TASK_TILE_MAX ? tensor_count
                                                                     : PTOWSP_TASK_TILE_MAX);
}

static void pwsp_deps_free_tiles(pwsp_deps *deps) {
    pwsp_memory_free(deps->memory, deps->same, deps->same_count * sizeof(uint32_t));
    pwsp_memory_free(deps->memory, deps->hints, deps->same_count * sizeof(pwsp_deps_hint));
}

PWSP_INTERNAL bool pwsp_deps_widen(pwsp_deps *deps, uint32_t tile_count) {
    if (tile_count <= deps->same_count) {
        return true;
    }
    pwsp_deps_free_tiles(deps);
    deps->same = (uint32_t *)pwsp_memory_alloc(deps->memory, tile_count * sizeof(uint32_t));
    deps->hints =
        (pwsp_deps_hint *)pwsp_memory_alloc(deps->memory, tile_count * sizeof(pwsp_deps_hint));
    deps->same_count = tile_count;
    if (!deps->same || !deps->hints) {
        pwsp_deps_free_tiles(deps);
        deps->same = NULL;
        deps->hints = NULL;
        deps->same_count = 0;
    }
    return deps->same_count > 0;
}

static void pwsp_deps_forget(pwsp_deps *deps, const pwsp_bound_tensor *bound) {
    deps->bound = bound;
    deps->clock = 0;
    deps->has_tasks = true;
    deps->access_max = 0;
    if (deps->access_count && deps->buckets) {  // none if making room for more was refused
        memset(deps->buckets, 0, (size_t)deps->bucket_count * sizeof(uint32_t));
    }
    deps->access_count = 0;
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
    deps->is_one_pass =
        (deps->is_exact || deps->is_overlap) &&
        deps->hazards == (PTOWSP_HAZARD_RAW | PTOWSP_HAZARD_WAR | PTOWSP_HAZARD_WAW);
    pwsp_deps_find_tensors(deps, timed, false);
}

PWSP_INTERNAL void pwsp_deps_begin_data(pwsp_deps *deps, const pwsp_timed *timed,
                                        const pwsp_bound_tensor *bound) {
    pwsp_deps_forget(deps, bound);
    deps->is_exact = false;
    deps->is_overlap = true;
    deps->hazards = PTOWSP_HAZARD_RAW | PTOWSP_HAZARD_WAR | PTOWSP_HAZARD_WAW;
    deps->keeps_readers = false;
    deps->is_one_pass = true;
    pwsp_deps_find_tensors(deps, timed, true);
}

PWSP_INTERNAL void pwsp_deps_free(pwsp_deps *deps) {
    if (!deps->memory) {
        return;
    }
    pwsp_memory_free(deps->memory, deps->tensors,
                     (deps->tensor_count + 1) * sizeof(pwsp_deps_tensor));
    pwsp_memory_free(deps->memory, deps->order,
                     2 * ((size_t)deps->tensor_count + 1) * sizeof(uint32_t));
    pwsp_deps_free_tiles(deps);
    pwsp_memory_free(deps->memory, deps->accesses,
                     (size_t)deps->access_capacity * sizeof(pwsp_access));
    pwsp_memory_free(deps->memory, deps->nexts, (size_t)deps->next_capacity * sizeof(uint32_t));
    pwsp_memory_free(deps->memory, deps->times, (size_t)deps->time_capacity * sizeof(uint64_t));
    pwsp_memory_free(deps->memory, deps->tasks, (size_t)deps->task_capacity * sizeof(uint64_t));
    pwsp_memory_free(deps->memory, deps->levels,
                     (size_t)deps->level_capacity * sizeof(pwsp_deps_level));
    pwsp_memory_free(deps->memory, deps->buckets, (size_t)deps->bucket_count * sizeof(uint32_t));
    pwsp_memory_free(deps->memory, deps->visited,
                     (size_t)deps->visited_capacity * sizeof(pwsp_token));
    memset(deps, 0, sizeof *deps);
}

PWSP_INTERNAL size_t pwsp_deps_bytes(const pwsp_deps *deps) {
    return ((size_t)deps->tensor_count + 1) * (sizeof(pwsp_deps_tensor) + 2 * sizeof(uint32_t)) +
           deps->same_count * (sizeof(uint32_t) + sizeof(pwsp_deps_hint)) +
           (size_t)deps->access_capacity * sizeof(pwsp_access) +
           (size_t)deps->next_capacity * sizeof(uint32_t) +
           (size_t)(deps->time_capacity + deps->task_capacity) * sizeof(uint64_t) +
           (size_t)deps->level_capacity * sizeof(pwsp_deps_level) +
           (size_t)deps->bucket_count * sizeof(uint32_t) +
           (size_t)deps->visited_capacity * sizeof(pwsp_token);
}
