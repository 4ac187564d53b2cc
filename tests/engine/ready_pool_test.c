// What workers take, against a search of all entries: pools of some workers or none, entries with homes
// and without, stolen or not, some of which may not begin; and blocks, against the numbers on paper.

#include "src/base/base.h"
#include "src/engine/ready_pool.h"

#include "test.h"

enum { ENTRIES = 40, WORKERS = 9, POOLS = 4 };

static const pwsp_pool_info pools[POOLS] = {
    {"", 0, 3, 0}, {"", 3, 0, 0}, {"", 3, 4, 0}, {"", 7, 2, 0}};
static const uint32_t pool_of[WORKERS] = {0, 0, 0, 2, 2, 2, 2, 3, 3};

typedef struct fixture {
    pwsp_ready_link links[ENTRIES];
    uint32_t queue_of[ENTRIES];  // NONE: in none
    bool is_held[ENTRIES];       // may not begin
    bool steals;
} fixture;

static fixture t;

static bool may_begin(void *user, uint32_t entry) {
    return !((const fixture *)user)->is_held[entry];
}

// The entry of a queue that goes first.
static uint32_t first_of(uint32_t queue) {
    uint32_t least = PWSP_READY_NONE;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        const pwsp_ready_link *link = &t.links[i];
        if (t.queue_of[i] == queue &&
            (least == PWSP_READY_NONE || link->key < t.links[least].key ||
             (link->key == t.links[least].key && link->number < t.links[least].number))) {
            least = i;
        }
    }
    return least;
}

// The entry that a worker takes.
static uint32_t wanted(uint32_t worker) {
    const uint32_t own = first_of(worker), common = first_of(WORKERS + pool_of[worker]);
    uint32_t best = PWSP_READY_NONE;
    if (own != PWSP_READY_NONE && !t.is_held[own]) {
        best = own;
    }
    if (common != PWSP_READY_NONE && !t.is_held[common] &&
        (best == PWSP_READY_NONE || t.links[common].key < t.links[best].key ||
         (t.links[common].key == t.links[best].key &&
          t.links[common].number < t.links[best].number))) {
        best = common;
    }
    for (uint32_t i = 0, oldest = PWSP_READY_NONE; i < WORKERS && best == PWSP_READY_NONE; i++) {
        const uint32_t first = first_of(i);
        if (t.steals && pool_of[i] == pool_of[worker] && first != PWSP_READY_NONE &&
            (oldest == PWSP_READY_NONE || t.links[first].number < t.links[oldest].number)) {
            oldest = first;
        }
        best = i + 1 == WORKERS && oldest != PWSP_READY_NONE && !t.is_held[oldest] ? oldest : best;
    }
    return best;
}

static void run(pwsp_ready_pool *pool, uint64_t *random) {
    const pwsp_ready_links links = {t.links, sizeof t.links[0]};
    t.steals = test_random(random) % 2;
    pwsp_ready_pool_begin(pool, t.steals);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        t.queue_of[i] = PWSP_READY_NONE;
        t.is_held[i] = test_random(random) % 4 == 0;
    }
    for (uint64_t step = 0; step < 400; step++) {
        const uint32_t id = (uint32_t)(test_random(random) % ENTRIES);
        const uint32_t worker = (uint32_t)(test_random(random) % WORKERS);
        if (t.queue_of[id] == PWSP_READY_NONE && test_random(random) % 3) {
            const bool has_home = test_random(random) % 4;
            t.links[id].number = step;
            t.links[id].key = t.steals ? 7 : test_random(random) % 3;  // no stealing by priority
            t.queue_of[id] = has_home ? worker : pwsp_ready_pool_common(pool, pool_of[worker]);
            pwsp_ready_pool_put(pool, links, t.queue_of[id], id);
        }
        const uint32_t entry = wanted(worker);
        const uint32_t queue = pwsp_ready_pool_best(pool, links, worker, may_begin, &t);
        assert_int_equal(queue, entry == PWSP_READY_NONE ? PWSP_READY_NONE : t.queue_of[entry]);
        if (entry != PWSP_READY_NONE && test_random(random) % 2) {
            assert_int_equal(pwsp_ready_pool_take(pool, links, queue), entry);
            t.queue_of[entry] = PWSP_READY_NONE;
        }
        const uint64_t idle = test_random(random);
        uint32_t next = 0;
        while (next < WORKERS && !(idle >> next & 1 && first_of(next) != PWSP_READY_NONE)) {
            next++;
        }
        assert_int_equal(pwsp_worker_next(pool->filled, &idle, 0, WORKERS), next);
    }
}

TEST(ready_pool__a_worker_takes_its_own_entry_or_its_pools_or_steals_the_oldest) {
    const pwsp_memory memory = pwsp_memory_make(NULL, NULL);
    uint64_t random = test_seed();
    pwsp_ready_pool pool;
    assert_true(pwsp_ready_pool_init(&pool, &memory, pools, POOLS, true));
    for (uint32_t i = 0; TEST_ROUNDS(i, 200); i++) {
        run(&pool, &random);
    }
    pwsp_ready_pool_free(&pool, &memory);
}

// Five vectors, 0 to 4, and two cubes, 5 and 6: 5 with 0 and 1, 6 with 2 and 3.
TEST(ready_pool__a_block_is_a_cube_and_two_vectors) {
    assert_int_equal(pwsp_block_count(5, 2), 2);
    assert_int_equal(pwsp_block_count(5, 3), 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(pwsp_block_vector(5, 5, i), i);
        assert_int_equal(pwsp_block_vector(5, 6, i), 2 + i);
    }
    const uint32_t blocks[] = {0, 0, 1, 1, 2, 0, 1};
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(pwsp_block_of(5, i), blocks[i]);
    }
}
