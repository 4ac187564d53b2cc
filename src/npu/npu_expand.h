// The state that the parts of the emitter of aicpu/expand.cpp share: its position, and its lines.

#ifndef NPU_EXPAND_H
#define NPU_EXPAND_H

#include "npu.h"

#define NPU_LINE_MAX 100  // columns that have spaces to break at

// Parts of an expression that is too deep for one: functions before its statement.
typedef struct npu_part {
    uint32_t expr, number;
} npu_part;

// Statements that contain others, up to their end.
typedef struct npu_block {
    bool is_split;      // its statements are in several functions
    uint32_t weight;    // of statements in the open function; 0: none is open
    uint32_t function;  // the number of the open function
} npu_block;

typedef struct npu_expand {
    npu_emitter *emitter;
    const ptowsp_program_tables *tables;
    npu_text *out;
    npu_text line;  // being built
    npu_text place;
    uint32_t depth;                  // of braces
    char walker[NPU_NAME_MAX + 16];  // the walking object: run, or the process'
    uint32_t pipeline_count;         // so far
    uint8_t *is_entry;               // by variable: of a sparse loop; the others are in its block
    uint8_t *tensors;                // by tensor: loaded by the processes of a pipeline
    uint8_t *seen;                   // by statement: its workload has been searched for loads
    npu_block *blocks;               // that are open
    uint32_t block_count, block_capacity;
    npu_part *parts;
    uint32_t part_count, part_capacity;
    uint32_t function_count;  // of parts and blocks, so far
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
NPU_INTERNAL bool npu_expr_has(const npu_expand *x, uint32_t expr, ptowsp_expr_kind kind);
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
// Adds a variable's name.
NPU_INTERNAL void npu_add_variable(npu_expand *x, uint32_t variable);
// Adds `for (i64 b = 0; b < run.size(AXIS_batch) && run.good(); b++) `.
NPU_INTERNAL void npu_add_counted_for(npu_expand *x, uint32_t variable, uint32_t axis);

// Statements of pipelines and processes, and the ends of both.
NPU_INTERNAL void npu_pipeline_statement(npu_expand *x, uint32_t i, const ptowsp_statement *s);
NPU_INTERNAL void npu_pipeline_end(npu_expand *x, const ptowsp_statement *begin);

#endif
