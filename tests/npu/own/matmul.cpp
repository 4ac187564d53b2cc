// C = A * B of 32 x 64 x 48, through L1 and L0.
#include <pto/pto-inst.hpp>

using namespace pto;

template <typename T, int M, int K, int N>
AICORE inline void RunMatmul(__gm__ float *c, __gm__ T *a, __gm__ T *b) {
    using ShapeA = TileShape2D<T, M, K>;
    using StrideA = BaseShape2D<T, M, K>;
    using ShapeB = TileShape2D<T, K, N>;
    using StrideB = BaseShape2D<T, K, N>;
    using ShapeC = TileShape2D<float, M, N>;
    using StrideC = BaseShape2D<float, M, N>;
    GlobalTensor<T, ShapeA, StrideA> aGlobal(a);
    GlobalTensor<T, ShapeB, StrideB> bGlobal(b);
    GlobalTensor<float, ShapeC, StrideC> cGlobal(c);
    Tile<TileType::Mat, T, M, K, BLayout::ColMajor, M, K, SLayout::RowMajor, 512> aMat;
    Tile<TileType::Mat, T, K, N, BLayout::ColMajor, K, N, SLayout::RowMajor, 512> bMat;
    TileLeft<T, M, K> left;
    TileRight<T, K, N> right;
    TileAcc<float, M, N> acc;
    TASSIGN(aMat, 0x0);
    TASSIGN(bMat, 0x8000);
    TASSIGN(left, 0x0);
    TASSIGN(right, 0x0);
    TASSIGN(acc, 0x0);
    TLOAD(aMat, aGlobal);
    TLOAD(bMat, bGlobal);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(left, aMat);
    TMOV(right, bMat);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(acc, left, right);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE(cGlobal, acc);
}

__global__ AICORE void matmul(__gm__ float *c, __gm__ float *a, __gm__ float *b) {
    RunMatmul<float, 32, 64, 48>(c, a, b);
}
