// Modules and programs as text, for people, golden tests and error messages.

#include "../base/text.h"
#include "program.h"

#include <inttypes.h>

// -- places ---------------------------------------------------------------------------------------

static void pwsp_print_scalar(ptowsp_type type, uint64_t value, ptowsp_text text) {
    if (type == PTOWSP_TYPE_U64) {
        pwsp_text_format(text, "%" PRIu64, value);
    } else if (type == PTOWSP_TYPE_BOOL) {
        pwsp_text_format(text, "%s", value ? "true" : "false");
    } else {
        pwsp_text_format(text, "%" PRId64, (int64_t)value);
    }
}

// The variables around a place, outermost first: "b = 3, h = 1".
static void pwsp_print_variables(const ptowsp_program *program, const uint32_t *path,
                                 uint32_t count, const uint64_t *cells, ptowsp_text text) {
    uint32_t shown = 0;
    for (uint32_t i = count; i > 0; i--) {
        const pwsp_place *place = PWSP_PLACE_AT(program, path[i - 1]);
        for (uint32_t j = 0; j < place->param_count; j++) {
            const pwsp_param *param =
                PWSP_PROGRAM_AT(program, params, pwsp_param, place->first_param + j);
            pwsp_text_format(text, "%s%s = ", shown++ ? ", " : "", param->name);
            pwsp_print_scalar(param->type, cells[param->cell], text);
        }
        if (place->variable && i > 1) {  // the loop is around, not the place itself
            pwsp_text_format(text, "%s%s = %" PRId64, shown++ ? ", " : "", place->name,
                             (int64_t)cells[place->variable]);
        }
    }
}

PWSP_INTERNAL void pwsp_program_print_place(const ptowsp_program *program, uint32_t node,
                                            const uint64_t *cells, ptowsp_text text) {
    uint32_t path[PTOWSP_MODULE_NEST_MAX + 2];
    uint32_t count = 0, shown = 0;
    for (uint32_t at = node; at; at = PWSP_PLACE_AT(program, at)->parent) {
        path[count++] = at;
    }
    for (size_t length = 0; shown < count; shown++) {
        length += strlen(PWSP_PLACE_AT(program, path[shown])->step) + 1;
        if (shown > 0 && length > PWSP_PLACE_TEXT_MAX) {
            pwsp_text_format(text, "%s/%s", PWSP_PLACE_AT(program, path[count - 1])->step,
                             shown + 1 < count ? ".../" : "");
            break;
        }
    }
    for (uint32_t i = shown; i > 0; i--) {
        pwsp_text_format(text, "%s%s", PWSP_PLACE_AT(program, path[i - 1])->step, i > 1 ? "/" : "");
    }
    if (cells) {
        char variables[PWSP_VARIABLES_TEXT_MAX + 1];
        ptowsp_text_buffer buffer = {variables, sizeof variables, 0};
        pwsp_print_variables(program, path, count, cells, ptowsp_text_to_buffer(&buffer));
        pwsp_text_format(text, "%s%s%s%s", buffer.length ? " (" : "", variables,
                         buffer.length < sizeof variables ? "" : "...", buffer.length ? ")" : "");
    }
}

// -- modules --------------------------------------------------------------------------------------

static void pwsp_print_size(int64_t size, ptowsp_text text) {
    if (size == PTOWSP_DYNAMIC) {
        pwsp_text_format(text, "?");
    } else {
        pwsp_text_format(text, "%" PRId64, size);
    }
}

static void pwsp_print_axes(const ptowsp_module *m, ptowsp_text text) {
    for (uint32_t i = 1; i < m->axes.count; i++) {
        const pwsp_axis_info *axis = PWSP_AXIS(m, i);
        if (axis->declared != i) {
            continue;  // a row of another
        }
        pwsp_text_format(text, "axis %s ", axis->name);
        switch (axis->kind) {
        case PWSP_AXIS_DENSE: pwsp_text_format(text, "%" PRId64 "\n", axis->size); break;
        case PWSP_AXIS_DYNAMIC: pwsp_text_format(text, "dynamic\n"); break;
        case PWSP_AXIS_RAGGED: pwsp_text_format(text, "ragged\n"); break;
        case PWSP_AXIS_SPARSE: pwsp_text_format(text, "sparse\n"); break;
        }
    }
}

static const char *pwsp_direction_name(ptowsp_direction direction) {
    return direction == PTOWSP_IN ? "in" : direction == PTOWSP_OUT ? "out" : "inout";
}

static void pwsp_print_kernels(const ptowsp_module *m, ptowsp_text text) {
    for (uint32_t i = 1; i < m->kernels.count; i++) {
        const pwsp_kernel_info *kernel = PWSP_KERNEL(m, i);
        pwsp_text_format(text, "kernel %s(axes %u", kernel->name, kernel->axis_count);
        for (uint32_t j = 0; j < kernel->tile_count; j++) {
            const pwsp_tile_info *tile = &kernel->tiles[j];
            pwsp_text_format(text, ", %s %s %s ", pwsp_direction_name(tile->direction), tile->name,
                             ptowsp_dtype_name(tile->dtype));
            pwsp_print_size(tile->rows, text);
            pwsp_text_format(text, " x ");
            pwsp_print_size(tile->cols, text);
        }
        for (uint32_t j = 0; j < kernel->scalar_count; j++) {
            pwsp_text_format(text, ", %s %s", kernel->scalars[j].name,
                             pwsp_type_name(kernel->scalars[j].type));
        }
        pwsp_text_format(text, ") %s", kernel->unit == PTOWSP_UNIT_CUBE ? "cube" : "vector");
        if (kernel->code) {
            pwsp_text_format(text, ", %u instructions", kernel->code->insn_count);
        } else if (kernel->cost) {
            pwsp_text_format(text, ", cycles by a cost function");
        } else if (kernel->cycles) {
            pwsp_text_format(text, ", %" PRIu64 " cycles", kernel->cycles);
        }
        pwsp_text_format(text, "%s\n", kernel->fn || kernel->code ? "" : ", time only");
    }
}

static void pwsp_print_declarations(const ptowsp_module *m, ptowsp_text text) {
    pwsp_text_format(text, "module %s\n", m->name);
    pwsp_print_axes(m, text);
    for (uint32_t i = 1; i < m->symbols.count; i++) {
        if (PWSP_SYMBOL(m, i)->name) {  // else it is what the module's error is about
            pwsp_text_format(text, "symbol %s\n", PWSP_SYMBOL(m, i)->name);
        }
    }
    for (uint32_t i = 1; i < m->arrays.count; i++) {
        if (PWSP_ARRAY(m, i)->name && !PWSP_ARRAY(m, i)->is_lengths) {
            pwsp_text_format(text, "array %s %s\n", PWSP_ARRAY(m, i)->name,
                             ptowsp_dtype_name(PWSP_ARRAY(m, i)->dtype));
        }
    }
    for (uint32_t i = 1; i < m->tensors.count; i++) {
        const ptowsp_tensor_desc *tensor = PWSP_TENSOR(m, i);
        if (!tensor->name) {
            continue;
        }
        pwsp_text_format(text, "tensor %s %s [", tensor->name, ptowsp_dtype_name(tensor->dtype));
        for (uint32_t j = 0; j < tensor->rank; j++) {
            pwsp_text_format(text, "%s", j ? ", " : "");
            pwsp_print_size(tensor->shape[j], text);
        }
        pwsp_text_format(text, "] %s\n", ptowsp_location_name(tensor->location));
    }
    pwsp_print_kernels(m, text);
}

// `is_open`: the size of the tile is the view's, and not known from elsewhere.
static void pwsp_print_view(const ptowsp_module *m, const pwsp_view_info *view, bool is_open,
                            ptowsp_text text) {
    const ptowsp_tensor_desc *tensor = PWSP_TENSOR(m, view->tensor);
    pwsp_text_format(text, "%s", tensor->name);
    uint32_t lead = tensor->rank > 2 ? tensor->rank - 2 : 0;
    for (uint32_t i = 0; i < lead; i++) {
        pwsp_text_format(text, "%s", i ? ", " : "[");
        pwsp_exprs_print(&m->exprs, view->index[i], text);
    }
    pwsp_text_format(text, "%s", lead ? "]" : "");
    if (view->row || view->col) {
        pwsp_text_format(text, " at (");
        if (view->row) {
            pwsp_exprs_print(&m->exprs, view->row, text);
        } else {
            pwsp_text_format(text, "0");
        }
        pwsp_text_format(text, ", ");
        if (view->col) {
            pwsp_exprs_print(&m->exprs, view->col, text);
        } else {
            pwsp_text_format(text, "0");
        }
        pwsp_text_format(text, ")");
    }
    const int64_t sizes[2] = {view->rows, view->cols};
    for (uint32_t i = 0; is_open && i < 2; i++) {
        pwsp_text_format(text, "%s", i ? " x " : " of ");
        if (sizes[i]) {
            pwsp_text_format(text, "%" PRId64, sizes[i]);
        } else {
            pwsp_text_format(text, "edge");  // as far as the tensor goes
        }
    }
}

static void pwsp_print_exprs(const ptowsp_module *m, const uint32_t *exprs, uint32_t count,
                             ptowsp_text text) {
    pwsp_text_format(text, "(");
    for (uint32_t i = 0; i < count; i++) {
        pwsp_text_format(text, "%s", i ? ", " : "");
        pwsp_exprs_print(&m->exprs, exprs[i], text);
    }
    pwsp_text_format(text, ")");
}

static void pwsp_print_task(const ptowsp_module *m, uint32_t id, ptowsp_text text) {
    const pwsp_task_info *task = PWSP_NODE(m, id)->task;
    const pwsp_kernel_info *kernel = PWSP_KERNEL(m, task->kernel);
    pwsp_print_exprs(m, task->axes, kernel->axis_count, text);
    for (uint32_t i = 0; i < kernel->tile_count; i++) {
        const pwsp_tile_info *tile = &kernel->tiles[i];
        bool is_open = tile->rows == PTOWSP_DYNAMIC || tile->cols == PTOWSP_DYNAMIC;
        pwsp_text_format(text, " %s = ", tile->name);
        pwsp_print_view(m, &task->views[i], is_open, text);
    }
    for (uint32_t i = 0; i < kernel->scalar_count; i++) {
        pwsp_text_format(text, " %s = ", kernel->scalars[i].name);
        pwsp_exprs_print(&m->exprs, task->scalars[i], text);
    }
    for (uint32_t i = 0; i < task->tag_count; i++) {
        pwsp_text_format(text, " tag %s = ", task->tags[i].name);
        pwsp_exprs_print(&m->exprs, task->tags[i].value, text);
    }
    for (uint32_t i = 0; i < task->after_count; i++) {
        pwsp_text_format(text, "%s node %u", i ? "," : " after", task->after[i]);
    }
    if (PWSP_NODE(m, id)->is_waited_for) {
        pwsp_text_format(text, " as node %u", id);
    }
}

// What follows the step of a node on its line.
static void pwsp_print_node(const ptowsp_module *m, uint32_t id, ptowsp_text text) {
    const pwsp_node *node = PWSP_NODE(m, id);
    switch (node->kind) {
    case PWSP_NODE_WORKLOAD:
        for (uint32_t i = 0; i < node->param_count; i++) {
            const pwsp_variable_info *param = PWSP_VARIABLE(m, node->first_param + i);
            pwsp_text_format(text, "%s%s %s%s", i ? ", " : "(", param->name,
                             pwsp_type_name(param->type), i + 1 == node->param_count ? ")" : "");
        }
        break;
    case PWSP_NODE_PARALLEL:
    case PWSP_NODE_FOR_EACH:
    case PWSP_NODE_SELECT:
        pwsp_text_format(text, " in %s", PWSP_AXIS(m, node->axis)->name);
        if (PWSP_AXIS(m, node->axis)->row) {
            pwsp_text_format(text, "[");
            pwsp_exprs_print(&m->exprs, PWSP_AXIS(m, node->axis)->row, text);
            pwsp_text_format(text, "]");
        }
        break;
    case PWSP_NODE_WHEN:
        pwsp_text_format(text, " ");
        pwsp_exprs_print(&m->exprs, node->expr, text);
        break;
    case PWSP_NODE_TASK: pwsp_print_task(m, id, text); break;
    case PWSP_NODE_CALL: pwsp_print_exprs(m, node->call->args, node->call->arg_count, text); break;
    case PWSP_NODE_SLOT_SET:
        pwsp_text_format(text, " = ");
        pwsp_exprs_print(&m->exprs, node->expr, text);
        break;
    case PWSP_NODE_SLOT_LOAD:
        pwsp_text_format(text, " = ");
        pwsp_print_view(m, node->view, node->view->rows != 1 || node->view->cols != 1, text);
        if (node->expr || node->col) {
            uint32_t cells[2] = {node->expr, node->col};
            pwsp_text_format(text, " element (");
            for (uint32_t i = 0; i < 2; i++) {
                if (cells[i]) {
                    pwsp_exprs_print(&m->exprs, cells[i], text);
                } else {
                    pwsp_text_format(text, "0");
                }
                pwsp_text_format(text, "%s", i ? ")" : ", ");
            }
        }
        break;
    case PWSP_NODE_OTHERWISE:
    case PWSP_NODE_COMBINE:
    case PWSP_NODE_SEQUENCE:
    case PWSP_NODE_NONE: break;
    }
}

void ptowsp_module_print(const ptowsp_module *module, ptowsp_text text) {
    pwsp_print_declarations(module, text);
    for (uint32_t id = 1; id < module->nodes.count; id++) {  // nodes are in the order of the tree
        uint32_t depth = 0;
        for (uint32_t at = PWSP_NODE(module, id)->parent; at; at = PWSP_NODE(module, at)->parent) {
            depth++;
        }
        pwsp_text_format(text, "%*s%s", (int)depth * 2, "", depth ? "" : "workload ");
        pwsp_module_print_step(module, id, text);
        pwsp_print_node(module, id, text);
        pwsp_text_format(text, "\n");
    }
    if (module->status != PTOWSP_OK) {
        pwsp_text_format(text, "error %s: %s\n", ptowsp_status_name(module->status), module->text);
    }
}

// -- programs -------------------------------------------------------------------------------------

static void pwsp_print_cell(const ptowsp_program *p, uint32_t cell, ptowsp_text text) {
    if (cell == 0) {
        pwsp_text_format(text, "0");
    } else if (cell < p->first_arg) {
        pwsp_text_format(text, "slot[%u]", cell - p->first_slot);
    } else if (cell < p->first_variable) {
        pwsp_text_format(text, "args[%u]", cell - p->first_arg);
    } else if (cell < p->first_entry) {
        pwsp_text_format(text, "v%u", cell - p->first_variable);
    } else if (cell < p->first_symbol) {
        pwsp_text_format(text, "entry(v%u)", cell - p->first_entry);
    } else if (cell < p->first_size) {
        pwsp_text_format(
            text, "%s",
            PWSP_PROGRAM_AT(p, symbols, pwsp_symbol_info, cell - p->first_symbol)->name);
    } else if (cell < p->first_temp) {
        pwsp_text_format(text, "size(%s)",
                         PWSP_PROGRAM_AT(p, axes, pwsp_axis_info, cell - p->first_size)->name);
    } else if (cell < p->first_const) {
        pwsp_text_format(text, "t%u", cell - p->first_temp);
    } else {
        pwsp_text_format(text, "%" PRId64,
                         (int64_t)*PWSP_PROGRAM_AT(p, consts, uint64_t, cell - p->first_const));
    }
}

static const char *pwsp_opcode_name(pwsp_opcode opcode) {
    switch (opcode) {
#define PWSP_OPCODE_NAME(name, result)                                                             \
    case PWSP_OPCODE_##name: return #name;
        PWSP_OPCODES(PWSP_OPCODE_NAME)
#undef PWSP_OPCODE_NAME
    case PWSP_OPCODE_READ: return "READ";
    case PWSP_OPCODE_SKIP: return "SKIP";
    case PWSP_OPCODE_SKIP_0: return "SKIP_0";
    case PWSP_OPCODE_SKIP_1: return "SKIP_1";
    }
    return "";
}

static void pwsp_print_instruction(const ptowsp_program *p, uint32_t i, ptowsp_text text) {
    const pwsp_instruction *at = PWSP_PROGRAM_AT(p, instructions, pwsp_instruction, i);
    uint32_t operands[3] = {at->a, at->b, at->c};
    pwsp_text_format(text, "  %3u  %-6s", i, pwsp_opcode_name((pwsp_opcode)at->opcode));
    switch ((pwsp_opcode)at->opcode) {
    case PWSP_OPCODE_SKIP_0:
    case PWSP_OPCODE_SKIP_1:
        pwsp_text_format(text, " ");
        pwsp_print_cell(p, at->a, text);
        pwsp_text_format(text, " -> %u\n", at->c);
        return;
    case PWSP_OPCODE_SKIP: pwsp_text_format(text, " -> %u\n", at->c); return;
    case PWSP_OPCODE_READ:
        pwsp_text_format(text, " ");
        pwsp_print_cell(p, at->out, text);
        pwsp_text_format(text, " = %s[", PWSP_PROGRAM_AT(p, arrays, pwsp_array_info, at->c)->name);
        pwsp_print_cell(p, at->a, text);
        pwsp_text_format(text, "]\n");
        return;
    default: break;
    }
    pwsp_text_format(text, " ");
    pwsp_print_cell(p, at->out, text);
    pwsp_text_format(text, " =");
    uint32_t count = at->opcode == PWSP_OPCODE_SELECT                                  ? 3
                     : at->opcode >= PWSP_OPCODE_NEG && at->opcode <= PWSP_OPCODE_BOOL ? 1
                                                                                       : 2;
    for (uint32_t j = 0; j < count; j++) {
        pwsp_text_format(text, "%s", j ? ", " : " ");
        pwsp_print_cell(p, operands[j], text);
    }
    pwsp_text_format(text, "\n");
}

static void pwsp_print_code(const ptowsp_program *p, const pwsp_code *code, ptowsp_text text) {
    if (code->begin != code->end) {
        pwsp_text_format(text, "{%u..%u} ", code->begin, code->end - 1);
    }
    pwsp_print_cell(p, code->cell, text);
}

static void pwsp_print_codes(const ptowsp_program *p, uint32_t first, uint32_t count,
                             ptowsp_text text) {
    for (uint32_t i = 0; i < count; i++) {
        pwsp_text_format(text, "%s", i ? ", " : "");
        pwsp_print_code(p, PWSP_PROGRAM_AT(p, codes, pwsp_code, first + i), text);
    }
}

static void pwsp_print_tile_view(const ptowsp_program *p, const pwsp_tile_view *view,
                                 ptowsp_text text) {
    pwsp_text_format(text, "%s[",
                     PWSP_PROGRAM_AT(p, tensors, ptowsp_tensor_desc, view->tensor)->name);
    for (uint32_t i = 0; i < view->lead; i++) {
        pwsp_print_code(p, &view->index[i], text);
        pwsp_text_format(text, ", ");
    }
    pwsp_print_code(p, &view->row, text);
    pwsp_text_format(text, ", ");
    pwsp_print_code(p, &view->col, text);
    pwsp_text_format(text, "]");
}

static void pwsp_print_load(const ptowsp_program *p, const pwsp_slot_op *load, ptowsp_text text) {
    pwsp_print_tile_view(p, &load->view, text);
    if (load->has_row || load->has_col) {
        pwsp_text_format(text, " element (");
        pwsp_print_code(p, &load->row, text);
        pwsp_text_format(text, ", ");
        pwsp_print_code(p, &load->col, text);
        pwsp_text_format(text, ")");
    }
}

static void pwsp_print_task_op(const ptowsp_program *p, const pwsp_task_op *task,
                               ptowsp_text text) {
    pwsp_text_format(text, "(");
    pwsp_print_codes(p, task->first_code, task->axis_count + task->scalar_count, text);
    pwsp_text_format(text, ")");
    for (uint32_t i = 0; i < task->view_count; i++) {
        pwsp_text_format(text, " ");
        pwsp_print_tile_view(p, PWSP_PROGRAM_AT(p, views, pwsp_tile_view, task->first_view + i),
                             text);
    }
    const pwsp_code *keys[3] = {&task->dispatch, &task->priority, &task->stream};
    const char names[3][12] = {"dispatch", "priority", "stream"};
    for (uint32_t i = 0; i < 3; i++) {
        if (keys[i]->cell) {
            pwsp_text_format(text, " %s ", names[i]);
            pwsp_print_code(p, keys[i], text);
        }
    }
}

static void pwsp_print_op(const ptowsp_program *p, const pwsp_op *op, ptowsp_text text) {
    const char *step = PWSP_PLACE_AT(p, op->node)->step;
    switch (op->kind) {
    case PWSP_OP_LOOP: {
        const pwsp_loop *loop = PWSP_PROGRAM_AT(p, loops, pwsp_loop, op->at);
        pwsp_text_format(text, "%s: ", step);
        pwsp_print_cell(p, loop->cell, text);
        pwsp_text_format(text, " in %s", PWSP_PROGRAM_AT(p, axes, pwsp_axis_info, loop->csr)->name);
        if (loop->is_row) {
            pwsp_text_format(text, " row ");
            pwsp_print_code(p, &loop->row, text);
        }
        pwsp_text_format(text, "%s -> %u", loop->scope == PWSP_SCOPE_SAME ? "" : ", scope",
                         op->target);
        break;
    }
    case PWSP_OP_LOOP_END: pwsp_text_format(text, "end of %s -> %u", step, op->target); break;
    case PWSP_OP_SCOPE: pwsp_text_format(text, "%s", step); break;
    case PWSP_OP_SCOPE_END: pwsp_text_format(text, "end of %s", step); break;
    case PWSP_OP_TASK:
        pwsp_text_format(text, "%s", step);
        pwsp_print_task_op(p, PWSP_PROGRAM_AT(p, tasks, pwsp_task_op, op->at), text);
        break;
    case PWSP_OP_BRANCH:
        pwsp_text_format(text, "when ");
        pwsp_print_code(p, &PWSP_PROGRAM_AT(p, branches, pwsp_branch, op->at)->condition, text);
        pwsp_text_format(text, ", else -> %u", op->target);
        break;
    case PWSP_OP_JUMP: pwsp_text_format(text, "-> %u", op->target); break;
    case PWSP_OP_SLOT_SET:
        pwsp_text_format(text, "%s = ", step);
        pwsp_print_code(p, &PWSP_PROGRAM_AT(p, slot_ops, pwsp_slot_op, op->at)->value, text);
        break;
    case PWSP_OP_SLOT_LOAD:
        pwsp_text_format(text, "%s = ", step);
        pwsp_print_load(p, PWSP_PROGRAM_AT(p, slot_ops, pwsp_slot_op, op->at), text);
        break;
    case PWSP_OP_CALL: {
        const pwsp_call_op *call = PWSP_PROGRAM_AT(p, calls, pwsp_call_op, op->at);
        pwsp_text_format(text, "%s(", step);
        pwsp_print_codes(p, call->first_code, call->arg_count, text);
        pwsp_text_format(text, ") -> %u", op->target);
        break;
    }
    case PWSP_OP_RETURN: pwsp_text_format(text, "return"); break;
    case PWSP_OP_RESET: pwsp_text_format(text, "reset edges"); break;
    }
    pwsp_text_format(text, "\n");
}

const char *ptowsp_program_kernel_name(const ptowsp_program *program, uint32_t kernel) {
    return kernel && kernel < program->kernels.count
               ? PWSP_PROGRAM_AT(program, kernels, pwsp_kernel_info, kernel)->name
               : NULL;
}

void ptowsp_program_print_place(const ptowsp_program *program, uint32_t node, ptowsp_text text) {
    if (node < program->places.count) {
        pwsp_program_print_place(program, node, NULL, text);
    }
}

void ptowsp_program_print(const ptowsp_program *program, ptowsp_text text) {
    const ptowsp_program *p = program;
    pwsp_text_format(text, "program of module %s\n", p->name);
    for (uint32_t i = 0; i < p->ops.count; i++) {
        pwsp_text_format(text, "  %3u  ", i);
        pwsp_print_op(p, PWSP_OP_AT(p, i), text);
    }
    if (p->instructions.count) {
        pwsp_text_format(text, "expressions\n");
    }
    for (uint32_t i = 0; i < p->instructions.count; i++) {
        pwsp_print_instruction(p, i, text);
    }
    text.write(text.user, p->schedule_text, strlen(p->schedule_text));
}
