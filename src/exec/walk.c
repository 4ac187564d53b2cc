// Walks a program, and turns failures of kernels (no cycles returned) and of keys (not readable)
// into errors. Tasks of tile kernels are checked before any data is touched, and then executed, or only
// counted, on the run's core.

#include "walk.h"

#include <inttypes.h>

// -- life -----------------------------------------------------------------------------------------

#define PWSP_WALK_ARRAYS(ARRAY)                                                                    \
    ARRAY(walk->cells, program->cell_count)                                                        \
    ARRAY(walk->frames, program->frame_depth)                                                      \
    ARRAY(walk->columns, program->column_count *PWSP_COLUMN_MAX + PWSP_COLUMN_STEP)                \
    ARRAY(walk->is_written, program->tensors.count + 1)                                            \
    ARRAY(walk->unknown, program->ops.count)                                                       \
    ARRAY(walk->memos, program->kernels.count + 1)

PWSP_INTERNAL bool pwsp_walk_init(pwsp_walk *walk, const pwsp_memory *memory,
                                  const pwsp_bindings *bindings) {
    const ptowsp_program *program = bindings->program;
    bool is_good = true;
    memset(walk, 0, sizeof *walk);
    walk->memory = *memory;
    walk->program = program;
    walk->bindings = bindings;
    walk->expander.program = program;
    walk->tile_core.memory = *memory;
    pwsp_comm_init(&walk->comm, memory, bindings->context, &walk->halt);
    PWSP_WALK_ARRAYS(PWSP_ARRAY_ALLOC)
    walk->has_demand = pwsp_schedule_shares(&program->schedule);
    is_good = is_good && (!walk->has_demand ||
                          PWSP_ALLOC(memory, walk->demand_memos, program->kernels.count + 1));
    for (uint32_t i = 1; is_good && i < program->kernels.count; i++) {
        const pwsp_kernel_info *kernel = &program->kernels.items[i];
        is_good = !kernel->code || pwsp_tile_core_reserve(&walk->tile_core, kernel->code);
    }
    return is_good;
}

PWSP_INTERNAL void pwsp_walk_set_cost(pwsp_walk *walk, const ptowsp_cost *cost) {
    walk->cost = *cost;
    walk->tile_core.cost = &walk->cost;
    memset(walk->memos, 0, ((size_t)walk->program->kernels.count + 1) * sizeof walk->memos[0]);
    if (walk->has_demand) {
        memset(walk->demand_memos, 0,
               ((size_t)walk->program->kernels.count + 1) * sizeof walk->demand_memos[0]);
    }
}

// -- walking --------------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_walk_find_unknown(pwsp_walk *walk, const pwsp_deps *deps) {
    const ptowsp_program *p = walk->program;
    ptowsp_context *context = walk->bindings->context;
    bool has_changed = !walk->is_unknown_set;
    for (uint32_t i = 1; i < p->tensors.count; i++) {
        has_changed = has_changed || deps->tensors[i].is_written != walk->is_written[i];
        walk->is_written[i] = deps->tensors[i].is_written;
    }
    if (has_changed) {
        walk->is_unknown_set =
            pwsp_program_find_tainted(p, &walk->memory, walk->is_written, walk->unknown);
        if (!walk->is_unknown_set) {
            return PWSP_NO_MEMORY(context, "run: out of memory");
        }
    }
    for (uint32_t i = 0; walk->is_time_only && i < p->ops.count; i++) {
        const pwsp_op *op = PWSP_OP_AT(p, i);
        if (op->kind == PWSP_OP_SLOT_LOAD &&
            walk->is_written[p->slot_ops.items[op->at].view.tensor]) {
            walk->expander.node = op->node;
            pwsp_expander_fail(&walk->expander, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                               "it loads what a task writes, which only executing can tell");
            return pwsp_fail(context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX, "%s",
                             walk->expander.text);
        }
    }
    return PTOWSP_OK;
}

PWSP_INTERNAL void pwsp_walk_begin(pwsp_walk *walk, bool is_dry) {
    pwsp_expander *x = &walk->expander;
    const pwsp_bindings *bindings = walk->bindings;
    x->program = walk->program;
    x->cells = walk->cells;
    x->arrays = bindings->arrays;
    x->length_sums = bindings->length_sums;
    x->csrs = bindings->csrs;
    x->tensors = bindings->effective;
    x->frames = walk->frames;
    // Vectors of columns that cross lines of the cache take twice the time.
    size_t odd = (uintptr_t)walk->columns / sizeof(uint64_t) % PWSP_COLUMN_STEP;
    x->column_memory = walk->columns + (odd ? PWSP_COLUMN_STEP - odd : 0);
    x->unknown = is_dry ? walk->unknown : NULL;
    memcpy(walk->cells, bindings->initial, walk->program->cell_count * sizeof(uint64_t));
    pwsp_expander_begin(x);
}

// -- errors ---------------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_walk_fail(const pwsp_walk *walk) {
    const pwsp_expander *x = &walk->expander;
    PTOWSP_ASSERT(x->status != PTOWSP_OK);
    return pwsp_fail(walk->bindings->context, x->status, x->index, "%s", x->text);
}

PWSP_INTERNAL bool pwsp_walk_fail_kernel(pwsp_expander *x, ptowsp_cycles result) {
    ptowsp_status status = pwsp_kernel_status(result);
    pwsp_expander_fail(x, status, x->task.index, "task %" PRIu64 " failed: %s", x->task.index,
                       ptowsp_status_name(status));
    return false;
}

PWSP_INTERNAL bool pwsp_walk_fail_cost(pwsp_expander *x, ptowsp_cycles result) {
    ptowsp_status status = pwsp_kernel_status(result);
    pwsp_expander_fail(x, status, x->task.index, "task %" PRIu64 ": the cost of %s returned %s",
                       x->task.index, x->kernel->name, ptowsp_status_name(status));
    return false;
}

PWSP_INTERNAL bool pwsp_walk_fail_comm(pwsp_expander *x, const pwsp_error *error) {
    pwsp_expander_fail(x, error->status, x->task.index, "task %" PRIu64 ": %s", x->task.index,
                       error->text);
    return false;
}

PWSP_INTERNAL bool pwsp_walk_communicate(pwsp_walk *walk, bool is_time_only,
                                         ptowsp_cycles *out_cycles) {
    pwsp_expander *x = &walk->expander;
    pwsp_error error;
    if (!pwsp_comm_cycles(&walk->comm, x->kernel, x->task.args, out_cycles, &error)) {
        return pwsp_walk_fail_comm(x, &error);
    }
    return is_time_only || pwsp_comm_run(&walk->comm, x->kernel, &x->task) ||
           (!pwsp_walk_is_cut(walk) && pwsp_walk_fail_comm(x, &walk->comm.error));
}

PWSP_INTERNAL bool pwsp_walk_fail_keys(pwsp_expander *x) {
    pwsp_expander_fail_fault(x, true);
    return false;
}

// -- tile kernels ---------------------------------------------------------------------------------

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
