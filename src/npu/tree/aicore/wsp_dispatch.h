// The vocabulary of dispatch.cpp: a core's steps before and after a kernel.

#ifndef WSP_DISPATCH_H
#define WSP_DISPATCH_H

#include "wsp_kernel.h"

namespace wsp {

AICORE inline void begin_task(__gm__ wsp_task *task) {
    task->cycles = 0;
    task->status = PTOWSP_OK;
    task->fault = 0;
}

// The machine whose cycles a kernel counts.
#if WSP_IS_SHIM
#define WSP_MACHINE(machine) (machine)
#else
#define WSP_MACHINE(machine) nullptr
#endif

#if WSP_IS_SHIM

// Makes this thread's core one of a machine, which counts with the model of the run. Operands are
// not checked again: that was done when the kernel was built.
inline void begin_tiles(wsp_task *task, const ptoisa_machine *machine) {
    begin_task(task);
    ptoisa_core &core = ptoisa_this_core();
    core.model = static_cast<ptoisa_model>(task->model);
    core.machine = machine;
    core.is_as_simulator = false;
#ifndef WSP_CHECKED
    core.is_checked = false;
#endif
    core.on_fault = [](ptoisa_core *self, const char *) {
        static_cast<wsp_task *>(self->fault_user)->fault = FAULT_OF_SHIM;
    };
    core.fault_user = task;
    ptoisa_core_reset(&core);
}

inline void end_tiles(wsp_task *task) {
    ptoisa_core &core = ptoisa_this_core();
    if (task->status == PTOWSP_OK && (!ptoisa_core_finish(&core) || task->fault)) {
        task->status = PTOWSP_KERNEL_FAILED;
    }
    task->cycles = task->status == PTOWSP_OK ? ptoisa_cycles(&core) : 0;
    core.fault_user = nullptr;
}

// The text of the first fault of a PTO-ISA source in this process, or "".
inline const char *own_fault(const char *said = nullptr) {
    static char text[256];
    static char is_taken, is_there;
    if (said && !__atomic_test_and_set(&is_taken, __ATOMIC_RELAXED)) {
        std::strncpy(text, said, sizeof text - 1);
        __atomic_store_n(&is_there, char(1), __ATOMIC_RELEASE);  // for the load below
    }
    return __atomic_load_n(&is_there, __ATOMIC_ACQUIRE) ? text : "";
}

// After begin_tiles: nobody has checked the operands of a source that is passed through.
inline void begin_own(bool is_as_simulator) {
    ptoisa_core &core = ptoisa_this_core();
    core.is_checked = true;
    core.is_as_simulator = is_as_simulator;
    core.on_fault = [](ptoisa_core *self, const char *text) {
        static_cast<wsp_task *>(self->fault_user)->fault = FAULT_OF_SHIM;
        own_fault(text);
    };
}

#else

AICORE inline void begin_own(bool) {
}

template <typename Machine> AICORE inline void begin_tiles(__gm__ wsp_task *task, Machine) {
    begin_task(task);
}

AICORE inline void end_tiles(__gm__ wsp_task *) {
}

#endif

// Cycles that the program has given, in place of the counted ones.
AICORE inline void set_cycles(__gm__ wsp_task *task, uint64_t cycles) {
    task->cycles = task->status == PTOWSP_OK ? cycles : 0;
}

}  // namespace wsp

#endif
