// Walking processes in any order.
//
// With one producer and one consumer for each channel, the times of sends and receives follow from
// each other alone: a network of such processes has one history, whoever moves first (Kahn, The
// semantics of a simple language for parallel programming, 1974). So where no kernel looks at data,
// a process may walk as far as it can, and a stack holds those that are ready. Processes change
// only where one waits, not wherever time changes sides.
//
// What loops that send and receive consist of is walked here, with position and time in registers.
// All other ops, and those that have to wait, take the way of walk.c.

#include "walk.h"

// Where a process is.
typedef struct pwsp_stride {
    pwsp_process *process;
    const pwsp_op *op;
    uint64_t time;
} pwsp_stride;

// Lets a process wait at a channel, where nobody else does.
PWSP_FORCE_INLINE pwsp_resumed pwsp_kahn_wait(const pwsp_stride *stride, pwsp_channel_line *line,
                                              uint32_t channel, pwsp_process_wait wait) {
    pwsp_process *process = stride->process;
    process->wait = wait;
    process->channel = channel;
    process->node = stride->op->node;
    process->after = 0;
    line->first = line->last = process->index + 1;
    return PWSP_RESUMED_STAYS;
}

PWSP_FORCE_INLINE pwsp_process *pwsp_kahn_first(pwsp_pipelines *pipelines,
                                                pwsp_channel_line *line) {
    pwsp_process *process = &pipelines->processes[line->first - 1];
    line->first = line->last = 0;
    return process;
}

// Sends a token, or waits until there is room. FAILED if that is not for here: nothing has been
// done.
PWSP_FORCE_INLINE pwsp_resumed pwsp_kahn_send(pwsp_pipelines *pipelines, pwsp_expander *x,
                                              pwsp_stride *stride) {
    const pwsp_send_op *send = PWSP_PROGRAM_AT(x->program, sends, pwsp_send_op, stride->op->at);
    pwsp_channel *at = &pipelines->channels[send->channel];
    uint64_t token = pwsp_expander_value(x, send->token);
    if (at->depth == 0 || pipelines->has_closes || x->fault.is_set) {
        return PWSP_RESUMED_FAILED;
    }
    if (pwsp_channel_pending(at) == at->depth) {
        stride->process->token = token;
        return pwsp_kahn_wait(stride, &at->senders, send->channel, PWSP_PROCESS_WAITS_FULL);
    }
    uint64_t sent = pwsp_channel_put(at, token, stride->time);
    at->full += sent - stride->time;
    stride->time = sent;
    if (at->receivers.first && sent + at->latency <= PTOWSP_CYCLES_MAX) {
        pwsp_process *receiver = pwsp_kahn_first(pipelines, &at->receivers);
        uint64_t received = pwsp_channel_take(at, receiver->time, receiver->inbox);
        at->empty += received - receiver->time;
        receiver->time = received;
        receiver->next_op++;
        pwsp_pipelines_wake(pipelines, receiver);
    }
    return PWSP_RESUMED_LATER;
}

// Receives a token, or waits until there is one. FAILED as above.
PWSP_FORCE_INLINE pwsp_resumed pwsp_kahn_receive(pwsp_pipelines *pipelines, pwsp_expander *x,
                                                 pwsp_stride *stride) {
    const pwsp_receive_op *receive =
        PWSP_PROGRAM_AT(x->program, receives, pwsp_receive_op, stride->op->at);
    pwsp_channel *at = &pipelines->channels[receive->channel];
    if (pwsp_channel_pending(at) == 0) {
        if (at->depth == 0 || at->producers == 0) {
            return PWSP_RESUMED_FAILED;
        }
        stride->process->receive = receive;
        stride->process->inbox =
            receive->place ? &stride->process->kept[receive->place - 1] : &x->cells[receive->cell];
        return pwsp_kahn_wait(stride, &at->receivers, receive->channel, PWSP_PROCESS_WAITS_EMPTY);
    }
    if (pwsp_channel_first_due(at) > PTOWSP_CYCLES_MAX) {
        return PWSP_RESUMED_FAILED;
    }
    uint64_t received = pwsp_channel_take(at, stride->time, &x->cells[receive->cell]);
    at->empty += received - stride->time;
    stride->time = received;
    if (at->senders.first) {
        pwsp_process *sender = pwsp_kahn_first(pipelines, &at->senders);
        uint64_t sent = pwsp_channel_put(at, sender->token, sender->time);
        at->full += sent - sender->time;
        sender->time = sent;
        sender->next_op++;
        pwsp_pipelines_wake(pipelines, sender);
    }
    return PWSP_RESUMED_LATER;
}

// Lets a process go on until it waits or has ended.
PWSP_FORCE_INLINE pwsp_resumed pwsp_kahn_resume(pwsp_pipelines *pipelines, pwsp_process *process) {
    pwsp_expander *x = pipelines->x;
    const pwsp_op *ops = x->ops;
    pwsp_stride stride = {process, &ops[process->next_op], process->time};
    pwsp_resumed resumed;
    pwsp_process_enter(pipelines, process);
    do {
        const pwsp_op *op = stride.op;
        while (op->kind == PWSP_OP_JUMP ||
               (op->kind == PWSP_OP_LOOP_END && pwsp_expander_count(x, op))) {
            op = &ops[op->target];
        }
        stride.op = op;
        resumed = op->kind == PWSP_OP_SEND      ? pwsp_kahn_send(pipelines, x, &stride)
                  : op->kind == PWSP_OP_RECEIVE ? pwsp_kahn_receive(pipelines, x, &stride)
                                                : PWSP_RESUMED_FAILED;
        if (resumed == PWSP_RESUMED_LATER) {
            stride.op = op + 1;
        } else if (resumed == PWSP_RESUMED_FAILED) {
            uint32_t next = (uint32_t)(op - ops);
            process->time = stride.time;
            resumed = pwsp_pipelines_step(pipelines, process, &next);
            stride.time = process->time;
            stride.op = &ops[next];
        }
    } while (resumed == PWSP_RESUMED_LATER);
    process->time = stride.time;
    process->next_op = (uint32_t)(stride.op - ops);
    if (resumed != PWSP_RESUMED_FAILED) {  // else the error is about it
        pwsp_process_leave(pipelines, process);
    }
    return resumed;
}

PWSP_INTERNAL bool pwsp_pipelines_walk_freely(pwsp_pipelines *pipelines) {
    pipelines->ready = 0;
    for (uint32_t i = pipelines->running_count; i > 0; i--) {
        pwsp_pipelines_wake(pipelines, &pipelines->processes[i - 1]);
    }
    while (pipelines->ready) {
        pwsp_process *process = &pipelines->processes[pipelines->ready - 1];
        pipelines->ready = process->after;
        if (pwsp_kahn_resume(pipelines, process) == PWSP_RESUMED_FAILED) {
            return false;
        }
    }
    return true;
}
