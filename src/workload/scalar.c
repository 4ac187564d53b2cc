// The public face of scalar expressions: every call checks its operands, keeps the module's first
// error, and adds a node.
//
// The place of an expression is checked when it is used (pwsp_module_use): the loops of its
// variables must be open there. References that only the key of a schedule can have are refused.

#include "module.h"

#include "../base/text.h"

static ptowsp_expr pwsp_expr_make(ptowsp_module *module, uint32_t id) {
    ptowsp_expr expr = {module, id};
    return expr;
}

static ptowsp_expr pwsp_expr_none(ptowsp_module *module) {
    return pwsp_expr_make(module, 0);
}

static ptowsp_expr pwsp_expr_added(ptowsp_module *module, uint32_t id) {
    if (id == 0) {
        pwsp_module_no_memory(module);
    }
    return pwsp_expr_make(module, id);
}

// -- leaves ---------------------------------------------------------------------------------------

static ptowsp_expr pwsp_expr_leaf(ptowsp_module *module, pwsp_expr_op op, ptowsp_type type,
                                  uint32_t a, const char *name) {
    PWSP_ZERO(pwsp_expr_node, node);
    node.op = (uint8_t)op;
    node.type = (uint8_t)type;
    node.is_faulty = op == PWSP_EXPR_TASK_TAG;  // it stands for an expression, which may read one
    node.size = 1;
    node.a = a;
    node.name = name;
    return pwsp_expr_added(module, pwsp_exprs_add(&module->exprs, &module->memory, &node));
}

static ptowsp_expr pwsp_expr_literal(ptowsp_module *module, ptowsp_type type, uint64_t value) {
    if (!pwsp_module_is_good(module)) {
        return pwsp_expr_none(module);
    }
    return pwsp_expr_added(module, pwsp_exprs_const(&module->exprs, &module->memory, type, value));
}

ptowsp_expr ptowsp_i64(ptowsp_module *module, int64_t value) {
    return pwsp_expr_literal(module, PTOWSP_TYPE_I64, (uint64_t)value);
}

ptowsp_expr ptowsp_u64(ptowsp_module *module, uint64_t value) {
    return pwsp_expr_literal(module, PTOWSP_TYPE_U64, value);
}

ptowsp_expr ptowsp_bool(ptowsp_module *module, bool value) {
    return pwsp_expr_literal(module, PTOWSP_TYPE_BOOL, value);
}

ptowsp_expr ptowsp_symbol(ptowsp_module *module, const char *name) {
    if (!pwsp_module_is_good(module)) {
        return pwsp_expr_none(module);
    }
    const pwsp_name *found = pwsp_name_is_valid(name) ? pwsp_module_find(module, name) : NULL;
    if (found && found->kind == PWSP_BIND_SYMBOL) {
        return pwsp_expr_leaf(module, PWSP_EXPR_SYMBOL, PTOWSP_TYPE_U64, found->index, found->text);
    }
    uint32_t id = PWSP_MODULE_ADD(module, module->symbols);
    const char *copy =
        id ? pwsp_module_bindable(module, "symbol", name, PWSP_BIND_SYMBOL, id) : NULL;
    if (!copy) {
        return pwsp_expr_none(module);
    }
    PWSP_SYMBOL(module, id)->name = copy;
    return pwsp_expr_leaf(module, PWSP_EXPR_SYMBOL, PTOWSP_TYPE_U64, id, copy);
}

static ptowsp_type pwsp_array_type(ptowsp_dtype dtype) {
    switch (dtype) {
    case PTOWSP_I8:
    case PTOWSP_I16:
    case PTOWSP_I32:
    case PTOWSP_I64: return PTOWSP_TYPE_I64;
    case PTOWSP_U8:
    case PTOWSP_U16:
    case PTOWSP_U32:
    case PTOWSP_U64: return PTOWSP_TYPE_U64;
    case PTOWSP_BOOL: return PTOWSP_TYPE_BOOL;
    default: return PTOWSP_TYPE_NONE;
    }
}

PWSP_INTERNAL uint32_t pwsp_module_array(ptowsp_module *module, const char *name,
                                         ptowsp_dtype dtype) {
    const pwsp_name *found = pwsp_name_is_valid(name) ? pwsp_module_find(module, name) : NULL;
    if (!pwsp_module_is_good(module)) {
        return 0;
    }
    if (!found || found->kind != PWSP_BIND_ARRAY) {
        uint32_t id = PWSP_MODULE_ADD(module, module->arrays);
        const char *copy =
            id ? pwsp_module_bindable(module, "array", name, PWSP_BIND_ARRAY, id) : NULL;
        if (!copy) {
            return 0;
        }
        PWSP_ARRAY(module, id)->name = copy;
        PWSP_ARRAY(module, id)->dtype = dtype;
        return id;
    }
    pwsp_array_info *array = PWSP_ARRAY(module, found->index);
    if (array->dtype == PTOWSP_DTYPE_NONE) {
        if (dtype != PTOWSP_I32 && dtype != PTOWSP_I64 && dtype != PTOWSP_U32 &&
            dtype != PTOWSP_U64) {
            return PWSP_MODULE_REFUSE(module, "array %s: lengths are i32, i64, u32 or u64, not %s",
                                      name, ptowsp_dtype_name(dtype));
        }
        array->dtype = dtype;
    }
    if (array->dtype != dtype) {
        return PWSP_MODULE_REFUSE(module, "array %s: read as %s here and as %s before", name,
                                  ptowsp_dtype_name(dtype), ptowsp_dtype_name(array->dtype));
    }
    return found->index;
}

// The operand as a node of the module, or 0 with an error. `what` names the operator.
static uint32_t pwsp_expr_operand(ptowsp_module *module, ptowsp_expr expr, const char *what) {
    if (expr.module != module || expr.id == 0 || expr.id >= module->exprs.count) {
        return PWSP_MODULE_REFUSE(module, "%s: an operand is no expression%s", what,
                                  expr.module && expr.module != module ? " of this module" : "");
    }
    return expr.id;
}

// Checks the limits of a new node: false with an error if it would be too deep or too large.
static bool pwsp_expr_fits(ptowsp_module *module, const char *what, const uint32_t *operands) {
    uint32_t depth = 1;
    uint64_t size = 1;
    for (uint32_t i = 0; i < 3 && operands[i]; i++) {
        const pwsp_expr_node *node = &module->exprs.nodes[operands[i]];
        depth = node->depth >= depth ? node->depth + 1u : depth;
        size += node->size;
    }
    if (depth > PTOWSP_EXPR_DEPTH_MAX || size > PTOWSP_EXPR_SIZE_MAX) {
        return pwsp_module_fail(
            module, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
            "%s: the expression has more than %d operations in one another, or more "
            "than %d in all",
            what, PTOWSP_EXPR_DEPTH_MAX, PTOWSP_EXPR_SIZE_MAX);
    }
    return true;
}

// Adds the leaf that reads an array at an index (i64); none with an error.
static ptowsp_expr pwsp_expr_read(ptowsp_module *module, uint32_t array, ptowsp_type type,
                                  uint32_t index) {
    PWSP_ZERO(pwsp_expr_node, node);
    node.op = PWSP_EXPR_ARRAY;
    node.type = (uint8_t)type;
    node.is_faulty = 1;
    node.depth = (uint8_t)(module->exprs.nodes[index].depth + 1);
    node.size = module->exprs.nodes[index].size + 1;
    node.a = index;
    node.b = array;
    node.name = PWSP_ARRAY(module, array)->name;
    node.value = PWSP_ARRAY(module, array)->plan_axis != 0;
    return pwsp_expr_added(module, pwsp_exprs_add(&module->exprs, &module->memory, &node));
}

ptowsp_expr ptowsp_array_at(ptowsp_module *module, const char *name, ptowsp_dtype dtype,
                            ptowsp_expr index) {
    if (!pwsp_module_is_good(module)) {
        return pwsp_expr_none(module);
    }
    ptowsp_type type = pwsp_array_type(dtype);
    uint32_t operands[3] = {pwsp_expr_operand(module, index, "array_at"), 0, 0};
    if (operands[0] == 0) {
        return pwsp_expr_none(module);
    }
    if (type == PTOWSP_TYPE_NONE || ptowsp_expr_type(index) != PTOWSP_TYPE_I64) {
        PWSP_MODULE_REFUSE(module,
                           "array %s: elements of type %s, index of type %s; elements are integers "
                           "or bool, an index is i64",
                           pwsp_name_is_valid(name) ? name : "", ptowsp_dtype_name(dtype),
                           pwsp_type_name(ptowsp_expr_type(index)));
        return pwsp_expr_none(module);
    }
    uint32_t array = pwsp_module_array(module, name, dtype);
    if (array == 0 || !pwsp_expr_fits(module, "array_at", operands)) {
        return pwsp_expr_none(module);
    }
    return pwsp_expr_read(module, array, type, index.id);
}

ptowsp_expr ptowsp_axis_size(ptowsp_module *module, ptowsp_axis axis) {
    if (!pwsp_module_is_good(module)) {
        return pwsp_expr_none(module);
    }
    if (axis.id == 0 || axis.id >= module->axes.count) {
        PWSP_MODULE_REFUSE(module, "axis_size: there is no axis %u", axis.id);
        return pwsp_expr_none(module);
    }
    const pwsp_axis_info *info = PWSP_AXIS(module, axis.id);
    if (info->kind == PWSP_AXIS_RAGGED || info->kind == PWSP_AXIS_SPARSE || info->row) {
        PWSP_MODULE_REFUSE(module, "axis_size: axis %s is not dense, dynamic or of a plan",
                           info->name);
        return pwsp_expr_none(module);
    }
    return info->kind == PWSP_AXIS_DENSE
               ? ptowsp_i64(module, info->size)
               : pwsp_expr_leaf(module, PWSP_EXPR_SIZE, PTOWSP_TYPE_I64, axis.id, info->name);
}

// The axis of a loop's variable; 0 for anything else.
static uint32_t pwsp_variable_axis(ptowsp_expr variable) {
    const ptowsp_module *module = variable.module;
    if (variable.id == 0 || variable.id >= module->exprs.count) {
        return 0;
    }
    const pwsp_expr_node *node = &module->exprs.nodes[variable.id];
    uint32_t loop = node->op == PWSP_EXPR_VARIABLE ? PWSP_VARIABLE(module, node->a)->node : 0;
    return loop ? PWSP_NODE(module, loop)->axis : 0;
}

ptowsp_expr ptowsp_loop_field(ptowsp_expr variable, ptowsp_plan_field field) {
    ptowsp_module *module = variable.module;
    if (!pwsp_module_is_good(module)) {
        return pwsp_expr_none(module);
    }
    uint32_t axis = pwsp_variable_axis(variable);
    uint8_t flags = 0;
    if (!axis) {
        PWSP_MODULE_REFUSE(module, "loop_field: it is not the variable of a loop");
        return pwsp_expr_none(module);
    }
    uint32_t array = pwsp_plan_field_array(module, axis, field, &flags);
    if (!array) {
        return pwsp_expr_none(module);
    }
    ptowsp_expr value = pwsp_expr_read(module, array, PTOWSP_TYPE_I64, variable.id);
    if (flags) {
        ptowsp_expr bits = ptowsp_i64(module, flags);
        value = ptowsp_eq(ptowsp_bitand(value, bits), bits);
    }
    return value;
}

ptowsp_expr ptowsp_loop_entry(ptowsp_expr variable) {
    ptowsp_module *module = variable.module;
    if (!pwsp_module_is_good(module)) {
        return pwsp_expr_none(module);
    }
    uint32_t axis = pwsp_variable_axis(variable);
    if (!axis || PWSP_AXIS(module, axis)->kind != PWSP_AXIS_SPARSE) {
        PWSP_MODULE_REFUSE(module,
                           "loop_entry: it is not the variable of a loop over a sparse axis");
        return pwsp_expr_none(module);
    }
    const pwsp_expr_node *node = &module->exprs.nodes[variable.id];
    return pwsp_expr_leaf(module, PWSP_EXPR_ENTRY, PTOWSP_TYPE_I64, node->a, node->name);
}

ptowsp_expr ptowsp_slot(ptowsp_module *module, uint32_t slot, ptowsp_type type) {
    pwsp_expr_op op = type == PTOWSP_TYPE_U64    ? PWSP_EXPR_SLOT_U64
                      : type == PTOWSP_TYPE_I64  ? PWSP_EXPR_SLOT_I64
                      : type == PTOWSP_TYPE_BOOL ? PWSP_EXPR_SLOT_BOOL
                                                 : PWSP_EXPR_NONE;
    if (!pwsp_module_is_good(module)) {
        return pwsp_expr_none(module);
    }
    if (slot >= module->slot_count) {
        pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, slot, "slot %u: there are %u slots", slot,
                         module->slot_count);
        return pwsp_expr_none(module);
    }
    if (op == PWSP_EXPR_NONE) {
        PWSP_MODULE_REFUSE(module, "slot %u: %d is no type", slot, (int)type);
        return pwsp_expr_none(module);
    }
    return pwsp_expr_leaf(module, op, type, slot, NULL);
}

ptowsp_expr ptowsp_task_variable(ptowsp_module *module, const char *name) {
    const char *copy = pwsp_module_name(module, "variable", name);
    return copy ? pwsp_expr_leaf(module, PWSP_EXPR_TASK_VARIABLE, PTOWSP_TYPE_I64, 0, copy)
                : pwsp_expr_none(module);
}

ptowsp_expr ptowsp_task_arg(ptowsp_module *module, uint32_t i) {
    return pwsp_module_is_good(module)
               ? pwsp_expr_leaf(module, PWSP_EXPR_TASK_ARG, PTOWSP_TYPE_I64, i, NULL)
               : pwsp_expr_none(module);
}

ptowsp_expr ptowsp_task_tag(ptowsp_module *module, const char *name) {
    const char *copy = pwsp_module_name(module, "tag", name);
    return copy ? pwsp_expr_leaf(module, PWSP_EXPR_TASK_TAG, PTOWSP_TYPE_U64, 0, copy)
                : pwsp_expr_none(module);
}

// -- operators ------------------------------------------------------------------------------------

// One operator over one to three operands; the module of the first operand that has one.
static ptowsp_expr pwsp_expr_apply(pwsp_expr_op op, const char *what, uint32_t count, ptowsp_expr a,
                                   ptowsp_expr b, ptowsp_expr c) {
    ptowsp_expr given[3] = {a, b, c};
    ptowsp_module *module = a.module ? a.module : b.module ? b.module : c.module;
    if (!pwsp_module_is_good(module)) {
        return pwsp_expr_none(module);
    }
    uint32_t operands[3] = {0, 0, 0};
    ptowsp_type types[3] = {PTOWSP_TYPE_NONE, PTOWSP_TYPE_NONE, PTOWSP_TYPE_NONE};
    for (uint32_t i = 0; i < count; i++) {
        operands[i] = pwsp_expr_operand(module, given[i], what);
        if (operands[i] == 0) {
            return pwsp_expr_none(module);
        }
        types[i] = (ptowsp_type)module->exprs.nodes[operands[i]].type;
    }
    if (pwsp_expr_result(op, types[0], types[1], types[2]) == PTOWSP_TYPE_NONE) {
        PWSP_MODULE_REFUSE(module, "%s: it does not take (%s%s%s%s%s)%s", what,
                           pwsp_type_name(types[0]), count > 1 ? ", " : "",
                           count > 1 ? pwsp_type_name(types[1]) : "", count > 2 ? ", " : "",
                           count > 2 ? pwsp_type_name(types[2]) : "",
                           count == 2 && types[0] != types[1] ? "; cast one of them" : "");
        return pwsp_expr_none(module);
    }
    if (!pwsp_expr_fits(module, what, operands)) {
        return pwsp_expr_none(module);
    }
    return pwsp_expr_added(module, pwsp_exprs_operator(&module->exprs, &module->memory, op,
                                                       operands[0], operands[1], operands[2]));
}

#define PWSP_EXPR_BINARY(name, op)                                                                 \
    ptowsp_expr ptowsp_##name(ptowsp_expr a, ptowsp_expr b) {                                      \
        return pwsp_expr_apply(PWSP_EXPR_##op, #name, 2, a, b, pwsp_expr_none(NULL));              \
    }
#define PWSP_EXPR_UNARY(name, op)                                                                  \
    ptowsp_expr ptowsp_##name(ptowsp_expr a) {                                                     \
        return pwsp_expr_apply(PWSP_EXPR_##op, #name, 1, a, pwsp_expr_none(NULL),                  \
                               pwsp_expr_none(NULL));                                              \
    }

// clang-format off
#define PWSP_EXPR_CALLS(UNARY, BINARY)                                                             \
    BINARY(add, ADD) BINARY(sub, SUB) BINARY(mul, MUL) BINARY(div, DIV) BINARY(rem, REM)           \
    BINARY(min, MIN) BINARY(max, MAX)                                                              \
    BINARY(bitand, BITAND) BINARY(bitor, BITOR) BINARY(bitxor, BITXOR)                             \
    BINARY(shl, SHL) BINARY(shr, SHR) UNARY(neg, NEG) UNARY(bitnot, BITNOT)                        \
    BINARY(eq, EQ) BINARY(ne, NE) BINARY(lt, LT) BINARY(le, LE) BINARY(gt, GT) BINARY(ge, GE)      \
    BINARY(and, AND) BINARY(or, OR) UNARY(not, NOT)
// clang-format on

PWSP_EXPR_CALLS(PWSP_EXPR_UNARY, PWSP_EXPR_BINARY)

ptowsp_expr ptowsp_cast(ptowsp_expr a, ptowsp_type type) {
    ptowsp_expr none = pwsp_expr_none(NULL);
    switch (type) {
    case PTOWSP_TYPE_BOOL: return pwsp_expr_apply(PWSP_EXPR_TO_BOOL, "to_bool", 1, a, none, none);
    case PTOWSP_TYPE_I64: return pwsp_expr_apply(PWSP_EXPR_TO_I64, "to_i64", 1, a, none, none);
    case PTOWSP_TYPE_U64: return pwsp_expr_apply(PWSP_EXPR_TO_U64, "to_u64", 1, a, none, none);
    case PTOWSP_TYPE_NONE:
    case PTOWSP_TYPE_FORCE_INT: break;
    }
    if (pwsp_module_is_good(a.module)) {
        PWSP_MODULE_REFUSE(a.module, "cast: %d is no type", (int)type);
    }
    return pwsp_expr_none(a.module);
}

ptowsp_expr ptowsp_select(ptowsp_expr condition, ptowsp_expr a, ptowsp_expr b) {
    return pwsp_expr_apply(PWSP_EXPR_SELECT, "select", 3, condition, a, b);
}

// clang-format off
#define PWSP_EXPR_CASE_UNARY(name, op)  case PWSP_EXPR_##op: return ptowsp_##name(a);
#define PWSP_EXPR_CASE_BINARY(name, op) case PWSP_EXPR_##op: return ptowsp_##name(a, b);
// clang-format on

PWSP_INTERNAL ptowsp_expr pwsp_expr_call(pwsp_expr_op op, ptowsp_expr a, ptowsp_expr b) {
    switch (op) {
        PWSP_EXPR_CALLS(PWSP_EXPR_CASE_UNARY, PWSP_EXPR_CASE_BINARY)
    case PWSP_EXPR_TO_I64: return ptowsp_cast(a, PTOWSP_TYPE_I64);
    case PWSP_EXPR_TO_U64: return ptowsp_cast(a, PTOWSP_TYPE_U64);
    default: PTOWSP_ASSERT(op == PWSP_EXPR_TO_BOOL); return ptowsp_cast(a, PTOWSP_TYPE_BOOL);
    }
}

// -- asking ---------------------------------------------------------------------------------------

ptowsp_type ptowsp_expr_type(ptowsp_expr expr) {
    if (!expr.module || expr.id == 0 || expr.id >= expr.module->exprs.count) {
        return PTOWSP_TYPE_NONE;
    }
    return (ptowsp_type)expr.module->exprs.nodes[expr.id].type;
}

void ptowsp_expr_print(ptowsp_expr expr, ptowsp_output output) {
    if (ptowsp_expr_type(expr) == PTOWSP_TYPE_NONE) {
        pwsp_text_format(output, "none");
    } else {
        pwsp_exprs_print(&expr.module->exprs, expr.id, output);
    }
}

// -- conditions of variants -----------------------------------------------------------------------

PWSP_INTERNAL uint32_t pwsp_expr_with_args(ptowsp_module *module, uint32_t id,
                                           const ptowsp_expr *args, uint32_t count) {
    const pwsp_expr_node node = module->exprs.nodes[id];  // a copy, as the table may move
    const pwsp_expr_op op = (pwsp_expr_op)node.op;
    const uint32_t from[3] = {node.a, node.b, node.c};
    uint32_t with[3] = {0, 0, 0};
    if (op == PWSP_EXPR_TASK_ARG) {
        return node.a < count ? args[node.a].id : ptowsp_i64(module, 0).id;
    }
    if (op < PWSP_EXPR_ADD && op != PWSP_EXPR_ARRAY) {
        return id;
    }
    uint32_t operand_count = op == PWSP_EXPR_ARRAY ? 1 : 3;
    for (uint32_t i = 0; i < operand_count && from[i]; i++) {
        with[i] = pwsp_expr_with_args(module, from[i], args, count);
        if (with[i] == 0) {
            return 0;
        }
    }
    if (op == PWSP_EXPR_ARRAY) {
        return with[0] == from[0]
                   ? id
                   : pwsp_expr_read(module, node.b, (ptowsp_type)node.type, with[0]).id;
    }
    if (with[0] == from[0] && with[1] == from[1] && with[2] == from[2]) {
        return id;
    }
    if (!pwsp_expr_fits(module, "a condition of a variant", with)) {
        return 0;
    }
    return pwsp_expr_added(module, pwsp_exprs_operator(&module->exprs, &module->memory, op, with[0],
                                                       with[1], with[2]))
        .id;
}

// -- using ----------------------------------------------------------------------------------------

// Checks the leaves of an expression for use at the open place; recursion is as deep as operators.
static bool pwsp_module_use_leaves(ptowsp_module *module, uint32_t id, const char *what) {
    const pwsp_expr_node *node = &module->exprs.nodes[id];
    switch ((pwsp_expr_op)node->op) {
    case PWSP_EXPR_CONST:
    case PWSP_EXPR_SIZE:
    case PWSP_EXPR_SYMBOL:
    case PWSP_EXPR_SLOT_U64:
    case PWSP_EXPR_SLOT_I64:
    case PWSP_EXPR_SLOT_BOOL: return true;
    case PWSP_EXPR_VARIABLE:
    case PWSP_EXPR_ENTRY:
        if (!PWSP_VARIABLE(module, node->a)->is_open) {
            return PWSP_MODULE_REFUSE(
                module, "%s: variable %s belongs to a scope that is not around", what, node->name);
        }
        return true;
    case PWSP_EXPR_TASK_VARIABLE:
    case PWSP_EXPR_TASK_ARG:
    case PWSP_EXPR_TASK_TAG:
        return PWSP_MODULE_REFUSE(
            module, "%s: what belongs to a task has a value in the keys of schedules only", what);
    case PWSP_EXPR_ARRAY: return pwsp_module_use_leaves(module, node->a, what);
    default: break;
    }
    return pwsp_module_use_leaves(module, node->a, what) &&
           (!node->b || pwsp_module_use_leaves(module, node->b, what)) &&
           (!node->c || pwsp_module_use_leaves(module, node->c, what));
}

PWSP_INTERNAL uint32_t pwsp_module_use(ptowsp_module *module, ptowsp_expr expr, ptowsp_type type,
                                       const char *what) {
    if (!pwsp_module_is_good(module)) {
        return 0;
    }
    if (expr.module != module || expr.id == 0 || expr.id >= module->exprs.count) {
        return PWSP_MODULE_REFUSE(module, "%s is no expression%s", what,
                                  expr.module && expr.module != module ? " of this module" : "");
    }
    ptowsp_type actual = (ptowsp_type)module->exprs.nodes[expr.id].type;
    if (type != PTOWSP_TYPE_NONE && actual != type) {
        return PWSP_MODULE_REFUSE(module, "%s is %s, not %s", what, pwsp_type_name(actual),
                                  pwsp_type_name(type));
    }
    return pwsp_module_use_leaves(module, expr.id, what) ? expr.id : 0;
}

PWSP_INTERNAL bool pwsp_module_use_given(ptowsp_module *module, ptowsp_expr expr, ptowsp_type type,
                                         const char *what, uint32_t *out_id) {
    const bool is_given = expr.id || expr.module;
    *out_id = is_given ? pwsp_module_use(module, expr, type, what) : 0;
    return !is_given || *out_id;
}
