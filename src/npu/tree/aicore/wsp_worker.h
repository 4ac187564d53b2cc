// The loop of a core, run by a thread that stands in for one.

#ifndef WSP_WORKER_H
#define WSP_WORKER_H

#include "wsp_core.h"

#include "wsp_abi.h"
#include "wsp_bell.h"

namespace wsp {

// Where a core writes when tasks ran, by their index.
struct Spans {
    ptowsp_span *spans;
    uint64_t capacity;
};

// Polls its line and runs its tasks, until it must quit.
void work(pwsp_line *line, uint32_t core, Bell &bell, Bell &aicpu_bell, Spans spans = Spans());

}  // namespace wsp

#endif
