// The entry of a device's cores. aicore/ is built into one library for cube cores and one for
// vector cores, each with the kernels of that unit; the host starts as many blocks as there are
// cores.
//
// THIS HAS NEVER RUN (see host/wsp_ascend.cpp). A core accesses global memory through a cache of
// its own. So it drops cache lines before it reads data of other processors, and writes lines back
// after it has written data for them.
//
// A core waits without a limit of its own: the AICPU tells it to quit however a run ends, and when
// the AICPU does not end, the host resets the device.

#if defined(WSP_ASCEND) && (defined(WSP_UNIT_cube) || defined(WSP_UNIT_vector))

#include "wsp_kernel.h"

#include "wsp_device.h"

namespace {

// Drops the cached 64 bytes at an address, or writes them back. What was stored before is there
// before it, and nothing is loaded until it is done: else DONE could be seen before outputs, or a
// stale task be read.
AICORE inline void refresh(__gm__ const void *address) {
    dsb(DSB_DDR);
    dcci(reinterpret_cast<__gm__ uint64_t *>(const_cast<__gm__ void *>(address)),
         SINGLE_CACHE_LINE);
    dsb(DSB_DDR);
}

template <typename T> AICORE inline T load(__gm__ const T *field) {
    return *static_cast<__gm__ const volatile T *>(field);
}

template <typename T> AICORE inline void store(__gm__ T *field, T value) {
    *static_cast<__gm__ volatile T *>(field) = value;
}

}  // namespace

// The line to the AICPU, by the library's protocol.
#define PTOWSP_ASSERT(condition)        ((void)0)
#define PWSP_LINE_FN                    AICORE static inline
#define PWSP_LINE_GM                    __gm__
#define PWSP_LINE_PULL(line)            refresh(line)
#define PWSP_LINE_PUSH(line)            refresh(line)
#define PWSP_LINE_LOAD(field)           load(field)
#define PWSP_LINE_STORE(field, value)   store(field, value)
#define PWSP_LINE_RELEASE(field, value) store(field, value)
#define PWSP_LINE_SET(field, value)     store(field, value)
#define WSP_CORE_LINE
#include "wsp_core.h"

namespace {

AICORE inline void work_at(__gm__ pwsp_line *line, uint32_t core) {
    while (!pwsp_core_may_begin(line)) {
        if (pwsp_core_must_quit(line)) {  // the AICPU has refused the run
            return;
        }
    }
    pwsp_core_begin(line, core);
    for (;;) {
        if (pwsp_core_must_quit(line)) {
            return;
        }
        const uint64_t address = pwsp_core_poll(line);
        if (!address) {
            continue;
        }
        __gm__ wsp_task *task =
            reinterpret_cast<__gm__ wsp_task *>(static_cast<uintptr_t>(address));
        __gm__ const char *bytes = reinterpret_cast<__gm__ const char *>(task);
        for (uint32_t i = 0; i < sizeof(wsp_task); i += 64) {
            refresh(bytes + i);
        }
        wsp_core_run(task);
        pipe_barrier(PIPE_ALL);
        refresh(bytes + sizeof(wsp_task) - 1);  // cycles and status
        refresh(bytes + sizeof(wsp_task) - 64);
        pwsp_core_done(line);
    }
}

AICORE inline void work_as(__gm__ wsp_device_run *run, uint32_t first) {
    refresh(run);
    __gm__ pwsp_line *lines =
        reinterpret_cast<__gm__ pwsp_line *>(static_cast<uintptr_t>(run->lines));
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

// Called by the host: starts the cores; the stream waits for their end.
extern "C" int32_t WSP_LAUNCH(uint32_t block_count, void *stream, uint64_t run) {
    WSP_CORES<<<block_count, nullptr, stream>>>(
        reinterpret_cast<wsp_device_run *>(static_cast<uintptr_t>(run)));
    return 0;
}

#endif
