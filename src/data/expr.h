// Scalar expressions: operators, their types and meaning, trees of them, and printing.

#ifndef PWSP_EXPR_H
#define PWSP_EXPR_H

#include "../base/base.h"

// The operations of the machine that evaluates expressions, on 64-bit cells: name, result. bool is
// 0 or 1. Operations that trap or are undefined in C are defined here: see section 16 of the
// header.
// clang-format off
#define PWSP_OPCODES(OP)                                                                           \
    OP(ADD, a + b)                                                                                 \
    OP(SUB, a - b) OP(MUL, a *b) OP(DIV_I, pwsp_div_i64(a, b)) OP(DIV_U, b ? a / b : 0)            \
        OP(REM_I, pwsp_rem_i64(a, b)) OP(REM_U, b ? a % b : 0)                                     \
            OP(MIN_I, (int64_t)a < (int64_t)b ? a : b) OP(MIN_U, a < b ? a : b)                    \
                OP(MAX_I, (int64_t)a > (int64_t)b ? a : b) OP(MAX_U, a > b ? a : b) OP(AND, a &b)  \
                    OP(OR, a | b) OP(XOR, a ^ b) OP(SHL, a << (b & 63))                            \
                        OP(SHR_I, pwsp_shr_i64(a, b)) OP(SHR_U, a >> (b & 63)) OP(EQ, a == b)      \
                            OP(NE, a != b) OP(LT_I, (int64_t)a < (int64_t)b) OP(LT_U, a < b)       \
                                OP(LE_I, (int64_t)a <= (int64_t)b) OP(LE_U, a <= b)                \
                                    OP(GT_I, (int64_t)a > (int64_t)b) OP(GT_U, a > b)              \
                                        OP(GE_I, (int64_t)a >= (int64_t)b) OP(GE_U, a >= b)        \
                                            OP(NEG, UINT64_C(0) - a) OP(BITNOT, ~a) OP(NOT, a ^ 1) \
                                                OP(MOVE, a) OP(BOOL, a != 0) OP(SELECT, a ? b : c)

// Operators of expressions: name, text, precedence as in C (0: written as a function), operands,
// and the operations for i64 (or bool) and u64.
#define PWSP_OPERATORS(OP)                                                                         \
    OP(ADD, "+", 10, INTEGERS, ADD, ADD)                                                           \
    OP(SUB, "-", 10, INTEGERS, SUB, SUB) OP(MUL, "*", 11, INTEGERS, MUL, MUL)                      \
        OP(DIV, "/", 11, INTEGERS, DIV_I, DIV_U) OP(REM, "%", 11, INTEGERS, REM_I, REM_U)          \
            OP(MIN, "min", 0, INTEGERS, MIN_I, MIN_U) OP(MAX, "max", 0, INTEGERS, MAX_I, MAX_U)    \
                OP(BITAND, "&", 6, INTEGERS, AND, AND) OP(BITXOR, "^", 5, INTEGERS, XOR, XOR)      \
                    OP(BITOR, "|", 4, INTEGERS, OR, OR) OP(SHL, "<<", 9, INTEGERS, SHL, SHL) OP(   \
                        SHR, ">>", 9, INTEGERS, SHR_I, SHR_U) OP(EQ, "==", 7, EQUALS, EQ, EQ)      \
                        OP(NE, "!=", 7, EQUALS, NE, NE) OP(LT, "<", 8, ORDERED, LT_I, LT_U) OP(    \
                            LE, "<=", 8, ORDERED, LE_I, LE_U) OP(GT, ">", 8, ORDERED, GT_I, GT_U)  \
                            OP(GE, ">=", 8, ORDERED, GE_I, GE_U) OP(AND, "&&", 3, BOOLS, AND, AND) \
                                OP(OR, "||", 2, BOOLS, OR, OR) OP(NEG, "-", 12, INTEGER, NEG, NEG) \
                                    OP(BITNOT, "~", 12, INTEGER, BITNOT, BITNOT)                   \
                                        OP(NOT, "!", 12, BOOL, NOT, NOT)                           \
                                            OP(TO_I64, "i64", 0, ANY, MOVE, MOVE)                  \
                                                OP(TO_U64, "u64", 0, ANY, MOVE, MOVE)              \
                                                    OP(TO_BOOL, "bool", 0, ANY, BOOL, BOOL)        \
                                                        OP(SELECT, "?", 1, SELECT, SELECT, SELECT)

typedef enum pwsp_opcode {
#define PWSP_OPCODE_ENUM(name, result) PWSP_OPCODE_##name,
    PWSP_OPCODES(PWSP_OPCODE_ENUM)
#undef PWSP_OPCODE_ENUM
        PWSP_OPCODE_READ,  // out = array c [a]
    PWSP_OPCODE_SKIP,      // continue at instruction c
    PWSP_OPCODE_SKIP_0,    // continue at instruction c if a is 0
    PWSP_OPCODE_SKIP_1     // ... if a is not 0
} pwsp_opcode;

typedef enum pwsp_expr_op {
    PWSP_EXPR_NONE,
    PWSP_EXPR_CONST,     // value
    PWSP_EXPR_VARIABLE,  // a: the variable's index
    PWSP_EXPR_ENTRY,     // a: the variable of a sparse loop
    PWSP_EXPR_SIZE,      // a: the axis
    PWSP_EXPR_SYMBOL,    // a: the symbol
    PWSP_EXPR_ARRAY,     // a: the index expression, b: the array
    PWSP_EXPR_SLOT_U64,  // a: the slot
    PWSP_EXPR_SLOT_I64,
    PWSP_EXPR_SLOT_BOOL,
    PWSP_EXPR_TASK_VARIABLE,  // name
    PWSP_EXPR_TASK_ARG,       // a: which
    PWSP_EXPR_TASK_TAG,       // name
#define PWSP_EXPR_ENUM(name, text, precedence, operands, op_i64, op_u64) PWSP_EXPR_##name,
    PWSP_OPERATORS(PWSP_EXPR_ENUM)
#undef PWSP_EXPR_ENUM
        PWSP_EXPR_OP_COUNT
} pwsp_expr_op;
// clang-format on

typedef enum pwsp_operands {
    PWSP_OPERANDS_INTEGER,   // one integer
    PWSP_OPERANDS_BOOL,      // one bool
    PWSP_OPERANDS_ANY,       // one of any type
    PWSP_OPERANDS_INTEGERS,  // two integers of one type, which the result has
    PWSP_OPERANDS_EQUALS,    // two of one type; the result is bool
    PWSP_OPERANDS_ORDERED,   // two integers of one type; the result is bool
    PWSP_OPERANDS_BOOLS,     // two bools
    PWSP_OPERANDS_SELECT     // a bool and two of one type
} pwsp_operands;

typedef struct pwsp_expr_node {
    uint8_t op;         // pwsp_expr_op
    uint8_t type;       // ptowsp_type
    uint8_t is_faulty;  // may read an array somewhere: not to be evaluated without need
    uint8_t depth;      // of operators and reads in one another; 0 for a leaf
    uint32_t size;      // operators and leaves of the tree
    uint32_t a, b, c;
    const char *name;  // of a leaf
    uint64_t value;    // of a constant; of the read of an array, whether it is a plan's field
} pwsp_expr_node;

// Expressions of a module; operands come before their uses. Index 0 means none.
typedef struct pwsp_exprs {
    pwsp_expr_node *nodes;
    uint64_t count, capacity;
} pwsp_exprs;

// Each adds a node and returns its index, or 0 when memory is out.
PWSP_INTERNAL uint32_t pwsp_exprs_add(pwsp_exprs *exprs, const pwsp_memory *memory,
                                      const pwsp_expr_node *node);
PWSP_INTERNAL uint32_t pwsp_exprs_const(pwsp_exprs *exprs, const pwsp_memory *memory,
                                        ptowsp_type type, uint64_t value);

// Adds operands a, b, c (0 for none) under an operator, and folds constants. Requires that
// pwsp_expr_result accepted them and that depth and size are within the limits.
PWSP_INTERNAL uint32_t pwsp_exprs_operator(pwsp_exprs *exprs, const pwsp_memory *memory,
                                           pwsp_expr_op op, uint32_t a, uint32_t b, uint32_t c);

// The type of an operator over operands of these types, NONE if it does not take them.
PWSP_INTERNAL ptowsp_type pwsp_expr_result(pwsp_expr_op op, ptowsp_type a, ptowsp_type b,
                                           ptowsp_type c);

PWSP_INTERNAL pwsp_opcode pwsp_expr_opcode(pwsp_expr_op op, ptowsp_type operand_type);
PWSP_INTERNAL const char *pwsp_type_name(ptowsp_type type);
PWSP_INTERNAL void pwsp_exprs_print(const pwsp_exprs *exprs, uint32_t id, ptowsp_output text);

// A name as texts of modules have it: a word as it is, anything else in quotes. The text right
// before it is part of the word.
typedef struct pwsp_quoted_name {
    char text[PTOWSP_NAME_MAX + 8];
} pwsp_quoted_name;

PWSP_INTERNAL pwsp_quoted_name pwsp_quoted_behind(const char *before, const char *name);

PWSP_INLINE pwsp_quoted_name pwsp_quoted(const char *name) {
    return pwsp_quoted_behind("", name);
}

PWSP_INLINE uint64_t pwsp_div_i64(uint64_t a, uint64_t b) {
    if (b == 0) {
        return 0;
    }
    return b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b);  // b is -1: wraps
}

PWSP_INLINE uint64_t pwsp_rem_i64(uint64_t a, uint64_t b) {
    return b == 0 || b == UINT64_MAX ? 0 : (uint64_t)((int64_t)a % (int64_t)b);
}

// The sign bit is copied; on unsigned values, as >> of a negative one is the compiler's choice.
PWSP_INLINE uint64_t pwsp_shr_i64(uint64_t a, uint64_t b) {
    uint64_t sign = 0 - (a >> 63);
    return ((a ^ sign) >> (b & 63)) ^ sign;
}

#endif
