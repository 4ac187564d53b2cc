// out = a + b: each block adds its share in pieces of kPiece, with two slots in UB.
#include <pto/common/constants.hpp>
#include <pto/common/pto_tile.hpp>
#include <pto/pto-inst.hpp>

#include "slots.hpp"

using namespace pto;

constexpr int kPiece = 512;

template <typename T>
AICORE inline void RunAdd(__gm__ T *out, __gm__ T *a, __gm__ T *b, int begin, int end) {
    using Window = GlobalTensor<T, Shape<1, 1, 1, 1, -1>, Stride<1, 1, 1, kPiece, 1>>;
    using Piece = Tile<TileType::Vec, T, 1, kPiece, BLayout::RowMajor, 1, -1>;
    int slot = 0;
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);
    for (int at = begin; at < end; at += kPiece) {
        const int count = end - at < kPiece ? end - at : kPiece;
        const event_t id = static_cast<event_t>(slot);
        Window aGlobal(a + at, count), bGlobal(b + at, count), outGlobal(out + at, count);
        Piece aTile(count), bTile(count), outTile(count);
        TASSIGN(aTile, slot * 3 * kSlotBytes);
        TASSIGN(bTile, slot * 3 * kSlotBytes + kSlotBytes);
        TASSIGN(outTile, slot * 3 * kSlotBytes + 2 * kSlotBytes);
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
        slot ^= 1;
    }
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);
}

extern "C" __global__ AICORE void kernel_entry(__gm__ float *out, __gm__ float *a, __gm__ float *b,
                                               int total) {
    const int blocks = static_cast<int>(get_block_num());
    const int share = (total + blocks - 1) / blocks;
    const int begin = static_cast<int>(get_block_idx()) * share;
    RunAdd<float>(out, a, b, begin, begin + share < total ? begin + share : total);
}

#ifdef __CCE_AICORE__
void LaunchAdd(uint32_t blocks, void *stream, float *out, float *a, float *b, int total) {
    kernel_entry<<<blocks, nullptr, stream>>>(out, a, b, total);
}
#endif
