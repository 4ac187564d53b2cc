// Flags and barriers of a list of instructions, for the dependencies between the pipes of a core.

#ifndef PWSP_KERNEL_WAITS_H
#define PWSP_KERNEL_WAITS_H

#include "list.h"

// The event of MTE3 -> S and FIX -> S that says, at the end of a kernel, that its stores are done.
#define PWSP_EVENT_DRAIN 7

// Puts SET_FLAG, WAIT_FLAG and PIPE_BARRIER into a list whose tiles have been placed and which has
// none of them yet, so that every instruction finds memory as if instructions ran one after
// another; and S, at the end, waits for the last stores to global memory. Each tile parameter is
// taken to be memory of its own. tiles[].first and last are kept up to date.
//
// Errors   OUT_OF_MEMORY, LIMIT_EXCEEDED (2^24 instructions). The list is then unchanged.
// Cost     O(n log k) for n instructions and k tiles that are in memory at once, as a rule.
PWSP_INTERNAL bool pwsp_list_add_waits(pwsp_list *list, const ptoisa_machine *machine,
                                       pwsp_list_fault *fault);

#endif
