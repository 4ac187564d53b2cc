// The entry of a device's cores. aicore/ is built into one library for cube cores and one for
// vector cores, each with the kernels of that unit; the host starts as many blocks as there are
// cores. If the program has kernels for both (MIX), it is built into one library for blocks of one
// cube core and two vector cores: such a task is given to the three of them.
//
// THIS HAS NEVER RUN (see host/wsp_ascend.cpp). A core accesses global memory through a cache of
// its own. So it drops cache lines before it reads data of other processors, and writes lines back
// after it has written data for them.
//
// A core waits without a limit of its own, as no documented instruction tells it the time: the AICPU
// tells it to quit however a run ends. When the AICPU does not, the device ends the operators at the
// run's time limit, which the host has set, and the host resets the device.

#if defined(WSP_ASCEND) &&                                                                         \
    (defined(WSP_UNIT_cube) || defined(WSP_UNIT_vector) || defined(WSP_UNIT_block))

#include "wsp_dispatch.h"

#include "wsp_device.h"

namespace {

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
#define PWSP_LINE_PULL(line)            wsp::refresh(line)
#define PWSP_LINE_PUSH(line)            wsp::refresh(line)
#define PWSP_LINE_LOAD(field)           load(field)
#define PWSP_LINE_STORE(field, value)   store(field, value)
#define PWSP_LINE_RELEASE(field, value) store(field, value)
#define PWSP_LINE_SET(field, value)     store(field, value)
#define WSP_CORE_LINE
#include "wsp_core.h"

namespace {

AICORE inline void work_at(__gm__ pwsp_line *line, uint32_t core WSP_BLOCK_PARAM) {
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
        wsp::read_task(task);
        wsp_core_run(task WSP_BLOCK_ARG);
        wsp::write_results(task);
        pwsp_core_done(line);
    }
}

AICORE inline __gm__ pwsp_line *lines_of(__gm__ wsp_device_run *run) {
    wsp::refresh(run);
    wsp::refresh(&run->fifos);
    return reinterpret_cast<__gm__ pwsp_line *>(static_cast<uintptr_t>(run->lines));
}

}  // namespace

#if defined(WSP_UNIT_block)
// [read] A kernel for both kinds of cores sets the address of their flags first, and ends with a
// barrier. get_block_idx() is the block's number on each of its cores.
extern "C" __global__ AICORE void wsp_block_cores(__gm__ wsp_device_run *run, uint64_t ffts) {
    set_ffts_base_addr(ffts);
    __gm__ pwsp_line *lines = lines_of(run);
    const uint32_t block = static_cast<uint32_t>(get_block_idx());
    wsp::Pipes pipes(reinterpret_cast<__gm__ uint8_t *>(
        static_cast<uintptr_t>(run->fifos + static_cast<uint64_t>(block) * 2 * WSP_FIFO_BYTES)));
#if WSP_HAS_CUBE
    const uint32_t core = run->vector_count + block;
#else
    const uint32_t core = 2 * block + static_cast<uint32_t>(get_subblockid());
#endif
    work_at(lines + core, core, pipes);
    pipe_barrier(PIPE_ALL);
}
#define WSP_CORES wsp_block_cores
#define WSP_BEGIN wsp_start_block
#define WSP_FFTS  , ffts
#elif defined(WSP_UNIT_cube)
extern "C" __global__ AICORE void wsp_cube_cores(__gm__ wsp_device_run *run) {
    const uint32_t core = static_cast<uint32_t>(get_block_idx());
    __gm__ pwsp_line *lines = lines_of(run);
    work_at(lines + run->vector_count + core, run->vector_count + core);
}
#define WSP_CORES wsp_cube_cores
#define WSP_BEGIN wsp_start_cube
#define WSP_FFTS
#else
extern "C" __global__ AICORE void wsp_vector_cores(__gm__ wsp_device_run *run) {
    const uint32_t core = static_cast<uint32_t>(get_block_idx());
    work_at(lines_of(run) + core, core);
}
#define WSP_CORES wsp_vector_cores
#define WSP_BEGIN wsp_start_vector
#define WSP_FFTS
#endif

// Called by the host: starts the cores; the stream waits for their end. `ffts` is the address of the
// flags between cores, which blocks need.
extern "C" int32_t WSP_BEGIN(uint32_t block_count, void *stream, uint64_t run, uint64_t ffts) {
    (void)ffts;
    WSP_CORES<<<block_count, nullptr, stream>>>(
        reinterpret_cast<wsp_device_run *>(static_cast<uintptr_t>(run)) WSP_FFTS);
    return 0;
}

#endif
