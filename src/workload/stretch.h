// A stretch: the next iterations of an innermost loop whose body is one task, where all values that
// the task needs are in cells and columns and all its tiles lie within their tensors.
//
//      event TASK, then:
//      if (pwsp_stretch_begin(x, &stretch)) {
//          for (i = 0; i < stretch.count; i++)
//              pwsp_stretch_step(x, &stretch, i);
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

// An argument of the task that changes from one iteration to the next. The others keep the values
// of the task before the stretch.
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
    uint64_t count;  // iterations, after the current one
    uint64_t first;  // the variable of the first; of a sparse loop, the entry
    const pwsp_loop *loop;
    const pwsp_array *indices;   // of a sparse loop, or NULL
    uint64_t *variable, *entry;  // cells
    uint64_t *sizes;             // the arguments of the tiles' valid sizes
    uint32_t view_count, arg_count;
    bool is_fixed;  // so are all views
    pwsp_stretch_arg args[PTOWSP_TASK_AXIS_MAX + PTOWSP_TASK_SCALAR_MAX];
    pwsp_source dispatch, priority, stream;
    pwsp_stretch_view views[PTOWSP_TASK_TILE_MAX];
} pwsp_stretch;

PWSP_FORCE_INLINE uint64_t pwsp_source_value(pwsp_source source, uint64_t i) {
    return source.at[i * source.step];
}

// After TASK: the stretch up to the end of the loop, or of its block. False without one.
PWSP_INTERNAL bool pwsp_stretch_begin(pwsp_expander *x, pwsp_stretch *stretch);

// So many tasks of the stretch have been walked: the last of them is the present one.
PWSP_INTERNAL void pwsp_stretch_end(pwsp_expander *x, const pwsp_stretch *stretch, uint64_t count);

// The tiles of tasks [begin, begin + count), task by task. Tensors, access and strides are the
// current task's.
PWSP_INTERNAL void pwsp_stretch_tiles(const pwsp_expander *x, const pwsp_stretch *stretch,
                                      uint64_t begin, uint64_t count, pwsp_tile_at *out);

// The current task's tiles as its kernel sees them.
PWSP_FORCE_INLINE void pwsp_stretch_see(pwsp_expander *x, const pwsp_stretch *stretch,
                                        const pwsp_tile_at *tiles) {
    for (uint32_t i = 0; i < stretch->view_count; i++) {
        const pwsp_bound_tensor *tensor = stretch->views[i].tensor;
        stretch->sizes[2 * i] = tiles[i].rows;
        stretch->sizes[2 * i + 1] = tiles[i].cols;
        if (tensor->data) {
            x->tiles[i].data =
                tensor->data + pwsp_tile_offset(tensor, &tiles[i]) * (int64_t)tensor->element_size;
        }
    }
}

// Sets the variable of the loop for iteration `at`, counted from stretch->first.
PWSP_FORCE_INLINE void pwsp_stretch_set(const pwsp_stretch *stretch, uint64_t at) {
    *stretch->variable = at;
    if (stretch->indices) {
        *stretch->entry = at;
        *stretch->variable = pwsp_array_at(stretch->indices, at);
    }
}

// Sets the variable and the arguments for iteration i, from 0.
PWSP_FORCE_INLINE void pwsp_stretch_args(const pwsp_stretch *stretch, uint64_t i) {
    pwsp_stretch_set(stretch, stretch->first + i);
    const pwsp_stretch_arg *arg = stretch->args;
    for (uint32_t count = stretch->arg_count; count > 0; count--, arg++) {
        *arg->to = pwsp_source_value(arg->from, i);
    }
}

// The keys of the task of iteration i.
PWSP_FORCE_INLINE void pwsp_stretch_keys(const pwsp_stretch *stretch, uint64_t i,
                                         pwsp_arrival *arrival) {
    arrival->dispatch_key = pwsp_source_value(stretch->dispatch, i);
    arrival->priority_key = pwsp_source_value(stretch->priority, i);
    arrival->stream_key = pwsp_source_value(stretch->stream, i);
}

// The task of iteration i, from 0, becomes the current one, except for its index and the parts
// common to all tasks of the loop.
PWSP_FORCE_INLINE void pwsp_stretch_step(pwsp_expander *x, const pwsp_stretch *stretch,
                                         uint64_t i) {
    pwsp_stretch_args(stretch, i);
    pwsp_stretch_tiles(x, stretch, i, 1, x->tiles_at);
    pwsp_stretch_see(x, stretch, x->tiles_at);
}

#endif
