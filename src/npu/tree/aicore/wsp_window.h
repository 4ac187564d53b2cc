// Windows of global memory: parts of tile parameters, by rows and by columns, as PTO-ISA moves them.

#ifndef WSP_WINDOW_H
#define WSP_WINDOW_H

#include "wsp_args.h"

namespace wsp {

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
using RowStride = pto::Stride<1, 1, 1, -1, -1>;
using ColumnStride = RowStride;
#else
using RowStride = pto::Stride<1, 1, 1, -1, 1>;
using ColumnStride = pto::Stride<1, 1, 1, 1, -1>;
#endif
template <typename T>
using Rows = pto::GlobalTensor<T, pto::Shape<1, 1, 1, -1, -1>, RowStride, pto::Layout::ND>;
template <typename T>
using Columns = pto::GlobalTensor<T, pto::Shape<1, 1, 1, -1, -1>, ColumnStride, pto::Layout::DN>;

// The element (row, col) of a tile parameter.
template <typename T>
AICORE inline __gm__ T *element(__gm__ const wsp_tile *tile, int64_t row, int64_t col) {
    __gm__ T *data = reinterpret_cast<__gm__ T *>(static_cast<uintptr_t>(tile->data));
    return data + (row * tile->row_stride + col * tile->col_stride);
}

template <typename T>
AICORE inline __gm__ T *element(__gm__ const wsp_task *task, uint32_t i, int64_t row, int64_t col) {
    __gm__ T *data = reinterpret_cast<__gm__ T *>(static_cast<uintptr_t>(WSP_TILE_DATA(task, i)));
    return data + (row * WSP_TILE_STRIDE(task, i, 0) + col * WSP_TILE_STRIDE(task, i, 1));
}

// rows x cols elements from (row, col) of tile parameter `tile` on.
template <typename T>
AICORE inline Rows<T> window(__gm__ const wsp_task *task, uint32_t i, int64_t row, int64_t col,
                             int64_t rows, int64_t cols) {
    return Rows<T>(element<T>(task, i, row, col), pto::Shape<1, 1, 1, -1, -1>(rows, cols),
#if WSP_HAS_STRIDES
                   RowStride(WSP_TILE_STRIDE(task, i, 0), WSP_TILE_STRIDE(task, i, 1)));
#else
                   RowStride(WSP_TILE_STRIDE(task, i, 0)));
#endif
}

// The same for tiles that are stored column by column.
template <typename T>
AICORE inline Columns<T> columns(__gm__ const wsp_task *task, uint32_t i, int64_t row, int64_t col,
                                 int64_t rows, int64_t cols) {
    return Columns<T>(element<T>(task, i, row, col), pto::Shape<1, 1, 1, -1, -1>(rows, cols),
#if WSP_HAS_STRIDES
                      ColumnStride(WSP_TILE_STRIDE(task, i, 0), WSP_TILE_STRIDE(task, i, 1)));
#else
                      ColumnStride(WSP_TILE_STRIDE(task, i, 1)));
#endif
}

// Can PTO-ISA move a parameter's tile? `is_column`: the target is stored by columns.
AICORE inline bool is_dense(__gm__ const wsp_task *task, uint32_t i, bool is_column) {
#if WSP_HAS_STRIDES
    (void)task, (void)i, (void)is_column;
    return true;
#else
    return is_column ? WSP_TILE_STRIDE(task, i, 0) == 1 || rows(task, i) == 1
                     : WSP_TILE_STRIDE(task, i, 1) == 1 || cols(task, i) == 1;
#endif
}

template <typename... Tiles>
AICORE inline bool are_dense(__gm__ const wsp_task *task, bool is_column, Tiles... tiles) {
    return (is_dense(task, static_cast<uint32_t>(tiles), is_column) && ...);
}

// Right factors may be stored by rows or by columns.
template <typename... Tiles>
AICORE inline bool are_either(__gm__ const wsp_task *task, Tiles... tiles) {
    return ((is_dense(task, static_cast<uint32_t>(tiles), false) ||
             is_dense(task, static_cast<uint32_t>(tiles), true)) &&
            ...);
}

// Ends a task whose tiles PTO-ISA cannot move with UNSUPPORTED.
#define WSP_REQUIRE(task, condition)                                                               \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            WSP_FAIL(task, PTOWSP_UNSUPPORTED, 0);                                                 \
            return;                                                                                \
        }                                                                                          \
    } while (0)
#define WSP_REQUIRE_ROWS(task, ...)    WSP_REQUIRE(task, wsp::are_dense((task), false, __VA_ARGS__))
#define WSP_REQUIRE_COLUMNS(task, ...) WSP_REQUIRE(task, wsp::are_dense((task), true, __VA_ARGS__))
#define WSP_REQUIRE_EITHER(task, ...)  WSP_REQUIRE(task, wsp::are_either((task), __VA_ARGS__))

// -- columns of wide matrices ---------------------------------------------------------------------

// A column whose elements do not lie together, so that a column view cannot move it. A row view of one
// column loads each element to the start of a row of 32 bytes; a maximum over one element takes it from
// there. `at` is the column's address, `scratch` the address of its rows, of 32 bytes each, twice.
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
                   pto::Stride<1, 1, 1, -1, 1>(WSP_TILE_STRIDE(task, i, 0)));
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

}  // namespace wsp

#endif
