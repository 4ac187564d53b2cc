// What is wrong with bindings and data is told by an emitted tree as by the library: the same
// status, the same task as index, whatever the numbers of threads, cores and entries in the ring.
// Programs are built once, and bound rightly and wrongly, as tests/npu/bindings.txt says.

#include "npu_trees.h"

enum { ROWS = 8 };

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

// -- scenes ---------------------------------------------------------------------------------------

// NAME KIND NUMBER ...
static void bind_item(ptowsp_run *run, const char *item, int32_t *x, int32_t *d) {
    char name[16], kind[16];
    int64_t *n = (int64_t *)test_alloc(16, sizeof *n);
    int32_t *narrow = (int32_t *)test_alloc(16, sizeof *narrow);
    uint32_t count = 0, rows = 0;
    int used = 0;
    assert_int_equal(sscanf(item, "%15s %15s%n", name, kind, &used), 2);
    for (char *at = (char *)(uintptr_t)item + used, *end; *at; at = end, count++) {
        rows = strncmp(at, " :", 2) == 0 ? count : rows;
        at += strspn(at, " :");
        n[count] = strtoll(at, &end, 10);
        narrow[count] = (int32_t)n[count];
        assert_true(end > at && count < 15);
    }
    // Numbers that nothing reads are mistakes.
    assert_true(count == 1 || strstr(" array lengths csr ", kind) || (*name == 'x' && count == 0));
    assert_int_equal(rows > 0, strcmp(kind, "csr") == 0);
    const ptowsp_csr csr = {PTOWSP_I32, narrow, narrow + rows, rows - 1, count - rows};
    const ptowsp_buffer of_x = {.data = x, .size = ROWS * 4 * sizeof *x};
    const ptowsp_buffer of_d = {
        .data = d, .size = (uint64_t)n[0] * 4 * sizeof *d, .rank = 2, .shape = {n[0], 4}};
    const ptowsp_status status =
        !strcmp(kind, "size")      ? ptowsp_run_bind_size(run, name, n[0])
        : !strcmp(kind, "symbol")  ? ptowsp_run_bind_symbol(run, name, (uint64_t)n[0])
        : !strcmp(kind, "array")   ? ptowsp_run_bind_array(run, name, PTOWSP_I64, n, count)
        : !strcmp(kind, "lengths") ? ptowsp_run_bind_lengths(run, name, PTOWSP_I64, n, count)
        : !strcmp(kind, "csr")     ? ptowsp_run_bind_csr(run, name, &csr)
        : !strcmp(kind, "tensor")  ? ptowsp_run_bind_tensor(run, name, *name == 'x' ? &of_x : &of_d)
                                   : PTOWSP_UNSUPPORTED;
    assert_ok(status);
}

// Binds all items of a list, up to blanks behind ";", but those whose name is also in another list.
// Returns what x[5] must be when it has run: "untouched", "touched", or NULL.
static const char *bind_items(ptowsp_run *run, const char *items, const char *instead, int32_t *x,
                              int32_t *d) {
    const char *then = NULL;
    for (const char *at = items; *at; at += strcspn(at, ";"), at += *at == ';') {
        at += strspn(at, " ");
        const char *item = textf("%.*s", (int)strcspn(at, ";"), at);
        const char *name = textf("; %.*s ", (int)strcspn(item, " "), item);
        const char *without = textf("; without %.*s;", (int)strcspn(item, " "), item);
        if (strcmp(item, "untouched") == 0 || strcmp(item, "touched") == 0) {
            then = item;
        } else if (strncmp(item, "without ", 8) != 0 && !strstr(instead, name) &&
                   !strstr(instead, without)) {
            bind_item(run, item, x, d);
        }
    }
    return then;
}

static void scene_play(npu_tree *t, const char *given, const char *line) {
    char status[32];
    int32_t x[ROWS * 4], d[16];
    const char *colon = strstr(line, ": "), *items = strchr(line, ';');
    assert_true(colon && sscanf(colon, ": %31[A-Z_]", status) == 1);
    snprintf(npu_now.doing, sizeof npu_now.doing, "%.*s", (int)(colon - line), line);
    for (int k = 0; k < ROWS * 4; k++) {
        x[k] = d[k % 16] = k;
    }
    ptowsp_run_destroy(t->run);
    t->run = test_run_of(t->context, t->program);
    bind_items(t->run, given, items ? textf("%s;", items) : "", x, d);
    const char *then = bind_items(t->run, items ? items + 1 : "", "", x, d);
    const npu_block blocks[] = {{.data = x, .size = sizeof x}, {.data = d, .size = sizeof d}};
    npu_tree_run(t, 0, blocks, 2, status);
    assert_true(!then || (x[5] == 5) == (*then == 'u'));
}

// The scenes of a program in bindings.txt.
static void scenes_play(const char *program, const char *directives) {
    static char text[1 << 14];
    static const ptowsp_parse_kernel kernel = {
        .name = "step", .fn = step, .source.text = step_source};
    const char *given = NULL, *at;
    uint32_t scenes = 0;
    npu_tree t;
    snprintf(npu_now.doing, sizeof npu_now.doing, "errors of %s", program);
    npu_tree_make(&t, npu_module(program), directives, &kernel, 1);
    at = strstr(file_text("tests/npu/bindings.txt", text, sizeof text),
                textf("\nprogram %s\n", program));
    assert_non_null(at);
    at = strchr(at + 1, '\n') + 1;
    for (; t.npu && *at && strncmp(at, "program ", 8) != 0; at += strcspn(at, "\n") + 1) {
        if (*at == '\n' || *at == '#') {
            continue;
        }
        assert_memory_equal(at, "  ", 2);
        const char *line = textf("%.*s", (int)strcspn(at, "\n") - 2, at + 2);
        if (!given) {
            assert_memory_equal(line, "given ", 6);
            given = line + 6;
        } else {
            scene_play(&t, given, line);
            scenes++;
        }
    }
    assert_true(scenes > 0 || !t.npu);
    npu_tree_free(&t);
}

static void npu__errors_of_trees_are_those_of_the_library(void **state) {
    (void)state;
    scenes_play("batch", "  dispatch round robin over 3 lanes\n");
}

static void npu__errors_in_order_are_those_of_the_library(void **state) {
    (void)state;
    scenes_play("batch", "  issue in order\n"
                         "  dispatch work stealing over 2 lanes\n"
                         "  window stall at 3 tasks\n");
}

static void npu__errors_of_processes_are_those_of_the_library(void **state) {
    (void)state;
    scenes_play("processes", "  dispatch round robin over 3 lanes\n"
                             "  dependencies structure exact explicit\n");
}

// The key is read, too.
static void npu__errors_of_expressions_are_told_at_their_place(void **state) {
    (void)state;
    scenes_play("reads", "  dispatch affinity of sizes[i64(key)] over 2 lanes\n");
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
    npu_tree t;
    npu_doing("replicas", 0);
    npu_tree_make(&t, npu_module("workers"), "", &kernel, 1);
    for (int i = 0; t.npu && i < 4; i++) {
        const int64_t workers = i % 2 ? 3 : 0;
        const bool is_running = i >= 2;
        const ptowsp_status status = workers ? PTOWSP_OK : PTOWSP_INVALID_PARAMS;
        int32_t x = 0;
        char text[300] = "";
        ptowsp_run *run = t.run;
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
    }
    npu_tree_free(&t);
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
