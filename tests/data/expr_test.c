// Scalar expressions: what every operator means, folded and compiled; which operands are looked at;
// which types are taken; limits. How they read is in expr_text_test.c.

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

// The sentences of section 16, one by one.
FIXTURE_TEST(expr__arithmetic_never_traps) {
    ptowsp_module *m = f->m;
    ptowsp_expr low = ptowsp_i64(m, INT64_MIN), high = ptowsp_i64(m, INT64_MAX);
    ptowsp_expr one = ptowsp_i64(m, 1), minus = ptowsp_i64(m, -1), zero = ptowsp_i64(m, 0);
    assert_string_equal(printed(ptowsp_add(high, one)), "-9223372036854775808");
    assert_string_equal(printed(ptowsp_sub(low, one)), "9223372036854775807");
    assert_string_equal(printed(ptowsp_mul(high, ptowsp_i64(m, 2))), "-2");
    assert_string_equal(printed(ptowsp_neg(low)), "-9223372036854775808");
    assert_string_equal(printed(ptowsp_div(one, zero)), "0");
    assert_string_equal(printed(ptowsp_rem(one, zero)), "0");
    assert_string_equal(printed(ptowsp_div(low, minus)), "-9223372036854775808");
    assert_string_equal(printed(ptowsp_rem(low, minus)), "0");
    assert_string_equal(printed(ptowsp_div(ptowsp_i64(m, -7), ptowsp_i64(m, 2))), "-3");
    assert_string_equal(printed(ptowsp_rem(ptowsp_i64(m, -7), ptowsp_i64(m, 2))), "-1");
    assert_string_equal(printed(ptowsp_rem(ptowsp_i64(m, 7), ptowsp_i64(m, -2))), "1");
    assert_string_equal(printed(ptowsp_shl(one, ptowsp_i64(m, 65))), "2");
    assert_string_equal(printed(ptowsp_shr(minus, ptowsp_i64(m, 63))), "-1");
    assert_string_equal(printed(ptowsp_shr(ptowsp_i64(m, -5), one)), "-3");
    assert_string_equal(printed(ptowsp_shr(ptowsp_u64(m, UINT64_MAX), ptowsp_u64(m, 63))), "1u");
    assert_string_equal(printed(ptowsp_sub(ptowsp_u64(m, 0), ptowsp_u64(m, 1))),
                        "18446744073709551615u");
    assert_string_equal(printed(ptowsp_div(ptowsp_u64(m, UINT64_MAX), ptowsp_u64(m, 2))),
                        "9223372036854775807u");
    assert_string_equal(printed(ptowsp_lt(minus, zero)), "true");
    assert_string_equal(printed(ptowsp_lt(ptowsp_cast(minus, PTOWSP_TYPE_U64), ptowsp_u64(m, 0))),
                        "false");
    assert_string_equal(printed(ptowsp_cast(ptowsp_bool(m, true), PTOWSP_TYPE_I64)), "1");
    assert_string_equal(printed(ptowsp_cast(minus, PTOWSP_TYPE_BOOL)), "true");
}

// -- what is looked at ----------------------------------------------------------------------------

static const int32_t table[] = {10, -20, 30};

// Puts the value of an expression over i = slot 0 and table[3] into a slot, for i = index.
static ptowsp_status value_at(const fixture *f, ptowsp_expr expr, int64_t index,
                              uint64_t *out_value) {
    evaluator e = evaluator_make(f, expr);
    assert_ok(ptowsp_run_bind_array(e.run, "table", PTOWSP_I32, table, 3));
    assert_ok(ptowsp_run_bind_slot(e.run, 0, (uint64_t)index));
    ptowsp_status status = ptowsp_run_execute(e.run, NULL);
    *out_value = ptowsp_run_slot(e.run, VALUE_SLOT);
    evaluator_free(&e);
    return status;
}

static ptowsp_expr guarded(ptowsp_module *m, int which) {
    ptowsp_expr i = ptowsp_slot(m, 0, PTOWSP_TYPE_I64), zero = ptowsp_i64(m, 0);
    ptowsp_expr read = ptowsp_array_at(m, "table", PTOWSP_I32, i);
    ptowsp_expr is_in = ptowsp_and(ptowsp_ge(i, zero), ptowsp_lt(i, ptowsp_i64(m, 3)));
    ptowsp_expr is_positive = ptowsp_gt(read, zero);
    switch (which) {
    case 0: return ptowsp_select(is_in, read, ptowsp_i64(m, -1));
    case 1: return ptowsp_select(ptowsp_not(is_in), ptowsp_i64(m, -1), read);
    case 2: return ptowsp_and(is_in, is_positive);
    case 3: return ptowsp_or(ptowsp_not(is_in), is_positive);
    case 4:  // both sides read; a read in the condition of the inner select
        return ptowsp_select(is_in,
                             ptowsp_select(is_positive, read, ptowsp_add(read, ptowsp_i64(m, 1))),
                             ptowsp_array_at(m, "table", PTOWSP_I32, zero));
    case 5:  // a guard around an operator around a guard
        return ptowsp_and(ptowsp_and(is_in, is_positive),
                          ptowsp_eq(ptowsp_rem(read, ptowsp_i64(m, 3)), zero));
    default:  // a read whose index is a guarded read
        return ptowsp_array_at(m, "table", PTOWSP_I32,
                               ptowsp_select(is_in, ptowsp_div(read, ptowsp_i64(m, 15)), zero));
    }
}

FIXTURE_TEST(expr__select_and_or_look_right_only_when_needed) {
    static const struct {
        int which;
        int64_t values[5];  // for i = -1, 0, 1, 2, 3
    } rows[] = {{0, {-1, 10, -20, 30, -1}}, {1, {-1, 10, -20, 30, -1}}, {2, {0, 1, 0, 1, 0}},
                {3, {1, 1, 0, 1, 1}},       {4, {10, 10, -19, 30, 10}}, {5, {0, 0, 0, 1, 0}},
                {6, {10, 10, 999, 30, 10}}};  // 999: table[-20 / 15 = -1] is outside
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        for (int64_t i = -1; i <= 3; i++) {
            uint64_t value;
            fixture_renew(f);
            ptowsp_status status = value_at(f, guarded(f->m, rows[r].which), i, &value);
            if (rows[r].values[i + 1] == 999) {
                test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NEGATIVE_INDEX,
                              "main/slot_set 9: array table is read at -1; it has 3 elements");
            } else {
                assert_ok(status);
                assert_int_equal((int64_t)value, rows[r].values[i + 1]);
            }
        }
    }
}

FIXTURE_TEST(expr__a_read_without_guard_is_an_error_of_the_run) {
    uint64_t value;
    ptowsp_expr i = ptowsp_slot(f->m, 0, PTOWSP_TYPE_I64);
    ptowsp_expr read = ptowsp_array_at(f->m, "table", PTOWSP_I32, i);
    ptowsp_expr is_in = ptowsp_lt(i, ptowsp_i64(f->m, 3));
    // on the left of `and` the read is not guarded
    ptowsp_expr expr = ptowsp_and(ptowsp_gt(read, ptowsp_i64(f->m, 0)), is_in);
    test_refused(f->context, value_at(f, expr, 3, &value), PTOWSP_INVALID_PARAMS, 3,
                 "main/slot_set 9: array table is read at 3; it has 3 elements");
}

FIXTURE_TEST(expr__what_folding_drops_need_not_be_bound) {
    ptowsp_module *m = f->m;
    ptowsp_expr read = ptowsp_array_at(m, "nowhere", PTOWSP_I64, ptowsp_i64(m, 5));
    ptowsp_expr is = ptowsp_eq(read, read), yes = ptowsp_bool(m, true), no = ptowsp_bool(m, false);
    ptowsp_expr slot = ptowsp_slot(m, 1, PTOWSP_TYPE_I64);
    assert_string_equal(printed(ptowsp_and(no, is)), "false");
    assert_string_equal(printed(ptowsp_or(yes, is)), "true");
    assert_string_equal(printed(ptowsp_and(yes, is)), "nowhere[5] == nowhere[5]");
    assert_string_equal(printed(ptowsp_select(yes, slot, read)), "slot_i64[1]");
    ptowsp_expr expr = ptowsp_select(ptowsp_and(no, is), read, slot);
    evaluator e = evaluator_make(f, expr);
    assert_ok(ptowsp_run_bind_slot(e.run, 1, 77));
    assert_int_equal(evaluator_value(&e), 77);
    evaluator_free(&e);
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

// A loop of 300 that reads `table`, of 200, at i or, invariantly, at slot 0: under a condition that
// holds below `end`, or as an operand that is not looked at from there on.
TEST(expr__reads_in_loops_fault_where_an_iteration_needs_them) {
    static int64_t numbers[200];
    int64_t sum = 0;
    for (int64_t i = 0; i < 200; i++) {
        numbers[i] = 3 * i * i - 7;
        sum += numbers[i];
    }
    for (int which = 0; which < 3; which++) {
        for (int64_t end = 199; end <= 201; end++) {
            fixture f;
            fixture_make(&f);
            ptowsp_module *m = f.m;
            PTOWSP_WORKLOAD(m, "main") {
                PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, "n", 300)) {
                    ptowsp_expr is_in =
                        ptowsp_lt(i, ptowsp_cast(ptowsp_symbol(m, "end"), PTOWSP_TYPE_I64));
                    ptowsp_expr at = which == 2 ? ptowsp_slot(m, 0, PTOWSP_TYPE_I64) : i;
                    ptowsp_expr read = ptowsp_array_at(m, "table", PTOWSP_I64, at);
                    ptowsp_expr all = ptowsp_slot(m, 1, PTOWSP_TYPE_I64), zero = ptowsp_i64(m, 0);
                    if (which == 1) {
                        ptowsp_slot_set_make(m, 1,
                                             ptowsp_add(all, ptowsp_select(is_in, read, zero)));
                    } else {
                        PTOWSP_WHEN(m, is_in) {
                            ptowsp_slot_set_make(m, 2, read);
                            ptowsp_slot_set_make(
                                m, 1, ptowsp_add(all, ptowsp_slot(m, 2, PTOWSP_TYPE_I64)));
                        }
                    }
                }
            }
            evaluator e = evaluator_of(&f);
            assert_ok(ptowsp_run_bind_array(e.run, "table", PTOWSP_I64, numbers, 200));
            assert_ok(
                ptowsp_run_bind_symbol(e.run, "end", which == 2 && end == 200 ? 0 : (uint64_t)end));
            assert_ok(ptowsp_run_bind_slot(e.run, 0, which == 2 && end == 199 ? 5 : 200));
            ptowsp_status status = ptowsp_run_execute(e.run, NULL);
            char text[200];
            snprintf(text, sizeof text,
                     "main/for_each i%s/slot_set %d (i = %d): array table is read at 200; it has "
                     "200 elements",
                     which == 1 ? "" : "/when", which == 1 ? 1 : 2, which == 2 ? 0 : 200);
            int64_t expected = which < 2    ? end == 199 ? sum - numbers[199] : sum
                               : end == 199 ? 199 * numbers[5]
                                            : 0;
            if (end == 201) {
                test_error_is(f.context, PTOWSP_INVALID_PARAMS, 200, text);
            } else {
                assert_ok(status);
                assert_int_equal((int64_t)ptowsp_run_slot(e.run, 1), expected);
            }
            evaluator_free(&e);
            fixture_free(&f);
        }
    }
}

// -- arrays ---------------------------------------------------------------------------------------

static void check_array(ptowsp_dtype dtype, const void *data, ptowsp_type type,
                        const int64_t *expected) {
    fixture f;
    fixture_make(&f);
    ptowsp_expr read = ptowsp_array_at(f.m, "data", dtype, ptowsp_slot(f.m, 0, PTOWSP_TYPE_I64));
    assert_int_equal(ptowsp_expr_type(read), type);
    evaluator e = evaluator_make(&f, read);
    assert_ok(ptowsp_run_bind_array(e.run, "data", dtype, data, 3));
    for (uint64_t i = 0; i < 3; i++) {
        assert_ok(ptowsp_run_bind_slot(e.run, 0, i));
        assert_true(evaluator_value(&e) == (uint64_t)expected[i]);
    }
    evaluator_free(&e);
    fixture_free(&f);
}

TEST(expr__arrays_of_every_dtype_are_extended_to_cells) {
    static const int8_t i8[] = {INT8_MIN, -1, INT8_MAX};
    static const int16_t i16[] = {INT16_MIN, -1, INT16_MAX};
    static const int32_t i32[] = {INT32_MIN, -1, INT32_MAX};
    static const int64_t i64[] = {INT64_MIN, -1, INT64_MAX};
    static const uint8_t u8[] = {0, 128, UINT8_MAX};
    static const uint16_t u16[] = {0, 32768, UINT16_MAX};
    static const uint32_t u32[] = {0, UINT32_C(1) << 31, UINT32_MAX};
    static const uint64_t u64[] = {0, UINT64_C(1) << 63, UINT64_MAX};
    static const uint8_t b[] = {0, 1, 2};
    check_array(PTOWSP_I8, i8, PTOWSP_TYPE_I64, (int64_t[]){INT8_MIN, -1, INT8_MAX});
    check_array(PTOWSP_I16, i16, PTOWSP_TYPE_I64, (int64_t[]){INT16_MIN, -1, INT16_MAX});
    check_array(PTOWSP_I32, i32, PTOWSP_TYPE_I64, (int64_t[]){INT32_MIN, -1, INT32_MAX});
    check_array(PTOWSP_I64, i64, PTOWSP_TYPE_I64, (int64_t[]){INT64_MIN, -1, INT64_MAX});
    check_array(PTOWSP_U8, u8, PTOWSP_TYPE_U64, (int64_t[]){0, 128, UINT8_MAX});
    check_array(PTOWSP_U16, u16, PTOWSP_TYPE_U64, (int64_t[]){0, 32768, UINT16_MAX});
    check_array(PTOWSP_U32, u32, PTOWSP_TYPE_U64,
                (int64_t[]){0, INT64_C(1) << 31, INT64_C(0xffffffff)});
    check_array(PTOWSP_U64, u64, PTOWSP_TYPE_U64, (int64_t[]){0, INT64_MIN, -1});
    check_array(PTOWSP_BOOL, b, PTOWSP_TYPE_BOOL, (int64_t[]){0, 1, 1});
}

FIXTURE_TEST(expr__arrays_of_floats_or_with_other_indices_are_refused) {
    REFUSED(f, ptowsp_array_at(f->m, "w", PTOWSP_F32, ptowsp_i64(f->m, 0)),
            "module: array w: elements of type f32, index of type i64; elements are "
            "integers or bool, an index is i64");
    REFUSED(f, ptowsp_array_at(f->m, "w", PTOWSP_I32, ptowsp_u64(f->m, 0)),
            "module: array w: elements of type i32, index of type u64; elements are "
            "integers or bool, an index is i64");
    ptowsp_array_at(f->m, "w", PTOWSP_I32, ptowsp_i64(f->m, 0));
    REFUSED(f, ptowsp_array_at(f->m, "w", PTOWSP_I64, ptowsp_i64(f->m, 0)),
            "module: array w: read as i64 here and as i32 before");
    ptowsp_expr none = {f->m, 0};
    REFUSED(f, ptowsp_array_at(f->m, "w", PTOWSP_I32, none),
            "module: array_at: an operand is no expression");
    ptowsp_axis_ragged(f->m, "kv");
    REFUSED(f, ptowsp_array_at(f->m, "kv", PTOWSP_I8, ptowsp_i64(f->m, 0)),
            "module: array kv: lengths are i32, i64, u32 or u64, not i8");
    ptowsp_array_at(f->m, "kv", PTOWSP_BOOL, ptowsp_i64(f->m, 0));
    ptowsp_axis_ragged(f->m, "kv");
    module_error_is(f, PTOWSP_INVALID_PARAMS,
                    "module: axis kv: its lengths are read as bool; they are i32, i64, u32 or u64");
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

TEST(expr__operands_that_are_none_or_of_another_module_are_refused) {
    fixture f, other;
    fixture_make(&f);
    fixture_make(&other);
    const ptowsp_expr none = {NULL, 0};
    assert_int_equal(ptowsp_expr_type(none), PTOWSP_TYPE_NONE);
    assert_string_equal(printed(none), "none");
    assert_int_equal(ptowsp_add(none, none).id, 0);  // of no module: nobody to tell
    REFUSED(&f, ptowsp_add(ptowsp_i64(f.m, 1), none), "module: add: an operand is no expression");
    REFUSED(&f, ptowsp_select(none, none, ptowsp_i64(f.m, 1)),
            "module: select: an operand is no expression");
    ptowsp_mul(ptowsp_i64(f.m, 1), ptowsp_i64(other.m, 1));
    module_error_is(&f, PTOWSP_INVALID_PARAMS,
                    "module: mul: an operand is no expression of this module");
    module_error_is(&other, PTOWSP_OK, "");
    fixture_renew(&f);
    assert_int_equal(ptowsp_cast(ptowsp_i64(f.m, 1), (ptowsp_type)4).id, 0);
    module_error_is(&f, PTOWSP_INVALID_PARAMS, "module: cast: 4 is no type");
    assert_int_equal(ptowsp_cast(none, PTOWSP_TYPE_NONE).id, 0);
    fixture_renew(&f);
    ptowsp_cast(none, PTOWSP_TYPE_I64);  // of no module: nobody to tell
    module_error_is(&f, PTOWSP_OK, "");
    ptowsp_not(ptowsp_i64(f.m, 1));
    ptowsp_expr after = ptowsp_add(ptowsp_i64(f.m, 1), ptowsp_i64(f.m, 1));
    assert_int_equal(after.id, 0);  // after an error nothing is built
    module_error_is(&f, PTOWSP_INVALID_PARAMS, "module: not: it does not take (i64)");
    fixture_free(&other);
    fixture_free(&f);
}

FIXTURE_TEST(expr__leaves_that_are_not_there_are_refused) {
    ptowsp_slot(f->m, PTOWSP_SLOT_COUNT - 1, PTOWSP_TYPE_U64);
    module_error_is(f, PTOWSP_OK, "");
    ptowsp_slot(f->m, PTOWSP_SLOT_COUNT, PTOWSP_TYPE_U64);
    module_error_is(f, PTOWSP_INVALID_PARAMS, "module: slot 256: there are 256 slots");
    assert_int_equal(ptowsp_module_error(f->m).index, 256);
    fixture_renew(f);
    assert_int_equal(ptowsp_slot(f->m, 7, PTOWSP_TYPE_NONE).id, 0);
    module_error_is(f, PTOWSP_INVALID_PARAMS, "module: slot 7: 0 is no type");
    fixture_renew(f);
    const ptowsp_axis none = {0}, absent = {55};
    REFUSED(f, ptowsp_axis_size(f->m, none), "module: axis_size: there is no axis 0");
    REFUSED(f, ptowsp_axis_size(f->m, absent), "module: axis_size: there is no axis 55");
    ptowsp_axis_size(f->m, ptowsp_axis_ragged(f->m, "kv"));
    module_error_is(f, PTOWSP_INVALID_PARAMS,
                    "module: axis_size: axis kv is not dense, dynamic or of a plan");
}

FIXTURE_TEST(expr__sizes_of_axes_are_constants_or_bound) {
    ptowsp_expr dense = ptowsp_axis_size(f->m, ptowsp_axis_dense(f->m, "h", 8));
    ptowsp_expr dynamic = ptowsp_axis_size(f->m, ptowsp_axis_dynamic(f->m, "b"));
    assert_string_equal(printed(ptowsp_mul(dense, ptowsp_i64(f->m, 2))), "16");
    assert_string_equal(printed(ptowsp_mul(dense, dynamic)), "8 * size(b)");
    evaluator e = evaluator_make(f, ptowsp_mul(dense, dynamic));
    assert_ok(ptowsp_run_bind_size(e.run, "b", 5));
    assert_int_equal(evaluator_value(&e), 40);
    evaluator_free(&e);
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
