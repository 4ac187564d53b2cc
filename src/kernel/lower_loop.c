// Lowering of loops and carried values.
//
//      before     factors of the body's products that are made outside, to L1
//                 each carried value to its home: a tile that lives from here to its last use
//      LOOP
//        body     reads homes; may compute into a home when the body needs it no more
//        moves    of all next values to their homes, as if at once
//      END
//
// A home is the tile of the initial value itself, where nothing else needs that. The home of a sum
// that only a chain of TMATMUL_ACC of the loop adds to is in L0C; a sum that begins with 0 begins
// there as a product of zeros, as nothing else writes to L0C. In a loop inside another one, the
// first product begins it instead (pwsp_lower_beginning): its stores are then checked to have the
// sizes of the products.

#include "lower.h"

#include "passes.h"

// -- uses -----------------------------------------------------------------------------------------

// The operation up to which a value of loop `of` is needed, when operation `at` of `loop` uses it:
// that, or the end of the outermost loop around `at` that is not around the value.
static uint32_t pwsp_lower_until(const ptowsp_body *body, uint32_t at, uint32_t loop, uint32_t of) {
    while (!pwsp_loop_is_within(body->loops, of, loop)) {
        at = body->loop_ends[loop];
        loop = body->loops[loop].parent;
    }
    return at;
}

void pwsp_lower_use(pwsp_lowering *lw, uint32_t value, uint32_t at, uint32_t loop) {
    const pwsp_kop *op = &lw->body->ops[value];
    pwsp_lowered *use = &lw->values[value];
    use->uses++;
    if (op->kind == PWSP_KOP_CARRY && !pwsp_loop_is_within(lw->body->loops, loop, op->loop)) {
        uint32_t end = pwsp_lower_until(lw->body, at, loop, lw->body->loops[op->loop].parent);
        use->after = end > use->after ? end : use->after;
        return;
    }
    uint32_t end = pwsp_lower_until(lw->body, at, loop, op->loop);
    use->last = end > use->last ? end : use->last;
}

// -- homes ----------------------------------------------------------------------------------------

// The value that a carried one becomes.
static uint32_t pwsp_lower_next(const ptowsp_body *body, uint32_t carry) {
    return body->ops[pwsp_body_next(body, carry)].src[1];
}

// Do the valid sizes of a product stay as they are while a loop runs?
static bool pwsp_lower_is_steady(const ptowsp_body *body, const pwsp_valid *valid, uint32_t loop) {
    return !pwsp_loop_is_within(body->loops, valid->loop, loop) || valid->loop == 0;
}

// The first of a chain of products, each used by the next one alone, that make the next value of a
// carried one and are all that its loop does with it; 0: it has other uses.
static uint32_t pwsp_lower_chain(const ptowsp_body *body, uint32_t carry) {
    const pwsp_kop *op = &body->ops[carry];
    uint32_t at = pwsp_lower_next(body, carry), first = 0;
    while (at != carry) {
        const pwsp_kop *product = &body->ops[at];
        if (product->kind != PWSP_KOP_MATMUL_ACC || product->loop != op->loop ||
            pwsp_body_use_count(body, at) != 1 ||
            !pwsp_lower_is_steady(body, &product->valid_rows, op->loop) ||
            !pwsp_lower_is_steady(body, &product->valid_cols, op->loop)) {
            return 0;
        }
        first = at;
        at = product->src[2];
    }
    for (uint32_t i = body->loop_begins[op->loop]; i < body->loop_ends[op->loop]; i++) {
        const pwsp_kop *user = &body->ops[i];
        for (uint32_t j = 0; j < PWSP_KOP_SRC_MAX && !user->is_dead; j++) {
            bool is_chain = (i == first && j == 2) || (user->kind == PWSP_KOP_NEXT && j == 0);
            if (user->src[j] == carry && !is_chain) {
                return 0;
            }
        }
        for (uint32_t j = 0; j < PWSP_INSN_SRC_MAX && user->kind == PWSP_KOP_INSTRUCTION; j++) {
            if (body->insns[user->param - 1].src[j] == carry) {
                return 0;
            }
        }
    }
    return first;
}

// May the sum be in L0C?
static bool pwsp_lower_is_sum(const pwsp_lowering *lw, uint32_t carry) {
    const ptowsp_body *body = lw->body;
    const pwsp_kop *op = &body->ops[carry], *first = &body->ops[op->src[0]];
    if (!pwsp_lower_chain(body, carry)) {
        return false;
    }
    if (first->kind == PWSP_KOP_FULL) {
        return first->value == 0;
    }
    return lw->values[op->src[0]].acc && lw->values[op->src[0]].uses == 1 &&
           first->kind != PWSP_KOP_CARRY && first->loop == body->loops[op->loop].parent;
}

uint32_t pwsp_lower_beginning(const ptowsp_body *body, uint32_t carry) {
    const pwsp_kop *op = &body->ops[carry], *initial = &body->ops[op->src[0]];
    const pwsp_list_loop *loop = &body->loops[op->loop];
    if (op->kind != PWSP_KOP_CARRY || initial->kind != PWSP_KOP_FULL || initial->value != 0 ||
        loop->parent == 0 || !pwsp_loop_runs(loop)) {
        return 0;
    }
    for (uint64_t i = body->loop_ends[op->loop] + 1u; i < body->op_count; i++) {
        const pwsp_kop *user = &body->ops[i];
        bool is_store = user->kind == PWSP_KOP_STORE || user->kind == PWSP_KOP_STORE_ADD;
        for (uint32_t j = 0; j < PWSP_KOP_SRC_MAX && !user->is_dead && !is_store; j++) {
            if (user->src[j] == carry) {
                return 0;
            }
        }
        for (uint32_t j = 0; j < PWSP_INSN_SRC_MAX && user->kind == PWSP_KOP_INSTRUCTION; j++) {
            if (body->insns[user->param - 1].src[j] == carry) {
                return 0;
            }
        }
    }
    return pwsp_lower_chain(body, carry);
}

bool pwsp_lower_is_in_acc(const pwsp_lowering *lw, uint32_t carry) {
    const pwsp_kop *op = &lw->body->ops[carry];
    return op->kind == PWSP_KOP_CARRY && lw->values[carry].acc &&
           lw->body->ops[lw->at].loop == op->loop;
}

bool pwsp_lower_is_zero_sum(const pwsp_lowering *lw, uint32_t value) {
    const ptowsp_body *body = lw->body;
    uint32_t sums = 0;
    for (uint32_t i = value + 1; i < body->op_count; i++) {
        const pwsp_kop *op = &body->ops[i];
        sums += op->kind == PWSP_KOP_CARRY && !op->is_dead && op->src[0] == value &&
                pwsp_lower_is_sum(lw, i);
    }
    return sums > 0 && sums == lw->values[value].uses;
}

// Is a sum of L0C needed in UB after its loop?
static bool pwsp_lower_sum_feeds(const ptowsp_body *body, uint32_t carry) {
    for (uint64_t i = body->loop_ends[body->ops[carry].loop] + 1u; i < body->op_count; i++) {
        const pwsp_kop *op = &body->ops[i];
        bool is_store = op->kind == PWSP_KOP_STORE || op->kind == PWSP_KOP_STORE_ADD;
        bool is_matmul = op->kind == PWSP_KOP_MATMUL || op->kind == PWSP_KOP_MATMUL_ACC ||
                         op->kind == PWSP_KOP_MATMUL_BIAS;
        for (uint32_t j = 0; j < PWSP_KOP_SRC_MAX && !op->is_dead && !is_store; j++) {
            if (op->src[j] == carry && !(is_matmul && j != 2)) {
                return true;
            }
        }
        for (uint32_t j = 0; j < PWSP_INSN_SRC_MAX && op->kind == PWSP_KOP_INSTRUCTION; j++) {
            if (body->insns[op->param - 1].src[j] == carry) {
                return true;
            }
        }
    }
    return false;
}

// Does another value, needed in the loop or after it, share bytes with this one? (Transposed
// vectors share their operand's bytes.)
static bool pwsp_lower_is_shared(const pwsp_lowering *lw, uint32_t value) {
    const pwsp_list_tile *tiles = lw->list->tiles;
    uint32_t root = tiles[lw->values[value].tile].root;
    for (uint32_t i = 1; i < lw->at; i++) {
        const pwsp_lowered *other = &lw->values[i];
        if (i != value && other->tile && tiles[other->tile].root == root && other->last > lw->at) {
            return true;
        }
    }
    return false;
}

static void pwsp_lower_home(pwsp_lowering *lw, uint32_t carry) {
    const ptowsp_body *body = lw->body;
    const pwsp_kop *op = &body->ops[carry], *from = &body->ops[op->src[0]];
    const pwsp_lowered *first = &lw->values[op->src[0]];
    pwsp_lowered *home = &lw->values[carry];
    if (pwsp_lower_is_sum(lw, carry)) {
        uint32_t beginning = pwsp_lower_beginning(body, carry);
        const pwsp_kop *product = &body->ops[pwsp_lower_next(body, carry)];
        home->begins = beginning ? op->loop : 0;
        home->acc = beginning ? pwsp_lower_empty_sum(lw, op, body->ops[product->src[0]].dtype)
                    : from->kind == PWSP_KOP_FULL
                        ? pwsp_lower_zeros(lw, op, body->ops[product->src[0]].dtype)
                        : first->acc;
        return;
    }
    bool is_free = first->uses == 1 && from->loop == body->loops[op->loop].parent &&
                   from->kind != PWSP_KOP_CARRY && first->tile &&
                   lw->list->tiles[first->tile].root == first->tile &&
                   !pwsp_lower_is_shared(lw, op->src[0]);
    home->tile =
        is_free ? first->tile
                : pwsp_lower_vec(lw, op->dtype, op->rows, op->cols, op->valid_rows, op->valid_cols);
    if (!lw->is_out && !is_free) {
        uint32_t to = pwsp_lower_flat(lw, home->tile);
        pwsp_insn_emit(lw, PTOISA_TMOV, to, pwsp_lower_flat(lw, first->tile), 0, 0);
    }
    if (home->tile) {
        lw->list->tiles[home->tile].last = home->last;
    }
}

// -- loops ----------------------------------------------------------------------------------------

void pwsp_lower_loop(pwsp_lowering *lw, const pwsp_kop *op) {
    const ptowsp_body *body = lw->body;
    uint32_t begin = lw->at, loop = op->param;
    for (uint32_t i = begin; i < body->loop_ends[loop] && !lw->is_out; i++) {
        const pwsp_kop *product = &body->ops[i];
        for (uint32_t j = 0; j < 2 && pwsp_kop_is_product(product) && !product->is_dead; j++) {
            const pwsp_kop *factor = &body->ops[product->src[j]];
            bool is_kept = factor->kind != PWSP_KOP_ALLOC &&
                           (factor->kind != PWSP_KOP_PARAM ||
                            body->tiles[factor->param - 1].direction == PTOWSP_IN);
            bool is_left = j == 0;
            pwsp_lowered *value = &lw->values[product->src[j]];
            if (product->src[j] < begin && is_kept && !value->mats[is_left] && !value->panel.tile) {
                value->mats[is_left] = pwsp_lower_factor(lw, product->src[j], is_left);
                value->mat_loops[is_left] = loop;
            }
        }
    }
    for (uint32_t i = begin; i < body->loop_ends[loop] && !lw->is_out; i++) {
        if (body->ops[i].kind == PWSP_KOP_CARRY && body->ops[i].loop == loop) {
            pwsp_lower_home(lw, i);
        }
    }
    pwsp_insn_emit(lw, (ptoisa_op)PWSP_INSN_LOOP, 0, 0, 0, 0)->loop = (uint8_t)loop;
}

// A next value on its way to its home.
typedef struct pwsp_lower_move {
    uint32_t home, from;  // tiles; from 0: it is there
} pwsp_lower_move;

// The elements of the home that the next value has.
static uint32_t pwsp_lower_part_of(pwsp_lowering *lw, uint32_t home, const pwsp_kop *next) {
    pwsp_list_tile of = lw->list->tiles[home];
    if (pwsp_valid_is_equal(&of.valid_rows, &next->valid_rows) &&
        pwsp_valid_is_equal(&of.valid_cols, &next->valid_cols)) {
        return home;
    }
    return pwsp_lower_view(lw, home, (ptoisa_layout)of.layout, of.dtype, of.rows, of.cols,
                           next->valid_rows, next->valid_cols, 0);
}

// The home has all elements of the initial value, and results may have fewer: as many as the next
// value, or else elements would change that are to stay.
uint32_t pwsp_lower_in_home(pwsp_lowering *lw, const pwsp_kop *op, uint32_t operand) {
    const ptowsp_body *body = lw->body;
    uint32_t tile = lw->values[operand].tile, root = lw->list->tiles[tile].root;
    const pwsp_list_tile *of = &lw->list->tiles[tile], *home = &lw->list->tiles[root];
    const pwsp_kop *was = &body->ops[operand];
    if (op->loop == 0 || was->loop != op->loop || home->last != lw->at || of->offset ||
        of->layout != home->layout || of->rows != home->rows || of->cols != home->cols ||
        of->dtype != home->dtype || home->dtype != op->dtype || was->rows != op->rows ||
        was->cols != op->cols) {
        return 0;
    }
    for (uint32_t i = body->loop_begins[op->loop]; i < lw->at; i++) {
        uint32_t at = lw->values[i].tile;
        if (body->ops[i].kind != PWSP_KOP_CARRY || body->ops[i].loop != op->loop || at == 0 ||
            lw->list->tiles[at].root != root) {
            continue;
        }
        const pwsp_kop *next = &body->ops[pwsp_lower_next(body, i)];
        return pwsp_valid_is_equal(&next->valid_rows, &op->valid_rows) &&
                       pwsp_valid_is_equal(&next->valid_cols, &op->valid_cols)
                   ? pwsp_lower_part_of(lw, tile, op)
                   : 0;
    }
    return 0;
}

// A move whose home no other move reads, or count.
static uint32_t pwsp_lower_ready(const pwsp_lowering *lw, const pwsp_lower_move *moves,
                                 uint32_t count) {
    const pwsp_list_tile *tiles = lw->list->tiles;
    for (uint32_t i = 0; i < count; i++) {
        bool is_read = moves[i].from == 0;
        for (uint32_t j = 0; j < count; j++) {
            is_read = is_read || (j != i && moves[j].from &&
                                  tiles[moves[j].from].root == tiles[moves[i].home].root);
        }
        if (!is_read) {
            return i;
        }
    }
    return count;
}

// Moves all next values to their homes; where they go in a circle, one of them by way of a tile of
// its own.
static void pwsp_lower_moves(pwsp_lowering *lw, pwsp_lower_move *moves, uint32_t count) {
    for (uint32_t left = count; left > 0 && !lw->is_out;) {
        uint32_t i = pwsp_lower_ready(lw, moves, count);
        if (i < count) {
            uint32_t to = pwsp_lower_flat(lw, moves[i].home);
            pwsp_insn_emit(lw, PTOISA_TMOV, to, pwsp_lower_flat(lw, moves[i].from), 0, 0);
            moves[i].from = 0;
            left--;
            continue;
        }
        for (i = 0; moves[i].from == 0;) {
            i++;
        }
        pwsp_list_tile of = lw->list->tiles[moves[i].from];
        uint32_t between =
            pwsp_lower_tile(lw, (ptoisa_memory)of.memory, (ptoisa_layout)of.layout, of.dtype,
                            of.rows, of.cols, of.valid_rows, of.valid_cols);
        if (!lw->is_out) {
            uint32_t to = pwsp_lower_flat(lw, between);
            pwsp_insn_emit(lw, PTOISA_TMOV, to, pwsp_lower_flat(lw, moves[i].from), 0, 0);
            moves[i].from = between;
        }
    }
}

void pwsp_lower_end(pwsp_lowering *lw, const pwsp_kop *op) {
    const ptowsp_body *body = lw->body;
    pwsp_lower_move moves[PTOWSP_LOOP_CARRY_MAX];
    uint32_t count = 0, loop = op->param, begin = body->loop_begins[loop];
    for (uint32_t i = begin; i < lw->at && !lw->is_out; i++) {
        if (body->ops[i].kind != PWSP_KOP_CARRY || body->ops[i].loop != loop || lw->values[i].acc) {
            continue;
        }
        uint32_t next = pwsp_lower_next(body, i), home = lw->values[i].tile;
        uint32_t from = lw->values[next].tile;
        const pwsp_list_tile *to = &lw->list->tiles[home], *of = &lw->list->tiles[from];
        if (of->root == to->root && of->offset == to->offset) {
            continue;  // it was computed there
        }
        PTOWSP_ASSERT(count < PTOWSP_LOOP_CARRY_MAX);
        moves[count].home = pwsp_lower_part_of(lw, home, &body->ops[next]);
        moves[count++].from = from;
    }
    pwsp_lower_moves(lw, moves, count);
    pwsp_insn_emit(lw, (ptoisa_op)PWSP_INSN_END, 0, 0, 0, 0)->loop = (uint8_t)loop;
    for (uint32_t i = 1; i < body->op_count && !lw->is_out; i++) {
        pwsp_lowered *value = &lw->values[i];
        for (uint32_t side = 0; side < 2; side++) {
            if (value->mat_loops[side] == loop) {
                value->mats[side] = value->mat_loops[side] = 0;
            }
        }
        if (body->ops[i].kind != PWSP_KOP_CARRY || body->ops[i].loop != loop) {
            continue;
        }
        value->last = value->after;
        if (value->acc && pwsp_lower_sum_feeds(body, i)) {
            value->tile = pwsp_lower_to_vec(lw, value->acc, &body->ops[i]);
        }
        if (value->tile) {
            lw->list->tiles[lw->list->tiles[value->tile].root].last = value->after;
        }
    }
}
