// A tile kernel and a task of it, whose tensors are as large as its tiles, emitted: the kernel's text.
//
//      calls c;
//      calls_begin(&c, NULL);                            // for this machine; NULL: 910B
//      ptowsp_tile_store(calls_out(&c, "y", PTOWSP_F32, 8, 16), ...);
//      calls_emit(&c);                                   // or calls_compile
//      calls_have(&c, "TADD(t1, x, y);");
//      calls_end(&c);

#ifndef PTOWSP_NPU_CALLS_H
#define PTOWSP_NPU_CALLS_H

#include "npu_fixture.h"

typedef struct calls {
    npu_fixture f;
    ptowsp_body *k;
    ptowsp_tile_param params[PTOWSP_TASK_TILE_MAX];
    uint32_t param_count, scalar_count;
    char *text;  // of the kernel's file
} calls;

static inline ptowsp_value calls_param(calls *c, ptowsp_direction direction, const char *name,
                                       ptowsp_dtype dtype, int64_t rows, int64_t cols) {
    const ptowsp_tile_param made = {name, direction, dtype, rows, cols};
    c->params[c->param_count++] = made;
    return direction == PTOWSP_IN    ? ptowsp_tile_in(c->k, name, dtype, rows, cols)
           : direction == PTOWSP_OUT ? ptowsp_tile_out(c->k, name, dtype, rows, cols)
                                     : ptowsp_tile_inout(c->k, name, dtype, rows, cols);
}

static inline ptowsp_value calls_in(calls *c, const char *name, ptowsp_dtype dtype, int64_t rows,
                                    int64_t cols) {
    return calls_param(c, PTOWSP_IN, name, dtype, rows, cols);
}

static inline ptowsp_value calls_out(calls *c, const char *name, ptowsp_dtype dtype, int64_t rows,
                                     int64_t cols) {
    return calls_param(c, PTOWSP_OUT, name, dtype, rows, cols);
}

static inline ptowsp_value calls_alloc(calls *c, ptowsp_dtype dtype, int64_t rows, int64_t cols) {
    ptowsp_alloc_desc desc = {.dtype = dtype, .rows = rows, .cols = cols};
    return ptowsp_tile_alloc(c->k, &desc);
}

static inline void calls_begin(calls *c, const ptowsp_machine *machine) {
    memset(c, 0, sizeof *c);
    npu_fixture_begin(&c->f);
    npu_module_make(&c->f, "calls");
    ptowsp_body_desc desc = {.name = "k", .machine = machine};
    c->k = ptowsp_kernel_begin(c->f.m, &desc);
}

static inline ptowsp_status calls_take(void *user, const char *path, const char *text,
                                       size_t size) {
    calls *c = (calls *)user;
    if (strcmp(path, "aicore/kernels/k.cpp") == 0) {
        c->text = (char *)malloc(size + 1);
        assert_non_null(c->text);
        memcpy(c->text, text, size + 1);
    }
    return PTOWSP_OK;
}

// Compiles one task of the kernel, whose tensors are as large as its tiles.
static inline void calls_compile(calls *c) {
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_end(c->k)};
    assert_string_equal(ptowsp_module_error(c->f.m).text, "");
    for (uint32_t i = 0; i < c->param_count; i++) {
        ptowsp_tensor_desc tensor = {.name = c->params[i].name,
                                     .dtype = c->params[i].dtype,
                                     .rank = 2,
                                     .shape[0] = c->params[i].rows,
                                     .shape[1] = c->params[i].cols};
        task.views[i].tensor = ptowsp_tensor_make(c->f.m, &tensor);
    }
    for (uint32_t i = 0; i < c->scalar_count; i++) {
        task.scalars[i] = ptowsp_u64(c->f.m, 0);  // bits of any type
    }
    PTOWSP_WORKLOAD(c->f.m, "w") {
        ptowsp_task_make(c->f.m, &task);
    }
    npu_fixture_compile(&c->f, NULL);
}

// Emits it.
static inline void calls_emit(calls *c) {
    calls_compile(c);
    if (ptowsp_npu_emit_files(c->f.context, c->f.program, calls_take, c) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(c->f.context).text);
    }
    assert_non_null(c->text);
}

static inline void calls_end(calls *c) {
    free(c->text);
    npu_fixture_free(&c->f);
}

// The file has this text; blanks and line ends are alike, as lines are broken where they are long.
static inline void calls_have(const calls *c, const char *wanted) {
    for (const char *at = c->text; *at; at++) {
        const char *a = at, *b = wanted;
        while (*b && (*a == *b || (*b == ' ' && *a == '\n'))) {
            const bool is_space = *b == ' ';
            a++;
            b++;
            a += is_space ? strspn(a, " \n") : 0;
        }
        if (!*b) {
            return;
        }
    }
    fputs(c->text, stderr);
    fail_msg("there is no %s", wanted);
}

#endif
