// Growing the tree of a module: the shared part of the public building functions.

#ifndef PWSP_BUILD_H
#define PWSP_BUILD_H

#include "module.h"

// Adds a node under the open scope; 0 with an error.
PWSP_INTERNAL uint32_t pwsp_node_add(ptowsp_module *module, pwsp_node_kind kind);

// Opens the scope of a node that was just added (0 after an error).
PWSP_INTERNAL void pwsp_scope_open(ptowsp_module *module, uint32_t node);

// Adds a variable that a node has, and makes the expression that reads it; 0 with an error.
PWSP_INTERNAL uint32_t pwsp_variable_add(ptowsp_module *module, const char *name, ptowsp_type type,
                                         uint32_t node);
PWSP_INTERNAL ptowsp_expr pwsp_variable_expr(ptowsp_module *module, uint32_t variable);

// Opens the scope of a node that was just added (0 after an error) with its variable, an i64.
PWSP_INTERNAL ptowsp_expr pwsp_scope_open_variable(ptowsp_module *module, uint32_t node,
                                                   const char *variable);

// The variable of a name that a node, or one around it, has: a loop's or a parameter; 0 for none.
PWSP_INTERNAL uint32_t pwsp_variable_find(const ptowsp_module *module, uint32_t node,
                                          const char *name);

// Is a variable of this name open? Two would read alike in texts and in emitted code.
PWSP_INLINE bool pwsp_variable_is_taken(const ptowsp_module *module, const char *name) {
    return pwsp_variable_find(module, module->open, name) != 0;
}

// The process that contains or is a node; 0 for none.
PWSP_INTERNAL uint32_t pwsp_node_process(const ptowsp_module *module, uint32_t node);

// The workload that a node is in. Is a node inside another, or the same?
PWSP_INTERNAL uint32_t pwsp_node_workload(const ptowsp_module *module, uint32_t node);
PWSP_INTERNAL bool pwsp_node_is_inside(const ptowsp_module *module, uint32_t node, uint32_t outer);

// Checks and copies the `after` list of the node that is about to be added, at most
// PTOWSP_TASK_AFTER_MAX nodes; NULL with an error. *count is how many: a task of a choice counts as
// all its variants.
PWSP_INTERNAL const uint32_t *pwsp_nodes_after(ptowsp_module *module, const ptowsp_node *after,
                                               uint32_t *count);

// A task that is put into the last workload, before a node of it.
typedef struct pwsp_insert {
    uint32_t before;
    const pwsp_task_info *task;
} pwsp_insert;

// Puts tasks into the last workload, which is closed, and renumbers its nodes. Tasks inserted
// before the same node keep their order.
PWSP_INTERNAL void pwsp_nodes_insert(ptowsp_module *module, uint32_t workload,
                                     const pwsp_insert *inserts, uint32_t count);

#endif
