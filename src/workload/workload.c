// Building workloads: a tree of nodes, grown at the open scope.
//
//      workload attention            open scopes form the path from a workload down to the place
//        parallel b                  where the next node goes; each call adds a child to the last
//          of
//          when  --- otherwise       them. An otherwise is the sibling after its when.
//          task

#include "build.h"

#include "../base/text.h"

#include <inttypes.h>

// -- scopes ---------------------------------------------------------------------------------------

void ptowsp_workload_begin(ptowsp_module *module, const char *name) {
    if (!pwsp_module_is_good(module)) {
        return;
    }
    if (module->open) {
        PWSP_MODULE_REFUSE(module, "workload %s begins inside another; close that one first",
                           pwsp_name_is_valid(name) ? name : "");
        return;
    }
    const char *copy = pwsp_module_name(module, "workload", name);
    const pwsp_name *found = copy ? pwsp_names_find(&module->workload_names, copy) : NULL;
    if (found) {
        PWSP_MODULE_REFUSE(module, "workload %s: %s", name,
                           strcmp(found->text, name) == 0
                               ? "there is a workload of this name already"
                               : "its name has the hash of another workload's");
    }
    uint32_t id = pwsp_node_add(module, PWSP_NODE_WORKLOAD);
    if (id) {
        PWSP_NODE(module, id)->name = copy;  // first, as a failed module can be printed
    }
    if (id && !pwsp_names_add(&module->workload_names, &module->memory, copy, 0, id)) {
        id = pwsp_module_no_memory(module);
    }
    if (id) {
        module->workload = id;
        pwsp_scope_open(module, id);
    }
}

static ptowsp_expr pwsp_loop_begin(ptowsp_module *module, pwsp_node_kind kind, const char *variable,
                                   ptowsp_axis axis) {
    ptowsp_expr none = {module, 0};
    const char *name = pwsp_module_name(module, "variable", variable);
    if (name && (axis.id == 0 || axis.id >= module->axes.count)) {
        PWSP_MODULE_REFUSE(module, "loop %s: there is no axis %u", name, axis.id);
    } else if (name && kind == PWSP_NODE_SELECT &&
               PWSP_AXIS(module, axis.id)->kind != PWSP_AXIS_SPARSE) {
        PWSP_MODULE_REFUSE(module, "select %s: axis %s is not sparse", name,
                           PWSP_AXIS(module, axis.id)->name);
    } else if (name && pwsp_variable_is_taken(module, name)) {
        PWSP_MODULE_REFUSE(module, "loop %s: a scope around has a variable of this name", name);
    }
    if (!pwsp_module_is_good(module)) {
        return none;
    }
    uint32_t row = PWSP_AXIS(module, axis.id)->row;
    ptowsp_expr row_expr = {module, row};
    if (row && !pwsp_module_use(module, row_expr, PTOWSP_TYPE_I64, "the row of an axis")) {
        return none;
    }
    uint32_t id = pwsp_node_add(module, kind);
    if (id) {
        PWSP_NODE(module, id)->axis = axis.id;
    }
    ptowsp_expr value = pwsp_scope_open_variable(module, id, name);
    if (pwsp_module_is_good(module) && PWSP_AXIS(module, axis.id)->kind >= PWSP_AXIS_PLAN) {
        bool is_work = pwsp_axis_is_work(PWSP_AXIS(module, axis.id)->kind);
        ptowsp_expr lane = is_work ? ptowsp_loop_field(value, PTOWSP_PLAN_LANE) : value;
        PWSP_NODE(module, id)->lane = lane.id;
    }
    return value;
}

ptowsp_expr ptowsp_parallel_begin(ptowsp_module *module, const char *variable, ptowsp_axis axis) {
    return pwsp_loop_begin(module, PWSP_NODE_PARALLEL, variable, axis);
}

ptowsp_expr ptowsp_for_each_begin(ptowsp_module *module, const char *variable, ptowsp_axis axis) {
    return pwsp_loop_begin(module, PWSP_NODE_FOR_EACH, variable, axis);
}

ptowsp_expr ptowsp_select_begin(ptowsp_module *module, const char *variable, ptowsp_axis axis) {
    return pwsp_loop_begin(module, PWSP_NODE_SELECT, variable, axis);
}

void ptowsp_when_begin(ptowsp_module *module, ptowsp_expr condition) {
    uint32_t expr = pwsp_module_use(module, condition, PTOWSP_TYPE_BOOL, "the condition of a when");
    uint32_t id = expr ? pwsp_node_add(module, PWSP_NODE_WHEN) : 0;
    if (id) {
        PWSP_NODE(module, id)->expr = expr;
        pwsp_scope_open(module, id);
    }
}

void ptowsp_otherwise_begin(ptowsp_module *module) {
    if (!pwsp_module_is_good(module)) {
        return;
    }
    uint32_t last = module->open ? PWSP_NODE(module, module->open)->last : 0;
    if (last == 0 || PWSP_NODE(module, last)->kind != PWSP_NODE_WHEN) {
        PWSP_MODULE_REFUSE(module, "an otherwise that does not follow a when");
        return;
    }
    pwsp_scope_open(module, pwsp_node_add(module, PWSP_NODE_OTHERWISE));
}

void ptowsp_combine_begin(ptowsp_module *module) {
    pwsp_scope_open(module, pwsp_node_add(module, PWSP_NODE_COMBINE));
}

void ptowsp_sequence_begin(ptowsp_module *module) {
    pwsp_scope_open(module, pwsp_node_add(module, PWSP_NODE_SEQUENCE));
}

void ptowsp_scope_end(ptowsp_module *module) {
    if (!pwsp_module_is_good(module)) {
        return;
    }
    if (module->open == 0) {
        PWSP_MODULE_REFUSE(module, "scope_end without an open scope");
        return;
    }
    const pwsp_node *node = PWSP_NODE(module, module->open);
    if (node->variable) {
        PWSP_VARIABLE(module, node->variable)->is_open = false;
    }
    for (uint32_t i = 0; i < node->param_count; i++) {
        PWSP_VARIABLE(module, node->first_param + i)->is_open = false;
    }
    const uint32_t workload = node->parent ? 0 : module->open;
    module->open = node->parent;
    module->nest--;
    if (workload && module->mesh) {
        pwsp_place_relayouts(module, workload);
    }
}

// -- calls and slots ------------------------------------------------------------------------------

ptowsp_expr ptowsp_workload_param(ptowsp_module *module, const char *name, ptowsp_type type) {
    ptowsp_expr none = {module, 0};
    const char *copy = pwsp_module_name(module, "parameter", name);
    if (!copy) {
        return none;
    }
    const pwsp_node *workload = module->open ? PWSP_NODE(module, module->open) : NULL;
    if (!workload || workload->kind != PWSP_NODE_WORKLOAD || workload->first) {
        PWSP_MODULE_REFUSE(module, "parameter %s: parameters come first in a workload", copy);
    } else if ((uint32_t)type < PTOWSP_TYPE_BOOL || (uint32_t)type > PTOWSP_TYPE_U64) {
        PWSP_MODULE_REFUSE(module, "parameter %s: %d is no type", copy, (int)type);
    } else if (pwsp_variable_is_taken(module, copy)) {
        PWSP_MODULE_REFUSE(module, "parameter %s: there is one of this name already", copy);
    }
    if (!pwsp_module_is_good(module)) {
        return none;
    }
    uint32_t id = pwsp_variable_add(module, copy, type, module->open);
    if (id) {
        pwsp_node *node = PWSP_NODE(module, module->open);
        node->first_param = node->param_count ? node->first_param : id;
        node->param_count++;
    }
    return id ? pwsp_variable_expr(module, id) : none;
}

void ptowsp_call_make(ptowsp_module *module, const char *workload, const ptowsp_expr *args,
                      uint32_t arg_count) {
    pwsp_call_info info = {pwsp_module_name(module, "called workload", workload), NULL, arg_count};
    if (!info.name) {
        return;
    }
    if (arg_count > PTOWSP_CALL_ARG_MAX || (arg_count > 0 && !args)) {
        PWSP_MODULE_REFUSE(module, "call %s: %u arguments%s", info.name, arg_count,
                           args ? ", which are too many" : ", which are NULL");
        return;
    }
    uint32_t ids[PTOWSP_CALL_ARG_MAX];
    for (uint32_t i = 0; i < arg_count; i++) {
        ids[i] = pwsp_module_use(module, args[i], PTOWSP_TYPE_NONE, "an argument of a call");
        if (ids[i] == 0) {
            return;
        }
    }
    info.args = PWSP_MODULE_COPY(module, uint32_t, ids, arg_count);
    const pwsp_call_info *copy = PWSP_MODULE_COPY(module, pwsp_call_info, &info, 1);
    uint32_t id = pwsp_node_add(module, PWSP_NODE_CALL);
    if (id) {
        PWSP_NODE(module, id)->call = copy;
    }
}

static bool pwsp_slot_check(ptowsp_module *module, const char *what, uint32_t slot) {
    if (!pwsp_module_is_good(module)) {
        return false;
    }
    if (slot >= module->slot_count) {
        return pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, slot,
                                "%s: slot %u, but there are %u", what, slot, module->slot_count);
    }
    return true;
}

void ptowsp_slot_set_make(ptowsp_module *module, uint32_t slot, ptowsp_expr value) {
    if (!pwsp_slot_check(module, "slot_set", slot)) {
        return;
    }
    uint32_t expr = pwsp_module_use(module, value, PTOWSP_TYPE_NONE, "the value of a slot");
    uint32_t id = expr ? pwsp_node_add(module, PWSP_NODE_SLOT_SET) : 0;
    if (id) {
        PWSP_NODE(module, id)->slot = slot;
        PWSP_NODE(module, id)->expr = expr;
    }
}

// -- views ----------------------------------------------------------------------------------------

// The value of a constant expression; false for others.
static bool pwsp_view_const(const ptowsp_module *module, uint32_t expr, int64_t *out_value) {
    const pwsp_expr_node *node = &module->exprs.nodes[expr];
    *out_value = (int64_t)node->value;
    return node->op == PWSP_EXPR_CONST;
}

// Size of the dimension that counts as rows (which 2) or columns (which 1).
static int64_t pwsp_view_extent(const ptowsp_tensor_desc *tensor, uint32_t which) {
    return tensor->rank >= which ? tensor->shape[tensor->rank - which] : 1;
}

// Checks a constant against the size of a dimension.
static void pwsp_view_check_const(ptowsp_module *module, const char *tensor, const char *what,
                                  int64_t value, int64_t size) {
    if (value < 0) {
        pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, pwsp_error_index(value),
                         "%s of tensor %s is %" PRId64, what, tensor, value);
    } else if (size != PTOWSP_DYNAMIC && value >= size) {
        pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, pwsp_error_index(value),
                         "%s of tensor %s is %" PRId64 ", outside of its size %" PRId64, what,
                         tensor, value, size);
    }
}

// An offset of a view's tile: its expression, or 0 for none given; false with an error.
static bool pwsp_view_offset(ptowsp_module *module, const ptowsp_tensor_desc *tensor,
                             ptowsp_expr expr, uint32_t which, const char *what, uint32_t *out_id) {
    int64_t value;
    if (pwsp_module_use_given(module, expr, PTOWSP_TYPE_I64, what, out_id) && *out_id &&
        pwsp_view_const(module, *out_id, &value)) {
        pwsp_view_check_const(module, tensor->name, what, value, pwsp_view_extent(tensor, which));
    }
    return pwsp_module_is_good(module);
}

// A limit of a view's rows or columns: its expression, or 0 for none given; false with an error.
static bool pwsp_view_limit(ptowsp_module *module, const char *tensor, ptowsp_expr expr,
                            const char *what, uint32_t *out_id) {
    int64_t value;
    if (pwsp_module_use_given(module, expr, PTOWSP_TYPE_I64, what, out_id) && *out_id &&
        pwsp_view_const(module, *out_id, &value) && value < 1) {
        pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, pwsp_error_index(value),
                         "%s of tensor %s is %" PRId64, what, tensor, value);
    }
    return pwsp_module_is_good(module);
}

// Resolves the size of a view's tile against the parameter's; false with an error.
static bool pwsp_view_count(ptowsp_module *module, const char *tensor, const char *what,
                            int64_t given, int64_t param, int64_t *out_size) {
    if (given < 0 || given > INT32_MAX) {
        return PWSP_MODULE_REFUSE(module,
                                  "a view of tensor %s has %" PRId64 " %s, not 1 to 2^31 - 1",
                                  tensor, given, what);
    }
    if (given && param != PTOWSP_DYNAMIC && given != param) {
        PWSP_MODULE_REFUSE(module,
                           "a view of tensor %s has %" PRId64 " %s; the parameter has %" PRId64,
                           tensor, given, what, param);
        return false;
    }
    *out_size = given ? given : param == PTOWSP_DYNAMIC ? 0 : param;
    return true;
}

// Checks a view against the tensor and the size of a parameter (rows, cols); false with an error.
static bool pwsp_view_make(ptowsp_module *module, const ptowsp_view *view, int64_t rows,
                           int64_t cols, pwsp_view_info *out_info) {
    memset(out_info, 0, sizeof *out_info);
    if (view->tensor.id == 0 || view->tensor.id >= module->tensors.count) {
        return PWSP_MODULE_REFUSE(module, "a view of tensor %u, which there is not",
                                  view->tensor.id);
    }
    const ptowsp_tensor_desc *tensor = PWSP_TENSOR(module, view->tensor.id);
    out_info->tensor = view->tensor.id;
    module->viewed = view->tensor.id > module->viewed ? view->tensor.id : module->viewed;
    uint32_t lead = tensor->rank > 2 ? tensor->rank - 2 : 0, given = 0;
    while (given < PWSP_TENSOR_LEAD_MAX && (view->index[given].id || view->index[given].module)) {
        given++;
    }
    if (given != lead) {
        PWSP_MODULE_REFUSE(module, "a view of tensor %s has %u indices; its rank %u takes %u",
                           tensor->name, given, tensor->rank, lead);
        return false;
    }
    for (uint32_t i = 0; i < lead; i++) {
        int64_t value;
        out_info->index[i] =
            pwsp_module_use(module, view->index[i], PTOWSP_TYPE_I64, "an index of a view");
        if (out_info->index[i] == 0) {
            return false;
        }
        if (pwsp_view_const(module, out_info->index[i], &value)) {
            char what[16];
            pwsp_text_into(what, sizeof what, "index %u", i);
            pwsp_view_check_const(module, tensor->name, what, value, tensor->shape[i]);
            if (!pwsp_module_is_good(module)) {
                return false;
            }
        }
    }
    return pwsp_view_offset(module, tensor, view->row, 2, "the row", &out_info->row) &&
           pwsp_view_offset(module, tensor, view->col, 1, "the column", &out_info->col) &&
           pwsp_view_limit(module, tensor->name, view->row_count, "the number of rows",
                           &out_info->row_count) &&
           pwsp_view_limit(module, tensor->name, view->col_count, "the number of columns",
                           &out_info->col_count) &&
           pwsp_view_count(module, tensor->name, "rows", view->rows, rows, &out_info->rows) &&
           pwsp_view_count(module, tensor->name, "columns", view->cols, cols, &out_info->cols);
}

void ptowsp_slot_load_make(ptowsp_module *module, uint32_t slot, const ptowsp_view *view,
                           ptowsp_expr row, ptowsp_expr col) {
    if (!pwsp_slot_check(module, "slot_load", slot)) {
        return;
    }
    if (!view) {
        PWSP_MODULE_REFUSE(module, "slot_load: view is NULL");
        return;
    }
    pwsp_view_info info;
    if (!pwsp_view_make(module, view, view->rows ? PTOWSP_DYNAMIC : 1,
                        view->cols ? PTOWSP_DYNAMIC : 1, &info)) {
        return;
    }
    const ptowsp_tensor_desc *tensor = PWSP_TENSOR(module, info.tensor);
    if (tensor->dtype <= PTOWSP_F64) {
        PWSP_MODULE_REFUSE(module,
                           "slot_load: tensor %s is %s; slots are loaded from integers and bool",
                           tensor->name, ptowsp_dtype_name(tensor->dtype));
        return;
    }
    uint32_t row_id, col_id;
    if (!pwsp_module_use_given(module, row, PTOWSP_TYPE_I64, "the row of a slot load", &row_id) ||
        !pwsp_module_use_given(module, col, PTOWSP_TYPE_I64, "the column of a slot load",
                               &col_id)) {
        return;
    }
    const pwsp_view_info *copy = PWSP_MODULE_COPY(module, pwsp_view_info, &info, 1);
    uint32_t id = pwsp_node_add(module, PWSP_NODE_SLOT_LOAD);
    if (id) {
        pwsp_node *node = PWSP_NODE(module, id);
        node->slot = slot;
        node->view = copy;
        node->expr = row_id;
        node->col = col_id;
    }
}

// -- tasks ----------------------------------------------------------------------------------------

// Checks `given` expressions against a count; copies their indices. NULL with an error.
static const uint32_t *pwsp_task_exprs(ptowsp_module *module, const pwsp_kernel_info *kernel,
                                       const ptowsp_expr *exprs, uint32_t max, uint32_t count,
                                       bool is_scalar) {
    const char *what = is_scalar ? "scalar" : "axis";
    uint32_t ids[PTOWSP_TASK_AXIS_MAX > PTOWSP_TASK_SCALAR_MAX ? PTOWSP_TASK_AXIS_MAX
                                                               : PTOWSP_TASK_SCALAR_MAX];
    uint32_t given = 0;
    while (given < max && (exprs[given].id || exprs[given].module)) {
        given++;
    }
    if (given != count) {
        PWSP_MODULE_REFUSE(module, "%u %s arguments; the kernel takes %u", given, what, count);
        return NULL;
    }
    PTOWSP_STATIC_ASSERT(PTOWSP_TASK_AXIS_MAX <= 10 && PTOWSP_TASK_SCALAR_MAX <= 10, "one digit");
    char place[] = "scalar argument 0";
    char *begin = is_scalar ? place : (char *)memcpy(place + 2, "axis", 4);
    for (uint32_t i = 0; i < count; i++) {
        place[sizeof place - 2] = (char)('0' + i);
        ids[i] = pwsp_module_use(module, exprs[i],
                                 is_scalar ? kernel->scalars[i].type : PTOWSP_TYPE_I64, begin);
        if (ids[i] == 0) {
            return NULL;
        }
    }
    return PWSP_MODULE_COPY(module, uint32_t, ids, count);
}

static const pwsp_view_info *pwsp_task_views(ptowsp_module *module, const pwsp_kernel_info *kernel,
                                             const ptowsp_view *views) {
    pwsp_view_info infos[PTOWSP_TASK_TILE_MAX];
    uint32_t given = 0;
    while (given < PTOWSP_TASK_TILE_MAX && views[given].tensor.id) {
        given++;
    }
    if (given != kernel->tile_count) {
        PWSP_MODULE_REFUSE(module, "%u views; the kernel takes %u", given, kernel->tile_count);
        return NULL;
    }
    for (uint32_t i = 0; i < given; i++) {
        const ptowsp_tile_param *tile = &kernel->tiles[i];
        if (!pwsp_view_make(module, &views[i], tile->rows, tile->cols, &infos[i])) {
            return NULL;
        }
        const ptowsp_tensor_desc *tensor = PWSP_TENSOR(module, infos[i].tensor);
        if (tensor->dtype != tile->dtype) {
            PWSP_MODULE_REFUSE(module, "parameter %s is %s, tensor %s is %s", tile->name,
                               ptowsp_dtype_name(tile->dtype), tensor->name,
                               ptowsp_dtype_name(tensor->dtype));
            return NULL;
        }
    }
    return PWSP_MODULE_COPY(module, pwsp_view_info, infos, given);
}

static const pwsp_tag_info *pwsp_task_tags(ptowsp_module *module, const ptowsp_tag *tags,
                                           uint32_t *out_count) {
    pwsp_tag_info infos[PTOWSP_TASK_TAG_MAX];
    uint32_t count = 0;
    for (; count < PTOWSP_TASK_TAG_MAX && tags[count].name; count++) {
        infos[count].name = pwsp_module_name(module, "tag", tags[count].name);
        if (!infos[count].name) {
            return NULL;
        }
        infos[count].value =
            pwsp_module_use(module, tags[count].value, PTOWSP_TYPE_U64, "the value of a tag");
        if (infos[count].value == 0) {
            return NULL;
        }
        for (uint32_t j = 0; j < count; j++) {
            if (strcmp(infos[j].name, infos[count].name) == 0) {
                PWSP_MODULE_REFUSE(module, "two tags are called %s", infos[j].name);
                return NULL;
            }
        }
    }
    *out_count = count;
    return PWSP_MODULE_COPY(module, pwsp_tag_info, infos, count);
}

// Checks everything of a task and copies it into the module; NULL with an error.
static const pwsp_task_info *pwsp_task_check(ptowsp_module *module, const ptowsp_task_desc *desc) {
    const pwsp_kernel_info *kernel = PWSP_KERNEL(module, desc->kernel.id);
    PWSP_ZERO(pwsp_task_info, info);
    info.kernel = desc->kernel.id;
    info.axes = pwsp_task_exprs(module, kernel, desc->axes, PTOWSP_TASK_AXIS_MAX,
                                kernel->axis_count, false);
    info.views = info.axes ? pwsp_task_views(module, kernel, desc->views) : NULL;
    info.scalars = info.views ? pwsp_task_exprs(module, kernel, desc->scalars,
                                                PTOWSP_TASK_SCALAR_MAX, kernel->scalar_count, true)
                              : NULL;
    info.tags = info.scalars ? pwsp_task_tags(module, desc->tags, &info.tag_count) : NULL;
    while (info.after_count < PTOWSP_TASK_AFTER_MAX && desc->after[info.after_count].id) {
        info.after_count++;
    }
    info.after = info.tags ? pwsp_nodes_after(module, desc->after, &info.after_count) : NULL;
    return PWSP_MODULE_COPY(module, pwsp_task_info, &info, 1);
}

ptowsp_node ptowsp_task_make(ptowsp_module *module, const ptowsp_task_desc *desc) {
    ptowsp_node node = {0};
    if (!pwsp_module_takes(module, desc, "task")) {
        return node;
    }
    if (desc->kernel.id == 0 || desc->kernel.id >= module->kernels.count) {
        pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, desc->kernel.id,
                         "task: there is no kernel %u", desc->kernel.id);
    } else if (module->open == 0) {
        PWSP_MODULE_REFUSE(module, "a statement outside any workload");
    }
    if (!pwsp_module_is_good(module)) {
        return node;
    }
    if (PWSP_KERNEL(module, desc->kernel.id)->variant_count) {
        return pwsp_task_choose(module, desc);
    }
    module->task_kernel = desc->kernel.id;
    const pwsp_task_info *info = pwsp_task_check(module, desc);
    module->task_kernel = 0;
    node.id = info ? pwsp_node_add(module, PWSP_NODE_TASK) : 0;
    if (node.id) {
        PWSP_NODE(module, node.id)->task = info;
    }
    for (uint32_t i = 0; node.id && i < info->after_count; i++) {
        PWSP_NODE(module, info->after[i])->is_waited_for = true;
    }
    return node;
}
