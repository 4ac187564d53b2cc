// Backwards from sends and receives to what they depend on.
//
//      op matters      <-  send, receive, close, call, pipeline; a slot set or load whose slot decides
//      cell decides    <-  read by the condition of a branch, the extent of a loop, or an index of a
//                          load, around or in what matters; by a token of a channel that decides
//      channel decides <-  its receivers put tokens into a cell that decides
//
// Passes over the program mark more until nothing changes. Tasks never matter, so neither do loops
// and branches that contain only tasks: a walk leaves them out. Nor does it evaluate their inputs.
// Expressions that are evaluated without deciding anything must not fail, so those that read arrays
// count as deciding.

#include "control.h"

static void pwsp_control_mark(pwsp_control *control, uint8_t *mark) {
    control->has_changed = control->has_changed || !*mark;
    *mark = 1;
}

// Temporaries belong to one expression, and constants, which follow them, do not change.
static void pwsp_control_cell(pwsp_control *control, uint32_t cell) {
    if (cell && cell < control->program->first_temp) {
        pwsp_control_mark(control, &control->cells[cell]);
    }
}

static void pwsp_control_code(pwsp_control *control, const pwsp_code *code) {
    for (uint32_t i = code->begin; i < code->end; i++) {
        const pwsp_instruction *at = &control->program->instructions.items[i];
        pwsp_control_cell(control, at->a);
        pwsp_control_cell(control, at->b);
        if (at->opcode == PWSP_OPCODE_SELECT) {  // elsewhere c is an array or a place
            pwsp_control_cell(control, at->c);
        }
    }
    pwsp_control_cell(control, code->cell);
}

static bool pwsp_control_reads_array(const pwsp_control *control, const pwsp_code *code) {
    for (uint32_t i = code->begin; i < code->end; i++) {
        if (control->program->instructions.items[i].opcode == PWSP_OPCODE_READ) {
            return true;
        }
    }
    return false;
}

static void pwsp_control_view(pwsp_control *control, const pwsp_tile_view *view) {
    for (uint32_t i = 0; i < view->lead; i++) {
        pwsp_control_code(control, &view->index[i]);
    }
    const pwsp_code *codes[4] = {&view->row, &view->col, &view->row_count, &view->col_count};
    const bool has[4] = {view->has_row, view->has_col, view->has_limit, view->has_limit};
    for (uint32_t i = 0; i < 4; i++) {
        if (has[i]) {
            pwsp_control_code(control, codes[i]);
        }
    }
}

static void pwsp_control_load(pwsp_control *control, const pwsp_slot_op *load) {
    pwsp_control_view(control, &load->view);
    if (load->has_row) {
        pwsp_control_code(control, &load->row);
    }
    if (load->has_col) {
        pwsp_control_code(control, &load->col);
    }
}

static void pwsp_control_pipeline(pwsp_control *control, const pwsp_pipeline_op *pipeline) {
    for (uint32_t i = 0; i < pipeline->channel_count; i++) {
        const pwsp_channel_op *channel =
            &control->program->channels.items[pipeline->first_channel + i];
        pwsp_control_code(control, &channel->depth_code);
        pwsp_control_code(control, &channel->latency_code);
    }
}

// Marks the inputs of an op if it matters, and returns whether it does. Its contents have been
// visited.
static bool pwsp_control_op(pwsp_control *control, uint32_t i) {
    const ptowsp_program *p = control->program;
    const pwsp_op *op = PWSP_OP_AT(p, i);
    switch (op->kind) {
    case PWSP_OP_LOOP: {
        const pwsp_loop *loop = &p->loops.items[op->at];
        bool matters = control->next[i + 1] < op->target;
        if (matters && loop->is_row) {
            pwsp_control_code(control, &loop->row);
        }
        return matters;
    }
    case PWSP_OP_BRANCH: {
        const pwsp_branch *branch = &p->branches.items[op->at];
        bool matters = control->next[i + 1] < branch->end;
        if (matters) {
            pwsp_control_code(control, &branch->condition);
        }
        return matters;
    }
    case PWSP_OP_SLOT_SET:
    case PWSP_OP_SLOT_LOAD: {
        const pwsp_slot_op *slot = &p->slot_ops.items[op->at];
        bool matters = control->cells[slot->cell] != 0;
        if (matters && op->kind == PWSP_OP_SLOT_SET) {
            pwsp_control_code(control, &slot->value);
        } else if (matters) {
            pwsp_control_load(control, slot);
        }
        return matters;
    }
    case PWSP_OP_CALL: {
        const pwsp_call_op *call = &p->calls.items[op->at];
        for (uint32_t j = 0; j < call->arg_count; j++) {
            pwsp_control_code(control, &p->codes.items[call->first_code + j]);
        }
        return true;
    }
    case PWSP_OP_PIPELINE: pwsp_control_pipeline(control, &p->pipelines.items[op->at]); return true;
    case PWSP_OP_SEND: {
        const pwsp_send_op *send = &p->sends.items[op->at];
        if (control->channels[send->channel] || pwsp_control_reads_array(control, &send->token)) {
            pwsp_control_code(control, &send->token);
        }
        return true;
    }
    case PWSP_OP_RECEIVE: {
        const pwsp_receive_op *receive = &p->receives.items[op->at];
        if (control->cells[receive->cell]) {
            pwsp_control_mark(control, &control->channels[receive->channel]);
        }
        return true;
    }
    case PWSP_OP_CLOSE: return true;
    default: return false;
    }
}

static void pwsp_control_pass(pwsp_control *control) {
    const ptowsp_program *p = control->program;
    control->next[p->ops.count] = UINT32_MAX;
    for (uint32_t i = (uint32_t)p->ops.count; i-- > 0;) {
        bool matters = pwsp_control_op(control, i);
        control->next[i] = matters ? i : control->next[i + 1];
        switch (PWSP_OP_AT(p, i)->kind) {
        case PWSP_OP_LOOP:
        case PWSP_OP_BRANCH:
        case PWSP_OP_TASK:
        case PWSP_OP_SLOT_SET:
        case PWSP_OP_SLOT_LOAD: control->ops[i] = !matters; break;
        default: break;  // an op of structure, or one that matters
        }
    }
}

PWSP_INTERNAL bool pwsp_control_find(pwsp_control *control, const pwsp_memory *memory,
                                     const ptowsp_program *program) {
    memset(control, 0, sizeof *control);
    control->program = program;
    control->memory = *memory;
    size_t op_count = (size_t)program->ops.count;
    size_t words = (op_count + 1) * sizeof(uint32_t);
    control->size = words + op_count + program->cell_count + (size_t)program->channels.count;
    control->next = (uint32_t *)pwsp_memory_alloc(memory, control->size);
    if (!control->next) {
        return false;
    }
    control->ops = (uint8_t *)control->next + words;
    control->cells = control->ops + op_count;
    control->channels = control->cells + program->cell_count;
    do {
        control->has_changed = false;
        pwsp_control_pass(control);
    } while (control->has_changed);
    return true;
}

PWSP_INTERNAL void pwsp_control_free(pwsp_control *control) {
    pwsp_memory_free(&control->memory, control->next, control->size);
    memset(control, 0, sizeof *control);
}
