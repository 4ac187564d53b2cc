// Read access to the expressions of a program.
//
// A program runs compiled code, but an emitter needs the trees. So each expression that is compiled
// is copied from the module, once, operands first, and the code remembers its tree. Keys of the
// schedule belong to a task: their references to "the task" are replaced there (by the loop's
// variable, the tag's value), and everything that depends on them is copied again for each task.

#include "read.h"

static ptowsp_expr_kind pwsp_read_kind(pwsp_expr_op op) {
    switch (op) {
    case PWSP_EXPR_CONST: return PTOWSP_EXPR_CONST;
    case PWSP_EXPR_VARIABLE:
    case PWSP_EXPR_TASK_VARIABLE: return PTOWSP_EXPR_VARIABLE;
    case PWSP_EXPR_ENTRY: return PTOWSP_EXPR_ENTRY;
    case PWSP_EXPR_SIZE: return PTOWSP_EXPR_SIZE;
    case PWSP_EXPR_SYMBOL: return PTOWSP_EXPR_SYMBOL;
    case PWSP_EXPR_ARRAY: return PTOWSP_EXPR_ARRAY;
    case PWSP_EXPR_SLOT_U64:
    case PWSP_EXPR_SLOT_I64:
    case PWSP_EXPR_SLOT_BOOL: return PTOWSP_EXPR_SLOT;
#define PWSP_READ_KIND(name, text, precedence, operands, op_i64, op_u64)                           \
    case PWSP_EXPR_##name: return PTOWSP_EXPR_##name;
        PWSP_OPERATORS(PWSP_READ_KIND)
#undef PWSP_READ_KIND
    default: PTOWSP_ASSERT(op == PWSP_EXPR_TASK_ARG); return PTOWSP_EXPR_TASK_ARG;
    }
}

static bool pwsp_expr_is_leaf(pwsp_expr_op op) {
    return op < PWSP_EXPR_ADD && op != PWSP_EXPR_ARRAY;
}

// Adds a node to the program's; its index, or 0 with an error.
static uint32_t pwsp_read_add_expr(pwsp_compiler *c, const ptowsp_expr_info *info) {
    uint32_t index;
    return PWSP_ADD_ITEM(c, exprs, &index, *info) ? index : 0;
}

static uint32_t pwsp_read_copy(pwsp_compiler *c, uint32_t id, bool *out_is_of_task);

// The value of the task's tag of this name.
static uint32_t pwsp_read_tag(pwsp_compiler *c, const char *name) {
    const pwsp_task_info *task = PWSP_NODE(c->module, c->key_task)->task;
    for (uint32_t i = 0; i < task->tag_count; i++) {
        if (strcmp(task->tags[i].name, name) == 0) {
            bool is_of_task;  // a tag is not a kind of key
            return pwsp_read_copy(c, task->tags[i].value, &is_of_task);
        }
    }
    PWSP_ZERO(ptowsp_expr_info, none);
    none.kind = PTOWSP_EXPR_CONST;
    none.type = PTOWSP_TYPE_U64;
    return pwsp_read_add_expr(c, &none);
}

// The copy of an expression, or 0 with an error, and whether it is another one for each task. A key's
// tree, whose size is bounded, is walked; parts copied before are not walked again.
static uint32_t pwsp_read_copy(pwsp_compiler *c, uint32_t id, bool *out_is_of_task) {
    uint32_t known = c->expr_ids.items[id];
    *out_is_of_task = false;
    if (known) {
        return known;
    }
    const pwsp_expr_node *node = &c->module->exprs.nodes[id];
    pwsp_expr_op op = (pwsp_expr_op)node->op;
    if (op == PWSP_EXPR_TASK_TAG) {
        *out_is_of_task = true;
        return pwsp_read_tag(c, node->name);
    }
    PWSP_ZERO(ptowsp_expr_info, info);
    info.kind = pwsp_read_kind(op);
    info.type = (ptowsp_type)node->type;
    info.value = op == PWSP_EXPR_CONST ? node->value : 0;
    if (pwsp_expr_is_leaf(op)) {
        info.id = node->a;
        if (op == PWSP_EXPR_TASK_VARIABLE) {
            info.id = pwsp_compiler_task_variable(c->module, c->key_task, node->name);
            *out_is_of_task = true;
        }
    } else {
        bool is_array = op == PWSP_EXPR_ARRAY, is_of_task;
        uint32_t operands[3] = {node->a, is_array ? 0 : node->b, node->c};
        for (uint32_t i = 0; i < 3 && operands[i]; i++) {
            operands[i] = pwsp_read_copy(c, operands[i], &is_of_task);
            if (operands[i] == 0) {
                return 0;
            }
            *out_is_of_task = *out_is_of_task || is_of_task;
        }
        info.id = is_array ? node->b : 0;
        info.a = operands[0];
        info.b = operands[1];
        info.c = operands[2];
    }
    uint32_t copy = pwsp_read_add_expr(c, &info);
    if (!*out_is_of_task) {
        c->expr_ids.items[id] = copy;
    }
    return copy;
}

PWSP_INTERNAL bool pwsp_read_begin(pwsp_compiler *c) {
    ptowsp_program *p = c->program;
    PWSP_ZERO(ptowsp_expr_info, none);
    pwsp_read_add_expr(c, &none);  // index 0 is reserved
    if (!pwsp_module_is_good(c->module) ||
        !PWSP_GROW(&p->memory, c->expr_ids.items, c->expr_ids.capacity,
                   c->module->exprs.count + 1)) {
        return pwsp_module_no_memory(c->module);
    }
    return true;
}

PWSP_INTERNAL bool pwsp_read_expr(pwsp_compiler *c, uint32_t expr, uint32_t *out_expr) {
    bool is_of_task;
    *out_expr = pwsp_read_copy(c, expr, &is_of_task);
    return *out_expr != 0;
}
