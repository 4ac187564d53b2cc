// The operations of tile kernels: the operands of each, and the shape, type and valid sizes of its
// result. Nothing is computed or lowered here.
//
// All have the same form (builder.h): find the body, check the operands in their order, describe
// the result.

#include "builder.h"

#include <inttypes.h>

// -- constants ------------------------------------------------------------------------------------

ptowsp_value ptowsp_tile_const(ptowsp_body *body, double value) {
    pwsp_builder b = pwsp_builder_begin(body, PWSP_KOP_CONST);
    b.op.value = value;
    return pwsp_builder_end(&b);
}

ptowsp_value ptowsp_tile_full(ptowsp_body *body, ptowsp_dtype dtype, int64_t rows, int64_t cols,
                              double value) {
    pwsp_builder b = pwsp_builder_begin(body, PWSP_KOP_FULL);
    if (b.body &&
        (ptowsp_dtype_size(dtype) == 0 || ptowsp_dtype_size(dtype) > 4 || dtype == PTOWSP_BOOL)) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED, "%s is no type of tiles",
                          ptowsp_dtype_name(dtype));
    }
    pwsp_builder_make(&b, dtype, rows, cols);
    b.op.value = value;
    return pwsp_builder_end(&b);
}

ptowsp_value ptowsp_tile_iota(ptowsp_body *body, ptowsp_dtype dtype, int64_t cols, double start) {
    pwsp_builder b = pwsp_builder_begin(body, PWSP_KOP_IOTA);
    if (b.body && dtype != PTOWSP_I16 && dtype != PTOWSP_U16 && dtype != PTOWSP_I32 &&
        dtype != PTOWSP_U32) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED, "%s is not i16, u16, i32 or u32",
                          ptowsp_dtype_name(dtype));
    }
    pwsp_builder_make(&b, dtype, 1, cols);
    b.op.value = start;
    return pwsp_builder_end(&b);
}

// -- parameters -----------------------------------------------------------------------------------

ptowsp_value ptowsp_tile_load(ptowsp_value param) {
    pwsp_builder b = pwsp_builder_begin(param.body, PWSP_KOP_LOAD);
    const pwsp_kop *op = pwsp_builder_tile(&b, param, PWSP_DTYPES_ANY);
    if (op && op->kind != PWSP_KOP_PARAM) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "its operand is no parameter");
    } else if (op) {
        pwsp_builder_shape(&b, op, op->dtype);
    }
    return pwsp_builder_end(&b);
}

// Can a value of one type be stored as another?
static bool pwsp_store_fits(uint8_t from, uint8_t to) {
    bool is_narrowing = from == PTOWSP_F32 && (to == PTOWSP_F16 || to == PTOWSP_BF16);
    bool is_bits =
        (from == PTOWSP_U32 && to == PTOWSP_I32) || (from == PTOWSP_I32 && to == PTOWSP_U32);
    return from == to || is_narrowing || is_bits;
}

// Where to store: NULL is the whole parameter.
typedef struct pwsp_store_at {
    ptowsp_value row, col;
} pwsp_store_at;

// Does the value fit the parameter, or a window of it?
static void pwsp_store_shape(pwsp_builder *b, const pwsp_kop *to, const pwsp_kop *from,
                             const pwsp_store_at *at) {
    const char *name = b->body->tiles[to->param - 1].name;
    if (at ? from->rows > to->rows || from->cols > to->cols
           : from->rows != to->rows || from->cols != to->cols) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "%u x %u into %s of %u x %u", from->rows,
                          from->cols, name, to->rows, to->cols);
    } else if (!at && b->body->loop) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS,
                          "%s is stored as a whole in a loop; see ptowsp_tile_store_at", name);
    } else if (at && pwsp_builder_offset(b, at->row, to->rows - from->rows, &b->op.row,
                                         &b->op.row_loop)) {
        pwsp_builder_offset(b, at->col, to->cols - from->cols, &b->op.col, &b->op.col_loop);
    }
}

static void pwsp_store(ptowsp_value param, ptowsp_value value, const pwsp_store_at *at,
                       pwsp_kop_kind kind) {
    pwsp_builder b = pwsp_builder_begin(pwsp_body_of(param, value), kind);
    b.name = at ? "store_at" : b.name;
    const pwsp_kop *to = pwsp_builder_value(&b, param);
    if (!to) {
        return;
    }
    if (to->kind != PWSP_KOP_PARAM) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "its destination is no parameter");
        return;
    }
    pwsp_body_param *tile = &b.body->tiles[to->param - 1];
    if (tile->direction == PTOWSP_IN) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "%s is an in parameter", tile->name);
        return;
    }
    if (tile->is_stored && !(at && tile->is_in_parts)) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "%s is stored twice", tile->name);
        return;
    }
    const pwsp_kop *from = pwsp_builder_tile(&b, value, PWSP_DTYPES_ANY);
    if (!from) {
        return;
    }
    pwsp_store_shape(&b, to, from, at);
    if (!b.body) {
        return;
    }
    if (!pwsp_store_fits(from->dtype, to->dtype)) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "%s into %s of %s",
                          ptowsp_dtype_name((ptowsp_dtype)from->dtype), tile->name,
                          ptowsp_dtype_name((ptowsp_dtype)to->dtype));
        return;
    }
    if (kind == PWSP_KOP_STORE_ADD && !((PTOISA_SET(PTOWSP_F16) | PTOISA_SET(PTOWSP_F32) |
                                         PTOISA_SET(PTOWSP_I16) | PTOISA_SET(PTOWSP_I32)) >>
                                            to->dtype &
                                        1)) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED, "%s is %s", tile->name,
                          ptowsp_dtype_name((ptowsp_dtype)to->dtype));
        return;
    }
    tile->is_stored = true;
    tile->is_in_parts = at != NULL;
    b.op.param = to->param;
    b.op.src[0] = b.op.src[1];  // the value; the destination is the parameter
    b.op.src[1] = b.op.src[2] = 0;
    pwsp_builder_end(&b);
}

void ptowsp_tile_store(ptowsp_value param, ptowsp_value value) {
    pwsp_store(param, value, NULL, PWSP_KOP_STORE);
}

void ptowsp_tile_store_add(ptowsp_value param, ptowsp_value value) {
    pwsp_store(param, value, NULL, PWSP_KOP_STORE_ADD);
}

void ptowsp_tile_store_at(ptowsp_value param, ptowsp_value row, ptowsp_value col,
                          ptowsp_value value) {
    pwsp_store_at at = {row, col};
    pwsp_store(param, value, &at, PWSP_KOP_STORE);
}

// -- element by element ---------------------------------------------------------------------------

// Can y be the right operand of x?
static bool pwsp_binary_fits(const pwsp_kop *x, const pwsp_kop *y) {
    return pwsp_kop_is_scalar(y) || (x->rows == y->rows && x->cols == y->cols) ||
           pwsp_kop_is_vector(y, x->rows) || pwsp_kop_is_vector(y, x->cols);
}

// The conversions that TCVT has: pairs of types.
static bool pwsp_cvt_exists(uint32_t from, uint32_t to) {
    uint32_t f32 = PTOISA_SET(PTOWSP_F16) | PTOISA_SET(PTOWSP_BF16) | PTOISA_SET(PTOWSP_I32) |
                   PTOISA_SET(PTOWSP_I16) | PTOISA_SET(PTOWSP_F32);
    switch (from) {
    case PTOWSP_F32: return f32 >> to & 1;
    case PTOWSP_F16:
        return (PTOISA_SET(PTOWSP_F32) | PTOISA_SET(PTOWSP_I32) | PTOISA_SET(PTOWSP_I16) |
                PTOISA_SET(PTOWSP_I8) | PTOISA_SET(PTOWSP_U8)) >>
                   to &
               1;
    case PTOWSP_BF16: return to == PTOWSP_F32 || to == PTOWSP_I32;
    case PTOWSP_I16: return to == PTOWSP_F32 || to == PTOWSP_F16;
    case PTOWSP_I32: return to == PTOWSP_F32 || to == PTOWSP_F16 || to == PTOWSP_I16;
    case PTOWSP_U8:
    case PTOWSP_I8: return to == PTOWSP_F16;
    default: return false;
    }
}

// Of two types of PWSP_DTYPES_BIN, the greater is better to compute in.
static uint32_t pwsp_binary_rank(uint32_t dtype) {
    return dtype == PTOWSP_F32    ? 4
           : dtype == PTOWSP_F16  ? 3
           : dtype == PTOWSP_BF16 ? 2
           : dtype == PTOWSP_I16  ? 1
                                  : 0;
}

// Refuses tiles of two types, and names the conversion that makes them alike: for bf16 with a type
// other than f32 none exists, so both go to f32.
static void pwsp_binary_mixed(pwsp_builder *b, uint32_t left, uint32_t right) {
    PTOWSP_ASSERT(pwsp_binary_rank(left) != pwsp_binary_rank(right));
    bool is_left_kept = pwsp_binary_rank(left) > pwsp_binary_rank(right);
    uint32_t kept = is_left_kept ? left : right;
    const char *names[2] = {ptowsp_dtype_name((ptowsp_dtype)left),
                            ptowsp_dtype_name((ptowsp_dtype)right)};
    if (pwsp_cvt_exists(is_left_kept ? right : left, kept)) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS,
                          "%s and %s; ptowsp_tile_cvt makes operand %d %s", names[0], names[1],
                          is_left_kept ? 2 : 1, ptowsp_dtype_name((ptowsp_dtype)kept));
    } else {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "%s and %s; ptowsp_tile_cvt makes both f32",
                          names[0], names[1]);
    }
}

static ptowsp_value pwsp_binary(ptowsp_value x, ptowsp_value y, pwsp_kop_kind kind) {
    pwsp_builder b = pwsp_builder_begin(pwsp_body_of(x, y), kind);
    const pwsp_kop *left = pwsp_builder_value(&b, x), *right = pwsp_builder_value(&b, y);
    if (!left || !right) {
        return pwsp_builder_end(&b);
    }
    if (pwsp_kop_is_const(left) && pwsp_kop_is_const(right)) {
        return pwsp_builder_end(&b);  // a constant, when folded
    }
    const pwsp_kop *operands[2] = {left, right};
    for (uint32_t i = 0; i < 2; i++) {
        b.src_count = i + 1;
        if (operands[i]->rows == 0 && !pwsp_kop_is_scalar(operands[i])) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "operand %u is no value", i + 1);
            return pwsp_builder_end(&b);
        }
        if (operands[i]->rows && !pwsp_builder_check(&b, operands[i], PWSP_DTYPES_BIN)) {
            return pwsp_builder_end(&b);
        }
    }
    bool is_commutative = kind == PWSP_KOP_ADD || kind == PWSP_KOP_MUL || kind == PWSP_KOP_MAX ||
                          kind == PWSP_KOP_MIN;
    if (pwsp_kop_is_scalar(left) && pwsp_kop_is_scalar(right)) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "neither operand is a tile");
    } else if (pwsp_kop_is_scalar(left) && !is_commutative && !pwsp_kop_is_const(left)) {
        PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED, "its left operand is a scalar parameter");
    } else if (!pwsp_kop_is_scalar(left) && !pwsp_kop_is_scalar(right) &&
               left->dtype != right->dtype) {
        pwsp_binary_mixed(&b, left->dtype, right->dtype);
    } else if (pwsp_kop_is_scalar(left)) {
        pwsp_builder_shape(&b, right, right->dtype);
    } else if (pwsp_binary_fits(left, right)) {
        pwsp_builder_shape(&b, left, left->dtype);
        if (left->rows == right->rows && left->cols == right->cols) {
            pwsp_builder_narrow(&b, right);
        }
    } else if (is_commutative && pwsp_binary_fits(right, left)) {
        pwsp_builder_shape(&b, right, right->dtype);
    } else {
        const bool is_swapped = pwsp_binary_fits(right, left);
        PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "%u x %u and %u x %u%s", left->rows,
                          left->cols, right->rows, right->cols,
                          is_swapped ? ": only the second operand may be a vector" : "");
    }
    return pwsp_builder_end(&b);
}

#define PWSP_TILE_BINARY(name, kind)                                                               \
    ptowsp_value ptowsp_tile_##name(ptowsp_value x, ptowsp_value y) {                              \
        return pwsp_binary(x, y, PWSP_KOP_##kind);                                                 \
    }
PWSP_TILE_BINARY(add, ADD)
PWSP_TILE_BINARY(sub, SUB)
PWSP_TILE_BINARY(mul, MUL)
PWSP_TILE_BINARY(div, DIV)
PWSP_TILE_BINARY(max, MAX)
PWSP_TILE_BINARY(min, MIN)
#undef PWSP_TILE_BINARY

static ptowsp_value pwsp_unary(ptowsp_value x, pwsp_kop_kind kind, uint32_t dtypes) {
    pwsp_builder b = pwsp_builder_begin(x.body, kind);
    const pwsp_kop *op = pwsp_builder_tile(&b, x, dtypes);
    if (op) {
        pwsp_builder_shape(&b, op, op->dtype);
    }
    return pwsp_builder_end(&b);
}

#define PWSP_TILE_UNARY(name, kind, dtypes)                                                        \
    ptowsp_value ptowsp_tile_##name(ptowsp_value x) {                                              \
        return pwsp_unary(x, PWSP_KOP_##kind, dtypes);                                             \
    }
PWSP_TILE_UNARY(exp, EXP, PWSP_DTYPES_FLOAT)
PWSP_TILE_UNARY(log, LOG, PWSP_DTYPES_FLOAT)
PWSP_TILE_UNARY(sqrt, SQRT, PWSP_DTYPES_FLOAT)
PWSP_TILE_UNARY(rsqrt, RSQRT, PWSP_DTYPES_FLOAT)
PWSP_TILE_UNARY(recip, RECIP, PWSP_DTYPES_FLOAT)
PWSP_TILE_UNARY(tanh, TANH, PWSP_DTYPES_FLOAT)
PWSP_TILE_UNARY(sigmoid, SIGMOID, PWSP_DTYPES_FLOAT)
PWSP_TILE_UNARY(sin, SIN, PWSP_DTYPES_FLOAT)
PWSP_TILE_UNARY(cos, COS, PWSP_DTYPES_FLOAT)
PWSP_TILE_UNARY(relu, RELU, PWSP_DTYPES_FLOAT | PTOISA_SET(PTOWSP_I32))
PWSP_TILE_UNARY(gelu, GELU, PWSP_DTYPES_FLOAT)
PWSP_TILE_UNARY(silu, SILU, PWSP_DTYPES_FLOAT)
PWSP_TILE_UNARY(neg, NEG, PWSP_DTYPES_FLOAT | PTOISA_SET(PTOWSP_I32))
PWSP_TILE_UNARY(abs, ABS, PWSP_DTYPES_FLOAT)
#undef PWSP_TILE_UNARY

// -- rows and columns -----------------------------------------------------------------------------

// Along rows f16 keeps its type, as on the device, unless is_wide. Means are f32, and so is bf16,
// which A2/A3 has no instruction for.
static ptowsp_value pwsp_reduce(ptowsp_value x, pwsp_kop_kind kind, bool is_row, bool is_wide) {
    pwsp_builder b = pwsp_builder_begin(x.body, kind);
    const pwsp_kop *op =
        pwsp_builder_tile(&b, x, kind == PWSP_KOP_ROWMEAN ? PWSP_DTYPES_FLOAT : PWSP_DTYPES_BIN);
    if (op) {
        bool is_f16 = op->dtype == PTOWSP_F16 && (is_wide || kind == PWSP_KOP_ROWMEAN);
        bool is_f32 = is_row && (is_f16 || op->dtype == PTOWSP_BF16);
        pwsp_builder_shape(&b, op, is_f32 ? (uint8_t)PTOWSP_F32 : op->dtype);
        if (is_row) {
            b.op.cols = 1;
            b.op.valid_cols = pwsp_valid_full(1);
        } else {
            b.op.rows = 1;
            b.op.valid_rows = pwsp_valid_full(1);
        }
    }
    return pwsp_builder_end(&b);
}

#define PWSP_TILE_REDUCE(name, kind, is_row)                                                       \
    ptowsp_value ptowsp_tile_##name(ptowsp_value x) {                                              \
        return pwsp_reduce(x, PWSP_KOP_##kind, is_row, false);                                     \
    }
PWSP_TILE_REDUCE(rowsum, ROWSUM, true)
PWSP_TILE_REDUCE(rowmax, ROWMAX, true)
PWSP_TILE_REDUCE(rowmin, ROWMIN, true)
PWSP_TILE_REDUCE(rowmean, ROWMEAN, true)
PWSP_TILE_REDUCE(colsum, COLSUM, false)
PWSP_TILE_REDUCE(colmax, COLMAX, false)
PWSP_TILE_REDUCE(colmin, COLMIN, false)
#undef PWSP_TILE_REDUCE

ptowsp_value ptowsp_tile_rowsum_f32(ptowsp_value x) {
    return pwsp_reduce(x, PWSP_KOP_ROWSUM, true, true);
}

static ptowsp_value pwsp_broadcast(ptowsp_value x, ptowsp_value vector, pwsp_kop_kind kind) {
    pwsp_builder b = pwsp_builder_begin(pwsp_body_of(x, vector), kind);
    const pwsp_kop *like = pwsp_builder_tile(&b, x, PWSP_DTYPES_ANY);
    const pwsp_kop *op = pwsp_builder_tile(&b, vector, PWSP_DTYPES_ANY);
    if (like && op) {
        uint32_t count = kind == PWSP_KOP_ROW_BROADCAST ? like->rows : like->cols;
        if (!pwsp_kop_is_vector(op, count)) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "%u x %u is no vector of %u values",
                              op->rows, op->cols, count);
        }
        pwsp_builder_shape(&b, like, op->dtype);
    }
    return pwsp_builder_end(&b);
}

ptowsp_value ptowsp_tile_row_broadcast(ptowsp_value x, ptowsp_value vector) {
    return pwsp_broadcast(x, vector, PWSP_KOP_ROW_BROADCAST);
}

ptowsp_value ptowsp_tile_col_broadcast(ptowsp_value x, ptowsp_value vector) {
    return pwsp_broadcast(x, vector, PWSP_KOP_COL_BROADCAST);
}

// -- matrix products ------------------------------------------------------------------------------

// Takes both factors; the result's type, or NONE with an error.
static ptowsp_dtype pwsp_builder_factors(pwsp_builder *b, ptowsp_value a, ptowsp_value c) {
    uint32_t dtypes = PWSP_DTYPES_FLOAT | PTOISA_SET(PTOWSP_I8);
    const pwsp_kop *left = pwsp_builder_tile(b, a, dtypes);
    const pwsp_kop *right = pwsp_builder_tile(b, c, dtypes);
    if (!left || !right) {
        return PTOWSP_DTYPE_NONE;
    }
    if (left->dtype != right->dtype) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "%s and %s",
                          ptowsp_dtype_name((ptowsp_dtype)left->dtype),
                          ptowsp_dtype_name((ptowsp_dtype)right->dtype));
        return PTOWSP_DTYPE_NONE;
    }
    if (left->cols != right->rows) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS,
                          "%u x %u times %u x %u: %u columns on the left, %u rows on the right",
                          left->rows, left->cols, right->rows, right->cols, left->cols,
                          right->rows);
        return PTOWSP_DTYPE_NONE;
    }
    if (left->rows > 4095 || left->cols > 4095 || right->cols > 4095) {
        PWSP_BUILDER_FAIL(b, PTOWSP_LIMIT_EXCEEDED, "m %u, k %u, n %u; they are 1 to 4095",
                          left->rows, left->cols, right->cols);
        return PTOWSP_DTYPE_NONE;
    }
    b->op.rows = left->rows;
    b->op.cols = right->cols;
    b->op.valid_rows = left->valid_rows;
    b->op.valid_cols = right->valid_cols;
    return left->dtype == PTOWSP_I8 ? PTOWSP_I32 : PTOWSP_F32;
}

ptowsp_value ptowsp_tile_matmul(ptowsp_value a, ptowsp_value b) {
    pwsp_builder builder = pwsp_builder_begin(pwsp_body_of(a, b), PWSP_KOP_MATMUL);
    builder.op.dtype = (uint8_t)pwsp_builder_factors(&builder, a, b);
    return pwsp_builder_end(&builder);
}

// matmul_acc and matmul_bias: a third operand of the result's type.
static ptowsp_value pwsp_matmul_with(ptowsp_value a, ptowsp_value b, ptowsp_value third,
                                     pwsp_kop_kind kind) {
    pwsp_builder builder = pwsp_builder_begin(a.body ? a.body : pwsp_body_of(b, third), kind);
    ptowsp_dtype dtype = pwsp_builder_factors(&builder, a, b);
    builder.op.dtype = (uint8_t)dtype;
    if (dtype == PTOWSP_DTYPE_NONE) {
        return pwsp_builder_end(&builder);
    }
    const pwsp_kop *op = pwsp_builder_tile(&builder, third, PTOISA_SET(dtype));
    uint32_t rows = kind == PWSP_KOP_MATMUL_ACC ? builder.op.rows : 1;
    if (op && (op->rows != rows || op->cols != builder.op.cols)) {
        PWSP_BUILDER_FAIL(&builder, PTOWSP_INVALID_PARAMS, "%s is %u x %u, not %u x %u",
                          kind == PWSP_KOP_MATMUL_ACC ? "acc" : "bias", op->rows, op->cols, rows,
                          builder.op.cols);
    }
    return pwsp_builder_end(&builder);
}

ptowsp_value ptowsp_tile_matmul_acc(ptowsp_value acc, ptowsp_value a, ptowsp_value b) {
    return pwsp_matmul_with(a, b, acc, PWSP_KOP_MATMUL_ACC);
}

ptowsp_value ptowsp_tile_matmul_bias(ptowsp_value a, ptowsp_value b, ptowsp_value bias) {
    return pwsp_matmul_with(a, b, bias, PWSP_KOP_MATMUL_BIAS);
}

// -- types and layout -----------------------------------------------------------------------------

ptowsp_value ptowsp_tile_cvt(ptowsp_value x, ptowsp_dtype dtype, ptowsp_round round) {
    pwsp_builder b = pwsp_builder_begin(x.body, PWSP_KOP_CVT);
    const pwsp_kop *op = pwsp_builder_tile(&b, x, PWSP_DTYPES_ANY);
    if (op) {
        if (ptowsp_dtype_size(dtype) == 0 ||
            (op->dtype != dtype && !pwsp_cvt_exists(op->dtype, dtype))) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED, "TCVT has no %s to %s",
                              ptowsp_dtype_name((ptowsp_dtype)op->dtype), ptowsp_dtype_name(dtype));
            return pwsp_builder_end(&b);
        }
        if ((uint32_t)round > PTOWSP_ROUND_TRUNC) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "%d is no rounding", (int)round);
        }
        pwsp_builder_shape(&b, op, (uint8_t)dtype);
        // TCVT would take the mode for bf16 and f32, too.
        b.op.mode = PWSP_DTYPES_FLOAT >> dtype & 1 ? (uint8_t)PTOISA_CAST_RINT
                                                   : (uint8_t)((int)round + (int)PTOISA_CAST_RINT);
    }
    return pwsp_builder_end(&b);
}

// Takes an f32 vector with a value for each row of x.
static void pwsp_builder_scale(pwsp_builder *b, const pwsp_kop *x, ptowsp_value scale) {
    if (x && x->cols == 1) {
        PWSP_BUILDER_FAIL(b, PTOWSP_UNSUPPORTED, "rows of one element");
        return;
    }
    const pwsp_kop *op = x ? pwsp_builder_tile(b, scale, PTOISA_SET(PTOWSP_F32)) : NULL;
    if (op && !pwsp_kop_is_vector(op, x->rows)) {
        PWSP_BUILDER_FAIL(b, PTOWSP_INVALID_PARAMS, "%u x %u is no vector of %u values", op->rows,
                          op->cols, x->rows);
    }
}

ptowsp_value ptowsp_tile_quantize(ptowsp_value x, ptowsp_value scale) {
    pwsp_builder b = pwsp_builder_begin(pwsp_body_of(x, scale), PWSP_KOP_QUANTIZE);
    const pwsp_kop *op = pwsp_builder_tile(&b, x, PTOISA_SET(PTOWSP_F32));
    pwsp_builder_scale(&b, op, scale);
    if (op) {
        pwsp_builder_shape(&b, op, PTOWSP_I8);
    }
    return pwsp_builder_end(&b);
}

ptowsp_value ptowsp_tile_dequantize(ptowsp_value x, ptowsp_value scale, ptowsp_value offset) {
    pwsp_builder b = pwsp_builder_begin(pwsp_body_of(x, scale), PWSP_KOP_DEQUANTIZE);
    const pwsp_kop *op = pwsp_builder_tile(&b, x, PTOISA_SET(PTOWSP_I8) | PTOISA_SET(PTOWSP_I16));
    pwsp_builder_scale(&b, op, scale);
    pwsp_builder_scale(&b, op, offset);
    if (op) {
        pwsp_builder_shape(&b, op, PTOWSP_F32);
    }
    return pwsp_builder_end(&b);
}

ptowsp_value ptowsp_tile_transpose(ptowsp_value x) {
    pwsp_builder b = pwsp_builder_begin(x.body, PWSP_KOP_TRANSPOSE);
    const pwsp_kop *op = pwsp_builder_tile(&b, x, PWSP_DTYPES_ANY);
    if (op) {
        pwsp_builder_shape(&b, op, op->dtype);
        b.op.rows = op->cols;
        b.op.cols = op->rows;
        b.op.valid_rows = op->valid_cols;
        b.op.valid_cols = op->valid_rows;
    }
    return pwsp_builder_end(&b);
}

ptowsp_value ptowsp_tile_slice(ptowsp_value x, int64_t row, int64_t col, int64_t rows,
                               int64_t cols) {
    pwsp_builder b = pwsp_builder_begin(x.body, PWSP_KOP_SLICE);
    const pwsp_kop *op = pwsp_builder_tile(&b, x, PWSP_DTYPES_ANY);
    if (op) {
        if (row < 0 || col < 0 || rows < 1 || cols < 1 || row > op->rows - rows ||
            col > op->cols - cols) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS,
                              "%" PRId64 " x %" PRId64 " from (%" PRId64 ", %" PRId64
                              ") of %u x %u",
                              rows, cols, row, col, op->rows, op->cols);
            return pwsp_builder_end(&b);
        }
        b.op.dtype = op->dtype;
        b.op.row = (uint32_t)row;
        b.op.col = (uint32_t)col;
        b.op.rows = (uint32_t)rows;
        b.op.cols = (uint32_t)cols;
        b.op.valid_rows = pwsp_valid_part(op->valid_rows, b.op.row, b.op.rows);
        b.op.valid_cols = pwsp_valid_part(op->valid_cols, b.op.col, b.op.cols);
    }
    return pwsp_builder_end(&b);
}

ptowsp_value ptowsp_tile_interleave(ptowsp_value x, ptowsp_value y) {
    pwsp_builder b = pwsp_builder_begin(pwsp_body_of(x, y), PWSP_KOP_INTERLEAVE);
    uint32_t dtypes = PWSP_DTYPES_BIN | PTOISA_SET(PTOWSP_U16) | PTOISA_SET(PTOWSP_U32);
    const pwsp_kop *even = pwsp_builder_tile(&b, x, dtypes);
    const pwsp_kop *odd = pwsp_builder_tile(&b, y, dtypes);
    if (even && odd && pwsp_builder_match(&b, even, odd)) {
        if (even->cols > PTOWSP_TILE_SIZE_MAX / 2) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_LIMIT_EXCEEDED, "2 x %u columns", even->cols);
        } else if (even->cols * ptowsp_dtype_size((ptowsp_dtype)even->dtype) % 32 != 0) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED,
                              "rows of %u %s are no whole blocks of 32 bytes", even->cols,
                              ptowsp_dtype_name((ptowsp_dtype)even->dtype));
        } else if (b.body->machine.family == PTOISA_A2A3) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_UNSUPPORTED,
                              "TINTERLEAVE of %s: %s (A2/A3) has no such instruction "
                              "(rule: element types)",
                              ptowsp_dtype_name((ptowsp_dtype)even->dtype), b.body->machine.name);
        }
        pwsp_builder_shape(&b, even, even->dtype);
        pwsp_builder_widen(&b, 2);
    }
    return pwsp_builder_end(&b);
}

ptowsp_value ptowsp_tile_deinterleave(ptowsp_value x, uint32_t part) {
    pwsp_builder b = pwsp_builder_begin(x.body, PWSP_KOP_DEINTERLEAVE);
    uint32_t dtypes = PWSP_DTYPES_BIN | PTOISA_SET(PTOWSP_U16) | PTOISA_SET(PTOWSP_U32);
    const pwsp_kop *op = pwsp_builder_tile(&b, x, dtypes);
    if (op) {
        if (part > 1 || op->cols % 2 != 0) {
            PWSP_BUILDER_FAIL(&b, PTOWSP_INVALID_PARAMS, "part %u of %u columns", part, op->cols);
        }
        pwsp_builder_shape(&b, op, op->dtype);
        b.op.col = part;
        b.op.cols = op->cols / 2;
        b.op.valid_cols.max = b.op.cols;
        if (b.op.valid_cols.param) {
            b.op.valid_cols.add += (int32_t)((1 - part) << b.op.valid_cols.shift);
            b.op.valid_cols.shift++;
        }
    }
    return pwsp_builder_end(&b);
}
