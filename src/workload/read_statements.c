// Read access to the statements of a program.
//
// They are made from the complete list of flat operations, in one pass. A statement that contains
// others is open until the operation that ends it, or until its target:
//
//      0  loop b in batch            -> 6     WORKLOAD attention, LOOP b
//      1    branch kv_len[b] <= 2048 -> 4         WHEN
//      2      task short                              TASK
//      3      jump                   -> 5         OTHERWISE      (a jump forward)
//      4      task long                               TASK
//      5  loop end                   -> 1         END, END       (the otherwise led here)
//      6  return                              END
//
// So an emitter sees the same program as the walk, but as a tree.

#include "read.h"

// `end` is the op before which it ends, or that it ends by an op of its own.
typedef struct pwsp_open_statement {
    uint32_t statement;
    uint32_t end;
} pwsp_open_statement;

#define PWSP_ENDS_BY_OP UINT32_MAX

typedef struct pwsp_reader {
    pwsp_compiler *c;
    ptowsp_program *program;
    uint32_t workload;      // the one that is being read, from 0
    uint32_t next_process;  // of all pipelines
    uint32_t block_count;
    pwsp_open_statement blocks[PTOWSP_MODULE_NEST_MAX + 2];
} pwsp_reader;

#define PWSP_STATEMENT(r, i) (&(r)->program->statements.items[i])

// Adds a statement; NULL with an error.
static ptowsp_statement *pwsp_reader_add(pwsp_reader *r, ptowsp_statement_kind kind, uint32_t node,
                                         uint32_t at) {
    uint32_t index;
    pwsp_statement *statement = PWSP_ADD(r->c, statements, &index);
    if (!statement) {
        return NULL;
    }
    memset(statement, 0, sizeof *statement);
    statement->said.kind = kind;
    statement->said.node = node;
    statement->at = at;
    return &statement->said;
}

// The last statement is open until op `end`.
static void pwsp_reader_open(pwsp_reader *r, uint32_t end) {
    PTOWSP_ASSERT(r->block_count < PTOWSP_MODULE_NEST_MAX + 2);
    pwsp_open_statement block = {(uint32_t)r->program->statements.count - 1, end};
    r->blocks[r->block_count++] = block;
}

// Ends the innermost open statement with an END, or with its OTHERWISE.
static bool pwsp_reader_close(pwsp_reader *r, ptowsp_statement_kind kind, uint32_t node) {
    PTOWSP_ASSERT(r->block_count > 0);
    uint32_t begin = r->blocks[--r->block_count].statement;
    uint32_t index = (uint32_t)r->program->statements.count;
    ptowsp_statement *end = pwsp_reader_add(r, kind, node, 0);
    if (!end) {
        return false;
    }
    end->begin = begin;
    PWSP_STATEMENT(r, begin)->said.end = index;
    return true;
}

static bool pwsp_reader_end(pwsp_reader *r) {
    PTOWSP_ASSERT(r->block_count > 0);
    uint32_t begin = r->blocks[r->block_count - 1].statement;
    return pwsp_reader_close(r, PTOWSP_STATEMENT_END, PWSP_STATEMENT(r, begin)->said.node);
}

static bool pwsp_reader_workload(pwsp_reader *r) {
    uint32_t node = r->c->checker.reached.items[r->workload + 1].node;
    const pwsp_place *place = PWSP_PLACE_AT(r->program, node);
    r->c->first_ops.items[r->workload] = (uint32_t)r->program->statements.count;
    ptowsp_statement *said = pwsp_reader_add(r, PTOWSP_STATEMENT_WORKLOAD, node, 0);
    if (said) {
        said->name = place->step;
        said->first = place->first_param;
        said->count = place->param_count;
        pwsp_reader_open(r, PWSP_ENDS_BY_OP);
    }
    r->workload++;
    return said != NULL;
}

static bool pwsp_reader_process(pwsp_reader *r) {
    const pwsp_process_op *process = &r->program->processes.items[r->next_process];
    ptowsp_statement *said = pwsp_reader_add(r, PTOWSP_STATEMENT_PROCESS, process->node, 0);
    if (said) {
        said->name = process->name;
        said->variable = process->index ? process->index - r->program->first_variable : 0;
        said->axis = process->axis;
        said->first = process->first_port;
        said->count = process->port_count;
        pwsp_reader_open(r, PWSP_ENDS_BY_OP);
    }
    r->next_process++;
    return said != NULL;
}

// The statements that end and begin before an op.
static bool pwsp_reader_before(pwsp_reader *r, uint32_t i) {
    const ptowsp_program *p = r->program;
    bool is_good = r->block_count > 0 || pwsp_reader_workload(r);
    while (is_good && r->blocks[r->block_count - 1].end == i) {
        is_good = pwsp_reader_end(r);
    }
    if (is_good && r->next_process < p->processes.count &&
        p->processes.items[r->next_process].first_op == i) {
        is_good = pwsp_reader_process(r);
    }
    return is_good;
}

static bool pwsp_reader_loop(pwsp_reader *r, const pwsp_op *op) {
    const pwsp_loop *loop = &r->program->loops.items[op->at];
    ptowsp_statement *said = pwsp_reader_add(r, PTOWSP_STATEMENT_LOOP, op->node, 0);
    if (said) {
        said->variable = loop->cell - r->program->first_variable;
        said->axis = loop->csr;
        said->row = loop->row.expr;
        said->scope = (ptowsp_scope)loop->scope;
        pwsp_reader_open(r, PWSP_ENDS_BY_OP);
    }
    return said != NULL;
}

static bool pwsp_reader_scope(pwsp_reader *r, const pwsp_op *op) {
    ptowsp_statement *said = pwsp_reader_add(r, PTOWSP_STATEMENT_SCOPE, op->node, 0);
    if (said) {
        said->scope = (ptowsp_scope)op->at;
        pwsp_reader_open(r, PWSP_ENDS_BY_OP);
    }
    return said != NULL;
}

static bool pwsp_reader_when(pwsp_reader *r, const pwsp_op *op) {
    ptowsp_statement *said = pwsp_reader_add(r, PTOWSP_STATEMENT_WHEN, op->node, 0);
    if (said) {
        said->value = r->program->branches.items[op->at].condition.expr;
        pwsp_reader_open(r, op->target);
    }
    return said != NULL;
}

// Back to the receive of a consume, or over the statements of an otherwise.
static bool pwsp_reader_jump(pwsp_reader *r, const pwsp_op *op, uint32_t i) {
    if (op->target <= i) {
        return pwsp_reader_end(r);
    }
    if (!pwsp_reader_close(r, PTOWSP_STATEMENT_OTHERWISE, op->node)) {
        return false;
    }
    pwsp_reader_open(r, op->target);
    return true;
}

static bool pwsp_reader_slot(pwsp_reader *r, const pwsp_op *op) {
    const pwsp_slot_op *slot = &r->program->slot_ops.items[op->at];
    ptowsp_statement *said = pwsp_reader_add(
        r, op->kind == PWSP_OP_SLOT_SET ? PTOWSP_STATEMENT_SLOT_SET : PTOWSP_STATEMENT_SLOT_LOAD,
        op->node, op->at);
    if (said) {
        said->slot = slot->slot;
        said->value = slot->value.expr;
    }
    return said != NULL;
}

// The target is the number of the workload for now: it may not have been read yet.
static bool pwsp_reader_call(pwsp_reader *r, const pwsp_op *op) {
    const pwsp_call_op *call = &r->program->calls.items[op->at];
    ptowsp_statement *said = pwsp_reader_add(r, PTOWSP_STATEMENT_CALL, op->node, 0);
    if (said) {
        said->target = call->workload;
        said->scope = (ptowsp_scope)call->scope;
        said->first = call->first_code;
        said->count = call->arg_count;
    }
    return said != NULL;
}

static bool pwsp_reader_reset(pwsp_reader *r, const pwsp_op *op) {
    const pwsp_range *range = &r->program->resets.items[op->at];
    ptowsp_statement *said = pwsp_reader_add(r, PTOWSP_STATEMENT_RESET, op->node, 0);
    if (said) {
        said->first = range->first;
        said->count = range->count;
    }
    return said != NULL;
}

static bool pwsp_reader_pipeline(pwsp_reader *r, const pwsp_op *op) {
    const pwsp_pipeline_op *pipeline = &r->program->pipelines.items[op->at];
    ptowsp_statement *said = pwsp_reader_add(r, PTOWSP_STATEMENT_PIPELINE, op->node, op->at);
    if (said) {
        said->name = pipeline->name;
        said->first = pipeline->first_channel;
        said->count = pipeline->channel_count;
        pwsp_reader_open(r, op->target);
    }
    return said != NULL;
}

// -- statements of processes ----------------------------------------------------------------------

static bool pwsp_reader_send(pwsp_reader *r, const pwsp_op *op) {
    const pwsp_send_op *send = &r->program->sends.items[op->at];
    bool is_event = r->program->channels.items[send->channel].is_event;
    ptowsp_statement *said =
        pwsp_reader_add(r, is_event ? PTOWSP_STATEMENT_RECORD : PTOWSP_STATEMENT_SEND, op->node, 0);
    if (said) {
        said->channel = send->channel;
        said->value = send->token.expr;
    }
    return said != NULL;
}

static bool pwsp_reader_receive(pwsp_reader *r, const pwsp_op *op) {
    const pwsp_receive_op *receive = &r->program->receives.items[op->at];
    ptowsp_statement_kind kind = receive->is_wait   ? PTOWSP_STATEMENT_WAIT
                                 : receive->is_loop ? PTOWSP_STATEMENT_CONSUME
                                                    : PTOWSP_STATEMENT_RECEIVE;
    ptowsp_statement *said = pwsp_reader_add(r, kind, op->node, 0);
    if (said) {
        said->channel = receive->channel;
        if (!receive->is_wait) {
            said->variable = receive->cell - r->program->first_variable;
            pwsp_reader_open(r, receive->is_loop ? PWSP_ENDS_BY_OP : op->target);
        }
    }
    return said != NULL;
}

static bool pwsp_reader_close_port(pwsp_reader *r, const pwsp_op *op) {
    ptowsp_statement *said = pwsp_reader_add(r, PTOWSP_STATEMENT_CLOSE, op->node, 0);
    if (said) {
        said->channel = r->program->ports.items[op->at].channel;
    }
    return said != NULL;
}

static bool pwsp_reader_list(pwsp_reader *r, const pwsp_op *op) {
    ptowsp_statement *said = pwsp_reader_add(r, PTOWSP_STATEMENT_LIST, op->node, 0);
    if (said) {
        said->count = r->program->lists.items[op->at].given.task_count;
    }
    return said != NULL;
}

// -- all ------------------------------------------------------------------------------------------

static bool pwsp_reader_op(pwsp_reader *r, uint32_t i) {
    const pwsp_op *op = PWSP_OP_AT(r->program, i);
    switch (op->kind) {
    case PWSP_OP_LOOP: return pwsp_reader_loop(r, op);
    case PWSP_OP_SCOPE: return pwsp_reader_scope(r, op);
    case PWSP_OP_LOOP_END:
    case PWSP_OP_SCOPE_END:
    case PWSP_OP_PROCESS_END:
    case PWSP_OP_RETURN: return pwsp_reader_end(r);
    case PWSP_OP_TASK: return pwsp_reader_add(r, PTOWSP_STATEMENT_TASK, op->node, op->at) != NULL;
    case PWSP_OP_BRANCH: return pwsp_reader_when(r, op);
    case PWSP_OP_JUMP: return pwsp_reader_jump(r, op, i);
    case PWSP_OP_SLOT_SET:
    case PWSP_OP_SLOT_LOAD: return pwsp_reader_slot(r, op);
    case PWSP_OP_CALL: return pwsp_reader_call(r, op);
    case PWSP_OP_RESET: return pwsp_reader_reset(r, op);
    case PWSP_OP_RELEASE: break;  // follows from the tensor
    case PWSP_OP_PIPELINE: return pwsp_reader_pipeline(r, op);
    case PWSP_OP_SEND: return pwsp_reader_send(r, op);
    case PWSP_OP_RECEIVE: return pwsp_reader_receive(r, op);
    case PWSP_OP_CLOSE: return pwsp_reader_close_port(r, op);
    case PWSP_OP_LIST: return pwsp_reader_list(r, op);
    case PWSP_OP_LISTED:
    case PWSP_OP_LIST_NEXT: break;  // parts of it
    }
    return true;
}

PWSP_INTERNAL bool pwsp_read_statements(pwsp_compiler *c) {
    pwsp_reader reader;
    memset(&reader, 0, sizeof reader);
    reader.c = c;
    reader.program = c->program;
    for (uint32_t i = 0; i < c->program->ops.count; i++) {
        if (!pwsp_reader_before(&reader, i) || !pwsp_reader_op(&reader, i)) {
            return false;
        }
    }
    PTOWSP_ASSERT(reader.block_count == 0);
    for (uint32_t i = 0; i < c->program->statements.count; i++) {
        ptowsp_statement *said = &PWSP_STATEMENT(&reader, i)->said;
        if (said->kind == PTOWSP_STATEMENT_CALL) {
            said->target = c->first_ops.items[said->target];
        }
    }
    return true;
}
