// Sections 23 and 28 of the manual: a graph that is started and polled, runs as a worker of an engine,
// has a time limit, is cancelled, and says which task failed; then a program on the cores of a device
// made of threads, waited for or in the background, and launches of one kernel on all cores.

#include "common/manual.h"

#include <string.h>

enum { PARTS = 4, VECTOR_CORES = 2 };

typedef struct state {
    int done[PARTS + 1];
    int failing;           // the task that fails, or -1
    ptowsp_graph *cancel;  // by the first task; or NULL
} state;

static ptowsp_status part(void *user, uint64_t task, uint32_t lane) {
    state *s = (state *)user;
    (void)lane;
    if (s->cancel) {
        ptowsp_graph_cancel(s->cancel);
    }
    s->done[task] = 1;
    return (int)task == s->failing ? PTOWSP_KERNEL_FAILED : PTOWSP_OK;
}

static void graph_show(ptowsp_context *context) {
    state s = {.failing = -1};
    ptowsp_graph *graph;
    const ptowsp_graph_task_desc desc = {.fn = part, .user = &s};
    if (ptowsp_graph_create(context, NULL, &graph)) {
        return;
    }
    for (uint64_t i = 0; i <= PARTS; i++) {
        ptowsp_graph_task_make(graph, &desc, NULL);
    }
    for (uint64_t i = 0; i < PARTS; i++) {
        ptowsp_graph_edge_make(graph, i, PARTS);  // the last one waits for all others
    }
    ptowsp_status status;
    manual_check(!ptowsp_graph_limit(graph, UINT64_C(60) * 1000000000) &&
                     !ptowsp_graph_start(graph),
                 ptowsp_context_error(context).text);
    while ((status = ptowsp_graph_poll(graph)) == PTOWSP_BUSY) {
        // an engine does something else meanwhile
    }
    manual_check(!status && s.done[PARTS], "all tasks are done");
    manual_check(!ptowsp_graph_start(graph) && !ptowsp_graph_wait(graph), "once more");
    manual_check(!ptowsp_graph_run_worker(graph, 0, 1), "as a worker of an engine");

    memset(s.done, 0, sizeof s.done);
    s.failing = 2;
    uint64_t cause;
    manual_check(ptowsp_graph_run(graph) == PTOWSP_KERNEL_FAILED, "task 2 fails");
    manual_check(ptowsp_graph_task_status(graph, PARTS, &cause) == PTOWSP_SKIPPED && cause == 2 &&
                     !s.done[PARTS],
                 "the last task is skipped because of task 2");
    printf("%s\n", ptowsp_context_error(context).text);
    s.failing = -1;
    s.cancel = graph;
    manual_check(ptowsp_graph_run(graph) == PTOWSP_CANCELLED && !s.done[PARTS], "a cancelled run");
    ptowsp_graph_destroy(graph);
}

// -- a device -------------------------------------------------------------------------------------

static ptowsp_cycles twice(const ptowsp_task *task, void *user) {
    *(float *)task->tiles[0].data *= 2;
    return user ? 0 : 100;
}

static ptowsp_cycles count(const ptowsp_task *task,
                           void *user) {  // axes: the instance, and how many
    ((int64_t *)user)[ptowsp_task_axis(task, 0)] = ptowsp_task_axis(task, 1);
    return 7;
}

static ptowsp_device *cancelled_device;

static ptowsp_cycles give_up(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    ptowsp_device_cancel(cancelled_device);
    return 1;
}

static ptowsp_run *program_run(ptowsp_context *context, ptowsp_program **out_program) {
    ptowsp_module *m;
    ptowsp_run *run;
    if (ptowsp_module_create(context, NULL, &m)) {
        return NULL;
    }
    const ptowsp_kernel_desc kernel = {
        .name = "twice",
        .fn = twice,
        .tiles = {
            {.name = "x", .direction = PTOWSP_INOUT, .dtype = PTOWSP_F32, .rows = 1, .cols = 1}}};
    const ptowsp_tensor_desc x = {.name = "x", .dtype = PTOWSP_F32, .rank = 1, .shape = {PARTS}};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &kernel)};
    task.views[0].tensor = ptowsp_tensor_make(m, &x);
    PTOWSP_WORKLOAD(m, "scale") {
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "n", PARTS)) {
            task.views[0].col = i;
            ptowsp_task_make(m, &task);
        }
    }
    const bool is_made = !ptowsp_program_create(context, m, NULL, out_program) &&
                         !ptowsp_run_create(context, *out_program, &run);
    ptowsp_module_destroy(m);
    return is_made ? run : NULL;
}

static void device_show(ptowsp_context *context) {
    const ptowsp_device_desc desc = {.vector_count = VECTOR_CORES};
    ptowsp_device *device;
    ptowsp_program *program;
    ptowsp_run *run = program_run(context, &program);
    void *memory;
    float x[PARTS] = {1, 2, 3, 4};
    if (!run || ptowsp_device_open(context, &desc, &device) ||
        ptowsp_device_alloc(device, "x", sizeof x, &memory) ||
        ptowsp_device_copy_in(device, memory, x, sizeof x)) {
        manual_check(false, ptowsp_context_error(context).text);
        return;
    }
    const ptowsp_buffer buffer = {
        .data = memory, .size = sizeof x, .dtype = PTOWSP_F32, .rank = 1, .shape = {PARTS}};
    manual_check(!ptowsp_run_bind_tensor(run, "x", &buffer) &&
                     !ptowsp_device_run(device, run, NULL) &&
                     !ptowsp_device_start(device, run, NULL) && !ptowsp_run_wait(run) &&
                     !ptowsp_device_copy_out(device, x, memory, sizeof x),
                 ptowsp_context_error(context).text);
    manual_check(x[0] == 4 && x[3] == 16, "twice, and twice again");

    const ptowsp_kernel_fn kernels[] = {count};
    int64_t counts[VECTOR_CORES] = {0};
    ptowsp_cycles cycles[VECTOR_CORES];
    ptowsp_launch launch = {.kernels = kernels,
                            .kernel_count = 1,
                            .unit = PTOWSP_UNIT_VECTOR,
                            .user = counts,
                            .out_cycles = cycles};
    manual_check(!ptowsp_device_launch(device, &launch) && counts[0] == VECTOR_CORES &&
                     counts[1] == VECTOR_CORES && cycles[1] == 7,
                 "an instance on each core");
    const ptowsp_kernel_fn stopping[] = {give_up};
    cancelled_device = device;
    launch.kernels = stopping;
    launch.instance_count = 1000;
    launch.out_cycles = NULL;
    manual_check(ptowsp_device_launch(device, &launch) == PTOWSP_CANCELLED, "a cancelled launch");
    const ptowsp_device_stats stats = ptowsp_device_result(device);
    manual_check(stats.task_count ==
                     ptowsp_device_core_tasks(device, 0) + ptowsp_device_core_tasks(device, 1),
                 "tasks of the cores");
    printf("%u vector cores, %u bytes in use\n", stats.vector_count, (unsigned)stats.used_bytes);
    manual_check(!ptowsp_device_free(device, memory), ptowsp_context_error(context).text);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    manual_check(!ptowsp_device_close(device), ptowsp_context_error(context).text);
}

int main(void) {
    ptowsp_context *context;
    if (ptowsp_context_create(NULL, &context)) {
        return 1;
    }
    graph_show(context);
    device_show(context);
    ptowsp_context_destroy(context);
    return manual_end();
}
