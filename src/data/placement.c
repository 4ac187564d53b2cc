// First fit over lifetimes.
//
// The items that are placed are kept in the order of their offsets. For the next one they are
// looked through from below: those that are never alive with it are passed over, and the first gap
// between the others that is large enough is its place.
//
//      offset
//        |  +------+
//        |  |  c   |          +---+
//        |  +------+          | d |       d fits beside a and below nothing of its time
//        |  |  a   |  +-------+---+
//        |  |      |  |     b     |
//        +--+------+--+-----------+----> points

#include "placement.h"

#include "../base/heap.h"

// The order in which items are placed: by time first, or only by size.
typedef struct pwsp_placed_order {
    const pwsp_placed *items;
    const pwsp_lifetime *lifetimes;
    bool by_time;
} pwsp_placed_order;

// Have two items a point in common?
static bool pwsp_placed_meet(const pwsp_placed *a, const pwsp_placed *b,
                             const pwsp_lifetime *lifetimes) {
    const pwsp_lifetime *x = lifetimes + a->first_lifetime, *x_end = x + a->lifetime_count;
    const pwsp_lifetime *y = lifetimes + b->first_lifetime, *y_end = y + b->lifetime_count;
    while (x < x_end && y < y_end) {
        if (x->last < y->first) {
            x++;
        } else if (y->last < x->first) {
            y++;
        } else {
            return true;
        }
    }
    return false;
}

static bool pwsp_placed_is_before(const pwsp_placed_order *by, uint32_t a, uint32_t b) {
    const pwsp_placed *x = &by->items[a], *y = &by->items[b];
    uint32_t x_first = by->lifetimes[x->first_lifetime].first;
    uint32_t y_first = by->lifetimes[y->first_lifetime].first;
    if (by->by_time && x_first != y_first) {
        return x_first < y_first;
    }
    return x->bytes != y->bytes ? x->bytes > y->bytes : a < b;
}

PWSP_SORT(pwsp_placed_sort, uint32_t, pwsp_placed_order, pwsp_placed_is_before)

// Places the items in one order; returns the highest end.
static uint64_t pwsp_placed_fit(pwsp_placed *items, uint32_t count, const pwsp_lifetime *lifetimes,
                                bool by_time, uint32_t *order) {
    const pwsp_placed_order by = {items, lifetimes, by_time};
    uint32_t used = 0;  // items that take memory
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].bytes && items[i].lifetime_count) {
            order[used++] = i;
        }
    }
    pwsp_placed_sort(&by, order, used);
    uint32_t *below = order + count;  // placed items, by offset
    uint64_t peak = 0;
    for (uint32_t i = 0; i < used; i++) {
        pwsp_placed *item = &items[order[i]];
        uint64_t offset = 0;
        for (uint32_t j = 0; j < i; j++) {
            const pwsp_placed *other = &items[below[j]];
            if (!pwsp_placed_meet(item, other, lifetimes)) {
                continue;
            }
            if (other->offset >= offset + item->bytes) {
                break;
            }
            offset = pwsp_max_u64(offset, other->offset + other->bytes);
        }
        item->offset = offset;
        peak = pwsp_max_u64(peak, offset + item->bytes);
        uint32_t at = i;
        for (; at > 0 && items[below[at - 1]].offset > offset; at--) {
            below[at] = below[at - 1];
        }
        below[at] = order[i];
    }
    return peak;
}

// The bytes of all items, and of those alive at one point.
static void pwsp_placed_measure(const pwsp_placed *items, uint32_t count,
                                const pwsp_lifetime *lifetimes, uint32_t point_count,
                                uint64_t *alive, pwsp_placement *out) {
    memset(alive, 0, ((size_t)point_count + 1) * sizeof *alive);
    for (uint32_t i = 0; i < count; i++) {
        out->sum += items[i].lifetime_count ? items[i].bytes : 0;
        for (uint32_t j = 0; j < items[i].lifetime_count; j++) {
            const pwsp_lifetime *lifetime = &lifetimes[items[i].first_lifetime + j];
            PTOWSP_ASSERT(lifetime->first <= lifetime->last && lifetime->last < point_count);
            alive[lifetime->first] += items[i].bytes;
            alive[lifetime->last + 1] -= items[i].bytes;
        }
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < point_count; i++) {
        bytes += alive[i];
        if (bytes > out->bound) {
            out->bound = bytes;
            out->point = i;
        }
    }
}

PWSP_INTERNAL pwsp_placement pwsp_placement_find(pwsp_placed *items, uint32_t count,
                                                 const pwsp_lifetime *lifetimes,
                                                 uint32_t point_count, uint32_t *order,
                                                 uint64_t *offsets, uint64_t *alive) {
    PWSP_ZERO(pwsp_placement, found);
    pwsp_placed_measure(items, count, lifetimes, point_count, alive, &found);
    for (uint32_t i = 0; i < count; i++) {
        items[i].offset = 0;
    }
    found.peak = pwsp_placed_fit(items, count, lifetimes, false, order);
    if (found.peak > found.bound) {
        for (uint32_t i = 0; i < count; i++) {
            offsets[i] = items[i].offset;
        }
        uint64_t peak = pwsp_placed_fit(items, count, lifetimes, true, order);
        for (uint32_t i = 0; i < count && peak >= found.peak; i++) {
            items[i].offset = offsets[i];
        }
        found.peak = pwsp_min_u64(found.peak, peak);
    }
    PTOWSP_ASSERT(found.bound <= found.peak && found.peak <= found.sum);
    return found;
}
