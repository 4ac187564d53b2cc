// Bare limits of instructions: limit.c.

#ifndef LIMIT_H
#define LIMIT_H

#include "bench.h"

typedef enum limit_kind {
    LIMIT_PRODUCTS_F32,  // 128^3 multiply-adds
    LIMIT_PRODUCTS_BF16,
    LIMIT_PRODUCTS_I8,
    LIMIT_MOVED_F16,  // the same, and what brings operands into panels and sums out of registers
    LIMIT_MOVED_BF16,
    LIMIT_MOVED_I8,
    LIMIT_EXP,
    LIMIT_ADD,
    LIMIT_ROWS,
    LIMIT_DESCRIPTORS
} limit_kind;

// First in the argument of the loops. All are different memory, of whole vectors.
typedef struct limit_arrays {
    const float *left, *right;
    float *out;
    uint32_t count;
} limit_arrays;

// The loop for this machine, or NULL.
bench_fn limit_of(limit_kind kind);

#endif
