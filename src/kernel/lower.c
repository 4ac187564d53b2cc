// Lowering: tiles and instructions, loads on entry, and the walk over the operations.

#include "lower.h"

#include "passes.h"

// -- tiles ----------------------------------------------------------------------------------------

uint32_t pwsp_lower_tile(pwsp_lowering *lw, ptoisa_memory memory, ptoisa_layout layout,
                         uint8_t dtype, uint32_t rows, uint32_t cols, pwsp_valid valid_rows,
                         pwsp_valid valid_cols) {
    uint32_t index = pwsp_list_add_tile(lw->list);
    if (index == 0) {
        lw->is_out = true;
        return 0;
    }
    pwsp_list_tile *tile = &lw->list->tiles[index];
    tile->dtype = dtype;
    tile->memory = (uint8_t)memory;
    tile->layout = (uint8_t)layout;
    tile->rows = rows;
    tile->cols = cols;
    tile->valid_rows = valid_rows;
    tile->valid_cols = valid_cols;
    tile->value = lw->at;
    return index;
}

uint32_t pwsp_lower_vec(pwsp_lowering *lw, uint8_t dtype, uint32_t rows, uint32_t cols,
                        pwsp_valid valid_rows, pwsp_valid valid_cols) {
    uint32_t block = pwsp_block_elements(dtype);
    if (cols == 1) {
        return pwsp_lower_tile(lw, PTOISA_VEC, PTOISA_COL_MAJOR, dtype, pwsp_round_up(rows, block),
                               1, valid_rows, valid_cols);
    }
    return pwsp_lower_tile(lw, PTOISA_VEC, PTOISA_ROW_MAJOR, dtype, rows,
                           pwsp_round_up(cols, block), valid_rows, valid_cols);
}

// While lowering, `last` of a root is the last operation that needs its bytes.
void pwsp_lower_keep(pwsp_lowering *lw, uint32_t tile, uint32_t value) {
    pwsp_list_tile *root = &lw->list->tiles[lw->list->tiles[tile].root];
    root->last = root->last > lw->values[value].last ? root->last : lw->values[value].last;
}

uint32_t pwsp_lower_result(pwsp_lowering *lw, const pwsp_kop *op, uint32_t operand) {
    uint32_t tile = operand ? lw->values[operand].tile : 0;
    uint32_t result = 0;
    if (tile && lw->body->ops[operand].kind != PWSP_KOP_ALLOC) {
        const pwsp_list_tile *old = &lw->list->tiles[tile];
        const pwsp_kop *was = &lw->body->ops[operand];
        if (old->root == tile && old->last == lw->at && old->dtype == op->dtype &&
            was->rows == op->rows && was->cols == op->cols &&
            pwsp_valid_is_equal(&old->valid_rows, &op->valid_rows) &&
            pwsp_valid_is_equal(&old->valid_cols, &op->valid_cols)) {
            result = tile;
        }
    }
    if (result == 0) {
        result = pwsp_lower_vec(lw, op->dtype, op->rows, op->cols, op->valid_rows, op->valid_cols);
    }
    if (result) {
        lw->values[lw->at].tile = result;
        pwsp_lower_keep(lw, result, lw->at);
    }
    return result;
}

uint32_t pwsp_lower_view(pwsp_lowering *lw, uint32_t tile, ptoisa_layout layout, uint8_t dtype,
                         uint32_t rows, uint32_t cols, pwsp_valid valid_rows, pwsp_valid valid_cols,
                         uint32_t offset) {
    const pwsp_list_tile *of = &lw->list->tiles[tile];
    uint32_t root = of->root, at = of->offset + offset;
    uint32_t view = pwsp_lower_tile(lw, (ptoisa_memory)of->memory, layout, dtype, rows, cols,
                                    valid_rows, valid_cols);
    if (view) {
        lw->list->tiles[view].root = root;
        lw->list->tiles[view].offset = at;
        lw->list->tiles[view].value = lw->list->tiles[tile].value;
    }
    return view;
}

uint32_t pwsp_lower_flat(pwsp_lowering *lw, uint32_t tile) {
    pwsp_list_tile of = lw->list->tiles[tile];
    if (of.layout != PTOISA_COL_MAJOR) {
        return tile;
    }
    return pwsp_lower_view(lw, tile, PTOISA_ROW_MAJOR, of.dtype, 1, of.rows, of.valid_cols,
                           of.valid_rows, 0);
}

uint32_t pwsp_lower_column(pwsp_lowering *lw, uint32_t tile) {
    pwsp_list_tile of = lw->list->tiles[tile];
    if (of.layout == PTOISA_COL_MAJOR) {
        return tile;
    }
    return pwsp_lower_view(lw, tile, PTOISA_COL_MAJOR, of.dtype, of.cols, 1, of.valid_cols,
                           of.valid_rows, 0);
}

// -- instructions ---------------------------------------------------------------------------------

pwsp_insn *pwsp_insn_emit(pwsp_lowering *lw, ptoisa_op op, uint32_t dst, uint32_t src0,
                          uint32_t src1, uint32_t src2) {
    pwsp_insn *insn = pwsp_list_add(lw->list, op);
    if (!insn) {
        lw->is_out = true;
        insn = &lw->spare;
    }
    insn->dst[0] = dst;
    insn->src[0] = src0;
    insn->src[1] = src1;
    insn->src[2] = src2;
    insn->value = lw->at;
    insn->is_dst_read = pwsp_form_of(op).is_dst_read;
    return insn;
}

pwsp_insn *pwsp_insn_emit_scalar(pwsp_lowering *lw, ptoisa_op op, uint32_t dst, uint32_t src,
                                 double value) {
    pwsp_insn *insn = pwsp_insn_emit(lw, op, dst, src, 0, 0);
    insn->scalar.value = value;
    return insn;
}

pwsp_list_scalar pwsp_lower_scalar(const ptowsp_body *body, uint32_t value) {
    pwsp_list_scalar scalar;
    memset(&scalar, 0, sizeof scalar);
    const pwsp_kop *op = &body->ops[value];
    scalar.param = op->kind == PWSP_KOP_SCALAR ? op->param : 0;
    scalar.value = op->kind == PWSP_KOP_SCALAR ? 0 : op->value;
    return scalar;
}

// Loads a parameter, or a part of it from (row, col), as a new tile.
static uint32_t pwsp_lower_load(pwsp_lowering *lw, uint32_t param, const pwsp_kop *shape) {
    uint32_t tile = pwsp_lower_vec(lw, shape->dtype, shape->rows, shape->cols, shape->valid_rows,
                                   shape->valid_cols);
    pwsp_insn *load = pwsp_insn_emit(lw, PTOISA_TLOAD, tile, 0, 0, 0);
    load->param = (uint16_t)param;
    load->row = shape->row;
    load->col = shape->col;
    return tile;
}

// -- the walk -------------------------------------------------------------------------------------

// Notes for every value its uses and its last one, and for products whether UB needs them.
static void pwsp_lower_uses(pwsp_lowering *lw) {
    const ptowsp_body *body = lw->body;
    for (uint64_t i = 1; i < body->op_count; i++) {
        const pwsp_kop *op = &body->ops[i];
        if (op->is_dead) {
            continue;
        }
        for (uint32_t j = 0; j < PWSP_KOP_SRC_MAX; j++) {
            lw->values[op->src[j]].last = (uint32_t)i;
            lw->values[op->src[j]].uses++;
        }
        if (op->kind == PWSP_KOP_INSTRUCTION) {
            const pwsp_body_insn *insn = &body->insns[op->param - 1];
            for (uint32_t j = 0; j < PWSP_INSN_SRC_MAX; j++) {
                lw->values[insn->src[j]].last = (uint32_t)i;
                lw->values[insn->src[j]].uses++;
            }
        }
    }
}

// Is the parameter read in UB: by other than a factor of matmul, a load, a slice, or a load or store
// instruction?
static bool pwsp_lower_is_read(const ptowsp_body *body, uint32_t value) {
    for (uint64_t i = 1; i < body->op_count; i++) {
        const pwsp_kop *op = &body->ops[i];
        if (op->is_dead || op->kind == PWSP_KOP_LOAD || op->kind == PWSP_KOP_SLICE) {
            continue;
        }
        bool is_matmul = op->kind == PWSP_KOP_MATMUL || op->kind == PWSP_KOP_MATMUL_ACC ||
                         op->kind == PWSP_KOP_MATMUL_BIAS;
        bool is_bias = op->kind == PWSP_KOP_MATMUL_BIAS;
        for (uint32_t j = is_matmul ? 2 : 0; j < PWSP_KOP_SRC_MAX && !is_bias; j++) {
            if (op->src[j] == value) {
                return true;
            }
        }
        if (op->kind == PWSP_KOP_INSTRUCTION) {
            const pwsp_body_insn *insn = &body->insns[op->param - 1];
            bool is_global = insn->op == PTOISA_TLOAD || insn->op == PTOISA_MGATHER;
            for (uint32_t j = is_global ? 1 : 0; j < PWSP_INSN_SRC_MAX; j++) {
                if (insn->src[j] == value) {
                    return true;
                }
            }
        }
    }
    return false;
}

static void pwsp_lower_entry(pwsp_lowering *lw) {
    const ptowsp_body *body = lw->body;
    for (uint32_t i = 0; i < body->tile_count; i++) {
        uint32_t value = body->tiles[i].value;
        if (pwsp_lower_is_read(body, value)) {
            lw->at = value;
            uint32_t tile = pwsp_lower_load(lw, i + 1, &body->ops[value]);
            if (tile) {
                lw->values[value].tile = tile;
                pwsp_lower_keep(lw, tile, value);
            }
        }
    }
}

// A load, or a slice of a parameter: into UB, unless only products read a slice.
static void pwsp_lower_part(pwsp_lowering *lw, const pwsp_kop *op) {
    bool is_stored = false;
    for (uint64_t i = lw->at + 1; i < lw->body->op_count; i++) {
        const pwsp_kop *user = &lw->body->ops[i];
        is_stored =
            is_stored || (!user->is_dead && user->src[0] == lw->at &&
                          (user->kind == PWSP_KOP_STORE || user->kind == PWSP_KOP_STORE_ADD));
    }
    if (op->kind == PWSP_KOP_SLICE && !is_stored && !pwsp_lower_feeds(lw->body, lw->at)) {
        return;
    }
    uint32_t tile = pwsp_lower_load(lw, lw->body->ops[op->src[0]].param, op);
    lw->values[lw->at].tile = tile;
    if (tile) {
        pwsp_lower_keep(lw, tile, lw->at);
    }
}

static void pwsp_lower_op(pwsp_lowering *lw, const pwsp_kop *op) {
    const ptowsp_body *body = lw->body;
    switch ((pwsp_kop_kind)op->kind) {
    case PWSP_KOP_PARAM:
    case PWSP_KOP_SCALAR:
    case PWSP_KOP_CONST:
    case PWSP_KOP_NONE:
    case PWSP_KOP_COUNT: break;
    case PWSP_KOP_LOAD: pwsp_lower_part(lw, op); break;
    case PWSP_KOP_SLICE:
        if (body->ops[op->src[0]].kind == PWSP_KOP_PARAM) {
            pwsp_lower_part(lw, op);
        } else {
            pwsp_lower_shape(lw, op);
        }
        break;
    case PWSP_KOP_STORE:
    case PWSP_KOP_STORE_ADD: pwsp_lower_store(lw, op); break;
    case PWSP_KOP_ADD:
    case PWSP_KOP_SUB:
    case PWSP_KOP_MUL:
    case PWSP_KOP_DIV:
    case PWSP_KOP_MAX:
    case PWSP_KOP_MIN: pwsp_lower_binary(lw, op); break;
    case PWSP_KOP_EXP:
    case PWSP_KOP_LOG:
    case PWSP_KOP_SQRT:
    case PWSP_KOP_RSQRT:
    case PWSP_KOP_RECIP:
    case PWSP_KOP_TANH:
    case PWSP_KOP_SIGMOID:
    case PWSP_KOP_SIN:
    case PWSP_KOP_COS:
    case PWSP_KOP_RELU:
    case PWSP_KOP_GELU:
    case PWSP_KOP_SILU:
    case PWSP_KOP_NEG:
    case PWSP_KOP_ABS: pwsp_lower_unary(lw, op); break;
    case PWSP_KOP_ROWSUM:
    case PWSP_KOP_ROWMAX:
    case PWSP_KOP_ROWMIN:
    case PWSP_KOP_ROWMEAN:
    case PWSP_KOP_COLSUM:
    case PWSP_KOP_COLMAX:
    case PWSP_KOP_COLMIN: pwsp_lower_reduce(lw, op); break;
    case PWSP_KOP_ROW_BROADCAST:
    case PWSP_KOP_COL_BROADCAST: pwsp_lower_broadcast(lw, op); break;
    case PWSP_KOP_MATMUL:
    case PWSP_KOP_MATMUL_ACC:
    case PWSP_KOP_MATMUL_BIAS: pwsp_lower_matmul(lw, op); break;
    case PWSP_KOP_FULL:
    case PWSP_KOP_IOTA:
    case PWSP_KOP_ALLOC:
    case PWSP_KOP_CVT:
    case PWSP_KOP_QUANTIZE:
    case PWSP_KOP_DEQUANTIZE:
    case PWSP_KOP_TRANSPOSE:
    case PWSP_KOP_INTERLEAVE:
    case PWSP_KOP_DEINTERLEAVE: pwsp_lower_shape(lw, op); break;
    case PWSP_KOP_COMPARE:
    case PWSP_KOP_SELECT:
    case PWSP_KOP_SORT32:
    case PWSP_KOP_MERGE_SORT:
    case PWSP_KOP_TOPK_VALUES:
    case PWSP_KOP_TOPK_INDICES:
    case PWSP_KOP_GATHER: pwsp_lower_pick(lw, op); break;
    case PWSP_KOP_INSTRUCTION: pwsp_lower_instruction(lw, op); break;
    }
}

bool pwsp_lower(ptowsp_body *body, pwsp_list *list, pwsp_list_fault *fault) {
    pwsp_lowering lowering;
    memset(&lowering, 0, sizeof lowering);
    lowering.body = body;
    lowering.list = list;
    size_t size = (size_t)(body->op_count + 1) * sizeof(pwsp_lowered);
    lowering.values = (pwsp_lowered *)pwsp_memory_alloc(&body->memory, size);
    if (!lowering.values) {
        return pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
    }
    pwsp_lower_uses(&lowering);
    pwsp_lower_entry(&lowering);
    for (uint64_t i = 1; i < body->op_count && !lowering.is_out; i++) {
        if (!body->ops[i].is_dead) {
            lowering.at = (uint32_t)i;
            pwsp_lower_op(&lowering, &body->ops[i]);
        }
    }
    pwsp_memory_free(&body->memory, lowering.values, size);
    return !lowering.is_out || pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
}
