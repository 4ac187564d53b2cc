// Sleepers of which several are called, one after another or all: which of them come, and that no two wait on one
// condition, as glibc may lose a signal then (src/base/sleeper.h). The room is inside, so that its waits
// can be counted.

#define pwsp_cond_wait test_cond_wait
#include "src/base/sleeper.c"
#undef pwsp_cond_wait

#include "test.h"

#if PWSP_HAS_THREADS

enum { THREADS = 5, ROUNDS = 200 };

static pwsp_sleepers sleepers;
static pwsp_cond *waiting[THREADS];  // under their lock
static uint32_t waiting_count, come_count;
static bool have_met;  // two on one condition

PWSP_INTERNAL void test_cond_wait(pwsp_cond *cond, pwsp_mutex *mutex) {
    uint32_t place = THREADS;
    for (uint32_t i = 0; i < THREADS; i++) {
        have_met = have_met || waiting[i] == cond;
        place = waiting[i] ? place : i;
    }
    waiting[place] = cond;
    waiting_count++;
    pthread_cond_wait(cond, mutex);
    waiting_count--;
    waiting[place] = NULL;
}

static void *sleep_once(void *user) {
    (void)user;
    pwsp_sleepers_begin(&sleepers);
    pwsp_sleepers_end(&sleepers, false);
    pwsp_fetch_add_seq_cst(&come_count, 1u);
    return NULL;
}

// Until so many wait: a thread that has come to wait has given the lock back.
static void await_waiting(uint32_t count) {
    for (bool is_there = false; !is_there; pwsp_thread_yield()) {
        pwsp_mutex_lock(&sleepers.mutex);
        is_there = waiting_count == count;
        pwsp_mutex_unlock(&sleepers.mutex);
    }
}

TEST(sleepers__each_call_is_for_one_that_sleeps) {
    for (int round = 0; TEST_ROUNDS(round, ROUNDS); round++) {
        pthread_t threads[THREADS];
        pwsp_sleepers_init(&sleepers);
        come_count = 0;
        for (uint32_t i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, sleep_once, NULL), 0);
        }
        await_waiting(THREADS);
        assert_false(have_met);
        for (uint32_t called = 1; called < 3; called++) {
            assert_true(pwsp_sleepers_are(&sleepers));
            pwsp_sleepers_wake(&sleepers, false);
            assert_int_equal(pwsp_load_seq_cst(&sleepers.count), THREADS - called);
        }
        await_waiting(THREADS - 2);
        pwsp_sleepers_wake(&sleepers, true);
        assert_false(pwsp_sleepers_are(&sleepers));
        pwsp_sleepers_wake(&sleepers, false);  // of nobody
        for (uint32_t i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
        assert_int_equal(come_count, THREADS);
        pwsp_sleepers_destroy(&sleepers);
    }
}

#endif
