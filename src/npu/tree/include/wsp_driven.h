// Slots that are loaded from tensors of a device, when this machine runs the program (WSP_DRIVEN).

#ifndef WSP_DRIVEN_H
#define WSP_DRIVEN_H

#include "wsp_core.h"

namespace wsp {

// Loads an element as a slot. False with an error of the run.
bool load_element(const pwsp_bound_tensor &tensor, const pwsp_tile_at &element,
                  uint64_t *out_value);

}  // namespace wsp

#endif
