// The state that the parts of the emitter of aicpu/expand.cpp share: its position, and its lines.

#ifndef NPU_EXPAND_H
#define NPU_EXPAND_H

#include "npu.h"

#define NPU_LINE_MAX       100                  // columns that have spaces to break at
#define NPU_LOCAL_NAME_MAX (NPU_NAME_MAX + 32)  // with its number

// A value that a function reads often, as a local at its top.
typedef enum npu_local_kind {
    NPU_LOCAL_SIZE = 0,  // of a dynamic axis
    NPU_LOCAL_SYMBOL,
    NPU_LOCAL_ARRAY,  // read as i64, u64, bool
    NPU_LOCAL_ARRAY_U64,
    NPU_LOCAL_ARRAY_BOOL,
    NPU_LOCAL_KIND_COUNT
} npu_local_kind;

typedef struct npu_local {
    npu_local_kind kind;
    uint32_t id;
    char name[NPU_LOCAL_NAME_MAX];
} npu_local;

typedef struct npu_locals {
    npu_local *items;
    uint32_t count, capacity;
    uint32_t *of[NPU_LOCAL_KIND_COUNT];  // by id: its item + 1, or 0
} npu_locals;

// Parts of an expression that is too deep for one: functions before its statement.
typedef struct npu_part {
    uint32_t expr;
    char name[NPU_LOCAL_NAME_MAX];
} npu_part;

// Statements that contain others, up to their end.
typedef struct npu_block {
    uint32_t name_count;                // number of names visible before
    bool is_split;                      // its statements are in several functions
    uint32_t weight;                    // of statements in the open function; 0: none is open
    char function[NPU_LOCAL_NAME_MAX];  // the open function
} npu_block;

enum { NPU_USES_VARIABLE = 1, NPU_USES_ENTRY = 2 };

typedef struct npu_expand {
    npu_emitter *emitter;
    const ptowsp_program_tables *tables;
    npu_text *out;
    npu_text line;  // being built
    npu_text place;
    uint32_t depth;           // of braces
    const char *walker;       // the walking object: run, or the process
    uint32_t pipeline_count;  // so far
    bool is_in_process;
    char process_name[NPU_LOCAL_NAME_MAX];
    npu_locals function, process;  // locals: of a process its arrays, all else of the function
    uint8_t *variable_uses;        // by variable
    uint32_t *variable_suffixes, *entry_suffixes;  // by variable: of its name; 0: no suffix
    uint32_t *channel_suffixes;                    // by channel
    uint32_t *storage;                             // of these and of the locals' tables
    uint8_t *tensors;   // by tensor: loaded by the processes of a pipeline
    uint8_t *seen;      // by statement: its workload has been searched for loads
    npu_taken names;    // that are visible here
    npu_block *blocks;  // that are open
    uint32_t block_count, block_capacity;
    npu_part *parts;
    uint32_t part_count, part_capacity;
    bool is_out_of_memory;
} npu_expand;

// -- lines (npu_expand_text.c) --------------------------------------------------------------------

// Adds to the line.
NPU_INTERNAL void npu_add(npu_expand *x, const char *format, ...) NPU_PRINTF(2, 3);
// Adds to the line, and ends it.
NPU_INTERNAL void npu_line(npu_expand *x, const char *format, ...) NPU_PRINTF(2, 3);
// Ends the line: indented, broken where it is too long.
NPU_INTERNAL void npu_end_line(npu_expand *x);
// Ends it as a comment.
NPU_INTERNAL void npu_end_comment(npu_expand *x);
// Ends the line with an opening brace; writes a line with a closing one, and `behind` after it.
NPU_INTERNAL void npu_open(npu_expand *x);
NPU_INTERNAL void npu_close(npu_expand *x, const char *behind);
// A comment with a statement's place.
NPU_INTERNAL void npu_place_comment(npu_expand *x, uint32_t node);

// -- names (npu_expand_names.c) -------------------------------------------------------------------

// Makes a name that differs from all visible ones, and makes it visible: base, base_2, ... Returns
// the number that was added, 0 if none was. Names are visible until npu_close_names leaves as many
// as there were before.
NPU_INTERNAL uint32_t npu_open_name_of(npu_expand *x, const char *base,
                                       char out_name[NPU_LOCAL_NAME_MAX]);
NPU_INTERNAL void npu_close_names(npu_expand *x, uint32_t count);
NPU_INTERNAL void npu_add_variable(npu_expand *x, uint32_t variable);
NPU_INTERNAL void npu_add_entry(npu_expand *x, uint32_t variable);

// Do loops over an axis count to a bound size?
NPU_INTERNAL bool npu_axis_is_counted(const npu_expand *x, uint32_t axis);
NPU_INTERNAL void npu_name_variable(npu_expand *x, uint32_t variable);
NPU_INTERNAL void npu_name_entry(npu_expand *x, uint32_t variable);
// The name of a collected local.
NPU_INTERNAL const char *npu_local_name(const npu_expand *x, npu_local_kind kind, uint32_t id);
// Collects the locals of statements [begin, end): of a function, without arrays that are read in
// processes; or of a process, these arrays. npu_print_locals gives them names.
NPU_INTERNAL void npu_collect_function(npu_expand *x, uint32_t begin, uint32_t end);
NPU_INTERNAL void npu_collect_process(npu_expand *x, uint32_t begin, uint32_t end);
// The same for expressions.
NPU_INTERNAL void npu_collect_values(npu_expand *x, const uint32_t *exprs, uint32_t count);
NPU_INTERNAL void npu_print_locals(npu_expand *x, npu_locals *locals);
NPU_INTERNAL void npu_forget_locals(npu_locals *locals);

// -- expressions (npu_expr.c) ---------------------------------------------------------------------

// The context of a literal: its type is known (b + 1, task.axis(1)), or it stands alone.
typedef enum npu_literal { NPU_LITERAL_PLAIN, NPU_LITERAL_TYPED } npu_literal;

// Adds an expression to the line; 0 is the literal 0.
NPU_INTERNAL void npu_add_expr(npu_expand *x, uint32_t expr, npu_literal literal);
// Adds a list of them, with commas between.
NPU_INTERNAL void npu_add_exprs(npu_expand *x, const uint32_t *exprs, uint32_t count,
                                npu_literal literal);
// A literal beside a u64, or where one is expected.
NPU_INTERNAL void npu_add_u64(npu_expand *x, uint64_t value);
NPU_INTERNAL npu_local_kind npu_array_local(ptowsp_type type);
NPU_INTERNAL bool npu_expr_has(const npu_expand *x, uint32_t expr, ptowsp_expr_kind kind);
// Is it a bool variable compared with itself? Compilers warn about that, so its value is printed,
// true or false.
NPU_INTERNAL bool npu_expr_is_tautology(const npu_expand *x, const ptowsp_expr_info *e);
// Prints the parts that an expression needs before its statement. Call it before the line begins.
NPU_INTERNAL void npu_prepare_expr(npu_expand *x, uint32_t expr);

// -- statements (npu_expand.c, npu_expand_pipeline.c) ---------------------------------------------

#define NPU_WALKER "run"

NPU_INTERNAL const char *npu_type(ptowsp_type type);
NPU_INTERNAL const char *npu_access(const ptowsp_view_info *view);
// The expressions of a view, in the order in which they are evaluated. Returns how many.
#define NPU_VIEW_EXPR_MAX (PTOWSP_VIEW_LEAD_MAX + 4)
NPU_INTERNAL uint32_t npu_view_exprs(const ptowsp_view_info *view,
                                     uint32_t exprs[NPU_VIEW_EXPR_MAX]);
// Call before a statement with expressions: prints their parts, and the place if they can fail.
NPU_INTERNAL void npu_before_exprs(npu_expand *x, uint32_t node, const uint32_t *exprs,
                                   uint32_t count);
// call({0, 1}); of edges.
NPU_INTERNAL void npu_edges(npu_expand *x, const char *call, const uint32_t *edges, uint32_t count);
// Adds `for (i64 b = 0; b < batch && run.good(); b++) `.
NPU_INTERNAL void npu_add_counted_for(npu_expand *x, uint32_t variable, uint32_t axis);
// Do statements [begin, end) use the walking object?
NPU_INTERNAL bool npu_is_walked(const npu_expand *x, uint32_t begin, uint32_t end);

// Statements of pipelines and processes, and the ends of both.
NPU_INTERNAL void npu_pipeline_statement(npu_expand *x, uint32_t i, const ptowsp_statement *s);
NPU_INTERNAL void npu_pipeline_end(npu_expand *x, const ptowsp_statement *begin);

#endif
