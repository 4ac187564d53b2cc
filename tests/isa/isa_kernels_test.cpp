// Kernels as one writes them for PTO-ISA, compiled against the shim: vector add, RMSNorm, matmul,
// decode attention, top-k. They are checked against naive references in double, with tails, and
// nothing may be stored outside the valid region. Their flags are those that a device needs, so the
// core must find each set once and waited for once.

#include "isa_face.h"

using namespace pto;

static int less(int a, int b) {
    return a < b ? a : b;
}

template <typename T> static T *pointer(uint64_t arg) {
    return reinterpret_cast<T *>(static_cast<uintptr_t>(arg));
}

template <typename T> static uint64_t arg(T *p) {
    return reinterpret_cast<uintptr_t>(p);
}

// A row-major window of a matrix.
template <typename T>
using Window = GlobalTensor<T, Shape<1, 1, 1, -1, -1>, Stride<1, 1, 1, -1, 1>, Layout::ND>;

template <typename T> static Window<T> window(__gm__ T *data, int rows, int cols, int pitch) {
    return Window<T>(data, Shape<1, 1, 1, -1, -1>(rows, cols), Stride<1, 1, 1, -1, 1>(pitch));
}

static void sync(pipe_t src, pipe_t dst, event_t event) {
    set_flag(src, dst, event);
    wait_flag(src, dst, event);
}

// -- vector add -----------------------------------------------------------------------------------

// args: a, b, out, rows, cols, pitch
extern "C" AICORE void k_add(__gm__ const uint64_t *args) {
    __gm__ float *a = pointer<float>(args[0]), *b = pointer<float>(args[1]);
    __gm__ float *out = pointer<float>(args[2]);
    int rows = (int)args[3], cols = (int)args[4], pitch = (int)args[5];
    using TileT = Tile<TileType::Vec, float, 64, 64, BLayout::RowMajor, -1, -1>;
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);
    int step = 0;
    for (int r0 = 0; r0 < rows; r0 += 64) {
        for (int c0 = 0; c0 < cols; c0 += 64) {
            int vr = less(64, rows - r0), vc = less(64, cols - c0), slot = step++ % 2;
            event_t id = (event_t)slot;
            TileT ta(vr, vc), tb(vr, vc), to(vr, vc);
            bind_all(slot * 0xc000, ta, slot * 0xc000 + 0x4000, tb, slot * 0xc000 + 0x8000, to);
            Window<float> ga = window(a + r0 * pitch + c0, vr, vc, pitch);
            Window<float> gb = window(b + r0 * pitch + c0, vr, vc, pitch);
            Window<float> go = window(out + r0 * pitch + c0, vr, vc, pitch);
            wait_flag(PIPE_MTE3, PIPE_MTE2, id);
            TLOAD(ta, ga);
            TLOAD(tb, gb);
            sync(PIPE_MTE2, PIPE_V, id);
            TADD(to, ta, tb);
            sync(PIPE_V, PIPE_MTE3, id);
            TSTORE(go, to);
            set_flag(PIPE_MTE3, PIPE_MTE2, id);
        }
    }
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);
    sync(PIPE_MTE3, PIPE_S, EVENT_ID7);
}

TEST(kernels__vector_add_is_exact) {
    const int shapes[][2] = {{64, 64}, {100, 70}, {1, 1}, {129, 257}};
    for (auto shape : shapes) {
        uint64_t seed = 1;
        size_t rows = (size_t)shape[0], cols = (size_t)shape[1];
        face_matrix<float> a(rows, cols), b(rows, cols), out(rows, cols);
        a.fill(&seed);
        b.fill(&seed);
        uint64_t args[] = {arg(a.data()), arg(b.data()), arg(out.data()), rows, cols, out.pitch};
        k_add(args);
        TEST_GRID(size_t, r, rows, c, cols) {
            assert_true(out.at(r, c) == a.at(r, c) + b.at(r, c));
        }
        assert_true(out.is_guarded());
        assert_true(ptoisa_core_finish(&ptoisa_this_core()));
    }
}

// The same with the tokens of events for flags.
TEST(kernels__events_order_as_flags_do) {
    uint64_t seed = 2;
    face_matrix<float> a(64, 64), b(64, 64), out(64, 64);
    a.fill(&seed);
    b.fill(&seed);
    using TileT = Tile<TileType::Vec, float, 64, 64>;
    TileT ta, tb, to;
    TASSIGN<0x0>(ta);
    TASSIGN<0x4000>(tb);
    TASSIGN<0x8000>(to);
    Window<float> ga = window(a.data(), 64, 64, (int)a.pitch);
    Window<float> gb = window(b.data(), 64, 64, (int)b.pitch);
    Window<float> go = window(out.data(), 64, 64, (int)out.pitch);
    for (int i = 0; i < 20; i++) {
        Event<Op::TLOAD, Op::TADD> loaded;
        Event<Op::TADD, Op::TMUL> added;
        Event<Op::TADD, Op::TSTORE_VEC> done;
        Event<Op::TSTORE_VEC, Op::TLOAD> stored;
        TLOAD(ta, ga);
        loaded = TLOAD(tb, gb);
        added = TADD(to, ta, tb, loaded);
        done = TMUL(to, to, ta, added);
        stored = TSTORE(go, to, done);
        TSYNC(stored);
        TSYNC<Op::TADD>();
    }
    TEST_GRID(size_t, r, 64, c, 64) {
        assert_true(out.at(r, c) == (a.at(r, c) + b.at(r, c)) * a.at(r, c));
    }
    assert_true(out.is_guarded());
    assert_true(ptoisa_core_finish(&ptoisa_this_core()));
}

// -- RMSNorm --------------------------------------------------------------------------------------

// args: x, gamma, out, rows, cols (at most 512), pitch; eps 1e-6
extern "C" AICORE void k_rmsnorm(__gm__ const uint64_t *args) {
    __gm__ float *x = pointer<float>(args[0]), *gamma = pointer<float>(args[1]);
    __gm__ float *out = pointer<float>(args[2]);
    int rows = (int)args[3], cols = (int)args[4], pitch = (int)args[5];
    constexpr int R = 16, C = 512;
    constexpr uint32_t kX = 0, kSq = R * C * 4, kTmp = 2 * kSq, kY = 3 * kSq, kGamma = 4 * kSq;
    constexpr uint32_t kS = kGamma + C * 4, kR = kS + R * 4, kEnd = kR + R * 4;
    static_assert(kEnd <= 184 * 1024, "UB");
    using Full = Tile<TileType::Vec, float, R, C, BLayout::RowMajor, -1, -1>;
    using Gamma = Tile<TileType::Vec, float, 1, C, BLayout::RowMajor, 1, -1>;
    using Col = Tile<TileType::Vec, float, R, 1, BLayout::ColMajor, -1, 1>;
    using Row = Tile<TileType::Vec, float, 1, R, BLayout::RowMajor, 1, -1>;
    Gamma tg(cols);
    TASSIGN(tg, kGamma);
    Window<float> gg = window(gamma, 1, cols, cols);
    TLOAD(tg, gg);
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    for (int r0 = 0; r0 < rows; r0 += R) {
        int vr = less(R, rows - r0);
        Full tx(vr, cols), sq(vr, cols), tmp(vr, cols), y(vr, cols);
        Col s_col(vr), r_col(vr);
        Row s_row(vr), r_row(vr);
        bind_all(kX, tx, kSq, sq, kTmp, tmp, kY, y, kS, s_col);
        TRESHAPE(s_row, s_col);
        TASSIGN(r_col, kR);
        TASSIGN(r_row, kR);
        Window<float> gx = window(x + r0 * pitch, vr, cols, pitch);
        Window<float> go = window(out + r0 * pitch, vr, cols, pitch);
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
        TLOAD(tx, gx);
        sync(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TMUL(sq, tx, tx);
        pipe_barrier(PIPE_V);
        TROWSUM(s_col, sq, tmp);
        pipe_barrier(PIPE_V);
        TMULS(s_row, s_row, 1.0f / (float)cols);
        pipe_barrier(PIPE_V);
        TADDS(s_row, s_row, 1e-6f);
        pipe_barrier(PIPE_V);
        TRSQRT(r_row, s_row);
        pipe_barrier(PIPE_V);
        TROWEXPANDMUL(sq, tx, r_col);
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
        pipe_barrier(PIPE_V);
        wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
        TCOLEXPANDMUL(y, sq, tg);
        sync(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(go, y);
        set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    }
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    sync(PIPE_MTE3, PIPE_S, EVENT_ID7);
}

TEST(kernels__rmsnorm_is_good_to_float) {
    const int shapes[][2] = {{16, 512}, {37, 512}, {5, 384}, {3, 100}, {1, 1}};
    for (auto shape : shapes) {
        uint64_t seed = 3;
        size_t rows = (size_t)shape[0], cols = (size_t)shape[1];
        face_matrix<float> x(rows, cols), gamma(1, cols, 0), out(rows, cols);
        x.fill(&seed);
        gamma.fill(&seed);
        uint64_t args[] = {arg(x.data()), arg(gamma.data()), arg(out.data()), rows, cols, x.pitch};
        k_rmsnorm(args);
        double worst = 0;
        for (size_t r = 0; r < rows; r++) {
            double sum = 0;
            for (size_t c = 0; c < cols; c++) {
                sum += x.get(r, c) * x.get(r, c);
            }
            double scale = 1 / sqrt(sum / (double)cols + 1e-6);
            for (size_t c = 0; c < cols; c++) {
                double want = x.get(r, c) * scale * gamma.get(0, c);
                worst = fmax(worst, fabs(out.get(r, c) - want) / fabs(want));
            }
        }
        print_message("RMSNorm %zu x %zu: %.2g\n", rows, cols, worst);
        assert_true(worst <= 1.3e-6);
        assert_true(out.is_guarded());
        assert_true(ptoisa_core_finish(&ptoisa_this_core()));
    }
}

// -- matmul ---------------------------------------------------------------------------------------

// B as it lies in memory: [K][N] loads as Nz, [N][K], transposed, as Zn.
template <typename T, int K, int N, bool IsTransposed> struct MatB {
    using Mat = Tile<TileType::Mat, T, K, N, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512>;
    using Global = Window<T>;
    static Global global(T *b, int k, int n, int pitch) {
        return window(b, k, n, pitch);
    }
};

template <typename T, int K, int N> struct MatB<T, K, N, true> {
    using Mat = Tile<TileType::Mat, T, K, N, BLayout::RowMajor, -1, -1, SLayout::ColMajor, 512>;
    using Global = GlobalTensor<T, Shape<1, 1, 1, -1, -1>, Stride<1, 1, 1, 1, -1>, Layout::DN>;
    static Global global(T *b, int k, int n, int pitch) {
        return Global(b, Shape<1, 1, 1, -1, -1>(k, n), Stride<1, 1, 1, 1, -1>(pitch));
    }
};

// args: a, b, c, m, k, n, pitches of a, b, c. One tile of M x K x N; k in one step.
template <typename In, typename Out, int M, int K, int N, bool IsTransposed>
AICORE void k_matmul(__gm__ const uint64_t *args) {
    __gm__ In *a = pointer<In>(args[0]), *b = pointer<In>(args[1]);
    __gm__ Out *c = pointer<Out>(args[2]);
    int m = (int)args[3], k = (int)args[4], n = (int)args[5];
    using B = MatB<In, K, N, IsTransposed>;
    Tile<TileType::Mat, In, M, K, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512> mat_a(m, k);
    typename B::Mat mat_b(k, n);
    TileLeft<In, M, K, -1, -1> left(m, k);
    TileRight<In, K, N, -1, -1> right(k, n);
    TileAcc<float, M, N, -1, -1> acc(m, n);
    TASSIGN(mat_a, 0x0);
    TASSIGN(mat_b, M * K * sizeof(In));
    bind_all(0x0, left, 0x0, right, 0x0, acc);
    Window<In> ga = window(a, m, k, (int)args[6]);
    typename B::Global gb = B::global(b, k, n, (int)args[7]);
    Window<Out> gc = window(c, m, n, (int)args[8]);
    TLOAD(mat_a, ga);
    TLOAD(mat_b, gb);
    sync(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(left, mat_a);
    TMOV(right, mat_b);
    sync(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(acc, left, right);
    sync(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE(gc, acc);
    sync(PIPE_FIX, PIPE_S, EVENT_ID7);
}

// The same, 32 of k in a step, through two halves of L0A and L0B. k is a multiple of 32.
template <typename In, int M, int K, int N>
AICORE void k_matmul_split(__gm__ const uint64_t *args) {
    __gm__ In *a = pointer<In>(args[0]), *b = pointer<In>(args[1]);
    __gm__ float *c = pointer<float>(args[2]);
    int m = (int)args[3], k = (int)args[4], n = (int)args[5];
    constexpr int Step = 32;
    Tile<TileType::Mat, In, M, K, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512> mat_a(m, k);
    Tile<TileType::Mat, In, K, N, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512> mat_b(k, n);
    TileAcc<float, M, N, -1, -1> acc(m, n);
    TASSIGN(mat_a, 0x0);
    TASSIGN(mat_b, M * K * sizeof(In));
    TASSIGN(acc, 0x0);
    Window<In> ga = window(a, m, k, (int)args[6]), gb = window(b, k, n, (int)args[7]);
    Window<float> gc = window(c, m, n, (int)args[8]);
    TLOAD(mat_a, ga);
    TLOAD(mat_b, gb);
    sync(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    set_flag(PIPE_M, PIPE_MTE1, EVENT_ID1);
    for (int k0 = 0; k0 < k; k0 += Step) {
        int slot = k0 / Step % 2;
        event_t id = (event_t)slot;
        TileLeft<In, M, Step, -1, Step> left(m);
        TileRight<In, Step, N, Step, -1> right(n);
        TASSIGN(left, slot * 0x8000);
        TASSIGN(right, slot * 0x8000);
        wait_flag(PIPE_M, PIPE_MTE1, id);
        TEXTRACT(left, mat_a, 0, (uint16_t)k0);
        TEXTRACT(right, mat_b, (uint16_t)k0, 0);
        sync(PIPE_MTE1, PIPE_M, id);
        if (k0 == 0) {
            TMATMUL(acc, left, right);
        } else {
            TMATMUL_ACC(acc, acc, left, right);
        }
        set_flag(PIPE_M, PIPE_MTE1, id);
    }
    wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID1);
    sync(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE(gc, acc);
    sync(PIPE_FIX, PIPE_S, EVENT_ID7);
}

// Runs a kernel on random matrices and returns its largest error, relative above 1.
template <typename In, typename Out>
static double matmul_error(AICORE void (*kernel)(__gm__ const uint64_t *), size_t m, size_t k,
                           size_t n, bool is_transposed) {
    uint64_t seed = 4;
    face_matrix<In> a(m, k), b(is_transposed ? n : k, is_transposed ? k : n);
    face_matrix<Out> c(m, n);
    a.fill(&seed);
    b.fill(&seed);
    uint64_t args[] = {arg(a.data()), arg(b.data()), arg(c.data()), m, k, n,
                       a.pitch,       b.pitch,       c.pitch};
    kernel(args);
    double worst = 0;
    TEST_GRID(size_t, i, m, j, n) {
        double want = 0;
        for (size_t x = 0; x < k; x++) {
            want += a.get(i, x) * (is_transposed ? b.get(j, x) : b.get(x, j));
        }
        worst = fmax(worst, fabs(c.get(i, j) - want) / fmax(1, fabs(want)));
    }
    assert_true(c.is_guarded());
    assert_true(ptoisa_core_finish(&ptoisa_this_core()));
    print_message("matmul %zu x %zu x %zu: %.2g\n", m, k, n, worst);
    return worst;
}

// A kernel of these sides on so many rows, inner elements and columns; f16 rounds by up to 2^-11.
template <typename In, typename Out, int M, int K, int N, bool IsTransposed>
static void matmul_is_good(size_t m, size_t k, size_t n) {
    constexpr double bound = std::is_same_v<Out, half> ? 5e-4 : 6.3e-6;
    assert_true((matmul_error<In, Out>(k_matmul<In, Out, M, K, N, IsTransposed>, m, k, n,
                                       IsTransposed)) <= bound);
}

TEST(kernels__matmul_is_good_to_its_output) {
    matmul_is_good<half, float, 64, 128, 64, false>(64, 128, 64);
    matmul_is_good<float, float, 64, 128, 64, false>(64, 128, 64);
    matmul_is_good<half, half, 64, 128, 64, false>(64, 128, 64);
    matmul_is_good<half, float, 48, 112, 32, false>(33, 100, 20);
    matmul_is_good<float, float, 48, 112, 32, false>(33, 100, 20);
    matmul_is_good<half, half, 48, 112, 32, false>(33, 100, 20);
    matmul_is_good<bfloat16_t, float, 64, 128, 64, false>(64, 128, 64);
}

TEST(kernels__matmul_takes_a_transposed_b) {
    matmul_is_good<half, float, 64, 128, 64, true>(64, 128, 64);
    matmul_is_good<float, float, 64, 128, 64, true>(64, 128, 64);
    matmul_is_good<half, float, 48, 112, 32, true>(33, 100, 20);
}

TEST(kernels__matmul_sums_over_parts_of_k) {
    const auto of_half = k_matmul_split<half, 64, 128, 64>;
    const auto of_float = k_matmul_split<float, 64, 128, 64>;
    assert_true((matmul_error<half, float>(of_half, 64, 128, 64, false)) <= 6.3e-6);
    assert_true((matmul_error<float, float>(of_float, 50, 96, 64, false)) <= 6.3e-6);
}

// -- decode attention -----------------------------------------------------------------------------

// One query over a chunk of keys and values; args: q (scaled), k, v, state, out, length, is_last.
// state is m, l and acc[128] in blocks of 32 bytes: 8, 8 and 128 floats.
extern "C" AICORE void k_attention(__gm__ const uint64_t *args) {
    constexpr int D = 128, N = 64;
    __gm__ float *q = pointer<float>(args[0]), *k = pointer<float>(args[1]);
    __gm__ float *v = pointer<float>(args[2]), *state = pointer<float>(args[3]);
    __gm__ float *out = pointer<float>(args[4]);
    int length = (int)args[5], is_last = (int)args[6];
    constexpr uint32_t kKv = 0, kProd = N * D * 4, kTmp = 2 * kProd, kQ = 3 * kProd;
    constexpr uint32_t kAcc = kQ + D * 4, kPv = kAcc + D * 4, kScore = kPv + D * 4;
    constexpr uint32_t kP = kScore + N * 4, kTmpRow = kP + N * 4, kM = kTmpRow + N * 4;
    constexpr uint32_t kL = kM + 32, kMb = kL + 32, kMn = kMb + 32, kAl = kMn + 32, kLb = kAl + 32;
    static_assert(kLb + 32 <= 184 * 1024, "UB");
    using Block = Tile<TileType::Vec, float, N, D, BLayout::RowMajor, -1, D>;
    using Line = Tile<TileType::Vec, float, 1, D>;
    using Col = Tile<TileType::Vec, float, N, 1, BLayout::ColMajor, -1, 1>;
    using Row = Tile<TileType::Vec, float, 1, N, BLayout::RowMajor, 1, -1>;
    using One = Tile<TileType::Vec, float, 1, 8, BLayout::RowMajor, 1, 1>;
    using OneCol = Tile<TileType::Vec, float, 8, 1, BLayout::ColMajor, 1, 1>;
    using Cell = GlobalTensor<float, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>>;
    using Vector = GlobalTensor<float, Shape<1, 1, 1, 1, D>, Stride<1, 1, 1, D, 1>>;
    Line tq, acc, pv;
    One m, l, mb, mn, al, lb;
    OneCol mn_col, al_col, l_col;
    bind_all(kQ, tq, kAcc, acc, kPv, pv, kM, m, kL, l, kMb, mb, kMn, mn, kAl, al, kLb, lb, kMn,
             mn_col, kAl, al_col, kL, l_col);
    Vector gq(q), gacc(state + 16), gout(out);
    Cell gm(state), gl(state + 8);
    TLOAD(tq, gq);
    TLOAD(m, gm);
    TLOAD(l, gl);
    TLOAD(acc, gacc);
    sync(PIPE_MTE2, PIPE_V, EVENT_ID0);
    for (int s = 0; s < length; s += N) {
        int vr = less(N, length - s);
        Block kv(vr), prod(vr), tmp(vr);
        Col score_col(vr), p_col(vr);
        Row score_row(vr), p_row(vr), tmp_row(vr);
        bind_all(kKv, kv, kProd, prod, kTmp, tmp, kScore, score_col, kScore, score_row, kP, p_col,
                 kP, p_row, kTmpRow, tmp_row);
        Window<float> gk = window(k + s * D, vr, D, D), gv = window(v + s * D, vr, D, D);
        sync(PIPE_V, PIPE_MTE2, EVENT_ID0);
        TLOAD(kv, gk);
        sync(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TCOLEXPANDMUL(prod, kv, tq);
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
        pipe_barrier(PIPE_V);
        TROWSUM(score_col, prod, tmp);
        pipe_barrier(PIPE_V);
        TROWMAX(mb, score_row, tmp_row);
        pipe_barrier(PIPE_V);
        TMAX(mn, m, mb);
        pipe_barrier(PIPE_V);
        TSUB(al, m, mn);
        pipe_barrier(PIPE_V);
        TEXP(al, al);
        TROWEXPANDSUB(p_row, score_row, mn_col);
        pipe_barrier(PIPE_V);
        TEXP(p_row, p_row);
        pipe_barrier(PIPE_V);
        TROWSUM(lb, p_row, tmp_row);
        TMUL(l, l, al);
        pipe_barrier(PIPE_V);
        TADD(l, l, lb);
        TLOAD(kv, gv);
        sync(PIPE_MTE2, PIPE_V, EVENT_ID1);
        TROWEXPANDMUL(prod, kv, p_col);
        pipe_barrier(PIPE_V);
        TCOLSUM(pv, prod, tmp, false);
        TROWEXPANDMUL(acc, acc, al_col);
        pipe_barrier(PIPE_V);
        TADD(acc, acc, pv);
        TMOV(m, mn);
        pipe_barrier(PIPE_V);
    }
    if (is_last) {
        TROWEXPANDDIV(pv, acc, l_col);
        sync(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(gout, pv);
    } else {
        sync(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(gm, m);
        TSTORE(gl, l);
        TSTORE(gacc, acc);
    }
    sync(PIPE_MTE3, PIPE_S, EVENT_ID7);
}

// The error of attention over `length` keys in chunks of `chunk`.
static double attention_error(size_t length, size_t chunk) {
    const size_t d = 128;
    uint64_t seed = 5;
    face_matrix<float> q(1, d, 0), k(length, d, 0), v(length, d, 0), out(1, d), state(1, 144);
    q.fill(&seed, 1 / sqrt((double)d));
    k.fill(&seed);
    v.fill(&seed);
    state.at(0, 0) = -3e38f;
    state.at(0, 8) = 0;
    memset(state.data() + 16, 0, d * sizeof(float));
    for (size_t s = 0; s < length; s += chunk) {
        size_t now = length - s < chunk ? length - s : chunk;
        uint64_t args[] = {arg(q.data()),
                           arg(k.data() + s * d),
                           arg(v.data() + s * d),
                           arg(state.data()),
                           arg(out.data()),
                           now,
                           (uint64_t)(s + now == length)};
        k_attention(args);
    }
    std::vector<double> p(length), sum(d);
    double total = 0;
    for (size_t s = 0; s < length; s++) {
        double score = 0;
        for (size_t c = 0; c < d; c++) {
            score += q.get(0, c) * k.get(s, c);
        }
        total += p[s] = exp(score);
        for (size_t c = 0; c < d; c++) {
            sum[c] += p[s] * v.get(s, c);
        }
    }
    double worst = 0;
    for (size_t c = 0; c < d; c++) {
        worst = fmax(worst, fabs(out.get(0, c) - sum[c] / total));
    }
    assert_true(out.is_guarded());
    assert_true(state.is_guarded());
    assert_true(ptoisa_core_finish(&ptoisa_this_core()));
    print_message("attention over %zu in chunks of %zu: %.2g\n", length, chunk, worst);
    return worst;
}

TEST(kernels__attention_is_good_to_float) {
    const size_t lengths[] = {1, 64, 200, 257};
    for (size_t length : lengths) {
        assert_true(attention_error(length, length) <= 1.6e-7);
    }
    assert_true(attention_error(257, 100) <= 1.6e-7);
    assert_true(attention_error(200, 64) <= 1.6e-7);
}

// -- top-k ----------------------------------------------------------------------------------------

// Sorts 256 scores: args: scores, sorted values, their indices.
extern "C" AICORE void k_topk(__gm__ const uint64_t *args) {
    constexpr int N = 256;
    using Values = Tile<TileType::Vec, float, 1, N>;
    using Indices = Tile<TileType::Vec, uint32_t, 1, N>;
    using Pairs = Tile<TileType::Vec, float, 1, 2 * N>;
    using PairBits = Tile<TileType::Vec, uint32_t, 1, 2 * N>;
    using HalfPairs = Tile<TileType::Vec, float, 1, N>;
    using Vector = GlobalTensor<float, Shape<1, 1, 1, 1, N>, Stride<1, 1, 1, N, 1>>;
    using IndexVector = GlobalTensor<uint32_t, Shape<1, 1, 1, 1, N>, Stride<1, 1, 1, N, 1>>;
    Values scores, values;
    Indices indices, order;
    Pairs runs, longer, sorted, tmp;
    HalfPairs low, high;
    PairBits bits;
    bind_all(0x0, scores, 0x400, indices, 0x800, runs, 0x1000, longer, 0x1000, low, 0x1400, high,
             0x1800, sorted, 0x1800, bits, 0x2000, tmp, 0x2800, values, 0x2c00, order);
    Vector g_scores(pointer<float>(args[0])), g_values(pointer<float>(args[1]));
    IndexVector g_order(pointer<uint32_t>(args[2]));
    TLOAD(scores, g_scores);
    TCI<Indices, uint32_t, 0>(indices, 0);
    sync(PIPE_S, PIPE_V, EVENT_ID0);
    sync(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TSORT32(runs, scores, indices);
    pipe_barrier(PIPE_V);
    TMRGSORT(longer, runs, 64);
    pipe_barrier(PIPE_V);
    MrgSortExecutedNumList executed;
    TMRGSORT<Pairs, Pairs, HalfPairs, HalfPairs, false>(sorted, executed, tmp, low, high);
    pipe_barrier(PIPE_V);
    TGATHER<Values, Pairs, MaskPattern::P0101>(values, sorted);
    TGATHER<Indices, PairBits, MaskPattern::P1010>(order, bits);
    sync(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(g_values, values);
    TSTORE(g_order, order);
    sync(PIPE_MTE3, PIPE_S, EVENT_ID7);
}

TEST(kernels__top_k_sorts_stably) {
    uint64_t seed = 6;
    face_matrix<float> scores(1, 256), values(1, 256);
    face_matrix<uint32_t> order(1, 256);
    for (size_t i = 0; i < 256; i++) {
        scores.at(0, i) = (float)(face_random(&seed) % 100) - 50;  // with ties
    }
    uint64_t args[] = {arg(scores.data()), arg(values.data()), arg(order.data())};
    k_topk(args);
    bool is_seen[256] = {false};
    for (size_t i = 0; i < 256; i++) {
        uint32_t at = order.at(0, i);
        assert_true(at < 256 && !is_seen[at]);
        is_seen[at] = true;
        assert_true(values.at(0, i) == scores.at(0, at));
        if (i > 0) {
            assert_true(values.at(0, i - 1) > values.at(0, i) ||
                        (values.at(0, i - 1) == values.at(0, i) && order.at(0, i - 1) < at));
        }
    }
    assert_true(values.is_guarded());
    assert_true(order.is_guarded());
    assert_true(ptoisa_core_finish(&ptoisa_this_core()));
}

// -- clocks ---------------------------------------------------------------------------------------

// In the A2/A3 model the two slots of the add overlap: it takes less time than its instructions.
TEST(kernels__flags_let_pipes_overlap) {
    uint64_t seed = 7;
    face_matrix<float> a(256, 256), out(256, 256);
    a.fill(&seed);
    uint64_t args[] = {arg(a.data()), arg(a.data()), arg(out.data()), 256, 256, a.pitch};
    ptoisa_core &core = ptoisa_this_core();
    core.model = PTOISA_MODEL_A2A3;
    ptoisa_core_reset(&core);
    k_add(args);
    uint64_t overlapped = ptoisa_cycles(&core), sum = core.sum;
    core.model = PTOISA_MODEL_UNIT;
    ptoisa_core_reset(&core);
    k_add(args);
    print_message("add of 256 x 256: %llu of %llu cycles; %llu in the unit model\n",
                  (unsigned long long)overlapped, (unsigned long long)sum,
                  (unsigned long long)ptoisa_cycles(&core));
    assert_true(overlapped < sum);
    assert_true(ptoisa_cycles(&core) == 256 * 256 * 4);  // two loads, an add, a store
    ptoisa_core_reset(&core);
}
