// Arrays of integers or bools that are bound to a program, and sparse structure made of them.

#ifndef PWSP_ARRAY_H
#define PWSP_ARRAY_H

#include "../base/base.h"

// One that is declared.
typedef struct pwsp_array_info {
    const char *name;
    ptowsp_dtype dtype;  // NONE: lengths that no expression reads
    bool is_lengths;
    uint32_t plan_axis;  // not 0: a field of its units or merges, bound with the plan
    ptowsp_plan_field field;
    uint32_t next_field;   // of a field: the next one of its axis, or 0
    uint32_t ragged_axis;  // of lengths: their axis
} pwsp_array_info;

// A typed array that is bound.
typedef struct pwsp_array {
    const void *data;
    uint64_t count;
    ptowsp_dtype dtype;
    bool is_bound;
    uint32_t stride;  // bytes from an element to the next; 0: they are packed
    uint32_t
        range_count;  // not 0: data is range_count + 1 bounds, u32, not decreasing, and element
                      // i is the range that has i
} pwsp_array;

// Rows of entries: row i has those from indptr[i] to indptr[i + 1].
typedef struct pwsp_bound_csr {
    pwsp_array indptr, indices;
    uint64_t row_count;
    uint64_t entry_count;  // indptr[row_count]
    bool is_bound;
} pwsp_bound_csr;

// Element i of an array of integers or bools, as a cell. Requires i < count.
PWSP_INTERNAL uint64_t pwsp_array_at(const pwsp_array *array, uint64_t i);

#endif
