// Operands that vector instructions walk row by row.

#ifndef PTOISA_ROWS_H
#define PTOISA_ROWS_H

#include "core.h"

#define PTOISA_SET_2_BYTES                                                                         \
    (PTOISA_SET(PTOISA_F16) | PTOISA_SET(PTOISA_BF16) | PTOISA_SET(PTOISA_I16) |                   \
     PTOISA_SET(PTOISA_U16))
#define PTOISA_SET_4_BYTES                                                                         \
    (PTOISA_SET(PTOISA_F32) | PTOISA_SET(PTOISA_I32) | PTOISA_SET(PTOISA_U32))
#define PTOISA_SET_1_BYTE (PTOISA_SET(PTOISA_I8) | PTOISA_SET(PTOISA_U8) | PTOISA_SET(PTOISA_BOOL))
#define PTOISA_SET_INDEX  (PTOISA_SET(PTOISA_I32) | PTOISA_SET(PTOISA_U32))

// Is the tile of a set of types, in UB, row-major, valid at least for rows x cols?
PTOISA_FN bool ptoisa_check_row_major(ptoisa_core *core, ptoisa_op op, const char *which,
                                      const ptoisa_tile *tile, uint32_t dtypes, uint32_t rows,
                                      uint32_t cols) {
    if (!ptoisa_check_operand(core, op, which, tile, dtypes, PTOISA_VEC, rows, cols)) {
        return false;
    }
    return tile->layout == PTOISA_ROW_MAJOR || ptoisa_fault(core, op, "%s is not row-major", which);
}

// Where row r of a row-major tile begins.
PTOISA_INLINE uint8_t *ptoisa_row_at(const ptoisa_tile *tile, uint32_t r) {
    uint64_t bytes = (uint64_t)tile->cols * ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
    return (uint8_t *)tile->data + r * bytes;
}

#endif
