// A module as it is being built: declarations, expressions, and workloads as trees of nodes.

#ifndef PWSP_MODULE_H
#define PWSP_MODULE_H

#include "../base/arena.h"
#include "../base/block_list.h"
#include "../base/context.h"
#include "../data/expr.h"
#include "../data/layout_rule.h"
#include "../data/array.h"
#include "../data/names.h"
#include "../data/region.h"
#include "../kernel/compiled.h"

// The kind of a bindable name; its index is into the table of that kind.
typedef enum pwsp_bindable {
    PWSP_BIND_NOTHING,  // a dense axis: its name is taken, but nothing is bound
    PWSP_BIND_SIZE,     // an axis
    PWSP_BIND_SYMBOL,
    PWSP_BIND_ARRAY,  // also the lengths of a ragged axis
    PWSP_BIND_CSR,    // an axis
    PWSP_BIND_PLAN,   // the first axis of this name
    PWSP_BIND_TENSOR
} pwsp_bindable;

typedef enum pwsp_axis_kind {
    PWSP_AXIS_DENSE,
    PWSP_AXIS_DYNAMIC,
    PWSP_AXIS_RAGGED,
    PWSP_AXIS_SPARSE,
    PWSP_AXIS_PLAN,
    PWSP_AXIS_PLAN_MERGES,
    PWSP_AXIS_PLAN_LANES
} pwsp_axis_kind;

typedef struct pwsp_axis_info {
    const char *name;
    pwsp_axis_kind kind;
    uint32_t declared;  // the axis that it is, or is a row of
    uint32_t row;       // an expression, or 0
    uint32_t array;     // ragged: its lengths; units or merges: their flags, then the lanes;
                        // further fields follow by next_field
    int64_t size;       // dense
    uint32_t next;      // of a plan: its next axis, or 0; the first is in the table of names
} pwsp_axis_info;

typedef struct pwsp_symbol_info {
    const char *name;
} pwsp_symbol_info;

// A tensor that the library gives memory to.
typedef struct pwsp_transient_info {
    uint32_t tensor;
    uint32_t sizes[PTOWSP_TENSOR_RANK_MAX];  // expressions, or 0: as declared
} pwsp_transient_info;

// The mesh of a module.
typedef struct pwsp_mesh_info {
    ptowsp_mesh mesh;
    ptowsp_algorithm algorithm;  // of sums and maxima that are placed
    uint32_t rank_count;
} pwsp_mesh_info;

// How a tensor is spread, by its id in the table.
typedef struct pwsp_spread_info {
    ptowsp_spread axes[PTOWSP_MESH_AXIS_MAX];
    bool is_given;
} pwsp_spread_info;

typedef struct pwsp_variable_info {
    const char *name;
    ptowsp_type type;
    uint32_t node;  // the loop, or the workload whose parameter it is
    bool is_open;   // its scope is being built
} pwsp_variable_info;

// A kernel that a choice may take, in the order in which they are asked.
typedef struct pwsp_variant_info {
    uint32_t kernel;
    uint32_t condition;  // an expression of the task's arguments, or 0: always
    int32_t priority;
    uint64_t cost;  // UINT64_MAX: unknown
} pwsp_variant_info;

// The operation of a task that communicates.
typedef struct pwsp_collective_info {
    ptowsp_collective_kind kind;
    ptowsp_algorithm algorithm;
    ptowsp_reduction reduction;
    uint32_t members, stride;  // 0: all ranks; 1
    uint32_t counts;           // an array, or 0
    bool in_columns, out_columns;
} pwsp_collective_info;

typedef struct pwsp_kernel_info {
    const char *name;
    const ptowsp_tile_param *tiles;
    const ptowsp_scalar_param *scalars;
    uint32_t axis_count, tile_count, scalar_count;
    ptowsp_unit unit;
    uint32_t pool;  // of its tasks; only in a program
    ptowsp_kernel_fn fn, cost;
    ptowsp_cycles cycles;
    uint64_t bytes;  // of a task, or PTOWSP_TILE_BYTES; not of tile kernels
    void *user;
    ptowsp_kernel_source source;      // its names filled in, if there is one
    uint32_t sourced;                 // the first kernel with its text or file, perhaps itself
    const ptowsp_pto_source *pto;     // with defaults filled in, or NULL
    pwsp_collective_info collective;  // of PTOWSP_UNIT_LINK
    const pwsp_tile_code *code;       // of a tile kernel, else NULL
    const ptowsp_body *body;          // its operations; only in a module
    const char *rule;                 // of layouts, or NULL; only in a module
    // Of a choice: its variants. No task has it as its kernel, but one of them.
    const pwsp_variant_info *variants;
    uint32_t variant_count;
} pwsp_kernel_info;

typedef struct pwsp_view_info {
    uint32_t tensor;
    uint32_t index[PWSP_TENSOR_LEAD_MAX];  // expressions; 0 from the tensor's leading rank on
    uint32_t row, col;                     // expressions, or 0 for the start
    int64_t rows, cols;                    // of the tile; 0: up to the tensor's edge
    uint32_t row_count, col_count;         // expressions, or 0 for no limit
} pwsp_view_info;

typedef struct pwsp_tag_info {
    const char *name;
    uint32_t value;
} pwsp_tag_info;

typedef struct pwsp_task_info {
    uint32_t kernel;
    uint32_t tag_count, after_count;
    const uint32_t *axes, *scalars;  // expressions, as many as the kernel says
    const pwsp_view_info *views;
    const pwsp_tag_info *tags;
    const uint32_t *after;  // nodes
} pwsp_task_info;

typedef struct pwsp_call_info {
    const char *name;
    const uint32_t *args;
    uint32_t arg_count;
} pwsp_call_info;

// A list of tasks, as it was given and checked.
typedef struct pwsp_task_list_info {
    ptowsp_task_list given;  // the arrays are the user's
    uint32_t scope_depth;    // of its scopes, with the parallel one around all
} pwsp_task_list_info;

typedef struct pwsp_channel_info {
    const char *name;
    uint32_t pipeline;  // node
    uint32_t depth;
    uint64_t latency;
    uint32_t depth_expr, latency_expr;  // expressions, or 0
    bool is_event;
    uint32_t ports[2];  // the last that consumes it, and the last that produces to it, or 0
} pwsp_channel_info;

// A declaration of a process: it produces to a channel, or consumes from it.
typedef struct pwsp_port_info {
    uint32_t process;  // node
    uint32_t channel;
    bool is_produced;
    uint32_t next;   // of the same process, or 0
    uint32_t place;  // in the program that is being compiled
} pwsp_port_info;

// Statements, in the order of their kinds: the kind, its word in texts, the parts that follow on the
// line, and the call by which the parser builds it (m: the module, a: the parts; text/parse_tree.c).
//
//      v   the name of a variable     =   "="                    V       a view
//      w   the name of a workload     e   an expression          l       [ "element" pair ]
//      p   the name of a pipeline     (   arguments              T P L   a task, process, list
//      c   the name of a channel      t   "(" expression ")"     a       [ "after" nodes ] [ "as" node ]
//      s   the number of a slot       i   "in" axis              {       a scope is opened
//      f   "from" channel
// clang-format off
#define PWSP_STATEMENTS(WORD)                                                                      \
    WORD(PARALLEL, "parallel", "vi{", a->variable = ptowsp_parallel_begin(m, a->name, a->axis))    \
    WORD(FOR_EACH, "for_each", "vi{", a->variable = ptowsp_for_each_begin(m, a->name, a->axis))    \
    WORD(SELECT, "select", "vi{", a->variable = ptowsp_select_begin(m, a->name, a->axis))          \
    WORD(WHEN, "when", "e{", ptowsp_when_begin(m, a->exprs[0]))                                    \
    WORD(OTHERWISE, "otherwise", "{", ptowsp_otherwise_begin(m))                                   \
    WORD(COMBINE, "combine", "{", ptowsp_combine_begin(m))                                         \
    WORD(SEQUENCE, "sequence", "{", ptowsp_sequence_begin(m))                                      \
    WORD(TASK, "task", "Ta", a->node = ptowsp_task_make(m, &a->task))                              \
    WORD(CALL, "call", "w(", ptowsp_call_make(m, a->name, a->exprs, a->count))                     \
    WORD(SLOT_SET, "slot_set", "s=e", ptowsp_slot_set_make(m, a->slot, a->exprs[0]))               \
    WORD(SLOT_LOAD, "slot_load", "s=Vl",                                                           \
         ptowsp_slot_load_make(m, a->slot, &a->view, a->exprs[0], a->exprs[1]))                    \
    WORD(PIPELINE, "pipeline", "pa{",                                                              \
         a->node = ptowsp_pipeline_begin(m, a->name, a->task.after, a->after_count))               \
    WORD(PROCESS, "process", "P", (void)m)                                                         \
    WORD(CONSUME, "consume", "vf{", a->variable = ptowsp_consume_begin(m, a->name, a->channel))    \
    WORD(RECEIVE, "receive", "vf{", a->variable = ptowsp_receive_begin(m, a->name, a->channel))    \
    WORD(SEND, "send", "ct", ptowsp_send_make(m, a->channel, a->exprs[0]))                         \
    WORD(CLOSE, "close", "c", ptowsp_close_make(m, a->channel))                                    \
    WORD(RECORD, "record", "c", ptowsp_record_make(m, a->channel))                                 \
    WORD(WAIT, "wait", "c", ptowsp_wait_make(m, a->channel))                                       \
    WORD(LIST, "list", "L", (void)m)                                                               \
    WORD(LISTED, "listed", "L", (void)m)
// clang-format on

typedef enum pwsp_node_kind {
    PWSP_NODE_NONE,
    PWSP_NODE_WORKLOAD,
    PWSP_NODE_PARALLEL,
    PWSP_NODE_FOR_EACH,
    PWSP_NODE_SELECT,
    PWSP_NODE_WHEN,
    PWSP_NODE_OTHERWISE,  // follows its when
    PWSP_NODE_COMBINE,
    PWSP_NODE_SEQUENCE,
    PWSP_NODE_TASK,
    PWSP_NODE_CALL,
    PWSP_NODE_SLOT_SET,
    PWSP_NODE_SLOT_LOAD,
    PWSP_NODE_PIPELINE,
    PWSP_NODE_PROCESS,  // with an axis: replicas
    PWSP_NODE_CONSUME,
    PWSP_NODE_RECEIVE,
    PWSP_NODE_SEND,
    PWSP_NODE_CLOSE,
    PWSP_NODE_RECORD,
    PWSP_NODE_WAIT,
    PWSP_NODE_LIST,   // of tasks; a LISTED node for each of its kernels is in it
    PWSP_NODE_LISTED  // all tasks of one kernel: `task` has no views
} pwsp_node_kind;

typedef struct pwsp_node {
    pwsp_node_kind kind;
    uint32_t parent, first, last, next;  // nodes; 0 means none
    uint32_t variable;                   // of a loop, replicas, a consume or receive
    uint32_t axis;                       // of a loop, replicas
    uint32_t lane;                       // of a loop over a plan: the expression of the lane
    uint32_t expr;                       // of a when, a slot set, a send; the row of a slot load
    uint32_t col;                        // of a slot load
    uint32_t slot;
    uint32_t channel;                   // of a consume, receive, send, close, record or wait; of a
                                        // pipeline: its first, or 0
    uint32_t first_port;                // of a process: the first of its list, or 0; of a send,
                                        // close or record: its port
    uint32_t variant;                   // of a task of a choice: the next variant's task, or 0
    bool is_waited_for;                 // a later task is after it
    const char *name;                   // of a workload, a pipeline, a process
    uint32_t first_param, param_count;  // of a workload: variables
    const pwsp_task_info *task;         // also of a pipeline: its `after`
    const pwsp_call_info *call;
    const pwsp_view_info *view;  // of a slot load
    const pwsp_task_list_info *list;
} pwsp_node;

// A table of items. Tables of a module start at 1, so that 0 means none.
#define PWSP_TABLE(type)                                                                           \
    struct {                                                                                       \
        type *items;                                                                               \
        uint64_t count, capacity;                                                                  \
    }
#define PWSP_TABLE_FIELD(name, type) PWSP_TABLE(type) name;
#define PWSP_TABLE_PARTS(table)                                                                    \
    &(table).items, &(table).count, &(table).capacity, sizeof *(table).items
#define PWSP_TABLE_FREE(memory, table) PWSP_FREE(memory, (table).items, (table).capacity)

// The tables of a module. Transients are in the order of their tensors; spreads are by tensor, as far as
// any is given.
#define PWSP_MODULE_TABLES(TABLE)                                                                  \
    TABLE(axes, pwsp_axis_info)                                                                    \
    TABLE(symbols, pwsp_symbol_info)                                                               \
    TABLE(arrays, pwsp_array_info)                                                                 \
    TABLE(variables, pwsp_variable_info)                                                           \
    TABLE(tensors, ptowsp_tensor_desc)                                                             \
    TABLE(kernels, pwsp_kernel_info)                                                               \
    TABLE(nodes, pwsp_node)                                                                        \
    TABLE(channels, pwsp_channel_info)                                                             \
    TABLE(ports, pwsp_port_info)                                                                   \
    TABLE(transients, pwsp_transient_info)                                                         \
    TABLE(spreads, pwsp_spread_info)

// Does a loop over such an axis run over descriptors?
PWSP_INLINE bool pwsp_axis_is_work(pwsp_axis_kind kind) {
    return kind == PWSP_AXIS_PLAN || kind == PWSP_AXIS_PLAN_MERGES;
}

struct ptowsp_module {
    ptowsp_context *context;
    pwsp_blocks blocks;  // all memory of the module
    pwsp_memory memory;
    pwsp_arena arena;  // names, tasks, views
    const char *name;
    uint32_t slot_count;
    pwsp_exprs exprs;
    pwsp_names bindables, kernel_names, workload_names;
    pwsp_names sources;                       // texts and files: the first kernel with each
    pwsp_names channel_names, process_names;  // of the last pipeline
    PWSP_MODULE_TABLES(PWSP_TABLE_FIELD)
    const pwsp_mesh_info *mesh;  // or NULL
    uint32_t open;               // the innermost open scope, or 0
    uint32_t nest;               // how many are open
    uint32_t last_ports[2];      // of the last process: the last that consumes, that produces, or 0
    uint32_t workload;           // the last workload
    uint32_t viewed;             // no later tensor is in the view of a statement
    uint32_t latency_symbol;     // that overrides the latency of channels, or 0
    uint32_t task_kernel;        // of the task that is being made, for the place of errors
    ptowsp_body *bodies;         // of tile kernels, the last one first
    ptowsp_status status;
    uint64_t index;
    char text[PWSP_ERROR_TEXT_MAX];
};

#define PWSP_AXIS(m, id)     (&(m)->axes.items[id])
#define PWSP_SYMBOL(m, id)   (&(m)->symbols.items[id])
#define PWSP_ARRAY(m, id)    (&(m)->arrays.items[id])
#define PWSP_VARIABLE(m, id) (&(m)->variables.items[id])
#define PWSP_TENSOR(m, id)   (&(m)->tensors.items[id])
#define PWSP_KERNEL(m, id)   (&(m)->kernels.items[id])
#define PWSP_CHANNEL(m, id)  (&(m)->channels.items[id])
#define PWSP_PORT(m, id)     (&(m)->ports.items[id])
#define PWSP_NODE(m, id)     (&(m)->nodes.items[id])

// Is there a module without an error? Every building function asks this first.
PWSP_INLINE bool pwsp_module_is_good(const ptowsp_module *module) {
    return module && module->status == PTOWSP_OK;
}

// Records the first error, with the open place in front, and returns 0.
PWSP_INTERNAL uint32_t pwsp_module_fail(ptowsp_module *module, ptowsp_status status, uint64_t index,
                                        const char *format, ...) PWSP_PRINTF(4, 5);
PWSP_INTERNAL uint32_t pwsp_module_no_memory(ptowsp_module *module);

// The commonest failure: a user's mistake that concerns no index.
#define PWSP_MODULE_REFUSE(module, ...)                                                            \
    pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, __VA_ARGS__)

// The same with a certain node as the place.
PWSP_INTERNAL uint32_t pwsp_module_fail_at(ptowsp_module *module, uint32_t node,
                                           ptowsp_status status, const char *format, ...)
    PWSP_PRINTF(4, 5);

// A copy of `count` items in the module's arena; NULL if it has an error, or when memory is out.
#define PWSP_MODULE_COPY(module, type, from, count)                                                \
    ((const type *)pwsp_module_copy(module, from, (count) * sizeof(type)))
PWSP_INTERNAL void *pwsp_module_copy(ptowsp_module *module, const void *data, size_t size);

// Is the module good, and a description given? `what` it describes is for the error.
PWSP_INTERNAL bool pwsp_module_takes(ptowsp_module *module, const void *desc, const char *what);

// Adds a zeroed item to a table and returns its index; 0 if the module has an error, or when memory is
// out.
#define PWSP_MODULE_ADD(module, table) pwsp_module_add(module, PWSP_TABLE_PARTS(table))
PWSP_INTERNAL uint32_t pwsp_module_add(ptowsp_module *module, void *items, uint64_t *count,
                                       uint64_t *capacity, size_t item_size);

// The transient tensor of an id, or NULL.
PWSP_INTERNAL const pwsp_transient_info *pwsp_module_transient(const ptowsp_module *module,
                                                               uint32_t tensor);

// How many pieces the axes of the module's mesh make of a dimension.
PWSP_INTERNAL int64_t pwsp_spread_pieces(const ptowsp_module *module, const ptowsp_spread *axes,
                                         uint32_t dim);

// The layout of a tensor over the module's mesh: sizes that are dynamic are below 0.
PWSP_INTERNAL ptowsp_mesh_layout pwsp_tensor_layout(const ptowsp_module *module, uint32_t tensor);

// Writes the lines and ends of lines that a mesh, a spread tensor and a rule have in texts.
PWSP_INTERNAL void pwsp_mesh_print(const ptowsp_module *module, ptowsp_output text);
PWSP_INTERNAL void pwsp_spreads_print(const ptowsp_module *module, uint32_t tensor,
                                      ptowsp_output text);

// Places the relayouts that the tasks of a workload ask for, which has just been closed.
PWSP_INTERNAL void pwsp_place_relayouts(ptowsp_module *module, uint32_t workload);

// The array of a field of an axis, and the flags in it that make the field (0: it is a number); 0
// with an error if the axis has no such field.
PWSP_INTERNAL uint32_t pwsp_plan_field_array(ptowsp_module *module, uint32_t axis,
                                             ptowsp_plan_field field, uint8_t *out_flags);

// Checks and copies a name; NULL with an error if it is not one. `what` is "axis" or so.
PWSP_INTERNAL const char *pwsp_module_name(ptowsp_module *module, const char *what,
                                           const char *name);

// The array of a name, declared here if it is new; 0 with an error.
PWSP_INTERNAL uint32_t pwsp_module_array(ptowsp_module *module, const char *name,
                                         ptowsp_dtype dtype);

// Adds a bindable name that must be new, and returns the module's copy; NULL with an error if it is
// taken. `what` as above.
PWSP_INTERNAL const char *pwsp_module_bindable(ptowsp_module *module, const char *what,
                                               const char *name, pwsp_bindable kind,
                                               uint32_t index);

// The axis of a name, or 0. Of a plan: its units (PWSP_AXIS_PLAN), merges or lanes; of any other
// axis `plan` is PWSP_AXIS_PLAN.
PWSP_INTERNAL uint32_t pwsp_module_axis(const ptowsp_module *module, const char *name,
                                        pwsp_axis_kind plan);

// The bindable of a name; NULL if unknown, or with an error if its hash is another name's.
PWSP_INTERNAL const pwsp_name *pwsp_module_find(ptowsp_module *module, const char *name);

// Copies a kernel's parameters into the module, all names unique in the kernel; false with an
// error.
PWSP_INTERNAL bool pwsp_kernel_copy_params(ptowsp_module *module, const ptowsp_kernel_desc *desc,
                                           pwsp_kernel_info *info);

PWSP_INTERNAL bool pwsp_name_is_identifier(const char *name);

// Checks and copies the PTO-ISA source of a kernel whose parameters are there; false with an error.
PWSP_INTERNAL bool pwsp_kernel_set_pto(ptowsp_module *module, const ptowsp_kernel_desc *desc,
                                       pwsp_kernel_info *info);

// Copies it, with its texts, into an arena; false without memory.
PWSP_INTERNAL bool pwsp_pto_copy(pwsp_arena *arena, const ptowsp_pto_source *from,
                                 const ptowsp_pto_source **out_copy);

// Writes the rest of the line of a kernel that communicates, after its unit: ", all_reduce, by
// ring".
PWSP_INTERNAL void pwsp_collective_info_print(const ptowsp_module *module,
                                              const pwsp_collective_info *info, ptowsp_output text);
PWSP_INTERNAL const char *pwsp_reduction_name(ptowsp_reduction reduction);

// The word of a direction: "in", "out", "inout" (text/print_module.c).
PWSP_INTERNAL const char *pwsp_direction_name(ptowsp_direction direction);

// ptowsp_kernel_hash of it, without the module.
PWSP_INTERNAL uint64_t pwsp_kernel_info_hash(const pwsp_kernel_info *info);

// Adds a kernel whose name must be new, and returns its id; 0 with an error. The code of a tile
// kernel is the module's from then on, if there is an id.
PWSP_INTERNAL uint32_t pwsp_kernel_register(ptowsp_module *module, const pwsp_kernel_info *info);

// The parts of a statement's line, by the table; none of a workload.
PWSP_INTERNAL const char *pwsp_statement_form(pwsp_node_kind kind);

// Writes one step of a place: "parallel b".
PWSP_INTERNAL void pwsp_module_print_step(const ptowsp_module *module, uint32_t node,
                                          ptowsp_output text);

// Writes a place from its steps, the last one first: "attention/parallel b/when/task attn"; of a long one
// the first and the last steps: "attention/.../task attn".
typedef void (*pwsp_print_step)(const void *owner, uint32_t step, ptowsp_output text);
PWSP_INTERNAL void pwsp_print_path(const void *owner, pwsp_print_step print_step,
                                   const uint32_t *path, uint32_t count, ptowsp_output text);

// An operator over one or two operands (b is not read over one), as the function of its name makes it.
PWSP_INTERNAL ptowsp_expr pwsp_expr_call(pwsp_expr_op op, ptowsp_expr a, ptowsp_expr b);

// An expression of a task's arguments with their values: argument i is args[i], 0 from count on.
// 0 with an error.
PWSP_INTERNAL uint32_t pwsp_expr_with_args(ptowsp_module *module, uint32_t id,
                                           const ptowsp_expr *args, uint32_t count);

// The cycles of a tile kernel's task with full tiles; 0 if it is not a tile kernel or cannot be
// measured.
PWSP_INTERNAL ptowsp_cycles pwsp_kernel_tile_cycles(const ptowsp_module *module,
                                                    ptowsp_kernel kernel, const ptowsp_cost *cost);

// Writes ", cube, L1 1024 bytes, ...": the unit and the memory of a tile kernel; else nothing.
PWSP_INTERNAL void pwsp_kernel_print_memory(const ptowsp_module *module, ptowsp_kernel kernel,
                                            ptowsp_output text);

// Adds the task of a choice: a task for each variant that may take it, under conditions.
PWSP_INTERNAL ptowsp_node pwsp_task_choose(ptowsp_module *module, const ptowsp_task_desc *desc);

// Checks an expression that is used in the tree: it is the module's, of this type (NONE: any), and
// its variables are open. Returns its index, or 0 with an error that begins with `what`.
PWSP_INTERNAL uint32_t pwsp_module_use(ptowsp_module *module, ptowsp_expr expr, ptowsp_type type,
                                       const char *what);

// The same of an expression that may be left out, with *out_id 0; false with an error.
PWSP_INTERNAL bool pwsp_module_use_given(ptowsp_module *module, ptowsp_expr expr, ptowsp_type type,
                                         const char *what, uint32_t *out_id);

#endif
