// Lowering of panels: parts of a parameter that are loaded into L1 once, and parts of these as
// factors of products.
//
//      global --TLOAD--> L1: 128 x 256 --TEXTRACT--> L0A: 128 x 64, four times
//
//      panel     a slice of an input that has parts, or is a factor of two products
//      part      a slice of a panel, or its transpose, or the same of a part
//
// if products are all that uses any of them. A panel is loaded where it is made, so it stays in L1
// for all of a loop that follows. A transpose costs nothing: a matrix in NZ and its transpose in ZN
// have the same boxes, and L0 is filled from either. So a right factor that is stored [n][k] is
// loaded by its rows, as others are, and used as [k][n].

#include "lower.h"

#include "passes.h"

// The unit of offsets in L1: whole boxes, in both directions and layouts.
static uint32_t pwsp_panel_unit(uint8_t dtype) {
    return pwsp_block_elements(dtype) > 16 ? pwsp_block_elements(dtype) : 16;
}

// May an operation take a part of a tile in L1?
static bool pwsp_panel_takes(const ptowsp_body *body, const pwsp_kop *op) {
    if (op->is_dead || (op->kind != PWSP_KOP_TRANSPOSE && op->kind != PWSP_KOP_SLICE)) {
        return false;
    }
    uint32_t unit = pwsp_panel_unit(op->dtype);
    return op->kind == PWSP_KOP_TRANSPOSE || (body->ops[op->src[0]].kind != PWSP_KOP_PARAM &&
                                              op->row % unit == 0 && op->col % unit == 0);
}

// The slice of an input that a value is taken from, or 0.
static uint32_t pwsp_panel_of(const ptowsp_body *body, uint32_t value) {
    while (pwsp_panel_takes(body, &body->ops[value])) {
        value = body->ops[value].src[0];
    }
    const pwsp_kop *op = &body->ops[value], *param = &body->ops[op->src[0]];
    bool is_input = op->kind == PWSP_KOP_SLICE && param->kind == PWSP_KOP_PARAM &&
                    body->tiles[param->param - 1].direction == PTOWSP_IN;
    return is_input ? value : 0;
}

// Is the value a factor of products, or of products through parts, and nothing else?
static bool pwsp_panel_is_factor(const ptowsp_body *body, uint32_t value) {
    uint32_t uses = 0;
    for (uint32_t i = value + 1; i < body->op_count; i++) {
        const pwsp_kop *op = &body->ops[i];
        bool is_part = pwsp_panel_takes(body, op) && op->src[0] == value;
        if (is_part && !pwsp_panel_is_factor(body, i)) {
            return false;
        }
        uses += is_part;
        for (uint32_t j = 0; j < 2 && pwsp_kop_is_product(op) && !op->is_dead; j++) {
            uses += op->src[j] == value;
        }
    }
    return uses > 0 && uses == pwsp_body_use_count(body, value);
}

bool pwsp_lower_is_part(const ptowsp_body *body, uint32_t value) {
    uint32_t panel = pwsp_panel_takes(body, &body->ops[value]) ? pwsp_panel_of(body, value) : 0;
    return panel && pwsp_panel_is_factor(body, panel);
}

bool pwsp_lower_is_panel(const ptowsp_body *body, uint32_t value) {
    bool has_parts = false;
    uint32_t factors = 0;
    for (uint32_t i = value + 1; i < body->op_count && !has_parts; i++) {
        const pwsp_kop *op = &body->ops[i];
        bool is_product = pwsp_kop_is_product(op) && !op->is_dead;
        factors += is_product && (op->src[0] == value || op->src[1] == value);
        has_parts = factors > 1 || (op->src[0] == value && pwsp_panel_takes(body, op));
    }
    return has_parts && pwsp_panel_of(body, value) == value && pwsp_panel_is_factor(body, value);
}

void pwsp_lower_panel(pwsp_lowering *lw, const pwsp_kop *op) {
    uint32_t mat =
        pwsp_lower_matrix(lw, op->dtype, op->rows, op->cols, op->valid_rows, op->valid_cols, false);
    pwsp_insn *load = pwsp_insn_emit(lw, PTOISA_TLOAD, mat, 0, 0, 0);
    load->param = (uint16_t)lw->body->ops[op->src[0]].param;
    pwsp_insn_set_window(load, op);
    lw->values[lw->at].panel.tile = mat;
}

void pwsp_lower_panel_part(pwsp_lowering *lw, const pwsp_kop *op) {
    pwsp_lower_origin from = lw->values[op->src[0]].panel, *to = &lw->values[lw->at].panel;
    if (op->kind == PWSP_KOP_SLICE) {
        to->tile = from.tile;
        to->row = from.row + op->row;
        to->col = from.col + op->col;
        return;
    }
    pwsp_list_tile of = lw->list->tiles[from.tile];
    ptoisa_layout layout = of.layout == PTOISA_NZ ? PTOISA_ZN : PTOISA_NZ;
    to->tile = pwsp_lower_view(lw, from.tile, layout, of.dtype, of.cols, of.rows, of.valid_cols,
                               of.valid_rows, 0);
    to->row = from.col;
    to->col = from.row;
}
