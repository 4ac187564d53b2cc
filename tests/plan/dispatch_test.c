// Dispatch: serial, SPMD and MPMD in all thread modes, and what PTOWSP_DEFINE_TIERS makes.
//
// Expected values: kernels note which of them ran which descriptor, on which lane, by plain writes
// to the descriptor's own record (so a descriptor run twice at once is a race to the thread
// sanitizer); which kernel that must be follows from the table that the test filled. Tier lists are
// written out.

#define _DEFAULT_SOURCE  // alarm, usleep

#include "lane_modes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

// -- kernels that note what they did --------------------------------------------------------------

#define WORK_COUNT_MAX 5000
#define KERNEL_COUNT   6

typedef struct note {
    uint32_t runs;
    uint32_t kernel;
    uint32_t lane;
} note;

typedef struct log_book {
    const ptowsp_work *work;
    uint32_t lane_count;
    bool in_order;  // each lane takes descriptors in order
    note notes[WORK_COUNT_MAX];
    uint64_t lane_next[PTOWSP_LANE_COUNT_MAX];  // plain: a lane runs one call at a time
    atomic_bool lane_busy[PTOWSP_LANE_COUNT_MAX];
    atomic_uint faults;
    atomic_uint total;
} log_book;

static void log_fault(log_book *book) {
    atomic_fetch_add_explicit(&book->faults, 1, memory_order_relaxed);
}

static void kernel_note(const ptowsp_work *work, uint32_t lane, void *user, uint32_t kernel) {
    log_book *book = (log_book *)user;
    uint32_t at = work->work_id;
    if (work != &book->work[at] || lane >= book->lane_count ||
        atomic_exchange_explicit(&book->lane_busy[lane], true, memory_order_relaxed)) {
        log_fault(book);
        return;
    }
    if (book->in_order && at < book->lane_next[lane]) {
        log_fault(book);
    }
    book->lane_next[lane] = (uint64_t)at + 1;
    book->notes[at].runs++;
    book->notes[at].kernel = kernel;
    book->notes[at].lane = lane;
    atomic_fetch_add_explicit(&book->total, 1, memory_order_relaxed);
    atomic_store_explicit(&book->lane_busy[lane], false, memory_order_relaxed);
}

#define DEFINE_KERNEL(number)                                                                      \
    static void kernel_##number(const ptowsp_work *work, uint32_t lane, void *user) {              \
        kernel_note(work, lane, user, number);                                                     \
    }
DEFINE_KERNEL(0)
DEFINE_KERNEL(1)
DEFINE_KERNEL(2)
DEFINE_KERNEL(3)
DEFINE_KERNEL(4)
DEFINE_KERNEL(5)
#undef DEFINE_KERNEL

static const ptowsp_work_fn kernels[KERNEL_COUNT] = {kernel_0, kernel_1, kernel_2,
                                                     kernel_3, kernel_4, kernel_5};

// Descriptors of these tiers, with ids from 0.
static void work_of_tiers(const uint8_t *tiers, uint32_t count, ptowsp_work *work) {
    for (uint32_t i = 0; i < count; i++) {
        work[i] = ptowsp_work_of(i, tiers[i], 0, 0, 0, 0, 0);
    }
}

// Descriptors with ids from 0 and random tiers below tier_count, in runs as a planner makes them.
static ptowsp_work *work_make(uint64_t *random, uint64_t work_count, uint32_t tier_count) {
    ptowsp_work *work = (ptowsp_work *)malloc(work_count ? work_count * sizeof *work : 1);
    assert_non_null(work);
    uint8_t tier = 0;
    for (uint64_t i = 0; i < work_count; i++) {
        if (i == 0 || test_random_in(random, 0, 3) == 0) {
            tier = (uint8_t)test_random_in(random, 0, (int64_t)tier_count - 1);
        }
        work[i] = ptowsp_work_of((uint32_t)i, tier, 0, 1, 2, 3, 4);
    }
    return work;
}

static log_book *log_open(const ptowsp_work *work, uint32_t lane_count) {
    static log_book book;
    memset(&book, 0, sizeof book);
    book.work = work;
    book.lane_count = lane_count;
    return &book;
}

static void log_expect_nothing(log_book *book) {
    assert_int_equal(atomic_load(&book->total), 0);
    assert_int_equal(atomic_load(&book->faults), 0);
}

// Checks that each descriptor was run once, by its tier's kernel, which tables repeat.
static void log_expect_each_once(const log_book *book, uint64_t work_count) {
    assert_int_equal(atomic_load(&book->faults), 0);
    assert_true(atomic_load(&book->total) == work_count);
    for (uint64_t i = 0; i < work_count; i++) {
        assert_int_equal(book->notes[i].runs, 1);
        assert_int_equal(book->notes[i].kernel, book->work[i].tier % KERNEL_COUNT);
    }
}

static const uint64_t work_counts[] = {0, 1, 2, 3, 7, 8, 9, 64, 100, 1000, WORK_COUNT_MAX};
#define WORK_CASES (COUNT_OF(work_counts))

// -- serial ---------------------------------------------------------------------------------------

static uint32_t order_next;

static void kernel_in_order(const ptowsp_work *work, uint32_t lane, void *user) {
    assert_ptr_equal(user, &order_next);
    assert_int_equal(lane, 0);
    assert_int_equal(work->work_id, order_next);
    order_next++;
}

SUITE_SECONDS(300)  // a deadlock ends here

TEST(serial__runs_in_order_on_the_calling_thread_as_lane_0) {
    uint64_t random = test_seed();
    const ptowsp_work_fn table[3] = {kernel_in_order, kernel_in_order, kernel_in_order};
    for (size_t c = 0; c < WORK_CASES; c++) {
        ptowsp_work *work = work_make(&random, work_counts[c], 3);
        uint64_t index = 77;
        order_next = 0;
        assert_ok(ptowsp_dispatch_serial(work, work_counts[c], table, 3, &order_next, &index));
        assert_int_equal(order_next, work_counts[c]);
        order_next = 0;
        assert_ok(ptowsp_dispatch_serial(work, work_counts[c], table, 3, &order_next, NULL));
        assert_int_equal(order_next, work_counts[c]);
        free(work);
    }
}

TEST(serial__each_descriptor_gets_its_tiers_kernel) {
    uint64_t random = test_seed();
    for (size_t c = 0; c < WORK_CASES; c++) {
        ptowsp_work *work = work_make(&random, work_counts[c], KERNEL_COUNT);
        log_book *book = log_open(work, 1);
        assert_ok(ptowsp_dispatch_serial(work, work_counts[c], kernels, KERNEL_COUNT, book, NULL));
        log_expect_each_once(book, work_counts[c]);
        free(work);
    }
}

TEST(serial__missing_kernels_name_the_first_descriptor_and_run_nothing) {
    const ptowsp_work_fn holed[4] = {kernel_0, NULL, kernel_2, NULL};
    static const struct {
        uint8_t tiers[6];
        uint32_t table_count;
        uint64_t index;
    } cases[] = {
        {{0, 0, 2, 1, 3, 0}, 4, 3},    // a hole
        {{0, 0, 2, 3, 1, 0}, 4, 3},    // another hole first
        {{0, 2, 0, 2, 0, 1}, 4, 5},    // the last descriptor
        {{1, 0, 0, 0, 0, 0}, 4, 0},    // the first
        {{0, 0, 2, 4, 0, 5}, 4, 3},    // at table_count
        {{0, 0, 255, 0, 0, 1}, 4, 2},  // far behind the table
        {{0, 0, 0, 0, 2, 0}, 1, 4},    // a shorter table
        {{0, 0, 0, 0, 0, 0}, 0, 0},    // no table
    };
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        ptowsp_work work[6];
        work_of_tiers(cases[c].tiers, 6, work);
        log_book *book = log_open(work, 1);
        uint64_t index = 77;
        assert_invalid(ptowsp_dispatch_serial(work, 6, holed, cases[c].table_count, book, &index));
        assert_true(index == cases[c].index);
        assert_invalid(ptowsp_dispatch_serial(work, 6, holed, cases[c].table_count, book, NULL));
        log_expect_nothing(book);
    }
}

TEST(serial__holes_that_no_descriptor_needs_do_not_matter) {
    const ptowsp_work_fn holed[4] = {NULL, kernel_1, NULL, kernel_3};
    ptowsp_work work[3] = {ptowsp_work_of(0, 3, 0, 0, 0, 0, 0), ptowsp_work_of(1, 1, 0, 0, 0, 0, 0),
                           ptowsp_work_of(2, 3, 0, 0, 0, 0, 0)};
    log_book *book = log_open(work, 1);
    assert_ok(ptowsp_dispatch_serial(work, 3, holed, 4, book, NULL));
    log_expect_each_once(book, 3);
}

TEST(serial__nothing_to_do_needs_nothing) {
    assert_ok(ptowsp_dispatch_serial(NULL, 0, NULL, 0, NULL, NULL));
    uint64_t index = 77;
    assert_ok(ptowsp_dispatch_serial(NULL, 0, kernels, KERNEL_COUNT, NULL, &index));
}

TEST(serial__null_work_or_table_is_refused) {
    ptowsp_work work[1] = {ptowsp_work_of(0, 0, 0, 0, 0, 0, 0)};
    log_book *book = log_open(work, 1);
    assert_invalid(ptowsp_dispatch_serial(NULL, 1, kernels, KERNEL_COUNT, book, NULL));
    assert_invalid(ptowsp_dispatch_serial(work, 1, NULL, 1, book, NULL));
    assert_invalid(ptowsp_dispatch_serial(work, 1, NULL, 0, book, NULL));
    log_expect_nothing(book);
}

TEST(serial__tables_may_have_all_256_tiers_and_more) {
    ptowsp_work_fn table[300];
    for (uint32_t i = 0; i < 300; i++) {
        table[i] = kernels[i % KERNEL_COUNT];
    }
    ptowsp_work work[256];
    for (uint32_t i = 0; i < 256; i++) {
        work[i] = ptowsp_work_of(i, (uint8_t)(255 - i), 0, 0, 0, 0, 0);
    }
    for (uint32_t table_count = 256; table_count <= 300; table_count += 44) {
        log_book *book = log_open(work, 1);
        assert_ok(ptowsp_dispatch_serial(work, 256, table, table_count, book, NULL));
        log_expect_each_once(book, 256);
    }
    log_book *book = log_open(work, 1);
    uint64_t index = 77;
    assert_invalid(ptowsp_dispatch_serial(work, 256, table, 255, book, &index));
    assert_true(index == 0);  // tier 255 comes first
    log_expect_nothing(book);
}

// -- SPMD -----------------------------------------------------------------------------------------

MODES_TEST(spmd__every_descriptor_runs_once_by_its_tiers_kernel) {
    uint64_t random = test_seed() + mode;
    for (size_t c = 0; c < WORK_CASES; c++) {
        ptowsp_work *work = work_make(&random, work_counts[c], KERNEL_COUNT);
        for (int round = 0; round < 20; round++) {
            log_book *book = log_open(work, modes[mode].lane_count);
            book->in_order = true;  // "lanes take descriptors in order"
            assert_ok(
                ptowsp_dispatch_spmd(context, work, work_counts[c], kernels, KERNEL_COUNT, book));
            log_expect_each_once(book, work_counts[c]);
        }
        free(work);
    }
    test_error_is(context, PTOWSP_OK, PTOWSP_NO_INDEX, "");
}

static void kernel_nothing(const ptowsp_work *work, uint32_t lane, void *user) {
    (void)work, (void)lane, (void)user;
}

#define HAS_NO_KERNEL(index, tier, call)                                                           \
    test_refused(context, call, PTOWSP_INVALID_PARAMS, index,                                      \
                 "dispatch: work at " #index " has tier " #tier                                    \
                 ", for which no table has a kernel")

MODES_TEST(spmd__missing_kernels_are_errors_with_index_and_text) {
    const ptowsp_work_fn holed[4] = {kernel_0, NULL, kernel_2, kernel_3};
    const uint8_t tiers[5] = {0, 2, 1, 9, 1};
    ptowsp_work work[5];
    work_of_tiers(tiers, 5, work);
    log_book *book = log_open(work, modes[mode].lane_count);
    HAS_NO_KERNEL(2, 1, ptowsp_dispatch_spmd(context, work, 5, holed, 4, book));
    HAS_NO_KERNEL(0, 9, ptowsp_dispatch_spmd(context, work + 3, 1, holed, 4, book));
    HAS_NO_KERNEL(1, 2, ptowsp_dispatch_spmd(context, work, 5, holed, 2, book));
    HAS_NO_KERNEL(0, 0, ptowsp_dispatch_spmd(context, work, 5, holed, 0, book));
    assert_invalid(ptowsp_dispatch_spmd(context, work, 5, NULL, 0, book));
    log_expect_nothing(book);
    // What comes before the hole is fine by itself, and the context works on.
    assert_ok(ptowsp_dispatch_spmd(context, work, 2, holed, 4, book));
    log_expect_each_once(book, 2);
}

TEST(spmd__the_missing_kernel_is_the_first_in_descriptor_order) {
    uint64_t random = test_seed();
    ptowsp_context *context = context_of_mode(0);
    for (int round = 0; TEST_ROUNDS(round, 300); round++) {
        uint64_t work_count = (uint64_t)test_random_in(&random, 1, 200);
        ptowsp_work *work = work_make(&random, work_count, 12);
        ptowsp_work_fn table[12];
        for (uint32_t i = 0; i < 12; i++) {
            table[i] = test_random_in(&random, 0, 9) ? kernels[i % KERNEL_COUNT] : NULL;
        }
        uint64_t expected = 0;
        while (expected < work_count && table[work[expected].tier]) {
            expected++;
        }
        log_book *book = log_open(work, 1);
        ptowsp_status status = ptowsp_dispatch_spmd(context, work, work_count, table, 12, book);
        if (expected == work_count) {
            assert_ok(status);
            log_expect_each_once(book, work_count);
        } else {
            assert_invalid(status);
            assert_true(ptowsp_context_error(context).index == expected);
            log_expect_nothing(book);
        }
        uint64_t index = PTOWSP_NO_INDEX;
        status = ptowsp_dispatch_serial(work, work_count, table, 12, log_open(work, 1), &index);
        assert_int_equal(status, expected == work_count ? PTOWSP_OK : PTOWSP_INVALID_PARAMS);
        assert_true(status == PTOWSP_OK || index == expected);
        free(work);
    }
    ptowsp_context_destroy(context);
}

TEST(spmd__null_work_or_table_is_refused) {
    ptowsp_work work[1] = {ptowsp_work_of(0, 0, 0, 0, 0, 0, 0)};
    ptowsp_context *context = context_of_mode(0);
    log_book *book = log_open(work, 1);
    test_refused(context, ptowsp_dispatch_spmd(context, NULL, 3, kernels, KERNEL_COUNT, book),
                 PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                 "dispatch: work is NULL with work_count 3");
    assert_invalid(ptowsp_dispatch_spmd(context, work, 1, NULL, 4, book));
    assert_invalid(ptowsp_context_error(context).status);
    assert_non_null(strstr(ptowsp_context_error(context).text, "is NULL with table_count 4"));
    log_expect_nothing(book);
    ptowsp_context_destroy(context);
}

MODES_TEST(spmd__nothing_to_do_needs_nothing) {
    assert_ok(ptowsp_dispatch_spmd(context, NULL, 0, NULL, 0, NULL));
    test_refused(context, ptowsp_dispatch_spmd(context, NULL, 0, kernels, KERNEL_COUNT, NULL),
                 PTOWSP_OK, PTOWSP_NO_INDEX, "");
}

// -- MPMD -----------------------------------------------------------------------------------------

// Runs work over groups and checks who ran what and where. owner_of_tier[t] is the group of tier t.
static void check_mpmd(ptowsp_context *context, const ptowsp_work *work, uint64_t work_count,
                       const ptowsp_lane_group *groups, uint32_t group_count,
                       const uint32_t *owner_of_tier) {
    uint32_t first_lane[PTOWSP_LANE_GROUP_MAX + 1] = {0};
    for (uint32_t g = 0; g < group_count; g++) {
        first_lane[g + 1] = first_lane[g] + groups[g].lane_count;
    }
    log_book *book = log_open(work, first_lane[group_count]);
    assert_ok(ptowsp_dispatch_mpmd(context, work, work_count, groups, group_count, book));
    log_expect_each_once(book, work_count);
    for (uint64_t i = 0; i < work_count; i++) {
        uint32_t owner = owner_of_tier[work[i].tier];
        assert_true(first_lane[owner] <= book->notes[i].lane);
        assert_true(book->notes[i].lane < first_lane[owner + 1]);
    }
}

MODES_TEST(mpmd__each_group_runs_its_own_tiers_on_its_own_lanes) {
    uint64_t random = test_seed() + mode;
    // Cube cores have tiers 0 and 3, vector cores 1 and 2; tier 4 is with the third group.
    const ptowsp_work_fn cube[4] = {kernel_0, NULL, NULL, kernel_3};
    const ptowsp_work_fn vector[3] = {NULL, kernel_1, kernel_2};
    const ptowsp_work_fn other[5] = {NULL, NULL, NULL, NULL, kernel_4};
    const uint32_t owner_of_tier[5] = {0, 1, 1, 0, 2};
    const uint32_t lanes[][3] = {{1, 1, 1}, {2, 1, 4}, {1, 7, 2}, {20, 40, 3}, {1000, 20, 4}};
    for (size_t k = 0; k < COUNT_OF(lanes); k++) {
        const ptowsp_lane_group groups[3] = {
            {lanes[k][0], cube, 4}, {lanes[k][1], vector, 3}, {lanes[k][2], other, 5}};
        for (size_t c = 0; c < WORK_CASES; c++) {
            ptowsp_work *work = work_make(&random, work_counts[c], 5);
            check_mpmd(context, work, work_counts[c], groups, 3, owner_of_tier);
            free(work);
        }
    }
    test_error_is(context, PTOWSP_OK, PTOWSP_NO_INDEX, "");
}

MODES_TEST(mpmd__the_first_group_that_has_the_tier_wins) {
    uint64_t random = test_seed() + mode;
    const ptowsp_work_fn first[3] = {NULL, kernel_1, NULL};
    const ptowsp_work_fn second[4] = {kernel_0, kernel_5, NULL, kernel_3};
    const ptowsp_work_fn third[4] = {kernel_4, kernel_4, kernel_2, kernel_4};
    const uint32_t owner_of_tier[4] = {1, 0, 2, 1};
    const ptowsp_lane_group groups[3] = {{2, first, 3}, {3, second, 4}, {1, third, 4}};
    ptowsp_work *work = work_make(&random, 2000, 4);
    check_mpmd(context, work, 2000, groups, 3, owner_of_tier);
    free(work);
}

MODES_TEST(mpmd__one_group_is_spmd_with_lanes_of_its_own_number) {
    uint64_t random = test_seed() + mode;
    const uint32_t owner_of_tier[KERNEL_COUNT] = {0};
    ptowsp_work *work = work_make(&random, 1000, KERNEL_COUNT);
    for (uint32_t lane_count = 1; lane_count <= 1024; lane_count *= 4) {
        const ptowsp_lane_group group = {lane_count, kernels, KERNEL_COUNT};
        check_mpmd(context, work, 1000, &group, 1, owner_of_tier);
    }
    free(work);
}

MODES_TEST(mpmd__as_many_groups_and_lanes_as_the_limits_allow) {
    uint64_t random = test_seed() + mode;
    static ptowsp_work_fn tables[256][256];
    ptowsp_lane_group groups[256];
    uint32_t owner_of_tier[255];
    for (uint32_t g = 0; g < 256; g++) {
        for (uint32_t tier = 0; tier < 256; tier++) {
            tables[g][tier] = tier == g ? kernels[g % KERNEL_COUNT] : NULL;
        }
        groups[g] = (ptowsp_lane_group){g < 255 && g >= 251 ? 5 : 4, tables[g], 256};
        owner_of_tier[g < 255 ? g : 0] = g % 255;
    }
    assert_int_equal(PTOWSP_LANE_GROUP_MAX, 255);
    volatile uint32_t too_many = 256;  // volatile: else gcc -O3 warns of a loop that is not reached
    ptowsp_work *work = work_make(&random, 2000, 255);
    // 251 * 4 + 4 * 5 = 1024 lanes
    check_mpmd(context, work, 2000, groups, 255, owner_of_tier);
    log_book *book = log_open(work, 1024);
    test_refused(context, ptowsp_dispatch_mpmd(context, work, 2000, groups, too_many, book),
                 PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                 "dispatch: group_count 256 is not in 1 to 255");
    log_expect_nothing(book);
    free(work);
}

#define WRONG(work, group_count, index, text)                                                      \
    test_refused(context, ptowsp_dispatch_mpmd(context, work, 1, groups, group_count, book),       \
                 PTOWSP_INVALID_PARAMS, index, text)

TEST(mpmd__wrong_groups_are_errors_and_run_nothing) {
    ptowsp_work work[1] = {ptowsp_work_of(0, 0, 0, 0, 0, 0, 0)};
    ptowsp_context *context = context_of_mode(0);
    log_book *book = log_open(work, 1024);
    const ptowsp_lane_group fine = {2, kernels, KERNEL_COUNT};
    ptowsp_lane_group groups[3] = {fine, fine, fine};
    // no groups
    WRONG(work, 0, PTOWSP_NO_INDEX, "dispatch: group_count 0 is not in 1 to 255");
    assert_invalid(ptowsp_dispatch_mpmd(context, work, 1, NULL, 2, book));
    assert_non_null(strstr(ptowsp_context_error(context).text, "groups is NULL"));
    assert_invalid(ptowsp_dispatch_mpmd(context, work, 1, NULL, 0, book));
    // a group without lanes
    groups[1].lane_count = 0;
    WRONG(work, 3, 1, "dispatch: group 1 has 0 lanes; at least 1 each and at most 1024 in all");
    // too many lanes: in one group, in all, and so many that their sum wraps
    groups[1].lane_count = 1025;
    WRONG(work, 3, 1, "dispatch: group 1 has 1025 lanes; at least 1 each and at most 1024 in all");
    groups[1].lane_count = 1021;
    assert_invalid(ptowsp_dispatch_mpmd(context, work, 1, groups, 3, book));
    assert_true(ptowsp_context_error(context).index == 2);
    groups[1].lane_count = UINT32_MAX - 1;
    assert_invalid(ptowsp_dispatch_mpmd(context, work, 1, groups, 3, book));
    assert_true(ptowsp_context_error(context).index == 1);
    // a table that is not there
    groups[1] = fine;
    groups[2].table = NULL;
    WRONG(work, 3, 2, "dispatch: the table of group 2 is NULL with table_count 6");
    // work that is not there
    groups[2] = fine;
    WRONG(NULL, 3, PTOWSP_NO_INDEX, "dispatch: work is NULL with work_count 1");
    log_expect_nothing(book);
    // groups are checked even when there is nothing to run
    assert_invalid(ptowsp_dispatch_mpmd(context, NULL, 0, groups, 0, book));
    // lanes at the limit
    groups[1].lane_count = 1020;
    assert_ok(ptowsp_dispatch_mpmd(context, work, 1, groups, 3, book));
    assert_int_equal(atomic_load(&book->total), 1);
    ptowsp_context_destroy(context);
}

MODES_TEST(mpmd__missing_kernels_are_errors_with_index_and_text) {
    const ptowsp_work_fn even[3] = {kernel_0, NULL, kernel_2},
                         odd[4] = {NULL, kernel_1, NULL, NULL};
    const ptowsp_lane_group groups[3] = {{2, even, 3}, {3, odd, 4}, {1, NULL, 0}};
    const uint8_t tiers[6] = {2, 1, 0, 3, 200, 3};
    ptowsp_work work[6];
    work_of_tiers(tiers, 6, work);
    log_book *book = log_open(work, 6);
    HAS_NO_KERNEL(3, 3, ptowsp_dispatch_mpmd(context, work, 6, groups, 3, book));
    HAS_NO_KERNEL(0, 200, ptowsp_dispatch_mpmd(context, work + 4, 2, groups, 3, book));
    assert_invalid(ptowsp_dispatch_mpmd(context, work, 6, groups + 2, 1, book));
    assert_true(ptowsp_context_error(context).index == 0);
    log_expect_nothing(book);
    const uint32_t owner_of_tier[3] = {0, 1, 0};
    check_mpmd(context, work, 3, groups, 3, owner_of_tier);
}

MODES_TEST(mpmd__nothing_to_do_runs_nothing) {
    const ptowsp_lane_group groups[2] = {{2, kernels, KERNEL_COUNT}, {3, NULL, 0}};
    test_refused(context, ptowsp_dispatch_mpmd(context, NULL, 0, groups, 2, NULL), PTOWSP_OK,
                 PTOWSP_NO_INDEX, "");
}

// -- nesting and executors ------------------------------------------------------------------------

typedef struct nested {
    ptowsp_context *context;
    const ptowsp_work *work;
    atomic_uint busy;
    atomic_uint wrong;
} nested;

static void range_nothing(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)user, (void)begin, (void)end, (void)lane;
}

static void nested_dispatch(nested *job) {
    static const ptowsp_work_fn nothing[1] = {kernel_nothing};
    const ptowsp_lane_group group = {2, nothing, 1};
    const ptowsp_status statuses[] = {
        ptowsp_dispatch_spmd(job->context, job->work, 1, nothing, 1, NULL),
        ptowsp_dispatch_spmd(job->context, job->work, 1, nothing, 0, NULL),
        ptowsp_dispatch_spmd(job->context, NULL, 1, nothing, 1, NULL),
        ptowsp_dispatch_mpmd(job->context, job->work, 1, &group, 1, NULL),
        ptowsp_dispatch_mpmd(job->context, job->work, 1, &group, 0, NULL),
        ptowsp_parallel_for(job->context, 5, 0, range_nothing, NULL),
    };
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        atomic_fetch_add(statuses[i] == PTOWSP_BUSY ? &job->busy : &job->wrong, 1);
    }
    // Without a context nothing is in the way.
    if (ptowsp_dispatch_serial(job->work, 1, nothing, 1, NULL, NULL) != PTOWSP_OK) {
        atomic_fetch_add(&job->wrong, 1);
    }
}

static void kernel_nested(const ptowsp_work *work, uint32_t lane, void *user) {
    (void)work, (void)lane;
    nested_dispatch((nested *)user);
}

static void range_nested(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)lane;
    for (uint64_t i = begin; i < end; i++) {
        nested_dispatch((nested *)user);
    }
}

TEST(dispatch__inside_a_job_is_busy) {
    const ptowsp_work_fn table[1] = {kernel_nested};
    ptowsp_work work[10];
    for (uint32_t i = 0; i < 10; i++) {
        work[i] = ptowsp_work_of(i, 0, 0, 0, 0, 0, 0);
    }
    const ptowsp_lane_group groups[2] = {{2, table, 1}, {1, table, 1}};
    for (size_t mode = 0; mode < MODE_COUNT; mode++) {
        nested job = {.context = context_of_mode(mode), .work = work};
        assert_ok(ptowsp_dispatch_spmd(job.context, work, 10, table, 1, &job));
        assert_ok(ptowsp_dispatch_mpmd(job.context, work, 10, groups, 2, &job));
        assert_ok(ptowsp_parallel_for(job.context, 10, 0, range_nested, &job));
        assert_int_equal(atomic_load(&job.busy), 180);  // 3 jobs of 10 kernels, 6 calls in each
        assert_int_equal(atomic_load(&job.wrong), 0);
        test_was_busy(job.context);
        ptowsp_context_destroy(job.context);
    }
}

TEST(dispatch__a_lane_left_out_is_an_error_though_the_work_is_done) {
    uint64_t random = test_seed();
    ptowsp_context *context = context_make(PTOWSP_THREADS_USER, 3, run_lanes_but_one);
    ptowsp_work *work = work_make(&random, 500, KERNEL_COUNT);
    log_book *book = log_open(work, 3);
    assert_int_equal(ptowsp_dispatch_spmd(context, work, 500, kernels, KERNEL_COUNT, book),
                     PTOWSP_SYSTEM_FAILED);
    log_expect_each_once(book, 500);
    assert_int_equal(ptowsp_context_error(context).status, PTOWSP_SYSTEM_FAILED);
    assert_true(ptowsp_context_error(context).index == PTOWSP_NO_INDEX);
    assert_non_null(strstr(ptowsp_context_error(context).text, "3 lanes"));
    const ptowsp_lane_group groups[2] = {{7, kernels, 3}, {2, kernels, KERNEL_COUNT}};
    book = log_open(work, 9);
    assert_int_equal(ptowsp_dispatch_mpmd(context, work, 500, groups, 2, book),
                     PTOWSP_SYSTEM_FAILED);
    log_expect_each_once(book, 500);
    free(work);
    ptowsp_context_destroy(context);
}

// -- tiers from a list ----------------------------------------------------------------------------

static uint32_t attended[16];

PTOWSP_INLINE void attend(const ptowsp_work *work, uint32_t lane, void *user, int tier) {
    (void)work;
    assert_int_equal(lane, 9);
    assert_ptr_equal(user, attended);
    attended[tier]++;
}

PTOWSP_DEFINE_TIERS(attend, PTOWSP_DECODE_TIERS, attend)
PTOWSP_STATIC_ASSERT(attend_tier_count == 4, "a constant");

// A name that is not the body's, one tier, and the limit of sixteen.
#define ONE_TIER(TIER) TIER(0, 5, 7)
PTOWSP_DEFINE_TIERS(lonely, ONE_TIER, attend)

#define SIXTEEN_TIERS(TIER)                                                                        \
    TIER(0, 0, 9)                                                                                  \
    TIER(1, 10, 19)                                                                                \
    TIER(2, 20, 29)                                                                                \
    TIER(3, 30, 39)                                                                                \
    TIER(4, 40, 49)                                                                                \
    TIER(5, 50, 59)                                                                                \
    TIER(6, 60, 69)                                                                                \
    TIER(7, 70, 79)                                                                                \
    TIER(8, 80, 89)                                                                                \
    TIER(9, 90, 99)                                                                                \
    TIER(10, 100, 109)                                                                             \
    TIER(11, 110, 119)                                                                             \
    TIER(12, 120, 129)                                                                             \
    TIER(13, 130, 139)                                                                             \
    TIER(14, 140, 149)                                                                             \
    TIER(15, 150, 0x7fffffff)
PTOWSP_DEFINE_TIERS(many, SIXTEEN_TIERS, attend)

TEST(tiers__decode_list_makes_tiers_count_table_and_dispatch) {
    static const ptowsp_tier expected[4] = {
        {0, 1, 1024}, {1, 1025, 4096}, {2, 4097, 16384}, {3, 16385, 131072}};
    assert_int_equal(COUNT_OF(attend_tiers), 4);
    assert_int_equal(COUNT_OF(attend_table), 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(attend_tiers[i].id, expected[i].id);
        assert_int_equal(attend_tiers[i].length_min, expected[i].length_min);
        assert_int_equal(attend_tiers[i].length_max, expected[i].length_max);
    }
    assert_true(attend_table[0] == attend_tier_0 && attend_table[1] == attend_tier_1);
    assert_true(attend_table[2] == attend_tier_2 && attend_table[3] == attend_tier_3);
}

TEST(tiers__table_and_dispatch_call_the_body_with_the_tier) {
    memset(attended, 0, sizeof attended);
    for (uint32_t tier = 0; tier < 4; tier++) {
        ptowsp_work work = ptowsp_work_of(0, (uint8_t)tier, 0, 0, 0, 0, 0);
        attend_table[tier](&work, 9, attended);
        assert_int_equal(attended[tier], 1);
        attend_dispatch(&work, 9, attended);
        assert_int_equal(attended[tier], 2);
    }
    for (uint32_t tier = 4; tier < 256; tier++) {  // other tiers do nothing
        ptowsp_work work = ptowsp_work_of(0, (uint8_t)tier, 0, 0, 0, 0, 0);
        attend_dispatch(&work, 9, attended);
    }
    for (uint32_t tier = 0; tier < 16; tier++) {
        assert_int_equal(attended[tier], tier < 4 ? 2 : 0);
    }
}

TEST(tiers__one_and_sixteen_make_as_many_kernels) {
    assert_int_equal(lonely_tier_count, 1);
    assert_int_equal(lonely_tiers[0].length_min, 5);
    assert_int_equal(lonely_tiers[0].length_max, 7);
    assert_true(lonely_table[0] == lonely_tier_0);
    assert_int_equal(many_tier_count, 16);
    assert_int_equal(COUNT_OF(many_table), 16);
    memset(attended, 0, sizeof attended);
    for (uint32_t tier = 0; tier < 16; tier++) {
        assert_int_equal(many_tiers[tier].id, tier);
        assert_int_equal(many_tiers[tier].length_min, 10 * tier);
        assert_int_equal(many_tiers[tier].length_max, tier < 15 ? 10 * tier + 9 : INT32_MAX);
        ptowsp_work work = ptowsp_work_of(0, (uint8_t)tier, 0, 0, 0, 0, 0);
        many_table[tier](&work, 9, attended);
        many_dispatch(&work, 9, attended);
        assert_int_equal(attended[tier], 2);
    }
    ptowsp_work work = ptowsp_work_of(0, 0, 0, 0, 0, 0, 0);
    lonely_dispatch(&work, 9, attended);
    assert_int_equal(attended[0], 3);
}

PTOWSP_INLINE void note_tier(const ptowsp_work *work, uint32_t lane, void *user, int tier) {
    kernel_note(work, lane, user, (uint32_t)tier);
}

PTOWSP_DEFINE_TIERS(noting, PTOWSP_DECODE_TIERS, note_tier)

TEST(tiers__the_table_serves_spmd_and_mpmd) {
    uint64_t random = test_seed();
    ptowsp_work *work = work_make(&random, 1000, 4);
    for (size_t mode = 0; mode < MODE_COUNT; mode++) {
        ptowsp_context *context = context_of_mode(mode);
        log_book *book = log_open(work, modes[mode].lane_count);
        assert_ok(ptowsp_dispatch_spmd(context, work, 1000, noting_table, noting_tier_count, book));
        log_expect_each_once(book, 1000);
        const ptowsp_lane_group groups[2] = {{3, noting_table, 2},
                                             {2, noting_table, noting_tier_count}};
        const uint32_t owner_of_tier[4] = {0, 0, 1, 1};
        check_mpmd(context, work, 1000, groups, 2, owner_of_tier);
        ptowsp_context_destroy(context);
    }
    assert_int_equal(noting_tiers[3].length_max, 131072);
    log_book *book = log_open(work, 1);
    for (uint32_t i = 0; i < 1000; i++) {
        noting_dispatch(&work[i], 0, book);
    }
    log_expect_each_once(book, 1000);
    free(work);
}

// -- allocation and stress ------------------------------------------------------------------------

TEST(dispatch__allocates_nothing) {
    uint64_t random = test_seed();
    test_memory memory = {0, 0, 0, 0};
    ptowsp_context_desc desc = {
        test_resize, &memory, PTOWSP_THREADS_USER, 4, test_run_lanes_backwards, NULL};
    ptowsp_context *context = test_context(&desc);
    size_t allocations = memory.allocations;
    ptowsp_work *work = work_make(&random, 1000, KERNEL_COUNT);
    const ptowsp_lane_group groups[2] = {{7, kernels, 3}, {2, kernels, KERNEL_COUNT}};
    assert_ok(ptowsp_dispatch_spmd(context, work, 1000, kernels, KERNEL_COUNT, log_open(work, 4)));
    assert_ok(ptowsp_dispatch_mpmd(context, work, 1000, groups, 2, log_open(work, 9)));
    assert_int_equal(memory.allocations, allocations);
    free(work);
    ptowsp_context_destroy(context);
    assert_int_equal(memory.live_blocks, 0);
}

static void kernel_slow(const ptowsp_work *work, uint32_t lane, void *user) {
    kernel_note(work, lane, user, 0);
    if (work->work_id % 7 == 0) {
        usleep(work->work_id % 60);
    }
}

TEST(dispatch__thousands_of_uneven_steps_run_each_unit_once) {
    uint64_t random = test_seed();
    const ptowsp_work_fn slow[1] = {kernel_slow};
    const uint32_t owner_of_tier[1] = {1};
    const ptowsp_lane_group groups[2] = {{2, NULL, 0}, {3, slow, 1}};
    ptowsp_work *work = work_make(&random, 40, 1);
    for (size_t mode = 0; mode < MODE_COUNT; mode++) {
        ptowsp_context *context = context_of_mode(mode);
        for (uint64_t step = 0; step < 150; step++) {
            uint64_t work_count = step % 41;
            log_book *book = log_open(work, modes[mode].lane_count);
            assert_ok(ptowsp_dispatch_spmd(context, work, work_count, slow, 1, book));
            log_expect_each_once(book, work_count);
            check_mpmd(context, work, work_count / 4, groups, 2, owner_of_tier);
        }
        ptowsp_context_destroy(context);
    }
    free(work);
}
