// Lowering of matrix products, and of stores.
//
//      factor            product                      result
//      global --TLOAD--> L1 --TMOV--> L0A, L0B --TMATMUL--> L0C --TMOV--> UB, or TSTORE
//      UB ----TMOV----^
//      L0C ---TMOV----^
//
// A2/A3 moves f32 from L0C to L1 as f16 or bf16 only (checked 10): there an f32 product that is a
// factor goes through UB, and one that is converted for it narrows on its way in a fused kernel.
//
// A product whose factors do not fit L0A or L0B is cut along k: TEXTRACT takes panels out of L1,
// and TMATMUL_ACC adds to the first one's sum.

#include "lower.h"

#include "passes.h"

// A matrix in L1, padded to whole boxes of all layouts that it passes through. The left one's boxes
// have 16 rows in all types. So the sizes of L0 go together as TMATMUL's assertions want them
// (checked 9): rows of Left and Acc, columns of Left and rows of Right, columns of Right and Acc.
uint32_t pwsp_lower_matrix(pwsp_lowering *lw, uint8_t dtype, uint32_t rows, uint32_t cols,
                           pwsp_valid valid_rows, pwsp_valid valid_cols, bool is_left) {
    uint32_t unit = pwsp_block_elements(dtype) > 16 ? pwsp_block_elements(dtype) : 16;
    return pwsp_lower_tile(lw, PTOISA_MAT, PTOISA_NZ, dtype,
                           pwsp_round_up(rows, is_left ? 16 : unit), pwsp_round_up(cols, unit),
                           valid_rows, valid_cols);
}

// The operand of a matrix product, in L1.
uint32_t pwsp_lower_factor(pwsp_lowering *lw, uint32_t value, bool is_left) {
    const pwsp_kop *op = &lw->body->ops[value];
    const pwsp_lowered *at = &lw->values[value];
    if (at->mats[is_left]) {
        return at->mats[is_left];
    }
    uint32_t mat = pwsp_lower_matrix(lw, op->dtype, op->rows, op->cols, op->valid_rows,
                                     op->valid_cols, is_left);
    if (op->kind == PWSP_KOP_PARAM) {
        pwsp_insn_emit(lw, PTOISA_TLOAD, mat, 0, 0, 0)->param = (uint16_t)op->param;
    } else if (op->kind == PWSP_KOP_SLICE && at->tile == 0) {  // of a parameter, and only a factor
        pwsp_insn *load = pwsp_insn_emit(lw, PTOISA_TLOAD, mat, 0, 0, 0);
        load->param = (uint16_t)lw->body->ops[op->src[0]].param;
        pwsp_insn_set_window(load, op);
    } else {
        bool is_kept = at->acc && lw->list->tiles[at->acc].dtype == op->dtype &&
                       lw->body->machine.family == PTOISA_A2A3;
        uint32_t from = at->acc && !is_kept ? at->acc : at->tile;
        if (from == 0) {  // PTO-WSP counts one way
            from = pwsp_lower_to_vec(lw, at->acc, op);
            if (!lw->is_out) {
                lw->list->insns[lw->list->insn_count - 1].is_implied = true;
            }
        }
        pwsp_insn_emit(lw, PTOISA_TMOV, mat, from, 0, 0);
    }
    return mat;
}

// A factor as its product finds it: a whole tile in L1, or a part of one.
typedef struct pwsp_lower_operand {
    uint32_t tile, row, col;
    uint32_t rows, cols;  // as allocated
    pwsp_valid valid_rows, valid_cols;
    uint8_t dtype;
    bool is_part;
} pwsp_lower_operand;

static pwsp_lower_operand pwsp_lower_find_operand(pwsp_lowering *lw, uint32_t value, bool is_left) {
    const pwsp_lower_origin panel = lw->values[value].panel;
    pwsp_lower_operand operand;
    memset(&operand, 0, sizeof operand);
    operand.tile = panel.tile ? panel.tile : pwsp_lower_factor(lw, value, is_left);
    if (lw->is_out) {
        return operand;
    }
    const pwsp_list_tile *tile = &lw->list->tiles[operand.tile];
    operand.dtype = tile->dtype;
    operand.rows = tile->rows;
    operand.cols = tile->cols;
    operand.valid_rows = tile->valid_rows;
    operand.valid_cols = tile->valid_cols;
    if (panel.tile) {
        const pwsp_kop *op = &lw->body->ops[value];
        uint32_t unit = pwsp_block_elements(op->dtype) > 16 ? pwsp_block_elements(op->dtype) : 16;
        operand.row = panel.row;
        operand.col = panel.col;
        operand.rows = pwsp_round_up(op->rows, is_left ? 16 : unit);
        operand.cols = pwsp_round_up(op->cols, unit);
        operand.valid_rows = op->valid_rows;
        operand.valid_cols = op->valid_cols;
        operand.is_part = operand.rows != tile->rows || operand.cols != tile->cols;
    }
    return operand;
}

// The longest piece of k whose panels fit L0A and L0B, two at a time; all of k if it fits once. In loops
// that preload, all of k must fit twice, so that MTE1 can run ahead of the products.
static uint32_t pwsp_lower_piece(const pwsp_lowering *lw, const pwsp_lower_operand *a,
                                 const pwsp_lower_operand *b) {
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)a->dtype);
    const uint32_t *memory = lw->body->machine.memory_size;
    uint64_t left = (uint64_t)a->rows * a->cols * size, right = (uint64_t)b->rows * b->cols * size;
    uint32_t places = lw->body->loops[lw->body->ops[lw->at].loop].preload ? 2 : 1;
    if (places * left <= memory[PTOISA_LEFT] && places * right <= memory[PTOISA_RIGHT]) {
        return a->cols;
    }
    uint32_t unit = pwsp_block_elements(a->dtype) > 16 ? pwsp_block_elements(a->dtype) : 16;
    uint32_t by_a = memory[PTOISA_LEFT] / 2 / (a->rows * size);
    uint32_t by_b = memory[PTOISA_RIGHT] / 2 / (b->cols * size);
    uint32_t k = (by_a < by_b ? by_a : by_b) / unit * unit;
    return k ? k : unit;
}

// Moves the part of a factor from (row, col) on to L0, where `to` is.
static void pwsp_lower_take(pwsp_lowering *lw, uint32_t to, const pwsp_lower_operand *from,
                            uint32_t row, uint32_t col, bool is_whole) {
    ptoisa_op move = is_whole && !from->is_part ? PTOISA_TMOV : PTOISA_TEXTRACT;
    pwsp_insn *insn = pwsp_insn_emit(lw, move, to, from->tile, 0, 0);
    insn->row = from->row + row;
    insn->col = from->col + col;
}

// One product of the pieces from k0 on, into acc, or onto it; which begins a sum with loop `begins`.
static void pwsp_lower_product(pwsp_lowering *lw, ptoisa_op op, uint32_t acc,
                               const pwsp_lower_operand *a, const pwsp_lower_operand *b,
                               uint32_t k0, uint32_t k, uint32_t bias, uint8_t begins) {
    bool is_whole = k == a->cols;
    ptoisa_layout left_layout = lw->body->machine.family == PTOISA_A2A3 ? PTOISA_ZZ : PTOISA_NZ;
    pwsp_valid valid_k = is_whole ? a->valid_cols : pwsp_valid_part(a->valid_cols, k0, k);
    if (!is_whole && valid_k.param == 0) {
        valid_k.max = a->valid_cols.max - k0 < k ? a->valid_cols.max - k0 : k;
    }
    uint32_t left =
        pwsp_lower_tile(lw, PTOISA_LEFT, left_layout, a->dtype, a->rows, k, a->valid_rows, valid_k);
    uint32_t right =
        pwsp_lower_tile(lw, PTOISA_RIGHT, PTOISA_ZN, b->dtype, k, b->cols, valid_k, b->valid_cols);
    pwsp_lower_take(lw, left, a, 0, k0, is_whole);
    pwsp_lower_take(lw, right, b, k0, 0, is_whole);
    if (op == PTOISA_TMATMUL_ACC) {
        pwsp_insn_emit(lw, op, acc, acc, left, right)->begins = begins;
    } else {
        pwsp_insn_emit(lw, op, acc, left, right, bias);
    }
}

// The bias row, in the bias table.
static uint32_t pwsp_lower_bias(pwsp_lowering *lw, uint32_t value) {
    const pwsp_kop *op = &lw->body->ops[value];
    uint32_t cols = pwsp_round_up(op->cols, 16);  // whole 64 bytes
    uint32_t mat = pwsp_lower_tile(lw, PTOISA_MAT, PTOISA_ROW_MAJOR, op->dtype, 1, cols,
                                   op->valid_rows, op->valid_cols);
    uint32_t bias = pwsp_lower_tile(lw, PTOISA_BIAS, PTOISA_ROW_MAJOR, op->dtype, 1, cols,
                                    op->valid_rows, op->valid_cols);
    if (op->kind == PWSP_KOP_PARAM) {
        pwsp_insn_emit(lw, PTOISA_TLOAD, mat, 0, 0, 0)->param = (uint16_t)op->param;
    } else {
        uint32_t tile = lw->values[value].tile;
        if (op->cols == 1) {
            tile = pwsp_lower_flat(lw, tile);
        }
        pwsp_insn_emit(lw, PTOISA_TMOV, mat, tile, 0, 0);
    }
    pwsp_insn_emit(lw, PTOISA_TMOV, bias, mat, 0, 0);
    return bias;
}

bool pwsp_lower_is_narrowed(const ptowsp_body *body, uint32_t value) {
    const pwsp_kop *op = &body->ops[value], *of = &body->ops[op->src[0]];
    if (!body->is_fused || op->kind != PWSP_KOP_CVT || op->mode != PTOISA_CAST_RINT || op->loop ||
        (op->dtype != PTOWSP_F16 && op->dtype != PTOWSP_BF16) || !pwsp_kop_is_product(of) ||
        of->dtype != PTOWSP_F32) {
        return false;
    }
    uint32_t count = 0;
    for (uint64_t i = value + 1; i < body->op_count; i++) {
        const pwsp_kop *user = &body->ops[i];
        if (!user->is_dead && pwsp_kop_is_product(user)) {
            count += user->src[0] == value;
            count += user->src[1] == value;
        }
    }
    return count > 0 && count == pwsp_body_use_count(body, value);
}

// May TMATMUL_ACC add to the sum where it is, in L0C? Not in a loop to a product from before it, which
// every iteration needs as it was.
static bool pwsp_lower_is_added_to(const ptowsp_body *body, const pwsp_kop *op) {
    const pwsp_kop *sum = &body->ops[op->src[2]];
    return pwsp_kop_is_product(sum) && sum->loop == op->loop;
}

bool pwsp_lower_feeds(const ptowsp_body *body, uint32_t value) {
    for (uint64_t i = value + 1; i < body->op_count; i++) {
        const pwsp_kop *op = &body->ops[i];
        if (op->is_dead || op->kind == PWSP_KOP_STORE || op->kind == PWSP_KOP_STORE_ADD ||
            pwsp_lower_is_narrowed(body, (uint32_t)i) || pwsp_lower_is_part(body, (uint32_t)i)) {
            continue;
        }
        bool is_matmul = pwsp_kop_is_product(op);
        for (uint32_t j = 0; j < PWSP_KOP_SRC_MAX; j++) {
            if (op->src[j] != value || (is_matmul && j != 2)) {
                continue;
            }
            if (op->kind != PWSP_KOP_MATMUL_ACC || !pwsp_lower_is_added_to(body, op) ||
                pwsp_body_use_count(body, value) != 1) {
                return true;  // else it is added to where it is
            }
        }
        if (op->kind == PWSP_KOP_INSTRUCTION) {
            const pwsp_body_insn *insn = &body->insns[op->param - 1];
            for (uint32_t j = 0; j < PWSP_INSN_SRC_MAX; j++) {
                if (insn->src[j] == value) {
                    return true;
                }
            }
        }
    }
    return false;
}

uint32_t pwsp_lower_to_vec(pwsp_lowering *lw, uint32_t acc, const pwsp_kop *op) {
    // A product of one column is a row-major tile of one valid column in L0C, a column in UB.
    uint32_t tile =
        pwsp_lower_vec(lw, op->dtype, op->rows, op->cols, op->valid_rows, op->valid_cols);
    pwsp_insn_emit(lw, PTOISA_TMOV, tile, acc, 0, 0);
    return tile;
}

uint32_t pwsp_lower_empty_sum(pwsp_lowering *lw, const pwsp_kop *op, uint8_t dtype) {
    uint32_t unit = pwsp_block_elements(dtype) > 16 ? pwsp_block_elements(dtype) : 16;
    return pwsp_lower_tile(lw, PTOISA_ACC, PTOISA_NZ, op->dtype, pwsp_round_up(op->rows, 16),
                           pwsp_round_up(op->cols, unit), op->valid_rows, op->valid_cols);
}

uint32_t pwsp_lower_zeros(pwsp_lowering *lw, const pwsp_kop *op, uint8_t dtype) {
    pwsp_valid box = pwsp_valid_full(16);
    pwsp_lower_operand a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    a.tile = pwsp_lower_matrix(lw, dtype, op->rows, 16, op->valid_rows, box, true);
    b.tile = pwsp_lower_matrix(lw, dtype, 16, op->cols, box, op->valid_cols, false);
    if (lw->is_out) {
        return 0;
    }
    const pwsp_list_tile *left = &lw->list->tiles[a.tile], *right = &lw->list->tiles[b.tile];
    a.rows = left->rows;
    b.rows = a.cols = left->cols;
    b.cols = right->cols;
    a.valid_rows = op->valid_rows;
    a.valid_cols = b.valid_rows = box;
    b.valid_cols = op->valid_cols;
    a.dtype = b.dtype = dtype;
    uint32_t acc = pwsp_lower_tile(lw, PTOISA_ACC, PTOISA_NZ, op->dtype, a.rows, b.cols,
                                   op->valid_rows, op->valid_cols);
    pwsp_insn_emit_scalar(lw, PTOISA_TEXPANDS, a.tile, 0, 0);
    pwsp_insn_emit_scalar(lw, PTOISA_TEXPANDS, b.tile, 0, 0);
    pwsp_lower_product(lw, PTOISA_TMATMUL, acc, &a, &b, 0, a.cols, 0, 0);
    return acc;
}

// The value to which a chain of sums adds that ends with an operation of a loop.
static uint32_t pwsp_lower_bottom(const pwsp_lowering *lw, const pwsp_kop *op) {
    uint32_t sum = op->src[2];
    while (lw->body->ops[sum].kind == PWSP_KOP_MATMUL_ACC && lw->body->ops[sum].loop == op->loop) {
        sum = lw->body->ops[sum].src[2];
    }
    return sum;
}

void pwsp_lower_matmul(pwsp_lowering *lw, const pwsp_kop *op) {
    const pwsp_lower_operand a = pwsp_lower_find_operand(lw, op->src[0], true);
    const pwsp_lower_operand b = pwsp_lower_find_operand(lw, op->src[1], false);
    if (lw->is_out) {
        return;
    }
    ptoisa_op first = PTOISA_TMATMUL;
    uint32_t acc = 0, bias = 0, added = 0;
    if (op->kind == PWSP_KOP_MATMUL_ACC) {
        const pwsp_lowered *sum = &lw->values[op->src[2]];
        if (sum->acc && ((sum->uses == 1 && pwsp_lower_is_added_to(lw->body, op)) ||
                         pwsp_lower_is_in_acc(lw, op->src[2]))) {
            acc = sum->acc;
            pwsp_list_tile of = lw->list->tiles[acc];
            if (pwsp_lower_is_in_acc(lw, op->src[2]) &&
                !(pwsp_valid_is_equal(&of.valid_rows, &op->valid_rows) &&
                  pwsp_valid_is_equal(&of.valid_cols, &op->valid_cols))) {
                acc = pwsp_lower_view(lw, acc, PTOISA_NZ, of.dtype, of.rows, of.cols,
                                      op->valid_rows, op->valid_cols, 0);
            }
            first = PTOISA_TMATMUL_ACC;
        } else {
            added = sum->tile;
        }
    } else if (op->kind == PWSP_KOP_MATMUL_BIAS) {
        bias = pwsp_lower_bias(lw, op->src[2]);
        first = PTOISA_TMATMUL_BIAS;
    }
    if (acc == 0) {
        acc = pwsp_lower_tile(lw, PTOISA_ACC, PTOISA_NZ, op->dtype, a.rows, b.cols, op->valid_rows,
                              op->valid_cols);
    }
    uint32_t k = pwsp_lower_piece(lw, &a, &b);
    uint8_t begins = first == PTOISA_TMATMUL_ACC ? lw->values[op->src[2]].begins : 0;
    for (uint32_t k0 = 0; k0 < a.valid_cols.max && !lw->is_out; k0 += k) {
        uint32_t left = a.cols - k0;
        pwsp_lower_product(lw, k0 ? PTOISA_TMATMUL_ACC : first, acc, &a, &b, k0,
                           left < k ? left : k, k0 ? 0 : bias, k0 ? 0 : begins);
    }
    pwsp_lowered *result = &lw->values[lw->at];
    result->acc = acc;
    bool is_carried =
        op->kind == PWSP_KOP_MATMUL_ACC && pwsp_lower_is_in_acc(lw, pwsp_lower_bottom(lw, op));
    if (added || (!is_carried && pwsp_lower_feeds(lw->body, lw->at))) {
        result->tile = pwsp_lower_to_vec(lw, acc, op);
        pwsp_lower_keep(lw, result->tile, lw->at);
    }
    if (added && !lw->is_out) {
        uint32_t flat = pwsp_lower_flat(lw, result->tile);
        pwsp_insn_emit(lw, PTOISA_TADD, flat, flat, pwsp_lower_flat(lw, added), 0);
        result->acc = 0;  // the memory there lacks the sum
    }
}

void pwsp_lower_store(pwsp_lowering *lw, const pwsp_kop *op) {
    const ptowsp_body *body = lw->body;
    const pwsp_kop *from = &body->ops[op->src[0]];
    const pwsp_lowered *value = &lw->values[op->src[0]];
    uint8_t dtype = (uint8_t)body->tiles[op->param - 1].dtype;
    bool is_narrowing = from->dtype == PTOWSP_F32 && dtype != PTOWSP_F32;
    bool is_add = op->kind == PWSP_KOP_STORE_ADD;
    uint32_t src = value->acc ? value->acc : value->tile;
    if (is_narrowing && !(value->acc && body->is_fused)) {
        uint32_t wide = value->tile;
        if (wide == 0) {  // only UB is converted: PTO-WSP does not count the way there
            wide = pwsp_lower_to_vec(lw, value->acc, from);
            if (!lw->is_out) {
                lw->list->insns[lw->list->insn_count - 1].is_implied = true;
            }
        }
        src = pwsp_lower_vec(lw, dtype, from->rows, from->cols, from->valid_rows, from->valid_cols);
        uint32_t narrow = pwsp_lower_flat(lw, src);
        pwsp_insn_emit(lw, PTOISA_TCVT, narrow, pwsp_lower_flat(lw, wide), 0, 0)->mode =
            PTOISA_CAST_RINT;
    } else if (from->dtype != dtype && !is_narrowing) {  // the same bits under another name
        pwsp_list_tile of = lw->list->tiles[src];
        src = pwsp_lower_view(lw, src, (ptoisa_layout)of.layout, dtype, of.rows, of.cols,
                              of.valid_rows, of.valid_cols, 0);
    } else if (is_add && value->tile && !is_narrowing) {
        src = value->tile;
    }
    pwsp_insn *store = pwsp_insn_emit(lw, PTOISA_TSTORE, 0, src, 0, 0);
    store->param = (uint16_t)op->param;
    pwsp_insn_set_window(store, op);
    store->variant = is_add ? (uint8_t)PWSP_VARIANT_ADD : op->mode;
}
