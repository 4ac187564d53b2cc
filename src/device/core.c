// A core of a device: it polls its line and runs the tasks it is given. It knows nothing else.
//
// An idle core costs nothing: it polls for a while, then yields to other threads, and then sleeps
// until its AICPU thread wakes it.

#include "device.h"

// Waits until the AICPU has written to the line. Returns the task, or NULL if the core must quit.
static pwsp_core_task *pwsp_core_wait(pwsp_core *core) {
    pwsp_line *line = &core->line;
    const ptowsp_device *device = core->aicpu->device;
    core->patience.round = 0;
    for (;;) {
        pwsp_core_task *task = (pwsp_core_task *)(uintptr_t)pwsp_core_poll(line);
        if (task || pwsp_core_must_quit(line)) {
            return task;
        }
        if (!pwsp_device_spin(device, &core->patience)) {
            pwsp_sleeper_begin(&core->sleeper, PWSP_AWAIT_ANY);
            pwsp_sleeper_end(&core->sleeper, pwsp_core_poll(line) || pwsp_core_must_quit(line), 0);
        }
    }
}

// Waits until the line may be used. False if the core must quit at once.
static bool pwsp_core_open(pwsp_core *core) {
    pwsp_line *line = &core->line;
    while (!pwsp_core_may_begin(line) && !pwsp_core_must_quit(line)) {
        pwsp_sleeper_begin(&core->sleeper, PWSP_AWAIT_ANY);
        pwsp_sleeper_end(&core->sleeper, pwsp_core_may_begin(line) || pwsp_core_must_quit(line), 0);
    }
    return !pwsp_core_must_quit(line);
}

PWSP_INTERNAL void *pwsp_core_main(void *arg) {
    pwsp_core *core = (pwsp_core *)arg;
    pwsp_sleeper *aicpu = &core->aicpu->sleeper;
    if (!pwsp_core_open(core)) {
        return NULL;
    }
    pwsp_core_begin(&core->line, core->index);
    pwsp_sleeper_wake(aicpu, PWSP_AWAIT_ANY);
    for (;;) {
        pwsp_core_task *task = pwsp_core_wait(core);
        if (!task) {
            return NULL;
        }
        task->result.start = task->is_clocked ? pwsp_ticks() : 0;
        task->run(task->user, &task->result);
        task->result.end = task->is_clocked ? pwsp_ticks() : 0;
        pwsp_core_done(&core->line);
        pwsp_sleeper_wake(aicpu, PWSP_AWAIT_ANY);
    }
}
