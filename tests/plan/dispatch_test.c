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

// Kernels as users make them, of a list of tiers.
PTOWSP_INLINE void note_tier(const ptowsp_work *work, uint32_t lane, void *user, int tier) {
    kernel_note(work, lane, user, (uint32_t)tier);
}

#define SIX_TIERS(TIER)                                                                            \
    TIER(0, 1, 1) TIER(1, 2, 2) TIER(2, 3, 3) TIER(3, 4, 4) TIER(4, 5, 5) TIER(5, 6, 6)
PTOWSP_DEFINE_TIERS(kernel, SIX_TIERS, note_tier)

// Descriptors of these tiers, with ids from 0.
static void work_of_tiers(const uint8_t *tiers, uint32_t count, ptowsp_work *work) {
    for (uint32_t i = 0; i < count; i++) {
        work[i] = ptowsp_work_of(i, tiers[i], 0, 0, 0, 0, 0);
    }
}

// Descriptors with ids from 0 and random tiers below tier_count, in runs as a planner makes them.
static ptowsp_work *work_make(uint64_t *random, uint64_t work_count, uint32_t tier_count) {
    ptowsp_work *work = (ptowsp_work *)test_alloc(work_count, sizeof *work);
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

// -- one table, in all ways -----------------------------------------------------------------------

// As lane 0 of the calling thread; on the lanes of the context; on those of a group, behind one without
// kernels.
typedef enum way { SERIAL, SPMD, MPMD, WAYS } way;

typedef struct kernels {
    const ptowsp_work_fn *table;
    uint32_t count;
} kernels;

static ptowsp_status dispatch(way how, ptowsp_context *context, size_t mode,
                              const ptowsp_work *work, uint64_t work_count, kernels of,
                              log_book *book, uint64_t *out_index) {
    const ptowsp_lane_group groups[2] = {{2, NULL, 0},
                                         {modes[mode].lane_count, of.table, of.count}};
    const ptowsp_status status =
        how == SERIAL
            ? ptowsp_dispatch_serial(work, work_count, of.table, of.count, book, out_index)
        : how == SPMD ? ptowsp_dispatch_spmd(context, work, work_count, of.table, of.count, book)
                      : ptowsp_dispatch_mpmd(context, work, work_count, groups, 2, book);
    if (how != SERIAL && out_index) {
        *out_index = ptowsp_context_error(context).index;
    }
    return status;
}

// What a way that runs has lanes for: "lanes take descriptors in order".
static log_book *log_of(way how, size_t mode, const ptowsp_work *work) {
    const uint32_t lanes = modes[mode].lane_count;
    log_book *book = log_open(work, how == SERIAL ? 1 : how == SPMD ? lanes : 2 + lanes);
    book->in_order = how != MPMD;
    return book;
}

// Runs each descriptor once.
static void runs(way how, ptowsp_context *context, size_t mode, const ptowsp_work *work,
                 uint64_t work_count, kernels of) {
    log_book *book = log_of(how, mode, work);
    const ptowsp_status status = dispatch(how, context, mode, work, work_count, of, book, NULL);
    lanes_have_run(context, how == SERIAL || work_count == 0 ? 0 : mode, status);
    log_expect_each_once(book, work_count);
}

SUITE_SECONDS(300)  // a deadlock ends here

MODES_TEST(dispatch__every_descriptor_runs_once_by_its_tiers_kernel) {
    uint64_t random = test_seed() + mode;
    for (size_t c = 0; c < WORK_CASES * WAYS; c++) {
        const uint64_t work_count = work_counts[c / WAYS];
        const way how = (way)(c % WAYS);
        ptowsp_work *work = work_make(&random, work_count, KERNEL_COUNT);
        for (int round = 0; round < 20; round++) {
            runs(how, context, mode, work, work_count, (kernels){kernel_table, KERNEL_COUNT});
        }
    }
    no_error(context, mode);
}

// Tables with holes, some of them shorter than tiers go, beside a look at one descriptor after the other.
MODES_TEST(dispatch__missing_kernels_name_the_first_descriptor_and_run_nothing) {
    uint64_t random = test_seed() + mode;
    for (int round = 0; TEST_ROUNDS(round, 300); round++) {
        const way how = (way)(round % WAYS);
        const uint64_t work_count = (uint64_t)test_random_in(&random, 1, round % 2 ? 200 : 6);
        const ptowsp_work *work = work_make(&random, work_count, round % 10 ? 12 : 256);
        ptowsp_work_fn table[12];
        const kernels of = {table, round % 4 ? 12 : test_random_u32(&random, 0, 12)};
        for (uint32_t i = 0; i < 12; i++) {
            table[i] = test_random_in(&random, 0, 9) == 0 ? NULL : kernel_table[i % KERNEL_COUNT];
        }
        uint64_t expected = 0, index = 77;
        while (expected < work_count && work[expected].tier < of.count &&
               table[work[expected].tier]) {
            expected++;
        }
        if (expected < work_count) {
            char text[96];
            log_book *book = log_of(how, mode, work);
            assert_invalid(dispatch(how, context, mode, work, work_count, of, book, &index));
            assert_true(index == expected);
            assert_invalid(dispatch(how, context, mode, work, work_count, of, book, NULL));
            snprintf(text, sizeof text,
                     "dispatch: work at %u has tier %u, for which no table has a kernel",
                     (unsigned)expected, (unsigned)work[expected].tier);
            if (how != SERIAL) {
                test_error_is(context, PTOWSP_INVALID_PARAMS, expected, text);
            }
            log_expect_nothing(book);
        }
        // What comes before the hole is fine by itself, and the context works on.
        runs(how, context, mode, work, expected, of);
    }
}

MODES_TEST(dispatch__null_work_or_table_is_refused_unless_there_is_nothing_to_do) {
    ptowsp_work work[1] = {ptowsp_work_of(0, 0, 0, 0, 0, 0, 0)};
    const kernels all = {kernel_table, KERNEL_COUNT}, none = {NULL, 0}, missing = {NULL, 4};
    for (int i = 0; i < WAYS; i++) {
        const way how = (way)i;
        assert_ok(dispatch(how, context, mode, NULL, 0, none, NULL, NULL));
        assert_ok(dispatch(how, context, mode, NULL, 0, all, NULL, NULL));
    }
    test_error_is(context, PTOWSP_OK, PTOWSP_NO_INDEX, "");
    for (int i = 0; i < WAYS; i++) {
        const way how = (way)i;
        log_book *book = log_of(how, mode, work);
        uint64_t index = 77;
        assert_invalid(dispatch(how, context, mode, work, 1, none, book, NULL));
        assert_invalid(dispatch(how, context, mode, work, 1, missing, book, NULL));
        if (how == SPMD) {
            test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                          "dispatch: table is NULL with table_count 4");
        }
        assert_invalid(dispatch(how, context, mode, NULL, 3, all, book, &index));
        assert_true(index == PTOWSP_NO_INDEX);
        if (how != SERIAL) {
            test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                          "dispatch: work is NULL with work_count 3");
        }
        log_expect_nothing(book);
    }
}

MODES_TEST(dispatch__tables_may_have_all_256_tiers_and_more_and_holes) {
    ptowsp_work_fn all[300];
    ptowsp_work work[256], few[3];
    const ptowsp_work_fn holed[4] = {NULL, kernel_tier_1, NULL, kernel_tier_3};
    for (uint32_t i = 0; i < 300; i++) {
        all[i] = kernel_table[i % KERNEL_COUNT];
    }
    for (uint32_t i = 0; i < 256; i++) {
        work[i] = ptowsp_work_of(i, (uint8_t)(255 - i), 0, 0, 0, 0, 0);
    }
    work_of_tiers((const uint8_t[]){3, 1, 3}, 3, few);
    for (int i = 0; i < WAYS; i++) {
        const way how = (way)i;
        for (uint32_t count = 256; count <= 300; count += 44) {
            runs(how, context, mode, work, 256, (kernels){all, count});
        }
        log_book *book = log_of(how, mode, work);
        uint64_t index = 77;
        assert_invalid(dispatch(how, context, mode, work, 256, (kernels){all, 255}, book, &index));
        assert_true(index == 0);  // tier 255 comes first
        log_expect_nothing(book);
        runs(how, context, mode, few, 3, (kernels){holed, 4});  // holes that nobody needs
    }
}

static void kernel_nothing(const ptowsp_work *work, uint32_t lane, void *user) {
    (void)work, (void)lane, (void)user;
}

#define HAS_NO_KERNEL(index, tier, call)                                                           \
    test_refused(context, call, PTOWSP_INVALID_PARAMS, index,                                      \
                 "dispatch: work at " #index " has tier " #tier                                    \
                 ", for which no table has a kernel")

// -- MPMD -----------------------------------------------------------------------------------------

// Runs work over groups and checks who ran what and where. owner_of_tier[t] is the group of tier t.
static void check_mpmd(ptowsp_context *context, size_t mode, const ptowsp_work *work,
                       uint64_t work_count, const ptowsp_lane_group *groups, uint32_t group_count,
                       const uint32_t *owner_of_tier) {
    uint32_t first_lane[PTOWSP_LANE_GROUP_MAX + 1] = {0};
    for (uint32_t g = 0; g < group_count; g++) {
        first_lane[g + 1] = first_lane[g] + groups[g].lane_count;
    }
    log_book *book = log_open(work, first_lane[group_count]);
    lanes_have_run(context, work_count == 0 ? 0 : mode,
                   ptowsp_dispatch_mpmd(context, work, work_count, groups, group_count, book));
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
    const ptowsp_work_fn cube[4] = {kernel_tier_0, NULL, NULL, kernel_tier_3};
    const ptowsp_work_fn vector[3] = {NULL, kernel_tier_1, kernel_tier_2};
    const ptowsp_work_fn other[5] = {NULL, NULL, NULL, NULL, kernel_tier_4};
    const uint32_t owner_of_tier[5] = {0, 1, 1, 0, 2};
    const uint32_t lanes[][3] = {{1, 1, 1}, {2, 1, 4}, {1, 7, 2}, {20, 40, 3}, {1000, 20, 4}};
    for (size_t k = 0; k < COUNT_OF(lanes); k++) {
        const ptowsp_lane_group groups[3] = {
            {lanes[k][0], cube, 4}, {lanes[k][1], vector, 3}, {lanes[k][2], other, 5}};
        for (size_t c = 0; c < WORK_CASES; c++) {
            ptowsp_work *work = work_make(&random, work_counts[c], 5);
            check_mpmd(context, mode, work, work_counts[c], groups, 3, owner_of_tier);
        }
    }
    no_error(context, mode);
}

MODES_TEST(mpmd__the_first_group_that_has_the_tier_wins) {
    uint64_t random = test_seed() + mode;
    const ptowsp_work_fn first[3] = {NULL, kernel_tier_1, NULL};
    const ptowsp_work_fn second[4] = {kernel_tier_0, kernel_tier_5, NULL, kernel_tier_3};
    const ptowsp_work_fn third[4] = {kernel_tier_4, kernel_tier_4, kernel_tier_2, kernel_tier_4};
    const uint32_t owner_of_tier[4] = {1, 0, 2, 1};
    const ptowsp_lane_group groups[3] = {{2, first, 3}, {3, second, 4}, {1, third, 4}};
    ptowsp_work *work = work_make(&random, 2000, 4);
    check_mpmd(context, mode, work, 2000, groups, 3, owner_of_tier);
}

MODES_TEST(mpmd__as_many_groups_and_lanes_as_the_limits_allow) {
    uint64_t random = test_seed() + mode;
    static ptowsp_work_fn tables[256][256];
    ptowsp_lane_group groups[256];
    uint32_t owner_of_tier[255];
    for (uint32_t g = 0; g < 256; g++) {
        for (uint32_t tier = 0; tier < 256; tier++) {
            tables[g][tier] = tier == g ? kernel_table[g % KERNEL_COUNT] : NULL;
        }
        groups[g] = (ptowsp_lane_group){g < 255 && g >= 251 ? 5 : 4, tables[g], 256};
        owner_of_tier[g < 255 ? g : 0] = g % 255;
    }
    assert_int_equal(PTOWSP_LANE_GROUP_MAX, 255);
    volatile uint32_t too_many = 256;  // volatile: else gcc -O3 warns of a loop that is not reached
    ptowsp_work *work = work_make(&random, 2000, 255);
    // 251 * 4 + 4 * 5 = 1024 lanes
    check_mpmd(context, mode, work, 2000, groups, 255, owner_of_tier);
    const uint32_t owner_of_all[KERNEL_COUNT] = {0};
    const ptowsp_lane_group one = {1024, kernel_table, KERNEL_COUNT};
    check_mpmd(context, mode, work_make(&random, 1000, KERNEL_COUNT), 1000, &one, 1, owner_of_all);
    log_book *book = log_open(work, 1024);
    test_refused(context, ptowsp_dispatch_mpmd(context, work, 2000, groups, too_many, book),
                 PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                 "dispatch: group_count 256 is not in 1 to 255");
    log_expect_nothing(book);
}

MODES_TEST(mpmd__wrong_groups_are_errors_and_run_nothing) {
    ptowsp_work work[1] = {ptowsp_work_of(0, 0, 0, 0, 0, 0, 0)};
    log_book *book = log_open(work, 1024);
    static const struct {
        uint32_t lane_count, group_count;  // of the second of three groups of 2 lanes; of all
        bool has_table;                    // of the third
        uint64_t index;
        const char *text;
    } cases[] = {
        {2, 0, true, PTOWSP_NO_INDEX, "group_count 0 is not in 1 to 255"},
        {0, 3, true, 1, "group 1 has 0 lanes; at least 1 each and at most 1024 in all"},
        // too many lanes: in one group, in all, and so many that their sum wraps
        {1025, 3, true, 1, "group 1 has 1025 lanes; at least 1 each and at most 1024 in all"},
        {1021, 3, true, 2, "group 2 has 2 lanes; at least 1 each and at most 1024 in all"},
        {UINT32_MAX - 1, 3, true, 1,
         "group 1 has 4294967294 lanes; at least 1 each and at most 1024 in all"},
        {2, 3, false, 2, "the table of group 2 is NULL with table_count 6"},
    };
    const ptowsp_lane_group fine = {2, kernel_table, KERNEL_COUNT};
    ptowsp_lane_group groups[3] = {fine, fine, fine};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[96];
        groups[1].lane_count = cases[i].lane_count;
        groups[2].table = cases[i].has_table ? kernel_table : NULL;
        snprintf(text, sizeof text, "dispatch: %s", cases[i].text);
        test_refused(context,
                     ptowsp_dispatch_mpmd(context, work, 1, groups, cases[i].group_count, book),
                     PTOWSP_INVALID_PARAMS, cases[i].index, text);
    }
    groups[1] = groups[2] = fine;
    test_invalid(context, ptowsp_dispatch_mpmd(context, work, 1, NULL, 2, book),
                 "dispatch: groups is NULL with group_count 2");
    assert_invalid(ptowsp_dispatch_mpmd(context, work, 1, NULL, 0, book));
    test_refused(context, ptowsp_dispatch_mpmd(context, NULL, 1, groups, 3, book),
                 PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                 "dispatch: work is NULL with work_count 1");
    log_expect_nothing(book);
    // groups are checked even when there is nothing to run
    assert_invalid(ptowsp_dispatch_mpmd(context, NULL, 0, groups, 0, book));
    // lanes at the limit
    groups[1].lane_count = 1020;
    lanes_have_run(context, mode, ptowsp_dispatch_mpmd(context, work, 1, groups, 3, book));
    assert_int_equal(atomic_load(&book->total), 1);
}

MODES_TEST(mpmd__missing_kernels_are_errors_with_index_and_text) {
    const ptowsp_work_fn even[3] = {kernel_tier_0, NULL, kernel_tier_2},
                         odd[4] = {NULL, kernel_tier_1, NULL, NULL};
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
    check_mpmd(context, mode, work, 3, groups, 3, owner_of_tier);
}

// -- nesting --------------------------------------------------------------------------------------

// A job on a context, and what its calls would do: all that runs on lanes is called in it, with good
// parameters and bad ones.
typedef struct nested {
    ptowsp_context *context;
    const ptowsp_work *work;
    ptowsp_attention_plan plan;
    ptowsp_attention_job attention;
    atomic_uint busy, wrong, inner;
} nested;

static void kernel_inner(const ptowsp_work *work, uint32_t lane, void *user) {
    (void)work, (void)lane;
    atomic_fetch_add(&((nested *)user)->inner, 1);
}

static void range_inner(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)begin, (void)end, (void)lane;
    atomic_fetch_add(&((nested *)user)->inner, 1);
}

static void nested_calls(nested *job) {
    enum { IDS = PTOWSP_MOE_SORT_PARALLEL_MIN };
    static int32_t ids[IDS];
    static uint32_t counts[1], offsets[2], pairs[IDS], rows[IDS], scratch[16];
    static const ptowsp_work_fn inner[1] = {kernel_inner}, nothing[1] = {kernel_nothing};
    static const int32_t lengths[] = {5, -1};
    const ptowsp_lane_group group = {2, inner, 1};
    const ptowsp_moe_routes routes = {ids, IDS, 1, 1, 0};
    ptowsp_moe_order order = {counts, offsets, pairs, rows, NULL, IDS, 0, 0, 0, 0};
    const ptowsp_batch good = {lengths, 1, 1}, bad = {lengths, 2, 1};
    ptowsp_work written[5];
    ptowsp_plan_info info = {.work_count = 77};
    ptowsp_context *c = job->context;
    memset(written, 0x5a, sizeof written);
    const ptowsp_work before = written[0];
    const ptowsp_status statuses[] = {
        ptowsp_dispatch_spmd(c, job->work, 1, inner, 1, job),
        ptowsp_dispatch_spmd(c, job->work, 1, inner, 0, job),
        ptowsp_dispatch_spmd(c, NULL, 1, inner, 1, job),
        ptowsp_dispatch_mpmd(c, job->work, 1, &group, 1, job),
        ptowsp_dispatch_mpmd(c, job->work, 1, &group, 0, job),
        ptowsp_parallel_for(c, 5, 0, range_inner, job),
        ptowsp_parallel_for(c, 5, 1, NULL, job),
        ptowsp_parallel_for(c, 0, 0, range_inner, job),
        ptowsp_attention_run(c, &job->attention),
        ptowsp_plan_generate_parallel(c, &good, NULL, 1, written, 5, &info),
        ptowsp_plan_generate_parallel(c, &bad, NULL, 1, written, 5, &info),
        ptowsp_moe_sort_parallel(c, &routes, &order, scratch, 16, NULL),
    };
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        atomic_fetch_add(statuses[i] == PTOWSP_BUSY ? &job->busy : &job->wrong, 1);
    }
    const bool is_written = memcmp(written, &before, sizeof before) != 0 || info.work_count != 0;
    // Without a context nothing is in the way.
    if (is_written || counts[0] != 0 || rows[IDS - 1] != 0 ||
        ptowsp_dispatch_serial(job->work, 1, nothing, 1, NULL, NULL) != PTOWSP_OK) {
        atomic_fetch_add(&job->wrong, 1);
    }
}

static void kernel_nested(const ptowsp_work *work, uint32_t lane, void *user) {
    (void)work, (void)lane;
    nested_calls((nested *)user);
}

static void range_nested(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)lane;
    for (uint64_t i = begin; i < end; i++) {
        nested_calls((nested *)user);
    }
}

MODES_TEST(lanes__inside_a_job_every_call_is_busy_and_does_nothing) {
    const ptowsp_work_fn table[1] = {kernel_nested};
    ptowsp_work work[10] = {{0}};
    uint32_t unit_begin[2] = {0, 10}, merge_begin[2] = {0, 1}, progress[1024] = {0};
    ptowsp_work merge = {.params = {0, 0, 0, 10}};
    const ptowsp_lane_group groups[2] = {{2, table, 1}, {1, table, 1}};
    nested job = {.context = context, .work = work};
    for (uint32_t i = 0; i < 10; i++) {
        work[i].work_id = i;  // parts of one tile
    }
    job.plan = (ptowsp_attention_plan){.units = work,
                                       .unit_begin = unit_begin,
                                       .unit_count = 10,
                                       .merges = &merge,
                                       .merge_begin = merge_begin,
                                       .merge_count = 1,
                                       .slot_count = 10,
                                       .lane_count = 1};
    job.attention = (ptowsp_attention_job){.plan = &job.plan,
                                           .table = table,
                                           .table_count = 1,
                                           .merge = kernel_nested,
                                           .user = &job,
                                           .progress = progress};
    assert_true(ptowsp_attention_progress_size(&job.plan) <= COUNT_OF(progress));
    ptowsp_context_fail(context, PTOWSP_CANCELLED, 3, "as before");
    lanes_have_run(context, mode, ptowsp_dispatch_spmd(context, work, 10, table, 1, &job));
    lanes_have_run(context, mode, ptowsp_dispatch_mpmd(context, work, 10, groups, 2, &job));
    lanes_have_run(context, mode, ptowsp_parallel_for(context, 10, 0, range_nested, &job));
    lanes_have_run(context, mode, ptowsp_attention_run(context, &job.attention));
    // 4 jobs of 10 kernels and a merge, 12 calls in each
    assert_int_equal(atomic_load(&job.busy), 492);
    assert_int_equal(atomic_load(&job.wrong) + atomic_load(&job.inner), 0);
    if (modes[mode].status == PTOWSP_OK) {
        test_was_busy(context);
    }
    lanes_have_run(context, mode, ptowsp_parallel_for(context, 10, 1, range_inner, &job));
    assert_int_equal(atomic_load(&job.inner), 10);
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

// clang-format off
#define SIXTEEN_TIERS(TIER)                                                                        \
    TIER(0, 0, 9) TIER(1, 10, 19) TIER(2, 20, 29) TIER(3, 30, 39) TIER(4, 40, 49) TIER(5, 50, 59)  \
    TIER(6, 60, 69) TIER(7, 70, 79) TIER(8, 80, 89) TIER(9, 90, 99) TIER(10, 100, 109)             \
    TIER(11, 110, 119) TIER(12, 120, 129) TIER(13, 130, 139) TIER(14, 140, 149)                    \
    TIER(15, 150, 0x7fffffff)
// clang-format on
PTOWSP_DEFINE_TIERS(many, SIXTEEN_TIERS, attend)

TEST(tiers__decode_list_makes_tiers_count_table_and_dispatch) {
    assert_int_equal(COUNT_OF(attend_tiers), 4);
    assert_int_equal(COUNT_OF(attend_table), 4);
    assert_memory_equal(attend_tiers, ptowsp_decode_tiers(), sizeof attend_tiers);
    assert_true(attend_table[0] == attend_tier_0 && attend_table[1] == attend_tier_1);
    assert_true(attend_table[2] == attend_tier_2 && attend_table[3] == attend_tier_3);
}

TEST(tiers__dispatch_does_nothing_for_other_tiers) {
    memset(attended, 0, sizeof attended);
    for (uint32_t tier = 0; tier < 256; tier++) {
        ptowsp_work work = ptowsp_work_of(0, (uint8_t)tier, 0, 0, 0, 0, 0);
        attend_dispatch(&work, 9, attended);
    }
    for (uint32_t tier = 0; tier < 16; tier++) {
        assert_int_equal(attended[tier], tier < 4);
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

// -- stress ---------------------------------------------------------------------------------------

static void kernel_slow(const ptowsp_work *work, uint32_t lane, void *user) {
    kernel_note(work, lane, user, 0);
    if (work->work_id % 7 == 0) {
        usleep(work->work_id % 60);
    }
}

MODES_TEST(dispatch__thousands_of_uneven_steps_run_each_unit_once) {
    uint64_t random = test_seed() + mode;
    const ptowsp_work_fn slow[1] = {kernel_slow};
    const uint32_t owner_of_tier[1] = {1};
    const ptowsp_lane_group groups[2] = {{2, NULL, 0}, {3, slow, 1}};
    ptowsp_work *work = work_make(&random, 40, 1);
    for (uint64_t step = 0; step < 150; step++) {
        uint64_t work_count = step % 41;
        log_book *book = log_open(work, modes[mode].lane_count);
        lanes_have_run(context, work_count == 0 ? 0 : mode,
                       ptowsp_dispatch_spmd(context, work, work_count, slow, 1, book));
        log_expect_each_once(book, work_count);
        check_mpmd(context, mode, work, work_count / 4, groups, 2, owner_of_tier);
    }
}
