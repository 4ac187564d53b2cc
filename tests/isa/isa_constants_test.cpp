// What the C++ face computes in constants, computed when the program runs: a kernel may ask with numbers
// that are not known before.

#include "isa_face.h"

using pto::Op;

template <typename T> static T now(T value) {
    volatile T kept = value;
    return kept;
}

// The pipes of instructions, as PTO-ISA has them: loads on MTE2, stores of UB and L1 on MTE3, what
// leaves L0C on FIX, L1 to L0 on MTE1, products on M; all that is not named here on V.
TEST(constants__each_instruction_has_its_pipe) {
    static const struct {
        Op op;
        pipe_t pipe;
    } cases[] = {
        {Op::TLOAD, PIPE_MTE2},    {Op::TPREFETCH, PIPE_MTE2},     {Op::MGATHER, PIPE_MTE2},
        {Op::TSTORE, PIPE_MTE3},   {Op::TSTORE_VEC, PIPE_MTE3},    {Op::TSTORE_MAT, PIPE_MTE3},
        {Op::TMOV_V2M, PIPE_MTE3}, {Op::MSCATTER, PIPE_MTE3},      {Op::TSTORE_ACC, PIPE_FIX},
        {Op::TMOV_A2V, PIPE_FIX},  {Op::TMOV_A2M, PIPE_FIX},       {Op::TMOV_M2S, PIPE_FIX},
        {Op::TEXTRACT, PIPE_MTE1}, {Op::TEXTRACT_M2LR, PIPE_MTE1}, {Op::TMOV_M2L, PIPE_MTE1},
        {Op::TMOV_M2R, PIPE_MTE1}, {Op::TMOV_M2B, PIPE_MTE1},      {Op::TMATMUL, PIPE_M},
        {Op::TMATMUL_ACC, PIPE_M}, {Op::TMATMUL_BIAS, PIPE_M},     {Op::TGEMV, PIPE_M},
        {Op::TGEMV_ACC, PIPE_M},   {Op::TGEMV_BIAS, PIPE_M},       {Op::TCI, PIPE_S},
        {Op::TASSIGN, PIPE_S},     {Op::TRESHAPE, PIPE_S},         {Op::SCALAR, PIPE_S},
        {Op::SET_FLAG, PIPE_S},    {Op::WAIT_FLAG, PIPE_S},        {Op::PIPE_BARRIER, PIPE_S},
        {Op::TADD, PIPE_V},        {Op::VECTOR, PIPE_V},           {Op::TROWSUM, PIPE_V}};
    for (const auto &c : cases) {
        assert_int_equal(pto::shim::pipe_of(now(c.op)), c.pipe);
    }
}

// Memories of a core in KiB, of Ascend 910B and 950PR, as Ascend's documents have them. Of a 910B's UB
// 8 KiB are kept for row-expands.
TEST(constants__memories_have_their_sizes) {
    using pto::TileType;
    static const struct {
        TileType memory;
        uint64_t sizes[2];
    } cases[] = {{TileType::Vec, {184, 256}}, {TileType::Mat, {512, 512}},
                 {TileType::Left, {64, 64}},  {TileType::Right, {64, 64}},
                 {TileType::Acc, {128, 256}}, {TileType::Bias, {1, 4}},
                 {TileType::Scaling, {2, 4}}, {static_cast<TileType>(100), {0, 0}}};
    const bool is_a5 = pto::shim::default_arch == pto::NPUArch::A5;
    for (const auto &c : cases) {
        uint64_t want = c.memory == TileType::Vec && PTOISA_AS_SIMULATOR ? PTOISA_SIMULATOR_UB
                                                                         : c.sizes[is_a5] * 1024;
        assert_int_equal(pto::shim::capacity_of(now(c.memory)), want);
    }
}

TEST(constants__sizes_that_are_dynamic_stay_so) {
    using pto::DYNAMIC;
    using pto::shim::product;
    using pto::shim::quotient;
    assert_int_equal(product(now<int64_t>(6), 7), 42);
    assert_int_equal(product(now<int64_t>(DYNAMIC), 7), DYNAMIC);
    assert_int_equal(product(now<int64_t>(6), DYNAMIC), DYNAMIC);
    assert_int_equal(quotient(now<int64_t>(42), 7), 6);
    assert_int_equal(quotient(now<int64_t>(DYNAMIC), 7), DYNAMIC);
}

#ifdef __has_builtin
#if __has_builtin(__builtin_bit_cast)
// 2.5 is 0x40200000; its bits stand above the kind.
TEST(constants__a_pad_of_ones_own_has_its_bits) {
    const pto::PadValue pad = pto::PadValueCustom(now(2.5f));
    assert_int_equal(static_cast<uint64_t>(pad) >> 32, 0x40200000);
    assert_int_equal(static_cast<uint32_t>(static_cast<uint64_t>(pad)), PTOISA_PAD_CUSTOM);
}
#endif
#endif

// A host has its caches in order: nothing happens to the line.
TEST(constants__lines_of_the_cache_stay) {
    int line[16] = {7};
    dcci(line, SINGLE_CACHE_LINE);
    dcci(line, ENTIRE_DATA_CACHE, CACHELINE_OUT);
    assert_int_equal(line[0], 7);
}
