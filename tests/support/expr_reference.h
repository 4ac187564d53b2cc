// Tests of scalar expressions: what every operator means (operator_reference.h), and evaluating an expression
// by a run.

#ifndef PTOWSP_EXPR_REFERENCE_H
#define PTOWSP_EXPR_REFERENCE_H

#include "operator_reference.h"

enum { VALUE_SLOT = 9 };  // where evaluators put values

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
} fixture;

static inline void fixture_make(fixture *f) {
    assert_ok(ptowsp_context_create(NULL, &f->context));
    assert_ok(ptowsp_module_create(f->context, NULL, &f->m));
}

static inline void fixture_free(fixture *f) {
    ptowsp_module_destroy(f->m);
    ptowsp_context_destroy(f->context);
}

static inline void fixture_renew(fixture *f) {
    fixture_free(f);
    fixture_make(f);
}

static inline void module_error_is(const fixture *f, ptowsp_status status, const char *text) {
    ptowsp_error error = ptowsp_module_error(f->m);
    assert_string_equal(error.text, text);
    assert_int_equal(error.status, status);
}

static inline const char *printed(ptowsp_expr expr) {
    static char text[200000];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_expr_print(expr, ptowsp_output_to_buffer(&buffer));
    assert_true(buffer.length < sizeof text);
    return text;
}

// A run of a workload that does nothing but put an expression's value into a slot.
typedef struct evaluator {
    ptowsp_program *program;
    ptowsp_run *run;
} evaluator;

// A run of the module as it is.
static inline evaluator evaluator_of(const fixture *f) {
    evaluator e;
    test_ok(f->context, ptowsp_program_create(f->context, f->m, NULL, &e.program));
    assert_ok(ptowsp_run_create(f->context, e.program, &e.run));
    return e;
}

static inline evaluator evaluator_make(const fixture *f, ptowsp_expr expr) {
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_slot_set_make(f->m, VALUE_SLOT, expr);
    }
    return evaluator_of(f);
}

static inline void evaluator_free(const evaluator *e) {
    ptowsp_run_destroy(e->run);
    ptowsp_program_destroy(e->program);
}

static inline uint64_t evaluator_value(const evaluator *e) {
    assert_ok(ptowsp_run_execute(e->run, NULL));
    return ptowsp_run_slot(e->run, VALUE_SLOT);
}

// -- meaning --------------------------------------------------------------------------------------

// In the order of ptowsp_expr_kind.
// clang-format off
typedef enum op {
    ADD, SUB, MUL, DIV, REM, MIN, MAX, BITAND, BITXOR, BITOR, SHL, SHR,  // two integers
    EQ, NE,                  // two of any type: bool
    LT, LE, GT, GE,          // two integers: bool
    AND, OR,                 // two bools
    NEG, BITNOT,             // an integer
    NOT,                     // a bool
    TO_I64, TO_U64, TO_BOOL, // anything
    SELECT,                  // a bool and two of any type
    OP_COUNT
} op;
// clang-format on

static inline ptowsp_expr to_i64(ptowsp_expr a) {
    return ptowsp_cast(a, PTOWSP_TYPE_I64);
}

static inline ptowsp_expr to_u64(ptowsp_expr a) {
    return ptowsp_cast(a, PTOWSP_TYPE_U64);
}

static inline ptowsp_expr to_bool(ptowsp_expr a) {
    return ptowsp_cast(a, PTOWSP_TYPE_BOOL);
}

static const struct op_row {
    const char *name;
    ptowsp_expr (*binary)(ptowsp_expr a, ptowsp_expr b);
    ptowsp_expr (*unary)(ptowsp_expr a);
} ops[OP_COUNT] = {{"add", ptowsp_add, NULL},       {"sub", ptowsp_sub, NULL},
                   {"mul", ptowsp_mul, NULL},       {"div", ptowsp_div, NULL},
                   {"rem", ptowsp_rem, NULL},       {"min", ptowsp_min, NULL},
                   {"max", ptowsp_max, NULL},       {"bitand", ptowsp_bitand, NULL},
                   {"bitxor", ptowsp_bitxor, NULL}, {"bitor", ptowsp_bitor, NULL},
                   {"shl", ptowsp_shl, NULL},       {"shr", ptowsp_shr, NULL},
                   {"eq", ptowsp_eq, NULL},         {"ne", ptowsp_ne, NULL},
                   {"lt", ptowsp_lt, NULL},         {"le", ptowsp_le, NULL},
                   {"gt", ptowsp_gt, NULL},         {"ge", ptowsp_ge, NULL},
                   {"and", ptowsp_and, NULL},       {"or", ptowsp_or, NULL},
                   {"neg", NULL, ptowsp_neg},       {"bitnot", NULL, ptowsp_bitnot},
                   {"not", NULL, ptowsp_not},       {"to_i64", NULL, to_i64},
                   {"to_u64", NULL, to_u64},        {"to_bool", NULL, to_bool},
                   {"select", NULL, NULL}};

static inline int arity(op o) {
    return o == SELECT ? 3 : ops[o].binary ? 2 : 1;
}

// The type of the result; NONE if the operands are not taken.
static inline ptowsp_type result_type(op o, ptowsp_type a, ptowsp_type b, ptowsp_type c) {
    bool is_integer = a == PTOWSP_TYPE_I64 || a == PTOWSP_TYPE_U64;
    if (o <= SHR || (LT <= o && o <= GE)) {
        ptowsp_type result = o <= SHR ? a : PTOWSP_TYPE_BOOL;
        return is_integer && a == b ? result : PTOWSP_TYPE_NONE;
    }
    switch ((int)o) {
    case EQ:
    case NE: return a == b ? PTOWSP_TYPE_BOOL : PTOWSP_TYPE_NONE;
    case AND:
    case OR: return a == PTOWSP_TYPE_BOOL && b == a ? a : PTOWSP_TYPE_NONE;
    case NEG:
    case BITNOT: return is_integer ? a : PTOWSP_TYPE_NONE;
    case NOT: return a == PTOWSP_TYPE_BOOL ? a : PTOWSP_TYPE_NONE;
    case TO_I64: return PTOWSP_TYPE_I64;
    case TO_U64: return PTOWSP_TYPE_U64;
    case TO_BOOL: return PTOWSP_TYPE_BOOL;
    default: return a == PTOWSP_TYPE_BOOL && b == c ? b : PTOWSP_TYPE_NONE;
    }
}

// The value of an operator over operands of type `type` (not of SELECT).
static inline uint64_t meaning(op o, ptowsp_type type, uint64_t cell_a, uint64_t cell_b) {
    return operator_value((ptowsp_expr_kind)(PTOWSP_EXPR_ADD + o), type == PTOWSP_TYPE_I64, cell_a,
                          cell_b);
}

static inline ptowsp_expr literal(ptowsp_module *m, ptowsp_type type, uint64_t cell) {
    return type == PTOWSP_TYPE_I64   ? ptowsp_i64(m, (int64_t)cell)
           : type == PTOWSP_TYPE_U64 ? ptowsp_u64(m, cell)
                                     : ptowsp_bool(m, cell != 0);
}

static inline const char *literal_text(ptowsp_type type, uint64_t cell) {
    static char text[32];
    if (type == PTOWSP_TYPE_I64) {
        snprintf(text, sizeof text, "%lld", (long long)cell);
    } else if (type == PTOWSP_TYPE_U64) {
        snprintf(text, sizeof text, "%lluu", (unsigned long long)cell);
    } else {
        snprintf(text, sizeof text, "%s", cell ? "true" : "false");
    }
    return text;
}

// Something that is known at run time only: where 0, 1, 2 is a slot, a symbol, an array.
static inline ptowsp_expr unknown(ptowsp_module *m, ptowsp_type type, uint32_t slot, int where) {
    static const char names[3][2][3] = {{"s0", "s1"}, {"s0", "s1"}, {"a0", "a1"}};
    const char *name = names[where][slot];
    ptowsp_expr zero = ptowsp_i64(m, 0);
    switch (type) {
    case PTOWSP_TYPE_I64:
        return where == 0   ? ptowsp_slot(m, slot, PTOWSP_TYPE_I64)
               : where == 1 ? ptowsp_cast(ptowsp_symbol(m, name), PTOWSP_TYPE_I64)
                            : ptowsp_array_at(m, name, PTOWSP_I64, zero);
    case PTOWSP_TYPE_U64:
        return where == 0   ? ptowsp_slot(m, slot, PTOWSP_TYPE_U64)
               : where == 1 ? ptowsp_symbol(m, name)
                            : ptowsp_array_at(m, name, PTOWSP_U64, zero);
    default:
        return where == 0   ? ptowsp_slot(m, slot, PTOWSP_TYPE_BOOL)
               : where == 1 ? ptowsp_cast(ptowsp_symbol(m, name), PTOWSP_TYPE_BOOL)
                            : ptowsp_array_at(m, name, PTOWSP_BOOL, zero);
    }
}

// clang-format off
static const uint64_t values[] = {
    0, 1, 2, 3, 7, 63, 64, 65, (uint64_t)-1, (uint64_t)-2, (uint64_t)-7, (uint64_t)-64,
    (uint64_t)INT64_MIN, (uint64_t)INT64_MIN + 1, INT64_MAX, INT64_MAX - 1, UINT64_C(1) << 32,
    UINT64_C(0x123456789abcdef)};
// clang-format on
enum { VALUE_COUNT = COUNT_OF(values) };

// A test with a module.
#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

#endif
