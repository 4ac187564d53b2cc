// The map of regions.
//
// A tensor whose indices all have memory of their own, and which shares none with another tensor,
// is *plain*: two tiles of it overlap exactly when their leading indices are the same and their
// windows intersect. For plain tensors the last two dimensions are covered by a grid, whose cells
// have the size of the first tile that is seen, rounded up to powers of two. An access is entered
// in a hash table under each cell that it touches:
//
//      +-----+-----+-----+        tiles of the usual tiling touch one cell each, and two of them
//      |  A  |  BBBBB    |        share a cell exactly if they are the same tile: looking one up is
//      +-----+--BBBBB----+        one probe. Shifted ones (B) touch up to four.
//      |     |     |     |
//      +-----+-----+-----+
//
// An access of a whole tensor, or one that would touch more than PWSP_DEPS_CELL_MAX cells, is
// *wide*: it is in a list of its tensor instead, which every query of the tensor looks through, and
// looking for what a wide one overlaps means looking at all accesses. Tensors that are not plain
// are grouped with those whose memory they share or lie interleaved with (packed Q, K and V, say);
// the cells of a group are blocks of addresses, as large as the span of its first access, and tiles
// are compared byte by byte.
//
// A write makes older accesses within its tile invisible: whoever comes later waits for it, and it
// has waited for them (or, where the hazards do not ask for that, does not care about them; slot
// loads do, so writes that they may look at are hidden and not dropped). Accesses of tasks that
// ended before the clock are dead. Both are unlinked when met, and swept out when the map has
// doubled; so it is as large as what is in flight.

#include "deps.h"

#define PWSP_DEPS_CELL_MAX  16
#define PWSP_DEPS_SWEEP_MIN 1024

typedef struct pwsp_cells {
    uint64_t name;  // of what they divide: a matrix, or the memory of a group
    uint64_t first_row, last_row, first_col, last_col;
    bool is_wide;
} pwsp_cells;

// -- regions --------------------------------------------------------------------------------------

static pwsp_region pwsp_deps_region(const pwsp_deps *deps, const pwsp_tile_at *at) {
    const pwsp_bound_tensor *tensor = &deps->bound[at->tensor];
    uint64_t element = tensor->element_size;
    uint64_t offset = (uint64_t)at->lead + (uint64_t)at->row * (uint64_t)tensor->row_stride +
                      (uint64_t)at->col * (uint64_t)tensor->col_stride;
    pwsp_region region = {tensor->base + offset * element,
                          (int64_t)((uint64_t)tensor->row_stride * element),
                          (int64_t)((uint64_t)tensor->col_stride * element),
                          at->rows,
                          at->cols,
                          tensor->element_size};
    return region;
}

// The whole of a tensor counts as all the bytes from its first element to its last.
static bool pwsp_deps_is_whole(const pwsp_tile_at *at) {
    return at->rows == 0;
}

static void pwsp_deps_span(const pwsp_deps *deps, const pwsp_tile_at *at, uint64_t *out_low,
                           uint64_t *out_high) {
    if (pwsp_deps_is_whole(at)) {
        *out_low = deps->tensors[at->tensor].low;
        *out_high = deps->tensors[at->tensor].high;
        return;
    }
    pwsp_region region = pwsp_deps_region(deps, at);
    pwsp_region_span(&region, out_low, out_high);
}

// Whether two accesses meet, one of which is of a whole tensor. Differences are taken from one of
// the starts, as addresses wrap around.
static bool pwsp_deps_whole_meets(const pwsp_deps *deps, const pwsp_tile_at *a,
                                  const pwsp_tile_at *b) {
    uint64_t a_low, a_high, b_low, b_high;
    if (a->tensor == b->tensor) {
        return true;
    }
    pwsp_deps_span(deps, a, &a_low, &a_high);
    pwsp_deps_span(deps, b, &b_low, &b_high);
    return b_low - a_low < a_high - a_low || a_low - b_low < b_high - b_low;
}

static bool pwsp_deps_same_matrix(const pwsp_tile_at *a, const pwsp_tile_at *b) {
    return a->tensor == b->tensor && a->lead == b->lead;
}

static bool pwsp_deps_is_equal(const pwsp_deps *deps, bool is_plain, const pwsp_tile_at *a,
                               const pwsp_tile_at *b) {
    if (pwsp_deps_is_whole(a) || pwsp_deps_is_whole(b)) {
        return a->tensor == b->tensor && a->rows == b->rows;
    }
    if (is_plain) {
        return pwsp_deps_same_matrix(a, b) && a->row == b->row && a->col == b->col &&
               a->rows == b->rows && a->cols == b->cols;
    }
    pwsp_region x = pwsp_deps_region(deps, a), y = pwsp_deps_region(deps, b);
    return pwsp_region_equal(&x, &y);
}

static bool pwsp_deps_is_overlap(const pwsp_deps *deps, bool is_plain, const pwsp_tile_at *a,
                                 const pwsp_tile_at *b) {
    if (pwsp_deps_is_whole(a) || pwsp_deps_is_whole(b)) {
        return pwsp_deps_whole_meets(deps, a, b);
    }
    if (is_plain) {
        return pwsp_deps_same_matrix(a, b) && a->row < b->row + b->rows &&
               b->row < a->row + a->rows && a->col < b->col + b->cols && b->col < a->col + a->cols;
    }
    pwsp_region x = pwsp_deps_region(deps, a), y = pwsp_deps_region(deps, b);
    return pwsp_region_overlaps(&x, &y);
}

static bool pwsp_deps_is_within(const pwsp_deps *deps, bool is_plain, const pwsp_tile_at *outer,
                                const pwsp_tile_at *inner) {
    if (pwsp_deps_is_whole(outer) || pwsp_deps_is_whole(inner)) {
        return pwsp_deps_is_whole(outer) && outer->tensor == inner->tensor;
    }
    if (is_plain) {
        return pwsp_deps_same_matrix(outer, inner) && outer->row <= inner->row &&
               inner->row + inner->rows <= outer->row + outer->rows && outer->col <= inner->col &&
               inner->col + inner->cols <= outer->col + outer->cols;
    }
    pwsp_region x = pwsp_deps_region(deps, outer), y = pwsp_deps_region(deps, inner);
    return pwsp_region_contains(&x, &y);
}

// -- cells and links ------------------------------------------------------------------------------

// log2 of a size, rounded up.
static uint8_t pwsp_deps_log2(uint64_t size) {
    uint8_t shift = 0;
    while (shift < 63 && (UINT64_C(1) << shift) < size) {
        shift++;
    }
    return shift;
}

// The blocks of addresses that a tile of a group touches.
static pwsp_cells pwsp_deps_blocks(const pwsp_deps *deps, const pwsp_deps_tensor *first,
                                   const pwsp_tile_at *at) {
    uint64_t low, high;
    pwsp_region region = pwsp_deps_region(deps, at);
    pwsp_region_span(&region, &low, &high);
    pwsp_cells cells = {first->group, low >> first->row_shift, (high - 1) >> first->row_shift, 0, 0,
                        false};
    cells.is_wide = high <= low || cells.last_row - cells.first_row >= PWSP_DEPS_CELL_MAX;
    return cells;
}

static inline pwsp_cells pwsp_deps_cells(const pwsp_deps *deps, const pwsp_tile_at *at) {
    const pwsp_deps_tensor *tensor = &deps->tensors[at->tensor];
    const pwsp_deps_tensor *first = &deps->tensors[tensor->group];
    pwsp_cells cells = {0, 0, 0, 0, 0, true};
    if (!first->has_cells || pwsp_deps_is_whole(at)) {
        return cells;
    }
    if (!tensor->is_plain) {
        return pwsp_deps_blocks(deps, first, at);
    }
    cells.name = (uint64_t)at->lead * UINT64_C(0x9e3779b97f4a7c15) + at->tensor;
    cells.first_row = (uint64_t)at->row >> tensor->row_shift;
    cells.first_col = (uint64_t)at->col >> tensor->col_shift;
    cells.last_row = ((uint64_t)at->row + at->rows - 1) >> tensor->row_shift;
    cells.last_col = ((uint64_t)at->col + at->cols - 1) >> tensor->col_shift;
    uint64_t rows = cells.last_row - cells.first_row + 1;
    uint64_t cols = cells.last_col - cells.first_col + 1;
    cells.is_wide =
        rows > PWSP_DEPS_CELL_MAX || cols > PWSP_DEPS_CELL_MAX || rows * cols > PWSP_DEPS_CELL_MAX;
    return cells;
}

// Chooses the cells of a group by the first access.
static void pwsp_deps_choose_cells(pwsp_deps *deps, const pwsp_tile_at *at) {
    const pwsp_deps_tensor *tensor = &deps->tensors[at->tensor];
    pwsp_deps_tensor *first = &deps->tensors[tensor->group];
    first->has_cells = true;
    first->row_shift = pwsp_deps_log2(at->rows);
    first->col_shift = pwsp_deps_log2(at->cols);
    if (!tensor->is_plain) {
        uint64_t low, high;
        pwsp_region region = pwsp_deps_region(deps, at);
        pwsp_region_span(&region, &low, &high);
        first->row_shift = pwsp_deps_log2(high - low);
    }
}

// The bucket of a cell: the finalizer of SplitMix64 over all that names it.
static uint32_t *pwsp_deps_bucket(const pwsp_deps *deps, uint64_t name, uint64_t row,
                                  uint64_t col) {
    uint64_t z = name;
    z = (z ^ (z >> 29)) * UINT64_C(0xbf58476d1ce4e5b9) + row * UINT64_C(0xd6e8feb86659fd93) + col;
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return &deps->buckets[(z ^ (z >> 31)) & (deps->bucket_count - 1)];
}

static bool pwsp_deps_link(pwsp_deps *deps, uint32_t *head, uint32_t access) {
    void *links = deps->links;
    uint64_t id = deps->link_count ? deps->link_count : 1;
    if (id >= UINT32_MAX || !pwsp_memory_grow(deps->memory, &links, &deps->link_capacity, id + 1,
                                              sizeof(pwsp_access_link))) {
        return false;
    }
    deps->links = (pwsp_access_link *)links;
    pwsp_access_link link = {access, *head};
    deps->links[id] = link;
    *head = (uint32_t)id;
    deps->link_count = id + 1;
    return true;
}

// Enters an access wherever queries look for it.
static bool pwsp_deps_enter(pwsp_deps *deps, uint32_t access) {
    const pwsp_tile_at *at = &deps->accesses[access].at;
    const pwsp_deps_tensor *tensor = &deps->tensors[at->tensor];
    pwsp_cells cells = pwsp_deps_cells(deps, at);
    if (cells.is_wide) {
        return pwsp_deps_link(deps, &deps->tensors[tensor->group].wide, access);
    }
    for (uint64_t row = cells.first_row; row <= cells.last_row; row++) {
        for (uint64_t col = cells.first_col; col <= cells.last_col; col++) {
            if (!pwsp_deps_link(deps, pwsp_deps_bucket(deps, cells.name, row, col), access)) {
                return false;
            }
        }
    }
    return true;
}

static bool pwsp_deps_is_dead(const pwsp_deps *deps, const pwsp_access *access) {
    return access->is_gone || (deps->ops.is_dead ? deps->ops.is_dead(deps->ops.user, &access->token)
                                                 : access->token.time < deps->clock);
}

static void pwsp_deps_drop(pwsp_deps *deps, pwsp_access *access) {
    if (!access->is_gone) {
        access->is_gone = true;
        if (deps->ops.drop) {
            deps->ops.drop(deps->ops.user, &access->token);
        }
    }
}

// Keeps the living accesses only and enters them anew. False when memory is out.
static bool pwsp_deps_sweep(pwsp_deps *deps) {
    uint64_t living = 0;
    for (uint64_t i = 0; i < deps->access_count; i++) {
        if (pwsp_deps_is_dead(deps, &deps->accesses[i])) {
            pwsp_deps_drop(deps, &deps->accesses[i]);
        } else {
            deps->accesses[living++] = deps->accesses[i];
        }
    }
    deps->access_count = living;
    deps->sweep_at = pwsp_max_u64(PWSP_DEPS_SWEEP_MIN, 2 * living);
    uint64_t buckets = 2 * PWSP_DEPS_SWEEP_MIN;
    while (buckets < deps->sweep_at) {
        buckets *= 2;
    }
    if (buckets > deps->bucket_count) {
        void *grown = deps->buckets;
        uint64_t capacity = deps->bucket_count;
        if (!pwsp_memory_grow(deps->memory, &grown, &capacity, buckets, sizeof(uint32_t))) {
            return false;
        }
        deps->buckets = (uint32_t *)grown;
        deps->bucket_count = buckets;
    }
    memset(deps->buckets, 0, (size_t)deps->bucket_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < deps->tensor_count; i++) {
        deps->tensors[i].wide = 0;
    }
    deps->link_count = 0;
    for (uint64_t i = 0; i < living; i++) {
        if (!pwsp_deps_enter(deps, (uint32_t)i)) {
            return false;
        }
    }
    return true;
}

// -- queries --------------------------------------------------------------------------------------

typedef struct pwsp_deps_query_state {
    const pwsp_tile_at *at;
    bool is_load;  // of a slot
    bool is_read, is_written;
    bool is_plain;
    bool is_exact;            // only the very same tile counts
    bool supersedes;          // older accesses within the tile are dropped
    const pwsp_token *token;  // of the task that is being added, or NULL
    uint64_t owner;           // it, or 0: its own accesses are not older
    uint32_t same;            // an access of the very same tile, + 1
} pwsp_deps_query_state;

static void pwsp_deps_visit(pwsp_deps *deps, const pwsp_token *token) {
    if (deps->ops.visit) {
        deps->ops.visit(deps->ops.user, token);
        return;
    }
    deps->visit_count++;
    if (token->time > deps->latest.time) {
        deps->latest = *token;
    }
}

// An access becomes one of the task that is being added.
static void pwsp_deps_set_token(pwsp_deps *deps, pwsp_access *access, const pwsp_token *token) {
    if (deps->ops.keep) {
        deps->ops.keep(deps->ops.user, token);
        deps->ops.drop(deps->ops.user, &access->token);
    }
    access->token = *token;
    access->owner = deps->owner;
}

// A write covers an access: what is older of it is not waited for any more.
static void pwsp_deps_cover(pwsp_deps *deps, const pwsp_deps_query_state *query,
                            pwsp_access *access) {
    if (access->owner == query->owner) {
        pwsp_deps_set_token(deps, access, query->token);
    } else if (access->is_written && deps->tensors[access->at.tensor].is_loaded) {
        access->is_hidden = true;
    } else {
        pwsp_deps_drop(deps, access);
    }
}

// An access of the very same tile, of which a new one may take the place: a reader that of another
// reader, a writer that of any. Of several that a writer supersedes, one stays for that; best its
// own, which may have been a read.
static void pwsp_deps_meet_same(pwsp_deps *deps, pwsp_deps_query_state *query, uint32_t index) {
    pwsp_access *access = &deps->accesses[index];
    if (!query->supersedes) {
        query->same = access->is_written ? query->same : index + 1;
        return;
    }
    if (query->same == index + 1) {
        return;  // met in another cell
    }
    bool is_own = access->owner == query->owner;
    bool is_kept = access->is_written && deps->tensors[access->at.tensor].is_loaded;
    if (!is_own && (query->same || is_kept)) {
        pwsp_deps_cover(deps, query, access);
        return;
    }
    if (query->same && deps->accesses[query->same - 1].owner != query->owner) {
        pwsp_deps_cover(deps, query, &deps->accesses[query->same - 1]);
    }
    query->same = index + 1;
}

// One older access. True if it is gone now.
static bool pwsp_deps_meet(pwsp_deps *deps, pwsp_deps_query_state *query, uint32_t index) {
    pwsp_access *access = &deps->accesses[index];
    if (access->is_hidden && !query->is_load) {
        return false;
    }
    bool is_equal = pwsp_deps_is_equal(deps, query->is_plain, query->at, &access->at);
    bool is_exact =
        query->is_exact && !pwsp_deps_is_whole(query->at) && !pwsp_deps_is_whole(&access->at);
    if (!is_equal &&
        (is_exact || !pwsp_deps_is_overlap(deps, query->is_plain, query->at, &access->at))) {
        return false;
    }
    if ((access->is_written && query->is_read && (deps->hazards & PTOWSP_HAZARD_RAW)) ||
        (access->is_read && query->is_written && (deps->hazards & PTOWSP_HAZARD_WAR)) ||
        (access->is_written && query->is_written && (deps->hazards & PTOWSP_HAZARD_WAW))) {
        pwsp_deps_visit(deps, &access->token);
    }
    if (is_equal) {
        pwsp_deps_meet_same(deps, query, index);
    } else if (query->supersedes && !query->is_exact &&
               pwsp_deps_is_within(deps, query->is_plain, query->at, &access->at)) {
        pwsp_deps_cover(deps, query, access);
    }
    return access->is_gone;
}

// Meets all accesses of a list, and unlinks those that are dead or gone.
static void pwsp_deps_walk(pwsp_deps *deps, pwsp_deps_query_state *query, uint32_t *head) {
    uint32_t *at = head;
    while (*at) {
        pwsp_access_link *link = &deps->links[*at];
        if (pwsp_deps_is_dead(deps, &deps->accesses[link->access]) ||
            pwsp_deps_meet(deps, query, link->access)) {
            pwsp_deps_drop(deps, &deps->accesses[link->access]);
            *at = link->next;
        } else {
            at = &link->next;
        }
    }
}

static void pwsp_deps_look(pwsp_deps *deps, pwsp_deps_query_state *query) {
    const pwsp_deps_tensor *tensor = &deps->tensors[query->at->tensor];
    pwsp_deps_tensor *first = &deps->tensors[tensor->group];
    query->is_plain = tensor->is_plain;
    query->same = 0;
    if (deps->access_count == 0) {
        return;
    }
    if (first->wide) {
        pwsp_deps_walk(deps, query, &first->wide);
    }
    if (!first->has_cells) {
        return;  // no other access of the group yet
    }
    pwsp_cells cells = pwsp_deps_cells(deps, query->at);
    if (cells.is_wide) {
        for (uint32_t i = 0; i < deps->access_count; i++) {
            if (deps->tensors[deps->accesses[i].at.tensor].group == tensor->group &&
                !pwsp_deps_is_dead(deps, &deps->accesses[i])) {
                pwsp_deps_meet(deps, query, i);
            }
        }
        return;
    }
    if (query->is_exact) {  // the same tile has the same first cell
        pwsp_deps_walk(deps, query,
                       pwsp_deps_bucket(deps, cells.name, cells.first_row, cells.first_col));
        return;
    }
    for (uint64_t row = cells.first_row; row <= cells.last_row; row++) {
        for (uint64_t col = cells.first_col; col <= cells.last_col; col++) {
            pwsp_deps_walk(deps, query, pwsp_deps_bucket(deps, cells.name, row, col));
        }
    }
}

// A task that waits for all that it conflicts with may take the place of what it covers at once.
// Otherwise that is done when its accesses are added, so that it sees all of what was before.
static bool pwsp_deps_is_one_pass(const pwsp_deps *deps) {
    return (deps->is_exact || deps->is_overlap) &&
           deps->hazards == (PTOWSP_HAZARD_RAW | PTOWSP_HAZARD_WAR | PTOWSP_HAZARD_WAW);
}

// Sweeps if that is due. Not between a query and adding: what was found must stay where it is.
static bool pwsp_deps_make_room(pwsp_deps *deps, uint32_t count) {
    return deps->access_count + count <= deps->sweep_at || pwsp_deps_sweep(deps);
}

PWSP_INTERNAL bool pwsp_deps_query(pwsp_deps *deps, const pwsp_tile_view *views,
                                   const pwsp_tile_at *tiles, uint32_t count) {
    if (!deps->is_exact && !deps->is_overlap) {
        return true;
    }
    if (!pwsp_deps_make_room(deps, count)) {
        return false;
    }
    bool is_one_pass = pwsp_deps_is_one_pass(deps);
    for (uint32_t i = 0; i < count; i++) {
        pwsp_deps_query_state query = {&tiles[i],
                                       false,
                                       views[i].is_read,
                                       views[i].is_written,
                                       false,
                                       !deps->is_overlap,
                                       is_one_pass && views[i].is_written,
                                       NULL,
                                       0,
                                       0};
        pwsp_deps_look(deps, &query);
        deps->same[i] = query.same;
    }
    return true;
}

PWSP_INTERNAL void pwsp_deps_query_load(pwsp_deps *deps, const pwsp_tile_at *tile) {
    uint32_t hazards = deps->hazards;
    deps->hazards = PTOWSP_HAZARD_RAW;
    pwsp_deps_query_state query = {tile, true, true, false, false, false, false, NULL, 0, 0};
    pwsp_deps_look(deps, &query);
    deps->hazards = hazards;
}

PWSP_INTERNAL void pwsp_deps_query_loads(pwsp_deps *deps, const pwsp_tile_view *views,
                                         const pwsp_tile_at *tiles, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (views[i].is_loaded) {
            pwsp_deps_query_load(deps, &tiles[i]);
        }
    }
}

// -- adding ---------------------------------------------------------------------------------------

// A reader of a tile that others only read, too: they count as one.
static void pwsp_deps_merge(pwsp_deps *deps, pwsp_access *access, const pwsp_token *token) {
    if (deps->ops.merge) {
        deps->ops.merge(deps->ops.user, &access->token, token);
    } else if (token->time > access->token.time) {
        access->token = *token;
    }
    access->owner = deps->owner;
}

// Adds the access of a task's tile.
static bool pwsp_deps_add_one(pwsp_deps *deps, const pwsp_tile_view *view, const pwsp_tile_at *at,
                              uint32_t tile, const pwsp_token *token) {
    if (!deps->tensors[deps->tensors[at->tensor].group].has_cells && !pwsp_deps_is_whole(at)) {
        pwsp_deps_choose_cells(deps, at);
    }
    uint32_t found = deps->same[tile];
    if (!pwsp_deps_is_one_pass(deps)) {
        bool is_exact = deps->is_exact && !deps->is_overlap;
        pwsp_deps_query_state query = {at,          false,    view->is_read,    view->is_written,
                                       false,       is_exact, view->is_written, token,
                                       deps->owner, 0};
        uint32_t hazards = deps->hazards;
        deps->hazards = 0;  // only to find what is the same, and what is superseded
        pwsp_deps_look(deps, &query);
        deps->hazards = hazards;
        found = query.same;
    }
    bool is_found = found && !deps->accesses[found - 1].is_gone;
    pwsp_access *same = is_found ? &deps->accesses[found - 1] : NULL;
    if (same && view->is_written) {
        bool is_own = same->owner == deps->owner;
        same->is_read = view->is_read || (is_own && same->is_read);
        same->is_written = true;
        pwsp_deps_set_token(deps, same, token);
        return true;
    }
    if (same) {
        pwsp_deps_merge(deps, same, token);
        return true;
    }
    void *accesses = deps->accesses;
    if (deps->access_count >= UINT32_MAX - 1 ||
        !pwsp_memory_grow(deps->memory, &accesses, &deps->access_capacity, deps->access_count + 1,
                          sizeof(pwsp_access))) {
        return false;
    }
    deps->accesses = (pwsp_access *)accesses;
    pwsp_access access = {*at, view->is_read, view->is_written, false, false, *token, deps->owner};
    deps->accesses[deps->access_count++] = access;
    deps->access_max = pwsp_max_u64(deps->access_max, deps->access_count);
    if (deps->ops.keep) {
        deps->ops.keep(deps->ops.user, token);
    }
    return pwsp_deps_enter(deps, (uint32_t)deps->access_count - 1);
}

PWSP_INTERNAL bool pwsp_deps_add(pwsp_deps *deps, const pwsp_tile_view *views,
                                 const pwsp_tile_at *tiles, uint32_t count,
                                 const pwsp_token *token) {
    bool is_queried = deps->is_exact || deps->is_overlap;
    if (!is_queried && !pwsp_deps_make_room(deps, count)) {
        return false;
    }
    deps->owner++;
    for (uint32_t i = 0; i < count; i++) {
        if (deps->tensors[tiles[i].tensor].is_tracked &&
            !pwsp_deps_add_one(deps, &views[i], &tiles[i], i, token)) {
            return false;
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
        (uint32_t *)pwsp_memory_alloc(memory, ((size_t)tensor_count + 1) * sizeof(uint32_t));
    deps->same_count = tensor_count > PTOWSP_TASK_TILE_MAX ? tensor_count : PTOWSP_TASK_TILE_MAX;
    deps->same = (uint32_t *)pwsp_memory_alloc(memory, deps->same_count * sizeof(uint32_t));
    for (uint32_t i = 0; deps->order && i < tensor_count; i++) {
        deps->order[i] = i;
    }
    return deps->tensors && deps->order && deps->same;
}

// Does a tensor's layout give every index its own element? Also its span of bytes.
static bool pwsp_deps_layout(const pwsp_bound_tensor *bound, uint64_t *out_low,
                             uint64_t *out_high) {
    int64_t shape[PTOWSP_TENSOR_RANK_MAX], strides[PTOWSP_TENSOR_RANK_MAX], low, high;
    for (uint32_t i = 0; i < PWSP_TENSOR_LEAD_MAX; i++) {
        shape[i] = bound->lead_shape[i];
        strides[i] = bound->lead_strides[i];
    }
    shape[PWSP_TENSOR_LEAD_MAX] = bound->rows;
    strides[PWSP_TENSOR_LEAD_MAX] = bound->row_stride;
    shape[PWSP_TENSOR_LEAD_MAX + 1] = bound->cols;
    strides[PWSP_TENSOR_LEAD_MAX + 1] = bound->col_stride;
    *out_low = *out_high = 0;
    if (!pwsp_layout_span(PTOWSP_TENSOR_RANK_MAX, shape, strides, &low, &high)) {
        return false;
    }
    *out_low = bound->base + (uint64_t)low * bound->element_size;
    *out_high = bound->base + (uint64_t)(high + 1) * bound->element_size;
    return pwsp_layout_is_injective(PTOWSP_TENSOR_RANK_MAX, shape, strides);
}

static bool pwsp_deps_begins_before(const pwsp_deps *deps, uint32_t a, uint32_t b) {
    uint64_t a_low = deps->tensors[a].low, b_low = deps->tensors[b].low;
    return a_low < b_low || (a_low == b_low && a < b);
}

// Puts the tensor at a place of a heap, or at one below it, the one that begins last on top.
static void pwsp_deps_sift(pwsp_deps *deps, uint32_t count, uint32_t place, uint32_t tensor) {
    uint32_t *order = deps->order;
    for (uint32_t child = 2 * place + 1; child < count; child = 2 * place + 1) {
        child += child + 1 < count && pwsp_deps_begins_before(deps, order[child], order[child + 1]);
        if (!pwsp_deps_begins_before(deps, tensor, order[child])) {
            break;
        }
        order[place] = order[child];
        place = child;
    }
    order[place] = tensor;
}

// Sorts tensors by where they begin. From one execution to the next that seldom changes.
static void pwsp_deps_sort(pwsp_deps *deps) {
    uint32_t count = deps->tensor_count, sorted = 1;
    while (sorted < count &&
           pwsp_deps_begins_before(deps, deps->order[sorted - 1], deps->order[sorted])) {
        sorted++;
    }
    if (sorted >= count) {
        return;
    }
    for (uint32_t i = count / 2; i > 0; i--) {
        pwsp_deps_sift(deps, count, i - 1, deps->order[i - 1]);
    }
    for (uint32_t i = count - 1; i > 0; i--) {
        uint32_t tensor = deps->order[i];
        deps->order[i] = deps->order[0];
        pwsp_deps_sift(deps, i, 0, tensor);
    }
}

// Groups tensors whose spans of bytes overlap, directly or through others: in the order of where
// they begin, each group is a run in which all but the first begin before an earlier one ends.
// Groups are named after their lowest tensor, and who is in one with others is not plain.
static void pwsp_deps_find_groups(pwsp_deps *deps) {
    pwsp_deps_sort(deps);
    for (uint32_t first = 0, end; first < deps->tensor_count; first = end) {
        uint32_t lowest = deps->order[first], count = 0;
        uint64_t high = deps->tensors[lowest].high;
        for (end = first + 1; end < deps->tensor_count; end++) {
            const pwsp_deps_tensor *tensor = &deps->tensors[deps->order[end]];
            if (tensor->low >= high) {
                break;
            }
            if (tensor->low < tensor->high) {
                high = pwsp_max_u64(high, tensor->high);
                lowest = deps->order[end] < lowest ? deps->order[end] : lowest;
                count++;
            }
        }
        for (uint32_t i = first; count > 0 && i < end; i++) {
            pwsp_deps_tensor *tensor = &deps->tensors[deps->order[i]];
            if (tensor->low < tensor->high) {
                tensor->group = lowest;
                tensor->is_plain = false;
            }
        }
    }
    for (uint32_t i = 1; i < deps->tensor_count; i++) {  // what one is, its group is
        pwsp_deps_tensor *first = &deps->tensors[deps->tensors[i].group];
        first->is_tracked |= deps->tensors[i].is_tracked;
        first->is_loaded |= deps->tensors[i].is_loaded;
        first->is_written |= deps->tensors[i].is_written;
    }
    for (uint32_t i = 1; i < deps->tensor_count; i++) {
        const pwsp_deps_tensor *first = &deps->tensors[deps->tensors[i].group];
        deps->tensors[i].is_tracked = first->is_tracked;
        deps->tensors[i].is_loaded = first->is_loaded;
        deps->tensors[i].is_written = first->is_written;
    }
}

// Forgets all accesses, and learns where tensors lie.
static void pwsp_deps_forget(pwsp_deps *deps, const ptowsp_program *program,
                             const pwsp_bound_tensor *bound) {
    deps->bound = bound;
    deps->clock = 0;
    deps->access_count = 0;
    deps->access_max = 0;
    deps->owner = 0;
    deps->sweep_at = 0;
    deps->link_count = 0;
    for (uint32_t i = 1; i < deps->tensor_count; i++) {
        pwsp_deps_tensor *tensor = &deps->tensors[i];
        memset(tensor, 0, sizeof *tensor);
        tensor->group = i;
        tensor->is_written = program->tensor_is_written[i];
        if (bound[i].is_bound) {
            tensor->is_plain = pwsp_deps_layout(&bound[i], &tensor->low, &tensor->high);
        }
    }
}

PWSP_INTERNAL void pwsp_deps_begin(pwsp_deps *deps, const ptowsp_program *program,
                                   const pwsp_bound_tensor *bound) {
    const ptowsp_schedule *schedule = &program->schedule;
    pwsp_deps_forget(deps, program, bound);
    deps->is_exact = (schedule->dependencies & PTOWSP_DEPENDENCIES_EXACT) != 0;
    deps->is_overlap = (schedule->dependencies & PTOWSP_DEPENDENCIES_OVERLAP) != 0;
    deps->hazards = schedule->hazards;
    bool is_all = deps->is_exact || deps->is_overlap;
    bool is_dataflow = schedule->issue == PTOWSP_ISSUE_DATAFLOW;
    for (uint32_t i = 1; i < deps->tensor_count; i++) {
        pwsp_deps_tensor *tensor = &deps->tensors[i];
        if (bound[i].is_bound) {
            bool is_loaded = is_dataflow && program->tensor_is_loaded[i];
            tensor->is_tracked = is_all || is_loaded;
            tensor->is_loaded = is_loaded && !(is_all && (schedule->hazards & PTOWSP_HAZARD_WAW));
        }
    }
    pwsp_deps_find_groups(deps);
}

PWSP_INTERNAL void pwsp_deps_begin_data(pwsp_deps *deps, const ptowsp_program *program,
                                        const pwsp_bound_tensor *bound) {
    pwsp_deps_forget(deps, program, bound);
    deps->is_exact = false;
    deps->is_overlap = true;
    deps->hazards = PTOWSP_HAZARD_RAW | PTOWSP_HAZARD_WAR | PTOWSP_HAZARD_WAW;
    for (uint32_t i = 1; i < deps->tensor_count; i++) {
        deps->tensors[i].is_tracked = bound[i].is_bound && program->tensor_is_written[i];
    }
    pwsp_deps_find_groups(deps);
}

PWSP_INTERNAL void pwsp_deps_free(pwsp_deps *deps) {
    if (!deps->memory) {
        return;
    }
    pwsp_memory_free(deps->memory, deps->tensors,
                     (deps->tensor_count + 1) * sizeof(pwsp_deps_tensor));
    pwsp_memory_free(deps->memory, deps->order,
                     ((size_t)deps->tensor_count + 1) * sizeof(uint32_t));
    pwsp_memory_free(deps->memory, deps->same, deps->same_count * sizeof(uint32_t));
    pwsp_memory_free(deps->memory, deps->accesses,
                     (size_t)deps->access_capacity * sizeof(pwsp_access));
    pwsp_memory_free(deps->memory, deps->links,
                     (size_t)deps->link_capacity * sizeof(pwsp_access_link));
    pwsp_memory_free(deps->memory, deps->buckets, (size_t)deps->bucket_count * sizeof(uint32_t));
    memset(deps, 0, sizeof *deps);
}

PWSP_INTERNAL size_t pwsp_deps_bytes(const pwsp_deps *deps) {
    return ((size_t)deps->tensor_count + 1) * (sizeof(pwsp_deps_tensor) + sizeof(uint32_t)) +
           deps->same_count * sizeof(uint32_t) +
           (size_t)deps->access_capacity * sizeof(pwsp_access) +
           (size_t)deps->link_capacity * sizeof(pwsp_access_link) +
           (size_t)deps->bucket_count * sizeof(uint32_t);
}
