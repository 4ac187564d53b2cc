// The vocabulary of kernels: PTO-ISA's instructions, and a few additions.
//
// A kernel compiles unchanged in three ways:
//
//      default        shim/ptoisa_shim.h: any C++17 compiler; counts cycles, checks flags
//      WSP_PTO_ISA    PTO-ISA's CPU simulator, C++20: neither counts nor waits
//      WSP_ASCEND     PTO-ISA on the device, with CANN's compiler
//
// The first has run, in the tests of the generator. Code for the other two follows PTO-ISA's public
// headers and documents, and is marked so.
//
// Valid sizes may be 0 where a task is at the edge of a tensor. The shim's instructions accept that
// (and count it); PTO-ISA's do not: there an instruction without elements is left out (wsp::any).

#ifndef WSP_KERNEL_H
#define WSP_KERNEL_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#ifndef WSP_ASCEND
#include <pthread.h>
#endif

// A program is for one machine, A2/A3 or A5, which its kernels and dispatch.cpp name before they
// include this file: WSP_TARGET_A5.
#if defined(WSP_ASCEND) || defined(WSP_PTO_ISA)
#include <pto/pto-inst.hpp>
#define WSP_IS_SHIM 0
#else
#ifdef WSP_TARGET_A5
#define PTOISA_TARGET_A5
#endif
#include "ptoisa_shim.h"
#define WSP_IS_SHIM 1
#endif

// The core that this is compiled for. A device has cube and vector cores; the shim and the
// simulator have one core that is both.
#ifdef __DAV_CUBE__
#define WSP_HAS_CUBE 1
#else
#define WSP_HAS_CUBE 0
#endif
#ifdef __DAV_VEC__
#define WSP_HAS_VECTOR 1
#else
#define WSP_HAS_VECTOR 0
#endif

#ifdef WSP_ASCEND
#define PTOWSP_AICORE AICORE
#define PTOWSP_GM     __gm__
#endif

#include "wsp_abi.h"
#ifndef WSP_ASCEND
#include "wsp_list.h"
#endif

// In kernels of bfloat16_t. The simulator has that type from a compiler with C++23's, or else one
// that is something else.
#if defined(WSP_PTO_ISA) && !defined(__STDCPP_BFLOAT16_T__)
#define WSP_NEEDS_BF16()                                                                           \
    static_assert(sizeof(wsp_task) == 0,                                                           \
                  "this kernel needs bfloat16_t: g++ 13 or newer with STD=c++23")
#else
#define WSP_NEEDS_BF16() static_assert(true, "")
#endif

// Between two dependent vector instructions. A5 orders them itself [read].
#if defined(WSP_ASCEND) && defined(WSP_TARGET_A5)
#define WSP_BARRIER_V()
#else
#define WSP_BARRIER_V() pipe_barrier(PIPE_V)
#endif

// An instruction that the unit model does not count: others count it as a part of another one.
#if WSP_IS_SHIM
#define WSP_UNCOUNTED(...)                                                                         \
    do {                                                                                           \
        wsp::Uncounted uncounted;                                                                  \
        __VA_ARGS__;                                                                               \
    } while (0)
#else
#define WSP_UNCOUNTED(...) __VA_ARGS__
#endif

// A2/A3 quantises with scratch, and scales the source in place, which nothing reads afterwards.
// PTO-ISA's simulator has no such form.
#if defined(WSP_PTO_ISA) && defined(__CPU_SIM)
#define WSP_QUANT(dst, src, scale, tmp) TQUANT<QuantType::INT8_SYM>(dst, src, scale)
#else
#define WSP_QUANT(dst, src, scale, tmp) TQUANT<QuantType::INT8_SYM>(dst, src, scale, tmp)
#endif

// A kernel ends before it touches any data, if a task's sizes do not match. `number` is the failed
// check: wsp_core_fault_text.
#define WSP_CHECK(task, number, condition)                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (task)->status = PTOWSP_INVALID_PARAMS;                                                \
            (task)->fault = (number);                                                              \
            return;                                                                                \
        }                                                                                          \
    } while (0)

namespace wsp {

constexpr float INF = __builtin_inff();
constexpr float NOT_A_NUMBER = __builtin_nanf("");

// `fault` of a task whose kernel the shim rejects, for instance for a flag without a wait.
constexpr uint32_t FAULT_OF_SHIM = UINT32_MAX;

// -- arguments of a task --------------------------------------------------------------------------

// The valid rows and columns of a tile parameter.
AICORE inline int rows(__gm__ const wsp_task *task, uint32_t tile) {
    return static_cast<int>(task->args[task->axis_count + 2 * tile]);
}

AICORE inline int cols(__gm__ const wsp_task *task, uint32_t tile) {
    return static_cast<int>(task->args[task->axis_count + 2 * tile + 1]);
}

// The rows left of `whole` from `first` on, at most `most`.
AICORE inline int part(int whole, int first, int most) {
    int left = whole > first ? whole - first : 0;
    return left < most ? left : most;
}

AICORE inline int least(int a, int b) {
    return a < b ? a : b;
}

// (mul * whole + add) >> shift, between 0 and most.
AICORE inline int extent(int whole, int mul, int add, int shift, int most) {
    int64_t size = (static_cast<int64_t>(mul) * whole + add) >> shift;
    return size < 0 ? 0 : size > most ? most : static_cast<int>(size);
}

AICORE inline uint64_t scalar_bits(__gm__ const wsp_task *task, uint32_t i) {
    return task->args[task->axis_count + 2 * task->tile_count + i];
}

AICORE inline int64_t scalar_i64(__gm__ const wsp_task *task, uint32_t i) {
    return static_cast<int64_t>(scalar_bits(task, i));
}

AICORE inline uint64_t scalar_u64(__gm__ const wsp_task *task, uint32_t i) {
    return scalar_bits(task, i);
}

AICORE inline float scalar_f32(__gm__ const wsp_task *task, uint32_t i) {
    uint32_t bits = static_cast<uint32_t>(scalar_bits(task, i));
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

// The nearest float of a double, in integers: ties to even, beyond the range infinite.
AICORE inline uint32_t f32_bits_of_f64(uint64_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits >> 63) << 31;
    const int32_t exponent = static_cast<int32_t>(bits >> 52 & 0x7ff) - 1023 + 127;
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 0x7ff - 1023 + 127) {
        return sign | 0x7f800000u | (mantissa ? 0x400000u : 0u);
    } else if (exponent < -24) {
        return sign;
    }
    uint32_t drop = 29;
    uint64_t whole = static_cast<uint64_t>(exponent) << 52;
    if (exponent <= 0) {  // below the normal range: fewer bits, and none in front
        drop += static_cast<uint32_t>(1 - exponent);
        mantissa |= UINT64_C(1) << 52;
        whole = 0;
    }
    const uint64_t value = whole + mantissa, half = UINT64_C(1) << (drop - 1);
    const uint64_t kept = (value + half - 1 + (value >> drop & 1)) >> drop;
    return sign |
           (exponent >= 255 || kept >= 0x7f800000u ? 0x7f800000u : static_cast<uint32_t>(kept));
}

// A core of a device has no double: there it is the nearest float, by its bits.
#ifdef WSP_ASCEND
AICORE inline float scalar_f64(__gm__ const wsp_task *task, uint32_t i) {
    const uint32_t bits = f32_bits_of_f64(scalar_bits(task, i));
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
#else
inline double scalar_f64(const wsp_task *task, uint32_t i) {
    uint64_t bits = scalar_bits(task, i);
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
#endif

// -- loops ----------------------------------------------------------------------------------------

// The bounds of a loop, in a task: at most 2^30, in order, or it does not run and is not good.
struct Loop {
    int64_t begin, step;
    int end, count;
    bool is_good;
    AICORE int at(int turn) const {
        return static_cast<int>(begin + turn * step);
    }
};

constexpr int64_t LOOP_END_MAX = INT64_C(1) << 30;

AICORE inline Loop loop(int64_t begin, int64_t end, int64_t step) {
    bool is_good = begin >= 0 && begin <= end && end <= LOOP_END_MAX;
    return Loop{begin, step, is_good ? static_cast<int>(end) : 0,
                is_good ? static_cast<int>((end - begin + step - 1) / step) : 0, is_good};
}

// An unsigned scalar as a bound.
AICORE inline int64_t bound(uint64_t bits) {
    return bits > static_cast<uint64_t>(LOOP_END_MAX) ? LOOP_END_MAX + 1
                                                      : static_cast<int64_t>(bits);
}

// The event of a flag that takes two in turn, and where a tile is that has two places.
AICORE inline event_t event(int first, int turn) {
    return static_cast<event_t>(first + turn % 2);
}

AICORE inline uint32_t place(uint32_t first, uint32_t step, int turn) {
    return turn % 2 ? first + step : first;
}

// A scalar as an element of a tile: floats to nearest, integers towards zero, which then wrap
// (wrapped), or end at their type's limits (saturated, and compared: for TCMPS and TSELS).
#if WSP_IS_SHIM

template <typename T> inline T of_bits(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);  // the first bytes are the low ones
    return value;
}

template <typename T, typename N> inline T wrapped(N x) {
    return of_bits<T>(ptoisa_scalar_bits(pto::shim::dtype_of<T>(), static_cast<double>(x)));
}

template <typename T, typename N> inline T saturated(N x) {
    return of_bits<T>(ptoisa_bits_of(static_cast<double>(x), pto::shim::dtype_of<T>()));
}

template <typename T, typename N> inline T compared(N x) {
    ptoisa_dtype dtype = pto::shim::dtype_of<T>();
    return of_bits<T>(ptoisa_compared_of(dtype, static_cast<double>(x)).bits);
}

#else

template <typename T, typename N> AICORE inline T wrapped(N x) {
    return static_cast<T>(x);
}

template <typename T, typename N> AICORE inline T saturated(N x) {
    return static_cast<T>(x);
}

template <typename T, typename N> AICORE inline T compared(N x) {
    return static_cast<T>(x);
}

#endif

// -- windows of global memory ---------------------------------------------------------------------

// A part of a tile parameter. On the shim columns may be any stride apart, and in PTO-ISA's CPU
// simulator. Its row-major views (ND) want 1 on a device, and its column views (DN) want a row's one
// element to follow the other [read]: is_dense is whether a task has that. A shim that is compiled
// with WSP_HAS_STRIDES as 0 moves data as a device does.
#ifndef WSP_HAS_STRIDES
#if WSP_IS_SHIM || defined(__CPU_SIM)
#define WSP_HAS_STRIDES 1
#else
#define WSP_HAS_STRIDES 0
#endif
#endif

#if WSP_HAS_STRIDES
template <typename T>
using Rows = pto::GlobalTensor<T, pto::Shape<1, 1, 1, -1, -1>, pto::Stride<1, 1, 1, -1, -1>,
                               pto::Layout::ND>;
template <typename T>
using Columns = pto::GlobalTensor<T, pto::Shape<1, 1, 1, -1, -1>, pto::Stride<1, 1, 1, -1, -1>,
                                  pto::Layout::DN>;
#else
template <typename T>
using Rows =
    pto::GlobalTensor<T, pto::Shape<1, 1, 1, -1, -1>, pto::Stride<1, 1, 1, -1, 1>, pto::Layout::ND>;
template <typename T>
using Columns =
    pto::GlobalTensor<T, pto::Shape<1, 1, 1, -1, -1>, pto::Stride<1, 1, 1, 1, -1>, pto::Layout::DN>;
#endif

// rows x cols elements from (row, col) of tile parameter `tile` on.
template <typename T>
AICORE inline __gm__ T *element(__gm__ const wsp_tile *tile, int64_t row, int64_t col) {
    __gm__ T *data = reinterpret_cast<__gm__ T *>(static_cast<uintptr_t>(tile->data));
    return data + (row * tile->row_stride + col * tile->col_stride);
}

template <typename T>
AICORE inline Rows<T> window(__gm__ const wsp_task *task, uint32_t i, int64_t row, int64_t col,
                             int64_t rows, int64_t cols) {
    __gm__ const wsp_tile *tile = &task->tiles[i];
    using Window = Rows<T>;
#if WSP_HAS_STRIDES
    return Window(element<T>(tile, row, col), typename Window::Shape(rows, cols),
                  typename Window::Stride(tile->row_stride, tile->col_stride));
#else
    return Window(element<T>(tile, row, col), pto::Shape<1, 1, 1, -1, -1>(rows, cols),
                  pto::Stride<1, 1, 1, -1, 1>(tile->row_stride));
#endif
}

// The same for tiles that are stored column by column.
template <typename T>
AICORE inline Columns<T> columns(__gm__ const wsp_task *task, uint32_t i, int64_t row, int64_t col,
                                 int64_t rows, int64_t cols) {
    __gm__ const wsp_tile *tile = &task->tiles[i];
    using Window = Columns<T>;
#if WSP_HAS_STRIDES
    return Window(element<T>(tile, row, col), typename Window::Shape(rows, cols),
                  typename Window::Stride(tile->row_stride, tile->col_stride));
#else
    return Window(element<T>(tile, row, col), pto::Shape<1, 1, 1, -1, -1>(rows, cols),
                  pto::Stride<1, 1, 1, 1, -1>(tile->col_stride));
#endif
}

// Can PTO-ISA move a parameter's tile? `is_column`: the target is stored by columns.
AICORE inline bool is_dense(__gm__ const wsp_task *task, uint32_t i, bool is_column) {
#if WSP_HAS_STRIDES
    (void)task, (void)i, (void)is_column;
    return true;
#else
    __gm__ const wsp_tile *tile = &task->tiles[i];
    return is_column ? tile->row_stride == 1 || rows(task, i) == 1
                     : tile->col_stride == 1 || cols(task, i) == 1;
#endif
}

template <typename... Tiles>
AICORE inline bool are_dense(__gm__ const wsp_task *task, bool is_column, Tiles... tiles) {
    return (is_dense(task, static_cast<uint32_t>(tiles), is_column) && ...);
}

// Ends a task whose tiles PTO-ISA cannot move with UNSUPPORTED.
#define WSP_REQUIRE(task, is_column, ...)                                                          \
    do {                                                                                           \
        if (!wsp::are_dense((task), (is_column), __VA_ARGS__)) {                                   \
            (task)->status = PTOWSP_UNSUPPORTED;                                                   \
            return;                                                                                \
        }                                                                                          \
    } while (0)
#define WSP_REQUIRE_ROWS(task, ...)    WSP_REQUIRE(task, false, __VA_ARGS__)
#define WSP_REQUIRE_COLUMNS(task, ...) WSP_REQUIRE(task, true, __VA_ARGS__)

// Right factors may be stored by rows or by columns.
template <typename... Tiles>
AICORE inline bool are_either(__gm__ const wsp_task *task, Tiles... tiles) {
    return ((is_dense(task, static_cast<uint32_t>(tiles), false) ||
             is_dense(task, static_cast<uint32_t>(tiles), true)) &&
            ...);
}

#define WSP_REQUIRE_EITHER(task, ...)                                                              \
    do {                                                                                           \
        if (!wsp::are_either((task), __VA_ARGS__)) {                                               \
            (task)->status = PTOWSP_UNSUPPORTED;                                                   \
            return;                                                                                \
        }                                                                                          \
    } while (0)

// -- right factors --------------------------------------------------------------------------------

// A right factor in L1 whose parameter may be stored by columns, as the keys of attention: then it is
// loaded through a column view into boxes of the other order, in the same bytes, which go to L0B as
// well. `at` is the tile's address.
#if WSP_HAS_STRIDES

template <typename T, typename G>
AICORE inline void load_right(__gm__ const wsp_task *, uint32_t, T &tile, uint32_t, G &gm) {
    TLOAD(tile, gm);
}

template <typename D, typename T>
AICORE inline void move_right(__gm__ const wsp_task *, uint32_t, D &dst, T &tile, uint32_t) {
    TMOV(dst, tile);
}

template <typename D, typename T>
AICORE inline void extract_right(__gm__ const wsp_task *, uint32_t, D &dst, T &tile, uint32_t,
                                 uint16_t row, uint16_t col) {
    TEXTRACT(dst, tile, row, col);
}

#else

template <typename T>
using ByColumns = pto::Tile<pto::TileType::Mat, typename T::DType, T::Rows, T::Cols,
                            pto::BLayout::RowMajor, -1, -1, pto::SLayout::ColMajor, 512>;

template <typename T, typename G>
AICORE inline void load_right(__gm__ const wsp_task *task, uint32_t i, T &tile, uint32_t at,
                              G &gm) {
    if (is_dense(task, i, false)) {
        TLOAD(tile, gm);
        return;
    }
    using Window = Columns<typename T::DType>;
    Window window(gm.data(), pto::Shape<1, 1, 1, -1, -1>(gm.GetShape(3), gm.GetShape(4)),
                  pto::Stride<1, 1, 1, 1, -1>(task->tiles[i].col_stride));
    ByColumns<T> turned(tile.GetValidRow(), tile.GetValidCol());
    TASSIGN(turned, at);
    TLOAD(turned, window);
}

template <typename D, typename T>
AICORE inline void move_right(__gm__ const wsp_task *task, uint32_t i, D &dst, T &tile,
                              uint32_t at) {
    if (is_dense(task, i, false)) {
        TMOV(dst, tile);
        return;
    }
    ByColumns<T> turned(tile.GetValidRow(), tile.GetValidCol());
    TASSIGN(turned, at);
    TMOV(dst, turned);
}

template <typename D, typename T>
AICORE inline void extract_right(__gm__ const wsp_task *task, uint32_t i, D &dst, T &tile,
                                 uint32_t at, uint16_t row, uint16_t col) {
    if (is_dense(task, i, false)) {
        TEXTRACT(dst, tile, row, col);
        return;
    }
    ByColumns<T> turned(tile.GetValidRow(), tile.GetValidCol());
    TASSIGN(turned, at);
    TEXTRACT(dst, turned, row, col);
}

#endif

// -- columns of wide matrices ---------------------------------------------------------------------

// A column of elements that do not lie together: no column view is one. It is a row view of one
// column, into rows of 32 bytes of which the first element counts; a maximum over one element takes
// it from there. `at` is the column's address, `scratch` that of its rows, of 32 bytes each, twice.
#if WSP_HAS_STRIDES

template <typename T, typename G>
AICORE inline void load_column(__gm__ const wsp_task *, uint32_t, T &tile, uint32_t, G &gm,
                               uint32_t) {
    TLOAD(tile, gm);
}

template <pto::AtomicType Atomic, typename T, typename G>
AICORE inline void store_column(__gm__ const wsp_task *, uint32_t, T &tile, G &gm, uint32_t) {
    pto::TSTORE<T, G, Atomic>(gm, tile);
}

#else

template <int Size> struct Bits;
template <> struct Bits<2> { using Type = int16_t; };
template <> struct Bits<4> { using Type = int32_t; };

template <typename T, int Rows>
using OnePerRow =
    pto::Tile<pto::TileType::Vec, T, Rows, 32 / sizeof(T), pto::BLayout::RowMajor, -1, 1>;

template <typename T, typename G>
AICORE inline Rows<T> one_column(__gm__ const wsp_task *task, uint32_t i, G &gm) {
    return Rows<T>(reinterpret_cast<__gm__ T *>(gm.data()),
                   pto::Shape<1, 1, 1, -1, -1>(gm.GetShape(3), 1),
                   pto::Stride<1, 1, 1, -1, 1>(task->tiles[i].row_stride));
}

template <typename T, typename G>
AICORE inline void load_column(__gm__ const wsp_task *task, uint32_t i, T &tile, uint32_t at, G &gm,
                               uint32_t scratch) {
    if (is_dense(task, i, true)) {
        TLOAD(tile, gm);
        return;
    }
    using I = typename Bits<sizeof(typename T::DType)>::Type;
    OnePerRow<I, T::Rows> rows(tile.GetValidRow()), tmp(tile.GetValidRow());
    pto::Tile<pto::TileType::Vec, I, T::Rows, 1, pto::BLayout::ColMajor, -1, 1> column(
        tile.GetValidRow());
    TASSIGN(rows, scratch);
    TASSIGN(tmp, scratch + 32u * T::Rows);
    TASSIGN(column, at);
    auto window = one_column<I>(task, i, gm);
    pipe_barrier(PIPE_ALL);
    TLOAD(rows, window);
    pipe_barrier(PIPE_ALL);
    TROWMAX(column, rows, tmp);
    pipe_barrier(PIPE_ALL);
}

template <pto::AtomicType Atomic, typename T, typename G>
AICORE inline void store_column(__gm__ const wsp_task *task, uint32_t i, T &tile, G &gm,
                                uint32_t scratch) {
    if (is_dense(task, i, true)) {
        pto::TSTORE<T, G, Atomic>(gm, tile);
        return;
    }
    using E = typename T::DType;
    OnePerRow<E, T::Rows> rows(tile.GetValidRow());
    TASSIGN(rows, scratch);
    auto window = one_column<E>(task, i, gm);
    pipe_barrier(PIPE_ALL);
    TROWEXPAND(rows, tile);
    pipe_barrier(PIPE_ALL);
    pto::TSTORE<decltype(rows), decltype(window), Atomic>(window, rows);
    pipe_barrier(PIPE_ALL);
}

#endif

// -- instructions without elements ----------------------------------------------------------------

// Do all of these tiles have valid elements? Always true on the shim, which accepts empty tiles.
template <typename... Tiles> AICORE inline bool any(Tiles &...tiles) {
#if WSP_IS_SHIM
    ((void)tiles, ...);
    return true;
#else
    return ((tiles.GetValidRow() > 0 && tiles.GetValidCol() > 0) && ...);
#endif
}

// Does the product have elements, and a sum to form?
template <typename C, typename A> AICORE inline bool any_product(C &c, A &a) {
    return c.GetValidRow() > 0 && c.GetValidCol() > 0 && a.GetValidCol() > 0;
}

// c of a product with an empty sum: zeros, or the bias in every row. PTO-ISA wants a sum of one
// element at least: here it is one of zeros, a box of each factor, which come from `zeros` in L1.
// `left` and `right` are where the factors are in L0A and L0B. The shim fills c, which costs nothing.
#if WSP_IS_SHIM && WSP_HAS_STRIDES

template <typename L, typename R, typename C>
inline void no_product(C &c, uint32_t, uint32_t, uint32_t) {
    ptoisa_tile tile = pto::shim::view(c);
    std::memset(tile.data, 0, static_cast<size_t>(ptoisa_tile_bytes(&tile)));
}

template <typename L, typename R, typename C, typename B>
inline void no_product(C &c, uint32_t left, uint32_t right, uint32_t zeros, B &bias) {
    no_product<L, R>(c, left, right, zeros);
    for (int row = 0; row < c.GetValidRow(); row++) {
        for (int col = 0; col < c.GetValidCol(); col++) {
            c.SetElement(row, col, bias.GetElement(0, col));
        }
    }
}

#else

template <typename L, typename R, typename C, typename... B>
AICORE inline void no_product(C &c, uint32_t left, uint32_t right, uint32_t zeros, B &...bias) {
    if (c.GetValidRow() == 0 || c.GetValidCol() == 0) {
        return;
    }
    using T = typename L::DType;
    constexpr int K = sizeof(T) == 1 ? 32 : 16;
    pto::Tile<pto::TileType::Mat, T, L::Rows, K, pto::BLayout::ColMajor, -1, K,
              pto::SLayout::RowMajor, 512>
        rows(c.GetValidRow());
    pto::Tile<pto::TileType::Mat, T, K, R::Cols, pto::BLayout::ColMajor, K, -1,
              pto::SLayout::RowMajor, 512>
        cols(c.GetValidCol());
    pto::TileLeft<T, L::Rows, K, -1, K> a(c.GetValidRow());
    pto::TileRight<T, K, R::Cols, K, -1> b(c.GetValidCol());
    TASSIGN(rows, zeros);
    TASSIGN(cols, zeros);
    TASSIGN(a, left);
    TASSIGN(b, right);
    pipe_barrier(PIPE_ALL);
    TEXPANDS(rows, static_cast<T>(0));
    pipe_barrier(PIPE_ALL);
    TMOV(a, rows);
    pipe_barrier(PIPE_ALL);
    TEXPANDS(cols, static_cast<T>(0));
    pipe_barrier(PIPE_ALL);
    TMOV(b, cols);
    pipe_barrier(PIPE_ALL);
    if constexpr (sizeof...(bias) > 0) {
        TMATMUL_BIAS(c, a, b, bias...);
    } else {
        TMATMUL(c, a, b);
    }
    pipe_barrier(PIPE_ALL);
}

#endif

// -- uncounted work -------------------------------------------------------------------------------

#if WSP_IS_SHIM

// While it lives, the unit model's cycles stand still.
class Uncounted {
  public:
    Uncounted() : core(ptoisa_this_core()), sum(core.sum) {
        std::memcpy(busy, core.busy, sizeof busy);
    }
    ~Uncounted() {
        if (ptoisa_time_of(core.model) == PTOISA_TIME_SUM) {
            core.sum = sum;
            std::memcpy(core.busy, busy, sizeof busy);
        }
    }
    Uncounted(const Uncounted &) = delete;
    Uncounted &operator=(const Uncounted &) = delete;

  private:
    ptoisa_core &core;
    uint64_t sum, busy[PTOISA_PIPE_COUNT];
};

#endif

// -- between cube and vector cores on A5 ----------------------------------------------------------

// Moves a tile from L0C to UB, or from UB to L1. One core does it as a TMOV. On a device one core
// pushes and the other pops, through the consumer's memory, and nothing of that is here.
#ifdef WSP_ASCEND
#define WSP_CROSS(number, ub, l1, dst, src)                                                        \
    static_assert((number) < 0, "tiles between cube and vector cores: see wsp_kernel.h")
#else
#define WSP_CROSS(number, ub, l1, dst, src) TMOV(dst, src)
#endif

// -- the halves of a mixed kernel -----------------------------------------------------------------

// A mixed kernel is two functions, NAME_cube and NAME_vector, which meet in FIFOs. WSP_HALVES runs
// them: on a device each core calls its own, as the kernel is compiled once for each kind of core. The
// shim has a block of three cores for a task, each on a thread (pto::RunBlock). PTO-ISA's simulator
// has two threads, and the vector one does all rows.
//
// Where the rows of the vector half are shared (share), the first vector core has those below
// ceil(rows / 2) of every tile, and the second has the rest: `of` them, in memory from first() on. In
// the slot of a FIFO its part begins as many rows behind the first one's (TILE_UP_DOWN: half of a tile
// of an even number of rows, of which less may be valid). Else the first vector core does everything,
// and the second takes part in filling and freeing slots alone: pass().
//
// Fifo<flag, to_vector, slot bytes, slots, split>: push() stores a tile's valid elements to the next
// free slot, and pop() loads them from it, rows `Pitch` elements apart. Tiles go by address, so
// FixpipeParams, with which TPUSH converts a tile on its way, is not used: how it is given is not
// documented.
//
// On a device the FIFOs of a block are made once and stay for all of its tasks. A producer waits
// until its slot is free, except for the first slots of all: so what a task has left in its slots
// and flags must be known to the next one. A kernel pushes as many tiles as it pops, so each task
// finds the FIFOs empty.

// Is this the first of a block's two vector cores?
AICORE inline bool is_first() {
#if WSP_HAS_VECTOR && (defined(WSP_ASCEND) || WSP_IS_SHIM)
    return get_subblockid() == 0;
#else
    return true;
#endif
}

struct Share {
    int cut;
    bool is_second;
    AICORE int of(int rows) const {
        return is_second ? (rows > cut ? rows - cut : 0) : least(rows, cut);
    }
    AICORE int first() const {
        return is_second ? cut : 0;
    }
};

AICORE inline Share share(int rows) {
#if defined(WSP_ASCEND) || WSP_IS_SHIM
    return Share{(rows + 1) / 2, !is_first()};
#else
    (void)rows;
    return Share{1 << 30, false};
#endif
}

#if (defined(WSP_ASCEND) && defined(WSP_UNIT_block)) || WSP_IS_SHIM

// [read] The FIFOs of a block, in its global memory. Tiles are stored and loaded there by address, so
// the buffers of the other form, in UB and L1, are not used.
struct Pipes {
    pto::TPipe<0, pto::Direction::DIR_C2V, WSP_FIFO_SLOT_BYTES, WSP_FIFO_SLOT_COUNT> to_vector;
    pto::TPipe<2, pto::Direction::DIR_V2C, WSP_FIFO_SLOT_BYTES, WSP_FIFO_SLOT_COUNT> to_cube;

    AICORE explicit Pipes(__gm__ uint8_t *memory)
        : to_vector(memory, 0, 0), to_cube(memory + WSP_FIFO_BYTES, 0, 0) {
    }
};

template <uint8_t Flag, bool IsToVector, uint32_t SlotBytes, uint32_t SlotCount,
          pto::TileSplitAxis Split>
class Fifo {
    static_assert(Flag == (IsToVector ? 0 : 2) && SlotBytes <= WSP_FIFO_SLOT_BYTES &&
                      SlotCount == WSP_FIFO_SLOT_COUNT,
                  "the FIFOs of a block are others");
    using Pipe = pto::TPipe<Flag, IsToVector ? pto::Direction::DIR_C2V : pto::Direction::DIR_V2C,
                            WSP_FIFO_SLOT_BYTES, WSP_FIFO_SLOT_COUNT>;
    using Elements = pto::Shape<1, 1, 1, -1, -1>;
    template <typename T> static constexpr bool is_column() {
        return T::Loc == pto::TileType::Vec && !T::isRowMajor;
    }
    template <typename E>
    using ByRows = pto::GlobalTensor<E, Elements, pto::Stride<1, 1, 1, -1, 1>, pto::Layout::ND>;
    template <typename E>
    using ByColumn = pto::GlobalTensor<E, Elements, pto::Stride<1, 1, 1, 1, -1>, pto::Layout::DN>;
    Pipe &pipe;
    Share mine;

    AICORE static Pipe &of(Pipes &pipes) {
        if constexpr (IsToVector) {
            return pipes.to_vector;
        } else {
            return pipes.to_cube;
        }
    }

    // So many rows of a tile, in a slot.
    template <uint32_t Pitch, typename T>
    AICORE static auto window(T &tile, __gm__ typename T::DType *at, int rows) {
        using E = typename T::DType;
        if constexpr (is_column<T>()) {
            return ByColumn<E>(at, Elements(rows, 1), pto::Stride<1, 1, 1, 1, -1>(rows));
        } else {
            return ByRows<E>(at, Elements(rows, tile.GetValidCol()),
                             pto::Stride<1, 1, 1, -1, 1>(Pitch));
        }
    }

    // What says where this core's part begins: as many rows as are above it.
    template <uint32_t Pitch, typename T> AICORE auto part(T &tile) const {
        const int rows = tile.GetValidRow();
        return window<Pitch>(tile, nullptr, rows > 0 && mine.is_second ? mine.cut : rows);
    }

    // The shim gives no slot after a fault; no one else moves nothing.
    template <typename T, typename G>
    AICORE static bool moves(T &tile, [[maybe_unused]] const G &slot) {
#if WSP_IS_SHIM
        return any(tile) && slot.data() != nullptr;
#else
        return any(tile);
#endif
    }

  public:
    AICORE explicit Fifo(Pipes &pipes, Share share = Share{0, false})
        : pipe(of(pipes)), mine(share) {
    }

    template <uint32_t Pitch, typename T> AICORE void push(T &tile) {
        auto at = part<Pitch>(tile);
        pto::TALLOC<Pipe, decltype(at), Split>(pipe, at);
        if (moves(tile, at)) {
            auto to = window<Pitch>(tile, at.data(), tile.GetValidRow());
            pto::TSTORE(to, tile);
        }
        pto::TPUSH<Pipe, decltype(at), Split>(pipe, at);
    }

    template <uint32_t Pitch, typename T> AICORE void pop(T &tile) {
        auto at = part<Pitch>(tile);
        pto::TPOP<Pipe, decltype(at), Split>(pipe, at);
        if (moves(tile, at)) {
            auto from = window<Pitch>(tile, at.data(), tile.GetValidRow());
            pto::TLOAD(tile, from);
        }
        pto::TFREE<Pipe, decltype(at), Split>(pipe, at);
    }

    // Pushes or pops without a tile.
    AICORE void pass() {
        ByRows<float> nothing(nullptr, Elements(0, 0), pto::Stride<1, 1, 1, -1, 1>(0));
        if constexpr (IsToVector) {
            pto::TPOP<Pipe, ByRows<float>, Split>(pipe, nothing);
            pto::TFREE<Pipe, ByRows<float>, Split>(pipe, nothing);
        } else {
            pto::TALLOC<Pipe, ByRows<float>, Split>(pipe, nothing);
            pto::TPUSH<Pipe, ByRows<float>, Split>(pipe, nothing);
        }
    }
};

#elif defined(WSP_ASCEND)

struct Pipes {};

template <uint8_t Flag, bool IsToVector, uint32_t SlotBytes, uint32_t SlotCount,
          pto::TileSplitAxis Split>
class Fifo {
    static_assert(Flag > 15, "a kernel for cube and vector cores, which are started as blocks");
};

#else

// The simulator's FIFOs. Of the two threads one runs, until it has to wait or ends: that may be all
// that the simulator takes.
struct Pipes {
    pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;  // of the thread that runs
    pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
    uint64_t pushed[2] = {0, 0}, popped[2] = {0, 0};
    List<uint8_t> slots = List<uint8_t>(2 * WSP_FIFO_BYTES);
};

template <uint8_t Flag, bool IsToVector, uint32_t SlotBytes, uint32_t SlotCount,
          pto::TileSplitAxis Split>
class Fifo {
    Pipes &pipes;

  public:
    explicit Fifo(Pipes &pipes, Share = Share{0, false}) : pipes(pipes) {
    }
    template <uint32_t Pitch, typename T> void push(T &tile) {
        uint64_t &pushed = pipes.pushed[IsToVector], &popped = pipes.popped[IsToVector];
        while (pushed - popped == SlotCount) {
            pthread_cond_wait(&pipes.moved, &pipes.turn);
        }
        if (any(tile)) {
            auto to = slot<Pitch>(tile, pushed);
            TSTORE(to, tile);
        }
        pushed++;
        pthread_cond_broadcast(&pipes.moved);
    }
    template <uint32_t Pitch, typename T> void pop(T &tile) {
        uint64_t &pushed = pipes.pushed[IsToVector], &popped = pipes.popped[IsToVector];
        while (pushed == popped) {
            pthread_cond_wait(&pipes.moved, &pipes.turn);
        }
        if (any(tile)) {
            auto from = slot<Pitch>(tile, popped);
            TLOAD(tile, from);
        }
        popped++;
        pthread_cond_broadcast(&pipes.moved);
    }
    void pass() {
    }

  private:
    template <uint32_t Pitch, typename T> auto slot(T &tile, uint64_t number) {
        using E = typename T::DType;
        uint8_t *at = pipes.slots.data() + (IsToVector ? 0 : WSP_FIFO_BYTES) +
                      number % SlotCount * WSP_FIFO_SLOT_BYTES;
        return Rows<E>(reinterpret_cast<E *>(at),
                       pto::Shape<1, 1, 1, -1, -1>(tile.GetValidRow(), tile.GetValidCol()),
                       typename Rows<E>::Stride(Pitch, 1));
    }
};

#endif

// -- running the halves ---------------------------------------------------------------------------

#if WSP_IS_SHIM

typedef void (*half_fn)(wsp_task *task, Pipes &pipes);

inline void run_halves(wsp_task *task, half_fn cube, half_fn vector) {
    static thread_local List<uint8_t> fifos(2 * WSP_FIFO_BYTES);
    uint8_t *memory = fifos.data();  // of this thread: the vector cores have others
    const auto run = [&](half_fn half) {
        set_ffts_base_addr(1);
        Pipes pipes(memory);
        half(task, pipes);
    };
    if (!pto::RunBlock([&] { run(cube); }, [&] { run(vector); })) {
        task->fault = FAULT_OF_SHIM;
    }
}

#elif !defined(WSP_ASCEND)

typedef void (*half_fn)(wsp_task *task, Pipes &pipes);

inline void run_halves(wsp_task *task, half_fn cube, half_fn vector) {
    struct Run {
        Pipes pipes;
        wsp_task *task;
        half_fn half;
        static void *start(void *arg) {
            Run &run = *static_cast<Run *>(arg);
            pthread_mutex_lock(&run.pipes.turn);
            run.half(run.task, run.pipes);
            pthread_mutex_unlock(&run.pipes.turn);
            return nullptr;
        }
    } run = {{}, task, vector};
    pthread_t thread;
    if (pthread_create(&thread, nullptr, Run::start, &run) != 0) {
        task->status = PTOWSP_OUT_OF_MEMORY;
        return;
    }
    pthread_mutex_lock(&run.pipes.turn);
    cube(task, run.pipes);
    pthread_mutex_unlock(&run.pipes.turn);
    pthread_join(thread, nullptr);
}

#endif

}  // namespace wsp

// What mixed kernels, and those that call them, have beside the task: on a device the FIFOs of the
// block. WSP_HALVES is the last statement of such a kernel.
#if defined(WSP_ASCEND) && defined(WSP_UNIT_block)
#define WSP_BLOCK_PARAM , wsp::Pipes &pipes
#define WSP_BLOCK_ARG   , pipes
#if WSP_HAS_CUBE
#define WSP_HALVES(task, cube, vector) cube(task, pipes)
#else
#define WSP_HALVES(task, cube, vector) vector(task, pipes)
#endif
extern "C" AICORE void wsp_core_run(__gm__ wsp_task *task WSP_BLOCK_PARAM);
#else
#define WSP_BLOCK_PARAM
#define WSP_BLOCK_ARG
#ifdef WSP_ASCEND
#define WSP_HALVES(task, cube, vector) (void)(task)
#else
#define WSP_HALVES(task, cube, vector) wsp::run_halves(task, cube, vector)
#endif
#endif

#endif
