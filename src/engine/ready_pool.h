// Who takes which ready entry: the queues of workers, which are cores or simulated lanes.
//
//      an entry with a home ------> queue of that worker --> the worker; with stealing, others of its pool
//      an entry without one ------> queue of a pool -------> any worker of the pool
//
// A worker takes the first entry of its own queue and its pool's, whichever goes first (ready.h). If both
// have none and the policy steals, it takes, of the entries that are first in the queues of its pool's
// workers, the one with the smallest number.
//
// Workers are numbered, pool after pool; their queues have the same numbers, and the queues of pools follow.
// The owner has the links, knows which workers are idle, and has the lock, if there is one. Lanes that are
// threads have a lock for each queue, and deques besides: see engine.h.

#ifndef PWSP_READY_POOL_H
#define PWSP_READY_POOL_H

#include "../base/earliest.h"
#include "policy.h"
#include "ready.h"

typedef struct pwsp_ready_pool {
    pwsp_ready_queue *queues;  // by worker, then by pool
    uint64_t *filled;          // bits: workers with entries in their own queues
    // By pool, for stealing: the numbers of the first entries of its workers' queues.
    pwsp_earliest oldest[PWSP_POOL_MAX];
    pwsp_pool_info pools[PWSP_POOL_MAX];
    uint32_t worker_count, pool_count;
    bool steals;
} pwsp_ready_pool;

// For the workers of pools. False when memory is out; it must still be freed. Begin empties the queues;
// workers steal only if init was told that they may.
PWSP_INTERNAL bool pwsp_ready_pool_init(pwsp_ready_pool *pool, const pwsp_memory *memory,
                                        const pwsp_pool_info *pools, uint32_t pool_count,
                                        bool may_steal);
PWSP_INTERNAL void pwsp_ready_pool_free(pwsp_ready_pool *pool, const pwsp_memory *memory);
PWSP_INTERNAL void pwsp_ready_pool_begin(pwsp_ready_pool *pool, bool steals);

// The queue of entries without a home.
PWSP_INLINE uint32_t pwsp_ready_pool_common(const pwsp_ready_pool *pool, uint32_t of) {
    PTOWSP_ASSERT(of < pool->pool_count);
    return pool->worker_count + of;
}

// An entry has been put into a queue or taken out.
PWSP_FORCE_INLINE void pwsp_ready_pool_note(pwsp_ready_pool *pool, pwsp_ready_links links,
                                            uint32_t queue) {
    if (queue >= pool->worker_count) {
        return;
    }
    const uint32_t first = pwsp_ready_first(&pool->queues[queue], links);
    const uint64_t bit = UINT64_C(1) << queue % 64, filled = pool->filled[queue / 64] & ~bit;
    pool->filled[queue / 64] = first == PWSP_READY_NONE ? filled : filled | bit;
    if (pool->steals) {
        const uint32_t of = pwsp_pool_of(pool->pools, pool->pool_count, queue);
        pwsp_earliest_set(&pool->oldest[of], queue - pool->pools[of].first,
                          first == PWSP_READY_NONE ? PWSP_EARLIEST_NONE
                                                   : pwsp_ready_at(links, first)->number);
    }
}

PWSP_FORCE_INLINE void pwsp_ready_pool_put(pwsp_ready_pool *pool, pwsp_ready_links links,
                                           uint32_t queue, uint32_t entry) {
    pwsp_ready_push(&pool->queues[queue], links, entry);
    pwsp_ready_pool_note(pool, links, queue);
}

// The first entry of a queue, which is taken out. Requires that there is one.
PWSP_FORCE_INLINE uint32_t pwsp_ready_pool_take(pwsp_ready_pool *pool, pwsp_ready_links links,
                                                uint32_t queue) {
    const uint32_t entry = pwsp_ready_pop(&pool->queues[queue], links);
    pwsp_ready_pool_note(pool, links, queue);
    return entry;
}

// With stealing, the queue of a pool's worker whose first entry is the oldest. NONE: there is none.
PWSP_FORCE_INLINE uint32_t pwsp_ready_pool_oldest(const pwsp_ready_pool *pool, uint32_t of) {
    const pwsp_earliest *oldest = &pool->oldest[of];
    return !pool->steals || !oldest->times || pwsp_earliest_time(oldest) == PWSP_EARLIEST_NONE
               ? PWSP_READY_NONE
               : pool->pools[of].first + pwsp_earliest_lane(oldest);
}

// The queue from which a worker takes whose own is empty, or NONE.
PWSP_FORCE_INLINE uint32_t pwsp_ready_pool_source(const pwsp_ready_pool *pool, uint32_t of) {
    const uint32_t common = pwsp_ready_pool_common(pool, of);
    return pwsp_ready_is_empty(&pool->queues[common]) ? pwsp_ready_pool_oldest(pool, of) : common;
}

// The queue from which a worker takes, or NONE. An entry that may not begin is left; NULL: all may.
typedef bool (*pwsp_may_begin_fn)(void *user, uint32_t entry);
PWSP_INTERNAL uint32_t pwsp_ready_pool_best(const pwsp_ready_pool *pool, pwsp_ready_links links,
                                            uint32_t worker, pwsp_may_begin_fn may_begin,
                                            void *user);

// The lowest worker in [from, end) that is in two sets of bits, or end.
PWSP_INLINE uint32_t pwsp_worker_next(const uint64_t *bits, const uint64_t *others, uint32_t from,
                                      uint32_t end) {
    for (; from < end; from = (from / 64 + 1) * 64) {
        const uint64_t word = (bits[from / 64] & others[from / 64]) >> from % 64;
        if (word) {
            from += (uint32_t)__builtin_ctzll(word);
            return from < end ? from : end;
        }
    }
    return end;
}

#endif
