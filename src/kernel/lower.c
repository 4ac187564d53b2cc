// Lowering: loads on entry, and the walk over the operations. The instructions for each kind of
// operation are in lower_vector.c, lower_matmul.c and lower_shape.c.

#include "lower.h"

#include "passes.h"

// -- loads ----------------------------------------------------------------------------------------

// Loads a parameter, or a part of it from (row, col), as a new tile.
static uint32_t pwsp_lower_load(pwsp_lowering *lw, uint32_t param, const pwsp_kop *shape) {
    uint32_t tile = pwsp_lower_vec(lw, shape->dtype, shape->rows, shape->cols, shape->valid_rows,
                                   shape->valid_cols);
    pwsp_insn *load = pwsp_insn_emit(lw, PTOISA_TLOAD, tile, 0, 0, 0);
    load->param = (uint16_t)param;
    pwsp_insn_set_window(load, shape);
    return tile;
}

// -- the walk -------------------------------------------------------------------------------------

// The first operand of an operation that it reads in UB: factors of products are read in L1, and loads
// and slices read global memory.
static uint32_t pwsp_lower_first_read(const pwsp_kop *op) {
    switch ((pwsp_kop_kind)op->kind) {
    case PWSP_KOP_MATMUL:
    case PWSP_KOP_MATMUL_ACC: return 2;
    case PWSP_KOP_MATMUL_BIAS:
    case PWSP_KOP_LOAD:
    case PWSP_KOP_SLICE: return PWSP_KOP_SRC_MAX;
    default: return 0;
    }
}

// Notes for every value its uses and its last one, and whether it is read in UB.
static void pwsp_lower_uses(pwsp_lowering *lw) {
    const ptowsp_body *body = lw->body;
    for (uint64_t i = 1; i < body->op_count; i++) {
        const pwsp_kop *op = &body->ops[i];
        if (op->is_dead) {
            continue;
        }
        // Carried values are read before the loop begins and updated where it ends.
        uint32_t at = op->kind == PWSP_KOP_CARRY  ? body->loop_begins[op->loop]
                      : op->kind == PWSP_KOP_NEXT ? body->loop_ends[op->loop]
                                                  : (uint32_t)i;
        uint32_t loop = op->kind == PWSP_KOP_CARRY ? body->loops[op->loop].parent : op->loop;
        uint32_t first_read = pwsp_lower_first_read(op);
        for (uint32_t j = op->kind == PWSP_KOP_NEXT; j < PWSP_KOP_SRC_MAX; j++) {
            if (op->src[j]) {
                pwsp_lower_use(lw, op->src[j], at, loop);
                lw->values[op->src[j]].is_read |= j >= first_read;
            }
        }
        if (op->kind == PWSP_KOP_INSTRUCTION) {
            const pwsp_body_insn *insn = &body->insns[op->param - 1];
            bool is_global = insn->op == PTOISA_TLOAD || insn->op == PTOISA_MGATHER;
            for (uint32_t j = 0; j < PWSP_INSN_SRC_MAX; j++) {
                if (insn->src[j]) {
                    pwsp_lower_use(lw, insn->src[j], at, loop);
                    lw->values[insn->src[j]].is_read |= j > 0 || !is_global;
                }
            }
        }
    }
}

static void pwsp_lower_entry(pwsp_lowering *lw) {
    const ptowsp_body *body = lw->body;
    for (uint32_t i = 0; i < body->tile_count; i++) {
        uint32_t value = body->tiles[i].value;
        if (lw->values[value].is_read) {
            lw->at = value;
            uint32_t tile = pwsp_lower_load(lw, i + 1, &body->ops[value]);
            if (tile) {
                lw->values[value].tile = tile;
                pwsp_lower_keep(lw, tile, value);
            }
        }
    }
}

// A load, or a slice of a parameter: into UB, unless only products read a slice. They load it where
// they stand, so it must not be stored to.
static void pwsp_lower_part(pwsp_lowering *lw, const pwsp_kop *op) {
    bool is_stored = false;
    for (uint64_t i = lw->at + 1; i < lw->body->op_count; i++) {
        const pwsp_kop *user = &lw->body->ops[i];
        is_stored =
            is_stored || (!user->is_dead && user->src[0] == lw->at &&
                          (user->kind == PWSP_KOP_STORE || user->kind == PWSP_KOP_STORE_ADD));
    }
    uint32_t param = lw->body->ops[op->src[0]].param;
    bool is_kept = lw->body->tiles[param - 1].direction == PTOWSP_IN;
    if (pwsp_lower_is_panel(lw->body, lw->at)) {
        pwsp_lower_panel(lw, op);
        return;
    }
    if (op->kind == PWSP_KOP_SLICE && is_kept && !is_stored &&
        !pwsp_lower_feeds(lw->body, lw->at)) {
        return;
    }
    uint32_t tile = pwsp_lower_load(lw, param, op);
    lw->values[lw->at].tile = tile;
    if (tile) {
        pwsp_lower_keep(lw, tile, lw->at);
    }
}

static void pwsp_lower_op(pwsp_lowering *lw, const pwsp_kop *op) {
    const ptowsp_body *body = lw->body;
    switch ((pwsp_kop_kind)op->kind) {
    case PWSP_KOP_LOAD: pwsp_lower_part(lw, op); break;
    case PWSP_KOP_SLICE:
        if (body->ops[op->src[0]].kind == PWSP_KOP_PARAM) {
            pwsp_lower_part(lw, op);
        } else if (pwsp_lower_is_part(body, lw->at)) {
            pwsp_lower_panel_part(lw, op);
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
        if (!pwsp_lower_is_zero_sum(lw, lw->at)) {
            pwsp_lower_shape(lw, op);
        }
        break;
    case PWSP_KOP_TRANSPOSE:
        if (pwsp_lower_is_part(body, lw->at)) {
            pwsp_lower_panel_part(lw, op);
        } else {
            pwsp_lower_shape(lw, op);
        }
        break;
    case PWSP_KOP_IOTA:
    case PWSP_KOP_ALLOC:
    case PWSP_KOP_CVT:
    case PWSP_KOP_QUANTIZE:
    case PWSP_KOP_DEQUANTIZE:
    case PWSP_KOP_INTERLEAVE:
    case PWSP_KOP_DEINTERLEAVE: pwsp_lower_shape(lw, op); break;
    case PWSP_KOP_COMPARE:
    case PWSP_KOP_SELECT:
    case PWSP_KOP_SORT32:
    case PWSP_KOP_MERGE_SORT:
    case PWSP_KOP_TOPK_VALUES:
    case PWSP_KOP_TOPK_INDICES:
    case PWSP_KOP_GATHER: pwsp_lower_indexing(lw, op); break;
    case PWSP_KOP_INSTRUCTION: pwsp_lower_instruction(lw, op); break;
    case PWSP_KOP_LOOP: pwsp_lower_loop(lw, op); break;
    case PWSP_KOP_END: pwsp_lower_end(lw, op); break;
    default: break;  // parameters and constants: no instruction
    }
}

bool pwsp_lower(ptowsp_body *body, pwsp_list *list, pwsp_list_fault *fault) {
    pwsp_lowering lowering;
    memset(&lowering, 0, sizeof lowering);
    lowering.body = body;
    lowering.list = list;
    size_t size = (size_t)(body->op_count + 1) * sizeof(pwsp_lowered);
    lowering.values = (pwsp_lowered *)pwsp_arena_alloc(&list->arena, size, 8);
    if (!lowering.values || !pwsp_list_renew(list, 2 * body->op_count) || !pwsp_list_begin(list)) {
        return pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
    }
    memcpy(list->loops, body->loops, sizeof list->loops);
    list->loop_count = body->loop_count;
    pwsp_lower_uses(&lowering);
    pwsp_lower_entry(&lowering);
    for (uint64_t i = 1; i < body->op_count && !lowering.is_out; i++) {
        if (!body->ops[i].is_dead) {
            lowering.at = (uint32_t)i;
            pwsp_lower_op(&lowering, &body->ops[i]);
        }
    }
    return !lowering.is_out || pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
}
