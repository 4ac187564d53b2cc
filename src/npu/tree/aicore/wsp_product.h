// Products: right factors, whose parameters may be stored by rows or by columns, and products without
// elements.

#ifndef WSP_PRODUCT_H
#define WSP_PRODUCT_H

#include "wsp_window.h"

namespace wsp {

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
                  pto::Stride<1, 1, 1, 1, -1>(WSP_TILE_STRIDE(task, i, 1)));
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

// -- products without elements --------------------------------------------------------------------

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

}  // namespace wsp

#endif
