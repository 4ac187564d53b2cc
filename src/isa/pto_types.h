// The C++ face of the shim, second part: windows of global memory, tiles, and binding them.
//
// Sizes and layouts are template arguments, checked when compiled; -1 (DYNAMIC) leaves a size to
// the constructor. An object holds its pointer and its dynamic sizes only: shim::view() makes the
// ptoisa_tile or ptoisa_global that the C functions take, mostly of constants.

#ifndef PTOISA_PTO_TYPES_H
#define PTOISA_PTO_TYPES_H

#include "pto_core.h"

namespace pto {

constexpr int DYNAMIC = -1;

// Of <pto/common/constants.hpp>: numbers by name, NUM_<n> = n; bytes of a block of UB and of a row of
// a box, rows of a box.
#define PTOISA_FACE_NUMBERS(N)                                                                     \
    N(1)                                                                                           \
    N(2) N(3) N(4) N(5) N(6) N(7) N(8) N(16) N(32) N(64) N(77) N(96) N(128) N(256) N(512) N(1024)
#define PTOISA_FACE_NUMBER(n) constexpr int NUM_##n = n;
PTOISA_FACE_NUMBERS(PTOISA_FACE_NUMBER)
#undef PTOISA_FACE_NUMBER
#undef PTOISA_FACE_NUMBERS
constexpr int BLOCK_BYTE_SIZE = 32;
constexpr int C0_SIZE_BYTE = 32;
constexpr int FRACTAL_NZ_ROW = 16;

// -- enumerations ---------------------------------------------------------------------------------

enum class RoundMode {
    CAST_NONE = PTOISA_CAST_NONE,
    CAST_RINT = PTOISA_CAST_RINT,
    CAST_ROUND = PTOISA_CAST_ROUND,
    CAST_FLOOR = PTOISA_CAST_FLOOR,
    CAST_CEIL = PTOISA_CAST_CEIL,
    CAST_TRUNC = PTOISA_CAST_TRUNC,
    CAST_ODD = PTOISA_CAST_ODD
};

enum class CmpMode {
    EQ = PTOISA_EQ,
    NE = PTOISA_NE,
    LT = PTOISA_LT,
    LE = PTOISA_LE,
    GT = PTOISA_GT,
    GE = PTOISA_GE
};

enum class MaskPattern {
    P0101 = PTOISA_P0101,
    P1010 = PTOISA_P1010,
    P0001 = PTOISA_P0001,
    P0010 = PTOISA_P0010,
    P0100 = PTOISA_P0100,
    P1000 = PTOISA_P1000,
    P1111 = PTOISA_P1111
};

// Or the value of a float, whose bits are the upper half.
enum class PadValue : uint64_t {
    Null = PTOISA_PAD_NULL,
    Zero = PTOISA_PAD_ZERO,
    Max = PTOISA_PAD_MAX,
    Min = PTOISA_PAD_MIN,
    Custom = PTOISA_PAD_CUSTOM
};

// gcc from 11, clang from 9.
#ifdef __has_builtin
#if __has_builtin(__builtin_bit_cast)
constexpr PadValue PadValueCustom(float value) {
    return static_cast<PadValue>(static_cast<uint64_t>(__builtin_bit_cast(uint32_t, value)) << 32 |
                                 static_cast<uint64_t>(PadValue::Custom));
}
#endif
#endif

enum class SaturationMode { ON, OFF };
enum class AtomicType { AtomicNone, AtomicAdd };
enum class ReluPreMode { NoRelu, NormalRelu };
enum class QuantType { MXFP8, MXFP4_E2M1, INT8_SYM, INT8_ASYM };
enum class Coalesce { Row, Elem };
enum class GatherAxis { GATHER_ROW, GATHER_COL };
enum class GatherOOB {
    Undefined = PTOISA_OUTSIDE_FAULT,
    Clamp = PTOISA_OUTSIDE_CLAMP,
    Wrap = PTOISA_OUTSIDE_WRAP,
    Zero = PTOISA_OUTSIDE_ZERO
};
enum class ScatterAtomicOp {
    None = PTOISA_SCATTER_REPLACE,
    Add = PTOISA_SCATTER_ADD,
    Max = PTOISA_SCATTER_MAX,
    Min = PTOISA_SCATTER_MIN
};
// No instruction of the shim takes these two; their values are assumed.
enum class ScatterAxis { SCATTER_ROW, SCATTER_COL };
enum class HistByte { BYTE_0, BYTE_1, BYTE_2, BYTE_3 };
enum class STPhase { Unspecified, Partial, Final };
enum class AccPhase { Unspecified, Partial, Final };
enum class Layout { ND, DN, NZ, SCALE, NC1HWC0, NCHW, NHWC, NDC1HWC0, NCDHW, FRACTAL_Z };

// The memories that the shim has come first, as in ptoisa_memory.
enum class TileType {
    Vec = PTOISA_VEC,
    Mat = PTOISA_MAT,
    Left = PTOISA_LEFT,
    Right = PTOISA_RIGHT,
    Acc = PTOISA_ACC,
    Bias = PTOISA_BIAS,
    Scaling = PTOISA_SCALING,
    ScaleLeft,
    ScaleRight,
    Ctrl
};

enum class BLayout { RowMajor, ColMajor };            // order of elements, or of boxes
enum class SLayout { NoneBox, RowMajor, ColMajor };   // order inside a box
enum class CompactMode { Null, Normal, RowPlusOne };  // the shim stores all alike

struct TileConfig {
    static constexpr int alignedSize = 32;
    static constexpr int fixedRowSize = 16;
    static constexpr int fractalABSize = 512;
    static constexpr int fractalCSize = 1024;
    static constexpr int fractalMxSize = 32;
};

namespace shim {

// The element type of T.
template <typename T> constexpr ptoisa_dtype dtype_of() {
    if constexpr (std::is_same<T, half>::value) {
        return PTOISA_F16;
    } else if constexpr (std::is_same<T, bfloat16_t>::value) {
        return PTOISA_BF16;
    } else if constexpr (std::is_same<T, float>::value) {
        return PTOISA_F32;
    } else if constexpr (std::is_same<T, double>::value) {
        return PTOISA_F64;
    } else {
        static_assert(std::is_integral<T>::value, "the shim has no tiles of this type");
        constexpr bool is_signed = std::is_signed<T>::value;
        return sizeof(T) == 1   ? is_signed ? PTOISA_I8 : PTOISA_U8
               : sizeof(T) == 2 ? is_signed ? PTOISA_I16 : PTOISA_U16
               : sizeof(T) == 4 ? is_signed ? PTOISA_I32 : PTOISA_U32
               : is_signed      ? PTOISA_I64
                                : PTOISA_U64;
    }
}

template <typename N>
using if_number = std::enable_if_t<std::is_integral<N>::value || std::is_enum<N>::value>;

// -- shapes and strides ---------------------------------------------------------------------------

constexpr int64_t product(int64_t a, int64_t b) {
    return a == DYNAMIC || b == DYNAMIC ? DYNAMIC : a * b;
}

constexpr int64_t quotient(int64_t a, int64_t b) {
    return a == DYNAMIC ? DYNAMIC : a / b;
}

// Five numbers, each a template argument or, where that is DYNAMIC, the constructor's.
template <int64_t N1, int64_t N2, int64_t N3, int64_t N4, int64_t N5> struct Five {
    static constexpr int64_t fixed[5] = {N1, N2, N3, N4, N5};
    static constexpr size_t dynamicCount =
        static_cast<size_t>(N1 == DYNAMIC) + static_cast<size_t>(N2 == DYNAMIC) +
        static_cast<size_t>(N3 == DYNAMIC) + static_cast<size_t>(N4 == DYNAMIC) +
        static_cast<size_t>(N5 == DYNAMIC);
    int64_t value[5];

    constexpr Five() : value{N1, N2, N3, N4, N5} {
        static_assert(dynamicCount == 0, "a value for each DYNAMIC dimension is missing");
    }

    // All five values, or the DYNAMIC ones in order.
    template <typename First, typename... Others, typename = if_number<First>,
              typename = std::void_t<if_number<Others>...>>
    constexpr Five(First first, Others... others) : value{N1, N2, N3, N4, N5} {
        constexpr size_t count = 1 + sizeof...(Others);
        static_assert(count == 5 || count == dynamicCount,
                      "five values, or as many as there are DYNAMIC dimensions");
        const int64_t given[] = {static_cast<int64_t>(first), static_cast<int64_t>(others)...};
        size_t next = 0;
        for (size_t i = 0; i < 5; i++) {
            if (fixed[i] == DYNAMIC) {
                value[i] = given[count == 5 ? i : next++];
            }
        }
    }
};

}  // namespace shim

template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC,
          int64_t N5 = DYNAMIC>
struct Shape : shim::Five<N1, N2, N3, N4, N5> {
    using shim::Five<N1, N2, N3, N4, N5>::Five;
    static constexpr int64_t staticShape[5] = {N1, N2, N3, N4, N5};
};

template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC,
          int64_t N5 = DYNAMIC>
struct Stride : shim::Five<N1, N2, N3, N4, N5> {
    using shim::Five<N1, N2, N3, N4, N5>::Five;
    static constexpr int64_t staticStride[5] = {N1, N2, N3, N4, N5};
};

// Five values without template arguments are all DYNAMIC.
template <typename A, typename B, typename C, typename D, typename E>
Shape(A, B, C, D, E) -> Shape<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC>;
template <typename A, typename B, typename C, typename D, typename E>
Stride(A, B, C, D, E) -> Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC>;

namespace shim {

// Shape of a window, and strides of a whole matrix, of Rows x Cols elements; NZ: of boxes of 16
// rows x 32 bytes, column of boxes by column of boxes.
template <typename T, int64_t Rows, int64_t Cols, Layout L> struct Shape2D {
    using type = Shape<1, 1, 1, Rows, Cols>;
    static constexpr type make(int64_t rows, int64_t cols) {
        return type(1, 1, 1, rows, cols);
    }
};

template <typename T, int64_t Rows, int64_t Cols> struct Shape2D<T, Rows, Cols, Layout::NZ> {
    static constexpr int64_t box = 32 / static_cast<int64_t>(sizeof(T));
    using type = Shape<1, quotient(Cols, box), quotient(Rows, 16), 16, box>;
    static constexpr type make(int64_t rows, int64_t cols) {
        return type(1, cols / box, rows / 16, 16, box);
    }
};

template <typename T, int64_t Rows, int64_t Cols, Layout L> struct Stride2D {
    static constexpr int64_t all = product(Rows, Cols);
    using type = Stride<all, all, all, Cols, 1>;
    static constexpr type make(int64_t rows, int64_t cols) {
        return type(rows * cols, rows * cols, rows * cols, cols, 1);
    }
};

template <typename T, int64_t Rows, int64_t Cols> struct Stride2D<T, Rows, Cols, Layout::DN> {
    static constexpr int64_t all = product(Rows, Cols);
    using type = Stride<all, all, all, 1, Rows>;
    static constexpr type make(int64_t rows, int64_t cols) {
        return type(rows * cols, rows * cols, rows * cols, 1, rows);
    }
};

template <typename T, int64_t Rows, int64_t Cols> struct Stride2D<T, Rows, Cols, Layout::NZ> {
    static constexpr int64_t box = 32 / static_cast<int64_t>(sizeof(T));
    using type = Stride<product(Rows, Cols), product(Rows, box), 16 * box, box, 1>;
    static constexpr type make(int64_t rows, int64_t cols) {
        return type(rows * cols, rows * box, 16 * box, box, 1);
    }
};

// Base, made of two sizes, of the one that is DYNAMIC, or of none.
template <typename Maker, int64_t Rows, int64_t Cols> struct Of2D : Maker::type {
    constexpr Of2D() : Maker::type(Maker::make(Rows, Cols)) {
        static_assert(Rows != DYNAMIC && Cols != DYNAMIC, "a value for a DYNAMIC size is missing");
    }
    template <typename N, typename = if_number<N>>
    constexpr explicit Of2D(N n)
        : Maker::type(Maker::make(Rows == DYNAMIC ? static_cast<int64_t>(n) : Rows,
                                  Cols == DYNAMIC ? static_cast<int64_t>(n) : Cols)) {
        static_assert((Rows == DYNAMIC) != (Cols == DYNAMIC), "one value for one DYNAMIC size");
    }
    template <typename R, typename C, typename = if_number<R>, typename = if_number<C>>
    constexpr Of2D(R rows, C cols)
        : Maker::type(Maker::make(static_cast<int64_t>(rows), static_cast<int64_t>(cols))) {
    }
};

}  // namespace shim

template <typename T, int64_t Rows, int64_t Cols, Layout L = Layout::ND>
struct TileShape2D : shim::Of2D<shim::Shape2D<T, Rows, Cols, L>, Rows, Cols> {
    using shim::Of2D<shim::Shape2D<T, Rows, Cols, L>, Rows, Cols>::Of2D;
};

template <typename T, int64_t Rows, int64_t Cols, Layout L = Layout::ND>
struct BaseShape2D : shim::Of2D<shim::Stride2D<T, Rows, Cols, L>, Rows, Cols> {
    using shim::Of2D<shim::Stride2D<T, Rows, Cols, L>, Rows, Cols>::Of2D;
};

// -- windows of global memory ---------------------------------------------------------------------

template <typename T, typename ShapeT, typename StrideT, Layout L = Layout::ND> class GlobalTensor {
  public:
    using DType = T;
    using RawDType = T;
    using Shape = ShapeT;
    using Stride = StrideT;
    static constexpr Layout layout = L;
    static constexpr int64_t staticShape[5] = {ShapeT::fixed[0], ShapeT::fixed[1], ShapeT::fixed[2],
                                               ShapeT::fixed[3], ShapeT::fixed[4]};
    static constexpr int64_t staticStride[5] = {StrideT::fixed[0], StrideT::fixed[1],
                                                StrideT::fixed[2], StrideT::fixed[3],
                                                StrideT::fixed[4]};

    explicit GlobalTensor(T *data) : data_(data) {
    }
    GlobalTensor(T *data, const ShapeT &shape) : data_(data), shape_(shape) {
    }
    GlobalTensor(T *data, const ShapeT &shape, const StrideT &stride)
        : data_(data), shape_(shape), stride_(stride) {
    }

    T *data() const {
        return data_;
    }
    void SetAddr(T *data) {
        data_ = data;
    }
    int64_t GetShape(int dim) const {
        return shape_.value[dim];
    }
    int64_t GetStride(int dim) const {
        return stride_.value[dim];
    }
    // An element by its index in all five dimensions, or in the last two.
    T GetElement(int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4) const {
        return data_[Offset(i0, i1, i2, i3, i4)];
    }
    T GetElement(int64_t row, int64_t col) const {
        return GetElement(0, 0, 0, row, col);
    }
    void SetElement(int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4, T value) const {
        data_[Offset(i0, i1, i2, i3, i4)] = value;
    }
    void SetElement(int64_t row, int64_t col, T value) const {
        SetElement(0, 0, 0, row, col, value);
    }
    int64_t Offset(int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4) const {
        return i0 * stride_.value[0] + i1 * stride_.value[1] + i2 * stride_.value[2] +
               i3 * stride_.value[3] + i4 * stride_.value[4];
    }

    template <int dim> void SetShape(int64_t n) {
        static_assert(ShapeT::fixed[dim] == DYNAMIC, "only a DYNAMIC dimension can be set");
        shape_.value[dim] = n;
    }
    template <int dim> void SetStride(int64_t n) {
        static_assert(StrideT::fixed[dim] == DYNAMIC, "only a DYNAMIC stride can be set");
        stride_.value[dim] = n;
    }

  private:
    T *data_;
    ShapeT shape_;
    StrideT stride_;
};

// -- tiles ----------------------------------------------------------------------------------------

template <TileType Loc_, typename T, int Rows_, int Cols_, BLayout BFractal_ = BLayout::RowMajor,
          int RowValid_ = Rows_, int ColValid_ = Cols_, SLayout SFractal_ = SLayout::NoneBox,
          int SFractalSize_ = TileConfig::fractalABSize, PadValue PadVal_ = PadValue::Null,
          CompactMode Compact_ = CompactMode::Null>
class Tile {
  public:
    using DType = T;
    static constexpr TileType Loc = Loc_;
    static constexpr int Rows = Rows_;
    static constexpr int Cols = Cols_;
    static constexpr int ValidRow = RowValid_;
    static constexpr int ValidCol = ColValid_;
    static constexpr int Numel = Rows_ * Cols_;
    static constexpr BLayout BFractal = BFractal_;
    static constexpr SLayout SFractal = SFractal_;
    static constexpr int SFractalSize = SFractalSize_;
    static constexpr PadValue PadVal = PadVal_;
    static constexpr CompactMode Compact = Compact_;
    static constexpr bool isRowMajor = BFractal_ == BLayout::RowMajor;
    static constexpr bool isBoxedLayout = SFractal_ != SLayout::NoneBox;
    static constexpr bool isInnerRowMajor = SFractal_ == SLayout::RowMajor;
    static constexpr int RowStride = isRowMajor ? Cols_ : 1;
    static constexpr int ColStride = isRowMajor ? 1 : Rows_;
    static constexpr int InnerRows = !isBoxedLayout                               ? 1
                                     : SFractalSize_ != TileConfig::fractalABSize ? 16
                                     : isInnerRowMajor                            ? 16
                                                       : 32 / static_cast<int>(sizeof(T));
    static constexpr int InnerCols = !isBoxedLayout                               ? 1
                                     : SFractalSize_ == TileConfig::fractalCSize  ? 16
                                     : SFractalSize_ == TileConfig::fractalMxSize ? 2
                                     : isInnerRowMajor ? 32 / static_cast<int>(sizeof(T))
                                                       : 16;
    static constexpr int InnerNumel = InnerRows * InnerCols;

    static_assert(Rows_ > 0 && Cols_ > 0, "a tile has rows and columns");
    static_assert(Loc_ <= TileType::Scaling, "the shim does not have this memory");
    static_assert(RowValid_ >= DYNAMIC && RowValid_ <= Rows_ && ColValid_ >= DYNAMIC &&
                      ColValid_ <= Cols_,
                  "more is valid than allocated");
    static_assert(isBoxedLayout || !isRowMajor || Cols_ * sizeof(T) % 32 == 0,
                  "rows are not a multiple of 32 bytes");
    static_assert(isBoxedLayout || isRowMajor || Rows_ * sizeof(T) % 32 == 0,
                  "columns are not a multiple of 32 bytes");
    static_assert(Rows_ % InnerRows == 0 || (Loc_ == TileType::Vec && Rows_ == 1),
                  "rows are not whole boxes");
    static_assert(Cols_ % InnerCols == 0, "columns are not whole boxes");
    static_assert(!isBoxedLayout ||
                      SFractalSize_ == (Loc_ == TileType::Acc ? TileConfig::fractalCSize
                                                              : TileConfig::fractalABSize),
                  "boxes are of 1024 bytes in Acc, of 512 elsewhere");

    // Takes the DYNAMIC valid sizes, rows first. Without them nothing is valid until SetValid*.
    Tile() = default;

    template <typename N, typename = shim::if_number<N>> explicit Tile(N n) {
        static_assert((RowValid_ == DYNAMIC) != (ColValid_ == DYNAMIC),
                      "one valid size, for the one that is DYNAMIC");
        (RowValid_ == DYNAMIC ? valid_rows_ : valid_cols_) = static_cast<uint32_t>(n);
    }

    template <typename R, typename C, typename = shim::if_number<R>, typename = shim::if_number<C>>
    Tile(R rows, C cols)
        : valid_rows_(static_cast<uint32_t>(rows)), valid_cols_(static_cast<uint32_t>(cols)) {
        static_assert(RowValid_ == DYNAMIC && ColValid_ == DYNAMIC,
                      "two valid sizes only if both are DYNAMIC");
    }

    int GetValidRow() const {
        return RowValid_ == DYNAMIC ? static_cast<int>(valid_rows_) : RowValid_;
    }
    int GetValidCol() const {
        return ColValid_ == DYNAMIC ? static_cast<int>(valid_cols_) : ColValid_;
    }
    void SetValidRow(int n) {
        static_assert(RowValid_ == DYNAMIC, "only a DYNAMIC size can be set");
        valid_rows_ = static_cast<uint32_t>(n);
    }
    void SetValidCol(int n) {
        static_assert(ColValid_ == DYNAMIC, "only a DYNAMIC size can be set");
        valid_cols_ = static_cast<uint32_t>(n);
    }
    void SetValidShape(int rows, int cols) {
        static_assert(RowValid_ == DYNAMIC && ColValid_ == DYNAMIC,
                      "only DYNAMIC sizes can be set");
        valid_rows_ = static_cast<uint32_t>(rows);
        valid_cols_ = static_cast<uint32_t>(cols);
    }

    T *data() const {
        return static_cast<T *>(data_);
    }

    // Says that k is a multiple of its block; the shim has no use for it.
    void SetKAligned(bool is_aligned) {
        is_k_aligned_ = is_aligned;
    }
    bool GetKAligned() const {
        return is_k_aligned_;
    }

    // Of all that is allocated.
    static constexpr uint32_t GetSizeInBytes() {
        return static_cast<uint32_t>(Rows_) * static_cast<uint32_t>(Cols_) *
               static_cast<uint32_t>(sizeof(T));
    }

    // The element at an offset from data(), by the scalar unit.
    T GetValue(uint32_t offset) const {
        T value;
        shim::fence();
        memcpy(&value, static_cast<const uint8_t *>(data_) + offset * sizeof(T), sizeof value);
        return value;
    }
    void SetValue(uint32_t offset, T value) {
        memcpy(static_cast<uint8_t *>(data_) + offset * sizeof(T), &value, sizeof value);
        shim::fence();
    }

    // The element in row r and column c. The shim's and the simulator's, not the device's.
    T GetElement(int r, int c) const {
        return GetValue(Offset(r, c));
    }
    void SetElement(int r, int c, T value) {
        SetValue(Offset(r, c), value);
    }

    // Where element (r, c) is, in elements from data().
    static constexpr uint32_t Offset(int r, int c) {
        if (!isBoxedLayout) {
            return static_cast<uint32_t>(r * RowStride + c * ColStride);
        }
        int box_r = r / InnerRows, in_r = r % InnerRows, box_c = c / InnerCols,
            in_c = c % InnerCols;
        return static_cast<uint32_t>(
            (isRowMajor ? box_r * Cols_ * InnerRows + box_c * InnerNumel
                        : box_c * Rows_ * InnerCols + box_r * InnerNumel) +
            (isInnerRowMajor ? in_r * InnerCols + in_c : in_c * InnerRows + in_r));
    }

    // Binds the tile to memory. Kernels say TASSIGN.
    void assignData(void *data) {
        data_ = data;
    }

  private:
    void *data_ = NULL;
    uint32_t valid_rows_ = 0;
    uint32_t valid_cols_ = 0;
    bool is_k_aligned_ = false;
};

// The layouts of the matrix unit. Left is Nz on A5 and in PTO-ISA's own simulator, Zz on A2/A3.
template <typename T, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileLeft = Tile<TileType::Left, T, Rows, Cols,
                      shim::default_arch == NPUArch::A5 ? BLayout::ColMajor : BLayout::RowMajor,
                      RowValid, ColValid, SLayout::RowMajor, TileConfig::fractalABSize>;

template <typename T, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileRight = Tile<TileType::Right, T, Rows, Cols, BLayout::RowMajor, RowValid, ColValid,
                       SLayout::ColMajor, TileConfig::fractalABSize>;

template <typename T, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileAcc = Tile<TileType::Acc, T, Rows, Cols, BLayout::ColMajor, RowValid, ColValid,
                     SLayout::RowMajor, TileConfig::fractalCSize>;

template <typename T, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileLeftCompact = TileLeft<T, Rows, Cols, RowValid, ColValid>;
template <typename T, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileRightCompact = TileRight<T, Rows, Cols, RowValid, ColValid>;
template <typename T, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileAccCompact = TileAcc<T, Rows, Cols, RowValid, ColValid>;

// -- as the C functions see them ------------------------------------------------------------------

namespace shim {

template <typename T> struct is_tile : std::false_type {};
template <TileType Loc, typename T, int R, int C, BLayout B, int Vr, int Vc, SLayout S, int F,
          PadValue P, CompactMode M>
struct is_tile<Tile<Loc, T, R, C, B, Vr, Vc, S, F, P, M>> : std::true_type {};

template <typename T> struct is_global : std::false_type {};
template <typename T, typename Sh, typename St, Layout L>
struct is_global<GlobalTensor<T, Sh, St, L>> : std::true_type {};

template <typename T>
constexpr bool is_tile_v = is_tile<std::remove_cv_t<std::remove_reference_t<T>>>::value;
template <typename T>
constexpr bool is_global_v = is_global<std::remove_cv_t<std::remove_reference_t<T>>>::value;

template <typename T> constexpr ptoisa_layout layout_of() {
    return !T::isBoxedLayout    ? T::isRowMajor ? PTOISA_ROW_MAJOR : PTOISA_COL_MAJOR
           : T::isInnerRowMajor ? T::isRowMajor ? PTOISA_ZZ : PTOISA_NZ
           : T::isRowMajor      ? PTOISA_ZN
                                : PTOISA_NN;
}

template <typename T> inline std::enable_if_t<is_tile_v<T>, ptoisa_tile> view(const T &tile) {
    ptoisa_tile made =
        ptoisa_tile_make(tile.data(), dtype_of<std::remove_cv_t<typename T::DType>>(),
                         static_cast<ptoisa_memory>(T::Loc), layout_of<T>(),
                         static_cast<uint32_t>(T::Rows), static_cast<uint32_t>(T::Cols));
    made.pad = static_cast<uint8_t>(T::PadVal);
    made.is_dynamic = T::ValidCol == DYNAMIC;
    made.pad_value =
        ptoisa_f32_from_bits(static_cast<uint32_t>(static_cast<uint64_t>(T::PadVal) >> 32));
    made.valid_rows = static_cast<uint32_t>(tile.GetValidRow());
    made.valid_cols = static_cast<uint32_t>(tile.GetValidCol());
    return made;
}

template <typename T> inline std::enable_if_t<is_global_v<T>, ptoisa_global> view(const T &global) {
    ptoisa_global made;
    made.data = const_cast<void *>(static_cast<const volatile void *>(global.data()));
    made.dtype = dtype_of<std::remove_cv_t<typename T::DType>>();
    for (int dim = 0; dim < 5; dim++) {
        made.shape[dim] = global.GetShape(dim);
        made.stride[dim] = global.GetStride(dim);
    }
    return made;
}

// Where a tile at this offset of its memory begins, or NULL after a fault. An offset that is an address
// of the thread's memories is one.
inline void *memory_at(ptoisa_tile made, uint64_t offset) {
    Thread &mine = thread();
    bind_memories(mine);
    const uint64_t block = reinterpret_cast<uintptr_t>(mine.block);
    if (offset >= block && offset - block < mine.block_size) {
        return mine.block + (offset - block);
    }
    made.data = NULL;
    if (offset > UINT32_MAX) {
        ptoisa_fault(&mine.core, PTOISA_NOP, "TASSIGN: %p is no address of this thread's %s",
                     reinterpret_cast<void *>(static_cast<uintptr_t>(offset)),
                     ptoisa_memory_name(static_cast<ptoisa_memory>(made.memory)));
    } else if (offset + ptoisa_tile_bytes(&made) > mine.memory_size[made.memory] &&
               offset < mine.core.machine->memory_size[made.memory]) {
        ptoisa_fault(&mine.core, PTOISA_NOP, "TASSIGN: a tile ends at %llu of %llu bytes",
                     static_cast<unsigned long long>(offset + ptoisa_tile_bytes(&made)),
                     static_cast<unsigned long long>(mine.memory_size[made.memory]));
    } else {
        ptoisa_tassign(&mine.core, &made, offset);
    }
    return made.data;
}

constexpr uint64_t capacity_of(TileType memory) {
    constexpr bool is_a5 = default_arch == NPUArch::A5;
    switch (memory) {
    case TileType::Vec:
        return PTOISA_AS_SIMULATOR ? PTOISA_SIMULATOR_UB : (is_a5 ? 256 : 184) << 10;
    case TileType::Mat: return 512 << 10;
    case TileType::Left:
    case TileType::Right: return 64 << 10;
    case TileType::Acc: return (is_a5 ? 256 : 128) << 10;
    case TileType::Bias: return (is_a5 ? 4 : 1) << 10;
    case TileType::Scaling: return (is_a5 ? 4 : 2) << 10;
    default: return 0;
    }
}

}  // namespace shim

// Where element (r, c) of a tile is, in elements from data(), in its layout.
template <typename TileT> constexpr uint32_t GetTileElementOffset(int r, int c) {
    static_assert(shim::is_tile_v<TileT>, "of a tile");
    return TileT::Offset(r, c);
}

// -- binding --------------------------------------------------------------------------------------

// Binds a tile to a byte offset in its memory of this thread's core. Offsets end at the machine's
// size of that memory; for UB on A2/A3 that leaves out the 8 KiB that row-expands use. A pointer,
// or an integer that is one into the thread's memories, is taken as it is.
template <typename T, typename Address>
inline std::enable_if_t<shim::is_tile_v<T>> TASSIGN(T &tile, Address address) {
    if constexpr (std::is_pointer<Address>::value) {
        tile.assignData(const_cast<void *>(static_cast<const volatile void *>(address)));
    } else {
        tile.assignData(shim::memory_at(shim::view(tile), static_cast<uint64_t>(address)));
    }
}

// The same with an offset that is checked when compiled.
template <uint64_t Address, typename T>
inline std::enable_if_t<shim::is_tile_v<T>> TASSIGN(T &tile) {
    static_assert(Address % 32 == 0, "a tile begins at a multiple of 32 bytes");
    static_assert(Address + static_cast<uint64_t>(T::Numel) * sizeof(typename T::DType) <=
                      shim::capacity_of(T::Loc),
                  "a tile ends beyond its memory");
    TASSIGN(tile, Address);
}

// Rebinds a window.
template <typename T, typename P>
inline std::enable_if_t<shim::is_global_v<T>> TASSIGN(T &global, P *data) {
    global.SetAddr(data);
}

// Makes dst a view of the bytes of src.
template <typename D, typename S> inline RecordEvent TRESHAPE(D &dst, S &src) {
    static_assert(D::Loc == S::Loc, "a view is in the same memory");
    static_assert(D::Numel * sizeof(typename D::DType) <= S::Numel * sizeof(typename S::DType),
                  "a view is not larger");
    dst.assignData(static_cast<void *>(src.data()));
    return RecordEvent();
}

}  // namespace pto

#endif
