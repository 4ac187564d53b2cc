// Tile kernels of a run: their tasks are checked before any data is touched, and then executed, or
// only counted, on the run's core.

#include "call.h"

#include <inttypes.h>

PWSP_INTERNAL bool pwsp_walk_fail_tiles(pwsp_walk *walk) {
    pwsp_expander *x = &walk->expander;
    pwsp_expander_fail(x, PTOWSP_INVALID_PARAMS, x->task.index, "task %" PRIu64 ": %s",
                       x->task.index, walk->tile_core.text);
    return false;
}

PWSP_INTERNAL bool pwsp_walk_check_tiles(pwsp_walk *walk, const pwsp_tile_code *code) {
    return pwsp_tile_core_check(&walk->tile_core, code, &walk->expander.task) ||
           pwsp_walk_fail_tiles(walk);
}

PWSP_INTERNAL bool pwsp_walk_tiles(pwsp_walk *walk, bool is_time_only, ptowsp_cycles *out_cycles) {
    pwsp_expander *x = &walk->expander;
    const pwsp_tile_code *code = x->kernel->code;
    if (!is_time_only) {
        return pwsp_tile_core_run(&walk->tile_core, code, &x->task, false, out_cycles) ||
               pwsp_walk_fail_tiles(walk);
    }
    pwsp_tile_memo *memo = &walk->memos[x->task_op->kernel];
    const uint64_t *sizes = x->task.args + x->task.user_axis_count;
    bool is_same = memo->is_set;
    for (uint32_t i = 0; i < 2 * x->task.tile_count; i++) {
        is_same = is_same && memo->sizes[i] == sizes[i];
        memo->sizes[i] = (uint32_t)sizes[i];
    }
    for (uint32_t i = 0; i < code->scalar_count && code->loop_count; i++) {
        uint64_t scalar = ptowsp_task_scalar(&x->task, i);
        is_same = is_same && memo->scalars[i] == scalar;
        memo->scalars[i] = scalar;
    }
    if (!is_same) {
        memo->is_set = pwsp_tile_core_run(&walk->tile_core, code, &x->task, true, &memo->cycles);
    }
    *out_cycles = memo->cycles;
    return memo->is_set || pwsp_walk_fail_tiles(walk);
}
