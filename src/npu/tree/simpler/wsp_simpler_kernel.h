// Kernels under PTO Runtime (simpler, revision 6ebaf77 of 2026-08-22): the only file of kernels/ that
// depends on its interface. A source defines the counts of its arguments, includes this file, has its
// WSP_SIMPLER_ENTRY, and continues with the kernel of every tree. A device enters the code at its start,
// so the entry is the first function:
//
//      #define WSP_SIMPLER_TILES      3
//      #define WSP_SIMPLER_AXES       0
//      #define WSP_SIMPLER_SCALARS    1
//      #define WSP_SIMPLER_SLOT_BYTES 2560    of a FIFO: kernels of MIX alone
//
//      a2a3sim, a5sim    PTO-ISA's CPU simulator (WSP_PTO_ISA)
//      a2a3, a5          CANN's compiler (WSP_ASCEND): THIS HAS NEVER RUN
//      neither           the shim: tests of the generator
//
// Arguments are tiles, the FIFO, axes, scalars, and by how much these differ from block to block. A
// kernel reads them where they are (WSP_TILE_SIZE ... of wsp_args.h), as a device has no global memory
// for a wsp_task. No status comes back: a task that fails a check ends without an effect on a device, and
// elsewhere the process ends.
//
// MIX is one submit for a cube core and two vector cores. On a device each has its half. Elsewhere the
// first vector core has all of it, and the others have nothing to do. CANN's get_subblockid() is 0 for
// both vector cores, so the second is a source of its own, with WSP_SUBBLOCK 1.

#ifndef WSP_SIMPLER_KERNEL_H
#define WSP_SIMPLER_KERNEL_H

#if defined(__CPU_SIM)
#define WSP_PTO_ISA
#elif defined(__CCE_AICORE__)
#define WSP_ASCEND
#endif

#ifdef WSP_SIMPLER_SLOT_BYTES
#define WSP_SIMPLER_FIFOS   1
#define WSP_FIFO_SLOT_BYTES WSP_SIMPLER_SLOT_BYTES
#ifdef WSP_ASCEND
#define WSP_UNIT_block
#ifndef WSP_SUBBLOCK
#define WSP_SUBBLOCK 0
#endif
#else
#if defined(__DAV_CUBE__) || defined(WSP_SUBBLOCK)
#define WSP_SIMPLER_IS_IDLE
#endif
#undef __DAV_CUBE__
#undef __DAV_VEC__
#define __DAV_CUBE__
#define __DAV_VEC__
#endif
#else
#define WSP_SIMPLER_FIFOS 0
#endif

#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#ifdef WSP_ASCEND
#define __aicore__ [aicore]
#else
#define __aicore__
#endif
#endif

#include "tensor.h"
#if defined(__has_include)
#if __has_include("intrinsic.h")
#include "intrinsic.h"
#endif
#endif

#define WSP_SIMPLER_ARGS(task)                                                                     \
    reinterpret_cast<__gm__ int64_t *>(const_cast<__gm__ wsp_task *>(task))
#define WSP_TILE_SIZE(task, tile, axis)   wsp::simpler_size(WSP_SIMPLER_ARGS(task), tile, axis)
#define WSP_TILE_DATA(task, tile)         wsp::simpler_data(WSP_SIMPLER_ARGS(task), tile)
#define WSP_TILE_STRIDE(task, tile, axis) wsp::simpler_stride(WSP_SIMPLER_ARGS(task), tile, axis)
#define WSP_SCALAR(task, i)               wsp::simpler_scalar(WSP_SIMPLER_ARGS(task), i)
#define WSP_FAIL(task, code, number)      wsp::simpler_fail(code, number)

#if !defined(WSP_ASCEND)
#include <cstdio>
#include <cstdlib>
#endif

namespace wsp {

inline __aicore__ __gm__ ChipTensor *simpler_tensor(__gm__ int64_t *args, uint32_t i) {
    return reinterpret_cast<__gm__ ChipTensor *>(static_cast<uintptr_t>(args[i]));
}

// Rows and columns are the last two dimensions; one before them is of the blocks of a submit.
inline __aicore__ uint64_t simpler_size(__gm__ int64_t *args, uint32_t tile, uint32_t axis) {
    __gm__ ChipTensor *tensor = simpler_tensor(args, tile);
    return tensor->shapes[tensor->ndims - 2 + axis];
}

inline __aicore__ int64_t simpler_stride(__gm__ int64_t *args, uint32_t tile, uint32_t axis) {
    __gm__ ChipTensor *tensor = simpler_tensor(args, tile);
    return tensor->strides[tensor->ndims - 2 + axis];
}

// Offsets and strides are in elements.
inline __aicore__ uint64_t simpler_data(__gm__ int64_t *args, uint32_t tile) {
    __gm__ ChipTensor *tensor = simpler_tensor(args, tile);
    uint64_t offset = tensor->start_offset;
    if (tensor->ndims > 2) {
        offset += static_cast<uint64_t>(get_block_idx(args)) * tensor->strides[0];
    }
    return tensor->buffer.addr + offset * static_cast<uint64_t>(get_element_size(tensor->dtype));
}

// Where there is one block, nothing is passed for the differences, and the block's number is 0.
inline __aicore__ uint64_t simpler_scalar(__gm__ int64_t *args, uint32_t i) {
    const uint32_t count = WSP_SIMPLER_AXES + WSP_SIMPLER_SCALARS,
                   at = WSP_SIMPLER_TILES + WSP_SIMPLER_FIFOS + WSP_SIMPLER_AXES + i;
    const uint64_t block = static_cast<uint64_t>(get_block_idx(args));
    return static_cast<uint64_t>(args[at]) +
           (block ? block * static_cast<uint64_t>(args[at + count]) : 0);
}

inline __aicore__ void simpler_fail([[maybe_unused]] int status, [[maybe_unused]] uint32_t number) {
#if !defined(WSP_ASCEND)
    std::fprintf(stderr, "a kernel failed: status %d, check %u\n", status, number);
    std::abort();
#endif
}

}  // namespace wsp

#include "wsp_dispatch.h"

namespace wsp {

#if WSP_IS_SHIM

// The shim counts and checks in a task of its own.
template <typename Kernel>
inline void simpler_run(int64_t *args, Kernel kernel, const ptoisa_machine *machine) {
    wsp_task task = wsp_task();
    begin_tiles(&task, machine);
#if WSP_SIMPLER_FIFOS
    given_fifos() = reinterpret_cast<uint8_t *>(simpler_data(args, WSP_SIMPLER_TILES));
#endif
    kernel(reinterpret_cast<wsp_task *>(args));
    end_tiles(&task);
    if (task.status != PTOWSP_OK) {
        simpler_fail(task.status, task.fault);
    }
}

#ifdef WSP_TARGET_A5
#define WSP_SIMPLER_RUN(kernel) wsp::simpler_run(args, kernel, ptoisa_machine_950pr())
#else
#define WSP_SIMPLER_RUN(kernel) wsp::simpler_run(args, kernel, ptoisa_machine_910b())
#endif
#elif defined(WSP_ASCEND) && WSP_SIMPLER_FIFOS
#define WSP_SIMPLER_RUN(kernel)                                                                    \
    wsp::Pipes pipes(reinterpret_cast<__gm__ uint8_t *>(                                           \
        static_cast<uintptr_t>(wsp::simpler_data(args, WSP_SIMPLER_TILES))));                      \
    kernel(reinterpret_cast<__gm__ wsp_task *>(args), pipes)
#else
#define WSP_SIMPLER_RUN(kernel) kernel(reinterpret_cast<__gm__ wsp_task *>(args))
#endif

}  // namespace wsp

#ifdef WSP_SIMPLER_IS_IDLE
#undef WSP_SIMPLER_RUN
#define WSP_SIMPLER_RUN(kernel) (void)args
#endif

#define WSP_SIMPLER_ENTRY(name)                                                                    \
    extern "C" AICORE void wsp_kernel_##name(__gm__ wsp_task *task WSP_BLOCK_PARAM);               \
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {                                \
        WSP_SIMPLER_RUN(wsp_kernel_##name);                                                        \
    }

#endif
