// Bodies of tile kernels in the text of a module (kernel/body_text.h), by the forms of the table of
// operations: the parts of a line become the arguments of a builder's call, and the builder's errors
// are reported at the line's operation. The kernel is made when the first line comes that is not
// further right than its own.

#include "../kernel/body_text.h"
#include "../kernel/description.h"
#include "parse.h"

#include <inttypes.h>
#include <stdio.h>

struct pwsp_parse_body {
    ptowsp_body *built;
    ptowsp_kernel_desc head;  // of the kernel's line, with its parameters
    uint64_t line, column;    // of that line
    uint32_t depth;           // of the loops that are open
};

// The arguments of a call.
typedef struct pwsp_body_args {
    pwsp_kop_kind kind;
    ptowsp_value src[PWSP_KOP_SRC_MAX], param, at[2];
    int64_t offsets[2], count;
    bool has_at, is_indexed;  // a window; one that begins at a value
    char name[PTOWSP_NAME_MAX + 1];
    double number;
    uint32_t axis;
    ptowsp_compare compare;
    ptowsp_round round;
    bool has_type, is_mask;
    uint64_t column, type_column;
    ptowsp_dtype dtype;  // NONE: left out
    int64_t rows, cols;  // 0: left out
    ptowsp_alloc_desc alloc;
    ptowsp_instruction_desc instruction;
} pwsp_body_args;

// The index i below `count` for which word_at(i) is the word; otherwise `count`.
static uint32_t pwsp_scan_choice(pwsp_parser *p, const char *(*word_at)(uint32_t), uint32_t first,
                                 uint32_t count) {
    uint32_t i = first;
    while (i < count && !pwsp_parse_try(p, word_at(i))) {
        i++;
    }
    return i;
}

// -- parts ----------------------------------------------------------------------------------------

static bool pwsp_scan_int(pwsp_parser *p, uint32_t *out_number) {
    return p->token == PWSP_TOKEN_NUMBER ? pwsp_parse_count(p, out_number)
                                         : pwsp_parse_fail(p, "a whole number is missing here");
}

static bool pwsp_scan_count(pwsp_parser *p, int64_t *out_number) {
    uint32_t number = 0;
    bool is_there = pwsp_scan_int(p, &number);
    *out_number = number;
    return is_there;
}

static bool pwsp_scan_label(pwsp_parser *p, uint64_t *out_label) {
    if (!pwsp_parse_expect(p, "%")) {
        return false;
    }
    return p->token == PWSP_TOKEN_NUMBER
               ? pwsp_parse_number(p, UINT64_MAX, out_label)
               : pwsp_parse_fail(p, "the number of a value is missing here");
}

static bool pwsp_scan_value(pwsp_parser *p, ptowsp_value *out_value) {
    const uint64_t column = p->column;
    uint64_t label = 0;
    if (!pwsp_scan_label(p, &label)) {
        return false;
    }
    out_value->body = p->body->built;
    out_value->id = pwsp_parse_label_find(&p->values, label);
    return out_value->id ||
           pwsp_parse_fail_at(p, column, "there is no value %%%" PRIu64 " yet", label);
}

static bool pwsp_scan_number(pwsp_parser *p, double *out_number) {
    const uint64_t column = p->column;
    const bool is_negative = pwsp_parse_try(p, "-");
    uint64_t bits = UINT64_C(0x7ff8000000000000);
    if (pwsp_parse_try(p, "inf")) {
        bits = UINT64_C(0x7ff0000000000000) | (uint64_t)is_negative << 63;
        memcpy(out_number, &bits, sizeof bits);
        return true;
    }
    if (!is_negative && pwsp_parse_try(p, "nan")) {
        if (pwsp_parse_try(p, "(")) {
            bits = 0;
            if ((p->token == PWSP_TOKEN_NUMBER && !pwsp_parse_number(p, UINT64_MAX, &bits)) ||
                !pwsp_parse_expect(p, ")")) {
                return false;
            }
        }
        memcpy(out_number, &bits, sizeof bits);
        return *out_number != *out_number ||
               pwsp_parse_fail_at(p, column, "these are not the bits of a NaN");
    }
    const bool is_number = p->token == PWSP_TOKEN_NUMBER || p->token == PWSP_TOKEN_REAL;
    const size_t begin = p->line_start + (size_t)p->column - 1;
    if (!is_number || !pwsp_number_read(p->text + begin, p->at - begin, false, out_number)) {
        return pwsp_parse_fail(p, is_number ? "this is no number" : "a number is missing here");
    }
    *out_number = is_negative ? -*out_number : *out_number;
    pwsp_parse_next(p);
    return !p->is_failed;
}

static bool pwsp_scan_size(pwsp_parser *p, int64_t *out_size) {
    *out_size = 0;
    return pwsp_parse_try(p, "?") || pwsp_scan_count(p, out_size);
}

static bool pwsp_scan_type(pwsp_parser *p, pwsp_body_args *a) {
    a->type_column = p->column;
    if (!pwsp_parse_try(p, ":")) {
        return true;
    }
    a->has_type = true;
    a->is_mask = pwsp_parse_try(p, "mask");
    a->dtype = PTOWSP_U8;
    if (!a->is_mask && !pwsp_parse_dtype(p, &a->dtype)) {
        return false;
    }
    return p->token == PWSP_TOKEN_LINE_END ||
           (pwsp_scan_size(p, &a->rows) && pwsp_parse_expect(p, "x") &&
            pwsp_scan_size(p, &a->cols));
}

static bool pwsp_scan_window(pwsp_parser *p, pwsp_body_args *a) {
    a->has_at = pwsp_parse_try(p, "at");
    if (!a->has_at) {
        return true;
    }
    const uint64_t column = p->column;
    for (int i = 0; i < 2; i++) {
        if (!pwsp_parse_expect(p, i ? "," : "(")) {
            return false;
        }
        const bool is_value = pwsp_parse_is(p, "%");
        if (is_value ? !pwsp_scan_value(p, &a->at[i]) : !pwsp_scan_count(p, &a->offsets[i])) {
            return false;
        }
        a->is_indexed = a->is_indexed || is_value;
    }
    if ((a->is_indexed || a->kind == PWSP_KOP_STORE) && (a->offsets[0] || a->offsets[1])) {
        return pwsp_parse_fail_at(p, column, "beside a value, and of a store, a number is 0 here");
    }
    return pwsp_parse_expect(p, ")");
}

static bool pwsp_scan_alloc(pwsp_parser *p, pwsp_body_args *a) {
    const uint32_t memory = pwsp_scan_choice(p, pwsp_memory_word, 0, PTOWSP_MEMORY_COUNT);
    if (memory == PTOWSP_MEMORY_COUNT) {
        return pwsp_parse_fail(p, "a memory is missing here");
    }
    const uint32_t layout = pwsp_scan_choice(p, pwsp_layout_word, 0, PTOWSP_LAYOUT_COUNT);
    if (layout == PTOWSP_LAYOUT_COUNT) {
        return pwsp_parse_fail(p, "a layout is missing here");
    }
    a->alloc.memory = (ptowsp_memory)memory;
    a->alloc.layout = (ptowsp_layout)layout;
    return !pwsp_parse_try(p, "like") || pwsp_scan_value(p, &a->alloc.like);
}

static bool pwsp_scan_values(pwsp_parser *p, ptowsp_value *values, uint32_t capacity) {
    if (!pwsp_parse_expect(p, "(")) {
        return false;
    }
    for (uint32_t i = 0; !pwsp_parse_is(p, ")"); i++) {
        if (i == capacity) {
            return pwsp_parse_fail(p, "more than %u operands", capacity);
        }
        if ((i && !pwsp_parse_expect(p, ",")) || !pwsp_scan_value(p, &values[i])) {
            return false;
        }
    }
    return pwsp_parse_expect(p, ")");
}

static bool pwsp_scan_instruction(pwsp_parser *p, pwsp_body_args *a) {
    ptowsp_instruction_desc *desc = &a->instruction;
    desc->name = a->name;
    return pwsp_parse_name(p, "an instruction", a->name) && pwsp_scan_values(p, desc->dst, 2) &&
           pwsp_scan_values(p, desc->src, 4) &&
           (!pwsp_parse_try(p, "tmp") || pwsp_scan_value(p, &desc->tmp)) &&
           (!pwsp_parse_try(p, "scalar") || pwsp_scan_value(p, &desc->scalar)) &&
           (!pwsp_parse_try(p, "at") ||
            (pwsp_parse_expect(p, "(") && pwsp_scan_int(p, &desc->row) &&
             pwsp_parse_expect(p, ",") && pwsp_scan_int(p, &desc->col) &&
             pwsp_parse_expect(p, ")"))) &&
           (!pwsp_parse_try(p, "mode") || pwsp_scan_int(p, &desc->mode));
}

static bool pwsp_scan_part(pwsp_parser *p, char part, pwsp_body_args *a) {
    uint32_t choice;
    switch (part) {
    case ',': return pwsp_parse_expect(p, ",");
    case 'x': return pwsp_scan_value(p, &a->src[0]);
    case 'y': return pwsp_scan_value(p, &a->src[1]);
    case 'z': return pwsp_scan_value(p, &a->src[2]);
    case 'p': return pwsp_scan_value(p, &a->param);
    case 'N': return pwsp_parse_name(p, "a parameter", a->name);
    case '#': return pwsp_scan_number(p, &a->number);
    case 'w':
    case 'c': return pwsp_scan_count(p, &a->count);
    case '?':
        choice = pwsp_scan_choice(p, pwsp_compare_text, PTOWSP_EQ, PTOWSP_GE + 1);
        a->compare = (ptowsp_compare)choice;
        return choice <= PTOWSP_GE || pwsp_parse_fail(p, "a comparison is missing here");
    case 'r':
        choice = pwsp_scan_choice(p, pwsp_round_text, PTOISA_CAST_RINT,
                                  (uint32_t)PTOISA_CAST_RINT + PTOWSP_ROUND_TRUNC + 1);
        choice -= (uint32_t)PTOISA_CAST_RINT;
        a->round = choice <= PTOWSP_ROUND_TRUNC ? (ptowsp_round)choice : PTOWSP_ROUND_NEAREST;
        return true;
    case 's': a->axis = pwsp_parse_try(p, "cols"); return a->axis || pwsp_parse_expect(p, "rows");
    case '@': return pwsp_scan_window(p, a);
    case 'm': return pwsp_scan_alloc(p, a);
    case 'i': return pwsp_scan_instruction(p, a);
    default: return pwsp_scan_type(p, a);
    }
}

// -- calls ----------------------------------------------------------------------------------------

// Of the kernel's line; the order is compared when the kernel ends.
static ptowsp_value pwsp_scan_param(pwsp_parser *p, const pwsp_body_args *a) {
    const ptowsp_value none = {NULL, 0};
    const ptowsp_tile_param *tile = p->body->head.tiles, *end = tile + PTOWSP_TASK_TILE_MAX;
    while (tile < end && tile->name && strcmp(tile->name, a->name) != 0) {
        tile++;
    }
    if (tile == end || !tile->name) {
        pwsp_parse_fail_at(p, a->column, "the kernel's line has no tile %s", a->name);
        return none;
    }
    return tile->direction == PTOWSP_IN
               ? ptowsp_tile_in(p->body->built, a->name, tile->dtype, tile->rows, tile->cols)
           : tile->direction == PTOWSP_OUT
               ? ptowsp_tile_out(p->body->built, a->name, tile->dtype, tile->rows, tile->cols)
               : ptowsp_tile_inout(p->body->built, a->name, tile->dtype, tile->rows, tile->cols);
}

static ptowsp_value pwsp_scan_store(const pwsp_body_args *a) {
    const ptowsp_value none = {NULL, 0};
    if (a->has_at) {
        ptowsp_tile_store_at(a->param, a->at[0], a->at[1], a->src[0]);
    } else {
        ptowsp_tile_store(a->param, a->src[0]);
    }
    return none;
}

static ptowsp_value pwsp_scan_rowsum(ptowsp_value x, const pwsp_body_args *a) {
    return a->dtype == PTOWSP_F32 ? ptowsp_tile_rowsum_f32(x) : ptowsp_tile_rowsum(x);
}

static ptowsp_value pwsp_scan_slice(const pwsp_body_args *a) {
    return a->is_indexed
               ? ptowsp_tile_slice_at(a->src[0], a->at[0], a->at[1], a->rows, a->cols)
               : ptowsp_tile_slice(a->src[0], a->offsets[0], a->offsets[1], a->rows, a->cols);
}

static ptowsp_value pwsp_scan_call(pwsp_parser *r, const pwsp_body_args *a) {
    const ptowsp_value none = {NULL, 0}, x = a->src[0], y = a->src[1], z = a->src[2];
    ptowsp_body *k = r->body->built;
    switch (a->kind) {
#define PWSP_KOP_CALL(name, text, form, make)                                                      \
    case PWSP_KOP_##name: return make;
        PWSP_KOPS(PWSP_KOP_CALL)
#undef PWSP_KOP_CALL
    default: PTOWSP_ASSERT(0 && "the kind of a line is one of the table"); return none;
    }
}

// -- lines ----------------------------------------------------------------------------------------

// If the text has a type, it must be the result's.
static bool pwsp_scan_check_type(pwsp_parser *p, const pwsp_body_args *a, const pwsp_kop *op) {
    const bool is_alloc = op->kind == PWSP_KOP_ALLOC;
    if (!a->has_type || (op->dtype == (uint8_t)a->dtype && op->is_mask == a->is_mask &&
                         (op->rows == a->rows || (is_alloc && a->rows == 0)) &&
                         (op->cols == a->cols || (is_alloc && a->cols == 0)))) {
        return true;
    }
    const char *name = op->is_mask ? "mask" : ptowsp_dtype_name((ptowsp_dtype)op->dtype);
    return pwsp_parse_fail_at(
        p, a->type_column, op->rows ? "the result of %s is %s %u x %u" : "the result of %s is %s",
        pwsp_kop_name(a->kind), name, op->rows, op->cols);
}

// The builder has taken the call, or its error is that at `column`.
static bool pwsp_scan_built(pwsp_parser *p, uint64_t column) {
    const ptowsp_body *built = p->body->built;
    if (built->status != PTOWSP_OK) {
        pwsp_parse_fail_at(p, column, "kernel %s: %s", built->name, built->text);
        p->status = built->status;
    }
    return !p->is_failed;
}

// Calls the builder; `label` is the value's, where there is one.
static bool pwsp_scan_build(pwsp_parser *p, pwsp_body_args *a, bool has_label, uint64_t label) {
    const uint64_t column = a->column;
    const char *name = pwsp_kop_name(a->kind);
    a->alloc.dtype = a->dtype;
    a->alloc.rows = a->rows;
    a->alloc.cols = a->cols;
    ptowsp_value value = pwsp_scan_call(p, a);
    if (p->is_failed || !pwsp_scan_built(p, column)) {
        return false;
    }
    if (has_label != (value.id != 0)) {
        return has_label
                   ? pwsp_parse_fail_at(p, column, "%s makes no value", name)
                   : pwsp_parse_fail_at(p, column, "%s makes a value; %%1 = %s ...", name, name);
    }
    p->body->depth += a->kind == PWSP_KOP_LOOP;
    return !has_label || (pwsp_scan_check_type(p, a, &p->body->built->ops[value.id]) &&
                          pwsp_parse_label_add(p, &p->values, label, value.id));
}

static bool pwsp_scan_operation(pwsp_parser *p) {
    const uint64_t column = p->column;
    const bool has_label = pwsp_parse_is(p, "%");
    uint64_t label = 0;
    if (has_label && (!pwsp_scan_label(p, &label) || !pwsp_parse_expect(p, "="))) {
        return false;
    }
    if (has_label && p->values.count && pwsp_parse_label_last(&p->values) >= label) {
        return pwsp_parse_fail_at(p, column, "%%%" PRIu64 " behind %%%" PRIu64 "; numbers ascend",
                                  label, pwsp_parse_label_last(&p->values));
    }
    PWSP_ZERO(pwsp_body_args, a);
    a.column = column;
    uint32_t kind = 1;
    while (kind < PWSP_KOP_COUNT &&
           (kind == PWSP_KOP_END || !pwsp_parse_try(p, pwsp_kop_name((pwsp_kop_kind)kind)))) {
        kind++;
    }
    if (kind == PWSP_KOP_COUNT) {
        return pwsp_parse_fail(p, "no operation begins like this");
    }
    a.kind = (pwsp_kop_kind)kind;
    for (const char *part = pwsp_kop_form(a.kind); *part; part++) {
        if (!pwsp_scan_part(p, *part, &a)) {
            return false;
        }
    }
    if (p->is_failed || p->token != PWSP_TOKEN_LINE_END) {
        return pwsp_parse_fail(p, "the line goes on behind what it says");
    }
    return pwsp_scan_build(p, &a, has_label, label);
}

// A built-in machine by its name, or all of another's numbers.
static bool pwsp_scan_machine(pwsp_parser *p) {
    const uint64_t column = p->column;
    char name[PTOWSP_NAME_MAX + 1];
    PWSP_ZERO(ptowsp_machine, machine);
    if (p->body->built->op_count) {
        return pwsp_parse_fail_at(p, column, "the machine stands in front of all operations");
    }
    if (!pwsp_parse_name(p, "a machine", name)) {
        return false;
    }
    if (pwsp_parse_try(p, "of")) {
        snprintf(machine.name, sizeof machine.name, "%.15s", name);
        machine.family = pwsp_parse_try(p, "a5") ? PTOWSP_FAMILY_A5 : PTOWSP_FAMILY_A2A3;
        bool is_good = (machine.family == PTOWSP_FAMILY_A5 || pwsp_parse_expect(p, "a2a3")) &&
                       pwsp_parse_expect(p, ",") && pwsp_scan_int(p, &machine.clock_mhz) &&
                       pwsp_parse_expect(p, "MHz") && pwsp_parse_expect(p, ",") &&
                       pwsp_parse_expect(p, "memories");
        for (int i = 0; i < PTOWSP_MEMORY_COUNT && is_good; i++) {
            is_good = pwsp_scan_int(p, &machine.memory_bytes[i]);
        }
        is_good = is_good && pwsp_parse_expect(p, ",") && pwsp_parse_expect(p, "rates");
        for (int i = 0; i < PTOWSP_PATH_COUNT && is_good; i++) {
            is_good = pwsp_scan_int(p, &machine.rates[i]);
        }
        if (!is_good) {
            return false;
        }
    } else {
        const bool is_a5 = strcmp(name, ptoisa_machine_950pr()->name) == 0;
        if (!is_a5 && strcmp(name, ptoisa_machine_910b()->name) != 0) {
            return pwsp_parse_fail_at(p, column, "no machine %s is built in", name);
        }
        machine = is_a5 ? ptowsp_machine_950pr() : ptowsp_machine_910b();
    }
    if (!pwsp_machine_to_isa(&machine, &p->body->built->machine)) {
        return pwsp_parse_fail_at(p, column, "kernel %s: %s", p->body->built->name,
                                  PWSP_MACHINE_RULE);
    }
    p->body->built->is_fused = pwsp_parse_try(p, ",") && pwsp_parse_expect(p, "fused");
    return !p->is_failed;
}

// -- bodies ---------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_parse_body_begin(pwsp_parser *p, const ptowsp_kernel_desc *desc) {
    PWSP_ZERO(ptowsp_body_desc, begun);
    begun.name = desc->name;
    begun.axis_count = desc->axis_count;
    ptowsp_body *built = ptowsp_kernel_begin(p->module, &begun);
    if (!built) {
        return pwsp_parse_built(p, p->line, p->start);
    }
    if (!p->body) {
        p->body = PWSP_ARENA_ARRAY(&p->arena, struct pwsp_parse_body, 1);
    }
    if (!p->body) {
        return pwsp_parse_no_memory(p);
    }
    memset(p->body, 0, sizeof *p->body);
    p->body->built = built;
    p->body->head = *desc;
    p->body->head.name = built->name;
    p->body->line = p->line;
    p->body->column = p->start;
    p->values.count = 0;
    p->is_in_body = true;
    return true;
}

// Ends the loops inside of those that a line this deep is in.
static void pwsp_parse_end_loops(struct pwsp_parse_body *body, uint64_t depth) {
    for (; body->depth > depth; body->depth--) {
        ptowsp_tile_loop_end(body->built);
    }
}

PWSP_INTERNAL bool pwsp_parse_body_line(pwsp_parser *p) {
    const uint64_t indent = p->start - 1, depth = indent / 2 - 1;
    if (indent % 2 != 0) {
        return pwsp_parse_fail(p, "spaces before a line come in twos");
    }
    if (depth > p->body->depth) {
        return pwsp_parse_fail(p, "a line is further right than one below %s may be",
                               p->body->depth ? "this loop" : "the kernel's");
    }
    pwsp_parse_end_loops(p->body, depth);
    if (!pwsp_scan_built(p, p->start)) {
        return false;
    }
    p->has_reals = true;
    bool is_read = pwsp_parse_try(p, "machine") ? pwsp_scan_machine(p) : pwsp_scan_operation(p);
    p->has_reals = false;
    return is_read;
}

PWSP_INTERNAL bool pwsp_parse_body_end(pwsp_parser *p) {
    struct pwsp_parse_body *body = p->body;
    if (!p->is_in_body) {
        return true;
    }
    p->is_in_body = false;
    pwsp_parse_end_loops(body, 0);
    if (p->is_failed) {
        return false;
    }
    ptowsp_kernel made = ptowsp_kernel_end(body->built);
    if (!pwsp_parse_built(p, body->line, body->column)) {
        return false;
    }
    const pwsp_kernel_info *kernel = PWSP_KERNEL(p->module, made.id);
    const bool is_like = pwsp_kernel_is_like(kernel, &body->head);
    if (is_like && kernel->unit == body->head.unit) {
        return true;
    }
    p->line = body->line;
    p->column = body->column;
    return is_like
               ? pwsp_parse_fail(p, "kernel %s: it is for %s, not %s", kernel->name,
                                 ptowsp_unit_name(kernel->unit), ptowsp_unit_name(body->head.unit))
               : pwsp_parse_fail(p, "kernel %s: its body has other parameters", kernel->name);
}
