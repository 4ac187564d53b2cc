// Levels, cells and room of the map of regions: deps.c explains them.

#include "grid.h"

#define PWSP_DEPS_HAND_STEPS   8           // for each access that is added; half of it for times
#define PWSP_DEPS_TIMES_MAX    2           // log2 of the largest ratio of a level to a tile
#define PWSP_DEPS_LEVELS_FIXED 64          // with fixed memory: further tiles are wide
#define PWSP_DEPS_LEVELS_MAX   UINT16_MAX  // further tiles are wide

PWSP_INTERNAL void pwsp_deps_extent_of_bytes(const pwsp_deps *deps, const pwsp_access *at,
                                             pwsp_extent_at *extent) {
    uint32_t group = deps->tensors[at->tensor].group;
    uint64_t low, high;
    pwsp_region region = pwsp_deps_region(deps, at);
    pwsp_region_span(&region, &low, &high);
    extent->place = 0;
    extent->row = low - deps->tensors[group].origin;
    extent->rows = high - low;
    extent->col = 0;
    extent->cols = 1;
    extent->is_wide = high <= low || extent->row > UINT64_MAX - extent->rows;
}

PWSP_INTERNAL uint64_t pwsp_deps_inverse(uint64_t odd) {
    uint64_t inverse = odd;  // of the lowest three bits; each round doubles them
    for (uint32_t i = 0; i < 5; i++) {
        inverse *= 2 - odd * inverse;
    }
    return inverse;
}

PWSP_INTERNAL uint64_t pwsp_deps_matrix_step(const pwsp_bound_tensor *bound) {
    uint64_t divisor = 0;
    for (uint32_t i = 0; i < PWSP_TENSOR_LEAD_MAX; i++) {
        const int64_t stride = bound->lead_shape[i] > 1 ? bound->lead_strides[i] : 0;
        uint64_t rest = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
        while (rest) {
            const uint64_t next = divisor % rest;
            divisor = rest;
            rest = next;
        }
    }
    return divisor;
}

// Numbers the cells of a new level.
static void pwsp_deps_number(const pwsp_deps *deps, uint32_t tensor, pwsp_deps_level *level,
                             uint32_t id) {
    const pwsp_bound_tensor *bound = &deps->bound[tensor];
    level->first = pwsp_mix64(id) >> 16;
    level->place_shift = 0;
    level->place_factor = 0;
    level->row_cells = 1;
    if (!deps->tensors[tensor].is_plain) {
        return;
    }
    const uint64_t step = pwsp_deps_matrix_step(bound);
    level->row_cells = ((uint64_t)bound->cols >> level->col_shift) + 1;
    if (step) {
        level->place_shift = (uint8_t)__builtin_ctzll(step);
        level->place_factor = pwsp_deps_inverse(step >> level->place_shift) *
                              (((uint64_t)bound->rows >> level->row_shift) + 1) * level->row_cells;
    }
}

// The level of a group for a new access; 0 if there can be no further one. False when memory is
// out.
static bool pwsp_deps_choose_level(pwsp_deps *deps, const pwsp_access *at,
                                   const pwsp_extent_at *extent, uint32_t *out_level) {
    const pwsp_deps_tensor *tensor = &deps->tensors[at->tensor];
    const pwsp_bound_tensor *bound = &deps->bound[at->tensor];
    pwsp_deps_tensor *first = &deps->tensors[tensor->group];
    uint8_t row_shift = pwsp_deps_log2(extent->rows), col_shift = pwsp_deps_log2(extent->cols);
    bool is_last_row = tensor->is_plain && extent->row + extent->rows == (uint64_t)bound->rows;
    bool is_last_col = tensor->is_plain && extent->col + extent->cols == (uint64_t)bound->cols;
    uint32_t best = 0, empty = 0, best_times = UINT32_MAX;
    for (uint32_t id = first->levels; id; id = deps->levels[id].next) {
        const pwsp_deps_level *level = &deps->levels[id];
        if (level->row_shift == row_shift && level->col_shift == col_shift) {
            *out_level = id;
            return true;
        }
        if (level->count == 0) {
            empty = id;
        } else if (level->row_shift >= row_shift && level->col_shift >= col_shift) {
            uint32_t row_times = level->row_shift - row_shift;
            uint32_t col_times = level->col_shift - col_shift;
            uint32_t counted = (is_last_row ? 0 : row_times) + (is_last_col ? 0 : col_times);
            if (counted <= PWSP_DEPS_TIMES_MAX && row_times + col_times < best_times) {
                best = id;
                best_times = row_times + col_times;
            }
        }
    }
    *out_level = best;
    if (best) {
        return true;
    }
    if (!empty) {
        empty = (uint32_t)pwsp_max_u64(deps->level_count, 1);
        if (empty > PWSP_DEPS_LEVELS_MAX || (deps->is_fixed && empty >= deps->level_capacity)) {
            return true;
        }
        if (!PWSP_GROW(deps->memory, deps->levels, deps->level_capacity, empty + 1u)) {
            return false;
        }
        deps->level_count = empty + 1u;
        deps->levels[empty].next = first->levels;
        first->levels = empty;
    }
    pwsp_deps_level level = {
        deps->levels[empty].next, 0, row_shift, col_shift, false, false, 0, 0, 0, 0};
    pwsp_deps_number(deps, at->tensor, &level, empty);
    deps->levels[empty] = level;
    *out_level = empty;
    return true;
}

PWSP_INTERNAL bool pwsp_deps_enter(pwsp_deps *deps, uint32_t index) {
    const pwsp_access *access = &deps->accesses[index];
    pwsp_extent_at extent;
    uint32_t id = 0;
    pwsp_deps_extent(deps, access, &extent);
    if (!extent.is_wide && !pwsp_deps_choose_level(deps, access, &extent, &id)) {
        return false;
    }
    if (PWSP_UNLIKELY(id == 0)) {
        deps->states[index].flags |= PWSP_ACCESS_LINKED;
        deps->states[index].level = 0;
        pwsp_deps_push(deps, pwsp_deps_list(deps, index), index, 0);
        return true;
    }
    const pwsp_deps_level *level = &deps->levels[id];
    uint64_t row = extent.row >> level->row_shift, col = extent.col >> level->col_shift;
    pwsp_deps_enter_cell(deps, index, id, pwsp_deps_cell(level, extent.place, row, col),
                         (extent.row + extent.rows - 1) >> level->row_shift != row,
                         (extent.col + extent.cols - 1) >> level->col_shift != col);
    return true;
}

// -- room -----------------------------------------------------------------------------------------

// Rebuilds all lists, with only the accesses that are in one.
static bool pwsp_deps_enter_all(pwsp_deps *deps) {
    if (deps->buckets) {  // none if all accesses are in grids
        memset(deps->buckets, 0, (size_t)deps->bucket_count * sizeof(uint32_t));
    }
    for (uint32_t i = 0; i < deps->tensor_count; i++) {
        deps->tensors[i].wides = 0;
    }
    for (uint64_t i = 1; i < deps->level_count; i++) {
        deps->levels[i].count = 0;
        deps->levels[i].row_over = deps->levels[i].col_over = false;
    }
    for (uint32_t i = 0; i < deps->access_count; i++) {
        const uint32_t flags = deps->states[i].flags & (PWSP_ACCESS_LINKED | PWSP_ACCESS_GRID);
        if (flags == PWSP_ACCESS_LINKED && !pwsp_deps_enter(deps, i)) {
            return false;
        }
    }
    return true;
}

PWSP_INTERNAL bool pwsp_deps_sweep(pwsp_deps *deps) {
    uint32_t living = 0;
    for (uint32_t i = 0; i < deps->access_count; i++) {
        if (pwsp_deps_is_dead(deps, i)) {
            if (deps->states[i].flags & PWSP_ACCESS_GRID) {
                pwsp_deps_grid_leave(deps, i);
            }
            pwsp_deps_drop(deps, i);
            continue;
        }
        if (deps->states[i].flags & PWSP_ACCESS_GRID) {
            deps->slots[deps->states[i].cell] = living + 1;
        }
        pwsp_token token = pwsp_deps_token(deps, i);
        deps->accesses[living] = deps->accesses[i];
        deps->states[living] = deps->states[i];
        pwsp_deps_put_token(deps, living++, &token);
    }
    deps->access_count = living;
    deps->free_count = 0;
    deps->hand = 0;
    deps->wants_sweep = false;
    return pwsp_deps_enter_all(deps);
}

// The last answer about a token: neighbours are often of one task.
typedef struct pwsp_deps_hand {
    uint32_t token;  // UINT32_MAX: of none
    bool is_dead;
} pwsp_deps_hand;

// Advances the hand by some steps. Stores the dead accesses that it comes by, and returns their number.
static uint32_t pwsp_deps_find_dead(pwsp_deps *deps, uint32_t steps, pwsp_deps_hand *known,
                                    uint32_t *found) {
    uint32_t found_count = 0;
    for (uint32_t i = 0; i < steps; i++) {
        const uint32_t index = deps->hand < deps->access_count ? deps->hand : 0;
        const pwsp_access_state *state = &deps->states[index];
        deps->hand = index + 1;
        if (state->flags & PWSP_ACCESS_FREE) {
            continue;
        }
        if (!deps->ops.is_small || state->token != known->token ||
            state->flags & PWSP_ACCESS_GONE) {
            known->is_dead = pwsp_deps_is_dead(deps, index);
            known->token = state->flags & PWSP_ACCESS_GONE ? UINT32_MAX : state->token;
        }
        if (known->is_dead) {
            found[found_count++] = index;
        }
    }
    return found_count;
}

// What leads to the next access that becomes free.
static uint32_t *pwsp_deps_free_link(pwsp_deps *deps) {
    return deps->free_count ? &deps->states[deps->free_last].next : &deps->free_first;
}

// An access that has been dropped. Places are taken in the order in which they become free, so that
// neighbours are of similar age.
static void pwsp_deps_free_access(pwsp_deps *deps, uint32_t index) {
    PTOWSP_ASSERT(!(deps->states[index].flags & (PWSP_ACCESS_FREE | PWSP_ACCESS_LINKED)));
    deps->states[index].flags |= PWSP_ACCESS_GONE | PWSP_ACCESS_FREE;
    if (!deps->ops.is_dead) {
        deps->times[index] = UINT64_MAX;  // the hand passes over it
    }
    *pwsp_deps_free_link(deps) = index;
    deps->free_count++;
    deps->free_last = index;
}

// Frees dead accesses without lists: each is a time in a grid, or has been dropped.
static void pwsp_deps_free_times(pwsp_deps *deps, const uint32_t *found, uint32_t count) {
    uint32_t *link = pwsp_deps_free_link(deps);
    for (uint32_t i = 0; i < count; i++) {
        pwsp_access_state *state = &deps->states[found[i]];
        PTOWSP_ASSERT(!(state->flags & PWSP_ACCESS_FREE));
        if (PWSP_LIKELY(state->flags & PWSP_ACCESS_GRID)) {
            pwsp_deps_slot_clear(deps, state->cell);
        }
        state->flags = PWSP_ACCESS_GONE | PWSP_ACCESS_FREE;
        deps->times[found[i]] = UINT64_MAX;
        *link = found[i];
        link = &state->next;
    }
    deps->free_count += count;
    deps->free_last = found[count - 1];
}

// Frees dead accesses, whose lists are prefetched.
static void pwsp_deps_free_found(pwsp_deps *deps, const uint32_t *found, uint32_t count) {
    uint32_t *lists[PWSP_DEPS_HAND_STEPS];
    for (uint32_t i = 0; deps->buckets && i < count; i++) {
        const uint32_t flags = deps->states[found[i]].flags;
        if ((flags & (PWSP_ACCESS_GRID | PWSP_ACCESS_LINKED)) == PWSP_ACCESS_LINKED) {
            lists[i] = pwsp_deps_list(deps, found[i]);
            PWSP_PREFETCH(lists[i]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t flags = deps->states[found[i]].flags;
        if (flags & PWSP_ACCESS_GRID) {
            pwsp_deps_grid_leave(deps, found[i]);  // a time, which nobody holds
        } else {
            if (flags & PWSP_ACCESS_LINKED) {
                pwsp_deps_leave(deps, found[i], lists[i]);
            }
            pwsp_deps_drop(deps, found[i]);
        }
        pwsp_deps_free_access(deps, found[i]);
    }
}

// Advances the hand by four steps, or by as many as there are accesses. Stores the dead ones that it comes
// by, and returns their number. Only the first look at one that is dead is at its access.
static uint32_t pwsp_deps_find_past(pwsp_deps *deps, uint32_t *found) {
    const uint64_t *times = deps->times;
    const uint64_t clock = pwsp_max_u64(deps->clock, 1);  // removed accesses have time 0
    const uint64_t count = deps->access_count;
    uint32_t past = 0, hand = deps->hand;
    if (PWSP_LIKELY(hand + UINT64_C(4) <= count)) {
        found[0] = hand;
        past = times[hand] < clock;
        found[past] = hand + 1;
        past += times[hand + 1] < clock;
        found[past] = hand + 2;
        past += times[hand + 2] < clock;
        found[past] = hand + 3;
        past += times[hand + 3] < clock;
        hand += 4;
    } else {
        for (uint64_t i = 0; i < pwsp_min_u64(count, 4); i++) {
            hand = hand < count ? hand : 0;
            found[past] = hand;
            past += times[hand] < clock;
            hand++;
        }
    }
    deps->hand = hand;
    if (PWSP_LIKELY(deps->clock > 0)) {
        return past;
    }
    uint32_t dead = 0;
    for (uint32_t i = 0; i < past; i++) {
        found[dead] = found[i];
        dead += pwsp_deps_is_dead(deps, found[i]);
    }
    return dead;
}

static void pwsp_deps_free_past(pwsp_deps *deps, const uint32_t *found, uint32_t count) {
    if (PWSP_UNLIKELY(deps->buckets)) {
        pwsp_deps_free_found(deps, found, count);
    } else if (count) {
        pwsp_deps_free_times(deps, found, count);
    }
}

// The hand for tokens that are not times.
static PWSP_NOINLINE void pwsp_deps_make_room_by_token(pwsp_deps *deps, uint32_t count) {
    const uint64_t enough = deps->access_count / PWSP_DEPS_HAND_STEPS + count;
    const uint32_t most = deps->ops.is_small ? PWSP_DEPS_HAND_STEPS : PWSP_DEPS_HAND_STEPS / 2;
    const uint32_t steps = (uint32_t)pwsp_min_u64(deps->access_count, most);
    pwsp_deps_hand known = {UINT32_MAX, false};
    for (uint32_t tile = 0; tile < count && deps->free_count < enough; tile++) {
        uint32_t found[PWSP_DEPS_HAND_STEPS];
        const uint32_t found_count = pwsp_deps_find_dead(deps, steps, &known, found);
        pwsp_deps_free_found(deps, found, found_count);
    }
}

PWSP_INTERNAL void pwsp_deps_make_room(pwsp_deps *deps, uint32_t count) {
    if (deps->ops.is_dead) {
        pwsp_deps_make_room_by_token(deps, count);
        return;
    }
    const uint64_t enough = deps->access_count / PWSP_DEPS_HAND_STEPS + count;
    // How many are found has no pattern, so they are freed together, unless the hand might come by twice.
    const uint32_t most = deps->access_count < 4 * (uint64_t)count ? 0 : PWSP_DEPS_HAND_STEPS / 2;
    uint32_t found[PWSP_DEPS_HAND_STEPS], tile = 0;
    while (tile < count && deps->free_count < enough) {
        uint32_t found_count = 0;
        do {
            found_count += pwsp_deps_find_past(deps, found + found_count);
            tile++;
        } while (tile < count && found_count <= most && deps->free_count + found_count < enough);
        pwsp_deps_free_past(deps, found, found_count);
    }
}

static bool pwsp_deps_grow(pwsp_deps *deps, uint64_t needed) {
    if (PWSP_LIKELY(needed <= deps->room)) {
        return true;
    }
    const pwsp_memory *memory = deps->memory;
    bool has_times = !deps->ops.is_small, has_tasks = has_times && deps->has_tasks;
    bool is_good =
        PWSP_GROW_LITTLE(memory, deps->accesses, deps->access_capacity, needed) &&
        PWSP_GROW_LITTLE(memory, deps->states, deps->state_capacity, needed) &&
        (!has_times || PWSP_GROW_LITTLE(memory, deps->times, deps->time_capacity, needed)) &&
        (!has_tasks || PWSP_GROW_LITTLE(memory, deps->tasks, deps->task_capacity, needed));
    deps->room = pwsp_min_u64(deps->access_capacity, deps->state_capacity);
    deps->room = has_times ? pwsp_min_u64(deps->room, deps->time_capacity) : deps->room;
    deps->room = has_tasks ? pwsp_min_u64(deps->room, deps->task_capacity) : deps->room;
    return is_good;
}

// Makes room for the links of a number of accesses.
static bool pwsp_deps_grow_nexts(pwsp_deps *deps, uint64_t count) {
    return PWSP_GROW_LITTLE(deps->memory, deps->nexts, deps->next_capacity, count);
}

// Makes room for the lists of a number of accesses; accesses in lists must be entered again.
static bool pwsp_deps_grow_buckets(pwsp_deps *deps, uint64_t count) {
    bool has_room = PWSP_ROOM(deps->memory, deps->buckets, deps->bucket_count,
                              pwsp_max_u64(count, PWSP_DEPS_SWEEP_MIN));
    deps->index_mask = (uint32_t)((UINT64_C(2) << pwsp_deps_log2(deps->bucket_count)) - 1);
    return has_room;
}

PWSP_INTERNAL bool pwsp_deps_reserve(pwsp_deps *deps) {
    deps->has_tasks = true;
    return pwsp_deps_grow(deps, PWSP_DEPS_SWEEP_MIN) &&
           pwsp_deps_grow_nexts(deps, PWSP_DEPS_SWEEP_MIN) &&
           pwsp_deps_grow_buckets(deps, PWSP_DEPS_SWEEP_MIN);
}

PWSP_INTERNAL bool pwsp_deps_fix(pwsp_deps *deps, uint32_t access_count) {
    deps->has_tasks = true;
    bool is_good = pwsp_deps_grow(deps, access_count) && pwsp_deps_grow_nexts(deps, access_count) &&
                   pwsp_deps_grow_buckets(deps, access_count) &&
                   PWSP_GROW(deps->memory, deps->levels, deps->level_capacity,
                             PWSP_DEPS_LEVELS_FIXED + 2 * (uint64_t)deps->tensor_count);
    deps->is_fixed = true;
    return is_good;
}

PWSP_INTERNAL bool pwsp_deps_has_room(pwsp_deps *deps, uint32_t count) {
    PTOWSP_ASSERT(deps->is_fixed);
    if (deps->free_count + (deps->next_capacity - deps->access_count) < count) {
        const bool is_good = pwsp_deps_sweep(deps);
        PTOWSP_ASSERT(is_good);  // it asks for no memory
        (void)is_good;
    }
    return deps->free_count + (deps->next_capacity - deps->access_count) >= count;
}

PWSP_INTERNAL void pwsp_deps_clear(pwsp_deps *deps) {
    for (uint32_t i = 0; i < deps->access_count; i++) {
        pwsp_deps_drop(deps, i);
    }
    bool is_good = pwsp_deps_sweep(deps);
    PTOWSP_ASSERT(is_good && deps->access_count == 0);
    (void)is_good;
}

PWSP_INTERNAL bool pwsp_deps_widen(pwsp_deps *deps) {
    const uint64_t needed = deps->access_count;
    return (needed <= deps->next_capacity || pwsp_deps_grow_nexts(deps, needed)) &&
           (needed <= deps->bucket_count ||
            (pwsp_deps_grow_buckets(deps, needed + needed / 4) && pwsp_deps_enter_all(deps)));
}

PWSP_INTERNAL uint32_t pwsp_deps_place_new(pwsp_deps *deps) {
    uint64_t needed = deps->access_count + 1;
    if (needed >= UINT32_MAX || !pwsp_deps_grow(deps, needed)) {
        return 0;
    }
    deps->states[needed - 1].flags = 0;  // it is in no list yet, which growing tables must see
    deps->access_count = needed;
    deps->access_max = pwsp_max_u64(deps->access_max, needed);
    return (uint32_t)needed;
}
