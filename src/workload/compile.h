// Compiling a module's workloads into a program's operations.

#ifndef PWSP_COMPILE_H
#define PWSP_COMPILE_H

#include "check.h"
#include "program.h"

// The nodes of an explicit edge, and for each the next edge in the list of those with that node.
typedef enum pwsp_edge_end { PWSP_EDGE_SOURCE, PWSP_EDGE_TARGET, PWSP_EDGE_SCOPE } pwsp_edge_end;

typedef struct pwsp_edge {
    uint32_t nodes[3];
    uint32_t next[3];  // index + 1
} pwsp_edge;

typedef struct pwsp_compiler {
    ptowsp_module *module;
    ptowsp_program *program;
    const ptowsp_schedule *schedule;  // with its keys
    pwsp_checker checker;
    pwsp_coder coder;
    uint32_t key_task;      // the task whose keys are being compiled, or 0
    pwsp_table edges;       // of pwsp_edge, from 0
    pwsp_table edge_lists;  // uint32_t: 3 for each node, the first edge with it as that end, + 1
    pwsp_table first_ops;   // uint32_t: of each reached workload
} pwsp_compiler;

// Adds an item to a table of the program that counts from 0; NULL with the module's error.
PWSP_INTERNAL void *pwsp_compiler_add(pwsp_compiler *c, pwsp_table *table, size_t item_size);

#define PWSP_ADD(c, table, type, out_index)                                                        \
    (*(out_index) = (uint32_t)(c)->program->table.count,                                           \
     (type *)pwsp_compiler_add(c, &(c)->program->table, sizeof(type)))

// Resolves a leaf to its cell; for the coder.
PWSP_INTERNAL bool pwsp_compiler_leaf(void *user, const pwsp_expr_node *node, pwsp_leaf *leaf);

// Compiles all workloads that have been checked, the entry first. The program's tables of what the
// module declares, and its cells, are there. False with the module's error.
PWSP_INTERNAL bool pwsp_compiler_workloads(pwsp_compiler *c);

#endif
