// The C++ face of the shim, third part: the instructions.
//
// Each is a template over its operands that waits for its trailing events, makes a ptoisa_tile of
// every tile, and calls the C function of the same name: so both faces give the same bits, the same
// cycles and the same faults. It returns a token that an Event records. An instruction takes what
// PTO-ISA's takes, in the same order, with the same template arguments in front where kernels write
// them. A tile and an event are told apart by type, so an optional tile may precede the events.
//
// Missing, as only their names are known: TPARTARGMAX, TPARTARGMIN, TADDDEQRELU, TADDRELUCONV,
// TPACK, TRANDOM, THISTOGRAM, TGET_SCALE_ADDR; GATHER_COL; ScatterOOB, ScatterConflict and
// NPUMemoryModel; tiles of 4-bit integers and of floats of 8 and 4 bits, and their operations (MX
// matmul, MXFP8 and MXFP4); convolutions; communication between devices. Assumed, for want of
// documentation: indices outside that wrap or clamp are signed; the elements of a table count row
// after row; of a move with a scale for each column, the first scale is for the first column
// moved.

#ifndef PTOISA_PTO_OPS_H
#define PTOISA_PTO_OPS_H

#include "pto_types.h"
#include "move.h"
#include "convert.h"
#include "elementwise.h"
#include "reduce.h"
#include "broadcast.h"
#include "compare.h"
#include "sort.h"
#include "gather.h"
#include "matmul.h"

namespace pto {

namespace shim {

// A scalar operand has the element type of a tile. The C functions take it as a double: exactly,
// but for 64-bit integers beyond 2^53.
template <typename T> using Number = typename T::DType;

template <typename T> inline double number(T value) {
    return static_cast<double>(value);
}

template <typename T> using if_tile = std::enable_if_t<is_tile_v<T>>;

// PTO-ISA's simulator declares some instructions for tiles of one type, valid sizes included. A device
// takes any, and so does the shim, except with PTOISA_SIMULATOR_TYPES: a source that compiles here then
// compiles there.
#ifdef PTOISA_SIMULATOR_TYPES
constexpr bool is_named(const char *name, const char *other) {
    return *name == *other && (*name == '\0' || is_named(name + 1, other + 1));
}

template <typename D, typename... S> constexpr bool has_types(const char *name) {
    bool is_of_one = is_named(name, "TADD") || is_named(name, "TABS") || is_named(name, "TADDC") ||
                     is_named(name, "TADDSC") || is_named(name, "TPOW") || is_named(name, "TXORS");
    return !is_of_one || (std::is_same<D, S>::value && ...);
}
#define PTOISA_FACE_TYPES(NAME, ...)                                                               \
    static_assert(shim::has_types<__VA_ARGS__>(#NAME),                                             \
                  "PTO-ISA's simulator takes tiles of one type here, with the same valid sizes");
#else
#define PTOISA_FACE_TYPES(NAME, ...)
#endif

}  // namespace shim

// -- families -------------------------------------------------------------------------------------
//
// Named by their operands: D destination, S source, X number, T tile for intermediate results. A C
// function that needs no such tile is not given it: PTOISA_FACE_..._TMP add a form that drops it.

#define PTOISA_FACE_DS(NAME, name)                                                                 \
    template <typename D, typename S, typename... W>                                               \
    inline shim::Token<W...> NAME(D &dst, S &src, W &...events) {                                  \
        PTOISA_FACE_TYPES(NAME, D, S)                                                              \
        ptoisa_core *core = shim::begin(events...);                                                \
        ptoisa_tile d = shim::view(dst), s = shim::view(src);                                      \
        ptoisa_##name(core, &d, &s);                                                               \
        return shim::end();                                                                        \
    }

#define PTOISA_FACE_DSS(NAME, name)                                                                \
    template <typename D, typename S0, typename S1, typename... W>                                 \
    inline shim::Token<W...> NAME(D &dst, S0 &src0, S1 &src1, W &...events) {                      \
        PTOISA_FACE_TYPES(NAME, D, S0, S1)                                                         \
        ptoisa_core *core = shim::begin(events...);                                                \
        ptoisa_tile d = shim::view(dst), s0 = shim::view(src0), s1 = shim::view(src1);             \
        ptoisa_##name(core, &d, &s0, &s1);                                                         \
        return shim::end();                                                                        \
    }

#define PTOISA_FACE_DSSS(NAME, name)                                                               \
    template <typename D, typename S0, typename S1, typename S2, typename... W,                    \
              typename = shim::if_tile<S2>>                                                        \
    inline shim::Token<W...> NAME(D &dst, S0 &src0, S1 &src1, S2 &src2, W &...events) {            \
        PTOISA_FACE_TYPES(NAME, D, S0, S1, S2)                                                     \
        ptoisa_core *core = shim::begin(events...);                                                \
        ptoisa_tile d = shim::view(dst), s0 = shim::view(src0), s1 = shim::view(src1);             \
        ptoisa_tile s2 = shim::view(src2);                                                         \
        ptoisa_##name(core, &d, &s0, &s1, &s2);                                                    \
        return shim::end();                                                                        \
    }

#define PTOISA_FACE_DS_TMP(NAME, name)                                                             \
    PTOISA_FACE_DS(NAME, name)                                                                     \
    template <typename D, typename S, typename T, typename... W, typename = shim::if_tile<T>>      \
    inline shim::Token<W...> NAME(D &dst, S &src, T &, W &...events) {                             \
        return NAME(dst, src, events...);                                                          \
    }

#define PTOISA_FACE_DSS_TMP(NAME, name)                                                            \
    PTOISA_FACE_DSS(NAME, name)                                                                    \
    template <typename D, typename S0, typename S1, typename T, typename... W,                     \
              typename = shim::if_tile<T>>                                                         \
    inline shim::Token<W...> NAME(D &dst, S0 &src0, S1 &src1, T &, W &...events) {                 \
        return NAME(dst, src0, src1, events...);                                                   \
    }

// The C function takes the tile for intermediate results, or NULL.
#define PTOISA_FACE_DSS_T(NAME, name)                                                              \
    PTOISA_FACE_DSSS(NAME, name)                                                                   \
    template <typename D, typename S0, typename S1, typename... W>                                 \
    inline shim::Token<W...> NAME(D &dst, S0 &src0, S1 &src1, W &...events) {                      \
        PTOISA_FACE_TYPES(NAME, D, S0, S1)                                                         \
        ptoisa_core *core = shim::begin(events...);                                                \
        ptoisa_tile d = shim::view(dst), s0 = shim::view(src0), s1 = shim::view(src1);             \
        ptoisa_##name(core, &d, &s0, &s1, NULL);                                                   \
        return shim::end();                                                                        \
    }

#define PTOISA_FACE_DSX(NAME, name)                                                                \
    template <typename D, typename S, typename... W>                                               \
    inline shim::Token<W...> NAME(D &dst, S &src, shim::Number<S> x, W &...events) {               \
        ptoisa_core *core = shim::begin(events...);                                                \
        ptoisa_tile d = shim::view(dst), s = shim::view(src);                                      \
        ptoisa_##name(core, &d, &s, shim::number(x));                                              \
        return shim::end();                                                                        \
    }

#define PTOISA_FACE_DSX_TMP(NAME, name)                                                            \
    PTOISA_FACE_DSX(NAME, name)                                                                    \
    template <typename D, typename S, typename T, typename... W, typename = shim::if_tile<T>>      \
    inline shim::Token<W...> NAME(D &dst, S &src, shim::Number<S> x, T &, W &...events) {          \
        return NAME(dst, src, x, events...);                                                       \
    }

#define PTOISA_FACE_DSXS(NAME, name)                                                               \
    template <typename D, typename S0, typename S1, typename... W>                                 \
    inline shim::Token<W...> NAME(D &dst, S0 &src0, shim::Number<S0> x, S1 &src1, W &...events) {  \
        PTOISA_FACE_TYPES(NAME, D, S0, S1)                                                         \
        ptoisa_core *core = shim::begin(events...);                                                \
        ptoisa_tile d = shim::view(dst), s0 = shim::view(src0), s1 = shim::view(src1);             \
        ptoisa_##name(core, &d, &s0, shim::number(x), &s1);                                        \
        return shim::end();                                                                        \
    }

// -- movement -------------------------------------------------------------------------------------

namespace shim {

// An NZ window {1, columns of boxes, rows of boxes, 16, 32 bytes} and an Nz tile hold the same
// boxes in the same order. Where all rows of the tile are valid, both are matrices with rows of 32
// bytes, one column of boxes under the other, and an unboxed copy moves them: makes the tile look
// so. Returns false, after a fault, for any other pair.
template <typename G, typename T>
inline bool unbox(ptoisa_core *core, ptoisa_op op, const ptoisa_global *global, ptoisa_tile *tile) {
    if constexpr (G::layout == Layout::NZ) {
        static_assert(T::isBoxedLayout && !T::isRowMajor && T::isInnerRowMajor &&
                          T::Loc != TileType::Acc,
                      "an NZ window goes with an Nz tile in UB or L1");
        int64_t rows = global->shape[2] * global->shape[3];
        int64_t cols = global->shape[0] * global->shape[1] * global->shape[4];
        if (global->shape[3] != T::InnerRows || global->shape[4] != T::InnerCols ||
            rows != T::Rows || rows != tile->valid_rows || cols != tile->valid_cols) {
            return ptoisa_fault(core, op, "an NZ window of %lld x %lld for %u x %u of %u rows",
                                static_cast<long long>(rows), static_cast<long long>(cols),
                                tile->valid_rows, tile->valid_cols, tile->rows);
        }
        constexpr uint32_t box_cols = static_cast<uint32_t>(T::InnerCols);
        tile->layout = PTOISA_ROW_MAJOR;
        tile->rows = tile->rows * tile->cols / box_cols;
        tile->valid_rows = tile->valid_rows * tile->valid_cols / box_cols;
        tile->cols = tile->valid_cols = box_cols;
    }
    (void)core, (void)op, (void)global, (void)tile;
    return true;
}

// A DN window {outer.., rows, cols} has `rows` rows and outer x cols columns. Seen from its columns
// it is a window {outer.., cols, rows} with one row for each, and a tile turned alike is the same
// bytes: so both are turned, and the C functions do the rest.
template <typename G> inline void turn(ptoisa_global *global, ptoisa_tile *tile) {
    static const ptoisa_layout turned[] = {PTOISA_COL_MAJOR, PTOISA_ROW_MAJOR, PTOISA_ZN,
                                           PTOISA_NZ,        PTOISA_NN,        PTOISA_ZZ};
    if (G::layout == Layout::DN && global->shape[0] * global->shape[1] * global->shape[2] != 1) {
        std::swap(global->shape[3], global->shape[4]);
        std::swap(global->stride[3], global->stride[4]);
        std::swap(tile->rows, tile->cols);
        std::swap(tile->valid_rows, tile->valid_cols);
        tile->layout = static_cast<uint8_t>(turned[tile->layout]);
    }
}

// Makes a window and a tile ready for the C functions.
template <typename G, typename T>
inline bool arrange(ptoisa_core *core, ptoisa_op op, ptoisa_global *global, ptoisa_tile *tile) {
    turn<G>(global, tile);
    return unbox<G, T>(core, op, global, tile);
}

}  // namespace shim

template <typename T, typename G, typename... W>
inline shim::Token<W...> TLOAD(T &tile, G &global, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile t = shim::view(tile);
    ptoisa_global g = shim::view(global);
    if (shim::arrange<G, T>(core, PTOISA_TLOAD, &g, &t)) {
        ptoisa_tload(core, &t, &g);
    }
    return shim::end();
}

// Loads a window ahead of its use, as TLOAD does. It takes no events.
template <typename T, typename G> inline void TPREFETCH(T &tile, G &global) {
    TLOAD(tile, global);
}

template <typename T, typename G, AtomicType Atomic = AtomicType::AtomicNone,
          ReluPreMode Relu = ReluPreMode::NoRelu, typename... W>
inline shim::Token<W...> TSTORE(G &global, T &tile, W &...events) {
    static_assert(Atomic == AtomicType::AtomicNone || Relu == ReluPreMode::NoRelu,
                  "the shim has no atomic store with a ReLU");
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile t = shim::view(tile);
    ptoisa_global g = shim::view(global);
    if (!shim::arrange<G, T>(core, PTOISA_TSTORE, &g, &t)) {
        return shim::end();
    }
    if constexpr (Atomic == AtomicType::AtomicAdd) {
        ptoisa_tstore_add(core, &g, &t);
    } else if constexpr (Relu == ReluPreMode::NormalRelu) {
        ptoisa_tstore_relu(core, &g, &t);
    } else {
        ptoisa_tstore(core, &g, &t);
    }
    return shim::end();
}

// With the phase of a sum over k, which lets a device overlap matmul and store.
template <STPhase Phase, typename T, typename G, typename... W>
inline shim::Token<W...> TSTORE(G &global, T &tile, W &...events) {
    return TSTORE<T, G>(global, tile, events...);
}

// Quantises: the scale is given as the bits of a float.
template <typename T, typename G, AtomicType Atomic = AtomicType::AtomicNone,
          ReluPreMode Relu = ReluPreMode::NoRelu, typename... W>
inline shim::Token<W...> TSTORE(G &global, T &tile, uint64_t preQuantScalar, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile t = shim::view(tile);
    ptoisa_global g = shim::view(global);
    shim::turn<G>(&g, &t);
    float scale = ptoisa_f32_from_bits(static_cast<uint32_t>(preQuantScalar));
    constexpr bool is_relu = Relu == ReluPreMode::NormalRelu;
    if constexpr (Atomic == AtomicType::AtomicAdd) {
        ptoisa_tstore_add_quant(core, &g, &t, scale, is_relu);
    } else {
        ptoisa_tstore_quant(core, &g, &t, scale, is_relu);
    }
    return shim::end();
}

// Quantises with a scale for each column.
template <typename T, typename G, typename F, AtomicType Atomic = AtomicType::AtomicNone,
          ReluPreMode Relu = ReluPreMode::NoRelu, typename... W>
inline shim::Token<W...> TSTORE_FP(G &global, T &tile, F &scales, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile t = shim::view(tile), f = shim::view(scales);
    ptoisa_global g = shim::view(global);
    shim::turn<G>(&g, &t);
    constexpr bool is_relu = Relu == ReluPreMode::NormalRelu;
    if constexpr (Atomic == AtomicType::AtomicAdd) {
        ptoisa_tstore_add_fp(core, &g, &t, &f, is_relu);
    } else {
        ptoisa_tstore_fp(core, &g, &t, &f, is_relu);
    }
    return shim::end();
}

PTOISA_FACE_DS(TMOV, tmov)

template <typename D, typename S, typename... W>
inline shim::Token<W...> TEXTRACT(D &dst, S &src, uint32_t row = 0, uint32_t col = 0,
                                  W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), s = shim::view(src);
    ptoisa_textract(core, &d, &s, row, col);
    return shim::end();
}

template <typename D, typename S, typename... W>
inline shim::Token<W...> TINSERT(D &dst, S &src, uint32_t row = 0, uint32_t col = 0, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), s = shim::view(src);
    ptoisa_tinsert(core, &d, &s, row, col);
    return shim::end();
}

// The same out of L0C, with a scale: the bits of a float, after the tiles as in TSTORE, where it must
// be a uint64_t; or a Scaling tile with a scale for each column.
#define PTOISA_FACE_QUANT(NAME, name)                                                              \
    template <typename D, typename S, ReluPreMode Relu = ReluPreMode::NoRelu, typename... W>       \
    inline shim::Token<W...> NAME(D &dst, S &src, const uint64_t &preQuantScalar, uint32_t row,    \
                                  uint32_t col, W &...events) {                                    \
        ptoisa_core *core = shim::begin(events...);                                                \
        ptoisa_tile d = shim::view(dst), s = shim::view(src);                                      \
        float scale = ptoisa_f32_from_bits(static_cast<uint32_t>(preQuantScalar));                 \
        ptoisa_##name##_quant(core, &d, &s, scale, row, col, Relu == ReluPreMode::NormalRelu);     \
        return shim::end();                                                                        \
    }                                                                                              \
                                                                                                   \
    template <typename D, typename S, typename F, ReluPreMode Relu = ReluPreMode::NoRelu,          \
              typename... W>                                                                       \
    inline shim::Token<W...> NAME##_FP(D &dst, S &src, F &scales, uint32_t row = 0,                \
                                       uint32_t col = 0, W & ...events) {                          \
        ptoisa_core *core = shim::begin(events...);                                                \
        ptoisa_tile d = shim::view(dst), s = shim::view(src), f = shim::view(scales);              \
        ptoisa_##name##_fp(core, &d, &s, &f, row, col, Relu == ReluPreMode::NormalRelu);           \
        return shim::end();                                                                        \
    }

PTOISA_FACE_QUANT(TEXTRACT, textract)
PTOISA_FACE_QUANT(TINSERT, tinsert)

template <typename D, typename S, ReluPreMode Relu = ReluPreMode::NoRelu, typename... W>
inline shim::Token<W...> TMOV(D &dst, S &src, uint64_t preQuantScalar, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), s = shim::view(src);
    float scale = ptoisa_f32_from_bits(static_cast<uint32_t>(preQuantScalar));
    ptoisa_tmov_quant(core, &d, &s, scale, Relu == ReluPreMode::NormalRelu);
    return shim::end();
}

template <typename D, typename S, typename F, ReluPreMode Relu = ReluPreMode::NoRelu, typename... W>
inline shim::Token<W...> TMOV_FP(D &dst, S &src, F &scales, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), s = shim::view(src), f = shim::view(scales);
    ptoisa_tmov_fp(core, &d, &s, &f, Relu == ReluPreMode::NormalRelu);
    return shim::end();
}

// Prints the valid part of a tile.
template <typename T> inline void TPRINT(T &tile) {
    ptoisa_core *core = shim::begin();
    ptoisa_tile t = shim::view(tile);
    ptoisa_tprint(core, stdout, &t);
}

// Makes dst a view of the part of src that begins at (row, col). Rows keep their length, so dst has
// as many columns as src, and only the visible ones are valid.
template <typename D, typename S> inline RecordEvent TSUBVIEW(D &dst, S &src, int row, int col) {
    static_assert(D::Loc == S::Loc && !D::isBoxedLayout && !S::isBoxedLayout && D::isRowMajor &&
                      S::isRowMajor && D::Cols == S::Cols,
                  "a view of a part is row-major with rows as long as those of the whole");
    dst.assignData(static_cast<void *>(src.data() + S::Offset(row, col)));
    return RecordEvent();
}

template <typename D, typename X, typename... W>
inline shim::Token<W...> TEXPANDS(D &dst, X x, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst);
    ptoisa_texpands(core, &d, shim::number(static_cast<shim::Number<D>>(x)));
    return shim::end();
}

// dst[0][i] = start + i, or start - i
template <typename D, typename T, int descending, typename... W>
inline shim::Token<W...> TCI(D &dst, T start, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst);
    ptoisa_tci(core, &d, shim::number(start), descending != 0);
    return shim::end();
}

template <typename D, typename T, int descending, typename Tmp, typename... W,
          typename = shim::if_tile<Tmp>>
inline shim::Token<W...> TCI(D &dst, T start, Tmp &, W &...events) {
    return TCI<D, T, descending>(dst, start, events...);
}

template <typename D, int upper, typename... W>
inline shim::Token<W...> TTRI(D &dst, int diagonal, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst);
    ptoisa_ttri(core, &d, upper != 0, diagonal);
    return shim::end();
}

template <typename D0, typename D1, typename S0, typename S1, typename... W>
inline shim::Token<W...> TINTERLEAVE(D0 &dst0, D1 &dst1, S0 &src0, S1 &src1, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d0 = shim::view(dst0), d1 = shim::view(dst1);
    ptoisa_tile s0 = shim::view(src0), s1 = shim::view(src1);
    ptoisa_tinterleave(core, &d0, &d1, &s0, &s1);
    return shim::end();
}

template <typename D0, typename D1, typename S0, typename S1, typename... W>
inline shim::Token<W...> TDEINTERLEAVE(D0 &dst0, D1 &dst1, S0 &src0, S1 &src1, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d0 = shim::view(dst0), d1 = shim::view(dst1);
    ptoisa_tile s0 = shim::view(src0), s1 = shim::view(src1);
    ptoisa_tdeinterleave(core, &d0, &d1, &s0, &s1);
    return shim::end();
}

PTOISA_FACE_DSS(TTRANS, ttrans)
PTOISA_FACE_DSS(TCONCAT, tconcat)
PTOISA_FACE_DS(TFILLPAD, tfillpad)
PTOISA_FACE_DS(TFILLPAD_INPLACE, tfillpad_inplace)
PTOISA_FACE_DS(TFILLPAD_EXPAND, tfillpad_expand)

// -- conversion -----------------------------------------------------------------------------------

template <typename D, typename S, typename... W>
inline shim::Token<W...> TCVT(D &dst, S &src, RoundMode mode, SaturationMode saturation,
                              W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), s = shim::view(src);
    ptoisa_tcvt(core, &d, &s, static_cast<ptoisa_round>(mode), saturation == SaturationMode::ON);
    return shim::end();
}

template <typename D, typename S, typename... W>
inline shim::Token<W...> TCVT(D &dst, S &src, RoundMode mode, W &...events) {
    return TCVT(dst, src, mode, SaturationMode::OFF, events...);
}

template <typename D, typename S, typename T, typename... W, typename = shim::if_tile<T>>
inline shim::Token<W...> TCVT(D &dst, S &src, T &, RoundMode mode, W &...events) {
    return TCVT(dst, src, mode, SaturationMode::OFF, events...);
}

template <typename D, typename S, typename T, typename... W, typename = shim::if_tile<T>>
inline shim::Token<W...> TCVT(D &dst, S &src, T &, RoundMode mode, SaturationMode saturation,
                              W &...events) {
    return TCVT(dst, src, mode, saturation, events...);
}

template <QuantType Type, typename D, typename S, typename P, typename... W>
inline shim::Token<W...> TQUANT(D &dst, S &src, P &scale, W &...events) {
    static_assert(Type == QuantType::INT8_SYM, "without an offset only INT8_SYM");
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), s = shim::view(src), p = shim::view(scale);
    ptoisa_tquant_sym(core, &d, &s, &p);
    return shim::end();
}

// As A2/A3 has it: with scratch, and src is scaled in place.
template <QuantType Type, typename D, typename S, typename P, typename T, typename... W,
          typename = shim::if_tile<T>>
inline shim::Token<W...> TQUANT(D &dst, S &src, P &scale, T &tmp, W &...events) {
    static_assert(Type == QuantType::INT8_SYM, "without an offset only INT8_SYM");
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), s = shim::view(src), p = shim::view(scale);
    ptoisa_tile t = shim::view(tmp);
    ptoisa_tquant_sym_scratch(core, &d, &s, &p, &t);
    return shim::end();
}

template <QuantType Type, typename D, typename S, typename P, typename O, typename... W>
inline shim::Token<W...> TQUANT(D &dst, S &src, P &scale, O *offset, W &...events) {
    static_assert(Type == QuantType::INT8_ASYM, "with an offset only INT8_ASYM");
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), s = shim::view(src), p = shim::view(scale);
    ptoisa_tile o = shim::view(*offset);
    ptoisa_tquant_asym(core, &d, &s, &p, &o);
    return shim::end();
}

PTOISA_FACE_DSSS(TDEQUANT, tdequant)

// -- element by element ---------------------------------------------------------------------------

PTOISA_FACE_DSS(TADD, tadd)
PTOISA_FACE_DSS(TSUB, tsub)
PTOISA_FACE_DSS(TMUL, tmul)
PTOISA_FACE_DSS(TDIV, tdiv)
PTOISA_FACE_DSS(TMAX, tmax)
PTOISA_FACE_DSS(TMIN, tmin)
PTOISA_FACE_DSS(TAND, tand)
PTOISA_FACE_DSS(TOR, tor)
PTOISA_FACE_DSS(TSHL, tshl)
PTOISA_FACE_DSS(TSHR, tshr)
PTOISA_FACE_DSS(TPARTADD, tpartadd)
PTOISA_FACE_DSS(TPARTMUL, tpartmul)
PTOISA_FACE_DSS(TPARTMAX, tpartmax)
PTOISA_FACE_DSS(TPARTMIN, tpartmin)
PTOISA_FACE_DSS(TFUSEDMULADD, tfusedmuladd)
PTOISA_FACE_DSS(TMULADDDST, tmuladddst)
PTOISA_FACE_DSS(TFUSEDMULADDRELU, tfusedmuladdrelu)
PTOISA_FACE_DSS(TSUBRELU, tsubrelu)
PTOISA_FACE_DSSS(TXOR, txor)
PTOISA_FACE_DSSS(TREM, trem)
PTOISA_FACE_DSS_T(TFMOD, tfmod)
PTOISA_FACE_DSS_T(TPOW, tpow)
PTOISA_FACE_DSSS(TADDC, taddc)
PTOISA_FACE_DSSS(TSUBC, tsubc)
PTOISA_FACE_DSXS(TADDSC, taddsc)
PTOISA_FACE_DSXS(TSUBSC, tsubsc)
PTOISA_FACE_DSSS(TPRELU, tprelu)

PTOISA_FACE_DSX(TADDS, tadds)
PTOISA_FACE_DSX(TSUBS, tsubs)
PTOISA_FACE_DSX(TMULS, tmuls)
PTOISA_FACE_DSX(TDIVS, tdivs)
PTOISA_FACE_DSX(TMAXS, tmaxs)
PTOISA_FACE_DSX(TMINS, tmins)
PTOISA_FACE_DSX(TANDS, tands)
PTOISA_FACE_DSX(TORS, tors)
PTOISA_FACE_DSX(TSHLS, tshls)
PTOISA_FACE_DSX(TSHRS, tshrs)
PTOISA_FACE_DSX_TMP(TREMS, trems)
PTOISA_FACE_DSX_TMP(TFMODS, tfmods)
PTOISA_FACE_DSX_TMP(TPOWS, tpows)
PTOISA_FACE_DSX(TLRELU, tlrelu)
PTOISA_FACE_DSX(TAXPY, taxpy)
PTOISA_FACE_DSXS(TXORS, txors)

// dst = x / src
template <typename D, typename S, typename... W>
inline shim::Token<W...> TDIVS(D &dst, shim::Number<S> x, S &src, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), s = shim::view(src);
    ptoisa_tsdiv(core, &d, shim::number(x), &s);
    return shim::end();
}

PTOISA_FACE_DS(TEXP, texp)
PTOISA_FACE_DS(TLOG, tlog)
PTOISA_FACE_DS(TSQRT, tsqrt)
PTOISA_FACE_DS_TMP(TRSQRT, trsqrt)
PTOISA_FACE_DS(TRECIP, trecip)
PTOISA_FACE_DS(TABS, tabs)
PTOISA_FACE_DS(TNEG, tneg)
PTOISA_FACE_DS(TRELU, trelu)
PTOISA_FACE_DS(TNOT, tnot)

// -- reductions and broadcasts --------------------------------------------------------------------

PTOISA_FACE_DSS(TROWSUM, trowsum)
PTOISA_FACE_DSS(TROWMAX, trowmax)
PTOISA_FACE_DSS(TROWMIN, trowmin)
PTOISA_FACE_DSS(TROWPROD, trowprod)
PTOISA_FACE_DSS(TROWARGMAX, trowargmax)
PTOISA_FACE_DSS(TROWARGMIN, trowargmin)
PTOISA_FACE_DSSS(TROWARGMAX, trowargmax_values)
PTOISA_FACE_DSSS(TROWARGMIN, trowargmin_values)
PTOISA_FACE_DSS(TCOLARGMAX, tcolargmax)
PTOISA_FACE_DSS(TCOLARGMIN, tcolargmin)
PTOISA_FACE_DS(TPAIRREDUCESUM, tpairreducesum)
PTOISA_FACE_DS(TCOLMAX, tcolmax)
PTOISA_FACE_DS(TCOLMIN, tcolmin)
PTOISA_FACE_DS(TCOLPROD, tcolprod)

template <typename D, typename S, typename... W>
inline shim::Token<W...> TCOLSUM(D &dst, S &src, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), s = shim::view(src);
    ptoisa_tcolsum(core, &d, &s, NULL, false);
    return shim::end();
}

template <typename D, typename S, typename T, typename... W>
inline shim::Token<W...> TCOLSUM(D &dst, S &src, T &tmp, bool isBinary, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), s = shim::view(src), t = shim::view(tmp);
    ptoisa_tcolsum(core, &d, &s, &t, isBinary);
    return shim::end();
}

PTOISA_FACE_DS(TROWEXPAND, trowexpand)
PTOISA_FACE_DSS_TMP(TROWEXPANDADD, trowexpandadd)
PTOISA_FACE_DSS_TMP(TROWEXPANDSUB, trowexpandsub)
PTOISA_FACE_DSS_TMP(TROWEXPANDMUL, trowexpandmul)
PTOISA_FACE_DSS_TMP(TROWEXPANDDIV, trowexpanddiv)
PTOISA_FACE_DSS_TMP(TROWEXPANDMAX, trowexpandmax)
PTOISA_FACE_DSS_TMP(TROWEXPANDMIN, trowexpandmin)
PTOISA_FACE_DSS_TMP(TROWEXPANDEXPDIF, trowexpandexpdif)
PTOISA_FACE_DS(TCOLEXPAND, tcolexpand)
PTOISA_FACE_DSS(TCOLEXPANDADD, tcolexpandadd)
PTOISA_FACE_DSS(TCOLEXPANDSUB, tcolexpandsub)
PTOISA_FACE_DSS(TCOLEXPANDMUL, tcolexpandmul)
PTOISA_FACE_DSS(TCOLEXPANDDIV, tcolexpanddiv)
PTOISA_FACE_DSS(TCOLEXPANDMAX, tcolexpandmax)
PTOISA_FACE_DSS(TCOLEXPANDMIN, tcolexpandmin)
PTOISA_FACE_DSS(TCOLEXPANDEXPDIF, tcolexpandexpdif)

// -- compare and select ---------------------------------------------------------------------------

template <typename M, typename S0, typename S1, typename... W>
inline shim::Token<W...> TCMP(M &mask, S0 &src0, S1 &src1, CmpMode mode, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile m = shim::view(mask), s0 = shim::view(src0), s1 = shim::view(src1);
    ptoisa_tcmp(core, &m, &s0, &s1, static_cast<ptoisa_compare>(mode));
    return shim::end();
}

template <typename M, typename S, typename... W>
inline shim::Token<W...> TCMPS(M &mask, S &src, shim::Number<S> x, CmpMode mode, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile m = shim::view(mask), s = shim::view(src);
    ptoisa_tcmps(core, &m, &s, shim::number(x), static_cast<ptoisa_compare>(mode));
    return shim::end();
}

template <typename D, typename M, typename S0, typename S1, typename T, typename... W>
inline shim::Token<W...> TSEL(D &dst, M &mask, S0 &src0, S1 &src1, T &tmp, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), m = shim::view(mask), t = shim::view(tmp);
    ptoisa_tile s0 = shim::view(src0), s1 = shim::view(src1);
    ptoisa_tsel(core, &d, &m, &s0, &s1, &t);
    return shim::end();
}

template <typename D, typename M, typename S, typename T, typename... W>
inline shim::Token<W...> TSELS(D &dst, M &mask, S &src, T &tmp, shim::Number<D> x, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), m = shim::view(mask), s = shim::view(src);
    ptoisa_tile t = shim::view(tmp);
    ptoisa_tsels(core, &d, &m, &s, &t, shim::number(x));
    return shim::end();
}

// -- sorting and indices --------------------------------------------------------------------------

template <typename D, typename S, typename I> inline void TSORT32(D &dst, S &src, I &idx) {
    ptoisa_core *core = shim::begin();
    ptoisa_tile d = shim::view(dst), s = shim::view(src), i = shim::view(idx);
    ptoisa_tsort32(core, &d, &s, &i);
    shim::end();
}

template <typename D, typename S, typename I, typename T>
inline void TSORT32(D &dst, S &src, I &idx, T &) {
    TSORT32(dst, src, idx);
}

// How many elements a merge took from each list.
struct MrgSortExecutedNumList {
    uint16_t mrgSortList0;
    uint16_t mrgSortList1;
    uint16_t mrgSortList2;
    uint16_t mrgSortList3;
};

template <typename D, typename S, typename... W>
inline shim::Token<W...> TMRGSORT(D &dst, S &src, uint32_t blockLen, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), s = shim::view(src);
    ptoisa_tmrgsort(core, &d, &s, blockLen);
    return shim::end();
}

namespace shim {

inline void merge(ptoisa_core *core, const ptoisa_tile *dst, const ptoisa_tile *tmp,
                  const ptoisa_tile *const *lists, uint32_t count, MrgSortExecutedNumList &executed,
                  bool exhausted) {
    uint16_t taken[4] = {0, 0, 0, 0};
    ptoisa_tmrgsort_lists(core, dst, tmp, lists, count, taken, exhausted);
    executed.mrgSortList0 = taken[0];
    executed.mrgSortList1 = taken[1];
    executed.mrgSortList2 = taken[2];
    executed.mrgSortList3 = taken[3];
}

}  // namespace shim

template <typename D, typename T, typename S0, typename S1, bool exhausted, typename... W>
inline shim::Token<W...> TMRGSORT(D &dst, MrgSortExecutedNumList &executed, T &tmp, S0 &src0,
                                  S1 &src1, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), t = shim::view(tmp);
    ptoisa_tile s0 = shim::view(src0), s1 = shim::view(src1);
    const ptoisa_tile *lists[] = {&s0, &s1};
    shim::merge(core, &d, &t, lists, 2, executed, exhausted);
    return shim::end();
}

template <typename D, typename T, typename S0, typename S1, typename S2, bool exhausted,
          typename... W>
inline shim::Token<W...> TMRGSORT(D &dst, MrgSortExecutedNumList &executed, T &tmp, S0 &src0,
                                  S1 &src1, S2 &src2, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), t = shim::view(tmp);
    ptoisa_tile s0 = shim::view(src0), s1 = shim::view(src1), s2 = shim::view(src2);
    const ptoisa_tile *lists[] = {&s0, &s1, &s2};
    shim::merge(core, &d, &t, lists, 3, executed, exhausted);
    return shim::end();
}

template <typename D, typename T, typename S0, typename S1, typename S2, typename S3,
          bool exhausted, typename... W>
inline shim::Token<W...> TMRGSORT(D &dst, MrgSortExecutedNumList &executed, T &tmp, S0 &src0,
                                  S1 &src1, S2 &src2, S3 &src3, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), t = shim::view(tmp), s0 = shim::view(src0);
    ptoisa_tile s1 = shim::view(src1), s2 = shim::view(src2), s3 = shim::view(src3);
    const ptoisa_tile *lists[] = {&s0, &s1, &s2, &s3};
    shim::merge(core, &d, &t, lists, 4, executed, exhausted);
    return shim::end();
}

// The axis is the fourth argument; only rows are known well enough.
template <typename D, typename S, MaskPattern pattern, GatherAxis axis = GatherAxis::GATHER_ROW,
          typename... W>
inline shim::Token<W...> TGATHER(D &dst, S &src, W &...events) {
    static_assert(axis == GatherAxis::GATHER_ROW, "the shim gathers by mask along rows");
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), s = shim::view(src);
    ptoisa_tgather_mask(core, &d, &s, static_cast<ptoisa_pattern>(pattern));
    return shim::end();
}

PTOISA_FACE_DSSS(TGATHER, tgather)
PTOISA_FACE_DSS(TGATHERB, tgatherb)
PTOISA_FACE_DSS(TSCATTER, tscatter)

// dst[r][:] = table[idx[r]][:]; Elem: dst[r][c] = element idx[r][c] of the table, row after row.
template <Coalesce Mode = Coalesce::Row, GatherOOB Outside = GatherOOB::Undefined, typename D,
          typename G, typename I, typename... W>
inline shim::Token<W...> MGATHER(D &dst, G &table, I &idx, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile d = shim::view(dst), i = shim::view(idx);
    ptoisa_global g = shim::view(table);
    ptoisa_mgather_by(core, &d, &g, &i, Mode == Coalesce::Elem,
                      static_cast<ptoisa_outside>(Outside));
    return shim::end();
}

template <Coalesce Mode = Coalesce::Row, ScatterAtomicOp Atomic = ScatterAtomicOp::None, typename G,
          typename S, typename I, typename... W>
inline shim::Token<W...> MSCATTER(G &table, S &src, I &idx, W &...events) {
    ptoisa_core *core = shim::begin(events...);
    ptoisa_tile s = shim::view(src), i = shim::view(idx);
    ptoisa_global g = shim::view(table);
    ptoisa_mscatter_by(core, &g, &s, &i, Mode == Coalesce::Elem,
                       static_cast<ptoisa_scatter>(Atomic));
    return shim::end();
}

// -- matrices -------------------------------------------------------------------------------------

// c = a * b; c = c_in + a * b, or with c alone; c = a * b + bias. Phases let a device overlap the
// matmul with the store; they change no value.
#define PTOISA_FACE_MATMUL(NAME, name)                                                             \
    template <AccPhase Phase = AccPhase::Unspecified, typename C, typename A, typename B,          \
              typename... W>                                                                       \
    inline shim::Token<W...> NAME(C &c, A &a, B &b, W &...events) {                                \
        ptoisa_core *core = shim::begin(events...);                                                \
        ptoisa_tile vc = shim::view(c), va = shim::view(a), vb = shim::view(b);                    \
        ptoisa_##name(core, &vc, &va, &vb);                                                        \
        return shim::end();                                                                        \
    }                                                                                              \
                                                                                                   \
    template <AccPhase Phase = AccPhase::Unspecified, typename C, typename I, typename A,          \
              typename B, typename... W, typename = shim::if_tile<B>>                              \
    inline shim::Token<W...> NAME##_ACC(C &c, I &c_in, A &a, B &b, W &...events) {                 \
        ptoisa_core *core = shim::begin(events...);                                                \
        ptoisa_tile vc = shim::view(c), vi = shim::view(c_in);                                     \
        ptoisa_tile va = shim::view(a), vb = shim::view(b);                                        \
        ptoisa_##name##_acc(core, &vc, &vi, &va, &vb);                                             \
        return shim::end();                                                                        \
    }                                                                                              \
                                                                                                   \
    template <AccPhase Phase = AccPhase::Unspecified, typename C, typename A, typename B,          \
              typename... W>                                                                       \
    inline shim::Token<W...> NAME##_ACC(C &c, A &a, B &b, W &...events) {                          \
        return NAME##_ACC<Phase>(c, c, a, b, events...);                                           \
    }                                                                                              \
                                                                                                   \
    template <AccPhase Phase = AccPhase::Unspecified, typename C, typename A, typename B,          \
              typename S, typename... W>                                                           \
    inline shim::Token<W...> NAME##_BIAS(C &c, A &a, B &b, S &bias, W &...events) {                \
        ptoisa_core *core = shim::begin(events...);                                                \
        ptoisa_tile vc = shim::view(c), va = shim::view(a), vb = shim::view(b);                    \
        ptoisa_tile vs = shim::view(bias);                                                         \
        ptoisa_##name##_bias(core, &vc, &va, &vb, &vs);                                            \
        return shim::end();                                                                        \
    }

PTOISA_FACE_MATMUL(TMATMUL, tmatmul)
PTOISA_FACE_MATMUL(TGEMV, tgemv)

}  // namespace pto

#endif
