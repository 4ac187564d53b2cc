// The tools of lowering: tiles, views of them, and instructions at the end of the list.

#include "lower.h"

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
        } else {
            result = pwsp_lower_in_home(lw, op, operand);
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

uint32_t pwsp_lower_like(pwsp_lowering *lw, uint32_t tile, uint8_t dtype) {
    if (tile == 0) {  // memory is out
        return 0;
    }
    pwsp_list_tile of = lw->list->tiles[tile];
    uint32_t cols = of.layout == PTOISA_ROW_MAJOR
                        ? pwsp_round_up(of.cols, pwsp_block_elements(dtype))
                        : of.cols;
    uint32_t like = pwsp_lower_tile(lw, PTOISA_VEC, (ptoisa_layout)of.layout, dtype, of.rows, cols,
                                    of.valid_rows, of.valid_cols);
    if (like) {
        lw->list->tiles[like].value = 0;
    }
    return like;
}

uint32_t pwsp_lower_flat(pwsp_lowering *lw, uint32_t tile) {
    if (tile == 0) {  // memory is out
        return 0;
    }
    pwsp_list_tile of = lw->list->tiles[tile];
    if (of.layout != PTOISA_COL_MAJOR) {
        return tile;
    }
    return pwsp_lower_view(lw, tile, PTOISA_ROW_MAJOR, of.dtype, 1, of.rows, of.valid_cols,
                           of.valid_rows, 0);
}

uint32_t pwsp_lower_column(pwsp_lowering *lw, uint32_t tile) {
    if (tile == 0) {
        return 0;
    }
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
    insn->is_dst_read = pwsp_op_reads_dst(op);
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
