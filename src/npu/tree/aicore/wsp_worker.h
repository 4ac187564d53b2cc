// The loop of a core, run by a thread that stands in for one.

#ifndef WSP_WORKER_H
#define WSP_WORKER_H

#include "wsp_core.h"

#include "wsp_abi.h"
#include "wsp_bell.h"

namespace wsp {

// Polls its line and runs its tasks, until it must quit. Without a bell it does not sleep.
void work(pwsp_line *line, uint32_t core, Bell *bell, Bell *aicpu_bell);

}  // namespace wsp

#endif
