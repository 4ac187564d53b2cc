// Modules as text, for people and golden tests.

#include "../workload/module.h"

#include "../base/text.h"
#include "../kernel/body_text.h"

#include <inttypes.h>

// -- declarations ---------------------------------------------------------------------------------

static void pwsp_print_size(int64_t size, ptowsp_output text) {
    pwsp_text_format(text, size == PTOWSP_DYNAMIC ? "?" : "%" PRId64, size);
}

// An axis where it is used: a plan has up to three of one name.
static void pwsp_print_axis_name(const pwsp_axis_info *axis, ptowsp_output text) {
    pwsp_text_format(text, "%s%s",
                     axis->kind == PWSP_AXIS_PLAN_MERGES  ? "merges of "
                     : axis->kind == PWSP_AXIS_PLAN_LANES ? "lanes of "
                                                          : "",
                     pwsp_quoted(axis->name).text);
}

// Lengths that expressions read have a data type.
static void pwsp_print_axes(const ptowsp_module *m, ptowsp_output text) {
    static const char kinds[][20] = {"",     "dynamic",          "ragged",         "sparse",
                                     "plan", "plan, its merges", "plan, its lanes"};
    for (uint32_t i = 1; i < m->axes.count; i++) {
        const pwsp_axis_info *axis = PWSP_AXIS(m, i);
        if (axis->declared != i) {
            continue;  // a row of another
        }
        pwsp_text_format(text, "axis %s %s", pwsp_quoted(axis->name).text, kinds[axis->kind]);
        if (axis->kind == PWSP_AXIS_DENSE) {
            pwsp_text_format(text, "%" PRId64, axis->size);
        } else if (axis->kind == PWSP_AXIS_RAGGED && PWSP_ARRAY(m, axis->array)->dtype) {
            pwsp_text_format(text, " %s", ptowsp_dtype_name(PWSP_ARRAY(m, axis->array)->dtype));
        }
        pwsp_text_format(text, "\n");
    }
}

PWSP_INTERNAL const char *pwsp_direction_name(ptowsp_direction direction) {
    return direction == PTOWSP_IN ? "in" : direction == PTOWSP_OUT ? "out" : "inout";
}

// A scalar may be called as the directions of tiles are.
static void pwsp_print_scalar_param(const ptowsp_scalar_param *scalar, ptowsp_output text) {
    bool is_direction = false;
    for (int i = PTOWSP_IN; i <= PTOWSP_INOUT; i++) {
        is_direction =
            is_direction || strcmp(scalar->name, pwsp_direction_name((ptowsp_direction)i)) == 0;
    }
    pwsp_text_format(text, is_direction ? ", \"%s\" %s" : ", %s %s",
                     is_direction ? scalar->name : pwsp_quoted(scalar->name).text,
                     pwsp_type_name(scalar->type));
}

static void pwsp_print_kernels(const ptowsp_module *m, ptowsp_output text) {
    for (uint32_t i = 1; i < m->kernels.count; i++) {
        const pwsp_kernel_info *kernel = PWSP_KERNEL(m, i);
        if (kernel->variant_count) {
            continue;  // a choice: tasks have its variants, under conditions
        }
        pwsp_text_format(text, "kernel %s(axes %u", pwsp_quoted(kernel->name).text,
                         kernel->axis_count);
        for (uint32_t j = 0; j < kernel->tile_count; j++) {
            const ptowsp_tile_param *tile = &kernel->tiles[j];
            pwsp_text_format(text, ", %s %s %s ", pwsp_direction_name(tile->direction),
                             pwsp_quoted(tile->name).text, ptowsp_dtype_name(tile->dtype));
            pwsp_print_size(tile->rows, text);
            pwsp_text_format(text, " x ");
            pwsp_print_size(tile->cols, text);
        }
        for (uint32_t j = 0; j < kernel->scalar_count; j++) {
            pwsp_print_scalar_param(&kernel->scalars[j], text);
        }
        pwsp_text_format(text, ") %s", ptowsp_unit_name(kernel->unit));
        if (kernel->code) {
            pwsp_text_format(text, ", %u instructions", kernel->code->insn_count);
        } else if (kernel->cost) {
            pwsp_text_format(text, ", cycles by a cost function");
        } else if (kernel->cycles) {
            pwsp_text_format(text, ", %" PRIu64 " cycles", kernel->cycles);
        }
        if (kernel->bytes == PTOWSP_TILE_BYTES) {
            pwsp_text_format(text, ", bytes of its tiles");
        } else if (kernel->bytes) {
            pwsp_text_format(text, ", %" PRIu64 " bytes", kernel->bytes);
        }
        const bool is_link = kernel->unit == PTOWSP_UNIT_LINK;
        if (is_link) {
            pwsp_collective_info_print(m, &kernel->collective, text);
        }
        pwsp_text_format(text, "%s\n",
                         kernel->fn || kernel->code || is_link ? ""
                         : kernel->pto                         ? ", a PTO-ISA source"
                                                               : ", time only");
        if (kernel->code) {
            pwsp_body_write(kernel->body, text);
        }
        if (kernel->rule) {
            pwsp_text_format(text, "rule %s \"%s\"\n", pwsp_quoted(kernel->name).text,
                             kernel->rule);
        }
    }
}

static void pwsp_print_declarations(const ptowsp_module *m, ptowsp_output text) {
    pwsp_text_format(text, "module %s", pwsp_quoted(m->name).text);
    if (m->slot_count != PTOWSP_SLOT_COUNT) {
        pwsp_text_format(text, " slots %u", m->slot_count);
    }
    pwsp_text_format(text, "\n");
    pwsp_mesh_print(m, text);
    pwsp_print_axes(m, text);
    for (uint32_t i = 1; i < m->symbols.count; i++) {
        if (PWSP_SYMBOL(m, i)->name) {  // otherwise the module's error is about it
            pwsp_text_format(text, "symbol %s\n", pwsp_quoted(PWSP_SYMBOL(m, i)->name).text);
        }
    }
    for (uint32_t i = 1; i < m->arrays.count; i++) {
        const pwsp_array_info *array = PWSP_ARRAY(m, i);
        if (array->name && !array->is_lengths && !array->plan_axis) {
            pwsp_text_format(text, "array %s %s\n", pwsp_quoted(array->name).text,
                             ptowsp_dtype_name(array->dtype));
        }
    }
    for (uint32_t i = 1; i < m->tensors.count; i++) {
        const ptowsp_tensor_desc *tensor = PWSP_TENSOR(m, i);
        if (!tensor->name) {
            continue;
        }
        pwsp_text_format(text, "tensor %s %s [", pwsp_quoted(tensor->name).text,
                         ptowsp_dtype_name(tensor->dtype));
        const pwsp_transient_info *transient = pwsp_module_transient(m, i);
        const ptowsp_mesh_layout layout = pwsp_tensor_layout(m, i);
        for (uint32_t j = 0; j < tensor->rank; j++) {
            pwsp_text_format(text, "%s", j ? ", " : "");
            if (transient && transient->sizes[j]) {
                ptowsp_expr size = {(ptowsp_module *)(uintptr_t)m, transient->sizes[j]};
                ptowsp_expr_print(size, text);
            } else {
                pwsp_print_size(layout.shape[j], text);
            }
        }
        pwsp_text_format(text, "] %s%s", ptowsp_location_name(tensor->location),
                         transient ? " transient" : "");
        pwsp_spreads_print(m, i, text);
        pwsp_text_format(text, "\n");
    }
    pwsp_print_kernels(m, text);
}

// -- the tree -------------------------------------------------------------------------------------

static void pwsp_print_expr(const ptowsp_module *m, const char *before, uint32_t expr,
                            ptowsp_output text) {
    pwsp_text_put(text, before);
    pwsp_exprs_print(&m->exprs, expr, text);
}

// 0 where none is given; a 0 that is given is in parentheses, as it is an expression of the program.
static void pwsp_print_offset(const ptowsp_module *m, uint32_t expr, ptowsp_output text) {
    bool is_zero =
        expr && m->exprs.nodes[expr].op == PWSP_EXPR_CONST && m->exprs.nodes[expr].value == 0;
    pwsp_text_format(text, is_zero ? "(" : expr ? "" : "0");
    if (expr) {
        pwsp_exprs_print(&m->exprs, expr, text);
    }
    pwsp_text_format(text, is_zero ? ")" : "");
}

// A row and a column, " at (1, 2)", if any is given.
static void pwsp_print_pair(const ptowsp_module *m, const char *before, uint32_t row, uint32_t col,
                            ptowsp_output text) {
    if (row || col) {
        pwsp_text_put(text, before);
        pwsp_print_offset(m, row, text);
        pwsp_text_put(text, ", ");
        pwsp_print_offset(m, col, text);
        pwsp_text_put(text, ")");
    }
}

// `is_open`: the size of the tile is the view's, and not known from elsewhere.
static void pwsp_print_view(const ptowsp_module *m, const pwsp_view_info *view, bool is_open,
                            ptowsp_output text) {
    const ptowsp_tensor_desc *tensor = PWSP_TENSOR(m, view->tensor);
    pwsp_text_put(text, pwsp_quoted(tensor->name).text);
    uint32_t lead = tensor->rank > 2 ? tensor->rank - 2 : 0;
    for (uint32_t i = 0; i < lead; i++) {
        pwsp_print_expr(m, i ? ", " : "[", view->index[i], text);
    }
    pwsp_text_format(text, "%s", lead ? "]" : "");
    pwsp_print_pair(m, " at (", view->row, view->col, text);
    const uint32_t limits[2] = {view->row_count, view->col_count};
    for (uint32_t i = 0; i < 2; i++) {
        if (limits[i]) {
            pwsp_print_expr(m, " up to ", limits[i], text);
            pwsp_text_format(text, "%s", i ? " columns" : " rows");
        }
    }
    const int64_t sizes[2] = {view->rows, view->cols};
    for (uint32_t i = 0; is_open && i < 2; i++) {
        pwsp_text_put(text, i ? " x " : " of ");
        pwsp_text_format(text, sizes[i] ? "%" PRId64 : "edge", sizes[i]);  // to the tensor's edge
    }
}

static void pwsp_print_exprs(const ptowsp_module *m, const uint32_t *exprs, uint32_t count,
                             ptowsp_output text) {
    pwsp_text_format(text, "(");
    for (uint32_t i = 0; i < count; i++) {
        pwsp_print_expr(m, i ? ", " : "", exprs[i], text);
    }
    pwsp_text_format(text, ")");
}

// The explicit edges that end at a task or pipeline, and its own name where edges begin at it.
static void pwsp_print_after(const ptowsp_module *m, uint32_t id, ptowsp_output text) {
    const pwsp_task_info *task = PWSP_NODE(m, id)->task;
    for (uint32_t i = 0; i < task->after_count; i++) {
        pwsp_text_format(text, "%s node %u", i ? "," : " after", task->after[i]);
    }
    if (PWSP_NODE(m, id)->is_waited_for) {
        pwsp_text_format(text, " as node %u", id);
    }
}

static void pwsp_print_task(const ptowsp_module *m, const pwsp_task_info *task,
                            ptowsp_output text) {
    const pwsp_kernel_info *kernel = PWSP_KERNEL(m, task->kernel);
    pwsp_print_exprs(m, task->axes, kernel->axis_count, text);
    for (uint32_t i = 0; i < kernel->tile_count; i++) {
        const ptowsp_tile_param *tile = &kernel->tiles[i];
        bool is_open = tile->rows == PTOWSP_DYNAMIC || tile->cols == PTOWSP_DYNAMIC;
        pwsp_text_format(text, " %s = ", pwsp_quoted(tile->name).text);
        pwsp_print_view(m, &task->views[i], is_open, text);
    }
    for (uint32_t i = 0; i < kernel->scalar_count; i++) {
        pwsp_text_format(text, " %s = ", pwsp_quoted(kernel->scalars[i].name).text);
        pwsp_exprs_print(&m->exprs, task->scalars[i], text);
    }
    for (uint32_t i = 0; i < task->tag_count; i++) {
        pwsp_text_format(text, " tag %s = ", pwsp_quoted(task->tags[i].name).text);
        pwsp_exprs_print(&m->exprs, task->tags[i].value, text);
    }
}

// The axis of a process, and the channels that it consumes and produces.
static void pwsp_print_process(const ptowsp_module *m, const pwsp_node *process,
                               ptowsp_output text) {
    if (process->axis) {
        const char *name = process->variable ? PWSP_VARIABLE(m, process->variable)->name : "";
        pwsp_text_format(text, " replicas %s in ", pwsp_quoted(name).text);
        pwsp_print_axis_name(PWSP_AXIS(m, process->axis), text);
    }
    for (uint32_t is_produced = 0; is_produced < 2; is_produced++) {
        uint32_t shown = 0;
        for (uint32_t at = process->first_port; at; at = PWSP_PORT(m, at)->next) {
            const pwsp_port_info *port = PWSP_PORT(m, at);
            if (port->is_produced == (is_produced != 0)) {
                pwsp_text_format(text, "%s%s",
                                 shown++       ? ", "
                                 : is_produced ? " produces "
                                               : " consumes ",
                                 pwsp_quoted(PWSP_CHANNEL(m, port->channel)->name).text);
            }
        }
    }
}

// An expression, or without one a number.
static void pwsp_print_given(const ptowsp_module *m, const char *before, uint32_t expr,
                             uint64_t number, ptowsp_output text) {
    if (expr) {
        pwsp_print_expr(m, before, expr, text);
    } else {
        pwsp_text_format(text, "%s%" PRIu64, before, number);
    }
}

// The channels of a pipeline, each on a line of its own.
static void pwsp_print_channels(const ptowsp_module *m, uint32_t pipeline, uint32_t depth,
                                ptowsp_output text) {
    for (uint32_t i = PWSP_NODE(m, pipeline)->channel;
         i && i < m->channels.count && PWSP_CHANNEL(m, i)->pipeline == pipeline; i++) {
        const pwsp_channel_info *channel = PWSP_CHANNEL(m, i);
        pwsp_text_format(text, "%*s%s %s", (int)depth * 2, "",
                         channel->is_event ? "event" : "channel", pwsp_quoted(channel->name).text);
        if (!channel->is_event) {
            pwsp_print_given(m, " depth ", channel->depth_expr, channel->depth, text);
            pwsp_print_given(m, " latency ", channel->latency_expr, channel->latency, text);
        }
        pwsp_text_format(text, "\n");
    }
}

static void pwsp_print_params(const ptowsp_module *m, const pwsp_node *workload,
                              ptowsp_output text) {
    for (uint32_t i = 0; i < workload->param_count; i++) {
        const pwsp_variable_info *param = PWSP_VARIABLE(m, workload->first_param + i);
        pwsp_text_format(text, "%s%s %s%s", i ? ", " : "(", pwsp_quoted(param->name).text,
                         pwsp_type_name(param->type), i + 1 == workload->param_count ? ")" : "");
    }
}

// An axis of a loop, "in axis[row]".
static void pwsp_print_loop_axis(const ptowsp_module *m, uint32_t id, ptowsp_output text) {
    const pwsp_axis_info *axis = PWSP_AXIS(m, id);
    pwsp_text_put(text, " in ");
    pwsp_print_axis_name(axis, text);
    if (axis->row) {
        pwsp_print_expr(m, "[", axis->row, text);
        pwsp_text_put(text, "]");
    }
}

// A part of a node's line; names are in its step.
static void pwsp_print_part(const ptowsp_module *m, uint32_t id, char part, ptowsp_output text) {
    const pwsp_node *node = PWSP_NODE(m, id);
    switch (part) {
    case 'i': pwsp_print_loop_axis(m, node->axis, text); break;
    case '=': pwsp_text_put(text, " ="); break;
    case 'e': pwsp_print_expr(m, " ", node->expr, text); break;
    case '(': pwsp_print_exprs(m, node->call->args, node->call->arg_count, text); break;
    case 't': pwsp_print_exprs(m, &node->expr, 1, text); break;
    case 'V':
        pwsp_text_put(text, " ");
        pwsp_print_view(m, node->view, node->view->rows != 1 || node->view->cols != 1, text);
        break;
    case 'l': pwsp_print_pair(m, " element (", node->expr, node->col, text); break;
    case 'f':
        pwsp_text_format(text, " from %s", pwsp_quoted(PWSP_CHANNEL(m, node->channel)->name).text);
        break;
    case 'a': pwsp_print_after(m, id, text); break;
    case 'T': pwsp_print_task(m, node->task, text); break;
    case 'P': pwsp_print_process(m, node, text); break;
    case 'L':
        if (node->list) {
            pwsp_text_format(text, " of %u tasks", node->list->given.task_count);
        }
        break;
    default: break;
    }
}

void ptowsp_module_print(const ptowsp_module *module, ptowsp_output output) {
    PTOWSP_ASSERT(module);
    pwsp_print_declarations(module, output);
    for (uint32_t id = 1; id < module->nodes.count; id++) {  // nodes are in the order of the tree
        uint32_t depth = 0;
        for (uint32_t at = PWSP_NODE(module, id)->parent; at; at = PWSP_NODE(module, at)->parent) {
            depth++;
        }
        pwsp_text_format(output, "%*s%s", (int)depth * 2, "", depth ? "" : "workload ");
        const pwsp_node *node = PWSP_NODE(module, id);
        pwsp_module_print_step(module, id, output);
        pwsp_print_params(module, node, output);
        for (const char *part = pwsp_statement_form(node->kind); *part; part++) {
            pwsp_print_part(module, id, *part, output);
        }
        pwsp_text_format(output, "\n");
        if (node->kind == PWSP_NODE_PIPELINE) {
            pwsp_print_channels(module, id, depth + 1, output);
        }
    }
    if (module->status != PTOWSP_OK) {
        pwsp_text_format(output, "error %s: %s\n", ptowsp_status_name(module->status),
                         module->text);
    }
}
