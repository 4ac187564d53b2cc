// Passes over a body before it is lowered: they fold constants, normalise forms, drop dead code,
// and on request fuse operations that one instruction can do.

#ifndef PWSP_PASSES_H
#define PWSP_PASSES_H

#include "body.h"

// Each changes the operations in place. None adds operations, and none changes stored results. The
// first three also keep the cycles of the unit model as PTO-WSP counts them: x * 1 stays, for
// instance. `uses` is zeroed room for a number of each operation.
PWSP_INTERNAL void pwsp_pass_canonicalise(ptowsp_body *body);
PWSP_INTERNAL void pwsp_pass_fold(ptowsp_body *body);
PWSP_INTERNAL void pwsp_pass_drop_dead(ptowsp_body *body, uint32_t *uses);
PWSP_INTERNAL void pwsp_pass_fuse(ptowsp_body *body);

// All of them, in this order. Operations that they change are also kept as built, for the text of
// modules: usually few or none. The arena is room for it. False when memory is out.
PWSP_INTERNAL bool pwsp_pass_all(ptowsp_body *body, pwsp_arena *arena);

// How often a value is an operand of something that is not dead.
PWSP_INTERNAL uint32_t pwsp_body_use_count(const ptowsp_body *body, uint32_t value);

#endif
