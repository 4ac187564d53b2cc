// Kernels that are C functions, emitted with their source: what they compute, the cycles and failures
// they give. How their text looks, and what is refused, is in tests/npu/emitted/sources.emit.

#define _POSIX_C_SOURCE 200809L

#include "npu_fixture.h"
#include "npu_kernel_fixture.h"
#include "npu_texts.h"

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

// A kernel of this source: its function there has its name.
static ptowsp_parse_kernel native_of(const char *name, ptowsp_kernel_fn fn) {
    const ptowsp_parse_kernel kernel = {.name = name, .fn = fn, .source.text = native_source};
    return kernel;
}

// A program of a task of each kernel, all alike: two tiles, an axis argument of 3 and a scalar of 5.
static void native_make(npu_fixture *f, const ptowsp_parse_kernel *kernels, uint32_t count,
                        const char *cycles) {
    char text[1000];
    size_t at = (size_t)sprintf(text, "module native\ntensor x f32 [?, ?] global\n"
                                      "tensor y f32 [?, ?] global\n");
    npu_fixture_begin(f);
    for (uint32_t i = 0; i < count; i++) {
        at += (size_t)sprintf(text + at,
                              "kernel %s(axes 1, inout x f32 ? x ?, inout y f32 ? x ?, s u64) "
                              "vector%s\n",
                              kernels[i].name,
                              kernels[i].cost ? ", cycles by a cost function" : cycles);
    }
    at += (size_t)sprintf(text + at, "workload w\n");
    for (uint32_t i = 0; i < count; i++) {
        at += (size_t)sprintf(text + at, "  task %s(3) x = x y = y s = 5u\n", kernels[i].name);
    }
    // Without a function a kernel is for time alone.
    const ptowsp_parse_desc attached = {kernels, kernels->fn ? count : 0, 1};
    test_ok(f->context,
            ptowsp_module_parse(f->context, text, strlen(text), &attached, &f->m, NULL));
    npu_fixture_compile(f, NULL);
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

static void native_compare(npu_object *o, uint32_t number, const npu_fixture *n) {
    memory want = memory_make(), got = memory_make();
    ptowsp_run *run = test_run_of(n->context, n->program);
    ptowsp_buffer x = {.data = want.x, .rank = 2, .shape = {ROWS, COLS}, .strides = {PITCH, 1}};
    ptowsp_buffer y = {.data = want.y, .rank = 2, .shape = {1, 18}, .strides = {PITCH, 1}};
    assert_ok(ptowsp_run_bind_tensor(run, "x", &x));
    assert_ok(ptowsp_run_bind_tensor(run, "y", &y));
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
    const char *file = textf("%s/of_file.c", o.directory);
    static const char source[] =
        "#include \"ptowsp.h\"\n/* #include <nothing.h> */\n#include <stdlib.h>\n"
        "#include <assert.h>\n#define TWICE(x) (2 * (x))\n"
        "static ptowsp_cycles of_file(const ptowsp_task *task, void *user) {\n"
        "    (void)user;\n"
        "    ((float *)task->tiles[0].data)[0] = (float)abs(-4);\n"
        "    return TWICE(21);\n}";
    file_write(file, source, sizeof source - 1);
    ptowsp_parse_kernel kernels[] = {
        native_of("mixed", mixed_up),
        native_of("costly", mixed_up),
        native_of("constant", mixed_up),
        native_of("merge", merge),
        native_of("fail_with_a_status", fail_with_a_status),
        native_of("fail_anyhow", fail_anyhow),
        {.name = "of_file", .fn = mixed_up, .source.file = file},
    };
    npu_fixture all[7];
    kernels[0].source.fn = kernels[1].source.fn = kernels[2].source.fn = "mixed_up";
    kernels[1].cost = costly;
    kernels[1].source.cost = "costly";
    for (uint32_t i = 0; i < 7; i++) {
        native_make(&all[i], &kernels[i], 1, i == 2 ? ", 12345 cycles" : "");
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
        npu_fixture_free(&all[i]);
    }
    npu_object_end(&o);
}
