// The calls that kernels are emitted as: a small kernel for each of the emitter's clauses, and the line
// that PTO-ISA's headers want for it, from their signatures. Nothing is compiled here: that these
// calls compute what the library does is tested where kernels are compiled (npu_scenes.h).

#include "npu_files.h"
#include "npu_fixture.h"

// A tile kernel: its parameters, which are its values %1 and so on, and its operations behind these. A
// task of it has tensors as large as its tiles. Its file has these lines.
typedef struct call {
    const char *on, *params, *operations, *lines;
} call;

#define ON_A2A3(...)                                                                               \
    { "vector, 9 instructions\n  machine \"910B\"", __VA_ARGS__ }
#define ON_A5(...)                                                                                 \
    { "vector, 9 instructions\n  machine \"950PR\"", __VA_ARGS__ }
#define ON_A2A3_FUSED(...)                                                                         \
    { "cube, 9 instructions\n  machine \"910B\", fused", __VA_ARGS__ }

// Has it each of the lines? Blanks and line ends are alike, as lines are broken where they are long.
static void has_all(const char *text, const char *lines) {
    while (*lines) {
        const size_t length = strcspn(lines, "\n");
        bool is_there = false;
        for (const char *at = text; *at && !is_there; at++) {
            const char *a = at, *b = lines;
            while (b < lines + length && (*a == *b || (*b == ' ' && *a == '\n'))) {
                a += *b++ == ' ' ? strspn(a, " \n") : 1;
            }
            is_there = b == lines + length;
        }
        if (!is_there) {
            fputs(text, stderr);
            fail_msg("there is no %.*s", (int)length, lines);
        }
        lines += length + (lines[length] == '\n');
    }
}

static void module_of(const call *c, char module[4000]) {
    char tensors[1000] = "", values[1000] = "", views[1000] = "", params[500];
    int count = 0;
    snprintf(params, sizeof params, "%s", c->params);
    for (char *at = strtok(params, ","); at; at = strtok(NULL, ",")) {
        char name[24], type[8];
        int rows, cols;
        if (sscanf(at, " %*s \"%20[^\"]\" %7s %d x %d", name, type, &rows, &cols) != 4) {
            assert_int_equal(sscanf(at, " %*s %20s %7s %d x %d", name, type, &rows, &cols), 4);
        }
        sprintf(tensors + strlen(tensors), "tensor \"%s\" %s [%d, %d] global\n", name, type, rows,
                cols);
        sprintf(values + strlen(values), "  %%%d = parameter \"%s\"\n", ++count, name);
        sprintf(views + strlen(views), " \"%s\" = \"%s\"", name, name);
    }
    snprintf(module, 4000,
             "module calls\n%skernel k(axes 0, %s) %s\n%s%sworkload w\n  task k()%s\n", tensors,
             c->params, c->on, values, c->operations, views);
}

static void calls_check(const call *calls, size_t count) {
    for (size_t i = 0; i < count; i++) {
        npu_fixture f;
        char module[4000];
        module_of(&calls[i], module);
        npu_fixture_begin(&f);
        npu_parse(&f, module, NULL, 0);
        npu_fixture_compile(&f, NULL);
        has_all(npu_files_of(f.context, f.program, "aicore/kernels/k.cpp"), calls[i].lines);
        npu_fixture_free(&f);
    }
}

#define CALLS(test, ...)                                                                           \
    TEST(test) {                                                                                   \
        static const call calls[] = {__VA_ARGS__};                                                 \
        calls_check(calls, sizeof calls / sizeof calls[0]);                                        \
    }

// -- numbers --------------------------------------------------------------------------------------

#define FULL(type, value, number)                                                                  \
    ON_A2A3("out y " type " 8 x 16",                                                               \
            "  %2 = alloc UB row_major : " type " 8 x 16\n"                                        \
            "  %3 = const " value "\n"                                                             \
            "  instruction TEXPANDS (%2) () scalar %3\n"                                           \
            "  store %1, %2\n",                                                                    \
            "TEXPANDS(v_y, " number ");")

CALLS(calls__numbers_are_elements,              //
      FULL("f32", "nan", "wsp::NOT_A_NUMBER"),  //
      FULL("f32", "inf", "wsp::INF"),           //
      FULL("f32", "-inf", "-wsp::INF"),         //
      FULL("f32", "0.1", "0.1f"),               //
      FULL("f32", "16777216", "16777216.0f"),   //
      FULL("f32", "1e+30", "1e+30f"),           //
      FULL("i32", "-2147483648", "INT32_MIN"),  // no literal: minus is an operator
      FULL("u32", "4294967295", "4294967295u"))

#define LIMIT(type, value, number)                                                                 \
    ON_A5("in x " type " 16 x 64, out y u8 16 x 32",                                               \
          "  %3 = alloc UB row_major : u8 16 x 32\n"                                               \
          "  %4 = const " value "\n"                                                               \
          "  instruction TCMPS (%3) (%1) scalar %4 mode 3\n"                                       \
          "  store %2, %3\n",                                                                      \
          "TCMPS(t2, t1, " number ", CmpMode::LE);")

// What elements are compared with, and what is selected instead of them, ends at the limits of their
// type: no element is beyond. A2/A3 has no order of integers.
CALLS(calls__limits_are_those_of_the_type,       //
      LIMIT("i32", "1e+30", "2147483647"),       //
      LIMIT("i32", "-1e+30", "INT32_MIN"),       //
      LIMIT("i32", "3000000000", "2147483647"),  //
      LIMIT("i32", "-3000000000", "INT32_MIN"),  //
      LIMIT("f32", "0.5", "0.5f"),               //
      LIMIT("f16", "0.3", "half(0.3f)"))

// A double goes to 16 bits in one rounding, and a float is written: the one that rounds alike. With
// x = 1 + 2^-11 + 2^-40, f16 is 1 + 2^-10, but the nearest float is the tie 1 + 2^-11, which goes to 1;
// so the float above it is written, 1.00048840. Below the tie 1 + 3 * 2^-11 it is the one below, and of
// bf16 the tie is 1 + 2^-8.
CALLS(calls__doubles_are_rounded_once,                               //
      FULL("f16", "1.0004882812509095", "half(1.0004884f)"),         //
      FULL("f16", "-1.0004882812509095", "half(-1.0004884f)"),       //
      FULL("f16", "1.0014648437490905", "half(1.0014647f)"),         //
      FULL("bf16", "1.0039062500009095", "bfloat16_t(1.0039064f)"),  //
      FULL("f16", "0.3", "half(0.3f)"),                              // no tie: the nearest will do
      FULL("f16", "0.5", "half(0.5f)"))

#define WRAP(type, value, number)                                                                  \
    ON_A2A3("in x " type " 8 x 16, out y " type " 8 x 16",                                         \
            "  %3 = alloc UB row_major : " type " 8 x 16\n"                                        \
            "  %4 = const " value "\n"                                                             \
            "  instruction TADDS (%3) (%1) scalar %4\n"                                            \
            "  store %2, %3\n",                                                                    \
            "TADDS(v_y, v_x, " number ");")

// Of scalars that wrap, the low bits: 40000 is -25536 in 16 bits, 2^33 + 5 is 5 in 32.
CALLS(calls__scalars_wrap, WRAP("i16", "40000", "-25536"), WRAP("i32", "8589934597", "5"),
      WRAP("i32", "2147483648", "INT32_MIN"), WRAP("i32", "7", "7"))

// -- words ----------------------------------------------------------------------------------------

#define PICK(cols, mode, word)                                                                     \
    ON_A2A3("in x f32 16 x 32, out y f32 16 x " cols,                                              \
            "  %3 = alloc UB row_major : f32 16 x " cols "\n"                                      \
            "  instruction TGATHERMASK (%3) (%1)" mode "\n"                                        \
            "  store %2, %3\n",                                                                    \
            "TGATHER<decltype(v_y), decltype(t1), MaskPattern::" word ">(v_y, t1);")
#define COMPARE(mode, word)                                                                        \
    ON_A2A3("in x f32 16 x 64, in z f32 16 x 64, out y u8 16 x 32",                                \
            "  %4 = alloc UB row_major : u8 16 x 32\n"                                             \
            "  instruction TCMP (%4) (%1, %2)" mode "\n"                                           \
            "  store %3, %4\n",                                                                    \
            "TCMP(t3, t1, t2, CmpMode::" word ");")

// Half of the columns, a fourth, or all.
CALLS(calls__modes_are_words, PICK("16", "", "P0101"), PICK("16", " mode 1", "P1010"),
      PICK("8", " mode 2", "P0001"), PICK("8", " mode 3", "P0010"), PICK("8", " mode 4", "P0100"),
      PICK("8", " mode 5", "P1000"), PICK("32", " mode 6", "P1111"), COMPARE("", "EQ"),
      COMPARE(" mode 1", "NE"), COMPARE(" mode 2", "LT"), COMPARE(" mode 3", "LE"),
      COMPARE(" mode 4", "GT"), COMPARE(" mode 5", "GE"))

#define CONVERT(from, to, mode, word)                                                              \
    ON_A2A3("in x " from " 16 x 32, out y " to " 16 x 32",                                         \
            "  %3 = alloc UB row_major : " to " 16 x 32\n"                                         \
            "  instruction TCVT (%3) (%1)" mode "\n"                                               \
            "  store %2, %3\n",                                                                    \
            "TCVT(v_y, v_x, RoundMode::CAST_" word ");")

CALLS(calls__conversions_have_a_rounding, CONVERT("f32", "i32", "", "RINT"),
      CONVERT("f32", "i32", " mode 1", "ROUND"), CONVERT("f32", "i32", " mode 2", "FLOOR"),
      CONVERT("f32", "i32", " mode 3", "CEIL"), CONVERT("f32", "i32", " mode 4", "TRUNC"),
      CONVERT("f32", "f16", "", "RINT"), CONVERT("f16", "f32", "", "NONE"))

// -- calls whose operands are not in the list's order ---------------------------------------------

#define SUM(name, lines)                                                                           \
    ON_A2A3("in x f32 8 x 16, in z f32 8 x 16, out y f32 8 x 16",                                  \
            "  %4 = alloc UB row_major : f32 8 x 16\n"                                             \
            "  %5 = const 3\n"                                                                     \
            "  instruction " name " (%4) (%1, %2) scalar %5\n"                                     \
            "  store %3, %4\n",                                                                    \
            lines)

// The scalar stands between the tiles; scratch at the end, or in its place the mask. PTO-ISA's simulator
// has TADDSC for tiles of one type: those of tasks are seen with the static sizes of the result. The
// quotient of a number and a tile is in its place.
CALLS(calls__operands_are_where_the_signature_has_them,
      SUM("TADDSC", "TADDSC(v_y, v_x_part, 3.0f, v_z_part);\n"
                    "Tile<TileType::Vec, float, 8, 16, BLayout::RowMajor, 8, 16> v_x_part;"),
      SUM("TSUBSC", "TSUBSC(v_y, v_x, 3.0f, v_z);"),
      ON_A2A3("in x f32 8 x 16, out y f32 8 x 16",
              "  %3 = const 2\n"
              "  %4 = div %3, %1 : f32 8 x 16\n"
              "  store %2, %4\n",
              "TDIVS(v_x, 2.0f, v_x);"))

#define RAMP(mode, digit)                                                                          \
    ON_A2A3("out y i32 1 x 24, out z i32 16 x 24",                                                 \
            "  %3 = alloc UB row_major : i32 1 x 24\n"                                             \
            "  %4 = alloc UB row_major : i32 16 x 24\n"                                            \
            "  %5 = const -7\n"                                                                    \
            "  instruction TCI (%3) () scalar %5" mode "\n"                                        \
            "  instruction TTRI (%4) () at (0, 4294967293)" mode "\n"                              \
            "  store %1, %3\n"                                                                     \
            "  store %2, %4\n",                                                                    \
            "TCI<decltype(v_y), int32_t, " digit ">(v_y, -7);\n"                                   \
            "TTRI<decltype(v_z), " digit ">(v_z, -3);")

// The triangle begins at column -3, below the diagonal.
CALLS(calls__ramps_and_triangles_say_their_direction, RAMP("", "0"), RAMP(" mode 1", "1"))

#define QUANTIZE(on, lines)                                                                        \
    on("in x f32 16 x 32, in scale f32 16 x 1, out y i8 16 x 32",                                  \
       "  %4 = quantize %1, %2 : i8 16 x 32\n"                                                     \
       "  store %3, %4\n",                                                                         \
       lines)

// Sums of columns by a tree take scratch; quantising takes some on A2/A3, which no signature has.
CALLS(calls__scratch_chooses_the_signature,
      QUANTIZE(ON_A2A3, "WSP_QUANT(v_y, v_x, v_scale, scratch_1);"),
      QUANTIZE(ON_A5, "TQUANT<QuantType::INT8_SYM>(v_y, v_x, v_scale);"),
      ON_A2A3("in x f32 16 x 32, out y f32 1 x 32",
              "  %3 = alloc UB row_major : f32 1 x 32\n"
              "  %4 = alloc UB row_major : f32 16 x 32\n"
              "  instruction TCOLSUM (%3) (%1) tmp %4\n"
              "  store %2, %3\n",
              "TCOLSUM(v_y, v_x, scratch_1, true);"))

#define MERGE(type, count, pairs, lines)                                                           \
    ON_A2A3("in x " type " 1 x " count ", out y " type " 1 x " pairs,                              \
            "  %3 = iota 0 : u32 1 x " count "\n"                                                  \
            "  %4 = sort32 %1, %3 : " type " 1 x " pairs "\n"                                      \
            "  %5 = merge_sort %4, 32 : " type " 1 x " pairs "\n"                                  \
            "  store %2, %5\n",                                                                    \
            lines)
#define LISTS                                                                                      \
    "MrgSortExecutedNumList taken;\n"                                                              \
    "TMRGSORT<decltype(t2), decltype(scratch_1), decltype(t3), decltype(t4), decltype(t5), "       \
    "false>(t2, taken, scratch_1, t3, t4, t5);"

// Four runs of 32 pairs, which are 64 elements of f32 or 128 of f16 each, are merged in one call; three
// runs are separate lists, whose counts are told and unused.
CALLS(calls__sorted_runs_are_merged, MERGE("f32", "96", "192", LISTS),
      MERGE("f32", "128", "256", "TMRGSORT(t3, t2, 64);"), MERGE("f16", "96", "384", LISTS),
      MERGE("f16", "128", "512", "TMRGSORT(t3, t2, 128);"))

// The score is the first of four elements of an f16 pair, the index the second of two words of the
// same bytes.
CALLS(calls__the_best_of_f16_are_picked_by_pattern,
      ON_A2A3("in x f16 1 x 32, out y f16 1 x 16, out z u32 1 x 16",
              "  %4 = iota 0 : u32 1 x 32\n"
              "  %5 = sort32 %1, %4 : f16 1 x 128\n"
              "  %6 = topk_values %5 : f16 1 x 16\n"
              "  store %2, %6\n"
              "  %8 = topk_indices %5 : u32 1 x 16\n"
              "  store %3, %8\n",
              "Tile<TileType::Vec, half, 1, 128\n"
              "Tile<TileType::Vec, uint32_t, 1, 64\n"
              "MaskPattern::P0001>(\n"
              "MaskPattern::P1010>("))

// -- global memory --------------------------------------------------------------------------------

CALLS(calls__stores_may_add,
      ON_A2A3("in x f32 16 x 32, inout y f32 16 x 32, inout z f32 16 x 1, out m f32 16 x 1",
              "  store_add %2, %1\n"
              "  %6 = rowmax %1 : f32 16 x 1\n"
              "  store_add %3, %6\n"
              "  %8 = rowsum %1 : f32 16 x 1\n"
              "  store %4, %8\n",
              "AtomicType::AtomicAdd>(v_y_gm, v_x\n"
              "wsp::store_column<AtomicType::AtomicAdd>(task, 2, \n"
              "wsp::store_column<AtomicType::AtomicNone>(task, 3, "))

CALLS(calls__rows_are_gathered_and_scattered,
      ON_A2A3("in table f32 20 x 24, in index i32 1 x 8, inout to f32 20 x 24",
              "  %4 = alloc UB row_major : f32 8 x 24\n"
              "  instruction MGATHER (%4) (%1, %2)\n"
              "  instruction MSCATTER (%3) (%4, %2)\n",
              "MGATHER<Coalesce::Row>(t1_part, v_table_gm, v_index);\n"
              "MSCATTER<Coalesce::Row>(v_to_gm, t1_part2, v_index);"))

// A product with ReLU goes out through the fix pipe.
CALLS(calls__products_may_end_in_relu,
      ON_A2A3_FUSED("in a f16 16 x 32, in b f16 32 x 48, out y f32 16 x 48",
                    "  %4 = matmul %1, %2 : f32 16 x 48\n"
                    "  %5 = relu %4 : f32 16 x 48\n"
                    "  store %3, %5\n",
                    "AtomicType::AtomicNone, ReluPreMode::NormalRelu>(v_y_gm, "))

// -- names ----------------------------------------------------------------------------------------

#define WINDOW(name, i) "auto v_" name "_gm = wsp::window<float>(task, " i ", 0, 0, \n"

// Parameters whose names end as those that the emitter makes of them get an underscore, and equal ones
// a number. Others are apart by their prefix: t1 is a tile of the emitter, v_t1 one of a user.
CALLS(calls__parameters_do_not_clash,
      ON_A2A3("in t1 f32 8 x 16, in taken f32 8 x 16, in scratch f32 8 x 16, in x_rows f32 8 x 16, "
              "in acc_1 f32 8 x 16, in t f32 8 x 16, in x_2nd f32 8 x 16, in x_part3 f32 8 x 16, "
              "in \"a b\" f32 8 x 16, in a_b f32 8 x 16, in \"a-b\" f32 8 x 16, out y f32 8 x 16",
              "  %13 = add %1, %2 : f32 8 x 16\n"
              "  %14 = add %13, %3 : f32 8 x 16\n"
              "  %15 = add %14, %4 : f32 8 x 16\n"
              "  %16 = add %15, %5 : f32 8 x 16\n"
              "  %17 = add %16, %6 : f32 8 x 16\n"
              "  %18 = add %17, %7 : f32 8 x 16\n"
              "  %19 = add %18, %8 : f32 8 x 16\n"
              "  %20 = add %19, %9 : f32 8 x 16\n"
              "  %21 = add %20, %10 : f32 8 x 16\n"
              "  %22 = add %21, %11 : f32 8 x 16\n"
              "  store %12, %22\n",
              WINDOW("t1", "0") WINDOW("taken", "1") WINDOW("scratch", "2") WINDOW("x_rows_", "3")
                  WINDOW("acc_1_", "4") WINDOW("t", "5") WINDOW("x_2nd", "6")
                      WINDOW("x_part3_", "7") WINDOW("a_b", "8") WINDOW("a_b2", "9")
                          WINDOW("a_b3", "10")))
