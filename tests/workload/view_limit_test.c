// Views with a limit of rows or columns that is known at run time: random ones, on one lane and on several. Sizes that
// kernels see are in tests/exec/runs.facts; waits and errors are cases (tests/cases/loops.case).

#include "support/fixture.h"

enum { ROWS = 10, COLS = 6, CASES = 24 };

static int32_t data[ROWS * COLS];  // of x
static int64_t at[4][CASES];       // row, col, row_count, col_count of task i

// Adds to the first tile its number from 1 on or, where both tiles are limited, by other numbers, the size of the
// second one.
static ptowsp_cycles note(const ptowsp_task *task, void *user) {
    const int64_t more = task->tile_count == 1
                             ? ptowsp_task_axis(task, 0) + 1
                             : ptowsp_task_rows(task, 1) * 100 + ptowsp_task_cols(task, 1) * 1000;
    int32_t *tile = (int32_t *)task->tiles[0].data;
    (void)user;
    for (int64_t r = 0; r < ptowsp_task_rows(task, 0); r++) {
        for (int64_t c = 0; c < ptowsp_task_cols(task, 0); c++) {
            tile[r * task->tiles[0].row_stride + c] += (int32_t)more;
        }
    }
    return 10;
}

static void bind(ptowsp_run *run, void *x) {
    static const char *const names[4] = {"row", "col", "rows", "cols"};
    for (int i = 0; i < 4; i++) {
        assert_ok(ptowsp_run_bind_array(run, names[i], PTOWSP_I64, at[i], CASES));
    }
    test_bind(run, "x", x);
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

TEST_F(view_limit__random_tiles_are_the_same_on_lanes) {
    uint64_t random = test_seed();
    ptowsp_schedule schedule = {.lane_count = 3};
    const ptowsp_parse_kernel kernels[] = {{.name = "note", .fn = note},
                                           {.name = "both", .fn = note}};
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = 2};
    const ptowsp_program_desc program_desc = {NULL, &schedule};
    program_make(f,
                 "module limits\naxis cases 24\narray row i64\narray col i64\narray rows i64\n"
                 "array cols i64\ntensor x i32 [10, 6] global\ntensor y i32 [10, 6] global\n"
                 "kernel note(axes 1, inout tile i32 ? x ?) vector, 10 cycles\n"
                 "kernel both(axes 1, inout tile i32 ? x ?, in other i32 ? x ?) vector, 10 cycles\n"
                 "workload main\n  parallel i in cases\n    task note(i) tile = x at (row[i], "
                 "col[i]) up to rows[i] rows up to cols[i] columns\n"
                 "  parallel i in cases\n    task both(i) tile = x at (row[i], 0) up to rows[i] "
                 "rows other = y up to cols[i] rows up to rows[i] columns\n",
                 &attached, &program_desc);
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
    test_destroy(many, NULL, NULL, context);
}
