// A list with loops as the plain list that a core executes, for given numbers of iterations.

#ifndef PWSP_UNROLL_H
#define PWSP_UNROLL_H

#include "list.h"

// Where instructions and tiles of the plain list come from.
typedef struct pwsp_unrolled {
    pwsp_list list;
    uint32_t *origins;  // [insn]
    uint64_t origin_capacity;
    uint32_t *tile_origins;  // [tile]
    uint64_t tile_origin_capacity;
} pwsp_unrolled;

// Checks that loops are closed in turn, that the loop of a rotating root has all its uses, of a
// rotating flag is around it, and of a sum that begins with it is so and runs. False with a fault.
PWSP_INTERNAL bool pwsp_unroll_check(const pwsp_list *list, pwsp_list_fault *fault);

PWSP_INTERNAL void pwsp_unroll_init(pwsp_unrolled *unrolled, pwsp_memory memory);

// Makes the plain list, reusing the memory of the previous one: counts[loop] is the number of
// iterations. False when memory is out.
PWSP_INTERNAL bool pwsp_unroll(const pwsp_list *list, const uint32_t *counts,
                               pwsp_unrolled *unrolled);
PWSP_INTERNAL void pwsp_unroll_free(pwsp_unrolled *unrolled);

#endif
