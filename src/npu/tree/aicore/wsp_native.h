// The surroundings of a kernel that is a C function: a ptowsp_task made from a wsp_task, and its
// cycles.
//
// On the stand-in a kernel gets the same task as from ptowsp_run_execute. The device half has never run
// [read]: pointers to global memory are in an address space of their own there, which plain C source
// does not express; functions that it calls must be marked PTOWSP_AICORE.

#ifndef WSP_NATIVE_H
#define WSP_NATIVE_H

#ifdef WSP_ASCEND
// Its functions are plain ones, which may use libm, double and pointers without an address space.
#ifndef WSP_NATIVE_ON_AICORE
#error                                                                                             \
    "a kernel that is a C function is not for AICore; where its source is written for it (PTOWSP_AICORE, PTOWSP_GM), define WSP_NATIVE_ON_AICORE"
#endif
#define PTOWSP_AICORE [aicore]
#define PTOWSP_GM     __gm__
#endif

// A tree may be linked with the library, which has these functions as well.
#ifndef PTOWSP_API
#define PTOWSP_API extern __attribute__((weak, visibility("hidden")))
#endif

#include "wsp_abi.h"

namespace wsp {

// A kernel that returned no cycles has failed: with a status, or without.
PTOWSP_AICORE inline void set_result(PTOWSP_GM wsp_task *task, ptowsp_cycles result) {
    int64_t status = static_cast<int64_t>(result);
    bool is_failed = result > PTOWSP_CYCLES_MAX;
    task->cycles = is_failed ? 0 : result;
    task->status = !is_failed                     ? PTOWSP_OK
                   : status >= PTOWSP_RANK_FAILED ? static_cast<int32_t>(status)
                                                  : static_cast<int32_t>(PTOWSP_KERNEL_FAILED);
    task->fault = 0;
}

// The cycles: returned by `cost` for the arguments, else `cycles` if that is not 0, else returned
// by `fn`.
PTOWSP_AICORE inline void run_native(PTOWSP_GM wsp_task *task, const char *name,
                                     ptowsp_kernel_fn fn, ptowsp_kernel_fn cost,
                                     ptowsp_cycles cycles) {
    uint32_t axis_args = task->axis_count + 2 * task->tile_count;
    uint64_t args[WSP_TASK_ARG_MAX];
    ptowsp_tile tiles[PTOWSP_TASK_TILE_MAX], no_tiles[PTOWSP_TASK_TILE_MAX];
    for (uint32_t i = 0; i < axis_args + task->scalar_count; i++) {
        args[i] = task->args[i];
    }
    for (uint32_t i = 0; i < PTOWSP_TASK_TILE_MAX; i++) {
        bool is_there = i < task->tile_count;
        tiles[i].data = is_there
                            ? reinterpret_cast<void *>(static_cast<uintptr_t>(task->tiles[i].data))
                            : nullptr;
        tiles[i].row_stride = is_there ? task->tiles[i].row_stride : 0;
        tiles[i].col_stride = is_there ? task->tiles[i].col_stride : 0;
        no_tiles[i].data = nullptr;
        no_tiles[i].row_stride = no_tiles[i].col_stride = 0;
    }
    ptowsp_task seen;
    seen.args = args;
    seen.arg_count = axis_args + task->scalar_count;
    seen.axis_arg_count = axis_args;
    seen.user_axis_count = task->axis_count;
    seen.tile_count = task->tile_count;
    seen.tiles = no_tiles;
    seen.index = task->index;
    seen.kernel_name = name;
    seen.lane = task->core;
    if (cost) {
        cycles = cost(&seen, nullptr);
        if (cycles > PTOWSP_CYCLES_MAX) {
            set_result(task, cycles);
            return;
        }
    }
    seen.tiles = tiles;
    ptowsp_cycles result = fn(&seen, nullptr);
    bool is_told = cost != nullptr || cycles > 0;
    set_result(task, result > PTOWSP_CYCLES_MAX || !is_told ? result : cycles);
}

}  // namespace wsp

#endif
