// The core that runs tile kernels: its memories, and the state of a list in a task: loop bounds,
// valid sizes of tiles, and addresses.
//
// Loops run as often as the task's bounds say, checked before anything else. Each iteration sets
// the sizes and places of the tiles that depend on it. So all iterations are counted one by one, and
// cycles are exact whatever their number.

#include "tile_core.h"

#include <inttypes.h>
#include <stdio.h>

// -- cores ----------------------------------------------------------------------------------------

bool pwsp_tile_core_reserve_tiles(pwsp_tile_core *core, const pwsp_tile_code *code) {
    const uint64_t tile_count = code->tile_count + 1ull;
    // One more: tile 0 stands for operands that an instruction does not have.
    if (!PWSP_GROW(&core->memory, core->tiles, core->tile_capacity, tile_count)) {
        return false;
    }
    if (!code->is_mixed) {
        return true;
    }
    if (!core->block) {  // its cores and FIFOs are set up by each run
        pwsp_tile_block *block = (pwsp_tile_block *)pwsp_memory_take(&core->memory, sizeof *block);
        if (!block) {
            return false;
        }
        core->block = block;
        block->turn = block->cut = block->ub_size = 0;
        block->tiles = NULL;
        block->tile_capacity = 0;
        block->ub = NULL;
        for (int i = 0; i < PWSP_FIFO_COUNT; i++) {
            block->fifos[i].slots = NULL;
            block->fifos[i].size = 0;
        }
    }
    return PWSP_GROW(&core->memory, core->block->tiles, core->block->tile_capacity, tile_count);
}

// Makes a memory at least so large, with 64 bytes more, to begin at a multiple of 64.
static bool pwsp_tile_core_reserve_block(pwsp_tile_core *core, uint8_t **block, uint32_t *size,
                                         uint32_t bytes) {
    if (*size >= bytes) {
        return true;
    }
    uint8_t *made = (uint8_t *)pwsp_memory_alloc(&core->memory, (size_t)bytes + 64);
    if (!made) {
        return false;
    }
    if (*block) {
        pwsp_memory_free(&core->memory, *block, (size_t)*size + 64);
    }
    *block = made;
    *size = bytes;
    return true;
}

static uint8_t *pwsp_tile_core_begin_of(uint8_t *block) {
    return block ? block + (64 - (uintptr_t)block % 64) % 64 : NULL;
}

bool pwsp_tile_core_reserve(pwsp_tile_core *core, const pwsp_tile_code *code) {
    if (!pwsp_tile_core_reserve_tiles(core, code)) {
        return false;
    }
    for (int i = 0; i < PWSP_FIFO_COUNT && code->is_mixed; i++) {
        pwsp_core_fifo *fifo = &core->block->fifos[i];
        uint32_t size = code->fifos[i].slot_bytes * code->fifos[i].slots;
        if (fifo->size >= size) {
            continue;
        }
        uint8_t *slots = (uint8_t *)pwsp_memory_alloc(&core->memory, size);
        if (!slots) {
            return false;
        }
        pwsp_memory_free(&core->memory, fifo->slots, fifo->size);
        fifo->slots = slots;
        fifo->size = size;
    }
    for (int i = 0; i < PTOISA_MEMORY_COUNT; i++) {
        if (!pwsp_tile_core_reserve_block(core, &core->blocks[i], &core->block_size[i],
                                          code->used[i])) {
            return false;
        }
    }
    return !code->split_tile ||
           pwsp_tile_core_reserve_block(core, &core->block->ub, &core->block->ub_size,
                                        code->used[PTOISA_VEC]);
}

// -- a task's sizes -------------------------------------------------------------------------------

static int64_t pwsp_task_size(const ptowsp_task *task, const pwsp_tile_code *code,
                              const pwsp_valid *valid) {
    uint32_t param = valid->param - 1u;
    if (!task) {
        return valid->axis ? code->param_cols[param] : code->param_rows[param];
    }
    return valid->axis ? ptowsp_task_cols(task, param) : ptowsp_task_rows(task, param);
}

static uint32_t pwsp_task_valid(const pwsp_tile_core *core, const ptowsp_task *task,
                                const pwsp_tile_code *code, const pwsp_valid *valid) {
    if (valid->param == 0) {
        return valid->max;
    }
    return pwsp_valid_at(valid,
                         pwsp_core_left(core, valid->loop, pwsp_task_size(task, code, valid)));
}

// -- loops ----------------------------------------------------------------------------------------

#define PWSP_LOOP_INDEX_MAX (INT64_C(1) << 30)

// A bound, as a task has it; any that is too large for an index is one more than those are.
static int64_t pwsp_loop_bound(const pwsp_list_bound *bound, const pwsp_tile_code *code,
                               const ptowsp_task *task) {
    switch ((pwsp_bound_kind)bound->kind) {
    case PWSP_BOUND_CONST: return bound->value;
    case PWSP_BOUND_SIZE:
        if (!task) {
            return bound->axis ? code->param_cols[bound->param] : code->param_rows[bound->param];
        }
        return bound->axis ? ptowsp_task_cols(task, bound->param)
                           : ptowsp_task_rows(task, bound->param);
    case PWSP_BOUND_SCALAR: break;
    }
    uint64_t bits = ptowsp_task_scalar(task, bound->param);
    if (code->scalar_dtypes[bound->param] == PTOWSP_U64 && bits > (uint64_t)PWSP_LOOP_INDEX_MAX) {
        return PWSP_LOOP_INDEX_MAX + 1;
    }
    return (int64_t)bits;
}

PWSP_INTERNAL void pwsp_loop_bounds(const pwsp_tile_code *code, uint32_t loop,
                                    const ptowsp_task *task, int64_t *out_begin, int64_t *out_end) {
    const pwsp_list_loop *of = &code->loops[loop].of;
    bool is_begin = task || of->begin.kind != PWSP_BOUND_SCALAR;
    bool is_end = task || of->end.kind != PWSP_BOUND_SCALAR;
    *out_begin = is_begin ? pwsp_loop_bound(&of->begin, code, task) : 0;
    *out_end = is_end ? pwsp_loop_bound(&of->end, code, task) : *out_begin + of->step;
    if (!task && *out_end < *out_begin) {
        *out_end = *out_begin;
    }
}

uint64_t pwsp_tile_code_iterations(const pwsp_tile_code *code, uint32_t loop,
                                   const ptowsp_task *task, int64_t *out_begin) {
    int64_t end, step = code->loops[loop].of.step;
    pwsp_loop_bounds(code, loop, task, out_begin, &end);
    return end > *out_begin ? (uint64_t)((end - *out_begin + step - 1) / step) : 0;
}

PWSP_INTERNAL bool pwsp_tile_core_check_loops(pwsp_tile_core *core, const pwsp_tile_code *code,
                                              const ptowsp_task *task) {
    uint64_t runs[PTOWSP_LOOP_MAX + 1], insns = code->insn_count;
    runs[0] = 1;
    for (uint32_t loop = 1; loop <= code->loop_count; loop++) {
        const pwsp_code_loop *of = &code->loops[loop];
        int64_t begin, end;
        pwsp_loop_bounds(code, loop, task, &begin, &end);
        if (begin < 0 || end < begin || end > PWSP_LOOP_INDEX_MAX) {
            snprintf(core->text, sizeof core->text,
                     "kernel %s: loop %u goes from %" PRId64 " to %" PRId64
                     "; its bounds are 0 to 2^30, in this order",
                     code->name, loop, begin, end);
            return false;
        }
        core->end[loop] = end;
        if (of->of.late_of) {
            continue;  // it has no body
        }
        uint64_t count =
            pwsp_loop_turns(&of->of, pwsp_tile_code_iterations(code, loop, task, &begin));
        // Up to 2^20 * 2^30; of more than 2^20 the first says enough, so neither overflows.
        runs[loop] = runs[of->of.parent] * count;
        bool is_many = runs[loop] > PTOWSP_TASK_INSN_MAX;
        insns += is_many ? runs[loop] : runs[loop] * of->insn_count;
        if (insns > PTOWSP_TASK_INSN_MAX) {
            snprintf(core->text, sizeof core->text,
                     "kernel %s: loop %u runs %" PRIu64 " times; a task executes at most %d "
                     "instructions",
                     code->name, loop, runs[loop], PTOWSP_TASK_INSN_MAX);
            return false;
        }
    }
    return true;
}

// Do two sizes go together? In a loop they are compared in each of its iterations.
static bool pwsp_tile_core_check_sizes(pwsp_tile_core *core, const pwsp_tile_code *code,
                                       const pwsp_tile_check *check, const ptowsp_task *task,
                                       uint32_t first, uint32_t second) {
    if (first) {
        int64_t begin, step = code->loops[first].of.step;
        uint64_t count = pwsp_tile_code_iterations(code, first, task, &begin);
        for (uint64_t n = 0; n < count; n++) {
            core->index[first] = begin + (int64_t)n * step;
            if (!pwsp_tile_core_check_sizes(core, code, check, task, second, 0)) {
                return false;
            }
        }
        return true;
    }
    if (second) {
        return pwsp_tile_core_check_sizes(core, code, check, task, second, 0);
    }
    uint32_t a = pwsp_task_valid(core, task, code, &check->a);
    uint32_t b = pwsp_task_valid(core, task, code, &check->b);
    if (check->a.param && check->b.param ? a != b : b < a) {
        snprintf(core->text, sizeof core->text, "%.32s: %u and %u valid %s",
                 pwsp_kop_name((pwsp_kop_kind)check->kind), a, b, check->axis ? "columns" : "rows");
        return false;
    }
    return true;
}

bool pwsp_tile_core_check(pwsp_tile_core *core, const pwsp_tile_code *code,
                          const ptowsp_task *task) {
    if (code->loop_count && !pwsp_tile_core_check_loops(core, code, task)) {
        return false;
    }
    for (uint32_t i = 0; i < code->check_count; i++) {
        const pwsp_tile_check *check = &code->checks[i];
        uint32_t first = check->a.loop, second = check->b.loop == first ? 0 : check->b.loop;
        if (!pwsp_tile_core_check_sizes(core, code, check, task, first, second)) {
            return false;
        }
    }
    return true;
}

// -- a task's tiles -------------------------------------------------------------------------------

// Do both vector cores have a part of a tile? Without a block a core has whole tiles, to be checked.
static bool pwsp_tile_core_shares(const pwsp_tile_core *core, const pwsp_tile_code *code,
                                  const pwsp_list_tile *tile) {
    return code->split_tile && tile->memory == PTOISA_VEC && core->block;
}

PWSP_INTERNAL void pwsp_tile_core_size(pwsp_tile_core *core, const pwsp_tile_code *code,
                                       const ptowsp_task *task, uint32_t i) {
    const pwsp_list_tile *from = &code->tiles[i];
    uint32_t rows = pwsp_task_valid(core, task, code, &from->valid_rows);
    uint32_t cols = pwsp_task_valid(core, task, code, &from->valid_cols);
    bool is_shared = pwsp_tile_core_shares(core, code, from);
    for (uint32_t turn = 0; turn < (is_shared ? 2 : 1); turn++) {
        ptoisa_tile *tile = turn ? &core->block->tiles[i] : &core->tiles[i];
        bool is_flat = is_shared && from->rows == 1;
        tile->valid_rows = is_shared && !is_flat ? pwsp_block_part(core->block, rows, turn) : rows;
        tile->valid_cols = is_flat ? pwsp_block_part(core->block, cols, turn) : cols;
    }
}

PWSP_INTERNAL void pwsp_tile_core_cut(pwsp_tile_core *core, const pwsp_tile_code *code,
                                      const ptowsp_task *task) {
    if (code->split_tile) {
        const pwsp_valid *rows = &code->tiles[code->split_tile].valid_rows;
        core->block->cut = (pwsp_task_valid(core, task, code, rows) + 1) / 2;
    }
}

PWSP_INTERNAL void pwsp_tile_core_place(pwsp_tile_core *core, const pwsp_tile_code *code,
                                        const ptowsp_task *task, bool is_dry) {
    uint8_t *memory[PTOISA_MEMORY_COUNT];
    for (int i = 0; i < PTOISA_MEMORY_COUNT; i++) {
        memory[i] = pwsp_tile_core_begin_of(core->blocks[i]);
    }
    for (uint32_t i = 1; i < code->tile_count; i++) {
        const pwsp_list_tile *from = &code->tiles[i];
        ptoisa_tile *tile = &core->tiles[i];
        const pwsp_list_tile *root = &code->tiles[from->root];
        uint32_t address = root->address + from->offset +
                           pwsp_list_place_at(from, root, 0) * (uint32_t)pwsp_list_root_step(root);
        tile->data = is_dry || !memory[from->memory] ? NULL : memory[from->memory] + address;
        tile->dtype = from->dtype;
        tile->memory = from->memory;
        tile->layout = from->layout;
        tile->pad = from->pad;
        tile->is_dynamic = from->valid_cols.param != 0;
        tile->rows = from->rows;
        tile->cols = from->cols;
        if (pwsp_tile_core_shares(core, code, from)) {
            const bool is_flat = from->rows == 1;
            tile->rows = from->own_rows && !is_flat ? from->own_rows : from->rows;
            tile->cols = from->own_rows && is_flat ? from->own_rows : from->cols;
            ptoisa_tile *second = &core->block->tiles[i];
            *second = *tile;
            second->data = tile->data ? pwsp_tile_core_begin_of(core->block->ub) + address : NULL;
        }
        pwsp_tile_core_size(core, code, task, i);
    }
}

// Moves a rotating tile from its place in one turn of the loop to its place in another one.
static void pwsp_tile_core_rotate(pwsp_tile_core *core, const pwsp_tile_code *code, uint32_t i,
                                  uint64_t from, uint64_t to) {
    const pwsp_list_tile *root = &code->tiles[code->tiles[i].root];
    int64_t step = (int64_t)pwsp_list_root_step(root);
    int64_t places = (int64_t)pwsp_list_place_at(&code->tiles[i], root, to) -
                     (int64_t)pwsp_list_place_at(&code->tiles[i], root, from);
    bool is_shared = pwsp_tile_core_shares(core, code, root);
    for (uint32_t turn = 0; turn < (is_shared ? 2 : 1); turn++) {
        ptoisa_tile *tile = turn ? &core->block->tiles[i] : &core->tiles[i];
        if (tile->data) {
            tile->data = (uint8_t *)tile->data + places * step;
        }
    }
}

PWSP_INTERNAL void pwsp_tile_core_iterate(pwsp_tile_core *core, const pwsp_tile_code *code,
                                          const ptowsp_task *task, uint32_t loop, uint64_t n) {
    const pwsp_code_loop *of = &code->loops[loop];
    core->iteration[loop] = n;
    for (uint32_t i = 0; i < of->tile_count; i++) {
        uint32_t at = code->loop_tiles[of->tiles + i];
        pwsp_tile_core_size(core, code, task, at);
        if (n > 0 && code->tiles[code->tiles[at].root].loop == loop) {
            pwsp_tile_core_rotate(core, code, at, n - 1, n);
        }
    }
}

PWSP_INTERNAL void pwsp_tile_core_leave(pwsp_tile_core *core, const pwsp_tile_code *code,
                                        uint32_t loop, uint64_t count) {
    const pwsp_code_loop *of = &code->loops[loop];
    for (uint32_t i = 0; i < of->tile_count && count; i++) {
        uint32_t at = code->loop_tiles[of->tiles + i];
        if (code->tiles[code->tiles[at].root].loop == loop) {
            pwsp_tile_core_rotate(core, code, at, count - 1, 0);
        }
    }
}
