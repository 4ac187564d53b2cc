// What can be known before any kernel has run.
//
// A slot that is loaded from a tensor which tasks write has no value before they have run, nor has
// anything that depends on it: conditions, extents, indices, other slots set from it or under it.
// This marks the operations whose effect is unknown in that sense, by passing over the program
// until nothing changes. Nor is known what depends on what a process receives: how often the body
// of a receive runs, and with which token. Everything else can be checked beforehand, for the whole
// program, by walking it without kernels.

#include "program.h"

typedef struct pwsp_known {
    const ptowsp_program *program;
    const bool *is_written;
    uint8_t *ops;     // by op: unknown
    uint8_t *called;  // by first op of a workload: a call under unknown control may run it
    uint8_t *cells;   // by cell: unknown
    bool has_changed;
} pwsp_known;

static void pwsp_known_mark(pwsp_known *known, uint8_t *mark) {
    known->has_changed = known->has_changed || !*mark;
    *mark = 1;
}

// Does a compiled expression read an unknown cell? Temporaries are never marked; operands that an
// instruction does not have are cell 0, which is always known.
static bool pwsp_known_code(const pwsp_known *known, const pwsp_code *code) {
    for (uint32_t i = code->begin; i < code->end; i++) {
        const pwsp_instruction *at =
            PWSP_PROGRAM_AT(known->program, instructions, pwsp_instruction, i);
        bool has_c = at->opcode == PWSP_OPCODE_SELECT;  // elsewhere c is an array or a place
        if (known->cells[at->a] || known->cells[at->b] || (has_c && known->cells[at->c])) {
            return true;
        }
    }
    return known->cells[code->cell] != 0;
}

static bool pwsp_known_view(const pwsp_known *known, const pwsp_tile_view *view) {
    bool is_unknown = (view->has_row && pwsp_known_code(known, &view->row)) ||
                      (view->has_col && pwsp_known_code(known, &view->col));
    for (uint32_t i = 0; i < view->lead; i++) {
        is_unknown = is_unknown || pwsp_known_code(known, &view->index[i]);
    }
    return is_unknown;
}

static bool pwsp_known_task(const pwsp_known *known, const pwsp_task_op *task) {
    const ptowsp_program *p = known->program;
    bool is_unknown = pwsp_known_code(known, &task->dispatch) ||
                      pwsp_known_code(known, &task->priority) ||
                      pwsp_known_code(known, &task->stream);
    for (uint32_t i = 0; i < task->axis_count + task->scalar_count; i++) {
        is_unknown = is_unknown || pwsp_known_code(known, PWSP_PROGRAM_AT(p, codes, pwsp_code,
                                                                          task->first_code + i));
    }
    for (uint32_t i = 0; i < task->view_count; i++) {
        is_unknown = is_unknown || pwsp_known_view(known, PWSP_PROGRAM_AT(p, views, pwsp_tile_view,
                                                                          task->first_view + i));
    }
    return is_unknown;
}

// Is what a pipeline's channels are at start unknown?
static bool pwsp_known_pipeline(const pwsp_known *known, const pwsp_pipeline_op *pipeline) {
    bool is_unknown = false;
    for (uint32_t i = 0; i < pipeline->channel_count; i++) {
        const pwsp_channel_op *channel =
            PWSP_PROGRAM_AT(known->program, channels, pwsp_channel_op, pipeline->first_channel + i);
        is_unknown = is_unknown || pwsp_known_code(known, &channel->depth_code) ||
                     pwsp_known_code(known, &channel->latency_code);
    }
    return is_unknown;
}

// One op inside a region that is run or not as `is_unknown` control decides, or (is_called) in a
// workload that another call than the one being looked at may run: then only what it leaves in
// slots is unknown, as regions under unknown control are not walked.
static void pwsp_known_op(pwsp_known *known, uint32_t i, bool is_unknown, bool is_called) {
    const ptowsp_program *p = known->program;
    const pwsp_op *op = PWSP_OP_AT(p, i);
    switch (op->kind) {
    case PWSP_OP_LOOP: {
        const pwsp_loop *loop = PWSP_PROGRAM_AT(p, loops, pwsp_loop, op->at);
        is_unknown = is_unknown || (loop->is_row && pwsp_known_code(known, &loop->row));
        break;
    }
    case PWSP_OP_BRANCH: {
        const pwsp_branch *branch = PWSP_PROGRAM_AT(p, branches, pwsp_branch, op->at);
        is_unknown = is_unknown || pwsp_known_code(known, &branch->condition);
        break;
    }
    case PWSP_OP_TASK:
        is_unknown =
            is_unknown || pwsp_known_task(known, PWSP_PROGRAM_AT(p, tasks, pwsp_task_op, op->at));
        break;
    case PWSP_OP_SLOT_SET: {
        const pwsp_slot_op *slot = PWSP_PROGRAM_AT(p, slot_ops, pwsp_slot_op, op->at);
        is_unknown = is_unknown || pwsp_known_code(known, &slot->value);
        if (is_unknown || is_called) {
            pwsp_known_mark(known, &known->cells[slot->cell]);
        }
        break;
    }
    case PWSP_OP_SLOT_LOAD: {
        const pwsp_slot_op *slot = PWSP_PROGRAM_AT(p, slot_ops, pwsp_slot_op, op->at);
        is_unknown = is_unknown || known->is_written[slot->view.tensor] ||
                     pwsp_known_view(known, &slot->view) ||
                     (slot->has_row && pwsp_known_code(known, &slot->row)) ||
                     (slot->has_col && pwsp_known_code(known, &slot->col));
        if (is_unknown || is_called) {
            pwsp_known_mark(known, &known->cells[slot->cell]);
        }
        break;
    }
    case PWSP_OP_CALL: {
        const pwsp_call_op *call = PWSP_PROGRAM_AT(p, calls, pwsp_call_op, op->at);
        for (uint32_t j = 0; j < call->arg_count; j++) {
            if (pwsp_known_code(known,
                                PWSP_PROGRAM_AT(p, codes, pwsp_code, call->first_code + j))) {
                pwsp_known_mark(known, &known->cells[call->first_cell + j]);
            }
        }
        break;
    }
    case PWSP_OP_PIPELINE:
        is_unknown =
            is_unknown ||
            pwsp_known_pipeline(known, PWSP_PROGRAM_AT(p, pipelines, pwsp_pipeline_op, op->at));
        break;
    case PWSP_OP_SEND:
        is_unknown =
            is_unknown ||
            pwsp_known_code(known, &PWSP_PROGRAM_AT(p, sends, pwsp_send_op, op->at)->token);
        break;
    case PWSP_OP_RECEIVE: {
        const pwsp_receive_op *receive = PWSP_PROGRAM_AT(p, receives, pwsp_receive_op, op->at);
        is_unknown = true;
        if (!receive->is_wait) {
            pwsp_known_mark(known, &known->cells[receive->cell]);
        }
        break;
    }
    case PWSP_OP_LOOP_END:
    case PWSP_OP_SCOPE:
    case PWSP_OP_SCOPE_END:
    case PWSP_OP_JUMP:
    case PWSP_OP_RETURN:
    case PWSP_OP_RESET:
    case PWSP_OP_PROCESS_END:
    case PWSP_OP_CLOSE: break;
    }
    if (is_unknown) {
        pwsp_known_mark(known, &known->ops[i]);
    }
}

// Behind the region that an unknown op decides about, or 0 if it decides about none.
static uint32_t pwsp_known_end(const ptowsp_program *p, uint32_t i) {
    const pwsp_op *op = PWSP_OP_AT(p, i);
    switch (op->kind) {
    case PWSP_OP_LOOP:
    case PWSP_OP_PIPELINE:
    case PWSP_OP_RECEIVE: return op->target;
    case PWSP_OP_BRANCH: return PWSP_PROGRAM_AT(p, branches, pwsp_branch, op->at)->end;
    default: return 0;
    }
}

static void pwsp_known_pass(pwsp_known *known) {
    const ptowsp_program *p = known->program;
    uint32_t end = 0;  // ops before are under unknown control
    bool is_called = false;
    for (uint32_t i = 0; i < p->ops.count; i++) {
        if (i == 0 || PWSP_OP_AT(p, i - 1)->kind == PWSP_OP_RETURN) {
            is_called = known->called[i] != 0;
        }
        bool is_under = i < end;
        pwsp_known_op(known, i, is_under, is_called);
        if (known->ops[i] && pwsp_known_end(p, i) > end) {
            end = pwsp_known_end(p, i);
        }
        if (PWSP_OP_AT(p, i)->kind == PWSP_OP_CALL && (is_under || is_called)) {
            pwsp_known_mark(known, &known->called[PWSP_OP_AT(p, i)->target]);
        }
    }
}

PWSP_INTERNAL bool pwsp_program_find_unknown(const ptowsp_program *program,
                                             const pwsp_memory *memory, const bool *is_written,
                                             uint8_t *out_unknown) {
    pwsp_known known = {program, is_written, out_unknown, NULL, NULL, true};
    size_t size = program->cell_count + (size_t)program->ops.count;
    known.cells = (uint8_t *)pwsp_memory_alloc(memory, size);
    if (!known.cells) {
        return false;
    }
    known.called = known.cells + program->cell_count;
    memset(out_unknown, 0, (size_t)program->ops.count);
    while (known.has_changed) {
        known.has_changed = false;
        pwsp_known_pass(&known);
    }
    pwsp_memory_free(memory, known.cells, size);
    return true;
}
