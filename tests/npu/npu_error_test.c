// What is wrong with bindings and data is told by an emitted tree as by the library: the same
// status, the same task as index, whatever the numbers of threads, cores and entries in the ring.
// One program, built once, and bound rightly and wrongly.

#include "npu_equal.h"
#include "npu_texts.h"

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
    const char *unbound;   // what is not bound, with blanks around
    int64_t length_count;  // 0: 2
    int64_t column_rows;   // of tensor d; 0: 4
    int64_t lead, col;     // of the first tile
} scene;

// clang-format off
static const scene scenes[] = {
    {"all is well", PTOWSP_OK, 2, 0, 0, {1, 2, 3}, {2, 3}, {0, 1, 2}, {0, 1}, NULL, 0, 0, 0, 0},
    {"nothing to do", PTOWSP_OK, 0, 0, 0, {1}, {0, 0}, {0, 0, 0}, {0, 0}, NULL, 0, 0, 0, 0},
    {"a tile at the edge", PTOWSP_OK, 1, 7, 0, {1}, {1, 1}, {0, 0, 0}, {0, 0}, NULL, 0, 0, 0, 0},
    {"a tile behind the edge", PTOWSP_INVALID_PARAMS, 2, 7, 0, {1}, {3, 3}, {0, 0, 0}, {0, 0}, NULL, 0, 0, 0, 0},
    {"a tile before the first row", PTOWSP_INVALID_PARAMS, 2, -1, 0, {1}, {1, 3}, {0, 0, 0}, {0, 0}, NULL, 0, 0, 0, 0},
    {"an element outside", PTOWSP_INVALID_PARAMS, 2, 0, 4, {1}, {1, 3}, {0, 0, 0}, {0, 0}, NULL, 0, 0, 0, 0},
    {"an element far outside", PTOWSP_INVALID_PARAMS, 1, 0, INT64_MAX, {1}, {1, 1}, {0, 0, 0}, {0, 0}, NULL, 0, 0, 0, 0},
    {"an element before", PTOWSP_INVALID_PARAMS, 1, 0, -3, {1}, {1, 1}, {0, 0, 0}, {0, 0}, NULL, 0, 0, 0, 0},
    {"a kernel that fails", PTOWSP_KERNEL_FAILED, 2, 0, 0, {1, 77, 3}, {2, 3}, {0, 1, 2}, {0, 1}, NULL, 0, 0, 0, 0},
    {"two kernels that fail", PTOWSP_KERNEL_FAILED, 2, 0, 0, {1, 1, 77, 78}, {3, 3}, {0, 1, 2}, {0, 1}, NULL, 0, 0, 0, 0},
    {"one that fails with a status", PTOWSP_LIMIT_EXCEEDED, 2, 0, 0, {78, 77}, {2, 3}, {0, 1, 2}, {0, 1}, NULL, 0, 0, 0, 0},
    {"too many cycles", PTOWSP_LIMIT_EXCEEDED, 2, 0, 0, {79, 79}, {2, 3}, {0, 1, 2}, {0, 1}, NULL, 0, 0, 0, 0},
    {"cycles that are none", PTOWSP_KERNEL_FAILED, 2, 0, 0, {1, 80}, {2, 3}, {0, 1, 2}, {0, 1}, NULL, 0, 0, 0, 0},
    {"a negative length", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, -1}, {0, 1, 2}, {0, 1}, NULL, 0, 0, 0, 0},
    {"too few lengths", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {0, 1, 2}, {0, 1}, NULL, 1, 0, 0, 0},
    {"too few sparse rows", PTOWSP_INVALID_PARAMS, 3, 0, 0, {1}, {2, 1}, {0, 1, 2}, {0, 1}, NULL, 0, 0, 0, 0},
    {"sparse rows that decrease", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {0, 2, 1}, {0, 1}, NULL, 0, 0, 0, 0},
    {"sparse rows that begin late", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {1, 1, 2}, {0, 1}, NULL, 0, 0, 0, 0},
    {"a negative column", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {0, 1, 2}, {0, -1}, NULL, 0, 0, 0, 0},
    {"a column outside the tensor", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {0, 1, 2}, {0, 9}, NULL, 0, 0, 0, 0},
    {"a slot load outside", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {0, 1, 2}, {0, 0}, NULL, 0, 1, 0, 0},
    {"a matrix outside", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {0, 1, 2}, {0, 0}, NULL, 0, 0, 1, 0},
    {"a column at the edge", PTOWSP_OK, 2, 0, 0, {1}, {2, 1}, {0, 1, 2}, {0, 0}, NULL, 0, 0, 0, 3},
    {"a column behind the edge", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {0, 1, 2}, {0, 0}, NULL, 0, 0, 0, 4},
    {"more entries than columns", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {0, 1, 3}, {0, 1}, NULL, 0, 0, 0, 0},
    {"a negative end of a sparse row", PTOWSP_INVALID_PARAMS, 2, 0, 0, {1}, {2, 1}, {0, 1, -4}, {0, 1}, NULL, 0, 0, 0, 0},
    {"no size", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, " batch ", 0, 0, 0, 0},
    {"no lengths", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, " kv ", 0, 0, 0, 0},
    {"no sparse rows", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, " pages ", 0, 0, 0, 0},
    {"no symbol", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, " at ", 0, 0, 0, 0},
    {"no array", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, " sizes ", 0, 0, 0, 0},
    {"no tensor", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, " x ", 0, 0, 0, 0},
    {"no other tensor", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, " d ", 0, 0, 0, 0},
    {"nothing", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, " batch pages at kv sizes x d ", 0, 0, 0, 0},
    {"a size", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, " pages at kv sizes x d ", 0, 0, 0, 0},
    {"sparse rows, too", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, " at kv sizes x d ", 0, 0, 0, 0},
    {"a symbol, too", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, " kv sizes x d ", 0, 0, 0, 0},
    {"lengths, too", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, " sizes x d ", 0, 0, 0, 0},
    {"an array, too", PTOWSP_UNBOUND, 2, 0, 0, {1}, {2, 3}, {0, 1, 2}, {0, 1}, " x d ", 0, 0, 0, 0},
};
// clang-format on

// -- programs -------------------------------------------------------------------------------------

static const ptowsp_parse_kernel step_kernel = {
    .name = "step", .fn = step, .source.text = step_source};

// A program, and its tree.
typedef struct tree {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_npu *npu;
} tree;

static tree tree_make(const char *name, const char *module, const ptowsp_parse_kernel *kernel,
                      ptowsp_schedule schedule) {
    const char *text = npu_module(module);
    tree t = {.context = test_context(NULL)};
    const ptowsp_parse_desc attached = {kernel, 1, 0};
    const ptowsp_program_desc desc = {NULL, &schedule};
    snprintf(npu_now.doing, sizeof npu_now.doing, "%s", name);
    test_ok(t.context, ptowsp_module_parse(t.context, text, strlen(text), &attached, &t.m, NULL));
    if (schedule.dispatch == PTOWSP_DISPATCH_AFFINITY) {
        const ptowsp_expr at = ptowsp_cast(ptowsp_symbol(t.m, "key"), PTOWSP_TYPE_I64);
        schedule.dispatch_key = ptowsp_array_at(t.m, "sizes", PTOWSP_I64, at);
    }
    test_ok(t.context, ptowsp_program_create(t.context, t.m, &desc, &t.program));
    t.npu = npu_tree_build(t.context, t.program);
    return t;
}

// All that it has told was in the library's words.
static void tree_free(const tree *t) {
    assert_true(npu_now.tally.other_texts == 0);
    ptowsp_npu_destroy(t->npu);
    test_destroy(NULL, t->program, t->m, t->context);
}

// The library's status is this one, and the tree's is the same, with memory x and d (or NULL).
static void status_is(const tree *t, ptowsp_run *run, uint32_t slot_count, int32_t *x, int32_t *d,
                      ptowsp_status status) {
    npu_subject subject = {.context = t->context,
                           .run = run,
                           .npu = t->npu,
                           .model = PTOWSP_MODEL_UNIT,
                           .slot_count = slot_count};
    npu_block_add(&subject, x, ROWS * 4 * sizeof *x);
    if (d) {
        npu_block_add(&subject, d, 16 * sizeof *d);
    }
    npu_subject_check(&subject);
    if (subject.status != status) {
        NPU_FAIL("the library says %s: %s", ptowsp_status_name(subject.status), subject.error_text);
    }
    ptowsp_run_destroy(run);
}

// -- scenes ---------------------------------------------------------------------------------------

static bool is_bound(const scene *now, const char *name) {
    return !now->unbound || !strstr(now->unbound, textf(" %s ", name));
}

static void bind_scene(ptowsp_run *run, const scene *now, int32_t *x, int32_t *d) {
    const ptowsp_csr csr = {PTOWSP_I32, now->indptr, now->indices, 2, 2};
    const uint64_t lengths = now->length_count ? (uint64_t)now->length_count : 2;
    const int64_t rows = now->column_rows ? now->column_rows : 4;
    const ptowsp_buffer of_x = {.data = x, .size = ROWS * 4 * sizeof *x};
    const ptowsp_buffer of_d = {
        .data = d, .size = (uint64_t)rows * 4 * sizeof *d, .rank = 2, .shape = {rows, 4}};
    if (is_bound(now, "batch")) {
        assert_ok(ptowsp_run_bind_size(run, "batch", now->batch));
    }
    if (is_bound(now, "kv")) {
        assert_ok(ptowsp_run_bind_lengths(run, "kv", PTOWSP_I64, now->lengths, lengths));
    }
    if (is_bound(now, "pages")) {
        assert_ok(ptowsp_run_bind_csr(run, "pages", &csr));
    }
    assert_ok(ptowsp_run_bind_symbol(run, "row", (uint64_t)now->row));
    assert_ok(ptowsp_run_bind_symbol(run, "lead", (uint64_t)now->lead));
    assert_ok(ptowsp_run_bind_symbol(run, "col", (uint64_t)now->col));
    if (is_bound(now, "at")) {
        assert_ok(ptowsp_run_bind_symbol(run, "at", (uint64_t)now->at));
    }
    if (is_bound(now, "sizes")) {
        assert_ok(ptowsp_run_bind_array(run, "sizes", PTOWSP_I64, now->sizes, SIZES));
    }
    if (is_bound(now, "x")) {
        assert_ok(ptowsp_run_bind_tensor(run, "x", &of_x));
    }
    if (is_bound(now, "d")) {
        assert_ok(ptowsp_run_bind_tensor(run, "d", &of_d));
    }
}

static void check_all(ptowsp_schedule schedule, const char *name) {
    const tree t = tree_make(name, "batch", &step_kernel, schedule);
    for (size_t i = 0; t.npu && i < COUNT_OF(scenes); i++) {
        int32_t x[ROWS * 4], d[16];
        snprintf(npu_now.doing, sizeof npu_now.doing, "%s", scenes[i].name);
        for (int k = 0; k < ROWS * 4; k++) {
            x[k] = d[k % 16] = k;
        }
        ptowsp_run *run = test_run_of(t.context, t.program);
        bind_scene(run, &scenes[i], x, d);
        status_is(&t, run, 1, x, d, scenes[i].status);
    }
    tree_free(&t);
}

static void npu__errors_of_trees_are_those_of_the_library(void **state) {
    (void)state;
    ptowsp_schedule schedule = {.lane_count = 3};
    check_all(schedule, "errors in dataflow");
}

static void npu__errors_in_order_are_those_of_the_library(void **state) {
    (void)state;
    ptowsp_schedule schedule = {.issue = PTOWSP_ISSUE_IN_ORDER,
                                .dispatch = PTOWSP_DISPATCH_WORK_STEALING,
                                .lane_count = 2,
                                .window = 3};
    check_all(schedule, "errors in order");
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

static void npu__errors_of_processes_are_those_of_the_library(void **state) {
    (void)state;
    const ptowsp_schedule schedule = {
        .lane_count = 3, .dependencies = PTOWSP_DEPENDENCIES_HYBRID | PTOWSP_DEPENDENCIES_EXPLICIT};
    const tree t = tree_make("errors of processes", "processes", &step_kernel, schedule);
    for (size_t i = 0; t.npu && i < COUNT_OF(process_scenes); i++) {
        const process_scene *now = &process_scenes[i];
        int32_t x[ROWS * 4];
        snprintf(npu_now.doing, sizeof npu_now.doing, "%s", now->name);
        for (int k = 0; k < ROWS * 4; k++) {
            x[k] = k;
        }
        ptowsp_run *run = test_run_of(t.context, t.program);
        test_bind(run, "x", x);
        assert_ok(ptowsp_run_bind_array(run, "sizes", PTOWSP_I64, now->sizes, 3));
        assert_ok(ptowsp_run_bind_symbol(run, "first", (uint64_t)now->first));
        assert_ok(ptowsp_run_bind_symbol(run, "row", (uint64_t)now->row));
        assert_ok(ptowsp_run_bind_symbol(run, "element", (uint64_t)now->element));
        assert_ok(ptowsp_run_bind_symbol(run, "at", now->at));
        status_is(&t, run, 2, x, NULL, now->status);
    }
    tree_free(&t);
}

// -- expressions ----------------------------------------------------------------------------------

// Each of them outside, and then none.
static void npu__errors_of_expressions_are_told_at_their_place(void **state) {
    static const char *const names[] = {"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "key"};
    static const int64_t sizes[4] = {1, 1, 1, 1};
    static const int32_t lengths[2] = {2, 2};
    (void)state;
    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_AFFINITY, .lane_count = 2};
    const tree t = tree_make("errors of expressions", "reads", &step_kernel, schedule);
    for (size_t wrong = 0; t.npu && wrong <= COUNT_OF(names); wrong++) {
        int32_t x[ROWS * 4] = {0};
        const bool is_good = wrong == COUNT_OF(names);
        ptowsp_run *run = test_run_of(t.context, t.program);
        for (size_t i = 0; i < COUNT_OF(names); i++) {
            assert_ok(ptowsp_run_bind_symbol(run, names[i], i == wrong ? 4 : 1));
        }
        assert_ok(ptowsp_run_bind_array(run, "sizes", PTOWSP_I64, sizes, 4));
        assert_ok(ptowsp_run_bind_lengths(run, "rows", PTOWSP_I32, lengths, 2));
        test_bind(run, "x", x);
        status_is(&t, run, 6, x, NULL, is_good ? PTOWSP_OK : PTOWSP_INVALID_PARAMS);
        assert_true((x[5] != 0) == is_good);  // no task has run
    }
    tree_free(&t);
}

// -- replicas -------------------------------------------------------------------------------------

static ptowsp_cycles count(const ptowsp_task *task, void *user) {
    (void)user;
    ++*(int32_t *)task->tiles[0].data;
    return 7;
}

static void npu__replicas_of_no_size_are_refused_before_anything_runs(void **state) {
    (void)state;
    static const ptowsp_parse_kernel kernel = {
        .name = "count",
        .fn = count,
        .source.text = "static ptowsp_cycles count(const ptowsp_task *task, void *) {\n"
                       "    ++*(int32_t *)task->tiles[0].data;\n    return 7;\n}\n"};
    const tree t = tree_make("replicas", "workers", &kernel, (ptowsp_schedule){0});
    for (int i = 0; t.npu && i < 4; i++) {
        const int64_t workers = i % 2 ? 3 : 0;
        const bool is_running = i >= 2;
        const ptowsp_status status = workers ? PTOWSP_OK : PTOWSP_INVALID_PARAMS;
        int32_t x = 0;
        char text[300] = "";
        ptowsp_run *run = test_run_of(t.context, t.program);
        assert_ok(ptowsp_run_bind_size(run, "workers", workers));
        test_bind(run, "x", &x);
        assert_ok(ptowsp_run_bind_slot(run, 0, is_running));
        assert_int_equal(ptowsp_run_execute(run, NULL), status);
        snprintf(text, sizeof text, "%s", ptowsp_context_error(t.context).text);
        x = 0;
        assert_int_equal(ptowsp_npu_execute(t.npu, run, NULL, NULL, 0, NULL), status);
        assert_int_equal(x, workers ? 1 + is_running : 0);
        if (!workers) {
            assert_non_null(strstr(text, "axis workers has size 0"));
            assert_string_equal(ptowsp_context_error(t.context).text, text);
        }
        ptowsp_run_destroy(run);
    }
    tree_free(&t);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(npu__errors_of_trees_are_those_of_the_library),
        cmocka_unit_test(npu__errors_in_order_are_those_of_the_library),
        cmocka_unit_test(npu__errors_of_processes_are_those_of_the_library),
        cmocka_unit_test(npu__errors_of_expressions_are_told_at_their_place),
        cmocka_unit_test(npu__replicas_of_no_size_are_refused_before_anything_runs),
    };
    return npu_run_tests("npu_error", tests, COUNT_OF(tests));
}
