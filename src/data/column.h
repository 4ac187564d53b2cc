// Expressions over columns: a step applies one operation to many iterations of a loop at once.

#ifndef PWSP_COLUMN_H
#define PWSP_COLUMN_H

#include "code.h"

// Iterations at a time: enough that choosing an operation costs little beside applying it, few
// enough that the columns of an expression stay in the first cache.
#ifndef PWSP_COLUMN_MAX
#define PWSP_COLUMN_MAX 128
#endif

// Columns are rounded up to so many elements, which one vector has.
#define PWSP_COLUMN_STEP 8

PWSP_INLINE uint64_t *pwsp_column_at(uint64_t *columns, uint32_t column) {
    return columns + (size_t)column * PWSP_COLUMN_MAX;
}

// The same value in the first `count` elements of a column.
PWSP_INTERNAL void pwsp_column_fill(uint64_t *column, uint64_t value, uint32_t count);

// How many operands an operation takes from cells: 1 to 3.
PWSP_INTERNAL uint32_t pwsp_opcode_operands(pwsp_opcode opcode);

// Runs instructions whose operands and results are columns, on the first `count` elements. They
// contain no skips. False if an element would be read outside its array: the columns are then
// undefined. Elements up to the next multiple of PWSP_COLUMN_STEP are written, too.
PWSP_INTERNAL bool pwsp_column_run(const pwsp_instruction *code, uint32_t count, uint64_t *columns,
                                   const pwsp_array *arrays, uint32_t elements);

#endif
