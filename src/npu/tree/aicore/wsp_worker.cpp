// A core knows only its line: it waits there for a task, runs it by the number of its kernel, and
// reports it done. On a device cores do so in wsp_core_main.cpp.

#ifndef WSP_ASCEND

#include "wsp_worker.h"

namespace wsp {

namespace {

// The next task; null: the core must quit.
wsp_task *await_task(const pwsp_line *line, Bell &bell) {
    for (;;) {
        const uint32_t ticket = bell.ticket();
        const uint64_t task = pwsp_core_poll(line);
        if (task || pwsp_core_must_quit(line)) {
            return reinterpret_cast<wsp_task *>(static_cast<uintptr_t>(task));
        }
        bell.wait(ticket);
    }
}

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

void work(pwsp_line *line, uint32_t core, Bell &bell, Bell &aicpu_bell, Spans spans) {
    for (;;) {
        const uint32_t ticket = bell.ticket();
        if (pwsp_core_must_quit(line)) {
            return;
        }
        if (pwsp_core_may_begin(line)) {
            break;
        }
        bell.wait(ticket);
    }
    pwsp_core_begin(line, core);
    aicpu_bell.ring();
    while (wsp_task *task = await_task(line, bell)) {
        run(task, core, spans);
        pwsp_core_done(line);
        aicpu_bell.ring();
    }
}

}  // namespace wsp

#endif
