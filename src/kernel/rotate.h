// Which tiles of a loop have two places, so that two of its iterations can be under way.

#ifndef PWSP_ROTATE_H
#define PWSP_ROTATE_H

#include "list.h"

// Places the tiles of a list that has loops: pwsp_list_place, and before it the choice of roots that
// rotate, as far as memories allow.
// Errors   Those of pwsp_list_place without any rotating root.
PWSP_INTERNAL bool pwsp_list_place_loops(pwsp_list *list, const ptoisa_machine *machine,
                                         pwsp_list_fault *fault);

#endif
