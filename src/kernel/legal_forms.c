// Makes instructions legal in form, by PWSP_LEGAL_FORMS of legal.h: views of the same bytes with other
// valid columns, tiles that are allocated larger, scratch, copies.
//
//      ROWS   a source of 3 rows for a column of 8: the source is a view of 8 rows, the valid ones
//             stay; one row: the result is the first element of a row of 32 bytes
//      COLS   a row that is narrower than its source: it is seen as wide
//      MASK   all allocated columns are compared and selected; columns after the valid
//             ones is never stored
//      RUNS   sorted rows are padded to whole runs of 32: scores with -inf, indices with the
//             highest, so that every pair that is valid comes before those
//      PACK   a source with fewer columns than are picked of it: a wider copy
//
// Copies are implied: PTO-WSP has none, and the unit model does not count them.

#include "legal.h"

#include "../isa/gather.h"
#include "../isa/sort.h"

#include <stdio.h>

const pwsp_legal_form *pwsp_legal_form_of(ptoisa_op op) {
    switch (op) {
#define PWSP_LEGAL_FORM(name, places, sizes, scratch, effect)                                      \
    case PTOISA_##name: {                                                                          \
        static const pwsp_legal_form form = {PTOISA_##name, places, PWSP_SIZES_##sizes,            \
                                             PWSP_SCRATCH_##scratch, PWSP_EFFECT_##effect};        \
        return &form;                                                                              \
    }
        PWSP_LEGAL_FORMS(PWSP_LEGAL_FORM)
#undef PWSP_LEGAL_FORM
    default: return NULL;
    }
}

// -- places ---------------------------------------------------------------------------------------

// The place of a tile, as the table names it.
static char pwsp_form_place(const pwsp_list_tile *tile) {
    switch ((ptoisa_memory)tile->memory) {
    case PTOISA_VEC: return tile->layout == PTOISA_COL_MAJOR ? 'C' : 'R';
    case PTOISA_MAT: return tile->layout >= PTOISA_NZ ? 'M' : 'm';
    case PTOISA_LEFT: return 'L';
    case PTOISA_RIGHT: return 'Q';
    case PTOISA_ACC: return 'A';
    case PTOISA_BIAS: return 'B';
    default: return 'S';
    }
}

// How messages call a place.
static const char *pwsp_form_place_name(char place) {
    switch (place) {
    case 'R': return "rows in UB";
    case 'C': return "a column in UB";
    case 'M': return "boxes in L1";
    case 'm': return "a row in L1";
    case 'L': return "L0A";
    case 'Q': return "L0B";
    case 'A': return "L0C";
    case 'B': return "the bias table";
    default: return "the fixpipe buffer";
    }
}

// The first tile of an instruction that is in none of the places of its form; 0: all are in one.
static uint32_t pwsp_form_misplaced(const pwsp_list *list, const pwsp_legal_form *form,
                                    const pwsp_insn *insn) {
    const uint32_t *tile = &insn->dst[0];
    bool is_in = false;
    for (const char *at = form->places;; at++) {
        if (*at >= 'A') {
            is_in = is_in || !*tile || *at == pwsp_form_place(&list->tiles[*tile]);
            continue;
        }
        if (!is_in && *tile) {
            return *tile;
        }
        is_in = false;
        if (*at == '\0') {
            return 0;
        }
        tile = *at == ':' ? &insn->src[0] : tile + 1;
    }
}

// -- views and copies -----------------------------------------------------------------------------

// The tile with so many valid columns in every task.
static uint32_t pwsp_form_all_cols(pwsp_lowering *lw, uint32_t tile, uint32_t cols) {
    pwsp_list_tile of = lw->list->tiles[tile];
    pwsp_valid all = pwsp_valid_full(cols);
    if (lw->is_out || pwsp_valid_is_equal(&of.valid_cols, &all)) {
        return tile;
    }
    return pwsp_lower_view(lw, tile, (ptoisa_layout)of.layout, of.dtype, of.rows, of.cols,
                           of.valid_rows, all, 0);
}

// The same bytes as integers.
static uint32_t pwsp_form_bits(pwsp_lowering *lw, uint32_t tile) {
    pwsp_list_tile of = lw->list->tiles[tile];
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)of.dtype);
    uint8_t dtype = size == 4 ? PTOISA_I32 : size == 2 ? PTOISA_I16 : PTOISA_I8;
    return pwsp_lower_view(lw, tile, (ptoisa_layout)of.layout, dtype, of.rows, of.cols,
                           of.valid_rows, of.valid_cols, 0);
}

// A copy of a row-major tile that is allocated with so many columns. TMOV wants tiles of one size;
// where they differ, or'ing nothing copies the bits.
static uint32_t pwsp_form_copy(pwsp_lowering *lw, uint32_t tile, uint32_t cols) {
    pwsp_list_tile of = lw->list->tiles[tile];
    uint32_t copy = pwsp_lower_tile(lw, PTOISA_VEC, PTOISA_ROW_MAJOR, of.dtype, of.rows, cols,
                                    of.valid_rows, of.valid_cols);
    if (copy == 0) {
        return tile;
    }
    lw->list->tiles[copy].value = 0;
    if (of.cols == cols) {
        pwsp_insn_emit(lw, PTOISA_TMOV, copy, tile, 0, 0)->is_implied = true;
        return copy;
    }
    uint32_t to = pwsp_form_bits(lw, copy), from = pwsp_form_bits(lw, tile);
    pwsp_insn_emit_scalar(lw, PTOISA_TORS, to, from, 0)->is_implied = true;
    return copy;
}

// A copy of the first valid columns of a row-major tile, with so many columns, all valid: the rest
// is filled with `pad`.
static uint32_t pwsp_form_padded(pwsp_lowering *lw, uint32_t tile, pwsp_valid valid_cols,
                                 uint32_t cols, ptoisa_pad pad) {
    pwsp_list_tile of = lw->list->tiles[tile];
    uint32_t from = pwsp_lower_view(lw, tile, PTOISA_ROW_MAJOR, of.dtype, of.rows, of.cols,
                                    of.valid_rows, valid_cols, 0);
    uint32_t copy = pwsp_lower_tile(lw, PTOISA_VEC, PTOISA_ROW_MAJOR, of.dtype, of.rows, cols,
                                    pwsp_valid_full(of.rows), pwsp_valid_full(cols));
    if (copy == 0) {
        return tile;
    }
    lw->list->tiles[copy].pad = (uint8_t)pad;
    lw->list->tiles[copy].value = 0;
    pwsp_insn *fill = pwsp_insn_emit(lw, PTOISA_TFILLPAD, copy, from, 0, 0);
    fill->variant = of.cols == cols ? PWSP_VARIANT_PLAIN : PWSP_VARIANT_EXPAND;
    fill->is_implied = true;
    return pwsp_lower_view(lw, copy, PTOISA_ROW_MAJOR, of.dtype, of.rows, cols, of.valid_rows,
                           pwsp_valid_full(cols), 0);
}

// Makes a root hold the bytes of a view that goes beyond it: a larger root takes its place, and it
// becomes a view itself.
static void pwsp_form_hold(pwsp_lowering *lw, uint32_t view) {
    pwsp_list *list = lw->list;
    uint32_t old = list->tiles[view].root;
    uint64_t bytes = list->tiles[view].offset + pwsp_list_tile_bytes(&list->tiles[view]);
    if (lw->is_out || bytes <= pwsp_list_tile_bytes(&list->tiles[old])) {
        return;
    }
    pwsp_list_tile of = list->tiles[old];
    uint32_t row_bytes = of.cols * ptoisa_dtype_size((ptoisa_dtype)of.dtype);
    uint32_t root = pwsp_lower_tile(lw, (ptoisa_memory)of.memory, (ptoisa_layout)of.layout,
                                    of.dtype, (uint32_t)((bytes + row_bytes - 1) / row_bytes),
                                    of.cols, of.valid_rows, of.valid_cols);
    if (root == 0) {
        return;
    }
    list->tiles[root].value = of.value;
    for (uint32_t i = 1; i < list->tile_count; i++) {
        if (list->tiles[i].root == old) {
            list->tiles[i].root = root;
        }
    }
}

// -- sizes ----------------------------------------------------------------------------------------

static void pwsp_form_rows(pwsp_lowering *lw, pwsp_insn *insn) {
    pwsp_list_tile dst = lw->list->tiles[insn->dst[0]], src = lw->list->tiles[insn->src[0]];
    if (dst.rows == src.rows) {
        return;
    }
    if (src.rows == 1 && dst.layout == PTOISA_COL_MAJOR &&
        dst.rows == pwsp_block_elements(dst.dtype)) {
        insn->dst[0] = pwsp_lower_view(lw, insn->dst[0], PTOISA_ROW_MAJOR, dst.dtype, 1, dst.rows,
                                       dst.valid_rows, dst.valid_cols, 0);
        return;
    }
    bool is_src = src.rows < dst.rows;
    uint32_t *tile = is_src ? &insn->src[0] : &insn->dst[0];
    pwsp_list_tile of = is_src ? src : dst;
    *tile = pwsp_lower_view(lw, *tile, (ptoisa_layout)of.layout, of.dtype,
                            is_src ? dst.rows : src.rows, of.cols, of.valid_rows, of.valid_cols, 0);
    pwsp_form_hold(lw, *tile);
}

static void pwsp_form_cols(pwsp_lowering *lw, pwsp_insn *insn) {
    pwsp_list_tile dst = lw->list->tiles[insn->dst[0]], src = lw->list->tiles[insn->src[0]];
    if (src.cols < dst.cols) {
        insn->src[0] = pwsp_form_copy(lw, insn->src[0], dst.cols);
    } else if (src.cols > dst.cols && dst.rows == 1) {
        insn->dst[0] = pwsp_lower_view(lw, insn->dst[0], PTOISA_ROW_MAJOR, dst.dtype, 1, src.cols,
                                       dst.valid_rows, dst.valid_cols, 0);
        pwsp_form_hold(lw, insn->dst[0]);
    }
}

static void pwsp_form_mask(pwsp_lowering *lw, pwsp_insn *insn) {
    bool is_compare = insn->op == PTOISA_TCMP || insn->op == PTOISA_TCMPS;
    uint32_t *mask = is_compare ? &insn->dst[0] : &insn->src[0];
    uint32_t cols = lw->list->tiles[is_compare ? insn->src[0] : insn->dst[0]].cols;
    for (uint32_t i = is_compare ? 0 : 1; i < 3 && insn->src[i]; i++) {
        if (lw->list->tiles[insn->src[i]].cols != cols) {
            insn->src[i] = pwsp_form_copy(lw, insn->src[i], cols);
        }
        insn->src[i] = pwsp_form_all_cols(lw, insn->src[i], cols);
    }
    uint32_t bits = 8 * ptoisa_dtype_size((ptoisa_dtype)lw->list->tiles[*mask].dtype);
    if (cols % bits == 0 && cols / bits <= lw->list->tiles[*mask].cols) {
        *mask = pwsp_form_all_cols(lw, *mask, cols / bits);
    }
    if (!is_compare) {
        insn->dst[0] = pwsp_form_all_cols(lw, insn->dst[0], cols);
    }
}

static void pwsp_form_pack(pwsp_lowering *lw, pwsp_insn *insn) {
    uint32_t first, step, cols = lw->list->tiles[insn->dst[0]].cols;
    ptoisa_pattern_of((ptoisa_pattern)insn->mode, &first, &step);
    uint32_t of_cols = lw->list->tiles[insn->src[0]].cols;
    if (lw->list->tiles[insn->src[0]].valid_rows.max == 1 && of_cols < step * cols) {
        insn->src[0] = pwsp_form_all_cols(lw, insn->src[0], of_cols);
    } else {
        if (of_cols < step * cols) {
            insn->src[0] = pwsp_form_copy(lw, insn->src[0], step * cols);
        }
        insn->src[0] = pwsp_form_all_cols(lw, insn->src[0], step * cols);
    }
    insn->dst[0] = pwsp_form_all_cols(lw, insn->dst[0], cols);
}

// Whole runs of any type but f32 and f16 are refused by the instruction.
static void pwsp_form_runs(pwsp_lowering *lw, pwsp_insn *insn) {
    pwsp_list_tile src = lw->list->tiles[insn->src[0]], dst = lw->list->tiles[insn->dst[0]];
    uint32_t cols = pwsp_round_up(src.valid_cols.max, PTOISA_SORT_RUN);
    bool is_whole = src.valid_cols.param == 0 && src.valid_cols.max == cols;
    bool is_placed = !pwsp_form_misplaced(lw->list, pwsp_legal_form_of(PTOISA_TSORT32), insn);
    if (is_whole || !is_placed || dst.cols < cols * ptoisa_pair_elements(dst.dtype)) {
        return;
    }
    insn->src[0] = pwsp_form_padded(lw, insn->src[0], src.valid_cols, cols, PTOISA_PAD_MIN);
    insn->src[1] = pwsp_form_padded(lw, insn->src[1], src.valid_cols, cols, PTOISA_PAD_MAX);
    insn->dst[0] = pwsp_form_all_cols(lw, insn->dst[0], cols * ptoisa_pair_elements(dst.dtype));
}

static void pwsp_form_sizes(pwsp_lowering *lw, pwsp_legal_sizes sizes, pwsp_insn *insn) {
    switch (sizes) {
    case PWSP_SIZES_ROWS: pwsp_form_rows(lw, insn); break;
    case PWSP_SIZES_COLS: pwsp_form_cols(lw, insn); break;
    case PWSP_SIZES_MASK: pwsp_form_mask(lw, insn); break;
    case PWSP_SIZES_PACK: pwsp_form_pack(lw, insn); break;
    case PWSP_SIZES_RUNS: pwsp_form_runs(lw, insn); break;
    case PWSP_SIZES_ANY:
    case PWSP_SIZES_ROWS_4095:
    case PWSP_SIZES_PRODUCT: break;  // as lowered, or refused
    }
}

// -- scratch, and rounding ------------------------------------------------------------------------

// Replaces scratch that is too small, and adds scratch that the library does without.
static void pwsp_form_scratch(pwsp_lowering *lw, pwsp_legal_scratch scratch, pwsp_insn *insn) {
    pwsp_list_tile src = lw->list->tiles[insn->src[0]];
    uint32_t rows = src.rows, cols = src.cols;
    uint8_t dtype = src.dtype;
    switch (scratch) {
    case PWSP_SCRATCH_NONE: return;
    case PWSP_SCRATCH_LIKE: break;
    case PWSP_SCRATCH_TRANS:
        rows = src.cols;
        cols = pwsp_round_up(src.rows, ptoisa_dtype_size((ptoisa_dtype)dtype) == 1 ? 32 : 16);
        break;
    case PWSP_SCRATCH_BYTES_32:
        dtype = PTOISA_U8;
        rows = 1;
        cols = 32;
        break;
    case PWSP_SCRATCH_QUANT: rows = pwsp_round_up(rows, 8); break;
    }
    uint64_t bytes = (uint64_t)rows * cols * ptoisa_dtype_size((ptoisa_dtype)dtype);
    bool is_optional = scratch == PWSP_SCRATCH_BYTES_32 || scratch == PWSP_SCRATCH_QUANT;
    if (lw->is_out || (!insn->tmp && !is_optional) ||
        (insn->tmp && pwsp_list_tile_bytes(&lw->list->tiles[insn->tmp]) >= bytes)) {
        return;
    }
    insn->tmp = pwsp_lower_tile(lw, PTOISA_VEC, PTOISA_ROW_MAJOR, dtype, rows, cols,
                                pwsp_valid_full(rows), pwsp_valid_full(cols));
    if (insn->tmp) {
        lw->list->tiles[insn->tmp].value = 0;
    }
}

// Do instructions from `at` on, of the list as it was, need the bytes of a root? In a loop all may. What
// an instruction adds to is needed if the sum is.
static bool pwsp_form_is_needed(const pwsp_lowering *lw, const pwsp_insn *insns, uint64_t count,
                                uint64_t at, uint32_t root) {
    uint32_t depth = 0;
    for (uint64_t i = 0; i < at; i++) {
        depth += insns[i].op == PWSP_INSN_LOOP;
        depth -= insns[i].op == PWSP_INSN_END;
    }
    bool is_needed = depth > 0;
    for (uint64_t i = at; i < count && !is_needed; i++) {
        for (uint32_t k = 0; k < PWSP_INSN_SRC_MAX; k++) {
            uint32_t tile = insns[i].src[k];
            is_needed = is_needed || (tile && lw->list->tiles[tile].root == root);
        }
    }
    return is_needed;
}

void pwsp_legal_form_apply(pwsp_lowering *lw, const pwsp_insn *insns, uint64_t count, uint64_t at) {
    const pwsp_legal_form *form = pwsp_legal_form_of((ptoisa_op)insns[at].op);
    if (!pwsp_legal_may_change(form)) {
        lw->is_out = !pwsp_list_append(lw->list, &insns[at]);
        return;
    }
    pwsp_insn insn = insns[at];
    bool is_a2a3 = lw->body->machine.family == PTOISA_A2A3;
    lw->at = insn.value;
    pwsp_form_sizes(lw, (pwsp_legal_sizes)form->sizes, &insn);
    if (form->effect == PWSP_EFFECT_APART && is_a2a3 && !lw->is_out &&
        lw->list->tiles[insn.dst[0]].root == lw->list->tiles[insn.src[0]].root) {
        insn.src[0] = pwsp_form_copy(lw, insn.src[0], lw->list->tiles[insn.src[0]].cols);
    }
    if (form->effect == PWSP_EFFECT_SPOILS && is_a2a3 && !lw->is_out) {
        pwsp_list_tile src = lw->list->tiles[insn.src[0]];
        if (pwsp_form_is_needed(lw, insns, count, at + 1, src.root)) {
            insn.src[0] = pwsp_form_copy(lw, insn.src[0], src.cols);
        }
        insn.dst[1] = insn.src[0];
    }
    if (form->scratch != PWSP_SCRATCH_QUANT || is_a2a3) {
        pwsp_form_scratch(lw, (pwsp_legal_scratch)form->scratch, &insn);
    }
    lw->is_out = lw->is_out || !pwsp_list_append(lw->list, &insn);
}

// -- the proof ------------------------------------------------------------------------------------

static bool pwsp_form_is_sized(const pwsp_list *list, const pwsp_legal_form *form,
                               const pwsp_insn *insn) {
    const pwsp_list_tile *dst = &list->tiles[insn->dst[0]], *src = &list->tiles[insn->src[0]];
    bool is_compare = insn->op == PTOISA_TCMP || insn->op == PTOISA_TCMPS;
    uint32_t from = insn->op == PTOISA_TMATMUL_ACC || insn->op == PTOISA_TGEMV_ACC, first, step;
    switch ((pwsp_legal_sizes)form->sizes) {
    case PWSP_SIZES_ROWS_4095:
        dst = insn->dst[0] ? dst : src;
        return dst->memory != PTOISA_VEC || dst->rows <= 4095;
    case PWSP_SIZES_ROWS: return PWSP_ALWAYS(dst->rows == src->rows);  // by pwsp_form_rows
    case PWSP_SIZES_COLS: return dst->cols == src->cols;
    case PWSP_SIZES_MASK: {
        const pwsp_list_tile *mask = is_compare ? dst : src, *all = is_compare ? src : dst;
        uint32_t bits = 8 * ptoisa_dtype_size((ptoisa_dtype)mask->dtype);
        pwsp_valid cols = pwsp_valid_full(all->cols), in_mask = pwsp_valid_full(all->cols / bits);
        return all->cols % bits != 0 || (pwsp_valid_is_equal(&all->valid_cols, &cols) &&
                                         pwsp_valid_is_equal(&mask->valid_cols, &in_mask));
    }
    case PWSP_SIZES_PACK: {
        pwsp_valid cols = pwsp_valid_full(dst->cols);
        ptoisa_pattern_of((ptoisa_pattern)insn->mode, &first, &step);
        return PWSP_ALWAYS(  // by pwsp_form_pack
            pwsp_valid_is_equal(&dst->valid_cols, &cols) && src->valid_cols.param == 0 &&
            (src->valid_rows.max == 1 || src->valid_cols.max == step * dst->cols));
    }
    case PWSP_SIZES_RUNS:
        return src->valid_cols.param == 0 && src->valid_cols.max % PTOISA_SORT_RUN == 0;
    case PWSP_SIZES_PRODUCT: {
        const pwsp_list_tile *left = &list->tiles[insn->src[from]],
                             *right = &list->tiles[insn->src[from + 1]];
        return left->rows == dst->rows && left->cols == right->rows && right->cols == dst->cols;
    }
    case PWSP_SIZES_ANY: break;
    }
    return true;
}

// The fault, and its rule by the name in the capability table.
static const char *pwsp_form_sizes_text(pwsp_legal_sizes sizes) {
    switch (sizes) {
    case PWSP_SIZES_ROWS_4095: return "a tile has more than 4095 rows (rule: rows in UB)";
    case PWSP_SIZES_COLS: return "source and result have other columns (rule: column sums)";
    case PWSP_SIZES_MASK: return "the mask has no bit for each allocated column (rule: masks)";
    case PWSP_SIZES_RUNS: return "the result has no room for whole runs of 32 (rule: runs)";
    default:  // the others are never refused
        PTOWSP_ASSERT(sizes == PWSP_SIZES_PRODUCT);
        return "factors and result have other sizes (rule: factors)";
    }
}

bool pwsp_legal_check_forms(const ptowsp_body *body, const pwsp_list *list,
                            pwsp_list_fault *fault) {
    const char *machine = body->machine.name;
    for (uint32_t i = 0; i < list->insn_count; i++) {
        const pwsp_insn *insn = &list->insns[i];
        if (pwsp_insn_is_sync(insn)) {
            continue;
        }
        const pwsp_legal_form *form = pwsp_legal_form_of((ptoisa_op)insn->op);
        uint32_t misplaced = form ? pwsp_form_misplaced(list, form, insn) : 0;
        if (misplaced) {
            const pwsp_list_tile *of = &list->tiles[misplaced];
            return pwsp_list_fail(fault, PTOWSP_UNSUPPORTED, i,
                                  "%s of %s: on %s, no tile in %s is taken there "
                                  "(rule: places)",
                                  pwsp_insn_name(insn), ptoisa_dtype_name((ptoisa_dtype)of->dtype),
                                  machine, pwsp_form_place_name(pwsp_form_place(of)));
        }
        if (form && !pwsp_form_is_sized(list, form, insn)) {
            uint32_t tile = insn->src[0] ? insn->src[0] : insn->dst[0];
            return pwsp_list_fail(fault, PTOWSP_UNSUPPORTED, i, "%s of %s: on %s, %s",
                                  pwsp_insn_name(insn),
                                  ptoisa_dtype_name((ptoisa_dtype)list->tiles[tile].dtype), machine,
                                  pwsp_form_sizes_text((pwsp_legal_sizes)form->sizes));
        }
    }
    return true;
}
