// Passes over bodies, in the order in which they run.
//
//      canonicalise   c op x -> x op c;  vector op x -> x op vector;  cvt to the same type, and
//                     operations that undo themselves (transpose, neg): -> x
//      fold           op of two constants -> a constant
//      drop dead      values that no store depends on; loops and carried values stay
//      fuse           matmul + row of biases -> matmul_bias;  relu(matmul) stored -> a store with
//                     relu. Only if the body asks for it, as it changes the cost; and never
//                     from one loop into another.
//
// Bodies usually have some tens of operations, so a pass may scan all of them to answer a question.

#include "passes.h"

#include "builder.h"

// -- questions ------------------------------------------------------------------------------------

static uint32_t pwsp_insn_uses(const pwsp_body_insn *insn, uint32_t value) {
    uint32_t count = (insn->tmp == value ? 1u : 0) + (insn->scalar == value ? 1u : 0);
    for (uint32_t i = 0; i < PWSP_INSN_DST_MAX; i++) {
        count += insn->dst[i] == value;
    }
    for (uint32_t i = 0; i < PWSP_INSN_SRC_MAX; i++) {
        count += insn->src[i] == value;
    }
    return count;
}

uint32_t pwsp_body_use_count(const ptowsp_body *body, uint32_t value) {
    uint32_t count = 0;
    for (uint64_t i = 1; i < body->op_count; i++) {
        const pwsp_kop *op = &body->ops[i];
        if (op->is_dead) {
            continue;
        }
        if (op->kind == PWSP_KOP_INSTRUCTION) {
            count += pwsp_insn_uses(&body->insns[op->param - 1], value);
        }
        for (uint32_t j = 0; j < PWSP_KOP_SRC_MAX; j++) {
            count += op->src[j] == value;
        }
    }
    return count;
}

// Is a value the same wherever it is read? Instructions write allocated tiles; matrix products and
// slices read a parameter where they stand, which may be after it has been stored to.
static bool pwsp_body_is_fixed(const ptowsp_body *body, uint32_t value) {
    const pwsp_kop *op = &body->ops[value];
    return op->kind != PWSP_KOP_ALLOC &&
           !(op->kind == PWSP_KOP_PARAM && body->tiles[op->param - 1].is_stored);
}

// Puts one value in the place of another, from there on, unless that may have changed by then.
static void pwsp_body_replace(ptowsp_body *body, uint32_t value, uint32_t by) {
    if (!pwsp_body_is_fixed(body, by)) {
        return;
    }
    for (uint64_t i = value + 1; i < body->op_count; i++) {
        pwsp_kop *op = &body->ops[i];
        for (uint32_t j = 0; j < PWSP_KOP_SRC_MAX; j++) {
            op->src[j] = op->src[j] == value ? by : op->src[j];
        }
        if (op->kind == PWSP_KOP_INSTRUCTION) {
            pwsp_body_insn *insn = &body->insns[op->param - 1];
            for (uint32_t j = 0; j < PWSP_INSN_SRC_MAX; j++) {
                insn->src[j] = insn->src[j] == value ? by : insn->src[j];
            }
        }
    }
}

// -- canonicalise ---------------------------------------------------------------------------------

static bool pwsp_kind_is_commutative(uint8_t kind) {
    return kind == PWSP_KOP_ADD || kind == PWSP_KOP_MUL || kind == PWSP_KOP_MAX ||
           kind == PWSP_KOP_MIN;
}

void pwsp_pass_canonicalise(ptowsp_body *body) {
    for (uint64_t i = 1; i < body->op_count; i++) {
        pwsp_kop *op = &body->ops[i];
        const pwsp_kop *x = &body->ops[op->src[0]], *y = &body->ops[op->src[1]];
        if (pwsp_kind_is_commutative(op->kind) && op->rows &&
            (pwsp_kop_is_scalar(x) ||
             (!pwsp_kop_is_scalar(y) && (x->rows != op->rows || x->cols != op->cols)))) {
            uint32_t left = op->src[0];
            op->src[0] = op->src[1];
            op->src[1] = left;
        } else if (op->kind == PWSP_KOP_CVT && op->dtype == x->dtype) {
            pwsp_body_replace(body, (uint32_t)i, op->src[0]);
        } else if ((op->kind == PWSP_KOP_TRANSPOSE || op->kind == PWSP_KOP_NEG) &&
                   x->kind == op->kind) {
            pwsp_body_replace(body, (uint32_t)i, x->src[0]);
        }
    }
}

// -- fold -----------------------------------------------------------------------------------------

static double pwsp_fold(uint8_t kind, double x, double y) {
    switch (kind) {
    case PWSP_KOP_ADD: return x + y;
    case PWSP_KOP_SUB: return x - y;
    case PWSP_KOP_MUL: return x * y;
    case PWSP_KOP_DIV: return x / y;
    case PWSP_KOP_MAX: return x != x || x > y ? x : y;
    default: return x != x || x < y ? x : y;
    }
}

void pwsp_pass_fold(ptowsp_body *body) {
    for (uint64_t i = 1; i < body->op_count; i++) {
        pwsp_kop *op = &body->ops[i];
        if (op->kind < PWSP_KOP_ADD || op->kind > PWSP_KOP_MIN || op->rows) {
            continue;
        }
        double value =
            pwsp_fold(op->kind, body->ops[op->src[0]].value, body->ops[op->src[1]].value);
        memset(op, 0, sizeof *op);
        op->kind = PWSP_KOP_CONST;
        op->value = value;
    }
}

// -- drop dead ------------------------------------------------------------------------------------

static bool pwsp_kind_has_effect(uint8_t kind) {
    return kind == PWSP_KOP_STORE || kind == PWSP_KOP_STORE_ADD || kind == PWSP_KOP_INSTRUCTION ||
           kind == PWSP_KOP_LOOP || kind == PWSP_KOP_PRELOAD || kind == PWSP_KOP_END ||
           kind == PWSP_KOP_NEXT;
}

// Adds `by`, 1 or -1, to the use counts of an operation's operands.
static void pwsp_body_count_uses(const ptowsp_body *body, const pwsp_kop *op, uint32_t *uses,
                                 uint32_t by) {
    for (uint32_t j = 0; j < PWSP_KOP_SRC_MAX; j++) {
        uses[op->src[j]] += by;
    }
    if (op->kind == PWSP_KOP_INSTRUCTION) {
        const pwsp_body_insn *insn = &body->insns[op->param - 1];
        for (uint32_t j = 0; j < PWSP_INSN_DST_MAX; j++) {
            uses[insn->dst[j]] += by;
        }
        for (uint32_t j = 0; j < PWSP_INSN_SRC_MAX; j++) {
            uses[insn->src[j]] += by;
        }
        uses[insn->tmp] += by;
        uses[insn->scalar] += by;
    }
}

// Backwards: what only dead operations use is dead.
void pwsp_pass_drop_dead(ptowsp_body *body, uint32_t *uses) {
    for (uint64_t i = 1; i < body->op_count; i++) {
        pwsp_body_count_uses(body, &body->ops[i], uses, 1);
    }
    for (uint64_t i = body->op_count; i-- > 1;) {
        pwsp_kop *op = &body->ops[i];
        op->is_dead = !pwsp_kind_has_effect(op->kind) && uses[i] == 0;
        if (op->is_dead) {
            pwsp_body_count_uses(body, op, uses, UINT32_MAX);
        }
    }
}

// -- fuse -----------------------------------------------------------------------------------------

// Is the value a product that one operation uses alone?
static bool pwsp_fuse_takes(const ptowsp_body *body, const pwsp_kop *op, uint32_t value) {
    return body->ops[value].kind == PWSP_KOP_MATMUL && body->ops[value].loop == op->loop &&
           pwsp_body_use_count(body, value) == 1;
}

static void pwsp_fuse_bias(ptowsp_body *body, pwsp_kop *op) {
    pwsp_kop *product = &body->ops[op->src[0]];
    const pwsp_kop *bias = &body->ops[op->src[1]];
    // A bias in L1 is of the product's type; on a square tile a vector is a value for each row.
    if (!pwsp_fuse_takes(body, op, op->src[0]) || bias->rows != 1 || bias->cols != op->cols ||
        op->rows == op->cols || op->cols * 4 > body->machine.memory_size[PTOISA_BIAS] ||
        !pwsp_valid_is_equal(&product->valid_rows, &op->valid_rows) ||
        !pwsp_valid_is_equal(&product->valid_cols, &op->valid_cols)) {
        return;
    }
    // The product moves to where the sum is, and reads its factors and the bias there.
    if (!pwsp_body_is_fixed(body, product->src[0]) || !pwsp_body_is_fixed(body, product->src[1]) ||
        !pwsp_body_is_fixed(body, op->src[1])) {
        return;
    }
    uint32_t a = product->src[0], b = product->src[1], row = op->src[1];
    product->is_dead = true;
    op->kind = PWSP_KOP_MATMUL_BIAS;
    op->src[0] = a;
    op->src[1] = b;
    op->src[2] = row;
}

static void pwsp_fuse_relu(ptowsp_body *body, pwsp_kop *store) {
    pwsp_kop *relu = &body->ops[store->src[0]];
    if (relu->kind != PWSP_KOP_RELU || pwsp_body_use_count(body, store->src[0]) != 1) {
        return;
    }
    uint32_t product = relu->src[0];
    uint8_t kind = body->ops[product].kind;
    if (relu->loop == store->loop && body->ops[product].loop == store->loop &&
        (kind == PWSP_KOP_MATMUL || kind == PWSP_KOP_MATMUL_BIAS) &&
        body->ops[product].dtype == PTOWSP_F32 && pwsp_body_use_count(body, product) == 1) {
        relu->is_dead = true;
        store->src[0] = product;
        store->mode = PWSP_VARIANT_RELU;
    }
}

void pwsp_pass_fuse(ptowsp_body *body) {
    if (!body->is_fused) {
        return;
    }
    for (uint64_t i = 1; i < body->op_count; i++) {
        pwsp_kop *op = &body->ops[i];
        if (!op->is_dead && op->kind == PWSP_KOP_ADD) {
            pwsp_fuse_bias(body, op);
        }
    }
    for (uint64_t i = 1; i < body->op_count; i++) {
        pwsp_kop *op = &body->ops[i];
        if (!op->is_dead && op->kind == PWSP_KOP_STORE) {
            pwsp_fuse_relu(body, op);
        }
    }
}

// -- all ------------------------------------------------------------------------------------------

// Keeps the operations that are not as they were.
static bool pwsp_body_keep_ops(ptowsp_body *body, pwsp_kop *was) {
    uint32_t count = 0;
    for (uint64_t i = 1; i < body->op_count; i++) {
        was[i].is_dead = body->ops[i].is_dead;
        count += memcmp(&was[i], &body->ops[i], sizeof was[i]) != 0;
    }
    if (count == 0) {
        return true;
    }
    body->changes =
        (pwsp_body_change *)pwsp_memory_take(&body->memory, count * sizeof body->changes[0]);
    for (uint64_t i = 1; i < body->op_count && body->changes; i++) {
        if (memcmp(&was[i], &body->ops[i], sizeof was[i]) != 0) {
            pwsp_body_change *change = &body->changes[body->change_count++];
            change->op = (uint32_t)i;
            change->was = was[i];
        }
    }
    return body->changes != NULL;
}

bool pwsp_pass_all(ptowsp_body *body, pwsp_arena *arena) {
    const size_t ops_size = (size_t)body->op_count * sizeof body->ops[0];
    const size_t insns_size = (size_t)body->insn_count * sizeof body->insns[0];
    const pwsp_arena_mark mark = pwsp_arena_here(arena);
    pwsp_kop *was = (pwsp_kop *)pwsp_arena_take(arena, ops_size, 8);
    pwsp_body_insn *asked =
        insns_size ? (pwsp_body_insn *)pwsp_memory_take(&body->memory, insns_size) : NULL;
    uint32_t *uses = (uint32_t *)pwsp_arena_alloc(arena, (size_t)body->op_count * sizeof *uses, 8);
    bool is_kept = was && uses && (asked || insns_size == 0);
    if (is_kept) {
        memcpy(was, body->ops, ops_size);
        if (asked) {
            memcpy(asked, body->insns, insns_size);
        }
        pwsp_pass_canonicalise(body);
        pwsp_pass_fold(body);
        pwsp_pass_drop_dead(body, uses);
        pwsp_pass_fuse(body);
        is_kept = pwsp_body_keep_ops(body, was);
    }
    if (is_kept && asked && memcmp(asked, body->insns, insns_size) != 0) {
        body->asked = asked;
    } else {
        pwsp_memory_free(&body->memory, asked, insns_size);
    }
    pwsp_arena_back(arena, mark);
    return is_kept;
}
