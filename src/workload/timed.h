// The part of a program that simulated time needs: its schedule, its counts, and the tiles and
// explicit edges of each task.
//
// It is separate from the rest of a program, so that the rules of time do not depend on it: emitted
// trees have a copy of them.

#ifndef PWSP_TIMED_H
#define PWSP_TIMED_H

#include "../data/code_range.h"
#include "../data/region.h"

typedef struct pwsp_range {
    uint32_t first, count;
} pwsp_range;

typedef struct pwsp_tile_view {
    uint32_t tensor;
    uint32_t lead;  // how many indices
    bool has_row, has_col;
    bool is_read, is_written;
    bool is_loaded;  // of a pipeline: its processes load slots from the tensor
    pwsp_code index[PWSP_TENSOR_LEAD_MAX];
    pwsp_code row, col;
    int64_t rows, cols;  // of the tile; 0: up to the edge
} pwsp_tile_view;

// A task of the tree. Codes: axis arguments, then scalars.
typedef struct pwsp_task_op {
    uint32_t kernel;
    uint32_t first_code, axis_count, scalar_count;
    uint32_t first_view, view_count;
    pwsp_code dispatch, priority, stream;  // keys, where the schedule has them
    uint32_t first_in, in_count;           // explicit edges that end here
    uint32_t first_out, out_count;         // in the list of edges by source
} pwsp_task_op;

// Memory bound to a tensor. Sizes and strides of dimensions that the tensor has not are 1 and 0.
typedef struct pwsp_bound_tensor {
    char *data;     // NULL in runs that only measure time
    uint64_t base;  // its address, or one that no other tensor has
    int64_t lead_shape[PWSP_TENSOR_LEAD_MAX];
    int64_t lead_strides[PWSP_TENSOR_LEAD_MAX];  // in elements, as the following
    int64_t rows, cols, row_stride, col_stride;
    int64_t low, high;  // lowest and highest offset, in elements; of a tensor that was bound
    uint32_t element_size;
    ptowsp_dtype dtype;
    bool is_bound;
} pwsp_bound_tensor;

// Where a tile lies. With rows 0 it is the whole of its tensor, as pipelines access it.
typedef struct pwsp_tile_at {
    uint32_t tensor;
    uint32_t rows, cols;  // valid
    int64_t lead;         // elements from the tensor's start to the leading indices' matrix
    int64_t row, col;     // of the tile in that matrix
} pwsp_tile_at;

// The offset of its first element, in elements.
PWSP_INLINE int64_t pwsp_tile_offset(const pwsp_bound_tensor *tensor, const pwsp_tile_at *at) {
    return at->lead + at->row * tensor->row_stride + at->col * tensor->col_stride;
}

// Tables live at least as long.
typedef struct pwsp_timed {
    ptowsp_schedule schedule;  // resolved
    bool is_priority_signed;
    bool has_streams;      // by a key
    uint32_t lane_count;   // of all pools
    uint32_t scope_depth;  // scopes in one another, with that around all
    uint32_t pipeline_count;
    uint32_t tensor_count;                             // with 0, which is none
    uint32_t edge_count;                               // explicit edges
    const uint32_t *edges;                             // those of tasks, which have ranges in it
    const bool *tensor_is_loaded, *tensor_is_written;  // by tensor: by a slot, by a task
    // Writes the place of a node, for texts of errors.
    void (*print_place)(const void *user, uint32_t node, ptowsp_text text);
    const void *user;
} pwsp_timed;

#endif
