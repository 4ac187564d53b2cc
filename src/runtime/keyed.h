// Tasks by the keys of their tiles, where all these are in grids: what pwsp_deps_query and pwsp_deps_add
// do, with nothing left to look at but the cells.
//
//      pwsp_deps_query_keys(deps, keys, accesses, count);      deps->latest: until when it waits
//      pwsp_deps_add_keys(deps, keys, accesses, count, &end, &has_ended);
//
// The caller has made sure that each tensor's form is PWSP_DEPS_GRID. When a grid ends the task is added
// all the same, but later ones have to come with their tiles, which pwsp_deps_grid_tile finds.

#ifndef PWSP_KEYED_H
#define PWSP_KEYED_H

#include "meet.h"

// Visits the dependences of a task. False when memory is out.
PWSP_INTERNAL bool pwsp_deps_query_keys(pwsp_deps *deps, const uint64_t *keys,
                                        const uint8_t *accesses, uint32_t count);

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
                                              uint64_t key, uint32_t access,
                                              const pwsp_token *token, bool *out_is_full) {
    const uint32_t flags = access & (PWSP_ACCESS_READ | PWSP_ACCESS_WRITTEN), same = query->same;
    const uint64_t number = key / PWSP_DEPS_PAGE;
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

// The same for the tiles of a queried task from `first` on, wherever the accesses of their tensors are
// meanwhile. False when memory is out.
PWSP_INTERNAL bool pwsp_deps_add_others(pwsp_deps *deps, const uint64_t *keys,
                                        const uint8_t *accesses, uint32_t first, uint32_t count,
                                        const pwsp_token *token);

// Adds the task last queried. *out_has_ended: a grid has. False when memory is out.
PWSP_FORCE_INLINE bool pwsp_deps_add_keys(pwsp_deps *deps, const uint64_t *keys,
                                          const uint8_t *accesses, uint32_t count,
                                          const pwsp_token *token, bool *out_has_ended) {
    pwsp_deps_query_state *query = deps->queries;
    for (uint32_t i = 0; i < count; i++, query++) {
        if (PWSP_UNLIKELY(
                !pwsp_deps_add_grid(deps, query, keys[i], accesses[i], token, out_has_ended))) {
            return *out_has_ended && pwsp_deps_add_others(deps, keys, accesses, i, count, token);
        }
    }
    return true;
}

#endif
