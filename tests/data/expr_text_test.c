// The text of a scalar expression means what the expression does: random expressions are printed, and
// the text is read back and evaluated by a parser of its own, as well as compiled and run. The form of
// the text is in cases/expression_texts.case.

#include "expr_reference.h"

// -- printing -------------------------------------------------------------------------------------

FIXTURE_TEST(expr_text__parts_of_a_task_read_as_in_schedules) {
    ptowsp_module *m = f->m;
    assert_string_equal(printed(ptowsp_add(ptowsp_task_variable(m, "b"), ptowsp_task_arg(m, 2))),
                        "task.b + task.args[2]");
    assert_string_equal(printed(ptowsp_task_tag(m, "level")), "task.tag(level)");
}

enum { SYMBOL_COUNT = 3, CELL_COUNT = 8 };

// -- random expressions ---------------------------------------------------------------------------

// What leaves stand for: symbols, slots and two arrays, "ai" of i32 and "au" of u8.
typedef struct environment {
    uint64_t symbols[SYMBOL_COUNT];
    uint64_t slots[CELL_COUNT];
    int32_t ai[CELL_COUNT];
    uint8_t au[CELL_COUNT];
} environment;

typedef struct value {
    ptowsp_type type;
    uint64_t cell;
} value;

// The value of an operator in an environment; `fault` is set by what is looked at and outside.
static value apply(op o, value a, value b, value c) {
    ptowsp_type type = result_type(o, a.type, b.type, c.type);
    assert_int_not_equal(type, PTOWSP_TYPE_NONE);
    value result = {type,
                    o == SELECT ? (a.cell ? b.cell : c.cell) : meaning(o, a.type, a.cell, b.cell)};
    return result;
}

// A parser of printed expressions that evaluates them on the way. What is not looked at is parsed
// with is_live false: its reads do not count.
typedef struct parser {
    const char *at;
    const environment *env;
    bool is_live;
    bool is_fault;
} parser;

static bool accept_text(parser *p, const char *text) {
    size_t length = strlen(text);
    if (strncmp(p->at, text, length) == 0) {
        p->at += length;
        return true;
    }
    return false;
}

static void expect_text(parser *p, const char *text) {
    if (!accept_text(p, text)) {
        fail_msg("expected \"%s\" before \"%s\"", text, p->at);
    }
}

static value parse_ternary(parser *p);

static uint64_t parse_digits(parser *p) {
    char *end;
    const uint64_t number = strtoull(p->at, &end, 10);
    if (end == p->at) {
        fail_msg("nothing to read in \"%s\"", p->at);
    }
    p->at = end;
    return number;
}

// An element of an array, which is a fault outside of it.
static value parse_read(parser *p, ptowsp_type type) {
    const value index = parse_ternary(p);
    assert_int_equal(index.type, PTOWSP_TYPE_I64);
    const bool is_inside = index.cell < CELL_COUNT;
    const uint64_t at = index.cell % CELL_COUNT;
    p->is_fault = p->is_fault || (p->is_live && !is_inside);
    return (value){type, !is_inside                ? 0
                         : type == PTOWSP_TYPE_I64 ? (uint64_t)(int64_t)p->env->ai[at]
                                                   : p->env->au[at]};
}

static value parse_primary(parser *p) {
    enum { CALL, SLOT, READ, TRUTH, SYMBOL, GROUP };
    static const struct {
        const char *text;
        int kind, what;
        const char *end;
    } words[] = {{"min(", CALL, MIN, ")"},
                 {"max(", CALL, MAX, ")"},
                 {"i64(", CALL, TO_I64, ")"},
                 {"u64(", CALL, TO_U64, ")"},
                 {"bool(", CALL, TO_BOOL, ")"},
                 {"slot_i64[", SLOT, PTOWSP_TYPE_I64, "]"},
                 {"slot_u64[", SLOT, PTOWSP_TYPE_U64, "]"},
                 {"slot_bool[", SLOT, PTOWSP_TYPE_BOOL, "]"},
                 {"ai[", READ, PTOWSP_TYPE_I64, "]"},
                 {"au[", READ, PTOWSP_TYPE_U64, "]"},
                 {"true", TRUTH, 1, ""},
                 {"false", TRUTH, 0, ""},
                 {"s", SYMBOL, 0, ""},
                 {"(", GROUP, 0, ")"}};
    value a = {PTOWSP_TYPE_NONE, 0}, b;
    size_t i = 0;
    while (i < COUNT_OF(words) && !accept_text(p, words[i].text)) {
        i++;
    }
    if (i == COUNT_OF(words)) {
        a.cell = parse_digits(p);
        a.type = accept_text(p, "u") ? PTOWSP_TYPE_U64 : PTOWSP_TYPE_I64;
        return a;
    }
    const int what = words[i].what;
    switch (words[i].kind) {
    case CALL:
        a = b = parse_ternary(p);
        if (arity((op)what) == 2) {
            expect_text(p, ", ");
            b = parse_ternary(p);
        }
        a = apply((op)what, a, b, b);
        break;
    case SLOT:
        a.type = (ptowsp_type)what;
        a.cell = p->env->slots[parse_digits(p)];
        a.cell = a.type == PTOWSP_TYPE_BOOL ? a.cell != 0 : a.cell;
        break;
    case READ: a = parse_read(p, (ptowsp_type)what); break;
    case TRUTH: a = (value){PTOWSP_TYPE_BOOL, (uint64_t)what}; break;
    case SYMBOL: a = (value){PTOWSP_TYPE_U64, p->env->symbols[parse_digits(p)]}; break;
    default: a = parse_ternary(p);
    }
    expect_text(p, words[i].end);
    return a;
}

static value parse_unary(parser *p) {
    static const struct {
        const char *text;
        op o;
    } unary[] = {{"-", NEG}, {"~", BITNOT}, {"!", NOT}};
    for (int i = 0; i < 3; i++) {
        if (accept_text(p, unary[i].text)) {
            value a = parse_unary(p);
            return apply(unary[i].o, a, a, a);
        }
    }
    return parse_primary(p);
}

// Binary operators of C, from those that bind least; `level` is their line.
static value parse_binary(parser *p, int level) {
    static const struct {
        int level;
        const char *text;
        op o;
    } binary[] = {{0, " || ", OR},    {1, " && ", AND}, {2, " | ", BITOR}, {3, " ^ ", BITXOR},
                  {4, " & ", BITAND}, {5, " == ", EQ},  {5, " != ", NE},   {6, " <= ", LE},
                  {6, " >= ", GE},    {6, " < ", LT},   {6, " > ", GT},    {7, " << ", SHL},
                  {7, " >> ", SHR},   {8, " + ", ADD},  {8, " - ", SUB},   {9, " * ", MUL},
                  {9, " / ", DIV},    {9, " % ", REM}};
    if (level == 10) {
        return parse_unary(p);
    }
    value left = parse_binary(p, level + 1);
    for (size_t i = 0; i < COUNT_OF(binary);) {
        if (binary[i].level != level || !accept_text(p, binary[i].text)) {
            i++;
            continue;
        }
        bool was_live = p->is_live;
        p->is_live =
            was_live && !(binary[i].o == AND && !left.cell) && !(binary[i].o == OR && left.cell);
        value right = parse_binary(p, level + 1);
        p->is_live = was_live;
        left = apply(binary[i].o, left, right, right);
        i = 0;
    }
    return left;
}

static value parse_ternary(parser *p) {
    value condition = parse_binary(p, 0);
    if (!accept_text(p, " ? ")) {
        return condition;
    }
    bool was_live = p->is_live;
    p->is_live = was_live && condition.cell;
    value a = parse_ternary(p);
    expect_text(p, " : ");
    p->is_live = was_live && !condition.cell;
    value b = parse_ternary(p);
    p->is_live = was_live;
    return apply(SELECT, condition, a, b);
}

// A random expression of a type, with the value that it has (reads outside give 0 and set *fault).
typedef struct random_expr {
    ptowsp_expr expr;
    value v;
    bool is_fault;
} random_expr;

typedef struct generator {
    ptowsp_module *m;
    const environment *env;
    uint64_t random;
} generator;

static uint64_t random_cell(uint64_t *random) {
    switch (test_random(random) % 4) {
    case 0: return values[test_random(random) % VALUE_COUNT];
    case 1: return test_random(random);
    default: return test_random(random) % 12;
    }
}

static random_expr random_leaf(generator *g, ptowsp_type type) {
    static const char names[SYMBOL_COUNT][3] = {"s0", "s1", "s2"};
    uint32_t slot = (uint32_t)(test_random(&g->random) % CELL_COUNT);
    random_expr leaf = {{NULL, 0}, {type, g->env->slots[slot]}, false};
    if (type == PTOWSP_TYPE_U64 && test_random(&g->random) % 2) {
        leaf.v.cell = g->env->symbols[slot % SYMBOL_COUNT];
        leaf.expr = ptowsp_symbol(g->m, names[slot % SYMBOL_COUNT]);
    } else if (test_random(&g->random) % 3 == 0) {
        uint64_t cell = random_cell(&g->random);
        leaf.v.cell = type == PTOWSP_TYPE_BOOL ? cell & 1 : cell;
        leaf.expr = literal(g->m, type, leaf.v.cell);
    } else if (type == PTOWSP_TYPE_BOOL) {
        leaf.v.cell = leaf.v.cell != 0;
        leaf.expr = ptowsp_slot(g->m, slot, PTOWSP_TYPE_BOOL);
    } else {
        leaf.expr = type == PTOWSP_TYPE_I64 ? ptowsp_slot(g->m, slot, PTOWSP_TYPE_I64)
                                            : ptowsp_slot(g->m, slot, PTOWSP_TYPE_U64);
    }
    return leaf;
}

static random_expr random_tree(generator *g, ptowsp_type type, int depth, bool is_spine);

static random_expr random_read(generator *g, bool is_signed, int depth, bool is_spine) {
    random_expr read = random_tree(g, PTOWSP_TYPE_I64, depth - 1, is_spine);
    if (test_random(&g->random) % 4) {  // mostly inside
        read.expr = ptowsp_bitand(read.expr, ptowsp_i64(g->m, CELL_COUNT - 1));
        read.v.cell &= CELL_COUNT - 1;
    }
    bool is_outside = read.v.cell >= CELL_COUNT;
    uint64_t i = read.v.cell % CELL_COUNT;
    read.is_fault = read.is_fault || is_outside;
    read.v.type = is_signed ? PTOWSP_TYPE_I64 : PTOWSP_TYPE_U64;
    read.v.cell = is_outside ? 0 : is_signed ? (uint64_t)(int64_t)g->env->ai[i] : g->env->au[i];
    read.expr = is_signed ? ptowsp_array_at(g->m, "ai", PTOWSP_I32, read.expr)
                          : ptowsp_array_at(g->m, "au", PTOWSP_U8, read.expr);
    return read;
}

// An operator and the type of its operands, for a result of a type.
static op random_op(generator *g, ptowsp_type type, ptowsp_type *out_operands) {
    static const op for_bool[] = {LT, LE, GT, GE, EQ, NE, AND, OR, AND, OR, NOT, TO_BOOL, SELECT};
    ptowsp_type any = (ptowsp_type)(1 + test_random(&g->random) % 3);
    ptowsp_type integer = (ptowsp_type)(2 + test_random(&g->random) % 2);
    op o;
    if (type == PTOWSP_TYPE_BOOL) {
        o = for_bool[test_random(&g->random) % 13];
        *out_operands = o <= GE                              ? integer
                        : o == EQ || o == NE || o == TO_BOOL ? any
                                                             : PTOWSP_TYPE_BOOL;
        return o;
    }
    uint64_t pick = test_random(&g->random) % 16;
    o = pick <= SHR  ? (op)pick
        : pick == 12 ? NEG
        : pick == 13 ? BITNOT
        : pick == 14 ? SELECT
                     : (type == PTOWSP_TYPE_I64 ? TO_I64 : TO_U64);
    *out_operands = o == TO_I64 || o == TO_U64 ? any : type;
    return o;
}

// A tree at most so deep; with is_spine exactly one operand goes on, so that the tree gets deep and
// not large.
static random_expr random_tree(generator *g, ptowsp_type type, int depth, bool is_spine) {
    if (depth <= 0 || (!is_spine && test_random(&g->random) % 8 == 0)) {
        return random_leaf(g, type);
    }
    if (type != PTOWSP_TYPE_BOOL && depth > 1 && test_random(&g->random) % 6 == 0) {
        return random_read(g, type == PTOWSP_TYPE_I64, depth - 1, is_spine);
    }
    ptowsp_type operands;
    op o = random_op(g, type, &operands);
    int count = arity(o), deep = (int)(test_random(&g->random) % (uint64_t)count);
    random_expr x[3] = {0};
    for (int i = 0; i < count; i++) {
        ptowsp_type wanted = o == SELECT ? (i ? type : PTOWSP_TYPE_BOOL) : operands;
        x[i] = random_tree(g, wanted, is_spine && i != deep ? 0 : depth - 1, is_spine && i == deep);
    }
    random_expr tree;
    tree.v = apply(o, x[0].v, x[1].v, x[2].v);
    tree.is_fault = x[0].is_fault;
    if (o == SELECT) {
        tree.expr = ptowsp_select(x[0].expr, x[1].expr, x[2].expr);
        tree.is_fault = tree.is_fault || x[x[0].v.cell ? 1 : 2].is_fault;
    } else if (count == 2) {
        bool is_looked_at = !(o == AND && !x[0].v.cell) && !(o == OR && x[0].v.cell);
        tree.expr = ops[o].binary(x[0].expr, x[1].expr);
        tree.is_fault = tree.is_fault || (is_looked_at && x[1].is_fault);
    } else {
        tree.expr = ops[o].unary(x[0].expr);
    }
    return tree;
}

static void bind_environment(const evaluator *e, const environment *env) {
    for (int i = 0; i < SYMBOL_COUNT; i++) {
        const char name[3] = {'s', (char)('0' + i), '\0'};
        ptowsp_run_bind_symbol(e->run, name, env->symbols[i]);  // may not be used
    }
    for (uint32_t i = 0; i < CELL_COUNT; i++) {
        assert_ok(ptowsp_run_bind_slot(e->run, i, env->slots[i]));
    }
    ptowsp_run_bind_array(e->run, "ai", PTOWSP_I32, env->ai, CELL_COUNT);
    ptowsp_run_bind_array(e->run, "au", PTOWSP_U8, env->au, CELL_COUNT);
}

static void check_random(uint64_t seed, int depth, bool is_spine) {
    fixture f;
    environment env;
    fixture_make(&f);
    generator g = {f.m, &env, seed};
    for (int i = 0; i < CELL_COUNT; i++) {
        env.symbols[i % SYMBOL_COUNT] = random_cell(&g.random);
        env.slots[i] = random_cell(&g.random);
        env.ai[i] = (int32_t)test_random_in(&g.random, -4, 12);
        env.au[i] = (uint8_t)(test_random(&g.random) % 256);
    }
    ptowsp_type type = (ptowsp_type)(1 + test_random(&g.random) % 3);
    random_expr tree = random_tree(&g, type, depth, is_spine);
    if (tree.expr.id == 0) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, ptowsp_module_error(f.m).text);
    }
    assert_int_equal(ptowsp_expr_type(tree.expr), type);
    const char *text = printed(tree.expr);
    parser p = {text, &env, true, false};
    value read = parse_ternary(&p);
    if (*p.at != '\0' || read.type != type || p.is_fault != tree.is_fault ||
        (!p.is_fault && read.cell != tree.v.cell)) {
        fail_msg("seed %llu: the text means something else: %s", (unsigned long long)seed, text);
    }
    evaluator e = evaluator_make(&f, tree.expr);
    bind_environment(&e, &env);
    ptowsp_status status = ptowsp_run_execute(e.run, NULL);
    if (status != (tree.is_fault ? PTOWSP_INVALID_PARAMS : PTOWSP_OK) ||
        (!tree.is_fault && ptowsp_run_slot(e.run, VALUE_SLOT) != tree.v.cell)) {
        fail_msg("seed %llu: %s gives %llx, not %llx: %s", (unsigned long long)seed, text,
                 (unsigned long long)ptowsp_run_slot(e.run, VALUE_SLOT),
                 (unsigned long long)tree.v.cell, ptowsp_context_error(f.context).text);
    }
    evaluator_free(&e);
    fixture_free(&f);
}

TEST(expr_text__text_and_code_mean_the_same_for_random_trees) {
    uint64_t seed = test_seed();
    for (uint64_t i = 0; i < 3000; i++) {
        check_random(seed + i, (int)(1 + i % 7), false);
    }
}

TEST(expr_text__text_and_code_mean_the_same_for_deep_trees) {
    uint64_t seed = test_seed();
    for (uint64_t i = 0; i < 300; i++) {
        check_random(seed * 31 + i, PTOWSP_EXPR_DEPTH_MAX, true);
    }
}
