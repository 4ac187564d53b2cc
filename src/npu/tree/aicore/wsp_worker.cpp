// A core knows nothing but its line: it waits for a task there, runs it by the number of its
// kernel, and says that it is done. On a device cores do so in wsp_core_main.cpp.

#ifndef WSP_ASCEND

#include "wsp_worker.h"

namespace wsp {

namespace {

void ring(Bell *bell) {
    if (bell) {
        bell->ring();
    }
}

// The next task; null: the core is to quit.
wsp_task *await_task(const wsp_line *line, Bell *bell) {
    for (;;) {
        uint32_t ticket = bell ? bell->ticket() : 0;
        wsp_task *task = poll_task(line);
        if (task || must_quit(line)) {
            return task;
        }
        if (bell) {
            bell->wait(ticket);
        }
    }
}

}  // namespace

void work(wsp_line *line, uint32_t core, Bell *bell, Bell *aicpu_bell) {
    for (;;) {
        uint32_t ticket = bell ? bell->ticket() : 0;
        if (must_quit(line)) {
            return;
        }
        if (is_open(line)) {
            break;
        }
        if (bell) {
            bell->wait(ticket);
        }
    }
    begin_polling(line, core);
    ring(aicpu_bell);
    while (wsp_task *task = await_task(line, bell)) {
        wsp_core_run(task);
        end_task(line);
        ring(aicpu_bell);
    }
}

}  // namespace wsp

#endif
