// Programs as text, for people and golden tests.

#include "../base/text.h"
#include "../workload/program.h"

#include <inttypes.h>

// A cell, and the value of an expression with its instructions, as texts that formats take.
typedef struct pwsp_cell_text {
    char text[PTOWSP_NAME_MAX + 48];
} pwsp_cell_text;

static void pwsp_print_cell(const ptowsp_program *p, uint32_t cell, ptowsp_output text) {
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
        pwsp_text_format(text, "%s", p->symbols.items[cell - p->first_symbol].name);
    } else if (cell < p->first_temp) {
        pwsp_text_format(text, "size(%s)", p->axes.items[cell - p->first_size].name);
    } else if (cell < p->first_const) {
        pwsp_text_format(text, "t%u", cell - p->first_temp);
    } else {
        pwsp_text_format(text, "%" PRId64, (int64_t)p->consts.items[cell - p->first_const]);
    }
}

static pwsp_cell_text pwsp_cell(const ptowsp_program *p, uint32_t cell) {
    pwsp_cell_text out;
    ptowsp_output_buffer buffer = {out.text, sizeof out.text, 0};
    pwsp_print_cell(p, cell, ptowsp_output_to_buffer(&buffer));
    return out;
}

static pwsp_cell_text pwsp_value(const ptowsp_program *p, const pwsp_code *code) {
    pwsp_cell_text out;
    ptowsp_output_buffer buffer = {out.text, sizeof out.text, 0};
    ptowsp_output text = ptowsp_output_to_buffer(&buffer);
    if (code->begin != code->end) {
        pwsp_text_format(text, "{%u..%u} ", code->begin, code->end - 1);
    }
    pwsp_print_cell(p, code->cell, text);
    return out;
}

static const char pwsp_opcode_names[][16] = {
#define PWSP_OPCODE_NAME(name, result) #name,
    PWSP_OPCODES(PWSP_OPCODE_NAME) "READ", "SKIP", "SKIP_0", "SKIP_1"
#undef PWSP_OPCODE_NAME
};

static void pwsp_print_instruction(const ptowsp_program *p, uint32_t i, ptowsp_output text) {
    const pwsp_instruction *at = &p->instructions.items[i];
    uint32_t operands[3] = {at->a, at->b, at->c};
    pwsp_text_format(text, "  %3u  %-6s", i, pwsp_opcode_names[at->opcode]);
    switch ((pwsp_opcode)at->opcode) {
    case PWSP_OPCODE_SKIP_0:
    case PWSP_OPCODE_SKIP_1:
        pwsp_text_format(text, " %s -> %u\n", pwsp_cell(p, at->a).text, at->c);
        return;
    case PWSP_OPCODE_SKIP: pwsp_text_format(text, " -> %u\n", at->c); return;
    case PWSP_OPCODE_READ:
        pwsp_text_format(text, " %s = %s[%s]\n", pwsp_cell(p, at->out).text,
                         p->arrays.items[at->c].name, pwsp_cell(p, at->a).text);
        return;
    default: break;
    }
    pwsp_text_format(text, " %s =", pwsp_cell(p, at->out).text);
    uint32_t count = at->opcode == PWSP_OPCODE_SELECT                                  ? 3
                     : at->opcode >= PWSP_OPCODE_NEG && at->opcode <= PWSP_OPCODE_BOOL ? 1
                                                                                       : 2;
    for (uint32_t j = 0; j < count; j++) {
        pwsp_text_format(text, "%s%s", j ? ", " : " ", pwsp_cell(p, operands[j]).text);
    }
    pwsp_text_format(text, "\n");
}

static void pwsp_print_codes(const ptowsp_program *p, uint32_t first, uint32_t count,
                             ptowsp_output text) {
    for (uint32_t i = 0; i < count; i++) {
        pwsp_text_format(text, "%s%s", i ? ", " : "",
                         pwsp_value(p, &p->codes.items[first + i]).text);
    }
}

static void pwsp_print_tile_view(const ptowsp_program *p, const pwsp_tile_view *view,
                                 ptowsp_output text) {
    pwsp_text_format(text, "%s[", p->tensors.items[view->tensor].name);
    for (uint32_t i = 0; i < view->lead; i++) {
        pwsp_text_format(text, "%s, ", pwsp_value(p, &view->index[i]).text);
    }
    pwsp_text_format(text, "%s, %s]", pwsp_value(p, &view->row).text,
                     pwsp_value(p, &view->col).text);
    if (view->has_limit) {
        pwsp_text_format(text, " up to (%s, %s)", pwsp_value(p, &view->row_count).text,
                         pwsp_value(p, &view->col_count).text);
    }
}

static void pwsp_print_load(const ptowsp_program *p, const pwsp_slot_op *load, ptowsp_output text) {
    pwsp_print_tile_view(p, &load->view, text);
    if (load->row.expr || load->col.expr) {
        pwsp_text_format(text, " element (%s, %s)", pwsp_value(p, &load->row).text,
                         pwsp_value(p, &load->col).text);
    }
}

// The elements of a tile, as far as it is in the tensor; 0: they are not known.
static uint64_t pwsp_print_elements(const ptowsp_program *p, const pwsp_tile_view *view) {
    const ptowsp_tensor_desc *tensor = &p->tensors.items[view->tensor];
    const int64_t given[2] = {view->rows, view->cols};
    const bool is_moved[2] = {view->row.expr != 0, view->col.expr != 0};
    uint64_t elements = view->has_limit ? 0 : 1;
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t size = tensor->rank + i >= 2 ? tensor->shape[tensor->rank + i - 2] : 1;
        const bool is_known = size > 0 && (!is_moved[i] || given[i]);
        const int64_t least = given[i] && given[i] < size ? given[i] : size;
        elements = is_known ? elements * (uint64_t)least : 0;
    }
    return elements;
}

// The most bytes that a rank moves in a task of a collective, as in ptowsp_relayout_step.
static void pwsp_print_moved(const ptowsp_program *p, const pwsp_task_op *task,
                             ptowsp_output text) {
    const pwsp_kernel_info *kernel = &p->kernels.items[task->kernel];
    const uint64_t members = kernel->collective.members;
    const uint32_t which = kernel->collective.kind == PTOWSP_ALL_GATHER;  // the whole is `out`
    const uint64_t all = pwsp_print_elements(p, &p->views.items[task->first_view + which]);
    uint64_t moved = all - (members ? all / members : 0);
    switch (kernel->collective.kind) {
    case PTOWSP_ALL_REDUCE: moved *= 2; break;
    case PTOWSP_SLICE: moved = 0; break;
    case PTOWSP_BROADCAST:
    case PTOWSP_SEND: moved = all; break;
    default: break;
    }
    if (members && all && !kernel->collective.counts) {
        pwsp_text_format(text, ", moves %" PRIu64 " bytes",
                         moved * ptowsp_dtype_size(kernel->tiles[0].dtype));
    }
}

static void pwsp_print_task_op(const ptowsp_program *p, const pwsp_task_op *task,
                               ptowsp_output text) {
    pwsp_text_format(text, "(");
    pwsp_print_codes(p, task->first_code, task->axis_count + task->scalar_count, text);
    pwsp_text_format(text, ")");
    for (uint32_t i = 0; i < task->view_count; i++) {
        pwsp_text_format(text, " ");
        pwsp_print_tile_view(p, &p->views.items[task->first_view + i], text);
    }
    const pwsp_code *keys[3] = {&task->dispatch, &task->priority, &task->stream};
    const char names[3][12] = {"dispatch", "priority", "stream"};
    for (uint32_t i = 0; i < 3; i++) {
        if (keys[i]->cell) {
            pwsp_text_format(text, " %s %s", names[i], pwsp_value(p, keys[i]).text);
        }
    }
    if (p->kernels.items[task->kernel].unit == PTOWSP_UNIT_LINK) {
        pwsp_print_moved(p, task, text);
    }
}

// The tensors that a pipeline accesses, and a line for each channel and each process.
static void pwsp_print_pipeline_op(const ptowsp_program *p, const pwsp_pipeline_op *pipeline,
                                   uint32_t target, ptowsp_output text) {
    for (uint32_t i = 0; i < pipeline->task.view_count; i++) {
        const pwsp_tile_view *view = &p->views.items[pipeline->task.first_view + i];
        pwsp_text_format(text, "%s%s %s", i ? ", " : ": ",
                         !(view->access & PWSP_TILE_WRITTEN) ? "in"
                         : view->access & PWSP_TILE_READ     ? "inout"
                                                             : "out",
                         p->tensors.items[view->tensor].name);
    }
    pwsp_text_format(text, " -> %u", target);
    for (uint32_t i = pipeline->first_channel;
         i < pipeline->first_channel + pipeline->channel_count; i++) {
        const pwsp_channel_op *channel = &p->channels.items[i];
        pwsp_text_format(text, "\n         %s %u %s depth ",
                         channel->is_event ? "event" : "channel", i, channel->name);
        if (channel->has_depth) {
            pwsp_text_put(text, pwsp_value(p, &channel->depth_code).text);
        } else {
            pwsp_text_format(text, "%u", channel->depth);
        }
        if (channel->has_latency) {
            pwsp_text_format(text, " latency %s", pwsp_value(p, &channel->latency_code).text);
        } else {
            pwsp_text_format(text, " latency %" PRIu64, channel->latency);
        }
    }
    for (uint32_t i = pipeline->first_process;
         i < pipeline->first_process + pipeline->process_count; i++) {
        const pwsp_process_op *process = &p->processes.items[i];
        pwsp_text_format(text, "\n         process %u %s from %u", i, process->name,
                         process->first_op);
        if (process->index) {
            pwsp_text_format(text, " replicas %s in %s", pwsp_cell(p, process->index).text,
                             p->axes.items[process->axis].name);
        }
        for (uint32_t j = 0; j < process->port_count; j++) {
            const pwsp_port *port = &p->ports.items[process->first_port + j];
            pwsp_text_format(text, "%s %s %u%s", j ? "," : "",
                             port->is_produced ? "produces" : "consumes", port->channel,
                             port->is_closed_early ? " closes" : "");
        }
    }
}

static void pwsp_print_receive_op(const ptowsp_program *p, const pwsp_op *op, ptowsp_output text) {
    const pwsp_receive_op *receive = &p->receives.items[op->at];
    pwsp_text_format(text, "%s", PWSP_PLACE_AT(p, op->node)->step);
    if (!receive->is_wait) {
        pwsp_text_format(text, ": %s from %s, at the end -> %u", pwsp_cell(p, receive->cell).text,
                         p->channels.items[receive->channel].name, op->target);
    }
}

static void pwsp_print_op(const ptowsp_program *p, const pwsp_op *op, ptowsp_output text) {
    const char *step = PWSP_PLACE_AT(p, op->node)->step;
    switch (op->kind) {
    case PWSP_OP_LOOP: {
        const pwsp_loop *loop = &p->loops.items[op->at];
        pwsp_text_format(text, "%s: %s in %s", step, pwsp_cell(p, loop->cell).text,
                         p->axes.items[loop->csr].name);
        if (loop->is_row) {
            pwsp_text_format(text, " row %s", pwsp_value(p, &loop->row).text);
        }
        pwsp_text_format(text, "%s -> %u", loop->scope == PWSP_SCOPE_SAME ? "" : ", scope",
                         op->target);
        break;
    }
    case PWSP_OP_LOOP_END: pwsp_text_format(text, "end of %s -> %u", step, op->target); break;
    case PWSP_OP_SCOPE:
    case PWSP_OP_CLOSE:
    case PWSP_OP_LISTED: pwsp_text_put(text, step); break;
    case PWSP_OP_SCOPE_END:
    case PWSP_OP_PROCESS_END: pwsp_text_format(text, "end of %s", step); break;
    case PWSP_OP_TASK:
        pwsp_text_format(text, "%s", step);
        pwsp_print_task_op(p, &p->tasks.items[op->at], text);
        break;
    case PWSP_OP_BRANCH:
        pwsp_text_format(text, "when %s, else -> %u",
                         pwsp_value(p, &p->branches.items[op->at].condition).text, op->target);
        break;
    case PWSP_OP_JUMP: pwsp_text_format(text, "-> %u", op->target); break;
    case PWSP_OP_SLOT_SET:
        pwsp_text_format(text, "%s = %s", step,
                         pwsp_value(p, &p->slot_ops.items[op->at].value).text);
        break;
    case PWSP_OP_SLOT_LOAD:
        pwsp_text_format(text, "%s = ", step);
        pwsp_print_load(p, &p->slot_ops.items[op->at], text);
        break;
    case PWSP_OP_CALL: {
        const pwsp_call_op *call = &p->calls.items[op->at];
        pwsp_text_format(text, "%s(", step);
        pwsp_print_codes(p, call->first_code, call->arg_count, text);
        pwsp_text_format(text, ") -> %u", op->target);
        break;
    }
    case PWSP_OP_RETURN: pwsp_text_format(text, "return"); break;
    case PWSP_OP_RESET: pwsp_text_format(text, "reset edges"); break;
    case PWSP_OP_RELEASE:
        pwsp_text_format(text, "release %s", p->tensors.items[op->at].name);
        break;
    case PWSP_OP_PIPELINE:
        pwsp_text_format(text, "%s", step);
        pwsp_print_pipeline_op(p, &p->pipelines.items[op->at], op->target, text);
        break;
    case PWSP_OP_SEND:
        pwsp_text_format(text, "%s(%s)", step, pwsp_value(p, &p->sends.items[op->at].token).text);
        break;
    case PWSP_OP_RECEIVE: pwsp_print_receive_op(p, op, text); break;
    case PWSP_OP_LIST:
        pwsp_text_format(text, "%s of %u tasks, contents %016" PRIx64 " -> %u", step,
                         p->lists.items[op->at].given.task_count,
                         pwsp_task_list_hash(&p->lists.items[op->at].given), op->target);
        break;
    case PWSP_OP_LIST_NEXT: pwsp_text_format(text, "next of %s", step); break;
    }
    pwsp_text_format(text, "\n");
}

const char *ptowsp_program_kernel_name(const ptowsp_program *program, uint32_t kernel) {
    PTOWSP_ASSERT(program);
    return kernel && kernel < program->kernels.count ? program->kernels.items[kernel].name : NULL;
}

void ptowsp_program_print(const ptowsp_program *program, ptowsp_output output) {
    PTOWSP_ASSERT(program);
    const ptowsp_program *p = program;
    pwsp_text_format(output, "program of module %s\n", p->name);
    for (uint32_t i = 0; i < p->ops.count; i++) {
        pwsp_text_format(output, "  %3u  ", i);
        pwsp_print_op(p, PWSP_OP_AT(p, i), output);
    }
    if (p->instructions.count) {
        pwsp_text_format(output, "expressions\n");
    }
    for (uint32_t i = 0; i < p->instructions.count; i++) {
        pwsp_print_instruction(p, i, output);
    }
    pwsp_text_write(output, p->schedule_text, strlen(p->schedule_text));
}
