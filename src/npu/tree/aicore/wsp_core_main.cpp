// Where a device's cores begin. One library is made of aicore/ for cube cores and one for vector
// cores, each with the kernels of that unit; the host starts as many blocks as there are cores.
//
// THIS HAS NEVER RUN (see host/wsp_ascend.cpp). A core reads and writes global memory through a
// cache of its own, so lines of the cache are given up before reading what others write, and
// written back after writing what others read.

#if defined(WSP_ASCEND) && (defined(WSP_UNIT_cube) || defined(WSP_UNIT_vector))

#include "wsp_kernel.h"

#include "wsp_device.h"

namespace {

// Gives up what the cache has of the 64 bytes at an address, or writes it back.
AICORE inline void refresh(__gm__ const void *address) {
    dcci(reinterpret_cast<__gm__ uint64_t *>(const_cast<__gm__ void *>(address)),
         SINGLE_CACHE_LINE);
}

AICORE inline void work_at(__gm__ wsp_line *line, uint32_t core) {
    __gm__ volatile wsp_line *at = line;
    do {
        refresh(line);
    } while (at->aicpu_ready == 0);
    at->aicore_done = core + 1;
    refresh(line);
    for (;;) {
        refresh(line);
        if (at->control == WSP_QUIT) {
            return;
        }
        if (at->task_status != WSP_ASSIGNED) {
            continue;
        }
        __gm__ wsp_task *task =
            reinterpret_cast<__gm__ wsp_task *>(static_cast<uintptr_t>(at->task));
        __gm__ const char *bytes = reinterpret_cast<__gm__ const char *>(task);
        for (uint32_t i = 0; i < sizeof(wsp_task); i += 64) {
            refresh(bytes + i);
        }
        wsp_core_run(task);
        pipe_barrier(PIPE_ALL);
        refresh(bytes + sizeof(wsp_task) - 1);  // cycles and status
        refresh(bytes + sizeof(wsp_task) - 64);
        at->task_status = WSP_DONE;
        refresh(line);
    }
}

AICORE inline void work_as(__gm__ wsp_device_run *run, uint32_t first) {
    refresh(run);
    __gm__ wsp_line *lines =
        reinterpret_cast<__gm__ wsp_line *>(static_cast<uintptr_t>(run->lines));
    const uint32_t core = first + static_cast<uint32_t>(get_block_idx());
    work_at(lines + core, core);
}

}  // namespace

#ifdef WSP_UNIT_cube
extern "C" __global__ AICORE void wsp_cube_cores(__gm__ wsp_device_run *run) {
    work_as(run, run->vector_count);
}
#define WSP_CORES  wsp_cube_cores
#define WSP_LAUNCH wsp_launch_cube
#else
extern "C" __global__ AICORE void wsp_vector_cores(__gm__ wsp_device_run *run) {
    work_as(run, 0);
}
#define WSP_CORES  wsp_vector_cores
#define WSP_LAUNCH wsp_launch_vector
#endif

// The host's: starts the cores, whose end the stream waits for.
extern "C" int32_t WSP_LAUNCH(uint32_t block_count, void *stream, uint64_t run) {
    WSP_CORES<<<block_count, nullptr, stream>>>(
        reinterpret_cast<wsp_device_run *>(static_cast<uintptr_t>(run)));
    return 0;
}

#endif
