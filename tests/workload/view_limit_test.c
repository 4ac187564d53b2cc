// Views with a limit of rows or columns that is known at run time: sizes that kernels see, tasks that
// wait for each other no longer, errors, on one lane and on several.

#include "test.h"

enum { ROWS = 10, COLS = 6, CASES = 24 };

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_tensor x;
    ptowsp_program *program;
    ptowsp_run *run;
    int32_t data[ROWS * COLS];
    int64_t at[4][CASES];  // row, col, row_count, col_count of task i
    uint32_t seen[CASES][2];
} fixture;

static ptowsp_cycles note(const ptowsp_task *task, void *user) {
    fixture *f = (fixture *)user;
    int64_t i = ptowsp_task_axis(task, 0);
    int32_t *data = (int32_t *)task->tiles[0].data;
    f->seen[i][0] = (uint32_t)ptowsp_task_rows(task, 0);
    f->seen[i][1] = (uint32_t)ptowsp_task_cols(task, 0);
    for (int64_t r = 0; r < ptowsp_task_rows(task, 0); r++) {
        for (int64_t c = 0; c < ptowsp_task_cols(task, 0); c++) {
            data[r * task->tiles[0].row_stride + c] += (int32_t)i + 1;
        }
    }
    return 10;
}

static ptowsp_kernel kernel_of(fixture *f, const char *name, int64_t rows, int64_t cols) {
    ptowsp_kernel_desc desc = {
        .name = name,
        .axis_count = 1,
        .fn = note,
        .cycles = 10,
        .user = f,
        .tiles[0] = (ptowsp_tile_param){"tile", PTOWSP_INOUT, PTOWSP_I32, rows, cols}};
    return ptowsp_kernel_make(f->m, &desc);
}

static void fixture_make(fixture *f) {
    ptowsp_module_desc desc = {"limits", 4};
    ptowsp_tensor_desc x = {"x", PTOWSP_I32, 2, {ROWS, COLS}, PTOWSP_LOCATION_GLOBAL};
    memset(f, 0, sizeof *f);
    assert_int_equal(ptowsp_context_create(NULL, &f->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(f->context, &desc, &f->m), PTOWSP_OK);
    f->x = ptowsp_tensor_make(f->m, &x);
}

static void fixture_free(fixture *f) {
    test_destroy(f->run, f->program, f->m, f->context);
}

static ptowsp_expr number(const fixture *f, const char *name, ptowsp_expr i) {
    return ptowsp_array_at(f->m, name, PTOWSP_I64, i);
}

// count tasks of a kernel, with the numbers of f->at.
static void tasks(const fixture *f, ptowsp_kernel kernel, int64_t count, bool has_columns) {
    PTOWSP_PARALLEL(f->m, i, ptowsp_axis_dense(f->m, "cases", count)) {
        ptowsp_task_desc task = {.kernel = kernel, .axes = {i}};
        task.views[0] = (ptowsp_view){.tensor = f->x,
                                      .row = number(f, "row", i),
                                      .col = number(f, "col", i),
                                      .row_count = number(f, "rows", i)};
        if (has_columns) {
            task.views[0].col_count = number(f, "cols", i);
        }
        ptowsp_task_make(f->m, &task);
    }
}

static void compile(fixture *f, const ptowsp_schedule *schedule) {
    ptowsp_program_desc desc = {NULL, schedule};
    if (ptowsp_program_create(f->context, f->m, &desc, &f->program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
    assert_int_equal(ptowsp_run_create(f->context, f->program, &f->run), PTOWSP_OK);
}

static void bind(const fixture *f, ptowsp_run *run, void *data) {
    static const char *const names[4] = {"row", "col", "rows", "cols"};
    for (int i = 0; i < 4; i++) {
        ptowsp_status status = ptowsp_run_bind_array(run, names[i], PTOWSP_I64, f->at[i], CASES);
        assert_true(status == PTOWSP_OK || i == 3);
    }
    test_bind(run, "x", data);
}

// -- sizes ----------------------------------------------------------------------------------------

TEST(view_limit__kernels_see_the_least_of_size_limit_and_edge) {
    // row, col, limits; seen by a kernel of any size, and by one of 4 x 3.
    static const int64_t cases[][8] = {
        {0, 0, 1, 1, 1, 1, 1, 1},         {0, 0, 10, 6, 10, 6, 4, 3}, {0, 0, 99, 99, 10, 6, 4, 3},
        {7, 4, 2, 1, 2, 1, 2, 1},         {7, 4, 4, 3, 3, 2, 3, 2},   {9, 5, 5, 5, 1, 1, 1, 1},
        {2, 1, INT64_MAX, 2, 8, 2, 4, 2}, {2, 1, 3, 7, 3, 5, 3, 3},
    };
    enum { COUNT = sizeof cases / sizeof cases[0] };
    for (int is_static = 0; is_static < 2; is_static++) {
        static fixture f;
        fixture_make(&f);
        ptowsp_kernel kernel =
            kernel_of(&f, "note", is_static ? 4 : PTOWSP_DYNAMIC, is_static ? 3 : PTOWSP_DYNAMIC);
        PTOWSP_WORKLOAD(f.m, "main") {
            tasks(&f, kernel, COUNT, true);
        }
        compile(&f, NULL);
        for (int i = 0; i < COUNT; i++) {
            for (int k = 0; k < 4; k++) {
                f.at[k][i] = cases[i][k];
            }
        }
        bind(&f, f.run, f.data);
        assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_OK);
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(f.seen[i][0], cases[i][is_static ? 6 : 4]);
            assert_int_equal(f.seen[i][1], cases[i][is_static ? 7 : 5]);
        }
        fixture_free(&f);
    }
}

// -- waiting --------------------------------------------------------------------------------------

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

// Tasks of 10 cycles on rows [0, 4), [4, 7), [7, 10) and [3, 5): the first three at once, the fourth
// after two of them. Without limits each waits for the one before.
FIXTURE_TEST(view_limit__tasks_wait_only_for_what_they_touch) {
    static const int64_t first[4] = {0, 4, 7, 3}, count[4] = {4, 3, 3, 2};
    ptowsp_kernel kernel = kernel_of(f, "note", PTOWSP_DYNAMIC, COLS);
    PTOWSP_WORKLOAD(f->m, "main") {
        tasks(f, kernel, 4, false);
    }
    ptowsp_schedule schedule = {.lane_count = 4};
    compile(f, &schedule);
    memcpy(f->at[0], first, sizeof first);
    memcpy(f->at[2], count, sizeof count);
    bind(f, f->run, f->data);
    for (int mode = 0; mode < 2; mode++) {
        ptowsp_run_options options = {.mode = mode ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE,
                                      .record_tasks = true};
        assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
        const ptowsp_task_record *records = ptowsp_run_records(f->run);
        for (int i = 0; i < 4; i++) {
            assert_true(records[i].start == (i < 3 ? 0 : 10));
        }
        assert_true(ptowsp_run_result(f->run)->makespan_cycles == 20);
    }
    for (int i = 0; i < 4; i++) {
        f->at[2][i] = ROWS;
    }
    assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_OK);
    assert_true(ptowsp_run_result(f->run)->makespan_cycles == 40);
}

// -- lanes ----------------------------------------------------------------------------------------

// Both tiles are limited, by other numbers.
static ptowsp_cycles note_both(const ptowsp_task *task, void *user) {
    int32_t more = (int32_t)(ptowsp_task_rows(task, 1) * 100 + ptowsp_task_cols(task, 1) * 1000);
    int32_t *data = (int32_t *)task->tiles[0].data;
    (void)user;
    for (int64_t r = 0; r < ptowsp_task_rows(task, 0); r++) {
        for (int64_t c = 0; c < ptowsp_task_cols(task, 0); c++) {
            data[r * task->tiles[0].row_stride + c] += more;
        }
    }
    return 10;
}

static void tasks_of_both(fixture *f) {
    ptowsp_kernel_desc desc = {.name = "both", .axis_count = 1, .fn = note_both, .cycles = 10};
    ptowsp_tensor_desc y = {"y", PTOWSP_I32, 2, {ROWS, COLS}, PTOWSP_LOCATION_GLOBAL};
    desc.tiles[0] =
        (ptowsp_tile_param){"tile", PTOWSP_INOUT, PTOWSP_I32, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC};
    desc.tiles[1] =
        (ptowsp_tile_param){"other", PTOWSP_IN, PTOWSP_I32, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(f->m, &desc)};
    task.views[1].tensor = ptowsp_tensor_make(f->m, &y);
    PTOWSP_PARALLEL(f->m, i, ptowsp_axis_dense(f->m, "pairs", CASES)) {
        task.axes[0] = i;
        task.views[0].tensor = f->x;
        task.views[0].row = number(f, "row", i);
        task.views[0].row_count = number(f, "rows", i);
        task.views[1].row_count = number(f, "cols", i);
        task.views[1].col_count = number(f, "rows", i);
        ptowsp_task_make(f->m, &task);
    }
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

TEST(view_limit__random_tiles_are_the_same_on_lanes) {
    uint64_t random = test_seed();
    static fixture f;
    fixture_make(&f);
    ptowsp_kernel kernel = kernel_of(&f, "note", PTOWSP_DYNAMIC, PTOWSP_DYNAMIC);
    PTOWSP_WORKLOAD(f.m, "main") {
        tasks(&f, kernel, CASES, true);
        tasks_of_both(&f);
    }
    ptowsp_schedule schedule = {.lane_count = 3};
    compile(&f, &schedule);
    ptowsp_context_desc desc = {
        .threads = PTOWSP_THREADS_USER, .lane_count = 3, .run_lanes = test_run_lanes_on_threads};
    ptowsp_context *context = test_context(&desc);
    ptowsp_run *many = test_run_of(context, f.program);
    for (int round = 0; TEST_ROUNDS(round, 60); round++) {
        int32_t other[ROWS * COLS] = {0};
        int32_t expected[ROWS * COLS] = {0};
        int32_t data[ROWS * COLS] = {0};
        memset(f.data, 0, sizeof f.data);
        for (int i = 0; i < CASES; i++) {
            int64_t row = test_random_in(&random, 0, ROWS - 1);
            int64_t col = test_random_in(&random, 0, COLS - 1);
            int64_t rows = test_random_in(&random, 1, ROWS + 2);
            int64_t cols = test_random_in(&random, 1, COLS + 2);
            int64_t values[4] = {row, col, rows, cols};
            for (int k = 0; k < 4; k++) {
                f.at[k][i] = values[k];
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
        ptowsp_buffer y = {.data = other};
        assert_int_equal(ptowsp_run_bind_tensor(f.run, "y", &y), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_tensor(many, "y", &y), PTOWSP_OK);
        bind(&f, f.run, f.data);
        assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_OK);
        assert_memory_equal(f.data, expected, sizeof expected);
        bind(&f, many, data);
        ptowsp_run_options options = {.lane_count = 3};
        assert_int_equal(ptowsp_run_execute(many, &options), PTOWSP_OK);
        assert_memory_equal(data, expected, sizeof expected);
        assert_true(ptowsp_run_result(many)->makespan_cycles ==
                    ptowsp_run_result(f.run)->makespan_cycles);
    }
    ptowsp_run_destroy(many);
    ptowsp_context_destroy(context);
    fixture_free(&f);
}

// -- errors ---------------------------------------------------------------------------------------

TEST(view_limit__less_than_one_row_or_column_is_an_error) {
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
    static fixture f;
    fixture_make(&f);
    ptowsp_kernel kernel = kernel_of(&f, "note", PTOWSP_DYNAMIC, PTOWSP_DYNAMIC);
    PTOWSP_WORKLOAD(f.m, "main") {
        tasks(&f, kernel, 2, true);
    }
    compile(&f, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[160];
        f.at[2][0] = f.at[3][0] = 1;
        f.at[2][1] = cases[i].rows;
        f.at[3][1] = cases[i].cols;
        bind(&f, f.run, f.data);
        snprintf(text, sizeof text,
                 "main/parallel i/task note (i = 1): tile: the tile of tensor x has %s",
                 cases[i].text);
        assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_INVALID_PARAMS);
        test_error_is(f.context, PTOWSP_INVALID_PARAMS, cases[i].index, text);
        assert_int_equal(f.seen[0][0], 0);  // found before any kernel
    }
    f.at[2][1] = 1;
    f.at[3][1] = 1;
    assert_int_equal(ptowsp_run_bind_array(f.run, "rows", PTOWSP_I64, f.at[2], 1), PTOWSP_OK);
    assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(f.context, PTOWSP_INVALID_PARAMS, 1,
                  "main/parallel i/task note (i = 1): array rows is read at 1; it has 1 elements");
    fixture_free(&f);
}

TEST(view_limit__constants_and_types_are_checked_at_once) {
    for (int which = 0; which < 4; which++) {
        static const char *const texts[4] = {
            "main/task note: the number of rows of tensor x is 0",
            "main/task note: the number of columns of tensor x is -1",
            "main/task note: the number of rows is u64, not i64",
            "main/task note: the number of columns is bool, not i64"};
        static fixture f;
        fixture_make(&f);
        ptowsp_kernel kernel = kernel_of(&f, "note", PTOWSP_DYNAMIC, PTOWSP_DYNAMIC);
        PTOWSP_WORKLOAD(f.m, "main") {
            ptowsp_task_desc task = {.kernel = kernel, .axes = {ptowsp_i64(f.m, 0)}};
            task.views[0].tensor = f.x;
            ptowsp_expr wrong = which == 0   ? ptowsp_i64(f.m, 0)
                                : which == 1 ? ptowsp_i64(f.m, -1)
                                : which == 2 ? ptowsp_u64(f.m, 1)
                                             : ptowsp_bool(f.m, true);
            if (which % 2) {
                task.views[0].col_count = wrong;
            } else {
                task.views[0].row_count = wrong;
            }
            ptowsp_task_make(f.m, &task);
        }
        assert_string_equal(ptowsp_module_error(f.m).text, texts[which]);
        fixture_free(&f);
    }
}

// -- slots and text -------------------------------------------------------------------------------

FIXTURE_TEST(view_limit__slot_loads_and_texts_know_the_limit) {
    char text[2048];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_expr zero = ptowsp_i64(f->m, 0);
        ptowsp_view view = {.tensor = f->x,
                            .row = ptowsp_i64(f->m, 2),
                            .rows = 5,
                            .cols = COLS,
                            .row_count = number(f, "rows", zero)};
        ptowsp_slot_load_make(f->m, 1, &view, number(f, "row", zero), zero);
    }
    ptowsp_module_print(f->m, ptowsp_output_to_buffer(&buffer));
    assert_non_null(strstr(text, "x at (2, 0) up to rows[0] rows"));
    compile(f, NULL);
    buffer.length = 0;
    ptowsp_program_print(f->program, ptowsp_output_to_buffer(&buffer));
    assert_non_null(strstr(text, " up to ("));
    for (int i = 0; i < ROWS * COLS; i++) {
        f->data[i] = 100 + i;
    }
    f->at[2][0] = 3;
    f->at[0][0] = 2;
    ptowsp_buffer x = {.data = f->data};
    assert_int_equal(ptowsp_run_bind_array(f->run, "row", PTOWSP_I64, f->at[0], 1), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_array(f->run, "rows", PTOWSP_I64, f->at[2], 1), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_tensor(f->run, "x", &x), PTOWSP_OK);
    assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_OK);
    assert_true(ptowsp_run_slot(f->run, 1) == 100 + 4 * COLS);
    f->at[0][0] = 3;
    assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, 3,
                  "main/slot_load 1: element (3, 0) of a tile of 3 x 6");
}

// A limit that a task computes is known only when that is done: nothing is checked before.
static ptowsp_cycles three(const ptowsp_task *task, void *user) {
    (void)user;
    *(int32_t *)task->tiles[0].data = 3;
    return 1;
}

FIXTURE_TEST(view_limit__a_limit_may_be_computed) {
    ptowsp_kernel kernel = kernel_of(f, "note", PTOWSP_DYNAMIC, COLS);
    ptowsp_kernel_desc desc = {.name = "three", .fn = three};
    desc.tiles[0] = (ptowsp_tile_param){"tile", PTOWSP_OUT, PTOWSP_I32, 1, 1};
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_expr none = {NULL, 0};
        ptowsp_view view = {.tensor = f->x};
        ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(f->m, &desc), .views = {view}};
        ptowsp_task_make(f->m, &task);
        ptowsp_slot_load_make(f->m, 1, &view, none, none);
        task.kernel = kernel;
        task.axes[0] = ptowsp_i64(f->m, 0);
        task.views[0].row_count = ptowsp_slot(f->m, 1, PTOWSP_TYPE_I64);
        ptowsp_task_make(f->m, &task);
    }
    compile(f, NULL);
    test_bind(f->run, "x", f->data);
    if (ptowsp_run_execute(f->run, NULL) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
    assert_int_equal(f->seen[0][0], 3);
}
