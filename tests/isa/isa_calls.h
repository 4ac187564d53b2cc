// Tests of ptoisa_shim.h: one good call of every instruction, with the cycles that it costs in the
// unit model, counted on paper. What goes wrong is then a change to one of its operands.

#ifndef PTOISA_CALLS_H
#define PTOISA_CALLS_H

#include "isa_operand.h"
#include "isa_test.h"
#include "isa_window.h"

enum { CALL_TILES_MAX = 5, CALL_DEPTH = 5 };

typedef enum call_need {
    NEED_NOTHING = 0,  // scratch, and destinations
    NEED_ROWS = 1,
    NEED_COLS = 2,
    NEED_BOTH = 3
} call_need;

// Sizes of an operand of a call of r x c elements.
typedef enum call_size {
    ONE,
    THREE,
    DEPTH,
    EIGHT,
    THIRTY,
    WHOLE_BLOCK,
    R,
    HALF_R,
    C,
    TWO_C,
    C_BY_8
} call_size;

typedef enum call_kind {
    IS_VEC,      // row-major in UB
    IS_COLUMN,   // of r elements
    IS_MASK,     // a bit for each element
    IS_SCRATCH,  // in UB
    IS_LIKE,     // scratch as the operand before
    IS_ACROSS,   // scratch for a transposition
    IS_INDEX,    // numbers below `more`, or below r for 0
    IS_BOXED,    // in memory `more`, in the layout that it has there
    IS_LINES,    // row-major in memory `more`
    IS_SCALES,   // of each column, for the fixpipe
    IS_WINDOW    // in global memory
} call_kind;

typedef struct call_operand {
    call_kind kind;
    ptoisa_dtype dtype;  // 0: the call's
    call_size rows, cols;
    call_need need;
    uint32_t more;
    bool is_there;
} call_operand;

// clang-format off
#define OPERAND(kind, dtype, rows, cols, need, more) \
    {IS_##kind, (ptoisa_dtype)(dtype), rows, cols, NEED_##need, more, true}
#define VEC(rows, cols, need)           OPERAND(VEC, 0, rows, cols, need, 0)
#define OF(dtype, need)                 OPERAND(VEC, PTOISA_##dtype, R, C, need, 0)
#define COLUMN(dtype, need)             OPERAND(COLUMN, dtype, R, ONE, need, 0)
#define MASK(need)                      OPERAND(MASK, 0, R, C, need, 0)
#define SCRATCH(dtype, rows, cols)      OPERAND(SCRATCH, dtype, rows, cols, NOTHING, 0)
#define LIKE                            OPERAND(LIKE, 0, R, C, NOTHING, 0)
#define ACROSS                          OPERAND(ACROSS, 0, R, C, NOTHING, 0)
#define INDEX(rows, cols, below)        OPERAND(INDEX, PTOISA_U32, rows, cols, BOTH, below)
#define IN(memory, dtype, rows, cols, need) OPERAND(BOXED, dtype, rows, cols, need, PTOISA_##memory)
#define LINES(memory, dtype, rows, need)    OPERAND(LINES, dtype, rows, C, need, PTOISA_##memory)
#define SCALES                          OPERAND(SCALES, 0, ONE, C, COLS, 0)
#define WINDOW(dtype, rows)             OPERAND(WINDOW, dtype, rows, C, NOTHING, 0)
#define D VEC(R, C, NOTHING)
#define S VEC(R, C, BOTH)
#define ACC(need) IN(ACC, PTOISA_F32, R, C, need)
#define FACTORS   IN(LEFT, 0, R, DEPTH, BOTH), IN(RIGHT, 0, DEPTH, C, BOTH)
#define BIAS      LINES(BIAS, PTOISA_F32, ONE, BOTH)

// The operands of each form, the destination first.
#define FORMS(FORM) \
    FORM(FORM_1, D) \
    FORM(FORM_2, D, S) \
    FORM(FORM_3, D, S, S) \
    FORM(FORM_4, D, S, S, S) \
    FORM(FORM_2T, D, S, SCRATCH(0, R, C)) \
    FORM(FORM_3T, D, S, S, SCRATCH(0, R, C)) \
    FORM(FORM_LINE, VEC(ONE, C, NOTHING)) \
    FORM(FORM_ROW, COLUMN(0, NOTHING), VEC(R, C, ROWS), LIKE) \
    FORM(FORM_ROW_ARG, COLUMN(PTOISA_U32, NOTHING), VEC(R, C, ROWS), LIKE) \
    FORM(FORM_ROW_VALUES, COLUMN(0, NOTHING), COLUMN(PTOISA_U32, NOTHING), VEC(R, C, ROWS), LIKE) \
    FORM(FORM_COL_ARG, OPERAND(VEC, PTOISA_U32, ONE, C, NOTHING, 0), VEC(R, C, COLS), LIKE) \
    FORM(FORM_COL, VEC(ONE, C, NOTHING), VEC(R, C, COLS)) \
    FORM(FORM_COL_T, VEC(ONE, C, NOTHING), VEC(R, C, COLS), LIKE) \
    FORM(FORM_BY_ROW_2, D, COLUMN(0, BOTH)) \
    FORM(FORM_BY_ROW, D, S, COLUMN(0, BOTH)) \
    FORM(FORM_BY_COL_2, D, VEC(ONE, C, BOTH)) \
    FORM(FORM_BY_COL, D, S, VEC(ONE, C, BOTH)) \
    FORM(FORM_TRANS, VEC(C, R, NOTHING), VEC(R, C, NOTHING), ACROSS) \
    FORM(FORM_CONCAT, VEC(R, TWO_C, NOTHING), S, S) \
    FORM(FORM_PAIRS, D, D, S, S) \
    FORM(FORM_PART, D, S, VEC(HALF_R, C, NOTHING)) \
    FORM(FORM_CMP, MASK(NOTHING), D, S) \
    FORM(FORM_CMPS, MASK(NOTHING), D) \
    FORM(FORM_SEL, D, MASK(BOTH), S, S, SCRATCH(PTOISA_U8, ONE, WHOLE_BLOCK)) \
    FORM(FORM_SELS, D, MASK(BOTH), S, SCRATCH(PTOISA_U8, ONE, WHOLE_BLOCK)) \
    FORM(FORM_SORT, VEC(R, TWO_C, NOTHING), D, INDEX(R, C, UINT32_MAX)) \
    FORM(FORM_MERGE, VEC(ONE, C, NOTHING), VEC(ONE, C, BOTH)) \
    FORM(FORM_LISTS, VEC(ONE, TWO_C, NOTHING), SCRATCH(0, ONE, TWO_C), VEC(ONE, C, NOTHING), VEC(ONE, C, NOTHING)) \
    FORM(FORM_PACKED, LINES(VEC, 0, R, NOTHING), VEC(R, TWO_C, NOTHING)) \
    FORM(FORM_INDEX, D, VEC(THREE, EIGHT, NOTHING), INDEX(R, C, 24), SCRATCH(PTOISA_U32, R, C)) \
    FORM(FORM_SCATTER, D, D, INDEX(R, C, 0)) \
    FORM(FORM_BLOCKS, D, VEC(THREE, EIGHT, NOTHING), INDEX(R, C_BY_8, 65)) \
    FORM(FORM_ELEMENTS, D, INDEX(R, C, 30), WINDOW(0, THIRTY)) \
    FORM(FORM_TABLE, D, INDEX(ONE, R, 30), WINDOW(0, THIRTY)) \
    FORM(FORM_WINDOW, S, WINDOW(0, R)) \
    FORM(FORM_ACC, IN(ACC, 0, R, C, BOTH), WINDOW(PTOISA_F32, R)) \
    FORM(FORM_ACC_I8, IN(ACC, 0, R, C, BOTH), WINDOW(PTOISA_I8, R)) \
    FORM(FORM_ACC_FP, IN(ACC, 0, R, C, BOTH), SCALES, WINDOW(PTOISA_I8, R)) \
    FORM(FORM_TO_LEFT, IN(LEFT, 0, R, C, NOTHING), IN(MAT, 0, R, C, BOTH)) \
    FORM(FORM_TO_BIAS, LINES(BIAS, 0, ONE, NOTHING), LINES(MAT, 0, ONE, BOTH)) \
    FORM(FORM_FROM_ACC, IN(MAT, PTOISA_F16, R, C, NOTHING), IN(ACC, 0, R, C, BOTH)) \
    FORM(FORM_FROM_ACC_I8, IN(MAT, PTOISA_I8, R, C, NOTHING), IN(ACC, 0, R, C, BOTH)) \
    FORM(FORM_FROM_ACC_FP, IN(MAT, PTOISA_I8, R, C, NOTHING), IN(ACC, 0, R, C, BOTH), SCALES) \
    FORM(FORM_NARROW, OF(F16, NOTHING), S) \
    FORM(FORM_SYM, OF(I8, NOTHING), S, COLUMN(0, ROWS)) \
    FORM(FORM_ASYM, OF(U8, NOTHING), S, COLUMN(0, ROWS), COLUMN(0, ROWS)) \
    FORM(FORM_DEQUANT, D, OF(I8, BOTH), COLUMN(0, ROWS), COLUMN(0, ROWS)) \
    FORM(FORM_MATMUL, ACC(NOTHING), FACTORS) \
    FORM(FORM_ADDED, ACC(NOTHING), ACC(BOTH), FACTORS) \
    FORM(FORM_BIASED, ACC(NOTHING), FACTORS, BIAS) \
    FORM(FORM_GEMV, ACC(NOTHING), FACTORS) \
    FORM(FORM_GEMV_ADDED, ACC(NOTHING), ACC(BOTH), FACTORS) \
    FORM(FORM_GEMV_BIASED, ACC(NOTHING), FACTORS, BIAS)
// clang-format on

typedef enum call_form {
#define FORM_ID(name, ...) name,
    FORMS(FORM_ID)
#undef FORM_ID
} call_form;

static const call_operand call_forms[][CALL_TILES_MAX] = {
#define FORM_OPERANDS(name, ...) {__VA_ARGS__},
    FORMS(FORM_OPERANDS)
#undef FORM_OPERANDS
};

#undef D
#undef S
#undef IN
#undef OF
#undef ACC
#undef VEC

#define TILES_2 core, t[0], t[1]
#define TILES_3 TILES_2, t[2]
#define TILES_4 TILES_3, t[3]
#define TILES_5 TILES_4, t[4]

// name for messages, prefix of its faults, form, type, cycles, the call
#define CALLS(CALL)                                                                                \
    CALL(TLOAD, TLOAD, FORM_WINDOW, F32, r *c, tload(core, t[0], g))                               \
    CALL(TSTORE, TSTORE, FORM_WINDOW, F16, r *c, tstore(core, g, t[0]))                            \
    CALL(TSTORE_ADD, TSTORE, FORM_WINDOW, F32, r *c, tstore_add(core, g, t[0]))                    \
    CALL(TSTORE_ACC, TSTORE, FORM_ACC, F32, r *c, tstore(core, g, t[0]))                           \
    CALL(TSTORE_RELU, TSTORE, FORM_ACC, F32, r *c, tstore_relu(core, g, t[0]))                     \
    CALL(TSTORE_QUANT, TSTORE, FORM_ACC_I8, F32, r *c, tstore_quant(core, g, t[0], 0.5f, false))   \
    CALL(TSTORE_FP, TSTORE, FORM_ACC_FP, I32, r *c, tstore_fp(core, g, t[0], t[1], true))          \
    CALL(TMOV, TMOV, FORM_2, BF16, r *c, tmov(TILES_2))                                            \
    CALL(TMOV_LEFT, TMOV, FORM_TO_LEFT, F16, 0, tmov(TILES_2))                                     \
    CALL(TMOV_BIAS, TMOV, FORM_TO_BIAS, F32, 0, tmov(TILES_2))                                     \
    CALL(TMOV_QUANT, TMOV, FORM_FROM_ACC_I8, F32, r *c, tmov_quant(TILES_2, 0.5f, false))          \
    CALL(TMOV_FP, TMOV, FORM_FROM_ACC_FP, I32, r *c, tmov_fp(TILES_3, true))                       \
    CALL(TINSERT_QUANT, TINSERT, FORM_FROM_ACC_I8, I32, r *c,                                      \
         tinsert_quant(TILES_2, 2, 0, 0, false))                                                   \
    CALL(TEXTRACT_FP, TEXTRACT, FORM_FROM_ACC_FP, F32, r *c, textract_fp(TILES_3, 0, 0, false))    \
    CALL(TMOV_ACC, TMOV, FORM_FROM_ACC, F32, r *c, tmov(TILES_2))                                  \
    CALL(TEXTRACT, TEXTRACT, FORM_2, F32, r *c,                                                    \
         textract(TILES_2, (uint32_t)call_number(k, 0, 0), (uint32_t)call_number(k, 1, 0)))        \
    CALL(TEXTRACT_L0, TEXTRACT, FORM_TO_LEFT, F16, 0,                                              \
         textract(TILES_2, (uint32_t)call_number(k, 0, 0), (uint32_t)call_number(k, 1, 0)))        \
    CALL(TINSERT, TINSERT, FORM_FROM_ACC, F32, r *c,                                               \
         tinsert(TILES_2, (uint32_t)call_number(k, 0, 0), (uint32_t)call_number(k, 1, 0)))         \
    CALL(TCVT, TCVT, FORM_NARROW, F32, r *c,                                                       \
         tcvt(TILES_2, (ptoisa_round)call_number(k, 0, PTOISA_CAST_RINT),                          \
              call_number(k, 1, 0) != 0))                                                          \
    CALL(TTRANS, TTRANS, FORM_TRANS, F32, r *c, ttrans(TILES_3))                                   \
    CALL(TEXPANDS, TEXPANDS, FORM_1, F32, r *c, texpands(core, t[0], call_number(k, 0, 1)))        \
    CALL(TFILLPAD, TFILLPAD, FORM_2, F32, r *c, tfillpad(TILES_2))                                 \
    CALL(TFILLPAD_EXPAND, TFILLPAD, FORM_2, I16, r *c, tfillpad_expand(TILES_2))                   \
    CALL(TCONCAT, TCONCAT, FORM_CONCAT, F32, 2 * r * c, tconcat(TILES_3))                          \
    CALL(TINTERLEAVE, TINTERLEAVE, FORM_PAIRS, F32, r *c, tinterleave(TILES_4))                    \
    CALL(TDEINTERLEAVE, TDEINTERLEAVE, FORM_PAIRS, F32, r *c, tdeinterleave(TILES_4))              \
    CALL(TCI, TCI, FORM_LINE, I32, 0,                                                              \
         tci(core, t[0], call_number(k, 0, 5), call_number(k, 1, 0) != 0))                         \
    CALL(TTRI, TTRI, FORM_1, F32, r *c, ttri(core, t[0], true, 1))                                 \
    CALL(TADD, TADD, FORM_3, F32, r *c, tadd(TILES_3))                                             \
    CALL(TSUB, TSUB, FORM_3, I32, r *c, tsub(TILES_3))                                             \
    CALL(TMUL, TMUL, FORM_3, F16, r *c, tmul(TILES_3))                                             \
    CALL(TDIV, TDIV, FORM_3, F32, r *c, tdiv(TILES_3))                                             \
    CALL(TMAX, TMAX, FORM_3, I16, r *c, tmax(TILES_3))                                             \
    CALL(TMIN, TMIN, FORM_3, F32, r *c, tmin(TILES_3))                                             \
    CALL(TAND, TAND, FORM_3, U8, r *c, tand(TILES_3))                                              \
    CALL(TOR, TOR, FORM_3, I16, r *c, tor(TILES_3))                                                \
    CALL(TXOR, TXOR, FORM_3T, I32, r *c, txor(TILES_4))                                            \
    CALL(TSHL, TSHL, FORM_3, I32, r *c, tshl(TILES_3))                                             \
    CALL(TSHR, TSHR, FORM_3, U16, r *c, tshr(TILES_3))                                             \
    CALL(TREM, TREM, FORM_3T, F32, r *c, trem(TILES_4))                                            \
    CALL(TFMOD, TFMOD, FORM_3, F32, r *c, tfmod(TILES_3, NULL))                                    \
    CALL(TPOW, TPOW, FORM_3, F32, r *c, tpow(TILES_3, NULL))                                       \
    CALL(TPARTADD, TPARTADD, FORM_PART, F32, r *c, tpartadd(TILES_3))                              \
    CALL(TPARTMUL, TPARTMUL, FORM_PART, F32, r *c, tpartmul(TILES_3))                              \
    CALL(TPARTMAX, TPARTMAX, FORM_PART, I32, r *c, tpartmax(TILES_3))                              \
    CALL(TPARTMIN, TPARTMIN, FORM_PART, F16, r *c, tpartmin(TILES_3))                              \
    CALL(TADDS, TADDS, FORM_2, F32, r *c, tadds(TILES_2, call_number(k, 0, 2)))                    \
    CALL(TSUBS, TSUBS, FORM_2, F32, r *c, tsubs(TILES_2, call_number(k, 0, 2)))                    \
    CALL(TMULS, TMULS, FORM_2, I32, r *c, tmuls(TILES_2, call_number(k, 0, 2)))                    \
    CALL(TDIVS, TDIVS, FORM_2, F32, r *c, tdivs(TILES_2, call_number(k, 0, 2)))                    \
    CALL(TSDIV, TSDIV, FORM_2, F32, r *c, tsdiv(core, t[0], call_number(k, 0, 2), t[1]))           \
    CALL(TMAXS, TMAXS, FORM_2, F32, r *c, tmaxs(TILES_2, 2))                                       \
    CALL(TMINS, TMINS, FORM_2, F32, r *c, tmins(TILES_2, 2))                                       \
    CALL(TANDS, TANDS, FORM_2, I32, r *c, tands(TILES_2, 2))                                       \
    CALL(TORS, TORS, FORM_2, U32, r *c, tors(TILES_2, 2))                                          \
    CALL(TXORS, TXORS, FORM_2T, I16, r *c, txors(TILES_2, 2, t[2]))                                \
    CALL(TSHLS, TSHLS, FORM_2, I32, r *c, tshls(TILES_2, 2))                                       \
    CALL(TSHRS, TSHRS, FORM_2, I32, r *c, tshrs(TILES_2, 2))                                       \
    CALL(TREMS, TREMS, FORM_2, F32, r *c, trems(TILES_2, 2))                                       \
    CALL(TFMODS, TFMODS, FORM_2, I32, r *c, tfmods(TILES_2, 2))                                    \
    CALL(TPOWS, TPOWS, FORM_2, F32, r *c, tpows(TILES_2, 2))                                       \
    CALL(TEXP, TEXP, FORM_2, F32, r *c, texp(TILES_2))                                             \
    CALL(TLOG, TLOG, FORM_2, F32, r *c, tlog(TILES_2))                                             \
    CALL(TSQRT, TSQRT, FORM_2, F16, r *c, tsqrt(TILES_2))                                          \
    CALL(TRSQRT, TRSQRT, FORM_2, F32, r *c, trsqrt(TILES_2))                                       \
    CALL(TRECIP, TRECIP, FORM_2, F32, r *c, trecip(TILES_2))                                       \
    CALL(TABS, TABS, FORM_2, F32, r *c, tabs(TILES_2))                                             \
    CALL(TNEG, TNEG, FORM_2, I32, r *c, tneg(TILES_2))                                             \
    CALL(TRELU, TRELU, FORM_2, F32, r *c, trelu(TILES_2))                                          \
    CALL(TNOT, TNOT, FORM_2, I16, r *c, tnot(TILES_2))                                             \
    CALL(TLRELU, TLRELU, FORM_2, F32, r *c, tlrelu(TILES_2, call_number(k, 0, 2)))                 \
    CALL(TPRELU, TPRELU, FORM_3T, F32, r *c, tprelu(TILES_4))                                      \
    CALL(TAXPY, TAXPY, FORM_2, F32, r *c, taxpy(TILES_2, call_number(k, 0, 2)))                    \
    CALL(TADDC, TADDC, FORM_4, F32, r *c, taddc(TILES_4))                                          \
    CALL(TSUBC, TSUBC, FORM_4, I32, r *c, tsubc(TILES_4))                                          \
    CALL(TADDSC, TADDSC, FORM_3, F32, r *c, taddsc(TILES_2, 2, t[2]))                              \
    CALL(TSUBSC, TSUBSC, FORM_3, F32, r *c, tsubsc(TILES_2, 2, t[2]))                              \
    CALL(TFUSEDMULADD, TFUSEDMULADD, FORM_3, F32, r *c, tfusedmuladd(TILES_3))                     \
    CALL(TMULADDDST, TMULADDDST, FORM_3, F32, r *c, tmuladddst(TILES_3))                           \
    CALL(TFUSEDMULADDRELU, TFUSEDMULADDRELU, FORM_3, F16, r *c, tfusedmuladdrelu(TILES_3))         \
    CALL(TSUBRELU, TSUBRELU, FORM_3, F32, r *c, tsubrelu(TILES_3))                                 \
    CALL(TROWSUM, TROWSUM, FORM_ROW, F32, r, trowsum(TILES_3))                                     \
    CALL(TROWMAX, TROWMAX, FORM_ROW, F16, r, trowmax(TILES_3))                                     \
    CALL(TROWMIN, TROWMIN, FORM_ROW, I32, r, trowmin(TILES_3))                                     \
    CALL(TROWPROD, TROWPROD, FORM_ROW, F32, r, trowprod(TILES_3))                                  \
    CALL(TROWARGMAX, TROWARGMAX, FORM_ROW_ARG, F32, r, trowargmax(TILES_3))                        \
    CALL(TROWARGMIN, TROWARGMIN, FORM_ROW_ARG, I16, r, trowargmin(TILES_3))                        \
    CALL(TROWARGMAX_VALUES, TROWARGMAX, FORM_ROW_VALUES, F16, r, trowargmax_values(TILES_4))       \
    CALL(TPAIRREDUCESUM, TPAIRREDUCESUM, FORM_2, F32, r *c, tpairreducesum(TILES_2))               \
    CALL(TCOLARGMAX, TCOLARGMAX, FORM_COL_ARG, F32, c, tcolargmax(TILES_3))                        \
    CALL(TCOLARGMIN, TCOLARGMIN, FORM_COL_ARG, U16, c, tcolargmin(TILES_3))                        \
    CALL(TCOLSUM, TCOLSUM, FORM_COL_T, F32, c, tcolsum(TILES_3, true))                             \
    CALL(TCOLSUM_SEQ, TCOLSUM, FORM_COL, F32, c, tcolsum(TILES_2, NULL, false))                    \
    CALL(TCOLMAX, TCOLMAX, FORM_COL, F16, c, tcolmax(TILES_2))                                     \
    CALL(TCOLMIN, TCOLMIN, FORM_COL, I32, c, tcolmin(TILES_2))                                     \
    CALL(TCOLPROD, TCOLPROD, FORM_COL, F32, c, tcolprod(TILES_2))                                  \
    CALL(TROWEXPAND, TROWEXPAND, FORM_BY_ROW_2, F32, r *c, trowexpand(TILES_2))                    \
    CALL(TROWEXPANDADD, TROWEXPANDADD, FORM_BY_ROW, I32, r *c, trowexpandadd(TILES_3))             \
    CALL(TROWEXPANDSUB, TROWEXPANDSUB, FORM_BY_ROW, F32, r *c, trowexpandsub(TILES_3))             \
    CALL(TROWEXPANDMUL, TROWEXPANDMUL, FORM_BY_ROW, F16, r *c, trowexpandmul(TILES_3))             \
    CALL(TROWEXPANDDIV, TROWEXPANDDIV, FORM_BY_ROW, F32, r *c, trowexpanddiv(TILES_3))             \
    CALL(TROWEXPANDMAX, TROWEXPANDMAX, FORM_BY_ROW, F32, r *c, trowexpandmax(TILES_3))             \
    CALL(TROWEXPANDMIN, TROWEXPANDMIN, FORM_BY_ROW, F32, r *c, trowexpandmin(TILES_3))             \
    CALL(TROWEXPANDEXPDIF, TROWEXPANDEXPDIF, FORM_BY_ROW, F32, r *c, trowexpandexpdif(TILES_3))    \
    CALL(TCOLEXPAND, TCOLEXPAND, FORM_BY_COL_2, F32, r *c, tcolexpand(TILES_2))                    \
    CALL(TCOLEXPANDADD, TCOLEXPANDADD, FORM_BY_COL, I32, r *c, tcolexpandadd(TILES_3))             \
    CALL(TCOLEXPANDSUB, TCOLEXPANDSUB, FORM_BY_COL, F32, r *c, tcolexpandsub(TILES_3))             \
    CALL(TCOLEXPANDMUL, TCOLEXPANDMUL, FORM_BY_COL, F16, r *c, tcolexpandmul(TILES_3))             \
    CALL(TCOLEXPANDDIV, TCOLEXPANDDIV, FORM_BY_COL, F32, r *c, tcolexpanddiv(TILES_3))             \
    CALL(TCOLEXPANDMAX, TCOLEXPANDMAX, FORM_BY_COL, F32, r *c, tcolexpandmax(TILES_3))             \
    CALL(TCOLEXPANDMIN, TCOLEXPANDMIN, FORM_BY_COL, F32, r *c, tcolexpandmin(TILES_3))             \
    CALL(TCOLEXPANDEXPDIF, TCOLEXPANDEXPDIF, FORM_BY_COL, F32, r *c, tcolexpandexpdif(TILES_3))    \
    CALL(TCMP, TCMP, FORM_CMP, F32, r *c,                                                          \
         tcmp(TILES_3, (ptoisa_compare)call_number(k, 0, PTOISA_EQ)))                              \
    CALL(TCMPS, TCMPS, FORM_CMPS, F32, r *c,                                                       \
         tcmps(TILES_2, call_number(k, 0, 2), (ptoisa_compare)call_number(k, 1, PTOISA_EQ)))       \
    CALL(TSEL, TSEL, FORM_SEL, F32, r *c, tsel(TILES_5))                                           \
    CALL(TSELS, TSELS, FORM_SELS, F32, r *c, tsels(TILES_4, 2))                                    \
    CALL(TSORT32, TSORT32, FORM_SORT, F32, 5 * r * c, tsort32(TILES_3))                            \
    CALL(TMRGSORT, TMRGSORT, FORM_MERGE, F32, c,                                                   \
         tmrgsort(TILES_2, (uint32_t)call_number(k, 0, 64)))                                       \
    CALL(TMRGSORT_LISTS, TMRGSORT, FORM_LISTS, F32, c,                                             \
         tmrgsort_lists(TILES_2, t + 2, (uint32_t)call_number(k, 0, 2), executed,                  \
                        call_number(k, 1, 0) != 0))                                                \
    CALL(TGATHERMASK, TGATHERMASK, FORM_PACKED, F32, 0,                                            \
         tgather_mask(TILES_2, (ptoisa_pattern)call_number(k, 0, PTOISA_P1010)))                   \
    CALL(TGATHER, TGATHER, FORM_INDEX, F32, r *c, tgather(TILES_4))                                \
    CALL(TGATHERB, TGATHERB, FORM_BLOCKS, F32, r *c, tgatherb(TILES_3))                            \
    CALL(MGATHER_ELEM, MGATHER, FORM_ELEMENTS, F32, r *c,                                          \
         mgather_by(core, t[0], g, t[1], true, PTOISA_OUTSIDE_FAULT))                              \
    CALL(MSCATTER_ELEM, MSCATTER, FORM_ELEMENTS, I16, r *c,                                        \
         mscatter_by(core, g, t[0], t[1], call_number(k, 0, 1) != 0,                               \
                     (ptoisa_scatter)call_number(k, 1, PTOISA_SCATTER_ADD)))                       \
    CALL(TSCATTER, TSCATTER, FORM_SCATTER, F32, r *c, tscatter(TILES_3))                           \
    CALL(MGATHER, MGATHER, FORM_TABLE, F32, r *c, mgather(core, t[0], g, t[1]))                    \
    CALL(MSCATTER, MSCATTER, FORM_TABLE, F32, r *c, mscatter(core, g, t[0], t[1]))                 \
    CALL(TMATMUL, TMATMUL, FORM_MATMUL, F16, 5 * r * c, tmatmul(TILES_3))                          \
    CALL(TMATMUL_ACC, TMATMUL_ACC, FORM_ADDED, BF16, 5 * r * c, tmatmul_acc(TILES_4))              \
    CALL(TMATMUL_BIAS, TMATMUL_BIAS, FORM_BIASED, F32, 5 * r * c, tmatmul_bias(TILES_4))           \
    CALL(TGEMV, TGEMV, FORM_GEMV, F16, 5 * c, tgemv(TILES_3))                                      \
    CALL(TGEMV_ACC, TGEMV_ACC, FORM_GEMV_ADDED, F16, 5 * c, tgemv_acc(TILES_4))                    \
    CALL(TGEMV_BIAS, TGEMV_BIAS, FORM_GEMV_BIASED, F32, 5 * c, tgemv_bias(TILES_4))                \
    CALL(TQUANT_SYM, TQUANT, FORM_SYM, F32, r *c, tquant_sym(TILES_3))                             \
    CALL(TQUANT_ASYM, TQUANT, FORM_ASYM, F32, r *c, tquant_asym(TILES_4))                          \
    CALL(TDEQUANT, TDEQUANT, FORM_DEQUANT, F32, r *c, tdequant(TILES_4))

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
    double numbers[3];  // that a line of text gives
    uint32_t number_count;
} test_call;

// A number that a call takes: that of a line, or another one.
static inline double call_number(const test_call *call, uint32_t i, double otherwise) {
    return i < call->number_count ? call->numbers[i] : otherwise;
}

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

static inline void call_scales(test_bench *bench, test_call *call) {
    uint32_t cols = (uint32_t)call->c;
    test_tile *t = test_tile_make(bench, PTOISA_U64, PTOISA_SCALING, PTOISA_ROW_MAJOR, 1,
                                  (cols + 15) / 16 * 16, 1, cols);
    call_add(call, t, NEED_COLS);
    for (uint32_t i = 0; i < cols; i++) {
        test_put(t, 0, i, 0x3f800000);
    }
}

static inline uint32_t call_size_of(const test_call *call, call_size size) {
    const uint32_t r = (uint32_t)call->r, c = (uint32_t)call->c;
    switch (size) {
    case ONE: return 1;
    case THREE: return 3;
    case DEPTH: return CALL_DEPTH;
    case EIGHT: return 8;
    case THIRTY: return 30;
    case WHOLE_BLOCK: return 32;
    case R: return r;
    case HALF_R: return r / 2;
    case C: return c;
    case TWO_C: return 2 * c;
    default: return (c + 7) / 8;
    }
}

static inline void call_lines(test_bench *bench, test_call *call, ptoisa_dtype dtype,
                              ptoisa_memory memory, uint32_t rows, uint32_t cols, call_need need) {
    uint32_t all = memory == PTOISA_VEC ? cols : (cols + 31) / 32 * 32;
    call_add(call, test_tile_make(bench, dtype, memory, PTOISA_ROW_MAJOR, rows, all, rows, cols),
             need);
    if (dtype == PTOISA_F32) {
        test_fill(bench, call->tiles[call->tile_count - 1], TEST_PLAIN);
    }
}

static inline void call_operand_add(test_bench *bench, test_call *call, const call_operand *o,
                                    ptoisa_family family) {
    const ptoisa_dtype dtype = o->dtype ? o->dtype : call->dtype;
    const uint32_t rows = call_size_of(call, o->rows), cols = call_size_of(call, o->cols);
    const ptoisa_memory memory = (ptoisa_memory)o->more;
    switch (o->kind) {
    case IS_VEC: call_vec(bench, call, dtype, rows, cols, o->need); break;
    case IS_COLUMN: call_column(bench, call, dtype, o->need); break;
    case IS_MASK: call_mask(bench, call, family, o->need); break;
    case IS_SCRATCH: call_scratch(bench, call, dtype, rows, cols); break;
    case IS_LIKE: call_scratch_like(bench, call, call->tiles[call->tile_count - 1]); break;
    case IS_ACROSS: call_scratch(bench, call, dtype, cols + 32, (rows + 47) / 16 * 16); break;
    case IS_INDEX: call_indices(bench, call, rows, cols, o->more ? o->more : rows); break;
    case IS_BOXED:
        call_boxed(bench, call, dtype, memory, operand_layout(memory, family), rows, cols, o->need);
        break;
    case IS_LINES: call_lines(bench, call, dtype, memory, rows, cols, o->need); break;
    case IS_SCALES: call_scales(bench, call); break;
    case IS_WINDOW: call_window(bench, call, dtype, rows); break;
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
    for (const call_operand *o = call_forms[call.form];
         o < call_forms[call.form] + CALL_TILES_MAX && o->is_there; o++) {
        call_operand_add(bench, &call, o, family);
    }
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
    const test_call *k = call;
    uint16_t executed[4];
    for (uint32_t i = 0; i < call->tile_count; i++) {
        t[i] = call->tiles[i] ? &call->tiles[i]->tile : NULL;
    }
    switch (call->id) {
#define CALL_RUN(name, prefix, form, dtype, cycles, call)                                          \
    case CALL_##name: ptoisa_##call; break;
        CALLS(CALL_RUN)
#undef CALL_RUN
    case CALL_COUNT: break;
    }
}

#undef TILES_2
#undef TILES_3
#undef TILES_4
#undef TILES_5

#endif
