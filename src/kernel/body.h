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

// The table of all operations, shared by building, printing, writing and reading. The form lists
// the parts that follow the name in a module's text, a letter each:
//
//      x y z   the operands        p   the tile parameter that it is about
//      N       a parameter's name  #   the number     w   the same, whole    c   col, a whole number
//      ?       a comparison        r   a rounding     s   rows or cols       @   where a window begins
//      m       of alloc            i   of instruction ,   a comma            :   the result's type
//
// How the builder is called is for text/parse_body.c: `k` is the body, x, y and z are the operands, and
// `a` has the rest.
#define PWSP_KOPS(KOP) /* name, text, form, how the builder is called */                           \
    KOP(PARAM, "parameter", "N", pwsp_scan_param(r, a))                                            \
    KOP(SCALAR, "scalar", "N:", ptowsp_tile_scalar(k, a->name, a->dtype))                          \
    KOP(CONST, "const", "#", ptowsp_tile_const(k, a->number))                                      \
    KOP(FULL, "full", "#:", ptowsp_tile_full(k, a->dtype, a->rows, a->cols, a->number))            \
    KOP(IOTA, "iota", "#:", ptowsp_tile_iota(k, a->dtype, a->cols, a->number))                     \
    KOP(LOAD, "load", "x:", ptowsp_tile_load(x))                                                   \
    KOP(STORE, "store", "p,x@", pwsp_scan_store(a))                                                \
    KOP(STORE_ADD, "store_add", "p,x", (ptowsp_tile_store_add(a->param, x), none))                 \
    KOP(ADD, "add", "x,y:", ptowsp_tile_add(x, y))                                                 \
    KOP(SUB, "sub", "x,y:", ptowsp_tile_sub(x, y))                                                 \
    KOP(MUL, "mul", "x,y:", ptowsp_tile_mul(x, y))                                                 \
    KOP(DIV, "div", "x,y:", ptowsp_tile_div(x, y))                                                 \
    KOP(MAX, "max", "x,y:", ptowsp_tile_max(x, y))                                                 \
    KOP(MIN, "min", "x,y:", ptowsp_tile_min(x, y))                                                 \
    KOP(EXP, "exp", "x:", ptowsp_tile_exp(x))                                                      \
    KOP(LOG, "log", "x:", ptowsp_tile_log(x))                                                      \
    KOP(SQRT, "sqrt", "x:", ptowsp_tile_sqrt(x))                                                   \
    KOP(RSQRT, "rsqrt", "x:", ptowsp_tile_rsqrt(x))                                                \
    KOP(RECIP, "recip", "x:", ptowsp_tile_recip(x))                                                \
    KOP(TANH, "tanh", "x:", ptowsp_tile_tanh(x))                                                   \
    KOP(SIGMOID, "sigmoid", "x:", ptowsp_tile_sigmoid(x))                                          \
    KOP(SIN, "sin", "x:", ptowsp_tile_sin(x))                                                      \
    KOP(COS, "cos", "x:", ptowsp_tile_cos(x))                                                      \
    KOP(RELU, "relu", "x:", ptowsp_tile_relu(x))                                                   \
    KOP(GELU, "gelu", "x:", ptowsp_tile_gelu(x))                                                   \
    KOP(SILU, "silu", "x:", ptowsp_tile_silu(x))                                                   \
    KOP(NEG, "neg", "x:", ptowsp_tile_neg(x))                                                      \
    KOP(ABS, "abs", "x:", ptowsp_tile_abs(x))                                                      \
    KOP(ROWSUM, "rowsum", "x:", pwsp_scan_rowsum(x, a))                                            \
    KOP(ROWMAX, "rowmax", "x:", ptowsp_tile_rowmax(x))                                             \
    KOP(ROWMIN, "rowmin", "x:", ptowsp_tile_rowmin(x))                                             \
    KOP(ROWMEAN, "rowmean", "x:", ptowsp_tile_rowmean(x))                                          \
    KOP(COLSUM, "colsum", "x:", ptowsp_tile_colsum(x))                                             \
    KOP(COLMAX, "colmax", "x:", ptowsp_tile_colmax(x))                                             \
    KOP(COLMIN, "colmin", "x:", ptowsp_tile_colmin(x))                                             \
    KOP(ROW_BROADCAST, "row_broadcast", "x,y:", ptowsp_tile_row_broadcast(x, y))                   \
    KOP(COL_BROADCAST, "col_broadcast", "x,y:", ptowsp_tile_col_broadcast(x, y))                   \
    KOP(MATMUL, "matmul", "x,y:", ptowsp_tile_matmul(x, y))                                        \
    KOP(MATMUL_ACC, "matmul_acc", "z,x,y:", ptowsp_tile_matmul_acc(z, x, y))                       \
    KOP(MATMUL_BIAS, "matmul_bias", "x,y,z:", ptowsp_tile_matmul_bias(x, y, z))                    \
    KOP(CVT, "cvt", "xr:", ptowsp_tile_cvt(x, a->dtype, a->round))                                 \
    KOP(QUANTIZE, "quantize", "x,y:", ptowsp_tile_quantize(x, y))                                  \
    KOP(DEQUANTIZE, "dequantize", "x,y,z:", ptowsp_tile_dequantize(x, y, z))                       \
    KOP(TRANSPOSE, "transpose", "x:", ptowsp_tile_transpose(x))                                    \
    KOP(COMPARE, "compare", "x?y:", ptowsp_tile_compare(x, a->compare, y))                         \
    KOP(SELECT, "select", "x,y,z:", ptowsp_tile_select(x, y, z))                                   \
    KOP(SORT32, "sort32", "x,y:", ptowsp_tile_sort32(x, y))                                        \
    KOP(MERGE_SORT, "merge_sort", "x,c:", ptowsp_tile_merge_sort(x, a->count))                     \
    KOP(TOPK_VALUES, "topk_values", "x:", ptowsp_tile_topk_values(x, a->cols))                     \
    KOP(TOPK_INDICES, "topk_indices", "x:", ptowsp_tile_topk_indices(x, a->cols))                  \
    KOP(GATHER, "gather", "x,y:", ptowsp_tile_gather(x, y))                                        \
    KOP(SLICE, "slice", "x@:", pwsp_scan_slice(a))                                                 \
    KOP(INTERLEAVE, "interleave", "x,y:", ptowsp_tile_interleave(x, y))                            \
    KOP(DEINTERLEAVE, "deinterleave", "x,c:", ptowsp_tile_deinterleave(x, (uint32_t)a->count))     \
    KOP(LOOP, "loop", "x,y,w", ptowsp_tile_loop_begin(k, x, y, a->count))                          \
    KOP(END, "loop_end", "", none)                                                                 \
    KOP(PRELOAD, "preload", "x,c", (ptowsp_tile_preload(x, a->count), none))                       \
    KOP(CARRY, "carry", "x:", ptowsp_tile_carry(x))                                                \
    KOP(NEXT, "next", "x,y", (ptowsp_tile_next(x, y), none))                                       \
    KOP(SIZE, "size", "p,s", a->axis ? ptowsp_tile_cols(a->param) : ptowsp_tile_rows(a->param))    \
    KOP(ALLOC, "alloc", "m:", ptowsp_tile_alloc(k, &a->alloc))                                     \
    KOP(INSTRUCTION, "instruction", "i", (ptowsp_instruction(k, &a->instruction), none))

// clang-format off
typedef enum pwsp_kop_kind {
    PWSP_KOP_NONE = 0,
#define PWSP_KOP_ENUM(name, text, form, make) PWSP_KOP_##name,
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
    bool is_mask;                // of a comparison; its size is the compared tile's
    bool is_dead;                // the passes have dropped it
    uint8_t loop;                // the innermost loop that it is in; LOOP and END: their own
    uint8_t row_loop, col_loop;  // SLICE, STORE: whose index is added to row and col; 0: none
    uint32_t rows, cols;         // 0 and 0: a scalar, or nothing
    pwsp_valid valid_rows, valid_cols;
    uint32_t src[PWSP_KOP_SRC_MAX];  // values, 0: none
    uint32_t param;                  // tile or scalar parameter, or an instruction's record, + 1
    // SLICE, STORE; the run of MERGE_SORT; the part of DEINTERLEAVE; SIZE: axis; of PRELOAD
    uint32_t row, col;
    double value;  // of CONST and FULL; the start of IOTA; the step of LOOP
} pwsp_kop;

typedef struct pwsp_body_param {
    char name[PTOWSP_NAME_MAX + 1];
    ptowsp_direction direction;  // of a tile
    ptowsp_dtype dtype;
    uint32_t rows, cols;
    uint32_t value;
    bool is_stored, is_in_parts;  // by store_at alone
} pwsp_body_param;

// An instruction as it was asked for: its operands are values.
typedef struct pwsp_body_insn {
    uint8_t op, variant, mode;
    uint32_t dst[PWSP_INSN_DST_MAX], src[PWSP_INSN_SRC_MAX], tmp, scalar;
    uint32_t row, col;
} pwsp_body_insn;

// An operation that passes have changed, as it was built.
typedef struct pwsp_body_change {
    uint32_t op;
    pwsp_kop was;
} pwsp_body_change;

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
    uint32_t tile_count, scalar_count;
    pwsp_list_loop loops[PTOWSP_LOOP_MAX + 1];                                  // from 1
    uint32_t loop_begins[PTOWSP_LOOP_MAX + 1], loop_ends[PTOWSP_LOOP_MAX + 1];  // operations
    uint32_t loop_count, loop;  // without number 0; the innermost that is open
    pwsp_body_change *changes;  // by index
    uint32_t change_count;
    pwsp_body_insn
        *asked;  // [insn_count] the instructions as they were asked for; NULL: as they are
    // The last members: not set before there are any.
    pwsp_body_param tiles[PTOWSP_TASK_TILE_MAX];
    pwsp_body_param scalars[PTOWSP_TASK_SCALAR_MAX];
};

PWSP_INTERNAL const char *pwsp_kop_name(pwsp_kop_kind kind);
PWSP_INTERNAL const char *pwsp_kop_form(pwsp_kop_kind kind);

// "<" and "floor"; "?" for unknown values. Rounding as in the builder, plus PTOISA_CAST_RINT.
PWSP_INTERNAL const char *pwsp_compare_text(uint32_t mode);
PWSP_INTERNAL const char *pwsp_round_text(uint32_t mode);

// An operation as it was built, before passes.
PWSP_INTERNAL const pwsp_kop *pwsp_body_built(const ptowsp_body *body, uint32_t op);

// Can an operation of `loop` read the value? It is in a loop around it, or was carried out of one.
PWSP_INTERNAL bool pwsp_body_is_visible(const ptowsp_body *body, const pwsp_kop *op, uint32_t loop);

// The NEXT operation of a carried value; 0 if it has none.
PWSP_INTERNAL uint32_t pwsp_body_next(const ptowsp_body *body, uint32_t carry);

// Frees the body and all that it owns; ignores NULL.
PWSP_INTERNAL void pwsp_body_free(ptowsp_body *body);

// Records the first error, "op: message", and returns no value.
PWSP_INTERNAL ptowsp_value pwsp_body_fail(ptowsp_body *body, ptowsp_status status, const char *op,
                                          const char *format, ...) PWSP_PRINTF(4, 5);

// Appends an operation to a body without error, and returns it as a value; no value with an error.
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

// The valid size when the parameter's is `size`; of a loop, the remaining iterations.
PWSP_INLINE uint32_t pwsp_valid_at(const pwsp_valid *valid, int64_t size) {
    if (valid->param == 0) {
        return valid->max;
    }
    int64_t value = (valid->mul * size + valid->add) >> valid->shift;
    return value < 0 ? 0 : value > valid->max ? valid->max : (uint32_t)value;
}

#endif
