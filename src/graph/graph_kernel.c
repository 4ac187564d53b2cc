// Kernels as tasks of graphs.
//
// The inputs of a kernel are copied into one block of the graph's arena:
//
//      pwsp_graph_kernel | args ... | tiles ...
//
// The task's fn and user are pwsp_graph_run_kernel and this block, so lanes know nothing of
// kernels. Cycles are stored with the number of their run, so nothing must be cleared before a run.

#include "../base/halt.h"
#include "graph_state.h"

PWSP_INTERNAL const char *pwsp_graph_check_kernel(const ptowsp_graph_call *call,
                                                  uint64_t *out_value) {
    uint64_t arg_count = call->user_axis_count + UINT64_C(2) * call->tile_count;
    arg_count += call->scalar_count;
    if (!call->fn) {
        return "has a kernel without fn";
    }
    if (call->user_axis_count > PTOWSP_TASK_AXIS_MAX) {
        *out_value = call->user_axis_count;
        return "has a kernel with more axes than PTOWSP_TASK_AXIS_MAX, 8";
    }
    if (call->tile_count > PTOWSP_TASK_TILE_MAX) {
        *out_value = call->tile_count;
        return "has a kernel with more tiles than PTOWSP_TASK_TILE_MAX, 12";
    }
    if (call->scalar_count > PTOWSP_TASK_SCALAR_MAX) {
        *out_value = call->scalar_count;
        return "has a kernel with more scalars than PTOWSP_TASK_SCALAR_MAX, 8";
    }
    return arg_count > 0 && !call->args           ? "has a kernel without args"
           : call->tile_count > 0 && !call->tiles ? "has a kernel without tiles"
                                                  : NULL;
}

PWSP_INTERNAL pwsp_graph_kernel *pwsp_graph_add_kernel(ptowsp_graph *graph,
                                                       const ptowsp_graph_task_desc *desc) {
    const ptowsp_graph_call *call = desc->kernel;
    uint32_t axis_arg_count = call->user_axis_count + 2 * call->tile_count;
    size_t arg_bytes = (axis_arg_count + call->scalar_count) * sizeof(uint64_t);
    size_t tile_bytes = call->tile_count * sizeof(ptowsp_tile);
    char *block = (char *)pwsp_arena_alloc(
        &graph->arena, sizeof(pwsp_graph_kernel) + arg_bytes + tile_bytes, sizeof(uint64_t));
    if (!block) {
        return NULL;
    }
    pwsp_graph_kernel *kernel = (pwsp_graph_kernel *)(void *)block;
    uint64_t *args = (uint64_t *)(void *)(block + sizeof *kernel);
    ptowsp_tile *tiles = (ptowsp_tile *)(void *)(block + sizeof *kernel + arg_bytes);
    if (arg_bytes > 0) {
        memcpy(args, call->args, arg_bytes);
    }
    if (tile_bytes > 0) {
        memcpy(tiles, call->tiles, tile_bytes);
    }
    const char *name = desc->name ? graph->arrays.names[graph->name_count - 1] : "kernel";
    kernel->graph = graph;
    kernel->fn = call->fn;
    kernel->user = desc->user;
    kernel->task.args = args;
    kernel->task.arg_count = axis_arg_count + call->scalar_count;
    kernel->task.axis_arg_count = axis_arg_count;
    kernel->task.user_axis_count = call->user_axis_count;
    kernel->task.tile_count = call->tile_count;
    kernel->task.tiles = tiles;
    kernel->task.kernel_name = name;
    return kernel;
}

PWSP_INTERNAL ptowsp_status pwsp_graph_call_kernel(const pwsp_graph_kernel *kernel, uint64_t task,
                                                   uint32_t lane, ptowsp_cycles *out_cycles) {
    ptowsp_task seen = kernel->task;
    seen.index = task;
    seen.lane = lane;
    ptowsp_cycles result = kernel->fn(&seen, kernel->user);
    if (PWSP_UNLIKELY(result > PTOWSP_CYCLES_MAX)) {
        *out_cycles = 0;
        return pwsp_kernel_status(result);
    }
    *out_cycles = result;
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_graph_run_kernel(void *user, uint64_t task, uint32_t lane) {
    pwsp_graph_kernel *kernel = (pwsp_graph_kernel *)user;
    ptowsp_status status = pwsp_graph_call_kernel(kernel, task, lane, &kernel->cycles);
    kernel->run_number = kernel->graph->last.run_number;
    return status;
}
