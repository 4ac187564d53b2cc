// Calling kernels: what runs them, and what says how long they take.

#ifndef PWSP_CALL_H
#define PWSP_CALL_H

#include "run.h"

// A kernel returned a failure: tells it in the expander, and returns false.
PWSP_INTERNAL bool pwsp_run_fail_kernel(pwsp_expander *x, ptowsp_cycles result);

// What a cost function sees of tiles.
static const ptowsp_tile pwsp_no_tiles[PTOWSP_TASK_TILE_MAX] = {{NULL, 0, 0}};

// Runs a kernel, and says how long it takes. False with the expander's error.
PWSP_FORCE_INLINE bool pwsp_run_kernel(ptowsp_run *run, bool is_time_only,
                                       ptowsp_cycles *out_cycles) {
    pwsp_expander *x = &run->expander;
    const pwsp_kernel_info *kernel = x->kernel;
    if (kernel->code) {
        return pwsp_run_tiles(run, is_time_only, out_cycles);
    }
    ptowsp_cycles cycles = kernel->cycles;
    if (kernel->cost) {
        x->task.tiles = pwsp_no_tiles;
        cycles = kernel->cost(&x->task, kernel->user);
        x->task.tiles = x->tiles;
        if (cycles > PTOWSP_CYCLES_MAX) {
            return pwsp_run_fail_kernel(x, cycles);
        }
    }
    if (!is_time_only) {
        ptowsp_cycles result = kernel->fn(&x->task, kernel->user);
        if (result > PTOWSP_CYCLES_MAX) {
            return pwsp_run_fail_kernel(x, result);
        }
        cycles = kernel->cost || kernel->cycles ? cycles : result;
    }
    *out_cycles = cycles;
    return true;
}

#endif
