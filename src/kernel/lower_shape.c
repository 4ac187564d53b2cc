// Lowering of operations that make, convert, move, select and sort elements, and of plain
// instructions.

#include "lower.h"

#include "../isa/sort.h"

// -- making and converting ------------------------------------------------------------------------

static void pwsp_lower_full(pwsp_lowering *lw, const pwsp_kop *op) {
    uint32_t dst = pwsp_lower_flat(lw, pwsp_lower_result(lw, op, 0));
    bool is_float = op->dtype == PTOWSP_F16 || op->dtype == PTOWSP_BF16 || op->dtype == PTOWSP_F32;
    bool is_cut = !is_float && op->value > -0x1p32 && op->value < 0x1p32;  // towards zero
    pwsp_insn_emit_scalar(lw, op->kind == PWSP_KOP_IOTA ? PTOISA_TCI : PTOISA_TEXPANDS, dst, 0,
                          is_cut ? (double)(int64_t)op->value : op->value);
}

// A tile of the user's: its sizes as they are asked for, or whole blocks and boxes around a value.
static void pwsp_lower_alloc(pwsp_lowering *lw, const pwsp_kop *op) {
    ptoisa_tile shape = ptoisa_tile_make(NULL, (ptoisa_dtype)op->dtype, (ptoisa_memory)op->memory,
                                         (ptoisa_layout)op->layout, op->rows, op->cols);
    uint32_t row_unit = ptoisa_box_rows(&shape), col_unit = ptoisa_box_cols(&shape);
    if (op->layout == PTOISA_ROW_MAJOR) {
        col_unit = pwsp_block_elements(op->dtype);
    } else if (op->layout == PTOISA_COL_MAJOR) {
        row_unit = pwsp_block_elements(op->dtype);
    }
    uint32_t rows = op->row ? pwsp_round_up(op->rows, row_unit) : op->rows;
    uint32_t cols = op->col ? pwsp_round_up(op->cols, col_unit) : op->cols;
    lw->values[lw->at].tile =
        pwsp_lower_tile(lw, (ptoisa_memory)op->memory, (ptoisa_layout)op->layout, op->dtype, rows,
                        cols, op->valid_rows, op->valid_cols);
}

static void pwsp_lower_cvt(pwsp_lowering *lw, const pwsp_kop *op) {
    if (lw->values[op->src[0]].acc && pwsp_lower_is_narrowed(lw->body, lw->at)) {
        lw->values[lw->at].acc = lw->values[op->src[0]].acc;
        return;
    }
    uint32_t src = pwsp_lower_flat(lw, pwsp_lower_value(lw, op->src[0]));
    uint32_t dst = pwsp_lower_flat(lw, pwsp_lower_result(lw, op, 0));
    if (lw->list->tiles[src].dtype == op->dtype) {  // of values that may change: a copy
        pwsp_insn_emit(lw, PTOISA_TMOV, dst, src, 0, 0);
        return;
    }
    pwsp_insn *cvt = pwsp_insn_emit(lw, PTOISA_TCVT, dst, src, 0, 0);
    cvt->mode = op->mode;
    cvt->variant = PWSP_VARIANT_SATURATE;
}

// A vector as the column that TQUANT and TDEQUANT take.
static uint32_t pwsp_lower_wide(pwsp_lowering *lw, uint32_t value) {
    return pwsp_lower_column(lw, pwsp_lower_value(lw, value));
}

static void pwsp_lower_quantize(pwsp_lowering *lw, const pwsp_kop *op) {
    uint32_t src = pwsp_lower_value(lw, op->src[0]), scale = pwsp_lower_wide(lw, op->src[1]);
    uint32_t offset = op->src[2] ? pwsp_lower_wide(lw, op->src[2]) : 0;
    uint32_t dst = pwsp_lower_result(lw, op, 0);
    pwsp_insn_emit(lw, op->kind == PWSP_KOP_QUANTIZE ? PTOISA_TQUANT : PTOISA_TDEQUANT, dst, src,
                   scale, offset);
}

// -- moving ---------------------------------------------------------------------------------------

static void pwsp_lower_transpose(pwsp_lowering *lw, const pwsp_kop *op) {
    uint32_t src = pwsp_lower_value(lw, op->src[0]);
    pwsp_list_tile of = lw->list->tiles[src];
    bool is_vector = op->cols == 1 || op->rows == 1;
    if (is_vector && lw->body->ops[op->src[0]].kind == PWSP_KOP_ALLOC) {  // which may change
        uint32_t dst = pwsp_lower_flat(lw, pwsp_lower_result(lw, op, 0));
        pwsp_insn_emit(lw, PTOISA_TMOV, dst, pwsp_lower_flat(lw, src), 0, 0);
        return;
    }
    if (is_vector) {  // the same bytes
        uint32_t view = op->cols == 1 ? pwsp_lower_column(lw, src) : pwsp_lower_flat(lw, src);
        lw->values[lw->at].tile = view;
        pwsp_lower_keep(lw, view, lw->at);
        return;
    }
    uint32_t dst = pwsp_lower_result(lw, op, 0);
    // Scratch of columns x rows padded to 16, and 32 for bytes.
    uint32_t unit = ptoisa_dtype_size((ptoisa_dtype)op->dtype) == 1 ? 32 : 16;
    uint32_t tmp = pwsp_lower_tile(lw, PTOISA_VEC, PTOISA_ROW_MAJOR, op->dtype, of.cols,
                                   pwsp_round_up(of.rows, unit), pwsp_valid_full(of.cols),
                                   pwsp_valid_full(of.rows));
    if (tmp) {
        lw->list->tiles[tmp].value = 0;
    }
    pwsp_insn_emit(lw, PTOISA_TTRANS, dst, src, 0, 0)->tmp = tmp;
}

// The same bytes as a type that TEXTRACT takes.
static uint32_t pwsp_lower_bits(pwsp_lowering *lw, uint32_t tile) {
    pwsp_list_tile of = lw->list->tiles[tile];
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)of.dtype);
    uint8_t dtype = size == 4 ? PTOISA_F32 : size == 2 ? PTOISA_F16 : PTOISA_I8;
    if (of.dtype == dtype || of.dtype == PTOISA_BF16) {
        return tile;
    }
    return pwsp_lower_view(lw, tile, (ptoisa_layout)of.layout, dtype, of.rows, of.cols,
                           of.valid_rows, of.valid_cols, 0);
}

// A column of one value: a row reduction over one column takes it out of a row-major tile, for
// which no instruction does. Words are compared as i32, for lack of u32.
static void pwsp_lower_take_column(pwsp_lowering *lw, uint32_t dst, uint32_t part) {
    pwsp_list_tile of = lw->list->tiles[part];
    uint8_t dtype = of.dtype == PTOISA_U32 ? (uint8_t)PTOISA_I32 : of.dtype;
    uint32_t tmp = pwsp_lower_tile(lw, PTOISA_VEC, PTOISA_ROW_MAJOR, dtype, of.rows, of.cols,
                                   of.valid_rows, of.valid_cols);
    if (dtype != of.dtype) {
        pwsp_list_tile to = lw->list->tiles[dst];
        dst = pwsp_lower_view(lw, dst, (ptoisa_layout)to.layout, dtype, to.rows, to.cols,
                              to.valid_rows, to.valid_cols, 0);
        part = pwsp_lower_view(lw, part, PTOISA_ROW_MAJOR, dtype, of.rows, of.cols, of.valid_rows,
                               of.valid_cols, 0);
    }
    pwsp_insn_emit(lw, PTOISA_TROWMAX, dst, part, 0, 0)->tmp = tmp;
}

static void pwsp_lower_slice(pwsp_lowering *lw, const pwsp_kop *op) {
    uint32_t src = pwsp_lower_value(lw, op->src[0]);
    const pwsp_kop *of = &lw->body->ops[op->src[0]];
    uint32_t dst = pwsp_lower_result(lw, op, 0);
    uint32_t row = op->row, col = op->col;
    if (of->cols == 1) {  // along a column: it is a row
        src = pwsp_lower_flat(lw, src);
        dst = pwsp_lower_flat(lw, dst);
        col = row;
        row = 0;
    } else if (op->cols == 1 && op->rows > 1) {
        uint32_t part =
            pwsp_lower_tile(lw, PTOISA_VEC, PTOISA_ROW_MAJOR, op->dtype, op->rows,
                            pwsp_block_elements(op->dtype), op->valid_rows, op->valid_cols);
        uint32_t to = pwsp_lower_bits(lw, part), from = pwsp_lower_bits(lw, src);
        pwsp_insn *extract = pwsp_insn_emit(lw, PTOISA_TEXTRACT, to, from, 0, 0);
        extract->row = row;
        extract->col = col;
        pwsp_lower_take_column(lw, dst, part);
        return;
    } else if (op->cols == 1) {
        dst = pwsp_lower_flat(lw, dst);
    }
    dst = pwsp_lower_bits(lw, dst);
    src = pwsp_lower_bits(lw, src);
    pwsp_insn *extract = pwsp_insn_emit(lw, PTOISA_TEXTRACT, dst, src, 0, 0);
    extract->row = row;
    extract->col = col;
}

// A tile of whose columns all are looked at, whatever is valid.
static uint32_t pwsp_lower_all_cols(pwsp_lowering *lw, uint32_t tile, uint32_t cols) {
    pwsp_list_tile of = lw->list->tiles[tile];
    return pwsp_lower_view(lw, tile, (ptoisa_layout)of.layout, of.dtype, of.rows, of.cols,
                           of.valid_rows, pwsp_valid_full(cols), 0);
}

// x0 y0 x1 y1 ...: TINTERLEAVE writes the left and the right half of the result. Where the right
// one begins does not depend on the task, so it goes over all columns, however many are valid. The
// halves are views with the result's pitch: the last row of the right half ends half a row after
// the result, so the result has one more row.
static void pwsp_lower_interleave(pwsp_lowering *lw, const pwsp_kop *op) {
    uint32_t x = pwsp_lower_all_cols(lw, pwsp_lower_value(lw, op->src[0]), op->cols / 2);
    uint32_t y = pwsp_lower_all_cols(lw, pwsp_lower_value(lw, op->src[1]), op->cols / 2);
    uint32_t half = op->cols / 2, size = ptoisa_dtype_size((ptoisa_dtype)op->dtype);
    uint32_t cols = pwsp_round_up(half, pwsp_block_elements(op->dtype)) * 2;
    const pwsp_kop *of = &lw->body->ops[op->src[0]];
    uint32_t dst = pwsp_lower_tile(lw, PTOISA_VEC, PTOISA_ROW_MAJOR, op->dtype, op->rows + 1, cols,
                                   op->valid_rows, op->valid_cols);
    uint32_t d0 = pwsp_lower_view(lw, dst, PTOISA_ROW_MAJOR, op->dtype, op->rows, cols,
                                  of->valid_rows, pwsp_valid_full(half), 0);
    uint32_t d1 = pwsp_lower_view(lw, dst, PTOISA_ROW_MAJOR, op->dtype, op->rows, cols,
                                  of->valid_rows, pwsp_valid_full(half), half * size);
    lw->values[lw->at].tile = dst;
    pwsp_lower_keep(lw, dst, lw->at);
    pwsp_insn_emit(lw, PTOISA_TINTERLEAVE, d0, x, y, 0)->dst[1] = d1;
}

// Every second column, or one of every pair: TGATHER by mask.
static void pwsp_lower_every(pwsp_lowering *lw, const pwsp_kop *op, uint32_t src, uint8_t dtype,
                             ptoisa_pattern pattern) {
    pwsp_list_tile of = lw->list->tiles[src];
    uint32_t cols = pwsp_round_up(op->cols, pwsp_block_elements(dtype));
    // The instruction fills all columns of its destination: see legal_forms.c.
    uint32_t words = of.cols * ptoisa_dtype_size((ptoisa_dtype)of.dtype) /
                     ptoisa_dtype_size((ptoisa_dtype)dtype);  // the same bytes
    uint32_t pairs = pwsp_lower_view(lw, src, PTOISA_ROW_MAJOR, dtype, of.rows, words,
                                     of.valid_rows, pwsp_valid_full(words), 0);
    uint32_t full = pwsp_lower_tile(lw, PTOISA_VEC, PTOISA_ROW_MAJOR, dtype, of.rows, cols,
                                    of.valid_rows, pwsp_valid_full(cols));
    pwsp_insn_emit(lw, PTOISA_TGATHERMASK, full, pairs, 0, 0)->mode = (uint8_t)pattern;
    uint32_t result = pwsp_lower_view(lw, full, PTOISA_ROW_MAJOR, dtype, of.rows, cols,
                                      op->valid_rows, op->valid_cols, 0);
    if (op->cols == 1 && op->rows == 1) {
        result = pwsp_lower_column(lw, result);
    } else if (op->cols == 1) {
        pwsp_lower_take_column(lw, pwsp_lower_result(lw, op, 0), result);
        if (!lw->is_out) {  // PTO-WSP counts only the first instruction
            lw->list->insns[lw->list->insn_count - 1].is_implied = true;
        }
        return;
    }
    lw->values[lw->at].tile = result;
    if (result) {
        pwsp_lower_keep(lw, result, lw->at);
    }
}

void pwsp_lower_shape(pwsp_lowering *lw, const pwsp_kop *op) {
    switch ((pwsp_kop_kind)op->kind) {
    case PWSP_KOP_FULL:
    case PWSP_KOP_IOTA: pwsp_lower_full(lw, op); break;
    case PWSP_KOP_ALLOC: pwsp_lower_alloc(lw, op); break;
    case PWSP_KOP_CVT: pwsp_lower_cvt(lw, op); break;
    case PWSP_KOP_QUANTIZE:
    case PWSP_KOP_DEQUANTIZE: pwsp_lower_quantize(lw, op); break;
    case PWSP_KOP_TRANSPOSE: pwsp_lower_transpose(lw, op); break;
    case PWSP_KOP_SLICE: pwsp_lower_slice(lw, op); break;
    case PWSP_KOP_INTERLEAVE: pwsp_lower_interleave(lw, op); break;
    default:
        pwsp_lower_every(lw, op, pwsp_lower_value(lw, op->src[0]), op->dtype,
                         op->col ? PTOISA_P1010 : PTOISA_P0101);
        break;
    }
}

// -- indexing -------------------------------------------------------------------------------------

static uint32_t pwsp_lower_scratch(pwsp_lowering *lw, uint8_t dtype, uint32_t rows, uint32_t cols) {
    uint32_t tile = pwsp_lower_tile(lw, PTOISA_VEC, PTOISA_ROW_MAJOR, dtype, rows, cols,
                                    pwsp_valid_full(rows), pwsp_valid_full(cols));
    if (tile) {
        lw->list->tiles[tile].value = 0;
    }
    return tile;
}

// A mask has a bit for each element, rows padded to 32 bytes.
static void pwsp_lower_compare(pwsp_lowering *lw, const pwsp_kop *op) {
    uint32_t x = pwsp_lower_flat(lw, pwsp_lower_value(lw, op->src[0]));
    pwsp_list_tile of = lw->list->tiles[x];
    pwsp_valid bytes = of.valid_cols;
    bytes.max = (bytes.max + 7) / 8;
    bytes.add += 7 << bytes.shift;
    bytes.shift = (uint8_t)(bytes.shift + 3);
    uint32_t mask = pwsp_lower_tile(lw, PTOISA_VEC, PTOISA_ROW_MAJOR, PTOISA_U8, of.rows,
                                    pwsp_round_up((of.cols + 7) / 8, 32), of.valid_rows, bytes);
    lw->values[lw->at].tile = mask;
    if (mask) {
        pwsp_lower_keep(lw, mask, lw->at);
    }
    uint8_t kind = lw->body->ops[op->src[1]].kind;
    pwsp_insn *insn;
    if (kind == PWSP_KOP_CONST || kind == PWSP_KOP_SCALAR) {
        insn = pwsp_insn_emit(lw, PTOISA_TCMPS, mask, x, 0, 0);
        insn->scalar = pwsp_lower_scalar(lw->body, op->src[1]);
    } else {
        uint32_t y = pwsp_lower_flat(lw, pwsp_lower_value(lw, op->src[1]));
        insn = pwsp_insn_emit(lw, PTOISA_TCMP, mask, x, y, 0);
    }
    insn->mode = op->mode;
}

static void pwsp_lower_select(pwsp_lowering *lw, const pwsp_kop *op) {
    uint32_t mask = pwsp_lower_value(lw, op->src[0]);
    uint32_t x = pwsp_lower_flat(lw, pwsp_lower_value(lw, op->src[1]));
    uint32_t tmp = pwsp_lower_scratch(lw, PTOISA_U8, 1, 32);
    uint32_t dst = pwsp_lower_flat(lw, pwsp_lower_result(lw, op, 0));
    uint8_t kind = lw->body->ops[op->src[2]].kind;
    if (kind == PWSP_KOP_CONST || kind == PWSP_KOP_SCALAR) {
        pwsp_insn *insn = pwsp_insn_emit(lw, PTOISA_TSELS, dst, mask, x, 0);
        insn->scalar = pwsp_lower_scalar(lw->body, op->src[2]);
        insn->tmp = tmp;
    } else {
        uint32_t y = pwsp_lower_flat(lw, pwsp_lower_value(lw, op->src[2]));
        pwsp_insn_emit(lw, PTOISA_TSEL, dst, mask, x, y)->tmp = tmp;
    }
}

static void pwsp_lower_sort32(pwsp_lowering *lw, const pwsp_kop *op) {
    uint32_t x = pwsp_lower_flat(lw, pwsp_lower_value(lw, op->src[0]));
    uint32_t index = pwsp_lower_flat(lw, pwsp_lower_value(lw, op->src[1]));
    const pwsp_kop *scores = &lw->body->ops[op->src[0]];
    if (scores->rows > 1 && lw->body->ops[op->src[1]].rows == 1 && scores->cols > 1) {
        uint32_t rows = pwsp_lower_vec(lw, PTOISA_U32, scores->rows, scores->cols,
                                       scores->valid_rows, scores->valid_cols);
        pwsp_insn_emit(lw, PTOISA_TCOLEXPAND, rows, index, 0, 0);
        index = rows;
    }
    // Runs are whole: columns after the valid pairs are padded (legal_forms.c).
    pwsp_list_tile of = lw->list->tiles[x];
    uint32_t dst = pwsp_lower_tile(lw, PTOISA_VEC, PTOISA_ROW_MAJOR, op->dtype, of.rows,
                                   pwsp_round_up(scores->cols, PTOISA_SORT_RUN) *
                                       ptoisa_pair_elements(op->dtype),
                                   op->valid_rows, op->valid_cols);
    lw->values[lw->at].tile = dst;
    if (dst) {
        pwsp_lower_keep(lw, dst, lw->at);
    }
    pwsp_insn_emit(lw, PTOISA_TSORT32, dst, x, index, 0);
}

// Runs of `run` pairs: by fours with one instruction, or the last two or three as lists. All pairs
// are merged; padding pairs sort last.
static void pwsp_lower_merge(pwsp_lowering *lw, const pwsp_kop *op) {
    uint32_t run = ptoisa_pair_elements(op->dtype) * op->col, count = op->cols / run;
    uint32_t src = pwsp_lower_all_cols(lw, pwsp_lower_value(lw, op->src[0]), op->cols);
    uint32_t dst = pwsp_lower_all_cols(lw, pwsp_lower_result(lw, op, 0), op->cols);
    if (count % 4 == 0) {
        pwsp_insn_emit(lw, PTOISA_TMRGSORT, dst, src, 0, 0)->col = run;
        return;
    }
    uint32_t lists[3] = {0, 0, 0};
    for (uint32_t i = 0; i < count; i++) {
        lists[i] = pwsp_lower_view(lw, src, PTOISA_ROW_MAJOR, op->dtype, 1, run, pwsp_valid_full(1),
                                   pwsp_valid_full(run), i * op->col * 8);
    }
    uint32_t tmp = pwsp_lower_scratch(lw, op->dtype, 1, op->cols);
    pwsp_insn *merge = pwsp_insn_emit(lw, PTOISA_TMRGSORT, dst, lists[0], lists[1], lists[2]);
    merge->variant = PWSP_VARIANT_LISTS;
    merge->tmp = tmp;
}

void pwsp_lower_indexing(pwsp_lowering *lw, const pwsp_kop *op) {
    uint32_t src = pwsp_lower_value(lw, op->src[0]);
    switch ((pwsp_kop_kind)op->kind) {
    case PWSP_KOP_COMPARE: pwsp_lower_compare(lw, op); break;
    case PWSP_KOP_SELECT: pwsp_lower_select(lw, op); break;
    case PWSP_KOP_SORT32: pwsp_lower_sort32(lw, op); break;
    case PWSP_KOP_MERGE_SORT: pwsp_lower_merge(lw, op); break;
    case PWSP_KOP_TOPK_VALUES:
        pwsp_lower_every(lw, op, src, op->dtype,
                         op->dtype == PTOISA_F16 ? PTOISA_P0001 : PTOISA_P0101);
        break;
    case PWSP_KOP_TOPK_INDICES: pwsp_lower_every(lw, op, src, PTOISA_U32, PTOISA_P1010); break;
    default: {
        uint32_t index = pwsp_lower_flat(lw, pwsp_lower_value(lw, op->src[1]));
        pwsp_list_tile of = lw->list->tiles[index];
        uint32_t tmp = pwsp_lower_scratch(lw, of.dtype, of.rows, of.cols);
        uint32_t dst = pwsp_lower_flat(lw, pwsp_lower_result(lw, op, 0));
        pwsp_insn_emit(lw, PTOISA_TGATHER, dst, pwsp_lower_flat(lw, src), index, 0)->tmp = tmp;
        break;
    }
    }
}

// -- instructions ---------------------------------------------------------------------------------

void pwsp_lower_instruction(pwsp_lowering *lw, const pwsp_kop *op) {
    const ptowsp_body *body = lw->body;
    const pwsp_body_insn *asked = &body->insns[op->param - 1];
    pwsp_form form = pwsp_form_of((ptoisa_op)asked->op);
    pwsp_insn *insn = pwsp_insn_emit(lw, (ptoisa_op)asked->op, 0, 0, 0, 0);
    bool is_store = asked->op == PTOISA_TSTORE || asked->op == PTOISA_MSCATTER;
    for (uint32_t i = 0; i < form.dst_count; i++) {
        insn->dst[i] = form.is_global && is_store ? 0 : lw->values[asked->dst[i]].tile;
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < form.src_count; i++) {
        if (!(form.is_global && !is_store && i == 0)) {
            const pwsp_lowered *value = &lw->values[asked->src[i]];
            insn->src[at++] = value->tile ? value->tile : value->acc;
        }
    }
    if (form.is_global) {
        insn->param = (uint16_t)body->ops[is_store ? asked->dst[0] : asked->src[0]].param;
    }
    insn->tmp = asked->tmp ? lw->values[asked->tmp].tile : 0;
    insn->mode = asked->mode;
    insn->row = asked->row;
    insn->col = asked->col;
    if (asked->scalar) {
        insn->scalar = pwsp_lower_scalar(body, asked->scalar);
    }
    if (asked->op == PTOISA_TCVT) {  // modes, as of operations
        insn->mode = (uint8_t)(asked->mode + PTOISA_CAST_RINT);
    } else if (asked->op == PTOISA_TCI && asked->mode) {
        insn->variant = PWSP_VARIANT_DESCENDING;
    } else if (asked->op == PTOISA_TTRI && asked->mode) {
        insn->variant = PWSP_VARIANT_UPPER;
    } else if (asked->op == PTOISA_TSTORE && asked->mode) {
        insn->variant = PWSP_VARIANT_ADD;
    }
}
