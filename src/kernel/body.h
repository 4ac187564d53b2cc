// The body of a tile kernel while it is built: operations on values, in SSA form.
//
// An operation is a value, and its index is the value's id. Parameters, constants and stores are
// operations too, so the order of the program is the order of the table. Instructions and the tiles
// made for them are in the same table; only those tiles change.
//
//      body (ops.c)  ->  cleaned (passes.c)  ->  list of instructions (lower.c)  ->  compiled
//
// The first error stays, with the operation's name in front; afterwards all calls do nothing.

#ifndef PWSP_BODY_H
#define PWSP_BODY_H

#include "list.h"

#define PWSP_KOPS(KOP) /* name, text */                                                            \
    KOP(PARAM, "parameter")                                                                        \
    KOP(SCALAR, "scalar")                                                                          \
    KOP(CONST, "const")                                                                            \
    KOP(FULL, "full")                                                                              \
    KOP(IOTA, "iota")                                                                              \
    KOP(LOAD, "load")                                                                              \
    KOP(STORE, "store")                                                                            \
    KOP(STORE_ADD, "store_add")                                                                    \
    KOP(ADD, "add")                                                                                \
    KOP(SUB, "sub")                                                                                \
    KOP(MUL, "mul")                                                                                \
    KOP(DIV, "div")                                                                                \
    KOP(MAX, "max")                                                                                \
    KOP(MIN, "min")                                                                                \
    KOP(EXP, "exp")                                                                                \
    KOP(LOG, "log")                                                                                \
    KOP(SQRT, "sqrt")                                                                              \
    KOP(RSQRT, "rsqrt")                                                                            \
    KOP(RECIP, "recip")                                                                            \
    KOP(TANH, "tanh")                                                                              \
    KOP(SIGMOID, "sigmoid")                                                                        \
    KOP(SIN, "sin")                                                                                \
    KOP(COS, "cos")                                                                                \
    KOP(RELU, "relu")                                                                              \
    KOP(GELU, "gelu")                                                                              \
    KOP(SILU, "silu")                                                                              \
    KOP(NEG, "neg")                                                                                \
    KOP(ABS, "abs")                                                                                \
    KOP(ROWSUM, "rowsum")                                                                          \
    KOP(ROWMAX, "rowmax")                                                                          \
    KOP(ROWMIN, "rowmin")                                                                          \
    KOP(ROWMEAN, "rowmean")                                                                        \
    KOP(COLSUM, "colsum")                                                                          \
    KOP(COLMAX, "colmax")                                                                          \
    KOP(COLMIN, "colmin")                                                                          \
    KOP(ROW_BROADCAST, "row_broadcast")                                                            \
    KOP(COL_BROADCAST, "col_broadcast")                                                            \
    KOP(MATMUL, "matmul")                                                                          \
    KOP(MATMUL_ACC, "matmul_acc")                                                                  \
    KOP(MATMUL_BIAS, "matmul_bias")                                                                \
    KOP(CVT, "cvt")                                                                                \
    KOP(QUANTIZE, "quantize")                                                                      \
    KOP(DEQUANTIZE, "dequantize")                                                                  \
    KOP(TRANSPOSE, "transpose")                                                                    \
    KOP(COMPARE, "compare")                                                                        \
    KOP(SELECT, "select")                                                                          \
    KOP(SORT32, "sort32")                                                                          \
    KOP(MERGE_SORT, "merge_sort")                                                                  \
    KOP(TOPK_VALUES, "topk_values")                                                                \
    KOP(TOPK_INDICES, "topk_indices")                                                              \
    KOP(GATHER, "gather")                                                                          \
    KOP(SLICE, "slice")                                                                            \
    KOP(INTERLEAVE, "interleave")                                                                  \
    KOP(DEINTERLEAVE, "deinterleave")                                                              \
    KOP(LOOP, "loop")                                                                              \
    KOP(END, "loop_end")                                                                           \
    KOP(CARRY, "carry")                                                                            \
    KOP(NEXT, "next")                                                                              \
    KOP(SIZE, "size")                                                                              \
    KOP(ALLOC, "alloc")                                                                            \
    KOP(INSTRUCTION, "instruction")

// clang-format off
typedef enum pwsp_kop_kind {
    PWSP_KOP_NONE = 0,
#define PWSP_KOP_ENUM(name, text) PWSP_KOP_##name,
    PWSP_KOPS(PWSP_KOP_ENUM)
#undef PWSP_KOP_ENUM
    PWSP_KOP_COUNT
} pwsp_kop_kind;
// clang-format on

#define PWSP_KOP_SRC_MAX 3

typedef struct pwsp_kop {
    uint8_t kind;   // pwsp_kop_kind
    uint8_t dtype;  // ptowsp_dtype of the result; NONE: a constant, a store, an instruction
    uint8_t mode;   // ptoisa_round, ptoisa_compare
    uint8_t memory, layout;      // ALLOC
    bool is_pairs;               // the result of a sort
    bool is_mask;                // of a comparison; its size is that of what was compared
    bool is_dead;                // the passes have dropped it
    uint8_t loop;                // the innermost loop that it is in; LOOP and END: their own
    uint8_t row_loop, col_loop;  // SLICE, STORE: whose index is added to row and col; 0: none
    uint32_t rows, cols;         // 0 and 0: a scalar, or nothing
    pwsp_valid valid_rows, valid_cols;
    uint32_t src[PWSP_KOP_SRC_MAX];  // values, 0: none
    uint32_t param;                  // tile or scalar parameter, or an instruction's record, + 1
    uint32_t row, col;  // SLICE, STORE; the run of MERGE_SORT; the part of DEINTERLEAVE; SIZE: axis
    double value;       // of CONST and FULL; the start of IOTA
} pwsp_kop;

typedef struct pwsp_body_param {
    char name[PTOWSP_NAME_MAX + 1];
    ptowsp_direction direction;  // of a tile
    ptowsp_dtype dtype;
    uint32_t rows, cols;
    uint32_t value;
    bool is_stored;
} pwsp_body_param;

// An instruction as it was asked for: its operands are values.
typedef struct pwsp_body_insn {
    uint8_t op, variant, mode;
    uint32_t dst[PWSP_INSN_DST_MAX], src[PWSP_INSN_SRC_MAX], tmp, scalar;
    uint32_t row, col;
} pwsp_body_insn;

struct ptowsp_body {
    ptowsp_body *next;  // of the module's bodies
    ptowsp_module *module;
    pwsp_memory memory;
    char name[PTOWSP_NAME_MAX + 1];
    uint32_t axis_count;
    ptoisa_machine machine;
    bool is_fused;
    bool is_open;
    ptowsp_status status;
    char text[256];
    pwsp_kop *ops;  // from 1
    uint64_t op_count, op_capacity;
    pwsp_body_insn *insns;
    uint64_t insn_count, insn_capacity;
    pwsp_body_param tiles[PTOWSP_TASK_TILE_MAX];
    pwsp_body_param scalars[PTOWSP_TASK_SCALAR_MAX];
    uint32_t tile_count, scalar_count;
    pwsp_list_loop loops[PTOWSP_LOOP_MAX + 1];                                  // from 1
    uint32_t loop_begins[PTOWSP_LOOP_MAX + 1], loop_ends[PTOWSP_LOOP_MAX + 1];  // operations
    uint32_t loop_count, loop;  // without number 0; the innermost that is open
};

PWSP_INTERNAL const char *pwsp_kop_name(pwsp_kop_kind kind);

// Can an operation of `loop` read the value? It is in a loop around it, or was carried out of one.
PWSP_INTERNAL bool pwsp_body_is_visible(const ptowsp_body *body, const pwsp_kop *op, uint32_t loop);

// What a carried value becomes: its NEXT operation; 0: none.
PWSP_INTERNAL uint32_t pwsp_body_next(const ptowsp_body *body, uint32_t carry);

// Frees the body and what it holds; NULL is ignored.
PWSP_INTERNAL void pwsp_body_free(ptowsp_body *body);

// Records the first error, "op: what is wrong", and returns no value.
PWSP_INTERNAL ptowsp_value pwsp_body_fail(ptowsp_body *body, ptowsp_status status, const char *op,
                                          const char *format, ...) PWSP_PRINTF(4, 5);

// Appends an operation, and returns it as a value; no value when the body has an error.
PWSP_INTERNAL ptowsp_value pwsp_body_add(ptowsp_body *body, const pwsp_kop *op);

// Is there a body that is open and without error?
PWSP_INLINE bool pwsp_body_is_good(const ptowsp_body *body) {
    return body && body->is_open && body->status == PTOWSP_OK;
}

PWSP_INLINE pwsp_valid pwsp_valid_full(uint32_t size) {
    pwsp_valid valid;
    memset(&valid, 0, sizeof valid);
    valid.max = size;
    return valid;
}

// A part of an axis: size elements from `start`.
PWSP_INLINE pwsp_valid pwsp_valid_part(pwsp_valid valid, uint32_t start, uint32_t size) {
    if (valid.param == 0) {
        return pwsp_valid_full(size);
    }
    valid.add -= (int32_t)(start << valid.shift);
    valid.max = size;
    return valid;
}

// The same of a window that begins at the index of a loop (0: none) more.
PWSP_INLINE pwsp_valid pwsp_valid_window(pwsp_valid valid, uint32_t start, uint32_t size,
                                         uint8_t loop) {
    valid = pwsp_valid_part(valid, start, size);
    valid.loop = valid.param ? loop : 0;
    return valid;
}

// The valid size when the parameter's is `size`; of a loop, what is left of it.
PWSP_INLINE uint32_t pwsp_valid_at(const pwsp_valid *valid, int64_t size) {
    if (valid->param == 0) {
        return valid->max;
    }
    int64_t value = (valid->mul * size + valid->add) >> valid->shift;
    return value < 0 ? 0 : value > valid->max ? valid->max : (uint32_t)value;
}

#endif
