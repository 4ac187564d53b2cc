// What is kept of an issued task until it has run and has been accounted for: everything needed to
// rebuild it on any thread, as words.
//
//      op and node | axis arguments | scalars | keys | variables around it | sizes | tiles begin at
//
// Keys (dispatch, priority, stream) are there if the program has any, sizes for tiles whose views limit
// them. Sizes of other tiles follow from their views. The words of a task are in its entry, or in a
// record of a block (frontend_block.c). A slot load keeps the tensor and the place of its one element
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
    const pwsp_tile_view *views =
        PWSP_PROGRAM_AT(x->program, views, pwsp_tile_view, op->first_view);
    for (uint32_t i = 0; i < op->view_count; i++) {
        if (views[i].has_limit) {
            *word++ = (uint64_t)x->tiles_at[i].rows << 32 | x->tiles_at[i].cols;
        }
    }
    PTOWSP_ASSERT(word <= words + front->tile_word);
    pwsp_entry_tile *tiles = pwsp_frontend_tiles(front, words);
    for (uint32_t i = 0; i < op->view_count; i++) {
        const pwsp_tile_at *at = &x->tiles_at[i];
        pwsp_entry_tile tile = {at->lead, at->row, at->col};
        tiles[i] = tile;
    }
}

PWSP_INTERNAL void pwsp_frontend_find_tiles(const pwsp_frontend *front, const uint64_t *words,
                                            pwsp_tile_at *at) {
    const pwsp_task_op *op = pwsp_frontend_op(front, words);
    const pwsp_entry_tile *tiles = pwsp_frontend_tiles(front, words);
    const pwsp_tile_view *views =
        PWSP_PROGRAM_AT(front->walk->program, views, pwsp_tile_view, op->first_view);
    const uint64_t *sizes = words + 1 + op->axis_count + op->scalar_count +
                            (front->has_keys ? 3 : 0) + front->variables[(uint32_t)words[0]].count;
    for (uint32_t i = 0; i < op->view_count; i++) {
        const pwsp_bound_tensor *tensor = &front->walk->bindings->effective[views[i].tensor];
        int64_t rows = tensor->rows - tiles[i].row, cols = tensor->cols - tiles[i].col;
        if (views[i].has_limit) {
            rows = (int64_t)(*sizes >> 32);
            cols = (int64_t)(*sizes++ & UINT32_MAX);
        }
        at[i].tensor = views[i].tensor;
        at[i].rows = (uint32_t)(views[i].rows && views[i].rows < rows ? views[i].rows : rows);
        at[i].cols = (uint32_t)(views[i].cols && views[i].cols < cols ? views[i].cols : cols);
        at[i].access = views[i].access;
        at[i].lead = tiles[i].lead;
        at[i].row = tiles[i].row;
        at[i].col = tiles[i].col;
    }
}

PWSP_INTERNAL ptowsp_task pwsp_frontend_task_of(const pwsp_frontend *front,
                                                const pwsp_issued *issued, uint64_t *args,
                                                ptowsp_tile *tiles) {
    const pwsp_task_op *op = pwsp_frontend_op(front, issued->words);
    pwsp_tile_at at[PTOWSP_TASK_TILE_MAX];
    pwsp_frontend_find_tiles(front, issued->words, at);
    const uint64_t *words = issued->words + 1;
    uint64_t *arg = args;
    for (uint32_t i = 0; i < op->axis_count; i++) {
        *arg++ = words[i];
    }
    for (uint32_t i = 0; i < op->view_count; i++) {
        const pwsp_bound_tensor *tensor = &front->walk->bindings->effective[at[i].tensor];
        *arg++ = at[i].rows;
        *arg++ = at[i].cols;
        tiles[i].data =
            tensor->data + pwsp_tile_offset(tensor, &at[i]) * (int64_t)tensor->element_size;
        tiles[i].row_stride = tensor->row_stride;
        tiles[i].col_stride = tensor->col_stride;
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
    task.kernel_name =
        PWSP_PROGRAM_AT(front->walk->program, kernels, pwsp_kernel_info, op->kernel)->name;
    task.lane = 0;
    return task;
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
