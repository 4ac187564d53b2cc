// The loop of a core, for which a thread stands in.

#ifndef WSP_WORKER_H
#define WSP_WORKER_H

#include "wsp_line.h"

namespace wsp {

// Polls its line and runs what it is given, until it is to quit. Without a bell it does not sleep.
void work(wsp_line *line, uint32_t core, Bell *bell, Bell *aicpu_bell);

}  // namespace wsp

#endif
