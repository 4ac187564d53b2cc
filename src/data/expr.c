// Trees of scalar expressions, typed and folded as they are built.
//
// Nodes live in one array, operands before their users, so an expression is an index and two
// expressions may share a part. Sharing could make trees exponentially large, so they are bounded:
// a node knows the depth and size of its tree, and the module refuses trees beyond
// PTOWSP_EXPR_DEPTH_MAX and _SIZE_MAX. All later code may therefore walk trees recursively.

#include "expr.h"
#include "names.h"

#include "../base/text.h"

#include <inttypes.h>

typedef struct pwsp_operator {
    char text[5];
    uint8_t precedence;
    uint8_t operands;
    uint8_t op_i64, op_u64;
} pwsp_operator;

static const pwsp_operator pwsp_operators[] = {
#define PWSP_OPERATOR_ROW(name, text, precedence, operands, op_i64, op_u64)                        \
    {text, precedence, PWSP_OPERANDS_##operands, PWSP_OPCODE_##op_i64, PWSP_OPCODE_##op_u64},
    PWSP_OPERATORS(PWSP_OPERATOR_ROW)
#undef PWSP_OPERATOR_ROW
};

static const pwsp_operator *pwsp_operator_of(pwsp_expr_op op) {
    PTOWSP_ASSERT(op >= PWSP_EXPR_ADD && op < PWSP_EXPR_OP_COUNT);
    return &pwsp_operators[op - PWSP_EXPR_ADD];
}

PWSP_INTERNAL pwsp_opcode pwsp_expr_opcode(pwsp_expr_op op, ptowsp_type operand_type) {
    const pwsp_operator *row = pwsp_operator_of(op);
    return (pwsp_opcode)(operand_type == PTOWSP_TYPE_U64 ? row->op_u64 : row->op_i64);
}

PWSP_INTERNAL const char *pwsp_type_name(ptowsp_type type) {
    switch (type) {
    case PTOWSP_TYPE_I64: return "i64";
    case PTOWSP_TYPE_U64: return "u64";
    default: PTOWSP_ASSERT(type == PTOWSP_TYPE_BOOL); return "bool";
    }
}

static uint64_t pwsp_opcode_apply(pwsp_opcode opcode, uint64_t a, uint64_t b, uint64_t c) {
    switch (opcode) {
#define PWSP_OPCODE_CASE(name, result)                                                             \
    case PWSP_OPCODE_##name: return (uint64_t)(result);
        PWSP_OPCODES(PWSP_OPCODE_CASE)
#undef PWSP_OPCODE_CASE
    default: PTOWSP_ASSERT(0 && "an operation without a value"); return 0;
    }
}

PWSP_INTERNAL ptowsp_type pwsp_expr_result(pwsp_expr_op op, ptowsp_type a, ptowsp_type b,
                                           ptowsp_type c) {
    bool is_integer = a == PTOWSP_TYPE_I64 || a == PTOWSP_TYPE_U64;
    const pwsp_operands operands = (pwsp_operands)pwsp_operator_of(op)->operands;
    switch (operands) {
    case PWSP_OPERANDS_INTEGER: return is_integer ? a : PTOWSP_TYPE_NONE;
    case PWSP_OPERANDS_BOOL: return a == PTOWSP_TYPE_BOOL ? a : PTOWSP_TYPE_NONE;
    case PWSP_OPERANDS_ANY:
        return op == PWSP_EXPR_TO_I64   ? PTOWSP_TYPE_I64
               : op == PWSP_EXPR_TO_U64 ? PTOWSP_TYPE_U64
                                        : PTOWSP_TYPE_BOOL;
    case PWSP_OPERANDS_INTEGERS: return is_integer && a == b ? a : PTOWSP_TYPE_NONE;
    case PWSP_OPERANDS_EQUALS: return a == b ? PTOWSP_TYPE_BOOL : PTOWSP_TYPE_NONE;
    case PWSP_OPERANDS_ORDERED: return is_integer && a == b ? PTOWSP_TYPE_BOOL : PTOWSP_TYPE_NONE;
    case PWSP_OPERANDS_BOOLS: return a == PTOWSP_TYPE_BOOL && a == b ? a : PTOWSP_TYPE_NONE;
    default:
        PTOWSP_ASSERT(operands == PWSP_OPERANDS_SELECT);
        return a == PTOWSP_TYPE_BOOL && b == c ? b : PTOWSP_TYPE_NONE;
    }
}

PWSP_INTERNAL uint32_t pwsp_exprs_add(pwsp_exprs *exprs, const pwsp_memory *memory,
                                      const pwsp_expr_node *node) {
    uint64_t id = exprs->count ? exprs->count : 1;
    if (id >= UINT32_MAX || !PWSP_GROW(memory, exprs->nodes, exprs->capacity, id + 1)) {
        return 0;
    }
    exprs->nodes[id] = *node;
    exprs->count = id + 1;
    return (uint32_t)id;
}

PWSP_INTERNAL uint32_t pwsp_exprs_const(pwsp_exprs *exprs, const pwsp_memory *memory,
                                        ptowsp_type type, uint64_t value) {
    PWSP_ZERO(pwsp_expr_node, node);
    node.op = PWSP_EXPR_CONST;
    node.type = (uint8_t)type;
    node.size = 1;
    node.value = value;
    return pwsp_exprs_add(exprs, memory, &node);
}

PWSP_INTERNAL uint32_t pwsp_exprs_operator(pwsp_exprs *exprs, const pwsp_memory *memory,
                                           pwsp_expr_op op, uint32_t a, uint32_t b, uint32_t c) {
    PWSP_ZERO(pwsp_expr_node, node);
    uint32_t operands[3] = {a, b, c};
    uint64_t values[3] = {0, 0, 0};
    bool is_const = true;
    uint8_t types[3] = {PTOWSP_TYPE_NONE, PTOWSP_TYPE_NONE, PTOWSP_TYPE_NONE};
    node.size = 1;
    for (uint32_t i = 0; i < 3 && operands[i]; i++) {
        const pwsp_expr_node *operand = &exprs->nodes[operands[i]];
        is_const = is_const && operand->op == PWSP_EXPR_CONST;
        values[i] = operand->value;
        types[i] = operand->type;
        node.size += operand->size;
        node.depth = operand->depth >= node.depth ? (uint8_t)(operand->depth + 1) : node.depth;
        node.is_faulty |= operand->is_faulty;
    }
    ptowsp_type type =
        pwsp_expr_result(op, (ptowsp_type)types[0], (ptowsp_type)types[1], (ptowsp_type)types[2]);
    PTOWSP_ASSERT(type != PTOWSP_TYPE_NONE && node.depth <= PTOWSP_EXPR_DEPTH_MAX);
    if (is_const) {
        pwsp_opcode opcode = pwsp_expr_opcode(op, (ptowsp_type)types[0]);
        return pwsp_exprs_const(exprs, memory, type,
                                pwsp_opcode_apply(opcode, values[0], values[1], values[2]));
    }
    if (exprs->nodes[a].op == PWSP_EXPR_CONST) {
        switch (op) {
        case PWSP_EXPR_SELECT: return values[0] ? b : c;
        case PWSP_EXPR_AND: return values[0] ? b : a;
        case PWSP_EXPR_OR: return values[0] ? a : b;
        default: break;
        }
    }
    node.op = (uint8_t)op;
    node.type = (uint8_t)type;
    node.a = a;
    node.b = b;
    node.c = c;
    return pwsp_exprs_add(exprs, memory, &node);
}

// Words of texts have at most PTOWSP_NAME_MAX characters.
PWSP_INTERNAL pwsp_quoted_name pwsp_quoted_behind(const char *before, const char *name) {
    pwsp_quoted_name quoted;
    ptowsp_output_buffer buffer = {quoted.text, sizeof quoted.text, 0};
    // Words that stand where a name may stand, but mean something else there.
    static const char reserved[][12] = {"true", "false", "slot_u64", "slot_i64", "slot_bool", ""};
    bool is_word =
        (name[0] < '0' || name[0] > '9') && strlen(before) + strlen(name) <= PTOWSP_NAME_MAX;
    for (uint32_t i = 0; is_word && name[i] != '\0'; i++) {
        is_word = pwsp_name_is_word_part(name[i]);
    }
    for (uint32_t i = 0; is_word && reserved[i][0] != '\0'; i++) {
        is_word = name[0] != reserved[i][0] || strcmp(name, reserved[i]) != 0;
    }
    pwsp_text_format(ptowsp_output_to_buffer(&buffer), is_word ? "%s%s" : "%s\"%s\"", before, name);
    return quoted;
}

static void pwsp_exprs_print_const(const pwsp_expr_node *node, ptowsp_output text) {
    if (node->type == PTOWSP_TYPE_BOOL) {
        pwsp_text_format(text, "%s", node->value ? "true" : "false");
    } else if (node->type == PTOWSP_TYPE_I64) {
        pwsp_text_format(text, "%" PRId64, (int64_t)node->value);
    } else {
        pwsp_text_format(text, "%" PRIu64 "u", node->value);
    }
}

// Is a name not a word, or a word that is a part of the task in the keys of schedules?
static bool pwsp_exprs_needs_quotes(const char *name) {
    return pwsp_quoted(name).text[0] == '"' || strncmp(name, "task.", 5) == 0;
}

// An array is in quotes if its name ends like a field, as the word would be read as the field. So is the
// plan alone where the name of a field needs quotes: "my plan".slot.
static void pwsp_exprs_print_array(const pwsp_expr_node *node, ptowsp_output text) {
    const char *name = node->name;
    const bool is_field = node->value != 0;
    if (pwsp_exprs_needs_quotes(name) ||
        (!is_field && pwsp_name_field(name) != PTOWSP_PLAN_FIELD_COUNT)) {
        const char *rest = is_field ? strrchr(name, '.') : name + strlen(name);
        pwsp_text_format(text, "\"%.*s\"%s", (int)(rest - name), name, rest);
    } else {
        pwsp_text_put(text, name);
    }
}

// Prints a leaf, or a read of an array; false if it is an operator.
static bool pwsp_exprs_print_leaf(const pwsp_exprs *exprs, const pwsp_expr_node *node,
                                  ptowsp_output text) {
    switch ((pwsp_expr_op)node->op) {
    case PWSP_EXPR_CONST: pwsp_exprs_print_const(node, text); return true;
    case PWSP_EXPR_VARIABLE:
    case PWSP_EXPR_SYMBOL:
        pwsp_text_format(text, pwsp_exprs_needs_quotes(node->name) ? "\"%s\"" : "%s", node->name);
        return true;
    case PWSP_EXPR_ENTRY:
        pwsp_text_format(text, "entry(%s)", pwsp_quoted(node->name).text);
        return true;
    case PWSP_EXPR_SIZE:
        pwsp_text_format(text, "size(%s)", pwsp_quoted(node->name).text);
        return true;
    case PWSP_EXPR_ARRAY:
        pwsp_exprs_print_array(node, text);
        pwsp_text_format(text, "[");
        pwsp_exprs_print(exprs, node->a, text);
        pwsp_text_format(text, "]");
        return true;
    case PWSP_EXPR_SLOT_U64: pwsp_text_format(text, "slot_u64[%u]", node->a); return true;
    case PWSP_EXPR_SLOT_I64: pwsp_text_format(text, "slot_i64[%u]", node->a); return true;
    case PWSP_EXPR_SLOT_BOOL: pwsp_text_format(text, "slot_bool[%u]", node->a); return true;
    case PWSP_EXPR_TASK_VARIABLE:
        pwsp_text_put(text, pwsp_quoted_behind("task.", node->name).text);
        return true;
    case PWSP_EXPR_TASK_ARG: pwsp_text_format(text, "task.args[%u]", node->a); return true;
    case PWSP_EXPR_TASK_TAG:
        pwsp_text_format(text, "task.tag(%s)", pwsp_quoted(node->name).text);
        return true;
    default: return false;
    }
}

// Prints an operand, in parentheses if it binds less tightly than `precedence`.
static void pwsp_exprs_print_operand(const pwsp_exprs *exprs, uint32_t id, uint32_t precedence,
                                     ptowsp_output text) {
    const pwsp_expr_node *node = &exprs->nodes[id];
    uint32_t own =
        node->op >= PWSP_EXPR_ADD ? pwsp_operator_of((pwsp_expr_op)node->op)->precedence : 0;
    bool is_open = own != 0 && own < precedence;
    pwsp_text_format(text, "%s", is_open ? "(" : "");
    pwsp_exprs_print(exprs, id, text);
    pwsp_text_format(text, "%s", is_open ? ")" : "");
}

PWSP_INTERNAL void pwsp_exprs_print(const pwsp_exprs *exprs, uint32_t id, ptowsp_output text) {
    const pwsp_expr_node *node = &exprs->nodes[id];
    if (pwsp_exprs_print_leaf(exprs, node, text)) {
        return;
    }
    const pwsp_operator *row = pwsp_operator_of((pwsp_expr_op)node->op);
    if (row->operands == PWSP_OPERANDS_SELECT) {
        pwsp_exprs_print_operand(exprs, node->a, 2, text);
        pwsp_text_format(text, " ? ");
        pwsp_exprs_print_operand(exprs, node->b, 2, text);
        pwsp_text_format(text, " : ");
        pwsp_exprs_print_operand(exprs, node->c, 1, text);
    } else if (row->precedence == 0) {
        pwsp_text_format(text, "%s(", row->text);
        pwsp_exprs_print(exprs, node->a, text);
        if (node->b) {
            pwsp_text_format(text, ", ");
            pwsp_exprs_print(exprs, node->b, text);
        }
        pwsp_text_format(text, ")");
    } else if (!node->b) {
        pwsp_text_format(text, "%s", row->text);
        pwsp_exprs_print_operand(exprs, node->a, 13, text);
    } else {
        pwsp_exprs_print_operand(exprs, node->a, row->precedence, text);
        pwsp_text_format(text, " %s ", row->text);
        pwsp_exprs_print_operand(exprs, node->b, row->precedence + 1u, text);
    }
}
