// One task of a kernel of a built tree, measured on the shim: its checks, and the call.
//
// The tree's dispatch.cpp executes it on the calling thread (aicore/wsp_dispatch.h), without bindings and
// without a scheduler. A core trusts its task, so everything is checked here.

#include "npu_build.h"

#include <stdio.h>

#define NPU_MEASURE_TEXT_MAX 512

// The number of a kernel of the tree, or 0.
static uint32_t npu_kernel_named(const ptowsp_program_tables *tables, const char *name) {
    for (uint32_t i = 1; i < tables->kernel_count; i++) {
        if (tables->kernels[i].is_used && strcmp(tables->kernels[i].name, name) == 0) {
            return i;
        }
    }
    return 0;
}

static bool npu_check_tile(const ptowsp_kernel_info *info, const ptowsp_task *task, uint32_t i,
                           char text[NPU_MEASURE_TEXT_MAX]) {
    const ptowsp_tile_param *param = &info->tiles[i];
    const int64_t sizes[2] = {ptowsp_task_rows(task, i), ptowsp_task_cols(task, i)};
    const int64_t most[2] = {param->rows, param->cols};
    if (!task->tiles[i].data) {
        snprintf(text, NPU_MEASURE_TEXT_MAX, "tile %s has no data", param->name);
        return false;
    }
    for (int axis = 0; axis < 2; axis++) {
        const char *what = axis ? "columns" : "rows";
        if (sizes[axis] < 1) {
            snprintf(text, NPU_MEASURE_TEXT_MAX, "tile %s has %lld %s", param->name,
                     (long long)sizes[axis], what);
            return false;
        }
        if (most[axis] != PTOWSP_DYNAMIC && sizes[axis] > most[axis]) {
            snprintf(text, NPU_MEASURE_TEXT_MAX, "tile %s has %lld %s, its parameter %lld",
                     param->name, (long long)sizes[axis], what, (long long)most[axis]);
            return false;
        }
    }
    return true;
}

static bool npu_check_task(const ptowsp_kernel_info *info, const ptowsp_task *task,
                           char text[NPU_MEASURE_TEXT_MAX]) {
    const uint32_t cells = info->axis_count + 2 * info->tile_count;
    const uint32_t has[4] = {task->user_axis_count, task->tile_count, task->axis_arg_count,
                             task->arg_count};
    const uint32_t wanted[4] = {info->axis_count, info->tile_count, cells,
                                cells + info->scalar_count};
    static const char names[4][16] = {"user_axis_count", "tile_count", "axis_arg_count",
                                      "arg_count"};
    for (int i = 0; i < 4; i++) {
        if (has[i] != wanted[i]) {
            snprintf(text, NPU_MEASURE_TEXT_MAX, "%s of the task is %u, not %u", names[i], has[i],
                     wanted[i]);
            return false;
        }
    }
    if ((wanted[3] && !task->args) || (info->tile_count && !task->tiles)) {
        snprintf(text, NPU_MEASURE_TEXT_MAX, "the task has no %s", task->args ? "tiles" : "args");
        return false;
    }
    for (uint32_t i = 0; i < info->tile_count; i++) {
        if (!npu_check_tile(info, task, i, text)) {
            return false;
        }
    }
    return true;
}

static ptowsp_status npu_measure(ptowsp_npu *npu, uint32_t kernel, const ptowsp_task *task,
                                 const ptowsp_cost *cost, ptowsp_kernel_stats *out_stats) {
    const ptowsp_kernel_info *info = &ptowsp_program_read(npu->program)->kernels[kernel];
    uint64_t cycles = 0, busy[PTOWSP_PIPE_COUNT];
    const char *text = "";
    ptowsp_status status = npu->runner.measure(kernel, task, cost, &cycles, busy, &text);
    if (status != PTOWSP_OK) {
        char line[NPU_MEASURE_TEXT_MAX];
        snprintf(line, sizeof line, "npu: measure: kernel %s: %s", info->name, text);
        return ptowsp_context_fail(npu->context, status, kernel, line);
    }
    memset(out_stats, 0, sizeof *out_stats);
    out_stats->cycles = (ptowsp_cycles)cycles;
    for (int i = 0; i < PTOWSP_PIPE_COUNT; i++) {
        out_stats->busy_cycles[i] = (ptowsp_cycles)busy[i];
    }
    return PTOWSP_OK;
}

static ptowsp_status npu_measure_fail(ptowsp_npu *npu, ptowsp_status status, const char *kernel,
                                      const char *text) {
    char line[NPU_MEASURE_TEXT_MAX + 128];
    snprintf(line, sizeof line, "npu: measure: %s%s%s%s", kernel ? "kernel " : "",
             kernel ? kernel : "", kernel ? ": " : "", text);
    return ptowsp_context_fail(npu->context, status, PTOWSP_NO_INDEX, line);
}

ptowsp_status ptowsp_npu_measure(ptowsp_npu *npu, const char *kernel, const ptowsp_task *task,
                                 const ptowsp_cost *cost, ptowsp_kernel_stats *out_stats) {
    static const ptowsp_cost unit = {PTOWSP_MODEL_UNIT, NULL, NULL, NULL};
    char text[NPU_MEASURE_TEXT_MAX];
    PTOWSP_ASSERT(npu);
    if (!kernel || !task || !out_stats) {
        return npu_measure_fail(npu, PTOWSP_INVALID_PARAMS, NULL,
                                !kernel ? "kernel is NULL"
                                : !task ? "task is NULL"
                                        : "out_stats is NULL");
    }
    const ptowsp_program_tables *tables = ptowsp_program_read(npu->program);
    const uint32_t number = npu_kernel_named(tables, kernel);
    if (number == 0) {
        return npu_measure_fail(npu, PTOWSP_INVALID_PARAMS, kernel, "the tree has no such kernel");
    }
    const ptowsp_kernel_info *info = &tables->kernels[number];
    if (!info->is_tile_kernel && !info->pto) {
        return npu_measure_fail(npu, PTOWSP_UNSUPPORTED, kernel,
                                "it is a C function, which says its cycles itself");
    }
    if (!npu_check_task(info, task, text)) {
        return npu_measure_fail(npu, PTOWSP_INVALID_PARAMS, kernel, text);
    }
    ptowsp_status status = ptowsp_cost_check(npu->context, cost);
    if (status == PTOWSP_OK && cost && cost->model == PTOWSP_MODEL_USER) {
        return npu_measure_fail(npu, PTOWSP_UNSUPPORTED, kernel,
                                "a tree has no cost model of the user");
    }
    return status == PTOWSP_OK ? npu_measure(npu, number, task, cost ? cost : &unit, out_stats)
                               : status;
}
