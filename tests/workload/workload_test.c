// Workloads from the outside: what tasks see of loops over sparse axes, and how results are named.

#include "test.h"

typedef struct seen {
    int64_t args[32][3];
    size_t count;
} seen;

static ptowsp_cycles see(const ptowsp_task *task, void *user) {
    seen *s = (seen *)user;
    assert_true(s->count < 32);
    for (uint32_t i = 0; i < 3; i++) {
        s->args[s->count][i] = ptowsp_task_axis(task, i);
    }
    s->count++;
    return 1;
}

static const int32_t indptr[] = {0, 2, 2, 5};
static const int32_t indices[] = {4, 1, 0, 3, 2};

// Tasks of (row or 0, column, entry) over the CSR arrays above.
static void run_sparse(bool by_row, bool record, seen *out) {
    out->count = 0;
    ptowsp_context *context = test_context(NULL);
    ptowsp_module *m = test_module(context, NULL);
    ptowsp_kernel_desc kernel = {.name = "see", .axis_count = 3, .fn = see, .user = out};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &kernel)};
    ptowsp_axis axis = ptowsp_axis_sparse(m, "routes");
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_FOR_EACH(m, row, ptowsp_axis_dense(m, "rows", by_row ? 3 : 1)) {
            ptowsp_axis over = by_row ? ptowsp_axis_row(m, axis, row) : axis;
            PTOWSP_SELECT(m, column, over) {
                task.axes[0] = row;
                task.axes[1] = column;
                task.axes[2] = ptowsp_loop_entry(column);
                ptowsp_task_make(m, &task);
            }
        }
    }
    ptowsp_program *program = test_program(context, m, NULL);
    ptowsp_run *run = test_run_of(context, program);
    const ptowsp_csr csr = {PTOWSP_I32, indptr, indices, 3, 5};
    assert_ok(ptowsp_run_bind_csr(run, "routes", &csr));
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_EXECUTE, .record_tasks = record};
    assert_ok(ptowsp_run_execute(run, &options));
    test_destroy(run, program, m, context);
}

TEST(workload__sparse_loops_give_column_and_entry) {
    static const int64_t rows[] = {0, 0, 2, 2, 2};  // row 1 is empty
    for (int record = 0; record < 2; record++) {    // in batches, and one by one
        seen s;
        run_sparse(false, record, &s);
        assert_int_equal(s.count, 5);
        for (int64_t i = 0; i < 5; i++) {
            assert_int_equal(s.args[i][1], indices[i]);
            assert_int_equal(s.args[i][2], i);
        }
        run_sparse(true, record, &s);
        assert_int_equal(s.count, 5);
        for (int64_t i = 0; i < 5; i++) {
            assert_int_equal(s.args[i][0], rows[i]);
            assert_int_equal(s.args[i][1], indices[i]);
            assert_int_equal(s.args[i][2], i);
        }
    }
}

CONTEXT_TEST(workload__an_entry_is_that_of_a_sparse_loop) {
    ptowsp_module *m = test_module(context, NULL);
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, "n", 3)) {
            assert_int_equal(ptowsp_loop_entry(i).id, 0);
        }
    }
    assert_string_equal(ptowsp_module_error(m).text,
                        "main/for_each i: loop_entry: it is not the variable of a loop over a "
                        "sparse axis");
    ptowsp_module_destroy(m);
    assert_ok(ptowsp_module_create(context, NULL, &m));
    ptowsp_expr kept = {NULL, 0};
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_SELECT(m, e, ptowsp_axis_sparse(m, "s")) {
            kept = ptowsp_loop_entry(e);
            char text[16];
            ptowsp_output_buffer buffer = {text, sizeof text, 0};
            ptowsp_expr_print(kept, ptowsp_output_to_buffer(&buffer));
            assert_string_equal(text, "entry(e)");
        }
        ptowsp_slot_set_make(m, 0, kept);
    }
    assert_string_equal(ptowsp_module_error(m).text,
                        "main: the value of a slot: variable e belongs to a scope that is not "
                        "around");
    ptowsp_module_destroy(m);
}

CONTEXT_TEST(workload__records_are_named_by_the_program) {
    ptowsp_module *m = test_module(context, NULL);
    ptowsp_kernel_desc kernel = {.name = "k", .cycles = 7};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &kernel)};
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "n", 2)) {
            ptowsp_task_make(m, &task);
        }
    }
    ptowsp_program *program = test_program(context, m, NULL);
    ptowsp_module_destroy(m);
    ptowsp_run *run = test_run_of(context, program);
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true};
    assert_ok(ptowsp_run_execute(run, &options));
    const ptowsp_task_record *record = &ptowsp_run_records(run)[1];
    assert_string_equal(ptowsp_program_kernel_name(program, record->kernel), "k");
    assert_null(ptowsp_program_kernel_name(program, 0));
    assert_null(ptowsp_program_kernel_name(program, 2));
    char text[64];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_program_print_place(program, record->node, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(text, "main/parallel i/task k");
    ptowsp_program_print_place(program, 1000, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(text, "");
    test_destroy(run, program, NULL, NULL);
}
