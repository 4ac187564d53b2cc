// Walking processes: which one moves, and the ops that need no expander.
//
// With one producer and one consumer for each channel, the times of sends and receives follow from
// each other alone. A network of such processes has one history, in whatever order they move (Kahn,
// The semantics of a simple language for parallel programming, 1974). So where no kernel reads
// data, a process may walk as far as it can, and a stack holds the ready ones. Processes switch
// only where one waits, not wherever another one has an earlier time. In all other pipelines the
// order of time decides: after each op a process goes on only if no ready one comes before it.
//
// All ops are prepared once: each with its operands at hand and with the op that follows it, behind
// jumps and scopes without effect in a process. Sends, receives, tasks and ends of loops are walked
// here, with position and time in registers; the others, and those that fail, take the way of
// order.c. So do sends and receives whose steps are recorded.
//
// A send or receive that makes the first process in line able to move does the waiting op of that
// one as well, if this is what would happen next: always without order; with it, if the woken one
// comes before all others that are ready, and if nobody waits at the other end of the channel. That is so
// but for ties, since it has waited longest.
//
//      consumer    receive k ..... receive k + 1         one visit, in which producer's send is done:
//      producer    send k + d (waits) .. send k + d + 1  it is ready again behind that send

#include "order.h"

// -- preparing ------------------------------------------------------------------------------------

// The place of a cell that has another one in each process that walks the op.
#define PWSP_NETWORK_NO_PLACE UINT32_MAX

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
    made.node = op->node;
    if (op->kind == PWSP_OP_LOOP_END) {
        const pwsp_loop *loop = PWSP_PROGRAM_AT(program, loops, pwsp_loop, op->at);
        made.kind = loop->axis_kind == PWSP_AXIS_SPARSE || pwsp_axis_is_work(loop->axis_kind)
                        ? PWSP_NETWORK_OTHER
                        : PWSP_NETWORK_LOOP_END;
        made.cell = loop->cell;
        made.place = PWSP_NETWORK_NO_PLACE;  // in a workload that processes call
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
        made.is_loop = receive->is_loop;
        made.channel_index = receive->channel;
        made.channel = &pipelines->exchange.channels[receive->channel];
        made.next = pwsp_network_from(pipelines, index + 1);
    } else if (op->kind == PWSP_OP_TASK) {
        made.kind = PWSP_NETWORK_TASK;
        made.next = pwsp_network_from(pipelines, index + 1);
    }
    return made;
}

// Finds the places of the cells in the ops of a process, which no other one walks. `places` are by
// cell, all 0.
static void pwsp_network_place(const pwsp_pipelines *pipelines, const pwsp_process_op *process,
                               uint32_t *places) {
    const uint32_t *privates =
        PWSP_PROGRAM_AT(pipelines->program, privates, uint32_t, process->first_private);
    for (uint32_t i = 0; i < process->private_count; i++) {
        places[privates[i]] = i + 1;
    }
    for (uint32_t i = process->first_op;
         PWSP_OP_AT(pipelines->program, i)->kind != PWSP_OP_PROCESS_END; i++) {
        pipelines->network_ops[i].place = places[pipelines->network_ops[i].cell];
    }
    for (uint32_t i = 0; i < process->private_count; i++) {
        places[privates[i]] = 0;
    }
}

PWSP_INTERNAL bool pwsp_pipelines_prepare(pwsp_pipelines *pipelines) {
    const ptowsp_program *program = pipelines->program;
    size_t size = (size_t)program->cell_count * sizeof(uint32_t);
    uint32_t *places = (uint32_t *)pwsp_memory_alloc(&pipelines->memory, size);
    for (uint32_t i = 0; places && i < program->ops.count; i++) {
        pipelines->network_ops[i] = pwsp_network_prepare(pipelines, i);
    }
    for (uint32_t i = 0; places && i < program->processes.count; i++) {
        pwsp_network_place(pipelines, PWSP_PROCESS_OP_AT(pipelines, i), places);
    }
    pwsp_memory_free(&pipelines->memory, places, size);
    return places != NULL;
}

// Which tasks are constant does not change during an execution.
static void pwsp_network_find_constants(pwsp_pipelines *pipelines) {
    const pwsp_pipeline_host *host = &pipelines->host;
    for (uint32_t i = 0; i < pipelines->program->ops.count; i++) {
        const pwsp_op *op = PWSP_OP_AT(pipelines->program, i);
        if (op->kind == PWSP_OP_TASK) {
            const pwsp_task_op *task =
                PWSP_PROGRAM_AT(pipelines->program, tasks, pwsp_task_op, op->at);
            pwsp_network_op *made = &pipelines->network_ops[i];
            made->kind = host->is_constant(host->user, task, &made->cycles) ? PWSP_NETWORK_CONSTANT
                                                                            : PWSP_NETWORK_TASK;
        }
    }
    pipelines->has_constants_found = true;
}

// -- the process that moves -----------------------------------------------------------------------

// In the order of time processes change often, and their private cells stay out of place until an
// op needs the expander. Without order they are put in place at once.
typedef struct pwsp_network_mover {
    pwsp_pipelines *pipelines;
    pwsp_process *process;
    uint64_t *cells;
    uint64_t time;
    bool is_entered;
} pwsp_network_mover;

PWSP_FORCE_INLINE void pwsp_network_enter(pwsp_network_mover *mover) {
    if (!mover->is_entered && PWSP_UNLIKELY(mover->process->op->private_count > 0)) {
        mover->is_entered = true;
        pwsp_process_swap(mover->pipelines, mover->process);
    }
}

// The process stays at an op, or continues there.
PWSP_FORCE_INLINE pwsp_resumed pwsp_network_leave(pwsp_network_mover *mover, uint32_t op,
                                                  pwsp_resumed resumed) {
    mover->process->time = mover->time;
    mover->process->next_op = op;
    if (PWSP_UNLIKELY(mover->is_entered)) {
        pwsp_process_swap(mover->pipelines, mover->process);
    }
    return resumed;
}

// Where a cell of an op is.
PWSP_FORCE_INLINE uint64_t *pwsp_network_cell(bool is_ordered, pwsp_network_mover *mover,
                                              const pwsp_network_op *op) {
    if (is_ordered && op->place > 0 && !mover->is_entered) {
        if (PWSP_LIKELY(op->place != PWSP_NETWORK_NO_PLACE)) {
            return &mover->process->kept[op->place - 1];
        }
        pwsp_network_enter(mover);
    }
    return &mover->cells[op->cell];
}

// -- sending and receiving ------------------------------------------------------------------------

PWSP_FORCE_INLINE void pwsp_network_put(bool is_ordered, pwsp_channel *channel,
                                        pwsp_process *process, uint64_t token, uint64_t *time) {
    uint64_t sent = pwsp_channel_put(channel, token, *time), waited = sent - *time;
    if (waited) {
        if (is_ordered) {
            process->full += waited;
            channel->full = pwsp_sum_u64(channel->full, waited);
        } else {  // of the one producer, so it is below PTOWSP_CYCLES_MAX
            channel->full += waited;
        }
        *time = sent;
    }
}

PWSP_FORCE_INLINE void pwsp_network_take(bool is_ordered, pwsp_channel *channel,
                                         pwsp_process *process, uint64_t *cell, uint64_t *time) {
    uint64_t received = pwsp_channel_take(channel, *time, cell), waited = received - *time;
    if (waited) {
        if (is_ordered) {
            process->empty += waited;
            channel->empty = pwsp_sum_u64(channel->empty, waited);
        } else {
            channel->empty += waited;
        }
        *time = received;
    }
}

// At a channel of depth 0.
PWSP_FORCE_INLINE void pwsp_network_meet(bool is_ordered, pwsp_channel *channel,
                                         pwsp_process *sender, uint64_t token,
                                         uint64_t *sender_time, pwsp_process *receiver,
                                         uint64_t *cell, uint64_t *receiver_time) {
    uint64_t time = pwsp_max_u64(*sender_time + channel->latency, *receiver_time);
    uint64_t full = time - *sender_time, empty = time - *receiver_time;
    channel->sent++;
    channel->received++;
    if (is_ordered) {
        channel->full = pwsp_sum_u64(channel->full, full);
        channel->empty = pwsp_sum_u64(channel->empty, empty);
        sender->full += full;
        receiver->empty += empty;
    } else {
        channel->full += full;
        channel->empty += empty;
    }
    *cell = token;
    *sender_time = *receiver_time = time;
}

// Can a token sent at a time be received before time ends?
PWSP_FORCE_INLINE bool pwsp_network_is_due(const pwsp_channel *channel, uint64_t time) {
    return PWSP_LIKELY(time + channel->latency <= PTOWSP_CYCLES_MAX);
}

PWSP_FORCE_INLINE pwsp_process *pwsp_network_first(const pwsp_pipelines *pipelines,
                                                   const pwsp_channel_line *line) {
    return &pipelines->exchange.processes[line->first - 1];
}

// Would a process that is woken now move before the mover and all others, and wake nobody? `others` are
// those that it would wake.
PWSP_FORCE_INLINE bool pwsp_network_is_next(bool is_ordered, const pwsp_network_mover *mover,
                                            const pwsp_process *woken,
                                            const pwsp_channel_line *others) {
    return !is_ordered || PWSP_LIKELY(pwsp_exchange_is_before(woken->time, woken->index,
                                                              mover->time, mover->process->index) &&
                                      pwsp_exchange_is_first(&mover->pipelines->exchange, woken) &&
                                      others->first == 0);
}

// Readies the first in line, behind its op if that is done for it.
PWSP_FORCE_INLINE void pwsp_network_wake(bool is_ordered, pwsp_pipelines *pipelines,
                                         pwsp_channel_line *line, bool is_done) {
    pwsp_exchange *exchange = &pipelines->exchange;
    pwsp_process *process = pwsp_network_first(pipelines, line);
    if (is_ordered) {
        pwsp_exchange_unqueue(exchange, line);
    } else {  // it stands there alone
        line->first = line->last = 0;
    }
    if (is_done) {
        process->next_op = pipelines->network_ops[process->next_op].next->index;
    }
    process->wait = PWSP_PROCESS_READY;
    if (is_ordered) {
        pwsp_exchange_push(exchange, process->time, process->index);
    } else {
        process->after = exchange->ready;
        exchange->ready = process->index + 1;
    }
}

PWSP_FORCE_INLINE pwsp_resumed pwsp_network_wait(bool is_ordered, pwsp_network_mover *mover,
                                                 const pwsp_network_op *op, pwsp_channel_line *line,
                                                 pwsp_process_wait wait) {
    pwsp_process *process = mover->process;
    process->wait = wait;
    process->channel = op->channel_index;
    process->node = op->node;
    process->time = mover->time;
    if (is_ordered) {
        pwsp_exchange_queue(&mover->pipelines->exchange, line, process);
    } else {
        PTOWSP_ASSERT(line->first == 0);
        process->after = 0;
        line->first = line->last = process->index + 1;
    }
    return pwsp_network_leave(mover, op->index, PWSP_RESUMED_STAYS);
}

// What a send or receive comes to.
typedef enum pwsp_network_done {
    PWSP_NETWORK_DONE,
    PWSP_NETWORK_WAITS,
    PWSP_NETWORK_LEFT  // to order.c: nothing has been done
} pwsp_network_done;

PWSP_FORCE_INLINE pwsp_network_done pwsp_network_send(bool is_ordered, pwsp_network_mover *mover,
                                                      const pwsp_network_op *op) {
    pwsp_channel *channel = op->channel;
    pwsp_pipelines *pipelines = mover->pipelines;
    pwsp_channel_line *line = &channel->receivers;
    if (PWSP_UNLIKELY(channel->sent >= channel->limit)) {
        return PWSP_NETWORK_LEFT;
    }
    uint64_t token = *pwsp_network_cell(is_ordered, mover, op);
    if (pwsp_channel_pending(channel) < channel->depth) {
        pwsp_network_put(is_ordered, channel, mover->process, token, &mover->time);
        if (line->first) {
            pwsp_process *receiver = pwsp_network_first(pipelines, line);
            bool is_done = pwsp_network_is_next(is_ordered, mover, receiver, &channel->senders) &&
                           PWSP_LIKELY(pwsp_channel_first_due(channel) <= PTOWSP_CYCLES_MAX);
            if (is_done) {
                pwsp_network_take(is_ordered, channel, receiver, receiver->inbox, &receiver->time);
            }
            pwsp_network_wake(is_ordered, pipelines, line, is_done);
        }
        return PWSP_NETWORK_DONE;
    }
    if (line->first && channel->depth == 0) {
        pwsp_process *receiver = pwsp_network_first(pipelines, line);
        if (!pwsp_network_is_due(channel, mover->time)) {
            return PWSP_NETWORK_LEFT;
        }
        pwsp_network_meet(is_ordered, channel, mover->process, token, &mover->time, receiver,
                          receiver->inbox, &receiver->time);
        pwsp_network_wake(is_ordered, pipelines, line, true);
        return PWSP_NETWORK_DONE;
    }
    mover->process->token = token;
    return PWSP_NETWORK_WAITS;
}

PWSP_FORCE_INLINE pwsp_network_done pwsp_network_receive(bool is_ordered, pwsp_network_mover *mover,
                                                         const pwsp_network_op *op) {
    pwsp_channel *channel = op->channel;
    pwsp_pipelines *pipelines = mover->pipelines;
    pwsp_process *process = mover->process;
    pwsp_channel_line *line = &channel->senders;
    if (pwsp_channel_pending(channel) > 0) {
        if (PWSP_UNLIKELY(pwsp_channel_first_due(channel) > PTOWSP_CYCLES_MAX) ||
            pwsp_halt_is(pipelines->host.halt)) {
            return PWSP_NETWORK_LEFT;
        }
        pwsp_network_take(is_ordered, channel, process, pwsp_network_cell(is_ordered, mover, op),
                          &mover->time);
        if (line->first) {
            pwsp_process *sender = pwsp_network_first(pipelines, line);
            bool is_done = pwsp_network_is_next(is_ordered, mover, sender, &channel->receivers) &&
                           PWSP_LIKELY(channel->sent < channel->limit);
            if (is_done) {
                pwsp_network_put(is_ordered, channel, sender, sender->token, &sender->time);
            }
            pwsp_network_wake(is_ordered, pipelines, line, is_done);
        }
        return PWSP_NETWORK_DONE;
    }
    if (line->first && channel->depth == 0) {
        pwsp_process *sender = pwsp_network_first(pipelines, line);
        if (PWSP_UNLIKELY(channel->sent >= channel->limit) ||
            !pwsp_network_is_due(channel, sender->time)) {
            return PWSP_NETWORK_LEFT;
        }
        pwsp_network_meet(is_ordered, channel, sender, sender->token, &sender->time, process,
                          pwsp_network_cell(is_ordered, mover, op), &mover->time);
        pwsp_network_wake(is_ordered, pipelines, line, true);
        return PWSP_NETWORK_DONE;
    }
    if (channel->producers == 0) {
        return PWSP_NETWORK_LEFT;
    }
    process->is_loop = op->is_loop;
    process->inbox = op->place ? &process->kept[op->place - 1] : &mover->cells[op->cell];
    return PWSP_NETWORK_WAITS;
}

// -- walking --------------------------------------------------------------------------------------

PWSP_FORCE_INLINE pwsp_network_done pwsp_network_constant(pwsp_network_mover *mover,
                                                          const pwsp_network_op *op) {
    uint64_t end = mover->time + op->cycles;
    if (PWSP_UNLIKELY(end > PTOWSP_CYCLES_MAX) || pwsp_halt_is(mover->pipelines->host.halt)) {
        return PWSP_NETWORK_LEFT;
    }
    mover->time = end;
    mover->process->busy += op->cycles;
    mover->process->tasks++;
    mover->pipelines->x->task_count++;
    mover->pipelines->constant_count++;
    return PWSP_NETWORK_DONE;
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

// Runs a process until it waits or has ended or, with order, another one comes first. An op that
// is left has done nothing, and takes the way of order.c. After an error the cells of the
// process stay in place, as the error is about it.
PWSP_FORCE_INLINE pwsp_resumed pwsp_network_resume(bool is_ordered, pwsp_pipelines *pipelines,
                                                   pwsp_process *process) {
    const pwsp_exchange *exchange = &pipelines->exchange;
    const pwsp_network_op *op = &pipelines->network_ops[process->next_op + process->has_met];
    const bool has_records = is_ordered && exchange->has_records;
    const uint32_t index = process->index;
    pwsp_halt *halt = pipelines->host.halt;
    pwsp_network_mover mover = {pipelines, process, pipelines->cells, process->time, false};
    process->has_met = false;
    if (!is_ordered) {
        pwsp_network_enter(&mover);
    }
    for (;;) {
        pwsp_network_done done = PWSP_NETWORK_LEFT;
        if (op->kind == PWSP_NETWORK_LOOP_END) {
            pwsp_frame *frame = &process->frames[process->frame_count - 1];
            if (PWSP_LIKELY(frame->i + 1 != frame->count) && !pwsp_halt_is(halt)) {
                *pwsp_network_cell(is_ordered, &mover, op) = (uint64_t)++frame->i;
                op = op->next;
                continue;
            }
        } else if (op->kind == PWSP_NETWORK_SEND && !has_records) {
            done = pwsp_network_send(is_ordered, &mover, op);
            if (done == PWSP_NETWORK_WAITS) {
                return pwsp_network_wait(is_ordered, &mover, op, &op->channel->senders,
                                         PWSP_PROCESS_WAITS_FULL);
            }
        } else if (op->kind == PWSP_NETWORK_RECEIVE && !has_records) {
            done = pwsp_network_receive(is_ordered, &mover, op);
            if (done == PWSP_NETWORK_WAITS) {
                return pwsp_network_wait(is_ordered, &mover, op, &op->channel->receivers,
                                         PWSP_PROCESS_WAITS_EMPTY);
            }
        } else if (op->kind == PWSP_NETWORK_CONSTANT) {
            done = pwsp_network_constant(&mover, op);
        } else if (op->kind == PWSP_NETWORK_TASK && !pwsp_halt_is(halt)) {
            pwsp_network_enter(&mover);
            process->time = mover.time;
            if (!pwsp_pipelines_step_task(pipelines, process, op->index)) {
                return PWSP_RESUMED_FAILED;
            }
            mover.time = process->time;
            done = PWSP_NETWORK_DONE;
        }
        if (PWSP_LIKELY(done == PWSP_NETWORK_DONE)) {
            op = op->next;
        } else {
            pwsp_network_enter(&mover);
            process->time = mover.time;
            pwsp_resumed resumed = pwsp_network_other(pipelines, process, op);
            if (resumed == PWSP_RESUMED_FAILED) {
                return resumed;
            }
            mover.time = process->time;
            if (resumed == PWSP_RESUMED_STAYS) {
                return pwsp_network_leave(&mover, process->next_op, resumed);
            }
            op = &pipelines->network_ops[process->next_op];
        }
        if (is_ordered && !pwsp_exchange_leads(exchange, mover.time, index)) {
            return pwsp_network_leave(&mover, op->index, PWSP_RESUMED_LATER);
        }
    }
}

// Whether the walk ends early. Before each visit: a process whose receives are all done for it, as those
// of a ring are, looks nowhere else.
static bool pwsp_network_is_halted(pwsp_pipelines *pipelines) {
    return pwsp_halt_is(pipelines->host.halt) &&
           pwsp_expander_fail_halt(pipelines->x, pipelines->host.halt);
}

// In the order of time.
static bool pwsp_network_walk_in_order(pwsp_pipelines *pipelines) {
    pwsp_exchange *exchange = &pipelines->exchange;
    while (exchange->ready_count > 0) {
        if (pwsp_network_is_halted(pipelines)) {
            return false;
        }
        pwsp_process *process = &exchange->processes[pwsp_exchange_pop(exchange)];
        pwsp_resumed resumed = pwsp_network_resume(true, pipelines, process);
        if (resumed == PWSP_RESUMED_FAILED) {
            return false;
        }
        if (resumed == PWSP_RESUMED_LATER) {
            pwsp_exchange_push(exchange, process->time, process->index);
        }
    }
    return true;
}

static bool pwsp_network_walk_freely(pwsp_pipelines *pipelines) {
    pwsp_exchange *exchange = &pipelines->exchange;
    while (exchange->ready) {
        pwsp_process *process = &exchange->processes[exchange->ready - 1];
        PTOWSP_ASSERT(process->wait == PWSP_PROCESS_READY);
        exchange->ready = process->after;
        if (pwsp_network_is_halted(pipelines) ||
            pwsp_network_resume(false, pipelines, process) == PWSP_RESUMED_FAILED) {
            return false;
        }
    }
    return true;
}

PWSP_INTERNAL bool pwsp_pipelines_walk(pwsp_pipelines *pipelines) {
    pwsp_exchange *exchange = &pipelines->exchange;
    if (!pipelines->has_constants_found) {
        pwsp_network_find_constants(pipelines);
    }
    exchange->ready_count = exchange->few_first = exchange->few_end = 0;
    exchange->ready = 0;
    for (uint32_t i = 0; i < exchange->running_count; i++) {  // the first on top
        uint32_t index = exchange->is_ordered ? i : exchange->running_count - 1 - i;
        pwsp_exchange_wake(exchange, &exchange->processes[index]);
    }
    return exchange->is_ordered ? pwsp_network_walk_in_order(pipelines)
                                : pwsp_network_walk_freely(pipelines);
}
