// out = softmax(q k^T / 8) v for `rows` queries over `keys` keys, kN of them at a time: products on
// the cube core, the softmax on the two vector cores. Compiled for each half. The next scores are
// pushed before the probabilities of these are waited for.
#include <pto/common/constants.hpp>
#include <pto/pto-inst.hpp>

using namespace pto;

template <int kM, int kN, int kD, TileSplitAxis kRows, TileSplitAxis kOut> struct Attend {
    static constexpr bool kIsWhole = kRows == TileSplitAxis::TILE_NO_SPLIT;
    static constexpr bool kIsCols =
        kOut == TileSplitAxis::TILE_LEFT_RIGHT || kOut == TileSplitAxis::TILE_LEFT_RIGHT_ODD;
    static constexpr int kHalf = kIsWhole ? kM : kM / 2;
    static constexpr int kOutCols = kIsCols ? kD / 2 : kD;
    static constexpr uint32_t kScoreBytes = kM * kN * 4, kOutBytes = kM * kD * 4;
    using Scores = TPipe<0, Direction::DIR_C2V, kScoreBytes, 2>;
    using Weights = TPipe<2, Direction::DIR_V2C, kScoreBytes / 2, 2>;
    using Parts = TPipe<4, Direction::DIR_C2V, kOutBytes, 2>;
    static constexpr uint32_t kUbScores = 0, kUbParts = 2 * kScoreBytes, kL1Weights = 0x20000;

    static AICORE void Sync(pipe_t from, pipe_t to) {
        set_flag(from, to, EVENT_ID0);
        wait_flag(from, to, EVENT_ID0);
    }

#ifdef __DAV_CUBE__
    using MatQ =
        Tile<TileType::Mat, half, kM, kD, BLayout::ColMajor, -1, kD, SLayout::RowMajor, 512>;
    using MatK =
        Tile<TileType::Mat, half, kD, kN, BLayout::RowMajor, kD, kN, SLayout::ColMajor, 512>;
    using MatV =
        Tile<TileType::Mat, half, kN, kD, BLayout::ColMajor, kN, -1, SLayout::RowMajor, 512>;
    using MatP =
        Tile<TileType::Mat, half, kM, kN, BLayout::ColMajor, -1, kN, SLayout::RowMajor, 512>;
    using RowsOf = Shape<1, 1, 1, -1, -1>;
    using Pitch = Stride<1, 1, 1, kD, 1>;

    static AICORE void Score(Scores &scores, TileLeft<half, kM, kD, -1, kD> &left, __gm__ half *k,
                             int rows) {
        GlobalTensor<half, Shape<1, 1, 1, kD, kN>, Stride<1, 1, 1, 1, kD>, Layout::DN> kGlobal(k);
        MatK mat;
        TileRight<half, kD, kN> right;
        TileAcc<float, kM, kN, -1, kN> acc(rows);
        TASSIGN(mat, 0x8000);
        TASSIGN(right, 0);
        TASSIGN(acc, 0);
        Sync(PIPE_MTE1, PIPE_MTE2);
        TLOAD(mat, kGlobal);
        Sync(PIPE_MTE2, PIPE_MTE1);
        Sync(PIPE_M, PIPE_MTE1);
        TMOV(right, mat);
        Sync(PIPE_MTE1, PIPE_M);
        Sync(PIPE_FIX, PIPE_M);
        TMATMUL(acc, left, right);
        Sync(PIPE_M, PIPE_FIX);
        TPUSH<Scores, TileAcc<float, kM, kN, -1, kN>, kRows>(scores, acc);
    }

    static AICORE void Part(Weights &weights, Parts &parts, __gm__ half *v, int rows, int cols) {
        GlobalTensor<half, RowsOf, Pitch> vGlobal(v, RowsOf(kN, cols));
        MatP mat(rows);
        MatV vMat(cols);
        TileLeft<half, kM, kN, -1, kN> left(rows);
        TileRight<half, kN, kD, kN, -1> right(cols);
        TileAcc<float, kM, kD, -1, -1> acc(rows, cols);
        TASSIGN(vMat, 0x10000);
        TASSIGN(left, 0x8000);
        TASSIGN(right, 0x8000);
        TASSIGN(acc, 0x10000);
        Sync(PIPE_MTE1, PIPE_MTE2);
        TLOAD(vMat, vGlobal);
        TPOP<Weights, MatP, kRows>(weights, mat);
        TFREE(weights);
        Sync(PIPE_MTE2, PIPE_MTE1);
        Sync(PIPE_M, PIPE_MTE1);
        TMOV(left, mat);
        TMOV(right, vMat);
        Sync(PIPE_MTE1, PIPE_M);
        Sync(PIPE_FIX, PIPE_M);
        TMATMUL(acc, left, right);
        Sync(PIPE_M, PIPE_FIX);
        TPUSH<Parts, TileAcc<float, kM, kD, -1, -1>, kOut>(parts, acc);
    }

    static AICORE void Run(Scores &scores, Weights &weights, Parts &parts, __gm__ half *q,
                           __gm__ half *k, __gm__ half *v, __gm__ float *, int rows, int keys,
                           int cols) {
        GlobalTensor<half, Shape<1, 1, 1, -1, kD>, Pitch> qGlobal(q, Shape<1, 1, 1, -1, kD>(rows));
        MatQ mat(rows);
        TileLeft<half, kM, kD, -1, kD> left(rows);
        TASSIGN(mat, 0);
        TASSIGN(left, 0);
        TLOAD(mat, qGlobal);
        Sync(PIPE_MTE2, PIPE_MTE1);
        TMOV(left, mat);
        Score(scores, left, k, rows);
        for (int at = 0; at < keys; at += kN) {
            if (at + kN < keys) {
                Score(scores, left, k + (at + kN) * kD, rows);
            }
            Part(weights, parts, v + at * kD, rows, cols);
        }
    }
#endif

#ifdef __DAV_VEC__
    using Block = Tile<TileType::Vec, float, kHalf, kN, BLayout::RowMajor, -1, kN>;
    using Narrow = Tile<TileType::Vec, half, kHalf, kN, BLayout::RowMajor, -1, kN>;
    using Out = Tile<TileType::Vec, float, kHalf, kOutCols, BLayout::RowMajor, -1, -1>;
    using Col = Tile<TileType::Vec, float, kHalf, 1, BLayout::ColMajor, -1, 1>;
    using Line = Tile<TileType::Vec, float, 1, kHalf, BLayout::RowMajor, 1, -1>;
    static constexpr uint32_t kUbTmp = kUbParts + 2 * kOutBytes, kUbNarrow = kUbTmp + kScoreBytes,
                              kUbOut = kUbNarrow + kScoreBytes / 2, kUbLines = kUbOut + kOutBytes;
    static_assert(kUbLines + 6 * 4 * kHalf <= 184 * 1024, "UB");

    static AICORE void Softmax(Block &s, Block &tmp, int rows, bool isFirst) {
        Line m(rows), l(rows), now(rows), scale(rows), sum(rows);
        Col nowCol(rows), sumCol(rows);
        TASSIGN(m, kUbLines);
        TASSIGN(l, kUbLines + 4 * kHalf);
        TASSIGN(now, kUbLines + 8 * kHalf);
        TASSIGN(nowCol, kUbLines + 8 * kHalf);
        TASSIGN(scale, kUbLines + 12 * kHalf);
        TASSIGN(sum, kUbLines + 16 * kHalf);
        TASSIGN(sumCol, kUbLines + 16 * kHalf);
        TMULS(s, s, 0.125f);
        if (isFirst) {
            TEXPANDS(m, -1e30f);
            TEXPANDS(l, 0.0f);
        }
        pipe_barrier(PIPE_V);
        TROWMAX(nowCol, s, tmp);
        pipe_barrier(PIPE_V);
        TMAX(now, now, m);
        pipe_barrier(PIPE_V);
        TSUB(scale, m, now);
        TROWEXPANDSUB(s, s, nowCol);
        pipe_barrier(PIPE_V);
        TEXP(scale, scale);
        TEXP(s, s);
        TADDS(m, now, 0.0f);
        pipe_barrier(PIPE_V);
        TROWSUM(sumCol, s, tmp);
        TMUL(l, l, scale);
        pipe_barrier(PIPE_V);
        TADD(l, l, sum);
    }

    static AICORE void Run(Scores &scores, Weights &weights, Parts &parts, __gm__ half *,
                           __gm__ half *, __gm__ half *, __gm__ float *out, int rows, int keys,
                           int cols) {
        const int sub = static_cast<int>(get_subblockid());
        int first = 0, count = rows, firstCol = 0, outCols = cols;
        if (!kIsWhole) {
            const int cut = kRows == TileSplitAxis::TILE_UP_DOWN ? (rows < kHalf ? rows : kHalf)
                                                                 : (rows + 1) / 2;
            first = sub * cut;
            count = sub == 0 ? cut : rows - cut;
        }
        if (kIsCols) {
            const int cut = (cols + 1) / 2;
            firstCol = sub * cut;
            outCols = sub == 0 ? cut : cols - cut;
        }
        Block s(count), tmp(count);
        Narrow narrow(count);
        Out part(count, outCols), sum(count, outCols);
        Col scale(count), l(count);
        TASSIGN(tmp, kUbTmp);
        TASSIGN(narrow, kUbNarrow);
        TASSIGN(sum, kUbOut);
        TASSIGN(l, kUbLines + 4 * kHalf);
        TASSIGN(scale, kUbLines + 12 * kHalf);
        for (int at = 0; at < keys; at += kN) {
            Sync(PIPE_V, PIPE_MTE2);
            TPOP<Scores, Block, kRows>(scores, s);
            TFREE(scores);
            Sync(PIPE_MTE2, PIPE_V);
            Sync(PIPE_MTE3, PIPE_V);
            if (count > 0) {
                Softmax(s, tmp, count, at == 0);
                TCVT(narrow, s, RoundMode::CAST_RINT);
            }
            Sync(PIPE_V, PIPE_MTE3);
            TPUSH<Weights, Narrow, kRows>(weights, narrow);
            Sync(PIPE_V, PIPE_MTE2);
            TPOP<Parts, Out, kOut>(parts, part);
            TFREE(parts);
            Sync(PIPE_MTE2, PIPE_V);
            if (count > 0) {
                if (at == 0) {
                    TADDS(sum, part, 0.0f);
                } else {
                    pipe_barrier(PIPE_V);
                    TROWEXPANDMUL(sum, sum, scale);
                    pipe_barrier(PIPE_V);
                    TADD(sum, sum, part);
                }
            }
        }
        if (count > 0 && (kOut != TileSplitAxis::TILE_NO_SPLIT || sub == 0)) {
            GlobalTensor<float, Shape<1, 1, 1, -1, -1>, Stride<1, 1, 1, kD, 1>> outGlobal(
                out + first * kD + firstCol, Shape<1, 1, 1, -1, -1>(count, outCols));
            pipe_barrier(PIPE_V);
            TROWEXPANDDIV(sum, sum, l);
            Sync(PIPE_V, PIPE_MTE3);
            TSTORE(outGlobal, sum);
        }
    }
#endif

    static AICORE void Entry(__gm__ void *fifos, __gm__ half *q, __gm__ half *k, __gm__ half *v,
                             __gm__ float *out, int rows, int keys, int cols) {
        __gm__ uint8_t *at = static_cast<__gm__ uint8_t *>(fifos);
        Scores scores(at, kUbScores, 0);
        Weights weights(at + 2 * kScoreBytes, 0, kL1Weights);
        Parts parts(at + 3 * kScoreBytes, kUbParts, 0);
        Run(scores, weights, parts, q, k, v, out, rows, keys, cols);
        pipe_barrier(PIPE_ALL);
    }
};

extern "C" __global__ AICORE void attend(__gm__ uint64_t *ffts, __gm__ void *fifos, __gm__ half *q,
                                         __gm__ half *k, __gm__ half *v, __gm__ float *out,
                                         int rows, int keys) {
    set_ffts_base_addr(reinterpret_cast<uint64_t>(ffts));
    Attend<32, 64, 64, TileSplitAxis::TILE_UP_DOWN, TileSplitAxis::TILE_UP_DOWN>::Entry(
        fifos, q, k, v, out, rows, keys, 64);
}
