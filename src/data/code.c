// From trees to three-address code.
//
// Everything that an expression can refer to has a cell: constants, loop variables, symbols, sizes,
// slots, arguments of the task. So leaves cost nothing, and an operation names the cells of its
// operands:
//
//      lengths[b + 1] <= cut        ADD    t0 = b, 1
//                                   READ   t0 = lengths[t0]
//                                   LE_I   t0 = t0, cut
//
// Temporaries are a stack: an operand's value is in a leaf's cell or in the lowest free temporary.
// Right operands that read arrays are skipped over when they are not needed (select, and, or);
// other operands are always evaluated, which is faster and has no visible effect.

#include "code.h"

static bool pwsp_coder_emit(pwsp_coder *coder, pwsp_opcode opcode, uint32_t out, uint32_t a,
                            uint32_t b, uint32_t c) {
    if (coder->code_count >= coder->code_max) {
        coder->is_too_large = true;
        return false;
    }
    if (coder->code_count >= UINT32_MAX ||
        !PWSP_GROW(coder->memory, coder->code, coder->code_capacity, coder->code_count + 1)) {
        coder->is_out_of_memory = true;
        return false;
    }
    pwsp_instruction instruction = {(uint32_t)opcode, out, a, b, c};
    coder->code[coder->code_count++] = instruction;
    return true;
}

#define PWSP_CONST_HASH(of, value) pwsp_mix64(value)
#define PWSP_CONST_AT(of, place)   ((of)->consts[place])
#define PWSP_CONST_IS(of, a, b)    ((a) == (b))
PWSP_LOOKUP(pwsp_consts, pwsp_coder, uint64_t, PWSP_CONST_HASH, PWSP_CONST_AT, PWSP_CONST_IS)

PWSP_INTERNAL bool pwsp_coder_const(pwsp_coder *coder, uint64_t value, uint32_t *out_cell) {
    if (coder->const_count >= UINT32_MAX / 2 ||
        !pwsp_consts_reserve(coder, &coder->places, coder->memory, coder->const_count) ||
        !PWSP_GROW(coder->memory, coder->consts, coder->const_capacity, coder->const_count + 1)) {
        coder->is_out_of_memory = true;
        return false;
    }
    uint32_t *place = pwsp_consts_slot(coder, &coder->places, value);
    if (*place == 0) {
        coder->consts[coder->const_count++] = value;
        *place = (uint32_t)coder->const_count;
    }
    *out_cell = coder->first_const + *place - 1;
    return true;
}

PWSP_INTERNAL void pwsp_coder_free(pwsp_coder *coder) {
    PWSP_FREE(coder->memory, coder->code, coder->code_capacity);
    PWSP_FREE(coder->memory, coder->consts, coder->const_capacity);
    PWSP_FREE(coder->memory, coder->places.slots, coder->places.count);
}

static bool pwsp_coder_value(pwsp_coder *coder, uint32_t id, uint32_t temp, uint32_t *out_cell);

// Emits a skip whose target is set later; returns its place.
static bool pwsp_coder_skip(pwsp_coder *coder, pwsp_opcode opcode, uint32_t cell,
                            uint64_t *out_place) {
    *out_place = coder->code_count;
    return pwsp_coder_emit(coder, opcode, 0, cell, 0, 0);
}

static void pwsp_coder_land(pwsp_coder *coder, uint64_t place) {
    coder->code[place].c = (uint32_t)coder->code_count;
}

// Puts the value of an expression into a certain temporary.
static bool pwsp_coder_into(pwsp_coder *coder, uint32_t id, uint32_t temp) {
    uint32_t cell;
    return pwsp_coder_value(coder, id, temp, &cell) &&
           (cell == temp || pwsp_coder_emit(coder, PWSP_OPCODE_MOVE, temp, cell, 0, 0));
}

// and, or, select whose right operands may fault.
static bool pwsp_coder_lazy(pwsp_coder *coder, const pwsp_expr_node *node, uint32_t temp) {
    uint64_t otherwise, end;
    if (node->op != PWSP_EXPR_SELECT) {
        pwsp_opcode skip = node->op == PWSP_EXPR_AND ? PWSP_OPCODE_SKIP_0 : PWSP_OPCODE_SKIP_1;
        if (!pwsp_coder_into(coder, node->a, temp) || !pwsp_coder_skip(coder, skip, temp, &end) ||
            !pwsp_coder_into(coder, node->b, temp)) {
            return false;
        }
        pwsp_coder_land(coder, end);
        return true;
    }
    uint32_t condition;
    if (!pwsp_coder_value(coder, node->a, temp, &condition) ||
        !pwsp_coder_skip(coder, PWSP_OPCODE_SKIP_0, condition, &otherwise) ||
        !pwsp_coder_into(coder, node->b, temp) ||
        !pwsp_coder_skip(coder, PWSP_OPCODE_SKIP, 0, &end)) {
        return false;
    }
    pwsp_coder_land(coder, otherwise);
    if (!pwsp_coder_into(coder, node->c, temp)) {
        return false;
    }
    pwsp_coder_land(coder, end);
    return true;
}

static bool pwsp_coder_operator(pwsp_coder *coder, const pwsp_expr_node *node, uint32_t temp) {
    const pwsp_expr_node *nodes = coder->exprs->nodes;
    bool is_lazy =
        (node->op == PWSP_EXPR_AND || node->op == PWSP_EXPR_OR) && nodes[node->b].is_faulty;
    is_lazy = is_lazy || (node->op == PWSP_EXPR_SELECT &&
                          (nodes[node->b].is_faulty || nodes[node->c].is_faulty));
    if (is_lazy) {
        return pwsp_coder_lazy(coder, node, temp);
    }
    uint32_t operands[3] = {node->a, node->b, node->c};
    uint32_t cells[3] = {0, 0, 0};
    uint32_t next = temp;
    for (uint32_t i = 0; i < 3 && operands[i]; i++) {
        if (!pwsp_coder_value(coder, operands[i], next, &cells[i])) {
            return false;
        }
        next += cells[i] == next;
    }
    pwsp_opcode opcode = pwsp_expr_opcode((pwsp_expr_op)node->op, (ptowsp_type)nodes[node->a].type);
    return pwsp_coder_emit(coder, opcode, temp, cells[0], cells[1], cells[2]);
}

// Emits code for an expression; its value is then in *out_cell, which is `temp` or a leaf's.
static bool pwsp_coder_value(pwsp_coder *coder, uint32_t id, uint32_t temp, uint32_t *out_cell) {
    const pwsp_expr_node *node = &coder->exprs->nodes[id];
    PTOWSP_ASSERT(temp < coder->first_temp + PWSP_CODE_TEMP_MAX);
    *out_cell = temp;
    if (node->op == PWSP_EXPR_CONST) {
        return pwsp_coder_const(coder, node->value, out_cell);
    }
    if (node->op == PWSP_EXPR_ARRAY) {
        uint32_t index;
        return pwsp_coder_value(coder, node->a, temp, &index) &&
               pwsp_coder_emit(coder, PWSP_OPCODE_READ, temp, index, 0, node->b);
    }
    if (node->op >= PWSP_EXPR_ADD) {
        return pwsp_coder_operator(coder, node, temp);
    }
    pwsp_leaf leaf = {0, 0};
    if (!coder->leaf(coder->user, node, &leaf)) {
        return false;
    }
    if (leaf.id) {
        return pwsp_coder_value(coder, leaf.id, temp, out_cell);
    }
    if (node->op == PWSP_EXPR_SLOT_BOOL) {
        return pwsp_coder_emit(coder, PWSP_OPCODE_BOOL, temp, leaf.cell, 0, 0);
    }
    *out_cell = leaf.cell;
    return true;
}

PWSP_INTERNAL bool pwsp_coder_compile(pwsp_coder *coder, uint32_t id, pwsp_code *out_code) {
    coder->code_max = coder->code_count + 2 * PTOWSP_EXPR_SIZE_MAX;
    out_code->begin = (uint32_t)coder->code_count;
    if (!pwsp_coder_value(coder, id, coder->first_temp, &out_code->cell)) {
        return false;
    }
    out_code->end = (uint32_t)coder->code_count;
    out_code->expr = 0;
    out_code->column = 0;
    return true;
}

// Reads outside an array give 0, and the first one is noted.
static uint64_t pwsp_code_read(const pwsp_array *arrays, uint32_t array, uint64_t index,
                               pwsp_fault *fault) {
    if (index < arrays[array].count) {
        return pwsp_array_at(&arrays[array], index);
    }
    if (!fault->is_set) {
        fault->is_set = true;
        fault->array = array;
        fault->index = (int64_t)index;
    }
    return 0;
}

PWSP_INTERNAL void pwsp_code_run(const pwsp_instruction *code, uint32_t begin, uint32_t end,
                                 uint64_t *cells, const pwsp_array *arrays, pwsp_fault *fault) {
    const pwsp_instruction *at = code + begin, *stop = code + end;
    while (at < stop) {
        uint64_t a = cells[at->a];
        switch ((pwsp_opcode)at->opcode) {
#define PWSP_OPCODE_RUN(name, result)                                                              \
    case PWSP_OPCODE_##name: {                                                                     \
        uint64_t b = cells[at->b], c = cells[at->c];                                               \
        (void)b;                                                                                   \
        (void)c;                                                                                   \
        cells[at->out] = (uint64_t)(result);                                                       \
        break;                                                                                     \
    }
            PWSP_OPCODES(PWSP_OPCODE_RUN)
#undef PWSP_OPCODE_RUN
        case PWSP_OPCODE_READ: cells[at->out] = pwsp_code_read(arrays, at->c, a, fault); break;
        case PWSP_OPCODE_SKIP: at = code + at->c; continue;
        case PWSP_OPCODE_SKIP_0:
            if (a == 0) {
                at = code + at->c;
                continue;
            }
            break;
        case PWSP_OPCODE_SKIP_1:
            if (a != 0) {
                at = code + at->c;
                continue;
            }
            break;
        }
        at++;
    }
}
