// The C++ face of the shim: its types and constructors as PTO-ISA has them, bindings, 16-bit
// floats, the same bits as the C functions for every family of instructions, and its faults.

#include <stdlib.h>

#include <string>
#include <thread>
#include <vector>

// The memories of a core come from this, so that there can be none.
static void *face_calloc(size_t count, size_t size);
#define calloc face_calloc
#include "isa_face.h"
#undef calloc

#include "isa_abort.h"

using namespace pto;

// -- types ----------------------------------------------------------------------------------------

using Matrix = Tile<TileType::Vec, float, 16, 32>;
using Dynamic = Tile<TileType::Vec, float, 16, 32, BLayout::RowMajor, -1, -1>;
using Column = Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor, -1, 1>;

// clang-format off
static_assert(Matrix::Rows == 16 && Matrix::Cols == 32 && Matrix::Numel == 512, "");
static_assert(Matrix::ValidRow == 16 && Matrix::ValidCol == 32, "");
static_assert(Dynamic::ValidRow == DYNAMIC && Column::ValidCol == 1, "");
static_assert(Matrix::isRowMajor && !Column::isRowMajor && !Matrix::isBoxedLayout, "");
static_assert(Matrix::RowStride == 32 && Matrix::ColStride == 1 && Column::ColStride == 16, "");
static_assert(std::is_same<Matrix::DType, float>::value && Matrix::Loc == TileType::Vec, "");
static_assert(Matrix::PadVal == PadValue::Null, "");
static_assert(TileRight<half, 32, 16>::InnerRows == 16 && TileRight<half, 32, 16>::InnerCols == 16, "");
static_assert(TileRight<float, 32, 16>::InnerRows == 8 && TileLeft<float, 16, 32>::InnerCols == 8, "");
static_assert(TileAcc<float, 16, 32>::InnerCols == 16 && TileAcc<float, 16, 32>::InnerNumel == 256, "");
static_assert(sizeof(half) == 2 && sizeof(bfloat16_t) == 2, "");
// clang-format on

TEST(face__tiles_take_their_dynamic_sizes_in_order) {
    Dynamic both(3, 5);
    assert_int_equal(both.GetValidRow(), 3);
    assert_int_equal(both.GetValidCol(), 5);
    both.SetValidRow(4);
    both.SetValidCol(6);
    assert_int_equal(both.GetValidRow() * 100 + both.GetValidCol(), 406);
    both.SetValidShape(7, 8);
    assert_int_equal(both.GetValidRow() * 100 + both.GetValidCol(), 708);
    Column rows(9);
    assert_int_equal(rows.GetValidRow() * 100 + rows.GetValidCol(), 901);
    Tile<TileType::Vec, float, 1, 32, BLayout::RowMajor, 1, -1> cols(11);
    assert_int_equal(cols.GetValidRow() * 100 + cols.GetValidCol(), 111);
    Matrix fixed;
    assert_int_equal(fixed.GetValidRow() * 100 + fixed.GetValidCol(), 1632);
    TileAcc<float, 16, 32, -1, 32> acc(2);
    assert_int_equal(acc.GetValidRow() * 100 + acc.GetValidCol(), 232);
}

TEST(face__shapes_and_strides_of_five_values_need_no_template_arguments) {
    float data[64];
    Shape shape(1, 1, 1, 4, 8);
    Stride stride(64, 64, 64, int64_t(16), 1u);
    static_assert(decltype(shape)::staticShape[3] == DYNAMIC, "");
    static_assert(decltype(stride)::staticStride[4] == DYNAMIC, "");
    GlobalTensor<float, decltype(shape), decltype(stride)> window(data, shape, stride);
    assert_true(window.GetShape(0) == 1 && window.GetShape(3) == 4 && window.GetShape(4) == 8);
    assert_true(window.GetStride(0) == 64 && window.GetStride(3) == 16 && window.GetStride(4) == 1);
}

// On paper: 16 x 32 f32 is 2,048 bytes. Nz of 32 rows and 32 columns of f16 has boxes of 16 x 16:
// (17, 20) is in the second column of boxes (512 before it), its second box (256), row 1 (16), 4.
// Zn in boxes of 16 x 16, each by columns: the second row of boxes (512), second box (256), column
// 4 (64), row 1.
TEST(face__tiles_tell_their_size_and_where_elements_are) {
    using Nz = Tile<TileType::Mat, half, 32, 32, BLayout::ColMajor, 32, 32, SLayout::RowMajor>;
    using Zn = Tile<TileType::Mat, half, 32, 32, BLayout::RowMajor, 32, 32, SLayout::ColMajor>;
    assert_int_equal(Matrix::GetSizeInBytes(), 2048);
    assert_int_equal(Column::GetSizeInBytes(), 64);
    assert_int_equal(Dynamic(1, 1).GetSizeInBytes(), 2048);
    assert_int_equal(GetTileElementOffset<Matrix>(3, 5), 101);
    assert_int_equal(GetTileElementOffset<Column>(7, 0), 7);
    assert_int_equal(GetTileElementOffset<Nz>(17, 20), 788);
    assert_int_equal(GetTileElementOffset<Zn>(17, 20), 833);
    static_assert(GetTileElementOffset<Nz>(0, 16) == 512, "");
    static_assert(BLOCK_BYTE_SIZE == 32 && C0_SIZE_BYTE == 32 && FRACTAL_NZ_ROW == 16, "");
}

TEST(face__shapes_take_all_five_or_the_dynamic_values) {
    float data[4096];
    using Sh = Shape<1, 1, -1, 16, -1>;
    using St = Stride<1, 1, -1, 64, 1>;
    GlobalTensor<float, Sh, St> a(data, Sh(2, 32), St(1024)), b(data, Sh(1, 1, 2, 16, 32), {1024});
    for (int dim = 0; dim < 5; dim++) {
        assert_true(a.GetShape(dim) == b.GetShape(dim) && a.GetStride(dim) == b.GetStride(dim));
    }
    assert_true(a.GetShape(2) == 2 && a.GetShape(3) == 16 && a.GetShape(4) == 32);
    assert_true(a.GetStride(2) == 1024 && a.GetStride(3) == 64 && a.GetStride(4) == 1);
    a.SetShape<4>(30);
    a.SetStride<2>(2048);
    assert_true(a.GetShape(4) == 30 && a.GetStride(2) == 2048);
    static_assert(decltype(a)::staticShape[3] == 16 && decltype(a)::staticShape[4] == DYNAMIC, "");
    static_assert(decltype(a)::staticStride[4] == 1 && decltype(a)::layout == Layout::ND, "");
    static_assert(std::is_same<decltype(a)::DType, float>::value, "");
    assert_ptr_equal(a.data(), data);
    TASSIGN(a, data + 1);
    assert_ptr_equal(a.data(), data + 1);

    GlobalTensor<float, Shape<1, 1, 1, 4, 8>, Stride<1, 1, 1, 8, 1>> fixed(data);
    assert_true(fixed.GetShape(3) == 4 && fixed.GetStride(3) == 8);
}

TEST(face__shapes_of_matrices_are_those_of_their_layout) {
    half data[64 * 64];
    using Nd = GlobalTensor<half, TileShape2D<half, 16, 32>, BaseShape2D<half, 48, 64>>;
    Nd nd(data);
    assert_true(nd.GetShape(3) == 16 && nd.GetShape(4) == 32 && nd.GetStride(3) == 64);
    using Dn = GlobalTensor<half, TileShape2D<half, -1, 32, Layout::DN>,
                            BaseShape2D<half, -1, -1, Layout::DN>, Layout::DN>;
    Dn dn(data, TileShape2D<half, -1, 32, Layout::DN>(7),
          BaseShape2D<half, -1, -1, Layout::DN>(40, 50));
    assert_true(dn.GetShape(3) == 7 && dn.GetShape(4) == 32);
    assert_true(dn.GetStride(3) == 1 && dn.GetStride(4) == 40);
    using Nz = GlobalTensor<half, TileShape2D<half, 32, 48, Layout::NZ>,
                            BaseShape2D<half, 64, 48, Layout::NZ>, Layout::NZ>;
    Nz nz(data);
    assert_true(nz.GetShape(1) == 3 && nz.GetShape(2) == 2 && nz.GetShape(3) == 16);
    assert_true(nz.GetShape(4) == 16 && nz.GetStride(1) == 64 * 16 && nz.GetStride(2) == 256);
}

// -- 16-bit floats --------------------------------------------------------------------------------

template <typename T> static T float16_of(uint16_t bits) {
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <typename T> static uint16_t bits_of(T value) {
    uint16_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

TEST(face__half_is_f16_and_rounds_once) {
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        half h = float16_of<half>((uint16_t)bits);
        bfloat16_t b = float16_of<bfloat16_t>((uint16_t)bits);
        float f = (float)h, g = (float)b;
        if (f == f) {
            assert_true(f == ptoisa_f32_from_f16((uint16_t)bits));
            assert_int_equal(bits_of((half)f), bits);
        }
        if (g == g) {
            assert_true(g == ptoisa_f32_from_bf16((uint16_t)bits));
            assert_int_equal(bits_of((bfloat16_t)g), bits);
        }
    }
    // A little above the middle of 1 and its successor, too little for a float to see.
    assert_int_equal(bits_of((half)(1 + 0x1p-11 + 0x1p-40)), 0x3c01);
    assert_int_equal(bits_of((half)(1 + 0x1p-11)), 0x3c00);
    assert_int_equal(bits_of((half) - (1 + 0x1p-11 + 0x1p-40)), 0xbc01);
    assert_int_equal(bits_of((half)1e300), 0x7c00);
    assert_int_equal(bits_of((bfloat16_t)(1 + 0x1p-8 + 0x1p-40)), 0x3f81);
    half x = 3, y = (half)0.5f;
    x += y;
    assert_true((float)x == 3.5f && x > y && (float)(x * y) == 1.75f);
}

// -- binding --------------------------------------------------------------------------------------

TEST(face__tiles_bind_to_offsets_of_their_memory) {
    ptoisa_core &core = ptoisa_this_core();
    Matrix a, b;
    Tile<TileType::Mat, float, 16, 32> mat;
    Tile<TileType::Bias, float, 1, 16> bias;
    TASSIGN(a, 64);
    TASSIGN<64>(b);
    TASSIGN(mat, 64);
    TASSIGN(bias, 64);
    assert_ptr_equal(a.data(), core.memory[PTOISA_VEC] + 64);
    assert_ptr_equal(a.data(), b.data());
    assert_ptr_equal(mat.data(), core.memory[PTOISA_MAT] + 64);
    assert_ptr_equal(bias.data(), core.memory[PTOISA_BIAS] + 64);
    TASSIGN(b, a.data() + 8);
    assert_ptr_equal(b.data(), a.data() + 8);
    TASSIGN(b, reinterpret_cast<uintptr_t>(a.data() + 16));  // an address inside is one
    assert_ptr_equal(b.data(), a.data() + 16);
    alignas(32) float host[16 * 32];
    TASSIGN(b, host);
    assert_ptr_equal(b.data(), host);

    Tile<TileType::Vec, float, 1, 16> row;
    Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor> col;
    TASSIGN(col, 0x400);
    TRESHAPE(row, col);
    assert_ptr_equal(row.data(), col.data());
    Tile<TileType::Vec, float, 8, 32> part;
    TSUBVIEW(part, a, 3, 8);
    assert_ptr_equal(part.data(), a.data() + 3 * 32 + 8);
}

TEST(face__elements_are_where_their_layout_says) {
    Matrix a;
    TASSIGN(a, 0);
    for (uint32_t i = 0; i < 512; i++) {
        a.SetValue(i, (float)i);
    }
    assert_true(a.GetValue(37) == 37 && a.GetElement(1, 5) == 37);
    a.SetElement(15, 31, -1);
    assert_true(a.GetValue(511) == -1);
    // Against the C functions, for every layout.
    TileLeft<half, 32, 48> left;
    TileRight<half, 32, 48> right;
    TileAcc<float, 32, 48> acc;
    Tile<TileType::Mat, half, 32, 48, BLayout::ColMajor, 32, 48, SLayout::RowMajor> nz;
    Tile<TileType::Mat, int8_t, 64, 64, BLayout::RowMajor, 64, 64, SLayout::ColMajor> zn;
    Tile<TileType::Vec, float, 32, 48, BLayout::ColMajor> col;
    ptoisa_tile views[] = {shim::view(left), shim::view(right), shim::view(acc),
                           shim::view(nz),   shim::view(zn),    shim::view(col)};
    assert_int_equal(views[0].layout, shim::default_arch == NPUArch::A5 ? PTOISA_NZ : PTOISA_ZZ);
    assert_int_equal(views[1].layout, PTOISA_ZN);
    assert_int_equal(views[2].layout, PTOISA_NZ);
    TEST_GRID(int, r, 32, c, 48) {
        uint32_t offsets[] = {left.Offset(r, c), right.Offset(r, c), acc.Offset(r, c),
                              nz.Offset(r, c),   zn.Offset(r, c),    col.Offset(r, c)};
        for (size_t i = 0; i < 6; i++) {
            assert_int_equal(offsets[i], ptoisa_offset(&views[i], (uint32_t)r, (uint32_t)c));
        }
    }
}

TEST(face__every_thread_is_a_core) {
    Matrix mine;
    TASSIGN(mine, 0);
    mine.SetValue(0, 1);
    set_execution_context(3, 1, 2, 24);
    float *other = NULL;
    bool is_fresh = false;
    std::thread([&] {
        Matrix theirs;
        TASSIGN(theirs, 0);
        other = theirs.data();
        is_fresh = theirs.GetValue(0) == 0 && get_block_idx() == 0 && get_block_num() == 1 &&
                   get_subblockdim() == 1;
        theirs.SetValue(0, 2);
    }).join();
    assert_true(is_fresh);
    assert_true(other != mine.data() && mine.GetValue(0) == 1);
    assert_true(get_block_idx() == 3 && get_subblockid() == 1 && get_subblockdim() == 2 &&
                get_block_num() == 24);
    set_execution_context(0, 0, 1);
    NPU_MEMORY_CLEAR();
    assert_true(mine.GetValue(0) == 0);
}

// A host may start its core anew; the memories stay.
TEST(face__core_init_keeps_memories) {
    Matrix a;
    TASSIGN(a, 0);
    float *before = a.data();
    ptoisa_core_init(&ptoisa_this_core(), PTOISA_MODEL_UNIT, NULL);
    TASSIGN(a, 0);
    assert_ptr_equal(a.data(), before);
    ptoisa_core_init(&ptoisa_this_core(), PTOISA_MODEL_UNIT, NULL);
    ptoisa_this_core().machine = shim::machine_of(shim::default_arch);
}

TEST(face__sizes_are_those_of_the_machine) {
    face_faults faults;
    Matrix a;  // 2 KiB
    NPU_MEMORY_INIT(NPUArch::A2A3);
    TASSIGN(a, 182 * 1024);
    faults.none();
    NPU_MEMORY_INIT(NPUArch::A5);
    TASSIGN(a, 254 * 1024);
    faults.none();
    NPU_MEMORY_INIT(NPUArch::A2A3);
#if PTOISA_CHECKED_DEFAULT
    TASSIGN(a, 182 * 1024 + 32);
    faults.refused("a tile ends at 188448 of 188416 bytes");
    TASSIGN(a, 33);
    faults.refused("offset 33 is not a multiple of 32");
#endif
    faults.text.clear();
    // 512 KiB from 182 KiB on: behind what a 910B has, and behind what is there, as the simulator has it.
    Tile<TileType::Vec, float, 256, 512> large;
    TASSIGN(large, 182 * 1024);
    faults.refused("TASSIGN: a tile ends at 710656 of 524288 bytes");
    TASSIGN(a, UINT64_C(0x123456789000));
    faults.refused("is no address of this thread's UB");
    NPU_MEMORY_INIT(shim::default_arch);
}

// Memories are made for the core's machine, also where another one was there before.
TEST(face__memories_grow_with_the_machine) {
    face_faults faults;
    ptoisa_machine large = *shim::machine_of(shim::default_arch);
    large.memory_size[PTOISA_VEC] = 2 << 20;
    Matrix a;
    TASSIGN(a, 0);
    const ptoisa_machine *before = ptoisa_this_core().machine;
    ptoisa_this_core().machine = &large;
    TASSIGN(a, (2 << 20) - 2048);
    faults.none();
    a.SetValue(511, 1.0f);
    assert_true(a.GetValue(511) == 1.0f && a.GetValue(510) == 0.0f);
    ptoisa_this_core().machine = before;
    TASSIGN(a, 0);
    faults.none();
}

static bool is_memory_out;

static void *face_calloc(size_t count, size_t size) {
    return is_memory_out ? NULL : calloc(count, size);
}

// Another thread is another core, whose memories are not there yet.
static void bind_without_memory() {
    is_memory_out = true;
    std::thread([] {
        Matrix a;
        TASSIGN(a, 0);
    }).join();
}

TEST(face__a_core_without_memories_ends_the_process) {
    isa_expect_abort(bind_without_memory, "ptoisa: no memory for a core\n");
}

// An NZ window and an Nz tile hold the same bytes.
TEST(face__nz_windows_load_and_store) {
    using Nz = GlobalTensor<half, TileShape2D<half, 32, 48, Layout::NZ>,
                            BaseShape2D<half, 64, 96, Layout::NZ>, Layout::NZ>;
    using Mat = Tile<TileType::Mat, half, 32, 48, BLayout::ColMajor, 32, 48, SLayout::RowMajor>;
    using Vec = Tile<TileType::Vec, half, 32, 48, BLayout::ColMajor, 32, 48, SLayout::RowMajor>;
    std::vector<half> from(64 * 96), to(64 * 96);
    for (size_t i = 0; i < from.size(); i++) {
        from[i] = (half)(float)(i % 2048);
        to[i] = (half)-1.0f;
    }
    Nz g_from(from.data()), g_to(to.data());
    Mat mat;
    TASSIGN(mat, 0);
    TLOAD(mat, g_from);
    Vec vec;
    TASSIGN(vec, 0);
    TLOAD(vec, g_from);
    TSTORE(g_to, vec);  // A5 stores nothing from L1
    // The 64 x 96 matrix is boxed too: element (r, c) of it, and of its 32 x 48 corner.
    TEST_GRID(int, r, 64, c, 96) {
        size_t at = (size_t)(c / 16 * 64 * 16 + r * 16 + c % 16);
        bool is_inside = r < 32 && c < 48;
        assert_true((float)to[at] == (is_inside ? (float)from[at] : -1));
        if (is_inside) {
            assert_true((float)mat.GetElement(r, c) == (float)from[at]);
        }
    }
    ptoisa_core_reset(&ptoisa_this_core());
}

TEST(face__nz_windows_fit_their_tiles) {
    using Nz = GlobalTensor<half, TileShape2D<half, 32, 48, Layout::NZ>,
                            BaseShape2D<half, 64, 96, Layout::NZ>, Layout::NZ>;
    using Vec = Tile<TileType::Vec, half, 32, 64, BLayout::ColMajor, 32, 64, SLayout::RowMajor>;
    face_faults faults;
    std::vector<half> data(64 * 96);
    Nz window(data.data());
    Vec vec;
    TASSIGN(vec, 0);
    vec.SetElement(0, 0, (half)3.0f);
    TLOAD(vec, window);
    faults.refused("TLOAD: an NZ window of 32 x 48 for 32 x 64 of 32 rows");
    assert_true((float)vec.GetElement(0, 0) == 3);
    faults.text.clear();
    TSTORE(window, vec);
    faults.refused("TSTORE: an NZ window of 32 x 48 for 32 x 64 of 32 rows");
    assert_true((float)data[0] == 0);
}

// -- the same bits as in C ------------------------------------------------------------------------

// A tile of the face, and one for C at the same offset of a copy of UB.
static const size_t kCopy = 64 << 10;

struct Pair {
    alignas(64) uint8_t copy[kCopy];
    uint64_t seed = 8;

    // Fills both with the same random bytes, floats or bits.
    void fill(bool is_float) {
        Matrix all;
        TASSIGN(all, 0);
        for (size_t i = 0; i < kCopy; i += 4) {
            float value = (float)face_uniform(&seed) * 8;
            uint32_t bits = (uint32_t)face_random(&seed);
            memcpy(copy + i, is_float ? (void *)&value : (void *)&bits, 4);
        }
        memcpy(all.data(), copy, kCopy);
    }
    template <typename T> ptoisa_tile of(const T &tile) {
        ptoisa_tile made = shim::view(tile);
        const uint8_t *data = static_cast<const uint8_t *>(made.data);
        made.data = copy + (data - ptoisa_this_core().memory[PTOISA_VEC]);
        return made;
    }
    bool is_same() {
        Matrix all;
        TASSIGN(all, 0);
        shim::fence();
        return memcmp(all.data(), copy, kCopy) == 0;
    }
};

// One instruction of each face on equal memory; then the memories and the clocks are equal.
#define SAME(pair, is_float, face, c)                                                              \
    do {                                                                                           \
        (pair).fill(is_float);                                                                     \
        ptoisa_core_reset(core);                                                                   \
        face;                                                                                      \
        uint64_t face_cycles = core->sum;                                                          \
        ptoisa_core_reset(core);                                                                   \
        shim::fence();                                                                             \
        c;                                                                                         \
        shim::fence();                                                                             \
        assert_true(core->sum == face_cycles);                                                     \
        if (!(pair).is_same()) {                                                                   \
            fail_msg("%s and %s differ", #face, #c);                                               \
        }                                                                                          \
    } while (0)

#define SAME_BINARY(OP, op)  SAME(pair, true, OP(d, a, b), ptoisa_##op(core, &cd, &ca, &cb))
#define SAME_SCALAR(OP, op)  SAME(pair, true, OP(d, a, 1.25f), ptoisa_##op(core, &cd, &ca, 1.25))
#define SAME_UNARY(OP, op)   SAME(pair, true, OP(d, a), ptoisa_##op(core, &cd, &ca))
#define SAME_ROWS(OP, op)    SAME(pair, true, OP(col, a, b), ptoisa_##op(core, &ccol, &ca, &cb))
#define SAME_COLS(OP, op)    SAME(pair, true, OP(row, a), ptoisa_##op(core, &crow, &ca))
#define SAME_BY_ROW(OP, op)  SAME(pair, true, OP(d, a, col), ptoisa_##op(core, &cd, &ca, &ccol))
#define SAME_BY_COL(OP, op)  SAME(pair, true, OP(d, a, row), ptoisa_##op(core, &cd, &ca, &crow))
#define SAME_INTS(OP, op)    SAME(pair, false, OP(di, ai, bi), ptoisa_##op(core, &cdi, &cai, &cbi))
#define SAME_BY_INT(OP, op)  SAME(pair, false, OP(di, ai, 5), ptoisa_##op(core, &cdi, &cai, 5))
#define SAME_ROW_INT(OP, op) SAME(pair, true, OP(coli, a, b), ptoisa_##op(core, &ccoli, &ca, &cb))

TEST(face__gives_the_bits_and_cycles_of_c) {
    static Pair pair;
    ptoisa_core *core = &ptoisa_this_core();
    for (int round = 0; round < 20; round++) {
        int vr = 1 + (int)(face_random(&pair.seed) % 16),
            vc = 1 + (int)(face_random(&pair.seed) % 32);
        Dynamic d(vr, vc), a(vr, vc), b(vr, vc), c(vr, vc);
        Tile<TileType::Vec, int32_t, 16, 32, BLayout::RowMajor, -1, -1> di(vr, vc), ai(vr, vc),
            bi(vr, vc);
        Column col(vr);
        Tile<TileType::Vec, int32_t, 16, 1, BLayout::ColMajor, -1, 1> coli(vr);
        Tile<TileType::Vec, float, 1, 32, BLayout::RowMajor, 1, -1> row(vc);
        Tile<TileType::Vec, uint32_t, 1, 32, BLayout::RowMajor, 1, -1> rowi(vc);
        Tile<TileType::Vec, half, 16, 32, BLayout::RowMajor, -1, -1> h(vr, vc);
        Tile<TileType::Vec, float, 32, 16, BLayout::RowMajor, -1, -1> turned(vc, vr);
        bind_all(0, d, 0x1000, a, 0x2000, b, 0x3000, c, 0x4000, di, 0x5000, ai, 0x6000, bi, 0x7000,
                 col, 0x7800, coli, 0x8000, row, 0x9000, h, 0xa000, turned, 0xb000, rowi);
        ptoisa_tile cd = pair.of(d), ca = pair.of(a), cb = pair.of(b), cc = pair.of(c);
        ptoisa_tile cdi = pair.of(di), cai = pair.of(ai), cbi = pair.of(bi), ccol = pair.of(col);
        ptoisa_tile ccoli = pair.of(coli), crow = pair.of(row), ch = pair.of(h);
        ptoisa_tile cturned = pair.of(turned), crowi = pair.of(rowi);
        SAME_BINARY(TADD, tadd);
        SAME_BINARY(TSUB, tsub);
        SAME_BINARY(TMUL, tmul);
        SAME_BINARY(TDIV, tdiv);
        SAME_BINARY(TMAX, tmax);
        SAME_BINARY(TMIN, tmin);
        SAME_BINARY(TFUSEDMULADD, tfusedmuladd);
        SAME_BINARY(TMULADDDST, tmuladddst);
        SAME_SCALAR(TADDS, tadds);
        SAME_SCALAR(TSUBS, tsubs);
        SAME_SCALAR(TMULS, tmuls);
        SAME_SCALAR(TDIVS, tdivs);
        SAME_SCALAR(TMAXS, tmaxs);
        SAME_SCALAR(TMINS, tmins);
        SAME_SCALAR(TLRELU, tlrelu);
        SAME_SCALAR(TAXPY, taxpy);
        SAME(pair, true, TDIVS(d, 2.5f, a), ptoisa_tsdiv(core, &cd, 2.5, &ca));
        SAME(pair, true, TADDC(d, a, b, c), ptoisa_taddc(core, &cd, &ca, &cb, &cc));
        SAME(pair, true, TADDSC(d, a, 0.5f, b), ptoisa_taddsc(core, &cd, &ca, 0.5, &cb));
        SAME(pair, true, TPRELU(d, a, b, c), ptoisa_tprelu(core, &cd, &ca, &cb, &cc));
        SAME_UNARY(TEXP, texp);
        SAME_UNARY(TABS, tabs);
        SAME_UNARY(TNEG, tneg);
        SAME_UNARY(TRELU, trelu);
        SAME_UNARY(TRECIP, trecip);
        SAME_UNARY(TMOV, tmov);
        SAME_INTS(TADD, tadd);
        SAME_INTS(TAND, tand);
        SAME_INTS(TOR, tor);
        SAME_BY_INT(TSHLS, tshls);
        SAME_BY_INT(TSHRS, tshrs);
        SAME_BY_INT(TANDS, tands);
        SAME_BY_INT(TADDS, tadds);
        SAME_ROWS(TROWSUM, trowsum);
        SAME_ROWS(TROWMAX, trowmax);
        SAME_ROWS(TROWMIN, trowmin);
        SAME_ROWS(TROWPROD, trowprod);
        SAME_ROW_INT(TROWARGMAX, trowargmax);
        SAME_ROW_INT(TROWARGMIN, trowargmin);
        SAME(pair, true, TROWARGMAX(col, coli, a, b),
             ptoisa_trowargmax_values(core, &ccol, &ccoli, &ca, &cb));
        SAME(pair, true, TROWARGMIN(col, coli, a, b),
             ptoisa_trowargmin_values(core, &ccol, &ccoli, &ca, &cb));
        SAME(pair, true, TCOLARGMAX(rowi, a, b), ptoisa_tcolargmax(core, &crowi, &ca, &cb));
        SAME(pair, true, TCOLARGMIN(rowi, a, b), ptoisa_tcolargmin(core, &crowi, &ca, &cb));
        SAME(pair, true, TPAIRREDUCESUM(d, a), ptoisa_tpairreducesum(core, &cd, &ca));
        SAME_COLS(TCOLMAX, tcolmax);
        SAME_COLS(TCOLMIN, tcolmin);
        SAME(pair, true, TCOLSUM(row, a), ptoisa_tcolsum(core, &crow, &ca, NULL, false));
        SAME(pair, true, TCOLSUM(row, a, b, true), ptoisa_tcolsum(core, &crow, &ca, &cb, true));
        SAME(pair, true, TROWEXPAND(d, col), ptoisa_trowexpand(core, &cd, &ccol));
        SAME_BY_ROW(TROWEXPANDADD, trowexpandadd);
        SAME_BY_ROW(TROWEXPANDSUB, trowexpandsub);
        SAME_BY_ROW(TROWEXPANDMUL, trowexpandmul);
        SAME_BY_ROW(TROWEXPANDDIV, trowexpanddiv);
        SAME_BY_ROW(TROWEXPANDMAX, trowexpandmax);
        SAME_BY_ROW(TROWEXPANDMIN, trowexpandmin);
        SAME_BY_ROW(TROWEXPANDEXPDIF, trowexpandexpdif);
        SAME(pair, true, TROWEXPANDMUL(d, a, col, c), ptoisa_trowexpandmul(core, &cd, &ca, &ccol));
        SAME(pair, true, TCOLEXPAND(d, row), ptoisa_tcolexpand(core, &cd, &crow));
        SAME_BY_COL(TCOLEXPANDADD, tcolexpandadd);
        SAME_BY_COL(TCOLEXPANDSUB, tcolexpandsub);
        SAME_BY_COL(TCOLEXPANDMUL, tcolexpandmul);
        SAME_BY_COL(TCOLEXPANDDIV, tcolexpanddiv);
        SAME_BY_COL(TCOLEXPANDMAX, tcolexpandmax);
        SAME_BY_COL(TCOLEXPANDMIN, tcolexpandmin);
        SAME(pair, true, TCVT(h, a, RoundMode::CAST_RINT),
             ptoisa_tcvt(core, &ch, &ca, PTOISA_CAST_RINT, false));
        SAME(pair, true, TCVT(di, a, RoundMode::CAST_FLOOR),
             ptoisa_tcvt(core, &cdi, &ca, PTOISA_CAST_FLOOR, false));
        SAME(pair, false, TCVT(d, h, RoundMode::CAST_NONE),
             ptoisa_tcvt(core, &cd, &ch, PTOISA_CAST_NONE, false));
        SAME(pair, true, TTRANS(turned, a, b), ptoisa_ttrans(core, &cturned, &ca, &cb));
        SAME(pair, true, TEXPANDS(d, 3), ptoisa_texpands(core, &cd, 3));
        SAME(pair, true, (TTRI<Dynamic, 1>(d, 2)), ptoisa_ttri(core, &cd, true, 2));
        SAME(pair, true, (TTRI<Dynamic, 0>(d, -1)), ptoisa_ttri(core, &cd, false, -1));
    }
    ptoisa_core_reset(core);
}

TEST(face__masks_and_quantised_tiles_are_those_of_c) {
    static Pair pair;
    ptoisa_core *core = &ptoisa_this_core();
    Matrix d, a, b;
    Tile<TileType::Vec, uint8_t, 16, 32, BLayout::RowMajor, 16, 4> mask;
    Tile<TileType::Vec, uint8_t, 1, 32> tmp;
    Tile<TileType::Vec, int8_t, 16, 32> q;
    Tile<TileType::Vec, uint8_t, 16, 32> u;
    Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor> scale, offset;
    Tile<TileType::Vec, uint32_t, 1, 32> index, tmp_index;
    Tile<TileType::Vec, float, 1, 32> list, picked;
    Tile<TileType::Vec, float, 1, 64> pairs;
    Tile<TileType::Vec, half, 1, 32> half_list, half_picked;
    Tile<TileType::Vec, half, 1, 128> half_pairs;
    bind_all(0, d, 0x1000, a, 0x2000, b, 0x3000, mask, 0x4000, tmp, 0x5000, q, 0x5800, u, 0x6000,
             scale, 0x6800, offset, 0x7000, index, 0x7200, tmp_index, 0x7400, list, 0x7600, picked,
             0x7800, pairs, 0x7a00, half_list, 0x7b00, half_picked, 0x7c00, half_pairs);
    ptoisa_tile cd = pair.of(d), ca = pair.of(a), cb = pair.of(b), cmask = pair.of(mask);
    ptoisa_tile ctmp = pair.of(tmp), cq = pair.of(q), cu = pair.of(u), cscale = pair.of(scale);
    ptoisa_tile coffset = pair.of(offset), cindex = pair.of(index), cpicked = pair.of(picked);
    ptoisa_tile ctmp_index = pair.of(tmp_index), clist = pair.of(list), cpairs = pair.of(pairs);
    ptoisa_tile chalf_list = pair.of(half_list), chalf_picked = pair.of(half_picked);
    ptoisa_tile chalf_pairs = pair.of(half_pairs);
    SAME(pair, true, TCMP(mask, a, b, CmpMode::LE), ptoisa_tcmp(core, &cmask, &ca, &cb, PTOISA_LE));
    SAME(pair, true, TCMPS(mask, a, 0.5f, CmpMode::GT),
         ptoisa_tcmps(core, &cmask, &ca, 0.5, PTOISA_GT));
    SAME(pair, true, TSEL(d, mask, a, b, tmp), ptoisa_tsel(core, &cd, &cmask, &ca, &cb, &ctmp));
    SAME(pair, true, TSELS(d, mask, a, tmp, 2.0f), ptoisa_tsels(core, &cd, &cmask, &ca, &ctmp, 2));
    SAME(pair, true, TQUANT<QuantType::INT8_SYM>(q, a, scale),
         ptoisa_tquant_sym(core, &cq, &ca, &cscale));
    SAME(pair, true, TQUANT<QuantType::INT8_SYM>(q, a, scale, b),
         ptoisa_tquant_sym_scratch(core, &cq, &ca, &cscale, &cb));
    SAME(pair, true, TQUANT<QuantType::INT8_ASYM>(u, a, scale, &offset),
         ptoisa_tquant_asym(core, &cu, &ca, &cscale, &coffset));
    SAME(pair, true, TDEQUANT(d, q, scale, offset),
         ptoisa_tdequant(core, &cd, &cq, &cscale, &coffset));
    SAME(pair, true, TSORT32(pairs, list, index), ptoisa_tsort32(core, &cpairs, &clist, &cindex));
    SAME(pair, true,
         (TSORT32(half_pairs, half_list, index),
          TGATHER<decltype(half_picked), decltype(half_pairs), MaskPattern::P0001>(half_picked,
                                                                                   half_pairs)),
         (ptoisa_tsort32(core, &chalf_pairs, &chalf_list, &cindex),
          ptoisa_tgather_mask(core, &chalf_picked, &chalf_pairs, PTOISA_P0001)));
    SAME(pair, true, (TCI<decltype(index), uint32_t, 1>(index, 40)),
         ptoisa_tci(core, &cindex, 40, true));
    SAME(pair, true,
         (TGATHER<decltype(picked), decltype(pairs), MaskPattern::P1010>(picked, pairs)),
         ptoisa_tgather_mask(core, &cpicked, &cpairs, PTOISA_P1010));
    SAME(pair, true,
         (TCI<decltype(index), uint32_t, 1>(index, 31), TGATHER(picked, list, index, tmp_index)),
         (ptoisa_tci(core, &cindex, 31, true),
          ptoisa_tgather(core, &cpicked, &clist, &cindex, &ctmp_index)));
    ptoisa_core_reset(core);
}

// -- tables ---------------------------------------------------------------------------------------

// Tables in each half of a buffer: one for the face, one for C.
TEST(face__tables_and_blocks_are_those_of_c) {
    static Pair pair;
    ptoisa_core *core = &ptoisa_this_core();
    static float tables[2][8 * 32];
    using Table = GlobalTensor<float, Shape<1, 1, 1, 8, 32>, Stride<1, 1, 1, 32, 1>>;
    Table table(tables[0]);
    ptoisa_global ctable = ptoisa_global_make(tables[1], PTOISA_F32, 8, 32, 32, 1);
    Matrix d, a;
    Tile<TileType::Vec, int32_t, 16, 32> index;
    Tile<TileType::Vec, int32_t, 1, 16> line;
    Tile<TileType::Vec, uint32_t, 16, 8, BLayout::RowMajor, 16, 4> offsets;
    bind_all(0, d, 0x1000, a, 0x2000, index, 0x3000, line, 0x4000, offsets);
    ptoisa_tile cd = pair.of(d), ca = pair.of(a), cindex = pair.of(index), cline = pair.of(line);
    ptoisa_tile coffsets = pair.of(offsets);
    // TASSIGN of what the face and C read is the same memory: indices are made by an instruction.
    Tile<TileType::Vec, int32_t, 1, 512> all;
    Tile<TileType::Vec, uint32_t, 1, 128> every;
    TASSIGN(all, 0x2000);
    TASSIGN(every, 0x4000);
    ptoisa_tile call = pair.of(all), cevery = pair.of(every);
    const auto begin = [&](int first) {
        for (int i = 0; i < 8 * 32; i++) {
            tables[0][i] = tables[1][i] = (float)(i % 37);
        }
        TCI<decltype(all), int32_t, 0>(all, first);
        TCI<decltype(line), int32_t, 1>(line, 11);
        TCI<decltype(every), uint32_t, 0>(every, 32);
    };
    const auto cbegin = [&](int first) {
        ptoisa_tci(core, &call, first, false);
        ptoisa_tci(core, &cline, 11, true);
        ptoisa_tci(core, &cevery, 32, false);
    };
#define SAME_TABLE(face, c)                                                                        \
    SAME(pair, true, (begin(-100), face), (cbegin(-100), c));                                      \
    assert_memory_equal(tables[0], tables[1], sizeof tables[0])
    SAME_TABLE((MGATHER<Coalesce::Elem, GatherOOB::Zero>(d, table, index)),
               ptoisa_mgather_by(core, &cd, &ctable, &cindex, true, PTOISA_OUTSIDE_ZERO));
    SAME_TABLE((MGATHER<Coalesce::Elem, GatherOOB::Wrap>(d, table, index)),
               ptoisa_mgather_by(core, &cd, &ctable, &cindex, true, PTOISA_OUTSIDE_WRAP));
    SAME_TABLE((MGATHER<Coalesce::Row, GatherOOB::Clamp>(d, table, line)),
               ptoisa_mgather_by(core, &cd, &ctable, &cline, false, PTOISA_OUTSIDE_CLAMP));
    SAME_TABLE(TGATHERB(d, a, offsets), ptoisa_tgatherb(core, &cd, &ca, &coffsets));
#undef SAME_TABLE
    // Two tiles' elements meet in each place of the second half: on paper.
    begin(0);
    Tile<TileType::Vec, int32_t, 16, 32, BLayout::RowMajor, 4, 32> some;
    Tile<TileType::Vec, float, 16, 32, BLayout::RowMajor, 4, 32> ones;
    TASSIGN(some, 0x2000);
    TASSIGN(ones, 0x1000);
    TEXPANDS(ones, 3);
    MSCATTER<Coalesce::Elem, ScatterAtomicOp::Add>(table, ones, some);
    MSCATTER<Coalesce::Elem, ScatterAtomicOp::Max>(table, ones, some);
    MSCATTER<Coalesce::Elem>(table, ones, some);
    assert_true(tables[0][127] == 3 && tables[0][128] == 128 % 37);
    MSCATTER<Coalesce::Elem, ScatterAtomicOp::Add>(table, ones, some);
    MSCATTER<Coalesce::Elem, ScatterAtomicOp::Min>(table, ones, some);
    assert_true(tables[0][0] == 3 && tables[0][127] == 3);
    ptoisa_core_reset(core);
}

// A DN window has its columns outside: element (r, c) of the tile of 4 x (3 x 5) is at
// c / 5 * stride of dimension 2 + c % 5 * that of dimension 4 + r.
TEST(face__dn_windows_have_columns_in_their_outer_dimensions) {
    using Sh = Shape<1, 1, 3, 4, 5>;
    using St = Stride<1, 1, 100, 1, 7>;
    float from[300], to[300];
    for (int i = 0; i < 300; i++) {
        from[i] = (float)i;
        to[i] = -1;
    }
    GlobalTensor<float, Sh, St, Layout::DN> in(from), out(to);
    Tile<TileType::Vec, float, 8, 16, BLayout::ColMajor, 4, 15> column;
    Tile<TileType::Vec, float, 8, 16, BLayout::RowMajor, 4, 15, SLayout::NoneBox, 512,
         PadValue::Max>
        row;
    TASSIGN(column, 0);
    TASSIGN(row, 0x1000);
    TLOAD(column, in);
    TLOAD(row, in);
    TSTORE(out, column);
    TEST_GRID(int, r, 4, c, 15) {
        float want = (float)(c / 5 * 100 + c % 5 * 7 + r);
        assert_true(column.GetElement(r, c) == want && row.GetElement(r, c) == want);
        assert_true(to[(int)want] == want);
    }
    assert_true(std::isinf(row.GetElement(4, 0)) && std::isinf(row.GetElement(0, 15)));
    assert_true(to[4] == -1 && to[35] == -1);
    ptoisa_core_reset(&ptoisa_this_core());
}

TEST(face__pads_are_numbers_and_windows_have_elements) {
    using Sh = Shape<1, 1, 1, 3, 5>;
    float data[64] = {0};
    GlobalTensor<float, Sh, Stride<1, 1, 1, 8, 1>> window(data);
    window.SetElement(2, 4, 7);
    window.SetElement(0, 0, 0, 1, 1, 2);
    assert_true(data[20] == 7 && window.GetElement(2, 4) == 7 && data[9] == 2);
    Tile<TileType::Vec, float, 4, 8, BLayout::RowMajor, 3, 5, SLayout::NoneBox, 512,
         PadValueCustom(-2.5f)>
        a;
    Tile<TileType::Vec, half, 4, 16, BLayout::RowMajor, 3, 5> h;
    Tile<TileType::Vec, half, 4, 16, BLayout::RowMajor, 4, 16, SLayout::NoneBox, 512,
         PadValueCustom(0.5f)>
        padded;
    bind_all(0, a, 0x1000, h, 0x2000, padded);
    TLOAD(a, window);
    TCVT(h, a, RoundMode::CAST_RINT);
    TFILLPAD(padded, h);
    TEST_GRID(int, r, 4, c, 16) {
        bool is_valid = r < 3 && c < 5;
        assert_true(c >= 8 || a.GetElement(r, c) == (is_valid ? data[r * 8 + c] : -2.5f));
        assert_true((float)padded.GetElement(r, c) == (is_valid ? data[r * 8 + c] : 0.5f));
    }
    a.SetKAligned(true);
    assert_true(a.GetKAligned() && !h.GetKAligned() && NUM_512 == 512);
    ptoisa_core_reset(&ptoisa_this_core());
}

TEST(face__prints_tiles) {
    Tile<TileType::Vec, int16_t, 2, 16, BLayout::RowMajor, 2, 3> a;
    TASSIGN(a, 0);
    for (uint32_t i = 0; i < 32; i++) {
        a.SetValue(i, (int16_t)(i - 1));
    }
    ptoisa_tile view = shim::view(a);
    char text[100];
    FILE *file = tmpfile();
    assert_non_null(file);
    ptoisa_tprint(&ptoisa_this_core(), file, &view);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_string_equal(text, "i16 2 x 3 of 2 x 16 in UB\n-1 0 1\n15 16 17\n");
    TPRINT(a);
    assert_true(ptoisa_cycles(&ptoisa_this_core()) == 0);
}

// -- stores of the matrix unit --------------------------------------------------------------------

TEST(face__stores_convert_add_and_quantise) {
    TileLeft<float, 16, 16> left;
    TileRight<float, 16, 16> right;
    TileAcc<float, 16, 16> acc;
    bind_all(0, left, 0, right, 0, acc);
    TEST_GRID(int, r, 16, c, 16) {
        left.SetElement(r, c, r == c ? 1.0f : 0.0f);
        right.SetElement(r, c, (float)(r * 16 + c - 128));
    }
    TMATMUL<AccPhase::Final>(acc, left, right);
    TMATMUL_ACC(acc, left, right);
    using Sh = Shape<1, 1, 1, 16, 16>;
    using St = Stride<1, 1, 1, 16, 1>;
    float out[256] = {0};
    int8_t quant[256];
    using Out = GlobalTensor<float, Sh, St>;
    Out g_out(out);
    GlobalTensor<int8_t, Sh, St> g_quant(quant);
    TSTORE<decltype(acc), Out, AtomicType::AtomicAdd>(g_out, acc);
    TSTORE<decltype(acc), Out, AtomicType::AtomicAdd>(g_out, acc);
    TSTORE(g_quant, acc, ptoisa_bits_from_f32(0.25f));
    for (int i = 0; i < 256; i++) {
        int value = 2 * (i - 128), quarter = (int)nearbyint(value * 0.25);
        assert_true(out[i] == (float)(2 * value));
        assert_int_equal(quant[i], quarter < -128 ? -128 : quarter > 127 ? 127 : quarter);
    }
    // Onto what is there, which wraps; and into L1, whole and in parts.
    TSTORE<decltype(acc), decltype(g_quant), AtomicType::AtomicAdd>(
        g_quant, acc, static_cast<uint64_t>(ptoisa_bits_from_f32(0.25f)));
    Tile<TileType::Mat, int8_t, 16, 32, BLayout::ColMajor, 16, 16, SLayout::RowMajor> mat, part;
    Tile<TileType::Scaling, uint64_t, 1, 16> scales;
    TileAcc<float, 16, 32, 16, 16> wide;
    bind_all(0, mat, 0x400, part, 0, scales);
    TASSIGN(wide, 0);  // its first column of boxes is acc
    for (uint32_t c = 0; c < 16; c++) {
        scales.SetValue(c, ptoisa_bits_from_f32(c % 2 ? 0.25f : 0.125f));
    }
    const uint64_t quarter_bits = ptoisa_bits_from_f32(0.25f);
    TMOV(mat, wide, quarter_bits);
    TEXTRACT(part, wide, quarter_bits, 0, 0);
    for (int i = 0; i < 256; i++) {
        int quarter = (int)nearbyint(2 * (i - 128) * 0.25);
        assert_int_equal(quant[i], (int8_t)(2 * quarter));
        assert_int_equal(mat.GetElement(i / 16, i % 16), quarter);
        assert_int_equal(part.GetElement(i / 16, i % 16), quarter);
    }
    TMOV_FP(mat, wide, scales);
    TINSERT_FP(part, acc, scales, 0, 16);
    TEXTRACT_FP(part, wide, scales);
    for (int i = 0; i < 256; i++) {
        int scaled = (int)nearbyint(2 * (i - 128) * (i % 2 ? 0.25 : 0.125));
        assert_int_equal(mat.GetElement(i / 16, i % 16), scaled);
        assert_int_equal(part.GetElement(i / 16, i % 16), scaled);
        assert_int_equal(part.GetElement(i / 16, 16 + i % 16), scaled);
    }
    TSTORE<decltype(acc), Out, AtomicType::AtomicNone, ReluPreMode::NormalRelu>(g_out, acc);
    assert_true(out[0] == 0 && out[255] == 254);
    TSTORE<STPhase::Final>(g_out, acc);
    assert_true(out[0] == -256);
    ptoisa_core_reset(&ptoisa_this_core());
}

// -- faults ---------------------------------------------------------------------------------------

TEST(face__wrong_flags_are_faults) {
    face_faults faults;
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    faults.none();
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    faults.are("WAIT_FLAG: MTE2 to V, event 0 is not set\n");
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID5);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID5);
    faults.are("SET_FLAG: V to MTE3, event 5 is set already\n");
    assert_false(ptoisa_core_finish(&ptoisa_this_core()));
    faults.refused("V to MTE3: a flag was never waited for");
    set_flag(PIPE_V, PIPE_MTE3, (event_t)8);
    faults.refused("event 8");
    pipe_barrier(PIPE_V);
    pipe_barrier(PIPE_ALL);
    faults.none();
}

TEST(face__events_are_recorded_and_waited_for_once) {
    face_faults faults;
    Event<Op::TLOAD, Op::TADD> event;
    event = RecordEvent();
    event = RecordEvent();
    faults.are("SET_FLAG: MTE2 to V: an event is recorded already\n");
    TSYNC(event);
    faults.none();
    event.Wait();
    faults.are("WAIT_FLAG: MTE2 to V: an event is not recorded\n");
    Event<Op::TADD, Op::TMUL> same_pipe = RecordEvent();
    TSYNC(same_pipe);
    faults.none();
}

PTO_INTERNAL int twice(int n) {
    return 2 * n;
}

template <typename T> PTO_INST T thrice(T n) {
    return 3 * n;
}

// Words of sources that were written beside PTO-ISA's own.
TEST(face__has_the_words_of_sources_of_pto_isa) {
    assert_int_equal(twice(thrice(7)), 42);
    assert_int_equal(NUM_77 + NUM_96, 173);
    assert_true(ScatterAxis::SCATTER_ROW != ScatterAxis::SCATTER_COL);
    assert_true(HistByte::BYTE_0 != HistByte::BYTE_3);
}

// A prefetch leaves the tile, and the core's clocks, as a load does.
TEST(face__prefetches_load) {
    face_faults faults;
    ptoisa_core &core = ptoisa_this_core();
    float data[8 * 16];
    for (int n = 0; n < 8 * 16; n++) {
        data[n] = (float)n;
    }
    Tile<TileType::Vec, float, 8, 16, BLayout::RowMajor, 7, 13> loaded, fetched;
    GlobalTensor<float, Shape<1, 1, 1, 7, 13>, Stride<1, 1, 1, 16, 1>> window(data);
    uint64_t cycles[2];
    for (int i = 0; i < 2; i++) {
        NPU_MEMORY_INIT(NPUArch::A2A3);
        core.model = PTOISA_MODEL_A2A3;
        TASSIGN(loaded, 0);
        TASSIGN(fetched, 0x1000);
        if (i == 0) {
            TLOAD(loaded, window);
        } else {
            TPREFETCH(fetched, window);
        }
        cycles[i] = core.busy[PTOISA_PIPE_MTE2];
    }
    assert_true(cycles[0] > 0);
    assert_int_equal(cycles[1], cycles[0]);
    TEST_GRID(int, r, 7, c, 13) {
        assert_true(fetched.GetElement(r, c) == (float)(r * 16 + c));
    }
    core.model = PTOISA_MODEL_UNIT;
    NPU_MEMORY_INIT(shim::default_arch);
}
