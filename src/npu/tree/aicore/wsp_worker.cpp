// A core knows only its line: it waits there for a task, runs it by the number of its kernel, and
// reports it done. On a device cores do so in wsp_core_main.cpp.

#ifndef WSP_ASCEND

#include "wsp_worker.h"

namespace wsp {

namespace {

void run(wsp_task *task, uint32_t core, Spans spans) {
    if (task->index >= spans.capacity) {
        wsp_core_run(task);
        return;
    }
    ptowsp_span *span = &spans.spans[task->index];
    span->lane = core;
    span->kind = task->kernel;
    span->begin = ptowsp_clock_ns();
    wsp_core_run(task);
    span->end = ptowsp_clock_ns();
}

}  // namespace

void work(pwsp_core *core, Spans spans) {
    if (!pwsp_core_open(core)) {
        return;
    }
    while (const uint64_t task = pwsp_core_next(core)) {
        run(reinterpret_cast<wsp_task *>(static_cast<uintptr_t>(task)), core->index, spans);
        pwsp_core_report(core);
    }
}

}  // namespace wsp

#endif
