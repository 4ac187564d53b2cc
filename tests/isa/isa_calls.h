// Tests of ptoisa_shim.h: one good call of every instruction, with the cycles that it costs in the
// unit model, counted on paper. What goes wrong is then a change to one of its operands.

#ifndef PTOISA_CALLS_H
#define PTOISA_CALLS_H

#include "isa_test.h"
#include "isa_window.h"

// Operands of a call, the destination first. Sizes are r x c valid elements unless said otherwise.
typedef enum call_form {
    FORM_1,            // d
    FORM_2,            // d, s
    FORM_3,            // d, s, s
    FORM_4,            // d, s, s, s
    FORM_2T,           // d, s, scratch
    FORM_3T,           // d, s, s, scratch
    FORM_LINE,         // d of one row
    FORM_ROW,          // column d, s, scratch
    FORM_ROW_ARG,      // column d of u32, s, scratch
    FORM_ROW_VALUES,   // column d, column of u32, s, scratch
    FORM_COL_ARG,      // row d of u32, s, scratch
    FORM_COL,          // row d, s
    FORM_COL_T,        // row d, s, scratch
    FORM_BY_ROW_2,     // d, column s
    FORM_BY_ROW,       // d, s, column s
    FORM_BY_COL_2,     // d, row s
    FORM_BY_COL,       // d, s, row s
    FORM_TRANS,        // d of c x r, s, scratch
    FORM_CONCAT,       // d of r x 2c, s, s
    FORM_PAIRS,        // d, d, s, s
    FORM_PART,         // d, s, s of half the rows
    FORM_CMP,          // mask, s, s
    FORM_CMPS,         // mask, s
    FORM_SEL,          // d, mask, s, s, scratch
    FORM_SELS,         // d, mask, s, scratch
    FORM_SORT,         // d of r x 2c, s, indices; c a multiple of 32
    FORM_MERGE,        // d, s of one row; c a multiple of 256
    FORM_LISTS,        // d of 1 x 2c, scratch, s, s of one row; c even
    FORM_PACKED,       // the same; s may have less
    FORM_INDEX,        // d, s, indices, scratch
    FORM_SCATTER,      // d, s, indices
    FORM_BLOCKS,       // d, s of 3 x 8, offsets
    FORM_ELEMENTS,     // d, indices, and a table
    FORM_TABLE,        // d, indices of one row, and a table
    FORM_WINDOW,       // d or s, and a window
    FORM_ACC,          // s in Acc, and a window of f32
    FORM_ACC_I8,       // s in Acc, and a window of i8
    FORM_ACC_FP,       // s in Acc, scales, and a window of i8
    FORM_TO_LEFT,      // d in Left, s in Mat
    FORM_TO_BIAS,      // d in Bias, s in Mat, one row
    FORM_FROM_ACC,     // d in Mat of f16, s in Acc
    FORM_FROM_ACC_I8,  // d in Mat of i8, s in Acc
    FORM_FROM_ACC_FP,  // the same, and scales
    FORM_NARROW,       // d of f16, s
    FORM_SYM,          // d of i8, s, column
    FORM_ASYM,         // d of u8, s, column, column
    FORM_DEQUANT,      // d, s of i8, column, column
    FORM_MATMUL,       // c, a, b: r x c, r x 5, 5 x c
    FORM_ADDED,        // c, c, a, b
    FORM_BIASED,       // c, a, b, bias
    FORM_GEMV,         // the same with r = 1
    FORM_GEMV_ADDED,
    FORM_GEMV_BIASED
} call_form;

enum { CALL_TILES_MAX = 5, CALL_DEPTH = 5 };

typedef enum call_need {
    NEED_NOTHING = 0,  // scratch, and destinations
    NEED_ROWS = 1,
    NEED_COLS = 2,
    NEED_BOTH = 3
} call_need;

// name for messages, prefix of its faults, form, type, cycles, the call
#define CALLS(CALL)                                                                                \
    CALL(TLOAD, TLOAD, FORM_WINDOW, F32, r *c, tload(core, t[0], g))                               \
    CALL(TSTORE, TSTORE, FORM_WINDOW, F16, r *c, tstore(core, g, t[0]))                            \
    CALL(TSTORE_ADD, TSTORE, FORM_WINDOW, F32, r *c, tstore_add(core, g, t[0]))                    \
    CALL(TSTORE_ACC, TSTORE, FORM_ACC, F32, r *c, tstore(core, g, t[0]))                           \
    CALL(TSTORE_RELU, TSTORE, FORM_ACC, F32, r *c, tstore_relu(core, g, t[0]))                     \
    CALL(TSTORE_QUANT, TSTORE, FORM_ACC_I8, F32, r *c, tstore_quant(core, g, t[0], 0.5f, false))   \
    CALL(TSTORE_FP, TSTORE, FORM_ACC_FP, I32, r *c, tstore_fp(core, g, t[0], t[1], true))          \
    CALL(TMOV, TMOV, FORM_2, BF16, r *c, tmov(core, t[0], t[1]))                                   \
    CALL(TMOV_LEFT, TMOV, FORM_TO_LEFT, F16, 0, tmov(core, t[0], t[1]))                            \
    CALL(TMOV_BIAS, TMOV, FORM_TO_BIAS, F32, 0, tmov(core, t[0], t[1]))                            \
    CALL(TMOV_QUANT, TMOV, FORM_FROM_ACC_I8, F32, r *c, tmov_quant(core, t[0], t[1], 0.5f, false)) \
    CALL(TMOV_FP, TMOV, FORM_FROM_ACC_FP, I32, r *c, tmov_fp(core, t[0], t[1], t[2], true))        \
    CALL(TINSERT_QUANT, TINSERT, FORM_FROM_ACC_I8, I32, r *c,                                      \
         tinsert_quant(core, t[0], t[1], 2, 0, 0, false))                                          \
    CALL(TEXTRACT_FP, TEXTRACT, FORM_FROM_ACC_FP, F32, r *c,                                       \
         textract_fp(core, t[0], t[1], t[2], 0, 0, false))                                         \
    CALL(TMOV_ACC, TMOV, FORM_FROM_ACC, F32, r *c, tmov(core, t[0], t[1]))                         \
    CALL(TEXTRACT, TEXTRACT, FORM_2, F32, r *c, textract(core, t[0], t[1], 0, 0))                  \
    CALL(TEXTRACT_L0, TEXTRACT, FORM_TO_LEFT, F16, 0, textract(core, t[0], t[1], 0, 0))            \
    CALL(TINSERT, TINSERT, FORM_FROM_ACC, F32, r *c, tinsert(core, t[0], t[1], 0, 0))              \
    CALL(TCVT, TCVT, FORM_NARROW, F32, r *c, tcvt(core, t[0], t[1], PTOISA_CAST_RINT, false))      \
    CALL(TTRANS, TTRANS, FORM_TRANS, F32, r *c, ttrans(core, t[0], t[1], t[2]))                    \
    CALL(TEXPANDS, TEXPANDS, FORM_1, F32, r *c, texpands(core, t[0], 1))                           \
    CALL(TFILLPAD, TFILLPAD, FORM_2, F32, r *c, tfillpad(core, t[0], t[1]))                        \
    CALL(TFILLPAD_EXPAND, TFILLPAD, FORM_2, I16, r *c, tfillpad_expand(core, t[0], t[1]))          \
    CALL(TCONCAT, TCONCAT, FORM_CONCAT, F32, 2 * r * c, tconcat(core, t[0], t[1], t[2]))           \
    CALL(TINTERLEAVE, TINTERLEAVE, FORM_PAIRS, F32, r *c,                                          \
         tinterleave(core, t[0], t[1], t[2], t[3]))                                                \
    CALL(TDEINTERLEAVE, TDEINTERLEAVE, FORM_PAIRS, F32, r *c,                                      \
         tdeinterleave(core, t[0], t[1], t[2], t[3]))                                              \
    CALL(TCI, TCI, FORM_LINE, I32, 0, tci(core, t[0], 5, false))                                   \
    CALL(TTRI, TTRI, FORM_1, F32, r *c, ttri(core, t[0], true, 1))                                 \
    CALL(TADD, TADD, FORM_3, F32, r *c, tadd(core, t[0], t[1], t[2]))                              \
    CALL(TSUB, TSUB, FORM_3, I32, r *c, tsub(core, t[0], t[1], t[2]))                              \
    CALL(TMUL, TMUL, FORM_3, F16, r *c, tmul(core, t[0], t[1], t[2]))                              \
    CALL(TDIV, TDIV, FORM_3, F32, r *c, tdiv(core, t[0], t[1], t[2]))                              \
    CALL(TMAX, TMAX, FORM_3, I16, r *c, tmax(core, t[0], t[1], t[2]))                              \
    CALL(TMIN, TMIN, FORM_3, F32, r *c, tmin(core, t[0], t[1], t[2]))                              \
    CALL(TAND, TAND, FORM_3, U8, r *c, tand(core, t[0], t[1], t[2]))                               \
    CALL(TOR, TOR, FORM_3, I16, r *c, tor(core, t[0], t[1], t[2]))                                 \
    CALL(TXOR, TXOR, FORM_3T, I32, r *c, txor(core, t[0], t[1], t[2], t[3]))                       \
    CALL(TSHL, TSHL, FORM_3, I32, r *c, tshl(core, t[0], t[1], t[2]))                              \
    CALL(TSHR, TSHR, FORM_3, U16, r *c, tshr(core, t[0], t[1], t[2]))                              \
    CALL(TREM, TREM, FORM_3T, F32, r *c, trem(core, t[0], t[1], t[2], t[3]))                       \
    CALL(TFMOD, TFMOD, FORM_3, F32, r *c, tfmod(core, t[0], t[1], t[2], NULL))                     \
    CALL(TPOW, TPOW, FORM_3, F32, r *c, tpow(core, t[0], t[1], t[2], NULL))                        \
    CALL(TPARTADD, TPARTADD, FORM_PART, F32, r *c, tpartadd(core, t[0], t[1], t[2]))               \
    CALL(TPARTMUL, TPARTMUL, FORM_PART, F32, r *c, tpartmul(core, t[0], t[1], t[2]))               \
    CALL(TPARTMAX, TPARTMAX, FORM_PART, I32, r *c, tpartmax(core, t[0], t[1], t[2]))               \
    CALL(TPARTMIN, TPARTMIN, FORM_PART, F16, r *c, tpartmin(core, t[0], t[1], t[2]))               \
    CALL(TADDS, TADDS, FORM_2, F32, r *c, tadds(core, t[0], t[1], 2))                              \
    CALL(TSUBS, TSUBS, FORM_2, F32, r *c, tsubs(core, t[0], t[1], 2))                              \
    CALL(TMULS, TMULS, FORM_2, I32, r *c, tmuls(core, t[0], t[1], 2))                              \
    CALL(TDIVS, TDIVS, FORM_2, F32, r *c, tdivs(core, t[0], t[1], 2))                              \
    CALL(TSDIV, TSDIV, FORM_2, F32, r *c, tsdiv(core, t[0], 2, t[1]))                              \
    CALL(TMAXS, TMAXS, FORM_2, F32, r *c, tmaxs(core, t[0], t[1], 2))                              \
    CALL(TMINS, TMINS, FORM_2, F32, r *c, tmins(core, t[0], t[1], 2))                              \
    CALL(TANDS, TANDS, FORM_2, I32, r *c, tands(core, t[0], t[1], 2))                              \
    CALL(TORS, TORS, FORM_2, U32, r *c, tors(core, t[0], t[1], 2))                                 \
    CALL(TXORS, TXORS, FORM_2T, I16, r *c, txors(core, t[0], t[1], 2, t[2]))                       \
    CALL(TSHLS, TSHLS, FORM_2, I32, r *c, tshls(core, t[0], t[1], 2))                              \
    CALL(TSHRS, TSHRS, FORM_2, I32, r *c, tshrs(core, t[0], t[1], 2))                              \
    CALL(TREMS, TREMS, FORM_2, F32, r *c, trems(core, t[0], t[1], 2))                              \
    CALL(TFMODS, TFMODS, FORM_2, I32, r *c, tfmods(core, t[0], t[1], 2))                           \
    CALL(TPOWS, TPOWS, FORM_2, F32, r *c, tpows(core, t[0], t[1], 2))                              \
    CALL(TEXP, TEXP, FORM_2, F32, r *c, texp(core, t[0], t[1]))                                    \
    CALL(TLOG, TLOG, FORM_2, F32, r *c, tlog(core, t[0], t[1]))                                    \
    CALL(TSQRT, TSQRT, FORM_2, F16, r *c, tsqrt(core, t[0], t[1]))                                 \
    CALL(TRSQRT, TRSQRT, FORM_2, F32, r *c, trsqrt(core, t[0], t[1]))                              \
    CALL(TRECIP, TRECIP, FORM_2, F32, r *c, trecip(core, t[0], t[1]))                              \
    CALL(TABS, TABS, FORM_2, F32, r *c, tabs(core, t[0], t[1]))                                    \
    CALL(TNEG, TNEG, FORM_2, I32, r *c, tneg(core, t[0], t[1]))                                    \
    CALL(TRELU, TRELU, FORM_2, F32, r *c, trelu(core, t[0], t[1]))                                 \
    CALL(TNOT, TNOT, FORM_2, I16, r *c, tnot(core, t[0], t[1]))                                    \
    CALL(TLRELU, TLRELU, FORM_2, F32, r *c, tlrelu(core, t[0], t[1], 2))                           \
    CALL(TPRELU, TPRELU, FORM_3T, F32, r *c, tprelu(core, t[0], t[1], t[2], t[3]))                 \
    CALL(TAXPY, TAXPY, FORM_2, F32, r *c, taxpy(core, t[0], t[1], 2))                              \
    CALL(TADDC, TADDC, FORM_4, F32, r *c, taddc(core, t[0], t[1], t[2], t[3]))                     \
    CALL(TSUBC, TSUBC, FORM_4, I32, r *c, tsubc(core, t[0], t[1], t[2], t[3]))                     \
    CALL(TADDSC, TADDSC, FORM_3, F32, r *c, taddsc(core, t[0], t[1], 2, t[2]))                     \
    CALL(TSUBSC, TSUBSC, FORM_3, F32, r *c, tsubsc(core, t[0], t[1], 2, t[2]))                     \
    CALL(TFUSEDMULADD, TFUSEDMULADD, FORM_3, F32, r *c, tfusedmuladd(core, t[0], t[1], t[2]))      \
    CALL(TMULADDDST, TMULADDDST, FORM_3, F32, r *c, tmuladddst(core, t[0], t[1], t[2]))            \
    CALL(TFUSEDMULADDRELU, TFUSEDMULADDRELU, FORM_3, F16, r *c,                                    \
         tfusedmuladdrelu(core, t[0], t[1], t[2]))                                                 \
    CALL(TSUBRELU, TSUBRELU, FORM_3, F32, r *c, tsubrelu(core, t[0], t[1], t[2]))                  \
    CALL(TROWSUM, TROWSUM, FORM_ROW, F32, r, trowsum(core, t[0], t[1], t[2]))                      \
    CALL(TROWMAX, TROWMAX, FORM_ROW, F16, r, trowmax(core, t[0], t[1], t[2]))                      \
    CALL(TROWMIN, TROWMIN, FORM_ROW, I32, r, trowmin(core, t[0], t[1], t[2]))                      \
    CALL(TROWPROD, TROWPROD, FORM_ROW, F32, r, trowprod(core, t[0], t[1], t[2]))                   \
    CALL(TROWARGMAX, TROWARGMAX, FORM_ROW_ARG, F32, r, trowargmax(core, t[0], t[1], t[2]))         \
    CALL(TROWARGMIN, TROWARGMIN, FORM_ROW_ARG, I16, r, trowargmin(core, t[0], t[1], t[2]))         \
    CALL(TROWARGMAX_VALUES, TROWARGMAX, FORM_ROW_VALUES, F16, r,                                   \
         trowargmax_values(core, t[0], t[1], t[2], t[3]))                                          \
    CALL(TPAIRREDUCESUM, TPAIRREDUCESUM, FORM_2, F32, r *c, tpairreducesum(core, t[0], t[1]))      \
    CALL(TCOLARGMAX, TCOLARGMAX, FORM_COL_ARG, F32, c, tcolargmax(core, t[0], t[1], t[2]))         \
    CALL(TCOLARGMIN, TCOLARGMIN, FORM_COL_ARG, U16, c, tcolargmin(core, t[0], t[1], t[2]))         \
    CALL(TCOLSUM, TCOLSUM, FORM_COL_T, F32, c, tcolsum(core, t[0], t[1], t[2], true))              \
    CALL(TCOLSUM_SEQ, TCOLSUM, FORM_COL, F32, c, tcolsum(core, t[0], t[1], NULL, false))           \
    CALL(TCOLMAX, TCOLMAX, FORM_COL, F16, c, tcolmax(core, t[0], t[1]))                            \
    CALL(TCOLMIN, TCOLMIN, FORM_COL, I32, c, tcolmin(core, t[0], t[1]))                            \
    CALL(TCOLPROD, TCOLPROD, FORM_COL, F32, c, tcolprod(core, t[0], t[1]))                         \
    CALL(TROWEXPAND, TROWEXPAND, FORM_BY_ROW_2, F32, r *c, trowexpand(core, t[0], t[1]))           \
    CALL(TROWEXPANDADD, TROWEXPANDADD, FORM_BY_ROW, I32, r *c,                                     \
         trowexpandadd(core, t[0], t[1], t[2]))                                                    \
    CALL(TROWEXPANDSUB, TROWEXPANDSUB, FORM_BY_ROW, F32, r *c,                                     \
         trowexpandsub(core, t[0], t[1], t[2]))                                                    \
    CALL(TROWEXPANDMUL, TROWEXPANDMUL, FORM_BY_ROW, F16, r *c,                                     \
         trowexpandmul(core, t[0], t[1], t[2]))                                                    \
    CALL(TROWEXPANDDIV, TROWEXPANDDIV, FORM_BY_ROW, F32, r *c,                                     \
         trowexpanddiv(core, t[0], t[1], t[2]))                                                    \
    CALL(TROWEXPANDMAX, TROWEXPANDMAX, FORM_BY_ROW, F32, r *c,                                     \
         trowexpandmax(core, t[0], t[1], t[2]))                                                    \
    CALL(TROWEXPANDMIN, TROWEXPANDMIN, FORM_BY_ROW, F32, r *c,                                     \
         trowexpandmin(core, t[0], t[1], t[2]))                                                    \
    CALL(TROWEXPANDEXPDIF, TROWEXPANDEXPDIF, FORM_BY_ROW, F32, r *c,                               \
         trowexpandexpdif(core, t[0], t[1], t[2]))                                                 \
    CALL(TCOLEXPAND, TCOLEXPAND, FORM_BY_COL_2, F32, r *c, tcolexpand(core, t[0], t[1]))           \
    CALL(TCOLEXPANDADD, TCOLEXPANDADD, FORM_BY_COL, I32, r *c,                                     \
         tcolexpandadd(core, t[0], t[1], t[2]))                                                    \
    CALL(TCOLEXPANDSUB, TCOLEXPANDSUB, FORM_BY_COL, F32, r *c,                                     \
         tcolexpandsub(core, t[0], t[1], t[2]))                                                    \
    CALL(TCOLEXPANDMUL, TCOLEXPANDMUL, FORM_BY_COL, F16, r *c,                                     \
         tcolexpandmul(core, t[0], t[1], t[2]))                                                    \
    CALL(TCOLEXPANDDIV, TCOLEXPANDDIV, FORM_BY_COL, F32, r *c,                                     \
         tcolexpanddiv(core, t[0], t[1], t[2]))                                                    \
    CALL(TCOLEXPANDMAX, TCOLEXPANDMAX, FORM_BY_COL, F32, r *c,                                     \
         tcolexpandmax(core, t[0], t[1], t[2]))                                                    \
    CALL(TCOLEXPANDMIN, TCOLEXPANDMIN, FORM_BY_COL, F32, r *c,                                     \
         tcolexpandmin(core, t[0], t[1], t[2]))                                                    \
    CALL(TCOLEXPANDEXPDIF, TCOLEXPANDEXPDIF, FORM_BY_COL, F32, r *c,                               \
         tcolexpandexpdif(core, t[0], t[1], t[2]))                                                 \
    CALL(TCMP, TCMP, FORM_CMP, F32, r *c, tcmp(core, t[0], t[1], t[2], PTOISA_EQ))                 \
    CALL(TCMPS, TCMPS, FORM_CMPS, F32, r *c, tcmps(core, t[0], t[1], 2, PTOISA_EQ))                \
    CALL(TSEL, TSEL, FORM_SEL, F32, r *c, tsel(core, t[0], t[1], t[2], t[3], t[4]))                \
    CALL(TSELS, TSELS, FORM_SELS, F32, r *c, tsels(core, t[0], t[1], t[2], t[3], 2))               \
    CALL(TSORT32, TSORT32, FORM_SORT, F32, 5 * r * c, tsort32(core, t[0], t[1], t[2]))             \
    CALL(TMRGSORT, TMRGSORT, FORM_MERGE, F32, c, tmrgsort(core, t[0], t[1], 64))                   \
    CALL(TMRGSORT_LISTS, TMRGSORT, FORM_LISTS, F32, c,                                             \
         tmrgsort_lists(core, t[0], t[1], t + 2, 2, executed, false))                              \
    CALL(TGATHERMASK, TGATHERMASK, FORM_PACKED, F32, 0,                                            \
         tgather_mask(core, t[0], t[1], PTOISA_P1010))                                             \
    CALL(TGATHER, TGATHER, FORM_INDEX, F32, r *c, tgather(core, t[0], t[1], t[2], t[3]))           \
    CALL(TGATHERB, TGATHERB, FORM_BLOCKS, F32, r *c, tgatherb(core, t[0], t[1], t[2]))             \
    CALL(MGATHER_ELEM, MGATHER, FORM_ELEMENTS, F32, r *c,                                          \
         mgather_by(core, t[0], g, t[1], true, PTOISA_OUTSIDE_FAULT))                              \
    CALL(MSCATTER_ELEM, MSCATTER, FORM_ELEMENTS, I16, r *c,                                        \
         mscatter_by(core, g, t[0], t[1], true, PTOISA_SCATTER_ADD))                               \
    CALL(TSCATTER, TSCATTER, FORM_SCATTER, F32, r *c, tscatter(core, t[0], t[1], t[2]))            \
    CALL(MGATHER, MGATHER, FORM_TABLE, F32, r *c, mgather(core, t[0], g, t[1]))                    \
    CALL(MSCATTER, MSCATTER, FORM_TABLE, F32, r *c, mscatter(core, g, t[0], t[1]))                 \
    CALL(TMATMUL, TMATMUL, FORM_MATMUL, F16, 5 * r * c, tmatmul(core, t[0], t[1], t[2]))           \
    CALL(TMATMUL_ACC, TMATMUL_ACC, FORM_ADDED, BF16, 5 * r * c,                                    \
         tmatmul_acc(core, t[0], t[1], t[2], t[3]))                                                \
    CALL(TMATMUL_BIAS, TMATMUL_BIAS, FORM_BIASED, F32, 5 * r * c,                                  \
         tmatmul_bias(core, t[0], t[1], t[2], t[3]))                                               \
    CALL(TGEMV, TGEMV, FORM_GEMV, F16, 5 * c, tgemv(core, t[0], t[1], t[2]))                       \
    CALL(TGEMV_ACC, TGEMV_ACC, FORM_GEMV_ADDED, F16, 5 * c,                                        \
         tgemv_acc(core, t[0], t[1], t[2], t[3]))                                                  \
    CALL(TGEMV_BIAS, TGEMV_BIAS, FORM_GEMV_BIASED, F32, 5 * c,                                     \
         tgemv_bias(core, t[0], t[1], t[2], t[3]))                                                 \
    CALL(TQUANT_SYM, TQUANT, FORM_SYM, F32, r *c, tquant_sym(core, t[0], t[1], t[2]))              \
    CALL(TQUANT_ASYM, TQUANT, FORM_ASYM, F32, r *c, tquant_asym(core, t[0], t[1], t[2], t[3]))     \
    CALL(TDEQUANT, TDEQUANT, FORM_DEQUANT, F32, r *c, tdequant(core, t[0], t[1], t[2], t[3]))

typedef enum call_id {
#define CALL_ID(name, prefix, form, dtype, cycles, call) CALL_##name,
    CALLS(CALL_ID)
#undef CALL_ID
        CALL_COUNT
} call_id;

typedef struct test_call {
    call_id id;
    const char *name;
    const char *prefix;  // of its faults
    call_form form;
    ptoisa_dtype dtype;
    uint64_t r, c, cycles;
    test_tile *tiles[CALL_TILES_MAX];
    call_need needs[CALL_TILES_MAX];
    bool is_scratch[CALL_TILES_MAX];
    uint32_t tile_count;
    bool has_window;
    test_window window;
} test_call;

// -- operands -------------------------------------------------------------------------------------

static inline void call_add(test_call *call, test_tile *t, call_need need) {
    call->needs[call->tile_count] = need;
    call->tiles[call->tile_count++] = t;
}

static inline void call_scratch(test_bench *bench, test_call *call, ptoisa_dtype dtype,
                                uint32_t rows, uint32_t cols) {
    test_tile *t = test_vec(bench, dtype, rows, cols);
    t->role = TEST_SCRATCH;
    call->is_scratch[call->tile_count] = true;
    call_add(call, t, NEED_NOTHING);
}

static inline void call_scratch_like(test_bench *bench, test_call *call, const test_tile *s) {
    call_scratch(bench, call, (ptoisa_dtype)s->tile.dtype, s->tile.rows, s->tile.cols);
    ptoisa_tile *t = &call->tiles[call->tile_count - 1]->tile;
    t->rows = s->tile.rows;
    t->cols = s->tile.cols;
    t->valid_rows = s->tile.valid_rows;
    t->valid_cols = s->tile.valid_cols;
}

static inline void call_vec(test_bench *bench, test_call *call, ptoisa_dtype dtype, uint64_t rows,
                            uint64_t cols, call_need need) {
    test_tile *t = test_vec(bench, dtype, (uint32_t)rows, (uint32_t)cols);
    test_fill(bench, t, TEST_PLAIN);
    call_add(call, t, need);
}

static inline void call_column(test_bench *bench, test_call *call, ptoisa_dtype dtype,
                               call_need need) {
    test_tile *t = test_column(bench, dtype, (uint32_t)call->r);
    test_fill(bench, t, TEST_PLAIN);
    call_add(call, t, need);
}

// A tile in a memory whose tiles are boxed: all sides allocated in 32s.
static inline void call_boxed(test_bench *bench, test_call *call, ptoisa_dtype dtype,
                              ptoisa_memory memory, ptoisa_layout layout, uint64_t rows,
                              uint64_t cols, call_need need) {
    test_tile *t = test_tile_make(bench, dtype, memory, layout, (uint32_t)(rows + 31) / 32 * 32,
                                  (uint32_t)(cols + 31) / 32 * 32, (uint32_t)rows, (uint32_t)cols);
    test_fill(bench, t, TEST_PLAIN);
    call_add(call, t, need);
}

static inline void call_indices(test_bench *bench, test_call *call, uint64_t rows, uint64_t cols,
                                uint32_t below) {
    call_vec(bench, call, PTOISA_U32, rows, cols, NEED_BOTH);
    test_tile *t = call->tiles[call->tile_count - 1];
    for (uint32_t i = 0; i < rows * cols; i++) {
        test_put(t, i / (uint32_t)cols, i % (uint32_t)cols, i % below);
    }
}

static inline void call_matrices(test_bench *bench, test_call *call, call_form form,
                                 ptoisa_family family) {
    ptoisa_layout left = family == PTOISA_A5 ? PTOISA_NZ : PTOISA_ZZ;
    call_boxed(bench, call, PTOISA_F32, PTOISA_ACC, PTOISA_NZ, call->r, call->c, NEED_NOTHING);
    if (form == FORM_ADDED || form == FORM_GEMV_ADDED) {
        call_boxed(bench, call, PTOISA_F32, PTOISA_ACC, PTOISA_NZ, call->r, call->c, NEED_BOTH);
    }
    call_boxed(bench, call, call->dtype, PTOISA_LEFT, left, call->r, CALL_DEPTH, NEED_BOTH);
    call_boxed(bench, call, call->dtype, PTOISA_RIGHT, PTOISA_ZN, CALL_DEPTH, call->c, NEED_BOTH);
    if (form == FORM_BIASED || form == FORM_GEMV_BIASED) {
        test_tile *bias = test_tile_make(bench, PTOISA_F32, PTOISA_BIAS, PTOISA_ROW_MAJOR, 1,
                                         (uint32_t)(call->c + 31) / 32 * 32, 1, (uint32_t)call->c);
        test_fill(bench, bias, TEST_PLAIN);
        call_add(call, bias, NEED_BOTH);
    }
}

static inline void call_window(test_bench *bench, test_call *call, ptoisa_dtype dtype,
                               uint64_t rows) {
    call->window = test_window_make(bench, dtype, (uint32_t)rows, (uint32_t)call->c, true, false);
    call->has_window = true;
}

static inline void call_mask(test_bench *bench, test_call *call, ptoisa_family family,
                             call_need need) {
    bool is_a5 = family == PTOISA_A5;
    uint64_t bits = is_a5 ? 32 : 8;
    call_vec(bench, call, is_a5 ? PTOISA_U32 : PTOISA_U8, call->r, (call->c + bits - 1) / bits,
             need);
}

// Operands of instructions on vectors.
static inline void call_operands_vector(test_bench *bench, test_call *call, ptoisa_family family) {
    uint64_t r = call->r, c = call->c;
    uint32_t rows = (uint32_t)r, cols = (uint32_t)c;
    ptoisa_dtype dtype = call->dtype;
    switch (call->form) {
    case FORM_LINE: call_vec(bench, call, dtype, 1, c, NEED_NOTHING); break;
    case FORM_ROW:
    case FORM_ROW_ARG:
        call_column(bench, call, call->form == FORM_ROW ? dtype : PTOISA_U32, NEED_NOTHING);
        call_vec(bench, call, dtype, r, c, NEED_ROWS);
        call_scratch_like(bench, call, call->tiles[1]);
        break;
    case FORM_ROW_VALUES:
        call_column(bench, call, dtype, NEED_NOTHING);
        call_column(bench, call, PTOISA_U32, NEED_NOTHING);
        call_vec(bench, call, dtype, r, c, NEED_ROWS);
        call_scratch_like(bench, call, call->tiles[2]);
        break;
    case FORM_COL:
    case FORM_COL_T:
    case FORM_COL_ARG:
        call_vec(bench, call, call->form == FORM_COL_ARG ? PTOISA_U32 : dtype, 1, c, NEED_NOTHING);
        call_vec(bench, call, dtype, r, c, NEED_COLS);
        if (call->form != FORM_COL) {
            call_scratch_like(bench, call, call->tiles[1]);
        }
        break;
    case FORM_TRANS:
        call_vec(bench, call, dtype, c, r, NEED_NOTHING);
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        call_scratch(bench, call, dtype, cols + 32, (rows + 47) / 16 * 16);
        break;
    case FORM_CONCAT:
        call_vec(bench, call, dtype, r, 2 * c, NEED_NOTHING);
        call_vec(bench, call, dtype, r, c, NEED_BOTH);
        call_vec(bench, call, dtype, r, c, NEED_BOTH);
        break;
    case FORM_PAIRS:
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        call_vec(bench, call, dtype, r, c, NEED_BOTH);
        call_vec(bench, call, dtype, r, c, NEED_BOTH);
        break;
    case FORM_CMP:
    case FORM_CMPS:
        call_mask(bench, call, family, NEED_NOTHING);
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        if (call->form == FORM_CMP) {
            call_vec(bench, call, dtype, r, c, NEED_BOTH);
        }
        break;
    case FORM_SEL:
    case FORM_SELS:
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        call_mask(bench, call, family, NEED_BOTH);
        call_vec(bench, call, dtype, r, c, NEED_BOTH);
        if (call->form == FORM_SEL) {
            call_vec(bench, call, dtype, r, c, NEED_BOTH);
        }
        call_scratch(bench, call, PTOISA_U8, 1, 32);
        break;
    case FORM_SORT:
        call_vec(bench, call, dtype, r, 2 * c, NEED_NOTHING);
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        call_indices(bench, call, r, c, UINT32_MAX);
        break;
    case FORM_MERGE:
        call_vec(bench, call, dtype, 1, c, NEED_NOTHING);
        call_vec(bench, call, dtype, 1, c, NEED_BOTH);
        break;
    case FORM_LISTS:
        call_vec(bench, call, dtype, 1, 2 * c, NEED_NOTHING);
        call_scratch(bench, call, dtype, 1, 2 * cols);
        call_vec(bench, call, dtype, 1, c, NEED_NOTHING);
        call_vec(bench, call, dtype, 1, c, NEED_NOTHING);
        break;
    default: break;
    }
}

static inline void call_scales(test_bench *bench, test_call *call) {
    uint32_t cols = (uint32_t)call->c;
    test_tile *t = test_tile_make(bench, PTOISA_U64, PTOISA_SCALING, PTOISA_ROW_MAJOR, 1,
                                  (cols + 15) / 16 * 16, 1, cols);
    call_add(call, t, NEED_COLS);
    for (uint32_t i = 0; i < cols; i++) {
        test_put(t, 0, i, 0x3f800000);
    }
}

// Operands that are more or less alike, and those of moves and products.
static inline void call_operands(test_bench *bench, test_call *call, ptoisa_family family) {
    uint64_t r = call->r, c = call->c;
    uint32_t rows = (uint32_t)r, cols = (uint32_t)c;
    ptoisa_dtype dtype = call->dtype;
    switch (call->form) {
    case FORM_1: call_vec(bench, call, dtype, r, c, NEED_NOTHING); break;
    case FORM_2:
    case FORM_3:
    case FORM_4:
    case FORM_2T:
    case FORM_3T: {
        uint32_t sources = call->form <= FORM_4 ? call->form : call->form - FORM_2T + 1;
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        for (uint32_t i = 0; i < sources; i++) {
            call_vec(bench, call, dtype, r, c, NEED_BOTH);
        }
        if (call->form >= FORM_2T) {
            call_scratch(bench, call, dtype, rows, cols);
        }
        break;
    }
    case FORM_PART:
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        call_vec(bench, call, dtype, r, c, NEED_BOTH);
        call_vec(bench, call, dtype, r / 2, c, NEED_NOTHING);
        break;
    case FORM_BY_ROW:
    case FORM_BY_ROW_2:
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        if (call->form == FORM_BY_ROW) {
            call_vec(bench, call, dtype, r, c, NEED_BOTH);
        }
        call_column(bench, call, dtype, NEED_BOTH);
        break;
    case FORM_BY_COL:
    case FORM_BY_COL_2:
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        if (call->form == FORM_BY_COL) {
            call_vec(bench, call, dtype, r, c, NEED_BOTH);
        }
        call_vec(bench, call, dtype, 1, c, NEED_BOTH);
        break;
    case FORM_PACKED:
        call_add(call,
                 test_tile_make(bench, dtype, PTOISA_VEC, PTOISA_ROW_MAJOR, rows, cols, rows, cols),
                 NEED_NOTHING);
        call_vec(bench, call, dtype, r, 2 * c,
                 call->form == FORM_PACKED ? NEED_NOTHING : NEED_BOTH);
        break;
    case FORM_INDEX:
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        call_vec(bench, call, dtype, 3, 8, NEED_NOTHING);
        call_indices(bench, call, r, c, 24);
        call_scratch(bench, call, PTOISA_U32, rows, cols);
        break;
    case FORM_SCATTER:
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        call_indices(bench, call, r, c, rows);
        break;
    case FORM_BLOCKS:
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        call_vec(bench, call, dtype, 3, 8, NEED_NOTHING);
        call_indices(bench, call, r, (c + 7) / 8, 65);
        break;
    case FORM_ELEMENTS:
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        call_indices(bench, call, r, c, 30);
        call_window(bench, call, dtype, 30);
        break;
    case FORM_TABLE:
        call_vec(bench, call, dtype, r, c, NEED_NOTHING);
        call_indices(bench, call, 1, r, 30);
        call_window(bench, call, dtype, 30);
        break;
    case FORM_WINDOW:
        call_vec(bench, call, dtype, r, c, NEED_BOTH);
        call_window(bench, call, dtype, r);
        break;
    case FORM_ACC:
    case FORM_ACC_I8:
    case FORM_ACC_FP:
        call_boxed(bench, call, dtype, PTOISA_ACC, PTOISA_NZ, r, c, NEED_BOTH);
        if (call->form == FORM_ACC_FP) {
            call_scales(bench, call);
        }
        call_window(bench, call, call->form == FORM_ACC ? PTOISA_F32 : PTOISA_I8, r);
        break;
    case FORM_TO_LEFT:
        call_boxed(bench, call, dtype, PTOISA_LEFT, family == PTOISA_A5 ? PTOISA_NZ : PTOISA_ZZ, r,
                   c, NEED_NOTHING);
        call_boxed(bench, call, dtype, PTOISA_MAT, PTOISA_NZ, r, c, NEED_BOTH);
        break;
    case FORM_TO_BIAS:
        for (uint32_t i = 0; i < 2; i++) {
            call_add(call,
                     test_tile_make(bench, dtype, i ? PTOISA_MAT : PTOISA_BIAS, PTOISA_ROW_MAJOR, 1,
                                    (cols + 31) / 32 * 32, 1, cols),
                     i ? NEED_BOTH : NEED_NOTHING);
        }
        break;
    case FORM_FROM_ACC_I8:
    case FORM_FROM_ACC_FP:
        call_boxed(bench, call, PTOISA_I8, PTOISA_MAT, PTOISA_NZ, r, c, NEED_NOTHING);
        call_boxed(bench, call, dtype, PTOISA_ACC, PTOISA_NZ, r, c, NEED_BOTH);
        if (call->form == FORM_FROM_ACC_FP) {
            call_scales(bench, call);
        }
        break;
    case FORM_FROM_ACC:
        call_boxed(bench, call, PTOISA_F16, PTOISA_MAT, PTOISA_NZ, r, c, NEED_NOTHING);
        call_boxed(bench, call, dtype, PTOISA_ACC, PTOISA_NZ, r, c, NEED_BOTH);
        break;
    case FORM_NARROW:
        call_vec(bench, call, PTOISA_F16, r, c, NEED_NOTHING);
        call_vec(bench, call, dtype, r, c, NEED_BOTH);
        break;
    case FORM_SYM:
    case FORM_ASYM:
    case FORM_DEQUANT:
        call_vec(bench, call,
                 call->form == FORM_SYM    ? PTOISA_I8
                 : call->form == FORM_ASYM ? PTOISA_U8
                                           : dtype,
                 r, c, NEED_NOTHING);
        call_vec(bench, call, call->form == FORM_DEQUANT ? PTOISA_I8 : dtype, r, c, NEED_BOTH);
        call_column(bench, call, dtype, NEED_ROWS);
        if (call->form != FORM_SYM) {
            call_column(bench, call, dtype, NEED_ROWS);
        }
        break;
    case FORM_MATMUL:
    case FORM_ADDED:
    case FORM_BIASED:
    case FORM_GEMV:
    case FORM_GEMV_ADDED:
    case FORM_GEMV_BIASED: call_matrices(bench, call, call->form, family); break;
    default: call_operands_vector(bench, call, family); break;
    }
}

// -- calls ----------------------------------------------------------------------------------------

static inline bool call_is_line(call_form form) {
    return form == FORM_LINE || form == FORM_MERGE || form == FORM_LISTS || form == FORM_TO_BIAS ||
           form == FORM_GEMV || form == FORM_GEMV_ADDED || form == FORM_GEMV_BIASED;
}

// Columns that a form can have, from c on.
static inline uint64_t call_cols(call_form form, uint64_t c) {
    uint64_t unit = form == FORM_SORT                       ? 32
                    : form == FORM_MERGE                    ? 256
                    : form == FORM_PAIRS                    ? 16
                    : form >= FORM_CMP && form <= FORM_SELS ? 8
                    : form == FORM_LISTS                    ? 2
                                                            : 1;
    return (c + unit - 1) / unit * unit;
}

// Begins a call with about r x c elements.
static inline test_call call_make(test_bench *bench, call_id id, ptoisa_family family, uint64_t r,
                                  uint64_t c) {
    test_call call = {.id = id};
    switch (id) {
#define CALL_MAKE(name_, prefix_, form_, dtype_, cycles_, call_)                                   \
    case CALL_##name_:                                                                             \
        call.name = #name_;                                                                        \
        call.prefix = #prefix_ ": ";                                                               \
        call.form = form_;                                                                         \
        call.dtype = PTOISA_##dtype_;                                                              \
        r = call_is_line(form_) ? 1 : r;                                                           \
        c = call_cols(form_, c);                                                                   \
        call.cycles = cycles_;                                                                     \
        break;
        CALLS(CALL_MAKE)
#undef CALL_MAKE
    case CALL_COUNT: break;
    }
    call.r = r;
    call.c = c;
    family = call.form == FORM_PAIRS ? PTOISA_A5 : family;  // A2/A3 has none
    test_begin(bench, family, call.name);
    call_operands(bench, &call, family);
    if (id == CALL_TINSERT || id == CALL_TINSERT_QUANT || id == CALL_TFILLPAD ||
        id == CALL_TFILLPAD_EXPAND) {
        call.needs[1] = NEED_NOTHING;  // what is valid there decides where d is written, or filled
    }
    if (id == CALL_TMOV || id == CALL_TEXTRACT || id == CALL_TFILLPAD ||
        id == CALL_TFILLPAD_EXPAND) {
        // These want both allocated alike.
        ptoisa_tile *d = &call.tiles[0]->tile, *s = &call.tiles[1]->tile;
        s->rows = d->rows = s->rows < d->rows ? s->rows : d->rows;
        s->cols = d->cols = s->cols < d->cols ? s->cols : d->cols;
        d->pad = PTOISA_PAD_ZERO;
    }
    return call;
}

static inline void call_run(test_bench *bench, const test_call *call) {
    ptoisa_core *core = &bench->core;
    const ptoisa_tile *t[CALL_TILES_MAX];
    const ptoisa_global *g = &call->window.global;
    uint16_t executed[4];
    for (uint32_t i = 0; i < call->tile_count; i++) {
        t[i] = &call->tiles[i]->tile;
    }
    switch (call->id) {
#define CALL_RUN(name, prefix, form, dtype, cycles, call)                                          \
    case CALL_##name: ptoisa_##call; break;
        CALLS(CALL_RUN)
#undef CALL_RUN
    case CALL_COUNT: break;
    }
}

#endif
