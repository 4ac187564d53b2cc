// Tests of what runs refuse: a module with one of everything, kernels that count their calls and
// can fail, and assertions that nothing has been touched.

#ifndef PTOWSP_RUN_FIXTURE_H
#define PTOWSP_RUN_FIXTURE_H

#include "test.h"

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    int32_t data[16], other[16];  // of x, y
    uint64_t calls;               // of kernels
    // What a kernel does beside counting.
    ptowsp_cycles result;   // what it returns
    uint64_t failing_task;  // which returns `failure`
    ptowsp_cycles failure;
    void (*inside)(struct fixture *f);  // called by task 0
    ptowsp_kernel_fn cost;              // of kernels `costly` and `timed` of texts
} fixture;

static inline ptowsp_cycles kernel(const ptowsp_task *task, void *user) {
    fixture *f = (fixture *)user;
    f->calls++;
    for (uint32_t t = 0; t < task->tile_count; t++) {
        int32_t *data = (int32_t *)task->tiles[t].data;
        data[0] = (int32_t)ptowsp_task_axis(task, 0) + 100;
    }
    if (task->index == 0 && f->inside) {
        f->inside(f);
    }
    return task->index == f->failing_task ? f->failure : f->result;
}

static inline void fixture_make(fixture *f) {
    memset(f, 0, sizeof *f);
    f->result = 1;
    f->failing_task = UINT64_MAX;
    assert_ok(ptowsp_context_create(NULL, &f->context));
}

static inline void fixture_free(fixture *f) {
    test_destroy(f->run, f->program, f->m, f->context);
}

// The module: axes that are dynamic, ragged and sparse, tensors, kernels without a tile and with one; then
// declarations and workloads.
static inline void fixture_parse(fixture *f, const char *more) {
    char text[2048];
    const ptowsp_parse_kernel kernels[] = {
        {.name = "step", .fn = kernel, .user = f},
        {.name = "fill", .fn = kernel, .user = f},
        {.name = "costly", .fn = kernel, .cost = f->cost, .user = f},
        {.name = "timed", .cost = f->cost}};
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = 4};
    snprintf(text, sizeof text,
             "module decode slots 8\naxis batch dynamic\naxis kv ragged\naxis pages sparse\n"
             "tensor x i32 [4, 4] global\ntensor y i32 [4, 4] global\n"
             "tensor d i32 [?, 3, 2] global\nkernel step(axes 1) vector\n"
             "kernel fill(axes 1, inout tile i32 2 x 2) vector\n%s",
             more);
    test_destroy(f->run, f->program, f->m, NULL);
    f->run = NULL;
    f->program = NULL;
    test_ok(f->context,
            ptowsp_module_parse(f->context, text, strlen(text), &attached, &f->m, NULL));
}

// Compiles what has been built and makes a run, with x and y bound if they are used.
static inline void compile(fixture *f, const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {NULL, schedule};
    test_ok(f->context, ptowsp_program_create(f->context, f->m, &desc, &f->program));
    assert_ok(ptowsp_run_create(f->context, f->program, &f->run));
    test_bind(f->run, "x", f->data);
    test_bind(f->run, "y", f->other);
}

// Asserts that a bind function has returned INVALID_PARAMS with this text.
static inline void refused(const fixture *f, ptowsp_status returned, uint64_t index,
                           const char *text) {
    test_refused(f->context, returned, PTOWSP_INVALID_PARAMS, index, text);
}

// Executes and asserts that it fails before any kernel has been called or any data touched.
static inline void fails_before(fixture *f, ptowsp_status status, uint64_t index,
                                const char *text) {
    uint64_t calls = f->calls;
    int32_t before[32], after[32];
    memcpy(before, f->data, sizeof f->data);
    memcpy(before + 16, f->other, sizeof f->other);
    test_refused(f->context, ptowsp_run_execute(f->run, NULL), status, index, text);
    memcpy(after, f->data, sizeof f->data);
    memcpy(after + 16, f->other, sizeof f->other);
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(f->calls, calls);
    assert_int_equal(ptowsp_run_result(f->run)->task_count, 0);
    assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 0);
}

static inline void invalid_before(fixture *f, uint64_t index, const char *text) {
    fails_before(f, PTOWSP_INVALID_PARAMS, index, text);
}

// Executes and asserts that so many kernels are called.
static inline void works(fixture *f, uint64_t task_count) {
    uint64_t calls = f->calls;
    test_ok(f->context, ptowsp_run_execute(f->run, NULL));
    assert_int_equal(f->calls - calls, task_count);
    assert_int_equal(ptowsp_run_result(f->run)->task_count, task_count);
}

#endif
