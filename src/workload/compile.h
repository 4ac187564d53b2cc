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

// Where a workload begins.
typedef struct pwsp_first {
    uint32_t op, statement;
} pwsp_first;

typedef struct pwsp_compiler {
    ptowsp_module *module;
    ptowsp_program *program;
    const ptowsp_schedule *schedule;  // with its keys
    pwsp_checker checker;
    pwsp_coder coder;
    uint32_t key_task;                // the task whose keys are being compiled, or 0
    uint32_t sized_tensor;            // the transient tensor whose sizes are being compiled, or 0
    PWSP_TABLE(pwsp_edge) edges;      // from 0
    PWSP_TABLE(uint32_t) edge_lists;  // 3 for each node: the first edge with it as that end, + 1
    PWSP_TABLE(pwsp_first) firsts;    // of each reached workload
    PWSP_TABLE(uint32_t) expr_ids;    // by expression of the module: the one in the program, or 0
    // Processes, and workloads that only processes call, have no scopes, edges or keys.
    bool is_in_process;
    uint32_t module_first_channel;  // of the process that is being compiled: its pipeline's first
                                    // channel in the module
    uint32_t first_channel;         // and in the program
    uint64_t replica_count;         // of all processes, as far as it is known when compiling
} pwsp_compiler;

// Adds an item to a table that counts from 0, and to one of the program; NULL with the module's error.
#define PWSP_TABLE_ADD(c, table)                                                                   \
    (pwsp_compiler_add(c, PWSP_TABLE_PARTS(table)) ? &(table).items[(table).count - 1] : NULL)
#define PWSP_ADD(c, table, out_index)                                                              \
    (*(out_index) = (uint32_t)(c)->program->table.count, PWSP_TABLE_ADD(c, (c)->program->table))

// The same with the item's value; false with the module's error.
#define PWSP_ADD_ITEM(c, table, out_index, value)                                                  \
    (*(out_index) = (uint32_t)(c)->program->table.count,                                           \
     pwsp_compiler_add(c, PWSP_TABLE_PARTS((c)->program->table)) &&                                \
         ((c)->program->table.items[*(out_index)] = (value), true))
// The same, and an operation on it.
#define PWSP_ADD_OP(c, table, out_index, value, kind, target, node)                                \
    (PWSP_ADD_ITEM(c, table, out_index, value) &&                                                  \
     pwsp_compiler_op(c, kind, *(out_index), target, node))
PWSP_INTERNAL bool pwsp_compiler_add(pwsp_compiler *c, void *items, uint64_t *count,
                                     uint64_t *capacity, size_t item_size);

// Finds the expressions of innermost loops that can be evaluated in blocks; the last step.
PWSP_INTERNAL bool pwsp_compiler_blocks(pwsp_compiler *c);

// Copies a text into the program; NULL with the module's error.
PWSP_INTERNAL const char *pwsp_compiler_text(pwsp_compiler *c, const char *text);

// Resolves a leaf to its cell; for the coder.
PWSP_INTERNAL bool pwsp_compiler_leaf(void *user, const pwsp_expr_node *node, pwsp_leaf *leaf);

// The variable of a task's name: of a loop or a parameter around it; 0 if unknown.
PWSP_INTERNAL uint32_t pwsp_compiler_task_variable(const ptowsp_module *module, uint32_t task,
                                                   const char *name);

// Compiles all workloads that have been checked, the entry first. The program's copies of the
// module's tables, and its cells, exist already. False with the module's error.
PWSP_INTERNAL bool pwsp_compiler_workloads(pwsp_compiler *c);

// Finds the lifetimes of transient tensors (lifetime.c). False with the module's error.
// Before workloads are compiled: the scopes of transient tensors, if the schedule has a ring of
// bytes.
PWSP_INTERNAL bool pwsp_compiler_scopes(pwsp_compiler *c);
PWSP_INTERNAL bool pwsp_compiler_lifetimes(pwsp_compiler *c);

// -- shared by the files that compile -------------------------------------------------------------

// Compiles an expression, 0 as the value 0; false with an error.
PWSP_INTERNAL bool pwsp_compiler_code(pwsp_compiler *c, uint32_t expr, pwsp_code *out_code);

// Compiles expressions into the program's list of codes.
PWSP_INTERNAL bool pwsp_compiler_codes(pwsp_compiler *c, const uint32_t *exprs, uint32_t count,
                                       uint32_t *out_first);

// Adds an operation; the next one's index; lets an operation lead to the next one.
PWSP_INTERNAL bool pwsp_compiler_op(pwsp_compiler *c, pwsp_op_kind kind, uint32_t at,
                                    uint32_t target, uint32_t node);
PWSP_INTERNAL uint32_t pwsp_compiler_here(const pwsp_compiler *c);
PWSP_INTERNAL void pwsp_compiler_land(pwsp_compiler *c, uint32_t op);

// A statement of a kind and a node; its maker sets the other fields and adds it after its op.
PWSP_INTERNAL ptowsp_statement pwsp_statement(ptowsp_statement_kind kind, uint32_t node);

// Adds the END of a statement that contains others.
PWSP_INTERNAL bool pwsp_compiler_end(pwsp_compiler *c, uint32_t begin);

// Adds a reset of explicit edges, as an op and as a statement.
PWSP_INTERNAL bool pwsp_compiler_reset(pwsp_compiler *c, pwsp_range range, uint32_t node);

// Lists the explicit edges that have a node as this end.
PWSP_INTERNAL bool pwsp_compiler_edges(pwsp_compiler *c, uint32_t node, pwsp_edge_end end,
                                       uint32_t *out_first, uint32_t *out_count);

// Compiles the children of a node.
PWSP_INTERNAL bool pwsp_compiler_children(pwsp_compiler *c, uint32_t node, bool is_parallel);

// Compiles a task; of a list, all tasks of one kernel.
PWSP_INTERNAL bool pwsp_compiler_task(pwsp_compiler *c, uint32_t id);

// Compiles a list of tasks.
PWSP_INTERNAL bool pwsp_compiler_list(pwsp_compiler *c, uint32_t id);

// Compiles a pipeline; a statement of a process.
PWSP_INTERNAL bool pwsp_compiler_pipeline(pwsp_compiler *c, uint32_t id);
PWSP_INTERNAL bool pwsp_compiler_receive(pwsp_compiler *c, uint32_t id);
PWSP_INTERNAL bool pwsp_compiler_send(pwsp_compiler *c, uint32_t id);
PWSP_INTERNAL bool pwsp_compiler_close(pwsp_compiler *c, uint32_t id);

#endif
