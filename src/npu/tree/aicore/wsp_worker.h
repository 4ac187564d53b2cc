// The loop of a core, run by a thread that stands in for one.

#ifndef WSP_WORKER_H
#define WSP_WORKER_H

#include "wsp_core.h"

#include "wsp_abi.h"

namespace wsp {

// Where a core writes when tasks ran, by their index.
struct Spans {
    ptowsp_span *spans;
    uint64_t capacity;
};

// Polls its line and runs its tasks, until it must quit.
void work(pwsp_core *core, Spans spans = Spans());

}  // namespace wsp

#endif
