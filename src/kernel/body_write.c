// Writing bodies, by the forms of the table of operations.
//
// Two operands are not kept, as nothing but the text needs them: the constant that a window of a
// store, or beside the index of a loop, begins at, and the value that an allocated tile is like. Any
// one that can be seen there and says the same does as well, so the first such is written.

#include "../data/expr.h"
#include "body_text.h"

#include <inttypes.h>

const char *pwsp_memory_word(uint32_t memory) {
#define PWSP_MEMORY_WORD(name, text) #name,
    static const char words[][32] = {PTOWSP_MEMORIES(PWSP_MEMORY_WORD)};
#undef PWSP_MEMORY_WORD
    return memory < PTOWSP_MEMORY_COUNT ? words[memory] : NULL;
}

const char *pwsp_layout_word(uint32_t layout) {
    switch (layout) {
    case PTOWSP_LAYOUT_ROW_MAJOR: return "row_major";
    case PTOWSP_LAYOUT_COL_MAJOR: return "col_major";
    case PTOWSP_LAYOUT_NZ: return "NZ";
    case PTOWSP_LAYOUT_ZN: return "ZN";
    case PTOWSP_LAYOUT_ZZ: return "ZZ";
    case PTOWSP_LAYOUT_NN: return "NN";
    default: return NULL;
    }
}

// -- unused values --------------------------------------------------------------------------------

// Can operation `at` read an earlier one?
static bool pwsp_write_is_visible(const ptowsp_body *body, uint32_t at, uint32_t value) {
    return pwsp_body_is_visible(body, &body->ops[value], body->ops[at].loop);
}

static uint32_t pwsp_write_find_const(const ptowsp_body *body, uint32_t at, uint32_t number) {
    uint32_t i = at - 1;
    while (i > 0 &&
           (pwsp_body_built(body, i)->kind != PWSP_KOP_CONST ||
            pwsp_body_built(body, i)->value != number || !pwsp_write_is_visible(body, at, i))) {
        i--;
    }
    PTOWSP_ASSERT(i > 0 && "the builder was given one");
    return i;
}

// A value with the valid sizes of an allocated tile, and its sizes where none were given; 0: none,
// and all is valid.
static uint32_t pwsp_write_find_like(const ptowsp_body *body, uint32_t at, const pwsp_kop *op) {
    const pwsp_valid rows = pwsp_valid_full(op->rows), cols = pwsp_valid_full(op->cols);
    if (!op->row && !op->col && pwsp_valid_is_equal(&op->valid_rows, &rows) &&
        pwsp_valid_is_equal(&op->valid_cols, &cols)) {
        return 0;
    }
    for (uint32_t i = 1; i < at; i++) {
        const pwsp_kop *like = pwsp_body_built(body, i);
        if (like->rows && (op->row ? like->rows == op->rows : like->rows <= op->rows) &&
            (op->col ? like->cols == op->cols : like->cols <= op->cols) &&
            pwsp_valid_is_equal(&like->valid_rows, &op->valid_rows) &&
            pwsp_valid_is_equal(&like->valid_cols, &op->valid_cols) &&
            pwsp_write_is_visible(body, at, i)) {
            return i;
        }
    }
    PTOWSP_ASSERT(0 && "the builder was given one");
    return 0;
}

// -- parts ----------------------------------------------------------------------------------------

// The shortest decimal that reads back as the same number; a NaN with its bits.
static void pwsp_write_number(double number, ptowsp_output text) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (number != number) {
        pwsp_text_format(text, bits == UINT64_C(0x7ff8000000000000) ? " nan" : " nan(%" PRIu64 ")",
                         bits);
        return;
    }
    pwsp_text_format(text, " %s", pwsp_shortest(number, false).text);
}

static void pwsp_write_offset(const ptowsp_body *body, uint32_t at, uint32_t start, uint32_t loop,
                              bool is_number, ptowsp_output text) {
    if (loop) {
        pwsp_text_format(text, "%%%u", body->loop_begins[loop]);
    } else if (start == 0 || is_number) {
        pwsp_text_format(text, "%u", start);
    } else {
        pwsp_text_format(text, "%%%u", pwsp_write_find_const(body, at, start));
    }
}

// Nothing for a store of the whole.
static void pwsp_write_window(const ptowsp_body *body, uint32_t at, const pwsp_kop *op,
                              ptowsp_output text) {
    if (op->kind == PWSP_KOP_STORE) {
        const pwsp_kop *from = pwsp_body_built(body, op->src[0]);
        const pwsp_body_param *to = &body->tiles[op->param - 1];
        if (from->rows == to->rows && from->cols == to->cols && op->loop == 0) {
            return;
        }
    }
    const bool is_number = op->kind == PWSP_KOP_SLICE && !op->row_loop && !op->col_loop;
    pwsp_text_format(text, " at (");
    pwsp_write_offset(body, at, op->row, op->row_loop, is_number, text);
    pwsp_text_format(text, ", ");
    pwsp_write_offset(body, at, op->col, op->col_loop, is_number, text);
    pwsp_text_format(text, ")");
}

static void pwsp_write_size(uint32_t size, bool is_given, ptowsp_output text) {
    pwsp_text_format(text, is_given ? " %u" : " ?", size);
}

// Nothing for a number made of constants, which has no type.
static void pwsp_write_type(const pwsp_kop *op, ptowsp_output text) {
    const bool is_alloc = op->kind == PWSP_KOP_ALLOC;
    if (op->dtype == PTOWSP_DTYPE_NONE) {
        return;
    }
    pwsp_text_format(text, " : %s",
                     op->is_mask ? "mask" : ptowsp_dtype_name((ptowsp_dtype)op->dtype));
    if (op->rows) {
        pwsp_write_size(op->rows, !is_alloc || !op->row, text);
        pwsp_text_format(text, " x");
        pwsp_write_size(op->cols, !is_alloc || !op->col, text);
    }
}

static void pwsp_write_alloc(const ptowsp_body *body, uint32_t at, const pwsp_kop *op,
                             ptowsp_output text) {
    const uint32_t like = pwsp_write_find_like(body, at, op);
    const char *memory = pwsp_memory_word(op->memory), *layout = pwsp_layout_word(op->layout);
    PTOWSP_ASSERT(memory && layout && "the builder refuses others");
    pwsp_text_format(text, " %s %s", memory, layout);
    if (like) {
        pwsp_text_format(text, " like %%%u", like);
    }
}

static void pwsp_write_values(const uint32_t *values, uint32_t capacity, ptowsp_output text) {
    pwsp_text_format(text, " (");
    for (uint32_t i = 0; i < capacity && values[i]; i++) {
        pwsp_text_format(text, i ? ", %%%u" : "%%%u", values[i]);
    }
    pwsp_text_format(text, ")");
}

static void pwsp_write_instruction(const pwsp_body_insn *insn, ptowsp_output text) {
    pwsp_text_format(text, " %s", ptoisa_op_name((ptoisa_op)insn->op));
    pwsp_write_values(insn->dst, PWSP_INSN_DST_MAX, text);
    pwsp_write_values(insn->src, PWSP_INSN_SRC_MAX, text);
    if (insn->tmp) {
        pwsp_text_format(text, " tmp %%%u", insn->tmp);
    }
    if (insn->scalar) {
        pwsp_text_format(text, " scalar %%%u", insn->scalar);
    }
    if (insn->row || insn->col) {
        pwsp_text_format(text, " at (%u, %u)", insn->row, insn->col);
    }
    if (insn->mode) {
        pwsp_text_format(text, " mode %u", insn->mode);
    }
}

// -- lines ----------------------------------------------------------------------------------------

static void pwsp_write_part(const ptowsp_body *body, uint32_t at, const pwsp_kop *op, char part,
                            ptowsp_output text) {
    switch (part) {
    case ',': pwsp_text_format(text, ","); break;
    case 'x': pwsp_text_format(text, " %%%u", op->src[0]); break;
    case 'y': pwsp_text_format(text, " %%%u", op->src[1]); break;
    case 'z': pwsp_text_format(text, " %%%u", op->src[2]); break;
    case 'p': pwsp_text_format(text, " %%%u", body->tiles[op->param - 1].value); break;
    case 'N':
        pwsp_text_format(text, " %s",
                         pwsp_quoted(op->kind == PWSP_KOP_SCALAR ? body->scalars[op->param - 1].name
                                                                 : body->tiles[op->param - 1].name)
                             .text);
        break;
    case '#': pwsp_write_number(op->value, text); break;
    case 'w': pwsp_text_format(text, " %s", pwsp_fixed(op->value, 0).text); break;
    case 'c': pwsp_text_format(text, " %u", op->col); break;
    case '?': pwsp_text_format(text, " %s", pwsp_compare_text(op->mode)); break;
    case 'r':
        if (op->mode != PTOISA_CAST_RINT) {
            pwsp_text_format(text, " %s", pwsp_round_text(op->mode));
        }
        break;
    case 's': pwsp_text_format(text, " %s", op->col ? "cols" : "rows"); break;
    case '@': pwsp_write_window(body, at, op, text); break;
    case 'm': pwsp_write_alloc(body, at, op, text); break;
    case 'i':
        pwsp_write_instruction(
            body->asked ? &body->asked[op->param - 1] : &body->insns[op->param - 1], text);
        break;
    case ':': pwsp_write_type(op, text); break;
    default: PTOWSP_ASSERT(0 && "a letter of a form"); break;
    }
}

static void pwsp_write_machine(const ptowsp_body *body, ptowsp_output text) {
    const ptoisa_machine *m = &body->machine;
    pwsp_text_format(text, "  machine \"%s\"", m->name);
    if (memcmp(m, ptoisa_machine_910b(), sizeof *m) != 0 &&
        memcmp(m, ptoisa_machine_950pr(), sizeof *m) != 0) {
        pwsp_text_format(text, " of %s, %u MHz, memories", m->family == PTOISA_A5 ? "a5" : "a2a3",
                         m->clock_mhz);
        for (uint32_t i = 0; i < PTOWSP_MEMORY_COUNT; i++) {
            pwsp_text_format(text, " %u", m->memory_size[i]);
        }
        pwsp_text_format(text, ", rates");
        for (uint32_t i = 0; i < PTOWSP_PATH_COUNT; i++) {
            pwsp_text_format(text, " %u", m->rate[i]);
        }
    }
    pwsp_text_format(text, "%s\n", body->is_fused ? ", fused" : "");
}

void pwsp_body_write(const ptowsp_body *body, ptowsp_output text) {
    pwsp_write_machine(body, text);
    for (uint32_t i = 1; i < body->op_count; i++) {
        const pwsp_kop *op = pwsp_body_built(body, i);
        const pwsp_kop_kind kind = (pwsp_kop_kind)op->kind;
        if (kind == PWSP_KOP_END) {
            continue;
        }
        pwsp_text_format(text, "  ");
        uint32_t loop = kind == PWSP_KOP_LOOP ? body->loops[op->loop].parent : op->loop;
        for (; loop; loop = body->loops[loop].parent) {
            pwsp_text_format(text, "  ");
        }
        if (kind != PWSP_KOP_STORE && kind != PWSP_KOP_STORE_ADD && kind != PWSP_KOP_NEXT &&
            kind != PWSP_KOP_INSTRUCTION && kind != PWSP_KOP_PRELOAD) {
            pwsp_text_format(text, "%%%u = ", i);
        }
        pwsp_text_format(text, "%s", pwsp_kop_name(kind));
        for (const char *part = pwsp_kop_form(kind); *part; part++) {
            pwsp_write_part(body, i, op, *part, text);
        }
        pwsp_text_format(text, "\n");
    }
}
