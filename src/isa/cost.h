// How long an instruction takes, and on which pipe: the unit model, and A2/A3 from public constants.

#ifndef PTOISA_COST_H
#define PTOISA_COST_H

#include "machine.h"
#include "tile.h"

// The pipe of an instruction. dst or src are NULL where it is global memory.
PTOISA_FN ptoisa_pipe ptoisa_pipe_of(ptoisa_op op, const ptoisa_tile *dst, const ptoisa_tile *src) {
    switch (op) {
    case PTOISA_TLOAD:
    case PTOISA_MGATHER: return PTOISA_PIPE_MTE2;
    case PTOISA_TSTORE: return src->memory == PTOISA_ACC ? PTOISA_PIPE_FIX : PTOISA_PIPE_MTE3;
    case PTOISA_MSCATTER: return PTOISA_PIPE_MTE3;
    case PTOISA_TMOV:
    case PTOISA_TEXTRACT:
    case PTOISA_TINSERT:
        if (src->memory == PTOISA_ACC || dst->memory == PTOISA_SCALING) {
            return PTOISA_PIPE_FIX;
        }
        if (src->memory == PTOISA_MAT) {
            return PTOISA_PIPE_MTE1;
        }
        return dst->memory == PTOISA_MAT ? PTOISA_PIPE_MTE3 : PTOISA_PIPE_V;
    case PTOISA_TEXPANDS:
    case PTOISA_TFILLPAD: return dst->memory == PTOISA_MAT ? PTOISA_PIPE_MTE2 : PTOISA_PIPE_V;
    case PTOISA_TMATMUL:
    case PTOISA_TMATMUL_ACC:
    case PTOISA_TMATMUL_BIAS:
    case PTOISA_TGEMV:
    case PTOISA_TGEMV_ACC:
    case PTOISA_TGEMV_BIAS: return PTOISA_PIPE_M;
    case PTOISA_TCI:
    case PTOISA_SET_FLAG:
    case PTOISA_WAIT_FLAG:
    case PTOISA_PIPE_BARRIER: return PTOISA_PIPE_S;
    default: return PTOISA_PIPE_V;
    }
}

typedef enum ptoisa_unit_class {
    PTOISA_UNIT_ZERO,
    PTOISA_UNIT_DST,
    PTOISA_UNIT_SRC,
    PTOISA_UNIT_SORT,
    PTOISA_UNIT_MOVE,
    PTOISA_UNIT_MATMUL
} ptoisa_unit_class;

PTOISA_INLINE uint64_t ptoisa_valid_count(const ptoisa_tile *tile) {
    return (uint64_t)tile->valid_rows * tile->valid_cols;
}

// Cycles in the unit model: PTO-WSP's rule, of valid sizes.
PTOISA_FN uint64_t ptoisa_cost_unit(ptoisa_op op, const ptoisa_tile *dst, const ptoisa_tile *src0,
                                    const ptoisa_tile *src1) {
    static const uint8_t classes[PTOISA_OP_COUNT] = {PTOISA_UNIT_ZERO,
#define PTOISA_OP_UNIT(name, unit) PTOISA_UNIT_##unit,
                                                     PTOISA_OPS(PTOISA_OP_UNIT)
#undef PTOISA_OP_UNIT
    };
    (void)src1;
    switch ((ptoisa_unit_class)classes[op]) {
    case PTOISA_UNIT_ZERO: return 0;
    case PTOISA_UNIT_DST: return ptoisa_valid_count(dst);
    case PTOISA_UNIT_SRC: return ptoisa_valid_count(src0);
    case PTOISA_UNIT_SORT: return 5 * ptoisa_valid_count(src0);
    case PTOISA_UNIT_MOVE:
        return src0->memory == PTOISA_MAT && dst->memory > PTOISA_MAT ? 0 : ptoisa_valid_count(dst);
    case PTOISA_UNIT_MATMUL: return ptoisa_valid_count(dst) * src0->valid_cols;
    }
    return 0;
}

// Cycles in the core's model, which is not the unit model.
PTOISA_FN uint64_t ptoisa_cost(const ptoisa_core *core, ptoisa_op op, ptoisa_pipe pipe,
                               const ptoisa_tile *dst, const ptoisa_tile *src0,
                               const ptoisa_tile *src1) {
    (void)core, (void)pipe;
    return ptoisa_cost_unit(op, dst, src0, src1);
}

#endif
