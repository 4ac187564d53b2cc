// A query and the accesses that it finds: it visits them, and covers or takes over those that
// its tile supersedes. deps.c explains the rules.

#ifndef PWSP_MEET_H
#define PWSP_MEET_H

#include "grid.h"

// Lists a visited token, if it is not in the list.
PWSP_INLINE void pwsp_deps_note(pwsp_deps *deps, const pwsp_token *token) {
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
    if (!PWSP_GROW(deps->memory, deps->visited, deps->visited_capacity, deps->visited_count + 1)) {
        deps->is_list_lost = true;
        return;
    }
    memmove(&deps->visited[low + 1], &deps->visited[low],
            (size_t)(deps->visited_count - low) * sizeof(pwsp_token));
    deps->visited[low] = *token;
    deps->visited_count++;
}

// A task waits for a time. Of tokens with the same time the lowest task counts, in whatever order
// they are found.
PWSP_INLINE void pwsp_deps_later(pwsp_deps *deps, uint32_t index) {
    const uint64_t time = deps->times[index], latest = deps->latest.time;
    deps->visit_count++;
    if (time > latest ||
        (time == latest && deps->has_tasks && deps->tasks[index] < deps->latest.task)) {
        deps->latest = pwsp_deps_token(deps, index);
    }
}

PWSP_INLINE void pwsp_deps_visit(pwsp_deps *deps, uint32_t index) {
    PTOWSP_ASSERT(!(deps->states[index].flags & (PWSP_ACCESS_GONE | PWSP_ACCESS_FREE)));
    if (PWSP_UNLIKELY(deps->is_counted)) {
        const pwsp_token token = pwsp_deps_token(deps, index);
        pwsp_deps_note(deps, &token);
    }
    if (deps->ops.visit) {
        const pwsp_token token = pwsp_deps_token(deps, index);
        deps->ops.visit(deps->ops.user, &token);
        return;
    }
    pwsp_deps_later(deps, index);
}

// Makes an access one of the task that is being added.
PWSP_INLINE void pwsp_deps_set_token(pwsp_deps *deps, uint32_t index, const pwsp_token *token) {
    PTOWSP_ASSERT(index < deps->access_count && !(deps->states[index].flags & PWSP_ACCESS_GONE));
    if (deps->ops.keep) {
        pwsp_token before = pwsp_deps_token(deps, index);
        deps->ops.keep(deps->ops.user, token);
        deps->ops.drop(deps->ops.user, &before);
    }
    pwsp_deps_put_token(deps, index, token);
    deps->states[index].flags |= PWSP_ACCESS_OWN;
}

// Does an access of another task stay a reader when a write covers it? If a later writer waits for
// the write, it also waits for the reader, because the write did: by write-after-write, or by
// write-after-read if the write reads as well.
PWSP_INLINE bool pwsp_deps_stays_read(const pwsp_deps *deps, const pwsp_deps_query_state *query,
                                      uint32_t flags) {
    return (flags & PWSP_ACCESS_READ) && !query->is_read && deps->keeps_readers;
}

// A write covers an access: older accesses in it are not waited for any more, except those that
// stay readers.
PWSP_INLINE void pwsp_deps_cover(pwsp_deps *deps, const pwsp_deps_query_state *query,
                                 uint32_t index) {
    const uint32_t flags = deps->states[index].flags;
    if (flags & PWSP_ACCESS_OWN) {
        pwsp_deps_set_token(deps, index, query->token);
        return;
    }
    bool stays_read = pwsp_deps_stays_read(deps, query, flags);
    bool is_loaded = deps->tensors[deps->accesses[index].tensor].is_loaded;
    bool stays_hidden = (flags & PWSP_ACCESS_WRITTEN) && is_loaded;
    if (!stays_read && !stays_hidden) {
        pwsp_deps_drop(deps, index);
        return;
    }
    uint32_t lost = (stays_read ? 0 : PWSP_ACCESS_READ) | (is_loaded ? 0 : PWSP_ACCESS_WRITTEN);
    uint32_t gained = stays_hidden ? PWSP_ACCESS_HIDDEN : 0;
    deps->states[index].flags = (uint16_t)((flags & ~lost) | gained);
}

// An access of the identical tile, which a new access may replace: a reader replaces another
// reader, a writer any access. Of several accesses that a writer supersedes, one stays for the
// writer: its own, which may have been a read, or the first.
PWSP_INLINE void pwsp_deps_meet_same(pwsp_deps *deps, pwsp_deps_query_state *query,
                                     uint32_t index) {
    const uint32_t flags = deps->states[index].flags;
    bool is_written = (flags & PWSP_ACCESS_WRITTEN) != 0;
    if (!query->supersedes) {
        bool is_first = query->same == 0 || index < query->same;
        bool can_merge = !is_written && !deps->is_counted;
        query->same = can_merge && is_first ? index + 1 : query->same;
        return;
    }
    if (query->same == index + 1) {
        return;  // found in another cell with the same list
    }
    bool is_own = (flags & PWSP_ACCESS_OWN) != 0;
    bool is_for_loads = is_written && deps->tensors[deps->accesses[index].tensor].is_loaded;
    if (!is_own && (is_for_loads || pwsp_deps_stays_read(deps, query, flags))) {
        pwsp_deps_cover(deps, query, index);
        return;
    }
    if (query->same) {
        bool is_same_own = (deps->states[query->same - 1].flags & PWSP_ACCESS_OWN) != 0;
        bool stays = is_same_own != is_own ? is_same_own : query->same - 1 < index;
        if (stays) {
            pwsp_deps_cover(deps, query, index);
            return;
        }
        pwsp_deps_cover(deps, query, query->same - 1);
    }
    query->same = index + 1;
}

// May an access be of the same memory as a query?
PWSP_INLINE bool pwsp_deps_is_near(const pwsp_deps *deps, const pwsp_deps_query_state *query,
                                   const pwsp_access *access) {
    return query->is_plain
               ? access->tensor == query->at.tensor
               : deps->tensors[access->tensor].group == deps->tensors[query->at.tensor].group;
}

// Is an access that is not of the identical tile to be visited? *out_is_equal: it is identical all the
// same, as a whole tensor or a region of bytes.
PWSP_INLINE bool pwsp_deps_is_met(const pwsp_deps *deps, const pwsp_deps_query_state *query,
                                  const pwsp_access *access, bool *out_is_equal) {
    const pwsp_access *at = &query->at;
    if (!pwsp_deps_is_near(deps, query, access)) {
        return false;
    }
    *out_is_equal = pwsp_deps_is_equal(deps, query->is_plain, at, access);
    bool is_exact = query->is_exact && !pwsp_deps_is_whole(at) && !pwsp_deps_is_whole(access);
    return *out_is_equal || (!is_exact && pwsp_deps_is_overlap(deps, query->is_plain, at, access));
}

// Visits one older access. True if it is dead or gone.
PWSP_INLINE bool pwsp_deps_meet(pwsp_deps *deps, pwsp_deps_query_state *query, uint32_t index) {
    const pwsp_access *access = &deps->accesses[index];
    bool is_equal = query->is_plain && pwsp_deps_is_plain_equal(&query->at, access);
    if (PWSP_UNLIKELY(!is_equal) && !pwsp_deps_is_met(deps, query, access, &is_equal)) {
        return false;
    }
    const uint32_t flags = deps->states[index].flags;
    const bool is_read = (flags & PWSP_ACCESS_READ) != 0;
    const bool is_hidden = (flags & PWSP_ACCESS_HIDDEN) && !query->is_load;
    if (is_hidden && !is_read) {
        return false;
    }
    if (pwsp_deps_is_dead(deps, index)) {
        return true;
    }
    const bool is_written = (flags & PWSP_ACCESS_WRITTEN) && !is_hidden;
    const uint32_t hazards = deps->hazards;
    if ((is_written && query->is_read && (hazards & PTOWSP_HAZARD_RAW)) ||
        (is_read && query->is_written && (hazards & PTOWSP_HAZARD_WAR)) ||
        (is_written && query->is_written && (hazards & PTOWSP_HAZARD_WAW))) {
        pwsp_deps_visit(deps, index);
    }
    if (PWSP_LIKELY(is_equal)) {
        pwsp_deps_meet_same(deps, query, index);
    } else if (query->supersedes && !query->is_exact &&
               pwsp_deps_is_within(deps, query->is_plain, &query->at, access)) {
        pwsp_deps_cover(deps, query, index);
    }
    return (deps->states[index].flags & PWSP_ACCESS_GONE) != 0;
}

// Visits all accesses of a cell, and removes the dead ones.
PWSP_INLINE void pwsp_deps_walk(pwsp_deps *deps, pwsp_deps_query_state *query, uint32_t cell) {
    uint32_t *at = pwsp_deps_bucket(deps, cell), mask = deps->index_mask;
    const uint32_t mark = pwsp_deps_mark(cell);
    for (uint32_t link = *at; link; link = *at) {
        const uint32_t index = (link & mask) - 1;
        if (((link ^ mark) & ~mask) == 0 && pwsp_deps_meet(deps, query, index)) {
            *at = deps->nexts[index];
            deps->states[index].flags &= (uint16_t)~PWSP_ACCESS_LINKED;
            pwsp_deps_left(deps, index);
            pwsp_deps_drop(deps, index);
        } else {
            at = &deps->nexts[index];
        }
    }
}

// -- grids ----------------------------------------------------------------------------------------

// An access of a grid has been found: true if it is alive, else it is removed.
PWSP_INLINE bool pwsp_deps_grid_is_alive(pwsp_deps *deps, uint32_t index) {
    if (PWSP_UNLIKELY(deps->times[index] < deps->clock)) {
        pwsp_deps_grid_leave(deps, index);
        pwsp_deps_drop(deps, index);
        return false;
    }
    return true;
}

// The same as pwsp_deps_meet for both accesses of a tile in a grid: all hazards count, both are of the
// identical tile, and neither is hidden or the task's own.
PWSP_FORCE_INLINE void pwsp_deps_meet_grid(pwsp_deps *deps, pwsp_deps_query_state *query,
                                           uint64_t key, uint32_t access) {
    const uint64_t number = key / PWSP_DEPS_PAGE;
    uint32_t page = query->page;
    query->same = 0;
    if (PWSP_UNLIKELY(deps->pages[page].number != number)) {
        query->page = page = pwsp_deps_page_find(deps, number);
    }
    const bool is_written = (access & PWSP_TILE_WRITTEN) != 0;
    const uint32_t *slots = &deps->slots[pwsp_deps_grid_slot(page, key)];
    const uint32_t written = slots[0], read = slots[1];
    const bool has_written = written && pwsp_deps_grid_is_alive(deps, written - 1);
    const bool has_read = read && pwsp_deps_grid_is_alive(deps, read - 1);
    if (has_written) {
        pwsp_deps_later(deps, written - 1);
    }
    if (!is_written) {
        query->same = has_read ? read : 0;  // readers count as one
        return;
    }
    query->same = has_written ? written : has_read ? read : 0;
    if (has_read) {
        pwsp_deps_later(deps, read - 1);
        if (has_written) {  // one of them is enough for the writer
            const uint32_t last = read < written ? written : read;
            query->same = read < written ? read : written;
            pwsp_deps_grid_leave(deps, last - 1);
            pwsp_deps_drop(deps, last - 1);
        }
    }
}

#endif
