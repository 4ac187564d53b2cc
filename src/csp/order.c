// One step of a process of a pipeline: through the expander to its next event, and what that does
// by the rules of exchange.h. A process that waits stays at its op, and repeats it when it is woken;
// or it continues behind the op, if another process has met it there meanwhile.
//
// network.c decides which process moves, and has a shorter way for most ops.

#include "order.h"

#include <inttypes.h>

// The outcome of a send or receive. *next is the op behind it; `end` is where a receive continues
// at the end of the stream.
static pwsp_resumed pwsp_pipelines_exchanged(pwsp_pipelines *pipelines, pwsp_exchanged what,
                                             uint32_t channel, uint32_t end, uint32_t *next) {
    switch (what) {
    case PWSP_EXCHANGED: return PWSP_RESUMED_LATER;
    case PWSP_EXCHANGE_WAITS: --*next; return PWSP_RESUMED_STAYS;
    case PWSP_EXCHANGE_END: *next = end; return PWSP_RESUMED_LATER;
    case PWSP_EXCHANGE_LATE:
    case PWSP_EXCHANGE_CLOSED:
    case PWSP_EXCHANGE_LIMIT: break;
    }
    pwsp_error error;
    pwsp_exchange_fail(&pipelines->exchange, what, channel, &error);
    pwsp_expander_fail(pipelines->x, error.status, error.index, "%s", error.text);
    return PWSP_RESUMED_FAILED;
}

static pwsp_resumed pwsp_pipelines_send(pwsp_pipelines *pipelines, pwsp_process *process,
                                        uint32_t *next) {
    const pwsp_expander *x = pipelines->x;
    pwsp_exchanged what = pwsp_exchange_send(
        &pipelines->exchange, process, x->send->port - process->op->first_port, x->token, x->node);
    return pwsp_pipelines_exchanged(pipelines, what, x->send->channel, 0, next);
}

static pwsp_resumed pwsp_pipelines_receive(pwsp_pipelines *pipelines, pwsp_process *process,
                                           uint32_t *next) {
    const pwsp_expander *x = pipelines->x;
    const pwsp_receive_op *receive = x->receive;
    uint64_t *token = &pipelines->cells[receive->cell];
    process->inbox = receive->place ? &process->kept[receive->place - 1] : token;
    process->is_loop = receive->is_loop;
    pwsp_exchanged what =
        pwsp_exchange_receive(&pipelines->exchange, process, receive->channel, token, x->node);
    return pwsp_pipelines_exchanged(pipelines, what, receive->channel, x->receive_end, next);
}

// -- other events ---------------------------------------------------------------------------------

static bool pwsp_pipelines_task(pwsp_pipelines *pipelines, pwsp_process *process) {
    ptowsp_cycles cycles = 0;
    if (!pipelines->host.task(pipelines->host.user, process, &cycles)) {
        return false;
    }
    uint64_t end = process->time + cycles;
    if (end > PTOWSP_CYCLES_MAX) {
        pwsp_expander_fail(pipelines->x, PTOWSP_LIMIT_EXCEEDED, pipelines->x->task.index,
                           "task %" PRIu64 " ends after 2^63 - 1 cycles", pipelines->x->task.index);
        return false;
    }
    if (pipelines->exchange.has_records) {
        uint64_t index = pipelines->x->task.index;
        pwsp_step_add(pipelines, process, PTOWSP_STEP_TASK, UINT32_MAX, end, index, NULL);
        process->task = index;
    }
    process->tasks++;
    process->busy += cycles;
    process->time = end;
    return true;
}

// Does the expander's event. False with an error.
static bool pwsp_pipelines_event(pwsp_pipelines *pipelines, pwsp_process *process,
                                 pwsp_event event) {
    switch (event) {
    case PWSP_EVENT_TASK: return pwsp_pipelines_task(pipelines, process);
    case PWSP_EVENT_CLOSE:
        pwsp_exchange_close(&pipelines->exchange, process,
                            pipelines->x->port - process->op->first_port);
        break;
    case PWSP_EVENT_PROCESS_END: pwsp_exchange_end(&pipelines->exchange, process); break;
    case PWSP_EVENT_SLOT_LOAD:
        pipelines->slot_load_count++;
        if (pipelines->host.load) {
            return pipelines->host.load(pipelines->host.user);
        }
        pwsp_expander_load(pipelines->x);
        break;
    case PWSP_EVENT_ERROR: return false;
    default: break;  // scopes of workloads that it calls
    }
    return true;
}

PWSP_INTERNAL pwsp_resumed pwsp_pipelines_step(pwsp_pipelines *pipelines, pwsp_process *process,
                                               uint32_t *next) {
    pwsp_expander *x = pipelines->x;
    if (pwsp_halt_is(pipelines->host.halt)) {
        pwsp_expander_fail_halt(x, pipelines->host.halt);
        return PWSP_RESUMED_FAILED;
    }
    x->next_op = *next;
    pwsp_event event = pwsp_expander_next(x);
    *next = x->next_op;
    if (event == PWSP_EVENT_SEND) {
        return pwsp_pipelines_send(pipelines, process, next);
    }
    if (event == PWSP_EVENT_RECEIVE) {
        return pwsp_pipelines_receive(pipelines, process, next);
    }
    if (!pwsp_pipelines_event(pipelines, process, event)) {
        return PWSP_RESUMED_FAILED;
    }
    return event == PWSP_EVENT_PROCESS_END ? PWSP_RESUMED_STAYS : PWSP_RESUMED_LATER;
}

PWSP_INTERNAL bool pwsp_pipelines_step_task(pwsp_pipelines *pipelines, pwsp_process *process,
                                            uint32_t op) {
    return pwsp_expander_task(pipelines->x, op) == PWSP_EVENT_TASK &&
           pwsp_pipelines_task(pipelines, process);
}
