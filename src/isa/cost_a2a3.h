// The cycles of instructions on the vector unit of A2/A3, from public constants, which their
// authors calibrated on a 910B3.
//
// There are three sources, each for the instructions that it describes best:
//
//     recipes     element-wise instructions, compares, conversions, gathers, sorts: the vector
//                 instructions that one is made of, with a barrier between two, and their constants
//     readings    reductions and the plain row expand: cycles per row, measured at a few widths
//     elsewhere   moves and matrices: cost.h
//
// A vector instruction works in repeats of 256 bytes: slope cycles each, and head + tail more where
// its pipe had run empty, as it always has after a barrier. It takes all rows in one go where they
// lie together (valid columns = allocated ones, in every operand), else one row after another,
// which has more repeats if rows end inside one. A partial mask, where rows or the whole are no
// multiple of 256 bytes, costs 16 more: once for each vector instruction of a recipe, not for each
// row (fits of TSUB with rows of 128 bytes have 2 cycles for each row, and 17 more in all than with
// 256).
//
// All numbers are integers, slopes and biases of readings in 1/10000 of a cycle, and only the last
// sum is rounded, to nearest: the same cycles on every machine, compiler and optimisation level.
//
// Compared with public data that look measured (tests/isa/isa_cost_test.c prints this, with more
// points):
//
//                            model  measured  ratio
//     TADD f32 64x64           152       160   0.95
//     TADD i32 64x64           152       151   1.01
//     TADD f16 16x256           88        92   0.96
//     TSUB f32 64x64           152       153   0.99
//     TMUL f32 64x64           153       168   0.91
//     TDIV f32 64x64           286       288   0.99
//     TADDS f32 32x64           63        57   1.11   as if head and tail were 25, not 31
//     TADDS f32 256x16          95       266   0.36   as if row by row: here rows lie together
//       with 16 of 32 valid    303       266   1.14   row by row, and 16 for the partial mask
//     TABS f32 64x64            93        68   1.37   as if without head and tail
//     TTRANS f32 128x128       518       501   1.03   (f32 is a guess: the type is not given)
//     TROWSUM f32 64x64        492       492   1.00   its reading goes through this point,
//     TROWMAX f32 64x64        480       480   1.00   and so do these
//     TROWEXPAND f32 64x64     933       933   1.00
//     TCOLSUM f32 64x64       1263      1263   1.00
//     TLOAD f32 128x128       1119       776   1.44   one rate for loads of all sizes
//     TLOAD f32 256x64        1119      2624   0.43   narrow rows: no cost for each row
//
// So element-wise instructions are within about a tenth, loads and sorts within a factor of a few
// at best. Limits: 4 GiB a tile.

#ifndef PTOISA_COST_A2A3_H
#define PTOISA_COST_A2A3_H

#include "machine.h"
#include "tile.h"
#include "timing.h"

#define PTOISA_REPEAT_BYTES 256
#define PTOISA_PARTIAL_MASK 16     // cycles
#define PTOISA_CYCLE        10000  // a cycle, in the unit of readings

// -- vector instructions --------------------------------------------------------------------------

// Head, slope, tail. Before ADD: those to which a partial mask is nothing. Reductions to one and to
// blocks (vcadd 14, 7, 32; vcgadd 14, 1, 24; vcgmax 14, 1, 17) are not here: readings are better.
// Of a conversion only head + tail = 27 is known.
// clang-format off
#define PTOISA_VECTORS(V)                                                                          \
    V(NONE, 0, 0, 0)                                                                               \
    V(COPY, 11, 1, 13)                                                                             \
    V(BLOCKS, 0, 0, 18)     /* each value of a column into a block of 32 bytes: vbrcb */           \
    V(PICK, 14, 14, 20)     /* gather by mask: vreducev2 */                                        \
    V(GATHER, 24, 2, 0)                                                                            \
    V(SORT, 20, 16, 0)      /* a repeat is a group of 32 elements */                               \
    V(MERGE, 20, 78, 0)     /* a repeat is four runs of 32 pairs of 8 bytes */                     \
    V(ADD, 10, 2, 14)       /* and max, min */                                                     \
    V(SUB, 10, 2, 14)                                                                              \
    V(MUL, 10, 2, 15)                                                                              \
    V(DIV, 11, 4, 19)                                                                              \
    V(ADDS, 13, 1, 18)                                                                             \
    V(MULS, 11, 1, 15)                                                                             \
    V(MAXS, 10, 1, 13)                                                                             \
    V(MINS, 14, 1, 16)                                                                             \
    V(ABS, 13, 1, 16)                                                                              \
    V(EXP, 13, 2, 18)                                                                              \
    V(LN, 13, 2, 20)                                                                               \
    V(SQRT, 14, 2, 25)                                                                             \
    V(RSQRT, 10, 1, 14)                                                                            \
    V(RELU, 10, 1, 13)                                                                             \
    V(LEAKY, 11, 1, 15)                                                                            \
    V(AND, 8, 2, 12)        /* or, not */                                                          \
    V(DUP, 11, 1, 13)                                                                              \
    V(SELECT, 13, 2, 14)                                                                           \
    V(COMPARE, 14, 2, 22)                                                                          \
    V(CONVERT, 13, 1, 14)                                                                          \
    V(OTHER, 6, 2, 0)

typedef enum ptoisa_vector {
#define PTOISA_VECTOR_ENUM(name, head, slope, tail) PTOISA_VECTOR_##name,
    PTOISA_VECTORS(PTOISA_VECTOR_ENUM)
#undef PTOISA_VECTOR_ENUM
    PTOISA_VECTOR_COUNT
} ptoisa_vector;

typedef enum ptoisa_over {
    PTOISA_OVER_DST,   // the valid elements of the destination
    PTOISA_OVER_SRC,   // of the source
    PTOISA_OVER_WIDE,  // of the destination, in elements of the wider type
    PTOISA_OVER_ROWS   // of the destination, row by row: an operand is repeated for each
} ptoisa_over;

// The composition of an instruction: R2 of two vector instructions with a barrier between. Those that
// A2/A3 does not have are composed of the ones it would take (TFMOD: a - trunc(a / b) * b). TMULADDDST and
// its family, TAXPY, shifts and TTRANS are one vector instruction that nobody has listed, as is
// whatever is not here. (TSCATTER is among these, but runs on the scalar unit of the device.)
#define PTOISA_RECIPES(R1, R2, R3, R4, R5)                                                         \
    R1(TADD, DST, ADD)                             R1(TSUB, DST, SUB)                              \
    R1(TMAX, DST, ADD)                             R1(TMIN, DST, ADD)                              \
    R1(TMUL, DST, MUL)                             R1(TDIV, DST, DIV)                              \
    R1(TPARTADD, DST, ADD)                         R1(TPARTMUL, DST, MUL)                          \
    R1(TPARTMAX, DST, ADD)                         R1(TPARTMIN, DST, ADD)                          \
    R1(TAND, DST, AND)                             R1(TOR, DST, AND)                               \
    R1(TNOT, DST, AND)                             R4(TXOR, DST, AND, AND, AND, AND)               \
    R4(TREM, DST, DIV, CONVERT, MUL, ADD)          R4(TFMOD, DST, DIV, CONVERT, MUL, ADD)          \
    R3(TPOW, DST, LN, MUL, EXP)                    R3(TPOWS, DST, LN, MULS, EXP)                   \
    R1(TADDS, DST, ADDS)                           R1(TSUBS, DST, ADDS)                            \
    R1(TMULS, DST, MULS)                           R1(TNEG, DST, MULS)                             \
    R1(TMAXS, DST, MAXS)                           R1(TMINS, DST, MINS)                            \
    R2(TDIVS, DST, DUP, DIV)                       R2(TSDIV, DST, DUP, DIV)                        \
    R2(TRECIP, DST, DUP, DIV)                      R2(TANDS, DST, DUP, AND)                        \
    R2(TORS, DST, DUP, AND)                        R5(TXORS, DST, DUP, AND, AND, AND, AND)         \
    R5(TREMS, DST, DUP, DIV, CONVERT, MUL, ADD)    R5(TFMODS, DST, DUP, DIV, CONVERT, MUL, ADD)    \
    R1(TEXP, DST, EXP)                             R1(TLOG, DST, LN)                               \
    R1(TSQRT, DST, SQRT)                           R1(TRSQRT, DST, RSQRT)                          \
    R1(TABS, DST, ABS)                             R1(TRELU, DST, RELU)                            \
    R1(TLRELU, DST, LEAKY)                         R3(TPRELU, DST, MUL, COMPARE, SELECT)           \
    R2(TADDC, DST, ADD, ADD)                       R2(TSUBC, DST, ADD, ADD)                        \
    R2(TADDSC, DST, ADDS, ADD)                     R2(TSUBSC, DST, ADDS, ADD)                      \
    R1(TEXPANDS, DST, DUP)                         R2(TFILLPAD, DST, COPY, DUP)                    \
    R1(TMOV, DST, COPY)                            R1(TEXTRACT, DST, COPY)                         \
    R1(TINSERT, SRC, COPY)                         R1(TCONCAT, DST, COPY)                          \
    R1(TTRI, ROWS, DUP)                            R2(TDEINTERLEAVE, DST, PICK, PICK)              \
    R2(TROWEXPANDADD, ROWS, BLOCKS, ADD)           R2(TROWEXPANDSUB, ROWS, BLOCKS, ADD)            \
    R2(TROWEXPANDMUL, ROWS, BLOCKS, MUL)           R2(TROWEXPANDDIV, ROWS, BLOCKS, DIV)            \
    R2(TROWEXPANDMAX, ROWS, BLOCKS, ADD)           R2(TROWEXPANDMIN, ROWS, BLOCKS, ADD)            \
    R3(TROWEXPANDEXPDIF, ROWS, BLOCKS, ADD, EXP)   R1(TCOLEXPAND, ROWS, COPY)                      \
    R1(TCOLEXPANDADD, ROWS, ADD)                   R1(TCOLEXPANDSUB, ROWS, ADD)                    \
    R1(TCOLEXPANDMUL, ROWS, MUL)                   R1(TCOLEXPANDDIV, ROWS, DIV)                    \
    R1(TCOLEXPANDMAX, ROWS, ADD)                   R1(TCOLEXPANDMIN, ROWS, ADD)                    \
    R2(TCOLEXPANDEXPDIF, ROWS, ADD, EXP)           R1(TCMP, SRC, COMPARE)                          \
    R1(TCMPS, SRC, COMPARE)                        R1(TSEL, DST, SELECT)                           \
    R1(TSELS, DST, SELECT)                         R1(TSORT32, SRC, SORT)                          \
    R1(TMRGSORT, DST, MERGE)                       R2(TGATHER, DST, MULS, GATHER)                  \
    R1(TGATHERMASK, SRC, PICK)                     R1(TCVT, WIDE, CONVERT)                         \
    R1(TGATHERB, DST, GATHER)                      R1(TPAIRREDUCESUM, SRC, OTHER)                  \
    R4(TQUANT, WIDE, BLOCKS, MUL, CONVERT, CONVERT)                                                \
    R4(TDEQUANT, WIDE, CONVERT, BLOCKS, ADD, MUL)
// clang-format on

#define PTOISA_RECIPE_STEPS 5

typedef struct ptoisa_recipe {
    uint8_t over;                        // ptoisa_over
    uint8_t steps[PTOISA_RECIPE_STEPS];  // ptoisa_vector, up to the first NONE
} ptoisa_recipe;

PTOISA_FN ptoisa_recipe ptoisa_recipe_of(ptoisa_op op) {
#define PTOISA_RECIPE_5(name, over, a, b, c, d, e)                                                 \
    case PTOISA_##name: {                                                                          \
        ptoisa_recipe recipe = {PTOISA_OVER_##over,                                                \
                                {PTOISA_VECTOR_##a, PTOISA_VECTOR_##b, PTOISA_VECTOR_##c,          \
                                 PTOISA_VECTOR_##d, PTOISA_VECTOR_##e}};                           \
        return recipe;                                                                             \
    }
#define PTOISA_RECIPE_4(name, over, a, b, c, d) PTOISA_RECIPE_5(name, over, a, b, c, d, NONE)
#define PTOISA_RECIPE_3(name, over, a, b, c)    PTOISA_RECIPE_4(name, over, a, b, c, NONE)
#define PTOISA_RECIPE_2(name, over, a, b)       PTOISA_RECIPE_3(name, over, a, b, NONE)
#define PTOISA_RECIPE_1(name, over, a)          PTOISA_RECIPE_2(name, over, a, NONE)
    switch (op) {
        PTOISA_RECIPES(PTOISA_RECIPE_1, PTOISA_RECIPE_2, PTOISA_RECIPE_3, PTOISA_RECIPE_4,
                       PTOISA_RECIPE_5)
    default: break;
    }
#undef PTOISA_RECIPE_1
#undef PTOISA_RECIPE_2
#undef PTOISA_RECIPE_3
#undef PTOISA_RECIPE_4
#undef PTOISA_RECIPE_5
    ptoisa_recipe other = {PTOISA_OVER_DST, {PTOISA_VECTOR_OTHER, 0, 0, 0, 0}};
    return other;
}

// -- how much an instruction works on -------------------------------------------------------------

// Lines of bytes that lie together.
typedef struct ptoisa_extent {
    uint64_t lines, line_bytes;
} ptoisa_extent;

// Does the tile, if it holds rows x cols, hold them without a gap between two rows? A smaller tile
// is an operand of another kind, as the column of a row-expand or a mask.
PTOISA_FN bool ptoisa_lies_together(const ptoisa_tile *tile, uint32_t rows, uint32_t cols) {
    if (tile == NULL || tile->valid_rows < rows || tile->valid_cols < cols) {
        return true;
    }
    return tile->layout == PTOISA_COL_MAJOR ? tile->rows == rows || cols == 1
                                            : tile->cols == cols || rows == 1;
}

// The valid elements of a tile, one after another if they lie together in all operands. (Measured
// machines take rows of dynamic tiles one by one: ptoisa_is_by_row.)
PTOISA_FN ptoisa_extent ptoisa_extent_of(const ptoisa_issue_info *info, ptoisa_over over) {
    const ptoisa_tile *tile = over == PTOISA_OVER_SRC ? info->src0 : info->dst;
    uint32_t rows = tile->valid_rows, cols = tile->valid_cols;
    uint64_t size = ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
    if (over == PTOISA_OVER_WIDE) {
        uint64_t other = ptoisa_dtype_size((ptoisa_dtype)info->src0->dtype);
        size = other > size ? other : size;
    }
    bool is_col_major = tile->layout == PTOISA_COL_MAJOR;
    ptoisa_extent extent;
    extent.lines = is_col_major ? cols : rows;
    extent.line_bytes = (is_col_major ? rows : cols) * size;
    if (over != PTOISA_OVER_ROWS && ptoisa_lies_together(info->dst, rows, cols) &&
        ptoisa_lies_together(info->src0, rows, cols) &&
        ptoisa_lies_together(info->src1, rows, cols)) {
        extent.line_bytes *= extent.lines;
        extent.lines = 1;
    }
    return extent;
}

PTOISA_INLINE uint64_t ptoisa_parts(uint64_t whole, uint64_t part) {
    return (whole + part - 1) / part;
}

// -- cycles of a recipe ---------------------------------------------------------------------------

// Sorts and merges count groups where others count repeats. Merging longer runs is charged as much
// per byte as merging runs of 32 pairs, but on measured machines.
PTOISA_FN uint64_t ptoisa_repeats(const ptoisa_issue_info *info, ptoisa_vector vector,
                                  ptoisa_extent extent) {
    if (vector == PTOISA_VECTOR_SORT) {
        return info->src0->valid_rows * ptoisa_parts(info->src0->valid_cols, 32);
    }
    uint64_t repeat = vector == PTOISA_VECTOR_MERGE ? 4 * 32 * 8 : PTOISA_REPEAT_BYTES;
    return extent.lines * ptoisa_parts(extent.line_bytes, repeat);
}

// Head and tail together, as fitted; `known` is the public one.
PTOISA_FN uint64_t ptoisa_ends_of(const ptoisa_issue_info *info, ptoisa_vector vector,
                                  uint64_t known) {
    if (!ptoisa_has(info, PTOISA_MECHANISM_ENDS)) {
        return known;
    }
    const ptoisa_tile *tile = info->dst != NULL ? info->dst : info->src0;
    bool is_float = ptoisa_dtype_is_float((ptoisa_dtype)tile->dtype);
    switch (vector) {
#define PTOISA_FITTED_END(name, real, whole)                                                       \
    case PTOISA_VECTOR_##name: return is_float ? real : whole;
        PTOISA_FITTED_ENDS(PTOISA_FITTED_END)
#undef PTOISA_FITTED_END
    default: return known;
    }
}

PTOISA_INLINE bool ptoisa_vector_is_scalar(ptoisa_vector vector) {
    return vector >= PTOISA_VECTOR_ADDS && vector <= PTOISA_VECTOR_MINS;
}

// Does the instruction go row by row though its rows lie together? PTO-ISA's code for two operands
// and for a tile and a scalar does so if the valid columns are dynamic. Its code for one operand
// does not.
PTOISA_FN bool ptoisa_is_by_row(const ptoisa_issue_info *info, ptoisa_recipe recipe) {
    ptoisa_vector first = (ptoisa_vector)recipe.steps[0];
    bool is_of_two = (first >= PTOISA_VECTOR_ADD && first <= PTOISA_VECTOR_MINS) ||
                     first == PTOISA_VECTOR_AND || first == PTOISA_VECTOR_DUP;
    return ptoisa_has(info, PTOISA_MECHANISM_ROWS) && is_of_two && info->dst->is_dynamic &&
           recipe.over == PTOISA_OVER_DST;
}

// Cycles of a step with `repeats`, but for its ends.
PTOISA_FN uint64_t ptoisa_step_cycles(const ptoisa_issue_info *info, ptoisa_vector vector,
                                      uint64_t repeats, uint64_t slope, ptoisa_extent extent) {
    bool is_timed = ptoisa_has(info, PTOISA_MECHANISM_ENDS);
    if (vector == PTOISA_VECTOR_MERGE && info->detail > 32 &&
        ptoisa_has(info, PTOISA_MECHANISM_RUNS)) {
        return (extent.lines * extent.line_bytes / 8 * PTOISA_FITTED_MERGE + 50) / 100;
    }
    uint64_t cycles = slope * repeats;
    if (vector == PTOISA_VECTOR_SELECT && is_timed) {
        cycles += (uint64_t)PTOISA_FITTED_SELECT * info->dst->valid_rows;
    }
    bool is_masked = vector >= PTOISA_VECTOR_ADD && !(is_timed && ptoisa_vector_is_scalar(vector));
    return cycles +
           (is_masked && extent.line_bytes % PTOISA_REPEAT_BYTES != 0 ? PTOISA_PARTIAL_MASK : 0);
}

PTOISA_FN uint64_t ptoisa_cost_recipe(const ptoisa_issue_info *info) {
    static const uint8_t slope[PTOISA_VECTOR_COUNT] = {
#define PTOISA_VECTOR_SLOPE(name, head, slope, tail) slope,
        PTOISA_VECTORS(PTOISA_VECTOR_SLOPE)
#undef PTOISA_VECTOR_SLOPE
    };
    static const uint8_t ends[PTOISA_VECTOR_COUNT] = {
#define PTOISA_VECTOR_ENDS(name, head, slope, tail) head + tail,
        PTOISA_VECTORS(PTOISA_VECTOR_ENDS)
#undef PTOISA_VECTOR_ENDS
    };
    ptoisa_recipe recipe = ptoisa_recipe_of(info->op);
    ptoisa_over over = ptoisa_is_by_row(info, recipe) ? PTOISA_OVER_ROWS : (ptoisa_over)recipe.over;
    ptoisa_extent extent = ptoisa_extent_of(info, over);
    if (extent.lines == 0 || extent.line_bytes == 0) {
        return 0;
    }
    bool is_idle = info->is_pipe_idle, has_begun = false;
    uint64_t cycles = 0;
    for (int i = 0; i < PTOISA_RECIPE_STEPS && recipe.steps[i] != PTOISA_VECTOR_NONE; i++) {
        ptoisa_vector vector = (ptoisa_vector)recipe.steps[i];
        if (vector == PTOISA_VECTOR_BLOCKS && info->src1 && info->src1->valid_cols > 1) {
            continue;  // the operand comes as blocks
        }
        if (has_begun) {
            cycles++;  // a barrier
            is_idle = true;
        }
        has_begun = true;
        cycles += ptoisa_step_cycles(info, vector, ptoisa_repeats(info, vector, extent),
                                     slope[vector], extent);
        cycles += is_idle ? ptoisa_ends_of(info, vector, ends[vector]) : 0;
    }
    return cycles;
}

// -- cycles read off tables -----------------------------------------------------------------------

typedef enum ptoisa_reading {
    PTOISA_READING_NONE = 0,
    PTOISA_READING_ROWSUM,
    PTOISA_READING_ROWMAX,
    PTOISA_READING_COLSUM,
    PTOISA_READING_COLMAX,
    PTOISA_READING_ROWEXPAND,
    PTOISA_READING_COUNT
} ptoisa_reading;

// Products and searches for an index have no table: as the sum, or the maximum, of their direction.
PTOISA_FN ptoisa_reading ptoisa_reading_of(ptoisa_op op) {
    switch (op) {
    case PTOISA_TROWSUM:
    case PTOISA_TROWPROD: return PTOISA_READING_ROWSUM;
    case PTOISA_TROWMAX:
    case PTOISA_TROWMIN:
    case PTOISA_TROWARGMAX:
    case PTOISA_TROWARGMIN: return PTOISA_READING_ROWMAX;
    case PTOISA_TCOLSUM: return PTOISA_READING_COLSUM;
    case PTOISA_TCOLMAX:
    case PTOISA_TCOLMIN:
    case PTOISA_TCOLARGMAX:
    case PTOISA_TCOLARGMIN:
    case PTOISA_TCOLPROD: return PTOISA_READING_COLMAX;
    case PTOISA_TROWEXPAND: return PTOISA_READING_ROWEXPAND;
    default: return PTOISA_READING_NONE;
    }
}

// Fits of cycles = slope * rows * cols + bias, in 1/10000 of a cycle, for five widths of fp32. The
// fits of fp16 have half the slope at twice the columns: so the width counts in bytes.
//
// Between two widths, slope * cols (the cycles of a row) and bias are interpolated. Narrower than
// the first, both are as there, as rows cost no less than a repeat; wider than the last, a row
// grows as from the last but one to the last, and the bias stays.
PTOISA_FN uint64_t ptoisa_cost_reading(const ptoisa_issue_info *info, ptoisa_reading reading) {
    enum { WIDTHS = 5 };
    static const uint16_t width[WIDTHS] = {4 * 32, 4 * 64, 4 * 128, 4 * 240, 4 * 336};
    static const uint8_t width_count[PTOISA_READING_COUNT] = {0, 5, 5, 5, 3, 3};
    static const uint16_t slope[PTOISA_READING_COUNT][WIDTHS] = {
        {0, 0, 0, 0, 0},
        {2187, 1094, 625, 469, 419},    // TROWSUM
        {2188, 1094, 625, 448, 418},    // TROWMAX
        {6016, 3047, 1728, 1031, 833},  // TCOLSUM
        {5391, 2734, 1571, 0, 0},       // TCOLMAX
        {4375, 2187, 1176, 0, 0}};      // TROWEXPAND
    static const uint32_t bias[PTOISA_READING_COUNT][WIDTHS] = {
        {0, 0, 0, 0, 0},
        {590000, 440000, 615000, 990000, 1210000},
        {470000, 320000, 480000, 1000000, 1310000},
        {150000, 150000, 80000, 360000, 340000},
        {160000, 170000, 100000, 0, 0},
        {370000, 370000, 345000, 0, 0}};
    const ptoisa_tile *tile = reading == PTOISA_READING_ROWEXPAND ? info->dst : info->src0;
    if (tile->valid_rows == 0 || tile->valid_cols == 0) {
        return 0;
    }
    int64_t bytes = (int64_t)tile->valid_cols * ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
    int last = width_count[reading] - 1;
    int at = 1;  // the end of the segment that the width is in
    while (at < last && bytes > width[at]) {
        at++;
    }
    int64_t low = width[at - 1], high = width[at];
    int64_t row_low = slope[reading][at - 1] * low / 4, row_high = slope[reading][at] * high / 4;
    int64_t bias_low = bias[reading][at - 1], bias_high = bias[reading][at];
    int64_t for_row = bytes < low ? low : bytes;
    int64_t for_bias = for_row > high ? high : for_row;
    int64_t row = row_low + (row_high - row_low) * (for_row - low) / (high - low);
    int64_t cycles = row * tile->valid_rows + bias_low +
                     (bias_high - bias_low) * (for_bias - low) / (high - low);
    return (uint64_t)(cycles + PTOISA_CYCLE / 2) / PTOISA_CYCLE;
}

// Cycles of an instruction on the vector pipe.
PTOISA_FN uint64_t ptoisa_cost_vector(const ptoisa_issue_info *info) {
    ptoisa_reading reading = ptoisa_reading_of(info->op);
    return reading != PTOISA_READING_NONE ? ptoisa_cost_reading(info, reading)
                                          : ptoisa_cost_recipe(info);
}

#endif
