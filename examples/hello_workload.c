// The smallest workload: squares a matrix of any height, four rows to a task, on four simulated
// lanes. It is compiled once, then bound to memory and run for two heights.

#include "ptowsp.h"

#include <stdio.h>

// One task: up to four rows of eight. Returns the cycles it took. It is kept as text as well, to be
// emitted for an NPU.
// clang-format off
PTOWSP_SOURCE(square_source,
static ptowsp_cycles square(const ptowsp_task *task, void *user) {
    float *x = (float *)task->tiles[0].data;
    int64_t count = ptowsp_task_rows(task, 0) * ptowsp_task_cols(task, 0);  // fewer in the last one
    for (int64_t i = 0; i < count; i++) {
        x[i] *= x[i];
    }
    (void)user;
    return 100 + (ptowsp_cycles)count;
}
)
// clang-format on

int main(void) {
    ptowsp_context *context;
    ptowsp_module *m;
    if (ptowsp_context_create(NULL, &context) || ptowsp_module_create(context, NULL, &m)) {
        return 1;
    }

    ptowsp_tensor_desc matrix = {
        .name = "x", .dtype = PTOWSP_F32, .rank = 2, .shape = {PTOWSP_DYNAMIC, 8}};
    ptowsp_kernel_desc kernel = {
        .name = "square",
        .tiles =
            {{.name = "x", .direction = PTOWSP_INOUT, .dtype = PTOWSP_F32, .rows = 4, .cols = 8}},
        .fn = square,
        .source = {.text = square_source}};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &kernel)};
    task.views[0].tensor = ptowsp_tensor_make(m, &matrix);
    PTOWSP_WORKLOAD(m, "hello") {
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dynamic(m, "tiles")) {
            task.views[0].row = ptowsp_mul(i, ptowsp_i64(m, 4));
            ptowsp_task_make(m, &task);
        }
    }

    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN, .lane_count = 4};
    ptowsp_program_desc desc = {.schedule = &schedule};
    ptowsp_program *program;
    ptowsp_run *run;
    if (ptowsp_program_create(context, m, &desc, &program) ||  // and errors of all the above
        ptowsp_run_create(context, program, &run)) {
        puts(ptowsp_context_error(context).text);
        return 1;
    }

    static float data[1000 * 8];
    const int heights[] = {30, 1000};
    int wrong = 0;
    for (int step = 0; step < 2; step++) {
        int rows = heights[step];
        for (int i = 0; i < rows * 8; i++) {
            data[i] = (float)(i % 100);
        }
        ptowsp_buffer memory = {.data = data, .rank = 2, .shape = {rows, 8}};
        ptowsp_run_bind_size(run, "tiles", (rows + 3) / 4);
        ptowsp_run_bind_tensor(run, "x", &memory);
        if (ptowsp_run_execute(run, NULL)) {
            puts(ptowsp_context_error(context).text);
            return 1;
        }
        for (int i = 0; i < rows * 8; i++) {
            wrong += data[i] != (float)((i % 100) * (i % 100));
        }
        const ptowsp_run_stats *result = ptowsp_run_result(run);
        printf("%4d rows: %3d tasks on %d lanes took %4d cycles\n", rows, (int)result->task_count,
               (int)result->lane_count, (int)result->makespan_cycles);
    }
    puts(wrong ? "some squares are WRONG" : "all squares are right");

    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
    return wrong != 0;
}
