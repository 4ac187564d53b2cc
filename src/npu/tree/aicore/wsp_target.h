// The target of a kernel: which of three ways it is compiled (wsp_kernel.h), for which core, and the
// parts that each of them leaves out or writes differently.

#ifndef WSP_TARGET_H
#define WSP_TARGET_H

#include <cstddef>
#include <cstdint>
#include <cstring>

// A program is for one machine, A2/A3 or A5, which its kernels and dispatch.cpp name before they
// include this file: WSP_TARGET_A5.
#if defined(WSP_ASCEND) || defined(WSP_PTO_ISA)
#include <pto/pto-inst.hpp>
#define WSP_IS_SHIM 0
#else
#ifdef WSP_TARGET_A5
#define PTOISA_TARGET_A5
#endif
#include "ptoisa_shim.h"
#define WSP_IS_SHIM 1
#endif

// The core that this is compiled for. A device has cube and vector cores; the shim and the
// simulator have one core that is both.
#ifdef __DAV_CUBE__
#define WSP_HAS_CUBE 1
#else
#define WSP_HAS_CUBE 0
#endif
#ifdef __DAV_VEC__
#define WSP_HAS_VECTOR 1
#else
#define WSP_HAS_VECTOR 0
#endif

#ifdef WSP_ASCEND
#define PTOWSP_AICORE AICORE
#define PTOWSP_GM     __gm__
#endif

#include "wsp_abi.h"

// In kernels of bfloat16_t. The simulator takes that type from a compiler that has C++23's. With other
// compilers its bfloat16_t is a different type, and the kernel is refused.
#if defined(WSP_PTO_ISA) && !defined(__STDCPP_BFLOAT16_T__)
#define WSP_NEEDS_BF16()                                                                           \
    static_assert(sizeof(wsp_task) == 0,                                                           \
                  "this kernel needs bfloat16_t: g++ 13 or newer with STD=c++23")
#else
#define WSP_NEEDS_BF16() static_assert(true, "")
#endif

// Between two dependent vector instructions. A5 orders them itself [read].
#if defined(WSP_ASCEND) && defined(WSP_TARGET_A5)
#define WSP_BARRIER_V()
#else
#define WSP_BARRIER_V() pipe_barrier(PIPE_V)
#endif

// An instruction that the unit model does not count, as PTO-WSP counts it as part of another one.
#if WSP_IS_SHIM
#define WSP_UNCOUNTED(...)                                                                         \
    do {                                                                                           \
        wsp::Uncounted uncounted;                                                                  \
        __VA_ARGS__;                                                                               \
    } while (0)
#else
#define WSP_UNCOUNTED(...) __VA_ARGS__
#endif

// A2/A3 quantises with scratch, and scales the source in place, which nothing reads afterwards.
// PTO-ISA's simulator has no such form.
#if defined(WSP_PTO_ISA) && defined(__CPU_SIM)
#define WSP_QUANT(dst, src, scale, tmp) TQUANT<QuantType::INT8_SYM>(dst, src, scale)
#else
#define WSP_QUANT(dst, src, scale, tmp) TQUANT<QuantType::INT8_SYM>(dst, src, scale, tmp)
#endif

// Moves a tile from L0C to UB, or from UB to L1. One core does it as a TMOV. On a device one core
// pushes and the other pops, through the consumer's memory; that is not implemented here.
#ifdef WSP_ASCEND
#define WSP_CROSS(number, ub, l1, dst, src)                                                        \
    static_assert((number) < 0, "tiles between cube and vector cores: see wsp_kernel.h")
#else
#define WSP_CROSS(number, ub, l1, dst, src) TMOV(dst, src)
#endif

namespace wsp {

// Do all of these tiles have valid elements? Always true on the shim, which accepts empty tiles.
template <typename... Tiles> AICORE inline bool any(Tiles &...tiles) {
#if WSP_IS_SHIM
    ((void)tiles, ...);
    return true;
#else
    return ((tiles.GetValidRow() > 0 && tiles.GetValidCol() > 0) && ...);
#endif
}

#if WSP_IS_SHIM

// While it lives, the unit model's cycles stand still.
class Uncounted {
  public:
    Uncounted() : core(ptoisa_this_core()), sum(core.sum) {
        std::memcpy(busy, core.busy, sizeof busy);
    }
    ~Uncounted() {
        if (ptoisa_time_of(core.model) == PTOISA_TIME_SUM) {
            core.sum = sum;
            std::memcpy(core.busy, busy, sizeof busy);
        }
    }
    Uncounted(const Uncounted &) = delete;
    Uncounted &operator=(const Uncounted &) = delete;

  private:
    ptoisa_core &core;
    uint64_t sum, busy[PTOISA_PIPE_COUNT];
};

#endif

}  // namespace wsp

#endif
