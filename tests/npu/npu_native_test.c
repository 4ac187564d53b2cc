// Kernels that are C functions, emitted with their source: what they compute, the cycles and
// failures they give, how their text looks; and what is refused, by name.

#define _POSIX_C_SOURCE 200809L

#include "npu_files.h"
#include "npu_kernel_fixture.h"

// What is hard to break into lines: braces and semicolons in strings, characters, parentheses and
// initialisers; else and while after a brace. None of it may change.
// clang-format off
PTOWSP_SOURCE(native_source,
    static const char marks[] = "a;b{c}\"\\";
    static const float table[2][2] = {{1, 2}, {3, 4}};
    static ptowsp_cycles mixed_up(const ptowsp_task *task, void *user) {
        float *x = (float *)task->tiles[0].data;
        int64_t rows = ptowsp_task_rows(task, 0), cols = ptowsp_task_cols(task, 0);
        char c = ';', brace = '}', quote = '\'';
        (void)user;
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t k = 0; k < cols; k++) {
                float *at = &x[r * task->tiles[0].row_stride + k * task->tiles[0].col_stride];
                if (r == k) { *at += table[r % 2][k % 2]; } else if (r < k) { *at -= 1; } else { *at *= 2; }
            }
        }
        int64_t n = 0;
        do { n++; } while (n < ptowsp_task_axis(task, 0));
        x[0] = (float)(marks[1] + (c == ';') + (brace == '}') + (quote == '\'') + n) + (float)ptowsp_task_scalar(task, 0);
        return (ptowsp_cycles)(rows * 100 + cols);
    }
    static ptowsp_cycles costly(const ptowsp_task *task, void *user) {
        (void)user;
        return task->tiles[0].data == NULL ? 7000 + (ptowsp_cycles)ptowsp_task_axis(task, 0) : 1;
    }
    static ptowsp_cycles merge(const ptowsp_task *task, void *user) {
        const float *parts = (const float *)task->tiles[0].data;
        float *out = (float *)task->tiles[1].data;
        ptowsp_partial states[4] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
        uint32_t count = (uint32_t)ptowsp_task_rows(task, 0), dim = (uint32_t)ptowsp_task_cols(task, 1);
        (void)user;
        for (uint32_t i = 0; i < count; i++) {
            states[i].m = parts[i * task->tiles[0].row_stride + dim];
            states[i].l = parts[i * task->tiles[0].row_stride + dim + 1];
        }
        float accs[4 * 64] = {0};
        for (uint32_t i = 0; i < count; i++) {
            memcpy(accs + i * dim, parts + i * task->tiles[0].row_stride, dim * sizeof(float));
        }
        out[dim] = ptowsp_merge_partials(states, accs, count, 1, dim, out);
        ptowsp_partial one;
        float *acc = out + dim + 1;
        ptowsp_merge_clear(&one, acc, dim);
        for (uint32_t i = 0; i < count; i++) {
            ptowsp_merge_add(&one, acc, &states[i], accs + i * dim, dim);
        }
        ptowsp_merge_finish(&one, acc, dim, acc);
        return 1;
    }
    static ptowsp_cycles fail_with_a_status(const ptowsp_task *task, void *user) {
        (void)task, (void)user;
        return ptowsp_task_fail(PTOWSP_UNSUPPORTED_SIZE);
    }
    static ptowsp_cycles fail_anyhow(const ptowsp_task *task, void *user) {
        (void)task, (void)user;
        return UINT64_MAX - 1000;
    })
// clang-format on

typedef struct native {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
} native;

static native native_begin(void) {
    native n = {0};
    assert_int_equal(ptowsp_context_create(NULL, &n.context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(n.context, NULL, &n.m), PTOWSP_OK);
    return n;
}

// A program of one task of a kernel with a tile (or two), an axis argument of 3 and a scalar of 5.
static void native_compile(native *n, const ptowsp_kernel_desc *desc) {
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(n->m, desc)};
    for (uint32_t i = 0; i < PTOWSP_TASK_TILE_MAX && desc->tiles[i].name; i++) {
        ptowsp_tensor_desc tensor = {.name = desc->tiles[i].name, .dtype = PTOWSP_F32, .rank = 2};
        tensor.shape[0] = tensor.shape[1] = PTOWSP_DYNAMIC;
        task.views[i].tensor = ptowsp_tensor_make(n->m, &tensor);
    }
    task.axes[0] = ptowsp_i64(n->m, 3);
    task.scalars[0] = ptowsp_u64(n->m, 5);
    PTOWSP_WORKLOAD(n->m, "w") {
        ptowsp_task_make(n->m, &task);
    }
    if (ptowsp_program_create(n->context, n->m, NULL, &n->program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(n->context).text);
    }
}

static void native_end(native *n) {
    ptowsp_program_destroy(n->program);
    ptowsp_module_destroy(n->m);
    ptowsp_context_destroy(n->context);
}

static ptowsp_kernel_desc native_desc(const char *name, ptowsp_kernel_fn fn) {
    ptowsp_kernel_desc desc = {.name = name, .axis_count = 1};
    ptowsp_tile_param x = {"x", PTOWSP_INOUT, PTOWSP_F32, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC};
    ptowsp_tile_param y = {"y", PTOWSP_INOUT, PTOWSP_F32, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC};
    ptowsp_scalar_param s = {"s", PTOWSP_TYPE_U64};
    desc.tiles[0] = x;
    desc.tiles[1] = y;
    desc.scalars[0] = s;
    desc.fn = fn;
    desc.source.text = native_source;
    return desc;
}

// -- the same as the library ----------------------------------------------------------------------

enum { ROWS = 3, COLS = 20, PITCH = 24 };

typedef struct memory {
    float x[ROWS * PITCH], y[PITCH * 2];
} memory;

// Rows of 18 values, m and l. All m are alike and l a power of two: merging is exact.
static memory memory_make(void) {
    memory data = {0};
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < PITCH; c++) {
            data.x[r * PITCH + c] = (float)(r * 7 - c);
        }
        data.x[r * PITCH + 18] = -2;
        data.x[r * PITCH + 19] = r == 2 ? 2 : 1;
    }
    return data;
}

static void native_compare(npu_object *o, uint32_t number, native *n) {
    memory want = memory_make(), got = memory_make();
    ptowsp_run *run = test_run_of(n->context, n->program);
    ptowsp_buffer x = {.data = want.x, .rank = 2, .shape = {ROWS, COLS}, .strides = {PITCH, 1}};
    ptowsp_buffer y = {.data = want.y, .rank = 2, .shape = {1, 18}, .strides = {PITCH, 1}};
    assert_int_equal(ptowsp_run_bind_tensor(run, "x", &x), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_tensor(run, "y", &y), PTOWSP_OK);
    ptowsp_status status = ptowsp_run_execute(run, NULL);
    uint64_t cycles = status == PTOWSP_OK ? ptowsp_run_result(run)->makespan_cycles : 0;
    ptowsp_run_destroy(run);

    wsp_task task = {.kernel = 1};
    task.axis_count = task.scalar_count = 1;
    task.tile_count = 2;
    uint64_t args[] = {3, ROWS, COLS, 1, 18, 5};
    memcpy(task.args, args, sizeof args);
    wsp_tile tiles[] = {{(uint64_t)(uintptr_t)got.x, PITCH, 1},
                        {(uint64_t)(uintptr_t)got.y, 24, 1}};
    memcpy(task.tiles, tiles, sizeof tiles);
    npu_object_run(o, number)(&task);
    assert_int_equal(task.status, status);
    assert_int_equal(task.cycles, cycles);
    assert_memory_equal(&got, &want, sizeof got);
}

TEST(native__kernels_do_what_they_do_in_the_library) {
    npu_object o = npu_object_begin();
    char file[128];
    snprintf(file, sizeof file, "%s/of_file.c", o.directory);
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    fputs("#include \"ptowsp.h\"\n/* #include <nothing.h> */\n#include <stdlib.h>\n"
          "#include <assert.h>\n#define TWICE(x) (2 * (x))\n"
          "static ptowsp_cycles of_file(const ptowsp_task *task, void *user) {\n"
          "    (void)user;\n"
          "    ((float *)task->tiles[0].data)[0] = (float)abs(-4);\n"
          "    return TWICE(21);\n}",
          out);
    fclose(out);
    ptowsp_kernel_desc descs[7];
    descs[0] = native_desc("mixed", mixed_up);
    descs[0].source.fn = "mixed_up";
    descs[1] = native_desc("costly", mixed_up);
    descs[1].source.fn = "mixed_up";
    descs[1].cost = costly;
    descs[1].source.cost = "costly";
    descs[2] = native_desc("constant", mixed_up);
    descs[2].source.fn = "mixed_up";
    descs[2].cycles = 12345;
    descs[3] = native_desc("merge", merge);
    descs[4] = native_desc("fail_with_a_status", fail_with_a_status);
    descs[5] = native_desc("fail_anyhow", fail_anyhow);
    descs[6] = native_desc("of_file", mixed_up);
    descs[6].source.text = NULL;
    descs[6].source.file = file;
    native all[7];
    for (uint32_t i = 0; i < 7; i++) {
        all[i] = native_begin();
        native_compile(&all[i], &descs[i]);
        npu_object_add(&o, all[i].context, all[i].program, false);
    }
    npu_object_build(&o, "-O2");
    for (uint32_t i = 0; i < 6; i++) {
        native_compare(&o, i, &all[i]);
    }
    float x = 0;
    wsp_task task = {.kernel = 1, .tile_count = 1, .tiles[0].data = (uint64_t)(uintptr_t)&x};
    npu_object_run(&o, 6)(&task);
    assert_int_equal(task.cycles, 42);
    assert_true(x == 4);
    for (uint32_t i = 0; i < 7; i++) {
        native_end(&all[i]);
    }
    npu_object_end(&o);
}

// -- how they look --------------------------------------------------------------------------------

// The only file of kernels.
static const char *kernels_of(const native *n) {
    assert_int_equal(npu_files_try(n->context, n->program), PTOWSP_OK);
    assert_int_equal(npu_files_below("aicore/kernels/"), 1);
    for (uint32_t i = 0;; i++) {
        if (strncmp(npu_files[i].path, "aicore/kernels/", 15) == 0) {
            return npu_files[i].text;
        }
    }
}

TEST(native__text_without_line_ends_is_broken_into_lines) {
    native n = native_begin();
    ptowsp_kernel_desc desc = native_desc("mixed_up", mixed_up);
    native_compile(&n, &desc);
    static const char *const lines[] = {
        "\nstatic const char marks[] = \"a;b{c}\\\"\\\\\";\n",
        "\nstatic const float table[2][2] = {{1, 2}, {3, 4}};\n",
        "\n    char c = ';', brace = '}', quote = '\\'';\n",
        "\n    for (int64_t r = 0; r < rows; r++) {\n        for (int64_t k = 0; k < cols; k++) "
        "{\n",
        "\n            } else if (r < k) {\n                *at -= 1;\n            } else {\n",
        "\n    do {\n        n++;\n    } while (n < ptowsp_task_axis(task, 0));\n",
        "\n}\n\nstatic ptowsp_cycles costly(const ptowsp_task *task, void *user) {\n",
        NULL};
    const char *text = kernels_of(&n);
    npu_has_all(text, lines);
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
        assert_in_range(strcspn(at, "\n"), 0, 100);
    }
    native_end(&n);
}

TEST(native__kernels_of_one_source_share_a_file) {
    native n = native_begin();
    ptowsp_kernel_desc a = native_desc("fail_anyhow", fail_anyhow);
    ptowsp_kernel_desc b = native_desc("fail_with_a_status", fail_with_a_status);
    memset(a.tiles, 0, sizeof a.tiles);
    memset(b.tiles, 0, sizeof b.tiles);
    ptowsp_task_desc second;
    ptowsp_task_desc first = {.axes[0] = ptowsp_i64(n.m, 0)};
    first.scalars[0] = ptowsp_u64(n.m, 0);
    second = first;
    first.kernel = ptowsp_kernel_make(n.m, &a);
    second.kernel = ptowsp_kernel_make(n.m, &b);
    PTOWSP_WORKLOAD(n.m, "w") {
        ptowsp_task_make(n.m, &first);
        ptowsp_task_make(n.m, &second);
    }
    assert_int_equal(ptowsp_program_create(n.context, n.m, NULL, &n.program), PTOWSP_OK);
    static const char *const parts[] = {"void wsp_kernel_fail_anyhow(",
                                        "void wsp_kernel_fail_with_a_status(", NULL};
    npu_has_all(kernels_of(&n), parts);
    native_end(&n);
}

// -- refusals -------------------------------------------------------------------------------------

static void refuse(const ptowsp_kernel_desc *desc, ptowsp_status status, const char *text) {
    native n = native_begin();
    native_compile(&n, desc);
    assert_int_equal(npu_files_try(n.context, n.program), status);
    if (!strstr(ptowsp_context_error(n.context).text, text)) {
        fail_msg("%s", ptowsp_context_error(n.context).text);
    }
    assert_int_equal(npu_files_below("aicore/kernels/"), 0);
    native_end(&n);
}

TEST(native__without_source_is_refused_by_name) {
    ptowsp_kernel_desc desc = native_desc("lonely", mixed_up);
    desc.source.text = NULL;
    refuse(&desc, PTOWSP_UNSUPPORTED, "kernel lonely");
    desc = native_desc("costly", mixed_up);
    desc.cost = costly;
    refuse(&desc, PTOWSP_UNSUPPORTED, "kernel costly");
    desc = native_desc("absent", mixed_up);
    desc.source.text = NULL;
    desc.source.file = "/nowhere/absent.c";
    refuse(&desc, PTOWSP_SYSTEM_FAILED, "/nowhere/absent.c");
    desc = native_desc("timed", NULL);
    desc.cycles = 5;
    refuse(&desc, PTOWSP_UNSUPPORTED, "kernel timed");
}

TEST(native__tile_kernels_of_two_families_are_refused) {
    native n = native_begin();
    ptowsp_machine machine = ptowsp_machine_950pr();
    ptowsp_task_desc tasks[2] = {0};
    for (int i = 0; i < 2; i++) {
        ptowsp_body_desc desc = {.name = i ? "new" : "old", .machine = i ? &machine : NULL};
        ptowsp_body *k = ptowsp_kernel_begin(n.m, &desc);
        ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 8, 8);
        ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, 8, 8);
        ptowsp_tile_store(y, ptowsp_tile_neg(x));
        tasks[i].kernel = ptowsp_kernel_end(k);
    }
    ptowsp_tensor_desc tensor = {.name = "x", .dtype = PTOWSP_F32, .rank = 2};
    tensor.shape[0] = tensor.shape[1] = 8;
    ptowsp_tensor x = ptowsp_tensor_make(n.m, &tensor);
    PTOWSP_WORKLOAD(n.m, "w") {
        for (int i = 0; i < 2; i++) {
            tasks[i].views[0].tensor = tasks[i].views[1].tensor = x;
            ptowsp_task_make(n.m, &tasks[i]);
        }
    }
    assert_int_equal(ptowsp_program_create(n.context, n.m, NULL, &n.program), PTOWSP_OK);
    assert_int_equal(npu_files_try(n.context, n.program), PTOWSP_UNSUPPORTED);
    assert_non_null(strstr(ptowsp_context_error(n.context).text, "kernel new is for A5"));
    assert_int_equal(npu_files_below("aicore/kernels/"), 0);
    native_end(&n);
}
