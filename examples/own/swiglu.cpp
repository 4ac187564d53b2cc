// y = gate / (1 + exp(-gate)) * up, the middle of a gated MLP, as one writes it for PTO-ISA:
// nothing here knows of ptowsp. Rows come in pieces of kRows, in two slots of UB, so that the loads
// of a piece overlap the arithmetic of the one before.
#include <cstdint>
#include <pto/common/constants.hpp>
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int kRows = 8;
constexpr int kCols = 704;
constexpr uint32_t kTileBytes = kRows * kCols * sizeof(float);
constexpr uint32_t kSlotBytes = 3 * kTileBytes;

static_assert(kCols * sizeof(float) % BLOCK_BYTE_SIZE == 0, "rows are whole blocks");
static_assert(2 * kSlotBytes <= 184 * 1024, "two slots fit UB of A2/A3");

template <typename T>
AICORE inline void RunSwiglu(__gm__ T *y, __gm__ T *gate, __gm__ T *up, int rows, int cols,
                             int64_t pitch) {
    using Window = GlobalTensor<T, Shape<1, 1, 1, -1, -1>, Stride<1, 1, 1, -1, 1>>;
    using Piece = Tile<TileType::Vec, T, kRows, kCols, BLayout::RowMajor, -1, -1>;
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID1);
    for (int row = 0, slot = 0; row < rows; row += kRows, slot ^= 1) {
        const int count = rows - row < kRows ? rows - row : kRows;
        const event_t id = static_cast<event_t>(slot);
        const Shape<1, 1, 1, -1, -1> shape(count, cols);
        const Stride<1, 1, 1, -1, 1> stride(pitch);
        Window gateGlobal(gate + row * pitch, shape, stride);
        Window upGlobal(up + row * pitch, shape, stride);
        Window yGlobal(y + row * pitch, shape, stride);
        Piece gateTile(count, cols), upTile(count, cols), yTile(count, cols);
        TASSIGN(gateTile, slot * kSlotBytes);
        TASSIGN(upTile, slot * kSlotBytes + kTileBytes);
        TASSIGN(yTile, slot * kSlotBytes + 2 * kTileBytes);

        wait_flag(PIPE_V, PIPE_MTE2, id);
        TLOAD(gateTile, gateGlobal);
        TLOAD(upTile, upGlobal);
        set_flag(PIPE_MTE2, PIPE_V, id);
        wait_flag(PIPE_MTE2, PIPE_V, id);
        wait_flag(PIPE_MTE3, PIPE_V, id);
        TMULS(yTile, gateTile, static_cast<T>(-1));
        pipe_barrier(PIPE_V);
        TEXP(yTile, yTile);
        pipe_barrier(PIPE_V);
        TADDS(yTile, yTile, static_cast<T>(1));
        pipe_barrier(PIPE_V);
        TDIV(yTile, gateTile, yTile);
        pipe_barrier(PIPE_V);
        TMUL(yTile, yTile, upTile);
        set_flag(PIPE_V, PIPE_MTE2, id);
        set_flag(PIPE_V, PIPE_MTE3, id);
        wait_flag(PIPE_V, PIPE_MTE3, id);
        TSTORE(yGlobal, yTile);
        set_flag(PIPE_MTE3, PIPE_V, id);
    }
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID1);
}

extern "C" __global__ AICORE void swiglu(__gm__ float *y, __gm__ float *gate, __gm__ float *up,
                                         int rows, int cols, int64_t pitch) {
    RunSwiglu<float>(y, gate, up, rows, cols, pitch);
}
