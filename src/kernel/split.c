// Which lists can be split.

#include "split.h"

// Is every row of an instruction's result made of the same row of its operands?
static bool pwsp_op_is_by_row(uint32_t op) {
    if (op == PWSP_INSN_TPUSH || op == PWSP_INSN_TPOP) {
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

// Of one that is: is every element of a row-like result not made of that element of its operands?
static bool pwsp_op_is_of_rows(uint32_t op) {
    return op == PWSP_INSN_TPUSH || op == PWSP_INSN_TPOP || op == PTOISA_TLOAD ||
           op == PTOISA_TSTORE || (op >= PTOISA_TROWEXPAND && op <= PTOISA_TROWEXPANDEXPDIF) ||
           (op >= PTOISA_TROWSUM && op <= PTOISA_TROWARGMIN);
}

// How two cores share a tile, as bits.
#define PWSP_SPLIT_ROWS 1u  // row r of the tile lies in row r of its root
#define PWSP_SPLIT_FLAT 2u  // a column that is seen as a row: its element c is the column's row c

// How two cores may share a tile. A tile of one row is never shared by rows: its elements are shared
// (ptoisa_part_of).
static uint32_t pwsp_split_of(const pwsp_list *list, uint32_t index) {
    if (index >= list->tile_count) {
        return 0;
    }
    const pwsp_list_tile *tile = &list->tiles[index];
    if (tile->root == index) {
        return tile->rows > 1 ? PWSP_SPLIT_ROWS : 0;
    }
    const pwsp_list_tile *root = &list->tiles[tile->root < list->tile_count ? tile->root : 0];
    const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
    const uint32_t root_size = ptoisa_dtype_size((ptoisa_dtype)root->dtype);
    if (tile->offset != 0) {
        return 0;
    }
    if (tile->rows > 1) {
        return tile->layout == root->layout &&
                       (tile->rows == root->rows || tile->layout == PTOISA_ROW_MAJOR ||
                        tile->cols == 1) &&
                       tile->cols * size == root->cols * root_size
                   ? PWSP_SPLIT_ROWS
                   : 0;
    }
    return root->layout == PTOISA_COL_MAJOR && root->cols == 1 &&
                   tile->layout == PTOISA_ROW_MAJOR && tile->rows == 1 &&
                   tile->cols == root->rows && size == root_size
               ? PWSP_SPLIT_FLAT
               : 0;
}

// Operand k of an instruction, without its scratch, which each core has for itself.
#define PWSP_SPLIT_OPERANDS (PWSP_INSN_SRC_MAX + PWSP_INSN_DST_MAX)

static uint32_t pwsp_split_operand(const pwsp_insn *insn, uint32_t k) {
    return k < PWSP_INSN_DST_MAX ? insn->dst[k] : insn->src[k - PWSP_INSN_DST_MAX];
}

// Either all operands are shared by rows, or all by elements.
static bool pwsp_insn_is_by_row(const pwsp_list *list, const pwsp_insn *insn) {
    uint32_t sized = insn->scalar.cols_of;  // every core has to have the same number
    uint32_t ways = PWSP_SPLIT_ROWS | (pwsp_op_is_of_rows(insn->op) ? 0 : PWSP_SPLIT_FLAT);
    for (uint32_t k = 0; k < PWSP_SPLIT_OPERANDS; k++) {
        uint32_t tile = pwsp_split_operand(insn, k);
        ways &= tile ? pwsp_split_of(list, tile) : ways;
    }
    return ways && pwsp_op_is_by_row(insn->op) &&
           (insn->tmp == 0 || insn->tmp < list->tile_count) &&
           (sized == 0 ||
            (sized < list->tile_count && !(pwsp_split_of(list, sized) & PWSP_SPLIT_FLAT)));
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

PWSP_INTERNAL uint32_t pwsp_list_split(const pwsp_list *list) {
    uint32_t found = 0, at = 0;
    bool is_of_task = false;
    for (uint32_t i = 0; i < list->insn_count && !is_of_task; i++) {
        const pwsp_insn *insn = &list->insns[i];
        for (uint32_t k = 0; k < PWSP_SPLIT_OPERANDS && insn->side == PWSP_SIDE_VECTOR; k++) {
            uint32_t tile = pwsp_split_operand(insn, k);
            const pwsp_valid *rows = &list->tiles[tile].valid_rows;
            is_of_task = tile && rows->param && !rows->loop && list->tiles[tile].rows > 1;
            bool is_new = found == 0 && tile && !rows->param && list->tiles[tile].rows > 1;
            found = is_of_task || is_new ? tile : found;
            if (is_of_task) {
                break;
            }
        }
    }
    for (uint64_t i = 0; i < list->insn_count && found; i++) {
        const pwsp_insn *insn = &list->insns[i];
        bool is_store = insn->side == PWSP_SIDE_VECTOR && insn->op == PTOISA_TSTORE;
        found = is_store && pwsp_store_is_shared(list, insn) ? 0 : found;
    }
    return found && pwsp_list_is_by_row(list, found, &at) ? found : 0;
}

PWSP_INTERNAL bool pwsp_list_is_by_row(const pwsp_list *list, uint32_t tile, uint32_t *out_insn) {
    for (uint32_t i = 0; i < list->insn_count; i++) {
        const pwsp_insn *insn = &list->insns[i];
        if (insn->side == PWSP_SIDE_VECTOR && !pwsp_insn_is_sync(insn) &&
            !pwsp_insn_is_by_row(list, insn)) {
            *out_insn = i;
            return false;
        }
    }
    const pwsp_valid *rows = &list->tiles[tile < list->tile_count ? tile : 0].valid_rows;
    return (rows->param == 0 || rows->loop == 0) && rows->max > 1;
}

PWSP_INTERNAL bool pwsp_list_split_memory(pwsp_list *list) {
    uint32_t whole = pwsp_list_add_tile(list);
    if (!whole) {
        return false;
    }
    const pwsp_list_tile of = list->tiles[list->split_tile];
    const uint32_t cut = (of.valid_rows.max + 1) / 2;
    list->tiles[whole] = of;
    list->tiles[whole].root = whole;
    list->tiles[whole].offset = 0;
    memset(&list->tiles[whole].valid_rows, 0, sizeof of.valid_rows);
    list->tiles[whole].valid_rows.max = of.valid_rows.max;
    list->split_tile = whole;
    for (uint32_t i = 1; i < list->tile_count; i++) {
        pwsp_list_tile *tile = &list->tiles[i];
        bool is_by_row = tile->layout == PTOISA_ROW_MAJOR || tile->cols == 1;
        bool is_flat = tile->rows == 1 && list->tiles[tile->root].rows > 1;
        uint32_t rows = is_flat ? tile->cols : tile->rows;
        if (tile->memory == PTOISA_VEC && is_by_row && rows > 1) {
            uint32_t first = rows < cut ? rows : cut;
            uint32_t part = ((first > rows - first ? first : rows - first) + 31) / 32 * 32;
            tile->own_rows = part < rows ? part : rows;
        }
    }
    return true;
}
