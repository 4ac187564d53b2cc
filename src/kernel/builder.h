// How operations are built: find the body, check the operands in their order, describe the result.
// The first mistake becomes the body's error, and no value is returned.

#ifndef PWSP_BUILDER_H
#define PWSP_BUILDER_H

#include "body.h"

#define PWSP_DTYPES_FLOAT                                                                          \
    (PTOISA_SET(PTOWSP_F16) | PTOISA_SET(PTOWSP_BF16) | PTOISA_SET(PTOWSP_F32))
#define PWSP_DTYPES_BIN (PWSP_DTYPES_FLOAT | PTOISA_SET(PTOWSP_I16) | PTOISA_SET(PTOWSP_I32))
#define PWSP_DTYPES_ANY 0xffffffffu

// An operation being built, and its body (NULL without one, or if it has failed).
typedef struct pwsp_builder {
    ptowsp_body *body;
    const char *name;
    pwsp_kop op;
    uint32_t src_count;
} pwsp_builder;

// Records an error; the builder then builds nothing.
#define PWSP_BUILDER_FAIL(b, status, ...)                                                          \
    (pwsp_body_fail((b)->body, status, (b)->name, __VA_ARGS__), (void)((b)->body = NULL))

PWSP_INTERNAL pwsp_builder pwsp_builder_begin(ptowsp_body *body, pwsp_kop_kind kind);

// Takes an operand of any kind: NULL with an error if it is not of this body.
PWSP_INTERNAL const pwsp_kop *pwsp_builder_value(pwsp_builder *b, ptowsp_value value);

// Can the last operand be read, and is it of one of the types?
PWSP_INTERNAL bool pwsp_builder_check(pwsp_builder *b, const pwsp_kop *op, uint32_t dtypes);

// Are two operands of one shape and type?
PWSP_INTERNAL bool pwsp_builder_match(pwsp_builder *b, const pwsp_kop *left, const pwsp_kop *right);

// Takes a tile operand of one of the types.
PWSP_INTERNAL const pwsp_kop *pwsp_builder_tile(pwsp_builder *b, ptowsp_value value,
                                                uint32_t dtypes);

// The result has the shape of `like`, and a type.
PWSP_INTERNAL void pwsp_builder_shape(pwsp_builder *b, const pwsp_kop *like, uint8_t dtype);

// Where the result is always full, another operand of its shape says how much of it is valid.
PWSP_INTERNAL void pwsp_builder_narrow(pwsp_builder *b, const pwsp_kop *other);

// The size of a tile that is made from nothing.
PWSP_INTERNAL void pwsp_builder_make(pwsp_builder *b, ptowsp_dtype dtype, int64_t rows,
                                     int64_t cols);

// The result has `times` the columns: 2 or 4.
PWSP_INTERNAL void pwsp_builder_widen(pwsp_builder *b, uint32_t times);

// Takes where a window begins, in one direction: a constant up to `room`, or the index of a loop,
// or nothing for 0. False with an error.
PWSP_INTERNAL bool pwsp_builder_offset(pwsp_builder *b, ptowsp_value at, uint32_t room,
                                       uint32_t *out_start, uint8_t *out_loop);

PWSP_INTERNAL ptowsp_value pwsp_builder_end(pwsp_builder *b);

// The first of the operands that has a body.
PWSP_INLINE ptowsp_body *pwsp_body_of(ptowsp_value x, ptowsp_value y) {
    return x.body ? x.body : y.body;
}

// A constant, or an operation of constants, which will be folded to one.
PWSP_INLINE bool pwsp_kop_is_const(const pwsp_kop *op) {
    return op->kind == PWSP_KOP_CONST ||
           (op->kind >= PWSP_KOP_ADD && op->kind <= PWSP_KOP_MIN && op->rows == 0);
}

PWSP_INLINE bool pwsp_kop_is_scalar(const pwsp_kop *op) {
    return op->kind == PWSP_KOP_SCALAR || pwsp_kop_is_const(op);
}

// Does `vector` give a value for each of `count` rows or columns?
PWSP_INLINE bool pwsp_kop_is_vector(const pwsp_kop *vector, uint32_t count) {
    return (vector->cols == 1 && vector->rows == count) ||
           (vector->rows == 1 && vector->cols == count);
}

#endif
