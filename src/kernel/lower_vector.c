// Lowering of operations that work element by element, along rows and along columns.

#include "lower.h"

// The four forms of a binary operation.
typedef struct pwsp_binary_ops {
    ptoisa_op tile, scalar, row, col;
} pwsp_binary_ops;

static pwsp_binary_ops pwsp_binary_ops_of(uint8_t kind) {
#define PWSP_BINARY_CASE(kind, name)                                                               \
    case PWSP_KOP_##kind:                                                                          \
        ops.tile = PTOISA_T##name;                                                                 \
        ops.scalar = PTOISA_T##name##S;                                                            \
        ops.row = PTOISA_TROWEXPAND##name;                                                         \
        ops.col = PTOISA_TCOLEXPAND##name;                                                         \
        break
    pwsp_binary_ops ops = {PTOISA_NOP, PTOISA_NOP, PTOISA_NOP, PTOISA_NOP};
    switch (kind) {
        PWSP_BINARY_CASE(ADD, ADD);
        PWSP_BINARY_CASE(SUB, SUB);
        PWSP_BINARY_CASE(MUL, MUL);
        PWSP_BINARY_CASE(DIV, DIV);
        PWSP_BINARY_CASE(MAX, MAX);
        PWSP_BINARY_CASE(MIN, MIN);
    default: PTOWSP_ASSERT(0 && "an operation of two tiles"); break;
    }
#undef PWSP_BINARY_CASE
    return ops;
}

// Is the operation's source j a constant or a scalar parameter?
static bool pwsp_lower_is_scalar(const pwsp_lowering *lw, const pwsp_kop *op, uint32_t j) {
    uint8_t kind = lw->body->ops[op->src[j]].kind;
    return kind == PWSP_KOP_CONST || kind == PWSP_KOP_SCALAR;
}

// constant - tile, constant / tile.
static void pwsp_lower_left_scalar(pwsp_lowering *lw, const pwsp_kop *op) {
    uint32_t src = pwsp_lower_flat(lw, pwsp_lower_value(lw, op->src[1]));
    uint32_t dst = pwsp_lower_flat(lw, pwsp_lower_result(lw, op, op->src[1]));
    pwsp_list_scalar left = pwsp_lower_scalar(lw->body, op->src[0]);
    if (op->kind == PWSP_KOP_DIV) {
        pwsp_insn_emit(lw, PTOISA_TSDIV, dst, src, 0, 0)->scalar = left;
    } else {
        pwsp_insn_emit_scalar(lw, PTOISA_TMULS, dst, src, -1);
        pwsp_insn_emit(lw, PTOISA_TADDS, dst, dst, 0, 0)->scalar = left;
    }
}

void pwsp_lower_binary(pwsp_lowering *lw, const pwsp_kop *op) {
    if (pwsp_lower_is_scalar(lw, op, 0)) {
        pwsp_lower_left_scalar(lw, op);
        return;
    }
    pwsp_binary_ops ops = pwsp_binary_ops_of(op->kind);
    const pwsp_kop *x = &lw->body->ops[op->src[0]], *y = &lw->body->ops[op->src[1]];
    uint32_t left = pwsp_lower_value(lw, op->src[0]), right = pwsp_lower_value(lw, op->src[1]);
    uint32_t dst = pwsp_lower_result(lw, op, op->src[0]);
    // Views are made from the last operand to the first, each by a statement: of a call's arguments
    // some compilers take the last first, and tile numbers are printed, hashed and emitted.
    if (pwsp_lower_is_scalar(lw, op, 1)) {
        left = pwsp_lower_flat(lw, left);
        pwsp_insn_emit(lw, ops.scalar, pwsp_lower_flat(lw, dst), left, 0, 0)->scalar =
            pwsp_lower_scalar(lw->body, op->src[1]);
        return;
    }
    bool is_same = x->rows == y->rows && x->cols == y->cols;
    bool is_row = (y->cols == 1 && y->rows == x->rows) || (y->rows == 1 && y->cols == x->rows);
    if (is_same || (x->cols == 1 && is_row)) {
        right = pwsp_lower_flat(lw, right);
        left = pwsp_lower_flat(lw, left);
        pwsp_insn_emit(lw, ops.tile, pwsp_lower_flat(lw, dst), left, right, 0);
    } else if (is_row) {
        pwsp_insn_emit(lw, ops.row, dst, left, pwsp_lower_column(lw, right), 0);
    } else if (x->cols == 1) {  // a column and one value: the row that the column is, and a column
        right = pwsp_lower_column(lw, right);
        left = pwsp_lower_flat(lw, left);
        pwsp_insn_emit(lw, ops.row, pwsp_lower_flat(lw, dst), left, right, 0);
    } else {
        pwsp_insn_emit(lw, ops.col, dst, left, pwsp_lower_flat(lw, right), 0);
    }
}

// -- along rows and columns -----------------------------------------------------------------------

void pwsp_lower_reduce(pwsp_lowering *lw, const pwsp_kop *op) {
    static const uint8_t ops[] = {PTOISA_TROWSUM, PTOISA_TROWMAX, PTOISA_TROWMIN, PTOISA_TROWSUM,
                                  PTOISA_TCOLSUM, PTOISA_TCOLMAX, PTOISA_TCOLMIN};
    ptoisa_op insn_op = (ptoisa_op)ops[op->kind - PWSP_KOP_ROWSUM];
    uint32_t src = pwsp_lower_value(lw, op->src[0]);
    bool is_row = op->kind <= PWSP_KOP_ROWMEAN;
    uint8_t dtype = lw->list->tiles[src].dtype;
    bool is_column = lw->list->tiles[src].layout == PTOISA_COL_MAJOR;
    if (is_row && is_column) {  // one column: each value is its own sum, mean and extreme
        uint32_t to = pwsp_lower_flat(lw, pwsp_lower_result(lw, op, 0));
        pwsp_insn_emit(lw, dtype == op->dtype ? PTOISA_TMOV : PTOISA_TCVT, to,
                       pwsp_lower_flat(lw, src), 0, 0);
        return;
    }
    if (is_row && dtype != op->dtype) {  // the device reduces to the source's type
        uint32_t wide = pwsp_lower_like(lw, src, op->dtype);
        pwsp_insn *cvt = pwsp_insn_emit(lw, PTOISA_TCVT, wide, src, 0, 0);
        cvt->is_implied = true;
        src = wide;
    }
    uint32_t dst = pwsp_lower_result(lw, op, 0);
    if (is_column) {
        // A column: all in one row that is summed along.
        src = pwsp_lower_flat(lw, src);
        insn_op = insn_op == PTOISA_TCOLSUM   ? PTOISA_TROWSUM
                  : insn_op == PTOISA_TCOLMAX ? PTOISA_TROWMAX
                                              : PTOISA_TROWMIN;
        is_row = true;
    }
    uint32_t tmp = is_row ? pwsp_lower_like(lw, src, op->dtype) : 0;
    pwsp_insn_emit(lw, insn_op, dst, src, 0, 0)->tmp = tmp;
    if (op->kind == PWSP_KOP_ROWMEAN) {
        uint32_t flat = pwsp_lower_flat(lw, dst);
        pwsp_insn *mean = pwsp_insn_emit_scalar(lw, PTOISA_TDIVS, flat, flat, 1);
        mean->scalar.cols_of = src;
    }
}

void pwsp_lower_broadcast(pwsp_lowering *lw, const pwsp_kop *op) {
    uint32_t vector = pwsp_lower_value(lw, op->src[1]);
    uint32_t dst = pwsp_lower_result(lw, op, 0);
    bool is_row = op->kind == PWSP_KOP_ROW_BROADCAST;
    if (op->cols == 1) {  // a value per row is the result itself; one value goes to all of a row
        uint32_t flat = pwsp_lower_flat(lw, dst);
        if (is_row) {
            pwsp_insn_emit(lw, PTOISA_TMOV, flat, pwsp_lower_flat(lw, vector), 0, 0);
        } else {
            pwsp_insn_emit(lw, PTOISA_TROWEXPAND, flat, pwsp_lower_column(lw, vector), 0, 0);
        }
    } else if (is_row) {
        pwsp_insn_emit(lw, PTOISA_TROWEXPAND, dst, pwsp_lower_column(lw, vector), 0, 0);
    } else {
        pwsp_insn_emit(lw, PTOISA_TCOLEXPAND, dst, pwsp_lower_flat(lw, vector), 0, 0);
    }
}

// -- functions ------------------------------------------------------------------------------------

static uint32_t pwsp_function_tmp(pwsp_lowering *lw, uint32_t like) {
    return pwsp_lower_like(lw, like, lw->list->tiles[like].dtype);
}

static void pwsp_function_1(pwsp_lowering *lw, ptoisa_op op, uint32_t dst, uint32_t src) {
    pwsp_insn_emit(lw, op, dst, src, 0, 0);
}

static void pwsp_function_2(pwsp_lowering *lw, ptoisa_op op, uint32_t dst, uint32_t x, uint32_t y) {
    pwsp_insn_emit(lw, op, dst, x, y, 0);
}

// dst = 1 / (1 + exp(t)), t is overwritten.
static void pwsp_function_logistic(pwsp_lowering *lw, uint32_t dst, uint32_t t) {
    pwsp_function_1(lw, PTOISA_TEXP, t, t);
    pwsp_insn_emit_scalar(lw, PTOISA_TADDS, t, t, 1);
    pwsp_function_1(lw, PTOISA_TRECIP, dst, t);
}

// tanh x = 2 / (1 + exp(-2 x)) - 1.
static void pwsp_function_tanh(pwsp_lowering *lw, uint32_t dst, uint32_t src) {
    uint32_t t = pwsp_function_tmp(lw, src);
    pwsp_insn_emit_scalar(lw, PTOISA_TMULS, t, src, -2);
    pwsp_function_logistic(lw, dst, t);
    pwsp_insn_emit_scalar(lw, PTOISA_TMULS, dst, dst, 2);
    pwsp_insn_emit_scalar(lw, PTOISA_TADDS, dst, dst, -1);
}

// x / (1 + exp(-factor x)): silu; and with a polynomial in the exponent gelu, whose tanh form
// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) is x / (1 + exp(-2 sqrt(2 / pi) (...))).
static void pwsp_function_gate(pwsp_lowering *lw, uint32_t dst, uint32_t src, bool is_gelu) {
    uint32_t t = pwsp_function_tmp(lw, src), u = pwsp_function_tmp(lw, src);
    if (is_gelu) {
        pwsp_function_2(lw, PTOISA_TMUL, t, src, src);
        pwsp_insn_emit_scalar(lw, PTOISA_TMULS, t, t, -2 * 0.79788456080286536 * 0.044715);
        pwsp_insn_emit_scalar(lw, PTOISA_TADDS, t, t, -2 * 0.79788456080286536);
        pwsp_function_2(lw, PTOISA_TMUL, t, t, src);
    } else {
        pwsp_insn_emit_scalar(lw, PTOISA_TMULS, t, src, -1);
    }
    pwsp_function_logistic(lw, u, t);
    pwsp_function_2(lw, PTOISA_TMUL, dst, src, u);
}

// dst = the integer nearest to src, or below it, as a float; whole is an i32 tile.
static void pwsp_function_whole(pwsp_lowering *lw, uint32_t dst, uint32_t src, uint32_t whole,
                                ptoisa_round round) {
    pwsp_insn_emit(lw, PTOISA_TCVT, whole, src, 0, 0)->mode = (uint8_t)round;
    pwsp_insn_emit(lw, PTOISA_TCVT, dst, whole, 0, 0)->mode = PTOISA_CAST_RINT;
}

// sin x = (-1)^q sin r with q the integer nearest to x / pi and r = x - q pi; cos x the same with
// q the integer nearest to x / pi + 1/2, and r = x - (q - 1/2) pi. pi is subtracted in three parts,
// the first two with 11 bits, so that their products with q below 2^13 are exact. sin r on
// [-pi/2, pi/2] is an odd polynomial of degree 11, interpolated at Chebyshev nodes, within 1.1e-10.
static void pwsp_function_sine(pwsp_lowering *lw, uint32_t dst, uint32_t src, bool is_cos) {
    static const double pi_parts[3] = {3.140625, 0.0009675025939941406, 1.5099578831723193e-07};
    static const double series[5] = {-2.4080190432969638e-08, 2.75364635625748e-06,
                                     -0.000198410865614788, 0.008333332768753579,
                                     -0.16666666663881236};
    uint32_t q = pwsp_function_tmp(lw, src), r = pwsp_function_tmp(lw, src);
    uint32_t t = pwsp_function_tmp(lw, src), whole = pwsp_lower_like(lw, src, PTOISA_I32);
    pwsp_insn_emit_scalar(lw, PTOISA_TMULS, q, src, 0.31830988618379067);
    if (is_cos) {
        pwsp_insn_emit_scalar(lw, PTOISA_TADDS, q, q, 0.5);
    }
    pwsp_function_whole(lw, q, q, whole, PTOISA_CAST_RINT);
    // The sign, 1 or -1: 1 - 2 (q - 2 floor(q / 2)).
    uint32_t sign = pwsp_function_tmp(lw, src);
    pwsp_insn_emit_scalar(lw, PTOISA_TMULS, t, q, 0.5);
    pwsp_function_whole(lw, t, t, whole, PTOISA_CAST_FLOOR);
    pwsp_insn_emit_scalar(lw, PTOISA_TMULS, t, t, 4);
    pwsp_insn_emit_scalar(lw, PTOISA_TMULS, sign, q, -2);
    pwsp_function_2(lw, PTOISA_TADD, sign, sign, t);
    pwsp_insn_emit_scalar(lw, PTOISA_TADDS, sign, sign, 1);
    if (is_cos) {
        pwsp_insn_emit_scalar(lw, PTOISA_TADDS, q, q, -0.5);
    }
    for (uint32_t i = 0; i < 3; i++) {
        pwsp_insn_emit_scalar(lw, PTOISA_TMULS, t, q, pi_parts[i]);
        pwsp_function_2(lw, PTOISA_TSUB, r, i == 0 ? src : r, t);
    }
    pwsp_function_2(lw, PTOISA_TMUL, t, r, r);
    pwsp_insn_emit_scalar(lw, PTOISA_TMULS, q, t, series[0]);
    for (uint32_t i = 1; i < 5; i++) {
        pwsp_insn_emit_scalar(lw, PTOISA_TADDS, q, q, series[i]);
        pwsp_function_2(lw, PTOISA_TMUL, q, q, t);
    }
    pwsp_function_2(lw, PTOISA_TMUL, q, q, r);
    pwsp_function_2(lw, PTOISA_TADD, r, r, q);
    pwsp_function_2(lw, PTOISA_TMUL, dst, r, sign);
}

void pwsp_lower_function(pwsp_lowering *lw, pwsp_kop_kind kind, uint32_t dst, uint32_t src) {
    switch (kind) {
    case PWSP_KOP_EXP: pwsp_function_1(lw, PTOISA_TEXP, dst, src); break;
    case PWSP_KOP_LOG: pwsp_function_1(lw, PTOISA_TLOG, dst, src); break;
    case PWSP_KOP_SQRT: pwsp_function_1(lw, PTOISA_TSQRT, dst, src); break;
    case PWSP_KOP_RSQRT: pwsp_function_1(lw, PTOISA_TRSQRT, dst, src); break;
    case PWSP_KOP_RECIP: pwsp_function_1(lw, PTOISA_TRECIP, dst, src); break;
    case PWSP_KOP_RELU: pwsp_function_1(lw, PTOISA_TRELU, dst, src); break;
    case PWSP_KOP_NEG: pwsp_function_1(lw, PTOISA_TNEG, dst, src); break;
    case PWSP_KOP_ABS: pwsp_function_1(lw, PTOISA_TABS, dst, src); break;
    case PWSP_KOP_TANH: pwsp_function_tanh(lw, dst, src); break;
    case PWSP_KOP_SIGMOID: {
        uint32_t t = pwsp_function_tmp(lw, src);
        pwsp_insn_emit_scalar(lw, PTOISA_TMULS, t, src, -1);
        pwsp_function_logistic(lw, dst, t);
        break;
    }
    case PWSP_KOP_SILU: pwsp_function_gate(lw, dst, src, false); break;
    case PWSP_KOP_GELU: pwsp_function_gate(lw, dst, src, true); break;
    case PWSP_KOP_SIN: pwsp_function_sine(lw, dst, src, false); break;
    default: pwsp_function_sine(lw, dst, src, true); break;
    }
}

// Is the operation one instruction?
static bool pwsp_unary_is_plain(uint8_t kind) {
    return kind != PWSP_KOP_TANH && kind != PWSP_KOP_SIGMOID && kind != PWSP_KOP_SIN &&
           kind != PWSP_KOP_COS && kind != PWSP_KOP_GELU && kind != PWSP_KOP_SILU;
}

void pwsp_lower_unary(pwsp_lowering *lw, const pwsp_kop *op) {
    pwsp_kop_kind kind = (pwsp_kop_kind)op->kind;
    uint32_t src = pwsp_lower_value(lw, op->src[0]);
    uint8_t dtype = lw->list->tiles[src].dtype;
    // bf16 has no instructions of its own on A2/A3, and functions are computed in f32.
    bool is_wide = dtype == PTOISA_BF16 || (dtype == PTOISA_F16 && !pwsp_unary_is_plain(op->kind));
    // TRSQRT and TRECIP may not write over their source.
    bool is_apart = kind == PWSP_KOP_RSQRT || kind == PWSP_KOP_RECIP;
    uint32_t dst = pwsp_lower_flat(lw, pwsp_lower_result(lw, op, is_apart ? 0 : op->src[0]));
    src = pwsp_lower_flat(lw, src);
    if (!is_wide) {
        pwsp_lower_function(lw, kind, dst, src);
        return;
    }
    uint32_t wide = pwsp_lower_like(lw, src, PTOISA_F32),
             out = pwsp_lower_like(lw, src, PTOISA_F32);
    pwsp_insn_emit(lw, PTOISA_TCVT, wide, src, 0, 0);
    pwsp_lower_function(lw, kind, out, wide);
    pwsp_insn_emit(lw, PTOISA_TCVT, dst, out, 0, 0)->mode = PTOISA_CAST_RINT;
}
