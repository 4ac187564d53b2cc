// The halves of a mixed kernel, one for cube and one for vector cores.
//
// A mixed kernel is two functions, NAME_cube and NAME_vector, which meet in FIFOs. WSP_HALVES runs
// them: on a device each core calls its own, as the kernel is compiled once for each kind of core. The
// shim has a block of three cores for a task, each on a thread (pto::RunBlock). PTO-ISA's simulator
// has two threads, and the vector one does all rows.
//
// Where the rows of the vector half are shared (share), the first vector core has the rows below
// ceil(rows / 2) of every tile, and the second has the rest: `of` them, in memory from first() on. In
// the slot of a FIFO its part begins as many rows after the first core's part (TILE_UP_DOWN: half of a
// tile with an even number of rows; not all need be valid). Else the first vector core does everything,
// and the second only fills and frees slots: pass().
//
// Fifo<flag, to_vector, slot bytes, slots, split>: push() stores a tile's valid elements to the next
// free slot, and pop() loads them from it, rows `Pitch` elements apart. Tiles go by address, so
// FixpipeParams, with which TPUSH converts a tile on its way, is not used: how it is given is not
// documented.
//
// On a device the FIFOs of a block are made once and stay for all of its tasks. A producer waits
// until its slot is free, except for the first slots of all: so the state in which a task leaves slots
// and flags must be known to the next one. A kernel pushes as many tiles as it pops, so each task
// finds the FIFOs empty.

#ifndef WSP_HALVES_H
#define WSP_HALVES_H

#include "wsp_window.h"

#ifndef WSP_ASCEND
#include "wsp_list.h"
#include <pthread.h>
#endif

namespace wsp {

// Is this the first of a block's two vector cores?
AICORE inline bool is_first() {
#ifdef WSP_SUBBLOCK
    return WSP_SUBBLOCK == 0;
#elif WSP_HAS_VECTOR && (defined(WSP_ASCEND) || WSP_IS_SHIM)
    return get_subblockid() == 0;
#else
    return true;
#endif
}

struct Share {
    int cut;
    bool is_second;
    AICORE int of(int rows) const {
        return is_second ? (rows > cut ? rows - cut : 0) : least(rows, cut);
    }
    AICORE int first() const {
        return is_second ? cut : 0;
    }
};

AICORE inline Share share(int rows) {
#if defined(WSP_SUBBLOCK)
    (void)rows;  // where a FIFO cannot tell them apart, the first one has all
    return Share{1 << 30, !is_first()};
#elif defined(WSP_ASCEND) || WSP_IS_SHIM
    return Share{(rows + 1) / 2, !is_first()};
#else
    (void)rows;
    return Share{1 << 30, false};
#endif
}

#if (defined(WSP_ASCEND) && defined(WSP_UNIT_block)) || WSP_IS_SHIM

// [read] The FIFOs of a block, in its global memory. Tiles are stored and loaded there by address, so
// the buffers of the other form, in UB and L1, are not used.
struct Pipes {
    pto::TPipe<0, pto::Direction::DIR_C2V, WSP_FIFO_SLOT_BYTES, WSP_FIFO_SLOT_COUNT> to_vector;
    pto::TPipe<2, pto::Direction::DIR_V2C, WSP_FIFO_SLOT_BYTES, WSP_FIFO_SLOT_COUNT> to_cube;

    AICORE explicit Pipes(__gm__ uint8_t *memory)
        : to_vector(memory, 0, 0), to_cube(memory + WSP_FIFO_BYTES, 0, 0) {
    }
};

template <uint8_t Flag, bool IsToVector, uint32_t SlotBytes, uint32_t SlotCount,
          pto::TileSplitAxis Split>
class Fifo {
    static_assert(Flag == (IsToVector ? 0 : 2) && SlotBytes <= WSP_FIFO_SLOT_BYTES &&
                      SlotCount == WSP_FIFO_SLOT_COUNT,
                  "the FIFOs of a block are others");
    using Pipe = pto::TPipe<Flag, IsToVector ? pto::Direction::DIR_C2V : pto::Direction::DIR_V2C,
                            WSP_FIFO_SLOT_BYTES, WSP_FIFO_SLOT_COUNT>;
    using Elements = pto::Shape<1, 1, 1, -1, -1>;
    template <typename T>
    static constexpr bool is_column = T::Loc == pto::TileType::Vec && !T::isRowMajor;
    template <typename E>
    using ByRows = pto::GlobalTensor<E, Elements, pto::Stride<1, 1, 1, -1, 1>, pto::Layout::ND>;
    template <typename E>
    using ByColumn = pto::GlobalTensor<E, Elements, pto::Stride<1, 1, 1, 1, -1>, pto::Layout::DN>;
    Pipe &pipe;
    Share mine;

    AICORE static Pipe &of(Pipes &pipes) {
        if constexpr (IsToVector) {
            return pipes.to_vector;
        } else {
            return pipes.to_cube;
        }
    }

    // A window of `rows` rows of a tile in a slot.
    template <uint32_t Pitch, typename T>
    AICORE static auto window(T &tile, __gm__ typename T::DType *at, int rows) {
        using E = typename T::DType;
        if constexpr (is_column<T>) {
            return ByColumn<E>(at, Elements(rows, 1), pto::Stride<1, 1, 1, 1, -1>(rows));
        } else {
            return ByRows<E>(at, Elements(rows, tile.GetValidCol()),
                             pto::Stride<1, 1, 1, -1, 1>(Pitch));
        }
    }

    // A window with as many valid rows as are above this core's part, which tells where the part begins.
    template <uint32_t Pitch, typename T> AICORE auto part(T &tile) const {
        const int rows = tile.GetValidRow();
        return window<Pitch>(tile, nullptr, rows > 0 && mine.is_second ? mine.cut : rows);
    }

    // Is there data to move? The shim gives no slot after a fault; the others cannot move empty tiles.
    template <typename T, typename G>
    AICORE static bool moves([[maybe_unused]] T &tile, [[maybe_unused]] const G &slot) {
#if WSP_IS_SHIM
        return slot.data() != nullptr;
#else
        return any(tile);
#endif
    }

  public:
    AICORE explicit Fifo(Pipes &pipes, Share share = Share{0, false})
        : pipe(of(pipes)), mine(share) {
    }

    template <uint32_t Pitch, typename T> AICORE void push(T &tile) {
        auto at = part<Pitch>(tile);
        pto::TALLOC<Pipe, decltype(at), Split>(pipe, at);
        if (moves(tile, at)) {
            auto to = window<Pitch>(tile, at.data(), tile.GetValidRow());
            pto::TSTORE(to, tile);
        }
        pto::TPUSH<Pipe, decltype(at), Split>(pipe, at);
    }

    template <uint32_t Pitch, typename T> AICORE void pop(T &tile) {
        auto at = part<Pitch>(tile);
        pto::TPOP<Pipe, decltype(at), Split>(pipe, at);
        if (moves(tile, at)) {
            auto from = window<Pitch>(tile, at.data(), tile.GetValidRow());
            pto::TLOAD(tile, from);
        }
        pto::TFREE<Pipe, decltype(at), Split>(pipe, at);
    }

    // Pushes or pops without a tile.
    AICORE void pass() {
        ByRows<float> nothing(nullptr, Elements(0, 0), pto::Stride<1, 1, 1, -1, 1>(0));
        if constexpr (IsToVector) {
            pto::TPOP<Pipe, ByRows<float>, Split>(pipe, nothing);
            pto::TFREE<Pipe, ByRows<float>, Split>(pipe, nothing);
        } else {
            pto::TALLOC<Pipe, ByRows<float>, Split>(pipe, nothing);
            pto::TPUSH<Pipe, ByRows<float>, Split>(pipe, nothing);
        }
    }
};

#elif defined(WSP_ASCEND)

struct Pipes {};

template <uint8_t Flag, bool IsToVector, uint32_t SlotBytes, uint32_t SlotCount,
          pto::TileSplitAxis Split>
class Fifo {
    static_assert(Flag > 15, "a kernel for cube and vector cores, which are started as blocks");
};

#else

// The simulator's FIFOs. Of the two threads one runs, until it has to wait or ends: that may be all
// that the simulator takes.
struct Pipes {
    pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;  // of the thread that runs
    pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
    uint64_t pushed[2] = {0, 0}, popped[2] = {0, 0};
    List<uint8_t> slots = List<uint8_t>(2 * WSP_FIFO_BYTES);
};

template <uint8_t Flag, bool IsToVector, uint32_t SlotBytes, uint32_t SlotCount,
          pto::TileSplitAxis Split>
class Fifo {
    Pipes &pipes;

  public:
    explicit Fifo(Pipes &pipes, Share = Share{0, false}) : pipes(pipes) {
    }
    template <uint32_t Pitch, typename T> void push(T &tile) {
        uint64_t &pushed = pipes.pushed[IsToVector], &popped = pipes.popped[IsToVector];
        while (pushed - popped == SlotCount) {
            pthread_cond_wait(&pipes.moved, &pipes.turn);
        }
        if (any(tile)) {
            auto to = slot<Pitch>(tile, pushed);
            TSTORE(to, tile);
        }
        pushed++;
        pthread_cond_broadcast(&pipes.moved);
    }
    template <uint32_t Pitch, typename T> void pop(T &tile) {
        uint64_t &pushed = pipes.pushed[IsToVector], &popped = pipes.popped[IsToVector];
        while (pushed == popped) {
            pthread_cond_wait(&pipes.moved, &pipes.turn);
        }
        if (any(tile)) {
            auto from = slot<Pitch>(tile, popped);
            TLOAD(tile, from);
        }
        popped++;
        pthread_cond_broadcast(&pipes.moved);
    }
    void pass() {
    }

  private:
    template <uint32_t Pitch, typename T> auto slot(T &tile, uint64_t number) {
        using E = typename T::DType;
        uint8_t *at = pipes.slots.data() + (IsToVector ? 0 : WSP_FIFO_BYTES) +
                      number % SlotCount * WSP_FIFO_SLOT_BYTES;
        return Rows<E>(reinterpret_cast<E *>(at),
                       pto::Shape<1, 1, 1, -1, -1>(tile.GetValidRow(), tile.GetValidCol()),
                       typename Rows<E>::Stride(Pitch, 1));
    }
};

#endif

// -- running the halves ---------------------------------------------------------------------------

#if WSP_IS_SHIM

typedef void (*half_fn)(wsp_task *task, Pipes &pipes);

// The FIFOs of the next task of this thread, if it has been given some.
inline uint8_t *&given_fifos() {
    static thread_local uint8_t *fifos;
    return fifos;
}

inline void run_halves(wsp_task *task, half_fn cube, half_fn vector) {
    static thread_local List<uint8_t> fifos;
    uint8_t *memory = given_fifos();
    if (!memory) {
        fifos.resize(2 * WSP_FIFO_BYTES);
        memory = fifos.data();  // of this thread: the vector cores have others
    }
    const auto run = [&](half_fn half) {
        set_ffts_base_addr(1);
        Pipes pipes(memory);
        half(task, pipes);
    };
    pto::RunBlock([&] { run(cube); }, [&] { run(vector); });  // a fault has told the task
}

#elif !defined(WSP_ASCEND)

typedef void (*half_fn)(wsp_task *task, Pipes &pipes);

inline void run_halves(wsp_task *task, half_fn cube, half_fn vector) {
    struct Run {
        Pipes pipes;
        wsp_task *task;
        half_fn half;
        static void *start(void *arg) {
            Run &run = *static_cast<Run *>(arg);
            pthread_mutex_lock(&run.pipes.turn);
            run.half(run.task, run.pipes);
            pthread_mutex_unlock(&run.pipes.turn);
            return nullptr;
        }
    } run = {{}, task, vector};
    pthread_t thread;
    if (pthread_create(&thread, nullptr, Run::start, &run) != 0) {
        WSP_FAIL(task, PTOWSP_OUT_OF_MEMORY, 0);
        return;
    }
    pthread_mutex_lock(&run.pipes.turn);
    cube(task, run.pipes);
    pthread_mutex_unlock(&run.pipes.turn);
    pthread_join(thread, nullptr);
}

#endif

}  // namespace wsp

// A further parameter of mixed kernels, and of functions that call them: on a device the FIFOs of the
// block. WSP_HALVES is the last statement of such a kernel.
#if defined(WSP_ASCEND) && defined(WSP_UNIT_block)
#define WSP_BLOCK_PARAM , wsp::Pipes &pipes
#define WSP_BLOCK_ARG   , pipes
#if WSP_HAS_CUBE
#define WSP_HALVES(task, cube, vector) cube(task, pipes)
#else
#define WSP_HALVES(task, cube, vector) vector(task, pipes)
#endif
extern "C" AICORE void wsp_core_run(__gm__ wsp_task *task WSP_BLOCK_PARAM);
#else
#define WSP_BLOCK_PARAM
#define WSP_BLOCK_ARG
#ifdef WSP_ASCEND
#define WSP_HALVES(task, cube, vector) (void)(task)
#else
#define WSP_HALVES(task, cube, vector) wsp::run_halves(task, cube, vector)
#endif
#endif

#endif
