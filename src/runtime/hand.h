// The hand of the map of regions, where tokens are times: it looks at four times for each access that is to
// be added, and frees what has ended before the clock.

#ifndef PWSP_HAND_H
#define PWSP_HAND_H

#include "grid.h"

#define PWSP_DEPS_HAND_STEPS 8  // for each access that is added; half of it for times

// What leads to the next access that becomes free.
PWSP_FORCE_INLINE uint32_t *pwsp_deps_free_link(pwsp_deps *deps) {
    return deps->free_count ? &deps->states[deps->free_last].next : &deps->free_first;
}

// An access that has been dropped. Places are taken in the order in which they become free, so that
// neighbours are of similar age.
PWSP_FORCE_INLINE void pwsp_deps_free_access(pwsp_deps *deps, uint32_t index) {
    PTOWSP_ASSERT(!(deps->states[index].flags & (PWSP_ACCESS_FREE | PWSP_ACCESS_LINKED)));
    deps->states[index].flags |= PWSP_ACCESS_GONE | PWSP_ACCESS_FREE;
    if (!deps->ops.is_dead) {
        deps->times[index] = UINT64_MAX;  // the hand passes over it
    }
    *pwsp_deps_free_link(deps) = index;
    deps->free_count++;
    deps->free_last = index;
}

// Advances the hand by four steps, or by as many as there are accesses. Stores the dead ones that it comes
// by, and returns their number. Only the first look at one that is dead is at its access.
PWSP_FORCE_INLINE uint32_t pwsp_deps_find_past(pwsp_deps *deps, uint32_t *found) {
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

// Frees dead accesses, whose lists are prefetched.
PWSP_INTERNAL void pwsp_deps_free_listed(pwsp_deps *deps, const uint32_t *found, uint32_t count);

// The same where there are no lists: each is a time in a grid, or has been dropped.
PWSP_FORCE_INLINE void pwsp_deps_free_unlisted(pwsp_deps *deps, const uint32_t *found,
                                               uint32_t count) {
    uint32_t *link = pwsp_deps_free_link(deps);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = found[i];
        pwsp_access_state *state = &deps->states[index];
        const uint32_t flags = state->flags;
        PTOWSP_ASSERT(!(flags & PWSP_ACCESS_FREE));
        if (PWSP_LIKELY(flags & PWSP_ACCESS_GRID)) {
            pwsp_deps_slot_clear(deps, state->cell);
        }
        state->flags = PWSP_ACCESS_GONE | PWSP_ACCESS_FREE;
        deps->times[index] = UINT64_MAX;
        *link = index;
        link = &state->next;
    }
    deps->free_count += count;
    deps->free_last = found[count - 1];
}

PWSP_FORCE_INLINE void pwsp_deps_free_past(pwsp_deps *deps, const uint32_t *found, uint32_t count) {
    if (PWSP_LIKELY(!deps->buckets)) {
        pwsp_deps_free_unlisted(deps, found, count);
    } else {
        pwsp_deps_free_listed(deps, found, count);
    }
}

PWSP_FORCE_INLINE void pwsp_deps_make_room_by_time(pwsp_deps *deps, uint32_t count) {
    const uint64_t enough = deps->access_count / PWSP_DEPS_HAND_STEPS + count;
    // How many are found has no pattern, so they are freed together, unless the hand might come by twice.
    const bool is_short = deps->access_count < 4 * (uint64_t)count;
    uint32_t found[PWSP_DEPS_HAND_STEPS], found_count = 0;
    for (uint32_t tile = 0; tile < count && deps->free_count + found_count < enough; tile++) {
        found_count += pwsp_deps_find_past(deps, found + found_count);
        if (found_count > PWSP_DEPS_HAND_STEPS / 2 || is_short) {
            if (found_count) {
                pwsp_deps_free_past(deps, found, found_count);
            }
            found_count = 0;
        }
    }
    if (found_count) {
        pwsp_deps_free_past(deps, found, found_count);
    }
}

#endif
