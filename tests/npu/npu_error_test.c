// What is wrong with bindings and data is told by an emitted tree as by the library: the same
// status, the same task as index, whatever the numbers of threads, cores and entries in the ring.
// One program, built once, and bound rightly and wrongly.

#include "npu_equal.h"

enum { ROWS = 8, SIZES = 6 };

PTOWSP_SOURCE(
    step_source, static inline ptowsp_cycles step(const ptowsp_task *task, void *user) {
        int64_t what = (int64_t)ptowsp_task_scalar(task, 0);
        int32_t *cell = (int32_t *)task->tiles[0].data;
        if (user || what == 77) {
            return ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
        } else if (what == 78) {
            return ptowsp_task_fail(PTOWSP_LIMIT_EXCEEDED);
        } else if (what == 79) {
            return PTOWSP_CYCLES_MAX;  // two of them are too much
        } else if (what == 80) {
            return PTOWSP_CYCLES_MAX + 1;  // no number of cycles, and no status
        }
        *cell = (int32_t)((uint32_t)*cell * 3 + (uint32_t)ptowsp_task_axis(task, 0) + 1);
        return 10;
    })

typedef struct scene {
    const char *name;
    ptowsp_status status;
    int64_t batch, row, at;  // row: of the first tile; at: where `sizes` is read
    int64_t sizes[SIZES];    // scalars, as read
    int64_t lengths[2];      // of `kv`, by batch
    int32_t indptr[3], indices[2];
    const char *unbound;   // what is not bound
    int64_t length_count;  // 0: 2
    int64_t column_rows;   // of tensor d; 0: 4
} scene;

// clang-format off
static const scene scenes[] = {
    {"all is well", PTOWSP_OK, 2, 0, 0, {1, 2, 3}, {2, 3}, {0, 1, 2}, {0, 1}, NULL, 0, 0},
    {"nothing to do", PTOWSP_OK, 0, 0, 0, {1}, {0, 0}, {0, 0, 0}, {0, 0}, NULL, 0, 0},
    {"a tile at the edge", PTOWSP_OK, 1, 7, 0, {1}, {1, 1}, {0, 0, 0}, {0, 0}, NULL, 0, 0},
    {"a tile behind the edge", PTOWSP_INVALID_PARAMS, 2, 7, 0, {1}, {3, 3}, {0, 0, 0}, {0, 0}, NULL, 0, 0},
    {"a tile before the first row", PTOWSP_INVALID_PARAMS, 2, -1, 0, {1}, {1, 3}, {0, 0, 0}, {0, 0}, NULL, 0, 0},
    {"an element outside", PTOWSP_INVALID_PARAMS, 2, 0, 4, {1}, {1, 3}, {0, 0, 0}, {0, 0}, NULL, 0, 0},
    {"an element far outside", PTOWSP_INVALID_PARAMS, 1, 0, INT64_MAX, {1}, {1, 1}, {0, 0, 0}, {0, 0}, NULL, 0, 0},
    {"an element before", PTOWSP_INVALID_PARAMS, 1, 0, -3, {1}, {1, 1}, {0, 0, 0}, {0, 0}, NULL, 0, 0},
    {"a kernel that fails", PTOWSP_KERNEL_FAILED, 2, 0, 0, {1, 77, 3}, {2, 3}, {0, 1, 2}, {0, 1}, NULL, 0, 0},
    {"two kernels that fail", PTOWSP_KERNEL_FAILED, 2, 0, 0, {1, 1, 77, 78}, {3, 3}, {0, 1, 2}, {0, 1}, NULL, 0, 0},
    {"one that fails with a status", PTOWSP_LIMIT_EXCEEDED, 2, 0, 0, {78, 77}, {2, 3}, {0, 1, 2}, {0, 1}, NULL, 0, 0},
    {"too many cycles", PTOWSP_LIMIT_EXCEEDED, 2, 0, 0, {79, 79}, {2, 3}, {0, 1, 2}, {0, 1}, NULL, 0, 0},
    {"cycles that are none", PTOWSP_KERNEL_FAILED, 2, 0, 0, {1, 80}, {2, 3}, {0, 1, 2}, {0, 1}, NULL, 0, 0},
    {"a negative length", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, -1}, {0, 1, 2}, {0, 1}, NULL, 0, 0},
    {"too few lengths", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {0, 1, 2}, {0, 1}, NULL, 1, 0},
    {"too few sparse rows", PTOWSP_INVALID_PARAMS, 3, 0, 0, {1}, {2, 1}, {0, 1, 2}, {0, 1}, NULL, 0, 0},
    {"sparse rows that decrease", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {0, 2, 1}, {0, 1}, NULL, 0, 0},
    {"sparse rows that begin late", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {1, 1, 2}, {0, 1}, NULL, 0, 0},
    {"a negative column", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {0, 1, 2}, {0, -1}, NULL, 0, 0},
    {"a column outside the tensor", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {0, 1, 2}, {0, 9}, NULL, 0, 0},
    {"a slot load outside", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {0, 1, 2}, {0, 0}, NULL, 0, 1},
    {"no size", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, "batch", 0, 0},
    {"no lengths", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, "kv", 0, 0},
    {"no sparse rows", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, "pages", 0, 0},
    {"no symbol", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, "at", 0, 0},
    {"no array", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, "sizes", 0, 0},
    {"no tensor", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, "x", 0, 0},
    {"no other tensor", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, "d", 0, 0},
};
// clang-format on

// -- the program ----------------------------------------------------------------------------------

static ptowsp_node make_task_after(ptowsp_module *m, ptowsp_kernel kernel, ptowsp_tensor tensor,
                                   ptowsp_expr axis, ptowsp_expr row, ptowsp_expr scalar,
                                   ptowsp_node after) {
    ptowsp_task_desc desc = {.kernel = kernel,
                             .axes[0] = axis,
                             .views[0].tensor = tensor,
                             .views[0].row = row,
                             .scalars[0] = scalar,
                             .after[0] = after};
    return ptowsp_task_make(m, &desc);
}

static ptowsp_node make_task(ptowsp_module *m, ptowsp_kernel kernel, ptowsp_tensor tensor,
                             ptowsp_expr axis, ptowsp_expr row, ptowsp_expr scalar) {
    const ptowsp_node none = {0};
    return make_task_after(m, kernel, tensor, axis, row, scalar, none);
}

static ptowsp_tensor make_tensor(ptowsp_module *m, const char *name, int64_t rows, int64_t cols) {
    const ptowsp_tensor_desc desc = {
        name, PTOWSP_I32, 2, {rows, cols, 0, 0, 0, 0, 0, 0}, PTOWSP_LOCATION_GLOBAL};
    return ptowsp_tensor_make(m, &desc);
}

static ptowsp_kernel make_kernel(ptowsp_module *m) {
    ptowsp_kernel_desc desc = {0};
    const ptowsp_tile_param tile = {"tile", PTOWSP_INOUT, PTOWSP_I32, 2, 2};
    const ptowsp_scalar_param scalar = {"what", PTOWSP_TYPE_I64};
    desc.name = "step";
    desc.axis_count = 1;
    desc.tiles[0] = tile;
    desc.scalars[0] = scalar;
    desc.fn = step;
    desc.source.text = step_source;
    return ptowsp_kernel_make(m, &desc);
}

// For each of a batch: tasks for its row of kv, then for its row of pages; then a slot is loaded.
static void make_module(ptowsp_module *m) {
    ptowsp_axis batch = ptowsp_axis_dynamic(m, "batch"), kv = ptowsp_axis_ragged(m, "kv");
    ptowsp_axis pages = ptowsp_axis_sparse(m, "pages");
    ptowsp_tensor x = make_tensor(m, "x", ROWS, 4), d = make_tensor(m, "d", PTOWSP_DYNAMIC, 4);
    ptowsp_kernel kernel = make_kernel(m);
    ptowsp_expr row = ptowsp_cast(ptowsp_symbol(m, "row"), PTOWSP_TYPE_I64);
    ptowsp_expr at = ptowsp_cast(ptowsp_symbol(m, "at"), PTOWSP_TYPE_I64), zero = ptowsp_i64(m, 0);
    PTOWSP_WORKLOAD(m, "main") {
        ptowsp_expr b = ptowsp_parallel_begin(m, "b", batch);
        ptowsp_expr k = ptowsp_for_each_begin(m, "k", ptowsp_axis_row(m, kv, b));
        ptowsp_expr size = ptowsp_array_at(m, "sizes", PTOWSP_I64, ptowsp_add(at, k));
        make_task(m, kernel, x, k, ptowsp_add(row, b), size);
        ptowsp_scope_end(m);
        ptowsp_expr p = ptowsp_select_begin(m, "p", ptowsp_axis_row(m, pages, b));
        make_task(m, kernel, d, p, p, zero);
        ptowsp_scope_end(m);
        ptowsp_scope_end(m);
        ptowsp_view view = {.tensor = d, .row = ptowsp_i64(m, 2)};
        view.rows = view.cols = 1;
        ptowsp_slot_load_make(m, 0, &view, zero, zero);
    }
}

// -- scenes ---------------------------------------------------------------------------------------

static bool is_bound(const scene *now, const char *name) {
    return !now->unbound || strcmp(now->unbound, name) != 0;
}

static void bind_scene(ptowsp_run *run, const scene *now, int32_t *x, int32_t *d) {
    const ptowsp_csr csr = {PTOWSP_I32, now->indptr, now->indices, 2, 2};
    uint64_t lengths = now->length_count ? (uint64_t)now->length_count : 2;
    ptowsp_buffer buffer = {0};
    if (is_bound(now, "batch")) {
        assert_int_equal(ptowsp_run_bind_size(run, "batch", now->batch), PTOWSP_OK);
    }
    if (is_bound(now, "kv")) {
        assert_int_equal(ptowsp_run_bind_lengths(run, "kv", PTOWSP_I64, now->lengths, lengths),
                         PTOWSP_OK);
    }
    if (is_bound(now, "pages")) {
        assert_int_equal(ptowsp_run_bind_csr(run, "pages", &csr), PTOWSP_OK);
    }
    assert_int_equal(ptowsp_run_bind_symbol(run, "row", (uint64_t)now->row), PTOWSP_OK);
    if (is_bound(now, "at")) {
        assert_int_equal(ptowsp_run_bind_symbol(run, "at", (uint64_t)now->at), PTOWSP_OK);
    }
    if (is_bound(now, "sizes")) {
        assert_int_equal(ptowsp_run_bind_array(run, "sizes", PTOWSP_I64, now->sizes, SIZES),
                         PTOWSP_OK);
    }
    buffer.data = x;
    buffer.size = ROWS * 4 * sizeof *x;
    if (is_bound(now, "x")) {
        assert_int_equal(ptowsp_run_bind_tensor(run, "x", &buffer), PTOWSP_OK);
    }
    buffer.data = d;
    buffer.rank = 2;
    buffer.shape[0] = now->column_rows ? now->column_rows : 4;
    buffer.shape[1] = 4;
    buffer.size = (uint64_t)buffer.shape[0] * 4 * sizeof *d;
    if (is_bound(now, "d")) {
        assert_int_equal(ptowsp_run_bind_tensor(run, "d", &buffer), PTOWSP_OK);
    }
}

static void check_scene(ptowsp_context *context, const ptowsp_program *program, ptowsp_npu *npu,
                        const scene *now) {
    int32_t x[ROWS * 4], d[16];
    npu_subject subject = {0};
    snprintf(npu_now.doing, sizeof npu_now.doing, "%s", now->name);
    for (int i = 0; i < ROWS * 4; i++) {
        x[i] = d[i % 16] = i;
    }
    ptowsp_run *run = test_run_of(context, program);
    bind_scene(run, now, x, d);
    subject.context = context;
    subject.run = run;
    subject.npu = npu;
    subject.model = PTOWSP_MODEL_UNIT;
    subject.slot_count = 1;
    npu_block_add(&subject, x, sizeof x);
    npu_block_add(&subject, d, sizeof d);
    npu_subject_check(&subject);
    if (subject.status != now->status) {
        NPU_FAIL("the library says %s: %s", ptowsp_status_name(subject.status), subject.error_text);
    }
    ptowsp_run_destroy(run);
}

static void check_all(const ptowsp_schedule *schedule, const char *name) {
    ptowsp_program *program = NULL;
    const ptowsp_program_desc desc = {NULL, schedule};
    ptowsp_context *context = test_context(NULL);
    ptowsp_module *m = test_module(context, NULL);
    make_module(m);
    snprintf(npu_now.doing, sizeof npu_now.doing, "%s", name);
    if (ptowsp_program_create(context, m, &desc, &program) != PTOWSP_OK) {
        NPU_FAIL("%s", ptowsp_context_error(context).text);
    }
    ptowsp_npu *npu = npu_build(context, program);
    for (size_t i = 0; npu && i < sizeof scenes / sizeof scenes[0]; i++) {
        check_scene(context, program, npu, &scenes[i]);
    }
    ptowsp_npu_destroy(npu);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

static void npu__errors_of_trees_are_those_of_the_library(void **state) {
    (void)state;
    ptowsp_schedule schedule = {.lane_count = 3};
    check_all(&schedule, "errors in dataflow");
}

static void npu__errors_in_order_are_those_of_the_library(void **state) {
    (void)state;
    ptowsp_schedule schedule = {.issue = PTOWSP_ISSUE_IN_ORDER,
                                .dispatch = PTOWSP_DISPATCH_WORK_STEALING,
                                .lane_count = 2,
                                .window = 3};
    check_all(&schedule, "errors in order");
}

// -- processes ------------------------------------------------------------------------------------

typedef struct process_scene {
    const char *name;
    ptowsp_status status;
    int64_t first;     // what the task before the pipeline is told
    int64_t sizes[3];  // and those in it, by token
    int64_t row;       // of their tile
    int64_t element;   // the row that is loaded of a view of two
    uint64_t at;       // where `sizes` is read
} process_scene;

static const process_scene process_scenes[] = {
    {"a pipeline is well", PTOWSP_OK, 1, {1, 2, 3}, 0, 1, 0},
    {"a kernel fails in a process", PTOWSP_KERNEL_FAILED, 1, {1, 77, 3}, 0, 0, 0},
    {"a kernel gives a status in a process", PTOWSP_LIMIT_EXCEEDED, 1, {78, 2, 3}, 0, 0, 0},
    {"a tile of a process is outside", PTOWSP_INVALID_PARAMS, 1, {1, 2, 3}, ROWS, 0, 0},
    {"an element of a process is outside", PTOWSP_INVALID_PARAMS, 1, {1, 2, 3}, 0, 0, 3},
    {"a load of a process is outside its view", PTOWSP_INVALID_PARAMS, 1, {1, 2, 3}, 0, 2, 0},
    {"a kernel before a pipeline fails", PTOWSP_KERNEL_FAILED, 77, {1, 2, 3}, 0, 0, 0},
};

// What a process calls, and the program does, too: in parallel two tasks, of which the second waits for
// the first; then a slot is loaded.
static void make_process_body(ptowsp_module *m, ptowsp_kernel kernel, ptowsp_tensor x) {
    ptowsp_expr token = ptowsp_workload_param(m, "token", PTOWSP_TYPE_I64);
    ptowsp_expr row = ptowsp_cast(ptowsp_symbol(m, "row"), PTOWSP_TYPE_I64);
    ptowsp_expr at = ptowsp_cast(ptowsp_symbol(m, "at"), PTOWSP_TYPE_I64);
    ptowsp_expr size = ptowsp_array_at(m, "sizes", PTOWSP_I64, ptowsp_add(at, token));
    PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "two", 2)) {
        ptowsp_node first = make_task(m, kernel, x, i, row, size);
        make_task_after(m, kernel, x, token, row, size, first);
    }
    ptowsp_view view = {.tensor = x};
    view.rows = view.cols = 2;
    ptowsp_slot_load_make(m, 1, &view, ptowsp_cast(ptowsp_symbol(m, "element"), PTOWSP_TYPE_I64),
                          ptowsp_i64(m, 0));
    make_task(m, kernel, x, ptowsp_slot(m, 1, PTOWSP_TYPE_I64), row, size);
}

// A task; a pipeline that waits for it, with a token for each element of `sizes`; a task behind it.
static void make_processes(ptowsp_module *m) {
    ptowsp_kernel kernel = make_kernel(m);
    ptowsp_tensor x = make_tensor(m, "x", ROWS, 4);
    ptowsp_channel_desc channel = {.name = "tokens"};
    ptowsp_expr zero = ptowsp_i64(m, 0);
    ptowsp_expr first = ptowsp_cast(ptowsp_symbol(m, "first"), PTOWSP_TYPE_I64);
    PTOWSP_WORKLOAD(m, "body") {
        make_process_body(m, kernel, x);
    }
    PTOWSP_WORKLOAD(m, "main") {
        ptowsp_node before = make_task(m, kernel, x, zero, zero, first);
        ptowsp_node pipeline = ptowsp_pipeline_begin(m, "pipeline", &before, 1);
        ptowsp_channel tokens = ptowsp_channel_make(m, &channel);
        PTOWSP_PROCESS(m, "send") {
            ptowsp_produces(m, tokens);
            PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, "three", 3)) {
                ptowsp_send_make(m, tokens, i);
            }
        }
        PTOWSP_PROCESS(m, "work") {
            ptowsp_consumes(m, tokens);
            PTOWSP_CONSUME(m, t, tokens) {
                ptowsp_call_make(m, "body", &t, 1);
            }
        }
        ptowsp_scope_end(m);
        make_task_after(m, kernel, x, zero, zero, zero, pipeline);
        ptowsp_call_make(m, "body", &zero, 1);
    }
}

static void check_process_scene(ptowsp_context *context, const ptowsp_program *program,
                                ptowsp_npu *npu, const process_scene *now) {
    int32_t x[ROWS * 4];
    npu_subject subject = {0};
    ptowsp_buffer buffer = {0};
    snprintf(npu_now.doing, sizeof npu_now.doing, "%s", now->name);
    for (int i = 0; i < ROWS * 4; i++) {
        x[i] = i;
    }
    buffer.data = x;
    ptowsp_run *run = test_run_of(context, program);
    assert_int_equal(ptowsp_run_bind_tensor(run, "x", &buffer), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_array(run, "sizes", PTOWSP_I64, now->sizes, 3), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_symbol(run, "first", (uint64_t)now->first), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_symbol(run, "row", (uint64_t)now->row), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_symbol(run, "element", (uint64_t)now->element), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_symbol(run, "at", now->at), PTOWSP_OK);
    subject.context = context;
    subject.run = run;
    subject.npu = npu;
    subject.model = PTOWSP_MODEL_UNIT;
    subject.slot_count = 2;
    npu_block_add(&subject, x, sizeof x);
    npu_subject_check(&subject);
    if (subject.status != now->status) {
        NPU_FAIL("the library says %s: %s", ptowsp_status_name(subject.status), subject.error_text);
    }
    ptowsp_run_destroy(run);
}

static void npu__errors_of_processes_are_those_of_the_library(void **state) {
    (void)state;
    ptowsp_schedule schedule = {
        .lane_count = 3, .dependencies = PTOWSP_DEPENDENCIES_HYBRID | PTOWSP_DEPENDENCIES_EXPLICIT};
    const ptowsp_program_desc desc = {NULL, &schedule};
    ptowsp_program *program = NULL;
    ptowsp_context *context = test_context(NULL);
    ptowsp_module *m = test_module(context, NULL);
    make_processes(m);
    snprintf(npu_now.doing, sizeof npu_now.doing, "errors of processes");
    if (ptowsp_program_create(context, m, &desc, &program) != PTOWSP_OK) {
        NPU_FAIL("%s", ptowsp_context_error(context).text);
    }
    ptowsp_npu *npu = npu_build(context, program);
    for (size_t i = 0; npu && i < sizeof process_scenes / sizeof process_scenes[0]; i++) {
        check_process_scene(context, program, npu, &process_scenes[i]);
    }
    ptowsp_npu_destroy(npu);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

// -- replicas -------------------------------------------------------------------------------------

static ptowsp_cycles count(const ptowsp_task *task, void *user) {
    (void)user;
    ++*(int32_t *)task->tiles[0].data;
    return 7;
}

// A task, and then a pipeline with a process for each worker.
static void make_workers(ptowsp_module *m) {
    const ptowsp_tile_param tile = {"x", PTOWSP_INOUT, PTOWSP_I32, 1, 1};
    ptowsp_kernel_desc kernel_desc = {
        .name = "count",
        .fn = count,
        .tiles[0] = tile,
        .source.text = "static ptowsp_cycles count(const ptowsp_task *task, void *) {\n"
                       "    ++*(int32_t *)task->tiles[0].data;\n    return 7;\n}\n"};
    ptowsp_tensor_desc tensor_desc = {.name = "x", .dtype = PTOWSP_I32};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &kernel_desc)};
    task.views[0].tensor = ptowsp_tensor_make(m, &tensor_desc);
    ptowsp_channel_desc channel_desc = {.name = "tokens"};
    ptowsp_axis workers = ptowsp_axis_dynamic(m, "workers");
    PTOWSP_WORKLOAD(m, "main") {
        ptowsp_task_make(m, &task);
        // Also where the pipeline would not run.
        PTOWSP_WHEN(m, ptowsp_slot(m, 0, PTOWSP_TYPE_BOOL)) {
            PTOWSP_PIPELINE(m, "pipeline") {
                ptowsp_channel tokens = ptowsp_channel_make(m, &channel_desc);
                PTOWSP_PROCESS(m, "send") {
                    ptowsp_produces(m, tokens);
                    ptowsp_send_make(m, tokens, ptowsp_i64(m, 1));
                }
                PTOWSP_REPLICATE(m, w, workers, "work") {
                    ptowsp_consumes(m, tokens);
                    PTOWSP_CONSUME(m, t, tokens) {
                        ptowsp_task_make(m, &task);
                    }
                }
            }
        }
    }
}

static void npu__replicas_of_no_size_are_refused_before_anything_runs(void **state) {
    (void)state;
    ptowsp_context *context = test_context(NULL);
    ptowsp_module *m = test_module(context, NULL);
    make_workers(m);
    snprintf(npu_now.doing, sizeof npu_now.doing, "replicas");
    ptowsp_program *program = test_program(context, m, NULL);
    ptowsp_npu *npu = npu_build(context, program);
    for (int i = 0; npu && i < 4; i++) {
        const int64_t workers = i % 2 ? 3 : 0;
        const bool is_running = i >= 2;
        int32_t x = 0;
        ptowsp_buffer buffer = {.data = &x};
        ptowsp_run *run = test_run_of(context, program);
        assert_int_equal(ptowsp_run_bind_size(run, "workers", workers), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_tensor(run, "x", &buffer), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_slot(run, 0, is_running), PTOWSP_OK);
        const ptowsp_status status = workers ? PTOWSP_OK : PTOWSP_INVALID_PARAMS;
        char text[300] = "";
        assert_int_equal(ptowsp_run_execute(run, NULL), status);
        snprintf(text, sizeof text, "%s", ptowsp_context_error(context).text);
        x = 0;
        assert_int_equal(ptowsp_npu_execute(npu, run, NULL, NULL, 0, NULL), status);
        assert_int_equal(x, workers ? 1 + is_running : 0);
        if (!workers) {
            assert_non_null(strstr(text, "axis workers has size 0"));
            assert_string_equal(ptowsp_context_error(context).text, text);
        }
        ptowsp_run_destroy(run);
    }
    ptowsp_npu_destroy(npu);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(npu__errors_of_trees_are_those_of_the_library),
        cmocka_unit_test(npu__errors_in_order_are_those_of_the_library),
        cmocka_unit_test(npu__errors_of_processes_are_those_of_the_library),
        cmocka_unit_test(npu__replicas_of_no_size_are_refused_before_anything_runs),
    };
    return npu_run_tests("npu_error", tests, 4);
}
