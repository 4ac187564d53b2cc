// Walking a program by what ptowsp.h says of it (appendix A), as somebody who translates it would:
// an evaluator of its expressions and an interpreter of its statements, one after another, over
// what is bound to a run. It shares nothing with the library but the public functions.

#ifndef PTOWSP_READ_WALK_H
#define PTOWSP_READ_WALK_H

#include "operator_reference.h"

enum {
    READ_VARIABLE_MAX = 512,
    READ_SLOT_MAX = 16,
    READ_CHANNEL_MAX = 8,
    READ_TOKEN_MAX = 256,
    READ_ARG_MAX = PTOWSP_TASK_AXIS_MAX + 2 * PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX
};

// Tokens that wait in a channel; nobody waits here: senders run before receivers.
typedef struct read_queue {
    uint64_t tokens[READ_TOKEN_MAX];
    uint32_t first, count;
} read_queue;

typedef struct read_walker {
    const ptowsp_program *program;
    const ptowsp_run *run;
    void (*task)(struct read_walker *w, uint32_t statement, const ptowsp_task *task, void *user);
    void *user;
    uint64_t variables[READ_VARIABLE_MAX], entries[READ_VARIABLE_MAX];
    uint64_t slots[READ_SLOT_MAX];
    uint64_t task_count;
    const ptowsp_task *now;  // whose keys are evaluated
    read_queue queues[READ_CHANNEL_MAX];
} read_walker;

static inline const ptowsp_program_tables *read_program(const read_walker *w) {
    return ptowsp_program_read(w->program);
}

// -- expressions ----------------------------------------------------------------------------------

static inline uint64_t read_element(ptowsp_dtype dtype, const void *data, uint64_t i) {
    switch ((int)dtype) {
    case PTOWSP_I8: return (uint64_t)(int64_t)((const int8_t *)data)[i];
    case PTOWSP_I16: return (uint64_t)(int64_t)((const int16_t *)data)[i];
    case PTOWSP_I32: return (uint64_t)(int64_t)((const int32_t *)data)[i];
    case PTOWSP_I64: return (uint64_t)((const int64_t *)data)[i];
    case PTOWSP_U8: return ((const uint8_t *)data)[i];
    case PTOWSP_U16: return ((const uint16_t *)data)[i];
    case PTOWSP_U32: return ((const uint32_t *)data)[i];
    case PTOWSP_U64: return ((const uint64_t *)data)[i];
    default: assert_int_equal(dtype, PTOWSP_BOOL); return ((const uint8_t *)data)[i] != 0;
    }
}

static inline uint64_t read_array(const read_walker *w, uint32_t array, uint64_t index) {
    ptowsp_dtype dtype;
    const void *data;
    uint64_t count;
    assert_true(read_program(w)->arrays[array].is_used);
    assert_true(ptowsp_run_bound_array(w->run, array, &dtype, &data, &count));
    assert_true(index < count);
    return read_element(dtype, data, index);
}

static inline uint64_t read_eval(const read_walker *w, uint32_t expr) {
    const ptowsp_expr_info e = read_program(w)->exprs[expr];
    assert_true(e.a < expr && e.b < expr && e.c < expr);
    uint64_t symbol = 0;
    int64_t size = 0;
    switch (e.kind) {
    case PTOWSP_EXPR_CONST: return e.value;
    case PTOWSP_EXPR_VARIABLE: return w->variables[e.id];
    case PTOWSP_EXPR_ENTRY: return w->entries[e.id];
    case PTOWSP_EXPR_SIZE:
        assert_true(read_program(w)->axes[e.id].is_used);
        assert_true(ptowsp_run_bound_size(w->run, e.id, &size));
        return (uint64_t)size;
    case PTOWSP_EXPR_SYMBOL:
        assert_true(read_program(w)->symbols[e.id].is_used);
        assert_true(ptowsp_run_bound_symbol(w->run, e.id, &symbol));
        return symbol;
    case PTOWSP_EXPR_ARRAY: return read_array(w, e.id, read_eval(w, e.a));
    case PTOWSP_EXPR_SLOT: return e.type == PTOWSP_TYPE_BOOL ? w->slots[e.id] != 0 : w->slots[e.id];
    case PTOWSP_EXPR_TASK_ARG:
        assert_non_null(w->now);
        return e.id < w->now->arg_count ? w->now->args[e.id] : 0;
    case PTOWSP_EXPR_AND: return read_eval(w, e.a) ? read_eval(w, e.b) : 0;
    case PTOWSP_EXPR_OR: return read_eval(w, e.a) ? 1 : read_eval(w, e.b);
    case PTOWSP_EXPR_SELECT: return read_eval(w, read_eval(w, e.a) ? e.b : e.c);
    default: break;
    }
    bool is_signed = read_program(w)->exprs[e.a].type == PTOWSP_TYPE_I64;
    uint64_t a = read_eval(w, e.a), b = e.b ? read_eval(w, e.b) : 0;
    return operator_value(e.kind, is_signed, a, b);
}

static inline uint64_t read_eval_or_0(const read_walker *w, uint32_t expr) {
    return expr ? read_eval(w, expr) : 0;
}

// -- views ----------------------------------------------------------------------------------------

// The tile of a view, its valid rows and columns in *rows and *cols.
static inline ptowsp_tile read_view(const read_walker *w, const ptowsp_view_info *view,
                                    int64_t *rows, int64_t *cols) {
    ptowsp_buffer buffer;
    assert_true(read_program(w)->tensors[view->tensor].is_used);
    assert_true(ptowsp_run_bound_tensor(w->run, view->tensor, &buffer));
    uint32_t rank = buffer.rank;
    assert_int_equal(view->lead_count, rank > 2 ? rank - 2 : 0);
    int64_t row = (int64_t)read_eval_or_0(w, view->row),
            col = (int64_t)read_eval_or_0(w, view->col);
    int64_t row_stride = rank >= 2 ? buffer.strides[rank - 2] : 0;
    int64_t col_stride = rank >= 1 ? buffer.strides[rank - 1] : 1;
    int64_t offset = row * row_stride + col * col_stride;
    for (uint32_t i = 0; i < view->lead_count; i++) {
        offset += (int64_t)read_eval(w, view->lead[i]) * buffer.strides[i];
    }
    *rows = (rank >= 2 ? buffer.shape[rank - 2] : 1) - row;
    *cols = (rank >= 1 ? buffer.shape[rank - 1] : 1) - col;
    *rows = view->rows && view->rows < *rows ? view->rows : *rows;
    *cols = view->cols && view->cols < *cols ? view->cols : *cols;
    const int64_t row_most = view->row_count ? (int64_t)read_eval(w, view->row_count) : INT64_MAX;
    const int64_t col_most = view->col_count ? (int64_t)read_eval(w, view->col_count) : INT64_MAX;
    *rows = row_most < *rows ? row_most : *rows;
    *cols = col_most < *cols ? col_most : *cols;
    ptowsp_tile tile = {NULL, row_stride, col_stride};
    if (buffer.data) {
        tile.data = (char *)buffer.data + offset * (int64_t)ptowsp_dtype_size(buffer.dtype);
    }
    return tile;
}

// -- statements -----------------------------------------------------------------------------------

static inline void read_task(read_walker *w, uint32_t statement) {
    const ptowsp_task_info info =
        read_program(w)->tasks[read_program(w)->statements[statement].task];
    uint64_t args[READ_ARG_MAX];
    ptowsp_tile tiles[PTOWSP_TASK_TILE_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < info.axis_count; i++) {
        args[count++] = read_eval(w, info.axes[i]);
    }
    for (uint32_t i = 0; i < info.tile_count; i++) {
        const ptowsp_view_info view = info.tiles[i];
        int64_t rows, cols;
        tiles[i] = read_view(w, &view, &rows, &cols);
        args[count++] = (uint64_t)rows;
        args[count++] = (uint64_t)cols;
    }
    for (uint32_t i = 0; i < info.scalar_count; i++) {
        args[count++] = read_eval(w, info.scalars[i]);
    }
    ptowsp_task task = {.args = args,
                        .arg_count = count,
                        .axis_arg_count = info.axis_count + 2 * info.tile_count,
                        .user_axis_count = info.axis_count,
                        .tile_count = info.tile_count,
                        .tiles = tiles};
    task.index = w->task_count++;
    task.kernel_name = ptowsp_program_kernel_name(w->program, info.kernel);
    w->now = &task;
    w->task(w, statement, &task, w->user);
    w->now = NULL;
}

static inline void read_load(read_walker *w, uint32_t statement, uint32_t slot) {
    const ptowsp_load_info load =
        read_program(w)->loads[read_program(w)->statements[statement].load];
    const ptowsp_tensor_info tensor = read_program(w)->tensors[load.view.tensor];
    int64_t rows, cols, row = (int64_t)read_eval_or_0(w, load.row),
                        col = (int64_t)read_eval_or_0(w, load.col);
    ptowsp_tile tile = read_view(w, &load.view, &rows, &cols);
    assert_true(tensor.is_loaded && load.view.is_read && 0 <= row && row < rows && 0 <= col &&
                col < cols);
    const char *at = (const char *)tile.data + (row * tile.row_stride + col * tile.col_stride) *
                                                   (int64_t)ptowsp_dtype_size(tensor.desc.dtype);
    w->slots[slot] = read_element(tensor.desc.dtype, at, 0);
}

static inline void read_walk(read_walker *w, uint32_t first, uint32_t end);

// The iterations of a loop: from, to, and where they are in the indices of a sparse axis.
static inline void read_loop(read_walker *w, uint32_t at, const ptowsp_statement *s) {
    const ptowsp_axis_info axis = read_program(w)->axes[s->axis];
    assert_true(axis.is_used && axis.name != NULL);
    int64_t size = 0, begin = 0;
    ptowsp_csr csr = {0};
    if (axis.kind <= PTOWSP_AXIS_DYNAMIC) {
        assert_true(ptowsp_run_bound_size(w->run, s->axis, &size));
    } else if (axis.kind == PTOWSP_AXIS_RAGGED && s->row) {
        size = (int64_t)read_array(w, axis.array, read_eval(w, s->row));
    } else if (axis.kind == PTOWSP_AXIS_RAGGED) {
        ptowsp_dtype dtype;
        const void *data;
        uint64_t count;
        assert_true(ptowsp_run_bound_array(w->run, axis.array, &dtype, &data, &count));
        for (uint64_t i = 0; i < count; i++) {
            size += (int64_t)read_element(dtype, data, i);
        }
    } else {
        assert_true(ptowsp_run_bound_csr(w->run, s->axis, &csr));
        uint64_t row = read_eval_or_0(w, s->row);
        begin = (int64_t)read_element(csr.dtype, csr.indptr, row);
        size = (int64_t)read_element(csr.dtype, csr.indptr, s->row ? row + 1 : csr.row_count);
    }
    for (int64_t i = begin; i < size; i++) {
        w->variables[s->variable] = (uint64_t)i;
        if (axis.kind == PTOWSP_AXIS_SPARSE) {
            w->variables[s->variable] = read_element(csr.dtype, csr.indices, (uint64_t)i);
            w->entries[s->variable] = (uint64_t)i;
        }
        read_walk(w, at + 1, s->end);
    }
}

// A when and its otherwise; returns where it ends.
static inline uint32_t read_when(read_walker *w, uint32_t at, const ptowsp_statement *s) {
    const ptowsp_statement behind = read_program(w)->statements[s->end];
    bool has_otherwise = behind.kind == PTOWSP_STATEMENT_OTHERWISE;
    assert_true(has_otherwise || behind.kind == PTOWSP_STATEMENT_END);
    assert_int_equal(behind.begin, at);
    if (read_eval(w, s->value)) {
        read_walk(w, at + 1, s->end);
    } else if (has_otherwise) {
        read_walk(w, s->end + 1, behind.end);
    }
    return has_otherwise ? behind.end : s->end;
}

static inline void read_call(read_walker *w, const ptowsp_statement *s) {
    const ptowsp_statement callee = read_program(w)->statements[s->target];
    uint64_t args[PTOWSP_CALL_ARG_MAX];
    assert_int_equal(callee.kind, PTOWSP_STATEMENT_WORKLOAD);
    assert_int_equal(callee.count, s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        args[i] = read_eval(w, read_program(w)->values[s->first + i]);
    }
    for (uint32_t i = 0; i < s->count; i++) {
        w->variables[read_program(w)->params[callee.first + i]] = args[i];
    }
    read_walk(w, s->target + 1, callee.end);
}

// Each process to its end, with slots of its own; replicas one after another.
static inline void read_process(read_walker *w, uint32_t at, const ptowsp_statement *s) {
    int64_t count = 1;
    if (s->axis) {
        assert_true(ptowsp_run_bound_size(w->run, s->axis, &count));
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t slots[READ_SLOT_MAX];
        memcpy(slots, w->slots, sizeof slots);
        w->variables[s->variable] = (uint64_t)i;
        read_walk(w, at + 1, s->end);
        memcpy(w->slots, slots, sizeof slots);
    }
}

static inline void read_receive(read_walker *w, uint32_t at, const ptowsp_statement *s) {
    read_queue *queue = &w->queues[s->channel];
    while (queue->first < queue->count) {
        w->variables[s->variable] = queue->tokens[queue->first++];
        read_walk(w, at + 1, s->end);
        if (s->kind == PTOWSP_STATEMENT_RECEIVE) {
            break;
        }
    }
}

// Walks statements [first, end).
static inline void read_walk(read_walker *w, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        const ptowsp_statement s = read_program(w)->statements[i];
        switch (s.kind) {
        case PTOWSP_STATEMENT_SCOPE:
        case PTOWSP_STATEMENT_PIPELINE: read_walk(w, i + 1, s.end); break;
        case PTOWSP_STATEMENT_LOOP: read_loop(w, i, &s); break;
        case PTOWSP_STATEMENT_WHEN: i = read_when(w, i, &s); continue;
        case PTOWSP_STATEMENT_CALL: read_call(w, &s); break;
        case PTOWSP_STATEMENT_TASK: read_task(w, i); break;
        case PTOWSP_STATEMENT_SLOT_SET: w->slots[s.slot] = read_eval(w, s.value); break;
        case PTOWSP_STATEMENT_SLOT_LOAD: read_load(w, i, s.slot); break;
        case PTOWSP_STATEMENT_PROCESS: read_process(w, i, &s); break;
        case PTOWSP_STATEMENT_CONSUME:
        case PTOWSP_STATEMENT_RECEIVE: read_receive(w, i, &s); break;
        case PTOWSP_STATEMENT_SEND: {
            read_queue *queue = &w->queues[s.channel];
            assert_true(queue->count < READ_TOKEN_MAX);
            queue->tokens[queue->count++] = read_eval(w, s.value);
            break;
        }
        case PTOWSP_STATEMENT_RESET:
        case PTOWSP_STATEMENT_CLOSE:
        case PTOWSP_STATEMENT_RECORD:
        case PTOWSP_STATEMENT_WAIT: break;
        default: fail_msg("statement %u of kind %d among others", i, (int)s.kind);
        }
        i = s.end ? s.end : i;
    }
}

// Walks the whole program with what is bound to the run.
static inline void read_walk_program(read_walker *w) {
    assert_true(read_program(w)->variable_count <= READ_VARIABLE_MAX);
    for (uint32_t i = 0; i < read_program(w)->slot_count; i++) {
        assert_true(i < READ_SLOT_MAX);
        w->slots[i] = ptowsp_run_bound_slot(w->run, i);
    }
    const ptowsp_statement s = read_program(w)->statements[0];
    assert_int_equal(s.kind, PTOWSP_STATEMENT_WORKLOAD);
    read_walk(w, 1, s.end);
}

// -- form -----------------------------------------------------------------------------------------

// Is the list well nested, and does each statement name what exists?
static inline void read_check_form(const ptowsp_program *p) {
    uint32_t open[2 * PTOWSP_MODULE_NEST_MAX], depth = 0;
    uint32_t count = ptowsp_program_read(p)->statement_count;
    for (uint32_t i = 0; i < count; i++) {
        const ptowsp_statement s = ptowsp_program_read(p)->statements[i];
        bool is_end = s.kind == PTOWSP_STATEMENT_END || s.kind == PTOWSP_STATEMENT_OTHERWISE;
        assert_true(s.kind > PTOWSP_STATEMENT_NONE && s.kind < PTOWSP_STATEMENT_KIND_COUNT);
        assert_true((s.kind == PTOWSP_STATEMENT_WORKLOAD) == (depth == 0));
        if (is_end) {
            const ptowsp_statement begin = ptowsp_program_read(p)->statements[s.begin];
            assert_int_equal(open[--depth], s.begin);
            assert_int_equal(begin.end, i);
            assert_true(s.kind == PTOWSP_STATEMENT_END || begin.kind == PTOWSP_STATEMENT_WHEN);
        }
        if (s.end) {
            assert_true(i < s.end && s.end < count);
            open[depth++] = i;
        }
        assert_true(s.variable < ptowsp_program_read(p)->variable_count);
        assert_true(s.axis < ptowsp_program_read(p)->axis_count);
    }
    assert_int_equal(depth, 0);
}

#endif
