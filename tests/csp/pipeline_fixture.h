// Tests of pipelines: a module with kernels that take as long as they are told and count their calls, and
// a run of it.

#ifndef PIPELINE_FIXTURE_H
#define PIPELINE_FIXTURE_H

#include "run_results.h"
#include "support/fixture.h"

// Of the kernels of the test at hand.
static struct {
    int32_t x[8 * 8];
    uint64_t call_count;
    void (*inside)(const fixture *f);  // called by each
} kernels;

static inline ptowsp_cycles second_axis(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_axis(task, 1);
}

static inline ptowsp_cycles note_call(const ptowsp_task *task, void *user) {
    assert_int_equal(task->index, kernels.call_count++);
    if (kernels.inside) {
        kernels.inside((const fixture *)user);
    }
    return second_axis(task, NULL);
}

// A module of declarations, then workloads, with the kernels and the tensor of all tests: `work` takes a value and
// its cycles; reads, writes and updates the same, with a 2 x 2 tile.
static inline ptowsp_status fixture_read(fixture *f, const char *lines) {
    static char text[1 << 20];
    static const char *const names[] = {"work", "reads", "writes", "updates"};
    ptowsp_parse_kernel attach[COUNT_OF(names)];
    const ptowsp_parse_desc attached = {.kernels = attach, .kernel_count = COUNT_OF(names)};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        attach[i] = (ptowsp_parse_kernel){
            .name = names[i], .fn = note_call, .cost = second_axis, .user = f};
    }
    const int length = snprintf(
        text, sizeof text,
        "module m slots 8\ntensor x i32 [8, 8] global\n"
        "kernel work(axes 2) vector, cycles by a cost function\n"
        "kernel reads(axes 2, in tile i32 2 x 2) vector, cycles by a cost function\n"
        "kernel writes(axes 2, out tile i32 2 x 2) vector, cycles by a cost function\n"
        "kernel updates(axes 2, inout tile i32 2 x 2) vector, cycles by a cost function\n%s",
        lines);
    assert_in_range(length, 1, sizeof text - 1);
    return ptowsp_module_parse(f->context, text, (size_t)length, &attached, &f->module, NULL);
}

static inline void fixture_parse(fixture *f, const char *format, ...) {
    static char lines[1 << 20];
    const ptowsp_buffer x = {.data = kernels.x, .size = sizeof kernels.x};
    va_list args;
    va_start(args, format);
    vsnprintf(lines, sizeof lines, format, args);
    va_end(args);
    fixture_clear(f);
    kernels.inside = NULL;
    test_ok(f->context, fixture_read(f, lines));
    program_make(f, NULL, NULL, NULL);
    assert_ok(ptowsp_run_bind_tensor(f->run, "x", &x));
}

// Pieces of such texts. A PRODUCER has a task of so many cycles for each token that it sends, a CONSUMER for each
// that it takes; FILL sends what an axis counts.
#define MAIN "workload main\n  pipeline p\n"
#define FILL(name, to, axis)                                                                       \
    "    process \"" name "\" produces " to "\n      for_each i in " axis "\n        send " to     \
    "(i)\n"
#define PRODUCER(name, to, axis, token, cycles)                                                    \
    "    process " name " produces " to "\n      for_each i in " axis "\n        task work(" token \
    ", " cycles ")\n        send " to "(" token ")\n"
#define CONSUMER(name, from, cycles)                                                               \
    "    process " name " consumes " from "\n      consume t from " from                           \
    "\n        task work(t, " cycles ")\n"

static inline ptowsp_status execute(const fixture *f, ptowsp_run_mode mode, bool has_records) {
    const ptowsp_run_options options = {.mode = mode, .record_tasks = has_records};
    memset(kernels.x, 0, sizeof kernels.x);
    kernels.call_count = 0;
    return ptowsp_run_execute(f->run, &options);
}

static inline void execute_ok(const fixture *f, ptowsp_run_mode mode, bool has_records) {
    test_ok(f->context, execute(f, mode, has_records));
}

// The last error has this in its text.
static inline void error_has(const fixture *f, const char *part) {
    fixture_refused(f, ptowsp_context_error(f->context).status,
                    ptowsp_context_error(f->context).status, part);
}

#endif
