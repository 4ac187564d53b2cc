// Views with a limit of rows or columns that is known at run time: sizes that kernels see, tasks that
// wait for each other no longer, errors, on one lane and on several.

#include "support/fixture.h"

enum { ROWS = 10, COLS = 6, CASES = 24 };

static int32_t data[ROWS * COLS];  // of x
static int64_t at[4][CASES];       // row, col, row_count, col_count of task i
static uint32_t seen[CASES][2];

static ptowsp_cycles note(const ptowsp_task *task, void *user) {
    int64_t i = ptowsp_task_axis(task, 0);
    int32_t *tile = (int32_t *)task->tiles[0].data;
    (void)user;
    seen[i][0] = (uint32_t)ptowsp_task_rows(task, 0);
    seen[i][1] = (uint32_t)ptowsp_task_cols(task, 0);
    for (int64_t r = 0; r < ptowsp_task_rows(task, 0); r++) {
        for (int64_t c = 0; c < ptowsp_task_cols(task, 0); c++) {
            tile[r * task->tiles[0].row_stride + c] += (int32_t)i + 1;
        }
    }
    return 10;
}

// Both tiles are limited, by other numbers.
static ptowsp_cycles note_both(const ptowsp_task *task, void *user) {
    int32_t more = (int32_t)(ptowsp_task_rows(task, 1) * 100 + ptowsp_task_cols(task, 1) * 1000);
    int32_t *tile = (int32_t *)task->tiles[0].data;
    (void)user;
    for (int64_t r = 0; r < ptowsp_task_rows(task, 0); r++) {
        for (int64_t c = 0; c < ptowsp_task_cols(task, 0); c++) {
            tile[r * task->tiles[0].row_stride + c] += more;
        }
    }
    return 10;
}

static ptowsp_cycles three(const ptowsp_task *task, void *user) {
    (void)user;
    *(int32_t *)task->tiles[0].data = 3;
    return 1;
}

// The module: a kernel `note` with a tile of `size`, other declarations and workloads.
static ptowsp_status parse(fixture *f, const char *size, const char *more) {
    char text[1024];
    const ptowsp_parse_kernel kernels[] = {{.name = "note", .fn = note},
                                           {.name = "both", .fn = note_both},
                                           {.name = "three", .fn = three}};
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = 3};
    snprintf(text, sizeof text,
             "module limits slots 4\narray row i64\narray col i64\narray rows i64\narray cols i64\n"
             "tensor x i32 [10, 6] global\n"
             "kernel note(axes 1, inout tile i32 %s) vector, 10 cycles\n%s",
             size, more);
    fixture_clear(f);
    memset(data, 0, sizeof data);
    memset(seen, 0, sizeof seen);
    return ptowsp_module_parse(f->context, text, strlen(text), &attached, &f->module, NULL);
}

static void compile(fixture *f, const char *size, const char *more,
                    const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {NULL, schedule};
    if (parse(f, size, more) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
    program_make(f, NULL, NULL, &desc);
}

// Tasks with the numbers of `at`, as many as axis `cases` says.
#define TASKS                                                                                      \
    "workload main\n  parallel i in cases\n"                                                       \
    "    task note(i) tile = x at (row[i], col[i]) up to rows[i] rows"

static void bind(ptowsp_run *run, void *x) {
    static const char *const names[4] = {"row", "col", "rows", "cols"};
    for (int i = 0; i < 4; i++) {
        assert_ok(ptowsp_run_bind_array(run, names[i], PTOWSP_I64, at[i], CASES));
    }
    test_bind(run, "x", x);
}

// -- sizes ----------------------------------------------------------------------------------------

TEST_F(view_limit__kernels_see_the_least_of_size_limit_and_edge) {
    // row, col, limits; seen by a kernel of any size, and by one of 4 x 3.
    static const int64_t cases[][8] = {
        {0, 0, 1, 1, 1, 1, 1, 1},         {0, 0, 10, 6, 10, 6, 4, 3}, {0, 0, 99, 99, 10, 6, 4, 3},
        {7, 4, 2, 1, 2, 1, 2, 1},         {7, 4, 4, 3, 3, 2, 3, 2},   {9, 5, 5, 5, 1, 1, 1, 1},
        {2, 1, INT64_MAX, 2, 8, 2, 4, 2}, {2, 1, 3, 7, 3, 5, 3, 3},
    };
    enum { COUNT = sizeof cases / sizeof cases[0] };
    for (int is_static = 0; is_static < 2; is_static++) {
        compile(f, is_static ? "4 x 3" : "? x ?", "axis cases 8\n" TASKS " up to cols[i] columns\n",
                NULL);
        for (int i = 0; i < COUNT; i++) {
            for (int k = 0; k < 4; k++) {
                at[k][i] = cases[i][k];
            }
        }
        bind(f->run, data);
        assert_ok(ptowsp_run_execute(f->run, NULL));
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(seen[i][0], cases[i][is_static ? 6 : 4]);
            assert_int_equal(seen[i][1], cases[i][is_static ? 7 : 5]);
        }
    }
}

// -- waiting --------------------------------------------------------------------------------------

// Tasks of 10 cycles on rows [0, 4), [4, 7), [7, 10) and [3, 5): the first three at once, the fourth
// after two of them. Without limits each waits for the one before.
TEST_F(view_limit__tasks_wait_only_for_what_they_touch) {
    static const int64_t first[4] = {0, 4, 7, 3}, count[4] = {4, 3, 3, 2};
    ptowsp_schedule schedule = {.lane_count = 4};
    compile(f, "? x 6", "axis cases 4\n" TASKS "\n", &schedule);
    memset(at, 0, sizeof at);
    memcpy(at[0], first, sizeof first);
    memcpy(at[2], count, sizeof count);
    bind(f->run, data);
    for (int mode = 0; mode < 2; mode++) {
        ptowsp_run_options options = {.mode = mode ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE,
                                      .record_tasks = true};
        assert_ok(ptowsp_run_execute(f->run, &options));
        const ptowsp_task_record *records = ptowsp_run_records(f->run);
        for (int i = 0; i < 4; i++) {
            assert_true(records[i].start == (i < 3 ? 0 : 10));
        }
        assert_true(ptowsp_run_result(f->run)->makespan_cycles == 20);
    }
    for (int i = 0; i < 4; i++) {
        at[2][i] = ROWS;
    }
    assert_ok(ptowsp_run_execute(f->run, NULL));
    assert_true(ptowsp_run_result(f->run)->makespan_cycles == 40);
}

// -- lanes ----------------------------------------------------------------------------------------

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

TEST_F(view_limit__random_tiles_are_the_same_on_lanes) {
    uint64_t random = test_seed();
    ptowsp_schedule schedule = {.lane_count = 3};
    compile(
        f, "? x ?",
        "axis cases 24\ntensor y i32 [10, 6] global\n"
        "kernel both(axes 1, inout tile i32 ? x ?, in other i32 ? x ?) vector, 10 cycles\n" TASKS
        " up to cols[i] columns\n  parallel i in cases\n"
        "    task both(i) tile = x at (row[i], 0) up to rows[i] rows "
        "other = y up to cols[i] rows up to rows[i] columns\n",
        &schedule);
    ptowsp_context_desc desc = {
        .threads = PTOWSP_THREADS_USER, .lane_count = 3, .run_lanes = test_run_lanes_on_threads};
    ptowsp_context *context = test_context(&desc);
    ptowsp_run *many = test_run_of(context, f->program);
    for (int round = 0; TEST_ROUNDS(round, 60); round++) {
        int32_t other[ROWS * COLS] = {0};
        int32_t expected[ROWS * COLS] = {0};
        int32_t other_data[ROWS * COLS] = {0};
        memset(data, 0, sizeof data);
        for (int i = 0; i < CASES; i++) {
            int64_t row = test_random_in(&random, 0, ROWS - 1);
            int64_t col = test_random_in(&random, 0, COLS - 1);
            int64_t rows = test_random_in(&random, 1, ROWS + 2);
            int64_t cols = test_random_in(&random, 1, COLS + 2);
            int64_t values[4] = {row, col, rows, cols};
            for (int k = 0; k < 4; k++) {
                at[k][i] = values[k];
            }
            for (int64_t r = row; r < row + rows && r < ROWS; r++) {
                for (int64_t c = col; c < col + cols && c < COLS; c++) {
                    expected[r * COLS + c] += i + 1;
                }
            }
            for (int64_t r = row; r < row + rows && r < ROWS; r++) {
                for (int64_t c = 0; c < COLS; c++) {
                    expected[r * COLS + c] +=
                        (int32_t)(least(cols, ROWS) * 100 + least(rows, COLS) * 1000);
                }
            }
        }
        test_bind(f->run, "y", other);
        test_bind(many, "y", other);
        bind(f->run, data);
        assert_ok(ptowsp_run_execute(f->run, NULL));
        assert_memory_equal(data, expected, sizeof expected);
        bind(many, other_data);
        ptowsp_run_options options = {.lane_count = 3};
        assert_ok(ptowsp_run_execute(many, &options));
        assert_memory_equal(other_data, expected, sizeof expected);
        assert_true(ptowsp_run_result(many)->makespan_cycles ==
                    ptowsp_run_result(f->run)->makespan_cycles);
    }
    ptowsp_run_destroy(many);
    ptowsp_context_destroy(context);
}

// -- errors ---------------------------------------------------------------------------------------

TEST_F(view_limit__less_than_one_row_or_column_is_an_error) {
    static const struct {
        int64_t rows, cols;
        const char *text;
        uint64_t index;
    } cases[] = {
        {0, 1, "0 rows", 0},
        {-3, 1, "-3 rows", PTOWSP_NEGATIVE_INDEX},
        {1, 0, "0 columns", 0},
        {2, INT64_MIN, "-9223372036854775808 columns", PTOWSP_NEGATIVE_INDEX},
    };
    compile(f, "? x ?", "axis cases 2\n" TASKS " up to cols[i] columns\n", NULL);
    memset(at, 0, sizeof at);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[160];
        at[2][0] = at[3][0] = 1;
        at[2][1] = cases[i].rows;
        at[3][1] = cases[i].cols;
        bind(f->run, data);
        snprintf(text, sizeof text,
                 "main/parallel i/task note (i = 1): tile: the tile of tensor x has %s",
                 cases[i].text);
        assert_invalid(ptowsp_run_execute(f->run, NULL));
        test_error_is(f->context, PTOWSP_INVALID_PARAMS, cases[i].index, text);
        assert_int_equal(seen[0][0], 0);  // found before any kernel
    }
    at[2][1] = 1;
    at[3][1] = 1;
    assert_ok(ptowsp_run_bind_array(f->run, "rows", PTOWSP_I64, at[2], 1));
    assert_invalid(ptowsp_run_execute(f->run, NULL));
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, 1,
                  "main/parallel i/task note (i = 1): array rows is read at 1; it has 1 elements");
}

TEST_F(view_limit__constants_and_types_are_checked_at_once) {
    static const char *const rows[][2] = {
        {"0 rows", "main/task note: the number of rows of tensor x is 0"},
        {"-1 columns", "main/task note: the number of columns of tensor x is -1"},
        {"1u rows", "main/task note: the number of rows is u64, not i64"},
        {"true columns", "main/task note: the number of columns is bool, not i64"}};
    for (int i = 0; i < 4; i++) {
        char text[100];
        snprintf(text, sizeof text, "workload main\n  task note(0) tile = x up to %s\n",
                 rows[i][0]);
        fixture_refused(f, parse(f, "? x ?", text), PTOWSP_INVALID_PARAMS, rows[i][1]);
    }
}

// -- slots and text -------------------------------------------------------------------------------

TEST_F(view_limit__slot_loads_and_texts_know_the_limit) {
    char text[2048];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    compile(f, "? x ?",
            "workload main\n  slot_load 1 = x at (2, 0) up to rows[0] rows of 5 x 6 "
            "element (row[0], (0))\n",
            NULL);
    ptowsp_module_print(f->module, ptowsp_output_to_buffer(&buffer));
    assert_non_null(strstr(text, "x at (2, 0) up to rows[0] rows"));
    buffer.length = 0;
    ptowsp_program_print(f->program, ptowsp_output_to_buffer(&buffer));
    assert_non_null(strstr(text, " up to ("));
    for (int i = 0; i < ROWS * COLS; i++) {
        data[i] = 100 + i;
    }
    at[2][0] = 3;
    at[0][0] = 2;
    ptowsp_buffer x = {.data = data};
    assert_ok(ptowsp_run_bind_array(f->run, "row", PTOWSP_I64, at[0], 1));
    assert_ok(ptowsp_run_bind_array(f->run, "rows", PTOWSP_I64, at[2], 1));
    assert_ok(ptowsp_run_bind_tensor(f->run, "x", &x));
    assert_ok(ptowsp_run_execute(f->run, NULL));
    assert_true(ptowsp_run_slot(f->run, 1) == 100 + 4 * COLS);
    at[0][0] = 3;
    assert_invalid(ptowsp_run_execute(f->run, NULL));
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, 3,
                  "main/slot_load 1: element (3, 0) of a tile of 3 x 6");
}

// A limit that a task computes is known only when that is done: nothing is checked before.
TEST_F(view_limit__a_limit_may_be_computed) {
    compile(f, "? x 6",
            "kernel three(axes 0, out tile i32 1 x 1) vector\nworkload main\n"
            "  task three() tile = x\n  slot_load 1 = x\n"
            "  task note(0) tile = x up to slot_i64[1] rows\n",
            NULL);
    test_bind(f->run, "x", data);
    if (ptowsp_run_execute(f->run, NULL) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
    assert_int_equal(seen[0][0], 3);
}
