// The reorder buffer by itself, under threads that run what is ready in any order. Entries wait at
// random for what holders of tokens stand for: entries, joins, joins of joins. What each holder
// stands for is known here as a plain set; so an entry must find all of its set run (the memory that
// shows it is not atomic: TSan sees whether they are ordered), poison must reach exactly those that
// wait for a failure, and after each round no join or link may be lost.

#include "src/base/block_list.h"
#include "src/runtime/reorder.c"

#include "test.h"

#include <sched.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ROUNDS = 30 };
#else
enum { ROUNDS = 300 };
#endif
enum { ENTRIES = 3000, HOLDERS = 12, WORKERS = 3 };

// What a holder stands for: sequence numbers that have not been retired.
typedef struct stand {
    pwsp_token token;
    uint32_t count;
    uint32_t entries[ENTRIES];
} stand;

typedef struct harness {
    pwsp_reorder reorder;
    uint64_t random;
    stand holders[HOLDERS];
    bool is_bad[ENTRIES];      // it fails, or waits for one that does
    bool is_failing[ENTRIES];  // it fails by itself
    uint8_t has_run[ENTRIES];
    uint32_t wait_first[ENTRIES], wait_end[ENTRIES];
    uint32_t *waits;
    uint64_t wait_count, wait_capacity;
    uint32_t issued_count;
    // The executor: what is ready, in no order.
    uint32_t lock;  // atomic
    uint32_t ready_count;
    uint32_t *ready;
    uint64_t pick;
    uint32_t is_over;                       // atomic
    uint32_t completed_count, wrong_count;  // atomic
} harness;

static harness the;

// -- the executor ---------------------------------------------------------------------------------

static void lock_ready(void) {
    while (pwsp_exchange_acquire(&the.lock, 1u)) {
        sched_yield();
    }
}

static void push_ready(void *user, uint32_t by, uint32_t place) {
    (void)user;
    (void)by;
    lock_ready();
    the.ready[the.ready_count++] = place;
    pwsp_store_release(&the.lock, 0u);
}

static bool run_one(uint32_t lane) {
    lock_ready();
    bool is_any = the.ready_count > 0;
    uint32_t place = 0;
    if (is_any) {
        uint32_t at = (uint32_t)(test_random(&the.pick) % the.ready_count);
        place = the.ready[at];
        the.ready[at] = the.ready[--the.ready_count];
    }
    pwsp_store_release(&the.lock, 0u);
    if (is_any) {
        pwsp_reorder_run(&the.reorder, place, lane);
        pwsp_reorder_done(&the.reorder, place, lane);
        pwsp_fetch_add_seq_cst(&the.completed_count, 1u);
    }
    return is_any;
}

static void help(void *user, uint32_t ticket) {
    (void)user;
    while (!run_one(0) && pwsp_reorder_ticket(&the.reorder) == ticket) {
        sched_yield();
    }
}

static void *work(void *arg) {
    uint32_t lane = (uint32_t)(uintptr_t)arg;
    while (!pwsp_load_seq_cst(&the.is_over)) {
        if (!run_one(lane)) {
            sched_yield();
        }
    }
    return NULL;
}

// A kernel: all that its entry waits for has run, and none of it has failed.
static ptowsp_cycles call(void *user, const pwsp_entry *entry, uint32_t lane) {
    uint64_t me = pwsp_entry_words(entry)[0];
    bool is_good = !the.has_run[me];
    (void)user;
    (void)lane;
    for (uint32_t i = the.wait_first[me]; i < the.wait_end[me]; i++) {
        is_good = is_good && the.has_run[the.waits[i]];
    }
    the.has_run[me] = 1;
    if (!is_good) {
        pwsp_fetch_add_seq_cst(&the.wrong_count, 1u);
    }
    return the.is_failing[me] ? ptowsp_task_fail(PTOWSP_KERNEL_FAILED) : 1;
}

// -- holders --------------------------------------------------------------------------------------

static bool chance(uint32_t one_in) {
    return test_random(&the.random) % one_in == 0;
}

static stand *any(void) {
    return &the.holders[test_random(&the.random) % HOLDERS];
}

static void stand_add(stand *s, uint32_t entry) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->entries[i] >= the.reorder.head && s->entries[i] != entry) {
            s->entries[kept++] = s->entries[i];
        }
    }
    s->entries[kept++] = entry;
    s->count = kept;
}

static void stand_clear(stand *s) {
    pwsp_token none = pwsp_token_none();
    pwsp_reorder_set(&the.reorder, &s->token, &none);
    s->count = 0;
}

static void stand_copy(stand *to, const stand *from) {
    pwsp_reorder_set(&the.reorder, &to->token, &from->token);
    to->count = from->count;
    memcpy(to->entries, from->entries, from->count * sizeof from->entries[0]);
}

// The opened entry waits for a holder.
static void wait_for(stand *s, uint32_t me) {
    pwsp_reorder_wait(&the.reorder, &s->token);
    if (the.wait_count + s->count > the.wait_capacity) {
        the.wrong_count++;
        return;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->entries[i] >= the.reorder.head || s->entries[i] < me) {
            the.waits[the.wait_count++] = s->entries[i];
            the.is_bad[me] = the.is_bad[me] || the.is_bad[s->entries[i]];
        }
    }
}

// What is dead has run; what has failed is never dead.
static void look(const stand *s) {
    if (pwsp_reorder_is_dead(&the.reorder, &s->token)) {
        for (uint32_t i = 0; i < s->count; i++) {
            if (!the.has_run[s->entries[i]] || the.is_bad[s->entries[i]]) {
                the.wrong_count++;
            }
        }
    }
}

// Something happens to holders between two entries: each is what scopes, edges and maps do.
static void shuffle(void) {
    stand *a = any(), *b = any();
    look(a);
    if (a == b) {
        return;
    }
    switch (test_random(&the.random) % 12) {
    case 0: stand_clear(a); break;
    case 1:  // handed over
        stand_copy(a, b);
        stand_clear(b);
        break;
    case 2:  // merged, and dropped
        if (a->count + b->count < ENTRIES && b->count) {
            pwsp_reorder_merge(&the.reorder, &a->token, &b->token);
            for (uint32_t i = 0; i < b->count; i++) {
                stand_add(a, b->entries[i]);
            }
            stand_clear(b);
        }
        break;
    default: break;
    }
}

// -- rounds ---------------------------------------------------------------------------------------

// Retires what is done; false at the first that has not been run well.
static bool retire(void) {
    while (the.reorder.head < the.reorder.tail) {
        const pwsp_entry *entry = pwsp_reorder_entry(&the.reorder, the.reorder.head);
        if (!pwsp_entry_is_done(entry)) {
            return true;
        }
        uint64_t me = pwsp_entry_words(entry)[0];
        if (entry->kind == PWSP_ENTRY_TASK) {
            bool is_skipped = (int64_t)entry->cycles == PTOWSP_SKIPPED;
            bool is_failed = entry->cycles > PTOWSP_CYCLES_MAX;
            bool is_first = the.is_failing[me] && !is_skipped;  // no failure is before it
            if (is_failed != the.is_bad[me] || (is_skipped && !the.is_bad[me]) ||
                (is_failed && !is_first) || is_skipped == (the.has_run[me] != 0)) {
                the.wrong_count++;
            }
            if (is_failed) {
                return false;
            }
        }
        the.reorder.head++;
    }
    return true;
}

static bool room(void) {
    for (;;) {
        uint32_t ticket = pwsp_reorder_ticket(&the.reorder);
        if (!retire()) {
            return false;
        }
        if (!pwsp_reorder_is_full(&the.reorder)) {
            return true;
        }
        help(NULL, ticket);
    }
}

static void issue_one(uint32_t me, uint32_t failing) {
    bool is_load = chance(40);
    pwsp_entry *entry =
        pwsp_reorder_open(&the.reorder, is_load ? PWSP_ENTRY_LOAD : PWSP_ENTRY_TASK);
    pwsp_token token = pwsp_reorder_token(&the.reorder);
    pwsp_entry_words(entry)[0] = me;
    the.is_bad[me] = false;
    the.is_failing[me] = !is_load && failing && chance(failing);
    the.has_run[me] = is_load;
    the.wait_first[me] = (uint32_t)the.wait_count;
    uint32_t wait_count = (uint32_t)(test_random(&the.random) % 4);
    for (uint32_t i = 0; i < wait_count; i++) {
        wait_for(any(), me);
    }
    the.wait_end[me] = (uint32_t)the.wait_count;
    the.is_bad[me] = the.is_bad[me] || the.is_failing[me];
    uint32_t holder_count = is_load ? 0 : (uint32_t)(test_random(&the.random) % 4);
    for (uint32_t i = 0; i < holder_count; i++) {
        stand *s = any();
        if (chance(4)) {
            pwsp_reorder_set(&the.reorder, &s->token, &token);
            s->count = 0;
        } else {
            pwsp_reorder_merge(&the.reorder, &s->token, &token);
        }
        stand_add(s, me);
    }
    the.issued_count += !is_load;
    pwsp_reorder_issue(&the.reorder);
    if (is_load) {
        while (!pwsp_entry_is_done(entry)) {
            uint32_t ticket = pwsp_reorder_ticket(&the.reorder);
            if (!pwsp_entry_is_done(entry)) {
                help(NULL, ticket);
            }
        }
        for (uint32_t i = the.wait_first[me]; i < the.wait_end[me]; i++) {
            if (!the.is_bad[the.waits[i]] && !the.has_run[the.waits[i]]) {
                the.wrong_count++;
            }
        }
    }
}

// None has been lost.
static void all_are_free(void) {
    pwsp_reorder *reorder = &the.reorder;
    const uint32_t joins[] = {reorder->joins.free, reorder->joins.freed};
    const uint32_t links[] = {reorder->links.free, reorder->links.freed};
    uint32_t join_count = 0, link_count = 0;
    for (int i = 0; i < 2; i++) {
        for (uint32_t id = joins[i]; id; id = pwsp_reorder_join_at(reorder, id)->next) {
            join_count++;
        }
        for (uint32_t id = links[i]; id; id = pwsp_reorder_link_at(reorder, id)->next) {
            link_count++;
        }
    }
    assert_int_equal(join_count, reorder->joins.next - 1);
    assert_int_equal(link_count, reorder->links.next - 1);
}

static void play_round(uint32_t failing) {
    pwsp_executor executor = {push_ready, help, NULL};
    pthread_t threads[WORKERS];
    pwsp_reorder_begin(&the.reorder, &executor);
    the.wait_count = 0;
    the.issued_count = 0;
    the.completed_count = 0;
    the.is_over = 0;
    for (int i = 0; i < HOLDERS; i++) {
        the.holders[i].token = pwsp_token_none();
        the.holders[i].count = 0;
    }
    for (uintptr_t i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    }
    for (uint32_t me = 0; me < ENTRIES && room(); me++) {
        issue_one(me, failing);
        shuffle();
    }
    for (int i = 0; i < HOLDERS; i++) {
        stand_clear(&the.holders[i]);
    }
    while (pwsp_load_seq_cst(&the.completed_count) < the.issued_count) {
        if (!run_one(0)) {
            sched_yield();
        }
    }
    retire();
    pwsp_store_seq_cst(&the.is_over, 1u);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(the.wrong_count, 0);
    assert_int_equal(the.ready_count, 0);
    all_are_free();
}

static void play(bool is_fixed) {
    test_memory heap = {0};
    const pwsp_memory under = pwsp_memory_make(test_resize, &heap);
    pwsp_blocks blocks;
    const pwsp_memory memory = pwsp_blocks_begin(&blocks, &under);
    uint64_t seed = test_seed();
    memset(&the, 0, sizeof the);
    the.wait_capacity = 4000000;
    the.waits = (uint32_t *)malloc(the.wait_capacity * sizeof(uint32_t));
    the.ready = (uint32_t *)malloc(4096 * sizeof(uint32_t));
    assert_true(the.waits && the.ready);
    for (int round = 0; TEST_ROUNDS(round, ROUNDS); round++) {
        static const uint32_t capacities[] = {1, 2, 8, 64, 512, 4096};
        uint32_t capacity = capacities[round % 6];
        the.random = seed + (uint64_t)round * 1000003;
        the.pick = the.random;
        assert_true(pwsp_reorder_init(&the.reorder, &memory, capacity, 1));
        the.reorder.call = call;
        if (is_fixed) {  // a join for each holder, and one more
            assert_true(pwsp_reorder_fix(&the.reorder, 12, HOLDERS + 1));
        }
        size_t allocated = heap.allocations;
        play_round(0);
        play_round(300);
        assert_true(!is_fixed || heap.allocations == allocated);
        pwsp_blocks_free(&blocks);
        assert_int_equal(heap.live_blocks, 0);
    }
    free(the.waits);
    free(the.ready);
}

TEST(reorder__entries_run_once_and_after_all_that_they_wait_for) {
    play(false);
}

// So few links and joins that the walking thread waits for them all the time.
TEST(reorder__the_same_holds_where_memory_is_given_once) {
    play(true);
}

// Two joins, each of two entries that nobody has run yet, and whose holder has let go of it. A third one has
// to wait until one of them is done, for which the walking thread runs entries itself.
TEST(reorder__a_join_is_waited_for_where_all_are_in_flight) {
    test_memory heap = {0};
    const pwsp_memory under = pwsp_memory_make(test_resize, &heap);
    pwsp_blocks blocks;
    const pwsp_memory memory = pwsp_blocks_begin(&blocks, &under);
    const pwsp_executor executor = {push_ready, help, NULL};
    uint32_t ready[8];
    memset(&the, 0, sizeof the);
    the.ready = ready;
    assert_true(pwsp_reorder_init(&the.reorder, &memory, 8, 1));
    the.reorder.call = call;
    assert_true(pwsp_reorder_fix(&the.reorder, 12, 2));
    const size_t allocated = heap.allocations;
    pwsp_reorder_begin(&the.reorder, &executor);
    pwsp_token held = pwsp_token_none();
    const pwsp_token none = pwsp_token_none();
    for (uint32_t me = 0; me < 6; me++) {
        if (me == 2 || me == 4) {
            pwsp_reorder_set(&the.reorder, &held, &none);
        }
        pwsp_entry *entry = pwsp_reorder_open(&the.reorder, PWSP_ENTRY_TASK);
        const pwsp_token token = pwsp_reorder_token(&the.reorder);
        pwsp_entry_words(entry)[0] = me;
        pwsp_reorder_merge(&the.reorder, &held, &token);
        assert_true(me == 5 ? the.completed_count >= 2 : the.completed_count == 0);
        pwsp_reorder_issue(&the.reorder);
    }
    assert_true(the.completed_count < 6);
    while (run_one(0)) {
    }
    assert_true(retire());
    pwsp_reorder_set(&the.reorder, &held, &none);
    assert_int_equal(the.completed_count, 6);
    assert_int_equal(the.wrong_count, 0);
    assert_int_equal(the.reorder.head, 6);
    assert_int_equal(the.reorder.joins.next, 3);
    all_are_free();
    assert_int_equal(heap.allocations, allocated);
    pwsp_blocks_free(&blocks);
    assert_int_equal(heap.live_blocks, 0);
}
