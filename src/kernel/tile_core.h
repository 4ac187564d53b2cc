// Shared by the rooms that run tile kernels: a core's tiles in a task and in the iterations of its
// loops.

#ifndef PWSP_TILE_CORE_H
#define PWSP_TILE_CORE_H

#include "compiled.h"

// The rows of a vector core: those below the cut, or the rest.
PWSP_INLINE uint32_t pwsp_block_part(const pwsp_tile_block *block, uint32_t rows, uint32_t turn) {
    uint32_t first = rows < block->cut ? rows : block->cut;
    return turn ? rows - first : first;
}

// The remainder of a size from the index of a loop, up to the loop's end. 0 means no loop.
PWSP_INLINE int64_t pwsp_core_left(const pwsp_tile_core *core, uint32_t loop, int64_t size) {
    return loop ? (size < core->end[loop] ? size : core->end[loop]) - core->index[loop] : size;
}

// From where to where a loop runs in a task; NULL is one as of pwsp_tile_code_iterations.
PWSP_INTERNAL void pwsp_loop_bounds(const pwsp_tile_code *code, uint32_t loop,
                                    const ptowsp_task *task, int64_t *out_begin, int64_t *out_end);

// Are the bounds of all loops in order, and the instructions of the task not too many?
PWSP_INTERNAL bool pwsp_tile_core_check_loops(pwsp_tile_core *core, const pwsp_tile_code *code,
                                              const ptowsp_task *task);

// Begins an iteration of a loop: the sizes and places of the tiles that depend on it.
PWSP_INTERNAL void pwsp_tile_core_iterate(pwsp_tile_core *core, const pwsp_tile_code *code,
                                          const ptowsp_task *task, uint32_t loop, uint64_t n);

// Ends a loop: its rotating tiles are where they were.
PWSP_INTERNAL void pwsp_tile_core_leave(pwsp_tile_core *core, const pwsp_tile_code *code,
                                        uint32_t loop, uint64_t count);

// Says which rows of a task the first vector core has, where two share them: half of them.
PWSP_INTERNAL void pwsp_tile_core_cut(pwsp_tile_core *core, const pwsp_tile_code *code,
                                      const ptowsp_task *task);

// Puts a task's tiles where they are before all loops, with their valid sizes; those in UB as they
// are cut.
PWSP_INTERNAL void pwsp_tile_core_place(pwsp_tile_core *core, const pwsp_tile_code *code,
                                        const ptowsp_task *task, bool is_dry);

// Sets the valid sizes of a tile; of one in UB whose rows are shared, on each vector core. A tile of
// one row is a column seen as a row: its elements are shared.
PWSP_INTERNAL void pwsp_tile_core_size(pwsp_tile_core *core, const pwsp_tile_code *code,
                                       const ptowsp_task *task, uint32_t i);

#endif
