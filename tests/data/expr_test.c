// Scalar expressions: what every operator means, folded, compiled and in loops; which types are taken;
// limits. Other refusals are in cases/builder.case, which operands are looked at in
// cases/expressions.case, how expressions read in cases/expression_texts.case and, at random, in
// expr_text_test.c.

#include "expr_reference.h"

// -- operators ------------------------------------------------------------------------------------

// One operator over operands of one type that are in slots, symbols or arrays: all pairs of values.
static void check_operator(op o, ptowsp_type type, int where) {
    static uint64_t a, b;
    static uint8_t is_a, is_b;
    bool is_bool = type == PTOWSP_TYPE_BOOL;
    ptowsp_dtype dtype = is_bool ? PTOWSP_BOOL : type == PTOWSP_TYPE_I64 ? PTOWSP_I64 : PTOWSP_U64;
    fixture f;
    fixture_make(&f);
    ptowsp_expr first = unknown(f.m, type, 0, where), second = unknown(f.m, type, 1, where);
    ptowsp_expr expr = arity(o) == 2 ? ops[o].binary(first, second) : ops[o].unary(first);
    ptowsp_type result = result_type(o, type, type, PTOWSP_TYPE_NONE);
    assert_int_equal(ptowsp_expr_type(expr), result);
    evaluator e = evaluator_make(&f, expr);
    for (int i = 0; i < VALUE_COUNT; i++) {
        for (int j = 0; j < (arity(o) == 2 ? VALUE_COUNT : 1); j++) {
            a = values[i];
            b = values[j];
            if (where == 0) {  // a slot as a bool is "not 0"
                ptowsp_run_bind_slot(e.run, 0, a);
                ptowsp_run_bind_slot(e.run, 1, b);
            } else if (where == 1) {
                assert_ok(ptowsp_run_bind_symbol(e.run, "s0", a));
                ptowsp_run_bind_symbol(e.run, "s1", b);  // a unary operator does not use it
            } else {
                is_a = a != 0;
                is_b = b != 0;
                const void *data_a = is_bool ? (const void *)&is_a : &a;
                const void *data_b = is_bool ? (const void *)&is_b : &b;
                assert_ok(ptowsp_run_bind_array(e.run, "a0", dtype, data_a, 1));
                ptowsp_run_bind_array(e.run, "a1", dtype, data_b, 1);
            }
            uint64_t cell_a = is_bool ? a != 0 : a, cell_b = is_bool ? b != 0 : b;
            uint64_t expected = meaning(o, type, cell_a, cell_b);
            uint64_t value = evaluator_value(&e);
            if (value != expected) {
                fail_msg("%s of %s gives %llx, not %llx", ops[o].name, literal_text(type, cell_a),
                         (unsigned long long)value, (unsigned long long)expected);
            }
            ptowsp_expr x = literal(f.m, type, cell_a), y = literal(f.m, type, cell_b);
            ptowsp_expr folded = arity(o) == 2 ? ops[o].binary(x, y) : ops[o].unary(x);
            assert_string_equal(printed(folded), literal_text(result, expected));
        }
    }
    evaluator_free(&e);
    fixture_free(&f);
}

TEST(expr__operators_mean_the_same_folded_and_compiled) {
    for (int o = 0; o < SELECT; o++) {
        for (int type = PTOWSP_TYPE_BOOL; type <= PTOWSP_TYPE_U64; type++) {
            ptowsp_type t = (ptowsp_type)type;
            if (result_type((op)o, t, t, PTOWSP_TYPE_NONE) != PTOWSP_TYPE_NONE) {
                for (int where = 0; where < 3; where++) {
                    check_operator((op)o, t, where);
                }
            }
        }
    }
}

// -- loops ----------------------------------------------------------------------------------------

// Loops are evaluated in blocks of iterations. `all` covers all pairs of values, in several blocks.
enum { PAIRS = VALUE_COUNT * VALUE_COUNT };

static const uint64_t MIX = 31;

// hash = hash * 31 + a[i] op b[i], then hash * 31 + b[i] op s, or op s, over all i.
static void build_loop(ptowsp_module *m, op o, ptowsp_type type, ptowsp_dtype dtype,
                       uint32_t count) {
    const bool is_unary = arity(o) == 1;
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, "pairs", count)) {
            ptowsp_expr x = ptowsp_array_at(m, "a", dtype, i),
                        y = ptowsp_array_at(m, "b", dtype, i);
            ptowsp_expr s = ptowsp_cast(ptowsp_symbol(m, "s"), type);
            ptowsp_expr hash = ptowsp_slot(m, 1, PTOWSP_TYPE_U64);
            ptowsp_slot_set_make(m, 0, to_u64(is_unary ? ops[o].unary(x) : ops[o].binary(x, y)));
            ptowsp_slot_set_make(m, 2, to_u64(is_unary ? ops[o].unary(s) : ops[o].binary(y, s)));
            for (uint32_t slot = 0; slot <= 2; slot += 2) {
                hash = ptowsp_add(ptowsp_mul(hash, ptowsp_u64(m, MIX)),
                                  ptowsp_slot(m, slot, PTOWSP_TYPE_U64));
            }
            ptowsp_slot_set_make(m, 1, hash);
        }
    }
}

static void check_loop(op o, ptowsp_type type, const uint64_t *a, const uint64_t *b,
                       uint32_t count) {
    static uint8_t is_a[PAIRS], is_b[PAIRS];
    bool is_bool = type == PTOWSP_TYPE_BOOL, is_unary = arity(o) == 1;
    ptowsp_dtype dtype = is_bool ? PTOWSP_BOOL : type == PTOWSP_TYPE_I64 ? PTOWSP_I64 : PTOWSP_U64;
    const uint64_t fixed = is_bool ? 1 : values[VALUE_COUNT / 2];
    uint64_t expected = 0;
    fixture f;
    fixture_make(&f);
    build_loop(f.m, o, type, dtype, count);
    for (uint32_t i = 0; i < count; i++) {
        if (is_bool) {
            is_a[i] = a[i] != 0;
            is_b[i] = b[i] != 0;
        }
        const uint64_t x = is_bool ? is_a[i] : a[i], y = is_bool ? is_b[i] : b[i];
        expected = expected * MIX + meaning(o, type, x, y);
        expected =
            expected * MIX + (is_unary ? meaning(o, type, fixed, 0) : meaning(o, type, y, fixed));
    }
    evaluator e = evaluator_of(&f);
    const void *data_a = is_bool ? (const void *)is_a : a,
               *data_b = is_bool ? (const void *)is_b : b;
    assert_ok(ptowsp_run_bind_array(e.run, "a", dtype, data_a, count));
    assert_true(ptowsp_run_bind_array(e.run, "b", dtype, data_b, count) == PTOWSP_OK || is_unary);
    assert_ok(ptowsp_run_bind_symbol(e.run, "s", fixed));
    assert_ok(ptowsp_run_execute(e.run, NULL));
    if (ptowsp_run_slot(e.run, 1) != expected) {
        fail_msg("%s of %d: not what it means", ops[o].name, (int)type);
    }
    evaluator_free(&e);
    fixture_free(&f);
}

TEST(expr__operators_mean_the_same_in_loops) {
    static uint64_t a[PAIRS], b[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        a[i] = values[i / VALUE_COUNT];
        b[i] = values[i % VALUE_COUNT];
    }
    for (int o = 0; o < SELECT; o++) {
        for (int type = PTOWSP_TYPE_BOOL; type <= PTOWSP_TYPE_U64; type++) {
            ptowsp_type t = (ptowsp_type)type;
            if (result_type((op)o, t, t, PTOWSP_TYPE_NONE) != PTOWSP_TYPE_NONE) {
                check_loop((op)o, t, a, b, PAIRS);
            }
        }
    }
}

// Numbers of at most `bits` bits, most of them one off a multiple of their divisor, and in the last
// block of iterations one that is larger by one, or a divisor 0.
enum { QUOTIENTS = 8 * 128 };

static void quotients_random(uint64_t *a, uint64_t *b, ptowsp_type type, uint32_t bits,
                             bool has_zero, uint64_t *random) {
    const bool is_signed = type == PTOWSP_TYPE_I64;
    const int64_t most = (int64_t)1 << bits, least = is_signed ? -most : 0;
    for (int i = 0; i < QUOTIENTS; i++) {
        const int64_t divisor =
            (int64_t)(test_random(random) >> (test_random(random) % bits)) % most;
        int64_t number = (int64_t)(test_random(random) >> (test_random(random) % bits)) % most;
        number -= divisor ? number % divisor : 0;
        number += test_random_in(random, -1, 1);
        number = is_signed && test_random(random) % 2 ? -number : number;
        number = number < least ? least : number >= most ? most - 1 : number;
        b[i] = (uint64_t)(is_signed && test_random(random) % 2 ? -divisor : divisor);
        b[i] += b[i] == 0;
        a[i] = (uint64_t)number;
    }
    a[0] = (uint64_t)(most - 1);
    a[1] = (uint64_t)least;
    a[QUOTIENTS - 1] = (uint64_t)most;
    b[QUOTIENTS - 3] = has_zero ? 0 : (uint64_t)(most - 1);
}

// In loops, divisions of small numbers are not those of single ones.
TEST(expr__quotients_in_loops_are_exact_up_to_where_doubles_are) {
    static uint64_t a[QUOTIENTS], b[QUOTIENTS];
    uint64_t random = test_seed();
    for (uint32_t sample = 0; TEST_ROUNDS(sample, 12); sample++) {
        for (uint32_t k = 0; k < 4 * 6; k++) {
            const ptowsp_type type = k % 2 ? PTOWSP_TYPE_U64 : PTOWSP_TYPE_I64;
            quotients_random(a, b, type, 49 + k / 4, sample % 4 == 3, &random);
            check_loop(k % 4 < 2 ? DIV : REM, type, a, b, QUOTIENTS);
        }
    }
}

// -- types ----------------------------------------------------------------------------------------

static const char *type_name(ptowsp_type type) {
    return type == PTOWSP_TYPE_BOOL ? "bool" : type == PTOWSP_TYPE_I64 ? "i64" : "u64";
}

static void check_types(op o, ptowsp_type a, ptowsp_type b, ptowsp_type c) {
    fixture f;
    char text[120];
    fixture_make(&f);
    ptowsp_expr x = literal(f.m, a, 1), y = literal(f.m, b, 1), z = literal(f.m, c, 1);
    ptowsp_expr expr = o == SELECT    ? ptowsp_select(x, y, z)
                       : ops[o].unary ? ops[o].unary(x)
                                      : ops[o].binary(x, y);
    ptowsp_type expected = result_type(o, a, b, c);
    assert_int_equal(ptowsp_expr_type(expr), expected);
    if (arity(o) == 3) {
        snprintf(text, sizeof text, "module: %s: it does not take (%s, %s, %s)", ops[o].name,
                 type_name(a), type_name(b), type_name(c));
    } else if (arity(o) == 2) {
        snprintf(text, sizeof text, "module: %s: it does not take (%s, %s)%s", ops[o].name,
                 type_name(a), type_name(b), a != b ? "; cast one of them" : "");
    } else {
        snprintf(text, sizeof text, "module: %s: it does not take (%s)", ops[o].name, type_name(a));
    }
    if (expected == PTOWSP_TYPE_NONE) {
        module_error_is(&f, PTOWSP_INVALID_PARAMS, text);
    } else {
        module_error_is(&f, PTOWSP_OK, "");
    }
    fixture_free(&f);
}

TEST(expr__operators_take_the_types_that_they_say_and_no_others) {
    for (int o = 0; o < OP_COUNT; o++) {
        for (int types = 0; types < 27; types++) {
            check_types((op)o, (ptowsp_type)(1 + types % 3), (ptowsp_type)(1 + types / 3 % 3),
                        (ptowsp_type)(1 + types / 9));
        }
    }
}

TEST(expr__that_is_none_is_of_no_module) {
    const ptowsp_expr none = {NULL, 0};
    assert_int_equal(ptowsp_expr_type(none), PTOWSP_TYPE_NONE);
    assert_string_equal(printed(none), "none");
    assert_int_equal(ptowsp_add(none, none).id, 0);  // nobody to tell
    assert_int_equal(ptowsp_cast(none, PTOWSP_TYPE_NONE).id, 0);
    assert_int_equal(ptowsp_cast(none, PTOWSP_TYPE_I64).id, 0);
}

FIXTURE_TEST(expr__there_is_none_after_an_error) {
    ptowsp_not(ptowsp_i64(f->m, 1));
    assert_int_equal(ptowsp_add(ptowsp_i64(f->m, 1), ptowsp_i64(f->m, 1)).id, 0);
    module_error_is(f, PTOWSP_INVALID_PARAMS, "module: not: it does not take (i64)");
}

// -- limits ---------------------------------------------------------------------------------------

#define TOO_MUCH                                                                                   \
    "the expression has more than 200 operations in one another, or more than 10000 in all"

FIXTURE_TEST(expr__depth_has_a_limit) {
    ptowsp_expr x = ptowsp_slot(f->m, 0, PTOWSP_TYPE_I64);
    for (int i = 0; i < PTOWSP_EXPR_DEPTH_MAX; i++) {  // 0 - x, then x + x once, and so on
        x = i == 100 ? ptowsp_sub(ptowsp_i64(f->m, 3), x) : ptowsp_sub(ptowsp_i64(f->m, 0), x);
    }
    assert_int_not_equal(x.id, 0);
    evaluator e = evaluator_make(f, x);
    assert_ok(ptowsp_run_bind_slot(e.run, 0, 5));
    assert_true(evaluator_value(&e) == (uint64_t)(5 - 3));  // 199 signs change, one adds 3
    evaluator_free(&e);
    ptowsp_neg(x);
    module_error_is(f, PTOWSP_LIMIT_EXCEEDED, "module: neg: " TOO_MUCH);
    fixture_renew(f);
    x = ptowsp_slot(f->m, 0, PTOWSP_TYPE_I64);
    for (int i = 0; i < PTOWSP_EXPR_DEPTH_MAX; i++) {
        x = ptowsp_array_at(f->m, "next", PTOWSP_I32, x);
    }
    static const int32_t next[] = {1, 2, 0};
    e = evaluator_make(f, x);
    assert_ok(ptowsp_run_bind_array(e.run, "next", PTOWSP_I32, next, 3));
    assert_int_equal(evaluator_value(&e), 2);  // 200 steps round a ring of three
    evaluator_free(&e);
    ptowsp_array_at(f->m, "next", PTOWSP_I32, x);
    module_error_is(f, PTOWSP_LIMIT_EXCEEDED, "module: array_at: " TOO_MUCH);
    fixture_renew(f);
    x = ptowsp_i64(f->m, 1);
    for (int i = 0; i < 1000; i++) {  // constants fold, and take no depth
        x = ptowsp_add(x, x);
    }
    assert_string_equal(printed(x), "0");
}

// An expression of exactly `size` operators and leaves, and its value for slot 0 = start.
static ptowsp_expr of_size(const fixture *f, int size, uint64_t start, uint64_t *out_value) {
    if (size == 1) {
        *out_value = start;
        return ptowsp_slot(f->m, 0, PTOWSP_TYPE_U64);
    }
    uint64_t inner;
    ptowsp_expr x = of_size(f, size % 2 ? size / 2 : size - 1, start, &inner);
    *out_value = size % 2 ? inner + inner : ~inner;
    return size % 2 ? ptowsp_add(x, x) : ptowsp_bitnot(x);
}

FIXTURE_TEST(expr__size_has_a_limit) {
    uint64_t expected;
    ptowsp_expr x = of_size(f, PTOWSP_EXPR_SIZE_MAX, 12345, &expected);
    assert_int_not_equal(x.id, 0);
    evaluator e = evaluator_make(f, x);
    assert_ok(ptowsp_run_bind_slot(e.run, 0, 12345));
    assert_true(evaluator_value(&e) == expected);
    evaluator_free(&e);
    ptowsp_bitnot(x);
    module_error_is(f, PTOWSP_LIMIT_EXCEEDED, "module: bitnot: " TOO_MUCH);
}
