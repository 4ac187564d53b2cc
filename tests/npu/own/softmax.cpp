// y = exp(x - max) / sum for each of `rows` rows: the instructions, addresses and flags of the tile
// kernel of npu_measure_test.c, as somebody writes them by hand.
#include <pto/pto-inst.hpp>

using namespace pto;

using Matrix = Tile<TileType::Vec, float, 64, 128, BLayout::RowMajor, -1, -1>;
using Column = Tile<TileType::Vec, float, 64, 1, BLayout::ColMajor, -1, 1>;
using Sizes = Shape<1, 1, 1, -1, -1>;
using Pitch = Stride<1, 1, 1, -1, 1>;
using Window = GlobalTensor<float, Sizes, Pitch>;

// A5 orders vector instructions itself.
PTO_INTERNAL void Barrier() {
#ifndef SOFTMAX_IS_A5
    pipe_barrier(PIPE_V);
#endif
}

__global__ AICORE void softmax(__gm__ float *y, __gm__ float *x, int rows, int cols, int pitch) {
    Window xGlobal(x, Sizes(rows, cols), Pitch(pitch)), yGlobal(y, Sizes(rows, cols), Pitch(pitch));
    Matrix tile(rows, cols), tmp(rows, cols);
    Column most(rows), sum(rows);
    TASSIGN(tile, 0);
    TASSIGN(tmp, 0x8000);
    TASSIGN(most, 0x10000);
    TASSIGN(sum, 0x10000);
    TLOAD(tile, xGlobal);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TROWMAX(most, tile, tmp);
    Barrier();
    TROWEXPANDSUB(tile, tile, most);
    Barrier();
    TEXP(tile, tile);
    Barrier();
    TROWSUM(sum, tile, tmp);
    Barrier();
    TROWEXPANDDIV(tile, tile, sum);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(yGlobal, tile);
    set_flag(PIPE_MTE3, PIPE_S, EVENT_ID7);
    wait_flag(PIPE_MTE3, PIPE_S, EVENT_ID7);
}
