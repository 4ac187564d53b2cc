// Tests of records and pictures of runs: a decode step of a few requests, with and without a
// pipeline, whose cycles and tiles are simple enough for paper.

#ifndef PTOWSP_SEE_FIXTURE_H
#define PTOWSP_SEE_FIXTURE_H

#include "test.h"

enum { SEE_HEADS = 3, SEE_COLS = 2 * SEE_HEADS };

typedef struct see {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    const char *attend_name, *merge_name;  // of kernels; default: attend, merge
    ptowsp_cycles merge_cycles;            // default: 4
    bool is_free;                          // no task takes any cycles
    ptowsp_context_desc context_desc;
} see;

// attend takes 10 + request + head cycles; merge takes 4.
static inline ptowsp_cycles see_attend(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)(10 + ptowsp_task_axis(task, 0) + ptowsp_task_axis(task, 1));
}

static inline ptowsp_cycles see_none(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 0;
}

static inline ptowsp_cycles see_ten(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 10;
}

// A program and a run of a text.
static inline void see_parse(see *s, const char *text, const ptowsp_parse_kernel *kernels,
                             uint32_t count, const ptowsp_schedule *schedule) {
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = count};
    const ptowsp_program_desc desc = {NULL, schedule};
    s->context = test_context(&s->context_desc);
    s->run = test_run_text(s->context, text, &attached, &desc, &s->m, &s->program);
}

// For each request, in parallel: attend for each head, then merge:
//      parallel request { parallel head attend(request, head; 5 - request); merge(request + 0) }
// attend writes 1 x 2 of row `request`, merge updates the row.
static inline void see_make(see *s, const ptowsp_schedule *schedule, int64_t requests) {
    // Their function counts when they run; else their cycles are others.
    const ptowsp_parse_kernel kernels[] = {
        {.name = s->attend_name ? s->attend_name : "attend",
         .fn = see_ten,
         .cost = s->is_free ? see_none : see_attend},
        {.name = s->merge_name ? s->merge_name : "merge", .fn = see_ten, .cost = see_none}};
    char text[1024], cycles[32];
    snprintf(cycles, sizeof cycles, s->is_free ? "cycles by a cost function" : "%llu cycles",
             (unsigned long long)(s->merge_cycles ? s->merge_cycles : 4));
    snprintf(text, sizeof text,
             "module decode slots 8\naxis requests dynamic\naxis heads 3\n"
             "tensor o f32 [?, 6] global\n"
             "kernel \"%s\"(axes 2, out o f32 1 x 2, scale i64) vector, cycles by a cost function\n"
             "kernel \"%s\"(axes 1, inout o f32 1 x 6) vector, %s\n"
             "workload step\n  parallel request in requests\n    sequence\n"
             "      parallel head in heads\n"
             "        task \"%s\"(request, head) o = o at (request, head * 2) scale = 1 - request\n"
             "      task \"%s\"(request * 10 + 7) o = o at (request, 0)\n",
             kernels[0].name, kernels[1].name, cycles, kernels[0].name, kernels[1].name);
    see_parse(s, text, kernels, 2, schedule);
    assert_ok(ptowsp_run_bind_size(s->run, "requests", requests));
    static float nothing[SEE_COLS * 4096];
    ptowsp_buffer buffer = {.rank = 2,
                            .dtype = PTOWSP_F32,
                            .shape[0] = requests,
                            .shape[1] = SEE_COLS,
                            .data = nothing,
                            .size = sizeof nothing};
    assert_ok(ptowsp_run_bind_tensor(s->run, "o", &buffer));
}

// Two processes: load takes 7 + tile cycles, compute 10; the channel holds 2 tokens.
static inline ptowsp_cycles see_load(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)(7 + ptowsp_task_axis(task, 0));
}

static inline void see_make_pipeline(see *s) {
    const ptowsp_parse_kernel kernels[] = {{.name = "load", .cost = see_load},
                                           {.name = "compute", .cost = see_ten}};
    see_parse(s,
              "module stages slots 8\naxis tiles 4\n"
              "kernel load(axes 1) vector, cycles by a cost function, time only\n"
              "kernel compute(axes 1) vector, cycles by a cost function, time only\n"
              "workload step\n  sequence\n    task compute(-1)\n    pipeline two_stages\n"
              "      channel loaded depth 2 latency 0\n      process load produces loaded\n"
              "        for_each tile in tiles\n          task load(tile)\n"
              "          send loaded(tile)\n      process compute consumes loaded\n"
              "        consume token from loaded\n          task compute(token)\n",
              kernels, 2, NULL);
}

static inline void see_free(see *s) {
    test_destroy(s->run, s->program, s->m, s->context);
}

// Executes without kernels, recording as said.
static inline void see_run(see *s, const ptowsp_record_options *record) {
    ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    assert_ok(ptowsp_run_record(s->run, record));
    test_ok(s->context, ptowsp_run_execute(s->run, &options));
}

static inline void see_run_tasks(see *s) {
    const ptowsp_record_options tasks = {PTOWSP_RECORD_TASKS, 0, 0, 0, false};
    see_run(s, &tasks);
}

// A test with the run that see_make makes on so many lanes.
static inline void see_make_lanes(see *s, uint32_t lanes, int64_t requests) {
    const ptowsp_schedule schedule = {.lane_count = lanes};
    see_make(s, &schedule, requests);
}

#define SEE_TEST(name, lanes, requests)                                                            \
    TEST_MADE(name, see, s, see_make_lanes(s, lanes, requests), see_free(s))

#endif
