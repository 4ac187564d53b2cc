// Expressions as C++: random ones, of every operator and type over values at the edges, have the
// value that a run gives them; and the deepest and largest that a module takes. The text of some is in
// tests/npu/emitted/clauses.emit.

#define _POSIX_C_SOURCE 200809L

#include "expr_reference.h"

#include "npu_kernel_fixture.h"

enum { PROGRAMS = 6, EXPRS = 60, FIRST_SLOT = 3, UNKNOWN_COUNT = 2 };

typedef struct generator {
    ptowsp_module *m;
    uint64_t random;
} generator;

static int64_t in(generator *g, int64_t low, int64_t high) {
    return test_random_in(&g->random, low, high);
}

static ptowsp_type any_type(generator *g) {
    int64_t choice = in(g, 0, 2);
    return choice == 0 ? PTOWSP_TYPE_I64 : choice == 1 ? PTOWSP_TYPE_U64 : PTOWSP_TYPE_BOOL;
}

static ptowsp_expr random_leaf(generator *g, ptowsp_type type) {
    if (in(g, 0, 2) == 0) {
        return literal(g->m, type, values[in(g, 0, VALUE_COUNT - 1)]);
    }
    uint32_t slot = (uint32_t)in(g, 0, UNKNOWN_COUNT - 1);
    return unknown(g->m, type, slot, (int)in(g, 0, 1));
}

static ptowsp_expr random_expr(generator *g, ptowsp_type type, int depth);

// A random operator with a result of this type.
static ptowsp_expr random_operator(generator *g, ptowsp_type type, int depth) {
    for (;;) {
        op o = (op)in(g, 0, OP_COUNT - 1);
        ptowsp_type a = o == SELECT ? PTOWSP_TYPE_BOOL : any_type(g);
        ptowsp_type b = o == SELECT ? type : a;
        if (result_type(o, a, b, b) != type) {
            continue;
        }
        ptowsp_expr x = random_expr(g, a, depth - 1);
        if (arity(o) == 1) {
            return ops[o].unary(x);
        }
        ptowsp_expr y = random_expr(g, b, depth - 1);
        if (arity(o) == 2) {
            return ops[o].binary(x, y);
        }
        ptowsp_expr z = random_expr(g, type, depth - 1);
        return ptowsp_select(x, y, z);
    }
}

static ptowsp_expr random_expr(generator *g, ptowsp_type type, int depth) {
    bool is_leaf = depth == 0 || in(g, 0, 7) == 0;
    return is_leaf ? random_leaf(g, type) : random_operator(g, type, depth);
}

// -- against runs ---------------------------------------------------------------------------------

static void check_values(ptowsp_npu *npu, ptowsp_run *run, uint64_t *random) {
    for (int round = 0; round < 8; round++) {
        uint64_t slots[FIRST_SLOT + EXPRS];
        for (uint32_t i = 0; i < UNKNOWN_COUNT; i++) {
            const char *name = i == 0 ? "s0" : "s1";
            uint64_t value = values[test_random_in(random, 0, VALUE_COUNT - 1)];
            assert_ok(ptowsp_run_bind_slot(run, i, value));
            value = values[test_random_in(random, 0, VALUE_COUNT - 1)];
            (void)ptowsp_run_bind_symbol(run, name, value);
        }
        assert_ok(ptowsp_npu_execute(npu, run, NULL, slots, COUNT_OF(slots), NULL));
        assert_ok(ptowsp_run_execute(run, NULL));
        for (uint32_t i = 0; i < FIRST_SLOT + EXPRS; i++) {
            if (slots[i] != ptowsp_run_slot(run, i)) {
                fail_msg("slot %u is %llx and should be %llx", i, (unsigned long long)slots[i],
                         (unsigned long long)ptowsp_run_slot(run, i));
            }
        }
    }
}

TEST(expr__random_ones_have_the_value_of_a_run) {
    static fixture fixtures[PROGRAMS];
    static evaluator evaluators[PROGRAMS];
    npu_object o = npu_object_begin();
    o.has_trees = true;
    generator g = {NULL, test_seed() + 55};
    for (int number = 0; TEST_ROUNDS(number, PROGRAMS); number++) {
        fixture *f = &fixtures[number];
        evaluator *e = &evaluators[number];
        fixture_make(f);
        g.m = f->m;
        PTOWSP_WORKLOAD(f->m, "main") {
            for (uint32_t i = 0; i < EXPRS; i++) {
                ptowsp_type type = any_type(&g);
                int depth = (int)in(&g, 1, 7);
                ptowsp_slot_set_make(f->m, FIRST_SLOT + i, random_expr(&g, type, depth));
            }
        }
        test_ok(f->context, ptowsp_program_create(f->context, f->m, NULL, &e->program));
        assert_ok(ptowsp_run_create(f->context, e->program, &e->run));
        npu_object_add(&o, f->context, e->program, false);
    }
    npu_object_build(&o, "");
    for (uint32_t number = 0; TEST_ROUNDS(number, PROGRAMS); number++) {
        evaluator *e = &evaluators[number];
        check_values(npu_object_tree(&o, number, fixtures[number].context, e->program), e->run,
                     &g.random);
        evaluator_free(e);
        fixture_free(&fixtures[number]);
    }
    npu_object_end(&o);
}

// -- limits ---------------------------------------------------------------------------------------

// min(min(min(... + 1, ...)...)) and the like, as deep as can be; a sum as long as can be.
TEST(expr__the_deepest_and_the_largest_can_be_compiled) {
    fixture f;
    evaluator e;
    npu_object o = npu_object_begin();
    o.has_trees = true;
    fixture_make(&f);
    ptowsp_expr x = ptowsp_slot(f.m, 0, PTOWSP_TYPE_I64), deep = x, choice = x, large = x;
    for (int i = 1; i < PTOWSP_EXPR_DEPTH_MAX - 2; i++) {
        deep = i % 2 ? ptowsp_max(ptowsp_i64(f.m, i), ptowsp_sub(deep, ptowsp_i64(f.m, 3)))
                     : ptowsp_mul(ptowsp_i64(f.m, -1), deep);
        i += i % 2;
    }
    for (int i = 1; i < PTOWSP_EXPR_DEPTH_MAX / 2; i++) {
        choice = ptowsp_select(ptowsp_lt(choice, ptowsp_i64(f.m, 3 * i)), ptowsp_i64(f.m, i), x);
    }
    for (int i = 0; i < 10; i++) {
        large = ptowsp_add(ptowsp_mul(large, x), ptowsp_neg(large));
    }
    PTOWSP_WORKLOAD(f.m, "main") {
        ptowsp_slot_set_make(f.m, FIRST_SLOT, deep);
        ptowsp_slot_set_make(f.m, FIRST_SLOT + 1, choice);
        ptowsp_slot_set_make(f.m, FIRST_SLOT + 2, ptowsp_add(deep, choice));
        ptowsp_slot_set_make(f.m, FIRST_SLOT + 3, large);
    }
    test_ok(f.context, ptowsp_program_create(f.context, f.m, NULL, &e.program));
    assert_ok(ptowsp_run_create(f.context, e.program, &e.run));
    npu_object_add(&o, f.context, e.program, false);
    npu_object_build(&o, "");
    uint64_t random = 1;
    check_values(npu_object_tree(&o, 0, f.context, e.program), e.run, &random);
    npu_object_end(&o);
    evaluator_free(&e);
    fixture_free(&f);
}
