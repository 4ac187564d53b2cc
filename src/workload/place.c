// Relayouts that the library places: see "rules of kernels" in section 27 of the header.
//
//      task norm x = s            s partial        task all_reduce.tp.f32 in = s out = s.1
//                                           ==>    task norm x = s.1
//
// When a workload is closed, its nodes are walked in order. Along each axis the results of a task
// determine the layouts that its operands need (data/layout_rule.c). An operand with a different
// layout is converted by the steps of ptowsp_mesh_layout_relayout, each a task of a collective
// kernel from one transient tensor to the next, and the task reads the last of these. Everything
// downstream sees ordinary tasks, kernels and tensors; the text of the module has them, too, and
// reading it inserts nothing more.
//
// A value is brought over once. The steps stand before the task, or before the outermost loop
// around it in which the value is the same: no variable of the loop is in the view, and nothing in
// the loop writes the tensor. A later task with the same view has the same result, if it is inside
// the scope in which the steps stand, and nothing has written the tensor since. A call may write
// anything. Views with slots or elements of arrays in them stay where they are.

#include "place.h"

#include "../base/text.h"

#include <inttypes.h>

// An operand that is to be brought over.
typedef struct pwsp_operand {
    uint32_t node, tile;
    ptowsp_relayout relayout;
    bool is_changed[PTOWSP_TENSOR_RANK_MAX];  // dimensions whose cut changes
    pwsp_view_info view;                      // whole along these
    bool is_pinned;
} pwsp_operand;

// -- errors ---------------------------------------------------------------------------------------

// "parameter x, tensor s, dimension 1, axis 'tp': why: s[..] {..}, and s[..] {..} is needed".
static bool pwsp_placer_fail(const pwsp_placer *p, uint32_t node, const pwsp_rule_tile *tile,
                             uint32_t which, const pwsp_rule_fault *fault, ptowsp_status status) {
    const pwsp_task_info *task = PWSP_NODE(p->module, node)->task;
    char have[PWSP_LAYOUT_TEXT_MAX], need[PWSP_LAYOUT_TEXT_MAX], dim[32];
    ptowsp_output_buffer buffer = {dim, sizeof dim, 0};
    dim[0] = '\0';
    if (fault->dim != PWSP_RULE_NO_DIM) {
        pwsp_text_format(ptowsp_output_to_buffer(&buffer), ", dimension %" PRIu32, fault->dim);
    }
    return pwsp_module_fail_at(
        p->module, node, status, "parameter %s, tensor %s%s, axis '%s': %s: %s, and %s is needed",
        PWSP_KERNEL(p->module, task->kernel)->tiles[which].name, tile->have.name, dim,
        p->mesh->names[fault->axis], fault->why, pwsp_layout_text(p->mesh, &tile->have, have),
        pwsp_layout_text(p->mesh, &tile->need, need));
}

// The same of an operand whose relayout is known, along the axis of its first step.
static bool pwsp_placer_refuse(const pwsp_placer *p, const pwsp_operand *o,
                               const pwsp_rule_tile *tile, uint32_t dim, const char *why,
                               ptowsp_status status) {
    const pwsp_rule_fault fault = {o->tile, o->relayout.steps[0].axis, dim, why};
    return pwsp_placer_fail(p, o->node, tile, o->tile, &fault, status);
}

// -- expressions and the tree ---------------------------------------------------------------------

static bool pwsp_expr_has_operands(const pwsp_expr_node *node) {
    return node->op > PWSP_EXPR_TASK_TAG;
}

// Does an expression read the variable; or, for variable 0, slots or elements of arrays?
static bool pwsp_expr_reads(const ptowsp_module *m, uint32_t expr, uint32_t variable) {
    if (expr == 0) {
        return false;
    }
    const pwsp_expr_node *node = &m->exprs.nodes[expr];
    if (pwsp_expr_has_operands(node)) {
        return pwsp_expr_reads(m, node->a, variable) || pwsp_expr_reads(m, node->b, variable) ||
               pwsp_expr_reads(m, node->c, variable);
    }
    if (node->op == PWSP_EXPR_VARIABLE || node->op == PWSP_EXPR_ENTRY) {
        return node->a == variable;
    }
    return variable == 0 && node->op >= PWSP_EXPR_ARRAY;
}

static bool pwsp_expr_is_same(const ptowsp_module *m, uint32_t a, uint32_t b) {
    if (a == b || a == 0 || b == 0) {
        return a == b;
    }
    const pwsp_expr_node *x = &m->exprs.nodes[a], *y = &m->exprs.nodes[b];
    if (x->op != y->op || x->type != y->type || x->value != y->value) {
        return false;
    }
    return pwsp_expr_has_operands(x)
               ? pwsp_expr_is_same(m, x->a, y->a) && pwsp_expr_is_same(m, x->b, y->b) &&
                     pwsp_expr_is_same(m, x->c, y->c)
               : x->a == y->a && x->b == y->b;
}

enum { PWSP_VIEW_EXPRS = PWSP_TENSOR_LEAD_MAX + 4 };

static void pwsp_view_exprs(const pwsp_view_info *view, uint32_t *out_exprs) {
    memcpy(out_exprs, view->index, sizeof view->index);
    out_exprs += PWSP_TENSOR_LEAD_MAX;
    out_exprs[0] = view->row;
    out_exprs[1] = view->col;
    out_exprs[2] = view->row_count;
    out_exprs[3] = view->col_count;
}

static bool pwsp_view_reads(const ptowsp_module *m, const pwsp_view_info *view, uint32_t variable) {
    uint32_t exprs[PWSP_VIEW_EXPRS];
    pwsp_view_exprs(view, exprs);
    for (uint32_t i = 0; i < PWSP_VIEW_EXPRS; i++) {
        if (pwsp_expr_reads(m, exprs[i], variable)) {
            return true;
        }
    }
    return false;
}

static bool pwsp_view_is_same(const ptowsp_module *m, const pwsp_view_info *a,
                              const pwsp_view_info *b) {
    uint32_t x[PWSP_VIEW_EXPRS], y[PWSP_VIEW_EXPRS];
    bool is_same = a->tensor == b->tensor && a->rows == b->rows && a->cols == b->cols;
    pwsp_view_exprs(a, x);
    pwsp_view_exprs(b, y);
    for (uint32_t i = 0; is_same && i < PWSP_VIEW_EXPRS; i++) {
        is_same = pwsp_expr_is_same(m, x[i], y[i]);
    }
    return is_same;
}

static bool pwsp_node_is_loop(const pwsp_node *node) {
    return node->kind == PWSP_NODE_PARALLEL || node->kind == PWSP_NODE_FOR_EACH ||
           node->kind == PWSP_NODE_SELECT;
}

// -- writers of tensors ---------------------------------------------------------------------------

// Counts a writer of a tensor, or puts it into the list.
static void pwsp_placer_writer(pwsp_placer *p, uint32_t tensor, uint32_t id) {
    uint32_t *end = &p->tensors[tensor].writer_end;
    if (p->writers) {
        p->writers[*end] = id;
    }
    (*end)++;
}

static void pwsp_placer_walk_writers(pwsp_placer *p, uint32_t workload) {
    const ptowsp_module *m = p->module;
    for (uint32_t id = workload + 1; id < m->nodes.count; id++) {
        const pwsp_node *node = PWSP_NODE(m, id);
        if (node->kind == PWSP_NODE_CALL) {
            pwsp_placer_writer(p, 0, id);
        } else if (node->kind == PWSP_NODE_TASK) {
            const pwsp_kernel_info *kernel = PWSP_KERNEL(m, node->task->kernel);
            for (uint32_t i = 0; i < kernel->tile_count; i++) {
                if (kernel->tiles[i].direction != PTOWSP_IN) {
                    pwsp_placer_writer(p, node->task->views[i].tensor, id);
                }
            }
        }
    }
}

// Lists the nodes of a workload that write something, by tensor. False: out of memory.
static bool pwsp_placer_list_writers(pwsp_placer *p, uint32_t workload) {
    uint32_t count = 0;
    pwsp_placer_walk_writers(p, workload);
    for (uint32_t i = 0; i < p->tensor_count; i++) {
        const uint32_t begin = count;
        count += p->tensors[i].writer_end;
        p->tensors[i].writer_end = begin;
    }
    PWSP_ALLOC(&p->module->memory, p->writers, (size_t)count + 1);
    p->writer_count = count;
    if (p->writers) {
        pwsp_placer_walk_writers(p, workload);
    }
    return p->writers != NULL;
}

// Is there a writer of a tensor from `begin` to `end`?
static bool pwsp_placer_has_writer(const pwsp_placer *p, uint32_t tensor, uint32_t begin,
                                   uint32_t end) {
    uint64_t at = tensor ? p->tensors[tensor - 1].writer_end : 0;
    const uint64_t last = p->tensors[tensor].writer_end;
    PWSP_BISECT(at, last, p->writers[middle] < begin)
    return at < last && p->writers[at] < end;
}

// Does a node from `begin` to `end` write the tensor? A call may.
static bool pwsp_placer_writes(const pwsp_placer *p, uint32_t tensor, uint32_t begin,
                               uint32_t end) {
    return pwsp_placer_has_writer(p, tensor, begin, end) ||
           pwsp_placer_has_writer(p, 0, begin, end);
}

// Does anything in a scope write the tensor?
static bool pwsp_scope_writes(const pwsp_placer *p, uint32_t scope, uint32_t tensor) {
    const ptowsp_module *m = p->module;
    uint32_t at = scope;
    while (at && !PWSP_NODE(m, at)->next) {
        at = PWSP_NODE(m, at)->parent;
    }
    const uint32_t end = at ? PWSP_NODE(m, at)->next : (uint32_t)m->nodes.count;
    return pwsp_placer_writes(p, tensor, scope + 1, end);
}

// -- where ----------------------------------------------------------------------------------------

// The node before which an operand is brought over.
static uint32_t pwsp_placer_where(const pwsp_placer *p, const pwsp_operand *o) {
    uint32_t best = o->node;
    for (uint32_t at = PWSP_NODE(p->module, o->node)->parent; at && !o->is_pinned;
         at = PWSP_NODE(p->module, at)->parent) {
        const pwsp_node *node = PWSP_NODE(p->module, at);
        const bool is_loop = pwsp_node_is_loop(node);
        if ((!is_loop && node->kind != PWSP_NODE_COMBINE && node->kind != PWSP_NODE_SEQUENCE) ||
            (is_loop && pwsp_view_reads(p->module, &o->view, node->variable)) ||
            pwsp_scope_writes(p, at, o->view.tensor)) {
            break;
        }
        best = is_loop ? at : best;
    }
    return best;
}

// Does a relayout before one node reach another? Nothing has written the tensor since.
static bool pwsp_placer_holds(const pwsp_placer *p, uint32_t brought, uint32_t before,
                              uint32_t tensor) {
    const uint32_t scope = PWSP_NODE(p->module, brought)->parent;
    for (uint32_t at = PWSP_NODE(p->module, before)->parent; at != scope;
         at = PWSP_NODE(p->module, at)->parent) {
        if (!at ||
            (pwsp_node_is_loop(PWSP_NODE(p->module, at)) && pwsp_scope_writes(p, at, tensor))) {
            return false;
        }
    }
    return true;
}

// -- operands -------------------------------------------------------------------------------------

// A view is whole along dimensions whose cut changes; the others stay.
static bool pwsp_operand_view(const pwsp_placer *p, pwsp_operand *o, const pwsp_rule_tile *tile) {
    const ptowsp_tensor_desc *tensor = PWSP_TENSOR(p->module, o->view.tensor);
    for (uint32_t i = 0; i < o->relayout.step_count; i++) {
        const ptowsp_relayout_step *step = &o->relayout.steps[i];
        if (step->before.kind == PTOWSP_SHARDED) {
            o->is_changed[step->before.dim] = true;
        }
        if (step->after.kind == PTOWSP_SHARDED) {
            o->is_changed[step->after.dim] = true;
        }
    }
    for (uint32_t d = 0; d < tensor->rank; d++) {
        const bool is_col = d + 1 == tensor->rank;
        int64_t *size = is_col ? &o->view.cols : &o->view.rows;
        uint32_t *at = is_col ? &o->view.col : &o->view.row;
        uint32_t *limit = is_col ? &o->view.col_count : &o->view.row_count;
        if (!o->is_changed[d]) {
            continue;
        }
        if (d + 2 < tensor->rank) {
            return pwsp_placer_refuse(p, o, tile, d, "views have an index of this dimension",
                                      PTOWSP_UNSUPPORTED);
        }
        const pwsp_expr_node *offset = *at ? &p->module->exprs.nodes[*at] : NULL;
        const bool is_start = !offset || (offset->op == PWSP_EXPR_CONST && offset->value == 0);
        if (!is_start || *limit || (*size && (tensor->shape[d] < 0 || *size < tensor->shape[d]))) {
            return pwsp_placer_refuse(p, o, tile, d, "the view is a part of this dimension",
                                      PTOWSP_UNSUPPORTED);
        }
        *size = 0;
        *at = 0;
    }
    return true;
}

// The task's own view, of the converted tensor.
static bool pwsp_operand_read(pwsp_placer *p, const pwsp_operand *o, const pwsp_rule_tile *tile,
                              uint32_t target) {
    pwsp_node *node = PWSP_NODE(p->module, o->node);
    const pwsp_kernel_info *kernel = PWSP_KERNEL(p->module, node->task->kernel);
    const ptowsp_tensor_desc *tensor = PWSP_TENSOR(p->module, target);
    const int64_t param[2] = {kernel->tiles[o->tile].rows, kernel->tiles[o->tile].cols};
    pwsp_view_info view = o->view;
    view.tensor = target;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        const uint32_t which = d + 2 - tensor->rank;
        if (o->is_changed[d] && param[which] != PTOWSP_DYNAMIC) {
            if (tensor->shape[d] < 0 || param[which] < tensor->shape[d]) {
                return pwsp_placer_refuse(p, o, tile, d, "the kernel's tile is too small for it",
                                          PTOWSP_UNSUPPORTED_SIZE);
            }
            *(which ? &view.cols : &view.rows) = param[which];
        }
    }
    pwsp_view_info views[PTOWSP_TASK_TILE_MAX];
    pwsp_task_info task = *node->task;
    memcpy(views, task.views, kernel->tile_count * sizeof *views);
    views[o->tile] = view;
    task.views = PWSP_MODULE_COPY(p->module, pwsp_view_info, views, kernel->tile_count);
    const pwsp_task_info *copy = PWSP_MODULE_COPY(p->module, pwsp_task_info, &task, 1);
    node->task = copy ? copy : node->task;
    return copy != NULL;
}

// Inserts the steps of an operand; returns the converted tensor, or 0 with an error.
static uint32_t pwsp_operand_steps(pwsp_placer *p, const pwsp_operand *o,
                                   const pwsp_rule_tile *tile, uint32_t before) {
    const uint32_t source = o->view.tensor;
    ptowsp_spread axes[PTOWSP_MESH_AXIS_MAX];
    memcpy(axes, tile->have.spreads, sizeof axes);
    uint32_t from = source;
    for (uint32_t i = 0; i < o->relayout.step_count; i++) {
        const ptowsp_relayout_step *step = &o->relayout.steps[i];
        axes[step->axis] = step->after;
        const uint32_t to = pwsp_target_of(p, source, axes);
        const ptowsp_tensor_desc tensor = *PWSP_TENSOR(p->module, source);
        const uint32_t kernel = to ? pwsp_step_kernel(p, step, &tensor) : 0;
        if (!kernel || !pwsp_step_place(p, before, kernel, &o->view, from, to)) {
            return 0;
        }
        from = to;
    }
    const uint32_t id = PWSP_MODULE_ADD(p->module, p->brought);
    if (id) {
        pwsp_brought *brought = &p->brought.items[id];
        brought->before = before;
        brought->target = from;
        brought->earlier = p->tensors[source].brought;
        brought->view = o->view;
        p->tensors[source].brought = id;
    }
    return id ? from : 0;
}

// The converted tensor of an earlier task with the same view, or 0. A write since then makes it
// stale, with all earlier conversions of the same tensor.
static uint32_t pwsp_operand_again(const pwsp_placer *p, const pwsp_operand *o,
                                   const pwsp_rule_tile *tile, uint32_t before) {
    const uint32_t source = o->view.tensor;
    for (uint32_t i = o->is_pinned ? 0 : p->tensors[source].brought; i > 0;) {
        const pwsp_brought *brought = &p->brought.items[i];
        if (pwsp_placer_writes(p, source, brought->before, o->node)) {
            break;
        }
        i = brought->earlier;
        const ptowsp_mesh_layout layout = pwsp_tensor_layout(p->module, brought->target);
        bool is_same = pwsp_view_is_same(p->module, &brought->view, &o->view);
        for (uint32_t a = 0; is_same && a < p->mesh->axis_count; a++) {
            is_same = pwsp_spread_is_same(&layout.spreads[a], &tile->need.spreads[a], 0, 0);
        }
        if (is_same && pwsp_placer_holds(p, brought->before, before, source)) {
            return brought->target;
        }
    }
    return 0;
}

static bool pwsp_placer_operand(pwsp_placer *p, uint32_t node, uint32_t which,
                                const pwsp_rule_tile *tile) {
    ptowsp_module *m = p->module;
    PWSP_ZERO(pwsp_operand, o);
    o.node = node;
    o.tile = which;
    o.view = PWSP_NODE(m, node)->task->views[which];
    ptowsp_mesh_layout have = tile->have, need = tile->need;
    bool is_open = false;
    for (uint32_t d = 0; d < have.rank; d++) {
        is_open = is_open || have.shape[d] < 0;
        have.shape[d] = have.shape[d] < 0 ? (int64_t)m->mesh->rank_count : have.shape[d];
        need.shape[d] = have.shape[d];
    }
    if (ptowsp_mesh_layout_relayout(m->context, p->mesh, &have, &need, &o.relayout) != PTOWSP_OK) {
        const ptowsp_error error = ptowsp_context_error(m->context);
        return pwsp_module_fail_at(
            m, node, error.status, "parameter %s: %s",
            PWSP_KERNEL(m, PWSP_NODE(m, node)->task->kernel)->tiles[which].name, error.text);
    }
    if (o.relayout.step_count == 0) {
        return true;
    }
    if (pwsp_node_process(m, node)) {
        return pwsp_placer_refuse(p, &o, tile, PWSP_RULE_NO_DIM,
                                  "there are no collectives in processes", PTOWSP_UNSUPPORTED);
    }
    if (is_open && !pwsp_module_transient(m, o.view.tensor)) {
        return pwsp_placer_refuse(p, &o, tile, PWSP_RULE_NO_DIM,
                                  "a relayout needs sizes that are declared, or a transient tensor",
                                  PTOWSP_UNSUPPORTED);
    }
    if (!pwsp_operand_view(p, &o, tile)) {
        return false;
    }
    o.is_pinned = pwsp_view_reads(m, &o.view, 0);
    const uint32_t before = pwsp_placer_where(p, &o);
    uint32_t target = pwsp_operand_again(p, &o, tile, before);
    target = target ? target : pwsp_operand_steps(p, &o, tile, before);
    return target && pwsp_operand_read(p, &o, tile, target);
}

// -- tasks ----------------------------------------------------------------------------------------

static bool pwsp_placer_is_spread(const ptowsp_module *m, uint32_t tensor) {
    const ptowsp_mesh_layout layout = pwsp_tensor_layout(m, tensor);
    for (uint32_t a = 0; a < m->mesh->mesh.axis_count; a++) {
        if (layout.spreads[a].kind != PTOWSP_REPLICATED) {
            return true;
        }
    }
    return false;
}

static bool pwsp_placer_task(pwsp_placer *p, uint32_t node) {
    ptowsp_module *m = p->module;
    const pwsp_task_info *task = PWSP_NODE(m, node)->task;
    const pwsp_kernel_info kernel = *PWSP_KERNEL(m, task->kernel);
    pwsp_rule_tile tiles[PTOWSP_TASK_TILE_MAX];
    PWSP_ZERO(pwsp_rule, rule);
    pwsp_rule_fault fault;
    bool is_spread = false;
    if (kernel.rule) {
        pwsp_rule_read(kernel.rule, &rule);
    }
    for (uint32_t i = 0; i < kernel.tile_count; i++) {
        const ptowsp_direction direction = kernel.tiles[i].direction;
        is_spread = is_spread || pwsp_placer_is_spread(m, task->views[i].tensor);
        tiles[i].is_read = direction != PTOWSP_OUT;
        tiles[i].is_written = direction != PTOWSP_IN;
        tiles[i].have = pwsp_tensor_layout(m, task->views[i].tensor);
    }
    if (!is_spread || kernel.unit == PTOWSP_UNIT_LINK) {
        return true;
    }
    if (!pwsp_rule_needs(&rule, p->mesh, tiles, kernel.tile_count, &fault)) {
        return pwsp_placer_fail(p, node, &tiles[fault.tile], fault.tile, &fault,
                                PTOWSP_INVALID_PARAMS);
    }
    for (uint32_t i = 0; i < kernel.tile_count; i++) {
        if (!tiles[i].is_written && !pwsp_placer_operand(p, node, i, &tiles[i])) {
            return false;
        }
    }
    return true;
}

// Slots decide for all ranks, so they are loaded from replicated tensors.
static bool pwsp_placer_slot(const pwsp_placer *p, uint32_t node) {
    const uint32_t tensor = PWSP_NODE(p->module, node)->view->tensor;
    const ptowsp_mesh_layout layout = pwsp_tensor_layout(p->module, tensor);
    char text[PWSP_LAYOUT_TEXT_MAX];
    if (pwsp_placer_is_spread(p->module, tensor)) {
        pwsp_module_fail_at(p->module, node, PTOWSP_INVALID_PARAMS,
                            "a slot is loaded from tensor %s, which is not replicated: %s",
                            layout.name, pwsp_layout_text(p->mesh, &layout, text));
    }
    return pwsp_module_is_good(p->module);
}

static bool pwsp_placer_node(pwsp_placer *p, uint32_t id) {
    const pwsp_node_kind kind = PWSP_NODE(p->module, id)->kind;
    return kind == PWSP_NODE_TASK        ? pwsp_placer_task(p, id)
           : kind == PWSP_NODE_SLOT_LOAD ? pwsp_placer_slot(p, id)
                                         : true;
}

PWSP_INTERNAL void pwsp_place_relayouts(ptowsp_module *module, uint32_t workload) {
    const pwsp_memory *memory = &module->memory;
    PWSP_ZERO(pwsp_placer, p);
    p.module = module;
    p.mesh = &module->mesh->mesh;
    p.tensor_count = (uint32_t)module->tensors.count + 1;  // at least one for calls
    if (!PWSP_ALLOC(memory, p.tensors, p.tensor_count) || !pwsp_placer_list_writers(&p, workload)) {
        pwsp_module_no_memory(module);
    }
    for (uint32_t id = workload + 1; pwsp_module_is_good(module) && id < module->nodes.count;
         id++) {
        pwsp_placer_node(&p, id);
    }
    if (pwsp_module_is_good(module) && p.inserts.count > 1) {
        pwsp_nodes_insert(module, workload, &p.inserts.items[1], (uint32_t)p.inserts.count - 1);
    }
    PWSP_FREE(memory, p.tensors, p.tensor_count);
    PWSP_FREE(memory, p.writers, (size_t)p.writer_count + 1);
    PWSP_TABLE_FREE(memory, p.targets);
    PWSP_TABLE_FREE(memory, p.brought);
    PWSP_TABLE_FREE(memory, p.inserts);
}
