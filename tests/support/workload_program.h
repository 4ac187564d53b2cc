// Small random programs, for the property tests of workloads: axes, tensors, kernels, and a tree of
// statements with expressions, all as plain structs with ints for links. From them a module is
// built through the public functions, and workload_reference.h walks the same tree slowly.
//
// A program is what is compiled; bindings are what changes from run to run (sizes, lengths, rows of
// sparse axes, symbols, arrays, slots, data). Every program is valid for all bindings made for it:
// indices stay inside their tensors by construction.

#ifndef PTOWSP_WORKLOAD_PROGRAM_H
#define PTOWSP_WORKLOAD_PROGRAM_H

#include "lane_fixture.h"

enum {
    REF_AXIS_MAX = 6,
    REF_TENSOR_MAX = 7,
    REF_RANK_MAX = 4,
    REF_KERNEL_MAX = 4,
    REF_TILE_MAX = 3,
    REF_SCALAR_MAX = 2,
    REF_TASK_AXIS_MAX = 3,
    REF_AFTER_MAX = 2,
    REF_WORKLOAD_MAX = 3,
    REF_PARAM_MAX = 2,
    REF_SYMBOL_COUNT = 3,
    REF_ARRAY_COUNT = 3,
    REF_ARRAY_LENGTH = 6,
    REF_SLOT_COUNT = 6,
    REF_TAG_COUNT = 3,
    REF_SIZE_MAX = 5,    // of dense and dynamic axes
    REF_ROW_MAX = 4,     // of ragged and sparse axes
    REF_LENGTH_MAX = 4,  // of a row
    REF_COLUMN_END = 6,  // of a sparse axis
    REF_CELL_MAX = 8192,
    REF_EXPR_MAX = 6000,
    REF_STMT_MAX = 300,
    REF_ARG_MAX = REF_TASK_AXIS_MAX + 2 * REF_TILE_MAX + REF_SCALAR_MAX
};

// Whether some memory is bound to two tensors.
enum { REF_WITH_ALIASES = 1 };

// -- the structs ----------------------------------------------------------------------------------

// clang-format off
#define REF_BINARY_OPS(OP)                                                                         \
    OP(ADD, add) OP(SUB, sub) OP(MUL, mul) OP(DIV, div) OP(REM, rem) OP(MIN, min) OP(MAX, max)     \
    OP(BITAND, bitand) OP(BITOR, bitor) OP(BITXOR, bitxor) OP(SHL, shl) OP(SHR, shr) OP(EQ, eq)    \
    OP(NE, ne) OP(LT, lt) OP(LE, le) OP(GT, gt) OP(GE, ge) OP(AND, and) OP(OR, or)
#define REF_UNARY_OPS(OP)                                                                          \
    OP(NEG, neg) OP(BITNOT, bitnot) OP(NOT, not)
#define REF_CASTS(OP) OP(TO_I64, I64) OP(TO_U64, U64) OP(TO_BOOL, BOOL)

typedef enum ref_op {
    REF_NONE = 0,
    REF_LITERAL,        // value
    REF_VARIABLE,       // value: the loop's statement
    REF_PARAM,          // value: workload * REF_PARAM_MAX + number
    REF_SYMBOL,         // value: its number
    REF_ARRAY,          // value: its number; a: index
    REF_LENGTHS,        // value: a ragged axis; a: index
    REF_AXIS_SIZE,      // value: a dense or dynamic axis
    REF_SLOT,           // value: its number
    REF_TASK_VARIABLE,  // of the loop around the task that is called v0
    REF_TASK_ARG,       // value: its number
    REF_TASK_TAG,       // value: its number
    REF_SELECT,
#define REF_OP_ENUM(name, function) REF_##name,
    REF_BINARY_OPS(REF_OP_ENUM)
    REF_UNARY_OPS(REF_OP_ENUM)
    REF_CASTS(REF_OP_ENUM)
#undef REF_OP_ENUM
    REF_OP_COUNT
} ref_op;
// clang-format on

typedef struct ref_expr {
    ref_op op;
    ptowsp_type type;
    int a, b, c;  // operands
    uint64_t value;
} ref_expr;

typedef enum ref_axis_kind { REF_DENSE, REF_DYNAMIC, REF_RAGGED, REF_SPARSE } ref_axis_kind;

typedef struct ref_axis {
    ref_axis_kind kind;
    int64_t size;        // dense
    int rows;            // ragged and sparse
    ptowsp_dtype dtype;  // of its arrays
} ref_axis;

typedef enum ref_layout { REF_ROW_MAJOR, REF_PADDED, REF_COLUMN_MAJOR, REF_REVERSED } ref_layout;

typedef struct ref_tensor {
    ptowsp_dtype dtype;  // i32, or any integer when only slots are loaded from it
    uint32_t rank;
    int64_t shape[REF_RANK_MAX];  // or PTOWSP_DYNAMIC, and then
    int size_axis[REF_RANK_MAX];  // the axis whose size it has, at least 1
    bool is_input;                // no task writes it
    bool is_loaded_only;          // no task reads it either
    int memory_of;                // the tensor whose memory it shares, or itself
    ref_layout layout;
} ref_tensor;

typedef enum ref_cost { REF_COST_RETURNED, REF_COST_FUNCTION, REF_COST_CONSTANT } ref_cost;

typedef struct ref_kernel {
    uint32_t axis_count, tile_count, scalar_count;
    ptowsp_direction directions[REF_TILE_MAX];
    int64_t rows[REF_TILE_MAX], cols[REF_TILE_MAX];  // or PTOWSP_DYNAMIC
    ptowsp_type scalar_types[REF_SCALAR_MAX];
    ptowsp_unit unit;
    ref_cost cost;
    int cycles_shape;
    uint64_t salt;
} ref_kernel;

typedef struct ref_view {
    int tensor;
    int index[REF_RANK_MAX - 2];
    int row, col;
    int64_t rows, cols;  // 0: the default
} ref_view;

typedef enum ref_kind {
    REF_WORKLOAD,
    REF_PARALLEL,
    REF_FOR_EACH,
    REF_SELECT_LOOP,
    REF_WHEN,
    REF_OTHERWISE,
    REF_COMBINE,
    REF_SEQUENCE,
    REF_TASK,
    REF_SLOT_SET,
    REF_SLOT_LOAD,
    REF_CALL
} ref_kind;

typedef struct ref_stmt {
    ref_kind kind;
    int parent, first, last, next;  // -1: none
    int workload;
    int loop_depth;  // loops around it in its workload
    int axis, row;   // loops; row 0: the axis as it is
    int value;       // condition, value of a slot
    int slot;
    ref_view view;           // slot loads
    int load_row, load_col;  // slot loads
    int kernel;
    int axes[REF_TASK_AXIS_MAX];
    ref_view views[REF_TILE_MAX];
    int scalars[REF_SCALAR_MAX];
    int tags[REF_TAG_COUNT];  // by tag; 0: it has none
    int after[REF_AFTER_MAX];
    int after_count;
    int callee;
    int args[REF_PARAM_MAX];
} ref_stmt;

typedef struct ref_program {
    uint64_t random;
    ref_expr exprs[REF_EXPR_MAX];
    int expr_count;
    ref_stmt stmts[REF_STMT_MAX + 1];  // the last is for those that do not fit
    int stmt_count;
    bool is_full;  // something did not fit: do not use it
    ref_axis axes[REF_AXIS_MAX];
    int axis_count;
    ref_tensor tensors[REF_TENSOR_MAX];
    int tensor_count;
    ref_kernel kernels[REF_KERNEL_MAX];
    int kernel_count;
    ptowsp_dtype array_dtypes[REF_ARRAY_COUNT];
    int roots[REF_WORKLOAD_MAX];  // statements
    int workload_count;
    int param_counts[REF_WORKLOAD_MAX];
    ptowsp_type param_types[REF_WORKLOAD_MAX][REF_PARAM_MAX];
    bool main_is_last;  // its workloads are built from the last to the first
    bool has_aliases;
    bool has_v0;         // a loop v0 is around every task
    bool loads_written;  // slots are loaded from tensors that tasks write
    bool can_measure;    // every kernel has a cost
    bool is_loaded[REF_TENSOR_MAX];
} ref_program;

typedef struct ref_bindings {
    int64_t sizes[REF_AXIS_MAX];
    int64_t lengths[REF_AXIS_MAX][REF_ROW_MAX];
    int64_t indptr[REF_AXIS_MAX][REF_ROW_MAX + 1];
    int64_t indices[REF_AXIS_MAX][REF_ROW_MAX * REF_LENGTH_MAX];
    uint64_t symbols[REF_SYMBOL_COUNT];
    int64_t arrays[REF_ARRAY_COUNT][REF_ARRAY_LENGTH];
    uint64_t slots[REF_SLOT_COUNT];
    int64_t shape[REF_TENSOR_MAX][REF_RANK_MAX];
    int64_t strides[REF_TENSOR_MAX][REF_RANK_MAX];
    int block[REF_TENSOR_MAX];       // the first cell of its memory
    int block_size[REF_TENSOR_MAX];  // cells
    int origin[REF_TENSOR_MAX];      // the cell of its first element
    int64_t cells[REF_CELL_MAX];     // the memory of all tensors, an element a cell
    int cell_count;
} ref_bindings;

// -- random numbers and nodes ---------------------------------------------------------------------

static inline int ref_in(ref_program *p, int low, int high) {
    return (int)test_random_in(&p->random, low, high);
}

static inline bool ref_chance(ref_program *p, int one_in) {
    return ref_in(p, 1, one_in) == 1;
}

static inline int ref_new(ref_program *p, ref_op op, ptowsp_type type, uint64_t value) {
    if (p->expr_count == REF_EXPR_MAX) {
        p->is_full = true;
        p->expr_count = 1;
    }
    ref_expr *e = &p->exprs[p->expr_count];
    memset(e, 0, sizeof *e);
    e->op = op;
    e->type = type;
    e->value = value;
    return p->expr_count++;
}

static inline int ref_literal(ref_program *p, int64_t value) {
    return ref_new(p, REF_LITERAL, PTOWSP_TYPE_I64, (uint64_t)value);
}

static inline int ref_unary(ref_program *p, ref_op op, int a) {
    ptowsp_type type = p->exprs[a].type;
    switch ((int)op) {
    case REF_NOT:
    case REF_TO_BOOL: type = PTOWSP_TYPE_BOOL; break;
    case REF_TO_I64: type = PTOWSP_TYPE_I64; break;
    case REF_TO_U64: type = PTOWSP_TYPE_U64; break;
    default: break;
    }
    int e = ref_new(p, op, type, 0);
    p->exprs[e].a = a;
    return e;
}

static inline int ref_binary(ref_program *p, ref_op op, int a, int b) {
    bool is_bool = REF_EQ <= op && op <= REF_OR;
    int e = ref_new(p, op, is_bool ? PTOWSP_TYPE_BOOL : p->exprs[a].type, 0);
    p->exprs[e].a = a;
    p->exprs[e].b = b;
    return e;
}

static inline int ref_select(ref_program *p, int condition, int a, int b) {
    int e = ref_new(p, REF_SELECT, p->exprs[a].type, 0);
    p->exprs[e].a = condition;
    p->exprs[e].b = a;
    p->exprs[e].c = b;
    return e;
}

static inline int ref_cast(ref_program *p, ptowsp_type type, int a) {
    if (p->exprs[a].type == type) {
        return a;
    }
    return ref_unary(p,
                     type == PTOWSP_TYPE_I64   ? REF_TO_I64
                     : type == PTOWSP_TYPE_U64 ? REF_TO_U64
                                               : REF_TO_BOOL,
                     a);
}

// -- data types -----------------------------------------------------------------------------------

static inline size_t ref_dtype_size(ptowsp_dtype dtype) {
    switch ((int)dtype) {
    case PTOWSP_I8:
    case PTOWSP_U8:
    case PTOWSP_BOOL: return 1;
    case PTOWSP_I16:
    case PTOWSP_U16: return 2;
    case PTOWSP_I32:
    case PTOWSP_U32: return 4;
    default: return 8;
    }
}

static inline ptowsp_type ref_dtype_type(ptowsp_dtype dtype) {
    switch ((int)dtype) {
    case PTOWSP_BOOL: return PTOWSP_TYPE_BOOL;
    case PTOWSP_U8:
    case PTOWSP_U16:
    case PTOWSP_U32:
    case PTOWSP_U64: return PTOWSP_TYPE_U64;
    default: return PTOWSP_TYPE_I64;
    }
}

static inline ptowsp_dtype ref_any_dtype(ref_program *p) {
    static const ptowsp_dtype all[] = {PTOWSP_I8,  PTOWSP_I16, PTOWSP_I32, PTOWSP_I64, PTOWSP_U8,
                                       PTOWSP_U16, PTOWSP_U32, PTOWSP_U64, PTOWSP_BOOL};
    return all[ref_in(p, 0, 8)];
}

static inline ptowsp_dtype ref_length_dtype(ref_program *p) {
    static const ptowsp_dtype all[] = {PTOWSP_I32, PTOWSP_I64, PTOWSP_U32, PTOWSP_U64};
    return all[ref_in(p, 0, 3)];
}

// A small value that the type can hold.
static inline int64_t ref_value_of(uint64_t *random, ptowsp_dtype dtype) {
    ptowsp_type type = ref_dtype_type(dtype);
    return test_random_in(random, type == PTOWSP_TYPE_I64 ? -4 : 0,
                          type == PTOWSP_TYPE_BOOL ? 1 : 11);
}

// -- random expressions ---------------------------------------------------------------------------

// The loops around a place (a scope that is open there), innermost first.
static inline int ref_loops_around(const ref_program *p, int scope, int *loops) {
    int count = 0;
    for (int s = scope; s >= 0; s = p->stmts[s].parent) {
        ref_kind kind = p->stmts[s].kind;
        if (kind == REF_PARALLEL || kind == REF_FOR_EACH || kind == REF_SELECT_LOOP) {
            loops[count++] = s;
        }
    }
    return count;
}

// What the variable of a loop is always below.
static inline int64_t ref_variable_end(const ref_program *p, int loop) {
    const ref_axis *axis = &p->axes[p->stmts[loop].axis];
    switch (axis->kind) {
    case REF_DENSE: return axis->size;
    case REF_DYNAMIC: return REF_SIZE_MAX;
    case REF_RAGGED: return p->stmts[loop].row ? REF_LENGTH_MAX : axis->rows * REF_LENGTH_MAX;
    default: return REF_COLUMN_END;
    }
}

static inline int ref_variable(ref_program *p, int loop) {
    return ref_new(p, REF_VARIABLE, PTOWSP_TYPE_I64, (uint64_t)loop);
}

static inline int ref_slot(ref_program *p, ptowsp_type type) {
    return ref_new(p, REF_SLOT, type, (uint64_t)ref_in(p, 0, REF_SLOT_COUNT - 1));
}

static inline int ref_gen_nonneg(ref_program *p, int scope, int depth);

// An element of an array, or a length of a ragged axis: with an index that is inside, or with one
// that may not be, behind a guard.
static inline int ref_gen_element(ref_program *p, int scope) {
    int array = ref_in(p, 0, REF_ARRAY_COUNT - 1), length = REF_ARRAY_LENGTH;
    ref_op op = REF_ARRAY;
    ptowsp_dtype dtype = p->array_dtypes[array];
    for (int i = 0; i < p->axis_count; i++) {
        if (p->axes[i].kind == REF_RAGGED && ref_chance(p, 3)) {
            op = REF_LENGTHS;
            array = i;
            length = p->axes[i].rows;
            dtype = p->axes[i].dtype;
        }
    }
    bool is_guarded = ref_chance(p, 3);
    int index = ref_gen_nonneg(p, scope, 1);
    if (!is_guarded) {
        index = ref_binary(p, REF_REM, index, ref_literal(p, length));
    }
    int e = ref_new(p, op, ref_dtype_type(dtype), (uint64_t)array);
    p->exprs[e].a = index;
    e = ref_cast(p, PTOWSP_TYPE_I64, e);
    if (is_guarded) {
        int inside = ref_binary(p, REF_LT, index, ref_literal(p, length));
        e = ref_select(p, inside, e, ref_literal(p, 2));
    }
    return e;
}

// Any leaf that is an i64.
static inline int ref_gen_leaf(ref_program *p, int scope) {
    int loops[REF_STMT_MAX];
    int loop_count = ref_loops_around(p, scope, loops);
    int workload = scope >= 0 ? p->stmts[scope].workload : -1;
    switch (ref_in(p, 0, 9)) {
    case 0: return ref_literal(p, ref_in(p, -3, 9));
    case 1: return ref_cast(p, PTOWSP_TYPE_I64, ref_gen_element(p, scope));
    case 2: return ref_slot(p, PTOWSP_TYPE_I64);
    case 3:
        return ref_unary(
            p, REF_TO_I64,
            ref_new(p, REF_SYMBOL, PTOWSP_TYPE_U64, (uint64_t)ref_in(p, 0, REF_SYMBOL_COUNT - 1)));
    case 4:
    case 5:
        if (workload >= 0 && p->param_counts[workload] > 0) {
            int param = ref_in(p, 0, p->param_counts[workload] - 1);
            return ref_cast(p, PTOWSP_TYPE_I64,
                            ref_new(p, REF_PARAM, p->param_types[workload][param],
                                    (uint64_t)(workload * REF_PARAM_MAX + param)));
        }
        break;
    default: break;
    }
    return loop_count > 0 ? ref_variable(p, loops[ref_in(p, 0, loop_count - 1)])
                          : ref_literal(p, ref_in(p, 0, 5));
}

// An i64 that is never negative, and small.
static inline int ref_gen_nonneg(ref_program *p, int scope, int depth) {
    int loops[REF_STMT_MAX];
    int loop_count = ref_loops_around(p, scope, loops);
    int axis = ref_in(p, 0, p->axis_count - 1);
    int choice = ref_in(p, 0, 8);
    if (choice == 0) {
        return ref_literal(p, ref_in(p, 0, 7));
    } else if (choice == 1 && p->axes[axis].kind <= REF_DYNAMIC) {
        return ref_new(p, REF_AXIS_SIZE, PTOWSP_TYPE_I64, (uint64_t)axis);
    } else if (choice <= 3 && depth > 0) {
        return ref_binary(p, REF_BITAND, ref_gen_leaf(p, scope), ref_literal(p, 7));
    } else if (choice <= 5 && depth > 0) {
        return ref_binary(p, choice == 4 ? REF_ADD : REF_MUL, ref_gen_nonneg(p, scope, 0),
                          ref_gen_nonneg(p, scope, 0));
    }
    return loop_count > 0 ? ref_variable(p, loops[ref_in(p, 0, loop_count - 1)])
                          : ref_literal(p, ref_in(p, 0, 5));
}

static inline int ref_gen_bool(ref_program *p, int scope, int depth);

// An integer of the type, of any value.
static inline int ref_gen_integer(ref_program *p, int scope, ptowsp_type type, int depth) {
    if (depth == 0 || ref_chance(p, 3)) {
        return ref_cast(p, type, ref_gen_leaf(p, scope));
    }
    int choice = ref_in(p, 0, 15);
    int a = ref_gen_integer(p, scope, type, depth - 1);
    if (choice == 12) {
        return ref_unary(p, REF_NEG, a);
    } else if (choice == 13) {
        return ref_unary(p, REF_BITNOT, a);
    } else if (choice == 14) {
        return ref_select(p, ref_gen_bool(p, scope, depth - 1), a,
                          ref_gen_integer(p, scope, type, depth - 1));
    } else if (choice == 15) {
        return ref_cast(p, type, ref_gen_bool(p, scope, depth - 1));
    }
    return ref_binary(p, (ref_op)(REF_ADD + choice), a, ref_gen_integer(p, scope, type, depth - 1));
}

static inline int ref_gen_bool(ref_program *p, int scope, int depth) {
    int choice = ref_in(p, 0, depth > 0 ? 7 : 4);
    if (choice == 0) {
        return ref_slot(p, PTOWSP_TYPE_BOOL);
    } else if (choice == 1) {
        return ref_unary(p, REF_TO_BOOL, ref_gen_leaf(p, scope));
    } else if (choice == 7) {
        return ref_unary(p, REF_NOT, ref_gen_bool(p, scope, depth - 1));
    } else if (choice >= 5) {
        return ref_binary(p, choice == 5 ? REF_AND : REF_OR, ref_gen_bool(p, scope, depth - 1),
                          ref_gen_bool(p, scope, depth - 1));
    }
    ptowsp_type type = ref_chance(p, 3) ? PTOWSP_TYPE_U64 : PTOWSP_TYPE_I64;
    int a = ref_gen_integer(p, scope, type, depth > 0 ? depth - 1 : 0);
    return ref_binary(p, (ref_op)(REF_EQ + ref_in(p, 0, 5)), a,
                      ref_gen_integer(p, scope, type, depth > 0 ? depth - 1 : 0));
}

static inline int ref_gen_typed(ref_program *p, int scope, ptowsp_type type, int depth) {
    return type == PTOWSP_TYPE_BOOL ? ref_gen_bool(p, scope, depth)
                                    : ref_gen_integer(p, scope, type, depth);
}

// An index of a tensor's dimension, always inside.
static inline int ref_gen_index(ref_program *p, int scope, const ref_tensor *tensor, uint32_t d) {
    int64_t size = tensor->shape[d];
    bool is_dynamic = size == PTOWSP_DYNAMIC;
    int loops[REF_STMT_MAX];
    int loop_count = ref_loops_around(p, scope, loops);
    if (loop_count > 0 && !ref_chance(p, 4)) {
        int loop = loops[ref_in(p, 0, loop_count - 1)];
        int64_t end = ref_variable_end(p, loop);
        if (is_dynamic && p->stmts[loop].axis == tensor->size_axis[d]) {
            return ref_variable(p, loop);
        }
        if (!is_dynamic && end <= size) {
            int64_t factor = end > 1 ? test_random_in(&p->random, 1, (size - 1) / (end - 1)) : 1;
            int64_t rest = size - 1 - (end > 1 ? factor * (end - 1) : 0);
            int e = ref_variable(p, loop);
            if (factor > 1) {
                e = ref_binary(p, REF_MUL, e, ref_literal(p, factor));
            }
            if (rest > 0 && end > 0 && ref_chance(p, 2)) {
                e = ref_binary(p, REF_ADD, e, ref_literal(p, test_random_in(&p->random, 1, rest)));
            }
            return e;
        }
    }
    if (!is_dynamic && ref_chance(p, 2)) {
        return ref_literal(p, test_random_in(&p->random, 0, size - 1));
    }
    int count = ref_literal(p, size);
    if (is_dynamic) {
        int axis = ref_new(p, REF_AXIS_SIZE, PTOWSP_TYPE_I64, (uint64_t)tensor->size_axis[d]);
        count = ref_binary(p, REF_MAX, axis, ref_literal(p, 1));
    }
    return ref_binary(p, REF_REM, ref_gen_nonneg(p, scope, 1), count);
}

// A key of a schedule: an integer or bool over what keys may use.
static inline int ref_gen_key(ref_program *p, int depth) {
    if (depth > 0 && !ref_chance(p, 3)) {
        int a = ref_gen_key(p, depth - 1);
        int b = ref_gen_key(p, depth - 1);
        ptowsp_type type = ref_chance(p, 2) ? PTOWSP_TYPE_I64 : PTOWSP_TYPE_U64;
        static const ref_op ops[] = {REF_ADD,    REF_SUB, REF_MUL, REF_DIV, REF_REM, REF_BITXOR,
                                     REF_BITAND, REF_SHR, REF_LT,  REF_EQ,  REF_MIN};
        return ref_binary(p, ops[ref_in(p, 0, 10)], ref_cast(p, type, a), ref_cast(p, type, b));
    }
    switch (ref_in(p, 0, 7)) {
    case 0: return ref_slot(p, ref_chance(p, 2) ? PTOWSP_TYPE_U64 : PTOWSP_TYPE_I64);
    case 1:
        return ref_new(p, REF_SYMBOL, PTOWSP_TYPE_U64,
                       (uint64_t)ref_in(p, 0, REF_SYMBOL_COUNT - 1));
    case 2: {
        int arg = ref_new(p, REF_TASK_ARG, PTOWSP_TYPE_I64, (uint64_t)ref_in(p, 0, 2));
        int index = ref_binary(p, REF_BITAND, arg, ref_literal(p, 3));
        int e = ref_new(p, REF_ARRAY, ref_dtype_type(p->array_dtypes[0]), 0);
        p->exprs[e].a = index;
        return e;
    }
    case 3:
    case 4:
        if (p->has_v0) {
            return ref_new(p, REF_TASK_VARIABLE, PTOWSP_TYPE_I64, 0);
        }
        return ref_new(p, REF_TASK_TAG, PTOWSP_TYPE_U64, (uint64_t)ref_in(p, 0, REF_TAG_COUNT - 1));
    case 5:
        return ref_new(p, REF_TASK_TAG, PTOWSP_TYPE_U64, (uint64_t)ref_in(p, 0, REF_TAG_COUNT - 1));
    default: return ref_new(p, REF_TASK_ARG, PTOWSP_TYPE_I64, (uint64_t)ref_in(p, 0, 6));
    }
}

// -- random statements ----------------------------------------------------------------------------

static inline int ref_stmt_new(ref_program *p, ref_kind kind, int parent) {
    if (p->stmt_count == REF_STMT_MAX) {
        p->is_full = true;
        parent = -1;
    }
    int s = p->is_full ? REF_STMT_MAX : p->stmt_count++;
    ref_stmt *stmt = &p->stmts[s];
    memset(stmt, 0, sizeof *stmt);
    stmt->kind = kind;
    stmt->parent = parent;
    stmt->first = stmt->last = stmt->next = -1;
    if (parent >= 0) {
        ref_stmt *around = &p->stmts[parent];
        bool in_loop = REF_PARALLEL <= around->kind && around->kind <= REF_SELECT_LOOP;
        stmt->workload = around->workload;
        stmt->loop_depth = around->loop_depth + in_loop;
        if (around->last >= 0) {
            p->stmts[around->last].next = s;
        } else {
            around->first = s;
        }
        around->last = s;
    }
    return s;
}

static inline void ref_gen_view(ref_program *p, int scope, int t, ref_view *view) {
    const ref_tensor *tensor = &p->tensors[t];
    view->tensor = t;
    for (uint32_t d = 0; d + 2 < tensor->rank; d++) {
        view->index[d] = ref_gen_index(p, scope, tensor, d);
    }
    if (tensor->rank >= 2 && !ref_chance(p, 3)) {
        view->row = ref_gen_index(p, scope, tensor, tensor->rank - 2);
    }
    if (tensor->rank >= 1 && !ref_chance(p, 3)) {
        view->col = ref_gen_index(p, scope, tensor, tensor->rank - 1);
    }
}

// Up to two earlier tasks of the same workload.
static inline void ref_gen_after(ref_program *p, int s) {
    ref_stmt *stmt = &p->stmts[s];
    for (int tries = ref_in(p, 0, 5); tries > 0 && stmt->after_count < REF_AFTER_MAX; tries--) {
        int other = ref_in(p, 0, s - 1);
        if (p->stmts[other].kind == REF_TASK && p->stmts[other].workload == stmt->workload &&
            (stmt->after_count == 0 || stmt->after[0] != other)) {
            stmt->after[stmt->after_count++] = other;
        }
    }
}

static inline void ref_gen_task(ref_program *p, int scope) {
    int s = ref_stmt_new(p, REF_TASK, scope);
    ref_stmt *stmt = &p->stmts[s];
    stmt->kernel = ref_in(p, 0, p->kernel_count - 1);
    const ref_kernel *kernel = &p->kernels[stmt->kernel];
    for (uint32_t i = 0; i < kernel->axis_count; i++) {
        stmt->axes[i] = ref_gen_integer(p, scope, PTOWSP_TYPE_I64, ref_in(p, 0, 1));
    }
    for (uint32_t i = 0; i < kernel->tile_count; i++) {
        int t = 0;
        do {
            t = ref_in(p, 0, p->tensor_count - 1);
        } while (p->tensors[t].is_loaded_only ||
                 (p->tensors[t].is_input && kernel->directions[i] != PTOWSP_IN));
        ref_view *view = &stmt->views[i];
        ref_gen_view(p, scope, t, view);
        bool is_said = ref_chance(p, 2);
        view->rows = !is_said                            ? 0
                     : kernel->rows[i] == PTOWSP_DYNAMIC ? ref_in(p, 1, 4)
                                                         : kernel->rows[i];
        view->cols = !is_said                            ? 0
                     : kernel->cols[i] == PTOWSP_DYNAMIC ? ref_in(p, 1, 4)
                                                         : kernel->cols[i];
    }
    for (uint32_t i = 0; i < kernel->scalar_count; i++) {
        stmt->scalars[i] = ref_gen_typed(p, scope, kernel->scalar_types[i], 1);
    }
    for (int i = 0; i < REF_TAG_COUNT; i++) {
        stmt->tags[i] = ref_chance(p, 2) ? ref_gen_integer(p, scope, PTOWSP_TYPE_U64, 1) : 0;
    }
    ref_gen_after(p, s);
}

static inline void ref_gen_load(ref_program *p, int scope) {
    int s = ref_stmt_new(p, REF_SLOT_LOAD, scope);
    ref_stmt *stmt = &p->stmts[s];
    ref_view *view = &stmt->view;
    stmt->slot = ref_in(p, 0, REF_SLOT_COUNT - 1);
    int t = ref_in(p, 0, p->tensor_count - 1);
    const ref_tensor *tensor = &p->tensors[t];
    ref_gen_view(p, scope, t, view);
    if (tensor->rank >= 2 && tensor->shape[tensor->rank - 2] > 1 &&
        tensor->shape[tensor->rank - 1] > 1 && ref_chance(p, 2)) {
        // A larger tile, from where it fits, and an element in it.
        view->rows = 2;
        view->cols = 2;
        view->row = ref_literal(p, ref_in(p, 0, (int)tensor->shape[tensor->rank - 2] - 2));
        view->col = ref_literal(p, ref_in(p, 0, (int)tensor->shape[tensor->rank - 1] - 2));
        stmt->load_row = ref_binary(p, REF_REM, ref_gen_nonneg(p, scope, 1), ref_literal(p, 2));
        stmt->load_col = ref_chance(p, 2) ? ref_literal(p, 1) : 0;
    }
}

static inline void ref_gen_body(ref_program *p, int scope, int depth);

static inline void ref_gen_loop(ref_program *p, int scope, int depth) {
    int axis = ref_in(p, 0, p->axis_count - 1);
    ref_kind kind = ref_chance(p, 2) ? REF_PARALLEL : REF_FOR_EACH;
    if (p->axes[axis].kind == REF_SPARSE && ref_chance(p, 2)) {
        kind = REF_SELECT_LOOP;
    }
    int row = 0;
    if (p->axes[axis].kind >= REF_RAGGED && !ref_chance(p, 3)) {
        row =
            ref_binary(p, REF_REM, ref_gen_nonneg(p, scope, 1), ref_literal(p, p->axes[axis].rows));
    }
    int s = ref_stmt_new(p, kind, scope);
    p->stmts[s].axis = axis;
    p->stmts[s].row = row;
    ref_gen_body(p, s, depth - 1);
}

static inline void ref_gen_call(ref_program *p, int scope) {
    int workload = p->stmts[scope].workload;
    if (workload + 1 == p->workload_count) {
        return;
    }
    int callee = ref_in(p, workload + 1, p->workload_count - 1);
    int s = ref_stmt_new(p, REF_CALL, scope);
    p->stmts[s].callee = callee;
    for (int i = 0; i < p->param_counts[callee]; i++) {
        p->stmts[s].args[i] = ref_gen_typed(p, scope, p->param_types[callee][i], 2);
    }
}

static inline void ref_gen_stmt(ref_program *p, int scope, int depth) {
    int choice = ref_in(p, 0, 99);
    if (choice < 40 || (depth == 0 && choice < 75)) {
        ref_gen_task(p, scope);
    } else if (choice < 65 && depth > 0) {
        ref_gen_loop(p, scope, depth);
    } else if (choice < 75) {
        int s = ref_stmt_new(p, choice < 70 ? REF_COMBINE : REF_SEQUENCE, scope);
        ref_gen_body(p, s, depth - 1);
    } else if (choice < 84) {
        int condition = ref_gen_bool(p, scope, 2);
        int s = ref_stmt_new(p, REF_WHEN, scope);
        p->stmts[s].value = condition;
        ref_gen_body(p, s, depth > 0 ? depth - 1 : 0);
        if (ref_chance(p, 2)) {
            s = ref_stmt_new(p, REF_OTHERWISE, scope);
            ref_gen_body(p, s, depth > 0 ? depth - 1 : 0);
        }
    } else if (choice < 89) {
        ptowsp_type types[] = {PTOWSP_TYPE_I64, PTOWSP_TYPE_U64, PTOWSP_TYPE_BOOL};
        int value = ref_gen_typed(p, scope, types[ref_in(p, 0, 2)], 2);
        int s = ref_stmt_new(p, REF_SLOT_SET, scope);
        p->stmts[s].slot = ref_in(p, 0, REF_SLOT_COUNT - 1);
        p->stmts[s].value = value;
    } else if (choice < 94) {
        ref_gen_load(p, scope);
    } else {
        ref_gen_call(p, scope);
    }
}

// Mostly some statements, sometimes none.
static inline void ref_gen_body(ref_program *p, int scope, int depth) {
    int count = ref_chance(p, 12) ? 0 : ref_in(p, 1, depth > 0 ? 3 : 2);
    for (int i = 0; i < count && !p->is_full; i++) {
        ref_gen_stmt(p, scope, depth);
    }
}

// -- random declarations --------------------------------------------------------------------------

static inline void ref_gen_axes(ref_program *p) {
    p->axis_count = ref_in(p, 3, REF_AXIS_MAX);
    for (int i = 0; i < p->axis_count; i++) {
        ref_axis *axis = &p->axes[i];
        axis->kind = (ref_axis_kind)ref_in(p, REF_DENSE, REF_SPARSE);
        axis->size = ref_in(p, 0, 7) ? ref_in(p, 1, REF_SIZE_MAX) : 0;
        axis->rows = ref_in(p, 1, REF_ROW_MAX);
        axis->dtype = ref_length_dtype(p);
    }
}

static inline void ref_gen_tensors(ref_program *p) {
    p->tensor_count = ref_in(p, 2, REF_TENSOR_MAX);
    for (int i = 0; i < p->tensor_count; i++) {
        ref_tensor *tensor = &p->tensors[i];
        if (REF_WITH_ALIASES && i > 1 && ref_chance(p, 32)) {
            *tensor = p->tensors[0];  // a second name for the same memory
            tensor->memory_of = 0;
            p->has_aliases = true;
            continue;
        }
        tensor->memory_of = i;
        tensor->is_input = i > 0 && ref_chance(p, 4);
        tensor->is_loaded_only = tensor->is_input && ref_chance(p, 2);
        tensor->dtype = tensor->is_loaded_only ? ref_any_dtype(p) : PTOWSP_I32;
        tensor->layout = ref_chance(p, 3) ? (ref_layout)ref_in(p, 0, 3) : REF_ROW_MAJOR;
        int rank = ref_in(p, -3, REF_RANK_MAX);
        tensor->rank = rank < 0 ? 2 : (uint32_t)rank;
        for (uint32_t d = 0; d < tensor->rank; d++) {
            int axis = ref_in(p, 0, p->axis_count - 1);
            bool is_dynamic = p->axes[axis].kind == REF_DYNAMIC && ref_chance(p, 2);
            int size = ref_in(p, 1, d + 2 < tensor->rank ? 3 : 7);
            tensor->shape[d] = is_dynamic ? PTOWSP_DYNAMIC : size;
            tensor->size_axis[d] = axis;
        }
    }
}

static inline void ref_gen_kernels(ref_program *p) {
    p->kernel_count = ref_in(p, 1, REF_KERNEL_MAX);
    p->can_measure = true;
    for (int i = 0; i < p->kernel_count; i++) {
        ref_kernel *kernel = &p->kernels[i];
        kernel->axis_count = (uint32_t)ref_in(p, 0, REF_TASK_AXIS_MAX);
        kernel->tile_count = (uint32_t)(ref_chance(p, 12) ? 0 : ref_in(p, 1, REF_TILE_MAX));
        kernel->scalar_count = (uint32_t)ref_in(p, 0, REF_SCALAR_MAX);
        for (uint32_t t = 0; t < kernel->tile_count; t++) {
            kernel->directions[t] = (ptowsp_direction)ref_in(p, PTOWSP_IN, PTOWSP_INOUT);
            kernel->rows[t] = ref_chance(p, 4) ? PTOWSP_DYNAMIC : ref_in(p, 1, 4);
            kernel->cols[t] = ref_chance(p, 4) ? PTOWSP_DYNAMIC : ref_in(p, 1, 4);
        }
        for (uint32_t s = 0; s < kernel->scalar_count; s++) {
            kernel->scalar_types[s] = (ptowsp_type)ref_in(p, PTOWSP_TYPE_BOOL, PTOWSP_TYPE_U64);
        }
        kernel->unit = ref_chance(p, 3) ? PTOWSP_UNIT_CUBE : PTOWSP_UNIT_VECTOR;
        int cost = ref_in(p, 0, 9);
        kernel->cost = cost == 0  ? REF_COST_RETURNED
                       : cost < 3 ? REF_COST_CONSTANT
                                  : REF_COST_FUNCTION;
        kernel->cycles_shape = ref_in(p, 0, 5);
        kernel->salt = test_random(&p->random);
        bool is_mix = kernel->unit == PTOWSP_UNIT_CUBE && kernel->salt % 2;
        kernel->unit = is_mix ? PTOWSP_UNIT_MIX : kernel->unit;
        p->can_measure = p->can_measure && kernel->cost != REF_COST_RETURNED;
    }
}

// What the tests want to know about the whole.
static inline void ref_look(ref_program *p) {
    bool is_written[REF_TENSOR_MAX] = {false};
    p->has_v0 = true;
    for (int s = 0; s < p->stmt_count; s++) {
        const ref_stmt *stmt = &p->stmts[s];
        if (stmt->kind == REF_TASK) {
            p->has_v0 = p->has_v0 && stmt->loop_depth > 0;
            const ref_kernel *kernel = &p->kernels[stmt->kernel];
            for (uint32_t t = 0; t < kernel->tile_count; t++) {
                if (kernel->directions[t] != PTOWSP_IN) {
                    is_written[p->tensors[stmt->views[t].tensor].memory_of] = true;
                }
            }
        } else if (stmt->kind == REF_SLOT_LOAD) {
            p->is_loaded[stmt->view.tensor] = true;
        }
    }
    for (int t = 0; t < p->tensor_count; t++) {
        p->loads_written =
            p->loads_written || (p->is_loaded[t] && is_written[p->tensors[t].memory_of]);
    }
}

// Fills *p. It may be of no use (is_full), and it may make any number of tasks.
static inline void ref_program_random(ref_program *p, uint64_t seed) {
    memset(p, 0, sizeof *p);
    p->random = seed;
    p->expr_count = 1;
    ref_gen_axes(p);
    ref_gen_tensors(p);
    ref_gen_kernels(p);
    for (int i = 0; i < REF_ARRAY_COUNT; i++) {
        p->array_dtypes[i] = ref_any_dtype(p);
    }
    p->workload_count = ref_chance(p, 2) ? 1 : ref_in(p, 2, REF_WORKLOAD_MAX);
    for (int w = 1; w < p->workload_count; w++) {
        p->param_counts[w] = ref_in(p, 0, REF_PARAM_MAX);
        for (int i = 0; i < p->param_counts[w]; i++) {
            p->param_types[w][i] = (ptowsp_type)ref_in(p, PTOWSP_TYPE_BOOL, PTOWSP_TYPE_U64);
        }
    }
    bool has_outer_loops = ref_chance(p, 3);
    for (int w = 0; w < p->workload_count; w++) {
        int root = ref_stmt_new(p, REF_WORKLOAD, -1);
        p->stmts[root].workload = w;
        p->roots[w] = root;
        if (has_outer_loops) {
            ref_gen_loop(p, root, 3);
        } else {
            ref_gen_body(p, root, 3);
            ref_gen_body(p, root, w == 0 ? 3 : 1);
        }
    }
    p->main_is_last = ref_chance(p, 2);
    ref_look(p);
}

// -- bindings -------------------------------------------------------------------------------------

static inline void ref_bind_axes(const ref_program *p, uint64_t *random, ref_bindings *b) {
    for (int i = 0; i < p->axis_count; i++) {
        int64_t length_max = test_random_in(random, 0, 5) ? REF_LENGTH_MAX : 0;
        b->sizes[i] = p->axes[i].kind == REF_DENSE   ? p->axes[i].size
                      : test_random_in(random, 0, 7) ? test_random_in(random, 1, REF_SIZE_MAX)
                                                     : 0;
        for (int row = 0; row < p->axes[i].rows; row++) {
            b->lengths[i][row] = test_random_in(random, 0, length_max);
            b->indptr[i][row + 1] = b->indptr[i][row] + b->lengths[i][row];
        }
        for (int entry = 0; entry < REF_ROW_MAX * REF_LENGTH_MAX; entry++) {
            b->indices[i][entry] = test_random_in(random, 0, REF_COLUMN_END - 1);
        }
    }
}

static inline void ref_bind_tensors(const ref_program *p, uint64_t *random, ref_bindings *b) {
    for (int t = 0; t < p->tensor_count; t++) {
        const ref_tensor *tensor = &p->tensors[t];
        int64_t next_stride = 1, reach = 0, back = 0;
        for (uint32_t i = 0; i < tensor->rank; i++) {
            uint32_t d = tensor->layout == REF_COLUMN_MAJOR ? i : tensor->rank - 1 - i;
            int64_t size = tensor->shape[d];
            if (size == PTOWSP_DYNAMIC) {
                size = b->sizes[tensor->size_axis[d]] > 0 ? b->sizes[tensor->size_axis[d]] : 1;
            }
            bool is_reversed = tensor->layout == REF_REVERSED && d + 1 == tensor->rank;
            b->shape[t][d] = size;
            b->strides[t][d] = is_reversed ? -next_stride : next_stride;
            reach += (size - 1) * next_stride;
            back += is_reversed ? (size - 1) * next_stride : 0;
            next_stride *= size + (tensor->layout == REF_PADDED);
        }
        if (tensor->memory_of == t) {
            b->block[t] = b->cell_count;
            b->block_size[t] = (int)reach + 1;
            b->cell_count += b->block_size[t];
            assert_true(b->cell_count <= REF_CELL_MAX);
            for (int cell = b->block[t]; cell < b->cell_count; cell++) {
                b->cells[cell] = ref_value_of(random, tensor->dtype);
            }
        } else {
            b->block[t] = b->block[tensor->memory_of];
            b->block_size[t] = b->block_size[tensor->memory_of];
        }
        b->origin[t] = b->block[t] + (int)back;
    }
}

static inline void ref_bindings_random(const ref_program *p, uint64_t *random, ref_bindings *b) {
    memset(b, 0, sizeof *b);
    ref_bind_axes(p, random, b);
    ref_bind_tensors(p, random, b);
    for (int i = 0; i < REF_SYMBOL_COUNT; i++) {
        b->symbols[i] = test_random(random) >> (test_random(random) % 2 ? 61 : 0);
    }
    for (int i = 0; i < REF_ARRAY_COUNT; i++) {
        for (int k = 0; k < REF_ARRAY_LENGTH; k++) {
            b->arrays[i][k] = ref_value_of(random, p->array_dtypes[i]);
        }
    }
    for (int i = 0; i < REF_SLOT_COUNT; i++) {
        b->slots[i] = test_random(random) % 3;
    }
}

// -- what kernels do ------------------------------------------------------------------------------

// Also as text, for trees (npu_sources.h).
PTOWSP_SOURCE(
    ref_work_source,

    typedef struct ref_work {
        uint64_t salt;
        int cycles_shape;
        bool is_in[3], is_out[3];  // by tile
    } ref_work;

    static inline uint64_t ref_mix(uint64_t a, uint64_t b) {
        uint64_t z = a * 31u + b + 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    static inline uint64_t ref_work_args(const ref_work *work, const uint64_t *args,
                                         uint32_t count) {
        uint64_t mixed = work->salt;
        for (uint32_t i = 0; i < count; i++) {
            mixed = ref_mix(mixed, args[i]);
        }
        return mixed;
    }

    static inline uint64_t ref_work_cycles(const ref_work *work, const uint64_t *args,
                                           uint32_t count) {
        uint64_t mixed = ref_work_args(work, args, count);
        switch (work->cycles_shape) {
        case 0: return 10;
        case 1: return mixed % 3;
        case 2: return mixed % 100;
        case 3: return mixed % 8 ? 5 : 1000000 + mixed % 1000;
        case 4: return mixed % 4 ? 1 + mixed % 7 : 0;
        default: return 1 + mixed % 40;
        }
    }

    static inline int32_t ref_output(uint64_t mixed, int64_t row, int64_t col) {
        return (int32_t)(ref_mix(mixed, (uint64_t)(row * 64 + col)) % 16) - 4;
    }

    static inline int32_t ref_update(int32_t old, int32_t output) { return (old + output) & 15; }

    static inline int32_t *
    ref_work_at(const ptowsp_task *task, uint32_t t, int64_t row, int64_t col) {
        const ptowsp_tile *tile = &task->tiles[t];
        return (int32_t *)tile->data + (row * tile->row_stride + col * tile->col_stride);
    }

    static inline uint64_t ref_work_run(const ref_work *work, const ptowsp_task *task) {
        uint64_t mixed = ref_work_args(work, task->args, task->arg_count);
        for (uint32_t t = 0; t < task->tile_count; t++) {
            for (int64_t r = 0; work->is_in[t] && r < ptowsp_task_rows(task, t); r++) {
                for (int64_t c = 0; c < ptowsp_task_cols(task, t); c++) {
                    mixed = ref_mix(mixed, (uint64_t)(int64_t)*ref_work_at(task, t, r, c));
                }
            }
        }
        for (uint32_t t = 0; t < task->tile_count; t++) {
            for (int64_t r = 0; work->is_out[t] && r < ptowsp_task_rows(task, t); r++) {
                for (int64_t c = 0; c < ptowsp_task_cols(task, t); c++) {
                    int32_t output = ref_output(mixed, r, c);
                    int32_t *at = ref_work_at(task, t, r, c);
                    *at = work->is_in[t] ? ref_update(*at, output) : output;
                }
            }
        }
        return mixed;
    })

static inline ref_work ref_work_of(const ref_kernel *kernel) {
    ref_work work = {kernel->salt, kernel->cycles_shape, {false}, {false}};
    for (uint32_t t = 0; t < kernel->tile_count; t++) {
        work.is_in[t] = kernel->directions[t] != PTOWSP_OUT;
        work.is_out[t] = kernel->directions[t] != PTOWSP_IN;
    }
    return work;
}

static inline uint64_t ref_mix_args(const ref_kernel *kernel, const uint64_t *args,
                                    uint32_t count) {
    const ref_work work = ref_work_of(kernel);
    return ref_work_args(&work, args, count);
}

// The cycles of a task: equal ones, zeros, short and long ones.
static inline uint64_t ref_cycles(const ref_kernel *kernel, const uint64_t *args, uint32_t count) {
    const ref_work work = ref_work_of(kernel);
    return kernel->cost == REF_COST_CONSTANT ? 1 + kernel->salt % 20
                                             : ref_work_cycles(&work, args, count);
}

// What a kernel that has no cost returns on top: it depends on data.
static inline uint64_t ref_data_cycles(uint64_t mixed) {
    return mixed % 4;
}

// What kernels are told to expect: the arguments of each task, by index. NULL: anything.
typedef struct ref_watch {
    uint64_t (*args)[REF_ARG_MAX];
    uint64_t task_count;
    uint64_t calls;     // atomic
    lane_watch *lanes;  // which sees each call; NULL: tasks are called in program order
    // Called by each task, which fails with what it returns unless that is OK; NULL: nothing is.
    ptowsp_status (*interrupt)(void *user, const ptowsp_task *task);
    void *interrupt_user;
} ref_watch;

typedef struct ref_kernel_user {
    const ref_kernel *kernel;
    ref_watch *watch;
} ref_kernel_user;

static inline bool ref_task_is_expected(const ptowsp_task *task, const ref_kernel_user *user) {
    const ref_kernel *kernel = user->kernel;
    const ref_watch *watch = user->watch;
    if (task->user_axis_count != kernel->axis_count || task->tile_count != kernel->tile_count ||
        task->axis_arg_count != kernel->axis_count + 2 * kernel->tile_count ||
        task->arg_count != task->axis_arg_count + kernel->scalar_count) {
        return false;
    }
    return !watch->args ||
           (task->index < watch->task_count &&
            memcmp(task->args, watch->args[task->index], task->arg_count * sizeof(uint64_t)) == 0);
}

// Notes a call; false if it should not have been, then or at all.
static inline bool ref_call_begins(const ptowsp_task *task, const ref_kernel_user *user) {
    ref_watch *watch = user->watch;
    uint64_t calls = __atomic_fetch_add(&watch->calls, 1u, __ATOMIC_RELAXED);
    if (watch->lanes) {
        lane_watch_enter(watch->lanes, task);
    }
    return ref_task_is_expected(task, user) && (watch->lanes || task->index == calls);
}

static inline ptowsp_cycles ref_kernel_run(const ptowsp_task *task, void *arg) {
    ref_kernel_user *user = (ref_kernel_user *)arg;
    const ref_kernel *kernel = user->kernel;
    if (!ref_call_begins(task, user)) {
        print_message("task %llu: unexpected\n", (unsigned long long)task->index);
        return ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
    }
    const ref_watch *watch = user->watch;
    ptowsp_status status =
        watch->interrupt ? watch->interrupt(watch->interrupt_user, task) : PTOWSP_OK;
    if (status != PTOWSP_OK) {
        if (watch->lanes) {
            lane_watch_leave(watch->lanes, task);
        }
        return ptowsp_task_fail(status);
    }
    const ref_work work = ref_work_of(kernel);
    const uint64_t mixed = ref_work_run(&work, task);
    if (user->watch->lanes) {
        lane_watch_leave(user->watch->lanes, task);
    }
    if (kernel->cost != REF_COST_RETURNED) {
        return 123456789;  // nobody looks at it
    }
    return ref_cycles(kernel, task->args, task->arg_count) + ref_data_cycles(mixed);
}

static inline ptowsp_cycles ref_kernel_cost(const ptowsp_task *task, void *arg) {
    const ref_kernel_user *user = (const ref_kernel_user *)arg;
    if (!ref_task_is_expected(task, user)) {
        print_message("task %llu: unexpected args\n", (unsigned long long)task->index);
        return ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
    }
    return ref_cycles(user->kernel, task->args, task->arg_count);
}

#endif
