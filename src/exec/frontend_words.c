// The record of an issued task until it has run and has been accounted for: everything needed to
// rebuild it on any thread, as words.
//
//      op and node | axis arguments | scalars | keys | variables around it | tiles
//
// Keys (dispatch, priority, stream) are there if the program has any. Tiles have their sizes as the walk
// found them: finding these again, to run and to retire, was some 15 % of a task's instructions. The words
// of a task are in its entry, or in a record of a block (frontend_block.c). A slot load keeps its one element
// there; a reset keeps its edges.

#include "frontend.h"

PWSP_INTERNAL void pwsp_frontend_fill(const pwsp_frontend *front, uint64_t *words,
                                      const pwsp_arrival *arrival) {
    const pwsp_expander *x = &front->walk->expander;
    const pwsp_task_op *op = x->task_op;
    const uint32_t index = (uint32_t)(op - (const pwsp_task_op *)x->program->tasks.items);
    const uint64_t *args = x->task.args;
    uint64_t *word = words;
    *word++ = (uint64_t)x->node << 32 | index;
    for (uint32_t i = 0; i < op->axis_count; i++) {
        *word++ = args[i];
    }
    for (uint32_t i = 0; i < op->scalar_count; i++) {
        *word++ = args[x->task.axis_arg_count + i];
    }
    if (front->has_keys) {
        *word++ = arrival->dispatch_key;
        *word++ = arrival->priority_key;
        *word++ = arrival->stream_key;
    }
    pwsp_task_variables variables = front->variables[index];
    for (uint32_t i = 0; i < variables.count; i++) {
        *word++ = x->cells[front->cells[variables.first + i]];
    }
    PTOWSP_ASSERT(word <= words + front->tile_word);
    pwsp_entry_tile *tiles = pwsp_frontend_tiles(front, words);
    for (uint32_t i = 0; i < op->view_count; i++) {
        tiles[i] = pwsp_entry_tile_of(&x->tiles_at[i]);
    }
}

PWSP_INTERNAL ptowsp_task pwsp_frontend_task_of(const pwsp_frontend *front,
                                                const pwsp_issued *issued, uint64_t *args,
                                                ptowsp_tile *tiles) {
    const pwsp_task_op *op = pwsp_frontend_op(front, issued->words);
    const pwsp_entry_tile *kept = pwsp_frontend_tiles(front, issued->words);
    const pwsp_tile_view *views = &front->walk->program->views.items[op->first_view];
    const uint64_t *words = issued->words + 1;
    uint64_t *arg = args;
    for (uint32_t i = 0; i < op->axis_count; i++) {
        *arg++ = words[i];
    }
    for (uint32_t i = 0; i < op->view_count; i++) {
        const pwsp_bound_tensor *tensor = &front->walk->bindings->effective[views[i].tensor];
        const pwsp_tile_at at = pwsp_entry_tile_at(&kept[i], views[i].tensor, views[i].access);
        *arg++ = at.rows;
        *arg++ = at.cols;
        tiles[i] = pwsp_expander_tile_of(tensor, &at);
    }
    for (uint32_t i = 0; i < op->scalar_count; i++) {
        *arg++ = words[op->axis_count + i];
    }
    ptowsp_task task;
    task.args = args;
    task.arg_count = (uint32_t)(arg - args);
    task.axis_arg_count = task.arg_count - op->scalar_count;
    task.user_axis_count = op->axis_count;
    task.tile_count = op->view_count;
    task.tiles = tiles;
    task.index = issued->index;
    task.kernel_name = front->walk->program->kernels.items[op->kernel].name;
    task.lane = 0;
    return task;
}

PWSP_INTERNAL void pwsp_frontend_kept_tiles(const pwsp_frontend *front, const pwsp_issued *issued,
                                            pwsp_tile_at *out_tiles) {
    const pwsp_task_op *op = pwsp_frontend_op(front, issued->words);
    const pwsp_entry_tile *kept = pwsp_frontend_tiles(front, issued->words);
    const pwsp_tile_view *views = &front->walk->program->views.items[op->first_view];
    for (uint32_t i = 0; i < op->view_count; i++) {
        out_tiles[i] = pwsp_entry_tile_at(&kept[i], views[i].tensor, views[i].access);
    }
}

PWSP_INTERNAL void pwsp_frontend_go_back(pwsp_frontend *front, const pwsp_issued *issued) {
    pwsp_expander *x = &front->walk->expander;
    const uint64_t *words = issued->words;
    const pwsp_task_op *op = pwsp_frontend_op(front, words);
    const uint64_t *word =
        words + 1 + op->axis_count + op->scalar_count + (front->has_keys ? 3 : 0);
    pwsp_task_variables variables = front->variables[(uint32_t)words[0]];
    for (uint32_t i = 0; i < variables.count; i++) {
        x->cells[front->cells[variables.first + i]] = word[i];
    }
    x->node = pwsp_frontend_node(words);
    x->task.index = issued->index;
}
