// Walking the processes of a pipeline.
//
// A process is a walk of its ops (its position, loops and cells, nothing else) and a time. It is
// entered, walked to where it has to wait, and left; so thousands take no stacks and no threads.
//
//      ready --enter--> walks --leave--> waits (full, empty) --woken--> ready ... ended
//
// The ready process with the smallest (time, index) moves, and goes on as long as it is the
// smallest: a heap holds the others. One that has to wait stands in the line of its channel, behind
// those that have arrived before, and stays where it is, at its op. Each token that is put wakes
// the first receiver in line, each that is taken the first sender. Woken means ready, with the time
// at which it arrived: when it is the smallest it does its op, or, if another one that comes first
// has just taken the token or the room, stands in line again. So the rule of the order is nothing
// but the order of the heap. Only at depth 0, where two meet, who comes second does the op of both.
//
// Nobody waits in vain: as long as somebody stands in line, there are as many processes on their
// way to the channel, woken, as there are tokens (or room) to be had.
//
// Where the order does not matter, kahn.c has a shorter way.

#include "walk.h"

#include <inttypes.h>

// -- the ready ------------------------------------------------------------------------------------

static bool pwsp_ready_is_less(const pwsp_ready *a, const pwsp_ready *b) {
    return a->time < b->time || (a->time == b->time && a->process < b->process);
}

PWSP_INTERNAL void pwsp_pipelines_push(pwsp_pipelines *pipelines, const pwsp_ready *ready) {
    pwsp_ready *heap = pipelines->heap;
    uint32_t i = pipelines->heap_count++;
    while (i > 0 && pwsp_ready_is_less(ready, &heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = *ready;
}

// Puts an entry in the place of the first.
static void pwsp_pipelines_sink(pwsp_pipelines *pipelines, pwsp_ready ready) {
    pwsp_ready *heap = pipelines->heap;
    uint32_t i = 0, count = pipelines->heap_count;
    for (uint32_t child = 1; child < count; child = 2 * i + 1) {
        child += child + 1 < count && pwsp_ready_is_less(&heap[child + 1], &heap[child]);
        if (!pwsp_ready_is_less(&heap[child], &ready)) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = ready;
}

// Does a process that is ready come before all others that are?
PWSP_FORCE_INLINE bool pwsp_pipelines_is_first(const pwsp_pipelines *pipelines,
                                               const pwsp_process *process) {
    const pwsp_ready *first = &pipelines->heap[0];
    return pipelines->heap_count == 0 || process->time < first->time ||
           (process->time == first->time && process->index < first->process);
}

// -- lines ----------------------------------------------------------------------------------------

// Lets a process stand in line: behind all that arrived before it, or at the same time and come
// first.
static void pwsp_pipelines_queue(pwsp_pipelines *pipelines, pwsp_channel_line *line,
                                 pwsp_process *process) {
    pwsp_process *processes = pipelines->processes;
    uint32_t index = process->index;
    uint32_t *at = &line->first;
    if (line->last) {
        const pwsp_process *last = &processes[line->last - 1];
        if (last->time < process->time || (last->time == process->time && line->last - 1 < index)) {
            at = &processes[line->last - 1].after;
        }
    }
    while (*at && (processes[*at - 1].time < process->time ||
                   (processes[*at - 1].time == process->time && *at - 1 < index))) {
        at = &processes[*at - 1].after;
    }
    process->after = *at;
    *at = index + 1;
    if (process->after == 0) {
        line->last = index + 1;
    }
}

PWSP_FORCE_INLINE pwsp_process *pwsp_pipelines_unqueue(pwsp_pipelines *pipelines,
                                                       pwsp_channel_line *line) {
    pwsp_process *first = &pipelines->processes[line->first - 1];
    line->first = first->after;
    if (line->first == 0) {
        line->last = 0;
    }
    return first;
}

// Lets a process wait at its op, which *next is behind.
static pwsp_resumed pwsp_pipelines_wait(pwsp_pipelines *pipelines, pwsp_process *process,
                                        uint32_t channel, pwsp_process_wait wait, uint32_t *next) {
    pwsp_channel *at = &pipelines->channels[channel];
    process->wait = wait;
    process->channel = channel;
    process->node = pipelines->x->node;
    --*next;
    pwsp_pipelines_queue(pipelines, wait == PWSP_PROCESS_WAITS_FULL ? &at->senders : &at->receivers,
                         process);
    return PWSP_RESUMED_STAYS;
}

PWSP_FORCE_INLINE void pwsp_pipelines_wake_first(pwsp_pipelines *pipelines,
                                                 pwsp_channel_line *line) {
    if (line->first) {
        pwsp_pipelines_wake(pipelines, pwsp_pipelines_unqueue(pipelines, line));
    }
}

// -- sending and receiving ------------------------------------------------------------------------

PWSP_INTERNAL pwsp_resumed pwsp_pipelines_fail_time(pwsp_pipelines *pipelines, uint32_t channel) {
    pwsp_expander_fail(pipelines->x, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                       "a token of channel %s arrives after 2^63 - 1 cycles",
                       PWSP_CHANNEL_AT(pipelines, channel)->name);
    return PWSP_RESUMED_FAILED;
}

PWSP_FORCE_INLINE void pwsp_pipelines_put(pwsp_pipelines *pipelines, uint32_t channel,
                                          pwsp_process *process, uint64_t token) {
    pwsp_channel *at = &pipelines->channels[channel];
    uint64_t k = at->sent, time = pwsp_channel_put(at, token, process->time);
    uint64_t waited = time - process->time;
    if (PWSP_UNLIKELY(pipelines->host.has_records)) {
        const pwsp_channel_mark *cause = &at->marks[(k - at->depth) & at->mask];
        uint64_t step = pwsp_step_add(pipelines, process, PTOWSP_STEP_SEND, channel, time, token,
                                      waited ? cause : NULL);
        at->marks[k & at->mask].step = step;
        at->marks[k & at->mask].task = process->task;
    }
    if (waited) {
        at->full = pwsp_sum_u64(at->full, waited);
        process->full += pipelines->is_ordered ? waited : 0;
        process->time = time;
    }
}

// False when its time is beyond what time can be.
PWSP_FORCE_INLINE bool pwsp_pipelines_take(pwsp_pipelines *pipelines, uint32_t channel,
                                           pwsp_process *process, uint64_t *token) {
    pwsp_channel *at = &pipelines->channels[channel];
    if (PWSP_UNLIKELY(pwsp_channel_first_due(at) > PTOWSP_CYCLES_MAX)) {
        return false;
    }
    uint64_t k = at->received, time = pwsp_channel_take(at, process->time, token);
    uint64_t waited = time - process->time;
    if (PWSP_UNLIKELY(pipelines->host.has_records)) {
        pwsp_channel_mark *mark = &at->marks[k & at->mask];
        mark->step = pwsp_step_add(pipelines, process, PTOWSP_STEP_RECEIVE, channel, time, *token,
                                   waited ? mark : NULL);
        mark->task = process->task;
    }
    if (waited) {
        at->empty = pwsp_sum_u64(at->empty, waited);
        process->empty += pipelines->is_ordered ? waited : 0;
        process->time = time;
    }
    return true;
}

// Sender and receiver meet at a channel of depth 0; one of them has waited, at its op. False when
// time is beyond what it can be.
static bool pwsp_pipelines_meet(pwsp_pipelines *pipelines, uint32_t channel, pwsp_process *sender,
                                uint64_t token, pwsp_process *receiver, uint64_t *out_token) {
    pwsp_channel *at = &pipelines->channels[channel];
    uint64_t sent = sender->time + at->latency;
    uint64_t time = pwsp_max_u64(sent, receiver->time);
    if (time > PTOWSP_CYCLES_MAX) {
        return false;
    }
    if (pipelines->host.has_records) {
        uint64_t next = pipelines->step_count;
        pwsp_channel_mark send = {next, sender->task}, received = {next + 1, receiver->task};
        pwsp_step_add(pipelines, sender, PTOWSP_STEP_SEND, channel, time, token,
                      receiver->time > sent ? &received : NULL);
        pwsp_step_add(pipelines, receiver, PTOWSP_STEP_RECEIVE, channel, time, token,
                      sent > receiver->time ? &send : NULL);
    }
    at->sent++;
    at->received++;
    at->full = pwsp_sum_u64(at->full, time - sender->time);
    at->empty = pwsp_sum_u64(at->empty, time - receiver->time);
    sender->full += pipelines->is_ordered ? time - sender->time : 0;
    receiver->empty += pipelines->is_ordered ? time - receiver->time : 0;
    *out_token = token;
    sender->time = time;
    receiver->time = time;
    pwsp_process *waited = sender->wait == PWSP_PROCESS_READY ? receiver : sender;
    waited->next_op++;
    pwsp_pipelines_wake(pipelines, waited);
    return true;
}

// After a send at a port that its process has closed.
static pwsp_resumed pwsp_pipelines_fail_closed(pwsp_pipelines *pipelines, uint32_t channel) {
    const pwsp_channel_op *op = PWSP_CHANNEL_AT(pipelines, channel);
    pwsp_expander_fail(pipelines->x, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                       op->is_event ? "it records event %s after closing it"
                                    : "it sends to channel %s after closing it",
                       op->name);
    return PWSP_RESUMED_FAILED;
}

// After a send beyond the limit of the execution.
static pwsp_resumed pwsp_pipelines_fail_limit(pwsp_pipelines *pipelines, uint32_t channel) {
    pwsp_expander_fail(pipelines->x, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                       "channel %s gets more than %" PRIu64 " tokens, the limit of this execution",
                       PWSP_CHANNEL_AT(pipelines, channel)->name,
                       pipelines->channels[channel].limit);
    return PWSP_RESUMED_FAILED;
}

// *next is the op behind it.
static pwsp_resumed pwsp_pipelines_send(pwsp_pipelines *pipelines, pwsp_process *process,
                                        const pwsp_send_op *send, uint64_t token, uint32_t *next) {
    uint32_t channel = send->channel;
    pwsp_channel *at = &pipelines->channels[channel];
    if (PWSP_UNLIKELY(process->closed[send->port - process->op->first_port])) {
        return pwsp_pipelines_fail_closed(pipelines, channel);
    }
    if (PWSP_UNLIKELY(at->sent >= at->limit)) {
        return pwsp_pipelines_fail_limit(pipelines, channel);
    }
    if (pwsp_channel_pending(at) < at->depth) {
        pwsp_pipelines_put(pipelines, channel, process, token);
        pwsp_pipelines_wake_first(pipelines, &at->receivers);
        return PWSP_RESUMED_LATER;
    }
    if (at->depth == 0 && at->receivers.first) {
        pwsp_process *receiver = pwsp_pipelines_unqueue(pipelines, &at->receivers);
        return pwsp_pipelines_meet(pipelines, channel, process, token, receiver, receiver->inbox)
                   ? PWSP_RESUMED_LATER
                   : pwsp_pipelines_fail_time(pipelines, channel);
    }
    process->token = token;
    return pwsp_pipelines_wait(pipelines, process, channel, PWSP_PROCESS_WAITS_FULL, next);
}

// A receiver sees the end of the stream.
static void pwsp_pipelines_see_end(pwsp_pipelines *pipelines, pwsp_process *process,
                                   uint32_t channel) {
    pwsp_channel *at = &pipelines->channels[channel];
    uint64_t time = pwsp_max_u64(process->time, at->close_time), waited = time - process->time;
    if (pipelines->host.has_records) {
        pwsp_step_add(pipelines, process, PTOWSP_STEP_END, channel, time, 0,
                      waited ? &at->close_mark : NULL);
    }
    at->empty = pwsp_sum_u64(at->empty, waited);
    process->empty += pipelines->is_ordered ? waited : 0;
    process->time = time;
}

// *next is the op behind it, and at the end of the stream becomes `end`.
static pwsp_resumed pwsp_pipelines_receive(pwsp_pipelines *pipelines, pwsp_process *process,
                                           const pwsp_receive_op *receive, uint32_t end,
                                           uint32_t *next) {
    uint32_t channel = receive->channel;
    pwsp_channel *at = &pipelines->channels[channel];
    uint64_t *token = &pipelines->cells[receive->cell];
    bool is_good = true;
    if (pwsp_channel_pending(at)) {
        is_good = pwsp_pipelines_take(pipelines, channel, process, token);
        pwsp_pipelines_wake_first(pipelines, &at->senders);
    } else if (at->senders.first && at->depth == 0) {
        if (PWSP_UNLIKELY(at->sent >= at->limit)) {  // several may have come before it was reached
            return pwsp_pipelines_fail_limit(pipelines, channel);
        }
        pwsp_process *sender = pwsp_pipelines_unqueue(pipelines, &at->senders);
        is_good = pwsp_pipelines_meet(pipelines, channel, sender, sender->token, process, token);
    } else if (at->producers == 0 && !receive->is_wait) {  // who waits for an event waits for ever
        pwsp_pipelines_see_end(pipelines, process, channel);
        *next = end;
    } else {
        process->receive = receive;
        process->inbox = receive->place ? &process->kept[receive->place - 1] : token;
        return pwsp_pipelines_wait(pipelines, process, channel, PWSP_PROCESS_WAITS_EMPTY, next);
    }
    return is_good ? PWSP_RESUMED_LATER : pwsp_pipelines_fail_time(pipelines, channel);
}

// A producer closes a channel at its time. After the last one, those that wait will see the end;
// but not those that wait for an event.
static void pwsp_pipelines_close(pwsp_pipelines *pipelines, pwsp_process *process,
                                 uint32_t channel) {
    pwsp_channel *at = &pipelines->channels[channel];
    if (process->time >= at->close_time) {
        at->close_time = process->time;
        at->close_mark.step = process->step;
        at->close_mark.task = process->task;
    }
    at->producers--;
    while (at->producers == 0 && at->receivers.first &&
           !PWSP_CHANNEL_AT(pipelines, channel)->is_event) {
        pwsp_pipelines_wake_first(pipelines, &at->receivers);
    }
}

static void pwsp_pipelines_close_early(pwsp_pipelines *pipelines, pwsp_process *process,
                                       uint32_t port) {
    uint8_t *closed = &process->closed[port - process->op->first_port];
    if (*closed) {
        return;
    }
    *closed = 1;
    uint32_t channel = PWSP_PORT_AT(pipelines, port)->channel;
    if (pipelines->host.has_records) {
        pwsp_step_add(pipelines, process, PTOWSP_STEP_CLOSE, channel, process->time, 0, NULL);
    }
    pwsp_pipelines_close(pipelines, process, channel);
}

static void pwsp_pipelines_end_process(pwsp_pipelines *pipelines, pwsp_process *process) {
    if (pipelines->host.has_records) {
        pwsp_step_add(pipelines, process, PTOWSP_STEP_CLOSE, UINT32_MAX, process->time, 0, NULL);
    }
    process->wait = PWSP_PROCESS_HAS_ENDED;
    pipelines->ended_count++;
    const pwsp_process_op *op = process->op;
    for (uint32_t i = 0; i < op->port_count; i++) {
        const pwsp_port *port = PWSP_PORT_AT(pipelines, op->first_port + i);
        if (!port->is_produced) {
            pipelines->channels[port->channel].consumers--;
        } else if (!process->closed[i]) {
            pwsp_pipelines_close(pipelines, process, port->channel);
        }
    }
}

// -- walking --------------------------------------------------------------------------------------

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
    if (pipelines->host.has_records) {
        uint64_t index = pipelines->x->task.index;
        pwsp_step_add(pipelines, process, PTOWSP_STEP_TASK, UINT32_MAX, end, index, NULL);
        process->task = index;
    }
    process->tasks++;
    process->busy += cycles;
    process->time = end;
    return true;
}

// What the expander's event asks for. False with an error.
static bool pwsp_pipelines_event(pwsp_pipelines *pipelines, pwsp_process *process,
                                 pwsp_event event) {
    switch (event) {
    case PWSP_EVENT_TASK: return pwsp_pipelines_task(pipelines, process);
    case PWSP_EVENT_CLOSE:
        pwsp_pipelines_close_early(pipelines, process, pipelines->x->port);
        break;
    case PWSP_EVENT_PROCESS_END: pwsp_pipelines_end_process(pipelines, process); break;
    case PWSP_EVENT_SLOT_LOAD:
        pipelines->slot_load_count++;
        if (pipelines->host.load) {
            return pipelines->host.load(pipelines->host.user);
        }
        pwsp_expander_load(pipelines->x);
        break;
    case PWSP_EVENT_PIPELINE:  // refused when compiling
    case PWSP_EVENT_END:
    case PWSP_EVENT_ERROR: return false;
    case PWSP_EVENT_SEND:
    case PWSP_EVENT_RECEIVE:
    case PWSP_EVENT_PARALLEL:
    case PWSP_EVENT_SEQUENTIAL:
    case PWSP_EVENT_SCOPE_END:
    case PWSP_EVENT_RESET:
    case PWSP_EVENT_NONE: break;
    }
    return true;
}

PWSP_INTERNAL pwsp_resumed pwsp_pipelines_step(pwsp_pipelines *pipelines, pwsp_process *process,
                                               uint32_t *next) {
    pwsp_expander *x = pipelines->x;
    x->next_op = *next;
    pwsp_event event = pwsp_expander_next(x);
    *next = x->next_op;
    if (event == PWSP_EVENT_SEND) {
        return pwsp_pipelines_send(pipelines, process, x->send, x->token, next);
    }
    if (event == PWSP_EVENT_RECEIVE) {
        return pwsp_pipelines_receive(pipelines, process, x->receive, x->receive_end, next);
    }
    if (!pwsp_pipelines_event(pipelines, process, event)) {
        return PWSP_RESUMED_FAILED;
    }
    return event == PWSP_EVENT_PROCESS_END ? PWSP_RESUMED_STAYS : PWSP_RESUMED_LATER;
}

// Lets a process go on until it waits, has ended, or others come first.
static pwsp_resumed pwsp_pipelines_resume(pwsp_pipelines *pipelines, pwsp_process *process) {
    pwsp_resumed resumed;
    uint32_t next = process->next_op;
    pwsp_process_enter(pipelines, process);
    do {
        resumed = pwsp_pipelines_step(pipelines, process, &next);
    } while (resumed == PWSP_RESUMED_LATER && pwsp_pipelines_is_first(pipelines, process));
    process->next_op = next;
    if (resumed != PWSP_RESUMED_FAILED) {  // else the error is about it
        pwsp_process_leave(pipelines, process);
    }
    return resumed;
}

PWSP_INTERNAL bool pwsp_pipelines_walk(pwsp_pipelines *pipelines) {
    pipelines->heap_count = 0;
    for (uint32_t i = 0; i < pipelines->running_count; i++) {
        pwsp_pipelines_wake(pipelines, &pipelines->processes[i]);
    }
    while (pipelines->heap_count > 0) {
        uint32_t first = pipelines->heap[0].process;
        pwsp_pipelines_sink(pipelines, pipelines->heap[--pipelines->heap_count]);
        pwsp_process *process = &pipelines->processes[first];
        pwsp_resumed resumed = pwsp_pipelines_resume(pipelines, process);
        while (resumed == PWSP_RESUMED_LATER) {  // changes places with the first
            pwsp_ready ready = {process->time, first};
            first = pipelines->heap[0].process;
            pwsp_pipelines_sink(pipelines, ready);
            process = &pipelines->processes[first];
            resumed = pwsp_pipelines_resume(pipelines, process);
        }
        if (resumed == PWSP_RESUMED_FAILED) {
            return false;
        }
    }
    return true;
}
