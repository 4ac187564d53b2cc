// Loops of mixed lists that begin iterations ahead (ptowsp_tile_preload).
//
// Without a preload, a cube core is idle while a vector core turns its first product of an iteration
// into a factor of the second product. A loop that preloads p iterations runs p more turns, and its
// body has two phases. Turn t executes the early phase of iteration t and the late phase of iteration
// t - p:
//
//      cube     QK 0 | QK 1 | QK 2, PV 0 | QK 3, PV 1 | ...  PV n-2 | PV n-1
//      vector   sm 0 | sm 1 | sm 2, up 0 | sm 3, up 1 | ...  up n-2 | up n-1        p = 2
//
//      late     a TPOP of the cube core, which takes a tile that a vector core has made in the
//               iteration; an instruction that reads a late result; a load whose readers are all late
//      early    everything else
//
// Early instructions come first in the body. In a turn without an iteration of its phase, an
// instruction is skipped. Flags and barriers are never skipped: they order both phases as one body.
//
// Late instructions have a loop number of their own, without a body. Sizes and windows use it for the
// index of the late iteration. A tile that early instructions write and late ones read has p + 1
// places; late instructions use a view of it (is_late). FIFOs have 2 (p + 1) slots for each tile that an
// iteration pushes to the cube core. Fewer slots can deadlock, because PTO-ISA frees them by halves.

#ifndef PWSP_PRELOAD_H
#define PWSP_PRELOAD_H

#include "list.h"

// Cuts the bodies of loops that preload into phases. A list that is not mixed stays as it is.
//
// Errors   UNSUPPORTED      the loop contains another loop; the early phase needs a late result; or
//                           both phases use a carried value
//          LIMIT_EXCEEDED   more than PTOWSP_LOOP_MAX loops, where a loop that preloads counts
//                           twice; or more slots than a FIFO can have
//          OUT_OF_MEMORY
PWSP_INTERNAL bool pwsp_list_preload(pwsp_list *list, pwsp_list_fault *fault);

#endif
