// Which lists can be split.

#include "split.h"

// Is every row of an instruction's result made of the same row of its operands?
static bool pwsp_op_is_by_row(uint32_t op) {
    if (op == PWSP_INSN_TPUSH || op == PWSP_INSN_TPOP || op == PTOISA_SET_FLAG ||
        op == PTOISA_WAIT_FLAG || op == PTOISA_PIPE_BARRIER) {
        return true;
    }
    switch ((ptoisa_op)op) {
    case PTOISA_TEXP:
    case PTOISA_TLOG:
    case PTOISA_TSQRT:
    case PTOISA_TRSQRT:
    case PTOISA_TRECIP:
    case PTOISA_TABS:
    case PTOISA_TNEG:
    case PTOISA_TRELU:
    case PTOISA_TNOT:
    case PTOISA_TROWEXPAND:
    case PTOISA_TMOV:
    case PTOISA_TADD:
    case PTOISA_TSUB:
    case PTOISA_TMUL:
    case PTOISA_TDIV:
    case PTOISA_TMAX:
    case PTOISA_TMIN:
    case PTOISA_TAND:
    case PTOISA_TOR:
    case PTOISA_TXOR:
    case PTOISA_TSHL:
    case PTOISA_TSHR:
    case PTOISA_TSUBRELU:
    case PTOISA_TROWEXPANDADD:
    case PTOISA_TROWEXPANDSUB:
    case PTOISA_TROWEXPANDMUL:
    case PTOISA_TROWEXPANDDIV:
    case PTOISA_TROWEXPANDMAX:
    case PTOISA_TROWEXPANDMIN:
    case PTOISA_TROWEXPANDEXPDIF:
    case PTOISA_TFUSEDMULADD:
    case PTOISA_TMULADDDST:
    case PTOISA_TFUSEDMULADDRELU:
    case PTOISA_TADDC:
    case PTOISA_TSUBC:
    case PTOISA_TADDS:
    case PTOISA_TSUBS:
    case PTOISA_TMULS:
    case PTOISA_TDIVS:
    case PTOISA_TMAXS:
    case PTOISA_TMINS:
    case PTOISA_TANDS:
    case PTOISA_TORS:
    case PTOISA_TSHLS:
    case PTOISA_TSHRS:
    case PTOISA_TREMS:
    case PTOISA_TFMODS:
    case PTOISA_TPOWS:
    case PTOISA_TLRELU:
    case PTOISA_TROWSUM:
    case PTOISA_TROWMAX:
    case PTOISA_TROWMIN:
    case PTOISA_TROWPROD:
    case PTOISA_TROWARGMAX:
    case PTOISA_TROWARGMIN:
    case PTOISA_TLOAD:
    case PTOISA_TSTORE:
    case PTOISA_TCVT:
    case PTOISA_TEXPANDS:
    case PTOISA_TSDIV:
    case PTOISA_TAXPY:
    case PTOISA_TADDSC:
    case PTOISA_TSUBSC: return true;
    default: return false;
    }
}

// Does row r of a tile lie in row r of its root?
static bool pwsp_tile_is_by_row(const pwsp_list *list, const pwsp_list_tile *tile) {
    const pwsp_list_tile *root = &list->tiles[tile->root < list->tile_count ? tile->root : 0];
    return tile == root ||
           (tile->offset == 0 && tile->layout == root->layout &&
            (tile->rows == root->rows || tile->layout == PTOISA_ROW_MAJOR || tile->cols == 1) &&
            tile->cols * ptoisa_dtype_size((ptoisa_dtype)tile->dtype) ==
                root->cols * ptoisa_dtype_size((ptoisa_dtype)root->dtype));
}

static bool pwsp_insn_is_by_row(const pwsp_list *list, const pwsp_insn *insn,
                                const pwsp_valid *rows) {
    if (!pwsp_op_is_by_row(insn->op)) {
        return false;
    }
    bool is_good = true;
    for (uint32_t k = 0; k < PWSP_INSN_SRC_MAX + PWSP_INSN_DST_MAX + 1 && is_good; k++) {
        uint32_t tile = k < PWSP_INSN_SRC_MAX ? insn->src[k]
                        : k < PWSP_INSN_SRC_MAX + PWSP_INSN_DST_MAX
                            ? insn->dst[k - PWSP_INSN_SRC_MAX]
                            : insn->tmp;
        if (tile >= list->tile_count && tile > 0) {
            return false;
        }
        bool is_scratch = k == PWSP_INSN_SRC_MAX + PWSP_INSN_DST_MAX;  // valid sizes of no meaning
        is_good =
            tile == 0 || (pwsp_tile_is_by_row(list, &list->tiles[tile]) &&
                          (is_scratch || pwsp_valid_is_equal(&list->tiles[tile].valid_rows, rows)));
    }
    return is_good;
}

// Does a store of the vector half go to rows that its other core may use, in another instruction or
// iteration?
static bool pwsp_store_is_shared(const pwsp_list *list, const pwsp_insn *store) {
    bool is_shared = store->row_loop != 0;
    for (uint64_t i = 0; i < list->insn_count && !is_shared; i++) {
        const pwsp_insn *insn = &list->insns[i];
        is_shared = insn->side == PWSP_SIDE_VECTOR && insn->param == store->param &&
                    (insn->row_loop != 0 || insn->row != store->row);
    }
    return is_shared;
}

PWSP_INTERNAL bool pwsp_list_is_by_row(const pwsp_list *list, const pwsp_valid *rows,
                                       uint32_t *out_insn) {
    for (uint32_t i = 0; i < list->insn_count; i++) {
        const pwsp_insn *insn = &list->insns[i];
        if (insn->side == PWSP_SIDE_VECTOR &&
            (!pwsp_insn_is_by_row(list, insn, rows) ||
             (insn->op == PTOISA_TSTORE && pwsp_store_is_shared(list, insn)))) {
            *out_insn = i;
            return false;
        }
    }
    return rows->loop == 0 && rows->max > 1;
}
