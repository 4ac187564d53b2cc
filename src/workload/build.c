// Growing the tree of a module: nodes at the open scope, their variables, and explicit edges.

#include "build.h"

// -- nodes and scopes -----------------------------------------------------------------------------

PWSP_INTERNAL uint32_t pwsp_node_add(ptowsp_module *module, pwsp_node_kind kind) {
    if (!pwsp_module_is_good(module)) {
        return 0;
    }
    if (kind != PWSP_NODE_WORKLOAD && module->open == 0) {
        return PWSP_MODULE_REFUSE(module, "a statement outside any workload");
    }
    if (kind != PWSP_NODE_PROCESS && module->open &&
        PWSP_NODE(module, module->open)->kind == PWSP_NODE_PIPELINE) {
        return PWSP_MODULE_REFUSE(module, "a statement between processes; a pipeline has channels "
                                          "and processes in it, and nothing else");
    }
    if (module->nodes.count > PTOWSP_MODULE_NODE_MAX) {
        return pwsp_module_fail(module, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                                "more than %d nodes", PTOWSP_MODULE_NODE_MAX);
    }
    uint32_t id = PWSP_MODULE_ADD(module, module->nodes);
    if (id == 0) {
        return 0;
    }
    pwsp_node *node = PWSP_NODE(module, id);
    node->kind = kind;
    node->parent = module->open;
    if (module->open) {
        pwsp_node *parent = PWSP_NODE(module, module->open);
        if (parent->last) {
            PWSP_NODE(module, parent->last)->next = id;
        } else {
            parent->first = id;
        }
        parent->last = id;
    }
    return id;
}

PWSP_INTERNAL void pwsp_scope_open(ptowsp_module *module, uint32_t node) {
    if (node == 0) {
        return;
    }
    if (module->nest == PTOWSP_MODULE_NEST_MAX) {
        pwsp_module_fail(module, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "more than %d scopes in one another", PTOWSP_MODULE_NEST_MAX);
        return;
    }
    module->open = node;
    module->nest++;
}

PWSP_INTERNAL uint32_t pwsp_variable_add(ptowsp_module *module, const char *name, ptowsp_type type,
                                         uint32_t node) {
    uint32_t id = PWSP_MODULE_ADD(module, module->variables);
    if (id) {
        pwsp_variable_info info = {name, type, node, true};
        *PWSP_VARIABLE(module, id) = info;
    }
    return id;
}

PWSP_INTERNAL ptowsp_expr pwsp_variable_expr(ptowsp_module *module, uint32_t variable) {
    ptowsp_expr expr = {module, 0};
    if (variable) {
        const pwsp_variable_info *info = PWSP_VARIABLE(module, variable);
        PWSP_ZERO(pwsp_expr_node, node);
        node.op = PWSP_EXPR_VARIABLE;
        node.type = (uint8_t)info->type;
        node.size = 1;
        node.a = variable;
        node.name = info->name;
        expr.id = pwsp_exprs_add(&module->exprs, &module->memory, &node);
        if (expr.id == 0) {
            pwsp_module_no_memory(module);
        }
    }
    return expr;
}

PWSP_INTERNAL ptowsp_expr pwsp_scope_open_variable(ptowsp_module *module, uint32_t node,
                                                   const char *variable) {
    ptowsp_expr none = {module, 0};
    uint32_t id = node ? pwsp_variable_add(module, variable, PTOWSP_TYPE_I64, node) : 0;
    if (id == 0) {
        return none;
    }
    PWSP_NODE(module, node)->variable = id;
    pwsp_scope_open(module, node);
    return pwsp_module_is_good(module) ? pwsp_variable_expr(module, id) : none;
}

PWSP_INTERNAL uint32_t pwsp_variable_find(const ptowsp_module *module, uint32_t node,
                                          const char *name) {
    for (; node; node = PWSP_NODE(module, node)->parent) {
        const pwsp_node *at = PWSP_NODE(module, node);
        if (at->variable && strcmp(PWSP_VARIABLE(module, at->variable)->name, name) == 0) {
            return at->variable;
        }
        for (uint32_t i = 0; i < at->param_count; i++) {
            if (strcmp(PWSP_VARIABLE(module, at->first_param + i)->name, name) == 0) {
                return at->first_param + i;
            }
        }
    }
    return 0;
}

// -- around nodes ---------------------------------------------------------------------------------

PWSP_INTERNAL uint32_t pwsp_node_process(const ptowsp_module *module, uint32_t node) {
    while (node && PWSP_NODE(module, node)->kind != PWSP_NODE_PROCESS) {
        node = PWSP_NODE(module, node)->parent;
    }
    return node;
}

PWSP_INTERNAL uint32_t pwsp_node_workload(const ptowsp_module *module, uint32_t node) {
    while (PWSP_NODE(module, node)->parent) {
        node = PWSP_NODE(module, node)->parent;
    }
    return node;
}

PWSP_INTERNAL bool pwsp_node_is_inside(const ptowsp_module *module, uint32_t node, uint32_t outer) {
    while (node && node != outer) {
        node = PWSP_NODE(module, node)->parent;
    }
    return node == outer;
}

// Can an addition to the open scope be after a node? Otherwise fails.
static bool pwsp_node_after(ptowsp_module *module, uint32_t id) {
    const pwsp_node *node = id && id < module->nodes.count ? PWSP_NODE(module, id) : NULL;
    if (!node || (node->kind != PWSP_NODE_TASK && node->kind != PWSP_NODE_PIPELINE) ||
        pwsp_node_workload(module, id) != pwsp_node_workload(module, module->open)) {
        return pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, id,
                                "after node %u, which is no task or pipeline of this workload", id);
    }
    uint32_t theirs = pwsp_node_process(module, id);
    uint32_t ours = pwsp_node_process(module, module->open);
    if (theirs != ours) {
        uint32_t process = theirs ? theirs : ours;
        pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, id,
                         theirs ? "after node %u, which is in process %s; outside of it one can "
                                  "only be after the pipeline"
                                : "after node %u, which is not in process %s; what a process does "
                                  "is after its own tasks only",
                         id, PWSP_NODE(module, process)->name);
        return false;
    }
    return true;
}

PWSP_INTERNAL const uint32_t *pwsp_nodes_after(ptowsp_module *module, const ptowsp_node *after,
                                               uint32_t *count) {
    uint32_t ids[PTOWSP_TASK_AFTER_MAX * PTOWSP_VARIANT_MAX], given = *count;
    PTOWSP_ASSERT(given <= PTOWSP_TASK_AFTER_MAX);
    *count = 0;
    for (uint32_t i = 0; i < given; i++) {
        if (!pwsp_node_after(module, after[i].id)) {
            return NULL;
        }
        for (uint32_t id = after[i].id; id; id = PWSP_NODE(module, id)->variant) {
            PTOWSP_ASSERT(*count < PTOWSP_TASK_AFTER_MAX * PTOWSP_VARIANT_MAX);
            ids[(*count)++] = id;
        }
    }
    return PWSP_MODULE_COPY(module, uint32_t, ids, *count);
}
