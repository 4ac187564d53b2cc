// The vocabulary of dispatch.cpp: a core's steps before and after a kernel, and launches by the host.

#ifndef WSP_DISPATCH_H
#define WSP_DISPATCH_H

#include "wsp_kernel.h"

namespace wsp {

AICORE inline void begin_task(__gm__ wsp_task *task) {
    task->cycles = 0;
    task->status = PTOWSP_OK;
    task->fault = 0;
}

// The machine whose cycles a kernel counts.
#if WSP_IS_SHIM
#define WSP_MACHINE(machine) (machine)
#else
#define WSP_MACHINE(machine) nullptr
#endif

#if WSP_IS_SHIM

// Makes this thread's core one of a machine, which counts with the model of the run. Operands are
// not checked again: that was done when the kernel was built.
inline void begin_tiles(wsp_task *task, const ptoisa_machine *machine) {
    begin_task(task);
    ptoisa_core &core = ptoisa_this_core();
    core.model = static_cast<ptoisa_model>(task->model);
    core.machine = machine;
    core.is_as_simulator = false;
#ifndef WSP_CHECKED
    core.is_checked = false;
#endif
    core.on_fault = [](ptoisa_core *self, const char *) {
        static_cast<wsp_task *>(self->fault_user)->fault = FAULT_OF_SHIM;
    };
    core.fault_user = task;
    ptoisa_core_reset(&core);
}

inline void end_tiles(wsp_task *task) {
    ptoisa_core &core = ptoisa_this_core();
    if (task->status == PTOWSP_OK && (!ptoisa_core_finish(&core) || task->fault)) {
        task->status = PTOWSP_KERNEL_FAILED;
    }
    task->cycles = task->status == PTOWSP_OK ? ptoisa_cycles(&core) : 0;
    core.fault_user = nullptr;
}

// The text of the first fault of a PTO-ISA source in this process, or "".
inline const char *own_fault(const char *said = nullptr) {
    static char text[256];
    static char is_taken, is_there;
    if (said && !__atomic_test_and_set(&is_taken, __ATOMIC_RELAXED)) {
        std::strncpy(text, said, sizeof text - 1);
        __atomic_store_n(&is_there, char(1), __ATOMIC_RELEASE);  // for the load below
    }
    return __atomic_load_n(&is_there, __ATOMIC_ACQUIRE) ? text : "";
}

// After begin_tiles: the operands of a source that is passed through have not been checked.
inline void begin_own(bool is_as_simulator) {
    ptoisa_core &core = ptoisa_this_core();
    core.is_checked = true;
    core.is_as_simulator = is_as_simulator;
    core.on_fault = [](ptoisa_core *self, const char *text) {
        static_cast<wsp_task *>(self->fault_user)->fault = FAULT_OF_SHIM;
        own_fault(text);
    };
}

// -- measuring --------------------------------------------------------------------------------------

static_assert(sizeof(ptoisa_timing) == sizeof(ptowsp_core_timing) &&
                  sizeof(ptoisa_path_timing) == sizeof(ptowsp_path_timing) &&
                  offsetof(ptoisa_timing, clock_mhz) == offsetof(ptowsp_core_timing, clock_mhz) &&
                  offsetof(ptoisa_timing, without) == offsetof(ptowsp_core_timing, without) &&
                  offsetof(ptoisa_timing, path) == offsetof(ptowsp_core_timing, paths),
              "times of a core are the same bytes for library and shim");

// Parts of dispatch.cpp: execution of a task, and the texts of faults.
struct Dispatch {
    void (*run)(wsp_task *task);
    const char *(*fault_text)(uint32_t kernel, uint32_t fault);
};

// Executes a task on this thread's core, and reads its clocks: of ptowsp_npu_measure, which has checked
// all of it.
inline ptowsp_status measure(const Dispatch &tree, uint32_t kernel, const ptowsp_task *task,
                             const ptowsp_cost *cost, uint64_t *out_cycles,
                             uint64_t out_busy[PTOWSP_PIPE_COUNT], const char **out_text) {
    pto::shim::Thread &mine = pto::shim::thread();
    ptoisa_timing timing;
    wsp_task own;
    std::memset(&own, 0, sizeof own);
    own.kernel = kernel;
    own.axis_count = task->user_axis_count;
    own.tile_count = task->tile_count;
    own.scalar_count = task->arg_count - task->axis_arg_count;
    own.model = static_cast<uint32_t>(cost->model);
    std::memcpy(own.args, task->args, task->arg_count * sizeof own.args[0]);
    for (uint32_t i = 0; i < task->tile_count; i++) {
        const ptowsp_tile &tile = task->tiles[i];
        own.tiles[i] = {reinterpret_cast<uintptr_t>(tile.data), tile.row_stride, tile.col_stride};
    }
    if (cost->timing) {
        std::memcpy(static_cast<void *>(&timing), cost->timing, sizeof timing);
        mine.core.timing = &timing;
    }
    mine.has_block = false;
    tree.run(&own);
    mine.core.timing = nullptr;
    *out_cycles = ptoisa_cycles(&mine.core);
    std::memcpy(out_busy, mine.has_block ? mine.block_busy : mine.core.busy,
                PTOWSP_PIPE_COUNT * sizeof out_busy[0]);
    *out_text = own.fault ? tree.fault_text(kernel, own.fault) : "";
    return static_cast<ptowsp_status>(own.status);
}

// A part of dispatch.cpp. It is exported, like the functions of wsp_runner.h.
#define WSP_MEASURE                                                                                \
    extern "C" __attribute__((visibility("default"))) ptowsp_status wsp_runner_measure(            \
        uint32_t kernel, const ptowsp_task *task, const ptowsp_cost *cost, uint64_t *out_cycles,   \
        uint64_t *out_busy, const char **out_text) {                                               \
        return wsp::measure({wsp_core_run, wsp_core_fault_text}, kernel, task, cost, out_cycles,   \
                            out_busy, out_text);                                                   \
    }

#else

#define WSP_MEASURE

AICORE inline void begin_own(bool) {
}

template <typename Machine> AICORE inline void begin_tiles(__gm__ wsp_task *task, Machine) {
    begin_task(task);
}

AICORE inline void end_tiles(__gm__ wsp_task *) {
}

#endif

// Cycles that the program has given, in place of the counted ones.
AICORE inline void set_cycles(__gm__ wsp_task *task, uint64_t cycles) {
    task->cycles = task->status == PTOWSP_OK ? cycles : 0;
}

// -- a task in global memory ----------------------------------------------------------------------

#ifdef WSP_ASCEND

// Drops the cached 64 bytes at an address, or writes them back. Earlier stores complete before it, and
// nothing is loaded until it is done: else DONE could become visible before outputs, or a stale task
// be read.
AICORE inline void refresh(__gm__ const void *address) {
    dsb(DSB_DDR);
    dcci(reinterpret_cast<__gm__ uint64_t *>(const_cast<__gm__ void *>(address)),
         SINGLE_CACHE_LINE);
    dsb(DSB_DDR);
}

AICORE inline void read_task(__gm__ wsp_task *task) {
    for (uint32_t i = 0; i < sizeof(wsp_task); i += 64) {
        refresh(reinterpret_cast<__gm__ const char *>(task) + i);
    }
}

// Cycles and status, after all that the kernel has stored.
AICORE inline void write_results(__gm__ wsp_task *task) {
    __gm__ const char *end = reinterpret_cast<__gm__ const char *>(task + 1);
    pipe_barrier(PIPE_ALL);
    refresh(end - 1);
    refresh(end - 64);
}

#else

inline void write_results(wsp_task *) {
}

#endif

// -- launches by the host -------------------------------------------------------------------------
//
//      host                                     cores
//      wsp_launch_...(count, stream, ...)  ->  wsp_tasks_...: each runs its element of the array
//
// A device starts a block for each task. Where blocks are three cores (libwsp_block.so), a block runs
// two tasks of a kernel for vector cores, one on each of them. This machine calls the entry, once for
// each task. THIS HAS NEVER RUN on a device.

#define WSP_TASKS                                                                                  \
    [[maybe_unused]] __gm__ uint8_t *tasks, [[maybe_unused]] uint32_t task_count,                  \
        [[maybe_unused]] __gm__ uint8_t *fifos, [[maybe_unused]] uint64_t ffts
#define WSP_LAUNCH                                                                                 \
    uint32_t task_count, [[maybe_unused]] void *stream, uint64_t tasks,                            \
        [[maybe_unused]] uint64_t fifos, [[maybe_unused]] uint64_t ffts

// Which kernels a library launches, by their unit.
#ifdef WSP_ASCEND
#ifdef WSP_UNIT_block
#define WSP_LAUNCHES_mix 1
#else
#define WSP_LAUNCHES_mix 0
#endif
#if defined(WSP_UNIT_block) || defined(WSP_UNIT_cube)
#define WSP_LAUNCHES_cube 1
#else
#define WSP_LAUNCHES_cube 0
#endif
#if defined(WSP_UNIT_block) || defined(WSP_UNIT_vector)
#define WSP_LAUNCHES_vector 1
#else
#define WSP_LAUNCHES_vector 0
#endif
#else
#define WSP_LAUNCHES_mix    1
#define WSP_LAUNCHES_cube   1
#define WSP_LAUNCHES_vector 1
#endif

#ifdef WSP_ASCEND

// [read] The first act of a kernel for both kinds of cores; and its FIFOs, which begin empty.
#ifdef WSP_UNIT_block
#define WSP_TASKS_BLOCK                                                                            \
    set_ffts_base_addr(ffts);                                                                      \
    wsp::Pipes pipes(fifos + static_cast<uint64_t>(get_block_idx()) * 2 * WSP_FIFO_BYTES);
#else
#define WSP_TASKS_BLOCK
#endif

AICORE inline uint32_t this_block() {
    return static_cast<uint32_t>(get_block_idx());
}

AICORE inline __gm__ wsp_task *launched(__gm__ uint8_t *tasks, uint32_t index) {
    __gm__ wsp_task *task =
        reinterpret_cast<__gm__ wsp_task *>(tasks + static_cast<uint64_t>(index) * WSP_TASK_STRIDE);
    read_task(task);
    return task;
}

// This core's task, or null.
AICORE inline __gm__ wsp_task *launched_mix(__gm__ uint8_t *tasks, uint32_t) {
#if WSP_HAS_CUBE
    return launched(tasks, 3 * this_block());
#else
    return launched(tasks, 3 * this_block() + 1 + static_cast<uint32_t>(get_subblockid()));
#endif
}

AICORE inline __gm__ wsp_task *launched_cube(__gm__ uint8_t *tasks, uint32_t) {
    return launched(tasks, this_block());
}

AICORE inline __gm__ wsp_task *launched_vector(__gm__ uint8_t *tasks, uint32_t task_count) {
#ifdef WSP_UNIT_block
    const uint32_t index = 2 * this_block() + static_cast<uint32_t>(get_subblockid());
#else
    const uint32_t index = this_block();
#endif
    return index < task_count ? launched(tasks, index) : nullptr;
}

#define WSP_START(blocks, entry)                                                                   \
    entry<<<blocks, nullptr, stream>>>(                                                            \
        reinterpret_cast<uint8_t *>(static_cast<uintptr_t>(tasks)), task_count,                    \
        reinterpret_cast<uint8_t *>(static_cast<uintptr_t>(fifos)), ffts)
#define WSP_START_mix(entry)  WSP_START(task_count, entry)
#define WSP_START_cube(entry) WSP_START(task_count, entry)
#ifdef WSP_UNIT_block
#define WSP_START_vector(entry) WSP_START((task_count + 1) / 2, entry)
#else
#define WSP_START_vector(entry) WSP_START(task_count, entry)
#endif

#else

#define WSP_TASKS_BLOCK

inline wsp_task *launched_mix(uint8_t *task, uint32_t) {
    return reinterpret_cast<wsp_task *>(task);
}

inline wsp_task *launched_cube(uint8_t *task, uint32_t) {
    return reinterpret_cast<wsp_task *>(task);
}

inline wsp_task *launched_vector(uint8_t *task, uint32_t) {
    return reinterpret_cast<wsp_task *>(task);
}

#define WSP_START(entry)                                                                           \
    for (uint32_t task = 0; task < task_count; task++) {                                           \
        entry(reinterpret_cast<uint8_t *>(static_cast<uintptr_t>(tasks)) + task * WSP_TASK_STRIDE, \
              1, nullptr, 0);                                                                      \
    }
#define WSP_START_mix(entry)    WSP_START(entry)
#define WSP_START_cube(entry)   WSP_START(entry)
#define WSP_START_vector(entry) WSP_START(entry)

#endif

}  // namespace wsp

#endif
