// Calling kernels: what runs them, and what says how long they take.

#ifndef PWSP_CALL_H
#define PWSP_CALL_H

#include "run.h"

// The status that a kernel failed with: it returned more than PTOWSP_CYCLES_MAX.
PWSP_INTERNAL ptowsp_status pwsp_kernel_status(ptowsp_cycles result);

// A kernel returned a failure: tells it in the expander, and returns false.
PWSP_INTERNAL bool pwsp_run_fail_kernel(pwsp_expander *x, ptowsp_cycles result);

// A key of the schedule reads beyond an array: tells it in the expander, and returns false.
PWSP_INTERNAL bool pwsp_run_fail_keys(pwsp_expander *x);

// A tile kernel's task is refused: tells why, as run->tile_core knows it; returns false.
PWSP_INTERNAL bool pwsp_run_fail_tiles(ptowsp_run *run);

// What a cost function sees of tiles.
static const ptowsp_tile pwsp_no_tiles[PTOWSP_TASK_TILE_MAX] = {{NULL, 0, 0}};

// Calls a kernel that is a C function, or only its cost; returns its cycles, or a failure.
PWSP_FORCE_INLINE ptowsp_cycles pwsp_kernel_call(const pwsp_kernel_info *kernel, ptowsp_task *task,
                                                 bool is_time_only) {
    ptowsp_cycles cycles = kernel->cycles;
    if (kernel->cost) {
        const ptowsp_tile *tiles = task->tiles;
        task->tiles = pwsp_no_tiles;
        cycles = kernel->cost(task, kernel->user);
        task->tiles = tiles;
        if (cycles > PTOWSP_CYCLES_MAX) {
            return cycles;
        }
    }
    if (!is_time_only) {
        ptowsp_cycles result = kernel->fn(task, kernel->user);
        if (result > PTOWSP_CYCLES_MAX) {
            return result;
        }
        cycles = kernel->cost || kernel->cycles ? cycles : result;
    }
    return cycles;
}

// Runs a kernel, and says how long it takes. False with the expander's error.
PWSP_FORCE_INLINE bool pwsp_run_kernel(ptowsp_run *run, bool is_time_only,
                                       ptowsp_cycles *out_cycles) {
    pwsp_expander *x = &run->expander;
    if (x->kernel->code) {
        return pwsp_run_tiles(run, is_time_only, out_cycles);
    }
    *out_cycles = pwsp_kernel_call(x->kernel, &x->task, is_time_only);
    return *out_cycles <= PTOWSP_CYCLES_MAX || pwsp_run_fail_kernel(x, *out_cycles);
}

// The keys of a task; false with the expander's error.
PWSP_FORCE_INLINE bool pwsp_run_keys(pwsp_expander *x, pwsp_arrival *arrival) {
    arrival->dispatch_key = pwsp_expander_value(x, x->task_op->dispatch);
    arrival->priority_key = pwsp_expander_value(x, x->task_op->priority);
    arrival->stream_key = pwsp_expander_value(x, x->task_op->stream);
    return PWSP_LIKELY(!x->fault.is_set) || pwsp_run_fail_keys(x);
}

#endif
