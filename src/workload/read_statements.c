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
    ptowsp_statement lost;  // where a statement goes when memory is out
    uint32_t workload;      // the one that is being read, from 0
    uint32_t next_process;  // of all pipelines
    uint32_t block_count;
    pwsp_open_statement blocks[PTOWSP_MODULE_NEST_MAX + 2];
} pwsp_reader;

// Adds a statement. When memory is out, the module has the error.
static ptowsp_statement *pwsp_reader_add(pwsp_reader *r, ptowsp_statement_kind kind,
                                         uint32_t node) {
    uint32_t index;
    ptowsp_statement *statement = PWSP_ADD(r->c, statements, &index);
    statement = statement ? statement : &r->lost;
    memset(statement, 0, sizeof *statement);
    statement->kind = kind;
    statement->node = node;
    return statement;
}

// The last statement is open until op `end`.
static void pwsp_reader_open(pwsp_reader *r, uint32_t end) {
    PTOWSP_ASSERT(r->block_count < PTOWSP_MODULE_NEST_MAX + 2);
    pwsp_open_statement block = {(uint32_t)r->program->statements.count - 1, end};
    r->blocks[r->block_count++] = block;
}

// Ends the innermost open statement with its OTHERWISE; or with an END, at its own node.
static void pwsp_reader_close(pwsp_reader *r, ptowsp_statement_kind kind, uint32_t node) {
    PTOWSP_ASSERT(r->block_count > 0);
    const ptowsp_program *p = r->program;
    const uint32_t begin = r->blocks[--r->block_count].statement,
                   end = (uint32_t)p->statements.count;
    const uint32_t own = p->statements.items[begin].node;
    pwsp_reader_add(r, kind, kind == PTOWSP_STATEMENT_END ? own : node)->begin = begin;
    p->statements.items[begin].end = end;
}

static void pwsp_reader_workload(pwsp_reader *r) {
    uint32_t node = r->c->checker.reached.items[r->workload + 1].node;
    const pwsp_place *place = PWSP_PLACE_AT(r->program, node);
    r->c->first_ops.items[r->workload++] = (uint32_t)r->program->statements.count;
    ptowsp_statement *statement = pwsp_reader_add(r, PTOWSP_STATEMENT_WORKLOAD, node);
    statement->name = place->step;
    statement->first = place->first_param;
    statement->count = place->param_count;
    pwsp_reader_open(r, PWSP_ENDS_BY_OP);
}

static void pwsp_reader_process(pwsp_reader *r) {
    const pwsp_process_op *process = &r->program->processes.items[r->next_process++];
    ptowsp_statement *statement = pwsp_reader_add(r, PTOWSP_STATEMENT_PROCESS, process->node);
    statement->name = process->name;
    statement->variable = process->index ? process->index - r->program->first_variable : 0;
    statement->axis = process->axis;
    statement->first = process->first_port;
    statement->count = process->port_count;
    pwsp_reader_open(r, PWSP_ENDS_BY_OP);
}

// The statements that end and begin before an op. False when memory is out.
static bool pwsp_reader_before(pwsp_reader *r, uint32_t i) {
    const ptowsp_program *p = r->program;
    if (r->block_count == 0) {
        pwsp_reader_workload(r);
    }
    while (pwsp_module_is_good(r->c->module) && r->blocks[r->block_count - 1].end == i) {
        pwsp_reader_close(r, PTOWSP_STATEMENT_END, 0);
    }
    if (r->next_process < p->processes.count && p->processes.items[r->next_process].first_op == i) {
        pwsp_reader_process(r);
    }
    return pwsp_module_is_good(r->c->module);
}

static void pwsp_reader_loop(pwsp_reader *r, const pwsp_op *op) {
    const pwsp_loop *loop = &r->program->loops.items[op->at];
    ptowsp_statement *statement = pwsp_reader_add(r, PTOWSP_STATEMENT_LOOP, op->node);
    statement->variable = loop->cell - r->program->first_variable;
    statement->axis = loop->csr;
    statement->row = loop->row.expr;
    statement->scope = (ptowsp_scope)loop->scope;
    pwsp_reader_open(r, PWSP_ENDS_BY_OP);
}

static void pwsp_reader_slot(pwsp_reader *r, const pwsp_op *op) {
    const pwsp_slot_op *slot = &r->program->slot_ops.items[op->at];
    const bool is_load = op->kind == PWSP_OP_SLOT_LOAD;
    ptowsp_statement *statement = pwsp_reader_add(
        r, is_load ? PTOWSP_STATEMENT_SLOT_LOAD : PTOWSP_STATEMENT_SLOT_SET, op->node);
    statement->slot = slot->slot;
    statement->value = slot->value.expr;
    statement->load = is_load ? op->at : 0;
}

// The target is the number of the workload for now: it may not have been read yet.
static void pwsp_reader_call(pwsp_reader *r, const pwsp_op *op) {
    const pwsp_call_op *call = &r->program->calls.items[op->at];
    ptowsp_statement *statement = pwsp_reader_add(r, PTOWSP_STATEMENT_CALL, op->node);
    statement->target = call->workload;
    statement->scope = (ptowsp_scope)call->scope;
    statement->first = call->first_code;
    statement->count = call->arg_count;
}

static void pwsp_reader_reset(pwsp_reader *r, const pwsp_op *op) {
    const pwsp_range *range = &r->program->resets.items[op->at];
    ptowsp_statement *statement = pwsp_reader_add(r, PTOWSP_STATEMENT_RESET, op->node);
    statement->first = range->first;
    statement->count = range->count;
}

static void pwsp_reader_pipeline(pwsp_reader *r, const pwsp_op *op) {
    const pwsp_pipeline_op *pipeline = &r->program->pipelines.items[op->at];
    ptowsp_statement *statement = pwsp_reader_add(r, PTOWSP_STATEMENT_PIPELINE, op->node);
    statement->name = pipeline->name;
    statement->task = (uint32_t)r->program->tasks.count + op->at;  // as read_program.c has them
    statement->first = pipeline->first_channel;
    statement->count = pipeline->channel_count;
    pwsp_reader_open(r, op->target);
}

static void pwsp_reader_send(pwsp_reader *r, const pwsp_op *op) {
    const pwsp_send_op *send = &r->program->sends.items[op->at];
    bool is_event = r->program->channels.items[send->channel].is_event;
    ptowsp_statement *statement =
        pwsp_reader_add(r, is_event ? PTOWSP_STATEMENT_RECORD : PTOWSP_STATEMENT_SEND, op->node);
    statement->channel = send->channel;
    statement->value = send->token.expr;
}

static void pwsp_reader_receive(pwsp_reader *r, const pwsp_op *op) {
    const pwsp_receive_op *receive = &r->program->receives.items[op->at];
    ptowsp_statement_kind kind = receive->is_wait   ? PTOWSP_STATEMENT_WAIT
                                 : receive->is_loop ? PTOWSP_STATEMENT_CONSUME
                                                    : PTOWSP_STATEMENT_RECEIVE;
    ptowsp_statement *statement = pwsp_reader_add(r, kind, op->node);
    statement->channel = receive->channel;
    if (!receive->is_wait) {
        statement->variable = receive->cell - r->program->first_variable;
        pwsp_reader_open(r, receive->is_loop ? PWSP_ENDS_BY_OP : op->target);
    }
}

static void pwsp_reader_op(pwsp_reader *r, uint32_t i) {
    const ptowsp_program *p = r->program;
    const pwsp_op *op = PWSP_OP_AT(p, i);
    switch (op->kind) {
    case PWSP_OP_LOOP: pwsp_reader_loop(r, op); break;
    case PWSP_OP_SCOPE:
        pwsp_reader_add(r, PTOWSP_STATEMENT_SCOPE, op->node)->scope = (ptowsp_scope)op->at;
        pwsp_reader_open(r, PWSP_ENDS_BY_OP);
        break;
    case PWSP_OP_LOOP_END:
    case PWSP_OP_SCOPE_END:
    case PWSP_OP_PROCESS_END:
    case PWSP_OP_RETURN: pwsp_reader_close(r, PTOWSP_STATEMENT_END, 0); break;
    case PWSP_OP_TASK: pwsp_reader_add(r, PTOWSP_STATEMENT_TASK, op->node)->task = op->at; break;
    case PWSP_OP_BRANCH:
        pwsp_reader_add(r, PTOWSP_STATEMENT_WHEN, op->node)->value =
            p->branches.items[op->at].condition.expr;
        pwsp_reader_open(r, op->target);
        break;
    case PWSP_OP_JUMP:
        if (op->target <= i) {  // back to the receive of a consume
            pwsp_reader_close(r, PTOWSP_STATEMENT_END, 0);
        } else {  // over the statements of an otherwise
            pwsp_reader_close(r, PTOWSP_STATEMENT_OTHERWISE, op->node);
            pwsp_reader_open(r, op->target);
        }
        break;
    case PWSP_OP_SLOT_SET:
    case PWSP_OP_SLOT_LOAD: pwsp_reader_slot(r, op); break;
    case PWSP_OP_CALL: pwsp_reader_call(r, op); break;
    case PWSP_OP_RESET: pwsp_reader_reset(r, op); break;
    case PWSP_OP_RELEASE: break;  // follows from the tensor
    case PWSP_OP_PIPELINE: pwsp_reader_pipeline(r, op); break;
    case PWSP_OP_SEND: pwsp_reader_send(r, op); break;
    case PWSP_OP_RECEIVE: pwsp_reader_receive(r, op); break;
    case PWSP_OP_CLOSE:
        pwsp_reader_add(r, PTOWSP_STATEMENT_CLOSE, op->node)->channel =
            p->ports.items[op->at].channel;
        break;
    case PWSP_OP_LIST:
        pwsp_reader_add(r, PTOWSP_STATEMENT_LIST, op->node)->count =
            p->lists.items[op->at].given.task_count;
        break;
    case PWSP_OP_LISTED:
    case PWSP_OP_LIST_NEXT: break;  // parts of it
    }
}

PWSP_INTERNAL bool pwsp_read_statements(pwsp_compiler *c) {
    PWSP_ZERO(pwsp_reader, reader);
    reader.c = c;
    reader.program = c->program;
    for (uint32_t i = 0; i < c->program->ops.count; i++) {
        if (!pwsp_reader_before(&reader, i)) {
            return false;
        }
        pwsp_reader_op(&reader, i);
    }
    for (uint32_t i = 0; i < c->program->statements.count; i++) {
        ptowsp_statement *statement = &c->program->statements.items[i];
        if (statement->kind == PTOWSP_STATEMENT_CALL) {
            statement->target = c->first_ops.items[statement->target];
        }
    }
    return pwsp_module_is_good(c->module);
}
