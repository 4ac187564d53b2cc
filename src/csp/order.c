// Walking processes: one op of a process, and which process moves.
//
// A step takes a process through the expander to its next event, and does it by the rules of
// rules.h. A process that waits stays at its op, and repeats it when it is woken; or it continues
// after the op, if another process has met it there meanwhile.
//
// With one producer and one consumer for each channel, the times of sends and receives follow from
// each other alone. A network of such processes has one history, in whatever order they move (Kahn,
// The semantics of a simple language for parallel programming, 1974). So where no kernel reads
// data, a process may walk as far as it can, and a stack holds the ready ones. Processes switch
// only where one waits, not wherever another one has an earlier time. In all other pipelines the
// order of time decides: after each op a process continues only if no ready one comes before it.
//
// Most ops need no expander. All are prepared once: each with its operands at hand and with the op
// that follows it, after jumps and scopes without effect in a process.

#include "order.h"

#include "rules.h"

// -- preparing ------------------------------------------------------------------------------------

// The place of a cell that has another one in each process that walks the op.
#define PWSP_ORDER_NO_PLACE UINT32_MAX

static const pwsp_order_op *pwsp_order_from(const pwsp_pipelines *pipelines, uint32_t index) {
    for (;;) {
        const pwsp_op *op = PWSP_OP_AT(pipelines->program, index);
        switch (op->kind) {
        case PWSP_OP_JUMP: index = op->target; break;
        case PWSP_OP_SCOPE:
        case PWSP_OP_SCOPE_END:
        case PWSP_OP_RESET:
        case PWSP_OP_RELEASE: index++; break;
        default: return &pipelines->order_ops[index];
        }
    }
}

static pwsp_order_op pwsp_order_prepare(const pwsp_pipelines *pipelines, uint32_t index) {
    const ptowsp_program *program = pipelines->program;
    const pwsp_op *op = PWSP_OP_AT(program, index);
    PWSP_ZERO(pwsp_order_op, made);
    made.index = index;
    made.node = op->node;
    if (op->kind == PWSP_OP_LOOP_END) {
        const pwsp_loop *loop = &program->loops.items[op->at];
        if (loop->axis_kind != PWSP_AXIS_SPARSE && !pwsp_axis_is_work(loop->axis_kind)) {
            made.kind = PWSP_ORDER_LOOP_END;
        }
        made.cell = loop->cell;
        made.place = PWSP_ORDER_NO_PLACE;  // in a workload that processes call
        made.next = pwsp_order_from(pipelines, op->target);
    } else if (op->kind == PWSP_OP_SEND) {
        const pwsp_send_op *send = &program->sends.items[op->at];
        bool is_cell = send->token.begin == send->token.end;
        if (is_cell && !PWSP_PORT_AT(pipelines, send->port)->is_closed_early) {
            made.kind = PWSP_ORDER_SEND;
        }
        made.cell = send->token.cell;
        made.channel = &pipelines->exchange.channels[send->channel];
    } else if (op->kind == PWSP_OP_RECEIVE) {
        const pwsp_receive_op *receive = &program->receives.items[op->at];
        made.kind = PWSP_ORDER_RECEIVE;
        made.cell = receive->cell;
        made.is_loop = receive->is_loop;
        made.channel = &pipelines->exchange.channels[receive->channel];
        made.end = pwsp_order_from(pipelines, op->target);
    } else if (op->kind == PWSP_OP_TASK) {
        made.kind = PWSP_ORDER_TASK;
    }
    if (op->kind == PWSP_OP_SEND || op->kind == PWSP_OP_RECEIVE || op->kind == PWSP_OP_TASK) {
        made.next = pwsp_order_from(pipelines, index + 1);
    }
    return made;
}

// Finds the places of the cells in the ops of a process, which no other one walks. `places` are by
// cell, all 0.
static void pwsp_order_place(const pwsp_pipelines *pipelines, const pwsp_process_op *process,
                             uint32_t *places) {
    const uint32_t *privates = &pipelines->program->privates.items[process->first_private];
    for (uint32_t i = 0; i < process->private_count; i++) {
        places[privates[i]] = i + 1;
    }
    for (uint32_t i = process->first_op;
         PWSP_OP_AT(pipelines->program, i)->kind != PWSP_OP_PROCESS_END; i++) {
        pipelines->order_ops[i].place = places[pipelines->order_ops[i].cell];
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
        pipelines->order_ops[i] = pwsp_order_prepare(pipelines, i);
    }
    for (uint32_t i = 0; places && i < program->processes.count; i++) {
        pwsp_order_place(pipelines, PWSP_PROCESS_OP_AT(pipelines, i), places);
    }
    pwsp_memory_free(&pipelines->memory, places, size);
    return places != NULL;
}

// Which tasks are constant does not change during an execution.
static void pwsp_order_find_constants(pwsp_pipelines *pipelines) {
    const pwsp_pipeline_host *host = &pipelines->host;
    for (uint32_t i = 0; i < pipelines->program->ops.count; i++) {
        const pwsp_op *op = PWSP_OP_AT(pipelines->program, i);
        if (op->kind == PWSP_OP_TASK) {
            const pwsp_task_op *task = &pipelines->program->tasks.items[op->at];
            pwsp_order_op *made = &pipelines->order_ops[i];
            made->kind = host->is_constant(host->user, task, &made->cycles) ? PWSP_ORDER_CONSTANT
                                                                            : PWSP_ORDER_TASK;
        }
    }
    pipelines->has_constants_found = true;
}

// -- one step -------------------------------------------------------------------------------------

// The outcome of a send or receive. *next is the op after it; `end` is where a receive continues
// at the end of the stream.
static pwsp_resumed pwsp_order_exchanged(pwsp_pipelines *pipelines, const pwsp_process *process,
                                         pwsp_exchanged what, uint32_t end, uint32_t *next) {
    switch (what) {
    case PWSP_EXCHANGED: return PWSP_RESUMED_LATER;
    case PWSP_EXCHANGE_WAITS: --*next; return PWSP_RESUMED_STAYS;
    case PWSP_EXCHANGE_END: *next = end; return PWSP_RESUMED_LATER;
    case PWSP_EXCHANGE_LATE:
    case PWSP_EXCHANGE_CLOSED:
    case PWSP_EXCHANGE_LIMIT: break;
    }
    pwsp_error error;
    pwsp_exchange_fail(&pipelines->exchange, what, process, &error);
    pwsp_expander_fail_check(pipelines->x, &error);
    return PWSP_RESUMED_FAILED;
}

static pwsp_resumed pwsp_order_send(pwsp_pipelines *pipelines, pwsp_process *process,
                                    uint32_t *next) {
    const pwsp_expander *x = pipelines->x;
    pwsp_exchanged what = pwsp_exchange_send(&pipelines->exchange, process,
                                             x->send->port - process->op->first_port, x->token);
    return pwsp_order_exchanged(pipelines, process, what, 0, next);
}

static pwsp_resumed pwsp_order_receive(pwsp_pipelines *pipelines, pwsp_process *process,
                                       uint32_t *next) {
    const pwsp_expander *x = pipelines->x;
    const pwsp_receive_op *receive = x->receive;
    process->inbox = pwsp_process_inbox(pipelines, process, receive);
    process->is_loop = receive->is_loop;
    pwsp_exchanged what = pwsp_exchange_receive(&pipelines->exchange, process, receive->channel,
                                                &pipelines->cells[receive->cell]);
    return pwsp_order_exchanged(pipelines, process, what, x->receive_end, next);
}

static bool pwsp_order_task(pwsp_pipelines *pipelines, pwsp_process *process) {
    pwsp_expander *x = pipelines->x;
    ptowsp_cycles cycles = 0;
    pwsp_error error;
    PTOWSP_ASSERT(pipelines->exchange.moves != PWSP_MOVES_CHOSEN);  // tasks are skipped there
    if (!pipelines->host.task(pipelines->host.user, process, &cycles)) {
        return false;
    }
    bool is_good = pwsp_exchange_task(&pipelines->exchange, process, x->task.index, cycles, &error);
    if (!is_good) {
        pwsp_expander_fail_check(x, &error);
    }
    return is_good;
}

PWSP_INTERNAL pwsp_resumed pwsp_pipelines_step(pwsp_pipelines *pipelines, pwsp_process *process,
                                               uint32_t *next) {
    pwsp_expander *x = pipelines->x;
    bool is_good = true;
    if (pwsp_halt_is(pipelines->host.halt)) {
        pwsp_expander_fail_halt(x, pipelines->host.halt);
        return PWSP_RESUMED_FAILED;
    }
    x->next_op = *next;
    pwsp_event event = pwsp_expander_next(x);
    *next = x->next_op;
    process->node = x->node;
    switch (event) {
    case PWSP_EVENT_SEND: return pwsp_order_send(pipelines, process, next);
    case PWSP_EVENT_RECEIVE: return pwsp_order_receive(pipelines, process, next);
    case PWSP_EVENT_TASK: is_good = pwsp_order_task(pipelines, process); break;
    case PWSP_EVENT_CLOSE:
        pwsp_exchange_close(&pipelines->exchange, process, x->port - process->op->first_port);
        break;
    case PWSP_EVENT_PROCESS_END:
        pwsp_exchange_end(&pipelines->exchange, process);
        return PWSP_RESUMED_STAYS;
    case PWSP_EVENT_SLOT_LOAD:
        pipelines->slot_load_count++;
        if (pipelines->host.load) {
            is_good = pipelines->host.load(pipelines->host.waiting);
        } else {
            pwsp_expander_load(x);
        }
        break;
    case PWSP_EVENT_ERROR: return PWSP_RESUMED_FAILED;
    default: break;  // scopes of workloads that it calls
    }
    return is_good ? PWSP_RESUMED_LATER : PWSP_RESUMED_FAILED;
}

// -- many steps -----------------------------------------------------------------------------------

// A process that moves. In the order of time processes change often, and their private cells stay
// out of place until an op needs the expander.
typedef struct pwsp_order_mover {
    pwsp_pipelines *pipelines;
    pwsp_process *process;
    uint64_t *cells;
    pwsp_halt *halt;
    bool is_entered;
} pwsp_order_mover;

PWSP_FORCE_INLINE void pwsp_order_enter(pwsp_order_mover *mover) {
    if (!mover->is_entered && PWSP_UNLIKELY(mover->process->op->private_count > 0)) {
        mover->is_entered = true;
        pwsp_process_swap(mover->pipelines, mover->process);
    }
}

// Where a cell of an op is.
PWSP_FORCE_INLINE uint64_t *pwsp_order_cell(pwsp_order_mover *mover, const pwsp_order_op *op) {
    if (op->place > 0 && !mover->is_entered) {
        if (PWSP_LIKELY(op->place != PWSP_ORDER_NO_PLACE)) {
            return &mover->process->kept[op->place - 1];
        }
        pwsp_order_enter(mover);
    }
    return &mover->cells[op->cell];
}

// The expander does an op. Returns the one where the process stays or continues.
static const pwsp_order_op *pwsp_order_expand(pwsp_pipelines *pipelines, pwsp_process *process,
                                              const pwsp_order_op *op, pwsp_resumed *out_resumed) {
    pwsp_expander *x = pipelines->x;
    uint32_t next = op->index;
    PTOWSP_ASSERT(next < pipelines->program->ops.count);
    if (op->kind == PWSP_ORDER_TASK && !pwsp_halt_is(pipelines->host.halt)) {
        bool is_good = pwsp_expander_task(x, next) == PWSP_EVENT_TASK;
        process->node = x->node;
        is_good = is_good && pwsp_order_task(pipelines, process);
        *out_resumed = is_good ? PWSP_RESUMED_LATER : PWSP_RESUMED_FAILED;
        return op->next;
    }
    x->frames = process->frames;
    x->frame_count = process->frame_count;
    *out_resumed = pwsp_pipelines_step(pipelines, process, &next);
    process->frame_count = x->frame_count;
    return &pipelines->order_ops[next];
}

// A task that is its cycles alone. False if it ends after time does.
PWSP_FORCE_INLINE bool pwsp_order_constant(const pwsp_order_mover *mover, const pwsp_order_op *op) {
    pwsp_process *process = mover->process;
    uint64_t end = process->time + op->cycles;
    if (PWSP_UNLIKELY(end > PTOWSP_CYCLES_MAX)) {
        return false;
    }
    process->time = end;
    process->busy += op->cycles;
    process->tasks++;
    mover->pipelines->x->task_count++;
    mover->pipelines->constant_count++;
    return true;
}

PWSP_FORCE_INLINE pwsp_exchanged pwsp_order_exchange(pwsp_moves moves, pwsp_order_mover *mover,
                                                     bool sends, const pwsp_order_op *op) {
    pwsp_process *process = mover->process;
    pwsp_exchange *exchange = &mover->pipelines->exchange;
    if (moves == PWSP_MOVES_IN_TIME) {
        process->node = op->node;
    }
    pwsp_exchanged what = pwsp_rules_attempt(moves, exchange, process, sends, op->channel,
                                             pwsp_order_cell(mover, op));
    if (what == PWSP_EXCHANGE_WAITS) {
        process->node = op->node;
        process->inbox = op->place ? &process->kept[op->place - 1] : &mover->cells[op->cell];
        process->is_loop = op->is_loop;
    }
    return what;
}

// Does an op that needs no expander. False if it does, and nothing has been done.
PWSP_FORCE_INLINE bool pwsp_order_act(pwsp_moves moves, pwsp_order_mover *mover,
                                      const pwsp_order_op *op, pwsp_exchanged *out_what) {
    *out_what = PWSP_EXCHANGED;
    if (op->kind == PWSP_ORDER_SEND) {
        *out_what = pwsp_order_exchange(moves, mover, true, op);
        return true;
    }
    if (pwsp_halt_is(mover->halt)) {
        return false;
    }
    if (op->kind == PWSP_ORDER_RECEIVE) {
        *out_what = pwsp_order_exchange(moves, mover, false, op);
        return true;
    }
    if (op->kind == PWSP_ORDER_LOOP_END) {
        pwsp_frame *frame = &mover->process->frames[mover->process->frame_count - 1];
        if (PWSP_LIKELY(frame->i + 1 != frame->count)) {
            *pwsp_order_cell(mover, op) = (uint64_t)++frame->i;
            return true;
        }
    }
    return op->kind == PWSP_ORDER_CONSTANT && pwsp_order_constant(mover, op);
}

// The process stays at an op, or continues there.
PWSP_FORCE_INLINE pwsp_resumed pwsp_order_leave(const pwsp_order_mover *mover,
                                                const pwsp_order_op *op, pwsp_resumed resumed) {
    mover->process->next_op = op->index;
    if (PWSP_UNLIKELY(mover->is_entered)) {
        pwsp_process_swap(mover->pipelines, mover->process);
    }
    return resumed;
}

// Runs a process until it waits or has ended or, in time, another one comes first. After an error
// the cells of the process stay in place, as the error is about it.
PWSP_FORCE_INLINE pwsp_resumed pwsp_order_resume(pwsp_moves moves, pwsp_pipelines *pipelines,
                                                 pwsp_process *process) {
    const pwsp_order_op *op = &pipelines->order_ops[process->next_op];
    pwsp_order_mover mover = {pipelines, process, pipelines->cells, pipelines->host.halt, false};
    op = process->has_met ? op->next : op;
    process->has_met = false;
    for (;;) {
        pwsp_exchanged what;
        if (!pwsp_order_act(moves, &mover, op, &what)) {
            pwsp_resumed resumed;
            pwsp_order_enter(&mover);
            op = pwsp_order_expand(pipelines, process, op, &resumed);
            if (resumed == PWSP_RESUMED_FAILED) {
                return resumed;
            }
            if (resumed == PWSP_RESUMED_STAYS) {
                return pwsp_order_leave(&mover, op, resumed);
            }
        } else if (PWSP_LIKELY(what == PWSP_EXCHANGED)) {
            op = op->next;
        } else if (what == PWSP_EXCHANGE_WAITS) {
            return pwsp_order_leave(&mover, op, PWSP_RESUMED_STAYS);
        } else if (what == PWSP_EXCHANGE_END) {
            op = op->end;
        } else {
            uint32_t next = op->index;
            pwsp_order_enter(&mover);
            pipelines->x->node = op->node;
            return pwsp_order_exchanged(pipelines, process, what, 0, &next);
        }
        if (moves == PWSP_MOVES_IN_TIME && !pwsp_exchange_is_first(&pipelines->exchange, process)) {
            return pwsp_order_leave(&mover, op, PWSP_RESUMED_LATER);
        }
    }
}

// Checks the halt before each visit: a process whose receives others complete, as in a ring, checks
// nowhere else.
PWSP_FORCE_INLINE bool pwsp_order_walk(pwsp_moves moves, pwsp_pipelines *pipelines) {
    pwsp_exchange *exchange = &pipelines->exchange;
    pwsp_process *process;
    while ((process = pwsp_exchange_next(moves, exchange)) != NULL) {
        PTOWSP_ASSERT(process->wait == PWSP_PROCESS_READY);
        if (pwsp_halt_is(pipelines->host.halt)) {
            pwsp_expander_fail_halt(pipelines->x, pipelines->host.halt);
            return false;
        }
        pwsp_resumed resumed = pwsp_order_resume(moves, pipelines, process);
        if (resumed == PWSP_RESUMED_FAILED) {
            return false;
        }
        if (moves == PWSP_MOVES_IN_TIME && resumed == PWSP_RESUMED_LATER) {
            pwsp_exchange_wake(moves, exchange, process);
        }
    }
    return true;
}

PWSP_INTERNAL bool pwsp_pipelines_walk(pwsp_pipelines *pipelines) {
    if (!pipelines->has_constants_found) {
        pwsp_order_find_constants(pipelines);
    }
    pwsp_exchange_start(&pipelines->exchange);
    return pipelines->exchange.moves == PWSP_MOVES_FREELY
               ? pwsp_order_walk(PWSP_MOVES_FREELY, pipelines)
               : pwsp_order_walk(PWSP_MOVES_IN_TIME, pipelines);
}
