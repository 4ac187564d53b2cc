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

static inline ptowsp_kernel see_kernel(see *s, const char *name, uint32_t axes,
                                       ptowsp_kernel_fn cost, bool has_scalar) {
    ptowsp_kernel_desc desc = {
        .name = name, .axis_count = axes, .cost = s->is_free ? see_none : cost};
    desc.fn = see_ten;  // when it runs; its cycles are others
    desc.cycles = cost || s->is_free ? 0 : s->merge_cycles ? s->merge_cycles : 4;
    const ptowsp_tile_param tile = {"o", cost ? PTOWSP_OUT : PTOWSP_INOUT, PTOWSP_F32, 1,
                                    cost ? 2 : SEE_COLS};
    desc.tiles[0] = tile;
    if (has_scalar) {
        const ptowsp_scalar_param scale = {"scale", PTOWSP_TYPE_I64};
        desc.scalars[0] = scale;
    }
    return ptowsp_kernel_make(s->m, &desc);
}

// For each request, in parallel: attend for each head, then merge:
//      parallel request { parallel head attend(request, head; 5 - request); merge(request + 0) }
// attend writes 1 x 2 of row `request`, merge updates the row.
static inline void see_make(see *s, const ptowsp_schedule *schedule, int64_t requests) {
    const ptowsp_module_desc module = {"decode", 8};
    assert_int_equal(ptowsp_context_create(&s->context_desc, &s->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(s->context, &module, &s->m), PTOWSP_OK);
    ptowsp_module *m = s->m;
    const ptowsp_tensor_desc o = {
        "o", PTOWSP_F32, 2, {PTOWSP_DYNAMIC, SEE_COLS}, PTOWSP_LOCATION_GLOBAL};
    ptowsp_tensor tensor = ptowsp_tensor_make(m, &o);
    ptowsp_kernel attend =
        see_kernel(s, s->attend_name ? s->attend_name : "attend", 2, see_attend, true);
    ptowsp_kernel merge = see_kernel(s, s->merge_name ? s->merge_name : "merge", 1, NULL, false);
    PTOWSP_WORKLOAD(m, "step") {
        PTOWSP_PARALLEL(m, request, ptowsp_axis_dynamic(m, "requests")) {
            PTOWSP_SEQUENCE(m) {
                ptowsp_task_desc task;
                PTOWSP_PARALLEL(m, head, ptowsp_axis_dense(m, "heads", SEE_HEADS)) {
                    memset(&task, 0, sizeof task);
                    task.kernel = attend;
                    task.axes[0] = request;
                    task.axes[1] = head;
                    task.scalars[0] = ptowsp_sub(ptowsp_i64(m, 1), request);
                    task.views[0].tensor = tensor;
                    task.views[0].row = request;
                    task.views[0].col = ptowsp_mul(head, ptowsp_i64(m, 2));
                    ptowsp_task_make(m, &task);
                }
                memset(&task, 0, sizeof task);
                task.kernel = merge;
                task.axes[0] = ptowsp_add(ptowsp_mul(request, ptowsp_i64(m, 10)), ptowsp_i64(m, 7));
                task.views[0].tensor = tensor;
                task.views[0].row = request;
                ptowsp_task_make(m, &task);
            }
        }
    }
    const ptowsp_program_desc desc = {NULL, schedule};
    if (ptowsp_program_create(s->context, m, &desc, &s->program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(s->context).text);
    }
    assert_int_equal(ptowsp_run_create(s->context, s->program, &s->run), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_size(s->run, "requests", requests), PTOWSP_OK);
    static float nothing[SEE_COLS * 4096];
    ptowsp_buffer buffer = {.rank = 2,
                            .dtype = PTOWSP_F32,
                            .shape[0] = requests,
                            .shape[1] = SEE_COLS,
                            .data = nothing,
                            .size = sizeof nothing};
    assert_int_equal(ptowsp_run_bind_tensor(s->run, "o", &buffer), PTOWSP_OK);
}

// Two processes: load takes 7 + tile cycles, compute 10; the channel holds 2 tokens.
static inline ptowsp_cycles see_load(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)(7 + ptowsp_task_axis(task, 0));
}

static inline void see_make_pipeline(see *s) {
    const ptowsp_module_desc module = {"stages", 8};
    assert_int_equal(ptowsp_context_create(&s->context_desc, &s->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(s->context, &module, &s->m), PTOWSP_OK);
    ptowsp_module *m = s->m;
    ptowsp_task_desc task = {0};
    ptowsp_kernel_desc desc = {.axis_count = 1, .name = "load", .cost = see_load};
    ptowsp_kernel load = ptowsp_kernel_make(m, &desc);
    desc.name = "compute";
    desc.cost = see_ten;
    ptowsp_kernel compute = ptowsp_kernel_make(m, &desc);
    PTOWSP_WORKLOAD(m, "step") {
        PTOWSP_SEQUENCE(m) {
            task.kernel = compute;
            task.axes[0] = ptowsp_i64(m, -1);
            ptowsp_task_make(m, &task);
            PTOWSP_PIPELINE(m, "two_stages") {
                ptowsp_channel_desc channel = {"loaded", 2, 0, {NULL, 0}, {NULL, 0}};
                ptowsp_channel c = ptowsp_channel_make(m, &channel);
                PTOWSP_PROCESS(m, "load") {
                    ptowsp_produces(m, c);
                    PTOWSP_FOR_EACH(m, tile, ptowsp_axis_dense(m, "tiles", 4)) {
                        task.kernel = load;
                        task.axes[0] = tile;
                        ptowsp_send_task_make(m, c, &task);
                    }
                }
                PTOWSP_PROCESS(m, "compute") {
                    ptowsp_consumes(m, c);
                    PTOWSP_CONSUME(m, token, c) {
                        task.kernel = compute;
                        task.axes[0] = token;
                        ptowsp_task_make(m, &task);
                    }
                }
            }
        }
    }
    if (ptowsp_program_create(s->context, m, NULL, &s->program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(s->context).text);
    }
    assert_int_equal(ptowsp_run_create(s->context, s->program, &s->run), PTOWSP_OK);
}

// A process that loads 12 tiles, 30 cycles each, and 3 that compute them, 90 each; the channel has
// latency 100 and the depth of the symbol "depth".
static inline void see_make_workers(see *s) {
    const ptowsp_module_desc module = {"workers", 8};
    assert_int_equal(ptowsp_context_create(&s->context_desc, &s->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(s->context, &module, &s->m), PTOWSP_OK);
    ptowsp_module *m = s->m;
    ptowsp_task_desc loading = {0};
    ptowsp_task_desc computing = {0};
    ptowsp_kernel_desc desc = {.axis_count = 1};
    desc.name = "load", desc.cycles = 30;
    loading.kernel = ptowsp_kernel_make(m, &desc);
    desc.name = "compute", desc.cycles = 90;
    computing.kernel = ptowsp_kernel_make(m, &desc);
    PTOWSP_WORKLOAD(m, "step") {
        PTOWSP_PIPELINE(m, "overlap") {
            ptowsp_channel_desc channel = {"loaded", 0, 100, ptowsp_symbol(m, "depth"), {NULL, 0}};
            ptowsp_channel c = ptowsp_channel_make(m, &channel);
            PTOWSP_PROCESS(m, "load") {
                ptowsp_produces(m, c);
                PTOWSP_FOR_EACH(m, tile, ptowsp_axis_dense(m, "tiles", 12)) {
                    loading.axes[0] = tile;
                    ptowsp_send_task_make(m, c, &loading);
                }
            }
            PTOWSP_REPLICATE(m, worker, ptowsp_axis_dense(m, "workers", 3), "compute") {
                ptowsp_consumes(m, c);
                PTOWSP_CONSUME(m, tile, c) {
                    computing.axes[0] = tile;
                    ptowsp_task_make(m, &computing);
                }
            }
        }
    }
    if (ptowsp_program_create(s->context, m, NULL, &s->program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(s->context).text);
    }
    assert_int_equal(ptowsp_run_create(s->context, s->program, &s->run), PTOWSP_OK);
}

static inline void see_free(see *s) {
    test_destroy(s->run, s->program, s->m, s->context);
}

// Executes without kernels, recording as said.
static inline void see_run(see *s, const ptowsp_record_options *record) {
    ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    assert_int_equal(ptowsp_run_record(s->run, record), PTOWSP_OK);
    if (ptowsp_run_execute(s->run, &options) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(s->context).text);
    }
}

static inline void see_run_tasks(see *s) {
    const ptowsp_record_options tasks = {PTOWSP_RECORD_TASKS, 0, 0, 0, false};
    see_run(s, &tasks);
}

#endif
