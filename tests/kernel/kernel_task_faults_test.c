// Mistakes with tasks of tile kernels: sizes that do not go together, cost models that are none;
// and questions about what is no tile kernel.

#include "kernel_faults.h"

enum { SIDE = 16 };

typedef struct task_fixture {
    fixture f;
    ptowsp_program *program;
    ptowsp_run *run;
    float data[4][SIDE * SIDE];
} task_fixture;

// A task of two in and an out parameter, called a, b and c as their tensors are.
static void begin_task(task_fixture *t, int64_t rows, int64_t cols) {
    begin(&t->f);
    assert_int_not_equal(good_end(&t->f).id, 0);
    ptowsp_body_desc desc = {.name = "task"};
    t->f.k = ptowsp_kernel_begin(t->f.m, &desc);
    t->f.x = ptowsp_tile_in(t->f.k, "a", PTOWSP_F32, SIDE, SIDE);
    t->f.y = ptowsp_tile_in(t->f.k, "b", PTOWSP_F32, rows, cols);
    t->f.o = ptowsp_tile_out(t->f.k, "c", PTOWSP_F32, SIDE, SIDE);
    for (int i = 0; i < SIDE * SIDE; i++) {
        t->data[0][i] = t->data[1][i] = 1;
        t->data[2][i] = 7;
    }
}

// Ends the kernel, and binds tensors of these sizes, in which the tiles are cut off.
static void bind_task(task_fixture *t, const int64_t sizes[3][2]) {
    static const char *const names[] = {"a", "b", "c"};
    ptowsp_task_desc desc = {.kernel = ptowsp_kernel_end(t->f.k)};
    assert_string_equal(ptowsp_module_error(t->f.m).text, "");
    for (int i = 0; i < 3; i++) {
        ptowsp_tensor_desc tensor = {.name = names[i], .dtype = PTOWSP_F32, .rank = 2};
        tensor.shape[0] = tensor.shape[1] = PTOWSP_DYNAMIC;
        desc.views[i].tensor = ptowsp_tensor_make(t->f.m, &tensor);
    }
    PTOWSP_WORKLOAD(t->f.m, "w") {
        ptowsp_task_make(t->f.m, &desc);
    }
    assert_int_equal(ptowsp_program_create(t->f.context, t->f.m, NULL, &t->program), PTOWSP_OK);
    assert_int_equal(ptowsp_run_create(t->f.context, t->program, &t->run), PTOWSP_OK);
    for (int i = 0; i < 3; i++) {
        ptowsp_buffer buffer = {
            .data = t->data[i], .rank = 2, .shape[0] = sizes[i][0], .shape[1] = sizes[i][1]};
        assert_int_equal(ptowsp_run_bind_tensor(t->run, names[i], &buffer), PTOWSP_OK);
    }
}

static void end_task(task_fixture *t) {
    ptowsp_run_destroy(t->run);
    ptowsp_program_destroy(t->program);
    finish(&t->f);
}

// The task is refused with this text, in both modes, and nothing has been written.
static void expect_task(task_fixture *t, const int64_t sizes[3][2], const char *text) {
    bind_task(t, sizes);
    for (int mode = 0; mode < 2; mode++) {
        ptowsp_run_options options = {.mode = mode ? PTOWSP_RUN_EXECUTE : PTOWSP_RUN_TIME_ONLY};
        ptowsp_status status = ptowsp_run_execute(t->run, &options);
        assert_string_equal(ptowsp_context_error(t->f.context).text, text);
        assert_int_equal(status, PTOWSP_INVALID_PARAMS);
        for (int i = 0; i < SIDE * SIDE; i++) {
            assert_true(t->data[2][i] == 7);
        }
    }
    end_task(t);
}
TEST(tasks__tasks_whose_sizes_do_not_go_together) {
    task_fixture task, *t = &task;
    const int64_t rows_differ[3][2] = {{10, 16}, {11, 16}, {10, 16}};
    begin_task(t, SIDE, SIDE);
    ptowsp_tile_store(t->f.o, ptowsp_tile_add(t->f.x, t->f.y));
    expect_task(t, rows_differ, "w/task task: task 0: add: 10 and 11 valid rows");
    const int64_t cols_differ[3][2] = {{16, 3}, {16, 16}, {16, 3}};
    begin_task(t, SIDE, SIDE);
    ptowsp_tile_store(
        t->f.o, ptowsp_tile_select(ptowsp_tile_compare(t->f.x, PTOWSP_LT, t->f.y), t->f.x, t->f.y));
    expect_task(t, cols_differ, "w/task task: task 0: compare: 3 and 16 valid columns");
    const int64_t out_differs[3][2] = {{16, 3}, {16, 3}, {16, 4}};
    begin_task(t, SIDE, SIDE);
    ptowsp_tile_store(t->f.o, ptowsp_tile_exp(t->f.x));
    expect_task(t, out_differs, "w/task task: task 0: store: 4 and 3 valid columns");
    const int64_t vector_differs[3][2] = {{16, 3}, {5, 1}, {16, 3}};
    begin_task(t, SIDE, 1);
    ptowsp_tile_store(t->f.o, ptowsp_tile_div(t->f.x, t->f.y));
    expect_task(t, vector_differs, "w/task task: task 0: div: 16 and 5 valid rows");
    begin_task(t, SIDE, 1);
    ptowsp_tile_store(t->f.o, ptowsp_tile_row_broadcast(t->f.x, t->f.y));
    expect_task(t, vector_differs, "w/task task: task 0: row_broadcast: 16 and 5 valid rows");
    const int64_t depth_differs[3][2] = {{16, 7}, {8, 16}, {16, 16}};
    begin_task(t, SIDE, SIDE);
    ptowsp_tile_store(t->f.o, ptowsp_tile_matmul(t->f.x, t->f.y));
    expect_task(t, depth_differs, "w/task task: task 0: matmul: 7 and 8 valid rows");
    // What is always full goes with nothing less.
    const int64_t full_differs[3][2] = {{16, 7}, {16, 15}, {16, 16}};
    begin_task(t, SIDE, SIDE);
    ptowsp_value full = ptowsp_tile_full(t->f.k, PTOWSP_F32, SIDE, SIDE, 1);
    ptowsp_value column = ptowsp_tile_transpose(ptowsp_tile_colsum(t->f.y));
    ptowsp_tile_store(t->f.o, ptowsp_tile_mul(full, column));
    expect_task(t, full_differs, "w/task task: task 0: mul: 16 and 15 valid rows");
}

// Nothing of a run is touched when a later task is refused.
TEST(tasks__a_later_task_is_refused_before_the_first_runs) {
    task_fixture task, *t = &task;
    begin_task(t, SIDE, SIDE);
    ptowsp_tile_store(t->f.o, ptowsp_tile_add(t->f.x, t->f.y));
    ptowsp_kernel kernel = ptowsp_kernel_end(t->f.k);
    static const char *const names[] = {"a", "b", "c"};
    ptowsp_task_desc desc = {.kernel = kernel};
    ptowsp_axis steps = ptowsp_axis_dense(t->f.m, "steps", 2);
    for (int i = 0; i < 3; i++) {
        ptowsp_tensor_desc tensor = {.name = names[i],
                                     .dtype = PTOWSP_F32,
                                     .rank = 2,
                                     .shape[0] = i == 1 ? SIDE + 2 : SIDE + 1,
                                     .shape[1] = SIDE};
        desc.views[i].tensor = ptowsp_tensor_make(t->f.m, &tensor);
    }
    PTOWSP_WORKLOAD(t->f.m, "w") {
        PTOWSP_FOR_EACH(t->f.m, i, steps) {
            for (int j = 0; j < 3; j++) {
                desc.views[j].row = ptowsp_mul(i, ptowsp_i64(t->f.m, SIDE));
            }
            ptowsp_task_make(t->f.m, &desc);
        }
    }
    assert_int_equal(ptowsp_program_create(t->f.context, t->f.m, NULL, &t->program), PTOWSP_OK);
    assert_int_equal(ptowsp_run_create(t->f.context, t->program, &t->run), PTOWSP_OK);
    float data[3][(SIDE + 2) * SIDE];
    for (int i = 0; i < 3; i++) {
        ptowsp_buffer buffer = {0};
        memset(data[i], 0, sizeof data[i]);
        data[2][5] = 7;
        buffer.data = data[i];
        assert_int_equal(ptowsp_run_bind_tensor(t->run, names[i], &buffer), PTOWSP_OK);
    }
    data[2][5] = 7;
    assert_int_equal(ptowsp_run_execute(t->run, NULL), PTOWSP_INVALID_PARAMS);
    ptowsp_error error = ptowsp_context_error(t->f.context);
    assert_string_equal(error.text,
                        "w/for_each i/task task (i = 1): task 1: add: 1 and 2 valid rows");
    assert_int_equal(error.index, 1);
    assert_true(data[2][5] == 7);
    end_task(t);
}

// -- questions ------------------------------------------------------------------------------------

static ptowsp_cycles one_cycle(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 1;
}

static bool count_text(void *user, const void *text, size_t length) {
    (void)text;
    *(size_t *)user += length;
    return true;
}

static ptowsp_cycles two_cycles(const ptowsp_insn *insn, void *user) {
    (void)insn;
    ++*(uint32_t *)user;
    return 2;
}

TEST(tasks__questions_about_what_is_no_tile_kernel) {
    fixture f;
    begin(&f);
    ptowsp_kernel good = good_end(&f), no_kernel = {0}, beyond = {77};
    ptowsp_kernel_desc desc = {.name = "function", .fn = one_cycle};
    ptowsp_kernel function = ptowsp_kernel_make(f.m, &desc);
    const ptowsp_kernel kernels[] = {no_kernel, beyond, function};
    ptowsp_kernel_stats stats;
    size_t length = 0;
    ptowsp_output text = {count_text, &length};
    for (int i = 0; i < 3; i++) {
        ptowsp_cycles cycles = 99;
        assert_int_equal(ptowsp_kernel_measure(f.m, kernels[i], NULL, &stats),
                         PTOWSP_INVALID_PARAMS);
        assert_int_equal(ptowsp_kernel_insn_count(f.m, kernels[i]), 0);
        assert_string_equal(ptowsp_kernel_insn_at(f.m, kernels[i], 0, &cycles).name, "none");
        assert_int_equal(cycles, 0);
        ptowsp_kernel_insn_at(f.m, kernels[i], 0, NULL);
        ptowsp_kernel_print(f.m, kernels[i], NULL, text);
    }
    assert_int_equal(length, 0);
    assert_int_equal(ptowsp_kernel_measure(f.m, good, NULL, NULL), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_kernel_measure(NULL, good, NULL, &stats), PTOWSP_INVALID_PARAMS);
    ptowsp_cost cost = {.model = PTOWSP_MODEL_USER};
    assert_int_equal(ptowsp_kernel_measure(f.m, good, &cost, &stats), PTOWSP_INVALID_PARAMS);
    cost.model = (ptowsp_model)99;
    assert_int_equal(ptowsp_kernel_measure(f.m, good, &cost, &stats), PTOWSP_INVALID_PARAMS);
    uint32_t calls = 0;
    ptowsp_cost user = {.model = PTOWSP_MODEL_USER, .fn = two_cycles, .user = &calls};
    assert_int_equal(ptowsp_kernel_measure(f.m, good, &user, &stats), PTOWSP_OK);
    assert_int_equal(calls, ptowsp_kernel_insn_count(f.m, good));  // flags as well
    uint32_t count = ptowsp_kernel_insn_count(f.m, good);
    assert_int_equal(count, stats.insn_count);
    ptowsp_cycles cycles = 99;
    assert_string_equal(ptowsp_kernel_insn_at(f.m, good, count, &cycles).name, "none");
    assert_int_equal(cycles, 0);
    ptowsp_kernel_print(f.m, good, NULL, text);
    assert_true(length > 0);
    assert_string_equal(ptowsp_module_error(f.m).text, "");
    finish(&f);
}

TEST(tasks__a_run_with_a_bad_cost_model) {
    task_fixture task, *t = &task;
    const int64_t sizes[3][2] = {{16, 16}, {16, 16}, {16, 16}};
    begin_task(t, SIDE, SIDE);
    ptowsp_tile_store(t->f.o, ptowsp_tile_add(t->f.x, t->f.y));
    bind_task(t, sizes);
    ptowsp_run_options options = {.cost.model = PTOWSP_MODEL_USER};
    assert_int_equal(ptowsp_run_execute(t->run, &options), PTOWSP_INVALID_PARAMS);
    assert_true(t->data[2][0] == 7);
    assert_string_equal(ptowsp_context_error(t->f.context).text,
                        "run: there is no cost model 3, or it lacks its function");
    options.cost.model = (ptowsp_model)9;
    assert_int_equal(ptowsp_run_execute(t->run, &options), PTOWSP_INVALID_PARAMS);
    options.cost.model = PTOWSP_MODEL_A5;
    assert_int_equal(ptowsp_run_execute(t->run, &options), PTOWSP_OK);
    assert_true(t->data[2][0] == 2);
    end_task(t);
}
