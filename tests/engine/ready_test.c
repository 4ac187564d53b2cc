// Queues of ready entries against an array that is searched: entries with random keys, put in and
// taken out at random, in several queues that share their links.

#include "src/engine/ready.h"

#include "test.h"

enum { ENTRIES = 200, QUEUES = 3 };

// Links that stand alone, or in something larger.
typedef struct entry {
    pwsp_ready_link link;
    uint32_t more[3];
} entry;

typedef struct fixture {
    entry entries[ENTRIES];
    int queue_of[ENTRIES];  // -1: in none
} fixture;

// The entry of a queue with the least key and number.
static uint32_t search(const fixture *t, int queue) {
    uint32_t least = PWSP_READY_NONE;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        if (t->queue_of[i] != queue) {
            continue;
        }
        const pwsp_ready_link *link = &t->entries[i].link;
        const pwsp_ready_link *other = &t->entries[least == PWSP_READY_NONE ? i : least].link;
        if (least == PWSP_READY_NONE || link->key < other->key ||
            (link->key == other->key && link->number < other->number)) {
            least = i;
        }
    }
    return least;
}

// Keys are mostly those of the order in which entries come, or of the order reversed, as in programs;
// or any. Numbers are unlike all others.
typedef enum order { FORWARD, BACKWARD, ANY } order;

static void run(uint64_t *random, order way) {
    static fixture t;
    pwsp_ready_queue queues[QUEUES];
    const pwsp_ready_links links = {t.entries, sizeof t.entries[0]};
    uint64_t next_key = UINT64_C(1) << 40;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        t.queue_of[i] = -1;
    }
    for (int i = 0; i < QUEUES; i++) {
        pwsp_ready_init(&queues[i]);
    }
    for (uint32_t step = 0; step < 1000; step++) {
        const uint32_t id = (uint32_t)(test_random(random) % ENTRIES);
        const int queue = (int)(test_random(random) % QUEUES);
        if (t.queue_of[id] < 0 && test_random(random) % 16 < (step / 250 % 2 ? 4 : 12)) {
            const bool is_next = way != ANY && test_random(random) % 4;
            next_key += way == BACKWARD ? UINT64_C(-1000) : 1000;
            t.entries[id].link.key =
                is_next ? next_key : next_key + 100 * (test_random(random) % 30) - 1500;
            t.entries[id].link.number = step % 2 ? step : 10000 - step;
            t.queue_of[id] = queue;
            pwsp_ready_push(&queues[queue], links, id);
        } else if (t.queue_of[id] >= 0) {
            const uint32_t first = search(&t, queue);
            assert_int_equal(pwsp_ready_first(&queues[queue], links), first);
            assert_int_equal(pwsp_ready_is_empty(&queues[queue]), first == PWSP_READY_NONE);
            if (first != PWSP_READY_NONE) {
                assert_int_equal(pwsp_ready_pop(&queues[queue], links), first);
                t.queue_of[first] = -1;
            }
        }
    }
    for (int i = 0; i < QUEUES; i++) {
        for (uint32_t first; (first = search(&t, i)) != PWSP_READY_NONE; t.queue_of[first] = -1) {
            assert_int_equal(pwsp_ready_pop(&queues[i], links), first);
        }
        assert_true(pwsp_ready_is_empty(&queues[i]));
    }
}

TEST(ready__the_first_entry_is_the_one_that_precedes_all_others) {
    uint64_t random = test_seed();
    for (uint32_t i = 0; TEST_ROUNDS(i, 300); i++) {
        run(&random, (order)(i % 3));
    }
}

// Links of one word each: an entry goes after all that have come before, alone or with others.
TEST(ready__entries_that_are_appended_go_in_the_order_in_which_they_come) {
    uint32_t words[6];
    const pwsp_ready_links links = {words, sizeof words[0]};
    pwsp_ready_queue queue, other;
    pwsp_ready_init(&queue);
    pwsp_ready_init(&other);
    pwsp_ready_append_all(&queue, links, &other);  // nothing to nothing
    assert_true(pwsp_ready_is_empty(&queue));
    pwsp_ready_append(&other, links, 4);
    pwsp_ready_append(&other, links, 1);
    pwsp_ready_append_all(&queue, links, &other);
    assert_true(pwsp_ready_is_empty(&other));
    pwsp_ready_append(&queue, links, 3);
    pwsp_ready_append(&other, links, 0);
    pwsp_ready_append(&other, links, 5);
    assert_int_equal(pwsp_ready_pop(&queue, links), 4);
    pwsp_ready_append_all(&queue, links, &other);
    pwsp_ready_append(&queue, links, 4);
    const uint32_t wanted[] = {1, 3, 0, 5, 4};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(pwsp_ready_first(&queue, links), wanted[i]);
        assert_int_equal(pwsp_ready_pop(&queue, links), wanted[i]);
    }
    assert_true(pwsp_ready_is_empty(&queue));
}
