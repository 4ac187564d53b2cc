// A proof that a core may run a finished list of instructions.

#ifndef PWSP_PROOF_H
#define PWSP_PROOF_H

#include "list.h"

// Checks a list that has its addresses, flags and barriers, and trusts nothing in it:
//
//   - tiles are in forms that the device takes, aligned, inside their memory, views inside their root, and
//     roots whose bytes overlap are never live at once;
//   - every read follows a write;
//   - flags are set once and waited for once, in the order of the list;
//   - whatever the pipes' speeds, each access comes after the conflicting ones before it in the
//     list, and S ends after the last store to global memory.
//
// A list with loops is proved for any number of their iterations.
//
// Of several faults the first in the list is named: tiles and lives, then flags, FIFOs and order.
//
// Errors   INVALID_PARAMS   with the fault; LIMIT_EXCEEDED (2^30 instructions), OUT_OF_MEMORY.
// Cost     O(n * d), where at most d instructions can be under way with one of them; and O(n) memory.
PWSP_INTERNAL bool pwsp_list_verify(const pwsp_list *list, const ptoisa_machine *machine,
                                    pwsp_list_fault *fault);

#endif
