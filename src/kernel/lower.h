// From operations to instructions.
//
// The rules follow PTO-WSP, and the unit model counts by them:
//
//      on entry      one TLOAD for each parameter that an operation other than matmul, load and
//                    slice reads
//      matmul        per factor: a parameter is loaded (L1), another value moved to L1; then to
//                    L0A or L0B; TMATMUL; and a move to UB, if other than matmul or store reads it
//      store         TCVT if the type is narrower; TSTORE
//      the rest      the instruction of its name; with a scalar ..S, with a vector ROWEXPAND or
//                    COLEXPAND
//
// Instructions that the device needs and PTO-WSP does not count are marked implied. Between the cube
// and the vector core a tile goes by a TMOV here; where a machine has no way for it, the list is cut
// (cut.h).
//
// Values are in UB, row-major, with rows padded to 32 bytes. A value of one column is column-major
// with its rows padded: its bytes form a row as well, and element-wise instructions treat it as
// one. The result of an operation reuses the memory of an operand that is not needed any more.

#ifndef PWSP_LOWER_H
#define PWSP_LOWER_H

#include "body.h"
#include "forms.h"

// Where a part of a panel begins: a tile in L1 (0: nowhere) and an element of it.
typedef struct pwsp_lower_origin {
    uint32_t tile, row, col;
} pwsp_lower_origin;

typedef struct pwsp_lowered {
    uint32_t tile;  // in UB; 0: not there
    uint32_t acc;   // in L0C; 0: not there
    uint32_t last;  // the last operation that needs it; of a carried value, in its loop
    uint32_t uses;
    bool is_read;    // in UB; of a parameter: so it is loaded on entry
    uint32_t after;  // of a carried value: the last operation after its loop; 0: none
    uint32_t mats[2], mat_loops[2];  // in L1 while a loop runs, as right and as left factor; 0: not
    uint8_t begins;  // of a carried sum: the loop in whose first iteration a product begins it
    pwsp_lower_origin panel;  // of a panel, or a part of one
} pwsp_lowered;

typedef struct pwsp_lowering {
    ptowsp_body *body;
    pwsp_list *list;
    pwsp_lowered *values;
    uint32_t at;      // the operation that is being lowered
    bool is_out;      // memory is out
    pwsp_insn spare;  // written to when it is
} pwsp_lowering;

// Lowers the body into an empty list; false with a fault.
PWSP_INTERNAL bool pwsp_lower(ptowsp_body *body, pwsp_list *list, pwsp_list_fault *fault);

// -- tiles ----------------------------------------------------------------------------------------

// A new tile of its own, rows and cols as allocated.
PWSP_INTERNAL uint32_t pwsp_lower_tile(pwsp_lowering *lw, ptoisa_memory memory,
                                       ptoisa_layout layout, uint8_t dtype, uint32_t rows,
                                       uint32_t cols, pwsp_valid valid_rows, pwsp_valid valid_cols);

// A new tile in UB for a value of this shape.
PWSP_INTERNAL uint32_t pwsp_lower_vec(pwsp_lowering *lw, uint8_t dtype, uint32_t rows,
                                      uint32_t cols, pwsp_valid valid_rows, pwsp_valid valid_cols);

// A new tile for the operation's result; in the memory of `operand`, a value whose tile is `tile`,
// when that is not needed any more (operand 0: never).
PWSP_INTERNAL uint32_t pwsp_lower_result(pwsp_lowering *lw, const pwsp_kop *op, uint32_t operand);

// Notes that a value needs the tile's bytes, until its last use.
PWSP_INTERNAL void pwsp_lower_keep(pwsp_lowering *lw, uint32_t tile, uint32_t value);

// A view of a tile from its byte `offset` on.
PWSP_INTERNAL uint32_t pwsp_lower_view(pwsp_lowering *lw, uint32_t tile, ptoisa_layout layout,
                                       uint8_t dtype, uint32_t rows, uint32_t cols,
                                       pwsp_valid valid_rows, pwsp_valid valid_cols,
                                       uint32_t offset);

// A scratch tile of the same shape, layout and valid sizes.
PWSP_INTERNAL uint32_t pwsp_lower_like(pwsp_lowering *lw, uint32_t tile, uint8_t dtype);

// The tile as element-wise instructions want it: a column as a row.
PWSP_INTERNAL uint32_t pwsp_lower_flat(pwsp_lowering *lw, uint32_t tile);

// A vector as a column, which has a value per row. (As a row it is flat.)
PWSP_INTERNAL uint32_t pwsp_lower_column(pwsp_lowering *lw, uint32_t tile);

PWSP_INLINE uint32_t pwsp_round_up(uint32_t size, uint32_t unit) {
    return (size + unit - 1) / unit * unit;
}

PWSP_INLINE uint32_t pwsp_block_elements(uint8_t dtype) {
    return 32 / ptoisa_dtype_size((ptoisa_dtype)dtype);
}

// -- instructions ---------------------------------------------------------------------------------

// Appends an instruction of up to three sources (0: none).
PWSP_INTERNAL pwsp_insn *pwsp_insn_emit(pwsp_lowering *lw, ptoisa_op op, uint32_t dst,
                                        uint32_t src0, uint32_t src1, uint32_t src2);
PWSP_INTERNAL pwsp_insn *pwsp_insn_emit_scalar(pwsp_lowering *lw, ptoisa_op op, uint32_t dst,
                                               uint32_t src, double value);

// The scalar operand that a value is.
PWSP_INTERNAL pwsp_list_scalar pwsp_lower_scalar(const ptowsp_body *body, uint32_t value);

// Notes that operation `at`, of a loop, uses a value.
PWSP_INTERNAL void pwsp_lower_use(pwsp_lowering *lw, uint32_t value, uint32_t at, uint32_t loop);

// The value's tile in UB.
PWSP_INLINE uint32_t pwsp_lower_value(const pwsp_lowering *lw, uint32_t value) {
    return lw->values[value].tile;
}

// -- the kinds of operations ----------------------------------------------------------------------

PWSP_INTERNAL void pwsp_lower_binary(pwsp_lowering *lw, const pwsp_kop *op);
PWSP_INTERNAL void pwsp_lower_unary(pwsp_lowering *lw, const pwsp_kop *op);
PWSP_INTERNAL void pwsp_lower_reduce(pwsp_lowering *lw, const pwsp_kop *op);
PWSP_INTERNAL void pwsp_lower_broadcast(pwsp_lowering *lw, const pwsp_kop *op);
PWSP_INTERNAL void pwsp_lower_matmul(pwsp_lowering *lw, const pwsp_kop *op);
PWSP_INTERNAL void pwsp_lower_store(pwsp_lowering *lw, const pwsp_kop *op);
PWSP_INTERNAL void pwsp_lower_shape(pwsp_lowering *lw, const pwsp_kop *op);  // cvt, transpose, ...
PWSP_INTERNAL void pwsp_lower_indexing(pwsp_lowering *lw,
                                       const pwsp_kop *op);  // compare, sort, ...
PWSP_INTERNAL void pwsp_lower_instruction(pwsp_lowering *lw, const pwsp_kop *op);

PWSP_INTERNAL void pwsp_lower_loop(pwsp_lowering *lw, const pwsp_kop *op);
PWSP_INTERNAL void pwsp_lower_end(pwsp_lowering *lw, const pwsp_kop *op);

// Is the value a carried sum that is in L0C?
PWSP_INTERNAL bool pwsp_lower_is_in_acc(const pwsp_lowering *lw, uint32_t value);

// Do only sums in L0C begin with the value, a tile of zeros, so that it is not needed in UB?
PWSP_INTERNAL bool pwsp_lower_is_zero_sum(const pwsp_lowering *lw, uint32_t value);

// A tile for the operation's result in the home of a carried value, which is `operand` or shares
// its bytes; 0 without one, or if the body still needs it.
PWSP_INTERNAL uint32_t pwsp_lower_in_home(pwsp_lowering *lw, const pwsp_kop *op, uint32_t operand);

// Does a carried sum begin as the first product of its loop, and not as a tile of zeros? So it does in
// a loop inside another one that runs at least once, if only stores use it afterwards. Returns that
// product, or 0.
PWSP_INTERNAL uint32_t pwsp_lower_beginning(const ptowsp_body *body, uint32_t carry);

// -- panels (lower_panel.c) -----------------------------------------------------------------------

// Is a value part of a panel that is in L1, or is it a panel that has parts?
PWSP_INTERNAL bool pwsp_lower_is_part(const ptowsp_body *body, uint32_t value);
PWSP_INTERNAL bool pwsp_lower_is_panel(const ptowsp_body *body, uint32_t value);

// Loads a panel; finds where a part of one is.
PWSP_INTERNAL void pwsp_lower_panel(pwsp_lowering *lw, const pwsp_kop *op);
PWSP_INTERNAL void pwsp_lower_panel_part(pwsp_lowering *lw, const pwsp_kop *op);

PWSP_INLINE bool pwsp_kop_is_product(const pwsp_kop *op) {
    return op->kind == PWSP_KOP_MATMUL || op->kind == PWSP_KOP_MATMUL_ACC ||
           op->kind == PWSP_KOP_MATMUL_BIAS;
}

// -- products (lower_matmul.c) --------------------------------------------------------------------

// A new tile in L1 for a factor of this shape.
PWSP_INTERNAL uint32_t pwsp_lower_matrix(pwsp_lowering *lw, uint8_t dtype, uint32_t rows,
                                         uint32_t cols, pwsp_valid valid_rows,
                                         pwsp_valid valid_cols, bool is_left);

// The factor of a product, in L1: moved there, unless it is there.
PWSP_INTERNAL uint32_t pwsp_lower_factor(pwsp_lowering *lw, uint32_t value, bool is_left);

// A tile in L0C for the sum of products of factors of this type; and one of zeros.
PWSP_INTERNAL uint32_t pwsp_lower_empty_sum(pwsp_lowering *lw, const pwsp_kop *op, uint8_t dtype);
PWSP_INTERNAL uint32_t pwsp_lower_zeros(pwsp_lowering *lw, const pwsp_kop *op, uint8_t dtype);

// Moves a product from L0C to UB.
PWSP_INTERNAL uint32_t pwsp_lower_to_vec(pwsp_lowering *lw, uint32_t acc, const pwsp_kop *op);

// Sets the part of its parameter that an instruction loads or stores.
PWSP_INLINE void pwsp_insn_set_window(pwsp_insn *insn, const pwsp_kop *op) {
    insn->row = op->row;
    insn->col = op->col;
    insn->row_loop = op->row_loop;
    insn->col_loop = op->col_loop;
}

// Does something other than matmul and store read the value, so that it must be in UB?
PWSP_INTERNAL bool pwsp_lower_feeds(const ptowsp_body *body, uint32_t value);

// Is the value an f32 product in f16 or bf16 that only products read, in a fused kernel? It becomes
// that on its way from L0C to L1.
PWSP_INTERNAL bool pwsp_lower_is_narrowed(const ptowsp_body *body, uint32_t value);

// exp, sigmoid, sin and the like, from src into dst: flat tiles that may be the same.
PWSP_INTERNAL void pwsp_lower_function(pwsp_lowering *lw, pwsp_kop_kind kind, uint32_t dst,
                                       uint32_t src);

#endif
