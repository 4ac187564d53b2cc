// Memory of a list of instructions: the addresses of its tiles.

#ifndef PWSP_KERNEL_MEMORY_H
#define PWSP_KERNEL_MEMORY_H

#include "list.h"

#define PWSP_TILE_ALIGN 32u  // bytes; addresses of tiles are multiples

// Finds, for each root tile, the first and the last instruction that use it (through itself or a
// view) and an address in its memory; and how much of each memory is used. Roots used by one
// instruction never share bytes, so it writes no bytes that it reads unless lowering made them one
// root. A root that no instruction uses gets address 0, and first = UINT32_MAX, last = 0.
//
// Errors   LIMIT_EXCEEDED   a memory is too small; OUT_OF_MEMORY. The list is then unchanged.
// Cost     O(n log n) for n instructions, if a number of tiles that does not grow with n is live at
//          once; no more than O(n^2 log n) for any list.
PWSP_INTERNAL bool pwsp_list_place(pwsp_list *list, const ptoisa_machine *machine,
                                   pwsp_list_fault *fault);

// The same; a root lives from instruction early[tile] on at the latest, if that is not 0.
PWSP_INTERNAL bool pwsp_list_place_early(pwsp_list *list, const ptoisa_machine *machine,
                                         const uint32_t *early, pwsp_list_fault *fault);

#endif
