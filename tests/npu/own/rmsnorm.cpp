// y = x / sqrt(mean(x^2) + 1/65536) * gamma, eight rows of 64 at a time, in two slots.
#include <cstdint>
#include <pto/common/constants.hpp>
#include <pto/pto-inst.hpp>

constexpr int kRows = 8;
constexpr int kCols = 64;
constexpr int kSlotBytes = 0x2000;
constexpr int kGamma = 0x10000, kSquares = 0x11000, kScratch = 0x13000, kSums = 0x15000,
              kRoots = 0x15100;

// A template of another source has this name and these types, too.
template <typename T>
AICORE inline void RunAdd(__gm__ T *out, __gm__ T *x, __gm__ T *gamma, int rows, int pitch) {
    using namespace pto;
    using RowShape = Shape<1, 1, 1, 1, kCols>;
    using RowStride = Stride<1, 1, 1, kCols, 1>;
    using Window = GlobalTensor<T, Shape<1, 1, 1, -1, kCols>, Stride<1, 1, 1, -1, 1>>;
    using Rows = Tile<TileType::Vec, T, kRows, kCols, BLayout::RowMajor, -1, kCols>;
    Tile<TileType::Vec, T, 1, kCols> gammaTile;
    GlobalTensor<T, RowShape, RowStride> gammaGlobal(gamma);
    TASSIGN(gammaTile, kGamma);
    TLOAD(gammaTile, gammaGlobal);
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID1);
    for (int row = 0, slot = 0; row < rows; row += kRows, slot ^= 1) {
        const int count = rows - row < kRows ? rows - row : kRows;
        const event_t id = slot == 0 ? EVENT_ID0 : EVENT_ID1;
        Window xGlobal(x + row * pitch, Shape<1, 1, 1, -1, kCols>(count),
                       Stride<1, 1, 1, -1, 1>(pitch));
        Window outGlobal(out + row * pitch, Shape<1, 1, 1, -1, kCols>(count),
                         Stride<1, 1, 1, -1, 1>(pitch));
        Rows xTile(count), outTile(count), squares(count), scratch(count);
        Tile<TileType::Vec, T, kRows, 1, BLayout::ColMajor, -1, 1> sumColumn(count),
            rootColumn(count);
        Tile<TileType::Vec, T, 1, kRows, BLayout::RowMajor, 1, -1> sums(count), roots(count);
        TASSIGN(xTile, slot * kSlotBytes);
        TASSIGN(outTile, slot * kSlotBytes + kSlotBytes / 2);
        TASSIGN(squares, kSquares);
        TASSIGN(scratch, kScratch);
        TASSIGN(sumColumn, kSums);
        TASSIGN(sums, kSums);
        TASSIGN(rootColumn, kRoots);
        TASSIGN(roots, kRoots);
        wait_flag(PIPE_V, PIPE_MTE2, id);
        TLOAD(xTile, xGlobal);
        set_flag(PIPE_MTE2, PIPE_V, id);
        wait_flag(PIPE_MTE2, PIPE_V, id);
        TMUL(squares, xTile, xTile);
        pipe_barrier(PIPE_V);
        TROWSUM(sumColumn, squares, scratch);
        pipe_barrier(PIPE_V);
        TMULS(sums, sums, 1.0f / kCols);
        pipe_barrier(PIPE_V);
        TADDS(sums, sums, 1.0f / 65536);
        pipe_barrier(PIPE_V);
        TRSQRT(roots, sums);
        pipe_barrier(PIPE_V);
        TROWEXPANDMUL(squares, xTile, rootColumn);
        pipe_barrier(PIPE_V);
        set_flag(PIPE_V, PIPE_MTE2, id);
        wait_flag(PIPE_MTE3, PIPE_V, id);
        TCOLEXPANDMUL(outTile, squares, gammaTile);
        set_flag(PIPE_V, PIPE_MTE3, id);
        wait_flag(PIPE_V, PIPE_MTE3, id);
        TSTORE(outGlobal, outTile);
        set_flag(PIPE_MTE3, PIPE_V, id);
    }
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID1);
}

extern "C" __global__ AICORE void kernel_entry(__gm__ float *out, __gm__ float *x,
                                               __gm__ float *gamma, int rows, int pitch) {
    RunAdd<float>(out, x, gamma, rows, pitch);
}
