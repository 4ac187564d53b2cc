// c = a * b, and for cube and vector cores c = exp(a * b), of 64 x 128 and 128 x 64 at most: the
// instructions, addresses and flags of the tile kernels of npu_measure_test.c. The vector cores share
// the rows.
#include <pto/common/constants.hpp>
#include <pto/pto-inst.hpp>

using namespace pto;

template <typename T, int kPitch>
using Window = GlobalTensor<T, Shape<1, 1, 1, -1, -1>, Stride<1, 1, 1, kPitch, 1>>;
using Sizes = Shape<1, 1, 1, -1, -1>;
using Scores = TPipe<0, Direction::DIR_C2V, 64 * 64 * sizeof(float), 2>;

#ifdef __DAV_CUBE__
using Acc = TileAcc<float, 64, 64, -1, -1>;

PTO_INTERNAL void Multiply(Acc &acc, __gm__ half *a, __gm__ half *b, int m, int k, int n) {
    Window<half, 128> aGlobal(a, Sizes(m, k));
    Window<half, 64> bGlobal(b, Sizes(k, n));
    Tile<TileType::Mat, half, 64, 128, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512> aMat(m,
                                                                                               k);
    Tile<TileType::Mat, half, 128, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512> bMat(k,
                                                                                               n);
    TileLeft<half, 64, 128, -1, -1> left(m, k);
    TileRight<half, 128, 64, -1, -1> right(k, n);
    TASSIGN(aMat, 0);
    TASSIGN(bMat, 0x4000);
    TASSIGN(left, 0);
    TASSIGN(right, 0);
    TASSIGN(acc, 0);
    TLOAD(aMat, aGlobal);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TLOAD(bMat, bGlobal);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(left, aMat);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1);
    TMOV(right, bMat);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(acc, left, right);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
}

#ifndef GEMM_IS_MIXED
__global__ AICORE void gemm(__gm__ float *c, __gm__ half *a, __gm__ half *b, int m, int k, int n) {
    Acc acc(m, n);
    Multiply(acc, a, b, m, k, n);
    Window<float, 64> cGlobal(c, Sizes(m, n));
    TSTORE(cGlobal, acc);
    set_flag(PIPE_FIX, PIPE_S, EVENT_ID7);
    wait_flag(PIPE_FIX, PIPE_S, EVENT_ID7);
}
#endif
#endif

#ifdef GEMM_IS_MIXED
__global__ AICORE void gemm_exp(int64_t ffts, __gm__ float *slots, __gm__ float *c, __gm__ half *a,
                                __gm__ half *b, int m, int k, int n) {
    set_ffts_base_addr(ffts);
    Scores scores(slots, 0, 0);
#ifdef __DAV_CUBE__
    (void)c;
    Acc acc(m, n);
    Multiply(acc, a, b, m, k, n);
    TPUSH<Scores, Acc, TileSplitAxis::TILE_UP_DOWN>(scores, acc);
#else
    (void)a, (void)b, (void)k;
    using Half = Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1>;
    const int first = get_subblockid() == 0 ? 0 : (m + 1) / 2;
    const int rows = get_subblockid() == 0 ? (m + 1) / 2 : m / 2;
    Half tile(rows, n);
    TPOP<Scores, Half, TileSplitAxis::TILE_UP_DOWN>(scores, tile);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TEXP(tile, tile);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    Window<float, 64> cGlobal(c + first * 64, Sizes(rows, n));
    TSTORE(cGlobal, tile);
#endif
    pipe_barrier(PIPE_ALL);
}
#endif
