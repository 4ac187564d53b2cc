// Expressions as C++ text. They keep their source form, because numbers of wsp_number.h have the
// operators of C++ with their own arithmetic; && || ?: evaluate their right operands only when
// needed, as in C++.
//
// Parentheses stand where C++ needs them, and where compilers warn without them: && in ||, bit
// operators and shifts beside others, comparisons in comparisons.

#include "npu_expand.h"

#include <inttypes.h>

// The precedence of operators. Operators of one rank associate from the left.
typedef enum npu_rank {
    NPU_RANK_SELECT,
    NPU_RANK_OR,
    NPU_RANK_AND,
    NPU_RANK_BITOR,
    NPU_RANK_BITXOR,
    NPU_RANK_BITAND,
    NPU_RANK_COMPARE,
    NPU_RANK_SHIFT,
    NPU_RANK_SUM,
    NPU_RANK_PRODUCT,
    NPU_RANK_UNARY,
    NPU_RANK_LEAF  // and anything that looks like a call
} npu_rank;

enum { NPU_BRACKETS_MAX = 100 };  // nesting depth; compilers may refuse 256

// Operators by kind, with rank and text; operators of rank LEAF are calls.
// clang-format off
#define NPU_OPERATORS(OPERATOR)                                                                    \
    OPERATOR(SELECT, SELECT, "?")     OPERATOR(OR, OR, " || ")          OPERATOR(AND, AND, " && ")  \
    OPERATOR(BITOR, BITOR, " | ")     OPERATOR(BITXOR, BITXOR, " ^ ")   OPERATOR(SHL, SHIFT, " << ") \
    OPERATOR(BITAND, BITAND, " & ")   OPERATOR(SHR, SHIFT, " >> ")      OPERATOR(ADD, SUM, " + ")   \
    OPERATOR(EQ, COMPARE, " == ")     OPERATOR(NE, COMPARE, " != ")     OPERATOR(SUB, SUM, " - ")   \
    OPERATOR(LT, COMPARE, " < ")      OPERATOR(LE, COMPARE, " <= ")     OPERATOR(NEG, UNARY, "-")   \
    OPERATOR(GT, COMPARE, " > ")      OPERATOR(GE, COMPARE, " >= ")     OPERATOR(NOT, UNARY, "!")   \
    OPERATOR(MUL, PRODUCT, " * ")     OPERATOR(DIV, PRODUCT, " / ")     OPERATOR(REM, PRODUCT, " % ") \
    OPERATOR(BITNOT, UNARY, "~")      OPERATOR(MIN, LEAF, "min")        OPERATOR(MAX, LEAF, "max")  \
    OPERATOR(TO_I64, LEAF, "to_i64")  OPERATOR(TO_U64, LEAF, "to_u64")  OPERATOR(TO_BOOL, LEAF, "to_bool")
// clang-format on

static npu_rank npu_expr_rank(const ptowsp_expr_info *e) {
    switch ((int)e->kind) {
#define NPU_OPERATOR_RANK(kind, rank, text)                                                        \
    case PTOWSP_EXPR_##kind: return NPU_RANK_##rank;
        NPU_OPERATORS(NPU_OPERATOR_RANK)
#undef NPU_OPERATOR_RANK
    case PTOWSP_EXPR_CONST:
        return e->type == PTOWSP_TYPE_I64 && (int64_t)e->value < 0 ? NPU_RANK_UNARY : NPU_RANK_LEAF;
    default: return NPU_RANK_LEAF;
    }
}

static const char *npu_expr_operator(ptowsp_expr_kind kind) {
    switch ((int)kind) {
#define NPU_OPERATOR_TEXT(kind, rank, text)                                                        \
    case PTOWSP_EXPR_##kind: return text;
        NPU_OPERATORS(NPU_OPERATOR_TEXT)
#undef NPU_OPERATOR_TEXT
    default: return "";
    }
}

// Does operand `place` (0, 1, 2) of an operator stand in parentheses?
static bool npu_expr_has_parens(npu_rank rank, const ptowsp_expr_info *operand, uint32_t place) {
    npu_rank inner = npu_expr_rank(operand);
    if (inner == NPU_RANK_LEAF) {
        return false;
    }
    switch (rank) {
    case NPU_RANK_UNARY:  // - -x would be --x
        return inner != NPU_RANK_UNARY || operand->kind == PTOWSP_EXPR_NEG ||
               operand->kind == PTOWSP_EXPR_CONST;
    case NPU_RANK_PRODUCT:
    case NPU_RANK_SUM: return inner < rank || (inner == rank && place > 0);
    case NPU_RANK_SHIFT: return inner != NPU_RANK_UNARY;
    case NPU_RANK_COMPARE: return inner < NPU_RANK_SUM || operand->kind == PTOWSP_EXPR_NOT;
    case NPU_RANK_BITAND:
    case NPU_RANK_BITXOR:
    case NPU_RANK_BITOR: return inner != NPU_RANK_UNARY && (inner != rank || place > 0);
    case NPU_RANK_AND:
    case NPU_RANK_OR:
        return inner != NPU_RANK_UNARY && inner != NPU_RANK_COMPARE && (inner != rank || place > 0);
    default: return inner == NPU_RANK_SELECT && place < 2;  // of a choice; not arguments of calls
    }
}

NPU_INTERNAL void npu_add_u64(npu_expand *x, uint64_t value) {
    npu_add(x, "%" PRIu64 "%s", value, value > INT32_MAX ? "u" : "");
}

static void npu_add_literal(npu_expand *x, const ptowsp_expr_info *e, npu_literal literal) {
    if (e->type == PTOWSP_TYPE_BOOL) {
        npu_add(x, e->value ? "true" : "false");
        return;
    }
    bool is_typed = literal == NPU_LITERAL_TYPED;
    npu_add(x, "%s", is_typed ? npu_type(e->type) : "");
    npu_add(x, "%s", is_typed ? "(" : "");
    if (e->type == PTOWSP_TYPE_I64) {
        npu_print_i64(&x->line, (int64_t)e->value);
    } else {
        npu_add_u64(x, e->value);
    }
    npu_add(x, "%s", is_typed ? ")" : "");
}

static void npu_add_node(npu_expand *x, uint32_t expr, npu_literal literal);

static void npu_add_operand(npu_expand *x, npu_rank rank, uint32_t expr, uint32_t place,
                            npu_literal literal) {
    const ptowsp_expr_info *e = &x->tables->exprs[expr];
    bool has_parens = npu_expr_has_parens(rank, e, place);
    npu_add(x, "%s", has_parens ? "(" : "");
    npu_add_node(x, expr, literal);
    npu_add(x, "%s", has_parens ? ")" : "");
}

static bool npu_is_literal(const npu_expand *x, uint32_t expr) {
    return x->tables->exprs[expr].kind == PTOWSP_EXPR_CONST;
}

// Is it a bool variable compared with itself? Compilers warn about that, so its value is printed,
// true or false.
static bool npu_expr_is_tautology(const npu_expand *x, const ptowsp_expr_info *e) {
    if (e->kind != PTOWSP_EXPR_EQ && e->kind != PTOWSP_EXPR_NE) {
        return false;
    }
    const ptowsp_expr_info *a = &x->tables->exprs[e->a];
    const ptowsp_expr_info *b = &x->tables->exprs[e->b];
    return a->kind == PTOWSP_EXPR_VARIABLE && b->kind == PTOWSP_EXPR_VARIABLE &&
           a->type == PTOWSP_TYPE_BOOL && a->id == b->id;
}

static void npu_add_operator(npu_expand *x, const ptowsp_expr_info *e) {
    npu_rank rank = npu_expr_rank(e);
    const char *name = npu_expr_operator(e->kind);
    if (e->kind == PTOWSP_EXPR_SELECT) {
        bool are_literals = npu_is_literal(x, e->b) && npu_is_literal(x, e->c);
        npu_literal literal = are_literals ? NPU_LITERAL_TYPED : NPU_LITERAL_PLAIN;
        npu_add_operand(x, rank, e->a, 0, NPU_LITERAL_PLAIN);
        npu_add(x, " ? ");
        npu_add_operand(x, rank, e->b, 1, literal);
        npu_add(x, " : ");
        npu_add_operand(x, rank, e->c, 2, literal);
    } else if (rank == NPU_RANK_LEAF) {  // a call
        bool are_literals = npu_is_literal(x, e->a) && (!e->b || npu_is_literal(x, e->b));
        npu_literal literal = are_literals ? NPU_LITERAL_TYPED : NPU_LITERAL_PLAIN;
        npu_add(x, "%s(", name);
        npu_add_node(x, e->a, literal);
        if (e->b) {
            npu_add(x, ", ");
            npu_add_node(x, e->b, literal);
        }
        npu_add(x, ")");
    } else if (rank == NPU_RANK_UNARY) {
        npu_add(x, "%s", name);
        npu_add_operand(x, rank, e->a, 0, NPU_LITERAL_TYPED);
    } else if (npu_expr_is_tautology(x, e)) {
        npu_add(x, e->kind == PTOWSP_EXPR_EQ ? "true" : "false");
    } else {
        npu_literal literal = npu_is_literal(x, e->a) && npu_is_literal(x, e->b)
                                  ? NPU_LITERAL_TYPED
                                  : NPU_LITERAL_PLAIN;
        npu_add_operand(x, rank, e->a, 0, literal);
        npu_add(x, "%s", name);
        npu_add_operand(x, rank, e->b, 1, literal);
    }
}

static void npu_add_node(npu_expand *x, uint32_t expr, npu_literal literal) {
    for (uint32_t i = 0; i < x->part_count; i++) {
        if (x->parts[i].expr == expr) {
            npu_add(x, "part_%u()", x->parts[i].number);
            return;
        }
    }
    const ptowsp_expr_info *e = &x->tables->exprs[expr];
    switch (e->kind) {
    case PTOWSP_EXPR_CONST: npu_add_literal(x, e, literal); break;
    case PTOWSP_EXPR_VARIABLE:
        npu_add_variable(x, e->id);
        npu_add(x, "%s", x->is_entry[e->id] ? ".index" : "");
        break;
    case PTOWSP_EXPR_ENTRY:
        npu_add_variable(x, e->id);
        npu_add(x, ".entry");
        break;
    // The size of a dense axis is a literal.
    case PTOWSP_EXPR_SIZE:
        npu_add(x, "%s.size(AXIS_%s)", x->walker, npu_name(x->emitter, NPU_AXIS, e->id));
        break;
    case PTOWSP_EXPR_SYMBOL:
        npu_add(x, "%s.symbol(SYMBOL_%s)", x->walker, npu_name(x->emitter, NPU_SYMBOL, e->id));
        break;
    case PTOWSP_EXPR_ARRAY:
        npu_add(x, "%s.array_%s(ARRAY_%s, ", x->walker, npu_type(e->type),
                npu_name(x->emitter, NPU_ARRAY, e->id));
        npu_add_node(x, e->a, NPU_LITERAL_PLAIN);
        npu_add(x, ")");
        break;
    case PTOWSP_EXPR_SLOT: npu_add(x, "%s.slot_%s(%u)", x->walker, npu_type(e->type), e->id); break;
    case PTOWSP_EXPR_TASK_ARG: npu_add(x, "task.arg(%u)", e->id); break;
    default: npu_add_operator(x, e); break;
    }
}

NPU_INTERNAL void npu_add_expr(npu_expand *x, uint32_t expr, npu_literal literal) {
    if (!expr) {
        npu_add(x, "0");
        return;
    }
    npu_add_node(x, expr, literal);
}

NPU_INTERNAL void npu_add_exprs(npu_expand *x, const uint32_t *exprs, uint32_t count,
                                npu_literal literal) {
    for (uint32_t i = 0; i < count; i++) {
        npu_add(x, "%s", i ? ", " : "");
        npu_add_expr(x, exprs[i], literal);
    }
}

NPU_INTERNAL bool npu_expr_has(const npu_expand *x, uint32_t expr, ptowsp_expr_kind kind) {
    if (!expr) {
        return false;
    }
    const ptowsp_expr_info *e = &x->tables->exprs[expr];
    return e->kind == kind || npu_expr_has(x, e->a, kind) || npu_expr_has(x, e->b, kind) ||
           npu_expr_has(x, e->c, kind);
}

// -- deep expressions -----------------------------------------------------------------------------

// The maximum nesting of brackets in an expression, once its parts have been printed.
static uint32_t npu_expr_brackets(npu_expand *x, uint32_t expr) {
    if (!expr) {
        return 0;
    }
    for (uint32_t i = 0; i < x->part_count; i++) {
        if (x->parts[i].expr == expr) {
            return 1;
        }
    }
    const ptowsp_expr_info *e = &x->tables->exprs[expr];
    uint32_t operands[3] = {e->a, e->b, e->c}, most = 0;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t brackets = npu_expr_brackets(x, operands[i]);
        most = brackets > most ? brackets : most;
    }
    if (most < NPU_BRACKETS_MAX) {
        return most + 1;
    }
    const npu_part part = {expr, ++x->function_count};
    npu_add(x, "const auto part_%u = [&] { return ", part.number);
    npu_add_node(x, expr, NPU_LITERAL_TYPED);
    npu_line(x, "; };");
    if (NPU_ROOM(x->parts, x->part_capacity, (uint64_t)x->part_count + 1)) {
        x->parts[x->part_count++] = part;
    } else {
        x->is_out_of_memory = true;
    }
    return 1;
}

NPU_INTERNAL void npu_prepare_expr(npu_expand *x, uint32_t expr) {
    npu_expr_brackets(x, expr);
}
