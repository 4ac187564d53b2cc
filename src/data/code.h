// Scalar expressions compiled to three-address code over 64-bit cells.

#ifndef PWSP_CODE_H
#define PWSP_CODE_H

#include "../base/lookup.h"
#include "array.h"
#include "expr.h"

// Cells that intermediate values may need at most: two for each operator in another, in a key that
// reads a tag.
#define PWSP_CODE_TEMP_MAX (4 * PTOWSP_EXPR_DEPTH_MAX + 8)

// A compiled expression: run instructions [begin, end), then its value is in the cell. For a leaf
// there is nothing to run.
typedef struct pwsp_code {
    uint32_t begin, end, cell;
    uint32_t expr;    // its source, as the owner of the code numbers it; 0: none
    uint32_t column;  // where its values are while a loop runs in blocks; 0: nowhere
} pwsp_code;

typedef struct pwsp_instruction {
    uint32_t opcode;  // pwsp_opcode
    uint32_t out, a, b, c;
} pwsp_instruction;

// The first read outside an array.
typedef struct pwsp_fault {
    bool is_set;
    uint32_t array;
    int64_t index;
} pwsp_fault;

// The meaning of a leaf: a cell, or (id != 0) another expression.
typedef struct pwsp_leaf {
    uint32_t cell;
    uint32_t id;
} pwsp_leaf;

// Compiles expressions; all code goes into one array, all constants into one list of cells.
typedef struct pwsp_coder {
    const pwsp_exprs *exprs;
    const pwsp_memory *memory;
    bool (*leaf)(void *user, const pwsp_expr_node *node, pwsp_leaf *out_leaf);
    void *user;
    uint32_t first_temp;   // cells [first_temp, first_temp + PWSP_CODE_TEMP_MAX)
    uint32_t first_const;  // cells from here on
    pwsp_instruction *code;
    uint64_t code_count, code_capacity;
    uint64_t *consts;
    uint64_t const_count, const_capacity;
    pwsp_lookup places;  // of consts
    uint64_t code_max;   // where an expression and the tags it reads become too large
    bool is_out_of_memory, is_too_large;
} pwsp_coder;

// Compiles an expression. False when memory is out or `leaf` returned false.
PWSP_INTERNAL bool pwsp_coder_compile(pwsp_coder *coder, uint32_t id, pwsp_code *out_code);

// The cell of a constant.
PWSP_INTERNAL bool pwsp_coder_const(pwsp_coder *coder, uint64_t value, uint32_t *out_cell);
PWSP_INTERNAL void pwsp_coder_free(pwsp_coder *coder);

// Runs code that is not empty. Requires that all arrays it reads are bound.
PWSP_INTERNAL void pwsp_code_run(const pwsp_instruction *code, uint32_t begin, uint32_t end,
                                 uint64_t *cells, const pwsp_array *arrays, pwsp_fault *fault);

PWSP_INLINE uint64_t pwsp_code_value(const pwsp_instruction *code, pwsp_code range, uint64_t *cells,
                                     const pwsp_array *arrays, pwsp_fault *fault) {
    if (range.begin != range.end) {
        pwsp_code_run(code, range.begin, range.end, cells, arrays, fault);
    }
    return cells[range.cell];
}

#endif
