// The part of one core in a matrix product as it is written by hand: one kernel with loops over its
// output tiles of 128 x 256 and, inside them, over panels along k.
//
//      for i, j        output tiles
//          for k       panels of a and b into L1, twice buffered; pieces of 64 of them into L0,
//                      twice buffered; products added up in L0C
//          store       the sum, from L0C, while the panels of the next tile are loaded

#ifndef GEMM_CORE_H
#define GEMM_CORE_H

#include "ptowsp.h"

enum { GEMM_CORE_ROWS = 128, GEMM_CORE_COLS = 256 };

typedef struct gemm_core {
    int64_t rows, cols, depth;      // of its part of c, and k
    int64_t panel;                  // along k
    ptowsp_dtype out;               // f32, or f16, which leaving L0C rounds to
    const ptowsp_machine *machine;  // NULL: 910B
} gemm_core;

// Declares it: in a [rows][depth] and b [depth][cols], both f16, out c [rows][cols].
ptowsp_kernel gemm_core_make(ptowsp_module *m, const char *name, const gemm_core *g);

#endif
