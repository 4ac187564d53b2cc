// Walking processes in any order.
//
// With one producer and one consumer for each channel, the times of sends and receives follow from
// each other alone. A network of such processes has one history, in whatever order they move (Kahn,
// The semantics of a simple language for parallel programming, 1974). So where no kernel reads
// data, a process may walk as far as it can, and a stack holds the ready ones. Processes switch
// only where one waits, not wherever another one has an earlier time.
//
// The ops of loops that send and receive are prepared once: each with its operands at hand and with
// the op that follows it, behind jumps and scopes without effect in a process. These are walked
// here, with position and time in registers; all other ops take the way of order.c.

#include "order.h"

// -- preparing ------------------------------------------------------------------------------------

static const pwsp_network_op *pwsp_network_from(const pwsp_pipelines *pipelines, uint32_t index) {
    for (;;) {
        const pwsp_op *op = PWSP_OP_AT(pipelines->program, index);
        switch (op->kind) {
        case PWSP_OP_JUMP: index = op->target; break;
        case PWSP_OP_SCOPE:
        case PWSP_OP_SCOPE_END:
        case PWSP_OP_RESET:
        case PWSP_OP_RELEASE: index++; break;
        default: return &pipelines->network_ops[index];
        }
    }
}

static pwsp_network_op pwsp_network_prepare(const pwsp_pipelines *pipelines, uint32_t index) {
    const ptowsp_program *program = pipelines->program;
    const pwsp_op *op = PWSP_OP_AT(program, index);
    pwsp_network_op made;
    memset(&made, 0, sizeof made);
    made.index = index;
    if (op->kind == PWSP_OP_LOOP_END) {
        const pwsp_loop *loop = PWSP_PROGRAM_AT(program, loops, pwsp_loop, op->at);
        made.kind = loop->axis_kind == PWSP_AXIS_SPARSE || pwsp_axis_is_work(loop->axis_kind)
                        ? PWSP_NETWORK_OTHER
                        : PWSP_NETWORK_LOOP_END;
        made.cell = loop->cell;
        made.next = pwsp_network_from(pipelines, op->target);
    } else if (op->kind == PWSP_OP_SEND) {
        const pwsp_send_op *send = PWSP_PROGRAM_AT(program, sends, pwsp_send_op, op->at);
        bool is_cell = send->token.begin == send->token.end;
        bool is_closed_early = PWSP_PORT_AT(pipelines, send->port)->is_closed_early;
        made.kind = is_cell && !is_closed_early ? PWSP_NETWORK_SEND : PWSP_NETWORK_OTHER;
        made.cell = send->token.cell;
        made.channel_index = send->channel;
        made.channel = &pipelines->exchange.channels[send->channel];
        made.next = pwsp_network_from(pipelines, index + 1);
    } else if (op->kind == PWSP_OP_RECEIVE) {
        const pwsp_receive_op *receive =
            PWSP_PROGRAM_AT(program, receives, pwsp_receive_op, op->at);
        made.kind = PWSP_NETWORK_RECEIVE;
        made.cell = receive->cell;
        made.channel_index = receive->channel;
        made.channel = &pipelines->exchange.channels[receive->channel];
        made.next = pwsp_network_from(pipelines, index + 1);
    }
    return made;
}

PWSP_INTERNAL void pwsp_pipelines_prepare_freely(pwsp_pipelines *pipelines) {
    for (uint32_t i = 0; i < pipelines->program->ops.count; i++) {
        pipelines->network_ops[i] = pwsp_network_prepare(pipelines, i);
    }
}

// -- walking --------------------------------------------------------------------------------------

// Swaps the cells of a process into place, or out again.
PWSP_FORCE_INLINE void pwsp_network_swap(const pwsp_pipelines *pipelines,
                                         const pwsp_process *process) {
    if (PWSP_UNLIKELY(process->op->private_count > 0)) {
        pwsp_process_swap(pipelines, process);
    }
}

// Makes a process wait at a channel where no other waits.
PWSP_FORCE_INLINE pwsp_resumed pwsp_network_wait(const pwsp_pipelines *pipelines,
                                                 pwsp_process *process, uint64_t time,
                                                 const pwsp_network_op *op, pwsp_channel_line *line,
                                                 pwsp_process_wait wait) {
    PTOWSP_ASSERT(line->first == 0);
    process->time = time;
    process->next_op = op->index;
    process->wait = wait;
    process->channel = op->channel_index;
    process->node = pipelines->x->ops[op->index].node;
    process->after = 0;
    line->first = line->last = process->index + 1;
    pwsp_network_swap(pipelines, process);
    return PWSP_RESUMED_STAYS;
}

// Readies the process that waits at a channel, behind its op, which is done for it.
PWSP_FORCE_INLINE pwsp_process *pwsp_network_wake(pwsp_pipelines *pipelines,
                                                  pwsp_channel_line *line) {
    uint32_t number = line->first;
    PTOWSP_ASSERT(number > 0 && number <= pipelines->exchange.running_count);
    pwsp_process *process = &pipelines->exchange.processes[number - 1];
    process->next_op = pipelines->network_ops[process->next_op].next->index;
    line->first = line->last = 0;
    process->wait = PWSP_PROCESS_READY;
    process->after = pipelines->exchange.ready;
    pipelines->exchange.ready = number;
    return process;
}

PWSP_FORCE_INLINE void pwsp_network_put(pwsp_channel *channel, uint64_t token, uint64_t *time) {
    uint64_t sent = pwsp_channel_put(channel, token, *time);
    if (sent != *time) {
        channel->full += sent - *time;
        *time = sent;
    }
}

PWSP_FORCE_INLINE void pwsp_network_take(pwsp_channel *channel, uint64_t *cell, uint64_t *time) {
    uint64_t received = pwsp_channel_take(channel, *time, cell);
    if (received != *time) {
        channel->empty += received - *time;
        *time = received;
    }
}

// At a channel of depth 0.
PWSP_FORCE_INLINE void pwsp_network_meet(pwsp_channel *channel, uint64_t token,
                                         uint64_t *sender_time, uint64_t *cell,
                                         uint64_t *receiver_time) {
    uint64_t time = pwsp_max_u64(*sender_time + channel->latency, *receiver_time);
    channel->sent++;
    channel->received++;
    channel->full += time - *sender_time;
    channel->empty += time - *receiver_time;
    *cell = token;
    *sender_time = *receiver_time = time;
}

// Can a token sent at a time be received before time ends?
PWSP_FORCE_INLINE bool pwsp_network_is_due(const pwsp_channel *channel, uint64_t time) {
    return PWSP_LIKELY(time + channel->latency <= PTOWSP_CYCLES_MAX);
}

// An op of another kind, or one that fails.
static pwsp_resumed pwsp_network_other(pwsp_pipelines *pipelines, pwsp_process *process,
                                       const pwsp_network_op *op) {
    pwsp_expander *x = pipelines->x;
    uint32_t next = op->index;
    PTOWSP_ASSERT(next < pipelines->program->ops.count);
    x->frames = process->frames;
    x->frame_count = process->frame_count;
    pwsp_resumed resumed = pwsp_pipelines_step(pipelines, process, &next);
    process->frame_count = x->frame_count;
    process->next_op = next;
    return resumed;
}

// Runs a process until it waits or has ended. `continue` follows a finished op. `break` leaves an
// op that is handled elsewhere: nothing has been done.
PWSP_FORCE_INLINE pwsp_resumed pwsp_network_resume(pwsp_pipelines *pipelines,
                                                   pwsp_process *process) {
    const pwsp_network_op *op = &pipelines->network_ops[process->next_op + process->has_met];
    process->has_met = false;
    pwsp_halt *halt = pipelines->host.halt;
    uint64_t *cells = pipelines->cells;
    uint64_t time = process->time;
    pwsp_network_swap(pipelines, process);
    for (;;) {
        pwsp_channel *channel = op->channel;
        switch (op->kind) {
        case PWSP_NETWORK_LOOP_END: {
            pwsp_frame *frame = &process->frames[process->frame_count - 1];
            if (frame->i + 1 == frame->count || pwsp_halt_is(halt)) {
                break;
            }
            cells[op->cell] = (uint64_t)++frame->i;
            op = op->next;
            continue;
        }
        case PWSP_NETWORK_SEND:
            if (PWSP_UNLIKELY(channel->sent >= channel->limit)) {
                break;
            }
            if (channel->receivers.first) {
                pwsp_process *receiver =
                    &pipelines->exchange.processes[channel->receivers.first - 1];
                if (!pwsp_network_is_due(channel, pwsp_max_u64(time, receiver->time))) {
                    break;  // its place was free before its receiver came
                }
                pwsp_network_wake(pipelines, &channel->receivers);
                if (channel->depth > 0) {
                    pwsp_network_put(channel, cells[op->cell], &time);
                    pwsp_network_take(channel, receiver->inbox, &receiver->time);
                } else {
                    pwsp_network_meet(channel, cells[op->cell], &time, receiver->inbox,
                                      &receiver->time);
                }
            } else if (pwsp_channel_pending(channel) < channel->depth) {
                pwsp_network_put(channel, cells[op->cell], &time);
            } else {
                process->token = cells[op->cell];
                return pwsp_network_wait(pipelines, process, time, op, &channel->senders,
                                         PWSP_PROCESS_WAITS_FULL);
            }
            op = op->next;
            continue;
        case PWSP_NETWORK_RECEIVE:
            if (pwsp_channel_pending(channel) > 0) {
                if (PWSP_UNLIKELY(pwsp_channel_first_due(channel) > PTOWSP_CYCLES_MAX) ||
                    pwsp_halt_is(halt)) {
                    break;
                }
                pwsp_network_take(channel, &cells[op->cell], &time);
                if (channel->senders.first) {
                    pwsp_process *sender = pwsp_network_wake(pipelines, &channel->senders);
                    pwsp_network_put(channel, sender->token, &sender->time);
                }
            } else if (channel->senders.first) {  // at depth 0
                pwsp_process *sender = &pipelines->exchange.processes[channel->senders.first - 1];
                if (!pwsp_network_is_due(channel, sender->time)) {
                    break;
                }
                pwsp_network_wake(pipelines, &channel->senders);
                pwsp_network_meet(channel, sender->token, &sender->time, &cells[op->cell], &time);
            } else if (channel->producers > 0) {
                const pwsp_op *from = &pipelines->x->ops[op->index];
                const pwsp_receive_op *receive =
                    PWSP_PROGRAM_AT(pipelines->program, receives, pwsp_receive_op, from->at);
                process->is_loop = receive->is_loop;
                process->inbox =
                    receive->place ? &process->kept[receive->place - 1] : &cells[op->cell];
                return pwsp_network_wait(pipelines, process, time, op, &channel->receivers,
                                         PWSP_PROCESS_WAITS_EMPTY);
            } else {
                break;
            }
            op = op->next;
            continue;
        case PWSP_NETWORK_OTHER: break;
        }
        process->time = time;
        pwsp_resumed resumed = pwsp_network_other(pipelines, process, op);
        if (resumed == PWSP_RESUMED_STAYS) {
            pwsp_network_swap(pipelines, process);
        }
        if (resumed != PWSP_RESUMED_LATER) {
            return resumed;
        }
        time = process->time;
        op = &pipelines->network_ops[process->next_op];
    }
}

PWSP_INTERNAL bool pwsp_pipelines_walk_freely(pwsp_pipelines *pipelines) {
    pipelines->exchange.ready = 0;
    for (uint32_t i = pipelines->exchange.running_count; i > 0; i--) {
        pwsp_exchange_wake(&pipelines->exchange, &pipelines->exchange.processes[i - 1]);
    }
    while (pipelines->exchange.ready) {
        pwsp_process *process = &pipelines->exchange.processes[pipelines->exchange.ready - 1];
        PTOWSP_ASSERT(process->wait == PWSP_PROCESS_READY);
        pipelines->exchange.ready = process->after;
        if (pwsp_halt_is(pipelines->host.halt)) {
            pwsp_expander_fail_halt(pipelines->x, pipelines->host.halt);
            return false;
        }
        if (pwsp_network_resume(pipelines, process) == PWSP_RESUMED_FAILED) {
            return false;
        }
    }
    return true;
}
