// The machine that walks a program. Its state is a position, a stack of frames (loops and calls)
// and cells; so it can stop at any event and continue later, and it needs no memory of its own.
//
// The hot path is the innermost loop: LOOP_END counts and jumps back, TASK moves arguments into
// place, finds its tiles and returns. Each possible error costs one unsigned comparison on that
// path; functions of their own report them.

#include "expand.h"

#include "../base/text.h"
#include "../runtime/walk_check.h"

#define PWSP_EXPANDER_ROUNDS 4096u  // iterations without an event, at most

// -- errors ---------------------------------------------------------------------------------------

PWSP_INTERNAL pwsp_event pwsp_expander_fail(pwsp_expander *x, ptowsp_status status, uint64_t index,
                                            const char *format, ...) {
    ptowsp_output_buffer buffer = {x->text, sizeof x->text, 0};
    ptowsp_output text = ptowsp_output_to_buffer(&buffer);
    pwsp_program_print_place(x->program, x->node, x->cells, text);
    pwsp_text_format(text, ": ");
    va_list args;
    va_start(args, format);
    pwsp_text_vformat(text, format, args);
    va_end(args);
    x->status = status;
    x->index = index;
    return PWSP_EVENT_ERROR;
}

PWSP_INTERNAL pwsp_event pwsp_expander_fail_halt(pwsp_expander *x, const pwsp_halt *halt) {
    x->status = pwsp_halt_status(halt);
    x->index = PTOWSP_NO_INDEX;
    PTOWSP_ASSERT(x->status != PTOWSP_OK);
    pwsp_text_into(x->text, sizeof x->text, "%s", ptowsp_status_text(x->status));
    return PWSP_EVENT_ERROR;
}

PWSP_INTERNAL pwsp_event pwsp_expander_fail_check(pwsp_expander *x, const pwsp_error *error) {
    return pwsp_expander_fail(x, error->status, error->index, "%s", error->text);
}

PWSP_INTERNAL pwsp_event pwsp_expander_fail_fault(pwsp_expander *x, bool is_key) {
    PTOWSP_ASSERT(x->fault.is_set && x->fault.array < x->program->arrays.count);
    const pwsp_array_info *info = &x->program->arrays.items[x->fault.array];
    pwsp_error error;
    pwsp_read_fail(&error, is_key, info->name, &x->arrays[x->fault.array], x->fault.index);
    return pwsp_expander_fail_check(x, &error);
}

// -- tiles ----------------------------------------------------------------------------------------

// The value of an expression; `otherwise` without one.
static inline int64_t pwsp_expander_given(pwsp_expander *x, const pwsp_code *code,
                                          int64_t otherwise) {
    return code->expr ? (int64_t)pwsp_expander_value(x, *code) : otherwise;
}

// The size of a view's tile.
static inline pwsp_view_size pwsp_expander_size(pwsp_expander *x, const pwsp_tile_view *view) {
    pwsp_view_size size = {view->rows, view->cols, INT64_MAX, INT64_MAX};
    if (view->has_limit) {
        size.row_max = pwsp_expander_given(x, &view->row_count, INT64_MAX);
        size.col_max = pwsp_expander_given(x, &view->col_count, INT64_MAX);
    }
    return size;
}

// Why a view is outside its tensor, once it is known that it is.
static pwsp_event pwsp_expander_fail_view(pwsp_expander *x, const pwsp_tile_view *view,
                                          const char *param, const pwsp_bound_tensor *tensor) {
    const char *name = x->program->tensors.items[view->tensor].name;
    if (x->fault.is_set) {
        return pwsp_expander_fail_fault(x, false);
    }
    pwsp_error error;
    bool is_found = false;
    for (uint32_t i = 0; i < view->lead && !is_found; i++) {
        int64_t value = (int64_t)pwsp_expander_value(x, view->index[i]);
        is_found = pwsp_view_fail_lead(&error, param, name, tensor, i, value);
    }
    if (!is_found) {
        int64_t row = pwsp_expander_given(x, &view->row, 0);
        int64_t col = pwsp_expander_given(x, &view->col, 0);
        pwsp_view_size size = pwsp_expander_size(x, view);
        pwsp_view_fail(&error, param, name, tensor, row, col, &size);
    }
    return pwsp_expander_fail_check(x, &error);
}

// Finds a tile; false if it is outside the tensor (or larger than a tile can be).
static inline bool pwsp_expander_tile(pwsp_expander *x, const pwsp_tile_view *view,
                                      const pwsp_bound_tensor *tensor, pwsp_tile_at *at) {
    int64_t lead = 0;
    bool is_inside = true;
    for (uint32_t i = 0; i < view->lead; i++) {
        int64_t value = (int64_t)pwsp_expander_value(x, view->index[i]);
        is_inside &= pwsp_view_lead(tensor, i, value, &lead);
    }
    int64_t row = pwsp_expander_given(x, &view->row, 0);
    int64_t col = pwsp_expander_given(x, &view->col, 0);
    at->tensor = view->tensor;
    at->access = view->access;
    at->lead = lead;
    pwsp_view_size size = pwsp_expander_size(x, view);
    return is_inside && pwsp_view_tile(tensor, row, col, &size, at);
}

// -- tasks ----------------------------------------------------------------------------------------

static inline pwsp_event pwsp_expander_make_task(pwsp_expander *x, const pwsp_op *op) {
    const ptowsp_program *p = x->program;
    const pwsp_task_op *task = &p->tasks.items[op->at];
    const pwsp_code *codes = &p->codes.items[task->first_code];
    uint64_t *args = x->cells + p->first_arg;
    x->node = op->node;
    x->task_op = task;
    x->kernel = &p->kernels.items[task->kernel];
    for (uint32_t i = 0; i < task->axis_count; i++) {
        args[i] = pwsp_expander_value(x, codes[i]);
    }
    uint32_t next = task->axis_count;
    const pwsp_tile_view *views = &p->views.items[task->first_view];
    for (uint32_t i = 0; i < task->view_count; i++) {
        const pwsp_bound_tensor *tensor = &x->tensors[views[i].tensor];
        pwsp_tile_at *at = &x->tiles_at[i];
        if (!pwsp_expander_tile(x, &views[i], tensor, at)) {
            return pwsp_expander_fail_view(x, &views[i], x->kernel->tiles[i].name, tensor);
        }
        args[next++] = at->rows;
        args[next++] = at->cols;
        x->tiles[i] = pwsp_expander_tile_of(tensor, at);
    }
    for (uint32_t i = 0; i < task->scalar_count; i++) {
        args[next++] = pwsp_expander_value(x, codes[task->axis_count + i]);
    }
    if (x->fault.is_set) {
        return pwsp_expander_fail_fault(x, false);
    }
    PTOWSP_ASSERT(next <= p->arg_count && task->view_count <= PTOWSP_TASK_TILE_MAX);
    return pwsp_expander_made_task(x, next);
}

// -- loops ----------------------------------------------------------------------------------------

// How many iterations a loop has; false with an error.
static bool pwsp_expander_extent(pwsp_expander *x, const pwsp_loop *loop, pwsp_frame *frame) {
    const ptowsp_program *p = x->program;
    int64_t row = loop->is_row ? (int64_t)pwsp_expander_value(x, loop->row) : 0;
    ptowsp_status status = PTOWSP_OK;
    uint64_t end = 0;
    const char *name;
    pwsp_error error;
    frame->first = 0;
    if (x->fault.is_set) {
        pwsp_expander_fail_fault(x, false);
        return false;
    }
    switch (loop->axis_kind) {
    case PWSP_AXIS_DENSE:
    case PWSP_AXIS_DYNAMIC:
    case PWSP_AXIS_PLAN_LANES: frame->count = (int64_t)x->cells[loop->size]; return true;
    case PWSP_AXIS_PLAN:
    case PWSP_AXIS_PLAN_MERGES:
        if (!loop->is_row) {
            frame->count = (int64_t)x->cells[loop->size];
            return true;
        }
        name = p->axes.items[loop->csr].name;
        status = pwsp_row_work(&error, name, &x->arrays[loop->array + 1], row, x->cells[loop->size],
                               &frame->first, &end);
        frame->count = (int64_t)(end - frame->first);
        break;
    case PWSP_AXIS_RAGGED:
        if (!loop->is_row) {
            frame->count = x->length_sums[loop->array];
            return true;
        }
        name = p->arrays.items[loop->array].name;
        status = pwsp_row_length(&error, name, &x->arrays[loop->array], row, &frame->count);
        break;
    case PWSP_AXIS_SPARSE:
        if (!loop->is_row) {
            frame->count = (int64_t)x->csrs[loop->csr].entry_count;
            return true;
        }
        name = p->axes.items[loop->csr].name;
        status = pwsp_row_entries(&error, name, &x->csrs[loop->csr], row, &frame->first, &end);
        frame->count = (int64_t)(end - frame->first);
        break;
    }
    if (status != PTOWSP_OK) {
        pwsp_expander_fail_check(x, &error);
    }
    return status == PTOWSP_OK;
}

// Moves a loop on to the next iteration that there is, from frame->i on: descriptors that are not
// valid have none. False at the end.
static inline bool pwsp_expander_seek(const pwsp_expander *x, const pwsp_loop *loop,
                                      pwsp_frame *frame) {
    if (pwsp_axis_is_work(loop->axis_kind)) {
        const pwsp_array *flags = &x->arrays[loop->array];
        while (frame->i < frame->count &&
               (pwsp_array_at(flags, frame->first + (uint64_t)frame->i) & PTOWSP_WORK_INVALID)) {
            frame->i++;
        }
    }
    return frame->i < frame->count;
}

// -- blocks ---------------------------------------------------------------------------------------

// Shorter loops are not worth entering a block.
#ifndef PWSP_BLOCK_MIN
#define PWSP_BLOCK_MIN 16
#endif

static uint32_t pwsp_block_width(int64_t iterations) {
    uint64_t count = pwsp_min_u64((uint64_t)iterations, PWSP_COLUMN_MAX);
    return (uint32_t)(count + PWSP_COLUMN_STEP - 1) & ~(uint32_t)(PWSP_COLUMN_STEP - 1);
}

// Enters a loop in blocks, if it has any: invariants of the loop are evaluated. Where that faults
// it is left to the iteration that needs it.
static void pwsp_expander_enter_block(pwsp_expander *x, const pwsp_loop *loop,
                                      const pwsp_frame *frame) {
    const ptowsp_program *p = x->program;
    if (!loop->block || frame->count - frame->i < PWSP_BLOCK_MIN) {
        return;
    }
    const pwsp_loop_block *block = &p->blocks.items[loop->block - 1];
    const pwsp_instruction *hoists = (const pwsp_instruction *)p->hoists.items;
    pwsp_fault fault = {false, 0, 0};
    if (block->hoist_count) {
        pwsp_code_run(hoists, block->first_hoist, block->first_hoist + block->hoist_count, x->cells,
                      x->arrays, &fault);
    }
    if (fault.is_set) {
        return;
    }
    uint32_t width = pwsp_block_width(frame->count - frame->i);
    for (uint32_t i = 0; i < block->fill_count; i++) {
        const pwsp_loop_fill *fill = &p->fills.items[block->first_fill + i];
        pwsp_column_fill(pwsp_column_at(x->column_memory, fill->column), x->cells[fill->cell],
                         width);
    }
    x->block = block;
    x->block_end = frame->i;
}

// Evaluates the block of iterations that begins with the present one.
static void pwsp_expander_fill_block(pwsp_expander *x, const pwsp_loop *loop,
                                     const pwsp_frame *frame) {
    const pwsp_loop_block *block = x->block;
    const pwsp_instruction *steps = (const pwsp_instruction *)x->program->steps.items;
    const int64_t left = frame->count - frame->i;
    const uint32_t count = (uint32_t)pwsp_min_u64((uint64_t)left, PWSP_COLUMN_MAX);
    const uint32_t width = pwsp_block_width(left);
    const uint64_t first = frame->first + (uint64_t)frame->i;
    const bool is_sparse = loop->axis_kind == PWSP_AXIS_SPARSE;
    const uint64_t shown =
        is_sparse || pwsp_axis_is_work(loop->axis_kind) ? first : (uint64_t)frame->i;
    uint64_t *variable = pwsp_column_at(x->column_memory, is_sparse);
    PTOWSP_ASSERT(left > 0 && block->column_count <= x->program->column_count);
    for (uint32_t i = 0; i < width; i++) {
        variable[i] = shown + i;
    }
    for (uint32_t i = 0; is_sparse && i < count; i++) {
        x->column_memory[i] = pwsp_array_at(&x->csrs[loop->csr].indices, first + i);
    }
    x->block_begin = frame->i;
    x->block_end = frame->i + count;
    bool is_good =
        block->step_count == 0 || pwsp_column_run(steps + block->first_step, block->step_count,
                                                  x->column_memory, x->arrays, count);
    x->columns = is_good ? x->column_memory : NULL;
}

static inline void pwsp_expander_set_variable(pwsp_expander *x, const pwsp_loop *loop,
                                              const pwsp_frame *frame) {
    if (x->block) {
        if (frame->i >= x->block_end) {
            pwsp_expander_fill_block(x, loop, frame);
        }
        x->block_at = (uint32_t)(frame->i - x->block_begin);
    }
    x->cells[loop->cell] = (uint64_t)frame->i;
    if (pwsp_axis_is_work(loop->axis_kind)) {
        x->cells[loop->cell] += frame->first;
    }
    if (loop->axis_kind == PWSP_AXIS_SPARSE) {
        uint64_t entry = frame->first + (uint64_t)frame->i;
        x->cells[loop->entry] = entry;
        x->cells[loop->cell] = pwsp_array_at(&x->csrs[loop->csr].indices, entry);
    }
}

static pwsp_event pwsp_expander_mark(pwsp_expander *x, pwsp_mark_kind kind) {
    x->mark = pwsp_mark_of(kind);
    return PWSP_EVENT_MARK;
}

static pwsp_event pwsp_expander_scope(pwsp_expander *x, pwsp_scope scope) {
    return pwsp_expander_mark(x, scope == PWSP_SCOPE_PARALLEL ? PWSP_MARK_PARALLEL
                                                              : PWSP_MARK_SEQUENTIAL);
}

static pwsp_event pwsp_expander_reset(pwsp_expander *x, const pwsp_op *op) {
    const pwsp_range *range = &x->program->resets.items[op->at];
    const pwsp_mark mark = {PWSP_MARK_RESET, 0, range->count,
                            (const uint32_t *)x->program->edges.items + range->first};
    x->mark = mark;
    return PWSP_EVENT_MARK;
}

static pwsp_event pwsp_expander_release(pwsp_expander *x, const pwsp_op *op) {
    x->mark = pwsp_mark_of(PWSP_MARK_RELEASE);
    x->mark.id = op->at;
    return PWSP_EVENT_MARK;
}

// Enters a loop. *out_event is set if there is one (a scope, an error).
static bool pwsp_expander_loop(pwsp_expander *x, const pwsp_op *op, pwsp_event *out_event) {
    const pwsp_loop *loop = &x->program->loops.items[op->at];
    pwsp_frame frame = {op->at, false, loop->scope != PWSP_SCOPE_SAME, 0, 0, 0};
    x->node = op->node;
    if (!pwsp_expander_extent(x, loop, &frame)) {
        *out_event = PWSP_EVENT_ERROR;
        return true;
    }
    // Nothing to do, or nothing in it.
    if (!pwsp_expander_seek(x, loop, &frame) || op->target == x->next_op + 1) {
        x->next_op = op->target;
        return false;
    }
    PTOWSP_ASSERT(x->frame_count < x->program->frame_depth);
    x->frames[x->frame_count++] = frame;
    pwsp_expander_enter_block(x, loop, &frame);
    pwsp_expander_set_variable(x, loop, &frame);
    if (frame.has_scope) {
        *out_event = pwsp_expander_scope(x, loop->scope);
    }
    return frame.has_scope;
}

// -- calls and slots ------------------------------------------------------------------------------

static bool pwsp_expander_call(pwsp_expander *x, const pwsp_op *op, pwsp_event *out_event) {
    const pwsp_call_op *call = &x->program->calls.items[op->at];
    PTOWSP_ASSERT(op->at < x->program->calls.count && op->target < x->program->ops.count);
    const pwsp_code *codes = &x->program->codes.items[call->first_code];
    x->node = op->node;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        x->cells[call->first_cell + i] = pwsp_expander_value(x, codes[i]);
    }
    if (x->fault.is_set) {
        *out_event = pwsp_expander_fail_fault(x, false);
        return true;
    }
    PTOWSP_ASSERT(x->frame_count < x->program->frame_depth);
    pwsp_frame frame = {x->next_op, true, call->scope != PWSP_SCOPE_SAME, 0, 0, 0};
    x->frames[x->frame_count++] = frame;
    x->next_op = op->target;
    if (frame.has_scope) {
        *out_event = pwsp_expander_scope(x, call->scope);
    }
    return frame.has_scope;
}

// A slot load: finds its element. The caller loads it when the data is there.
static pwsp_event pwsp_expander_slot_load(pwsp_expander *x, const pwsp_op *op) {
    const pwsp_slot_op *load = &x->program->slot_ops.items[op->at];
    const pwsp_bound_tensor *tensor = &x->tensors[load->view.tensor];
    x->node = op->node;
    x->load = load;
    if (!pwsp_expander_tile(x, &load->view, tensor, &x->load_at)) {
        return pwsp_expander_fail_view(x, &load->view, "the view", tensor);
    }
    int64_t row = pwsp_expander_given(x, &load->row, 0);
    int64_t col = pwsp_expander_given(x, &load->col, 0);
    if (x->fault.is_set) {
        return pwsp_expander_fail_fault(x, false);
    }
    pwsp_error error;
    return pwsp_view_element(&error, row, col, &x->load_at) == PTOWSP_OK
               ? PWSP_EVENT_SLOT_LOAD
               : pwsp_expander_fail_check(x, &error);
}

PWSP_INTERNAL void pwsp_expander_load(pwsp_expander *x) {
    x->cells[x->load->cell] = pwsp_view_load(&x->tensors[x->load_at.tensor], &x->load_at);
}

// -- processes ------------------------------------------------------------------------------------

static pwsp_event pwsp_expander_send(pwsp_expander *x, const pwsp_op *op) {
    x->node = op->node;
    x->send = &x->program->sends.items[op->at];
    x->token = pwsp_expander_value(x, x->send->token);
    return x->fault.is_set ? pwsp_expander_fail_fault(x, false) : PWSP_EVENT_SEND;
}

// -- walking --------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_expander_begin(pwsp_expander *x) {
    PTOWSP_ASSERT(x->cells && x->frames && x->tensors);
    x->ops = PWSP_OP_AT(x->program, 0);
    x->frame_count = 0;
    x->next_op = 0;
    x->node = 0;
    x->has_skipped = false;
    x->block = NULL;
    x->columns = NULL;
    x->fault.is_set = false;
    x->task_count = 0;
    x->task.args = x->cells + x->program->first_arg;
    x->task.tiles = x->tiles;
    x->status = PTOWSP_OK;
    x->index = PTOWSP_NO_INDEX;
    x->text[0] = '\0';
}

PWSP_INTERNAL pwsp_event pwsp_expander_task(pwsp_expander *x, uint32_t op) {
    PTOWSP_ASSERT(x->ops[op].kind == PWSP_OP_TASK && !x->unknown);
    return pwsp_expander_make_task(x, &x->ops[op]);
}

// Passes over an op whose effect is not known yet.
static void pwsp_expander_skip(pwsp_expander *x, const pwsp_op *op) {
    x->has_skipped = x->has_skipped || op->kind == PWSP_OP_LOOP || op->kind == PWSP_OP_BRANCH;
    const uint32_t end = pwsp_op_end(x->program, op);
    x->next_op = end ? end : x->next_op;
    x->task_count += op->kind == PWSP_OP_TASK;
}

// Continues with the next iteration of the innermost loop. True after the last one, when a scope ends.
static bool pwsp_expander_loop_end(pwsp_expander *x, const pwsp_op *op) {
    pwsp_frame *frame = &x->frames[x->frame_count - 1];
    const pwsp_loop *loop = &x->program->loops.items[op->at];
    frame->i++;
    if (pwsp_expander_seek(x, loop, frame)) {
        pwsp_expander_set_variable(x, loop, frame);
        x->next_op = op->target;
        return false;
    }
    x->frame_count--;
    x->block = NULL;
    x->columns = NULL;
    return frame->has_scope;
}

// The condition of a branch, or the value of a slot. False on a fault.
static bool pwsp_expander_evaluate(pwsp_expander *x, const pwsp_op *op) {
    if (op->kind == PWSP_OP_SLOT_SET) {
        const pwsp_slot_op *slot = &x->program->slot_ops.items[op->at];
        x->cells[slot->cell] = pwsp_expander_value(x, slot->value);
    } else {
        const pwsp_branch *branch = &x->program->branches.items[op->at];
        x->next_op = pwsp_expander_value(x, branch->condition) ? x->next_op : op->target;
    }
    if (x->fault.is_set) {
        x->node = op->node;
    }
    return !x->fault.is_set;
}

PWSP_INTERNAL pwsp_event pwsp_expander_next(pwsp_expander *x) {
    pwsp_event event;
    for (;;) {
        const pwsp_op *op = &x->ops[x->next_op++];
        if (x->unknown && x->unknown[x->next_op - 1]) {
            pwsp_expander_skip(x, op);
            continue;
        }
        switch (op->kind) {
        case PWSP_OP_LOOP:
            if (pwsp_expander_loop(x, op, &event)) {
                return event;
            }
            break;
        case PWSP_OP_LOOP_END:
            if (pwsp_expander_loop_end(x, op)) {
                return pwsp_expander_mark(x, PWSP_MARK_END);
            }
            if (PWSP_UNLIKELY(++x->round_count == PWSP_EXPANDER_ROUNDS)) {
                x->round_count = 0;
                return PWSP_EVENT_NONE;
            }
            break;
        case PWSP_OP_SCOPE: return pwsp_expander_scope(x, (pwsp_scope)op->at);
        case PWSP_OP_SCOPE_END: return pwsp_expander_mark(x, PWSP_MARK_END);
        case PWSP_OP_TASK: return pwsp_expander_make_task(x, op);
        case PWSP_OP_BRANCH:
        case PWSP_OP_SLOT_SET:
            if (!pwsp_expander_evaluate(x, op)) {
                return pwsp_expander_fail_fault(x, false);
            }
            break;
        case PWSP_OP_JUMP: x->next_op = op->target; break;
        case PWSP_OP_SLOT_LOAD: return pwsp_expander_slot_load(x, op);
        case PWSP_OP_CALL:
            if (pwsp_expander_call(x, op, &event)) {
                return event;
            }
            break;
        case PWSP_OP_RETURN:
            if (x->frame_count == 0) {
                return PWSP_EVENT_END;
            }
            x->frame_count--;
            x->next_op = x->frames[x->frame_count].loop;
            if (x->frames[x->frame_count].has_scope) {
                return pwsp_expander_mark(x, PWSP_MARK_END);
            }
            break;
        case PWSP_OP_RESET: return pwsp_expander_reset(x, op);
        case PWSP_OP_RELEASE: return pwsp_expander_release(x, op);
        case PWSP_OP_LIST:
            x->next_op = op->target;
            pwsp_task_list_begin(x, &x->program->lists.items[op->at]);
            return pwsp_expander_mark(x, PWSP_MARK_PARALLEL);
        case PWSP_OP_LIST_NEXT:
            event = pwsp_task_list_next(x);
            if (event == PWSP_EVENT_NONE) {
                return pwsp_expander_mark(x, PWSP_MARK_END);
            }
            x->next_op--;
            return event;
        case PWSP_OP_LISTED: PTOWSP_ASSERT(false); break;
        case PWSP_OP_PIPELINE:
            x->node = op->node;
            x->pipeline = &x->program->pipelines.items[op->at];
            x->next_op = op->target;
            return PWSP_EVENT_PIPELINE;
        case PWSP_OP_PROCESS_END: x->node = op->node; return PWSP_EVENT_PROCESS_END;
        case PWSP_OP_SEND: return pwsp_expander_send(x, op);
        case PWSP_OP_RECEIVE:
            x->node = op->node;
            x->receive = &x->program->receives.items[op->at];
            x->receive_end = op->target;
            return PWSP_EVENT_RECEIVE;
        case PWSP_OP_CLOSE:
            x->node = op->node;
            x->port = op->at;
            return PWSP_EVENT_CLOSE;
        }
    }
}
