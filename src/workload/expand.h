// Walking a compiled program: one step at a time, from one task, scope or slot load to the next.

#ifndef PWSP_EXPAND_H
#define PWSP_EXPAND_H

#include "../base/error.h"
#include "../base/halt.h"
#include "program.h"

typedef struct pwsp_frame {
    uint32_t loop;  // or, of a call, where to return to
    bool is_call;
    bool has_scope;  // to be ended with it
    int64_t i, count;
    uint64_t first;  // of a sparse loop its first entry, of a lane its first descriptor
} pwsp_frame;

typedef enum pwsp_event {
    PWSP_EVENT_NONE,  // after many empty iterations, so that a walk can be ended anywhere
    PWSP_EVENT_END,
    PWSP_EVENT_TASK,       // task, tiles_at, task_op
    PWSP_EVENT_MARK,       // mark
    PWSP_EVENT_SLOT_LOAD,  // load_at; nothing has been loaded yet: call pwsp_expander_load
    PWSP_EVENT_PIPELINE,   // pipeline: the walk continues after it
    PWSP_EVENT_PROCESS_END,
    PWSP_EVENT_SEND,  // send, token
    PWSP_EVENT_RECEIVE,  // receive; the walk continues with its body. At the end of the stream, continue
                         // at receive_end
    PWSP_EVENT_CLOSE,  // port
    PWSP_EVENT_ERROR   // status, index, text
} pwsp_event;

// The place of a walk in a list, and the entry that is the present task.
typedef struct pwsp_task_list_walk {
    const pwsp_task_list_op *list;
    pwsp_task_op task;
    const ptowsp_cycles *cycles;  // of the task, or NULL
    uint32_t next;                // entry
    uint64_t axis, view, scalar;  // of its arguments the first
    uint32_t scope;               // the next to begin
    uint32_t depth;
    uint32_t ends[PTOWSP_MODULE_NEST_MAX];  // of open scopes, the innermost last
} pwsp_task_list_walk;

typedef struct pwsp_expander {
    const ptowsp_program *program;
    const pwsp_op *ops;
    uint64_t *cells;
    const pwsp_array *arrays;          // by array
    const int64_t *length_sums;        // by array
    const pwsp_bound_csr *csrs;        // by axis
    const pwsp_bound_tensor *tensors;  // by tensor
    const uint8_t *unknown;            // by op: skipped when not NULL
    uint64_t *column_memory;           // program->column_count columns
    // The innermost loop while it runs in blocks: iterations [block_begin, block_end) are evaluated,
    // and their values are in columns, or have to be evaluated one by one where this is NULL.
    const pwsp_loop_block *block;
    uint64_t *columns;
    int64_t block_begin, block_end;
    uint32_t block_at;  // the present iteration, from block_begin
    pwsp_frame *frames;
    uint32_t frame_count;
    uint32_t next_op;
    uint32_t round_count;  // iterations ended since the last NONE
    uint32_t node;         // of the event
    bool has_skipped;      // something unknown: task_count is not the program's
    pwsp_fault fault;
    ptowsp_task task;
    const pwsp_task_op *task_op;
    const pwsp_kernel_info *kernel;
    ptowsp_tile tiles[PTOWSP_TASK_TILE_MAX];
    pwsp_tile_at tiles_at[PTOWSP_TASK_TILE_MAX];
    uint64_t task_count;  // so far
    const pwsp_slot_op *load;
    pwsp_tile_at load_at;  // the one element
    pwsp_mark mark;
    pwsp_task_list_walk list;
    const pwsp_pipeline_op *pipeline;
    const pwsp_send_op *send;
    uint64_t token;
    const pwsp_receive_op *receive;
    uint32_t receive_end;  // an op
    uint32_t port;
    ptowsp_status status;
    uint64_t index;
    char text[PWSP_ERROR_TEXT_MAX];
} pwsp_expander;

// Begins at the program's start. Tables, cells and frames have been set.
PWSP_INTERNAL void pwsp_expander_begin(pwsp_expander *x);

// Goes on to the next event. After END or ERROR it must not be called.
PWSP_INTERNAL pwsp_event pwsp_expander_next(pwsp_expander *x);

// The event of an op that is a task, which the caller has reached. It stays where it was.
PWSP_INTERNAL pwsp_event pwsp_expander_task(pwsp_expander *x, uint32_t op);

// After SLOT_LOAD: reads the element and sets the slot.
PWSP_INTERNAL void pwsp_expander_load(pwsp_expander *x);

// Records an error at the current event's place, with the variables around. Returns ERROR.
PWSP_INTERNAL pwsp_event pwsp_expander_fail(pwsp_expander *x, ptowsp_status status, uint64_t index,
                                            const char *format, ...) PWSP_PRINTF(4, 5);
PWSP_INTERNAL pwsp_event pwsp_expander_fail_check(pwsp_expander *x, const pwsp_error *error);
// The execution is to end early, by `halt`, which says so. Returns ERROR.
PWSP_INTERNAL pwsp_event pwsp_expander_fail_halt(pwsp_expander *x, const pwsp_halt *halt);

// The next event of the list that the walk is in; NONE at its end (task_list_walk.c).
PWSP_INTERNAL void pwsp_task_list_begin(pwsp_expander *x, const pwsp_task_list_op *list);
PWSP_INTERNAL pwsp_event pwsp_task_list_next(pwsp_expander *x);

// For an array that is read where it has no element, which x->fault tells.
PWSP_INTERNAL pwsp_event pwsp_expander_fail_fault(pwsp_expander *x, bool is_key);

// The value of a code of the current task.
PWSP_INLINE uint64_t pwsp_expander_value(pwsp_expander *x, pwsp_code code) {
    if (code.column && x->columns) {
        return pwsp_column_at(x->columns, code.column)[x->block_at];
    }
    return pwsp_code_value((const pwsp_instruction *)x->program->instructions.items, code, x->cells,
                           x->arrays, &x->fault);
}

// Completes the next task, whose op, kernel and arguments are set.
PWSP_FORCE_INLINE pwsp_event pwsp_expander_made_task(pwsp_expander *x, uint32_t arg_count) {
    x->task.arg_count = arg_count;
    x->task.axis_arg_count = arg_count - x->task_op->scalar_count;
    x->task.user_axis_count = x->task_op->axis_count;
    x->task.tile_count = x->task_op->view_count;
    x->task.index = x->task_count++;
    x->task.kernel_name = x->kernel->name;
    return PWSP_EVENT_TASK;
}

// The tile of a place as kernels get it; without data where its tensor has none.
PWSP_FORCE_INLINE ptowsp_tile pwsp_expander_tile_of(const pwsp_bound_tensor *tensor,
                                                    const pwsp_tile_at *at) {
    const int64_t offset = pwsp_tile_offset(tensor, at) * (int64_t)tensor->element_size;
    const ptowsp_tile tile = {tensor->data ? tensor->data + offset : NULL, tensor->row_stride,
                              tensor->col_stride};
    return tile;
}

#endif
