// The slow reference of workloads and schedules: walks a random program as the header's sections 16
// and 20 say, and times its tasks as section 18 says, with loops over all pairs of tasks and no
// cleverness. It shares nothing with the library but the types.
//
// What waits for what is found from pairs: two tasks are ordered by the tree when the innermost
// scope around both is sequential, and by data when one's tile is still visible to the other.

#ifndef PTOWSP_WORKLOAD_REFERENCE_H
#define PTOWSP_WORKLOAD_REFERENCE_H

#include "operator_reference.h"
#include "workload_program.h"

enum {
    REF_TASK_MAX = 300,  // of a program that is used
    REF_EVENT_MAX = 2000,
    REF_SCOPE_MAX = 20000,
    REF_TILE_CELLS = 64,
    REF_POOL_MAX = 4,
    REF_ACCESS_MAX = REF_TASK_MAX * REF_TILE_MAX
};

// Readings of the header that one might have to change, all in one place.
enum {
    // A slot load waits for every task before that wrote the element, also for those whose writes
    // later ones covered.
    REF_LOAD_SEES_COVERED_WRITES = 1,
    // A slot load after the last task, too, cannot proceed before tasks begin to start.
    REF_LAST_LOAD_COMES_BEFORE_START = 1
};

// Reasons to wait: a set. An edge is data between tiles that no task between them has hidden.
enum {
    REF_BY_STRUCTURE = 1,
    REF_BY_AFTER = 2,
    REF_BY_DATA = 4,
    REF_BY_STREAM = 8,
    REF_BY_EDGE = 16
};

typedef struct ref_schedule {
    ptowsp_schedule schedule;  // without its expressions; not to be copied
    int dispatch_key, priority_key, stream_key;
    ptowsp_pool pools[REF_POOL_MAX];  // named
    char pool_names[REF_POOL_MAX][16], kernel_names[REF_KERNEL_MAX][16];
    uint32_t kernel_pools[REF_KERNEL_MAX];
} ref_schedule;

// An open scope, each iteration of a loop anew. Whens are as sequential as what is around them.
typedef struct ref_scope {
    int parent;
    int body_of;  // the statement whose body it is, or -1 for a loop around its iterations
    bool is_sequential;
} ref_scope;

typedef struct ref_task {
    int stmt, scope;
    uint32_t arg_count;
    uint64_t cycles;
    int first_access, access_count;
    uint64_t tags[REF_TAG_COUNT];
    uint64_t dispatch_key, priority_key, stream_key;
} ref_task;

// A tile of a task: its elements as cells, row by row.
typedef struct ref_access {
    int task;
    bool is_read, is_write;
    int64_t rows, cols;
    int cell_count;
    int cells[REF_TILE_CELLS];
    int low, high;     // the least and the largest cell
    int hidden_by[2];  // the first later task that writes over all of it: by exact, by overlap
} ref_access;

typedef struct ref_event {
    bool is_load;
    int task;  // or, for a load, how many tasks came before
    int cell;  // of a load
} ref_event;

typedef struct ref_expansion {
    ref_task tasks[REF_TASK_MAX];
    uint64_t args[REF_TASK_MAX][REF_ARG_MAX];
    int task_count;
    ref_access accesses[REF_ACCESS_MAX];
    int access_count;
    ref_event events[REF_EVENT_MAX];
    int event_count, load_count;
    ref_scope scopes[REF_SCOPE_MAX];
    int scope_count;
    bool is_too_long;  // do not use it
    int64_t cells[REF_CELL_MAX];
    uint64_t slots[REF_SLOT_COUNT];
} ref_expansion;

typedef struct ref_time {
    uint64_t ready, issue, turn, start, end;
    uint32_t lane;
    bool is_issued, is_started, is_done;
    bool has_room, has_asked;  // the window has let it in; it has asked for what it needs of rings
    uint64_t needs[PTOWSP_RING_COUNT];
    ptowsp_stall stall;  // as far as it is known: in events NONE, DEPENDENCY, LANE, or COUNT
} ref_time;

typedef struct ref_result {
    ptowsp_status status;
    ref_time times[REF_TASK_MAX];
    uint32_t lane_count;
    uint64_t makespan, busy;
    uint64_t overflow_count, in_flight_max;
    uint64_t stall_cycles[PTOWSP_STALL_COUNT];  // not in events
    uint64_t ring_max[PTOWSP_RING_COUNT];
    bool by_events;
    unsigned char waits[REF_TASK_MAX][REF_TASK_MAX];  // why [later] waits for [earlier]: REF_WAIT
} ref_result;

typedef struct ref_walk {
    const ref_program *program;
    const ref_bindings *bindings;
    const ref_schedule *schedule;  // for its keys; may be NULL
    ref_expansion *out;
    int64_t variables[REF_STMT_MAX];
    uint64_t params[REF_WORKLOAD_MAX * REF_PARAM_MAX];
} ref_walk;

// -- expressions ----------------------------------------------------------------------------------

static inline bool ref_less(bool is_signed, uint64_t a, uint64_t b) {
    return is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static inline uint64_t ref_eval(const ref_walk *w, int number, int task);

// What keys read of the task.
static inline uint64_t ref_eval_task(const ref_walk *w, const ref_expr *e, int task) {
    const ref_task *t = &w->out->tasks[task];
    if (e->op == REF_TASK_ARG) {
        return e->value < t->arg_count ? w->out->args[task][e->value] : 0;
    } else if (e->op == REF_TASK_TAG) {
        return t->tags[e->value];
    }
    int s = t->stmt;
    do {
        s = w->program->stmts[s].parent;
    } while (w->program->stmts[s].kind < REF_PARALLEL ||
             w->program->stmts[s].kind > REF_SELECT_LOOP || w->program->stmts[s].loop_depth > 0);
    return (uint64_t)w->variables[s];
}

static inline uint64_t ref_eval_leaf(const ref_walk *w, const ref_expr *e, int task) {
    const ref_bindings *b = w->bindings;
    uint64_t index = e->a ? ref_eval(w, e->a, task) : 0;
    switch ((int)e->op) {
    case REF_NONE: return 0;
    case REF_LITERAL: return e->value;
    case REF_VARIABLE: return (uint64_t)w->variables[e->value];
    case REF_PARAM: return w->params[e->value];
    case REF_SYMBOL: return b->symbols[e->value];
    case REF_ARRAY:
        assert_true(index < REF_ARRAY_LENGTH);
        return (uint64_t)b->arrays[e->value][index];
    case REF_LENGTHS:
        assert_true(index < (uint64_t)w->program->axes[e->value].rows);
        return (uint64_t)b->lengths[e->value][index];
    case REF_AXIS_SIZE: return (uint64_t)b->sizes[e->value];
    case REF_SLOT: {
        uint64_t cell = w->out->slots[e->value];
        return e->type == PTOWSP_TYPE_BOOL ? cell != 0 : cell;
    }
    default: return ref_eval_task(w, e, task);
    }
}

// The value of an expression: for bools 0 or 1, else its bits. `task` is for keys.
static inline uint64_t ref_eval(const ref_walk *w, int number, int task) {
    const ref_expr *e = &w->program->exprs[number];
    static const ptowsp_expr_kind kinds[REF_OP_COUNT] = {
#define REF_OP_KIND(name, function) [REF_##name] = PTOWSP_EXPR_##name,
        REF_BINARY_OPS(REF_OP_KIND) REF_UNARY_OPS(REF_OP_KIND) REF_CASTS(REF_OP_KIND)
#undef REF_OP_KIND
    };
    switch ((int)e->op) {
    case REF_SELECT: return ref_eval(w, ref_eval(w, e->a, task) ? e->b : e->c, task);
    case REF_AND: return ref_eval(w, e->a, task) && ref_eval(w, e->b, task);
    case REF_OR: return ref_eval(w, e->a, task) || ref_eval(w, e->b, task);
    default: break;
    }
    if (kinds[e->op] != PTOWSP_EXPR_NONE) {
        bool is_signed = w->program->exprs[e->a].type == PTOWSP_TYPE_I64;
        return operator_value(kinds[e->op], is_signed, ref_eval(w, e->a, task),
                              e->b ? ref_eval(w, e->b, task) : 0);
    }
    return ref_eval_leaf(w, e, task);
}

// -- tasks ----------------------------------------------------------------------------------------

// The cells of a view, row by row; as many rows and columns as the tensor has from its offset.
static inline void ref_view_cells(const ref_walk *w, const ref_view *view, int64_t rows,
                                  int64_t cols, ref_access *out) {
    const ref_tensor *tensor = &w->program->tensors[view->tensor];
    const int64_t *shape = w->bindings->shape[view->tensor];
    const int64_t *strides = w->bindings->strides[view->tensor];
    int64_t first = w->bindings->origin[view->tensor];
    for (uint32_t d = 0; d + 2 < tensor->rank; d++) {
        int64_t index = (int64_t)ref_eval(w, view->index[d], -1);
        assert_true(0 <= index && index < shape[d]);
        first += index * strides[d];
    }
    bool has_rows = tensor->rank >= 2, has_cols = tensor->rank >= 1;
    uint32_t row_dim = has_rows ? tensor->rank - 2 : 0, col_dim = has_cols ? tensor->rank - 1 : 0;
    int64_t row_count = has_rows ? shape[row_dim] : 1, col_count = has_cols ? shape[col_dim] : 1;
    int64_t row = view->row ? (int64_t)ref_eval(w, view->row, -1) : 0;
    int64_t col = view->col ? (int64_t)ref_eval(w, view->col, -1) : 0;
    assert_true(0 <= row && row < row_count && 0 <= col && col < col_count);
    out->rows = rows == PTOWSP_DYNAMIC || rows > row_count - row ? row_count - row : rows;
    out->cols = cols == PTOWSP_DYNAMIC || cols > col_count - col ? col_count - col : cols;
    out->cell_count = 0;
    out->low = INT32_MAX;
    out->high = -1;
    for (int64_t r = row; r < row + out->rows; r++) {
        for (int64_t c = col; c < col + out->cols; c++) {
            assert_true(out->cell_count < REF_TILE_CELLS);
            int cell = (int)(first + (has_rows ? r * strides[row_dim] : 0) +
                             (has_cols ? c * strides[col_dim] : 0));
            out->cells[out->cell_count++] = cell;
            out->low = cell < out->low ? cell : out->low;
            out->high = cell > out->high ? cell : out->high;
        }
    }
}

// Runs the kernel on the reference's own data and says how long that takes.
static inline uint64_t ref_execute(ref_expansion *x, const ref_kernel *kernel, int number) {
    const ref_task *task = &x->tasks[number];
    const ref_access *tiles = &x->accesses[task->first_access];
    uint64_t mixed = ref_mix_args(kernel, x->args[number], task->arg_count);
    for (int t = 0; t < task->access_count; t++) {
        for (int i = 0; i < tiles[t].cell_count && tiles[t].is_read; i++) {
            mixed = ref_mix(mixed, (uint64_t)x->cells[tiles[t].cells[i]]);
        }
    }
    for (int t = 0; t < task->access_count; t++) {
        for (int i = 0; i < tiles[t].cell_count && tiles[t].is_write; i++) {
            int64_t *cell = &x->cells[tiles[t].cells[i]];
            int32_t output = ref_output(mixed, i / tiles[t].cols, i % tiles[t].cols);
            *cell = tiles[t].is_read ? ref_update((int32_t)*cell, output) : output;
        }
    }
    uint64_t more = kernel->cost == REF_COST_RETURNED ? ref_data_cycles(mixed) : 0;
    return ref_cycles(kernel, x->args[number], task->arg_count) + more;
}

static inline void ref_walk_task(ref_walk *w, int s, int scope) {
    ref_expansion *x = w->out;
    const ref_stmt *stmt = &w->program->stmts[s];
    const ref_kernel *kernel = &w->program->kernels[stmt->kernel];
    if (x->task_count == REF_TASK_MAX || x->event_count == REF_EVENT_MAX) {
        x->is_too_long = true;
        return;
    }
    int number = x->task_count++;
    ref_task *task = &x->tasks[number];
    memset(task, 0, sizeof *task);
    task->stmt = s;
    task->scope = scope;
    task->first_access = x->access_count;
    task->access_count = (int)kernel->tile_count;
    uint64_t *args = x->args[number];
    for (uint32_t i = 0; i < kernel->axis_count; i++) {
        args[task->arg_count++] = ref_eval(w, stmt->axes[i], -1);
    }
    for (uint32_t t = 0; t < kernel->tile_count; t++) {
        ref_access *access = &x->accesses[x->access_count++];
        const ref_view *view = &stmt->views[t];
        access->task = number;
        access->is_read = kernel->directions[t] != PTOWSP_OUT;
        access->is_write = kernel->directions[t] != PTOWSP_IN;
        ref_view_cells(w, view, view->rows ? view->rows : kernel->rows[t],
                       view->cols ? view->cols : kernel->cols[t], access);
        args[task->arg_count++] = (uint64_t)access->rows;
        args[task->arg_count++] = (uint64_t)access->cols;
    }
    for (uint32_t i = 0; i < kernel->scalar_count; i++) {
        args[task->arg_count++] = ref_eval(w, stmt->scalars[i], -1);
    }
    for (int i = 0; i < REF_TAG_COUNT; i++) {
        task->tags[i] = stmt->tags[i] ? ref_eval(w, stmt->tags[i], -1) : 0;
    }
    if (w->schedule) {
        task->dispatch_key = ref_eval(w, w->schedule->dispatch_key, number);
        task->priority_key = ref_eval(w, w->schedule->priority_key, number);
        task->stream_key = ref_eval(w, w->schedule->stream_key, number);
    }
    task->cycles = ref_execute(x, kernel, number);
    ref_event event = {false, number, 0};
    x->events[x->event_count++] = event;
}

// -- the tree -------------------------------------------------------------------------------------

static inline int ref_scope_open(ref_expansion *x, int parent, int body_of, bool is_sequential) {
    if (x->scope_count == REF_SCOPE_MAX) {
        x->is_too_long = true;
        return 0;
    }
    ref_scope scope = {parent, body_of, is_sequential};
    x->scopes[x->scope_count] = scope;
    return x->scope_count++;
}

// The values that the variable of a loop takes, in order.
static inline int ref_loop_values(const ref_walk *w, const ref_stmt *loop, int64_t *values) {
    const ref_bindings *b = w->bindings;
    const ref_axis *axis = &w->program->axes[loop->axis];
    int count = 0;
    if (axis->kind <= REF_DYNAMIC) {
        while (count < b->sizes[loop->axis]) {
            values[count] = count;
            count++;
        }
        return count;
    }
    int64_t row = loop->row ? (int64_t)ref_eval(w, loop->row, -1) : 0;
    int64_t end = loop->row ? row + 1 : axis->rows;
    assert_true(0 <= row && end <= axis->rows);
    for (; row < end; row++) {
        for (int64_t i = 0; i < b->lengths[loop->axis][row]; i++) {
            int64_t column = b->indices[loop->axis][b->indptr[loop->axis][row] + i];
            values[count] = axis->kind == REF_SPARSE ? column : count;
            count++;
        }
    }
    return count;
}

static inline void ref_walk_body(ref_walk *w, int s, int scope);

static inline void ref_walk_loop(ref_walk *w, int s, int scope) {
    const ref_stmt *stmt = &w->program->stmts[s];
    bool is_sequential = stmt->kind == REF_FOR_EACH;
    int64_t values[REF_ROW_MAX * REF_LENGTH_MAX];
    int count = ref_loop_values(w, stmt, values);
    int loop = ref_scope_open(w->out, scope, -1, is_sequential);
    for (int i = 0; i < count && !w->out->is_too_long; i++) {
        w->variables[s] = values[i];
        ref_walk_body(w, s, ref_scope_open(w->out, loop, s, is_sequential));
    }
}

static inline void ref_walk_load(ref_walk *w, const ref_stmt *stmt) {
    ref_expansion *x = w->out;
    ref_access tile;
    ref_view_cells(w, &stmt->view, stmt->view.rows ? stmt->view.rows : 1,
                   stmt->view.cols ? stmt->view.cols : 1, &tile);
    int64_t row = stmt->load_row ? (int64_t)ref_eval(w, stmt->load_row, -1) : 0;
    int64_t col = stmt->load_col ? (int64_t)ref_eval(w, stmt->load_col, -1) : 0;
    assert_true(0 <= row && row < tile.rows && 0 <= col && col < tile.cols);
    int cell = tile.cells[row * tile.cols + col];
    x->slots[stmt->slot] = (uint64_t)x->cells[cell];
    if (x->event_count == REF_EVENT_MAX) {
        x->is_too_long = true;
        return;
    }
    ref_event event = {true, x->task_count, cell};
    x->events[x->event_count++] = event;
    x->load_count++;
}

static inline void ref_walk_call(ref_walk *w, const ref_stmt *stmt, int scope) {
    uint64_t values[REF_PARAM_MAX] = {0};
    for (int i = 0; i < w->program->param_counts[stmt->callee]; i++) {
        values[i] = ref_eval(w, stmt->args[i], -1);
    }
    memcpy(&w->params[stmt->callee * REF_PARAM_MAX], values, sizeof values);
    int root = w->program->roots[stmt->callee];
    ref_walk_body(w, root, ref_scope_open(w->out, scope, root, true));
}

// All statements in a scope. An otherwise looks at what the when before it found.
static inline void ref_walk_body(ref_walk *w, int s, int scope) {
    ref_expansion *x = w->out;
    bool was_true = false;
    for (int i = w->program->stmts[s].first; i >= 0; i = w->program->stmts[i].next) {
        const ref_stmt *stmt = &w->program->stmts[i];
        if (x->is_too_long) {
            return;
        }
        switch (stmt->kind) {
        case REF_TASK: ref_walk_task(w, i, scope); break;
        case REF_SLOT_SET: x->slots[stmt->slot] = ref_eval(w, stmt->value, -1); break;
        case REF_SLOT_LOAD: ref_walk_load(w, stmt); break;
        case REF_CALL: ref_walk_call(w, stmt, scope); break;
        case REF_WHEN:
        case REF_OTHERWISE: {
            bool is_when = stmt->kind == REF_WHEN;
            was_true = is_when ? ref_eval(w, stmt->value, -1) != 0 : was_true;
            if (was_true == is_when) {
                ref_walk_body(w, i, ref_scope_open(x, scope, i, x->scopes[scope].is_sequential));
            }
            break;
        }
        case REF_COMBINE:
        case REF_SEQUENCE:
            ref_walk_body(w, i, ref_scope_open(x, scope, i, stmt->kind == REF_SEQUENCE));
            break;
        default: ref_walk_loop(w, i, scope); break;
        }
    }
}

// Walks the whole program. The keys of the schedule, if there is one, are read on the way.
static inline void ref_expand(const ref_program *program, const ref_bindings *bindings,
                              const ref_schedule *schedule, ref_expansion *out) {
    ref_walk *w = (ref_walk *)calloc(1, sizeof *w);
    assert_non_null(w);
    w->program = program;
    w->bindings = bindings;
    w->schedule = schedule;
    w->out = out;
    out->task_count = out->access_count = out->event_count = out->load_count = 0;
    out->scope_count = 0;
    out->is_too_long = false;
    memcpy(out->cells, bindings->cells, sizeof out->cells);
    memcpy(out->slots, bindings->slots, sizeof out->slots);
    int root = program->roots[0];
    ref_walk_body(w, root, ref_scope_open(out, -1, root, true));
    free(w);
}

// -- what waits for what --------------------------------------------------------------------------

// Whether the innermost scope around both tasks runs its statements one after another.
static inline bool ref_is_ordered(const ref_expansion *x, int earlier, int later) {
    for (int a = x->tasks[earlier].scope; a >= 0; a = x->scopes[a].parent) {
        for (int b = x->tasks[later].scope; b >= 0; b = x->scopes[b].parent) {
            if (a == b) {
                return x->scopes[a].is_sequential;
            }
        }
    }
    fail();
    return false;
}

// The instance of a statement's body that is around a task, or -1.
static inline int ref_body_around(const ref_expansion *x, int task, int stmt) {
    int scope = x->tasks[task].scope;
    while (scope >= 0 && x->scopes[scope].body_of != stmt) {
        scope = x->scopes[scope].parent;
    }
    return scope;
}

// Whether `later` names the statement of `earlier` in its `after`, and the current iteration of the
// innermost statement around both statements has issued `earlier`.
static inline bool ref_is_after(const ref_program *p, const ref_expansion *x, int earlier,
                                int later) {
    int a = x->tasks[earlier].stmt, b = x->tasks[later].stmt;
    bool is_named = false;
    for (int i = 0; i < p->stmts[b].after_count; i++) {
        is_named = is_named || p->stmts[b].after[i] == a;
    }
    for (int i = a; is_named && i >= 0; i = p->stmts[i].parent) {
        for (int k = b; k >= 0; k = p->stmts[k].parent) {
            if (i == k) {
                return ref_body_around(x, earlier, i) == ref_body_around(x, later, i);
            }
        }
    }
    return false;
}

static inline bool ref_is_exact(const ref_access *a, const ref_access *b) {
    return a->rows == b->rows && a->cols == b->cols &&
           memcmp(a->cells, b->cells, (size_t)a->cell_count * sizeof a->cells[0]) == 0;
}

// How many cells of b are in a.
static inline int ref_common_cells(const ref_access *a, const ref_access *b) {
    int count = 0;
    if (a->high < b->low || b->high < a->low) {
        return 0;
    }
    for (int i = 0; i < a->cell_count; i++) {
        for (int k = 0; k < b->cell_count; k++) {
            count += a->cells[i] == b->cells[k];
        }
    }
    return count;
}

// Finds for each tile the first later task that writes over all of it.
static inline void ref_find_hidden(ref_expansion *x) {
    for (int i = 0; i < x->access_count; i++) {
        ref_access *old = &x->accesses[i];
        old->hidden_by[0] = old->hidden_by[1] = INT32_MAX;
        for (int k = x->access_count - 1; k > i; k--) {
            const ref_access *write = &x->accesses[k];
            if (write->is_write && write->task > old->task) {
                if (ref_is_exact(write, old)) {
                    old->hidden_by[0] = write->task;
                }
                if (ref_common_cells(write, old) == old->cell_count) {
                    old->hidden_by[1] = write->task;
                }
            }
        }
    }
}

// Whether `later` has to wait for `earlier` because of data. Only readers ask for the last writers:
// of tiles that no single later task has written over. With is_edge, writers do so too.
static inline bool ref_shares_data(const ref_expansion *x, const ptowsp_schedule *s, int earlier,
                                   int later, bool is_edge) {
    bool by_overlap = (s->dependencies & PTOWSP_DEPENDENCIES_OVERLAP) != 0;
    uint32_t hazards =
        s->hazards ? s->hazards : PTOWSP_HAZARD_RAW | PTOWSP_HAZARD_WAR | PTOWSP_HAZARD_WAW;
    const ref_task *a = &x->tasks[earlier], *b = &x->tasks[later];
    for (int i = a->first_access; i < a->first_access + a->access_count; i++) {
        for (int k = b->first_access; k < b->first_access + b->access_count; k++) {
            const ref_access *old = &x->accesses[i], *now = &x->accesses[k];
            bool is_last = old->hidden_by[by_overlap] >= later;
            bool is_met =
                (old->is_write && is_last && now->is_read && (hazards & PTOWSP_HAZARD_RAW)) ||
                (old->is_read && now->is_write && (hazards & PTOWSP_HAZARD_WAR)) ||
                (old->is_write && now->is_write && (hazards & PTOWSP_HAZARD_WAW));
            if (is_met && (is_last || !is_edge) &&
                (by_overlap ? ref_common_cells(old, now) > 0 : ref_is_exact(old, now))) {
                return true;
            }
        }
    }
    return false;
}

// Fills out->waits for all pairs, streams included.
static inline void ref_find_waits(const ref_program *p, ref_expansion *x,
                                  const ptowsp_schedule *given, bool has_stream_key,
                                  ref_result *out) {
    ptowsp_schedule s = *given;
    if (s.dependencies == 0) {
        s.dependencies = s.issue == PTOWSP_ISSUE_IN_ORDER ? PTOWSP_DEPENDENCIES_STRUCTURE
                                                          : PTOWSP_DEPENDENCIES_HYBRID;
    }
    uint32_t by_data = PTOWSP_DEPENDENCIES_EXACT | PTOWSP_DEPENDENCIES_OVERLAP;
    if (s.dependencies & by_data) {
        ref_find_hidden(x);
    }
    for (int later = 0; later < x->task_count; later++) {
        for (int earlier = 0; earlier < later; earlier++) {
            int why = 0;
            if ((s.dependencies & PTOWSP_DEPENDENCIES_STRUCTURE) &&
                ref_is_ordered(x, earlier, later)) {
                why |= REF_BY_STRUCTURE;
            }
            if ((s.dependencies & PTOWSP_DEPENDENCIES_EXPLICIT) &&
                ref_is_after(p, x, earlier, later)) {
                why |= REF_BY_AFTER;
            }
            if ((s.dependencies & by_data) && ref_shares_data(x, &s, earlier, later, false)) {
                bool is_edge = ref_shares_data(x, &s, earlier, later, true);
                why |= is_edge ? REF_BY_DATA | REF_BY_EDGE : REF_BY_DATA;
            }
            if (has_stream_key && x->tasks[earlier].stream_key % s.stream_count ==
                                      x->tasks[later].stream_key % s.stream_count) {
                why |= REF_BY_STREAM;
            }
            out->waits[later][earlier] = (unsigned char)why;
        }
    }
}

// -- time -----------------------------------------------------------------------------------------

typedef struct ref_timing {
    const ref_program *program;
    const ref_expansion *x;
    ptowsp_schedule s;
    bool priority_is_signed;
    ref_result *out;
    uint64_t *free_at;  // by lane
    int *holders;       // by lane: the last task that has taken it
    uint64_t clock;
    ptowsp_stall mover;  // what moved the clock last
    bool has_begun;
    uint64_t begin;  // when tasks began to start
    uint64_t pool_counts[REF_POOL_MAX];
    const ref_schedule *named;  // the schedule's pools, if they are
} ref_timing;

static inline uint64_t ref_max(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static inline uint32_t ref_pool_of(const ref_timing *t, int task) {
    int kernel = t->program->stmts[t->x->tasks[task].stmt].kernel;
    return t->s.pools == PTOWSP_POOLS_NAMED
               ? t->named->kernel_pools[kernel]
               : t->s.pools == PTOWSP_POOLS_BY_UNIT &&
                     t->program->kernels[kernel].unit != PTOWSP_UNIT_VECTOR;
}

// The lanes of a task on a lane: that, and of MIX the two vector lanes of the block. Returns how many.
static inline int ref_lanes_of(const ref_program *program, const ref_expansion *x,
                               const ptowsp_schedule *schedule, int task, uint32_t lane,
                               uint32_t *lanes) {
    bool is_mix =
        program->kernels[program->stmts[x->tasks[task].stmt].kernel].unit == PTOWSP_UNIT_MIX;
    lanes[0] = lane;
    if (schedule->pools != PTOWSP_POOLS_BY_UNIT || !is_mix) {
        return 1;
    }
    lanes[1] = (lane - schedule->vector_lane_count) * 2;
    lanes[2] = (lane - schedule->vector_lane_count) * 2 + 1;
    return 3;
}

// When they are all free.
static inline uint64_t ref_free_of(const ref_timing *t, int task, uint32_t lane) {
    uint32_t lanes[3];
    uint64_t free_at = 0;
    for (int i = ref_lanes_of(t->program, t->x, &t->s, task, lane, lanes); i-- > 0;) {
        free_at = t->free_at[lanes[i]] > free_at ? t->free_at[lanes[i]] : free_at;
    }
    return free_at;
}

static inline void ref_take_lanes(ref_timing *t, int task, uint32_t lane, uint64_t end) {
    uint32_t lanes[3];
    for (int i = ref_lanes_of(t->program, t->x, &t->s, task, lane, lanes); i-- > 0;) {
        t->free_at[lanes[i]] = end;
        t->holders[lanes[i]] = task;
        t->out->busy += t->x->tasks[task].cycles;
    }
}

static inline uint32_t ref_pool_first(const ref_timing *t, uint32_t pool) {
    uint32_t first = 0;
    for (uint32_t i = 0; i < pool && t->s.pools == PTOWSP_POOLS_NAMED; i++) {
        first += t->named->pools[i].lane_count;
    }
    return pool ? first + t->s.vector_lane_count : 0;
}

static inline uint32_t ref_pool_size(const ref_timing *t, uint32_t pool) {
    if (t->s.pools == PTOWSP_POOLS_ONE) {
        return t->out->lane_count;
    }
    if (t->s.pools == PTOWSP_POOLS_NAMED) {
        return t->named->pools[pool].lane_count;
    }
    return pool ? t->s.cube_lane_count : t->s.vector_lane_count;
}

// The finalizer of SplitMix64.
static inline uint64_t ref_hash(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

// The lane of a task, where lanes do not choose. Tasks are asked in order of issue, once each.
static inline uint32_t ref_lane_of(ref_timing *t, int task) {
    uint32_t pool = ref_pool_of(t, task);
    uint32_t first = ref_pool_first(t, pool), count = ref_pool_size(t, pool);
    uint64_t key = t->x->tasks[task].dispatch_key, number = t->pool_counts[pool]++;
    uint32_t lane = first;
    switch (t->s.dispatch) {
    case PTOWSP_DISPATCH_AFFINITY:
    case PTOWSP_DISPATCH_CUSTOM: return first + (uint32_t)(key % count);
    case PTOWSP_DISPATCH_HASH: return first + (uint32_t)(ref_hash(key) % count);
    case PTOWSP_DISPATCH_WORK_STEALING:
        for (uint32_t i = first; i < first + count; i++) {
            lane = ref_free_of(t, task, i) < ref_free_of(t, task, lane) ? i : lane;
        }
        return lane;
    default: return first + (uint32_t)(number % count);
    }
}

static inline bool ref_waits(const ref_timing *t, int later, int earlier) {
    return t->out->waits[later][earlier] != 0;
}

static inline uint64_t ref_ready_of(const ref_timing *t, int task) {
    uint64_t ready = 0;
    for (int i = 0; i < task; i++) {
        if (ref_waits(t, task, i)) {
            ready = ref_max(ready, t->out->times[i].end);
        }
    }
    return ready;
}

// Whether a task before the load has written the cell that it loads.
static inline bool ref_writes_cell(const ref_timing *t, int task, const ref_event *load) {
    const ref_expansion *x = t->x;
    const ref_task *a = &x->tasks[task];
    for (int i = a->first_access; i < a->first_access + a->access_count; i++) {
        for (int k = 0; k < x->accesses[i].cell_count && x->accesses[i].is_write; k++) {
            if (x->accesses[i].cells[k] == load->cell &&
                (REF_LOAD_SEES_COVERED_WRITES || x->accesses[i].hidden_by[1] >= load->task)) {
                return true;
            }
        }
    }
    return false;
}

// The turns of interleaved streams: the first of the stream that is not before the clock, and that
// no earlier task of the stream has.
static inline uint64_t ref_turn_of(const ref_timing *t, int task, uint64_t clock) {
    if (t->s.timing != PTOWSP_TIMING_INTERLEAVED) {
        return 0;
    }
    uint64_t count = t->s.stream_count, stream = t->x->tasks[task].stream_key % count;
    uint64_t turn = stream * t->s.timing_cycles, period = count * t->s.timing_cycles;
    bool is_good = false;
    turn += turn < clock ? (clock - turn) / period * period : 0;  // long times take no longer
    while (!is_good) {
        is_good = turn >= clock;
        for (int i = 0; i < task && is_good; i++) {
            if (t->x->tasks[i].stream_key % count == stream && t->out->times[i].turn == turn) {
                is_good = false;
            }
        }
        turn += is_good ? 0 : period;
    }
    return turn;
}

// The earliest time at which the rules of timing let a task be issued.
static inline uint64_t ref_timing_of(const ref_timing *t, int task) {
    const ref_time *times = t->out->times;
    int batch = (int)t->s.timing_count;
    if (t->s.timing == PTOWSP_TIMING_BATCHED && task % batch == 0 && task > 0) {
        return times[task - batch].issue + t->s.timing_cycles;
    } else if (t->s.timing == PTOWSP_TIMING_RATE_LIMITED && task > 0) {
        return times[task - 1].issue + t->s.timing_cycles;
    }
    return 0;
}

// For how many tasks there must be room when this one is issued.
static inline uint64_t ref_room_for(const ref_timing *t, int task) {
    bool is_first = t->s.timing == PTOWSP_TIMING_BATCHED && task % (int)t->s.timing_count == 0;
    return is_first ? t->s.timing_count : 1;
}

// -- rings ----------------------------------------------------------------------------------------

static inline bool ref_has_ended(const ref_timing *t, int task) {
    const ref_time *time = &t->out->times[task];
    return t->out->by_events ? time->is_done : t->has_begun && time->end <= t->clock;
}

// Tasks that have been issued and that have not retired begin with this one.
static inline int ref_first_live(const ref_timing *t) {
    int i = 0;
    while (i < t->x->task_count && t->out->times[i].is_issued && ref_has_ended(t, i)) {
        i++;
    }
    return i;
}

// How much of a ring they hold, or how many they are.
static inline uint64_t ref_ring_used(const ref_timing *t, int ring) {
    uint64_t used = 0;
    for (int i = ref_first_live(t); i < t->x->task_count; i++) {
        used += t->out->times[i].is_issued ? t->out->times[i].needs[ring] : 0;
    }
    return used;
}

// Whether a task waits, for a reason, for one that has not ended; `stmt` of it, or -1.
static inline bool ref_waits_now(const ref_timing *t, int task, int why, int stmt) {
    for (int i = 0; i < task; i++) {
        if ((t->out->waits[task][i] & why) && !ref_has_ended(t, i) &&
            (stmt < 0 || t->x->tasks[i].stmt == stmt)) {
            return true;
        }
    }
    return false;
}

// Whether the stream or the pool of a task has as many tasks in flight as it may.
static inline bool ref_is_deep(const ref_timing *t, int task) {
    uint32_t in_stream = 0, in_pool = 0;
    for (int i = 0; i < task; i++) {
        bool is_live = !ref_has_ended(t, i);
        in_stream += is_live && t->s.stream_count &&
                     t->x->tasks[i].stream_key % t->s.stream_count ==
                         t->x->tasks[task].stream_key % t->s.stream_count;
        in_pool += is_live && ref_pool_of(t, i) == ref_pool_of(t, task);
    }
    const uint32_t *depths = t->s.depths;
    uint32_t pool_depth = depths[PTOWSP_DEPTH_POOL];
    if (t->s.pools == PTOWSP_POOLS_NAMED && t->named->pools[ref_pool_of(t, task)].depth > 0) {
        pool_depth = t->named->pools[ref_pool_of(t, task)].depth;
    }
    return (depths[PTOWSP_DEPTH_STREAM] && in_stream >= depths[PTOWSP_DEPTH_STREAM]) ||
           (pool_depth && in_pool >= pool_depth);
}

// What a task needs of rings, found once: when it could be issued but for them.
static inline void ref_ask_rings(const ref_timing *t, int task) {
    ref_time *time = &t->out->times[task];
    const ref_stmt *stmt = &t->program->stmts[t->x->tasks[task].stmt];
    const uint32_t by_data = PTOWSP_DEPENDENCIES_EXACT | PTOWSP_DEPENDENCIES_OVERLAP;
    bool looks_at_data = t->s.dependencies ? (t->s.dependencies & by_data) != 0
                                           : t->s.issue == PTOWSP_ISSUE_DATAFLOW;
    if (time->has_asked) {
        return;
    }
    time->has_asked = true;
    uint64_t edges = ref_waits_now(t, task, REF_BY_STRUCTURE, -1);
    edges += ref_waits_now(t, task, REF_BY_STREAM, -1);
    for (int i = 0; i < stmt->after_count; i++) {
        edges += ref_waits_now(t, task, REF_BY_AFTER, stmt->after[i]);
    }
    for (int i = 0; i < task; i++) {
        edges += (t->out->waits[task][i] & REF_BY_EDGE) && !ref_has_ended(t, i);
    }
    time->needs[PTOWSP_RING_TASKS] = 1;
    time->needs[PTOWSP_RING_DEPENDENCIES] = edges;
    time->needs[PTOWSP_RING_MAP] = looks_at_data ? (uint64_t)t->x->tasks[task].access_count : 0;
}

// The first ring without room, or PTOWSP_RING_COUNT.
static inline int ref_lacking(const ref_timing *t, int task) {
    int ring = 0;
    while (ring < PTOWSP_RING_COUNT &&
           (t->s.ring_sizes[ring] == 0 ||
            ref_ring_used(t, ring) + t->out->times[task].needs[ring] <= t->s.ring_sizes[ring])) {
        ring++;
    }
    return ring;
}

// The task is about to be issued.
static inline void ref_mark_rings(ref_timing *t, int task) {
    for (int i = 0; i < PTOWSP_RING_COUNT; i++) {
        uint64_t used = ref_ring_used(t, i) + t->out->times[task].needs[i];
        t->out->ring_max[i] = t->s.ring_sizes[i] ? ref_max(t->out->ring_max[i], used) : 0;
    }
}

// -- time, in order and dataflow ------------------------------------------------------------------

static inline uint64_t ref_in_flight(const ref_timing *t) {
    uint64_t count = 0;
    if (t->s.release == PTOWSP_RELEASE_IN_ORDER) {
        return ref_ring_used(t, PTOWSP_RING_TASKS);
    }
    for (int i = 0; i < t->x->task_count; i++) {
        const ref_time *time = &t->out->times[i];
        count += time->is_issued && (!t->has_begun || time->end > t->clock);
    }
    return count;
}

static inline void ref_move(ref_timing *t, uint64_t to, ptowsp_stall why) {
    if (to > t->clock) {
        if (why == PTOWSP_STALL_ORDER) {
            t->out->stall_cycles[PTOWSP_STALL_DEPENDENCY] += to - t->clock;
        } else {
            t->out->stall_cycles[why] += to - t->clock;
        }
        t->clock = to;
        t->mover = why;
    }
}

// Waits for room in the window, or does what else its policy says.
static inline ptowsp_status ref_make_room(ref_timing *t, int task) {
    uint64_t needed = ref_room_for(t, task);
    if (t->s.window == 0) {
        return PTOWSP_OK;
    }
    while (ref_in_flight(t) + needed > t->s.window) {
        if (t->s.window_policy == PTOWSP_WINDOW_ABORT) {
            return PTOWSP_LIMIT_EXCEEDED;
        } else if (t->s.window_policy == PTOWSP_WINDOW_BENCHMARK) {
            t->out->overflow_count++;
            return PTOWSP_OK;
        } else if (!t->has_begun) {
            return PTOWSP_STUCK;
        }
        uint64_t earliest = UINT64_MAX;
        for (int i = 0; i < task; i++) {
            uint64_t end = t->out->times[i].end;
            earliest = end > t->clock && end < earliest ? end : earliest;
        }
        ref_move(t, earliest, PTOWSP_STALL_WINDOW);
    }
    return PTOWSP_OK;
}

static inline ptowsp_status ref_wait_rings(ref_timing *t, int task) {
    for (;;) {
        bool is_deep = ref_is_deep(t, task);
        if (!is_deep) {
            ref_ask_rings(t, task);
        }
        int ring = is_deep ? 0 : ref_lacking(t, task);
        if (ring == PTOWSP_RING_COUNT) {
            return PTOWSP_OK;
        }
        uint64_t earliest = UINT64_MAX;
        for (int i = 0; i < task && t->has_begun; i++) {
            uint64_t end = t->out->times[i].end;
            earliest = end > t->clock && end < earliest ? end : earliest;
        }
        if (earliest == UINT64_MAX) {
            return PTOWSP_STUCK;
        }
        ref_move(t, earliest,
                 is_deep ? PTOWSP_STALL_DEPTH : (ptowsp_stall)(PTOWSP_STALL_TASK_RING + ring));
    }
}

// Gives a task its lane, start and end.
static inline void ref_place(ref_timing *t, int task) {
    ref_time *time = &t->out->times[task];
    time->lane = ref_lane_of(t, task);
    time->ready = ref_ready_of(t, task);
    uint64_t free_at = ref_free_of(t, task, time->lane);
    uint64_t known = ref_max(ref_max(time->issue, time->ready), ref_max(time->turn, t->begin));
    time->start = ref_max(known, free_at);
    time->end = time->start + t->x->tasks[task].cycles;
    ref_take_lanes(t, task, time->lane, time->end);
    ptowsp_stall clock_stall = time->stall;
    time->stall = time->start == 0             ? PTOWSP_STALL_NONE
                  : time->ready == time->start ? PTOWSP_STALL_DEPENDENCY
                  : free_at == time->start     ? PTOWSP_STALL_LANE
                  : time->issue == time->start ? clock_stall
                  : time->turn == time->start  ? PTOWSP_STALL_TIMING
                                               : PTOWSP_STALL_START;
    uint64_t waited_until = ref_max(time->issue, time->ready);
    if (t->s.issue == PTOWSP_ISSUE_DATAFLOW) {
        t->out->stall_cycles[PTOWSP_STALL_DEPENDENCY] += waited_until - time->issue;
    }
    t->out->stall_cycles[PTOWSP_STALL_LANE] += time->start - waited_until;
}

static inline void ref_begin(ref_timing *t) {
    t->has_begun = true;
    t->begin = t->clock;
    for (int i = 0; i < t->x->task_count; i++) {
        if (t->out->times[i].is_issued) {
            ref_place(t, i);
        }
    }
}

static inline ptowsp_status ref_issue(ref_timing *t, int task) {
    ref_time *time = &t->out->times[task];
    if (t->s.issue == PTOWSP_ISSUE_IN_ORDER) {
        ref_move(t, ref_ready_of(t, task), PTOWSP_STALL_ORDER);
    }
    ref_move(t, ref_timing_of(t, task), PTOWSP_STALL_TIMING);
    ptowsp_status status = ref_make_room(t, task);
    status = status != PTOWSP_OK ? status : ref_wait_rings(t, task);
    if (status != PTOWSP_OK) {
        return status;
    }
    bool is_in_order = t->s.release == PTOWSP_RELEASE_IN_ORDER;
    uint64_t before = ref_ring_used(t, PTOWSP_RING_TASKS);
    ref_mark_rings(t, task);
    time->turn = ref_turn_of(t, task, t->clock);
    time->issue = t->clock;
    time->stall = t->mover;
    time->is_issued = true;
    if (t->has_begun) {
        ref_place(t, task);
    } else if (t->s.start == PTOWSP_START_THRESHOLD && (uint64_t)task + 1 >= t->s.start_threshold) {
        ref_begin(t);
    }
    if (t->s.window > 0) {
        t->out->in_flight_max =
            ref_max(t->out->in_flight_max, is_in_order ? before + 1 : ref_in_flight(t));
    }
    return PTOWSP_OK;
}

static inline ptowsp_status ref_time_by_task(ref_timing *t) {
    for (int i = 0; i < t->x->event_count; i++) {
        const ref_event *event = &t->x->events[i];
        ptowsp_status status = PTOWSP_OK;
        if (!event->is_load) {
            status = ref_issue(t, event->task);
        } else if (t->s.issue == PTOWSP_ISSUE_DATAFLOW) {
            if (!REF_LAST_LOAD_COMES_BEFORE_START && event->task == t->x->task_count &&
                !t->has_begun) {
                ref_begin(t);
            }
            for (int k = 0; k < event->task; k++) {
                if (ref_writes_cell(t, k, event)) {
                    status = t->has_begun ? status : PTOWSP_STUCK;
                    ref_move(t, t->out->times[k].end, PTOWSP_STALL_SLOT);
                }
            }
        }
        if (status != PTOWSP_OK) {
            return status;
        }
    }
    if (!t->has_begun) {
        ref_begin(t);
    }
    return PTOWSP_OK;
}

// -- time, from event to event --------------------------------------------------------------------

typedef struct ref_queue {
    int event;          // the next to be issued
    uint64_t issue_at;  // when, if only timing is in the way; else UINT64_MAX
    uint64_t issued, unfinished;
} ref_queue;

static inline bool ref_load_can_proceed(const ref_timing *t, const ref_event *load) {
    for (int k = 0; k < load->task; k++) {
        if (ref_writes_cell(t, k, load) && !t->out->times[k].is_done) {
            return false;
        }
    }
    return true;
}

// Issues what can be issued now. *out_changed is set when something was.
static inline ptowsp_status ref_issue_now(ref_timing *t, ref_queue *q, bool *out_changed) {
    q->issue_at = UINT64_MAX;
    while (q->event < t->x->event_count) {
        const ref_event *event = &t->x->events[q->event];
        if (event->is_load) {
            if (!ref_load_can_proceed(t, event)) {
                return PTOWSP_OK;
            }
        } else {
            uint64_t at = ref_timing_of(t, event->task);
            if (at > t->clock) {
                q->issue_at = at;
                return PTOWSP_OK;
            }
            uint64_t in_window = t->s.release == PTOWSP_RELEASE_IN_ORDER
                                     ? ref_ring_used(t, PTOWSP_RING_TASKS)
                                     : q->unfinished;
            ref_time *time = &t->out->times[event->task];
            if (!time->has_room && t->s.window > 0 &&
                in_window + ref_room_for(t, event->task) > t->s.window) {
                if (t->s.window_policy == PTOWSP_WINDOW_ABORT) {
                    return PTOWSP_LIMIT_EXCEEDED;
                } else if (t->s.window_policy != PTOWSP_WINDOW_BENCHMARK) {
                    return PTOWSP_OK;
                }
                t->out->overflow_count++;
            }
            time->has_room = true;
            if (!time->has_asked && ref_is_deep(t, event->task)) {
                return PTOWSP_OK;
            }
            ref_ask_rings(t, event->task);
            if (ref_lacking(t, event->task) < PTOWSP_RING_COUNT) {
                return PTOWSP_OK;
            }
            ref_mark_rings(t, event->task);
            time->is_issued = true;
            time->turn = ref_turn_of(t, event->task, t->clock);
            time->issue = t->clock;
            time->lane = ref_lane_of(t, event->task);
            q->issued++;
            q->unfinished++;
            if (t->s.window > 0) {
                bool is_in_order = t->s.release == PTOWSP_RELEASE_IN_ORDER;
                t->out->in_flight_max =
                    ref_max(t->out->in_flight_max, is_in_order ? in_window + 1 : q->unfinished);
            }
        }
        q->event++;
        *out_changed = true;
    }
    return PTOWSP_OK;
}

// Whether a task may start now, as far as lanes do not matter.
static inline bool ref_can_start(const ref_timing *t, int task) {
    const ref_time *time = &t->out->times[task];
    if (!time->is_issued || time->is_started || time->turn > t->clock) {
        return false;
    }
    for (int i = 0; i < task; i++) {
        if (ref_waits(t, task, i) && !t->out->times[i].is_done) {
            return false;
        }
    }
    return true;
}

static inline bool ref_is_before(const ref_timing *t, int a, int b) {
    if (t->s.ready != PTOWSP_READY_PRIORITY) {
        return a < b;
    }
    uint64_t x = t->x->tasks[a].priority_key, y = t->x->tasks[b].priority_key;
    return x == y ? a < b : ref_less(t->priority_is_signed, y, x);
}

// The task that a lane takes: one of its own, or of all of its pool; -1 if there is none.
static inline int ref_choose(const ref_timing *t, uint32_t lane, bool is_own) {
    int best = -1;
    for (int i = 0; i < t->x->task_count; i++) {
        uint32_t pool = ref_pool_of(t, i), first = ref_pool_first(t, pool);
        bool in_pool = first <= lane && lane < first + ref_pool_size(t, pool);
        if (in_pool && ref_can_start(t, i) && (!is_own || t->out->times[i].lane == lane) &&
            (best < 0 || ref_is_before(t, i, best))) {
            best = i;
        }
    }
    return best;
}

// Lets lanes that are free take tasks: first what is theirs, then what is others'.
static inline bool ref_take_now(ref_timing *t) {
    bool is_shared = t->s.dispatch == PTOWSP_DISPATCH_WORK_STEALING;
    bool has_changed = false;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t lane = 0; lane < t->out->lane_count; lane++) {
            bool may_steal = is_shared || t->s.ready == PTOWSP_READY_WORK_STEALING;
            bool is_busy = t->holders[lane] >= 0 && !t->out->times[t->holders[lane]].is_done;
            if (is_busy || (pass == 1 && !may_steal)) {
                continue;
            }
            int task = ref_choose(t, lane, pass == 0 && !is_shared);
            if (task >= 0) {
                ref_time *time = &t->out->times[task];
                time->is_started = true;
                time->lane = lane;
                time->ready = ref_ready_of(t, task);
                time->start = ref_max(t->clock, ref_free_of(t, task, lane));
                time->end = time->start + t->x->tasks[task].cycles;
                bool is_last = ref_free_of(t, task, lane) == time->start;
                time->stall = time->start == 0             ? PTOWSP_STALL_NONE
                              : time->ready == time->start ? PTOWSP_STALL_DEPENDENCY
                              : is_last                    ? PTOWSP_STALL_LANE
                                                           : PTOWSP_STALL_COUNT;
                ref_take_lanes(t, task, lane, time->end);
                has_changed = true;
            }
        }
    }
    return has_changed;
}

// The next time at which something can happen, or UINT64_MAX.
static inline uint64_t ref_next_time(const ref_timing *t, const ref_queue *q) {
    uint64_t next = q->issue_at;
    for (int i = 0; i < t->x->task_count; i++) {
        const ref_time *time = &t->out->times[i];
        uint64_t at = UINT64_MAX;
        if (time->is_started && !time->is_done) {
            at = time->end;
        } else if (time->is_issued && !time->is_started && time->turn > t->clock) {
            at = time->turn;
        }
        next = at < next ? at : next;
    }
    return next;
}

static inline ptowsp_status ref_time_by_events(ref_timing *t) {
    ref_queue q = {0, UINT64_MAX, 0, 0};
    ptowsp_status status = PTOWSP_OK;
    while (status == PTOWSP_OK && t->clock != UINT64_MAX) {
        bool has_changed = true;
        while (has_changed && status == PTOWSP_OK) {
            has_changed = false;
            for (int i = 0; i < t->x->task_count; i++) {
                ref_time *time = &t->out->times[i];
                if (time->is_started && !time->is_done && time->end <= t->clock) {
                    time->is_done = true;
                    q.unfinished--;
                    has_changed = true;
                }
            }
            status = ref_issue_now(t, &q, &has_changed);
            bool is_last = q.issued == (uint64_t)t->x->task_count &&
                           (!REF_LAST_LOAD_COMES_BEFORE_START || q.event == t->x->event_count);
            t->has_begun =
                t->has_begun || is_last ||
                (t->s.start == PTOWSP_START_THRESHOLD && q.issued >= t->s.start_threshold);
            if (status == PTOWSP_OK && t->has_begun) {
                has_changed = ref_take_now(t) || has_changed;
            }
        }
        t->clock = ref_next_time(t, &q);
    }
    if (status == PTOWSP_OK && (q.event < t->x->event_count || q.unfinished > 0)) {
        return PTOWSP_STUCK;
    }
    return status;
}

// -- time -----------------------------------------------------------------------------------------

static inline uint32_t ref_lane_count(const ptowsp_schedule *s) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->pool_count; i++) {
        count += s->named_pools[i].lane_count;
    }
    if (s->pools == PTOWSP_POOLS_NAMED) {
        return count;
    } else if (s->pools == PTOWSP_POOLS_BY_UNIT) {
        return s->vector_lane_count + s->cube_lane_count;
    } else if (s->lane_count > 0) {
        return s->lane_count;
    }
    return s->stream_count > 0 ? s->stream_count : 1;
}

// Times the tasks of an expansion that was made with this schedule.
static inline void ref_run(const ref_program *program, ref_expansion *x,
                           const ref_schedule *schedule, ref_result *out) {
    memset(out, 0, sizeof *out);
    out->lane_count = ref_lane_count(&schedule->schedule);
    bool has_stream_key = schedule->stream_key != 0;
    ref_find_waits(program, x, &schedule->schedule, has_stream_key, out);
    if (!REF_LOAD_SEES_COVERED_WRITES) {
        ref_find_hidden(x);
    }
    ref_timing t = {.program = program,
                    .x = x,
                    .s = schedule->schedule,
                    .named = schedule,
                    .priority_is_signed =
                        program->exprs[schedule->priority_key].type == PTOWSP_TYPE_I64,
                    .out = out};
    t.free_at = (uint64_t *)calloc(out->lane_count, sizeof *t.free_at);
    t.holders = (int *)calloc(out->lane_count, sizeof *t.holders);
    assert_non_null(t.free_at);
    assert_non_null(t.holders);
    for (uint32_t i = 0; i < out->lane_count; i++) {
        t.holders[i] = -1;
    }
    t.has_begun = t.s.start == PTOWSP_START_AT_ONCE;
    out->by_events =
        t.s.issue == PTOWSP_ISSUE_DATAFLOW &&
        (t.s.dispatch == PTOWSP_DISPATCH_WORK_STEALING || t.s.ready != PTOWSP_READY_FIFO);
    out->status = out->by_events ? ref_time_by_events(&t) : ref_time_by_task(&t);
    for (int i = 0; i < x->task_count; i++) {
        out->makespan = ref_max(out->makespan, out->times[i].end);
    }
    free(t.free_at);
    free(t.holders);
}

// -- random schedules -----------------------------------------------------------------------------

// Named pools, with most kernels in one of them by name.
static inline void ref_schedule_pools(ref_program *p, ref_schedule *out) {
    ptowsp_schedule *s = &out->schedule;
    s->pools = PTOWSP_POOLS_NAMED;
    s->named_pools = out->pools;
    s->pool_count = (uint32_t)ref_in(p, 1, REF_POOL_MAX);
    for (uint32_t i = 0; i < s->pool_count; i++) {
        snprintf(out->pool_names[i], sizeof out->pool_names[i], "p %u", i);
        out->pools[i].name = out->pool_names[i];
        out->pools[i].lane_count = (uint32_t)ref_in(p, 1, 3);
        out->pools[i].depth = (uint32_t)(ref_chance(p, 3) ? ref_in(p, 1, 4) : 0);
    }
    uint32_t counts[REF_POOL_MAX] = {0};
    for (int k = 0; k < p->kernel_count; k++) {
        uint32_t pool = (uint32_t)ref_in(p, 0, (int)s->pool_count - 1);
        if (pool > 0 || ref_chance(p, 2)) {
            snprintf(out->kernel_names[k], sizeof out->kernel_names[k], "k%d", k);
            out->pools[pool].kernels[counts[pool]++] = out->kernel_names[k];
        }
        out->kernel_pools[k] = pool;
    }
}

static inline void ref_schedule_lanes(ref_program *p, ref_schedule *out) {
    ptowsp_schedule *s = &out->schedule;
    s->dispatch = (ptowsp_dispatch)ref_in(p, 0, PTOWSP_DISPATCH_WORK_STEALING);
    if (s->dispatch == PTOWSP_DISPATCH_AFFINITY || s->dispatch == PTOWSP_DISPATCH_HASH ||
        s->dispatch == PTOWSP_DISPATCH_CUSTOM) {
        out->dispatch_key = ref_gen_key(p, 2);
    }
    if (ref_chance(p, 3)) {
        s->pools = PTOWSP_POOLS_BY_UNIT;
        s->vector_lane_count = (uint32_t)ref_in(p, 1, 4);
        s->cube_lane_count = (uint32_t)ref_in(p, 1, 3);
        for (int i = 0; i < p->kernel_count; i++) {
            if (p->kernels[i].unit == PTOWSP_UNIT_MIX &&
                s->vector_lane_count < 2 * s->cube_lane_count) {
                s->vector_lane_count = 2 * s->cube_lane_count;
            }
        }
    } else if (ref_chance(p, 3)) {
        ref_schedule_pools(p, out);
    } else {
        bool may_be_none = s->dispatch == PTOWSP_DISPATCH_DEFAULT;
        s->lane_count = (uint32_t)(may_be_none && ref_chance(p, 2) ? 0 : ref_in(p, 1, 5));
    }
    if (ref_chance(p, 3)) {
        s->stream_count = (uint32_t)ref_in(p, 1, 4);
        out->stream_key = ref_gen_key(p, 2);
    } else if (s->pools == PTOWSP_POOLS_ONE && s->lane_count == 0 && ref_chance(p, 2)) {
        s->stream_count = (uint32_t)ref_in(p, 1, 4);
    }
}

static inline void ref_schedule_waits(ref_program *p, ref_schedule *out) {
    ptowsp_schedule *s = &out->schedule;
    if (!ref_chance(p, 4)) {
        s->dependencies = (uint32_t)ref_in(p, 1, 15);
    }
    bool by_data =
        (s->dependencies & (PTOWSP_DEPENDENCIES_EXACT | PTOWSP_DEPENDENCIES_OVERLAP)) != 0 ||
        (s->dependencies == 0 && s->issue == PTOWSP_ISSUE_DATAFLOW);
    if (by_data && ref_chance(p, 2)) {
        s->hazards = (uint32_t)ref_in(p, 1, 7);
    }
}

static inline void ref_schedule_issue(ref_program *p, ref_schedule *out, int task_count) {
    ptowsp_schedule *s = &out->schedule;
    if (!ref_chance(p, 3)) {
        s->window = (uint32_t)(ref_chance(p, 4) ? ref_in(p, 1, task_count + 2) : ref_in(p, 1, 8));
        int policy = ref_in(p, 0, 9);
        s->window_policy = policy < 4   ? PTOWSP_WINDOW_DEFAULT
                           : policy < 7 ? PTOWSP_WINDOW_STALL
                           : policy < 9 ? PTOWSP_WINDOW_BENCHMARK
                                        : PTOWSP_WINDOW_ABORT;
    }
    if (ref_chance(p, 2)) {
        s->timing = (ptowsp_timing)ref_in(p, PTOWSP_TIMING_BATCHED, PTOWSP_TIMING_RATE_LIMITED);
        s->timing_cycles = (uint64_t)ref_in(p, 1, ref_chance(p, 2) ? 4 : 60);
        if (s->timing == PTOWSP_TIMING_BATCHED) {
            int count_max = s->window > 0 && s->window < 6 ? (int)s->window : 6;
            s->timing_count = (uint32_t)ref_in(p, 1, count_max);
            s->timing_cycles = ref_chance(p, 3) ? 0 : s->timing_cycles;
        }
    }
    if (s->issue == PTOWSP_ISSUE_DATAFLOW && out->stream_key != 0 && ref_chance(p, 2)) {
        s->timing = PTOWSP_TIMING_INTERLEAVED;
        s->timing_count = 0;
        s->timing_cycles = (uint64_t)ref_in(p, 1, 30);
    }
    if (s->issue == PTOWSP_ISSUE_DATAFLOW && ref_chance(p, 4)) {
        s->start = PTOWSP_START_ALL_ISSUED;
        if (!ref_chance(p, 4)) {
            s->start = PTOWSP_START_THRESHOLD;
            s->start_threshold = (uint64_t)ref_in(p, 1, ref_chance(p, 2) ? task_count + 3 : 6);
        }
    }
}

// Depths, and rings of a task's size up to all. The edges of tasks that share data are only defined to the last
// one where all hazards count, and where tasks of 0 cycles end at once.
static inline void ref_schedule_rings(ref_program *p, ref_schedule *out, int task_count) {
    ptowsp_schedule *s = &out->schedule;
    if (s->window > 0 && ref_chance(p, 2)) {
        s->release = PTOWSP_RELEASE_IN_ORDER;
    }
    if (out->stream_key != 0 && ref_chance(p, 3)) {
        s->depths[PTOWSP_DEPTH_STREAM] = (uint32_t)ref_in(p, 1, 4);
    }
    if (ref_chance(p, 3)) {
        s->depths[PTOWSP_DEPTH_POOL] = (uint32_t)ref_in(p, 1, 8);
    }
    bool is_counted = s->start == PTOWSP_START_AT_ONCE && (s->hazards == 0 || s->hazards == 7);
    bool has_rings = ref_chance(p, 2);
    for (int i = 0; i < PTOWSP_RING_COUNT; i++) {
        if (has_rings && ref_chance(p, 2) && i != PTOWSP_RING_BYTES &&
            (i != PTOWSP_RING_DEPENDENCIES || is_counted)) {
            s->ring_sizes[i] = ref_chance(p, 4)   ? PTOWSP_RING_UNBOUNDED
                               : ref_chance(p, 2) ? (uint64_t)ref_in(p, 1, 8)
                                                  : (uint64_t)ref_in(p, 1, 2 * task_count + 1);
        }
    }
}

// A schedule that ptowsp accepts, for a program of about so many tasks.
static inline void ref_schedule_random(ref_program *p, int task_count, ref_schedule *out) {
    memset(out, 0, sizeof *out);
    ptowsp_schedule *s = &out->schedule;
    s->issue = ref_chance(p, 3) ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
    ref_schedule_lanes(p, out);
    ref_schedule_waits(p, out);
    ref_schedule_issue(p, out, task_count);
    if (s->issue == PTOWSP_ISSUE_DATAFLOW && ref_chance(p, 2)) {
        s->ready = (ptowsp_ready)ref_in(p, 0, PTOWSP_READY_WORK_STEALING);
        out->priority_key = s->ready == PTOWSP_READY_PRIORITY ? ref_gen_key(p, 2) : 0;
    }
    ref_schedule_rings(p, out, task_count);
}

#endif
