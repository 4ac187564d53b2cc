// The C++ face of the shim, first part: the core that each host thread is, and the words of a
// device compiler.
//
// These three files (pto_core.h, pto_types.h, pto_ops.h) give the C functions PTO-ISA's own names,
// so that one kernel compiles against PTO-ISA and against the shim:
//
//      #ifdef PTOISA_SHIM
//      #include "ptoisa_shim.h"
//      #else
//      #include <pto/pto-inst.hpp>
//      #endif
//      using namespace pto;
//
// A kernel there names no core and no memory: both belong to the thread. So each host thread has
// one ptoisa_core, found with ptoisa_this_core(), and memories for it, which TASSIGN binds tiles
// to. The host sets that core's model, machine and on_fault before it calls a kernel, and reads
// ptoisa_cycles() after it. Flags go to the core too: a missing or a doubled one is a fault.
//
// The machine is A2/A3 (910B), or A5 (950PR) if PTOISA_TARGET_A5 is defined, the same for the whole
// program; it also decides the layout of TileLeft. NPU_MEMORY_INIT changes the machine of the
// thread's core. With PTOISA_AS_SIMULATOR defined as 1 cores permit what PTO-ISA's CPU simulator
// permits (isa.h); so does one core with its is_as_simulator.

#ifndef PTOISA_PTO_CORE_H
#define PTOISA_PTO_CORE_H

#include "core.h"

#include <type_traits>
#include <utility>

// -- words of the device compiler -----------------------------------------------------------------

#define AICORE
#define __aicore__
#define __global__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __tf__

// How PTO-ISA declares its own functions, and sources written beside it theirs.
#define PTO_INLINE   inline __attribute__((always_inline))
#define PTO_INST     AICORE PTO_INLINE
#define PTO_INTERNAL AICORE PTO_INLINE

// One core runs the instructions of both kinds, unless the program says which it is.
#if !defined(__DAV_CUBE__) && !defined(__DAV_VEC__)
#define __DAV_CUBE__
#define __DAV_VEC__
#endif

// Pipes and events, the values of ptoisa_pipe.
enum pipe_t : uint32_t {
    PIPE_S = PTOISA_PIPE_S,
    PIPE_V = PTOISA_PIPE_V,
    PIPE_M = PTOISA_PIPE_M,
    PIPE_MTE1 = PTOISA_PIPE_MTE1,
    PIPE_MTE2 = PTOISA_PIPE_MTE2,
    PIPE_MTE3 = PTOISA_PIPE_MTE3,
    PIPE_FIX = PTOISA_PIPE_FIX,
    PIPE_ALL = PTOISA_PIPE_ALL
};

enum event_t : uint32_t {
    EVENT_ID0,
    EVENT_ID1,
    EVENT_ID2,
    EVENT_ID3,
    EVENT_ID4,
    EVENT_ID5,
    EVENT_ID6,
    EVENT_ID7
};

// -- 16-bit floats --------------------------------------------------------------------------------

// The compiler's own half, where it has one: clang from 15, g++ from 13.
#ifndef PTOISA_HAS_FLOAT16
#if defined(__FLT16_MANT_DIG__) && defined(__clang__)
#define PTOISA_HAS_FLOAT16 (__clang_major__ >= 15)
#elif defined(__FLT16_MANT_DIG__) && defined(__GNUC__)
#define PTOISA_HAS_FLOAT16 (__GNUC__ >= 13)
#else
#define PTOISA_HAS_FLOAT16 0
#endif
#endif

namespace pto {
namespace shim {

// A float to round further: towards zero, with the last bit set if anything was lost. Rounding that
// to 16 bits is rounding the number itself (Boldo and Melquiond 2008).
inline float float_to_odd(double number) {
    float value = static_cast<float>(number);
    uint32_t bits = ptoisa_bits_from_f32(value);
    double is = static_cast<double>(value);
    if (is < number || is > number) {
        bits -= (is < 0 ? -is : is) > (number < 0 ? -number : number) ? 1 : 0;
        bits |= 1;
    }
    return ptoisa_f32_from_bits(bits);
}

}  // namespace shim
}  // namespace pto

// A 16-bit float that is stored as its bits and computed with as a float. A single operation rounds
// as if once: float has more than twice the bits, so rounding twice is rounding once.
#define PTOISA_DEFINE_FLOAT16(name, to_float, from_float)                                          \
    struct name {                                                                                  \
        uint16_t bits;                                                                             \
        name() = default;                                                                          \
        template <typename N, typename = std::enable_if_t<std::is_arithmetic<N>::value>>           \
        name(N number) : bits(from_float(pto::shim::float_to_odd(static_cast<double>(number)))) {  \
        }                                                                                          \
        operator float() const {                                                                   \
            return to_float(bits);                                                                 \
        }                                                                                          \
        name &operator+=(float other) {                                                            \
            return *this = name(to_float(bits) + other);                                           \
        }                                                                                          \
        name &operator-=(float other) {                                                            \
            return *this = name(to_float(bits) - other);                                           \
        }                                                                                          \
        name &operator*=(float other) {                                                            \
            return *this = name(to_float(bits) * other);                                           \
        }                                                                                          \
        name &operator/=(float other) {                                                            \
            return *this = name(to_float(bits) / other);                                           \
        }                                                                                          \
    }

#if PTOISA_HAS_FLOAT16
__extension__ typedef _Float16 half;
#else
PTOISA_DEFINE_FLOAT16(half, ptoisa_f32_from_f16, ptoisa_f16_from_f32);
#endif
#if PTOISA_NEON
// arm_neon.h has the name, for a type that cannot be computed with.
#define bfloat16_t ptoisa_bfloat16
#endif
PTOISA_DEFINE_FLOAT16(bfloat16_t, ptoisa_f32_from_bf16, ptoisa_bf16_from_f32);

// -- the core of this thread ----------------------------------------------------------------------

namespace pto {

enum class NPUArch { A2A3, A5 };

namespace shim {

// The state of a host thread. Its core is made on first use, its memories when TASSIGN first binds
// a tile. Trivial to construct, so that no order of initialisation matters.
struct Thread {
    ptoisa_core core;
    uint8_t *block;  // from calloc: all memories in a row
    uint64_t block_size;
    uint8_t *memory[PTOISA_MEMORY_COUNT];
    uint64_t memory_size[PTOISA_MEMORY_COUNT];
    const ptoisa_machine *fitted;  // the machine that the memories were last made to fit
    uint32_t block_idx, block_num, subblock_id, subblock_dim;
    struct ptoisa_block *mixed;  // the block of three cores that this is one of, with its number
    uint32_t core_index;
    bool has_ffts;  // set_ffts_base_addr was called
    // Of the last block that this thread's core was one of: cycles in which a pipe of the cube core or
    // of the busier vector core worked; in models that sum, of all three. has_block: there was one.
    uint64_t block_busy[PTOISA_PIPE_COUNT];
    bool has_block;
    uint8_t next_event[PTOISA_PIPE_COUNT][PTOISA_PIPE_COUNT];
    ~Thread() {
        free(block);
    }
};

inline thread_local Thread this_thread = {};

inline const ptoisa_machine *machine_of(NPUArch arch) {
    return arch == NPUArch::A5 ? ptoisa_machine_950pr() : ptoisa_machine_910b();
}

#ifdef PTOISA_TARGET_A5
constexpr NPUArch default_arch = NPUArch::A5;
#else
constexpr NPUArch default_arch = NPUArch::A2A3;
#endif

inline Thread &thread() {
    Thread &mine = this_thread;
    if (PTOISA_UNLIKELY(mine.core.machine == NULL)) {
        ptoisa_core_init(&mine.core, PTOISA_MODEL_UNIT, machine_of(default_arch));
        mine.block_num = mine.subblock_dim = 1;
    }
    return mine;
}

// Makes the memories large enough for the core's machine and both built-in ones, so that
// NPU_MEMORY_INIT can change between these. A machine with larger ones gets new memories: zeros;
// pages that no tile touches cost nothing.
inline void fit_memories(Thread &mine) {
    const ptoisa_machine *machines[] = {mine.core.machine, ptoisa_machine_910b(),
                                        ptoisa_machine_950pr()};
    uint64_t total = 0;
    bool has_grown = mine.block == NULL;
    for (int memory = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
        for (const ptoisa_machine *machine : machines) {
            uint64_t size = (machine->memory_size[memory] + UINT64_C(4095)) & ~UINT64_C(4095);
            size = memory == PTOISA_VEC && size < PTOISA_SIMULATOR_UB ? PTOISA_SIMULATOR_UB : size;
            has_grown = has_grown || size > mine.memory_size[memory];
            mine.memory_size[memory] =
                size > mine.memory_size[memory] ? size : mine.memory_size[memory];
        }
        total += mine.memory_size[memory];
    }
    mine.fitted = mine.core.machine;
    if (!has_grown) {
        return;
    }
    free(mine.block);
    mine.block = static_cast<uint8_t *>(calloc(1, static_cast<size_t>(total) + 4096));
    if (mine.block == NULL) {
        fprintf(stderr, "ptoisa: no memory for a core\n");
        abort();
    }
    mine.block_size = total + 4096;
    uint8_t *at = mine.block + (4096 - reinterpret_cast<uintptr_t>(mine.block) % 4096) % 4096;
    for (int memory = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
        mine.memory[memory] = at;
        at += mine.memory_size[memory];
    }
}

// Gives the core its memories.
inline void bind_memories(Thread &mine) {
    if (mine.fitted != mine.core.machine) {
        fit_memories(mine);
    }
    for (int memory = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
        mine.core.memory[memory] = mine.memory[memory];
    }
}

// The compiler may not move memory accesses across: kernels look at the same bytes as different
// types (two tiles at one address, TRESHAPE), which no instruction inside does.
inline void fence() {
    __asm__ __volatile__("" : : : "memory");
}

}  // namespace shim
}  // namespace pto

// The core of the calling thread: set its model, machine, on_fault; read ptoisa_cycles() of it.
inline ptoisa_core &ptoisa_this_core() {
    return pto::shim::thread().core;
}

// -- blocks ---------------------------------------------------------------------------------------

inline int64_t get_block_idx() {
    return pto::shim::thread().block_idx;
}

inline int64_t get_block_num() {
    return pto::shim::thread().block_num;
}

inline int64_t get_subblockid() {
    return pto::shim::thread().subblock_id;
}

inline int64_t get_subblockdim() {
    return pto::shim::thread().subblock_dim;
}

namespace pto {
namespace cpu_sim {

// Says which block this thread is. The number of blocks is the shim's addition.
inline void set_execution_context(uint32_t block_idx, uint32_t subblock_id, uint32_t subblock_dim,
                                  uint32_t block_num = 1) {
    shim::Thread &mine = shim::thread();
    mine.block_idx = block_idx;
    mine.subblock_id = subblock_id;
    mine.subblock_dim = subblock_dim;
    mine.block_num = block_num;
}

}  // namespace cpu_sim

using cpu_sim::set_execution_context;

// Fills the memories of the thread's core with zeros.
inline void NPU_MEMORY_CLEAR() {
    shim::Thread &mine = shim::thread();
    if (mine.block) {
        memset(mine.block, 0, static_cast<size_t>(mine.block_size));
    }
}

// Makes the thread's core one of this machine, with its clocks at 0, its flags free, its memories
// zero. Model, on_fault and user pointers stay.
inline void NPU_MEMORY_INIT(NPUArch arch) {
    shim::Thread &mine = shim::thread();
    mine.core.machine = shim::machine_of(arch);
    ptoisa_core_reset(&mine.core);
    NPU_MEMORY_CLEAR();
}

}  // namespace pto

using pto::NPU_MEMORY_CLEAR;
using pto::NPU_MEMORY_INIT;

// -- flags ----------------------------------------------------------------------------------------

inline void set_flag(pipe_t src, pipe_t dst, event_t event) {
    ptoisa_set_flag(&ptoisa_this_core(), static_cast<ptoisa_pipe>(src),
                    static_cast<ptoisa_pipe>(dst), event);
}

inline void wait_flag(pipe_t src, pipe_t dst, event_t event) {
    ptoisa_wait_flag(&ptoisa_this_core(), static_cast<ptoisa_pipe>(src),
                     static_cast<ptoisa_pipe>(dst), event);
}

inline void pipe_barrier(pipe_t pipe) {
    ptoisa_pipe_barrier(&ptoisa_this_core(), static_cast<ptoisa_pipe>(pipe));
}

// Writes back or drops a line of the data cache; a host keeps its caches in order itself.
enum cache_line_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum dcci_dst_t { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };

inline void dcci(const volatile void *, cache_line_t, dcci_dst_t = CACHELINE_ALL) {
}

// -- events ---------------------------------------------------------------------------------------

namespace pto {

// Instructions by name, with the kinds of moves and stores, and a whole pipe by VECTOR and SCALAR.
enum class Op : uint16_t {
#define PTOISA_OP_FACE(name, unit) name,
    PTOISA_OPS(PTOISA_OP_FACE)
#undef PTOISA_OP_FACE
        TASSIGN,
    TRESHAPE,
    TPREFETCH,
    TMOV_V2V,
    TMOV_V2M,
    TMOV_M2L,
    TMOV_M2R,
    TMOV_M2B,
    TMOV_M2S,
    TMOV_A2V,
    TMOV_A2M,
    TSTORE_VEC,
    TSTORE_MAT,
    TSTORE_ACC,
    TEXTRACT_M2LR,
    VECTOR,
    SCALAR
};

namespace shim {

constexpr pipe_t pipe_of(Op op) {
    switch (op) {
    case Op::TLOAD:
    case Op::TPREFETCH:
    case Op::MGATHER: return PIPE_MTE2;
    case Op::TSTORE:
    case Op::TSTORE_VEC:
    case Op::TSTORE_MAT:
    case Op::TMOV_V2M:
    case Op::MSCATTER: return PIPE_MTE3;
    case Op::TSTORE_ACC:
    case Op::TMOV_A2V:
    case Op::TMOV_A2M:
    case Op::TMOV_M2S: return PIPE_FIX;
    case Op::TEXTRACT:
    case Op::TEXTRACT_M2LR:
    case Op::TMOV_M2L:
    case Op::TMOV_M2R:
    case Op::TMOV_M2B: return PIPE_MTE1;
    case Op::TMATMUL:
    case Op::TMATMUL_ACC:
    case Op::TMATMUL_BIAS:
    case Op::TGEMV:
    case Op::TGEMV_ACC:
    case Op::TGEMV_BIAS: return PIPE_M;
    case Op::TCI:
    case Op::TASSIGN:
    case Op::TRESHAPE:
    case Op::SCALAR:
    case Op::SET_FLAG:
    case Op::WAIT_FLAG:
    case Op::PIPE_BARRIER: return PIPE_S;
    default: return PIPE_V;
    }
}

}  // namespace shim

// The result of an instruction: assigned to an event, it is recorded there.
struct RecordEvent {};

// A token from the pipe of one instruction to the pipe of another: `e = TLOAD(...); TADD(d, a, b,
// e);`. A flag underneath, with the next of the eight ids of its pair of pipes; on one pipe, a
// barrier.
template <Op SrcOp, Op DstOp> class Event {
  public:
    static constexpr pipe_t srcPipe = shim::pipe_of(SrcOp);
    static constexpr pipe_t dstPipe = shim::pipe_of(DstOp);

    Event() = default;
    Event(RecordEvent) {
        Record();
    }
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;
    Event &operator=(RecordEvent) {
        Record();
        return *this;
    }

    void Record() {
        if constexpr (srcPipe != dstPipe) {
            shim::Thread &mine = shim::thread();
            if (is_recorded) {
                ptoisa_fault(&mine.core, PTOISA_SET_FLAG, "%s to %s: an event is recorded already",
                             ptoisa_pipe_name(static_cast<ptoisa_pipe>(srcPipe)),
                             ptoisa_pipe_name(static_cast<ptoisa_pipe>(dstPipe)));
                return;
            }
            uint8_t &next = mine.next_event[srcPipe][dstPipe];
            id = static_cast<event_t>(next);
            next = static_cast<uint8_t>((next + 1) % PTOISA_EVENT_COUNT);
            set_flag(srcPipe, dstPipe, id);
            is_recorded = true;
        }
    }

    // Every record needs exactly one wait, as every flag does.
    void Wait() {
        if constexpr (srcPipe == dstPipe) {
            pipe_barrier(srcPipe);
        } else if (is_recorded) {
            wait_flag(srcPipe, dstPipe, id);
            is_recorded = false;
        } else {
            ptoisa_fault(&ptoisa_this_core(), PTOISA_WAIT_FLAG,
                         "%s to %s: an event is not recorded",
                         ptoisa_pipe_name(static_cast<ptoisa_pipe>(srcPipe)),
                         ptoisa_pipe_name(static_cast<ptoisa_pipe>(dstPipe)));
        }
    }

  private:
    event_t id = EVENT_ID0;
    bool is_recorded = false;
};

namespace shim {

template <typename T> struct is_event : std::false_type {};
template <Op S, Op D> struct is_event<Event<S, D>> : std::true_type {};

// The result type of an instruction with these trailing operands, if all of them are events.
template <typename... Events>
using Token = std::enable_if_t<(is_event<Events>::value && ...), RecordEvent>;

// Begins an instruction: waits for its events and gives the core.
template <typename... Events> inline ptoisa_core *begin(Events &...events) {
    (events.Wait(), ...);
    fence();
    return &ptoisa_this_core();
}

inline RecordEvent end() {
    fence();
    return RecordEvent();
}

}  // namespace shim

// A barrier on the pipe of an instruction.
template <Op op> inline void TSYNC() {
    pipe_barrier(shim::pipe_of(op));
}

// Waits for events.
template <typename First, typename... Events>
inline std::enable_if_t<shim::is_event<First>::value> TSYNC(First &first, Events &...events) {
    first.Wait();
    (events.Wait(), ...);
}

// The device's words under this name too.
using ::bfloat16_t;
using ::dcci;
using ::event_t;
using ::get_block_idx;
using ::get_block_num;
using ::get_subblockdim;
using ::get_subblockid;
using ::half;
using ::pipe_barrier;
using ::pipe_t;
using ::set_flag;
using ::wait_flag;

}  // namespace pto

#endif
