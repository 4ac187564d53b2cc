// out = a + b, as a demo of PTO-ISA has it: each block adds its share of the rows, in pieces of 32 with
// two slots of UB, and the host launches 24 blocks. Nothing here knows of ptowsp.
#include <pto/common/constants.hpp>
#include <pto/pto-inst.hpp>

#ifndef __CPU_SIM
#include "acl/acl.h"
#endif

using namespace pto;

template <typename T, int kRows, int kCols> struct AddTraits {
    static constexpr uint32_t kTileBytes = kRows * kCols * sizeof(T);
    static constexpr uint32_t kSlotBytes = 3 * kTileBytes;
    static_assert(kCols * sizeof(T) % BLOCK_BYTE_SIZE == 0, "rows are whole blocks");
    static_assert(2 * kSlotBytes <= 184 * 1024, "two slots fit UB of A2/A3");
    using Window = GlobalTensor<T, Shape<1, 1, 1, -1, kCols>, Stride<1, 1, 1, kCols, 1>>;
    using Piece = Tile<TileType::Vec, T, kRows, kCols, BLayout::RowMajor, -1, kCols>;
};

template <typename T, int kRows, int kCols>
AICORE inline void RunAdd(__gm__ T *out, __gm__ T *a, __gm__ T *b, int begin, int end) {
    using Traits = AddTraits<T, kRows, kCols>;
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);
    for (int row = begin, slot = 0; row < end; row += kRows, slot ^= 1) {
        const int count = end - row < kRows ? end - row : kRows;
        const event_t id = static_cast<event_t>(slot);
        const Shape<1, 1, 1, -1, kCols> shape(count);
        typename Traits::Window aGlobal(a + row * kCols, shape), bGlobal(b + row * kCols, shape);
        typename Traits::Window outGlobal(out + row * kCols, shape);
        typename Traits::Piece aTile(count), bTile(count), outTile(count);
        TASSIGN(aTile, slot * Traits::kSlotBytes);
        TASSIGN(bTile, slot * Traits::kSlotBytes + Traits::kTileBytes);
        TASSIGN(outTile, slot * Traits::kSlotBytes + 2 * Traits::kTileBytes);
        wait_flag(PIPE_MTE3, PIPE_MTE2, id);
        TLOAD(aTile, aGlobal);
        TLOAD(bTile, bGlobal);
        set_flag(PIPE_MTE2, PIPE_V, id);
        wait_flag(PIPE_MTE2, PIPE_V, id);
        TADD(outTile, aTile, bTile);
        set_flag(PIPE_V, PIPE_MTE3, id);
        wait_flag(PIPE_V, PIPE_MTE3, id);
        TSTORE(outGlobal, outTile);
        set_flag(PIPE_MTE3, PIPE_MTE2, id);
    }
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);
}

extern "C" __global__ AICORE void add(__gm__ float *out, __gm__ float *a, __gm__ float *b,
                                      int rows) {
    const int blocks = static_cast<int>(get_block_num());
    const int share = (rows + blocks - 1) / blocks;
    const int begin = static_cast<int>(get_block_idx()) * share;
    RunAdd<float, 32, 128>(out, a, b, begin, begin + share < rows ? begin + share : rows);
}

#ifndef __CPU_SIM
void LaunchAdd(float *out, float *a, float *b, int rows, aclrtStream stream) {
    add<<<24, nullptr, stream>>>(out, a, b, rows);
}
#endif
