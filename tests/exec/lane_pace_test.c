// Tasks of different lengths on lanes: short ones, which the walking lane keeps; iterations of loops, which
// go to lanes in blocks; long ones, and all in turns. What comes out is what a plain loop computes, and what
// is recorded, and said of failures, is what it is without lanes.

#include "src/exec/frontend_block.c"
#include "src/exec/run.h"

#include "lane_fixture.h"

#include <inttypes.h>

enum { ROWS = 48, COLS = 64, TASKS = 2 * ROWS * COLS, CELLS = 512 };

// -- programs -------------------------------------------------------------------------------------

// Row after row: a loop of tasks `x`, and one of tasks `y`, of which each has a tile that it changes and one
// that it reads. Where they are is linear in row and column, modulo the number of cells.
typedef struct pace_place {
    int64_t row, col, at;  // (row * i + col * j + at) % CELLS, and then `size` cells
    int64_t size;
} pace_place;

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    pace_place places[2][2];
    bool is_sequence;    // y waits for x by structure
    uint64_t ns[2];      // that a task of x, of y takes
    uint64_t long_each;  // but each of so many takes 20 us; 0: none
    uint64_t failing;    // this task fails
    uint64_t huge;       // from this one on, each takes a third of all cycles that there are
    bool is_unrecorded;
    uint64_t cancelling;
    uint64_t data[CELLS + 16];
    uint64_t done[2];  // atomic: tasks of x, of y
    uint64_t early;    // atomic: tasks of y that began before all of x in their row were done
    uint64_t calls;    // atomic
} fixture;

static uint64_t pace_mix(uint64_t cell, uint64_t sum, uint64_t index) {
    return cell * 31 + sum + index;
}

static ptowsp_cycles pace_kernel(const ptowsp_task *task, void *user) {
    fixture *f = (fixture *)user;
    const int is_y = task->kernel_name[0] == 'y';
    const bool is_long = f->long_each && task->index % f->long_each == 0;
    const uint64_t wait = is_long ? 20000 : f->ns[is_y], end = wait ? ptowsp_clock_ns() + wait : 0;
    uint64_t *cells = (uint64_t *)task->tiles[0].data, sum = 0;
    __atomic_fetch_add(&f->calls, 1u, __ATOMIC_RELAXED);
    if (f->is_sequence && is_y) {
        const uint64_t row = task->index / (2 * COLS);
        const bool is_early = __atomic_load_n(&f->done[0], __ATOMIC_RELAXED) != (row + 1) * COLS;
        __atomic_fetch_add(&f->early, is_early, __ATOMIC_RELAXED);
    }
    for (int64_t c = 0; c < ptowsp_task_cols(task, 1); c++) {
        sum += ((const uint64_t *)task->tiles[1].data)[c];
    }
    while (wait && ptowsp_clock_ns() < end) {
    }
    for (int64_t c = 0; c < ptowsp_task_cols(task, 0); c++) {
        cells[c] = pace_mix(cells[c], sum, task->index);
    }
    __atomic_fetch_add(&f->done[is_y], 1u, __ATOMIC_RELAXED);
    if (task->index == f->cancelling) {
        ptowsp_run_cancel(f->run);
    }
    return task->index == f->failing ? ptowsp_task_fail(PTOWSP_KERNEL_FAILED)
           : task->index >= f->huge  ? PTOWSP_CYCLES_MAX / 3
                                     : 10 + task->index % 7;
}

// The same, without anything of the library. (What is changed is read before.)
static void pace_reference(const fixture *f, uint64_t *data) {
    memset(data, 0, sizeof f->data);
    for (uint64_t index = 0; index < TASKS; index++) {
        const int64_t i = (int64_t)(index / (2 * COLS)), j = (int64_t)(index % COLS);
        const pace_place *at = f->places[index / COLS % 2];
        const int64_t to = (at[0].row * i + at[0].col * j + at[0].at) % CELLS;
        const int64_t from = (at[1].row * i + at[1].col * j + at[1].at) % CELLS;
        uint64_t sum = 0;
        for (int64_t c = 0; c < at[1].size; c++) {
            sum += data[from + c];
        }
        for (int64_t c = 0; c < at[0].size; c++) {
            data[to + c] = pace_mix(data[to + c], sum, index);
        }
    }
}

// A loop of tasks at these places.
static void pace_loop(char *text, char name, const pace_place *at) {
    sprintf(text + strlen(text), "      parallel j in cols\n        task %c()", name);
    for (int k = 0; k < 2; k++) {
        sprintf(text + strlen(text),
                " %s = data at ((0), (i * %" PRId64 " + j * %" PRId64 " + %" PRId64 ") %% %d)",
                k ? "read" : "changed", at[k].row, at[k].col, at[k].at, CELLS);
    }
    strcat(text, "\n");
}

// Of the fixture places and is_sequence have been set; all else is made.
static void fixture_make(fixture *f, lane_kind kind, uint32_t lane_count,
                         const ptowsp_schedule *schedule) {
    f->context = lane_context(kind, lane_count, &f->memory);
    f->failing = f->cancelling = f->huge = UINT64_MAX;
    char text[2048];
    const ptowsp_parse_kernel kernels[2] = {{.name = "x", .fn = pace_kernel, .user = f},
                                            {.name = "y", .fn = pace_kernel, .user = f}};
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = 2};
    const ptowsp_program_desc program = {NULL, schedule};
    snprintf(text, sizeof text,
             "module m\naxis rows %d\naxis cols %d\ntensor data u64 [1, %d] global\n"
             "kernel x(axes 0, inout changed u64 1 x %d, in read u64 1 x %d) vector\n"
             "kernel y(axes 0, inout changed u64 1 x %d, in read u64 1 x %d) vector\n"
             "workload main\n  for_each i in rows\n    sequence\n",
             ROWS, COLS, CELLS + 16, (int)f->places[0][0].size, (int)f->places[0][1].size,
             (int)f->places[1][0].size, (int)f->places[1][1].size);
    pace_loop(text, 'x', f->places[0]);
    pace_loop(text, 'y', f->places[1]);
    f->run = test_run_text(f->context, text, &attached, &program, &f->m, &f->program);
    test_bind(f->run, "data", f->data);
}

static void fixture_free(fixture *f) {
    test_destroy(f->run, f->program, f->m, f->context);
    assert_int_equal(f->memory.live_blocks, 0);
}

static ptowsp_status execute(fixture *f, uint32_t lane_count) {
    ptowsp_run_options options = {.lane_count = lane_count, .record_tasks = !f->is_unrecorded};
    memset(f->data, 0, sizeof f->data);
    f->done[0] = f->done[1] = f->early = f->calls = 0;
    return ptowsp_run_execute(f->run, &options);
}

static void executes(fixture *f, uint32_t lane_count, const uint64_t *expected) {
    test_ok(f->context, execute(f, lane_count));
    assert_int_equal(f->calls, TASKS);
    assert_int_equal(f->early, 0);
    assert_memory_equal(f->data, expected, sizeof f->data);
}

static ptowsp_schedule schedule_of(uint32_t dependencies) {
    ptowsp_schedule schedule = {.dependencies = dependencies, .lane_count = 3};
    return schedule;
}

// Tiles of one cell each that no other task has, one after another.
static void places_apart(fixture *f) {
    const pace_place x = {COLS, 1, 0, 1}, y = {COLS, 1, 7, 1};
    f->places[0][0] = f->places[0][1] = x;
    f->places[1][0] = f->places[1][1] = y;
}

// -- all lengths ----------------------------------------------------------------------------------

// The number of tasks that went in blocks in the last execution; whether some were kept at its end.
static uint64_t in_blocks(const fixture *f) {
    return f->run->front ? f->run->front->record_tail : 0;
}

TEST(pace__lengths_change_nothing) {
    static const uint64_t lengths[][3] = {// of x, of y, and each so many is long
                                          {0, 0, 0},    {400, 400, 0}, {0, 1500, 0},
                                          {3000, 0, 0}, {0, 0, 97},    {500, 0, 301}};
    uint64_t random = test_seed(), block_count = 0, batch_count = 0;
    unsigned kept_count = 0;
    for (size_t l = 0; l < COUNT_OF(lengths); l++) {
        for (unsigned p = 0; TEST_ROUNDS(p, LANE_IS_CHECKED ? 2 : 4); p++) {
            static fixture f;
            static uint64_t expected[CELLS + 16];
            memset(&f, 0, sizeof f);
            for (int k = 0; k < 4; k++) {
                pace_place *at = &f.places[k / 2][k % 2];
                at->row = test_random_in(&random, 0, 70);
                at->col = p == 1 ? 0 : test_random_in(&random, 0, 5);
                at->at = test_random_in(&random, 0, CELLS - 1);
                at->size = test_random_in(&random, 1, 4);
            }
            if (p == 0) {  // the first tasks of a row of y have cells of the last ones of x
                places_apart(&f);
                f.places[1][0].at = f.places[1][1].at = COLS - 7;
            }
            f.is_sequence = p > 0 && test_random(&random) % 2;
            const ptowsp_schedule schedule =
                schedule_of(p == 0          ? PTOWSP_DEPENDENCIES_EXACT  // tiles meet as a whole
                            : f.is_sequence ? PTOWSP_DEPENDENCIES_STRUCTURE
                                            : PTOWSP_DEPENDENCIES_OVERLAP);
            const lane_kind kind = p == 2 ? LANE_LATE : LANE_OWN;
            fixture_make(&f, kind, 3, &schedule);
            pace_reference(&f, expected);
            executes(&f, 1, expected);  // at once
            const ptowsp_task_record *records = ptowsp_run_records(f.run);
            ptowsp_task_record *first =
                (ptowsp_task_record *)malloc(TASKS * sizeof(ptowsp_task_record));
            assert_non_null(first);
            memcpy(first, records, TASKS * sizeof *first);
            const ptowsp_run_stats stats = *ptowsp_run_result(f.run);
            f.ns[0] = lengths[l][0];
            f.ns[1] = lengths[l][1];
            f.long_each = lengths[l][2];
            for (uint32_t round = 0; round < 4; round++) {
                // Without records blocks are accounted for at once.
                f.is_unrecorded = round >= 2;
                executes(&f, 2 + round % 2, expected);
                const ptowsp_run_stats *now = ptowsp_run_result(f.run);
                if (!f.is_unrecorded) {
                    assert_memory_equal(ptowsp_run_records(f.run), first, TASKS * sizeof *first);
                }
                assert_true(now->makespan_cycles == stats.makespan_cycles);
                assert_true(now->busy_cycles == stats.busy_cycles);
                assert_memory_equal(now->stall_cycles, stats.stall_cycles,
                                    sizeof stats.stall_cycles);
                batch_count += f.is_unrecorded ? in_blocks(&f) : 0;
                block_count += in_blocks(&f);
                kept_count += f.run->has_kept;
            }
            free(first);
            fixture_free(&f);
        }
    }
    assert_met(block_count > batch_count && batch_count > 0);
    assert_met(kept_count > 0 ||
               LANE_IS_CHECKED);  // where every access is checked nothing is short
}

// -- failures -------------------------------------------------------------------------------------

// Where a task fails: the same error, and the same is accounted for, as without lanes.
TEST(pace__a_task_that_fails_is_told_as_without_lanes) {
    static const uint64_t lengths[] = {0, 500};
    uint64_t random = test_seed();
    for (int l = 0; l < 2; l++) {
        static fixture f;
        memset(&f, 0, sizeof f);
        places_apart(&f);
        const ptowsp_schedule schedule = schedule_of(PTOWSP_DEPENDENCIES_HYBRID);
        fixture_make(&f, LANE_OWN, 3, &schedule);
        f.ns[0] = f.ns[1] = lengths[l];
        for (int i = 0; i < 2; i++) {  // until it knows the pace
            assert_ok(execute(&f, 2));
        }
        for (int i = 0; TEST_ROUNDS(i, LANE_IS_CHECKED ? 6 : 12); i++) {
            f.failing = i < 4 ? (uint64_t)i : test_random(&random) % TASKS;
            f.is_unrecorded = i % 2;
            assert_int_equal(execute(&f, 2), PTOWSP_KERNEL_FAILED);
            const ptowsp_error error = ptowsp_context_error(f.context);
            const ptowsp_run_stats stats = *ptowsp_run_result(f.run);
            char text[PWSP_ERROR_TEXT_MAX];
            snprintf(text, sizeof text, "%s", error.text);
            assert_int_equal(error.index, f.failing);
            test_refused(f.context, execute(&f, 1), PTOWSP_KERNEL_FAILED, f.failing, text);
            assert_int_equal(stats.task_count, f.failing);
            assert_int_equal(ptowsp_run_result(f.run)->task_count, f.failing);
            assert_true(stats.makespan_cycles == ptowsp_run_result(f.run)->makespan_cycles);
        }
        fixture_free(&f);
    }
}

TEST(pace__a_cancelled_execution_ends_and_the_next_one_is_whole) {
    static const uint64_t lengths[] = {0, 500, 3000};
    static uint64_t expected[CELLS + 16];
    for (int l = 0; l < 3; l++) {
        static fixture f;
        memset(&f, 0, sizeof f);
        places_apart(&f);
        fixture_make(&f, LANE_OWN, 3, NULL);
        pace_reference(&f, expected);
        f.ns[0] = f.ns[1] = lengths[l];
        executes(&f, 2, expected);
        for (uint64_t at = 1; at < TASKS - 1000; at += 1300) {
            f.cancelling = at;
            assert_int_equal(execute(&f, 2), PTOWSP_CANCELLED);
            assert_true(f.calls < TASKS);
            f.cancelling = UINT64_MAX;
            executes(&f, 2, expected);
        }
        fixture_free(&f);
    }
}

// Memory may be refused at any allocation of the first execution on lanes; where every access is checked, at
// every third.
TEST(pace__memory_may_be_missing) {
    const size_t step = (LANE_IS_CHECKED ? 3 : 1) * pwsp_max_u64(100 / test_percent(), 1);
    EACH_REFUSED(n, 0) {
        static fixture f;
        memset(&f, 0, sizeof f);
        places_apart(&f);
        fixture_make(&f, LANE_IN_ORDER, 2, NULL);
        test_refuse(&f.memory, 1 + (n - 1) * step);
        ptowsp_status status = execute(&f, 2);
        has_more = f.memory.allocations >= f.memory.refuse_at;
        assert_true(status == PTOWSP_OK || (has_more && status == PTOWSP_OUT_OF_MEMORY));
        f.memory.refuse_at = 0;
        assert_ok(execute(&f, 2));
        fixture_free(&f);
    }
}

// Time is over where it is without lanes: in the middle of a row, behind it, and when all is issued.
TEST(pace__time_is_over_where_it_is_without_lanes) {
    for (int way = 0; way < 6; way++) {
        static fixture f;
        memset(&f, 0, sizeof f);
        places_apart(&f);
        ptowsp_schedule schedule = schedule_of(PTOWSP_DEPENDENCIES_STRUCTURE);
        schedule.lane_count = 1;
        schedule.ready = way % 2 ? PTOWSP_READY_WORK_STEALING : PTOWSP_READY_FIFO;
        fixture_make(&f, LANE_OWN, 3, &schedule);
        f.is_unrecorded = way >= 2;
        f.ns[0] = f.ns[1] = way >= 4 ? 500 : 0;  // in blocks
        for (int i = 0; i < 2; i++) {            // until it knows the pace
            assert_ok(execute(&f, 2));
        }
        static const uint64_t huge[] = {TASKS - 4, TASKS - COLS - 3, TASKS - 2 * COLS - 4,
                                        TASKS / 2};
        for (int i = 0; i < 4; i++) {
            f.huge = huge[i];
            assert_int_equal(execute(&f, 1), PTOWSP_LIMIT_EXCEEDED);
            char text[PWSP_ERROR_TEXT_MAX];
            snprintf(text, sizeof text, "run: task %llu ends after 2^63 - 1 cycles",
                     (unsigned long long)(huge[i] + 2));  // there was time for two, less what was
            test_error_is(f.context, PTOWSP_LIMIT_EXCEEDED, huge[i] + 2, text);
            for (int k = 0; k < 3; k++) {
                test_refused(f.context, execute(&f, 2), PTOWSP_LIMIT_EXCEEDED, huge[i] + 2, text);
            }
        }
        f.huge = UINT64_MAX;
        assert_ok(execute(&f, 2));
        fixture_free(&f);
    }
}

// -- the pace itself ------------------------------------------------------------------------------

static void notes(pwsp_pace *pace, uint32_t lane, uint32_t kernel, uint64_t ticks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        pwsp_pace_tell(pace, lane, kernel, ticks, 1);
    }
}

TEST(pace__kernels_are_known_by_the_fastest_lane) {
    test_memory counted = {0};
    const pwsp_memory under = {test_resize, &counted};
    pwsp_blocks blocks;
    const pwsp_memory memory = pwsp_blocks_begin(&blocks, &under);
    pwsp_pace pace;
    assert_true(pwsp_pace_init(&pace, &memory, 3));
    assert_true(pwsp_pace_reserve(&pace, 2));
    pwsp_pace_begin(&pace, 2, true, true);
    notes(&pace, 0, 1, 100, 16);
    pwsp_pace_learn(&pace, 1);
    assert_int_equal(pace.ticks[1], 0);  // 16 of 32 notes
    assert_false(pwsp_pace_is_short(&pace, 1));
    notes(&pace, 1, 1, 40, 16);
    pwsp_pace_learn(&pace, 1);
    assert_int_equal(pace.ticks[1], 40);
    assert_true(pwsp_pace_is_short(&pace, 1));
    // Interrupted once: 7 / 8 * 40 + (2 * 40 + 8) / 8 = 46.
    notes(&pace, 1, 1, 1000000, 1);
    pwsp_pace_learn(&pace, 1);
    assert_int_equal(pace.ticks[1], 46);
    // Blocks: 8 us of tasks, at most 16 tasks, and eight blocks for two lanes.
    notes(&pace, 0, 2, PWSP_TICKS_US, 32);
    pwsp_pace_learn(&pace, 2);
    assert_int_equal(pwsp_pace_block(&pace, 2, 1000), 8);
    assert_int_equal(pwsp_pace_block(&pace, 1, 1000), 16);
    assert_int_equal(pwsp_pace_block(&pace, 1, 40), 5);
    assert_int_equal(pwsp_pace_block(&pace, 1, 7), 1);
    assert_int_equal(pwsp_pace_block(&pace, 0, 1000), 1);  // not known
    pwsp_blocks_free(&blocks);
    assert_int_equal(counted.live_blocks, 0);
}

TEST(pace__long_tasks_are_not_kept_twice_in_a_row) {
    test_memory counted = {0};
    const pwsp_memory under = {test_resize, &counted};
    pwsp_blocks blocks;
    const pwsp_memory memory = pwsp_blocks_begin(&blocks, &under);
    pwsp_pace pace;
    assert_true(pwsp_pace_init(&pace, &memory, 2));
    assert_true(pwsp_pace_reserve(&pace, 1));
    pwsp_pace_begin(&pace, 1, true, true);
    notes(&pace, 0, 1, 10, 40);
    pwsp_pace_learn(&pace, 1);
    pwsp_pace_keep(&pace);
    assert_true(pwsp_pace_may_go_on(&pace, PWSP_PACE_LOOK - 1));
    pace.looked_at = pwsp_ticks() - UINT64_C(1000) * PWSP_TICKS_US;  // an interruption
    assert_true(pwsp_pace_may_go_on(&pace, 1));
    pace.looked_at = pwsp_ticks() - UINT64_C(1000) * PWSP_TICKS_US;
    assert_false(pwsp_pace_may_go_on(&pace, PWSP_PACE_LOOK));
    assert_int_equal(pace.hold, 2 * PWSP_PACE_HOLD_MIN);
    assert_int_equal(pace.ticks[1], 0);
    pwsp_pace_learn(&pace, 1);
    assert_int_equal(pace.ticks[1], 0);  // to be measured again
    pwsp_blocks_free(&blocks);
    assert_int_equal(counted.live_blocks, 0);
}

// -- tiles of blocks ------------------------------------------------------------------------------

// Rows and columns of tiles have 32 bits: neighbours that are larger together stay apart. (Joined, they
// would be small, and what touches either of them would not be seen.)
TEST(blocks__neighbouring_tiles_are_joined_up_to_the_largest_tile_and_not_beyond) {
#define READ(tensor, rows, cols, lead, row, col)                                                   \
    { tensor, rows, cols, PWSP_TILE_READ, lead, row, col }
#define WRITTEN(rows, cols, row, col)                                                              \
    { 1, rows, cols, PWSP_TILE_WRITTEN, 0, row, col }
    static const struct {
        pwsp_tile_at tile, other;
        uint32_t rows, cols;  // of both together; 0: they are not a tile
    } rows[] = {
        {READ(1, 4, 8, 0, 0, 0), READ(1, 4, 8, 0, 0, 8), 4, 16},       // to the right
        {READ(5, 2, 3, 100, 8, 9), READ(5, 2, 4, 100, 8, 12), 2, 7},   //
        {READ(1, 4, 8, 0, 2, 8), READ(1, 3, 8, 0, 6, 8), 7, 8},        // below
        {READ(5, 2, 3, 100, 8, 9), READ(5, 6, 3, 100, 10, 9), 8, 3},   //
        {READ(1, 4, 8, 0, 2, 8), READ(1, 4, 8, 0, 2, 8), 4, 8},        // the same
        {READ(5, 2, 3, 100, 8, 9), READ(5, 2, 3, 100, 8, 6), 0, 0},    // to the left, above: loops
        {READ(5, 2, 3, 100, 8, 9), READ(5, 2, 3, 100, 6, 9), 0, 0},    // go on
        {READ(5, 2, 3, 100, 8, 9), READ(5, 2, 3, 100, 8, 13), 0, 0},   // a gap
        {READ(5, 2, 3, 100, 8, 9), READ(5, 2, 3, 100, 11, 9), 0, 0},   //
        {READ(5, 2, 3, 100, 8, 9), READ(5, 2, 3, 100, 8, 11), 0, 0},   // both have a column
        {READ(5, 2, 3, 100, 8, 9), READ(5, 2, 3, 100, 10, 12), 0, 0},  // at the corner
        {READ(5, 2, 3, 100, 8, 9), READ(5, 1, 3, 100, 8, 12), 0, 0},   // fewer rows
        {READ(5, 2, 3, 100, 8, 9), READ(5, 2, 4, 100, 10, 9), 0, 0},   // more columns
        {READ(5, 2, 3, 100, 8, 9), READ(6, 2, 3, 100, 8, 12), 0, 0},   // of another tensor
        {READ(5, 2, 3, 100, 8, 9), READ(5, 2, 3, 164, 8, 12), 0, 0},   // of another matrix
        {READ(1, 4, 8, 0, 0, 0), WRITTEN(4, 8, 0, 8), 0, 0},           // accessed otherwise
        // Up to 2^32 - 1, and one more.
        {WRITTEN(1, 0x80000000u, 0, 0), WRITTEN(1, 0x7fffffffu, 0, 0x80000000), 1, UINT32_MAX},
        {WRITTEN(1, 0x80000000u, 0, 0), WRITTEN(1, 0x80000000u, 0, 0x80000000), 0, 0},
        {WRITTEN(0xfffffff0u, 1, 5, 0), WRITTEN(15, 1, 0xfffffff5, 0), UINT32_MAX, 1},
        {WRITTEN(0xfffffff0u, 1, 5, 0), WRITTEN(16, 1, 0xfffffff5, 0), 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        pwsp_tile_at tile = rows[i].tile, expected = rows[i].tile;
        expected.rows = rows[i].rows ? rows[i].rows : expected.rows;
        expected.cols = rows[i].cols ? rows[i].cols : expected.cols;
        assert_int_equal(pwsp_frontend_join_tile(&tile, &rows[i].other), rows[i].rows != 0);
        assert_memory_equal(&tile, &expected, sizeof tile);
    }
}
