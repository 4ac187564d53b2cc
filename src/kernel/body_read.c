// Reading bodies, by the forms of the table of operations: the parts of a line become the arguments
// of a builder's call, and the builder's errors are reported here, at the line's operation.

#include "body_text.h"
#include "description.h"

#include <inttypes.h>
#include <stdio.h>

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
    uint64_t type_column;
    ptowsp_dtype dtype;  // NONE: left out
    int64_t rows, cols;  // 0: left out
    ptowsp_alloc_desc alloc;
    ptowsp_instruction_desc instruction;
} pwsp_body_args;

// Keeps the first error, at a column; returns false.
static bool pwsp_scan_fail(pwsp_body_reader *r, uint64_t column, const char *format, ...)
    PWSP_PRINTF(3, 4);
static bool pwsp_scan_fail(pwsp_body_reader *r, uint64_t column, const char *format, ...) {
    if (r->status == PTOWSP_OK) {
        PWSP_TEXT_FORMAT_INTO(r->error, format);
        r->status = PTOWSP_INVALID_PARAMS;
        r->column = column;
    }
    return false;
}

// -- words ----------------------------------------------------------------------------------------

static bool pwsp_scan_is(const pwsp_body_reader *r, const char *word) {
    return (r->at->kind == PWSP_WORD_NAME || r->at->kind == PWSP_WORD_SIGN) &&
           r->at->length == strlen(word) && memcmp(r->at->text, word, r->at->length) == 0;
}

static bool pwsp_scan_try(pwsp_body_reader *r, const char *word) {
    bool is_there = pwsp_scan_is(r, word);
    r->at += is_there;
    return is_there;
}

static bool pwsp_scan_expect(pwsp_body_reader *r, const char *word) {
    return pwsp_scan_try(r, word) || pwsp_scan_fail(r, r->at->column, "%s is missing here", word);
}

static bool pwsp_scan_int(pwsp_body_reader *r, uint32_t *out_number) {
    if (r->at->kind != PWSP_WORD_INT) {
        return pwsp_scan_fail(r, r->at->column, "a whole number is missing here");
    }
    if (r->at->number > UINT32_MAX) {
        return pwsp_scan_fail(r, r->at->column, "this number is too large here");
    }
    *out_number = (uint32_t)r->at++->number;
    return true;
}

static bool pwsp_scan_count(pwsp_body_reader *r, int64_t *out_number) {
    uint32_t number = 0;
    bool is_there = pwsp_scan_int(r, &number);
    *out_number = number;
    return is_there;
}

static bool pwsp_scan_name(pwsp_body_reader *r, const char *what, char *out_name) {
    if ((r->at->kind != PWSP_WORD_NAME && r->at->kind != PWSP_WORD_QUOTED) ||
        r->at->length > PTOWSP_NAME_MAX) {
        return pwsp_scan_fail(r, r->at->column, "the name of %s is missing here", what);
    }
    memcpy(out_name, r->at->text, r->at->length);
    out_name[r->at++->length] = '\0';
    return true;
}

// The index i below `count` for which word_at(i) is the word; otherwise `count`.
static uint32_t pwsp_scan_choice(pwsp_body_reader *r, const char *(*word_at)(uint32_t),
                                 uint32_t first, uint32_t count) {
    uint32_t i = first;
    while (i < count && !pwsp_scan_try(r, word_at(i))) {
        i++;
    }
    return i;
}

// -- parts ----------------------------------------------------------------------------------------

static bool pwsp_scan_label(pwsp_body_reader *r, uint64_t *out_label) {
    if (!pwsp_scan_expect(r, "%")) {
        return false;
    }
    if (r->at->kind != PWSP_WORD_INT) {
        return pwsp_scan_fail(r, r->at->column, "the number of a value is missing here");
    }
    *out_label = r->at++->number;
    return true;
}

static bool pwsp_scan_value(pwsp_body_reader *r, ptowsp_value *out_value) {
    const uint64_t column = r->at->column;
    uint64_t label = 0, low = 0, high = r->label_count;
    if (!pwsp_scan_label(r, &label)) {
        return false;
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (r->labels[middle].label < label) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == r->label_count || r->labels[low].label != label) {
        return pwsp_scan_fail(r, column, "there is no value %%%" PRIu64 " yet", label);
    }
    out_value->body = r->body;
    out_value->id = r->labels[low].value;
    return true;
}

static bool pwsp_scan_number(pwsp_body_reader *r, double *out_number) {
    const pwsp_word *first = r->at;
    const bool is_negative = pwsp_scan_try(r, "-");
    uint64_t bits = UINT64_C(0x7ff8000000000000);
    if (pwsp_scan_try(r, "inf")) {
        bits = UINT64_C(0x7ff0000000000000) | (uint64_t)is_negative << 63;
        memcpy(out_number, &bits, sizeof bits);
        return true;
    }
    if (!is_negative && pwsp_scan_try(r, "nan")) {
        if (pwsp_scan_try(r, "(")) {
            bits = r->at->kind == PWSP_WORD_INT ? r->at++->number : 0;
            if (!pwsp_scan_expect(r, ")")) {
                return false;
            }
        }
        memcpy(out_number, &bits, sizeof bits);
        return *out_number != *out_number ||
               pwsp_scan_fail(r, first->column, "these are not the bits of a NaN");
    }
    const bool is_number = r->at->kind == PWSP_WORD_INT || r->at->kind == PWSP_WORD_REAL;
    if (!is_number || !pwsp_number_read(r->at->text, r->at->length, false, out_number)) {
        return pwsp_scan_fail(r, r->at->column,
                              is_number ? "this is no number" : "a number is missing here");
    }
    *out_number = is_negative ? -*out_number : *out_number;
    r->at++;
    return true;
}

static bool pwsp_scan_size(pwsp_body_reader *r, int64_t *out_size) {
    *out_size = 0;
    return pwsp_scan_try(r, "?") || pwsp_scan_count(r, out_size);
}

static bool pwsp_scan_type(pwsp_body_reader *r, pwsp_body_args *a) {
    a->type_column = r->at->column;
    if (!pwsp_scan_try(r, ":")) {
        return true;
    }
    a->has_type = true;
    a->is_mask = pwsp_scan_try(r, "mask");
    a->dtype = PTOWSP_U8;
    if (!a->is_mask) {
        a->dtype = PTOWSP_F16;
        while (a->dtype <= PTOWSP_BOOL && !pwsp_scan_try(r, ptowsp_dtype_name(a->dtype))) {
            a->dtype = (ptowsp_dtype)(a->dtype + 1);
        }
    }
    if (a->dtype > PTOWSP_BOOL) {
        return pwsp_scan_fail(r, r->at->column, "a data type is missing here");
    }
    return r->at->kind == PWSP_WORD_END ||
           (pwsp_scan_size(r, &a->rows) && pwsp_scan_expect(r, "x") && pwsp_scan_size(r, &a->cols));
}

static bool pwsp_scan_window(pwsp_body_reader *r, pwsp_body_args *a) {
    a->has_at = pwsp_scan_try(r, "at");
    if (!a->has_at) {
        return true;
    }
    const uint64_t column = r->at->column;
    for (int i = 0; i < 2; i++) {
        if (!pwsp_scan_expect(r, i ? "," : "(")) {
            return false;
        }
        const bool is_value = pwsp_scan_is(r, "%");
        if (is_value ? !pwsp_scan_value(r, &a->at[i]) : !pwsp_scan_count(r, &a->offsets[i])) {
            return false;
        }
        a->is_indexed = a->is_indexed || is_value;
    }
    if ((a->is_indexed || a->kind == PWSP_KOP_STORE) && (a->offsets[0] || a->offsets[1])) {
        return pwsp_scan_fail(r, column, "beside a value, and of a store, a number is 0 here");
    }
    return pwsp_scan_expect(r, ")");
}

static bool pwsp_scan_alloc(pwsp_body_reader *r, pwsp_body_args *a) {
    const uint32_t memory = pwsp_scan_choice(r, pwsp_memory_word, 0, PTOWSP_MEMORY_COUNT);
    if (memory == PTOWSP_MEMORY_COUNT) {
        return pwsp_scan_fail(r, r->at->column, "a memory is missing here");
    }
    const uint32_t layout = pwsp_scan_choice(r, pwsp_layout_word, 0, PTOWSP_LAYOUT_COUNT);
    if (layout == PTOWSP_LAYOUT_COUNT) {
        return pwsp_scan_fail(r, r->at->column, "a layout is missing here");
    }
    a->alloc.memory = (ptowsp_memory)memory;
    a->alloc.layout = (ptowsp_layout)layout;
    return !pwsp_scan_try(r, "like") || pwsp_scan_value(r, &a->alloc.like);
}

static bool pwsp_scan_values(pwsp_body_reader *r, ptowsp_value *values, uint32_t capacity) {
    if (!pwsp_scan_expect(r, "(")) {
        return false;
    }
    for (uint32_t i = 0; !pwsp_scan_is(r, ")"); i++) {
        if (i == capacity) {
            return pwsp_scan_fail(r, r->at->column, "more than %u operands", capacity);
        }
        if ((i && !pwsp_scan_expect(r, ",")) || !pwsp_scan_value(r, &values[i])) {
            return false;
        }
    }
    return pwsp_scan_expect(r, ")");
}

static bool pwsp_scan_instruction(pwsp_body_reader *r, pwsp_body_args *a) {
    ptowsp_instruction_desc *desc = &a->instruction;
    desc->name = a->name;
    return pwsp_scan_name(r, "an instruction", a->name) && pwsp_scan_values(r, desc->dst, 2) &&
           pwsp_scan_values(r, desc->src, 4) &&
           (!pwsp_scan_try(r, "tmp") || pwsp_scan_value(r, &desc->tmp)) &&
           (!pwsp_scan_try(r, "scalar") || pwsp_scan_value(r, &desc->scalar)) &&
           (!pwsp_scan_try(r, "at") ||
            (pwsp_scan_expect(r, "(") && pwsp_scan_int(r, &desc->row) && pwsp_scan_expect(r, ",") &&
             pwsp_scan_int(r, &desc->col) && pwsp_scan_expect(r, ")"))) &&
           (!pwsp_scan_try(r, "mode") || pwsp_scan_int(r, &desc->mode));
}

static bool pwsp_scan_part(pwsp_body_reader *r, char part, pwsp_body_args *a) {
    uint32_t choice;
    switch (part) {
    case ',': return pwsp_scan_expect(r, ",");
    case 'x': return pwsp_scan_value(r, &a->src[0]);
    case 'y': return pwsp_scan_value(r, &a->src[1]);
    case 'z': return pwsp_scan_value(r, &a->src[2]);
    case 'p': return pwsp_scan_value(r, &a->param);
    case 'N': return pwsp_scan_name(r, "a parameter", a->name);
    case '#': return pwsp_scan_number(r, &a->number);
    case 'w':
    case 'c': return pwsp_scan_count(r, &a->count);
    case '?':
        choice = pwsp_scan_choice(r, pwsp_compare_text, PTOWSP_EQ, PTOWSP_GE + 1);
        a->compare = (ptowsp_compare)choice;
        return choice <= PTOWSP_GE ||
               pwsp_scan_fail(r, r->at->column, "a comparison is missing here");
    case 'r':
        choice = pwsp_scan_choice(r, pwsp_round_text, PTOISA_CAST_RINT,
                                  (uint32_t)PTOISA_CAST_RINT + PTOWSP_ROUND_TRUNC + 1);
        choice -= (uint32_t)PTOISA_CAST_RINT;
        a->round = choice <= PTOWSP_ROUND_TRUNC ? (ptowsp_round)choice : PTOWSP_ROUND_NEAREST;
        return true;
    case 's': a->axis = pwsp_scan_try(r, "cols"); return a->axis || pwsp_scan_expect(r, "rows");
    case '@': return pwsp_scan_window(r, a);
    case 'm': return pwsp_scan_alloc(r, a);
    case 'i': return pwsp_scan_instruction(r, a);
    default: return pwsp_scan_type(r, a);
    }
}

// -- calls ----------------------------------------------------------------------------------------

// Of the kernel's line; the order is compared when the kernel ends.
static ptowsp_value pwsp_scan_param(pwsp_body_reader *r, const pwsp_body_args *a) {
    const ptowsp_value none = {NULL, 0};
    const ptowsp_tile_param *tile = r->head.tiles, *end = tile + PTOWSP_TASK_TILE_MAX;
    while (tile < end && tile->name && strcmp(tile->name, a->name) != 0) {
        tile++;
    }
    if (tile == end || !tile->name) {
        pwsp_scan_fail(r, 0, "the kernel's line has no tile %s", a->name);
        return none;
    }
    return tile->direction == PTOWSP_IN
               ? ptowsp_tile_in(r->body, a->name, tile->dtype, tile->rows, tile->cols)
           : tile->direction == PTOWSP_OUT
               ? ptowsp_tile_out(r->body, a->name, tile->dtype, tile->rows, tile->cols)
               : ptowsp_tile_inout(r->body, a->name, tile->dtype, tile->rows, tile->cols);
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

static ptowsp_value pwsp_scan_call(pwsp_body_reader *r, const pwsp_body_args *a) {
    const ptowsp_value none = {NULL, 0}, x = a->src[0], y = a->src[1], z = a->src[2];
    ptowsp_body *k = r->body;
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
static bool pwsp_scan_check_type(pwsp_body_reader *r, const pwsp_body_args *a, const pwsp_kop *op) {
    const bool is_alloc = op->kind == PWSP_KOP_ALLOC;
    if (!a->has_type || (op->dtype == (uint8_t)a->dtype && op->is_mask == a->is_mask &&
                         (op->rows == a->rows || (is_alloc && a->rows == 0)) &&
                         (op->cols == a->cols || (is_alloc && a->cols == 0)))) {
        return true;
    }
    const char *name = op->is_mask ? "mask" : ptowsp_dtype_name((ptowsp_dtype)op->dtype);
    return pwsp_scan_fail(r, a->type_column,
                          op->rows ? "the result of %s is %s %u x %u" : "the result of %s is %s",
                          pwsp_kop_name(a->kind), name, op->rows, op->cols);
}

static bool pwsp_scan_keep(pwsp_body_reader *r, uint64_t column, uint64_t label,
                           ptowsp_value value) {
    if (!PWSP_GROW(&r->body->memory, r->labels, r->label_capacity, r->label_count + 1)) {
        pwsp_scan_fail(r, column, "out of memory");
        r->status = PTOWSP_OUT_OF_MEMORY;
        return false;
    }
    r->labels[r->label_count].label = label;
    r->labels[r->label_count++].value = value.id;
    return true;
}

// Calls the builder; `label` is the value's, at `column`, where there is one.
static bool pwsp_scan_build(pwsp_body_reader *r, pwsp_body_args *a, bool has_label, uint64_t label,
                            uint64_t column) {
    const char *name = pwsp_kop_name(a->kind);
    a->alloc.dtype = a->dtype;
    a->alloc.rows = a->rows;
    a->alloc.cols = a->cols;
    ptowsp_value value = pwsp_scan_call(r, a);
    if (r->body->status != PTOWSP_OK) {
        pwsp_scan_fail(r, column, "kernel %s: %s", r->body->name, r->body->text);
        r->status = r->body->status;
    } else if (r->status == PTOWSP_OK && !has_label && value.id) {
        pwsp_scan_fail(r, column, "%s makes a value; %%1 = %s ...", name, name);
    } else if (r->status == PTOWSP_OK && has_label && !value.id) {
        pwsp_scan_fail(r, column, "%s makes no value", name);
    }
    if (r->status != PTOWSP_OK) {
        r->column = r->column ? r->column : column;
        return false;
    }
    r->depth += a->kind == PWSP_KOP_LOOP;
    return !has_label || (pwsp_scan_check_type(r, a, &r->body->ops[value.id]) &&
                          pwsp_scan_keep(r, column, label, value));
}

static bool pwsp_scan_operation(pwsp_body_reader *r) {
    const uint64_t column = r->at->column;
    const bool has_label = pwsp_scan_is(r, "%");
    uint64_t label = 0;
    if (has_label && (!pwsp_scan_label(r, &label) || !pwsp_scan_expect(r, "="))) {
        return false;
    }
    if (has_label && r->label_count && r->labels[r->label_count - 1].label >= label) {
        return pwsp_scan_fail(r, column, "%%%" PRIu64 " behind %%%" PRIu64 "; numbers ascend",
                              label, r->labels[r->label_count - 1].label);
    }
    pwsp_body_args a;
    memset(&a, 0, sizeof a);
    uint32_t kind = 1;
    while (kind < PWSP_KOP_COUNT &&
           (kind == PWSP_KOP_END || !pwsp_scan_try(r, pwsp_kop_name((pwsp_kop_kind)kind)))) {
        kind++;
    }
    if (kind == PWSP_KOP_COUNT) {
        return pwsp_scan_fail(r, r->at->column, "no operation begins like this");
    }
    a.kind = (pwsp_kop_kind)kind;
    for (const char *part = pwsp_kop_form(a.kind); *part; part++) {
        if (!pwsp_scan_part(r, *part, &a)) {
            return false;
        }
    }
    if (r->at->kind != PWSP_WORD_END) {
        return pwsp_scan_fail(r, r->at->column, "the line goes on behind what it says");
    }
    return pwsp_scan_build(r, &a, has_label, label, column);
}

// A built-in machine by its name, or all of another's numbers.
static bool pwsp_scan_machine(pwsp_body_reader *r) {
    const uint64_t column = r->at->column;
    char name[PTOWSP_NAME_MAX + 1];
    ptowsp_machine machine;
    memset(&machine, 0, sizeof machine);
    if (r->body->op_count) {
        return pwsp_scan_fail(r, column, "the machine stands in front of all operations");
    }
    if (!pwsp_scan_name(r, "a machine", name)) {
        return false;
    }
    if (pwsp_scan_try(r, "of")) {
        snprintf(machine.name, sizeof machine.name, "%.15s", name);
        machine.family = pwsp_scan_try(r, "a5") ? PTOWSP_FAMILY_A5 : PTOWSP_FAMILY_A2A3;
        bool is_good = (machine.family == PTOWSP_FAMILY_A5 || pwsp_scan_expect(r, "a2a3")) &&
                       pwsp_scan_expect(r, ",") && pwsp_scan_int(r, &machine.clock_mhz) &&
                       pwsp_scan_expect(r, "MHz") && pwsp_scan_expect(r, ",") &&
                       pwsp_scan_expect(r, "memories");
        for (int i = 0; i < PTOWSP_MEMORY_COUNT && is_good; i++) {
            is_good = pwsp_scan_int(r, &machine.memory_bytes[i]);
        }
        is_good = is_good && pwsp_scan_expect(r, ",") && pwsp_scan_expect(r, "rates");
        for (int i = 0; i < PTOWSP_PATH_COUNT && is_good; i++) {
            is_good = pwsp_scan_int(r, &machine.rates[i]);
        }
        if (!is_good) {
            return false;
        }
    } else {
        const bool is_a5 = strcmp(name, ptoisa_machine_950pr()->name) == 0;
        if (!is_a5 && strcmp(name, ptoisa_machine_910b()->name) != 0) {
            return pwsp_scan_fail(r, column, "no machine %s is built in", name);
        }
        machine = is_a5 ? ptowsp_machine_950pr() : ptowsp_machine_910b();
    }
    if (!pwsp_machine_to_isa(&machine, &r->body->machine)) {
        return pwsp_scan_fail(r, column, "kernel %s: %s", r->body->name, PWSP_MACHINE_RULE);
    }
    r->body->is_fused = pwsp_scan_try(r, ",") && pwsp_scan_expect(r, "fused");
    return r->status == PTOWSP_OK &&
           (r->at->kind == PWSP_WORD_END ||
            pwsp_scan_fail(r, r->at->column, "the line goes on behind what it says"));
}

bool pwsp_body_read(pwsp_body_reader *r, uint32_t depth, const pwsp_word *words) {
    r->at = words;
    if (depth > r->depth) {
        return pwsp_scan_fail(r, words->column, "a line is further right than one below %s may be",
                              r->depth ? "this loop" : "the kernel's");
    }
    for (; r->depth > depth; r->depth--) {
        ptowsp_tile_loop_end(r->body);
    }
    if (r->body->status != PTOWSP_OK) {  // of the end of a loop
        pwsp_scan_fail(r, words->column, "kernel %s: %s", r->body->name, r->body->text);
        r->status = r->body->status;
        return false;
    }
    return pwsp_scan_try(r, "machine") ? pwsp_scan_machine(r) : pwsp_scan_operation(r);
}

void pwsp_body_read_end(pwsp_body_reader *r) {
    for (; r->depth > 0; r->depth--) {
        ptowsp_tile_loop_end(r->body);
    }
}

void pwsp_body_reader_free(pwsp_body_reader *r) {
    PWSP_FREE(&r->body->memory, r->labels, r->label_capacity);
}
