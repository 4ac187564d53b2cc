// Tests of pipelines: a module with kernels that take as long as they are told and count their calls, and
// a run of it.
//
// Every run that succeeds is executed with and without kernels, with and without records; all four
// must have the same results, and all that these say is compared with what the steps say.

#ifndef PIPELINE_FIXTURE_H
#define PIPELINE_FIXTURE_H

#include "support/run_results.h"

enum { SIDE = 8 };

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    int32_t x_data[SIDE * SIDE];
    uint64_t call_count;
    void (*inside)(struct fixture *f);  // called by each kernel
} fixture;

// -- kernels --------------------------------------------------------------------------------------

static inline ptowsp_cycles second_axis(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_axis(task, 1);
}

static inline ptowsp_cycles note_call(const ptowsp_task *task, void *user) {
    fixture *f = (fixture *)user;
    assert_int_equal(task->index, f->call_count++);
    if (f->inside) {
        f->inside(f);
    }
    return second_axis(task, NULL);
}

static inline void fixture_make_with(fixture *f, const ptowsp_context_desc *context) {
    memset(f, 0, sizeof *f);
    assert_ok(ptowsp_context_create(context, &f->context));
}

static inline void fixture_make(fixture *f) {
    fixture_make_with(f, NULL);
}

static inline void fixture_forget_run(fixture *f) {
    test_destroy(f->run, f->program, NULL, NULL);
    f->run = NULL;
    f->program = NULL;
}

static inline void fixture_free(fixture *f) {
    fixture_forget_run(f);
    test_destroy(NULL, NULL, f->m, f->context);
}

// -- what the steps say ---------------------------------------------------------------------------

static inline const ptowsp_channel_stats *channel_of(const fixture *f, const char *name) {
    uint32_t count = 0;
    const ptowsp_channel_stats *channels = ptowsp_run_channels(f->run, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (!strcmp(channels[i].name, name)) {
            return &channels[i];
        }
    }
    fail_msg("there is no channel %s", name);
    return NULL;
}

static inline const ptowsp_pipeline_stats *pipeline(const fixture *f, uint32_t i) {
    uint32_t count = 0;
    const ptowsp_pipeline_stats *pipelines = ptowsp_run_pipelines(f->run, &count);
    assert_true(i < count);
    return &pipelines[i];
}

static inline uint64_t makespan(const fixture *f) {
    return ptowsp_run_result(f->run)->makespan_cycles;
}

// Asserts that a piece of text has each of the parts in it, which end with NULL.
static inline void expect_parts(const char *text, const char *const *parts) {
    for (; *parts; parts++) {
        if (!strstr(text, *parts)) {
            fail_msg("\"%s\" is not in: %s", *parts, text);
        }
    }
}

#define EXPECT_PARTS(text, ...)                                                                    \
    do {                                                                                           \
        static const char *const parts_[] = {__VA_ARGS__, NULL};                                   \
        expect_parts(text, parts_);                                                                \
    } while (0)

// -- running --------------------------------------------------------------------------------------

// A module of declarations, then workloads, with the kernels and the tensor of all tests: `work` takes a value and
// its cycles; reads, writes and updates the same, with a 2 x 2 tile.
static inline ptowsp_status fixture_read(fixture *f, const char *lines) {
    static char text[1 << 20];
    static const char *const names[] = {"work", "reads", "writes", "updates"};
    ptowsp_parse_kernel kernels[COUNT_OF(names)];
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = COUNT_OF(names)};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        kernels[i] = (ptowsp_parse_kernel){
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
    return ptowsp_module_parse(f->context, text, (size_t)length, &attached, &f->m, NULL);
}

static inline void fixture_parse(fixture *f, const char *format, ...) {
    static char lines[1 << 20];
    va_list args;
    va_start(args, format);
    vsnprintf(lines, sizeof lines, format, args);
    va_end(args);
    fixture_forget_run(f);
    ptowsp_module_destroy(f->m);
    if (fixture_read(f, lines) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
    test_ok(f->context, ptowsp_program_create(f->context, f->m, NULL, &f->program));
    assert_ok(ptowsp_run_create(f->context, f->program, &f->run));
    const ptowsp_buffer x = {.data = f->x_data, .size = sizeof f->x_data};
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

static inline ptowsp_status execute(fixture *f, ptowsp_run_mode mode, bool has_records) {
    const ptowsp_run_options options = {.mode = mode, .record_tasks = has_records};
    f->call_count = 0;
    memset(f->x_data, 0, sizeof f->x_data);
    return ptowsp_run_execute(f->run, &options);
}

static inline void execute_ok(fixture *f, ptowsp_run_mode mode, bool has_records) {
    if (execute(f, mode, has_records) != PTOWSP_OK) {
        char text[4000];
        ptowsp_output_buffer buffer = {text, sizeof text, 0};
        ptowsp_run_print_stuck(f->run, ptowsp_output_to_buffer(&buffer));
        fail_msg("%s\n%s", ptowsp_context_error(f->context).text, text);
    }
}

// Executes a compiled program in all ways, at last with kernels and records.
static inline void run_compiled(fixture *f) {
    execute_ok(f, PTOWSP_RUN_EXECUTE, false);
    results expected, got;
    results_of(f->run, &expected);
    uint64_t count = 1;
    assert_null(ptowsp_run_steps(f->run, &count));
    assert_int_equal(count, 0);
    for (int has_records = 0; has_records < 2; has_records++) {
        execute_ok(f, PTOWSP_RUN_TIME_ONLY, has_records);
        results_of(f->run, &got);
        assert_memory_equal(&got, &expected, sizeof got);
    }
    assert_int_equal(f->call_count, 0);
    execute_ok(f, PTOWSP_RUN_EXECUTE, true);
    results_of(f->run, &got);
    assert_memory_equal(&got, &expected, sizeof got);
    assert_int_equal(f->call_count, ptowsp_run_result(f->run)->task_count);
    check_results(f->run);
}

#endif
