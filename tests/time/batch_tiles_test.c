// Batches of tasks with tiles, against the rules done the slow way: a task waits for all tasks before it
// that have rows of its tiles, if one of the two writes them. Two loops, of kernels of their own, access one
// tensor in tiles that fit a grid: always, up to some task, or never; of one size or of two; and twice the
// same tile from some task on. Also against the same run with records, which issues tasks one by one, and
// against executing on lanes, which goes on with tasks that have been kept.

#include "batch_reference.h"

enum {
    LOOPS = 2,
    TILES = 3,
    TASKS_MAX = 700,
    LANES_MAX = 40,
    MATRICES = 3,
    ROWS_MAX = 400,
    COLS = 4
};

// The first row of a tile of task i.
typedef enum rows_kind {
    ROWS_IN_TURN,  // multiples of the tile's rows
    ROWS_BACK,     // the same from the matrix' end on
    ROWS_SHIFTED,  // in turn up to task `at`, then one row further
    ROWS_ODD,      // any
    ROWS_ALL,      // 0: the tile is the matrix
    ROWS_COUNTED,  // i: nothing in the loop is evaluated
    ROWS_EQUAL,    // not of the first tile: in turn up to `at`, then where the first one is
    ROWS_KINDS
} rows_kind;

typedef struct tile_rule {
    rows_kind kind;
    int64_t rows, at, step;
    bool is_written, has_limit;  // of one row from task `at` on
} tile_rule;

typedef struct tiles_sample {
    uint32_t counts[LOOPS], lane_count, window;
    bool is_in_order, has_data;
    bool is_counted[LOOPS];  // all rows are
    int64_t rows;            // of a matrix
    tile_rule tiles[LOOPS][TILES];
    uint64_t fail_at, salt;
} tiles_sample;

typedef struct task_rows {
    int64_t matrix[TILES], begin[TILES], count[TILES];
} task_rows;

// -- the rules, slowly ----------------------------------------------------------------------------

static int64_t min_of(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t first_row(const tiles_sample *s, uint32_t loop, uint32_t which, int64_t i) {
    const tile_rule *tile = &s->tiles[loop][which];
    const int64_t tile_count = (s->rows + tile->rows - 1) / tile->rows;
    const int64_t in_turn = i % tile_count * tile->rows;
    switch (tile->kind) {
    case ROWS_IN_TURN: return in_turn;
    case ROWS_BACK: return (tile_count - 1) * tile->rows - in_turn;
    case ROWS_SHIFTED: return min_of(in_turn + (i < tile->at ? 0 : 1), s->rows - 1);
    case ROWS_ODD: return i * tile->step % s->rows;
    case ROWS_COUNTED: return i;
    case ROWS_EQUAL: return i < tile->at ? in_turn : first_row(s, loop, 0, i);
    default: return 0;
    }
}

static task_rows rows_of(const tiles_sample *s, uint32_t loop, int64_t i) {
    task_rows task;
    for (uint32_t k = 0; k < TILES; k++) {
        const tile_rule *tile = &s->tiles[loop][k];
        task.matrix[k] = s->is_counted[loop]                         ? k
                         : tile->kind == ROWS_EQUAL && i >= tile->at ? i % MATRICES
                                                                     : (i + k) % MATRICES;
        task.begin[k] = first_row(s, loop, k, i);
        task.count[k] = min_of(tile->rows, s->rows - task.begin[k]);
        task.count[k] = tile->has_limit && i >= tile->at ? 1 : task.count[k];
    }
    return task;
}

static uint64_t cycles_of(const tiles_sample *s, uint64_t index, int64_t rows0, int64_t rows2) {
    const uint64_t x = (index + s->salt) * UINT64_C(0x9e3779b97f4a7c15);
    return (x >> 40) % (s->salt % 2 ? 5 : 3000) + (uint64_t)(rows0 * 7 + rows2);
}

static ptowsp_cycles task_cycles(const ptowsp_task *task, void *user) {
    const tiles_sample *s = (const tiles_sample *)user;
    return task->index == s->fail_at
               ? ptowsp_task_fail(PTOWSP_UNSUPPORTED)
               : cycles_of(s, task->index, ptowsp_task_rows(task, 0), ptowsp_task_rows(task, 2));
}

static ptowsp_cycles do_nothing(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 0;
}

// Does task b wait for task a? Each of a loop.
static bool waits_for(const tiles_sample *s, uint32_t loop_b, const task_rows *b, uint32_t loop_a,
                      const task_rows *a) {
    for (uint32_t k = 0; k < TILES * TILES; k++) {
        const uint32_t i = k / TILES, j = k % TILES;
        if (a->matrix[i] == b->matrix[j] &&
            (s->tiles[loop_a][i].is_written || s->tiles[loop_b][j].is_written) &&
            a->begin[i] < b->begin[j] + b->count[j] && b->begin[j] < a->begin[i] + a->count[i]) {
            return true;
        }
    }
    return false;
}

static void run_slowly(const tiles_sample *s, slow_lanes *r) {
    static task_rows tasks[LOOPS * TASKS_MAX];
    static uint64_t ends[LOOPS * TASKS_MAX];
    memset(r, 0, sizeof *r);
    r->lane_count = s->lane_count;
    r->window = s->window;
    r->is_in_order = s->is_in_order;
    for (uint32_t n = 0; n < s->counts[0] + s->counts[1] && n != s->fail_at; n++) {
        const uint32_t loop = n >= s->counts[0];
        uint64_t ready = 0;
        tasks[n] = rows_of(s, loop, n - (loop ? s->counts[0] : 0));
        for (uint32_t k = 0; k < n; k++) {
            if (ends[k] > ready && waits_for(s, loop, &tasks[n], k >= s->counts[0], &tasks[k])) {
                ready = ends[k];
            }
        }
        ends[n] = slow_place(r, ready, n % s->lane_count,
                             cycles_of(s, n, tasks[n].count[0], tasks[n].count[2]));
    }
}

// -- the library ----------------------------------------------------------------------------------

static ptowsp_expr row_expr(ptowsp_module *m, const tiles_sample *s, uint32_t loop, uint32_t which,
                            ptowsp_expr i) {
    const tile_rule *tile = &s->tiles[loop][which];
    const int64_t tile_count = (s->rows + tile->rows - 1) / tile->rows;
    const ptowsp_expr in_turn =
        ptowsp_mul(ptowsp_rem(i, ptowsp_i64(m, tile_count)), ptowsp_i64(m, tile->rows));
    const ptowsp_expr is_before = ptowsp_lt(i, ptowsp_i64(m, tile->at));
    const ptowsp_expr none = {0};
    switch (tile->kind) {
    case ROWS_IN_TURN: return in_turn;
    case ROWS_BACK: return ptowsp_sub(ptowsp_i64(m, (tile_count - 1) * tile->rows), in_turn);
    case ROWS_SHIFTED:
        return ptowsp_min(
            ptowsp_add(in_turn, ptowsp_select(is_before, ptowsp_i64(m, 0), ptowsp_i64(m, 1))),
            ptowsp_i64(m, s->rows - 1));
    case ROWS_ODD:
        return ptowsp_rem(ptowsp_mul(i, ptowsp_i64(m, tile->step)), ptowsp_i64(m, s->rows));
    case ROWS_COUNTED: return i;
    case ROWS_EQUAL:
        return ptowsp_select(is_before, in_turn,
                             s->tiles[loop][0].kind == ROWS_ALL ? ptowsp_i64(m, 0)
                                                                : row_expr(m, s, loop, 0, i));
    default: return none;
    }
}

static ptowsp_expr matrix_expr(ptowsp_module *m, const tiles_sample *s, uint32_t loop,
                               uint32_t which, ptowsp_expr i) {
    const tile_rule *tile = &s->tiles[loop][which];
    const ptowsp_expr own = ptowsp_i64(m, which), none = ptowsp_i64(m, 0);
    if (s->is_counted[loop]) {
        return own;
    }
    const ptowsp_expr is_before = ptowsp_lt(i, ptowsp_i64(m, tile->at));
    const ptowsp_expr add = tile->kind == ROWS_EQUAL ? ptowsp_select(is_before, own, none) : own;
    return ptowsp_rem(ptowsp_add(i, add), ptowsp_i64(m, MATRICES));
}

static void build(ptowsp_module *m, tiles_sample *s) {
    const ptowsp_tensor_desc desc = {
        .name = "x", .dtype = PTOWSP_I32, .rank = 3, .shape = {MATRICES, s->rows, COLS}};
    const ptowsp_tensor x = ptowsp_tensor_make(m, &desc);
    PTOWSP_WORKLOAD(m, "main") {
        for (uint32_t loop = 0; loop < LOOPS; loop++) {
            static const char *const names[TILES] = {"a", "b", "c"};
            const tile_rule *tiles = s->tiles[loop];
            ptowsp_kernel_desc kernel = {.name = loop ? "second" : "first",
                                         .fn = do_nothing,
                                         .cost = task_cycles,
                                         .user = s};
            ptowsp_task_desc task = {0};
            for (uint32_t k = 0; k < TILES; k++) {
                const ptowsp_tile_param tile = {names[k],
                                                tiles[k].is_written ? PTOWSP_OUT : PTOWSP_IN,
                                                PTOWSP_I32, tiles[k].rows, COLS};
                kernel.tiles[k] = tile;
            }
            task.kernel = ptowsp_kernel_make(m, &kernel);
            PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, kernel.name, s->counts[loop])) {
                for (uint32_t k = 0; k < TILES; k++) {
                    ptowsp_view *view = &task.views[k];
                    view->tensor = x;
                    view->index[0] = matrix_expr(m, s, loop, k, i);
                    view->row = row_expr(m, s, loop, k, i);
                    if (tiles[k].has_limit) {
                        view->row_count =
                            ptowsp_select(ptowsp_lt(i, ptowsp_i64(m, tiles[k].at)),
                                          ptowsp_i64(m, tiles[k].rows), ptowsp_i64(m, 1));
                    }
                }
                ptowsp_task_make(m, &task);
            }
        }
    }
}

static void check_sample(tiles_sample *s) {
    fixture f = {0};
    static slow_lanes expected;
    f.context = test_lanes(2);
    assert_ok(ptowsp_module_create(f.context, NULL, &f.module));
    build(f.module, s);
    const ptowsp_schedule schedule = {.issue = s->is_in_order ? PTOWSP_ISSUE_IN_ORDER
                                                              : PTOWSP_ISSUE_DATAFLOW,
                                      .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
                                      .lane_count = s->lane_count,
                                      .window = s->window,
                                      .dependencies = PTOWSP_DEPENDENCIES_OVERLAP};
    const ptowsp_program_desc desc = {NULL, &schedule};
    program_make(&f, NULL, NULL, &desc);
    static int32_t data[MATRICES * ROWS_MAX * COLS];
    const ptowsp_buffer x = {.data = s->has_data ? data : NULL};
    assert_ok(ptowsp_run_bind_tensor(f.run, "x", &x));
    run_slowly(s, &expected);
    const bool fails = expected.task_count < s->counts[0] + s->counts[1];
    for (uint32_t way = 0; way < (s->has_data && !fails ? 3 : 2); way++) {
        const ptowsp_run_options options = {.mode =
                                                way < 2 ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE,
                                            .record_tasks = way == 1,
                                            .lane_count = way < 2 ? 1 : 2};
        assert_int_equal(ptowsp_run_execute(f.run, &options),
                         fails ? PTOWSP_UNSUPPORTED : PTOWSP_OK);
        assert_true(!fails || ptowsp_context_error(f.context).index == s->fail_at);
        slow_check(&expected, f.run);
    }
    fixture_free(&f);
}

// -- samples --------------------------------------------------------------------------------------

static void tile_random(tiles_sample *s, uint32_t loop, uint32_t which, uint64_t *random) {
    tile_rule *tile = &s->tiles[loop][which];
    const tile_rule *before = which ? &s->tiles[loop][0] : loop ? &s->tiles[0][0] : NULL;
    tile->kind =
        test_random(random) % 3 ? ROWS_IN_TURN : (rows_kind)(test_random(random) % ROWS_KINDS);
    tile->kind = tile->kind == ROWS_COUNTED || (tile->kind == ROWS_EQUAL && !which) ? ROWS_IN_TURN
                                                                                    : tile->kind;
    tile->kind = s->is_counted[loop] ? ROWS_COUNTED : tile->kind;
    tile->rows = before && test_random(random) % 4 ? before->rows : test_random_in(random, 1, 9);
    tile->rows = s->is_counted[loop] && test_random(random) % 4 ? 1 : tile->rows;
    tile->rows = tile->kind == ROWS_ALL ? s->rows : min_of(tile->rows, s->rows);
    tile->at = test_random_in(random, 0, s->counts[loop]);
    tile->step = test_random_in(random, 1, 9);
    tile->has_limit = !s->is_counted[loop] && test_random(random) % 8 == 0;
    tile->is_written = test_random(random) % 2;
}

TEST(batch__tasks_wait_for_rows_that_others_have_written) {
    const uint64_t seed = test_seed();
    for (uint32_t sample = 0; TEST_ROUNDS(sample, 300); sample++) {
        uint64_t random = seed + sample;
        tiles_sample s = {.rows = test_random_in(&random, 1, sample % 4 ? ROWS_MAX : 20)};
        s.lane_count = (uint32_t)test_random_in(&random, 1, LANES_MAX);
        s.window = test_random(&random) % 2 ? 0 : (uint32_t)test_random_in(&random, 1, 100);
        s.is_in_order = test_random(&random) % 2;
        s.has_data = test_random(&random) % 2;
        s.salt = test_random(&random);
        for (uint32_t loop = 0; loop < LOOPS; loop++) {
            s.is_counted[loop] = test_random(&random) % 5 == 0;
            s.counts[loop] =
                (uint32_t)test_random_in(&random, 1, s.is_counted[loop] ? s.rows : TASKS_MAX);
            for (uint32_t k = 0; k < TILES; k++) {
                tile_random(&s, loop, k, &random);
            }
        }
        s.fail_at = test_random(&random) % 4
                        ? UINT64_MAX
                        : (uint64_t)test_random_in(&random, 0, s.counts[0] + s.counts[1] - 1);
        check_sample(&s);
    }
}

// Up to some task all tiles are others; from then on two of a task are one, which ends the grid there, in a
// batch of a loop that is issued by the numbers of tiles alone.
TEST(batch__a_grid_that_ends_in_a_batch_keeps_all_waits) {
    static const int64_t at[] = {0, 1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 500, 699};
    for (uint32_t i = 0; i < 8 * COUNT_OF(at); i++) {
        tiles_sample s = {.rows = ROWS_MAX,
                          .lane_count = 3,
                          .window = i % 2 ? 0 : 20,
                          .is_in_order = i / 2 % 2,
                          .salt = i,
                          .fail_at = UINT64_MAX};
        for (uint32_t loop = 0; loop < LOOPS; loop++) {
            s.counts[loop] = loop ? 60 : TASKS_MAX;
            for (uint32_t k = 0; k < TILES; k++) {
                tile_rule *tile = &s.tiles[loop][k];
                tile->kind = loop == 0 && k == 1 ? ROWS_EQUAL : ROWS_IN_TURN;
                tile->rows = 4;
                tile->at = at[i / 8];
                tile->is_written = k < 2 && (k == 0 || i / 4 % 2);
            }
        }
        check_sample(&s);
    }
}
