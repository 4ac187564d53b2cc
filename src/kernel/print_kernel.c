// Tile kernels as text, and their instructions one by one.

#include "../base/text.h"
#include "compiled.h"
#include "forms.h"

#include <inttypes.h>
#include <stdio.h>

// -- instructions ---------------------------------------------------------------------------------

// A list's tile with all of it valid that can be.
static ptoisa_tile pwsp_kernel_print_full_tile(const pwsp_tile_code *code, uint32_t tile) {
    const pwsp_list_tile *from = &code->tiles[tile];
    ptoisa_tile result;
    memset(&result, 0, sizeof result);
    result.dtype = from->dtype;
    result.memory = from->memory;
    result.layout = from->layout;
    result.rows = from->rows;
    result.cols = from->cols;
    const pwsp_valid *valid[2] = {&from->valid_rows, &from->valid_cols};
    uint32_t sizes[2];
    for (int i = 0; i < 2; i++) {
        uint32_t param = valid[i]->param ? valid[i]->param - 1u : 0;
        sizes[i] = pwsp_valid_at(valid[i], valid[i]->axis ? code->param_cols[param]
                                                          : code->param_rows[param]);
    }
    result.valid_rows = sizes[0];
    result.valid_cols = sizes[1];
    return result;
}

ptowsp_insn pwsp_tile_code_insn(const pwsp_tile_code *code, uint32_t i,
                                ptowsp_cycles *out_unit_cycles) {
    const pwsp_insn *from = &code->insns[i];
    if (pwsp_insn_is_mark(from)) {
        ptowsp_insn mark;
        memset(&mark, 0, sizeof mark);
        mark.name = pwsp_insn_name(from);
        mark.pipe = PTOWSP_PIPE_S;
        if (out_unit_cycles) {
            *out_unit_cycles = 0;
        }
        return mark;
    }
    ptoisa_op op = from->op == PWSP_INSN_TPUSH  ? PTOISA_TSTORE
                   : from->op == PWSP_INSN_TPOP ? PTOISA_TLOAD
                                                : (ptoisa_op)from->op;
    ptoisa_tile dst, src[2];
    memset(&dst, 0, sizeof dst);
    memset(src, 0, sizeof src);
    if (from->dst[0]) {
        dst = pwsp_kernel_print_full_tile(code, from->dst[0]);
    }
    uint32_t first = op == PTOISA_TMATMUL_ACC || op == PTOISA_TGEMV_ACC ? 1 : 0;
    for (uint32_t j = 0; j < 2; j++) {
        if (from->src[first + j]) {
            src[j] = pwsp_kernel_print_full_tile(code, from->src[first + j]);
        }
    }
    const ptoisa_tile *of = from->dst[0] ? &dst : &src[0];
    ptowsp_insn insn;
    memset(&insn, 0, sizeof insn);
    insn.name = pwsp_insn_name(from);
    bool is_sync = op == PTOISA_SET_FLAG || op == PTOISA_WAIT_FLAG || op == PTOISA_PIPE_BARRIER;
    insn.pipe = (ptowsp_pipe)(op == PTOISA_WAIT_FLAG ? (ptoisa_pipe)from->dst_pipe
                              : is_sync              ? (ptoisa_pipe)from->src_pipe
                                                     : ptoisa_pipe_of(op, &dst, &src[0]));
    insn.memory = (ptowsp_memory)of->memory;
    insn.dtype = (ptowsp_dtype)of->dtype;
    insn.rows = of->valid_rows;
    insn.cols = of->valid_cols;
    insn.depth = insn.pipe == PTOWSP_PIPE_M && !is_sync ? src[0].valid_cols : 0;
    if (out_unit_cycles) {
        *out_unit_cycles =
            is_sync || from->is_implied ? 0 : ptoisa_cost_unit(op, &dst, &src[0], &src[1]);
    }
    return insn;
}

// -- text -----------------------------------------------------------------------------------------

// Nothing for the mode that all have who say none.
static void pwsp_kernel_print_round(uint8_t mode, ptowsp_output text) {
    if (mode != PTOISA_CAST_NONE && mode != PTOISA_CAST_RINT) {
        pwsp_text_format(text, " %s", pwsp_round_text(mode));
    }
}

static const char *pwsp_kernel_print_layout(uint8_t layout) {
    switch ((ptoisa_layout)layout) {
    case PTOISA_COL_MAJOR: return " column-major";
    case PTOISA_NZ: return " NZ";
    case PTOISA_ZN: return " ZN";
    case PTOISA_ZZ: return " ZZ";
    case PTOISA_NN: return " NN";
    default: return "";
    }
}

// "x", "0.5" or "%4".
static void pwsp_kernel_print_value(const ptowsp_body *body, uint32_t value, ptowsp_output text) {
    const pwsp_kop *op = &body->ops[value];
    if (op->kind == PWSP_KOP_PARAM) {
        pwsp_text_format(text, "%s", body->tiles[op->param - 1].name);
    } else if (op->kind == PWSP_KOP_SCALAR) {
        pwsp_text_format(text, "%s", body->scalars[op->param - 1].name);
    } else if (op->kind == PWSP_KOP_CONST) {
        pwsp_text_format(text, "%s", pwsp_shortest(op->value, false).text);
    } else if (op->kind == PWSP_KOP_SIZE) {
        pwsp_text_format(text, "%s of %s", op->col ? "columns" : "rows",
                         body->tiles[op->param - 1].name);
    } else if (op->kind == PWSP_KOP_LOOP || op->kind == PWSP_KOP_END) {
        pwsp_text_format(text, "i%u", op->param);
    } else {
        pwsp_text_format(text, "%%%u", value);
    }
}

static void pwsp_kernel_print_instruction(const ptowsp_body *body, const pwsp_body_insn *insn,
                                          ptowsp_output text) {
    pwsp_text_format(text, "  %s", ptoisa_op_name((ptoisa_op)insn->op));
    for (uint32_t i = 0; i < PWSP_INSN_DST_MAX && insn->dst[i]; i++) {
        pwsp_text_format(text, " ");
        pwsp_kernel_print_value(body, insn->dst[i], text);
    }
    pwsp_text_format(text, " <-");
    for (uint32_t i = 0; i < PWSP_INSN_SRC_MAX && insn->src[i]; i++) {
        pwsp_text_format(text, " ");
        pwsp_kernel_print_value(body, insn->src[i], text);
    }
    if (insn->scalar) {
        pwsp_text_format(text, " ");
        pwsp_kernel_print_value(body, insn->scalar, text);
    }
    pwsp_text_format(text, "\n");
}

// "16", "i1": where a window begins in one direction.
static void pwsp_kernel_print_at(uint32_t start, uint32_t loop, ptowsp_output text) {
    PTOWSP_ASSERT(start == 0 || loop == 0);
    pwsp_text_format(text, loop ? "i%u" : "%u", loop ? loop : start);
}

static void pwsp_kernel_print_window(uint32_t row, uint32_t row_loop, uint32_t col,
                                     uint32_t col_loop, ptowsp_output text) {
    pwsp_text_format(text, "(");
    pwsp_kernel_print_at(row, row_loop, text);
    pwsp_text_format(text, ", ");
    pwsp_kernel_print_at(col, col_loop, text);
    pwsp_text_format(text, ")");
}

// The operations around a loop's body, and on its carried values. False for any other operation.
static bool pwsp_kernel_print_loop_op(const ptowsp_body *body, uint32_t value, ptowsp_output text) {
    const pwsp_kop *op = &body->ops[value];
    switch ((pwsp_kop_kind)op->kind) {
    case PWSP_KOP_LOOP:
        pwsp_text_format(text, "  loop %u: i%u from ", op->param, op->param);
        pwsp_kernel_print_value(body, op->src[0], text);
        pwsp_text_format(text, " to ");
        pwsp_kernel_print_value(body, op->src[1], text);
        pwsp_text_format(text, " in steps of %s\n", pwsp_shortest(op->value, false).text);
        return true;
    case PWSP_KOP_END: pwsp_text_format(text, "  end of loop %u\n", op->param); return true;
    case PWSP_KOP_PRELOAD:
        pwsp_text_format(text, "  loop %u preloads %u iterations\n", op->loop, op->col);
        return true;
    case PWSP_KOP_NEXT:
        pwsp_text_format(text, "  next ");
        pwsp_kernel_print_value(body, op->src[0], text);
        pwsp_text_format(text, " <- ");
        pwsp_kernel_print_value(body, op->src[1], text);
        pwsp_text_format(text, "\n");
        return true;
    case PWSP_KOP_SIZE: return true;
    default: return false;
    }
}

static void pwsp_kernel_print_op(const ptowsp_body *body, uint32_t value, ptowsp_output text) {
    const pwsp_kop *op = &body->ops[value];
    if (pwsp_kernel_print_loop_op(body, value, text)) {
        return;
    }
    if (op->kind == PWSP_KOP_INSTRUCTION) {
        pwsp_kernel_print_instruction(body, &body->insns[op->param - 1], text);
        return;
    }
    bool is_store = op->kind == PWSP_KOP_STORE || op->kind == PWSP_KOP_STORE_ADD;
    if (is_store) {
        pwsp_text_format(text, "  %s %s", pwsp_kop_name((pwsp_kop_kind)op->kind),
                         body->tiles[op->param - 1].name);
    } else {
        pwsp_text_format(text, "  %%%u = %s", value, pwsp_kop_name((pwsp_kop_kind)op->kind));
    }
    for (uint32_t i = 0; i < PWSP_KOP_SRC_MAX && op->src[i]; i++) {
        bool is_compared = op->kind == PWSP_KOP_COMPARE && i == 1;
        pwsp_text_format(text, " %s%s", is_compared ? pwsp_compare_text(op->mode) : "",
                         is_compared ? " " : "");
        pwsp_kernel_print_value(body, op->src[i], text);
    }
    if (op->kind == PWSP_KOP_FULL || op->kind == PWSP_KOP_IOTA) {
        pwsp_text_format(text, " %s", pwsp_shortest(op->value, false).text);
    }
    if (op->kind == PWSP_KOP_SLICE) {
        pwsp_text_format(text, " from ");
        pwsp_kernel_print_window(op->row, op->row_loop, op->col, op->col_loop, text);
    } else if (op->kind == PWSP_KOP_MERGE_SORT) {
        pwsp_text_format(text, " runs of %u", op->col);
    } else if (op->kind == PWSP_KOP_DEINTERLEAVE) {
        pwsp_text_format(text, " part %u", op->col);
    } else if (op->kind == PWSP_KOP_CVT) {
        pwsp_kernel_print_round(op->mode, text);
    }
    if (is_store && (op->row || op->col || op->row_loop || op->col_loop)) {
        pwsp_text_format(text, " at ");
        pwsp_kernel_print_window(op->row, op->row_loop, op->col, op->col_loop, text);
    }
    if (is_store) {
        pwsp_text_format(text, "%s\n", op->mode == PWSP_VARIANT_RELU ? " relu" : "");
    } else {
        pwsp_text_format(text, ": %s %u x %u\n",
                         op->is_mask ? "mask" : ptowsp_dtype_name((ptowsp_dtype)op->dtype),
                         op->rows, op->cols);
    }
}

// The other operands of an instruction: a part, runs, a mode, a variant, a scalar.
static void pwsp_kernel_print_details(const ptowsp_body *body, const pwsp_tile_code *code,
                                      const pwsp_insn *insn, ptowsp_output text) {
    switch ((ptoisa_op)insn->op) {
    case PTOISA_TMRGSORT:
        if (insn->variant != PWSP_VARIANT_LISTS) {
            pwsp_text_format(text, " runs of %u", insn->col);
        }
        break;
    case PTOISA_TCMP:
    case PTOISA_TCMPS: pwsp_text_format(text, " %s", pwsp_compare_text(insn->mode)); break;
    case PTOISA_TCVT: pwsp_kernel_print_round(insn->mode, text); break;
    case PTOISA_TGATHERMASK: pwsp_text_format(text, " pattern %u", insn->mode); break;
    case PTOISA_TFILLPAD: {
        uint8_t pad = code->tiles[insn->dst[0]].pad;
        pwsp_text_format(text, " pad %s",
                         pad == PTOISA_PAD_ZERO  ? "zero"
                         : pad == PTOISA_PAD_MAX ? "max"
                                                 : "min");
        break;
    }
    case PTOISA_TSTORE:
        pwsp_text_format(text, "%s",
                         insn->variant == PWSP_VARIANT_ADD    ? " add"
                         : insn->variant == PWSP_VARIANT_RELU ? " relu"
                                                              : "");
        if (insn->row || insn->col || insn->row_loop || insn->col_loop) {
            pwsp_text_format(text, " at ");
            pwsp_kernel_print_window(insn->row, insn->row_loop, insn->col, insn->col_loop, text);
        }
        break;
    default:
        if (insn->row || insn->col || insn->row_loop || insn->col_loop) {
            pwsp_text_format(text, " %s ", insn->op == PTOISA_TINSERT ? "at" : "from");
            pwsp_kernel_print_window(insn->row, insn->row_loop, insn->col, insn->col_loop, text);
        }
        break;
    }
    if (insn->scalar.cols_of) {
        pwsp_text_format(text, " columns of t%u", insn->scalar.cols_of);
    } else if (insn->scalar.param) {
        pwsp_text_format(text, " %s", body->scalars[insn->scalar.param - 1].name);
    } else if (pwsp_form_of((ptoisa_op)insn->op).has_scalar) {
        pwsp_text_format(text, " %s", pwsp_shortest(insn->scalar.value, false).text);
    }
}

static void pwsp_kernel_print_insn(const ptowsp_body *body, const pwsp_tile_code *code,
                                   const ptowsp_cycles *spent, uint32_t i, ptowsp_output text) {
    const pwsp_insn *insn = &code->insns[i];
    ptowsp_cycles cycles = 0;
    ptowsp_insn info = pwsp_tile_code_insn(code, i, &cycles);
    if (pwsp_insn_is_mark(insn)) {
        pwsp_text_format(text, "  %3u  %-30s  loop %u\n", i, info.name, insn->loop);
        return;
    }
    pwsp_text_format(text, "  %3u  %-16s %-4s %8" PRIu64 " ", i, info.name,
                     ptowsp_pipe_name(info.pipe), spent ? spent[i] : cycles);
    switch ((ptoisa_op)insn->op) {
    case PTOISA_SET_FLAG:
    case PTOISA_WAIT_FLAG:
        pwsp_text_format(text, " %s -> %s event %u", ptoisa_pipe_name((ptoisa_pipe)insn->src_pipe),
                         ptoisa_pipe_name((ptoisa_pipe)insn->dst_pipe), insn->event);
        if (insn->loop) {
            pwsp_text_format(text, " or %u", insn->event + 1u);
        }
        pwsp_text_format(text, "\n");
        return;
    case PTOISA_PIPE_BARRIER:
        pwsp_text_format(text, " %s\n", ptoisa_pipe_name((ptoisa_pipe)insn->src_pipe));
        return;
    default: break;
    }
    const char *param = insn->param ? body->tiles[insn->param - 1].name : "";
    for (uint32_t j = 0; j < PWSP_INSN_DST_MAX && insn->dst[j]; j++) {
        pwsp_text_format(text, " t%u", insn->dst[j]);
    }
    pwsp_text_format(text, insn->dst[0] == 0 ? " %s <-" : insn->param ? " <- %s" : " <-%s", param);
    for (uint32_t j = 0; j < PWSP_INSN_SRC_MAX && insn->src[j]; j++) {
        pwsp_text_format(text, " t%u", insn->src[j]);
    }
    pwsp_kernel_print_details(body, code, insn, text);
    if (insn->begins) {
        pwsp_text_format(text, ", begins with loop %u", insn->begins);
    }
    if (pwsp_insn_is_fifo(insn)) {
        pwsp_text_format(text, ", FIFO %u", insn->mode);
    }
    if (insn->phase && code->loops[insn->phase].of.late_of) {
        uint32_t loop = code->loops[insn->phase].of.late_of;
        pwsp_text_format(text, ", %u turns later", code->loops[loop].of.preload);
    }
    if (insn->tmp) {
        pwsp_text_format(text, ", scratch t%u", insn->tmp);
    }
    pwsp_text_format(text, "\n");
}

static void pwsp_kernel_print_head(const ptowsp_body *body, ptowsp_output text) {
    pwsp_text_format(text, "tile kernel %s(", body->name);
    for (uint32_t i = 0; i < body->tile_count; i++) {
        const pwsp_body_param *tile = &body->tiles[i];
        pwsp_text_format(text, "%s%s %s %s %u x %u", i ? ", " : "",
                         tile->direction == PTOWSP_IN    ? "in"
                         : tile->direction == PTOWSP_OUT ? "out"
                                                         : "inout",
                         tile->name, ptowsp_dtype_name(tile->dtype), tile->rows, tile->cols);
    }
    for (uint32_t i = 0; i < body->scalar_count; i++) {
        pwsp_text_format(text, ", scalar %s %s", body->scalars[i].name,
                         ptowsp_dtype_name(body->scalars[i].dtype));
    }
    pwsp_text_format(text, ") on %s%s\n", body->machine.name, body->is_fused ? ", fused" : "");
}

// The memory, address and layout of a tile, and the value that it was made for (later values may
// reuse its bytes).
static void pwsp_kernel_print_tile(const ptowsp_body *body, const pwsp_tile_code *code, uint32_t i,
                                   ptowsp_output text) {
    const pwsp_list_tile *tile = &code->tiles[i];
    uint32_t begin = code->tiles[tile->root].address + tile->offset;
    uint32_t end = begin + (uint32_t)pwsp_list_tile_bytes(tile);
    pwsp_text_format(text, "  t%-3u %s %u..%u  %s %u x %u%s", i,
                     ptoisa_memory_name((ptoisa_memory)tile->memory), begin, end,
                     ptoisa_dtype_name((ptoisa_dtype)tile->dtype), tile->rows, tile->cols,
                     pwsp_kernel_print_layout(tile->layout));
    if (tile->value) {
        const pwsp_kop *op = &body->ops[tile->value];
        bool is_store = op->kind == PWSP_KOP_STORE || op->kind == PWSP_KOP_STORE_ADD;
        bool is_loop = op->kind == PWSP_KOP_LOOP || op->kind == PWSP_KOP_END;
        pwsp_text_format(text, is_loop ? ", at the ends of the loop of " : ", for ");
        if (is_store) {
            pwsp_text_format(text, "the store to %s", body->tiles[op->param - 1].name);
        } else {
            pwsp_kernel_print_value(body, tile->value, text);
        }
    }
    if (tile->root != i) {
        pwsp_text_format(text, ", view of t%u", tile->root);
    }
    if (tile->is_late) {
        pwsp_text_format(text, " as it was written");
    }
    if (tile->places) {
        pwsp_text_format(text, ", one of %u places in turns of loop %u", tile->places, tile->loop);
    } else if (tile->loop) {
        pwsp_text_format(text, ", and from %" PRIu64 " on in loop %u",
                         begin + pwsp_list_root_step(tile), tile->loop);
    }
    pwsp_text_format(text, "\n");
}

// The instructions of one core, or all; numbered as in the whole list.
static void pwsp_kernel_print_half(const ptowsp_body *body, const pwsp_tile_code *code,
                                   const ptowsp_cycles *spent, uint32_t side, ptowsp_output text) {
    if (side != PWSP_SIDE_ANY) {
        pwsp_text_format(text, "%s half\n", side == PWSP_SIDE_CUBE ? "cube" : "vector");
    }
    for (uint32_t i = 0; i < code->insn_count; i++) {
        if (code->insns[i].side == side || pwsp_insn_is_mark(&code->insns[i])) {
            pwsp_kernel_print_insn(body, code, spent, i, text);
        }
    }
}

// The line above the instructions, with their cycles.
static void pwsp_kernel_print_cycles(const pwsp_tile_code *code, const pwsp_tile_core *core,
                                     ptowsp_cycles cycles, ptowsp_output text) {
#define PWSP_MODEL_NAME(name, text) #name,
    static const char models[][16] = {PTOWSP_MODELS(PWSP_MODEL_NAME)};
#undef PWSP_MODEL_NAME
    ptowsp_cycles one;
    for (uint32_t i = 0; i < code->insn_count && !core; i++, cycles += one) {
        pwsp_tile_code_insn(code, i, &one);
    }
    pwsp_text_format(text, "instructions, with pipe and cycles of %s%s%s: %" PRIu64 "%s\n",
                     core ? "model " : "the unit model", core ? models[core->core.model] : "",
                     core && code->loop_count ? " in all iterations" : "", cycles,
                     core               ? " until the last has ended"
                     : code->loop_count ? ", each once"
                                        : "");
}

void pwsp_body_print(const ptowsp_body *body, const pwsp_tile_code *code,
                     const pwsp_tile_core *core, ptowsp_cycles cycles, ptowsp_output text) {
    pwsp_kernel_print_head(body, text);
    for (uint32_t i = 1; i < body->op_count; i++) {
        const pwsp_kop *op = &body->ops[i];
        if (!op->is_dead && op->kind != PWSP_KOP_PARAM && op->kind != PWSP_KOP_SCALAR &&
            op->kind != PWSP_KOP_CONST) {
            pwsp_kernel_print_op(body, i, text);
        }
    }
    pwsp_kernel_print_cycles(code, core, cycles, text);
    for (uint32_t side = code->is_mixed ? PWSP_SIDE_CUBE : PWSP_SIDE_ANY;
         side <= (code->is_mixed ? PWSP_SIDE_VECTOR : PWSP_SIDE_ANY); side++) {
        pwsp_kernel_print_half(body, code, core ? core->spent : NULL, side, text);
    }
    if (code->split_tile) {
        pwsp_text_format(text, "both vector cores do the vector half, each for half of the rows\n");
    }
    for (uint32_t i = 0; i < PWSP_FIFO_COUNT && code->is_mixed; i++) {
        const pwsp_list_fifo *fifo = &code->fifos[i];
        if (fifo->slot_bytes) {
            pwsp_text_format(text,
                             "FIFO %u, to the %s core: %u slots of %u bytes, flags %u and %u\n", i,
                             i == PWSP_FIFO_TO_VECTOR ? "vector" : "cube", fifo->slots,
                             fifo->slot_bytes, fifo->flag, fifo->flag + 1u);
        }
    }
    pwsp_text_format(text, "tiles, with memory and bytes\n");
    for (uint32_t i = 1; i < code->tile_count; i++) {
        pwsp_kernel_print_tile(body, code, i, text);
    }
    for (int i = 0; i < PTOISA_MEMORY_COUNT; i++) {
        if (code->used[i]) {
            pwsp_text_format(text, "%s: %u of %u bytes\n", ptoisa_memory_name((ptoisa_memory)i),
                             code->used[i], code->machine.memory_size[i]);
        }
    }
}
