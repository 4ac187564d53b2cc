// c = a * b in half precision, as a demo of PTO-ISA has it: each block computes a tile of kM x kN. It
// walks k in steps of kK: two slots of L1, loaded while the cube works on the other one, and two of L0A
// and L0B. Nothing here knows of ptowsp.
#include <pto/common/constants.hpp>
#include <pto/common/pto_tile.hpp>
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int kM = 128;
constexpr int kN = 128;
constexpr int kK = 64;
constexpr uint32_t kBytesA = kM * kK * sizeof(half);
constexpr uint32_t kBytesB = kK * kN * sizeof(half);
static_assert(2 * kBytesA <= 64 * 1024 && 2 * kBytesB <= 64 * 1024, "two slots fit L0A and L0B");
static_assert(kM * kN * sizeof(float) <= 128 * 1024, "the product fits L0C");

using MatA = Tile<TileType::Mat, half, kM, kK, BLayout::ColMajor, kM, kK, SLayout::RowMajor, 512>;
using MatB = Tile<TileType::Mat, half, kK, kN, BLayout::ColMajor, kK, kN, SLayout::RowMajor, 512>;
using Rows = Stride<1, 1, 1, -1, 1>;

// Loads step k into its slot of L1, when MTE1 has taken from there what it needs.
PTO_INTERNAL void LoadStep(__gm__ half *a, __gm__ half *b, int step, int k, int n) {
    const uint32_t slot = step % 2;
    GlobalTensor<half, Shape<1, 1, 1, kM, kK>, Rows> aGlobal(a + step * kK, {}, Rows(k));
    GlobalTensor<half, Shape<1, 1, 1, kK, kN>, Rows> bGlobal(b + step * kK * n, {}, Rows(n));
    MatA aMat;
    MatB bMat;
    TASSIGN(aMat, slot * kBytesA);
    TASSIGN(bMat, 2 * kBytesA + slot * kBytesB);
    wait_flag(PIPE_MTE1, PIPE_MTE2, static_cast<event_t>(slot));
    TLOAD(aMat, aGlobal);
    TLOAD(bMat, bGlobal);
    set_flag(PIPE_MTE2, PIPE_MTE1, static_cast<event_t>(slot));
}

// Multiplies step k out of its slot.
PTO_INTERNAL void MultiplyStep(TileAcc<float, kM, kN> &acc, int step) {
    const uint32_t slot = step % 2;
    const event_t id = static_cast<event_t>(slot);
    MatA aMat;
    MatB bMat;
    TileLeft<half, kM, kK> left;
    TileRight<half, kK, kN> right;
    TASSIGN(aMat, slot * kBytesA);
    TASSIGN(bMat, 2 * kBytesA + slot * kBytesB);
    TASSIGN(left, slot * kBytesA);
    TASSIGN(right, slot * kBytesB);
    wait_flag(PIPE_MTE2, PIPE_MTE1, id);
    wait_flag(PIPE_M, PIPE_MTE1, id);
    TMOV(left, aMat);
    TMOV(right, bMat);
    set_flag(PIPE_MTE1, PIPE_MTE2, id);
    set_flag(PIPE_MTE1, PIPE_M, id);
    wait_flag(PIPE_MTE1, PIPE_M, id);
    if (step == 0) {
        TMATMUL(acc, left, right);
    } else {
        TMATMUL_ACC(acc, acc, left, right);
    }
    set_flag(PIPE_M, PIPE_MTE1, id);
}

// Block i has rows i / (n / kN) * kM of c and columns i % (n / kN) * kN.
extern "C" __global__ AICORE void gemm(__gm__ float *c, __gm__ half *a, __gm__ half *b, int k,
                                       int n) {
    const int block = static_cast<int>(get_block_idx());
    const int row = block / (n / kN) * kM, col = block % (n / kN) * kN, steps = k / kK;
    TileAcc<float, kM, kN> acc;
    TASSIGN(acc, 0);
    for (int slot = 0; slot < 2; slot++) {
        set_flag(PIPE_MTE1, PIPE_MTE2, static_cast<event_t>(slot));
        set_flag(PIPE_M, PIPE_MTE1, static_cast<event_t>(slot));
    }
    LoadStep(a + row * k, b + col, 0, k, n);
    for (int step = 0; step < steps; step++) {
        if (step + 1 < steps) {
            LoadStep(a + row * k, b + col, step + 1, k, n);
        }
        MultiplyStep(acc, step);
    }
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    GlobalTensor<float, Shape<1, 1, 1, kM, kN>, Rows> cGlobal(c + row * n + col, {}, Rows(n));
    TSTORE(cGlobal, acc);
    for (int slot = 0; slot < 2; slot++) {
        wait_flag(PIPE_MTE1, PIPE_MTE2, static_cast<event_t>(slot));
        wait_flag(PIPE_M, PIPE_MTE1, static_cast<event_t>(slot));
    }
}

#ifndef __COSTMODEL
void LaunchGemm(uint32_t blocks, void *stream, float *c, half *a, half *b, int k, int n) {
    gemm<<<blocks, nullptr, stream>>>(c, a, b, k, n);
}
#endif
