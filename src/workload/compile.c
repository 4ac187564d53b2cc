// Compiling: from the tree of a module to a flat program that can be walked without recursion.
//
//      parallel b in batch                0  loop b in batch            -> 6
//        when kv_len[b] <= 2048           1    branch kv_len[b] <= 2048 -> 4
//          task short                     2      task short
//        otherwise                        3      jump                   -> 5
//          task long                      4      task long
//                                         5  loop end                   -> 1
//                                         6  return
//
// Emitters and viewers read the same program as a tree, whose statements are made beside the ops:
// WORKLOAD, LOOP, WHEN, TASK, OTHERWISE, TASK, END, END, END here.
//
// Nested scopes of the same kind become one: a parallel loop in a parallel loop starts and ends
// with its surroundings, so only a change from parallel to sequential, or back, is an operation in
// time. A when adds no scope. The body of a workload is sequential; a call opens that scope if
// needed.
//
// Everything that an expression can refer to has a cell, so running means moving numbers between
// cells. A workload cannot call itself, so its variables have fixed cells too.
//
// Explicit edges: an edge belongs to the innermost scope around both its tasks, and forgets what
// its source has done whenever that scope, or an iteration of it, begins (the reset at its start).

#include "../engine/policy.h"
#include "build.h"
#include "compile.h"
#include "read.h"

PWSP_INTERNAL bool pwsp_compiler_add(pwsp_compiler *c, void *items, uint64_t *count,
                                     uint64_t *capacity, size_t item_size) {
    if (*count >= UINT32_MAX - 1 ||
        !pwsp_memory_grow(&c->program->memory, items, capacity, *count + 1, item_size)) {
        return pwsp_module_no_memory(c->module);
    }
    ++*count;
    return true;
}

// -- expressions ----------------------------------------------------------------------------------

PWSP_INTERNAL uint32_t pwsp_compiler_task_variable(const ptowsp_module *module, uint32_t task,
                                                   const char *name) {
    const uint32_t variable = pwsp_variable_find(module, task, name);
    return variable && PWSP_VARIABLE(module, variable)->type == PTOWSP_TYPE_I64 ? variable : 0;
}

// A leaf that only the key of a schedule can have: a part of its task.
static bool pwsp_compiler_task_leaf(pwsp_compiler *c, const pwsp_expr_node *node, pwsp_leaf *leaf) {
    const pwsp_task_info *task = PWSP_NODE(c->module, c->key_task)->task;
    const pwsp_kernel_info *kernel = PWSP_KERNEL(c->module, task->kernel);
    if (node->op == PWSP_EXPR_TASK_ARG) {
        uint32_t count = kernel->axis_count + 2 * kernel->tile_count + kernel->scalar_count;
        leaf->cell = node->a < count ? c->program->first_arg + node->a : 0;
        return true;
    }
    if (node->op == PWSP_EXPR_TASK_TAG) {
        for (uint32_t i = 0; i < task->tag_count; i++) {
            if (strcmp(task->tags[i].name, node->name) == 0) {
                leaf->id = task->tags[i].value;
            }
        }
        return true;
    }
    uint32_t variable = pwsp_compiler_task_variable(c->module, c->key_task, node->name);
    if (variable == 0) {
        pwsp_module_fail_at(c->module, c->key_task, PTOWSP_INVALID_PARAMS,
                            "a key of the schedule reads variable %s, which no loop around it has",
                            node->name);
    }
    leaf->cell = c->program->first_variable + variable;
    return variable != 0;
}

// The size of a transient tensor may read values that are constant during a run.
static bool pwsp_compiler_size_leaf(pwsp_compiler *c, const pwsp_expr_node *node) {
    bool is_good = node->op == PWSP_EXPR_SYMBOL || node->op == PWSP_EXPR_SIZE;
    if (!is_good) {
        PWSP_MODULE_REFUSE(c->module,
                           "transient tensor %s: its size reads a variable, a slot or a task; it "
                           "may read sizes, symbols and arrays, which are the same during a run",
                           PWSP_TENSOR(c->module, c->sized_tensor)->name);
    }
    return is_good;
}

PWSP_INTERNAL bool pwsp_compiler_leaf(void *user, const pwsp_expr_node *node, pwsp_leaf *leaf) {
    pwsp_compiler *c = (pwsp_compiler *)user;
    const ptowsp_program *p = c->program;
    if (c->sized_tensor && !pwsp_compiler_size_leaf(c, node)) {
        return false;
    }
    switch ((pwsp_expr_op)node->op) {
    case PWSP_EXPR_SYMBOL:
        p->symbol_is_used[node->a] = true;
        leaf->cell = p->first_symbol + node->a;
        return true;
    case PWSP_EXPR_SIZE:
        p->axis_is_used[node->a] = true;
        leaf->cell = p->first_size + node->a;
        return true;
    case PWSP_EXPR_SLOT_U64:
    case PWSP_EXPR_SLOT_I64:
    case PWSP_EXPR_SLOT_BOOL: leaf->cell = p->first_slot + node->a; return true;
    case PWSP_EXPR_VARIABLE:
    case PWSP_EXPR_ENTRY:
        leaf->cell = node->op == PWSP_EXPR_ENTRY ? p->first_entry : p->first_variable;
        leaf->cell += node->a;
        if (c->key_task &&
            !pwsp_node_is_inside(c->module, c->key_task, PWSP_VARIABLE(c->module, node->a)->node)) {
            return pwsp_module_fail_at(c->module, c->key_task, PTOWSP_INVALID_PARAMS,
                                       "a key of the schedule reads variable %s, whose loop is not "
                                       "around it",
                                       node->name);
        }
        return true;
    default: break;
    }
    PTOWSP_ASSERT(c->key_task);
    return pwsp_compiler_task_leaf(c, node, leaf);
}

PWSP_INTERNAL bool pwsp_compiler_code(pwsp_compiler *c, uint32_t expr, pwsp_code *out_code) {
    if (expr == 0) {
        memset(out_code, 0, sizeof *out_code);  // cell 0 is 0
        return true;
    }
    if (!pwsp_coder_compile(&c->coder, expr, out_code)) {
        if (c->coder.is_out_of_memory) {
            pwsp_module_no_memory(c->module);
        } else if (c->coder.is_too_large) {
            pwsp_module_fail_at(c->module, c->key_task, PTOWSP_LIMIT_EXCEEDED,
                                "a key with the tags that it reads has more than %d operations",
                                2 * PTOWSP_EXPR_SIZE_MAX);
        }
        return false;
    }
    for (uint32_t i = out_code->begin; i < out_code->end; i++) {
        if (c->coder.code[i].opcode == PWSP_OPCODE_READ) {
            c->program->array_is_used[c->coder.code[i].c] = true;
        }
    }
    return pwsp_read_expr(c, expr, &out_code->expr);
}

PWSP_INTERNAL bool pwsp_compiler_codes(pwsp_compiler *c, const uint32_t *exprs, uint32_t count,
                                       uint32_t *out_first) {
    *out_first = (uint32_t)c->program->codes.count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index;
        pwsp_code code;
        if (!pwsp_compiler_code(c, exprs[i], &code) || !PWSP_ADD_ITEM(c, codes, &index, code)) {
            return false;
        }
    }
    return true;
}

static bool pwsp_compiler_view(pwsp_compiler *c, const pwsp_view_info *info, pwsp_tile_view *view) {
    memset(view, 0, sizeof *view);
    const ptowsp_tensor_desc *tensor = PWSP_TENSOR(c->module, info->tensor);
    c->program->tensor_is_used[info->tensor] = true;
    view->tensor = info->tensor;
    view->lead = tensor->rank > 2 ? tensor->rank - 2 : 0;
    view->rows = info->rows;
    view->cols = info->cols;
    for (uint32_t i = 0; i < view->lead; i++) {
        if (!pwsp_compiler_code(c, info->index[i], &view->index[i])) {
            return false;
        }
    }
    view->has_limit = info->row_count || info->col_count;
    return pwsp_compiler_code(c, info->row, &view->row) &&
           pwsp_compiler_code(c, info->col, &view->col) &&
           pwsp_compiler_code(c, info->row_count, &view->row_count) &&
           pwsp_compiler_code(c, info->col_count, &view->col_count);
}

// -- operations -----------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_compiler_op(pwsp_compiler *c, pwsp_op_kind kind, uint32_t at,
                                    uint32_t target, uint32_t node) {
    const pwsp_op op = {kind, at, target, node};
    uint32_t index;
    return PWSP_ADD_ITEM(c, ops, &index, op);
}

PWSP_INTERNAL ptowsp_statement pwsp_statement(ptowsp_statement_kind kind, uint32_t node) {
    PWSP_ZERO(ptowsp_statement, made);
    made.kind = kind;
    made.node = node;
    return made;
}

// Ends a statement with its OTHERWISE, or with an END at its own node.
static bool pwsp_compiler_close_by(pwsp_compiler *c, uint32_t begin, ptowsp_statement_kind kind,
                                   uint32_t node, uint32_t *out_index) {
    ptowsp_statement made = pwsp_statement(kind, node);
    made.begin = begin;
    c->program->statements.items[begin].end = (uint32_t)c->program->statements.count;
    return PWSP_ADD_ITEM(c, statements, out_index, made);
}

PWSP_INTERNAL bool pwsp_compiler_end(pwsp_compiler *c, uint32_t begin) {
    uint32_t index;
    return pwsp_compiler_close_by(c, begin, PTOWSP_STATEMENT_END,
                                  c->program->statements.items[begin].node, &index);
}

PWSP_INTERNAL bool pwsp_compiler_reset(pwsp_compiler *c, pwsp_range range, uint32_t node) {
    ptowsp_statement reset = pwsp_statement(PTOWSP_STATEMENT_RESET, node);
    reset.first = range.first;
    reset.count = range.count;
    uint32_t index;
    return PWSP_ADD_OP(c, resets, &index, range, PWSP_OP_RESET, 0, node) &&
           PWSP_ADD_ITEM(c, statements, &index, reset);
}

PWSP_INTERNAL uint32_t pwsp_compiler_here(const pwsp_compiler *c) {
    return (uint32_t)c->program->ops.count;
}

PWSP_INTERNAL void pwsp_compiler_land(pwsp_compiler *c, uint32_t op) {
    c->program->ops.items[op].target = pwsp_compiler_here(c);
}

PWSP_INTERNAL bool pwsp_compiler_edges(pwsp_compiler *c, uint32_t node, pwsp_edge_end end,
                                       uint32_t *out_first, uint32_t *out_count) {
    *out_first = (uint32_t)c->program->edges.count;
    *out_count = 0;
    uint32_t at = c->edge_lists.items[3 * (uint64_t)node + (uint32_t)end];
    while (at) {
        uint32_t index;
        if (!PWSP_ADD_ITEM(c, edges, &index, at - 1)) {
            return false;
        }
        ++*out_count;
        at = c->edges.items[at - 1].next[end];
    }
    return true;
}

// The children of a scope, between the reset of its edges and the release of its tensors.
static bool pwsp_compiler_body(pwsp_compiler *c, uint32_t node, bool is_parallel) {
    pwsp_range range;
    bool has_edges = c->edges.count && !c->is_in_process;
    if (has_edges && !pwsp_compiler_edges(c, node, PWSP_EDGE_SCOPE, &range.first, &range.count)) {
        return false;
    }
    if ((has_edges && range.count && !pwsp_compiler_reset(c, range, node)) ||
        !pwsp_compiler_children(c, node, is_parallel)) {
        return false;
    }
    for (uint32_t i = 1; c->program->tensor_scopes && i < c->program->tensors.count; i++) {
        if (c->program->tensor_scopes[i] == node && !c->is_in_process &&
            !pwsp_compiler_op(c, PWSP_OP_RELEASE, i, 0, node)) {
            return false;
        }
    }
    return true;
}

static pwsp_scope pwsp_scope_between(const pwsp_compiler *c, bool outer_is_parallel,
                                     bool inner_is_parallel) {
    return c->is_in_process || inner_is_parallel == outer_is_parallel ? PWSP_SCOPE_SAME
           : inner_is_parallel                                        ? PWSP_SCOPE_PARALLEL
                                                                      : PWSP_SCOPE_SEQUENTIAL;
}

static bool pwsp_compiler_loop(pwsp_compiler *c, uint32_t id, bool is_parallel) {
    const pwsp_node *node = PWSP_NODE(c->module, id);
    const pwsp_axis_info *axis = PWSP_AXIS(c->module, node->axis);
    bool body_is_parallel = node->kind != PWSP_NODE_FOR_EACH;
    PWSP_ZERO(pwsp_loop, made);
    made.axis_kind = axis->kind;
    made.scope = pwsp_scope_between(c, is_parallel, body_is_parallel);
    made.cell = c->program->first_variable + node->variable;
    made.entry = c->program->first_entry + node->variable;
    made.size = c->program->first_size + axis->declared;
    made.array = axis->array;
    made.csr = axis->declared;
    made.is_row = axis->row != 0;
    made.is_parallel = body_is_parallel && !c->is_in_process;
    c->program->axis_is_used[axis->declared] = true;
    if (axis->kind == PWSP_AXIS_RAGGED || pwsp_axis_is_work(axis->kind)) {
        c->program->array_is_used[axis->array] = true;
    }
    if (pwsp_axis_is_work(axis->kind) && axis->row) {
        c->program->array_is_used[axis->array + 1] = true;
    }
    if (axis->kind == PWSP_AXIS_DENSE &&
        !pwsp_coder_const(&c->coder, (uint64_t)axis->size, &made.size)) {
        return pwsp_module_no_memory(c->module);
    }
    if (!pwsp_compiler_code(c, axis->row, &made.row)) {
        return false;
    }
    ptowsp_statement loop = pwsp_statement(PTOWSP_STATEMENT_LOOP, id);
    loop.variable = node->variable;
    loop.axis = axis->declared;
    loop.row = made.row.expr;
    loop.scope = (ptowsp_scope)made.scope;
    uint32_t index, begin, op = pwsp_compiler_here(c);
    if (!PWSP_ADD_OP(c, loops, &index, made, PWSP_OP_LOOP, 0, id) ||
        !PWSP_ADD_ITEM(c, statements, &begin, loop) ||
        !pwsp_compiler_body(c, id, body_is_parallel) ||
        !pwsp_compiler_op(c, PWSP_OP_LOOP_END, index, op + 1, id) || !pwsp_compiler_end(c, begin)) {
        return false;
    }
    pwsp_compiler_land(c, op);
    return true;
}

// A when, and the otherwise after it if there is one.
static bool pwsp_compiler_when(pwsp_compiler *c, uint32_t id, bool is_parallel) {
    const pwsp_node *node = PWSP_NODE(c->module, id);
    uint32_t otherwise = node->next;
    bool has_otherwise = otherwise && PWSP_NODE(c->module, otherwise)->kind == PWSP_NODE_OTHERWISE;
    pwsp_branch made = {{0, 0, 0, 0, 0}, 0};
    if (!pwsp_compiler_code(c, node->expr, &made.condition)) {
        return false;
    }
    ptowsp_statement when = pwsp_statement(PTOWSP_STATEMENT_WHEN, id);
    when.value = made.condition.expr;
    uint32_t index, begin, op = pwsp_compiler_here(c);
    if (!PWSP_ADD_OP(c, branches, &index, made, PWSP_OP_BRANCH, 0, id) ||
        !PWSP_ADD_ITEM(c, statements, &begin, when) || !pwsp_compiler_body(c, id, is_parallel)) {
        return false;
    }
    uint32_t jump = pwsp_compiler_here(c);
    if (has_otherwise &&
        (!pwsp_compiler_op(c, PWSP_OP_JUMP, 0, 0, otherwise) ||
         !pwsp_compiler_close_by(c, begin, PTOWSP_STATEMENT_OTHERWISE, otherwise, &begin))) {
        return false;
    }
    pwsp_compiler_land(c, op);
    if (has_otherwise) {
        if (!pwsp_compiler_body(c, otherwise, is_parallel)) {
            return false;
        }
        pwsp_compiler_land(c, jump);
    }
    c->program->branches.items[index].end = pwsp_compiler_here(c);
    return pwsp_compiler_end(c, begin);
}

static bool pwsp_compiler_group(pwsp_compiler *c, uint32_t id, bool is_parallel) {
    bool body_is_parallel = PWSP_NODE(c->module, id)->kind == PWSP_NODE_COMBINE;
    pwsp_scope scope = pwsp_scope_between(c, is_parallel, body_is_parallel);
    ptowsp_statement made = pwsp_statement(PTOWSP_STATEMENT_SCOPE, id);
    made.scope = (ptowsp_scope)scope;
    uint32_t begin;
    if (scope == PWSP_SCOPE_SAME) {
        return pwsp_compiler_body(c, id, body_is_parallel);
    }
    return pwsp_compiler_op(c, PWSP_OP_SCOPE, (uint32_t)scope, 0, id) &&
           PWSP_ADD_ITEM(c, statements, &begin, made) &&
           pwsp_compiler_body(c, id, body_is_parallel) &&
           pwsp_compiler_op(c, PWSP_OP_SCOPE_END, 0, 0, id) && pwsp_compiler_end(c, begin);
}

static bool pwsp_compiler_call(pwsp_compiler *c, uint32_t id, bool is_parallel) {
    const pwsp_call_info *call = PWSP_NODE(c->module, id)->call;
    const pwsp_name *found = pwsp_names_find(&c->module->workload_names, call->name);
    const pwsp_node *callee = PWSP_NODE(c->module, found->index);
    uint32_t index;
    pwsp_call_op made = {0, call->arg_count, c->program->first_variable + callee->first_param,
                         pwsp_scope_between(c, is_parallel, false)};
    if (!pwsp_compiler_codes(c, call->args, call->arg_count, &made.first_code)) {
        return false;
    }
    // The targets are the workload for now: its beginning may not be known yet.
    ptowsp_statement statement = pwsp_statement(PTOWSP_STATEMENT_CALL, id);
    statement.target = found->index;
    statement.scope = (ptowsp_scope)made.scope;
    statement.first = made.first_code;
    statement.count = made.arg_count;
    return PWSP_ADD_OP(c, calls, &index, made, PWSP_OP_CALL, found->index, id) &&
           PWSP_ADD_ITEM(c, statements, &index, statement);
}

static bool pwsp_compiler_slot(pwsp_compiler *c, uint32_t id) {
    const pwsp_node *node = PWSP_NODE(c->module, id);
    bool is_load = node->kind == PWSP_NODE_SLOT_LOAD;
    PWSP_ZERO(pwsp_slot_op, made);
    made.slot = node->slot;
    made.cell = c->program->first_slot + node->slot;
    if (is_load) {
        c->program->tensor_is_loaded[node->view->tensor] = true;
        if (!pwsp_compiler_view(c, node->view, &made.view) ||
            !pwsp_compiler_code(c, node->expr, &made.row) ||
            !pwsp_compiler_code(c, node->col, &made.col)) {
            return false;
        }
        made.view.access = PWSP_TILE_READ;
    } else if (!pwsp_compiler_code(c, node->expr, &made.value)) {
        return false;
    }
    ptowsp_statement slot =
        pwsp_statement(is_load ? PTOWSP_STATEMENT_SLOT_LOAD : PTOWSP_STATEMENT_SLOT_SET, id);
    slot.slot = node->slot;
    slot.value = made.value.expr;
    slot.load = is_load ? (uint32_t)c->program->slot_ops.count : 0;
    uint32_t index;
    return PWSP_ADD_OP(c, slot_ops, &index, made, is_load ? PWSP_OP_SLOT_LOAD : PWSP_OP_SLOT_SET, 0,
                       id) &&
           PWSP_ADD_ITEM(c, statements, &index, slot);
}

// The expression that chooses the lane of a task: the schedule's key, or the plan's lane.
static uint32_t pwsp_compiler_dispatch_key(const pwsp_compiler *c, uint32_t id) {
    uint32_t lane = 0;
    while (c->schedule->dispatch == PTOWSP_DISPATCH_PLAN && id && !lane) {
        lane = PWSP_NODE(c->module, id)->lane;
        id = PWSP_NODE(c->module, id)->parent;
    }
    return lane ? lane : c->schedule->dispatch_key.id;
}

// Is there anything to evaluate except a zero?
static bool pwsp_code_is_any(const pwsp_code *code) {
    return code->begin != code->end || code->cell != 0;
}

// Compiles a task's keys; false with an error.
static bool pwsp_compiler_keys(pwsp_compiler *c, uint32_t id, pwsp_task_op *task) {
    c->key_task = id;
    bool is_good = pwsp_compiler_code(c, pwsp_compiler_dispatch_key(c, id), &task->dispatch) &&
                   pwsp_compiler_code(c, c->schedule->priority_key.id, &task->priority) &&
                   pwsp_compiler_code(c, c->schedule->stream_key.id, &task->stream);
    c->key_task = 0;
    task->has_keys =
        is_good && (pwsp_code_is_any(&task->dispatch) || pwsp_code_is_any(&task->priority) ||
                    pwsp_code_is_any(&task->stream));
    return is_good;
}

// Have the schedule's pools a lane for tasks of a unit, and of MIX two vector lanes for each cube
// lane? False with an error.
static bool pwsp_compiler_check_lanes(pwsp_compiler *c, uint32_t id, ptowsp_unit unit) {
    const ptowsp_schedule *schedule = c->schedule;
    uint32_t vector = schedule->vector_lane_count, cube = schedule->cube_lane_count;
    if (schedule->pools != PTOWSP_POOLS_BY_UNIT || unit == PTOWSP_UNIT_LINK) {
        return true;
    }
    if ((pwsp_unit_lane(unit) == PTOWSP_UNIT_CUBE ? cube : vector) == 0) {
        return pwsp_module_fail_at(c->module, id, PTOWSP_INVALID_PARAMS,
                                   "its kernel needs a %s lane, and the schedule has none",
                                   ptowsp_unit_name(pwsp_unit_lane(unit)));
    }
    if (unit == PTOWSP_UNIT_MIX && pwsp_block_count(vector, cube) == 0) {
        return pwsp_module_fail_at(
            c->module, id, PTOWSP_INVALID_PARAMS,
            "its kernel takes two vector lanes with each of %u cube lanes, and the "
            "schedule has %u",
            cube, vector);
    }
    return true;
}

PWSP_INTERNAL bool pwsp_compiler_task(pwsp_compiler *c, uint32_t id) {
    const bool is_listed = PWSP_NODE(c->module, id)->kind == PWSP_NODE_LISTED;
    const pwsp_task_info *info = PWSP_NODE(c->module, id)->task;
    const pwsp_kernel_info *kernel = PWSP_KERNEL(c->module, info->kernel);
    PWSP_ZERO(pwsp_task_op, made);
    made.kernel = info->kernel;
    c->program->kernel_is_used[info->kernel] = true;
    made.axis_count = kernel->axis_count;
    made.scalar_count = kernel->scalar_count;
    made.view_count = kernel->tile_count;
    if (kernel->unit == PTOWSP_UNIT_LINK) {
        if (c->is_in_process) {
            return pwsp_module_fail_at(c->module, id, PTOWSP_UNSUPPORTED,
                                       "a collective in a process of a pipeline");
        }
        c->program->has_link = true;
        c->program->array_is_used[kernel->collective.counts] = true;  // 0 means none
    }
    if (!c->is_in_process && !pwsp_compiler_check_lanes(c, id, kernel->unit)) {
        return false;
    }
    uint32_t index, first_scalar;
    if (!pwsp_compiler_codes(c, info->axes, made.axis_count, &made.first_code) ||
        !pwsp_compiler_codes(c, info->scalars, made.scalar_count, &first_scalar) ||
        (!c->is_in_process && !pwsp_compiler_keys(c, id, &made))) {
        return false;
    }
    made.first_view = (uint32_t)c->program->views.count;
    for (uint32_t i = 0; i < kernel->tile_count && !is_listed; i++) {
        pwsp_tile_view view;
        if (!pwsp_compiler_view(c, &info->views[i], &view)) {
            return false;
        }
        view.access = (kernel->tiles[i].direction != PTOWSP_OUT ? PWSP_TILE_READ : 0) |
                      (kernel->tiles[i].direction != PTOWSP_IN ? PWSP_TILE_WRITTEN : 0);
        if (view.access & PWSP_TILE_WRITTEN) {
            c->program->tensor_is_written[view.tensor] = true;
        }
        if (!PWSP_ADD_ITEM(c, views, &index, view)) {
            return false;
        }
    }
    if (c->edges.count && !c->is_in_process &&
        (!pwsp_compiler_edges(c, id, PWSP_EDGE_TARGET, &made.first_in, &made.in_count) ||
         !pwsp_compiler_edges(c, id, PWSP_EDGE_SOURCE, &made.first_out, &made.out_count))) {
        return false;
    }
    ptowsp_statement task = pwsp_statement(PTOWSP_STATEMENT_TASK, id);
    task.task = (uint32_t)c->program->tasks.count;
    return PWSP_ADD_OP(c, tasks, &index, made, is_listed ? PWSP_OP_LISTED : PWSP_OP_TASK, 0, id) &&
           (is_listed || PWSP_ADD_ITEM(c, statements, &index, task));
}

static bool pwsp_compiler_child(pwsp_compiler *c, uint32_t id, bool is_parallel) {
    switch (PWSP_NODE(c->module, id)->kind) {
    case PWSP_NODE_PARALLEL:
    case PWSP_NODE_SELECT:
    case PWSP_NODE_FOR_EACH: return pwsp_compiler_loop(c, id, is_parallel);
    case PWSP_NODE_WHEN: return pwsp_compiler_when(c, id, is_parallel);
    case PWSP_NODE_COMBINE:
    case PWSP_NODE_SEQUENCE: return pwsp_compiler_group(c, id, is_parallel);
    case PWSP_NODE_TASK: return pwsp_compiler_task(c, id);
    case PWSP_NODE_LIST: return pwsp_compiler_list(c, id);
    case PWSP_NODE_CALL: return pwsp_compiler_call(c, id, is_parallel);
    case PWSP_NODE_SLOT_SET:
    case PWSP_NODE_SLOT_LOAD: return pwsp_compiler_slot(c, id);
    case PWSP_NODE_PIPELINE: return pwsp_compiler_pipeline(c, id);
    case PWSP_NODE_CONSUME:
    case PWSP_NODE_RECEIVE:
    case PWSP_NODE_WAIT: return pwsp_compiler_receive(c, id);
    case PWSP_NODE_SEND:
    case PWSP_NODE_RECORD: return pwsp_compiler_send(c, id);
    case PWSP_NODE_CLOSE: return pwsp_compiler_close(c, id);
    default: return true;  // compiled with its pipeline, or its when
    }
}

PWSP_INTERNAL bool pwsp_compiler_children(pwsp_compiler *c, uint32_t node, bool is_parallel) {
    for (uint32_t id = PWSP_NODE(c->module, node)->first; id; id = PWSP_NODE(c->module, id)->next) {
        if (!pwsp_compiler_child(c, id, is_parallel)) {
            return false;
        }
    }
    return true;
}

// -- edges ----------------------------------------------------------------------------------------

// The innermost node around two.
static uint32_t pwsp_node_around(const ptowsp_module *module, uint32_t a, uint32_t b) {
    uint32_t at = PWSP_NODE(module, a)->parent;
    while (!pwsp_node_is_inside(module, b, at)) {
        at = PWSP_NODE(module, at)->parent;
    }
    return at;
}

// Lists the edges of all tasks and pipelines of the module, but those in processes, which run one
// after another anyway. Edges of workloads that are not reached do no harm.
static bool pwsp_compiler_find_edges(pwsp_compiler *c) {
    for (uint32_t id = 1; id < c->module->nodes.count; id++) {
        const pwsp_task_info *task = PWSP_NODE(c->module, id)->task;
        uint32_t count = task ? task->after_count : 0;
        if (count && pwsp_node_process(c->module, id)) {
            continue;
        }
        for (uint32_t i = 0; i < count; i++) {
            uint32_t source = task->after[i];
            pwsp_edge made = {{source, id, pwsp_node_around(c->module, source, id)}, {0, 0, 0}};
            pwsp_edge *edge = PWSP_TABLE_ADD(c, c->edges);
            if (!edge) {
                return false;
            }
            *edge = made;
        }
    }
    uint64_t list_count = 3 * c->module->nodes.count;
    if (!PWSP_GROW(&c->program->memory, c->edge_lists.items, c->edge_lists.capacity, list_count)) {
        return pwsp_module_no_memory(c->module);
    }
    for (uint64_t i = c->edges.count; i > 0; i--) {  // from the last, so that lists are in order
        pwsp_edge *edge = &c->edges.items[i - 1];
        for (uint32_t end = 0; end < 3; end++) {
            uint32_t *first = &c->edge_lists.items[3 * (uint64_t)edge->nodes[end] + end];
            edge->next[end] = *first;
            *first = (uint32_t)i;
        }
    }
    return true;
}

// -- workloads ------------------------------------------------------------------------------------

// Compiles all workloads that the entry reaches; calls are linked when all are there.
PWSP_INTERNAL bool pwsp_compiler_workloads(pwsp_compiler *c) {
    ptowsp_program *p = c->program;
    if ((p->schedule.dependencies & PTOWSP_DEPENDENCIES_EXPLICIT) && !pwsp_compiler_find_edges(c)) {
        return false;
    }
    p->edge_count = (uint32_t)c->edges.count;
    for (uint32_t i = 1; i < c->checker.reached.count; i++) {
        const pwsp_reached *reached = &c->checker.reached.items[i];
        const pwsp_place *place = PWSP_PLACE_AT(p, reached->node);
        pwsp_first *first = PWSP_TABLE_ADD(c, c->firsts);
        uint32_t begin;
        if (!first) {
            return false;
        }
        first->op = pwsp_compiler_here(c);
        first->statement = (uint32_t)p->statements.count;
        ptowsp_statement workload = pwsp_statement(PTOWSP_STATEMENT_WORKLOAD, reached->node);
        workload.name = place->step;
        workload.first = place->first_param;
        workload.count = place->param_count;
        c->is_in_process = !reached->is_outside;
        if (!PWSP_ADD_ITEM(c, statements, &begin, workload) ||
            !pwsp_compiler_body(c, reached->node, false) ||
            !pwsp_compiler_op(c, PWSP_OP_RETURN, 0, 0, reached->node) ||
            !pwsp_compiler_end(c, begin)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < p->ops.count; i++) {
        pwsp_op *op = &p->ops.items[i];
        if (op->kind == PWSP_OP_CALL) {
            op->target = c->firsts.items[pwsp_checker_find(&c->checker, op->target) - 1].op;
        }
    }
    for (uint32_t i = 0; i < p->statements.count; i++) {
        ptowsp_statement *at = &p->statements.items[i];
        if (at->kind == PTOWSP_STATEMENT_CALL) {
            at->target = c->firsts.items[pwsp_checker_find(&c->checker, at->target) - 1].statement;
        } else if (at->kind == PTOWSP_STATEMENT_PIPELINE) {
            at->task += (uint32_t)p->tasks.count;  // as read_program.c has them
        }
    }
    return true;
}
