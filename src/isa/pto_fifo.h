// The C++ face of the shim, last part: kernels on cube and vector cores, and running a block.
//
// A mixed source is compiled twice, with __DAV_CUBE__ and with __DAV_VEC__ alone, into two entries.
// The host runs both:
//
//      uint64_t cycles;
//      bool ok = pto::RunBlock([&] { cube::attend(ffts, q, k, v, out); },
//                              [&] { vec::attend(ffts, q, k, v, out); }, &cycles);
//
// The cube half runs on the calling thread, each vector half on a thread of its own with its own
// core, memories and get_subblockid(). fifo.h has the behaviour and cost of a FIFO, block.h how the
// three take turns.

#ifndef PTOISA_PTO_FIFO_H
#define PTOISA_PTO_FIFO_H

#include "pto_ops.h"
#include "block.h"

// Where the flags between cores are. On A2/A3 a kernel that has a TPipe calls it first. The shim
// only notes that it was called.
inline void set_ffts_base_addr(uint64_t) {
    pto::shim::thread().has_ffts = true;
}

namespace pto {

using ::set_ffts_base_addr;

enum class Direction : uint8_t {
    DIR_C2V = PTOISA_C2V,
    DIR_V2C = PTOISA_V2C,
    DIR_BOTH = PTOISA_C2V | PTOISA_V2C
};

enum class TileSplitAxis {
    TILE_NO_SPLIT = PTOISA_NO_SPLIT,
    TILE_UP_DOWN = PTOISA_UP_DOWN,
    TILE_LEFT_RIGHT = PTOISA_LEFT_RIGHT,
    TILE_UP_DOWN_ODD = PTOISA_UP_DOWN_ODD,
    TILE_LEFT_RIGHT_ODD = PTOISA_LEFT_RIGHT_ODD
};

// A FIFO between the halves, or with DIR_BOTH one each way, the second's flags and memory after the
// first's. gm: its slots, SlotNum * SlotBytes for each way; c2v and v2c: the addresses in UB and L1
// of popped tiles, LocalSlotNum of them in turn. Every core of a block makes the same.
template <uint32_t FlagID, Direction Dir, uint32_t SlotBytes, uint32_t SlotNum,
          uint32_t LocalSlotNum = 2, bool IsNoSplit = false, bool EnUnitFlag = false>
class TPipe {
  public:
    static constexpr bool isBoth = Dir == Direction::DIR_BOTH;
    static constexpr bool isNoSplit = IsNoSplit;
    static constexpr uint32_t localSlotNum = LocalSlotNum;
    static_assert(FlagID + (isBoth ? 4 : 2) <= PTOISA_FIFO_FLAGS, "flags are below 16");
    static_assert(SlotNum >= 1 && SlotNum <= PTOISA_FIFO_SLOTS_MAX, "1 to 32 slots");
    static_assert(SlotBytes > 0 && SlotBytes % 32 == 0, "slots are a multiple of 32 bytes");
    static_assert(LocalSlotNum >= 1, "at least one local slot");

    TPipe(__gm__ void *gm, uint32_t c2v, uint32_t v2c) : c2v_buffer(c2v), v2c_buffer(v2c) {
        shim::Thread &mine = shim::thread();
        if (mine.mixed == NULL) {
            ptoisa_fault(&mine.core, PTOISA_NOP, "TPIPE: this thread runs no block (RunBlock)");
            return;
        }
        if (!mine.has_ffts && mine.core.machine->family == PTOISA_A2A3) {
            ptoisa_fault(&mine.core, PTOISA_NOP, "TPIPE: set_ffts_base_addr was not called");
            return;
        }
        uint8_t *at = static_cast<uint8_t *>(gm);
        if (Dir != Direction::DIR_V2C) {
            c2v_fifo = ptoisa_block_fifo(mine.mixed, mine.core_index, PTOISA_C2V, FlagID, SlotBytes,
                                         SlotNum, at);
        }
        if (Dir != Direction::DIR_C2V) {
            v2c_fifo = ptoisa_block_fifo(
                mine.mixed, mine.core_index, PTOISA_V2C, FlagID + (isBoth ? 2 : 0), SlotBytes,
                SlotNum, isBoth && at ? at + static_cast<size_t>(SlotBytes) * SlotNum : at);
        }
    }
    TPipe(const TPipe &) = delete;
    TPipe &operator=(const TPipe &) = delete;

    ptoisa_fifo *c2v_fifo = NULL, *v2c_fifo = NULL;
    uint64_t c2v_buffer, v2c_buffer;
};

// What TPUSH does to a tile of L0C on its way into a slot: its type there, ReLU, and quantising as
// TSTORE does it, where preQuantScalar has the bits of a float. PTO-ISA's documentation says that
// TPUSH takes this; these members are the shim's.
template <typename T, ReluPreMode Relu = ReluPreMode::NoRelu, bool IsQuant = false>
struct FixpipeParams {
    using DType = T;
    static constexpr ReluPreMode reluPreMode = Relu;
    static constexpr bool isQuant = IsQuant;
    uint64_t preQuantScalar = 0;
};

namespace shim {

template <typename T> struct is_fixpipe : std::false_type {};
template <typename T, ReluPreMode Relu, bool IsQuant>
struct is_fixpipe<FixpipeParams<T, Relu, IsQuant>> : std::true_type {};
template <typename T> constexpr bool is_fixpipe_v = is_fixpipe<std::remove_cv_t<T>>::value;

// The FIFO that this core fills (or reads) of a pipe. NULL after a fault.
template <typename Pipe> inline ptoisa_fifo *fifo_of(Pipe &pipe, bool is_push, const char *name) {
    Thread &mine = thread();
    ptoisa_fifo *fifo = is_push == (mine.core_index == 0) ? pipe.c2v_fifo : pipe.v2c_fifo;
    if (fifo == NULL && (pipe.c2v_fifo != NULL || pipe.v2c_fifo != NULL)) {
        ptoisa_fault(&mine.core, PTOISA_NOP, "%s: the pipe has no direction for %s", name,
                     ptoisa_block_name(mine.core_index));
    }
    return fifo;
}

template <typename Pipe, TileSplitAxis Split> constexpr ptoisa_split split_of() {
    static_assert(!Pipe::isNoSplit || Split == TileSplitAxis::TILE_NO_SPLIT,
                  "the pipe is made with IsNoSplit");
    return static_cast<ptoisa_split>(Split);
}

}  // namespace shim

// -- tiles ----------------------------------------------------------------------------------------

template <typename Pipe, typename T, TileSplitAxis Split, typename... W>
inline std::enable_if_t<shim::is_tile_v<T> && !(shim::is_fixpipe_v<W> || ...), shim::Token<W...>>
TPUSH(Pipe &pipe, T &tile, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile t = shim::view(tile);
    if (ptoisa_fifo *fifo = shim::fifo_of(pipe, true, "TPUSH")) {
        ptoisa_fifo_push(core, fifo, shim::thread().subblock_id, &t, shim::split_of<Pipe, Split>());
    }
    return shim::end();
}

namespace shim {

template <typename Pipe, typename T, TileSplitAxis Split, typename Params>
inline void push_fixpipe(Pipe &pipe, T &tile, const Params &params, const ptoisa_tile *scales) {
    static_assert(T::Loc == TileType::Acc, "only a tile of L0C goes through the fixpipe");
    ptoisa_tile t = view(tile);
    const ptoisa_fifo_fixpipe how = {
        dtype_of<typename Params::DType>(), Params::reluPreMode == ReluPreMode::NormalRelu,
        Params::isQuant, ptoisa_f32_from_bits(static_cast<uint32_t>(params.preQuantScalar)),
        scales};
    if (ptoisa_fifo *fifo = fifo_of(pipe, true, "TPUSH")) {
        ptoisa_fifo_push_fixpipe(&thread().core, fifo, thread().subblock_id, &t,
                                 split_of<Pipe, Split>(), &how);
    }
}

}  // namespace shim

// The third form, of the cube core: the pushed tile is converted on its way.
template <typename Pipe, typename T, TileSplitAxis Split, typename Params, typename... W>
inline std::enable_if_t<shim::is_tile_v<T> && shim::is_fixpipe_v<Params> &&
                            !(shim::is_tile_v<W> || ...),
                        shim::Token<W...>>
TPUSH(Pipe &pipe, T &tile, const Params &params, W &...events) {
    shim::begin(events...);
    shim::push_fixpipe<Pipe, T, Split>(pipe, tile, params, NULL);
    return shim::end();
}

// The same with a scale for each column, in a tile of the fixpipe buffer.
template <typename Pipe, typename T, TileSplitAxis Split, typename Params, typename F,
          typename... W>
inline std::enable_if_t<shim::is_tile_v<T> && shim::is_fixpipe_v<Params> && shim::is_tile_v<F>,
                        shim::Token<W...>>
TPUSH(Pipe &pipe, T &tile, const Params &params, F &scales, W &...events) {
    static_assert(Params::isQuant, "scales quantise");
    shim::begin(events...);
    ptoisa_tile f = shim::view(scales);
    shim::push_fixpipe<Pipe, T, Split>(pipe, tile, params, &f);
    return shim::end();
}

// Binds the tile to the next of the pipe's local slots, a tile apart, and loads it.
template <typename Pipe, typename T, TileSplitAxis Split, typename... W>
inline std::enable_if_t<shim::is_tile_v<T>, shim::Token<W...>> TPOP(Pipe &pipe, T &tile,
                                                                    W &...events) {
    ptoisa_core *core = shim::begin(events...);
    uint32_t sub = shim::thread().subblock_id;
    if (ptoisa_fifo *fifo = shim::fifo_of(pipe, false, "TPOP")) {
        uint64_t base = fifo->direction == PTOISA_C2V ? pipe.c2v_buffer : pipe.v2c_buffer;
        TASSIGN(tile, base + fifo->popped[sub] % Pipe::localSlotNum *
                                 ((T::GetSizeInBytes() + 31u) & ~31u));
        ptoisa_tile t = shim::view(tile);
        ptoisa_fifo_pop(core, fifo, sub, &t, shim::split_of<Pipe, Split>());
    }
    return shim::end();
}

// Nothing: TPOP of a tile has freed the slot.
template <typename Pipe> inline void TFREE(Pipe &) {
}
template <typename Pipe, TileSplitAxis Split> inline void TFREE(Pipe &) {
}

// -- addresses ------------------------------------------------------------------------------------

template <typename Pipe, typename G, TileSplitAxis Split>
inline std::enable_if_t<shim::is_global_v<G>> TALLOC(Pipe &pipe, G &global) {
    ptoisa_core *core = shim::begin();
    ptoisa_global g = shim::view(global);
    if (ptoisa_fifo *fifo = shim::fifo_of(pipe, true, "TALLOC")) {
        ptoisa_fifo_alloc(core, fifo, shim::thread().subblock_id, shim::split_of<Pipe, Split>(),
                          &g);
        global.SetAddr(static_cast<typename G::DType *>(g.data));
    }
}

// Data stored at the address that TALLOC gave.
template <typename Pipe, typename G, TileSplitAxis Split>
inline std::enable_if_t<shim::is_global_v<G>> TPUSH(Pipe &pipe, G &) {
    ptoisa_core *core = shim::begin();
    if (ptoisa_fifo *fifo = shim::fifo_of(pipe, true, "TPUSH")) {
        ptoisa_fifo_commit(core, fifo, shim::thread().subblock_id);
    }
}

template <typename Pipe, typename G, TileSplitAxis Split>
inline std::enable_if_t<shim::is_global_v<G>> TPOP(Pipe &pipe, G &global) {
    ptoisa_core *core = shim::begin();
    ptoisa_global g = shim::view(global);
    if (ptoisa_fifo *fifo = shim::fifo_of(pipe, false, "TPOP")) {
        ptoisa_fifo_acquire(core, fifo, shim::thread().subblock_id, shim::split_of<Pipe, Split>(),
                            &g);
        global.SetAddr(static_cast<typename G::DType *>(g.data));
    }
}

template <typename Pipe, typename G, TileSplitAxis Split>
inline std::enable_if_t<shim::is_global_v<G>> TFREE(Pipe &pipe, G &) {
    ptoisa_core *core = shim::begin();
    if (ptoisa_fifo *fifo = shim::fifo_of(pipe, false, "TFREE")) {
        ptoisa_fifo_release(core, fifo, shim::thread().subblock_id);
    }
}

// -- blocks ---------------------------------------------------------------------------------------

namespace shim {

// This thread's vector cores, from its first block on to its end.
struct Crew {
    ptoisa_crew crew;
    ~Crew() {
        ptoisa_crew_end(&crew);
    }
};

inline thread_local Crew this_crew = {};

template <typename Cube, typename Vector> struct Halves {
    Cube &cube;
    Vector &vector;
    ptoisa_core vectors[2];  // their cores, before and after
    uint32_t block_idx, block_num;

    static void run(ptoisa_block *block, uint32_t core_index, void *arg) {
        Halves *all = static_cast<Halves *>(arg);
        Thread &mine = thread();
        mine.mixed = block;
        mine.core_index = core_index;
        mine.has_ffts = false;
        mine.subblock_id = ptoisa_block_sub(core_index);
        if (core_index == 0) {
            all->cube();
        } else {
            mine.core = all->vectors[core_index - 1];
            memset(mine.next_event, 0, sizeof mine.next_event);
            mine.subblock_dim = 2;
            mine.block_idx = all->block_idx;
            mine.block_num = all->block_num;
            all->vector();
            all->vectors[core_index - 1] = mine.core;
        }
        mine.mixed = NULL;
    }
};

}  // namespace shim

// Runs both halves of a kernel: cube() on this thread and its core, vector() for each of the two
// vector cores, whose cores are as this thread's: model, machine, faults. All begin when this
// core's pipes are done, and it ends with the block; `cycles` (or NULL) gets the block's cycles.
// False after a fault of the block: a deadlock, something left in a FIFO, a flag that was not
// waited for.
template <typename Cube, typename Vector>
inline bool RunBlock(Cube cube, Vector vector, uint64_t *cycles = NULL) {
    shim::Thread &mine = shim::thread();
    ptoisa_core &core = mine.core;
    const uint32_t sub = mine.subblock_id;
    const uint64_t start = ptoisa_cycles(&core), begin = ptoisa_cycles_of_pipes(&core);
    shim::Halves<Cube, Vector> all = {cube, vector, {core, core}, mine.block_idx, mine.block_num};
    ptoisa_core *cores[PTOISA_BLOCK_CORES] = {&core, &all.vectors[0], &all.vectors[1]};
    for (ptoisa_core *each : cores) {
        if (each != &core) {
            ptoisa_core_reset(each);
            memset(each->memory, 0, sizeof each->memory);
        }
        for (uint64_t &clock : each->clock) {
            clock = begin;
        }
        memset(each->lag, 0, sizeof each->lag);
        each->is_filled = 0;
    }
    ptoisa_half_fn run = shim::Halves<Cube, Vector>::run;
    uint64_t before[PTOISA_PIPE_COUNT];
    memcpy(before, core.busy, sizeof before);
    bool is_good = ptoisa_crew_run(&shim::this_crew.crew, cores, run, run, &all);
    for (int pipe = 0; pipe < PTOISA_PIPE_COUNT; pipe++) {
        const uint64_t first = all.vectors[0].busy[pipe], second = all.vectors[1].busy[pipe];
        const bool is_sum = ptoisa_time_of(core.model) == PTOISA_TIME_SUM;
        mine.block_busy[pipe] = core.busy[pipe] - before[pipe] +
                                (is_sum           ? first + second
                                 : first > second ? first
                                                  : second);
    }
    mine.has_block = true;
    uint64_t end = 0;
    for (ptoisa_core *each : cores) {
        uint64_t pipes = ptoisa_cycles_of_pipes(each);
        end = pipes > end ? pipes : end;
        if (each != &core) {
            is_good = ptoisa_core_finish(each) && is_good;
            core.sum += each->sum;
            for (int pipe = 0; pipe < PTOISA_PIPE_COUNT; pipe++) {
                core.busy[pipe] += each->busy[pipe];
            }
        }
    }
    for (uint64_t &clock : core.clock) {
        clock = end;
    }
    memset(core.lag, 0, sizeof core.lag);
    core.is_filled = 0;
    mine.subblock_id = sub;
    if (cycles) {
        *cycles = ptoisa_cycles(&core) - start;
    }
    return is_good;
}

}  // namespace pto

#endif
