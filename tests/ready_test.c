// Queues of ready entries against an array that is searched: entries with random keys, put in and
// taken out at random, in several queues that share their links.

#include "../src/runtime/ready.h"

#include "test.h"

enum { ENTRIES = 200, QUEUES = 3 };

typedef struct fixture {
    uint32_t keys[ENTRIES];
    int queue_of[ENTRIES];  // -1: in none
} fixture;

static bool precedes(void *user, uint32_t a, uint32_t b) {
    const fixture *t = (const fixture *)user;
    return t->keys[a] < t->keys[b];
}

// The entry with the least key.
static uint32_t search(const fixture *t, int queue) {
    uint32_t least = PWSP_READY_NONE;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        if (t->queue_of[i] == queue && (least == PWSP_READY_NONE || t->keys[i] < t->keys[least])) {
            least = i;
        }
    }
    return least;
}

static uint32_t count_of(const fixture *t, int queue) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        count += t->queue_of[i] == queue;
    }
    return count;
}

// Keys are mostly those of the order in which entries come, as in programs, or any.
static void run(uint64_t *random, bool is_mostly_sorted) {
    fixture t;
    pwsp_ready_link links[ENTRIES];
    pwsp_ready_queue queues[QUEUES];
    const pwsp_ready_order order = {links, precedes, &t};
    uint32_t next_key = 0;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        t.queue_of[i] = -1;
    }
    for (int i = 0; i < QUEUES; i++) {
        pwsp_ready_init(&queues[i]);
    }
    for (uint32_t step = 0; step < 1000; step++) {
        const uint32_t entry = (uint32_t)(test_random(random) % ENTRIES);
        const int queue = (int)(test_random(random) % QUEUES);
        if (t.queue_of[entry] < 0 && test_random(random) % 16 < (step / 250 % 2 ? 4 : 12)) {
            const bool is_next = is_mostly_sorted && test_random(random) % 4;
            next_key += 1000;
            // Unlike all others: the last digits are the step.
            t.keys[entry] = is_next ? next_key + step % 1000
                                    : (uint32_t)(test_random(random) % 1000) * 1000 + step % 1000;
            t.queue_of[entry] = queue;
            pwsp_ready_push(&queues[queue], &order, entry);
        } else if (t.queue_of[entry] >= 0) {
            const uint32_t first = search(&t, queue);
            assert_int_equal(pwsp_ready_first(&queues[queue], &order), first);
            assert_int_equal(queues[queue].count, count_of(&t, queue));
            if (first != PWSP_READY_NONE) {
                pwsp_ready_pop(&queues[queue], &order);
                t.queue_of[first] = -1;
            }
        }
    }
    for (int i = 0; i < QUEUES; i++) {
        for (uint32_t first; (first = search(&t, i)) != PWSP_READY_NONE; t.queue_of[first] = -1) {
            assert_int_equal(pwsp_ready_first(&queues[i], &order), first);
            pwsp_ready_pop(&queues[i], &order);
        }
        assert_int_equal(pwsp_ready_first(&queues[i], &order), PWSP_READY_NONE);
    }
}

static void ready__the_first_entry_is_the_one_that_precedes_all_others(void **state) {
    (void)state;
    uint64_t random = test_seed();
    for (uint32_t i = 0; TEST_ROUNDS(i, 300); i++) {
        run(&random, i % 2);
    }
}

// Of 3, 1, 4, 2: 1 and 2 come after one that they precede.
static void ready__entries_leave_in_their_order(void **state) {
    (void)state;
    fixture t = {{3, 1, 4, 2}, {0}};
    pwsp_ready_link links[4];
    const pwsp_ready_order order = {links, precedes, &t};
    pwsp_ready_queue queue;
    pwsp_ready_init(&queue);
    for (uint32_t i = 0; i < 4; i++) {
        pwsp_ready_push(&queue, &order, i);
    }
    const uint32_t wanted[] = {1, 3, 0, 2};
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(queue.count, 4 - i);
        assert_int_equal(pwsp_ready_first(&queue, &order), wanted[i]);
        pwsp_ready_pop(&queue, &order);
    }
    assert_int_equal(pwsp_ready_first(&queue, &order), PWSP_READY_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ready__entries_leave_in_their_order),
        cmocka_unit_test(ready__the_first_entry_is_the_one_that_precedes_all_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
