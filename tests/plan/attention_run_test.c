// Running attention plans: serially, as workers, and on the lanes of contexts, with lists and with
// stealing.
//
// Plans are made here, by random contiguous cuts of random tiles. Kernels note what they did by
// plain writes: what runs twice at once, or merges before a part is there, is a race to the thread
// sanitizer as well. Expected values: which unit has to run, and how often, follows from the plan.
// attend/attend_bits_test.c has the numbers of attention that is run so, and their bits.

#define _DEFAULT_SOURCE  // alarm, usleep, pthread_barrier_t

#include "lane_modes.h"

#include <math.h>
#include <stdatomic.h>
#include <unistd.h>

enum { LANE_MAX = 12, TILE_MAX = 60, PIECE_MAX = 6, UNIT_MAX = TILE_MAX * PIECE_MAX };
enum { WORKER_MAX = 2 * LANE_MAX, TIER_COUNT = 4, DELAY_NONE = 0, DELAY_SOME, DELAY_UNEVEN };

// -- plans and notes ------------------------------------------------------------------------------

typedef struct note {
    uint32_t runs;
    uint32_t kernel;
    uint32_t lane;
    uint32_t order;  // among all that this lane ran
} note;

typedef struct sample {
    ptowsp_attention_plan plan;
    ptowsp_work units[UNIT_MAX + 8], merges[TILE_MAX + 4];
    uint32_t unit_begin[LANE_MAX + 1], merge_begin[LANE_MAX + 1];
    ptowsp_attention_job job;
    uint64_t progress_size;

    uint32_t worker_count, round, delays;  // of the run
    uint32_t stamps[UNIT_MAX];             // [slot] written by parts, read by merges
    note unit_notes[UNIT_MAX], merge_notes[TILE_MAX];
    uint32_t lane_order[WORKER_MAX];
    atomic_bool lane_busy[WORKER_MAX];
    atomic_uint faults;
} sample;

static void delay(const sample *s, uint32_t index, uint32_t lane) {
    if (s->delays != DELAY_NONE) {
        lane_delay(index * 77 + s->round, s->delays == DELAY_UNEVEN && lane % 2 == 0);
    }
}

// Notes one call. Its lane must be free: no two calls run on one at the same time.
static void note_call(sample *s, note *of, uint32_t kernel, uint32_t lane, uint32_t index) {
    if (lane >= s->worker_count ||
        atomic_exchange_explicit(&s->lane_busy[lane], true, memory_order_relaxed)) {
        atomic_fetch_add(&s->faults, 1);
        return;
    }
    of->runs++;
    of->kernel = kernel;
    of->lane = lane;
    of->order = s->lane_order[lane]++;
    delay(s, index, lane);
    atomic_store_explicit(&s->lane_busy[lane], false, memory_order_relaxed);
}

static uint32_t stamp_of(const sample *s, uint32_t slot) {
    return s->round * 1000 + slot;
}

static void run_unit(const ptowsp_work *unit, uint32_t lane, void *user, uint32_t kernel) {
    sample *s = (sample *)user;
    uint32_t index = (uint32_t)(unit - s->units);
    note_call(s, &s->unit_notes[index], kernel, lane, index);
    if (ptowsp_work_slot(unit) != PTOWSP_NO_SLOT) {
        s->stamps[ptowsp_work_slot(unit)] = stamp_of(s, ptowsp_work_slot(unit));
    }
}

#define DEFINE_KERNEL(number)                                                                      \
    static void kernel_##number(const ptowsp_work *unit, uint32_t lane, void *user) {              \
        run_unit(unit, lane, user, number);                                                        \
    }
DEFINE_KERNEL(0)
DEFINE_KERNEL(1)
DEFINE_KERNEL(2)
DEFINE_KERNEL(3)
#undef DEFINE_KERNEL

static const ptowsp_work_fn kernels[TIER_COUNT] = {kernel_0, kernel_1, kernel_2, kernel_3};

static void merge_kernel(const ptowsp_work *merge, uint32_t lane, void *user) {
    sample *s = (sample *)user;
    uint32_t index = (uint32_t)(merge - s->merges), first = ptowsp_work_slot_first(merge);
    for (uint32_t i = 0; i < ptowsp_work_slot_count(merge); i++) {
        if (s->stamps[first + i] != stamp_of(s, first + i)) {
            atomic_fetch_add(&s->faults, 1);
        }
    }
    note_call(s, &s->merge_notes[index], 0, lane, UNIT_MAX + index);
}

static int compare_u32(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

// Cuts [0, count) into lane_count contiguous ranges at random places.
static void cut(uint64_t *random, uint32_t *begin, uint32_t lane_count, uint32_t count) {
    begin[0] = 0;
    for (uint32_t i = 1; i < lane_count; i++) {
        begin[i] = test_random_u32(random, 0, count);
    }
    begin[lane_count] = count;
    qsort(begin + 1, lane_count - 1, sizeof *begin, compare_u32);
}

// Adds a tile of some pieces.
static void add_tile(sample *s, uint32_t request, uint32_t piece_count, uint8_t tier) {
    ptowsp_attention_plan *plan = &s->plan;
    for (uint32_t i = 0; i < piece_count; i++) {
        uint8_t flags = (uint8_t)((i == 0 ? PTOWSP_WORK_FIRST : 0) |
                                  (i + 1 == piece_count ? PTOWSP_WORK_LAST : 0));
        uint32_t slot = piece_count == 1 ? PTOWSP_NO_SLOT : plan->slot_count + i;
        s->units[plan->unit_count++] = ptowsp_work_of(slot, tier, flags, request, 0, i * 16, 16);
    }
    plan->tile_count++;
    if (piece_count > 1) {
        s->merges[plan->merge_count] =
            ptowsp_work_of(plan->merge_count, 0, 0, request, 0, plan->slot_count, piece_count);
        plan->merge_count++;
        plan->slot_count += piece_count;
    }
}

// Marks the work of a sequence INVALID, as an engine does that drops a request after planning.
static void end_request(sample *s, uint32_t request) {
    for (uint32_t i = 0; i < s->plan.unit_count; i++) {
        if (ptowsp_work_request(&s->units[i]) == request) {
            s->units[i].flags |= PTOWSP_WORK_INVALID;
            s->units[i].params[3] = 0;
        }
    }
    for (uint32_t i = 0; i < s->plan.merge_count; i++) {
        if (ptowsp_work_request(&s->merges[i]) == request) {
            s->merges[i].flags |= PTOWSP_WORK_INVALID;
            s->merges[i].params[3] = 0;
        }
    }
}

static void sample_start(sample *s, uint32_t lane_count) {
    memset(s, 0, sizeof *s);
    s->plan = (ptowsp_attention_plan){.units = s->units,
                                      .merges = s->merges,
                                      .unit_begin = s->unit_begin,
                                      .merge_begin = s->merge_begin,
                                      .unit_capacity = UNIT_MAX,
                                      .merge_capacity = TILE_MAX,
                                      .lane_count = lane_count,
                                      .slot_rows = 1};
}

static uint32_t *progress_make(uint64_t size) {
    return (uint32_t *)test_alloc((size_t)size, sizeof(uint32_t));
}

// Ends a plan: what is behind its units and merges is INVALID; and makes its job.
static void sample_end(sample *s) {
    for (uint32_t i = s->plan.unit_count; i < UNIT_MAX; i++) {
        s->units[i] = ptowsp_work_of(0, 255, PTOWSP_WORK_INVALID, 0, 0, 0, 0);
    }
    for (uint32_t i = s->plan.merge_count; i < TILE_MAX; i++) {
        s->merges[i] = ptowsp_work_of(i, 0, PTOWSP_WORK_INVALID, 0, 0, 0, 0);
    }
    s->progress_size = ptowsp_attention_progress_size(&s->plan);
    s->job = (ptowsp_attention_job){.plan = &s->plan,
                                    .table = kernels,
                                    .table_count = TIER_COUNT,
                                    .merge = merge_kernel,
                                    .user = s,
                                    .progress = progress_make(s->progress_size)};
}

static void sample_random(sample *s, uint64_t *random) {
    sample_start(s, test_random_u32(random, 1, LANE_MAX));
    uint32_t tile_count = test_random_u32(random, 0, TILE_MAX);
    uint32_t piece_max = test_random_u32(random, 1, PIECE_MAX);
    for (uint32_t t = 0; t < tile_count; t++) {
        uint32_t piece_count = test_random_u32(random, 1, piece_max);
        add_tile(s, t / 3, piece_count, (uint8_t)test_random_in(random, 0, TIER_COUNT - 1));
    }
    if (test_random_in(random, 0, 1)) {
        for (uint32_t request = 0; request <= tile_count / 3; request++) {
            if (test_random_in(random, 0, 3) == 0) {
                end_request(s, request);
            }
        }
    }
    cut(random, s->unit_begin, s->plan.lane_count, s->plan.unit_count);
    cut(random, s->merge_begin, s->plan.lane_count, s->plan.merge_count);
    sample_end(s);
}

static void round_start(sample *s, uint32_t worker_count) {
    assert_true(worker_count <= WORKER_MAX);
    s->worker_count = worker_count;
    s->round++;
    memset(s->unit_notes, 0, sizeof s->unit_notes);
    memset(s->merge_notes, 0, sizeof s->merge_notes);
    memset(s->lane_order, 0, sizeof s->lane_order);
}

static bool is_progress_zero(const sample *s) {
    uint32_t any = 0;
    for (uint64_t i = 0; i < s->progress_size; i++) {
        any |= s->job.progress[i];
    }
    return any == 0;
}

// What is wrong with what a run has done, or NULL: all that is valid runs once, merges on a lane
// that ran a part of theirs, later than that part. No assertion, as threads call this.
static const char *round_fault(const sample *s) {
    for (uint32_t i = 0; i < UNIT_MAX; i++) {
        bool is_valid = i < s->plan.unit_count && ptowsp_work_is_valid(&s->units[i]);
        if (s->unit_notes[i].runs != is_valid) {
            return "a unit did not run once";
        }
        if (is_valid && s->unit_notes[i].kernel != s->units[i].tier) {
            return "a unit was run by the kernel of another tier";
        }
    }
    uint32_t unit = 0;
    for (uint32_t i = 0; i < TILE_MAX; i++) {
        const note *merged = &s->merge_notes[i];
        bool is_valid = i < s->plan.merge_count && ptowsp_work_is_valid(&s->merges[i]);
        if (merged->runs != is_valid) {
            return "a merge did not run once";
        }
        if (!is_valid) {
            continue;
        }
        uint32_t first = ptowsp_work_slot_first(&s->merges[i]), own = 0;
        while (ptowsp_work_slot(&s->units[unit]) != first) {
            unit++;
        }
        for (uint32_t k = 0; k < ptowsp_work_slot_count(&s->merges[i]); k++) {
            const note *part = &s->unit_notes[unit + k];
            own += part->lane == merged->lane && part->order < merged->order;
        }
        if (own == 0) {
            return "a merge ran on a lane that had no part of it before";
        }
    }
    return atomic_load(&s->faults) > 0 ? "a merge came before a part, or two calls ran on one lane"
           : is_progress_zero(s)       ? NULL
                                       : "progress is not zero";
}

static void round_check(const sample *s) {
    const char *fault = round_fault(s);
    if (fault) {
        fail_msg("%s", fault);
    }
}

// -- ways to run ----------------------------------------------------------------------------------

// Workers one after another, in a random order.
static void run_in_turn(sample *s, uint32_t worker_count, uint64_t *random) {
    uint32_t order[WORKER_MAX];
    for (uint32_t i = 0; i < worker_count; i++) {
        uint32_t at = test_random_u32(random, 0, i);
        order[i] = order[at];
        order[at] = i;
    }
    for (uint32_t i = 0; i < worker_count; i++) {
        ptowsp_attention_run_worker(&s->job, order[i], worker_count);
    }
}

// Workers on threads of their own, that run a sample many times with a barrier between runs alone:
// nobody clears anything.
typedef struct crew {
    sample *s;
    sample *other;  // a second job that each goes on to, without a barrier; may be NULL
    uint32_t worker_count, run_count;
    const char *fault;  // the first; written between two barriers
    pthread_barrier_t barrier;
} crew;

static void crew_main(void *job, uint32_t worker) {
    crew *c = (crew *)job;
    for (uint32_t run = 0; run < c->run_count; run++) {
        if (pthread_barrier_wait(&c->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
            for (int i = 0; i < 2; i++) {
                sample *s = i == 0 ? c->s : c->other;
                if (s && run > 0 && !c->fault) {
                    c->fault = round_fault(s);
                }
                if (s) {
                    round_start(s, c->worker_count);
                }
            }
        }
        pthread_barrier_wait(&c->barrier);
        if (worker > 0 && (run + worker) % 7 == 0) {
            usleep(100);  // comes late
        }
        ptowsp_attention_run_worker(&c->s->job, worker, c->worker_count);
        if (c->other) {
            ptowsp_attention_run_worker(&c->other->job, worker, c->worker_count);
        }
    }
}

static void run_crew(sample *s, sample *other, uint32_t worker_count, uint32_t run_count) {
    crew c = {.s = s, .other = other, .worker_count = worker_count, .run_count = run_count};
    assert_int_equal(pthread_barrier_init(&c.barrier, NULL, worker_count), 0);
    test_run_lanes_on_threads(NULL, worker_count, crew_main, &c);
    pthread_barrier_destroy(&c.barrier);
    if (c.fault) {
        fail_msg("%s", c.fault);
    }
    round_check(s);
    if (other) {
        round_check(other);
    }
}

// -- what runs, how often, where ------------------------------------------------------------------

// The plan that is drawn in the header, one KV token in five.
static void sample_drawn(sample *s) {
    static const uint32_t unit_begin[] = {0, 1, 2, 4, 6}, merge_begin[] = {0, 1, 1, 2, 2};
    sample_start(s, 4);
    add_tile(s, 0, 3, 0);
    add_tile(s, 1, 2, 0);
    add_tile(s, 2, 1, 0);
    memcpy(s->unit_begin, unit_begin, sizeof unit_begin);
    memcpy(s->merge_begin, merge_begin, sizeof merge_begin);
    sample_end(s);
}

// A test of it.
#define DRAWN_TEST(name) TEST_MADE(name, sample, s, sample_drawn(s), test_release())

// A test of random plans.
#define SAMPLES_TEST(name, rounds)                                                                 \
    static void name##_of(sample *s, uint64_t *random, uint32_t round);                            \
    TEST(name) {                                                                                   \
        static sample s;                                                                           \
        uint64_t random = test_seed();                                                             \
        for (uint32_t round = 0; TEST_ROUNDS(round, rounds); round++) {                            \
            sample_random(&s, &random);                                                            \
            name##_of(&s, &random, round);                                                         \
            test_release();                                                                        \
        }                                                                                          \
    }                                                                                              \
    static void name##_of(sample *s, uint64_t *random, __attribute__((unused)) uint32_t round)

SUITE_SECONDS(300)  // a deadlock ends here

// The order in which a lane runs its units and merges, on paper, and the lanes.
typedef struct drawn_order {
    uint32_t unit_lanes[6], unit_orders[6], merge_lanes[2], merge_orders[2];
} drawn_order;

static void order_is(const sample *s, const drawn_order *wanted) {
    round_check(s);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(s->unit_notes[i].lane, wanted->unit_lanes[i]);
        assert_int_equal(s->unit_notes[i].order, wanted->unit_orders[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(s->merge_notes[i].lane, wanted->merge_lanes[i]);
        assert_int_equal(s->merge_notes[i].order, wanted->merge_orders[i]);
    }
}

// Units 0 1 2, merge 0, units 3 4, merge 1, unit 5.
DRAWN_TEST(serial__merges_follow_the_last_part_of_their_tile_at_once) {
    static const drawn_order wanted = {{0}, {0, 1, 2, 4, 5, 7}, {0}, {3, 6}};
    uint64_t index = 77;
    round_start(s, 1);
    assert_ok(ptowsp_attention_run_serial(&s->job, &index));
    assert_true(index == PTOWSP_NO_INDEX);
    order_is(s, &wanted);
}

// 4 lanes on 3 workers: 0; 1; 2 and 3. The last part of tile 0 comes first, then the others.
DRAWN_TEST(worker__runs_its_own_block_of_lanes_in_order) {
    static const drawn_order wanted = {{0, 1, 2, 2, 2, 2}, {0, 0, 0, 1, 2, 4}, {0, 2}, {1, 3}};
    round_start(s, 3);
    for (uint32_t worker = 3; worker > 0; worker--) {
        ptowsp_attention_run_worker(&s->job, worker - 1, 3);
    }
    order_is(s, &wanted);
}

// Without stealing, each has the lane of its number where there are as many.
SAMPLES_TEST(worker__any_number_of_them_in_any_order_runs_all_once, 3000) {
    for (int again = 0; again < 4; again++) {
        const uint32_t lanes = s->plan.lane_count;
        uint32_t worker_count = again == 0 ? lanes : test_random_u32(random, 1, 2 * (int64_t)lanes);
        s->job.is_stealing = test_random_in(random, 0, 1);
        round_start(s, worker_count);
        run_in_turn(s, worker_count, random);
        round_check(s);
        for (uint32_t lane = 0, i = 0; worker_count == lanes && lane < lanes; lane++) {
            for (; i < s->unit_begin[lane + 1]; i++) {
                assert_true(s->job.is_stealing || s->unit_notes[i].runs == 0 ||
                            s->unit_notes[i].lane == lane);
            }
        }
    }
}

SAMPLES_TEST(worker__one_that_comes_late_finds_its_units_stolen, 300) {
    s->job.is_stealing = true;
    uint32_t worker_count = test_random_u32(random, 2, WORKER_MAX);
    uint32_t first = test_random_u32(random, 0, worker_count - 1);
    for (int again = 0; again < 3; again++) {
        round_start(s, worker_count);
        ptowsp_attention_run_worker(&s->job, first, worker_count);
        for (uint32_t worker = 0; worker < worker_count; worker++) {
            if (worker != first) {
                ptowsp_attention_run_worker(&s->job, worker, worker_count);
                assert_int_equal(s->lane_order[worker], 0);
            }
        }
        round_check(s);
    }
}

TEST(worker__the_list_that_a_neighbour_comes_to_last_is_stolen_first) {
    static sample s;
    sample_start(&s, 4);
    for (uint32_t i = 0; i < 4; i++) {
        add_tile(&s, i, 1, 0);
        s.unit_begin[i + 1] = i + 1;
    }
    sample_end(&s);
    s.job.is_stealing = true;
    round_start(&s, 2);
    ptowsp_attention_run_worker(&s.job, 1, 2);
    ptowsp_attention_run_worker(&s.job, 0, 2);
    round_check(&s);
    static const uint32_t order[] = {3, 2, 0, 1};  // its own 2 and 3; then 1, then 0
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(s.unit_notes[i].order, order[i]);
    }
    test_release();
}

SAMPLES_TEST(worker__on_threads_with_barriers_between_runs_alone, 60) {
    s->job.is_stealing = round % 2;
    s->delays = round % 3;
    uint32_t most = s->plan.lane_count < 4 ? 2 * s->plan.lane_count : 8;
    run_crew(s, NULL, test_random_u32(random, 1, most), 30);
}

SAMPLES_TEST(worker__goes_on_to_another_job_without_a_barrier, 40) {
    static sample other;
    sample_random(&other, random);
    s->job.is_stealing = round % 2;
    other.job.is_stealing = round / 2 % 2;
    s->delays = DELAY_UNEVEN;
    run_crew(s, &other, test_random_u32(random, 2, 6), 30);
}

MODES_TEST(run__every_kind_of_lanes_runs_all_once) {
    static sample s;
    uint64_t random = test_seed() + mode;
    for (uint32_t round = 0; TEST_ROUNDS(round, 60); round++) {
        sample_random(&s, &random);
        s.delays = round % 3;
        for (uint32_t again = 0; again < 4; again++) {
            s.job.is_stealing = test_random_in(&random, 0, 1);
            round_start(&s, modes[mode].lane_count);
            lanes_have_run(context, s.plan.unit_count == 0 ? 0 : mode,
                           ptowsp_attention_run(context, &s.job));
            round_check(&s);
        }
        test_release();
    }
}

// Lane 0 has its own list first, and then all others, backwards; the rest find nothing: units 0, 4, 5, 2, 3,
// merge 1, unit 1, merge 0.
DRAWN_TEST(run__threads_begin_with_their_own_lists) {
    static const drawn_order wanted = {{0}, {0, 6, 3, 4, 1, 2}, {0}, {7, 5}};
    ptowsp_context *context = context_make(PTOWSP_THREADS_USER, 4, run_lanes_forwards);
    for (int is_stealing = 0; is_stealing < 2; is_stealing++) {
        s->job.is_stealing = is_stealing;
        round_start(s, 4);
        assert_ok(ptowsp_attention_run(context, &s->job));
        order_is(s, &wanted);
    }
    ptowsp_context_destroy(context);
}

TEST(run__ways_may_take_turns_on_one_job_and_plans_change) {
    static sample s;
    uint64_t random = test_seed();
    ptowsp_context *context = context_make(PTOWSP_THREADS_USER, 3, test_run_lanes_on_threads);
    sample_start(&s, LANE_MAX);  // the progress is for any plan in the same arrays
    sample_end(&s);
    uint32_t *progress = s.job.progress;
    uint64_t progress_size = s.progress_size;
    for (uint32_t round = 0; TEST_ROUNDS(round, 400); round++) {
        sample_random(&s, &random);
        assert_true(s.progress_size <= progress_size);
        test_release_to(1);
        s.job.progress = progress;
        s.progress_size = progress_size;
        s.job.is_stealing = test_random_in(&random, 0, 1);
        uint32_t way = test_random_u32(&random, 0, 2);
        uint32_t worker_count = way == 0   ? 1
                                : way == 1 ? 3
                                           : test_random_u32(&random, 1, WORKER_MAX);
        round_start(&s, worker_count);
        if (way == 0) {
            assert_ok(ptowsp_attention_run_serial(&s.job, NULL));
        } else if (way == 1) {
            assert_ok(ptowsp_attention_run(context, &s.job));
        } else {
            run_in_turn(&s, worker_count, &random);
        }
        round_check(&s);
    }
    ptowsp_context_destroy(context);
    test_release();
}

TEST(run__nothing_to_do_needs_nothing) {
    static sample s;
    ptowsp_context *context = context_make(PTOWSP_THREADS_SERIAL, 1, NULL);
    for (uint32_t lane_count = 1; lane_count <= 3; lane_count++) {
        sample_start(&s, lane_count);
        sample_end(&s);
        s.plan.units = NULL;
        s.plan.merges = NULL;
        s.job.table = NULL;
        s.job.table_count = 0;
        s.job.merge = NULL;
        for (int is_stealing = 0; is_stealing < 2; is_stealing++) {
            s.job.is_stealing = is_stealing;
            uint64_t index = 77;
            assert_ok(ptowsp_attention_job_check(&s.job, &index));
            assert_true(index == PTOWSP_NO_INDEX);
            assert_ok(ptowsp_attention_run_serial(&s.job, NULL));
            assert_ok(ptowsp_attention_run(context, &s.job));
            ptowsp_attention_run_worker(&s.job, 1, 2);
            ptowsp_attention_run_worker(&s.job, 0, 2);
            assert_true(is_progress_zero(&s));
        }
        test_release();
    }
    ptowsp_context_destroy(context);
}

DRAWN_TEST(run__all_invalid_runs_nothing_and_needs_no_kernel) {
    for (uint32_t request = 0; request < 3; request++) {
        end_request(s, request);
    }
    s->job.table_count = 0;
    for (int is_stealing = 0; is_stealing < 2; is_stealing++) {
        s->job.is_stealing = is_stealing;
        round_start(s, 1);
        assert_ok(ptowsp_attention_run_serial(&s->job, NULL));
        round_check(s);
        round_start(s, 2);
        ptowsp_attention_run_worker(&s->job, 0, 2);
        ptowsp_attention_run_worker(&s->job, 1, 2);
        round_check(s);
    }
}

static struct { uint32_t calls, lane; } counted;

static void kernel_counts(const ptowsp_work *unit, uint32_t lane, void *user) {
    (void)unit, (void)user;
    counted.calls += lane == counted.lane;
}

DRAWN_TEST(run__as_many_lanes_and_workers_as_there_may_be) {
    uint32_t *begin = (uint32_t *)test_alloc(PTOWSP_ATTENTION_LANE_MAX + 1, sizeof *begin);
    for (uint32_t i = 0; i <= PTOWSP_ATTENTION_LANE_MAX; i++) {
        begin[i] = i < 40000 ? 0 : 6;
    }
    s->plan.unit_begin = begin;
    s->plan.lane_count = PTOWSP_ATTENTION_LANE_MAX;
    s->progress_size = ptowsp_attention_progress_size(&s->plan);
    s->job.progress = progress_make(s->progress_size);
    for (int is_stealing = 0; is_stealing < 2; is_stealing++) {
        s->job.is_stealing = is_stealing;
        round_start(s, 2);
        ptowsp_attention_run_worker(&s->job, 1, 2);
        ptowsp_attention_run_worker(&s->job, 0, 2);
        round_check(s);
        assert_int_equal(s->unit_notes[0].lane, 1);
    }
    // Lane 39,999 is that of the last worker w with w * lanes < 40,000 * workers; few have any.
    const ptowsp_work_fn table[] = {kernel_counts};
    s->job.table = table;
    s->job.merge = kernel_counts;
    s->job.is_stealing = false;
    uint64_t worker = (UINT64_C(40000) * UINT32_MAX - 1) / PTOWSP_ATTENTION_LANE_MAX;
    counted.calls = 0;
    counted.lane = (uint32_t)worker;
    ptowsp_attention_run_worker(&s->job, (uint32_t)worker - 1, UINT32_MAX);
    ptowsp_attention_run_worker(&s->job, (uint32_t)worker + 1, UINT32_MAX);
    ptowsp_attention_run_worker(&s->job, UINT32_MAX - 1, UINT32_MAX);
    assert_int_equal(counted.calls, 0);
    ptowsp_attention_run_worker(&s->job, (uint32_t)worker, UINT32_MAX);
    assert_int_equal(counted.calls, 8);  // six units and two merges
    assert_true(is_progress_zero(s));
}

// -- errors ---------------------------------------------------------------------------------------

// Expects a job to be refused by all that check it, with this text, and to run nothing.
static void expect_refused(sample *s, const ptowsp_attention_job *job, uint64_t index,
                           const char *text) {
    ptowsp_context *context = test_context(NULL);
    round_start(s, 1);
    uint64_t got = 77;
    assert_invalid(ptowsp_attention_job_check(job, &got));
    assert_true(got == index);
    assert_invalid(ptowsp_attention_job_check(job, NULL));
    got = 77;
    assert_invalid(ptowsp_attention_run_serial(job, &got));
    assert_true(got == index);
    test_refused(context, ptowsp_attention_run(context, job), PTOWSP_INVALID_PARAMS, index, text);
    assert_int_equal(s->lane_order[0], 0);
    assert_true(is_progress_zero(s));
    ptowsp_context_destroy(context);
}

// Changes the job or its plan, which are then refused.
#define REFUSED(change, index, text)                                                               \
    (job = s->job, plan = s->plan, job.plan = &plan, change,                                       \
     expect_refused(s, &job, index, "attention: " text))

DRAWN_TEST(check__names_what_is_wrong) {
    ptowsp_attention_plan plan;
    ptowsp_attention_job job;
    const uint64_t none = PTOWSP_NO_INDEX;
    expect_refused(s, NULL, none, "attention: the job is NULL");
    REFUSED(job.plan = NULL, none, "the job's plan is NULL");
    REFUSED(job.progress = NULL, none, "the job's progress is NULL");
    REFUSED(job.table = NULL, none, "the job's table is NULL");
    REFUSED(job.merge = NULL, none, "the job's merge is NULL");
    REFUSED(plan.units = NULL, none, "the plan's units is NULL");
    REFUSED(plan.unit_begin = NULL, none, "the plan's unit_begin is NULL");
    REFUSED(plan.merges = NULL, none, "the plan's merges is NULL");
    // Lists must have all units once.
    REFUSED(plan.lane_count = 0, none, "the plan has 0 lanes, not 1 to 65536");
    REFUSED(plan.lane_count = 65537, none, "the plan has 65537 lanes, not 1 to 65536");
    REFUSED(plan.lane_count = 3, none, "lanes have 4 of 6 units");
    REFUSED(plan.unit_count = 5, none, "lane 3 has units 4 to 6 of 5, after those of lanes below");
    REFUSED((plan.unit_begin = (uint32_t[]){1, 1, 2, 4, 6}), none,
            "lane 0 has units 1 to 1 of 6, after those of lanes below");
    REFUSED((plan.unit_begin = (uint32_t[]){0, 1, 0, 4, 6}), none,
            "lane 1 has units 1 to 0 of 6, after those of lanes below");
    // A prefix plan must be that of the job.
    ptowsp_prefix_plan prefix = {.attention = s->plan};
    REFUSED(job.prefix = &prefix, none, "the job's plan is not its prefix plan's");
    REFUSED((job.prefix = &prefix, job.plan = &prefix.attention), 0, "unit 0 has segment 0 of 0");
    prefix.join_count = 1;
    REFUSED((job.prefix = &prefix, job.plan = &prefix.attention), none, "the job's join is NULL");
    // A unit without kernel or merge. The changes stay.
    const ptowsp_work_fn holes[] = {kernel_0, NULL, kernel_2};
    REFUSED(s->units[5].tier = 4, 5, "unit 5 has tier 4, for which the table has no kernel");
    s->job.table = holes;
    s->job.table_count = 3;
    s->units[5].tier = 0;
    REFUSED(s->units[3].tier = 1, 3, "unit 3 has tier 1, for which the table has no kernel");
    s->units[3].tier = 2;
    assert_ok(ptowsp_attention_job_check(&s->job, NULL));
    REFUSED(s->units[4].work_id = 5, 4, "unit 4 has slot 5, which is of no merge");
    s->units[4].work_id = 4;
    REFUSED(s->merges[0].params[2] = 1, 0, "unit 0 has slot 0, which is of no merge");
    s->merges[0].params[2] = 0;
    REFUSED(s->merges[1].flags = PTOWSP_WORK_INVALID, 3, "unit 3 has slot 3, which is of no merge");
    REFUSED(plan.merge_count = 0, 0, "unit 0 has slot 0, which is of no merge");
}

// -- numbers --------------------------------------------------------------------------------------

TEST(merge_row__takes_the_slots_of_the_merge_in_order) {
    // Slots 1 and 2 of 4, row 1 of 2. By hand: m = 0, l = 1 + 3, acc = {2 + 6, 4 - 8}.
    const ptowsp_partial no = {NAN, NAN};
    ptowsp_partial states[4][2] = {{no, no}, {no, {0.0f, 1.0f}}, {no, {0.0f, 3.0f}}, {no, no}};
    float accs[4][2][2] = {{{NAN, NAN}, {NAN, NAN}},
                           {{NAN, NAN}, {2.0f, 4.0f}},
                           {{NAN, NAN}, {6.0f, -8.0f}},
                           {{NAN, NAN}, {NAN, NAN}}};
    ptowsp_attention_scratch scratch = {&states[0][0], &accs[0][0][0], 2, 2};
    ptowsp_work merge = ptowsp_work_of(0, 0, 0, 9, 9, 1, 2);
    float out[2] = {77.0f, 77.0f};
    float lse = ptowsp_attention_merge_row(&scratch, &merge, 1, out);
    assert_true(fabs((double)lse - log(4.0)) < 1e-6);
    assert_true(out[0] == 2.0f && out[1] == -1.0f);
    scratch.dim = 0;
    scratch.accs = NULL;
    assert_true(ptowsp_attention_merge_row(&scratch, &merge, 1, NULL) == lse);
    scratch.dim = 2;
    scratch.accs = &accs[0][0][0];
    const ptowsp_partial empty = {-INFINITY, 0.0f};
    states[1][1] = states[2][1] = empty;
    assert_true(ptowsp_attention_merge_row(&scratch, &merge, 1, out) == -INFINITY);
    assert_true(out[0] == 0.0f && out[1] == 0.0f);
}
