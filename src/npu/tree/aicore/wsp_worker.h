// The loop of a core.

#ifndef WSP_WORKER_H
#define WSP_WORKER_H

#include "wsp_line.h"

namespace wsp {

// Polls its line and runs what it is given, until it is to quit. On the device the bells are null.
void work(wsp_line *line, uint32_t core, Bell *bell, Bell *aicpu_bell);

}  // namespace wsp

#endif
