// Contexts, lanes and parallel-for, in all thread modes; clean under the thread sanitizer.
//
// Expected values: the statuses and defaults of the header's section 3; each item of a parallel-for
// is marked by plain, unsynchronised writes, so that a range given out twice or a job that is left
// too early is a wrong count here and a race to the thread sanitizer. Flags that watch lanes are
// relaxed atomics, which order nothing and so hide no race.

#define _DEFAULT_SOURCE  // usleep

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

// Threads are started through this, so that starting one can fail, and ended ones are counted.
__attribute__((unused)) static int test_pthread_create(pthread_t *out_thread,
                                                       const pthread_attr_t *attributes,
                                                       void *(*fn)(void *), void *arg);
#define pthread_create test_pthread_create

#include "src/base/os.c"

#include "test.h"

#undef pthread_create

#include "facts.h"
#include "fork.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#endif
#ifndef UNDER_SANITIZER
#define UNDER_SANITIZER 0
#endif

// Jobs of the stress tests: fewer where each memory access is watched.
#define STRESS(count) (UNDER_SANITIZER ? (count) / 10 : (count))

// -- threads that are counted ---------------------------------------------------------------------

static uint32_t
    threads_refuse_at;  // the thread with this number (from 1) is refused; 0 refuses none
static uint32_t threads_started;
static atomic_uint threads_ended;

typedef struct thread_start {
    void *(*fn)(void *);
    void *arg;
} thread_start;

static void *thread_main(void *arg) {
    thread_start start = *(thread_start *)arg;
    free(arg);
    void *result = start.fn(start.arg);
    atomic_fetch_add(&threads_ended, 1);
    return result;
}

static int test_pthread_create(pthread_t *out_thread, const pthread_attr_t *attributes,
                               void *(*fn)(void *), void *arg) {
    if (threads_refuse_at && threads_started + 1 == threads_refuse_at) {
        return 11;  // EAGAIN
    }
    thread_start *start = (thread_start *)malloc(sizeof *start);
    start->fn = fn;
    start->arg = arg;
    int failed = pthread_create(out_thread, attributes, thread_main, start);
    if (failed) {
        free(start);
    } else {
        threads_started++;
    }
    return failed;
}

static void threads_reset(uint32_t refuse_at) {
    threads_refuse_at = refuse_at;
    threads_started = 0;
    atomic_store(&threads_ended, 0);
}

// -- contexts of each kind ------------------------------------------------------------------------

typedef enum kind { SERIAL, OWN, USER_BACKWARDS, USER_THREADS, KIND_COUNT } kind;

// A test of each kind that there is.
#define KINDS_TEST(name)                                                                           \
    static void name##_of(kind which);                                                             \
    TEST(name) {                                                                                   \
        for (int which = 0; which < KIND_COUNT; which++) {                                         \
            if (kind_is_here((kind)which)) {                                                       \
                name##_of((kind)which);                                                            \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name##_of(kind which)

static bool kind_is_here(kind which) {
    return which != OWN || PWSP_HAS_THREADS;
}

static ptowsp_context_desc desc_of(kind which, uint32_t lane_count) {
    ptowsp_context_desc desc = {.lane_count = lane_count,
                                .threads = which == SERIAL ? PTOWSP_THREADS_SERIAL
                                           : which == OWN  ? PTOWSP_THREADS_OWN
                                                           : PTOWSP_THREADS_USER,
                                .run_lanes = which == USER_BACKWARDS ? test_run_lanes_backwards
                                             : which == USER_THREADS ? test_run_lanes_on_threads
                                                                     : NULL};
    return desc;
}

static ptowsp_context_desc desc_over(test_memory *memory, kind which, uint32_t lane_count) {
    ptowsp_context_desc desc = desc_of(which, lane_count);
    desc.resize = test_resize;
    desc.resize_user = memory;
    return desc;
}

static ptowsp_context *context_of(kind which, uint32_t lane_count) {
    ptowsp_context_desc desc = desc_of(which, lane_count);
    ptowsp_context *context = test_context(&desc);
    assert_non_null(context);
    assert_int_equal(ptowsp_context_lane_count(context), lane_count);
    return context;
}

// -- creation -------------------------------------------------------------------------------------

static void check_defaults(const ptowsp_context_desc *desc) {
    ptowsp_context *context = test_context(desc);
    assert_int_equal(ptowsp_context_lane_count(context), 1);
    test_error_is(context, PTOWSP_OK, PTOWSP_NO_INDEX, "");
    ptowsp_context_destroy(context);
}

SUITE_SECONDS(300)  // a deadlock ends here

TEST(context__null_and_zeroed_descriptions_are_serial_with_one_lane) {
    check_defaults(NULL);
    ptowsp_context_desc desc = {0};
    assert_int_equal(PTOWSP_THREADS_SERIAL, 0);
    check_defaults(&desc);
    desc.lane_count = 1;
    check_defaults(&desc);
    ptowsp_context_destroy(NULL);
}

TEST(context__own_has_a_lane_per_processor_that_may_be_used) {
    ptowsp_context_desc desc = desc_of(OWN, 0);
    ptowsp_context *context = NULL;
    if (!kind_is_here(OWN)) {
        assert_int_equal(ptowsp_context_create(&desc, &context), PTOWSP_UNSUPPORTED);
        assert_null(context);
        return;
    }
    assert_ok(ptowsp_context_create(&desc, &context));
    assert_int_equal(ptowsp_context_lane_count(context), ptowsp_processor_count());
    ptowsp_context_destroy(context);
}

TEST(context__own_starts_a_thread_less_than_lanes_and_joins_them) {
    if (!kind_is_here(OWN)) {
        return;
    }
    const uint32_t lane_counts[] = {1, 2, 3, 8, 64};
    for (size_t i = 0; i < COUNT_OF(lane_counts); i++) {
        threads_reset(0);
        ptowsp_context *context = context_of(OWN, lane_counts[i]);
        assert_int_equal(threads_started, lane_counts[i] - 1);
        assert_int_equal(atomic_load(&threads_ended), 0);
        ptowsp_context_destroy(context);
        assert_int_equal(atomic_load(&threads_ended), lane_counts[i] - 1);
    }
}

TEST(context__as_many_lanes_as_the_limit_are_accepted) {
    ptowsp_context *context = context_of(USER_BACKWARDS, 1024);
    ptowsp_context_destroy(context);
    if (UNDER_SANITIZER || !kind_is_here(OWN)) {
        return;
    }
    ptowsp_context_desc desc = desc_of(OWN, 1024);  // unless the system has no room for threads
    ptowsp_status status = ptowsp_context_create(&desc, &context);
    assert_true(status == PTOWSP_OK || status == PTOWSP_SYSTEM_FAILED);
    ptowsp_context_destroy(context);
}

KINDS_TEST(context__is_two_blocks_of_which_each_may_be_refused) {
    ptowsp_status status = PTOWSP_OUT_OF_MEMORY;
    size_t refuse_at = 0;
    while (status != PTOWSP_OK) {
        threads_reset(0);
        test_memory memory = {0, 0, 0, ++refuse_at};
        ptowsp_context_desc desc = desc_over(&memory, which, which == SERIAL ? 1 : 3);
        ptowsp_context *context = (ptowsp_context *)(void *)&desc;
        status = ptowsp_context_create(&desc, &context);
        if (status != PTOWSP_OK) {
            assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
            assert_null(context);
            assert_int_equal(memory.allocations, refuse_at);
            assert_int_equal(memory.live_blocks, 0);
            assert_int_equal(threads_started, atomic_load(&threads_ended));
        }
        ptowsp_context_destroy(context);
        assert_int_equal(memory.live_blocks, 0);
        assert_int_equal(memory.live_bytes, 0);
    }
    assert_int_equal(refuse_at, 3);  // "one block for the context, one for its pool"
}

TEST(context__any_thread_that_cannot_be_started_fails_and_leaks_nothing) {
    if (!kind_is_here(OWN)) {
        return;
    }
    for (uint32_t refuse_at = 1; refuse_at <= 8; refuse_at++) {
        threads_reset(refuse_at);
        test_memory memory = {0, 0, 0, 0};
        ptowsp_context_desc desc = desc_over(&memory, OWN, 8);
        ptowsp_context *context = (ptowsp_context *)(void *)&desc;
        ptowsp_status status = ptowsp_context_create(&desc, &context);
        if (refuse_at < 8) {
            assert_int_equal(status, PTOWSP_SYSTEM_FAILED);
            assert_null(context);
            assert_int_equal(threads_started, refuse_at - 1);
            assert_int_equal(atomic_load(&threads_ended), refuse_at - 1);  // and joined
        } else {
            assert_ok(status);  // eight lanes are seven threads
        }
        ptowsp_context_destroy(context);
        assert_int_equal(memory.live_blocks, 0);
        assert_int_equal(memory.live_bytes, 0);
    }
    threads_reset(0);
}

enum { ROOM_IS_LARGE = 99 };

// Creates a context with 1000 lanes where there is room for far fewer stacks, also for those of musl,
// which have 128 KiB whatever the limit. ROOM_IS_LARGE: the limit is not kept, as under qemu.
static void create_in_little_room(void *user) {
    const struct rlimit limit = {(rlim_t)96 << 20, (rlim_t)96 << 20};
    const struct rlimit stack = {(rlim_t)8 << 20, (rlim_t)8 << 20};  // what each thread gets
    CHILD_CHECK(user == NULL && setrlimit(RLIMIT_STACK, &stack) == 0);
    CHILD_CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    void *volatile beyond = malloc((size_t)97 << 20);
    if (beyond) {
        test_exit(ROOM_IS_LARGE);
    }
    test_memory memory = {0, 0, 0, 0};
    ptowsp_context_desc desc = desc_over(&memory, OWN, 1000);
    ptowsp_context *context = (ptowsp_context *)(void *)&desc;
    CHILD_CHECK(ptowsp_context_create(&desc, &context) == PTOWSP_SYSTEM_FAILED && !context);
    CHILD_CHECK(memory.live_blocks == 0 && memory.live_bytes == 0);
    CHILD_CHECK(threads_started > 0 && threads_started == atomic_load(&threads_ended));
    desc.lane_count = 4;  // the room is free again
    CHILD_CHECK(ptowsp_context_create(&desc, &context) == PTOWSP_OK);
    ptowsp_context_destroy(context);
    CHILD_CHECK(memory.live_blocks == 0);
}

TEST(context__a_system_without_room_for_threads_is_an_error) {
    if (UNDER_SANITIZER || !kind_is_here(OWN)) {
        return;  // sanitizers reserve terabytes
    }
    threads_reset(0);
    if (test_in_child(create_in_little_room, NULL, ROOM_IS_LARGE) == ROOM_IS_LARGE) {
        skip();
    }
}

// An allocator that notes whether it was called on another thread than the first.
typedef struct thread_memory {
    test_memory memory;
    pthread_t thread;
    bool elsewhere;
} thread_memory;

static void *thread_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
    thread_memory *memory = (thread_memory *)user;
    memory->elsewhere = memory->elsewhere || !pthread_equal(memory->thread, pthread_self());
    return test_resize(&memory->memory, ptr, old_size, new_size);
}

// -- parallel_for: every item once ----------------------------------------------------------------

#define ITEM_COUNT_MAX  1000
#define RANGE_COUNT_MAX 1024

typedef struct cover_range {
    uint64_t begin, end;
} cover_range;

// What a parallel-for did. Plain members are written without locks, as the contract allows.
typedef struct cover {
    uint64_t item_count, grain;
    uint32_t lane_count;
    pthread_t caller;
    bool lane_0_is_caller;                       // so in SERIAL and OWN mode
    uint8_t marks[ITEM_COUNT_MAX];               // plain: an item belongs to one call
    uint64_t lane_items[PTOWSP_LANE_COUNT_MAX];  // plain: a lane belongs to one call at a time
    atomic_bool lane_busy[PTOWSP_LANE_COUNT_MAX];
    atomic_uint range_count;
    cover_range ranges[RANGE_COUNT_MAX];
    atomic_uint faults;
} cover;

static void cover_start(cover *job, const ptowsp_context *context, uint64_t item_count,
                        uint64_t grain) {
    memset(job, 0, sizeof *job);
    job->item_count = item_count;
    job->grain = grain;
    job->lane_count = ptowsp_context_lane_count(context);
    job->caller = pthread_self();
}

static void cover_run(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    cover *job = (cover *)user;
    bool good = lane < job->lane_count && begin < end && end <= job->item_count;
    good = good && (job->grain == 0 || end - begin == job->grain || end == job->item_count);
    if (!good || atomic_exchange_explicit(&job->lane_busy[lane], true, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&job->faults, 1, memory_order_relaxed);
        return;
    }
    if (job->lane_0_is_caller && (lane == 0) != pthread_equal(pthread_self(), job->caller)) {
        atomic_fetch_add_explicit(&job->faults, 1, memory_order_relaxed);
    }
    for (uint64_t i = begin; i < end && i < ITEM_COUNT_MAX; i++) {
        job->marks[i]++;
    }
    job->lane_items[lane] += end - begin;
    uint32_t at = atomic_fetch_add_explicit(&job->range_count, 1, memory_order_relaxed);
    if (at < RANGE_COUNT_MAX) {
        job->ranges[at] = (cover_range){begin, end};
    }
    atomic_store_explicit(&job->lane_busy[lane], false, memory_order_relaxed);
}

static int cover_range_compare(const void *a, const void *b) {
    const cover_range *first = (const cover_range *)a, *second = (const cover_range *)b;
    return (first->begin > second->begin) - (first->begin < second->begin);
}

// Runs a job and checks that its ranges are disjoint, cover all items, and have the documented
// sizes.
static ptowsp_status cover_check(ptowsp_context *context, kind which, uint64_t item_count,
                                 uint64_t grain) {
    static cover job;
    cover_start(&job, context, item_count, grain);
    job.lane_0_is_caller = which == SERIAL || which == OWN;
    ptowsp_status status = ptowsp_parallel_for(context, item_count, grain, cover_run, &job);
    assert_int_equal(atomic_load(&job.faults), 0);
    uint64_t lane_items = 0;
    for (uint32_t lane = 0; lane < job.lane_count; lane++) {
        lane_items += job.lane_items[lane];
        assert_false(atomic_load(&job.lane_busy[lane]));
    }
    assert_true(lane_items == item_count);
    for (uint64_t i = 0; i < ITEM_COUNT_MAX; i++) {
        assert_int_equal(job.marks[i], i < item_count ? 1 : 0);
    }
    uint32_t range_count = atomic_load(&job.range_count);
    assert_true(range_count <= RANGE_COUNT_MAX);
    qsort(job.ranges, range_count, sizeof job.ranges[0], cover_range_compare);
    uint64_t next = 0, previous = UINT64_MAX;
    for (uint32_t i = 0; i < range_count; i++) {
        assert_true(job.ranges[i].begin == next);
        next = job.ranges[i].end;
        uint64_t size = next - job.ranges[i].begin;
        // grain 0: large ranges first, smaller ones towards the end
        assert_true(grain > 0 || size <= previous);
        previous = size;
    }
    assert_true(next == item_count);
    return status;
}

// All counts up to 70, then every step-th one; at a small scale fewer of both.
static void check_all_counts(kind which, uint32_t lane_count, uint64_t step) {
    const uint64_t few = test_rounds(70) < 70 ? test_rounds(70) : 70, stride = step * (70 / few);
    const uint64_t grains[] = {0, 1, 7, UINT64_C(1) << 63, UINT64_MAX};
    ptowsp_context *context = context_of(which, lane_count);
    for (uint64_t item_count = 0; item_count <= ITEM_COUNT_MAX;
         item_count += item_count < few || item_count >= ITEM_COUNT_MAX - 10 ? 1 : stride) {
        for (size_t i = 0; i < COUNT_OF(grains); i++) {
            assert_ok(cover_check(context, which, item_count, grains[i]));
        }
    }
    test_error_is(context, PTOWSP_OK, PTOWSP_NO_INDEX, "");
    ptowsp_context_destroy(context);
}

static const uint32_t lane_counts[] = {1, 2, 3, 4, 8, 64};
#define LANE_COUNT_CASES (COUNT_OF(lane_counts))

KINDS_TEST(parallel_for__covers_every_item_once) {
    threads_reset(0);
    for (size_t i = 0; i < (which == SERIAL ? 1 : LANE_COUNT_CASES); i++) {
        const bool is_many = lane_counts[i] > 8;
        check_all_counts(which, lane_counts[i],
                         which == USER_THREADS ? (is_many ? 470 : 100)
                         : which != OWN        ? 1
                         : UNDER_SANITIZER     ? 30
                         : is_many             ? 10
                                               : 1);
    }
}

static void check_huge_count(ptowsp_context *context, uint64_t count, uint64_t grain) {
    static cover job;
    cover_start(&job, context, count, grain);
    assert_ok(ptowsp_parallel_for(context, count, grain, cover_run, &job));
    assert_int_equal(atomic_load(&job.faults), 0);
    uint32_t range_count = atomic_load(&job.range_count);
    assert_true(range_count == (count - 1) / grain + 1);
    qsort(job.ranges, range_count, sizeof job.ranges[0], cover_range_compare);
    for (uint32_t r = 0; r < range_count; r++) {
        assert_true(job.ranges[r].begin == r * grain);
        assert_true(job.ranges[r].end == (r + 1 < range_count ? (r + 1) * grain : count));
    }
}

KINDS_TEST(parallel_for__huge_counts_do_not_overflow) {
    const uint64_t counts[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63,
                               (UINT64_C(1) << 60) + 1};
    for (size_t l = 0; l < (which == SERIAL ? 1 : LANE_COUNT_CASES); l++) {
        ptowsp_context *context = context_of(which, lane_counts[l]);
        for (size_t i = 0; i < COUNT_OF(counts); i++) {
            for (uint64_t grain = UINT64_MAX / 16; grain > UINT64_MAX / 1000; grain /= 3) {
                check_huge_count(context, counts[i], grain);
            }
        }
        ptowsp_context_destroy(context);
    }
}

TEST(parallel_for__grain_0_takes_few_ranges_and_ends_with_small_ones) {
    // A million items on one lane: guided self-scheduling takes about 8 ln(n / 8) = 94 ranges.
    static cover job;
    ptowsp_context *context = context_of(SERIAL, 1);
    cover_start(&job, context, 1000000, 0);
    assert_ok(ptowsp_parallel_for(context, 1000000, 0, cover_run, &job));
    uint32_t range_count = atomic_load(&job.range_count);
    assert_in_range(range_count, 2, 1000);
    uint64_t first = job.ranges[0].end - job.ranges[0].begin;
    uint64_t last = job.ranges[range_count - 1].end - job.ranges[range_count - 1].begin;
    assert_true(first > 10000 && last <= 8);
    ptowsp_context_destroy(context);
}

// -- parallel_for: errors -------------------------------------------------------------------------

TEST(parallel_for__no_function_is_an_error_with_a_text) {
    ptowsp_context *context = context_of(SERIAL, 1);
    test_refused(context, ptowsp_parallel_for(context, 5, 0, NULL, NULL), PTOWSP_INVALID_PARAMS,
                 PTOWSP_NO_INDEX, "parallel_for: fn is NULL");
    // Success does not clear it.
    assert_ok(cover_check(context, SERIAL, 5, 0));
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "parallel_for: fn is NULL");
    assert_invalid(ptowsp_parallel_for(context, 0, 0, NULL, NULL));
    ptowsp_context_destroy(context);
}

static void forbidden_lanes(void *user, uint32_t lane_count, ptowsp_lane_fn lane, void *job) {
    (void)lane_count, (void)lane, (void)job;
    ++*(int *)user;
}

TEST(parallel_for__no_items_cost_nothing) {
    int calls = 0;
    ptowsp_context_desc desc = desc_of(USER_BACKWARDS, 3);
    desc.run_lanes = forbidden_lanes;
    desc.run_lanes_user = &calls;
    ptowsp_context *context = test_context(&desc);
    assert_ok(cover_check(context, USER_BACKWARDS, 0, 0));
    assert_ok(cover_check(context, USER_BACKWARDS, 0, 5));
    assert_int_equal(calls, 0);
    ptowsp_context_destroy(context);
}

typedef struct nested_job {
    ptowsp_context *other;
    uint32_t items, wrong;
} nested_job;

static void nested_count(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)lane;
    ((nested_job *)user)->items += (uint32_t)(end - begin);
}

static void nested_outer(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    nested_job *job = (nested_job *)user;
    (void)end;
    if (lane == 0 && begin == 0) {
        job->wrong += ptowsp_parallel_for(job->other, 10, 0, nested_count, job) != PTOWSP_OK;
    }
}

// What is busy in a job is in plan/dispatch_test.c.
TEST(parallel_for__another_context_may_run_inside_a_job) {
    ptowsp_context *context =
        context_of(kind_is_here(OWN) ? OWN : SERIAL, kind_is_here(OWN) ? 2 : 1);
    nested_job job = {.other = context_of(SERIAL, 1)};
    // Lane 0 might be given no item: try until it was.
    for (int i = 0; i < 1000 && job.items == 0; i++) {
        assert_ok(ptowsp_parallel_for(context, 4, 1, nested_outer, &job));
    }
    assert_int_equal(job.items, 10);
    assert_int_equal(job.wrong, 0);
    ptowsp_context_destroy(job.other);
    ptowsp_context_destroy(context);
}

// -- executors that break their contract ----------------------------------------------------------

// Calls the lanes of a list, one after another.
typedef struct lane_list {
    uint32_t count;
    uint32_t lanes[16];
} lane_list;

static void run_lanes_of_list(void *user, uint32_t lane_count, ptowsp_lane_fn lane, void *job) {
    const lane_list *list = (const lane_list *)user;
    (void)lane_count;
    for (uint32_t i = 0; i < list->count; i++) {
        lane(job, list->lanes[i]);
    }
}

// Runs jobs on 4 lanes with an executor that calls the lanes of the list. Returns the status, which
// is the same for all jobs, and checks that all work was done once, and the error.
static ptowsp_status run_list(const lane_list *list, char *said, size_t size) {
    lane_list lanes = *list;
    ptowsp_context_desc desc = desc_of(USER_BACKWARDS, 4);
    desc.run_lanes = run_lanes_of_list;
    desc.run_lanes_user = &lanes;
    ptowsp_context *context = test_context(&desc);
    const uint64_t counts[] = {1, 2, 10, 1000};
    ptowsp_status status = PTOWSP_OK;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        for (uint64_t grain = 0; grain <= 7; grain += 7) {
            ptowsp_status now = cover_check(context, USER_BACKWARDS, counts[i], grain);
            assert_true(now == status || (i == 0 && grain == 0));
            status = now;
        }
    }
    assert_int_equal(ptowsp_context_error(context).status, status);
    assert_true(ptowsp_context_error(context).index == PTOWSP_NO_INDEX);
    snprintf(said, size, "%s", ptowsp_context_error(context).text);
    // A mended executor is fine again, in the same context.
    lanes = (lane_list){4, {2, 0, 3, 1}};
    assert_ok(cover_check(context, USER_BACKWARDS, 100, 3));
    ptowsp_context_destroy(context);
    return status;
}

typedef struct executor_seen {
    uint32_t lane_count;
    int calls;
} executor_seen;

static void run_lanes_noting(void *user, uint32_t lane_count, ptowsp_lane_fn lane, void *job) {
    executor_seen *seen = (executor_seen *)user;
    seen->lane_count = lane_count;
    seen->calls++;
    test_run_lanes_backwards(NULL, lane_count, lane, job);
}

TEST(executor__is_given_its_user_pointer_and_all_lanes) {
    executor_seen seen = {0, 0};
    ptowsp_context_desc desc = desc_of(USER_BACKWARDS, 1024);
    desc.run_lanes = run_lanes_noting;
    desc.run_lanes_user = &seen;
    ptowsp_context *context = test_context(&desc);
    assert_int_equal(seen.calls, 0);
    assert_ok(cover_check(context, USER_BACKWARDS, 1000, 1));
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.lane_count, 1024);
    ptowsp_context_destroy(context);
    assert_int_equal(seen.calls, 1);
}

// -- facts ----------------------------------------------------------------------------------------

static ptowsp_context_desc described;
static bool has_executor;
static lane_list called;
static char said[200];

// All is checked before anything is allocated.
static ptowsp_status create(void) {
    test_memory memory = {0, 0, 0, 0};
    described.resize = test_resize;
    described.resize_user = &memory;
    described.run_lanes = has_executor ? test_run_lanes_backwards : NULL;
    ptowsp_context *context = (ptowsp_context *)(void *)&memory;  // anything but NULL
    const ptowsp_status status = ptowsp_context_create(&described, &context);
    assert_null(context);
    assert_int_equal(memory.allocations, 0);
    snprintf(said, sizeof said, "the description is wrong");
    // Without threads nobody counts processors.
    const bool is_unsupported = !PWSP_HAS_THREADS && described.threads == PTOWSP_THREADS_WORKERS &&
                                described.lane_count == 0;
    assert_true(!is_unsupported || status == PTOWSP_UNSUPPORTED);
    return is_unsupported ? PTOWSP_INVALID_PARAMS : status;
}

static ptowsp_status run(void) {
    return run_list(&called, said, sizeof said);
}

// Whether it fails is not said; the work is right, and the text is that of the status.
static ptowsp_status run_somehow(void) {
    const ptowsp_status status = run();
    assert_true(status == PTOWSP_OK || status == PTOWSP_SYSTEM_FAILED);
    return PTOWSP_OK;
}

static void begin(void) {
    memset(&described, 0, sizeof described);
    has_executor = false;
}

static const char *text_of_error(uint64_t *out_index) {
    *out_index = PTOWSP_NO_INDEX;
    return said;
}

static const facts_field *fields(void) {
    FACTS_RETURN(FIELD(described.threads), FIELD(described.lane_count), FIELD(has_executor),
                 FIELD(called.count), FIELDS(called.lanes, 16));
}

TEST(context__facts_hold) {
    static const facts_call calls[] = {
        {"create", create}, {"run", run}, {"run_somehow", run_somehow}, {NULL, NULL}};
    facts all = {"tests/base/contexts.facts", begin, fields, calls, text_of_error, NULL, 0};
    facts_run(&all);
}

TEST(context__own_lanes_need_threads) {
    static const uint32_t counts[] = {0, 1, 8, 1024};
    for (size_t i = 0; i < COUNT_OF(counts) && !kind_is_here(OWN); i++) {
        ptowsp_context_desc desc = desc_of(OWN, counts[i]);
        ptowsp_context *context = (ptowsp_context *)(void *)&desc;
        assert_int_equal(ptowsp_context_create(&desc, &context), PTOWSP_UNSUPPORTED);
        assert_null(context);
    }
    assert_int_equal(PTOWSP_LANE_COUNT_MAX, 1024);
    assert_invalid(ptowsp_context_create(NULL, NULL));
}

// -- threads under stress -------------------------------------------------------------------------

// A job that ends only when all lanes are inside at once. Users cannot rely on that (lanes may be
// left out), but a worker that misses its wake-up shows here, and only here.
typedef struct meeting {
    uint32_t lane_count;
    atomic_uint arrived;
    atomic_bool late;
    uint64_t deadline;
} meeting;

static void meeting_run(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    meeting *job = (meeting *)user;
    (void)begin, (void)end, (void)lane;
    atomic_fetch_add(&job->arrived, 1);
    while (atomic_load(&job->arrived) < job->lane_count) {
        if (ptowsp_clock_ns() > job->deadline) {
            atomic_store(&job->late, true);
            return;
        }
        sched_yield();
    }
}

TEST(pool__every_worker_wakes_for_every_job_that_needs_it) {
    if (!kind_is_here(OWN)) {
        return;
    }
    uint64_t random = test_seed();
    for (uint32_t lane_count = 2; lane_count <= 9; lane_count += lane_count < 4 ? 1 : 5) {
        ptowsp_context *context = context_of(OWN, lane_count);
        for (int round = 0; round < STRESS(2000); round++) {
            meeting job = {lane_count, 0, false, ptowsp_clock_ns() + UINT64_C(20000000000)};
            assert_ok(ptowsp_parallel_for(context, lane_count, 1, meeting_run, &job));
            assert_false(atomic_load(&job.late));
            if (round % 8 == 0) {  // around the moment where a worker goes to sleep
                usleep((useconds_t)test_random_in(&random, 0, 150));
            }
        }
        ptowsp_context_destroy(context);
    }
}

typedef struct stress_job {
    uint64_t sum;  // plain, of lane 0's and all others' results below
    uint64_t lane_sums[64][16];
    uint64_t sleep_us;
} stress_job;

static void stress_run(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    stress_job *job = (stress_job *)user;
    for (uint64_t i = begin; i < end; i++) {
        job->lane_sums[lane][0] += i + 1;
    }
    if (job->sleep_us && (begin + lane) % 3 == 0) {
        usleep((useconds_t)job->sleep_us);
    }
}

static void stress(ptowsp_context *context, uint64_t *random, int job_count, int sleeps_every) {
    static stress_job job;
    uint32_t lane_count = ptowsp_context_lane_count(context);
    memset(&job, 0, sizeof job);
    uint64_t expected = 0;
    for (int i = 0; i < job_count; i++) {
        uint64_t item_count = (uint64_t)test_random_in(random, 0, 40);
        bool sleeps = sleeps_every && i % sleeps_every == 0;
        job.sleep_us = sleeps ? (uint64_t)test_random_in(random, 1, 120) : 0;
        assert_ok(ptowsp_parallel_for(context, item_count, (uint64_t)(i % 3), stress_run, &job));
        expected += item_count * (item_count + 1) / 2;
        if (sleeps && i % 2) {
            usleep((useconds_t)test_random_in(random, 1, 120));
        }
    }
    uint64_t sum = 0;
    for (uint32_t lane = 0; lane < lane_count; lane++) {
        sum += job.lane_sums[lane][0];
    }
    assert_true(sum == expected);
}

// In a row, and with sleeps in and between them.
TEST(pool__short_jobs_run_by_the_thousand) {
    uint64_t random = test_seed();
    for (size_t i = 0; i < LANE_COUNT_CASES && kind_is_here(OWN); i++) {
        ptowsp_context *context = context_of(OWN, lane_counts[i]);
        const bool is_many = lane_counts[i] > 8;
        stress(context, &random, STRESS(is_many ? 2000 : 20000), 0);
        stress(context, &random, STRESS(is_many ? 200 : 800), 3);
        ptowsp_context_destroy(context);
    }
}

// After create, or after a job or two.
TEST(pool__can_be_destroyed_at_once) {
    threads_reset(0);
    uint64_t random = test_seed();
    for (int i = 0; i < STRESS(2000) && kind_is_here(OWN); i++) {
        ptowsp_context *context = context_of(OWN, 2 + (uint32_t)i % 4);
        stress(context, &random, i % 2 ? i % 3 + 1 : 0, 0);
        ptowsp_context_destroy(context);
    }
    assert_int_equal(threads_started, atomic_load(&threads_ended));
}

KINDS_TEST(pool__memory_is_asked_for_on_the_calling_thread_and_not_by_jobs) {
    thread_memory memory = {{0, 0, 0, 0}, pthread_self(), false};
    ptowsp_context_desc desc = desc_of(which, which == SERIAL ? 1 : 4);
    desc.resize = thread_resize;
    desc.resize_user = &memory;
    ptowsp_context *context = test_context(&desc);
    size_t allocations = memory.memory.allocations;
    for (uint64_t item_count = 0; item_count < 100; item_count++) {
        assert_ok(cover_check(context, which, item_count, 0));
    }
    assert_int_equal(memory.memory.allocations, allocations);
    ptowsp_context_destroy(context);
    assert_false(memory.elsewhere);
    assert_int_equal(memory.memory.live_blocks, 0);
}

// -- several threads that use the library ---------------------------------------------------------

typedef struct user_thread {
    ptowsp_context *context;
    uint64_t wrong;
    int job_count;
} user_thread;

static void user_thread_item(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    uint64_t *lane_counts_of_items = (uint64_t *)user;
    lane_counts_of_items[lane] += end - begin;
}

// A thread that has a context.
static void user_thread_main(void *users, uint32_t number) {
    user_thread *thread = (user_thread *)users + number;
    for (int i = 0; i < thread->job_count; i++) {
        uint64_t counts[8] = {0}, total = 0, item_count = (uint64_t)(i % 50);
        ptowsp_status status =
            ptowsp_parallel_for(thread->context, item_count, 0, user_thread_item, counts);
        for (int lane = 0; lane < 8; lane++) {
            total += counts[lane];
        }
        thread->wrong += status != PTOWSP_OK || total != item_count;
        if (i % 10 == 0) {
            thread->wrong +=
                ptowsp_parallel_for(thread->context, 1, 0, NULL, NULL) != PTOWSP_INVALID_PARAMS;
        }
    }
}

TEST(context__two_contexts_work_from_two_threads_at_once) {
    kind which = kind_is_here(OWN) ? OWN : USER_BACKWARDS;
    for (int round = 0; round < 3; round++) {
        user_thread users[2] = {{context_of(which, 2), 0, STRESS(4000)},
                                {context_of(which, 3), 0, STRESS(4000)}};
        test_run_lanes_on_threads(NULL, 2, user_thread_main, users);
        for (int i = 0; i < 2; i++) {
            assert_true(users[i].wrong == 0);
            ptowsp_context_destroy(users[i].context);
        }
    }
}

TEST(context__may_be_handed_from_thread_to_thread) {
    kind which = kind_is_here(OWN) ? OWN : USER_BACKWARDS;
    user_thread users[2] = {{NULL, 0, 0}, {context_of(which, 3), 0, 200}};
    for (int i = 0; i < 10; i++) {
        user_thread_main(users, 1);
        test_run_lanes_on_threads(NULL, 2, user_thread_main, users);  // the second one's
    }
    assert_true(users[1].wrong == 0);
    ptowsp_context_destroy(users[1].context);
}

CONTEXT_TEST(context__takes_errors_of_code_that_builds_on_it) {
    char text[] = "emit: no %s here";
    assert_int_equal(ptowsp_context_fail(context, PTOWSP_SYSTEM_FAILED, 7, text),
                     PTOWSP_SYSTEM_FAILED);
    text[0] = 'X';  // it has been copied, and is no format
    test_error_is(context, PTOWSP_SYSTEM_FAILED, 7, "emit: no %s here");
    test_refused(context, ptowsp_context_fail(context, PTOWSP_STUCK, PTOWSP_NO_INDEX, NULL),
                 PTOWSP_STUCK, PTOWSP_NO_INDEX, "nothing can proceed");  // by the status
    // What is too long is cut; the last error again is the last one.
    char longer[5000];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    ptowsp_context_fail(context, PTOWSP_BUFFER_OVERFLOW, 1, longer);
    size_t length = strlen(ptowsp_context_error(context).text);
    assert_true(length > 400 && length < 1000);
    assert_int_equal(strspn(ptowsp_context_error(context).text, "a"), length);
}
