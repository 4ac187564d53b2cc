// Cutting a list into a cube and a vector half.
//
// A2/A3 has no path from L0C to UB nor from UB to L1. A list for both cores becomes mixed
// (list.h): each such TMOV becomes a TPUSH on one core and, later in the list, a TPOP on the other.
//
//      TMOV ub, l0c     ->   TPUSH <- l0c     cube, pipe FIX       into the FIFO to vector cores
//                            TPOP ub <-       vector, pipe MTE2
//      TMOV l1, ub      ->   TPUSH <- ub      vector, pipe MTE3    into the FIFO to the cube core
//                            TPOP l1 <-       cube, pipe MTE2
//
// A TPOP comes where its core first needs the tile, not before: its pipe stands still until the tile
// is there. (So the values of attention are loaded while a vector core computes the probabilities.)
//
// There is one FIFO for each direction, with two slots of the size of its largest tile, in global
// memory. A slot is read before the next but one push, so two suffice whatever the list.
//
// Then it is found out whether both vector cores can share the rows of the vector half: see list.h.
//
// A push keeps the type. TPUSH has a form that converts on the way out of L0C, which would save the
// TCVT after a TPOP; but PTO-ISA's documentation does not say how its parameters are given.
//
// In the unit model a push costs the TMOV and a pop costs nothing: PTO-WSP counts one move.

#ifndef PWSP_CUT_H
#define PWSP_CUT_H

#include "list.h"

// FIFOs order the cores' accesses to on-chip tiles. A parameter that both use and one stores to is
// ordered only by chance, which the proof checks. If it refuses, the list is rebuilt and cut so
// that the vector core does all loads and stores of such parameters (rerouted), which its own flags
// order.

// Cuts the list if the machine needs that; false with a fault. param_dtypes: of the parameters, whose
// loads and stores are rerouted where needed; NULL: none are.
PWSP_INTERNAL bool pwsp_list_cut(pwsp_list *list, const ptoisa_machine *machine,
                                 const uint8_t *param_dtypes, pwsp_list_fault *fault);

#endif
