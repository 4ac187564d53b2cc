// The calls that kernels are emitted as: a small kernel for each of the emitter's clauses, and the line
// that PTO-ISA's headers want for it, from their signatures. Nothing is compiled here: that these
// calls compute what the library does is tested where kernels are compiled (npu_scenes.h).

#include "npu_calls.h"

#include <math.h>

static ptowsp_instruction_desc instruction(const char *name, ptowsp_value dst) {
    ptowsp_instruction_desc desc = {.name = name, .dst[0] = dst};
    return desc;
}

// -- numbers --------------------------------------------------------------------------------------

static void full_is(ptowsp_dtype dtype, double value, const char *number) {
    calls c;
    char line[80];
    calls_begin(&c, NULL);
    ptowsp_value d = calls_alloc(&c, dtype, 8, 16);
    ptowsp_instruction_desc fill = instruction("TEXPANDS", d);
    fill.scalar = ptowsp_tile_const(c.k, value);
    ptowsp_instruction(c.k, &fill);
    ptowsp_tile_store(calls_out(&c, "y", dtype, 8, 16), d);
    calls_emit(&c);
    snprintf(line, sizeof line, "TEXPANDS(v_y, %s);", number);
    calls_have(&c, line);
    calls_end(&c);
}

TEST(calls__numbers_are_elements) {
    full_is(PTOWSP_F32, NAN, "wsp::NOT_A_NUMBER");
    full_is(PTOWSP_F32, INFINITY, "wsp::INF");
    full_is(PTOWSP_F32, -INFINITY, "-wsp::INF");
    full_is(PTOWSP_F32, 0.1, "0.1f");
    full_is(PTOWSP_F32, 16777216, "16777216.0f");
    full_is(PTOWSP_F32, 1e30, "1e+30f");
    full_is(PTOWSP_I32, -2147483648.0, "INT32_MIN");  // no literal: minus is an operator
    full_is(PTOWSP_U32, 4294967295.0, "4294967295u");
}

// What elements are compared with, and what is selected instead of them, ends at the limits of their
// type: no element is beyond.
TEST(calls__limits_are_those_of_the_type) {
    const struct {
        ptowsp_dtype dtype;
        double scalar;
        const char *number;
    } cases[] = {{PTOWSP_I32, 1e30, "2147483647"}, {PTOWSP_I32, -1e30, "INT32_MIN"},
                 {PTOWSP_I32, 3e9, "2147483647"},  {PTOWSP_I32, -3e9, "INT32_MIN"},
                 {PTOWSP_F32, 0.5, "0.5f"},        {PTOWSP_F16, 0.3, "half(0.3f)"}};
    const ptowsp_machine a5 = ptowsp_machine_950pr();  // A2/A3 has no order of integers
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        calls c;
        char line[80];
        calls_begin(&c, &a5);
        ptowsp_value mask = calls_alloc(&c, PTOWSP_U8, 16, 32);
        ptowsp_instruction_desc compare = instruction("TCMPS", mask);
        compare.src[0] = calls_in(&c, "x", cases[i].dtype, 16, 64);
        compare.scalar = ptowsp_tile_const(c.k, cases[i].scalar);
        compare.mode = PTOWSP_LE;
        ptowsp_instruction(c.k, &compare);
        ptowsp_tile_store(calls_out(&c, "y", PTOWSP_U8, 16, 32), mask);
        calls_emit(&c);
        snprintf(line, sizeof line, "TCMPS(t2, t1, %s, CmpMode::LE);", cases[i].number);
        calls_have(&c, line);
        calls_end(&c);
    }
}

// A double goes to 16 bits in one rounding, and a float is written: the one that rounds alike. With
// x = 1 + 2^-11 + 2^-40, f16 is 1 + 2^-10, but the nearest float is the tie 1 + 2^-11, which goes to 1;
// so the float above it is written, 1.00048840. Below the tie 1 + 3 * 2^-11 it is the one below.
TEST(calls__doubles_are_rounded_once) {
    full_is(PTOWSP_F16, 1 + 0x1p-11 + 0x1p-40, "half(1.0004884f)");
    full_is(PTOWSP_F16, -(1 + 0x1p-11 + 0x1p-40), "half(-1.0004884f)");
    full_is(PTOWSP_F16, 1 + 3 * 0x1p-11 - 0x1p-40, "half(1.0014647f)");
    full_is(PTOWSP_BF16, 1 + 0x1p-8 + 0x1p-40, "bfloat16_t(1.0039064f)");
    full_is(PTOWSP_F16, 0.3, "half(0.3f)");  // no tie: the nearest float will do
    full_is(PTOWSP_F16, 0.5, "half(0.5f)");
}

// Of scalars that wrap, the low bits: 40000 is -25536 in 16 bits, 2^33 + 5 is 5 in 32.
TEST(calls__scalars_wrap) {
    const struct {
        ptowsp_dtype dtype;
        double scalar;
        const char *line;
    } cases[] = {{PTOWSP_I16, 40000, "TADDS(v_y, v_x, -25536);"},
                 {PTOWSP_I32, 8589934597.0, "TADDS(v_y, v_x, 5);"},
                 {PTOWSP_I32, 2147483648.0, "TADDS(v_y, v_x, INT32_MIN);"},
                 {PTOWSP_I32, 7, "TADDS(v_y, v_x, 7);"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        calls c;
        calls_begin(&c, NULL);
        ptowsp_value d = calls_alloc(&c, cases[i].dtype, 8, 16);
        ptowsp_instruction_desc add = instruction("TADDS", d);
        add.src[0] = calls_in(&c, "x", cases[i].dtype, 8, 16);
        add.scalar = ptowsp_tile_const(c.k, cases[i].scalar);
        ptowsp_instruction(c.k, &add);
        ptowsp_tile_store(calls_out(&c, "y", cases[i].dtype, 8, 16), d);
        calls_emit(&c);
        calls_have(&c, cases[i].line);
        calls_end(&c);
    }
}

// -- words ----------------------------------------------------------------------------------------

TEST(calls__modes_are_words) {
    static const char patterns[][6] = {"P0101", "P1010", "P0001", "P0010",
                                       "P0100", "P1000", "P1111"};
    static const char compares[][3] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    static const uint32_t modes[] = {PTOWSP_EQ, PTOWSP_NE, PTOWSP_LT,
                                     PTOWSP_LE, PTOWSP_GT, PTOWSP_GE};
    for (uint32_t mode = 0; mode < 7; mode++) {
        calls c;
        char line[160];
        calls_begin(&c, NULL);
        // Half of the columns, a fourth, or all.
        const int64_t cols = mode < 2 ? 16 : mode < 6 ? 8 : 32;
        ptowsp_value x = calls_in(&c, "x", PTOWSP_F32, 16, 32);
        ptowsp_value d = calls_alloc(&c, PTOWSP_F32, 16, cols);
        ptowsp_instruction_desc pick = instruction("TGATHERMASK", d);
        pick.src[0] = x;
        pick.mode = mode;
        ptowsp_instruction(c.k, &pick);
        ptowsp_tile_store(calls_out(&c, "y", PTOWSP_F32, 16, cols), d);
        calls_emit(&c);
        snprintf(line, sizeof line,
                 "TGATHER<decltype(v_y), decltype(t1), MaskPattern::%s>(v_y, t1);", patterns[mode]);
        calls_have(&c, line);
        calls_end(&c);
    }
    for (uint32_t i = 0; i < 6; i++) {
        calls c;
        char line[80];
        calls_begin(&c, NULL);
        ptowsp_value x = calls_in(&c, "x", PTOWSP_F32, 16, 64);
        ptowsp_value mask = calls_alloc(&c, PTOWSP_U8, 16, 32);
        ptowsp_instruction_desc compare = instruction("TCMP", mask);
        compare.src[0] = x;
        compare.src[1] = calls_in(&c, "z", PTOWSP_F32, 16, 64);
        compare.mode = modes[i];
        ptowsp_instruction(c.k, &compare);
        ptowsp_tile_store(calls_out(&c, "y", PTOWSP_U8, 16, 32), mask);
        calls_emit(&c);
        snprintf(line, sizeof line, "TCMP(t3, t1, t2, CmpMode::%s);", compares[i]);
        calls_have(&c, line);
        calls_end(&c);
    }
}

TEST(calls__conversions_have_a_rounding) {
    const struct {
        ptowsp_dtype from, to;
        ptowsp_round round;
        const char *word;
    } cases[] = {{PTOWSP_F32, PTOWSP_I32, PTOWSP_ROUND_NEAREST, "CAST_RINT"},
                 {PTOWSP_F32, PTOWSP_I32, PTOWSP_ROUND_AWAY, "CAST_ROUND"},
                 {PTOWSP_F32, PTOWSP_I32, PTOWSP_ROUND_FLOOR, "CAST_FLOOR"},
                 {PTOWSP_F32, PTOWSP_I32, PTOWSP_ROUND_CEIL, "CAST_CEIL"},
                 {PTOWSP_F32, PTOWSP_I32, PTOWSP_ROUND_TRUNC, "CAST_TRUNC"},
                 {PTOWSP_F32, PTOWSP_F16, PTOWSP_ROUND_NEAREST, "CAST_RINT"},
                 {PTOWSP_F16, PTOWSP_F32, PTOWSP_ROUND_NEAREST, "CAST_NONE"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        calls c;
        char line[80];
        calls_begin(&c, NULL);
        ptowsp_value d = calls_alloc(&c, cases[i].to, 16, 32);
        ptowsp_instruction_desc convert = instruction("TCVT", d);
        convert.src[0] = calls_in(&c, "x", cases[i].from, 16, 32);
        convert.mode = (uint32_t)cases[i].round;
        ptowsp_instruction(c.k, &convert);
        ptowsp_tile_store(calls_out(&c, "y", cases[i].to, 16, 32), d);
        calls_emit(&c);
        snprintf(line, sizeof line, "TCVT(v_y, v_x, RoundMode::%s);", cases[i].word);
        calls_have(&c, line);
        calls_end(&c);
    }
}

// -- calls whose operands are not in the list's order ---------------------------------------------

// The scalar stands between the tiles; scratch at the end, or in its place the mask. PTO-ISA's simulator
// has TADDSC for tiles of one type: those of tasks are seen with the static sizes of the result.
TEST(calls__operands_are_where_the_signature_has_them) {
    static const char names[][7] = {"TADDSC", "TSUBSC"};
    for (int i = 0; i < 2; i++) {
        calls c;
        char line[80];
        calls_begin(&c, NULL);
        ptowsp_value d = calls_alloc(&c, PTOWSP_F32, 8, 16);
        ptowsp_instruction_desc add = instruction(names[i], d);
        add.src[0] = calls_in(&c, "x", PTOWSP_F32, 8, 16);
        add.src[1] = calls_in(&c, "z", PTOWSP_F32, 8, 16);
        add.scalar = ptowsp_tile_const(c.k, 3);
        ptowsp_instruction(c.k, &add);
        ptowsp_tile_store(calls_out(&c, "y", PTOWSP_F32, 8, 16), d);
        calls_emit(&c);
        const char *const part = i == 0 ? "_part" : "";
        snprintf(line, sizeof line, "%s(v_y, v_x%s, 3.0f, v_z%s);", names[i], part, part);
        calls_have(&c, line);
        if (i == 0) {
            calls_have(&c, "Tile<TileType::Vec, float, 8, 16, BLayout::RowMajor, 8, 16> v_x_part;");
        }
        calls_end(&c);
    }
    // The quotient of a number and a tile, in its place.
    calls c;
    calls_begin(&c, NULL);
    ptowsp_value x = calls_in(&c, "x", PTOWSP_F32, 8, 16);
    ptowsp_tile_store(calls_out(&c, "y", PTOWSP_F32, 8, 16),
                      ptowsp_tile_div(ptowsp_tile_const(c.k, 2), x));
    calls_emit(&c);
    calls_have(&c, "TDIVS(v_x, 2.0f, v_x);");
    calls_end(&c);
}

TEST(calls__ramps_and_triangles_say_their_direction) {
    for (uint32_t mode = 0; mode < 2; mode++) {
        calls c;
        char line[80];
        calls_begin(&c, NULL);
        ptowsp_value ramp = calls_alloc(&c, PTOWSP_I32, 1, 24);
        ptowsp_value triangle = calls_alloc(&c, PTOWSP_I32, 16, 24);
        ptowsp_instruction_desc count = instruction("TCI", ramp);
        ptowsp_instruction_desc ones = instruction("TTRI", triangle);
        count.scalar = ptowsp_tile_const(c.k, -7);
        ones.col = (uint32_t)-3;  // below the diagonal
        count.mode = ones.mode = mode;
        ptowsp_instruction(c.k, &count);
        ptowsp_instruction(c.k, &ones);
        ptowsp_tile_store(calls_out(&c, "y", PTOWSP_I32, 1, 24), ramp);
        ptowsp_tile_store(calls_out(&c, "z", PTOWSP_I32, 16, 24), triangle);
        calls_emit(&c);
        snprintf(line, sizeof line, "TCI<decltype(v_y), int32_t, %u>(v_y, -7);", mode);
        calls_have(&c, line);
        snprintf(line, sizeof line, "TTRI<decltype(v_z), %u>(v_z, -3);", mode);
        calls_have(&c, line);
        calls_end(&c);
    }
}

// Sums of columns by a tree take scratch; quantising takes some on A2/A3, which no signature has.
TEST(calls__scratch_chooses_the_signature) {
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    for (int i = 0; i < 2; i++) {
        calls c;
        calls_begin(&c, i ? &a5 : NULL);
        ptowsp_value x = calls_in(&c, "x", PTOWSP_F32, 16, 32);
        ptowsp_value scale = calls_in(&c, "scale", PTOWSP_F32, 16, 1);
        ptowsp_tile_store(calls_out(&c, "y", PTOWSP_I8, 16, 32), ptowsp_tile_quantize(x, scale));
        calls_emit(&c);
        calls_have(&c, i ? "TQUANT<QuantType::INT8_SYM>(v_y, v_x, v_scale);"
                         : "WSP_QUANT(v_y, v_x, v_scale, scratch_1);");
        calls_end(&c);
    }
    calls c;
    calls_begin(&c, NULL);
    ptowsp_value x = calls_in(&c, "x", PTOWSP_F32, 16, 32);
    ptowsp_value d = calls_alloc(&c, PTOWSP_F32, 1, 32);
    ptowsp_instruction_desc sum = instruction("TCOLSUM", d);
    sum.src[0] = x;
    sum.tmp = calls_alloc(&c, PTOWSP_F32, 16, 32);
    ptowsp_instruction(c.k, &sum);
    ptowsp_tile_store(calls_out(&c, "y", PTOWSP_F32, 1, 32), d);
    calls_emit(&c);
    calls_have(&c, "TCOLSUM(v_y, v_x, scratch_1, true);");
    calls_end(&c);
}

// Four runs of 32 pairs, which are 64 elements of f32 or 128 of f16 each, are merged in one call; three
// runs are separate lists, whose counts are told and unused.
TEST(calls__sorted_runs_are_merged) {
    for (int i = 0; i < 4; i++) {
        const ptowsp_dtype dtype = i < 2 ? PTOWSP_F32 : PTOWSP_F16;
        const int64_t runs = 3 + i % 2, pair = 8 / ptowsp_dtype_size(dtype);
        calls c;
        calls_begin(&c, NULL);
        ptowsp_value x = calls_in(&c, "x", dtype, 1, 32 * runs);
        ptowsp_value index = ptowsp_tile_iota(c.k, PTOWSP_U32, 32 * runs, 0);
        ptowsp_value pairs = ptowsp_tile_sort32(x, index);
        ptowsp_tile_store(calls_out(&c, "y", dtype, 1, 32 * pair * runs),
                          ptowsp_tile_merge_sort(pairs, 32));
        calls_emit(&c);
        if (runs == 4) {
            calls_have(&c, i < 2 ? "TMRGSORT(t3, t2, 64);" : "TMRGSORT(t3, t2, 128);");
        } else {
            calls_have(&c, "MrgSortExecutedNumList taken;");
            calls_have(&c, "TMRGSORT<decltype(t2), decltype(scratch_1), decltype(t3), "
                           "decltype(t4), decltype(t5), false>(t2, taken, scratch_1, t3, t4, t5);");
        }
        calls_end(&c);
    }
}

// The score is the first of four elements of an f16 pair, the index the second of two words of the
// same bytes.
TEST(calls__the_best_of_f16_are_picked_by_pattern) {
    calls c;
    calls_begin(&c, NULL);
    ptowsp_value x = calls_in(&c, "x", PTOWSP_F16, 1, 32);
    ptowsp_value pairs = ptowsp_tile_sort32(x, ptowsp_tile_iota(c.k, PTOWSP_U32, 32, 0));
    ptowsp_tile_store(calls_out(&c, "y", PTOWSP_F16, 1, 16), ptowsp_tile_topk_values(pairs, 16));
    ptowsp_tile_store(calls_out(&c, "z", PTOWSP_U32, 1, 16), ptowsp_tile_topk_indices(pairs, 16));
    calls_emit(&c);
    calls_have(&c, "Tile<TileType::Vec, half, 1, 128");
    calls_have(&c, "Tile<TileType::Vec, uint32_t, 1, 64");
    calls_have(&c, "MaskPattern::P0001>(");
    calls_have(&c, "MaskPattern::P1010>(");
    calls_end(&c);
}

// -- global memory --------------------------------------------------------------------------------

TEST(calls__stores_may_add) {
    calls c;
    calls_begin(&c, NULL);
    ptowsp_value x = calls_in(&c, "x", PTOWSP_F32, 16, 32);
    ptowsp_tile_store_add(calls_param(&c, PTOWSP_INOUT, "y", PTOWSP_F32, 16, 32), x);
    ptowsp_tile_store_add(calls_param(&c, PTOWSP_INOUT, "z", PTOWSP_F32, 16, 1),
                          ptowsp_tile_rowmax(x));
    ptowsp_tile_store(calls_out(&c, "m", PTOWSP_F32, 16, 1), ptowsp_tile_rowsum(x));
    calls_emit(&c);
    calls_have(&c, "AtomicType::AtomicAdd>(v_y_gm, v_x");
    calls_have(&c, "wsp::store_column<AtomicType::AtomicAdd>(task, 2, ");
    calls_have(&c, "wsp::store_column<AtomicType::AtomicNone>(task, 3, ");
    calls_end(&c);
}

TEST(calls__rows_are_gathered_and_scattered) {
    calls c;
    calls_begin(&c, NULL);
    ptowsp_value table = calls_in(&c, "table", PTOWSP_F32, 20, 24);
    ptowsp_value index = calls_in(&c, "index", PTOWSP_I32, 1, 8);
    ptowsp_value d = calls_alloc(&c, PTOWSP_F32, 8, 24);
    ptowsp_instruction_desc gather = instruction("MGATHER", d);
    gather.src[0] = table;
    gather.src[1] = index;
    ptowsp_instruction(c.k, &gather);
    ptowsp_instruction_desc scatter =
        instruction("MSCATTER", calls_param(&c, PTOWSP_INOUT, "to", PTOWSP_F32, 20, 24));
    scatter.src[0] = d;
    scatter.src[1] = index;
    ptowsp_instruction(c.k, &scatter);
    calls_emit(&c);
    calls_have(&c, "MGATHER<Coalesce::Row>(t1_part, v_table_gm, v_index);");
    calls_have(&c, "MSCATTER<Coalesce::Row>(v_to_gm, t1_part2, v_index);");
    calls_end(&c);
}

// A product with ReLU goes out through the fix pipe.
TEST(calls__products_may_end_in_relu) {
    calls c = {0};
    npu_fixture_begin(&c.f);
    npu_module_make(&c.f, "calls");
    ptowsp_body_desc desc = {.name = "k", .is_fused = true};
    c.k = ptowsp_kernel_begin(c.f.m, &desc);
    ptowsp_value a = calls_in(&c, "a", PTOWSP_F16, 16, 32),
                 b = calls_in(&c, "b", PTOWSP_F16, 32, 48);
    ptowsp_tile_store(calls_out(&c, "y", PTOWSP_F32, 16, 48),
                      ptowsp_tile_relu(ptowsp_tile_matmul(a, b)));
    calls_emit(&c);
    calls_have(&c, "AtomicType::AtomicNone, ReluPreMode::NormalRelu>(v_y_gm, ");
    calls_end(&c);
}

// -- names ----------------------------------------------------------------------------------------

// Parameters whose names end as those that the emitter makes of them get an underscore, and equal ones
// a number. Others are apart by their prefix: t1 is a tile of the emitter, v_t1 one of a user.
TEST(calls__parameters_do_not_clash) {
    static const char *const names[][2] = {
        {"t1", "v_t1"},          {"taken", "v_taken"},      {"scratch", "v_scratch"},
        {"x_rows", "v_x_rows_"}, {"acc_1", "v_acc_1_"},     {"t", "v_t"},
        {"x_2nd", "v_x_2nd"},    {"x_part3", "v_x_part3_"}, {"a b", "v_a_b"},
        {"a_b", "v_a_b2"},       {"a-b", "v_a_b3"}};
    const int count = sizeof names / sizeof names[0];
    calls c;
    calls_begin(&c, NULL);
    ptowsp_value sum = calls_in(&c, names[0][0], PTOWSP_F32, 8, 16);
    for (int i = 1; i < count; i++) {
        sum = ptowsp_tile_add(sum, calls_in(&c, names[i][0], PTOWSP_F32, 8, 16));
    }
    ptowsp_tile_store(calls_out(&c, "y", PTOWSP_F32, 8, 16), sum);
    calls_emit(&c);
    for (int i = 0; i < count; i++) {
        char line[80];
        snprintf(line, sizeof line, "auto %s_gm = wsp::window<float>(task, %d, 0, 0, ", names[i][1],
                 i);
        calls_have(&c, line);
    }
    calls_end(&c);
}
