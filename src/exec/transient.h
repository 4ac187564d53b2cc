// The memory of transient tensors during executions: sizes, placement, and the block they lie in.

#ifndef PWSP_TRANSIENT_H
#define PWSP_TRANSIENT_H

#include "bind.h"

// Finds the sizes of all transient tensors under the bindings, which have been verified, and their
// places. The same sizes as before cost nothing more.
PWSP_INTERNAL ptowsp_status pwsp_transients_find(pwsp_bindings *bindings);

// Binds the transient tensors to their places: in the block of the caller or of the context, or
// when only time is measured, at addresses from 2^63 on that nothing else has.
PWSP_INTERNAL ptowsp_status pwsp_transients_bind(pwsp_bindings *bindings, bool is_time_only);

#endif
