// Queries by keys: keyed.h explains them. The hand is part of the same function, as it is little more.

#include "keyed.h"

#include "hand.h"

PWSP_INTERNAL bool pwsp_deps_query_keys(pwsp_deps *deps, const uint64_t *keys,
                                        const uint8_t *accesses, uint32_t count) {
    if (PWSP_UNLIKELY(deps->wants_sweep) && !pwsp_deps_sweep(deps)) {
        return false;
    }
    pwsp_deps_make_room_by_time(deps, count);
    const uint64_t *const end = keys + count;
    for (pwsp_deps_query_state *query = deps->queries; keys != end; query++) {
        pwsp_deps_meet_grid(deps, query, *keys++, *accesses++);
    }
    return true;
}
