// The operations that operations decide about, the expressions that they evaluate, and the cells that
// these read: for the taint, control, conflicts and blocks (taint.c, control.c, conflict.c, blocks.c).

#include "program.h"

PWSP_INTERNAL uint32_t pwsp_op_end(const ptowsp_program *program, const pwsp_op *op) {
    switch (op->kind) {
    case PWSP_OP_LOOP:
    case PWSP_OP_PIPELINE:
    case PWSP_OP_RECEIVE: return op->target;
    case PWSP_OP_BRANCH: return program->branches.items[op->at].end;
    default: return 0;
    }
}

// Operands that an instruction does not have are cell 0. In place of the operand c, some have an
// array or a place.
PWSP_INTERNAL bool pwsp_code_reads(const ptowsp_program *program, const pwsp_code *code,
                                   pwsp_cell_fn is_found, void *user) {
    for (uint32_t i = code->begin; i < code->end; i++) {
        const pwsp_instruction *at = &program->instructions.items[i];
        if (is_found(user, at->a) || is_found(user, at->b) ||
            (at->opcode == PWSP_OPCODE_SELECT && is_found(user, at->c))) {
            return true;
        }
    }
    return is_found(user, code->cell);
}

static bool pwsp_codes_visit(pwsp_code *codes, uint32_t count, pwsp_code_fn visit, void *user) {
    bool is_over = false;
    for (uint32_t i = 0; i < count && !is_over; i++) {
        is_over = visit(user, &codes[i]);
    }
    return is_over;
}

PWSP_INTERNAL bool pwsp_view_codes(pwsp_tile_view *view, pwsp_code_fn visit, void *user) {
    return pwsp_codes_visit(view->index, view->lead, visit, user) || visit(user, &view->row) ||
           visit(user, &view->col) || visit(user, &view->row_count) ||
           visit(user, &view->col_count);
}

static bool pwsp_task_codes(const ptowsp_program *p, pwsp_task_op *task, pwsp_code_fn visit,
                            void *user) {
    bool is_over = pwsp_codes_visit(p->codes.items + task->first_code,
                                    task->axis_count + task->scalar_count, visit, user);
    for (uint32_t i = 0; i < task->view_count && !is_over; i++) {
        is_over = pwsp_view_codes(&p->views.items[task->first_view + i], visit, user);
    }
    return is_over || visit(user, &task->dispatch) || visit(user, &task->priority) ||
           visit(user, &task->stream);
}

PWSP_INTERNAL bool pwsp_op_codes(const ptowsp_program *program, const pwsp_op *op,
                                 pwsp_code_fn visit, void *user) {
    const ptowsp_program *p = program;
    bool is_over = false;
    switch (op->kind) {
    case PWSP_OP_LOOP: return visit(user, &p->loops.items[op->at].row);
    case PWSP_OP_BRANCH: return visit(user, &p->branches.items[op->at].condition);
    case PWSP_OP_TASK: return pwsp_task_codes(p, &p->tasks.items[op->at], visit, user);
    case PWSP_OP_SLOT_SET: return visit(user, &p->slot_ops.items[op->at].value);
    case PWSP_OP_SLOT_LOAD: {
        pwsp_slot_op *load = &p->slot_ops.items[op->at];
        return pwsp_view_codes(&load->view, visit, user) || visit(user, &load->row) ||
               visit(user, &load->col);
    }
    case PWSP_OP_CALL: {
        const pwsp_call_op *call = &p->calls.items[op->at];
        return pwsp_codes_visit(p->codes.items + call->first_code, call->arg_count, visit, user);
    }
    case PWSP_OP_PIPELINE: {
        const pwsp_pipeline_op *pipeline = &p->pipelines.items[op->at];
        pwsp_channel_op *channel = p->channels.items + pipeline->first_channel;
        for (uint32_t i = 0; i < pipeline->channel_count && !is_over; i++, channel++) {
            is_over = visit(user, &channel->depth_code) || visit(user, &channel->latency_code);
        }
        return is_over;
    }
    case PWSP_OP_SEND: return visit(user, &p->sends.items[op->at].token);
    default: return false;  // it takes no value
    }
}
