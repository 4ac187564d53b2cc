// Backwards from sends and receives to their dependences.
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
static bool pwsp_control_cell(void *user, uint32_t cell) {
    pwsp_control *control = (pwsp_control *)user;
    if (cell && cell < control->program->first_temp) {
        pwsp_control_mark(control, &control->cells[cell]);
    }
    return false;
}

static bool pwsp_control_code(void *user, pwsp_code *code) {
    return pwsp_code_reads(((const pwsp_control *)user)->program, code, pwsp_control_cell, user);
}

static bool pwsp_control_reads_array(const pwsp_control *control, const pwsp_code *code) {
    for (uint32_t i = code->begin; i < code->end; i++) {
        if (control->program->instructions.items[i].opcode == PWSP_OPCODE_READ) {
            return true;
        }
    }
    return false;
}

// Does an op matter? Its contents have been visited.
static bool pwsp_control_matters(pwsp_control *control, uint32_t i) {
    const ptowsp_program *p = control->program;
    const pwsp_op *op = PWSP_OP_AT(p, i);
    switch (op->kind) {
    case PWSP_OP_LOOP:
    case PWSP_OP_BRANCH: return control->next[i + 1] < pwsp_op_end(p, op);
    case PWSP_OP_SLOT_SET:
    case PWSP_OP_SLOT_LOAD: return control->cells[p->slot_ops.items[op->at].cell] != 0;
    case PWSP_OP_CALL:
    case PWSP_OP_PIPELINE:
    case PWSP_OP_SEND:
    case PWSP_OP_RECEIVE:
    case PWSP_OP_CLOSE: return true;
    default: return false;
    }
}

// Marks the inputs of an op if it matters, and returns whether it does.
static bool pwsp_control_op(pwsp_control *control, uint32_t i) {
    const ptowsp_program *p = control->program;
    const pwsp_op *op = PWSP_OP_AT(p, i);
    const bool matters = pwsp_control_matters(control, i);
    bool decides = matters;
    if (op->kind == PWSP_OP_SEND) {
        const pwsp_send_op *send = &p->sends.items[op->at];
        decides =
            control->channels[send->channel] || pwsp_control_reads_array(control, &send->token);
    } else if (op->kind == PWSP_OP_RECEIVE) {
        const pwsp_receive_op *receive = &p->receives.items[op->at];
        if (control->cells[receive->cell]) {
            pwsp_control_mark(control, &control->channels[receive->channel]);
        }
    }
    if (decides) {
        pwsp_op_codes(p, op, pwsp_control_code, control);
    }
    return matters;
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
