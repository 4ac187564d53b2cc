// A stretch: the next iterations of an innermost loop whose body is one task, where all values that
// the task needs are in cells and columns and all its tiles lie within their tensors.
//
//      event TASK, then:
//      if (pwsp_stretch_begin(x, &stretch)) {
//          for (i = 0; i < stretch.count; i++)
//              pwsp_stretch_step(x, &stretch, stretch.first + i, i);
//          pwsp_stretch_end(x, &stretch, stretch.count);
//      }
//
// A task of a stretch cannot fail to be found, so a walk without kernels passes over all at once.

#ifndef PWSP_STRETCH_H
#define PWSP_STRETCH_H

#include "../runtime/walk_check.h"
#include "expand.h"

// Where the values of a code are: in a cell, or along a column.
typedef struct pwsp_source {
    const uint64_t *at;
    uint32_t step;
} pwsp_source;

// An argument of the task that changes from one iteration to the next. The others are those of the task
// before the stretch.
typedef struct pwsp_stretch_arg {
    uint64_t *to;
    pwsp_source from;
} pwsp_stretch_arg;

typedef struct pwsp_stretch_view {
    const pwsp_tile_view *view;
    const pwsp_bound_tensor *tensor;
    pwsp_source index[PWSP_TENSOR_LEAD_MAX], row, col, row_count, col_count;
    bool is_fixed;  // all tiles are rows x cols of the tensor, at (0, 0)
} pwsp_stretch_view;

typedef struct pwsp_stretch {
    uint64_t count;  // iterations, behind the present one
    uint64_t first;  // the variable of the first; of a sparse loop, the entry
    const pwsp_loop *loop;
    const pwsp_array *indices;   // of a sparse loop, or NULL
    uint64_t *variable, *entry;  // cells
    uint64_t *sizes;             // the arguments of the tiles' valid sizes
    uint32_t view_count, arg_count;
    pwsp_stretch_arg args[PTOWSP_TASK_AXIS_MAX + PTOWSP_TASK_SCALAR_MAX];
    pwsp_source dispatch, priority, stream;
    pwsp_stretch_view views[PTOWSP_TASK_TILE_MAX];
} pwsp_stretch;

PWSP_FORCE_INLINE uint64_t pwsp_source_value(pwsp_source source, uint64_t i) {
    return source.at[i * source.step];
}

// After TASK: the stretch up to the end of the loop, or of its block. False if there is none.
PWSP_INTERNAL bool pwsp_stretch_begin(pwsp_expander *x, pwsp_stretch *stretch);

// So many tasks of the stretch have been walked: the last of them is the present one.
PWSP_INTERNAL void pwsp_stretch_end(pwsp_expander *x, const pwsp_stretch *stretch, uint64_t count);

// A tile of the task of iteration i. Tensor, access and strides are those of the present task.
PWSP_FORCE_INLINE void pwsp_stretch_tile(pwsp_expander *x, const pwsp_stretch *stretch, uint64_t i,
                                         uint32_t ordinal) {
    const pwsp_stretch_view *at = &stretch->views[ordinal];
    const pwsp_bound_tensor *tensor = at->tensor;
    const pwsp_tile_view *view = at->view;
    pwsp_tile_at *tile = &x->tiles_at[ordinal];
    int64_t lead = 0;
    for (uint32_t j = 0; j < view->lead; j++) {
        pwsp_view_lead(tensor, j, (int64_t)pwsp_source_value(at->index[j], i), &lead);
    }
    tile->lead = lead;
    if (!at->is_fixed) {
        int64_t row = at->row.at ? (int64_t)pwsp_source_value(at->row, i) : 0;
        int64_t col = at->col.at ? (int64_t)pwsp_source_value(at->col, i) : 0;
        pwsp_view_size size = {view->rows, view->cols, INT64_MAX, INT64_MAX};
        if (view->has_limit) {
            size.row_max =
                at->row_count.at ? (int64_t)pwsp_source_value(at->row_count, i) : INT64_MAX;
            size.col_max =
                at->col_count.at ? (int64_t)pwsp_source_value(at->col_count, i) : INT64_MAX;
        }
        const bool is_inside = pwsp_view_tile(tensor, row, col, &size, tile);
        PTOWSP_ASSERT(is_inside);
        (void)is_inside;
        stretch->sizes[2 * ordinal] = tile->rows;
        stretch->sizes[2 * ordinal + 1] = tile->cols;
    }
    if (tensor->data) {
        x->tiles[ordinal].data =
            tensor->data + pwsp_tile_offset(tensor, tile) * (int64_t)tensor->element_size;
    }
}

// The task of iteration i, from 0, becomes the present one, except for its index and what all tasks
// of the loop have in common; `at` is stretch->first + i.
PWSP_FORCE_INLINE void pwsp_stretch_step(pwsp_expander *x, const pwsp_stretch *stretch, uint64_t at,
                                         uint64_t i) {
    *stretch->variable = at;
    if (stretch->indices) {
        *stretch->entry = at;
        *stretch->variable = pwsp_array_at(stretch->indices, at);
    }
    const pwsp_stretch_arg *end = stretch->args + stretch->arg_count;
    for (const pwsp_stretch_arg *arg = stretch->args; arg != end; arg++) {
        *arg->to = pwsp_source_value(arg->from, i);
    }
    for (uint32_t j = 0; j < stretch->view_count; j++) {
        pwsp_stretch_tile(x, stretch, i, j);
    }
}

#endif
