// Memory of the queues of workers, and the entry that a worker takes; see ready_pool.h.

#include "ready_pool.h"

#define PWSP_READY_POOL_ARRAYS(ARRAY)                                                              \
    ARRAY(pool->queues, (size_t)pool->worker_count + pool->pool_count)                             \
    ARRAY(pool->filled, ((size_t)pool->worker_count + 63) / 64)

PWSP_INTERNAL bool pwsp_ready_pool_init(pwsp_ready_pool *pool, const pwsp_memory *memory,
                                        const pwsp_pool_info *pools, uint32_t pool_count,
                                        bool may_steal) {
    PTOWSP_ASSERT(pool_count > 0 && pool_count <= PWSP_POOL_MAX);
    memset(pool, 0, sizeof *pool);
    pool->pool_count = pool_count;
    for (uint32_t i = 0; i < pool_count; i++) {
        PTOWSP_ASSERT(pools[i].first == pool->worker_count);
        pool->pools[i] = pools[i];
        pool->worker_count += pools[i].count;
    }
    bool is_good = true;
    PWSP_READY_POOL_ARRAYS(PWSP_ARRAY_ALLOC)
    for (uint32_t i = 0; i < pool_count && may_steal && is_good; i++) {
        is_good =
            pools[i].count == 0 || pwsp_earliest_init(&pool->oldest[i], memory, pools[i].count);
    }
    return is_good;
}

PWSP_INTERNAL void pwsp_ready_pool_free(pwsp_ready_pool *pool, const pwsp_memory *memory) {
    for (uint32_t i = 0; i < pool->pool_count; i++) {
        pwsp_earliest_free(&pool->oldest[i], memory);
    }
    PWSP_READY_POOL_ARRAYS(PWSP_ARRAY_FREE)
}

PWSP_INTERNAL void pwsp_ready_pool_begin(pwsp_ready_pool *pool, bool steals) {
    pool->steals = steals;
    for (uint32_t i = 0; i < pool->worker_count + pool->pool_count; i++) {
        pwsp_ready_init(&pool->queues[i]);
    }
    memset(pool->filled, 0, ((size_t)pool->worker_count + 63) / 64 * sizeof *pool->filled);
    for (uint32_t i = 0; i < pool->pool_count && steals; i++) {
        if (pool->oldest[i].times) {
            pwsp_earliest_clear(&pool->oldest[i], PWSP_EARLIEST_NONE);
        }
    }
}

// The better one of two queues by their first entries; either may be NONE.
static uint32_t pwsp_ready_pool_better(const pwsp_ready_pool *pool, pwsp_ready_links links,
                                       pwsp_may_begin_fn may_begin, void *user, uint32_t best,
                                       uint32_t queue) {
    const uint32_t first =
        queue == PWSP_READY_NONE ? PWSP_READY_NONE : pwsp_ready_first(&pool->queues[queue], links);
    if (first == PWSP_READY_NONE || (may_begin && !may_begin(user, first))) {
        return best;
    }
    return best == PWSP_READY_NONE ||
                   pwsp_ready_precedes(links, first, pwsp_ready_first(&pool->queues[best], links))
               ? queue
               : best;
}

PWSP_INTERNAL uint32_t pwsp_ready_pool_best(const pwsp_ready_pool *pool, pwsp_ready_links links,
                                            uint32_t worker, pwsp_may_begin_fn may_begin,
                                            void *user) {
    const uint32_t of = pwsp_pool_of(pool->pools, pool->pool_count, worker), none = PWSP_READY_NONE;
    const uint32_t own = pwsp_ready_pool_better(pool, links, may_begin, user, none, worker);
    const uint32_t best =
        pwsp_ready_pool_better(pool, links, may_begin, user, own, pwsp_ready_pool_common(pool, of));
    return best != none ? best
                        : pwsp_ready_pool_better(pool, links, may_begin, user, none,
                                                 pwsp_ready_pool_oldest(pool, of));
}
