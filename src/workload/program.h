// Compiled programs: a flat list of operations, tables they point into, and code for expressions.

#ifndef PWSP_PROGRAM_H
#define PWSP_PROGRAM_H

#include "../data/column.h"
#include "../runtime/arrival.h"
#include "../data/placement.h"
#include "module.h"

// What moves through a program (op, what `at` is, where `target` leads):
typedef enum pwsp_op_kind {
    PWSP_OP_LOOP,         // a loop; after its end, when it has no iteration
    PWSP_OP_LOOP_END,     // the loop; its first op
    PWSP_OP_SCOPE,        // a pwsp_scope that begins
    PWSP_OP_SCOPE_END,    //
    PWSP_OP_TASK,         // a task
    PWSP_OP_BRANCH,       // a branch; its target when the condition is false
    PWSP_OP_JUMP,         // the target
    PWSP_OP_SLOT_SET,     // a slot set
    PWSP_OP_SLOT_LOAD,    // a slot load
    PWSP_OP_CALL,         // a call; the workload's first op
    PWSP_OP_RETURN,       // back to the call, or the end of the program
    PWSP_OP_RESET,        // a range of edges that forget: an iteration begins
    PWSP_OP_RELEASE,      // a transient tensor: a pass through its scope ends
    PWSP_OP_PIPELINE,     // a pipeline, its processes' ops follow; after them
    PWSP_OP_PROCESS_END,  // a process: the end of its ops
    PWSP_OP_SEND,         // a send
    PWSP_OP_RECEIVE,      // a receive; the target at the end of the stream
    PWSP_OP_CLOSE,        // a port
    PWSP_OP_LIST,         // a list of tasks begins; its NEXT
    PWSP_OP_LISTED,       // of a list: the tasks of one kernel; never walked itself
    PWSP_OP_LIST_NEXT     // a list: its next event, until the last
} pwsp_op_kind;

typedef enum pwsp_scope { PWSP_SCOPE_SAME, PWSP_SCOPE_PARALLEL, PWSP_SCOPE_SEQUENTIAL } pwsp_scope;

typedef struct pwsp_op {
    pwsp_op_kind kind;
    uint32_t at;
    uint32_t target;
    uint32_t node;  // its place
} pwsp_op;

typedef struct pwsp_loop {
    pwsp_axis_kind axis_kind;
    pwsp_scope scope;  // that it opens
    uint32_t cell;     // of its variable
    uint32_t entry;    // cell of a sparse loop's position in the indices
    uint32_t size;     // cell of a dense, dynamic or plan axis' size
    uint32_t array;    // ragged: the lengths; units or merges: their flags, then the lanes
    uint32_t csr;      // sparse: the axis; of a plan, too
    bool is_row;
    bool is_parallel;
    pwsp_code row;
    uint32_t block;  // of the program's, from 1; 0: none
} pwsp_loop;

// Expressions of an innermost loop that are evaluated for many iterations at once; see blocks.c.
// Columns: 0 the variable, 1 a sparse loop's entry, then the steps' own.
typedef struct pwsp_loop_block {
    uint32_t first_hoist, hoist_count;  // run once, as the loop is entered, over cells
    uint32_t first_fill, fill_count;    // then these columns are filled,
    uint32_t first_step, step_count;    // and these run for each block of iterations, over columns
    uint32_t column_count;
} pwsp_loop_block;

typedef struct pwsp_loop_fill {
    uint32_t cell, column;
} pwsp_loop_fill;

typedef struct pwsp_branch {
    pwsp_code condition;
    uint32_t end;  // after the otherwise, if there is one
} pwsp_branch;

typedef struct pwsp_range {
    uint32_t first, count;
} pwsp_range;

typedef struct pwsp_tile_view {
    uint32_t tensor;
    uint32_t lead;    // how many indices
    uint32_t access;  // PWSP_TILE_READ, ...
    bool has_limit;   // of rows or columns
    pwsp_code index[PWSP_TENSOR_LEAD_MAX];
    pwsp_code row, col;              // or without expr: the start
    pwsp_code row_count, col_count;  // limits, or without expr
    int64_t rows, cols;              // of the tile; 0: up to the edge
} pwsp_tile_view;

// A task of the tree. Codes: axis arguments, then scalars.
typedef struct pwsp_task_op {
    uint32_t kernel;
    uint32_t first_code, axis_count, scalar_count;
    uint32_t first_view, view_count;
    pwsp_code dispatch, priority, stream;  // keys, where the schedule has them
    uint32_t first_in, in_count;           // explicit edges that end here
    uint32_t first_out, out_count;         // in the list of edges by source
    bool has_keys;                         // any that is not a zero
    bool has_cycles;                       // its list has the cycles of each task
} pwsp_task_op;

// A list of tasks. Entry i tells explicit edge first_edge + i, and waits for edges of the entries
// before it; the program's list of edges has, from first_own on, the edges that entries tell, one
// each, and then those that they wait for.
typedef struct pwsp_task_list_op {
    ptowsp_task_list given;
    uint32_t first_own;
    bool has_edges;
    const uint32_t *ops;  // by kernel: the op of its tasks
} pwsp_task_list_op;

typedef struct pwsp_slot_op {
    uint32_t cell;  // of the slot
    uint32_t slot;
    pwsp_code value;      // set
    pwsp_tile_view view;  // load
    pwsp_code row, col;   // load; or without expr: the start
} pwsp_slot_op;

typedef struct pwsp_call_op {
    uint32_t first_code, arg_count;
    uint32_t first_cell;  // of the parameters
    pwsp_scope scope;
} pwsp_call_op;

// A channel that a process consumes or produces, in the process' list of them.
// Ids of channels and processes count from 0, over all pipelines of the program.
typedef struct pwsp_channel_op {
    const char *name;
    uint32_t depth;
    uint64_t latency;
    bool is_event;
    bool has_depth, has_latency;  // as the following codes say, when the pipeline starts
    pwsp_code depth_code, latency_code;
} pwsp_channel_op;

typedef struct pwsp_process_op {
    const char *name;
    uint32_t first_op;
    uint32_t node;
    uint32_t first_port, port_count;
    uint32_t size;   // cell of how many replicas there are
    uint32_t index;  // cell of the replica's index, or 0
    uint32_t axis;   // of the replicas, or 0
    // Cells that others use, too, so that each has its own values: cells of replicas, with the
    // index first; of workloads that it calls; slots.
    uint32_t first_private, private_count;  // in the list of the program
} pwsp_process_op;

typedef struct pwsp_pipeline_op {
    const char *name;
    pwsp_task_op
        task;  // its face to the workload around it: edges, and a view of each tensor's whole
    uint32_t first_process, process_count;
    uint32_t first_channel, channel_count;
    uint32_t first_slot, slot_count;  // cells of slots that its processes set, in that list
} pwsp_pipeline_op;

typedef struct pwsp_send_op {
    uint32_t channel;
    uint32_t port;  // in the list of the program
    pwsp_code token;
} pwsp_send_op;

// The body of a receive follows; of a loop, it ends with a jump back to the receive.
typedef struct pwsp_receive_op {
    uint32_t channel;
    uint32_t cell;   // of the token
    uint32_t place;  // of this cell among the private ones of its process, + 1, or 0
    bool is_loop;    // continues to the end of the stream
    bool is_wait;    // the end of the stream is an error
} pwsp_receive_op;

// Where an op comes from, for texts.
typedef struct pwsp_place {
    uint32_t parent;
    const char *step;                   // "parallel b"
    uint32_t variable;                  // cell of a loop's variable, or 0
    const char *name;                   // of the variable
    uint32_t first_param, param_count;  // of a workload, in the list of parameters
} pwsp_place;

typedef struct pwsp_param {
    const char *name;
    ptowsp_type type;
    uint32_t cell;
} pwsp_param;

// A tensor that an execution gives memory to. Codes: a size for each dimension, or without expr.
// Tensors with lifetimes that have no point in common may share memory.
typedef struct pwsp_transient {
    uint32_t tensor;
    uint32_t first_code;
    uint32_t first_lifetime, lifetime_count;
} pwsp_transient;

// The tables of a program. Points hold the node of each; tensors, kernels, arrays, symbols, axes and
// variables are the module's, by its ids; exprs (from 1) and statements are for read access.
#define PWSP_PROGRAM_TABLES(TABLE)                                                                 \
    TABLE(ops, pwsp_op)                                                                            \
    TABLE(loops, pwsp_loop)                                                                        \
    TABLE(tasks, pwsp_task_op)                                                                     \
    TABLE(views, pwsp_tile_view)                                                                   \
    TABLE(codes, pwsp_code)                                                                        \
    TABLE(branches, pwsp_branch)                                                                   \
    TABLE(slot_ops, pwsp_slot_op)                                                                  \
    TABLE(calls, pwsp_call_op)                                                                     \
    TABLE(resets, pwsp_range)                                                                      \
    TABLE(lists, pwsp_task_list_op)                                                                \
    TABLE(pipelines, pwsp_pipeline_op)                                                             \
    TABLE(processes, pwsp_process_op)                                                              \
    TABLE(channels, pwsp_channel_op)                                                               \
    TABLE(ports, pwsp_port)                                                                        \
    TABLE(privates, uint32_t)                                                                      \
    TABLE(sends, pwsp_send_op)                                                                     \
    TABLE(receives, pwsp_receive_op)                                                               \
    TABLE(edges, uint32_t)                                                                         \
    TABLE(transients, pwsp_transient)                                                              \
    TABLE(lifetimes, pwsp_lifetime)                                                                \
    TABLE(points, uint32_t)                                                                        \
    TABLE(places, pwsp_place)                                                                      \
    TABLE(params, pwsp_param)                                                                      \
    TABLE(instructions, pwsp_instruction)                                                          \
    TABLE(consts, uint64_t)                                                                        \
    TABLE(blocks, pwsp_loop_block)                                                                 \
    TABLE(hoists, pwsp_instruction)                                                                \
    TABLE(fills, pwsp_loop_fill)                                                                   \
    TABLE(steps, pwsp_instruction)                                                                 \
    TABLE(tensors, ptowsp_tensor_desc)                                                             \
    TABLE(kernels, pwsp_kernel_info)                                                               \
    TABLE(arrays, pwsp_array_info)                                                                 \
    TABLE(symbols, pwsp_symbol_info)                                                               \
    TABLE(axes, pwsp_axis_info)                                                                    \
    TABLE(variables, pwsp_variable_info)                                                           \
    TABLE(exprs, ptowsp_expr_info)                                                                 \
    TABLE(statements, ptowsp_statement)

struct ptowsp_program {
    ptowsp_context *context;  // that counts it
    pwsp_blocks owned;        // all memory of the program
    pwsp_memory memory;
    uint32_t runs;         // atomic: of this program, that are not destroyed
    ptowsp_program *self;  // for what changes of a program that users have as const: runs, read
    const ptowsp_program_tables *read;  // once a reader has asked for them
    pwsp_arena arena;                   // names and steps
    const char *name;                   // of the module
    ptowsp_schedule schedule;           // resolved; its keys are compiled
    const char *schedule_text;
    bool is_priority_signed;
    bool has_streams;  // by a key
    bool has_codes;    // references to the code of tile kernels are counted
    pwsp_pool_info pools[PWSP_POOL_MAX];
    uint32_t pool_count, lane_count;  // with the pool of links, if any task communicates
    bool has_link;
    uint32_t mesh_ranks;  // of the module's mesh, or 0
    // Cells: 0 is always 0; then slots, arguments of the task, variables, entries of sparse
    // loops by their variables, symbols, sizes,
    // temporaries, constants, results of hoisted instructions.
    uint32_t slot_count, first_slot, first_arg, first_variable, first_entry, first_symbol,
        first_size, first_temp, first_const, cell_count;
    uint32_t arg_count;    // cells for arguments of any task
    uint32_t frame_depth;  // loops and calls in one another
    uint32_t scope_depth;  // scopes in one another
    uint32_t edge_count;
    uint32_t first_op;
    PWSP_PROGRAM_TABLES(PWSP_TABLE_FIELD)
    uint32_t column_count;    // of the block with the most
    uint32_t latency_symbol;  // that overrides the latency of channels, or 0
    pwsp_names names;
    bool *tensor_is_loaded;   // by tensor: a slot is loaded from it
    bool *tensor_is_written;  // by tensor: a task writes it
    bool *tensor_is_transient;
    uint32_t *tensor_scopes;  // by tensor, with a ring of bytes: the node of a transient's scope
    bool *array_is_used, *axis_is_used, *symbol_is_used, *tensor_is_used, *kernel_is_used;
};

#define PWSP_OP_AT(p, i)    (&(p)->ops.items[i])
#define PWSP_PLACE_AT(p, i) (&(p)->places.items[i])

// The part of a program that simulated time needs.
PWSP_INTERNAL pwsp_timed pwsp_program_timed(const ptowsp_program *program);

// The title of its results: the module's name, or the workload's if the module was given none.
PWSP_INTERNAL const char *pwsp_program_title(const ptowsp_program *program);

// A hash of all that a list has.
PWSP_INTERNAL uint64_t pwsp_task_list_hash(const ptowsp_task_list *list);

// Writes the place of a node, and with cells (not NULL) the values of the variables around:
// "attention/parallel b/task attn (b = 3)".
PWSP_INTERNAL void pwsp_program_print_place(const ptowsp_program *program, uint32_t node,
                                            const uint64_t *cells, ptowsp_output text);

// The op after those that an op decides about: loops, branches, pipelines and receives; 0 for others.
PWSP_INTERNAL uint32_t pwsp_op_end(const ptowsp_program *program, const pwsp_op *op);

// Visits the expressions of an op, or of a view, until visit returns true; returns whether it did.
// Those that it does not have are visited too: they have no instructions, and cell 0.
typedef bool (*pwsp_code_fn)(void *user, pwsp_code *code);

PWSP_INTERNAL bool pwsp_op_codes(const ptowsp_program *program, const pwsp_op *op,
                                 pwsp_code_fn visit, void *user);
PWSP_INTERNAL bool pwsp_view_codes(pwsp_tile_view *view, pwsp_code_fn visit, void *user);

// The same with the cells that an expression reads, temporaries and constants too.
typedef bool (*pwsp_cell_fn)(void *user, uint32_t cell);

PWSP_INTERNAL bool pwsp_code_reads(const ptowsp_program *program, const pwsp_code *code,
                                   pwsp_cell_fn is_found, void *user);

// A task or pipeline that writes one tile in all iterations of a parallel loop around it.
typedef struct pwsp_conflict {
    const pwsp_op *loop, *task;
    const pwsp_tile_view *view;
} pwsp_conflict;

// Finds them, as far as the program alone tells: not under conditions, and not in workloads that
// the loop calls. cells: the values as they are bound. visit returns false for no more; returns
// whether all were visited.
PWSP_INTERNAL bool pwsp_program_visit_conflicts(
    const ptowsp_program *program, const uint64_t *cells,
    bool (*visit)(void *user, const pwsp_conflict *conflict), void *user);

// How tasks of such iterations run: "one after another".
PWSP_INTERNAL const char *pwsp_conflict_effect(const ptowsp_program *program,
                                               const pwsp_conflict *conflict);

// Marks the ops whose effect depends on slots that are loaded from tensors that tasks write.
// is_written is by tensor, out_unknown by op. False when memory is out.
PWSP_INTERNAL bool pwsp_program_find_tainted(const ptowsp_program *program,
                                             const pwsp_memory *memory, const bool *is_written,
                                             uint8_t *out_unknown);

#endif
