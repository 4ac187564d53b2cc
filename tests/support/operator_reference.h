// The slow reference of the operators of expressions (section 16 of the header): in 128 bits where the
// library wraps.

#ifndef OPERATOR_REFERENCE_H
#define OPERATOR_REFERENCE_H

#include "test.h"
#include "wide.h"

// The value of an operator over two cells of i64, or else of u64 or bool; b does not matter to those of one.
static inline uint64_t operator_value(ptowsp_expr_kind kind, bool is_signed, uint64_t cell_a,
                                      uint64_t cell_b) {
    const wide a = is_signed ? wide_of_i64((int64_t)cell_a) : wide_of_u64(cell_a);
    const wide b = is_signed ? wide_of_i64((int64_t)cell_b) : wide_of_u64(cell_b);
    const unsigned count = (unsigned)(cell_b % 64);
    const int order = wide_compare(a, b);
    switch ((int)kind) {
    case PTOWSP_EXPR_ADD: return wide_add(a, b).low;
    case PTOWSP_EXPR_SUB: return wide_sub(a, b).low;
    case PTOWSP_EXPR_MUL: return wide_mul(a, b).low;
    case PTOWSP_EXPR_DIV: return cell_b == 0 ? 0 : wide_div(a, b).low;
    case PTOWSP_EXPR_REM: return cell_b == 0 ? 0 : wide_rem(a, b).low;
    case PTOWSP_EXPR_MIN: return order < 0 ? cell_a : cell_b;
    case PTOWSP_EXPR_MAX: return order > 0 ? cell_a : cell_b;
    case PTOWSP_EXPR_BITAND: return cell_a & cell_b;
    case PTOWSP_EXPR_BITOR: return cell_a | cell_b;
    case PTOWSP_EXPR_BITXOR: return cell_a ^ cell_b;
    case PTOWSP_EXPR_SHL: return cell_a << count;
    case PTOWSP_EXPR_SHR: return wide_shift_right(a, count).low;
    case PTOWSP_EXPR_LT: return order < 0;
    case PTOWSP_EXPR_LE: return order <= 0;
    case PTOWSP_EXPR_GT: return order > 0;
    case PTOWSP_EXPR_GE: return order >= 0;
    case PTOWSP_EXPR_EQ: return order == 0;
    case PTOWSP_EXPR_NE: return order != 0;
    case PTOWSP_EXPR_AND: return cell_a && cell_b;
    case PTOWSP_EXPR_OR: return cell_a || cell_b;
    case PTOWSP_EXPR_NEG: return wide_neg(a).low;
    case PTOWSP_EXPR_BITNOT: return wide_not(a).low;
    case PTOWSP_EXPR_NOT: return !cell_a;
    case PTOWSP_EXPR_TO_I64:
    case PTOWSP_EXPR_TO_U64: return cell_a;
    case PTOWSP_EXPR_TO_BOOL: return cell_a != 0;
    default: fail_msg("%d is no operator", (int)kind); return 0;
    }
}

#endif
