// A libFuzzer target: bytes are a program of a stack machine, which builds an expression and, beside
// it, works out its value. The expression is compiled and run, with slots that the run sets, and must
// have that value.

#include "expr_reference.h"
#include "bytes.h"

enum { STACK_MAX = 64, STEP_MAX = 200, SLOT_COUNT = 2 };

typedef struct term {
    ptowsp_expr expr;
    ptowsp_type type;
    uint64_t cell;
} term;

typedef struct machine {
    fixture f;
    uint64_t slots[SLOT_COUNT];
    term stack[STACK_MAX];
    uint32_t count;
} machine;

static ptowsp_type take_type(bytes *in) {
    return (ptowsp_type)(PTOWSP_TYPE_BOOL + take_below(in, 3));
}

static uint64_t take_cell(bytes *in) {
    uint32_t kind = take_below(in, 64);
    return kind < VALUE_COUNT ? values[kind] : take(in, kind % 8 + 1);
}

// A literal or a slot.
static void push_leaf(machine *m, bytes *in) {
    uint32_t where = take_below(in, 4);
    term *t = &m->stack[m->count++];
    t->type = take_type(in);
    if (where < SLOT_COUNT) {
        t->cell = m->slots[where];
        t->expr = ptowsp_slot(m->f.m, where, t->type);
    } else {
        t->cell = take_cell(in);
        t->expr = literal(m->f.m, t->type, t->cell);
    }
    t->cell = t->type == PTOWSP_TYPE_BOOL ? t->cell != 0 : t->cell;
}

// Takes the operator's operands from the stack, if their types are right, and pushes the result.
static void apply(machine *m, op o) {
    uint32_t count = (uint32_t)arity(o);
    if (m->count < count) {
        return;
    }
    term *t = &m->stack[m->count - count], none = {{NULL, 0}, PTOWSP_TYPE_NONE, 0};
    const term a = t[0], b = count > 1 ? t[1] : none, c = count > 2 ? t[2] : none;
    ptowsp_type type = result_type(o, a.type, b.type, c.type);
    if (type == PTOWSP_TYPE_NONE) {
        return;
    }
    m->count -= count - 1;
    t->type = type;
    if (o == SELECT) {
        t->expr = ptowsp_select(a.expr, b.expr, c.expr);
        t->cell = a.cell ? b.cell : c.cell;
    } else {
        t->expr = count == 2 ? ops[o].binary(a.expr, b.expr) : ops[o].unary(a.expr);
        t->cell = meaning(o, a.type, a.cell, b.cell);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bytes in = {data, size};
    machine m = {0};
    fixture_make(&m.f);
    for (uint32_t i = 0; i < SLOT_COUNT; i++) {
        m.slots[i] = take_cell(&in);
    }
    for (uint32_t step = 0; step < STEP_MAX && in.size > 0; step++) {
        uint32_t o = take_below(&in, OP_COUNT + 16);
        if (o < OP_COUNT) {
            apply(&m, (op)o);
        } else if (m.count < STACK_MAX) {
            push_leaf(&m, &in);
        }
    }
    if (m.count > 0) {
        const term *top = &m.stack[m.count - 1];
        REQUIRE(ptowsp_expr_type(top->expr) == top->type);
        evaluator e = evaluator_make(&m.f, top->expr);
        for (uint32_t i = 0; i < SLOT_COUNT; i++) {
            REQUIRE(ptowsp_run_bind_slot(e.run, i, m.slots[i]) == PTOWSP_OK);
        }
        REQUIRE(evaluator_value(&e) == top->cell);
        evaluator_free(&e);
    }
    fixture_free(&m.f);
    return 0;
}
