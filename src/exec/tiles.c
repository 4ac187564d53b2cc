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

// Is a memo of a task with the same sizes and scalars? Otherwise it becomes one, and is not set.
static bool pwsp_tile_memo_is_of(pwsp_tile_memo *memo, const pwsp_tile_code *code,
                                 const ptowsp_task *task) {
    const uint64_t *sizes = task->args + task->user_axis_count;
    bool is_same = memo->is_set;
    for (uint32_t i = 0; i < 2 * task->tile_count; i++) {
        is_same = is_same && memo->sizes[i] == sizes[i];
        memo->sizes[i] = (uint32_t)sizes[i];
    }
    for (uint32_t i = 0; i < code->scalar_count && code->loop_count; i++) {
        uint64_t scalar = ptowsp_task_scalar(task, i);
        is_same = is_same && memo->scalars[i] == scalar;
        memo->scalars[i] = scalar;
    }
    memo->is_set = is_same;
    return is_same;
}

PWSP_INTERNAL bool pwsp_walk_tiles(pwsp_walk *walk, bool is_time_only, ptowsp_cycles *out_cycles) {
    pwsp_expander *x = &walk->expander;
    const pwsp_tile_code *code = x->kernel->code;
    if (!is_time_only) {
        return pwsp_tile_core_run(&walk->tile_core, code, &x->task, false, out_cycles) ||
               pwsp_walk_fail_tiles(walk);
    }
    pwsp_tile_memo *memo = &walk->memos[x->task_op->kernel];
    if (!pwsp_tile_memo_is_of(memo, code, &x->task)) {
        memo->is_set = pwsp_tile_core_run(&walk->tile_core, code, &x->task, true, &memo->cycles);
    }
    *out_cycles = memo->cycles;
    return memo->is_set || pwsp_walk_fail_tiles(walk);
}

// -- demand ---------------------------------------------------------------------------------------

// The bytes of a C kernel's task; as many as it says, or as its tiles have.
static uint64_t pwsp_kernel_bytes(const pwsp_kernel_info *kernel, const pwsp_arrival *arrival) {
    uint64_t bytes = kernel->bytes;
    if (bytes == PTOWSP_TILE_BYTES) {
        bytes = 0;
        for (uint32_t i = 0; i < arrival->tile_count; i++) {
            const ptowsp_tile_param *param = &kernel->tiles[i];
            bytes += (uint64_t)arrival->tiles[i].rows * arrival->tiles[i].cols *
                     ptowsp_dtype_size(param->dtype) * (param->direction == PTOWSP_INOUT ? 2 : 1);
        }
    }
    return pwsp_min_u64(bytes, PTOWSP_TASK_BYTES_MAX);
}

// The parts of a task take other cycles than its kernel: as much less or more each.
static void pwsp_demand_scale(pwsp_demand *demand, uint64_t cycles) {
    uint64_t whole = 0, left = cycles;
    for (uint32_t i = 0; i < demand->part_count; i++) {
        whole += demand->parts[i].cycles;
    }
    for (uint32_t i = 0; i < demand->part_count && whole != cycles; i++) {
        uint64_t *part = &demand->parts[i].cycles;
        const bool is_last = i + 1 == demand->part_count;
        *part = is_last || whole == 0
                    ? left
                    : cycles / whole * *part + pwsp_mul_div_u64(*part, cycles % whole, whole);
        left -= *part;
    }
}

PWSP_INTERNAL bool pwsp_walk_find_demand(pwsp_walk *walk, const ptowsp_task *task,
                                         pwsp_arrival *arrival) {
    const pwsp_kernel_info *kernel = &walk->program->kernels.items[arrival->kernel];
    pwsp_demand *demand = &walk->demand;
    if (kernel->code) {
        pwsp_demand_memo *memo = &walk->demand_memos[arrival->kernel];
        if (!pwsp_tile_memo_is_of(&memo->of, kernel->code, task)) {
            memo->of.is_set =
                pwsp_tile_core_demand(&walk->tile_core, kernel->code, task, &memo->demand);
        }
        *demand = memo->demand;
        if (!memo->of.is_set) {
            return pwsp_walk_fail_tiles(walk);
        }
    } else {
        demand->again = 0;
        demand->bytes = pwsp_kernel_bytes(kernel, arrival);
        demand->part_count = 1;
        demand->parts[0].cycles = arrival->cycles;
        demand->parts[0].bytes = demand->bytes;
    }
    pwsp_demand_scale(demand, arrival->cycles);
    arrival->demand = demand->bytes ? demand : NULL;
    return true;
}
