// Small programs on lanes, as text: a matrix of integers, kernels with one tile of it or none, and
// for each task how long it takes, what it returns and what it does besides.

#ifndef LANE_PROGRAM_H
#define LANE_PROGRAM_H

#include "lane_fixture.h"

enum { LP_SIDE = 16, LP_TASK_MAX = 8192, LP_CYCLES = 10 };

typedef struct lp lp;
struct lp {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_kernel_fn count_fn;  // of kernel `count`
    ptowsp_program *program;
    ptowsp_run *run;
    int32_t data[LP_SIDE * LP_SIDE];
    lane_watch watch;
    uint32_t lane_count;   // of executions
    uint64_t token_limit;  // of executions
    // By task:
    bool is_slow[LP_TASK_MAX];
    ptowsp_cycles result[LP_TASK_MAX];               // what it returns; 0: LP_CYCLES
    void (*inside)(lp *p, const ptowsp_task *task);  // called by all
    uint64_t count;                                  // atomic, for `inside`
};

// A tile's elements become the axis argument; of inout that much more.
static inline ptowsp_cycles lp_kernel(const ptowsp_task *task, void *user) {
    lp *p = (lp *)user;
    int32_t sum = 0;
    lane_watch_enter(&p->watch, task);
    if (task->index < LP_TASK_MAX && p->is_slow[task->index]) {
        lane_yield(300);
    }
    if (p->inside) {
        p->inside(p, task);
    }
    for (uint32_t t = 0; t < task->tile_count; t++) {
        int32_t *data = (int32_t *)task->tiles[t].data;
        for (int64_t r = 0; r < ptowsp_task_rows(task, t); r++) {
            for (int64_t c = 0; c < ptowsp_task_cols(task, t); c++) {
                int32_t *element = &data[r * task->tiles[t].row_stride + c];
                switch (task->kernel_name[0]) {
                case 'g': sum += *element; break;
                case 'p': *element = (int32_t)ptowsp_task_axis(task, 0); break;
                default: *element += (int32_t)ptowsp_task_axis(task, 0); break;
                }
            }
        }
    }
    lane_watch_leave(&p->watch, task);
    ptowsp_cycles result = task->index < LP_TASK_MAX ? p->result[task->index] : 0;
    return result ? result : LP_CYCLES + (ptowsp_cycles)(sum & 7);
}

static inline void lp_begin(lp *p, lane_kind kind, uint32_t lane_count) {
    memset(p, 0, sizeof *p);
    p->lane_count = lane_count;
    p->context = lane_context(kind, lane_count, &p->memory);
    lane_watch_begin(&p->watch, LP_TASK_MAX);
}

// The module: a matrix x, kernels without a tile, with one that they read, write or update, and with known
// cycles; then other declarations and workloads.
static inline void lp_parse(lp *p, const char *workloads) {
    static const char *const names[] = {"step",  "get",       "put",        "touch",
                                        "known", "get_known", "touch_known"};
    char text[4096];
    ptowsp_parse_kernel kernels[8] = {{.name = "count", .fn = p->count_fn}};
    for (int i = 0; i < 7; i++) {
        kernels[i + 1].name = names[i];
        kernels[i + 1].fn = lp_kernel;
        kernels[i + 1].user = p;
    }
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = 8};
    snprintf(text, sizeof text,
             "module m slots 8\naxis batch dynamic\ntensor x i32 [16, 16] global\n"
             "kernel step(axes 1) vector\nkernel get(axes 1, in tile i32 ? x ?) vector\n"
             "kernel put(axes 1, out tile i32 ? x ?) vector\n"
             "kernel touch(axes 1, inout tile i32 ? x ?) vector\n"
             "kernel known(axes 1) vector, 10 cycles\n%s",
             workloads);
    test_ok(p->context,
            ptowsp_module_parse(p->context, text, strlen(text), &attached, &p->m, NULL));
}

// A schedule of dataflow issue that waits for this beside data.
static inline ptowsp_schedule lp_schedule(uint32_t dependencies) {
    ptowsp_schedule schedule = {.dependencies = dependencies};
    return schedule;
}

static inline ptowsp_status lp_try_compile(lp *p, const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {NULL, schedule};
    ptowsp_status status = ptowsp_program_create(p->context, p->m, &desc, &p->program);
    status = status ? status : ptowsp_run_create(p->context, p->program, &p->run);
    if (status == PTOWSP_OK) {
        ptowsp_buffer buffer = {.data = p->data, .size = sizeof p->data};
        (void)ptowsp_run_bind_tensor(p->run, "x", &buffer);
    }
    return status;
}

static inline void lp_compile(lp *p, const ptowsp_schedule *schedule) {
    test_ok(p->context, lp_try_compile(p, schedule));
}

static inline void lp_end(lp *p) {
    test_destroy(p->run, p->program, p->m, p->context);
    lane_watch_end(&p->watch);
    assert_int_equal(p->memory.live_blocks, 0);
}

// -- executing ------------------------------------------------------------------------------------

// On so many lanes; data is zero before.
static inline ptowsp_status lp_execute(lp *p, uint32_t lane_count) {
    ptowsp_run_options options = {
        .lane_count = lane_count, .record_tasks = true, .token_limit = p->token_limit};
    memset(p->data, 0, sizeof p->data);
    lane_watch_restart(&p->watch, lane_count, 0);
    ptowsp_status status = ptowsp_run_execute(p->run, &options);
    assert_int_equal(p->watch.wrong_count, 0);
    return status;
}

// All tasks run, each once.
static inline void lp_works(lp *p, uint64_t task_count) {
    test_ok(p->context, lp_execute(p, p->lane_count));
    assert_int_equal(ptowsp_run_result(p->run)->task_count, task_count);
    for (uint64_t i = 0; i < task_count && i < LP_TASK_MAX; i++) {
        assert_int_equal(p->watch.calls[i], 1);
    }
}

// Has task a ended before task b began?
static inline bool lp_is_before(const lp *p, uint64_t a, uint64_t b) {
    return p->watch.calls[a] && p->watch.calls[b] && p->watch.ends[a] < p->watch.begins[b];
}

// Executes some times with task `a` being slow; b waits for it each time.
static inline void lp_waits(lp *p, uint64_t task_count, uint64_t a, uint64_t b) {
    p->is_slow[a] = true;
    for (int i = 0; i < 4; i++) {
        lp_works(p, task_count);
        if (!lp_is_before(p, a, b)) {
            fail_msg("task %d does not wait for task %d", (int)b, (int)a);
        }
    }
    p->is_slow[a] = false;
}

#endif
