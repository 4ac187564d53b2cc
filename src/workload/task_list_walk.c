// Walking a list of tasks, an event at a time:
//
//      scopes that end before an entry, those that begin with it, then the entry: a task or a join
//
// The present task is made in the cells and tiles of the expander, as one of the tree is. Only what
// differs from task to task of a kernel is set here.

#include "expand.h"

#include "../base/text.h"
#include "../runtime/walk_check.h"

#include <inttypes.h>

PWSP_INTERNAL void pwsp_task_list_begin(pwsp_expander *x, const pwsp_task_list_op *list) {
    memset(&x->list, 0, sizeof x->list);
    x->list.list = list;
}

// Why the tile of the present task is outside its tensor (the caller has checked that it is).
static pwsp_event pwsp_task_list_fail_view(pwsp_expander *x, const ptowsp_list_view *view,
                                           const char *param, const pwsp_view_size *size,
                                           bool is_lead) {
    const pwsp_bound_tensor *tensor = &x->tensors[view->tensor.id];
    const char *name = x->program->tensors.items[view->tensor.id].name;
    pwsp_error error;
    if (is_lead) {
        pwsp_error_set(&error, PTOWSP_INVALID_PARAMS, pwsp_error_index(view->matrix),
                       "%s: tensor %s has no matrix %" PRId64, param, name, view->matrix);
    } else {
        pwsp_view_fail(&error, param, name, tensor, view->row, view->col, size);
    }
    return pwsp_expander_fail(x, error.status, error.index, "task %u of the list: %s", x->list.next,
                              error.text);
}

// The offset of a matrix, by its ordinal. False for an ordinal beyond the tensor.
static bool pwsp_task_list_lead(const pwsp_bound_tensor *tensor, uint32_t lead_count,
                                int64_t matrix, int64_t *out_lead) {
    bool is_inside = true;
    *out_lead = 0;
    for (uint32_t i = lead_count; i-- > 0;) {
        const int64_t size = tensor->lead_shape[i];
        is_inside = is_inside && size > 0 && pwsp_view_lead(tensor, i, matrix % size, out_lead);
        matrix = size > 0 ? matrix / size : matrix;
    }
    return is_inside && matrix == 0;
}

// Finds tile i of the present task. False with an error.
static bool pwsp_task_list_tile(pwsp_expander *x, const ptowsp_list_view *view, uint32_t i) {
    const ptowsp_tile_param *param = &x->kernel->tiles[i];
    const pwsp_bound_tensor *tensor = &x->tensors[view->tensor.id];
    const uint32_t rank = x->program->tensors.items[view->tensor.id].rank;
    const bool has_rows = param->rows != PTOWSP_DYNAMIC, has_cols = param->cols != PTOWSP_DYNAMIC;
    const pwsp_view_size size = {view->rows ? view->rows
                                 : has_rows ? param->rows
                                            : 0,
                                 view->cols ? view->cols
                                 : has_cols ? param->cols
                                            : 0,
                                 INT64_MAX, INT64_MAX};
    pwsp_tile_at *at = &x->tiles_at[i];
    at->tensor = view->tensor.id;
    at->access = (param->direction != PTOWSP_OUT ? PWSP_TILE_READ : 0) |
                 (param->direction != PTOWSP_IN ? PWSP_TILE_WRITTEN : 0);
    const bool is_lead =
        pwsp_task_list_lead(tensor, rank > 2 ? rank - 2 : 0, view->matrix, &at->lead);
    if (!is_lead || !pwsp_view_tile(tensor, view->row, view->col, &size, at)) {
        pwsp_task_list_fail_view(x, view, param->name, &size, !is_lead);
        return false;
    }
    x->tiles[i] = pwsp_expander_tile_of(tensor, at);
    return true;
}

static pwsp_event pwsp_task_list_task(pwsp_expander *x, uint32_t kernel) {
    pwsp_task_list_walk *at = &x->list;
    const pwsp_task_list_op *list = at->list;
    const pwsp_op *op = &x->ops[list->ops[kernel]];
    uint64_t *args = x->cells + x->program->first_arg;
    x->node = op->node;
    at->task = x->program->tasks.items[op->at];
    x->task_op = &at->task;
    x->kernel = &x->program->kernels.items[kernel];
    const uint32_t axis_count = at->task.axis_count, view_count = at->task.view_count;
    for (uint32_t i = 0; i < axis_count; i++) {
        args[i] = (uint64_t)list->given.axes[at->axis + i];
    }
    uint32_t next = axis_count;
    for (uint32_t i = 0; i < view_count; i++) {
        if (!pwsp_task_list_tile(x, &list->given.views[at->view + i], i)) {
            return PWSP_EVENT_ERROR;
        }
        args[next++] = x->tiles_at[i].rows;
        args[next++] = x->tiles_at[i].cols;
    }
    for (uint32_t i = 0; i < at->task.scalar_count; i++) {
        args[next++] = list->given.scalars[at->scalar + i];
    }
    at->cycles = list->given.cycles ? &list->given.cycles[at->next] : NULL;
    at->axis += axis_count;
    at->view += view_count;
    at->scalar += at->task.scalar_count;
    return pwsp_expander_made_task(x, next);
}

PWSP_INTERNAL pwsp_event pwsp_task_list_next(pwsp_expander *x) {
    pwsp_task_list_walk *at = &x->list;
    const ptowsp_task_list *given = &at->list->given;
    if (at->depth && at->ends[at->depth - 1] == at->next) {
        at->depth--;
        x->mark = pwsp_mark_of(PWSP_MARK_END);
        return PWSP_EVENT_MARK;
    }
    if (at->next == given->task_count) {
        return PWSP_EVENT_NONE;
    }
    if (at->scope < given->scope_count && given->scopes[at->scope].first == at->next) {
        const ptowsp_list_scope *scope = &given->scopes[at->scope++];
        at->ends[at->depth++] = scope->first + scope->count;
        x->mark = pwsp_mark_of(scope->is_parallel ? PWSP_MARK_PARALLEL : PWSP_MARK_SEQUENTIAL);
        return PWSP_EVENT_MARK;
    }
    const uint32_t i = at->next, own = at->list->first_own + i;
    uint32_t first = 0, count = 0;
    if (at->list->has_edges) {
        first = at->list->first_own + given->task_count + (uint32_t)given->edge_begins[i];
        count = (uint32_t)(given->edge_begins[i + 1] - given->edge_begins[i]);
    }
    pwsp_event event = PWSP_EVENT_MARK;
    if (given->kernels[i].id) {
        event = pwsp_task_list_task(x, given->kernels[i].id);
        at->task.first_in = first;
        at->task.in_count = count;
        at->task.first_out = own;
        at->task.out_count = at->list->has_edges;
    } else {
        const uint32_t *edges = (const uint32_t *)x->program->edges.items;
        const pwsp_mark join = {PWSP_MARK_JOIN, at->list->has_edges ? edges[own] : 0, count,
                                count ? edges + first : NULL};
        x->mark = join;
    }
    at->next++;
    return event;
}
